/* http-client - bytes to a server of this machine and back, for tests that want to send what no client sends.
 */
#ifndef MNEMON_TESTS_HTTP_CLIENT_H
#define MNEMON_TESTS_HTTP_CLIENT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HTTP_ANSWER_SIZE = 1 << 16, HTTP_WAIT_MS = 60000 };

static inline int http_connect(uint16_t port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) != 0) {
        abort();
    }
    return fd;
}

/* Part of it may be lost where the server has closed. */
static inline void http_send(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        data += sent;
        size -= (size_t)sent;
    }
}

/* Until the server closes, or `wanted` bytes are there. Returns the count; out ends with a zero byte. */
static inline size_t http_receive(int fd, char out[HTTP_ANSWER_SIZE], size_t wanted) {
    size_t size = 0;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (size < wanted && size < HTTP_ANSWER_SIZE - 1 && poll(&wait, 1, HTTP_WAIT_MS) == 1) {
        ssize_t got = recv(fd, out + size, HTTP_ANSWER_SIZE - 1 - size, 0);
        if (got <= 0) {
            break;
        }
        size += (size_t)got;
    }
    out[size] = '\0';
    return size;
}

/* One request on a connection of its own; it should say "Connection: close". */
static inline char *http_ask(uint16_t port, const char *request, char out[HTTP_ANSWER_SIZE]) {
    int fd = http_connect(port);
    http_send(fd, request, strlen(request));
    http_receive(fd, out, SIZE_MAX);
    close(fd);
    return out;
}

#endif
