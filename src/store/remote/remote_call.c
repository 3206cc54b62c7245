#include "store/remote/remote_call.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS_MAX = 1000, ERROR_ANSWER_SIZE_MAX = 16 << 10, BUFFER_SIZE = 64 << 10, AGE_S_MAX = 30 };

/* ---- callbacks of curl ---- */

static void note_moved(struct remote_call *call, size_t size) {
    call->moved_us = clock_monotonic_us(call->peer->clock);
    call->moved_size += size;
}

static size_t send_more(char *out, size_t unit, size_t count, void *context) {
    struct remote_call *call = context;
    size_t room = unit * count;
    size_t sent = 0;
    if (call->sent_size < call->head.size) {
        size_t left = call->head.size - (size_t)call->sent_size;
        sent = left < room ? left : room;
        memcpy(out, call->head.data + call->sent_size, sent);
    }
    if (sent < room) {
        uint64_t offset = call->sent_size + sent - call->head.size;
        uint64_t left = call->body.size - offset;
        size_t size = left < room - sent ? (size_t)left : room - sent;
        if (scratch_read(&call->body, offset, out + sent, size) != ERR_OK) {
            call->err = ERR_IO;
            return CURL_READFUNC_ABORT;
        }
        sent += size;
    }
    call->sent_size += sent;
    note_moved(call, sent);
    return sent;
}

/* curl begins again where a connection that it had kept turns out to be closed. */
static int send_again(void *context, curl_off_t offset, int origin) {
    struct remote_call *call = context;
    if (origin != SEEK_SET || offset != 0) {
        return CURL_SEEKFUNC_CANTSEEK;
    }
    call->sent_size = 0;
    return CURL_SEEKFUNC_OK;
}

static size_t receive_header(char *data, size_t unit, size_t count, void *context) {
    struct remote_call *call = context;
    struct bytes line = bytes_of(data, unit * count);
    struct bytes name = BYTES("Content-Encoding:");
    if (line.size > name.size && bytes_starts_with_ignore_case(line, name)) {
        call->is_answer_packed = bytes_equal(bytes_trim(bytes_skip(line, name.size)), BYTES("zstd"));
    }
    struct bytes partial = BYTES("X-Mnemon-Partial:");
    if (line.size > partial.size && bytes_starts_with_ignore_case(line, partial)) {
        struct bytes names = bytes_trim(bytes_skip(line, partial.size));
        snprintf(call->unheard, sizeof call->unheard, "%.*s", BYTES_ARG(names));
    }
    note_moved(call, line.size);
    return line.size;
}

static size_t receive_more(char *data, size_t unit, size_t count, void *context) {
    struct remote_call *call = context;
    struct bytes part = bytes_of(data, unit * count);
    note_moved(call, part.size);
    enum err err = scratch_put(&call->answer, part);
    if (err != ERR_OK) {
        call->err = err == ERR_LIMIT ? ERR_MISMATCH : err;
        return 0;
    }
    return part.size;
}

/* ---- one exchange ---- */

static void set_up(struct remote_call *call) {
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_text);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* whatever the environment says */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->peer->headers);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, call->peer->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)AGE_S_MAX); /* servers close idle ones after 60 s */
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, send_more);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, send_again);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_more);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
}

enum err remote_call_init(struct remote_call *call, struct remote_peer *peer) {
    *call = (struct remote_call){.peer = peer, .easy = curl_easy_init()};
    if (call->easy == NULL) {
        return ERR_MEMORY;
    }
    buf_init(&call->head, REMOTE_CALL_HEAD_SIZE_MAX);
    scratch_init(&call->body, peer->scratch_directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    scratch_init(&call->answer, peer->scratch_directory, SCRATCH_MEMORY_MAX, 0);
    set_up(call);
    return ERR_OK;
}

void remote_call_done(struct remote_call *call) {
    curl_easy_cleanup(call->easy);
    buf_done(&call->head);
    scratch_done(&call->body);
    scratch_done(&call->answer);
}

void remote_call_clear(struct remote_call *call) {
    buf_clear(&call->head);
    scratch_clear(&call->body);
    scratch_clear(&call->answer);
}

static void set_method(struct remote_call *call, const char *method) {
    CURL *easy = call->easy;
    bool is_post = strcmp(method, "POST") == 0;
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, strcmp(method, "DELETE") == 0 ? method : NULL);
    if (!is_post) {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    bool is_in_memory = call->body.size == 0;
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, is_in_memory ? (const char *)call->head.data : NULL);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(call->head.size + call->body.size));
}

enum err remote_call_refuse(const struct remote_peer *peer, uint64_t left_us, struct err_detail *detail) {
    return err_set(detail, ERR_UNREACHABLE, "%s could not be reached; it is tried again in %.1f s", peer->url,
                   (double)left_us / 1e6);
}

enum err remote_call_begin(struct remote_call *call, CURLM *multi, const char *method, const char *path,
                           uint64_t answer_size_max, struct err_detail *detail) {
    const struct remote_peer *peer = call->peer;
    char url[REMOTE_CALL_PATH_SIZE_MAX + 2048];
    int size = snprintf(url, sizeof url, "%s%s", peer->base, path);
    ASSERT(size < (int)sizeof url); /* backend_remote_open() bounds the base, callers the path */
    uint64_t left_us;
    if (!breaker_allows(&call->peer->breaker, &left_us)) {
        return remote_call_refuse(peer, left_us, detail);
    }
    scratch_clear(&call->answer);
    call->answer.size_max = answer_size_max < ERROR_ANSWER_SIZE_MAX ? ERROR_ANSWER_SIZE_MAX : answer_size_max;
    call->sent_size = 0;
    call->is_answer_packed = false;
    call->unheard[0] = '\0';
    call->is_over = false;
    call->err = ERR_OK;
    call->began_us = call->moved_us = clock_monotonic_us(peer->clock);
    call->moved_size = 0;
    call->curl_text[0] = '\0';
    curl_easy_setopt(call->easy, CURLOPT_URL, url);
    set_method(call, method);
    CURLMcode code = curl_multi_add_handle(multi, call->easy);
    int running;
    if (code == CURLM_OK) {
        code = curl_multi_perform(multi, &running);
    }
    if (code != CURLM_OK) {
        curl_multi_remove_handle(multi, call->easy);
        breaker_report(&call->peer->breaker, false);
        return err_set(detail, ERR_MEMORY, "%s", curl_multi_strerror(code));
    }
    return ERR_OK;
}

void remote_call_collect(CURLM *multi) {
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        struct remote_call *call = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        call->is_over = true;
        call->result = message->data.result;
    }
}

bool remote_call_is_over(struct remote_call *call) {
    if (call->is_over) {
        return true;
    }
    uint64_t now_us = clock_monotonic_us(call->peer->clock);
    uint64_t rate_us = call->moved_size * 1000000 / REMOTE_CALL_RATE_MIN;
    if (now_us - call->moved_us > call->peer->answer_timeout_us ||
        now_us - call->began_us > call->peer->answer_timeout_us + rate_us) {
        call->err = ERR_TIMEOUT;
        return true;
    }
    return false;
}

void remote_call_drive(struct remote_call *call, CURLM *multi) {
    int running;
    remote_call_collect(multi);
    while (!remote_call_is_over(call)) {
        uint64_t wait_ms = call->peer->answer_timeout_us / 1000;
        curl_multi_poll(multi, NULL, 0, wait_ms < WAIT_MS_MAX ? (int)wait_ms : WAIT_MS_MAX, NULL);
        curl_multi_perform(multi, &running);
        remote_call_collect(multi);
    }
}

/* ---- how it ended ---- */

static enum err err_of_curl(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return ERR_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return ERR_CLOSED;
    case CURLE_OUT_OF_MEMORY:
        return ERR_MEMORY;
    default:
        return ERR_MISMATCH; /* it speaks, but not HTTP as we know it */
    }
}

static enum err err_of_name(const char *name) {
    for (int err = ERR_MEMORY; err >= ERR_LAST; err--) {
        if (strcmp(err_name((enum err)err), name) == 0) {
            return (enum err)err;
        }
    }
    return ERR_OK;
}

/* {"error":"not_found","text":"…"}, or else whatever a server in between says. */
static enum err read_refusal(const struct remote_call *call, long status, struct err_detail *detail) {
    enum err err = ERR_OK;
    json_t *root = NULL;
    if (scratch_is_in_memory(&call->answer)) {
        root = json_loadb((const char *)call->answer.memory.data, call->answer.memory.size, 0, NULL);
    }
    const char *name = json_string_value(json_object_get(root, "error"));
    const char *text = json_string_value(json_object_get(root, "text"));
    if (name != NULL && text != NULL) {
        err = err_of_name(name);
    }
    if (err != ERR_OK && call->peer->is_guest) {
        err_set(detail, err, "%s", text);
    } else if (err != ERR_OK) {
        err_set(detail, err, "%s: %.160s", call->peer->url, text);
    } else {
        err = err_set(detail, ERR_MISMATCH, "%s answers like no volume server (HTTP status %ld)",
                      call->peer->url, status);
    }
    json_decref(root);
    return err;
}

static enum err explain_end(const struct remote_call *call, struct err_detail *detail) {
    const char *url = call->peer->url;
    if (call->err == ERR_TIMEOUT) {
        return err_set(detail, ERR_TIMEOUT, "%s does not answer in time", url);
    }
    if (call->err == ERR_MISMATCH) {
        return err_set(detail, ERR_MISMATCH, "%s answers more than it was asked for", url);
    }
    if (call->err != ERR_OK) {
        return err_set(detail, call->err, "%s: %s", url, err_text(call->err));
    }
    if (call->result != CURLE_OK) {
        const char *text = call->curl_text[0] != '\0' ? call->curl_text : curl_easy_strerror(call->result);
        return err_set(detail, err_of_curl(call->result), "%s: %.160s", url, text);
    }
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status == 200 ? ERR_OK : read_refusal(call, status, detail);
}

/* A connection that broke says little: whether the server is there, the next one will tell. */
static bool has_reached(const struct remote_call *call) {
    enum err err = call->err != ERR_OK || call->result == CURLE_OK ? call->err : err_of_curl(call->result);
    return err != ERR_UNREACHABLE && err != ERR_TIMEOUT;
}

enum err remote_call_end(struct remote_call *call, CURLM *multi, struct err_detail *detail) {
    curl_multi_remove_handle(multi, call->easy);
    breaker_report(&call->peer->breaker, has_reached(call));
    return explain_end(call, detail);
}

enum err remote_call_mismatch(const struct remote_call *call, const struct err_detail *reason,
                              struct err_detail *detail) {
    return err_set(detail, ERR_MISMATCH, "%s answers what is no answer: %.160s", call->peer->url,
                   err_detail_text(reason, ERR_MISMATCH));
}
