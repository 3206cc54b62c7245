/* Decrees become jobs and access rules, in the files that hold the node's own; then they are in force. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hex.h"
#include "base/whole_file.h"
#include "base/wire.h"
#include "crawl/engine/job.h"
#include "node/ring/decrees_state.h"
#include "node/ring/deletions.h"
#include "store/access/access_files.h"

enum {
    MODE = 0644,
    NAME_SIZE_MAX = DECREE_NAME_SIZE_MAX + 32,
    SENTENCE_SIZE_MAX = 512,
    MARK_SIZE_MAX = 2 * DECREE_ID_SIZE + 24
};

/* A file in the directory of a job that came by a decree: its id, and its version once the job is as it says.
 */
static const char job_mark[] = "decree";
static const char rules_mark[] = "# by a decree of the ring\n";

void decrees_put_job_text(struct buf *out, struct bytes conf, struct bytes seeds) {
    uint8_t head[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_varint(&writer, conf.size);
    buf_put(out, bytes_of(head, writer.size));
    buf_put(out, conf);
    buf_put(out, seeds);
}

static enum err decrees_read_job_text(struct bytes text, struct bytes *ret_conf, struct bytes *ret_seeds,
                                      struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, text);
    *ret_conf = wire_read_string(&reader, DECREE_TEXT_SIZE_MAX);
    *ret_seeds = wire_read_bytes(&reader, wire_reader_left(&reader));
    return wire_reader_finish(&reader, detail);
}

bool decrees_job_relaxes_robots(struct bytes text) {
    struct arena arena;
    struct job job = {0};
    struct bytes conf;
    struct bytes seeds;
    arena_init(&arena, JOB_FILE_SIZE_MAX);
    bool is_relaxed = decrees_read_job_text(text, &conf, &seeds, NULL) == ERR_OK &&
                      job_parse(&job, conf, &arena, NULL) == ERR_OK && job.ignores_robots;
    arena_done(&arena);
    return is_relaxed;
}

/* ---- which count ---- */

/* A copy of one, made under the lock and obeyed without it. */
struct order {
    enum decree_kind kind;
    char name[NAME_SIZE_MAX];
    uint8_t id[DECREE_ID_SIZE];
    uint64_t version;
    struct buf text;
    enum err err; /* why it is not obeyed, and in words */
    char why_not[ERR_TEXT_SIZE_MAX];
};

/* Is there another of this name that comes first: the founder's, else the lower id? The lock is held. */
static bool is_outranked(const struct decrees *decrees, size_t index) {
    const struct decree *mine = &decrees->entries[index].decree;
    bool is_founders = decree_is_rings(mine, &decrees->charter);
    for (size_t i = 0; i < decrees->count; i++) {
        const struct decrees_entry *other = &decrees->entries[i];
        bool is_other_founders = decree_is_rings(&other->decree, &decrees->charter);
        bool is_word = other->decree.text.size > 0 || /* the founder may withdraw what members want, too */
                       (is_other_founders && other->decree.version > mine->version);
        bool is_rival = i != index && other->counts && is_word && other->decree.kind == mine->kind &&
                        bytes_equal(other->decree.name, mine->name);
        if (is_rival && (is_other_founders || (i < index && !is_founders))) {
            return true;
        }
    }
    return false;
}

static struct order *obey_collect(struct decrees *decrees, size_t *ret_count) {
    size_t count = 0;
    pthread_mutex_lock(&decrees->lock);
    struct order *orders = calloc(decrees->count + 1, sizeof *orders);
    for (size_t i = 0; orders != NULL && i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        bool is_refused = decrees->is_light && entry->decree.kind == DECREE_JOB;
        if (!entry->counts || entry->decree.text.size == 0 || is_refused || is_outranked(decrees, i)) {
            continue;
        }
        struct order *order = &orders[count++];
        order->kind = entry->decree.kind;
        snprintf(order->name, sizeof order->name, "ring-%.*s", BYTES_ARG(entry->decree.name));
        memcpy(order->id, entry->id, sizeof order->id);
        order->version = entry->decree.version;
        buf_init(&order->text, DECREE_TEXT_SIZE_MAX);
        buf_put(&order->text, entry->decree.text);
    }
    pthread_mutex_unlock(&decrees->lock);
    *ret_count = count;
    return orders;
}

static bool is_ordered(const struct order *orders, size_t count, enum decree_kind kind, struct bytes name) {
    for (size_t i = 0; i < count; i++) {
        if (orders[i].kind == kind && bytes_equal(bytes_of_string(orders[i].name), name)) {
            return true;
        }
    }
    return false;
}

/* ---- jobs ---- */

static const char *job_path(const char *directory, const struct order *order, const char *name,
                            char out[DECREES_PATH_SIZE_MAX]) {
    snprintf(out, DECREES_PATH_SIZE_MAX, "%s/jobs/%s%s%s", directory, order->name, name[0] != '\0' ? "/" : "",
             name);
    return out;
}

static void put_mark(struct buf *out, const struct order *order) {
    char digits[2 * DECREE_ID_SIZE + 1];
    buf_put_string(out, hex_encode(bytes_of(order->id, DECREE_ID_SIZE), digits));
    buf_put_format(out, " %ju", (uintmax_t)order->version);
}

/* Then it stays as it is, even if somebody has paused it here: a crawl begins again with what is written
 * anew. */
static bool is_obeyed(const char *directory, const struct order *order) {
    char path[DECREES_PATH_SIZE_MAX];
    struct buf mark;
    struct buf wanted;
    buf_init(&mark, MARK_SIZE_MAX);
    buf_init(&wanted, MARK_SIZE_MAX);
    put_mark(&wanted, order);
    bool is_same = whole_file_read(job_path(directory, order, job_mark, path), &mark, NULL) == ERR_OK &&
                   bytes_equal(buf_bytes(&mark), buf_bytes(&wanted));
    buf_done(&mark);
    buf_done(&wanted);
    return is_same && access(job_path(directory, order, "job.conf", path), F_OK) == 0 &&
           access(job_path(directory, order, "seeds", path), F_OK) == 0;
}

/* Before the job only the id: a version that is named is one that was written. */
static enum err write_mark(const char *directory, const struct order *order, bool has_version,
                           struct err_detail *detail) {
    char path[DECREES_PATH_SIZE_MAX];
    struct buf mark;
    buf_init(&mark, MARK_SIZE_MAX);
    put_mark(&mark, order);
    struct bytes text = buf_bytes(&mark);
    text.size = has_version ? text.size : 2 * DECREE_ID_SIZE;
    enum err err = mark.err != ERR_OK
                       ? mark.err
                       : whole_file_replace(job_path(directory, order, job_mark, path), text, MODE, detail);
    buf_done(&mark);
    return err;
}

static enum err write_job(const char *directory, const struct order *order, struct err_detail *detail) {
    char path[DECREES_PATH_SIZE_MAX];
    struct arena arena;
    struct job job = {0};
    struct bytes conf;
    struct bytes seeds;
    arena_init(&arena, JOB_FILE_SIZE_MAX);
    enum err err = decrees_read_job_text(buf_bytes(&order->text), &conf, &seeds, detail);
    err = err == ERR_OK ? job_parse(&job, conf, &arena, detail) : err;
    err = err == ERR_OK ? job_add_seeds(&job, seeds, &arena, detail) : err;
    job.is_shared = true;
    job.is_paused = false;
    snprintf(path, sizeof path, "%s/jobs", directory);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    job_path(directory, order, "", path);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    err = err == ERR_OK ? write_mark(directory, order, false, detail) : err;
    err = err == ERR_OK ? job_write(&job, path, detail) : err;
    err = err == ERR_OK ? write_mark(directory, order, true, detail) : err;
    arena_done(&arena);
    return err;
}

/* Obeyed already, or from now on. */
static enum err obey_job(const char *directory, const struct order *order, bool *ret_is_changed,
                         struct err_detail *detail) {
    if (is_obeyed(directory, order)) {
        return ERR_OK;
    }
    *ret_is_changed = true;
    return write_job(directory, order, detail);
}

/* Jobs that came by decrees which no longer count: the crawl ends what has no job.conf. */
static void remove_jobs(const char *directory, const struct order *orders, size_t count,
                        bool *ret_is_changed) {
    char path[DECREES_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/jobs", directory);
    DIR *jobs = opendir(path);
    const struct dirent *entry;
    while (jobs != NULL && (entry = readdir(jobs)) != NULL) {
        if (strncmp(entry->d_name, "ring-", 5) != 0 ||
            is_ordered(orders, count, DECREE_JOB, bytes_of_string(entry->d_name))) {
            continue;
        }
        snprintf(path, sizeof path, "%s/jobs/%s/%s", directory, entry->d_name, job_mark);
        if (access(path, F_OK) == 0) {
            snprintf(path, sizeof path, "%s/jobs/%s/job.conf", directory, entry->d_name);
            *ret_is_changed |= unlink(path) == 0;
        }
    }
    if (jobs != NULL) {
        closedir(jobs);
    }
}

/* ---- rules ---- */

/* A file that cannot be read would stop all changes of rules: it is not written. */
static enum err check_rules(struct bytes text, struct err_detail *detail) {
    struct access_rules *rules = access_rules_new();
    if (rules == NULL) {
        return ERR_MEMORY;
    }
    enum err err = access_rules_add(rules, text, detail);
    access_rules_free(rules);
    return err;
}

/* Unlike jobs, rules must be as the decree says, whoever has changed the file. */
static bool has_rules(const char *path, struct bytes wanted, bool is_beginning) {
    struct buf text;
    buf_init(&text, DECREE_TEXT_SIZE_MAX + sizeof rules_mark);
    bool has =
        whole_file_read(path, &text, NULL) == ERR_OK &&
        (is_beginning ? bytes_starts_with(buf_bytes(&text), wanted) : bytes_equal(buf_bytes(&text), wanted));
    buf_done(&text);
    return has;
}

static enum err obey_rules(const char *directory, const struct order *order, bool *ret_is_changed,
                           struct err_detail *detail) {
    char path[DECREES_PATH_SIZE_MAX];
    struct buf text;
    buf_init(&text, DECREE_TEXT_SIZE_MAX + sizeof rules_mark);
    buf_put_string(&text, rules_mark);
    buf_put(&text, buf_bytes(&order->text));
    enum err err = check_rules(buf_bytes(&text), detail);
    snprintf(path, sizeof path, "%s/access", directory);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    snprintf(path, sizeof path, "%s/access/%s.aclj", directory, order->name);
    if (err == ERR_OK && !has_rules(path, buf_bytes(&text), false)) {
        *ret_is_changed = true;
        err = whole_file_replace(path, buf_bytes(&text), MODE, detail);
    }
    buf_done(&text);
    return err;
}

static void remove_rules(const char *directory, const struct order *orders, size_t count,
                         bool *ret_is_changed) {
    char path[DECREES_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/access", directory);
    DIR *files = opendir(path);
    const struct dirent *entry;
    while (files != NULL && (entry = readdir(files)) != NULL) {
        struct bytes name = bytes_of_string(entry->d_name);
        if (strncmp(entry->d_name, "ring-", 5) != 0 || !bytes_ends_with(name, BYTES(".aclj"))) {
            continue;
        }
        name.size -= strlen(".aclj");
        snprintf(path, sizeof path, "%s/access/%s", directory, entry->d_name);
        if (!is_ordered(orders, count, DECREE_RULES, name) &&
            has_rules(path, bytes_of_string(rules_mark), true)) {
            *ret_is_changed |= unlink(path) == 0;
        }
    }
    if (files != NULL) {
        closedir(files);
    }
}

/* ---- deletions ---- */

static enum err obey_deletion(struct decrees *decrees, const struct order *order, struct err_detail *detail) {
    struct deletions *deletions = decrees->config.deletions;
    return deletions == NULL
               ? err_set(detail, ERR_UNSUPPORTED, "nothing is deleted here")
               : deletions_order(deletions, order->id, order->version, buf_bytes(&order->text), detail);
}

/* All have been given: they count from now on. Which of them are done? */
static void obey_end_deletions(struct decrees *decrees, struct order *orders, size_t count) {
    struct deletions *deletions = decrees->config.deletions;
    if (deletions == NULL) {
        return;
    }
    deletions_end(deletions);
    for (size_t i = 0; i < count; i++) {
        struct order *order = &orders[i];
        struct err_detail detail = {.err = ERR_OK};
        if (order->kind != DECREE_DELETION || order->err != ERR_OK) {
            continue;
        }
        order->err = deletions_check(deletions, order->id, order->version, &detail);
        if (order->err != ERR_OK) {
            snprintf(order->why_not, sizeof order->why_not, "%s", err_detail_text(&detail, order->err));
        }
    }
}

static void obey_begin_deletions(struct decrees *decrees) {
    if (decrees->config.deletions != NULL) {
        deletions_begin(decrees->config.deletions);
    }
}

/* ---- in force ---- */

/* Is it this node's trouble, which may pass, rather than the decree's? */
static bool is_own_trouble(enum err err) {
    return err == ERR_NO_SPACE || err == ERR_IO || err == ERR_SYSTEM || err == ERR_MEMORY || err == ERR_FILES;
}

/* A later program will know what it says. */
static enum err obey_nothing(struct err_detail *detail) {
    return err_set(detail, ERR_UNSUPPORTED, "this version does not know its kind: it is kept and passed on");
}

static void obey_order(struct decrees *decrees, struct order *order, bool *ret_is_changed) {
    char sentence[SENTENCE_SIZE_MAX];
    struct err_detail detail = {.err = ERR_OK};
    const char *directory = decrees->config.directory;
    enum import_rule rule; /* decrees_import_rule() looks at it when it is asked for */
    order->err = order->kind == DECREE_JOB        ? obey_job(directory, order, ret_is_changed, &detail)
                 : order->kind == DECREE_RULES    ? obey_rules(directory, order, ret_is_changed, &detail)
                 : order->kind == DECREE_DELETION ? obey_deletion(decrees, order, &detail)
                 : order->kind == DECREE_IMPORTS  ? import_rule_read(buf_bytes(&order->text), &rule, &detail)
                                                  : obey_nothing(&detail);
    if (order->err != ERR_OK) {
        snprintf(order->why_not, sizeof order->why_not, "%s", err_detail_text(&detail, order->err));
        snprintf(sentence, sizeof sentence, "the decree \"%s\" cannot be obeyed: %s", order->name,
                 order->why_not);
        decrees_say(decrees, sentence);
    }
}

/* One file that is wrong, also one of the operator's own, keeps all rules as they were before: then no decree
 * has changed anything, whatever its file says. */
static enum err obey_reload(struct decrees *decrees, struct err_detail *detail) {
    struct access_rules *rules;
    if (decrees->config.reload != NULL) {
        return decrees->config.reload(decrees->config.context, detail);
    }
    enum err err = access_files_load(decrees->config.directory, &rules, detail);
    if (err == ERR_OK) {
        access_rules_free(rules);
    }
    return err;
}

static const struct order *obey_find(const struct order *orders, size_t count,
                                     const struct decrees_entry *entry) {
    for (size_t i = 0; i < count; i++) {
        if (orders[i].version == entry->decree.version &&
            memcmp(orders[i].id, entry->id, DECREE_ID_SIZE) == 0) {
            return &orders[i];
        }
    }
    return NULL;
}

/* Those that came while we wrote are found by the next beat. A withdrawn one has no order, and is in force
 * since what it ended has been removed. One that is not on the disk is not: after a power failure nothing
 * would order it. False: there are such ones. */
static bool obey_mark(struct decrees *decrees, const struct order *orders, size_t count, enum err reload_err,
                      const char *reload_text) {
    bool are_on_disk = true;
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count; i++) {
        struct decrees_entry *entry = &decrees->entries[i];
        const struct order *order = obey_find(orders, count, entry);
        bool is_withdrawn = entry->decree.text.size == 0;
        bool is_rules = entry->decree.kind == DECREE_RULES;
        if (!entry->counts || (order == NULL && !is_withdrawn)) {
            entry->is_in_force = false;
            if (entry->counts && decrees->is_light && entry->decree.kind == DECREE_JOB) {
                snprintf(entry->why_not, sizeof entry->why_not, "a light member runs no jobs of the ring");
            }
            continue;
        }
        entry->is_applying = entry->decree.kind == DECREE_DELETION && order != NULL && order->err == ERR_BUSY;
        bool is_read = !is_rules || reload_err == ERR_OK;
        bool is_written = order != NULL ? order->err == ERR_OK : decrees->is_obeyed;
        entry->is_in_force = is_written && is_read && entry->is_on_disk;
        if (!entry->is_on_disk) {
            are_on_disk = false;
            decrees->is_obeyed = decrees->is_obeyed && decrees->has_write_failed; /* else it has just come */
        }
        snprintf(entry->why_not, sizeof entry->why_not, "%s",
                 entry->is_in_force                      ? ""
                 : order != NULL && order->err != ERR_OK ? order->why_not
                 : !entry->is_on_disk                    ? "it is not on the disk yet"
                                                         : reload_text);
    }
    pthread_mutex_unlock(&decrees->lock);
    return are_on_disk;
}

static void obey_free(struct order *orders, size_t count) {
    for (size_t i = 0; i < count; i++) {
        buf_done(&orders[i].text);
    }
    free(orders);
}

void decrees_obey_deletions(struct decrees *decrees) {
    size_t count;
    struct order *orders = obey_collect(decrees, &count);
    if (orders == NULL) {
        return;
    }
    obey_begin_deletions(decrees);
    for (size_t i = 0; i < count; i++) {
        if (orders[i].kind == DECREE_DELETION) {
            bool is_changed;
            obey_order(decrees, &orders[i], &is_changed);
        }
    }
    obey_end_deletions(decrees, orders, count);
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < count; i++) {
        struct decrees_entry *entry = decrees_find(decrees, orders[i].id);
        if (entry != NULL && orders[i].kind == DECREE_DELETION) {
            entry->is_in_force = orders[i].err == ERR_OK;
            snprintf(entry->why_not, sizeof entry->why_not, "%s", orders[i].why_not);
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    obey_free(orders, count);
}

bool decrees_obey(struct decrees *decrees) {
    const char *directory = decrees->config.directory;
    struct err_detail detail = {.err = ERR_OK};
    bool is_done = true;
    bool is_changed = false;
    size_t count;
    struct order *orders = obey_collect(decrees, &count);
    if (orders == NULL) { /* what there is stays, rather than to go as if nobody had ordered it */
        return false;
    }
    obey_begin_deletions(decrees);
    for (size_t i = 0; i < count; i++) {
        obey_order(decrees, &orders[i], &is_changed);
        is_done = is_done && !is_own_trouble(orders[i].err);
    }
    obey_end_deletions(decrees, orders, count); /* which try again by themselves */
    remove_jobs(directory, orders, count, &is_changed);
    remove_rules(directory, orders, count, &is_changed);
    enum err err = obey_reload(decrees, &detail);
    is_done =
        obey_mark(decrees, orders, count, err, err == ERR_OK ? "" : err_detail_text(&detail, err)) && is_done;
    obey_free(orders, count);
    if (is_changed && decrees->config.changed != NULL) {
        decrees->config.changed(decrees->config.context);
    }
    return is_done && err == ERR_OK;
}
