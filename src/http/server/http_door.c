#include "http/server/http_door.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "run/thread.h"

enum { BACKLOG = 1024, PLACES_COUNT_MIN = 256, PAUSE_NS = 50000000 };

union socket_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

static socklen_t to_socket_address(const struct address *address, union socket_address *out) {
    memset(out, 0, sizeof *out);
    if (address_is_ipv4(address)) {
        out->ipv4.sin_family = AF_INET;
        out->ipv4.sin_port = htons(address->port);
        memcpy(&out->ipv4.sin_addr, address->ip + 12, 4);
        return sizeof out->ipv4;
    }
    out->ipv6.sin6_family = AF_INET6;
    out->ipv6.sin6_port = htons(address->port);
    memcpy(&out->ipv6.sin6_addr, address->ip, sizeof address->ip);
    return sizeof out->ipv6;
}

struct address http_door_client(const struct sockaddr *name) {
    struct address client = {0};
    if (name->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, name, sizeof ipv4);
        const uint8_t *ip = (const uint8_t *)&ipv4.sin_addr;
        client = address_ipv4(ip[0], ip[1], ip[2], ip[3], ntohs(ipv4.sin_port));
    } else if (name->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, name, sizeof ipv6);
        memcpy(client.ip, &ipv6.sin6_addr, sizeof client.ip);
        client.port = ntohs(ipv6.sin6_port);
    }
    return client;
}

/* ---- places ---- */

/* With the lock. */
static void free_place(struct http_door *door, int fd) {
    struct http_place *place = (size_t)fd < door->places_count ? &door->places[fd] : NULL;
    if (place != NULL && place->is_taken) {
        place->is_taken = false;
        door->loads[place->thread]--;
        door->taken_count--;
        pthread_cond_signal(&door->left);
    }
}

void http_door_leave(struct http_door *door, int fd) {
    pthread_mutex_lock(&door->lock);
    free_place(door, fd);
    pthread_mutex_unlock(&door->lock);
}

/* With the lock. */
static bool has_places_up_to(struct http_door *door, int fd) {
    size_t count = door->places_count == 0 ? PLACES_COUNT_MIN : door->places_count;
    while (count <= (size_t)fd) {
        count *= 2;
    }
    if (count == door->places_count) {
        return true;
    }
    struct http_place *places = reallocarray(door->places, count, sizeof *places);
    if (places == NULL) {
        return false;
    }
    memset(places + door->places_count, 0, (count - door->places_count) * sizeof *places);
    door->places = places;
    door->places_count = count;
    return true;
}

/* With the lock. */
static unsigned door_count_of(const struct http_door *door, const struct address *client) {
    unsigned count = 0;
    for (size_t i = 0; i < door->places_count; i++) {
        const struct http_place *place = &door->places[i];
        count += place->is_taken && address_equal(&place->client, client);
    }
    return count;
}

/* That has the fewest; of several, in turn. With the lock. */
static unsigned choose_thread(const struct http_door *door) {
    unsigned count = door->config.threads_count;
    unsigned best = (door->last_thread + 1) % count;
    for (unsigned i = 2; i <= count; i++) {
        unsigned thread = (door->last_thread + i) % count;
        best = door->loads[thread] < door->loads[best] ? thread : best;
    }
    return best;
}

static bool take_place(struct http_door *door, int fd, const struct address *client, unsigned *ret_thread) {
    pthread_mutex_lock(&door->lock);
    free_place(door, fd); /* it was lost */
    bool is_allowed =
        has_places_up_to(door, fd) && door_count_of(door, client) < door->config.connections_per_address_max;
    if (is_allowed) {
        *ret_thread = door->last_thread = choose_thread(door);
        door->places[fd] = (struct http_place){.is_taken = true, .thread = *ret_thread, .client = *client};
        door->loads[*ret_thread]++;
        door->taken_count++;
    }
    pthread_mutex_unlock(&door->lock);
    return is_allowed;
}

/* ---- the thread ---- */

/* Until there is room. False: it is stopping. */
static bool await_room(struct http_door *door) {
    pthread_mutex_lock(&door->lock);
    while (door->taken_count >= door->config.connections_max && !door->is_stopping) {
        pthread_cond_wait(&door->left, &door->lock);
    }
    bool goes_on = !door->is_stopping;
    pthread_mutex_unlock(&door->lock);
    return goes_on;
}

static void let_in(struct http_door *door, int fd, const union socket_address *name, socklen_t size) {
    struct address client = http_door_client(&name->any);
    unsigned thread;
    client.port = 0; /* all ports of an address count together */
    if (!take_place(door, fd, &client, &thread)) {
        close(fd);
    } else if (!door->config.give(door->config.context, thread, fd, &name->any, size)) {
        http_door_leave(door, fd);
    }
}

static void *door_run(void *context) {
    struct http_door *door = context;
    while (await_room(door)) {
        union socket_address name = {0};
        socklen_t size = sizeof name;
        int fd = accept4(door->fd, &name.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            let_in(door, fd, &name, size);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL); /* it stays in line */
        }
    }
    return NULL;
}

enum err http_door_open(struct http_door *door) {
    int number = thread_start(&door->thread, "http-door", door_run, door);
    door->has_thread = number == 0;
    return err_from_errno(number);
}

void http_door_close(struct http_door *door) {
    if (!door->has_thread) {
        return;
    }
    pthread_mutex_lock(&door->lock);
    door->is_stopping = true;
    pthread_cond_signal(&door->left);
    pthread_mutex_unlock(&door->lock);
    shutdown(door->fd, SHUT_RDWR); /* accept4() returns, and fails from now on */
    pthread_join(door->thread, NULL);
    door->has_thread = false;
}

/* ---- begin and end ---- */

/* Ours, not libmicrohttpd's: so that the user hears what is wrong with the address. */
static enum err listen_at(struct http_door *door, struct err_detail *detail) {
    union socket_address name;
    socklen_t size = to_socket_address(&door->address, &name);
    int on = 1;
    door->fd = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_open = door->fd >= 0 && setsockopt(door->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                   bind(door->fd, &name.any, size) == 0 && listen(door->fd, BACKLOG) == 0 &&
                   getsockname(door->fd, &name.any, &size) == 0;
    if (!is_open) {
        char text[ADDRESS_TEXT_SIZE_MAX];
        enum err err = err_from_errno(errno);
        return err_set(detail, err, "cannot listen at %s: %s", address_format(&door->address, text),
                       strerror(errno));
    }
    door->address.port = ntohs(name.any.sa_family == AF_INET ? name.ipv4.sin_port : name.ipv6.sin6_port);
    return ERR_OK;
}

enum err http_door_init(struct http_door *door, const struct http_door_config *config,
                        const struct address *address, struct err_detail *detail) {
    ASSERT(config->threads_count > 0 && config->threads_count <= HTTP_DOOR_THREADS_MAX);
    *door = (struct http_door){.config = *config, .address = *address, .fd = -1};
    pthread_mutex_init(&door->lock, NULL);
    pthread_cond_init(&door->left, NULL);
    enum err err = listen_at(door, detail);
    if (err != ERR_OK) {
        http_door_done(door);
    }
    return err;
}

void http_door_done(struct http_door *door) {
    http_door_close(door);
    if (door->fd >= 0) {
        close(door->fd);
    }
    free(door->places);
    pthread_cond_destroy(&door->left);
    pthread_mutex_destroy(&door->lock);
}
