#include "base/nearest.h"

#include <stdio.h>

enum { WORD_SIZE_MAX = 48 };

static size_t min3(size_t a, size_t b, size_t c) {
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static bool differ(uint8_t a, uint8_t b) {
    return byte_lower(a) != byte_lower(b);
}

/* Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
static size_t nearest_distance(struct bytes a, struct bytes b) {
    size_t rows[3][WORD_SIZE_MAX + 1];
    for (size_t j = 0; j <= b.size; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.size; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            size_t differs = differ(a.data[i - 1], b.data[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && !differ(a.data[i - 1], b.data[j - 2]) &&
                !differ(a.data[i - 2], b.data[j - 1])) {
                size_t swapped = rows[(i + 1) % 3][j - 2] + 1;
                row[j] = swapped < row[j] ? swapped : row[j];
            }
        }
    }
    return rows[a.size % 3][b.size];
}

void nearest_init(struct nearest *nearest, struct bytes word) {
    *nearest = (struct nearest){.word = word, .best_distance = SIZE_MAX};
}

void nearest_offer(struct nearest *nearest, const char *known) {
    struct bytes candidate = bytes_of_string(known);
    if (candidate.size > WORD_SIZE_MAX || nearest->word.size > WORD_SIZE_MAX || nearest->word.size == 0) {
        return;
    }
    bool was_cut_off = nearest->word.size >= 2 && bytes_starts_with(candidate, nearest->word);
    size_t found = was_cut_off ? 1 : nearest_distance(nearest->word, candidate);
    if (found < nearest->best_distance && (found <= 1 || found * 3 <= candidate.size)) {
        nearest->best = known;
        nearest->best_distance = found;
    }
}

const char *nearest_hint(const struct nearest *nearest, const char *prefix, char out[NEAREST_HINT_SIZE]) {
    out[0] = '\0';
    if (nearest->best != NULL) {
        snprintf(out, NEAREST_HINT_SIZE, "; did you mean %s%s?", prefix, nearest->best);
    }
    return out;
}
