#include "node/ring/deletion_text.h"

#include "store/index/index_code.h"

enum { EXACT_SIZE = 3 };
static const char exact[] = "###"; /* as in rules of access */

/* One line of what people read, or a key: nothing that steers a terminal or ends a line. */
static bool deletion_text_is_line(struct bytes text, bool may_have_spaces) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < ' ' || text.data[i] == 0x7f || (text.data[i] == ' ' && !may_have_spaces)) {
            return false;
        }
    }
    return text.size > 0;
}

bool deletion_text_is_reason(struct bytes reason) {
    return reason.size <= DELETION_TEXT_REASON_SIZE_MAX && deletion_text_is_line(reason, true);
}

void deletion_text_put_reason(struct buf *out, struct bytes reason) {
    ASSERT(deletion_text_is_reason(reason));
    buf_put_string(out, "reason ");
    buf_put(out, reason);
    buf_put_byte(out, '\n');
}

void deletion_text_put_url(struct buf *out, struct bytes url, const struct deletion *deletions,
                           size_t count) {
    buf_put_string(out, "url ");
    buf_put(out, url);
    buf_put_byte(out, '\n');
    for (size_t i = 0; i < count; i++) {
        const struct deletion *deletion = &deletions[i];
        if (deletion->from_us == INT64_MIN) {
            buf_put_string(out, "delete -");
        } else {
            buf_put_format(out, "delete %jd", (intmax_t)deletion->from_us);
        }
        buf_put_format(out, " %jd ", (intmax_t)deletion->to_us);
        buf_put(out, deletion->key);
        buf_put_string(out, deletion->is_exact ? exact : "");
        buf_put_byte(out, '\n');
    }
}

/* ---- reading ---- */

static bool deletion_text_read_time(struct bytes text, int64_t *ret_time_us) {
    bool is_before = bytes_starts_with(text, BYTES("-"));
    uint64_t size;
    if (!bytes_to_u64(is_before ? bytes_skip(text, 1) : text, INT64_MAX, &size)) {
        return false;
    }
    *ret_time_us = is_before ? -(int64_t)size : (int64_t)size;
    return true;
}

/* "FROM TO KEY" */
static enum err deletion_text_read_one(struct bytes rest, uint64_t version, struct deletion *ret_deletion,
                                       struct err_detail *detail) {
    struct deletion deletion = {.from_us = INT64_MIN};
    struct bytes from;
    struct bytes to;
    bool is_read = bytes_split(&rest, ' ', &from) && bytes_split(&rest, ' ', &to) &&
                   (bytes_equal(from, BYTES("-")) || deletion_text_read_time(from, &deletion.from_us)) &&
                   deletion_text_read_time(to, &deletion.to_us);
    deletion.is_exact = is_read && bytes_ends_with(rest, bytes_of_string(exact));
    deletion.key = deletion.is_exact ? bytes_slice(rest, 0, rest.size - EXACT_SIZE) : rest;
    if (!is_read || deletion.key.size > INDEX_SURT_SIZE_MAX || !deletion_text_is_line(deletion.key, false)) {
        return err_set(detail, ERR_INVALID, "a deletion that names no captures");
    }
    if (deletion.to_us >= 0 && (uint64_t)deletion.to_us > version) {
        return err_set(detail, ERR_INVALID, "a deletion of what was captured after it");
    }
    *ret_deletion = deletion;
    return ERR_OK;
}

static enum err deletion_text_take(struct deletion_text *text, const struct deletion *deletion,
                                   struct deletion_set *set) {
    text->from_us = deletion->from_us < text->from_us ? deletion->from_us : text->from_us;
    text->to_us = deletion->to_us > text->to_us ? deletion->to_us : text->to_us;
    return set != NULL ? deletion_set_add(set, deletion) : ERR_OK;
}

static enum err deletion_text_read_line(struct deletion_text *text, struct bytes word, struct bytes rest,
                                        uint64_t version, struct deletion_set *set,
                                        struct err_detail *detail) {
    if (bytes_equal(word, BYTES("reason"))) {
        text->reason = rest;
        return deletion_text_is_reason(rest)
                   ? ERR_OK
                   : err_set(detail, ERR_INVALID, "a reason that is no line of text");
    }
    if (bytes_equal(word, BYTES("url"))) {
        if (text->urls_count == DELETION_TEXT_URLS_MAX || !deletion_text_is_line(rest, true)) {
            return err_set(detail, ERR_LIMIT, "URLs that are too many, or no lines of text");
        }
        text->urls[text->urls_count++] = rest;
        return ERR_OK;
    }
    if (bytes_equal(word, BYTES("delete"))) {
        struct deletion deletion;
        enum err err = deletion_text_read_one(rest, version, &deletion, detail);
        return err == ERR_OK ? deletion_text_take(text, &deletion, set) : err;
    }
    return err_set(detail, ERR_UNSUPPORTED, "a deletion that says more than this version understands");
}

enum err deletion_text_read(struct bytes text, uint64_t version, struct deletion_text *ret_text,
                            struct deletion_set *set, struct err_detail *detail) {
    struct bytes line;
    *ret_text = (struct deletion_text){.from_us = INT64_MAX, .to_us = INT64_MIN};
    while (text.size > 0 && bytes_split(&text, '\n', &line)) {
        struct bytes word;
        struct bytes rest = line;
        bytes_split(&rest, ' ', &word);
        enum err err = deletion_text_read_line(ret_text, word, rest, version, set, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    bool is_whole = ret_text->reason.size > 0 && ret_text->urls_count > 0 && ret_text->to_us != INT64_MIN;
    return is_whole ? ERR_OK : err_set(detail, ERR_INVALID, "a deletion without a reason, a URL or captures");
}
