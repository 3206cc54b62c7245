/*
 * group-files - any bytes as NAME.group and as NAME.state. A wish that is read and written again is the same
 * wish; a state is the same bytes.
 */
#include "node/group/group_files.h"

#include <stdlib.h>

#include "fuzz.h"

enum { TEXT_SIZE_MAX = 64 << 10 };

static void check_wish(struct bytes input) {
    struct group_wish *wish = calloc(2, sizeof *wish);
    struct err_detail detail = {0};
    struct buf text;
    ASSERT(wish != NULL);
    buf_init(&text, TEXT_SIZE_MAX);
    enum err err = group_files_parse_wish(input, "films", &wish[0], &detail);
    if (err == ERR_OK) {
        ASSERT(wish[0].rules.k >= 1 && wish[0].rules.k <= TOPOLOGY_K_MAX);
        ASSERT(wish[0].neighbours_count <= GROUP_NEIGHBOURS_MAX);
        group_files_put_wish(&wish[0], &text);
        err = group_files_parse_wish(buf_bytes(&text), "films", &wish[1], NULL);
        ASSERT(err == ERR_OK && memcmp(&wish[0], &wish[1], sizeof *wish) == 0);
    } else {
        ASSERT(err == ERR_MEMORY || detail.text[0] != '\0');
    }
    buf_done(&text);
    free(wish);
}

static void check_state(struct bytes input) {
    struct group_state_file *state = calloc(1, sizeof *state);
    uint8_t memory[GROUP_FILES_STATE_SIZE_MAX];
    ASSERT(state != NULL);
    if (group_files_parse_state(input, state)) {
        ASSERT(bytes_equal(group_files_put_state(state, memory), input));
    }
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size <= TEXT_SIZE_MAX) {
        check_wish(bytes_of(data, size));
        check_state(bytes_of(data, size));
    }
    return 0;
}
