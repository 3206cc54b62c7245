#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "base/value.h"

enum {
    REDRAW_US = 100 * 1000,
    LINE_US = 10 * 1000 * 1000,
    SAMPLE_US = 1000 * 1000,
    COLUMNS_DEFAULT = 80,
    LINE_SIZE_MAX = 1024,
};

static uint32_t terminal_columns(int fd) {
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return COLUMNS_DEFAULT;
    }
    return size.ws_col;
}

void progress_init(struct progress *progress, const char *label, int fd, bool is_quiet,
                   const struct clock *clock) {
    bool is_terminal = isatty(fd) == 1;
    *progress = (struct progress){
        .fd = fd,
        .mode = is_quiet      ? PROGRESS_QUIET
                : is_terminal ? PROGRESS_TERMINAL
                              : PROGRESS_LINES,
        .clock = clock,
        .label = label,
        .started_us = clock_monotonic_us(clock),
        .columns = is_terminal ? terminal_columns(fd) : COLUMNS_DEFAULT,
    };
    progress->shown_us = progress->started_us;
    progress->samples[0].at_us = progress->started_us;
    progress->samples_count = 1;
}

static void add_sample(struct progress *progress, uint64_t now_us) {
    uint32_t newest = (progress->samples_count - 1) % PROGRESS_SAMPLES_COUNT;
    if (now_us - progress->samples[newest].at_us < SAMPLE_US) {
        return;
    }
    uint32_t next = progress->samples_count++ % PROGRESS_SAMPLES_COUNT;
    progress->samples[next].at_us = now_us;
    progress->samples[next].done_count = progress->done_count;
}

/* Items per second since the oldest sample, in tenths. */
static uint64_t recent_rate_tenths(const struct progress *progress, uint64_t now_us) {
    uint32_t oldest = progress->samples_count <= PROGRESS_SAMPLES_COUNT
                          ? 0
                          : progress->samples_count % PROGRESS_SAMPLES_COUNT;
    uint64_t elapsed_us = now_us - progress->samples[oldest].at_us;
    uint64_t done = progress->done_count - progress->samples[oldest].done_count;
    return elapsed_us == 0 ? 0 : done * 10000000 / elapsed_us;
}

static void progress_put_rate(struct buf *buf, uint64_t tenths) {
    if (tenths >= 100) {
        value_put_count(buf, tenths / 10);
    } else {
        buf_put_format(buf, "%ju.%ju", (uintmax_t)(tenths / 10), (uintmax_t)(tenths % 10));
    }
    buf_put_string(buf, "/s");
}

static void put_counts(struct buf *buf, const struct progress *progress, const char *gap) {
    value_put_count(buf, progress->done_count);
    if (progress->total_count > 0) {
        VALUE_PUT(buf, " of {count}", progress->total_count);
        uint64_t percent =
            progress->done_count >= progress->total_count
                ? 100
                : (uint64_t)((double)progress->done_count * 100.0 / (double)progress->total_count);
        buf_put_format(buf, "%s%ju%%", gap, (uintmax_t)percent);
    }
}

/* The text of the line, without the cursor control. */
static void progress_put_line(const struct progress *progress, uint64_t now_us, const char *note,
                              struct buf *buf) {
    bool on_terminal = progress->mode == PROGRESS_TERMINAL;
    const char *gap = on_terminal ? "  " : ", ";
    uint64_t rate_tenths = recent_rate_tenths(progress, now_us);
    buf_put_format(buf, "%s%s", progress->label, on_terminal ? "  " : ": ");
    put_counts(buf, progress, gap);
    buf_put_string(buf, gap);
    progress_put_rate(buf, rate_tenths);
    if (progress->bytes_count > 0) {
        buf_put_string(buf, gap);
        value_put_size(buf, progress->bytes_count);
    }
    if (progress->total_count > progress->done_count && rate_tenths > 0) {
        uint64_t left_s = (progress->total_count - progress->done_count) * 10 / rate_tenths;
        buf_put_string(buf, gap);
        VALUE_PUT(buf, "{time} left", left_s < 1000000000 ? left_s * 1000000 : UINT64_C(1000000000000000));
    }
    if (note != NULL && note[0] != '\0') {
        buf_put_format(buf, "%s%s", gap, note);
    }
}

/* Cut to the width by characters, never inside one. */
static struct bytes fit(struct bytes line, uint32_t columns) {
    size_t at = 0;
    for (uint32_t used = 0; at < line.size && used + 1 < columns; used++) {
        size_t length;
        utf8_decode(bytes_skip(line, at), &length);
        at += length;
    }
    return bytes_slice(line, 0, at);
}

/* Progress is decoration: a closed pipe or a full disk must not stop the job. */
static void write_all(int fd, struct bytes bytes) {
    while (bytes.size > 0) {
        ssize_t written = write(fd, bytes.data, bytes.size);
        if (written <= 0) {
            return;
        }
        bytes = bytes_skip(bytes, (size_t)written);
    }
}

static void show(struct progress *progress, uint64_t now_us, const char *note) {
    struct buf line;
    struct buf out;
    buf_init(&line, LINE_SIZE_MAX);
    buf_init(&out, LINE_SIZE_MAX + 16);
    progress_put_line(progress, now_us, note, &line);
    if (progress->mode == PROGRESS_TERMINAL) {
        buf_put_string(&out, "\r");
        buf_put(&out, fit(buf_bytes(&line), progress->columns));
        buf_put_string(&out, "\x1b[K"); /* erase what a longer line left */
        progress->line_is_open = true;
    } else {
        buf_put(&out, buf_bytes(&line));
        buf_put_string(&out, "\n");
    }
    write_all(progress->fd, buf_bytes(&out));
    buf_done(&line);
    buf_done(&out);
    progress->shown_us = now_us;
}

void progress_update(struct progress *progress, const char *note) {
    if (progress->mode == PROGRESS_QUIET) {
        return;
    }
    uint64_t now_us = clock_monotonic_us(progress->clock);
    uint64_t interval_us = progress->mode == PROGRESS_TERMINAL ? REDRAW_US : LINE_US;
    if (now_us - progress->shown_us >= interval_us) {
        show(progress, now_us, note);
    }
    add_sample(progress, now_us);
}

void progress_finish(struct progress *progress) {
    if (progress->mode == PROGRESS_QUIET) {
        return;
    }
    uint64_t now_us = clock_monotonic_us(progress->clock);
    /* The last line speaks of the whole job. */
    progress->samples[0].at_us = progress->started_us;
    progress->samples[0].done_count = 0;
    progress->samples_count = 1;
    struct buf note;
    buf_init(&note, 64);
    VALUE_PUT(&note, "in {time}", now_us - progress->started_us);
    show(progress, now_us, buf_string(&note));
    buf_done(&note);
    if (progress->line_is_open) {
        write_all(progress->fd, BYTES("\n"));
        progress->line_is_open = false;
    }
}
