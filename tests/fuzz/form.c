/*
 * form - arbitrary bytes as what a browser sends for a form, and as a list of peers that a node finds on its
 * disk.
 *
 * Held to: a value is no longer than the form, and a list that is read is written as the same bytes.
 */
#include "http/server/form.h"

#include "fuzz.h"
#include "node/transport/ring_files.h"

enum { VALUE_SIZE_MAX = 1 << 20 };

static void check_form(struct bytes input) {
    static const char *const names[] = {"url", "seeds", "a", ""};
    struct buf value;
    buf_init(&value, VALUE_SIZE_MAX);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        buf_clear(&value);
        bool is_there = form_get(input, names[i], &value);
        ASSERT(value.size <= input.size && (is_there || value.size == 0));
    }
    buf_done(&value);
}

static void check_peers(struct bytes input) {
    static struct peer peers[PEERS_FILE_COUNT_MAX];
    uint8_t memory[PEERS_FILE_SIZE_MAX];
    size_t count = peers_file_read("MNPE", input, peers, PEERS_FILE_COUNT_MAX);
    ASSERT(count <= PEERS_FILE_COUNT_MAX);
    if (count > 0) {
        struct bytes written = peers_file_write("MNPE", peers, count, memory);
        ASSERT(peers_file_read("MNPE", written, peers, PEERS_FILE_COUNT_MAX) == count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_form(bytes_of(data, size));
    check_peers(bytes_of(data, size));
    return 0;
}
