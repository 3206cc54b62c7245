/* Of mirroring: what others ask, on the bulk thread. */
#include <stdlib.h>

#include "node/mirror/mirroring_state.h"

enum { GIVEN_TIMES = 2 };
static const uint64_t WAVE_US = 10000000;

#define NOT_FOR_YOU "this collection is not for you"

/* Under the lock, as the next. NULL: not one of ours. */
static struct mirroring_mirror *find_by_id(const struct mirroring *mirroring,
                                           const uint8_t id[VERSION_ID_SIZE]) {
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        struct collection *collection = mirroring->mirrors[i]->collection;
        if (collection != NULL && memcmp(collection_id(collection), id, VERSION_ID_SIZE) == 0) {
            return mirroring->mirrors[i];
        }
    }
    return NULL;
}

static struct mirroring_mirror *find_by_name(const struct mirroring *mirroring,
                                             const struct mirroring_question *question) {
    static const uint8_t zeros[PEER_KEY_SIZE];
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        struct mirroring_mirror *mirror = mirroring->mirrors[i];
        bool is_any = memcmp(question->publisher, zeros, PEER_KEY_SIZE) == 0;
        if (mirror->collection != NULL && bytes_equal(question->name, bytes_of_string(mirror->setup.name)) &&
            (is_any || memcmp(question->publisher, mirror->setup.publisher, PEER_KEY_SIZE) == 0)) {
            return mirror;
        }
    }
    return NULL;
}

/* Who may not read it is not told either whether it is here. */
static bool may_ask(const struct mirroring_mirror *mirror, const struct peer *from, bool is_member) {
    return is_member || (mirror != NULL && mirroring_is_reader(mirror, from));
}

/* Tell the thread what he has, so that he is a source, and is told when there is news. */
static void pass_on(struct mirroring *mirroring, const struct peer *from, const char *name,
                    const struct mirroring_question *question) {
    struct peer peer = *from;
    peer.address.port = question->port; /* the one of the stream is of no use later */
    pthread_mutex_lock(&mirroring->lock);
    bool is_full = mirroring->heard_count >= MIRRORING_EVENTS_MAX;
    pthread_mutex_unlock(&mirroring->lock);
    struct mirroring_event *event =
        is_full ? NULL : mirroring_event_new(mirroring, MIRRORING_HEARD, name, &peer);
    if (event != NULL) {
        buf_put(&event->answer, question->statement);
        mirroring_queue(event);
    }
}

static enum err answer_version(struct mirroring *mirroring, const struct peer *from, bool is_member,
                               const struct mirroring_question *question, struct buf *answer,
                               struct err_detail *detail) {
    uint8_t memory[VERSION_SIZE_MAX];
    char name[VERSION_NAME_SIZE_MAX + 1];
    struct bytes statement = bytes_of(memory, 0);
    pthread_mutex_lock(&mirroring->lock);
    const struct mirroring_mirror *mirror = find_by_name(mirroring, question);
    bool is_allowed = may_ask(mirror, from, is_member);
    bool is_here = mirror != NULL && is_allowed;
    if (is_here) {
        statement = collection_statement(mirror->collection, memory);
        memcpy(name, mirror->setup.name, sizeof name);
    }
    pthread_mutex_unlock(&mirroring->lock);
    if (!is_allowed) {
        return err_set(detail, ERR_PERMISSION, NOT_FOR_YOU);
    }
    mirroring_put_version_answer(answer, mirroring->config.self.key, statement);
    if (is_here) {
        pass_on(mirroring, from, name, question);
    }
    return answer->err;
}

/*
 * A publisher with many neighbours would send each of them a copy, while they could have it of each other. So
 * it gives each chunk twice; who comes third asks the others, and comes back where that is of no use. When
 * nobody has asked for a while, the wave is over and it is counted anew.
 */
static uint8_t *count_of(struct mirroring_mirror *mirror, const uint8_t digest[SHA256_SIZE]) {
    if (!collection_setup_publishes(&mirror->setup) || !collection_lists(mirror->collection, digest) ||
        map_reserve(&mirror->given, mirror->given.count + 1) != ERR_OK) {
        return NULL;
    }
    return map_put(&mirror->given, bytes_of(digest, SHA256_SIZE));
}

static void begin_wave(struct mirroring_mirror *mirror) {
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    if (now_us >= mirror->given_at_us + WAVE_US) {
        map_clear(&mirror->given);
    }
    mirror->given_at_us = now_us;
}

/* As many of the digests as fit, from the first on. Under the lock. */
static enum err give(struct mirroring_mirror *mirror, const struct mirroring_question *question,
                     uint8_t *memory, struct buf *answer) {
    bool may_come = false;
    size_t given_size = 0;
    begin_wave(mirror);
    mirroring_begin_chunks_answer(answer);
    for (size_t i = 0; i < question->digests_count; i++) {
        const uint8_t *digest = question->digests.data + i * SHA256_SIZE;
        size_t size = 0;
        uint8_t *count = count_of(mirror, digest);
        if (count != NULL && *count >= GIVEN_TIMES && !question->is_needed) {
            mirroring_put_no_chunk(answer, true);
            mirror->withheld_count++;
            continue;
        }
        enum err err = collection_give(mirror->collection, digest, memory, &size);
        if (err != ERR_OK) {
            may_come = may_come || err == ERR_BUSY;
            mirroring_put_no_chunk(answer, false);
            continue;
        }
        if (given_size + size > MIRRORING_GIVEN_SIZE_MAX) {
            break;
        }
        mirroring_put_chunk(answer, bytes_of(memory, size));
        given_size += size;
        if (count != NULL && *count < GIVEN_TIMES) {
            (*count)++;
        }
    }
    mirroring_end_chunks_answer(answer, may_come);
    mirror->given_size += given_size;
    mirror_limit_take(&mirror->mirroring->upload_limit, given_size, mirroring_now_us(mirror->mirroring));
    mirror->answers_count++;
    return answer->err;
}

/* What is given is paid for afterwards: an answer may be larger than what is left. */
static bool has_allowance(struct mirroring *mirroring) {
    return mirror_limit_left(&mirroring->upload_limit, mirroring_now_us(mirroring)) > 0;
}

static enum err answer_chunks(struct mirroring *mirroring, const struct peer *from, bool is_member,
                              const struct mirroring_question *question, struct buf *answer,
                              struct err_detail *detail) {
    uint8_t *memory = malloc(CHUNKER_SIZE_MAX);
    if (memory == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_lock(&mirroring->lock);
    struct mirroring_mirror *mirror = find_by_id(mirroring, question->id);
    bool is_allowed = may_ask(mirror, from, is_member);
    bool is_busy = is_allowed && mirror != NULL && !has_allowance(mirroring);
    enum err err = !is_allowed      ? err_set(detail, ERR_PERMISSION, NOT_FOR_YOU)
                   : is_busy        ? ERR_BUSY
                   : mirror != NULL ? give(mirror, question, memory, answer)
                                    : err_set(detail, ERR_NOT_FOUND, "no such collection here");
    pthread_mutex_unlock(&mirroring->lock);
    free(memory);
    return err;
}

static enum err answer_parts(struct mirroring *mirroring, const struct peer *from, bool is_member,
                             const struct mirroring_question *question, struct buf *answer,
                             struct err_detail *detail) {
    uint8_t memory[VERSION_SIZE_MAX];
    struct mirroring_parts parts = {.bits = bytes_of(NULL, 0)};
    pthread_mutex_lock(&mirroring->lock);
    struct mirroring_mirror *mirror = find_by_id(mirroring, question->id);
    bool is_allowed = may_ask(mirror, from, is_member);
    if (mirror != NULL && is_allowed) {
        mirror->answers_count++;
        const struct mirroring_wanted *wanted = &mirror->wanted;
        bool is_staged = collection_stages(mirror->collection, question->root);
        parts.is_whole = !is_staged && collection_statement(mirror->collection, memory).size > 0;
        if (is_staged && memcmp(wanted->root, question->root, SHA256_SIZE) == 0) {
            parts.count = wanted->parts_count;
            parts.bits = bytes_of(wanted->parts, (parts.count + 7) / 8);
        }
        mirroring_put_parts_answer(answer, &parts);
    }
    pthread_mutex_unlock(&mirroring->lock);
    return !is_allowed      ? err_set(detail, ERR_PERMISSION, NOT_FOR_YOU)
           : mirror != NULL ? answer->err
                            : err_set(detail, ERR_NOT_FOUND, "no such collection here");
}

enum err mirroring_answer(void *context, const struct peer *from, struct bytes input, struct buf *answer,
                          struct err_detail *detail) {
    struct mirroring *mirroring = context;
    struct mirroring_question question;
    enum err err = mirroring_read_question(input, &question, detail);
    if (err != ERR_OK) {
        mirroring->config.blame(mirroring->config.context, from,
                                "asks for collections in a way that is none");
        return err;
    }
    const struct mirroring_config *config = &mirroring->config;
    bool is_member = config->is_member == NULL || config->is_member(config->context, from);
    switch (question.kind) {
    case MIRRORING_VERSION:
        return answer_version(mirroring, from, is_member, &question, answer, detail);
    case MIRRORING_CHUNKS:
        return answer_chunks(mirroring, from, is_member, &question, answer, detail);
    default:
        return answer_parts(mirroring, from, is_member, &question, answer, detail);
    }
}
