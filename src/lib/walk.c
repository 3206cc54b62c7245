#include <stdlib.h>

#include "lib/library.h"
#include "store/instance/merge.h"
#include "web/url/surt.h"
#include "web/url/url.h"

/* One of the two is not NULL. */
struct mnemon_walk {
    struct instance_session *session;
    struct instance_blocks *blocks;
    struct merge *merge;
    struct buf url;
    struct buf content_type;
};

static struct mnemon_walk *new_walk(struct mnemon_session *session) {
    struct mnemon_walk *walk = calloc(1, sizeof *walk);
    if (walk != NULL) {
        walk->session = session->session;
        buf_init(&walk->url, INDEX_URL_SIZE_MAX + 1);
        buf_init(&walk->content_type, INDEX_MIME_SIZE_MAX + 1);
    }
    return walk;
}

void mnemon_walk_close(struct mnemon_walk *walk) {
    if (walk->blocks != NULL) {
        instance_blocks_close(walk->blocks);
    }
    if (walk->merge != NULL) {
        merge_close(walk->merge);
    }
    buf_done(&walk->content_type);
    buf_done(&walk->url);
    free(walk);
}

int mnemon_walk_keys(struct mnemon_session *session, struct mnemon_walk **ret_walk,
                     struct mnemon_error *error) {
    struct err_detail detail = {0};
    struct mnemon_walk *walk = new_walk(session);
    enum err err = walk == NULL ? ERR_MEMORY : instance_blocks_open(session->session, &walk->blocks, &detail);
    if (err != ERR_OK) {
        free(walk);
        return library_fail(error, err, &detail);
    }
    *ret_walk = walk;
    return MNEMON_OK;
}

/* All captures of the URL's SURT. */
static enum err open_captures(struct mnemon_walk *walk, const char *url, struct err_detail *detail) {
    struct canon canon;
    struct buf surt;
    struct buf from;
    struct buf to;
    canon_init(&canon);
    buf_init(&surt, URL_SIZE_MAX + 16);
    buf_init(&from, 2 * URL_SIZE_MAX);
    buf_init(&to, 2 * URL_SIZE_MAX);
    enum err err = canon_run(&canon, bytes_of_string(url), detail);
    if (err == ERR_OK) {
        err = surt_put(&surt, &canon);
    }
    if (err == ERR_OK) {
        index_put_capture_prefix(&from, buf_bytes(&surt), INT64_MIN);
        index_put_capture_prefix(&to, buf_bytes(&surt), INT64_MAX);
        err = from.err == ERR_OK ? to.err : from.err;
    }
    if (err == ERR_OK) {
        err = merge_open(walk->session, buf_bytes(&from), buf_bytes(&to), false, &walk->merge, detail);
    }
    buf_done(&to);
    buf_done(&from);
    buf_done(&surt);
    canon_done(&canon);
    return err;
}

int mnemon_walk_captures(struct mnemon_session *session, const char *url, struct mnemon_walk **ret_walk,
                         struct mnemon_error *error) {
    struct err_detail detail = {0};
    struct mnemon_walk *walk = new_walk(session);
    enum err err = walk == NULL ? ERR_MEMORY : open_captures(walk, url, &detail);
    if (err != ERR_OK) {
        if (walk != NULL) {
            mnemon_walk_close(walk);
        }
        return library_fail(error, err, &detail);
    }
    *ret_walk = walk;
    return MNEMON_OK;
}

static void fill_document(struct mnemon_item *item, const struct key *key, const struct block *block) {
    *item = (struct mnemon_item){.size = block->size, .references = (uint64_t)block->references};
    key_format(key, item->key);
}

static enum err next_key(struct mnemon_walk *walk, struct mnemon_item *item, struct err_detail *detail) {
    struct key key;
    struct block block;
    enum err err = instance_blocks_next(walk->blocks, &key, &block, detail);
    if (err == ERR_OK) {
        fill_document(item, &key, &block);
    }
    return err;
}

static enum err next_capture(struct mnemon_walk *walk, struct mnemon_item *item, struct err_detail *detail) {
    struct capture capture;
    struct key key;
    struct block block;
    enum err found = ERR_NOT_FOUND;
    while (found == ERR_NOT_FOUND) { /* captures whose document has been removed are passed over */
        enum err err = merge_next(walk->merge, &capture, detail);
        if (err != ERR_OK) {
            return err;
        }
        found = instance_locate(walk->session, &capture, &key, &block, detail);
    }
    if (found != ERR_OK) {
        return found;
    }
    fill_document(item, &key, &block);
    buf_clear(&walk->url);
    buf_clear(&walk->content_type);
    buf_put(&walk->url, capture.url);
    buf_put(&walk->content_type, capture.mime);
    item->url = buf_string(&walk->url);
    item->content_type = buf_string(&walk->content_type);
    item->time_us = capture.time_us;
    item->http_status = capture.status;
    return item->url == NULL || item->content_type == NULL ? ERR_MEMORY : ERR_OK;
}

int mnemon_walk_next(struct mnemon_walk *walk, struct mnemon_item *ret_item, struct mnemon_error *error) {
    struct err_detail detail = {0};
    struct mnemon_item item;
    enum err err = walk->blocks != NULL ? next_key(walk, &item, &detail) : next_capture(walk, &item, &detail);
    if (err == ERR_NOT_FOUND) {
        return 0;
    }
    if (err != ERR_OK) {
        return library_fail(error, err, &detail);
    }
    *ret_item = item;
    return 1;
}
