#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/volume/volume_state.h"
#include "warc/warc_writer.h"

/* Index of the first segment whose number is not below this one. With segments_lock. */
static size_t segments_segment_index(const struct volume *volume, uint32_t number) {
    size_t low = 0;
    size_t high = volume->segments_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (volume->segments[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct segment *volume_hold_from(struct volume *volume, uint32_t number) {
    struct segment *found = NULL;
    pthread_rwlock_rdlock(&volume->segments_lock);
    size_t index = segments_segment_index(volume, number);
    if (index < volume->segments_count) {
        found = volume->segments[index];
        atomic_fetch_add_explicit(&found->holders_count, 1, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    return found;
}

void volume_release(struct segment *segment) {
    atomic_fetch_sub_explicit(&segment->holders_count, 1, memory_order_release);
}

enum err volume_hold(struct volume *volume, uint32_t number, struct segment **ret_segment) {
    struct segment *segment = volume_hold_from(volume, number);
    if (segment != NULL && segment->number == number) {
        *ret_segment = segment;
        return ERR_OK;
    }
    if (segment != NULL) {
        volume_release(segment);
    }
    return ERR_NOT_FOUND;
}

enum pack_framing volume_framing(struct volume *volume, uint32_t number) {
    struct segment *segment;
    if (volume_hold(volume, number, &segment) != ERR_OK) {
        return volume->config.framing;
    }
    enum pack_framing framing = segment->framing;
    volume_release(segment);
    return framing;
}

/* Make the segment known to readers; it is the volume's from then on. */
static enum err segments_insert_segment(struct volume *volume, struct segment *take_segment) {
    enum err err = ERR_OK;
    pthread_rwlock_wrlock(&volume->segments_lock);
    if (volume->segments_count == volume->segments_max) {
        size_t grown = volume->segments_max == 0 ? 64 : volume->segments_max * 2;
        struct segment **segments = reallocarray(volume->segments, grown, sizeof(struct segment *));
        if (segments == NULL || grown > VOLUME_SEGMENTS_MAX) {
            err = segments == NULL ? ERR_MEMORY : ERR_LIMIT;
        }
        if (segments != NULL) {
            volume->segments = segments;
            volume->segments_max = err == ERR_OK ? grown : volume->segments_max;
        }
    }
    if (err == ERR_OK) {
        size_t index = segments_segment_index(volume, take_segment->number);
        size_t behind = volume->segments_count - index;
        memmove(&volume->segments[index + 1], &volume->segments[index], behind * sizeof(struct segment *));
        volume->segments[index] = take_segment;
        volume->segments_count++;
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    if (err != ERR_OK) {
        segment_done(take_segment);
        free(take_segment);
    }
    return err;
}

/* Another node's, or on a disk that is full: no file is changed or removed. */
static bool segments_are_only_read(const struct volume *volume) {
    return volume->config.is_mirrored || volume->refuses != ERR_OK;
}

/* The names of a directory that are segments'. */
struct listing {
    struct volume *volume;
    struct volume_recovery *recovery;
    struct err_detail *detail;
    enum err err;
};

static enum err segments_open_file(struct volume *volume, const char *name, struct segment **ret_segment,
                                   struct err_detail *detail) {
    const struct volume_config *config = &volume->config;
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        return ERR_MEMORY;
    }
    enum err err = segment_open(segment, config->vfs, config->directory, name, config->level,
                                segments_are_only_read(volume) ? 0 : VFS_WRITE, detail);
    if (err != ERR_OK) {
        free(segment);
        return err;
    }
    *ret_segment = segment;
    return ERR_OK;
}

static enum err segments_open_one(struct volume *volume, const char *name, struct err_detail *detail) {
    struct segment *segment;
    enum err err = segments_open_file(volume, name, &segment, detail);
    return err == ERR_OK ? segments_insert_segment(volume, segment) : err;
}

static enum err segments_open_of_mirrored(struct listing *listing, const char *name) {
    struct volume *volume = listing->volume;
    if (volume->segments_count == VOLUME_MIRRORED_SEGMENTS_MAX) {
        return err_set(listing->detail, ERR_LIMIT, "more than %d segments", VOLUME_MIRRORED_SEGMENTS_MAX);
    }
    enum err err = segments_open_one(volume, name, listing->detail);
    if (!segment_is_damage(err)) {
        return err;
    }
    volume_note_damage(listing->recovery, err, listing->detail);
    return ERR_OK;
}

/* A segment that was being made when the process ended. */
static enum err segments_remove_temporary(struct volume *volume, const char *name) {
    char path[SEGMENT_PATH_SIZE_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", volume->config.directory, name);
    return size < (int)sizeof path ? vfs_unlink(volume->config.vfs, path) : ERR_LIMIT;
}

static void segments_visit_name(void *context, const char *name) {
    struct listing *listing = context;
    uint32_t number;
    enum pack_framing framing;
    if (listing->err != ERR_OK) {
        return;
    }
    bool is_mirrored = listing->volume->config.is_mirrored;
    if (bytes_ends_with(bytes_of_string(name), BYTES(SEGMENT_TEMPORARY))) {
        listing->err = segments_are_only_read(listing->volume)
                           ? ERR_OK
                           : segments_remove_temporary(listing->volume, name);
    } else if (segment_parse_name(name, &number, &framing)) {
        listing->err = is_mirrored ? segments_open_of_mirrored(listing, name)
                                   : segments_open_one(listing->volume, name, listing->detail);
    }
}

/*
 * Two generations of one place: a compaction was cut off. Where the index knows the newer one, only the
 * removal of the older is left to do; where it knows the older alone, the newer was never used. A new index
 * knows neither: then the newer one is as good, being whole, and smaller. A mirrored volume has both where it
 * was published at that moment, and its index is new then: volume_is_grown() does not take a compaction for
 * growth.
 */
static void segments_settle_generations(struct volume *volume) {
    for (size_t i = 0; i + 1 < volume->segments_count;) {
        struct segment *older = volume->segments[i];
        struct segment *newer = volume->segments[i + 1];
        if (older->number / SEGMENT_GENERATIONS != newer->number / SEGMENT_GENERATIONS) {
            i++;
            continue;
        }
        struct index_segment entry;
        bool knows_older =
            !volume->config.is_mirrored && index_find_segment(volume->index, older->number, &entry) == ERR_OK;
        volume_remove_segment(volume, knows_older ? newer : older);
    }
}

enum err volume_open_segments(struct volume *volume, struct volume_recovery *recovery,
                              struct err_detail *detail) {
    struct listing listing = {.volume = volume, .recovery = recovery, .detail = detail};
    enum err err = vfs_list(volume->config.vfs, volume->config.directory, segments_visit_name, &listing);
    if (err == ERR_OK && listing.err == ERR_OK) {
        segments_settle_generations(volume);
    }
    return err != ERR_OK ? err : listing.err;
}

void volume_close_segments(struct volume *volume) {
    for (size_t i = 0; i < volume->segments_count; i++) {
        ASSERT(volume->segments[i]->holders_count == 0);
        segment_done(volume->segments[i]);
        free(volume->segments[i]);
    }
    free(volume->segments);
    volume->segments = NULL;
    volume->segments_count = volume->segments_max = 0;
}

/* The first record of a segment: what wrote it. */
static enum err segments_put_warcinfo(struct volume *volume, struct segment *segment,
                                      struct err_detail *detail) {
    struct buf frame;
    struct buf info;
    struct sink_buf sink;
    struct warc_writer writer;
    buf_init(&frame, 1 << 20);
    buf_init(&info, 1 << 16);
    sink_buf_init(&sink, &frame);
    warc_put_info(&info, "software", BYTES("mnemon"));
    warc_put_info(&info, "http-header-user-agent", volume->config.user_agent);
    warc_put_info(&info, "robots", volume->config.robots);
    warc_put_info(&info, "format", BYTES("WARC File Format 1.1"));
    warc_put_info(&info, "conformsTo",
                  BYTES("https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"));
    struct pack_options options = {
        .framing = segment->framing,
        .level = volume->config.level,
        .dictionary = segment->has_dictionary ? &segment->dictionary : NULL,
    };
    char name[SEGMENT_NAME_SIZE_MAX];
    struct warc_draft draft = {
        .type = WARC_TYPE_WARCINFO,
        .date_us = clock_wall_us(volume->config.clock),
        .filename = bytes_of_string(segment_name(segment->number, segment->framing, name)),
        .body = buf_bytes(&info),
    };
    struct warc_written written;
    enum err err = warc_writer_init(&writer, &sink.sink, 0, &options, volume->config.random);
    if (err == ERR_OK) {
        err = warc_writer_put(&writer, &draft, &written, detail);
        warc_writer_done(&writer);
    }
    if (err == ERR_OK) {
        err = vfs_write(&segment->file, segment->size, buf_bytes(&frame));
    }
    segment->size += frame.size;
    buf_done(&frame);
    buf_done(&info);
    return err;
}

enum err volume_start_segment(struct volume *volume, uint32_t number, enum pack_framing framing,
                              struct bytes dictionary, struct segment **ret_segment,
                              struct err_detail *detail) {
    const struct volume_config *config = &volume->config;
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        return ERR_MEMORY;
    }
    enum err err = segment_create(segment, config->vfs, config->directory, number, framing, dictionary,
                                  config->level, detail);
    if (err != ERR_OK) {
        free(segment);
        return err;
    }
    err = segments_put_warcinfo(volume, segment, detail);
    if (err != ERR_OK) {
        volume_drop_segment(volume, segment);
        return err;
    }
    *ret_segment = segment;
    return ERR_OK;
}

void volume_drop_segment(struct volume *volume, struct segment *take_segment) {
    enum err removed = segment_unlink(take_segment, volume->config.directory, true);
    (void)removed; /* opening the volume removes what is temporary */
    segment_done(take_segment);
    free(take_segment);
}

enum err volume_publish_segment(struct volume *volume, struct segment *take_segment,
                                struct err_detail *detail) {
    enum err err = segment_publish(take_segment, volume->config.directory, detail);
    if (err != ERR_OK) {
        volume_drop_segment(volume, take_segment);
        return err;
    }
    return segments_insert_segment(volume, take_segment);
}

enum err volume_add_segment(struct volume *volume, struct bytes dictionary, struct segment **ret_segment,
                            struct err_detail *detail) {
    pthread_rwlock_rdlock(&volume->segments_lock);
    uint32_t last = volume->segments_count == 0 ? 0 : volume->segments[volume->segments_count - 1]->number;
    pthread_rwlock_unlock(&volume->segments_lock);
    struct segment *segment;
    enum err err = volume_start_segment(volume, segment_next_number(last), volume->config.framing, dictionary,
                                        &segment, detail);
    if (err == ERR_OK) {
        err = volume_publish_segment(volume, segment, detail);
    }
    if (err == ERR_OK) {
        *ret_segment = segment;
    }
    return err;
}

/* Nobody can find it any more; its holders are about to finish one read. */
static void segments_await_holders(const struct segment *segment) {
    while (atomic_load_explicit(&segment->holders_count, memory_order_acquire) > 0) {
        sched_yield();
    }
}

void volume_remove_segment(struct volume *volume, struct segment *take_segment) {
    pthread_rwlock_wrlock(&volume->segments_lock);
    size_t index = segments_segment_index(volume, take_segment->number);
    ASSERT(index < volume->segments_count && volume->segments[index] == take_segment);
    size_t behind = volume->segments_count - index - 1;
    memmove(&volume->segments[index], &volume->segments[index + 1], behind * sizeof(struct segment *));
    volume->segments_count--;
    pthread_rwlock_unlock(&volume->segments_lock);
    segments_await_holders(take_segment);
    if (!segments_are_only_read(volume)) {
        enum err removed = segment_unlink(take_segment, volume->config.directory, false);
        (void)removed; /* opening the volume removes what a newer generation replaced */
    }
    segment_done(take_segment);
    free(take_segment);
}

enum err volume_renew_segment(struct volume *volume, const char *name, struct err_detail *detail) {
    struct segment *segment;
    struct segment *old = NULL;
    enum err err = segments_open_file(volume, name, &segment, detail);
    if (err != ERR_OK) {
        return err;
    }
    pthread_rwlock_wrlock(&volume->segments_lock);
    size_t index = segments_segment_index(volume, segment->number);
    if (index < volume->segments_count && volume->segments[index]->number == segment->number) {
        old = volume->segments[index];
        volume->segments[index] = segment;
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    if (old == NULL) {
        return segments_insert_segment(volume, segment);
    }
    segments_await_holders(old);
    segment_done(old);
    free(old);
    return ERR_OK;
}
