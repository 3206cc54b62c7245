#include "crawl/engine/attest.h"
#include "crawl/engine/campaign.h"
#include "crawl/engine/harvest_state.h"
#include "store/volume/volume_record.h"

static bool wants_own_captures(const struct harvest *harvest, const struct campaign *campaign) {
    const struct route *route = campaign->route;
    return harvest->identity != NULL && route != NULL && route->wants_own != NULL &&
           route->wants_own(route->context);
}

/* Did this node fetch it? Its record is signed with our key then. */
static bool is_own(struct harvest *harvest, const struct capture *capture) {
    static const struct bytes name = {(const uint8_t *)"\r\n" VOLUME_SIGNATURE_FIELD ": ",
                                      sizeof "\r\n" VOLUME_SIGNATURE_FIELD ": " - 1};
    struct bytes record;
    uint8_t key[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    if (instance_get_record(harvest->session, capture->volume, &capture->location, &record, NULL) != ERR_OK) {
        return false;
    }
    struct bytes head = bytes_slice(record, 0, bytes_find(record, BYTES("\r\n\r\n")));
    size_t at = bytes_find(head, name);
    struct bytes value = at < head.size ? bytes_skip(head, at + name.size) : bytes_of(NULL, 0);
    value = bytes_slice(value, 0, bytes_find_byte(value, '\r'));
    return attest_parse(value, key, signature) && memcmp(key, harvest->identity->key, sizeof key) == 0;
}

bool harvest_find_capture(struct harvest *harvest, struct trip *trip, int64_t since_us,
                          struct capture *ret_capture, struct merge **ret_merge) {
    struct bytes url = trip->url->url;
    struct buf surt;
    buf_init(&surt, INDEX_SURT_SIZE_MAX);
    buf_clear(&harvest->key_from);
    buf_clear(&harvest->key_to);
    bool has_key =
        canon_run(&harvest->canon, url, NULL) == ERR_OK && surt_put(&surt, &harvest->canon) == ERR_OK;
    if (has_key) {
        index_put_capture_prefix(&harvest->key_from, buf_bytes(&surt), since_us);
        index_put_capture_prefix(&harvest->key_to, buf_bytes(&surt), INT64_MAX);
    }
    buf_done(&surt);
    if (!has_key || merge_open(harvest->session, buf_bytes(&harvest->key_from), buf_bytes(&harvest->key_to),
                               true, ret_merge, NULL) != ERR_OK) {
        return false;
    }
    bool wants_own = wants_own_captures(harvest, trip->campaign);
    while (merge_next(*ret_merge, ret_capture, NULL) == ERR_OK) {
        if (bytes_equal(ret_capture->url, url) && (!wants_own || is_own(harvest, ret_capture))) {
            return true;
        }
    }
    merge_close(*ret_merge);
    return false;
}

/* Its response as if it had just arrived. False where its bytes cannot be read: it is fetched again then. */
static bool read_capture(struct harvest *harvest, struct trip *trip, const struct capture *capture) {
    struct bytes record;
    struct bytes document = bytes_of(NULL, 0);
    struct key key;
    struct block block;
    if (instance_get_record(harvest->session, capture->volume, &capture->location, &record, NULL) != ERR_OK) {
        return false;
    }
    size_t end = bytes_find(record, BYTES("\r\n\r\n"));
    if (end == record.size) {
        return false;
    }
    struct bytes rest = bytes_skip(record, end + 4);
    struct bytes head = bytes_slice(rest, 0, bytes_find(rest, BYTES("\r\n\r\n")));
    struct buf head_copy;
    struct document_sum sum = {.size = 0};
    buf_init(&head_copy, FETCH_HEAD_SIZE_MAX);
    buf_put(&head_copy, head);
    buf_put_string(&head_copy, "\r\n\r\n");
    bool is_read = head_copy.err == ERR_OK &&
                   instance_locate(harvest->session, capture, &key, &block, NULL) == ERR_OK &&
                   instance_get(harvest->session, &key, &document, NULL) == ERR_OK;
    if (is_read) {
        struct bytes nothing = bytes_of(NULL, 0);
        harvest_sum_up(harvest, buf_bytes(&head_copy), nothing, &sum);
        memcpy(sum.digest, capture->digest, KEY_DIGEST_SIZE);
        trip->body = document;
        harvest_describe(harvest, capture->time_us, capture->status, &sum);
        const struct fields *fields = &harvest->payload.head.fields;
        if (harvest_is_redirect(capture->status)) {
            harvest_follow_redirect(harvest, fields);
        } else {
            /* Its chunks are undone already, its content encoding is not. */
            struct bytes encoding = fields_get(fields, BYTES("Content-Encoding"));
            struct buf bare;
            buf_init(&bare, FETCH_HEAD_SIZE_MAX);
            buf_put_format(&bare, "HTTP/1.1 200 OK\r\nContent-Encoding: %.*s\r\n\r\n", BYTES_ARG(encoding));
            harvest_find_links(harvest, buf_bytes(&bare), fields);
            buf_done(&bare);
        }
    }
    buf_done(&head_copy);
    return is_read;
}

/* The visit's own start, or that of a run whose visit was lost in a crash. */
static int64_t look_since_us(const struct campaign *campaign) {
    int64_t start_us = campaign->visit_start_us;
    int64_t doubts_us = campaign->doubts_since_us;
    return doubts_us != 0 && doubts_us < start_us ? doubts_us : start_us;
}

void harvest_run_look(struct harvest *harvest, struct trip *trip) {
    struct capture capture;
    struct merge *merge;
    if (url_parse(&harvest->base, trip->url->url, NULL, NULL) == ERR_OK &&
        harvest_find_capture(harvest, trip, look_since_us(trip->campaign), &capture, &merge)) {
        trip->was_stored_before = read_capture(harvest, trip, &capture);
        merge_close(merge);
    }
    harvest_finish(trip, ERR_OK);
}
