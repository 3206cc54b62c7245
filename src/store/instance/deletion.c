#include "store/instance/deletion.h"

#include <stdlib.h>

#include "warc/request_key.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { KEYS_SIZE_MAX = 1 << 28 };

/* ---- as people write them ---- */

static enum err deletion_put_surt(struct bytes url, struct buf *out, struct err_detail *detail) {
    struct canon canon;
    canon_init(&canon);
    enum err err = canon_run(&canon, url, detail);
    err = err == ERR_OK ? surt_put(out, &canon) : err;
    canon_done(&canon);
    return err;
}

/* A part of the memory that is not there yet, since it may move while it grows. */
struct deletion_part {
    size_t from;
    size_t size;
    bool is_exact;
};

static void deletion_add_part(struct buf *memory, struct bytes key, const char *more, bool is_exact,
                              struct deletion_part *part) {
    *part = (struct deletion_part){.from = memory->size, .is_exact = is_exact};
    buf_put(memory, key);
    buf_put_string(memory, more);
    part->size = memory->size - part->from;
}

static size_t deletion_make_parts(struct bytes text, struct bytes surt, struct buf *memory,
                                  struct deletion_part parts[DELETION_PARTS_MAX]) {
    bool is_domain = bytes_starts_with(text, BYTES("*."));
    bool is_prefix = !is_domain && bytes_ends_with(text, BYTES("*"));
    bool is_below = bytes_ends_with(text, BYTES("/*")) && !bytes_ends_with(surt, BYTES("/"));
    if (is_domain) { /* what may follow the name of a host in a SURT */
        struct bytes host = bytes_slice(surt, 0, bytes_find_byte(surt, ')'));
        deletion_add_part(memory, host, ")", false, &parts[0]);
        deletion_add_part(memory, host, ",", false, &parts[1]);
        deletion_add_part(memory, host, ":", false, &parts[2]);
        return 3;
    }
    if (is_prefix && is_below) { /* canonical forms have no slash at their end */
        deletion_add_part(memory, surt, "", true, &parts[0]);
        deletion_add_part(memory, surt, "/", false, &parts[1]);
        return 2;
    }
    deletion_add_part(memory, surt, "", !is_prefix, &parts[0]);
    return 1;
}

static struct bytes deletion_bare(struct bytes text) {
    if (bytes_starts_with(text, BYTES("*."))) {
        return bytes_skip(text, 2);
    }
    return bytes_ends_with(text, BYTES("*")) ? bytes_slice(text, 0, text.size - 1) : text;
}

enum err deletion_read_url(struct bytes text, struct buf *memory, struct deletion out[DELETION_PARTS_MAX],
                           size_t *ret_count, struct err_detail *detail) {
    struct deletion_part parts[DELETION_PARTS_MAX];
    struct bytes bare = deletion_bare(text);
    struct buf surt;
    buf_init(&surt, URL_SIZE_MAX + 16);
    bool is_all = bytes_equal(text, BYTES("*"));
    enum err err = is_all ? ERR_OK : deletion_put_surt(bare, &surt, detail);
    size_t count = err == ERR_OK ? deletion_make_parts(text, buf_bytes(&surt), memory, parts) : 0;
    buf_done(&surt);
    err = err == ERR_OK ? memory->err : err;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        out[i] = (struct deletion){
            .key = bytes_slice(buf_bytes(memory), parts[i].from, parts[i].from + parts[i].size),
            .is_exact = parts[i].is_exact,
            .from_us = INT64_MIN,
            .to_us = INT64_MAX,
        };
    }
    if (err == ERR_OK) {
        *ret_count = count;
    }
    return err;
}

/* ---- one ---- */

static bool deletion_fits(const struct deletion *deletion, struct bytes surt, int64_t time_us) {
    bool is_meant =
        deletion->is_exact ? bytes_equal(surt, deletion->key) : bytes_starts_with(surt, deletion->key);
    return is_meant && time_us >= deletion->from_us && time_us <= deletion->to_us;
}

/* The SURT of the URL that was asked for, if the request was no GET: the capture has another. False: it was.
 */
static bool deletion_find_asked(struct bytes url, struct buf *out) {
    struct request_key asked = request_key_split(url);
    return asked.method.size > 0 && deletion_put_surt(asked.url, out, NULL) == ERR_OK;
}

bool deletion_covers(const struct deletion *deletion, struct bytes surt, struct bytes url, int64_t time_us) {
    if (deletion_fits(deletion, surt, time_us)) {
        return true;
    }
    struct buf asked;
    buf_init(&asked, URL_SIZE_MAX + 16);
    bool is_covered = deletion_find_asked(url, &asked) && deletion_fits(deletion, buf_bytes(&asked), time_us);
    buf_done(&asked);
    return is_covered;
}

/* ---- many ---- */

enum { NO_PARENT = -1 };

struct deletion_entry {
    struct deletion deletion;
    size_t key_at;  /* in the keys, while these may move */
    int64_t parent; /* the index of the longest other key that this one begins with, or an equal one */
};

struct deletion_set {
    struct deletion_entry *entries;
    size_t count;
    size_t capacity;
    struct buf keys;
    int64_t end_us;
};

struct deletion_set *deletion_set_new(void) {
    struct deletion_set *set = calloc(1, sizeof *set);
    if (set != NULL) {
        buf_init(&set->keys, KEYS_SIZE_MAX);
        set->end_us = INT64_MIN;
    }
    return set;
}

void deletion_set_free(struct deletion_set *set) {
    if (set != NULL) {
        free(set->entries);
        buf_done(&set->keys);
        free(set);
    }
}

/* The keys have moved, or may have. */
static void deletion_set_point(struct deletion_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        struct deletion_entry *entry = &set->entries[i];
        entry->deletion.key = bytes_of(set->keys.data + entry->key_at, entry->deletion.key.size);
    }
}

enum err deletion_set_add(struct deletion_set *set, const struct deletion *deletion) {
    if (set->count == DELETION_SET_MAX) {
        return ERR_LIMIT;
    }
    if (set->count == set->capacity) {
        size_t capacity = set->capacity > 0 ? 2 * set->capacity : 16;
        struct deletion_entry *entries = reallocarray(set->entries, capacity, sizeof *entries);
        if (entries == NULL) {
            return ERR_MEMORY;
        }
        set->entries = entries;
        set->capacity = capacity;
    }
    size_t at = set->keys.size;
    const uint8_t *before = set->keys.data;
    enum err err = buf_put(&set->keys, deletion->key);
    if (err != ERR_OK) {
        return err;
    }
    struct deletion_entry *entry = &set->entries[set->count++];
    *entry = (struct deletion_entry){.deletion = *deletion, .key_at = at};
    entry->deletion.key = bytes_of(set->keys.data + at, deletion->key.size);
    if (set->keys.data != before) {
        deletion_set_point(set);
    }
    set->end_us = deletion->to_us > set->end_us ? deletion->to_us : set->end_us;
    return ERR_OK;
}

static int deletion_compare(const void *a, const void *b) {
    const struct deletion_entry *left = a;
    const struct deletion_entry *right = b;
    return bytes_compare(left->deletion.key, right->deletion.key);
}

void deletion_set_seal(struct deletion_set *set) {
    if (set->count == 0) {
        return;
    }
    qsort(set->entries, set->count, sizeof *set->entries, deletion_compare);
    for (size_t i = 0; i < set->count; i++) {
        int64_t parent = (int64_t)i - 1;
        while (parent != NO_PARENT &&
               !bytes_starts_with(set->entries[i].deletion.key, set->entries[parent].deletion.key)) {
            parent = set->entries[parent].parent;
        }
        set->entries[i].parent = parent;
    }
}

size_t deletion_set_count(const struct deletion_set *set) {
    return set->count;
}

const struct deletion *deletion_set_at(const struct deletion_set *set, size_t index) {
    ASSERT(index < set->count);
    return &set->entries[index].deletion;
}

int64_t deletion_set_end_us(const struct deletion_set *set) {
    return set->end_us;
}

/* The last entry whose key is not above the SURT; NO_PARENT if all are. */
static int64_t deletion_set_find(const struct deletion_set *set, struct bytes surt) {
    size_t from = 0;
    size_t to = set->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (bytes_compare(set->entries[middle].deletion.key, surt) <= 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return (int64_t)from - 1;
}

/* Every key that the SURT begins with is one that the found one begins with, too. */
static bool deletion_set_fits(const struct deletion_set *set, struct bytes surt, int64_t time_us) {
    int64_t at = deletion_set_find(set, surt);
    while (at != NO_PARENT) {
        if (deletion_fits(&set->entries[at].deletion, surt, time_us)) {
            return true;
        }
        at = set->entries[at].parent;
    }
    return false;
}

bool deletion_set_covers(const struct deletion_set *set, struct bytes surt, struct bytes url,
                         int64_t time_us) {
    if (time_us > set->end_us) {
        return false;
    }
    if (deletion_set_fits(set, surt, time_us)) {
        return true;
    }
    struct buf asked;
    buf_init(&asked, URL_SIZE_MAX + 16);
    bool is_covered = deletion_find_asked(url, &asked) && deletion_set_fits(set, buf_bytes(&asked), time_us);
    buf_done(&asked);
    return is_covered;
}
