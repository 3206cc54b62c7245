/*
 * http_request - one request as the functions of its route see it, and the ways to answer it.
 *
 * Every request is answered exactly once, from a function of its route. A request belongs to the thread that
 * the function runs in; while it is suspended, to nobody: then http_request_resume() is the only call that is
 * allowed, from any thread, and the last that its caller makes. Slices live as long as the request. A route
 * that is long has its request on a worker, and calls the same functions there.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_REQUEST_H
#define MNEMON_HTTP_SERVER_HTTP_REQUEST_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/scratch.h"

struct http_request;

void *http_request_context(const struct http_request *request); /* of its route */
unsigned http_request_variant(const struct http_request *request);

/* A pointer of the route's own, NULL at first. */
void *http_request_state(const struct http_request *request);
void http_request_set_state(struct http_request *request, void *state);

/* ---- what was asked: as it was sent, percent-encoding and all ---- */

const char *http_request_method(const struct http_request *request); /* of its route: "GET" for HEAD too */
struct bytes http_request_path(const struct http_request *request);
struct bytes http_request_rest(const struct http_request *request);  /* what the route's "*" stands for */
struct bytes http_request_query(const struct http_request *request); /* without "?" */

/* Empty if there is none; the first if there are several. */
struct bytes http_request_header(const struct http_request *request, const char *name);

uint16_t http_request_port(const struct http_request *request); /* of this server */

/* The client that asks; all zero if it is not known. */
void http_request_client(const struct http_request *request, struct address *ret_client);

/* Has the client left? For long work, to be asked now and then: nobody else looks meanwhile. A client that
 * only sends no more counts as one that has left. */
bool http_request_is_gone(const struct http_request *request);

/* In begin(): a smaller bound for the body than the route's. */
void http_request_limit_body(struct http_request *request, uint64_t size_max);

/* All of it, decoded from chunks. Not in begin(). */
enum err http_request_body(struct http_request *request, struct bytes *ret_body) MUST_CHECK;

/* ---- the answer ---- */

/* Goes with the answer that follows. Both are copied. */
void http_add_header(struct http_request *request, const char *name, const char *value);

void http_answer(struct http_request *request, unsigned status, const char *type, struct bytes body);

/* The scratch is moved out of the caller's hands, where an empty one is left. */
void http_answer_scratch(struct http_request *request, unsigned status, const char *type,
                         struct scratch *take_scratch);

static const uint64_t HTTP_SIZE_UNKNOWN = UINT64_MAX;

struct http_stream {
    uint64_t size; /* or HTTP_SIZE_UNKNOWN */
    /* Up to size bytes from offset on; *ret_size 0 at the end. ERR_BUSY: none yet, ask again; other errors
     * cut the connection. */
    enum err (*read)(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size);
    void (*close)(void *context); /* always, once */
    void *context;
};

void http_answer_stream(struct http_request *request, unsigned status, const char *type,
                        const struct http_stream *stream);

/* The status that fits the error; text may be NULL for err_text(). */
void http_answer_error(struct http_request *request, enum err err, const char *text);
void http_answer_status(struct http_request *request, unsigned status, enum err err, const char *text);

/* The object that says so in JSON. */
void http_put_error(struct buf *out, enum err err, const char *text);

/* JSON, to which the line end is added; the buffer is released. cache: of Cache-Control. */
void http_answer_json(struct http_request *request, unsigned status, const char *cache,
                      struct buf *take_text);
unsigned http_status(enum err err);

/* ---- later ---- */

/* In answer(): may it take its time? */
bool http_request_is_on_worker(const struct http_request *request);

/*
 * In answer(), not on a worker, as the last call: this is going to take longer than the other connections
 * should wait. What was answered is forgotten, and answer() is called again, on a worker.
 */
void http_request_put_off(struct http_request *request);

/* What is done elsewhere meanwhile, by whoever need not say when it is: the loop asks. */
struct http_errand {
    bool (*is_back)(void *context); /* at every turn of the loop, until it is */
    /* The loop has nothing else to do: until it may be back, or so long. May return for nothing. */
    void (*await)(void *context, uint32_t timeout_us);
    void *context;
};

/* In answer(), not on a worker: false if so many are away that another one is to be put off. */
bool http_request_may_await(const struct http_request *request);

/* Likewise, as the last call: answer() is called again once it is back. */
void http_request_await(struct http_request *request, const struct http_errand *errand);

/* Until http_request_resume(), answer() is not called again. */

void http_request_suspend(struct http_request *request);
void http_request_resume(struct http_request *request);

#endif
