#include "replay/archive/archive.h"

#include <stdlib.h>

#include "replay/archive/archive_state.h"
#include "store/backend/backend_mirrored.h"
#include "web/url/surt.h"

enum {
    HELD_MAX = 256,                 /* readers, a few MiB of memory each */
    FREE_MAX = 32,                  /* that wait in the pool */
    KEPT_SIZE_MAX = 1 << 20,        /* of a record, in the pool, by each reader */
    LARGE_SIZE_MAX = 512 << 20,     /* of a record that is kept for whoever asks for more of it */
    LARGE_FRAME_SIZE_MIN = 1 << 16, /* shorter frames are soon read again */
    BRIEF_FRAME_SIZE_MAX = 256 << 10,
    TRIES_MAX = 4,
    BUDGET_SIZE_MAX = 1 << 30, /* of files */
    WORKING_MAX = 4,           /* threads with long work; with those that wait half of the server's workers */
    WAITING_MAX = 12,
};

static const uint64_t TRIES_US = 6000000;

/* ---- records ---- */

/* One record that was read, and its body without chunks. */
struct archive_part {
    struct archive *archive;
    struct instance_session *session; /* what was read lasts until its next get */
    struct record record;
    struct bytes document; /* the body of the record, or chunks */
    struct scratch chunks; /* the body of a chunked one, put together */
    bool is_read;          /* what follows says what the record is */
    uint16_t volume;
    struct location location;
    uint8_t digest[KEY_DIGEST_SIZE];
};

static void part_free(struct archive_part *part) {
    if (part == NULL) {
        return;
    }
    record_done(&part->record);
    scratch_done(&part->chunks);
    instance_session_free(part->session);
    free(part);
}

static struct archive_part *part_new(struct archive *archive) {
    struct archive_part *part = calloc(1, sizeof *part);
    if (part == NULL) {
        return NULL;
    }
    part->archive = archive;
    scratch_init(&part->chunks, archive->scratch_directory, SCRATCH_MEMORY_MAX, VOLUME_DOCUMENT_SIZE_MAX);
    scratch_set_budget(&part->chunks, instance_reading_budget(archive->instance));
    part->session = instance_session_new(archive->instance);
    if (record_init(&part->record) != ERR_OK || part->session == NULL) {
        part_free(part);
        return NULL;
    }
    instance_session_set_guest(part->session, true); /* what was found anywhere can be opened */
    return part;
}

/*
 * Videos are asked for in many ranges: the record stays as it was read, for the next of them. Not so that of
 * an archive of others: it would keep an index open that may have been replaced long ago.
 */
static void part_rest(struct archive_part **part, struct archive *archive) {
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
    part_free(old);
}

static bool archive_is_same(const struct archive_part *part, uint16_t volume, const struct location *location,
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
        if (archive_is_same(archive->large[i], volume, location, digest)) {
            old = *part;
            *part = archive->large[i];
            archive->large[i] = NULL;
            is_found = true;
        }
    }
    pthread_mutex_unlock(&archive->lock);
    part_free(old);
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

/* Files of records that are only kept in case somebody wants more of them go first. */
static void drop_large(struct archive *archive) {
    struct archive_part *dropped[ARCHIVE_LARGE_COUNT];
    pthread_mutex_lock(&archive->lock);
    memcpy(dropped, archive->large, sizeof dropped);
    memset(archive->large, 0, sizeof archive->large);
    pthread_mutex_unlock(&archive->lock);
    for (size_t i = 0; i < ARCHIVE_LARGE_COUNT; i++) {
        part_free(dropped[i]);
    }
}

static enum err part_read_record(struct archive_part *part, uint16_t volume, const struct location *location,
                                 struct err_detail *detail) {
    enum err err = record_read(&part->record, part->session, volume, location, detail);
    if (err != ERR_OK) {
        return err;
    }
    part->document = part->record.body;
    bool is_chunked = part->record.head.size > 0 && http_head_is_chunked(&part->record.payload.head);
    return is_chunked ? undo_chunks(part) : ERR_OK;
}

/* Into *ret_part, which is made if it is NULL, and replaced by one that holds the record already. */
static enum err part_read(struct archive_part **ret_part, struct archive_reader *reader, uint16_t volume,
                          const struct location *location, const uint8_t digest[KEY_DIGEST_SIZE],
                          struct err_detail *detail) {
    struct archive *archive = reader->archive;
    if (reader->is_brief && location->length > BRIEF_FRAME_SIZE_MAX) {
        return ERR_LIMIT;
    }
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
    instance_session_set_brief(part->session, reader->is_brief);
    enum err err = part_read_record(part, volume, location, detail);
    if (err == ERR_BUSY) {
        drop_large(archive);
        err = part_read_record(part, volume, location, detail);
    }
    part->is_read = err == ERR_OK;
    part->volume = volume;
    part->location = *location;
    memcpy(part->digest, digest, sizeof part->digest);
    return err;
}

/* ---- readers ---- */

static void reader_free(struct archive_reader *reader) {
    if (reader->extra != NULL) {
        reader->free_extra(reader->extra);
    }
    part_free(reader->own);
    part_free(reader->original);
    archive_timeline_done(&reader->timeline);
    buf_done(&reader->found);
    buf_done(&reader->beside);
    buf_done(&reader->near);
    likeness_done(&reader->likeness);
    buf_done(&reader->surt);
    canon_done(&reader->canon);
    if (reader->unmarked != NULL) {
        record_done(reader->unmarked);
        free(reader->unmarked);
    }
    instance_session_free(reader->session);
    free(reader);
}

static struct archive_reader *reader_new(struct archive *archive) {
    struct archive_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return NULL;
    }
    reader->archive = archive;
    canon_init(&reader->canon);
    buf_init(&reader->surt, URL_SIZE_MAX + 16);
    buf_init(&reader->found, ARCHIVE_KEY_SIZE_MAX + INDEX_MIME_SIZE_MAX);
    buf_init(&reader->beside, ARCHIVE_KEY_SIZE_MAX + INDEX_MIME_SIZE_MAX);
    buf_init(&reader->near, 4 * (size_t)URL_SIZE_MAX);
    likeness_init(&reader->likeness);
    archive_timeline_init(&reader->timeline);
    reader->session = instance_session_new(archive->instance);
    if (reader->session == NULL) {
        reader_free(reader);
        return NULL;
    }
    return reader;
}

struct archive *archive_new(const struct archive_config *config) {
    struct archive *archive = calloc(1, sizeof *archive);
    if (archive == NULL) {
        return NULL;
    }
    archive->instance = config->instance;
    archive->access = config->access;
    archive->scratch_directory = config->scratch_directory;
    archive->clock = config->clock != NULL ? config->clock : &clock_system;
    archive->parsers = config->parsers;
    archive->parses_short = config->parses_short;
    archive->trusts_fetched_only = config->trusts_fetched_only;
    archive->judge = config->judge;
    archive->admits = config->admits;
    archive->judge_context = config->context;
    pthread_mutex_init(&archive->lock, NULL);
    scratch_budget_init(&archive->budget, BUDGET_SIZE_MAX);
    turnstile_init(&archive->work, WORKING_MAX, WAITING_MAX);
    return archive;
}

void archive_free(struct archive *archive) {
    while (archive->free_readers != NULL) {
        struct archive_reader *reader = archive->free_readers;
        archive->free_readers = reader->next;
        reader_free(reader);
    }
    for (size_t i = 0; i < ARCHIVE_LARGE_COUNT; i++) {
        part_free(archive->large[i]);
    }
    turnstile_done(&archive->work);
    pthread_mutex_destroy(&archive->lock);
    free(archive);
}

struct instance *archive_instance(const struct archive *archive) {
    return archive->instance;
}

const char *archive_scratch_directory(const struct archive *archive) {
    return archive->scratch_directory;
}

struct scratch_budget *archive_budget(struct archive *archive) {
    return &archive->budget;
}

struct turnstile *archive_work(struct archive *archive) {
    return &archive->work;
}

struct parsers *archive_parsers(const struct archive *archive) {
    return archive->parsers;
}

struct parsers *archive_reader_parsers(const struct archive_reader *reader) {
    return reader->archive->parsers;
}

struct parsers *archive_short_parsers(const struct archive *archive) {
    return archive->parses_short ? archive->parsers : NULL;
}

struct archive_reader *archive_reader_begin(struct archive *archive) {
    pthread_mutex_lock(&archive->lock);
    struct archive_reader *reader = archive->free_readers;
    if (reader != NULL) {
        archive->free_readers = reader->next;
        archive->free_count--;
    }
    pthread_mutex_unlock(&archive->lock);
    reader = reader != NULL ? reader : reader_new(archive);
    if (reader != NULL) {
        reader->trusts_fetched_only = archive->trusts_fetched_only;
        reader->unmarked_count = 0;
        instance_session_forget_absent(reader->session);
        instance_session_set_guest(reader->session, true);
        instance_session_set_mirrored(reader->session, true);
        instance_session_hide_witnesses(reader->session, true);
    }
    return reader;
}

struct archive_reader *archive_reader_begin_here(struct archive *archive) {
    struct archive_reader *reader = archive_reader_begin(archive);
    if (reader != NULL) {
        instance_session_set_guest(reader->session, false);
    }
    return reader;
}

struct archive_reader *archive_reader_begin_own(struct archive *archive) {
    struct archive_reader *reader = archive_reader_begin_here(archive);
    if (reader != NULL) {
        instance_session_set_mirrored(reader->session, false);
    }
    return reader;
}

void archive_reader_renew(struct archive_reader *reader) {
    reader->timeline.is_known = false;
    part_rest(&reader->own, reader->archive);
    part_rest(&reader->original, reader->archive);
    instance_session_set_mirrored(reader->session, true);
}

void archive_reader_end(struct archive_reader *reader) {
    if (reader == NULL) {
        return;
    }
    struct archive *archive = reader->archive;
    part_rest(&reader->own, archive);
    part_rest(&reader->original, archive);
    reader->timeline.is_known = false; /* the next reader wants to see what is new */
    instance_session_set_mirrored(reader->session, false);
    pthread_mutex_lock(&archive->lock);
    archive->held_count -= reader->is_held ? 1 : 0;
    reader->is_held = false;
    reader->is_brief = false;
    bool is_kept = archive->free_count < FREE_MAX;
    if (is_kept) {
        reader->next = archive->free_readers;
        archive->free_readers = reader;
        archive->free_count++;
    }
    pthread_mutex_unlock(&archive->lock);
    if (!is_kept) {
        reader_free(reader);
    }
}

bool archive_reader_hold(struct archive_reader *reader) {
    struct archive *archive = reader->archive;
    pthread_mutex_lock(&archive->lock);
    bool may_hold = archive->held_count < HELD_MAX;
    archive->held_count += may_hold ? 1 : 0;
    reader->is_held = may_hold;
    pthread_mutex_unlock(&archive->lock);
    return may_hold;
}

void archive_reader_set_brief(struct archive_reader *reader, bool is_brief) {
    reader->is_brief = is_brief;
}

const struct archive *archive_reader_archive(const struct archive_reader *reader) {
    return reader->archive;
}

struct instance_session *archive_reader_session(struct archive_reader *reader) {
    return reader->session;
}

const struct absent *archive_reader_absent(const struct archive_reader *reader) {
    return instance_session_absent(reader->session);
}

void *archive_reader_extra(const struct archive_reader *reader) {
    return reader->extra;
}

void archive_reader_set_extra(struct archive_reader *reader, void *take_extra, void (*free_extra)(void *)) {
    ASSERT(reader->extra == NULL);
    reader->extra = take_extra;
    reader->free_extra = free_extra;
}

/* ---- finding ---- */

enum err archive_key(struct archive_reader *reader, struct bytes url, struct bytes *ret_surt,
                     struct err_detail *detail) {
    enum err err = canon_run(&reader->canon, url, detail);
    if (err == ERR_OK) {
        buf_clear(&reader->surt);
        err = surt_put(&reader->surt, &reader->canon);
    }
    if (err == ERR_OK) {
        *ret_surt = buf_bytes(&reader->surt);
    }
    return err;
}

bool archive_is_asked(struct archive_reader *reader, struct bytes asked, struct bytes url) {
    return bytes_equal(asked, url) || (likeness_ask(&reader->likeness, asked) == ERR_OK &&
                                       likeness_of(&reader->likeness, url) == LIKENESS_SAME);
}

enum access_verdict archive_verdict(const struct archive_reader *reader, const struct capture *capture) {
    struct access *access = reader->archive->access;
    if (access == NULL) {
        return ACCESS_ALLOW;
    }
    struct backend *mirrored = instance_mirrored(reader->archive->instance, capture->volume);
    enum access_verdict own =
        access_has_rules(access) ? access_check(access, capture->surt, capture->time_us) : ACCESS_ALLOW;
    enum access_verdict owners =
        mirrored == NULL ? ACCESS_ALLOW : backend_mirrored_check(mirrored, capture->surt, capture->time_us);
    return own > owners ? own : owners; /* the stricter one */
}

/* Another node lists what nobody can have fetched yet: it would be the newest version for years. */
static bool archive_admits(const struct archive_reader *reader, const struct capture *capture) {
    const struct archive *archive = reader->archive;
    return capture->time_us <= clock_wall_us(archive->clock) + ARCHIVE_AHEAD_US &&
           (archive->admits == NULL || archive->admits(archive->judge_context, capture));
}

enum err archive_see(struct archive_reader *reader, const struct capture *capture) {
    enum err err = instance_check(reader->session, capture);
    if (err == ERR_OK && archive_verdict(reader, capture) == ACCESS_EXCLUDE) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_OK && capture->volume == INSTANCE_GUEST_NUMBER && !archive_admits(reader, capture)) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_OK && reader->trusts_fetched_only &&
        archive_provenance(reader, capture) != PROVENANCE_FETCHED) {
        err = ERR_NOT_FOUND;
    }
    return err;
}

/* ---- opening ---- */

/* It cannot be had, and never will be: what is only busy or silent now is not looked past. */
static bool is_lost(enum err err) {
    return err == ERR_NOT_FOUND || err == ERR_CORRUPT || err == ERR_TRUNCATED || err == ERR_MISMATCH;
}

enum err archive_note_read(struct archive_reader *reader, const struct capture *capture, enum err err) {
    reader->lost.is_lost = is_lost(err);
    reader->lost.time_us = capture->time_us;
    memcpy(reader->lost.digest, capture->digest, sizeof reader->lost.digest);
    return err;
}

/*
 * The capture's own record. Compaction may have moved it since it was found, or a mirrored archive have been
 * replaced; then look again.
 */
static enum err read_own(struct archive_reader *reader, const struct capture *capture,
                         struct err_detail *detail) {
    enum err err =
        part_read(&reader->own, reader, capture->volume, &capture->location, capture->digest, detail);
    struct capture moved;
    if (err == ERR_NOT_FOUND && instance_is_mirrored(capture->volume)) {
        instance_session_set_mirrored(reader->session, true);
    }
    if (err != ERR_NOT_FOUND || archive_find_again(reader, capture, &moved) != ERR_OK) {
        return err;
    }
    return part_read(&reader->own, reader, moved.volume, &moved.location, capture->digest, detail);
}

/* What the server said: with this capture, or with the original if it said only that nothing had changed. */
static void archive_describe(struct archive_reader *reader, const struct archive_part *part,
                             struct archive_record *out) {
    static const struct fields no_fields = {.count = 0};
    const struct record *record = &part->record;
    out->is_http = record->head.size > 0;
    out->head = record->head;
    out->fields = out->is_http ? &record->payload.head.fields : &no_fields;
    out->status = out->is_http ? record->payload.head.status : 200;
    out->content_type =
        out->is_http ? http_content_type(out->fields, reader->type) : record->header.content_type;
}

/* Only revisits have theirs elsewhere; the others need not be looked up, unless documents were removed. */
static enum err archive_find_block(struct archive_reader *reader, const struct capture *capture,
                                   struct archive_record *out, struct err_detail *detail) {
    if (out->is_revisit) {
        return instance_locate(reader->session, capture, &out->key, &out->block, detail);
    }
    out->key = (struct key){.volume = capture->volume, .number = capture->block_number};
    memcpy(out->key.digest, capture->digest, sizeof out->key.digest);
    out->block.location = capture->location;
    return instance_check(reader->session, capture);
}

enum err archive_open(struct archive_reader *reader, const struct capture *capture,
                      struct archive_record *ret_record, struct err_detail *detail) {
    struct archive_record out = {.is_revisit = (capture->flags & CAPTURE_REVISIT) != 0};
    if (archive_verdict(reader, capture) != ACCESS_ALLOW) {
        return err_set(detail, ERR_PERMISSION, "a rule of this archive blocks this capture");
    }
    enum err err = archive_find_block(reader, capture, &out, detail);
    if (err == ERR_OK) {
        err = read_own(reader, capture, detail);
    }
    if (err == ERR_OK && out.is_revisit) {
        err =
            part_read(&reader->original, reader, out.key.volume, &out.block.location, out.key.digest, detail);
    }
    if (archive_note_read(reader, capture, err) != ERR_OK) {
        return err;
    }
    out.body = out.is_revisit ? reader->original->document : reader->own->document;
    out.block.size = out.body.size;
    out.header = &reader->own->record.header;
    out.is_not_modified = out.is_revisit && record_is_not_modified(out.header);
    archive_describe(reader, out.is_not_modified ? reader->original : reader->own, &out);
    *ret_record = out;
    return ERR_OK;
}

/* ---- finding one that can be opened ---- */

/* The same capture is worth another try only if its document belongs to another. False: there is nothing
 * else.
 */
static bool find_another(struct archive_reader *reader, const struct archive_attempt *attempt,
                         struct capture *ret_capture) {
    const struct archive_lost *lost = &reader->lost;
    struct err_detail detail = {0};
    archive_reader_renew(reader);
    if (attempt->find(attempt->context, ret_capture, &detail) != ERR_OK) {
        return false;
    }
    bool is_same = ret_capture->time_us == lost->time_us &&
                   memcmp(ret_capture->digest, lost->digest, sizeof lost->digest) == 0;
    return !is_same || ret_capture->flags & CAPTURE_REVISIT;
}

enum err archive_try(struct archive_reader *reader, const struct archive_attempt *attempt,
                     struct err_detail *detail) {
    const struct clock *clock = reader->archive->clock;
    struct capture capture;
    enum err err = attempt->find(attempt->context, &capture, detail);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t until_us = clock_monotonic_us(clock) + TRIES_US;
    reader->lost.is_lost = false;
    err = attempt->use(attempt->context, &capture, detail);
    /* If it went well, the reader may belong to the client's stream already. */
    for (int tries = 1; err != ERR_OK && reader->lost.is_lost && tries < TRIES_MAX; tries++) {
        if (clock_monotonic_us(clock) >= until_us || !find_another(reader, attempt, &capture)) {
            break;
        }
        reader->lost.is_lost = false;
        err = attempt->use(attempt->context, &capture, detail);
    }
    return err;
}
