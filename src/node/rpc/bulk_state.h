/* bulk_state - what the files of bulk*.c share. Private to them. */
#ifndef MNEMON_NODE_RPC_BULK_STATE_H
#define MNEMON_NODE_RPC_BULK_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "base/rtt.h"
#include "net/stream.h"
#include "node/rpc/bulk.h"
#include "run/nudge.h"

/*
 * A message on a stream: size:u32 of what follows the head, number:u32 of the question, form:u8, code:u8 (the
 * service; of a failure, the error without its sign), contents.
 */
enum {
    BULK_HEAD_SIZE = 10,
    BULK_TEXT_SIZE_MAX = ERR_TEXT_SIZE_MAX, /* of a failure */
    BULK_MESSAGE_SIZE_MAX = BULK_HEAD_SIZE + BULK_ANSWER_SIZE_MAX,
    BULK_OUTPUT_SIZE_MAX = 4 << 20, /* answers queued on one line; then its questions wait */
    BULK_CALLS_MAX = 256,           /* under way on one line */
    BULK_TICK_MS = 20,
};

enum bulk_form { BULK_QUESTION, BULK_ANSWER, BULK_FAILURE, BULK_FORMS_COUNT };

/* A question of ours that waits for its answer. */
struct bulk_call {
    struct bulk_call *next; /* of its line */
    uint32_t number;
    enum bulk_service service;
    uint64_t asked_at_us;
    uint64_t deadline_us;
    bulk_done *done;
    void *context;
};

/* One stream, with whoever is at its other end. */
struct bulk_line {
    struct bulk_line *next; /* of the bulk */
    struct bulk *bulk;
    struct stream *stream;
    struct peer peer;
    bool is_open;
    bool is_over;      /* it is being ended */
    bool is_ours;      /* we connected */
    bool is_held_back; /* its input: by the rate, or by answers that he does not take */
    uint64_t used_at_us;
    struct buf input;  /* a message that has not come whole */
    struct buf output; /* from output_start on, not yet given to the stream */
    size_t output_start;
    struct bulk_call *calls;
    size_t calls_count;
};

/* How fast all lines together may be, in one direction. */
struct bulk_meter {
    uint64_t rate;    /* bytes a second; 0: any */
    uint64_t free_us; /* when what has passed is paid for */
};

/* What was learnt of a peer. */
struct bulk_habit {
    struct rtt rtt;
    uint64_t busy_until_us;
    uint32_t busy_wait_us; /* 0: he was not busy when he answered last */
    uint32_t lists_count;  /* that he was given here, and has not followed up yet */
    uint64_t lists_until_us;
};

/* Work that another thread wants done here. */
struct bulk_job {
    struct bulk_job *next;
    void (*run)(void *context);
    void *context;
};

struct bulk {
    struct bulk_config config;
    struct address address; /* that it listens at */
    struct {
        bulk_handler *_Atomic handler; /* NULL: none */
        void *context;                 /* is there before the handler */
    } services[BULK_SERVICES_COUNT];
    uv_loop_t loop;
    struct nudge nudge; /* there are jobs, or it is stopped */
    uv_timer_t tick;
    uv_prepare_t prepare; /* stops the tick where nobody needs it */
    pthread_t thread;
    bool is_running;

    /* The thread's. */
    struct stream_server *server;
    struct bulk_line *lines;
    uint32_t lines_count;
    uint32_t numbers; /* of questions so far */
    struct bulk_meter upload;
    struct bulk_meter download;
    struct bulk_meter reads;
    struct buf answer; /* work space of handlers */
    struct bulk_race *races;
    bool is_ending;

    pthread_mutex_t lock;
    struct bulk_job *jobs; /* lock; in order */
    struct bulk_job **jobs_end;
    bool is_stopped;       /* lock */
    struct bulk_stat stat; /* lock */
    struct map habits;     /* lock: key of a peer -> struct bulk_habit */
};

uint64_t bulk_now_us(const struct bulk *bulk);

/* bulk_line.c */
struct bulk_line *bulk_line_find(struct bulk *bulk, const struct peer *peer);
enum err bulk_line_connect(struct bulk *bulk, const struct peer *peer,
                           struct bulk_line **ret_line) MUST_CHECK;
void bulk_line_accept(void *context, struct stream *stream);
enum err bulk_line_ask(struct bulk_line *line, enum bulk_service service, struct bytes question,
                       uint64_t deadline_us, bulk_done *done, void *context, uint32_t *ret_number) MUST_CHECK;

/* done() is not called; nothing happens where the call is over. */
void bulk_cancel(struct bulk *bulk, uint32_t number);

/*
 * The two parts of a tick. Each returns true where it has called somebody, so that any line may be gone: look
 * at the list anew.
 */
bool bulk_line_end_late(struct bulk_line *line, uint64_t now_us);
bool bulk_line_go_on(struct bulk_line *line, uint64_t now_us);

/* Does it wait for a time: of a call, or of the rates? */
bool bulk_line_needs_ticks(const struct bulk_line *line);

/* End it; its calls end with the error. */
void bulk_line_end(struct bulk_line *line, enum err err);

/* bulk.c: ask over the peer's line, which is made if need be. */
enum err bulk_start_call(struct bulk *bulk, const struct peer *peer, enum bulk_service service,
                         struct bytes question, uint64_t deadline_us, bulk_done *done, void *context,
                         uint32_t *ret_number) MUST_CHECK;

/* bulk_read.c: he has answered a question of ours, after so long. */
void bulk_learn(struct bulk *bulk, const struct peer *peer, enum bulk_service service, enum err err,
                uint64_t took_us);

/* bulk_race.c */
void bulk_races_tick(struct bulk *bulk, uint64_t now_us);

#endif
