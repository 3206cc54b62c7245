/*
 * connector - any text as the list of an instance's volumes.
 *
 * What is accepted has volumes in the order of their numbers, each either here or there, and no place twice.
 * Token files are opened for reading, so relative ones begin at a directory that does not exist.
 */
#include "store/instance/connector.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "store/document/key.h"

static void check_volume(const struct connector_volume *volume) {
    bool is_local = volume->path != NULL;
    ASSERT(volume->number < KEY_VOLUMES_MAX);
    ASSERT(is_local == (volume->url == NULL));
    ASSERT(is_local == (volume->index != NULL));
    ASSERT(is_local == (volume->token == NULL));
    if (is_local) {
        ASSERT(volume->path[0] == '/');
        return;
    }
    ASSERT(strncmp(volume->url, "http", 4) == 0);
    ASSERT(strlen(volume->token) > 0 && strpbrk(volume->token, " \r\n\t") == NULL);
    ASSERT(volume->remote_number < KEY_VOLUMES_MAX && volume->timeout_ms > 0);
}

/* The same text in a file is the same. */
static void check_file(struct bytes text, bool is_sound) {
    struct connector connector;
    struct err_detail detail = {0};
    char path[64];
    int file = memfd_create("connector", 0);
    ASSERT(file >= 0 && write(file, text.data, text.size) == (ssize_t)text.size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    enum err err = connector_read(&connector, path, &detail);
    ASSERT((err == ERR_OK) == is_sound || text.size > CONNECTOR_SIZE_MAX || !is_sound);
    if (err == ERR_OK) {
        connector_done(&connector);
    } else {
        ASSERT(err == ERR_MEMORY || detail.text[0] != '\0');
    }
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct connector connector;
    struct err_detail detail = {0};
    enum err err = connector_parse(&connector, bytes_of(data, size), "/nonexistent", &detail);
    check_file(bytes_of(data, size), err == ERR_OK);
    if (err != ERR_OK) {
        ASSERT(err == ERR_MEMORY || detail.text[0] != '\0');
        return 0;
    }
    ASSERT(connector.volumes_count > 0 && connector.volumes_count <= CONNECTOR_VOLUMES_MAX);
    for (size_t i = 0; i < connector.volumes_count; i++) {
        check_volume(&connector.volumes[i]);
        ASSERT(i == 0 || connector.volumes[i - 1].number < connector.volumes[i].number);
    }
    connector_done(&connector);
    return 0;
}
