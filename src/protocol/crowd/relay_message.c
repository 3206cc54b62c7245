#include "protocol/crowd/relay_message.h"

#include "base/wire.h"

struct bytes relay_write_request(const struct relay_request *request, void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, RELAY_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, request->kind);
    if (request->kind == RELAY_SEARCH) {
        wire_write_u32(&writer, request->number);
        wire_write_varint(&writer, request->timeout_ms);
        wire_write_u8(&writer, request->hits_wanted);
        wire_write_string(&writer, request->wish);
    }
    return wire_writer_bytes(&writer);
}

struct bytes relay_write_notice(const struct relay_notice *notice, void *memory) {
    struct wire_writer writer;
    bool is_wish = notice->kind == RELAY_WISH;
    wire_writer_init(&writer, memory, is_wish ? RELAY_WISH_SIZE_MAX : RELAY_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, notice->kind);
    if (is_wish) {
        wire_write_string(&writer, notice->wish);
        return wire_writer_bytes(&writer);
    }
    wire_write_u32(&writer, notice->number);
    wire_write_u8(&writer, notice->outcome);
    wire_write_u8(&writer, notice->hits_count);
    for (size_t i = 0; i < notice->hits_count; i++) {
        peer_write(&writer, PEER_MEMBER, &notice->hits[i].holder);
        wire_write_u8(&writer, notice->hits[i].hops_count);
        wire_write_string(&writer, notice->hits[i].finding);
    }
    return wire_writer_bytes(&writer);
}

static struct bytes relay_read_wish(struct wire_reader *reader) {
    struct bytes wish = wire_read_string(reader, CROWD_WISH_SIZE_MAX);
    wire_read_check(reader, wish.size > 0, "an empty wish");
    return wish;
}

enum err relay_read_request(struct bytes bytes, struct relay_request *ret_request,
                            struct err_detail *detail) {
    struct wire_reader reader;
    struct relay_request request = {0};
    wire_reader_init(&reader, bytes);
    request.kind = wire_read_u8_max(&reader, RELAY_REQUESTS_END - 1);
    if (request.kind == RELAY_SEARCH) {
        request.number = wire_read_u32(&reader);
        request.timeout_ms = (uint32_t)wire_read_varint(&reader, RELAY_TIMEOUT_MS_MAX);
        request.hits_wanted = wire_read_u8_max(&reader, RELAY_HITS_MAX);
        wire_read_check(&reader, request.hits_wanted > 0, "a search for nothing");
        request.wish = relay_read_wish(&reader);
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_request = request;
    }
    return err;
}

static void read_hit(struct wire_reader *reader, struct relay_hit *hit) {
    peer_read(reader, PEER_MEMBER, &hit->holder);
    wire_read_check(reader, peer_is_possible(&hit->holder), "a holder that cannot be");
    hit->hops_count = wire_read_u8(reader);
    hit->finding = wire_read_string(reader, CROWD_FINDING_SIZE_MAX);
    wire_read_check(reader, hit->finding.size > 0, "an empty finding");
}

enum err relay_read_notice(struct bytes bytes, struct relay_notice *ret_notice, struct err_detail *detail) {
    struct wire_reader reader;
    struct relay_notice *notice = ret_notice;
    wire_reader_init(&reader, bytes);
    *notice = (struct relay_notice){.kind = wire_read_u8_max(&reader, RELAY_NOTICES_END - 1)};
    if (notice->kind == RELAY_WISH) {
        notice->wish = relay_read_wish(&reader);
        return wire_reader_finish(&reader, detail);
    }
    notice->number = wire_read_u32(&reader);
    notice->outcome = wire_read_u8_max(&reader, RELAY_OUTCOMES_END - 1);
    notice->hits_count = wire_read_u8_max(&reader, RELAY_HITS_MAX);
    wire_read_check(&reader, (notice->hits_count > 0) == (notice->outcome == RELAY_HITS),
                    "hits that do not fit their outcome");
    for (size_t i = 0; i < notice->hits_count && reader.err == ERR_OK; i++) {
        read_hit(&reader, &notice->hits[i]);
    }
    return wire_reader_finish(&reader, detail);
}

enum err relay_read_verdict(struct bytes bytes, uint8_t *ret_verdict) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    *ret_verdict = wire_read_u8_max(&reader, RELAY_VERDICTS_END - 1);
    return wire_reader_finish(&reader, NULL);
}
