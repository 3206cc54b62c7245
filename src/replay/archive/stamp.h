/*
 * stamp - which capture of a URL: its time, and what tells it from others of the same second.
 *
 *      20260102030405                       the second, for whatever is nearest to it
 *      20260102030405~0123456789abcdef      this very capture
 *
 * The digits behind the tilde are the capture's id (store/instance/capture_line.h): the same on every node
 * that has a copy, and after export and import. With them an address is permanent: it never shows another
 * capture.
 */
#ifndef MNEMON_REPLAY_ARCHIVE_STAMP_H
#define MNEMON_REPLAY_ARCHIVE_STAMP_H

#include "base/utc.h"
#include "store/instance/capture_line.h"

enum { STAMP_ID_DIGITS = 16, STAMP_SIZE = UTC_DIGITS_SIZE + 1 + STAMP_ID_DIGITS };

struct stamp {
    int64_t time_us;
    uint64_t id; /* 0: none, only the time counts */
};

static inline struct stamp stamp_of(const struct capture *capture) {
    return (struct stamp){.time_us = capture->time_us, .id = capture_id(capture)};
}

static inline struct stamp stamp_of_time(int64_t time_us) {
    return (struct stamp){.time_us = time_us};
}

/* With its zero byte. Returns out. */
const char *stamp_format(struct stamp stamp, char out[STAMP_SIZE]);

/* Cut "~0123456789abcdef" off the end; the id, or 0 if there is none. */
uint64_t stamp_take_id(struct bytes *text);

#endif
