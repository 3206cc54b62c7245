#include "crawl/frontier/frontier_code.h"

#include "base/wire.h"

enum { FLAG_RETRY = 1, FLAG_HISTORY = 2, FLAG_DIGEST = 4, FLAG_DOUBTFUL = 8, FLAGS_ALL = 15 };
enum { SEQUENCE_BITS = 46, DEPTH_BITS = 16 };

/* ---- positions ---- */

uint64_t frontier_code_position(enum frontier_priority priority, uint16_t depth, uint64_t sequence) {
    ASSERT(priority <= FRONTIER_GUESS && sequence <= FRONTIER_CODE_SEQUENCE_MAX);
    return (uint64_t)priority << (DEPTH_BITS + SEQUENCE_BITS) | (uint64_t)depth << SEQUENCE_BITS | sequence;
}

enum frontier_priority frontier_code_priority(uint64_t position) {
    return (enum frontier_priority)(position >> (DEPTH_BITS + SEQUENCE_BITS));
}

uint16_t frontier_code_depth(uint64_t position) {
    return (uint16_t)(position >> SEQUENCE_BITS);
}

uint64_t frontier_code_sequence(uint64_t position) {
    return position & FRONTIER_CODE_SEQUENCE_MAX;
}

uint64_t frontier_code_record_position(const struct frontier_record *record) {
    const struct frontier_position *place = &record->place;
    return record->retry_sequence > 0
               ? frontier_code_position(place->priority, UINT16_MAX, record->retry_sequence)
               : frontier_code_position(place->priority, place->depth, place->sequence);
}

/* ---- keys ---- */

static void code_put_big_endian(uint8_t *out, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) {
        out[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    }
}

static uint64_t code_get_big_endian(const uint8_t *data, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value = value << 8 | data[i];
    }
    return value;
}

struct bytes frontier_code_host_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], char kind, uint32_t host) {
    out[0] = (uint8_t)kind;
    code_put_big_endian(out + 1, host, 4);
    return bytes_of(out, 5);
}

struct bytes frontier_code_url_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], char kind, uint64_t fingerprint) {
    out[0] = (uint8_t)kind;
    code_put_big_endian(out + 1, fingerprint, 8);
    return bytes_of(out, 9);
}

struct bytes frontier_code_queue_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], uint32_t host,
                                     uint64_t position) {
    out[0] = 'q';
    code_put_big_endian(out + 1, host, 4);
    code_put_big_endian(out + 5, position, 8);
    return bytes_of(out, 13);
}

struct bytes frontier_code_name_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], char kind, const char *name) {
    size_t size = strlen(name);
    ASSERT(size > 0 && size < FRONTIER_CODE_KEY_SIZE_MAX);
    out[0] = (uint8_t)kind;
    memcpy(out + 1, name, size);
    return bytes_of(out, 1 + size);
}

static enum err code_check_key(struct bytes key, char kind, size_t size) {
    return key.size == size && key.data[0] == (uint8_t)kind ? ERR_OK : ERR_CORRUPT;
}

enum err frontier_code_read_host_key(struct bytes key, char kind, uint32_t *ret_host) {
    if (code_check_key(key, kind, 5) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_host = (uint32_t)code_get_big_endian(key.data + 1, 4);
    return ERR_OK;
}

enum err frontier_code_read_url_key(struct bytes key, char kind, uint64_t *ret_fingerprint) {
    if (code_check_key(key, kind, 9) != ERR_OK || code_get_big_endian(key.data + 1, 8) == 0) {
        return ERR_CORRUPT;
    }
    *ret_fingerprint = code_get_big_endian(key.data + 1, 8);
    return ERR_OK;
}

enum err frontier_code_read_queue_key(struct bytes key, uint32_t *ret_host, uint64_t *ret_position) {
    if (code_check_key(key, 'q', 13) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_host = (uint32_t)code_get_big_endian(key.data + 1, 4);
    *ret_position = code_get_big_endian(key.data + 5, 8);
    return ERR_OK;
}

/* ---- parts of values ---- */

/* Differences of any two times fit, since unsigned words wrap around. */
static void code_write_signed(struct wire_writer *writer, uint64_t value) {
    wire_write_varint(writer, value << 1 ^ (value >> 63 != 0 ? UINT64_MAX : 0));
}

static uint64_t code_read_signed(struct wire_reader *reader) {
    uint64_t code = wire_read_varint(reader, UINT64_MAX);
    return code >> 1 ^ ((code & 1) != 0 ? UINT64_MAX : 0);
}

static void code_write_place(struct wire_writer *writer, const struct frontier_position *place) {
    wire_write_varint(writer, place->host);
    wire_write_u8(writer, (uint8_t)place->priority);
    wire_write_varint(writer, place->depth);
    wire_write_varint(writer, place->sequence);
}

static void code_read_place(struct wire_reader *reader, struct frontier_position *place) {
    place->host = (uint32_t)wire_read_varint(reader, FRONTIER_CODE_HOSTS_MAX - 1);
    place->priority = (enum frontier_priority)wire_read_u8_max(reader, FRONTIER_GUESS);
    place->depth = (uint16_t)wire_read_varint(reader, UINT16_MAX);
    place->sequence = wire_read_varint(reader, FRONTIER_CODE_SEQUENCE_MAX);
}

static uint8_t code_history_flags(const struct frontier_history *history) {
    if (history->visits_count == 0) {
        return 0;
    }
    return history->has_digest ? FLAG_HISTORY | FLAG_DIGEST : FLAG_HISTORY;
}

static void code_write_history(struct wire_writer *writer, const struct frontier_history *history) {
    if (history->visits_count == 0) {
        return;
    }
    wire_write_varint(writer, history->visits_count);
    wire_write_varint(writer, history->changes_count);
    code_write_signed(writer, (uint64_t)history->last_time_us);
    code_write_signed(writer, (uint64_t)history->last_time_us - (uint64_t)history->first_time_us);
    wire_write_varint(writer, history->last_status);
    wire_write_string(writer, history->etag);
    wire_write_string(writer, history->last_modified);
    if (history->has_digest) {
        wire_write_bytes(writer, bytes_of(history->digest, sizeof history->digest));
    }
}

static void code_read_history(struct wire_reader *reader, uint8_t flags, struct frontier_history *history) {
    if ((flags & FLAG_HISTORY) == 0) {
        wire_read_check(reader, (flags & FLAG_DIGEST) == 0, "a digest without a visit");
        return;
    }
    history->visits_count = (uint32_t)wire_read_varint(reader, UINT32_MAX);
    history->changes_count = (uint32_t)wire_read_varint(reader, UINT32_MAX);
    uint64_t time_us = code_read_signed(reader);
    history->last_time_us = (int64_t)time_us;
    history->first_time_us = (int64_t)(time_us - code_read_signed(reader));
    history->last_status = (uint16_t)wire_read_varint(reader, UINT16_MAX);
    history->etag = wire_read_string(reader, FRONTIER_VALIDATOR_SIZE_MAX);
    history->last_modified = wire_read_string(reader, FRONTIER_VALIDATOR_SIZE_MAX);
    history->has_digest = (flags & FLAG_DIGEST) != 0;
    if (history->has_digest) {
        wire_read_array(reader, history->digest, sizeof history->digest);
    }
    wire_read_check(reader, history->visits_count > 0, "a history without a visit");
}

/* To the end of the value. */
static struct bytes code_read_url(struct wire_reader *reader) {
    struct bytes url = wire_read_bytes(reader, wire_reader_left(reader));
    wire_read_check(reader, url.size > 0 && url.size <= FRONTIER_URL_SIZE_MAX, "the size of the URL");
    return url;
}

static enum err code_finish(struct wire_reader *reader) {
    return wire_reader_finish(reader, NULL) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

/* ---- small values ---- */

struct bytes frontier_code_count(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX], uint32_t count) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, FRONTIER_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, count);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_counts(struct bytes value, uint32_t *ret_counts, size_t count_max,
                                   size_t *ret_count) {
    struct wire_reader reader;
    size_t count = 0;
    wire_reader_init(&reader, value);
    while (wire_reader_left(&reader) > 0 && count < count_max) {
        ret_counts[count++] = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    }
    if (code_finish(&reader) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_count = count;
    return ERR_OK;
}

struct bytes frontier_code_place(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX],
                                 const struct frontier_position *place) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, FRONTIER_CODE_SMALL_SIZE_MAX);
    code_write_place(&writer, place);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_place(struct bytes value, struct frontier_position *ret_place) {
    struct frontier_position place;
    struct wire_reader reader;
    wire_reader_init(&reader, value);
    code_read_place(&reader, &place);
    if (code_finish(&reader) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_place = place;
    return ERR_OK;
}

struct bytes frontier_code_meta(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX], const struct frontier_meta *meta) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, FRONTIER_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, meta->serial);
    wire_write_varint(&writer, meta->sequence);
    wire_write_varint(&writer, meta->doubtful_below);
    wire_write_varint(&writer, meta->visit);
    code_write_signed(&writer, (uint64_t)meta->visit_start_us);
    code_write_signed(&writer, (uint64_t)meta->due_before_us);
    wire_write_u8(&writer, (uint8_t)(meta->is_moving + meta->is_recalling));
    wire_write_varint(&writer, meta->moved_below);
    wire_write_varint(&writer, meta->moved_count);
    wire_write_varint(&writer, meta->done_count);
    wire_write_varint(&writer, meta->failed_count);
    wire_write_varint(&writer, meta->cut_count);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_meta(struct bytes value, struct frontier_meta *ret_meta) {
    struct frontier_meta meta;
    struct wire_reader reader;
    wire_reader_init(&reader, value);
    meta.serial = wire_read_varint(&reader, UINT64_MAX);
    meta.sequence = wire_read_varint(&reader, FRONTIER_CODE_SEQUENCE_MAX);
    meta.doubtful_below = wire_read_varint(&reader, FRONTIER_CODE_SEQUENCE_MAX);
    meta.visit = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    meta.visit_start_us = (int64_t)code_read_signed(&reader);
    meta.due_before_us = (int64_t)code_read_signed(&reader);
    uint8_t moving = wire_read_u8_max(&reader, 2);
    meta.is_moving = moving > 0;
    meta.is_recalling = moving == 2;
    meta.moved_below = wire_read_varint(&reader, UINT64_MAX);
    meta.moved_count = wire_read_varint(&reader, UINT64_MAX);
    meta.done_count = wire_read_varint(&reader, UINT64_MAX);
    meta.failed_count = wire_read_varint(&reader, UINT64_MAX);
    meta.cut_count = wire_read_varint(&reader, UINT64_MAX);
    if (code_finish(&reader) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_meta = meta;
    return ERR_OK;
}

/* ---- long values ---- */

struct bytes frontier_code_host(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX], uint64_t domain,
                                struct bytes name) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, FRONTIER_CODE_RECORD_SIZE_MAX);
    wire_write_u64(&writer, domain);
    wire_write_bytes(&writer, name);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_host(struct bytes value, uint64_t *ret_domain, struct bytes *ret_name) {
    struct wire_reader reader;
    wire_reader_init(&reader, value);
    uint64_t domain = wire_read_u64(&reader);
    struct bytes name = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (code_finish(&reader) != ERR_OK || name.size == 0 || name.size > FRONTIER_CODE_HOST_SIZE_MAX) {
        return ERR_CORRUPT;
    }
    *ret_domain = domain;
    *ret_name = name;
    return ERR_OK;
}

struct bytes frontier_code_later(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX], enum frontier_priority priority,
                                 const struct frontier_waiting *waiting) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, FRONTIER_CODE_RECORD_SIZE_MAX);
    wire_write_bool(&writer, waiting->is_doubtful);
    wire_write_u8(&writer, (uint8_t)priority);
    wire_write_varint(&writer, waiting->depth);
    wire_write_bytes(&writer, waiting->url);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_later(struct bytes value, enum frontier_priority *ret_priority,
                                  struct frontier_waiting *ret_waiting) {
    struct wire_reader reader;
    struct frontier_waiting waiting = {0};
    wire_reader_init(&reader, value);
    waiting.is_doubtful = wire_read_bool(&reader);
    enum frontier_priority priority = (enum frontier_priority)wire_read_u8_max(&reader, FRONTIER_GUESS);
    waiting.depth = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
    waiting.url = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (code_finish(&reader) != ERR_OK || waiting.url.size == 0 || waiting.url.size > FRONTIER_URL_SIZE_MAX) {
        return ERR_CORRUPT;
    }
    *ret_priority = priority;
    *ret_waiting = waiting;
    return ERR_OK;
}

struct bytes frontier_code_outgoing_key(uint8_t out[FRONTIER_CODE_OUTGOING_KEY_SIZE_MAX],
                                        const uint8_t place[ROUTE_POSITION_SIZE], struct bytes url) {
    ASSERT(url.size <= FRONTIER_URL_SIZE_MAX);
    out[0] = 'o';
    memcpy(out + 1, place, ROUTE_POSITION_SIZE);
    if (url.size > 0) {
        memcpy(out + 1 + ROUTE_POSITION_SIZE, url.data, url.size);
    }
    return bytes_of(out, 1 + ROUTE_POSITION_SIZE + url.size);
}

struct bytes frontier_code_outgoing(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX],
                                    enum frontier_priority priority, uint16_t depth) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, FRONTIER_CODE_SMALL_SIZE_MAX);
    wire_write_u8(&writer, (uint8_t)priority);
    wire_write_varint(&writer, depth);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_outgoing(struct bytes key, struct bytes value,
                                     struct frontier_outgoing *ret_link) {
    struct frontier_outgoing link;
    struct wire_reader reader;
    wire_reader_init(&reader, value);
    link.priority = (enum frontier_priority)wire_read_u8_max(&reader, FRONTIER_GUESS);
    link.depth = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
    if (code_finish(&reader) != ERR_OK || key.size <= 1 + ROUTE_POSITION_SIZE || key.data[0] != 'o' ||
        key.size > FRONTIER_CODE_OUTGOING_KEY_SIZE_MAX) {
        return ERR_CORRUPT;
    }
    memcpy(link.place, key.data + 1, ROUTE_POSITION_SIZE);
    link.url = bytes_skip(key, 1 + ROUTE_POSITION_SIZE);
    *ret_link = link;
    return ERR_OK;
}

struct bytes frontier_code_waiting(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX],
                                   const struct frontier_waiting *waiting) {
    struct wire_writer writer;
    uint8_t flags = code_history_flags(&waiting->history);
    flags |= waiting->tries > 0 ? FLAG_RETRY : 0;
    flags |= waiting->is_doubtful ? FLAG_DOUBTFUL : 0;
    wire_writer_init(&writer, out, FRONTIER_CODE_RECORD_SIZE_MAX);
    wire_write_u8(&writer, flags);
    if (waiting->tries > 0) {
        wire_write_varint(&writer, waiting->tries);
        wire_write_varint(&writer, waiting->depth);
        wire_write_varint(&writer, waiting->sequence);
    }
    code_write_history(&writer, &waiting->history);
    wire_write_bytes(&writer, waiting->url);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_waiting(struct bytes value, struct frontier_waiting *ret_waiting) {
    struct frontier_waiting waiting = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, value);
    uint8_t flags = wire_read_u8_max(&reader, FLAGS_ALL);
    waiting.is_doubtful = (flags & FLAG_DOUBTFUL) != 0;
    if ((flags & FLAG_RETRY) != 0) {
        waiting.tries = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
        waiting.depth = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
        waiting.sequence = wire_read_varint(&reader, FRONTIER_CODE_SEQUENCE_MAX);
        wire_read_check(&reader, waiting.tries > 0, "a retry without a try");
    }
    code_read_history(&reader, flags, &waiting.history);
    waiting.url = code_read_url(&reader);
    if (code_finish(&reader) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_waiting = waiting;
    return ERR_OK;
}

struct bytes frontier_code_record(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX],
                                  const struct frontier_record *record) {
    struct wire_writer writer;
    uint8_t flags = code_history_flags(&record->history);
    flags |= record->retry_sequence > 0 ? FLAG_RETRY : 0;
    wire_writer_init(&writer, out, FRONTIER_CODE_RECORD_SIZE_MAX);
    wire_write_u8(&writer, flags);
    wire_write_u8(&writer, (uint8_t)record->state);
    wire_write_u8(&writer, record->reason);
    code_write_place(&writer, &record->place);
    wire_write_varint(&writer, record->visit);
    code_write_signed(&writer, (uint64_t)record->due_us);
    if (record->retry_sequence > 0) {
        wire_write_varint(&writer, record->tries);
        wire_write_varint(&writer, record->retry_sequence);
    }
    code_write_history(&writer, &record->history);
    wire_write_bytes(&writer, record->url);
    return wire_writer_bytes(&writer);
}

enum err frontier_code_read_record(struct bytes value, struct frontier_record *ret_record) {
    struct frontier_record record = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, value);
    uint8_t flags = wire_read_u8_max(&reader, FLAG_RETRY | FLAG_HISTORY | FLAG_DIGEST);
    record.state = (enum frontier_state)wire_read_u8_max(&reader, FRONTIER_ELSEWHERE);
    wire_read_check(&reader, record.state != FRONTIER_AGAIN, "a state that is never kept");
    record.reason = wire_read_u8(&reader);
    code_read_place(&reader, &record.place);
    record.visit = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    record.due_us = (int64_t)code_read_signed(&reader);
    if ((flags & FLAG_RETRY) != 0) {
        record.tries = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
        record.retry_sequence = wire_read_varint(&reader, FRONTIER_CODE_SEQUENCE_MAX);
    }
    bool is_retry = record.state == FRONTIER_RETRY;
    wire_read_check(&reader, is_retry == ((flags & FLAG_RETRY) != 0), "a retry without its flag");
    wire_read_check(&reader, is_retry == (record.retry_sequence > 0), "a retry without its place");
    code_read_history(&reader, flags, &record.history);
    record.url = code_read_url(&reader);
    if (code_finish(&reader) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_record = record;
    return ERR_OK;
}
