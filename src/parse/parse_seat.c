#include "parse/parse_seat.h"

#include <string.h>

#include "base/assert.h"
#include "parse/parsers_state.h"

enum { HERE_PIECE_SIZE = 64 << 10, AWAIT_US = 1000000 };

void parse_seat_init(struct parse_seat *seat, struct parsers *parsers, enum parse_group group) {
    *seat = (struct parse_seat){.parsers = parsers, .group = group};
}

void parse_seat_done(struct parse_seat *seat) {
    for (size_t i = 0; i < PARSE_NUMBERS_COUNT; i++) {
        if (seat->states[i] != NULL) {
            seat->kinds[i]->free(seat->states[i]);
        }
    }
}

/* ---- what comes out, from wherever ---- */

static enum err seat_work(const struct parse_job *job, uint64_t size) {
    return job->work != NULL ? job->work(job->context, size) : ERR_OK;
}

static enum err seat_put(struct parse_job *job, struct bytes piece) {
    if (piece.size > job->out_size_max - job->out_size) {
        return ERR_LIMIT;
    }
    job->out_size += piece.size;
    enum err err = seat_work(job, piece.size);
    return err == ERR_OK ? job->put(job->context, piece) : err;
}

/* ---- in the thread itself ---- */

struct here_io {
    struct parse_io io; /* first */
    struct parse_job *job;
};

static enum err here_take(struct parse_io *io, struct bytes *ret_piece) {
    struct parse_job *job = ((struct here_io *)io)->job;
    size_t size = job->rest.size < HERE_PIECE_SIZE ? job->rest.size : HERE_PIECE_SIZE;
    *ret_piece = bytes_slice(job->rest, 0, size);
    job->rest = bytes_skip(job->rest, size);
    return seat_work(job, size);
}

static enum err here_put(struct parse_io *io, struct bytes piece) {
    return seat_put(((struct here_io *)io)->job, piece);
}

static enum err here_run(struct parse_seat *seat, struct parse_job *job) {
    enum parse_number number = job->kind->number;
    if (seat->states[number] == NULL) {
        seat->kinds[number] = job->kind;
        seat->states[number] = job->kind->make();
    }
    if (seat->states[number] == NULL) {
        return ERR_MEMORY;
    }
    struct here_io here;
    here.io.params = job->params;
    here.io.take = here_take;
    here.io.put = here_put;
    here.io.note_size = 0;
    here.job = job;
    enum err err = job->kind->run(seat->states[number], &here.io);
    job->note_size = here.io.note_size;
    memcpy(job->note, here.io.note, here.io.note_size);
    return err;
}

/* ---- in a parser ---- */

/* The next piece of the document into the slot. */
static void away_fill(struct parse_job *job, struct parse_slot *slot) {
    size_t size = job->rest.size < PARSE_IN_SIZE ? job->rest.size : PARSE_IN_SIZE;
    if (size > 0) {
        memcpy(slot->in, job->rest.data, size);
    }
    job->rest = bytes_skip(job->rest, size);
    atomic_store_explicit(&slot->in_size, (uint32_t)size, memory_order_relaxed);
    atomic_store_explicit(&slot->is_last, job->rest.size == 0, memory_order_relaxed);
}

static void away_fill_slot(struct parse_job *job, struct parser *parser, size_t index) {
    struct parse_slot *slot = &parser->area->slots[index];
    atomic_store_explicit(&slot->number, job->kind->number, memory_order_relaxed);
    atomic_store_explicit(&slot->params_size, (uint32_t)job->params.size, memory_order_relaxed);
    if (job->params.size > 0) {
        memcpy(slot->params, job->params.data, job->params.size);
    }
    away_fill(job, slot);
    job->parser = parser;
    job->slot = index;
    parser_submit(parser, index);
}

static bool away_fits(const struct parse_job *job) {
    return job->params.size <= PARSE_PARAMS_SIZE_MAX;
}

static void away_begin(struct parse_seat *seat, struct parse_job *job) {
    size_t index = 0;
    struct parser *parser =
        away_fits(job) ? parsers_take(seat->parsers, seat->group, seat->favourite, &index) : NULL;
    if (parser != NULL) {
        away_fill_slot(job, parser, index);
    }
}

/* False: all have their hands full. */
static bool away_try_begin(const struct parse_seat *seat, struct parse_job *job) {
    size_t index = 0;
    enum err err = ERR_LIMIT;
    struct parser *parser =
        away_fits(job) ? parsers_try_take(seat->parsers, seat->group, &index, &err) : NULL;
    if (parser != NULL) {
        away_fill_slot(job, parser, index);
    }
    return parser != NULL || err != ERR_BUSY;
}

enum away_step { AWAY_MORE, AWAY_DONE, AWAY_STOP, AWAY_NONSENSE };

/* What lies in the window, once its size is known to be one. */
static enum err away_take_output(struct parse_job *job, const struct parse_slot *slot, size_t size) {
    return size > 0 ? seat_put(job, bytes_of(slot->out, size)) : ERR_OK;
}

/* What a job can come to; all others are words of the node's own. */
static bool away_is_result(int32_t err) {
    return err == ERR_OK || err == ERR_MEMORY || err == ERR_LIMIT || err == ERR_INVALID ||
           err == ERR_TRUNCATED || err == ERR_UNSUPPORTED;
}

static enum away_step away_finish(struct parse_job *job, const struct parse_slot *slot, size_t out_size,
                                  enum err *ret_err) {
    uint32_t note_size = atomic_load_explicit(&slot->note_size, memory_order_relaxed);
    int32_t err = atomic_load_explicit(&slot->err, memory_order_relaxed);
    if (note_size > PARSE_NOTE_SIZE_MAX || !away_is_result(err)) {
        return AWAY_NONSENSE;
    }
    memcpy(job->note, slot->note, note_size);
    job->note_size = note_size;
    enum err put = away_take_output(job, slot, out_size);
    *ret_err = put != ERR_OK ? put : (enum err)err;
    return AWAY_DONE;
}

/* It is the node's turn: what does the parser want? */
static enum away_step away_step(struct parse_job *job, struct parse_slot *slot, enum err *ret_err) {
    uint32_t reply = atomic_load_explicit(&slot->reply, memory_order_relaxed);
    uint32_t out_size = atomic_load_explicit(&slot->out_size, memory_order_relaxed);
    bool has_output = reply == PARSE_HAS_OUTPUT || reply == PARSE_HAS_ENDED;
    if (has_output && (out_size > PARSE_OUT_SIZE || (out_size > 0 && job->put == NULL))) {
        return AWAY_NONSENSE;
    }
    switch (reply) {
    case PARSE_HAS_ENDED:
        return away_finish(job, slot, out_size, ret_err);
    case PARSE_HAS_OUTPUT:
        *ret_err = away_take_output(job, slot, out_size);
        return out_size == 0 ? AWAY_NONSENSE : *ret_err == ERR_OK ? AWAY_MORE : AWAY_STOP;
    case PARSE_WANTS_INPUT:
        if (job->rest.size == 0) {
            return AWAY_NONSENSE;
        }
        *ret_err = seat_work(job, job->rest.size < PARSE_IN_SIZE ? job->rest.size : PARSE_IN_SIZE);
        if (*ret_err != ERR_OK) {
            return AWAY_STOP;
        }
        away_fill(job, slot);
        return AWAY_MORE;
    default:
        return AWAY_NONSENSE;
    }
}

/* As many turns as there are now. False: it is the parser's. */
static bool away_go_on(struct parse_job *job, enum err *ret_err) {
    struct parser *parser = job->parser;
    enum away_step step = job->is_lost ? AWAY_NONSENSE : AWAY_MORE;
    while (step == AWAY_MORE && parser_is_turn(parser, job->slot)) {
        step = parser_take_turn(parser, job->slot) ? away_step(job, &parser->area->slots[job->slot], ret_err)
                                                   : AWAY_NONSENSE;
        if (step == AWAY_MORE && !parser_pass(parser, job->slot)) {
            step = AWAY_NONSENSE;
        }
    }
    switch (step) {
    case AWAY_MORE:
        return false;
    case AWAY_DONE:
        parser_free(parser, job->slot);
        return true;
    case AWAY_STOP:
        parser_abandon(parser, job->slot);
        return true;
    case AWAY_NONSENSE:
        *ret_err = parser_refuse(parser, job->slot);
        return true;
    }
    return true;
}

static void away_await(struct parse_job *job, uint32_t timeout_us) {
    if (!parser_is_turn(job->parser, job->slot)) {
        job->is_lost = !parser_await(job->parser, job->slot, timeout_us);
    }
}

/* No parser has it. */
static enum err away_refuse(const struct parse_seat *seat, const struct parse_job *job) {
    if (!away_fits(job)) {
        return ERR_LIMIT;
    }
    atomic_fetch_add(&seat->parsers->jobs_count, 1);
    atomic_fetch_add(&seat->parsers->lost_count, 1);
    return ERR_UNREACHABLE;
}

/* ---- */

static void seat_start(struct parse_job *job) {
    job->rest = job->document;
    job->out_size = 0;
    job->note_size = 0;
    job->parser = NULL;
    job->is_lost = false;
}

void parse_begin(struct parse_seat *seat, struct parse_job *job) {
    seat_start(job);
    if (seat->parsers != NULL) {
        away_begin(seat, job);
    }
}

enum err parse_end(struct parse_seat *seat, struct parse_job *job) {
    if (seat->parsers == NULL) {
        return here_run(seat, job);
    }
    if (job->parser == NULL) {
        return away_refuse(seat, job);
    }
    enum err err = ERR_OK;
    while (!away_go_on(job, &err)) {
        away_await(job, AWAIT_US);
    }
    return err;
}

bool parse_is_ready(const struct parse_job *job) {
    return job->parser == NULL || parser_is_turn(job->parser, job->slot);
}

void parse_await(struct parse_job *job) {
    while (!parse_is_ready(job) && !job->is_lost) {
        away_await(job, AWAIT_US);
    }
}

void parse_hurry(const struct parse_job *job) {
    if (job->parser != NULL) {
        parser_wake(job->parser);
    }
}

enum err parse_run(struct parse_seat *seat, struct parse_job *job) {
    parse_begin(seat, job);
    return parse_end(seat, job);
}

/* ---- for a thread that goes on ---- */

void parse_set_out(struct parse_seat *seat, struct parse_job *job) {
    ASSERT(seat->parsers != NULL);
    seat_start(job);
    job->is_refused = away_try_begin(seat, job) && job->parser == NULL;
}

bool parse_go_on(struct parse_seat *seat, struct parse_job *job, enum err *ret_err) {
    *ret_err = ERR_OK;
    if (job->parser == NULL && !job->is_refused) {
        job->is_refused = away_try_begin(seat, job) && job->parser == NULL;
    }
    if (job->is_refused) {
        *ret_err = away_refuse(seat, job);
        return true;
    }
    return job->parser != NULL && away_go_on(job, ret_err);
}

void parse_await_for(struct parse_seat *seat, struct parse_job *job, uint32_t timeout_us) {
    if (job->parser != NULL) {
        away_await(job, timeout_us);
    } else {
        parsers_await_room(seat->parsers, timeout_us);
    }
}
