#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"

/* ---- items ---- */

static struct bytes lane_copy_text(uint8_t **to, struct bytes bytes) {
    if (bytes.size > 0) {
        memcpy(*to, bytes.data, bytes.size);
    }
    *to += bytes.size;
    return bytes_of(*to - bytes.size, bytes.size);
}

struct frontier_item *frontier_item_new(const struct frontier_waiting *waiting, uint64_t position) {
    const struct frontier_history *history = &waiting->history;
    size_t size =
        sizeof(struct frontier_item) + waiting->url.size + history->etag.size + history->last_modified.size;
    struct frontier_item *item = malloc(size);
    if (item == NULL) {
        return NULL;
    }
    bool is_retry = waiting->tries > 0;
    uint8_t *text = item->text;
    item->position = position;
    item->sequence = is_retry ? waiting->sequence : frontier_code_sequence(position);
    item->size = size;
    item->learned = NULL;
    item->url = (struct frontier_url){
        .url = lane_copy_text(&text, waiting->url),
        .depth = is_retry ? waiting->depth : frontier_code_depth(position),
        .priority = frontier_code_priority(position),
        .tries = waiting->tries,
        .is_doubtful = waiting->is_doubtful,
        .history = *history,
    };
    item->url.history.etag = lane_copy_text(&text, history->etag);
    item->url.history.last_modified = lane_copy_text(&text, history->last_modified);
    return item;
}

void frontier_item_free(struct frontier_item *item) {
    if (item != NULL) {
        free(item->learned);
        free(item);
    }
}

void frontier_learn(struct frontier_url *url, const struct frontier_history *history,
                    int64_t unread_since_us) {
    struct frontier_item *item = (struct frontier_item *)url;
    size_t size = history->etag.size + history->last_modified.size;
    uint8_t *learned = size > 0 ? malloc(size) : NULL;
    uint8_t *text = learned;
    url->unread_since_us = unread_since_us;
    url->history = *history;
    url->history.etag = learned != NULL ? lane_copy_text(&text, history->etag) : bytes_of(NULL, 0);
    url->history.last_modified =
        learned != NULL ? lane_copy_text(&text, history->last_modified) : bytes_of(NULL, 0);
    free(item->learned);
    item->learned = learned;
}

struct frontier_waiting frontier_item_waiting(const struct frontier_item *item) {
    const struct frontier_url *url = &item->url;
    return (struct frontier_waiting){
        .tries = url->tries,
        .is_doubtful = url->is_doubtful,
        .depth = url->depth,
        .sequence = item->sequence,
        .history = url->history,
        .url = url->url,
    };
}

/* ---- making and freeing ---- */

static size_t lane_window_count_max(const struct frontier *frontier) {
    if (frontier->config.window_max > 0) {
        return frontier->config.window_max;
    }
    size_t share = FRONTIER_WINDOWS_COUNT / (frontier->lanes_count + 1);
    share = share < FRONTIER_WINDOW_COUNT_MIN ? FRONTIER_WINDOW_COUNT_MIN : share;
    return share > FRONTIER_WINDOW_COUNT_MAX ? FRONTIER_WINDOW_COUNT_MAX : share;
}

static void lane_free_item(struct frontier *frontier, struct frontier_item *item) {
    frontier->items_size -= item->size;
    frontier_item_free(item);
}

/* A lane for the host, with all its URLs or none of them yet. NULL without memory. */
static struct frontier_lane *lane_new(struct frontier *frontier, uint32_t host, bool is_whole) {
    struct frontier_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return NULL;
    }
    lane->frontier = frontier;
    lane->host = host;
    frontier_window_init(&lane->window, is_whole);
    lane->next = frontier->lanes;
    if (lane->next != NULL) {
        lane->next->previous = lane;
    }
    frontier->lanes = lane;
    frontier->lanes_count++;
    frontier->items_size += sizeof *lane;
    frontier_hosts_at(&frontier->hosts, host)->lane = lane;
    return lane;
}

static void lane_set_name(struct frontier_lane *lane, struct bytes take_name) {
    free((uint8_t *)lane->name.data);
    lane->name = take_name;
}

static void lane_set_kept(struct frontier_lane *lane, struct bytes take_kept) {
    free((uint8_t *)lane->kept.data);
    lane->kept = take_kept;
}

static void lane_free(struct frontier_lane *lane) {
    struct frontier *frontier = lane->frontier;
    ASSERT(lane->taken == NULL);
    for (void *item; (item = frontier_window_drop_last(&lane->window)) != NULL;) {
        lane_free_item(frontier, item);
    }
    frontier_window_done(&lane->window);
    if (lane->previous != NULL) {
        lane->previous->next = lane->next;
    } else {
        frontier->lanes = lane->next;
    }
    if (lane->next != NULL) {
        lane->next->previous = lane->previous;
    }
    frontier->lanes_count--;
    frontier->items_size -= sizeof *lane;
    frontier_hosts_at(&frontier->hosts, lane->host)->lane = NULL;
    lane_set_name(lane, bytes_of(NULL, 0));
    lane_set_kept(lane, bytes_of(NULL, 0));
    free(lane);
}

static void lane_leave_taken(struct frontier_lane *lane, struct frontier_item *item) {
    if (item->previous != NULL) {
        item->previous->next = item->next;
    } else {
        lane->taken = item->next;
    }
    if (item->next != NULL) {
        item->next->previous = item->previous;
    }
    lane->taken_count--;
    lane->frontier->taken_count--;
}

void frontier_lane_free_all(struct frontier *frontier) {
    while (frontier->lanes != NULL) {
        struct frontier_lane *lane = frontier->lanes;
        while (lane->taken != NULL) {
            struct frontier_item *item = lane->taken;
            lane_leave_taken(lane, item);
            lane_free_item(frontier, item);
        }
        lane_free(lane);
    }
}

/* ---- notices ---- */

/* It had its turn, and somebody else waits for one. */
static bool lane_must_make_way(const struct frontier_lane *lane) {
    bool had_its_turn = lane->is_resting || lane->turn_count >= FRONTIER_LANE_TURN_COUNT;
    return had_its_turn && lane->frontier->hosts.line_count > 0;
}

static bool lane_is_over(const struct frontier_lane *lane) {
    return lane->taken == NULL && !lane->window.is_reading &&
           (frontier_window_is_over(&lane->window) || lane_must_make_way(lane));
}

/* Read on before the window is empty. */
static void lane_read_on(struct frontier_lane *lane) {
    struct frontier *frontier = lane->frontier;
    size_t count_max = lane_window_count_max(frontier);
    if (frontier_window_needs_more(&lane->window, count_max) && !lane_must_make_way(lane) &&
        !frontier_queue_read_lane(frontier, lane, count_max)) {
        frontier->has_stalled = true;
    }
}

/* Have poll look at the lane if there is something to tell. */
static void lane_notice(struct frontier_lane *lane) {
    struct frontier *frontier = lane->frontier;
    bool is_ready = !lane->is_told_ready && frontier_window_has_any(&lane->window);
    if (lane->is_noticed || (!is_ready && !lane_is_over(lane))) {
        return;
    }
    lane->is_noticed = true;
    lane->next_notice = NULL;
    if (frontier->notices_first == NULL) {
        frontier->notices_first = lane;
    } else {
        frontier->notices_last->next_notice = lane;
    }
    frontier->notices_last = lane;
    frontier_ask_for_poll(frontier);
}

/* The end of a lane; its host goes to the end of the line where it has more. */
static void lane_end(struct frontier_lane *lane) {
    struct frontier *frontier = lane->frontier;
    uint32_t number = lane->host;
    struct frontier_host *host = frontier_hosts_at(&frontier->hosts, number);
    lane->is_noticed = true; /* whatever the owner does in gone(), poll shall not look at it again */
    if (frontier_window_is_over(&lane->window) && host->waiting_count > 0) {
        /* The count on disk was wrong. Believing it, the crawl would wait for ever. */
        frontier_count_waiting(frontier, number, -(int64_t)host->waiting_count);
    }
    if (lane->is_told && frontier->config.gone != NULL) {
        frontier->config.gone(frontier->config.context, lane);
    }
    lane_free(lane);
    if (host->waiting_count > 0) {
        frontier_hosts_line_up(&frontier->hosts, number);
    }
    frontier_lane_fill(frontier);
}

/* Memory was missing: the next poll looks at it again. */
static void lane_stall(struct frontier_lane *lane) {
    lane->frontier->has_stalled = true;
    frontier_ask_for_poll(lane->frontier);
}

void frontier_lane_refuse(struct frontier_lane *lane) {
    lane->is_told_ready = false;
    lane_stall(lane);
}

static void lane_tell(struct frontier_lane *lane) {
    if (lane_is_over(lane)) {
        lane_end(lane);
        return;
    }
    lane_read_on(lane);
    if (!lane->is_told_ready && frontier_window_has_any(&lane->window)) {
        lane->is_told = true;
        lane->is_told_ready = true;
        if (lane->frontier->config.ready != NULL) {
            lane->frontier->config.ready(lane->frontier->config.context, lane);
        }
        if (lane->is_told_ready) {
            lane_set_kept(lane, bytes_of(NULL, 0));
        }
    }
}

void frontier_lane_notify(struct frontier *frontier) {
    /* Only those of now: what the owner does meanwhile makes new ones, and the loop has other work too. */
    struct frontier_lane *lane = frontier->notices_first;
    frontier->notices_first = NULL;
    while (lane != NULL) {
        struct frontier_lane *next = lane->next_notice;
        lane->is_noticed = false;
        lane_tell(lane);
        lane = next;
    }
}

/* ---- windows ---- */

static void lane_trim(struct frontier_lane *lane) {
    for (void *item; (item = frontier_window_trim(&lane->window)) != NULL;) {
        lane_free_item(lane->frontier, item);
    }
}

/* An item that was made for the lane. */
static void lane_adopt(struct frontier_lane *lane, struct frontier_item *item) {
    struct frontier *frontier = lane->frontier;
    item->url.lane = lane;
    item->url.is_doubtful |= frontier_code_sequence(item->position) < frontier->meta.doubtful_below;
    frontier->items_size += item->size;
}

/* Into the window; the item is freed where it does not stay. */
static void lane_put_item(struct frontier_lane *lane, struct frontier_item *take_item) {
    struct frontier *frontier = lane->frontier;
    if (!frontier_window_put(&lane->window, take_item->position, take_item,
                             lane_window_count_max(frontier))) {
        lane_free_item(frontier, take_item);
        lane_stall(lane); /* perhaps there was no room for it */
    }
    lane_trim(lane);
}

/* The lane of the host, made if it may be; NULL if the host has to wait for one. */
static struct frontier_lane *lane_find(struct frontier *frontier, uint32_t number, struct bytes name) {
    struct frontier_host *host = frontier_hosts_at(&frontier->hosts, number);
    if (host->lane != NULL || host->is_in_line) {
        return host->lane;
    }
    ASSERT(host->waiting_count == 1);
    struct frontier_lane *lane = NULL;
    uint8_t *copy = NULL;
    if (name.size > 0 && frontier->lanes_count < frontier->config.lanes_max &&
        frontier->hosts.line_count == 0 && !host->has_kept && (copy = malloc(name.size)) != NULL) {
        lane = lane_new(frontier, number, true);
    }
    if (lane == NULL) {
        free(copy);
        frontier_hosts_line_up(&frontier->hosts, number);
        frontier_ask_for_poll(frontier);
        return NULL;
    }
    memcpy(copy, name.data, name.size);
    lane_set_name(lane, bytes_of(copy, name.size));
    return lane;
}

void frontier_lane_offer(struct frontier *frontier, uint32_t host, struct bytes name, uint64_t position,
                         const struct frontier_waiting *waiting) {
    struct frontier_lane *lane = lane_find(frontier, host, name);
    if (lane == NULL || !frontier_window_admits(&lane->window, position, lane_window_count_max(frontier))) {
        return;
    }
    struct frontier_item *item = frontier_item_new(waiting, position);
    if (item == NULL) {
        frontier_window_leave_out(&lane->window, position);
        lane_trim(lane);
        lane_stall(lane);
        return;
    }
    lane_adopt(lane, item);
    lane_put_item(lane, item);
    lane_notice(lane);
}

struct frontier_url *frontier_take(struct frontier_lane *lane) {
    struct frontier *frontier = lane->frontier;
    struct frontier_item *item = lane_must_make_way(lane) ? NULL : frontier_window_take(&lane->window);
    if (item == NULL) {
        lane->is_told_ready = false;
        lane_notice(lane);
        if (lane->window.is_reading) {
            frontier_queue_hurry(frontier);
        }
    } else {
        item->previous = NULL;
        item->next = lane->taken;
        if (item->next != NULL) {
            item->next->previous = item;
        }
        lane->taken = item;
        lane->taken_count++;
        lane->turn_count++;
        frontier->taken_count++;
    }
    lane_read_on(lane);
    return item == NULL ? NULL : &item->url;
}

void frontier_lane_put_back(struct frontier_lane *lane, struct frontier_item *take_item) {
    lane_leave_taken(lane, take_item);
    if (frontier_window_admits(&lane->window, take_item->position, lane_window_count_max(lane->frontier))) {
        lane_put_item(lane, take_item);
    } else {
        lane_free_item(lane->frontier, take_item);
    }
    lane_read_on(lane);
    lane_notice(lane);
}

void frontier_lane_finish(struct frontier_lane *lane, struct frontier_item *take_item) {
    lane_leave_taken(lane, take_item);
    frontier_window_finish(&lane->window, take_item->position);
    lane_free_item(lane->frontier, take_item);
    lane_read_on(lane);
    lane_notice(lane);
}

/* ---- what was read ---- */

static bool lane_is_taken(const struct frontier_lane *lane, uint64_t position) {
    for (const struct frontier_item *item = lane->taken; item != NULL; item = item->next) {
        if (item->position == position) {
            return true;
        }
    }
    return false;
}

/* Take those that are in the owner's hands out of the answer. */
static void lane_drop_taken(struct frontier_lane *lane, struct frontier_request *request) {
    size_t kept = 0;
    for (size_t i = 0; i < request->count; i++) {
        struct frontier_item *item = request->slots[i].item;
        if (lane_is_taken(lane, item->position)) {
            frontier_item_free(item);
            continue;
        }
        lane_adopt(lane, item);
        request->slots[kept++] = request->slots[i];
    }
    request->count = kept;
}

void frontier_lane_answer(struct frontier_lane *lane, struct frontier_request *request) {
    struct frontier *frontier = lane->frontier;
    if (request->name.size > 0) {
        lane_set_name(lane, request->name);
        request->name = bytes_of(NULL, 0);
    }
    if (request->kept.size > 0) {
        lane_set_kept(lane, request->kept);
        request->kept = bytes_of(NULL, 0);
    }
    lane_drop_taken(lane, request);
    frontier_window_merge(&lane->window, request->slots, request->count, request->end,
                          lane_window_count_max(frontier));
    for (size_t i = 0; i < request->count; i++) {
        if (request->slots[i].item != NULL) {
            lane_free_item(frontier, request->slots[i].item);
        }
    }
    request->count = 0;
    lane_trim(lane);
    lane_read_on(lane);
    lane_notice(lane);
}

void frontier_lane_fill(struct frontier *frontier) {
    bool has_stalled = frontier->has_stalled;
    frontier->has_stalled = false;
    for (struct frontier_lane *lane = frontier->lanes; has_stalled && lane != NULL; lane = lane->next) {
        lane_read_on(lane);
        lane_notice(lane);
    }
    while (frontier->lanes_count < frontier->config.lanes_max && frontier->hosts.line_count > 0) {
        uint32_t number = frontier_hosts_next_in_line(&frontier->hosts);
        struct frontier_lane *lane = lane_new(frontier, number, false);
        if (lane == NULL) {
            frontier_hosts_line_up(&frontier->hosts, number); /* with the next poll */
            frontier->has_stalled = true;
            return;
        }
        lane_read_on(lane);
    }
}

/* ---- for the owner ---- */

struct bytes frontier_lane_host(const struct frontier_lane *lane) {
    return lane->name;
}

void frontier_lane_set_owner(struct frontier_lane *lane, void *owner) {
    lane->owner = owner;
}

void *frontier_lane_owner(const struct frontier_lane *lane) {
    return lane->owner;
}

void frontier_lane_keep(struct frontier_lane *lane, struct bytes bytes) {
    struct frontier *frontier = lane->frontier;
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    ASSERT(bytes.size <= FRONTIER_KEPT_SIZE_MAX);
    frontier_hosts_at(&frontier->hosts, lane->host)->has_kept = 1;
    frontier_queue_put_alone(frontier, frontier_code_host_key(key, 't', lane->host), bytes);
}

struct bytes frontier_lane_kept(const struct frontier_lane *lane) {
    return lane->kept;
}

void frontier_lane_rest(struct frontier_lane *lane) {
    lane->is_resting = true;
    lane_notice(lane);
}
