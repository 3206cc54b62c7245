/*
 * endless ADDRESS HOSTS PORT PAGES - a web server whose pages are made when they are asked for.
 *
 * Host i is ADDRESS (such as 127.0.1.) followed by i + 1. /p/0.html links to the first 5,000 pages, /p/N.html
 * to N + 5,000 and to 35 that come before it: so a crawl finds one new page with each, from its beginning to
 * its end, and what it costs to remember them is spread evenly. Four times a second a line "seconds requests"
 * on standard output. One thread, epoll, keep-alive, GET only: as little as a crawler needs to be kept busy.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/prng.h"

enum {
    CHAINS_COUNT = 5000,
    OTHERS_COUNT = 35,
    INPUT_SIZE = 4096,
    EVENTS_COUNT = 64,
    SEED = 11,
    TELL_US = 250000
};

struct endless {
    const char *address;
    uint64_t hosts_count;
    uint16_t port;
    uint64_t pages_count;
    uint64_t requests_count;
    int epoll;
    struct buf page;
    struct buf out;
};

/* A listener has no input. */
struct client {
    int fd;
    bool is_listener;
    size_t size;
    char input[INPUT_SIZE];
};

static void fail(const char *what) {
    fprintf(stderr, "endless: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void add(struct endless *endless, int fd, bool is_listener) {
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        fail("memory");
    }
    client->fd = fd;
    client->is_listener = is_listener;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(endless->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("epoll");
    }
}

static void raise_descriptors_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit); /* where it is refused, it stays as it is */
    }
}

static void listen_on(struct endless *endless, uint64_t host) {
    char text[64];
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(endless->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(text, sizeof text, "%s%ju", endless->address, (uintmax_t)host + 1);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 512) != 0) {
        fail(text);
    }
    add(endless, fd, true);
}

static void put_link(struct endless *endless, uint64_t page) {
    buf_put_format(&endless->page, "<li><a href=\"http://%s%ju:%u/p/%ju.html\">%ju</a>\n", endless->address,
                   (uintmax_t)(page % endless->hosts_count + 1), endless->port, (uintmax_t)page,
                   (uintmax_t)page);
}

static void make_page(struct endless *endless, uint64_t number) {
    struct prng prng;
    prng_init_stream(&prng, SEED, number);
    buf_clear(&endless->page);
    buf_put_format(&endless->page, "<!DOCTYPE html><title>%ju</title><ul>\n", (uintmax_t)number);
    for (uint64_t i = 1; number == 0 && i < CHAINS_COUNT && i < endless->pages_count; i++) {
        put_link(endless, i);
    }
    if (number + CHAINS_COUNT < endless->pages_count) {
        put_link(endless, number + CHAINS_COUNT);
    }
    for (uint64_t i = 0; i < OTHERS_COUNT && number > 0; i++) {
        put_link(endless, prng_below(&prng, number));
    }
    buf_put_string(&endless->page, "</ul>\n");
}

static void answer(struct endless *endless, const char *request) {
    unsigned long long number = 0;
    bool is_page = sscanf(request, "GET /p/%llu.html ", &number) == 1 && number < endless->pages_count;
    endless->requests_count++;
    if (is_page) {
        make_page(endless, number);
    } else {
        buf_clear(&endless->page);
    }
    buf_put_format(&endless->out, "HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %zu\r\n\r\n",
                   is_page ? "200 OK" : "404 Not Found", endless->page.size);
    buf_put(&endless->out, buf_bytes(&endless->page));
}

static void drop(struct client *client) {
    close(client->fd);
    free(client);
}

static void serve(struct endless *endless, struct client *client) {
    ssize_t got = read(client->fd, client->input + client->size, sizeof client->input - 1 - client->size);
    if (got <= 0) {
        drop(client);
        return;
    }
    client->size += (size_t)got;
    client->input[client->size] = '\0';
    buf_clear(&endless->out);
    char *end;
    while ((end = strstr(client->input, "\r\n\r\n")) != NULL) {
        answer(endless, client->input);
        client->size -= (size_t)(end + 4 - client->input);
        memmove(client->input, end + 4, client->size + 1);
    }
    /* A page is far smaller than a socket's buffer, and a client waits for it before it asks again. */
    if (send(client->fd, endless->out.data, endless->out.size, MSG_NOSIGNAL) != (ssize_t)endless->out.size ||
        client->size == sizeof client->input - 1) {
        drop(client);
    }
}

static void run(struct endless *endless) {
    struct epoll_event events[EVENTS_COUNT];
    uint64_t started_us = clock_monotonic_us(&clock_system);
    uint64_t told_us = started_us;
    for (;;) {
        int count = epoll_wait(endless->epoll, events, EVENTS_COUNT, 50);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            if (!client->is_listener) {
                serve(endless, client);
                continue;
            }
            int fd = accept4(client->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd >= 0) {
                add(endless, fd, false);
            }
        }
        uint64_t now_us = clock_monotonic_us(&clock_system);
        if (now_us - told_us >= TELL_US) {
            told_us = now_us;
            printf("%.2f %ju\n", (double)(now_us - started_us) / 1e6, (uintmax_t)endless->requests_count);
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: endless ADDRESS HOSTS PORT PAGES\n");
        return 2;
    }
    struct endless endless = {
        .address = argv[1],
        .hosts_count = strtoull(argv[2], NULL, 10),
        .port = (uint16_t)strtoul(argv[3], NULL, 10),
        .pages_count = strtoull(argv[4], NULL, 10),
        .epoll = epoll_create1(EPOLL_CLOEXEC),
    };
    raise_descriptors_limit();
    buf_init(&endless.page, 1 << 20);
    buf_init(&endless.out, 4 << 20);
    for (uint64_t host = 0; host < endless.hosts_count; host++) {
        listen_on(&endless, host);
    }
    run(&endless);
}
