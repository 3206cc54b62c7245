#include "replay/wayback/rewritten.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lru.h"

enum {
    DOCUMENT_SIZE_TYPICAL = 4 << 10, /* for how many there is room in the table */
    ENTRY_SIZE = 256,                /* what one takes beside its bytes: in the table, of the allocator */
};

/* The value in the table; its bytes are the note and, behind it, the document. */
struct rewritten_entry {
    uint8_t *bytes;
    size_t note_size;
    size_t size; /* of both */
};

struct rewritten {
    uint64_t size_max;
    pthread_mutex_t lock; /* of all that follows */
    struct lru entries;
    struct rewritten_stat stat;
};

struct rewritten *rewritten_new(uint64_t size_max) {
    struct rewritten *rewritten = calloc(1, sizeof *rewritten);
    uint64_t capacity = size_max / (DOCUMENT_SIZE_TYPICAL + ENTRY_SIZE) + 1;
    if (rewritten == NULL) {
        return NULL;
    }
    rewritten->size_max = size_max;
    if (lru_init(&rewritten->entries, SHA256_SIZE, sizeof(struct rewritten_entry),
                 capacity < LRU_NONE ? (uint32_t)capacity : LRU_NONE - 1) != ERR_OK) {
        lru_done(&rewritten->entries);
        free(rewritten);
        return NULL;
    }
    pthread_mutex_init(&rewritten->lock, NULL);
    return rewritten;
}

static size_t rewritten_entry_size(const struct rewritten_entry *entry) {
    return entry->size + ENTRY_SIZE;
}

static void rewritten_drop_oldest(struct rewritten *rewritten) {
    uint8_t key[SHA256_SIZE];
    memcpy(key, lru_oldest(&rewritten->entries), sizeof key);
    struct rewritten_entry *entry = lru_find(&rewritten->entries, key);
    rewritten->stat.size -= rewritten_entry_size(entry);
    free(entry->bytes);
    lru_remove(&rewritten->entries, key);
}

void rewritten_free(struct rewritten *rewritten) {
    if (rewritten == NULL) {
        return;
    }
    while (lru_count(&rewritten->entries) > 0) {
        rewritten_drop_oldest(rewritten);
    }
    lru_done(&rewritten->entries);
    pthread_mutex_destroy(&rewritten->lock);
    free(rewritten);
}

bool rewritten_find(struct rewritten *rewritten, const uint8_t key[SHA256_SIZE],
                    uint8_t note[PARSE_NOTE_SIZE_MAX], size_t *ret_note_size, struct scratch *ret_document) {
    pthread_mutex_lock(&rewritten->lock);
    const struct rewritten_entry *entry = lru_find(&rewritten->entries, key);
    bool is_found = entry != NULL;
    if (is_found) {
        struct bytes document = bytes_of(entry->bytes + entry->note_size, entry->size - entry->note_size);
        memcpy(note, entry->bytes, entry->note_size);
        *ret_note_size = entry->note_size;
        is_found = scratch_put(ret_document, document) == ERR_OK;
    }
    rewritten->stat.asked_count++;
    rewritten->stat.found_count += is_found;
    pthread_mutex_unlock(&rewritten->lock);
    if (entry != NULL && !is_found) { /* no memory for the copy: the parser may still make it */
        scratch_clear(ret_document);
    }
    return is_found;
}

/* The lock is held. */
static void rewritten_enter(struct rewritten *rewritten, const uint8_t key[SHA256_SIZE],
                            const struct rewritten_entry *entry) {
    size_t size = rewritten_entry_size(entry);
    while (lru_count(&rewritten->entries) > 0 &&
           (rewritten->stat.size + size > rewritten->size_max || lru_next_out(&rewritten->entries) != NULL)) {
        rewritten_drop_oldest(rewritten);
    }
    *(struct rewritten_entry *)lru_add(&rewritten->entries, key) = *entry;
    rewritten->stat.size += size;
}

void rewritten_keep(struct rewritten *rewritten, const uint8_t key[SHA256_SIZE], struct bytes note,
                    struct bytes document) {
    struct rewritten_entry entry = {.note_size = note.size, .size = note.size + document.size};
    if (note.size > PARSE_NOTE_SIZE_MAX || document.size > REWRITTEN_DOCUMENT_SIZE_MAX ||
        rewritten_entry_size(&entry) > rewritten->size_max ||
        (entry.bytes = malloc(entry.size + 1)) == NULL) {
        return;
    }
    memcpy(entry.bytes, note.data, note.size);
    if (document.size > 0) {
        memcpy(entry.bytes + note.size, document.data, document.size);
    }
    pthread_mutex_lock(&rewritten->lock);
    bool is_new = lru_find(&rewritten->entries, key) == NULL; /* another thread may have been faster */
    if (is_new) {
        rewritten_enter(rewritten, key, &entry);
    }
    pthread_mutex_unlock(&rewritten->lock);
    if (!is_new) {
        free(entry.bytes);
    }
}

void rewritten_stat(struct rewritten *rewritten, struct rewritten_stat *ret_stat) {
    pthread_mutex_lock(&rewritten->lock);
    *ret_stat = rewritten->stat;
    ret_stat->count = lru_count(&rewritten->entries);
    pthread_mutex_unlock(&rewritten->lock);
}
