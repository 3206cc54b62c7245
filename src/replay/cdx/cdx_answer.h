/*
 * cdx_answer - the answer to one CDX request, made piece by piece.
 *
 * A piece is some milliseconds of work and a bounded number of bytes, so that others are served in between
 * and a long answer takes no more memory than a short one. What is asked for may take a minute in all, then
 * the answer ends with its resume key if one was asked for, and with ERR_TIMEOUT if not: a list that is
 * not whole must not look as if it were. For the same reason a list of which the client was not told at its
 * start that somebody does not answer is broken off when that happens later.
 *
 * Belongs to one thread at a time; holds its reader, and with it a view of the index, until it is freed.
 */
#ifndef MNEMON_REPLAY_CDX_CDX_ANSWER_H
#define MNEMON_REPLAY_CDX_CDX_ANSWER_H

#include "base/clock.h"
#include "replay/cdx/cdx_run.h"

enum { CDX_ANSWER_TIME_MAX_S = 60 };

struct cdx_answer;

/*
 * The text is that behind "?", the origin "http://HOST" as the client knows it; both are copied. ERR_INVALID
 * with a sentence for the client. *ret_is_json: whether the client wants JSON, on failure too.
 */
enum err cdx_answer_new(struct archive *archive, const struct clock *clock, enum cdx_dialect dialect,
                        struct bytes text, struct bytes origin, struct cdx_answer **ret_answer,
                        bool *ret_is_json, struct err_detail *detail) MUST_CHECK;
void cdx_answer_free(struct cdx_answer *answer);

const char *cdx_answer_type(const struct cdx_answer *answer);

/*
 * Work for a while. Afterwards cdx_answer_bytes() has what is new, maybe nothing. ERR_LIMIT: a regular
 * expression is too much work; ERR_TIMEOUT; errors of the archive.
 */
enum err cdx_answer_work(struct cdx_answer *answer, struct err_detail *detail) MUST_CHECK;

/* It will last as long as the client takes to read it. False if too many do so already. */
bool cdx_answer_hold(struct cdx_answer *answer) MUST_CHECK;

/* What was made and not yet consumed. */
struct bytes cdx_answer_bytes(const struct cdx_answer *answer);
void cdx_answer_consume(struct cdx_answer *answer, size_t size);

/*
 * Who did not answer so far. From cdx_answer_mark() on the client knows that the list may lack something;
 * without it, work ends with ERR_UNREACHABLE as soon as somebody does not answer behind the first piece.
 */
const struct absent *cdx_answer_absent(const struct cdx_answer *answer);
void cdx_answer_mark(struct cdx_answer *answer);

/* There is not a single line in it, and nothing more will come. */
bool cdx_answer_is_empty(const struct cdx_answer *answer);

/* Nothing more will come. */
bool cdx_answer_is_over(const struct cdx_answer *answer);

#endif
