/*
 * ring - `mnemon ring`. One command in several files: ring.c has its options and actions, ring_found.c what
 * only a founder or the stewards do, ring_status.c and ring_wait.c the questions to a running node.
 */
#ifndef MNEMON_CLI_RING_H
#define MNEMON_CLI_RING_H

#include "cli/data.h"
#include "net/identity.h"
#include "protocol/ring/invitation.h"

enum { RING_NOT_GIVEN = UINT32_MAX };

struct ring_options {
    const char *data;
    const char *reason;
    const char *from;
    const char *to;
    bool json;

    /* create, amend: 0 or RING_NOT_GIVEN is the default, or what was before */
    uint64_t replicas;
    uint64_t witnesses;
    uint64_t list_size;
    uint32_t mapping;
    uint64_t period_us;
    struct option_list scope;
    bool open;
    bool invited;
    uint32_t jobs;
    struct option_list stewards; /* amend: keys */
    struct option_list needed;   /* amend: [KIND=]N */

    /* invite */
    const char *key;
    uint64_t expires_us;
    const char *act; /* whose token is to be printed; NULL: a new one */

    /* lookup: 0 is one */
    uint64_t vnodes;

    /* wait */
    bool whole;
    bool quiet;
    uint64_t timeout_us; /* UINT64_MAX: none */
};

/* ring_found.c: what only a founder or stewards do. CLI_DONE, or the status after the error, as all of these.
 */
int ring_create(struct cli *cli, const struct data *data, const struct ring_options *options,
                const char *name);
int ring_amend(struct cli *cli, const struct data *data, const struct ring_options *options);
int ring_remove(struct cli *cli, const struct data *data); /* the keys that are named */
int ring_invite(struct cli *cli, const struct data *data, const struct ring_options *options);

/*
 * Sign and print a token: for the node with this key, or NULL, for whoever has it. invitation->ring is set.
 * expires_us: UINT64_MAX if nobody said. Also for a group, which has its id in place of the ring's.
 */
int ring_print_token(struct cli *cli, const struct command *command, const char *key, uint64_t expires_us,
                     const struct identity *signer, struct sha256 *sha256, struct invitation *invitation);

/* ring_status.c */
int ring_lookup(struct cli *cli, const struct data *data, const struct ring_options *options,
                const char *url);
int ring_status(struct cli *cli, const struct data *data, const struct ring_options *options);

/* ring_wait.c: until the node says that all is whole. */
int ring_wait(struct cli *cli, const struct data *data, const struct ring_options *options);

#endif
