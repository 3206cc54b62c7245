/* ask - questions of a command to the running node of its data directory, over HTTP. */
#ifndef MNEMON_CLI_ASK_H
#define MNEMON_CLI_ASK_H

#include "base/buf.h"
#include "cli/data.h"
#include "node/node_file.h"

enum { ASK_ANSWER_SIZE_MAX = 16 << 20 };

/* GET of a path, with the token where it can be read. CLI_DONE, or the status after the error. */
int ask_node(struct cli *cli, const struct data *data, const struct node_file *node, const char *path,
             struct buf *answer);

#endif
