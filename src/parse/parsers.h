/*
 * parsers - the processes of a node in which foreign content is parsed.
 *
 *      parsers_start()    its host (parse_host.h), while the program has one thread and no key
 *      parsers_watch()    when threads may be started
 *      parse_seat.h       has jobs done
 *      parsers_stop()     when nobody has
 *
 * A parser is started when it is first needed. One that ends or takes too long costs the document at which it
 * was; those that wait in its queue are parsed by its successor, which is started at once, and later and
 * later if parsers keep ending.
 *
 * There are three groups, so that nobody waits for work of another kind: short documents that a reader waits
 * for; long ones; and work that gives way, as the crawl's. Each has config.count parsers at most.
 */
#ifndef MNEMON_PARSE_PARSERS_H
#define MNEMON_PARSE_PARSERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct parsers;

enum parse_group { PARSE_SHORT, PARSE_LONG, PARSE_LATER, PARSE_GROUPS_COUNT };

enum { PARSERS_COUNT_MAX = 32 }; /* of a group */

/* Executes this program anew, as its host. By the only thread; descriptors 3 and 4 of the new process are
 * set. */
enum err parsers_start(size_t count, struct parsers **ret_parsers, struct err_detail *detail) MUST_CHECK;

/* Waits until the host is ready. note: tells the operator something, a sentence; may be NULL. */
enum err parsers_watch(struct parsers *parsers, void (*note)(void *context, const char *sentence),
                       void *context, struct err_detail *detail) MUST_CHECK;

/* No job is under way. Parsers and host end. May be NULL. */
void parsers_stop(struct parsers *take_parsers);

struct parsers_stat {
    uint64_t count;         /* processes that run now, without the host */
    uint64_t jobs_count;    /* documents so far */
    uint64_t lost_count;    /* of them: not parsed, because the parser ended, or none could be had */
    uint64_t ended_count;   /* parsers that ended by themselves */
    uint64_t late_count;    /* parsers that were ended because they took too long */
    uint64_t refused_count; /* results that were not as they must be; their parsers were ended */
};

void parsers_stat(struct parsers *parsers, struct parsers_stat *ret_stat);

#endif
