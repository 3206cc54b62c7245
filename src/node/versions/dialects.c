#include "node/versions/dialects.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lru.h"
#include "base/retry.h"

enum { DIALECTS_MET_COUNT = 16, RANGE_TEXT_SIZE_MAX = 16, UNANSWERED_MAX = 3 };
static const uint64_t SAY_US = 1000000; /* between two hellos; doubled while there is no answer */
static const uint64_t SAY_US_MAX = 600 * UINT64_C(1000000);

struct dialects_entry {
    struct dialects_known known;
    struct retry retry;      /* of our hellos */
    uint64_t answered_at_us; /* 0: never */
    bool is_main_proved;     /* of two addresses: it has said so from the main one */
};

struct dialects {
    struct dialect own;
    const struct clock *clock;
    bool has_ipv4; /* there is a way, as below: set before other threads ask */
    bool has_ipv6;
    pthread_mutex_t lock;
    struct lru entries;                  /* lock: by key */
    struct peer met[DIALECTS_MET_COUNT]; /* lock: those that said something last */
    size_t met_next;                     /* lock */
};

struct dialects *dialects_new(const struct dialect *own, const struct clock *clock) {
    struct dialects *dialects = calloc(1, sizeof *dialects);
    if (dialects == NULL) {
        return NULL;
    }
    dialects->own = *own;
    dialects->clock = clock != NULL ? clock : &clock_system;
    dialects->has_ipv4 = dialects->has_ipv6 = true;
    if (lru_init(&dialects->entries, PEER_KEY_SIZE, sizeof(struct dialects_entry), DIALECTS_MAX) != ERR_OK) {
        free(dialects);
        return NULL;
    }
    pthread_mutex_init(&dialects->lock, NULL);
    return dialects;
}

void dialects_free(struct dialects *dialects) {
    if (dialects != NULL) {
        pthread_mutex_destroy(&dialects->lock);
        lru_done(&dialects->entries);
        free(dialects);
    }
}

const struct dialect *dialects_own(const struct dialects *dialects) {
    return &dialects->own;
}

/* ---- the table; the lock is held ---- */

/* NULL: an address without a key, of which nobody has said anything lately. */
static const uint8_t *dialects_key_of(const struct dialects *dialects, const struct peer *peer) {
    if (peer_has_key(peer)) {
        return peer->key;
    }
    for (size_t i = 0; i < DIALECTS_MET_COUNT; i++) {
        const struct peer *met = &dialects->met[i];
        if (peer_has_key(met) && address_equal(&met->address, &peer->address)) {
            return met->key;
        }
    }
    return NULL;
}

static struct dialects_entry *dialects_get(struct dialects *dialects, const struct peer *peer) {
    const uint8_t *key = dialects_key_of(dialects, peer);
    return key != NULL ? lru_find(&dialects->entries, key) : NULL;
}

static struct dialects_entry *dialects_make(struct dialects *dialects, const struct peer *peer) {
    struct dialects_entry *entry = dialects_get(dialects, peer);
    return entry != NULL ? entry : lru_add(&dialects->entries, peer->key);
}

static void dialects_note_met(struct dialects *dialects, const struct peer *peer) {
    size_t at = 0;
    while (at < DIALECTS_MET_COUNT && !address_equal(&dialects->met[at].address, &peer->address)) {
        at++;
    }
    if (at == DIALECTS_MET_COUNT) {
        at = dialects->met_next;
        dialects->met_next = (dialects->met_next + 1) % DIALECTS_MET_COUNT;
    }
    dialects->met[at] = *peer;
}

/* ---- two addresses ---- */

void dialects_set_ways(struct dialects *dialects, bool has_ipv4, bool has_ipv6, const struct address *main,
                       const struct address *second) {
    dialects->has_ipv4 = has_ipv4;
    dialects->has_ipv6 = has_ipv6;
    dialects->own.has_two = second->port > 0;
    dialects->own.main = *main;
    dialects->own.second = *second;
}

bool dialects_has_way(const struct dialects *dialects, const struct address *address) {
    return address_is_ipv4(address) ? dialects->has_ipv4 : dialects->has_ipv6;
}

/* May it count as being at its main address? The lock is held. */
static bool dialects_is_at_main(const struct dialects *dialects, const struct dialects_entry *entry) {
    const struct dialect *dialect = &entry->known.dialect;
    return dialect->has_two && (entry->is_main_proved || !dialects_has_way(dialects, &dialect->main));
}

/* Has it said all that we want to hear? The lock is held. */
static bool dialects_is_settled(const struct dialects *dialects, const struct dialects_entry *entry) {
    return entry->known.is_known && (!entry->known.dialect.has_two || dialects_is_at_main(dialects, entry));
}

struct address dialects_route(struct dialects *dialects, const struct peer *to) {
    struct address address = to->address;
    if (dialects_has_way(dialects, &address) || !peer_has_key(to)) {
        return address;
    }
    pthread_mutex_lock(&dialects->lock);
    const struct dialects_entry *entry = lru_find(&dialects->entries, to->key);
    if (entry != NULL && entry->known.dialect.has_two &&
        address_equal(&entry->known.dialect.main, &address)) {
        address = entry->known.dialect.second;
    }
    pthread_mutex_unlock(&dialects->lock);
    return address;
}

bool dialects_find_main(struct dialects *dialects, const struct peer *from, struct address *ret_main) {
    bool is_at_main = true;
    *ret_main = from->address;
    pthread_mutex_lock(&dialects->lock);
    const struct dialects_entry *entry = lru_find(&dialects->entries, from->key);
    if (entry != NULL && entry->known.dialect.has_two &&
        address_equal(&entry->known.dialect.second, &from->address)) {
        *ret_main = entry->known.dialect.main;
        is_at_main = dialects_is_at_main(dialects, entry);
    }
    pthread_mutex_unlock(&dialects->lock);
    return is_at_main;
}

/* ---- hearing ---- */

static uint16_t dialects_note(struct dialects *dialects, const struct peer *peer, bool is_said,
                              const struct dialect *dialect) {
    ASSERT(peer_has_key(peer));
    uint16_t version = dialect_common(&dialects->own, dialect);
    pthread_mutex_lock(&dialects->lock);
    struct dialects_entry *entry = dialects_make(dialects, peer);
    const struct dialect *before = &entry->known.dialect;
    bool is_same_pair = before->has_two && dialect->has_two && address_equal(&before->main, &dialect->main) &&
                        address_equal(&before->second, &dialect->second);
    entry->is_main_proved = (is_same_pair && entry->is_main_proved) ||
                            (dialect->has_two && address_equal(&peer->address, &dialect->main));
    entry->known = (struct dialects_known){
        .is_known = true, .is_said = is_said, .dialect = *dialect, .version = version};
    /* It may be another program the next time, or its hellos were lost. */
    if (dialects_is_settled(dialects, entry)) {
        entry->retry = (struct retry){.due_us = clock_monotonic_us(dialects->clock) + SAY_US_MAX};
    }
    dialects_note_met(dialects, peer);
    pthread_mutex_unlock(&dialects->lock);
    return version;
}

uint16_t dialects_hear(struct dialects *dialects, const struct peer *peer, const struct dialect *dialect) {
    return dialects_note(dialects, peer, true, dialect);
}

uint16_t dialects_hear_none(struct dialects *dialects, const struct peer *peer) {
    return dialects_note(dialects, peer, false, &dialect_of_silence);
}

void dialects_hear_other(struct dialects *dialects, const struct peer *peer) {
    uint64_t now_us = clock_monotonic_us(dialects->clock);
    pthread_mutex_lock(&dialects->lock);
    const struct dialects_entry *entry = dialects_get(dialects, peer);
    bool is_old = entry != NULL && !entry->known.is_known && entry->retry.tries_count >= UNANSWERED_MAX &&
                  now_us - entry->retry.sent_at_us >= SAY_US;
    pthread_mutex_unlock(&dialects->lock);
    if (is_old) {
        (void)dialects_hear_none(dialects, peer);
    }
}

/* ---- asking ---- */

struct dialects_known dialects_find(struct dialects *dialects, const struct peer *peer) {
    struct dialects_known known = {.dialect = dialect_of_silence,
                                   .version = dialect_common(&dialects->own, &dialect_of_silence)};
    pthread_mutex_lock(&dialects->lock);
    const struct dialects_entry *entry = dialects_get(dialects, peer);
    if (entry != NULL && entry->known.is_known) {
        known = entry->known;
    }
    pthread_mutex_unlock(&dialects->lock);
    return known;
}

enum dialects_verdict dialects_judge(struct dialects *dialects, const struct peer *peer) {
    struct dialects_known known = dialects_find(dialects, peer);
    return known.version > 0 ? DIALECTS_SPEAK : known.is_known ? DIALECTS_REFUSE : DIALECTS_WAIT;
}

bool dialects_has(struct dialects *dialects, const struct peer *peer, enum dialect_feature feature) {
    struct dialects_known known = dialects_find(dialects, peer);
    return known.version > 0 && dialect_has(&known.dialect, feature);
}

/* ---- sites ---- */

/* Names have no slash. */
static void dialects_format_network(const struct address *address, char out[DIALECTS_SITE_SIZE_MAX]) {
    const uint8_t *ip = address->ip;
    if (address_is_ipv4(address)) {
        snprintf(out, DIALECTS_SITE_SIZE_MAX, "%u.%u.0.0/16", ip[12], ip[13]);
    } else {
        snprintf(out, DIALECTS_SITE_SIZE_MAX, "%x:%x:%x::/48", ip[0] << 8 | ip[1], ip[2] << 8 | ip[3],
                 ip[4] << 8 | ip[5]);
    }
}

const char *dialects_site(struct dialects *dialects, const struct peer *peer, bool is_self,
                          char out[DIALECTS_SITE_SIZE_MAX]) {
    struct dialect dialect = is_self ? dialects->own : dialects_find(dialects, peer).dialect;
    if (dialect.site[0] != '\0') {
        snprintf(out, DIALECTS_SITE_SIZE_MAX, "%s", dialect.site);
    } else {
        dialects_format_network(&peer->address, out);
    }
    return out;
}

/* ---- saying ---- */

bool dialects_take_turn(struct dialects *dialects, const struct peer *peer) {
    if (!peer_has_key(peer)) {
        return true; /* whoever speaks to an address alone has a pace of its own */
    }
    uint64_t now_us = clock_monotonic_us(dialects->clock);
    pthread_mutex_lock(&dialects->lock);
    struct dialects_entry *entry = dialects_make(dialects, peer);
    bool is_open = !entry->known.is_said || !dialects_is_settled(dialects, entry);
    bool is_due = is_open && retry_is_due(&entry->retry, now_us);
    if (is_due) {
        retry_sent_doubling(&entry->retry, SAY_US, SAY_US_MAX, now_us);
    }
    pthread_mutex_unlock(&dialects->lock);
    return is_due;
}

bool dialects_may_answer(struct dialects *dialects, const struct peer *peer) {
    uint64_t now_us = clock_monotonic_us(dialects->clock);
    pthread_mutex_lock(&dialects->lock);
    struct dialects_entry *entry = dialects_make(dialects, peer);
    bool may = entry->answered_at_us == 0 || now_us - entry->answered_at_us >= SAY_US;
    entry->answered_at_us = may ? now_us : entry->answered_at_us;
    pthread_mutex_unlock(&dialects->lock);
    return may;
}

/* ---- for people ---- */

static const char *dialects_format_range(const struct dialect *dialect, char out[RANGE_TEXT_SIZE_MAX]) {
    if (dialect->lowest == dialect->highest) {
        snprintf(out, RANGE_TEXT_SIZE_MAX, "%u", dialect->lowest);
    } else {
        snprintf(out, RANGE_TEXT_SIZE_MAX, "%u to %u", dialect->lowest, dialect->highest);
    }
    return out;
}

const char *dialects_explain(struct dialects *dialects, const struct peer *peer,
                             char out[DIALECTS_TEXT_SIZE_MAX]) {
    char theirs[RANGE_TEXT_SIZE_MAX];
    char ours[RANGE_TEXT_SIZE_MAX];
    struct dialects_known known = dialects_find(dialects, peer);
    bool is_one = known.dialect.lowest == known.dialect.highest;
    snprintf(out, DIALECTS_TEXT_SIZE_MAX, "it speaks version%s %s of the protocol, this node %s",
             is_one ? "" : "s", dialects_format_range(&known.dialect, theirs),
             dialects_format_range(&dialects->own, ours));
    return out;
}

const char *dialects_describe(const struct dialects_known *known, char out[DIALECTS_TEXT_SIZE_MAX]) {
    char range[RANGE_TEXT_SIZE_MAX];
    const char *program = !known->is_said                     ? "0.2 or earlier"
                          : known->dialect.program[0] == '\0' ? "a program without a version"
                                                              : known->dialect.program;
    if (known->is_known) {
        snprintf(out, DIALECTS_TEXT_SIZE_MAX, "%s, protocol %s", program,
                 dialects_format_range(&known->dialect, range));
    } else {
        snprintf(out, DIALECTS_TEXT_SIZE_MAX, "not known yet");
    }
    return out;
}
