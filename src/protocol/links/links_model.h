/*
 * links_model - how likely the next bit of a list of URLs is, for the few links of a small message.
 *
 * Ten links in a datagram are too few to learn from, so the model comes with what it has learnt from the text
 * in links_text.c. The same text, the same arithmetic (integers only), the same bits on every machine: the
 * model is part of the protocol (docs/protocol/links.md).
 *
 *      symbol (7 bits) ── bit by bit ──> six contexts: probability, how often seen
 *                                        mixed in the logistic domain, weights that learn ──> coder
 *
 * Contexts lie in tables by hash, with a check of 8 bits: what another one has taken counts as never seen.
 * After a message the model forgets it: what was touched is written down and put back.
 *
 * About 7 MiB, allocated once. One thread at a time.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINKS_MODEL_H
#define MNEMON_PROTOCOL_LINKS_LINKS_MODEL_H

#include "protocol/links/links_coder.h"

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
