#include "node/ring/deletions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/utc.h"
#include "base/whole_file.h"
#include "node/ring/deletion_text.h"
#include "run/task.h"
#include "store/instance/purge.h"

enum {
    FILE_MODE = 0644,
    STATE_SIZE_MAX = 1024,
    PATH_SIZE_MAX = 4096 + 128,
    ENTRIES_MAX = 1 << 16,
};
static const uint64_t AGAIN_US = UINT64_C(10000000); /* what was on its way to the disk has arrived by then */
static const uint64_t LATER_US = UINT64_C(3600000000); /* what came in by other ways */
static const uint64_t TROUBLE_US = UINT64_C(30000000); /* a volume is down, the disk is full */

/* What is known of it on this node: DIR/ring/deletions/ID. */
struct deletions_state {
    uint64_t version;       /* of the decree that it is about */
    uint64_t removed_count; /* without those of a walk that has not ended */
    uint64_t found_count;   /* when that walk began; 0: there is none */
    int64_t begun_us;       /* wall clock; 0: not yet */
    int64_t finished_us;    /* since when it has been in force; 0: it is not */
};

struct deletions_entry {
    uint8_t id[DECREE_ID_SIZE];
    uint64_t version;
    struct deletion_set *set;
    char reason[DELETION_TEXT_REASON_SIZE_MAX + 1];
    struct deletions_state state;
    uint64_t walk_at_us;  /* monotonic; 0: at once */
    unsigned walks_count; /* since the node started */
    enum err err;
    char why[ERR_TEXT_SIZE_MAX];
};

struct deletions_list {
    struct deletions_entry *entries; /* in the order of their ids, as the decrees are */
    size_t count;
    size_t capacity;
};

struct deletions {
    struct deletions_config config;
    struct task task;
    pthread_mutex_t lock;
    struct deletions_list list;       /* lock */
    struct deletions_list next;       /* the obeying thread's, between begin and end */
    struct instance_session *session; /* the task's */
    bool is_running;                  /* deletions_run() */
};

/* ---- making ---- */

struct deletions *deletions_new(const struct deletions_config *config) {
    struct deletions *deletions = calloc(1, sizeof *deletions);
    if (deletions != NULL) {
        deletions->config = *config;
        deletions->config.clock = config->clock != NULL ? config->clock : &clock_system;
        pthread_mutex_init(&deletions->lock, NULL);
    }
    return deletions;
}

static void deletions_drop_list(struct deletions_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        deletion_set_free(list->entries[i].set);
    }
    free(list->entries);
    *list = (struct deletions_list){.count = 0};
}

void deletions_free(struct deletions *deletions) {
    if (deletions == NULL) {
        return;
    }
    deletions_stop(deletions);
    instance_session_free(deletions->session);
    deletions_drop_list(&deletions->list);
    deletions_drop_list(&deletions->next);
    pthread_mutex_destroy(&deletions->lock);
    free(deletions);
}

/* ---- files ---- */

static void deletions_path(const struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE],
                           char out[PATH_SIZE_MAX]) {
    char digits[2 * DECREE_ID_SIZE + 1];
    snprintf(out, PATH_SIZE_MAX, "%s/ring/deletions/%s", deletions->config.directory,
             hex_encode(bytes_of(id, DECREE_ID_SIZE), digits));
}

/* A file that is missing or makes no sense is as good as none: the walk is made again. */
static void deletions_read_state(const struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE],
                                 struct deletions_state *state) {
    char path[PATH_SIZE_MAX];
    struct buf text;
    buf_init(&text, STATE_SIZE_MAX);
    *state = (struct deletions_state){.version = 0};
    deletions_path(deletions, id, path);
    if (whole_file_read(path, &text, NULL) == ERR_OK && buf_put_byte(&text, '\0') == ERR_OK) {
        struct deletions_state found = {.version = 0};
        int read_count = sscanf((const char *)text.data,
                                "version %" SCNu64 "\nremoved %" SCNu64 "\nfound %" SCNu64 "\nbegun %" SCNd64
                                "\nfinished %" SCNd64,
                                &found.version, &found.removed_count, &found.found_count, &found.begun_us,
                                &found.finished_us);
        *state = read_count == 5 ? found : *state;
    }
    buf_done(&text);
}

static enum err deletions_write_state(const struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE],
                                      const struct deletions_state *state, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct buf text;
    buf_init(&text, STATE_SIZE_MAX);
    buf_put_format(&text,
                   "version %" PRIu64 "\nremoved %" PRIu64 "\nfound %" PRIu64 "\nbegun %" PRId64
                   "\nfinished %" PRId64 "\n",
                   state->version, state->removed_count, state->found_count, state->begun_us,
                   state->finished_us);
    snprintf(path, sizeof path, "%s/ring/deletions", deletions->config.directory);
    enum err err = text.err == ERR_OK ? whole_file_make_directory(path, detail) : text.err;
    deletions_path(deletions, id, path);
    err = err == ERR_OK ? whole_file_replace(path, buf_bytes(&text), FILE_MODE, detail) : err;
    buf_done(&text);
    return err;
}

/* ---- what counts ---- */

/* The lock is held, or the list is nobody else's. */
static struct deletions_entry *deletions_find(const struct deletions_list *list,
                                              const uint8_t id[DECREE_ID_SIZE]) {
    size_t from = 0;
    size_t to = list->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = memcmp(list->entries[middle].id, id, DECREE_ID_SIZE);
        if (order == 0) {
            return &list->entries[middle];
        }
        if (order < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return NULL;
}

static enum err deletions_make_room(struct deletions_list *list) {
    if (list->count < list->capacity) {
        return ERR_OK;
    }
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
    struct deletions_entry *entries =
        capacity <= ENTRIES_MAX ? reallocarray(list->entries, capacity, sizeof *entries) : NULL;
    if (entries == NULL) {
        return ERR_MEMORY;
    }
    list->entries = entries;
    list->capacity = capacity;
    return ERR_OK;
}

void deletions_begin(struct deletions *deletions) {
    deletions_drop_list(&deletions->next);
}

/* What is known of it already, by this process or from the disk. */
static void deletions_know(struct deletions *deletions, struct deletions_entry *entry) {
    pthread_mutex_lock(&deletions->lock);
    const struct deletions_entry *known = deletions_find(&deletions->list, entry->id);
    bool is_same = known != NULL && known->version == entry->version;
    if (is_same) {
        entry->state = known->state;
        entry->walk_at_us = known->walk_at_us;
        entry->walks_count = known->walks_count;
        entry->err = known->err;
        memcpy(entry->why, known->why, sizeof entry->why);
    }
    pthread_mutex_unlock(&deletions->lock);
    if (is_same) {
        return;
    }
    deletions_read_state(deletions, entry->id, &entry->state);
    if (entry->state.version != entry->version) { /* it means more now */
        entry->state.version = entry->version;
        entry->state.begun_us = 0;
        entry->state.finished_us = 0;
    }
}

enum err deletions_order(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                         struct bytes text, struct err_detail *detail) {
    struct deletion_text *read = malloc(sizeof *read);
    struct deletions_list *list = &deletions->next;
    struct deletion_set *set = deletion_set_new();
    enum err err = read != NULL && set != NULL ? deletions_make_room(list) : ERR_MEMORY;
    err = err == ERR_OK ? deletion_text_read(text, version, read, set, detail) : err;
    if (err != ERR_OK) {
        deletion_set_free(set);
        free(read);
        return err;
    }
    struct deletions_entry *entry = &list->entries[list->count++];
    ASSERT(list->count == 1 || memcmp(entry[-1].id, id, DECREE_ID_SIZE) < 0);
    *entry = (struct deletions_entry){.version = version, .set = set};
    memcpy(entry->id, id, DECREE_ID_SIZE);
    snprintf(entry->reason, sizeof entry->reason, "%.*s", BYTES_ARG(read->reason));
    free(read);
    deletions_know(deletions, entry);
    return ERR_OK;
}

static struct deletion_set *deletions_gather(const struct deletions_list *list) {
    struct deletion_set *all = deletion_set_new();
    for (size_t i = 0; i < list->count && all != NULL; i++) {
        const struct deletion_set *set = list->entries[i].set;
        for (size_t j = 0; j < deletion_set_count(set); j++) {
            if (deletion_set_add(all, deletion_set_at(set, j)) != ERR_OK) {
                deletion_set_free(all);
                return NULL;
            }
        }
    }
    return all;
}

void deletions_end(struct deletions *deletions) {
    struct deletion_set *all = deletions_gather(&deletions->next);
    if (all == NULL) { /* out of memory: those before count on, until it is tried again */
        deletions_drop_list(&deletions->next);
        return;
    }
    if (deletions->config.instance != NULL) {
        instance_set_deletions(deletions->config.instance, all);
    } else {
        deletion_set_free(all);
    }
    pthread_mutex_lock(&deletions->lock);
    struct deletions_list before = deletions->list;
    for (size_t i = 0; i < deletions->next.count; i++) { /* a walk may have ended since deletions_know() */
        struct deletions_entry *entry = &deletions->next.entries[i];
        const struct deletions_entry *known = deletions_find(&before, entry->id);
        if (known != NULL && known->version == entry->version) {
            entry->state = known->state;
            entry->walk_at_us = known->walk_at_us;
            entry->walks_count = known->walks_count;
            entry->err = known->err;
            memcpy(entry->why, known->why, sizeof entry->why);
        }
    }
    deletions->list = deletions->next;
    pthread_mutex_unlock(&deletions->lock);
    deletions->next = (struct deletions_list){.count = 0};
    deletions_drop_list(&before);
    task_poke(&deletions->task);
}

/* ---- taking captures out: one thread ---- */

/* A copy of an entry, so that nobody waits for the walk. */
struct deletions_walk {
    uint8_t id[DECREE_ID_SIZE];
    uint64_t version;
    struct deletions_state state;
    unsigned walks_count;
    char reason[DELETION_TEXT_REASON_SIZE_MAX + 1];
    struct deletion_set *set; /* not sealed */
    struct deletion *deletions;
    size_t count;
};

static bool deletions_is_stopping(void *context) {
    struct deletions *deletions = context;
    return !deletions->is_running && task_is_stopping(&deletions->task);
}

static enum err deletions_copy_set(const struct deletion_set *set, struct deletions_walk *walk) {
    walk->count = deletion_set_count(set);
    walk->set = deletion_set_new();
    walk->deletions = calloc(walk->count + 1, sizeof *walk->deletions);
    enum err err = walk->set != NULL && walk->deletions != NULL ? ERR_OK : ERR_MEMORY;
    for (size_t i = 0; i < walk->count && err == ERR_OK; i++) {
        err = deletion_set_add(walk->set, deletion_set_at(set, i));
    }
    for (size_t i = 0; i < walk->count && err == ERR_OK; i++) {
        walk->deletions[i] = *deletion_set_at(walk->set, i);
    }
    return err;
}

static void deletions_walk_done(struct deletions_walk *walk) {
    deletion_set_free(walk->set);
    free(walk->deletions);
}

/* The next that is due: what is not in force first. False: none; *ret_rest_us until one is. */
static bool deletions_take_walk(struct deletions *deletions, struct deletions_walk *walk,
                                uint64_t *ret_rest_us) {
    uint64_t now_us = clock_monotonic_us(deletions->config.clock);
    const struct deletions_entry *chosen = NULL;
    *walk = (struct deletions_walk){.count = 0};
    *ret_rest_us = TASK_FOR_EVER_US;
    pthread_mutex_lock(&deletions->lock);
    for (size_t i = 0; i < deletions->list.count; i++) {
        const struct deletions_entry *entry = &deletions->list.entries[i];
        if (entry->walk_at_us > now_us) {
            uint64_t rest_us = entry->walk_at_us - now_us;
            *ret_rest_us = rest_us < *ret_rest_us ? rest_us : *ret_rest_us;
        } else if (chosen == NULL || (chosen->state.finished_us != 0 && entry->state.finished_us == 0)) {
            chosen = entry;
        }
    }
    enum err err = ERR_OK;
    if (chosen != NULL) {
        memcpy(walk->id, chosen->id, sizeof walk->id);
        memcpy(walk->reason, chosen->reason, sizeof walk->reason);
        walk->version = chosen->version;
        walk->state = chosen->state;
        walk->walks_count = chosen->walks_count;
        err = deletions_copy_set(chosen->set, walk);
    }
    pthread_mutex_unlock(&deletions->lock);
    if (err != ERR_OK) {
        deletions_walk_done(walk);
        *ret_rest_us = TROUBLE_US;
    }
    return chosen != NULL && err == ERR_OK;
}

/* An earlier walk was cut short: what it found, less what is still there, has gone. */
static void deletions_count_cut(struct deletions_state *state, uint64_t left_count) {
    state->removed_count += state->found_count > left_count ? state->found_count - left_count : 0;
    state->found_count = 0;
}

static enum err deletions_purge(struct deletions *deletions, struct deletions_walk *walk,
                                struct err_detail *detail) {
    struct purge_config purge = {
        .deletions = walk->deletions,
        .deletions_count = walk->count,
        .is_dry = true,
        .is_stopping = deletions_is_stopping,
        .context = deletions,
    };
    struct deletions_state *state = &walk->state;
    uint64_t found_count = 0;
    uint64_t gone_count = 0;
    enum err err = deletions->session != NULL ? purge_run(deletions->session, &purge, &found_count, detail)
                                              : ERR_OK; /* there is no archive here: nothing to take out */
    if (err != ERR_OK) {
        return err;
    }
    int64_t now_us = clock_wall_us(deletions->config.clock);
    deletions_count_cut(state, found_count);
    state->begun_us = state->begun_us != 0 ? state->begun_us : now_us;
    state->found_count = found_count;
    if (found_count > 0) {
        err = deletions_write_state(deletions, walk->id, state, detail);
        purge.is_dry = false;
        err = err == ERR_OK ? purge_run(deletions->session, &purge, &gone_count, detail) : err;
        if (err != ERR_OK) {
            return err; /* the next walk counts what has gone, as after a crash */
        }
    }
    bool is_new = state->finished_us == 0;
    state->removed_count += gone_count;
    state->found_count = 0;
    state->finished_us = is_new ? clock_wall_us(deletions->config.clock) : state->finished_us;
    return is_new || gone_count > 0 ? deletions_write_state(deletions, walk->id, state, detail) : ERR_OK;
}

static void deletions_tell(const struct deletions *deletions, const struct deletions_walk *walk,
                           uint64_t before_count) {
    char sentence[DELETION_TEXT_REASON_SIZE_MAX + 128];
    uint64_t count = walk->state.removed_count - before_count;
    if (deletions->config.note != NULL && (count > 0 || walk->walks_count == 0)) {
        snprintf(sentence, sizeof sentence,
                 "a decree of the founder has deleted captures here, %" PRIu64 ": %s", count, walk->reason);
        deletions->config.note(deletions->config.context, sentence);
    }
}

/* Durable by now; whoever asks is told from here on. */
static void deletions_end_walk(struct deletions *deletions, const struct deletions_walk *walk, enum err err,
                               const struct err_detail *detail) {
    uint64_t now_us = clock_monotonic_us(deletions->config.clock);
    pthread_mutex_lock(&deletions->lock);
    struct deletions_entry *entry = deletions_find(&deletions->list, walk->id);
    if (entry != NULL && entry->version == walk->version) {
        entry->state = walk->state;
        entry->state.finished_us = err == ERR_OK ? walk->state.finished_us : entry->state.finished_us;
        entry->walks_count += err == ERR_OK;
        entry->walk_at_us = now_us + (err != ERR_OK             ? TROUBLE_US
                                      : entry->walks_count == 1 ? AGAIN_US
                                                                : LATER_US);
        entry->err = err;
        snprintf(entry->why, sizeof entry->why, "%s", err == ERR_OK ? "" : err_detail_text(detail, err));
    }
    pthread_mutex_unlock(&deletions->lock);
}

/* One of them. False: none is due, and *ret_rest_us until one is. */
static bool deletions_walk_next(struct deletions *deletions, uint64_t *ret_rest_us, enum err *ret_err,
                                struct err_detail *detail) {
    struct deletions_walk walk;
    struct err_detail inner = {.err = ERR_OK};
    if (!deletions_take_walk(deletions, &walk, ret_rest_us)) {
        return false;
    }
    if (deletions->session == NULL && deletions->config.instance != NULL) {
        deletions->session = instance_session_new(deletions->config.instance);
    }
    uint64_t before_count = walk.state.removed_count;
    bool was_in_force = walk.state.finished_us != 0;
    bool is_ready = deletions->session != NULL || deletions->config.instance == NULL;
    enum err err = is_ready ? deletions_purge(deletions, &walk, &inner)
                            : err_set(&inner, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    if (err == ERR_CANCELLED) {
        deletions_walk_done(&walk);
        return false;
    }
    if (err == ERR_OK) {
        deletions_tell(deletions, &walk, before_count);
    }
    deletions_end_walk(deletions, &walk, err, &inner);
    deletions_walk_done(&walk);
    if ((err != ERR_OK || !was_in_force) && deletions->config.applied != NULL) {
        deletions->config.applied(deletions->config.context);
    }
    if (err != ERR_OK) {
        *ret_err = err_set(detail, err, "%s", err_detail_text(&inner, err));
    }
    return true;
}

static uint64_t deletions_work(void *context) {
    struct deletions *deletions = context;
    enum err err;
    uint64_t rest_us = TASK_FOR_EVER_US;
    while (!task_is_stopping(&deletions->task) && deletions_walk_next(deletions, &rest_us, &err, NULL)) {
    }
    return rest_us;
}

enum err deletions_start(struct deletions *deletions) {
    return task_start(&deletions->task, "deletions", PRIORITY_BEHIND, deletions_work, deletions);
}

void deletions_stop(struct deletions *deletions) {
    task_stop(&deletions->task);
}

enum err deletions_run(struct deletions *deletions, struct err_detail *detail) {
    uint64_t rest_us;
    enum err err = ERR_OK;
    deletions->is_running = true;
    while (err == ERR_OK && deletions_walk_next(deletions, &rest_us, &err, detail)) {
    }
    deletions->is_running = false;
    return err;
}

/* ---- for others ---- */

enum err deletions_check(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                         struct err_detail *detail) {
    pthread_mutex_lock(&deletions->lock);
    const struct deletions_entry *entry = deletions_find(&deletions->list, id);
    bool is_there = entry != NULL && entry->version == version;
    bool is_done = is_there && entry->state.finished_us != 0;
    enum err err = is_done ? ERR_OK : is_there && entry->err != ERR_OK ? entry->err : ERR_BUSY;
    if (!is_done) {
        err_set(detail, err, "%s",
                is_there && entry->err != ERR_OK ? entry->why
                                                 : "its captures are hidden, and being taken out");
    }
    pthread_mutex_unlock(&deletions->lock);
    return err;
}

bool deletions_are_done(struct deletions *deletions) {
    bool are_done = true;
    pthread_mutex_lock(&deletions->lock);
    for (size_t i = 0; i < deletions->list.count && are_done; i++) {
        const struct deletions_entry *entry = &deletions->list.entries[i];
        are_done = entry->state.finished_us != 0 || entry->err != ERR_OK;
    }
    pthread_mutex_unlock(&deletions->lock);
    return are_done;
}

uint64_t deletions_removed_count(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE]) {
    pthread_mutex_lock(&deletions->lock);
    const struct deletions_entry *entry = deletions_find(&deletions->list, id);
    uint64_t count = entry != NULL ? entry->state.removed_count : 0;
    pthread_mutex_unlock(&deletions->lock);
    return count;
}

static void deletions_put_time(struct json *json, const char *name, int64_t time_us) {
    char text[UTC_RFC3339_SIZE];
    if (time_us > 0 && time_us <= UTC_MAX_US) {
        json_text(json, name, utc_format_rfc3339(time_us, text));
    }
}

void deletions_put_json(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                        struct bytes text, struct json *json) {
    struct deletion_text *read = malloc(sizeof *read);
    struct deletions_state state;
    if (read != NULL && deletion_text_read(text, version, read, NULL, NULL) == ERR_OK) {
        json_bytes(json, "reason", read->reason);
        json_open_list(json, "urls");
        for (size_t i = 0; i < read->urls_count; i++) {
            json_bytes(json, NULL, read->urls[i]);
        }
        json_close(json);
        deletions_put_time(json, "from", read->from_us);
        deletions_put_time(json, "to", read->to_us);
    }
    free(read);
    pthread_mutex_lock(&deletions->lock);
    const struct deletions_entry *entry = deletions_find(&deletions->list, id);
    state = entry != NULL ? entry->state : (struct deletions_state){.version = 0};
    pthread_mutex_unlock(&deletions->lock);
    json_count(json, "removed", state.removed_count);
    deletions_put_time(json, "begun", state.begun_us);
    deletions_put_time(json, "finished", state.finished_us);
}
