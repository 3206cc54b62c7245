/*
 * whole_file - small files that are read and replaced as a whole.
 *
 * A replaced file is written beside its place, synced and renamed, and its directory is synced: after a crash
 * or a power failure it is the old one or the new one, and once the call has returned it is the new one. The
 * parent directory must exist.
 */
#ifndef MNEMON_BASE_WHOLE_FILE_H
#define MNEMON_BASE_WHOLE_FILE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Append its contents, as much as the buffer takes: ERR_LIMIT beyond. ERR_NOT_FOUND and others name the path.
 */
enum err whole_file_read(const char *path, struct buf *out, struct err_detail *detail) MUST_CHECK;

/* A device or a pipe is written to as it is. */
enum err whole_file_replace(const char *path, struct bytes bytes, mode_t mode,
                            struct err_detail *detail) MUST_CHECK;

/* Once it has returned, no power failure brings the file back. ERR_NOT_FOUND if there is none; its absence is
 * durable then, too: an earlier call may have been cut off. */
enum err whole_file_remove(const char *path, struct err_detail *detail) MUST_CHECK;

/* The same for a new name in the same directory, whatever was there. */
enum err whole_file_rename(const char *path, const char *new_path, struct err_detail *detail) MUST_CHECK;

/* Is there a device, a pipe or a socket? Renaming a file over /dev/null would put an end to it. */
bool whole_file_is_special(const char *path);

/* The error that errno says, with the path in front. */
enum err whole_file_fail(const char *path, struct err_detail *detail);

/* This part of a file, all of it: ERR_TRUNCATED if it ends before. */
enum err whole_file_read_at(int fd, uint64_t offset, void *out, size_t size) MUST_CHECK;

/* All of it, however often the system takes only a part; false with errno. */
bool whole_file_write_all(int fd, struct bytes bytes) MUST_CHECK;

/* One directory, for its owner alone, and durable; ERR_OK if it is there, whoever may enter it. */
enum err whole_file_make_directory(const char *path, struct err_detail *detail) MUST_CHECK;

#endif
