#include "node/search/ring_search_service.h"
#include "node/search/search_put.h"

#include <pthread.h>
#include <stdlib.h>

struct ring_search_service {
    struct ring_search_config config;
    pthread_mutex_t lock;
    struct answering *under_way; /* lock */
    uint32_t count;              /* lock: of them */
};

/* One question of another node. */
struct answering {
    struct ring_search_service *service;
    struct answering *next;
    struct peer from;
    struct peer_rpc_ticket ticket;
    struct buf text; /* of the question */
    struct search_job job;
    struct search_code_head head;
    struct search_code_arc *arcs; /* SEARCH_CODE_ARCS_MAX */
    struct buf answer;
    enum err err;
};

static void answering_free(struct answering *answering) {
    if (answering != NULL) {
        search_job_done(&answering->job);
        buf_done(&answering->text);
        buf_done(&answering->answer);
        free(answering->arcs);
        free(answering);
    }
}

/* ---- the answer ---- */

static enum err put_result(struct buf *out, struct buf *texts, const struct search_result *result,
                           uint64_t score_max, uint64_t *ret_score) {
    struct search_code_result coded = {.time_us = result->time_us};
    size_t ends[4];
    buf_clear(texts);
    search_put_text(texts, result->url, SEARCH_CODE_URL_SIZE_MAX, false);
    ends[0] = texts->size;
    search_put_text(texts, result->title, SEARCH_CODE_TITLE_SIZE_MAX, false);
    ends[1] = texts->size;
    search_put_text(texts, result->language, SEARCH_CODE_LANGUAGE_SIZE_MAX, false);
    ends[2] = texts->size;
    search_put_text(texts, result->snippet, SEARCH_CODE_SNIPPET_SIZE_MAX, true);
    ends[3] = texts->size;
    struct bytes all = buf_bytes(texts);
    coded.url = bytes_slice(all, 0, ends[0]);
    coded.title = bytes_slice(all, ends[0], ends[1]);
    coded.language = bytes_slice(all, ends[1], ends[2]);
    coded.snippet = bytes_slice(all, ends[2], ends[3]);
    memcpy(coded.digest, result->digest, sizeof coded.digest);
    double millionths = result->score > 0 ? result->score * 1e6 : 0;
    coded.score = millionths < (double)score_max ? (uint64_t)millionths : score_max;
    *ret_score = coded.score;
    return texts->err != ERR_OK ? texts->err : search_put_result(out, &coded);
}

/* A URL that is longer than an answer may carry would name another page if it were cut. */
static bool may_be_put(const struct search_result *result) {
    return result->url.size > 0 && result->url.size <= SEARCH_CODE_URL_SIZE_MAX;
}

/* As many as fit: the rest, the worst of them, are said to be more. */
static enum err answer_put(struct answering *answering) {
    enum { ARCS_SIZE = 2 * RING_ID_SIZE, HEAD_SIZE = 64 };
    const struct search_job *job = &answering->job;
    struct search_code_head *head = &answering->head;
    size_t room = SEARCH_CODE_ANSWER_SIZE_MAX - HEAD_SIZE - (size_t)head->arcs_count * ARCS_SIZE;
    struct buf results;
    struct buf texts;
    uint64_t score = SEARCH_CODE_SCORE_MAX;
    enum err err = ERR_OK;
    buf_init(&results, 2 * SEARCH_CODE_ANSWER_SIZE_MAX);
    buf_init(&texts, 2 * SEARCH_CODE_URL_SIZE_MAX);
    head->has_more = job->has_more;
    for (size_t i = 0; err == ERR_OK && i < job->results_count; i++) {
        size_t before = results.size;
        if (!may_be_put(&job->results[i])) {
            continue;
        }
        err = put_result(&results, &texts, &job->results[i], score, &score);
        if (err == ERR_OK && results.size > room) {
            results.size = before;
            head->has_more = true;
            break;
        }
        head->results_count += err == ERR_OK;
    }
    err = err == ERR_OK ? search_put_head(&answering->answer, head, answering->arcs) : err;
    err = err == ERR_OK ? buf_put(&answering->answer, buf_bytes(&results)) : err;
    buf_done(&results);
    buf_done(&texts);
    return err;
}

static void service_let_go(struct answering *answering) {
    struct ring_search_service *service = answering->service;
    pthread_mutex_lock(&service->lock);
    for (struct answering **at = &service->under_way; *at != NULL; at = &(*at)->next) {
        if (*at == answering) {
            *at = answering->next;
            service->count--;
            break;
        }
    }
    pthread_mutex_unlock(&service->lock);
    answering_free(answering);
}

/* The thread of peer_rpc. */
static void service_give(void *context) {
    struct answering *answering = context;
    peer_rpc_give(answering->service->config.peer_rpc, &answering->ticket, answering->err,
                  buf_bytes(&answering->answer), &answering->job.detail);
    service_let_go(answering);
}

static void service_finish(struct answering *answering, enum err err) {
    answering->err = err;
    if (answering->err == ERR_OK) {
        answering->err = answer_put(answering);
    }
    if (peer_rpc_post(answering->service->config.peer_rpc, service_give, answering) != ERR_OK) {
        service_let_go(answering); /* the node ends */
    }
}

/* A thread of the search. An asker takes a time-out and "busy" for its own, or for those of the line. */
static void service_on_found(void *context) {
    struct answering *answering = context;
    enum err err = answering->job.err;
    service_finish(answering, err == ERR_TIMEOUT || err == ERR_BUSY ? ERR_SYSTEM : err);
}

/* ---- the question ---- */

/* Before the search begins: what has come until now, it finds. */
static void put_claims(struct answering *answering) {
    const struct ring_search_config *config = &answering->service->config;
    struct search_code_head *head = &answering->head;
    struct search_stat stat;
    struct absent absent = {.is_any = false};
    config->claims(config->context, &head->has_everything, answering->arcs, &head->arcs_count);
    head->arcs_count = head->has_everything ? 0 : head->arcs_count;
    search_stat(config->search, &stat);
    search_add_absent(config->search, &absent);
    head->left_count = stat.left_count > 0 || stat.error[0] == '\0' ? stat.left_count : 1;
    head->documents_count = stat.documents_count;
    head->lacks_volumes = absent.is_any;
}

static struct answering *answering_new(struct ring_search_service *service, const struct peer *from,
                                       const struct search_code_question *question) {
    struct answering *answering = calloc(1, sizeof *answering);
    if (answering == NULL) {
        return NULL;
    }
    answering->service = service;
    answering->from = *from;
    answering->arcs = calloc(SEARCH_CODE_ARCS_MAX, sizeof *answering->arcs);
    search_job_init(&answering->job);
    buf_init(&answering->text, SEARCH_CODE_WORDS_SIZE_MAX + SEARCH_CODE_HOST_SIZE_MAX);
    buf_init(&answering->answer, SEARCH_CODE_ANSWER_SIZE_MAX + (64 << 10));
    buf_put(&answering->text, question->words);
    buf_put(&answering->text, question->host);
    if (answering->arcs == NULL || answering->text.err != ERR_OK) {
        answering_free(answering);
        return NULL;
    }
    struct bytes text = buf_bytes(&answering->text);
    answering->job.question = (struct search_question){
        .words = bytes_slice(text, 0, question->words.size),
        .host = bytes_skip(text, question->words.size),
        .from_us = question->from_us,
        .to_us = question->to_us,
        .limit = question->count,
        .is_own = true,
    };
    answering->job.archive = service->config.archive;
    answering->job.done = service_on_found;
    answering->job.context = answering;
    return answering;
}

/* False: so many are under way. */
static bool service_enter(struct ring_search_service *service, struct answering *answering) {
    uint32_t his_count = 0;
    pthread_mutex_lock(&service->lock);
    for (const struct answering *other = service->under_way; other != NULL; other = other->next) {
        his_count += peer_same_key(&other->from, &answering->from);
    }
    bool is_entered = service->count < RING_SEARCH_SERVICE_MAX && his_count < RING_SEARCH_SERVICE_PER_NODE;
    if (is_entered) {
        answering->next = service->under_way;
        service->under_way = answering;
        service->count++;
    }
    pthread_mutex_unlock(&service->lock);
    return is_entered;
}

static enum err service_answer_search(void *context, const struct peer *from, struct bytes input,
                                      struct buf *out, struct err_detail *detail) {
    struct ring_search_service *service = context;
    struct search_code_question question;
    (void)out;
    enum err err = peer_rpc_begin_read(service->config.peer_rpc, from, PEER_RPC_READ_LIST, detail);
    err = err == ERR_OK ? search_code_read_question(input, &question, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    struct answering *answering = answering_new(service, from, &question);
    if (answering == NULL) {
        return ERR_MEMORY;
    }
    if (!service_enter(service, answering)) {
        answering_free(answering);
        return err_set(detail, ERR_BUSY, "too many are searching right now");
    }
    put_claims(answering);
    /* Its answer comes by a post, so not before this returns. */
    answering->ticket = peer_rpc_defer(service->config.peer_rpc);
    if (search_ask(service->config.search, &answering->job) != ERR_OK) {
        service_finish(answering,
                       err_set(&answering->job.detail, ERR_BUSY, "too many are searching right now"));
    }
    return ERR_OK;
}

struct ring_search_service *ring_search_service_new(const struct ring_search_config *config) {
    struct ring_search_service *service = calloc(1, sizeof *service);
    if (service == NULL) {
        return NULL;
    }
    service->config = *config;
    pthread_mutex_init(&service->lock, NULL);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_SEARCH, service_answer_search, service);
    return service;
}

void ring_search_service_free(struct ring_search_service *service) {
    if (service == NULL) {
        return;
    }
    while (service->under_way != NULL) { /* posts that the loop did not take any more */
        service_let_go(service->under_way);
    }
    pthread_mutex_destroy(&service->lock);
    free(service);
}
