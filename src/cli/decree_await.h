/*
 * decree_await - has a decree that a command has signed taken force, here and on the other nodes?
 *
 * If a node runs on the data directory, it is asked until it says so, and for as long as the others may take
 * to hear of it. Else the command itself does on the disk what the node would do.
 */
#ifndef MNEMON_CLI_DECREE_AWAIT_H
#define MNEMON_CLI_DECREE_AWAIT_H

#include "cli/data.h"
#include "node/ring/decrees.h"

struct decree_sent {
    struct decrees_receipt receipt;
    enum decree_kind kind;
    struct bytes name; /* borrowed */
    char author[IDENTITY_TEXT_SIZE];
};

/*
 * Print that the URL "is no longer shown" here, and which nodes have not confirmed it. An error if it is not
 * in force on this node.
 */
int decree_await(struct cli *cli, const struct data *data, const struct decree_sent *sent, const char *url,
                 const char *what);

#endif
