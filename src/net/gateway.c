#include "net/gateway.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hex.h"
#include "net/socket_address.h"

enum {
    TABLE_SIZE_MAX = 64 << 10,
    LINE_SIZE_MAX = 256,
    FLAG_UP = 1,
    FLAG_GATEWAY = 2,
};

/* "eth0 00000000 0100070A 0003 0 0 100 00000000 …": addresses as the machine has them in memory. */
static bool gateway_parse_line(struct bytes line, unsigned *ret_metric, struct address *ret_gateway) {
    char text[LINE_SIZE_MAX];
    unsigned to;
    unsigned gateway;
    unsigned flags;
    unsigned metric;
    unsigned mask;
    snprintf(text, sizeof text, "%.*s", BYTES_ARG(line));
    if (sscanf(text, "%*15s %8x %8x %4x %*s %*s %9u %8x", &to, &gateway, &flags, &metric, &mask) != 5) {
        return false;
    }
    uint8_t ip[4];
    uint32_t in_memory = gateway;
    memcpy(ip, &in_memory, sizeof ip);
    *ret_metric = metric;
    *ret_gateway = address_ipv4(ip[0], ip[1], ip[2], ip[3], 0);
    return to == 0 && mask == 0 && gateway != 0 &&
           (flags & (FLAG_UP | FLAG_GATEWAY)) == (FLAG_UP | FLAG_GATEWAY);
}

bool gateway_parse(struct bytes table, struct address *ret_gateway) {
    bool is_found = false;
    unsigned lowest = 0;
    while (table.size > 0) {
        size_t end = bytes_find_byte(table, '\n');
        unsigned metric;
        struct address gateway;
        if (gateway_parse_line(bytes_slice(table, 0, end), &metric, &gateway) &&
            (!is_found || metric < lowest)) {
            is_found = true;
            lowest = metric;
            *ret_gateway = gateway;
        }
        table = bytes_skip(table, end < table.size ? end + 1 : end);
    }
    return is_found;
}

bool gateway_find(struct address *ret_gateway) {
    char table[TABLE_SIZE_MAX];
    size_t size = 0;
    int file = open("/proc/self/net/route", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t got = 1;
    while (got > 0 && size < sizeof table) {
        got = read(file, table + size, sizeof table - size);
        size += got > 0 ? (size_t)got : 0;
    }
    close(file);
    return gateway_parse(bytes_of(table, size), ret_gateway);
}

bool gateway_own_address(const struct address *to, struct address *ret_own) {
    struct sockaddr_storage name;
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    bool is_ipv4 = address_is_ipv4(to);
    int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    const struct sockaddr *target = socket_address_put(to, &name);
    socklen_t target_size = is_ipv4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    bool is_found = connect(fd, target, target_size) == 0 &&
                    getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
                    socket_address_get((const struct sockaddr *)&own, ret_own);
    close(fd);
    ret_own->port = is_found ? 0 : ret_own->port;
    return is_found;
}
