/* Of mirroring: what is missing of the version on its way, and what others may have of it already. */
#include <stdlib.h>

#include "base/wire.h"
#include "node/mirror/mirroring_state.h"

static void free_arrays(struct mirroring_wanted *wanted) {
    free(wanted->list.refs);
    free(wanted->list.places);
    free(wanted->states);
    wanted->list = (struct collection_wants){0};
    wanted->states = NULL;
}

static enum err make_arrays(struct mirroring_wanted *wanted) {
    if (wanted->states != NULL) {
        return ERR_OK;
    }
    wanted->list.max = MIRRORING_WANTED_MAX;
    wanted->list.refs = malloc(MIRRORING_WANTED_MAX * sizeof *wanted->list.refs);
    wanted->list.places = malloc(MIRRORING_WANTED_MAX * sizeof *wanted->list.places);
    wanted->states = malloc(MIRRORING_WANTED_MAX);
    if (wanted->list.refs == NULL || wanted->list.places == NULL || wanted->states == NULL) {
        free_arrays(wanted);
        return ERR_MEMORY;
    }
    return ERR_OK;
}

/* All chunks that were looked at and are not wanted are here. */
static void note_parts(struct mirroring_mirror *mirror, const struct version *target) {
    struct mirroring_wanted *wanted = &mirror->wanted;
    size_t count = wanted->list.is_content ? wanted->list.chunks_count : 0;
    count = count < MIRRORING_PARTS_MAX ? count : MIRRORING_PARTS_MAX;
    uint8_t *parts = malloc(count / 8 + 1);
    for (size_t i = 0; parts != NULL && i < count / 8 + 1; i++) {
        parts[i] = 0xff;
    }
    for (size_t i = 0; parts != NULL && i < wanted->list.count && count > 0; i++) {
        if (wanted->list.places[i] < count) {
            mirroring_set_bit(parts, wanted->list.places[i], false);
        }
    }
    pthread_mutex_lock(&mirror->mirroring->lock);
    free(wanted->parts);
    wanted->parts = parts;
    wanted->parts_count = parts != NULL ? count : 0;
    memcpy(wanted->root, target->root.digest, SHA256_SIZE);
    pthread_mutex_unlock(&mirror->mirroring->lock);
}

/* Of all nodes that begin at once, each begins somewhere else. */
static size_t place_of_self(const struct mirroring *mirroring, size_t count) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(mirroring->config.self.key, PEER_KEY_SIZE));
    return count > 0 ? (size_t)(wire_read_u64(&reader) % count) : 0;
}

enum err mirroring_list(struct mirroring_mirror *mirror, const struct version *target,
                        struct err_detail *detail) {
    struct mirroring_wanted *wanted = &mirror->wanted;
    const struct version *staged = collection_staged(mirror->collection);
    enum err err = make_arrays(wanted);
    if (err == ERR_OK && (staged == NULL || version_compare(staged, target) != 0)) {
        err = collection_begin(mirror->collection, target, detail);
    }
    err = err == ERR_OK ? collection_want(mirror->collection, &wanted->list) : err;
    if (err != ERR_OK) {
        mirroring_forget_list(mirror);
        return err;
    }
    wanted->serial = ++mirror->mirroring->serial;
    wanted->start = 0;
    wanted->first = wanted->list.is_content ? place_of_self(mirror->mirroring, wanted->list.count) : 0;
    wanted->left_size = 0;
    memset(wanted->states, MIRRORING_WANTED, wanted->list.count);
    for (size_t i = 0; i < wanted->list.count; i++) {
        wanted->left_size += wanted->list.refs[i].size;
    }
    note_parts(mirror, target);
    mirroring_forget_holders(mirror);
    return ERR_OK;
}

size_t mirroring_item_at(const struct mirroring_wanted *wanted, size_t index) {
    return (wanted->first + index) % wanted->list.count;
}

void mirroring_set_state(struct mirroring_wanted *wanted, size_t item, enum mirroring_item_state state) {
    uint64_t size = wanted->list.refs[item].size;
    wanted->left_size -= wanted->states[item] == MIRRORING_WANTED ? size : 0;
    wanted->left_size += state == MIRRORING_WANTED ? size : 0;
    wanted->states[item] = (uint8_t)state;
    if (state == MIRRORING_WANTED) {
        size_t index = (item + wanted->list.count - wanted->first) % wanted->list.count;
        wanted->start = index < wanted->start ? index : wanted->start;
    }
}

void mirroring_skip_taken(struct mirroring_wanted *wanted) {
    while (wanted->start < wanted->list.count &&
           wanted->states[mirroring_item_at(wanted, wanted->start)] != MIRRORING_WANTED) {
        wanted->start++;
    }
}

void mirroring_forget_list(struct mirroring_mirror *mirror) {
    struct mirroring_wanted *wanted = &mirror->wanted;
    wanted->list.count = wanted->list.chunks_count = 0;
    wanted->list.is_all = wanted->list.is_content = false;
    wanted->serial = wanted->left_size = 0;
    wanted->start = wanted->first = 0;
    mirroring_forget_holders(mirror);
}

void mirroring_free_list(struct mirroring_mirror *mirror) {
    mirroring_forget_list(mirror);
    free_arrays(&mirror->wanted);
    free(mirror->wanted.parts);
    mirror->wanted.parts = NULL;
}
