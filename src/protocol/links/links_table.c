/*
 * links_table - how likely the next bit of a list of URLs is, by a table: for the many links of a full
 * message.
 *
 * The model of links_model.c learns while it codes, and mixes what six contexts say of every bit: 0.1 us for
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
#include "protocol/links/links_state.h"

enum {
    CHARACTERS = 95, /* 0x21 to 0x7e, and 0: none, or the end */
    PAIRS_COUNT = CHARACTERS * CHARACTERS,
    PAIRS_MAX = 2048, /* that the text has: 1,182 */
    PROBABILITY_ONE = 4096,
    PROBABILITY_HALF = PROBABILITY_ONE / 2,
    SHARE_ONE = 1 << 14, /* all symbols of a context together */
    LEARN_SHIFT = 3,     /* a number comes again or not: an eighth of the way at once */
};

/* Probability of a one, in the order of a heap: bit 6 of the symbol at 1. */
struct tree {
    uint16_t nodes[LINKS_TABLE_SYMBOLS];
};

struct links_table {
    struct arena arena;                        /* itself */
    uint16_t of_pair[PAIRS_COUNT];             /* which of the trees */
    struct tree trees[CHARACTERS + PAIRS_MAX]; /* of single characters, then of pairs */
    struct tree numbers[LINKS_TABLE_KINDS];
};

/* ---- symbols ---- */

static uint32_t table_index_of(uint8_t character) {
    return character == 0 ? 0 : (uint32_t)character - 0x20;
}

static uint32_t pair_of(uint32_t last) {
    return table_index_of(last >> 8 & 0xff) * CHARACTERS + table_index_of(last & 0xff);
}

uint8_t links_table_character(const struct links_table *table, struct links_coder *coder, uint32_t last,
                              uint8_t symbol) {
    const struct tree *tree = &table->trees[table->of_pair[pair_of(last)]];
    uint32_t path = 1;
    for (int shift = LINKS_TABLE_SYMBOL_BITS - 1; shift >= 0; shift--) {
        path = path << 1 | links_coder_bit(coder, tree->nodes[path], symbol >> shift & 1);
    }
    return (uint8_t)(path & (LINKS_TABLE_SYMBOLS - 1));
}

uint8_t links_table_number(struct links_table *table, struct links_coder *coder, uint32_t kind,
                           uint8_t symbol) {
    struct tree *tree = &table->numbers[kind];
    uint32_t path = 1;
    for (int shift = LINKS_TABLE_SYMBOL_BITS - 1; shift >= 0; shift--) {
        uint16_t *node = &tree->nodes[path];
        uint32_t value = links_coder_bit(coder, *node, symbol >> shift & 1);
        uint32_t left = value ? PROBABILITY_ONE - *node : *node; /* to certainty, which is never reached */
        *node = (uint16_t)(value ? *node + (left >> LEARN_SHIFT) : *node - (left >> LEARN_SHIFT));
        path = path << 1 | value;
    }
    return (uint8_t)(path & (LINKS_TABLE_SYMBOLS - 1));
}

void links_table_forget(struct links_table *table) {
    for (uint32_t kind = 0; kind < LINKS_TABLE_KINDS; kind++) {
        for (uint32_t i = 0; i < LINKS_TABLE_SYMBOLS; i++) {
            table->numbers[kind].nodes[i] = PROBABILITY_HALF;
        }
    }
}

/* ---- the text ---- */

/* How often each symbol followed. */
struct following {
    uint16_t counts[CHARACTERS];
};

/* What is needed to make the table, and not after. */
struct making {
    struct arena arena; /* itself */
    struct following pairs[PAIRS_COUNT];
    struct following singles[CHARACTERS];
    struct following all;
};

static void count_text(struct making *making) {
    for (size_t line = 0; line < links_text_count; line++) {
        uint32_t last = 0;
        const char *text = links_text[line];
        do {
            uint32_t next = table_index_of((uint8_t)*text);
            making->pairs[pair_of(last)].counts[next]++;
            making->singles[table_index_of(last & 0xff)].counts[next]++;
            making->all.counts[next]++;
            last = last << 8 | (uint8_t)*text;
        } while (*text++ != 0);
    }
}

/*
 * The shares of SHARE_ONE that the symbols have: as often as they followed, and as many times as there were
 * different ones what a shorter context says. None is without a share.
 */
static void share_out(const struct following *following, const uint32_t shorter[CHARACTERS],
                      uint32_t ret_shares[CHARACTERS]) {
    uint64_t total = 0;
    uint64_t different = 0;
    for (uint32_t i = 0; i < CHARACTERS; i++) {
        total += following->counts[i];
        different += following->counts[i] > 0;
    }
    for (uint32_t i = 0; i < CHARACTERS; i++) {
        uint64_t part = following->counts[i] * (uint64_t)SHARE_ONE + different * shorter[i];
        uint64_t whole = (total + different) * SHARE_ONE;
        ret_shares[i] = whole == 0 ? shorter[i] : 1 + (uint32_t)(part * (SHARE_ONE - CHARACTERS) / whole);
    }
}

static uint8_t symbol_of(uint32_t index) {
    return index == 0 ? 0 : (uint8_t)(index + 0x20);
}

static void table_grow(struct tree *tree, const uint32_t shares[CHARACTERS]) {
    uint32_t sums[2 * LINKS_TABLE_SYMBOLS] = {0}; /* in the same order, the symbols behind the nodes */
    for (uint32_t i = 0; i < CHARACTERS; i++) {
        sums[LINKS_TABLE_SYMBOLS + symbol_of(i)] = shares[i];
    }
    for (uint32_t i = LINKS_TABLE_SYMBOLS - 1; i > 0; i--) {
        sums[i] = sums[2 * i] + sums[2 * i + 1];
        uint32_t probability = sums[i] == 0 ? PROBABILITY_HALF : sums[2 * i + 1] * PROBABILITY_ONE / sums[i];
        tree->nodes[i] = (uint16_t)(probability == 0                 ? 1
                                    : probability >= PROBABILITY_ONE ? PROBABILITY_ONE - 1
                                                                     : probability);
    }
}

static bool is_any(const struct following *following) {
    static const struct following none;
    return memcmp(following, &none, sizeof none) != 0;
}

static void table_make(struct links_table *table, const struct making *making) {
    uint32_t even[CHARACTERS], all[CHARACTERS], single[CHARACTERS], pair[CHARACTERS];
    uint32_t trees_count = CHARACTERS;
    for (uint32_t i = 0; i < CHARACTERS; i++) {
        even[i] = SHARE_ONE / CHARACTERS;
    }
    share_out(&making->all, even, all);
    for (uint32_t last = 0; last < CHARACTERS; last++) {
        share_out(&making->singles[last], all, single);
        table_grow(&table->trees[last], single);
        for (uint32_t before = 0; before < CHARACTERS; before++) {
            uint32_t index = before * CHARACTERS + last;
            table->of_pair[index] = (uint16_t)last;
            if (is_any(&making->pairs[index])) {
                ASSERT(trees_count < CHARACTERS + PAIRS_MAX);
                table->of_pair[index] = (uint16_t)trees_count;
                share_out(&making->pairs[index], single, pair);
                table_grow(&table->trees[trees_count++], pair);
            }
        }
    }
}

struct links_table *links_table_new(void) {
    struct links_table *table = arena_new(sizeof *table, sizeof *table + 64);
    struct making *making = arena_new(sizeof *making, sizeof *making + 64);
    bool is_made = table != NULL && making != NULL;
    if (is_made) {
        count_text(making);
        table_make(table, making);
        links_table_forget(table);
    } else {
        arena_free(table);
    }
    arena_free(making);
    return is_made ? table : NULL;
}

void links_table_free(struct links_table *table) {
    arena_free(table);
}
