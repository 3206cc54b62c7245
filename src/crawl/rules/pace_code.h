/*
 * pace_code - a pace on its way to another node: times are relative there, since clocks differ.
 *
 * Layout and bounds: docs/protocol/host-leases.md.
 */
#ifndef MNEMON_CRAWL_RULES_PACE_CODE_H
#define MNEMON_CRAWL_RULES_PACE_CODE_H

#include "base/wire.h"
#include "crawl/rules/pace.h"

enum { PACE_CODE_SIZE_MAX = 40 };

/* now_us: the monotonic clock here, on either side. What is out of bounds is cut on writing, refused on
 * reading (as an error of the reader). */
void pace_write(const struct pace *pace, uint64_t now_us, struct wire_writer *writer);
void pace_read(struct wire_reader *reader, uint64_t now_us, struct pace *ret_pace);

#endif
