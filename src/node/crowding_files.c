/* DIRECTORY/crowd-contacts, as DIRECTORY/ring/peers (docs/formats/charter.md) but with another mark. */
#include <stdio.h>

#include "base/whole_file.h"
#include "node/crowding_state.h"

enum {
    PATH_SIZE_MAX = 4096 + 64,
    MODE = 0600,
    LAYOUT = 1,
    CONTACT_SIZE = 16 + 2 + PEER_KEY_SIZE,
    FILE_SIZE_MAX = 16 + CROWDING_CONTACTS_MAX * CONTACT_SIZE,
};

static const char magic[4] = {'m', 'n', 'c', 'c'};

static const char *path_of(const char *directory, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/crowd-contacts", directory);
    return out;
}

static void read_contact(struct wire_reader *reader, struct peer *peer) {
    wire_read_array(reader, peer->address.ip, sizeof peer->address.ip);
    peer->address.port = wire_read_u16(reader);
    wire_read_array(reader, peer->key, PEER_KEY_SIZE);
    if (peer->address.port == 0) {
        wire_read_fail(reader, ERR_INVALID, "port 0");
    }
}

static size_t decode(struct bytes bytes, struct peer out[CROWDING_CONTACTS_MAX]) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    struct bytes mark = wire_read_bytes(&reader, sizeof magic);
    bool is_known = bytes_equal(mark, bytes_of(magic, sizeof magic)) && wire_read_u8(&reader) == LAYOUT;
    size_t count = is_known ? (size_t)wire_read_varint(&reader, CROWDING_CONTACTS_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        read_contact(&reader, &out[i]);
    }
    return wire_reader_finish(&reader, NULL) == ERR_OK ? count : 0;
}

size_t crowding_files_read(const char *directory, struct peer out[CROWDING_CONTACTS_MAX]) {
    char path[PATH_SIZE_MAX];
    struct buf bytes;
    buf_init(&bytes, FILE_SIZE_MAX);
    enum err err = whole_file_read(path_of(directory, path), &bytes, NULL);
    size_t count = err == ERR_OK ? decode(buf_bytes(&bytes), out) : 0;
    buf_done(&bytes);
    return count;
}

enum err crowding_files_write(const char *directory, const struct peer *peers, size_t count) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[FILE_SIZE_MAX];
    struct wire_writer writer;
    struct bytes bytes;
    ASSERT(count <= CROWDING_CONTACTS_MAX);
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u8(&writer, LAYOUT);
    wire_write_varint(&writer, count);
    for (size_t i = 0; i < count; i++) {
        wire_write_bytes(&writer, bytes_of(peers[i].address.ip, sizeof peers[i].address.ip));
        wire_write_u16(&writer, peers[i].address.port);
        wire_write_bytes(&writer, bytes_of(peers[i].key, PEER_KEY_SIZE));
    }
    enum err err = wire_writer_finish(&writer, &bytes);
    ASSERT(err == ERR_OK);
    return whole_file_replace(path_of(directory, path), bytes, MODE, NULL);
}
