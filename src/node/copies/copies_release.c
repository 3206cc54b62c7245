/*
 * Surplus: captures of positions that no primary has compared with us for the grace time. Each holder is
 * asked whether it has them, and for a proof; what a holder lacks is offered to it; what all R holders have
 * is given up here.
 */
#include <sodium.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "crawl/engine/attest.h"
#include "node/copies/copies_state.h"
#include "store/instance/record.h"
#include "store/volume/volume_record.h"

enum {
    LIST_COUNT = 256,
    LISTS_MAX = 16,           /* in one task */
    OWN_QUOTA_PERMILLE = 800, /* of the quota, or … */
    OWN_FREE_SHARE = 10,      /* … with less of the disk free than this part, room is needed */
};

/* Keys of one arc of somebody else's, in a row. */
struct surplus {
    struct copies *copies;
    struct holders_arc arc;
    const struct ringkey *keys;
    size_t count;
    uint8_t confirmed[LIST_COUNT]; /* by how many holders */
};

/* *ret_has: one for each key. */
static enum err ask_holder(struct copies *copies, const struct peer *peer, const struct surplus *surplus,
                           uint8_t *ret_has) {
    struct err_detail detail = {0};
    buf_clear(&copies->question);
    copies_put_keys(&copies->question, surplus->keys, surplus->count);
    enum err err = peer_rpc_ask(copies->config.peer_rpc, peer, PEER_RPC_CONFIRM, buf_bytes(&copies->question),
                                COPIES_ASK_MS, &copies->answer, &detail);
    if (err != ERR_OK) {
        return err;
    }
    err = copies_read_bits(buf_bytes(&copies->answer), surplus->count, 1, ret_has, &detail);
    if (err != ERR_OK) {
        copies_blame(copies, peer, "confirms something else than it was asked");
    }
    return err;
}

/* Words are cheap: a holder must prove one of the captures that it says it has, drawn by lot. A node that was
 * found false lately is not believed at all. */
static bool is_proved(struct copies *copies, const struct peer *peer, const struct surplus *surplus,
                      const uint8_t *has) {
    size_t had[LIST_COUNT];
    uint32_t count = 0;
    for (size_t i = 0; i < surplus->count; i++) {
        had[count] = i;
        count += has[i] != 0;
    }
    if (copies_is_false(copies, peer)) {
        return false;
    }
    return count == 0 ||
           copies_challenge_key(copies, peer, &surplus->keys[had[randombytes_uniform(count)]]) == ERR_OK;
}

static void offer_missing(struct copies *copies, const struct peer *peer, const struct surplus *surplus,
                          const uint8_t *has) {
    struct ringkey missing[LIST_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < surplus->count; i++) {
        if (has[i] == 0) {
            missing[count++] = surplus->keys[i];
        }
    }
    if (count > 0 && copies_offer(copies, peer, missing, count) != ERR_OK) {
        return; /* the next round asks again */
    }
}

/*
 * Is room needed? Then a capture that this node fetched or imported is given up as any other, once all
 * holders have it (docs/decisions/0020-whose-copy-it-is.md).
 */
static bool release_needs_room(const struct copies *copies) {
    const struct quota *quota = instance_quota(copies->config.instance);
    struct statvfs space;
    if (quota_is_set(quota)) {
        return quota_permille(quota) >= OWN_QUOTA_PERMILLE;
    }
    return statvfs(copies->config.directory, &space) == 0 && space.f_bavail < space.f_blocks / OWN_FREE_SHARE;
}

/* Did another node fetch it? What this one fetched or imported itself its owner may want to keep. */
static bool is_of_others(struct copies *copies, const struct capture *capture) {
    uint8_t key[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    struct record record;
    if (copies->config.keeps_but_of == NULL || (!copies->config.keeps_own && release_needs_room(copies))) {
        return true;
    }
    bool is_read =
        record_init(&record) == ERR_OK &&
        record_read(&record, copies->reading.session, capture->volume, &capture->location, NULL) == ERR_OK;
    struct bytes field =
        is_read ? fields_get(&record.header.fields, BYTES(VOLUME_SIGNATURE_FIELD)) : bytes_of(NULL, 0);
    bool is_signed = attest_parse(field, key, signature);
    record_done(&record);
    return is_signed && memcmp(key, copies->config.keeps_but_of, sizeof key) != 0;
}

/* The feed takes it out of the keys, unless there is another capture of the same key. */
static void release_give_up(struct copies *copies, const struct ringkey *key) {
    struct capture capture;
    struct err_detail detail = {0};
    enum err err = copies_find_capture(copies, &copies->reading, key, &capture, &detail);
    if (err == ERR_OK && !is_of_others(copies, &capture)) {
        return;
    }
    err = err == ERR_OK ? instance_remove_capture(copies->reading.session, &capture, &detail) : err;
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        copies_note(copies, "a surplus capture cannot be removed: %s", err_detail_text(&detail, err));
    }
    copies_count(copies, &copies->stat.released_count, err == ERR_OK);
}

/* ERR_BUSY: not all holders could be asked, and nothing was given up. */
static enum err release_keys(struct surplus *surplus) {
    struct copies *copies = surplus->copies;
    const struct holders_source *ring = &copies->config.ring;
    const struct holders_arc *arc = &surplus->arc;
    uint8_t has[LIST_COUNT];
    size_t wanted = ring->copies(ring->context);
    memset(surplus->confirmed, 0, sizeof surplus->confirmed);
    if (arc->self_rank >= 0 || arc->count < wanted || wanted == 0) {
        return ERR_OK; /* no surplus: its primary has not been here yet */
    }
    bool is_complete = true;
    for (size_t i = 0; i < arc->count; i++) {
        const struct peer *peer = &arc->peers[i];
        if (copies_is_stopping(copies) || ask_holder(copies, peer, surplus, has) != ERR_OK) {
            is_complete = false;
            continue;
        }
        bool is_believed = is_proved(copies, peer, surplus, has);
        is_complete = is_complete && is_believed;
        for (size_t j = 0; j < surplus->count; j++) {
            surplus->confirmed[j] = (uint8_t)(surplus->confirmed[j] + (has[j] && is_believed));
        }
        offer_missing(copies, peer, surplus, has);
    }
    bool may_go = is_complete && !copies->config.keeps_surplus;
    for (size_t i = 0; i < surplus->count && may_go; i++) {
        if (surplus->confirmed[i] >= wanted) {
            release_give_up(copies, &surplus->keys[i]);
        }
    }
    return is_complete ? ERR_OK : ERR_BUSY;
}

static enum err release_list(struct copies *copies, const struct ringkey *keys, size_t count) {
    const struct holders_source *ring = &copies->config.ring;
    struct surplus *surplus = calloc(1, sizeof *surplus);
    enum err err = surplus != NULL ? ERR_OK : ERR_MEMORY;
    for (size_t i = 0; i < count && err == ERR_OK; i += surplus->count) {
        *surplus = (struct surplus){.copies = copies, .keys = keys + i};
        err = ring->find(ring->context, copies_place_of(&keys[i]), &surplus->arc);
        while (err == ERR_OK && i + surplus->count < count &&
               ring_id_is_owned(surplus->arc.from, copies_place_of(&keys[i + surplus->count]),
                                surplus->arc.to)) {
            surplus->count++;
        }
        err = err == ERR_OK && surplus->count > 0 ? release_keys(surplus) : err;
        if (surplus->count == 0) {
            break;
        }
    }
    free(surplus);
    return err;
}

void copies_release(struct copies *copies, const struct copy_plan_task *task,
                    struct copy_plan_outcome *ret_outcome) {
    struct ringkey keys[LIST_COUNT];
    struct ringkey last;
    size_t count = LIST_COUNT;
    enum err err = ERR_OK;
    for (unsigned i = 0; i < LISTS_MAX && err == ERR_OK && count == LIST_COUNT; i++) {
        err = copies_list(copies, task->from, task->to, i > 0 ? &last : NULL, keys, LIST_COUNT, &count);
        if (err == ERR_OK && count > 0) {
            last = keys[count - 1];
            err = release_list(copies, keys, count);
        }
    }
    ret_outcome->err = err;
    struct ring_id reached = count > 0 ? copies_place_of(&keys[count - 1]) : task->to;
    ret_outcome->is_partial = err == ERR_OK && count == LIST_COUNT && !ring_id_equal(reached, task->to);
    ret_outcome->reached = reached;
}
