/*
 * remote_call - one HTTP exchange with a volume server, from begin to end, over a curl multi handle.
 *
 * A call is prepared, begun on a multi handle of the caller's, driven by whoever owns that handle, and ended.
 * It is then begun again for the next exchange: the connection stays open in the multi handle. Time limits:
 * the caller asks remote_call_is_late() whenever it has waited; an answer must make progress, and not more
 * slowly than REMOTE_CALL_RATE_MIN.
 *
 * A remote_peer is what calls to one server share; it is read-only but for its breaker.
 */
#ifndef MNEMON_STORE_REMOTE_REMOTE_CALL_H
#define MNEMON_STORE_REMOTE_REMOTE_CALL_H

#include <curl/curl.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scratch.h"
#include "store/remote/breaker.h"

enum {
    REMOTE_CALL_RATE_MIN = 16 << 10,       /* bytes a second, both ways together */
    REMOTE_CALL_TOGETHER_SIZE_MAX = 60000, /* curl sends header and body of less than 64 KiB at once */
    REMOTE_CALL_PATH_SIZE_MAX = 192,
    REMOTE_CALL_HEAD_SIZE_MAX = 4 << 20,
    REMOTE_CALL_NAMES_SIZE_MAX = 768,
};

struct remote_peer {
    char *url;                  /* "http://192.0.2.7:8080", no "/" at its end */
    char *base;                 /* url and "/api/v1/volumes/0/" */
    struct curl_slist *headers; /* of every request */
    long connect_timeout_ms;
    uint64_t answer_timeout_us;
    char *scratch_directory;
    bool is_guest; /* what it refuses with is passed on as it is */
    const struct clock *clock;
    struct breaker breaker;
};

struct remote_call {
    struct remote_peer *peer;
    CURL *easy;
    struct buf head;     /* of the request's body, in memory */
    struct scratch body; /* and what follows it; empty if head is all */
    uint64_t sent_size;  /* of both */
    struct scratch answer;
    bool is_answer_packed;                    /* one zstd frame */
    char unheard[REMOTE_CALL_NAMES_SIZE_MAX]; /* by X-Mnemon-Partial: who did not answer the peer */
    bool is_over;
    CURLcode result; /* when it is over */
    enum err err;    /* why it was stopped on our side */
    uint64_t began_us;
    uint64_t moved_us; /* when the last byte went or came */
    uint64_t moved_size;
    char curl_text[CURL_ERROR_SIZE];
};

enum err remote_call_init(struct remote_call *call, struct remote_peer *peer) MUST_CHECK;
void remote_call_done(struct remote_call *call);

/* Empty request and answer. */
void remote_call_clear(struct remote_call *call);

/*
 * Send it: method, the path below peer->base, and what is in head and body. ERR_UNREACHABLE while the breaker
 * is open. After ERR_OK, remote_call_end() follows.
 */
enum err remote_call_begin(struct remote_call *call, CURLM *multi, const char *method, const char *path,
                           uint64_t answer_size_max, struct err_detail *detail) MUST_CHECK;

/* ERR_UNREACHABLE, with what there is to say while the breaker is open. */
enum err remote_call_refuse(const struct remote_peer *peer, uint64_t left_us, struct err_detail *detail);

/* Mark the calls of this multi handle as over that are. */
void remote_call_collect(CURLM *multi);

/* True if it is over or out of time; then end it. */
bool remote_call_is_over(struct remote_call *call);

/* ERR_OK if the server said 200; what it said is in call->answer. */
enum err remote_call_end(struct remote_call *call, CURLM *multi, struct err_detail *detail) MUST_CHECK;

/* Drive a multi handle of which this is the only call, until it is over. */
void remote_call_drive(struct remote_call *call, CURLM *multi);

/* What the peer said is not what it may say: ERR_MISMATCH with its URL and the reason. */
enum err remote_call_mismatch(const struct remote_call *call, const struct err_detail *reason,
                              struct err_detail *detail);

#endif
