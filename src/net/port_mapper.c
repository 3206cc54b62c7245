#include "net/port_mapper.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/utc.h"
#include "net/identity.h"
#include "net/socket_address.h"
#include "run/task.h"

enum { US_PER_MS = 1000, US_PER_S = 1000000, NEWS_SIZE_MAX = 64 };
static const uint64_t AGAIN_US = 60 * 1000000;    /* between two attempts */
static const uint64_t AGAIN_US_MIN = 3 * 1000000; /* whatever the router says */
static const uint64_t ATTEMPT_US = 15 * 1000000;
static const uint64_t REMOVAL_US = 1500000; /* nobody waits longer for a node that stops */

struct port_mapper {
    struct port_mapper_config config;
    struct port_map map; /* of the thread that tries */
    struct task task;
    int news; /* hears a router that has begun anew; -1: another program has the port */
    int end;
    uint64_t tried_us; /* monotonic; the task's */

    pthread_mutex_t lock; /* what others see, as of the last attempt */
    bool is_sure;         /* it succeeded */
    bool was_mapped;      /* it, or one before */
    struct port_map shown;
    int64_t until_us; /* wall clock; 0: until it is taken back */
    int64_t since_us; /* wall clock: of the first attempt in a row that failed, or of the last that did not */
    char why[ERR_TEXT_SIZE_MAX];
};

/* ---- what it says ---- */

static void mapper_format_time(int64_t time_us, char out[UTC_RFC3339_SIZE]) {
    utc_format_rfc3339(time_us - time_us % US_PER_S, out);
}

/* The lock is held. */
static void mapper_format(const struct port_mapper *mapper, char out[PORT_MAPPER_TEXT_SIZE_MAX]) {
    const struct port_map *map = &mapper->shown;
    const char *way = port_map_way_name(map->way);
    char outer[ADDRESS_TEXT_SIZE_MAX];
    char own[ADDRESS_TEXT_SIZE_MAX];
    char until[UTC_RFC3339_SIZE];
    char since[UTC_RFC3339_SIZE];
    if (!mapper->was_mapped) {
        snprintf(
            out, PORT_MAPPER_TEXT_SIZE_MAX,
            "no port is mapped: %s; a port that is forwarded by hand, UDP and TCP, is named with --public",
            mapper->why);
        return;
    }
    bool is_endless = mapper->until_us == 0;
    bool is_over = !is_endless && clock_wall_us(mapper->config.clock) >= mapper->until_us;
    address_format(&map->outer, outer);
    address_format(&map->own, own);
    mapper_format_time(mapper->until_us, until);
    mapper_format_time(mapper->since_us, since);
    const char *until_text = is_endless ? "this node takes it back" : until;
    if (mapper->is_sure && !is_over) {
        snprintf(out, PORT_MAPPER_TEXT_SIZE_MAX,
                 "%s leads to %s, UDP and TCP: mapped by %s until %s, renewed before", outer, own, way,
                 until_text);
    } else {
        snprintf(out, PORT_MAPPER_TEXT_SIZE_MAX,
                 "%s was mapped to %s by %s until %s; not renewed since %s: %s", outer, own, way, until_text,
                 since, mapper->why[0] != '\0' ? mapper->why : "this machine slept");
    }
}

const char *port_mapper_text(struct port_mapper *mapper, char out[PORT_MAPPER_TEXT_SIZE_MAX]) {
    pthread_mutex_lock(&mapper->lock);
    mapper_format(mapper, out);
    pthread_mutex_unlock(&mapper->lock);
    return out;
}

bool port_mapper_address(struct port_mapper *mapper, struct address *ret_address) {
    pthread_mutex_lock(&mapper->lock);
    bool was_mapped = mapper->was_mapped;
    if (was_mapped) {
        *ret_address = mapper->shown.outer;
    }
    pthread_mutex_unlock(&mapper->lock);
    return was_mapped;
}

void port_mapper_put(struct port_mapper *mapper, struct json *json) {
    char text[PORT_MAPPER_TEXT_SIZE_MAX];
    char address[ADDRESS_TEXT_SIZE_MAX];
    pthread_mutex_lock(&mapper->lock);
    const struct port_map *map = &mapper->shown;
    mapper_format(mapper, text);
    json_open(json, "port_map");
    json_text(json, "text", text);
    json_bool(json, "mapped", mapper->is_sure);
    if (map->has_gateway) {
        address_format(&map->gateway, address);
        *strrchr(address, ':') = '\0';
    }
    json_text(json, "router", map->has_gateway ? address : NULL);
    if (mapper->was_mapped) {
        json_text(json, "by", port_map_way_name(map->way));
        json_text(json, "public", address_format(&map->outer, address));
        json_text(json, "own", address_format(&map->own, address));
        if (mapper->until_us > 0) {
            json_time(json, "until", mapper->until_us);
        } else {
            json_none(json, "until");
        }
    }
    json_text(json, "why", mapper->is_sure ? NULL : mapper->why);
    json_close(json);
    pthread_mutex_unlock(&mapper->lock);
}

/* ---- attempts ---- */

/* Is it worth a line in the log? The lock is held. */
static bool mapper_is_news(const struct port_mapper *mapper, enum err err, const char *why) {
    bool is_sure = err == ERR_OK;
    bool has_moved = is_sure && !address_equal(&mapper->shown.outer, &mapper->map.outer);
    return is_sure != mapper->is_sure || has_moved || (!is_sure && strcmp(mapper->why, why) != 0);
}

static void mapper_attempt(struct port_mapper *mapper, uint64_t time_us) {
    struct err_detail detail = {0};
    char text[PORT_MAPPER_TEXT_SIZE_MAX];
    char sentence[PORT_MAPPER_TEXT_SIZE_MAX + 16];
    enum err err = port_map_make(&mapper->map, time_us, &detail);
    const char *why = err == ERR_OK ? "" : err_detail_text(&detail, err);
    int64_t now_us = clock_wall_us(mapper->config.clock);
    mapper->tried_us = clock_monotonic_us(&clock_system);
    if (err != ERR_OK && task_is_stopping(&mapper->task)) {
        return; /* that is why */
    }
    pthread_mutex_lock(&mapper->lock);
    bool is_news = mapper_is_news(mapper, err, why);
    mapper->since_us = err == ERR_OK || mapper->is_sure ? now_us : mapper->since_us;
    mapper->is_sure = err == ERR_OK;
    mapper->was_mapped = mapper->was_mapped || err == ERR_OK;
    mapper->shown = mapper->map;
    if (err == ERR_OK) {
        mapper->until_us =
            mapper->map.lifetime_s > 0 ? now_us + (int64_t)mapper->map.lifetime_s * US_PER_S : 0;
    }
    snprintf(mapper->why, sizeof mapper->why, "%s", why);
    mapper_format(mapper, text);
    pthread_mutex_unlock(&mapper->lock);
    if (is_news) {
        snprintf(sentence, sizeof sentence, "port: %s", text);
        mapper->config.note(mapper->config.context, sentence);
    }
}

/* ---- the thread ---- */

/* A word of the router itself. What it says does not matter: it is asked. */
static bool mapper_hears_router(const struct port_mapper *mapper) {
    uint8_t memory[NEWS_SIZE_MAX];
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    struct address from;
    struct address gateway = mapper->map.gateway;
    return recvfrom(mapper->news, memory, sizeof memory, MSG_DONTWAIT, (struct sockaddr *)&name, &size) >=
               0 &&
           socket_address_get((const struct sockaddr *)&name, &from) &&
           memcmp(from.ip, gateway.ip, sizeof from.ip) == 0;
}

static uint64_t mapper_pause_us(const struct port_mapper *mapper) {
    uint64_t half_us = (uint64_t)mapper->map.lifetime_s * US_PER_S / 2;
    bool is_short = mapper->map.way != PORT_MAP_NO_WAY && half_us > 0 && half_us < AGAIN_US;
    return !is_short ? AGAIN_US : half_us > AGAIN_US_MIN ? half_us : AGAIN_US_MIN;
}

/* Whoever sends to that port wakes this thread, at most once a second. */
static uint64_t mapper_run(void *context) {
    struct port_mapper *mapper = context;
    uint64_t now_us = clock_monotonic_us(&clock_system);
    uint64_t due_us = mapper->tried_us + mapper_pause_us(mapper);
    bool is_early = now_us < mapper->tried_us + AGAIN_US_MIN;
    struct pollfd waits[2] = {{.fd = mapper->end, .events = POLLIN}, {.fd = mapper->news, .events = POLLIN}};
    if (now_us >= due_us) {
        mapper_attempt(mapper, ATTEMPT_US);
        return 0;
    }
    uint64_t wait_us = (is_early ? mapper->tried_us + AGAIN_US_MIN : due_us) - now_us;
    (void)poll(waits, is_early ? 1 : 2, (int)(wait_us / US_PER_MS) + 1);
    if (waits[0].revents == 0 && !is_early && (waits[1].revents & POLLIN) != 0) {
        bool is_told = mapper_hears_router(mapper);
        if (is_told) {
            mapper_attempt(mapper, ATTEMPT_US);
        }
        return is_told ? 0 : US_PER_S;
    }
    return 0;
}

static bool mapper_is_ending(void *context) {
    struct port_mapper *mapper = context;
    return task_is_stopping(&mapper->task);
}

/* 224.0.0.1 is everybody on this network, who need not join. */
static int mapper_listen(void) {
    struct address all = address_ipv4(0, 0, 0, 0, PCP_NEWS_PORT);
    struct sockaddr_storage name;
    int yes = 1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_open = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                   bind(fd, socket_address_put(&all, &name), sizeof(struct sockaddr_in)) == 0;
    if (!is_open && fd >= 0) {
        close(fd);
    }
    return is_open ? fd : -1;
}

/* The same after each start, or the router would take this node for a stranger to its own mapping. */
static void mapper_make_nonce(const struct identity *identity, uint8_t out[PCP_NONCE_SIZE]) {
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    uint8_t digest[crypto_generichash_BYTES];
    identity_sign(identity, "port map", BYTES("nonce"), signature);
    crypto_generichash(digest, sizeof digest, signature, sizeof signature, NULL, 0);
    memcpy(out, digest, PCP_NONCE_SIZE);
}

static void mapper_free(struct port_mapper *mapper) {
    if (mapper->news >= 0) {
        close(mapper->news);
    }
    if (mapper->end >= 0) {
        close(mapper->end);
    }
    pthread_mutex_destroy(&mapper->lock);
    free(mapper);
}

enum err port_mapper_start(const struct port_mapper_config *config, struct port_mapper **ret_mapper,
                           struct err_detail *detail) {
    struct port_mapper *mapper = calloc(1, sizeof *mapper);
    if (mapper == NULL) {
        return ERR_MEMORY;
    }
    struct port_map_config map = {
        .address = config->address, .is_ending = mapper_is_ending, .context = mapper};
    mapper_make_nonce(config->identity, map.nonce);
    mapper->config = *config;
    port_map_init(&mapper->map, &map);
    pthread_mutex_init(&mapper->lock, NULL);
    mapper->news = mapper_listen();
    mapper->end = eventfd(0, EFD_CLOEXEC);
    if (mapper->end < 0) {
        mapper_free(mapper);
        return err_set(detail, ERR_FILES, "no descriptor for the port mapping");
    }
    mapper_attempt(mapper, PORT_MAPPER_FIRST_US);
    enum err err = task_start(&mapper->task, "port-mapper", PRIORITY_USUAL, mapper_run, mapper);
    if (err != ERR_OK) {
        port_map_remove(&mapper->map, REMOVAL_US);
        mapper_free(mapper);
        return err_set(detail, err, "no thread for the port mapping");
    }
    *ret_mapper = mapper;
    return ERR_OK;
}

void port_mapper_stop(struct port_mapper *mapper) {
    uint64_t one = 1;
    if (mapper == NULL) {
        return;
    }
    if (write(mapper->end, &one, sizeof one) < 0) {
        /* it is full, which wakes the thread as well */
    }
    task_stop(&mapper->task);
    port_map_remove(&mapper->map, REMOVAL_US);
    mapper_free(mapper);
}
