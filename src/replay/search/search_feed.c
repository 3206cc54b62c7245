#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/whole_file.h"
#include "parse/parse_seat.h"
#include "parse/parse_text.h"
#include "replay/search/search_state.h"
#include "replay/search/search_writer.h"
#include "run/priority.h"
#include "store/backend/backend_mirrored.h"
#include "store/volume/follow.h"
#include "web/url/canon.h"
#include "web/url/url.h"

enum {
    /*
     * The length of a transaction: so much is read again after a crash. On a busy machine the least urgent
     * thread does not get far in that time, and what is entered in small pieces is merged again and again.
     */
    BATCH_TIME_US = 2000000,
    BATCH_COUNT = 1000,  /* documents */
    PAUSE_US = 20000,    /* between batches */
    POLL_US = 1000000,   /* if all was read: what comes now gathers */
    RETRY_US = 10000000, /* after an error */
    CONTENT_SIZE_MAX = 4 << 20,
    PACK_LEVEL = 3,
};

/* ---- archives of others ---- */

/*
 * They come, grow and go while the feeder runs. What the database knows of each is told apart by a mark: if
 * the mark is another one, all its rows are made again. Rows of one that has gone while nobody looked stay
 * until its number is used again; they are shown to nobody.
 */
struct mirrored_one {
    struct mirrored_holding *holding; /* NULL: there is none */
    struct follow *follow;            /* of it */
    bool is_settled;                  /* the database has rows of it and of no other */
    bool was_there;                   /* it has gone: its rows go too */
};

struct search_mirrored {
    struct mirrored_one items[INSTANCE_MIRRORED_MAX];
};

static uint16_t mirrored_number(size_t index) {
    return (uint16_t)(INSTANCE_MIRRORED_NUMBER + index);
}

static void mirrored_let_go(struct mirrored_one *one) {
    if (one->follow != NULL) {
        follow_free(one->follow);
    }
    mirrored_release(one->holding);
    *one = (struct mirrored_one){.was_there = one->was_there || one->holding != NULL};
}

/* The database is another one. */
static void mirrored_forget(struct search_mirrored *mirrored) {
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        mirrored->items[i].is_settled = false;
    }
}

static void mirrored_look_at(struct mirrored_one *one, struct backend *backend) {
    struct mirrored_holding *holding = backend != NULL ? backend_mirrored_hold(backend) : NULL;
    if (holding == one->holding) {
        mirrored_release(holding); /* one share of it is enough */
        return;
    }
    mirrored_let_go(one);
    struct follow *follow = holding != NULL ? follow_new(mirrored_volume(holding)) : NULL;
    if (follow == NULL) { /* out of memory: the next look may have better luck */
        mirrored_release(holding);
        return;
    }
    one->holding = holding;
    one->follow = follow;
}

static bool mirrored_has_work(const struct mirrored_one *one) {
    return one->holding != NULL ? !one->is_settled || follow_is_behind(one->follow) : one->was_there;
}

/* Look which there are now; whether there is anything to do for them. Needs no transaction. */
static bool mirrored_look(struct search_mirrored *mirrored, struct instance *instance) {
    bool is_any = false;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        mirrored_look_at(&mirrored->items[i], instance_mirrored(instance, mirrored_number(i)));
        is_any = is_any || mirrored_has_work(&mirrored->items[i]);
    }
    return is_any;
}

static size_t mirrored_left(const struct search_mirrored *mirrored) {
    size_t count = 0;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        const struct mirrored_one *one = &mirrored->items[i];
        count += one->holding != NULL && mirrored_has_work(one);
    }
    return count;
}

/* The rows of the number are of this holding, and reading goes on behind them. */
static enum err mirrored_go_on(struct mirrored_one *one, uint16_t number, struct search_writer *writer,
                               struct err_detail *detail) {
    struct index_position position;
    enum err err = search_writer_position(writer, number, &position, detail);
    if (err == ERR_OK) {
        follow_seek(one->follow, &position);
        one->is_settled = true;
    }
    return err;
}

/* What there are rows of is another one, or none any more: out with some of them. */
static enum err mirrored_start_over(struct mirrored_one *one, uint16_t number, struct search_writer *writer,
                                    uint64_t *dropped_count, bool *ret_has_more, struct err_detail *detail) {
    static const struct index_position start = {0};
    uint64_t count;
    enum err err = search_writer_drop_volume(writer, number, &count, detail);
    if (err != ERR_OK) {
        return err;
    }
    *dropped_count += count;
    if (count > 0) {
        *ret_has_more = true;
        return ERR_OK;
    }
    err = search_writer_move(writer, number, &start, detail);
    err = err == ERR_OK ? search_writer_set_mark(
                              writer, number, one->holding != NULL ? mirrored_mark(one->holding) : 0, detail)
                        : err;
    if (err == ERR_OK) {
        one->was_there = false;
    }
    return err == ERR_OK && one->holding != NULL ? mirrored_go_on(one, number, writer, detail) : err;
}

/* Take out what must go, some of it. *ret_has_more is set if there are more rows to be dropped. */
static enum err mirrored_settle(struct search_mirrored *mirrored, struct search_writer *writer,
                                uint64_t *ret_dropped_count, bool *ret_has_more, struct err_detail *detail) {
    uint64_t dropped_count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX && err == ERR_OK; i++) {
        struct mirrored_one *one = &mirrored->items[i];
        uint64_t mark = 0;
        if (one->holding != NULL ? one->is_settled : !one->was_there) {
            continue;
        }
        if (one->holding != NULL) {
            err = search_writer_mark(writer, mirrored_number(i), &mark, detail);
        }
        bool is_known = one->holding != NULL && mark == mirrored_mark(one->holding);
        if (err == ERR_OK) {
            err = is_known ? mirrored_go_on(one, mirrored_number(i), writer, detail)
                           : mirrored_start_over(one, mirrored_number(i), writer, &dropped_count,
                                                 ret_has_more, detail);
        }
    }
    *ret_dropped_count = dropped_count;
    return err;
}

/* The collection of that index, from 0, among those that can be read on; NULL behind the last. */
static struct follow *mirrored_follow(struct search_mirrored *mirrored, size_t index, uint16_t *ret_number) {
    size_t seen_count = 0;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        const struct mirrored_one *one = &mirrored->items[i];
        if (one->holding != NULL && one->is_settled && seen_count++ == index) {
            *ret_number = mirrored_number(i);
            return one->follow;
        }
    }
    return NULL;
}

/* ---- */

struct search_feed {
    struct search *search;
    bool has_begun;
    struct search_writer writer;
    bool is_open;
    uint64_t documents_count; /* with what the transaction has done so far */
    size_t added_count;       /* in this transaction */
    struct follow **follows;  /* one per volume */
    struct search_mirrored mirrored;
    struct archive_reader *archive;
    struct parse_seat seat;
    struct parse_job job;
    struct buf params;                    /* of the job */
    struct buf text;                      /* what it gave */
    struct bytes parts[TEXT_PARTS_COUNT]; /* of the text */
    struct canon canon;
    struct buf packed;
};

/* ---- what becomes of a record ---- */

/* A resource has no status and is replayed as 200. */
static bool feed_is_page(const struct capture *capture) {
    return http_is_html(capture->mime) && (capture->status == 200 || capture->status == 0);
}

static enum err feed_put_text(void *context, struct bytes piece) {
    struct search_feed *feed = context;
    return buf_put(&feed->text, piece);
}

/* What is damaged counts as far as it can be read. parse_is_lost(): nobody could look at it. */
static enum err feed_read_text(struct search_feed *feed, const struct archive_record *record) {
    struct parse_text_params params = {
        .head = record->head, .content_type = record->content_type, .size_max = CONTENT_SIZE_MAX};
    enum err err = parse_text_params(&feed->params, &params);
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(&feed->text);
    feed->job.kind = &parse_text;
    feed->job.params = buf_bytes(&feed->params);
    feed->job.document = record->body;
    feed->job.out_size_max = PARSE_TEXT_SIZE_MAX;
    feed->job.put = feed_put_text;
    feed->job.context = feed;
    err = parse_run(&feed->seat, &feed->job);
    return err == ERR_OK && !parse_text_read(buf_bytes(&feed->text), feed->parts) ? ERR_CORRUPT : err;
}

static enum err pack_body(struct search_feed *feed) {
    struct bytes body = feed->parts[TEXT_BODY];
    size_t bound = ZSTD_compressBound(body.size);
    buf_clear(&feed->packed);
    enum err err = buf_reserve(&feed->packed, bound);
    if (err == ERR_OK) {
        size_t size = ZSTD_compress(feed->packed.data, bound, body.data, body.size, PACK_LEVEL);
        err = ZSTD_isError(size) ? ERR_MEMORY : ERR_OK;
        feed->packed.size = ZSTD_isError(size) ? 0 : size;
    }
    return err;
}

static struct bytes host_of(struct canon *canon, struct bytes url) {
    if (canon_run(canon, url, NULL) != ERR_OK) {
        return bytes_of(NULL, 0);
    }
    return bytes_slice(canon_url(canon), canon->host_start, canon->host_end);
}

/* Is it the document's fault, or that of another machine, that it cannot be read? Then it is left out. */
static bool is_passed_over(enum err err) {
    return err == ERR_NOT_FOUND || err == ERR_CORRUPT || err == ERR_INVALID || err == ERR_TRUNCATED ||
           err == ERR_LIMIT || err == ERR_MISMATCH || err == ERR_UNREACHABLE || err == ERR_TIMEOUT ||
           err == ERR_CLOSED;
}

static enum err feed_add_page(struct search_feed *feed, const struct capture *capture,
                              struct err_detail *detail) {
    struct archive_record record;
    enum err err = archive_open(feed->archive, capture, &record, detail);
    if (err != ERR_OK) {
        return is_passed_over(err) ? ERR_OK : err;
    }
    err = feed_read_text(feed, &record);
    if (err == ERR_CLOSED || err == ERR_CORRUPT || err == ERR_LIMIT) {
        return ERR_OK; /* a document that ends its parser has no text; the next one may have */
    }
    priority_yield();
    err = err == ERR_OK ? pack_body(feed) : err;
    priority_yield();
    if (err != ERR_OK) {
        return err;
    }
    struct search_page page = {
        .capture = capture,
        .host = host_of(&feed->canon, capture->url),
        .language = feed->parts[TEXT_LANGUAGE],
        .title = feed->parts[TEXT_TITLE],
        .description = feed->parts[TEXT_DESCRIPTION],
        .body = feed->parts[TEXT_BODY],
        .packed = buf_bytes(&feed->packed),
    };
    err = search_writer_add(&feed->writer, &page, detail);
    feed->documents_count += err == ERR_OK;
    feed->added_count++;
    priority_yield();
    return err;
}

static enum err see_capture(struct search_feed *feed, const struct capture *capture,
                            struct err_detail *detail) {
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    if (!feed_is_page(capture) && !is_revisit) {
        return ERR_OK;
    }
    bool is_known;
    enum err err = search_writer_see(&feed->writer, capture, &is_known, detail);
    return err == ERR_OK && !is_known && feed_is_page(capture) ? feed_add_page(feed, capture, detail) : err;
}

static void count_dropped(struct search_feed *feed, uint64_t count) {
    feed->documents_count -= count < feed->documents_count ? count : feed->documents_count;
}

/* Take the rows of a document on a volume out, unless it is there after all. */
static enum err forget_on(struct search_feed *feed, const struct key *key, struct err_detail *detail) {
    struct instance_session *session = archive_reader_session(feed->archive);
    struct capture capture = {.volume = key->volume, .block_number = key->number};
    struct key located;
    struct block block;
    uint64_t count = 0;
    enum err err = ERR_OK;
    memcpy(capture.digest, key->digest, sizeof capture.digest);
    if (instance_session_sees(session, key->volume) &&
        instance_locate(session, &capture, &located, &block, NULL) == ERR_NOT_FOUND) {
        err = search_writer_drop(&feed->writer, key, &count, detail);
    }
    count_dropped(feed, count);
    return err;
}

/* Somebody says that the document is removed: take its rows out, wherever it really is. */
static enum err feed_forget(struct search_feed *feed, const struct key *key, struct err_detail *detail) {
    struct search *search = feed->search;
    struct key at = *key;
    enum err err = ERR_OK;
    if (instance_is_mirrored(key->volume)) { /* in an archive of others: only there */
        return forget_on(feed, key, detail);
    }
    for (size_t i = 0; i < search->volumes_count && err == ERR_OK; i++) {
        at.volume = search->volumes[i].number;
        err = forget_on(feed, &at, detail);
    }
    return err;
}

static enum err feed_enter(struct search_feed *feed, uint16_t volume, const struct ledger_entry *entry,
                           struct err_detail *detail) {
    if (entry->kind == LEDGER_DELETION || entry->kind == LEDGER_REMOVAL) {
        struct key key = {.volume = volume, .number = entry->number};
        memcpy(key.digest, entry->digest, sizeof key.digest);
        return feed_forget(feed, &key, detail);
    }
    if (entry->kind == LEDGER_OTHER || entry->surt.size == 0) {
        return ERR_OK;
    }
    struct capture capture = ledger_capture(entry);
    capture.volume = volume;
    return see_capture(feed, &capture, detail);
}

/* ---- batches ---- */

/* What the askers found removed. */
static enum err forget_stale(struct search_feed *feed, struct err_detail *detail) {
    struct search *search = feed->search;
    struct key stale[SEARCH_STALE_MAX];
    pthread_mutex_lock(&search->lock);
    size_t count = search->stale_count;
    memcpy(stale, search->stale, count * sizeof *stale);
    search->stale_count = 0;
    pthread_mutex_unlock(&search->lock);
    enum err err = ERR_OK;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        err = feed_forget(feed, &stale[i], detail);
    }
    return err;
}

/* Read on in a volume while there is time. */
static enum err read_volume(struct search_feed *feed, struct follow *follow, uint16_t number, uint64_t due_us,
                            bool *ret_has_more, struct err_detail *detail) {
    struct search *search = feed->search;
    const struct clock *clock = search->config.clock;
    struct ledger_entry entry;
    enum err err = ERR_OK;
    bool has_more = true;
    while (has_more && err == ERR_OK && clock_monotonic_us(clock) < due_us &&
           feed->added_count < BATCH_COUNT && !task_is_stopping(&search->feeder)) {
        err = follow_next(follow, &entry, detail);
        has_more = err == ERR_OK;
        if (err == ERR_OK) {
            err = feed_enter(feed, number, &entry, detail);
        } else if (err == ERR_NOT_FOUND) {
            err = ERR_OK;
        }
    }
    follow_pause(follow);
    if (err == ERR_OK) {
        struct index_position position = follow_position(follow);
        err = search_writer_move(&feed->writer, number, &position, detail);
    }
    *ret_has_more = *ret_has_more || has_more;
    return err;
}

/* The archives of others, after this node's own. */
static enum err read_mirrored(struct search_feed *feed, uint64_t due_us, bool *ret_has_more,
                              struct err_detail *detail) {
    uint64_t dropped_count = 0;
    uint16_t number;
    struct follow *follow;
    enum err err = mirrored_settle(&feed->mirrored, &feed->writer, &dropped_count, ret_has_more, detail);
    count_dropped(feed, dropped_count);
    for (size_t i = 0; err == ERR_OK && (follow = mirrored_follow(&feed->mirrored, i, &number)) != NULL;
         i++) {
        if (follow_is_behind(follow)) {
            err = read_volume(feed, follow, number, due_us, ret_has_more, detail);
        }
        if (err == ERR_MISMATCH) { /* its index is another one: only its own rows are made again */
            err = search_writer_set_mark(&feed->writer, number, 0, detail);
            mirrored_forget(&feed->mirrored);
            *ret_has_more = true;
        }
    }
    return err;
}

static void take_over(struct search_feed *feed) {
    struct search *search = feed->search;
    size_t left_count = mirrored_left(&feed->mirrored);
    pthread_mutex_lock(&search->lock);
    search->mirrored_left = left_count;
    for (size_t i = 0; i < search->volumes_count; i++) {
        search->volumes[i].position = follow_position(feed->follows[i]);
    }
    search->documents_count = feed->documents_count;
    search->error[0] = '\0';
    pthread_mutex_unlock(&search->lock);
}

/* Is there anything to do? Else no transaction is begun, and nothing written. */
static bool has_work(struct search_feed *feed) {
    struct search *search = feed->search;
    bool has_work = mirrored_look(&feed->mirrored, search->config.instance);
    archive_reader_renew(feed->archive);
    for (size_t i = 0; i < search->volumes_count && !has_work; i++) {
        has_work = follow_is_behind(feed->follows[i]);
    }
    pthread_mutex_lock(&search->lock);
    has_work = has_work || search->stale_count > 0;
    pthread_mutex_unlock(&search->lock);
    return has_work;
}

static enum err run_batch(struct search_feed *feed, bool *ret_has_more, struct err_detail *detail) {
    struct search *search = feed->search;
    *ret_has_more = false;
    if (!has_work(feed)) {
        return ERR_OK;
    }
    uint64_t due_us = clock_monotonic_us(search->config.clock) + BATCH_TIME_US;
    feed->added_count = 0;
    enum err err = search_database_run(feed->writer.database, "BEGIN IMMEDIATE", detail);
    err = err == ERR_OK ? forget_stale(feed, detail) : err;
    for (size_t i = 0; i < search->volumes_count && err == ERR_OK; i++) {
        err = read_volume(feed, feed->follows[i], search->volumes[i].number, due_us, ret_has_more, detail);
    }
    err = err == ERR_OK ? read_mirrored(feed, due_us, ret_has_more, detail) : err;
    err = err == ERR_OK ? search_database_run(feed->writer.database, "COMMIT", detail) : err;
    if (err == ERR_OK) {
        take_over(feed);
    }
    return err;
}

/* ---- the database ---- */

static void close_database(struct search_feed *feed) {
    struct search *search = feed->search;
    pthread_mutex_lock(&search->lock);
    search->is_open = false;
    pthread_mutex_unlock(&search->lock);
    if (feed->is_open) {
        search_writer_close(&feed->writer); /* undoes what was not committed */
        feed->is_open = false;
    }
}

static enum err read_positions(struct search_feed *feed, struct err_detail *detail) {
    struct search *search = feed->search;
    enum err err = search_writer_count(&feed->writer, &feed->documents_count, detail);
    mirrored_forget(&feed->mirrored);
    for (size_t i = 0; i < search->volumes_count && err == ERR_OK; i++) {
        struct index_position position;
        err = search_writer_position(&feed->writer, search->volumes[i].number, &position, detail);
        if (err == ERR_OK) {
            follow_seek(feed->follows[i], &position);
        }
    }
    return err;
}

static enum err open_database(struct search_feed *feed, struct err_detail *detail) {
    struct search *search = feed->search;
    enum err err = whole_file_make_directory(search->directory, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = search_writer_open(&feed->writer, search->path, detail);
    if (err != ERR_OK) {
        return err;
    }
    feed->is_open = true;
    err = read_positions(feed, detail);
    if (err != ERR_OK) {
        close_database(feed);
        return err;
    }
    pthread_mutex_lock(&search->lock);
    search->generation++;
    search->is_open = true;
    search->is_damaged = false;
    pthread_mutex_unlock(&search->lock);
    take_over(feed);
    return ERR_OK;
}

static void feed_tell(const struct search *search, const char *sentence) {
    if (search->config.tell != NULL) {
        search->config.tell(search->config.context, "search", sentence);
    }
}

/* Throw the database away; it is opened again, empty, in the next round. */
static enum err start_over(struct search_feed *feed, const char *reason, struct err_detail *detail) {
    char sentence[2 * ERR_TEXT_SIZE_MAX];
    snprintf(sentence, sizeof sentence, "the full-text index is made again from the archive: %s", reason);
    feed_tell(feed->search, sentence);
    close_database(feed);
    return search_database_remove(feed->search->path, detail);
}

/* Has somebody removed the file, or found it damaged? */
static const char *trouble(struct search_feed *feed) {
    struct search *search = feed->search;
    pthread_mutex_lock(&search->lock);
    bool is_damaged = search->is_damaged;
    pthread_mutex_unlock(&search->lock);
    if (is_damaged) {
        return "it is damaged";
    }
    return feed->is_open && access(search->path, F_OK) != 0 ? "its file has gone" : NULL;
}

/* ---- the thread ---- */

static enum err run_round(struct search_feed *feed, bool *ret_has_more, struct err_detail *detail) {
    *ret_has_more = false;
    const char *reason = trouble(feed);
    enum err err = reason != NULL ? start_over(feed, reason, detail) : ERR_OK;
    if (err == ERR_OK && !feed->is_open) {
        err = open_database(feed, detail);
    }
    if (err == ERR_OK) {
        err = run_batch(feed, ret_has_more, detail);
    }
    if (err == ERR_CORRUPT || err == ERR_MISMATCH) {
        char text[ERR_TEXT_SIZE_MAX];
        snprintf(text, sizeof text, "%s", err_detail_text(detail, err));
        *ret_has_more = true;
        return start_over(feed, text, detail);
    }
    if (err != ERR_OK) {
        close_database(feed); /* what was half done is undone */
    }
    return err;
}

static void feed_note(struct search *search, enum err err, const struct err_detail *detail) {
    char before[ERR_TEXT_SIZE_MAX];
    char now[ERR_TEXT_SIZE_MAX] = "";
    if (err != ERR_OK) {
        snprintf(now, sizeof now, "%s", err_detail_text(detail, err));
    }
    pthread_mutex_lock(&search->lock);
    memcpy(before, search->error, sizeof before);
    memcpy(search->error, now, sizeof now);
    pthread_mutex_unlock(&search->lock);
    if (err != ERR_OK && strcmp(before, now) != 0) {
        feed_tell(search, now);
    }
}

static enum err feed_init(struct search_feed *feed, struct search *search) {
    *feed = (struct search_feed){.search = search};
    canon_init(&feed->canon);
    buf_init(&feed->packed, 2 * TEXT_BODY_SIZE_MAX);
    feed->follows = calloc(search->volumes_count + 1, sizeof(struct follow *));
    parse_seat_init(&feed->seat, search->config.parsers, PARSE_LATER);
    buf_init(&feed->params, PARSE_PARAMS_SIZE_MAX);
    buf_init(&feed->text, PARSE_TEXT_SIZE_MAX);
    feed->archive = archive_reader_begin_here(search->archive);
    enum err err = feed->follows == NULL || feed->archive == NULL ? ERR_MEMORY : ERR_OK;
    for (size_t i = 0; i < search->volumes_count && err == ERR_OK; i++) {
        feed->follows[i] = follow_new(search->volumes[i].volume);
        err = feed->follows[i] == NULL ? ERR_MEMORY : ERR_OK;
    }
    return err;
}

static void feed_done(struct search_feed *feed) {
    close_database(feed);
    for (size_t i = 0; feed->follows != NULL && i < feed->search->volumes_count; i++) {
        if (feed->follows[i] != NULL) {
            follow_free(feed->follows[i]);
        }
    }
    free(feed->follows);
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        mirrored_let_go(&feed->mirrored.items[i]);
    }
    archive_reader_end(feed->archive);
    parse_seat_done(&feed->seat);
    buf_done(&feed->params);
    buf_done(&feed->text);
    canon_done(&feed->canon);
    buf_done(&feed->packed);
}

static uint64_t search_feed_run(void *context) {
    struct search_feed *feed = context;
    struct err_detail detail = {0};
    bool has_more = true;
    if (!feed->has_begun) {
        feed->has_begun = true;
        enum err opened = open_database(feed, &detail); /* before it can take long */
        (void)opened;                                   /* is tried again at once */
        priority_lower(PRIORITY_IDLE);
        return 0;
    }
    enum err outcome = run_round(feed, &has_more, &detail);
    feed_note(feed->search, outcome, &detail);
    return outcome != ERR_OK ? RETRY_US : has_more ? PAUSE_US : POLL_US;
}

enum err search_feed_start(struct search *search) {
    search->feed = calloc(1, sizeof *search->feed);
    enum err err = search->feed == NULL ? ERR_MEMORY : feed_init(search->feed, search);
    return err == ERR_OK
               ? task_start(&search->feeder, "search-feeder", PRIORITY_USUAL, search_feed_run, search->feed)
               : err;
}

void search_feed_stop(struct search *search) {
    task_stop(&search->feeder);
    if (search->feed != NULL) {
        feed_done(search->feed);
        free(search->feed);
    }
}
