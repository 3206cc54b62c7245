#include "protocol/ring/charter.h"

#include "base/utf8.h"
#include "base/wire.h"

enum {
    LAYOUT_FOUNDER = 1,
    LAYOUT_STEWARDS = 2,
    REPLICAS_DEFAULT = 6,
    LIST_SIZE_DEFAULT = 8,
    WITNESSES_DEFAULT = 1,
    PERIOD_S_DEFAULT = 86400,
    IDENTITY_SIZE_MAX = 128,
    RULES_HEAD_SIZE_MAX = 8 << 10, /* with every pattern of the scope */
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

/* All but the removed keys. */
static void write_rules_head(struct wire_writer *writer, const struct charter *charter, uint32_t version,
                             uint64_t signed_s) {
    wire_write_u32(writer, version);
    wire_write_u64(writer, signed_s);
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
}

static struct bytes charter_removed_bytes(const struct charter *charter) {
    return bytes_of(charter->removed, charter->removed_count * (size_t)PEER_KEY_SIZE);
}

static void write_rules(struct wire_writer *writer, const struct charter *charter, uint32_t version,
                        uint64_t signed_s) {
    write_rules_head(writer, charter, version, signed_s);
    wire_write_bytes(writer, charter_removed_bytes(charter));
}

/* Of a link, what is signed. */
static void write_link(struct wire_writer *writer, const struct charter_link *link) {
    wire_write_u32(writer, link->version);
    wire_write_u64(writer, link->signed_s);
    stewards_write(writer, &link->stewards);
    wire_write_bytes(writer, bytes_of(link->rules, SHA256_SIZE));
}

/* The rules as they came, and who may change them. */
static void write_stewards(struct wire_writer *writer, const struct charter *charter) {
    wire_write_u32(writer, charter->version);
    wire_write_u64(writer, charter->signed_s);
    wire_write_u8(writer, charter->rules_generation);
    write_rules(writer, charter, charter->rules_version, charter->rules_signed_s);
    steward_signatures_write(writer, &charter->rules_signatures);
    wire_write_varint(writer, charter->links_count);
    for (size_t i = 0; i < charter->links_count; i++) {
        write_link(writer, &charter->links[i]);
        steward_signatures_write(writer, &charter->links[i].signatures);
    }
}

struct bytes charter_write(const struct charter *charter, charter_sign *sign, const void *signer,
                           uint8_t *out) {
    struct wire_writer writer;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    enum err err = charter_check(charter, NULL);
    ASSERT(err == ERR_OK);
    wire_writer_init(&writer, out, CHARTER_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u8(&writer, charter->links_count > 0 ? LAYOUT_STEWARDS : LAYOUT_FOUNDER);
    write_identity(&writer, charter);
    if (charter->links_count > 0) {
        write_stewards(&writer, charter);
    } else {
        write_rules(&writer, charter, charter->version, charter->signed_s);
    }
    if (sign != NULL) {
        sign(signer, CHARTER_CONTEXT, bytes_of(out, writer.size), signature);
    } else {
        ASSERT(charter->links_count > 0);
        memcpy(signature, charter->founder_signature, sizeof signature);
    }
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

static void read_rules(struct wire_reader *reader, struct charter *charter, uint32_t *ret_version,
                       uint64_t *ret_signed_s) {
    *ret_version = wire_read_u32(reader);
    *ret_signed_s = wire_read_u64(reader);
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
    if (layout <= LAYOUT_STEWARDS) {
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

/* ---- what stewards sign ---- */

static void charter_digest_identity(const struct charter *charter, uint8_t out[SHA256_SIZE]) {
    uint8_t memory[IDENTITY_SIZE_MAX];
    struct sha256 sha256;
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    write_identity(&writer, charter);
    sha256_digest(&sha256, wire_writer_bytes(&writer), out);
}

/* *digest, and then the body, in one. */
static void charter_digest_on(uint8_t digest[SHA256_SIZE], struct bytes body) {
    struct sha256 sha256;
    sha256_start(&sha256);
    sha256_update(&sha256, bytes_of(digest, SHA256_SIZE));
    sha256_update(&sha256, body);
    sha256_finish(&sha256, digest);
}

/* Of the first links, as many. */
static void charter_digest_links(const struct charter *charter, size_t count, uint8_t out[SHA256_SIZE]) {
    uint8_t memory[CHARTER_LINK_SIZE_MAX];
    charter_digest_identity(charter, out);
    for (size_t i = 0; i < count; i++) {
        struct wire_writer writer;
        wire_writer_init(&writer, memory, sizeof memory);
        write_link(&writer, &charter->links[i]);
        charter_digest_on(out, wire_writer_bytes(&writer));
    }
}

static void charter_digest_rules(const struct charter *charter, uint8_t out[SHA256_SIZE]) {
    uint8_t memory[RULES_HEAD_SIZE_MAX];
    struct sha256 sha256;
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, charter->rules_generation);
    write_rules_head(&writer, charter, charter->rules_version, charter->rules_signed_s);
    charter_digest_identity(charter, out);
    sha256_start(&sha256);
    sha256_update(&sha256, bytes_of(out, SHA256_SIZE));
    sha256_update(&sha256, wire_writer_bytes(&writer));
    sha256_update(&sha256, charter_removed_bytes(charter));
    sha256_finish(&sha256, out);
}

/* ---- are they those who may? ---- */

void charter_stewards(const struct charter *charter, uint32_t generation, struct stewards *ret_stewards) {
    ASSERT(generation <= charter->links_count);
    if (generation > 0) {
        *ret_stewards = charter->links[generation - 1].stewards;
        return;
    }
    *ret_stewards = (struct stewards){.count = 1};
    memcpy(ret_stewards->keys[0], charter->founder, PEER_KEY_SIZE);
    memset(ret_stewards->needed, 1, sizeof ret_stewards->needed);
}

bool charter_is_steward(const struct charter *charter, const uint8_t key[PEER_KEY_SIZE]) {
    return charter->links_count == 0 ? memcmp(charter->founder, key, PEER_KEY_SIZE) == 0
                                     : stewards_have(&charter->links[charter->links_count - 1].stewards, key);
}

bool charter_is_in_time(const struct charter *charter, uint32_t generation, uint64_t made_s) {
    return generation == charter->links_count ||
           (generation < charter->links_count &&
            made_s <= charter->links[generation].signed_s + STEWARDS_SLACK_S);
}

/* The versions of rules and links follow each other, and the rules are those that the links took over. */
static bool charter_is_in_order(const struct charter *charter, const uint8_t rules[SHA256_SIZE]) {
    uint32_t of_rules = charter->rules_generation;
    const struct charter_link *last = &charter->links[charter->links_count - 1];
    bool is_last = of_rules == charter->links_count;
    if (of_rules > charter->links_count || charter->rules_version == 0 ||
        charter->rules_signed_s > time_s_max ||
        charter->version != (is_last ? charter->rules_version : last->version) ||
        charter->signed_s != (is_last ? charter->rules_signed_s : last->signed_s) ||
        (of_rules > 0 && charter->rules_version <= charter->links[of_rules - 1].version)) {
        return false;
    }
    for (size_t i = 0; i < charter->links_count; i++) {
        const struct charter_link *link = &charter->links[i];
        bool is_taken_over = i >= of_rules;
        if (link->signed_s > time_s_max || (i > 0 && link->version <= link[-1].version) ||
            (is_taken_over &&
             (link->version <= charter->rules_version || memcmp(link->rules, rules, SHA256_SIZE) != 0))) {
            return false;
        }
    }
    return true;
}

static bool charter_are_links_signed(const struct charter *charter, charter_verify *verify) {
    struct stewards before;
    uint8_t digest[SHA256_SIZE];
    uint8_t memory[CHARTER_LINK_SIZE_MAX];
    bool is_signed = true;
    charter_digest_identity(charter, digest);
    for (uint32_t i = 0; i < charter->links_count && is_signed; i++) {
        struct wire_writer writer;
        wire_writer_init(&writer, memory, sizeof memory);
        write_link(&writer, &charter->links[i]);
        charter_digest_on(digest, wire_writer_bytes(&writer));
        charter_stewards(charter, i, &before);
        is_signed = stewards_have_signed(&before, STEWARD_AMEND, &charter->links[i].signatures,
                                         CHARTER_LINK_CONTEXT, bytes_of(digest, sizeof digest), verify);
    }
    return is_signed;
}

static enum err charter_verify_stewards(const struct charter *charter, charter_verify *verify,
                                        struct err_detail *detail) {
    struct stewards authors;
    uint8_t rules[SHA256_SIZE];
    charter_digest_rules(charter, rules);
    if (!charter_is_in_order(charter, rules)) {
        return err_set(detail, ERR_INVALID, "its rules and its stewards do not fit together");
    }
    charter_stewards(charter, charter->rules_generation, &authors);
    bool is_signed = stewards_have_signed(&authors, STEWARD_AMEND, &charter->rules_signatures,
                                          CHARTER_RULES_CONTEXT, bytes_of(rules, sizeof rules), verify) &&
                     charter_are_links_signed(charter, verify);
    return is_signed ? ERR_OK : err_set(detail, ERR_MISMATCH, "not enough stewards have signed it");
}

static void read_link(struct wire_reader *reader, struct charter_link *link) {
    link->version = wire_read_u32(reader);
    link->signed_s = wire_read_u64(reader);
    stewards_read(reader, &link->stewards);
    wire_read_array(reader, link->rules, SHA256_SIZE);
}

static void read_stewards(struct wire_reader *reader, struct charter *charter) {
    charter->version = wire_read_u32(reader);
    charter->signed_s = wire_read_u64(reader);
    charter->rules_generation = wire_read_u8_max(reader, CHARTER_LINKS_MAX);
    read_rules(reader, charter, &charter->rules_version, &charter->rules_signed_s);
    steward_signatures_read(reader, &charter->rules_signatures);
    charter->links_count = (uint32_t)wire_read_varint(reader, CHARTER_LINKS_MAX);
    wire_read_check(reader, charter->links_count > 0, "stewards of nobody");
    for (size_t i = 0; i < charter->links_count; i++) {
        read_link(reader, &charter->links[i]);
        steward_signatures_read(reader, &charter->links[i].signatures);
    }
}

static bool charter_is_signed_by_founder(const struct charter *charter, struct bytes input,
                                         const uint8_t signature[CHARTER_SIGNATURE_SIZE],
                                         charter_verify *verify) {
    return verify(charter->founder, CHARTER_CONTEXT,
                  bytes_slice(input, 0, input.size - CHARTER_SIGNATURE_SIZE), signature);
}

enum err charter_read(struct bytes input, charter_verify *verify, struct charter *charter,
                      struct err_detail *detail) {
    static const uint8_t none[CHARTER_SIGNATURE_SIZE];
    struct wire_reader reader;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    memset(charter, 0, sizeof *charter);
    wire_reader_init(&reader, input);
    uint8_t layout = charter_read_layout(&reader);
    if (layout != LAYOUT_FOUNDER && layout != LAYOUT_STEWARDS) {
        wire_read_fail(&reader, ERR_UNSUPPORTED, "a charter of a later layout");
    }
    read_identity(&reader, charter);
    if (layout == LAYOUT_STEWARDS) {
        read_stewards(&reader, charter);
    } else {
        read_rules(&reader, charter, &charter->version, &charter->signed_s);
    }
    wire_read_array(&reader, signature, sizeof signature);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        err = charter_check(charter, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    bool is_left_out = layout == LAYOUT_STEWARDS && memcmp(signature, none, sizeof none) == 0;
    if (!is_left_out && !charter_is_signed_by_founder(charter, input, signature, verify)) {
        return err_set(detail, ERR_MISMATCH, "the signature is not the founder's");
    }
    memcpy(charter->founder_signature, signature, layout == LAYOUT_STEWARDS ? sizeof signature : 0);
    return layout == LAYOUT_STEWARDS ? charter_verify_stewards(charter, verify, detail) : ERR_OK;
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

/* Have they the same links, as far as both have any? */
static bool charter_is_same_line(const struct charter *charter, const struct charter *other) {
    uint8_t digest[SHA256_SIZE];
    uint8_t of_other[SHA256_SIZE];
    uint32_t count = charter->links_count < other->links_count ? charter->links_count : other->links_count;
    charter_digest_links(charter, count, digest);
    charter_digest_links(other, count, of_other);
    return memcmp(digest, of_other, sizeof digest) == 0;
}

enum err charter_succeeds(const struct charter *charter, const struct charter *newer,
                          struct err_detail *detail) {
    if (!charter_is_same_ring(charter, newer)) {
        return err_set(detail, ERR_MISMATCH, "it is the charter of another ring, \"%s\"", newer->name);
    }
    if (charter->list_size != newer->list_size || charter->mapping != newer->mapping) {
        return err_set(detail, ERR_MISMATCH, "the size of the lists and the mapping cannot change");
    }
    if (!charter_is_same_line(charter, newer)) {
        return err_set(detail, ERR_MISMATCH,
                       "its stewards are others than those that this node knows to have taken over");
    }
    if (newer->links_count < charter->links_count) {
        return err_set(detail, ERR_EXISTS, "version %u is of stewards that have been replaced",
                       newer->version);
    }
    if (newer->links_count == charter->links_count && newer->version <= charter->version) {
        return err_set(detail, ERR_EXISTS, "version %u is not newer than %u", newer->version,
                       charter->version);
    }
    return ERR_OK;
}

/* ---- acts ---- */

static enum err charter_apply_rules(const struct charter *charter, struct bytes body, struct charter *next,
                                    struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, body);
    memset(next->scope, 0, sizeof next->scope);
    memset(next->removed, 0, sizeof next->removed);
    next->rules_generation = wire_read_u8_max(&reader, CHARTER_LINKS_MAX);
    read_rules(&reader, next, &next->rules_version, &next->rules_signed_s);
    next->version = next->rules_version;
    next->signed_s = next->rules_signed_s;
    next->rules_signatures = (struct steward_signatures){.count = 0};
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK && next->rules_generation != charter->links_count) {
        err = err_set(detail, ERR_EXISTS, "the stewards have changed since");
    }
    return err;
}

static enum err charter_apply_link(const struct charter *charter, struct bytes body, struct charter *next,
                                   struct err_detail *detail) {
    struct wire_reader reader;
    uint8_t rules[SHA256_SIZE];
    if (charter->links_count == CHARTER_LINKS_MAX) {
        return err_set(detail, ERR_MISMATCH, "the stewards of a ring can change %d times", CHARTER_LINKS_MAX);
    }
    struct charter_link *link = &next->links[next->links_count];
    wire_reader_init(&reader, body);
    memset(link, 0, sizeof *link);
    read_link(&reader, link);
    wire_read_check(&reader, link->signed_s <= time_s_max, "no such time");
    enum err err = wire_reader_finish(&reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    charter_digest_rules(charter, rules);
    if (memcmp(rules, link->rules, sizeof rules) != 0) {
        return err_set(detail, ERR_EXISTS, "the charter has changed since");
    }
    next->version = link->version;
    next->signed_s = link->signed_s;
    next->links_count++;
    return ERR_OK;
}

enum err charter_apply(const struct charter *charter, enum charter_act act, struct bytes body,
                       struct charter *next, uint8_t ret_digest[SHA256_SIZE], struct err_detail *detail) {
    *next = *charter;
    memset(next->founder_signature, 0, sizeof next->founder_signature);
    if (charter->links_count == 0) {
        return err_set(detail, ERR_MISMATCH, "the ring has no stewards but its founder");
    }
    enum err err = act == CHARTER_ACT_RULES ? charter_apply_rules(charter, body, next, detail)
                                            : charter_apply_link(charter, body, next, detail);
    err = err == ERR_OK ? charter_check(next, detail) : err;
    if (err == ERR_OK && next->version != charter->version + 1) {
        err = err_set(detail, ERR_EXISTS, "it does not follow version %u", charter->version);
    }
    err = err == ERR_OK ? charter_succeeds(charter, next, detail) : err;
    if (err == ERR_OK && act == CHARTER_ACT_RULES) {
        charter_digest_rules(next, ret_digest);
    } else if (err == ERR_OK) {
        charter_digest_links(next, next->links_count, ret_digest);
    }
    return err;
}

void charter_take_signatures(struct charter *next, enum charter_act act,
                             const struct steward_signatures *signatures) {
    ASSERT(next->links_count > 0);
    if (act == CHARTER_ACT_RULES) {
        next->rules_signatures = *signatures;
    } else {
        next->links[next->links_count - 1].signatures = *signatures;
    }
}

struct bytes charter_write_rules_act(const struct charter *charter, uint64_t now_s, uint8_t *out) {
    struct wire_writer writer;
    ASSERT(charter->links_count > 0);
    wire_writer_init(&writer, out, CHARTER_RULES_SIZE_MAX);
    wire_write_u8(&writer, (uint8_t)charter->links_count);
    write_rules(&writer, charter, charter->version + 1, now_s);
    return wire_writer_bytes(&writer);
}

struct bytes charter_write_stewards_act(const struct charter *charter, const struct stewards *stewards,
                                        uint64_t now_s, uint8_t *out) {
    struct charter_link link = {.version = charter->version + 1, .signed_s = now_s, .stewards = *stewards};
    struct wire_writer writer;
    charter_digest_rules(charter, link.rules);
    wire_writer_init(&writer, out, CHARTER_RULES_SIZE_MAX);
    write_link(&writer, &link);
    return wire_writer_bytes(&writer);
}

static void charter_sign_as_founder(const struct charter *charter, const char *context,
                                    const uint8_t digest[SHA256_SIZE], charter_sign *sign, const void *signer,
                                    struct steward_signatures *out) {
    *out = (struct steward_signatures){.count = 1};
    memcpy(out->items[0].key, charter->founder, PEER_KEY_SIZE);
    sign(signer, context, bytes_of(digest, SHA256_SIZE), out->items[0].signature);
}

enum err charter_hand_over(struct charter *charter, const struct stewards *stewards, uint64_t now_s,
                           charter_sign *sign, const void *signer, struct err_detail *detail) {
    struct charter_link *link = &charter->links[0];
    uint8_t digest[SHA256_SIZE];
    ASSERT(charter->links_count == 0);
    enum err err = stewards_check(stewards, detail);
    if (err == ERR_OK && charter->version == UINT32_MAX) {
        err = err_set(detail, ERR_LIMIT, "there is no version after %u", charter->version);
    }
    if (err != ERR_OK) {
        return err;
    }
    charter->rules_version = charter->version;
    charter->rules_signed_s = charter->signed_s;
    charter->rules_generation = 0;
    charter_digest_rules(charter, digest);
    charter_sign_as_founder(charter, CHARTER_RULES_CONTEXT, digest, sign, signer, &charter->rules_signatures);
    *link = (struct charter_link){.version = charter->version + 1, .signed_s = now_s, .stewards = *stewards};
    memcpy(link->rules, digest, sizeof digest);
    charter->links_count = 1;
    charter_digest_links(charter, 1, digest);
    charter_sign_as_founder(charter, CHARTER_LINK_CONTEXT, digest, sign, signer, &link->signatures);
    charter->version = link->version;
    charter->signed_s = link->signed_s;
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
