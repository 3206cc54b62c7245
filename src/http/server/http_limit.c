#include "http/server/http_limit.h"

#include <string.h>

#include "base/map.h"

enum { IPV6_PREFIX_SIZE = 8 };

void http_limit_init(struct http_limit *limit, uint64_t count, uint64_t per_us, uint64_t burst,
                     uint64_t seed) {
    ASSERT(count > 0 && burst > 0 && per_us >= count);
    memset(limit, 0, sizeof *limit);
    limit->interval_us = per_us / count;
    limit->slack_us = limit->interval_us * (burst - 1);
    limit->seed = seed;
    pthread_mutex_init(&limit->lock, NULL);
}

void http_limit_done(struct http_limit *limit) {
    pthread_mutex_destroy(&limit->lock);
}

/* Its entry, or the one that it may have: the closest to rest. With the lock. */
static struct http_limit_entry *http_limit_find(struct http_limit *limit, const struct address *address,
                                                uint8_t ret_ip[16]) {
    memcpy(ret_ip, address->ip, sizeof address->ip);
    if (!address_is_ipv4(address)) {
        memset(ret_ip + IPV6_PREFIX_SIZE, 0, sizeof address->ip - IPV6_PREFIX_SIZE);
    }
    uint64_t hash = map_hash(bytes_of(ret_ip, sizeof address->ip), limit->seed);
    struct http_limit_entry *row = limit->rows[hash % HTTP_LIMIT_ROWS];
    struct http_limit_entry *best = &row[0];
    for (size_t i = 0; i < HTTP_LIMIT_ROW_SIZE; i++) {
        if (memcmp(row[i].ip, ret_ip, sizeof row[i].ip) == 0) {
            return &row[i];
        }
        best = row[i].rest_us < best->rest_us ? &row[i] : best;
    }
    return best;
}

static bool http_limit_ask(struct http_limit *limit, const struct address *address, uint64_t now_us,
                           bool counts, uint64_t *ret_wait_us) {
    uint8_t ip[16];
    pthread_mutex_lock(&limit->lock);
    struct http_limit_entry *entry = http_limit_find(limit, address, ip);
    bool is_own = memcmp(entry->ip, ip, sizeof ip) == 0;
    uint64_t rest_us = is_own && entry->rest_us > now_us ? entry->rest_us : now_us;
    bool is_allowed = rest_us - now_us <= limit->slack_us;
    if (counts && is_allowed) {
        memcpy(entry->ip, ip, sizeof ip);
        entry->rest_us = rest_us + limit->interval_us;
    }
    limit->refused_count += counts && !is_allowed;
    pthread_mutex_unlock(&limit->lock);
    *ret_wait_us = is_allowed ? 0 : rest_us - now_us - limit->slack_us;
    return is_allowed;
}

bool http_limit_take(struct http_limit *limit, const struct address *address, uint64_t now_us,
                     uint64_t *ret_wait_us) {
    return http_limit_ask(limit, address, now_us, true, ret_wait_us);
}

bool http_limit_is_open(struct http_limit *limit, const struct address *address, uint64_t now_us,
                        uint64_t *ret_wait_us) {
    return http_limit_ask(limit, address, now_us, false, ret_wait_us);
}

uint64_t http_limit_refused_count(struct http_limit *limit) {
    pthread_mutex_lock(&limit->lock);
    uint64_t count = limit->refused_count;
    pthread_mutex_unlock(&limit->lock);
    return count;
}
