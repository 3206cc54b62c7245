/*
 * links_state - what links_code.c guesses with: a coder (links_coder.c), a model that learns (links_model.c),
 * a table that does not (links_table.c), and the text that both come from (links_text.c). Private to them.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINKS_STATE_H
#define MNEMON_PROTOCOL_LINKS_LINKS_STATE_H

#include "base/arena.h"
#include "protocol/links/links_code.h"

/* ---- links_coder.c ---- */

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

/* The bytes that are certain now. */
void links_coder_shift(struct links_coder *coder);

/* One bit, a one with the probability given of 4,096 (1 to 4,095). Returns it; a decoder does not read the
 * argument. */
static inline uint32_t links_coder_bit(struct links_coder *coder, uint32_t probability, uint32_t value) {
    uint32_t middle = coder->low + (uint32_t)(((uint64_t)(coder->high - coder->low) * probability) >> 12);
    if (coder->in != NULL) {
        value = coder->value <= middle;
    }
    if (value) {
        coder->high = middle;
    } else {
        coder->low = middle + 1;
    }
    if ((coder->low ^ coder->high) >> 24 == 0) {
        links_coder_shift(coder);
    }
    return value;
}

/* The rest of the number: as few bytes as it takes. False if it did not fit. */
bool links_coder_flush(struct links_coder *coder);

/* Were more bytes read than an encoder leaves out? */
static inline bool links_coder_is_overrun(const struct links_coder *coder) {
    return coder->position > coder->size + 4;
}

/* ---- links_model.c ---- */

enum {
    LINKS_MODEL_SYMBOL_BITS = 7,
    LINKS_MODEL_SYMBOLS = 1 << LINKS_MODEL_SYMBOL_BITS,
    LINKS_MODEL_CONTEXTS = 6,
    LINKS_MODEL_INPUTS = LINKS_MODEL_CONTEXTS + 1, /* and a constant */
};

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

/* ---- links_table.c ---- */

enum {
    LINKS_TABLE_SYMBOL_BITS = 7,
    LINKS_TABLE_SYMBOLS = 1 << LINKS_TABLE_SYMBOL_BITS,
    LINKS_TABLE_KINDS = 4
};

/* NULL: out of memory. */
struct links_table *links_table_new(void);
void links_table_free(struct links_table *table);

/* Code one symbol behind the characters given (the last one in the lowest byte; 0: none). Returns it; a
 * decoder does not read the argument. */
uint8_t links_table_character(const struct links_table *table, struct links_coder *coder, uint32_t last,
                              uint8_t symbol);

/* Likewise a number of some kind, below LINKS_TABLE_KINDS, and learn it until the next forget. */
uint8_t links_table_number(struct links_table *table, struct links_coder *coder, uint32_t kind,
                           uint8_t symbol);
void links_table_forget(struct links_table *table);

/* ---- links_text.c ---- */

extern const char *const links_text[];
extern const size_t links_text_count;

#endif
