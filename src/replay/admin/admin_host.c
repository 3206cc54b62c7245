#include "replay/admin/admin_host.h"

#include "base/address.h"

enum { ANY_PORT = 1 };

static bool is_loopback_number(struct bytes name) {
    struct address address;
    bool is_bracketed = bytes_starts_with(name, BYTES("[")) && bytes_ends_with(name, BYTES("]"));
    bool has_colon = bytes_find_byte(name, ':') < name.size;
    return is_bracketed == has_colon && address_parse(name, ANY_PORT, &address) &&
           address_is_loopback(&address);
}

/* Without ":8080"; "[::1]" keeps its brackets. False where there is no port but a colon. */
static bool cut_port(struct bytes host, struct bytes *ret_name) {
    size_t end = host.size;
    while (end > 0 && byte_is_digit(host.data[end - 1])) {
        end--;
    }
    bool has_port = end > 0 && host.data[end - 1] == ':';
    uint64_t port;
    *ret_name = has_port ? bytes_slice(host, 0, end - 1) : host;
    return !has_port || bytes_to_u64(bytes_skip(host, end), UINT16_MAX, &port);
}

bool admin_host_is_own(struct bytes host, const struct config_list *others) {
    struct bytes name;
    if (host.size == 0) {
        return true;
    }
    for (size_t i = 0; i < others->count; i++) {
        if (bytes_equal(others->items[i], BYTES("*")) || bytes_equal_ignore_case(others->items[i], host)) {
            return true;
        }
    }
    if (!cut_port(host, &name)) {
        return false;
    }
    for (size_t i = 0; i < others->count; i++) {
        if (bytes_equal_ignore_case(others->items[i], name)) {
            return true;
        }
    }
    static const char suffix[] = ".localhost";
    size_t suffix_size = sizeof suffix - 1;
    bool is_below =
        name.size > suffix_size &&
        bytes_equal_ignore_case(bytes_skip(name, name.size - suffix_size), bytes_of(suffix, suffix_size));
    return bytes_equal_ignore_case(name, BYTES("localhost")) || is_below || is_loopback_number(name);
}
