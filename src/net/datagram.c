#include "net/datagram.h"

#include <sodium.h>
#include <stdlib.h>

#include "net/datagram_state.h"
#include "net/socket_address.h"

enum { SOCKET_BUFFER_SIZE = 4 << 20 }; /* the system may give less */

/* A key that an address named is asked for again after such a silence: somebody else may be there now. */
static const uint64_t KEY_US_MAX = 10000000;

static const struct bucket_rate address_rate_default = {.per_second = 20000, .burst = 20000};

struct sessions_now datagram_now(const struct datagram *datagram) {
    return (struct sessions_now){
        .monotonic_us = clock_monotonic_us(datagram->config.clock),
        .wall_us = clock_wall_us(datagram->config.clock),
    };
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
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
        status = uv_udp_recv_start(&datagram->socket, on_room, on_input);
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
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    struct sessions_now now = datagram_now(datagram);
    const struct datagram_config *config = &datagram->config;
    enum err err = sessions_init(&datagram->sessions, config->identity, &config->sessions, now.wall_us);
    if (err != ERR_OK) {
        return err;
    }
    err = contacts_init(&datagram->contacts, &config->contacts);
    if (err == ERR_OK) {
        err = lru_init(&datagram->rates, SOCKET_ADDRESS_NETWORK_SIZE, sizeof(struct bucket),
                       DATAGRAM_ADDRESSES_MAX, seed);
        if (err == ERR_OK) {
            return ERR_OK;
        }
        contacts_done(&datagram->contacts);
    }
    sessions_done(&datagram->sessions);
    return err;
}

static void on_closed(uv_handle_t *handle) {
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
        uv_close((uv_handle_t *)&datagram->socket, on_closed);
        return err;
    }
    *ret_datagram = datagram;
    return ERR_OK;
}

void datagram_free(struct datagram *datagram) {
    if (datagram != NULL) {
        uv_close((uv_handle_t *)&datagram->socket, on_closed);
    }
}

struct address datagram_address(const struct datagram *datagram) {
    return datagram->address;
}

const struct datagram_stats *datagram_stats(const struct datagram *datagram) {
    return &datagram->stats;
}

enum err datagram_put(struct datagram *datagram, const struct address *to, struct bytes bytes) {
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

enum err datagram_put_sealed(struct datagram *datagram, const struct address *to, struct session *session,
                             uint8_t kind, struct bytes payload) {
    uint8_t out[DATAGRAM_SIZE_MAX];
    struct sessions_now now = datagram_now(datagram);
    if (!contacts_may_send(&datagram->contacts, to, SEAL_OVERHEAD + payload.size, now.monotonic_us)) {
        datagram->stats.unproved++;
        return ERR_LIMIT;
    }
    size_t size = sessions_seal(&datagram->sessions, session, kind, payload, now.wall_us, out);
    return datagram_put(datagram, to, bytes_of(out, size));
}

void datagram_challenge(struct datagram *datagram, const struct address *to, struct session *session) {
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

void datagram_flush(struct datagram *datagram, const struct peer *peer) {
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

enum err datagram_send(struct datagram *datagram, const struct peer *to, enum datagram_kind kind,
                       struct bytes message) {
    ASSERT(kind >= DATAGRAM_RING && kind < DATAGRAM_KINDS_COUNT);
    ASSERT(message.size <= DATAGRAM_PAYLOAD_SIZE_MAX);
    uint64_t now_us = datagram_now(datagram).monotonic_us;
    const uint8_t *key = to->key;
    if (to->address.port == 0) {
        return ERR_INVALID;
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
