/*
 * corpus - documents as a crawl brings them, the same on every machine, for benchmarks of the store.
 *
 * Seven in ten are HTML pages of about 12 KB: each of the corpus's sites has its own head, navigation and
 * footer, the text between them has words by Zipf's law, and links carry numbers. gzip -6 makes about a
 * third of them, a dictionary trained on others of them does better. The rest are "images" of about 32 KB
 * that nothing compresses. One document in four has the body of an earlier one.
 *
 * Document i depends on the seed and i alone. Any number of threads may ask one corpus.
 */
#ifndef MNEMON_BENCH_CORPUS_H
#define MNEMON_BENCH_CORPUS_H

#include "base/buf.h"
#include "base/prng.h"

enum {
    CORPUS_SITES_COUNT = 64,
    CORPUS_WORDS_COUNT = 6000,
    CORPUS_DUPLICATES_PPM = 250000,
    CORPUS_PAGES_PPM = 700000,
    CORPUS_DOCUMENT_SIZE_MAX = 1 << 20,
};

struct corpus {
    uint64_t seed;
    struct buf text;                            /* words and the pieces of sites, one after the other */
    uint32_t words[CORPUS_WORDS_COUNT + 1];     /* where they start, the most frequent first */
    uint32_t pieces[CORPUS_SITES_COUNT][3 + 1]; /* head, navigation, footer of each site */
    uint16_t ranks[1 << 16];                    /* a random 16-bit number -> a word by Zipf's law */
};

void corpus_init(struct corpus *corpus, uint64_t seed);
void corpus_done(struct corpus *corpus);

/* The document whose body document i has: i itself, or an earlier one of which it is a duplicate. */
uint64_t corpus_original(const struct corpus *corpus, uint64_t i);
bool corpus_is_page(const struct corpus *corpus, uint64_t i);

/* Append page i, image i, or whichever of them document i is. */
void corpus_put_page(const struct corpus *corpus, uint64_t i, struct buf *out);
void corpus_put_image(const struct corpus *corpus, uint64_t i, struct buf *out);
void corpus_put_document(const struct corpus *corpus, uint64_t i, struct buf *out);

/* Make another document of a copy: a few bytes near its start become those of the stamp. */
void corpus_stamp(uint8_t *document, size_t size, uint64_t stamp);

#endif
