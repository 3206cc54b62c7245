/*
 * parse_host - the process that starts parsers, for a node that cannot do so itself: it has keys in its
 * memory, and gave up making processes (run/confine.h).
 *
 * It is this program, executed anew by a node that starts: so neither it nor the parsers, which are forks of
 * it, ever had anything of the node's memory, nor know where anything lies in it. It reads nothing foreign:
 * orders of the node are a byte and a number.
 *
 *      node  ── PARSE_HOST_START i, PARSE_HOST_KILL i ──>  host  ── fork ──>  parser i
 *            <── PARSE_HOST_READY ───────────────────────
 *            <── PARSE_HOST_ENDED i, status ─────────────        <── ends ──
 *
 * It ends with the node, and its parsers end with it.
 */
#ifndef MNEMON_PARSE_PARSE_HOST_H
#define MNEMON_PARSE_PARSE_HOST_H

#include "parse/parse_process.h"

/* "mnemon parser-host COUNT FIRST": the first word, which main() passes on to parse_host_main(). */
#define PARSE_HOST_WORD "parser-host"

enum { PARSE_HOST_SOCKET = 3, PARSE_HOST_MEMORY = 4 }; /* its descriptors */

enum parse_host_kind { PARSE_HOST_START, PARSE_HOST_KILL, PARSE_HOST_ENDED, PARSE_HOST_READY };

/* In both directions. */
struct parse_host_message {
    uint32_t kind;
    uint32_t index;
    int32_t status; /* of waitpid() */
};

/*
 * argv: COUNT parsers, of which those from FIRST on give way. Returns when the node has gone; an exit status.
 */
int parse_host_main(int argc, char **argv, const struct parse_kinds *kinds);

#endif
