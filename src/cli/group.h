/*
 * group - `mnemon group`. One command in several files: group.c has its options and actions, group_change.c
 * what changes DIR/groups or signs for it, group_status.c the questions to a running node.
 */
#ifndef MNEMON_CLI_GROUP_H
#define MNEMON_CLI_GROUP_H

#include "cli/data.h"

enum { GROUP_GENERATOR_NOT_GIVEN = 1000 };

struct group_options {
    const char *data;
    bool json;

    /* create, change */
    bool open;
    bool approve;
    bool invite;
    uint32_t generator; /* GROUP_GENERATOR_NOT_GIVEN */
    uint64_t k;         /* 0: not given */

    const char *token; /* join */
    const char *token_file;

    /* invite */
    const char *key;
    uint64_t expires_us;

    /* status */
    const char *dot;
    const char *svg;
};

/* group_change.c: CLI_DONE, or the status after the error, as all of these. */
int group_create(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name);
int group_change(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name);
int group_join(struct cli *cli, const struct data *data, const struct group_options *options,
               const char *where);
int group_leave(struct cli *cli, const struct data *data, const char *name);
int group_judge(struct cli *cli, const struct data *data, const char *name, const char *key, bool is_good);
int group_invite(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name);

/* group_status.c: name may be NULL. */
int group_status(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name);

#endif
