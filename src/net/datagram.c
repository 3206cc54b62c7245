#include "net/datagram.h"

#include <sodium.h>
#include <stdlib.h>

#include "net/socket_address.h"

enum { DATAGRAM_WAITING_COUNT = 32, DATAGRAM_ADDRESSES_MAX = 4096 };
static const uint64_t DATAGRAM_WAIT_US = 3000000; /* for the key of an address */

/* A message whose receiver's key is being asked for. */
struct datagram_waiting {
    struct address to;
    uint64_t until_us; /* 0: free */
    enum datagram_kind kind;
    size_t size;
    uint8_t bytes[DATAGRAM_PAYLOAD_SIZE_MAX];
};

struct datagram {
    uv_udp_t socket;
    struct datagram_config config;
    struct address address;
    struct sessions sessions;
    struct contacts contacts;
    struct lru rates; /* IP address or /64: struct bucket */
    struct bucket refusals_sent;
    struct bucket refusals_shown;
    struct bucket noise_shown;
    struct datagram_stats stats;
    struct datagram_waiting waiting[DATAGRAM_WAITING_COUNT];
    size_t waiting_next; /* the one to use, and to lose, next */
    uint8_t input[DATAGRAM_SIZE_MAX + 1];
    uint8_t opened[DATAGRAM_SIZE_MAX];
};

/* uv_udp_recv_cb's work for one datagram. */
void datagram_receive(struct datagram *datagram, const struct address *from, struct bytes input);

/* A few a second are enough for people to see. */
static const struct bucket_rate refusals_rate = {.per_second = 20, .burst = 20};
static const struct bucket_rate noise_rate = {.per_second = 1, .burst = 1};
static const uint64_t ECHO_AGE_US_MAX = 10000000;

static struct sessions_now datagram_now(const struct datagram *datagram) {
    return (struct sessions_now){
        .monotonic_us = clock_monotonic_us(datagram->config.clock),
        .wall_us = clock_wall_us(datagram->config.clock),
    };
}

/* As it is, if the address may get it. */
static enum err datagram_put(struct datagram *datagram, const struct address *to, struct bytes bytes) {
    struct sockaddr_storage name;
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes.data, (unsigned)bytes.size);
    const struct sockaddr *there = address_is_ipv4(&datagram->address) ? socket_address_put(to, &name)
                                                                       : socket_address_put_mapped(to, &name);
    int status = uv_udp_try_send(&datagram->socket, &buffer, 1, there);
    if (status < 0) {
        datagram->stats.dropped++;
        bool is_full = status == UV_EAGAIN || status == UV_ENOBUFS || status == UV_ENOMEM;
        return is_full ? ERR_BUSY : ERR_UNREACHABLE;
    }
    datagram->stats.sent++;
    datagram->stats.sent_bytes += bytes.size;
    return ERR_OK;
}

/* Seal one of any kind. */
static enum err datagram_put_sealed(struct datagram *datagram, const struct address *to,
                                    struct session *session, uint8_t kind, struct bytes payload) {
    uint8_t out[DATAGRAM_SIZE_MAX];
    struct sessions_now now = datagram_now(datagram);
    if (!contacts_may_send(&datagram->contacts, to, SEAL_OVERHEAD + payload.size, now.monotonic_us)) {
        datagram->stats.unproved++;
        return ERR_LIMIT;
    }
    size_t size = sessions_seal(&datagram->sessions, session, kind, payload, now.wall_us, out);
    return datagram_put(datagram, to, bytes_of(out, size));
}

/* Ask for a proof, unless that was done a moment ago. */
static void datagram_challenge(struct datagram *datagram, const struct address *to, struct session *session) {
    uint8_t cookie[CONTACT_COOKIE_SIZE];
    struct sessions_now now = datagram_now(datagram);
    if (!contacts_need_proof(&datagram->contacts, to, now.monotonic_us)) {
        return;
    }
    contacts_cookie(&datagram->contacts, to, session->key, now.monotonic_us, cookie);
    if (datagram_put_sealed(datagram, to, session, DATAGRAM_CHALLENGE, bytes_of(cookie, sizeof cookie)) ==
        ERR_OK) {
        datagram->stats.challenges++;
    }
}

/* The key of that address is known now: send what waited for it. */
static void datagram_flush(struct datagram *datagram, const struct peer *peer) {
    uint64_t now_us = datagram_now(datagram).monotonic_us;
    for (size_t i = 0; i < DATAGRAM_WAITING_COUNT; i++) {
        struct datagram_waiting *waiting = &datagram->waiting[i];
        if (waiting->until_us == 0 || !address_equal(&waiting->to, &peer->address)) {
            continue;
        }
        bool is_late = now_us > waiting->until_us;
        waiting->until_us = 0;
        datagram->stats.unknown += is_late;
        if (!is_late) {
            /* What is lost here is lost as on the network. */
            (void)datagram_send(datagram, peer, waiting->kind, bytes_of(waiting->bytes, waiting->size));
        }
    }
}

static bool is_within_rate(struct datagram *datagram, const struct address *from, uint64_t now_us) {
    uint8_t network[SOCKET_ADDRESS_NETWORK_SIZE];
    socket_address_network(from, network);
    struct bucket *bucket = lru_find(&datagram->rates, network);
    if (bucket == NULL) {
        bucket = lru_add(&datagram->rates, network);
    }
    return bucket_take(bucket, datagram->config.address_rate, now_us);
}

static void datagram_tell(struct datagram *datagram, const struct datagram_refusal *refusal) {
    if (datagram->config.on_refusal != NULL &&
        bucket_take(&datagram->refusals_shown, refusals_rate, datagram_now(datagram).monotonic_us)) {
        datagram->config.on_refusal(datagram->config.context, refusal);
    }
}

/* For people, now and then. */
static void datagram_tell_noise(struct datagram *datagram, const struct address *from,
                                enum datagram_noise noise) {
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
    datagram_tell(datagram, &refusal);
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
    datagram_tell(datagram, &refusal);
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
    (void)datagram_put(datagram, from, plain_write_here(&here, out)); /* the node will ask again */
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
    case DATAGRAM_HELLO:
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

enum { SOCKET_BUFFER_SIZE = 4 << 20 }; /* the system may give less */

/* A key that an address named is asked for again after such a silence: somebody else may be there now. */
static const uint64_t KEY_US_MAX = 10000000;

static const struct bucket_rate address_rate_default = {.per_second = 20000, .burst = 20000};

static void datagram_on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    struct datagram *datagram = handle->data;
    (void)suggested;
    *buffer = uv_buf_init((char *)datagram->input, sizeof datagram->input);
}

static void on_input(uv_udp_t *socket, ssize_t size, const uv_buf_t *buffer, const struct sockaddr *name,
                     unsigned flags) {
    struct datagram *datagram = socket->data;
    struct address from;
    (void)buffer;
    /* Errors of the socket are those of earlier sends (ICMP): nothing to do. */
    if (size < 0 || name == NULL || !socket_address_get(name, &from)) {
        return;
    }
    if ((flags & UV_UDP_PARTIAL) != 0 || (size_t)size > DATAGRAM_SIZE_MAX) {
        datagram->stats.received++;
        datagram->stats.malformed++;
        datagram_tell_noise(datagram, &from, DATAGRAM_NOISE_MALFORMED);
        return;
    }
    datagram_receive(datagram, &from, bytes_of(datagram->input, (size_t)size));
}

static enum err bind_socket(struct datagram *datagram, struct err_detail *detail) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    struct sockaddr_storage name;
    int name_size = sizeof name;
    int buffer_size = SOCKET_BUFFER_SIZE;
    uv_handle_t *handle = (uv_handle_t *)&datagram->socket;
    int status = uv_udp_bind(&datagram->socket, socket_address_put(&datagram->config.address, &name), 0);
    if (status == 0) {
        status = uv_udp_recv_start(&datagram->socket, datagram_on_room, on_input);
    }
    if (status == 0) {
        status = uv_udp_getsockname(&datagram->socket, (struct sockaddr *)&name, &name_size);
    }
    if (status != 0 || !socket_address_get((struct sockaddr *)&name, &datagram->address)) {
        return err_set(detail, err_from_errno(-status), "cannot receive datagrams at %s: %s",
                       address_format(&datagram->config.address, text), uv_strerror(status));
    }
    /* Best effort: smaller buffers only lose more in a burst. */
    (void)uv_recv_buffer_size(handle, &buffer_size);
    buffer_size = SOCKET_BUFFER_SIZE;
    (void)uv_send_buffer_size(handle, &buffer_size);
    return ERR_OK;
}

static enum err init_tables(struct datagram *datagram) {
    struct sessions_now now = datagram_now(datagram);
    const struct datagram_config *config = &datagram->config;
    enum err err = sessions_init(&datagram->sessions, config->identity, &config->sessions, now.wall_us);
    if (err != ERR_OK) {
        return err;
    }
    err = contacts_init(&datagram->contacts, &config->contacts);
    if (err == ERR_OK) {
        err = lru_init(&datagram->rates, SOCKET_ADDRESS_NETWORK_SIZE, sizeof(struct bucket),
                       DATAGRAM_ADDRESSES_MAX);
        if (err == ERR_OK) {
            return ERR_OK;
        }
        contacts_done(&datagram->contacts);
    }
    sessions_done(&datagram->sessions);
    return err;
}

static void datagram_on_closed(uv_handle_t *handle) {
    struct datagram *datagram = handle->data;
    lru_done(&datagram->rates);
    contacts_done(&datagram->contacts);
    sessions_done(&datagram->sessions);
    free(datagram);
}

enum err datagram_new(const struct datagram_config *config, struct datagram **ret_datagram,
                      struct err_detail *detail) {
    struct datagram *datagram = calloc(1, sizeof *datagram);
    if (datagram == NULL) {
        return err_set(detail, ERR_MEMORY, "no memory for the datagram socket");
    }
    datagram->config = *config;
    datagram->config.clock = config->clock != NULL ? config->clock : &clock_system;
    if (config->address_rate.burst == 0) {
        datagram->config.address_rate = address_rate_default;
    }
    enum err err = init_tables(datagram);
    if (err != ERR_OK) {
        free(datagram);
        return err_set(detail, err, "no memory for the tables of peers");
    }
    int status = uv_udp_init(config->loop, &datagram->socket);
    ASSERT(status == 0); /* it only fills the handle in: the socket is made by bind */
    datagram->socket.data = datagram;
    err = bind_socket(datagram, detail);
    if (err != ERR_OK) {
        uv_close((uv_handle_t *)&datagram->socket, datagram_on_closed);
        return err;
    }
    *ret_datagram = datagram;
    return ERR_OK;
}

void datagram_free(struct datagram *datagram) {
    if (datagram != NULL) {
        uv_close((uv_handle_t *)&datagram->socket, datagram_on_closed);
    }
}

struct address datagram_address(const struct datagram *datagram) {
    return datagram->address;
}

const struct datagram_stats *datagram_stats(const struct datagram *datagram) {
    return &datagram->stats;
}

/* Nobody told us who is there: ask, and keep the message for a while. */
static enum err ask_and_keep(struct datagram *datagram, const struct address *to, enum datagram_kind kind,
                             struct bytes message) {
    static const uint8_t nobody[PEER_KEY_SIZE];
    uint8_t out[PLAIN_SIZE_MAX];
    struct plain_who who;
    struct sessions_now now = datagram_now(datagram);
    struct datagram_waiting *waiting = &datagram->waiting[datagram->waiting_next];
    if (!contacts_may_send(&datagram->contacts, to, PLAIN_WHO_SIZE, now.monotonic_us)) {
        datagram->stats.unproved++;
        return ERR_LIMIT;
    }
    datagram->stats.unknown += waiting->until_us != 0;
    datagram->waiting_next = (datagram->waiting_next + 1) % DATAGRAM_WAITING_COUNT;
    waiting->to = *to;
    waiting->until_us = now.monotonic_us + DATAGRAM_WAIT_US;
    waiting->kind = kind;
    waiting->size = message.size;
    if (message.size > 0) {
        memcpy(waiting->bytes, message.data, message.size);
    }
    contacts_cookie(&datagram->contacts, to, nobody, now.monotonic_us, who.cookie);
    return datagram_put(datagram, to, plain_write_who(&who, out));
}

enum err datagram_send(struct datagram *datagram, const struct peer *peer, enum datagram_kind kind,
                       struct bytes message) {
    struct peer routed = *peer;
    const struct peer *to = &routed;
    ASSERT(kind >= DATAGRAM_RING && kind < DATAGRAM_KINDS_COUNT);
    ASSERT(message.size <= DATAGRAM_PAYLOAD_SIZE_MAX);
    uint64_t now_us = datagram_now(datagram).monotonic_us;
    const uint8_t *key = to->key;
    if (to->address.port == 0) {
        return ERR_INVALID;
    }
    if (datagram->config.route != NULL && peer_has_key(peer)) {
        routed.address = datagram->config.route(datagram->config.context, peer);
    }
    if (sodium_is_zero(key, PEER_KEY_SIZE)) {
        const struct contact *contact = contacts_find(&datagram->contacts, &to->address);
        bool is_known = contact != NULL && contact_is_proved(contact, now_us) &&
                        now_us - contact->heard_at_us < KEY_US_MAX;
        if (!is_known) {
            return ask_and_keep(datagram, &to->address, kind, message);
        }
        key = contact->key;
    }
    struct session *session = sessions_with(&datagram->sessions, key);
    if (session == NULL) {
        return ERR_INVALID;
    }
    datagram_challenge(datagram, &to->address, session); /* first, while there is credit for it */
    return datagram_put_sealed(datagram, &to->address, session, (uint8_t)kind, message);
}
