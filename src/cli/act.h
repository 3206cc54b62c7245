/*
 * act - what a steward proposes or signs (protocol/ring/act.h): commands leave it to the node, and say who
 * must still agree.
 */
#ifndef MNEMON_CLI_ACT_H
#define MNEMON_CLI_ACT_H

#include "cli/data.h"
#include "net/identity.h"
#include "node/ring/acts.h"

/* What a steward's command works with. Large: on the heap. */
struct act_desk {
    struct cli *cli;
    const char *directory;
    struct identity identity;
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
    struct acts *acts;
};

/* NULL after the error. It is one if the ring has no stewards, or this node is none of them. */
struct act_desk *act_desk_open(struct cli *cli, const struct data *data);
void act_desk_free(struct act_desk *desk);

/* Sign what is new, and say so if others must sign as well. CLI_DONE, or the status after the error. */
int act_propose(struct cli *cli, struct acts *acts, const struct identity *identity,
                const struct charter *charter, const struct act *act, char ret_id[ACTS_ID_TEXT_SIZE],
                bool *ret_is_done);

/* `mnemon ring pending`, `mnemon ring sign ID`. */
int act_list(struct cli *cli, const struct data *data, bool is_json);
int act_sign_named(struct cli *cli, const struct data *data);

#endif
