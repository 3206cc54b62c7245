#include "node/reading/ring_reader_listing.h"

#include <stdlib.h>

enum { MEMBERS_COUNT_FIRST = 4 };
static const uint64_t STALE_US = UINT64_C(600) * 1000000;

/* ---- one ---- */

static void listing_free(struct ring_reader_listing *listing) {
    free(listing->members);
    buf_done(&listing->text);
    free(listing);
}

struct ring_reader_listing *ring_reader_listing_new(const uint8_t hash[RING_READER_LISTING_HASH_SIZE]) {
    struct ring_reader_listing *listing = calloc(1, sizeof *listing);
    if (listing != NULL) {
        memcpy(listing->hash, hash, sizeof listing->hash);
        buf_init(&listing->text, RING_READER_LISTING_SIZE_MAX);
        listing->users_count = 1;
    }
    return listing;
}

static bool reserve(struct ring_reader_listing *listing) {
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
    if (!reserve(listing)) {
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

static size_t size_of(const struct ring_reader_listing *listing) {
    return sizeof *listing + listing->text.capacity + 2 * listing->count * sizeof listing->members[0];
}

/* ---- the table ---- */

void ring_reader_listings_init(struct ring_reader_listings *listings, uint64_t seed) {
    *listings = (struct ring_reader_listings){0};
    map_init(&listings->by_hash, RING_READER_LISTING_HASH_SIZE, sizeof(struct ring_reader_listing *),
             RING_READER_LISTINGS_MAX, seed);
    pthread_mutex_init(&listings->lock, NULL);
}

void ring_reader_listings_done(struct ring_reader_listings *listings) {
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(&listings->by_hash, &cursor, &key, &value)) {
        listing_free(*(struct ring_reader_listing **)value);
    }
    map_done(&listings->by_hash);
    pthread_mutex_destroy(&listings->lock);
}

static void let_go(struct ring_reader_listing *listing) {
    listing->users_count--;
    if (listing->users_count == 0) {
        listing_free(listing);
    }
}

static void drop(struct ring_reader_listings *listings, struct ring_reader_listing *listing) {
    listings->size -= size_of(listing);
    map_remove(&listings->by_hash, bytes_of(listing->hash, sizeof listing->hash));
    let_go(listing);
}

static struct ring_reader_listing *find(struct ring_reader_listings *listings,
                                        const uint8_t hash[RING_READER_LISTING_HASH_SIZE]) {
    struct ring_reader_listing **position =
        map_get(&listings->by_hash, bytes_of(hash, RING_READER_LISTING_HASH_SIZE));
    return position != NULL ? *position : NULL;
}

static void drop_oldest(struct ring_reader_listings *listings) {
    struct ring_reader_listing *oldest = NULL;
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(&listings->by_hash, &cursor, &key, &value)) {
        struct ring_reader_listing *listing = *(struct ring_reader_listing **)value;
        oldest = oldest == NULL || listing->used_at < oldest->used_at ? listing : oldest;
    }
    if (oldest != NULL) {
        drop(listings, oldest);
    }
}

void ring_reader_listings_put(struct ring_reader_listings *listings, struct ring_reader_listing *listing,
                              uint64_t fresh_until_us) {
    size_t size = size_of(listing);
    pthread_mutex_lock(&listings->lock);
    struct ring_reader_listing *old = find(listings, listing->hash);
    if (old != NULL) { /* may be the same: its maker uses it still */
        drop(listings, old);
    }
    while (listings->by_hash.count > 0 && (listings->by_hash.count == RING_READER_LISTINGS_MAX ||
                                           listings->size + size > RING_READER_LISTINGS_SIZE_MAX)) {
        drop_oldest(listings);
    }
    if (map_reserve(&listings->by_hash, listings->by_hash.count + 1) == ERR_OK) {
        *(struct ring_reader_listing **)map_put(&listings->by_hash,
                                                bytes_of(listing->hash, sizeof listing->hash)) = listing;
        listings->size += size;
        listing->users_count++;
        listing->used_at = ++listings->uses_count;
        listing->fresh_until_us = fresh_until_us;
    }
    pthread_mutex_unlock(&listings->lock);
}

struct ring_reader_listing *ring_reader_listings_take(struct ring_reader_listings *listings,
                                                      const uint8_t hash[RING_READER_LISTING_HASH_SIZE],
                                                      uint64_t now_us, bool may_be_stale) {
    pthread_mutex_lock(&listings->lock);
    struct ring_reader_listing *listing = find(listings, hash);
    bool is_good =
        listing != NULL && (now_us < listing->fresh_until_us ||
                            (may_be_stale && listing->count > 0 && now_us < listing->made_at_us + STALE_US));
    if (is_good) {
        listing->users_count++;
        listing->used_at = ++listings->uses_count;
    }
    pthread_mutex_unlock(&listings->lock);
    return is_good ? listing : NULL;
}

void ring_reader_listings_prolong(struct ring_reader_listings *listings, struct ring_reader_listing *listing,
                                  uint64_t fresh_until_us) {
    pthread_mutex_lock(&listings->lock);
    listing->fresh_until_us = fresh_until_us;
    pthread_mutex_unlock(&listings->lock);
}

void ring_reader_listings_forget(struct ring_reader_listings *listings,
                                 const uint8_t hash[RING_READER_LISTING_HASH_SIZE]) {
    pthread_mutex_lock(&listings->lock);
    struct ring_reader_listing *listing = find(listings, hash);
    if (listing != NULL) {
        drop(listings, listing);
    }
    pthread_mutex_unlock(&listings->lock);
}

void ring_reader_listings_release(struct ring_reader_listings *listings,
                                  struct ring_reader_listing *listing) {
    pthread_mutex_lock(&listings->lock);
    let_go(listing);
    pthread_mutex_unlock(&listings->lock);
}
