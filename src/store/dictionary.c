#include "store/dictionary.h"

#include <zdict.h>

void dictionary_init(struct dictionary *dictionary, bool is_wanted) {
    *dictionary = (struct dictionary){0};
    pthread_mutex_init(&dictionary->lock, NULL);
    buf_init(&dictionary->samples, DICTIONARY_SAMPLES_SIZE);
    dictionary->is_wanted = is_wanted;
}

void dictionary_done(struct dictionary *dictionary) {
    buf_done(&dictionary->samples);
    pthread_mutex_destroy(&dictionary->lock);
}

static bool is_full(const struct dictionary *dictionary) {
    return dictionary->samples.size + DICTIONARY_SAMPLE_SIZE_MAX > DICTIONARY_SAMPLES_SIZE ||
           dictionary->samples_count == DICTIONARY_SAMPLES_COUNT_MAX;
}

void dictionary_offer(struct dictionary *dictionary, const struct bytes *parts, size_t parts_count) {
    if (!atomic_load_explicit(&dictionary->is_wanted, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&dictionary->lock);
    size_t before = dictionary->samples.size;
    size_t left = is_full(dictionary) ? 0 : DICTIONARY_SAMPLE_SIZE_MAX;
    for (size_t i = 0; i < parts_count && left > 0; i++) {
        size_t size = parts[i].size < left ? parts[i].size : left;
        buf_put(&dictionary->samples, bytes_slice(parts[i], 0, size));
        left -= size;
    }
    if (dictionary->samples.size > before) {
        dictionary->sizes[dictionary->samples_count++] = dictionary->samples.size - before;
    }
    pthread_mutex_unlock(&dictionary->lock);
}

bool dictionary_train(struct dictionary *dictionary, struct buf *out) {
    if (!atomic_load_explicit(&dictionary->is_wanted, memory_order_relaxed)) {
        return false;
    }
    pthread_mutex_lock(&dictionary->lock);
    bool has_enough = is_full(dictionary);
    pthread_mutex_unlock(&dictionary->lock);
    if (!has_enough || buf_reserve(out, DICTIONARY_SIZE) != ERR_OK) {
        return false;
    }
    /* Full: nobody adds any more, so the samples can be read without the lock. */
    size_t size = ZDICT_trainFromBuffer(out->data + out->size, DICTIONARY_SIZE, dictionary->samples.data,
                                        dictionary->sizes, dictionary->samples_count);
    atomic_store_explicit(&dictionary->is_wanted, false, memory_order_relaxed);
    pthread_mutex_lock(&dictionary->lock);
    buf_done(&dictionary->samples);
    dictionary->samples_count = DICTIONARY_SAMPLES_COUNT_MAX; /* an offer under way finds it full */
    pthread_mutex_unlock(&dictionary->lock);
    if (ZDICT_isError(size)) {
        return false;
    }
    out->size += size;
    return true;
}
