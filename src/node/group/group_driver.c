#include "node/group/group_driver.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/group/group_driver_state.h"
#include "node/rpc/peer_rpc.h"
#include "node/transport/transport.h"

enum { NOTE_SIZE_MAX = 512 };

void group_driver_note(const struct group_driver *group_driver, const char *format, ...) {
    char sentence[NOTE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (group_driver->config.note != NULL) {
        group_driver->config.note(group_driver->config.context, sentence);
    }
}

/* ---- making ---- */

struct group_driver *group_driver_new(const struct group_driver_config *config) {
    uint64_t seed;
    struct group_driver *group_driver = calloc(1, sizeof *group_driver);
    struct group_wish *known = calloc(GROUP_DRIVER_GROUPS_MAX, sizeof *known);
    if (group_driver == NULL || known == NULL || sha256_init(&group_driver->sha256) != ERR_OK) {
        free(group_driver);
        free(known);
        return NULL;
    }
    group_driver->config = *config;
    group_driver->config.clock = config->clock != NULL ? config->clock : &clock_system;
    group_driver->known = known;
    group_driver->news_end = &group_driver->news;
    group_driver->saves_end = &group_driver->saves;
    randombytes_buf(&seed, sizeof seed);
    map_init(&group_driver->members, PEER_KEY_SIZE, 1, GROUP_DRIVER_MEMBERS_MAX, seed);
    pthread_mutex_init(&group_driver->lock, NULL);
    for (size_t i = 0; i < GROUP_DRIVER_PROBES_MAX; i++) {
        group_driver->probes[i].group_driver = group_driver;
    }
    return group_driver;
}

enum err group_driver_begin(struct group_driver *group_driver, struct transport *transport,
                            struct peer_rpc *peer_rpc, const struct peer *self) {
    struct group_config config = {0};
    size_t actions_max = group_actions_max(&config);
    size_t memory_size = group_memory_size(&config);
    ASSERT(!group_driver->is_begun);
    group_driver->transport = transport;
    group_driver->peer_rpc = peer_rpc;
    group_driver->self = *self;
    group_driver->actions = calloc(actions_max, sizeof *group_driver->actions);
    group_driver->memory = malloc(memory_size);
    if (group_driver->actions == NULL || group_driver->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&group_driver->out, group_driver->actions, actions_max, group_driver->memory, memory_size);
    peer_rpc_serve(peer_rpc, PEER_RPC_PROBE, group_driver_answer_probe, group_driver);
    enum err err =
        task_start(&group_driver->disk, "group-disk", PRIORITY_USUAL, group_driver_run_disk, group_driver);
    if (err != ERR_OK) {
        return err;
    }
    group_driver->is_begun = true;
    group_driver_hurry(group_driver);
    return ERR_OK;
}

void group_driver_hurry(struct group_driver *group_driver) {
    if (group_driver->is_begun && !group_driver->is_stopped) {
        (void)transport_post(group_driver->transport, group_driver_take_posts,
                             group_driver); /* else with the next one */
    }
}

void group_driver_stop(struct group_driver *group_driver) {
    bool is_first = group_driver->is_begun && !group_driver->is_stopped;
    group_driver->is_stopped = true;
    task_stop(&group_driver->disk);
    if (is_first) {
        (void)group_driver_run_disk(group_driver); /* what came meanwhile */
    }
}

void group_driver_free(struct group_driver *group_driver) {
    group_driver_stop(group_driver);
    while (group_driver->news != NULL) {
        struct group_driver_news *next = group_driver->news->next;
        free(group_driver->news);
        group_driver->news = next;
    }
    struct group_driver_save *lists[] = {group_driver->saves, group_driver->saved};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        while (lists[i] != NULL) {
            struct group_driver_save *next = lists[i]->next;
            free(lists[i]);
            lists[i] = next;
        }
    }
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        group_free(group_driver->slots[i].group);
        free(group_driver->slots[i].topology);
    }
    sha256_done(&group_driver->sha256);
    map_done(&group_driver->members);
    pthread_mutex_destroy(&group_driver->lock);
    free(group_driver->known);
    free(group_driver->actions);
    free(group_driver->memory);
    free(group_driver);
}

/* ---- files ---- */

/* Once, until something else is wrong: the file is looked at every second. */
static void tell(struct group_driver *group_driver, const char *sentence) {
    if (strcmp(group_driver->told, sentence) != 0) {
        snprintf(group_driver->told, sizeof group_driver->told, "%s", sentence);
        group_driver_note(group_driver, "group: %s", sentence);
    }
}

static bool give_news(struct group_driver *group_driver, const struct group_wish *wish, bool is_gone) {
    struct group_driver_news *news = calloc(1, sizeof *news);
    if (news == NULL) {
        return false;
    }
    news->wish = *wish;
    news->is_gone = is_gone;
    news->has_state =
        !is_gone && group_files_read_state(group_driver->config.directory, wish->name, &news->state);
    pthread_mutex_lock(&group_driver->lock);
    *group_driver->news_end = news;
    group_driver->news_end = &news->next;
    pthread_mutex_unlock(&group_driver->lock);
    return true;
}

static struct group_wish *find_known(struct group_driver *group_driver, const char *name) {
    for (size_t i = 0; i < group_driver->known_count; i++) {
        if (strcmp(group_driver->known[i].name, name) == 0) {
            return &group_driver->known[i];
        }
    }
    return NULL;
}

/* True: it is new, or another than before. */
static bool look_at(struct group_driver *group_driver, const char *name) {
    struct err_detail detail = {0};
    struct group_wish wish;
    struct group_wish *known = find_known(group_driver, name);
    memset(&wish, 0, sizeof wish);
    enum err err = group_files_read_wish(group_driver->config.directory, name, &wish, &detail);
    if (err != ERR_OK) {
        tell(group_driver, err_detail_text(&detail, err)); /* what was known of it still holds */
        return false;
    }
    if (known != NULL && memcmp(known, &wish, sizeof wish) == 0) {
        return false;
    }
    if (known == NULL && group_driver->known_count == GROUP_DRIVER_GROUPS_MAX) {
        tell(group_driver, "a node is in 16 groups at most");
        return false;
    }
    if (give_news(group_driver, &wish, false)) {
        known = known != NULL ? known : &group_driver->known[group_driver->known_count++];
        memcpy(known, &wish, sizeof wish);
    }
    return true;
}

static bool is_named(char (*names)[GROUP_FILES_NAME_SIZE_MAX], size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool group_driver_beat(struct group_driver *group_driver) {
    char names[2 * GROUP_DRIVER_GROUPS_MAX][GROUP_FILES_NAME_SIZE_MAX];
    size_t count =
        group_files_list(group_driver->config.directory, names, 2 * (size_t)GROUP_DRIVER_GROUPS_MAX);
    bool has_news = false;
    for (size_t i = group_driver->known_count; i-- > 0;) {
        struct group_wish *known = &group_driver->known[i];
        if (!is_named(names, count, known->name) && give_news(group_driver, known, true)) {
            group_driver->known_count--;
            memmove(known, &group_driver->known[group_driver->known_count], sizeof *known);
            has_news = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        has_news = look_at(group_driver, names[i]) || has_news;
    }
    if (has_news) {
        group_driver_hurry(group_driver);
    }
    return group_driver->known_count > 0;
}
