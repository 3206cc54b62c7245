#include "net/sessions.h"

static const struct sessions_config defaults = {
    .known_max = 1024,
    .guests_max = 256,
    .skew_us_max = UINT64_C(600000000),
    .strangers = {.per_second = 1000, .burst = 500},
    .peer_rate = {.per_second = 20000, .burst = 20000},
};

static struct sessions_config sessions_complete(const struct sessions_config *given) {
    struct sessions_config config = *given;
    config.known_max = config.known_max > 0 ? config.known_max : defaults.known_max;
    config.guests_max = config.guests_max > 0 ? config.guests_max : defaults.guests_max;
    config.skew_us_max = config.skew_us_max > 0 ? config.skew_us_max : defaults.skew_us_max;
    config.strangers = config.strangers.burst > 0 ? config.strangers : defaults.strangers;
    config.peer_rate = config.peer_rate.burst > 0 ? config.peer_rate : defaults.peer_rate;
    return config;
}

enum err sessions_init(struct sessions *sessions, const struct identity *identity,
                       const struct sessions_config *config, int64_t wall_us) {
    *sessions = (struct sessions){.identity = identity, .config = sessions_complete(config)};
    seal_life_begin(&sessions->life, wall_us);
    sessions->floor = sessions->life.counter;
    enum err err =
        lru_init(&sessions->known, PEER_KEY_SIZE, sizeof(struct session), sessions->config.known_max);
    if (err == ERR_OK) {
        err = lru_init(&sessions->guests, PEER_KEY_SIZE, sizeof(struct session), sessions->config.guests_max);
    }
    if (err != ERR_OK) {
        sessions_done(sessions);
    }
    return err;
}

void sessions_done(struct sessions *sessions) {
    lru_done(&sessions->known);
    lru_done(&sessions->guests);
}

static struct session *sessions_find(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE]) {
    struct session *session = lru_find(&sessions->known, key);
    return session != NULL ? session : lru_find(&sessions->guests, key);
}

/* A new place in the table; what it throws out is remembered by the floor. */
static struct session *sessions_add(struct sessions *sessions, struct lru *table,
                                    const uint8_t key[PEER_KEY_SIZE]) {
    const struct session *out = lru_next_out(table);
    if (out != NULL && out->has_life && arrivals_highest(&out->arrivals) > sessions->floor) {
        sessions->floor = arrivals_highest(&out->arrivals);
    }
    struct session *session = lru_add(table, key);
    memcpy(session->key, key, PEER_KEY_SIZE);
    return session;
}

static struct session *add_guest(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE],
                                 const struct seal_keys *keys) {
    struct session *session = sessions_add(sessions, &sessions->guests, key);
    session->keys = *keys;
    return session;
}

struct session *sessions_with(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE]) {
    struct seal_keys keys;
    struct session *session = sessions_find(sessions, key);
    if (session != NULL) {
        return session;
    }
    return seal_keys_make(sessions->identity, key, &keys) == ERR_OK ? add_guest(sessions, key, &keys) : NULL;
}

void sessions_know(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE]) {
    const struct session *guest = lru_find(&sessions->guests, key);
    if (guest == NULL) {
        return;
    }
    struct session *session = sessions_add(sessions, &sessions->known, key);
    *session = *guest;
    session->is_known = true;
    lru_remove(&sessions->guests, key);
}

static bool is_retired(const struct session *session, uint32_t salt) {
    uint32_t count =
        session->retired_count < SESSION_RETIRED_COUNT ? session->retired_count : SESSION_RETIRED_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        if (session->retired[i] == salt) {
            return true;
        }
    }
    return false;
}

static void begin_life(struct session *session, uint32_t salt, uint64_t lowest) {
    if (session->has_life) {
        session->retired[session->retired_count++ % SESSION_RETIRED_COUNT] = session->salt;
    }
    session->has_life = true;
    session->salt = salt;
    arrivals_begin(&session->arrivals, lowest);
}

void session_adopt(struct session *session, const struct seal_head *head) {
    begin_life(session, head->salt, head->counter);
}

static enum seal_verdict judge_life(const struct sessions *sessions, struct session *session,
                                    const struct seal_head *head) {
    if (session->has_life && head->salt == session->salt) {
        return arrivals_take(&session->arrivals, head->counter) ? SEAL_FRESH : SEAL_REPLAYED;
    }
    if (is_retired(session, head->salt)) {
        return SEAL_REPLAYED;
    }
    uint64_t lowest = session->has_life ? arrivals_highest(&session->arrivals) : 0;
    lowest = lowest > sessions->floor ? lowest : sessions->floor;
    if (head->counter <= lowest) {
        return SEAL_STALE;
    }
    begin_life(session, head->salt, lowest);
    return arrivals_take(&session->arrivals, head->counter) ? SEAL_FRESH : SEAL_REPLAYED;
}

static bool is_in_time(const struct sessions *sessions, uint64_t counter, int64_t wall_us) {
    uint64_t now = wall_us > 0 ? (uint64_t)wall_us : 0;
    return (counter > now ? counter - now : now - counter) <= sessions->config.skew_us_max;
}

/* The keys for a sender that is not in the tables. */
static enum seal_verdict meet(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE], uint64_t now_us,
                              struct seal_keys *ret_keys) {
    if (!bucket_take(&sessions->strangers, sessions->config.strangers, now_us)) {
        return SEAL_STRANGE;
    }
    return seal_keys_make(sessions->identity, key, ret_keys) == ERR_OK ? SEAL_FRESH : SEAL_FORGED;
}

enum seal_verdict sessions_open(struct sessions *sessions, struct bytes datagram, struct sessions_now now,
                                uint8_t *out, struct sessions_opened *ret_opened) {
    struct seal_keys keys;
    struct seal_head *head = &ret_opened->head;
    ret_opened->session = NULL;
    ret_opened->payload = bytes_of(NULL, 0);
    if (!seal_read_head(datagram, head)) {
        return SEAL_SHORT;
    }
    if (head->version != SEAL_VERSION) {
        return SEAL_OTHER;
    }
    struct session *session = sessions_find(sessions, head->sender);
    if (session == NULL) {
        enum seal_verdict verdict = meet(sessions, head->sender, now.monotonic_us, &keys);
        if (verdict != SEAL_FRESH) {
            return verdict;
        }
    }
    if (!seal_read(session != NULL ? session->keys.receiving : keys.receiving, datagram, out,
                   &ret_opened->payload)) {
        return SEAL_FORGED;
    }
    if (!is_in_time(sessions, head->counter, now.wall_us)) {
        return SEAL_CLOCK;
    }
    session = session != NULL ? session : add_guest(sessions, head->sender, &keys);
    enum seal_verdict verdict = judge_life(sessions, session, head);
    if (verdict != SEAL_REPLAYED &&
        !bucket_take(&session->bucket, sessions->config.peer_rate, now.monotonic_us)) {
        return SEAL_FLOOD;
    }
    ret_opened->session = verdict == SEAL_REPLAYED ? NULL : session;
    return verdict;
}

size_t sessions_seal(struct sessions *sessions, const struct session *session, uint8_t kind,
                     struct bytes payload, int64_t wall_us, uint8_t *out) {
    seal_life_next(&sessions->life, wall_us);
    struct seal_head head = {
        .version = SEAL_VERSION,
        .kind = kind,
        .counter = sessions->life.counter,
        .salt = sessions->life.salt,
    };
    memcpy(head.sender, sessions->identity->key, PEER_KEY_SIZE);
    return seal_write(session->keys.sending, &head, payload, out);
}
