#include <sodium.h>

#include "net/datagram_state.h"
#include "net/socket_address.h"

/* A few a second are enough for people to see. */
static const struct bucket_rate refusals_rate = {.per_second = 20, .burst = 20};
static const struct bucket_rate noise_rate = {.per_second = 1, .burst = 1};
static const uint64_t ECHO_AGE_US_MAX = 10000000;

static bool is_within_rate(struct datagram *datagram, const struct address *from, uint64_t now_us) {
    uint8_t network[SOCKET_ADDRESS_NETWORK_SIZE];
    socket_address_network(from, network);
    struct bucket *bucket = lru_find(&datagram->rates, network);
    if (bucket == NULL) {
        bucket = lru_add(&datagram->rates, network);
    }
    return bucket_take(bucket, datagram->config.address_rate, now_us);
}

static void tell(struct datagram *datagram, const struct datagram_refusal *refusal) {
    if (datagram->config.on_refusal != NULL &&
        bucket_take(&datagram->refusals_shown, refusals_rate, datagram_now(datagram).monotonic_us)) {
        datagram->config.on_refusal(datagram->config.context, refusal);
    }
}

void datagram_tell_noise(struct datagram *datagram, const struct address *from, enum datagram_noise noise) {
    if (datagram->config.on_noise != NULL &&
        bucket_take(&datagram->noise_shown, noise_rate, datagram_now(datagram).monotonic_us)) {
        datagram->config.on_noise(datagram->config.context, from, noise);
    }
}

/* Smaller than what it answers, so it needs no proof. */
static void refuse(struct datagram *datagram, const struct address *from, struct bytes input,
                   const struct seal_head *head, enum plain_reason reason) {
    uint8_t out[PLAIN_SIZE_MAX];
    struct sessions_now now = datagram_now(datagram);
    struct datagram_refusal refusal = {.is_by_us = true, .reason = (uint8_t)reason, .version = head->version};
    struct plain_refuse answer = {.reason = (uint8_t)reason, .version = SEAL_VERSION};
    refusal.peer.address = *from;
    if (reason == PLAIN_REASON_CLOCK) { /* only then do we know whose it is */
        memcpy(refusal.peer.key, head->sender, PEER_KEY_SIZE);
        refusal.ahead_us = (int64_t)head->counter - now.wall_us;
    }
    if (bucket_take(&datagram->refusals_sent, refusals_rate, now.monotonic_us)) {
        memcpy(answer.echo, input.data + SEAL_ECHO_OFFSET, sizeof answer.echo);
        answer.time_us = now.wall_us > 0 ? (uint64_t)now.wall_us : 0;
        if (datagram_put(datagram, from, plain_write_refuse(&answer, out)) == ERR_OK) {
            datagram->stats.refused_by_us++;
        }
    }
    tell(datagram, &refusal);
}

/* Does it repeat counter and salt of something that we sent a moment ago? Others do not know the salt. */
static bool is_echo_of_ours(const struct datagram *datagram, const uint8_t echo[SEAL_ECHO_SIZE]) {
    const struct seal_life *life = &datagram->sessions.life;
    uint64_t counter = 0;
    uint32_t salt = 0;
    for (size_t i = 0; i < 7; i++) {
        counter |= (uint64_t)echo[i] << (8 * i);
    }
    for (size_t i = 0; i < 4; i++) {
        salt |= (uint32_t)echo[7 + i] << (8 * i);
    }
    return salt == life->salt && counter <= life->counter && life->counter - counter <= ECHO_AGE_US_MAX;
}

static bool take_refuse(struct datagram *datagram, const struct address *from, struct bytes input) {
    struct plain_refuse refuse;
    if (!plain_read_refuse(input, &refuse) || !is_echo_of_ours(datagram, refuse.echo)) {
        return false;
    }
    struct datagram_refusal refusal = {.reason = refuse.reason, .version = refuse.version};
    refusal.peer.address = *from;
    if (refuse.time_us <= SEAL_COUNTER_MAX) {
        refusal.ahead_us = (int64_t)refuse.time_us - datagram_now(datagram).wall_us;
    }
    datagram->stats.refused_by_others++;
    tell(datagram, &refusal);
    return true;
}

/* Stateless, and smaller than the question. */
static bool take_who(struct datagram *datagram, const struct address *from, struct bytes input) {
    uint8_t out[PLAIN_SIZE_MAX];
    struct plain_who who;
    struct plain_here here;
    if (!plain_read_who(input, &who)) {
        return false;
    }
    memcpy(here.cookie, who.cookie, sizeof here.cookie);
    memcpy(here.key, datagram->config.identity->key, sizeof here.key);
    (void)datagram_put(datagram, from, plain_write_here(&here, out)); /* who asks will ask again */
    return true;
}

static bool take_here(struct datagram *datagram, const struct address *from, struct bytes input) {
    static const uint8_t nobody[PEER_KEY_SIZE];
    uint64_t now_us = datagram_now(datagram).monotonic_us;
    struct plain_here here;
    if (!plain_read_here(input, &here) ||
        !contacts_is_cookie(&datagram->contacts, from, nobody, now_us, here.cookie) ||
        sodium_is_zero(here.key, sizeof here.key)) {
        return false;
    }
    struct peer peer = {.address = *from};
    memcpy(peer.key, here.key, sizeof peer.key);
    contacts_prove(&datagram->contacts, from, here.key, now_us);
    datagram->stats.proofs++;
    datagram_flush(datagram, &peer);
    return true;
}

/* Answered in a stale life too: else two that both must prove themselves would wait for each other. */
static void take_challenge(struct datagram *datagram, const struct address *from,
                           const struct sessions_opened *opened) {
    if (opened->payload.size == CONTACT_COOKIE_SIZE) {
        (void)datagram_put_sealed(datagram, from, opened->session, DATAGRAM_PROOF, opened->payload);
    } else {
        datagram->stats.malformed++;
    }
}

static void take_proof(struct datagram *datagram, const struct address *from,
                       const struct sessions_opened *opened, bool is_stale) {
    const uint8_t *key = opened->head.sender;
    uint64_t now_us = datagram_now(datagram).monotonic_us;
    if (opened->payload.size != CONTACT_COOKIE_SIZE ||
        !contacts_is_cookie(&datagram->contacts, from, key, now_us, opened->payload.data)) {
        datagram->stats.malformed++;
        return;
    }
    if (is_stale) {
        session_adopt(opened->session, &opened->head);
    }
    contacts_prove(&datagram->contacts, from, key, now_us);
    sessions_know(&datagram->sessions, key);
    datagram->stats.proofs++;
}

/* Authentic; fresh, or stale. */
static void take_opened(struct datagram *datagram, const struct address *from,
                        const struct sessions_opened *opened, bool is_stale) {
    switch (opened->head.kind) {
    case DATAGRAM_CHALLENGE:
        take_challenge(datagram, from, opened);
        return;
    case DATAGRAM_PROOF:
        take_proof(datagram, from, opened, is_stale);
        return;
    case DATAGRAM_RING:
    case DATAGRAM_CHARTER:
    case DATAGRAM_LINKS:
    case DATAGRAM_CROWD:
    case DATAGRAM_GROUP:
        break;
    default:
        datagram->stats.malformed++;
        return;
    }
    datagram_challenge(datagram, from, opened->session);
    if (is_stale) {
        return;
    }
    struct datagram_message message = {
        .from.address = *from,
        .kind = (enum datagram_kind)opened->head.kind,
        .bytes = opened->payload,
    };
    memcpy(message.from.key, opened->head.sender, PEER_KEY_SIZE);
    datagram->stats.delivered++;
    datagram->config.on_message(datagram->config.context, &message);
}

static void take_sealed(struct datagram *datagram, const struct address *from, struct bytes input,
                        struct sessions_now now) {
    struct sessions_opened opened;
    enum seal_verdict verdict = sessions_open(&datagram->sessions, input, now, datagram->opened, &opened);
    datagram->stats.verdicts[verdict]++;
    switch (verdict) {
    case SEAL_OTHER:
        refuse(datagram, from, input, &opened.head, PLAIN_REASON_VERSION);
        break;
    case SEAL_CLOCK:
        refuse(datagram, from, input, &opened.head, PLAIN_REASON_CLOCK);
        break;
    case SEAL_FRESH:
    case SEAL_STALE:
        contacts_received(&datagram->contacts, from, input.size, now.monotonic_us);
        take_opened(datagram, from, &opened, verdict == SEAL_STALE);
        break;
    case SEAL_FORGED:
        datagram_tell_noise(datagram, from, DATAGRAM_NOISE_FORGED);
        break;
    case SEAL_SHORT:
        datagram_tell_noise(datagram, from, DATAGRAM_NOISE_MALFORMED);
        break;
    case SEAL_STRANGE:
    case SEAL_FLOOD:
        datagram_tell_noise(datagram, from, DATAGRAM_NOISE_LIMITED);
        break;
    default: /* replayed: the network does that, too */
        break;
    }
}

void datagram_receive(struct datagram *datagram, const struct address *from, struct bytes input) {
    struct sessions_now now = datagram_now(datagram);
    bool is_sound = true;
    datagram->stats.received++;
    datagram->stats.received_bytes += input.size;
    if (!is_within_rate(datagram, from, now.monotonic_us)) {
        datagram->stats.limited++;
        datagram_tell_noise(datagram, from, DATAGRAM_NOISE_LIMITED);
        return;
    }
    switch (input.size > 0 ? input.data[0] : 0xff) {
    case SEAL_VERSION << 4 | PLAIN_REFUSE:
        is_sound = take_refuse(datagram, from, input);
        break;
    case SEAL_VERSION << 4 | PLAIN_WHO:
        is_sound = take_who(datagram, from, input);
        break;
    case SEAL_VERSION << 4 | PLAIN_HERE:
        is_sound = take_here(datagram, from, input);
        break;
    default:
        take_sealed(datagram, from, input, now);
    }
    if (!is_sound) {
        datagram->stats.malformed++;
        datagram_tell_noise(datagram, from, DATAGRAM_NOISE_MALFORMED);
    }
}
