/*
 * ring_reader_state - one machine in several files, which share struct ring_reader. Private to them:
 *
 *      ring_reader.c         begin and end, sessions, who waits, captures by location
 *      ring_reader_walk.c    walks over one node or many, page by page
 *      ring_reader_url.c     listings of one URL: from its holders, else from the crowd
 *      ring_reader_record.c  records, fetched from holders or the crowd
 */
#ifndef MNEMON_NODE_READING_RING_READER_STATE_H
#define MNEMON_NODE_READING_RING_READER_STATE_H

#include "node/crowd/offers_title.h"
#include "node/reading/ring_reader.h"
#include "node/reading/ring_reader_cache.h"
#include "node/reading/ring_reader_doubt.h"
#include "node/reading/ring_reader_listed.h"
#include "run/bell.h"
#include "run/pool.h"
#include "store/instance/absent.h"
#include "store/keyset/position.h"
#include "store/remote/backend_code.h"
#include "warc/warc_writer.h"
#include "web/url/canon.h"

/* What a location's segment says. */
enum {
    RING_READER_OWN = 1,   /* the capture's own record */
    RING_READER_WHOLE = 2, /* the same with its document, as the original of a revisit */
};

/* What is known of a record. */
struct ring_reader_parcel {
    uint64_t number; /* of the capture */
    bool is_whole;   /* with its document; else as the revisit that it is */
    size_t payload_start;
    size_t payload_size;
};

struct ring_reader_cursor;

/* Those that did not answer, if nobody knows who they are. */
#define RING_READER_OTHERS "the other nodes of the ring"

/* The first byte of an answer to PEER_RPC_WALK. A program that does not know the last takes it for the first.
 */
enum {
    RING_READER_UNSURE = 0, /* what this node has */
    RING_READER_SURE = 1,   /* it answers for all holders of what was asked for */
    RING_READER_LACKS = 2,  /* as the first, and a volume of it is down: it may have more */
};

struct ring_reader {
    struct backend backend; /* first */
    const char *scratch_directory;
    struct scratch_budget *budget;    /* may be NULL */
    struct ring_reader_config config; /* set once, before is_active */
    struct ring_reader_listed listed;
    struct ring_reader_cache cache; /* of struct ring_reader_kept: the parts of a page come once */
    struct ring_reader_doubts doubts;
    struct ring_reader_cache listings; /* of struct ring_reader_listing */
    pthread_mutex_t lock;
    uint32_t users_count;   /* lock: threads that use the config */
    uint32_t waiters_count; /* lock: of them, those that count as waiting */
    uint32_t asides_count;  /* lock: of them, threads of their own */
    bool is_active;         /* lock */
    bool is_expected;       /* lock: it will be */
    struct bell idle;
    struct pool asides; /* struct ring_reader_aside */
};

struct ring_reader_session {
    struct backend_session session; /* first */
    struct ring_reader *backend;
    struct captures_session *captures;         /* NULL: not needed yet */
    struct crowd_reader_session *crowd_reader; /* likewise */
    struct offers_title title;                 /* finds that of a page; has_title */
    bool has_title;
    struct sha256 sha256;
    struct canon canon;
    struct buf listed_surt;    /* of the URL that a capture is listed with */
    struct warc_writer writer; /* into record */
    struct scratch_sink sink;
    struct scratch record;
    struct buf request;
    struct ring_reader_parcel parcel; /* what is in the two above; is_known */
    bool is_known;
    struct buf surt; /* of the capture that is asked for */
};

static inline struct ring_reader *ring_reader_of(struct backend_session *session) {
    return (struct ring_reader *)session->backend;
}

static inline struct ring_reader_session *ring_reader_session(struct backend_session *session) {
    return (struct ring_reader_session *)session;
}

/* ring_reader.c: the holders of a place without ourselves; `first`, if not NULL, before all others. */
enum err ring_reader_holders(struct ring_reader *backend, const uint8_t position[RINGKEY_POSITION_SIZE],
                             const struct peer *first, struct peer out[RING_READER_HOLDERS_MAX],
                             size_t *ret_count) MUST_CHECK;
void ring_reader_blame(struct ring_reader *backend, const struct peer *peer, const char *sentence);

/* Those that said lately that they are busy go to the end, but for `kept`. Returns how many are before them.
 */
size_t ring_reader_put_busy_last(struct ring_reader *backend, struct peer *peers, size_t count,
                                 const struct peer *kept);

/* Many nodes at the same time, each another question. */
struct ring_reader_question {
    struct peer peer;
    struct buf question;
    struct buf answer;
    uint32_t timeout_ms; /* 0: that of the config; a node that is late then is not called silent */
    enum err err;        /* how it ended */
};

/* What is known of a place without asking anybody. */
enum ring_reader_knowledge { RING_READER_KNOWS_NOT, RING_READER_KNOWS_OF_NOTHING, RING_READER_KNOWS_ALL };
enum ring_reader_knowledge ring_reader_knowledge(const struct ring_reader_config *config,
                                                 const uint8_t position[RINGKEY_POSITION_SIZE]);

/*
 * Before and after each wait for others. ERR_NOT_FOUND: there is no ring; ERR_UNREACHABLE: it is not there
 * yet, or too many do so already.
 */
enum err ring_reader_enter(struct ring_reader *backend) MUST_CHECK;
void ring_reader_leave(struct ring_reader *backend);

/* Likewise if only the config is used, and nothing is waited for. False: there is no ring. */
bool ring_reader_use(struct ring_reader *backend) MUST_CHECK;
void ring_reader_unuse(struct ring_reader *backend);
bool ring_reader_is_expected(struct ring_reader *backend); /* there will be one */

/* Likewise for a thread of its own. False: there is no ring, or there are many. */
bool ring_reader_enter_aside(struct ring_reader *backend) MUST_CHECK;
void ring_reader_leave_aside(struct ring_reader *backend);

/*
 * Work that waits for other nodes, on a pool's thread, so that the thread that wants its result can look
 * elsewhere meanwhile, and leave it behind. Its context belongs to the pool's thread while it runs, then to
 * the thread that waits for it; left behind, it is freed by the last of them.
 */
struct ring_reader_aside;

/* release: frees the context. NULL: the pool takes nothing, or there is no memory, and nothing was done with
 * the context.
 */
struct ring_reader_aside *ring_reader_aside_start(struct pool *pool, void (*run)(void *context),
                                                  void (*release)(void *context), void *context);

/* Is it over, now or within this time? UINT64_MAX: as long as it takes. */
bool ring_reader_aside_wait(struct ring_reader_aside *aside, uint64_t wait_us);

/* The thread that started it is done with it, with or without its result: the context is released. */
void ring_reader_aside_leave(struct ring_reader_aside *aside);

/* Until all of them have answered or failed. */
void ring_reader_ask(struct ring_reader *backend, struct ring_reader_question **questions, size_t count);

/* ring_reader_record.c: the record of the capture, whose SURT is in session->surt, into the session's hands.
 */
enum err ring_reader_fetch(struct ring_reader_session *session, const struct ring_reader_capture *capture,
                           bool is_whole, struct err_detail *detail) MUST_CHECK;

/*
 * ring_reader_url.c: the captures of one URL, until it is let go; if only the crowd has any, those near to a
 * time (INT64_MAX: the newest). ERR_UNREACHABLE: nobody can be asked.
 */
enum err ring_reader_list_url(struct ring_reader_session *session, struct bytes surt, int64_t time_us,
                              struct ring_reader_listing **ret_listing) MUST_CHECK;

/* Is there a crowd to turn to? Its config is in use. */
bool ring_reader_has_crowd(const struct ring_reader *backend);

/* How long the holders are waited for before the crowd is asked beside them. */
uint64_t ring_reader_patience_us(struct ring_reader *backend, const struct peer *holders, size_t count);

/* The very capture; lasts until the next call for the session. */
enum err ring_reader_crowd_fetch(struct ring_reader_session *session,
                                 const struct ring_reader_capture *capture, struct captured *ret_captured,
                                 struct err_detail *detail) MUST_CHECK;

/* Whom to ask, and for how long. */
struct ring_reader_manner {
    bool asks_busy;    /* those too that said lately that they are busy */
    uint32_t hasty_ms; /* 0: whoever knows all of it, else all holders, as long as it takes. Otherwise all of
                          them at once, and what has come after this time */
};

/* ring_reader_walk.c: page by page, whatever is known already. */
enum err ring_reader_walk_open(struct backend_session *session, struct bytes from, struct bytes to,
                               bool in_reverse, struct ring_reader_manner manner,
                               struct ring_reader_cursor **ret_cursor) MUST_CHECK;

/* The next one, until the next call. ERR_NOT_FOUND: there is none; ERR_UNREACHABLE: some were not heard. */
enum err ring_reader_walk_next(struct ring_reader_cursor *cursor,
                               const struct ring_reader_member **ret_member) MUST_CHECK;

/* As in struct backend_table. */
enum err ring_reader_captures_open(struct backend_session *session, struct bytes from, struct bytes to,
                                   bool in_reverse, struct backend_cursor **ret_cursor,
                                   struct err_detail *detail) MUST_CHECK;
enum err ring_reader_captures_next(struct backend_cursor *cursor, struct capture *ret_capture,
                                   struct err_detail *detail) MUST_CHECK;
const char *ring_reader_captures_unheard(const struct backend_cursor *cursor);
void ring_reader_cursor_close(struct backend_cursor *cursor);

#endif
