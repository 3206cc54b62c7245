#define ZDICT_STATIC_LINKING_ONLY /* training with given parameters, instead of a search for them */

#include "store/volume/dictionary.h"

#include <stdio.h>
#include <zdict.h>

enum {
    VISITS_SAMPLES_SIZE_MAX = DICTIONARY_VISITS_COUNT * 2048,
    VISITS_TEXTS = 5,      /* in the dictionary itself: one of each kind of server */
    HEADER_ROOM = 1 << 10, /* of a dictionary: its id and codes */
};

static enum dictionary_state state_of(const struct dictionary *dictionary) {
    return atomic_load_explicit(&dictionary->state, memory_order_acquire);
}

static void enter(struct dictionary *dictionary, enum dictionary_state state) {
    atomic_store_explicit(&dictionary->state, state, memory_order_release);
}

void dictionary_init(struct dictionary *dictionary, bool is_wanted) {
    *dictionary = (struct dictionary){0};
    pthread_mutex_init(&dictionary->lock, NULL);
    buf_init(&dictionary->samples, DICTIONARY_SAMPLES_SIZE + VISITS_SAMPLES_SIZE_MAX);
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
 * Unchanged visits, too, which come later. Their text takes the end of the trained dictionary, in place of
 * its least common part, the start; and they count among the samples by which its codes are chosen. Without
 * memory it stays as it was trained.
 */
static void dictionary_add_visits(struct dictionary *dictionary) {
    struct buf *samples = &dictionary->samples;
    struct bytes trained = buf_bytes(&dictionary->result);
    unsigned count = dictionary->samples_count;
    struct buf content;
    struct buf result;
    if (trained.size == 0) {
        return;
    }
    buf_init(&content, DICTIONARY_SIZE);
    buf_init(&result, DICTIONARY_SIZE);
    struct bytes fetcher = dictionary_visits_fetcher(buf_bytes(samples));
    char key[64];
    snprintf(key, sizeof key, "%.*s", BYTES_ARG(fetcher)); /* the samples move */
    fetcher = bytes_of_string(key);
    struct buf visits;
    buf_init(&visits, DICTIONARY_VISITS_SIZE_MAX + 2048);
    enum err err = dictionary_visits_put(&visits, VISITS_TEXTS, fetcher, NULL);
    struct bytes body = bytes_skip(trained, ZDICT_getDictHeaderSize(trained.data, trained.size));
    size_t room = DICTIONARY_SIZE - HEADER_ROOM - visits.size;
    err = err == ERR_OK ? buf_put(&content, bytes_skip(body, body.size > room ? body.size - room : 0)) : err;
    err = err == ERR_OK ? buf_put(&content, buf_bytes(&visits)) : err;
    err = err == ERR_OK
              ? dictionary_visits_put(samples, DICTIONARY_VISITS_COUNT, fetcher, &dictionary->sizes[count])
              : err;
    err = err == ERR_OK ? buf_reserve(&result, DICTIONARY_SIZE) : err;
    if (err == ERR_OK) {
        ZDICT_params_t parameters = {.compressionLevel = 3};
        size_t size =
            ZDICT_finalizeDictionary(result.data, DICTIONARY_SIZE, content.data, content.size, samples->data,
                                     dictionary->sizes, count + DICTIONARY_VISITS_COUNT, parameters);
        if (!ZDICT_isError(size)) {
            buf_clear(&dictionary->result);
            err = buf_put(&dictionary->result, bytes_of(result.data, size));
            ASSERT(err == ERR_OK); /* it has had that size before */
        }
    }
    buf_done(&visits);
    buf_done(&content);
    buf_done(&result);
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
    dictionary_add_visits(dictionary);
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
