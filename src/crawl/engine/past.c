#include "crawl/engine/past.h"

#include "crawl/engine/attest.h"
#include "store/instance/merge.h"
#include "store/volume/volume_record.h"
#include "web/url/surt.h"

enum {
    CAPTURES_LOOKED_MAX = 64, /* of a URL: adaptive visits need no more to guess how often it changes */
    STATUS_NOT_MODIFIED = 304,
};

enum err past_init(struct past *past, struct instance_session *session) {
    *past = (struct past){.session = session};
    canon_init(&past->canon);
    buf_init(&past->surt, INDEX_SURT_SIZE_MAX);
    buf_init(&past->key_from, INDEX_SURT_SIZE_MAX + 64);
    buf_init(&past->key_to, INDEX_SURT_SIZE_MAX + 64);
    buf_init(&past->etag, FRONTIER_VALIDATOR_SIZE_MAX);
    buf_init(&past->last_modified, FRONTIER_VALIDATOR_SIZE_MAX);
    return record_init(&past->record);
}

void past_done(struct past *past) {
    canon_done(&past->canon);
    buf_done(&past->surt);
    buf_done(&past->key_from);
    buf_done(&past->key_to);
    buf_done(&past->etag);
    buf_done(&past->last_modified);
    record_done(&past->record);
}

bool past_is_redirect(uint16_t status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum err past_walk(struct past *past, struct bytes url, int64_t from_us, int64_t to_us,
                   struct merge **ret_merge) {
    buf_clear(&past->surt);
    buf_clear(&past->key_from);
    buf_clear(&past->key_to);
    if (canon_run(&past->canon, url, NULL) != ERR_OK || surt_put(&past->surt, &past->canon) != ERR_OK) {
        return ERR_NOT_FOUND;
    }
    index_put_capture_prefix(&past->key_from, buf_bytes(&past->surt), from_us);
    index_put_capture_prefix(&past->key_to, buf_bytes(&past->surt), to_us);
    if (past->key_from.err != ERR_OK || past->key_to.err != ERR_OK) {
        return ERR_NOT_FOUND;
    }
    return merge_open(past->session, buf_bytes(&past->key_from), buf_bytes(&past->key_to), true, ret_merge,
                      NULL);
}

bool past_is_signed(struct past *past, const struct capture *capture, const uint8_t key[PEER_KEY_SIZE]) {
    uint8_t signer[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    if (record_read(&past->record, past->session, capture->volume, &capture->location, NULL) != ERR_OK) {
        return false;
    }
    struct bytes field = fields_get(&past->record.header.fields, BYTES(VOLUME_SIGNATURE_FIELD));
    return attest_parse(field, signer, signature) && memcmp(signer, key, sizeof signer) == 0;
}

/* ---- what the captures say of the visits ---- */

static bool past_has_digest(const struct past_visits *visits, const struct capture *capture) {
    return memcmp(visits->history.digest, capture->digest, KEY_DIGEST_SIZE) == 0;
}

/* A validator, unless a newer capture of the same payload had one. One that is too long is none. */
static struct bytes past_keep_validator(struct buf *kept, const struct fields *fields, struct bytes name) {
    if (kept->size == 0 && buf_put(kept, fields_get(fields, name)) != ERR_OK) {
        buf_clear(kept);
        kept->err = ERR_OK;
    }
    return buf_bytes(kept);
}

/* The validators of a capture. False if its record cannot be read. */
static bool past_read_validators(struct past *past, const struct capture *capture,
                                 struct frontier_history *history) {
    if (record_read(&past->record, past->session, capture->volume, &capture->location, NULL) != ERR_OK ||
        past->record.head.size == 0) {
        return false;
    }
    const struct fields *fields = &past->record.payload.head.fields;
    history->etag = past_keep_validator(&past->etag, fields, BYTES("ETag"));
    history->last_modified = past_keep_validator(&past->last_modified, fields, BYTES("Last-Modified"));
    return true;
}

/*
 * One capture more, older than those before. A 304 says that the payload is that of an older capture: that
 * one has the status, and what validators the 304 left out. *needs_head: until such a one was read.
 */
static void past_take_capture(struct past *past, const struct capture *capture, struct past_visits *visits,
                              bool *needs_head, bool *is_one_payload) {
    struct frontier_history *history = &visits->history;
    bool is_first = history->visits_count == 0;
    if (is_first) {
        history->last_time_us = capture->time_us;
        history->has_digest = true;
        memcpy(history->digest, capture->digest, KEY_DIGEST_SIZE);
    }
    bool is_same = past_has_digest(visits, capture);
    *is_one_payload = *is_one_payload && is_same;
    visits->content_since_us = *is_one_payload ? capture->time_us : visits->content_since_us;
    history->visits_count++;
    history->first_time_us = capture->time_us;
    if (*needs_head && is_same && past_read_validators(past, capture, history) &&
        capture->status != STATUS_NOT_MODIFIED) {
        history->last_status = capture->status;
        *needs_head = false;
    }
}

enum err past_learn(struct past *past, struct bytes url, int64_t before_us, struct past_visits *ret_visits) {
    struct past_visits visits = {.content_since_us = INT64_MAX};
    struct merge *merge;
    struct capture capture;
    uint8_t digest[KEY_DIGEST_SIZE] = {0}; /* of the capture that is a visit newer */
    bool needs_head = true;
    bool is_one_payload = true;
    enum err err = past_walk(past, url, INT64_MIN, before_us, &merge);
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(&past->etag);
    buf_clear(&past->last_modified);
    while (visits.history.visits_count < CAPTURES_LOOKED_MAX && merge_next(merge, &capture, NULL) == ERR_OK) {
        if (!bytes_equal(capture.url, url)) {
            continue;
        }
        bool is_changed =
            visits.history.visits_count > 0 && memcmp(digest, capture.digest, sizeof digest) != 0;
        visits.history.changes_count += is_changed ? 1 : 0;
        memcpy(digest, capture.digest, sizeof digest);
        past_take_capture(past, &capture, &visits, &needs_head, &is_one_payload);
    }
    merge_close(merge);
    if (needs_head) {
        return ERR_NOT_FOUND;
    }
    *ret_visits = visits;
    return ERR_OK;
}

/* ---- the last version ---- */

/* Does the capture have the head of what it shows, and may that have links? */
static bool past_is_version(const struct capture *capture) {
    return capture->status == 200 || past_is_redirect(capture->status);
}

static enum err past_read_capture(struct past *past, const struct capture *capture,
                                  struct past_version *ret_version) {
    struct key key;
    struct block block;
    struct bytes document = bytes_of(NULL, 0);
    enum err err = record_read(&past->record, past->session, capture->volume, &capture->location, NULL);
    if (err == ERR_OK && past->record.head.size == 0) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_OK) {
        err = instance_locate(past->session, capture, &key, &block, NULL);
    }
    /* What was parsed of the head stays, though its text is no longer there: fields are copies. */
    err = err == ERR_OK ? instance_get(past->session, &key, &document, NULL) : err;
    if (err != ERR_OK) {
        return err;
    }
    *ret_version = (struct past_version){
        .fields = &past->record.payload.head.fields,
        .document = document,
        .status = capture->status,
        .time_us = capture->time_us,
    };
    return ERR_OK;
}

enum err past_read_version(struct past *past, struct bytes url, int64_t before_us,
                           struct past_version *ret_version) {
    struct merge *merge;
    struct capture capture;
    enum err err = past_walk(past, url, INT64_MIN, before_us, &merge);
    if (err != ERR_OK) {
        return err;
    }
    err = ERR_NOT_FOUND;
    for (size_t i = 0; i < CAPTURES_LOOKED_MAX && merge_next(merge, &capture, NULL) == ERR_OK; i++) {
        if (bytes_equal(capture.url, url) && past_is_version(&capture)) {
            err = past_read_capture(past, &capture, ret_version);
            break;
        }
    }
    merge_close(merge);
    return err;
}
