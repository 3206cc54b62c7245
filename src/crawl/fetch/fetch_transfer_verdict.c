#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "crawl/fetch/fetch_transfer.h"

enum err fetch_transfer_fail(struct fetch_transfer *transfer, enum err err, bool is_worth_retry,
                             const char *format, ...) {
    struct fetch_result *result = transfer->result;
    char text[ERR_TEXT_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    result->err = err_set(&result->detail, err, "%s", text);
    result->is_worth_retry = is_worth_retry;
    return err;
}

static enum err err_from_socket(int number) {
    switch (number) {
    case 0:
        return ERR_UNREACHABLE;
    case ECONNREFUSED:
        return ERR_REFUSED;
    case ECONNRESET:
        return ERR_CLOSED;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EMFILE:
    case ENFILE:
        return ERR_LIMIT;
    case ENOMEM:
    case ENOBUFS:
        return ERR_MEMORY;
    default:
        return ERR_UNREACHABLE;
    }
}

static void judge_no_connection(struct fetch_transfer *transfer, const char *text) {
    long number = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
    if (transfer->refusal != NULL) {
        fetch_transfer_fail(transfer, ERR_PERMISSION, false, "the host has %s; such are not fetched from",
                            transfer->refusal);
        return;
    }
    int why = transfer->socket_errno != 0 ? transfer->socket_errno : (int)number;
    enum err err = err_from_socket(why);
    fetch_transfer_fail(transfer, err, true, "%s", why != 0 ? strerror(why) : text);
}

static void judge_bad_certificate(struct fetch_transfer *transfer, const char *text) {
    long code = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_SSL_VERIFYRESULT, &code);
    if (code != 0) {
        fetch_trust_report_code(code, transfer->result);
        text = transfer->result->tls_reason;
    }
    fetch_transfer_fail(transfer, ERR_REFUSED, false, "bad certificate: %s", text);
}

/* A callback of ours has ended it. */
static void judge_own_end(struct fetch_transfer *transfer) {
    struct fetch_result *result = transfer->result;
    bool is_body = transfer->phase == FETCH_PHASE_BODY;
    if (is_body && transfer->own_err == ERR_LIMIT) {
        result->end = FETCH_TOO_LONG;
    } else if (is_body) {
        fetch_transfer_fail(transfer, transfer->own_err, true, "the body could not be kept: %s",
                            err_text(transfer->own_err));
    } else if (transfer->own_err == ERR_LIMIT) {
        fetch_transfer_fail(transfer, ERR_LIMIT, false, "the head of the response is longer than %d KiB",
                            FETCH_HEAD_SIZE_MAX >> 10);
    } else if (transfer->own_err == ERR_INVALID) {
        fetch_transfer_fail(transfer, ERR_INVALID, false, "the answer is not an HTTP response");
    } else {
        fetch_transfer_fail(transfer, transfer->own_err, true, "%s", err_text(transfer->own_err));
    }
}

/* No whole head came. */
static void judge_failure(struct fetch_transfer *transfer, CURLcode code) {
    const char *text = transfer->error_text[0] != '\0' ? transfer->error_text : curl_easy_strerror(code);
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        judge_no_connection(transfer, text);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        judge_bad_certificate(transfer, text);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        fetch_transfer_fail(transfer, ERR_REFUSED, true, "%s", text);
        break;
    case CURLE_OPERATION_TIMEDOUT:
        fetch_transfer_fail(transfer, ERR_TIMEOUT, true, "%s", text);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
        fetch_transfer_fail(transfer, ERR_UNREACHABLE, true, "%s", text);
        break;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        fetch_transfer_fail(transfer, ERR_CLOSED, true, "%s", text);
        break;
    case CURLE_OUT_OF_MEMORY: /* so libcurl says when a line is longer than its limit of 100 KB */
        if (transfer->phase == FETCH_PHASE_CONNECT) {
            fetch_transfer_fail(transfer, ERR_MEMORY, true, "%s", text);
        } else {
            fetch_transfer_fail(transfer, ERR_LIMIT, false, "the head of the response is too long");
        }
        break;
    case CURLE_OK:
        if (transfer->phase == FETCH_PHASE_HEAD) {
            fetch_transfer_fail(transfer, ERR_CLOSED, true, "the connection ended before the head did");
            break;
        }
        fetch_transfer_fail(transfer, ERR_INVALID, false, "the answer is not an HTTP response");
        break;
    default:
        fetch_transfer_fail(transfer, ERR_INVALID, false, "%s", text);
    }
}

void fetch_transfer_judge(struct fetch_transfer *transfer, CURLcode code) {
    struct fetch_result *result = transfer->result;
    long connects_count = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects_count);
    result->is_connection_new = connects_count > 0;
    if (transfer->own_err != ERR_OK) {
        judge_own_end(transfer);
    } else if (transfer->phase != FETCH_PHASE_BODY) {
        judge_failure(transfer, code);
    } else {
        result->end = code == CURLE_OK ? FETCH_WHOLE : FETCH_DISCONNECTED;
    }
}

/* A body that drips: each byte in time, and yet it would take a day. Asked again and again. */
static bool is_slow(struct fetch_transfer *transfer, uint64_t now_us) {
    const struct fetch_config *config = &transfer->fetch->config;
    uint64_t size = transfer->result->body.size;
    if (transfer->slow_since_us == 0 || size - transfer->slow_from_size >= config->slow_size_min) {
        transfer->slow_since_us = now_us;
        transfer->slow_from_size = size;
        return false;
    }
    return now_us - transfer->slow_since_us > config->slow_timeout_us;
}

/* What waits too long, in words; NULL where nothing does. */
static const char *late_what(struct fetch_transfer *transfer, uint64_t now_us, uint64_t now_ms) {
    const struct fetch_config *config = &transfer->fetch->config;
    uint64_t idle_us = now_ms > transfer->progress_ms ? (now_ms - transfer->progress_ms) * 1000 : 0;
    uint64_t age_us = now_us - transfer->start_us;
    if (age_us > config->total_timeout_us) {
        return "the transfer";
    }
    switch (transfer->phase) {
    case FETCH_PHASE_NAME:
        return age_us > config->connect_timeout_us ? "the name of the host" : NULL;
    case FETCH_PHASE_CONNECT:
        return age_us > config->connect_timeout_us ? "the connection" : NULL;
    case FETCH_PHASE_WAIT:
        return now_us - transfer->sent_us > config->first_byte_timeout_us ? "the response" : NULL;
    case FETCH_PHASE_HEAD: /* also one that comes line by line */
        return now_us - transfer->sent_us > config->first_byte_timeout_us + config->stall_timeout_us
                   ? "the head of the response"
                   : NULL;
    case FETCH_PHASE_BODY:
        return idle_us > config->stall_timeout_us || is_slow(transfer, now_us) ? "the body" : NULL;
    }
    return NULL;
}

bool fetch_transfer_is_late(struct fetch_transfer *transfer, uint64_t now_us, uint64_t now_ms) {
    const char *what = late_what(transfer, now_us, now_ms);
    if (what == NULL) {
        return false;
    }
    if (transfer->phase == FETCH_PHASE_BODY) {
        transfer->result->end = FETCH_TOO_SLOW;
    } else {
        fetch_transfer_fail(transfer, ERR_TIMEOUT, true, "%s did not come in time", what);
    }
    return true;
}
