#include "http/message/fields.h"

static bool is_fold(uint8_t byte) {
    return byte == ' ' || byte == '\t';
}

/* Where the field that starts at `from` ends: before the first line end that no folded line follows. */
static size_t find_end(uint8_t *text, size_t from, size_t size) {
    for (size_t at = from;;) {
        size_t line_end = at + bytes_find_byte(bytes_of(text + at, size - at), '\n');
        if (line_end + 1 >= size || !is_fold(text[line_end + 1])) {
            return line_end;
        }
        text[line_end] = ' ';
        if (line_end > from && text[line_end - 1] == '\r') {
            text[line_end - 1] = ' ';
        }
        at = line_end + 1;
    }
}

enum err fields_parse(struct fields *fields, uint8_t *text, size_t size) {
    fields->count = 0;
    fields->odd_lines_count = 0;
    for (size_t from = 0; from < size;) {
        size_t to = find_end(text, from, size);
        struct bytes line = bytes_of(text + from, to - from);
        from = to + 1;
        size_t colon = bytes_find_byte(line, ':');
        if (colon == line.size) {
            fields->odd_lines_count += bytes_trim(line).size > 0;
            continue;
        }
        if (fields->count == FIELDS_COUNT_MAX) {
            return ERR_LIMIT;
        }
        fields->items[fields->count++] = (struct field){
            .name = bytes_trim(bytes_slice(line, 0, colon)),
            .value = bytes_trim(bytes_skip(line, colon + 1)),
        };
    }
    return ERR_OK;
}

const struct field *fields_find(const struct fields *fields, struct bytes name, const struct field *after) {
    size_t from = after == NULL ? 0 : (size_t)(after - fields->items) + 1;
    for (size_t i = from; i < fields->count; i++) {
        if (bytes_equal_ignore_case(fields->items[i].name, name)) {
            return &fields->items[i];
        }
    }
    return NULL;
}

struct bytes fields_get(const struct fields *fields, struct bytes name) {
    const struct field *field = fields_find(fields, name, NULL);
    return field == NULL ? bytes_of(NULL, 0) : field->value;
}
