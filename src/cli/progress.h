/*
 * progress - the line that shows how far a long job is.
 *
 *      terminal:  archiving  1,234 of 5,678  21%  123/s  45.0 MB  0:36 left      redrawn, at most 10 times a
 * second log file:  archiving: 1,234 of 5,678, 21%, 123/s, 45.0 MB, 0:36 left      a line every 10 seconds
 *      quiet:     nothing
 *
 * The rate is that of the last few seconds, so it follows what happens now; the time left is what remains
 * divided by it. One thread uses a struct progress.
 */
#ifndef MNEMON_CLI_PROGRESS_H
#define MNEMON_CLI_PROGRESS_H

#include "base/buf.h"
#include "base/clock.h"

enum { PROGRESS_SAMPLES_COUNT = 8 };

enum progress_mode { PROGRESS_QUIET, PROGRESS_LINES, PROGRESS_TERMINAL };

struct progress {
    int fd;
    enum progress_mode mode;
    const struct clock *clock;
    const char *label; /* "archiving" */
    uint64_t done_count;
    uint64_t total_count; /* 0 if nobody knows */
    uint64_t bytes_count; /* 0 if it means nothing */
    uint64_t started_us;
    uint64_t shown_us; /* when the last line was written */
    uint32_t columns;  /* width of the terminal */
    bool line_is_open; /* the cursor stands behind an unfinished line */
    struct {
        uint64_t at_us;
        uint64_t done_count;
    } samples[PROGRESS_SAMPLES_COUNT]; /* ring of about one a second, for the rate */
    uint32_t samples_count;
};

/* Mode and width from fd, unless is_quiet. The label must outlive the progress. */
void progress_init(struct progress *progress, const char *label, int fd, bool is_quiet,
                   const struct clock *clock);

/* Cheap: call it for every item. Writes when it is time; note (may be NULL) is appended. */
void progress_update(struct progress *progress, const char *note);

/* The last line with totals and the overall rate. */
void progress_finish(struct progress *progress);

#endif
