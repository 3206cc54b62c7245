/* Of mirroring: what others have of the version on its way. Who has a part says which, a bit for each chunk.
 */
#include <stdlib.h>

#include "node/mirror/mirror_driver_state.h"

static const uint64_t OFFER_SIZE_MAX = 64 << 20; /* more than a batch: how much more does not matter */

static void free_holder(struct mirror_driver_holder *holder) {
    free(holder->has);
    free(holder->withheld);
    *holder = (struct mirror_driver_holder){0};
}

void mirror_driver_forget_holders(struct mirror_driver_mirror *mirror) {
    while (mirror->holders_count > 0) {
        free_holder(&mirror->holders[--mirror->holders_count]);
    }
    mirror->are_offers_stale = true;
}

static bool is_source(const struct mirror_driver_mirror *mirror, const uint8_t key[PEER_KEY_SIZE]) {
    struct mirror_source_status status;
    for (size_t i = 0; i < mirror_sources_count(mirror->mirror); i++) {
        mirror_source_at(mirror->mirror, i, 0, &status);
        if (memcmp(status.source.peer.key, key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* Those that are no sources any more make room. */
static void remove_strangers(struct mirror_driver_mirror *mirror) {
    size_t kept = 0;
    for (size_t i = 0; i < mirror->holders_count; i++) {
        if (is_source(mirror, mirror->holders[i].key)) {
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
    struct mirror_driver_event *event = mirror_driver_event_new(
        mirror->mirror_driver, MIRROR_DRIVER_PARTS_ANSWER, mirror->setup.name, &task->source);
    if (event == NULL) {
        mirror_looked(mirror->mirror, task->source.key, mirror_driver_now_us(mirror->mirror_driver));
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
    const struct mirror_driver_config *config = &mirror->mirror_driver->config;
    struct mirror_driver_parts parts;
    struct mirror_driver_holder *holder =
        event->err == ERR_OK && event->list == mirror->wanted.serial && mirror->wanted.list.is_content
            ? mirror_driver_holder(mirror, event->peer.key)
            : NULL;
    if (holder != NULL && mirror_driver_read_parts_answer(buf_bytes(&event->answer), &parts) == ERR_OK) {
        take_parts(mirror, holder, &parts);
        mirror_driver_set_offers(mirror);
    } else if (holder != NULL) {
        config->blame(config->context, &event->peer, "says in no known way what he has of a collection");
    }
    mirror_looked(mirror->mirror, event->peer.key, mirror_driver_now_us(mirror->mirror_driver));
}
