#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"

static struct bytes copy(uint8_t **to, struct bytes bytes) {
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
    item->url = (struct frontier_url){
        .url = copy(&text, waiting->url),
        .depth = is_retry ? waiting->depth : frontier_code_depth(position),
        .priority = frontier_code_priority(position),
        .tries = waiting->tries,
        .is_doubtful = waiting->is_doubtful,
        .visits_count = history->visits_count,
        .changes_count = history->changes_count,
        .last_time_us = history->last_time_us,
        .first_time_us = history->first_time_us,
        .last_status = history->last_status,
        .etag = copy(&text, history->etag),
        .last_modified = copy(&text, history->last_modified),
        .has_digest = history->has_digest,
    };
    memcpy(item->url.digest, history->digest, sizeof item->url.digest);
    return item;
}

void frontier_item_free(struct frontier_item *item) {
    free(item);
}

struct frontier_waiting frontier_item_waiting(const struct frontier_item *item) {
    const struct frontier_url *url = &item->url;
    struct frontier_waiting waiting = {
        .tries = url->tries,
        .is_doubtful = url->is_doubtful,
        .depth = url->depth,
        .sequence = item->sequence,
        .history =
            {
                .visits_count = url->visits_count,
                .changes_count = url->changes_count,
                .last_time_us = url->last_time_us,
                .first_time_us = url->first_time_us,
                .last_status = url->last_status,
                .etag = url->etag,
                .last_modified = url->last_modified,
                .has_digest = url->has_digest,
            },
        .url = url->url,
    };
    memcpy(waiting.history.digest, url->digest, sizeof url->digest);
    return waiting;
}
