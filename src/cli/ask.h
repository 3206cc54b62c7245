/* ask - questions of a command to the running node of its data directory, over HTTP. */
#ifndef MNEMON_CLI_ASK_H
#define MNEMON_CLI_ASK_H

#include <jansson.h>

#include "cli/data.h"
#include "node/node_file.h"

enum { ASK_FILE_SIZE_MAX = 64 << 20 };

typedef void ask_print(struct buf *out, const struct node_file *node, const json_t *answer);

/*
 * GET of a path that answers with a JSON object, with the token if it can be read: printed as it is, or as
 * the function writes it. CLI_DONE, or the status after the error; that no node runs is one.
 */
int ask_show(struct cli *cli, const struct data *data, const char *path, bool is_json, ask_print *print);

/* The same for the caller, who drops the reference. NULL after the error. */
json_t *ask_object(struct cli *cli, const struct data *data, const char *path);

/*
 * The same of a path that answers with bytes: into a file, or to standard output if it is "-". At most
 * ASK_FILE_SIZE_MAX.
 */
int ask_save(struct cli *cli, const struct data *data, const char *path, const char *file);

/* A member of an answer: "" and 0 if it is missing. */
const char *ask_text(const json_t *object, const char *name);
double ask_number(const json_t *object, const char *name);

/*
 * A text with members of an object in braces: {name} as it is, {name:1} with one decimal, {name:count} as
 * 1,234, {name:size} as 1.2 MB.
 */
void ask_put(struct buf *out, const json_t *object, const char *text);

/* A value as part of a query: "&name=", encoded. */
void ask_put_argument(struct buf *path, const char *name, const char *value);

#endif
