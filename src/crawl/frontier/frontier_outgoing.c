#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"

static struct bytes outgoing_key_of(const uint64_t *fingerprint) {
    return bytes_of(fingerprint, sizeof *fingerprint);
}

/* ---- putting ---- */

bool frontier_outgoing_was_sent(const struct frontier *frontier, uint64_t fingerprint) {
    return frontier->sent != NULL && frontier->sent[fingerprint % FRONTIER_SENT_COUNT] == fingerprint;
}

/* Without memory for it the link may go out again. */
static void outgoing_note_sent(struct frontier *frontier, uint64_t fingerprint) {
    if (frontier->sent == NULL) {
        frontier->sent = calloc(FRONTIER_SENT_COUNT, sizeof *frontier->sent);
    }
    if (frontier->sent != NULL) {
        frontier->sent[fingerprint % FRONTIER_SENT_COUNT] = fingerprint;
    }
}

void frontier_outgoing_put(struct frontier *frontier, const struct frontier_link *link, uint64_t fingerprint,
                           bool is_handed_on) {
    if (url_href_has_userinfo(link->url)) {
        return; /* from a frontier of an older version: no password leaves this node */
    }
    bool was_sent = !is_handed_on && frontier_outgoing_was_sent(frontier, fingerprint);
    if (was_sent || map_get(&frontier->outgoing, outgoing_key_of(&fingerprint)) != NULL) {
        return; /* menus are on every page of a site */
    }
    if (map_reserve(&frontier->outgoing, frontier->outgoing.count + 1) != ERR_OK) {
        frontier->outgoing_lost_count++;
        return;
    }
    uint8_t value[FRONTIER_CODE_SMALL_SIZE_MAX];
    map_put(&frontier->outgoing, outgoing_key_of(&fingerprint));
    frontier_queue_put(frontier, frontier_code_outgoing_key(frontier->value, link->place, link->url),
                       frontier_code_outgoing(value, link->priority, link->depth));
    frontier->has_outgoing = true;
    outgoing_note_sent(frontier, fingerprint);
}

void frontier_outgoing_forget_sent(struct frontier *frontier) {
    if (frontier->sent != NULL) {
        memset(frontier->sent, 0, FRONTIER_SENT_COUNT * sizeof *frontier->sent);
    }
}

enum err frontier_outgoing_load(struct frontier *frontier, struct bytes key, struct bytes value) {
    struct frontier_outgoing link;
    enum err err = frontier_code_read_outgoing(key, value, &link);
    if (err != ERR_OK || url_href_has_userinfo(link.url)) {
        return err; /* what is not in the map is not sent */
    }
    uint64_t fingerprint = seen_fingerprint(link.url, frontier->key);
    err = map_reserve(&frontier->outgoing, frontier->outgoing.count + 1);
    if (err == ERR_OK) {
        map_put(&frontier->outgoing, outgoing_key_of(&fingerprint));
    }
    return err;
}

/* ---- reading ---- */

/* One that was dropped may still be on disk. */
static bool outgoing_has(struct frontier *frontier, struct bytes url) {
    uint64_t fingerprint = seen_fingerprint(url, frontier->key);
    pthread_mutex_lock(&frontier->lock);
    bool is_so = map_get(&frontier->outgoing, outgoing_key_of(&fingerprint)) != NULL;
    pthread_mutex_unlock(&frontier->lock);
    return is_so;
}

/* What is gathered: of the links' URLs only the sizes are good until the last is there. */
struct gathering {
    struct buf *work;
    struct frontier_outgoing *links;
    size_t count;
    size_t count_max;
    bool is_full;
};

static enum err outgoing_gather(struct frontier *frontier, struct gathering *gathering, struct bytes key,
                                struct bytes value) {
    struct frontier_outgoing link;
    enum err err = frontier_code_read_outgoing(key, value, &link);
    if (err != ERR_OK || !outgoing_has(frontier, link.url)) {
        return err;
    }
    if (gathering->work->size + link.url.size > gathering->work->size_max) {
        gathering->is_full = true;
        return ERR_OK;
    }
    err = buf_put(gathering->work, link.url);
    if (err == ERR_OK) {
        gathering->links[gathering->count++] = link;
        gathering->is_full = gathering->count == gathering->count_max;
    }
    return err;
}

/* Those from the one key to before the other. */
static enum err outgoing_read_part(struct frontier *frontier, struct gathering *gathering, struct bytes from,
                                   struct bytes to) {
    struct kv_iterator iterator;
    enum err err = kv_iterator_init(&iterator, frontier->kv, 0, KV_WALK, from, to, false);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && !gathering->is_full) {
        err = kv_iterator_next(&iterator, NULL);
        if (err == ERR_OK) {
            err = outgoing_gather(frontier, gathering, iterator.key, iterator.value);
        }
    }
    kv_iterator_done(&iterator);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* On the disk, or on the way there. */
static bool outgoing_has_any(struct frontier *frontier) {
    pthread_mutex_lock(&frontier->lock);
    bool is_any = frontier->outgoing.count > 0;
    pthread_mutex_unlock(&frontier->lock);
    return is_any;
}

enum err frontier_read_outgoing(struct frontier *frontier, const uint8_t after_position[ROUTE_POSITION_SIZE],
                                struct bytes after_url, struct buf *work, struct frontier_outgoing *ret_links,
                                size_t count_max, size_t *ret_count) {
    uint8_t text[FRONTIER_CODE_OUTGOING_KEY_SIZE_MAX + 1];
    struct gathering gathering = {.work = work, .links = ret_links, .count_max = count_max};
    struct bytes after = frontier_code_outgoing_key(text, after_position, after_url);
    text[after.size] = 0; /* the first key that is greater */
    struct bytes from = bytes_of(text, after.size + 1);
    buf_clear(work);
    gathering.is_full = count_max == 0;
    enum err err = outgoing_read_part(frontier, &gathering, from, BYTES("p"));
    if (err == ERR_OK) {
        err = outgoing_read_part(frontier, &gathering, BYTES("o"), from);
    }
    size_t offset = 0;
    for (size_t i = 0; i < gathering.count; i++) {
        ret_links[i].url.data = work->data + offset;
        offset += ret_links[i].url.size;
    }
    *ret_count = err == ERR_OK ? gathering.count : 0;
    bool is_none = err == ERR_OK && gathering.count == 0 && count_max > 0;
    return is_none && outgoing_has_any(frontier) ? ERR_BUSY : err;
}

/* ---- dropping ---- */

void frontier_drop_outgoing(struct frontier *frontier, const struct frontier_outgoing *links, size_t count) {
    pthread_mutex_lock(&frontier->lock);
    size_t size_before = kv_batch_size(&frontier->writes);
    for (size_t i = 0; i < count; i++) {
        uint64_t fingerprint = seen_fingerprint(links[i].url, frontier->key);
        if (map_remove(&frontier->outgoing, outgoing_key_of(&fingerprint))) {
            kv_batch_remove(&frontier->writes, 0,
                            frontier_code_outgoing_key(frontier->value, links[i].place, links[i].url));
        }
    }
    frontier_queue_note_size(frontier, size_before);
    pthread_mutex_unlock(&frontier->lock);
}
