/* nearest - which of the known words a mistyped one was meant to be. */
#ifndef MNEMON_BASE_NEAREST_H
#define MNEMON_BASE_NEAREST_H

#include "base/bytes.h"

enum { NEAREST_HINT_SIZE = 80 };

struct nearest {
    struct bytes word; /* what was typed */
    const char *best;  /* the nearest so far, or NULL */
    size_t best_distance;
};

void nearest_init(struct nearest *nearest, struct bytes word);

/* Consider one known word; it must outlive the nearest. */
void nearest_offer(struct nearest *nearest, const char *known);

/*
 * The word to suggest, or NULL where none is near: one letter or at most a third of its letters differ, or
 * it was cut off.
 */
const char *nearest_word(const struct nearest *nearest);

/* The rest of a sentence: "; did you mean --depth?" with the prefix "--", or "" where no word is near.
 * Returns out. */
const char *nearest_hint(const struct nearest *nearest, const char *prefix, char out[NEAREST_HINT_SIZE]);

#endif
