/*
 * node_file - DIR/node.json: where the running node of a data directory is found, while it runs.
 *
 *      {"url":"http://127.0.0.1:8080","pid":4711,"started":"2026-01-02T03:04:05Z"}
 *
 * After a crash it stays behind; a reader checks whether that process is still there.
 */
#ifndef MNEMON_NODE_NODE_FILE_H
#define MNEMON_NODE_NODE_FILE_H

#include <sys/types.h>

#include "base/address.h"
#include "base/err.h"

enum { NODE_FILE_URL_SIZE_MAX = 80 };

struct node_file {
    char url[NODE_FILE_URL_SIZE_MAX]; /* how this machine reaches it */
    pid_t pid;
    int64_t started_us;
};

enum err node_file_write(const char *directory, const struct address *http, int64_t now_us,
                         struct err_detail *detail) MUST_CHECK;
void node_file_remove(const char *directory);

/* ERR_NOT_FOUND: there is none; ERR_CLOSED: it was left behind by a process that is gone; ERR_INVALID. */
enum err node_file_read(const char *directory, struct node_file *ret_file,
                        struct err_detail *detail) MUST_CHECK;

#endif
