#include "store/index/recent.h"

#include <stdlib.h>

void recent_init(struct recent *recent) {
    *recent = (struct recent){.count = 0};
    pthread_mutex_init(&recent->lock, NULL);
}

static struct ledger_entry *entry_at(const struct recent *recent, size_t index) {
    return recent->entries[(recent->first + index) % RECENT_COUNT_MAX];
}

static size_t size_of(const struct ledger_entry *entry) {
    return sizeof *entry + entry->surt.size + entry->url.size + entry->mime.size;
}

static void drop_first(struct recent *recent) {
    struct ledger_entry *entry = entry_at(recent, 0);
    recent->size -= size_of(entry);
    recent->first = (recent->first + 1) % RECENT_COUNT_MAX;
    recent->count--;
    free(entry);
}

void recent_done(struct recent *recent) {
    while (recent->count > 0) {
        drop_first(recent);
    }
    pthread_mutex_destroy(&recent->lock);
}

/* ---- adding ---- */

static struct bytes recent_keep(uint8_t **room, struct bytes bytes) {
    struct bytes kept = bytes_of(*room, bytes.size);
    if (bytes.size > 0) {
        memcpy(*room, bytes.data, bytes.size);
    }
    *room += bytes.size;
    return kept;
}

void recent_add(struct recent *recent, const struct ledger_entry *entry) {
    size_t size = size_of(entry);
    struct ledger_entry *copy = size <= RECENT_SIZE_MAX ? malloc(size) : NULL;
    if (copy == NULL) {
        return;
    }
    uint8_t *room = (uint8_t *)(copy + 1);
    *copy = *entry;
    copy->surt = recent_keep(&room, entry->surt);
    copy->url = recent_keep(&room, entry->url);
    copy->mime = recent_keep(&room, entry->mime);
    pthread_mutex_lock(&recent->lock);
    while (recent->count == RECENT_COUNT_MAX || recent->size + size > RECENT_SIZE_MAX) {
        drop_first(recent);
    }
    recent->entries[(recent->first + recent->count++) % RECENT_COUNT_MAX] = copy;
    recent->size += size;
    pthread_mutex_unlock(&recent->lock);
}

/* ---- finding ---- */

static bool is_before(const struct location *location, const struct index_position *position) {
    return location->segment != position->segment ? location->segment < position->segment
                                                  : location->offset < position->offset;
}

static const struct ledger_entry *find(const struct recent *recent, const struct index_position *position) {
    size_t low = 0;
    size_t high = recent->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&entry_at(recent, middle)->location, position)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct ledger_entry *entry = low < recent->count ? entry_at(recent, low) : NULL;
    bool is_there = entry != NULL && entry->location.segment == position->segment &&
                    entry->location.offset == position->offset;
    return is_there ? entry : NULL;
}

static bool copy_out(const struct ledger_entry *entry, struct buf *text, struct ledger_entry *ret_entry) {
    buf_clear(text);
    if (buf_reserve(text, size_of(entry)) != ERR_OK) {
        return false;
    }
    uint8_t *room = text->data;
    *ret_entry = *entry;
    ret_entry->surt = recent_keep(&room, entry->surt);
    ret_entry->url = recent_keep(&room, entry->url);
    ret_entry->mime = recent_keep(&room, entry->mime);
    return true;
}

bool recent_find(struct recent *recent, const struct index_position *position, struct buf *text,
                 struct ledger_entry *ret_entry) {
    pthread_mutex_lock(&recent->lock);
    const struct ledger_entry *entry = find(recent, position);
    bool is_found = entry != NULL && copy_out(entry, text, ret_entry);
    pthread_mutex_unlock(&recent->lock);
    return is_found;
}
