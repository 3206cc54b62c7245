/*
 * rewritten - documents as they were rewritten for replay, kept in memory for the next reader: the style
 * sheets and scripts of a site go with each of its pages, and first pages are what most readers ask for.
 *
 *      key     SHA-256 of all that the parser was told (parse/parse_page.h) and of which record it was
 *      value   the parser's note, and the document that came out
 *
 * What is found here is what the parser would make again: a record never changes, and what is deleted, hidden
 * or elsewhere by now is refused before anybody looks here. Bounded in bytes; the least recently used makes
 * room. Documents are copied in and out under a lock. Any thread.
 */
#ifndef MNEMON_REPLAY_WAYBACK_REWRITTEN_H
#define MNEMON_REPLAY_WAYBACK_REWRITTEN_H

#include "base/scratch.h"
#include "base/sha256.h"
#include "parse/parse_job.h"

enum { REWRITTEN_DOCUMENT_SIZE_MAX = 512 << 10 };

struct rewritten;

/* size_max: of all documents with what is kept beside them. NULL: out of memory. */
struct rewritten *rewritten_new(uint64_t size_max);
void rewritten_free(struct rewritten *rewritten);

/* True: the note is in `note`, the document in the empty *ret_document. */
bool rewritten_find(struct rewritten *rewritten, const uint8_t key[SHA256_SIZE],
                    uint8_t note[PARSE_NOTE_SIZE_MAX], size_t *ret_note_size, struct scratch *ret_document);

/* Keep it, unless it is too large or there is no memory. */
void rewritten_keep(struct rewritten *rewritten, const uint8_t key[SHA256_SIZE], struct bytes note,
                    struct bytes document);

struct rewritten_stat {
    uint64_t size;
    uint64_t count;       /* documents that are here */
    uint64_t found_count; /* times that one was found */
    uint64_t asked_count; /* of so many */
};

void rewritten_stat(struct rewritten *rewritten, struct rewritten_stat *ret_stat);

#endif
