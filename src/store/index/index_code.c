#include "store/index/index_code.h"

#include "base/utc.h"
#include "base/wire.h"
#include "store/index/index_url.h"

/* ---- one byte for the media types that nearly every capture has ---- */

/* The position is the code, which is part of the format of the index and keeps its meaning for ever: new
 * types are appended. Most frequent first, as in the statistics of Common Crawl, since the search is linear.
 */
static const char *const mime_names[] = {
    "",
    "text/html",
    "image/jpeg",
    "image/png",
    "text/css",
    "application/javascript",
    "text/javascript",
    "image/gif",
    "application/json",
    "image/webp",
    "image/svg+xml",
    "text/plain",
    "application/x-javascript",
    "font/woff2",
    "warc/revisit",
    "unk",
    "application/pdf",
    "application/xhtml+xml",
    "application/xml",
    "text/xml",
    "application/octet-stream",
    "application/rss+xml",
    "application/atom+xml",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "font/woff",
    "application/font-woff",
    "application/font-woff2",
    "application/x-font-woff",
    "font/ttf",
    "application/x-font-ttf",
    "font/otf",
    "application/vnd.ms-fontobject",
    "video/mp4",
    "video/webm",
    "audio/mpeg",
    "audio/mp4",
    "audio/ogg",
    "application/ogg",
    "video/mp2t",
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "application/dash+xml",
    "video/quicktime",
    "video/x-flv",
    "application/x-shockwave-flash",
    "image/avif",
    "image/bmp",
    "image/tiff",
    "image/jpg",
    "application/zip",
    "application/gzip",
    "application/x-gzip",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/epub+zip",
    "application/ld+json",
    "application/manifest+json",
    "application/wasm",
    "application/rdf+xml",
    "application/x-www-form-urlencoded",
    "text/calendar",
    "text/csv",
    "text/dns",
    "text/vtt",
    "binary/octet-stream",
};

enum { MIME_OTHER = 255, MIME_NAMES_COUNT = sizeof mime_names / sizeof *mime_names };
_Static_assert((int)MIME_NAMES_COUNT < (int)MIME_OTHER, "a code is one byte and the last one is taken");

/* MIME_OTHER if the type has no code. Exact: other capitals are another type. */
static uint8_t mime_code(struct bytes mime) {
    for (uint8_t code = 0; code < MIME_NAMES_COUNT; code++) {
        if (bytes_equal(mime, bytes_of_string(mime_names[code]))) {
            return code;
        }
    }
    return MIME_OTHER;
}

/* False if no type has that code, *ret_mime untouched. The slice lives for ever. */
static bool mime_of_code(uint8_t code, struct bytes *ret_mime) {
    if (code >= MIME_NAMES_COUNT) {
        return false;
    }
    *ret_mime = bytes_of_string(mime_names[code]);
    return true;
}

enum { SECONDS_SIZE = 5, MICROSECONDS_SIZE = 3, SECOND_US = 1000000, URI_HASH_SIZE = 6 };
enum {
    FLAGS_ALL = CAPTURE_REVISIT | CAPTURE_TRUNCATED | CAPTURE_WITNESS | CAPTURE_IMPORTED | CAPTURE_SIGNED
};

/* ---- integers that sort ---- */

static void index_code_store_big_endian(uint8_t *out, uint64_t value, size_t size) {
    for (size_t i = size; i > 0; i--) {
        out[i - 1] = (uint8_t)value;
        value >>= 8;
    }
}

static void index_code_put_big_endian(struct buf *buf, uint64_t value, size_t size) {
    uint8_t bytes[8];
    index_code_store_big_endian(bytes, value, size);
    buf_put(buf, bytes_of(bytes, size));
}

static uint64_t index_code_read_big_endian(struct wire_reader *reader, size_t size) {
    struct bytes bytes = wire_read_bytes(reader, size);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        value = value << 8 | bytes.data[i];
    }
    return value;
}

static void index_code_put_sized(struct buf *buf, uint64_t value) {
    uint8_t size = 0;
    while (size < 8 && value >> (8 * size) > 0) {
        size++;
    }
    buf_put_byte(buf, size);
    index_code_put_big_endian(buf, value, size);
}

/* Only the shortest form is read, else two keys could name one capture. */
static uint64_t index_code_read_sized(struct wire_reader *reader, uint8_t size_max) {
    uint8_t size = wire_read_u8_max(reader, size_max);
    uint64_t value = index_code_read_big_endian(reader, size);
    if (size > 0 && value >> (8 * (size - 1)) == 0) {
        wire_read_fail(reader, ERR_INVALID, "not the shortest form");
    }
    return value;
}

static void index_code_put_time(struct buf *buf, int64_t time_us) {
    uint64_t since_us = (uint64_t)time_us - (uint64_t)UTC_MIN_US;
    index_code_put_big_endian(buf, since_us / SECOND_US, SECONDS_SIZE);
    index_code_put_big_endian(buf, since_us % SECOND_US, MICROSECONDS_SIZE);
}

static int64_t index_code_read_time(struct wire_reader *reader) {
    uint64_t seconds = index_code_read_big_endian(reader, SECONDS_SIZE);
    uint64_t microseconds = index_code_read_big_endian(reader, MICROSECONDS_SIZE);
    int64_t time_us = (int64_t)(seconds * SECOND_US + microseconds) + UTC_MIN_US;
    if (microseconds >= SECOND_US || time_us > UTC_MAX_US) {
        wire_read_fail(reader, ERR_INVALID, "no such time");
        return 0;
    }
    return time_us;
}

/* ---- small entries ---- */

static enum err index_code_finish(struct wire_reader *reader) {
    return wire_reader_finish(reader, NULL) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

struct bytes index_code_block_key(uint8_t out[INDEX_CODE_BLOCK_KEY_SIZE_MAX],
                                  const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number) {
    memcpy(out, digest, KEY_DIGEST_SIZE);
    if (number == 0) {
        return bytes_of(out, KEY_DIGEST_SIZE);
    }
    index_code_store_big_endian(out + KEY_DIGEST_SIZE, number, sizeof number);
    return bytes_of(out, INDEX_CODE_BLOCK_KEY_SIZE_MAX);
}

enum err index_code_read_block_key(struct bytes key, uint8_t ret_digest[KEY_DIGEST_SIZE],
                                   uint16_t *ret_number) {
    struct wire_reader reader;
    wire_reader_init(&reader, key);
    struct bytes digest = wire_read_bytes(&reader, KEY_DIGEST_SIZE);
    bool has_number = wire_reader_left(&reader) > 0;
    uint16_t number = has_number ? (uint16_t)index_code_read_big_endian(&reader, sizeof number) : 0;
    if (has_number && number == 0) {
        wire_read_fail(&reader, ERR_INVALID, "a number 0 is left out");
    }
    enum err err = index_code_finish(&reader);
    if (err != ERR_OK) {
        return err;
    }
    memcpy(ret_digest, digest.data, KEY_DIGEST_SIZE);
    *ret_number = number;
    return ERR_OK;
}

struct bytes index_code_segment_key(uint8_t out[INDEX_CODE_SEGMENT_KEY_SIZE], uint32_t number) {
    index_code_store_big_endian(out, number, sizeof number);
    return bytes_of(out, INDEX_CODE_SEGMENT_KEY_SIZE);
}

static struct bytes index_code_mended_prefix(void) {
    return BYTES("mended");
}

struct bytes index_code_mended_key(uint8_t out[INDEX_CODE_MENDED_KEY_SIZE], uint32_t segment,
                                   uint64_t offset) {
    struct bytes prefix = index_code_mended_prefix();
    memcpy(out, prefix.data, prefix.size);
    index_code_store_big_endian(out + prefix.size, segment, sizeof segment);
    index_code_store_big_endian(out + prefix.size + sizeof segment, offset, sizeof offset);
    return bytes_of(out, INDEX_CODE_MENDED_KEY_SIZE);
}

struct bytes index_code_mended(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX], const struct location *location) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, INDEX_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, location->length);
    return wire_writer_bytes(&writer);
}

enum err index_code_read_mended(struct bytes key, struct bytes value, uint32_t segment,
                                struct location *ret_location) {
    struct bytes prefix = index_code_mended_prefix();
    if (key.size != INDEX_CODE_MENDED_KEY_SIZE || !bytes_starts_with(key, prefix)) {
        return ERR_NOT_FOUND;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_skip(key, prefix.size));
    struct location location = {.segment =
                                    (uint32_t)index_code_read_big_endian(&reader, sizeof location.segment)};
    location.offset = index_code_read_big_endian(&reader, sizeof location.offset);
    if (location.segment != segment) {
        return ERR_NOT_FOUND;
    }
    wire_reader_init(&reader, value);
    location.length = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    enum err err = index_code_finish(&reader);
    if (err == ERR_OK) {
        *ret_location = location;
    }
    return err;
}

static uint32_t index_code_zigzag(int32_t value) {
    return value < 0 ? ~((uint32_t)value << 1) : (uint32_t)value << 1;
}

static int32_t index_code_zigzag_back(uint32_t code) {
    return code & 1 ? -(int32_t)(code >> 1) - 1 : (int32_t)(code >> 1);
}

struct bytes index_code_block(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX], const struct block *block) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, INDEX_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, block->location.segment);
    wire_write_varint(&writer, block->location.offset);
    wire_write_varint(&writer, block->location.length);
    wire_write_varint(&writer, block->size);
    wire_write_varint(&writer, index_code_zigzag(block->references));
    wire_write_varint(&writer, block->records_count);
    if (block->location.segment != 0) {
        uint8_t hash[URI_HASH_SIZE];
        bool is_time = block->origin_time_us >= UTC_MIN_US && block->origin_time_us <= UTC_MAX_US;
        int64_t time_us = is_time ? block->origin_time_us : 0; /* a foreign record may have any date */
        index_code_store_big_endian(hash, block->origin_uri_hash, sizeof hash);
        wire_write_varint(&writer, (uint64_t)time_us - (uint64_t)UTC_MIN_US);
        wire_write_bytes(&writer, bytes_of(hash, sizeof hash));
    }
    return wire_writer_bytes(&writer);
}

enum err index_code_read_block(struct bytes value, struct block *ret_block) {
    struct wire_reader reader;
    struct block block = {0};
    wire_reader_init(&reader, value);
    block.location.segment = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    block.location.offset = wire_read_varint(&reader, UINT64_MAX);
    block.location.length = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    block.size = wire_read_varint(&reader, UINT64_MAX);
    block.references = index_code_zigzag_back((uint32_t)wire_read_varint(&reader, UINT32_MAX));
    block.records_count = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    if (block.location.segment != 0) {
        uint64_t since_us = wire_read_varint(&reader, (uint64_t)UTC_MAX_US - (uint64_t)UTC_MIN_US);
        block.origin_time_us = (int64_t)since_us + UTC_MIN_US;
        block.origin_uri_hash = index_code_read_big_endian(&reader, URI_HASH_SIZE);
    }
    enum err err = index_code_finish(&reader);
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return err;
}

struct bytes index_code_segment(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX], const struct index_segment *segment) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, INDEX_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, segment->size);
    wire_write_varint(&writer, segment->dead_size);
    wire_write_varint(&writer, segment->records_count);
    if (segment->has_purged) { /* else as versions before 0.3 wrote it */
        wire_write_bool(&writer, true);
    }
    return wire_writer_bytes(&writer);
}

enum err index_code_read_segment(struct bytes value, struct index_segment *ret_segment) {
    struct wire_reader reader;
    struct index_segment segment;
    wire_reader_init(&reader, value);
    segment.size = wire_read_varint(&reader, UINT64_MAX);
    segment.dead_size = wire_read_varint(&reader, UINT64_MAX);
    segment.records_count = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    segment.has_purged = wire_reader_left(&reader) > 0;
    if (segment.has_purged && !wire_read_bool(&reader)) {
        wire_read_fail(&reader, ERR_CORRUPT, "a segment in which nothing was purged says so");
    }
    enum err err = index_code_finish(&reader);
    if (err == ERR_OK) {
        *ret_segment = segment;
    }
    return err;
}

struct bytes index_code_position(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX],
                                 const struct index_position *position) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, INDEX_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, position->segment);
    wire_write_varint(&writer, position->offset);
    return wire_writer_bytes(&writer);
}

enum err index_code_read_position(struct bytes value, struct index_position *ret_position) {
    struct wire_reader reader;
    struct index_position position;
    wire_reader_init(&reader, value);
    position.segment = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    position.offset = wire_read_varint(&reader, UINT64_MAX);
    enum err err = index_code_finish(&reader);
    if (err == ERR_OK) {
        *ret_position = position;
    }
    return err;
}

/* ---- captures ---- */

static bool index_code_surt_is_valid(struct bytes surt) {
    return surt.size <= INDEX_SURT_SIZE_MAX && bytes_find_byte(surt, 0x00) == surt.size &&
           bytes_find_byte(surt, 0xff) == surt.size;
}

bool index_can_hold(const struct capture *capture) {
    return index_code_surt_is_valid(capture->surt) && capture->url.size <= INDEX_URL_SIZE_MAX &&
           capture->mime.size <= INDEX_MIME_SIZE_MAX && capture->time_us >= UTC_MIN_US &&
           capture->time_us <= UTC_MAX_US && capture->location.segment > 0 &&
           (capture->flags & ~FLAGS_ALL) == 0;
}

void index_put_capture_prefix(struct buf *buf, struct bytes surt, int64_t time_us) {
    buf_put(buf, surt);
    buf_put_byte(buf, 0x00);
    if (time_us > UTC_MAX_US) {
        index_code_put_big_endian(buf, UINT64_MAX, SECONDS_SIZE + MICROSECONDS_SIZE);
    } else {
        index_code_put_time(buf, time_us < UTC_MIN_US ? UTC_MIN_US : time_us);
    }
}

void index_code_put_capture_key(struct buf *key, const struct capture *capture) {
    index_put_capture_prefix(key, capture->surt, capture->time_us);
    index_code_put_sized(key, capture->location.segment);
    index_code_put_sized(key, capture->location.offset);
}

size_t index_code_surt_size(struct bytes key) {
    size_t size = bytes_find_byte(key, 0x00);
    return size < key.size ? size + 1 : 0;
}

static void index_code_write_mime(struct wire_writer *writer, struct bytes mime) {
    uint8_t code = mime_code(mime);
    wire_write_u8(writer, code);
    if (code == MIME_OTHER) {
        wire_write_string(writer, mime);
    }
}

static struct bytes index_code_read_mime(struct wire_reader *reader) {
    struct bytes mime = {NULL, 0};
    uint8_t code = wire_read_u8(reader);
    if (code == MIME_OTHER) {
        return wire_read_string(reader, INDEX_MIME_SIZE_MAX);
    }
    if (!mime_of_code(code, &mime)) {
        wire_read_fail(reader, ERR_INVALID, "no such media type");
    }
    return mime;
}

/* As far as a capture's own entry has it. */
static size_t index_code_digest_size(const struct capture *capture) {
    return capture->flags & CAPTURE_REVISIT ? INDEX_CODE_SHORT_DIGEST_SIZE : KEY_DIGEST_SIZE;
}

void index_code_put_capture(struct buf *value, const struct capture *capture, struct buf *url) {
    size_t size_max = capture->url.size + capture->mime.size + INDEX_CODE_CAPTURE_OVERHEAD_SIZE_MAX;
    if (buf_reserve(value, size_max) != ERR_OK) {
        return;
    }
    struct wire_writer writer;
    wire_writer_init(&writer, value->data + value->size, size_max);
    wire_write_u8(&writer, capture->flags);
    enum err err = index_url_write(&writer, capture->surt, capture->url, url);
    if (err != ERR_OK) {
        value->err = err;
        return;
    }
    index_code_write_mime(&writer, capture->mime);
    wire_write_varint(&writer, capture->status);
    wire_write_varint(&writer, capture->block_number);
    wire_write_varint(&writer, capture->location.length);
    wire_write_bytes(&writer, bytes_of(capture->digest, index_code_digest_size(capture)));
    if (capture->flags & CAPTURE_WITNESS) {
        wire_write_u32(&writer, capture->visit_s);
        wire_write_u16(&writer, capture->signer);
    }
    if (capture_has_voucher(capture)) {
        wire_write_u64(&writer, capture->voucher);
    }
    value->size += wire_writer_bytes(&writer).size;
}

static enum err index_code_read_capture_key(struct bytes key, struct capture *capture) {
    size_t surt_size = index_code_surt_size(key);
    if (surt_size == 0) {
        return ERR_CORRUPT;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_skip(key, surt_size));
    capture->surt = bytes_slice(key, 0, surt_size - 1);
    capture->time_us = index_code_read_time(&reader);
    capture->location.segment = (uint32_t)index_code_read_sized(&reader, sizeof(uint32_t));
    capture->location.offset = index_code_read_sized(&reader, sizeof(uint64_t));
    if (!index_code_surt_is_valid(capture->surt) || capture->location.segment == 0) {
        return ERR_CORRUPT;
    }
    return index_code_finish(&reader);
}

enum err index_code_read_capture(struct bytes key, struct bytes value, struct buf *url,
                                 struct capture *ret_capture) {
    struct capture capture = {0};
    struct wire_reader reader;
    enum err err = index_code_read_capture_key(key, &capture);
    if (err != ERR_OK) {
        return err;
    }
    wire_reader_init(&reader, value);
    capture.flags = wire_read_u8_max(&reader, FLAGS_ALL);
    err = index_url_read(&reader, capture.surt, url);
    if (err != ERR_OK) {
        return err;
    }
    capture.mime = index_code_read_mime(&reader);
    capture.status = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
    capture.block_number = (uint16_t)wire_read_varint(&reader, UINT16_MAX);
    capture.location.length = (uint32_t)wire_read_varint(&reader, UINT32_MAX);
    wire_read_array(&reader, capture.digest, index_code_digest_size(&capture));
    if (capture.flags & CAPTURE_WITNESS) {
        capture.visit_s = wire_read_u32(&reader);
        capture.signer = wire_read_u16(&reader);
    }
    if (capture_has_voucher(&capture)) {
        capture.voucher = wire_read_u64(&reader);
    }
    err = index_code_finish(&reader);
    if (err != ERR_OK) {
        return err;
    }
    capture.url = buf_bytes(url);
    *ret_capture = capture;
    return ERR_OK;
}
