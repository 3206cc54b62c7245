/*
 * instance_state - what an instance is made of. Private to its files.
 *
 * One machine in several files:
 *      instance.c        opening, closing, sessions, what is down
 *      instance_get.c    reading by key and location, from whichever volume has it
 *      instance_put.c    where a document goes, and the calls that remove and repair
 *      merge.c           walks over all volumes at once
 *      twins.c           documents that lie on more than one of them
 */
#ifndef MNEMON_STORE_INSTANCE_INSTANCE_STATE_H
#define MNEMON_STORE_INSTANCE_INSTANCE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/scratch.h"
#include "store/document/document_hasher.h"
#include "store/instance/absent.h"
#include "store/instance/connector.h"
#include "store/instance/instance.h"

/* One volume of the connector. */
struct instance_slot {
    const struct connector_volume *config;
    struct backend *_Atomic backend; /* NULL: it did not open; err and reason say why. Or there is no guest,
                                    or no mirrored volume, of that number (yet) */
    struct volume_recovery recovery;
    _Atomic(enum err) err;          /* of its last failure; ERR_OK again when it answers */
    char reason[ERR_TEXT_SIZE_MAX]; /* lock */
};

struct instance {
    struct connector connector;
    struct instance_slot
        *slots;         /* in the order of their numbers; behind them the guest's and the mirrored volumes' */
    size_t slots_count; /* without these */
    struct connector_volume others[1 + INSTANCE_MIRRORED_MAX]; /* the guest and the mirrored volumes */
    char origins[INSTANCE_MIRRORED_MAX][INSTANCE_ORIGIN_SIZE_MAX];
    _Atomic size_t mirrored_end; /* there are none behind this one */
    size_t writable_count;
    unsigned digest_bits;
    pthread_mutex_t lock; /* of the reasons */
    struct scratch_budget reading;
    char *directory;       /* NULL: it has none of its own */
    atomic_bool is_marked; /* documents were stored while a volume was down: twins.h */
    struct quota quota;
    pthread_rwlock_t deletions_lock;
    struct deletion_set *deletions; /* deletions_lock; NULL: none */
    _Atomic uint64_t deletions_generation;
    _Atomic int64_t deletions_end_us; /* captures behind this time are not deleted */
};

struct instance_session {
    struct instance *instance;
    struct document_hasher hasher;
    size_t slots_count; /* that it may read from: see instance_reads() */
    bool reads_guest;
    bool reads_mirrored;
    struct absent absent; /* since it was last forgotten */
    bool is_brief;
    bool hides_witnesses;
    struct backend_session *sessions[]; /* of each slot, opened when it is first needed */
};

/* May it be stored? ERR_DELETED: it is deleted. */
enum err instance_check_deleted(struct instance *instance, const struct document *document,
                                struct err_detail *detail) MUST_CHECK;

/* Is there something at this index that the session reads from? Volumes that are down count. */
bool instance_reads(const struct instance_session *session, size_t index);

/* The index of a volume among those that the session reads from; its slots_count if there is none. */
size_t instance_find_slot(const struct instance_session *session, uint16_t number);

/* The volume itself is in trouble, not what it was asked for: others may do instead. */
bool instance_is_trouble(enum err err);

/* Remember how a call on the slot ended. Returns err, with a detail that names the volume. */
enum err instance_note(struct instance *instance, size_t index, enum err err, struct err_detail *detail);

/* The slot did not answer this session. detail: of a walk, as its backend gave it; else NULL. */
void instance_miss(struct instance_session *session, size_t index, const struct err_detail *detail);

/* The index of the volume that the digest falls to, of those that take new documents; there must be one. */
size_t instance_place_by_digest(const struct instance *instance, const struct document_sum *sum);

/* The session with the slot's backend; the reason if it is down; ERR_NOT_FOUND if nothing is in it. */
enum err instance_reach(struct instance_session *session, size_t index, struct backend_session **ret_session,
                        struct err_detail *detail) MUST_CHECK;

/* The same by the number of the volume, and its index; ERR_NOT_FOUND if there is none. */
enum err instance_reach_volume(struct instance_session *session, uint16_t number, size_t *ret_index,
                               struct backend_session **ret_session, struct err_detail *detail) MUST_CHECK;

#endif
