#include "node/reading/ring_reader_listed.h"

#include <stdlib.h>

enum err ring_reader_listed_init(struct ring_reader_listed *listed, uint64_t seed) {
    *listed = (struct ring_reader_listed){0};
    listed->captures = calloc(RING_READER_LISTED_MAX, sizeof *listed->captures);
    map_init(&listed->by_number, sizeof(uint64_t), sizeof(uint32_t), RING_READER_LISTED_MAX, seed);
    map_init(&listed->by_digest, KEY_DIGEST_SIZE, sizeof(uint64_t), RING_READER_LISTED_MAX, seed);
    pthread_mutex_init(&listed->lock, NULL);
    return listed->captures != NULL ? ERR_OK : ERR_MEMORY;
}

void ring_reader_listed_done(struct ring_reader_listed *listed) {
    for (size_t i = 0; i < listed->count; i++) {
        free(listed->captures[(listed->first + i) % RING_READER_LISTED_MAX].surt);
    }
    free(listed->captures);
    map_done(&listed->by_number);
    map_done(&listed->by_digest);
    pthread_mutex_destroy(&listed->lock);
}

/* The top bit is left free, for programs that print it as a signed number. */
uint64_t ring_reader_number(struct sha256 *sha256, const struct ringkey *key) {
    return ringkey_sum_of(sha256, key).low >> 1;
}

static struct bytes number_key(const uint64_t *number) {
    return bytes_of(number, sizeof *number);
}

static void drop_oldest(struct ring_reader_listed *listed) {
    struct ring_reader_capture *oldest = &listed->captures[listed->first];
    struct bytes digest = bytes_of(oldest->digest, KEY_DIGEST_SIZE);
    const uint64_t *number = map_get(&listed->by_digest, digest);
    if (number != NULL && *number == oldest->number) {
        map_remove(&listed->by_digest, digest);
    }
    map_remove(&listed->by_number, number_key(&oldest->number));
    listed->size -= oldest->surt_size;
    free(oldest->surt);
    oldest->surt = NULL;
    listed->first = (listed->first + 1) % RING_READER_LISTED_MAX;
    listed->count--;
}

/* What the server said was not modified leads to no document, and so does what nobody gave: any other is the
 * better one to be found. */
static bool is_bare(const struct ring_reader_capture *capture) {
    return capture->is_passed_over || (capture->flags & CAPTURE_REVISIT && capture->status == 304);
}

static enum err listed_add(struct ring_reader_listed *listed, uint64_t number, const struct ringkey *key,
                           const struct capture *capture, const struct peer *from, uint64_t listed_at_us,
                           struct ring_reader_capture **ret_listed) {
    uint8_t *surt = malloc(capture->surt.size + 1);
    while (listed->count > 0 && (listed->count == RING_READER_LISTED_MAX ||
                                 listed->size + capture->surt.size > RING_READER_LISTED_SIZE_MAX)) {
        drop_oldest(listed);
    }
    if (surt == NULL || map_reserve(&listed->by_number, listed->count + 1) != ERR_OK ||
        map_reserve(&listed->by_digest, listed->count + 1) != ERR_OK) {
        free(surt);
        return ERR_MEMORY;
    }
    uint32_t index = (uint32_t)((listed->first + listed->count++) % RING_READER_LISTED_MAX);
    struct ring_reader_capture *out = &listed->captures[index];
    *out = (struct ring_reader_capture){
        .number = number,
        .key = *key,
        .from = *from,
        .listed_at_us = listed_at_us,
        .length = capture->location.length,
        .status = capture->status,
        .flags = capture->flags,
        .surt_size = (uint32_t)capture->surt.size,
        .surt = surt,
    };
    memcpy(out->digest, capture->digest, KEY_DIGEST_SIZE);
    memcpy(surt, capture->surt.data, capture->surt.size);
    listed->size += capture->surt.size;
    *(uint32_t *)map_put(&listed->by_number, number_key(&number)) = index;
    *ret_listed = out;
    return ERR_OK;
}

static struct ring_reader_capture *listed_find(struct ring_reader_listed *listed, uint64_t number) {
    const uint32_t *index = map_get(&listed->by_number, number_key(&number));
    return index != NULL ? &listed->captures[*index] : NULL;
}

static void add_digest(struct ring_reader_listed *listed, const struct ring_reader_capture *capture) {
    struct bytes digest = bytes_of(capture->digest, KEY_DIGEST_SIZE);
    const uint64_t *number = map_get(&listed->by_digest, digest);
    const struct ring_reader_capture *other = number != NULL ? listed_find(listed, *number) : NULL;
    if (other == NULL || is_bare(other) || !is_bare(capture)) {
        *(uint64_t *)map_put(&listed->by_digest, digest) = capture->number;
    }
}

enum err ring_reader_listed_put(struct ring_reader_listed *listed, uint64_t number, const struct ringkey *key,
                                const struct capture *capture, const struct peer *from,
                                uint64_t listed_at_us) {
    pthread_mutex_lock(&listed->lock);
    struct ring_reader_capture *found = listed_find(listed, number);
    enum err err = ERR_OK;
    if (found != NULL) {
        found->from = *from;
        found->listed_at_us = listed_at_us;
    } else {
        err = listed_add(listed, number, key, capture, from, listed_at_us, &found);
    }
    if (err == ERR_OK) {
        add_digest(listed, found);
    }
    pthread_mutex_unlock(&listed->lock);
    return err;
}

bool ring_reader_listed_find(struct ring_reader_listed *listed, uint64_t number, struct buf *surt,
                             struct ring_reader_capture *ret_capture) {
    pthread_mutex_lock(&listed->lock);
    const struct ring_reader_capture *capture = listed_find(listed, number);
    bool is_found = false;
    if (capture != NULL) {
        buf_clear(surt);
        is_found = buf_put(surt, bytes_of(capture->surt, capture->surt_size)) == ERR_OK;
        *ret_capture = *capture;
        ret_capture->surt = NULL;
    }
    pthread_mutex_unlock(&listed->lock);
    return is_found;
}

void ring_reader_listed_pass_over(struct ring_reader_listed *listed, uint64_t number) {
    pthread_mutex_lock(&listed->lock);
    struct ring_reader_capture *capture = listed_find(listed, number);
    if (capture != NULL) {
        capture->is_passed_over = true;
    }
    pthread_mutex_unlock(&listed->lock);
}

bool ring_reader_listed_find_digest(struct ring_reader_listed *listed, const uint8_t digest[KEY_DIGEST_SIZE],
                                    uint64_t *ret_number, uint32_t *ret_length) {
    pthread_mutex_lock(&listed->lock);
    const uint64_t *number = map_get(&listed->by_digest, bytes_of(digest, KEY_DIGEST_SIZE));
    const struct ring_reader_capture *capture = number != NULL ? listed_find(listed, *number) : NULL;
    if (capture != NULL) {
        *ret_number = capture->number;
        *ret_length = capture->length;
    }
    pthread_mutex_unlock(&listed->lock);
    return capture != NULL;
}
