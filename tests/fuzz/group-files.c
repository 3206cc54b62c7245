/*
 * group-files - any bytes as NAME.group and as NAME.state. A wish that is read and written again is the same
 * wish; a state is the same bytes.
 */
#include "node/group/group_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Both in their files. */
static void check_directory(struct bytes input) {
    char directory[] = "/tmp/mnemon-fuzz-XXXXXX";
    char path[64];
    char names[2][GROUP_FILES_NAME_SIZE_MAX];
    struct group_wish *wish = calloc(2, sizeof *wish);
    struct group_state_file *state = calloc(2, sizeof *state);
    ASSERT(wish != NULL && state != NULL);
    bool is_wish = group_files_parse_wish(input, "films", &wish[0], NULL) == ERR_OK;
    if ((!is_wish && !group_files_parse_state(input, &state[0])) || mkdtemp(directory) == NULL) {
        free(state);
        free(wish);
        return;
    }
    ASSERT(group_files_list(directory, names, 2) == 0);
    ASSERT(group_files_read_wish(directory, "films", &wish[1], NULL) == ERR_NOT_FOUND);
    enum err err;
    if (is_wish) {
        err = group_files_write_wish(directory, &wish[0], NULL);
        ASSERT(err == ERR_OK && group_files_read_wish(directory, "films", &wish[1], NULL) == ERR_OK);
        ASSERT(memcmp(&wish[0], &wish[1], sizeof *wish) == 0);
        ASSERT(group_files_list(directory, names, 2) == 1 && strcmp(names[0], "films") == 0);
        for (size_t i = 0; i < wish[1].approved.count; i++) {
            group_keys_list_remove(&wish[1].approved, wish[0].approved.keys[i]);
        }
        ASSERT(wish[1].approved.count == 0 || wish[0].approved.count > 1);
    }
    if (!is_wish) {
        err = group_files_write_state(directory, "films", &state[0], NULL);
        ASSERT(err == ERR_OK && group_files_read_state(directory, "films", &state[1]));
        ASSERT(state[0].document_size == state[1].document_size);
    }
    err = group_files_remove(directory, "films", NULL);
    ASSERT(err == ERR_OK);
    snprintf(path, sizeof path, "%s/groups", directory);
    rmdir(path);
    rmdir(directory);
    free(state);
    free(wish);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size <= TEXT_SIZE_MAX) {
        check_wish(bytes_of(data, size));
        check_state(bytes_of(data, size));
        check_directory(bytes_of(data, size));
    }
    return 0;
}
