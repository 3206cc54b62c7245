#include "node/transport/ringing.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/held_port.h"
#include "node/transport/ringing_state.h"
#include "run/thread.h"

enum { PATH_SIZE_MAX = 4096 + 64, PORT_TRIES_MAX = 64 };

/* ---- what it is told ---- */

/* "HOST", "HOST:PORT", an address as base/address.h reads it. */
static enum err parse_contact(struct ringing_contact *contact, const char *text, struct err_detail *detail) {
    struct bytes host = bytes_of_string(text);
    uint64_t port = RINGING_PORT;
    if (address_parse(host, RINGING_PORT, &contact->peer.address)) {
        contact->is_found = true;
    } else {
        size_t colon = bytes_find_byte(host, ':');
        bool is_sound = colon > 0;
        if (colon < host.size) {
            is_sound = is_sound && bytes_to_u64(bytes_skip(host, colon + 1), UINT16_MAX, &port) && port > 0;
            host = bytes_slice(host, 0, colon);
        }
        if (!is_sound || host.size > DNS_NAME_SIZE_MAX) {
            return err_set(detail, ERR_INVALID, "--join: \"%.100s\" is no HOST or HOST:PORT", text);
        }
    }
    for (size_t i = 0; i < host.size; i++) {
        contact->host[i] = (char)byte_lower(host.data[i]);
    }
    contact->port = contact->is_found ? contact->peer.address.port : (uint16_t)port;
    return ERR_OK;
}

static enum err parse_token(struct ringing *ringing, struct err_detail *detail) {
    struct err_detail reason = {0};
    struct bytes text = bytes_trim(bytes_of_string(ringing->config.token));
    enum err err = invitation_parse(text, &ringing->sha256, &ringing->token, ringing->token_seed, &reason);
    if (err != ERR_OK) {
        return err_set(detail, err, "--token: %.200s", err_detail_text(&reason, err));
    }
    ringing->has_token = true;
    return ERR_OK;
}

static enum err read_files(struct ringing *ringing, struct err_detail *detail) {
    const char *directory = ringing->config.directory;
    char path[PATH_SIZE_MAX];
    struct bytes encoded;
    snprintf(path, sizeof path, "%s/ring/charter", directory);
    stat(path, &ringing->seen);
    enum err err = ring_files_read_charter(directory, &ringing->charter, ringing->encoded, &encoded, detail);
    if (err == ERR_OK) {
        ringing->has_charter = true;
        ringing->encoded_size = encoded.size;
        charter_id(&ringing->charter, &ringing->sha256, ringing->id);
        ringing->remembered_count = ring_files_read_peers(directory, ringing->remembered);
    } else if (err != ERR_NOT_FOUND) {
        return err;
    }
    return ring_files_read_membership(directory, &ringing->membership, detail);
}

static enum err prepare(struct ringing *ringing, struct err_detail *detail) {
    const struct ringing_config *config = &ringing->config;
    if (config->first_place < RING_VIRTUAL_MAX &&
        config->first_place + config->places_count > RING_VIRTUAL_MAX) {
        return err_set(detail, ERR_INVALID,
                       "%u places from number %u on: there are %d behind an address, from 0 on",
                       config->places_count, config->first_place, RING_VIRTUAL_MAX);
    }
    enum err err = sha256_init(&ringing->sha256);
    if (err == ERR_OK) {
        err = identity_load(&ringing->identity, config->directory, detail);
    }
    if (err == ERR_OK) {
        err = read_files(ringing, detail);
    }
    if (err == ERR_OK && config->join != NULL) {
        err = parse_contact(&ringing->contact, config->join, detail);
    }
    if (err == ERR_OK && config->token != NULL) {
        err = parse_token(ringing, detail);
    }
    return err;
}

enum err ringing_new(const struct ringing_config *config, struct ringing **ret_ringing,
                     struct err_detail *detail) {
    struct ringing *ringing = calloc(1, sizeof *ringing);
    if (ringing == NULL) {
        return ERR_MEMORY;
    }
    ringing->config = *config;
    ringing->held = HELD_PORT_NONE;
    buf_init(&ringing->text, RINGING_TEXT_SIZE_MAX);
    buf_init(&ringing->own, RINGING_OWN_SIZE_MAX);
    pthread_mutex_init(&ringing->lock, NULL);
    ringing_ask_init(ringing);
    ringing_share_init(ringing);
    enum err err = prepare(ringing, detail);
    if (err != ERR_OK) {
        ringing_free(ringing);
        return err;
    }
    ringing->mapping = ringing->has_charter ? (int)ringing->charter.mapping : -1;
    ringing->has_ring = ringing->has_charter || ringing->contact.host[0] != '\0';
    randombytes_buf(&ringing->seed, sizeof ringing->seed);
    ringing_copy(ringing);
    *ret_ringing = ringing;
    return ERR_OK;
}

void ringing_free(struct ringing *ringing) {
    ASSERT(!ringing->has_loop);
    ringing_beat(ringing);
    if (ringing->ring != NULL) {
        ring_free(ringing->ring);
    }
    if (ringing->gate != NULL) {
        gate_free(ringing->gate);
    }
    ringing_share_done(ringing);
    free(ringing->actions);
    free(ringing->memory);
    if (ringing->sha256.context != NULL) {
        sha256_done(&ringing->sha256);
    }
    sodium_memzero(ringing->token_seed, sizeof ringing->token_seed);
    identity_done(&ringing->identity);
    buf_done(&ringing->text);
    buf_done(&ringing->own);
    pthread_mutex_destroy(&ringing->lock);
    free(ringing);
}

/* ---- the loop ---- */

static bool is_wildcard(const struct address *address) {
    static const uint8_t any[16];
    return memcmp(address->ip, any, sizeof any) == 0 ||
           (address_is_ipv4(address) && memcmp(address->ip + 12, any, 4) == 0);
}

/* The address that the system would send from: no packet leaves. */
static bool find_own_address(struct address *address) {
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201)};
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
                    getsockname(fd, (struct sockaddr *)&from, &size) == 0;
    if (is_found) {
        uint32_t ip = ntohl(from.sin_addr.s_addr);
        *address = address_ipv4((uint8_t)(ip >> 24), (uint8_t)(ip >> 16), (uint8_t)(ip >> 8), (uint8_t)ip,
                                address->port);
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_found;
}

/* Others know one port of this node. Any that is free for streams may be taken for datagrams: then the next.
 */
static enum err bind_any_port(struct ringing *ringing, struct datagram_config *config,
                              struct err_detail *detail) {
    enum err err = ERR_BUSY;
    for (int tries = 0; err == ERR_BUSY && tries < PORT_TRIES_MAX; tries++) {
        struct address address = ringing->self.address;
        held_port_done(&ringing->held);
        err = held_port_take(&address, &ringing->held, detail);
        if (err == ERR_OK) {
            config->address.port = address.port;
            err = datagram_new(config, &ringing->datagram, detail);
        }
    }
    return err;
}

static enum err bind_port(struct ringing *ringing, struct datagram_config *config,
                          struct err_detail *detail) {
    return config->address.port == 0 ? bind_any_port(ringing, config, detail)
                                     : datagram_new(config, &ringing->datagram, detail);
}

static enum err open_socket(struct ringing *ringing, struct err_detail *detail) {
    struct datagram_config config = {
        .loop = &ringing->loop,
        .clock = ringing->config.clock,
        .identity = &ringing->identity,
        .address = ringing->config.address,
        .on_message = ringing_on_message,
        .on_refusal = ringing_on_refusal,
        .on_noise = ringing_on_noise,
        .context = ringing,
    };
    struct peer *self = &ringing->self;
    self->address = config.address;
    memcpy(self->key, ringing->identity.key, PEER_KEY_SIZE);
    if (is_wildcard(&self->address) && !find_own_address(&self->address)) {
        return err_set(detail, ERR_UNREACHABLE,
                       "at which address do others reach this node? name it with --address");
    }
    enum err err = bind_port(ringing, &config, detail);
    if (err != ERR_OK) {
        return err;
    }
    self->address.port = datagram_address(ringing->datagram).port;
    pthread_mutex_lock(&ringing->lock);
    ringing->address = self->address;
    pthread_mutex_unlock(&ringing->lock);
    return ERR_OK;
}

static enum err open_gate(struct ringing *ringing) {
    struct gate_config config = {
        .identity = &ringing->identity,
        .datagram = ringing->datagram,
        .clock = ringing->config.clock,
        .membership = ringing->membership,
        .learned = ringing_on_learned,
        .met = ringing_on_met,
        .complain = ringing_on_complaint,
        .context = ringing,
    };
    return gate_new(&config, &ringing->gate);
}

static enum err open_dns(struct ringing *ringing, struct err_detail *detail) {
    struct dns_config config = {.loop = &ringing->loop, .nameservers = ringing->config.nameservers};
    bool is_needed = ringing->contact.host[0] != '\0' && !ringing->contact.is_found;
    return is_needed ? dns_new(&config, &ringing->dns, detail) : ERR_OK;
}

/* The beat does not touch it before it is taken. */
static void on_news(uv_async_t *async) {
    struct ringing *ringing = async->data;
    struct ringing_post *post = &ringing->from_disk;
    pthread_mutex_lock(&ringing->lock);
    bool is_there = post->has_charter;
    pthread_mutex_unlock(&ringing->lock);
    if (is_there) {
        ringing_take_charter(ringing, &post->charter, bytes_of(post->encoded, post->encoded_size));
        pthread_mutex_lock(&ringing->lock);
        post->has_charter = false;
        pthread_mutex_unlock(&ringing->lock);
    }
}

static void close_all(struct ringing *ringing) {
    uv_close((uv_handle_t *)&ringing->stop, NULL);
    uv_close((uv_handle_t *)&ringing->wake, NULL);
    uv_close((uv_handle_t *)&ringing->tick, NULL);
    for (size_t i = 0; i < RINGING_USERS_COUNT; i++) {
        uv_close((uv_handle_t *)&ringing->others[i], NULL);
    }
    uv_close((uv_handle_t *)&ringing->news, NULL);
    uv_close((uv_handle_t *)&ringing->asked, NULL);
    dns_cancel(&ringing->contact.question);
    if (ringing->dns != NULL) {
        dns_free(ringing->dns);
    }
    if (ringing->datagram != NULL) {
        datagram_free(ringing->datagram);
    }
    held_port_done(&ringing->held);
    ringing->dns = NULL;
    ringing->datagram = NULL;
}

static void close_loop(struct ringing *ringing) {
    uv_run(&ringing->loop, UV_RUN_DEFAULT);
    int result = uv_loop_close(&ringing->loop);
    ASSERT(result == 0);
}

static void on_stop(uv_async_t *async) {
    struct ringing *ringing = async->data;
    pthread_mutex_lock(&ringing->lock);
    ringing->is_running = false;
    pthread_mutex_unlock(&ringing->lock);
    close_all(ringing);
    ringing_ask_cancel(ringing);
}

static void *run(void *context) {
    struct ringing *ringing = context;
    uv_run(&ringing->loop, UV_RUN_DEFAULT);
    return NULL;
}

static enum err open_loop(struct ringing *ringing, struct err_detail *detail) {
    uv_loop_t *loop = &ringing->loop;
    if (uv_loop_init(loop) != 0) {
        return ERR_MEMORY;
    }
    uv_timer_init(loop, &ringing->wake);
    uv_timer_init(loop, &ringing->tick);
    for (size_t i = 0; i < RINGING_USERS_COUNT; i++) {
        uv_timer_init(loop, &ringing->others[i]);
        ringing->others[i].data = ringing;
    }
    uv_async_init(loop, &ringing->stop, on_stop);
    uv_async_init(loop, &ringing->news, on_news);
    uv_async_init(loop, &ringing->asked, ringing_on_asked);
    ringing->wake.data = ringing->tick.data = ringing->stop.data = ringing;
    ringing->news.data = ringing->asked.data = ringing;
    enum err err = open_socket(ringing, detail);
    if (err == ERR_OK) {
        err = open_gate(ringing);
    }
    if (err == ERR_OK) {
        err = open_dns(ringing, detail);
    }
    if (err != ERR_OK) {
        close_all(ringing);
        close_loop(ringing);
    }
    return err;
}

enum err ringing_start(struct ringing *ringing, struct err_detail *detail) {
    return ringing->has_ring ? ringing_open(ringing, detail) : ERR_OK;
}

enum err ringing_open(struct ringing *ringing, struct err_detail *detail) {
    enum err err = ringing->has_loop ? ERR_OK : open_loop(ringing, detail);
    if (err != ERR_OK || ringing->has_loop) {
        return err;
    }
    pthread_mutex_lock(&ringing->lock);
    ringing->is_running = true;
    pthread_mutex_unlock(&ringing->lock);
    uv_timer_start(&ringing->tick, ringing_on_tick, RINGING_TICK_MS, RINGING_TICK_MS);
    ringing_begin(ringing);
    if (thread_start(&ringing->thread, "ring-loop", run, ringing) != 0) {
        on_stop(&ringing->stop);
        close_loop(ringing);
        return err_set(detail, ERR_SYSTEM, "no thread for the ring");
    }
    ringing->has_loop = true;
    return ERR_OK;
}

void ringing_stop(struct ringing *ringing) {
    if (!ringing->has_loop) {
        return;
    }
    uv_async_send(&ringing->stop);
    pthread_join(ringing->thread, NULL);
    close_loop(ringing);
    ringing->has_loop = false;
}

/* ---- files ---- */

static void note_failure(struct ringing *ringing, enum err err, const struct err_detail *detail) {
    if (err != ERR_OK) {
        ringing_note(ringing, "ring: %s", err_detail_text(detail, err));
    }
}

static void write_files(struct ringing *ringing) {
    struct peer peers[RING_FILES_PEERS_MAX];
    struct err_detail detail = {0};
    const char *directory = ringing->config.directory;
    struct ringing_post *post = &ringing->post;
    pthread_mutex_lock(&ringing->lock);
    *post = ringing->to_disk;
    ringing->to_disk.has_charter = false;
    bool has_membership = ringing->has_membership_to_write;
    ringing->has_membership_to_write = false;
    size_t peers_count = ringing->kept_count;
    memcpy(peers, ringing->kept, sizeof peers);
    ringing->kept_count = 0;
    pthread_mutex_unlock(&ringing->lock);
    enum err err = ERR_OK;
    if (has_membership) { /* before the charter: who has one has all that it needs to come back */
        err = ring_files_write_membership(directory, &ringing->membership, &detail);
    }
    if (err == ERR_OK && post->has_charter) {
        err = ring_files_write_charter(directory, bytes_of(post->encoded, post->encoded_size), &detail);
    }
    if (err == ERR_OK && peers_count > 0) {
        err = ring_files_write_peers(directory, peers, peers_count, &detail);
    }
    note_failure(ringing, err, &detail);
}

static bool has_changed(struct ringing *ringing) {
    char path[PATH_SIZE_MAX];
    struct stat now;
    snprintf(path, sizeof path, "%s/ring/charter", ringing->config.directory);
    if (stat(path, &now) != 0) {
        return false;
    }
    bool is_same = now.st_ino == ringing->seen.st_ino && now.st_size == ringing->seen.st_size &&
                   now.st_mtim.tv_sec == ringing->seen.st_mtim.tv_sec &&
                   now.st_mtim.tv_nsec == ringing->seen.st_mtim.tv_nsec;
    ringing->seen = now;
    return !is_same;
}

static void read_charter(struct ringing *ringing) {
    struct err_detail detail = {0};
    struct ringing_post *post = &ringing->post;
    struct bytes encoded;
    enum err err =
        ring_files_read_charter(ringing->config.directory, &post->charter, post->encoded, &encoded, &detail);
    if (err != ERR_OK) {
        note_failure(ringing, err, &detail);
        return;
    }
    post->has_charter = true;
    post->encoded_size = encoded.size;
    pthread_mutex_lock(&ringing->lock);
    if (ringing->is_running) {
        ringing->from_disk = *post;
        uv_async_send(&ringing->news);
    }
    pthread_mutex_unlock(&ringing->lock);
}

void ringing_beat(struct ringing *ringing) {
    write_files(ringing);
    pthread_mutex_lock(&ringing->lock);
    bool is_awaited = ringing->is_running && ringing->has_ring && !ringing->from_disk.has_charter;
    pthread_mutex_unlock(&ringing->lock);
    if (is_awaited && has_changed(ringing)) {
        read_charter(ringing);
    }
}

/* ---- for others ---- */

void ringing_put(struct ringing *ringing, struct buf *out) {
    pthread_mutex_lock(&ringing->lock);
    buf_put(out, buf_bytes(&ringing->text));
    pthread_mutex_unlock(&ringing->lock);
}

bool ringing_address(struct ringing *ringing, struct address *ret_address) {
    pthread_mutex_lock(&ringing->lock);
    bool is_running = ringing->is_running;
    *ret_address = ringing->address;
    pthread_mutex_unlock(&ringing->lock);
    return is_running;
}

const int *ringing_held(const struct ringing *ringing) {
    return ringing->held != HELD_PORT_NONE ? &ringing->held : NULL;
}

bool ringing_has_ring(const struct ringing *ringing) {
    return ringing->has_ring;
}
