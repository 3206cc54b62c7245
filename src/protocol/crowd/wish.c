#include "protocol/crowd/wish.h"

#include "base/utf8.h"

_Static_assert(1 + 2 + WISH_WORDS_SIZE_MAX + 1 + 16 <= CROWD_WISH_SIZE_MAX, "a wish always fits");
_Static_assert(1 + RINGKEY_SIZE + WIRE_VARINT_SIZE_MAX + 2 + WISH_URL_SIZE_MAX + 1 + WISH_TITLE_SIZE_MAX <=
                   CROWD_FINDING_SIZE_MAX,
               "one finding always fits");

/* What people may be shown: UTF-8 without control characters. */
static bool is_clean(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] == 0x7f) {
            return false;
        }
    }
    return utf8_is_valid(text);
}

static bool are_words(struct bytes words) {
    if (words.size == 0 || words.data[words.size - 1] == ' ' || !is_clean(words)) {
        return false;
    }
    bool is_after_space = true;
    for (size_t i = 0; i < words.size; i++) {
        bool is_space = words.data[i] == ' ';
        if ((is_space && is_after_space) || (words.data[i] >= 'A' && words.data[i] <= 'Z')) {
            return false;
        }
        is_after_space = is_space;
    }
    return true;
}

/* ---- wishes ---- */

static void code_us(struct wire_coder *coder, int64_t *us) {
    uint64_t word = (uint64_t)*us;
    wire_code_u64(coder, &word);
    *us = (int64_t)word;
}

static void code_time(struct wire_coder *coder, struct wish *wish) {
    uint8_t time = (uint8_t)wish->time;
    wire_code_u8(coder, &time, WISH_BETWEEN);
    wish->time = (enum wish_time)time;
    if (wish->time != WISH_NEWEST) {
        code_us(coder, &wish->from_us);
    }
    if (wish->time == WISH_BETWEEN) {
        code_us(coder, &wish->to_us);
        wire_code_check(coder, wish->from_us <= wish->to_us, "ends before it begins");
    }
}

static void wish_code(struct wire_coder *coder, struct wish *wish) {
    uint8_t kind = (uint8_t)wish->kind;
    wire_code_u8(coder, &kind, WISH_WORDS);
    wish->kind = (enum wish_kind)kind;
    switch (wish->kind) {
    case WISH_URL:
        wire_code_array(coder, wish->hash, WISH_HASH_SIZE);
        code_time(coder, wish);
        break;
    case WISH_DIGEST:
        wire_code_array(coder, wish->digest, WISH_DIGEST_SIZE);
        break;
    case WISH_WORDS:
        wire_code_string(coder, &wish->words, WISH_WORDS_SIZE_MAX);
        code_time(coder, wish);
        wire_code_check(coder, are_words(wish->words), "no words");
        break;
    default:
        wire_code_check(coder, false, "unknown kind");
    }
}

struct bytes wish_write(const struct wish *wish, void *memory) {
    struct wire_writer writer;
    struct wish written = *wish;
    wire_writer_init(&writer, memory, CROWD_WISH_SIZE_MAX);
    wish_code(&(struct wire_coder){.writer = &writer}, &written);
    return wire_writer_bytes(&writer);
}

bool wish_read(struct bytes bytes, struct wish *ret_wish) {
    struct wire_reader reader;
    struct wish wish = {0};
    wire_reader_init(&reader, bytes);
    wish_code(&(struct wire_coder){.reader = &reader}, &wish);
    if (wire_reader_finish(&reader, NULL) != ERR_OK) {
        return false;
    }
    *ret_wish = wish;
    return true;
}

/* ---- findings ---- */

/* As much of it as may be named; of a title the beginning. */
static struct bytes cut_title(struct bytes title) {
    size_t size = title.size < WISH_TITLE_SIZE_MAX ? title.size : WISH_TITLE_SIZE_MAX;
    while (size > 0 && size < title.size && (title.data[size] & 0xc0) == 0x80) {
        size--; /* not within a character */
    }
    title = bytes_slice(title, 0, size);
    return is_clean(title) ? title : bytes_of(NULL, 0);
}

static struct bytes cut_url(struct bytes url) {
    return url.size <= WISH_URL_SIZE_MAX && is_clean(url) ? url : bytes_of(NULL, 0);
}

struct bytes wish_write_findings(const struct wish_finding *findings, size_t count, void *memory) {
    ASSERT(count > 0);
    struct wire_writer writer;
    uint8_t *start = memory;
    wire_writer_init(&writer, memory, CROWD_FINDING_SIZE_MAX);
    wire_write_u8(&writer, 0);
    for (size_t i = 0; i < count && i < WISH_FINDINGS_MAX; i++) {
        struct wire_writer before = writer;
        wire_write_bytes(&writer, bytes_of(findings[i].key.bytes, RINGKEY_SIZE));
        wire_write_varint(&writer, findings[i].size);
        wire_write_string(&writer, cut_url(findings[i].url));
        wire_write_string(&writer, cut_title(findings[i].title));
        if (writer.err != ERR_OK) {
            writer = before;
            break;
        }
        start[0]++;
    }
    ASSERT(start[0] > 0);
    return bytes_of(memory, writer.size);
}

bool wish_read_findings(struct bytes bytes, struct wish_finding out[WISH_FINDINGS_MAX], size_t *ret_count) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    size_t count = wire_read_u8_max(&reader, WISH_FINDINGS_MAX);
    bool is_good = count > 0;
    for (size_t i = 0; i < count; i++) {
        wire_read_array(&reader, out[i].key.bytes, RINGKEY_SIZE);
        out[i].size = wire_read_varint(&reader, UINT64_MAX);
        out[i].url = wire_read_string(&reader, WISH_URL_SIZE_MAX);
        out[i].title = wire_read_string(&reader, WISH_TITLE_SIZE_MAX);
        is_good = is_good && is_clean(out[i].url) && is_clean(out[i].title);
    }
    if (wire_reader_finish(&reader, NULL) != ERR_OK || !is_good) {
        return false;
    }
    *ret_count = count;
    return true;
}

/* ---- times ---- */

bool wish_takes_time(const struct wish *wish, int64_t time_us) {
    return wish->time != WISH_BETWEEN || (wish->from_us <= time_us && time_us <= wish->to_us);
}

/* Any two times have a distance in 64 bits without a sign. */
static uint64_t wish_distance(int64_t a, int64_t b) {
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

bool wish_prefers(const struct wish *wish, int64_t time_us, int64_t other_us) {
    if (!wish_takes_time(wish, time_us) || !wish_takes_time(wish, other_us)) {
        return wish_takes_time(wish, time_us);
    }
    if (wish->time == WISH_NEAREST) {
        uint64_t ours = wish_distance(time_us, wish->from_us);
        uint64_t others = wish_distance(other_us, wish->from_us);
        if (ours != others) {
            return ours < others;
        }
    }
    return time_us > other_us;
}
