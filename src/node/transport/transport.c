#include "node/transport/transport.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/gateway.h"
#include "net/held_port.h"
#include "node/transport/transport_state.h"

/* ---- for the tenants: members, errands on the loop, blame ---- */

static const uint64_t LOOK_UP_US = 1000000;

/* The lock is held. */
static void transport_put_key(struct transport *transport, const uint8_t key[PEER_KEY_SIZE]) {
    if (map_reserve(&transport->admitted, transport->admitted.count + 1) != ERR_OK) {
        map_clear(&transport->admitted); /* nodes that are still here will be seen again */
    }
    map_put(&transport->admitted, bytes_of(key, PEER_KEY_SIZE));
}

void transport_share_charter(struct transport *transport) {
    const struct charter *charter = &transport->charter;
    pthread_mutex_lock(&transport->lock);
    map_clear(&transport->admitted);
    transport->admits_all = charter->is_open;
    for (uint32_t i = 0; charter->is_open && i < charter->removed_count; i++) {
        transport_put_key(transport, charter->removed[i]);
    }
    pthread_mutex_unlock(&transport->lock);
    for (size_t i = 0; i < transport->tenants_count; i++) {
        const struct transport_tenant *tenant = &transport->tenants[i];
        if (tenant->charter != NULL) {
            tenant->charter(tenant->context, charter, transport->id);
        }
    }
    transport_share_membership(transport, transport->identity.key, &transport->membership);
}

void transport_share_membership(struct transport *transport, const uint8_t key[PEER_KEY_SIZE],
                                const struct membership *membership) {
    for (size_t i = 0; i < transport->tenants_count && membership->is_there; i++) {
        const struct transport_tenant *tenant = &transport->tenants[i];
        if (tenant->member != NULL) {
            tenant->member(tenant->context, key, membership);
        }
    }
}

void transport_share_admitted(struct transport *transport, const struct peer *peer) {
    pthread_mutex_lock(&transport->lock);
    if (!transport->admits_all && map_get(&transport->admitted, bytes_of(peer->key, PEER_KEY_SIZE)) == NULL) {
        transport_put_key(transport, peer->key);
    }
    pthread_mutex_unlock(&transport->lock);
}

const struct identity *transport_identity(const struct transport *transport) {
    return &transport->identity;
}

bool transport_admits(struct transport *transport, const struct peer *peer) {
    pthread_mutex_lock(&transport->lock);
    bool is_named = map_get(&transport->admitted, bytes_of(peer->key, PEER_KEY_SIZE)) != NULL;
    bool is_admitted = transport->admits_all ? !is_named : is_named;
    pthread_mutex_unlock(&transport->lock);
    return is_admitted;
}

/* ---- blame ---- */

/*
 * The address at which the owner of a key answers as a member. A stream that it opened has another port, and
 * what only others say of it could be another's address. Some thousand virtual nodes are looked at, so a node
 * that breaks the rules all the time is looked up once a second.
 */
static const struct peer *find_member(struct transport *transport, const uint8_t key[PEER_KEY_SIZE]) {
    uint64_t now_us = transport_now_us(transport);
    struct peer *member = &transport->blamed;
    if (now_us < transport->blamed_until_us && memcmp(member->key, key, PEER_KEY_SIZE) == 0) {
        return member;
    }
    *member = (struct peer){0};
    memcpy(member->key, key, PEER_KEY_SIZE);
    uint32_t count = transport->ring != NULL ? ring_known_count(transport->ring) : 0;
    for (uint32_t i = 0; i < count && member->address.port == 0; i++) {
        struct ring_known known = ring_known_at(transport->ring, i);
        if (known.heard_at_us > 0 && memcmp(known.vnode.peer.key, key, PEER_KEY_SIZE) == 0) {
            *member = known.vnode.peer;
        }
    }
    transport->blamed_until_us = now_us + LOOK_UP_US;
    return member;
}

static void accuse(struct transport *transport, const struct peer *peer, const char *what) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    const struct peer *member = find_member(transport, peer->key);
    if (member->address.port > 0) {
        transport_complain(transport, "%s is blamed: it %.150s", address_format(&member->address, address),
                           what);
    } else {
        transport_complain(transport, "%s, the node %s, is blamed: it %.150s",
                           address_format(&peer->address, address), identity_key_format(peer->key, key),
                           what);
    }
}

/* The member of that key; if the ring does not know it, the peer itself. */
static const struct peer *find_member_or(struct transport *transport, const struct peer *peer) {
    const struct peer *member = find_member(transport, peer->key);
    return member->address.port > 0 ? member : peer;
}

/* ---- errands ---- */

/* About a peer. */
struct errand {
    struct transport *transport;
    struct peer peer;
    char sentence[COMPLAINT_SIZE_MAX]; /* blame the node for it; empty: greet it */
    bool is_refusal;                   /* the sentence is why it is refused */
};

static void transport_run_errand(void *context) {
    struct errand *errand = context;
    struct transport *transport = errand->transport;
    if (errand->is_refusal) {
        gate_refuse_version(transport->gate, find_member_or(transport, &errand->peer), errand->sentence);
    } else if (errand->sentence[0] != '\0') {
        accuse(transport, &errand->peer, errand->sentence);
    } else if (transport->has_charter) {
        gate_greet(transport->gate, &errand->peer);
    }
    free(errand);
}

bool transport_post(struct transport *transport, void (*run)(void *context), void *context) {
    pthread_mutex_lock(&transport->lock);
    bool is_taken = transport->is_running && loop_call(&transport->loop, run, context) == ERR_OK;
    pthread_mutex_unlock(&transport->lock);
    return is_taken;
}

static void transport_send_errand(struct transport *transport, const struct peer *peer, bool is_refusal,
                                  const char *sentence) {
    struct errand *errand = malloc(sizeof *errand);
    if (errand != NULL) {
        *errand = (struct errand){.transport = transport, .peer = *peer, .is_refusal = is_refusal};
        snprintf(errand->sentence, sizeof errand->sentence, "%s", sentence);
    }
    if (errand != NULL && !transport_post(transport, transport_run_errand, errand)) {
        free(errand); /* if there are too many, the first ones are enough */
    }
}

void transport_blame(struct transport *transport, const struct peer *peer, const char *sentence) {
    transport_send_errand(transport, peer, false, sentence);
}

void transport_refuse(struct transport *transport, const struct peer *peer, const char *reason) {
    transport_send_errand(transport, peer, true, reason);
}

void transport_greet(struct transport *transport, const struct peer *peer) {
    transport_send_errand(transport, peer, false, "");
}

/* ---- tenants ---- */

void transport_add(struct transport *transport, const struct transport_tenant *tenant) {
    ASSERT(!transport->has_loop && transport->tenants_count < TRANSPORT_TENANTS_MAX);
    ASSERT(tenant->kind == 0 || tenant->receive != NULL);
    transport->tenants[transport->tenants_count++] = *tenant;
}

static size_t find_tenant(const struct transport *transport, unsigned kind) {
    size_t index = 0;
    while (transport->tenants[index].kind != kind) {
        index++;
        ASSERT(index < transport->tenants_count);
    }
    return index;
}

void transport_send(struct transport *transport, const struct peer *to, unsigned kind, struct bytes message) {
    if (!transport_speaks(transport, to) || !transport_is_recognized(transport, to)) {
        return;
    }
    if (transport->tenants[find_tenant(transport, kind)].is_for_members) {
        gate_introduce(transport->gate, to); /* others need not know our ring */
    }
    (void)datagram_send(transport->datagram, to, (enum datagram_kind)kind, message); /* may be lost, as any */
}

void transport_wake_at(struct transport *transport, unsigned kind, uint64_t at_us) {
    struct loop_timer *timer = &transport->wakes[find_tenant(transport, kind)];
    uint64_t now = transport_now_us(transport);
    if (at_us == STEP_NEVER_US) {
        loop_timer_stop(timer);
    } else {
        loop_timer_set(timer, at_us <= now ? 0 : at_us - now, 0);
    }
}

enum { PATH_SIZE_MAX = 4096 + 64, PORT_TRIES_MAX = 64 };

/* ---- what it is told ---- */

/* "HOST", "HOST:PORT", an address as base/address.h reads it. */
static enum err parse_contact(struct transport_contact *contact, const char *text,
                              struct err_detail *detail) {
    struct bytes host = bytes_of_string(text);
    uint64_t port = TRANSPORT_PORT;
    if (address_parse(host, TRANSPORT_PORT, &contact->peer.address)) {
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

static enum err parse_token(struct transport *transport, struct err_detail *detail) {
    struct err_detail reason = {0};
    struct bytes text = bytes_trim(bytes_of_string(transport->config.token));
    enum err err =
        invitation_parse(text, &transport->sha256, &transport->token, transport->token_seed, &reason);
    if (err != ERR_OK) {
        return err_set(detail, err, "--token: %.200s", err_detail_text(&reason, err));
    }
    transport->has_token = true;
    return ERR_OK;
}

static enum err read_files(struct transport *transport, struct err_detail *detail) {
    const char *directory = transport->config.directory;
    char path[PATH_SIZE_MAX];
    struct bytes encoded;
    transport->later.size = ring_files_read_later(directory, transport->later.encoded);
    transport->plain_size = ring_files_read_plain(directory, transport->plain);
    snprintf(path, sizeof path, "%s/ring/charter", directory);
    stat(path, &transport->seen);
    enum err err =
        ring_files_read_charter(directory, &transport->charter, transport->encoded, &encoded, detail);
    if (err == ERR_OK) {
        transport->has_charter = true;
        transport->encoded_size = encoded.size;
        charter_id(&transport->charter, &transport->sha256, transport->id);
        transport->remembered_count = ring_files_read_peers(directory, transport->remembered);
    } else if (err != ERR_NOT_FOUND) {
        return err;
    }
    return ring_files_read_membership(directory, &transport->membership, detail);
}

static enum err transport_prepare(struct transport *transport, struct err_detail *detail) {
    const struct transport_config *config = &transport->config;
    if (config->first_vnode < RING_VIRTUAL_MAX &&
        config->first_vnode + config->vnodes_count > RING_VIRTUAL_MAX) {
        return err_set(detail, ERR_INVALID,
                       "%u places from number %u on: there are %d behind an address, from 0 on",
                       config->vnodes_count, config->first_vnode, RING_VIRTUAL_MAX);
    }
    enum err err = sha256_init(&transport->sha256);
    if (err == ERR_OK) {
        err = identity_load(&transport->identity, config->directory, detail);
    }
    if (err == ERR_OK) {
        err = read_files(transport, detail);
    }
    if (err == ERR_OK && config->join != NULL) {
        err = parse_contact(&transport->contact, config->join, detail);
    }
    if (err == ERR_OK && config->token != NULL) {
        err = parse_token(transport, detail);
    }
    return err;
}

enum err transport_new(const struct transport_config *config, struct transport **ret_transport,
                       struct err_detail *detail) {
    struct transport *transport = calloc(1, sizeof *transport);
    if (transport == NULL) {
        return ERR_MEMORY;
    }
    transport->config = *config;
    transport->held = HELD_PORT_NONE;
    buf_init(&transport->text, TRANSPORT_TEXT_SIZE_MAX);
    buf_init(&transport->own, TRANSPORT_OWN_SIZE_MAX);
    pthread_mutex_init(&transport->lock, NULL);
    transport_ask_init(transport);
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    map_init(&transport->admitted, PEER_KEY_SIZE, 1, TRANSPORT_ADMITTED_MAX, seed);
    enum err err = transport_prepare(transport, detail);
    if (err != ERR_OK) {
        transport_free(transport);
        return err;
    }
    transport->mapping = transport->has_charter ? (int)transport->charter.mapping : -1;
    transport->has_ring = transport->has_charter || transport->contact.host[0] != '\0';
    transport->config.is_light = config->is_light && transport->has_ring;
    randombytes_buf(&transport->seed, sizeof transport->seed);
    transport_copy(transport);
    transport_add(transport, &(struct transport_tenant){.kind = DATAGRAM_CHARTER,
                                                        .receive = transport_receive_greeting,
                                                        .context = transport});
    if (config->dialects != NULL) {
        transport_add(transport, &(struct transport_tenant){.kind = DATAGRAM_HELLO,
                                                            .receive = transport_receive_hello,
                                                            .context = transport});
    }
    transport_add(transport, &(struct transport_tenant){.kind = DATAGRAM_RING,
                                                        .is_for_members = true,
                                                        .receive = transport_receive_ring,
                                                        .wake = transport_on_wake,
                                                        .context = transport});
    *ret_transport = transport;
    return ERR_OK;
}

void transport_free(struct transport *transport) {
    ASSERT(!transport->has_loop);
    transport_beat(transport);
    if (transport->ring != NULL) {
        ring_free(transport->ring);
    }
    if (transport->gate != NULL) {
        gate_free(transport->gate);
    }
    map_done(&transport->admitted);
    free(transport->actions);
    free(transport->memory);
    sha256_done(&transport->sha256);
    sodium_memzero(transport->token_seed, sizeof transport->token_seed);
    identity_done(&transport->identity);
    buf_done(&transport->text);
    buf_done(&transport->own);
    pthread_mutex_destroy(&transport->lock);
    free(transport);
}

/* ---- the loop ---- */

static bool has_ip(const struct address *address) {
    static const uint8_t none[16];
    return memcmp(address->ip, none, sizeof none) != 0;
}

static bool is_wildcard(const struct address *address) {
    static const uint8_t any[4];
    return !has_ip(address) || (address_is_ipv4(address) && memcmp(address->ip + 12, any, 4) == 0);
}

/* The address that the system would send from, to the others of that family. */
static bool find_own_address(bool is_ipv4, struct address *address) {
    struct address far = address_ipv4(192, 0, 2, 1, 9);
    struct address far_ipv6 = {.ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .port = 9};
    return gateway_own_address(is_ipv4 ? &far : &far_ipv6, address);
}

/* Others know one port of this node. Any that is free for streams may be taken for datagrams: then the next.
 */
static enum err bind_any_port(struct transport *transport, struct datagram_config *config,
                              struct err_detail *detail) {
    enum err err = ERR_BUSY;
    for (int tries = 0; err == ERR_BUSY && tries < PORT_TRIES_MAX; tries++) {
        struct address address = transport->listening;
        held_port_done(&transport->held);
        err = held_port_take(&address, &transport->held, detail);
        if (err == ERR_OK) {
            config->address.port = address.port;
            err = datagram_new(config, &transport->datagram, detail);
        }
    }
    return err;
}

static enum err bind_port(struct transport *transport, struct datagram_config *config,
                          struct err_detail *detail) {
    bool has_twin = !transport->config.is_light; /* a port for streams */
    return config->address.port == 0 && has_twin ? bind_any_port(transport, config, detail)
                                                 : datagram_new(config, &transport->datagram, detail);
}

/* Where it listens, and where others reach it: two things behind a router or in a cloud. */
static enum err find_addresses(struct transport *transport, struct err_detail *detail) {
    const struct transport_config *config = &transport->config;
    struct address *own = &transport->self.address;
    bool is_dual = !has_ip(&config->address);
    transport->listening = config->address;
    if (has_ip(&config->public)) {
        *own = config->public;
        transport->second = config->second;
        return ERR_OK;
    }
    *own = config->address;
    bool has_ipv4 = is_wildcard(own) && find_own_address(true, own);
    bool has_ipv6 = is_dual && find_own_address(false, has_ipv4 ? &transport->second : own);
    bool is_known = !is_wildcard(own) || has_ipv4 || has_ipv6;
    if (!is_known && config->is_light) {
        *own = address_ipv4(127, 0, 0, 1, 0); /* nobody is told */
    } else if (!is_known) {
        return err_set(detail, ERR_UNREACHABLE,
                       "at which address do others reach this node? name it with --public");
    }
    own->port = 0; /* the one that is bound */
    return ERR_OK;
}

/* To whom it can send: a socket of one family reaches that one. */
static void find_ways(struct transport *transport) {
    struct address unused;
    const struct address *own = &transport->self.address;
    bool is_dual = !has_ip(&transport->config.address);
    bool is_ipv4 = address_is_ipv4(&transport->config.address);
    bool has_second = has_ip(&transport->second);
    bool has_ipv4 = is_dual ? address_is_ipv4(own) || has_second || find_own_address(true, &unused) : is_ipv4;
    bool has_ipv6 =
        is_dual ? !address_is_ipv4(own) || has_second || find_own_address(false, &unused) : !is_ipv4;
    if (has_second && transport->second.port == 0) {
        transport->second.port = transport->listening.port;
    }
    if (transport->config.dialects != NULL) {
        dialects_set_ways(transport->config.dialects, has_ipv4, has_ipv6, own, &transport->second);
    }
}

static enum err open_socket(struct transport *transport, struct err_detail *detail) {
    struct datagram_config config = {
        .loop = &transport->loop.uv,
        .clock = transport->config.clock,
        .identity = &transport->identity,
        .address = transport->config.address,
        .route = transport->config.dialects != NULL ? transport_route : NULL,
        .on_message = transport_on_message,
        .on_refusal = transport_on_refusal,
        .on_noise = transport_on_noise,
        .context = transport,
    };
    memcpy(transport->self.key, transport->identity.key, PEER_KEY_SIZE);
    enum err err = find_addresses(transport, detail);
    err = err == ERR_OK ? bind_port(transport, &config, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    struct peer *self = &transport->self;
    transport->listening.port = datagram_address(transport->datagram).port;
    self->address.port = self->address.port > 0 ? self->address.port : transport->listening.port;
    find_ways(transport);
    pthread_mutex_lock(&transport->lock);
    transport->address = self->address;
    pthread_mutex_unlock(&transport->lock);
    return ERR_OK;
}

static enum err open_gate(struct transport *transport) {
    struct gate_config config = {
        .identity = &transport->identity,
        .datagram = transport->datagram,
        .clock = transport->config.clock,
        .membership = transport->membership,
        .learned = transport_on_learned,
        .learned_later = transport_on_learned_later,
        .keeps_later = transport_keeps_later,
        .reads_stewards = transport_reads_stewards,
        .is_known = transport_is_known,
        .admitted = transport_on_admitted,
        .met = transport_on_met,
        .speaks = transport_speaks,
        .complain = transport_on_complaint,
        .context = transport,
    };
    return gate_new(&config, &transport->gate);
}

static enum err open_dns(struct transport *transport, struct err_detail *detail) {
    struct dns_config config = {.loop = &transport->loop.uv, .nameservers = transport->config.nameservers};
    bool is_needed = transport->contact.host[0] != '\0' && !transport->contact.is_found;
    return is_needed ? dns_new(&config, &transport->dns, detail) : ERR_OK;
}

/* The beat does not touch it before it is taken. */
static void transport_on_news(void *context) {
    struct transport *transport = context;
    struct transport_post *post = &transport->from_disk;
    pthread_mutex_lock(&transport->lock);
    bool is_there = post->has_charter;
    bool is_kept = transport->is_kept;
    transport->is_kept = false;
    pthread_mutex_unlock(&transport->lock);
    if (is_kept) {
        transport_on_kept(transport);
    }
    if (is_there) {
        transport_take_charter(transport, &post->charter, bytes_of(post->encoded, post->encoded_size));
        pthread_mutex_lock(&transport->lock);
        post->has_charter = false;
        pthread_mutex_unlock(&transport->lock);
    }
}

static void transport_end(void *context) {
    struct transport *transport = context;
    pthread_mutex_lock(&transport->lock);
    transport->is_running = false;
    pthread_mutex_unlock(&transport->lock);
    dns_cancel(&transport->contact.question);
    dns_free(transport->dns);
    if (transport->datagram != NULL) {
        datagram_free(transport->datagram);
    }
    held_port_done(&transport->held);
    transport->dns = NULL;
    transport->datagram = NULL;
    transport_ask_cancel(transport);
}

static enum err open_loop(struct transport *transport, struct err_detail *detail) {
    struct loop *loop = &transport->loop;
    enum err err = loop_init(loop, TRANSPORT_ERRANDS_MAX);
    if (err != ERR_OK) {
        return err;
    }
    loop_timer_init(loop, &transport->tick, transport_on_tick, transport);
    for (size_t i = 0; i < transport->tenants_count; i++) {
        const struct transport_tenant *tenant = &transport->tenants[i];
        loop_timer_init(loop, &transport->wakes[i], tenant->wake, tenant->context);
    }
    transport->news = (struct loop_post){.run = transport_on_news, .context = transport};
    transport->asked = (struct loop_post){.run = transport_start_questions, .context = transport};
    err = open_socket(transport, detail);
    if (err == ERR_OK) {
        err = open_gate(transport);
    }
    if (err == ERR_OK) {
        err = open_dns(transport, detail);
    }
    if (err != ERR_OK) {
        loop_stop(loop, transport_end, transport);
    }
    return err;
}

enum err transport_start(struct transport *transport, struct err_detail *detail) {
    return transport->has_ring ? transport_open(transport, detail) : ERR_OK;
}

enum err transport_open(struct transport *transport, struct err_detail *detail) {
    enum err err = transport->has_loop ? ERR_OK : open_loop(transport, detail);
    if (err != ERR_OK || transport->has_loop) {
        return err;
    }
    pthread_mutex_lock(&transport->lock);
    transport->is_running = true;
    pthread_mutex_unlock(&transport->lock);
    loop_timer_set(&transport->tick, TRANSPORT_TICK_US, TRANSPORT_TICK_US);
    transport_begin(transport);
    if (loop_start(&transport->loop, "transport", PRIORITY_USUAL) != ERR_OK) {
        loop_stop(&transport->loop, transport_end, transport);
        return err_set(detail, ERR_SYSTEM, "no thread for the ring");
    }
    transport->has_loop = true;
    return ERR_OK;
}

void transport_stop(struct transport *transport) {
    if (!transport->has_loop) {
        return;
    }
    loop_stop(&transport->loop, transport_end, transport);
    transport->has_loop = false;
}

/* ---- files ---- */

static void note_failure(struct transport *transport, enum err err, const struct err_detail *detail) {
    if (err != ERR_OK) {
        transport_note(transport, "ring: %s", err_detail_text(detail, err));
    }
}

/* What the disk did not take is tried again, unless there is something newer; said once. */
static void note_written(struct transport *transport, const struct transport_post *post, bool has_membership,
                         enum err err, const struct err_detail *detail) {
    pthread_mutex_lock(&transport->lock);
    if (err != ERR_OK && post->has_charter && !transport->to_disk.has_charter) {
        transport->to_disk = *post;
    }
    transport->has_membership_to_write |= err != ERR_OK && has_membership;
    if (err == ERR_OK && post->has_charter && transport->is_running) {
        transport->is_kept = true;
        (void)loop_post(&transport->loop, &transport->news);
    }
    pthread_mutex_unlock(&transport->lock);
    if (!transport->has_write_failed) {
        note_failure(transport, err, detail);
    }
    transport->has_write_failed = err != ERR_OK;
}

/* What the disk does not take comes again from others, in a minute. */
static void write_later(struct transport *transport) {
    struct err_detail detail = {0};
    struct transport_later *later = &transport->later_post;
    pthread_mutex_lock(&transport->lock);
    *later = transport->later_to_disk;
    transport->later_to_disk.size = 0;
    pthread_mutex_unlock(&transport->lock);
    if (later->size > 0) {
        note_failure(transport,
                     ring_files_write_later(transport->config.directory,
                                            bytes_of(later->encoded, later->size), &detail),
                     &detail);
    }
}

static void write_files(struct transport *transport) {
    struct peer peers[RING_FILES_PEERS_MAX];
    struct err_detail detail = {0};
    const char *directory = transport->config.directory;
    struct transport_post *post = &transport->post;
    pthread_mutex_lock(&transport->lock);
    *post = transport->to_disk;
    transport->to_disk.has_charter = false;
    bool has_membership = transport->has_membership_to_write;
    transport->has_membership_to_write = false;
    size_t peers_count = transport->kept_count;
    memcpy(peers, transport->kept, sizeof peers);
    transport->kept_count = 0;
    pthread_mutex_unlock(&transport->lock);
    enum err err = ERR_OK;
    if (has_membership) { /* before the charter: a node with a charter has all that it needs to come back */
        err = ring_files_write_membership(directory, &transport->membership, &detail);
    }
    if (err == ERR_OK && post->has_charter) {
        err = ring_files_write_charter(directory, bytes_of(post->encoded, post->encoded_size), &detail);
    }
    if (err == ERR_OK && peers_count > 0) {
        err = ring_files_write_peers(directory, peers, peers_count, &detail);
    }
    note_written(transport, post, has_membership, err, &detail);
}

static bool transport_has_changed(struct transport *transport) {
    char path[PATH_SIZE_MAX];
    struct stat now;
    snprintf(path, sizeof path, "%s/ring/charter", transport->config.directory);
    if (stat(path, &now) != 0) {
        return false;
    }
    bool is_same = now.st_ino == transport->seen.st_ino && now.st_size == transport->seen.st_size &&
                   now.st_mtim.tv_sec == transport->seen.st_mtim.tv_sec &&
                   now.st_mtim.tv_nsec == transport->seen.st_mtim.tv_nsec;
    transport->seen = now;
    return !is_same;
}

static void read_charter(struct transport *transport) {
    struct err_detail detail = {0};
    struct transport_post *post = &transport->post;
    struct bytes encoded;
    enum err err = ring_files_read_charter(transport->config.directory, &post->charter, post->encoded,
                                           &encoded, &detail);
    if (err != ERR_OK) {
        note_failure(transport, err, &detail);
        return;
    }
    post->has_charter = true;
    post->encoded_size = encoded.size;
    pthread_mutex_lock(&transport->lock);
    if (transport->is_running) {
        transport->from_disk = *post;
        (void)loop_post(&transport->loop, &transport->news);
    }
    pthread_mutex_unlock(&transport->lock);
}

void transport_beat(struct transport *transport) {
    write_files(transport);
    write_later(transport);
    pthread_mutex_lock(&transport->lock);
    bool is_awaited = transport->is_running && transport->has_ring && !transport->from_disk.has_charter;
    pthread_mutex_unlock(&transport->lock);
    if (is_awaited && transport_has_changed(transport)) {
        read_charter(transport);
    }
}

/* ---- for others ---- */

void transport_put(struct transport *transport, struct buf *out) {
    pthread_mutex_lock(&transport->lock);
    buf_put(out, buf_bytes(&transport->text));
    pthread_mutex_unlock(&transport->lock);
}

bool transport_address(struct transport *transport, struct address *ret_address) {
    pthread_mutex_lock(&transport->lock);
    bool is_running = transport->is_running;
    *ret_address = transport->address;
    pthread_mutex_unlock(&transport->lock);
    return is_running;
}

struct address transport_listening(const struct transport *transport) {
    return transport->listening;
}

const int *transport_held(const struct transport *transport) {
    return transport->held != HELD_PORT_NONE ? &transport->held : NULL;
}

bool transport_is_light(const struct transport *transport) {
    return transport->config.is_light;
}

bool transport_has_ring(const struct transport *transport) {
    return transport->has_ring;
}
