/* What is missing of the version on its way, and what others may have of it already. */
#include <stdlib.h>

#include "base/wire.h"
#include "node/mirror/mirror_driver_state.h"

/* ---- what others have of the version: a node that has a part sends a bit for each chunk ---- */

static const uint64_t OFFER_SIZE_MAX = 64 << 20; /* more than a batch: how much more does not matter */

static void free_holder(struct mirror_driver_holder *holder) {
    free(holder->has);
    free(holder->withheld);
    *holder = (struct mirror_driver_holder){0};
}

static void mirror_driver_forget_holders(struct mirror_driver_mirror *mirror) {
    while (mirror->holders_count > 0) {
        free_holder(&mirror->holders[--mirror->holders_count]);
    }
    mirror->are_offers_stale = true;
}

/* Those that are no sources any more make room. */
static void remove_strangers(struct mirror_driver_mirror *mirror) {
    struct mirror_source_status status;
    size_t kept = 0;
    for (size_t i = 0; i < mirror->holders_count; i++) {
        if (mirror_driver_find_source(mirror, mirror->holders[i].key, &status)) {
            mirror->holders[kept++] = mirror->holders[i];
        } else {
            free_holder(&mirror->holders[i]);
        }
    }
    mirror->holders_count = kept;
}

/* The publisher has all; of others nothing is known before they were looked at. NULL: too many. */
struct mirror_driver_holder *mirror_driver_holder(struct mirror_driver_mirror *mirror,
                                                  const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = 0; i < mirror->holders_count; i++) {
        if (memcmp(mirror->holders[i].key, key, PEER_KEY_SIZE) == 0) {
            return &mirror->holders[i];
        }
    }
    if (mirror->holders_count == MIRROR_DRIVER_SOURCES_MAX) {
        remove_strangers(mirror);
    }
    if (mirror->holders_count == MIRROR_DRIVER_SOURCES_MAX) {
        return NULL;
    }
    struct mirror_driver_holder *holder = &mirror->holders[mirror->holders_count++];
    *holder = (struct mirror_driver_holder){0};
    memcpy(holder->key, key, PEER_KEY_SIZE);
    holder->is_whole = memcmp(key, mirror->setup.publisher, PEER_KEY_SIZE) == 0;
    mirror->are_offers_stale = true;
    return holder;
}

static size_t bits_size(const struct mirror_driver_mirror *mirror) {
    return mirror->wanted.list.chunks_count / 8 + 1;
}

bool mirror_driver_offers(const struct mirror_driver_mirror *mirror,
                          const struct mirror_driver_holder *holder, size_t item, bool is_needed) {
    const struct collection_wants *list = &mirror->wanted.list;
    if (!list->is_content) {
        return true; /* nodes are few: whoever has none says so */
    }
    size_t place = list->places[item];
    bool has = holder->has != NULL ? mirror_driver_bit(holder->has, place) : holder->is_whole;
    return has && (is_needed || holder->withheld == NULL || !mirror_driver_bit(holder->withheld, place));
}

/* NULL: no memory. */
static uint8_t *make_bits(const struct mirror_driver_mirror *mirror, bool is_set) {
    uint8_t *bits = malloc(bits_size(mirror));
    if (bits != NULL) {
        memset(bits, is_set ? 0xff : 0, bits_size(mirror));
    }
    return bits;
}

void mirror_driver_note_lack(struct mirror_driver_mirror *mirror, struct mirror_driver_holder *holder,
                             size_t item, bool is_withheld) {
    uint8_t **bits = is_withheld ? &holder->withheld : &holder->has;
    if (!mirror->wanted.list.is_content) {
        return;
    }
    *bits = *bits != NULL ? *bits : make_bits(mirror, !is_withheld && holder->is_whole);
    if (*bits != NULL) {
        mirror_driver_set_bit(*bits, mirror->wanted.list.places[item], is_withheld);
    }
    holder->is_whole = holder->is_whole && is_withheld;
    mirror->are_offers_stale = true;
}

/* ---- offers ---- */

static void set_offer(struct mirror_driver_mirror *mirror, const uint8_t key[PEER_KEY_SIZE]) {
    const struct mirror_driver_wanted *wanted = &mirror->wanted;
    const struct mirror_driver_holder *holder = mirror_driver_holder(mirror, key);
    uint64_t size = 0;
    uint64_t withheld_size = 0;
    if (holder == NULL) {
        mirror_set_offer(mirror->mirror, key, 0, 0, true);
        return;
    }
    for (size_t i = wanted->start; i < wanted->list.count && size < OFFER_SIZE_MAX; i++) {
        size_t item = mirror_driver_item_at(wanted, i);
        if (wanted->states[item] == MIRROR_DRIVER_WANTED &&
            mirror_driver_offers(mirror, holder, item, true)) {
            bool is_offered = mirror_driver_offers(mirror, holder, item, false);
            *(is_offered ? &size : &withheld_size) += wanted->list.refs[item].size;
        }
    }
    mirror_set_offer(mirror->mirror, key, size, withheld_size, holder->is_whole);
}

static bool has_new_source(const struct mirror_driver_mirror *mirror) {
    struct mirror_source_status status;
    bool is_new = false;
    for (size_t i = 0; i < mirror_sources_count(mirror->mirror) && !is_new; i++) {
        mirror_source_at(mirror->mirror, i, 0, &status);
        is_new = true;
        for (size_t j = 0; j < mirror->holders_count && is_new; j++) {
            is_new = memcmp(mirror->holders[j].key, status.source.peer.key, PEER_KEY_SIZE) != 0;
        }
    }
    return is_new;
}

void mirror_driver_set_offers(struct mirror_driver_mirror *mirror) {
    struct mirror_source_status status;
    if (mirror_phase(mirror->mirror) != MIRROR_FETCHING || !mirror->wanted.list.is_content ||
        (!mirror->are_offers_stale && !has_new_source(mirror))) {
        return;
    }
    mirror_driver_skip_taken(&mirror->wanted);
    for (size_t i = 0; i < mirror_sources_count(mirror->mirror); i++) {
        mirror_source_at(mirror->mirror, i, 0, &status);
        set_offer(mirror, status.source.peer.key);
    }
    mirror->are_offers_stale = false;
}

/* ---- looking ---- */

void mirror_driver_look(struct mirror_driver_mirror *mirror, const struct mirror_task *task) {
    struct mirror_driver_event *event = mirror_driver_event_new(mirror->driver, MIRROR_DRIVER_PARTS_ANSWER,
                                                                mirror->setup.name, &task->source);
    if (event == NULL) {
        mirror_looked(mirror->mirror, task->source.key, mirror_driver_now_us(mirror->driver));
        return;
    }
    event->list = mirror->wanted.serial;
    mirror_driver_put_parts_question(&event->question, collection_id(mirror->collection),
                                     mirror_target(mirror->mirror)->root.digest);
    mirror_driver_ask(event);
}

static void take_parts(struct mirror_driver_mirror *mirror, struct mirror_driver_holder *holder,
                       const struct mirror_driver_parts *parts) {
    uint8_t *bits = parts->is_whole ? NULL : make_bits(mirror, false);
    if (bits != NULL && parts->bits.size > 0) {
        memcpy(bits, parts->bits.data,
               parts->bits.size < bits_size(mirror) ? parts->bits.size : bits_size(mirror));
    }
    free(holder->has);
    holder->has = bits;
    holder->is_whole = parts->is_whole;
    mirror->are_offers_stale = true;
}

void mirror_driver_take_parts(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event) {
    const struct mirror_driver_config *config = &mirror->driver->config;
    struct mirror_driver_parts parts;
    struct mirror_driver_holder *holder =
        event->err == ERR_OK && event->list == mirror->wanted.serial && mirror->wanted.list.is_content
            ? mirror_driver_holder(mirror, event->peer.key)
            : NULL;
    if (holder != NULL && mirror_driver_read_parts_answer(buf_bytes(&event->answer), &parts) == ERR_OK) {
        take_parts(mirror, holder, &parts);
        mirror_driver_set_offers(mirror);
    } else if (holder != NULL) {
        config->blame(config->context, &event->peer, "says in no known way what it has of a collection");
    }
    mirror_looked(mirror->mirror, event->peer.key, mirror_driver_now_us(mirror->driver));
}

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
    pthread_mutex_lock(&mirror->driver->lock);
    free(wanted->parts);
    wanted->parts = parts;
    wanted->parts_count = parts != NULL ? count : 0;
    memcpy(wanted->root, target->root.digest, SHA256_SIZE);
    pthread_mutex_unlock(&mirror->driver->lock);
}

/* If many nodes begin at once, each begins somewhere else. */
static size_t place_of_self(const struct mirror_driver *driver, size_t count) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(driver->config.self.key, PEER_KEY_SIZE));
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
    wanted->serial = ++mirror->driver->serial;
    wanted->start = 0;
    wanted->first = wanted->list.is_content ? place_of_self(mirror->driver, wanted->list.count) : 0;
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
