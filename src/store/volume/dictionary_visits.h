/*
 * dictionary_visits - what the records of unchanged visits look like, for the dictionary of a volume.
 *
 * A dictionary is trained from the first pages of an archive, before anything was visited a second time.
 * Later most records are those of visits that found nothing new: small, many, and all alike but for URL,
 * time, digest and signature. So their text goes into every dictionary.
 */
#ifndef MNEMON_STORE_VOLUME_DICTIONARY_VISITS_H
#define MNEMON_STORE_VOLUME_DICTIONARY_VISITS_H

#include "base/buf.h"

enum { DICTIONARY_VISITS_COUNT = 512, DICTIONARY_VISITS_SIZE_MAX = 4 << 10 };

/*
 * Append such records; the numbers in them are made up. fetcher: the key of the node that fetched the
 * samples, as Mnemon-Signature has it; may be empty. sizes: of each of the records; NULL: they are not
 * wanted.
 */
enum err dictionary_visits_put(struct buf *out, size_t count, struct bytes fetcher, size_t *sizes) MUST_CHECK;

/* The key in the last signature among the samples; empty if there is none. */
struct bytes dictionary_visits_fetcher(struct bytes samples);

#endif
