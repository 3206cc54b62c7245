/* What questions over streams hold: a sound one for every service, with fields drawn by lot. */
#include <string.h>

#include "../copies-put.h"
#include "node/captures/captures_code.h"
#include "node/leases/host_leases_code.h"
#include "node/mirror/mirror_driver_code.h"
#include "node/rpc/peer_rpc.h"
#include "node/search/search_put.h"
#include "peerfuzz.h"
#include "protocol/copies/reconcile_message.h"
#include "protocol/crowd/relay_message.h"
#include "protocol/crowd/wish.h"
#include "protocol/ring/decree.h"
#include "protocol/search/search_code.h"
#include "store/remote/backend_code.h"

static uint64_t below(struct peerfuzz *fuzz, uint64_t bound) {
    return prng_below(&fuzz->prng, bound);
}

/* Of a capture that is there, mostly; *ret_surt: its own. */
static struct ringkey some_key(struct peerfuzz *fuzz, struct bytes *ret_surt) {
    struct ringkey key;
    size_t at = fuzz->captures_count > 0 ? below(fuzz, fuzz->captures_count) : 0;
    *ret_surt = bytes_of(fuzz->surts[at], fuzz->surt_sizes[at]);
    if (fuzz->captures_count == 0 || below(fuzz, 4) == 0) {
        prng_fill(&fuzz->prng, key.bytes, sizeof key.bytes);
        return key;
    }
    return fuzz->ringkeys[at];
}

static void put_keys(struct peerfuzz *fuzz, struct buf *out) {
    enum { KEYS_MAX = 64 };
    struct ringkey keys[KEYS_MAX];
    struct bytes surt;
    size_t count = below(fuzz, KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        keys[i] = some_key(fuzz, &surt);
    }
    buf_put_copies_keys(out, keys, count);
}

/* Ranges of an arc, of which some are sums and some are lists. */
static void put_comparison(struct peerfuzz *fuzz, struct buf *out) {
    static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct bytes surt;
    struct reconcile_arc arc;
    struct reconcile_writer writer;
    struct ringkey first = some_key(fuzz, &surt);
    struct ringkey last = some_key(fuzz, &surt);
    memcpy(arc.from, first.bytes, sizeof arc.from);
    memcpy(arc.to, last.bytes, sizeof arc.to);
    buf_put_copies_arc(out, ring_id_read(arc.from), ring_id_read(arc.to));
    reconcile_writer_init(&writer, &arc, memory, sizeof memory);
    struct reconcile_position lower = reconcile_arc_start(&arc);
    struct reconcile_position end = reconcile_arc_end(&arc);
    for (size_t i = 0; i < fuzz->captures_count && below(fuzz, 4) > 0; i++) {
        struct reconcile_position upper = reconcile_arc_position(&arc, &fuzz->ringkeys[i]);
        upper = below(fuzz, 2) == 0 ? reconcile_arc_behind(upper) : upper;
        if (reconcile_position_compare(&lower, &upper) >= 0 ||
            reconcile_position_compare(&upper, &end) >= 0) {
            continue;
        }
        struct ringkey_sum sum = {below(fuzz, 100), prng_u64(&fuzz->prng), mutate_number(&fuzz->prng)};
        if (below(fuzz, 2) == 0) {
            reconcile_write_sum(&writer, &lower, &upper, &sum);
        } else {
            reconcile_write_keys(&writer, RECONCILE_LIST, &lower, &upper, 0);
        }
        lower = upper;
    }
    if (below(fuzz, 2) == 0) {
        reconcile_write_sum(&writer, &lower, &end, &(struct ringkey_sum){.count = below(fuzz, 50)});
    }
    buf_put(out, reconcile_writer_finish(&writer));
}

static void put_challenge(struct peerfuzz *fuzz, struct buf *out) {
    struct bytes surt;
    struct copies_challenge challenge = {.key = some_key(fuzz, &surt),
                                         .offset = below(fuzz, 2) == 0 ? 0 : mutate_number(&fuzz->prng),
                                         .size = (uint32_t)below(fuzz, COPIES_PROVE_SIZE_MAX + 1)};
    prng_fill(&fuzz->prng, challenge.nonce, sizeof challenge.nonce);
    buf_put_copies_challenge(out, &challenge);
}

static void put_capture(struct peerfuzz *fuzz, struct buf *out, bool is_hand) {
    struct bytes surt;
    struct captures_question question = {.key = some_key(fuzz, &surt),
                                         .wants_description = below(fuzz, 2) == 0,
                                         .offset = below(fuzz, 2) == 0 ? 0 : mutate_number(&fuzz->prng),
                                         .size_max = (uint32_t)below(fuzz, PEER_RPC_PIECE_SIZE_MAX + 1)};
    question.surt = below(fuzz, 2) == 0 ? surt : bytes_of(NULL, 0);
    question.address = is_hand && below(fuzz, 2) == 0 ? peerfuzz_some_peer(fuzz).address : question.address;
    (void)!captures_code_put_question(out, &question);
}

static void put_many(struct peerfuzz *fuzz, struct buf *out) {
    struct bytes surt;
    struct captures_many many = {.size_max = (uint32_t)below(fuzz, PEER_RPC_PIECE_SIZE_MAX + 1),
                                 .count = (uint32_t)below(fuzz, CAPTURES_CODE_KEYS_MAX + 1)};
    for (uint32_t i = 0; i < many.count; i++) {
        many.keys[i] = some_key(fuzz, &surt);
        many.is_about[i] = below(fuzz, 2) == 0;
    }
    (void)!captures_code_put_many(out, &many);
}

static void put_walk(struct peerfuzz *fuzz, struct buf *out) {
    struct bytes surt;
    struct backend_code_walk walk = {.in_reverse = below(fuzz, 2) == 0,
                                     .count_max = 1 + (uint32_t)below(fuzz, BACKEND_CODE_PAGE_COUNT_MAX)};
    if (below(fuzz, 3) > 0) {
        some_key(fuzz, &surt);
        walk.from = surt;
    }
    if (below(fuzz, 3) == 0) {
        some_key(fuzz, &surt);
        walk.to = surt;
    }
    (void)!backend_code_put_walk(out, &walk);
}

static void put_decree_list(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t listed[DECREE_ID_SIZE + 8];
    for (size_t count = below(fuzz, 20); count > 0; count--) {
        prng_fill(&fuzz->prng, listed, sizeof listed);
        buf_put(out, bytes_of(listed, sizeof listed));
    }
}

static void put_lease(struct peerfuzz *fuzz, struct buf *out) {
    static const char *const hosts[] = {"127.0.1.1", "example.org", "a.b.c.d.e.f", "[::1]:80", "."};
    static uint8_t robots[4096];
    uint64_t now_us = clock_monotonic_us(&clock_system);
    struct host_leases_message message = {
        .kind = (enum host_leases_kind)below(fuzz, HOST_LEASES_KINDS_COUNT),
        .host = bytes_of_string(hosts[below(fuzz, sizeof hosts / sizeof *hosts)]),
        .is_https = below(fuzz, 2) == 0,
        .wait_us = mutate_number(&fuzz->prng) >> 1,
        .reason = (enum permit_reason)below(fuzz, PERMIT_REASONS_COUNT),
        .number = mutate_number(&fuzz->prng),
        .requests_count = (uint32_t)below(fuzz, PERMIT_REQUESTS_MAX + 1),
        .lease = {.until_us = now_us + below(fuzz, 60000000),
                  .requests_max = (uint32_t)below(fuzz, PERMIT_REQUESTS_MAX + 1),
                  .robots = {.has_text = below(fuzz, 2) == 0,
                             .policy = (enum robots_policy)below(fuzz, ROBOTS_ALLOW_NOTHING + 1),
                             .text = bytes_of(robots, below(fuzz, sizeof robots))}},
    };
    prng_fill(&fuzz->prng, robots, sizeof robots);
    pace_init(&message.pace);
    pace_init(&message.lease.pace);
    (void)!host_leases_write(&message, now_us, clock_wall_us(&clock_system), out);
}

static void put_chunks_question(struct peerfuzz *fuzz, const uint8_t id[VERSION_ID_SIZE], struct buf *out) {
    uint8_t digest[SHA256_SIZE];
    size_t count = below(fuzz, 20);
    mirror_driver_put_chunks_question(out, id, below(fuzz, 2) == 0, count);
    for (size_t i = 0; i < count; i++) {
        prng_fill(&fuzz->prng, digest, sizeof digest);
        bool is_there = fuzz->has_collection && below(fuzz, 2) == 0;
        buf_put(out, bytes_of(is_there ? fuzz->version.root.digest : digest, sizeof digest));
    }
}

static void put_mirror(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t id[VERSION_ID_SIZE];
    struct bytes name = bytes_of_string(below(fuzz, 4) == 0 ? "nobodys" : fuzz->collection_name);
    version_id(fuzz->version.publisher, name, &fuzz->sha256, id);
    switch (below(fuzz, MIRROR_DRIVER_KINDS_COUNT)) {
    case MIRROR_DRIVER_VERSION:
        mirror_driver_put_version_question(
            out, fuzz->self.address.port, fuzz->version.publisher, name,
            bytes_of(fuzz->statement, below(fuzz, 2) == 0 ? fuzz->statement_size : 0));
        break;
    case MIRROR_DRIVER_CHUNKS:
        put_chunks_question(fuzz, id, out);
        break;
    default:
        mirror_driver_put_parts_question(out, id, fuzz->version.root.digest);
    }
}

static void put_random(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t bytes[200];
    prng_fill(&fuzz->prng, bytes, sizeof bytes);
    buf_put(out, bytes_of(bytes, below(fuzz, sizeof bytes)));
}

/* How many random bytes are wanted. */
static void put_probe(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t memory[4];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u32(&writer,
                   (uint32_t)(below(fuzz, 4) == 0 ? mutate_number(&fuzz->prng) : below(fuzz, 10000)));
    buf_put(out, bytes_of(memory, writer.size));
}

static void put_hello(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    buf_put(out, peerfuzz_make_hello(fuzz, memory));
}

static void put_search(struct peerfuzz *fuzz, struct buf *out) {
    static const char *const words[] = {"words", "page more", "w* -page", "\"of 127\"",
                                        "\"",    "-more",     "pag*"};
    struct search_code_question question = {
        .words = bytes_of_string(words[below(fuzz, sizeof words / sizeof *words)]),
        .host = below(fuzz, 4) == 0 ? BYTES("127.0.1.1") : BYTES(""),
        .from_us = below(fuzz, 4) == 0 ? (int64_t)mutate_number(&fuzz->prng) : INT64_MIN,
        .to_us = below(fuzz, 4) == 0 ? (int64_t)mutate_number(&fuzz->prng) : INT64_MAX,
        .count = (uint32_t)below(fuzz, SEARCH_CODE_RESULTS_MAX + 2),
    };
    ASSERT(search_put_question(out, &question) == ERR_OK);
}

/* Keys that nobody has, and numbers; mostly as a whole list. */
static void put_report_list(struct peerfuzz *fuzz, struct buf *out) {
    buf_put_byte(out, (uint8_t)below(fuzz, 2));
    for (size_t i = below(fuzz, 10) * (PEER_KEY_SIZE + 8); i > 0; i--) {
        buf_put_byte(out, (uint8_t)below(fuzz, 256));
    }
}

/* Which charter and which acts the asker has: few of either, so that it is given something. */
static void put_acts(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t memory[8 + 8 * 24];
    size_t size = 8 + 24 * (size_t)below(fuzz, 8);
    prng_fill(&fuzz->prng, memory, sizeof memory);
    memset(memory, 0, below(fuzz, 2) * 8);
    buf_put(out, bytes_of(memory, below(fuzz, 8) == 0 ? size / 2 + 1 : size));
}

static struct bytes some_wish(struct peerfuzz *fuzz, uint8_t memory[CROWD_WISH_SIZE_MAX]) {
    struct wish wish = {.kind = below(fuzz, 2) == 0 ? WISH_URL : WISH_DIGEST, .time = WISH_NEWEST};
    prng_fill(&fuzz->prng, wish.hash, sizeof wish.hash);
    prng_fill(&fuzz->prng, wish.digest, sizeof wish.digest);
    return wish_write(&wish, memory);
}

/* It becomes its light member, mostly, and searches. */
static void put_relay(struct peerfuzz *fuzz, struct buf *out) {
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    uint8_t wish[CROWD_WISH_SIZE_MAX];
    struct relay_request request = {
        .kind = (uint8_t)below(fuzz, RELAY_REQUESTS_END),
        .number = (uint32_t)prng_u64(&fuzz->prng),
        .timeout_ms = (uint32_t)below(fuzz, 200),
        .hits_wanted = (uint8_t)(1 + below(fuzz, RELAY_HITS_MAX)),
        .wish = some_wish(fuzz, wish),
    };
    buf_put(out, relay_write_request(&request, memory));
}

static void put_relayed(struct peerfuzz *fuzz, struct buf *out) {
    static const uint8_t finding[] = "no finding";
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    uint8_t wish[CROWD_WISH_SIZE_MAX];
    struct relay_notice notice = {
        .kind = (uint8_t)below(fuzz, RELAY_NOTICES_END),
        .number = (uint32_t)below(fuzz, 100),
        .wish = some_wish(fuzz, wish),
    };
    struct relay_hit *hit = &notice.hits[0];
    *hit =
        (struct relay_hit){.holder = peerfuzz_some_peer(fuzz), .finding = bytes_of(finding, sizeof finding)};
    notice.hits_count = peer_is_possible(&hit->holder);
    notice.outcome = notice.hits_count > 0 ? RELAY_HITS : RELAY_NOTHING;
    buf_put(out, relay_write_notice(&notice, memory));
}

void peerfuzz_put_question(struct peerfuzz *fuzz, unsigned service, struct buf *out) {
    switch (service) {
    case PEER_RPC_COMPARE:
        put_comparison(fuzz, out);
        break;
    case PEER_RPC_OFFER:
    case PEER_RPC_CONFIRM:
        put_keys(fuzz, out);
        break;
    case PEER_RPC_PROVE:
        put_challenge(fuzz, out);
        break;
    case PEER_RPC_CAPTURE:
    case PEER_RPC_HAND:
        put_capture(fuzz, out, service == PEER_RPC_HAND);
        break;
    case PEER_RPC_CAPTURES:
        put_many(fuzz, out);
        break;
    case PEER_RPC_WALK:
        put_walk(fuzz, out);
        break;
    case PEER_RPC_DECREES:
    case PEER_RPC_IN_FORCE:
        put_decree_list(fuzz, out);
        break;
    case PEER_RPC_LEND:
        put_lease(fuzz, out);
        break;
    case PEER_RPC_PROBE:
        put_probe(fuzz, out);
        break;
    case PEER_RPC_MIRROR:
        put_mirror(fuzz, out);
        break;
    case PEER_RPC_HELLO:
        put_hello(fuzz, out);
        break;
    case PEER_RPC_SEARCH:
        put_search(fuzz, out);
        break;
    case PEER_RPC_REPORTS:
        put_report_list(fuzz, out);
        break;
    case PEER_RPC_ACTS:
        put_acts(fuzz, out);
        break;
    case PEER_RPC_RELAY:
        put_relay(fuzz, out);
        break;
    case PEER_RPC_RELAYED:
        put_relayed(fuzz, out);
        break;
    case PEER_RPC_FOLLOW:
    case PEER_RPC_ENTRANCE: /* empty, as they should be */
        break;
    default:
        put_random(fuzz, out);
    }
}
