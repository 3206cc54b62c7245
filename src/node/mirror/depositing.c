#include "node/mirror/depositing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "node/mirror/depositing_state.h"
#include "run/priority.h"
#include "run/thread.h"

enum { LINK_SIZE_MAX = 64, LOOK_S = 1 };

const char *const depositing_phases[] = {
    [DEPOSITING_NONE] = "none",
    [DEPOSITING_INDEXING] = "indexing",
    [DEPOSITING_READY] = "ready",
    [DEPOSITING_REFUSED] = "refused",
};

/* ---- which there are ---- */

static struct deposit *find(const struct depositing *depositing, const char *name) {
    for (size_t i = 0; i < depositing->deposits_count; i++) {
        if (strcmp(depositing->deposits[i]->name, name) == 0) {
            return depositing->deposits[i];
        }
    }
    return NULL;
}

/* The numbers that it had before are its again, unless another has them: somebody has copied a directory. */
static void read_file(struct depositing *depositing, struct deposit *deposit,
                      const struct collection_setup *setup) {
    struct depositing_file file;
    bool is_sound = depositing_file_read(depositing->config.directory, deposit->name, &file) == ERR_OK &&
                    memcmp(file.publisher, setup->publisher, PEER_KEY_SIZE) == 0;
    for (size_t i = 0; is_sound && i < file.volumes_count; i++) {
        is_sound = !depositing->is_used[file.volumes[i].number - INSTANCE_DEPOSIT_NUMBER];
    }
    for (size_t i = 0; is_sound && i < file.volumes_count; i++) {
        depositing->is_used[file.volumes[i].number - INSTANCE_DEPOSIT_NUMBER] = true;
    }
    deposit->file = is_sound ? file : (struct depositing_file){0};
    memcpy(deposit->file.publisher, setup->publisher, PEER_KEY_SIZE);
    deposit->is_dropped = false;
    deposit->seen_number = 0;
}

/* 0: there is none of that publisher that is an archive; or it is just being switched to. */
static uint64_t number_of_tree(const struct depositing *depositing, const char *name,
                               const uint8_t publisher[PEER_KEY_SIZE]) {
    static const struct bytes trees = {(const uint8_t *)"trees/", sizeof "trees/" - 1};
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char link[LINK_SIZE_MAX];
    uint64_t number = 0;
    const char *directory = depositing->config.directory;
    ssize_t size = readlink(collection_setup_path(directory, name, "current", path), link, sizeof link);
    struct bytes text = bytes_of(link, size > 0 ? (size_t)size : 0);
    if (!bytes_starts_with(text, trees) || !bytes_to_u64(bytes_skip(text, trees.size), INT64_MAX, &number) ||
        access(collection_setup_path(directory, name, "current/volumes", path), X_OK) != 0) {
        return 0;
    }
    struct version version;
    enum err err = collection_setup_read_version(directory, name, "version", &version, NULL);
    bool is_his =
        err == ERR_OK && version.number == number && memcmp(version.publisher, publisher, PEER_KEY_SIZE) == 0;
    return is_his ? number : 0;
}

static void look_at(struct depositing *depositing, const char *name) {
    struct collection_setup setup;
    struct deposit *deposit = find(depositing, name);
    if (collection_setup_read(depositing->config.directory, name, &setup, NULL) != ERR_OK ||
        collection_setup_publishes(&setup) || !setup.has_publisher) {
        return;
    }
    if (deposit == NULL) {
        bool is_full = depositing->deposits_count == INSTANCE_DEPOSITS_MAX;
        bool is_wanted = !is_full && number_of_tree(depositing, name, setup.publisher) != 0;
        deposit = is_wanted ? calloc(1, sizeof *deposit) : NULL;
        if (deposit == NULL) {
            return;
        }
        memcpy(deposit->name, setup.name, sizeof deposit->name);
        read_file(depositing, deposit, &setup);
        pthread_mutex_lock(&depositing->lock);
        depositing->deposits[depositing->deposits_count++] = deposit;
        pthread_mutex_unlock(&depositing->lock);
    } else if (deposit->is_dropped) {
        read_file(depositing, deposit, &setup);
    }
    deposit->is_listed = memcmp(deposit->file.publisher, setup.publisher, PEER_KEY_SIZE) == 0;
}

/* Those that nobody subscribes to any more. */
static void drop_unlisted(struct depositing *depositing) {
    for (size_t i = depositing->deposits_count; i-- > 0;) {
        struct deposit *deposit = depositing->deposits[i];
        if (deposit->is_listed) {
            continue;
        }
        if (!deposit->is_dropped) {
            depositing_drop(depositing, deposit);
        }
        if (depositing_clean(depositing, deposit)) {
            pthread_mutex_lock(&depositing->lock);
            depositing->deposits[i] = depositing->deposits[--depositing->deposits_count];
            pthread_mutex_unlock(&depositing->lock);
            free(deposit);
        }
    }
}

static void bring_up_to_date(struct depositing *depositing, struct deposit *deposit) {
    uint64_t number = number_of_tree(depositing, deposit->name, deposit->file.publisher);
    bool is_due =
        deposit->seen_number != number ||
        (deposit->retry_at_us != 0 && clock_monotonic_us(depositing->config.clock) >= deposit->retry_at_us);
    if (number != 0 && is_due) {
        depositing_update(depositing, deposit, number);
    }
    depositing_file_clean(depositing->config.directory, deposit->name, &deposit->file);
}

/* All files are read before the first new number is given away. */
static void look(struct depositing *depositing) {
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = malloc(COLLECTION_SETUP_NAMES_MAX * sizeof *names);
    if (names == NULL) {
        return;
    }
    size_t count = collection_setup_names(depositing->config.directory, names);
    for (size_t i = 0; i < depositing->deposits_count; i++) {
        depositing->deposits[i]->is_listed = false;
    }
    for (size_t i = 0; i < count; i++) {
        look_at(depositing, names[i]);
    }
    free(names);
    drop_unlisted(depositing);
    for (size_t i = 0; i < depositing->deposits_count && !depositing->is_stopping; i++) {
        if (depositing->deposits[i]->is_listed) {
            bring_up_to_date(depositing, depositing->deposits[i]);
        }
    }
}

/* ---- the thread ---- */

static void rest(struct depositing *depositing) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOOK_S;
    int result = 0;
    pthread_mutex_lock(&depositing->lock);
    while (!depositing->is_stopping && result == 0) {
        result = pthread_cond_timedwait(&depositing->woken, &depositing->lock, &until);
    }
    pthread_mutex_unlock(&depositing->lock);
}

static void *run(void *context) {
    struct depositing *depositing = context;
    priority_lower(PRIORITY_BEHIND);
    while (!depositing->is_stopping) {
        look(depositing);
        rest(depositing);
    }
    return NULL;
}

enum err depositing_start(const struct depositing_config *config, struct depositing **ret_depositing,
                          struct err_detail *detail) {
    struct depositing *depositing = calloc(1, sizeof *depositing);
    if (depositing == NULL) {
        return ERR_MEMORY;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&depositing->woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&depositing->lock, NULL);
    depositing->config = *config;
    depositing->config.clock = config->clock != NULL ? config->clock : &clock_system;
    int failed = thread_start(&depositing->thread, "depositing", run, depositing);
    if (failed != 0) {
        pthread_cond_destroy(&depositing->woken);
        pthread_mutex_destroy(&depositing->lock);
        free(depositing);
        return err_set(detail, err_from_errno(failed), "archives of others are not served: %s",
                       strerror(failed));
    }
    *ret_depositing = depositing;
    return ERR_OK;
}

void depositing_stop(struct depositing *depositing) {
    pthread_mutex_lock(&depositing->lock);
    depositing->is_stopping = true;
    pthread_cond_broadcast(&depositing->woken);
    pthread_mutex_unlock(&depositing->lock);
    pthread_join(depositing->thread, NULL);
    for (size_t i = 0; i < depositing->deposits_count; i++) {
        free(depositing->deposits[i]);
    }
    pthread_cond_destroy(&depositing->woken);
    pthread_mutex_destroy(&depositing->lock);
    free(depositing);
}

/* ---- what people see ---- */

void depositing_put(struct depositing *depositing, const char *name, struct buf *out) {
    pthread_mutex_lock(&depositing->lock);
    const struct deposit *deposit = find(depositing, name);
    if (deposit != NULL && deposit->phase != DEPOSITING_NONE) {
        bool is_indexing = deposit->phase == DEPOSITING_INDEXING;
        buf_put_format(out,
                       ",\"archive\":{\"state\":\"%s\",\"number\":%ju,\"captures\":%ju,\"records\":%ju,"
                       "\"damaged\":%ju,\"took_us\":%ju,\"done_size\":%ju,\"all_size\":%ju,\"reason\":",
                       depositing_phases[deposit->phase], (uintmax_t)deposit->number,
                       (uintmax_t)deposit->captures_count, (uintmax_t)deposit->records_count,
                       (uintmax_t)deposit->damaged_count, (uintmax_t)deposit->took_us,
                       (uintmax_t)(is_indexing ? deposit->done_size : 0),
                       (uintmax_t)(is_indexing ? deposit->all_size : 0));
        buf_put_json(out, bytes_of_string(deposit->reason));
        buf_put_string(out, "}");
    }
    pthread_mutex_unlock(&depositing->lock);
}
