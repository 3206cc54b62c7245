/*
 * mirror_driver_rates - how fast collections may travel, as people write it and see it.
 *
 *      limit = 1 MB                     bytes a second; 0 or no: nothing; unlimited
 *      window = 22:00-06:00 10 MB       between these hours instead; of several the first that fits counts
 *
 * Hours are those of the clock on the wall where the node is, in its time zone.
 */
#ifndef MNEMON_NODE_MIRROR_MIRROR_DRIVER_RATES_H
#define MNEMON_NODE_MIRROR_MIRROR_DRIVER_RATES_H

#include "base/clock.h"
#include "base/config.h"
#include "base/json.h"
#include "protocol/mirror/mirror_limit.h"

/* *ret_limit may be copied; it begins to count when it is first used. */
enum err mirror_driver_rates_read(struct bytes limit, const struct config_list *windows,
                                  struct mirror_limit *ret_limit, struct err_detail *detail) MUST_CHECK;

/* Look at the clock on the wall: every second or so, since it may be set. */
void mirror_driver_rates_set_clock(struct mirror_limit *limit, const struct clock *clock);

/* Append {"limit":1000000,"until":"06:00"}; limit null: any; until null: always. */
enum { MIRROR_DRIVER_UNTIL_SIZE = 24 };

/* "06:00", the time of day when it changes. False: it stays as it is. */
bool mirror_driver_rates_until(const struct mirror_limit *limit, uint64_t now_us,
                               char ret_text[MIRROR_DRIVER_UNTIL_SIZE]);
void mirror_driver_rates_put(const struct mirror_limit *limit, uint64_t now_us, struct json *json,
                             const char *name);

#endif
