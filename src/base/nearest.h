/* nearest - which of the known words a mistyped one was meant to be. */
#ifndef MNEMON_BASE_NEAREST_H
#define MNEMON_BASE_NEAREST_H

#include "base/bytes.h"

enum { NEAREST_HINT_SIZE = 80 };

struct nearest {
    struct bytes word; /* what was typed */
    /* The nearest so far, or NULL. Near: one letter or at most a third of its letters differ, or it was cut
     * off. */
    const char *best;
    size_t best_distance;
};

void nearest_init(struct nearest *nearest, struct bytes word);

/* Consider one known word; it must outlive the nearest. */
void nearest_offer(struct nearest *nearest, const char *known);

/* The rest of a sentence: "; did you mean --depth?" with the prefix "--", or "" if no word is near. Returns
 * out. */
const char *nearest_hint(const struct nearest *nearest, const char *prefix, char out[NEAREST_HINT_SIZE]);

#endif
