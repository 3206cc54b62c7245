/*
 * value - how people write numbers, sizes, durations and switches, on the command line and in mnemon.conf.
 *
 *      number      8080                 size        64 KiB, 1.5GB, 100 bytes, 0
 *      switch      yes no true false    duration    250 ms, 5 s, 2 min, 1.5 h, 7 d, 0
 *
 * A size or duration other than 0 needs its unit. Each reader takes all of the text or nothing; on failure
 * it explains what would have been right.
 */
#ifndef MNEMON_BASE_VALUE_H
#define MNEMON_BASE_VALUE_H

#include "base/buf.h"

enum err value_read_number(struct bytes text, uint64_t min, uint64_t max, uint64_t *ret_number,
                           struct err_detail *detail) MUST_CHECK;
enum err value_read_switch(struct bytes text, bool *ret_on, struct err_detail *detail) MUST_CHECK;

/* One of the words, which end with NULL; its index. */
enum err value_read_choice(struct bytes text, const char *const *choices, uint32_t *ret_index,
                           struct err_detail *detail) MUST_CHECK;

/* In bytes; KB MB GB TB are powers of 1000, KiB MiB GiB TiB and the bare K M G T powers of 1024. */
enum err value_read_size(struct bytes text, uint64_t min, uint64_t max, uint64_t *ret_size,
                         struct err_detail *detail) MUST_CHECK;

/* In microseconds. */
enum err value_read_duration(struct bytes text, uint64_t min_us, uint64_t max_us, uint64_t *ret_us,
                             struct err_detail *detail) MUST_CHECK;

/* For people: "1.5 GB", "640 bytes"; "250 ms", "1:02:03"; "1,234,567". */
void value_put_size(struct buf *buf, uint64_t size);
void value_put_duration(struct buf *buf, uint64_t duration_us);
void value_put_count(struct buf *buf, uint64_t count);

/*
 * A text with values where it has braces, in their order: {count}, {size} and {time}, which is a duration in
 * microseconds. {s} is the ending of a plural: nothing if the value before it was 1.
 */
void value_put_text(struct buf *buf, const char *text, const uint64_t *values, size_t values_count);

#define VALUE_PUT(buf, text, ...)                              \
    value_put_text(buf, text, (const uint64_t[]){__VA_ARGS__}, \
                   sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
