/* The crowd, where the holders are busy, silent or slow. */
#include "base/utc.h"
#include "node/crowd/crowd_reader.h"
#include "node/reading/ring_reader_state.h"
#include "store/instance/record.h"

enum { CROWD_MS = 700 };
static const uint64_t PATIENCE_US_MIN = 300000;

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

/* As a volume would list it; the type is in *head. */
static enum err describe(const struct captured *captured, struct bytes surt, struct payload *head,
                         struct capture *ret_capture) {
    const struct document *document = &captured->document;
    struct bytes type = document->content_type;
    *ret_capture = (struct capture){
        .surt = surt,
        .time_us = document->time_us,
        .location = {.segment = RING_READER_OWN,
                     .length = captured->sum.size < UINT32_MAX ? (uint32_t)captured->sum.size : UINT32_MAX},
        .url = document->url,
    };
    memcpy(ret_capture->digest, captured->sum.digest, sizeof ret_capture->digest);
    if (document->head.size > 0) {
        (void)record_split(head, document->head);
        ret_capture->status = head->head.status;
        type = fields_get(&head->head.fields, BYTES("Content-Type"));
    }
    struct bytes mime = http_mime(type);
    ret_capture->mime = mime.size <= INDEX_MIME_SIZE_MAX ? mime : bytes_of(NULL, 0);
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

enum err ring_reader_crowd_list(struct ring_reader_session *session, struct bytes surt,
                                struct ring_reader_listing *listing) {
    struct obtained obtained;
    struct ring_reader_member member;
    struct payload head;
    enum err err = obtain_near(session, surt, listing->wished_us, &obtained);
    if (err == ERR_OK) {
        err = payload_init(&head);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = describe(&obtained.captured, surt, &head, &member.capture);
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
