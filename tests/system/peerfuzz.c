/*
 * peerfuzz DIRECTORY SELF NODE GROUP COLLECTION SEED COUNT - one burst of COUNT datagrams, and questions
 * beside them, as the member whose identity and ring lie in the data directory. What it came to is printed as
 * JSON; the same seed says the same to a node in the same state. Fails where the node does: if it does not
 * answer.
 */
#include "peerfuzz.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "node/rpc/peer_rpc.h"
#include "node/transport/ring_files.h"
#include "protocol/links/links_code.h"

enum { DATAGRAMS_AT_ONCE = 32, QUESTIONS_AT_ONCE = 24 };

void peerfuzz_must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "peerfuzz: %s\n", what);
        exit(1);
    }
}

void peerfuzz_turn(struct peerfuzz *fuzz) {
    prng_init_stream(&fuzz->prng, fuzz->seed, fuzz->turns_count++);
}

static void become_member(struct peerfuzz *fuzz, const char *directory) {
    struct err_detail detail = {0};
    peerfuzz_must(identity_load(&fuzz->identity, directory, &detail) == ERR_OK &&
                      ring_files_read_charter(directory, &fuzz->charter, fuzz->charter_memory,
                                              &fuzz->charter_bytes, &detail) == ERR_OK &&
                      ring_files_read_membership(directory, &fuzz->membership, &detail) == ERR_OK,
                  detail.text);
    charter_id(&fuzz->charter, &fuzz->sha256, fuzz->ring);
    memcpy(fuzz->self.key, fuzz->identity.key, PEER_KEY_SIZE);
}

/* Datagrams all the time; beside them questions, broken streams, and once a flood. */
static void run_burst(struct peerfuzz *fuzz, uint64_t count) {
    uint64_t rounds = (count + DATAGRAMS_AT_ONCE - 1) / DATAGRAMS_AT_ONCE;
    peerfuzz_turn(fuzz);
    uint64_t flood_round = prng_below(&fuzz->prng, 2 * rounds + 1);
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < DATAGRAMS_AT_ONCE; i++) {
            peerfuzz_send_something(fuzz);
        }
        peerfuzz_listen(fuzz);
        if (round % 6 == 0) { /* a node takes 20 connections a second of one address */
            peerfuzz_ask(fuzz, QUESTIONS_AT_ONCE);
        }
        if (round % 24 == 12) {
            peerfuzz_break_stream(fuzz);
        }
        if (round == flood_round) {
            peerfuzz_flood(fuzz);
        }
    }
    peerfuzz_listen(fuzz);
}

/* ---- what it came to ---- */

static void print_tally(const char *family, const char *kind, const struct peerfuzz_tally *tally) {
    printf("\"%s.%s\":[%ju,%ju,%ju],", family, kind, (uintmax_t)tally->sent, (uintmax_t)tally->taken,
           (uintmax_t)tally->refused);
}

static void print_report(const struct peerfuzz *fuzz) {
    static const char *const services[] = {
        "ping",  "compare", "offer",   "confirm", "prove",  "capture",  "walk",     "decrees",
        "lend",  "hand",    "probe",   "mirror",  "follow", "entrance", "in_force", "captures",
        "hello", "relay",   "relayed", "search",  "roll",   "acts",     "reports",  "none"};
    _Static_assert(sizeof services / sizeof *services == PEER_RPC_SERVICES_COUNT + 1, "a name for each");
    printf("{");
    for (unsigned i = 0; i < PEERFUZZ_FAMILIES_COUNT; i++) {
        const struct peerfuzz_family *family = &peerfuzz_families[i];
        for (unsigned kind = 0; kind < family->kinds_count; kind++) {
            print_tally(family->name, family->kinds[kind], &fuzz->datagrams[i][kind]);
        }
    }
    for (unsigned i = 0; i < sizeof services / sizeof *services; i++) {
        if (services[i] != NULL) { /* the numbers between belong to nobody */
            print_tally("rpc", services[i], &fuzz->questions[i]);
        }
    }
    print_tally("stream", "open", &fuzz->streams);
    print_tally("datagram", "broken_seal", &fuzz->seals);
    print_tally("datagram", "again", &fuzz->replays);
    printf("\"received\":%ju,\"unanswered\":%ju,\"captures\":%zu,\"collection\":%s}\n",
           (uintmax_t)fuzz->received, (uintmax_t)fuzz->unanswered, fuzz->captures_count,
           fuzz->has_collection ? "true" : "false");
}

int main(int argc, char **argv) {
    struct peerfuzz *fuzz = calloc(1, sizeof *fuzz);
    uint64_t count = 0;
    peerfuzz_must(argc == 8, "usage: peerfuzz DIRECTORY SELF NODE GROUP COLLECTION SEED COUNT");
    peerfuzz_must(fuzz != NULL && sodium_init() >= 0 && sha256_init(&fuzz->sha256) == ERR_OK &&
                      (fuzz->links = links_code_new()) != NULL,
                  "memory");
    peerfuzz_must(address_parse(bytes_of_string(argv[2]), 0, &fuzz->self.address) &&
                      address_parse(bytes_of_string(argv[3]), 0, &fuzz->node.address),
                  "an address that is none");
    peerfuzz_must(bytes_to_u64(bytes_of_string(argv[6]), UINT64_MAX, &fuzz->seed) &&
                      bytes_to_u64(bytes_of_string(argv[7]), UINT32_MAX, &count),
                  "a number that is none");
    fuzz->group_name = argv[4];
    fuzz->collection_name = argv[5];
    peerfuzz_turn(fuzz);
    become_member(fuzz, argv[1]);
    peerfuzz_meet(fuzz);
    peerfuzz_learn(fuzz);
    run_burst(fuzz, count);
    print_report(fuzz);
    links_code_free(fuzz->links);
    sha256_done(&fuzz->sha256);
    identity_done(&fuzz->identity);
    free(fuzz);
    return 0;
}
