#include "crawl/frontier_state.h"

enum { MOVED_COUNT_MAX = 512 }; /* URLs in one go */

void frontier_start_visit(struct frontier *frontier, int64_t now_us, int64_t due_before_us) {
    ASSERT(frontier_is_empty(frontier));
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
    frontier_ask_for_poll(frontier);
}

/* One that is due waits again. With the lock. */
static void move(struct frontier *frontier, const struct frontier_item *item, uint32_t host) {
    if (host >= frontier_hosts_count(&frontier->hosts)) {
        return; /* the disk is wrong */
    }
    struct frontier_waiting waiting = frontier_item_waiting(item);
    frontier_queue_put_waiting(frontier, host, item->position, &waiting);
    frontier_count_waiting(frontier, host, 1);
    frontier_lane_offer(frontier, host, bytes_of(NULL, 0), item->position, &waiting);
}

void frontier_visit_answer(struct frontier *frontier, struct frontier_request *request) {
    struct frontier_meta *meta = &frontier->meta;
    frontier->is_move_asked = false;
    frontier_queue_begin(frontier);
    for (size_t i = 0; i < request->count; i++) {
        move(frontier, request->slots[i].item, request->hosts[i]);
    }
    meta->moved_below = request->end;
    meta->moved_count += request->looked_count;
    meta->is_moving = !request->is_last;
    frontier_queue_put_meta(frontier);
    frontier_queue_end(frontier);
}

void frontier_visit_go_on(struct frontier *frontier) {
    if (frontier->meta.is_moving && !frontier->is_move_asked && !frontier_is_behind(frontier)) {
        frontier->is_move_asked = frontier_queue_read_visit(frontier, MOVED_COUNT_MAX);
        frontier->has_stalled |= !frontier->is_move_asked;
    }
}
