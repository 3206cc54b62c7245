#include "net/held_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "net/socket_address.h"

/* Without SO_REUSEADDR: with it, others that also set it could bind the port until somebody listens. */
static bool bind_any(int fd, struct address *address) {
    struct sockaddr_storage name;
    struct address any = *address;
    any.port = 0;
    const struct sockaddr *wanted = socket_address_put(&any, &name);
    socklen_t size = wanted->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (bind(fd, wanted, size) != 0) {
        return false;
    }
    size = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &size) == 0 &&
           socket_address_get((struct sockaddr *)&name, address);
}

enum err held_port_take(struct address *address, int *ret_socket, struct err_detail *detail) {
    int family = address_is_ipv4(address) ? AF_INET : AF_INET6;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !bind_any(fd, address)) {
        char text[ADDRESS_TEXT_SIZE_MAX];
        int reason = errno;
        held_port_done(&fd);
        return err_set(detail, err_from_errno(reason), "no port to listen at, %s: %s",
                       address_format(address, text), strerror(reason));
    }
    *ret_socket = fd;
    return ERR_OK;
}

void held_port_done(int *socket) {
    if (*socket >= 0) {
        close(*socket);
    }
    *socket = HELD_PORT_NONE;
}
