#include "web/url/url_href.h"

enum { HOST_SIZE_MAX = 253, PORT_SIZE_MAX = 5 };

/* Bytes that url_parse() leaves as they are, wherever in a host, path or query they are. */
static bool href_is_plain(uint8_t byte) {
    static const uint8_t unusual[] = "\"#<>`{}|^\\'";
    return byte > ' ' && byte < 0x7f && memchr(unusual, byte, sizeof unusual - 1) == NULL;
}

/* Letters, digits, hyphens and dots, of a name that needs no look at Unicode and is no address. */
static bool href_is_plain_host(struct bytes host) {
    uint8_t before = '.';
    bool is_plain = host.size > 0 && host.size <= HOST_SIZE_MAX;
    for (size_t i = 0; i < host.size && is_plain; i++) {
        uint8_t byte = host.data[i];
        bool is_letter = (byte >= 'a' && byte <= 'z') || byte_is_digit(byte);
        is_plain =
            is_letter || (byte == '-' && before != '.' && before != '-') || (byte == '.' && before != '.');
        before = byte;
    }
    size_t label = host.size;
    while (label > 0 && host.data[label - 1] != '.') {
        label--;
    }
    return is_plain && label < host.size && !byte_is_digit(host.data[label]) && before != '-';
}

/* Four numbers without leading zeros. */
static bool href_is_ipv4(struct bytes host) {
    struct bytes number;
    uint64_t value;
    size_t count = 0;
    bool is_plain = host.size > 0 && byte_is_digit(host.data[host.size - 1]);
    while (is_plain && bytes_split(&host, '.', &number)) {
        is_plain = number.size > 0 && (number.data[0] != '0' || number.size == 1) &&
                   bytes_to_u64(number, UINT8_MAX, &value);
        count++;
    }
    return is_plain && count == 4;
}

/* No leading zero, not the scheme's own. */
static bool href_read_port(struct bytes text, bool is_https, int32_t *ret_port) {
    uint64_t port = 0;
    bool is_plain = text.size > 0 && text.size <= PORT_SIZE_MAX && text.data[0] != '0' &&
                    bytes_to_u64(text, UINT16_MAX, &port) && port != (is_https ? 443 : 80);
    *ret_port = (int32_t)port;
    return is_plain;
}

/* "/../" and the like, also in disguise: found by what they begin with. */
static bool href_has_dots(struct bytes path) {
    return bytes_find(path, BYTES("/.")) < path.size || bytes_find(path, BYTES("/%2")) < path.size;
}

/* The parts of an href that is as url_parse() would leave it. False: it may not be. */
static bool href_find_parts(struct bytes href, struct url *url) {
    bool is_https = bytes_starts_with(href, BYTES("https://"));
    if (!is_https && !bytes_starts_with(href, BYTES("http://"))) {
        return false;
    }
    uint32_t scheme_size = is_https ? 5 : 4;
    uint32_t host_from = scheme_size + 3;
    struct bytes rest = bytes_skip(href, host_from);
    uint32_t path_from = host_from + (uint32_t)bytes_find_byte(rest, '/');
    struct bytes authority = bytes_slice(href, host_from, path_from);
    uint32_t host_to = host_from + (uint32_t)bytes_find_byte(authority, ':');
    struct bytes path = bytes_skip(href, path_from);
    uint32_t path_to = path_from + (uint32_t)bytes_find_byte(path, '?');
    path = bytes_slice(href, path_from, path_to);
    int32_t port = URL_PORT_NONE;
    struct bytes host = bytes_slice(href, host_from, host_to);
    bool is_ipv4 = href_is_ipv4(host);
    bool is_plain = path.size > 0 && (is_ipv4 || href_is_plain_host(host)) && !href_has_dots(path);
    if (is_plain && host_to < path_from) {
        is_plain = href_read_port(bytes_slice(href, host_to + 1, path_from), is_https, &port);
    }
    for (size_t i = path_from; i < href.size && is_plain; i++) {
        is_plain = href_is_plain(href.data[i]);
    }
    if (!is_plain) {
        return false;
    }
    struct buf kept = url->href;
    *url = (struct url){
        .href = kept,
        .scheme = {0, scheme_size},
        .host = {host_from, host_to},
        .path = {path_from, path_to},
        .port = port,
        .scheme_type = is_https ? URL_SCHEME_HTTPS : URL_SCHEME_HTTP,
        .host_type = is_ipv4 ? URL_HOST_IPV4 : URL_HOST_DOMAIN,
    };
    if (path_to < href.size) {
        url->query = (struct url_span){path_to + 1, (uint32_t)href.size};
    }
    return true;
}

enum err url_parse_href(struct url *url, struct bytes href) {
    if (href.size > URL_SIZE_MAX || !href_find_parts(href, url)) {
        return url_parse(url, href, NULL, NULL);
    }
    buf_clear(&url->href);
    return buf_put(&url->href, href);
}
