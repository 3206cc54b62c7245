/*
 * log - what a running node says: one line per event, for people on a terminal, as JSON otherwise.
 *
 *      14:03:07.123 info    peer joined peer=127.0.0.3:7070 rtt_us=412
 *      {"time":"2026-01-02T14:03:07.123456Z","level":"info","message":"peer joined","rtt_us":412}
 *
 * Only node/ and cli/ log; libraries return errors. A line is formatted in memory and written by one
 * write(2), so lines of several threads do not mix; a struct log is read-only after log_init() and may be
 * shared. Lines are cut at LOG_LINE_SIZE_MAX; what cannot be written is dropped, a full disk must not stop
 * the node.
 */
#ifndef MNEMON_BASE_LOG_H
#define MNEMON_BASE_LOG_H

#include "base/buf.h"
#include "base/clock.h"

enum { LOG_LINE_SIZE_MAX = 8192 };

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log {
    int fd;
    enum log_level level; /* lower ones are dropped */
    enum log_format format;
    const struct clock *clock;
};

struct log_field {
    const char *name; /* lower case with underscores */
    bool is_number;
    int64_t number;
    struct bytes text;
};

/* Text on a terminal, JSON lines otherwise. */
void log_init(struct log *log, int fd, enum log_level level, const struct clock *clock);

const char *log_level_name(enum log_level level);
bool log_level_parse(struct bytes name, enum log_level *ret_level);

static inline struct log_field log_number(const char *name, int64_t number) {
    return (struct log_field){.name = name, .is_number = true, .number = number};
}

static inline struct log_field log_bytes(const char *name, struct bytes text) {
    return (struct log_field){.name = name, .text = text};
}

static inline struct log_field log_string(const char *name, const char *text) {
    return log_bytes(name, bytes_of_string(text));
}

void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t fields_count);

/* log_event(log, LOG_INFO, "peer joined", log_string("peer", name), log_number("rtt_us", rtt)); a macro to
 * count. */
#define log_event(log, level, message, ...)                                       \
    log_write((log), (level), (message), (const struct log_field[]){__VA_ARGS__}, \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

/* The line itself, with its newline, as log_write() writes it; buf->size_max is LOG_LINE_SIZE_MAX. */
void log_put_line(struct buf *buf, enum log_format format, int64_t wall_us, enum log_level level,
                  const char *message, const struct log_field *fields, size_t fields_count);

#endif
