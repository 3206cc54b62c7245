#include "replay/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "replay/search/search_passage.h"
#include "replay/search/search_state.h"
#include "replay/search/search_words.h"
#include "store/volume/follow.h"
#include "web/url/canon.h"

void search_job_init(struct search_job *job) {
    *job = (struct search_job){0};
}

void search_job_done(struct search_job *job) {
    arena_done(&job->arena);
}

/* ---- a question ---- */

enum {
    CHECK_STEPS = 1000, /* of SQLite's machine between two looks at the clock */
    EXPRESSION_SIZE_MAX = 8 << 10,
    RESULTS_SIZE_MAX = 16 << 20, /* of all texts of an answer */
};

/*
 * FTS5 gives the rows in the order of their rank, one by one; a filter is looked at for each. The snippet is
 * made here, since FTS5 has the places of the words at hand: asking for one row again would look them all up
 * again.
 */
static const char find_sql[] =
    "SELECT signature, volume, number, surt, first_us, last_us, url, document.title, language,"
    "  words.rank, CASE WHEN is_shown() THEN passage(words, 2) END"
    " FROM words CROSS JOIN document ON document.id = words.rowid"
    " WHERE words MATCH ?1"
    "  AND (?2 = '' OR host = ?2 OR substr(host, -length(?3)) = ?3)"
    "  AND last_us >= ?4 AND first_us <= ?5"
    " ORDER BY words.rank";
enum {
    COLUMN_DIGEST,
    COLUMN_VOLUME,
    COLUMN_NUMBER,
    COLUMN_SURT,
    COLUMN_FIRST,
    COLUMN_LAST,
    COLUMN_URL,
    COLUMN_TITLE,
    COLUMN_LANGUAGE,
    COLUMN_RANK,
    COLUMN_SNIPPET,
};

static int is_late(void *context) {
    struct search_reader *reader = context;
    return clock_monotonic_us(reader->clock) > reader->due_us;
}

/* is_shown(): is the row behind those that the offset passes over? Then it is worth a snippet. */
static void is_shown(sqlite3_context *context, int count, sqlite3_value **values) {
    const struct search_reader *reader = sqlite3_user_data(context);
    (void)count;
    (void)values;
    sqlite3_result_int(context, reader->is_shown);
}

static void search_reader_close(struct search_reader *reader) {
    sqlite3_finalize(reader->find);
    sqlite3_close(reader->database);
    *reader = (struct search_reader){0};
}

static enum err search_reader_open(struct search_reader *reader, const char *path, const struct clock *clock,
                                   struct err_detail *detail) {
    *reader = (struct search_reader){.clock = clock, .due_us = UINT64_MAX};
    enum err err = search_database_open(path, false, &reader->database, detail);
    if (err != ERR_OK) {
        return err;
    }
    int result = sqlite3_create_function_v2(reader->database, "is_shown", 0, SQLITE_UTF8, reader, is_shown,
                                            NULL, NULL, NULL);
    result = result == SQLITE_OK ? search_passage_register(reader->database) : result;
    err = search_database_err(reader->database, result, detail);
    if (err == ERR_OK) {
        err = search_database_prepare(reader->database, find_sql, &reader->find, detail);
    }
    if (err != ERR_OK) {
        search_reader_close(reader);
        return err;
    }
    sqlite3_progress_handler(reader->database, CHECK_STEPS, is_late, reader);
    return ERR_OK;
}

/* One question that is being answered. */
struct asking {
    struct search_reader *reader;
    struct archive_reader *archive;
    struct search_job *job;
    struct buf expression;
    struct canon canon; /* of the host */
    struct buf suffix;  /* ".host" */
    struct key *stale;
    size_t *stale_count;
};

/* ---- may it be shown? ---- */

static bool is_in_period(const struct search_question *question, int64_t time_us) {
    return time_us >= question->from_us && time_us <= question->to_us;
}

static bool may_show(const struct asking *asking, struct capture *capture, int64_t time_us) {
    capture->time_us = time_us;
    return is_in_period(&asking->job->question, time_us) &&
           archive_verdict(asking->archive, capture) == ACCESS_ALLOW;
}

/*
 * A capture of the row that is in the period and may be shown: the first or the last that was seen, or, if
 * the page was seen before and after the period, the newest in it, if it is the same.
 */
static bool find_time(const struct asking *asking, struct capture *capture, int64_t first_us,
                      int64_t last_us) {
    const struct search_question *question = &asking->job->question;
    if (may_show(asking, capture, first_us) || may_show(asking, capture, last_us)) {
        return true;
    }
    if (first_us >= question->from_us || last_us <= question->to_us) {
        return false;
    }
    struct capture found;
    enum err err = archive_find(asking->archive, capture->surt, capture->url, question->to_us,
                                ARCHIVE_NOT_NEWER, &found, NULL);
    return err == ERR_OK && memcmp(found.digest, capture->digest, KEY_DIGEST_SIZE) == 0 &&
           may_show(asking, capture, found.time_us);
}

static void note_stale(struct asking *asking, const struct capture *capture) {
    if (*asking->stale_count < SEARCH_STALE_MAX) {
        struct key *key = &asking->stale[(*asking->stale_count)++];
        *key = (struct key){.volume = capture->volume, .number = capture->block_number};
        memcpy(key->digest, capture->digest, sizeof key->digest);
    }
}

/* The capture to be shown for the row; false if there is none. */
static bool check_row(struct asking *asking, struct capture *ret_capture) {
    sqlite3_stmt *row = asking->reader->find;
    struct bytes digest = search_database_column(row, COLUMN_DIGEST);
    struct capture capture = {
        .surt = search_database_column(row, COLUMN_SURT),
        .url = search_database_column(row, COLUMN_URL),
        .volume = (uint16_t)sqlite3_column_int(row, COLUMN_VOLUME),
        .block_number = (uint16_t)sqlite3_column_int(row, COLUMN_NUMBER),
    };
    if (digest.size != KEY_DIGEST_SIZE ||
        !instance_session_sees(archive_reader_session(asking->archive), capture.volume)) {
        return false; /* its volume or collection is not in the archive any more */
    }
    memcpy(capture.digest, digest.data, sizeof capture.digest);
    struct key key;
    struct block block;
    enum err err = instance_locate(archive_reader_session(asking->archive), &capture, &key, &block, NULL);
    if (err == ERR_NOT_FOUND) {
        note_stale(asking, &capture);
    }
    bool is_shown = err == ERR_OK && find_time(asking, &capture, sqlite3_column_int64(row, COLUMN_FIRST),
                                               sqlite3_column_int64(row, COLUMN_LAST));
    *ret_capture = capture;
    return is_shown;
}

/* ---- the answer ---- */

static enum err add_result(struct asking *asking, const struct capture *capture) {
    struct search_job *job = asking->job;
    sqlite3_stmt *row = asking->reader->find;
    struct search_result *result = &job->results[job->results_count];
    *result = (struct search_result){
        .url = arena_copy(&job->arena, capture->url),
        .title = arena_copy(&job->arena, search_database_column(row, COLUMN_TITLE)),
        .language = arena_copy(&job->arena, search_database_column(row, COLUMN_LANGUAGE)),
        .time_us = capture->time_us,
        .snippet = arena_copy(&job->arena, search_database_column(row, COLUMN_SNIPPET)),
        .score = -sqlite3_column_double(row, COLUMN_RANK),
    };
    memcpy(result->digest, capture->digest, sizeof result->digest);
    bool is_whole = result->url.data != NULL && result->title.data != NULL && result->language.data != NULL &&
                    result->snippet.data != NULL;
    job->results_count += is_whole;
    return is_whole ? ERR_OK : ERR_LIMIT;
}

static enum err bind(struct asking *asking) {
    const struct search_question *question = &asking->job->question;
    sqlite3_stmt *statement = asking->reader->find;
    struct bytes host = {NULL, 0};
    if (question->host.size > 0) {
        enum err err = canon_run(&asking->canon, question->host, &asking->job->detail);
        if (err == ERR_OK) {
            host = bytes_slice(canon_url(&asking->canon), asking->canon.host_start, asking->canon.host_end);
        }
        if (host.size == 0) {
            return err_set(&asking->job->detail, ERR_INVALID, "this is not the name of a host");
        }
        buf_put_byte(&asking->suffix, '.');
        buf_put(&asking->suffix, host);
    }
    search_database_bind_text(statement, 1, buf_bytes(&asking->expression));
    search_database_bind_text(statement, 2, host);
    search_database_bind_text(statement, 3, buf_bytes(&asking->suffix));
    sqlite3_bind_int64(statement, 4, question->from_us);
    sqlite3_bind_int64(statement, 5, question->to_us);
    return asking->suffix.err;
}

static enum err search_collect(struct asking *asking) {
    struct search_job *job = asking->job;
    size_t passed_count = 0;
    int result;
    asking->reader->is_shown = job->question.offset == 0;
    while ((result = sqlite3_step(asking->reader->find)) == SQLITE_ROW) {
        struct capture capture;
        if (is_late(asking->reader)) {
            return ERR_TIMEOUT;
        }
        if (!check_row(asking, &capture)) {
            continue;
        }
        if (passed_count < job->question.offset) {
            passed_count++;
            asking->reader->is_shown = passed_count == job->question.offset;
            continue;
        }
        if (job->results_count == job->question.limit) {
            job->has_more = true;
            return ERR_OK;
        }
        enum err err = add_result(asking, &capture);
        if (err != ERR_OK) {
            return err;
        }
    }
    return search_database_err(asking->reader->database, result, &job->detail);
}

static enum err run_question(struct asking *asking) {
    struct search_job *job = asking->job;
    const struct search_question *question = &job->question;
    if (question->limit == 0 || question->limit > SEARCH_RESULTS_MAX ||
        question->offset > SEARCH_OFFSET_MAX) {
        return err_set(&job->detail, ERR_LIMIT, "at most %u results at once, and none behind the first %u",
                       SEARCH_RESULTS_MAX, SEARCH_OFFSET_MAX);
    }
    enum err err = search_words_put(&asking->expression, question->words, &job->detail);
    err = err == ERR_OK ? bind(asking) : err;
    if (err != ERR_OK) {
        return err;
    }
    job->results = arena_take_array(&job->arena, question->limit, sizeof *job->results);
    if (job->results == NULL) {
        return ERR_MEMORY;
    }
    asking->reader->due_us = clock_monotonic_us(asking->reader->clock) + SEARCH_TIME_MAX_US;
    err = search_collect(asking);
    asking->reader->due_us = UINT64_MAX;
    if (err == ERR_TIMEOUT) {
        err_set(&job->detail, err, "this search takes longer than %u seconds: more or rarer words help",
                SEARCH_TIME_MAX_US / 1000000);
    }
    return err;
}

static enum err search_reader_run(struct search_reader *reader, struct archive_reader *archive,
                                  struct search_job *job, struct key stale[SEARCH_STALE_MAX],
                                  size_t *stale_count) {
    struct asking asking = {
        .reader = reader, .archive = archive, .job = job, .stale = stale, .stale_count = stale_count};
    arena_init(&job->arena, RESULTS_SIZE_MAX);
    buf_init(&asking.expression, EXPRESSION_SIZE_MAX);
    buf_init(&asking.suffix, EXPRESSION_SIZE_MAX);
    canon_init(&asking.canon);
    enum err err = run_question(&asking);
    sqlite3_reset(reader->find);
    sqlite3_clear_bindings(reader->find);
    buf_done(&asking.expression);
    buf_done(&asking.suffix);
    canon_done(&asking.canon);
    return err;
}

/* ---- askers ---- */

/* A connection to the database as it is now: it may have been made again since the last question. */
static enum err refresh(struct search_asker *asker, struct err_detail *detail) {
    struct search *search = asker->search;
    struct err_detail reason = {0};
    pthread_mutex_lock(&search->lock);
    uint64_t generation = search->is_open ? search->generation : 0;
    memcpy(reason.text, search->error, sizeof reason.text);
    pthread_mutex_unlock(&search->lock);
    if (asker->generation != 0 && asker->generation != generation) {
        search_reader_close(&asker->reader);
        asker->generation = 0;
    }
    if (generation == 0) {
        return err_set(detail, ERR_BUSY, "the full-text index is not open: %.200s",
                       reason.text[0] != '\0' ? reason.text : "it is being opened");
    }
    if (asker->generation != 0) {
        return ERR_OK;
    }
    enum err err = search_reader_open(&asker->reader, search->path, search->config.clock, detail);
    asker->generation = err == ERR_OK ? generation : 0;
    return err;
}

static void hand_over_stale(struct search *search, const struct key *stale, size_t stale_count) {
    pthread_mutex_lock(&search->lock);
    for (size_t i = 0; i < stale_count && search->stale_count < SEARCH_STALE_MAX; i++) {
        search->stale[search->stale_count++] = stale[i];
    }
    pthread_mutex_unlock(&search->lock);
}

static enum err search_answer(struct search_asker *asker, struct search_job *job) {
    struct key stale[SEARCH_STALE_MAX];
    size_t stale_count = 0;
    enum err err = refresh(asker, &job->detail);
    if (err != ERR_OK) {
        return err;
    }
    struct archive_reader *archive = job->question.is_own ? archive_reader_begin_own(job->archive)
                                                          : archive_reader_begin_here(job->archive);
    if (archive == NULL) {
        return ERR_MEMORY;
    }
    err = search_reader_run(&asker->reader, archive, job, stale, &stale_count);
    archive_reader_end(archive);
    hand_over_stale(asker->search, stale, stale_count);
    if (err == ERR_CORRUPT) {
        pthread_mutex_lock(&asker->search->lock);
        asker->search->is_damaged = asker->generation == asker->search->generation;
        pthread_mutex_unlock(&asker->search->lock);
        err = err_set(&job->detail, ERR_BUSY, "the full-text index is damaged and is made again");
    }
    return err;
}

static void search_run(void *context, size_t seat) {
    struct search_job *job = context;
    job->err = search_answer(&job->search->seats[seat], job);
    job->done(job->context);
}

enum err search_ask(struct search *search, struct search_job *job) {
    ASSERT(job->done != NULL && job->archive != NULL);
    job->search = search;
    job->job = (struct pool_job){.run = search_run, .context = job};
    return pool_try(&search->askers, &job->job) ? ERR_OK : ERR_BUSY;
}

/* ---- start and stop ---- */

static enum err find_volumes(struct search *search) {
    struct instance *instance = search->config.instance;
    size_t count = instance_volumes_count(instance);
    search->volumes = calloc(count + 1, sizeof *search->volumes);
    if (search->volumes == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        struct instance_volume volume;
        instance_volume(instance, i, &volume);
        if (volume.volume != NULL) {
            search->volumes[search->volumes_count++] =
                (struct search_volume){.number = volume.number, .volume = volume.volume};
        }
    }
    return ERR_OK;
}

void search_add_absent(const struct search *search, struct absent *absent) {
    struct instance *instance = search->config.instance;
    for (size_t i = 0; i < instance_volumes_count(instance); i++) {
        struct instance_volume volume;
        instance_volume(instance, i, &volume);
        if (volume.volume == NULL) {
            absent_add_volume(absent, volume.number);
        }
    }
}

static enum err search_start_threads(struct search *search) {
    struct pool_config askers = {
        .name = "search", .threads_max = SEARCH_ASKERS_COUNT, .jobs_max = SEARCH_JOBS_MAX};
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        search->seats[i].search = search;
    }
    enum err err = pool_start(&search->askers, &askers);
    return err == ERR_OK ? search_feed_start(search) : err;
}

static enum err search_fill(struct search *search) {
    const char *directory = search->config.directory;
    int size = snprintf(search->directory, sizeof search->directory, "%s/search", directory);
    int path_size = snprintf(search->path, sizeof search->path, "%s/search/text.db", directory);
    if (size >= (int)sizeof search->directory || path_size >= (int)sizeof search->path) {
        return ERR_LIMIT;
    }
    struct archive_config archive = {.instance = search->config.instance, .scratch_directory = directory};
    search->archive = archive_new(&archive);
    return search->archive == NULL ? ERR_MEMORY : find_volumes(search);
}

enum err search_start(const struct search_config *config, struct search **ret_search,
                      struct err_detail *detail) {
    if (!config->is_enabled) {
        *ret_search = NULL;
        return ERR_OK;
    }
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_init(&search->lock, NULL);
    search->config = *config;
    search->config.clock = config->clock != NULL ? config->clock : &clock_system;
    enum err err = search_fill(search);
    err = err == ERR_OK ? search_start_threads(search) : err;
    if (err != ERR_OK) {
        search_stop(search);
        return err_set(detail, err, "full-text search cannot be started: %s", err_text(err));
    }
    *ret_search = search;
    return ERR_OK;
}

void search_stop(struct search *search) {
    if (search == NULL) {
        return;
    }
    pool_stop(&search->askers); /* waiting questions are answered first */
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        if (search->seats[i].generation != 0) {
            search_reader_close(&search->seats[i].reader);
        }
    }
    search_feed_stop(search);
    if (search->archive != NULL) {
        archive_free(search->archive);
    }
    pthread_mutex_destroy(&search->lock);
    free(search->volumes);
    free(search);
}

/* ---- how far it is ---- */

static uint64_t file_size(const char *path, const char *ending) {
    char file[SEARCH_PATH_SIZE_MAX + 8];
    struct stat status;
    snprintf(file, sizeof file, "%s%s", path, ending);
    return stat(file, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* Captures are as many as their share of the bytes: nobody counts those behind a position. */
static void add_volume(const struct search_volume *volume, const struct index_position *position,
                       struct search_stat *stat) {
    struct index_counts counts;
    uint64_t left_size = 0;
    uint64_t all_size = 0;
    index_counts(volume_index(volume->volume), &counts);
    if (follow_left(volume->volume, position, &left_size, &all_size) != ERR_OK || all_size == 0) {
        return;
    }
    double share = (double)left_size / (double)all_size;
    uint64_t left_count = (uint64_t)(share * (double)counts.captures_count);
    stat->captures_count += counts.captures_count;
    stat->left_size += left_size;
    stat->left_count += left_size > 0 && left_count == 0 ? 1 : left_count;
}

void search_stat(struct search *search, struct search_stat *ret_stat) {
    struct search_stat stat = {0};
    pthread_mutex_lock(&search->lock);
    stat.documents_count = search->documents_count;
    stat.is_open = search->is_open;
    stat.left_count = search->mirrored_left;
    memcpy(stat.error, search->error, sizeof stat.error);
    pthread_mutex_unlock(&search->lock);
    for (size_t i = 0; i < search->volumes_count; i++) {
        pthread_mutex_lock(&search->lock);
        struct index_position position = search->volumes[i].position;
        pthread_mutex_unlock(&search->lock);
        add_volume(&search->volumes[i], &position, &stat);
    }
    stat.size = file_size(search->path, "") + file_size(search->path, "-wal");
    *ret_stat = stat;
}
