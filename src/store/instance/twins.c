#include "store/instance/twins.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "base/whole_file.h"
#include "store/instance/instance_state.h"
#include "store/instance/record.h"
#include "store/volume/volume_record.h"

enum { TWINS_MAX = 1 << 16 /* documents that are merged in one round */ };

/* ---- all volumes at once ---- */

/* The walk over the documents of one volume. */
struct twins_lane {
    size_t index; /* of its slot */
    struct backend_cursor *cursor;
    bool has_block;
    struct key key;
    struct block block;
};

struct twins_walk {
    struct instance_session *session;
    uint64_t left_count; /* documents that may still be looked at */
    size_t lanes_count;
    struct twins_lane *lanes;
};

/* The next document that lies there. A volume in trouble has no more. */
static enum err lane_advance(struct twins_walk *walk, struct twins_lane *lane, struct err_detail *detail) {
    const struct backend_table *table = lane->cursor->session->backend->table;
    enum err err;
    do {
        err = table->blocks_next(lane->cursor, &lane->key, &lane->block, detail);
        walk->left_count -= err == ERR_OK && walk->left_count > 0 ? 1 : 0;
    } while (err == ERR_OK && lane->block.location.segment == 0); /* only revisits are there */
    lane->has_block = err == ERR_OK;
    return err == ERR_NOT_FOUND || instance_is_trouble(err) ? ERR_OK : err;
}

static void walk_close(struct twins_walk *walk) {
    for (size_t i = 0; i < walk->lanes_count; i++) {
        struct backend_cursor *cursor = walk->lanes[i].cursor;
        cursor->session->backend->table->cursor_close(cursor);
    }
    free(walk->lanes);
}

static enum err walk_open(struct twins_walk *walk, struct instance_session *session, uint64_t documents_max,
                          struct err_detail *detail) {
    size_t count = session->instance->slots_count;
    *walk = (struct twins_walk){
        .session = session, .left_count = documents_max, .lanes = calloc(count, sizeof *walk->lanes)};
    enum err err = walk->lanes == NULL ? ERR_MEMORY : ERR_OK;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        struct twins_lane *lane = &walk->lanes[walk->lanes_count];
        struct backend_session *backend;
        lane->index = i;
        err = instance_reach(session, i, &backend, detail);
        if (err == ERR_OK) {
            err = backend->backend->table->blocks_open(backend, bytes_of(NULL, 0), &lane->cursor, detail);
        }
        if (err == ERR_OK) {
            walk->lanes_count++;
            err = lane_advance(walk, lane, detail);
        }
        err = instance_is_trouble(err) ? ERR_OK : err;
    }
    if (err != ERR_OK) {
        walk_close(walk);
    }
    return err;
}

static int compare_keys(const struct key *a, const struct key *b) {
    int order = memcmp(a->digest, b->digest, sizeof a->digest);
    return order != 0 ? order : (int)a->number - (int)b->number;
}

/* The document that comes next; NULL at the end. */
static const struct twins_lane *walk_first(const struct twins_walk *walk) {
    const struct twins_lane *first = NULL;
    for (size_t i = 0; i < walk->lanes_count; i++) {
        const struct twins_lane *lane = &walk->lanes[i];
        if (lane->has_block && (first == NULL || compare_keys(&lane->key, &first->key) < 0)) {
            first = lane;
        }
    }
    return first;
}

/* All that lie there under the same key and are as long; the others of that key go by. */
struct twins_found {
    const struct twins_walk *walk;
    struct key key;
    uint64_t size;
    size_t count;
};

typedef enum err twins_visit(void *context, const struct twins_found *found);

static bool is_of(const struct twins_lane *lane, const struct twins_found *found) {
    return lane->has_block && compare_keys(&lane->key, &found->key) == 0 && lane->block.size == found->size;
}

static enum err walk_run(struct twins_walk *walk, twins_visit *visit, void *context,
                         struct err_detail *detail) {
    const struct twins_lane *first;
    enum err err = ERR_OK;
    while (err == ERR_OK && walk->left_count > 0 && (first = walk_first(walk)) != NULL) {
        struct twins_found found = {.walk = walk, .key = first->key, .size = first->block.size};
        for (size_t i = 0; i < walk->lanes_count; i++) {
            found.count += is_of(&walk->lanes[i], &found) ? 1 : 0;
        }
        err = found.count > 1 ? visit(context, &found) : ERR_OK;
        for (size_t i = 0; i < walk->lanes_count && err == ERR_OK; i++) {
            struct twins_lane *lane = &walk->lanes[i];
            if (lane->has_block && compare_keys(&lane->key, &found.key) == 0) {
                err = lane_advance(walk, lane, detail);
            }
        }
    }
    return err;
}

/* ---- counting ---- */

static enum err count_one(void *context, const struct twins_found *found) {
    struct twins_stat *stat = context;
    stat->documents_count++;
    stat->size += (found->count - 1) * found->size;
    return ERR_OK;
}

enum err twins_count(struct instance_session *session, uint64_t documents_max, struct twins_stat *ret_stat,
                     struct err_detail *detail) {
    *ret_stat = (struct twins_stat){0};
    if (session->instance->slots_count < 2) {
        return ERR_OK;
    }
    struct twins_walk walk;
    enum err err = walk_open(&walk, session, documents_max, detail);
    if (err == ERR_OK) {
        err = walk_run(&walk, count_one, ret_stat, detail);
        ret_stat->is_cut = walk_first(&walk) != NULL;
        walk_close(&walk);
    }
    return err;
}

/* ---- merging ---- */

/* What is done with one document. */
struct twin {
    uint16_t stays; /* the number of the volume whose copy stays */
    uint16_t number;
    uint64_t size;
};

struct twins {
    struct instance *instance;
    bool (*goes_on)(void *context);
    void *context;
    struct instance_session *walk;  /* of walks */
    struct instance_session *here;  /* the copy that stays; a capture's request */
    struct instance_session *there; /* the copy that goes; a capture's record */
    struct map twins;               /* digest -> struct twin */
    struct record record;
    uint64_t moved_count;
};

static bool is_local(const struct instance *instance, size_t index) {
    return instance->slots[index].backend != NULL && instance->slots[index].config->url == NULL;
}

/* The copy on the volume that the digest falls to, else the one with the lowest number. */
static size_t choose(const struct twins_found *found) {
    struct document_sum sum = {.size = found->size};
    memcpy(sum.digest, found->key.digest, sizeof sum.digest);
    const struct instance *instance = found->walk->session->instance;
    size_t home = instance->writable_count > 0 ? instance_place_by_digest(instance, &sum) : SIZE_MAX;
    size_t chosen = SIZE_MAX;
    for (size_t i = 0; i < found->walk->lanes_count; i++) {
        const struct twins_lane *lane = &found->walk->lanes[i];
        if (is_of(lane, found) && (chosen == SIZE_MAX || lane->index == home)) {
            chosen = lane->index;
        }
    }
    return chosen;
}

static bool is_equal_on(struct twins *twins, const struct key *key, uint16_t a, uint16_t b) {
    struct key first = *key;
    struct key second = *key;
    struct bytes documents[2];
    first.volume = a;
    second.volume = b;
    return instance_get(twins->here, &first, &documents[0], NULL) == ERR_OK &&
           instance_get(twins->there, &second, &documents[1], NULL) == ERR_OK &&
           bytes_equal(documents[0], documents[1]);
}

static bool twins_go_on(const struct twins *twins) {
    return twins->goes_on == NULL || twins->goes_on(twins->context);
}

/* ERR_LIMIT: there are many; go on with the next round. */
static enum err plan_one(void *context, const struct twins_found *found) {
    struct twins *twins = context;
    if (!twins_go_on(twins)) {
        return ERR_CANCELLED;
    }
    const struct instance *instance = twins->instance;
    size_t stays = choose(found);
    uint16_t number = instance->slots[stays].config->number;
    bool is_worth = false;
    for (size_t i = 0; i < found->walk->lanes_count; i++) {
        const struct twins_lane *lane = &found->walk->lanes[i];
        if (!is_of(lane, found) || lane->index == stays || !is_local(instance, lane->index)) {
            continue;
        }
        if (!is_equal_on(twins, &found->key, number, instance->slots[lane->index].config->number)) {
            return ERR_OK;
        }
        is_worth = true;
    }
    if (!is_worth) {
        return ERR_OK;
    }
    if (twins->twins.count == TWINS_MAX) {
        return ERR_LIMIT;
    }
    enum err err = map_reserve(&twins->twins, twins->twins.count + 1);
    if (err == ERR_OK) {
        *(struct twin *)map_put(&twins->twins, bytes_of(found->key.digest, KEY_DIGEST_SIZE)) =
            (struct twin){.stays = number, .number = found->key.number, .size = found->size};
    }
    return err;
}

/* Is the capture there already, from a run that was cut off? */
static enum err find_moved(struct backend_session *target, const struct capture *capture,
                           bool *ret_is_moved) {
    const struct backend_table *table = target->backend->table;
    struct buf from;
    struct buf to;
    struct backend_cursor *cursor;
    struct capture other;
    buf_init(&from, INDEX_SURT_SIZE_MAX + 64);
    buf_init(&to, INDEX_SURT_SIZE_MAX + 64);
    index_put_capture_prefix(&from, capture->surt, capture->time_us);
    index_put_capture_prefix(&to, capture->surt, capture->time_us + 1);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK) {
        err = table->captures_open(target, buf_bytes(&from), buf_bytes(&to), false, &cursor, NULL);
    }
    *ret_is_moved = false;
    if (err == ERR_OK) {
        while (!*ret_is_moved && (err = table->captures_next(cursor, &other, NULL)) == ERR_OK) {
            *ret_is_moved = memcmp(other.digest, capture->digest, sizeof other.digest) == 0 &&
                            bytes_equal(other.url, capture->url);
        }
        table->cursor_close(cursor);
    }
    buf_done(&from);
    buf_done(&to);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* As it was, but for its body, which is there. */
static enum err put_again(struct twins *twins, struct backend_session *target, const struct capture *capture,
                          uint64_t size, struct err_detail *detail) {
    const struct warc_record *header = &twins->record.header;
    struct document_sum sum = {.size = size};
    struct stored stored;
    struct bytes request;
    memcpy(sum.digest, capture->digest, sizeof sum.digest);
    enum err err = record_read(&twins->record, twins->there, capture->volume, &capture->location, detail);
    if (err == ERR_OK) {
        err = instance_get_request(twins->here, capture->volume, &capture->location, &request, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    bool is_http = twins->record.head.size > 0;
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    struct document document = {
        .url = capture->url,
        .time_us = capture->time_us,
        .head = twins->record.head,
        .content_type = is_http      ? bytes_of(NULL, 0)
                        : is_revisit ? capture->mime
                                     : header->content_type,
        .request = request,
        .ip_address = fields_get(&header->fields, BYTES("WARC-IP-Address")),
        .tls = fields_get(&header->fields, BYTES(VOLUME_TLS_FIELD)),
        .signature = fields_get(&header->fields, BYTES(VOLUME_SIGNATURE_FIELD)),
        .imported = fields_get(&header->fields, BYTES(VOLUME_IMPORTED_FIELD)),
        .visit = fields_get(&header->fields, BYTES(VOLUME_VISIT_FIELD)),
        .truncated = fields_get(&header->fields, BYTES("WARC-Truncated")),
        .sum = &sum,
        .is_not_modified = record_is_not_modified(header),
        .is_body_left_out = true,
    };
    return target->backend->table->put(target, &document, STORE_REGULAR, &stored, detail);
}

/* A capture that cannot be moved stays; only a volume in trouble ends it all. */
static enum err move_capture(struct twins *twins, const struct capture *capture, struct err_detail *detail) {
    const struct twin *twin = map_get(&twins->twins, bytes_of(capture->digest, KEY_DIGEST_SIZE));
    struct backend_session *target;
    size_t index;
    bool is_moved;
    if (twin == NULL || twin->stays == capture->volume || twin->number != capture->block_number) {
        return ERR_OK;
    }
    enum err err = instance_reach_volume(twins->walk, twin->stays, &index, &target, detail);
    err = err == ERR_OK ? find_moved(target, capture, &is_moved) : err;
    if (err == ERR_OK && !is_moved) {
        err = put_again(twins, target, capture, twin->size, detail);
    }
    if (err == ERR_OK) {
        err = instance_remove_capture(twins->walk, capture, detail);
        twins->moved_count += err == ERR_OK ? 1 : 0;
    }
    return instance_is_trouble(err) || err == ERR_MEMORY ? err : ERR_OK;
}

static enum err move_captures(struct twins *twins, size_t index, struct err_detail *detail) {
    struct backend_session *backend;
    struct backend_cursor *cursor;
    struct capture capture;
    struct bytes all = bytes_of(NULL, 0);
    enum err err = instance_reach(twins->walk, index, &backend, detail);
    if (err == ERR_OK) {
        err = backend->backend->table->captures_open(backend, all, all, false, &cursor, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK &&
           (err = backend->backend->table->captures_next(cursor, &capture, detail)) == ERR_OK) {
        capture.volume = twins->instance->slots[index].config->number;
        err = twins_go_on(twins) ? move_capture(twins, &capture, detail) : ERR_CANCELLED;
    }
    backend->backend->table->cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* As many as fit into memory. *ret_is_cut: there are more. */
static enum err merge_round(struct twins *twins, bool *ret_is_cut, struct err_detail *detail) {
    struct twins_walk walk;
    map_clear(&twins->twins);
    enum err err = walk_open(&walk, twins->walk, UINT64_MAX, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = walk_run(&walk, plan_one, twins, detail);
    walk_close(&walk);
    *ret_is_cut = err == ERR_LIMIT;
    err = err == ERR_LIMIT ? ERR_OK : err;
    for (size_t i = 0; i < twins->instance->slots_count && err == ERR_OK && twins->twins.count > 0; i++) {
        err = is_local(twins->instance, i) ? move_captures(twins, i, detail) : ERR_OK;
    }
    return err;
}

/* ---- when it is worth it ---- */

static const char MARK_TEXT[] =
    "A volume was down while documents were stored, so that some may be stored twice.\n"
    "mnemon serve merges them when all volumes are up, and so does mnemon store "
    "compact; this file goes then.\n";

static void twins_mark_path(const struct instance *instance, char out[INSTANCE_PLACE_SIZE_MAX]) {
    snprintf(out, INSTANCE_PLACE_SIZE_MAX, "%s/unmerged", instance->directory);
}

void twins_mark(struct instance *instance) {
    char path[INSTANCE_PLACE_SIZE_MAX];
    bool is_marked = false;
    if (instance->directory == NULL ||
        !atomic_compare_exchange_strong(&instance->is_marked, &is_marked, true)) {
        return;
    }
    twins_mark_path(instance, path);
    if (whole_file_replace(path, bytes_of_string(MARK_TEXT), 0600, NULL) != ERR_OK) {
        atomic_store(&instance->is_marked, false); /* the next one tries again */
    }
}

static bool twins_all_up(struct instance *instance) {
    bool are_up = true;
    for (size_t i = 0; i < instance->slots_count && are_up; i++) {
        are_up = instance->slots[i].backend != NULL && instance->slots[i].err == ERR_OK;
    }
    return are_up;
}

bool twins_are_due(struct instance *instance) {
    char path[INSTANCE_PLACE_SIZE_MAX];
    if (instance->directory == NULL || instance->slots_count < 2) {
        return false;
    }
    twins_mark_path(instance, path);
    return access(path, F_OK) == 0 && twins_all_up(instance);
}

/* After a merge, unless a volume was down, or something was stored meanwhile while one was. */
static void twins_unmark(struct instance *instance) {
    char path[INSTANCE_PLACE_SIZE_MAX];
    if (instance->directory != NULL && twins_all_up(instance) && !atomic_load(&instance->is_marked)) {
        twins_mark_path(instance, path);
        enum err err = whole_file_remove(path, NULL);
        (void)err; /* it is merged once more, in vain */
    }
}

enum err twins_merge(struct instance *instance, bool (*goes_on)(void *context), void *context,
                     uint64_t *ret_moved_count, struct err_detail *detail) {
    *ret_moved_count = 0;
    if (instance->slots_count < 2) {
        return ERR_OK;
    }
    atomic_store(&instance->is_marked, false);
    struct twins twins = {
        .instance = instance,
        .goes_on = goes_on,
        .context = context,
        .walk = instance_session_new(instance),
        .here = instance_session_new(instance),
        .there = instance_session_new(instance),
    };
    map_init(&twins.twins, KEY_DIGEST_SIZE, sizeof(struct twin), TWINS_MAX, 1);
    enum err err = record_init(&twins.record);
    if (err == ERR_OK && (twins.walk == NULL || twins.here == NULL || twins.there == NULL)) {
        err = ERR_MEMORY;
    }
    bool is_cut = true;
    while (err == ERR_OK && is_cut) {
        uint64_t before = twins.moved_count;
        err = merge_round(&twins, &is_cut, detail);
        is_cut = is_cut && twins.moved_count > before; /* what cannot be moved would be found for ever */
    }
    *ret_moved_count = twins.moved_count;
    if (err == ERR_OK) {
        twins_unmark(instance);
    }
    record_done(&twins.record);
    map_done(&twins.twins);
    instance_session_free(twins.walk);
    instance_session_free(twins.here);
    instance_session_free(twins.there);
    return err;
}
