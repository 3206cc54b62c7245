/* The captures of one URL: as they were listed a moment ago, as its holders list them, or as the crowd has
 * them. */
#include <stdlib.h>

#include "base/clock.h"
#include "node/reading/ring_reader_aside.h"
#include "node/reading/ring_reader_walk_state.h"

static const uint64_t FRESH_US = 5000000;
static const uint64_t EMPTY_US = 1000000; /* who asks for a page to be archived soon looks for it */
static const uint64_t AGAIN_US = 1000000; /* before the holders that did not answer are asked again */
static const uint64_t NOTHING_US =
    300000; /* where nobody had anything: those who come meanwhile do not wait */

enum { NEAR_US = 1000000 };

static uint64_t now_us(void) {
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
    bool asks_busy;
    struct ring_reader_listing *listing; /* as it was made, partial or not; NULL where that failed */
};

static void errand_release(void *context) {
    struct errand *errand = context;
    struct ring_reader *backend = errand->backend;
    bool is_aside = errand->is_aside;
    if (errand->listing != NULL) {
        ring_reader_listings_release(&backend->listings, errand->listing);
    }
    buf_done(&errand->surt);
    free(errand);
    if (is_aside) {
        ring_reader_leave_aside(backend); /* from here on the shelf may be gone */
    }
}

static enum err fill(struct ring_reader_cursor *cursor, struct ring_reader_listing *listing) {
    const struct ring_reader_member *member;
    enum err err;
    while ((err = ring_reader_walk_next(cursor, &member)) == ERR_OK) {
        err = ring_reader_listing_add(listing, member);
        if (err != ERR_OK) {
            break;
        }
    }
    listing->is_partial = err == ERR_UNREACHABLE;
    if (err == ERR_LIMIT) {
        listing->is_long = true;
        listing->count = 0;
    }
    ring_reader_listing_finish(listing);
    return err == ERR_NOT_FOUND || err == ERR_UNREACHABLE || err == ERR_LIMIT ? ERR_OK : err;
}

static enum err walk(struct errand *errand, struct backend_session *session,
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
        err = ring_reader_walk_open(session, buf_bytes(&from), buf_bytes(&to), false, errand->asks_busy,
                                    &cursor);
    }
    if (err == ERR_OK) {
        err = fill(cursor, listing);
        ring_reader_cursor_close(&cursor->cursor);
    }
    buf_done(&from);
    buf_done(&to);
    return err;
}

/* What is whole goes to the others, too; also where nobody waits for it any more. */
static void run(struct errand *errand) {
    struct ring_reader *backend = errand->backend;
    struct backend_session *session;
    uint8_t hash[SHA256_SIZE];
    if (backend->backend.table->session_open(&backend->backend, &session) != ERR_OK) {
        return;
    }
    sha256_digest(&ring_reader_session(session)->sha256, buf_bytes(&errand->surt), hash);
    struct ring_reader_listing *listing = ring_reader_listing_new(hash);
    if (listing != NULL) {
        listing->made_at_us = now_us();
        enum err err = walk(errand, session, listing);
        if (err == ERR_OK && !listing->is_partial) {
            uint64_t fresh_us = listing->count > 0 || listing->is_long ? FRESH_US : EMPTY_US;
            ring_reader_listings_put(&backend->listings, listing, now_us() + fresh_us);
        }
        listing->is_partial = listing->is_partial || err != ERR_OK;
    }
    errand->listing = listing;
    backend->backend.table->session_close(session);
}

static void run_aside(void *context) {
    run(context);
}

static struct errand *errand_new(struct ring_reader *backend, struct bytes surt, bool asks_busy) {
    struct errand *errand = calloc(1, sizeof *errand);
    if (errand != NULL) {
        *errand = (struct errand){.backend = backend, .asks_busy = asks_busy};
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

static struct ring_reader_listing *list_here(struct ring_reader *backend, struct bytes surt, bool asks_busy) {
    struct errand *errand = errand_new(backend, surt, asks_busy);
    struct ring_reader_listing *listing = NULL;
    if (errand != NULL) {
        run(errand);
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
        ring_reader_listings_take(&backend->listings, subject->hash, now_us(), may_be_stale);
    if (known != NULL && !is_about(known, subject->time_us)) {
        ring_reader_listings_release(&backend->listings, known);
        return NULL;
    }
    return known;
}

/* An old one, which has to do for longer. */
static struct ring_reader_listing *list_old(struct ring_reader *backend, const struct subject *subject) {
    struct ring_reader_listing *old = list_known(backend, subject, true);
    if (old != NULL) {
        ring_reader_listings_prolong(&backend->listings, old, now_us() + AGAIN_US);
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
        ring_reader_listings_release(&backend->listings, other);
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
    listing->made_at_us = now_us();
    enum err err = ring_reader_crowd_list(session, subject->surt, listing);
    ring_reader_listing_finish(listing);
    if (err != ERR_OK) {
        ring_reader_listings_release(&session->backend->listings, listing);
        return NULL;
    }
    return listing;
}

static struct ring_reader_aside *start_errand(struct ring_reader *backend, struct bytes surt,
                                              struct errand **ret_errand) {
    struct errand *errand = errand_new(backend, surt, false);
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

/* When they take long, what is old does, or what the crowd has; they are not waited for then. */
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
        listing = better(backend, list_here(backend, subject->surt, true), listing);
    }
    return listing;
}

/* NULL: out of memory. */
static struct ring_reader_listing *make(struct ring_reader_session *session, const struct subject *subject) {
    struct ring_reader *backend = session->backend;
    struct ring_reader_listing *listing = ring_reader_has_crowd(backend)
                                              ? list_with_crowd(session, subject)
                                              : list_here(backend, subject->surt, false);
    if (!is_whole(listing)) {
        listing = better(backend, list_old(backend, subject), listing);
    }
    if (listing != NULL && listing->is_partial) {
        uint64_t fresh_us = listing->count > 0 ? AGAIN_US : NOTHING_US;
        ring_reader_listings_put(&backend->listings, listing, now_us() + fresh_us);
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
    struct ring_reader_listing *listing = make(session, subject);
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
        struct ring_reader_flight *flight = ring_reader_flight_begin(&backend->lists, subject.hash, &err);
        /* Somebody else may have been back just before. */
        listing = list_known(backend, &subject, flight == NULL);
        if (listing == NULL && flight != NULL) {
            err = list(session, &subject, &listing);
        }
        if (flight != NULL) {
            ring_reader_flight_end(&backend->lists, flight, err);
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

/* ---- the walk over what was listed ---- */

static bool is_inside(struct ring_reader_cursor *cursor, const struct capture *capture) {
    buf_clear(&cursor->key);
    index_put_capture_prefix(&cursor->key, capture->surt, capture->time_us);
    struct bytes key = buf_bytes(&cursor->key);
    return bytes_compare(key, buf_bytes(&cursor->from)) >= 0 &&
           bytes_compare(key, buf_bytes(&cursor->to)) < 0;
}

enum err ring_reader_url_next(struct ring_reader_cursor *cursor,
                              const struct ring_reader_member **ret_member) {
    const struct ring_reader_listing *listing = cursor->listing;
    while (cursor->listing_next < listing->count) {
        size_t index = cursor->listing_next++;
        const struct ring_reader_member *member =
            &listing->members[cursor->in_reverse ? listing->count - 1 - index : index];
        if (is_inside(cursor, &member->capture)) {
            *ret_member = member;
            return ERR_OK;
        }
    }
    bool is_denied = cursor->is_denied && listing->count == 0;
    cursor->err = listing->is_partial && !is_denied ? ERR_UNREACHABLE : ERR_NOT_FOUND;
    return cursor->err;
}
