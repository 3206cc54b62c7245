/*
 * confine - what the process of a node gives up before it reads its first foreign byte.
 *
 *      confine_process()   by the only thread, before others are started: they inherit all of it
 *
 *      new privileges      none, by no program (PR_SET_NO_NEW_PRIVS)
 *      memory              not for debuggers and core files of the same user: it holds keys (PR_SET_DUMPABLE)
 *      system calls        those that a node never makes fail with EPERM (seccomp): other programs and
 *                          processes, other processes' memory, mounts, namespaces, modules, keys of the
 *                          kernel, sockets that are neither IP nor local
 *      files               are made, written, renamed and deleted only below the places that are given
 *                          (Landlock); with is_strict also read only there, and where libraries must read
 *
 * There is no way back. What the kernel does not have is left out, and confine_state says so. Builds with
 * sanitizers keep what a sanitizer needs for its report: processes, tracing and memory.
 */
#ifndef MNEMON_RUN_CONFINE_H
#define MNEMON_RUN_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { CONFINE_PLACES_MAX = 512 };

/* Paths outlive the call. Those that are not there are passed over. */
struct confine {
    bool is_strict;
    const char *written[CONFINE_PLACES_MAX]; /* and read */
    size_t written_count;
    const char *read[CONFINE_PLACES_MAX]; /* of use with is_strict only */
    size_t read_count;
};

enum confine_files { CONFINE_FILES_ALL, CONFINE_FILES_WRITES, CONFINE_FILES_STRICT };

/* What holds now; all zeros: nothing does. */
struct confine_state {
    bool has_no_new_privileges;
    bool has_calls;           /* system calls are refused */
    enum confine_files files; /* CONFINE_FILES_ALL: the kernel has no Landlock */
};

/* Too many are passed over: the node could not use them then, and says so itself. */
void confine_add_written(struct confine *confine, const char *path);
void confine_add_read(struct confine *confine, const char *path);

/* ERR_IO, ERR_MEMORY: the process may be confined in part; the caller should not go on. */
enum err confine_process(const struct confine *confine, struct confine_state *ret_state,
                         struct err_detail *detail) MUST_CHECK;

/*
 * A process that only computes (parse/parse_process.h): no file, no descriptor, no socket, no process, no
 * program, no memory that is executable. Of system calls it keeps those for anonymous memory, for waiting and
 * for ending; any other ends it (SIGSYS). Its memory is bounded. All of its descriptors are closed. By its
 * only thread.
 */
enum { CONFINE_PARSER_MEMORY_MAX = 1 << 30 };
enum err confine_parser(struct err_detail *detail) MUST_CHECK;

/* The process that starts them: no file, no new privileges, no debugger. */
enum err confine_parser_host(struct err_detail *detail) MUST_CHECK;

#endif
