/*
 * captures_state - one machine in several files, which share what is below. Private to them:
 *
 *      captures.c         begin and end; the service: gives captures of this node
 *      captures_many.c    many captures at once: gives them, and checks what was given
 *      captures_fetch.c   fetches a capture from its holders, and checks its description
 *      captures_pieces.c  the payload of a fetch: piece by piece, from several holders at once
 */
#ifndef MNEMON_NODE_CAPTURES_CAPTURES_STATE_H
#define MNEMON_NODE_CAPTURES_CAPTURES_STATE_H

#include "node/captures/captures.h"
#include "node/captures/captures_code.h"
#include "store/document/document_hasher.h"
#include "store/instance/record.h"
#include "store/keyset/position.h"
#include "store/remote/pack_payload.h"
#include "web/url/canon.h"

enum {
    CAPTURES_GIVERS_COUNT = 4,
    CAPTURES_PEERS_MAX = 32,
    CAPTURES_HAND_PEERS_MAX = 16, /* of a fetch by PEER_RPC_HAND, with those that others named */
    CAPTURES_LEVELS_MAX = 2,      /* a peer named by a named peer names no further ones */
};

/* A payload that somebody is fetching in pieces: it is read from the disk once, not once for each of them. */
struct captures_giver {
    struct ringkey key;
    bool is_open;
    struct instance_session *session; /* NULL: not used yet */
    struct bytes payload;             /* in the session's hands */
    uint64_t used_at;                 /* counts questions */
};

struct captures {
    struct captures_config config;

    /* Of the thread of peer_rpc. */
    bool has_kit; /* what follows is there */
    struct captures_giver givers[CAPTURES_GIVERS_COUNT];
    uint64_t questions_count;
    struct instance_session *session; /* to find captures, and for their records */
    struct record record;
    struct sha256 sha256;
    struct pack_payload pack_payload;
    struct buf surt;
    struct buf bounds;
    struct buf message; /* that was signed */
    struct buf description;
    struct scratch piece;
};

struct captures_session {
    struct captures *captures;
    struct document_hasher hasher;
    struct canon canon;
    struct pack_payload pack_payload;
    struct payload head; /* of the description */
    struct buf url;      /* by which it is found: warc/request_key.h */
    struct buf surt;
    struct buf question;
    struct buf answer;
    struct buf kept; /* an answer that is used if none is better */
    struct buf message;
    struct buf description; /* what *ret_captured borrows */
    struct scratch body;    /* likewise */
    struct scratch piece;
    uint32_t piece_size; /* that the way to the others seems to bear */
    uint64_t seed;       /* of marks */
};

/* A piece of a body, and the node that gave it. */
struct captures_mark {
    struct peer giver;
    size_t size;
    uint64_t hash;
};

/* One fetch. */
struct captures_fetching {
    struct captures_session *session;
    const struct captures_request *request;
    struct captured *captured;
    struct peer peers[CAPTURES_PEERS_MAX]; /* that are worth asking still, the next first */
    uint8_t
        levels[CAPTURES_PEERS_MAX]; /* of each: 0 if the caller named it, else that of the naming peer + 1 */
    size_t peers_count;
    struct peer known[CAPTURES_PEERS_MAX]; /* all that are or were in the list */
    size_t known_count;
    struct peer named[CAPTURES_HAND_PEERS_MAX]; /* by others, and not in the list yet */
    uint8_t named_levels[CAPTURES_HAND_PEERS_MAX];
    size_t named_count;
    bool is_alone;          /* all of it from one holder: what several gave did not fit together */
    bool was_false;         /* somebody gave something false */
    bool was_referred;      /* somebody has it, and named others */
    bool was_refused;       /* the caller did not take what was described */
    bool tries_again;       /* what failed may go better with the others */
    size_t absent_count;    /* holders that do not have it */
    bool has_kept;          /* session->kept is an answer without a signature */
    size_t kept_index;      /* of the peer that gave it */
    bool is_slow;           /* the first piece did not come in time: the description comes alone */
    size_t chunk_head_size; /* before the payload in the body */
    struct {
        struct peer peer;
        uint64_t size;
    } givers[CAPTURES_PEERS_MAX]; /* of what is in the body */
    size_t givers_count;
    struct buf marks;   /* of the pieces in the body, in their order */
    struct buf doubted; /* those of a body that was false */
};

/* captures_fetch.c: is the description that of the key? Fills all but the body. ERR_MISMATCH with a sentence.
 */
enum err captures_check(struct captures_session *session, const struct ringkey *key, struct bytes description,
                        struct captured *ret_captured, struct err_detail *detail) MUST_CHECK;

/* Of one that was checked: does the ring say that it is deleted? Before its payload is asked for, and before
 * anybody sees it. */
bool captures_is_deleted(const struct captures_session *session, const struct captured *captured);

bool captures_err_is_ours(enum err err);
enum err captures_err_of_others(enum err err);
void captures_drop(struct captures_fetching *fetching, size_t index);
void captures_blame(struct captures_fetching *fetching, size_t index, const char *sentence);
void captures_accuse(struct captures_fetching *fetching, const struct peer *peer, const char *sentence);
enum err captures_put_question(struct captures_fetching *fetching, struct buf *out, bool wants_description,
                               uint64_t offset, uint32_t size) MUST_CHECK;
uint32_t captures_time_left_ms(const struct captures_fetching *fetching); /* of a question; 0: too late */
void captures_note_referral(struct captures_fetching *fetching, size_t index,
                            const struct captures_answer *answer);
void captures_adopt(struct captures_fetching *fetching); /* named peers are asked, too */

/* captures_pieces.c: what has come of the payload. */
enum err captures_body_begin(struct captures_fetching *fetching) MUST_CHECK;
uint64_t captures_body_size(const struct captures_fetching *fetching);

/* The piece of an answer, into the session's hands. ERR_INVALID: it is more than size_max, or none. */
enum err captures_unpack(struct captures_session *session, const struct captures_answer *answer,
                         uint32_t size_max, struct bytes *ret_piece) MUST_CHECK;
enum err captures_body_put(struct captures_fetching *fetching, const struct peer *giver,
                           struct bytes piece) MUST_CHECK;

/* What several gave is false; the culprit is found when the true payload is here. */
void captures_body_doubt(struct captures_fetching *fetching);
void captures_body_settle(struct captures_fetching *fetching);

/* All has come: is it what the key says? ERR_MISMATCH. */
enum err captures_body_end(struct captures_fetching *fetching) MUST_CHECK;

/*
 * Several holders at once, until all has come or none of them gives any more. What is
 * missing then comes from one after the other.
 */
enum err captures_pieces_run(struct captures_fetching *fetching) MUST_CHECK;

/* captures.c: the service. What it works with is made by the first question. */
peer_rpc_handler captures_give;
enum err captures_prepare(struct captures *captures) MUST_CHECK;

/* A capture of this node and its payload. The SURT may be empty. */
enum err captures_locate(struct captures *captures, const struct ringkey *key, struct bytes surt,
                         struct capture *ret_capture, struct key *ret_key, struct block *ret_block,
                         struct err_detail *detail) MUST_CHECK;

/* Into captures->description, which is empty. to: who shall read it; NULL: this node itself. */
enum err captures_describe(struct captures *captures, const struct peer *to, struct instance_session *session,
                           const struct capture *capture, uint64_t payload_size,
                           struct err_detail *detail) MUST_CHECK;

/* captures_many.c: the other service. */
peer_rpc_handler captures_give_many;

#endif
