/* Captures of this node by their keys. */
#include "node/captures/capture_by_key.h"
#include "node/copies/copies_state.h"
#include "web/url/url.h"

enum { SURT_SIZE_MAX = URL_SIZE_MAX + 16, BOUNDS_SIZE_MAX = 2 * SURT_SIZE_MAX + 64 };

enum err copies_reader_init(struct copies_reader *reader, struct instance *instance) {
    buf_init(&reader->surt, SURT_SIZE_MAX);
    buf_init(&reader->url, URL_SIZE_MAX);
    buf_init(&reader->bounds, BOUNDS_SIZE_MAX);
    reader->session = instance_session_new(instance);
    enum err err = sha256_init(&reader->sha256);
    return reader->session == NULL ? ERR_MEMORY : err;
}

void copies_reader_done(struct copies_reader *reader) {
    if (reader->session != NULL) {
        instance_session_free(reader->session);
    }
    if (reader->sha256.context != NULL) {
        sha256_done(&reader->sha256);
    }
    buf_done(&reader->surt);
    buf_done(&reader->url);
    buf_done(&reader->bounds);
}

enum err copies_find_surt(struct copies *copies, const struct ringkey *key, struct buf *out) {
    struct keyset_entry entry;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_find(copies->keyset, key, &entry);
    if (err == ERR_OK) {
        err = buf_put(out, entry.surt);
    }
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

enum err copies_find_capture(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct capture *ret_capture, struct err_detail *detail) {
    buf_clear(&reader->surt);
    enum err err = copies_find_surt(copies, key, &reader->surt);
    if (err != ERR_OK) {
        return err_set(detail, err, "no capture of that key");
    }
    return capture_by_key(reader->session, buf_bytes(&reader->surt), key, &reader->bounds, &reader->url,
                          ret_capture, detail);
}

enum err copies_read_payload(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct bytes *ret_payload, struct err_detail *detail) {
    struct capture capture;
    struct key located;
    struct block block;
    enum err err = copies_find_capture(copies, reader, key, &capture, detail);
    err = err == ERR_OK ? instance_locate(reader->session, &capture, &located, &block, detail) : err;
    return err == ERR_OK ? instance_get(reader->session, &located, ret_payload, detail) : err;
}

/* ---- lists ---- */

static enum err list_range(struct copies *copies, const struct ringkey_range *range, struct ringkey *out,
                           size_t count_max, size_t *count) {
    size_t found = 0;
    bool is_empty = range->has_upper && ringkey_compare(&range->lower, &range->upper) >= 0;
    enum err err =
        is_empty ? ERR_OK : keyset_list(copies->keyset, range, out + *count, count_max - *count, &found);
    *count += err == ERR_OK ? found : 0;
    return err;
}

static struct ringkey lowest_at(struct ring_id place) {
    struct ringkey key = {0};
    ring_id_write(place, key.bytes);
    return key;
}

static struct ringkey next_key(const struct ringkey *key) {
    struct ringkey next = *key;
    for (size_t i = RINGKEY_SIZE; i > 0 && ++next.bytes[i - 1] == 0; i--) {
    }
    return next;
}

enum err copies_list(struct copies *copies, struct ring_id from, struct ring_id to,
                     const struct ringkey *behind, struct ringkey *out, size_t count_max, size_t *ret_count) {
    static const struct ring_id last = {UINT64_MAX, UINT64_MAX};
    struct ring_id end = ring_id_add_power(to, 0);
    struct ringkey_range first = {.lower = behind != NULL ? next_key(behind)
                                                          : lowest_at(ring_id_add_power(from, 0))};
    struct ringkey_range second = {.upper = lowest_at(end), .has_upper = true};
    struct ring_id start = ring_id_read(first.lower.bytes);
    size_t count = 0;
    bool is_straight = ring_id_compare(start, to) <= 0 && !ring_id_equal(from, to);
    first.has_upper = is_straight && !ring_id_equal(to, last);
    first.upper = second.upper;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = list_range(copies, &first, out, count_max, &count);
    if (err == ERR_OK && !is_straight && !ring_id_equal(from, to) && count < count_max) {
        err = list_range(copies, &second, out, count_max, &count);
    }
    pthread_mutex_unlock(&copies->keys_lock);
    *ret_count = count;
    return err;
}
