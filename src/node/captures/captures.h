/*
 * captures - captures on their way between nodes: given in pieces, fetched, checked before anybody sees them.
 *
 * The key of a capture (base/ringkey.h) is position, time and digest of the payload, 40 bytes. A capture
 * travels as its description (store/remote/backend_code.h: URL, time, HTTP head, request, signature …) and
 * its payload, the payload in pieces of at most PEER_RPC_PIECE_SIZE_MAX, so that a broken transfer goes on
 * from where it was, with another holder if need be. A node that has the payload asks for the description
 * alone. The payload travels and not the body: a holder may have the body in chunks, or none for a revisit;
 * the payload is the same everywhere. A copy of what came in chunks has one large chunk.
 *
 * Nothing is believed: the digest of the payload must be that of the key, time and URL must give the key, and
 * the signature (crawl/engine/attest.h) must be right if there is one. A holder that gives something else is
 * blamed, and the next one is asked. A request that the signature does not cover, as those of the first
 * version do not, is left out. What has no signature was imported by some member: is_signed says so, and
 * is_imported if that member has signed that. A signature of a later version is kept, and counts as none.
 */
#ifndef MNEMON_NODE_CAPTURES_CAPTURES_H
#define MNEMON_NODE_CAPTURES_CAPTURES_H

#include "base/ringkey.h"
#include "base/scratch.h"
#include "node/rpc/peer_rpc.h"
#include "store/document/document.h"
#include "store/instance/instance.h"

struct captured;
struct captures;
struct captures_session; /* of one thread */

struct captures_config {
    struct instance *instance;
    struct peer_rpc *peer_rpc;
    const char *scratch_directory; /* for large payloads */
    struct dialects *dialects;     /* NULL: whoever asks may have all of it */
    uint8_t mapping;               /* enum charter_mapping */
    uint32_t timeout_ms;           /* of a question; 0: 2,000 */
    /*
     * Append the SURT of a capture that this node has, by its key (store/keyset/keyset.h); ERR_NOT_FOUND. On
     * the thread of peer_rpc. NULL: only questions that name the SURT are answered.
     */
    enum err (*find_surt)(void *context, const struct ringkey *key, struct buf *out);
    /* The node asks for a copy: its question has no SURT, as those of readers have. May it have it now? If
     * not, it is told that we are busy. On the thread of peer_rpc. NULL: yes. */
    bool (*may_copy)(void *context, const struct peer *peer);
    /*
     * Does the ring not take this capture (node/ring/members.h)? It then counts as a deleted one: nobody is
     * blamed, and it is not asked for again. Any thread. NULL: it takes all.
     */
    bool (*refuses)(void *context, const struct captured *captured);
    /* What the node gave is not what it promised; any thread. */
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

/* Also answers PEER_RPC_CAPTURE and PEER_RPC_CAPTURES. Before peer_rpc_start(). Without a peer_rpc, only
 * captures_read_own() can be called. */
struct captures *captures_new(const struct captures_config *config); /* NULL: out of memory */
void captures_free(struct captures *captures);

struct captures_session *captures_session_new(struct captures *captures); /* NULL: out of memory */
void captures_session_free(struct captures_session *session);             /* may be NULL */

/* A capture that has come and is sound. All of it lasts until the next fetch of the session. */
struct captured {
    /*
     * Ready for instance_put(); sum is set, and was computed here if there is a body. What the server said
     * was not modified comes without its body: the archive can hold it only beside its original.
     */
    struct document document;
    struct document_sum sum;
    struct bytes payload; /* the body without its transfer encoding; empty if it was not asked for */
    struct bytes key_url; /* by which it is found: its URL, with method and body (warc/request_key.h) */
    struct bytes surt;    /* of that */
    bool is_signed;
    uint8_t signer[PEER_KEY_SIZE]; /* that has fetched it */
    bool is_imported;
    uint8_t importer[PEER_KEY_SIZE]; /* that says that it has imported it */
    struct peer from;                /* the node that gave most of it */
    uint8_t holders_count;           /* that gave a part of it */
};

/*
 * Fetch one from any of the peers, the first ones at once, and check it. Waits; not on the thread of
 * peer_rpc. with_payload false: the description alone, as of a duplicate (is_body_left_out). ERR_NOT_FOUND:
 * none of those that answered has it; ERR_MISMATCH: what they gave was false; ERR_DELETED: the ring has
 * deleted it, whoever has it still; the errors of peer_rpc_ask().
 */
enum err captures_fetch(struct captures_session *session, const struct peer *peers, size_t peers_count,
                        const struct ringkey *key, bool with_payload, struct captured *ret_captured,
                        struct err_detail *detail) MUST_CHECK;

/* The same if the SURT is known: a holder then needs no list of keys to find it, and it must be that of
 * the URL. */
enum err captures_fetch_at(struct captures_session *session, const struct peer *peers, size_t peers_count,
                           const struct ringkey *key, struct bytes surt, bool with_payload,
                           struct captured *ret_captured, struct err_detail *detail) MUST_CHECK;

/* All that can be said of a fetch. 0 or NULL stands for the default in parentheses. */
struct captures_request {
    const struct peer *peers;
    size_t peers_count;
    const struct ringkey *key;
    struct bytes surt;             /* may be empty */
    bool is_about;                 /* the description alone */
    enum peer_rpc_service service; /* PEER_RPC_CAPTURE or PEER_RPC_HAND */
    uint64_t deadline_us;          /* (none) of clock_system, monotonic */
    /* Is the capture that is described so wanted? If not, the next holder may describe it otherwise. */
    bool (*takes)(void *context, const struct captured *captured);
    /* Is this peer, which another has named, better not asked? Any thread; must not wait. (no) */
    bool (*avoids)(void *context, const struct peer *peer);
    void (*blame)(void *context, const struct peer *peer, const char *sentence); /* (as of all fetches) */
    void *context;
};

/*
 * Likewise. Of PEER_RPC_HAND, large payloads come in pieces from several peers at once, and peers that were
 * named by the first ones are asked, too. ERR_BUSY: peers that have it have named others, which have not got
 * it yet; ERR_PERMISSION: takes() took none.
 */
enum err captures_fetch_by(struct captures_session *session, const struct captures_request *request,
                           struct captured *ret_captured, struct err_detail *detail) MUST_CHECK;

/*
 * One of many captures that a node gave at once (captures_code.h), checked as any other: the entry with the
 * description and the whole payload, or with the description alone. ERR_MISMATCH: it is false, with a
 * sentence. ERR_DELETED, as above.
 */
struct captures_answer;
enum err captures_take(struct captures_session *session, const struct peer *from, const struct ringkey *key,
                       bool is_about, const struct captures_answer *answer, struct captured *ret_captured,
                       struct err_detail *detail) MUST_CHECK;

/*
 * What this node has on its volumes, as others are given it. Lasts until the next call; on a thread that may
 * wait for the disk, with a struct captures that nobody else uses (without a peer_rpc). ERR_NOT_FOUND.
 */
enum err captures_read_own(struct captures *captures, const struct ringkey *key,
                           struct bytes *ret_description, struct bytes *ret_payload,
                           struct err_detail *detail) MUST_CHECK;

/*
 * The same check for what lies on this node's disk: the description and the whole payload, into the session.
 * ERR_MISMATCH.
 */
enum err captures_open(struct captures_session *session, const struct ringkey *key, struct bytes description,
                       struct bytes payload, struct captured *ret_captured,
                       struct err_detail *detail) MUST_CHECK;

/*
 * A capture of this node by its key, if its SURT is known. bounds: for work. url: gets the URL of the
 * capture; NULL: it is not wanted. surt and url of *ret_capture borrow from these, mime is empty.
 * ERR_NOT_FOUND; ERR_BUSY: a volume is down, it may be there.
 */
enum err capture_by_key(struct instance_session *session, struct bytes surt, const struct ringkey *key,
                        struct buf *bounds, struct buf *url, struct capture *ret_capture,
                        struct err_detail *detail) MUST_CHECK;

#endif
