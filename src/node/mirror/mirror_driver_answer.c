/* What other nodes ask, answered on the RPC thread. */
#include <stdlib.h>

#include "node/mirror/mirror_driver_state.h"

/* ---- neighbours that people named, and nodes that may read though they share no group or ring ---- */

static const uint64_t ASK_AGAIN_US = 1000000;
static const uint64_t REFUSED_US = 3000000; /* until somebody there may have changed the rules */

/* ---- asking ---- */

void mirror_driver_ask_named(struct mirror_driver_mirror *mirror) {
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        struct mirror_driver_named *named = &mirror->named[i];
        bool is_needed = !named->is_known || mirror->mirror == NULL;
        if (is_needed && !named->is_asked && now_us >= named->ask_at_us) {
            struct peer peer = {.address = mirror->setup.sources[i]};
            named->is_asked = true;
            mirror_driver_ask_version(mirror, &peer, i, false);
        }
    }
}

static void tell_refusal(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    mirror_driver_note(
        mirror->driver,
        "collection %s: %s does not let this node read it; its owner would have to name this key "
        "as a reader: %s",
        mirror->setup.name, address_format(&peer->address, place),
        identity_key_format(mirror->driver->config.self.key, key));
}

void mirror_driver_take_named(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event,
                              enum err err, const uint8_t key[PEER_KEY_SIZE]) {
    struct mirror_driver_named *named = &mirror->named[event->named_index];
    uint64_t wait_us = err == ERR_PERMISSION ? REFUSED_US : ASK_AGAIN_US;
    if (err == ERR_PERMISSION && named->err != err) {
        tell_refusal(mirror, &event->peer);
    }
    named->is_asked = false;
    named->err = err;
    named->ask_at_us = mirror_driver_now_us(mirror->driver) + wait_us;
    if (err == ERR_OK) {
        pthread_mutex_lock(&mirror->driver->lock);
        named->is_known = true;
        named->peer = event->peer;
        memcpy(named->peer.key, key, PEER_KEY_SIZE); /* a lie is of no use: the next stream needs it */
        pthread_mutex_unlock(&mirror->driver->lock);
    }
}

/* ---- being asked ---- */

/* One whose word people here want to hear. The lock is held. */
static bool is_wanted(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    const struct collection_setup *setup = &mirror->setup;
    bool is_wanted = setup->has_publisher && memcmp(setup->publisher, peer->key, PEER_KEY_SIZE) == 0;
    for (size_t i = 0; i < setup->sources_count && !is_wanted; i++) {
        const struct mirror_driver_named *named = &mirror->named[i];
        is_wanted = named->is_known && memcmp(named->peer.key, peer->key, PEER_KEY_SIZE) == 0;
    }
    return is_wanted;
}

/* We have just called the peer, and it has not yet said its key. */
static bool is_called(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        if (address_equal(&mirror->setup.sources[i], &peer->address)) {
            return true;
        }
    }
    return false;
}

static bool mirror_driver_is_reader(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    return collection_readers_have(&mirror->setup.readers, peer->key) || is_wanted(mirror, peer);
}

void mirror_driver_set_readers(struct mirror_driver_mirror *mirror,
                               const struct collection_readers *readers) {
    if (!collection_readers_equal(readers, &mirror->setup.readers)) {
        pthread_mutex_lock(&mirror->driver->lock);
        mirror->setup.readers = *readers;
        pthread_mutex_unlock(&mirror->driver->lock);
    }
}

/* If anything is for others, a node that asks for something else is answered, too: that it may not have it.
 */
bool mirror_driver_hears(struct mirror_driver *driver, const struct peer *peer) {
    bool is_heard = false;
    pthread_mutex_lock(&driver->lock);
    for (size_t i = 0; i < driver->mirrors_count && !is_heard; i++) {
        const struct mirror_driver_mirror *mirror = driver->mirrors[i];
        is_heard = collection_readers_are_any(&mirror->setup.readers) || is_wanted(mirror, peer) ||
                   is_called(mirror, peer);
    }
    pthread_mutex_unlock(&driver->lock);
    return is_heard;
}

enum { GIVEN_TIMES = 2 };
static const uint64_t WAVE_US = 10000000;

#define NOT_FOR_YOU "this collection is not for you"

/* Under the lock, as the next. NULL: not one of ours. */
static struct mirror_driver_mirror *find_by_id(const struct mirror_driver *driver,
                                               const uint8_t id[VERSION_ID_SIZE]) {
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        struct collection *collection = driver->mirrors[i]->collection;
        if (collection != NULL && memcmp(collection_id(collection), id, VERSION_ID_SIZE) == 0) {
            return driver->mirrors[i];
        }
    }
    return NULL;
}

static struct mirror_driver_mirror *find_by_name(const struct mirror_driver *driver,
                                                 const struct mirror_driver_question *question) {
    static const uint8_t zeros[PEER_KEY_SIZE];
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        struct mirror_driver_mirror *mirror = driver->mirrors[i];
        bool is_any = memcmp(question->publisher, zeros, PEER_KEY_SIZE) == 0;
        if (mirror->collection != NULL && bytes_equal(question->name, bytes_of_string(mirror->setup.name)) &&
            (is_any || memcmp(question->publisher, mirror->setup.publisher, PEER_KEY_SIZE) == 0)) {
            return mirror;
        }
    }
    return NULL;
}

/* A node that may not read it is not told either whether it is here. */
static bool may_ask(const struct mirror_driver_mirror *mirror, const struct peer *from, bool is_member) {
    return is_member || (mirror != NULL && mirror_driver_is_reader(mirror, from));
}

/* Tell the task what the peer has, so that it is a source, and is told when there is news. */
static void pass_on(struct mirror_driver *driver, const struct peer *from, const char *name,
                    const struct mirror_driver_question *question) {
    struct peer peer = *from;
    peer.address.port = question->port; /* the one of the stream is of no use later */
    pthread_mutex_lock(&driver->lock);
    bool is_full = driver->heard_count >= MIRROR_DRIVER_EVENTS_MAX;
    pthread_mutex_unlock(&driver->lock);
    struct mirror_driver_event *event =
        is_full ? NULL : mirror_driver_event_new(driver, MIRROR_DRIVER_HEARD, name, &peer);
    if (event != NULL) {
        buf_put(&event->answer, question->statement);
        mirror_driver_queue(event);
    }
}

static enum err answer_version(struct mirror_driver *driver, const struct peer *from, bool is_member,
                               const struct mirror_driver_question *question, struct buf *answer,
                               struct err_detail *detail) {
    uint8_t memory[VERSION_SIZE_MAX];
    char name[VERSION_NAME_SIZE_MAX + 1];
    struct bytes statement = bytes_of(memory, 0);
    pthread_mutex_lock(&driver->lock);
    const struct mirror_driver_mirror *mirror = find_by_name(driver, question);
    bool is_allowed = may_ask(mirror, from, is_member);
    bool is_here = mirror != NULL && is_allowed;
    if (is_here) {
        statement = collection_statement(mirror->collection, memory);
        memcpy(name, mirror->setup.name, sizeof name);
    }
    pthread_mutex_unlock(&driver->lock);
    if (!is_allowed) {
        return err_set(detail, ERR_PERMISSION, NOT_FOR_YOU);
    }
    mirror_driver_put_version_answer(answer, driver->config.self.key, statement);
    if (is_here) {
        pass_on(driver, from, name, question);
    }
    return answer->err;
}

/*
 * A publisher with many neighbours would send each of them a copy, while they could have it of each other. So
 * it gives each chunk twice; a third one asks the others, and comes back if that is of no use. When
 * nobody has asked for a while, the wave is over and it is counted anew.
 */
static uint8_t *mirror_count_of(struct mirror_driver_mirror *mirror, const uint8_t digest[SHA256_SIZE]) {
    if (!collection_setup_publishes(&mirror->setup) || !collection_lists(mirror->collection, digest) ||
        map_reserve(&mirror->given, mirror->given.count + 1) != ERR_OK) {
        return NULL;
    }
    return map_put(&mirror->given, bytes_of(digest, SHA256_SIZE));
}

static void begin_wave(struct mirror_driver_mirror *mirror) {
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    if (now_us >= mirror->given_at_us + WAVE_US) {
        map_clear(&mirror->given);
    }
    mirror->given_at_us = now_us;
}

/* As many of the digests as fit, from the first on. Under the lock. */
static enum err mirror_give(struct mirror_driver_mirror *mirror,
                            const struct mirror_driver_question *question, uint8_t *memory,
                            struct buf *answer) {
    bool may_come = false;
    size_t given_size = 0;
    begin_wave(mirror);
    mirror_driver_begin_chunks_answer(answer);
    for (size_t i = 0; i < question->digests_count; i++) {
        const uint8_t *digest = question->digests.data + i * SHA256_SIZE;
        size_t size = 0;
        uint8_t *count = mirror_count_of(mirror, digest);
        if (count != NULL && *count >= GIVEN_TIMES && !question->is_needed) {
            mirror_driver_put_no_chunk(answer, true);
            mirror->withheld_count++;
            continue;
        }
        enum err err = collection_give(mirror->collection, digest, memory, &size);
        if (err != ERR_OK) {
            may_come = may_come || err == ERR_BUSY;
            mirror_driver_put_no_chunk(answer, false);
            continue;
        }
        if (given_size + size > MIRROR_DRIVER_GIVEN_SIZE_MAX) {
            break;
        }
        mirror_driver_put_chunk(answer, bytes_of(memory, size));
        given_size += size;
        if (count != NULL && *count < GIVEN_TIMES) {
            (*count)++;
        }
    }
    mirror_driver_end_chunks_answer(answer, may_come);
    mirror->given_size += given_size;
    mirror_limit_take(&mirror->driver->upload_limit, given_size, mirror_driver_now_us(mirror->driver));
    mirror->answers_count++;
    return answer->err;
}

/* What is given is paid for afterwards: an answer may be larger than what is left. */
static bool has_allowance(struct mirror_driver *driver) {
    return mirror_limit_left(&driver->upload_limit, mirror_driver_now_us(driver)) > 0;
}

static enum err answer_chunks(struct mirror_driver *driver, const struct peer *from, bool is_member,
                              const struct mirror_driver_question *question, struct buf *answer,
                              struct err_detail *detail) {
    uint8_t *memory = malloc(CHUNKER_SIZE_MAX);
    if (memory == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_lock(&driver->lock);
    struct mirror_driver_mirror *mirror = find_by_id(driver, question->id);
    bool is_allowed = may_ask(mirror, from, is_member);
    bool is_busy = is_allowed && mirror != NULL && !has_allowance(driver);
    enum err err = !is_allowed      ? err_set(detail, ERR_PERMISSION, NOT_FOR_YOU)
                   : is_busy        ? ERR_BUSY
                   : mirror != NULL ? mirror_give(mirror, question, memory, answer)
                                    : err_set(detail, ERR_NOT_FOUND, "no such collection here");
    pthread_mutex_unlock(&driver->lock);
    free(memory);
    return err;
}

static enum err answer_parts(struct mirror_driver *driver, const struct peer *from, bool is_member,
                             const struct mirror_driver_question *question, struct buf *answer,
                             struct err_detail *detail) {
    uint8_t memory[VERSION_SIZE_MAX];
    struct mirror_driver_parts parts = {.bits = bytes_of(NULL, 0)};
    pthread_mutex_lock(&driver->lock);
    struct mirror_driver_mirror *mirror = find_by_id(driver, question->id);
    bool is_allowed = may_ask(mirror, from, is_member);
    if (mirror != NULL && is_allowed) {
        mirror->answers_count++;
        const struct mirror_driver_wanted *wanted = &mirror->wanted;
        bool is_staged = collection_stages(mirror->collection, question->root);
        parts.is_whole = !is_staged && collection_statement(mirror->collection, memory).size > 0;
        if (is_staged && memcmp(wanted->root, question->root, SHA256_SIZE) == 0) {
            parts.count = wanted->parts_count;
            parts.bits = bytes_of(wanted->parts, (parts.count + 7) / 8);
        }
        mirror_driver_put_parts_answer(answer, &parts);
    }
    pthread_mutex_unlock(&driver->lock);
    return !is_allowed      ? err_set(detail, ERR_PERMISSION, NOT_FOR_YOU)
           : mirror != NULL ? answer->err
                            : err_set(detail, ERR_NOT_FOUND, "no such collection here");
}

enum err mirror_driver_answer(void *context, const struct peer *from, struct bytes input, struct buf *answer,
                              struct err_detail *detail) {
    struct mirror_driver *driver = context;
    struct mirror_driver_question question;
    enum err err = mirror_driver_read_question(input, &question, detail);
    if (err != ERR_OK) {
        driver->config.blame(driver->config.context, from, "asks for collections in a way that is none");
        return err;
    }
    const struct mirror_driver_config *config = &driver->config;
    bool is_member = config->is_member == NULL || config->is_member(config->context, from);
    switch (question.kind) {
    case MIRROR_DRIVER_VERSION:
        return answer_version(driver, from, is_member, &question, answer, detail);
    case MIRROR_DRIVER_CHUNKS:
        return answer_chunks(driver, from, is_member, &question, answer, detail);
    default:
        return answer_parts(driver, from, is_member, &question, answer, detail);
    }
}
