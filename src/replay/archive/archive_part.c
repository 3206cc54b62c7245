#include <stdlib.h>

#include "replay/archive/archive_state.h"

enum {
    KEPT_SIZE_MAX = 1 << 20,       /* of a record, in the pool, by each visit */
    LARGE_SIZE_MAX = 512 << 20,    /* of a record that is kept for whoever asks for more of it */
    LARGE_FRAME_SIZE_MIN = 1 << 16 /* shorter frames are soon read again */
};

static struct archive_part *part_new(struct archive *archive) {
    struct archive_part *part = calloc(1, sizeof *part);
    if (part == NULL) {
        return NULL;
    }
    part->archive = archive;
    scratch_init(&part->chunks, archive->scratch_directory, SCRATCH_MEMORY_MAX, VOLUME_DOCUMENT_SIZE_MAX);
    part->session = instance_session_new(archive->instance);
    if (record_init(&part->record) != ERR_OK || part->session == NULL) {
        archive_part_free(part);
        return NULL;
    }
    instance_session_set_guest(part->session, true); /* what was found anywhere can be opened */
    return part;
}

void archive_part_free(struct archive_part *part) {
    if (part == NULL) {
        return;
    }
    record_done(&part->record);
    scratch_done(&part->chunks);
    if (part->session != NULL) {
        instance_session_free(part->session);
    }
    free(part);
}

/*
 * Videos are asked for in many ranges: the record stays as it was read, for the next of them. Not so that of
 * an archive of others: it would keep an index open that may have been replaced long ago.
 */
void archive_part_rest(struct archive_part **part, struct archive *archive) {
    if (*part == NULL) {
        return;
    }
    if ((*part)->record.body.size <= KEPT_SIZE_MAX) {
        (*part)->is_read = false;
        (*part)->record.body = bytes_of(NULL, 0);
        instance_session_set_mirrored((*part)->session, false);
        return;
    }
    struct archive_part *old = *part;
    if (old->is_read && old->record.body.size <= LARGE_SIZE_MAX && !instance_is_mirrored(old->volume)) {
        pthread_mutex_lock(&archive->lock);
        struct archive_part **slot = &archive->large[archive->large_next++ % ARCHIVE_LARGE_COUNT];
        old = *slot;
        *slot = *part;
        pthread_mutex_unlock(&archive->lock);
    }
    *part = NULL;
    archive_part_free(old);
}

static bool is_same(const struct archive_part *part, uint16_t volume, const struct location *location,
                    const uint8_t digest[KEY_DIGEST_SIZE]) {
    return part != NULL && part->is_read && part->volume == volume &&
           part->location.segment == location->segment && part->location.offset == location->offset &&
           part->location.length == location->length &&
           memcmp(part->digest, digest, KEY_DIGEST_SIZE) == 0; /* compaction uses numbers again */
}

/* Somebody has read it before, and nobody has it now. */
static bool take_large(struct archive_part **part, struct archive *archive, uint16_t volume,
                       const struct location *location, const uint8_t digest[KEY_DIGEST_SIZE]) {
    struct archive_part *old = NULL;
    bool is_found = false;
    pthread_mutex_lock(&archive->lock);
    for (size_t i = 0; i < ARCHIVE_LARGE_COUNT && !is_found; i++) {
        if (is_same(archive->large[i], volume, location, digest)) {
            old = *part;
            *part = archive->large[i];
            archive->large[i] = NULL;
            is_found = true;
        }
    }
    pthread_mutex_unlock(&archive->lock);
    archive_part_free(old);
    return is_found;
}

static enum err undo_chunks(struct archive_part *part) {
    struct chunked chunked;
    struct bytes input = part->record.body;
    struct bytes piece;
    scratch_clear(&part->chunks);
    chunked_start(&chunked, HTTP_RULES_RECORDED);
    enum err err = ERR_OK;
    while (err == ERR_OK && chunked_next(&chunked, &input, &piece)) {
        err = scratch_put(&part->chunks, piece);
    }
    if (err == ERR_OK && chunked_finish(&chunked, &piece)) {
        err = scratch_put(&part->chunks, piece);
    }
    return err == ERR_OK ? scratch_bytes(&part->chunks, &part->document) : err;
}

enum err archive_part_read(struct archive_part **ret_part, struct archive *archive, uint16_t volume,
                           const struct location *location, const uint8_t digest[KEY_DIGEST_SIZE],
                           struct err_detail *detail) {
    if (location->length >= LARGE_FRAME_SIZE_MIN && take_large(ret_part, archive, volume, location, digest)) {
        return ERR_OK;
    }
    if (*ret_part == NULL && (*ret_part = part_new(archive)) == NULL) {
        return ERR_MEMORY;
    }
    struct archive_part *part = *ret_part;
    part->is_read = false;
    part->record.body = bytes_of(NULL, 0);
    instance_session_set_mirrored(part->session, true);
    enum err err = record_read(&part->record, part->session, volume, location, detail);
    if (err != ERR_OK) {
        return err;
    }
    part->document = part->record.body;
    if (part->record.head.size > 0 && http_head_is_chunked(&part->record.payload.head)) {
        err = undo_chunks(part);
    }
    part->is_read = err == ERR_OK;
    part->volume = volume;
    part->location = *location;
    memcpy(part->digest, digest, sizeof part->digest);
    return err;
}
