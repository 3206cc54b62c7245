/*
 * fetch_hosts - which addresses libcurl was told (CURLOPT_RESOLVE) for which host and port.
 *
 * libcurl keeps what it was told for ever, so this remembers it, tells it anew only if the addresses have
 * changed, and has it forget the hosts that were new longest ago when there are too many. A host with running
 * transfers is not forgotten: libcurl would resolve it by itself when it must connect again.
 */
#include "crawl/fetch/fetch_state.h"

#include <stdlib.h>

void fetch_hosts_init(struct fetch_hosts *hosts, size_t count_max, uint64_t seed) {
    map_init(&hosts->map, 0, sizeof(struct fetch_host *), count_max, seed);
}

void fetch_hosts_done(struct fetch_hosts *hosts) {
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(&hosts->map, &cursor, &key, &value)) {
        free(*(struct fetch_host **)value);
    }
    map_done(&hosts->map);
}

/* At most one a call: there is never more than one too many. */
static enum err hosts_make_room(struct fetch_hosts *hosts, struct buf *forget) {
    struct map *map = &hosts->map;
    if (map->count < map->count_max) {
        return map_reserve(map, map->count + 1);
    }
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(map, &cursor, &key, &value)) {
        struct fetch_host *host = *(struct fetch_host **)value;
        if (host->users_count == 0) {
            buf_put_byte(forget, '-');
            buf_put(forget, key);
            map_remove(map, key);
            free(host);
            return forget->err == ERR_OK ? map_reserve(map, map->count + 1) : forget->err;
        }
    }
    return ERR_LIMIT;
}

static enum err hosts_add(struct fetch_hosts *hosts, struct bytes key, struct buf *forget,
                          struct fetch_host **ret_host) {
    enum err err = hosts_make_room(hosts, forget);
    if (err != ERR_OK) {
        return err;
    }
    struct fetch_host *host = calloc(1, sizeof *host + key.size);
    if (host == NULL) {
        return ERR_MEMORY;
    }
    host->key_size = key.size;
    memcpy(host->key, key.data, key.size);
    void *value = map_put(&hosts->map, bytes_of(host->key, key.size));
    ASSERT(value != NULL);
    memcpy(value, &host, sizeof host);
    *ret_host = host;
    return ERR_OK;
}

static bool is_same(const struct dns_answer *a, const struct dns_answer *b) {
    for (size_t i = 0; i < a->count && a->count == b->count; i++) {
        if (!address_equal(&a->addresses[i], &b->addresses[i])) {
            return false;
        }
    }
    return a->count == b->count;
}

/* "-example.org" is a name, but libcurl reads a '-' in front as an order to forget. */
static bool is_odd(struct bytes key) {
    return key.size > 0 && key.data[0] == '-';
}

static void put_tell(struct buf *tell, const struct fetch_host *host) {
    struct bytes key = bytes_of(host->key, host->key_size);
    if (is_odd(key)) {
        buf_put_byte(tell, '+');
    }
    buf_put(tell, key);
    for (size_t i = 0; i < host->answer.count; i++) {
        char text[ADDRESS_TEXT_SIZE_MAX];
        address_format(&host->answer.addresses[i], text);
        *strrchr(text, ':') = '\0'; /* the port */
        buf_put_byte(tell, i == 0 ? ':' : ',');
        buf_put_string(tell, text);
    }
}

enum err fetch_hosts_use(struct fetch_hosts *hosts, struct bytes key, const struct dns_answer *answer,
                         struct buf *tell, struct buf *forget, struct fetch_host **ret_host) {
    ASSERT(answer->count > 0);
    struct fetch_host **found = map_get(&hosts->map, key);
    struct fetch_host *host = found == NULL ? NULL : *found;
    if (host == NULL) {
        enum err err = hosts_add(hosts, key, forget, &host);
        if (err != ERR_OK) {
            return err;
        }
    }
    if (!is_same(&host->answer, answer) || is_odd(key)) { /* with '+' libcurl may forget by itself */
        host->answer = *answer;
        put_tell(tell, host);
        if (tell->err != ERR_OK) {
            fetch_hosts_doubt(host);
            return tell->err;
        }
    }
    host->users_count++;
    *ret_host = host;
    return ERR_OK;
}

void fetch_hosts_leave(struct fetch_host *host) {
    if (host != NULL) {
        ASSERT(host->users_count > 0);
        host->users_count--;
    }
}

void fetch_hosts_doubt(struct fetch_host *host) {
    if (host != NULL) {
        host->answer.count = 0;
    }
}
