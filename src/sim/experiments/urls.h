/*
 * urls - URLs as links have them, made up: for experiments with what nodes tell each other. Not for crawling.
 *
 * Hosts by Zipf's law (the n-th is met with a chance of 1/n), each with a shape of its own: a blog by dates,
 * a shop, a forum with queries, plain files … Two of three links are to one of the two dozen pages of a host
 * that all its pages link to, the others to any of its pages. About 57 characters on average (thesis,
 * chapter 3: 59). Many of the common words and shapes are in protocol/links/links_text.c, too: packed, these
 * URLs come out smaller than real ones (docs/experiments.md).
 */
#ifndef MNEMON_SIM_EXPERIMENTS_URLS_H
#define MNEMON_SIM_EXPERIMENTS_URLS_H

#include "base/prng.h"

enum { URLS_SIZE_MAX = 256, URLS_HOSTS_MAX = 1 << 16 };

struct urls {
    uint64_t seed;
    struct prng prng;
    uint32_t hosts_count;
    uint64_t *sums; /* [host]: of the chances up to and with it */
};

/* False: out of memory. */
bool urls_init(struct urls *urls, uint64_t seed, uint32_t hosts_count);
void urls_done(struct urls *urls);

/* The URL of the next link: how many bytes were written. */
size_t urls_next(struct urls *urls, uint8_t out[URLS_SIZE_MAX]);

#endif
