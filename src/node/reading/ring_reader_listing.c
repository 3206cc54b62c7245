#include "node/reading/ring_reader_listing.h"

#include <stdlib.h>

enum { MEMBERS_COUNT_FIRST = 4 };
static const uint64_t STALE_US = UINT64_C(600) * 1000000;

void ring_reader_listing_free(void *item) {
    struct ring_reader_listing *listing = item;
    free(listing->members);
    buf_done(&listing->text);
    free(listing);
}

struct ring_reader_listing *ring_reader_listing_new(const uint8_t hash[RING_READER_CACHE_KEY_SIZE]) {
    struct ring_reader_listing *listing = calloc(1, sizeof *listing);
    if (listing != NULL) {
        memcpy(listing->cached.key, hash, sizeof listing->cached.key);
        buf_init(&listing->text, RING_READER_LISTING_SIZE_MAX);
        listing->cached.users_count = 1;
    }
    return listing;
}

static bool listing_reserve(struct ring_reader_listing *listing) {
    bool is_full = listing->count >= MEMBERS_COUNT_FIRST && (listing->count & (listing->count - 1)) == 0;
    if (listing->members != NULL && !is_full) {
        return true;
    }
    size_t room = listing->count < MEMBERS_COUNT_FIRST ? MEMBERS_COUNT_FIRST : 2 * listing->count;
    struct ring_reader_member *members = realloc(listing->members, room * sizeof *members);
    if (members != NULL) {
        listing->members = members;
    }
    return members != NULL;
}

enum err ring_reader_listing_add(struct ring_reader_listing *listing,
                                 const struct ring_reader_member *member) {
    if (listing->count == RING_READER_LISTING_COUNT_MAX) {
        return ERR_LIMIT;
    }
    if (!listing_reserve(listing)) {
        return ERR_MEMORY;
    }
    listing->members[listing->count++] = *member;
    buf_put(&listing->text, member->capture.surt);
    buf_put(&listing->text, member->capture.url);
    return buf_put(&listing->text, member->capture.mime);
}

void ring_reader_listing_finish(struct ring_reader_listing *listing) {
    struct bytes text = buf_bytes(&listing->text);
    size_t at = 0;
    for (size_t i = 0; i < listing->count; i++) {
        struct capture *capture = &listing->members[i].capture;
        struct bytes *slices[] = {&capture->surt, &capture->url, &capture->mime};
        for (size_t j = 0; j < 3; j++) {
            *slices[j] = bytes_slice(text, at, at + slices[j]->size);
            at += slices[j]->size;
        }
    }
}

/* ---- in the cache ---- */

void ring_reader_listing_put(struct ring_reader_cache *cache, struct ring_reader_listing *listing,
                             uint64_t fresh_until_us) {
    listing->fresh_until_us = fresh_until_us;
    listing->cached.size =
        sizeof *listing + listing->text.capacity + 2 * listing->count * sizeof listing->members[0];
    ring_reader_cache_put(cache, listing);
}

struct ring_reader_listing *ring_reader_listing_take(struct ring_reader_cache *cache,
                                                     const uint8_t hash[RING_READER_CACHE_KEY_SIZE],
                                                     uint64_t now_us, bool may_be_stale) {
    struct ring_reader_listing *listing = ring_reader_cache_take(cache, hash);
    if (listing == NULL) {
        return NULL;
    }
    bool is_good = now_us < listing->fresh_until_us ||
                   (may_be_stale && listing->count > 0 && now_us < listing->made_at_us + STALE_US);
    if (!is_good) {
        ring_reader_cache_release(cache, listing);
    }
    return is_good ? listing : NULL;
}
