#include "base/log.h"

#include <unistd.h>

#include "base/utc.h"

static const char *const level_names[] = {"debug", "info", "warning", "error"};

void log_init(struct log *log, int fd, enum log_level level, const struct clock *clock) {
    *log = (struct log){
        .fd = fd,
        .level = level,
        .format = isatty(fd) ? LOG_TEXT : LOG_JSON,
        .clock = clock,
    };
}

const char *log_level_name(enum log_level level) {
    ASSERT(level <= LOG_ERROR);
    return level_names[level];
}

bool log_level_parse(struct bytes name, enum log_level *ret_level) {
    for (enum log_level level = LOG_DEBUG; level <= LOG_ERROR; level++) {
        if (bytes_equal(name, bytes_of_string(level_names[level]))) {
            *ret_level = level;
            return true;
        }
    }
    return false;
}

static bool needs_quotes(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] == '"' || text.data[i] == '\\' || text.data[i] >= 0x7f) {
            return true;
        }
    }
    return text.size == 0;
}

static void put_field_value(struct buf *buf, const struct log_field *field, bool always_quote) {
    if (field->is_number) {
        buf_put_format(buf, "%jd", (intmax_t)field->number);
    } else if (always_quote || needs_quotes(field->text)) {
        buf_put_json(buf, field->text); /* also keeps control characters off the terminal */
    } else {
        buf_put(buf, field->text);
    }
}

/* What of the message every line has room for, also where JSON takes 6 bytes for one. */
static struct bytes cut_message(const char *message) {
    struct bytes text = bytes_of_string(message);
    if (text.size <= LOG_LINE_SIZE_MAX / 8) {
        return text;
    }
    size_t size = LOG_LINE_SIZE_MAX / 8;
    while (size > 0 && (text.data[size] & 0xc0) == 0x80) {
        size--; /* not inside a character */
    }
    return bytes_slice(text, 0, size);
}

static void put_text(struct buf *buf, int64_t wall_us, enum log_level level, const char *message,
                     const struct log_field *fields, size_t fields_count) {
    struct utc utc;
    utc_split(wall_us, &utc);
    buf_put_format(buf, "%02u:%02u:%02u.%03u %-7s ", utc.hour, utc.minute, utc.second, utc.microsecond / 1000,
                   log_level_name(level));
    buf_put(buf, cut_message(message));
    for (size_t i = 0; i < fields_count; i++) {
        buf_put_format(buf, " %s=", fields[i].name);
        put_field_value(buf, &fields[i], false);
    }
}

static void put_json(struct buf *buf, int64_t wall_us, enum log_level level, const char *message,
                     const struct log_field *fields, size_t fields_count) {
    char time[UTC_RFC3339_SIZE];
    buf_put_format(buf, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", utc_format_rfc3339(wall_us, time),
                   log_level_name(level));
    buf_put_json(buf, cut_message(message));
    for (size_t i = 0; i < fields_count; i++) {
        size_t before = buf->size;
        buf_put_format(buf, ",\"%s\":", fields[i].name);
        put_field_value(buf, &fields[i], true);
        if (buf->err != ERR_OK || buf->size > LOG_LINE_SIZE_MAX - 16) {
            /* Cut between fields, so that the line stays valid JSON. */
            buf_truncate(buf, before);
            buf->err = ERR_OK;
            buf_put_string(buf, ",\"cut\":1");
            break;
        }
    }
    buf_put_byte(buf, '}');
}

void log_put_line(struct buf *buf, enum log_format format, int64_t wall_us, enum log_level level,
                  const char *message, const struct log_field *fields, size_t fields_count) {
    if (format == LOG_JSON) {
        put_json(buf, wall_us, level, message, fields, fields_count);
    } else {
        put_text(buf, wall_us, level, message, fields, fields_count);
        if (buf->err != ERR_OK || buf->size == buf->size_max) {
            buf->err = ERR_OK;
            buf_truncate(buf, buf->size < LOG_LINE_SIZE_MAX - 1 ? buf->size : LOG_LINE_SIZE_MAX - 1);
        }
    }
    buf_put_byte(buf, '\n');
}

void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t fields_count) {
    if (level < log->level) {
        return;
    }
    struct buf line;
    buf_init(&line, LOG_LINE_SIZE_MAX);
    log_put_line(&line, log->format, clock_wall_us(log->clock), level, message, fields, fields_count);
    struct bytes bytes = buf_bytes(&line);
    ssize_t written = bytes.size == 0 ? 0 : write(log->fd, bytes.data, bytes.size);
    (void)written;
    buf_done(&line);
}
