#include "store/instance/scrub.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/whole_file.h"
#include "store/volume/follow.h"
#include "store/volume/volume_state.h"
#include "warc/warc_check.h"

enum {
    PATH_SIZE_MAX = 4096,
    PLACES_MAX = 1024, /* of one volume, until the index is walked for them */
    FILE_SIZE_MAX = 1 << 16,
    FILE_MODE = 0644,
};

static const uint64_t DEFAULT_PERIOD_US = UINT64_C(30) * 24 * 3600 * 1000000;
static const uint64_t SAVE_SIZE = UINT64_C(64) << 20; /* read between two writes of the file */
static const uint64_t WAIT_US_MAX = UINT64_C(3600) * 1000000;

struct scrub_volume {
    uint16_t number;
    struct volume *volume;
    struct index_position position; /* everything before it was read */
    struct index_position saved;    /* the same, and what was found there was told */
    bool is_through;
    struct damage_place places[PLACES_MAX];
    size_t places_count;
};

struct scrub {
    struct scrub_config config;
    char path[PATH_SIZE_MAX];
    struct scrub_volume *volumes;
    size_t volumes_count;
    size_t turn; /* of the volume that is read next */
    struct warc_check check;
    bool has_check;
    struct scrub_stat stat;
    uint64_t unsaved_size;
};

/* ---- the file ---- */

static bool read_numbers(struct bytes line, uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct bytes text;
        if (!bytes_split(&line, ' ', &text) || !bytes_to_u64(text, INT64_MAX, &numbers[i])) {
            return false;
        }
    }
    return true;
}

static void place_volume(struct scrub *scrub, const uint64_t numbers[3]) {
    for (size_t i = 0; i < scrub->volumes_count; i++) {
        struct scrub_volume *volume = &scrub->volumes[i];
        if (volume->number == numbers[0] && numbers[1] <= UINT32_MAX) {
            volume->position = (struct index_position){(uint32_t)numbers[1], numbers[2]};
            volume->saved = volume->position;
            volume->is_through = false;
        }
    }
}

/* Without a sound first line there was no pass. */
static enum err load(struct scrub *scrub, struct err_detail *detail) {
    struct buf text;
    struct bytes line;
    uint64_t numbers[3];
    buf_init(&text, FILE_SIZE_MAX);
    enum err err = whole_file_read(scrub->path, &text, detail);
    struct bytes rest = buf_bytes(&text);
    if (err == ERR_OK && bytes_split(&rest, '\n', &line) && read_numbers(line, numbers, 3)) {
        scrub->stat.started_us = (int64_t)numbers[0];
        scrub->stat.done_size = numbers[1];
        scrub->stat.damaged_count = numbers[2];
        scrub->stat.is_through = true;
        while (bytes_split(&rest, '\n', &line)) {
            if (read_numbers(line, numbers, 3)) {
                scrub->stat.is_through = false;
                place_volume(scrub, numbers);
            }
        }
    }
    buf_done(&text);
    return err == ERR_NOT_FOUND || err == ERR_LIMIT ? ERR_OK : err;
}

static enum err save(struct scrub *scrub, struct err_detail *detail) {
    struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    buf_put_format(&text, "%ju %ju %ju\n", (uintmax_t)scrub->stat.started_us,
                   (uintmax_t)scrub->stat.done_size, (uintmax_t)scrub->stat.damaged_count);
    for (size_t i = 0; i < scrub->volumes_count; i++) {
        const struct scrub_volume *volume = &scrub->volumes[i];
        if (!volume->is_through) {
            buf_put_format(&text, "%u %u %ju\n", volume->number, volume->saved.segment,
                           (uintmax_t)volume->saved.offset);
        }
    }
    enum err err = text.err;
    if (err == ERR_OK) {
        err = whole_file_replace(scrub->path, buf_bytes(&text), FILE_MODE, detail);
    }
    buf_done(&text);
    scrub->unsaved_size = 0;
    return err;
}

/* ---- one step ---- */

/* One volume's segment that is being read. */
struct reading {
    struct scrub *scrub;
    struct scrub_volume *volume;
    uint32_t segment; /* its number */
};

/* A damaged range, but for what others have replaced in it. */
static enum err note_damage(void *context, uint64_t from, uint64_t end, const struct err_detail *reason) {
    const struct reading *reading = context;
    struct scrub_volume *volume = reading->volume;
    (void)reason;
    while (from < end) {
        struct location mended;
        bool has_mended =
            index_find_mended(volume->volume->index, reading->segment, from, &mended) == ERR_OK &&
            mended.offset < end;
        uint64_t to = has_mended ? mended.offset : end;
        if (to > from && volume->places_count < PLACES_MAX) {
            volume->places[volume->places_count++] =
                (struct damage_place){.segment = reading->segment, .from = from, .end = to};
        }
        reading->scrub->stat.damaged_count += to > from;
        from = has_mended ? mended.offset + mended.length : end;
    }
    return ERR_OK;
}

static enum err check_record(void *context, struct warc_reader *reader, struct err_detail *detail) {
    const struct reading *reading = context;
    enum err err = warc_check_read(&reading->scrub->check, reader, detail);
    if (err == ERR_OK && !warc_check_is_good(&reading->scrub->check)) {
        uint64_t end = reader->record.offset + reader->record.length;
        err = note_damage(context, reader->record.offset, end, NULL);
    }
    return err;
}

/* From the volume's position on. *ret_is_at_end: the segment has been read. */
static enum err read_segment(struct scrub *scrub, struct scrub_volume *volume, const struct segment *segment,
                             uint64_t size, bool *ret_is_at_end, struct err_detail *detail) {
    static const struct segment_visitor visitor = {.record = check_record, .damage = note_damage};
    struct reading reading = {.scrub = scrub, .volume = volume, .segment = segment->number};
    struct segment_reader reader;
    enum err err = segment_reader_open(&reader, segment, volume->position.offset, size, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = segment_reader_walk(&reader, SCRUB_STEP_SIZE, &visitor, &reading, detail);
    volume->position.offset = reader.position;
    *ret_is_at_end = reader.is_at_end;
    segment_reader_done(&reader);
    return err;
}

/* Tell what was found; what had been read before is not read again then. */
static enum err scrub_tell(struct scrub *scrub, struct scrub_volume *volume, struct err_detail *detail) {
    enum err err = ERR_OK;
    if (volume->places_count > 0) {
        err = damage_find(volume->volume, volume->places, volume->places_count, scrub->config.visit,
                          scrub->config.context, detail);
    }
    if (err == ERR_OK) {
        volume->places_count = 0;
        volume->saved = volume->position;
    }
    return err;
}

/* Read the held segment on, and go to the next one at its end. */
static enum err read_held(struct scrub *scrub, struct scrub_volume *volume, struct segment *segment,
                          struct err_detail *detail) {
    struct index_position end = {0};
    uint64_t size;
    bool is_at_end = true;
    enum err err = index_position(volume->volume->index, &end);
    if (err == ERR_OK) {
        err = follow_readable_size(segment, &end, &size);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (segment->number != volume->position.segment) { /* the next, or compacted since */
        volume->position = (struct index_position){.segment = segment->number};
    }
    uint64_t from = volume->position.offset;
    if (from < size) {
        err = read_segment(scrub, volume, segment, size, &is_at_end, detail);
    }
    uint64_t read_size = volume->position.offset > from ? volume->position.offset - from : 0;
    scrub->stat.done_size += read_size;
    scrub->unsaved_size += read_size;
    if (err == ERR_OK && is_at_end) {
        volume->is_through = segment->number >= end.segment;
        volume->position = (struct index_position){.segment = segment->number + 1};
    }
    return err;
}

static enum err scrub_step(struct scrub *scrub, struct scrub_volume *volume, struct err_detail *detail) {
    struct segment *segment = volume_hold_from(volume->volume, volume->position.segment);
    uint32_t before = volume->position.segment;
    enum err err = ERR_OK;
    if (segment != NULL) {
        err = read_held(scrub, volume, segment, detail);
        volume_release(segment);
    } else {
        volume->is_through = true;
    }
    bool is_due = volume->is_through || volume->position.segment != before || volume->places_count == 0 ||
                  volume->places_count >= PLACES_MAX / 2;
    if (err == ERR_OK && is_due) {
        err = scrub_tell(scrub, volume, detail);
    }
    volume->is_through = volume->is_through && err == ERR_OK;
    return err;
}

/* ---- passes ---- */

static int64_t now_us(const struct scrub *scrub) {
    return clock_wall_us(scrub->config.clock);
}

static void begin_pass(struct scrub *scrub) {
    scrub->stat = (struct scrub_stat){.started_us = now_us(scrub)};
    for (size_t i = 0; i < scrub->volumes_count; i++) {
        struct scrub_volume *volume = &scrub->volumes[i];
        volume->position = volume->saved = (struct index_position){0};
        volume->is_through = false;
        volume->places_count = 0;
    }
}

/* A clock that was set back begins a new pass rather than none. */
static bool is_pass_due(const struct scrub *scrub) {
    int64_t age_us = now_us(scrub) - scrub->stat.started_us;
    return scrub->stat.started_us == 0 ||
           (scrub->stat.is_through && (age_us < 0 || (uint64_t)age_us >= scrub->config.period_us));
}

static uint64_t all_size(const struct scrub *scrub) {
    uint64_t size = 0;
    for (size_t i = 0; i < scrub->volumes_count; i++) {
        struct volume_stat stat;
        volume_stat(scrub->volumes[i].volume, &stat);
        size += stat.size;
    }
    return size;
}

/* How long reading so many bytes shall take. */
static uint64_t duration_us(const struct scrub *scrub, uint64_t size) {
    double rate = (double)all_size(scrub) / ((double)scrub->config.period_us / 1e6);
    rate = rate > SCRUB_RATE_MIN ? rate : SCRUB_RATE_MIN;
    return (uint64_t)((double)size / rate * 1e6);
}

static struct scrub_volume *next_volume(struct scrub *scrub) {
    for (size_t i = 0; i < scrub->volumes_count; i++) {
        struct scrub_volume *volume = &scrub->volumes[scrub->turn++ % scrub->volumes_count];
        if (!volume->is_through) {
            return volume;
        }
    }
    return NULL;
}

static uint64_t until_next_pass(const struct scrub *scrub) {
    int64_t left_us = scrub->stat.started_us + (int64_t)scrub->config.period_us - now_us(scrub);
    uint64_t wait_us = left_us > 0 ? (uint64_t)left_us : 0;
    return wait_us < WAIT_US_MAX ? wait_us : WAIT_US_MAX;
}

enum err scrub_run(struct scrub *scrub, uint64_t *ret_wait_us, struct err_detail *detail) {
    *ret_wait_us = WAIT_US_MAX;
    if (scrub->volumes_count == 0) {
        return ERR_OK;
    }
    if (is_pass_due(scrub)) {
        begin_pass(scrub);
    }
    struct scrub_volume *volume = next_volume(scrub);
    if (volume == NULL) {
        *ret_wait_us = until_next_pass(scrub);
        bool was_through = scrub->stat.is_through;
        scrub->stat.is_through = true;
        return was_through ? ERR_OK : save(scrub, detail);
    }
    uint64_t before = scrub->stat.done_size;
    enum err err = scrub_step(scrub, volume, detail);
    *ret_wait_us = err == ERR_OK ? duration_us(scrub, scrub->stat.done_size - before) : WAIT_US_MAX / 60;
    if (err == ERR_OK && scrub->unsaved_size >= SAVE_SIZE) {
        err = save(scrub, detail);
    }
    return err;
}

void scrub_stat(const struct scrub *scrub, struct scrub_stat *ret_stat) {
    *ret_stat = scrub->stat;
    ret_stat->all_size = all_size(scrub);
}

/* ---- begin and end ---- */

static enum err add_volumes(struct scrub *scrub) {
    size_t count = instance_volumes_count(scrub->config.instance);
    scrub->volumes = calloc(count + 1, sizeof *scrub->volumes);
    for (size_t i = 0; i < count && scrub->volumes != NULL; i++) {
        struct instance_volume volume;
        instance_volume(scrub->config.instance, i, &volume);
        if (volume.volume != NULL) { /* else it is down, or another machine's, which sees to it */
            scrub->volumes[scrub->volumes_count++] =
                (struct scrub_volume){.number = volume.number, .volume = volume.volume, .is_through = true};
        }
    }
    return scrub->volumes == NULL ? ERR_MEMORY : ERR_OK;
}

enum err scrub_open(const struct scrub_config *config, struct scrub **ret_scrub, struct err_detail *detail) {
    struct scrub *scrub = calloc(1, sizeof *scrub);
    if (scrub == NULL) {
        return ERR_MEMORY;
    }
    scrub->config = *config;
    scrub->config.period_us = config->period_us == 0 ? DEFAULT_PERIOD_US : config->period_us;
    scrub->config.clock = config->clock == NULL ? &clock_system : config->clock;
    int size = snprintf(scrub->path, sizeof scrub->path, "%s", config->path);
    enum err err = size < (int)sizeof scrub->path ? ERR_OK : ERR_LIMIT;
    if (err == ERR_OK) {
        err = warc_check_init(&scrub->check);
        scrub->has_check = err == ERR_OK;
    }
    if (err == ERR_OK) {
        err = add_volumes(scrub);
    }
    if (err == ERR_OK) {
        err = load(scrub, detail);
    }
    if (err != ERR_OK) {
        scrub_close(scrub);
        return err;
    }
    *ret_scrub = scrub;
    return ERR_OK;
}

void scrub_close(struct scrub *scrub) {
    if (scrub->stat.started_us != 0 && scrub->unsaved_size > 0) {
        enum err err = save(scrub, NULL);
        (void)err; /* then some of it is read once more */
    }
    if (scrub->has_check) {
        warc_check_done(&scrub->check);
    }
    free(scrub->volumes);
    free(scrub);
}
