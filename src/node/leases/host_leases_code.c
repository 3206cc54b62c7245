#include "node/leases/host_leases_code.h"

#include "crawl/rules/pace.h"

enum {
    LEASE_MS_MAX = 60 * 1000,
    WAIT_MS_MAX = 600 * 1000,
    ROBOTS_S_MAX = 48 * 3600,
};

/* ---- writing ---- */

static uint64_t from_now(int64_t at, int64_t now, int64_t unit, uint64_t max) {
    uint64_t units = at > now ? (uint64_t)((at - now) / unit) : 0;
    return units < max ? units : max;
}

static void write_lend(const struct permit_lease *lease, uint64_t now_us, int64_t wall_us,
                       struct wire_writer *writer) {
    const struct permit_robots *robots = &lease->robots;
    wire_write_u64(writer, lease->lender.number);
    wire_write_varint(writer, from_now((int64_t)lease->until_us, (int64_t)now_us, 1000, LEASE_MS_MAX));
    wire_write_varint(writer, lease->requests_max);
    pace_write(&lease->pace, now_us, writer);
    wire_write_bool(writer, robots->is_https);
    wire_write_u8(writer, (uint8_t)robots->policy);
    wire_write_bool(writer, robots->is_unreachable);
    wire_write_varint(writer, from_now(robots->until_us, wall_us, 1000000, ROBOTS_S_MAX));
    wire_write_bytes(writer, bytes_of(robots->digest, PERMIT_DIGEST_SIZE));
    wire_write_bool(writer, robots->has_text);
    if (robots->has_text) {
        wire_write_string(writer, robots->text);
    }
}

static void write_contents(const struct host_leases_message *message, uint64_t now_us, int64_t wall_us,
                           struct wire_writer *writer) {
    switch (message->kind) {
    case HOST_LEASES_BORROW:
        wire_write_bool(writer, message->is_https);
        wire_write_bytes(writer, bytes_of(message->digest, PERMIT_DIGEST_SIZE));
        return;
    case HOST_LEASES_LEND:
        write_lend(&message->lease, now_us, wall_us, writer);
        return;
    case HOST_LEASES_REFUSE:
        wire_write_varint(writer, from_now((int64_t)message->wait_us, 0, 1000, WAIT_MS_MAX));
        wire_write_u8(writer, (uint8_t)message->reason);
        return;
    case HOST_LEASES_GIVE_BACK:
        wire_write_u64(writer, message->number);
        wire_write_varint(writer, message->requests_count);
        pace_write(&message->pace, now_us, writer);
        return;
    }
    assert_failed("every lending_kind has a layout", __FILE__, __LINE__);
}

enum err host_leases_write(const struct host_leases_message *message, uint64_t now_us, int64_t wall_us,
                           struct buf *out) {
    struct wire_writer writer;
    struct bytes written;
    size_t room = HOST_LEASES_HEAD_SIZE_MAX + message->lease.robots.text.size;
    enum err err = buf_reserve(out, room);
    if (err != ERR_OK) {
        return err;
    }
    wire_writer_init(&writer, out->data + out->size, room);
    wire_write_u8(&writer, (uint8_t)message->kind);
    wire_write_string(&writer, message->host);
    write_contents(message, now_us, wall_us, &writer);
    err = wire_writer_finish(&writer, &written);
    out->size += err == ERR_OK ? written.size : 0;
    return err;
}

/* ---- reading ---- */

static void read_robots(struct wire_reader *reader, int64_t wall_us, struct permit_robots *ret_robots) {
    ret_robots->is_https = wire_read_bool(reader);
    ret_robots->policy = (enum robots_policy)wire_read_u8_max(reader, ROBOTS_ALLOW_NOTHING);
    ret_robots->is_unreachable = wire_read_bool(reader);
    ret_robots->until_us = wall_us + (int64_t)wire_read_varint(reader, ROBOTS_S_MAX) * 1000000;
    wire_read_array(reader, ret_robots->digest, PERMIT_DIGEST_SIZE);
    ret_robots->has_text = wire_read_bool(reader);
    if (ret_robots->has_text) {
        ret_robots->text = wire_read_string(reader, ROBOTS_TEXT_SIZE_MAX);
    }
}

static void read_lend(struct wire_reader *reader, uint64_t now_us, int64_t wall_us,
                      struct permit_lease *ret_lease) {
    ret_lease->lender.number = wire_read_u64(reader);
    ret_lease->until_us = now_us + wire_read_varint(reader, LEASE_MS_MAX) * 1000;
    ret_lease->requests_max = (uint32_t)wire_read_varint(reader, PERMIT_REQUESTS_MAX);
    if (ret_lease->requests_max == 0) {
        wire_read_fail(reader, ERR_INVALID, "a lease for no request");
    }
    pace_read(reader, now_us, &ret_lease->pace);
    read_robots(reader, wall_us, &ret_lease->robots);
}

enum err host_leases_read(struct bytes input, uint64_t now_us, int64_t wall_us,
                          struct host_leases_message *ret_message, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    *ret_message = (struct host_leases_message){
        .kind = (enum host_leases_kind)wire_read_u8_max(&reader, HOST_LEASES_KINDS_COUNT - 1),
    };
    ret_message->host = wire_read_string(&reader, PERMIT_HOST_SIZE_MAX);
    if (ret_message->host.size == 0) {
        wire_read_fail(&reader, ERR_INVALID, "no host");
    }
    switch (ret_message->kind) {
    case HOST_LEASES_BORROW:
        ret_message->is_https = wire_read_bool(&reader);
        wire_read_array(&reader, ret_message->digest, PERMIT_DIGEST_SIZE);
        break;
    case HOST_LEASES_LEND:
        read_lend(&reader, now_us, wall_us, &ret_message->lease);
        break;
    case HOST_LEASES_REFUSE:
        ret_message->wait_us = wire_read_varint(&reader, WAIT_MS_MAX) * 1000;
        ret_message->reason = (enum permit_reason)wire_read_u8_max(&reader, PERMIT_REASONS_COUNT - 1);
        break;
    case HOST_LEASES_GIVE_BACK:
        ret_message->number = wire_read_u64(&reader);
        ret_message->requests_count = (uint32_t)wire_read_varint(&reader, PERMIT_REQUESTS_MAX);
        pace_read(&reader, now_us, &ret_message->pace);
        break;
    }
    return wire_reader_finish(&reader, detail);
}
