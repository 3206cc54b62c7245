#include <sys/random.h>

#include "base/map.h"
#include "crawl/frontier/frontier_state.h"

enum { FORMAT_VERSION = 1 };

/* ---- meta data ---- */

static enum err load_put_now(struct frontier *frontier, const char *name, struct bytes value,
                             struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    enum err err = kv_put(frontier->kv, 0, frontier_code_name_key(key, 'm', name), value, detail);
    return err == ERR_OK ? kv_sync(frontier->kv, detail) : err;
}

static enum err load_get(struct frontier *frontier, const char *name, struct buf *value,
                         struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    return kv_copy(frontier->kv, 0, frontier_code_name_key(key, 'm', name), value, detail);
}

static enum err load_damaged(struct err_detail *detail, const char *what) {
    return err_set(detail, ERR_CORRUPT, "the frontier is damaged: %s", what);
}

/* A new frontier: the format comes last, since it says that the rest is there. */
static enum err load_create(struct frontier *frontier, struct err_detail *detail) {
    uint8_t value[FRONTIER_CODE_SMALL_SIZE_MAX];
    static const uint8_t version = FORMAT_VERSION;
    ssize_t size = getrandom(&frontier->key, sizeof frontier->key, 0);
    ASSERT(size == sizeof frontier->key); /* the kernel promises it for up to 256 bytes */
    frontier->meta =
        (struct frontier_meta){.sequence = 1, .visit = 1, .visit_start_us = frontier->config.now_us};
    enum err err = load_put_now(frontier, "key", bytes_of(&frontier->key, sizeof frontier->key), detail);
    if (err == ERR_OK) {
        err = load_put_now(frontier, "state", frontier_code_meta(value, &frontier->meta), detail);
    }
    if (err == ERR_OK) {
        err = load_put_now(frontier, "format", bytes_of(&version, 1), detail);
    }
    return err;
}

static enum err load_state(struct frontier *frontier, struct buf *value, struct err_detail *detail) {
    enum err err = load_get(frontier, "key", value, detail);
    if (err == ERR_NOT_FOUND || (err == ERR_OK && value->size != sizeof frontier->key)) {
        return load_damaged(detail, "its key");
    }
    if (err != ERR_OK) {
        return err;
    }
    memcpy(&frontier->key, value->data, sizeof frontier->key);
    err = load_get(frontier, "state", value, detail);
    if (err == ERR_NOT_FOUND ||
        (err == ERR_OK && frontier_code_read_meta(buf_bytes(value), &frontier->meta) != ERR_OK)) {
        return load_damaged(detail, "its state");
    }
    return err;
}

static enum err load_meta(struct frontier *frontier, struct buf *value, bool *ret_was_clean,
                          struct err_detail *detail) {
    enum err err = load_get(frontier, "format", value, detail);
    if (err == ERR_NOT_FOUND) {
        return load_create(frontier, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (value->size != 1) {
        return load_damaged(detail, "its format");
    }
    if (value->data[0] != FORMAT_VERSION) {
        return err_set(detail, ERR_MISMATCH, "the frontier has format %u, not %u", value->data[0],
                       FORMAT_VERSION);
    }
    err = load_state(frontier, value, detail);
    if (err == ERR_OK) {
        err = load_get(frontier, "clean", value, detail);
    }
    *ret_was_clean = err == ERR_OK && value->size == 1 && value->data[0] == 1;
    if (*ret_was_clean || (err != ERR_OK && err != ERR_NOT_FOUND)) {
        return err;
    }
    uint8_t state[FRONTIER_CODE_SMALL_SIZE_MAX];
    frontier->meta.doubtful_below = frontier->meta.sequence;
    return load_put_now(frontier, "state", frontier_code_meta(state, &frontier->meta), detail);
}

/* ---- hosts, fingerprints, counts ---- */

typedef enum err load_entry(struct frontier *frontier, struct bytes key, struct bytes value);

static enum err load_host(struct frontier *frontier, struct bytes key, struct bytes value) {
    uint32_t number = 0;
    uint32_t given = 0;
    uint64_t domain = 0;
    struct bytes name;
    enum err err = frontier_code_read_host_key(key, 'h', &number);
    if (err == ERR_OK) {
        err = frontier_code_read_host(value, &domain, &name);
    }
    if (err != ERR_OK) {
        return err;
    }
    uint64_t hash = map_hash(name, frontier->key);
    if (frontier_hosts_find(&frontier->hosts, hash) != FRONTIER_HOST_NONE) {
        return ERR_CORRUPT;
    }
    err = frontier_hosts_put(&frontier->hosts, hash, domain, &given);
    return err == ERR_OK && given != number ? ERR_CORRUPT : err;
}

static enum err load_known(struct frontier *frontier, struct bytes key, struct bytes value) {
    uint64_t fingerprint = 0;
    struct frontier_position place;
    enum err err = frontier_code_read_url_key(key, 'k', &fingerprint);
    if (err == ERR_OK) {
        err = frontier_code_read_place(value, &place);
    }
    if (err != ERR_OK || place.host >= frontier_hosts_count(&frontier->hosts)) {
        return ERR_CORRUPT;
    }
    struct frontier_host *host = frontier_hosts_at(&frontier->hosts, place.host);
    host->known_count++;
    frontier_hosts_domain_at(&frontier->hosts, host->domain)->known_count++;
    if (frontier_is_full(frontier)) {
        frontier->unseen_count++;
        return ERR_OK;
    }
    return seen_put(&frontier->seen, fingerprint);
}

static enum err load_kept(struct frontier *frontier, struct bytes key, struct bytes value) {
    uint32_t number = 0;
    (void)value;
    enum err err = frontier_code_read_host_key(key, 't', &number);
    if (err != ERR_OK || number >= frontier_hosts_count(&frontier->hosts)) {
        return ERR_CORRUPT;
    }
    frontier_hosts_at(&frontier->hosts, number)->has_kept = 1;
    return ERR_OK;
}

/* After an orderly end: as they were then. */
static enum err load_counts(struct frontier *frontier, struct bytes key, struct bytes value) {
    uint32_t counts[FRONTIER_CODE_COUNTS_MAX];
    uint32_t first = 0;
    size_t count = 0;
    enum err err = frontier_code_read_host_key(key, 'c', &first);
    if (err == ERR_OK) {
        err = frontier_code_read_counts(value, counts, FRONTIER_CODE_COUNTS_MAX, &count);
    }
    size_t hosts_count = frontier_hosts_count(&frontier->hosts);
    if (err != ERR_OK || first > hosts_count || count > hosts_count - first) {
        return ERR_CORRUPT;
    }
    for (size_t i = 0; i < count; i++) {
        frontier_count_waiting(frontier, first + (uint32_t)i, counts[i]);
    }
    return ERR_OK;
}

/* After a crash: all that wait are counted. */
static enum err load_count_one(struct frontier *frontier, struct bytes key, struct bytes value) {
    uint32_t host = 0;
    uint64_t position = 0;
    (void)value;
    enum err err = frontier_code_read_queue_key(key, &host, &position);
    if (err != ERR_OK || host >= frontier_hosts_count(&frontier->hosts)) {
        return ERR_CORRUPT;
    }
    frontier_count_waiting(frontier, host, 1);
    return ERR_OK;
}

static enum err load_kind(struct frontier *frontier, const char *kind, load_entry *load,
                          struct err_detail *detail) {
    const char end[] = {(char)(kind[0] + 1)};
    struct kv_iterator iterator;
    enum err err =
        kv_iterator_init(&iterator, frontier->kv, 0, KV_WALK_ALL, bytes_of(kind, 1), bytes_of(end, 1), false);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = kv_iterator_next(&iterator, detail)) == ERR_OK) {
        err = load(frontier, iterator.key, iterator.value);
        if (err != ERR_OK) {
            err_set(detail, err, "the frontier cannot be loaded, an entry of %s: %s", kind, err_text(err));
            break;
        }
    }
    kv_iterator_done(&iterator);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err frontier_load(struct frontier *frontier, struct err_detail *detail) {
    struct buf value;
    bool was_clean = false;
    buf_init(&value, FRONTIER_CODE_SMALL_SIZE_MAX);
    enum err err = load_meta(frontier, &value, &was_clean, detail);
    buf_done(&value);
    const char *const kinds[] = {"h", "t", "k", "o", was_clean ? "c" : "q"};
    load_entry *const loads[] = {load_host, load_kept, load_known, frontier_outgoing_load,
                                 was_clean ? load_counts : load_count_one};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && err == ERR_OK; i++) {
        err = load_kind(frontier, kinds[i], loads[i], detail);
    }
    for (uint32_t i = 0; err == ERR_OK && i < frontier_hosts_count(&frontier->hosts); i++) {
        if (frontier_hosts_at(&frontier->hosts, i)->waiting_count > 0) {
            frontier_hosts_line_up(&frontier->hosts, i);
        }
    }
    if (err == ERR_OK) {
        frontier->has_later = frontier_later_load(frontier, &err);
    }
    /* From here on, until the frontier is closed in order, what waits may have been fetched. */
    return err == ERR_OK ? load_put_now(frontier, "clean", BYTES("\0"), detail) : err;
}
