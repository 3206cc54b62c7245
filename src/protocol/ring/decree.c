#include "protocol/ring/decree.h"

#include "base/wire.h"

/* The second has the author's membership, the third the signatures of stewards. */
enum { LAYOUT_PLAIN = 1, LAYOUT_MEMBER = 2, LAYOUT_STEWARDS = 3, US_PER_S = 1000000, HEAD_SIZE_MAX = 256 };
static const char magic[4] = {'m', 'n', 'd', 'e'};

bool decree_name_is_valid(struct bytes name) {
    if (name.size == 0 || name.size > DECREE_NAME_SIZE_MAX || name.data[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!is_good) {
            return false;
        }
    }
    return true;
}

const char *decree_kind_name(enum decree_kind kind) {
    return kind == DECREE_JOB        ? "job"
           : kind == DECREE_RULES    ? "rules"
           : kind == DECREE_DELETION ? "deletion"
           : kind == DECREE_IMPORTS  ? "imports"
                                     : "unknown";
}

/* What is before the text. */
static void decree_write_head(struct wire_writer *writer, const struct decree *decree) {
    uint8_t layout = decree->generation > 0        ? LAYOUT_STEWARDS
                     : decree->membership.is_there ? LAYOUT_MEMBER
                                                   : LAYOUT_PLAIN;
    unsigned kind = decree->kind + (decree->generation > 0 ? DECREE_STEWARDS_KIND : 0);
    ASSERT(decree_name_is_valid(decree->name));
    wire_write_bytes(writer, bytes_of(magic, sizeof magic));
    wire_write_u8(writer, layout);
    wire_write_bytes(writer, bytes_of(decree->ring, CHARTER_ID_SIZE));
    wire_write_bytes(writer, bytes_of(decree->author, PEER_KEY_SIZE));
    wire_write_u8(writer, (uint8_t)kind);
    wire_write_string(writer, decree->name);
    wire_write_u64(writer, decree->version);
}

/* All but what comes last: the membership, and who has signed. */
static void decree_write_fields(struct wire_writer *writer, const struct decree *decree) {
    ASSERT(decree->text.size <= DECREE_TEXT_SIZE_MAX);
    decree_write_head(writer, decree);
    wire_write_string(writer, decree->text);
}

struct bytes decree_write_body(const struct decree *decree, uint8_t *out) {
    struct wire_writer writer;
    ASSERT(decree->generation > 0);
    wire_writer_init(&writer, out, DECREE_SIZE_MAX);
    decree_write_fields(&writer, decree);
    wire_write_u32(&writer, decree->generation);
    return wire_writer_bytes(&writer);
}

struct bytes decree_write(const struct decree *decree, charter_sign *sign, const void *signer, uint8_t *out) {
    struct wire_writer writer;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    wire_writer_init(&writer, out, DECREE_SIZE_MAX);
    decree_write_fields(&writer, decree);
    if (decree->generation > 0) {
        wire_write_u32(&writer, decree->generation);
        steward_signatures_write(&writer, &decree->signatures);
        return wire_writer_bytes(&writer);
    }
    if (decree->membership.is_there) {
        uint8_t shown[MEMBERSHIP_SIZE_MAX];
        wire_write_string(&writer, membership_write(&decree->membership, shown));
    }
    sign(signer, DECREE_CONTEXT, bytes_of(out, writer.size), signature);
    wire_write_bytes(&writer, bytes_of(signature, sizeof signature));
    return wire_writer_bytes(&writer);
}

static void decree_read_membership(struct wire_reader *reader, struct membership *membership) {
    struct bytes shown = wire_read_string(reader, MEMBERSHIP_SIZE_MAX);
    if (reader->err == ERR_OK &&
        (membership_read(shown, membership, NULL) != ERR_OK || !membership->is_there)) {
        wire_read_fail(reader, ERR_INVALID, "a membership that is none");
    }
}

static void decree_read_fields(struct wire_reader *reader, struct decree *decree) {
    struct bytes mark = wire_read_bytes(reader, sizeof magic);
    if (reader->err == ERR_OK && !bytes_equal(mark, bytes_of(magic, sizeof magic))) {
        wire_read_fail(reader, ERR_INVALID, "no decree");
    }
    uint8_t layout = wire_read_u8(reader);
    bool is_known = layout == LAYOUT_PLAIN || layout == LAYOUT_MEMBER || layout == LAYOUT_STEWARDS;
    if (!is_known && reader->err == ERR_OK) {
        wire_read_fail(reader, ERR_UNSUPPORTED, "a decree of a later layout");
    }
    wire_read_array(reader, decree->ring, CHARTER_ID_SIZE);
    wire_read_array(reader, decree->author, PEER_KEY_SIZE);
    uint8_t kind = wire_read_u8(reader);
    unsigned offset = layout == LAYOUT_STEWARDS ? DECREE_STEWARDS_KIND : 0;
    if (kind < DECREE_JOB + offset) {
        wire_read_fail(reader, ERR_INVALID, "a decree of no kind");
    }
    if (layout == LAYOUT_STEWARDS && decree_kind_is_later((enum decree_kind)(kind - offset))) {
        wire_read_fail(reader, ERR_UNSUPPORTED, "a decree of a later kind");
    }
    decree->kind = (enum decree_kind)(reader->err == ERR_OK ? kind - offset : DECREE_JOB);
    decree->name = wire_read_string(reader, DECREE_NAME_SIZE_MAX);
    if (!decree_name_is_valid(decree->name)) {
        wire_read_fail(reader, ERR_INVALID, "a name that none can have");
    }
    decree->version = wire_read_u64(reader);
    if (decree->version > INT64_MAX) { /* JSON of it is read with signed numbers */
        wire_read_fail(reader, ERR_INVALID, "a version that none can have");
    }
    decree->text = wire_read_string(reader, DECREE_TEXT_SIZE_MAX);
    if (layout == LAYOUT_MEMBER) {
        decree_read_membership(reader, &decree->membership);
    }
    if (layout == LAYOUT_STEWARDS) {
        decree->generation = wire_read_u32(reader);
        wire_read_check(reader, decree->generation > 0, "a decree of no stewards");
    }
}

enum err decree_read_body(struct bytes body, struct decree *ret_decree, struct err_detail *detail) {
    struct wire_reader reader;
    struct decree decree = {.kind = DECREE_JOB};
    wire_reader_init(&reader, body);
    decree_read_fields(&reader, &decree);
    wire_read_check(&reader, decree.generation > 0, "a decree of no stewards");
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_decree = decree;
    }
    return err;
}

enum err decree_parse(struct bytes input, struct decree *ret_decree, struct err_detail *detail) {
    struct wire_reader reader;
    struct decree decree = {.kind = DECREE_JOB};
    wire_reader_init(&reader, input);
    decree_read_fields(&reader, &decree);
    if (decree.generation > 0) {
        steward_signatures_read(&reader, &decree.signatures);
    } else {
        wire_read_bytes(&reader, CHARTER_SIGNATURE_SIZE);
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_decree = decree;
    }
    return err;
}

enum err decree_verify(struct bytes input, const struct decree *decree, charter_verify *verify,
                       struct err_detail *detail) {
    if (decree->generation > 0) {
        return ERR_OK;
    }
    ASSERT(input.size > CHARTER_SIGNATURE_SIZE);
    size_t signed_size = input.size - CHARTER_SIGNATURE_SIZE;
    bool is_good =
        verify(decree->author, DECREE_CONTEXT, bytes_of(input.data, signed_size), input.data + signed_size);
    return is_good ? ERR_OK : err_set(detail, ERR_MISMATCH, "the signature is not the author's");
}

enum err decree_read(struct bytes input, charter_verify *verify, struct decree *ret_decree,
                     struct err_detail *detail) {
    struct decree decree;
    enum err err = decree_parse(input, &decree, detail);
    err = err == ERR_OK ? decree_verify(input, &decree, verify, detail) : err;
    if (err == ERR_OK) {
        *ret_decree = decree;
    }
    return err;
}

void decree_id(const struct decree *decree, struct sha256 *sha256, uint8_t out[DECREE_ID_SIZE]) {
    uint8_t memory[PEER_KEY_SIZE + 1 + DECREE_NAME_SIZE_MAX];
    uint8_t digest[SHA256_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(decree->author, PEER_KEY_SIZE));
    wire_write_u8(&writer, (uint8_t)decree->kind);
    wire_write_bytes(&writer, decree->name);
    struct bytes named = wire_writer_bytes(&writer);
    sha256_digest(sha256, named, digest);
    memcpy(out, digest, DECREE_ID_SIZE);
}

static bool decree_believe(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                           const uint8_t signature[CHARTER_SIGNATURE_SIZE]) {
    (void)key;
    (void)context;
    (void)message;
    (void)signature;
    return true;
}

enum steward_power decree_power(const struct decree *decree) {
    return decree->kind == DECREE_DELETION ? STEWARD_DELETE
           : decree->kind == DECREE_JOB    ? STEWARD_JOB
                                           : STEWARD_RULE;
}

bool decree_is_rings(const struct decree *decree, const struct charter *charter) {
    return decree->generation > 0 || (decree_is_founders(decree, charter) &&
                                      charter_is_in_time(charter, 0, decree->version / US_PER_S));
}

void decree_digest(const struct decree *decree, uint8_t out[SHA256_SIZE]) {
    uint8_t memory[HEAD_SIZE_MAX];
    struct sha256 sha256;
    struct wire_writer writer;
    ASSERT(decree->generation > 0);
    wire_writer_init(&writer, memory, sizeof memory);
    decree_write_head(&writer, decree);
    wire_write_varint(&writer, decree->text.size);
    sha256_start(&sha256);
    sha256_update(&sha256, wire_writer_bytes(&writer));
    sha256_update(&sha256, decree->text);
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u32(&writer, decree->generation);
    sha256_update(&sha256, wire_writer_bytes(&writer));
    sha256_finish(&sha256, out);
}

/* Of stewards: of those that acted when it was made, and enough of them. */
static enum err decree_counts_signed(const struct decree *decree, const struct charter *charter,
                                     charter_verify *verify, struct err_detail *detail) {
    struct stewards stewards;
    uint8_t digest[SHA256_SIZE];
    if (!decree_is_founders(decree, charter)) {
        return err_set(detail, ERR_MISMATCH, "it is of another ring");
    }
    if (decree->generation > charter_generation(charter)) {
        return err_set(detail, ERR_PERMISSION, "its stewards are not known here yet");
    }
    if (!charter_is_in_time(charter, decree->generation, decree->version / US_PER_S)) {
        return err_set(detail, ERR_PERMISSION, "the stewards who signed it had been replaced by then");
    }
    charter_stewards(charter, decree->generation, &stewards);
    decree_digest(decree, digest);
    bool is_signed =
        stewards_have_signed(&stewards, decree_power(decree), &decree->signatures, DECREE_STEWARDS_CONTEXT,
                             bytes_of(digest, sizeof digest), verify != NULL ? verify : decree_believe);
    return is_signed ? ERR_OK : err_set(detail, ERR_PERMISSION, "not enough stewards have signed it");
}

/* Whose decrees of a kind count, if not those of members. */
static const char *decree_author_text(enum decree_kind kind, bool has_stewards) {
    switch (kind) {
    case DECREE_DELETION:
        return has_stewards ? "only the stewards together delete captures"
                            : "only the founder deletes captures";
    case DECREE_IMPORTS:
        return has_stewards ? "only the stewards together say who may import"
                            : "only the founder says who may import";
    case DECREE_RULES:
        return has_stewards ? "only the stewards together make rules of access"
                            : "only the founder makes rules of access";
    default:
        return "only the founder's decrees are kept if this version does not know their kind";
    }
}

enum err decree_counts(const struct decree *decree, const struct charter *charter,
                       const uint8_t ring[CHARTER_ID_SIZE], uint64_t now_s, charter_verify *verify,
                       struct err_detail *detail) {
    if (memcmp(decree->ring, ring, CHARTER_ID_SIZE) != 0) {
        return err_set(detail, ERR_MISMATCH, "it is of another ring");
    }
    if (decree->generation > 0) {
        return decree_counts_signed(decree, charter, verify, detail);
    }
    if (decree_is_rings(decree, charter)) {
        return ERR_OK;
    }
    enum membership_verdict verdict = membership_judge(&decree->membership, charter, ring, decree->author,
                                                       now_s, verify != NULL ? verify : decree_believe);
    if (verdict == MEMBERSHIP_REMOVED) {
        return err_set(detail, ERR_NOT_FOUND, "its author has been removed from the ring");
    }
    if (verdict == MEMBERSHIP_MISSING) {
        return err_set(detail, ERR_PERMISSION, "it does not carry the invitation of its author");
    }
    if (verdict != MEMBERSHIP_GOOD) {
        return err_set(detail, ERR_PERMISSION, "its author is not a member: %s",
                       membership_verdict_text(verdict));
    }
    if (decree->kind != DECREE_JOB) {
        return err_set(detail, ERR_PERMISSION, "%s",
                       decree_author_text(decree->kind, charter_generation(charter) > 0));
    }
    if (!charter->members_may_add_jobs) {
        return err_set(detail, ERR_PERMISSION, "only %s to this ring",
                       charter_generation(charter) > 0 ? "the stewards add jobs" : "the founder adds jobs");
    }
    return ERR_OK;
}

uint64_t decree_next_version(uint64_t previous, int64_t now_us) {
    if (previous >= INT64_MAX) {
        return 0;
    }
    uint64_t now = now_us > 0 ? (uint64_t)now_us : 1;
    return now > previous ? now : previous + 1;
}
