#include "store/remote/backend_code.h"

#include "base/utc.h"
#include "store/volume/volume.h"

enum { MARK_END, MARK_ENTRY };

/* A writer over size_max bytes that are reserved behind the buffer's end; all of it fails where they are not.
 */
static void start(struct wire_writer *writer, struct buf *out, size_t size_max) {
    bool has_room = buf_reserve(out, size_max) == ERR_OK;
    wire_writer_init(writer, has_room ? out->data + out->size : NULL, has_room ? size_max : 0);
}

static void finish(const struct wire_writer *writer, struct buf *out) {
    if (out->err == ERR_OK && writer->err != ERR_OK) {
        out->err = writer->err;
    } else if (out->err == ERR_OK) {
        out->size += writer->size;
    }
}

static void write_location(struct wire_writer *writer, const struct location *location) {
    wire_write_varint(writer, location->segment);
    wire_write_varint(writer, location->offset);
    wire_write_varint(writer, location->length);
}

static struct location read_location(struct wire_reader *reader) {
    struct location location;
    location.segment = (uint32_t)wire_read_varint(reader, UINT32_MAX);
    location.offset = wire_read_varint(reader, INT64_MAX);
    location.length = (uint32_t)wire_read_varint(reader, UINT32_MAX);
    return location;
}

static int64_t read_time(struct wire_reader *reader) {
    int64_t time_us = (int64_t)wire_read_u64(reader);
    if (time_us < UTC_MIN_US || time_us > UTC_MAX_US) {
        wire_read_fail(reader, ERR_INVALID, "a time before year 1 or after year 9999");
        return 0;
    }
    return time_us;
}

/* ---- claims and answers ---- */

void backend_code_put_claims(struct buf *out, const struct document_sum *claims, size_t claims_count) {
    ASSERT(claims_count <= BACKEND_CODE_CLAIMS_MAX);
    struct wire_writer writer;
    start(&writer, out, WIRE_VARINT_SIZE_MAX + claims_count * (KEY_DIGEST_SIZE + WIRE_VARINT_SIZE_MAX));
    wire_write_varint(&writer, claims_count);
    for (size_t i = 0; i < claims_count; i++) {
        wire_write_bytes(&writer, bytes_of(claims[i].digest, KEY_DIGEST_SIZE));
        wire_write_varint(&writer, claims[i].size);
    }
    finish(&writer, out);
}

size_t backend_code_begin_claims(struct wire_reader *reader) {
    return (size_t)wire_read_varint(reader, BACKEND_CODE_CLAIMS_MAX);
}

void backend_code_next_claim(struct wire_reader *reader, struct document_sum *ret_claim) {
    wire_read_array(reader, ret_claim->digest, KEY_DIGEST_SIZE);
    ret_claim->size = wire_read_varint(reader, INT64_MAX);
}

void backend_code_put_answers(struct buf *out, const bool *holds, size_t holds_count) {
    struct wire_writer writer;
    start(&writer, out, WIRE_VARINT_SIZE_MAX + holds_count / 8 + 1);
    wire_write_varint(&writer, holds_count);
    for (size_t i = 0; i < holds_count; i += 8) {
        uint8_t byte = 0;
        for (size_t bit = 0; bit < 8 && i + bit < holds_count; bit++) {
            byte |= (uint8_t)((holds[i + bit] ? 1u : 0u) << bit);
        }
        wire_write_u8(&writer, byte);
    }
    finish(&writer, out);
}

enum err backend_code_read_answers(struct bytes in, bool *ret_holds, size_t holds_count,
                                   struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    if (wire_read_varint(&reader, BACKEND_CODE_CLAIMS_MAX) != holds_count) {
        wire_read_fail(&reader, ERR_INVALID, "not as many answers as claims");
    }
    struct bytes bits = wire_read_bytes(&reader, (holds_count + 7) / 8);
    if (bits.size > 0 && holds_count % 8 != 0 && bits.data[bits.size - 1] >> holds_count % 8 != 0) {
        wire_read_fail(&reader, ERR_INVALID, "bits behind the last answer");
    }
    enum err err = wire_reader_finish(&reader, detail);
    for (size_t i = 0; i < holds_count && err == ERR_OK; i++) {
        ret_holds[i] = (bits.data[i / 8] >> i % 8 & 1) != 0;
    }
    return err;
}

/* ---- documents ---- */

/*
 * Who imported it, or of which visit of several nodes it is, stands where a document without HTTP has its
 * media type, which one with a head does not need: readers of earlier versions pass over it. The word tells
 * it from the type of a record that some of them put there. No witness imports what it fetches.
 */
static const char IMPORTED_WORD[] = "imported ";
static const char VISIT_WORD[] = "visit ";
enum { IMPORTED_WORD_SIZE = sizeof IMPORTED_WORD - 1, VISIT_WORD_SIZE = sizeof VISIT_WORD - 1 };

static void code_write_type(struct wire_writer *writer, const struct document *document) {
    bool is_imported = document->imported.size > 0;
    struct bytes said = is_imported ? document->imported : document->visit;
    struct bytes word = bytes_of_string(is_imported ? IMPORTED_WORD : VISIT_WORD);
    if (document->head.size == 0 || said.size == 0) {
        wire_write_string(writer, document->content_type);
        return;
    }
    wire_write_varint(writer, word.size + said.size);
    wire_write_bytes(writer, word);
    wire_write_bytes(writer, said);
}

static void code_read_type(struct document *document, struct bytes type) {
    if (document->head.size > 0 && bytes_starts_with(type, bytes_of_string(IMPORTED_WORD))) {
        document->imported = bytes_skip(type, IMPORTED_WORD_SIZE);
    } else if (document->head.size > 0 && bytes_starts_with(type, bytes_of_string(VISIT_WORD))) {
        struct bytes visit = bytes_skip(type, VISIT_WORD_SIZE);
        int64_t visit_us;
        /* It becomes a field of a record: only a date does. */
        document->visit = utc_parse_rfc3339(visit, &visit_us) ? visit : bytes_of(NULL, 0);
    } else {
        document->content_type = type;
    }
}

enum err backend_code_put_meta(struct buf *out, const struct document *document, enum store_mode mode,
                               enum backend_code_form form) {
    ASSERT((form == BACKEND_CODE_LEFT_OUT) == document->is_body_left_out);
    if (document->url.size > INDEX_URL_SIZE_MAX || document->head.size > BACKEND_CODE_HEAD_SIZE_MAX ||
        document->request.size > BACKEND_CODE_HEAD_SIZE_MAX ||
        document->content_type.size > BACKEND_CODE_FIELD_SIZE_MAX ||
        document->ip_address.size > BACKEND_CODE_WORD_SIZE_MAX ||
        document->truncated.size > BACKEND_CODE_WORD_SIZE_MAX ||
        document->tls.size > BACKEND_CODE_WORD_SIZE_MAX ||
        document->signature.size > BACKEND_CODE_SIGNATURE_SIZE_MAX ||
        document->imported.size > BACKEND_CODE_SIGNATURE_SIZE_MAX ||
        document->visit.size > BACKEND_CODE_WORD_SIZE_MAX) {
        return ERR_LIMIT;
    }
    size_t texts_size = document->url.size + document->head.size + document->request.size +
                        document->content_type.size + document->ip_address.size + document->truncated.size +
                        document->tls.size + document->signature.size + IMPORTED_WORD_SIZE +
                        document->imported.size + document->visit.size;
    struct wire_writer writer;
    start(&writer, out, texts_size + BACKEND_CODE_SMALL_SIZE_MAX);
    size_t before = out->size;
    wire_write_u32(&writer, 0);
    wire_write_u8(&writer, (uint8_t)mode);
    wire_write_u8(&writer, (uint8_t)form);
    wire_write_u64(&writer, (uint64_t)document->time_us);
    wire_write_string(&writer, document->url);
    wire_write_string(&writer, document->head);
    code_write_type(&writer, document);
    wire_write_string(&writer, document->request);
    wire_write_string(&writer, document->ip_address);
    wire_write_string(&writer, document->truncated);
    wire_write_string(&writer, document->tls);
    wire_write_string(&writer, document->signature);
    if (form == BACKEND_CODE_LEFT_OUT) {
        wire_write_varint(&writer, document->sum->size);
        wire_write_bytes(&writer, bytes_of(document->sum->digest, KEY_DIGEST_SIZE));
        wire_write_bool(&writer, document->is_not_modified);
    } else {
        wire_write_varint(&writer, document->body.size);
    }
    finish(&writer, out);
    if (out->err != ERR_OK) {
        return out->err;
    }
    struct wire_writer prefix;
    wire_writer_init(&prefix, out->data + before, BACKEND_CODE_META_PREFIX_SIZE);
    wire_write_u32(&prefix, (uint32_t)(writer.size - BACKEND_CODE_META_PREFIX_SIZE));
    return prefix.err;
}

static void read_meta(struct wire_reader *reader, struct backend_code_document *received) {
    struct document *document = &received->document;
    received->mode = (enum store_mode)wire_read_u8_max(reader, STORE_FORCE_NEW);
    received->form = (enum backend_code_form)wire_read_u8_max(reader, BACKEND_CODE_LEFT_OUT);
    document->time_us = read_time(reader);
    document->url = wire_read_string(reader, INDEX_URL_SIZE_MAX);
    document->head = wire_read_string(reader, BACKEND_CODE_HEAD_SIZE_MAX);
    code_read_type(document, wire_read_string(reader, BACKEND_CODE_FIELD_SIZE_MAX));
    document->request = wire_read_string(reader, BACKEND_CODE_HEAD_SIZE_MAX);
    document->ip_address = wire_read_string(reader, BACKEND_CODE_WORD_SIZE_MAX);
    document->truncated = wire_read_string(reader, BACKEND_CODE_WORD_SIZE_MAX);
    document->tls = wire_read_string(reader, BACKEND_CODE_WORD_SIZE_MAX);
    document->signature = wire_read_string(reader, BACKEND_CODE_SIGNATURE_SIZE_MAX);
    received->sum.size = wire_read_varint(reader, VOLUME_DOCUMENT_SIZE_MAX);
    document->is_body_left_out = received->form == BACKEND_CODE_LEFT_OUT;
    if (document->is_body_left_out) {
        wire_read_array(reader, received->sum.digest, KEY_DIGEST_SIZE);
        document->is_not_modified = wire_read_bool(reader);
    }
}

enum err backend_code_read_document(struct bytes in, struct backend_code_document *ret_document,
                                    struct err_detail *detail) {
    struct backend_code_document received = {0};
    struct wire_reader prefix;
    wire_reader_init(&prefix, in);
    uint32_t meta_size = wire_read_u32(&prefix);
    if (meta_size > BACKEND_CODE_META_SIZE_MAX) {
        wire_read_fail(&prefix, ERR_LIMIT, "the description of the document is too long");
    }
    struct bytes meta = wire_read_bytes(&prefix, meta_size);
    received.body = wire_read_bytes(&prefix, wire_reader_left(&prefix));
    enum err err = wire_reader_finish(&prefix, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, meta);
    read_meta(&reader, &received);
    if (received.form == BACKEND_CODE_PLAIN && received.body.size != received.sum.size) {
        wire_read_fail(&reader, ERR_INVALID, "the body has another size than stated");
    } else if (received.form == BACKEND_CODE_LEFT_OUT && received.body.size > 0) {
        wire_read_fail(&reader, ERR_INVALID, "a body that is said to be left out");
    } else if (received.form == BACKEND_CODE_LEFT_OUT && received.mode != STORE_REGULAR) {
        wire_read_fail(&reader, ERR_INVALID, "a body left out, but not in regular mode");
    }
    err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_document = received;
    }
    return err;
}

/* ---- answers of fixed shape ---- */

void backend_code_put_stored(struct buf *out, const struct stored *stored) {
    struct wire_writer writer;
    start(&writer, out, BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_u16(&writer, stored->key.number);
    wire_write_bytes(&writer, bytes_of(stored->key.digest, KEY_DIGEST_SIZE));
    wire_write_bool(&writer, stored->is_duplicate);
    wire_write_varint(&writer, stored->document_size);
    write_location(&writer, &stored->location);
    finish(&writer, out);
}

enum err backend_code_read_stored(struct bytes in, struct stored *ret_stored, struct err_detail *detail) {
    struct wire_reader reader;
    struct stored stored = {0};
    wire_reader_init(&reader, in);
    stored.key.number = wire_read_u16(&reader);
    wire_read_array(&reader, stored.key.digest, KEY_DIGEST_SIZE);
    stored.is_duplicate = wire_read_bool(&reader);
    stored.document_size = wire_read_varint(&reader, VOLUME_DOCUMENT_SIZE_MAX);
    stored.location = read_location(&reader);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_stored = stored;
    }
    return err;
}

static void write_block(struct wire_writer *writer, const struct block *block) {
    uint32_t references = (uint32_t)block->references;
    write_location(writer, &block->location);
    wire_write_varint(writer, block->size);
    wire_write_varint(writer, block->references < 0 ? ~(references << 1) : references << 1);
    wire_write_varint(writer, block->records_count);
}

/* Where its revisits refer to is its volume's own business, and not sent. */
static struct block read_block(struct wire_reader *reader) {
    struct block block = {0};
    block.location = read_location(reader);
    block.size = wire_read_varint(reader, INT64_MAX);
    uint32_t references = (uint32_t)wire_read_varint(reader, UINT32_MAX);
    block.references = references & 1 ? -(int32_t)(references >> 1) - 1 : (int32_t)(references >> 1);
    block.records_count = (uint32_t)wire_read_varint(reader, UINT32_MAX);
    return block;
}

void backend_code_put_block(struct buf *out, const struct block *block) {
    struct wire_writer writer;
    start(&writer, out, BACKEND_CODE_SMALL_SIZE_MAX);
    write_block(&writer, block);
    finish(&writer, out);
}

enum err backend_code_read_block(struct bytes in, struct block *ret_block, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    struct block block = read_block(&reader);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return err;
}

void backend_code_put_stat(struct buf *out, const struct volume_stat *stat) {
    struct wire_writer writer;
    start(&writer, out, BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, stat->segments_count);
    wire_write_varint(&writer, stat->size);
    wire_write_varint(&writer, stat->dead_size);
    wire_write_varint(&writer, stat->blocks_count);
    wire_write_varint(&writer, stat->captures_count);
    wire_write_varint(&writer, stat->index_size);
    finish(&writer, out);
}

enum err backend_code_read_stat(struct bytes in, struct volume_stat *ret_stat, struct err_detail *detail) {
    struct wire_reader reader;
    struct volume_stat stat;
    wire_reader_init(&reader, in);
    stat.segments_count = wire_read_varint(&reader, INT64_MAX);
    stat.size = wire_read_varint(&reader, INT64_MAX);
    stat.dead_size = wire_read_varint(&reader, INT64_MAX);
    stat.blocks_count = wire_read_varint(&reader, INT64_MAX);
    stat.captures_count = wire_read_varint(&reader, INT64_MAX);
    stat.index_size = wire_read_varint(&reader, INT64_MAX);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_stat = stat;
    }
    return err;
}

/* ---- walks, in pages ---- */

enum err backend_code_put_walk(struct buf *out, const struct backend_code_walk *walk) {
    if (walk->from.size > BACKEND_CODE_KEY_SIZE_MAX || walk->to.size > BACKEND_CODE_KEY_SIZE_MAX) {
        return ERR_LIMIT;
    }
    struct wire_writer writer;
    start(&writer, out, walk->from.size + walk->to.size + BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_string(&writer, walk->from);
    wire_write_string(&writer, walk->to);
    wire_write_bool(&writer, walk->in_reverse);
    wire_write_varint(&writer, walk->count_max);
    finish(&writer, out);
    return out->err;
}

enum err backend_code_read_walk(struct bytes in, struct backend_code_walk *ret_walk,
                                struct err_detail *detail) {
    struct wire_reader reader;
    struct backend_code_walk walk = {0};
    wire_reader_init(&reader, in);
    walk.from = wire_read_string(&reader, BACKEND_CODE_KEY_SIZE_MAX);
    walk.to = wire_read_string(&reader, BACKEND_CODE_KEY_SIZE_MAX);
    walk.in_reverse = wire_read_bool(&reader);
    walk.count_max = (uint32_t)wire_read_varint(&reader, BACKEND_CODE_PAGE_COUNT_MAX);
    if (walk.count_max == 0) {
        wire_read_fail(&reader, ERR_INVALID, "a page of nothing");
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_walk = walk;
    }
    return err;
}

void backend_code_put_capture(struct buf *out, const struct capture *capture, uint8_t flags) {
    struct wire_writer writer;
    flags = capture->flags & (flags | BACKEND_CODE_FLAGS_FIRST);
    start(&writer, out,
          capture->surt.size + capture->url.size + capture->mime.size + BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_u8(&writer, MARK_ENTRY);
    wire_write_string(&writer, capture->surt);
    wire_write_u64(&writer, (uint64_t)capture->time_us);
    write_location(&writer, &capture->location);
    wire_write_string(&writer, capture->url);
    wire_write_string(&writer, capture->mime);
    wire_write_varint(&writer, capture->status);
    wire_write_u8(&writer, flags);
    wire_write_u16(&writer, capture->block_number);
    wire_write_bytes(&writer, bytes_of(capture->digest, KEY_DIGEST_SIZE));
    if (flags & CAPTURE_WITNESS) {
        wire_write_u32(&writer, capture->visit_s);
        wire_write_u16(&writer, capture->signer);
    }
    if (flags & BACKEND_CODE_FLAGS_VOUCHED) {
        wire_write_u64(&writer, capture->voucher);
    }
    finish(&writer, out);
}

static void read_capture(struct wire_reader *reader, struct capture *capture) {
    capture->surt = wire_read_string(reader, INDEX_SURT_SIZE_MAX);
    capture->time_us = read_time(reader);
    capture->location = read_location(reader);
    capture->url = wire_read_string(reader, INDEX_URL_SIZE_MAX);
    capture->mime = wire_read_string(reader, INDEX_MIME_SIZE_MAX);
    capture->status = (uint16_t)wire_read_varint(reader, UINT16_MAX);
    capture->flags = wire_read_u8_max(reader, BACKEND_CODE_FLAGS_ALL);
    capture->block_number = wire_read_u16(reader);
    wire_read_array(reader, capture->digest, KEY_DIGEST_SIZE);
    if (capture->flags & CAPTURE_WITNESS) {
        capture->visit_s = wire_read_u32(reader);
        capture->signer = wire_read_u16(reader);
    }
    if (capture_has_voucher(capture)) {
        capture->voucher = wire_read_u64(reader);
    }
    if (reader->err == ERR_OK && !index_can_hold(capture)) {
        wire_read_fail(reader, ERR_INVALID, "no capture that an index could hold");
    }
}

void backend_code_put_key_block(struct buf *out, const struct key *key, const struct block *block) {
    struct wire_writer writer;
    start(&writer, out, BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_u8(&writer, MARK_ENTRY);
    wire_write_bytes(&writer, bytes_of(key->digest, KEY_DIGEST_SIZE));
    wire_write_u16(&writer, key->number);
    write_block(&writer, block);
    finish(&writer, out);
}

void backend_code_put_page_end(struct buf *out, const struct backend_code_page_end *end) {
    struct wire_writer writer;
    start(&writer, out, end->next.size + BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_u8(&writer, MARK_END);
    wire_write_bool(&writer, end->is_end);
    wire_write_string(&writer, end->next);
    finish(&writer, out);
}

/* True before an entry; false before the end of the page, and after an error. */
static bool has_entry(struct wire_reader *reader) {
    return wire_read_u8_max(reader, MARK_ENTRY) == MARK_ENTRY;
}

/* A page that is not the last must say where to go on, or its reader would walk for ever. */
static enum err read_page_end(struct wire_reader *reader, struct backend_code_page_end *ret_end,
                              struct err_detail *detail) {
    struct backend_code_page_end end;
    end.is_end = wire_read_bool(reader);
    end.next = wire_read_string(reader, BACKEND_CODE_KEY_SIZE_MAX);
    if (end.is_end != (end.next.size == 0)) {
        wire_read_fail(reader, ERR_INVALID, "a page that does not say how to go on");
    }
    enum err err = wire_reader_finish(reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_end = end;
    return ERR_NOT_FOUND;
}

/* The error of an entry, with its place. */
static enum err check_entry(struct wire_reader *reader, struct err_detail *detail) {
    return reader->err == ERR_OK ? ERR_OK : wire_reader_finish(reader, detail);
}

enum err backend_code_next_capture(struct wire_reader *reader, struct capture *ret_capture,
                                   struct backend_code_page_end *ret_end, struct err_detail *detail) {
    if (!has_entry(reader)) {
        return read_page_end(reader, ret_end, detail);
    }
    struct capture capture = {0};
    read_capture(reader, &capture);
    enum err err = check_entry(reader, detail);
    if (err == ERR_OK) {
        *ret_capture = capture;
    }
    return err;
}

enum err backend_code_next_block(struct wire_reader *reader, struct key *ret_key, struct block *ret_block,
                                 struct backend_code_page_end *ret_end, struct err_detail *detail) {
    if (!has_entry(reader)) {
        return read_page_end(reader, ret_end, detail);
    }
    struct key key = {0};
    wire_read_array(reader, key.digest, KEY_DIGEST_SIZE);
    key.number = wire_read_u16(reader);
    struct block block = read_block(reader);
    enum err err = check_entry(reader, detail);
    if (err == ERR_OK) {
        *ret_key = key;
        *ret_block = block;
    }
    return err;
}

void backend_code_put_count(struct buf *out, uint64_t count) {
    struct wire_writer writer;
    start(&writer, out, BACKEND_CODE_SMALL_SIZE_MAX);
    wire_write_varint(&writer, count);
    finish(&writer, out);
}

enum err backend_code_read_count(struct bytes in, uint64_t count_max, uint64_t *ret_count,
                                 struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    uint64_t count = wire_read_varint(&reader, count_max);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_count = count;
    }
    return err;
}
