/*
 * lines - the lines of a file, each of bounded length whatever the file holds.
 *
 * For lists that people pipe in: URLs, seeds. LF and CRLF end a line; empty lines are left out; of a longer
 * line the first size_max bytes are given and the rest is skipped.
 */
#ifndef MNEMON_CLI_LINES_H
#define MNEMON_CLI_LINES_H

#include <stdio.h>

#include "base/buf.h"

struct lines {
    FILE *file;
    struct buf line;
};

void lines_init(struct lines *lines, FILE *file, size_t size_max);
void lines_done(struct lines *lines);

/* The next line, valid until the next call. False at the end or after an error: see ferror(file). */
bool lines_next(struct lines *lines, struct bytes *ret_line);

#endif
