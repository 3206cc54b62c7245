/* The list of keys, asked by others: which captures of a place, or of a digest, does this node have? */
#include "node/copies/copies_state.h"

enum { LAST_COUNT = 64, LAST_SLACK = 16 };

static struct ringkey_range range_of(const uint8_t place[RINGKEY_POSITION_SIZE], int64_t from_us,
                                     int64_t before_us) {
    static const uint8_t lowest[RINGKEY_DIGEST_SIZE];
    return (struct ringkey_range){
        .lower = ringkey_make(place, from_us, lowest),
        .upper = ringkey_make(place, before_us, lowest),
        .has_upper = true,
    };
}

enum err copies_find_first(struct copies *copies, const uint8_t place[RINGKEY_POSITION_SIZE], int64_t from_us,
                           struct ringkey *ret_key) {
    struct ringkey_range range = range_of(place, from_us, INT64_MAX);
    size_t count = 0;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = from_us < INT64_MAX ? keyset_list(copies->keyset, &range, ret_key, 1, &count) : ERR_OK;
    pthread_mutex_unlock(&copies->keys_lock);
    return err == ERR_OK && count == 0 ? ERR_NOT_FOUND : err;
}

/* Lists begin at their lower end: where there are many, it is moved up first. */
static enum err find_last(struct keyset *keyset, struct ringkey_range *range, struct ringkey *ret_key) {
    struct ringkey keys[LAST_COUNT];
    struct ringkey_sum sum;
    size_t count = 0;
    enum err err = keyset_sum(keyset, range, &sum);
    if (err == ERR_OK && sum.count > LAST_COUNT - LAST_SLACK) {
        err = keyset_cut(keyset, range, sum.count - LAST_COUNT / 2, LAST_SLACK, &range->lower);
    }
    err = err == ERR_OK ? keyset_list(keyset, range, keys, LAST_COUNT, &count) : err;
    if (err != ERR_OK || count == 0) {
        return err == ERR_OK ? ERR_NOT_FOUND : err;
    }
    *ret_key = keys[count - 1];
    return ERR_OK;
}

enum err copies_find_last(struct copies *copies, const uint8_t place[RINGKEY_POSITION_SIZE],
                          int64_t before_us, struct ringkey *ret_key) {
    struct ringkey_range range = range_of(place, INT64_MIN, before_us);
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = before_us > INT64_MIN ? find_last(copies->keyset, &range, ret_key) : ERR_NOT_FOUND;
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

enum err copies_find_digest(struct copies *copies, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                            struct ringkey *ret_key) {
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_find_digest(copies->keyset, digest, NULL, ret_key);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}
