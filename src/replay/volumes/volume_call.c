#include "replay/volumes/volume_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/index/index_code.h"
#include "store/index/index_cursor.h"
#include "store/remote/backend_code.h"

enum { ARGUMENT_SIZE_MAX = 96, TRIES_MAX = 16 /* as volume_put() */ };

static const char BINARY[] = "application/octet-stream";

/* ---- kits ---- */

static void free_kit(struct volume_kit *kit) {
    volume_writer_free(kit->writer);
    volume_reader_free(kit->reader);
    volume_requests_free(kit->requests);
    scratch_done(&kit->body);
    pack_payload_done(&kit->pack_payload);
    free(kit);
}

static struct volume_kit *make_kit(const struct volume_kits *kits) {
    struct volume_kit *kit = calloc(1, sizeof *kit);
    if (kit == NULL) {
        return NULL;
    }
    if (pack_payload_init(&kit->pack_payload) != ERR_OK) {
        free(kit);
        return NULL;
    }
    scratch_init(&kit->body, kits->scratch_directory, SCRATCH_MEMORY_MAX, VOLUME_DOCUMENT_SIZE_MAX);
    kit->writer = volume_writer_new(kits->volume);
    kit->reader = volume_reader_new(kits->volume);
    kit->requests = volume_requests_new(kits->volume);
    if (kit->writer == NULL || kit->reader == NULL || kit->requests == NULL) {
        free_kit(kit);
        return NULL;
    }
    return kit;
}

void volume_kits_init(struct volume_kits *kits, struct volume *volume, const char *scratch_directory) {
    *kits = (struct volume_kits){.volume = volume, .scratch_directory = scratch_directory};
    pthread_mutex_init(&kits->lock, NULL);
}

void volume_kits_done(struct volume_kits *kits) {
    while (kits->free_kits != NULL) {
        struct volume_kit *kit = kits->free_kits;
        kits->free_kits = kit->next;
        free_kit(kit);
    }
    pthread_mutex_destroy(&kits->lock);
}

struct volume_kit *volume_kits_take(struct volume_kits *kits) {
    pthread_mutex_lock(&kits->lock);
    struct volume_kit *kit = kits->free_kits;
    kits->free_kits = kit == NULL ? NULL : kit->next;
    pthread_mutex_unlock(&kits->lock);
    return kit == NULL ? make_kit(kits) : kit;
}

void volume_kits_give_back(struct volume_kits *kits, struct volume_kit *kit) {
    scratch_clear(&kit->body);
    pthread_mutex_lock(&kits->lock);
    kit->next = kits->free_kits;
    kits->free_kits = kit;
    pthread_mutex_unlock(&kits->lock);
}

/* ---- what was asked, and answers ---- */

/* With what is in the buffer, or with its error. */
enum err volume_call_answer(struct volume_call *call, struct buf *take_out) {
    enum err err = take_out->err;
    if (err == ERR_OK) {
        http_answer(call->request, STATUS_OK, BINARY, buf_bytes(take_out));
    }
    buf_done(take_out);
    return err;
}

static bool takes_zstd(const struct http_request *request) {
    struct bytes rest = http_request_header(request, "Accept-Encoding");
    struct bytes part;
    while (bytes_split(&rest, ',', &part)) {
        if (bytes_equal_ignore_case(bytes_trim(part), BYTES("zstd"))) {
            return true;
        }
    }
    return false;
}

/* With a document or a record: compressed if the client can read that and if it helps. */
static enum err call_answer_document(struct volume_call *call, struct volume_kit *kit,
                                     struct bytes document) {
    struct scratch out;
    bool is_packed = false;
    scratch_init(&out, call->kits->scratch_directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    enum err err = takes_zstd(call->request)
                       ? pack_payload_put(&kit->pack_payload, document, &out, &is_packed)
                       : scratch_put(&out, document);
    if (err == ERR_OK) {
        http_add_header(call->request, "Vary", "Accept-Encoding");
        if (is_packed) {
            http_add_header(call->request, "Content-Encoding", "zstd");
        }
        http_answer_scratch(call->request, STATUS_OK, BINARY, &out);
    }
    scratch_done(&out);
    return err;
}

/* What the path names: KEY, SEGMENT-OFFSET-LENGTH. */
enum err volume_call_key(const struct volume_call *call, struct key *ret_key, struct err_detail *detail) {
    char text[ARGUMENT_SIZE_MAX];
    int size = snprintf(text, sizeof text, "0:%.*s", BYTES_ARG(call->argument));
    if (size >= (int)sizeof text || !key_parse(bytes_of(text, (size_t)size), ret_key)) {
        return err_set(detail, ERR_INVALID,
                       "this is no content key of a volume: write DIGEST or DIGEST.NUMBER");
    }
    ret_key->volume = call->number;
    return ERR_OK;
}

enum err volume_call_location(const struct volume_call *call, struct location *ret_location,
                              struct err_detail *detail) {
    struct bytes rest = call->argument;
    struct bytes part;
    uint64_t values[3];
    bool is_sound = true;
    for (size_t i = 0; i < 3 && is_sound; i++) {
        is_sound =
            bytes_split(&rest, '-', &part) && bytes_to_u64(part, i == 1 ? INT64_MAX : UINT32_MAX, &values[i]);
    }
    if (!is_sound || rest.data != NULL) {
        return err_set(detail, ERR_INVALID, "this is no location of a record: write SEGMENT-OFFSET-LENGTH");
    }
    *ret_location =
        (struct location){.segment = (uint32_t)values[0], .offset = values[1], .length = (uint32_t)values[2]};
    return ERR_OK;
}

/* ---- reading ---- */

static enum err call_ask(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    bool holds[BACKEND_CODE_CLAIMS_MAX];
    struct bytes body;
    struct wire_reader reader;
    struct document_sum claim;
    enum err err = http_request_body(call->request, &body);
    if (err != ERR_OK) {
        return err;
    }
    wire_reader_init(&reader, body);
    size_t count = backend_code_begin_claims(&reader);
    for (size_t i = 0; i < count && reader.err == ERR_OK && err == ERR_OK; i++) {
        backend_code_next_claim(&reader, &claim);
        if (reader.err == ERR_OK) {
            err = volume_holds(call->kits->volume, &claim, &holds[i]);
        }
    }
    if (err == ERR_OK) {
        err = wire_reader_finish(&reader, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct buf out;
    buf_init(&out, BACKEND_CODE_CLAIMS_SIZE_MAX);
    backend_code_put_answers(&out, holds, count);
    return volume_call_answer(call, &out);
}

static enum err call_get(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    struct key key;
    struct bytes document;
    enum err err = volume_call_key(call, &key, detail);
    if (err == ERR_OK) {
        err = volume_get(kit->reader, &key, &document, detail);
    }
    return err == ERR_OK ? call_answer_document(call, kit, document) : err;
}

static enum err call_get_record(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    bool is_request = strcmp(call->page->name, "requests") == 0;
    struct location location;
    struct bytes record;
    enum err err = volume_call_location(call, &location, detail);
    if (err == ERR_OK) {
        err = is_request ? volume_requests_find(kit->requests, &location, &record, detail)
                         : volume_get_record(kit->reader, &location, &record, detail);
    }
    return err == ERR_OK ? call_answer_document(call, kit, record) : err;
}

enum err volume_call_answer_block(struct volume_call *call, const struct block *block) {
    struct buf out;
    buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
    backend_code_put_block(&out, block);
    return volume_call_answer(call, &out);
}

static enum err call_find_block(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    struct key key;
    struct block block;
    enum err err = volume_call_key(call, &key, detail);
    if (err == ERR_OK) {
        err = index_find_block(volume_index(call->kits->volume), key.digest, key.number, &block);
    }
    if (err == ERR_OK && block.references <= 0) {
        err = ERR_NOT_FOUND;
    }
    return err == ERR_OK ? volume_call_answer_block(call, &block) : err;
}

static enum err call_stat(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    (void)detail;
    struct volume_stat stat;
    volume_stat(call->kits->volume, &stat);
    struct buf out;
    buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
    backend_code_put_stat(&out, &stat);
    return volume_call_answer(call, &out);
}

/* ---- walking ---- */

enum err volume_call_walk(const struct volume_call *call, struct backend_code_walk *ret_walk,
                          struct err_detail *detail) {
    struct bytes body;
    enum err err = http_request_body(call->request, &body);
    if (err == ERR_OK) {
        err = backend_code_read_walk(body, ret_walk, detail);
    }
    if (err == ERR_OK) {
        struct bytes query = http_request_query(call->request);
        bool wants_witnesses = bytes_starts_with(query, BYTES("witnesses=yes"));
        bool wants_vouched = bytes_ends_with(query, BYTES("vouched=yes"));
        ret_walk->flags = (uint8_t)((wants_witnesses ? BACKEND_CODE_FLAGS_WITNESS : 0) |
                                    (wants_vouched ? BACKEND_CODE_FLAGS_VOUCHED : 0));
    }
    return err;
}

/* *next: where the next page begins, right behind the key, or (in reverse) up to it and without it. */
static enum err fill_captures(struct index_cursor *cursor, const struct backend_code_walk *walk,
                              struct buf *page, struct buf *next) {
    struct capture capture;
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < walk->count_max && page->size < BACKEND_CODE_PAGE_SIZE; i++) {
        err = index_cursor_next(cursor, &capture);
        if (err != ERR_OK) {
            buf_clear(next);
            return err == ERR_NOT_FOUND ? page->err : err;
        }
        backend_code_put_capture(page, &capture, walk->flags);
        buf_clear(next);
        index_code_put_capture_key(next, &capture);
    }
    if (!walk->in_reverse) {
        buf_put_byte(next, 0x00);
    }
    return page->err != ERR_OK ? page->err : next->err;
}

static enum err fill_blocks(struct index_cursor *cursor, const struct backend_code_walk *walk,
                            struct buf *page, struct buf *next) {
    struct key key = {0};
    struct block block;
    uint8_t memory[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    for (uint32_t i = 0; i < walk->count_max && page->size < BACKEND_CODE_PAGE_SIZE; i++) {
        enum err err = index_blocks_next(cursor, key.digest, &key.number, &block);
        if (err != ERR_OK) {
            buf_clear(next);
            return err == ERR_NOT_FOUND ? page->err : err;
        }
        if (block.references > 0) {
            backend_code_put_key_block(page, &key, &block);
        }
        buf_clear(next);
        buf_put(next, index_code_block_key(memory, key.digest, key.number));
    }
    buf_put_byte(next, 0x00);
    return page->err != ERR_OK ? page->err : next->err;
}

static enum err
answer_page(struct volume_call *call, struct index_cursor *take_cursor, const struct backend_code_walk *walk,
            enum err (*fill)(struct index_cursor *cursor, const struct backend_code_walk *walk,
                             struct buf *page, struct buf *next)) {
    struct buf page;
    struct buf next; /* empty at the end of the walk */
    buf_init(&page, BACKEND_CODE_PAGE_SIZE_MAX);
    buf_init(&next, BACKEND_CODE_KEY_SIZE_MAX);
    enum err err = fill(take_cursor, walk, &page, &next);
    struct backend_code_page_end end = {.is_end = next.size == 0, .next = buf_bytes(&next)};
    backend_code_put_page_end(&page, &end);
    err = err == ERR_OK ? volume_call_answer(call, &page) : err;
    index_cursor_close(take_cursor);
    buf_done(&page);
    buf_done(&next);
    return err;
}

static enum err call_captures(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    struct backend_code_walk walk;
    struct index_cursor *cursor;
    enum err err = volume_call_walk(call, &walk, detail);
    if (err == ERR_OK) {
        err =
            index_cursor_open(volume_index(call->kits->volume), walk.from, walk.to, walk.in_reverse, &cursor);
    }
    return err == ERR_OK ? answer_page(call, cursor, &walk, fill_captures) : err;
}

static enum err call_blocks(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    struct backend_code_walk walk;
    struct index_cursor *cursor;
    enum err err = volume_call_walk(call, &walk, detail);
    if (err == ERR_OK && (walk.in_reverse || walk.to.size > 0)) {
        err = err_set(detail, ERR_UNSUPPORTED, "blocks are walked forward only, and to their end");
    }
    if (err == ERR_OK) {
        err = index_blocks_open_at(volume_index(call->kits->volume), walk.from, &cursor);
    }
    return err == ERR_OK ? answer_page(call, cursor, &walk, fill_blocks) : err;
}

/* ---- writing ---- */

/* In the committer's thread. The request is no longer ours when it is resumed. */
static void on_committed(void *context, enum err err, const struct stored *stored) {
    struct volume_call *call = context;
    call->err = err;
    if (err == ERR_OK) {
        call->stored = *stored;
    }
    http_request_resume(call->request);
}

/* The document of the request; its body is in the kit's memory if it came compressed. */
static enum err call_unpack(const struct volume_call *call, struct volume_kit *kit,
                            struct backend_code_document *received, struct err_detail *detail) {
    enum err err = backend_code_read_document(call->body, received, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (received->form == BACKEND_CODE_PLAIN) {
        received->document.body = received->body;
    } else if (received->form == BACKEND_CODE_LEFT_OUT) {
        received->document.sum = &received->sum;
    } else {
        err = pack_payload_unpack(&kit->pack_payload, received->body, received->sum.size, &kit->body, detail);
        if (err == ERR_OK && kit->body.size != received->sum.size) {
            err = err_set(detail, ERR_INVALID, "the body has another size than stated");
        }
        if (err == ERR_OK) {
            err = scratch_bytes(&kit->body, &received->document.body);
        }
    }
    return err;
}

static enum err call_submit(struct volume_call *call, struct volume_kit *kit) {
    struct backend_code_document received;
    enum err err = call_unpack(call, kit, &received, &call->detail);
    if (err != ERR_OK) {
        call->is_refused = true;
        return err;
    }
    call->mode = call->tries_count == 0 ? received.mode : call->mode;
    call->is_left_out = received.form == BACKEND_CODE_LEFT_OUT;
    call->tries_count++;
    return volume_submit(kit->writer, &received.document, call->mode, on_committed, call, &call->detail);
}

/* The document of a suspended request goes to the committer, which resumes it. */
static void call_take_in(void *context, size_t seat) {
    struct volume_call *call = context;
    (void)seat;
    struct volume_kits *kits = call->kits;
    struct volume_kit *kit = volume_kits_take(kits);
    enum err err = kit != NULL ? call_submit(call, kit) : ERR_MEMORY;
    if (kit != NULL) {
        volume_kits_give_back(kits, kit);
    }
    if (err != ERR_OK) {
        on_committed(call, err, NULL);
    }
}

/* call->err is the last answer of the volume: shall it be asked once more, and how? */
static bool is_to_be_tried_again(struct volume_call *call) {
    bool may_try = call->tries_count < TRIES_MAX && !call->is_left_out && !call->is_refused;
    if (call->err == ERR_CORRUPT && call->mode != STORE_FORCE_NEW && may_try) {
        call->mode = STORE_FORCE_NEW; /* what it would be a duplicate of is damaged: keep this one */
        return true;
    }
    return call->err == ERR_BUSY && may_try;
}

static enum err answer_stored(struct volume_call *call) {
    struct buf out;
    buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
    backend_code_put_stored(&out, &call->stored);
    return volume_call_answer(call, &out);
}

/* Called with the request whole, and again each time that the committer is done with it. */
static enum err call_put(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit; /* the work is a writer's */
    if (call->is_submitted && call->err == ERR_OK) {
        return answer_stored(call);
    }
    if (call->is_submitted && !is_to_be_tried_again(call)) {
        bool is_gone = call->err == ERR_BUSY || call->err == ERR_CORRUPT;
        *detail = call->detail;
        return is_gone && call->is_left_out ? ERR_NOT_FOUND : call->err;
    }
    enum err err = http_request_body(call->request, &call->body);
    if (err != ERR_OK) {
        return err;
    }
    call->is_submitted = true;
    http_request_suspend(call->request); /* before the committer can resume it */
    call->job = (struct pool_job){.run = call_take_in, .context = call};
    bool is_taken = pool_try(call->writers, &call->job);
    ASSERT(is_taken); /* they end after the last request */
    return ERR_OK;
}

static enum err call_remove(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    if (call->is_submitted && call->err == ERR_OK) {
        struct buf nothing;
        buf_init(&nothing, 1);
        return volume_call_answer(call, &nothing);
    }
    if (call->is_submitted) {
        *detail = call->detail;
        return call->err == ERR_BUSY ? ERR_NOT_FOUND : call->err;
    }
    struct key key;
    enum err err = volume_call_key(call, &key, detail);
    if (err != ERR_OK) {
        return err;
    }
    call->is_submitted = true;
    http_request_suspend(call->request);
    err = volume_submit_remove(kit->writer, &key, on_committed, call, detail);
    if (err != ERR_OK) {
        call->detail = *detail;
        on_committed(call, err, NULL);
    }
    return ERR_OK;
}

/* ---- purging ---- */

static enum err call_read_captures(struct volume_call *call, struct capture *captures, size_t *ret_count) {
    struct wire_reader reader;
    struct backend_code_page_end end;
    struct capture capture;
    size_t count = 0;
    enum err err;
    wire_reader_init(&reader, call->body);
    while ((err = backend_code_next_capture(&reader, &capture, &end, &call->detail)) == ERR_OK) {
        if (count == BACKEND_PURGE_MAX) {
            return err_set(&call->detail, ERR_LIMIT, "more captures than are purged at once");
        }
        captures[count++] = capture;
    }
    *ret_count = count;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* On a thread of the writers, which may wait for the disk. */
static void call_run_purge(void *context, size_t seat) {
    struct volume_call *call = context;
    (void)seat;
    struct volume_kits *kits = call->kits;
    struct volume_kit *kit = volume_kits_take(kits);
    struct capture *captures = calloc(BACKEND_PURGE_MAX, sizeof *captures);
    size_t count = 0;
    call->err = kit == NULL || captures == NULL ? ERR_MEMORY : call_read_captures(call, captures, &count);
    if (call->err == ERR_OK) {
        call->err = volume_purge(kit->writer, captures, count, &call->purged_count, &call->detail);
    }
    free(captures);
    if (kit != NULL) {
        volume_kits_give_back(kits, kit);
    }
    http_request_resume(call->request);
}

static enum err call_purge(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    if (call->is_submitted && call->err == ERR_OK) {
        struct buf out;
        buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
        backend_code_put_count(&out, call->purged_count);
        return volume_call_answer(call, &out);
    }
    if (call->is_submitted) {
        *detail = call->detail;
        return call->err;
    }
    enum err err = http_request_body(call->request, &call->body);
    if (err != ERR_OK) {
        return err;
    }
    call->is_submitted = true;
    http_request_suspend(call->request);
    call->job = (struct pool_job){.run = call_run_purge, .context = call};
    bool is_taken = pool_try(call->writers, &call->job);
    ASSERT(is_taken); /* they end after the last request */
    return ERR_OK;
}

/* ---- */

static const struct volume_page pages[] = {
    {"POST", "ask", false, BACKEND_CODE_CLAIMS_SIZE_MAX, call_ask},
    {"POST", "documents", false, UINT64_MAX, call_put},
    {"GET", "documents", true, 0, call_get},
    {"DELETE", "documents", true, 0, call_remove},
    {"GET", "records", true, 0, call_get_record},
    {"GET", "requests", true, 0, call_get_record},
    {"GET", "blocks", true, 0, call_find_block},
    {"POST", "blocks", false, BACKEND_CODE_WALK_SIZE_MAX, call_blocks},
    {"POST", "captures", false, BACKEND_CODE_WALK_SIZE_MAX, call_captures},
    {"POST", "purge", false, BACKEND_CODE_PAGE_SIZE_MAX, call_purge},
    {"GET", "stat", false, 0, call_stat},
};

const struct volume_page *volume_page_find(const char *method, struct bytes name, bool has_argument) {
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (strcmp(pages[i].method, method) == 0 && bytes_equal(name, bytes_of_string(pages[i].name)) &&
            pages[i].has_argument == has_argument) {
            return &pages[i];
        }
    }
    return NULL;
}
