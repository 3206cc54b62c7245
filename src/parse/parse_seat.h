/*
 * parse_seat - where a thread has documents parsed: in a parser of its node (parsers.h), or, without parsers,
 * in the thread itself by the same functions. What comes out is the same.
 *
 *      parse_begin(seat, &job)     hands it over; the thread can do something else meanwhile
 *      parse_end(seat, &job, …)    passes the pieces in and out until it is done
 *
 * A seat has one thread at a time; without parsers, one job at a time. What comes back was made by a process
 * that may be in the hands of whoever wrote the document: put() and the note have to be read as if that
 * person had sent them.
 */
#ifndef MNEMON_PARSE_PARSE_SEAT_H
#define MNEMON_PARSE_PARSE_SEAT_H

#include <stdbool.h>

#include "parse/parse_job.h"
#include "parse/parsers.h"

struct parser;

struct parse_seat {
    struct parsers *parsers; /* NULL: in the thread itself */
    enum parse_group group;
    size_t favourite;                  /* the parser of the group that is asked first, if it has room */
    void *states[PARSE_NUMBERS_COUNT]; /* in the thread itself, once they were needed */
    const struct parse_kind *kinds[PARSE_NUMBERS_COUNT];
};

/* Slices are borrowed until parse_end(). */
struct parse_job {
    const struct parse_kind *kind;
    struct bytes params;
    struct bytes document;
    uint64_t out_size_max; /* more is ERR_LIMIT */
    /* The next piece. Its bytes may change while it is read: copy them first. NULL: none is wanted, it is an
     * error */
    enum err (*put)(void *context, struct bytes piece);
    /* So much more was taken in or came out; an error ends the job with it. May be NULL. */
    enum err (*work)(void *context, uint64_t size);
    void *context;

    size_t note_size;
    uint8_t note[PARSE_NOTE_SIZE_MAX];

    /* The seat's. */
    struct parser *parser; /* NULL: none has it */
    size_t slot;
    bool is_lost;    /* the parser has ended, and no turn will come */
    bool is_refused; /* of parse_set_out(): none can have it */
    struct bytes rest;
    uint64_t out_size;
};

void parse_seat_init(struct parse_seat *seat, struct parsers *parsers, enum parse_group group);
void parse_seat_done(struct parse_seat *seat);

/* Does not wait, unless all parsers of the group have their hands full. */
void parse_begin(struct parse_seat *seat, struct parse_job *job);

/*
 * What the job says; ERR_CLOSED: its parser ended or was ended, and nothing of the document is known;
 * ERR_CORRUPT: what the parser said makes no sense; ERR_UNREACHABLE: there is none at the moment; errors of
 * put() and work().
 */
enum err parse_end(struct parse_seat *seat, struct parse_job *job) MUST_CHECK;

/* Would parse_end() go on without waiting? */
bool parse_is_ready(const struct parse_job *job);

/* Until it would. */
void parse_await(struct parse_job *job);

/* A parser that sleeps is woken by parse_end(); or by this, to begin before. */
void parse_hurry(const struct parse_job *job);

/* Begin and end. */
enum err parse_run(struct parse_seat *seat, struct parse_job *job) MUST_CHECK;

/*
 * For a thread that must not wait, with parsers:
 *
 *      parse_set_out(seat, &job)      as parse_begin(), but if all parsers have their hands full it begins
 * later parse_go_on(seat, &job, …)     now and then: as far as it goes; true once it is at its end
 *      parse_await_for(seat, &job)    if there is nothing else to do
 */
void parse_set_out(struct parse_seat *seat, struct parse_job *job);

/* True: it has ended, and *ret_err is as parse_end() has it. */
bool parse_go_on(struct parse_seat *seat, struct parse_job *job, enum err *ret_err);

/* Until it may go on, but no longer than this; may return for nothing. A parser that sleeps is woken. */
void parse_await_for(struct parse_seat *seat, struct parse_job *job, uint32_t timeout_us);

/* Was the document not parsed for want of a parser, whatever is in it? */
static inline bool parse_is_lost(enum err err) {
    return err == ERR_CLOSED || err == ERR_CORRUPT || err == ERR_UNREACHABLE;
}

#endif
