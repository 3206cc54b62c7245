/*
 * json - writes JSON into a buffer, member by member.
 *
 *      json_begin(&json, &out);                    {
 *      json_text(&json, "name", "a");              "name":"a"
 *      json_open_list(&json, "sizes");             ,"sizes":[
 *      json_count(&json, NULL, 1);                 1
 *      json_count(&json, NULL, 2);                 ,2
 *      json_end(&json);                            ]}
 *
 * The writer sets the commas and knows which bracket closes. What is written is well-formed as soon as every
 * bracket is closed; a name where none belongs, or none where one belongs, is the programmer's error. The
 * name is NULL in a list and at the top level. Behind the last bracket a new value may begin; a buffer's
 * owner separates the two, a file gets a line for each.
 *
 * The buffer is the caller's. Its first error sticks, so that a caller checks once, at the end: out->err.
 * This is the only place under src/ that spells JSON; programs that read it are outside the process.
 */
#ifndef MNEMON_BASE_JSON_H
#define MNEMON_BASE_JSON_H

#include <stdio.h>

#include "base/buf.h"

enum { JSON_DEPTH_MAX = 32, JSON_LINE_SIZE_MAX = 64 << 20 };

struct json {
    struct buf *out;
    FILE *file; /* or NULL; then out is lines */
    struct buf lines;
    enum err lines_err; /* why one was left out */
    uint32_t lists;     /* a bit for each open level, the innermost lowest: is it a list? */
    uint8_t depth;      /* open brackets */
    bool is_spaced;     /* {"a": 1, "b": 2}, as other web archives write their indexes; not {"a":1,"b":2} */
    bool has_before;    /* a value stands before the next one at this level */
    bool has_name;      /* of the next value */
    bool wants_break;   /* the next value or bracket begins a line */
};

void json_init(struct json *json, struct buf *out);
void json_init_spaced(struct json *json, struct buf *out);

/*
 * Whole values go to the file, one a line; the line that fails is left out. To be ended by json_done(), which
 * tells that of the first such line, or ERR_OK. Whether the file takes them is told by ferror().
 */
void json_init_file(struct json *json, FILE *file);
enum err json_done(struct json *json);

/*
 * All of these at once for a single object: it is opened; all that is open is closed, and a file's json done,
 * whose error is returned; else that of the buffer.
 */
void json_begin(struct json *json, struct buf *out);
void json_begin_spaced(struct json *json, struct buf *out);
void json_begin_file(struct json *json, FILE *file);
enum err json_end(struct json *json);

void json_open(struct json *json, const char *name); /* an object */
void json_open_list(struct json *json, const char *name);
void json_close(struct json *json);

/* The next value, or the bracket that closes, begins a line. */
void json_break(struct json *json);

/* A name that outsiders have chosen. The value follows, with the name NULL. */
void json_name(struct json *json, struct bytes name);

void json_count(struct json *json, const char *name, uint64_t value);
void json_signed(struct json *json, const char *name, int64_t value);
void json_bool(struct json *json, const char *name, bool value);
void json_none(struct json *json, const char *name); /* null */

/* A number with so many decimals, or so many digits in all. null if it is not finite. */
void json_decimal(struct json *json, const char *name, double value, int decimals);
void json_digits(struct json *json, const char *name, double value, int digits);

/* Strings. What is not UTF-8 becomes U+FFFD; a NULL text becomes null. */
void json_text(struct json *json, const char *name, const char *text);
void json_bytes(struct json *json, const char *name, struct bytes text);
void json_format(struct json *json, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void json_time(struct json *json, const char *name, int64_t time_us);      /* RFC 3339 */
void json_timestamp(struct json *json, const char *name, int64_t time_us); /* 14 digits */

/* The text as a string with its quotes, also for people: it keeps control characters off a terminal. */
enum err json_quote(struct buf *out, struct bytes text);

/* A value that a json has written before; and the members of such an object, which must have some. */
void json_raw(struct json *json, const char *name, struct bytes value);
void json_members(struct json *json, struct bytes object);

/* Several counts at once: JSON_COUNTS(&json, {"sent", sent_count}, {"lost", lost_count}). */
struct json_member {
    const char *name;
    uint64_t value;
};
void json_counts(struct json *json, const struct json_member *members, size_t count);
#define JSON_COUNTS(json, ...)                                     \
    json_counts((json), (const struct json_member[]){__VA_ARGS__}, \
                sizeof((const struct json_member[]){__VA_ARGS__}) / sizeof(struct json_member))

#endif
