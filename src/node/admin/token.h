/*
 * token - the secret that clients of this node's volumes show: DIR/token, one line, readable by its owner.
 *
 * Made at random if there is none. One that others may read is refused: it is no secret any more.
 */
#ifndef MNEMON_NODE_ADMIN_TOKEN_H
#define MNEMON_NODE_ADMIN_TOKEN_H

#include "base/err.h"

enum { TOKEN_SIZE_MIN = 16, TOKEN_SIZE_MAX = 256, TOKEN_PATH_SIZE_MAX = 4096 };

struct token {
    char path[TOKEN_PATH_SIZE_MAX];
    char text[TOKEN_SIZE_MAX]; /* ended by a zero byte */
};

/* ERR_PERMISSION, ERR_INVALID and what the disk says, with a text that names the file. */
enum err token_load(struct token *token, const char *directory, struct err_detail *detail) MUST_CHECK;

#endif
