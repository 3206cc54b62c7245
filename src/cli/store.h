/*
 * store - `mnemon store`. One command in two files: store.c has the actions on single documents and the
 * figures, store_verify.c those that read or rewrite whole volumes.
 */
#ifndef MNEMON_CLI_STORE_H
#define MNEMON_CLI_STORE_H

#include "cli/cli.h"

enum { STORE_VOLUME_ANY = UINT16_MAX };

struct store_options {
    const char *data;
    uint32_t mode; /* enum store_mode */
    const char *url;
    const char *type;
    const char *output;
    uint64_t volume; /* STORE_VOLUME_ANY: by digest */
    uint64_t dead;   /* percent */
    bool quiet;
    bool json;
};

/* The arguments are those behind the name of the action. */
typedef int store_action(struct cli *cli, const struct store_options *options);

store_action store_verify;
store_action store_compact;
store_action store_reindex;

#endif
