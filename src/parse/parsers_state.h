/*
 * parsers_state - what is inside a struct parsers: parsers.c starts, watches and ends them, parse_seat.c
 * passes jobs in and out. Private to them.
 */
#ifndef MNEMON_PARSE_PARSERS_STATE_H
#define MNEMON_PARSE_PARSERS_STATE_H

#include <pthread.h>
#include <stdbool.h>

#include "parse/parse_area.h"
#include "parse/parsers.h"
#include "run/bell.h"
#include "run/loop.h"

/* The node's own knowledge of a slot. */
struct parser_slot {
    bool is_used;
    bool is_lost;      /* its parser has ended in the midst of it */
    bool is_abandoned; /* nobody waits for it any more; free as soon as the parser has done with it */
    unsigned deaths_count;
};

struct parser {
    struct parsers *parsers;
    size_t index;
    struct parse_area *area;
    _Atomic uint64_t progress_us; /* when it was last seen to do something */
    pthread_mutex_t lock;         /* of all below */
    struct parser_slot slots[PARSE_SLOTS];
    size_t used_count;
    size_t abandoned_count; /* of them */
    uint32_t submitted;
    bool is_running; /* or is being started */
    bool is_late;    /* it was told to end */
    uint64_t started_us;
    uint64_t due_us;       /* not started before */
    uint32_t deaths_count; /* in a row, each soon after its start */
};

struct parsers {
    size_t count; /* of a group */
    size_t all_count;
    uint64_t late_us; /* a parser that is silent for so long is ended */
    int fd;           /* to the host */
    int host;
    void *memory;
    struct parser *items; /* the groups, one behind the other */
    struct bell freed;    /* a slot */
    struct loop loop;
    bool has_loop;
    bool has_poll;
    uv_poll_t poll;
    struct loop_timer look;
    _Atomic bool is_hostless; /* the host has ended: nothing can be parsed any more */
    void (*note)(void *context, const char *sentence);
    void *context;
    _Atomic uint64_t jobs_count;
    _Atomic uint64_t lost_count;
    _Atomic uint64_t ended_count;
    _Atomic uint64_t late_count;
    _Atomic uint64_t refused_count;
};

/*
 * A parser of the group and a slot of it, for a new job; waits while all are in use. NULL: none can be had
 * now.
 */
struct parser *parsers_take(struct parsers *parsers, enum parse_group group, size_t favourite,
                            size_t *ret_slot);

/* Likewise, without waiting. NULL and ERR_BUSY: all are in use; NULL and ERR_UNREACHABLE: none can be had. */
struct parser *parsers_try_take(struct parsers *parsers, enum parse_group group, size_t *ret_slot,
                                enum err *ret_err);

/* Until a slot may be free, no longer than this. */
void parsers_await_room(struct parsers *parsers, uint32_t timeout_us);

/* The slot is filled: the parser may begin, once it is awake. */
void parser_submit(struct parser *parser, size_t slot);

/* Back to the parser, which is in the midst of it. False: it has ended. */
bool parser_pass(struct parser *parser, size_t slot);

/* It sleeps if it had nothing to do. */
void parser_wake(struct parser *parser);

/* Is it not the parser's turn? */
bool parser_is_turn(const struct parser *parser, size_t slot);

/* Is it the node's turn? Then that counts as progress. False: what is there is no turn. */
bool parser_take_turn(struct parser *parser, size_t slot);

/* Wait for the turn, no longer than this. False: it will not come, the parser has ended. */
bool parser_await(struct parser *parser, size_t slot, uint32_t timeout_us);

/* The job is done. */
void parser_free(struct parser *parser, size_t slot);

/* Nobody wants the rest of it. */
void parser_abandon(struct parser *parser, size_t slot);

/*
 * It has ended, ERR_CLOSED; or what it says is not what a parser says, ERR_CORRUPT: then it is ended. The
 * slot is free.
 */
enum err parser_refuse(struct parser *parser, size_t slot);

#endif
