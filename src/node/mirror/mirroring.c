#include "node/mirror/mirroring.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "node/mirror/mirroring_state.h"
#include "run/thread.h"

enum { STATUS_SIZE_MAX = 4 << 20, TASKS_MAX = 1000 };
static const uint64_t LOOK_US = 1000000;    /* at the files */
static const uint64_t DESCRIBE_US = 100000; /* many answers come a second */
static const uint64_t RETRY_US = 1000000;
static const uint64_t ASK_US_DEFAULT = 600000000;

uint64_t mirroring_now_us(const struct mirroring *mirroring) {
    return clock_monotonic_us(mirroring->config.clock);
}

void mirroring_note(const struct mirroring *mirroring, const char *format, ...) {
    char sentence[MIRRORING_SENTENCE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (mirroring->config.note != NULL) {
        mirroring->config.note(mirroring->config.context, sentence);
    }
}

/* ---- asking and telling ---- */

void mirroring_ask_version(struct mirroring_mirror *mirror, const struct peer *peer, size_t named_index,
                           bool is_notice) {
    uint8_t memory[VERSION_SIZE_MAX];
    struct mirroring *mirroring = mirror->mirroring;
    struct mirroring_event *event =
        mirroring_event_new(mirroring, MIRRORING_VERSION_ANSWER, mirror->setup.name, peer);
    if (event == NULL) {
        return; /* again when its time comes */
    }
    event->named_index = named_index;
    event->is_notice = is_notice;
    event->number = mirroring_known_number(mirror, peer->key);
    struct bytes statement =
        mirror->collection != NULL ? collection_statement(mirror->collection, memory) : bytes_of(memory, 0);
    mirroring_put_version_question(&event->question, mirroring->config.self.address.port,
                                   mirror->setup.publisher, bytes_of_string(mirror->setup.name), statement);
    mirroring_ask(event);
}

/* Nobody said whose it is: a neighbour may know. */
static void ask_neighbours(struct mirroring_mirror *mirror) {
    struct mirror_source sources[MIRRORING_SOURCES_MAX];
    const struct mirroring_config *config = &mirror->mirroring->config;
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    if (config->neighbours == NULL || now_us < mirror->ask_neighbours_at_us) {
        return;
    }
    mirror->ask_neighbours_at_us = now_us + RETRY_US;
    size_t count = config->neighbours(config->context, sources);
    for (size_t i = 0; i < count; i++) {
        mirroring_ask_version(mirror, &sources[i].peer, SIZE_MAX, false);
    }
}

static void hear(struct mirroring_mirror *mirror, const struct peer *peer, struct bytes statement) {
    static const char *const sentences[] = {
        [MIRROR_FOREIGN] = "offers a version of another collection than he was asked for",
        [MIRROR_FORGED] = "offers a version of a collection that its publisher has not signed",
        [MIRROR_REPLAYED] = "offers an older version of a collection than before",
        [MIRROR_IGNORED] = NULL,
    };
    const struct mirroring_config *config = &mirror->mirroring->config;
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    enum mirror_verdict verdict = mirror_hear(mirror->mirror, peer->key, statement, now_us);
    if (verdict >= MIRROR_FOREIGN && sentences[verdict] != NULL) {
        config->blame(config->context, peer, sentences[verdict]);
    }
}

/* ---- collections ---- */

static void say_fault(struct mirroring_mirror *mirror, const struct err_detail *detail, enum err err) {
    if (!mirror->is_told) {
        mirror->is_told = true;
        mirroring_note(mirror->mirroring, "collection %s: %.200s", mirror->setup.name,
                       err_detail_text(detail, err));
    }
}

/* The publisher is known: open what is here. */
static void open_mirror(struct mirroring_mirror *mirror) {
    struct mirroring *mirroring = mirror->mirroring;
    struct err_detail detail = {0};
    struct collection *collection;
    enum err err = collection_open(mirroring->config.directory, &mirror->setup, &collection, &detail);
    if (err != ERR_OK) {
        say_fault(mirror, &detail, err);
        return;
    }
    struct mirror_config config = {
        .verify = identity_verify,
        .is_master = collection_setup_publishes(&mirror->setup),
        .held = collection_held(collection),
        .limit = &mirroring->limit,
        .batches_max = MIRRORING_BATCHES_MAX,
        .gather_us = mirroring->config.gather_us,
        .ask_us = mirroring->config.ask_us,
        .retry_us = RETRY_US,
        .seed = mirroring_now_us(mirroring),
    };
    memcpy(config.publisher, mirror->setup.publisher, PEER_KEY_SIZE);
    snprintf(config.name, sizeof config.name, "%s", mirror->setup.name);
    void *memory = malloc(mirror_size(&config));
    if (memory == NULL) {
        collection_close(collection);
        return;
    }
    mirror->mirror = mirror_init(memory, &config, mirroring_now_us(mirroring));
    pthread_mutex_lock(&mirroring->lock);
    mirror->collection = collection;
    pthread_mutex_unlock(&mirroring->lock);
}

/* Somebody has a collection of that name, and nobody said whose it must be: his word is taken, once. */
static void learn_publisher(struct mirroring_mirror *mirror, const struct peer *peer,
                            struct bytes statement) {
    char key[IDENTITY_TEXT_SIZE];
    char place[ADDRESS_TEXT_SIZE_MAX];
    struct err_detail detail = {0};
    struct version version;
    if (mirror->setup.has_publisher || statement.size == 0 ||
        version_read(statement, identity_verify, &version, NULL) != ERR_OK ||
        strcmp(version.name, mirror->setup.name) != 0) {
        return;
    }
    pthread_mutex_lock(&mirror->mirroring->lock);
    mirror->setup.has_publisher = true;
    memcpy(mirror->setup.publisher, version.publisher, PEER_KEY_SIZE);
    pthread_mutex_unlock(&mirror->mirroring->lock);
    enum err err = collection_setup_write(mirror->mirroring->config.directory, &mirror->setup, &detail);
    if (err != ERR_OK) {
        say_fault(mirror, &detail, err);
    }
    mirroring_note(mirror->mirroring, "collection %s is published by %s, says %s", mirror->setup.name,
                   identity_key_format(mirror->setup.publisher, key), address_format(&peer->address, place));
}

static void free_mirror(struct mirroring_mirror *mirror) {
    mirroring_drop_version(mirror);
    collection_close(mirror->collection);
    map_done(&mirror->given);
    free(mirror->mirror);
    free(mirror);
}

static struct mirroring_mirror *find(const struct mirroring *mirroring, const char *name) {
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        if (strcmp(mirroring->mirrors[i]->setup.name, name) == 0) {
            return mirroring->mirrors[i];
        }
    }
    return NULL;
}

static bool is_same_setup(const struct collection_setup *a, const struct collection_setup *b) {
    bool is_same = a->has_publisher == b->has_publisher && strcmp(a->directory, b->directory) == 0 &&
                   memcmp(a->publisher, b->publisher, PEER_KEY_SIZE) == 0 &&
                   a->sources_count == b->sources_count;
    for (size_t i = 0; i < a->sources_count && is_same; i++) {
        is_same = address_equal(&a->sources[i], &b->sources[i]);
    }
    return is_same;
}

static void look_at(struct mirroring *mirroring, const char *name) {
    struct collection_setup setup;
    struct err_detail detail = {0};
    struct mirroring_mirror *mirror = find(mirroring, name);
    if (collection_setup_read(mirroring->config.directory, name, &setup, &detail) != ERR_OK) {
        return;
    }
    if (mirror != NULL) {
        mirror->is_listed = is_same_setup(&setup, &mirror->setup); /* else anew with the next look */
        mirroring_set_readers(mirror, &setup.readers);
        return;
    }
    mirror = mirroring->mirrors_count < COLLECTION_SETUP_NAMES_MAX ? calloc(1, sizeof *mirror) : NULL;
    if (mirror != NULL) {
        mirror->mirroring = mirroring;
        mirror->setup = setup;
        mirror->is_listed = true;
        map_init(&mirror->given, SHA256_SIZE, 1, MIRRORING_GIVEN_MAX, mirroring_now_us(mirroring));
        pthread_mutex_lock(&mirroring->lock);
        mirroring->mirrors[mirroring->mirrors_count++] = mirror;
        pthread_mutex_unlock(&mirroring->lock);
    }
}

static void remove_unlisted(struct mirroring *mirroring) {
    size_t kept = 0;
    pthread_mutex_lock(&mirroring->lock);
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        if (mirroring->mirrors[i]->is_listed) {
            mirroring->mirrors[kept++] = mirroring->mirrors[i];
        } else {
            free_mirror(mirroring->mirrors[i]);
        }
    }
    mirroring->mirrors_count = kept;
    pthread_mutex_unlock(&mirroring->lock);
}

static void look_at_publisher(struct mirroring_mirror *mirror) {
    struct err_detail detail = {0};
    if (mirror->mirror != NULL && collection_setup_publishes(&mirror->setup) &&
        collection_look(mirror->collection, &detail)) {
        const struct version *version = collection_held(mirror->collection);
        mirror_publish(mirror->mirror, version, mirroring_now_us(mirror->mirroring));
        mirroring_note(mirror->mirroring, "collection %s: version %ju is published", mirror->setup.name,
                       (uintmax_t)version->number);
    }
}

static void look_at_files(struct mirroring *mirroring) {
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = malloc(COLLECTION_SETUP_NAMES_MAX * sizeof *names);
    size_t count = names != NULL ? collection_setup_names(mirroring->config.directory, names) : 0;
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        mirroring->mirrors[i]->is_listed = names == NULL;
    }
    for (size_t i = 0; i < count; i++) {
        look_at(mirroring, names[i]);
    }
    free(names);
    remove_unlisted(mirroring);
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        struct mirroring_mirror *mirror = mirroring->mirrors[i];
        if (mirror->mirror == NULL && mirror->setup.has_publisher) {
            open_mirror(mirror);
        }
        look_at_publisher(mirror);
    }
}

/* The clock on the wall may have been set. */
static void look_at_clock(struct mirroring *mirroring) {
    mirroring_rates_set_clock(&mirroring->limit, mirroring->config.clock);
    pthread_mutex_lock(&mirroring->lock);
    mirroring_rates_set_clock(&mirroring->upload_limit, mirroring->config.clock);
    pthread_mutex_unlock(&mirroring->lock);
}

/* ---- what happens ---- */

static void take_version_answer(struct mirroring_mirror *mirror, struct mirroring_event *event) {
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    struct bytes statement = bytes_of(NULL, 0);
    uint8_t key[PEER_KEY_SIZE] = {0};
    enum err err = event->err;
    if (err == ERR_OK) {
        err = mirroring_read_version_answer(buf_bytes(&event->answer), key, &statement);
    }
    if (event->named_index < mirror->setup.sources_count) {
        mirroring_take_named(mirror, event, err, key);
        learn_publisher(mirror, &event->peer, statement);
        return;
    }
    if (mirror->mirror == NULL) {
        learn_publisher(mirror, &event->peer, statement);
        return;
    }
    if (event->is_notice) {
        mirror_told(mirror->mirror, event->peer.key, err, now_us);
    }
    struct version version;
    bool is_overtaken = mirroring_known_number(mirror, event->peer.key) > event->number &&
                        version_read(statement, identity_verify, &version, NULL) == ERR_OK &&
                        version.number < mirroring_known_number(mirror, event->peer.key);
    if (err == ERR_OK && statement.size > 0 && !is_overtaken) {
        hear(mirror, &event->peer, statement);
    } else if (!event->is_notice) {
        enum err said = err == ERR_OK && statement.size == 0 ? ERR_NOT_FOUND : err;
        if (said != ERR_OK) {
            mirror_answered(mirror->mirror, event->peer.key, said, now_us);
        }
    }
}

static void take_heard(struct mirroring_mirror *mirror, const struct mirroring_event *event) {
    struct version version;
    struct bytes statement = buf_bytes(&event->answer);
    mirroring_note_follower(mirror, &event->peer);
    if (mirror->mirror == NULL) {
        learn_publisher(mirror, &event->peer, statement);
        return;
    }
    mirroring_set_sources(mirror);
    if (statement.size == 0) {
        mirror_answered(mirror->mirror, event->peer.key, ERR_NOT_FOUND, mirroring_now_us(mirror->mirroring));
        return;
    }
    bool is_old = version_read(statement, identity_verify, &version, NULL) == ERR_OK &&
                  version.number < mirroring_known_number(mirror, event->peer.key);
    if (!is_old) { /* else an answer of his has overtaken it */
        hear(mirror, &event->peer, statement);
    }
}

static void take_event(struct mirroring *mirroring, struct mirroring_event *event) {
    struct mirroring_mirror *mirror = find(mirroring, event->name);
    if (mirror == NULL) {
        return;
    }
    switch (event->kind) {
    case MIRRORING_VERSION_ANSWER:
        take_version_answer(mirror, event);
        break;
    case MIRRORING_CHUNKS_ANSWER:
        if (mirror->mirror != NULL) {
            mirroring_take_chunks(mirror, event);
        }
        break;
    case MIRRORING_PARTS_ANSWER:
        if (mirror->mirror != NULL) {
            mirroring_take_parts(mirror, event);
        }
        break;
    case MIRRORING_HEARD:
        take_heard(mirror, event);
        break;
    }
}

static void run_task(struct mirroring_mirror *mirror, const struct mirror_task *task) {
    switch (task->kind) {
    case MIRROR_ASK:
        mirroring_ask_version(mirror, &task->source, SIZE_MAX, false);
        break;
    case MIRROR_NOTIFY:
        mirroring_ask_version(mirror, &task->source, SIZE_MAX, true);
        break;
    case MIRROR_BEGIN:
        mirroring_begin(mirror, task);
        break;
    case MIRROR_LOOK:
        mirroring_look(mirror, task);
        break;
    case MIRROR_FETCH:
        mirroring_fetch(mirror, task);
        break;
    case MIRROR_CANCEL:
        mirroring_cancel(mirror, task);
        break;
    case MIRROR_APPLY:
        mirroring_apply(mirror);
        break;
    }
}

/* When it wants to be looked at again. */
static uint64_t work(struct mirroring_mirror *mirror) {
    struct mirror_task task;
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    mirroring_ask_named(mirror);
    if (mirror->mirror == NULL) {
        ask_neighbours(mirror);
        return now_us + RETRY_US;
    }
    mirroring_set_sources(mirror);
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        mirroring_want(mirror);
        mirroring_set_offers(mirror);
        now_us = mirroring_now_us(mirror->mirroring);
        if (!mirror_next(mirror->mirror, now_us, &task)) {
            return mirror_wake_at(mirror->mirror, now_us);
        }
        run_task(mirror, &task);
    }
    return now_us;
}

/* ---- the thread ---- */

static void await(struct mirroring *mirroring, uint64_t until_us) {
    uint64_t now_us = mirroring_now_us(mirroring);
    if (until_us <= now_us || mirroring->events != NULL || mirroring->is_stopped) {
        return;
    }
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t wait_us = until_us - now_us + (uint64_t)at.tv_nsec / 1000;
    at.tv_sec += (time_t)(wait_us / 1000000);
    at.tv_nsec = (long)(wait_us % 1000000 * 1000);
    pthread_cond_timedwait(&mirroring->woken, &mirroring->lock, &at);
}

static struct mirroring_event *take_events(struct mirroring *mirroring) {
    struct mirroring_event *events = mirroring->events;
    mirroring->events = NULL;
    mirroring->events_end = &mirroring->events;
    mirroring->heard_count = 0;
    return events;
}

static uint64_t go_round(struct mirroring *mirroring, struct mirroring_event *events) {
    while (events != NULL) {
        struct mirroring_event *next = events->next;
        take_event(mirroring, events);
        mirroring_event_free(events);
        events = next;
    }
    if (mirroring_now_us(mirroring) >= mirroring->looked_at_us + LOOK_US) {
        mirroring->looked_at_us = mirroring_now_us(mirroring);
        look_at_clock(mirroring);
        look_at_files(mirroring);
    }
    uint64_t until_us = mirroring->looked_at_us + LOOK_US;
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        uint64_t at_us = work(mirroring->mirrors[i]);
        until_us = at_us < until_us ? at_us : until_us;
    }
    if (mirroring_now_us(mirroring) >= mirroring->described_at_us + DESCRIBE_US) {
        mirroring->described_at_us = mirroring_now_us(mirroring);
        mirroring_describe(mirroring);
    }
    return until_us;
}

static void *run(void *context) {
    struct mirroring *mirroring = context;
    uint64_t until_us = 0;
    pthread_mutex_lock(&mirroring->lock);
    while (!mirroring->is_stopped) {
        await(mirroring, until_us);
        struct mirroring_event *events = take_events(mirroring);
        pthread_mutex_unlock(&mirroring->lock);
        until_us = go_round(mirroring, events);
        pthread_mutex_lock(&mirroring->lock);
    }
    pthread_mutex_unlock(&mirroring->lock);
    return NULL;
}

/* ---- life ---- */

static void set_limit(struct mirror_limit *limit, const struct mirror_limit *given) {
    if (given != NULL) {
        *limit = *given;
    } else {
        mirror_limit_init(limit, MIRROR_LIMIT_NONE, 0);
    }
}

enum err mirroring_new(const struct mirroring_config *config, struct mirroring **ret_mirroring,
                       struct err_detail *detail) {
    pthread_condattr_t attributes;
    struct mirroring *mirroring = calloc(1, sizeof *mirroring);
    if (mirroring == NULL) {
        return err_set(detail, ERR_MEMORY, "no memory for collections");
    }
    mirroring->config = *config;
    mirroring->config.clock = config->clock != NULL ? config->clock : &clock_system;
    mirroring->config.ask_us = config->ask_us > 0 ? config->ask_us : ASK_US_DEFAULT;
    mirroring->events_end = &mirroring->events;
    buf_init(&mirroring->status, STATUS_SIZE_MAX);
    set_limit(&mirroring->limit, config->limit);
    set_limit(&mirroring->upload_limit, config->upload_limit);
    pthread_mutex_init(&mirroring->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&mirroring->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    look_at_clock(mirroring);
    bulk_serve(config->bulk, BULK_MIRROR, mirroring_answer, mirroring);
    *ret_mirroring = mirroring;
    return ERR_OK;
}

enum err mirroring_start(struct mirroring *mirroring, struct err_detail *detail) {
    if (thread_start(&mirroring->thread, "mirroring", run, mirroring) != 0) {
        return err_set(detail, ERR_SYSTEM, "no thread for collections");
    }
    mirroring->is_running = true;
    return ERR_OK;
}

void mirroring_stop(struct mirroring *mirroring) {
    pthread_mutex_lock(&mirroring->lock);
    mirroring->is_stopped = true;
    pthread_cond_signal(&mirroring->woken);
    pthread_mutex_unlock(&mirroring->lock);
    if (mirroring->is_running) {
        pthread_join(mirroring->thread, NULL);
        mirroring->is_running = false;
    }
}

void mirroring_free(struct mirroring *mirroring) {
    struct mirroring_event *event = mirroring->events;
    while (event != NULL) {
        struct mirroring_event *next = event->next;
        mirroring_event_free(event);
        event = next;
    }
    while (mirroring->asked != NULL) { /* the bulk thread ended before it came to them */
        event = mirroring->asked;
        mirroring->asked = event->next_asked;
        mirroring_event_free(event);
    }
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        free_mirror(mirroring->mirrors[i]);
    }
    pthread_cond_destroy(&mirroring->woken);
    pthread_mutex_destroy(&mirroring->lock);
    buf_done(&mirroring->status);
    free(mirroring);
}
