/*
 * access_files - the .aclj files of a data directory: which there are, whether they have changed, what is in
 * them.
 *
 *      DIR/access.aclj, then DIR/access/NAME.aclj in the order of their names
 */
#ifndef MNEMON_STORE_ACCESS_ACCESS_FILES_H
#define MNEMON_STORE_ACCESS_ACCESS_FILES_H

#include "base/buf.h"
#include "store/access/access_rules.h"

/* More files than a founder can have decrees (protocol/ring/decree_room.h): each may be a file. */
enum { ACCESS_FILES_MAX = 4096, ACCESS_NAME_SIZE_MAX = 255 };

/*
 * Append a text that differs where a file has changed, come or gone: path, inode, size and times of each.
 * *ret_newest_us: when one was changed last; INT64_MIN if there are none.
 */
enum err access_files_look(const char *directory, struct buf *out, int64_t *ret_newest_us,
                           struct err_detail *detail) MUST_CHECK;

/* A new sealed set of all rules. What is wrong has file and line in its text. */
enum err access_files_load(const char *directory, struct access_rules **ret_rules,
                           struct err_detail *detail) MUST_CHECK;

#endif
