/*
 * mirror - what a replica of one collection does next: which node it asks for versions, which version it
 * gets, from which it fetches what, which it tells. Pure.
 *
 * mirror-d of Obraczka, Danzig, DeLucia and Tsai. A source is a neighbour in the topology (group.h) or one
 * that is configured; several groups are one list. All policy is here, no I/O and no memory is taken: the
 * caller brings what happened and asks for the next task, as with protocol/copies/copy_plan.h.
 *
 *      caller                                          mirror
 *        mirror_set_sources(), mirror_hear(statement) --->
 *        mirror_next()    <---- MIRROR_ASK source              send it what we hold; mirror_hear() or
 *                                                              mirror_answered()
 *                         <---- MIRROR_BEGIN version           what is wanted of it? mirror_set_wanted()
 *                         <---- MIRROR_LOOK source             what has it of it by now? mirror_set_offer(),
 *                                                              mirror_looked()
 *                         <---- MIRROR_FETCH batch, source     of what is wanted, so much from it;
 *                                                              mirror_fetched()
 *                         <---- MIRROR_CANCEL batch, source    another was faster
 *                         <---- MIRROR_APPLY version           all is here: check it, let readers see it;
 *                                                              mirror_applied()
 *                         <---- MIRROR_NOTIFY source           tell it what we hold; mirror_told()
 *
 * The rules (docs/decisions/0013-collections.md):
 * - Nothing is begun before notifications were gathered for a while. Then the best source comes first, the
 *   one with the least delay + size / bandwidth.
 * - What is wanted travels in batches of a few seconds, so slow sources get small ones. A further source is
 *   used only if it delivers a batch before the others would be through with everything. A batch that is
 *   late is given to one more source when nothing else is to do.
 * - A source that has only a part so far is asked for that part, and looked at again when it has come. An
 * origin gives each piece to two others, which hand it on; a replica that finds it nowhere for a while says
 * so and gets it.
 * - A source that fails is asked again later and later; one that lacks the version not again for it; a busy
 * one soon; one that gives what is false, forges, or goes back to an old version is barred for a while.
 * - A version that is under way is finished before a newer one, unless nobody has it any more.
 *
 * What is wanted, and what is in which batch, is the caller's: this knows sizes only, so it is small whatever
 * the collection. A batch that is given again means those of its items that have not come. Not for several
 * threads at once.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MIRROR_H
#define MNEMON_PROTOCOL_MIRROR_MIRROR_H

#include "protocol/mirror/mirror_limit.h"
#include "protocol/mirror/version.h"

struct mirror;

/* 0 stands for the default in parentheses; those marked P are the paper's. */
struct mirror_config {
    uint8_t publisher[PEER_KEY_SIZE];
    char name[VERSION_NAME_SIZE_MAX + 1];
    version_verify *verify;
    bool is_master;             /* the publisher's own: fetches nothing */
    const struct version *held; /* copied; NULL: none yet */
    struct mirror_limit *limit; /* NULL: none. May be shared with other mirrors */
    uint16_t sources_max;       /* (64) */
    uint16_t batches_max;       /* (64) at most so many are open or wait to be given again */
    uint32_t batch_size_min;    /* (256 KiB) */
    uint32_t batch_size_max;    /* (32 MiB) */
    uint64_t batch_us;          /* (4 s) what a batch should take */
    uint64_t gather_us;         /* (1 min, P) */
    uint64_t ask_us;            /* (10 min) every source is asked for its version so often */
    uint64_t retry_us;          /* (5 s) after a failure, the first time; doubled up to ask_us */
    uint64_t bar_us;            /* (30 min) */
    uint64_t look_us; /* (200 ms) at a source with a part; doubled up to 2 s if nothing comes of it */
    uint64_t need_us; /* (10 s) without anything from anybody: what is withheld is needed */
    uint64_t seed;    /* of the jitter */
};

/* How much memory it needs, aligned as malloc() does; and a mirror in it, which lasts as long. */
size_t mirror_size(const struct mirror_config *config);
struct mirror *mirror_init(void *memory, const struct mirror_config *config, uint64_t now_us);

/* ---- what is ---- */

struct mirror_source {
    struct peer peer;
    uint64_t bandwidth; /* bytes a second; 0: not measured */
    uint64_t delay_us;  /* 0: not measured */
};

/* All sources, whenever the topology or an estimate has changed. Those above sources_max are left out. What
 * is fetched from one that is gone is given to others; the caller ends it. */
void mirror_set_sources(struct mirror *mirror, const struct mirror_source *sources, size_t count,
                        uint64_t now_us);

enum mirror_verdict {
    MIRROR_NEWER,    /* we will get it; at the master: somebody has a higher number than it should */
    MIRROR_KNOWN,    /* we have it, or it is on its way */
    MIRROR_BEHIND,   /* it has an older one than we; it will be told */
    MIRROR_BAD,      /* one that cannot be used: MIRROR_APPLY said so */
    MIRROR_FOREIGN,  /* of another collection or publisher: it is barred */
    MIRROR_FORGED,   /* no statement, or not signed by the publisher: it is barred */
    MIRROR_REPLAYED, /* older than what it said it has: it is barred */
    MIRROR_IGNORED,  /* it is barred, or no source; not looked at */
};

/* A source says what it holds: a notification, or the answer to MIRROR_ASK. */
enum mirror_verdict mirror_hear(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE],
                                struct bytes statement, uint64_t now_us);

/* The answer to MIRROR_ASK was no statement. ERR_OK: it holds what we do; ERR_NOT_FOUND: nothing; else there
 * was no answer. */
void mirror_answered(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], enum err err, uint64_t now_us);

/* Of the version that has begun, so many bytes are wanted and in no batch. is_all: no more will be wanted,
 * whatever comes. Said anew whenever either changes; without effect while no version has begun. */
void mirror_set_wanted(struct mirror *mirror, uint64_t size, bool is_all);

/* Others may have what has come of the version that has begun, before all has: they are told of it now. */
void mirror_share(struct mirror *mirror, uint64_t now_us);

/*
 * Of what is wanted and in no batch, it gives so much, and has so much more that it withholds: that others
 * have by now, so that we should ask them. is_whole: it has all of the version, looking again shows nothing
 * new. Until it is said, a source offers everything. Without effect while no version has begun.
 */
void mirror_set_offer(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], uint64_t size,
                      uint64_t withheld_size, bool is_whole);

/* At the master: a version higher than what we hold, signed. */
void mirror_publish(struct mirror *mirror, const struct version *version, uint64_t now_us);

/* ---- what to do ---- */

enum mirror_task_kind {
    MIRROR_ASK,
    MIRROR_BEGIN, /* version: mirror_target(). source: the best one. What is wanted and all batches are none
                   */
    MIRROR_LOOK,  /* only at a source that does not have the whole of it */
    MIRROR_FETCH,
    MIRROR_CANCEL, /* nothing need be said of it any more */
    MIRROR_APPLY,
    MIRROR_NOTIFY,
};

struct mirror_task {
    enum mirror_task_kind kind;
    struct peer source;
    uint64_t batch;       /* its number, never used again */
    bool is_again;        /* a batch of before: what is missing of it */
    bool is_needed;       /* of what it withholds: nobody else has given anything for a while */
    uint64_t size;        /* of a new batch: take up to so much of what is wanted, but at least one item */
    uint64_t expected_us; /* how long it should take: delay + size / bandwidth */
    uint32_t candidates_count; /* of so many sources that have it, this was chosen */
};

/* False: nothing now; look again at mirror_wake_at(). */
bool mirror_next(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task);
uint64_t mirror_wake_at(struct mirror *mirror, uint64_t now_us);

/*
 * How a batch went, and how much came. ERR_OK: all of it. ERR_NOT_FOUND: it does not have it; ERR_BUSY: not
 * now; ERR_MISMATCH, ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT, ERR_CORRUPT: what it gave is false. Else it
 * failed.
 */
void mirror_fetched(struct mirror *mirror, uint64_t batch, const uint8_t key[PEER_KEY_SIZE], enum err err,
                    uint64_t size, uint64_t now_us);

/* MIRROR_LOOK is over, whatever came of it. */
void mirror_looked(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], uint64_t now_us);

/* ERR_OK: it is what readers see. ERR_MISMATCH, ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT, ERR_UNSUPPORTED: the
 * version is bad, it is not tried again. Else it is tried again later. */
void mirror_applied(struct mirror *mirror, enum err err, uint64_t now_us);
void mirror_told(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], enum err err, uint64_t now_us);

/* ---- what people and the caller want to know ---- */

enum mirror_phase { MIRROR_CURRENT, MIRROR_GATHERING, MIRROR_FETCHING, MIRROR_APPLYING };
extern const char *const mirror_phases[]; /* "current", … */

struct mirror_counters {
    uint64_t heard_count;
    uint64_t barred_count; /* sources, for what they sent */
    uint64_t begun_count;  /* versions */
    uint64_t applied_count;
    uint64_t batches_count; /* new ones */
    uint64_t again_count;   /* given again after a failure */
    uint64_t late_count;    /* given to one more source */
    uint64_t needed_count;  /* new ones, of what was withheld */
    uint64_t fetched_size;
    uint64_t doubled_count; /* versions of one number: the publisher's fault */
};

struct mirror_source_status {
    struct mirror_source source; /* bandwidth: as fetching found it, if it did */
    uint64_t number;             /* of the version that it has; 0: not known */
    bool is_barred;
    bool is_fetching;      /* a batch from it is open */
    uint64_t fetched_size; /* in all */
    uint32_t failed_count; /* in a row */
};

enum mirror_phase mirror_phase(const struct mirror *mirror);
const struct version *mirror_held(const struct mirror *mirror);   /* NULL: none */
const struct version *mirror_target(const struct mirror *mirror); /* that has begun; NULL: none */
const struct version *mirror_newest(const struct mirror *mirror); /* that we know of; NULL: none */
const struct mirror_counters *mirror_counters(const struct mirror *mirror);
size_t mirror_sources_count(const struct mirror *mirror);
void mirror_source_at(const struct mirror *mirror, size_t index, uint64_t now_us,
                      struct mirror_source_status *ret_status);

#endif
