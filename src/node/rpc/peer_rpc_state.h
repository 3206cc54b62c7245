/*
 * peer_rpc_state - one machine in three files, which share struct peer_rpc: peer_rpc_line.c does the streams
 * and the messages on them, peer_rpc_hello.c which version is spoken there, peer_rpc.c all that is above one
 * stream. Private to them.
 */
#ifndef MNEMON_NODE_RPC_PEER_RPC_STATE_H
#define MNEMON_NODE_RPC_PEER_RPC_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "base/retry.h"
#include "base/standing.h"
#include "net/stream.h"
#include "node/rpc/peer_rpc.h"
#include "run/loop.h"

/*
 * A message on a stream: size:u32 of what follows the head, number:u32 of the question, form:u8, code:u8 (the
 * service; of a failure, the error without its sign), contents.
 */
enum {
    PEER_RPC_HEAD_SIZE = 10,
    PEER_RPC_TEXT_SIZE_MAX = ERR_TEXT_SIZE_MAX, /* of a failure */
    PEER_RPC_MESSAGE_SIZE_MAX = PEER_RPC_HEAD_SIZE + PEER_RPC_ANSWER_SIZE_MAX,
    PEER_RPC_OUTPUT_SIZE_MAX = 4 << 20, /* answers queued on one line; then its questions wait */
    PEER_RPC_CALLS_MAX = 256,           /* under way on one line */
    PEER_RPC_TICK_US = 20000,
    PEER_RPC_POSTS_MAX = 1 << 16,
    PEER_RPC_BUSY_MAX = 1024, /* peers */
};

enum peer_rpc_form { PEER_RPC_QUESTION, PEER_RPC_ANSWER, PEER_RPC_FAILURE, PEER_RPC_FORMS_COUNT };

/* A question of ours that waits for its answer. */
struct peer_rpc_call {
    struct peer_rpc_call *next; /* of its line */
    uint32_t number;
    enum peer_rpc_service service;
    uint64_t asked_at_us;
    uint64_t deadline_us;
    peer_rpc_done *done;
    void *context;
};

/* One stream, with whoever is at its other end. */
struct peer_rpc_line {
    struct peer_rpc_line *next; /* of the peer_rpc */
    struct peer_rpc *peer_rpc;
    struct stream *stream;
    struct peer peer;
    uint64_t serial;         /* no other line has it */
    uint32_t deferred_count; /* questions of the peer whose answers come later */
    bool is_open;
    bool is_over;          /* it is being ended */
    bool is_held_back;     /* its input: by the rate, or by answers that the peer does not take */
    bool is_settled;       /* it is known what the peer speaks */
    bool is_refused;       /* nothing that we speak: it is told so, and the line ends */
    bool is_weak;          /* not in TLS, although both could: hellos only, and it ends soon */
    uint8_t retries_count; /* of the connection: in another way */
    uint32_t hello_number; /* of our hello that waits for its answer; 0: none */
    size_t hello_end;      /* in the output: what follows waits until it is settled */
    uint64_t used_at_us;
    struct buf input;  /* a message that has not come whole */
    struct buf output; /* from output_start on, not yet given to the stream */
    size_t output_start;
    struct peer_rpc_call *calls;
    size_t calls_count;
};

/* How fast all lines together may be, in one direction. */
struct peer_rpc_meter {
    uint64_t rate;    /* bytes a second; 0: any */
    uint64_t free_us; /* when what has passed is paid for */
};

/* What was learnt of a peer. */
struct peer_rpc_habit {
    struct rtt rtt;
    uint32_t lists_count; /* that it was given here, and has not followed up yet */
    uint64_t lists_until_us;
};

struct peer_rpc {
    struct peer_rpc_config config;
    struct address address; /* as others reach it */
    struct {
        peer_rpc_handler *_Atomic handler; /* NULL: none */
        void *context;                     /* is there before the handler */
    } services[PEER_RPC_SERVICES_COUNT];
    struct tls_context *tls; /* the thread's; NULL: this node has no TLS */
    struct loop loop;
    struct loop_timer tick;
    uv_prepare_t prepare; /* stops the tick when nothing needs it */
    bool is_running;

    /* The thread's. */
    struct stream_server *server;
    struct peer_rpc_line *lines;
    uint32_t lines_count;
    uint32_t numbers;             /* of questions so far */
    uint64_t serials;             /* of lines so far */
    struct peer_rpc_ticket asked; /* what a handler is answering just now */
    bool is_deferred;             /* it has taken the ticket */
    struct peer_rpc_meter upload;
    struct peer_rpc_meter download;
    struct peer_rpc_meter reads;
    struct buf answer; /* work space of handlers */
    struct peer_rpc_race *races;
    bool is_ending;

    pthread_mutex_t lock;
    struct ring_view_rpc stat; /* lock */
    struct map habits;         /* lock: key of a peer -> struct peer_rpc_habit */
    struct standing standing;  /* lock: peers that said they are busy, by key */
    struct standing_entry busy[PEER_RPC_BUSY_MAX];
};

uint64_t peer_rpc_now_us(const struct peer_rpc *peer_rpc);

/*
 * peer_rpc_hello.c. A line to a peer was made: the first thing on it is our hello. The peer's came, and the
 * answer is to be appended. Our hello was answered; false: the line is no more, or connects anew. A question
 * came before any hello.
 */
void peer_rpc_hello_begin(struct peer_rpc_line *line);
enum err peer_rpc_hello_take(struct peer_rpc_line *line, struct bytes question, struct buf *answer,
                             struct err_detail *detail) MUST_CHECK;
bool peer_rpc_hello_settle(struct peer_rpc_line *line, enum err err, struct bytes answer);
void peer_rpc_hello_miss(struct peer_rpc_line *line);

/* May what was queued go out? Else only our hello may. */
bool peer_rpc_hello_is_free(const struct peer_rpc_line *line);

/* May we ask over this line? Not if it is not in TLS and the peer has not said yet that it has none. */
bool peer_rpc_hello_is_for_us(const struct peer_rpc_line *line);

/* How to connect to the peer, as far as it is known what it speaks. A wrong guess costs a connection. */
enum channel_kind peer_rpc_hello_channel(struct peer_rpc *peer_rpc, const struct peer *peer);

/* peer_rpc_line.c */
/* Connect anew, in this way: nothing but our hello has been said. The line ends with err if it was tried. */
void peer_rpc_line_retry(struct peer_rpc_line *line, enum channel_kind kind, enum err err);
bool peer_rpc_line_queue(struct peer_rpc_line *line, uint32_t number, enum peer_rpc_form form, uint8_t code,
                         struct bytes contents);
void peer_rpc_line_blame(struct peer_rpc_line *line, const char *sentence); /* and end it */
struct peer_rpc_line *peer_rpc_line_find(struct peer_rpc *peer_rpc, const struct peer *peer);
enum err peer_rpc_line_connect(struct peer_rpc *peer_rpc, const struct peer *peer,
                               struct peer_rpc_line **ret_line) MUST_CHECK;
void peer_rpc_line_accept(void *context, struct stream *stream);
enum err peer_rpc_line_ask(struct peer_rpc_line *line, enum peer_rpc_service service, struct bytes question,
                           uint64_t deadline_us, peer_rpc_done *done, void *context,
                           uint32_t *ret_number) MUST_CHECK;

/* done() is not called; does nothing if the call is over. */
void peer_rpc_cancel(struct peer_rpc *peer_rpc, uint32_t number);

/*
 * The two parts of a tick. Each returns true if it has called a callback: any line may be gone then, so look
 * at the list anew.
 */
bool peer_rpc_line_end_late(struct peer_rpc_line *line, uint64_t now_us);
bool peer_rpc_line_go_on(struct peer_rpc_line *line, uint64_t now_us);

/* Does it wait for a time: of a call, or of the rates? */
bool peer_rpc_line_needs_ticks(const struct peer_rpc_line *line);

/* End it; its calls end with the error. */
void peer_rpc_line_end(struct peer_rpc_line *line, enum err err);

/* peer_rpc.c: the peer has answered a question of ours, after so long. */
void peer_rpc_learn(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                    enum err err, uint64_t took_us);

#endif
