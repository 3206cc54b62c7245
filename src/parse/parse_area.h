/*
 * parse_area - the memory that a node and one of its parsers share.
 *
 *      node                                                      parser
 *        slot: params, first piece of the document
 *        queue[submitted++ % SLOTS] = slot     ──────────>        sleeps, if there is nothing
 *                                                                 runs the job
 *        turn == NODE: output, or asks for more  <──────────      reply, turn = NODE, waits
 *        order, next piece, turn = PARSER        ──────────>      goes on
 *        turn == NODE: done, note                <──────────      next job
 *
 * A slot belongs to the side whose turn it is. Whoever waits says so (is_waited, is_asleep), so that the
 * other makes a system call only then: while there are jobs in the queue, none is made for them.
 *
 * The parser can write all of it, whatever the turn: to the node, everything here that it has not written
 * itself this moment is hostile. It reads each number once, checks it, and copies bytes before it looks at
 * them.
 */
#ifndef MNEMON_PARSE_PARSE_AREA_H
#define MNEMON_PARSE_PARSE_AREA_H

#include <stdatomic.h>

#include "parse/parse_job.h"

enum {
    PARSE_SLOTS = 16,
    PARSE_IN_SIZE = 128 << 10,
    PARSE_OUT_SIZE = 256 << 10,
};

enum parse_turn { PARSE_TURN_NOBODY, PARSE_TURN_PARSER, PARSE_TURN_NODE };
enum parse_order { PARSE_GO_ON, PARSE_GIVE_UP };
enum parse_reply { PARSE_NOT_BEGUN, PARSE_AT_WORK, PARSE_WANTS_INPUT, PARSE_HAS_OUTPUT, PARSE_HAS_ENDED };

struct parse_slot {
    /* Of both: what is waited for. */
    _Atomic uint32_t turn; /* enum parse_turn */
    _Atomic uint32_t is_waited;

    /* Of the node. */
    _Atomic uint32_t number; /* enum parse_number */
    _Atomic uint32_t order;  /* enum parse_order */
    _Atomic uint32_t params_size;
    _Atomic uint32_t in_size;
    _Atomic uint32_t is_last; /* nothing follows what is in `in` */

    /* Of the parser. */
    _Atomic uint32_t reply; /* enum parse_reply */
    _Atomic uint32_t out_size;
    _Atomic uint32_t note_size;
    _Atomic int32_t err; /* enum err */

    uint8_t note[PARSE_NOTE_SIZE_MAX];
    uint8_t in[PARSE_IN_SIZE];
    uint8_t out[PARSE_OUT_SIZE];
    uint8_t params[PARSE_PARAMS_SIZE_MAX];
};

struct parse_area {
    _Alignas(64) _Atomic uint32_t submitted; /* jobs so far; what the parser sleeps on */
    _Atomic uint32_t is_asleep;
    _Atomic uint32_t queue[PARSE_SLOTS]; /* numbers of slots */
    _Alignas(4096) struct parse_slot slots[PARSE_SLOTS];
};

/* Rounded up to whole pages. */
enum { PARSE_AREA_SIZE = (sizeof(struct parse_area) + 4095) / 4096 * 4096 };

/* Until the word is another one, or for no longer than that; may return for nothing. 0: for ever. */
void parse_area_wait(_Atomic uint32_t *word, uint32_t value, uint32_t timeout_us);
void parse_area_wake(_Atomic uint32_t *word);

#endif
