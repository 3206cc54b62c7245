#include "node/mirror/mirror_driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/mirror/mirror_driver_state.h"

/* ---- questions on their way, and the queue of what happened ---- */

struct mirror_driver_event *mirror_driver_event_new(struct mirror_driver *driver,
                                                    enum mirror_driver_event_kind kind, const char *name,
                                                    const struct peer *peer) {
    struct mirror_driver_event *event = calloc(1, sizeof *event);
    if (event != NULL) {
        event->driver = driver;
        event->kind = kind;
        event->peer = *peer;
        event->named_index = SIZE_MAX;
        event->timeout_ms = MIRROR_DRIVER_ASK_MS;
        snprintf(event->name, sizeof event->name, "%s", name);
        buf_init(&event->question, PEER_RPC_QUESTION_SIZE_MAX);
        buf_init(&event->answer, PEER_RPC_ANSWER_SIZE_MAX);
    }
    return event;
}

static void mirror_driver_event_free(struct mirror_driver_event *event) {
    buf_done(&event->question);
    buf_done(&event->answer);
    free(event);
}

void mirror_driver_queue(struct mirror_driver_event *event) {
    struct mirror_driver *driver = event->driver;
    pthread_mutex_lock(&driver->lock);
    event->next = NULL;
    *driver->events_end = event;
    driver->events_end = &event->next;
    driver->heard_count += event->kind == MIRROR_DRIVER_HEARD;
    pthread_mutex_unlock(&driver->lock);
    task_poke(&driver->task);
}

static void mirror_on_answer(void *context, enum err err, struct bytes answer) {
    struct mirror_driver_event *event = context;
    event->err = err;
    buf_put(&event->answer, answer);
    event->err = event->err == ERR_OK ? event->answer.err : event->err;
    mirror_driver_queue(event);
}

/* The thread of peer RPC, which comes to all that it took before it ends. */
static void driver_run(void *context) {
    struct mirror_driver_event *event = context;
    enum err err = peer_rpc_call(event->driver->config.peer_rpc, &event->peer, PEER_RPC_MIRROR,
                                 buf_bytes(&event->question), event->timeout_ms, mirror_on_answer, event);
    if (err != ERR_OK) {
        mirror_on_answer(event, err, bytes_of(NULL, 0));
    }
}

void mirror_driver_ask(struct mirror_driver_event *event) {
    enum err err = event->question.err;
    err = err == ERR_OK ? peer_rpc_post(event->driver->config.peer_rpc, driver_run, event) : err;
    if (err != ERR_OK) {
        mirror_on_answer(event, err, bytes_of(NULL, 0));
    }
}

/* ---- sources: neighbours, nodes that people named, and nodes that asked us ---- */

static const uint64_t FOLLOWER_SLACK_US = 60000000;

static void add_source(const struct mirror_driver *driver, const struct peer *peer,
                       struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX], size_t *count) {
    bool is_new = memcmp(peer->key, driver->config.self.key, PEER_KEY_SIZE) != 0;
    for (size_t i = 0; i < *count && is_new; i++) {
        is_new = memcmp(sources[i].peer.key, peer->key, PEER_KEY_SIZE) != 0;
    }
    if (is_new && *count < MIRROR_DRIVER_SOURCES_MAX) {
        sources[(*count)++] = (struct mirror_source){
            .peer = *peer, .delay_us = peer_rpc_round_trip_us(driver->config.peer_rpc, peer)};
    }
}

static size_t list_sources(struct mirror_driver_mirror *mirror,
                           struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX]) {
    struct mirror_driver *driver = mirror->driver;
    const struct mirror_driver_config *config = &driver->config;
    uint64_t now_us = mirror_driver_now_us(driver);
    size_t count = config->neighbours != NULL ? config->neighbours(config->context, sources) : 0;
    size_t kept = 0;
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        if (mirror->named[i].is_known) {
            add_source(driver, &mirror->named[i].peer, sources, &count);
        }
    }
    for (size_t i = 0; i < mirror->followers_count; i++) {
        if (now_us < mirror->followers[i].heard_us + 3 * config->ask_us + FOLLOWER_SLACK_US) {
            mirror->followers[kept++] = mirror->followers[i];
            add_source(driver, &mirror->followers[i].peer, sources, &count);
        }
    }
    mirror->followers_count = kept;
    return count;
}

static void mirror_driver_set_sources(struct mirror_driver_mirror *mirror) {
    struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX];
    size_t count = list_sources(mirror, sources);
    mirror_set_sources(mirror->mirror, sources, count, mirror_driver_now_us(mirror->driver));
}

static void mirror_driver_note_follower(struct mirror_driver_mirror *mirror, const struct peer *peer) {
    size_t oldest = 0;
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    for (size_t i = 0; i < mirror->followers_count; i++) {
        if (memcmp(mirror->followers[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            mirror->followers[i] = (struct mirror_driver_follower){.peer = *peer, .heard_us = now_us};
            return;
        }
        oldest = mirror->followers[i].heard_us < mirror->followers[oldest].heard_us ? i : oldest;
    }
    if (mirror->followers_count < MIRROR_DRIVER_FOLLOWERS_MAX) {
        oldest = mirror->followers_count++;
    }
    mirror->followers[oldest] = (struct mirror_driver_follower){.peer = *peer, .heard_us = now_us};
}

bool mirror_driver_find_source(const struct mirror_driver_mirror *mirror, const uint8_t key[PEER_KEY_SIZE],
                               struct mirror_source_status *ret_status) {
    size_t count = mirror->mirror != NULL ? mirror_sources_count(mirror->mirror) : 0;
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; i++) {
        mirror_source_at(mirror->mirror, i, mirror_driver_now_us(mirror->driver), ret_status);
        is_found = memcmp(ret_status->source.peer.key, key, PEER_KEY_SIZE) == 0;
    }
    return is_found;
}

static uint64_t mirror_driver_known_number(const struct mirror_driver_mirror *mirror,
                                           const uint8_t key[PEER_KEY_SIZE]) {
    struct mirror_source_status status;
    return mirror_driver_find_source(mirror, key, &status) ? status.number : 0;
}

enum { STATUS_SIZE_MAX = 4 << 20, TASKS_MAX = 1000 };
static const uint64_t LOOK_US = 1000000;    /* at the files */
static const uint64_t DESCRIBE_US = 100000; /* many answers come a second */
static const uint64_t RETRY_US = 1000000;
static const uint64_t ASK_US_DEFAULT = 600000000;

uint64_t mirror_driver_now_us(const struct mirror_driver *driver) {
    return clock_monotonic_us(driver->config.clock);
}

void mirror_driver_note(const struct mirror_driver *driver, const char *format, ...) {
    char sentence[MIRROR_DRIVER_SENTENCE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (driver->config.note != NULL) {
        driver->config.note(driver->config.context, sentence);
    }
}

/* ---- asking and telling ---- */

void mirror_driver_ask_version(struct mirror_driver_mirror *mirror, const struct peer *peer,
                               size_t named_index, bool is_notice) {
    uint8_t memory[VERSION_SIZE_MAX];
    struct mirror_driver *driver = mirror->driver;
    struct mirror_driver_event *event =
        mirror_driver_event_new(driver, MIRROR_DRIVER_VERSION_ANSWER, mirror->setup.name, peer);
    if (event == NULL) {
        return; /* again when its time comes */
    }
    event->named_index = named_index;
    event->is_notice = is_notice;
    event->number = mirror_driver_known_number(mirror, peer->key);
    struct bytes statement =
        mirror->collection != NULL ? collection_statement(mirror->collection, memory) : bytes_of(memory, 0);
    mirror_driver_put_version_question(&event->question, driver->config.self.address.port,
                                       mirror->setup.publisher, bytes_of_string(mirror->setup.name),
                                       statement);
    mirror_driver_ask(event);
}

/* Nobody said whose it is: a neighbour may know. */
static void ask_neighbours(struct mirror_driver_mirror *mirror) {
    struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX];
    const struct mirror_driver_config *config = &mirror->driver->config;
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    if (config->neighbours == NULL || now_us < mirror->ask_neighbours_at_us) {
        return;
    }
    mirror->ask_neighbours_at_us = now_us + RETRY_US;
    size_t count = config->neighbours(config->context, sources);
    for (size_t i = 0; i < count; i++) {
        mirror_driver_ask_version(mirror, &sources[i].peer, SIZE_MAX, false);
    }
}

static void hear(struct mirror_driver_mirror *mirror, const struct peer *peer, struct bytes statement) {
    static const char *const sentences[] = {
        [MIRROR_FOREIGN] = "offers a version of another collection than it was asked for",
        [MIRROR_FORGED] = "offers a version of a collection that its publisher has not signed",
        [MIRROR_REPLAYED] = "offers an older version of a collection than before",
        [MIRROR_IGNORED] = NULL,
    };
    const struct mirror_driver_config *config = &mirror->driver->config;
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    enum mirror_verdict verdict = mirror_hear(mirror->mirror, peer->key, statement, now_us);
    if (verdict >= MIRROR_FOREIGN && sentences[verdict] != NULL) {
        config->blame(config->context, peer, sentences[verdict]);
    }
}

/* ---- collections ---- */

static void say_fault(struct mirror_driver_mirror *mirror, const struct err_detail *detail, enum err err) {
    if (!mirror->is_told) {
        mirror->is_told = true;
        mirror_driver_note(mirror->driver, "collection %s: %.200s", mirror->setup.name,
                           err_detail_text(detail, err));
    }
}

/* The publisher is known: open what is here. */
static void open_mirror(struct mirror_driver_mirror *mirror) {
    struct mirror_driver *driver = mirror->driver;
    struct err_detail detail = {0};
    struct collection *collection;
    enum err err = collection_open(driver->config.directory, &mirror->setup, &collection, &detail);
    if (err != ERR_OK) {
        say_fault(mirror, &detail, err);
        return;
    }
    struct mirror_config config = {
        .verify = identity_verify,
        .is_master = collection_setup_publishes(&mirror->setup),
        .held = collection_held(collection),
        .limit = &driver->limit,
        .batches_max = MIRROR_DRIVER_BATCHES_MAX,
        .gather_us = driver->config.gather_us,
        .ask_us = driver->config.ask_us,
        .retry_us = RETRY_US,
        .seed = mirror_driver_now_us(driver),
    };
    memcpy(config.publisher, mirror->setup.publisher, PEER_KEY_SIZE);
    snprintf(config.name, sizeof config.name, "%s", mirror->setup.name);
    void *memory = malloc(mirror_size(&config));
    if (memory == NULL) {
        collection_close(collection);
        return;
    }
    mirror->mirror = mirror_init(memory, &config, mirror_driver_now_us(driver));
    pthread_mutex_lock(&driver->lock);
    mirror->collection = collection;
    pthread_mutex_unlock(&driver->lock);
}

/* A node has a collection of that name, and nobody said whose it must be: its word is taken, once. */
static void learn_publisher(struct mirror_driver_mirror *mirror, const struct peer *peer,
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
    pthread_mutex_lock(&mirror->driver->lock);
    mirror->setup.has_publisher = true;
    memcpy(mirror->setup.publisher, version.publisher, PEER_KEY_SIZE);
    pthread_mutex_unlock(&mirror->driver->lock);
    enum err err = collection_setup_write(mirror->driver->config.directory, &mirror->setup, &detail);
    if (err != ERR_OK) {
        say_fault(mirror, &detail, err);
    }
    mirror_driver_note(mirror->driver, "collection %s is published by %s, says %s", mirror->setup.name,
                       identity_key_format(mirror->setup.publisher, key),
                       address_format(&peer->address, place));
}

static void free_mirror(struct mirror_driver_mirror *mirror) {
    mirror_driver_drop_version(mirror);
    collection_close(mirror->collection);
    map_done(&mirror->given);
    free(mirror->mirror);
    free(mirror);
}

static struct mirror_driver_mirror *mirror_find(const struct mirror_driver *driver, const char *name) {
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        if (strcmp(driver->mirrors[i]->setup.name, name) == 0) {
            return driver->mirrors[i];
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

static void mirror_look_at(struct mirror_driver *driver, const char *name) {
    struct collection_setup setup;
    struct err_detail detail = {0};
    struct mirror_driver_mirror *mirror = mirror_find(driver, name);
    if (collection_setup_read(driver->config.directory, name, &setup, &detail) != ERR_OK) {
        return;
    }
    if (mirror != NULL) {
        mirror->is_listed = is_same_setup(&setup, &mirror->setup); /* else anew with the next look */
        mirror_driver_set_readers(mirror, &setup.readers);
        return;
    }
    mirror = driver->mirrors_count < COLLECTION_SETUP_NAMES_MAX ? calloc(1, sizeof *mirror) : NULL;
    if (mirror != NULL) {
        mirror->driver = driver;
        mirror->setup = setup;
        mirror->is_listed = true;
        map_init(&mirror->given, SHA256_SIZE, 1, MIRROR_DRIVER_GIVEN_MAX, mirror_driver_now_us(driver));
        pthread_mutex_lock(&driver->lock);
        driver->mirrors[driver->mirrors_count++] = mirror;
        pthread_mutex_unlock(&driver->lock);
    }
}

static void remove_unlisted(struct mirror_driver *driver) {
    size_t kept = 0;
    pthread_mutex_lock(&driver->lock);
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        if (driver->mirrors[i]->is_listed) {
            driver->mirrors[kept++] = driver->mirrors[i];
        } else {
            free_mirror(driver->mirrors[i]);
        }
    }
    driver->mirrors_count = kept;
    pthread_mutex_unlock(&driver->lock);
}

static void look_at_publisher(struct mirror_driver_mirror *mirror) {
    struct err_detail detail = {0};
    if (mirror->mirror != NULL && collection_setup_publishes(&mirror->setup) &&
        collection_look(mirror->collection, &detail)) {
        const struct version *version = collection_held(mirror->collection);
        mirror_publish(mirror->mirror, version, mirror_driver_now_us(mirror->driver));
        mirror_driver_note(mirror->driver, "collection %s: version %ju is published", mirror->setup.name,
                           (uintmax_t)version->number);
    }
}

static void look_at_files(struct mirror_driver *driver) {
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = malloc(COLLECTION_SETUP_NAMES_MAX * sizeof *names);
    size_t count = names != NULL ? collection_setup_names(driver->config.directory, names) : 0;
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        driver->mirrors[i]->is_listed = names == NULL;
    }
    for (size_t i = 0; i < count; i++) {
        mirror_look_at(driver, names[i]);
    }
    free(names);
    remove_unlisted(driver);
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        struct mirror_driver_mirror *mirror = driver->mirrors[i];
        if (mirror->mirror == NULL && mirror->setup.has_publisher) {
            open_mirror(mirror);
        }
        look_at_publisher(mirror);
    }
}

/* The clock on the wall may have been set. */
static void look_at_clock(struct mirror_driver *driver) {
    mirror_driver_rates_set_clock(&driver->limit, driver->config.clock);
    pthread_mutex_lock(&driver->lock);
    mirror_driver_rates_set_clock(&driver->upload_limit, driver->config.clock);
    pthread_mutex_unlock(&driver->lock);
}

/* ---- what happens ---- */

static void take_version_answer(struct mirror_driver_mirror *mirror, struct mirror_driver_event *event) {
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    struct bytes statement = bytes_of(NULL, 0);
    uint8_t key[PEER_KEY_SIZE] = {0};
    enum err err = event->err;
    if (err == ERR_OK) {
        err = mirror_driver_read_version_answer(buf_bytes(&event->answer), key, &statement);
    }
    if (event->named_index < mirror->setup.sources_count) {
        mirror_driver_take_named(mirror, event, err, key);
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
    bool is_overtaken = mirror_driver_known_number(mirror, event->peer.key) > event->number &&
                        version_read(statement, identity_verify, &version, NULL) == ERR_OK &&
                        version.number < mirror_driver_known_number(mirror, event->peer.key);
    if (err == ERR_OK && statement.size > 0 && !is_overtaken) {
        hear(mirror, &event->peer, statement);
    } else if (!event->is_notice) {
        enum err said = err == ERR_OK && statement.size == 0 ? ERR_NOT_FOUND : err;
        if (said != ERR_OK) {
            mirror_answered(mirror->mirror, event->peer.key, said, now_us);
        }
    }
}

static void take_heard(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event) {
    struct version version;
    struct bytes statement = buf_bytes(&event->answer);
    mirror_driver_note_follower(mirror, &event->peer);
    if (mirror->mirror == NULL) {
        learn_publisher(mirror, &event->peer, statement);
        return;
    }
    mirror_driver_set_sources(mirror);
    if (statement.size == 0) {
        mirror_answered(mirror->mirror, event->peer.key, ERR_NOT_FOUND, mirror_driver_now_us(mirror->driver));
        return;
    }
    bool is_old = version_read(statement, identity_verify, &version, NULL) == ERR_OK &&
                  version.number < mirror_driver_known_number(mirror, event->peer.key);
    if (!is_old) { /* else an answer of the same peer has overtaken it */
        hear(mirror, &event->peer, statement);
    }
}

static void take_event(struct mirror_driver *driver, struct mirror_driver_event *event) {
    struct mirror_driver_mirror *mirror = mirror_find(driver, event->name);
    if (mirror == NULL) {
        return;
    }
    switch (event->kind) {
    case MIRROR_DRIVER_VERSION_ANSWER:
        take_version_answer(mirror, event);
        break;
    case MIRROR_DRIVER_CHUNKS_ANSWER:
        if (mirror->mirror != NULL) {
            mirror_driver_take_chunks(mirror, event);
        }
        break;
    case MIRROR_DRIVER_PARTS_ANSWER:
        if (mirror->mirror != NULL) {
            mirror_driver_take_parts(mirror, event);
        }
        break;
    case MIRROR_DRIVER_HEARD:
        take_heard(mirror, event);
        break;
    }
}

static void run_task(struct mirror_driver_mirror *mirror, const struct mirror_task *task) {
    switch (task->kind) {
    case MIRROR_ASK:
        mirror_driver_ask_version(mirror, &task->source, SIZE_MAX, false);
        break;
    case MIRROR_NOTIFY:
        mirror_driver_ask_version(mirror, &task->source, SIZE_MAX, true);
        break;
    case MIRROR_BEGIN:
        mirror_driver_begin(mirror, task);
        break;
    case MIRROR_LOOK:
        mirror_driver_look(mirror, task);
        break;
    case MIRROR_FETCH:
        mirror_driver_fetch(mirror, task);
        break;
    case MIRROR_CANCEL:
        mirror_driver_cancel(mirror, task);
        break;
    case MIRROR_APPLY:
        mirror_driver_apply(mirror);
        break;
    }
}

/* When it wants to be looked at again. */
static uint64_t work(struct mirror_driver_mirror *mirror) {
    struct mirror_task task;
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    mirror_driver_ask_named(mirror);
    if (mirror->mirror == NULL) {
        ask_neighbours(mirror);
        return now_us + RETRY_US;
    }
    mirror_driver_set_sources(mirror);
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        mirror_driver_want(mirror);
        mirror_driver_set_offers(mirror);
        now_us = mirror_driver_now_us(mirror->driver);
        if (!mirror_next(mirror->mirror, now_us, &task)) {
            return mirror_wake_at(mirror->mirror, now_us);
        }
        run_task(mirror, &task);
    }
    return now_us;
}

/* ---- the task ---- */

static struct mirror_driver_event *take_events(struct mirror_driver *driver) {
    pthread_mutex_lock(&driver->lock);
    struct mirror_driver_event *events = driver->events;
    driver->events = NULL;
    driver->events_end = &driver->events;
    driver->heard_count = 0;
    pthread_mutex_unlock(&driver->lock);
    return events;
}

static uint64_t mirror_driver_run(void *context) {
    struct mirror_driver *driver = context;
    struct mirror_driver_event *events = take_events(driver);
    while (events != NULL) {
        struct mirror_driver_event *next = events->next;
        take_event(driver, events);
        mirror_driver_event_free(events);
        events = next;
    }
    if (mirror_driver_now_us(driver) >= driver->looked_at_us + LOOK_US) {
        driver->looked_at_us = mirror_driver_now_us(driver);
        look_at_clock(driver);
        look_at_files(driver);
    }
    uint64_t until_us = driver->looked_at_us + LOOK_US;
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        uint64_t at_us = work(driver->mirrors[i]);
        until_us = at_us < until_us ? at_us : until_us;
    }
    if (mirror_driver_now_us(driver) >= driver->described_at_us + DESCRIBE_US) {
        driver->described_at_us = mirror_driver_now_us(driver);
        mirror_driver_describe(driver);
    }
    uint64_t now_us = mirror_driver_now_us(driver);
    return until_us > now_us ? until_us - now_us : 0;
}

/* ---- life ---- */

static void set_limit(struct mirror_limit *limit, const struct mirror_limit *given) {
    if (given != NULL) {
        *limit = *given;
    } else {
        mirror_limit_init(limit, MIRROR_LIMIT_NONE, 0);
    }
}

enum err mirror_driver_new(const struct mirror_driver_config *config,
                           struct mirror_driver **ret_mirror_driver, struct err_detail *detail) {
    struct mirror_driver *driver = calloc(1, sizeof *driver);
    if (driver == NULL) {
        return err_set(detail, ERR_MEMORY, "no memory for collections");
    }
    driver->config = *config;
    driver->config.clock = config->clock != NULL ? config->clock : &clock_system;
    driver->config.ask_us = config->ask_us > 0 ? config->ask_us : ASK_US_DEFAULT;
    driver->events_end = &driver->events;
    buf_init(&driver->status, STATUS_SIZE_MAX);
    buf_init(&driver->metrics, STATUS_SIZE_MAX);
    buf_init(&driver->rows.out, STATUS_SIZE_MAX);
    set_limit(&driver->limit, config->limit);
    set_limit(&driver->upload_limit, config->upload_limit);
    pthread_mutex_init(&driver->lock, NULL);
    look_at_clock(driver);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_MIRROR, mirror_driver_answer, driver);
    *ret_mirror_driver = driver;
    return ERR_OK;
}

enum err mirror_driver_start(struct mirror_driver *driver, struct err_detail *detail) {
    enum err err = task_start(&driver->task, "mirror", PRIORITY_USUAL, mirror_driver_run, driver);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "no thread for collections");
}

void mirror_driver_stop(struct mirror_driver *driver) {
    task_stop(&driver->task);
}

void mirror_driver_free(struct mirror_driver *driver) {
    struct mirror_driver_event *event = driver->events;
    while (event != NULL) {
        struct mirror_driver_event *next = event->next;
        mirror_driver_event_free(event);
        event = next;
    }
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        free_mirror(driver->mirrors[i]);
    }
    pthread_mutex_destroy(&driver->lock);
    buf_done(&driver->status);
    buf_done(&driver->metrics);
    buf_done(&driver->rows.out);
    free(driver);
}
