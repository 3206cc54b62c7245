#include "node/proxy/proxy_jobs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "crawl/engine/attest.h"
#include "net/identity.h"
#include "node/crowd/crowd_reader.h"
#include "node/proxy/proxy_head.h"
#include "node/proxy/proxy_substitute.h"
#include "store/document/document_hasher.h"
#include "store/volume/volume_record.h"
#include "warc/content.h"
#include "web/url/canon.h"
#include "web/url/surt.h"

/* ---- looking: an answer in place of the origin's, from the crowd, else from the archive ---- */

static const uint64_t DECODED_SIZE_MAX = UINT64_C(512) << 20; /* of a page, PROXY_JOBS_BODY_SIZE_MAX */
static const uint64_t BUDGET_SIZE_MAX = UINT64_C(5)
                                        << 30; /* of files: one of the largest documents, and some */

enum {
    CROWD_TIMEOUT_MS = 5000,
    TEXT_SIZE_MAX = 128 << 10,
    CAPTURES_MAX = 256, /* of one URL, looked through for one of the same origin */
};

/* ---- workers ---- */

/* What one thread works with. */
struct proxy_worker {
    const struct proxy_config *config;
    struct crowd_reader_session *crowd; /* NULL: not needed yet */
    struct instance_session *session;   /* likewise */
    struct document_hasher hasher;
    struct content content;
    struct http_head head; /* of what the crowd gave */
    struct canon canon;
    struct buf surt;
    struct buf text;   /* what is signed; a head for decoding; a mark */
    struct buf target; /* of a redirect */
    struct buf found;  /* the slices of the capture that was found */
    struct scratch payload;
};

struct proxy_worker *proxy_worker_new(const struct proxy_config *config) {
    struct proxy_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
        return NULL;
    }
    worker->config = config;
    canon_init(&worker->canon);
    buf_init(&worker->surt, 2 * URL_SIZE_MAX);
    buf_init(&worker->text, TEXT_SIZE_MAX);
    buf_init(&worker->target, URL_SIZE_MAX);
    buf_init(&worker->found, 4 * URL_SIZE_MAX);
    scratch_init(&worker->payload, config->directory, SCRATCH_MEMORY_MAX, PROXY_JOBS_BODY_SIZE_MAX);
    bool has_all = document_hasher_init(&worker->hasher) == ERR_OK;
    has_all = content_init(&worker->content) == ERR_OK && has_all;
    has_all = http_head_init(&worker->head) == ERR_OK && has_all;
    if (!has_all) {
        proxy_worker_free(worker);
        return NULL;
    }
    return worker;
}

void proxy_worker_free(struct proxy_worker *worker) {
    if (worker == NULL) {
        return;
    }
    crowd_reader_session_free(worker->crowd);
    instance_session_free(worker->session);
    document_hasher_done(&worker->hasher);
    content_done(&worker->content);
    http_head_done(&worker->head);
    canon_done(&worker->canon);
    buf_done(&worker->surt);
    buf_done(&worker->text);
    buf_done(&worker->target);
    buf_done(&worker->found);
    scratch_done(&worker->payload);
    free(worker);
}

/* The SURT of the URL, in worker->surt. */
static enum err proxy_worker_key(struct proxy_worker *worker, struct bytes url, struct bytes *ret_surt) {
    buf_clear(&worker->surt);
    enum err err = canon_run(&worker->canon, url, NULL);
    err = err == ERR_OK ? surt_put(&worker->surt, &worker->canon) : err;
    *ret_surt = buf_bytes(&worker->surt);
    return err;
}

/* ---- the answer ---- */

static bool takes_coding(struct bytes accepts, struct bytes coding) {
    struct bytes item;
    while (bytes_split(&accepts, ',', &item)) {
        size_t end = bytes_find_byte(item, ';');
        if (bytes_equal_ignore_case(bytes_trim(bytes_slice(item, 0, end)), coding)) {
            return bytes_find(bytes_skip(item, end), BYTES("q=0")) == item.size - end;
        }
    }
    return false;
}

/* Has it an encoding at all; and one that the browser does not say that it takes? */
struct codings {
    bool is_any;
    bool is_strange;
};

static struct codings job_codings(const struct proxy_job *job, const struct proxy_substitute *found) {
    struct codings codings = {0};
    const struct field *field = NULL;
    while (found->fields != NULL &&
           (field = fields_find(found->fields, BYTES("Content-Encoding"), field)) != NULL) {
        struct bytes rest = field->value;
        struct bytes coding;
        while (bytes_split(&rest, ',', &coding)) {
            coding = bytes_trim(coding);
            bool is_one = coding.size > 0 && !bytes_equal_ignore_case(coding, BYTES("identity"));
            codings.is_any = codings.is_any || is_one;
            codings.is_strange =
                codings.is_strange || (is_one && !takes_coding(buf_bytes(&job->accepts), coding));
        }
    }
    return codings;
}

/* Within the limits of warc/content.h; and no longer than somebody waits for it. */
static enum err job_decode(struct proxy_worker *worker, struct proxy_job *job,
                           const struct proxy_substitute *found, struct scratch *out,
                           struct err_detail *detail) {
    struct content *content = &worker->content;
    struct buf *head = &worker->text;
    struct bytes input = found->payload;
    struct bytes piece;
    bool has_ended = false;
    bool is_over = false;
    buf_clear(head);
    buf_put_string(head, "HTTP/1.1 200 OK\r\n");
    for (const struct field *field = NULL;
         (field = fields_find(found->fields, BYTES("Content-Encoding"), field)) != NULL;) {
        proxy_head_put_field(head, BYTES("Content-Encoding"), field->value);
    }
    buf_put_string(head, "\r\n");
    enum err err = content_start(content, buf_bytes(head), DECODED_SIZE_MAX, NULL, detail);
    while (err == ERR_OK && !is_over) {
        err = content_next(content, &input, &piece, detail);
        err = err == ERR_OK && piece.size > 0 ? scratch_put(out, piece) : err;
        err = err == ERR_OK && atomic_load(&job->is_forgotten) ? ERR_CANCELLED : err;
        bool is_hungry = err == ERR_OK && piece.size == 0 && !content->is_paused;
        is_over = is_hungry && has_ended;
        if (is_hungry && !has_ended) {
            has_ended = true;
            content_end(content);
        }
    }
    content_rest(content);
    if (err != ERR_OK) {
        scratch_clear(out);
    }
    return err;
}

/* A page is decoded whether the browser takes its encoding or not: it gets a mark. */
static enum err job_put_page(struct proxy_worker *worker, struct proxy_job *job,
                             const struct proxy_substitute *found, struct bytes page,
                             struct proxy_substitute_form *form) {
    const struct encoding *encoding = proxy_substitute_encoding(found, page);
    size_t place = proxy_substitute_find_place(found, page);
    form->charset = encoding != NULL ? bytes_of_string(encoding->name) : bytes_of(NULL, 0);
    buf_clear(&worker->text);
    if (place != SIZE_MAX) {
        proxy_substitute_put_mark(&worker->text, found);
    }
    place = place == SIZE_MAX ? 0 : place;
    scratch_put(&job->body, bytes_slice(page, 0, place));
    scratch_put(&job->body, buf_bytes(&worker->text));
    return scratch_put(&job->body, bytes_skip(page, place));
}

static enum err job_put_body(struct proxy_worker *worker, struct proxy_job *job,
                             const struct proxy_substitute *found, struct proxy_substitute_form *form,
                             struct err_detail *detail) {
    struct codings codings = job_codings(job, found);
    bool is_page = proxy_substitute_is_page(found);
    struct bytes page = found->payload;
    enum err err = ERR_OK;
    if (codings.is_any && is_page) {
        scratch_clear(&worker->payload);
        err = job_decode(worker, job, found, &worker->payload, detail);
        err = err == ERR_OK ? scratch_bytes(&worker->payload, &page) : err;
    } else if (codings.is_strange) {
        err = job_decode(worker, job, found, &job->body, detail);
        if (err == ERR_OK) {
            return err;
        }
    }
    if (err == ERR_CANCELLED || err == ERR_BUSY || err == ERR_MEMORY) {
        return err;
    }
    form->is_encoded = codings.is_any && (err != ERR_OK || !is_page);
    form->undecoded = err != ERR_OK ? err_detail_text(detail, err) : NULL;
    return is_page && err == ERR_OK ? job_put_page(worker, job, found, page, form)
                                    : scratch_put(&job->body, found->payload);
}

/* NULL: it is the job's answer now; else why it is not. */
static const char *job_take(struct proxy_worker *worker, struct proxy_job *job,
                            const struct proxy_substitute *found) {
    struct err_detail detail = {0};
    struct proxy_substitute_form form = {.now_us = clock_wall_us(worker->config->clock)};
    const char *refusal = proxy_substitute_refusal(found, buf_bytes(&job->url));
    enum err err = ERR_OK;
    if (refusal != NULL) {
        return refusal;
    }
    scratch_clear(&job->body);
    buf_clear(&worker->target);
    if (!proxy_substitute_is_redirect(found)) {
        err = job_put_body(worker, job, found, &form, &detail);
    } else if (proxy_substitute_find_target(found, &worker->target)) {
        form.target = buf_bytes(&worker->target);
    } else {
        form.is_way = true;
        buf_clear(&worker->text);
        proxy_substitute_put_way(&worker->text, found);
        err = scratch_put(&job->body, buf_bytes(&worker->text));
    }
    scratch_clear(&worker->payload);
    form.size = job->body.size;
    buf_clear(&job->head);
    proxy_substitute_put_head(&job->head, found, &form);
    err = err == ERR_OK ? job->head.err : err;
    return err == ERR_OK ? NULL : err_text(err);
}

/* ---- the crowd ---- */

static void name_source(const struct obtained *obtained, char out[PROXY_SUBSTITUTE_SOURCE_SIZE_MAX]) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (obtained->is_own) {
        snprintf(out, PROXY_SUBSTITUTE_SOURCE_SIZE_MAX, "crowd this-node");
    } else {
        snprintf(out, PROXY_SUBSTITUTE_SOURCE_SIZE_MAX, "crowd %s",
                 address_format(&obtained->from.address, address));
    }
}

static const char *take_obtained(struct proxy_worker *worker, struct proxy_job *job,
                                 const struct obtained *obtained) {
    const struct captured *captured = &obtained->captured;
    struct bytes head = captured->document.head;
    struct proxy_substitute found = {
        .status = 200,
        .url = captured->document.url,
        .tls = obtained->is_fetch_vouched_for ? captured->document.tls : bytes_of(NULL, 0),
        .payload = captured->payload,
        .time_us = captured->document.time_us,
    };
    name_source(obtained, found.source);
    (void)mime_type_extract(&found.type, captured->document.content_type);
    if (head.size > 0) {
        http_head_start(&worker->head);
        http_head_feed(&worker->head, &head);
        http_head_finish(&worker->head);
        if (worker->head.state != HTTP_HEAD_WHOLE) {
            return "what it has is no answer";
        }
        found.status = worker->head.status;
        found.fields = &worker->head.fields;
        (void)http_type(found.fields, &found.type);
    }
    return job_take(worker, job, &found);
}

static bool look_in_crowd(struct proxy_worker *worker, struct proxy_job *job) {
    struct crowd_reader *crowd_reader = worker->config->crowd->reader;
    struct wish wish = {.kind = WISH_URL, .time = WISH_NEWEST};
    uint8_t digest[SHA256_SIZE];
    struct obtained obtained;
    struct err_detail detail = {0};
    struct bytes surt;
    if (crowd_reader == NULL) {
        snprintf(job->crowd_said, sizeof job->crowd_said, "this node is in no crowd");
        return false;
    }
    worker->crowd = worker->crowd != NULL ? worker->crowd : crowd_reader_session_new(crowd_reader);
    enum err err = worker->crowd == NULL ? ERR_MEMORY : proxy_worker_key(worker, buf_bytes(&job->url), &surt);
    if (err == ERR_OK) {
        sha256_digest(&worker->hasher.sha256, surt, digest);
        memcpy(wish.hash, digest, sizeof wish.hash);
        err = crowd_reader_get(worker->crowd, &wish, surt, CROWD_TIMEOUT_MS, &obtained, &detail);
    }
    if (err == ERR_OK &&
        access_check(worker->config->access, surt, obtained.captured.document.time_us) != ACCESS_ALLOW) {
        err = err_set(&detail, ERR_PERMISSION, "a rule of this node blocks it");
    }
    const char *refusal =
        err == ERR_OK ? take_obtained(worker, job, &obtained) : err_detail_text(&detail, err);
    snprintf(job->crowd_said, sizeof job->crowd_said, "%s", refusal == NULL ? "" : refusal);
    return refusal == NULL;
}

/* ---- the archive ---- */

/* http: and https: have one key, so a redirect between them would lead to itself, again and again. */
static bool leads_to_itself(struct proxy_worker *worker, const struct archive_record *record,
                            struct bytes url, struct bytes surt) {
    struct url base;
    struct url target;
    struct bytes own;
    bool is_same = true;
    url_init(&base);
    url_init(&target);
    if (url_parse(&base, url, NULL, NULL) == ERR_OK &&
        url_parse(&target, fields_get(record->fields, BYTES("Location")), &base, NULL) == ERR_OK &&
        proxy_worker_key(worker, url_href(&target), &own) == ERR_OK) {
        is_same = bytes_equal(own, surt);
    }
    url_done(&base);
    url_done(&target);
    return is_same;
}

/* One look in the archive. */
struct looking {
    struct proxy_worker *worker;
    struct proxy_job *job;
    struct archive_reader *reader;
};

/* The newest of this very origin: http: and https:, with and without "www.", have one key. */
static enum err find_newest(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct looking *looking = context;
    struct bytes asked = buf_bytes(&looking->job->url);
    struct archive_range range = {
        .url = asked, .match = QUERY_EXACT, .from_us = INT64_MIN, .to_us = INT64_MAX, .in_reverse = true};
    struct archive_walk *walk;
    struct capture capture;
    bool is_found = false;
    bool is_settled = false;
    enum err err = archive_walk_open(looking->reader, &range, &walk, detail);
    if (err != ERR_OK) {
        return err;
    }
    for (size_t i = 0; i < CAPTURES_MAX && err == ERR_OK && !is_settled; i++) {
        err = archive_walk_next(walk, &capture, detail);
        if (err != ERR_OK || !proxy_substitute_is_same_origin(asked, capture.url)) {
            continue;
        }
        is_settled = capture.status < 300 || capture.status > 399;
        if (is_settled || !is_found) {
            *ret_capture = capture;
            is_found = archive_keep(&looking->worker->found, ret_capture) == ERR_OK;
        }
    }
    archive_walk_close(walk);
    return is_found ? ERR_OK : err == ERR_OK ? ERR_NOT_FOUND : err;
}

/*
 * What the record says of the certificate. Another node that has imported the capture did not see it: what
 * its file said is anybody's word. What this node has imported was the choice of its operator.
 */
static struct bytes job_tls(const struct proxy_worker *worker, const struct fields *fields) {
    uint8_t importer[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    struct bytes imported = fields_get(fields, BYTES(VOLUME_IMPORTED_FIELD));
    bool is_believed = imported.size == 0;
    if (!is_believed && attest_parse(imported, importer, signature)) {
        const struct identity *self = transport_identity(worker->config->transport);
        is_believed = memcmp(importer, self->key, sizeof importer) == 0;
    }
    return is_believed ? fields_get(fields, BYTES(VOLUME_TLS_FIELD)) : bytes_of(NULL, 0);
}

static enum err take_record(void *context, const struct capture *capture, struct err_detail *detail) {
    struct looking *looking = context;
    struct proxy_worker *worker = looking->worker;
    struct proxy_job *job = looking->job;
    struct archive_record record;
    enum err err = archive_open(looking->reader, capture, &record, detail);
    if (err != ERR_OK) {
        return err;
    }
    bool is_redirect = record.status >= 300 && record.status < 400;
    if (is_redirect && leads_to_itself(worker, &record, buf_bytes(&job->url), capture->surt)) {
        return err_set(detail, ERR_INVALID, "what it has is no answer");
    }
    struct proxy_substitute found = {
        .status = record.status,
        .fields = record.is_http ? record.fields : NULL,
        .url = capture->url,
        .tls = job_tls(worker, &record.header->fields),
        .payload = record.body,
        .time_us = capture->time_us,
        .source = "archive",
    };
    (void)mime_type_extract(&found.type, record.content_type);
    const char *refusal = job_take(worker, job, &found);
    return refusal == NULL ? ERR_OK : err_set(detail, ERR_INVALID, "%s", refusal);
}

static bool look_in_archive(struct proxy_worker *worker, struct proxy_job *job) {
    if (worker->config->reads_need_login && !address_is_loopback(&worker->config->listen)) {
        snprintf(job->archive_said, sizeof job->archive_said, "is only for users that are logged in");
        return false;
    }
    struct looking looking = {worker, job, archive_reader_begin(worker->config->archive)};
    struct archive_attempt attempt = {.find = find_newest, .use = take_record, .context = &looking};
    struct err_detail detail = {0};
    if (looking.reader == NULL) {
        snprintf(job->archive_said, sizeof job->archive_said, "%s", err_text(ERR_MEMORY));
        return false;
    }
    enum err err = archive_try(looking.reader, &attempt, &detail);
    archive_reader_end(looking.reader);
    if (err != ERR_OK) {
        snprintf(job->archive_said, sizeof job->archive_said, "%s",
                 err == ERR_NOT_FOUND ? "has no capture of it" : err_detail_text(&detail, err));
    }
    return err == ERR_OK;
}

void proxy_worker_look(struct proxy_worker *worker, struct proxy_job *job) {
    job->is_found = look_in_crowd(worker, job);
    if (!job->is_found) {
        scratch_clear(&job->body);
        job->is_found = look_in_archive(worker, job);
    }
}

/* ---- keeping: what the origin gave becomes a capture, signed, offered, and stored if wanted ---- */

/* The body without its chunks, in one piece. */
static enum err read_payload(struct proxy_worker *worker, const struct document *document,
                             struct bytes *ret_payload) {
    struct payload *payload = &worker->hasher.payload;
    struct bytes inputs[] = {document->head, document->body};
    struct bytes part;
    scratch_clear(&worker->payload);
    payload_start(payload, true);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        while (payload_next(payload, &inputs[i], &part)) {
            scratch_put(&worker->payload, part);
        }
    }
    if (payload_finish(payload, &part)) {
        scratch_put(&worker->payload, part);
    }
    enum err err = worker->payload.err;
    return err == ERR_OK ? scratch_bytes(&worker->payload, ret_payload) : err;
}

static void sign_capture(struct proxy_worker *worker, struct captured *captured,
                         char attest[ATTEST_TEXT_SIZE]) {
    const struct identity *identity = transport_identity(worker->config->transport);
    if (attest_sign(identity, &worker->hasher.sha256, &worker->text, &captured->document, attest) == ERR_OK) {
        captured->is_signed = true;
        memcpy(captured->signer, identity->key, sizeof captured->signer);
    }
}

static void job_offer(struct proxy_worker *worker, struct captured *captured) {
    struct offers *offers = worker->config->crowd->offers;
    struct ring_id place;
    uint8_t place_bytes[RING_ID_SIZE];
    struct bytes surt;
    if (offers == NULL || !captured->is_signed ||
        transport_key(worker->config->transport, captured->document.url, &place, NULL) != ERR_OK ||
        proxy_worker_key(worker, captured->document.url, &surt) != ERR_OK ||
        read_payload(worker, &captured->document, &captured->payload) != ERR_OK) {
        return;
    }
    captured->surt = surt;
    ring_id_write(place, place_bytes);
    struct ringkey key = ringkey_make(place_bytes, captured->document.time_us, captured->sum.digest);
    offers_put(offers, &key, captured, surt, bytes_of(NULL, 0));
}

/* "192.0.2.1" of "192.0.2.1:80", "2001:db8::1" of "[2001:db8::1]:80". */
static struct bytes ip_of(const struct address *address, char text[ADDRESS_TEXT_SIZE_MAX]) {
    struct bytes whole = bytes_of_string(address_format(address, text));
    size_t end = whole.size;
    while (whole.data[--end] != ':') {
    }
    return whole.data[0] == '[' ? bytes_slice(whole, 1, end - 1) : bytes_slice(whole, 0, end);
}

/* What cannot be stored now is not: the page was shown all the same. */
static void store(struct proxy_worker *worker, const struct document *document) {
    struct stored stored;
    if (worker->session == NULL) {
        worker->session = instance_session_new(archive_instance(worker->config->archive));
    }
    if (worker->session != NULL) {
        enum err err =
            instance_put(worker->session, document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL);
        (void)err;
    }
}

/* What the rules hide is neither shown to others nor stored. */
static bool job_is_allowed(struct proxy_worker *worker, const struct proxy_job *job) {
    struct bytes surt;
    return proxy_worker_key(worker, buf_bytes(&job->url), &surt) == ERR_OK &&
           access_check(worker->config->access, surt, job->time_us) == ACCESS_ALLOW;
}

/* The request is not kept: it says who reads, in which language and from where. */
static void proxy_worker_keep(struct proxy_worker *worker, struct proxy_job *job) {
    char ip[ADDRESS_TEXT_SIZE_MAX];
    char attest[ATTEST_TEXT_SIZE];
    struct bytes body;
    if (!job_is_allowed(worker, job) || scratch_bytes(&job->body, &body) != ERR_OK) {
        return;
    }
    struct captured captured = {
        .document =
            {
                .url = buf_bytes(&job->url),
                .time_us = job->time_us,
                .head = buf_bytes(&job->head),
                .body = body,
                .ip_address = ip_of(&job->address, ip),
                .tls = job->is_secure ? BYTES("verified") : bytes_of(NULL, 0),
            },
    };
    document_hasher_run(&worker->hasher, &captured.document, &captured.sum);
    captured.document.sum = &captured.sum;
    sign_capture(worker, &captured, attest);
    job_offer(worker, &captured);
    if (worker->config->archives) {
        store(worker, &captured.document);
    }
}

enum { HEAD_SIZE_MAX = 128 << 10, ACCEPTS_SIZE_MAX = 1024 };

struct proxy_jobs {
    struct proxy_config config;
    struct loop *loop;
    void (*done)(void *take_job);
    struct pool pool;
    struct proxy_worker *workers[PROXY_THREADS_COUNT]; /* by seat */
    atomic_size_t keeps_count;                         /* that wait */
    struct scratch_budget budget;                      /* of the files of looks */
};

/* ---- jobs ---- */

struct proxy_job *proxy_job_new(const struct proxy_config *config, enum proxy_job_kind kind,
                                struct bytes url) {
    struct proxy_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->kind = kind;
    buf_init(&job->url, URL_SIZE_MAX);
    buf_init(&job->head, HEAD_SIZE_MAX);
    buf_init(&job->accepts, ACCEPTS_SIZE_MAX);
    scratch_init(&job->body, config->directory, PROXY_JOBS_MEMORY_MAX,
                 kind == PROXY_JOB_KEEP ? PROXY_JOBS_BODY_SIZE_MAX : VOLUME_DOCUMENT_SIZE_MAX);
    if (buf_put(&job->url, url) != ERR_OK) {
        proxy_job_free(job);
        return NULL;
    }
    return job;
}

void proxy_job_free(struct proxy_job *job) {
    if (job != NULL) {
        buf_done(&job->url);
        buf_done(&job->head);
        buf_done(&job->accepts);
        scratch_done(&job->body);
        free(job);
    }
}

/* ---- the pool ---- */

static void proxy_jobs_look(void *context, size_t seat) {
    struct proxy_job *job = context;
    proxy_worker_look(job->jobs->workers[seat], job);
}

static void proxy_jobs_keep(void *context, size_t seat) {
    struct proxy_job *job = context;
    atomic_fetch_sub(&job->jobs->keeps_count, 1);
    proxy_worker_keep(job->jobs->workers[seat], job);
    proxy_job_free(job);
}

/* It was not even begun. */
static void proxy_jobs_give_up(void *context) {
    struct proxy_job *job = context;
    if (job->kind == PROXY_JOB_KEEP) {
        proxy_job_free(job);
        return;
    }
    job->job.post = (struct loop_post){.run = job->jobs->done, .context = job};
    bool is_posted = loop_post(job->jobs->loop, &job->job.post);
    ASSERT(is_posted);
}

/* ---- for the proxy ---- */

enum err proxy_jobs_start(const struct proxy_config *config, struct loop *loop, void (*done)(void *take_job),
                          struct proxy_jobs **ret_jobs, struct err_detail *detail) {
    struct pool_config pool = {
        .name = "proxy-job", .threads_max = PROXY_THREADS_COUNT, .cancelled = proxy_jobs_give_up};
    struct proxy_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) {
        return ERR_MEMORY;
    }
    *jobs = (struct proxy_jobs){.config = *config, .loop = loop, .done = done};
    scratch_budget_init(&jobs->budget, BUDGET_SIZE_MAX);
    enum err err = ERR_OK;
    for (size_t i = 0; i < PROXY_THREADS_COUNT && err == ERR_OK; i++) {
        jobs->workers[i] = proxy_worker_new(&jobs->config);
        err = jobs->workers[i] != NULL ? ERR_OK : ERR_MEMORY;
    }
    err = err == ERR_OK ? pool_start(&jobs->pool, &pool) : err;
    if (err != ERR_OK) {
        proxy_jobs_free(jobs);
        return err_set(detail, err, "no threads for the proxy: %s", err_text(err));
    }
    *ret_jobs = jobs;
    return ERR_OK;
}

void proxy_jobs_stop(struct proxy_jobs *jobs) {
    pool_stop(&jobs->pool);
}

void proxy_jobs_free(struct proxy_jobs *jobs) {
    for (size_t i = 0; i < PROXY_THREADS_COUNT; i++) {
        proxy_worker_free(jobs->workers[i]);
    }
    free(jobs);
}

void proxy_jobs_put(struct proxy_jobs *jobs, struct proxy_job *job) {
    bool is_keep = job->kind == PROXY_JOB_KEEP;
    job->jobs = jobs;
    if (!is_keep) {
        scratch_set_budget(&job->body, &jobs->budget);
    }
    job->job = (struct pool_job){
        .run = is_keep ? proxy_jobs_keep : proxy_jobs_look,
        .context = job,
        .is_later = is_keep,
        .loop = is_keep ? NULL : jobs->loop,
        .done = jobs->done,
    };
    if (is_keep && atomic_fetch_add(&jobs->keeps_count, 1) >= PROXY_JOBS_KEEPS_MAX) {
        atomic_fetch_sub(&jobs->keeps_count, 1);
        proxy_jobs_give_up(job);
    } else if (!pool_try(&jobs->pool, &job->job)) {
        proxy_jobs_give_up(job);
    }
}
