#include "store/backend/backend_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/index/index_cursor.h"
#include "store/volume/volume_request.h"

enum { PATH_SIZE_MAX = 4096 };

struct backend_local {
    struct backend backend; /* first: the functions find the rest from here */
    struct vfs_posix vfs;
    struct volume *volume;
    char index[PATH_SIZE_MAX];
};

struct cursor_local {
    struct backend_cursor cursor; /* first */
    struct index_cursor *walk;
};

static struct local_session *local_of(struct backend_session *session) {
    return (struct local_session *)session;
}

static enum err local_explain(enum err err, struct err_detail *detail) {
    return err == ERR_OK || err == ERR_NOT_FOUND ? err : err_set(detail, err, "%s", err_text(err));
}

/* ---- sessions ---- */

static enum err local_open_session(struct backend *backend, struct backend_session **ret_session) {
    struct local_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return ERR_MEMORY;
    }
    local_session_init(session, backend, ((struct backend_local *)backend)->volume);
    *ret_session = &session->session;
    return ERR_OK;
}

void local_session_init(struct local_session *session, struct backend *backend, struct volume *volume) {
    *session = (struct local_session){.session = {.backend = backend}, .volume = volume};
}

void local_session_done(struct local_session *session) {
    volume_writer_free(session->writer);
    volume_reader_free(session->reader);
    volume_requests_free(session->requests);
}

static void local_close_session(struct backend_session *session) {
    local_session_done(local_of(session));
    free(session);
}

static struct volume_writer *local_writer_of(struct local_session *session) {
    if (session->writer == NULL) {
        session->writer = volume_writer_new(session->volume);
    }
    return session->writer;
}

static struct volume_reader *local_reader_of(struct local_session *session) {
    if (session->reader == NULL) {
        session->reader = volume_reader_new(session->volume);
    }
    return session->reader;
}

/* ---- documents ---- */

/* The index is asked when the answer is wanted: backends that are far away have their question by then. */
static enum err local_ask(struct backend_session *session, const struct document_sum *sum) {
    local_of(session)->asked = *sum;
    return ERR_OK;
}

static enum err local_answer(struct backend_session *session, bool *ret_holds, struct err_detail *detail) {
    return local_explain(volume_holds(local_of(session)->volume, &local_of(session)->asked, ret_holds),
                         detail);
}

static enum err local_put(struct backend_session *session, const struct document *document,
                          enum store_mode mode, struct stored *ret_stored, struct err_detail *detail) {
    struct volume_writer *writer = local_writer_of(local_of(session));
    return writer == NULL ? ERR_MEMORY : volume_put(writer, document, mode, ret_stored, detail);
}

static enum err local_submit(struct backend_session *session, const struct document *document,
                             enum store_mode mode, backend_done *done, void *context,
                             struct err_detail *detail) {
    struct volume_writer *writer = local_writer_of(local_of(session));
    return writer == NULL ? ERR_MEMORY : volume_submit(writer, document, mode, done, context, detail);
}

static enum err local_remove_key(struct backend_session *session, const struct key *key,
                                 struct err_detail *detail) {
    struct volume_writer *writer = local_writer_of(local_of(session));
    return writer == NULL ? ERR_MEMORY : volume_remove(writer, key, detail);
}

static enum err local_purge(struct backend_session *session, const struct capture *captures, size_t count,
                            size_t *ret_count, struct err_detail *detail) {
    struct volume_writer *writer = local_writer_of(local_of(session));
    return writer == NULL ? ERR_MEMORY : volume_purge(writer, captures, count, ret_count, detail);
}

static enum err local_get(struct backend_session *session, const struct key *key, struct bytes *ret_document,
                          struct err_detail *detail) {
    struct volume_reader *reader = local_reader_of(local_of(session));
    return reader == NULL ? ERR_MEMORY : volume_get(reader, key, ret_document, detail);
}

static enum err local_get_record(struct backend_session *session, const struct location *location,
                                 struct bytes *ret_record, struct err_detail *detail) {
    struct volume_reader *reader = local_reader_of(local_of(session));
    if (reader == NULL) {
        return ERR_MEMORY;
    }
    return session->is_brief ? volume_get_brief_record(reader, location, ret_record, detail)
                             : volume_get_record(reader, location, ret_record, detail);
}

static enum err local_get_request(struct backend_session *generic, const struct location *location,
                                  struct bytes *ret_request, struct err_detail *detail) {
    struct local_session *session = local_of(generic);
    if (session->requests == NULL) {
        session->requests = volume_requests_new(session->volume);
    }
    return session->requests == NULL ? ERR_MEMORY
                                     : volume_requests_find(session->requests, location, ret_request, detail);
}

/* ---- the index ---- */

static enum err local_find_block(struct backend_session *session, const uint8_t digest[KEY_DIGEST_SIZE],
                                 uint16_t number, struct block *ret_block, struct err_detail *detail) {
    struct block block;
    enum err err = index_find_block(volume_index(local_of(session)->volume), digest, number, &block);
    if (err == ERR_OK && block.references <= 0) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return local_explain(err, detail);
}

static enum err local_open_cursor(struct backend_session *session, enum err err, struct index_cursor *walk,
                                  struct backend_cursor **ret_cursor, struct err_detail *detail) {
    if (err != ERR_OK) {
        return local_explain(err, detail);
    }
    struct cursor_local *cursor = malloc(sizeof *cursor);
    if (cursor == NULL) {
        index_cursor_close(walk);
        return ERR_MEMORY;
    }
    *cursor = (struct cursor_local){.cursor = {.session = session}, .walk = walk};
    local_of(session)->cursors_count++;
    *ret_cursor = &cursor->cursor;
    return ERR_OK;
}

static enum err local_open_captures(struct backend_session *session, struct bytes from, struct bytes to,
                                    bool in_reverse, struct backend_cursor **ret_cursor,
                                    struct err_detail *detail) {
    struct index_cursor *walk = NULL;
    enum err err = index_cursor_open(volume_index(local_of(session)->volume), from, to, in_reverse, &walk);
    return local_open_cursor(session, err, walk, ret_cursor, detail);
}

static enum err local_next_capture(struct backend_cursor *cursor, struct capture *ret_capture,
                                   struct err_detail *detail) {
    return local_explain(index_cursor_next(((struct cursor_local *)cursor)->walk, ret_capture), detail);
}

static enum err local_open_blocks(struct backend_session *session, struct bytes from,
                                  struct backend_cursor **ret_cursor, struct err_detail *detail) {
    struct index_cursor *walk = NULL;
    enum err err = index_blocks_open_at(volume_index(local_of(session)->volume), from, &walk);
    return local_open_cursor(session, err, walk, ret_cursor, detail);
}

static enum err local_next_block(struct backend_cursor *cursor, struct key *ret_key, struct block *ret_block,
                                 struct err_detail *detail) {
    struct key key = {.volume = cursor->session->backend->number};
    struct block block;
    enum err err;
    do {
        err = index_blocks_next(((struct cursor_local *)cursor)->walk, key.digest, &key.number, &block);
    } while (err == ERR_OK && block.references <= 0);
    if (err == ERR_OK) {
        *ret_key = key;
        *ret_block = block;
    }
    return local_explain(err, detail);
}

static void local_close_cursor(struct backend_cursor *cursor) {
    local_of(cursor->session)->cursors_count--;
    index_cursor_close(((struct cursor_local *)cursor)->walk);
    free(cursor);
}

static void local_drain(struct backend *backend) {
    volume_drain(backend_local_volume(backend));
}

static enum err local_stat_volume(struct backend_session *session, struct volume_stat *ret_stat,
                                  struct err_detail *detail) {
    (void)detail;
    volume_stat(local_of(session)->volume, ret_stat);
    return ERR_OK;
}

/* ---- opening ---- */

static void local_close_backend(struct backend *generic) {
    struct backend_local *backend = (struct backend_local *)generic;
    volume_close(backend->volume);
    vfs_posix_done(&backend->vfs);
    free(backend);
}

const struct backend_table backend_local_table = {
    .close = local_close_backend,
    .session_open = local_open_session,
    .session_close = local_close_session,
    .ask = local_ask,
    .answer = local_answer,
    .put = local_put,
    .submit = local_submit,
    .remove = local_remove_key,
    .purge = local_purge,
    .get = local_get,
    .get_record = local_get_record,
    .get_request = local_get_request,
    .find_block = local_find_block,
    .captures_open = local_open_captures,
    .captures_next = local_next_capture,
    .blocks_open = local_open_blocks,
    .blocks_next = local_next_block,
    .cursor_close = local_close_cursor,
    .drain = local_drain,
    .stat = local_stat_volume,
};

/* The index makes its own directory, but not those above it. */
static enum err local_make_parent(const char *path, struct err_detail *detail) {
    char parent[PATH_SIZE_MAX];
    struct vfs_posix vfs;
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent) {
        return ERR_OK;
    }
    *slash = '\0';
    enum err err = vfs_posix_init(&vfs, parent, detail);
    if (err == ERR_OK) {
        vfs_posix_done(&vfs);
    }
    return err;
}

static enum err local_open_volume(struct backend_local *backend, const struct backend_local_config *config,
                                  struct volume_recovery *ret_recovery, struct err_detail *detail) {
    int size = snprintf(backend->index, sizeof backend->index, "%s", config->index);
    if (size >= (int)sizeof backend->index || strlen(config->path) >= PATH_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "the path of volume %u is too long", config->volume.number);
    }
    if (!config->is_made && access(config->path, F_OK) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "there is no directory %s", config->path);
    }
    enum err err = vfs_posix_init(&backend->vfs, config->path, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct volume_config volume = config->volume;
    volume.vfs = &backend->vfs.vfs;
    volume.directory = config->mirrored != NULL ? config->mirrored : ".";
    volume.is_mirrored = config->mirrored != NULL;
    volume.index_directory = backend->index;
    volume.framing = PACK_ZSTD;
    volume.random = warc_random_system;
    err = config->is_made ? local_make_parent(config->index, detail) : ERR_OK;
    if (err == ERR_OK) {
        err = volume_open(&volume, &backend->volume, ret_recovery, detail);
    }
    if (err != ERR_OK) {
        vfs_posix_done(&backend->vfs);
    }
    return err == ERR_BUSY ? err_set(detail, err, "%s is in use by another process", config->path) : err;
}

enum err backend_local_open(const struct backend_local_config *config, struct backend **ret_backend,
                            struct volume_recovery *ret_recovery, struct err_detail *detail) {
    struct backend_local *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        return ERR_MEMORY;
    }
    backend->backend = (struct backend){.table = &backend_local_table, .number = config->volume.number};
    enum err err = local_open_volume(backend, config, ret_recovery, detail);
    if (err != ERR_OK) {
        free(backend);
        return err;
    }
    *ret_backend = &backend->backend;
    return ERR_OK;
}

struct volume *backend_local_volume(struct backend *backend) {
    ASSERT(backend->table == &backend_local_table);
    return ((struct backend_local *)backend)->volume;
}

/* ---- what the table does not have ---- */

static struct local_session *local_checked(struct backend_session *session) {
    ASSERT(session->backend->table == &backend_local_table);
    return local_of(session);
}

enum err backend_local_remove_capture(struct backend_session *session, const struct capture *capture,
                                      struct err_detail *detail) {
    struct volume_writer *writer = local_writer_of(local_checked(session));
    return writer == NULL ? ERR_MEMORY : volume_remove_capture(writer, capture, detail);
}

enum err backend_local_repair(struct backend_session *session, const struct key *key,
                              const struct document *document, bool is_elsewhere, bool *ret_is_repaired,
                              struct err_detail *detail) {
    struct volume_writer *writer = local_writer_of(local_checked(session));
    return writer == NULL ? ERR_MEMORY
                          : volume_repair(writer, key, document, is_elsewhere, ret_is_repaired, detail);
}
