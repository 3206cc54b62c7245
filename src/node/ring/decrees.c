#include "node/ring/decrees.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/ring/decrees_state.h"
#include "node/ring/deletion_text.h"
#include "node/ring/deletions.h"
#include "node/transport/ring_files.h"

enum {
    AGAIN_BEATS = 5,            /* if the disk did not take what they say */
    JUDGE_US = 60 * 1000000,    /* memberships end */
    MEMBERS_EVERY_US = 1000000, /* one new decree of members, after the burst */
    ABOUT_URL_SIZE_MAX = 256,
    ABOUT_SIZE_MAX = ABOUT_URL_SIZE_MAX + DELETION_TEXT_REASON_SIZE_MAX + 128,
};

void decrees_say(const struct decrees *decrees, const char *sentence) {
    if (decrees->config.note != NULL) {
        decrees->config.note(decrees->config.context, sentence);
    }
}

struct decrees *decrees_new(const struct decrees_config *config) {
    struct decrees *decrees = calloc(1, sizeof *decrees);
    if (decrees != NULL) {
        decrees->config = *config;
        decrees->config.clock = config->clock != NULL ? config->clock : &clock_system;
        buf_init(&decrees->gone, (size_t)4 * DECREES_MAX * DECREE_ID_SIZE);
        pthread_mutex_init(&decrees->lock, NULL);
    }
    return decrees;
}

void decrees_free(struct decrees *decrees) {
    if (decrees == NULL) {
        return;
    }
    for (size_t i = 0; i < decrees->count; i++) {
        free(decrees->entries[i].encoded);
    }
    free(decrees->entries);
    free(decrees->nodes);
    buf_done(&decrees->gone);
    pthread_mutex_destroy(&decrees->lock);
    free(decrees);
}

uint64_t decrees_now_us(const struct decrees *decrees) {
    return clock_monotonic_us(decrees->config.clock);
}

static uint64_t decrees_wall_s(const struct decrees *decrees) {
    int64_t wall_us = clock_wall_us(decrees->config.clock);
    return wall_us > 0 ? (uint64_t)wall_us / 1000000 : 0;
}

/* ---- the set; the lock is held ---- */

size_t decrees_position_of(const struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE]) {
    size_t from = 0;
    size_t to = decrees->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (memcmp(decrees->entries[middle].id, id, DECREE_ID_SIZE) < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

struct decrees_entry *decrees_find(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE]) {
    size_t at = decrees_position_of(decrees, id);
    bool is_there = at < decrees->count && memcmp(decrees->entries[at].id, id, DECREE_ID_SIZE) == 0;
    return is_there ? &decrees->entries[at] : NULL;
}

/* Robots are the founder's to relax: a member's job would make all nodes break what hosts ask for. */
static enum err decrees_check(const struct decrees *decrees, const struct decree *decree, bool relaxes_robots,
                              charter_verify *verify, struct err_detail *detail) {
    enum err err =
        decree_counts(decree, &decrees->charter, decrees->ring, decrees_wall_s(decrees), verify, detail);
    if (err == ERR_OK && relaxes_robots && !decree_is_rings(decree, &decrees->charter)) {
        return err_set(detail, ERR_PERMISSION, "only %s may let jobs of the ring ignore robots.txt",
                       charter_generation(&decrees->charter) > 0 ? "the stewards" : "the founder");
    }
    return err;
}

/* verify: NULL if what it shows was found good before. */
static enum err decrees_judge(struct decrees *decrees, struct decrees_entry *entry, charter_verify *verify) {
    struct err_detail detail = {.err = ERR_OK};
    enum err err = decrees_check(decrees, &entry->decree, entry->relaxes_robots, verify, &detail);
    if (entry->counts != (err == ERR_OK)) {
        entry->counts = err == ERR_OK;
        entry->is_in_force = false;
        decrees->is_obeyed = false;
    }
    if (!entry->counts || !entry->is_in_force) {
        snprintf(entry->why_not, sizeof entry->why_not, "%s",
                 err == ERR_OK ? "" : err_detail_text(&detail, err));
    }
    return err;
}

/* Its file goes with the next beat. */
static void decrees_drop(struct decrees *decrees, size_t index) {
    struct decrees_entry *entry = &decrees->entries[index];
    buf_put(&decrees->gone, bytes_of(entry->id, DECREE_ID_SIZE));
    free(entry->encoded);
    decrees->count--;
    memmove(entry, entry + 1, (decrees->count - index) * sizeof *entry);
    decrees->is_obeyed = false;
}

static struct decree_seat decrees_seat(const struct decree *decree, bool counts) {
    return (struct decree_seat){
        .author = decree->author,
        .version = decree->version,
        .rank = !counts                  ? DECREE_IDLE
                : decree->text.size == 0 ? DECREE_WITHDRAWN
                                         : DECREE_LIVE,
    };
}

/* *ret_evicted: as decree_room_find() has it. */
static enum err decrees_find_room(const struct decrees *decrees, const struct decree *decree, bool counts,
                                  int *ret_evicted, struct err_detail *detail) {
    struct decree_seat wanted = decrees_seat(decree, counts);
    struct decree_seat *seats = calloc(decrees->count + 1, sizeof *seats);
    if (seats == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < decrees->count; i++) {
        seats[i] = decrees_seat(&decrees->entries[i].decree, decrees->entries[i].counts);
    }
    enum err err = decree_room_find(seats, decrees->count, &decrees->charter, &wanted, ret_evicted, detail);
    free(seats);
    return err;
}

static enum err decrees_make_entry(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE]) {
    if (decrees->count == decrees->capacity) {
        size_t capacity = decrees->capacity > 0 ? 2 * decrees->capacity : 16;
        struct decrees_entry *entries = realloc(decrees->entries, capacity * sizeof *entries);
        if (entries == NULL) {
            return ERR_MEMORY;
        }
        decrees->entries = entries;
        decrees->capacity = capacity;
    }
    size_t position = decrees_position_of(decrees, id);
    struct decrees_entry *entry = &decrees->entries[position];
    memmove(entry + 1, entry, (decrees->count - position) * sizeof *entry);
    memset(entry, 0, sizeof *entry);
    memcpy(entry->id, id, DECREE_ID_SIZE);
    decrees->count++;
    return ERR_OK;
}

/* ---- adding ---- */

/* A decree on its way into the table. */
struct decrees_new {
    struct bytes encoded;
    struct decree decree; /* borrows from encoded */
    uint8_t id[DECREE_ID_SIZE];
    bool is_file; /* from our own disk */
    bool relaxes_robots;
};

/* New decrees of members wait for their turn, so that no flood of them keeps all nodes busy. */
static enum err decrees_check_rate(const struct decrees *decrees, const struct decrees_entry *old,
                                   struct err_detail *detail) {
    uint64_t now_us = decrees_now_us(decrees);
    bool is_often = old != NULL && now_us < old->taken_at_us + DECREES_VERSION_GAP_US;
    bool is_flood = decrees->members_full_us > now_us &&
                    decrees->members_full_us - now_us >= (uint64_t)DECREES_BURST_MAX * MEMBERS_EVERY_US;
    return is_often || is_flood ? err_set(detail, ERR_BUSY, "there are too many new decrees of members")
                                : ERR_OK;
}

/* The lock is held. All that is known without verifying a signature, which takes a thousand times as long. */
static enum err decrees_precheck(struct decrees *decrees, const struct decrees_new *new,
                                 struct err_detail *detail) {
    const struct decrees_entry *old = decrees_find(decrees, new->id);
    int evicted;
    if (!decrees->has_charter) {
        return err_set(detail, ERR_PERMISSION, "there is no charter yet");
    }
    if (old != NULL && old->decree.version >= new->decree.version) {
        return ERR_EXISTS;
    }
    bool is_founders = decree_is_founders(&new->decree, &decrees->charter);
    enum err err = decrees_check(decrees, &new->decree, new->relaxes_robots, NULL, detail);
    bool counts = err == ERR_OK;
    if (new->is_file && err == ERR_PERMISSION) {
        err = ERR_OK; /* kept, and shown with the reason: another charter may allow it */
    }
    if (err == ERR_OK && !new->is_file && !is_founders) {
        err = decrees_check_rate(decrees, old, detail);
    }
    return err == ERR_OK && old == NULL ? decrees_find_room(decrees, &new->decree, counts, &evicted, detail)
                                        : err;
}

/* Is it this node's to ask others whether they obey? Of stewards each that has signed asks. */
static bool decrees_is_own(const struct decrees *decrees, const struct decree *decree) {
    return decrees->self != NULL &&
           (decree->generation > 0 ? steward_signatures_have(&decree->signatures, decrees->self->key)
                                   : memcmp(decree->author, decrees->self->key, PEER_KEY_SIZE) == 0);
}

/* The lock is held. The bytes are taken if it succeeds. */
static enum err decrees_put(struct decrees *decrees, const struct decrees_new *new,
                            struct err_detail *detail) {
    enum err err = decrees_precheck(decrees, new, detail); /* again: the lock was open */
    struct decrees_entry *entry = decrees_find(decrees, new->id);
    enum err verdict = decrees_check(decrees, &new->decree, new->relaxes_robots, identity_verify, detail);
    if (err == ERR_OK && verdict != ERR_OK && !(new->is_file &&verdict == ERR_PERMISSION)) {
        err = verdict;
    }
    if (err == ERR_OK && entry == NULL) {
        int evicted = DECREE_ROOM_FREE;
        err = decrees_find_room(decrees, &new->decree, verdict == ERR_OK, &evicted, detail);
        if (err == ERR_OK && evicted != DECREE_ROOM_FREE) {
            decrees_drop(decrees, (size_t)evicted);
        }
        err = err == ERR_OK ? decrees_make_entry(decrees, new->id) : err;
        entry = decrees_find(decrees, new->id);
    }
    if (err != ERR_OK) {
        return err;
    }
    uint64_t now_us = decrees_now_us(decrees);
    if (!new->is_file && !decree_is_founders(&new->decree, &decrees->charter)) {
        uint64_t from_us = decrees->members_full_us > now_us ? decrees->members_full_us : now_us;
        decrees->members_full_us = from_us + MEMBERS_EVERY_US;
    }
    free(entry->encoded);
    entry->encoded = (uint8_t *)new->encoded.data;
    entry->size = new->encoded.size;
    entry->decree = new->decree;
    entry->relaxes_robots = new->relaxes_robots;
    entry->is_on_disk = new->is_file;
    entry->is_in_force = false;
    entry->taken_at_us = new->is_file ? 0 : now_us;
    entry->counts = verdict == ERR_OK;
    snprintf(entry->why_not, sizeof entry->why_not, "%s",
             verdict == ERR_OK ? "" : err_detail_text(detail, verdict));
    decrees->is_obeyed = false;
    if (decrees_is_own(decrees, &entry->decree)) {
        decrees_watch(decrees, entry);
    }
    return ERR_OK;
}

static enum err decrees_take(struct decrees *decrees, struct bytes encoded, bool is_file,
                             struct err_detail *detail) {
    struct sha256 sha256;
    struct decrees_new new = {.is_file = is_file};
    uint8_t *copy = malloc(encoded.size > 0 ? encoded.size : 1);
    if (copy == NULL || sha256_init(&sha256) != ERR_OK) {
        free(copy);
        return ERR_MEMORY;
    }
    memcpy(copy, encoded.data, encoded.size);
    new.encoded = bytes_of(copy, encoded.size);
    enum err err = decree_parse(new.encoded, &new.decree, detail);
    if (err == ERR_OK) {
        decree_id(&new.decree, &sha256, new.id);
        new.relaxes_robots = new.decree.kind == DECREE_JOB &&decrees_job_relaxes_robots(new.decree.text);
        pthread_mutex_lock(&decrees->lock);
        err = decrees_precheck(decrees, &new, detail);
        pthread_mutex_unlock(&decrees->lock);
    }
    err = err == ERR_OK ? decree_verify(new.encoded, &new.decree, identity_verify, detail) : err;
    pthread_mutex_lock(&decrees->lock);
    err = err == ERR_OK ? decrees_put(decrees, &new, detail) : err;
    decrees->refused_count += !is_file && err != ERR_OK && err != ERR_EXISTS;
    pthread_mutex_unlock(&decrees->lock);
    sha256_done(&sha256);
    if (err != ERR_OK) {
        free(copy);
    }
    return err;
}

enum err decrees_add(struct decrees *decrees, struct bytes encoded, struct err_detail *detail) {
    return decrees_take(decrees, encoded, false, detail);
}

enum err decrees_add_file(struct decrees *decrees, struct bytes encoded, struct err_detail *detail) {
    return decrees_take(decrees, encoded, true, detail);
}

/* ---- the charter ---- */

void decrees_set_self(struct decrees *decrees, const struct identity *identity) {
    pthread_mutex_lock(&decrees->lock);
    decrees->self = identity;
    pthread_mutex_unlock(&decrees->lock);
}

void decrees_set_light(struct decrees *decrees) {
    decrees->is_light = true;
}

void decrees_set_charter(struct decrees *decrees, const struct charter *charter,
                         const uint8_t ring[CHARTER_ID_SIZE]) {
    pthread_mutex_lock(&decrees->lock);
    decrees->has_charter = true;
    decrees->charter = *charter;
    memcpy(decrees->ring, ring, CHARTER_ID_SIZE);
    decrees->is_judged = false; /* by the next beat: this may be the ring's loop */
    decrees->is_obeyed = false;
    pthread_mutex_unlock(&decrees->lock);
}

/* Under a new charter all of it is judged; as time goes by, only what time changes. Removed authors' go. */
static void decrees_judge_all(struct decrees *decrees) {
    uint64_t now_us = decrees_now_us(decrees);
    pthread_mutex_lock(&decrees->lock);
    bool is_due = !decrees->is_judged || now_us >= decrees->judge_at_us;
    for (size_t i = decrees->count; is_due && i-- > 0;) {
        charter_verify *verify = decrees->is_judged ? NULL : identity_verify;
        if (decrees_judge(decrees, &decrees->entries[i], verify) == ERR_NOT_FOUND) {
            decrees_drop(decrees, i);
        }
    }
    decrees->is_judged = true;
    decrees->judge_at_us = is_due ? now_us + JUDGE_US : decrees->judge_at_us;
    pthread_mutex_unlock(&decrees->lock);
}

/* ---- this node's own ---- */

static void decrees_sign(const void *signer, const char *context, struct bytes message,
                         uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

/* What a member of a ring by invitation must show; nothing if it is the founder or has nothing. */
static enum err decrees_read_membership(const char *directory, const struct identity *identity,
                                        const struct charter *charter, struct membership *ret_membership,
                                        struct err_detail *detail) {
    *ret_membership = (struct membership){.is_there = false};
    bool needs_none = charter->is_open || charter_is_steward(charter, identity->key);
    return needs_none ? ERR_OK : ring_files_read_membership(directory, ret_membership, detail);
}

/* Append the encoding of one of our own from before decrees carried memberships; false: there is none. */
static bool decrees_renew_next(struct decrees *decrees, const struct membership *membership,
                               uint8_t ret_id[DECREE_ID_SIZE], struct buf *out) {
    uint8_t *memory = malloc(DECREE_SIZE_MAX);
    bool is_found = false;
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; memory != NULL && !is_found && i < decrees->count; i++) {
        struct decree decree = decrees->entries[i].decree;
        bool is_old = decree.generation == 0 && !decree.membership.is_there && !decrees->entries[i].counts &&
                      memcmp(decree.author, decrees->self->key, PEER_KEY_SIZE) == 0;
        decree.version = is_old ? decree_next_version(decree.version, 0) : 0;
        if (decree.version != 0) {
            decree.membership = *membership;
            memcpy(ret_id, decrees->entries[i].id, DECREE_ID_SIZE);
            is_found = buf_put(out, decree_write(&decree, decrees_sign, decrees->self, memory)) == ERR_OK;
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    free(memory);
    return is_found;
}

static void decrees_renew_own(struct decrees *decrees) {
    struct membership membership = {.is_there = false};
    struct buf encoded;
    uint8_t id[DECREE_ID_SIZE];
    bool is_renewed = true;
    if (decrees->self == NULL ||
        decrees_read_membership(decrees->config.directory, decrees->self, &decrees->charter, &membership,
                                NULL) != ERR_OK ||
        !membership.is_there) {
        return;
    }
    while (is_renewed) {
        buf_init(&encoded, DECREE_SIZE_MAX);
        is_renewed =
            decrees_renew_next(decrees, &membership, id, &encoded) &&
            decrees_put_on_disk(decrees->config.directory, id, buf_bytes(&encoded), NULL) == ERR_OK &&
            decrees_add_file(decrees, buf_bytes(&encoded), NULL) == ERR_OK;
        buf_done(&encoded);
    }
}

void decrees_beat(struct decrees *decrees) {
    pthread_mutex_lock(&decrees->lock);
    bool has_charter = decrees->has_charter;
    bool is_new_charter = !decrees->is_judged;
    pthread_mutex_unlock(&decrees->lock);
    if (!has_charter) {
        return;
    }
    decrees_judge_all(decrees);
    decrees_files_remove_gone(decrees);
    decrees_files_read(decrees);
    if (is_new_charter) {
        decrees_renew_own(decrees);
    }
    decrees_files_write(decrees);
    pthread_mutex_lock(&decrees->lock);
    bool is_obeyed = decrees->is_obeyed;
    decrees->is_obeyed = true;
    pthread_mutex_unlock(&decrees->lock);
    bool is_again = decrees->again_beats > 0 && --decrees->again_beats == 0;
    if (!is_obeyed || is_again) {
        decrees->again_beats = decrees_obey(decrees) ? 0 : AGAIN_BEATS;
    }
}

void decrees_look_again(struct decrees *decrees) {
    pthread_mutex_lock(&decrees->lock);
    decrees->is_obeyed = false;
    pthread_mutex_unlock(&decrees->lock);
}

bool decrees_are_in_force(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                          struct err_detail *detail) {
    pthread_mutex_lock(&decrees->lock);
    const struct decrees_entry *entry = decrees_find(decrees, id);
    bool is_there = entry != NULL && entry->decree.version >= version;
    bool is_in_force = is_there && entry->is_in_force;
    if (is_there && !is_in_force && entry->why_not[0] != '\0') {
        err_set(detail, ERR_PERMISSION, "%s", entry->why_not);
    }
    pthread_mutex_unlock(&decrees->lock);
    return is_in_force;
}

enum import_rule decrees_import_rule(struct decrees *decrees) {
    enum import_rule rule = IMPORT_RULE_NONE;
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        bool is_it = entry->counts && entry->decree.kind == DECREE_IMPORTS &&
                     bytes_equal(entry->decree.name, BYTES(IMPORT_RULE_NAME));
        enum import_rule read;
        if (is_it && import_rule_read(entry->decree.text, &read, NULL) == ERR_OK) {
            rule = read;
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    return rule;
}

/* ---- for people ---- */

/* The key of whoever decreed it; of stewards the word. */
static const char *decrees_author(const struct decree *decree, char out[IDENTITY_TEXT_SIZE]) {
    return decree->generation > 0 ? DECREES_STEWARDS : identity_key_format(decree->author, out);
}

/* Which stewards have signed it. */
static void decrees_put_signers(const struct decree *decree, struct json *json) {
    char text[IDENTITY_TEXT_SIZE];
    if (decree->generation == 0) {
        return;
    }
    json_open_list(json, "signed_by");
    for (size_t i = 0; i < decree->signatures.count; i++) {
        json_text(json, NULL, identity_key_format(decree->signatures.items[i].key, text));
    }
    json_close(json);
}

void decrees_put_json(struct decrees *decrees, struct json *json) {
    char text[IDENTITY_TEXT_SIZE];
    pthread_mutex_lock(&decrees->lock);
    json_count(json, "decrees_refused", decrees->refused_count);
    json_open_list(json, "decrees");
    for (size_t i = 0; i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        const struct decree *decree = &entry->decree;
        json_open(json, NULL);
        json_text(json, "author", decrees_author(decree, text));
        decrees_put_signers(decree, json);
        json_text(json, "kind", decree_kind_name(decree->kind));
        json_bytes(json, "name", decree->name);
        json_count(json, "version", decree->version);
        json_bool(json, "withdrawn", decree->text.size == 0);
        json_bool(json, "counts", entry->counts);
        json_bool(json, "in_force", entry->is_in_force);
        json_text(json, "why_not", entry->why_not);
        if (decree->kind == DECREE_DELETION && decrees->config.deletions != NULL) {
            json_bool(json, "applying", entry->is_applying);
            deletions_put_json(decrees->config.deletions, entry->id, decree->version, decree->text, json);
        }
        decrees_put_confirmations(decrees, entry, json);
        json_close(json);
    }
    json_close(json);
    pthread_mutex_unlock(&decrees->lock);
}

/* Of a deletion: what, why, and how many captures have gone here. */
static const char *decrees_about(const struct decrees *decrees, const struct decrees_entry *entry,
                                 struct arena *arena) {
    struct deletion_text *read = entry->decree.kind == DECREE_DELETION && decrees->config.deletions != NULL
                                     ? malloc(sizeof *read)
                                     : NULL;
    char text[ABOUT_SIZE_MAX] = "";
    if (read != NULL &&
        deletion_text_read(entry->decree.text, entry->decree.version, read, NULL, NULL) == ERR_OK) {
        snprintf(text, sizeof text, "%.*s%s: %.*s; %ju captures have gone from this node",
                 (int)(read->urls[0].size < ABOUT_URL_SIZE_MAX ? read->urls[0].size : ABOUT_URL_SIZE_MAX),
                 (const char *)read->urls[0].data, read->urls_count > 1 ? " and others" : "",
                 BYTES_ARG(read->reason),
                 (uintmax_t)deletions_removed_count(decrees->config.deletions, entry->id));
    }
    free(read);
    return arena_text(arena, text);
}

void decrees_view(struct decrees *decrees, struct arena *arena, struct ring_view *view) {
    char author[IDENTITY_TEXT_SIZE];
    pthread_mutex_lock(&decrees->lock);
    struct ring_view_decree *list = arena_take_array(arena, decrees->count, sizeof *list);
    for (size_t i = 0; list != NULL && i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        list[view->decrees_count++] = (struct ring_view_decree){
            .author = arena_text(arena, decrees_author(&entry->decree, author)),
            .name = arena_copy(arena, entry->decree.name),
            .is_job = entry->decree.kind == DECREE_JOB,
            .is_deletion = entry->decree.kind == DECREE_DELETION,
            .is_unknown = decree_kind_is_later(entry->decree.kind),
            .about = decrees_about(decrees, entry, arena),
            .version = entry->decree.version,
            .is_withdrawn = entry->decree.text.size == 0,
            .counts = entry->counts,
            .why_not = arena_text(arena, entry->why_not),
        };
    }
    view->decrees = list;
    pthread_mutex_unlock(&decrees->lock);
}

/* ---- for commands ---- */

enum err decrees_publish(const char *directory, const struct identity *identity,
                         const struct charter *charter, enum decree_kind kind, struct bytes name,
                         struct bytes text, struct decrees_receipt *ret_receipt, struct err_detail *detail) {
    struct sha256 sha256;
    struct decree decree = {.kind = kind, .name = name, .text = text};
    struct decrees_receipt receipt;
    int64_t now_us = clock_wall_us(&clock_system);
    uint8_t *memory = malloc(DECREE_SIZE_MAX);
    if (memory == NULL || sha256_init(&sha256) != ERR_OK) {
        free(memory);
        return ERR_MEMORY;
    }
    charter_id(charter, &sha256, decree.ring);
    memcpy(decree.author, identity->key, PEER_KEY_SIZE);
    decree_id(&decree, &sha256, receipt.id);
    enum err err = decrees_read_membership(directory, identity, charter, &decree.membership, detail);
    uint64_t now_s = now_us > 0 ? (uint64_t)now_us / 1000000 : 0;
    err = err == ERR_OK ? decree_counts(&decree, charter, decree.ring, now_s, identity_verify, detail) : err;
    decree.version = receipt.version =
        decree_next_version(decrees_version_on_disk(directory, receipt.id), now_us);
    if (err == ERR_OK && decree.version == 0) {
        err = err_set(detail, ERR_LIMIT, "there is no version after that of the decree before");
    }
    if (err == ERR_OK) {
        struct bytes encoded = decree_write(&decree, decrees_sign, identity, memory);
        err = decrees_put_on_disk(directory, receipt.id, encoded, detail);
    }
    if (err == ERR_OK) {
        *ret_receipt = receipt;
    }
    sha256_done(&sha256);
    free(memory);
    return err;
}

/* ---- without a node ---- */

static enum err decrees_load(struct decrees *decrees, const char *directory, struct err_detail *detail) {
    struct charter *charter = malloc(sizeof *charter);
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    struct sha256 sha256;
    struct bytes encoded;
    uint8_t ring[CHARTER_ID_SIZE];
    enum err err = charter == NULL || memory == NULL ? ERR_MEMORY : sha256_init(&sha256);
    if (err == ERR_OK) {
        err = ring_files_read_charter(directory, charter, memory, &encoded, detail);
        if (err == ERR_OK) {
            charter_id(charter, &sha256, ring);
            decrees_set_charter(decrees, charter, ring);
            decrees->is_reader = true;
            decrees_files_read(decrees);
            decrees_obey_deletions(decrees);
        }
        sha256_done(&sha256);
    }
    free(memory);
    free(charter);
    return err;
}

enum err decrees_open(const char *directory, struct deletions *deletions, struct decrees **ret_decrees,
                      struct err_detail *detail) {
    struct decrees_config config = {.directory = directory, .deletions = deletions};
    struct decrees *decrees = decrees_new(&config);
    enum err err = decrees != NULL ? decrees_load(decrees, directory, detail) : ERR_MEMORY;
    if (err == ERR_OK) {
        *ret_decrees = decrees;
    } else {
        decrees_free(decrees);
    }
    return err;
}

enum err decrees_load_deletions(const char *directory, struct instance *instance, struct err_detail *detail) {
    char path[DECREES_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring/charter", directory);
    if (access(path, F_OK) != 0) {
        return ERR_OK;
    }
    snprintf(path, sizeof path, "%s/ring/decrees", directory);
    if (access(path, F_OK) != 0) {
        return ERR_OK;
    }
    struct deletions_config config = {.directory = directory, .instance = instance};
    struct deletions *deletions = deletions_new(&config);
    struct decrees *decrees = NULL;
    enum err err = deletions != NULL ? decrees_open(directory, deletions, &decrees, detail) : ERR_MEMORY;
    decrees_free(decrees);
    deletions_free(deletions);
    return err;
}
