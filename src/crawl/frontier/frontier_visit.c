#include "crawl/frontier/frontier_state.h"

enum { MOVED_COUNT_MAX = 512 }; /* URLs in one go */

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
static void hand_on(struct frontier *frontier, const struct frontier_item *item,
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
static void wait_again(struct frontier *frontier, const struct frontier_item *item, uint32_t host) {
    struct frontier_waiting waiting = frontier_item_waiting(item);
    frontier_queue_put_waiting(frontier, host, item->position, &waiting);
    frontier_count_waiting(frontier, host, 1);
    frontier_lane_offer(frontier, host, bytes_of(NULL, 0), item->position, &waiting);
}

void frontier_visit_answer(struct frontier *frontier, struct frontier_request *request) {
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
            hand_on(frontier, request->slots[i].item, move);
        } else {
            wait_again(frontier, request->slots[i].item, move->host);
        }
    }
    meta->moved_below = request->end;
    meta->moved_count += request->looked_count;
    meta->is_moving = !request->is_last;
    meta->is_recalling = meta->is_recalling && meta->is_moving;
    frontier_queue_put_meta(frontier);
    frontier_queue_end(frontier);
}

void frontier_visit_go_on(struct frontier *frontier) {
    if (frontier->meta.is_moving && !frontier->is_move_asked && !frontier_is_behind(frontier)) {
        frontier->is_move_asked = frontier_queue_read_visit(frontier, MOVED_COUNT_MAX);
        frontier->has_stalled |= !frontier->is_move_asked;
    }
}
