/*
 * heal_world - trouble that ends in a small ring of the daemon's machines (copies_world.h), and how soon
 * every capture is with its holders again: after a cut in halves, each of which archives something meanwhile,
 * or after the loss of a disk; or, without trouble, after captures are archived while a node is silent.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_HEAL_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_HEAL_WORLD_H

#include "sim/experiments/copies_world.h"

enum { HEAL_CAPTURE_SIZE = 3000 };

struct heal_config {
    uint64_t seed;
    uint32_t nodes_count;
    uint32_t copies;
    uint32_t captures_count; /* that all have been kept for long */
    uint32_t late_count;    /* that each of the halves archives while they are apart; or all, without a cut */
    uint64_t cut_us;        /* for how long; 0: they are not */
    bool is_at_all_times;   /* they archive also while nodes learn of the cut, and of its end */
    bool loses_disk;        /* the first node, when all is quiet */
    uint32_t silent_count;  /* of the nodes answer nothing from when all is quiet on, and stay in the ring */
    bool are_answering;     /* they do answer, for comparison; but what they lack is not waited for either */
    uint64_t learn_us;      /* until the last node knows that the ring has changed */
    uint32_t fetches_per_s; /* of a node; 0: any number */
    uint32_t loss_ppm;      /* of questions that get no answer */
    uint64_t duration_us_max; /* behind the end of the trouble */
};

struct heal_world {
    struct heal_config config;
    struct copies_world world;
    uint32_t *rank; /* [node]: its position in the order of the ring */
    uint8_t *is_made;
    uint64_t over_us;       /* when the trouble ended; 0: not yet */
    uint32_t coming_count;  /* captures that will be archived */
    uint64_t lacking_count; /* copies that holders of the whole ring do not have */
    uint64_t lacking_first; /* at the end of the trouble */
    bool has_most;          /* 99 of 100 of them are there since … */
    uint64_t most_us;       /* … so long after it */
    uint64_t all_us;        /* all of them, if none is lacking */
};

enum err heal_world_init(struct heal_world *heal, const struct heal_config *config) MUST_CHECK;
void heal_world_done(struct heal_world *heal);

/* Until everything is where it belongs, or time is up. */
enum err heal_world_run(struct heal_world *heal) MUST_CHECK;

/* Of all nodes together. */
struct replicator_counts heal_world_counts(const struct heal_world *heal);
void heal_world_digest(const struct heal_world *heal, struct digest *digest);

#endif
