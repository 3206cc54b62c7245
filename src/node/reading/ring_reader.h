/*
 * ring_reader - what the other nodes of the ring hold, as one more backend to read from
 * (store/backend/backend.h).
 *
 *      a walk over one SURT      the holders of its position: the first that was compared answers for all
 *      mapping `host`, one host  likewise; `section`, one directory of it, too
 *      any other walk            all nodes at the same time, merged; what several have is given once
 *      a record, a document      from any holder, checked before it is given (node/captures/captures.h)
 *
 * A node that is itself a compared holder asks no other, nor does one that keeps everything. But no single
 * node, this one included, can say for all that there is nothing at a position: something new may not have
 * reached it yet. All holders are asked then, and only if none of them has anything, or answers, is there
 * nothing. A node that does not answer is left out, and the walk ends with ERR_UNREACHABLE instead of
 * ERR_NOT_FOUND, so that the caller knows that it is partial. The node that listed a capture is asked for it
 * first, then its other holders. A capture that was listed and that no node can give is not listed again for
 * a minute, and the node that listed it does not answer for all then (ring_reader_doubt.h).
 *
 * Captures have no location here. A hash of the ring's key of the capture stands for it, the same in every
 * walk and after every start; a table of the captures that were listed last leads back from it. A capture
 * that is not in the table any more is ERR_NOT_FOUND at its location, as after a compaction: it is found by
 * walking. A record is made of what came: a response, a resource, or a revisit whose document is "elsewhere",
 * at another location of the same capture.
 *
 * Nothing is stored. Records that were fetched are kept in memory, 64 MiB of them, for the parts of a page;
 * listings of single URLs for five seconds, within which new captures at its holders are not seen here. If
 * several threads want the same, one asks and the others wait for it.
 *
 * Holders may be busy (node/rpc/peer_rpc.h): they are left alone for a moment, and others are asked. If none
 * of them answers, a listing may be up to ten minutes old, and the crowd is asked
 * (node/crowd/crowd_reader.h), also beside holders that take longer than usual. Captures that were read from
 * the ring are offered to the crowd in turn. A record says in its field Mnemon-Source where it came from:
 * "ring ADDRESS", "crowd ADDRESS", or "crowd this-node" if it was read here before.
 *
 * Any thread that may wait, but not that of peer_rpc: each question takes up to config.timeout_ms. So that
 * slow nodes never take all threads of a server, only some may wait at a time (config.waiters_max); others go
 * on with what is here. A thread that waits for another's question does not count.
 */
#ifndef MNEMON_NODE_READING_RING_READER_H
#define MNEMON_NODE_READING_RING_READER_H

#include "node/captures/captures.h"
#include "store/backend/backend.h"

struct crowd_reader;
struct dialects;
struct offers;
struct scratch_budget;

enum { RING_READER_HOLDERS_MAX = 32, RING_READER_NODES_MAX = 1 << 15 };

/* The functions may be called by any thread. */
struct ring_reader_config {
    struct peer_rpc *peer_rpc;
    struct captures *captures;
    struct offers *offers;       /* what was read is handed on, and is read from there; NULL: it is not */
    struct crowd_reader *obtain; /* the crowd; NULL: there is none */
    uint8_t mapping;             /* enum charter_mapping */
    uint8_t self[PEER_KEY_SIZE]; /* is not asked */
    uint32_t timeout_ms;         /* of a question; 0: 2,000 */
    uint32_t
        waiters_max; /* threads that may wait for others at a time; 0: 24. More are told ERR_UNREACHABLE */
    /* The nodes that shall hold a place. May wait. ERR_NOT_FOUND: there is no ring. */
    enum err (*find_holders)(void *context, const uint8_t position[RINGKEY_POSITION_SIZE],
                             struct peer out[RING_READER_HOLDERS_MAX], size_t *ret_count);
    /* Does the node know its neighbours in the ring? Until then nobody can be asked. Must not wait. NULL:
     * yes. */
    bool (*is_in_ring)(void *context);
    /* All nodes that are known. Returns how many there are; writes at most peers_max. */
    size_t (*find_all)(void *context, struct peer *out, size_t peers_max);
    /* Is this node a holder of the place, and has it been compared with the others? Must not wait. */
    bool (*is_current)(void *context, const uint8_t position[RINGKEY_POSITION_SIZE]);
    /* Has this node anything at the place? May wait for the disk. NULL: yes. */
    bool (*has_any)(void *context, const uint8_t position[RINGKEY_POSITION_SIZE]);
    /* Is this node current at all places? Must not wait. NULL: no. */
    bool (*has_everything)(void *context);
    /* What the node gave is not what it promised. */
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

/*
 * For instance_set_guest(); closed with the instance, after all sessions. It is empty until it begins.
 * budget: of the files of records, may be NULL. NULL: out of memory.
 */
struct backend *ring_reader_new(const char *scratch_directory, struct scratch_budget *budget);

/* The node belongs to a ring: until it is back there, what is here is not all that there is. Before it
 * begins.
 */
void ring_reader_expect(struct backend *backend);

/* The node is in a ring now; once, any thread. */
void ring_reader_begin(struct backend *backend, const struct ring_reader_config *config);

/*
 * Nobody is asked any more; returns when nobody waits. After peer_rpc_stop(), so that it does not take long,
 * and before what the config names is freed. Also if it never began.
 */
void ring_reader_end(struct backend *backend);

/*
 * The other side: answers PEER_RPC_WALK from the volumes of this node, never from the ring. Make it before
 * peer_rpc_start(), free it after peer_rpc_stop() and before the instance is closed. NULL: out of memory.
 */
struct ring_reader_service;

struct ring_reader_service_config {
    struct instance *instance;
    struct peer_rpc *peer_rpc;
    struct dialects *dialects; /* what others understand; NULL: what programs up to 0.2 do */
    uint8_t mapping;
    bool (*is_current)(void *context, const uint8_t position[RINGKEY_POSITION_SIZE]); /* as above */
    void *context;
};

struct ring_reader_service *ring_reader_service_new(const struct ring_reader_service_config *config);
void ring_reader_service_free(struct ring_reader_service *service);

#endif
