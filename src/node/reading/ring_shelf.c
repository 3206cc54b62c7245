#include "node/reading/ring_shelf.h"

#include <sodium.h>
#include <stdlib.h>

#include "node/crowd/crowd_reader.h"
#include "node/reading/ring_shelf_state.h"
#include "store/shelf/shelf_read_only.h"

enum { TIMEOUT_MS = 2000, WAITERS_MAX = 24, STATUS_NOT_MODIFIED = 304 };

enum err ring_shelf_holders(struct ring_shelf *shelf, const uint8_t place[RINGKEY_PLACE_SIZE],
                            const struct peer *first, struct peer out[RING_SHELF_HOLDERS_MAX],
                            size_t *ret_count) {
    const struct ring_shelf_config *config = &shelf->config;
    struct peer holders[RING_SHELF_HOLDERS_MAX];
    size_t holders_count = 0;
    size_t count = 0;
    enum err err = config->find_holders(config->context, place, holders, &holders_count);
    if (first != NULL) {
        out[count++] = *first;
    }
    for (size_t i = 0; err == ERR_OK && i < holders_count && count < RING_SHELF_HOLDERS_MAX; i++) {
        bool is_self = memcmp(holders[i].key, config->self, PEER_KEY_SIZE) == 0;
        bool is_first = first != NULL && peer_equal(&holders[i], first);
        if (!is_self && !is_first) {
            out[count++] = holders[i];
        }
    }
    *ret_count = count;
    return first != NULL ? ERR_OK : err;
}

size_t ring_shelf_put_busy_last(struct ring_shelf *shelf, struct peer *peers, size_t count,
                                const struct peer *kept) {
    struct peer busy[RING_SHELF_HOLDERS_MAX];
    size_t busy_count = 0;
    size_t ready_count = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_kept = kept != NULL && peer_equal(&peers[i], kept);
        if (!is_kept && bulk_is_busy(shelf->config.bulk, &peers[i]) && busy_count < RING_SHELF_HOLDERS_MAX) {
            busy[busy_count++] = peers[i];
        } else {
            peers[ready_count++] = peers[i];
        }
    }
    memcpy(peers + ready_count, busy, busy_count * sizeof *peers);
    return ready_count;
}

/* ---- sessions ---- */

static void close_session(struct shelf_session *generic) {
    struct ring_shelf_session *session = ring_shelf_session(generic);
    if (session->captures != NULL) {
        captures_session_free(session->captures);
    }
    if (session->crowd_reader != NULL) {
        crowd_reader_session_free(session->crowd_reader);
    }
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

static enum err open_session(struct shelf *generic, struct shelf_session **ret_session) {
    struct ring_shelf *shelf = (struct ring_shelf *)generic;
    struct ring_shelf_session *session = calloc(1, sizeof *session);
    struct pack_options options = {.framing = PACK_PLAIN};
    if (session == NULL) {
        return ERR_MEMORY;
    }
    session->session.shelf = generic;
    session->shelf = shelf;
    scratch_init(&session->record, shelf->scratch_directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    scratch_sink_init(&session->sink, &session->record);
    buf_init(&session->request, SHELF_CODE_HEAD_SIZE_MAX);
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

static bool is_not_modified(const struct ring_shelf_capture *capture) {
    return capture->flags & CAPTURE_REVISIT && capture->status == STATUS_NOT_MODIFIED;
}

/* One with the same document that has a head of its own, among the other captures of its SURT. */
static enum err find_original(struct ring_shelf_session *session, const struct ring_shelf_capture *capture,
                              struct ring_shelf_capture *ret_original, struct err_detail *detail) {
    struct buf from;
    struct buf to;
    struct shelf_cursor *cursor;
    struct capture other;
    bool is_found = false;
    buf_init(&from, SHELF_CODE_KEY_SIZE_MAX);
    buf_init(&to, SHELF_CODE_KEY_SIZE_MAX);
    index_put_capture_prefix(&from, buf_bytes(&session->surt), INT64_MIN);
    index_put_capture_prefix(&to, buf_bytes(&session->surt), INT64_MAX);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK) {
        err = ring_shelf_captures_open(&session->session, buf_bytes(&from), buf_bytes(&to), false, &cursor,
                                       detail);
    }
    buf_done(&from);
    buf_done(&to);
    if (err != ERR_OK) {
        return err;
    }
    while (!is_found && (err = ring_shelf_captures_next(cursor, &other, detail)) == ERR_OK) {
        is_found = memcmp(other.signature, capture->signature, KEY_SIGNATURE_SIZE) == 0 &&
                   !(other.flags & CAPTURE_REVISIT && other.status == STATUS_NOT_MODIFIED);
    }
    if (is_found && !ring_shelf_listed_find(&session->shelf->listed, other.location.offset, &session->surt,
                                            ret_original)) {
        err = ERR_NOT_FOUND;
    }
    ring_shelf_cursor_close(cursor);
    return err;
}

static bool take_kept(struct ring_shelf_session *session, struct ring_shelf_parcel wanted) {
    session->is_known =
        ring_shelf_cache_take(&session->shelf->cache, &wanted, &session->record, &session->request);
    if (session->is_known) {
        session->parcel = wanted;
    }
    return session->is_known;
}

static enum err go_for(struct ring_shelf_session *session, uint64_t number, bool is_whole,
                       struct err_detail *detail) {
    struct ring_shelf *shelf = session->shelf;
    struct ring_shelf_capture capture;
    struct bytes record;
    if (!ring_shelf_listed_find(&shelf->listed, number, &session->surt, &capture)) {
        return err_set(detail, ERR_NOT_FOUND, "it was not listed lately");
    }
    enum err err = ERR_OK;
    if (is_whole && is_not_modified(&capture)) {
        err = find_original(session, &capture, &capture, detail);
    }
    if (err == ERR_OK) {
        err = ring_shelf_fetch(session, &capture, is_whole, detail);
    }
    if (err == ERR_OK) {
        err = scratch_bytes(&session->record, &record);
    }
    if (err == ERR_OK) {
        session->is_known = true;
        session->parcel.number = number;
        ring_shelf_cache_put(&shelf->cache, &session->parcel, record, buf_bytes(&session->request));
    }
    return err;
}

/* Record and request of the capture, in the session's hands. */
static enum err know(struct ring_shelf_session *session, uint64_t number, bool is_whole,
                     struct err_detail *detail) {
    struct ring_shelf *shelf = session->shelf;
    struct ring_shelf_parcel wanted = {.number = number, .is_whole = is_whole};
    uint8_t key[RING_SHELF_FLIGHT_KEY_SIZE] = {is_whole};
    enum err err = ERR_OK;
    if (session->is_known && session->parcel.number == number && session->parcel.is_whole == is_whole) {
        return ERR_OK;
    }
    if (take_kept(session, wanted)) {
        return ERR_OK;
    }
    memcpy(key + 1, &number, sizeof number);
    struct ring_shelf_flight *flight = ring_shelf_flight_begin(&shelf->records, key, &err);
    if (flight == NULL && err != ERR_OK) {
        return err_set(detail, err, "another node's capture cannot be had now: %s", err_text(err));
    }
    if (take_kept(session, wanted)) {
        err = ERR_OK;
    } else { /* also where what the other one brought is too large to be kept */
        err = go_for(session, number, is_whole, detail);
    }
    if (flight != NULL) {
        ring_shelf_flight_end(&shelf->records, flight, err);
    }
    return err;
}

static enum err know_at(struct ring_shelf_session *session, const struct location *location,
                        struct err_detail *detail) {
    if (location->segment != RING_SHELF_OWN && location->segment != RING_SHELF_WHOLE) {
        return ERR_NOT_FOUND;
    }
    return know(session, location->offset, location->segment == RING_SHELF_WHOLE, detail);
}

static enum err get_record(struct shelf_session *generic, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) {
    struct ring_shelf_session *session = ring_shelf_session(generic);
    enum err err = know_at(session, location, detail);
    return err == ERR_OK ? scratch_bytes(&session->record, ret_record) : err;
}

static enum err get_request(struct shelf_session *generic, const struct location *location,
                            struct bytes *ret_request, struct err_detail *detail) {
    struct ring_shelf_session *session = ring_shelf_session(generic);
    enum err err = know_at(session, location, detail);
    if (err == ERR_OK) {
        *ret_request = buf_bytes(&session->request);
    }
    return err;
}

/* ---- by signature: only of what was listed ---- */

static enum err find_block(struct shelf_session *generic, const uint8_t signature[KEY_SIGNATURE_SIZE],
                           uint16_t number, struct block *ret_block, struct err_detail *detail) {
    uint64_t listed;
    uint32_t length;
    (void)detail;
    if (number != 0 ||
        !ring_shelf_listed_find_signature(&ring_shelf_of(generic)->listed, signature, &listed, &length)) {
        return ERR_NOT_FOUND;
    }
    *ret_block = (struct block){
        .location = {.segment = RING_SHELF_WHOLE, .length = length, .offset = listed},
        .references = 1,
        .records_count = 1,
    };
    return ERR_OK;
}

static enum err get(struct shelf_session *generic, const struct key *key, struct bytes *ret_document,
                    struct err_detail *detail) {
    struct ring_shelf_session *session = ring_shelf_session(generic);
    struct block block;
    struct bytes record;
    enum err err = find_block(generic, key->signature, key->number, &block, detail);
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

/* ---- what a shelf of many nodes does not do ---- */

static enum err refuse(struct err_detail *detail) {
    return err_set(detail, ERR_UNSUPPORTED, "the documents of a ring are not listed");
}

static enum err blocks_open(struct shelf_session *session, struct bytes from,
                            struct shelf_cursor **ret_cursor, struct err_detail *detail) {
    (void)session;
    (void)from;
    (void)ret_cursor;
    return refuse(detail);
}

static enum err blocks_next(struct shelf_cursor *cursor, struct key *ret_key, struct block *ret_block,
                            struct err_detail *detail) {
    (void)cursor;
    (void)ret_key;
    (void)ret_block;
    return refuse(detail);
}

static enum err stat_shelf(struct shelf_session *session, struct shelf_stat *ret_stat,
                           struct err_detail *detail) {
    (void)session;
    (void)ret_stat;
    return refuse(detail);
}

/* ---- opening ---- */

static void close_shelf(struct shelf *generic) {
    struct ring_shelf *shelf = (struct ring_shelf *)generic;
    ring_shelf_listed_done(&shelf->listed);
    ring_shelf_cache_done(&shelf->cache);
    ring_shelf_doubts_done(&shelf->doubts);
    ring_shelf_listings_done(&shelf->listings);
    ring_shelf_flights_done(&shelf->lists);
    ring_shelf_flights_done(&shelf->records);
    pthread_cond_destroy(&shelf->idle);
    pthread_mutex_destroy(&shelf->lock);
    free(shelf);
}

static const struct shelf_table ring_table = {
    .close = close_shelf,
    .session_open = open_session,
    .session_close = close_session,
    .ask = shelf_read_only_ask,
    .answer = shelf_read_only_answer,
    .put = shelf_read_only_put,
    .submit = shelf_read_only_submit,
    .remove = shelf_read_only_remove,
    .get = get,
    .get_record = get_record,
    .get_request = get_request,
    .find_block = find_block,
    .captures_open = ring_shelf_captures_open,
    .captures_next = ring_shelf_captures_next,
    .blocks_open = blocks_open,
    .blocks_next = blocks_next,
    .cursor_close = ring_shelf_cursor_close,
    .drain = shelf_read_only_drain,
    .stat = stat_shelf,
};

struct shelf *ring_shelf_new(const char *scratch_directory) {
    struct ring_shelf *shelf = calloc(1, sizeof *shelf);
    uint64_t seed;
    if (shelf == NULL) {
        return NULL;
    }
    shelf->shelf.table = &ring_table;
    shelf->scratch_directory = scratch_directory;
    randombytes_buf(&seed, sizeof seed);
    ring_shelf_cache_init(&shelf->cache);
    ring_shelf_listings_init(&shelf->listings, seed);
    ring_shelf_flights_init(&shelf->lists);
    ring_shelf_flights_init(&shelf->records);
    pthread_mutex_init(&shelf->lock, NULL);
    pthread_cond_init(&shelf->idle, NULL);
    enum err err = ring_shelf_listed_init(&shelf->listed, seed);
    enum err doubts_err = ring_shelf_doubts_init(&shelf->doubts, seed);
    if (err != ERR_OK || doubts_err != ERR_OK) {
        close_shelf(&shelf->shelf);
        return NULL;
    }
    return &shelf->shelf;
}

void ring_shelf_begin(struct shelf *generic, const struct ring_shelf_config *config) {
    struct ring_shelf *shelf = (struct ring_shelf *)generic;
    pthread_mutex_lock(&shelf->lock);
    ASSERT(!shelf->is_active);
    shelf->config = *config;
    shelf->config.timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    shelf->config.waiters_max = config->waiters_max > 0 ? config->waiters_max : WAITERS_MAX;
    shelf->is_active = true;
    pthread_mutex_unlock(&shelf->lock);
}
