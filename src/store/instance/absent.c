#include "store/instance/absent.h"

#include <stdio.h>

enum { VOLUME_NAME_SIZE_MAX = 32 };

static const struct bytes between = {(const uint8_t *)", ", 2};

/* The next name is cut off. */
static bool absent_next(struct bytes *names, struct bytes *ret_name) {
    if (names->size == 0) {
        return false;
    }
    size_t end = bytes_find(*names, between);
    *ret_name = bytes_slice(*names, 0, end);
    *names = bytes_skip(*names, end < names->size ? end + between.size : end);
    return true;
}

static bool absent_has(const struct absent *absent, struct bytes wanted) {
    struct bytes names = bytes_of(absent->text, absent->size);
    struct bytes name;
    while (absent_next(&names, &name)) {
        if (bytes_equal(name, wanted)) {
            return true;
        }
    }
    return false;
}

static void absent_append(struct absent *absent, struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        absent->text[absent->size++] = (char)(byte < ' ' || byte == 0x7f ? ' ' : byte);
    }
    absent->text[absent->size] = '\0';
}

void absent_add(struct absent *absent, struct bytes names) {
    struct bytes name;
    while (absent_next(&names, &name)) {
        if (name.size == 0 || absent_has(absent, name)) {
            continue;
        }
        absent->is_any = true;
        if (absent->size + between.size + name.size < ABSENT_TEXT_SIZE_MAX) {
            absent_append(absent, absent->size > 0 ? between : bytes_of(NULL, 0));
            absent_append(absent, name);
        }
    }
}

void absent_add_string(struct absent *absent, const char *names) {
    absent_add(absent, bytes_of_string(names));
}

void absent_add_volume(struct absent *absent, uint16_t number) {
    char name[VOLUME_NAME_SIZE_MAX];
    snprintf(name, sizeof name, "volume %u", number);
    absent_add_string(absent, name);
}

void absent_put_json(const struct absent *absent, struct json *json) {
    struct bytes names = bytes_of(absent->text, absent->size);
    struct bytes name;
    if (!absent->is_any) {
        return;
    }
    json_bool(json, "partial", true);
    json_open_list(json, "unanswered");
    while (absent_next(&names, &name)) {
        json_bytes(json, NULL, name);
    }
    json_close(json);
}
