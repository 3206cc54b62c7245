#include "web/url/idna.h"

#include <stdlib.h>
#include <uninorm.h>

#include "base/utf8.h"
#include "web/url/punycode.h"
#include "web/url/uts46.h"

/* Code points of a domain or of one of its labels. */
struct text {
    uint32_t *data;
    size_t count;
};

static const char malformed[] = "a label of the domain is not valid punycode";

/* Map all code points and compose them (NFC). *ret_text is on the heap. */
static enum err map_domain(struct bytes domain, struct text *ret_text, const char **ret_reason) {
    struct buf mapped;
    buf_init(&mapped, IDNA_DOMAIN_SIZE_MAX * UTS46_MAPPED_MAX * sizeof(uint32_t));
    enum err err = ERR_OK;
    while (domain.size > 0 && err == ERR_OK) {
        size_t length;
        uint32_t code_points[UTS46_MAPPED_MAX];
        size_t count;
        if (uts46_map(utf8_decode(domain, &length), code_points, &count)) {
            err = buf_put(&mapped, bytes_of(code_points, count * sizeof *code_points));
        } else {
            *ret_reason = "the domain has a character that domains may not have";
            err = ERR_INVALID;
        }
        domain = bytes_skip(domain, length);
    }
    if (err == ERR_OK) {
        /* malloc's memory is aligned for any type. */
        ret_text->data = u32_normalize(UNINORM_NFC, (const uint32_t *)(const void *)mapped.data,
                                       mapped.size / sizeof(uint32_t), NULL, &ret_text->count);
        err = ret_text->data == NULL && mapped.size > 0 ? ERR_MEMORY : ERR_OK;
    }
    buf_done(&mapped);
    return err;
}

/* Cut the label before the next dot off *rest, like bytes_split(). */
static bool split_label(struct text *rest, struct text *ret_label) {
    if (rest->data == NULL) {
        return false;
    }
    size_t end = 0;
    while (end < rest->count && rest->data[end] != '.') {
        end++;
    }
    *ret_label = (struct text){rest->data, end};
    *rest = end < rest->count ? (struct text){rest->data + end + 1, rest->count - end - 1}
                              : (struct text){NULL, 0};
    return true;
}

static bool is_ascii(struct text label) {
    for (size_t i = 0; i < label.count; i++) {
        if (label.data[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

static enum err put_ascii(struct buf *out, struct text label) {
    for (size_t i = 0; i < label.count; i++) {
        buf_put_byte(out, (uint8_t)label.data[i]);
    }
    return out->err;
}

static bool has_prefix(struct text label) {
    return label.count >= 4 && label.data[0] == 'x' && label.data[1] == 'n' && label.data[2] == '-' &&
           label.data[3] == '-';
}

static bool is_composed(struct text label) {
    size_t count;
    uint32_t *composed = u32_normalize(UNINORM_NFC, label.data, label.count, NULL, &count);
    bool same = composed != NULL && count == label.count &&
                memcmp(composed, label.data, count * sizeof *composed) == 0;
    free(composed);
    return same;
}

/* The label that "xn--…" stands for, into ret_label->data, which has room for label.count code points. */
static enum err decode_label(struct text label, struct text *ret_label) {
    if (!is_ascii(label)) {
        return ERR_INVALID;
    }
    struct buf ascii;
    buf_init(&ascii, label.count);
    enum err err = put_ascii(&ascii, (struct text){label.data + 4, label.count - 4});
    if (err == ERR_OK) {
        err = punycode_decode(buf_bytes(&ascii), ret_label->data, &ret_label->count);
    }
    buf_done(&ascii);
    if (err != ERR_OK) {
        return err;
    }
    /* An encoder never makes these, so two spellings of one domain cannot both pass. */
    return is_ascii(*ret_label) || !is_composed(*ret_label) ? ERR_INVALID : ERR_OK;
}

/* Replace the "xn--…" labels by what they stand for, in place: they only get shorter. */
static enum err decode_labels(struct text *domain, const char **ret_reason) {
    struct text rest = *domain;
    struct text label;
    size_t count = 0;
    while (split_label(&rest, &label)) {
        bool is_last = rest.data == NULL;
        if (has_prefix(label)) {
            struct text decoded = {malloc(label.count * sizeof *label.data), 0};
            enum err err = decoded.data == NULL ? ERR_MEMORY : decode_label(label, &decoded);
            if (err == ERR_OK) {
                memcpy(domain->data + count, decoded.data, decoded.count * sizeof *decoded.data);
                label.count = decoded.count;
            }
            free(decoded.data);
            if (err != ERR_OK) {
                *ret_reason = malformed;
                return err;
            }
        } else {
            memmove(domain->data + count, label.data, label.count * sizeof *label.data);
        }
        count += label.count;
        if (!is_last) {
            domain->data[count++] = '.';
        }
    }
    domain->count = count;
    return ERR_OK;
}

static enum err put_label(struct buf *out, struct text label, bool domain_is_bidi, const char **ret_reason) {
    *ret_reason = uts46_check_label(label.data, label.count);
    if (*ret_reason == NULL && domain_is_bidi && !uts46_bidi_is_allowed(label.data, label.count)) {
        *ret_reason = "a label of the domain mixes writing directions";
    }
    if (*ret_reason != NULL) {
        return ERR_INVALID;
    }
    if (is_ascii(label)) {
        return put_ascii(out, label);
    }
    *ret_reason = "a label of the domain is too long for punycode";
    buf_put(out, BYTES("xn--"));
    return punycode_encode(out, label.data, label.count);
}

enum err idna_put_ascii(struct buf *out, struct bytes domain, const char **ret_reason) {
    if (domain.size > IDNA_DOMAIN_SIZE_MAX) {
        *ret_reason = "the international domain is too long";
        return ERR_INVALID;
    }
    struct text text = {NULL, 0};
    enum err err = map_domain(domain, &text, ret_reason);
    if (err == ERR_OK) {
        err = decode_labels(&text, ret_reason);
    }
    bool is_bidi = err == ERR_OK && uts46_is_bidi(text.data, text.count);
    struct text rest = text;
    struct text label;
    bool is_first = true;
    while (err == ERR_OK && split_label(&rest, &label)) {
        if (!is_first) {
            buf_put_byte(out, '.');
        }
        is_first = false;
        err = put_label(out, label, is_bidi, ret_reason);
    }
    free(text.data);
    return err;
}
