#include "node/transport/peers_file.h"

enum { LAYOUT = 1 };

struct bytes peers_file_write(const char *mark, const struct peer *peers, size_t count, void *memory) {
    struct wire_writer writer;
    ASSERT(count <= PEERS_FILE_COUNT_MAX);
    wire_writer_init(&writer, memory, PEERS_FILE_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(mark, PEERS_FILE_MARK_SIZE));
    wire_write_u8(&writer, LAYOUT);
    wire_write_varint(&writer, count);
    for (size_t i = 0; i < count; i++) {
        peer_write(&writer, PEER_PLAIN, &peers[i]);
    }
    return wire_writer_bytes(&writer);
}

size_t peers_file_read(const char *mark, struct bytes bytes, struct peer *out, size_t peers_max) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    struct bytes found = wire_read_bytes(&reader, PEERS_FILE_MARK_SIZE);
    bool is_known =
        bytes_equal(found, bytes_of(mark, PEERS_FILE_MARK_SIZE)) && wire_read_u8(&reader) == LAYOUT;
    size_t count = is_known ? (size_t)wire_read_varint(&reader, peers_max) : 0;
    for (size_t i = 0; i < count; i++) {
        peer_read(&reader, PEER_PLAIN, &out[i]);
    }
    return wire_reader_finish(&reader, NULL) == ERR_OK ? count : 0;
}
