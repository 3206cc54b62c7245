/*
 * links_model - how likely the next bit of a list of URLs is, and an arithmetic coder that spends no more on
 * it.
 *
 * Ten links in a datagram are too few to learn from, so the model comes with what it has learnt from the text
 * in links_text.c. The same text, the same arithmetic (integers only), the same bits on every machine: the
 * model is part of the protocol (docs/protocol/together.md).
 *
 *      symbol (7 bits) ── bit by bit ──> six contexts: probability, how often seen
 *                                        mixed in the logistic domain, weights that learn ──> coder
 *
 * Contexts lie in tables by hash, with a check of 8 bits: what another one has taken counts as never seen.
 * After a message the model forgets it: what was touched is written down and put back.
 *
 * About 7 MiB, allocated once. One thread at a time.
 */
#ifndef MNEMON_RING_LINKS_MODEL_H
#define MNEMON_RING_LINKS_MODEL_H

#include "base/bytes.h"
#include "base/err.h"

enum {
    LINKS_MODEL_SYMBOL_BITS = 7,
    LINKS_MODEL_SYMBOLS = 1 << LINKS_MODEL_SYMBOL_BITS,
    LINKS_MODEL_CONTEXTS = 6,
    LINKS_MODEL_INPUTS = LINKS_MODEL_CONTEXTS + 1, /* and a constant */
};

struct links_model;

/* Learns the text of links_text.c. NULL: out of memory. */
struct links_model *links_model_new(void);
void links_model_free(struct links_model *model);

/* ---- coder ---- */

/* Decoding reads zeros behind the end, as the encoder leaves them out. */
struct links_coder {
    uint32_t low;
    uint32_t high;
    uint32_t value;    /* decoder */
    const uint8_t *in; /* NULL: it encodes */
    uint8_t *out;
    size_t size;     /* of in, or the room at out */
    size_t position; /* bytes read or written; above size: it did not fit */
};

void links_coder_encode(struct links_coder *coder, uint8_t *out, size_t size);
void links_coder_decode(struct links_coder *coder, struct bytes in);

/* The rest of the number: as few bytes as it takes. False where it did not fit. */
bool links_coder_flush(struct links_coder *coder);

/* Were more bytes read than an encoder leaves out? */
static inline bool links_coder_is_overrun(const struct links_coder *coder) {
    return coder->position > coder->size + 4;
}

/* ---- symbols ---- */

/* Code one symbol (below LINKS_MODEL_SYMBOLS) in the contexts given, and learn it. Returns it; a decoder does
 * not read the argument. */
uint8_t links_model_code(struct links_model *model, struct links_coder *coder,
                         const uint32_t contexts[LINKS_MODEL_CONTEXTS], uint8_t symbol);

/* Learn, and spend nothing. */
void links_model_learn(struct links_model *model, const uint32_t contexts[LINKS_MODEL_CONTEXTS],
                       uint8_t symbol);

/* What was learnt so far is what links_model_forget() goes back to. */
void links_model_keep(struct links_model *model);
void links_model_forget(struct links_model *model);

#endif
