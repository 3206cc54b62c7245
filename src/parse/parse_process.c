#include "parse/parse_process.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "run/confine.h"
#include "run/priority.h"

enum { EXIT_NOT_CONFINED = 3 };

struct parse_process {
    struct parse_area *area;
    const struct parse_kinds *kinds;
    void *states[PARSE_NUMBERS_COUNT];
};

/* The job that is being done. */
struct parse_turns {
    struct parse_io io; /* first */
    struct parse_slot *slot;
    bool is_taken;   /* what is in slot->in */
    size_t out_size; /* gathered in slot->out */
};

/* ---- the document and what becomes of it ---- */

static void turns_give(struct parse_slot *slot, enum parse_reply reply) {
    atomic_store_explicit(&slot->reply, reply, memory_order_relaxed);
    atomic_store(&slot->turn, PARSE_TURN_NODE);
    if (atomic_exchange(&slot->is_waited, 0) != 0) {
        parse_area_wake(&slot->turn);
    }
}

/* ERR_CANCELLED: the node wants no more of it. */
static enum err turns_pass(struct parse_turns *turns, enum parse_reply reply) {
    struct parse_slot *slot = turns->slot;
    turns_give(slot, reply);
    while (atomic_load(&slot->turn) != PARSE_TURN_PARSER) {
        atomic_store(&slot->is_waited, 1);
        parse_area_wait(&slot->turn, PARSE_TURN_NODE, 0);
    }
    return atomic_load(&slot->order) == PARSE_GO_ON ? ERR_OK : ERR_CANCELLED;
}

static enum err turns_take(struct parse_io *io, struct bytes *ret_piece) {
    struct parse_turns *turns = (struct parse_turns *)io;
    struct parse_slot *slot = turns->slot;
    bool is_last = slot->is_last != 0;
    enum err err = ERR_OK;
    if (turns->is_taken && !is_last) {
        err = turns_pass(turns, PARSE_WANTS_INPUT);
        turns->is_taken = false;
    }
    *ret_piece = bytes_of(slot->in, turns->is_taken ? 0 : slot->in_size);
    turns->is_taken = true;
    return err;
}

static enum err turns_flush(struct parse_turns *turns) {
    atomic_store_explicit(&turns->slot->out_size, (uint32_t)turns->out_size, memory_order_relaxed);
    turns->out_size = 0;
    return turns_pass(turns, PARSE_HAS_OUTPUT);
}

static enum err turns_put(struct parse_io *io, struct bytes piece) {
    struct parse_turns *turns = (struct parse_turns *)io;
    enum err err = ERR_OK;
    while (piece.size > 0 && err == ERR_OK) {
        size_t room = PARSE_OUT_SIZE - turns->out_size;
        size_t size = piece.size < room ? piece.size : room;
        memcpy(turns->slot->out + turns->out_size, piece.data, size);
        turns->out_size += size;
        piece = bytes_skip(piece, size);
        err = turns->out_size == PARSE_OUT_SIZE ? turns_flush(turns) : ERR_OK;
    }
    return err;
}

/* ---- jobs ---- */

static enum err process_run_job(struct parse_process *process, struct parse_turns *turns) {
    uint32_t number = turns->slot->number;
    const struct parse_kind *kind = number < PARSE_NUMBERS_COUNT ? process->kinds->items[number] : NULL;
    if (kind == NULL) {
        return ERR_UNSUPPORTED;
    }
    if (process->states[number] == NULL) {
        process->states[number] = kind->make();
    }
    return process->states[number] != NULL ? kind->run(process->states[number], &turns->io) : ERR_MEMORY;
}

/* What is still in the window goes with the last reply. */
static void process_do(struct parse_process *process, struct parse_slot *slot) {
    struct parse_turns turns;
    turns.io.params = bytes_of(slot->params, slot->params_size);
    turns.io.take = turns_take;
    turns.io.put = turns_put;
    turns.io.note_size = 0;
    turns.slot = slot;
    turns.is_taken = false;
    turns.out_size = 0;
    atomic_store_explicit(&slot->reply, PARSE_AT_WORK, memory_order_relaxed);
    enum err err = process_run_job(process, &turns);
    memcpy(slot->note, turns.io.note, turns.io.note_size);
    atomic_store_explicit(&slot->note_size, (uint32_t)turns.io.note_size, memory_order_relaxed);
    atomic_store_explicit(&slot->err, (int32_t)err, memory_order_relaxed);
    atomic_store_explicit(&slot->out_size, (uint32_t)turns.out_size, memory_order_relaxed);
    turns_give(slot, PARSE_HAS_ENDED);
}

_Noreturn void parse_process_run(struct parse_area *area, const struct parse_kinds *kinds, bool gives_way) {
    struct parse_process process = {.area = area, .kinds = kinds};
    uint32_t done = 0;
    prctl(PR_SET_NAME, "parser", 0, 0, 0);
    if (gives_way) {
        priority_lower(PRIORITY_LATER);
    } else {
        priority_set_turns(PRIORITY_SHORT_TURNS);
    }
    if (confine_parser(NULL) != ERR_OK) {
        _exit(EXIT_NOT_CONFINED);
    }
    for (;;) {
        while (atomic_load(&area->submitted) == done) {
            atomic_store(&area->is_asleep, 1);
            parse_area_wait(&area->submitted, done, 0);
            atomic_store(&area->is_asleep, 0);
        }
        uint32_t slot = area->queue[done++ % PARSE_SLOTS];
        process_do(&process, &area->slots[slot % PARSE_SLOTS]);
        if (gives_way) {
            priority_yield();
        }
    }
}
