#include "crawl/frontier/frontier_state.h"

/*
 * Links that were found when no more fingerprints fit into the memory that the frontier may have. Each is
 * written under its fingerprint, so the same link takes its place once, however often it is found. When
 * little is waiting, the frontier's thread reads some and looks on the disk which of them are known; the
 * others wait from then on like all. So nothing is lost, and what is not in memory costs reads instead.
 */

enum {
    LATER_READ_COUNT = 512,
    LATER_WAITING_MAX = 8192, /* more URLs that wait are enough for now */
};

bool frontier_is_full(const struct frontier *frontier) {
    uint64_t max = frontier->config.seen_size_max;
    return max > 0 && frontier->seen.memory_size >= max;
}

void frontier_later_put(struct frontier *frontier, const struct frontier_link *link, uint64_t fingerprint) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct frontier_waiting waiting = {
        .url = link->url, .depth = link->depth, .is_doubtful = link->is_doubtful};
    frontier_queue_put(frontier, frontier_code_url_key(key, 'l', fingerprint),
                       frontier_code_later(frontier->value, link->priority, &waiting));
    frontier->has_later = true;
    frontier->later_put_count++;
    frontier_ask_for_poll(frontier);
}

bool frontier_later_load(struct frontier *frontier, enum err *ret_err) {
    struct kv_iterator iterator;
    *ret_err = kv_iterator_init(&iterator, frontier->kv, 0, KV_WALK_ALL, BYTES("l"), BYTES("m"), false);
    if (*ret_err != ERR_OK) {
        return false;
    }
    *ret_err = kv_iterator_next(&iterator, NULL);
    kv_iterator_done(&iterator);
    bool has_any = *ret_err == ERR_OK;
    *ret_err = *ret_err == ERR_NOT_FOUND ? ERR_OK : *ret_err;
    return has_any;
}

/* ---- the thread's ---- */

static enum err later_read_one(struct frontier *frontier, struct frontier_request *request, struct bytes key,
                               struct bytes value, struct err_detail *detail) {
    uint8_t known_key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint64_t fingerprint = 0;
    struct frontier_waiting waiting;
    enum frontier_priority priority;
    struct buf known;
    enum err err = frontier_code_read_url_key(key, 'l', &fingerprint);
    err = err == ERR_OK ? frontier_code_read_later(value, &priority, &waiting) : err;
    if (err != ERR_OK) {
        return err;
    }
    buf_init(&known, FRONTIER_CODE_SMALL_SIZE_MAX);
    err = kv_copy(frontier->kv, 0, frontier_code_url_key(known_key, 'k', fingerprint), &known, detail);
    buf_done(&known);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    struct frontier_move move = {.is_known = err == ERR_OK};
    const struct frontier_config *config = &frontier->config;
    move.is_elsewhere = !move.is_known && config->is_elsewhere != NULL &&
                        config->is_elsewhere(config->context, waiting.url, move.place);
    struct frontier_item *item =
        frontier_item_new(&waiting, frontier_code_position(priority, waiting.depth, 0));
    if (item == NULL) {
        return ERR_MEMORY;
    }
    request->moves[request->count] = move;
    request->slots[request->count++] = (struct frontier_slot){0, item};
    request->end = fingerprint + 1;
    request->is_last = fingerprint == UINT64_MAX;
    return ERR_OK;
}

enum err frontier_later_read(struct frontier *frontier, struct frontier_request *request,
                             struct err_detail *detail) {
    uint8_t from_key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct kv_iterator iterator;
    request->end = request->from;
    enum err err = kv_iterator_init(&iterator, frontier->kv, 0, KV_WALK,
                                    frontier_code_url_key(from_key, 'l', request->from), BYTES("m"), false);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && request->count < request->count_max && !request->is_last) {
        err = kv_iterator_next(&iterator, detail);
        if (err == ERR_OK) {
            err = later_read_one(frontier, request, iterator.key, iterator.value, detail);
        }
    }
    kv_iterator_done(&iterator);
    request->is_last |= err == ERR_NOT_FOUND;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* ---- the loop's ---- */

void frontier_later_answer(struct frontier *frontier, struct frontier_request *request) {
    frontier->is_later_asked = false;
    frontier_queue_begin(frontier);
    for (size_t i = 0; i < request->count; i++) {
        const struct frontier_move *move = &request->moves[i];
        const struct frontier_item *item = request->slots[i].item;
        const struct frontier_url *url = &item->url;
        uint64_t fingerprint = seen_fingerprint(url->url, frontier->key);
        uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
        enum err err = ERR_OK;
        if (!move->is_known && url_parse(&frontier->url, url->url, NULL, NULL) == ERR_OK) {
            struct frontier_link link = {
                .url = url->url,
                .host = bytes_slice(url->url, frontier->url.host.from, frontier->url.path.from),
                .depth = url->depth,
                .priority = url->priority,
                .verdict = move->is_elsewhere ? ROUTE_ELSEWHERE : ROUTE_FETCH,
                .is_doubtful = url->is_doubtful,
            };
            err = frontier_make_room(frontier, &link, 1);
            err = err == ERR_OK ? frontier_add_known(frontier, &link, fingerprint) : err;
        }
        if (err != ERR_OK) {
            frontier->has_stalled = true; /* it is still on the disk, and read again */
            break;
        }
        kv_batch_remove(&frontier->writes, 0, frontier_code_url_key(key, 'l', fingerprint));
    }
    frontier_queue_end(frontier);
    bool is_over = request->is_last && request->from == 0 && request->count == 0 &&
                   frontier->later_put_count == frontier->later_asked_count;
    frontier->has_later = !is_over;
    frontier->later_from = request->is_last ? 0 : request->end;
    if (frontier->has_later) {
        frontier_ask_for_poll(frontier);
    }
}

void frontier_later_go_on(struct frontier *frontier) {
    if (frontier->has_later && !frontier->is_later_asked && frontier->waiting_count < LATER_WAITING_MAX &&
        !frontier_is_behind(frontier)) {
        frontier->later_asked_count = frontier->later_put_count;
        frontier->is_later_asked =
            frontier_queue_read_later(frontier, frontier->later_from, LATER_READ_COUNT);
        frontier->has_stalled |= !frontier->is_later_asked;
    }
}
