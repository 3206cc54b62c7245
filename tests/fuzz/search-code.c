/*
 * search-code - any bytes as a question or an answer of a search over the ring. The first byte says which.
 * What is read gives the same bytes again; what an answer claims stays within its node's arcs; and any text,
 * made fit for an answer, is taken.
 */
#include "fuzz.h"
#include "node/search/search_put.h"
#include "protocol/search/search_cover.h"

enum { WRITTEN_SIZE_MAX = 4 << 20, TEXT_SIZE_MAX = 100 };

static void check_question(struct bytes input, struct buf *out) {
    struct search_code_question question;
    if (search_code_read_question(input, &question, NULL) == ERR_OK) {
        enum err err = search_put_question(out, &question);
        ASSERT(err == ERR_OK && bytes_equal(buf_bytes(out), input));
    }
}

/* Of two arcs, the first is held by the node. */
static void check_cover(struct bytes input) {
    struct search_cover_node nodes[2];
    struct search_cover_arc arcs[2];
    double weights[2];
    struct search_cover cover;
    struct search_cover_sum sum;
    struct search_cover_config config = {
        .nodes = nodes, .weights = weights, .nodes_max = 2, .arcs = arcs, .arcs_max = 2};
    search_cover_init(&cover, &config);
    for (uint8_t i = 0; i < 2; i++) {
        struct holders_arc arc = {.from = {i, i}, .to = {1 - i, 1 - i}, .count = 1};
        arc.peers[0].key[0] = i + 1;
        search_cover_add(&cover, &arc);
    }
    search_cover_take(&cover, 0, input);
    search_cover_sum(&cover, &sum);
    ASSERT(sum.arcs_count == 2 && arcs[1].state == SEARCH_COVER_MISSING);
}

static void check_answer(struct bytes input, struct buf *out) {
    static struct search_code_arc arcs[SEARCH_CODE_ARCS_MAX];
    struct search_code_reader reader;
    struct search_code_head head;
    struct search_code_result result;
    check_cover(input);
    if (search_code_check_answer(input, NULL) != ERR_OK) {
        return;
    }
    bool is_read = search_code_read_head(&reader, input, &head);
    ASSERT(is_read);
    for (uint32_t i = 0; i < head.arcs_count; i++) {
        is_read = search_code_next_arc(&reader, &arcs[i]);
        ASSERT(is_read);
    }
    enum err err = search_put_head(out, &head, arcs);
    while (err == ERR_OK && search_code_next_result(&reader, &result)) {
        err = search_put_result(out, &result);
    }
    ASSERT(err == ERR_OK && bytes_equal(buf_bytes(out), input));
}

static void check_text(struct bytes input, struct buf *out, bool keeps_marks) {
    struct search_code_head head = {.results_count = 1};
    struct buf text;
    buf_init(&text, TEXT_SIZE_MAX);
    search_put_text(&text, input, TEXT_SIZE_MAX, keeps_marks);
    struct search_code_result result = {.url = BYTES("http://a.example/")};
    *(keeps_marks ? &result.snippet : &result.title) = buf_bytes(&text);
    enum err err = search_put_head(out, &head, NULL);
    err = err == ERR_OK ? search_put_result(out, &result) : err;
    ASSERT(err == ERR_OK && text.err == ERR_OK);
    err = search_code_check_answer(buf_bytes(out), NULL);
    ASSERT(err == ERR_OK);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct buf out;
    struct bytes input = bytes_of(data + 1, size - 1);
    buf_init(&out, WRITTEN_SIZE_MAX);
    switch (data[0] % 4) {
    case 0:
        check_question(input, &out);
        break;
    case 1:
        check_answer(input, &out);
        break;
    default:
        check_text(input, &out, data[0] % 4 == 2);
    }
    buf_done(&out);
    return 0;
}
