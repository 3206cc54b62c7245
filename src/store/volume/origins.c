#include "store/volume/origins.h"

#include <sys/mman.h>

struct origins *origins_new(void) {
    struct origins *origins =
        mmap(NULL, sizeof *origins, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (origins == MAP_FAILED) {
        return NULL;
    }
    pthread_mutex_init(&origins->lock, NULL);
    return origins;
}

void origins_free(struct origins *origins) {
    if (origins != NULL) {
        pthread_mutex_destroy(&origins->lock);
        munmap(origins, sizeof *origins);
    }
}

/* Neighbours in a segment come into different sets. */
static struct origin *set_of(struct origins *origins, const struct location *location) {
    uint64_t mixed = (location->offset ^ (uint64_t)location->segment << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return origins->sets[(mixed >> 32) % ORIGINS_SETS_COUNT];
}

static bool is_of(const struct origin *origin, const struct location *location) {
    return origin->segment == location->segment && origin->offset == location->offset;
}

/* The one of this place, else the oldest. */
static struct origin *choose(struct origin *set, const struct location *location) {
    struct origin *chosen = &set[0];
    for (size_t i = 0; i < ORIGINS_WAYS; i++) {
        if (is_of(&set[i], location)) {
            return &set[i];
        }
        chosen = set[i].end < chosen->end ? &set[i] : chosen;
    }
    return chosen;
}

/* Where in the ring so many bytes go, in one piece. */
static uint64_t reserve_text(struct origins *origins, size_t size) {
    size_t left = ORIGINS_TEXT_SIZE - (size_t)(origins->text_end % ORIGINS_TEXT_SIZE);
    uint64_t start = origins->text_end + (left < size ? left : 0);
    origins->text_end = start + size;
    return start;
}

void origins_add(struct origins *origins, const struct location *location, struct bytes uri) {
    if (uri.size == 0 || uri.size > ORIGINS_URI_SIZE_MAX) {
        return;
    }
    pthread_mutex_lock(&origins->lock);
    uint64_t start = reserve_text(origins, uri.size);
    memcpy(origins->text + start % ORIGINS_TEXT_SIZE, uri.data, uri.size);
    *choose(set_of(origins, location), location) = (struct origin){
        .offset = location->offset,
        .segment = location->segment,
        .size = (uint32_t)uri.size,
        .end = origins->text_end,
    };
    pthread_mutex_unlock(&origins->lock);
}

/* With the lock. NULL if it is not there, or its text was written over. */
static const struct origin *find(struct origins *origins, const struct location *location) {
    const struct origin *set = set_of(origins, location);
    for (size_t i = 0; i < ORIGINS_WAYS; i++) {
        if (is_of(&set[i], location) && set[i].size > 0) {
            uint64_t start = set[i].end - set[i].size;
            return origins->text_end - start <= ORIGINS_TEXT_SIZE ? &set[i] : NULL;
        }
    }
    return NULL;
}

bool origins_find(struct origins *origins, const struct location *location, struct buf *uri) {
    buf_clear(uri);
    pthread_mutex_lock(&origins->lock);
    const struct origin *found = find(origins, location);
    if (found != NULL) {
        uint64_t start = found->end - found->size;
        buf_put(uri, bytes_of(origins->text + start % ORIGINS_TEXT_SIZE, found->size));
    }
    pthread_mutex_unlock(&origins->lock);
    return uri->size > 0;
}
