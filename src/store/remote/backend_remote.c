#include "store/remote/backend_remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "store/remote/backend_code.h"
#include "store/remote/backend_remote_state.h"
#include "store/volume/volume.h"

enum {
    CONNECT_TIMEOUT_MS = 3000,
    ANSWER_TIMEOUT_MS = 30000,
    RETRY_AFTER_MS = 5000,
};

/* A document that does not get smaller gets a little larger as a zstd frame. */
static const uint64_t ANSWER_SIZE_MAX = UINT64_C(5) << 30;

/* ---- sessions ---- */

static void close_session(struct backend_session *generic) {
    struct session_remote *session = session_remote(generic);
    remote_call_done(&session->call);
    scratch_done(&session->document);
    pack_payload_done(&session->pack_payload);
    sha256_done(&session->sha256);
    curl_multi_cleanup(session->multi);
    free(session);
}

static enum err open_session(struct backend *generic, struct backend_session **ret_session) {
    struct backend_remote *backend = (struct backend_remote *)generic;
    struct session_remote *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return ERR_MEMORY;
    }
    *session = (struct session_remote){.session = {.backend = generic}, .backend = backend};
    session->multi = curl_multi_init();
    scratch_init(&session->document, backend->scratch_directory, SCRATCH_MEMORY_MAX,
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

enum err session_remote_exchange(struct session_remote *session, const char *method, const char *path,
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

enum err session_remote_check(const struct session_remote *session, enum err err,
                              const struct err_detail *reason, struct err_detail *detail) {
    return err == ERR_OK ? ERR_OK : remote_call_mismatch(&session->call, reason, detail);
}

/* ---- asking ---- */

static enum err ask(struct backend_session *generic, const struct document_sum *sum) {
    struct session_remote *session = session_remote(generic);
    remote_call_clear(&session->call);
    backend_code_put_claims(&session->call.head, sum, 1);
    if (session->call.head.err != ERR_OK) {
        return session->call.head.err;
    }
    return remote_call_begin(&session->call, session->multi, "POST", "ask", BACKEND_CODE_SMALL_SIZE_MAX,
                             NULL);
}

static enum err answer(struct backend_session *generic, bool *ret_holds, struct err_detail *detail) {
    struct session_remote *session = session_remote(generic);
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
    return session_remote_check(session, err, &reason, detail);
}

/* ---- storing ---- */

/* The request: what describes the document, then its body, compressed where that helps. */
static enum err encode(struct session_remote *session, struct remote_call *call,
                       const struct document *document, enum store_mode mode, struct err_detail *detail) {
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

static enum err put(struct backend_session *generic, const struct document *document, enum store_mode mode,
                    struct stored *ret_stored, struct err_detail *detail) {
    struct session_remote *session = session_remote(generic);
    struct bytes answered;
    struct stored stored;
    struct err_detail reason = {0};
    enum err err = encode(session, &session->call, document, mode, detail);
    if (err == ERR_OK) {
        err = session_remote_exchange(session, "POST", "documents", BACKEND_CODE_SMALL_SIZE_MAX, &answered,
                                      detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_stored(answered, &stored, &reason);
    if (err == ERR_OK && document->sum != NULL &&
        memcmp(stored.key.digest, document->sum->digest, KEY_DIGEST_SIZE) != 0) {
        err = err_set(&reason, ERR_MISMATCH, "it stored another document");
    }
    err = session_remote_check(session, err, &reason, detail);
    if (err == ERR_OK) {
        stored.key.volume = generic->backend->number;
        *ret_stored = stored;
    }
    return err;
}

static enum err submit(struct backend_session *generic, const struct document *document, enum store_mode mode,
                       backend_done *done, void *context, struct err_detail *detail) {
    struct session_remote *session = session_remote(generic);
    struct remote_sender *sender = &session->backend->sender;
    uint64_t left_us;
    if (breaker_is_open(&session->backend->peer.breaker, &left_us)) {
        return remote_call_refuse(&session->backend->peer, left_us, detail);
    }
    struct remote_job *job = remote_sender_take(sender);
    if (job == NULL) {
        return ERR_MEMORY;
    }
    enum err err = encode(session, &job->call, document, mode, detail);
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
static const char *key_path(const char *kind, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
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

static enum err remove_key(struct backend_session *generic, const struct key *key,
                           struct err_detail *detail) {
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    struct bytes answered;
    remote_call_clear(&session_remote(generic)->call);
    return session_remote_exchange(session_remote(generic), "DELETE",
                                   key_path("documents", key->digest, key->number, path), 0, &answered,
                                   detail);
}

/* Bytes of any size, in session->document. */
static enum err fetch(struct session_remote *session, const char *path, struct bytes *ret_document,
                      struct err_detail *detail) {
    struct bytes answered;
    struct err_detail reason = {0};
    remote_call_clear(&session->call);
    enum err err = session_remote_exchange(session, "GET", path, ANSWER_SIZE_MAX, &answered, detail);
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
                           : session_remote_check(session, err, &reason, detail);
        }
    } else {
        struct scratch swapped = session->document;
        session->document = session->call.answer;
        session->call.answer = swapped;
    }
    return scratch_bytes(&session->document, ret_document);
}

static enum err get(struct backend_session *generic, const struct key *key, struct bytes *ret_document,
                    struct err_detail *detail) {
    struct session_remote *session = session_remote(generic);
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    struct bytes document;
    enum err err = fetch(session, key_path("documents", key->digest, key->number, path), &document, detail);
    if (err != ERR_OK) {
        return err;
    }
    uint8_t digest[SHA256_SIZE];
    sha256_digest(&session->sha256, document, digest);
    if (memcmp(digest, key->digest, sizeof digest) != 0) {
        struct err_detail reason = {0};
        err = err_set(&reason, ERR_MISMATCH, "the document is another than was asked for");
        return session_remote_check(session, err, &reason, detail);
    }
    *ret_document = document;
    return ERR_OK;
}

static enum err fetch_at(struct backend_session *generic, const char *kind, const struct location *location,
                         struct bytes *ret_record, struct err_detail *detail) {
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%" PRIu32 "-%" PRIu64 "-%" PRIu32, kind, location->segment,
             location->offset, location->length);
    return fetch(session_remote(generic), path, ret_record, detail);
}

static enum err get_record(struct backend_session *session, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) {
    return fetch_at(session, "records", location, ret_record, detail);
}

static enum err get_request(struct backend_session *session, const struct location *location,
                            struct bytes *ret_request, struct err_detail *detail) {
    return fetch_at(session, "requests", location, ret_request, detail);
}

static enum err find_block(struct backend_session *generic, const uint8_t digest[KEY_DIGEST_SIZE],
                           uint16_t number, struct block *ret_block, struct err_detail *detail) {
    struct session_remote *session = session_remote(generic);
    char path[REMOTE_CALL_PATH_SIZE_MAX];
    struct bytes answered;
    struct err_detail reason = {0};
    remote_call_clear(&session->call);
    enum err err = session_remote_exchange(session, "GET", key_path("blocks", digest, number, path),
                                           BACKEND_CODE_SMALL_SIZE_MAX, &answered, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_block(answered, ret_block, &reason);
    return session_remote_check(session, err, &reason, detail);
}

static enum err stat_volume(struct backend_session *generic, struct backend_stat *ret_stat,
                            struct err_detail *detail) {
    struct session_remote *session = session_remote(generic);
    struct bytes answered;
    struct err_detail reason = {0};
    remote_call_clear(&session->call);
    enum err err =
        session_remote_exchange(session, "GET", "stat", BACKEND_CODE_SMALL_SIZE_MAX, &answered, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_code_read_stat(answered, ret_stat, &reason);
    return session_remote_check(session, err, &reason, detail);
}

/* ---- opening ---- */

static void drain(struct backend *backend) {
    remote_sender_drain(&((struct backend_remote *)backend)->sender);
}

static void free_backend(struct backend_remote *backend) {
    curl_slist_free_all(backend->peer.headers);
    breaker_done(&backend->peer.breaker);
    free(backend->peer.url);
    free(backend->peer.base);
    free(backend->scratch_directory);
    free(backend);
}

static void close_backend(struct backend *generic) {
    struct backend_remote *backend = (struct backend_remote *)generic;
    remote_sender_done(&backend->sender);
    free_backend(backend);
    curl_global_cleanup();
}

static const struct backend_table remote_table = {
    .close = close_backend,
    .session_open = open_session,
    .session_close = close_session,
    .ask = ask,
    .answer = answer,
    .put = put,
    .submit = submit,
    .remove = remove_key,
    .get = get,
    .get_record = get_record,
    .get_request = get_request,
    .find_block = find_block,
    .captures_open = cursor_remote_open_captures,
    .captures_next = cursor_remote_next_capture,
    .blocks_open = cursor_remote_open_blocks,
    .blocks_next = cursor_remote_next_block,
    .cursor_close = cursor_remote_close,
    .drain = drain,
    .stat = stat_volume,
};

/* A scheme and a host; no user, query or fragment. */
static bool is_url(const char *text) {
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
static bool is_token(const char *text) {
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        if (text[i] <= ' ' || text[i] >= 0x7f) {
            return false;
        }
    }
    return size > 0 && size < BACKEND_REMOTE_TOKEN_SIZE_MAX;
}

static bool add_header(struct remote_peer *peer, const char *line) {
    struct curl_slist *longer = curl_slist_append(peer->headers, line);
    peer->headers = longer == NULL ? peer->headers : longer;
    return longer != NULL;
}

static bool set_peer(struct backend_remote *backend, const struct backend_remote_config *config) {
    struct remote_peer *peer = &backend->peer;
    char line[BACKEND_REMOTE_TOKEN_SIZE_MAX + 32];
    snprintf(line, sizeof line, "Authorization: Bearer %s", config->token);
    peer->connect_timeout_ms =
        config->connect_timeout_ms == 0 ? CONNECT_TIMEOUT_MS : (long)config->connect_timeout_ms;
    peer->answer_timeout_us =
        UINT64_C(1000) * (config->answer_timeout_ms == 0 ? ANSWER_TIMEOUT_MS : config->answer_timeout_ms);
    peer->clock = config->clock == NULL ? &clock_system : config->clock;
    uint32_t retry_after_ms = config->retry_after_ms == 0 ? RETRY_AFTER_MS : config->retry_after_ms;
    breaker_init(&peer->breaker, peer->clock, retry_after_ms * UINT64_C(1000));
    backend->scratch_directory =
        strdup(config->scratch_directory == NULL ? "/tmp" : config->scratch_directory);
    peer->scratch_directory = backend->scratch_directory;
    peer->url = strdup(config->url);
    size_t size = peer->url == NULL ? 0 : strlen(peer->url);
    while (size > 0 && peer->url[size - 1] == '/') {
        peer->url[--size] = '\0';
    }
    bool is_made = peer->url != NULL && backend->scratch_directory != NULL &&
                   asprintf(&peer->base, "%s/api/v1/volumes/%u/", peer->url, config->volume) > 0;
    peer->base = is_made ? peer->base : NULL;
    return is_made && add_header(peer, line) && add_header(peer, "Accept-Encoding: zstd") &&
           add_header(peer, "Content-Type: application/octet-stream") && add_header(peer, "Expect:");
}

enum err backend_remote_open(const struct backend_remote_config *config, struct backend **ret_backend,
                             struct err_detail *detail) {
    if (!is_url(config->url)) {
        return err_set(detail, ERR_INVALID,
                       "%.160s is no URL of a volume server, such as http://192.0.2.7:8080", config->url);
    }
    if (!is_token(config->token)) {
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
    bool is_made = set_peer(backend, config);
    if (!is_made || remote_sender_init(&backend->sender, &backend->peer, config->number) != ERR_OK) {
        free_backend(backend);
        curl_global_cleanup();
        return ERR_MEMORY;
    }
    *ret_backend = &backend->backend;
    return ERR_OK;
}
