#include "node/search/ring_search.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/standing.h"
#include "node/search/ring_search_merge.h"
#include "node/search/search_put.h"
#include "node/versions/dialects.h"
#include "replay/search/search_words.h"
#include "run/bell.h"
#include "run/pool.h"

enum {
    SILENT_MAX = 512,
    EXPRESSION_SIZE_MAX = 8 << 10,
    SECOND_US = 1000000,
};
static const uint64_t SILENT_US = 10 * SECOND_US; /* so long a silent node is not asked */
static const uint64_t PATIENCE_US_MIN = 400000;   /* before another holder is asked, too */
static const uint64_t LOOK_US = 200000;           /* between two looks at whether the node ends */
static const uint64_t SPARE_US = 50000;           /* between the last answer in time and the end */

/* A node, and when it was in the ring the last time. */
struct seen {
    struct peer peer;
    uint64_t at_us;
};

struct ring_search {
    struct ring_search_config config;
    struct pool pool;
    pthread_mutex_t lock;
    struct standing silent; /* lock */
    struct standing_entry silent_entries[SILENT_MAX];
    struct seen seen[RING_SEARCH_SEEN_MAX]; /* lock */
    size_t seen_count;                      /* lock */
    size_t runs_count;                      /* lock: that are not freed */
    _Atomic bool is_stopping;
    struct bell idle;
};

struct run;

/* A question to one node. */
struct call {
    struct run *run;
    size_t node;
    struct peer peer;
    uint64_t asked_at_us;
    uint32_t timeout_ms;
    uint64_t patience_us;
    struct buf answer; /* as the next two: the run's lock, until is_over */
    enum err err;
    bool is_over;
    bool is_taken; /* the run has looked at it */
};

/* One search: of the pool's thread, of the search here, and of each call; the last of them frees it. */
struct run {
    struct ring_search *ring_search;
    struct search_job *job; /* the reader's; the pool's thread alone uses it */
    struct search_ring_report *report;
    struct pool_job pool_job;
    struct buf text;     /* words and host */
    struct buf question; /* as others get it */
    uint64_t begin_us;
    uint64_t deadline_us;
    struct search_cover cover;
    void *memory[3];
    size_t nodes_count;
    size_t self; /* among the nodes of the cover */
    struct search_code_head own;
    struct search_code_arc *own_arcs;
    struct call *calls[RING_SEARCH_NODES_MAX];
    size_t calls_count;
    bool is_cancelled; /* the node ends */

    struct search_job here;
    pthread_mutex_t lock;
    struct bell bell;
    uint32_t users_count; /* lock */
    size_t answers_size;  /* lock */
    bool is_here_over;    /* lock */
};

static uint64_t now_us(const struct run *run) {
    return clock_monotonic_us(run->ring_search->config.clock);
}

/* ---- the life of a run ---- */

static void run_free(struct run *run) {
    struct ring_search *ring_search = run->ring_search;
    for (size_t i = 0; i < run->calls_count; i++) {
        buf_done(&run->calls[i]->answer);
        free(run->calls[i]);
    }
    for (size_t i = 0; i < sizeof run->memory / sizeof *run->memory; i++) {
        free(run->memory[i]);
    }
    search_job_done(&run->here);
    free(run->own_arcs);
    buf_done(&run->text);
    buf_done(&run->question);
    pthread_mutex_destroy(&run->lock);
    free(run);
    pthread_mutex_lock(&ring_search->lock);
    ring_search->runs_count--;
    bell_ring(&ring_search->idle);
    pthread_mutex_unlock(&ring_search->lock);
}

static void run_leave(struct run *run) {
    pthread_mutex_lock(&run->lock);
    bool is_last = --run->users_count == 0;
    pthread_mutex_unlock(&run->lock);
    if (is_last) {
        run_free(run);
    }
}

static void run_join(struct run *run) {
    pthread_mutex_lock(&run->lock);
    run->users_count++;
    pthread_mutex_unlock(&run->lock);
}

/* ---- what is asked of others ---- */

/* Tell the run, whose lock is held; with the answer, if there is room for it. */
static void call_end(struct call *call, enum err err, struct bytes answer) {
    struct run *run = call->run;
    pthread_mutex_lock(&run->lock);
    bool fits = run->answers_size + answer.size <= RING_SEARCH_ANSWERS_SIZE_MAX;
    run->answers_size += fits ? answer.size : 0;
    call->err = err == ERR_OK && !fits ? ERR_LIMIT : err;
    if (call->err == ERR_OK) {
        call->err = buf_put(&call->answer, answer);
    }
    call->is_over = true;
    bell_ring(&run->bell);
    pthread_mutex_unlock(&run->lock);
    run_leave(run);
}

static void call_on_answer(void *context, enum err err, struct bytes answer) {
    call_end(context, err, answer);
}

/* The thread of peer_rpc. */
static void call_start(void *context) {
    struct call *call = context;
    struct run *run = call->run;
    enum err err = peer_rpc_call(run->ring_search->config.peer_rpc, &call->peer, PEER_RPC_SEARCH,
                                 buf_bytes(&run->question), call->timeout_ms, call_on_answer, call);
    if (err != ERR_OK) {
        call_end(call, err, bytes_of(NULL, 0));
    }
}

static enum err run_call(struct run *run, size_t node) {
    struct peer_rpc *peer_rpc = run->ring_search->config.peer_rpc;
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        return ERR_MEMORY;
    }
    uint64_t now = now_us(run);
    uint64_t left_us = run->deadline_us > now + SPARE_US ? run->deadline_us - now - SPARE_US : 0;
    uint64_t usual_us = peer_rpc_round_trip_us(peer_rpc, &run->cover.nodes[node].peer);
    *call = (struct call){
        .run = run,
        .node = node,
        .peer = run->cover.nodes[node].peer,
        .asked_at_us = now,
        .timeout_ms = (uint32_t)(left_us / 1000) + 1,
        .patience_us = PATIENCE_US_MIN + 3 * usual_us,
    };
    buf_init(&call->answer, SEARCH_CODE_ANSWER_SIZE_MAX);
    run->calls[run->calls_count++] = call;
    run_join(run);
    if (peer_rpc_post(peer_rpc, call_start, call) != ERR_OK) {
        call_end(call, ERR_CLOSED, bytes_of(NULL, 0));
    }
    return ERR_OK;
}

/* ---- what is known of the nodes ---- */

static bool is_silent(struct run *run, const struct peer *peer) {
    struct ring_search *ring_search = run->ring_search;
    pthread_mutex_lock(&ring_search->lock);
    bool is_silent = standing_holds(&ring_search->silent, STANDING_SILENT, peer_key(peer), now_us(run));
    pthread_mutex_unlock(&ring_search->lock);
    return is_silent;
}

static void note_silent(struct run *run, const struct peer *peer, bool is_silent) {
    struct ring_search *ring_search = run->ring_search;
    uint64_t now = now_us(run);
    pthread_mutex_lock(&ring_search->lock);
    if (is_silent) {
        standing_note(&ring_search->silent, STANDING_SILENT, peer_key(peer), now, now + SILENT_US);
    } else {
        standing_clear(&ring_search->silent, STANDING_SILENT, peer_key(peer));
    }
    pthread_mutex_unlock(&ring_search->lock);
}

static enum search_cover_reason reason_of(enum err err) {
    switch (err) {
    case ERR_UNSUPPORTED:
        return SEARCH_COVER_UNABLE;
    case ERR_BUSY:
        return SEARCH_COVER_BUSY;
    case ERR_TIMEOUT:
    case ERR_UNREACHABLE:
    case ERR_CLOSED:
    case ERR_REFUSED:
    case ERR_CANCELLED:
        return SEARCH_COVER_SILENT;
    default:
        return SEARCH_COVER_NOT_NOW;
    }
}

static void visit_arc(void *visitor, const struct holders_arc *arc) {
    search_cover_add(visitor, arc);
}

/* Those that need not be tried. */
static void bar_nodes(struct run *run) {
    const struct ring_search_config *config = &run->ring_search->config;
    for (size_t i = 0; i < run->cover.nodes_count; i++) {
        const struct peer *peer = &run->cover.nodes[i].peer;
        if (i == run->self) {
            continue;
        }
        if (config->dialects == NULL || !dialects_has(config->dialects, peer, DIALECT_SEARCH)) {
            bool is_known = config->dialects != NULL && dialects_find(config->dialects, peer).is_known;
            search_cover_fail(&run->cover, i, is_known ? SEARCH_COVER_UNABLE : SEARCH_COVER_UNKNOWN);
        } else if (is_silent(run, peer)) {
            search_cover_fail(&run->cover, i, SEARCH_COVER_SILENT);
        }
    }
}

static enum err make_cover(struct run *run) {
    const struct ring_search_config *config = &run->ring_search->config;
    struct search_cover_config cover = {.nodes_max = RING_SEARCH_KNOWN_NODES_MAX,
                                        .arcs_max = RING_SEARCH_KNOWN_ARCS_MAX};
    cover.nodes = run->memory[0] = calloc(cover.nodes_max, sizeof *cover.nodes);
    cover.weights = run->memory[1] = calloc(cover.nodes_max, sizeof *cover.weights);
    cover.arcs = run->memory[2] = calloc(cover.arcs_max, sizeof *cover.arcs);
    if (cover.nodes == NULL || cover.weights == NULL || cover.arcs == NULL) {
        return ERR_MEMORY;
    }
    randombytes_buf(&cover.seed, sizeof cover.seed);
    search_cover_init(&run->cover, &cover);
    run->nodes_count = config->each_arc(config->context, visit_arc, &run->cover);
    run->self = search_cover_find(&run->cover, &config->self);
    bar_nodes(run);
    return ERR_OK;
}

/* ---- this node's own part ---- */

static void run_on_here(void *context) {
    struct run *run = context;
    pthread_mutex_lock(&run->lock);
    run->is_here_over = true;
    bell_ring(&run->bell);
    pthread_mutex_unlock(&run->lock);
    run_leave(run);
}

/* What has come until now, the search that begins then finds. */
static void claim_own(struct run *run) {
    const struct ring_search_config *config = &run->ring_search->config;
    struct search_code_head *own = &run->own;
    struct search_stat stat;
    struct absent absent = {.is_any = false};
    config->claims(config->context, &own->has_everything, run->own_arcs, &own->arcs_count);
    own->arcs_count = own->has_everything ? 0 : own->arcs_count;
    search_stat(config->search, &stat);
    search_add_absent(config->search, &absent);
    own->left_count = stat.left_count > 0 || stat.error[0] == '\0' ? stat.left_count : 1;
    own->lacks_volumes = absent.is_any;
    if (run->self < run->cover.nodes_count) {
        search_cover_take_own(&run->cover, run->self, own, run->own_arcs);
    }
}

static enum err search_here(struct run *run) {
    run->here.archive = run->job->archive;
    run->here.done = run_on_here;
    run->here.context = run;
    run_join(run);
    enum err err = search_ask(run->ring_search->config.search, &run->here);
    if (err != ERR_OK) {
        run->here.err = err_set(&run->here.detail, ERR_BUSY, "too many are searching right now: try again");
        run_on_here(run);
    }
    return err;
}

/* ---- asking until all is answered for ---- */

/* As many as may be under way, of those that are of use. */
static void ask_more(struct run *run) {
    size_t open_count = 0;
    size_t node;
    for (size_t i = 0; i < run->calls_count; i++) {
        open_count += !run->calls[i]->is_taken;
    }
    while (open_count < RING_SEARCH_AT_ONCE && now_us(run) + SPARE_US < run->deadline_us &&
           search_cover_choose(&run->cover, &node)) {
        if (run->calls_count == RING_SEARCH_NODES_MAX) {
            search_cover_fail(&run->cover, node, SEARCH_COVER_UNASKED);
        } else if (run_call(run, node) != ERR_OK) {
            search_cover_fail(&run->cover, node, SEARCH_COVER_NOT_NOW);
        } else {
            open_count++;
        }
    }
}

static void take_call(struct run *run, struct call *call) {
    const struct ring_search_config *config = &run->ring_search->config;
    call->is_taken = true;
    note_silent(run, &call->peer, call->err != ERR_OK && reason_of(call->err) == SEARCH_COVER_SILENT);
    if (call->err != ERR_OK) {
        search_cover_fail(&run->cover, call->node, reason_of(call->err));
    } else if (search_code_check_answer(buf_bytes(&call->answer), NULL) != ERR_OK) {
        call->err = ERR_INVALID;
        search_cover_fail(&run->cover, call->node, SEARCH_COVER_FALSE);
        config->blame(config->context, &call->peer, "answers a search with what is no answer");
    } else {
        search_cover_take(&run->cover, call->node, buf_bytes(&call->answer));
    }
}

/* What has come is taken, what is late is passed over. Returns whether the search goes on, and until when it
 * may sleep. Whoever holds nothing but what is whole is not waited for. */
static bool look_at_calls(struct run *run, uint64_t *ret_until_us) {
    uint64_t now = now_us(run);
    bool goes_on = false;
    *ret_until_us = run->deadline_us;
    for (size_t i = 0; i < run->calls_count; i++) {
        struct call *call = run->calls[i];
        pthread_mutex_lock(&run->lock);
        bool is_over = call->is_over;
        pthread_mutex_unlock(&run->lock);
        if (is_over && !call->is_taken) {
            take_call(run, call);
        } else if (!is_over && now >= call->asked_at_us + call->patience_us) {
            search_cover_wait(&run->cover, call->node);
        }
    }
    ask_more(run);
    search_cover_weigh_open(&run->cover);
    for (size_t i = 0; i < run->calls_count; i++) {
        const struct call *call = run->calls[i];
        if (call->is_taken || run->cover.weights[call->node] <= 0) {
            continue;
        }
        uint64_t late_us = call->asked_at_us + call->patience_us;
        bool is_waited = run->cover.nodes[call->node].state == SEARCH_COVER_WAITED;
        *ret_until_us = !is_waited && late_us < *ret_until_us ? late_us : *ret_until_us;
        goes_on = true;
    }
    return goes_on && now < run->deadline_us;
}

static void await_all(struct run *run) {
    for (;;) {
        uint64_t until_us;
        unsigned heard = bell_listen(&run->bell);
        bool goes_on = look_at_calls(run, &until_us);
        pthread_mutex_lock(&run->lock);
        bool is_here_over = run->is_here_over;
        pthread_mutex_unlock(&run->lock);
        if (is_here_over && (!goes_on || run->here.err != ERR_OK)) {
            return;
        }
        if (run->ring_search->is_stopping) {
            run->is_cancelled = true;
            return;
        }
        until_us = goes_on ? until_us : BELL_NEVER_US; /* the search here has a time of its own */
        uint64_t look_us = now_us(run) + LOOK_US;
        until_us = until_us < look_us ? until_us : look_us;
        (void)bell_wait_until(&run->bell, heard, until_us);
    }
}

/* ---- one answer of many ---- */

static enum err run_merge(struct run *run) {
    struct ring_search_answer answers[RING_SEARCH_NODES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < run->calls_count; i++) {
        const struct call *call = run->calls[i];
        if (call->is_taken && call->err == ERR_OK) {
            answers[count++] =
                (struct ring_search_answer){.bytes = buf_bytes(&call->answer), .from = &call->peer};
        }
    }
    return ring_search_merge(&run->ring_search->config, &run->here, answers, count, run->job);
}

/* ---- what was searched ---- */

/* A node that holds something that is not whole is named, whatever it did. */
static struct search_ring_node *report_add(const struct run *run, size_t index,
                                           struct search_ring_report *report) {
    const struct search_cover_node *node = &run->cover.nodes[index];
    struct search_ring_node named = {
        .left_count = node->left_count,
        .lacks_volumes = node->lacks_volumes,
    };
    bool is_pending = node->state == SEARCH_COVER_ASKED || node->state == SEARCH_COVER_WAITED;
    if (node->state == SEARCH_COVER_FAILED || node->state == SEARCH_COVER_IDLE || is_pending) {
        named.reason = search_cover_reason_text(is_pending ? SEARCH_COVER_SILENT : node->reason);
    }
    address_format(&node->peer.address, named.address);
    report->named[report->named_count] = named;
    return &report->named[report->named_count++];
}

static void report_nodes(struct run *run, struct search_ring_report *report) {
    struct search_ring_node *named[SEARCH_RING_NODES_MAX];
    size_t indexes[SEARCH_RING_NODES_MAX];
    size_t count = 0;
    search_cover_weigh_open(&run->cover);
    for (size_t i = 0; i < run->cover.nodes_count && count < SEARCH_RING_NODES_MAX; i++) {
        if (run->cover.weights[i] > 0) {
            indexes[count] = i;
            named[count++] = report_add(run, i, report);
        }
    }
    search_cover_weigh(&run->cover, SEARCH_COVER_MISSING);
    for (size_t i = 0; i < count; i++) {
        named[i]->missing = run->cover.weights[indexes[i]];
    }
    search_cover_weigh(&run->cover, SEARCH_COVER_BEHIND);
    for (size_t i = 0; i < count; i++) {
        named[i]->behind = run->cover.weights[indexes[i]];
    }
}

/* ---- who has gone ---- */

/* The place of the node, or that of one that was not seen for too long. NULL: there is none. */
static struct seen *place_of(struct ring_search *ring_search, const struct peer *peer, uint64_t now) {
    struct seen *free_place = NULL;
    for (size_t i = 0; i < ring_search->seen_count; i++) {
        struct seen *seen = &ring_search->seen[i];
        if (peer_same_key(&seen->peer, peer)) {
            return seen;
        }
        free_place = now > seen->at_us + ring_search->config.gone_us ? seen : free_place;
    }
    if (free_place == NULL && ring_search->seen_count < RING_SEARCH_SEEN_MAX) {
        free_place = &ring_search->seen[ring_search->seen_count++];
    }
    return free_place;
}

void ring_search_see(struct ring_search *ring_search, const struct peer *nodes, size_t count) {
    uint64_t now = clock_monotonic_us(ring_search->config.clock);
    pthread_mutex_lock(&ring_search->lock);
    for (size_t i = 0; i < count && i < RING_SEARCH_SEEN_MAX; i++) {
        struct seen *seen = peer_has_key(&nodes[i]) ? place_of(ring_search, &nodes[i], now) : NULL;
        if (seen != NULL) {
            *seen = (struct seen){.peer = nodes[i], .at_us = now};
        }
    }
    pthread_mutex_unlock(&ring_search->lock);
}

static void report_gone(const struct run *run, struct search_ring_report *report) {
    struct ring_search *ring_search = run->ring_search;
    const struct ring_search_config *config = &ring_search->config;
    uint64_t now = now_us(run);
    size_t count = 0;
    pthread_mutex_lock(&ring_search->lock);
    for (size_t i = 0; i < ring_search->seen_count; i++) {
        const struct seen *seen = &ring_search->seen[i];
        bool is_gone = now <= seen->at_us + config->gone_us &&
                       search_cover_find(&run->cover, &seen->peer) == run->cover.nodes_count;
        if (is_gone && count < SEARCH_RING_GONE_MAX) {
            address_format(&seen->peer.address, report->gone[count]);
        }
        count += is_gone;
    }
    pthread_mutex_unlock(&ring_search->lock);
    report->gone_count = count >= config->copies(config->context) ? count : 0;
}

static void run_report(struct run *run) {
    struct search_ring_report *report = run->report;
    struct search_cover_sum sum;
    search_cover_sum(&run->cover, &sum);
    *report = (struct search_ring_report){
        .is_ring = true,
        .whole = sum.whole,
        .behind = sum.behind,
        .missing = sum.missing,
        .parts_count = sum.arcs_count,
        .whole_count = sum.whole_count,
        .behind_count = sum.behind_count,
        .missing_count = sum.missing_count,
        .nodes_count = run->nodes_count,
        .asked_count = sum.asked_count,
        .answered_count = sum.answered_count,
        .took_us = now_us(run) - run->begin_us,
    };
    report_nodes(run, report);
    report_gone(run, report);
}

/* ---- a run ---- */

/* What is no question here is none elsewhere. */
static enum err check_words(struct run *run) {
    struct buf expression;
    buf_init(&expression, EXPRESSION_SIZE_MAX);
    enum err err = search_words_put(&expression, run->here.question.words, &run->job->detail);
    buf_done(&expression);
    return err;
}

static enum err run_search(struct run *run) {
    enum err err = run->ring_search->is_stopping ? ERR_CANCELLED : check_words(run);
    err = err == ERR_OK ? make_cover(run) : err;
    if (err != ERR_OK) {
        return err;
    }
    claim_own(run);
    if (search_here(run) == ERR_OK) {
        await_all(run);
    }
    if (run->is_cancelled) {
        return ERR_CANCELLED;
    }
    if (run->here.err != ERR_OK) {
        run->job->detail = run->here.detail;
        return run->here.err;
    }
    run_report(run);
    return run_merge(run);
}

static void ring_search_run(void *context, size_t seat) {
    struct run *run = context;
    struct search_job *job = run->job;
    (void)seat;
    job->err = run_search(run);
    job->done(job->context);
    run_leave(run);
}

static struct run *run_new(struct ring_search *ring_search, struct search_job *job,
                           struct search_ring_report *report) {
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return NULL;
    }
    const struct search_question *question = &job->question;
    run->ring_search = ring_search;
    run->job = job;
    run->report = report;
    run->users_count = 1;
    run->begin_us = clock_monotonic_us(ring_search->config.clock);
    run->deadline_us = run->begin_us + RING_SEARCH_TIME_US;
    pthread_mutex_init(&run->lock, NULL);
    search_job_init(&run->here);
    buf_init(&run->text, SEARCH_CODE_WORDS_SIZE_MAX + SEARCH_CODE_HOST_SIZE_MAX);
    buf_init(&run->question, SEARCH_CODE_QUESTION_SIZE_MAX);
    run->own_arcs = calloc(SEARCH_CODE_ARCS_MAX, sizeof *run->own_arcs);
    buf_put(&run->text, question->words);
    buf_put(&run->text, question->host);
    struct bytes text = buf_bytes(&run->text);
    size_t count = question->offset + question->limit + 1;
    run->here.question = (struct search_question){
        .words = bytes_slice(text, 0, question->words.size),
        .host = bytes_skip(text, question->words.size),
        .from_us = question->from_us,
        .to_us = question->to_us,
        .limit = count < SEARCH_CODE_RESULTS_MAX ? count : SEARCH_CODE_RESULTS_MAX,
    };
    struct search_code_question asked = {.words = run->here.question.words,
                                         .host = run->here.question.host,
                                         .from_us = question->from_us,
                                         .to_us = question->to_us,
                                         .count = (uint32_t)run->here.question.limit};
    enum err err = run->text.err == ERR_OK ? search_put_question(&run->question, &asked) : run->text.err;
    pthread_mutex_lock(&ring_search->lock);
    ring_search->runs_count++;
    pthread_mutex_unlock(&ring_search->lock);
    if (err != ERR_OK || run->own_arcs == NULL) {
        run_leave(run);
        return NULL;
    }
    return run;
}

enum err ring_search_ask(struct ring_search *ring_search, struct search_job *job,
                         struct search_ring_report *report) {
    ASSERT(job->done != NULL && job->archive != NULL);
    const struct search_question *question = &job->question;
    if (question->limit == 0 || question->offset + question->limit > SEARCH_RING_RESULTS_MAX) {
        return err_set(&job->detail, ERR_LIMIT, "a search over the ring shows its first %u results",
                       SEARCH_RING_RESULTS_MAX);
    }
    struct run *run = run_new(ring_search, job, report);
    if (run == NULL) {
        return ERR_MEMORY;
    }
    run->pool_job = (struct pool_job){.run = ring_search_run, .context = run};
    if (!pool_try(&ring_search->pool, &run->pool_job)) {
        run_leave(run);
        return ERR_BUSY;
    }
    return ERR_OK;
}

/* ---- start and stop ---- */

enum err ring_search_start(const struct ring_search_config *config, struct ring_search **ret_ring_search) {
    struct ring_search *ring_search = calloc(1, sizeof *ring_search);
    if (ring_search == NULL) {
        return ERR_MEMORY;
    }
    uint64_t seed;
    struct pool_config pool = {
        .name = "ring-search", .threads_max = RING_SEARCH_THREADS, .jobs_max = RING_SEARCH_WAITING};
    ring_search->config = *config;
    ring_search->config.clock = config->clock != NULL ? config->clock : &clock_system;
    pthread_mutex_init(&ring_search->lock, NULL);
    randombytes_buf(&seed, sizeof seed);
    standing_init(&ring_search->silent, ring_search->silent_entries, SILENT_MAX, seed);
    enum err err = pool_start(&ring_search->pool, &pool);
    if (err != ERR_OK) {
        ring_search_free(ring_search);
        return err;
    }
    *ret_ring_search = ring_search;
    return ERR_OK;
}

void ring_search_stop(struct ring_search *ring_search) {
    ring_search->is_stopping = true;
    pool_stop(&ring_search->pool);
}

void ring_search_free(struct ring_search *ring_search) {
    if (ring_search == NULL) {
        return;
    }
    pthread_mutex_lock(&ring_search->lock);
    while (ring_search->runs_count > 0) { /* what others still hold of them ends soon */
        (void)bell_await(&ring_search->idle, &ring_search->lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&ring_search->lock);
    pthread_mutex_destroy(&ring_search->lock);
    free(ring_search);
}
