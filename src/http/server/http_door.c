#include "http/server/http_door.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

enum {
    BACKLOG = 1024,
    PLACES_COUNT_MIN = 256,
    RETRY_US = 50000,
    ACCEPTS_MAX = 64, /* in one turn of the loop */
    IPV6_PREFIX_SIZE = 8,
};

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

/* Zeros for what is neither IPv4 nor IPv6. */
static struct address from_socket_address(const union socket_address *name) {
    struct address client = {0};
    if (name->any.sa_family == AF_INET) {
        const uint8_t *ip = (const uint8_t *)&name->ipv4.sin_addr;
        client = address_ipv4(ip[0], ip[1], ip[2], ip[3], ntohs(name->ipv4.sin_port));
    } else if (name->any.sa_family == AF_INET6) {
        memcpy(client.ip, &name->ipv6.sin6_addr, sizeof client.ip);
        client.port = ntohs(name->ipv6.sin6_port);
    }
    return client;
}

/* Those that count as one: all ports of an address, all addresses of an IPv6 customer. */
static struct address door_customer(const struct address *client) {
    struct address customer = *client;
    customer.port = 0;
    if (!address_is_ipv4(client)) {
        memset(customer.ip + IPV6_PREFIX_SIZE, 0, sizeof customer.ip - IPV6_PREFIX_SIZE);
    }
    return customer;
}

/* ---- places ---- */

/* With the lock. */
static void uncount_place(struct http_door *door, struct http_place *place) {
    door->loads[place->thread]--;
    door->taken_count--;
    if (door->is_full) {
        door->is_full = false;
        (void)loop_post(&door->loop, &door->room);
    }
}

/* With the lock. */
static void free_place(struct http_door *door, int fd) {
    struct http_place *place = (size_t)fd < door->places_count ? &door->places[fd] : NULL;
    if (place != NULL && place->is_taken) {
        place->is_taken = false;
        if (!place->is_leaving) {
            uncount_place(door, place);
        }
    }
}

void http_door_leave(struct http_door *door, int fd) {
    pthread_mutex_lock(&door->lock);
    free_place(door, fd);
    pthread_mutex_unlock(&door->lock);
}

bool http_door_wait(struct http_door *door, int fd, enum http_wait wait) {
    pthread_mutex_lock(&door->lock);
    struct http_place *place = &door->places[fd];
    place->wait = wait;
    place->since = door->changes_count++;
    bool may_stay = !place->is_leaving;
    pthread_mutex_unlock(&door->lock);
    return may_stay;
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

static bool door_counts(const struct http_place *place, const struct address *customer) {
    return place->is_taken && !place->is_leaving &&
           (customer == NULL || address_equal(&place->client, customer));
}

/* With the lock. */
static unsigned door_count_of(const struct http_door *door, const struct address *customer) {
    unsigned count = 0;
    for (size_t i = 0; i < door->places_count; i++) {
        count += door_counts(&door->places[i], customer);
    }
    return count;
}

/* Of this customer, or NULL: of anybody. False: all of them are being worked on. With the lock. */
static bool door_evict(struct http_door *door, const struct address *customer) {
    struct http_place *oldest = NULL;
    for (size_t i = 0; i < door->places_count; i++) {
        struct http_place *place = &door->places[i];
        if (door_counts(place, customer) && place->wait != HTTP_WAIT_WORK &&
            (oldest == NULL || place->wait < oldest->wait ||
             (place->wait == oldest->wait && place->since < oldest->since))) {
            oldest = place;
        }
    }
    if (oldest == NULL) {
        return false;
    }
    oldest->is_leaving = true;
    door->evicted_count++;
    uncount_place(door, oldest);
    shutdown((int)(oldest - door->places), SHUT_RDWR); /* its thread sees that, and closes it */
    return true;
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
    struct address customer = door_customer(client);
    pthread_mutex_lock(&door->lock);
    bool is_allowed = has_places_up_to(door, fd);
    if (is_allowed && door_count_of(door, &customer) >= door->config.connections_per_address_max) {
        is_allowed = door_evict(door, &customer);
    }
    if (is_allowed) {
        *ret_thread = door->last_thread = choose_thread(door);
        door->places[fd] = (struct http_place){
            .is_taken = true, .since = door->changes_count++, .thread = *ret_thread, .client = customer};
        door->loads[*ret_thread]++;
        door->taken_count++;
    }
    pthread_mutex_unlock(&door->lock);
    return is_allowed;
}

uint64_t http_door_evicted_count(struct http_door *door) {
    pthread_mutex_lock(&door->lock);
    uint64_t count = door->evicted_count;
    pthread_mutex_unlock(&door->lock);
    return count;
}

/* ---- the loop ---- */

static bool has_room(struct http_door *door) {
    pthread_mutex_lock(&door->lock);
    bool is_free = door->taken_count < door->config.connections_max;
    pthread_mutex_unlock(&door->lock);
    return is_free;
}

/* False: all who are inside are being worked on; door_on_room() follows. */
static bool make_room(struct http_door *door) {
    pthread_mutex_lock(&door->lock);
    bool is_free = door->taken_count < door->config.connections_max || door_evict(door, NULL);
    door->is_full = !is_free;
    pthread_mutex_unlock(&door->lock);
    return is_free;
}

static void let_in(struct http_door *door, int fd, const union socket_address *name) {
    struct address client = from_socket_address(name);
    unsigned thread;
    if (!take_place(door, fd, &client, &thread)) {
        close(fd);
    } else if (!door->config.give(door->config.context, thread, fd, &client)) {
        http_door_leave(door, fd);
        close(fd);
    }
}

static void door_on_connection(uv_poll_t *poll, int status, int events);

static void door_look(struct http_door *door, bool is_open) {
    if (is_open != door->is_open && !uv_is_closing((uv_handle_t *)&door->poll)) {
        door->is_open = is_open;
        int result =
            is_open ? uv_poll_start(&door->poll, UV_READABLE, door_on_connection) : uv_poll_stop(&door->poll);
        ASSERT(result == 0);
    }
}

static void door_on_connection(uv_poll_t *poll, int status, int events) {
    struct http_door *door = poll->data;
    (void)status; /* accept4() says it better */
    (void)events;
    if (!make_room(door)) { /* for the one who certainly is there */
        door_look(door, false);
        return;
    }
    for (int i = 0; i < ACCEPTS_MAX && has_room(door); i++) {
        union socket_address name = {0};
        socklen_t size = sizeof name;
        int fd = accept4(door->fd, &name.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            let_in(door, fd, &name);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            door_look(door, false); /* it stays in line */
            loop_timer_set(&door->retry, RETRY_US, 0);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static void door_on_room(void *context) {
    door_look(context, true);
}

static void door_end(void *context) {
    struct http_door *door = context;
    uv_close((uv_handle_t *)&door->poll, NULL);
}

enum err http_door_open(struct http_door *door) {
    enum err err = loop_init(&door->loop, 0);
    if (err != ERR_OK) {
        return err;
    }
    int result = uv_poll_init(&door->loop.uv, &door->poll, door->fd);
    ASSERT(result == 0); /* it is a socket */
    door->poll.data = door;
    door->room = (struct loop_post){.run = door_on_room, .context = door};
    loop_timer_init(&door->loop, &door->retry, door_on_room, door);
    door_look(door, true);
    door->has_loop = true;
    err = loop_start(&door->loop, "http-door", PRIORITY_USUAL);
    if (err != ERR_OK) {
        http_door_close(door);
    }
    return err;
}

void http_door_close(struct http_door *door) {
    if (door->has_loop) {
        door->has_loop = false;
        loop_stop(&door->loop, door_end, door);
        shutdown(door->fd, SHUT_RDWR); /* whoever waits outside hears it now */
    }
}

/* ---- begin and end ---- */

static enum err listen_at(struct http_door *door, struct err_detail *detail) {
    union socket_address name;
    socklen_t size = to_socket_address(&door->address, &name);
    int on = 1;
    door->fd = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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
    pthread_mutex_destroy(&door->lock);
}
