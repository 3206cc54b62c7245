/*
 * probation - which members this node counts as keepers of copies, and which have not been up for long enough
 * yet. Pure.
 *
 *      met ── answers ── answers   silence   answers ── answers ── answers ─> period reached: it counts
 *             ─────────────────              ───────────────────              for good
 *
 * A member that is on probation is given its copies as any other, but they do not count: as many others keep
 * them, too (protocol/copies/copy_plan.h). Those who came with the ring count from the start: whoever is met
 * while the ring is younger than the period, or in the first minutes in which this node looks at all, since
 * then it cannot know. Afterwards a member must have answered this node for the period, in sum: the time
 * between two answers counts if they were not far apart and no silence was between them. One that gives
 * something false begins again.
 *
 * It is this node's own judgement, of whom it relies on for its own arcs and for what it gives up; nothing of
 * it is on the wire, and nodes need not agree: if they judge differently, there is a copy more, never one
 * less. What is remembered outlives the process (probation_write()). Of PROBATION_MAX nodes: one on probation
 * makes room first, so that no number of fresh keys drives out those that count.
 */
#ifndef MNEMON_PROTOCOL_COPIES_PROBATION_H
#define MNEMON_PROTOCOL_COPIES_PROBATION_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/peer.h"

enum {
    PROBATION_MAX = 1024,
    PROBATION_SIZE_MAX = 64 + PROBATION_MAX * (PEER_KEY_SIZE + 11), /* of what is remembered */
};

struct probation_config {
    uint64_t period_us;      /* 0: all members count */
    uint64_t gap_us_max;     /* between two answers of which the time counts */
    uint64_t ring_created_s; /* by the charter: tells rings apart, too */
    uint64_t ring_age_us;    /* when this node began */
};

struct probation_entry {
    uint8_t key[PEER_KEY_SIZE];
    uint64_t up_us;
    uint64_t seen_us; /* its last answer, if no silence came after it; 0: none in this life of the node */
    bool counts;
};

struct probation {
    struct probation_config config;
    uint64_t began_us;
    uint64_t looked_us; /* in earlier lives of this node */
    struct probation_entry entries[PROBATION_MAX];
    size_t count;
    uint64_t generation; /* counts up when another member counts, or one no more */
};

void probation_init(struct probation *probation, const struct probation_config *config, uint64_t now_us);

/* It is in the ring. */
void probation_meet(struct probation *probation, const struct peer *peer, uint64_t now_us);

/* It was asked something, or asked: ERR_OK, it is up; ERR_MISMATCH, it gave something false; ERR_NOT_FOUND,
 * ERR_CORRUPT, it has lost something and says so; else there was no answer. */
void probation_note(struct probation *probation, const struct peer *peer, enum err err, uint64_t now_us);

/* One that was never met does not count, unless all do. */
bool probation_counts(const struct probation *probation, const struct peer *peer);

/* It was met, and is on probation. Of those that were never met, nothing is known. */
bool probation_is_new(const struct probation *probation, const struct peer *peer);

/* How long it must still be up; 0: it counts. */
uint64_t probation_left_us(const struct probation *probation, const struct peer *peer);

/* What is to be remembered; out has room for PROBATION_SIZE_MAX. */
struct bytes probation_write(const struct probation *probation, uint64_t now_us, uint8_t *out);

/* After probation_init(). ERR_MISMATCH: it is of another ring. After an error nothing is changed. */
enum err probation_read(struct probation *probation, struct bytes input,
                        struct err_detail *detail) MUST_CHECK;

#endif
