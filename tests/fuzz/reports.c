/*
 * reports - questions and answers of other nodes about what nodes say of themselves. The first byte says
 * which it is. Whatever comes, a question is answered within its bounds or refused, an answer is taken or
 * refused, and the node goes on to know itself and the others. Signatures are not checked by chance: what has
 * none that is right changes nothing.
 */
#include "node/ring/reports.h"

#include "fuzz.h"

enum { OTHERS_COUNT = 3, CAPTURES = 5 };

static void collect(void *context, struct node_report *report) {
    (void)context;
    report->values[NODE_REPORT_CAPTURES] = CAPTURES;
}

static void look(void *context, const struct reports_node *node) {
    size_t *count = context;
    ASSERT(node->has_report == node->is_self); /* nobody else has signed anything */
    ASSERT(!node->is_self || node->report.values[NODE_REPORT_CAPTURES] == CAPTURES);
    (*count)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t seed[IDENTITY_SEED_SIZE] = {1};
    struct identity identity;
    struct peer others[OTHERS_COUNT];
    struct bytes input = bytes_of(data, size);
    struct buf answer;
    size_t count = 0;
    ASSERT(identity_from_seed(&identity, seed) == ERR_OK);
    struct reports_config config = {
        .identity = &identity, .program = "0.3.0", .clock = &clock_system, .collect = collect};
    memset(config.ring, 'r', sizeof config.ring);
    struct reports *reports = reports_new(&config);
    for (size_t i = 0; i < OTHERS_COUNT; i++) {
        others[i] = (struct peer){.address = {.port = 7070}};
        memset(others[i].key, 'k' + (int)i, PEER_KEY_SIZE);
    }
    reports_beat(reports, others, OTHERS_COUNT);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    if (size > 0 && data[0] % 2 == 0) {
        enum err err = reports_answer(reports, &others[0], bytes_skip(input, 1), &answer, NULL);
        ASSERT(err != ERR_OK || (answer.err == ERR_OK && answer.size >= 8));
    } else if (size > 0) {
        enum err err = reports_take_answer(reports, &others[0], 0, bytes_skip(input, 1), NULL);
        ASSERT(err != ERR_OK || size >= 9);
    }
    (void)reports_each(reports, look, &count);
    ASSERT(count == 1 + OTHERS_COUNT);
    buf_done(&answer);
    reports_free(reports);
    identity_done(&identity);
    return 0;
}
