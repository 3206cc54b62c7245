/*
 * backend_remote - a volume behind a volume server (`mnemon serve` on another machine), over HTTP.
 *
 * Every wait is bounded. A server that cannot be reached, does not answer in time or answers what is no
 * answer gives ERR_UNREACHABLE, ERR_TIMEOUT or ERR_MISMATCH with a sentence that names it; what it says
 * itself (ERR_NOT_FOUND, ERR_NO_SPACE, ERR_PERMISSION …) is passed on. After a failure to reach it, a circuit
 * breaker answers ERR_UNREACHABLE at once for retry_after_ms, so that not every call waits for a dead server;
 * then one call tries again.
 *
 * Everything that the server sends is bounded and checked; documents are checked against their content key. A
 * session keeps its connection alive and works in the thread that uses it. What is submitted goes through a
 * thread of the backend, many at a time: its done() is called from there. ask() is on its way when it
 * returns.
 *
 * Opening connects to nothing. Protocol: docs/protocol/volumes.md.
 */
#ifndef MNEMON_STORE_REMOTE_BACKEND_REMOTE_H
#define MNEMON_STORE_REMOTE_BACKEND_REMOTE_H

#include "base/clock.h"
#include "store/backend/backend.h"

enum { BACKEND_REMOTE_URL_SIZE_MAX = 1024, BACKEND_REMOTE_TOKEN_SIZE_MAX = 256 };

/* 0 or NULL stands for the default in parentheses. All text is copied. */
struct backend_remote_config {
    const char *url;   /* of the node: "http://192.0.2.7:8080"; required */
    const char *token; /* of that node: what its DIR/token holds; required */
    uint16_t volume;   /* its number on that node */
    uint16_t number;   /* in this instance: the volume of its content keys here */
    bool is_guest;     /* its walks name those that did not answer: such errors are passed on as they are */
    uint32_t connect_timeout_ms;   /* (3,000) */
    uint32_t answer_timeout_ms;    /* (30,000) without a byte from the server */
    uint32_t retry_after_ms;       /* (5,000) */
    const char *scratch_directory; /* ("/tmp") for documents above SCRATCH_MEMORY_MAX on their way */
    const struct clock *clock;     /* (clock_system) */
};

/* ERR_INVALID if the URL or the token cannot be one. */
enum err backend_remote_open(const struct backend_remote_config *config, struct backend **ret_backend,
                             struct err_detail *detail) MUST_CHECK;

#endif
