/*
 * links_table - how likely the next bit of a list of URLs is, by a table: for the many links of a full
 * message.
 *
 * The model of links_model.h learns while it codes, and mixes what six contexts say of every bit: 0.1 us for
 * each. A message that is full anyway need not be so small. Here a character is guessed from the two before
 * it, by what followed them in the text of links_text.c; nothing is learnt but the numbers. A tenth of the
 * time, 10 to 19 bytes a link instead of 5 to 13.
 *
 *      pair of characters ──> probabilities[127], a tree of the 7 bits of what follows
 *
 * A pair that the text does not have is guessed as its second character alone is. Integers only; the table is
 * part of the protocol (docs/protocol/links.md).
 *
 * About 560 KiB, allocated once. One thread at a time.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINKS_TABLE_H
#define MNEMON_PROTOCOL_LINKS_LINKS_TABLE_H

#include "protocol/links/links_coder.h"

enum {
    LINKS_TABLE_SYMBOL_BITS = 7,
    LINKS_TABLE_SYMBOLS = 1 << LINKS_TABLE_SYMBOL_BITS,
    LINKS_TABLE_KINDS = 4
};

struct links_table;

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

#endif
