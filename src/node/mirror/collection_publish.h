/*
 * collection_publish - a new version of a collection from a directory: scanned, numbered, signed.
 *
 * Works on the files of the data directory, whether its node runs or not; the node sees the version within a
 * second. The nodes of the version before are kept, for nodes that are just fetching it; the content is
 * always that of the directory.
 *
 * Only files that have changed since the version before are read. A file is unchanged if size and time of
 * modification are those of its entry, and the system has noted no change of any kind (ctime) since that
 * version was begun: a file that was changed and got its old time back is read, one that was moved here too.
 *
 * A file that changes while it is read is read again, a few times, then it is an error; unless files are
 * known to change only by growing: then as much of it is published as there was. What cannot be in a
 * collection (devices, links that lead out) is left out, and named.
 *
 * From an archive, the segments and the access rules are published. Segments only grow, also while a node
 * writes to them: the last one is published as far as it is, and the next version adds to it. A compacted one
 * is a new file.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_PUBLISH_H
#define MNEMON_NODE_MIRROR_COLLECTION_PUBLISH_H

#include "base/clock.h"
#include "net/identity.h"
#include "node/mirror/collection_setup.h"
#include "node/mirror/manifest_files.h"

struct collection_publish_config {
    const char *directory;           /* of the data */
    const struct identity *identity; /* the publisher */
    const char *name;
    const char *source;                       /* the directory that is published; NULL: the one of before */
    const struct collection_readers *readers; /* NULL: as before */
    bool is_archive;                          /* source is a data directory: its segments and access rules */
    const struct clock *clock;
    /* May be NULL. Left out, or worth a look. */
    void (*remark)(void *context, struct bytes path, const char *remark);
    void *context;
};

struct collection_publish_stat {
    uint64_t read_count; /* files */
    uint64_t read_size;
};

struct collection_publish_result {
    struct version version;
    struct collection_publish_stat stat;
    bool is_new; /* false: nothing has changed, it is the version of before */
};

/* ERR_BUSY: it is just being published, or a file does not stand still; ERR_EXISTS: we subscribe to one of
 * that name. */
enum err collection_publish(const struct collection_publish_config *config,
                            struct collection_publish_result *ret_result,
                            struct err_detail *detail) MUST_CHECK;

#endif
