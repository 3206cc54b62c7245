/*
 * collection_path - files below a directory by paths of manifests, which come from others.
 *
 * Every component is opened by itself and never through a symbolic link, so nothing outside is reached
 * whatever lies there. The directory of the last path stays open: a walk in the order of path_rule.h opens
 * each once. Paths must be sound by path_rule_fault().
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_PATH_H
#define MNEMON_NODE_MIRROR_COLLECTION_PATH_H

#include <sys/types.h>

#include "base/err.h"
#include "protocol/mirror/path_rule.h"

struct collection_path {
    int root;   /* the owner's */
    int parent; /* the last one that was opened; -1: none */
    size_t size;
    uint8_t path[PATH_RULE_SIZE_MAX]; /* of the parent */
};

void collection_path_init(struct collection_path *at, int root);
void collection_path_done(struct collection_path *at);

/* The directory that the path is in, and its name there. -1: errno says why. */
int collection_path_parent(struct collection_path *at, struct bytes path,
                           char ret_name[PATH_RULE_COMPONENT_SIZE_MAX + 1]);

/* As openat(), without following links and closed by exec. -1: errno says why. */
int collection_path_open(struct collection_path *at, struct bytes path, int flags, mode_t mode);

/* A file or a directory with all that is in it. What is not there is a success. */
enum err collection_path_remove(int parent, const char *name) MUST_CHECK;

#endif
