#include "store/backend/backend_local.h"
#include "store/instance/instance_state.h"
#include "store/instance/twins.h"

/* Blocks of one digest that compare mode looks at, where several volumes have some. */
enum { COMPARE_NUMBERS_MAX = 16 };

/* One document on its way to a volume. */
struct delivery {
    struct instance_session *session;
    struct document document; /* as given, with its sum */
    struct bytes body;        /* of it, while that is left out */
    struct document_sum sum;
    enum store_mode mode;
    uint32_t holders;   /* bit i: slot i has one of this digest and size */
    uint32_t failed;    /* bit i: slot i is in trouble */
    backend_done *done; /* NULL: wait for it, and fill *ret_stored */
    void *context;
    struct stored *ret_stored;
    struct err_detail *detail;
};

_Static_assert(CONNECTOR_VOLUMES_MAX <= 32, "delivery has a bit for each volume");

static bool instance_has_bit(uint32_t bits, size_t index) {
    return (bits >> index & 1) != 0;
}

static enum err instance_hand_over(const struct delivery *delivery, struct backend_session *backend,
                                   enum store_mode mode) {
    const struct backend_table *table = backend->backend->table;
    if (delivery->done == NULL) {
        return table->put(backend, &delivery->document, mode, delivery->ret_stored, delivery->detail);
    }
    return table->submit(backend, &delivery->document, mode, delivery->done, delivery->context,
                         delivery->detail);
}

/* Give it to a volume, with the body or without. */
static enum err instance_deliver(struct delivery *delivery, size_t index, bool is_body_left_out) {
    struct instance_session *session = delivery->session;
    struct backend_session *backend;
    enum err err = instance_reach(session, index, &backend, delivery->detail);
    if (err != ERR_OK) {
        return err;
    }
    delivery->document.is_body_left_out = is_body_left_out;
    delivery->document.body = is_body_left_out ? bytes_of(NULL, 0) : delivery->body;
    err = instance_hand_over(delivery, backend, delivery->mode);
    if (err == ERR_CORRUPT && is_body_left_out) {
        err = ERR_NOT_FOUND; /* what it would be a duplicate of is damaged: bring the body */
    } else if (err == ERR_CORRUPT) {
        err = instance_hand_over(delivery, backend, STORE_FORCE_NEW); /* and keep this one beside it */
    }
    if (instance_is_trouble(err)) {
        delivery->failed |= UINT32_C(1) << index;
    }
    return instance_note(session->instance, index, err, delivery->detail);
}

/* ---- duplicates ---- */

/* All are asked before the first answer is waited for. A volume that does not answer counts as one that has
 * nothing.
 */
static void instance_find_holders(struct delivery *delivery) {
    struct instance_session *session = delivery->session;
    size_t count = session->instance->slots_count;
    uint32_t asked = 0;
    struct backend_session *backend;
    struct err_detail detail = {0};
    for (size_t i = 0; i < count; i++) {
        enum err err = instance_reach(session, i, &backend, &detail);
        if (err == ERR_OK) {
            err = backend->backend->table->ask(backend, &delivery->sum);
            instance_note(session->instance, i, err, NULL);
        }
        asked |= (err == ERR_OK ? UINT32_C(1) : 0) << i;
        delivery->failed |= (instance_is_trouble(err) ? UINT32_C(1) : 0) << i;
    }
    for (size_t i = 0; i < count; i++) {
        bool holds = false;
        if (!instance_has_bit(asked, i)) {
            continue;
        }
        detail = (struct err_detail){0};
        backend = session->sessions[i];
        enum err err = backend->backend->table->answer(backend, &holds, &detail);
        instance_note(session->instance, i, err, &detail);
        delivery->holders |= (err == ERR_OK && holds ? UINT32_C(1) : 0) << i;
        delivery->failed |= (instance_is_trouble(err) ? UINT32_C(1) : 0) << i;
    }
}

/* Its bytes are there: only the news of it is sent. ERR_NOT_FOUND if no holder has it any more. */
static enum err instance_deliver_duplicate(struct delivery *delivery) {
    enum err err = ERR_NOT_FOUND;
    for (size_t i = 0; i < delivery->session->instance->slots_count; i++) {
        if (!instance_has_bit(delivery->holders, i)) {
            continue;
        }
        err = instance_deliver(delivery, i, true);
        if (err != ERR_NOT_FOUND && !instance_is_trouble(err)) {
            return err;
        }
    }
    return ERR_NOT_FOUND;
}

/* Does one of the first blocks of its digest there have the same bytes? */
static bool instance_has_equal(struct delivery *delivery, size_t index) {
    struct instance_session *session = delivery->session;
    struct backend_session *backend;
    struct key key = {.volume = session->instance->slots[index].config->number};
    if (instance_reach(session, index, &backend, NULL) != ERR_OK) {
        return false;
    }
    key_shorten(delivery->sum.digest, session->instance->digest_bits, key.digest);
    for (; key.number < COMPARE_NUMBERS_MAX; key.number++) {
        struct block block;
        struct bytes payload;
        enum err err = backend->backend->table->find_block(backend, key.digest, key.number, &block, NULL);
        bool is_candidate = err == ERR_OK && block.location.segment != 0 && block.size == delivery->sum.size;
        if (is_candidate && backend->backend->table->get(backend, &key, &payload, NULL) == ERR_OK &&
            document_hasher_equals(&session->hasher, &delivery->document, payload)) {
            return true;
        }
    }
    return false;
}

/*
 * A volume compares for itself, and keeps what differs as a block of its own. So a single holder just gets
 * it; among several, the one that has the same bytes must be found first. ERR_NOT_FOUND: none has.
 */
static enum err instance_deliver_compared(struct delivery *delivery) {
    bool is_single = (delivery->holders & (delivery->holders - 1)) == 0;
    for (size_t i = 0; i < delivery->session->instance->slots_count; i++) {
        if (!instance_has_bit(delivery->holders, i) || (!is_single && !instance_has_equal(delivery, i))) {
            continue;
        }
        enum err err = instance_deliver(delivery, i, false);
        if (!instance_is_trouble(err)) {
            return err;
        }
    }
    return ERR_NOT_FOUND;
}

/* ---- new documents ---- */

size_t instance_place_by_digest(const struct instance *instance, const struct document_sum *sum) {
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof number; i++) {
        number = number << 8 | sum->digest[i];
    }
    uint64_t place = number % instance->writable_count;
    size_t index = 0;
    while (!instance->slots[index].config->is_writable || place-- > 0) {
        index++;
    }
    return index;
}

static enum err instance_choose_place(const struct delivery *delivery, uint16_t volume, size_t *ret_index) {
    const struct instance *instance = delivery->session->instance;
    if (volume == INSTANCE_VOLUME_ANY) {
        if (instance->writable_count == 0) {
            return err_set(delivery->detail, ERR_PERMISSION, "no volume takes new documents");
        }
        *ret_index = instance_place_by_digest(instance, &delivery->sum);
        return ERR_OK;
    }
    size_t index = instance_find_volume(instance, volume);
    if (!instance->slots[index].config->is_writable) {
        return err_set(delivery->detail, ERR_PERMISSION, "volume %u takes no new documents", volume);
    }
    *ret_index = index;
    return ERR_OK;
}

/* The chosen volume, or the next one behind it that is up and has room. */
static enum err instance_deliver_new(struct delivery *delivery, size_t first) {
    const struct instance *instance = delivery->session->instance;
    for (size_t i = 0; i < instance->slots_count; i++) {
        size_t index = (first + i) % instance->slots_count;
        if (!instance->slots[index].config->is_writable || instance_has_bit(delivery->failed, index)) {
            continue;
        }
        enum err err = instance_deliver(delivery, index, false);
        if (!instance_is_trouble(err)) {
            return err;
        }
    }
    return instance_deliver(delivery, first, false); /* which has its own words for what is wrong with it */
}

/* ---- both ---- */

/* One volume on this machine does all of it itself, and hashes only once. */
static bool instance_is_alone(const struct instance *instance) {
    return instance->slots_count == 1 && instance->slots[0].config->url == NULL &&
           instance->slots[0].config->is_writable;
}

static enum err instance_run_delivery(struct delivery *delivery, uint16_t volume) {
    struct instance_session *session = delivery->session;
    struct instance *instance = session->instance;
    bool is_body_left_out = delivery->document.is_body_left_out;
    if (volume != INSTANCE_VOLUME_ANY && instance_find_volume(instance, volume) == instance->slots_count) {
        return err_set(delivery->detail, ERR_NOT_FOUND, "there is no volume %u", volume);
    }
    enum err deleted = instance_check_deleted(session->instance, &delivery->document, delivery->detail);
    if (deleted != ERR_OK) {
        return deleted;
    }
    if (instance_is_alone(instance)) {
        return instance_deliver(delivery, 0, is_body_left_out);
    }
    if (delivery->document.sum == NULL) {
        document_hasher_run(&session->hasher, &delivery->document, &delivery->sum);
        delivery->document.sum = &delivery->sum;
    } else {
        delivery->sum = *delivery->document.sum;
    }
    if (delivery->mode != STORE_FORCE_NEW) {
        instance_find_holders(delivery);
    }
    enum err err = ERR_NOT_FOUND;
    if (delivery->holders != 0) {
        err = delivery->mode == STORE_COMPARE ? instance_deliver_compared(delivery)
                                              : instance_deliver_duplicate(delivery);
    }
    if (err != ERR_NOT_FOUND || is_body_left_out) {
        return err;
    }
    size_t place = 0;
    if (delivery->failed != 0) {
        twins_mark(instance); /* one of those may have it */
    }
    err = instance_choose_place(delivery, volume, &place);
    return err == ERR_OK ? instance_deliver_new(delivery, place) : err;
}

enum err instance_put(struct instance_session *session, const struct document *document, enum store_mode mode,
                      uint16_t volume, struct stored *ret_stored, struct err_detail *detail) {
    struct delivery delivery = {
        .session = session,
        .document = *document,
        .body = document->body,
        .mode = mode,
        .ret_stored = ret_stored,
        .detail = detail,
    };
    return instance_run_delivery(&delivery, volume);
}

enum err instance_submit(struct instance_session *session, const struct document *document,
                         enum store_mode mode, uint16_t volume, backend_done *done, void *context,
                         struct err_detail *detail) {
    ASSERT(done != NULL);
    struct delivery delivery = {
        .session = session,
        .document = *document,
        .body = document->body,
        .mode = mode,
        .done = done,
        .context = context,
        .detail = detail,
    };
    return instance_run_delivery(&delivery, volume);
}

enum err instance_remove(struct instance_session *session, const struct key *key, struct err_detail *detail) {
    struct backend_session *backend;
    size_t index;
    enum err err = instance_reach_volume(session, key->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (backend->backend->table->remove == NULL) {
        return err_set(detail, ERR_UNSUPPORTED, "what others keep is only read from here");
    }
    err = backend->backend->table->remove(backend, key, detail);
    return instance_note(session->instance, index, err, detail);
}

/* ---- mending ---- */

/* The session with a volume that is on a disk of this machine. */
static enum err instance_reach_local(struct instance_session *session, uint16_t number, size_t *ret_index,
                                     struct backend_session **ret_session, struct err_detail *detail) {
    const struct instance *instance = session->instance;
    size_t index = instance_find_volume(instance, number);
    if (index < instance->slots_count && instance->slots[index].config->url != NULL) {
        return err_set(detail, ERR_UNSUPPORTED, "volume %u is on another machine: it is mended there",
                       number);
    }
    if (index == instance->slots_count) {
        return err_set(detail, ERR_NOT_FOUND, "there is no volume %u", number);
    }
    *ret_index = index;
    return instance_reach(session, index, ret_session, detail);
}

enum err instance_remove_capture(struct instance_session *session, const struct capture *capture,
                                 struct err_detail *detail) {
    struct backend_session *backend;
    size_t index = 0;
    enum err err = instance_reach_local(session, capture->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_local_remove_capture(backend, capture, detail);
    return instance_note(session->instance, index, err, detail);
}

static enum err instance_repair_on(struct instance_session *session, const struct key *key,
                                   const struct document *document, bool is_elsewhere, bool *is_repaired,
                                   struct err_detail *detail) {
    struct backend_session *backend;
    size_t index = 0;
    bool is_repaired_here = false;
    enum err err = instance_reach_local(session, key->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_local_repair(backend, key, document, is_elsewhere, &is_repaired_here, detail);
    *is_repaired = *is_repaired || is_repaired_here;
    return instance_note(session->instance, index, err, detail);
}

enum err instance_repair(struct instance_session *session, const struct key *key,
                         const struct document *document, bool *ret_is_repaired, struct err_detail *detail) {
    struct backend_session *backend;
    struct block block;
    struct key located = *key;
    size_t index = 0;
    bool is_repaired = false;
    enum err err = instance_reach_local(session, key->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture = {.volume = key->volume, .block_number = key->number};
    memcpy(capture.digest, key->digest, sizeof capture.digest);
    err = instance_locate(session, &capture, &located, &block, NULL);
    bool is_elsewhere = err == ERR_OK && located.volume != key->volume;
    err = ERR_OK; /* where nobody has it, it is given back to this volume */
    if (is_elsewhere && !document->is_body_left_out) {
        err = instance_repair_on(session, &located, document, false, &is_repaired, detail);
    }
    if (err == ERR_OK) {
        err = instance_repair_on(session, key, document, is_elsewhere, &is_repaired, detail);
    }
    if (err == ERR_OK) {
        *ret_is_repaired = is_repaired;
    }
    return err;
}
