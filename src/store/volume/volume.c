#include "store/volume/volume.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/disk/ballast.h"
#include "store/volume/quota.h"
#include "store/volume/volume_state.h"

enum { DIGEST_BITS_MAX = 8 * KEY_DIGEST_SIZE };

static void volume_set_defaults(struct volume_config *config) {
    if (config->level == 0) {
        config->level = config->framing == PACK_GZIP ? 6 : 3;
    }
    if (config->segment_size_max == 0) {
        config->segment_size_max = UINT64_C(1) << 30;
    }
    if (quota_is_set(config->quota)) {
        uint64_t part = config->quota->size_max / QUOTA_SEGMENT;
        config->segment_size_max = part < config->segment_size_max ? part : config->segment_size_max;
    }
    if (config->free_size_min == 0) {
        config->free_size_min = UINT64_C(64) << 20;
    }
    if (config->digest_bits == 0) {
        config->digest_bits = DIGEST_BITS_MAX;
    }
    if (config->clock == NULL) {
        config->clock = &clock_system;
    }
    ASSERT(config->digest_bits <= DIGEST_BITS_MAX);
    ASSERT(config->vfs != NULL && config->directory != NULL && config->index_directory != NULL);
    ASSERT(config->random.fill != NULL);
}

static enum err volume_lock_directory(struct volume *volume, struct err_detail *detail) {
    enum err err = vfs_make_directory(volume->config.vfs, volume->config.directory);
    char path[SEGMENT_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/lock", volume->config.directory);
    if (err == ERR_OK) {
        err = vfs_lock(volume->config.vfs, path, &volume->lock_file);
    }
    /* A disk that is mounted to be read, or another user's archive: whoever may write it is kept out as long.
     * Without the file nobody has ever written here. */
    if (err == ERR_PERMISSION && vfs_lock_to_read(volume->config.vfs, path, &volume->lock_file) == ERR_BUSY) {
        err = ERR_BUSY;
    }
    if (err == ERR_BUSY) {
        return err_set(detail, err, "%s is in use by another process", volume->config.directory);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %s", volume->config.directory, err_text(err));
}

/* A damaged or unwanted index is thrown away: the segments have everything. */
static enum err volume_open_index(struct volume *volume, bool is_rebuilding, struct volume_recovery *recovery,
                                  struct err_detail *detail) {
    const char *directory = volume->config.index_directory;
    enum err err = is_rebuilding ? ERR_CORRUPT : index_open(directory, &volume->index, detail);
    if (err == ERR_CORRUPT || err == ERR_MISMATCH) { /* mismatch: of another version of mnemon */
        recovery->is_rebuilt = true;
        /* An index that can be read is better than none. */
        err = is_rebuilding ? index_has_room(directory, detail) : ERR_OK;
        if (err == ERR_OK) {
            err = index_destroy(directory, detail);
        }
        if (err == ERR_OK) {
            err = index_open(directory, &volume->index, detail);
        }
    }
    return err == ERR_OK ? ledger_init(&volume->ledger, volume->index) : err;
}

/* The newest segment is written on, or a first one begins. */
static enum err volume_choose_active(struct volume *volume, struct err_detail *detail) {
    struct segment *active = NULL;
    if (volume->segments_count > 0) {
        active = volume->segments[volume->segments_count - 1];
    }
    bool fits = active != NULL && active->framing == volume->config.framing;
    bool has_dictionary = fits && active->has_dictionary;
    if (has_dictionary) {
        enum err err = buf_put(&volume->dictionary_raw, buf_bytes(&active->dictionary_raw));
        if (err != ERR_OK) {
            return err;
        }
    }
    dictionary_init(&volume->dictionary, volume->config.framing == PACK_ZSTD,
                    buf_bytes(&volume->dictionary_raw));
    volume->has_dictionary = true;
    if (!fits) {
        enum err err = volume_add_segment(volume, bytes_of(NULL, 0), &active, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    volume->active = volume->encoding = active;
    return ERR_OK;
}

/* Read what the index missed; where the index contradicts the segments, all of it anew. */
static enum err volume_recover_all(struct volume *volume, struct volume_recovery *recovery,
                                   struct err_detail *detail) {
    enum err err = volume_recover(volume, recovery, detail);
    if (err != ERR_MISMATCH) {
        return err;
    }
    ledger_done(&volume->ledger);
    index_close(volume->index);
    volume->index = NULL;
    err = volume_open_index(volume, true, recovery, detail);
    return err == ERR_OK ? volume_recover(volume, recovery, detail) : err;
}

/* What only writers need: a mirrored volume has none. */
static enum err volume_prepare_to_write(struct volume *volume, struct err_detail *detail) {
    volume->blocks = block_cache_new();
    volume->origins = origins_new();
    if (volume->blocks == NULL || volume->origins == NULL) {
        return ERR_MEMORY;
    }
    enum err err = volume_choose_active(volume, detail);
    return err == ERR_OK ? volume_start_committer(volume) : err;
}

static enum err volume_open_to_write(struct volume *volume, struct volume_recovery *recovery,
                                     struct err_detail *detail) {
    enum err err = volume_open_index(volume, volume->config.is_rebuilding, recovery, detail);
    if (err == ERR_OK) {
        err = volume_open_segments(volume, recovery, detail);
    }
    if (err == ERR_OK) {
        err = volume_recover_all(volume, recovery, detail);
    }
    return err == ERR_OK && !volume->config.is_mirrored ? volume_prepare_to_write(volume, detail) : err;
}

/* Give back what a failed opening has, up to the lock. */
static void volume_close_parts(struct volume *volume) {
    volume_close_segments(volume);
    ledger_done(&volume->ledger);
    volume->ledger = (struct ledger){0};
    if (volume->index != NULL) {
        index_close(volume->index);
        volume->index = NULL;
    }
    if (volume->has_dictionary) {
        dictionary_done(&volume->dictionary);
        volume->has_dictionary = false;
    }
    buf_clear(&volume->dictionary_raw);
    volume->is_dictionary_new = false;
    origins_free(volume->origins);
    volume->origins = NULL;
    block_cache_free(volume->blocks);
    volume->blocks = NULL;
}

/*
 * The disk has no room for what opening writes: the index shows what it knows. What lies behind it in the
 * segments, torn or whole, waits there for an opening that can enter it.
 */
static enum err volume_open_to_read(struct volume *volume, enum err why, struct volume_recovery *recovery,
                                    struct err_detail *detail) {
    volume->refuses = why;
    volume->load.err = why;
    *recovery = (struct volume_recovery){.refuses = why};
    enum err err = index_open_to_read(volume->config.index_directory, why, &volume->index, detail);
    if (err == ERR_OK) {
        err = ledger_init(&volume->ledger, volume->index);
    }
    if (err == ERR_OK) {
        err = volume_open_segments(volume, recovery, detail);
    }
    if (err == ERR_OK && volume->segments_count == 0) {
        return ERR_NOT_FOUND; /* nothing to read: it was to be made */
    }
    return err == ERR_OK ? volume_leave_missed(volume, &recovery->missed_size) : err;
}

static enum err volume_open_parts(struct volume *volume, struct volume_recovery *recovery,
                                  struct err_detail *detail) {
    bool is_mirrored = volume->config.is_mirrored;
    enum err err = is_mirrored ? ERR_OK : volume_lock_directory(volume, detail);
    if (err != ERR_OK && err != ERR_PERMISSION) {
        return err;
    }
    err = err == ERR_OK ? volume_open_to_write(volume, recovery, detail) : err;
    if (err == ERR_NO_SPACE && !is_mirrored && ballast_give_up(volume->config.index_directory)) {
        volume_close_parts(volume);
        *recovery = (struct volume_recovery){0};
        err = volume_open_to_write(volume, recovery, detail);
    }
    if (err == ERR_OK && !is_mirrored) {
        ballast_make(volume->config.index_directory);
    }
    bool may_be_read = (err == ERR_NO_SPACE || err == ERR_PERMISSION) && !is_mirrored;
    if (!may_be_read || volume->config.is_rebuilding) {
        return err;
    }
    volume_close_parts(volume);
    enum err opened = volume_open_to_read(volume, err, recovery, NULL);
    return opened == ERR_OK ? ERR_OK : err; /* the first one says what has to be done */
}

enum err volume_open(const struct volume_config *config, struct volume **ret_volume,
                     struct volume_recovery *ret_recovery, struct err_detail *detail) {
    struct volume *volume = calloc(1, sizeof *volume);
    if (volume == NULL) {
        return ERR_MEMORY;
    }
    volume->config = *config;
    volume_set_defaults(&volume->config);
    pthread_rwlock_init(&volume->segments_lock, NULL);
    buf_init(&volume->dictionary_raw, ZDICT_SIZE_MAX);
    encoders_init(&volume->encoders, volume->config.level, volume->config.random);
    decoders_init(&volume->decoders);
    pthread_mutex_init(&volume->ledger_lock, NULL);
    recent_init(&volume->recent);
    pthread_mutex_init(&volume->lock, NULL);
    pthread_cond_init(&volume->has_work, NULL);
    pthread_cond_init(&volume->has_room, NULL);
    pthread_cond_init(&volume->has_done, NULL);
    struct volume_recovery recovery = {0};
    enum err err = volume_open_parts(volume, &recovery, detail);
    if (err != ERR_OK) {
        volume_close(volume);
        return err;
    }
    volume_measure(volume);
    *ret_volume = volume;
    *ret_recovery = recovery;
    return ERR_OK;
}

void volume_close(struct volume *volume) {
    volume_stop_committer(volume);
    ASSERT(volume->items_taken_count == 0);
    volume_close_parts(volume);
    buf_done(&volume->dictionary_raw);
    encoders_done(&volume->encoders);
    decoders_done(&volume->decoders);
    if (volume->lock_file.vfs != NULL) {
        vfs_close(&volume->lock_file);
    }
    pthread_cond_destroy(&volume->has_done);
    pthread_cond_destroy(&volume->has_room);
    pthread_cond_destroy(&volume->has_work);
    pthread_mutex_destroy(&volume->lock);
    pthread_mutex_destroy(&volume->ledger_lock);
    recent_done(&volume->recent);
    pthread_rwlock_destroy(&volume->segments_lock);
    free(volume);
}

void volume_stat(struct volume *volume, struct volume_stat *ret_stat) {
    struct volume_stat stat = {0};
    pthread_rwlock_rdlock(&volume->segments_lock);
    stat.segments_count = volume->segments_count;
    for (size_t i = 0; i < volume->segments_count; i++) {
        struct index_segment segment;
        if (index_find_segment(volume->index, volume->segments[i]->number, &segment) == ERR_OK) {
            stat.size += segment.size;
            stat.dead_size += segment.dead_size;
        }
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    struct index_counts counts;
    index_counts(volume->index, &counts);
    stat.blocks_count = counts.blocks_count;
    stat.captures_count = counts.captures_count;
    stat.index_size = counts.disk_size;
    *ret_stat = stat;
}

void volume_load(struct volume *volume, struct volume_load *ret_load) {
    pthread_mutex_lock(&volume->lock);
    *ret_load = volume->load;
    ret_load->taken_count = volume->items_taken_count;
    ret_load->queue_size = volume->queue_size;
    pthread_mutex_unlock(&volume->lock);
}

const struct index *volume_index(const struct volume *volume) {
    return volume->index;
}

void volume_shorten(const struct volume *volume, const uint8_t sha256[KEY_DIGEST_SIZE],
                    uint8_t digest[KEY_DIGEST_SIZE]) {
    key_shorten(sha256, volume->config.digest_bits, digest);
}

enum err volume_holds(const struct volume *volume, const struct document_sum *sum, bool *ret_holds) {
    uint8_t digest[KEY_DIGEST_SIZE];
    enum err err = ERR_OK;
    bool holds = false;
    volume_shorten(volume, sum->digest, digest);
    for (uint16_t number = 0; number < UINT16_MAX && err == ERR_OK && !holds; number++) {
        struct block block;
        err = index_probe_block(volume->index, digest, number, &block);
        holds =
            err == ERR_OK && block.references > 0 && block.location.segment != 0 && block.size == sum->size;
    }
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        *ret_holds = holds;
        err = ERR_OK;
    }
    return err;
}
