/*
 * mirroring_code - the questions and answers of BULK_MIRROR as bytes. docs/protocol/mirror.md.
 *
 *      MIRRORING_VERSION   "of this collection I hold that version, and you?"   asks, and tells
 *      MIRRORING_CHUNKS    "give me the bytes of these digests"                 nodes of manifests too
 *
 * An answer carries as many of the digests as fit, in their order: what it does not reach is asked for again.
 */
#ifndef MNEMON_NODE_MIRRORING_CODE_H
#define MNEMON_NODE_MIRRORING_CODE_H

#include "base/buf.h"
#include "group/version.h"
#include "node/bulk.h"

enum {
    MIRRORING_DIGESTS_MAX = 8192, /* of a question */
    MIRRORING_GIVEN_SIZE_MAX = BULK_PIECE_SIZE_MAX,
};

enum mirroring_question_kind { MIRRORING_VERSION, MIRRORING_CHUNKS, MIRRORING_KINDS_COUNT };

struct mirroring_question {
    enum mirroring_question_kind kind;

    /* MIRRORING_VERSION */
    uint16_t port;                    /* that the asker listens at */
    uint8_t publisher[PEER_KEY_SIZE]; /* zeros: whoever has one of that name */
    struct bytes name;
    struct bytes statement; /* empty: nothing yet */

    /* MIRRORING_CHUNKS */
    uint8_t id[VERSION_ID_SIZE];
    size_t digests_count;
    struct bytes digests;
};

void mirroring_put_version_question(struct buf *out, uint16_t port, const uint8_t publisher[PEER_KEY_SIZE],
                                    struct bytes name, struct bytes statement);

/* The digests follow, digests_count of them. */
void mirroring_put_chunks_question(struct buf *out, const uint8_t id[VERSION_ID_SIZE], size_t digests_count);

/* Slices borrow the input. */
enum err mirroring_read_question(struct bytes input, struct mirroring_question *ret_question,
                                 struct err_detail *detail) MUST_CHECK;

/* Who answers, and the newest version that he has something of; empty: he does not know the collection. */
void mirroring_put_version_answer(struct buf *out, const uint8_t self[PEER_KEY_SIZE], struct bytes statement);
enum err mirroring_read_version_answer(struct bytes input, uint8_t ret_key[PEER_KEY_SIZE],
                                       struct bytes *ret_statement) MUST_CHECK;

/*
 * may_come: what is not here is on its way. Then for each digest its bytes with their size in front; 0: not
 * here.
 */
void mirroring_begin_chunks_answer(struct buf *out);
void mirroring_put_chunk(struct buf *out, struct bytes chunk);
void mirroring_end_chunks_answer(struct buf *out, bool may_come);

#endif
