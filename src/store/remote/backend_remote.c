#include "store/remote/backend_remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "store/backend/backend.h"
#include "store/remote/backend_code.h"
#include "store/remote/pack_payload.h"
#include "store/remote/remote_call.h"
#include "store/remote/remote_sender.h"
#include "store/volume/volume.h"

enum {
    CONNECT_TIMEOUT_MS = 3000,
    ANSWER_TIMEOUT_MS = 30000,
    RETRY_AFTER_MS = 5000,
};

/* A document that does not get smaller gets a little larger as a zstd frame. */
static const uint64_t ANSWER_SIZE_MAX = UINT64_C(5) << 30;

struct backend_remote {
    struct backend backend; /* first */
    struct remote_peer peer;
    struct remote_sender sender;
};

struct remote_session {
    struct backend_session session; /* first */
    struct backend_remote *backend;
    CURLM *multi;
    struct remote_call call;
    struct pack_payload pack_payload;
    struct sha256 sha256;
    struct scratch document; /* what remote_get() gave last */
};

static struct remote_session *remote_of(struct backend_session *session) {
    return (struct remote_session *)session;
}

/* ---- sessions ---- */

static void remote_close_session(struct backend_session *generic) {
    struct remote_session *session = remote_of(generic);
    remote_call_done(&session->call);
    scratch_done(&session->document);
    pack_payload_done(&session->pack_payload);
    sha256_done(&session->sha256);
    curl_multi_cleanup(session->multi);
    free(session);
}

static enum err remote_open_session(struct backend *generic, struct backend_session **ret_session) {
    struct backend_remote *backend = (struct backend_remote *)generic;
    struct remote_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return ERR_MEMORY;
    }
    *session = (struct remote_session){.session = {.backend = generic}, .backend = backend};
    session->multi = curl_multi_init();
    scratch_init(&session->document, backend->peer.scratch_directory, SCRATCH_MEMORY_MAX,
                 VOLUME_DOCUMENT_SIZE_MAX);
    enum err err = session->multi == NULL ? ERR_MEMORY : sha256_init(&session->sha256);
    if (err != ERR_OK) {
        curl_multi_cleanup(session->multi);
        free(session);
        return err;
    }
    err = pack_payload_init(&session->pack_payload);
    if (err == ERR_OK) {
        err = remote_call_init(&session->call, &backend->peer);
        if (err != ERR_OK) {
            pack_payload_done(&session->pack_payload);
        }
    }
    if (err != ERR_OK) {
        sha256_done(&session->sha256);
        curl_multi_cleanup(session->multi);
        free(session);
        return err;
    }
    *ret_session = &session->session;
    return ERR_OK;
}

/* Send what is in the session's call, wait, and give the answer, which lies in the call. */
static enum err remote_exchange(struct remote_session *session, const char *method, const char *path,
                                uint64_t answer_size_max, struct bytes *ret_answer,
                                struct err_detail *detail) {
    struct remote_call *call = &session->call;
    enum err err = remote_call_begin(call, session->multi, method, path, answer_size_max, detail);
    if (err != ERR_OK) {
        return err;
    }
    remote_call_drive(call, session->multi);
    err = remote_call_end(call, session->multi, detail);
    return err == ERR_OK ? scratch_bytes(&call->answer, ret_answer) : err;
}

/* An answer that cannot be read is the server's fault: ERR_MISMATCH for any error. */
static enum err remote_check(const struct remote_session *session, enum err err,
                             const struct err_detail *reason, struct err_detail *detail) {
    return err == ERR_OK ? ERR_OK : remote_call_mismatch(&session->call, reason, detail);
}

/* A question without a body, whose answer is small. */
static enum err remote_query(struct remote_session *session, const char *path, struct bytes *ret_answer,
                             struct err_detail *detail) {
    remote_call_clear(&session->call);
    return remote_exchange(session, "GET", path, BACKEND_CODE_SMALL_SIZE_MAX, ret_answer, detail);
}

/* ---- asking ---- */

static enum err remote_ask(struct backend_session *generic, const struct document_sum *sum) {
    struct remote_session *session = remote_of(generic);
    remote_call_clear(&session->call);
    backend_code_put_claims(&session->call.head, sum, 1);
    if (session->call.head.err != ERR_OK) {
        return session->call.head.err;
    }
    return remote_call_begin(&session->call, session->multi, "POST", "ask", BACKEND_CODE_SMALL_SIZE_MAX,
                             NULL);
}

static enum err remote_answer(struct backend_session *generic, bool *ret_holds, struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    struct bytes answered;
    struct err_detail reason = {0};
    remote_call_drive(&session->call, session->multi);
    enum err err = remote_call_end(&session->call, session->multi, detail);
    if (err == ERR_OK) {
        err = scratch_bytes(&session->call.answer, &answered);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_answers(answered, ret_holds, 1, &reason);
    return remote_check(session, err, &reason, detail);
}

/* ---- storing ---- */

/* The request: what describes the document, then its body, compressed where that helps. */
static enum err remote_encode(struct remote_session *session, struct remote_call *call,
                              const struct document *document, enum store_mode mode,
                              struct err_detail *detail) {
    bool is_packed = false;
    enum err err = ERR_OK;
    remote_call_clear(call);
    if (!document->is_body_left_out) {
        err = pack_payload_put(&session->pack_payload, document->body, &call->body, &is_packed);
    }
    enum backend_code_form form = document->is_body_left_out ? BACKEND_CODE_LEFT_OUT
                                  : is_packed                ? BACKEND_CODE_ZSTD
                                                             : BACKEND_CODE_PLAIN;
    if (err == ERR_OK) {
        err = backend_code_put_meta(&call->head, document, mode, form);
    }
    bool goes_together = call->head.size + call->body.size <= REMOTE_CALL_TOGETHER_SIZE_MAX;
    if (err == ERR_OK && goes_together) {
        err = buf_put(&call->head, buf_bytes(&call->body.memory));
        scratch_clear(&call->body);
    }
    return err == ERR_OK ? ERR_OK
                         : err_set(detail, err, "cannot be sent to a volume server: %s", err_text(err));
}

static enum err remote_put(struct backend_session *generic, const struct document *document,
                           enum store_mode mode, struct stored *ret_stored, struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    struct bytes answered;
    struct stored stored;
    struct err_detail reason = {0};
    enum err err = remote_encode(session, &session->call, document, mode, detail);
    if (err == ERR_OK) {
        err = remote_exchange(session, "POST", "documents", BACKEND_CODE_SMALL_SIZE_MAX, &answered, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_stored(answered, &stored, &reason);
    if (err == ERR_OK && document->sum != NULL &&
        memcmp(stored.key.digest, document->sum->digest, KEY_DIGEST_SIZE) != 0) {
        err = err_set(&reason, ERR_MISMATCH, "it stored another document");
    }
    err = remote_check(session, err, &reason, detail);
    if (err == ERR_OK) {
        stored.key.volume = generic->backend->number;
        *ret_stored = stored;
    }
    return err;
}

static enum err remote_submit(struct backend_session *generic, const struct document *document,
                              enum store_mode mode, backend_done *done, void *context,
                              struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    struct remote_sender *sender = &session->backend->sender;
    uint64_t left_us;
    if (breaker_is_open(&session->backend->peer.breaker, &left_us)) {
        return remote_call_refuse(&session->backend->peer, left_us, detail);
    }
    struct remote_job *job = remote_sender_take(sender);
    if (job == NULL) {
        return ERR_MEMORY;
    }
    enum err err = remote_encode(session, &job->call, document, mode, detail);
    if (err != ERR_OK) {
        remote_sender_give_back(sender, job);
        return err;
    }
    job->is_body_left_out = document->is_body_left_out;
    job->done = done;
    job->context = context;
    remote_sender_queue(sender, job);
    return ERR_OK;
}

/* ---- by key and by location ---- */

/* "documents/ba78…" or "documents/ba78….2" */
static const char *remote_key_path(const char *kind, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                                   char out[REMOTE_CALL_PATH_SIZE_MAX]) {
    char hex[2 * KEY_DIGEST_SIZE + 1];
    hex_encode(bytes_of(digest, KEY_DIGEST_SIZE), hex);
    if (number == 0) {
        snprintf(out, REMOTE_CALL_PATH_SIZE_MAX, "%s/%s", kind, hex);
    } else {
        snprintf(out, REMOTE_CALL_PATH_SIZE_MAX, "%s/%s.%u", kind, hex, number);
    }
    return out;
}

static enum err remote_remove_key(struct backend_session *generic, const struct key *key,
                                  struct err_detail *detail) {
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    struct bytes answered;
    remote_call_clear(&remote_of(generic)->call);
    return remote_exchange(remote_of(generic), "DELETE",
                           remote_key_path("documents", key->digest, key->number, path), 0, &answered,
                           detail);
}

static enum err remote_purge(struct backend_session *generic, const struct capture *captures, size_t count,
                             size_t *ret_count, struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    struct backend_code_page_end end = {.is_end = true};
    struct err_detail reason = {0};
    struct bytes answered;
    uint64_t purged_count = 0;
    remote_call_clear(&session->call);
    for (size_t i = 0; i < count; i++) {
        backend_code_put_capture(&session->call.head, &captures[i], false);
    }
    backend_code_put_page_end(&session->call.head, &end);
    if (session->call.head.err != ERR_OK) {
        return session->call.head.err;
    }
    enum err err = remote_exchange(session, "POST", "purge", BACKEND_CODE_SMALL_SIZE_MAX, &answered, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_count(answered, count, &purged_count, &reason);
    *ret_count = (size_t)purged_count;
    return remote_check(session, err, &reason, detail);
}

/* Bytes of any size, in session->document. */
static enum err remote_fetch(struct remote_session *session, const char *path, struct bytes *ret_document,
                             struct err_detail *detail) {
    struct bytes answered;
    struct err_detail reason = {0};
    remote_call_clear(&session->call);
    enum err err = remote_exchange(session, "GET", path, ANSWER_SIZE_MAX, &answered, detail);
    if (err != ERR_OK) {
        return err;
    }
    scratch_clear(&session->document);
    if (session->call.is_answer_packed) {
        err = pack_payload_unpack(&session->pack_payload, answered, ANSWER_SIZE_MAX, &session->document,
                                  &reason);
        bool is_ours = err == ERR_NO_SPACE || err == ERR_IO || err == ERR_MEMORY;
        if (err != ERR_OK) {
            return is_ours ? err_set(detail, err, "%s", err_text(err))
                           : remote_check(session, err, &reason, detail);
        }
    } else {
        struct scratch swapped = session->document;
        session->document = session->call.answer;
        session->call.answer = swapped;
    }
    return scratch_bytes(&session->document, ret_document);
}

static enum err remote_get(struct backend_session *generic, const struct key *key, struct bytes *ret_document,
                           struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    struct bytes document;
    enum err err = remote_fetch(session, remote_key_path("documents", key->digest, key->number, path),
                                &document, detail);
    if (err != ERR_OK) {
        return err;
    }
    uint8_t digest[SHA256_SIZE];
    sha256_digest(&session->sha256, document, digest);
    if (memcmp(digest, key->digest, sizeof digest) != 0) {
        struct err_detail reason = {0};
        err = err_set(&reason, ERR_MISMATCH, "the document is another than was asked for");
        return remote_check(session, err, &reason, detail);
    }
    *ret_document = document;
    return ERR_OK;
}

static enum err remote_fetch_at(struct backend_session *generic, const char *kind,
                                const struct location *location, struct bytes *ret_record,
                                struct err_detail *detail) {
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%" PRIu32 "-%" PRIu64 "-%" PRIu32, kind, location->segment,
             location->offset, location->length);
    return remote_fetch(remote_of(generic), path, ret_record, detail);
}

static enum err remote_get_record(struct backend_session *session, const struct location *location,
                                  struct bytes *ret_record, struct err_detail *detail) {
    return remote_fetch_at(session, "records", location, ret_record, detail);
}

static enum err remote_get_request(struct backend_session *session, const struct location *location,
                                   struct bytes *ret_request, struct err_detail *detail) {
    return remote_fetch_at(session, "requests", location, ret_request, detail);
}

static enum err remote_find_block(struct backend_session *generic, const uint8_t digest[KEY_DIGEST_SIZE],
                                  uint16_t number, struct block *ret_block, struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    struct bytes answered;
    struct err_detail reason = {0};
    enum err err = remote_query(session, remote_key_path("blocks", digest, number, path), &answered, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_block(answered, ret_block, &reason);
    return remote_check(session, err, &reason, detail);
}

static enum err remote_stat_volume(struct backend_session *generic, struct volume_stat *ret_stat,
                                   struct err_detail *detail) {
    struct remote_session *session = remote_of(generic);
    struct bytes answered;
    struct err_detail reason = {0};
    enum err err = remote_query(session, "stat", &answered, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_stat(answered, ret_stat, &reason);
    return remote_check(session, err, &reason, detail);
}

/* ---- walks ---- */

enum { PAGE_COUNT = 1000 }; /* entries that are fetched at once */

/* A walk over captures or blocks, page by page. */
struct cursor_remote {
    struct backend_cursor cursor; /* first */
    const char *path;             /* "captures?witnesses=yes&vouched=yes", "blocks" */
    struct buf from;
    struct buf to;
    bool in_reverse;
    bool has_page;
    bool is_last; /* there is no page behind this one */
    struct scratch page;
    struct wire_reader reader;
    char unheard[REMOTE_CALL_NAMES_SIZE_MAX]; /* of a guest */
    enum err err;                             /* stays */
};

static void remote_close_cursor(struct backend_cursor *generic) {
    struct cursor_remote *cursor = (struct cursor_remote *)generic;
    buf_done(&cursor->from);
    buf_done(&cursor->to);
    scratch_done(&cursor->page);
    free(cursor);
}

static enum err remote_open_walk(struct backend_session *session, const char *path, struct bytes from,
                                 struct bytes to, bool in_reverse, struct backend_cursor **ret_cursor) {
    struct cursor_remote *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    *cursor = (struct cursor_remote){.cursor = {.session = session}, .path = path, .in_reverse = in_reverse};
    buf_init(&cursor->from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&cursor->to, BACKEND_CODE_KEY_SIZE_MAX);
    scratch_init(&cursor->page, remote_of(session)->backend->peer.scratch_directory, SCRATCH_MEMORY_MAX,
                 BACKEND_CODE_PAGE_SIZE_MAX);
    enum err err = buf_put(&cursor->from, from);
    if (err == ERR_OK) {
        err = buf_put(&cursor->to, to);
    }
    if (err != ERR_OK) {
        remote_close_cursor(&cursor->cursor);
        return err;
    }
    *ret_cursor = &cursor->cursor;
    return ERR_OK;
}

static enum err remote_open_captures(struct backend_session *session, struct bytes from, struct bytes to,
                                     bool in_reverse, struct backend_cursor **ret_cursor,
                                     struct err_detail *detail) {
    (void)detail;
    /* Servers of earlier versions pass over what stands behind the "?". */
    return remote_open_walk(session, "captures?witnesses=yes&vouched=yes", from, to, in_reverse, ret_cursor);
}

static enum err remote_open_blocks(struct backend_session *session, struct bytes from,
                                   struct backend_cursor **ret_cursor, struct err_detail *detail) {
    (void)detail;
    return remote_open_walk(session, "blocks", from, bytes_of(NULL, 0), false, ret_cursor);
}

/* The session's answer becomes the cursor's page: others may use the session meanwhile. */
static enum err remote_fetch_page(struct cursor_remote *cursor, struct err_detail *detail) {
    struct remote_session *session = remote_of(cursor->cursor.session);
    struct remote_call *call = &session->call;
    struct bytes page;
    struct backend_code_walk walk = {
        .from = buf_bytes(&cursor->from),
        .to = buf_bytes(&cursor->to),
        .in_reverse = cursor->in_reverse,
        .count_max = PAGE_COUNT,
    };
    remote_call_clear(call);
    enum err err = backend_code_put_walk(&call->head, &walk);
    if (err == ERR_OK) {
        err = remote_exchange(session, "POST", cursor->path, BACKEND_CODE_PAGE_SIZE_MAX, &page, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    memcpy(cursor->unheard, call->unheard, sizeof cursor->unheard);
    struct scratch swapped = cursor->page;
    cursor->page = call->answer;
    call->answer = swapped;
    err = scratch_bytes(&cursor->page, &page);
    wire_reader_init(&cursor->reader, page);
    cursor->has_page = true;
    return err;
}

/* Behind the last entry of a page. A server that does not come further would keep us for ever. */
static enum err remote_end_page(struct cursor_remote *cursor, const struct backend_code_page_end *end,
                                struct err_detail *detail) {
    cursor->has_page = false;
    cursor->is_last = end->is_end;
    if (end->is_end) {
        return ERR_OK;
    }
    struct buf *bound = cursor->in_reverse ? &cursor->to : &cursor->from;
    int order = bytes_compare(end->next, buf_bytes(bound));
    bool comes_further = bound->size == 0 || (cursor->in_reverse ? order < 0 : order > 0);
    if (!comes_further) {
        struct err_detail reason = {0};
        err_set(&reason, ERR_MISMATCH, "the walk does not come further");
        return remote_call_mismatch(&remote_of(cursor->cursor.session)->call, &reason, detail);
    }
    buf_clear(bound);
    return buf_put(bound, end->next);
}

/* One entry: the next of the page, else the first of the page behind it. */
static enum err remote_next_entry(struct cursor_remote *cursor, struct capture *ret_capture,
                                  struct key *ret_key, struct block *ret_block, struct err_detail *detail) {
    for (;;) {
        if (cursor->is_last && !cursor->has_page) {
            return ERR_NOT_FOUND;
        }
        enum err err = cursor->has_page ? ERR_OK : remote_fetch_page(cursor, detail);
        if (err != ERR_OK) {
            return err;
        }
        struct backend_code_page_end end;
        struct err_detail reason = {0};
        err = ret_capture != NULL
                  ? backend_code_next_capture(&cursor->reader, ret_capture, &end, &reason)
                  : backend_code_next_block(&cursor->reader, ret_key, ret_block, &end, &reason);
        if (err != ERR_NOT_FOUND) {
            return remote_check(remote_of(cursor->cursor.session), err, &reason, detail);
        }
        err = remote_end_page(cursor, &end, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
}

static enum err remote_next_capture(struct backend_cursor *generic, struct capture *ret_capture,
                                    struct err_detail *detail) {
    struct cursor_remote *cursor = (struct cursor_remote *)generic;
    if (cursor->err == ERR_OK) {
        cursor->err = remote_next_entry(cursor, ret_capture, NULL, NULL, detail);
    }
    return cursor->err;
}

static const char *remote_unheard(const struct backend_cursor *generic) {
    return ((const struct cursor_remote *)generic)->unheard;
}

static enum err remote_next_block(struct backend_cursor *generic, struct key *ret_key,
                                  struct block *ret_block, struct err_detail *detail) {
    struct cursor_remote *cursor = (struct cursor_remote *)generic;
    struct key key;
    if (cursor->err == ERR_OK) {
        cursor->err = remote_next_entry(cursor, NULL, &key, ret_block, detail);
    }
    if (cursor->err == ERR_OK) {
        key.volume = generic->session->backend->number;
        *ret_key = key;
    }
    return cursor->err;
}

/* ---- opening ---- */

static void remote_drain(struct backend *backend) {
    remote_sender_drain(&((struct backend_remote *)backend)->sender);
}

static void remote_free_backend(struct backend_remote *backend) {
    curl_slist_free_all(backend->peer.headers);
    breaker_done(&backend->peer.breaker);
    free(backend->peer.url);
    free(backend->peer.base);
    free(backend->peer.scratch_directory);
    free(backend);
}

static void remote_close_backend(struct backend *generic) {
    struct backend_remote *backend = (struct backend_remote *)generic;
    remote_sender_done(&backend->sender);
    remote_free_backend(backend);
    curl_global_cleanup();
}

static const struct backend_table remote_table = {
    .is_far = true,
    .close = remote_close_backend,
    .session_open = remote_open_session,
    .session_close = remote_close_session,
    .ask = remote_ask,
    .answer = remote_answer,
    .put = remote_put,
    .submit = remote_submit,
    .remove = remote_remove_key,
    .purge = remote_purge,
    .get = remote_get,
    .get_record = remote_get_record,
    .get_request = remote_get_request,
    .find_block = remote_find_block,
    .captures_open = remote_open_captures,
    .captures_next = remote_next_capture,
    .captures_unheard = remote_unheard,
    .blocks_open = remote_open_blocks,
    .blocks_next = remote_next_block,
    .cursor_close = remote_close_cursor,
    .drain = remote_drain,
    .stat = remote_stat_volume,
};

/* A scheme and a host; no user, query or fragment. */
static bool remote_is_url(const char *text) {
    CURLU *url = curl_url();
    char *part = NULL;
    bool is_sound = url != NULL && strlen(text) < BACKEND_REMOTE_URL_SIZE_MAX &&
                    (bytes_starts_with(bytes_of_string(text), BYTES("http://")) ||
                     bytes_starts_with(bytes_of_string(text), BYTES("https://"))) &&
                    curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK;
    static const CURLUPart refused[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                        CURLUPART_FRAGMENT};
    for (size_t i = 0; is_sound && i < sizeof refused / sizeof *refused; i++) {
        is_sound = curl_url_get(url, refused[i], &part, 0) != CURLUE_OK;
        curl_free(part);
        part = NULL;
    }
    curl_url_cleanup(url);
    return is_sound;
}

/* It becomes part of a header line. */
static bool remote_is_token(const char *text) {
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        if (text[i] <= ' ' || text[i] >= 0x7f) {
            return false;
        }
    }
    return size > 0 && size < BACKEND_REMOTE_TOKEN_SIZE_MAX;
}

static bool remote_add_header(struct remote_peer *peer, const char *line) {
    struct curl_slist *longer = curl_slist_append(peer->headers, line);
    peer->headers = longer == NULL ? peer->headers : longer;
    return longer != NULL;
}

static bool remote_set_peer(struct backend_remote *backend, const struct backend_remote_config *config) {
    struct remote_peer *peer = &backend->peer;
    char line[BACKEND_REMOTE_TOKEN_SIZE_MAX + 32];
    snprintf(line, sizeof line, "Authorization: Bearer %s", config->token);
    peer->connect_timeout_ms =
        config->connect_timeout_ms == 0 ? CONNECT_TIMEOUT_MS : (long)config->connect_timeout_ms;
    peer->answer_timeout_us =
        UINT64_C(1000) * (config->answer_timeout_ms == 0 ? ANSWER_TIMEOUT_MS : config->answer_timeout_ms);
    peer->is_guest = config->is_guest;
    peer->clock = config->clock == NULL ? &clock_system : config->clock;
    uint32_t retry_after_ms = config->retry_after_ms == 0 ? RETRY_AFTER_MS : config->retry_after_ms;
    breaker_init(&peer->breaker, peer->clock, retry_after_ms * UINT64_C(1000));
    peer->scratch_directory = strdup(config->scratch_directory == NULL ? "/tmp" : config->scratch_directory);
    peer->url = strdup(config->url);
    size_t size = peer->url == NULL ? 0 : strlen(peer->url);
    while (size > 0 && peer->url[size - 1] == '/') {
        peer->url[--size] = '\0';
    }
    bool is_made = peer->url != NULL && peer->scratch_directory != NULL &&
                   asprintf(&peer->base, "%s/api/v1/volumes/%u/", peer->url, config->volume) > 0;
    peer->base = is_made ? peer->base : NULL;
    return is_made && remote_add_header(peer, line) && remote_add_header(peer, "Accept-Encoding: zstd") &&
           remote_add_header(peer, "Content-Type: application/octet-stream") &&
           remote_add_header(peer, "Expect:");
}

enum err backend_remote_open(const struct backend_remote_config *config, struct backend **ret_backend,
                             struct err_detail *detail) {
    if (!remote_is_url(config->url)) {
        return err_set(detail, ERR_INVALID,
                       "%.160s is no URL of a volume server, such as http://192.0.2.7:8080", config->url);
    }
    if (!remote_is_token(config->token)) {
        return err_set(detail, ERR_INVALID, "the token of %.160s has characters that no token has, or none",
                       config->url);
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        return ERR_MEMORY;
    }
    struct backend_remote *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        curl_global_cleanup();
        return ERR_MEMORY;
    }
    backend->backend = (struct backend){.table = &remote_table, .number = config->number};
    bool is_made = remote_set_peer(backend, config);
    if (!is_made || remote_sender_init(&backend->sender, &backend->peer, config->number) != ERR_OK) {
        remote_free_backend(backend);
        curl_global_cleanup();
        return ERR_MEMORY;
    }
    *ret_backend = &backend->backend;
    return ERR_OK;
}
