#include "web/html/entities.h"

static uint8_t letter(const struct entity *entity, size_t index) {
    return (uint8_t)entities_text[entity->at + index];
}

/*
 * First entry of [from, to) whose name has, at the index, a letter not below the byte. Names that end there
 * come first, all others share what is before.
 */
static size_t lower_bound(size_t from, size_t to, size_t index, unsigned byte) {
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct entity *entity = &entities_table[middle];
        if (entity->name_size <= index || letter(entity, index) < byte) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

size_t entities_find(struct bytes text, struct bytes *ret_value) {
    size_t from = 0;
    size_t to = ENTITIES_COUNT; /* [from, to): the names that start with text[0, i) */
    size_t found_size = 0;
    for (size_t i = 0; i < text.size; i++) {
        from = lower_bound(from, to, i, text.data[i]);
        to = lower_bound(from, to, i, text.data[i] + 1u);
        if (from == to) {
            break;
        }
        const struct entity *entity = &entities_table[from];
        if (entity->name_size != i + 1) {
            continue;
        }
        bool has_semicolon = i + 1 < text.size && text.data[i + 1] == ';';
        if (has_semicolon || entity->is_bare) {
            found_size = i + 1 + (has_semicolon ? 1 : 0);
            *ret_value = bytes_of(entities_text + entity->at + entity->name_size, entity->value_size);
        }
    }
    return found_size;
}
