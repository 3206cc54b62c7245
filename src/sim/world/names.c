#include "sim/world/names.h"

#include <stdlib.h>
#include <string.h>

void names_init(struct names *names) {
    *names = (struct names){0};
}

void names_done(struct names *names) {
    for (uint32_t i = 0; i < names->count; i++) {
        free(names->entries[i].name);
    }
    free(names->entries);
    names_init(names);
}

/* The index of the name, or where it would be put. */
static uint32_t find_index(const struct names *names, const char *name) {
    uint32_t low = 0;
    uint32_t high = names->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(names->entries[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct names *names, uint32_t index, const char *name) {
    return index < names->count && strcmp(names->entries[index].name, name) == 0;
}

const struct names_entry *names_find(const struct names *names, const char *name) {
    uint32_t index = find_index(names, name);
    return is_at(names, index, name) ? &names->entries[index] : NULL;
}

static enum err names_reserve(struct names *names) {
    if (names->count < names->capacity) {
        return ERR_OK;
    }
    uint32_t capacity = names->capacity == 0 ? 4 : 2 * names->capacity;
    struct names_entry *entries = realloc(names->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        return ERR_MEMORY;
    }
    names->entries = entries;
    names->capacity = capacity;
    return ERR_OK;
}

enum err names_bind(struct names *names, const char *name, uint32_t inode) {
    uint32_t index = find_index(names, name);
    if (is_at(names, index, name)) {
        names->entries[index].inode = inode;
        return ERR_OK;
    }
    if (names_reserve(names) != ERR_OK) {
        return ERR_MEMORY;
    }
    char *copy = strdup(name);
    if (copy == NULL) {
        return ERR_MEMORY;
    }
    struct names_entry *entry = &names->entries[index];
    memmove(entry + 1, entry, (names->count - index) * sizeof *entry);
    *entry = (struct names_entry){copy, inode};
    names->count++;
    return ERR_OK;
}

void names_unbind(struct names *names, const char *name) {
    uint32_t index = find_index(names, name);
    if (!is_at(names, index, name)) {
        return;
    }
    struct names_entry *entry = &names->entries[index];
    free(entry->name);
    names->count--;
    memmove(entry, entry + 1, (names->count - index) * sizeof *entry);
}
