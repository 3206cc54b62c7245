#include "web/url/host.h"

#include "base/utf8.h"
#include "web/url/idna.h"
#include "web/url/ipv4.h"
#include "web/url/ipv6.h"
#include "web/url/percent.h"

static enum err put_ipv6(struct buf *out, struct bytes text, struct err_detail *detail) {
    if (text.data[text.size - 1] != ']') {
        return err_set_at(detail, ERR_INVALID, 0, "the IPv6 address has no closing bracket");
    }
    uint16_t pieces[IPV6_PIECES];
    const char *reason;
    enum err err = ipv6_parse(bytes_slice(text, 1, text.size - 1), pieces, &reason);
    if (err != ERR_OK) {
        return err_set_at(detail, err, 1, "%s", reason);
    }
    buf_put_byte(out, '[');
    ipv6_put(out, pieces);
    return buf_put_byte(out, ']');
}

static enum err refuse_byte(struct bytes text, size_t index, size_t offset, struct err_detail *detail) {
    uint8_t byte = text.data[index];
    if (byte > 0x20 && byte < 0x7f) {
        return err_set_at(detail, ERR_INVALID, offset, "a host may not contain '%c'", byte);
    }
    return err_set_at(detail, ERR_INVALID, offset, "a host may not contain the byte 0x%02x", byte);
}

static enum err put_opaque(struct buf *out, struct bytes text, struct err_detail *detail) {
    size_t forbidden = percent_find(text, PERCENT_NOT_HOST);
    if (forbidden < text.size) {
        return refuse_byte(text, forbidden, forbidden, detail);
    }
    return percent_put(out, text, PERCENT_CONTROL);
}

/*
 * Nearly every host is plain ASCII: copy it in lower case and learn in the same pass whether it really was.
 * If not, out is as before.
 */
static bool put_plain_domain(struct buf *out, struct bytes text) {
    if (buf_reserve(out, text.size) != ERR_OK) {
        return false;
    }
    uint8_t *to = out->data + out->size;
    unsigned seen = 0;
    for (size_t i = 0; i < text.size; i++) {
        seen |= percent_table[text.data[i]];
        to[i] = byte_lower(text.data[i]);
    }
    if ((seen & (PERCENT_NOT_DOMAIN | PERCENT_CONTROL)) != 0) {
        return false;
    }
    out->size += text.size;
    return true;
}

/* A domain with escapes or with characters beyond ASCII, decoded from text. */
static enum err put_decoded_domain(struct buf *out, struct bytes domain, struct bytes text,
                                   struct err_detail *detail) {
    if (!utf8_is_valid(domain)) {
        return err_set_at(detail, ERR_INVALID, 0, "the domain is not UTF-8");
    }
    const char *reason = NULL;
    size_t start = out->size;
    if (!put_plain_domain(out, domain)) {
        enum err err = idna_put_ascii(out, domain, &reason);
        if (err != ERR_OK) {
            return err == ERR_INVALID ? err_set_at(detail, err, 0, "%s", reason) : err;
        }
    }
    struct bytes ascii = bytes_skip(buf_bytes(out), start);
    size_t forbidden = percent_find(ascii, PERCENT_NOT_DOMAIN);
    if (forbidden < ascii.size) {
        size_t offset = bytes_find_byte(text, ascii.data[forbidden]);
        return refuse_byte(ascii, forbidden, offset < text.size ? offset : 0, detail); /* 0: it was escaped */
    }
    return ascii.size > 0 ? ERR_OK : err_set_at(detail, ERR_INVALID, 0, "nothing is left of the domain");
}

static enum err put_domain(struct buf *out, struct bytes text, struct err_detail *detail) {
    if (put_plain_domain(out, text)) {
        return ERR_OK;
    }
    struct buf decoded;
    buf_init(&decoded, text.size);
    enum err err = percent_put_decoded(&decoded, text);
    if (err == ERR_OK) {
        err = put_decoded_domain(out, buf_bytes(&decoded), text, detail);
    }
    buf_done(&decoded);
    return err;
}

enum err host_put(struct buf *out, struct bytes text, bool is_special, enum url_host_type *ret_type,
                  struct err_detail *detail) {
    ASSERT(text.size > 0);
    if (text.data[0] == '[') {
        *ret_type = URL_HOST_IPV6;
        return put_ipv6(out, text, detail);
    }
    if (!is_special) {
        *ret_type = URL_HOST_OPAQUE;
        return put_opaque(out, text, detail);
    }
    size_t start = out->size;
    enum err err = put_domain(out, text, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes domain = bytes_skip(buf_bytes(out), start);
    if (!ipv4_ends_in_number(domain)) {
        *ret_type = URL_HOST_DOMAIN;
        return ERR_OK;
    }
    uint32_t address;
    const char *reason;
    err = ipv4_parse(domain, &address, &reason);
    if (err != ERR_OK) {
        return err_set_at(detail, err, 0, "%s", reason);
    }
    *ret_type = URL_HOST_IPV4;
    buf_truncate(out, start);
    return ipv4_put(out, address);
}
