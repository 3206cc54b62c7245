/*
 * mirror_driver_code - the questions and answers of PEER_RPC_MIRROR as bytes. docs/protocol/mirror.md.
 *
 *      MIRROR_DRIVER_VERSION   "of this collection I hold that version, and you?"   asks, and tells
 *      MIRROR_DRIVER_CHUNKS    "give me the bytes of these digests"                 nodes of manifests too
 *      MIRROR_DRIVER_PARTS     "which chunks of this version have you by now?"      a bit for each
 *
 * An answer carries as many of the digests as fit, in their order: what it does not reach is asked for again.
 */
#ifndef MNEMON_NODE_MIRROR_MIRROR_DRIVER_CODE_H
#define MNEMON_NODE_MIRROR_MIRROR_DRIVER_CODE_H

#include "base/buf.h"
#include "base/wire.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/mirror/version.h"

enum {
    MIRROR_DRIVER_DIGESTS_MAX = 8192, /* of a question */
    MIRROR_DRIVER_GIVEN_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX,
    MIRROR_DRIVER_PARTS_MAX = 4 << 20, /* bits of an answer: half a MiB, 250 GB of large files */
};

enum mirror_driver_question_kind {
    MIRROR_DRIVER_VERSION,
    MIRROR_DRIVER_CHUNKS,
    MIRROR_DRIVER_PARTS,
    MIRROR_DRIVER_KINDS_COUNT
};

struct mirror_driver_question {
    enum mirror_driver_question_kind kind;

    /* MIRROR_DRIVER_VERSION */
    uint16_t port;                    /* that the asker listens at */
    uint8_t publisher[PEER_KEY_SIZE]; /* zeros: whoever has one of that name */
    struct bytes name;
    struct bytes statement; /* empty: nothing yet */

    /* MIRROR_DRIVER_CHUNKS */
    uint8_t id[VERSION_ID_SIZE]; /* MIRROR_DRIVER_PARTS too */
    bool is_needed;              /* nobody else gives it */
    size_t digests_count;
    struct bytes digests;

    /* MIRROR_DRIVER_PARTS */
    uint8_t root[SHA256_SIZE]; /* of the version's manifest */
};

void mirror_driver_put_version_question(struct buf *out, uint16_t port,
                                        const uint8_t publisher[PEER_KEY_SIZE], struct bytes name,
                                        struct bytes statement);

/* The digests follow, digests_count of them. */
void mirror_driver_put_chunks_question(struct buf *out, const uint8_t id[VERSION_ID_SIZE], bool is_needed,
                                       size_t digests_count);

void mirror_driver_put_parts_question(struct buf *out, const uint8_t id[VERSION_ID_SIZE],
                                      const uint8_t root[SHA256_SIZE]);

/* Slices borrow the input. */
enum err mirror_driver_read_question(struct bytes input, struct mirror_driver_question *ret_question,
                                     struct err_detail *detail) MUST_CHECK;

/* The key of the node that answers, and the newest version of which it has something; empty: it does not know
 * the collection. */
void mirror_driver_put_version_answer(struct buf *out, const uint8_t self[PEER_KEY_SIZE],
                                      struct bytes statement);
enum err mirror_driver_read_version_answer(struct bytes input, uint8_t ret_key[PEER_KEY_SIZE],
                                           struct bytes *ret_statement) MUST_CHECK;

/* may_come: what is not here is on its way. Then for each digest what is here of it. */
void mirror_driver_begin_chunks_answer(struct buf *out);
void mirror_driver_put_chunk(struct buf *out, struct bytes chunk);
void mirror_driver_put_no_chunk(struct buf *out, bool is_withheld); /* else it is not here */
void mirror_driver_end_chunks_answer(struct buf *out, bool may_come);

/* The next of an answer, if the reader has not failed. Empty: it is not here, or withheld. */
struct bytes mirror_driver_read_chunk(struct wire_reader *reader, bool *ret_is_withheld);

/*
 * is_whole: all of the version is here, or another one: ask for what is wanted. Otherwise a bit for each
 * chunk, in the order of the manifest from the lowest bit of the first byte on; what is beyond is not here.
 */
struct mirror_driver_parts {
    bool is_whole;
    size_t count;
    struct bytes bits; /* (count + 7) / 8 */
};
void mirror_driver_put_parts_answer(struct buf *out, const struct mirror_driver_parts *parts);
enum err mirror_driver_read_parts_answer(struct bytes input,
                                         struct mirror_driver_parts *ret_parts) MUST_CHECK;

#endif
