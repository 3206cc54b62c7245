/*
 * urls - URLs as a crawl's frontier has them: words, ids, capitals, queries, "www."; few hosts have most.
 */
#ifndef MNEMON_BENCH_URLS_H
#define MNEMON_BENCH_URLS_H

#include "base/buf.h"
#include "base/prng.h"

/* Append one of `count`; the number makes it different from the others. */
void urls_put(struct buf *out, struct prng *prng, size_t count, uint64_t number);

#endif
