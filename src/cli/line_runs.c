#include "cli/line_runs.h"

#include "warc/cdxj.h"

enum {
    WAITING_SIZE = 64 << 10,
    WINDOW_SIZE = 32 << 10, /* and more while a line is longer */
    STARTS_SIZE_MAX = 1 << 30,
};

static const uint64_t LINES_SIZE_MAX = UINT64_C(1) << 48;

void line_runs_init(struct line_runs *runs, const char *directory) {
    *runs = (struct line_runs){0};
    scratch_init(&runs->lines, directory, SCRATCH_MEMORY_MAX, LINES_SIZE_MAX);
    scratch_init(&runs->merged, directory, SCRATCH_MEMORY_MAX, LINES_SIZE_MAX);
    buf_init(&runs->waiting, WAITING_SIZE + CDXJ_LINE_SIZE_MAX);
    buf_init(&runs->starts, STARTS_SIZE_MAX);
    buf_init(&runs->last, CDXJ_LINE_SIZE_MAX);
    for (size_t i = 0; i < LINE_RUNS_MERGE_MAX; i++) {
        buf_init(&runs->runs[i].window, WINDOW_SIZE + CDXJ_LINE_SIZE_MAX);
    }
}

void line_runs_done(struct line_runs *runs) {
    for (size_t i = 0; i < LINE_RUNS_MERGE_MAX; i++) {
        buf_done(&runs->runs[i].window);
    }
    buf_done(&runs->last);
    buf_done(&runs->starts);
    buf_done(&runs->waiting);
    scratch_done(&runs->merged);
    scratch_done(&runs->lines);
}

/* ---- writing ---- */

static enum err flush(struct line_runs *runs, struct scratch *to) {
    enum err err = scratch_put(to, buf_bytes(&runs->waiting));
    buf_clear(&runs->waiting);
    return err;
}

static enum err write_line(struct line_runs *runs, struct scratch *to, struct bytes line) {
    enum err err = buf_put(&runs->waiting, line);
    return err == ERR_OK && runs->waiting.size >= WAITING_SIZE ? flush(runs, to) : err;
}

static enum err start_run(struct line_runs *runs, const struct scratch *to) {
    uint64_t start = to->size + runs->waiting.size;
    return buf_put(&runs->starts, bytes_of(&start, sizeof start));
}

enum err line_runs_put(struct line_runs *runs, struct bytes line) {
    enum err err = ERR_OK;
    bool goes_on = runs->starts.size > 0 && bytes_compare(buf_bytes(&runs->last), line) <= 0;
    if (!goes_on) {
        err = start_run(runs, &runs->lines);
    }
    buf_clear(&runs->last);
    err = err == ERR_OK ? buf_put(&runs->last, line) : err;
    return err == ERR_OK ? write_line(runs, &runs->lines, line) : err;
}

/* ---- reading ---- */

/* Make the next line of the run the one that is in front. */
static enum err advance(const struct line_runs *runs, struct line_run *run) {
    run->from += run->line.size;
    for (;;) {
        struct bytes ready = bytes_skip(buf_bytes(&run->window), run->from);
        size_t end = bytes_find_byte(ready, '\n');
        if (end < ready.size) {
            run->line = bytes_slice(ready, 0, end + 1);
            return ERR_OK;
        }
        if (run->offset == run->end) {
            run->line = bytes_of(NULL, 0);
            return ERR_OK;
        }
        uint64_t left = run->end - run->offset;
        size_t wanted = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
        buf_consume(&run->window, run->from);
        run->from = 0;
        enum err err = buf_reserve(&run->window, wanted);
        if (err == ERR_OK) {
            err = scratch_read(&runs->lines, run->offset, run->window.data + run->window.size, wanted);
        }
        if (err != ERR_OK) {
            return err;
        }
        run->window.size += wanted;
        run->offset += wanted;
    }
}

static uint64_t start_of(const struct line_runs *runs, size_t index) {
    uint64_t start = runs->lines.size;
    if ((index + 1) * sizeof start <= runs->starts.size) {
        memcpy(&start, runs->starts.data + index * sizeof start, sizeof start);
    }
    return start;
}

/* Open the runs from the first index on, as many as are merged at a time. */
static enum err open_runs(struct line_runs *runs, size_t first) {
    size_t all_count = runs->starts.size / sizeof(uint64_t);
    size_t left = all_count - first;
    enum err err = ERR_OK;
    runs->runs_count = left < LINE_RUNS_MERGE_MAX ? left : LINE_RUNS_MERGE_MAX;
    for (size_t i = 0; i < runs->runs_count && err == ERR_OK; i++) {
        struct line_run *run = &runs->runs[i];
        buf_clear(&run->window);
        run->offset = start_of(runs, first + i);
        run->end = start_of(runs, first + i + 1);
        run->from = 0;
        run->line = bytes_of(NULL, 0);
        err = advance(runs, run);
    }
    return err;
}

/* The run whose line is the least; the first of them where they agree. NULL at the end of all. */
static struct line_run *least(struct line_runs *runs) {
    struct line_run *found = NULL;
    for (size_t i = 0; i < runs->runs_count; i++) {
        struct line_run *run = &runs->runs[i];
        bool is_less = run->line.size > 0 && (found == NULL || bytes_compare(run->line, found->line) < 0);
        found = is_less ? run : found;
    }
    return found;
}

/* ---- sorting ---- */

/* All runs, in groups, into fewer and longer ones. */
static enum err merge_round(struct line_runs *runs) {
    struct buf starts;
    size_t count = runs->starts.size / sizeof(uint64_t);
    enum err err = ERR_OK;
    buf_init(&starts, STARTS_SIZE_MAX);
    scratch_clear(&runs->merged);
    for (size_t first = 0; first < count && err == ERR_OK; first += LINE_RUNS_MERGE_MAX) {
        uint64_t start = runs->merged.size + runs->waiting.size;
        struct line_run *run;
        err = buf_put(&starts, bytes_of(&start, sizeof start));
        err = err == ERR_OK ? open_runs(runs, first) : err;
        while (err == ERR_OK && (run = least(runs)) != NULL) {
            err = write_line(runs, &runs->merged, run->line);
            err = err == ERR_OK ? advance(runs, run) : err;
        }
    }
    err = err == ERR_OK ? flush(runs, &runs->merged) : err;
    struct scratch swapped = runs->lines;
    runs->lines = runs->merged;
    runs->merged = swapped;
    buf_done(&runs->starts);
    runs->starts = starts;
    return err;
}

enum err line_runs_sort(struct line_runs *runs) {
    enum err err = flush(runs, &runs->lines);
    while (err == ERR_OK && runs->starts.size > sizeof(uint64_t)) {
        err = merge_round(runs);
    }
    scratch_clear(&runs->merged);
    return err == ERR_OK ? open_runs(runs, 0) : err;
}

enum err line_runs_next(struct line_runs *runs, struct bytes *ret_line) {
    struct line_run *run = &runs->runs[0];
    if (runs->runs_count == 0 || run->line.size == 0) {
        return ERR_NOT_FOUND;
    }
    /* The window is copied from: advancing moves it. */
    buf_clear(&runs->last);
    enum err err = buf_put(&runs->last, run->line);
    err = err == ERR_OK ? advance(runs, run) : err;
    if (err == ERR_OK) {
        *ret_line = buf_bytes(&runs->last);
    }
    return err;
}
