#include "net/plain.h"

static void plain_begin(struct wire_writer *writer, uint8_t *out, enum plain_kind kind) {
    wire_writer_init(writer, out, PLAIN_SIZE_MAX);
    wire_write_u8(writer, (uint8_t)(SEAL_VERSION << 4 | kind));
}

static struct bytes plain_finish(const struct wire_writer *writer, size_t size) {
    ASSERT(writer->size == size);
    return wire_writer_bytes(writer);
}

struct bytes plain_write_refuse(const struct plain_refuse *refuse, uint8_t *out) {
    struct wire_writer writer;
    plain_begin(&writer, out, PLAIN_REFUSE);
    wire_write_u8(&writer, refuse->reason);
    wire_write_bytes(&writer, bytes_of(refuse->echo, sizeof refuse->echo));
    wire_write_u8(&writer, refuse->version);
    wire_write_u64(&writer, refuse->time_us);
    return plain_finish(&writer, PLAIN_REFUSE_SIZE);
}

struct bytes plain_write_who(const struct plain_who *who, uint8_t *out) {
    static const uint8_t padding[PLAIN_WHO_SIZE - 1 - CONTACT_COOKIE_SIZE];
    struct wire_writer writer;
    plain_begin(&writer, out, PLAIN_WHO);
    wire_write_bytes(&writer, bytes_of(who->cookie, sizeof who->cookie));
    wire_write_bytes(&writer, bytes_of(padding, sizeof padding));
    return plain_finish(&writer, PLAIN_WHO_SIZE);
}

struct bytes plain_write_here(const struct plain_here *here, uint8_t *out) {
    struct wire_writer writer;
    plain_begin(&writer, out, PLAIN_HERE);
    wire_write_bytes(&writer, bytes_of(here->cookie, sizeof here->cookie));
    wire_write_bytes(&writer, bytes_of(here->key, sizeof here->key));
    return plain_finish(&writer, PLAIN_HERE_SIZE);
}

static bool open_plain(struct wire_reader *reader, struct bytes datagram, enum plain_kind kind, size_t size) {
    wire_reader_init(reader, datagram);
    return datagram.size == size && wire_read_u8(reader) == (uint8_t)(SEAL_VERSION << 4 | kind);
}

bool plain_read_refuse(struct bytes datagram, struct plain_refuse *ret_refuse) {
    struct wire_reader reader;
    if (!open_plain(&reader, datagram, PLAIN_REFUSE, PLAIN_REFUSE_SIZE)) {
        return false;
    }
    ret_refuse->reason = wire_read_u8(&reader);
    wire_read_array(&reader, ret_refuse->echo, sizeof ret_refuse->echo);
    ret_refuse->version = wire_read_u8(&reader);
    ret_refuse->time_us = wire_read_u64(&reader);
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}

bool plain_read_who(struct bytes datagram, struct plain_who *ret_who) {
    struct wire_reader reader;
    if (!open_plain(&reader, datagram, PLAIN_WHO, PLAIN_WHO_SIZE)) {
        return false;
    }
    wire_read_array(&reader, ret_who->cookie, sizeof ret_who->cookie);
    while (wire_reader_left(&reader) > 0) {
        wire_read_u8_max(&reader, 0);
    }
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}

bool plain_read_here(struct bytes datagram, struct plain_here *ret_here) {
    struct wire_reader reader;
    if (!open_plain(&reader, datagram, PLAIN_HERE, PLAIN_HERE_SIZE)) {
        return false;
    }
    wire_read_array(&reader, ret_here->cookie, sizeof ret_here->cookie);
    wire_read_array(&reader, ret_here->key, sizeof ret_here->key);
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}

const char *plain_reason_name(uint8_t reason) {
    return reason == PLAIN_REASON_VERSION ? "version" : reason == PLAIN_REASON_CLOCK ? "clock" : "unknown";
}
