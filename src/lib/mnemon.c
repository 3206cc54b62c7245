#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "store/instance/absent.h"
#include "store/instance/instance.h"
#include "store/instance/merge.h"
#include "web/url/surt.h"
#include "web/url/url.h"
#include <mnemon.h>

/* Thin on purpose: everything is done by store/instance/instance.h; here plain types become ours and back. */
struct mnemon {
    struct instance *instance;
};

struct mnemon_session {
    struct instance *instance;
    struct instance_session *session;
};

/* The public numbers are those of enum err, which are stable too. */
_Static_assert((int)MNEMON_MEMORY == (int)ERR_MEMORY && (int)MNEMON_LIMIT == (int)ERR_LIMIT &&
                   (int)MNEMON_INVALID == (int)ERR_INVALID && (int)MNEMON_NOT_FOUND == (int)ERR_NOT_FOUND &&
                   (int)MNEMON_PERMISSION == (int)ERR_PERMISSION && (int)MNEMON_BUSY == (int)ERR_BUSY &&
                   (int)MNEMON_TIMEOUT == (int)ERR_TIMEOUT &&
                   (int)MNEMON_UNREACHABLE == (int)ERR_UNREACHABLE && (int)MNEMON_IO == (int)ERR_IO &&
                   (int)MNEMON_NO_SPACE == (int)ERR_NO_SPACE && (int)MNEMON_CORRUPT == (int)ERR_CORRUPT,
               "status values are those of base/err.h");
_Static_assert((int)MNEMON_KEY_SIZE == (int)KEY_TEXT_SIZE_MAX, "a key fits");
_Static_assert((int)MNEMON_REGULAR == (int)STORE_REGULAR && (int)MNEMON_COMPARE == (int)STORE_COMPARE &&
                   (int)MNEMON_FORCE_NEW == (int)STORE_FORCE_NEW,
               "modes are those of store/document/document.h");
_Static_assert(sizeof((struct mnemon_error *)0)->text == ERR_TEXT_SIZE_MAX, "a reason fits");

const char *mnemon_version(void) {
    return MNEMON_VERSION;
}

/* Fill *error, unless it is NULL, and return err as a status. */
static int library_fail(struct mnemon_error *error, enum err err, const struct err_detail *detail) {
    if (error != NULL) {
        error->status = err;
        snprintf(error->text, sizeof error->text, "%s", err_detail_text(detail, err));
    }
    return err;
}

/* ---- archives ---- */

static bool is_file(const char *place) {
    struct stat status;
    return stat(place, &status) == 0 && S_ISREG(status.st_mode);
}

int mnemon_open(const char *place, unsigned flags, struct mnemon **ret_archive, struct mnemon_error *error) {
    struct mnemon *archive = calloc(1, sizeof *archive);
    if (archive == NULL) {
        return library_fail(error, ERR_MEMORY, NULL);
    }
    bool has_connector = is_file(place);
    struct instance_config config = {
        .directory = has_connector ? NULL : place,
        .connector = has_connector ? place : NULL,
        .must_exist = (flags & MNEMON_MUST_EXIST) != 0,
    };
    struct err_detail detail = {0};
    enum err err = instance_open(&config, &archive->instance, &detail);
    if (err != ERR_OK) {
        free(archive);
        return library_fail(error, err, &detail);
    }
    *ret_archive = archive;
    return MNEMON_OK;
}

void mnemon_close(struct mnemon *archive) {
    instance_close(archive->instance);
    free(archive);
}

int mnemon_session_open(struct mnemon *archive, struct mnemon_session **ret_session,
                        struct mnemon_error *error) {
    struct mnemon_session *session = calloc(1, sizeof *session);
    struct instance_session *inner = session == NULL ? NULL : instance_session_new(archive->instance);
    if (inner == NULL) {
        free(session);
        return library_fail(error, ERR_MEMORY, NULL);
    }
    session->instance = archive->instance;
    session->session = inner;
    instance_session_hide_witnesses(inner, true);
    *ret_session = session;
    return MNEMON_OK;
}

void mnemon_session_close(struct mnemon_session *session) {
    instance_session_free(session->session);
    free(session);
}

/* ---- documents ---- */

static struct bytes text_or_empty(const char *text) {
    return text == NULL ? bytes_of(NULL, 0) : bytes_of_string(text);
}

static enum err check_document(const struct mnemon_document *document, struct err_detail *detail) {
    if (document->struct_size < sizeof *document) {
        return err_set(detail, ERR_INVALID, "the document was not initialised with MNEMON_DOCUMENT");
    }
    if (document->mode < MNEMON_REGULAR || document->mode > MNEMON_FORCE_NEW) {
        return err_set(detail, ERR_INVALID, "there is no mode %d", document->mode);
    }
    if (document->volume != MNEMON_VOLUME_ANY &&
        (document->volume < 0 || document->volume >= KEY_VOLUMES_MAX)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no volume %d", document->volume);
    }
    return ERR_OK;
}

int mnemon_store(struct mnemon_session *session, const struct mnemon_document *document,
                 struct mnemon_stored *ret_stored, struct mnemon_error *error) {
    struct err_detail detail = {0};
    enum err err = check_document(document, &detail);
    if (err != ERR_OK) {
        return library_fail(error, err, &detail);
    }
    struct document inner = {
        .url = text_or_empty(document->url),
        .time_us = document->time_us != 0 ? document->time_us : clock_wall_us(&clock_system),
        .body = bytes_of(document->data, document->size),
        .content_type = text_or_empty(document->content_type),
    };
    uint16_t volume =
        document->volume == MNEMON_VOLUME_ANY ? INSTANCE_VOLUME_ANY : (uint16_t)document->volume;
    struct stored stored;
    err = instance_put(session->session, &inner, (enum store_mode)document->mode, volume, &stored, &detail);
    if (err != ERR_OK) {
        return library_fail(error, err, &detail);
    }
    key_format(&stored.key, ret_stored->key);
    ret_stored->is_duplicate = stored.is_duplicate ? 1 : 0;
    return MNEMON_OK;
}

static enum err library_read_key(const char *text, struct key *ret_key, struct err_detail *detail) {
    if (!key_parse(bytes_of_string(text), ret_key)) {
        return err_set(detail, ERR_INVALID, "this is not a content key");
    }
    return ERR_OK;
}

int mnemon_retrieve(struct mnemon_session *session, const char *key, const void **ret_data, size_t *ret_size,
                    struct mnemon_error *error) {
    struct err_detail detail = {0};
    struct key parsed;
    struct bytes document = bytes_of(NULL, 0);
    enum err err = library_read_key(key, &parsed, &detail);
    if (err == ERR_OK) {
        err = instance_get(session->session, &parsed, &document, &detail);
    }
    if (err != ERR_OK) {
        return library_fail(error, err, &detail);
    }
    *ret_data = document.data;
    *ret_size = document.size;
    return MNEMON_OK;
}

int mnemon_delete(struct mnemon_session *session, const char *key, struct mnemon_error *error) {
    struct err_detail detail = {0};
    struct key parsed;
    enum err err = library_read_key(key, &parsed, &detail);
    if (err == ERR_OK) {
        err = instance_remove(session->session, &parsed, &detail);
    }
    return err == ERR_OK ? MNEMON_OK : library_fail(error, err, &detail);
}

/* ---- walks ---- */

/* One of the two is not NULL. */
struct mnemon_walk {
    struct instance_session *session;
    struct instance_blocks *blocks;
    struct merge *merge;
    struct absent absent; /* who did not answer it */
    struct buf url;
    struct buf content_type;
};

static struct mnemon_walk *new_walk(struct mnemon_session *session) {
    struct mnemon_walk *walk = calloc(1, sizeof *walk);
    if (walk != NULL) {
        walk->session = session->session;
        instance_session_forget_absent(walk->session);
        buf_init(&walk->url, INDEX_URL_SIZE_MAX + 1);
        buf_init(&walk->content_type, INDEX_MIME_SIZE_MAX + 1);
    }
    return walk;
}

/* Of the session, which other walks may use, too. */
static void note_absent(struct mnemon_walk *walk) {
    const struct absent *absent = instance_session_absent(walk->session);
    if (absent->is_any) {
        absent_add(&walk->absent, bytes_of(absent->text, absent->size));
    }
}

const char *mnemon_walk_unanswered(const struct mnemon_walk *walk) {
    return walk->absent.text;
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
    enum err err =
        walk == NULL ? ERR_MEMORY : instance_blocks_open(session->session, NULL, &walk->blocks, &detail);
    if (err != ERR_OK) {
        free(walk);
        return library_fail(error, err, &detail);
    }
    *ret_walk = walk;
    return MNEMON_OK;
}

/* All captures of the URL's SURT. */
static enum err library_open_captures(struct mnemon_walk *walk, const char *url, struct err_detail *detail) {
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
    enum err err = walk == NULL ? ERR_MEMORY : library_open_captures(walk, url, &detail);
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

static enum err library_next_capture(struct mnemon_walk *walk, struct mnemon_item *item,
                                     struct err_detail *detail) {
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
    enum err err =
        walk->blocks != NULL ? next_key(walk, &item, &detail) : library_next_capture(walk, &item, &detail);
    note_absent(walk);
    if (err == ERR_NOT_FOUND) {
        return 0;
    }
    if (err != ERR_OK) {
        return library_fail(error, err, &detail);
    }
    *ret_item = item;
    return 1;
}

/* ---- what there is ---- */

int mnemon_read_stat(struct mnemon_session *session, struct mnemon_stat *ret_stat,
                     struct mnemon_error *error) {
    (void)error;
    struct mnemon_stat sum = {.volumes_count = instance_volumes_count(session->instance)};
    for (size_t i = 0; i < sum.volumes_count; i++) {
        struct volume_stat stat;
        if (instance_stat(session->session, i, &stat, NULL) != ERR_OK) {
            sum.volumes_down_count++;
            continue;
        }
        sum.documents_count += stat.blocks_count;
        sum.captures_count += stat.captures_count;
        sum.segments_count += stat.segments_count;
        sum.size += stat.size;
        sum.dead_size += stat.dead_size;
        sum.index_size += stat.index_size;
    }
    *ret_stat = sum;
    return MNEMON_OK;
}
