/* Of mirroring: what others ask, on the bulk thread. */
#include <stdlib.h>

#include "node/mirroring_state.h"

static const uint64_t TURN_US = 2000000; /* after his last question a receiver's place is free */

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

static struct collection *find_by_name(const struct mirroring *mirroring,
                                       const struct mirroring_question *question) {
    static const uint8_t zeros[PEER_KEY_SIZE];
    for (size_t i = 0; i < mirroring->mirrors_count; i++) {
        const struct mirroring_mirror *mirror = mirroring->mirrors[i];
        bool is_any = memcmp(question->publisher, zeros, PEER_KEY_SIZE) == 0;
        if (mirror->collection != NULL && bytes_equal(question->name, bytes_of_string(mirror->setup.name)) &&
            (is_any || memcmp(question->publisher, mirror->setup.publisher, PEER_KEY_SIZE) == 0)) {
            return mirror->collection;
        }
    }
    return NULL;
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

static enum err answer_version(struct mirroring *mirroring, const struct peer *from,
                               const struct mirroring_question *question, struct buf *answer) {
    uint8_t memory[VERSION_SIZE_MAX];
    char name[VERSION_NAME_SIZE_MAX + 1];
    struct bytes statement = bytes_of(memory, 0);
    pthread_mutex_lock(&mirroring->lock);
    struct collection *collection = find_by_name(mirroring, question);
    if (collection != NULL) {
        statement = collection_statement(collection, memory);
        memcpy(name, collection_setup_of(collection)->name, sizeof name);
    }
    pthread_mutex_unlock(&mirroring->lock);
    mirroring_put_version_answer(answer, mirroring->config.self.key, statement);
    if (collection != NULL) {
        pass_on(mirroring, from, name, question);
    }
    return answer->err;
}

/* As many of the digests as fit, from the first on. Under the lock. */
static enum err give(struct mirroring_mirror *mirror, const struct mirroring_question *question,
                     uint8_t *memory, struct buf *answer) {
    bool may_come = false;
    size_t given_size = 0;
    mirroring_begin_chunks_answer(answer);
    for (size_t i = 0; i < question->digests_count; i++) {
        size_t size = 0;
        enum err err =
            collection_give(mirror->collection, question->digests.data + i * SHA256_SIZE, memory, &size);
        if (err == ERR_OK && given_size + size > MIRRORING_GIVEN_SIZE_MAX) {
            break;
        }
        may_come = may_come || err == ERR_BUSY;
        mirroring_put_chunk(answer, bytes_of(memory, err == ERR_OK ? size : 0));
        given_size += err == ERR_OK ? size : 0;
    }
    mirroring_end_chunks_answer(answer, may_come);
    mirror->given_size += given_size;
    mirror->answers_count++;
    return answer->err;
}

/*
 * Whoever has many neighbours would otherwise send each of them a copy, while they could have it of each
 * other. Who is turned away comes back in a second, or finds another source.
 */
static bool has_turn(struct mirroring_mirror *mirror, const struct peer *from) {
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    struct mirroring_follower *found = NULL;
    for (size_t i = 0; i < MIRRORING_RECEIVERS_MAX; i++) {
        struct mirroring_follower *receiver = &mirror->receivers[i];
        if (memcmp(receiver->peer.key, from->key, PEER_KEY_SIZE) == 0) {
            found = receiver;
            break;
        }
        if (now_us >= receiver->heard_us + TURN_US) {
            found = receiver;
        }
    }
    if (found != NULL) {
        *found = (struct mirroring_follower){.peer = *from, .heard_us = now_us};
    }
    return found != NULL;
}

static enum err answer_chunks(struct mirroring *mirroring, const struct peer *from,
                              const struct mirroring_question *question, struct buf *answer,
                              struct err_detail *detail) {
    uint8_t *memory = malloc(CHUNKER_SIZE_MAX);
    if (memory == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_lock(&mirroring->lock);
    struct mirroring_mirror *mirror = find_by_id(mirroring, question->id);
    enum err err = mirror != NULL && !has_turn(mirror, from) ? ERR_BUSY
                   : mirror != NULL                          ? give(mirror, question, memory, answer)
                                    : err_set(detail, ERR_NOT_FOUND, "no such collection here");
    pthread_mutex_unlock(&mirroring->lock);
    free(memory);
    return err;
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
    return question.kind == MIRRORING_VERSION ? answer_version(mirroring, from, &question, answer)
                                              : answer_chunks(mirroring, from, &question, answer, detail);
}
