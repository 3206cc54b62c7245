/*
 * parse_process - what a parser does, for good: it takes jobs out of the memory that it shares with its node
 * (parse_area.h), and does nothing else. It has no descriptors; of system calls it has those for memory, for
 * waiting and for ending (run/confine.h).
 */
#ifndef MNEMON_PARSE_PARSE_PROCESS_H
#define MNEMON_PARSE_PARSE_PROCESS_H

#include <stdbool.h>

#include "parse/parse_area.h"

/* What it knows to do, by number; NULL: nothing. */
struct parse_kinds {
    const struct parse_kind *items[PARSE_NUMBERS_COUNT];
};

/* The process is a parser from here on: does not return. gives_way: it runs when others do not. */
_Noreturn void parse_process_run(struct parse_area *area, const struct parse_kinds *kinds, bool gives_way);

#endif
