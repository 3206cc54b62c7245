/*
 * collection_scan - makes the manifest of a directory: what `mnemon mirror publish` does.
 *
 * Only files that have changed since the version before are read. A file is unchanged where size and time of
 * modification are those of its entry, and the system has noted no change of any kind (ctime) since that
 * version was begun: a file that was changed and got its old time back is read, one that was moved here too.
 *
 * A file that changes while it is read is read again, a few times, then it is an error; unless files are
 * known to change only by growing: then as much of it is published as there was. What cannot be in a
 * collection (devices, links that lead out) is left out, and named.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_SCAN_H
#define MNEMON_NODE_MIRROR_COLLECTION_SCAN_H

#include "node/mirror/manifest_files.h"
#include "protocol/mirror/version.h"

struct collection_scan_config {
    int directory; /* that is published */
    const struct manifest_files *nodes;
    const struct version *before; /* NULL: there is none */
    bool is_append_only;          /* files only grow */
    /* NULL: everything. Shall this, from the root of the directory, be in the collection? */
    bool (*wants)(void *context, struct bytes path);
    /* May be NULL. Left out, or worth a look. */
    void (*remark)(void *context, struct bytes path, const char *remark);
    void *context;
};

struct collection_scan_stat {
    uint64_t read_count; /* files */
    uint64_t read_size;
    uint64_t left_out_count;
};

/* ERR_BUSY: a file does not stand still; other errors name the file too. */
enum err collection_scan(const struct collection_scan_config *config, struct manifest_ref *ret_root,
                         struct manifest_totals *ret_totals, struct collection_scan_stat *ret_stat,
                         struct err_detail *detail) MUST_CHECK;

#endif
