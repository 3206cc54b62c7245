/* DIRECTORY/crowd-contacts: whom this node comes back by. */
#include <stdio.h>

#include "base/whole_file.h"
#include "node/crowd/crowd_driver_state.h"
#include "node/transport/peers_file.h"

enum { PATH_SIZE_MAX = 4096 + 64, MODE = 0600 };

static const char mark[] = "mncc";
_Static_assert((int)CROWD_DRIVER_CONTACTS_MAX <= (int)PEERS_FILE_COUNT_MAX, "a list has room for them");

static const char *path_of(const char *directory, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/crowd-contacts", directory);
    return out;
}

size_t crowd_driver_files_read(const char *directory, struct peer out[CROWD_DRIVER_CONTACTS_MAX]) {
    char path[PATH_SIZE_MAX];
    struct buf bytes;
    buf_init(&bytes, PEERS_FILE_SIZE_MAX);
    enum err err = whole_file_read(path_of(directory, path), &bytes, NULL);
    size_t count =
        err == ERR_OK ? peers_file_read(mark, buf_bytes(&bytes), out, CROWD_DRIVER_CONTACTS_MAX) : 0;
    buf_done(&bytes);
    return count;
}

enum err crowd_driver_files_write(const char *directory, const struct peer *peers, size_t count) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[PEERS_FILE_SIZE_MAX];
    return whole_file_replace(path_of(directory, path), peers_file_write(mark, peers, count, memory), MODE,
                              NULL);
}
