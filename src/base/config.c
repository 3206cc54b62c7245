#include "base/config.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/nearest.h"
#include "base/utf8.h"
#include "base/value.h"

enum { CONFIG_NAME_SIZE_MAX = 64, CONFIG_KEYS_COUNT_MAX = 256 };

struct config_reader {
    const struct config_key *keys;
    struct arena *arena;
    uint8_t *out;
    struct err_detail *detail;
    struct bytes line; /* the line being read, without its end */
    uint32_t line_number;
    char section[CONFIG_NAME_SIZE_MAX]; /* "" or "crawl." */
    uint32_t set_at_line[CONFIG_KEYS_COUNT_MAX];
};

static enum err fail_as(struct config_reader *reader, enum err err, size_t column_index, const char *text) {
    err_set(reader->detail, err, "line %u, column %zu: %s", reader->line_number, column_index + 1, text);
    if (reader->detail != NULL) {
        reader->detail->line = reader->line_number;
        reader->detail->column = (uint32_t)(column_index + 1);
    }
    return err;
}

static enum err config_fail(struct config_reader *reader, size_t column_index, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum err config_fail(struct config_reader *reader, size_t column_index, const char *format, ...) {
    char text[ERR_TEXT_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail_as(reader, ERR_INVALID, column_index, text);
}

static size_t skip_blanks(struct bytes line, size_t at) {
    while (at < line.size && (line.data[at] == ' ' || line.data[at] == '\t')) {
        at++;
    }
    return at;
}

static bool is_name_byte(uint8_t byte) {
    return byte_is_alnum(byte) || byte == '_' || byte == '-';
}

static size_t skip_name(struct bytes line, size_t at) {
    while (at < line.size && is_name_byte(line.data[at])) {
        at++;
    }
    return at;
}

static bool is_end(struct bytes line, size_t at) {
    return at == line.size || line.data[at] == '#';
}

static bool section_exists(const struct config_key *keys, struct bytes section) {
    for (; keys->name != NULL; keys++) {
        if (bytes_starts_with(bytes_of_string(keys->name), section)) {
            return true;
        }
    }
    return false;
}

static enum err read_section(struct config_reader *reader, size_t at) {
    size_t from = skip_blanks(reader->line, at + 1);
    size_t to = skip_name(reader->line, from);
    size_t close = skip_blanks(reader->line, to);
    struct bytes name = bytes_slice(reader->line, from, to);
    if (name.size == 0) {
        return config_fail(reader, from, "a section needs a name: [name]");
    }
    if (close == reader->line.size || reader->line.data[close] != ']') {
        return config_fail(reader, close, "expected ] after [%.*s", BYTES_ARG(name));
    }
    size_t rest = skip_blanks(reader->line, close + 1);
    if (!is_end(reader->line, rest)) {
        return config_fail(reader, rest, "nothing may follow [%.*s]", BYTES_ARG(name));
    }
    int size = snprintf(reader->section, sizeof reader->section, "%.*s.", BYTES_ARG(name));
    bool fits = (size_t)size < sizeof reader->section;
    if (!fits || !section_exists(reader->keys, bytes_of(reader->section, (size_t)size))) {
        return config_fail(reader, from, "there is no section [%.*s]", BYTES_ARG(name));
    }
    return ERR_OK;
}

/* The text of a quoted value, unescaped, in the arena. *at is on the opening quote, then behind the closing.
 */
static enum err read_quoted(struct config_reader *reader, size_t *at, struct bytes *ret_text) {
    struct bytes line = reader->line;
    size_t open = *at;
    uint8_t *text = arena_take(reader->arena, line.size - open);
    if (text == NULL) {
        return fail_as(reader, ERR_MEMORY, open, err_text(ERR_MEMORY));
    }
    size_t size = 0;
    for (size_t i = open + 1; i < line.size; i++) {
        if (line.data[i] == '"') {
            *at = i + 1;
            *ret_text = bytes_of(text, size);
            return ERR_OK;
        }
        if (line.data[i] != '\\') {
            text[size++] = line.data[i];
            continue;
        }
        uint8_t escaped = ++i < line.size ? line.data[i] : 0;
        switch (escaped) {
        case '"':
        case '\\':
            text[size++] = escaped;
            break;
        case 'n':
            text[size++] = '\n';
            break;
        case 't':
            text[size++] = '\t';
            break;
        default:
            return config_fail(reader, i - 1, "unknown escape; known are \\\" \\\\ \\n \\t");
        }
    }
    return config_fail(reader, open, "this quote is not closed on its line");
}

/* The value from *at to the end of the line or a comment. */
static enum err read_raw_value(struct config_reader *reader, size_t at, struct bytes *ret_text) {
    if (at < reader->line.size && reader->line.data[at] == '"') {
        enum err err = read_quoted(reader, &at, ret_text);
        if (err != ERR_OK) {
            return err;
        }
        at = skip_blanks(reader->line, at);
        return is_end(reader->line, at) ? ERR_OK
                                        : config_fail(reader, at, "nothing may follow the closing quote");
    }
    size_t end = at + bytes_find_byte(bytes_skip(reader->line, at), '#');
    *ret_text = bytes_trim(bytes_slice(reader->line, at, end));
    return ret_text->size > 0 ? ERR_OK
                              : config_fail(reader, at, "a value is missing; an empty text is written \"\"");
}

static enum err config_list_add(struct arena *arena, struct config_list *list, struct bytes item) {
    if (list->count == CONFIG_LIST_COUNT_MAX) {
        return ERR_LIMIT;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        struct bytes *items = arena_take_array(arena, capacity, sizeof *items);
        if (items == NULL) {
            return ERR_MEMORY;
        }
        if (list->count > 0) {
            memcpy(items, list->items, list->count * sizeof *items);
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return ERR_OK;
}

static enum err config_read_text(struct arena *arena, struct bytes text, struct bytes *ret_copy) {
    struct bytes copy = arena_copy(arena, text);
    if (copy.data == NULL) {
        return ERR_MEMORY;
    }
    *ret_copy = copy;
    return ERR_OK;
}

/* Put one value, given as text, into the caller's field. */
static enum err set_field(const struct config_key *key, struct bytes text, struct arena *arena, uint8_t *out,
                          struct err_detail *detail) {
    void *field = out + key->offset;
    struct bytes copy;
    enum err err;
    switch (key->type) {
    case CONFIG_SWITCH:
        return value_read_switch(text, field, detail);
    case CONFIG_NUMBER:
        return value_read_number(text, key->min, key->max, field, detail);
    case CONFIG_SIZE:
        return value_read_size(text, key->min, key->max, field, detail);
    case CONFIG_DURATION:
        return value_read_duration(text, key->min, key->max, field, detail);
    case CONFIG_CHOICE:
        return value_read_choice(text, key->choices, field, detail);
    case CONFIG_TEXT:
        return config_read_text(arena, text, field);
    case CONFIG_LIST:
        err = config_read_text(arena, text, &copy);
        return err != ERR_OK ? err : config_list_add(arena, field, copy);
    }
    assert_failed("every config_type has a reader", __FILE__, __LINE__);
}

static enum err fail_unknown(struct config_reader *reader, size_t at, struct bytes name) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    size_t section_size = strlen(reader->section);
    for (const struct config_key *key = reader->keys; key->name != NULL; key++) {
        bool in_section = strncmp(key->name, reader->section, section_size) == 0;
        if (in_section && strchr(key->name + section_size, '.') == NULL) {
            nearest_offer(&nearest, key->name + section_size);
        }
    }
    char hint[NEAREST_HINT_SIZE];
    return config_fail(reader, at, "unknown key \"%.*s\"%s", BYTES_ARG(name),
                       nearest_hint(&nearest, "", hint));
}

static enum err read_assignment(struct config_reader *reader, size_t at) {
    size_t name_end = skip_name(reader->line, at);
    struct bytes name = bytes_slice(reader->line, at, name_end);
    if (name.size == 0) {
        return config_fail(reader, at, "expected \"name = value\" or \"[section]\"");
    }
    size_t equals = skip_blanks(reader->line, name_end);
    if (equals == reader->line.size || reader->line.data[equals] != '=') {
        return config_fail(reader, equals, "expected = after %.*s", BYTES_ARG(name));
    }
    char full[2 * CONFIG_NAME_SIZE_MAX];
    snprintf(full, sizeof full, "%s%.*s", reader->section, BYTES_ARG(name));
    size_t index = 0;
    while (reader->keys[index].name != NULL && strcmp(reader->keys[index].name, full) != 0) {
        index++;
    }
    const struct config_key *key = &reader->keys[index];
    if (key->name == NULL) {
        return fail_unknown(reader, at, name);
    }
    if (reader->set_at_line[index] != 0 && key->type != CONFIG_LIST) {
        return config_fail(reader, at, "%.*s is set already in line %u", BYTES_ARG(name),
                           reader->set_at_line[index]);
    }
    reader->set_at_line[index] = reader->line_number;

    size_t value_at = skip_blanks(reader->line, equals + 1);
    struct bytes text = {0};
    enum err err = read_raw_value(reader, value_at, &text);
    if (err != ERR_OK) {
        return err;
    }
    struct err_detail inner = {0};
    err = set_field(key, text, reader->arena, reader->out, &inner);
    return err == ERR_OK ? ERR_OK : fail_as(reader, err, value_at, err_detail_text(&inner, err));
}

static enum err config_read_line(struct config_reader *reader) {
    for (size_t i = 0; i < reader->line.size; i++) {
        if (reader->line.data[i] < 0x20 && reader->line.data[i] != '\t') {
            return config_fail(reader, i, "control character 0x%02x", reader->line.data[i]);
        }
        if (reader->line.data[i] >= 0x80) {
            size_t length = utf8_length(bytes_skip(reader->line, i));
            if (length == 0) {
                return config_fail(reader, i, "not UTF-8");
            }
            i += length - 1;
        }
    }
    size_t at = skip_blanks(reader->line, 0);
    if (is_end(reader->line, at)) {
        return ERR_OK;
    }
    return reader->line.data[at] == '[' ? read_section(reader, at) : read_assignment(reader, at);
}

static enum err config_set_defaults(const struct config_key *keys, struct arena *arena, uint8_t *out) {
    for (; keys->name != NULL; keys++) {
        if (keys->fallback == NULL) {
            ASSERT(keys->type == CONFIG_TEXT || keys->type == CONFIG_LIST);
            memset(out + keys->offset, 0,
                   keys->type == CONFIG_TEXT ? sizeof(struct bytes) : sizeof(struct config_list));
            continue;
        }
        ASSERT(keys->type != CONFIG_LIST);
        enum err err = set_field(keys, bytes_of_string(keys->fallback), arena, out, NULL);
        ASSERT(err == ERR_OK || err == ERR_MEMORY); /* the table's own default must be valid */
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

enum err config_read(const struct config_key *keys, struct bytes text, struct arena *arena, void *out,
                     struct err_detail *detail) {
    size_t keys_count = 0;
    while (keys[keys_count].name != NULL) {
        keys_count++;
    }
    ASSERT(keys_count <= CONFIG_KEYS_COUNT_MAX);
    struct config_reader reader = {.keys = keys, .arena = arena, .out = out, .detail = detail};
    enum err err = config_set_defaults(keys, arena, out);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    if (bytes_starts_with(text, BYTES("\xef\xbb\xbf"))) {
        text = bytes_skip(text, 3); /* some editors put a byte order mark in front */
    }
    while (bytes_split(&text, '\n', &reader.line)) {
        reader.line_number++;
        if (bytes_ends_with(reader.line, BYTES("\r"))) {
            reader.line.size--;
        }
        err = config_read_line(&reader);
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}
