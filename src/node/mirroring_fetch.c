/* Of mirroring: a version on its way: what is wanted of it, in batches, each from a source or two. */
#include <stdio.h>
#include <stdlib.h>

#include "base/value.h"
#include "base/wire.h"
#include "node/mirroring_state.h"

enum { TEXT_SIZE_MAX = 64 };
static const uint64_t WANT_AGAIN_US = 1000000; /* after an error of this machine */

static const char *size_text(uint64_t size, char out[TEXT_SIZE_MAX]) {
    struct buf buf;
    buf_init(&buf, TEXT_SIZE_MAX - 1);
    value_put_size(&buf, size);
    snprintf(out, TEXT_SIZE_MAX, "%.*s", (int)buf.size, (const char *)buf.data);
    buf_done(&buf);
    return out;
}

/* ---- memory ---- */

static void free_batch(struct mirroring_batch *batch) {
    free(batch->refs);
    *batch = (struct mirroring_batch){0};
}

static struct mirroring_batch *find_batch(struct mirroring_mirror *mirror, uint64_t number) {
    for (size_t i = 0; i < MIRRORING_BATCHES_MAX; i++) {
        if (mirror->batches[i].number == number) {
            return &mirror->batches[i];
        }
    }
    return NULL;
}

static bool has_batches(const struct mirroring_mirror *mirror) {
    for (size_t i = 0; i < MIRRORING_BATCHES_MAX; i++) {
        if (mirror->batches[i].number != 0) {
            return true;
        }
    }
    return false;
}

/* Transfers end when their questions are answered. */
static void forget_wanted(struct mirroring_mirror *mirror) {
    for (size_t i = 0; i < MIRRORING_BATCHES_MAX; i++) {
        free_batch(&mirror->batches[i]);
    }
    for (struct mirroring_transfer *at = mirror->transfers; at != NULL; at = at->next) {
        at->is_given_up = true;
    }
    mirror->wanted_count = mirror->wanted_start = 0;
    mirror->is_all = false;
    mirror->want_at_us = 0;
}

static void free_transfer(struct mirroring_mirror *mirror, struct mirroring_transfer *transfer) {
    for (struct mirroring_transfer **at = &mirror->transfers; *at != NULL; at = &(*at)->next) {
        if (*at == transfer) {
            *at = transfer->next;
            break;
        }
    }
    free(transfer->refs);
    free(transfer);
}

void mirroring_drop_version(struct mirroring_mirror *mirror) {
    forget_wanted(mirror);
    while (mirror->transfers != NULL) {
        free_transfer(mirror, mirror->transfers);
    }
    free(mirror->wanted);
    mirror->wanted = NULL;
}

/* ---- what is wanted ---- */

static uint64_t wanted_size(const struct mirroring_mirror *mirror) {
    uint64_t size = 0;
    for (size_t i = mirror->wanted_start; i < mirror->wanted_count; i++) {
        size += mirror->wanted[i].size;
    }
    return size;
}

static enum err list_wanted(struct mirroring_mirror *mirror, const struct version *target,
                            struct err_detail *detail) {
    const struct version *staged = collection_staged(mirror->collection);
    enum err err = ERR_OK;
    if (staged == NULL || version_compare(staged, target) != 0) {
        err = collection_begin(mirror->collection, target, detail);
    }
    if (err == ERR_OK && mirror->wanted == NULL) {
        mirror->wanted = malloc(MIRRORING_WANTED_MAX * sizeof *mirror->wanted);
        err = mirror->wanted == NULL ? ERR_MEMORY : ERR_OK;
    }
    mirror->wanted_start = mirror->wanted_count = 0;
    return err == ERR_OK ? collection_want(mirror->collection, mirror->wanted, MIRRORING_WANTED_MAX,
                                           &mirror->wanted_count, &mirror->is_all)
                         : err;
}

void mirroring_want(struct mirroring_mirror *mirror) {
    struct err_detail detail = {0};
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    if (mirror_phase(mirror->mirror) != MIRROR_FETCHING || mirror->is_all || has_batches(mirror) ||
        mirror->wanted_start < mirror->wanted_count || now_us < mirror->want_at_us) {
        return;
    }
    enum err err = list_wanted(mirror, mirror_target(mirror->mirror), &detail);
    if (err != ERR_OK) {
        mirror->wanted_count = 0;
        mirror->want_at_us = now_us + WANT_AGAIN_US;
        mirroring_note(mirror->mirroring, "collection %s: %.200s", mirror->setup.name,
                       err_detail_text(&detail, err));
        return;
    }
    mirror_set_wanted(mirror->mirror, wanted_size(mirror), mirror->is_all);
}

void mirroring_begin(struct mirroring_mirror *mirror, const struct mirror_task *task) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char size[TEXT_SIZE_MAX];
    const struct version *target = mirror_target(mirror->mirror);
    forget_wanted(mirror);
    memset(mirror->told_key, 0, PEER_KEY_SIZE);
    mirror->begun_us = mirroring_now_us(mirror->mirroring);
    mirror->begun_size = mirror_counters(mirror->mirror)->fetched_size;
    mirroring_note(mirror->mirroring,
                   "collection %s: version %ju (%ju files, %s) begins; of %u sources, %s is the quickest",
                   mirror->setup.name, (uintmax_t)target->number, (uintmax_t)target->totals.files_count,
                   size_text(target->totals.content_size, size), task->candidates_count,
                   address_format(&task->source.address, place));
    mirroring_want(mirror);
}

/* ---- transfers ---- */

static void finish(struct mirroring_mirror *mirror, struct mirroring_transfer *transfer) {
    const struct mirroring_config *config = &mirror->mirroring->config;
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    enum err err = transfer->err;
    if (err == ERR_OK && transfer->missing_count > 0) {
        err = transfer->may_come ? ERR_BUSY : ERR_NOT_FOUND;
    }
    struct mirroring_batch *batch = find_batch(mirror, transfer->number);
    if (err == ERR_OK && batch != NULL && !transfer->is_given_up) {
        free_batch(batch);
    }
    mirror_fetched(mirror->mirror, transfer->number, transfer->source.key, err, transfer->size, now_us);
    if (config->learned != NULL && transfer->size > 0) {
        config->learned(config->context, &transfer->source, transfer->size, now_us - transfer->started_us);
    }
    free_transfer(mirror, transfer);
}

/* The next refs whose bytes fit one answer. */
static size_t count_next(const struct mirroring_transfer *transfer) {
    size_t count = 0;
    uint64_t size = 0;
    while (transfer->asked_count + count < transfer->count && count < MIRRORING_DIGESTS_MAX) {
        size += transfer->refs[transfer->asked_count + count].size;
        if (count > 0 && size > MIRRORING_GIVEN_SIZE_MAX) {
            break;
        }
        count++;
    }
    return count;
}

static void ask_next(struct mirroring_mirror *mirror, struct mirroring_transfer *transfer) {
    struct mirroring_event *event = mirroring_event_new(mirror->mirroring, MIRRORING_CHUNKS_ANSWER,
                                                        mirror->setup.name, &transfer->source);
    if (event == NULL) {
        transfer->err = ERR_MEMORY;
        return;
    }
    event->transfer = transfer->serial;
    event->timeout_ms = MIRRORING_CHUNKS_MS;
    event->first = transfer->asked_count;
    event->count = count_next(transfer);
    mirroring_put_chunks_question(&event->question, collection_id(mirror->collection), event->count);
    for (size_t i = 0; i < event->count; i++) {
        buf_put(&event->question, bytes_of(transfer->refs[event->first + i].digest, SHA256_SIZE));
    }
    transfer->asked_count += event->count;
    transfer->under_way_count++;
    mirroring_ask(event);
}

static void go_on(struct mirroring_mirror *mirror, struct mirroring_transfer *transfer) {
    while (transfer->err == ERR_OK && !transfer->is_given_up && transfer->asked_count < transfer->count &&
           transfer->under_way_count < MIRRORING_UNDER_WAY_MAX) {
        ask_next(mirror, transfer);
    }
    if (transfer->under_way_count == 0) {
        finish(mirror, transfer);
    }
}

/* A new batch from what is wanted: up to so many bytes, but one item at least. NULL: no memory. */
static struct mirroring_batch *make_batch(struct mirroring_mirror *mirror, const struct mirror_task *task) {
    struct mirroring_batch *batch = find_batch(mirror, 0);
    size_t end = mirror->wanted_start;
    uint64_t size = 0;
    ASSERT(batch != NULL);
    while (end < mirror->wanted_count && (end == mirror->wanted_start || size < task->size)) {
        size += mirror->wanted[end++].size;
    }
    size_t count = end - mirror->wanted_start;
    batch->refs = malloc((count + 1) * sizeof *batch->refs);
    if (batch->refs == NULL) {
        return NULL;
    }
    memcpy(batch->refs, mirror->wanted + mirror->wanted_start, count * sizeof *batch->refs);
    batch->number = task->batch;
    batch->count = count;
    mirror->wanted_start = end;
    mirror_set_wanted(mirror->mirror, wanted_size(mirror), mirror->is_all);
    return batch;
}

/* Why him is worth a line when another one was used before, not for each batch. */
static void tell_use(struct mirroring_mirror *mirror, const struct mirror_task *task) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char size[TEXT_SIZE_MAX];
    if (!task->is_again && memcmp(mirror->told_key, task->source.key, PEER_KEY_SIZE) == 0) {
        return;
    }
    memcpy(mirror->told_key, task->source.key, PEER_KEY_SIZE);
    mirroring_note(
        mirror->mirroring, "collection %s: %s%s from %s, of %u that have it: expected to take %ju ms",
        mirror->setup.name, size_text(task->size, size), task->is_again ? ", or what is missing of it," : "",
        address_format(&task->source.address, place), task->candidates_count,
        (uintmax_t)(task->expected_us / 1000));
}

void mirroring_fetch(struct mirroring_mirror *mirror, const struct mirror_task *task) {
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    struct mirroring_batch *batch =
        task->is_again ? find_batch(mirror, task->batch) : make_batch(mirror, task);
    struct mirroring_transfer *transfer = batch != NULL ? calloc(1, sizeof *transfer) : NULL;
    struct manifest_ref *refs = transfer != NULL ? malloc((batch->count + 1) * sizeof *transfer->refs) : NULL;
    if (refs == NULL) {
        free(transfer);
        mirror_fetched(mirror->mirror, task->batch, task->source.key, ERR_MEMORY, 0, now_us);
        return;
    }
    transfer->serial = ++mirror->mirroring->serial;
    transfer->number = task->batch;
    transfer->source = task->source;
    transfer->started_us = now_us;
    transfer->refs = refs;
    for (size_t i = 0; i < batch->count; i++) {
        if (!task->is_again || !collection_has(mirror->collection, &batch->refs[i])) {
            refs[transfer->count++] = batch->refs[i];
        }
    }
    transfer->next = mirror->transfers;
    mirror->transfers = transfer;
    tell_use(mirror, task);
    go_on(mirror, transfer);
}

void mirroring_cancel(struct mirroring_mirror *mirror, const struct mirror_task *task) {
    for (struct mirroring_transfer *at = mirror->transfers; at != NULL; at = at->next) {
        if (at->number == task->batch && memcmp(at->source.key, task->source.key, PEER_KEY_SIZE) == 0) {
            at->is_given_up = true;
        }
    }
}

/* ---- what comes ---- */

static void blame(const struct mirroring_mirror *mirror, const struct mirroring_transfer *transfer,
                  const char *sentence) {
    const struct mirroring_config *config = &mirror->mirroring->config;
    config->blame(config->context, &transfer->source, sentence);
}

static void take_one(struct mirroring_mirror *mirror, struct mirroring_transfer *transfer,
                     const struct manifest_ref *ref, struct bytes bytes) {
    if (bytes.size == 0) {
        transfer->missing_count++;
        return;
    }
    enum err err = collection_take(mirror->collection, ref, bytes);
    if (err == ERR_OK) {
        transfer->size += bytes.size;
        return;
    }
    transfer->err = err;
    if (err == ERR_MISMATCH) {
        blame(mirror, transfer, "gives bytes of a collection that are not those of their digest");
    } else {
        mirroring_note(mirror->mirroring, "collection %s: what came cannot be kept: %s", mirror->setup.name,
                       err_text(err));
    }
}

static void take_answer(struct mirroring_mirror *mirror, struct mirroring_transfer *transfer,
                        const struct mirroring_event *event) {
    struct wire_reader reader;
    wire_reader_init(&reader, buf_bytes(&event->answer));
    bool may_come = wire_read_bool(&reader);
    transfer->may_come = transfer->may_come || may_come;
    size_t taken = 0;
    while (taken < event->count && transfer->err == ERR_OK && wire_reader_left(&reader) > 0) {
        struct bytes bytes = wire_read_string(&reader, CHUNKER_SIZE_MAX);
        if (reader.err == ERR_OK) {
            take_one(mirror, transfer, &transfer->refs[event->first + taken++], bytes);
        }
    }
    if (transfer->err == ERR_OK && wire_reader_finish(&reader, NULL) != ERR_OK) {
        transfer->err = ERR_INVALID;
        blame(mirror, transfer, "answers a question about a collection with what is no answer");
    } else if (taken < event->count) {
        transfer->missing_count += event->count - taken; /* they did not fit: once more */
        transfer->may_come = transfer->may_come || taken > 0;
    }
}

void mirroring_take_chunks(struct mirroring_mirror *mirror, const struct mirroring_event *event) {
    struct mirroring_transfer *transfer = mirror->transfers;
    while (transfer != NULL && transfer->serial != event->transfer) {
        transfer = transfer->next;
    }
    if (transfer == NULL) {
        return;
    }
    transfer->under_way_count--;
    if (event->err != ERR_OK) {
        transfer->err = transfer->err == ERR_OK ? event->err : transfer->err;
    } else {
        take_answer(mirror, transfer, event);
    }
    go_on(mirror, transfer);
}

/* ---- the end ---- */

static bool is_publishers_fault(enum err err) {
    return err == ERR_INVALID || err == ERR_MISMATCH || err == ERR_TRUNCATED || err == ERR_LIMIT ||
           err == ERR_UNSUPPORTED;
}

static void tell_applied(const struct mirroring_mirror *mirror, const struct version *version,
                         const struct collection_tree_stat *stat) {
    char size[TEXT_SIZE_MAX];
    uint64_t fetched = mirror_counters(mirror->mirror)->fetched_size - mirror->begun_size;
    uint64_t took_us = mirroring_now_us(mirror->mirroring) - mirror->begun_us;
    mirroring_note(
        mirror->mirroring,
        "collection %s: version %ju is here after %ju ms: %s came, %ju files are as before, %ju are new",
        mirror->setup.name, (uintmax_t)version->number, (uintmax_t)(took_us / 1000), size_text(fetched, size),
        (uintmax_t)stat->linked_count, (uintmax_t)stat->written_count);
}

void mirroring_apply(struct mirroring_mirror *mirror) {
    const struct mirroring_config *config = &mirror->mirroring->config;
    struct collection_tree_stat stat = {0};
    struct err_detail detail = {0};
    struct version version = *mirror_target(mirror->mirror);
    enum err err = collection_apply(mirror->collection, &stat, &detail);
    if (err == ERR_OK) {
        tell_applied(mirror, &version, &stat);
    } else {
        mirroring_note(mirror->mirroring, "collection %s: version %ju %s: %.150s", mirror->setup.name,
                       (uintmax_t)version.number, is_publishers_fault(err) ? "is refused" : "has to wait",
                       err_detail_text(&detail, err));
    }
    if (is_publishers_fault(err)) {
        struct peer publisher = {0};
        memcpy(publisher.key, version.publisher, PEER_KEY_SIZE);
        config->blame(config->context, &publisher, "has signed a version of a collection that cannot be");
    }
    forget_wanted(mirror);
    mirror_applied(mirror->mirror, err, mirroring_now_us(mirror->mirroring));
}
