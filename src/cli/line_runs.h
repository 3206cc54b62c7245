/*
 * line_runs - sorts the lines of an index, which may be more than memory holds and are nearly sorted already.
 *
 *      line_runs_put(&runs, line);                               as often as needed
 *      line_runs_sort(&runs, &detail);
 *      while (line_runs_next(&runs, &line) == ERR_OK) …          in order
 *
 * An export walks the archive in the order of the index, once per URL that was asked for. So what is put
 * comes in as few sorted runs as there were URLs, mostly in one. The runs are kept one behind the other in a
 * scratch file and merged, LINE_RUNS_MERGE_MAX at a time, until there is one.
 *
 * The order is that of a CDXJ index: by the bytes of the lines. A space sorts before every byte of a key, so
 * that is first by key, then by timestamp, then by what follows, as `LC_ALL=C sort` and pywb have it.
 */
#ifndef MNEMON_CLI_LINE_RUNS_H
#define MNEMON_CLI_LINE_RUNS_H

#include "base/scratch.h"

enum { LINE_RUNS_MERGE_MAX = 64 };

/* One sorted run that is being read. */
struct line_run {
    uint64_t offset; /* of what is not in memory yet */
    uint64_t end;
    struct buf window;
    size_t from;       /* of the line in the window */
    struct bytes line; /* with its end; empty: the run has ended */
};

struct line_runs {
    struct scratch lines;
    struct scratch merged; /* becomes `lines` after each round */
    struct buf waiting;    /* for either, so that lines are not written one by one */
    struct buf starts;     /* uint64_t each: where the runs begin */
    struct buf last;       /* line that was put */
    struct line_run runs[LINE_RUNS_MERGE_MAX];
    size_t runs_count;
};

/* The directory for scratch files, which is borrowed. */
void line_runs_init(struct line_runs *runs, const char *directory);
void line_runs_done(struct line_runs *runs);

/* A line with its line end. */
enum err line_runs_put(struct line_runs *runs, struct bytes line) MUST_CHECK;

/* After the last put, once. */
enum err line_runs_sort(struct line_runs *runs) MUST_CHECK;

/* The size of all lines, after line_runs_sort(). */
static inline uint64_t line_runs_size(const struct line_runs *runs) {
    return runs->lines.size;
}

/* The next line, until the next call; ERR_NOT_FOUND at the end. */
enum err line_runs_next(struct line_runs *runs, struct bytes *ret_line) MUST_CHECK;

#endif
