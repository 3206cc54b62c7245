#include "crawl/engine/host.h"

#include <stdlib.h>

void hosts_init(struct hosts *hosts, uint64_t hash_seed) {
    *hosts = (struct hosts){0};
    map_init(&hosts->map, 0, sizeof(struct host *), HOSTS_MAX, hash_seed);
    heap_init(&hosts->heap, NULL, 0);
}

static void free_host(struct host *host) {
    while (host->lanes != NULL) {
        struct host_lane *lane = host->lanes;
        host->lanes = lane->next;
        free(lane);
    }
    robots_done(&host->robots[0].robots);
    robots_done(&host->robots[1].robots);
    free((void *)(uintptr_t)host->robots[0].text.data);
    free((void *)(uintptr_t)host->robots[1].text.data);
    free(host->lease);
    free(host->trap);
    free((void *)(uintptr_t)host->name.data);
    free(host);
}

struct host *hosts_each(const struct hosts *hosts, size_t *cursor) {
    struct bytes name;
    void *value;
    return map_next(&hosts->map, cursor, &name, &value) ? *(struct host **)value : NULL;
}

struct host *hosts_find(const struct hosts *hosts, struct bytes name) {
    struct host **found = map_get(&hosts->map, name);
    return found != NULL ? *found : NULL;
}

void hosts_done(struct hosts *hosts) {
    size_t cursor = 0;
    for (struct host *host; (host = hosts_each(hosts, &cursor)) != NULL;) {
        free_host(host);
    }
    map_done(&hosts->map);
    free(hosts->heap_items);
}

/* ---- idle ones ---- */

void hosts_hold(struct hosts *hosts, struct host *host) {
    if (!host->is_idle) {
        return;
    }
    *(host->idle_previous != NULL ? &host->idle_previous->idle_next : &hosts->idle_first) = host->idle_next;
    *(host->idle_next != NULL ? &host->idle_next->idle_previous : &hosts->idle_last) = host->idle_previous;
    host->is_idle = false;
    hosts->idle_count--;
}

static void forget(struct hosts *hosts, struct host *host) {
    hosts_hold(hosts, host);
    hosts->texts_size -= host->robots[0].text.size + host->robots[1].text.size;
    map_remove(&hosts->map, host->name);
    free_host(host);
}

void hosts_rest(struct hosts *hosts, struct host *host) {
    bool has_lease = host->lease != NULL && host->lease->state != HOST_LEASE_NONE;
    if (host->is_idle || host->is_busy || host->lanes != NULL || has_lease || host->book != NULL) {
        return;
    }
    host->tie = 0; /* its entry in the heap is stale */
    host->is_idle = true;
    host->idle_next = NULL;
    host->idle_previous = hosts->idle_last;
    *(hosts->idle_last != NULL ? &hosts->idle_last->idle_next : &hosts->idle_first) = host;
    hosts->idle_last = host;
    hosts->idle_count++;
    if (hosts->idle_count > HOSTS_IDLE_MAX && hosts->idle_first->entries_count == 0) {
        forget(hosts, hosts->idle_first);
    }
}

/* ---- texts of robots.txt ---- */

void hosts_drop_text(struct hosts *hosts, struct host_robots *robots) {
    hosts->texts_size -= robots->text.size;
    free((void *)(uintptr_t)robots->text.data);
    robots->text = bytes_of(NULL, 0);
    robots->has_text = false;
}

/* What an idle host loses is asked for again when somebody wants to borrow it. */
static void make_room_for_text(struct hosts *hosts, size_t size) {
    for (struct host *host = hosts->idle_first;
         host != NULL && hosts->texts_size + size > HOSTS_TEXTS_SIZE_MAX; host = host->idle_next) {
        for (size_t i = 0; i < 2; i++) {
            if (host->robots[i].text.size > 0) {
                hosts_drop_text(hosts, &host->robots[i]);
                host->robots[i].state = HOST_ROBOTS_UNKNOWN;
            }
        }
    }
}

bool hosts_keep_text(struct hosts *hosts, struct host_robots *robots, struct bytes text) {
    hosts_drop_text(hosts, robots);
    make_room_for_text(hosts, text.size);
    uint8_t *copy = hosts->texts_size + text.size <= HOSTS_TEXTS_SIZE_MAX ? malloc(text.size + 1) : NULL;
    if (copy == NULL) {
        return false;
    }
    if (text.size > 0) {
        memcpy(copy, text.data, text.size);
    }
    robots->has_text = true;
    robots->text = bytes_of(copy, text.size);
    hosts->texts_size += text.size;
    return true;
}

/* ---- finding them ---- */

static struct host *new_host(struct bytes name) {
    struct host *host = calloc(1, sizeof *host);
    uint8_t *copy = malloc(name.size + 1);
    if (host == NULL || copy == NULL) {
        free(host);
        free(copy);
        return NULL;
    }
    memcpy(copy, name.data, name.size);
    host->name = bytes_of(copy, name.size);
    pace_init(&host->pace);
    robots_init(&host->robots[0].robots, ROBOTS_ALLOW_NOTHING);
    robots_init(&host->robots[1].robots, ROBOTS_ALLOW_NOTHING);
    return host;
}

struct host *hosts_get(struct hosts *hosts, struct bytes name) {
    struct host *host = hosts_find(hosts, name);
    if (host != NULL) {
        return host;
    }
    host = new_host(name);
    if (host == NULL || map_reserve(&hosts->map, hosts->map.count + 1) != ERR_OK) {
        if (host != NULL) {
            free_host(host);
        }
        return NULL;
    }
    struct host **place = map_put(&hosts->map, host->name);
    ASSERT(place != NULL);
    *place = host;
    return host;
}

enum err hosts_add_lane(struct hosts *hosts, struct host *host, struct campaign *campaign,
                        struct frontier_lane *lane) {
    struct host_lane *added = calloc(1, sizeof *added);
    if (added == NULL) {
        return ERR_MEMORY;
    }
    *added = (struct host_lane){.host = host, .campaign = campaign, .lane = lane, .next = host->lanes};
    host->lanes = added;
    frontier_lane_set_owner(lane, added);
    hosts_hold(hosts, host);
    return ERR_OK;
}

static void unlink_lane(struct host_lane *lane) {
    struct host_lane **link = &lane->host->lanes;
    while (*link != lane) {
        link = &(*link)->next;
    }
    *link = lane->next;
    free(lane);
}

void hosts_remove_lane(struct hosts *hosts, struct host_lane *lane) {
    struct host *host = lane->host;
    unlink_lane(lane);
    hosts_rest(hosts, host);
}

void hosts_remove_campaign(struct hosts *hosts, const struct campaign *campaign) {
    size_t cursor = 0;
    struct host *host;
    while ((host = hosts_each(hosts, &cursor)) != NULL) {
        struct host_lane *next;
        for (struct host_lane *lane = host->lanes; lane != NULL; lane = next) {
            next = lane->next;
            if (lane->campaign == campaign) {
                unlink_lane(lane);
            }
        }
    }
    /* In a second walk: a host that is forgotten leaves the map. */
    cursor = 0;
    while ((host = hosts_each(hosts, &cursor)) != NULL) {
        hosts_rest(hosts, host);
    }
}

void hosts_set_busy(struct hosts *hosts, struct host *host, bool is_busy) {
    host->is_busy = is_busy;
    if (is_busy) {
        hosts_hold(hosts, host);
        host->tie = 0;
    } else {
        hosts_rest(hosts, host);
    }
}

/* ---- whose turn it is ---- */

static bool host_make_room(struct hosts *hosts) {
    if (hosts->heap.count < hosts->heap.count_max) {
        return true;
    }
    size_t max = hosts->heap.count_max == 0 ? 64 : 2 * hosts->heap.count_max;
    struct heap_item *items = realloc(hosts->heap_items, max * sizeof *items);
    if (items == NULL) {
        return false;
    }
    hosts->heap_items = items;
    heap_move(&hosts->heap, items, max);
    return true;
}

void hosts_queue(struct hosts *hosts, struct host *host, uint64_t at_us) {
    bool is_in = host->tie != 0 && host->at_us == at_us;
    if (host->is_busy || host->lanes == NULL || is_in) {
        return;
    }
    if (!host_make_room(hosts)) {
        hosts->is_short = true;
        return;
    }
    host->tie = ++hosts->sequence;
    host->at_us = at_us;
    struct heap_item item = {.key = at_us, .tie = host->tie, .value = (uint64_t)(uintptr_t)host};
    bool is_pushed = heap_push(&hosts->heap, item);
    ASSERT(is_pushed);
    host->entries_count++;
}

/* Those that are in no queue and may have URLs; one that has none costs a look. */
static void host_queue_forgotten(struct hosts *hosts, uint64_t now_us) {
    size_t cursor = 0;
    hosts->is_short = false;
    for (struct host *host; (host = hosts_each(hosts, &cursor)) != NULL;) {
        if (host->tie == 0) {
            hosts_queue(hosts, host, now_us);
        }
    }
}

struct host *hosts_next(struct hosts *hosts, uint64_t now_us, uint64_t *ret_next_us) {
    const struct heap_item *least;
    if (hosts->is_short) {
        host_queue_forgotten(hosts, now_us);
    }
    *ret_next_us = UINT64_MAX;
    while ((least = heap_peek(&hosts->heap)) != NULL) {
        struct heap_item item = *least;
        if (item.key > now_us) {
            *ret_next_us = item.key;
            return NULL;
        }
        heap_pop(&hosts->heap, &item);
        struct host *host = (struct host *)(uintptr_t)item.value;
        host->entries_count--;
        if (host->tie == item.tie) {
            host->tie = 0;
            return host;
        }
    }
    return NULL;
}

struct trap_host *host_trap(struct host *host) {
    if (host->trap == NULL) {
        host->trap = malloc(sizeof *host->trap);
        if (host->trap != NULL) {
            trap_host_init(host->trap);
        }
    }
    return host->trap;
}
