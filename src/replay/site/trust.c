#include "replay/site/trust.h"

#include "http/server/form.h"

enum { WORD_SIZE_MAX = 16 };

static const enum archive_trust trust_all[] = {ARCHIVE_TRUST_ANY, ARCHIVE_TRUST_MEMBERS};

const char *trust_word(enum archive_trust trust) {
    return trust == ARCHIVE_TRUST_ANY ? "any" : trust == ARCHIVE_TRUST_MEMBERS ? "members" : NULL;
}

enum archive_trust trust_take_prefix(struct bytes *target) {
    if (!bytes_starts_with(*target, BYTES("~"))) {
        return ARCHIVE_TRUST_DEFAULT;
    }
    size_t end = bytes_find_byte(*target, '/');
    struct bytes word = bytes_slice(*target, 1, end);
    for (size_t i = 0; i < sizeof trust_all / sizeof *trust_all && end < target->size; i++) {
        if (bytes_equal(word, bytes_of_string(trust_word(trust_all[i])))) {
            *target = bytes_skip(*target, end + 1);
            return trust_all[i];
        }
    }
    return ARCHIVE_TRUST_DEFAULT;
}

enum archive_trust trust_take_suffix(struct bytes *key) {
    for (size_t i = 0; i < sizeof trust_all / sizeof *trust_all; i++) {
        struct bytes word = bytes_of_string(trust_word(trust_all[i]));
        bool is_alone = bytes_equal(*key, word);
        bool is_behind = key->size > word.size && bytes_ends_with(*key, word) &&
                         key->data[key->size - word.size - 1] == '-';
        if (is_alone || is_behind) {
            *key = bytes_slice(*key, 0, is_alone ? 0 : key->size - word.size - 1);
            return trust_all[i];
        }
    }
    return ARCHIVE_TRUST_DEFAULT;
}

/* "~KEY-members" behind the first part of the path. */
static enum archive_trust trust_of_path(struct bytes path) {
    struct bytes rest = bytes_skip(path, path.size > 0 ? 1 : 0);
    size_t end = bytes_find_byte(rest, '/');
    rest = bytes_skip(rest, end < rest.size ? end + 1 : end);
    if (!bytes_starts_with(rest, BYTES("~"))) {
        return ARCHIVE_TRUST_DEFAULT;
    }
    struct bytes key = bytes_slice(rest, 1, bytes_find_byte(rest, '/'));
    return trust_take_suffix(&key);
}

static enum archive_trust trust_of_query(const struct http_request *request) {
    struct buf word;
    buf_init(&word, WORD_SIZE_MAX);
    bool is_there = form_get(http_request_query(request), "trust", &word) && word.err == ERR_OK;
    enum archive_trust trust = is_there ? archive_trust_parse(buf_bytes(&word)) : ARCHIVE_TRUST_DEFAULT;
    buf_done(&word);
    return trust == ARCHIVE_TRUST_INVALID ? ARCHIVE_TRUST_DEFAULT : trust;
}

enum archive_trust trust_of_request(const struct http_request *request) {
    struct bytes path = http_request_path(request);
    enum archive_trust trust =
        bytes_starts_with(path, BYTES("/api/")) ? trust_of_query(request) : trust_of_path(path);
    if (trust == ARCHIVE_TRUST_DEFAULT) {
        trust = archive_trust_parse(bytes_trim(http_request_header(request, "X-Mnemon-Trust")));
    }
    return trust == ARCHIVE_TRUST_INVALID ? ARCHIVE_TRUST_DEFAULT : trust;
}

struct archive_reader *trust_reader_begin(const struct replay *replay, const struct http_request *request) {
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    if (reader != NULL) {
        archive_reader_set_trust(reader, trust_of_request(request));
    }
    return reader;
}
