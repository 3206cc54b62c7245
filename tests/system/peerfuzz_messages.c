/* What datagrams between nodes hold: one sound message of every kind, with fields drawn by lot. */
#include <string.h>

#include "node/group/group_driver_code.h"
#include "peerfuzz.h"
#include "protocol/crowd/wish.h"
#include "protocol/group/estimate.h"
#include "protocol/links/link_relay_message.h"

/* ---- parts ---- */

static bool chance(struct peerfuzz *fuzz, unsigned one_in) {
    return prng_below(&fuzz->prng, one_in) == 0;
}

static uint8_t below(struct peerfuzz *fuzz, unsigned bound) {
    return (uint8_t)prng_below(&fuzz->prng, bound);
}

/* Mostly small, as indices and counts are; now and then what no list is long enough for. */
static uint8_t some_index(struct peerfuzz *fuzz) {
    return chance(fuzz, 8) ? (uint8_t)mutate_number(&fuzz->prng) : below(fuzz, 3);
}

static uint64_t some_time_us(struct peerfuzz *fuzz) {
    uint64_t now_us = (uint64_t)clock_wall_us(&clock_system);
    return chance(fuzz, 3) ? mutate_number(&fuzz->prng) : now_us - prng_below(&fuzz->prng, UINT32_MAX);
}

struct peer peerfuzz_some_peer(struct peerfuzz *fuzz) {
    struct peer peer = chance(fuzz, 2) ? fuzz->self : fuzz->node;
    if (fuzz->peers_count > 0 && chance(fuzz, 2)) {
        peer = fuzz->peers[prng_below(&fuzz->prng, fuzz->peers_count)];
    }
    if (chance(fuzz, 4)) { /* nobody is there: loopback, so that nothing leaves this machine */
        peer.address =
            address_ipv4(127, 9, below(fuzz, 255), below(fuzz, 255), (uint16_t)(1024 + below(fuzz, 255)));
    }
    if (chance(fuzz, 8)) {
        memset(peer.address.ip, 0, sizeof peer.address.ip);
        peer.address.ip[15] = 1; /* ::1 */
    }
    if (chance(fuzz, 4)) {
        prng_fill(&fuzz->prng, peer.key, sizeof peer.key);
    }
    return peer;
}

static struct ringkey some_key(struct peerfuzz *fuzz) {
    struct ringkey key;
    prng_fill(&fuzz->prng, key.bytes, sizeof key.bytes);
    return fuzz->captures_count > 0 && !chance(fuzz, 4)
               ? fuzz->ringkeys[prng_below(&fuzz->prng, fuzz->captures_count)]
               : key;
}

static struct ring_id some_id(struct peerfuzz *fuzz) {
    if (chance(fuzz, 4)) {
        return (struct ring_id){mutate_number(&fuzz->prng), mutate_number(&fuzz->prng)};
    }
    return ring_id_read(some_key(fuzz).bytes);
}

static uint64_t some_token(struct peerfuzz *fuzz, enum peerfuzz_family_index family) {
    return chance(fuzz, 8) ? mutate_number(&fuzz->prng) : fuzz->tokens[family];
}

/* ---- the ring ---- */

static struct vnode some_vnode(struct peerfuzz *fuzz) {
    struct vnode vnode = {.peer = peerfuzz_some_peer(fuzz), .index = some_index(fuzz), .id = some_id(fuzz)};
    if (chance(fuzz, 16)) {
        vnode.peer.address.port = 0; /* padding, where there must be none */
    }
    return vnode;
}

static struct bytes make_ring(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                              uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    struct message message = {
        .version = RING_VERSION,
        .kind = (uint8_t)kind,
        .number = number,
        .token = some_token(fuzz, PEERFUZZ_RING),
        .to = some_index(fuzz),
        .from = some_index(fuzz),
        .status = below(fuzz, kind == MESSAGE_FOUND ? FOUND_NONE + 1 : MESSAGE_NONE + 1),
        .is_whole = chance(fuzz, 2),
        .wanted = below(fuzz, RING_LIST_MAX + 1),
        .digest = mutate_number(&fuzz->prng),
        .key = some_id(fuzz),
        .predecessor = some_vnode(fuzz),
        .is_padded = !chance(fuzz, 3),
    };
    bool is_nodes = kind == MESSAGE_NODES || kind == MESSAGE_ASK_NODES;
    message.status = is_nodes ? below(fuzz, MODE_CHORD + 1) : message.status;
    message.status = kind == MESSAGE_REFUSED ? below(fuzz, RING_REASONS_END) : message.status;
    memcpy(message.charter, fuzz->ring, sizeof message.charter);
    unsigned count = chance(fuzz, 4) ? below(fuzz, RING_LIST_MAX + 1) : below(fuzz, 5);
    message.vnodes_count = (uint8_t)count;
    for (unsigned i = 0; i < count; i++) {
        message.vnodes[i] = some_vnode(fuzz);
        message.nodes_vnodes_count[i] = (uint8_t)(1 + below(fuzz, 3));
    }
    return message_write(&message, memory);
}

static bool takes_ring(struct peerfuzz *fuzz, struct bytes bytes) {
    static struct message message;
    return message_read(bytes, fuzz->ring, &fuzz->sha256, &message);
}

static void learn_peer(struct peerfuzz *fuzz, const struct peer *peer) {
    bool is_known = peer_same_key(peer, &fuzz->self) || !peer_has_key(peer);
    for (size_t i = 0; i < fuzz->peers_count && !is_known; i++) {
        is_known = peer_same_key(peer, &fuzz->peers[i]);
    }
    if (!is_known && fuzz->peers_count < PEERFUZZ_PEERS_MAX) {
        fuzz->peers[fuzz->peers_count++] = *peer;
    }
}

static bool hear_ring(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind, uint64_t *ret_number) {
    static const uint8_t answers[MESSAGE_KINDS_END] = {
        [MESSAGE_ASK_STATE] = MESSAGE_STATE,   [MESSAGE_PING] = MESSAGE_PONG,
        [MESSAGE_FIND] = MESSAGE_FOUND,        [MESSAGE_ASK_NODES] = MESSAGE_NODES,
        [MESSAGE_ASK_BEFORE] = MESSAGE_BEFORE,
    };
    static struct message message;
    if (!message_read(bytes, fuzz->ring, &fuzz->sha256, &message)) {
        return false;
    }
    if (!message_is_question(message.kind)) {
        fuzz->tokens[PEERFUZZ_RING] = message.token;
    }
    for (unsigned i = 0; i < message.vnodes_count; i++) {
        learn_peer(fuzz, &message.vnodes[i].peer);
    }
    *ret_kind = answers[message.kind];
    *ret_number = message.number;
    return answers[message.kind] != 0;
}

/* ---- the charter ---- */

static struct bytes make_greeting(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                                  uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    uint8_t membership[MEMBERSHIP_SIZE_MAX];
    struct bytes charter = fuzz->charter_bytes;
    struct greeting greeting = {
        .kind = (uint8_t)kind,
        .version = chance(fuzz, 4) ? (uint32_t)mutate_number(&fuzz->prng) : fuzz->charter.version,
        .membership = membership_write(&fuzz->membership, membership),
        .wants_answer = chance(fuzz, 2),
        .reason = chance(fuzz, 2) ? GREETING_OTHER_RING : (uint8_t)(GREETING_NO_MEMBER + below(fuzz, 8)),
        .offset = chance(fuzz, 2) ? 0 : (uint32_t)mutate_number(&fuzz->prng),
        .size = (uint32_t)charter.size,
        .piece = charter,
    };
    (void)number;
    memcpy(greeting.ring, fuzz->ring, sizeof greeting.ring);
    memcpy(greeting.name, fuzz->charter.name, sizeof greeting.name);
    if (kind == GREETING_PIECE) {
        greeting.offset = (uint32_t)prng_below(&fuzz->prng, charter.size);
        greeting.offset = chance(fuzz, 2) ? 0 : greeting.offset;
        struct bytes rest = bytes_skip(charter, greeting.offset);
        greeting.piece =
            bytes_of(rest.data, rest.size < GREETING_PIECE_SIZE_MAX ? rest.size : GREETING_PIECE_SIZE_MAX);
        greeting.version += chance(fuzz, 2); /* one that its founder has not signed */
    }
    return greeting_write(&greeting, memory);
}

static bool takes_greeting(struct peerfuzz *fuzz, struct bytes bytes) {
    struct greeting greeting;
    (void)fuzz;
    return greeting_read(bytes, &greeting, NULL) == ERR_OK;
}

static bool hear_greeting(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind,
                          uint64_t *ret_number) {
    struct greeting greeting;
    if (greeting_read(bytes, &greeting, NULL) != ERR_OK) {
        return false;
    }
    fuzz->is_greeted = fuzz->is_greeted || greeting.kind == GREETING_HELLO;
    *ret_number = 0;
    *ret_kind = greeting.kind == GREETING_ASK ? GREETING_PIECE : GREETING_HELLO;
    return greeting.kind == GREETING_ASK || (greeting.kind == GREETING_HELLO && greeting.wants_answer);
}

/* ---- links ---- */

static struct bytes some_links(struct peerfuzz *fuzz, uint8_t *out, size_t size_max) {
    enum { LINKS = 6, URL_SIZE = 80 };
    static char urls[LINKS][URL_SIZE];
    static const char *const begins[] = {
        "http://127.0.1.1/", "http://example.org/a/b?c=", "https://[::1]:8/", "urn:",
        "javascript:",       "http://10.0.0.1/"};
    struct links_code_link links[LINKS];
    uint8_t job[LINKS_CODE_JOB_SIZE];
    size_t count = 1 + below(fuzz, LINKS);
    prng_fill(&fuzz->prng, job, sizeof job);
    for (size_t i = 0; i < count; i++) {
        snprintf(urls[i], URL_SIZE, "%s%zu-%ju", begins[below(fuzz, sizeof begins / sizeof *begins)], i,
                 (uintmax_t)prng_below(&fuzz->prng, 1000));
        links[i] = (struct links_code_link){.url = bytes_of_string(urls[i]),
                                            .depth = (uint16_t)mutate_number(&fuzz->prng),
                                            .priority = below(fuzz, LINKS_CODE_PRIORITY_MAX + 1)};
    }
    enum links_code_way way = chance(fuzz, 2) ? LINKS_CODE_BY_MODEL : LINKS_CODE_BY_TABLE;
    return bytes_of(out, links_code_write(fuzz->links, way, job, links, count, out, size_max));
}

static struct bytes make_links(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                               uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    uint8_t links[LINK_RELAY_MESSAGE_SIZE_MAX - LINK_RELAY_OFFER_HEAD_SIZE_MAX];
    struct link_relay_message message = {
        .kind = (uint8_t)kind,
        .flags = below(fuzz, 4),
        .status = below(fuzz, LINK_RELAY_STATUSES_COUNT),
        .number = (uint16_t)number,
        .after = some_id(fuzz),
        .accepted_count = below(fuzz, 100),
        .places_count = below(fuzz, LINK_RELAY_PLACES_MAX + 1),
    };
    message.links = kind == LINK_RELAY_OFFER ? some_links(fuzz, links, sizeof links) : bytes_of(links, 0);
    for (unsigned i = 0; i < message.places_count; i++) {
        message.places[i] = some_vnode(fuzz);
    }
    return link_relay_message_write(&message, memory);
}

static bool takes_links(struct peerfuzz *fuzz, struct bytes bytes) {
    static struct link_relay_message message;
    struct links_code_batch batch;
    return link_relay_message_read(bytes, &fuzz->sha256, &message) &&
           (message.kind != LINK_RELAY_OFFER || links_code_read(fuzz->links, message.links, &batch) == NULL);
}

static bool hear_links(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind, uint64_t *ret_number) {
    static struct link_relay_message message;
    bool is_sound = link_relay_message_read(bytes, &fuzz->sha256, &message);
    *ret_kind = LINK_RELAY_ANSWER;
    *ret_number = is_sound ? message.number : 0;
    return is_sound && message.kind == LINK_RELAY_OFFER;
}

/* ---- the crowd ---- */

static struct bytes some_wish(struct peerfuzz *fuzz, uint8_t *memory) {
    static const char *const words[] = {"page", "the bridge has fallen", "", "a"};
    struct wish wish = {.kind = (enum wish_kind)(WISH_URL + below(fuzz, 3)),
                        .time = (enum wish_time)below(fuzz, 3),
                        .words = bytes_of_string(words[below(fuzz, 4)]),
                        .from_us = (int64_t)(some_time_us(fuzz) & INT64_MAX),
                        .to_us = (int64_t)(some_time_us(fuzz) & INT64_MAX)};
    struct ringkey key = some_key(fuzz);
    memcpy(wish.hash, key.bytes, sizeof wish.hash);
    memcpy(wish.digest, ringkey_digest(&key), RINGKEY_DIGEST_SIZE);
    return wish_write(&wish, memory);
}

static struct bytes some_finding(struct peerfuzz *fuzz, uint8_t *memory) {
    struct wish_finding findings[WISH_FINDINGS_MAX];
    size_t count = 1 + below(fuzz, WISH_FINDINGS_MAX);
    for (size_t i = 0; i < count; i++) {
        findings[i] = (struct wish_finding){.key = some_key(fuzz), .size = mutate_number(&fuzz->prng)};
        if (chance(fuzz, 2)) {
            findings[i].url = BYTES("http://example.org/<b>");
            findings[i].title = BYTES("a title");
        }
    }
    return wish_write_findings(findings, count, memory);
}

static struct bytes make_crowd(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                               uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    uint8_t contents[CROWD_FINDING_SIZE_MAX];
    struct crowd_message message = {
        .kind = (uint8_t)kind,
        .number = number,
        .token = some_token(fuzz, PEERFUZZ_CROWD),
        .ttl = below(fuzz, CROWD_TTL_CAP + 1),
        .hops = below(fuzz, kind == CROWD_MESSAGE_WALK ? CROWD_WALK_HOPS_MAX + 1 : CROWD_TTL_CAP + 1),
        .fanout = (uint8_t)(1 + below(fuzz, CROWD_FANOUT_MAX)),
        .holder = peerfuzz_some_peer(fuzz),
    };
    message.entries_count = kind == CROWD_MESSAGE_WALK      ? 1
                            : kind == CROWD_MESSAGE_WELCOME ? below(fuzz, 2)
                                                            : below(fuzz, CROWD_SHUFFLE_MAX + 1);
    for (unsigned i = 0; i < message.entries_count; i++) {
        message.entries[i] =
            (struct crowd_neighbour){.peer = peerfuzz_some_peer(fuzz), .age = some_index(fuzz)};
    }
    message.contents = kind == CROWD_MESSAGE_HIT ? some_finding(fuzz, contents) : some_wish(fuzz, contents);
    return crowd_message_write(&message, fuzz->ring, memory);
}

static bool takes_crowd(struct peerfuzz *fuzz, struct bytes bytes) {
    static struct crowd_message message;
    return crowd_message_read(bytes, fuzz->ring, &message) == CROWD_MESSAGE_GOOD;
}

static bool hear_crowd(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind, uint64_t *ret_number) {
    static struct crowd_message message;
    if (crowd_message_read(bytes, fuzz->ring, &message) != CROWD_MESSAGE_GOOD) {
        return false;
    }
    *ret_number = message.number;
    switch (message.kind) {
    case CROWD_MESSAGE_CHALLENGE:
        fuzz->tokens[PEERFUZZ_CROWD] = message.token;
        *ret_kind = CROWD_MESSAGE_JOIN;
        return true;
    case CROWD_MESSAGE_SHUFFLE:
        *ret_kind = chance(fuzz, 4) ? CROWD_MESSAGE_BUSY : CROWD_MESSAGE_SHUFFLED;
        return true;
    case CROWD_MESSAGE_QUERY:
        *ret_kind = chance(fuzz, 2) ? CROWD_MESSAGE_ACK : CROWD_MESSAGE_HIT;
        return true;
    case CROWD_MESSAGE_JOIN:
        *ret_kind = chance(fuzz, 2) ? CROWD_MESSAGE_CHALLENGE : CROWD_MESSAGE_JOINED;
        return true;
    default:
        return false;
    }
}

/* ---- the group ---- */

/* Kinds behind those of groups: whose group is it? */
enum { GROUP_OTHER = GROUP_MESSAGE_KINDS_END - 1 };

static struct bytes some_report(struct peerfuzz *fuzz, uint8_t *memory, size_t size) {
    struct estimate_entry entries[4];
    struct bytes report;
    size_t count = below(fuzz, 5);
    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct estimate_entry){.about = peerfuzz_some_peer(fuzz).address,
                                             .estimate = {.round_trip_us = 1 + below(fuzz, 200),
                                                          .bandwidth = mutate_number(&fuzz->prng) >> 24}};
    }
    estimate_write_report(entries, count, 0, memory, size, &report);
    return report;
}

static struct bytes make_group_question(struct peerfuzz *fuzz, unsigned kind, uint8_t *memory) {
    struct group_driver_message message = {
        .kind = (enum group_driver_code_kind)kind,
        .name = bytes_of_string(chance(fuzz, 4) ? "nobodys" : fuzz->group_name),
        .rules = {
            .admission = below(fuzz, 3), .generator = below(fuzz, 2), .k = (uint8_t)(1 + below(fuzz, 4))}};
    memcpy(message.rules.founder, peerfuzz_some_peer(fuzz).key, PEER_KEY_SIZE);
    return group_driver_code_write(&message, memory);
}

static struct bytes make_group(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                               uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    uint8_t papers[MEMBERSHIP_SIZE_MAX];
    uint8_t contents[GROUP_PIECE_SIZE];
    uint8_t estimates[256];
    uint8_t pulse[GROUP_PULSE_SIZE];
    if (kind > GROUP_OTHER) {
        return make_group_question(fuzz, kind - GROUP_OTHER, memory);
    }
    struct group_version held = fuzz->group_held;
    struct group_message message = {
        .kind = (uint8_t)kind,
        .number = number,
        .held = held,
        .token = some_token(fuzz, PEERFUZZ_GROUP),
        .peer = peerfuzz_some_peer(fuzz),
        .papers = membership_write(&fuzz->membership, papers),
        .version = {held.term + below(fuzz, 3) - 1u, held.sequence + below(fuzz, 3) - 1u},
        .pieces_count = (uint8_t)(1 + below(fuzz, 4)),
        .mask = mutate_number(&fuzz->prng),
        .beat = mutate_number(&fuzz->prng),
        .heard = bytes_of(contents, below(fuzz, 8)),
    };
    prng_fill(&fuzz->prng, contents, sizeof contents);
    message.piece = below(fuzz, message.pieces_count);
    message.contents = bytes_of(contents, message.piece + 1 == message.pieces_count ? 1u + below(fuzz, 200)
                                                                                    : sizeof contents);
    message.estimates = some_report(fuzz, estimates, sizeof estimates);
    identity_sign(&fuzz->identity, "mnemon group 1",
                  group_message_pulse(fuzz->group, message.version, message.beat, pulse), message.signature);
    return group_message_write(&message, fuzz->group, memory);
}

static bool takes_group(struct peerfuzz *fuzz, struct bytes bytes) {
    static struct group_message message;
    struct group_driver_message question;
    bool is_question = bytes.size > 0 && bytes.data[0] == 0;
    return is_question ? group_driver_code_read(bytes, &question) == ERR_OK
                       : group_message_read(bytes, fuzz->group, &message) == GROUP_MESSAGE_GOOD;
}

static void hear_founder(struct peerfuzz *fuzz, struct bytes bytes) {
    struct group_driver_message told;
    if (group_driver_code_read(bytes, &told) == ERR_OK && told.kind == GROUP_DRIVER_TELL) {
        group_files_id(told.name, told.rules.founder, &fuzz->sha256, fuzz->group);
    }
}

static bool hear_group(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind, uint64_t *ret_number) {
    static struct group_message message;
    static const uint8_t answers[GROUP_MESSAGE_KINDS_END] = {
        [GROUP_MESSAGE_JOIN] = GROUP_MESSAGE_TAKEN,      [GROUP_MESSAGE_CHALLENGE] = GROUP_MESSAGE_JOIN,
        [GROUP_MESSAGE_ECHO] = GROUP_MESSAGE_ECHOED,     [GROUP_MESSAGE_STRANGER] = GROUP_MESSAGE_JOIN,
        [GROUP_MESSAGE_REPORT] = GROUP_MESSAGE_REPORTED, [GROUP_MESSAGE_PIECE] = GROUP_MESSAGE_ACK,
        [GROUP_MESSAGE_LEAVE] = GROUP_MESSAGE_LEFT,
    };
    if (bytes.size > 0 && bytes.data[0] == 0) {
        hear_founder(fuzz, bytes);
        return false;
    }
    if (group_message_read(bytes, fuzz->group, &message) != GROUP_MESSAGE_GOOD) {
        return false;
    }
    fuzz->group_held = message.held;
    if (message.kind == GROUP_MESSAGE_CHALLENGE) {
        fuzz->tokens[PEERFUZZ_GROUP] = message.token;
    }
    *ret_kind = answers[message.kind];
    *ret_number = message.number;
    return answers[message.kind] != 0;
}

/* ---- hellos ---- */

struct bytes peerfuzz_make_hello(struct peerfuzz *fuzz, uint8_t *memory) {
    static const char *const programs[] = {"", "0.3.0", "9.9.9-later"};
    static const char *const sites[] = {"", "hall", "cellar"};
    struct dialect dialect = {
        .lowest = 1,
        .highest = (uint16_t)(1 + below(fuzz, 4)),
        .features = prng_u64(&fuzz->prng),
    };
    snprintf(dialect.program, sizeof dialect.program, "%s", programs[below(fuzz, 3)]);
    snprintf(dialect.site, sizeof dialect.site, "%s", sites[below(fuzz, 3)]);
    return dialect_write_hello(&dialect, below(fuzz, 2) == 0, memory);
}

static struct bytes make_hello(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                               uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    (void)kind;
    (void)number;
    return peerfuzz_make_hello(fuzz, memory);
}

static bool takes_hello(struct peerfuzz *fuzz, struct bytes bytes) {
    struct dialect dialect;
    bool wants_answer;
    (void)fuzz;
    return dialect_read_hello(bytes, &dialect, &wants_answer, NULL) == ERR_OK;
}

static bool hear_hello(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind, uint64_t *ret_number) {
    struct dialect dialect;
    bool wants_answer = false;
    (void)fuzz;
    *ret_kind = 1;
    *ret_number = 0;
    return dialect_read_hello(bytes, &dialect, &wants_answer, NULL) == ERR_OK && wants_answer;
}

/* ---- all ---- */

/* Kinds from 1 on. */
const struct peerfuzz_family peerfuzz_families[PEERFUZZ_FAMILIES_COUNT] = {
    [PEERFUZZ_RING] = {"ring",
                       DATAGRAM_RING,
                       MESSAGE_KINDS_END - 1,
                       {"ask_state", "state", "notify", "ping", "pong", "find", "found", "ask_nodes", "nodes",
                        "refused", "challenge", "ask_before", "before"},
                       make_ring,
                       takes_ring,
                       hear_ring},
    [PEERFUZZ_CHARTER] = {"charter",
                          DATAGRAM_CHARTER,
                          GREETING_KINDS_END - 1,
                          {"hello", "refuse", "ask", "piece"},
                          make_greeting,
                          takes_greeting,
                          hear_greeting},
    [PEERFUZZ_LINKS] = {"links", DATAGRAM_LINKS, 2, {"offer", "answer"}, make_links, takes_links, hear_links},
    [PEERFUZZ_CROWD] = {"crowd",
                        DATAGRAM_CROWD,
                        CROWD_MESSAGE_KINDS_END - 1,
                        {"shuffle", "shuffled", "busy", "join", "challenge", "joined", "walk", "welcome",
                         "query", "ack", "hit"},
                        make_crowd,
                        takes_crowd,
                        hear_crowd},
    [PEERFUZZ_GROUP] = {"group",
                        DATAGRAM_GROUP,
                        GROUP_OTHER + GROUP_DRIVER_NONE,
                        {"join", "challenge", "taken", "refused", "request", "echo", "echoed", "stranger",
                         "report", "reported", "piece", "ack", "pulse", "leave", "left", "ask", "tell",
                         "none"},
                        make_group,
                        takes_group,
                        hear_group},
    [PEERFUZZ_HELLO] = {"hello", DATAGRAM_HELLO, 1, {"hello"}, make_hello, takes_hello, hear_hello},
};
