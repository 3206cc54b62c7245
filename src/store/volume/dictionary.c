#define ZDICT_STATIC_LINKING_ONLY /* training with given parameters, instead of a search for them */

#include "store/volume/dictionary.h"

#include <stdio.h>
#include <zdict.h>

#include "warc/zdict.h"

/* Before the visits of a second dictionary. */
#define VISITS_MARK "\r\nMnemon-Dictionary: visits\r\n\r\n"

enum {
    VISITS_SAMPLES_SIZE_MAX = DICTIONARY_VISITS_COUNT * 2048,
    VISITS_TEXTS = 5,       /* in the dictionary itself: one of each kind of server */
    REAL_VISITS_TEXTS = 16, /* likewise of a second: more take more bits to refer to than they save */
    LEVEL = 3, /* codes for the level by which visits are packed, 19, save them 2 bytes and cost pages 44 */
    HEADER_ROOM = 1 << 10, /* of a dictionary: its id and codes */
};

static enum dictionary_state state_of(const struct dictionary *dictionary) {
    return atomic_load_explicit(&dictionary->state, memory_order_acquire);
}

static void enter(struct dictionary *dictionary, enum dictionary_state state) {
    atomic_store_explicit(&dictionary->state, state, memory_order_release);
}

/* With the lock, or before anybody else has the dictionary. */
static void dictionary_collect(struct dictionary *dictionary) {
    buf_done(&dictionary->samples);
    buf_init(&dictionary->samples, DICTIONARY_SAMPLES_SIZE + VISITS_SAMPLES_SIZE_MAX);
    dictionary->samples_count = 0;
    dictionary->others_count = 0;
    enter(dictionary, DICTIONARY_COLLECTING);
}

/* A second one, from visits and from the first. Without memory there is none. */
static void dictionary_collect_visits(struct dictionary *dictionary, struct bytes first) {
    buf_clear(&dictionary->first);
    dictionary->is_second = true;
    if (buf_put(&dictionary->first, first) == ERR_OK) {
        dictionary_collect(dictionary);
    } else {
        enter(dictionary, DICTIONARY_TAKEN);
    }
}

void dictionary_init(struct dictionary *dictionary, bool is_wanted, struct bytes present) {
    *dictionary = (struct dictionary){0};
    pthread_mutex_init(&dictionary->lock, NULL);
    buf_init(&dictionary->result, DICTIONARY_SIZE);
    buf_init(&dictionary->first, ZDICT_SIZE_MAX);
    if (!is_wanted || bytes_find(present, BYTES(VISITS_MARK)) < present.size) {
        enter(dictionary, DICTIONARY_TAKEN);
    } else if (present.size > 0) {
        dictionary_collect_visits(dictionary, present);
    } else {
        dictionary_collect(dictionary);
    }
}

void dictionary_done(struct dictionary *dictionary) {
    task_stop(&dictionary->trainer);
    buf_done(&dictionary->samples);
    buf_done(&dictionary->result);
    buf_done(&dictionary->first);
    pthread_mutex_destroy(&dictionary->lock);
}

static bool is_full(const struct dictionary *dictionary) {
    return dictionary->samples.size + DICTIONARY_SAMPLE_SIZE_MAX > DICTIONARY_SAMPLES_SIZE ||
           dictionary->samples_count == DICTIONARY_SAMPLES_COUNT_MAX;
}

static void dictionary_add_sample(struct dictionary *dictionary, const struct bytes *parts,
                                  size_t parts_count, size_t size_max) {
    size_t before = dictionary->samples.size;
    size_t left = size_max;
    for (size_t i = 0; i < parts_count && left > 0; i++) {
        size_t size = parts[i].size < left ? parts[i].size : left;
        buf_put(&dictionary->samples, bytes_slice(parts[i], 0, size));
        left -= size;
    }
    if (dictionary->samples.size > before) {
        dictionary->sizes[dictionary->samples_count++] = dictionary->samples.size - before;
    }
}

/*
 * Samples of a second one are what is stored in a row, so that its codes suit the mixture. If most of it is
 * no visits, it would make pages larger for little: wait for other times.
 */
static void dictionary_add_to_visits(struct dictionary *dictionary, const struct bytes *parts,
                                     size_t parts_count, enum dictionary_kind kind) {
    unsigned others = dictionary->others_count;
    unsigned sampled = others < DICTIONARY_OTHERS_MAX ? others : DICTIONARY_OTHERS_MAX;
    if (kind == DICTIONARY_VISIT || others < DICTIONARY_OTHERS_MAX) {
        dictionary_add_sample(dictionary, parts, parts_count, ZDICT_SMALL_SIZE_MAX);
    }
    dictionary->others_count += kind == DICTIONARY_PAGE;
    if (dictionary->samples.err != ERR_OK || dictionary->others_count >= DICTIONARY_VISITS_WANTED) {
        dictionary_collect(dictionary);
    } else if (dictionary->samples_count - sampled >= DICTIONARY_VISITS_WANTED && kind == DICTIONARY_VISIT) {
        enter(dictionary, DICTIONARY_FULL);
    }
}

void dictionary_offer(struct dictionary *dictionary, const struct bytes *parts, size_t parts_count,
                      enum dictionary_kind kind) {
    if (state_of(dictionary) != DICTIONARY_COLLECTING) {
        return;
    }
    pthread_mutex_lock(&dictionary->lock);
    bool is_collecting = state_of(dictionary) == DICTIONARY_COLLECTING; /* nobody was faster */
    if (is_collecting && dictionary->is_second) {
        dictionary_add_to_visits(dictionary, parts, parts_count, kind);
    } else if (is_collecting) {
        dictionary_add_sample(dictionary, parts, parts_count, DICTIONARY_SAMPLE_SIZE_MAX);
        if (is_full(dictionary)) {
            enter(dictionary, DICTIONARY_FULL); /* from here on nobody adds any more */
        }
    }
    pthread_mutex_unlock(&dictionary->lock);
}

/* What a dictionary says, without its codes. */
static struct bytes dictionary_text(struct bytes dictionary) {
    size_t size = dictionary.size > 0 ? ZDICT_getDictHeaderSize(dictionary.data, dictionary.size) : 0;
    return ZDICT_isError(size) ? dictionary : bytes_skip(dictionary, size);
}

/*
 * The content, with codes that suit the first samples, as the result. Of the text as much as there is room
 * for stays, from its end; visits come behind it, where they are the cheapest to name.
 */
static enum err dictionary_compose(struct dictionary *dictionary, struct bytes text, struct bytes visits,
                                   unsigned samples_count) {
    struct buf content;
    struct buf result;
    size_t room = DICTIONARY_SIZE - HEADER_ROOM - visits.size;
    buf_init(&content, DICTIONARY_SIZE);
    buf_init(&result, DICTIONARY_SIZE);
    enum err err = buf_put(&content, bytes_skip(text, text.size > room ? text.size - room : 0));
    err = err == ERR_OK ? buf_put(&content, visits) : err;
    err = err == ERR_OK ? buf_reserve(&result, DICTIONARY_SIZE) : err;
    if (err == ERR_OK) {
        ZDICT_params_t parameters = {.compressionLevel = LEVEL};
        size_t size =
            ZDICT_finalizeDictionary(result.data, DICTIONARY_SIZE, content.data, content.size,
                                     dictionary->samples.data, dictionary->sizes, samples_count, parameters);
        if (!ZDICT_isError(size)) {
            buf_clear(&dictionary->result);
            err = buf_put(&dictionary->result, bytes_of(result.data, size));
        }
    }
    buf_done(&content);
    buf_done(&result);
    return err;
}

/*
 * Unchanged visits, too, which come later: made-up ones take the place of the least common part of the
 * trained dictionary, its start, and they count among the samples. Without memory it stays as it was trained.
 */
static void dictionary_add_visits(struct dictionary *dictionary) {
    struct buf *samples = &dictionary->samples;
    unsigned count = dictionary->samples_count;
    struct buf visits;
    if (dictionary->result.size == 0) {
        return;
    }
    struct bytes fetcher = dictionary_visits_fetcher(buf_bytes(samples));
    char key[64];
    snprintf(key, sizeof key, "%.*s", BYTES_ARG(fetcher)); /* the samples move */
    fetcher = bytes_of_string(key);
    buf_init(&visits, DICTIONARY_VISITS_SIZE_MAX + 2048);
    enum err err = dictionary_visits_put(&visits, VISITS_TEXTS, fetcher, NULL);
    err = err == ERR_OK
              ? dictionary_visits_put(samples, DICTIONARY_VISITS_COUNT, fetcher, &dictionary->sizes[count])
              : err;
    if (err == ERR_OK) {
        err = dictionary_compose(dictionary, dictionary_text(buf_bytes(&dictionary->result)),
                                 buf_bytes(&visits), count + DICTIONARY_VISITS_COUNT);
        ASSERT(err == ERR_OK || err == ERR_MEMORY); /* the result has had that size before */
    }
    buf_done(&visits);
}

/*
 * ZDICT_trainFromBuffer() tries 40 pairs of k and d and takes four times as long; on pages these gave the
 * smaller records (docs/benchmarks.md).
 */
static void dictionary_train_first(struct dictionary *dictionary) {
    ZDICT_fastCover_params_t parameters = {.k = 512, .d = 8, .f = 20, .accel = 4, .steps = 1, .nbThreads = 1};
    parameters.splitPoint = 1.0;
    parameters.zParams.compressionLevel = LEVEL;
    struct buf *result = &dictionary->result;
    if (buf_reserve(result, DICTIONARY_SIZE) == ERR_OK) {
        size_t size =
            ZDICT_trainFromBuffer_fastCover(result->data, DICTIONARY_SIZE, dictionary->samples.data,
                                            dictionary->sizes, dictionary->samples_count, parameters);
        result->size = ZDICT_isError(size) ? 0 : size;
    }
    dictionary_add_visits(dictionary);
}

/* From real visits: taken at even distances, so that most kinds of servers are among them. */
static void dictionary_train_second(struct dictionary *dictionary) {
    struct buf visits;
    unsigned step = dictionary->samples_count / REAL_VISITS_TEXTS;
    buf_init(&visits, sizeof VISITS_MARK + REAL_VISITS_TEXTS * ZDICT_SMALL_SIZE_MAX);
    enum err err = buf_put_string(&visits, VISITS_MARK);
    size_t offset = 0;
    for (unsigned i = 0; i < dictionary->samples_count && err == ERR_OK; i++) {
        size_t end = offset + dictionary->sizes[i];
        if (i % step == 0 && i / step < REAL_VISITS_TEXTS) {
            err = buf_put(&visits, bytes_slice(buf_bytes(&dictionary->samples), offset, end));
        }
        offset = end;
    }
    if (err == ERR_OK) {
        err = dictionary_compose(dictionary, dictionary_text(buf_bytes(&dictionary->first)),
                                 buf_bytes(&visits), dictionary->samples_count);
        ASSERT(err == ERR_OK || err == ERR_MEMORY);
    }
    buf_done(&visits);
}

static uint64_t dictionary_train(void *context) {
    struct dictionary *dictionary = context;
    if (dictionary->is_second) {
        dictionary_train_second(dictionary);
    } else {
        dictionary_train_first(dictionary);
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
    dictionary->trainer = (struct task){0}; /* for the second */
    struct bytes result = buf_bytes(&dictionary->result);
    bool is_taken = result.size > 0 && buf_reserve(out, result.size) == ERR_OK;
    if (is_taken) {
        buf_clear(out);
        is_taken = buf_put(out, result) == ERR_OK;
    }
    pthread_mutex_lock(&dictionary->lock);
    if (dictionary->is_second) {
        enter(dictionary, DICTIONARY_TAKEN);
    } else {
        dictionary_collect_visits(dictionary, is_taken ? result : bytes_of(NULL, 0));
    }
    pthread_mutex_unlock(&dictionary->lock);
    buf_done(&dictionary->result);
    buf_init(&dictionary->result, DICTIONARY_SIZE);
    return is_taken;
}
