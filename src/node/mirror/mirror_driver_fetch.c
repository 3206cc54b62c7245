/* A version on its way: what is wanted of it, in batches, each from a source or two. */
#include <stdio.h>
#include <stdlib.h>

#include "base/value.h"
#include "base/wire.h"
#include "node/mirror/mirror_driver_state.h"

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

static void free_batch(struct mirror_driver_batch *batch) {
    free(batch->items);
    *batch = (struct mirror_driver_batch){0};
}

static struct mirror_driver_batch *find_batch(struct mirror_driver_mirror *mirror, uint64_t number) {
    for (size_t i = 0; i < MIRROR_DRIVER_BATCHES_MAX; i++) {
        if (mirror->batches[i].number == number) {
            return &mirror->batches[i];
        }
    }
    return NULL;
}

static bool has_batches(const struct mirror_driver_mirror *mirror) {
    for (size_t i = 0; i < MIRROR_DRIVER_BATCHES_MAX; i++) {
        if (mirror->batches[i].number != 0) {
            return true;
        }
    }
    return false;
}

/* Transfers end when their questions are answered. */
static void forget_wanted(struct mirror_driver_mirror *mirror) {
    for (size_t i = 0; i < MIRROR_DRIVER_BATCHES_MAX; i++) {
        free_batch(&mirror->batches[i]);
    }
    for (struct mirror_driver_transfer *at = mirror->transfers; at != NULL; at = at->next) {
        at->is_given_up = true;
    }
    mirror_driver_forget_list(mirror);
    mirror->want_at_us = 0;
}

static void free_transfer(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer) {
    for (struct mirror_driver_transfer **at = &mirror->transfers; *at != NULL; at = &(*at)->next) {
        if (*at == transfer) {
            *at = transfer->next;
            break;
        }
    }
    free(transfer->items);
    free(transfer);
}

void mirror_driver_drop_version(struct mirror_driver_mirror *mirror) {
    forget_wanted(mirror);
    while (mirror->transfers != NULL) {
        free_transfer(mirror, mirror->transfers);
    }
    mirror_driver_free_list(mirror);
}

/* ---- what is wanted ---- */

static void set_wanted(struct mirror_driver_mirror *mirror) {
    mirror_set_wanted(mirror->mirror, mirror->wanted.left_size, mirror->wanted.list.is_all);
    mirror->are_offers_stale = true;
}

void mirror_driver_want(struct mirror_driver_mirror *mirror) {
    struct err_detail detail = {0};
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    if (mirror_phase(mirror->mirror) != MIRROR_FETCHING || mirror->wanted.list.is_all ||
        has_batches(mirror) || mirror->wanted.left_size > 0 || now_us < mirror->want_at_us) {
        return;
    }
    enum err err = mirror_driver_list(mirror, mirror_target(mirror->mirror), &detail);
    if (err != ERR_OK) {
        mirror->want_at_us = now_us + WANT_AGAIN_US;
        mirror_driver_note(mirror->driver, "collection %s: %.200s", mirror->setup.name,
                           err_detail_text(&detail, err));
        return;
    }
    set_wanted(mirror);
    if (mirror->wanted.list.is_content) {
        mirror_share(mirror->mirror, now_us);
    }
}

void mirror_driver_begin(struct mirror_driver_mirror *mirror, const struct mirror_task *task) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char size[TEXT_SIZE_MAX];
    const struct version *target = mirror_target(mirror->mirror);
    forget_wanted(mirror);
    memset(mirror->told_key, 0, PEER_KEY_SIZE);
    mirror->begun_us = mirror_driver_now_us(mirror->driver);
    mirror->begun_size = mirror_counters(mirror->mirror)->fetched_size;
    mirror_driver_note(mirror->driver,
                       "collection %s: version %ju (%ju files, %s) begins; of %u sources, %s is the quickest",
                       mirror->setup.name, (uintmax_t)target->number, (uintmax_t)target->totals.files_count,
                       size_text(target->totals.content_size, size), task->candidates_count,
                       address_format(&task->source.address, place));
    mirror_driver_want(mirror);
}

/* ---- transfers ---- */

/* What has not come of a batch is wanted as before. */
static void end_batch(struct mirror_driver_mirror *mirror, struct mirror_driver_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        if (mirror->wanted.states[batch->items[i]] == MIRROR_DRIVER_TAKEN) {
            mirror_driver_set_state(&mirror->wanted, batch->items[i], MIRROR_DRIVER_WANTED);
        }
    }
    free_batch(batch);
}

/* Somebody else works on the same batch: it was late. */
static bool is_shared(const struct mirror_driver_mirror *mirror,
                      const struct mirror_driver_transfer *transfer) {
    for (const struct mirror_driver_transfer *at = mirror->transfers; at != NULL; at = at->next) {
        if (at != transfer && at->number == transfer->number && !at->is_given_up) {
            return true;
        }
    }
    return false;
}

/* ERR_OK: the batch is over. All came, or the source said of each piece why not, and no other is at it. */
static enum err outcome(const struct mirror_driver_mirror *mirror,
                        const struct mirror_driver_transfer *transfer) {
    if (transfer->err != ERR_OK) {
        return transfer->err;
    }
    bool is_silent = transfer->count > 0 && transfer->size == 0 && transfer->noted_count == 0;
    bool is_part = transfer->noted_count > 0 && is_shared(mirror, transfer);
    return transfer->missing_count > 0 ? ERR_NOT_FOUND : is_silent || is_part ? ERR_BUSY : ERR_OK;
}

static void fetch_finish(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer) {
    const struct mirror_driver_config *config = &mirror->driver->config;
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    enum err err = outcome(mirror, transfer);
    struct mirror_driver_batch *batch = find_batch(mirror, transfer->number);
    bool is_over = err == ERR_OK && batch != NULL && !transfer->is_given_up;
    if (is_over) {
        end_batch(mirror, batch);
    }
    mirror_fetched(mirror->mirror, transfer->number, transfer->source.key, err, transfer->size, now_us);
    if (is_over) {
        set_wanted(mirror);
    }
    if (config->learned != NULL && transfer->size > 0) {
        config->learned(config->context, &transfer->source, transfer->size, now_us - transfer->started_us);
    }
    free_transfer(mirror, transfer);
}

static const struct manifest_ref *ref_at(const struct mirror_driver_mirror *mirror,
                                         const struct mirror_driver_transfer *transfer, size_t index) {
    return &mirror->wanted.list.refs[transfer->items[index]];
}

/* The next items whose bytes fit one answer. */
static size_t count_next(const struct mirror_driver_mirror *mirror,
                         const struct mirror_driver_transfer *transfer) {
    size_t count = 0;
    uint64_t size = 0;
    while (transfer->asked_count + count < transfer->count && count < MIRROR_DRIVER_DIGESTS_MAX) {
        size += ref_at(mirror, transfer, transfer->asked_count + count)->size;
        if (count > 0 && size > MIRROR_DRIVER_GIVEN_SIZE_MAX) {
            break;
        }
        count++;
    }
    return count;
}

static void ask_next(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer) {
    struct mirror_driver_event *event = mirror_driver_event_new(mirror->driver, MIRROR_DRIVER_CHUNKS_ANSWER,
                                                                mirror->setup.name, &transfer->source);
    if (event == NULL) {
        transfer->err = ERR_MEMORY;
        return;
    }
    event->transfer = transfer->serial;
    event->timeout_ms = MIRROR_DRIVER_CHUNKS_MS;
    event->first = transfer->asked_count;
    event->count = count_next(mirror, transfer);
    mirror_driver_put_chunks_question(&event->question, collection_id(mirror->collection),
                                      transfer->is_needed, event->count);
    for (size_t i = 0; i < event->count; i++) {
        buf_put(&event->question, bytes_of(ref_at(mirror, transfer, event->first + i)->digest, SHA256_SIZE));
    }
    transfer->asked_count += event->count;
    transfer->under_way_count++;
    mirror_driver_ask(event);
}

static void fetch_go_on(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer) {
    while (transfer->err == ERR_OK && !transfer->is_given_up && transfer->asked_count < transfer->count &&
           transfer->under_way_count < MIRROR_DRIVER_UNDER_WAY_MAX) {
        ask_next(mirror, transfer);
    }
    if (transfer->under_way_count == 0) {
        fetch_finish(mirror, transfer);
    }
}

/* A new batch of what the holder offers: up to so many bytes, but one item at least. NULL: no memory. */
static struct mirror_driver_batch *make_batch(struct mirror_driver_mirror *mirror,
                                              const struct mirror_task *task) {
    struct mirror_driver_wanted *wanted = &mirror->wanted;
    const struct mirror_driver_holder *holder = mirror_driver_holder(mirror, task->source.key);
    struct mirror_driver_batch *batch = find_batch(mirror, 0);
    size_t max = wanted->list.count - wanted->start;
    uint64_t size = 0;
    ASSERT(batch != NULL);
    *batch = (struct mirror_driver_batch){
        .items = holder != NULL ? malloc((max + 1) * sizeof *batch->items) : NULL,
    };
    if (batch->items == NULL) {
        return NULL;
    }
    for (size_t i = wanted->start; i < wanted->list.count && size < task->size; i++) {
        size_t item = mirror_driver_item_at(wanted, i);
        if (wanted->states[item] == MIRROR_DRIVER_WANTED &&
            mirror_driver_offers(mirror, holder, item, task->is_needed)) {
            mirror_driver_set_state(wanted, item, MIRROR_DRIVER_TAKEN);
            batch->items[batch->count++] = (uint32_t)item;
            size += wanted->list.refs[item].size;
        }
    }
    if (size > task->size) { /* of the limit, the task took its own size */
        mirror_limit_take(&mirror->driver->limit, size - task->size, mirror_driver_now_us(mirror->driver));
    }
    mirror_driver_skip_taken(wanted);
    batch->number = task->batch;
    set_wanted(mirror);
    return batch;
}

/* Why this source was chosen is worth a line when another one was used before, not for each batch. */
static void tell_use(struct mirror_driver_mirror *mirror, const struct mirror_task *task) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char size[TEXT_SIZE_MAX];
    if (!task->is_again && memcmp(mirror->told_key, task->source.key, PEER_KEY_SIZE) == 0) {
        return;
    }
    memcpy(mirror->told_key, task->source.key, PEER_KEY_SIZE);
    mirror_driver_note(
        mirror->driver, "collection %s: %s%s from %s, of %u that have it: expected to take %ju ms",
        mirror->setup.name, size_text(task->size, size), task->is_again ? ", or what is missing of it," : "",
        address_format(&task->source.address, place), task->candidates_count,
        (uintmax_t)(task->expected_us / 1000));
}

void mirror_driver_fetch(struct mirror_driver_mirror *mirror, const struct mirror_task *task) {
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    struct mirror_driver_batch *batch =
        task->is_again ? find_batch(mirror, task->batch) : make_batch(mirror, task);
    struct mirror_driver_transfer *transfer = batch != NULL ? calloc(1, sizeof *transfer) : NULL;
    uint32_t *items = transfer != NULL ? malloc((batch->count + 1) * sizeof *items) : NULL;
    if (items == NULL) { /* a batch that could not be made is over, and what is in it wanted as before */
        bool is_none = task->is_again && batch == NULL;
        free(transfer);
        mirror_fetched(mirror->mirror, task->batch, task->source.key, is_none ? ERR_OK : ERR_MEMORY, 0,
                       now_us);
        set_wanted(mirror);
        return;
    }
    transfer->serial = ++mirror->driver->serial;
    transfer->number = task->batch;
    transfer->source = task->source;
    transfer->started_us = now_us;
    transfer->list = mirror->wanted.serial;
    transfer->is_needed = task->is_needed;
    transfer->items = items;
    for (size_t i = 0; i < batch->count; i++) {
        if (mirror->wanted.states[batch->items[i]] != MIRROR_DRIVER_HERE) {
            items[transfer->count++] = batch->items[i];
        }
    }
    transfer->next = mirror->transfers;
    mirror->transfers = transfer;
    tell_use(mirror, task);
    fetch_go_on(mirror, transfer);
}

void mirror_driver_cancel(struct mirror_driver_mirror *mirror, const struct mirror_task *task) {
    for (struct mirror_driver_transfer *at = mirror->transfers; at != NULL; at = at->next) {
        if (at->number == task->batch && memcmp(at->source.key, task->source.key, PEER_KEY_SIZE) == 0) {
            at->is_given_up = true;
        }
    }
}

/* ---- what comes ---- */

static void fetch_blame(const struct mirror_driver_mirror *mirror,
                        const struct mirror_driver_transfer *transfer, const char *sentence) {
    const struct mirror_driver_config *config = &mirror->driver->config;
    config->blame(config->context, &transfer->source, sentence);
}

/* For those that the source does not give, it is noted that others must be asked for them. Who withholds what
 * is needed might as well not have it. */
static void take_none(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer,
                      size_t item, bool is_withheld, bool may_come) {
    struct mirror_driver_holder *holder = mirror_driver_holder(mirror, transfer->source.key);
    if (is_withheld ? transfer->is_needed : !may_come) {
        transfer->missing_count++;
    } else if (holder != NULL) {
        transfer->noted_count += mirror->wanted.list.is_content;
        mirror_driver_note_lack(mirror, holder, item, is_withheld);
    }
}

static void take_one(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer,
                     size_t item, struct bytes bytes) {
    enum err err = collection_take(mirror->collection, &mirror->wanted.list.refs[item], bytes);
    if (err == ERR_OK) {
        mirror_driver_set_state(&mirror->wanted, item, MIRROR_DRIVER_HERE);
        transfer->size += bytes.size;
        return;
    }
    transfer->err = err;
    if (err == ERR_MISMATCH) {
        fetch_blame(mirror, transfer, "gives bytes of a collection that are not those of their digest");
    } else {
        mirror_driver_note(mirror->driver, "collection %s: what came cannot be kept: %s", mirror->setup.name,
                           err_text(err));
    }
}

/* Others are told of what is here now. */
static void tell_parts(struct mirror_driver_mirror *mirror, const uint32_t *items, size_t count) {
    struct mirror_driver_wanted *wanted = &mirror->wanted;
    pthread_mutex_lock(&mirror->driver->lock);
    for (size_t i = 0; i < count && wanted->list.is_content; i++) {
        size_t place = wanted->list.places[items[i]];
        if (place < wanted->parts_count && wanted->states[items[i]] == MIRROR_DRIVER_HERE) {
            mirror_driver_set_bit(wanted->parts, place, true);
        }
    }
    pthread_mutex_unlock(&mirror->driver->lock);
}

/* What the answer does not reach did not fit: it is wanted as before. */
static void fetch_take_answer(struct mirror_driver_mirror *mirror, struct mirror_driver_transfer *transfer,
                              const struct mirror_driver_event *event) {
    struct wire_reader reader;
    wire_reader_init(&reader, buf_bytes(&event->answer));
    bool may_come = wire_read_bool(&reader);
    size_t taken = 0;
    while (taken < event->count && transfer->err == ERR_OK && wire_reader_left(&reader) > 0) {
        bool is_withheld;
        struct bytes bytes = mirror_driver_read_chunk(&reader, &is_withheld);
        if (reader.err != ERR_OK) {
            break;
        }
        size_t item = transfer->items[event->first + taken++];
        if (bytes.size == 0) {
            take_none(mirror, transfer, item, is_withheld, may_come);
        } else {
            take_one(mirror, transfer, item, bytes);
        }
    }
    if (transfer->err == ERR_OK && wire_reader_finish(&reader, NULL) != ERR_OK) {
        transfer->err = ERR_INVALID;
        fetch_blame(mirror, transfer, "answers a question about a collection with what is no answer");
    }
    tell_parts(mirror, transfer->items + event->first, taken);
    if (transfer->is_given_up) {
        set_wanted(mirror); /* what came late may have been wanted of others */
    }
}

void mirror_driver_take_chunks(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event) {
    struct mirror_driver_transfer *transfer = mirror->transfers;
    while (transfer != NULL && transfer->serial != event->transfer) {
        transfer = transfer->next;
    }
    if (transfer == NULL) {
        return;
    }
    transfer->under_way_count--;
    if (transfer->list != mirror->wanted.serial) {
        transfer->is_given_up = true; /* what is wanted is another list by now */
    } else if (event->err != ERR_OK) {
        transfer->err = transfer->err == ERR_OK ? event->err : transfer->err;
    } else {
        fetch_take_answer(mirror, transfer, event);
    }
    fetch_go_on(mirror, transfer);
}

/* ---- the end ---- */

static void tell_applied(const struct mirror_driver_mirror *mirror, const struct version *version,
                         const struct collection_tree_stat *stat) {
    char size[TEXT_SIZE_MAX];
    uint64_t fetched = mirror_counters(mirror->mirror)->fetched_size - mirror->begun_size;
    uint64_t took_us = mirror_driver_now_us(mirror->driver) - mirror->begun_us;
    mirror_driver_note(
        mirror->driver,
        "collection %s: version %ju is here after %ju ms: %s came, %ju files are as before, %ju are new",
        mirror->setup.name, (uintmax_t)version->number, (uintmax_t)(took_us / 1000), size_text(fetched, size),
        (uintmax_t)stat->linked_count, (uintmax_t)stat->written_count);
}

void mirror_driver_apply(struct mirror_driver_mirror *mirror) {
    const struct mirror_driver_config *config = &mirror->driver->config;
    struct collection_tree_stat stat = {0};
    struct err_detail detail = {0};
    struct version version = *mirror_target(mirror->mirror);
    enum err err = collection_apply(mirror->collection, &stat, &detail);
    if (err == ERR_OK) {
        tell_applied(mirror, &version, &stat);
    } else {
        mirror_driver_note(mirror->driver, "collection %s: version %ju %s: %.150s", mirror->setup.name,
                           (uintmax_t)version.number, collection_is_fault(err) ? "is refused" : "has to wait",
                           err_detail_text(&detail, err));
    }
    if (collection_is_fault(err)) {
        struct peer publisher = {0};
        memcpy(publisher.key, version.publisher, PEER_KEY_SIZE);
        config->blame(config->context, &publisher, "has signed a version of a collection that cannot be");
    }
    forget_wanted(mirror);
    mirror_applied(mirror->mirror, err, mirror_driver_now_us(mirror->driver));
}
