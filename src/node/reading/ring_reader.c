#include "node/reading/ring_reader.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "node/crowd/crowd_reader.h"
#include "node/reading/ring_reader_state.h"

enum { AT_ONCE_MAX = 64 };

/* ---- threads that wait ---- */

/* Within the lock; count may be NULL. */
static void begin_use(struct ring_reader *backend, uint32_t *count) {
    backend->users_count++;
    if (count != NULL) {
        ++*count;
    }
}

static void end_use(struct ring_reader *backend, uint32_t *count) {
    pthread_mutex_lock(&backend->lock);
    backend->users_count--;
    if (count != NULL) {
        --*count;
    }
    if (backend->users_count == 0) {
        bell_ring(&backend->idle);
    }
    pthread_mutex_unlock(&backend->lock);
}

enum err ring_reader_enter(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    enum err err = !backend->is_active && !backend->is_expected           ? ERR_NOT_FOUND
                   : !backend->is_active                                  ? ERR_UNREACHABLE
                   : backend->waiters_count < backend->config.waiters_max ? ERR_OK
                                                                          : ERR_UNREACHABLE;
    if (err == ERR_OK) {
        begin_use(backend, &backend->waiters_count);
    }
    pthread_mutex_unlock(&backend->lock);
    return err;
}

void ring_reader_leave(struct ring_reader *backend) {
    end_use(backend, &backend->waiters_count);
}

bool ring_reader_use(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    bool is_active = backend->is_active;
    if (is_active) {
        begin_use(backend, NULL);
    }
    pthread_mutex_unlock(&backend->lock);
    return is_active;
}

enum ring_reader_knowledge ring_reader_knowledge(const struct ring_reader_config *config,
                                                 const uint8_t position[RINGKEY_POSITION_SIZE]) {
    if (!config->is_current(config->context, position)) {
        return RING_READER_KNOWS_NOT;
    }
    bool has_any = config->has_any == NULL || config->has_any(config->context, position);
    return has_any ? RING_READER_KNOWS_ALL : RING_READER_KNOWS_OF_NOTHING;
}

bool ring_reader_is_expected(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    bool is_expected = backend->is_expected;
    pthread_mutex_unlock(&backend->lock);
    return is_expected;
}

void ring_reader_unuse(struct ring_reader *backend) {
    end_use(backend, NULL);
}

/* Those that were left behind are there beside those that are waited for. */
bool ring_reader_enter_aside(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    bool may_enter = backend->is_active && backend->asides_count < 2 * backend->config.waiters_max;
    if (may_enter) {
        begin_use(backend, &backend->asides_count);
    }
    pthread_mutex_unlock(&backend->lock);
    return may_enter;
}

void ring_reader_leave_aside(struct ring_reader *backend) {
    end_use(backend, &backend->asides_count);
}

void ring_reader_end(struct backend *generic) {
    struct ring_reader *backend = (struct ring_reader *)generic;
    pthread_mutex_lock(&backend->lock);
    backend->is_active = false;
    while (backend->users_count > 0) {
        (void)bell_await(&backend->idle, &backend->lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&backend->lock);
    pool_stop(&backend->asides);
}

void ring_reader_blame(struct ring_reader *backend, const struct peer *peer, const char *sentence) {
    if (ring_reader_use(backend)) {
        if (backend->config.blame != NULL) {
            backend->config.blame(backend->config.context, peer, sentence);
        }
        ring_reader_unuse(backend);
    }
}

/* ---- asides ---- */

struct ring_reader_aside {
    struct pool_job job;
    void (*run)(void *context);
    void (*release)(void *context);
    void *context;
    struct bell over;
    atomic_bool is_over;
    atomic_uint holders_count; /* the pool's thread, and whoever started it */
};

void ring_reader_aside_leave(struct ring_reader_aside *aside) {
    if (atomic_fetch_sub(&aside->holders_count, 1) == 1) {
        aside->release(aside->context);
        free(aside);
    }
}

static void ring_reader_aside_run(void *context, size_t seat) {
    struct ring_reader_aside *aside = context;
    (void)seat;
    aside->run(aside->context);
    atomic_store(&aside->is_over, true);
    bell_ring(&aside->over);
    ring_reader_aside_leave(aside);
}

struct ring_reader_aside *ring_reader_aside_start(struct pool *pool, void (*run)(void *context),
                                                  void (*release)(void *context), void *context) {
    struct ring_reader_aside *aside = calloc(1, sizeof *aside);
    if (aside == NULL) {
        return NULL;
    }
    *aside = (struct ring_reader_aside){.job = {.run = ring_reader_aside_run, .context = aside},
                                        .run = run,
                                        .release = release,
                                        .context = context,
                                        .holders_count = 2};
    if (!pool_try(pool, &aside->job)) {
        free(aside);
        return NULL;
    }
    return aside;
}

bool ring_reader_aside_wait(struct ring_reader_aside *aside, uint64_t wait_us) {
    uint64_t now_us = clock_monotonic_us(&clock_system);
    uint64_t until_us = wait_us < BELL_NEVER_US - now_us ? now_us + wait_us : BELL_NEVER_US;
    bool has_time = true;
    while (has_time && !atomic_load(&aside->is_over)) {
        unsigned heard = bell_listen(&aside->over);
        has_time = atomic_load(&aside->is_over) || bell_wait_until(&aside->over, heard, until_us);
    }
    return atomic_load(&aside->is_over);
}

/* ---- asking ---- */

/* The caller's thread waits until none is left. */
struct batch {
    struct ring_reader *backend;
    struct ring_reader_question **questions;
    size_t count;
    pthread_mutex_t lock;
    struct bell over;
    size_t left; /* lock */
};

struct asked {
    struct batch *batch;
    struct ring_reader_question *question;
};

/* From here on the batch may be gone. */
static void count_down(struct batch *batch) {
    pthread_mutex_lock(&batch->lock);
    batch->left--;
    if (batch->left == 0) {
        bell_ring(&batch->over);
    }
    pthread_mutex_unlock(&batch->lock);
}

static void reader_on_answer(void *context, enum err err, struct bytes answer) {
    struct asked *asked = context;
    struct ring_reader_question *question = asked->question;
    question->err = err;
    buf_clear(&question->answer);
    if (err == ERR_OK) {
        question->err = buf_put(&question->answer, answer);
    }
    count_down(asked->batch);
}

struct start {
    struct batch *batch;
    struct asked *asked;
};

static void start_batch(void *context) {
    struct start *start = context;
    struct batch *batch = start->batch;
    const struct ring_reader_config *config = &batch->backend->config;
    size_t count = batch->count; /* the last one to end lets the batch go */
    for (size_t i = 0; i < count; i++) {
        struct asked *asked = &start->asked[i];
        struct ring_reader_question *question = asked->question;
        uint32_t timeout_ms = question->timeout_ms > 0 ? question->timeout_ms : config->timeout_ms;
        enum err err = peer_rpc_call(config->peer_rpc, &question->peer, PEER_RPC_WALK,
                                     buf_bytes(&question->question), timeout_ms, reader_on_answer, asked);
        if (err != ERR_OK) {
            question->err = err;
            count_down(batch);
        }
    }
}

static void ask_batch(struct ring_reader *backend, struct ring_reader_question **questions, size_t count) {
    struct batch batch = {.backend = backend, .questions = questions, .count = count, .left = count};
    struct asked asked[AT_ONCE_MAX];
    struct start start = {.batch = &batch, .asked = asked};
    for (size_t i = 0; i < count; i++) {
        asked[i] = (struct asked){.batch = &batch, .question = questions[i]};
    }
    pthread_mutex_init(&batch.lock, NULL);
    enum err err = peer_rpc_post(backend->config.peer_rpc, start_batch, &start);
    pthread_mutex_lock(&batch.lock);
    while (err == ERR_OK && batch.left > 0) {
        (void)bell_await(&batch.over, &batch.lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&batch.lock);
    pthread_mutex_destroy(&batch.lock);
    for (size_t i = 0; i < count; i++) {
        enum err ended = err != ERR_OK ? err : questions[i]->err;
        questions[i]->err = ended;
        bool is_late = ended == ERR_TIMEOUT && questions[i]->timeout_ms == 0;
        if (is_late || ended == ERR_UNREACHABLE || ended == ERR_REFUSED || ended == ERR_CLOSED) {
            ring_reader_doubts_note_silent(&backend->doubts, &questions[i]->peer,
                                           clock_monotonic_us(&clock_system));
        }
    }
}

void ring_reader_ask(struct ring_reader *backend, struct ring_reader_question **questions, size_t count) {
    for (size_t i = 0; i < count; i += AT_ONCE_MAX) {
        size_t left = count - i;
        ask_batch(backend, questions + i, left < AT_ONCE_MAX ? left : AT_ONCE_MAX);
    }
}

enum {
    TIMEOUT_MS = 2000,
    WAITERS_MAX = 24,
    STATUS_NOT_MODIFIED = 304,
    KEPT_COUNT_MAX = 512,
    KEPT_SIZE_MAX = 8 << 20,
    KEPT_SIZES_MAX = 64 << 20
};

enum err ring_reader_holders(struct ring_reader *backend, const uint8_t position[RINGKEY_POSITION_SIZE],
                             const struct peer *first, struct peer out[RING_READER_HOLDERS_MAX],
                             size_t *ret_count) {
    const struct ring_reader_config *config = &backend->config;
    struct peer holders[RING_READER_HOLDERS_MAX];
    size_t holders_count = 0;
    size_t count = 0;
    enum err err = config->find_holders(config->context, position, holders, &holders_count);
    if (first != NULL) {
        out[count++] = *first;
    }
    for (size_t i = 0; err == ERR_OK && i < holders_count && count < RING_READER_HOLDERS_MAX; i++) {
        bool is_self = memcmp(holders[i].key, config->self, PEER_KEY_SIZE) == 0;
        bool is_first = first != NULL && peer_equal(&holders[i], first);
        if (!is_self && !is_first) {
            out[count++] = holders[i];
        }
    }
    *ret_count = count;
    return first != NULL ? ERR_OK : err;
}

size_t ring_reader_put_busy_last(struct ring_reader *backend, struct peer *peers, size_t count,
                                 const struct peer *kept) {
    struct peer busy[RING_READER_HOLDERS_MAX];
    size_t busy_count = 0;
    size_t ready_count = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_kept = kept != NULL && peer_equal(&peers[i], kept);
        if (!is_kept && peer_rpc_is_busy(backend->config.peer_rpc, &peers[i]) &&
            busy_count < RING_READER_HOLDERS_MAX) {
            busy[busy_count++] = peers[i];
        } else {
            peers[ready_count++] = peers[i];
        }
    }
    memcpy(peers + ready_count, busy, busy_count * sizeof *peers);
    return ready_count;
}

/* ---- sessions ---- */

static void close_session(struct backend_session *generic) {
    struct ring_reader_session *session = ring_reader_session(generic);
    captures_session_free(session->captures);
    crowd_reader_session_free(session->crowd_reader);
    if (session->has_title) {
        offers_title_done(&session->title);
    }
    warc_writer_done(&session->writer);
    sha256_done(&session->sha256);
    scratch_done(&session->record);
    buf_done(&session->request);
    buf_done(&session->surt);
    buf_done(&session->listed_surt);
    canon_done(&session->canon);
    free(session);
}

static enum err open_session(struct backend *generic, struct backend_session **ret_session) {
    struct ring_reader *backend = (struct ring_reader *)generic;
    struct ring_reader_session *session = calloc(1, sizeof *session);
    struct pack_options options = {.framing = PACK_PLAIN};
    if (session == NULL) {
        return ERR_MEMORY;
    }
    session->session.backend = generic;
    session->backend = backend;
    scratch_init(&session->record, backend->scratch_directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    scratch_set_budget(&session->record, backend->budget);
    scratch_sink_init(&session->sink, &session->record);
    buf_init(&session->request, BACKEND_CODE_HEAD_SIZE_MAX);
    buf_init(&session->surt, INDEX_SURT_SIZE_MAX);
    buf_init(&session->listed_surt, INDEX_SURT_SIZE_MAX);
    canon_init(&session->canon);
    enum err err = warc_writer_init(&session->writer, &session->sink.sink, 0, &options, warc_random_system);
    if (err == ERR_OK) {
        err = sha256_init(&session->sha256);
    }
    if (err != ERR_OK) {
        close_session(&session->session);
        return err;
    }
    *ret_session = &session->session;
    return ERR_OK;
}

/* ---- by location ---- */

static bool is_not_modified(const struct ring_reader_capture *capture) {
    return capture->flags & CAPTURE_REVISIT && capture->status == STATUS_NOT_MODIFIED;
}

/* One with the same document that has a head of its own, among the other captures of its SURT. */
static enum err find_original(struct ring_reader_session *session, const struct ring_reader_capture *capture,
                              struct ring_reader_capture *ret_original, struct err_detail *detail) {
    struct buf from;
    struct buf to;
    struct backend_cursor *cursor;
    struct capture other;
    bool is_found = false;
    buf_init(&from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&to, BACKEND_CODE_KEY_SIZE_MAX);
    index_put_capture_prefix(&from, buf_bytes(&session->surt), INT64_MIN);
    index_put_capture_prefix(&to, buf_bytes(&session->surt), INT64_MAX);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK) {
        err = ring_reader_captures_open(&session->session, buf_bytes(&from), buf_bytes(&to), false, &cursor,
                                        detail);
    }
    buf_done(&from);
    buf_done(&to);
    if (err != ERR_OK) {
        return err;
    }
    while (!is_found && (err = ring_reader_captures_next(cursor, &other, detail)) == ERR_OK) {
        is_found = memcmp(other.digest, capture->digest, KEY_DIGEST_SIZE) == 0 &&
                   !(other.flags & CAPTURE_REVISIT && other.status == STATUS_NOT_MODIFIED);
    }
    if (is_found && !ring_reader_listed_find(&session->backend->listed, other.location.offset, &session->surt,
                                             ret_original)) {
        err = ERR_NOT_FOUND;
    }
    ring_reader_cursor_close(cursor);
    return err;
}

/* A record that was fetched and checked, with the request that goes with it. */
struct ring_reader_kept {
    struct ring_reader_cached cached; /* first */
    struct ring_reader_parcel parcel;
    size_t record_size;
    size_t size;
    uint8_t bytes[]; /* the record, then the request */
};

/* For the cache, and for threads that want the same at the same time. */
static void put_record_key(uint64_t number, bool is_whole, uint8_t out[RING_READER_CACHE_KEY_SIZE]) {
    memset(out, 0, RING_READER_CACHE_KEY_SIZE);
    out[0] = is_whole;
    memcpy(out + 1, &number, sizeof number);
}

/* What is too large, or finds no memory, is not kept. */
static void keep_record(struct ring_reader_session *session, struct bytes record) {
    struct bytes request = buf_bytes(&session->request);
    size_t size = record.size + request.size;
    struct ring_reader_kept *kept =
        record.size > 0 && size <= KEPT_SIZE_MAX ? malloc(sizeof *kept + size) : NULL;
    if (kept == NULL) {
        return;
    }
    *kept = (struct ring_reader_kept){.cached = {.size = size, .users_count = 1},
                                      .parcel = session->parcel,
                                      .record_size = record.size,
                                      .size = size};
    put_record_key(session->parcel.number, session->parcel.is_whole, kept->cached.key);
    memcpy(kept->bytes, record.data, record.size);
    if (request.size > 0) {
        memcpy(kept->bytes + record.size, request.data, request.size);
    }
    ring_reader_cache_put(&session->backend->cache, kept);
    ring_reader_cache_release(&session->backend->cache, kept);
}

static bool take_kept(struct ring_reader_session *session, const uint8_t key[RING_READER_CACHE_KEY_SIZE]) {
    struct ring_reader_kept *kept = ring_reader_cache_take(&session->backend->cache, key);
    session->is_known = false;
    if (kept != NULL) {
        struct bytes all = bytes_of(kept->bytes, kept->size);
        scratch_clear(&session->record);
        buf_clear(&session->request);
        session->is_known = scratch_put(&session->record, bytes_slice(all, 0, kept->record_size)) == ERR_OK &&
                            buf_put(&session->request, bytes_skip(all, kept->record_size)) == ERR_OK;
        session->parcel = kept->parcel;
        ring_reader_cache_release(&session->backend->cache, kept);
    }
    return session->is_known;
}

static enum err go_for(struct ring_reader_session *session, uint64_t number, bool is_whole,
                       struct err_detail *detail) {
    struct ring_reader *backend = session->backend;
    struct ring_reader_capture capture;
    struct bytes record;
    if (!ring_reader_listed_find(&backend->listed, number, &session->surt, &capture)) {
        return err_set(detail, ERR_NOT_FOUND, "it was not listed lately");
    }
    enum err err = ERR_OK;
    if (is_whole && is_not_modified(&capture)) {
        err = find_original(session, &capture, &capture, detail);
    }
    if (err == ERR_OK) {
        err = ring_reader_fetch(session, &capture, is_whole, detail);
    }
    if (err == ERR_OK) {
        err = scratch_bytes(&session->record, &record);
    }
    if (err == ERR_OK) {
        session->is_known = true;
        session->parcel.number = number;
        keep_record(session, record);
    }
    return err;
}

/* Record and request of the capture, in the session's hands. */
static enum err know(struct ring_reader_session *session, uint64_t number, bool is_whole,
                     struct err_detail *detail) {
    struct ring_reader *backend = session->backend;
    uint8_t key[RING_READER_CACHE_KEY_SIZE];
    enum err err = ERR_OK;
    if (session->is_known && session->parcel.number == number && session->parcel.is_whole == is_whole) {
        return ERR_OK;
    }
    put_record_key(number, is_whole, key);
    if (take_kept(session, key)) {
        return ERR_OK;
    }
    struct ring_reader_flight *flight = ring_reader_cache_go(&backend->cache, key, &err);
    if (flight == NULL && err != ERR_OK) {
        return err_set(detail, err, "another node's capture cannot be had now: %s", err_text(err));
    }
    if (take_kept(session, key)) {
        err = ERR_OK;
    } else { /* also if the record that the other thread brought is too large to be kept */
        err = go_for(session, number, is_whole, detail);
    }
    if (flight != NULL) {
        ring_reader_cache_back(&backend->cache, flight, err);
    }
    return err;
}

static enum err know_at(struct ring_reader_session *session, const struct location *location,
                        struct err_detail *detail) {
    if (location->segment != RING_READER_OWN && location->segment != RING_READER_WHOLE) {
        return ERR_NOT_FOUND;
    }
    return know(session, location->offset, location->segment == RING_READER_WHOLE, detail);
}

static enum err get_record(struct backend_session *generic, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) {
    struct ring_reader_session *session = ring_reader_session(generic);
    enum err err = know_at(session, location, detail);
    return err == ERR_OK ? scratch_bytes(&session->record, ret_record) : err;
}

static enum err get_request(struct backend_session *generic, const struct location *location,
                            struct bytes *ret_request, struct err_detail *detail) {
    struct ring_reader_session *session = ring_reader_session(generic);
    enum err err = know_at(session, location, detail);
    if (err == ERR_OK) {
        *ret_request = buf_bytes(&session->request);
    }
    return err;
}

/* ---- by signature: only of what was listed ---- */

static enum err find_block(struct backend_session *generic, const uint8_t digest[KEY_DIGEST_SIZE],
                           uint16_t number, struct block *ret_block, struct err_detail *detail) {
    uint64_t listed;
    uint32_t length;
    (void)detail;
    if (number != 0 ||
        !ring_reader_listed_find_digest(&ring_reader_of(generic)->listed, digest, &listed, &length)) {
        return ERR_NOT_FOUND;
    }
    *ret_block = (struct block){
        .location = {.segment = RING_READER_WHOLE, .length = length, .offset = listed},
        .references = 1,
        .records_count = 1,
    };
    return ERR_OK;
}

static enum err reader_get(struct backend_session *generic, const struct key *key, struct bytes *ret_document,
                           struct err_detail *detail) {
    struct ring_reader_session *session = ring_reader_session(generic);
    struct block block;
    struct bytes record;
    enum err err = find_block(generic, key->digest, key->number, &block, detail);
    if (err == ERR_OK) {
        err = know_at(session, &block.location, detail);
    }
    if (err == ERR_OK) {
        err = scratch_bytes(&session->record, &record);
    }
    if (err == ERR_OK) {
        size_t start = session->parcel.payload_start;
        *ret_document = bytes_slice(record, start, start + session->parcel.payload_size);
    }
    return err;
}

/* ---- opening ---- */

static void close_backend(struct backend *generic) {
    struct ring_reader *backend = (struct ring_reader *)generic;
    ring_reader_listed_done(&backend->listed);
    ring_reader_cache_done(&backend->cache);
    ring_reader_doubts_done(&backend->doubts);
    ring_reader_cache_done(&backend->listings);
    pthread_mutex_destroy(&backend->lock);
    free(backend);
}

static const struct backend_table ring_table = {
    .is_far = true,
    .close = close_backend,
    .session_open = open_session,
    .session_close = close_session,
    .get = reader_get,
    .get_record = get_record,
    .get_request = get_request,
    .find_block = find_block,
    .captures_open = ring_reader_captures_open,
    .captures_next = ring_reader_captures_next,
    .captures_unheard = ring_reader_captures_unheard,
    .cursor_close = ring_reader_cursor_close,
};

struct backend *ring_reader_new(const char *scratch_directory, struct scratch_budget *budget) {
    struct ring_reader *backend = calloc(1, sizeof *backend);
    uint64_t seed;
    if (backend == NULL) {
        return NULL;
    }
    backend->backend.table = &ring_table;
    backend->scratch_directory = scratch_directory;
    backend->budget = budget;
    randombytes_buf(&seed, sizeof seed);
    ring_reader_cache_init(&backend->cache,
                           &(struct ring_reader_cache_config){KEPT_COUNT_MAX, KEPT_SIZES_MAX, free, seed});
    ring_reader_cache_init(&backend->listings, &(struct ring_reader_cache_config){
                                                   RING_READER_LISTINGS_MAX, RING_READER_LISTINGS_SIZE_MAX,
                                                   ring_reader_listing_free, seed});
    pthread_mutex_init(&backend->lock, NULL);
    enum err err = ring_reader_listed_init(&backend->listed, seed);
    ring_reader_doubts_init(&backend->doubts, seed);
    if (err != ERR_OK) {
        close_backend(&backend->backend);
        return NULL;
    }
    return &backend->backend;
}

void ring_reader_expect(struct backend *generic) {
    struct ring_reader *backend = (struct ring_reader *)generic;
    pthread_mutex_lock(&backend->lock);
    backend->is_expected = true;
    pthread_mutex_unlock(&backend->lock);
}

void ring_reader_begin(struct backend *generic, const struct ring_reader_config *config) {
    struct ring_reader *backend = (struct ring_reader *)generic;
    pthread_mutex_lock(&backend->lock);
    ASSERT(!backend->is_active);
    backend->config = *config;
    backend->config.timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    backend->config.waiters_max = config->waiters_max > 0 ? config->waiters_max : WAITERS_MAX;
    enum err err =
        pool_start(&backend->asides, &(struct pool_config){.name = "read-aside",
                                                           .threads_max = 2 * backend->config.waiters_max});
    (void)err; /* then nothing is done aside */
    backend->is_active = true;
    pthread_mutex_unlock(&backend->lock);
}
