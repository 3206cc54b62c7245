#include "net/port_map.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/gateway.h"
#include "net/reach.h"
#include "net/socket_address.h"

enum {
    LIFETIME_S = 3600, /* a node that was killed leaves its port open for that long */
    PORT_TRIES_MAX = 4,
    PORT_FIRST = 20000, /* of those that are tried if its own is another machine's */
    PORTS_COUNT = 40000,
    SLICE_MS = 100,
    SENDS_MAX = 3,
};
static const uint64_t SEND_US = 250000; /* then again, after twice the time: RFC 6886, 3.1 */

/* One attempt. */
struct port_map_try {
    struct port_map *map;
    uint64_t until_us;
    int fd;         /* of PCP and NAT-PMP, connected to the router */
    bool is_natpmp; /* it said so, or knows no PCP */
    struct address own;
    struct upnp upnp;
};

/* What is spoken with the router: ask for a port of one protocol. outer_port becomes the one that it gave. */
typedef enum err port_map_ask(struct port_map_try *try, struct pcp_wish *wish, struct port_map *ret_map,
                              struct err_detail *detail);

const char *port_map_way_name(enum port_map_way way) {
    static const char *const names[PORT_MAP_WAYS_COUNT] = {"nothing", "PCP", "NAT-PMP", "UPnP"};
    return names[way];
}

void port_map_init(struct port_map *map, const struct port_map_config *config) {
    *map = (struct port_map){.config = *config};
}

/* ---- datagrams: question and answer ---- */

static bool port_map_is_over(const struct port_map_try *try, uint64_t until_us) {
    const struct port_map_config *config = &try->map->config;
    uint64_t now_us = clock_monotonic_us(&clock_system);
    return now_us >= until_us || now_us >= try->until_us ||
           (config->is_ending != NULL && config->is_ending(config->context));
}

/* The socket hears the router only. False: nothing by then. */
static bool port_map_hear(const struct port_map_try *try, uint64_t until_us,
                          uint8_t memory[PCP_ANSWER_SIZE_MAX], struct bytes *ret_answer,
                          bool *ret_is_refused) {
    while (!port_map_is_over(try, until_us)) {
        struct pollfd wait = {.fd = try->fd, .events = POLLIN};
        if (poll(&wait, 1, SLICE_MS) <= 0) {
            continue;
        }
        ssize_t size = recv(try->fd, memory, PCP_ANSWER_SIZE_MAX, 0);
        if (size > 0) {
            *ret_answer = bytes_of(memory, (size_t)size);
            return true;
        }
        if (size < 0 && errno == ECONNREFUSED) {
            *ret_is_refused = true; /* there is a machine, and nobody at that port */
            return false;
        }
    }
    return false;
}

/* Does this answer the question? */
typedef bool port_map_read(struct port_map_try *try, struct bytes message, const struct pcp_wish *wish,
                           struct pcp_answer *ret_answer);

static bool port_map_read_pcp(struct port_map_try *try, struct bytes message, const struct pcp_wish *wish,
                              struct pcp_answer *ret_answer) {
    enum pcp_reading reading = pcp_read(message, wish, ret_answer);
    try->is_natpmp = try->is_natpmp || reading == PCP_IS_NATPMP;
    return reading != PCP_OTHER;
}

static bool port_map_read_natpmp(struct port_map_try *try, struct bytes message, const struct pcp_wish *wish,
                                 struct pcp_answer *ret_answer) {
    (void)try;
    return natpmp_read_port(message, wish, ret_answer);
}

static bool port_map_read_address(struct port_map_try *try, struct bytes message, const struct pcp_wish *wish,
                                  struct pcp_answer *ret_answer) {
    (void)try;
    (void)wish;
    return natpmp_read_address(message, ret_answer);
}

static bool port_map_converse(struct port_map_try *try, struct bytes question, port_map_read *read,
                              const struct pcp_wish *wish, struct pcp_answer *ret_answer) {
    uint64_t wait_us = SEND_US;
    bool is_refused = false;
    for (int sends = 0; sends < SENDS_MAX && !is_refused && !port_map_is_over(try, UINT64_MAX); sends++) {
        uint8_t memory[PCP_ANSWER_SIZE_MAX];
        struct bytes answer;
        uint64_t until_us = clock_monotonic_us(&clock_system) + wait_us;
        is_refused = send(try->fd, question.data, question.size, 0) < 0 && errno == ECONNREFUSED;
        while (!is_refused && port_map_hear(try, until_us, memory, &answer, &is_refused)) {
            if (read(try, answer, wish, ret_answer)) {
                return true;
            }
        }
        wait_us *= 2;
    }
    return false;
}

static enum err port_map_silence(const struct port_map_try *try, struct err_detail *detail) {
    bool is_cut = port_map_is_over(try, UINT64_MAX);
    return err_set(detail, is_cut ? ERR_TIMEOUT : ERR_NOT_FOUND, "no answer in time");
}

/* ---- PCP ---- */

static enum err port_map_ask_pcp(struct port_map_try *try, struct pcp_wish *wish, struct port_map *ret_map,
                                 struct err_detail *detail) {
    uint8_t memory[PCP_QUESTION_SIZE_MAX];
    struct pcp_answer answer;
    if (!port_map_converse(try, pcp_write(wish, memory), port_map_read_pcp, wish, &answer)) {
        return port_map_silence(try, detail);
    }
    if (try->is_natpmp) {
        return err_set(detail, ERR_NOT_FOUND, "it knows NAT-PMP only");
    }
    if (answer.result != 0) {
        return err_set(detail, ERR_REFUSED, "by PCP: %s", pcp_result_text(answer.result));
    }
    wish->outer_port = answer.outer.port;
    ret_map->outer = answer.outer;
    ret_map->lifetime_s = answer.lifetime_s;
    return ERR_OK;
}

/* ---- NAT-PMP ---- */

static enum err port_map_ask_natpmp(struct port_map_try *try, struct pcp_wish *wish, struct port_map *ret_map,
                                    struct err_detail *detail) {
    uint8_t memory[PCP_QUESTION_SIZE_MAX];
    struct pcp_answer address;
    struct pcp_answer answer;
    if (wish->lifetime_s == 0) {
        (void)port_map_converse(try, natpmp_write_port(wish, memory), port_map_read_natpmp, wish, &answer);
        return ERR_OK;
    }
    if (!port_map_converse(try, natpmp_write_address(memory), port_map_read_address, wish, &address)) {
        return port_map_silence(try, detail);
    }
    if (address.result == 0 &&
        !port_map_converse(try, natpmp_write_port(wish, memory), port_map_read_natpmp, wish, &answer)) {
        return port_map_silence(try, detail);
    }
    uint16_t result = address.result != 0 ? address.result : answer.result;
    if (result != 0) {
        return err_set(detail, ERR_REFUSED, "by NAT-PMP: %s", natpmp_result_text(result));
    }
    wish->outer_port = answer.outer.port;
    ret_map->outer = address.outer;
    ret_map->outer.port = answer.outer.port;
    ret_map->lifetime_s = answer.lifetime_s;
    return ERR_OK;
}

/* ---- UPnP ---- */

static struct upnp_talk port_map_talk(const struct port_map_try *try) {
    struct upnp_talk talk = {.gateway = try->map->gateway,
                             .own = try->own,
                             .until_us = try->until_us,
                             .is_ending = try->map->config.is_ending,
                             .context = try->map->config.context};
    talk.own.port = 0;
    return talk;
}

/* A router that gives no leases gives the port for good: it is taken back at the end. */
static enum err port_map_ask_service(const struct upnp_talk *talk, const struct upnp_service *service,
                                     struct pcp_wish *wish, struct port_map *ret_map,
                                     struct err_detail *detail) {
    unsigned code;
    if (wish->lifetime_s == 0) {
        return upnp_take_back(talk, service, wish, detail);
    }
    struct pcp_wish asked = *wish;
    enum err err = upnp_ask_port(talk, service, &asked, &code, detail);
    if (err == ERR_REFUSED && code == UPNP_PERMANENT_ONLY) {
        asked.lifetime_s = 0;
        err = upnp_ask_port(talk, service, &asked, &code, detail);
    }
    ret_map->lifetime_s = asked.lifetime_s;
    ret_map->outer.port = wish->outer_port;
    return err == ERR_REFUSED && code == UPNP_TAKEN ? ERR_EXISTS : err;
}

static enum err port_map_ask_upnp(struct port_map_try *try, struct pcp_wish *wish, struct port_map *ret_map,
                                  struct err_detail *detail) {
    struct upnp_talk talk = port_map_talk(try);
    enum err err = ERR_NOT_FOUND;
    for (size_t i = 0; err != ERR_OK && err != ERR_EXISTS && i < try->upnp.services_count; i++) {
        struct address outer = {0};
        const struct upnp_service *service = &try->upnp.services[i];
        err = wish->lifetime_s == 0 ? ERR_OK : upnp_ask_address(&talk, service, &outer, detail);
        memcpy(ret_map->outer.ip, outer.ip, sizeof outer.ip);
        err = err == ERR_OK ? port_map_ask_service(&talk, service, wish, ret_map, detail) : err;
        ret_map->service = *service;
    }
    return err;
}

/* ---- both protocols ---- */

static struct pcp_wish port_map_wish(const struct port_map_try *try, enum pcp_protocol protocol,
                                     uint16_t outer_port, uint32_t lifetime_s) {
    struct pcp_wish wish = {
        .protocol = protocol, .own = try->own, .outer_port = outer_port, .lifetime_s = lifetime_s};
    memcpy(wish.nonce, try->map->config.nonce, sizeof wish.nonce);
    return wish;
}

static void port_map_drop(struct port_map_try *try, port_map_ask *ask, enum pcp_protocol protocol,
                          uint16_t outer_port) {
    struct port_map unused;
    struct pcp_wish wish = port_map_wish(try, protocol, outer_port, 0);
    (void)ask(try, &wish, &unused, NULL); /* else it ends by itself */
}

/* Nobody outside could use what is mapped. */
static enum err port_map_check_outer(const struct port_map *made, struct err_detail *detail) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    const char *why = address_is_ipv4(&made->outer) ? reach_refusal(&made->outer) : "none of IPv4";
    if (why == NULL) {
        return ERR_OK;
    }
    address_format(&made->outer, text);
    *strrchr(text, ':') = '\0';
    return err_set(detail, ERR_INVALID, "its own outer address, %s, is %s: there is another router between",
                   text, why);
}

/* The same port for both. ERR_EXISTS: not this one. */
static enum err port_map_ask_both(struct port_map_try *try, port_map_ask *ask, uint16_t outer_port,
                                  struct port_map *made, struct err_detail *detail) {
    struct port_map second = *made;
    struct pcp_wish udp = port_map_wish(try, PCP_UDP, outer_port, LIFETIME_S);
    enum err err = ask(try, &udp, made, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct pcp_wish tcp = port_map_wish(try, PCP_TCP, udp.outer_port, LIFETIME_S);
    err = ask(try, &tcp, &second, detail);
    if (err == ERR_OK && udp.outer_port != tcp.outer_port) {
        port_map_drop(try, ask, PCP_TCP, tcp.outer_port);
        err = err_set(detail, ERR_EXISTS, "it gives two different ports for UDP and TCP");
    } else if (err == ERR_OK && (err = port_map_check_outer(made, detail)) != ERR_OK) {
        port_map_drop(try, ask, PCP_TCP, tcp.outer_port);
    }
    if (err != ERR_OK) {
        port_map_drop(try, ask, PCP_UDP, udp.outer_port);
        return err;
    }
    made->lifetime_s = second.lifetime_s < made->lifetime_s ? second.lifetime_s : made->lifetime_s;
    return ERR_OK;
}

static enum err port_map_try_way(struct port_map_try *try, enum port_map_way way, port_map_ask *ask,
                                 struct err_detail *detail) {
    struct port_map *map = try->map;
    struct port_map made = *map;
    uint16_t port = map->way != PORT_MAP_NO_WAY ? map->outer.port : try->own.port;
    enum err err = ERR_EXISTS;
    for (int tries = 0; err == ERR_EXISTS && tries < PORT_TRIES_MAX; tries++) {
        err = port_map_ask_both(try, ask, port, &made, detail);
        port = (uint16_t)(PORT_FIRST + randombytes_uniform(PORTS_COUNT));
    }
    if (err == ERR_OK) {
        made.way = way;
        made.own = try->own;
        *map = made;
    }
    return err;
}

/* ---- one attempt ---- */

static bool port_map_is_wildcard(const struct address *address) {
    static const uint8_t none[16];
    struct address any = address_ipv4(0, 0, 0, 0, 0);
    return memcmp(address->ip, none, sizeof none) == 0 || memcmp(address->ip, any.ip, sizeof any.ip) == 0;
}

static enum err port_map_open(struct port_map_try *try, struct err_detail *detail) {
    struct port_map *map = try->map;
    const struct address *address = &map->config.address;
    struct sockaddr_storage name;
    if (address_is_loopback(address) || (!address_is_ipv4(address) && !port_map_is_wildcard(address))) {
        return err_set(detail, ERR_UNSUPPORTED, "this node listens at %s",
                       address_is_loopback(address) ? "a loopback address, which no router passes anything to"
                                                    : "an IPv6 address, which routers do not translate");
    }
    map->has_gateway = gateway_find(&map->gateway);
    if (!map->has_gateway) {
        return err_set(detail, ERR_NOT_FOUND,
                       "this machine has no default route by IPv4, so no router to ask");
    }
    struct address to = map->gateway;
    to.port = PCP_PORT;
    try->own = *address;
    if (port_map_is_wildcard(address) && !gateway_own_address(&to, &try->own)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no way to the router");
    }
    struct address from = try->own;
    from.port = 0;
    try->own.port = address->port;
    try->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_open = try->fd >= 0 &&
                   bind(try->fd, socket_address_put(&from, &name), sizeof(struct sockaddr_in)) == 0 &&
                   connect(try->fd, socket_address_put(&to, &name), sizeof(struct sockaddr_in)) == 0;
    return is_open ? ERR_OK : err_set(detail, err_from_errno(errno), "no socket: %s", strerror(errno));
}

static enum err port_map_begin(struct port_map *map, uint64_t time_us, struct port_map_try *ret_try,
                               struct err_detail *detail) {
    *ret_try =
        (struct port_map_try){.map = map, .fd = -1, .until_us = clock_monotonic_us(&clock_system) + time_us};
    return port_map_open(ret_try, detail);
}

static void port_map_end(struct port_map_try *try) {
    if (try->fd >= 0) {
        close(try->fd);
    }
}

/* The first one that is more than silence. */
static void port_map_keep_reason(struct err_detail *why, const struct err_detail *said) {
    if (why->err == ERR_OK && said->err != ERR_NOT_FOUND) {
        *why = *said;
    }
}

/* The one that has worked, or all. What it refuses by one way it may grant by another. */
static enum err port_map_try_all(struct port_map_try *try, struct err_detail *detail) {
    enum port_map_way way = try->map->way;
    struct err_detail said = {0};
    struct err_detail why = {0};
    enum err err = ERR_NOT_FOUND;
    if (way == PORT_MAP_NO_WAY || way == PORT_MAP_PCP) {
        err = port_map_try_way(try, PORT_MAP_PCP, port_map_ask_pcp, &said);
        port_map_keep_reason(&why, &said);
    }
    if (err != ERR_OK && way <= PORT_MAP_NATPMP) {
        err = port_map_try_way(try, PORT_MAP_NATPMP, port_map_ask_natpmp, &said);
        port_map_keep_reason(&why, &said);
    }
    if (err != ERR_OK) {
        struct upnp_talk talk = port_map_talk(try);
        err = upnp_find(&talk, &try->upnp, &said);
        err = err == ERR_OK ? port_map_try_way(try, PORT_MAP_UPNP, port_map_ask_upnp, &said) : err;
        port_map_keep_reason(&why, &said);
    }
    if (err == ERR_OK) {
        return ERR_OK;
    }
    char router[ADDRESS_TEXT_SIZE_MAX];
    address_format(&try->map->gateway, router);
    *strrchr(router, ':') = '\0';
    return why.err == ERR_OK ? err_set(detail, ERR_NOT_FOUND,
                                       "the router %s answers neither PCP nor NAT-PMP nor UPnP", router)
                             : err_set(detail, why.err, "the router %s: %.180s", router, why.text);
}

enum err port_map_make(struct port_map *map, uint64_t time_us, struct err_detail *detail) {
    struct port_map_try try;
    enum err err = port_map_begin(map, time_us, &try, detail);
    err = err == ERR_OK ? port_map_try_all(&try, detail) : err;
    port_map_end(&try);
    return err;
}

void port_map_remove(struct port_map *map, uint64_t time_us) {
    struct port_map_try try;
    port_map_ask *const asks[PORT_MAP_WAYS_COUNT] = {NULL, port_map_ask_pcp, port_map_ask_natpmp,
                                                     port_map_ask_upnp};
    if (map->way == PORT_MAP_NO_WAY) {
        return;
    }
    map->config.is_ending = NULL; /* that is why */
    if (port_map_begin(map, time_us, &try, NULL) == ERR_OK) {
        try.own = map->own;
        try.upnp = (struct upnp){.services = {map->service}, .services_count = 1};
        port_map_drop(&try, asks[map->way], PCP_UDP, map->outer.port);
        port_map_drop(&try, asks[map->way], PCP_TCP, map->outer.port);
    }
    port_map_end(&try);
    map->way = PORT_MAP_NO_WAY;
}
