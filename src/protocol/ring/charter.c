#include "protocol/ring/charter.h"

#include "base/utf8.h"
#include "base/wire.h"

enum {
    LAYOUT = 1,
    REPLICAS_DEFAULT = 6,
    LIST_SIZE_DEFAULT = 8,
    WITNESSES_DEFAULT = 1,
    PERIOD_S_DEFAULT = 86400,
    IDENTITY_SIZE_MAX = 128,
};

static const char magic[4] = {'m', 'n', 'c', 'h'};

/* What a wall clock may say in seconds: up to the year 9999, so that every time can be printed. */
static const uint64_t time_s_max = UINT64_C(253402300799);

const char *const charter_mappings[] = {
    [CHARTER_BY_URL] = "url", [CHARTER_BY_HOST] = "host", [CHARTER_BY_SECTION] = "section", NULL};

void charter_init(struct charter *charter) {
    memset(charter, 0, sizeof *charter);
    charter->version = 1;
    charter->replicas = REPLICAS_DEFAULT;
    charter->list_size = LIST_SIZE_DEFAULT;
    charter->witnesses = WITNESSES_DEFAULT;
    charter->period_s = PERIOD_S_DEFAULT;
    charter->members_may_add_jobs = true;
}

/* ---- bounds ---- */

bool charter_name_is_valid(struct bytes name) {
    bool is_valid = name.size > 0 && name.size <= CHARTER_NAME_SIZE_MAX;
    for (size_t i = 0; i < name.size && is_valid; i++) {
        uint8_t byte = name.data[i];
        is_valid = byte_is_alnum(byte) || byte == '.' || byte == '_' || byte == '-';
    }
    return is_valid;
}

/* Printed on other people's terminals: no control characters. */
static bool pattern_is_valid(const struct charter_pattern *pattern) {
    bool is_valid = pattern->size > 0 && pattern->size <= CHARTER_PATTERN_SIZE_MAX;
    for (size_t i = 0; i < pattern->size && is_valid; i++) {
        is_valid = (uint8_t)pattern->text[i] > ' ' && pattern->text[i] != 0x7f;
    }
    return is_valid && utf8_is_valid(bytes_of(pattern->text, pattern->size));
}

static const char *find_fault(const struct charter *charter) {
    if (!charter_name_is_valid(bytes_of_string(charter->name))) {
        return "a name has 1 to 64 letters, digits, '.', '_' or '-'";
    }
    if (charter->version == 0) {
        return "versions begin with 1";
    }
    if (charter->created_s > time_s_max || charter->signed_s > time_s_max) {
        return "no such time";
    }
    if (charter->replicas < 1 || charter->replicas > CHARTER_REPLICAS_MAX) {
        return "between 1 and 20 replicas";
    }
    if (charter->list_size < 2 || charter->list_size > CHARTER_LIST_SIZE_MAX) {
        return "lists have between 2 and 20 places";
    }
    if (charter->witnesses < 1 || charter->witnesses > charter->replicas) {
        return "between 1 witness and as many as there are replicas";
    }
    if (charter->mapping > CHARTER_BY_SECTION) {
        return "unknown mapping";
    }
    if (charter->period_s < CHARTER_PERIOD_S_MIN || charter->period_s > CHARTER_PERIOD_S_MAX) {
        return "a period between one minute and ten years";
    }
    return NULL;
}

enum err charter_check(const struct charter *charter, struct err_detail *detail) {
    const char *fault = find_fault(charter);
    if (fault != NULL) {
        return err_set(detail, ERR_INVALID, "%s", fault);
    }
    for (size_t i = 0; i < charter->scope_count; i++) {
        if (!pattern_is_valid(&charter->scope[i])) {
            return err_set(detail, ERR_INVALID, "a pattern has 1 to 200 bytes of UTF-8 without spaces");
        }
    }
    for (size_t i = 1; i < charter->removed_count; i++) {
        if (memcmp(charter->removed[i - 1], charter->removed[i], PEER_KEY_SIZE) >= 0) {
            return err_set(detail, ERR_INVALID, "removed keys out of order");
        }
    }
    return ERR_OK;
}

/* ---- encoding ---- */

static void write_identity(struct wire_writer *writer, const struct charter *charter) {
    wire_write_bytes(writer, bytes_of(charter->founder, PEER_KEY_SIZE));
    wire_write_string(writer, bytes_of_string(charter->name));
    wire_write_u64(writer, charter->created_s);
}

static void write_rules(struct wire_writer *writer, const struct charter *charter) {
    wire_write_u32(writer, charter->version);
    wire_write_u64(writer, charter->signed_s);
    wire_write_u8(writer, charter->replicas);
    wire_write_u8(writer, charter->list_size);
    wire_write_u8(writer, charter->witnesses);
    wire_write_u8(writer, charter->mapping);
    wire_write_u32(writer, charter->period_s);
    wire_write_bool(writer, charter->is_open);
    wire_write_bool(writer, charter->members_may_add_jobs);
    wire_write_varint(writer, charter->scope_count);
    for (size_t i = 0; i < charter->scope_count; i++) {
        wire_write_string(writer, bytes_of(charter->scope[i].text, charter->scope[i].size));
    }
    wire_write_varint(writer, charter->removed_count);
    wire_write_bytes(writer, bytes_of(charter->removed, charter->removed_count * PEER_KEY_SIZE));
}

struct bytes charter_write(const struct charter *charter, charter_sign *sign, const void *signer,
                           uint8_t *out) {
    struct wire_writer writer;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    enum err err = charter_check(charter, NULL);
    ASSERT(err == ERR_OK);
    wire_writer_init(&writer, out, CHARTER_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u8(&writer, LAYOUT);
    write_identity(&writer, charter);
    write_rules(&writer, charter);
    sign(signer, CHARTER_CONTEXT, bytes_of(out, writer.size), signature);
    wire_write_bytes(&writer, bytes_of(signature, sizeof signature));
    return wire_writer_bytes(&writer);
}

/* ---- decoding ---- */

static void read_identity(struct wire_reader *reader, struct charter *charter) {
    wire_read_array(reader, charter->founder, PEER_KEY_SIZE);
    struct bytes name = wire_read_string(reader, CHARTER_NAME_SIZE_MAX);
    if (reader->err == ERR_OK && !charter_name_is_valid(name)) {
        wire_read_fail(reader, ERR_INVALID, "no name");
        return;
    }
    if (name.size > 0) {
        memcpy(charter->name, name.data, name.size);
    }
    charter->name[name.size] = '\0';
    charter->created_s = wire_read_u64(reader);
}

static void read_rules(struct wire_reader *reader, struct charter *charter) {
    charter->version = wire_read_u32(reader);
    charter->signed_s = wire_read_u64(reader);
    charter->replicas = wire_read_u8(reader);
    charter->list_size = wire_read_u8(reader);
    charter->witnesses = wire_read_u8(reader);
    charter->mapping = wire_read_u8(reader);
    charter->period_s = wire_read_u32(reader);
    charter->is_open = wire_read_bool(reader);
    charter->members_may_add_jobs = wire_read_bool(reader);
    charter->scope_count = (uint32_t)wire_read_varint(reader, CHARTER_SCOPE_COUNT_MAX);
    for (size_t i = 0; i < charter->scope_count; i++) {
        struct bytes text = wire_read_string(reader, CHARTER_PATTERN_SIZE_MAX);
        charter->scope[i].size = (uint8_t)text.size;
        if (text.size > 0) {
            memcpy(charter->scope[i].text, text.data, text.size);
        }
    }
    charter->removed_count = (uint32_t)wire_read_varint(reader, CHARTER_REMOVED_COUNT_MAX);
    wire_read_array(reader, charter->removed, charter->removed_count * PEER_KEY_SIZE);
}

static uint8_t charter_read_layout(struct wire_reader *reader) {
    struct bytes mark = wire_read_bytes(reader, sizeof magic);
    if (reader->err == ERR_OK && !bytes_equal(mark, bytes_of(magic, sizeof magic))) {
        wire_read_fail(reader, ERR_INVALID, "no charter");
    }
    return wire_read_u8(reader);
}

enum err charter_read_later(struct bytes input, charter_verify *verify, struct charter *charter,
                            struct err_detail *detail) {
    struct wire_reader reader;
    memset(charter, 0, sizeof *charter);
    wire_reader_init(&reader, input);
    uint8_t layout = charter_read_layout(&reader);
    if (layout <= LAYOUT) {
        wire_read_fail(&reader, ERR_EXISTS, "a charter of a layout that is known");
    }
    read_identity(&reader, charter);
    charter->version = wire_read_u32(&reader);
    charter->signed_s = wire_read_u64(&reader);
    size_t left = wire_reader_left(&reader);
    (void)wire_read_bytes(&reader, left > CHARTER_SIGNATURE_SIZE ? left - CHARTER_SIGNATURE_SIZE : 0);
    struct bytes signature = wire_read_bytes(&reader, CHARTER_SIGNATURE_SIZE);
    enum err err = wire_reader_finish(&reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    bool is_signed = verify(charter->founder, CHARTER_CONTEXT,
                            bytes_slice(input, 0, input.size - CHARTER_SIGNATURE_SIZE), signature.data);
    return is_signed ? ERR_OK : err_set(detail, ERR_MISMATCH, "the signature is not the founder's");
}

enum err charter_read(struct bytes input, charter_verify *verify, struct charter *charter,
                      struct err_detail *detail) {
    struct wire_reader reader;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    memset(charter, 0, sizeof *charter);
    wire_reader_init(&reader, input);
    if (charter_read_layout(&reader) != LAYOUT) {
        wire_read_fail(&reader, ERR_UNSUPPORTED, "a charter of a later layout");
    }
    read_identity(&reader, charter);
    read_rules(&reader, charter);
    size_t signed_size = reader.offset;
    wire_read_array(&reader, signature, sizeof signature);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        err = charter_check(charter, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (!verify(charter->founder, CHARTER_CONTEXT, bytes_slice(input, 0, signed_size), signature)) {
        return err_set(detail, ERR_MISMATCH, "the signature is not the founder's");
    }
    return ERR_OK;
}

/* ---- identity and versions ---- */

void charter_id(const struct charter *charter, struct sha256 *sha256, uint8_t out[CHARTER_ID_SIZE]) {
    uint8_t memory[IDENTITY_SIZE_MAX];
    uint8_t digest[SHA256_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    write_identity(&writer, charter);
    struct bytes identity = wire_writer_bytes(&writer);
    sha256_digest(sha256, identity, digest);
    memcpy(out, digest, CHARTER_ID_SIZE);
}

bool charter_is_same_ring(const struct charter *charter, const struct charter *other) {
    return memcmp(charter->founder, other->founder, PEER_KEY_SIZE) == 0 &&
           strcmp(charter->name, other->name) == 0 && charter->created_s == other->created_s;
}

enum err charter_succeeds(const struct charter *charter, const struct charter *newer,
                          struct err_detail *detail) {
    if (!charter_is_same_ring(charter, newer)) {
        return err_set(detail, ERR_MISMATCH, "it is the charter of another ring, \"%s\"", newer->name);
    }
    if (charter->list_size != newer->list_size || charter->mapping != newer->mapping) {
        return err_set(detail, ERR_MISMATCH, "the size of the lists and the mapping cannot change");
    }
    if (newer->version <= charter->version) {
        return err_set(detail, ERR_EXISTS, "version %u is not newer than %u", newer->version,
                       charter->version);
    }
    return ERR_OK;
}

/* ---- removed keys ---- */

/* The index of the key, or of the first above it. */
static size_t find_removed(const struct charter *charter, const uint8_t key[PEER_KEY_SIZE]) {
    size_t low = 0;
    size_t high = charter->removed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(charter->removed[middle], key, PEER_KEY_SIZE) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool charter_is_removed(const struct charter *charter, const uint8_t key[PEER_KEY_SIZE]) {
    size_t index = find_removed(charter, key);
    return index < charter->removed_count && memcmp(charter->removed[index], key, PEER_KEY_SIZE) == 0;
}

enum err charter_remove(struct charter *charter, const uint8_t key[PEER_KEY_SIZE]) {
    if (charter_is_removed(charter, key)) {
        return ERR_EXISTS;
    }
    if (charter->removed_count == CHARTER_REMOVED_COUNT_MAX) {
        return ERR_LIMIT;
    }
    size_t index = find_removed(charter, key);
    memmove(charter->removed[index + 1], charter->removed[index],
            (charter->removed_count - index) * PEER_KEY_SIZE);
    memcpy(charter->removed[index], key, PEER_KEY_SIZE);
    charter->removed_count++;
    return ERR_OK;
}
