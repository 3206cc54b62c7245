/* store - the actions of `mnemon store`, each in the file of its name or in store.c. */
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
typedef int store_action(struct cli *cli, const struct store_options *options, char **arguments,
                         size_t arguments_count);

store_action store_put;
store_action store_stat;
store_action store_verify;
store_action store_compact;
store_action store_reindex;

#endif
