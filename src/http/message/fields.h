/*
 * fields - the `Name: value` lines of a WARC header, of an HTTP head and of an `application/warc-fields`
 * block.
 *
 * Read leniently, as other archives do: lines end in CRLF or LF; a line that starts with a space or tab goes
 * on with the value of the line before; white space around names and values does not count; names are
 * compared without case. A line without a colon is counted and passed over. Order and repetitions are kept.
 *
 * The slices borrow the text that was parsed.
 */
#ifndef MNEMON_HTTP_MESSAGE_FIELDS_H
#define MNEMON_HTTP_MESSAGE_FIELDS_H

#include "base/bytes.h"
#include "base/err.h"

enum { FIELDS_COUNT_MAX = 512 };

struct field {
    struct bytes name;
    struct bytes value;
};

struct fields {
    struct field items[FIELDS_COUNT_MAX];
    size_t count;
    size_t odd_lines_count; /* without a colon */
};

/*
 * Parse all lines of the text; folded lines are joined in place, their line ends becoming spaces. ERR_LIMIT
 * if there are more than FIELDS_COUNT_MAX; the first so many are kept all the same.
 */
enum err fields_parse(struct fields *fields, uint8_t *text, size_t size);

/* The first field of that name, or the first one after `after` if that is not NULL. NULL: there is none. */
const struct field *fields_find(const struct fields *fields, struct bytes name, const struct field *after);

/* The value of the first field of that name; {NULL, 0} if there is none. */
struct bytes fields_get(const struct fields *fields, struct bytes name);

#endif
