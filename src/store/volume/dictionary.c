#define ZDICT_STATIC_LINKING_ONLY /* training with given parameters, instead of a search for them */

#include "store/volume/dictionary.h"

#include <zdict.h>

static enum dictionary_state state_of(const struct dictionary *dictionary) {
    return atomic_load_explicit(&dictionary->state, memory_order_acquire);
}

static void enter(struct dictionary *dictionary, enum dictionary_state state) {
    atomic_store_explicit(&dictionary->state, state, memory_order_release);
}

void dictionary_init(struct dictionary *dictionary, bool is_wanted) {
    *dictionary = (struct dictionary){0};
    pthread_mutex_init(&dictionary->lock, NULL);
    buf_init(&dictionary->samples, DICTIONARY_SAMPLES_SIZE);
    buf_init(&dictionary->result, DICTIONARY_SIZE);
    enter(dictionary, is_wanted ? DICTIONARY_COLLECTING : DICTIONARY_TAKEN);
}

void dictionary_done(struct dictionary *dictionary) {
    task_stop(&dictionary->trainer);
    buf_done(&dictionary->samples);
    buf_done(&dictionary->result);
    pthread_mutex_destroy(&dictionary->lock);
}

static bool is_full(const struct dictionary *dictionary) {
    return dictionary->samples.size + DICTIONARY_SAMPLE_SIZE_MAX > DICTIONARY_SAMPLES_SIZE ||
           dictionary->samples_count == DICTIONARY_SAMPLES_COUNT_MAX;
}

void dictionary_offer(struct dictionary *dictionary, const struct bytes *parts, size_t parts_count) {
    if (state_of(dictionary) != DICTIONARY_COLLECTING) {
        return;
    }
    pthread_mutex_lock(&dictionary->lock);
    size_t before = dictionary->samples.size;
    bool is_collecting = state_of(dictionary) == DICTIONARY_COLLECTING; /* nobody was faster */
    size_t left = is_collecting ? DICTIONARY_SAMPLE_SIZE_MAX : 0;
    for (size_t i = 0; i < parts_count && left > 0; i++) {
        size_t size = parts[i].size < left ? parts[i].size : left;
        buf_put(&dictionary->samples, bytes_slice(parts[i], 0, size));
        left -= size;
    }
    if (is_collecting && dictionary->samples.size > before) {
        dictionary->sizes[dictionary->samples_count++] = dictionary->samples.size - before;
    }
    if (is_collecting && is_full(dictionary)) {
        enter(dictionary, DICTIONARY_FULL); /* from here on nobody adds any more */
    }
    pthread_mutex_unlock(&dictionary->lock);
}

/*
 * ZDICT_trainFromBuffer() tries 40 pairs of k and d and takes four times as long; on pages these gave the
 * smaller records (docs/benchmarks.md).
 */
static uint64_t dictionary_train(void *context) {
    struct dictionary *dictionary = context;
    ZDICT_fastCover_params_t parameters = {.k = 512, .d = 8, .f = 20, .accel = 4, .steps = 1, .nbThreads = 1};
    parameters.splitPoint = 1.0;
    parameters.zParams.compressionLevel = 3;
    struct buf *result = &dictionary->result;
    if (buf_reserve(result, DICTIONARY_SIZE) == ERR_OK) {
        size_t size =
            ZDICT_trainFromBuffer_fastCover(result->data, DICTIONARY_SIZE, dictionary->samples.data,
                                            dictionary->sizes, dictionary->samples_count, parameters);
        result->size = ZDICT_isError(size) ? 0 : size;
    }
    buf_done(&dictionary->samples);
    enter(dictionary, DICTIONARY_READY);
    return TASK_FOR_EVER_US; /* once */
}

static void start_training(struct dictionary *dictionary) {
    enter(dictionary, DICTIONARY_TRAINING);
    if (task_start(&dictionary->trainer, "dictionary", PRIORITY_USUAL, dictionary_train, dictionary) !=
        ERR_OK) {
        enter(dictionary, DICTIONARY_FULL); /* try again with the next group */
    }
}

bool dictionary_take(struct dictionary *dictionary, struct buf *out) {
    switch (state_of(dictionary)) {
    case DICTIONARY_FULL:
        start_training(dictionary);
        return false;
    case DICTIONARY_READY:
        break;
    default:
        return false;
    }
    task_stop(&dictionary->trainer);
    enter(dictionary, DICTIONARY_TAKEN);
    struct bytes result = buf_bytes(&dictionary->result);
    bool is_taken = result.size > 0 && buf_put(out, result) == ERR_OK;
    buf_done(&dictionary->result);
    return is_taken;
}
