/* Of mirroring: what is missing of the version on its way, and what others may have of it already. */
#include <stdlib.h>

#include "base/wire.h"
#include "node/mirror/mirror_driver_state.h"

static void free_arrays(struct mirror_driver_wanted *wanted) {
    free(wanted->list.refs);
    free(wanted->list.places);
    free(wanted->states);
    wanted->list = (struct collection_wants){0};
    wanted->states = NULL;
}

static enum err make_arrays(struct mirror_driver_wanted *wanted) {
    if (wanted->states != NULL) {
        return ERR_OK;
    }
    wanted->list.max = MIRROR_DRIVER_WANTED_MAX;
    wanted->list.refs = malloc(MIRROR_DRIVER_WANTED_MAX * sizeof *wanted->list.refs);
    wanted->list.places = malloc(MIRROR_DRIVER_WANTED_MAX * sizeof *wanted->list.places);
    wanted->states = malloc(MIRROR_DRIVER_WANTED_MAX);
    if (wanted->list.refs == NULL || wanted->list.places == NULL || wanted->states == NULL) {
        free_arrays(wanted);
        return ERR_MEMORY;
    }
    return ERR_OK;
}

/* All chunks that were looked at and are not wanted are here. */
static void note_parts(struct mirror_driver_mirror *mirror, const struct version *target) {
    struct mirror_driver_wanted *wanted = &mirror->wanted;
    size_t count = wanted->list.is_content ? wanted->list.chunks_count : 0;
    count = count < MIRROR_DRIVER_PARTS_MAX ? count : MIRROR_DRIVER_PARTS_MAX;
    uint8_t *parts = malloc(count / 8 + 1);
    for (size_t i = 0; parts != NULL && i < count / 8 + 1; i++) {
        parts[i] = 0xff;
    }
    for (size_t i = 0; parts != NULL && i < wanted->list.count && count > 0; i++) {
        if (wanted->list.places[i] < count) {
            mirror_driver_set_bit(parts, wanted->list.places[i], false);
        }
    }
    pthread_mutex_lock(&mirror->mirror_driver->lock);
    free(wanted->parts);
    wanted->parts = parts;
    wanted->parts_count = parts != NULL ? count : 0;
    memcpy(wanted->root, target->root.digest, SHA256_SIZE);
    pthread_mutex_unlock(&mirror->mirror_driver->lock);
}

/* Of all nodes that begin at once, each begins somewhere else. */
static size_t place_of_self(const struct mirror_driver *mirror_driver, size_t count) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(mirror_driver->config.self.key, PEER_KEY_SIZE));
    return count > 0 ? (size_t)(wire_read_u64(&reader) % count) : 0;
}

enum err mirror_driver_list(struct mirror_driver_mirror *mirror, const struct version *target,
                            struct err_detail *detail) {
    struct mirror_driver_wanted *wanted = &mirror->wanted;
    const struct version *staged = collection_staged(mirror->collection);
    enum err err = make_arrays(wanted);
    if (err == ERR_OK && (staged == NULL || version_compare(staged, target) != 0)) {
        err = collection_begin(mirror->collection, target, detail);
    }
    err = err == ERR_OK ? collection_want(mirror->collection, &wanted->list) : err;
    if (err != ERR_OK) {
        mirror_driver_forget_list(mirror);
        return err;
    }
    wanted->serial = ++mirror->mirror_driver->serial;
    wanted->start = 0;
    wanted->first = wanted->list.is_content ? place_of_self(mirror->mirror_driver, wanted->list.count) : 0;
    wanted->left_size = 0;
    memset(wanted->states, MIRROR_DRIVER_WANTED, wanted->list.count);
    for (size_t i = 0; i < wanted->list.count; i++) {
        wanted->left_size += wanted->list.refs[i].size;
    }
    note_parts(mirror, target);
    mirror_driver_forget_holders(mirror);
    return ERR_OK;
}

size_t mirror_driver_item_at(const struct mirror_driver_wanted *wanted, size_t index) {
    return (wanted->first + index) % wanted->list.count;
}

void mirror_driver_set_state(struct mirror_driver_wanted *wanted, size_t item,
                             enum mirror_driver_item_state state) {
    uint64_t size = wanted->list.refs[item].size;
    wanted->left_size -= wanted->states[item] == MIRROR_DRIVER_WANTED ? size : 0;
    wanted->left_size += state == MIRROR_DRIVER_WANTED ? size : 0;
    wanted->states[item] = (uint8_t)state;
    if (state == MIRROR_DRIVER_WANTED) {
        size_t index = (item + wanted->list.count - wanted->first) % wanted->list.count;
        wanted->start = index < wanted->start ? index : wanted->start;
    }
}

void mirror_driver_skip_taken(struct mirror_driver_wanted *wanted) {
    while (wanted->start < wanted->list.count &&
           wanted->states[mirror_driver_item_at(wanted, wanted->start)] != MIRROR_DRIVER_WANTED) {
        wanted->start++;
    }
}

void mirror_driver_forget_list(struct mirror_driver_mirror *mirror) {
    struct mirror_driver_wanted *wanted = &mirror->wanted;
    wanted->list.count = wanted->list.chunks_count = 0;
    wanted->list.is_all = wanted->list.is_content = false;
    wanted->serial = wanted->left_size = 0;
    wanted->start = wanted->first = 0;
    mirror_driver_forget_holders(mirror);
}

void mirror_driver_free_list(struct mirror_driver_mirror *mirror) {
    mirror_driver_forget_list(mirror);
    free_arrays(&mirror->wanted);
    free(mirror->wanted.parts);
    mirror->wanted.parts = NULL;
}
