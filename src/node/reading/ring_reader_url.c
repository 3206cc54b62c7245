#include <stdlib.h>

#include "base/clock.h"
#include "base/utc.h"
#include "node/crowd/crowd_reader.h"
#include "node/reading/ring_reader_state.h"
#include "store/instance/record.h"
#include "web/type/mime_type.h"

/* ---- the crowd, if the holders are busy, silent or slow ---- */

enum { CROWD_MS = 700 };
static const uint64_t PATIENCE_US_MIN = 50000; /* lookup, list and capture may each wait for a dead holder */

bool ring_reader_has_crowd(const struct ring_reader *backend) {
    return backend->config.obtain != NULL;
}

uint64_t ring_reader_patience_us(struct ring_reader *backend, const struct peer *holders, size_t count) {
    uint64_t usual_us = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t his_us = peer_rpc_round_trip_us(backend->config.peer_rpc, &holders[i]);
        usual_us = usual_us == 0 || (his_us > 0 && his_us < usual_us) ? his_us : usual_us;
    }
    return 4 * usual_us > PATIENCE_US_MIN ? 4 * usual_us : PATIENCE_US_MIN;
}

static enum err obtain(struct ring_reader_session *session, const struct wish *wish, struct bytes surt,
                       struct obtained *ret_obtained, struct err_detail *detail) {
    if (session->crowd_reader == NULL) {
        session->crowd_reader = crowd_reader_session_new(session->backend->config.obtain);
        if (session->crowd_reader == NULL) {
            return ERR_MEMORY;
        }
    }
    return crowd_reader_get(session->crowd_reader, wish, surt, CROWD_MS, ret_obtained, detail);
}

static void wish_for(struct ring_reader_session *session, struct bytes surt, struct wish *wish) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(&session->sha256, surt, digest);
    memcpy(wish->hash, digest, sizeof wish->hash);
}

/* ---- one capture ---- */

/* By its URL and time, since that finds the very one; then by its digest, which vouches for itself. */
enum err ring_reader_crowd_fetch(struct ring_reader_session *session,
                                 const struct ring_reader_capture *capture, struct captured *ret_captured,
                                 struct err_detail *detail) {
    struct bytes surt = buf_bytes(&session->surt);
    struct wish wish = {.kind = WISH_URL, .time = WISH_NEAREST, .from_us = ringkey_time_us(&capture->key)};
    struct wish same = {.kind = WISH_DIGEST};
    struct obtained obtained;
    wish_for(session, surt, &wish);
    memcpy(same.digest, capture->digest, sizeof same.digest);
    enum err err = obtain(session, &wish, surt, &obtained, detail);
    bool is_it = err == ERR_OK && ringkey_compare(&obtained.key, &capture->key) == 0;
    if (!is_it && err != ERR_TIMEOUT) {
        err = obtain(session, &same, surt, &obtained, detail);
        is_it = err == ERR_OK && ringkey_compare(&obtained.key, &capture->key) == 0;
    }
    if (err == ERR_OK && !is_it) {
        err = err_set(detail, ERR_NOT_FOUND, "the crowd has other captures of it");
    }
    if (err == ERR_OK) {
        *ret_captured = obtained.captured;
        ret_captured->document.sum = &ret_captured->sum;
        ret_captured->from = obtained.from;
    }
    return err;
}

/* ---- a listing of what can be had ---- */

/* As a volume would list it; its type is in *type. */
static enum err url_describe(const struct captured *captured, struct bytes surt, struct payload *head,
                             struct mime_type *type, struct capture *ret_capture) {
    const struct document *document = &captured->document;
    *ret_capture = (struct capture){
        .surt = surt,
        .time_us = document->time_us,
        .location = {.segment = RING_READER_OWN,
                     .length = captured->sum.size < UINT32_MAX ? (uint32_t)captured->sum.size : UINT32_MAX},
        .url = captured->key_url.size > 0 ? captured->key_url : document->url,
    };
    memcpy(ret_capture->digest, captured->sum.digest, sizeof ret_capture->digest);
    if (document->head.size > 0) {
        (void)record_split(head, document->head);
        ret_capture->status = head->head.status;
        (void)http_type(&head->head.fields, type);
    } else {
        (void)mime_type_extract(type, document->content_type);
    }
    ret_capture->mime = mime_type_essence(type);
    return index_can_hold(ret_capture) ? ERR_OK : ERR_INVALID;
}

/*
 * The newest, or the newest that is not newer than the time, or what is nearest to it. In this order, since
 * what this node offers itself comes before what others have, and the nearest of its own may be far.
 */
static enum err obtain_near(struct ring_reader_session *session, struct bytes surt, int64_t time_us,
                            struct obtained *ret_obtained) {
    struct wish wish = {.kind = WISH_URL, .time = WISH_NEWEST};
    wish_for(session, surt, &wish);
    if (time_us == INT64_MAX) {
        return obtain(session, &wish, surt, ret_obtained, NULL);
    }
    wish.time = WISH_BETWEEN;
    wish.from_us = UTC_MIN_US;
    wish.to_us = time_us;
    enum err err = obtain(session, &wish, surt, ret_obtained, NULL);
    if (err == ERR_OK) {
        return ERR_OK;
    }
    wish.time = WISH_NEAREST;
    wish.from_us = time_us;
    wish.to_us = 0;
    return obtain(session, &wish, surt, ret_obtained, NULL);
}

/* Into the listing what somebody has of this URL, nearest to listing->wished_us. */
static enum err ring_reader_crowd_list(struct ring_reader_session *session, struct bytes surt,
                                       struct ring_reader_listing *listing) {
    struct obtained obtained;
    struct ring_reader_member member;
    struct payload head;
    struct mime_type type;
    enum err err = obtain_near(session, surt, listing->wished_us, &obtained);
    if (err == ERR_OK) {
        err = payload_init(&head);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = url_describe(&obtained.captured, surt, &head, &type, &member.capture);
    if (err == ERR_OK) {
        member.key = obtained.key;
        member.number = ring_reader_number(&session->sha256, &member.key);
        member.from = obtained.from;
        member.listed_at_us = 0;
        err = ring_reader_listing_add(listing, &member);
    }
    payload_done(&head);
    return err;
}

/* The captures of one URL: as they were listed a moment ago, as its holders list them, or as the crowd has
 * them. */

static const uint64_t FRESH_US = 5000000;
static const uint64_t EMPTY_US = 1000000; /* a reader who asks for a page to be archived soon looks for it */
static const uint64_t AGAIN_US = 1000000; /* before the holders that did not answer are asked again */
static const uint64_t NOTHING_US =
    300000; /* if nobody had anything: readers that come meanwhile do not wait */

enum { NEAR_US = 1000000 };

static uint64_t url_now_us(void) {
    return clock_monotonic_us(&clock_system);
}

/* What is looked for. */
struct subject {
    struct bytes surt;
    int64_t time_us; /* INT64_MAX: any */
    uint8_t hash[SHA256_SIZE];
};

/* ---- of its holders ---- */

/* What is to be listed; in a thread of its own, or in the caller's. */
struct errand {
    struct ring_reader *backend;
    bool is_aside; /* in a thread of its own, which counts until this is released */
    struct buf surt;
    struct ring_reader_manner manner;
    struct ring_reader_listing *listing; /* as it was made, partial or not; NULL: that failed */
};

static void errand_release(void *context) {
    struct errand *errand = context;
    struct ring_reader *backend = errand->backend;
    bool is_aside = errand->is_aside;
    if (errand->listing != NULL) {
        ring_reader_cache_release(&backend->listings, errand->listing);
    }
    buf_done(&errand->surt);
    free(errand);
    if (is_aside) {
        ring_reader_leave_aside(backend); /* from here on the backend may be gone */
    }
}

static enum err url_fill(struct ring_reader_cursor *cursor, struct ring_reader_listing *listing) {
    const struct ring_reader_member *member;
    enum err err;
    while ((err = ring_reader_walk_next(cursor, &member)) == ERR_OK) {
        err = ring_reader_listing_add(listing, member);
        if (err != ERR_OK) {
            break;
        }
    }
    listing->is_partial = err == ERR_UNREACHABLE;
    if (listing->is_partial) {
        const char *unheard = ring_reader_captures_unheard((const struct backend_cursor *)cursor);
        buf_put(&listing->unheard, bytes_of(unheard, strlen(unheard) + 1)); /* with its zero */
    }
    if (err == ERR_LIMIT) {
        listing->is_long = true;
        listing->count = 0;
    }
    ring_reader_listing_finish(listing);
    return err == ERR_NOT_FOUND || err == ERR_UNREACHABLE || err == ERR_LIMIT ? ERR_OK : err;
}

static enum err url_walk(struct errand *errand, struct backend_session *session,
                         struct ring_reader_listing *listing) {
    struct buf from;
    struct buf to;
    struct ring_reader_cursor *cursor;
    buf_init(&from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&to, BACKEND_CODE_KEY_SIZE_MAX);
    index_put_capture_prefix(&from, buf_bytes(&errand->surt), INT64_MIN);
    index_put_capture_prefix(&to, buf_bytes(&errand->surt), INT64_MAX);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK) {
        err =
            ring_reader_walk_open(session, buf_bytes(&from), buf_bytes(&to), false, errand->manner, &cursor);
    }
    if (err == ERR_OK) {
        err = url_fill(cursor, listing);
        ring_reader_cursor_close((struct backend_cursor *)cursor);
    }
    buf_done(&from);
    buf_done(&to);
    return err;
}

/* A whole listing goes to the others, too, even if nobody waits for it any more. */
static void url_run(struct errand *errand) {
    struct ring_reader *backend = errand->backend;
    struct backend_session *session;
    uint8_t hash[SHA256_SIZE];
    if (backend->backend.table->session_open(&backend->backend, &session) != ERR_OK) {
        return;
    }
    sha256_digest(&ring_reader_session(session)->sha256, buf_bytes(&errand->surt), hash);
    struct ring_reader_listing *listing = ring_reader_listing_new(hash);
    if (listing != NULL) {
        listing->made_at_us = url_now_us();
        enum err err = url_walk(errand, session, listing);
        if (err == ERR_OK && !listing->is_partial) {
            uint64_t fresh_us = listing->count > 0 || listing->is_long ? FRESH_US : EMPTY_US;
            ring_reader_listing_put(&backend->listings, listing, url_now_us() + fresh_us);
        }
        listing->is_partial = listing->is_partial || err != ERR_OK;
    }
    errand->listing = listing;
    backend->backend.table->session_close(session);
}

static void run_aside(void *context) {
    url_run(context);
}

static struct errand *errand_new(struct ring_reader *backend, struct bytes surt,
                                 struct ring_reader_manner manner) {
    struct errand *errand = calloc(1, sizeof *errand);
    if (errand != NULL) {
        *errand = (struct errand){.backend = backend, .manner = manner};
        buf_init(&errand->surt, INDEX_SURT_SIZE_MAX);
        if (buf_put(&errand->surt, surt) != ERR_OK) {
            errand_release(errand);
            errand = NULL;
        }
    }
    return errand;
}

/* What it brought is the caller's. */
static struct ring_reader_listing *errand_take(struct errand *errand) {
    struct ring_reader_listing *listing = errand->listing;
    errand->listing = NULL;
    return listing;
}

static struct ring_reader_listing *list_here(struct ring_reader *backend, struct bytes surt,
                                             struct ring_reader_manner manner) {
    struct errand *errand = errand_new(backend, surt, manner);
    struct ring_reader_listing *listing = NULL;
    if (errand != NULL) {
        url_run(errand);
        listing = errand_take(errand);
        errand_release(errand);
    }
    return listing;
}

/* ---- as it is known ---- */

/* What the crowd had near to another time is not what is wanted. */
static bool is_about(const struct ring_reader_listing *listing, int64_t time_us) {
    bool is_near = !listing->is_of_crowd || time_us == INT64_MAX || listing->wished_us == time_us;
    for (size_t i = 0; i < listing->count && !is_near; i++) {
        int64_t other_us = listing->members[i].capture.time_us;
        is_near = other_us > time_us ? other_us - time_us <= NEAR_US : time_us - other_us <= NEAR_US;
    }
    return is_near;
}

static struct ring_reader_listing *list_known(struct ring_reader *backend, const struct subject *subject,
                                              bool may_be_stale) {
    struct ring_reader_listing *known =
        ring_reader_listing_take(&backend->listings, subject->hash, url_now_us(), may_be_stale);
    if (known != NULL && !is_about(known, subject->time_us)) {
        ring_reader_cache_release(&backend->listings, known);
        return NULL;
    }
    return known;
}

/* An old one, which has to do for longer. */
static struct ring_reader_listing *list_old(struct ring_reader *backend, const struct subject *subject) {
    struct ring_reader_listing *old = list_known(backend, subject, true);
    if (old != NULL) {
        old->fresh_until_us = url_now_us() + AGAIN_US;
    }
    return old;
}

/* ---- of anybody ---- */

/* What is worth more: one that is whole, then one that has something. The other is let go. */
static struct ring_reader_listing *better(struct ring_reader *backend, struct ring_reader_listing *a,
                                          struct ring_reader_listing *b) {
    bool takes_a = b == NULL || (a != NULL && (!a->is_partial || (b->is_partial && a->count >= b->count)));
    struct ring_reader_listing *other = takes_a ? b : a;
    if (other != NULL) {
        ring_reader_cache_release(&backend->listings, other);
    }
    return takes_a ? a : b;
}

static bool is_whole(const struct ring_reader_listing *listing) {
    return listing != NULL && !listing->is_partial;
}

static struct ring_reader_listing *list_of_crowd(struct ring_reader_session *session,
                                                 const struct subject *subject) {
    struct ring_reader_listing *listing = ring_reader_listing_new(subject->hash);
    if (listing == NULL) {
        return NULL;
    }
    listing->is_partial = listing->is_of_crowd = true;
    listing->wished_us = subject->time_us;
    listing->made_at_us = url_now_us();
    enum err err = ring_reader_crowd_list(session, subject->surt, listing);
    ring_reader_listing_finish(listing);
    if (err != ERR_OK) {
        ring_reader_cache_release(&session->backend->listings, listing);
        return NULL;
    }
    return listing;
}

static struct ring_reader_aside *start_errand(struct ring_reader *backend, struct bytes surt,
                                              struct errand **ret_errand) {
    struct errand *errand = errand_new(backend, surt, (struct ring_reader_manner){0});
    if (errand == NULL) {
        return NULL;
    }
    errand->is_aside = ring_reader_enter_aside(backend);
    struct ring_reader_aside *aside =
        errand->is_aside ? ring_reader_aside_start(&backend->asides, run_aside, errand_release, errand)
                         : NULL;
    if (aside == NULL) {
        errand_release(errand);
    }
    *ret_errand = errand;
    return aside;
}

/* What those holders have that answer now. One that has just died keeps the others' answers waiting: without
 * it, nobody is sure to know all captures. */
static struct ring_reader_listing *list_in_haste(struct ring_reader *backend, const struct subject *subject,
                                                 uint64_t patience_us) {
    struct ring_reader_manner manner = {.hasty_ms = (uint32_t)(patience_us / 1000)};
    struct ring_reader_listing *listing = list_here(backend, subject->surt, manner);
    if (listing != NULL && listing->count == 0) {
        ring_reader_cache_release(&backend->listings, listing);
        listing = NULL;
    }
    return listing;
}

/* When they take long, what is old does, what the quick ones have, or the crowd; they are not waited for
 * then. */
static struct ring_reader_listing *list_beside(struct ring_reader_session *session,
                                               const struct subject *subject, uint64_t patience_us) {
    struct ring_reader *backend = session->backend;
    struct errand *errand;
    struct ring_reader_aside *aside = start_errand(backend, subject->surt, &errand);
    if (aside == NULL) {
        return list_of_crowd(session, subject);
    }
    bool is_back = ring_reader_aside_wait(aside, patience_us);
    struct ring_reader_listing *listing = is_back ? errand_take(errand) : NULL;
    if (!is_whole(listing)) {
        struct ring_reader_listing *other = list_old(backend, subject);
        other = other == NULL && !is_back ? list_in_haste(backend, subject, patience_us) : other;
        other = other != NULL ? other : list_of_crowd(session, subject);
        listing = better(backend, other, listing);
    }
    if (listing == NULL && !is_back && ring_reader_aside_wait(aside, UINT64_MAX)) {
        listing = errand_take(errand);
    }
    ring_reader_aside_leave(aside);
    return listing;
}

static struct ring_reader_listing *list_with_crowd(struct ring_reader_session *session,
                                                   const struct subject *subject) {
    struct ring_reader *backend = session->backend;
    struct peer holders[RING_READER_HOLDERS_MAX];
    uint8_t position[RINGKEY_POSITION_SIZE];
    size_t count = 0;
    position_of_surt(&session->sha256, subject->surt, (enum position_mapping)backend->config.mapping,
                     position);
    if (ring_reader_holders(backend, position, NULL, holders, &count) != ERR_OK) {
        count = 0;
    }
    size_t ready_count = ring_reader_put_busy_last(backend, holders, count, NULL);
    uint64_t patience_us = ring_reader_patience_us(backend, holders, ready_count);
    struct ring_reader_listing *listing = list_beside(session, subject, patience_us);
    bool has_nothing = listing == NULL || (listing->is_partial && listing->count == 0);
    if (has_nothing && ready_count < count) { /* the busy ones are asked last */
        listing =
            better(backend, list_here(backend, subject->surt, (struct ring_reader_manner){.asks_busy = true}),
                   listing);
    }
    return listing;
}

/* NULL: out of memory. */
static struct ring_reader_listing *url_make(struct ring_reader_session *session,
                                            const struct subject *subject) {
    struct ring_reader *backend = session->backend;
    struct ring_reader_listing *listing =
        ring_reader_has_crowd(backend) ? list_with_crowd(session, subject)
                                       : list_here(backend, subject->surt, (struct ring_reader_manner){0});
    if (!is_whole(listing)) {
        listing = better(backend, list_old(backend, subject), listing);
    }
    if (listing != NULL && listing->is_partial) {
        uint64_t fresh_us = listing->count > 0 ? AGAIN_US : NOTHING_US;
        ring_reader_listing_put(&backend->listings, listing, url_now_us() + fresh_us);
    }
    return listing;
}

/* ---- */

static enum err list(struct ring_reader_session *session, const struct subject *subject,
                     struct ring_reader_listing **ret_listing) {
    struct ring_reader *backend = session->backend;
    enum err err = ring_reader_enter(backend);
    if (err != ERR_OK) {
        return err;
    }
    struct ring_reader_listing *listing = url_make(session, subject);
    ring_reader_leave(backend);
    *ret_listing = listing;
    return listing != NULL ? ERR_OK : ERR_MEMORY;
}

enum err ring_reader_list_url(struct ring_reader_session *session, struct bytes surt, int64_t time_us,
                              struct ring_reader_listing **ret_listing) {
    struct ring_reader *backend = session->backend;
    struct subject subject = {.surt = surt, .time_us = time_us};
    enum err err = ERR_OK;
    sha256_digest(&session->sha256, surt, subject.hash);
    struct ring_reader_listing *listing = list_known(backend, &subject, false);
    if (listing == NULL) {
        struct ring_reader_flight *flight = ring_reader_cache_go(&backend->listings, subject.hash, &err);
        /* Somebody else may have been back just before. */
        listing = list_known(backend, &subject, flight == NULL);
        if (listing == NULL && flight != NULL) {
            err = list(session, &subject, &listing);
        }
        if (flight != NULL) {
            ring_reader_cache_back(&backend->listings, flight, err);
        }
    }
    if (listing == NULL) { /* too many wait, or the one that went found nothing */
        listing = list_known(backend, &subject, true);
    }
    if (listing == NULL) {
        return err != ERR_OK ? err : ERR_UNREACHABLE;
    }
    *ret_listing = listing;
    return ERR_OK;
}
