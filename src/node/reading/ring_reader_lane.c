/* The walk over the captures of one other node, page by page; nothing that it says is taken unchecked. */
#include <stdlib.h>

#include "node/reading/ring_reader_walk_state.h"
#include "web/url/surt.h"

void ring_reader_lane_free(struct ring_reader_lane *lane) {
    if (lane != NULL) {
        buf_done(&lane->ask.question);
        buf_done(&lane->ask.answer);
        buf_done(&lane->bound);
        buf_done(&lane->key);
        free(lane);
    }
}

struct ring_reader_lane *ring_reader_lane_new(const struct ring_reader_cursor *cursor,
                                              const struct peer *peer) {
    struct ring_reader_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return NULL;
    }
    lane->ask.peer = *peer;
    buf_init(&lane->ask.question, BACKEND_CODE_WALK_SIZE_MAX);
    buf_init(&lane->ask.answer, BACKEND_CODE_PAGE_SIZE_MAX + 1);
    buf_init(&lane->bound, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&lane->key, RING_READER_KEY_SIZE_MAX);
    if (buf_put(&lane->bound, buf_bytes(cursor->in_reverse ? &cursor->to : &cursor->from)) != ERR_OK) {
        ring_reader_lane_free(lane);
        return NULL;
    }
    return lane;
}

enum err ring_reader_lane_question(const struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    struct bytes bound = buf_bytes(&lane->bound);
    struct backend_code_walk walk = {
        .from = cursor->in_reverse ? buf_bytes(&cursor->from) : bound,
        .to = cursor->in_reverse ? bound : buf_bytes(&cursor->to),
        .in_reverse = cursor->in_reverse,
        .count_max = cursor->page_count,
    };
    buf_clear(&lane->ask.question);
    return backend_code_put_walk(&lane->ask.question, &walk);
}

/* is_sure:bool, then the page. */
void ring_reader_lane_begin(struct ring_reader_lane *lane) {
    struct bytes page = buf_bytes(&lane->ask.answer);
    wire_reader_init(&lane->reader, page.size > 0 ? bytes_skip(page, 1) : page);
    lane->has_page = true;
}

/* Behind the last entry of a page. A node that does not come further would keep us for ever. */
static enum err end_page(const struct ring_reader_cursor *cursor, struct ring_reader_lane *lane,
                         const struct backend_code_page_end *end) {
    lane->has_page = false;
    lane->is_last = end->is_end;
    if (end->is_end) {
        return ERR_OK;
    }
    int order = bytes_compare(end->next, buf_bytes(&lane->bound));
    if (lane->bound.size > 0 && (cursor->in_reverse ? order >= 0 : order <= 0)) {
        return ERR_INVALID;
    }
    buf_clear(&lane->bound);
    return buf_put(&lane->bound, end->next);
}

/* Within the walk, and not before the one that he gave last. */
static bool is_in_order(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    buf_clear(&cursor->key);
    index_put_capture_prefix(&cursor->key, lane->capture.surt, lane->capture.time_us);
    struct bytes key = buf_bytes(&cursor->key);
    int order = bytes_compare(key, buf_bytes(&lane->key));
    bool is_inside = bytes_compare(key, buf_bytes(&cursor->from)) >= 0 &&
                     (cursor->to.size == 0 || bytes_compare(key, buf_bytes(&cursor->to)) < 0);
    bool is_behind = lane->key.size == 0 || (cursor->in_reverse ? order <= 0 : order >= 0);
    if (cursor->key.err != ERR_OK || !is_inside || !is_behind) {
        return false;
    }
    buf_clear(&lane->key);
    return buf_put(&lane->key, key) == ERR_OK;
}

/* A URL of something else would lead whoever asks for this one there. */
static bool is_of_url(struct ring_reader_cursor *cursor, const struct capture *capture) {
    struct ring_reader_session *session = ring_reader_session(cursor->cursor.session);
    buf_clear(&session->listed_surt);
    return canon_run(&session->canon, capture->url, NULL) == ERR_OK &&
           surt_put(&session->listed_surt, &session->canon) == ERR_OK &&
           bytes_equal(buf_bytes(&session->listed_surt), capture->surt);
}

/* The next capture of the page. ERR_NOT_FOUND: another page is needed, or it was the last; ERR_INVALID. */
static enum err read_entry(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    struct backend_code_page_end end;
    enum err err = backend_code_next_capture(&lane->reader, &lane->capture, &end, NULL);
    if (err == ERR_OK) {
        return is_in_order(cursor, lane) && is_of_url(cursor, &lane->capture) ? ERR_OK : ERR_INVALID;
    }
    if (err == ERR_NOT_FOUND) {
        return end_page(cursor, lane, &end) == ERR_OK ? ERR_NOT_FOUND : ERR_INVALID;
    }
    return ERR_INVALID;
}

/* The lane's node does not answer, or not what it should: another holder goes on, or nobody. */
static bool replace(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    lane->has_page = false;
    if (cursor->spares_count == 0) {
        cursor->is_partial = true;
        return false;
    }
    lane->ask.peer = cursor->spares[--cursor->spares_count];
    if (lane->key.size > 0) { /* what was given of the page is not wanted again */
        buf_clear(&lane->bound);
        buf_put(&lane->bound, buf_bytes(&lane->key));
        if (cursor->in_reverse) {
            buf_put_byte(&lane->bound, 0xff); /* above all locations of that SURT and time */
        }
    }
    return lane->bound.err == ERR_OK;
}

enum err ring_reader_lane_advance(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    for (;;) {
        enum err err = lane->has_page ? read_entry(cursor, lane) : ERR_NOT_FOUND;
        if (err == ERR_OK) {
            return ERR_OK;
        }
        if (err == ERR_INVALID) {
            ring_reader_blame(cursor->backend, &lane->ask.peer, "gives a list of captures that is none");
            if (!replace(cursor, lane)) {
                return ERR_NOT_FOUND;
            }
        }
        if (lane->is_last) {
            return ERR_NOT_FOUND;
        }
        err = ring_reader_lane_question(cursor, lane);
        if (err != ERR_OK) {
            return err;
        }
        struct ring_reader_question *ask = &lane->ask;
        if (!cursor->is_counted && ring_reader_enter(cursor->backend) != ERR_OK) {
            cursor->is_partial = true;
            return ERR_NOT_FOUND;
        }
        ring_reader_ask(cursor->backend, &ask, 1);
        if (!cursor->is_counted) {
            ring_reader_leave(cursor->backend);
        }
        if (ask->err == ERR_OK) {
            ring_reader_lane_begin(lane);
        } else if (!replace(cursor, lane)) {
            return ERR_NOT_FOUND;
        }
    }
}
