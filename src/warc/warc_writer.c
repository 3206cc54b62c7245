#include "warc/warc_writer.h"

#include "base/hex.h"
#include "base/utc.h"
#include "web/type/mime_type.h"

static const char record_end[] = "\r\n\r\n";

enum err warc_writer_init(struct warc_writer *writer, struct sink *sink, uint64_t offset,
                          const struct pack_options *options, struct warc_random random) {
    *writer = (struct warc_writer){.offset = offset, .random = random};
    buf_init(&writer->head, WARC_RECORD_HEAD_SIZE_MAX);
    enum err err = payload_init(&writer->payload);
    if (err == ERR_OK) {
        err = pack_init(&writer->pack, sink, options);
    }
    if (err == ERR_OK) {
        err = sha256_init(&writer->block_hash);
    }
    if (err == ERR_OK) {
        err = sha256_init(&writer->payload_hash);
    }
    if (err != ERR_OK) {
        warc_writer_done(writer);
    }
    return err;
}

void warc_writer_done(struct warc_writer *writer) {
    pack_done(&writer->pack);
    payload_done(&writer->payload);
    buf_done(&writer->head);
    sha256_done(&writer->block_hash);
    sha256_done(&writer->payload_hash);
}

void warc_writer_resume(struct warc_writer *writer, uint64_t offset) {
    writer->offset = offset;
    writer->is_torn = false;
}

static uint64_t block_size(const struct warc_draft *draft) {
    return draft->head.size + draft->body.size;
}

static struct bytes content_type(const struct warc_draft *draft) {
    if (draft->content_type.size > 0) {
        return draft->content_type;
    }
    switch (draft->type) {
    case WARC_TYPE_WARCINFO:
    case WARC_TYPE_METADATA:
        return BYTES("application/warc-fields");
    case WARC_TYPE_REQUEST:
        return BYTES("application/http;msgtype=request");
    case WARC_TYPE_RESPONSE:
    case WARC_TYPE_REVISIT:
        return BYTES("application/http;msgtype=response");
    default:
        return BYTES("application/octet-stream");
    }
}

/* A payload of its own, not only a message about one. */
static bool has_payload(const struct warc_draft *draft) {
    return draft->type == WARC_TYPE_RESPONSE || draft->type == WARC_TYPE_RESOURCE ||
           draft->type == WARC_TYPE_CONVERSION;
}

static bool is_one_line(struct bytes value) {
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '\r' || value.data[i] == '\n' || value.data[i] == 0) {
            return false;
        }
    }
    return true;
}

static bool is_valid_date(int64_t date_us) {
    return date_us >= UTC_MIN_US && date_us <= UTC_MAX_US;
}

/* Values come from the web; one with a line end in it would forge fields. */
static bool are_fields_sound(const struct warc_draft *draft) {
    const struct bytes values[] = {draft->target_uri, draft->content_type, draft->ip_address,
                                   draft->filename,   draft->truncated,    draft->refers_to_target_uri};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (!is_one_line(values[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < draft->fields_count; i++) {
        if (!is_one_line(draft->fields[i].name) || !is_one_line(draft->fields[i].value)) {
            return false;
        }
    }
    return true;
}

static enum err check_draft(const struct warc_draft *draft, struct err_detail *detail) {
    ASSERT(draft->type != WARC_TYPE_UNKNOWN);
    const char *type = warc_type_name(draft->type);
    bool has_uri = draft->target_uri.size > 0;
    if (!are_fields_sound(draft)) {
        return err_set(detail, ERR_INVALID, "a field of the %s record has a line end in it", type);
    }
    if (draft->type == WARC_TYPE_WARCINFO && has_uri) {
        return err_set(detail, ERR_INVALID, "a warcinfo record has no target URI");
    }
    if (draft->type != WARC_TYPE_WARCINFO && draft->type != WARC_TYPE_METADATA && !has_uri) {
        return err_set(detail, ERR_INVALID, "a %s record needs a target URI", type);
    }
    if (!is_valid_date(draft->date_us)) {
        return err_set(detail, ERR_INVALID, "the date of the %s record is on no calendar", type);
    }
    if (draft->type != WARC_TYPE_REVISIT) {
        return ERR_OK;
    }
    if (draft->refers_to_target_uri.size == 0 || !is_valid_date(draft->refers_to_date_us)) {
        return err_set(detail, ERR_INVALID, "a revisit needs the URI and date that it refers to");
    }
    if (draft->revisit == WARC_REVISIT_IDENTICAL_PAYLOAD && draft->payload_sha256 == NULL) {
        return err_set(detail, ERR_INVALID, "a revisit needs the digest of its payload");
    }
    return ERR_OK;
}

static void hash_block(struct warc_writer *writer, const struct warc_draft *draft,
                       struct warc_written *written) {
    bool is_known = draft->payload_sha256 != NULL;
    bool wants_payload = has_payload(draft) && !is_known;
    struct mime_type type;
    bool is_http = mime_type_extract(&type, content_type(draft)) && mime_type_is(&type, "application/http");
    written->has_payload_sha256 = wants_payload || is_known;
    if (is_known) {
        memcpy(written->payload_sha256, draft->payload_sha256, SHA256_SIZE);
    }
    if (has_payload(draft) && is_known && !is_http) {
        /* The payload is the block: nothing is hashed twice. */
        memcpy(written->block_sha256, draft->payload_sha256, SHA256_SIZE);
        written->has_block_sha256 = true;
        return;
    }
    if (draft->is_block_digest_optional && !wants_payload) {
        return;
    }
    struct bytes pieces[] = {draft->head, draft->body};
    struct bytes part;
    sha256_start(&writer->block_hash);
    sha256_start(&writer->payload_hash);
    payload_start(&writer->payload, is_http);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        sha256_update(&writer->block_hash, pieces[i]);
        while (wants_payload && payload_next(&writer->payload, &pieces[i], &part)) {
            sha256_update(&writer->payload_hash, part);
        }
    }
    if (wants_payload && payload_finish(&writer->payload, &part)) {
        sha256_update(&writer->payload_hash, part);
    }
    sha256_finish(&writer->block_hash, written->block_sha256);
    written->has_block_sha256 = true;
    if (wants_payload) {
        sha256_finish(&writer->payload_hash, written->payload_sha256);
    }
}

static void warc_put_field(struct buf *head, const char *name, struct bytes value) {
    if (value.size == 0) {
        return;
    }
    buf_put_string(head, name);
    buf_put(head, BYTES(": "));
    buf_put(head, value);
    buf_put(head, BYTES("\r\n"));
}

static void put_id(struct buf *head, const char *name, const struct warc_id *id) {
    char text[WARC_ID_TEXT_SIZE];
    if (id != NULL) {
        warc_put_field(head, name, bytes_of_string(warc_id_format(id, text)));
    }
}

static void put_date(struct buf *head, const char *name, int64_t date_us) {
    char text[UTC_RFC3339_SIZE];
    warc_put_field(head, name, bytes_of_string(utc_format_rfc3339(date_us, text)));
}

static void put_plain_id(struct buf *head, const struct warc_draft *draft) {
    char text[UTC_RFC3339_SIZE];
    buf_put_format(head,
                   "WARC-Record-ID: <" WARC_PLAIN_ID_PREFIX "%s:", utc_format_rfc3339(draft->date_us, text));
    buf_put(head, draft->target_uri);
    buf_put(head, BYTES(">\r\n"));
}

static void put_sha256(struct buf *head, const char *name, const uint8_t digest[SHA256_SIZE]) {
    char text[sizeof "sha256:" + 2 * SHA256_SIZE] = "sha256:";
    hex_encode(bytes_of(digest, SHA256_SIZE), text + sizeof "sha256:" - 1);
    warc_put_field(head, name, bytes_of_string(text));
}

static void put_revisit(struct buf *head, const struct warc_draft *draft) {
    bool is_identical = draft->revisit == WARC_REVISIT_IDENTICAL_PAYLOAD;
    warc_put_field(head, "WARC-Profile",
                   is_identical ? BYTES("http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
                                : BYTES("http://netpreserve.org/warc/1.1/revisit/server-not-modified"));
    warc_put_field(head, "WARC-Refers-To-Target-URI", draft->refers_to_target_uri);
    put_date(head, "WARC-Refers-To-Date", draft->refers_to_date_us);
    if (is_identical && draft->truncated.size == 0) {
        warc_put_field(head, "WARC-Truncated", BYTES("length"));
    }
}

static void warc_put_head(struct warc_writer *writer, const struct warc_draft *draft,
                          const struct warc_written *written) {
    struct buf *head = &writer->head;
    buf_clear(head);
    buf_put(head, BYTES("WARC/1.1\r\n"));
    warc_put_field(head, "WARC-Type", bytes_of_string(warc_type_name(draft->type)));
    if (draft->has_plain_id) {
        put_plain_id(head, draft);
    } else {
        put_id(head, "WARC-Record-ID", &written->id);
    }
    put_date(head, "WARC-Date", draft->date_us);
    warc_put_field(head, "WARC-Target-URI", draft->target_uri);
    warc_put_field(head, "WARC-IP-Address", draft->ip_address);
    put_id(head, "WARC-Concurrent-To", draft->concurrent_to);
    warc_put_field(head, "WARC-Filename", draft->filename);
    if (draft->type == WARC_TYPE_REVISIT) {
        put_revisit(head, draft);
    }
    warc_put_field(head, "WARC-Truncated", draft->truncated);
    for (size_t i = 0; i < draft->fields_count; i++) {
        buf_put(head, draft->fields[i].name);
        buf_put(head, BYTES(": "));
        buf_put(head, draft->fields[i].value);
        buf_put(head, BYTES("\r\n"));
    }
    if (written->has_payload_sha256) {
        put_sha256(head, "WARC-Payload-Digest", written->payload_sha256);
    }
    if (written->has_block_sha256) {
        put_sha256(head, "WARC-Block-Digest", written->block_sha256);
    }
    warc_put_field(head, "Content-Type", content_type(draft));
    buf_put(head, BYTES("Content-Length: "));
    buf_put_u64(head, block_size(draft));
    buf_put_string(head, record_end);
}

static enum pack_effort warc_effort(const struct warc_draft *draft) {
    return draft->is_incompressible ? PACK_INCOMPRESSIBLE : draft->has_plain_id ? PACK_FINE : PACK_USUAL;
}

static enum err write_record(struct warc_writer *writer, const struct warc_draft *draft, uint64_t *ret_length,
                             struct err_detail *detail) {
    uint64_t size = writer->head.size + block_size(draft) + sizeof record_end - 1;
    enum err err = pack_start(&writer->pack, size, warc_effort(draft), detail);
    if (err == ERR_OK) {
        err = pack_write(&writer->pack, buf_bytes(&writer->head), detail);
    }
    if (err == ERR_OK) {
        err = pack_write(&writer->pack, draft->head, detail);
    }
    if (err == ERR_OK) {
        err = pack_write(&writer->pack, draft->body, detail);
    }
    if (err == ERR_OK) {
        err = pack_write(&writer->pack, bytes_of_string(record_end), detail);
    }
    return err == ERR_OK ? pack_finish(&writer->pack, ret_length, detail) : err;
}

/* For warc_id_make(): from what was asked for in advance. */
static void fill_from_writer(void *context, void *out, size_t size) {
    struct warc_writer *writer = context;
    ASSERT(size <= sizeof writer->random_bytes);
    if (writer->random_left < size) {
        writer->random.fill(writer->random.context, writer->random_bytes, sizeof writer->random_bytes);
        writer->random_left = sizeof writer->random_bytes;
    }
    memcpy(out, writer->random_bytes + sizeof writer->random_bytes - writer->random_left, size);
    writer->random_left -= size;
}

enum err warc_writer_put(struct warc_writer *writer, const struct warc_draft *draft,
                         struct warc_written *ret_written, struct err_detail *detail) {
    if (writer->is_torn) {
        return err_set(detail, ERR_IO, "an earlier write failed and the file was not cut back");
    }
    struct warc_written written = {.offset = writer->offset};
    enum err err = check_draft(draft, detail);
    if (err != ERR_OK) {
        return err;
    }
    hash_block(writer, draft, &written);
    struct warc_random random = {.fill = fill_from_writer, .context = writer};
    written.id = draft->id != NULL ? *draft->id : warc_id_make(&random);
    warc_put_head(writer, draft, &written);
    if (writer->head.err == ERR_LIMIT) {
        return err_set(detail, ERR_LIMIT, "the header of the record is longer than %d bytes",
                       WARC_RECORD_HEAD_SIZE_MAX);
    }
    if (writer->head.err != ERR_OK) {
        return err_set(detail, writer->head.err, "%s", err_text(writer->head.err));
    }
    err = write_record(writer, draft, &written.length, detail);
    if (err != ERR_OK) {
        writer->is_torn = writer->pack.stored_size > 0;
        return err;
    }
    writer->offset += written.length;
    *ret_written = written;
    return ERR_OK;
}

void warc_put_info(struct buf *out, const char *name, struct bytes value) {
    warc_put_field(out, name, value);
}
