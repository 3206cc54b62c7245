#include "replay/survey/survey.h"

#include <pthread.h>
#include <stdlib.h>

#include "replay/survey/survey_tally.h"
#include "run/task.h"

enum {
    INTERVAL_MS = 10000,
    REPEAT_INTERVALS = 60, /* look again after so many, changed or not: access rules may have changed */
    SLICE_CAPTURES = 1000,
    SLICE_BLOCKS = 20000,
    BATCH_MIN = 1 << 16,   /* captures that are counted before the first walk for their sizes */
    HASTE_US = 200000,     /* so much work is done at once; */
    REST_FACTOR = 19,      /* after that it takes a twentieth of the time, */
    FIRST_REST_FACTOR = 4, /* and a fifth as long as there is no count at all */
    VOLUMES_MAX = KEY_VOLUMES_MAX,
};

struct survey {
    struct archive *archive;
    const struct clock *clock;
    uint32_t interval_ms;
    struct task task;
    uint64_t looks_count;
    uint64_t mark; /* what the volumes were like when they were counted */
    pthread_mutex_t lock;
    const struct survey_snapshot *snapshot; /* lock */
};

/* One pass over the archive. */
struct pass {
    struct survey *survey;
    struct archive_reader *reader;
    struct survey_tally *tally;
    struct survey_volume *volumes;
    size_t volumes_count;
    struct buf after;     /* where the next slice of captures begins */
    bool is_at_end;       /* there are no more captures */
    bool is_sizing;       /* now come slices of blocks: */
    struct key block_key; /* behind this one, if has_block_key */
    bool has_block_key;
    uint64_t busy_us;
    bool is_partial;
    bool is_first;
};

/* What changes whenever something is stored. */
static uint64_t look_at_volumes(struct pass *pass) {
    struct instance *instance = archive_instance(pass->survey->archive);
    struct instance_session *session = archive_reader_session(pass->reader);
    uint64_t mark = 1;
    size_t count = instance_volumes_count(instance);
    pass->volumes_count = count < VOLUMES_MAX ? count : VOLUMES_MAX;
    for (size_t i = 0; i < pass->volumes_count; i++) {
        struct instance_volume volume;
        struct survey_volume *out = &pass->volumes[i];
        instance_volume(instance, i, &volume);
        *out = (struct survey_volume){.number = volume.number, .is_remote = volume.is_remote};
        out->is_up = instance_stat(session, i, &out->stat, NULL) == ERR_OK;
        pass->is_partial = pass->is_partial || !out->is_up;
        mark += out->stat.size + out->stat.dead_size + out->stat.segments_count + (out->is_up ? 1 : 0);
    }
    return mark;
}

static void survey_publish(struct pass *pass, bool is_complete) {
    struct survey *survey = pass->survey;
    struct survey_snapshot *snapshot = survey_tally_snapshot(pass->tally, pass->volumes, pass->volumes_count);
    if (snapshot == NULL) {
        return;
    }
    snapshot->made_us = clock_wall_us(survey->clock);
    snapshot->is_complete = is_complete;
    snapshot->is_partial = pass->is_partial;
    pthread_mutex_lock(&survey->lock);
    const struct survey_snapshot *old = survey->snapshot;
    survey->snapshot = snapshot;
    pthread_mutex_unlock(&survey->lock);
    survey_release(old);
}

/* Some captures; a cursor that stays open keeps files that the index has replaced. ERR_NOT_FOUND: the end. */
static enum err count_slice(struct pass *pass) {
    struct archive_walk *walk;
    struct archive_range range = {
        .url = BYTES("*"), .from_us = INT64_MIN, .to_us = INT64_MAX, .after = buf_bytes(&pass->after)};
    enum err err = archive_walk_open(pass->reader, &range, &walk, NULL);
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    for (size_t i = 0; i < SLICE_CAPTURES && err == ERR_OK; i++) {
        err = archive_walk_next(walk, &capture, NULL);
        if (err == ERR_OK) {
            survey_tally_add(pass->tally, &capture);
        }
    }
    if (err == ERR_OK) {
        buf_clear(&pass->after);
        err = archive_walk_key(walk, &pass->after);
    }
    pass->is_partial = pass->is_partial || archive_walk_is_partial(walk);
    archive_walk_close(walk);
    return err;
}

/* Some blocks. ERR_NOT_FOUND: the end. */
static enum err size_slice(struct pass *pass) {
    struct instance_blocks *blocks;
    struct block block;
    enum err err = instance_blocks_open(archive_reader_session(pass->reader),
                                        pass->has_block_key ? &pass->block_key : NULL, &blocks, NULL);
    if (err != ERR_OK) {
        return err;
    }
    for (size_t i = 0; i < SLICE_BLOCKS && err == ERR_OK; i++) {
        err = instance_blocks_next(blocks, &pass->block_key, &block, NULL);
        if (err == ERR_OK) {
            survey_tally_add_size(pass->tally, &pass->block_key, block.size);
        }
    }
    pass->has_block_key = true;
    instance_blocks_close(blocks);
    return err;
}

/* As many captures as have been counted before, so that the first numbers come soon. */
static bool is_batch_full(const struct survey_tally *tally) {
    uint64_t before_count = tally->total.captures_count - tally->unsized_count;
    uint64_t wanted = before_count < BATCH_MIN ? BATCH_MIN : before_count;
    wanted = wanted < SURVEY_UNSIZED_MAX - SLICE_CAPTURES ? wanted : SURVEY_UNSIZED_MAX - SLICE_CAPTURES;
    return tally->unsized_count >= wanted;
}

/* All blocks have been seen. If they could not be, sizes are missing. */
static enum err end_sizing(struct pass *pass, enum err err) {
    pass->is_partial = pass->is_partial || err != ERR_NOT_FOUND;
    pass->is_sizing = false;
    pass->has_block_key = false;
    survey_tally_settle(pass->tally);
    if (pass->is_at_end) {
        return ERR_NOT_FOUND;
    }
    if (pass->is_first) {
        survey_publish(pass, false);
    }
    return ERR_OK;
}

/* One slice: of captures until there are enough, then of blocks until all have been seen. ERR_NOT_FOUND: the
 * end. */
static enum err survey_step(struct pass *pass) {
    if (pass->is_sizing) {
        enum err err = size_slice(pass);
        return err == ERR_OK ? ERR_OK : end_sizing(pass, err);
    }
    enum err err = count_slice(pass);
    pass->is_at_end = err == ERR_NOT_FOUND;
    if (pass->is_at_end || (err == ERR_OK && is_batch_full(pass->tally))) {
        survey_tally_sort(pass->tally);
        pass->is_sizing = true;
        return ERR_OK;
    }
    return err;
}

static void run_pass(struct pass *pass) {
    struct survey *survey = pass->survey;
    enum err err = ERR_OK;
    bool goes_on = true;
    while (err == ERR_OK && goes_on) {
        uint64_t start_us = clock_monotonic_us(&clock_system);
        err = survey_step(pass);
        uint64_t step_us = clock_monotonic_us(&clock_system) - start_us;
        pass->busy_us += step_us;
        uint64_t factor = pass->is_first ? FIRST_REST_FACTOR : REST_FACTOR;
        goes_on = task_rest(&survey->task, pass->busy_us > HASTE_US ? step_us * factor : 0);
    }
    if (err == ERR_NOT_FOUND) {
        survey_publish(pass, true);
    }
}

static uint64_t survey_look(void *context) {
    struct survey *survey = context;
    struct pass pass = {.survey = survey, .is_first = survey->looks_count == 0};
    bool must_count = survey->looks_count++ % REPEAT_INTERVALS == 0;
    buf_init(&pass.after, UINT16_MAX * 4);
    pass.reader = archive_reader_begin_own(survey->archive);
    pass.tally = malloc(sizeof *pass.tally);
    pass.volumes = calloc(VOLUMES_MAX, sizeof *pass.volumes);
    if (pass.reader != NULL && pass.tally != NULL && pass.volumes != NULL) {
        uint64_t now = look_at_volumes(&pass);
        if ((now != survey->mark || must_count) &&
            survey_tally_init(pass.tally, clock_monotonic_us(&clock_system)) == ERR_OK) {
            survey->mark = now;
            run_pass(&pass);
            survey_tally_done(pass.tally);
        }
    }
    archive_reader_end(pass.reader);
    free(pass.tally);
    free(pass.volumes);
    buf_done(&pass.after);
    return pass.busy_us * REST_FACTOR + survey->interval_ms * UINT64_C(1000);
}

enum err survey_start(const struct survey_config *config, struct survey **ret_survey,
                      struct err_detail *detail) {
    struct survey *survey = calloc(1, sizeof *survey);
    if (survey == NULL) {
        return ERR_MEMORY;
    }
    survey->archive = config->archive;
    survey->clock = config->clock;
    survey->interval_ms = config->interval_ms != 0 ? config->interval_ms : INTERVAL_MS;
    pthread_mutex_init(&survey->lock, NULL);
    enum err err = task_start(&survey->task, "survey", PRIORITY_IDLE, survey_look, survey);
    if (err != ERR_OK) {
        free(survey);
        return err_set(detail, err, "the thread of the survey does not start");
    }
    *ret_survey = survey;
    return ERR_OK;
}

void survey_stop(struct survey *survey) {
    task_stop(&survey->task);
    survey_release(survey->snapshot);
    pthread_mutex_destroy(&survey->lock);
    free(survey);
}

const struct survey_snapshot *survey_get(struct survey *survey) {
    if (survey == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&survey->lock);
    const struct survey_snapshot *snapshot = survey->snapshot;
    if (snapshot != NULL) {
        survey_keep(snapshot);
    }
    pthread_mutex_unlock(&survey->lock);
    return snapshot;
}
