/*
 * keyset_digests - which keys of a set (keyset.h) have a digest.
 *
 *      by place    'd' digest[16] place[16]             time[8]    no key of both is before that time
 *      by key      'd' digest[16] place[16] time[8]     nothing
 *
 * By place if each URL has a place of its own. Then most keys are those of visits that found nothing new, and
 * all of a page share one row; the keys of the place, which are few, are walked for the digest. If a place is
 * that of a whole host, each key has a row.
 *
 * A time may be too early, but never too late: only what a walk costs depends on it. One thread.
 */
#ifndef MNEMON_STORE_KEYSET_KEYSET_DIGESTS_H
#define MNEMON_STORE_KEYSET_KEYSET_DIGESTS_H

#include "store/keyset/keyset_row.h"

struct keyset_digests {
    struct kv *kv;
    bool is_by_place;
};

/* A key that is put with the batch. Of several for one batch the last is put first. */
enum err keyset_digests_put(const struct keyset_digests *digests, const struct ringkey *key,
                            struct kv_batch *batch) MUST_CHECK;

/* A key that is removed with the batch. When that was written, keyset_digests_settle() is due. */
void keyset_digests_remove(const struct keyset_digests *digests, const struct ringkey *key,
                           struct kv_batch *batch);

/* A key that is no longer there: what other keys need of its row is put into the next batch. */
enum err keyset_digests_settle(const struct keyset_digests *digests, const struct ringkey *key,
                               struct kv_batch *batch) MUST_CHECK;

/* The key with this digest that follows the one given; NULL: the first. ERR_NOT_FOUND, ERR_CORRUPT. */
enum err keyset_digests_find(const struct keyset_digests *digests, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                             const struct ringkey *behind, struct ringkey *ret_key) MUST_CHECK;

/* Rows by key become rows by place, by one pass. If it is cut off, another one finishes it. */
enum err keyset_digests_convert(const struct keyset_digests *digests, struct kv_batch *batch) MUST_CHECK;

#endif
