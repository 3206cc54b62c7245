#include "crawl/frontier/frontier.h"

#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"
#include "web/url/domain.h"

enum {
    LINKS_TOGETHER = 64,   /* their places in memory are fetched at the same time */
    MOVED_COUNT_MAX = 512, /* known URLs of a visit in one go */
};

/* ---- the database ---- */

/* No filter: on the way of a crawl nothing is looked up that may be missing. */
static const struct kv_family frontier_family = {
    .name = "default",
    .write_buffer_size = 8 << 20,
    .page_size = 8 << 10, /* neighbours are read */
    .compression = KV_LZ4,
    .is_in_runs = true, /* most of what a URL costs here is to be written again */
};

const struct kv_options frontier_kv_options = {
    .families = &frontier_family,
    .families_count = 1,
    .cache_size = 2 << 20, /* what is read is read once; some tables of contents are not */
    .open_files_max = 128,
    .asks_for_room = true,
};

/* ---- opening and closing ---- */

static void frontier_free(struct frontier *frontier) {
    frontier_lane_free_all(frontier);
    frontier_request_free(frontier->answers_first);
    frontier_request_free(frontier->requests_first);
    if (frontier->kv != NULL) {
        kv_free(frontier->kv);
    }
    kv_batch_done(&frontier->writes);
    map_done(&frontier->outgoing);
    free(frontier->sent);
    pthread_mutex_destroy(&frontier->lock);
    frontier_hosts_done(&frontier->hosts);
    seen_done(&frontier->seen);
    url_done(&frontier->url);
    free(frontier);
}

static struct frontier *frontier_new(const struct frontier_config *config) {
    struct frontier *frontier = calloc(1, sizeof *frontier);
    if (frontier == NULL) {
        return NULL;
    }
    frontier->config = *config;
    frontier->config.directory = NULL; /* the database has it */
    if (frontier->config.lanes_max == 0) {
        frontier->config.lanes_max = FRONTIER_LANES_MAX;
    }
    seen_init(&frontier->seen);
    frontier_hosts_init(&frontier->hosts);
    url_init(&frontier->url);
    kv_batch_init(&frontier->writes);
    /* Fingerprints are keyed themselves: the map needs no secret of its own. */
    map_init(&frontier->outgoing, sizeof(uint64_t), 0, FRONTIER_OUTGOING_MAX, 0);
    pthread_mutex_init(&frontier->lock, NULL);
    frontier->kv = kv_new(config->directory, &frontier_kv_options);
    if (frontier->kv == NULL) {
        frontier_free(frontier);
        return NULL;
    }
    return frontier;
}

enum err frontier_open(const struct frontier_config *config, struct frontier **ret_frontier,
                       struct err_detail *detail) {
    struct frontier *frontier = frontier_new(config);
    if (frontier == NULL) {
        return err_set(detail, ERR_MEMORY, "%s: %s", config->directory, err_text(ERR_MEMORY));
    }
    enum err err = kv_open(frontier->kv, detail);
    if (err == ERR_OK) {
        err = frontier_load(frontier, detail);
    }
    if (err == ERR_OK) {
        frontier->written_serial = frontier->meta.serial;
        frontier->queued_serial = frontier->meta.serial + 1;
        err = frontier_task_start(frontier, detail);
    }
    if (err != ERR_OK) {
        frontier_free(frontier);
        return err;
    }
    frontier_ask_for_poll(frontier);
    *ret_frontier = frontier;
    return ERR_OK;
}

void frontier_close(struct frontier *frontier) {
    frontier_task_stop(frontier);
    frontier_free(frontier);
}

/* ---- adding ---- */

/* The hash of what a budget counts: the registrable domain, or the host where it has none. */
static uint64_t frontier_hash_domain(struct frontier *frontier, const struct frontier_link *link) {
    struct bytes domain = link->host;
    if (url_parse(&frontier->url, link->url, NULL, NULL) == ERR_OK) {
        struct bytes registrable = domain_registrable(&frontier->url);
        domain = registrable.size > 0 ? registrable : url_host(&frontier->url);
    }
    return map_hash(domain, frontier->key);
}

static bool frontier_is_above(uint32_t count, uint32_t max) {
    return max > 0 && count >= max;
}

/* The host of the link. ERR_LIMIT: a budget forbids another URL of it. */
static enum err frontier_host_of(struct frontier *frontier, const struct frontier_link *link,
                                 uint32_t *ret_number) {
    const struct frontier_config *config = &frontier->config;
    struct frontier_hosts *hosts = &frontier->hosts;
    uint64_t hash = map_hash(link->host, frontier->key);
    uint32_t number = frontier_hosts_find(hosts, hash);
    uint64_t domain_hash = 0;
    uint32_t domain;
    if (number != FRONTIER_HOST_NONE) {
        domain = frontier_hosts_at(hosts, number)->domain;
    } else {
        domain_hash = frontier_hash_domain(frontier, link);
        domain = frontier_hosts_find_domain(hosts, domain_hash);
    }
    uint32_t host_count = number == FRONTIER_HOST_NONE ? 0 : frontier_hosts_at(hosts, number)->known_count;
    uint32_t domain_count =
        domain == FRONTIER_HOST_NONE ? 0 : frontier_hosts_domain_at(hosts, domain)->known_count;
    if (frontier_is_above(host_count, config->host_urls_max) ||
        frontier_is_above(domain_count, config->domain_urls_max)) {
        frontier->over_budget_count++;
        return ERR_LIMIT;
    }
    if (number != FRONTIER_HOST_NONE) {
        *ret_number = number;
        return ERR_OK;
    }
    enum err err = frontier_hosts_put(hosts, hash, domain_hash, &number);
    if (err != ERR_OK) {
        return err;
    }
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    frontier_queue_put(frontier, frontier_code_host_key(key, 'h', number),
                       frontier_code_host(frontier->value, domain_hash, link->host));
    *ret_number = number;
    return ERR_OK;
}

/* Another node fetches it. With the lock. */
static void frontier_add_elsewhere(struct frontier *frontier, const struct frontier_position *place,
                                   struct bytes url, uint64_t fingerprint) {
    struct frontier_record record = {.place = *place, .state = FRONTIER_ELSEWHERE, .url = url};
    frontier_queue_put_record(frontier, fingerprint, &record);
}

static void frontier_add_waiting(struct frontier *frontier, const struct frontier_position *place,
                                 const struct frontier_link *link) {
    uint64_t position = frontier_code_position(place->priority, place->depth, place->sequence);
    struct frontier_waiting waiting = {.url = link->url, .is_doubtful = link->is_doubtful};
    frontier_queue_put_waiting(frontier, place->host, position, &waiting);
    frontier_count_waiting(frontier, place->host, 1);
    frontier_lane_offer(frontier, place->host, link->host, position, &waiting);
}

enum err frontier_add_known(struct frontier *frontier, const struct frontier_link *link,
                            uint64_t fingerprint) {
    struct frontier_position place = {
        .priority = link->priority,
        .depth = link->depth,
        .sequence = frontier->meta.sequence,
    };
    bool is_seen = !frontier_is_full(frontier);
    enum err err = frontier_host_of(frontier, link, &place.host);
    if (err == ERR_OK && is_seen) {
        err = seen_put(&frontier->seen, fingerprint);
    }
    if (err != ERR_OK) {
        return err == ERR_LIMIT ? ERR_OK : err;
    }
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint8_t value[FRONTIER_CODE_SMALL_SIZE_MAX];
    struct frontier_host *host = frontier_hosts_at(&frontier->hosts, place.host);
    frontier->unseen_count += is_seen ? 0 : 1;
    frontier->meta.sequence++;
    host->known_count++;
    frontier_hosts_domain_at(&frontier->hosts, host->domain)->known_count++;
    frontier_queue_put(frontier, frontier_code_url_key(key, 'k', fingerprint),
                       frontier_code_place(value, &place));
    if (link->verdict == ROUTE_ELSEWHERE) {
        frontier_add_elsewhere(frontier, &place, link->url, fingerprint);
    } else {
        frontier_add_waiting(frontier, &place, link);
    }
    return ERR_OK;
}

/* With the lock, and room in the batch. */
static enum err frontier_add_link(struct frontier *frontier, const struct frontier_link *link,
                                  uint64_t fingerprint, size_t *added_count) {
    bool is_known = seen_has(&frontier->seen, fingerprint);
    if (link->is_outgoing) {
        frontier_outgoing_put(frontier, link, fingerprint, is_known);
    }
    if (is_known || link->verdict == ROUTE_AWAY) {
        return ERR_OK;
    }
    if (frontier_is_full(frontier) || frontier->unseen_count > 0) { /* the disk knows whether it is new */
        frontier_later_put(frontier, link, fingerprint);
        *added_count += 1;
        return ERR_OK;
    }
    uint64_t sequence = frontier->meta.sequence;
    enum err err = frontier_add_known(frontier, link, fingerprint);
    *added_count += frontier->meta.sequence > sequence ? 1 : 0; /* else it is over budget */
    return err;
}

static bool frontier_is_fit(const struct frontier_link *link) {
    return link->url.size > 0 && link->url.size <= FRONTIER_URL_SIZE_MAX && link->host.size > 0 &&
           link->host.size <= FRONTIER_CODE_HOST_SIZE_MAX;
}

/*
 * Room for all that these links, and the outcome of the URL that had them, write: a change that was forgotten
 * would leave the frontier contradicting itself. With the lock.
 */
enum err frontier_make_room(struct frontier *frontier, const struct frontier_link *links, size_t count) {
    enum { CHANGES_EACH = 5 }; /* host, known, waiting or record, outgoing; of an outcome fewer */
    size_t size = CHANGES_EACH * (size_t)(FRONTIER_CODE_KEY_SIZE_MAX + FRONTIER_CODE_RECORD_SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        size += CHANGES_EACH * (links[i].url.size + links[i].host.size + FRONTIER_CODE_KEY_SIZE_MAX +
                                FRONTIER_CODE_SMALL_SIZE_MAX);
    }
    return kv_batch_reserve(&frontier->writes, CHANGES_EACH * (count + 1), size);
}

/* With the lock. Those before one that cannot be taken are. */
static enum err frontier_add_links(struct frontier *frontier, const struct frontier_link *links, size_t count,
                                   size_t *added_count) {
    uint64_t fingerprints[LINKS_TOGETHER];
    enum err err = ERR_OK;
    for (size_t from = 0; from < count && err == ERR_OK; from += LINKS_TOGETHER) {
        size_t here = count - from < LINKS_TOGETHER ? count - from : LINKS_TOGETHER;
        for (size_t i = 0; i < here; i++) {
            fingerprints[i] = seen_fingerprint(links[from + i].url, frontier->key);
            seen_prefetch(&frontier->seen, fingerprints[i]);
        }
        for (size_t i = 0; i < here && err == ERR_OK; i++) {
            if (frontier_is_fit(&links[from + i])) {
                err = frontier_add_link(frontier, &links[from + i], fingerprints[i], added_count);
            } else {
                frontier->too_long_count++;
            }
        }
    }
    return err;
}

enum err frontier_add(struct frontier *frontier, const struct frontier_link *links, size_t count,
                      size_t *ret_added_count) {
    size_t added_count = 0;
    frontier_queue_begin(frontier);
    enum err err = frontier_make_room(frontier, links, count);
    err = err == ERR_OK ? frontier_add_links(frontier, links, count, &added_count) : err;
    frontier_queue_end(frontier);
    if (ret_added_count != NULL) {
        *ret_added_count = added_count;
    }
    return err;
}

bool frontier_knows(const struct frontier *frontier, struct bytes url) {
    return seen_has(&frontier->seen, seen_fingerprint(url, frontier->key));
}

bool frontier_is_settled(const struct frontier *frontier, struct bytes url) {
    uint64_t fingerprint = seen_fingerprint(url, frontier->key);
    return seen_has(&frontier->seen, fingerprint) || frontier_outgoing_was_sent(frontier, fingerprint);
}

/* ---- finishing ---- */

/* A validator that is too long to be kept is none. */
static struct bytes frontier_kept_validator(struct bytes validator) {
    return validator.size <= FRONTIER_VALIDATOR_SIZE_MAX ? validator : bytes_of(NULL, 0);
}

/* What is known after the visit. */
static void frontier_note_response(struct frontier_history *history, const struct frontier_outcome *outcome) {
    bool is_unmodified = outcome->status == 304;
    bool is_first = history->visits_count == 0;
    history->visits_count += history->visits_count < UINT32_MAX ? 1 : 0;
    history->changes_count += outcome->is_changed && !is_first && history->changes_count < UINT32_MAX ? 1 : 0;
    history->last_time_us = outcome->time_us;
    history->first_time_us = is_first ? outcome->time_us : history->first_time_us;
    history->last_status = outcome->status;
    if (!is_unmodified || outcome->etag.size > 0) {
        history->etag = frontier_kept_validator(outcome->etag);
    }
    if (!is_unmodified || outcome->last_modified.size > 0) {
        history->last_modified = frontier_kept_validator(outcome->last_modified);
    }
    if (!is_unmodified || outcome->has_digest) {
        history->has_digest = outcome->has_digest;
        memcpy(history->digest, outcome->digest, sizeof history->digest);
    }
}

/* With the lock. */
static void frontier_count_outcome(struct frontier *frontier, enum frontier_state state) {
    frontier->meta.done_count += state == FRONTIER_DONE ? 1 : 0;
    frontier->meta.failed_count += state == FRONTIER_FAILED ? 1 : 0;
    frontier->meta.cut_count += state == FRONTIER_CUT ? 1 : 0;
}

/* It waits again, at the end of its priority. With the lock. */
static void frontier_wait_again(struct frontier *frontier, const struct frontier_item *item, uint32_t host,
                                struct frontier_record *record) {
    struct frontier_waiting waiting = frontier_item_waiting(item);
    waiting.tries = waiting.tries < UINT16_MAX ? (uint16_t)(waiting.tries + 1) : UINT16_MAX;
    record->tries = waiting.tries;
    record->retry_sequence = frontier->meta.sequence++;
    uint64_t position = frontier_code_record_position(record);
    frontier_queue_put_waiting(frontier, host, position, &waiting);
    frontier_count_waiting(frontier, host, 1);
    frontier_lane_offer(frontier, host, bytes_of(NULL, 0), position, &waiting);
}

/* With the lock. */
static void frontier_write_outcome(struct frontier *frontier, const struct frontier_item *item,
                                   const struct frontier_outcome *outcome) {
    uint32_t host = item->url.lane->host;
    struct frontier_record record = {
        .place = {host, item->url.priority, item->url.depth, item->sequence},
        .state = outcome->state,
        .reason = outcome->reason,
        .visit = outcome->state == FRONTIER_ELSEWHERE ? 0 : frontier->meta.visit, /* nothing is found out */
        .due_us = outcome->due_us,
        .history = frontier_item_waiting(item).history,
        .url = item->url.url,
    };
    if (outcome->state == FRONTIER_DONE) {
        frontier_note_response(&record.history, outcome);
    }
    frontier_queue_remove_waiting(frontier, host, item->position);
    frontier_count_waiting(frontier, host, -1);
    if (outcome->state == FRONTIER_RETRY) {
        frontier_wait_again(frontier, item, host, &record);
    }
    uint64_t fingerprint = seen_fingerprint(item->url.url, frontier->key);
    frontier_queue_put_record(frontier, fingerprint, &record);
}

void frontier_finish(struct frontier *frontier, struct frontier_url *take_url,
                     const struct frontier_outcome *outcome, const struct frontier_link *links,
                     size_t count) {
    struct frontier_item *item = (struct frontier_item *)take_url;
    struct frontier_lane *lane = take_url->lane;
    size_t added_count = 0;
    frontier_queue_begin(frontier);
    enum err err = frontier_make_room(frontier, links, count);
    err = err == ERR_OK ? frontier_add_links(frontier, links, count, &added_count) : err;
    bool is_again = outcome->state == FRONTIER_AGAIN || err != ERR_OK;
    if (!is_again) {
        frontier_write_outcome(frontier, item, outcome);
        frontier_count_outcome(frontier, outcome->state);
    }
    frontier_queue_end(frontier);
    if (is_again) {
        frontier_lane_put_back(lane, item);
    } else {
        frontier_lane_finish(lane, item);
    }
}

/* ---- visits ---- */

/* Nothing waits, nothing is taken; other threads may have dropped outgoing links, which is being written. */
static bool frontier_is_over(const struct frontier *frontier) {
    return frontier->waiting_count == 0 && frontier->taken_count == 0 && !frontier->meta.is_moving &&
           !frontier->has_later;
}

void frontier_start_visit(struct frontier *frontier, int64_t now_us, int64_t due_before_us) {
    ASSERT(frontier_is_over(frontier));
    struct frontier_meta *meta = &frontier->meta;
    frontier_queue_begin(frontier);
    *meta = (struct frontier_meta){
        .sequence = meta->sequence,
        .visit = meta->visit + 1,
        .visit_start_us = now_us,
        .due_before_us = due_before_us,
        .is_moving = true,
    };
    frontier_queue_put_meta(frontier);
    frontier_queue_end(frontier);
    frontier_outgoing_forget_sent(frontier);
    frontier_ask_for_poll(frontier);
}

void frontier_recall(struct frontier *frontier) {
    struct frontier_meta *meta = &frontier->meta;
    frontier_queue_begin(frontier);
    meta->is_moving = meta->is_recalling = true;
    meta->moved_below = meta->moved_count = 0;
    frontier_queue_put_meta(frontier);
    frontier_queue_end(frontier);
    frontier->is_move_stale = frontier->is_move_asked;
    frontier_outgoing_forget_sent(frontier);
    frontier_ask_for_poll(frontier);
}

/* One that was ours is no longer: whoever fetches it now has to know it. With the lock. */
static void frontier_visit_hand_on(struct frontier *frontier, const struct frontier_item *item,
                                   const struct frontier_move *move) {
    uint64_t fingerprint = seen_fingerprint(item->url.url, frontier->key);
    struct frontier_link link = {
        .url = item->url.url, .depth = item->url.depth, .priority = item->url.priority};
    struct frontier_record record = {
        .place = {move->host, item->url.priority, item->url.depth, item->sequence},
        .state = FRONTIER_ELSEWHERE,
        .history = frontier_item_waiting(item).history,
        .url = item->url.url,
    };
    memcpy(link.place, move->place, sizeof link.place);
    frontier_queue_put_record(frontier, fingerprint, &record);
    frontier_outgoing_put(frontier, &link, fingerprint, true);
}

/* One that is due waits again. With the lock. */
static void frontier_visit_wait_again(struct frontier *frontier, const struct frontier_item *item,
                                      uint32_t host) {
    struct frontier_waiting waiting = frontier_item_waiting(item);
    frontier_queue_put_waiting(frontier, host, item->position, &waiting);
    frontier_count_waiting(frontier, host, 1);
    frontier_lane_offer(frontier, host, bytes_of(NULL, 0), item->position, &waiting);
}

/* Known URLs that are due. */
static void frontier_visit_answer(struct frontier *frontier, struct frontier_request *request) {
    struct frontier_meta *meta = &frontier->meta;
    frontier->is_move_asked = false;
    if (frontier->is_move_stale) {
        frontier->is_move_stale = false;
        return;
    }
    frontier_queue_begin(frontier);
    for (size_t i = 0; i < request->count; i++) {
        const struct frontier_move *move = &request->moves[i];
        if (move->host >= frontier_hosts_count(&frontier->hosts)) {
            continue; /* the disk is wrong */
        }
        if (move->is_elsewhere) {
            frontier_visit_hand_on(frontier, request->slots[i].item, move);
        } else {
            frontier_visit_wait_again(frontier, request->slots[i].item, move->host);
        }
    }
    meta->moved_below = request->end;
    meta->moved_count += request->looked_count;
    meta->is_moving = !request->is_last;
    meta->is_recalling = meta->is_recalling && meta->is_moving;
    frontier_queue_put_meta(frontier);
    frontier_queue_end(frontier);
}

/* Ask for the next ones, if it is time. */
static void frontier_visit_go_on(struct frontier *frontier) {
    if (frontier->meta.is_moving && !frontier->is_move_asked && !frontier_is_behind(frontier)) {
        frontier->is_move_asked = frontier_queue_read_visit(frontier, MOVED_COUNT_MAX);
        frontier->has_stalled |= !frontier->is_move_asked;
    }
}

/* ---- the loop ---- */

void frontier_poll(struct frontier *frontier) {
    frontier->is_poll_asked = false;
    pthread_mutex_lock(&frontier->lock);
    struct frontier_request *request = frontier->answers_first;
    frontier->answers_first = NULL;
    pthread_mutex_unlock(&frontier->lock);
    for (struct frontier_request *answer = request; answer != NULL; answer = answer->next) {
        if (answer->lane != NULL) {
            frontier_lane_answer(answer->lane, answer);
        } else if (answer->is_later) {
            frontier_later_answer(frontier, answer);
        } else {
            frontier_visit_answer(frontier, answer);
        }
    }
    frontier_request_free(request);
    frontier_lane_fill(frontier);
    frontier_lane_notify(frontier);
    frontier_visit_go_on(frontier);
    frontier_later_go_on(frontier);
    if (frontier->has_stalled) {
        frontier_ask_for_poll(frontier);
    }
}

bool frontier_is_empty(const struct frontier *frontier) {
    struct frontier *shared = (struct frontier *)frontier; /* only for the lock */
    pthread_mutex_lock(&shared->lock);
    bool is_written = kv_batch_size(&frontier->writes) + frontier->writing_size == 0;
    pthread_mutex_unlock(&shared->lock);
    return is_written && frontier_is_over(frontier);
}

void frontier_stat(const struct frontier *frontier, struct frontier_stat *ret_stat) {
    struct frontier *shared = (struct frontier *)frontier; /* only for the lock */
    pthread_mutex_lock(&shared->lock);
    uint64_t queued_size = kv_batch_size(&frontier->writes) + frontier->writing_size;
    uint64_t outgoing_count = frontier->outgoing.count;
    uint64_t outgoing_size = frontier->outgoing.entries_max * frontier->outgoing.entry_size +
                             frontier->outgoing.slots_count * sizeof *frontier->outgoing.slots +
                             (frontier->sent != NULL ? FRONTIER_SENT_COUNT * sizeof *frontier->sent : 0);
    pthread_mutex_unlock(&shared->lock);
    const struct frontier_meta *meta = &frontier->meta;
    uint64_t known_count = frontier->seen.count + frontier->unseen_count;
    bool has_more = meta->is_moving && known_count > meta->moved_count;
    *ret_stat = (struct frontier_stat){
        .known_count = known_count,
        .waiting_count = frontier->waiting_count,
        .taken_count = frontier->taken_count,
        .done_count = meta->done_count,
        .failed_count = meta->failed_count,
        .cut_count = meta->cut_count,
        .coming_count = has_more ? known_count - meta->moved_count : 0,
        .over_budget_count = frontier->over_budget_count,
        .too_long_count = frontier->too_long_count,
        .outgoing_count = outgoing_count,
        .outgoing_lost_count = frontier->outgoing_lost_count,
        .hosts_count = frontier_hosts_count(&frontier->hosts),
        .visit = meta->visit,
        .visit_start_us = meta->visit_start_us,
        .lanes_count = frontier->lanes_count,
        .memory_size = sizeof *frontier + frontier->seen.memory_size +
                       frontier_hosts_memory_size(&frontier->hosts) + frontier->items_size + queued_size +
                       outgoing_size,
    };
}
