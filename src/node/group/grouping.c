#include "node/group/grouping.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/group/grouping_state.h"
#include "node/rpc/bulk.h"
#include "node/transport/ringing.h"
#include "run/thread.h"

enum { NOTE_SIZE_MAX = 512 };

void grouping_note(const struct grouping *grouping, const char *format, ...) {
    char sentence[NOTE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (grouping->config.note != NULL) {
        grouping->config.note(grouping->config.context, sentence);
    }
}

/* ---- making ---- */

struct grouping *grouping_new(const struct grouping_config *config) {
    uint64_t seed;
    struct grouping *grouping = calloc(1, sizeof *grouping);
    struct group_wish *known = calloc(GROUPING_GROUPS_MAX, sizeof *known);
    if (grouping == NULL || known == NULL || sha256_init(&grouping->sha256) != ERR_OK) {
        free(grouping);
        free(known);
        return NULL;
    }
    grouping->config = *config;
    grouping->config.clock = config->clock != NULL ? config->clock : &clock_system;
    grouping->known = known;
    grouping->news_end = &grouping->news;
    grouping->saves_end = &grouping->saves;
    randombytes_buf(&seed, sizeof seed);
    map_init(&grouping->members, PEER_KEY_SIZE, 1, GROUPING_MEMBERS_MAX, seed);
    pthread_mutex_init(&grouping->lock, NULL);
    pthread_cond_init(&grouping->work, NULL);
    for (size_t i = 0; i < GROUPING_PROBES_MAX; i++) {
        grouping->probes[i].grouping = grouping;
    }
    return grouping;
}

enum err grouping_begin(struct grouping *grouping, struct ringing *ringing, struct bulk *bulk,
                        const struct peer *self) {
    struct group_config config = {0};
    size_t actions_max = group_actions_max(&config);
    size_t memory_size = group_memory_size(&config);
    ASSERT(!grouping->is_begun);
    grouping->ringing = ringing;
    grouping->bulk = bulk;
    grouping->self = *self;
    grouping->actions = calloc(actions_max, sizeof *grouping->actions);
    grouping->memory = malloc(memory_size);
    if (grouping->actions == NULL || grouping->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&grouping->out, grouping->actions, actions_max, grouping->memory, memory_size);
    bulk_serve(bulk, BULK_PROBE, grouping_answer_probe, grouping);
    if (thread_start(&grouping->thread, "grouping", grouping_run_disk, grouping) != 0) {
        return ERR_SYSTEM;
    }
    grouping->is_begun = true;
    grouping_hurry(grouping);
    return ERR_OK;
}

void grouping_hurry(struct grouping *grouping) {
    if (grouping->is_begun && !grouping->is_stopped) {
        (void)ringing_post(grouping->ringing, grouping_take_posts, grouping); /* else with the next one */
    }
}

void grouping_stop(struct grouping *grouping) {
    if (!grouping->is_begun || grouping->is_stopped) {
        grouping->is_stopped = true;
        return;
    }
    pthread_mutex_lock(&grouping->lock);
    grouping->is_stopped = true;
    pthread_cond_signal(&grouping->work);
    pthread_mutex_unlock(&grouping->lock);
    pthread_join(grouping->thread, NULL);
}

void grouping_free(struct grouping *grouping) {
    grouping_stop(grouping);
    while (grouping->news != NULL) {
        struct grouping_news *next = grouping->news->next;
        free(grouping->news);
        grouping->news = next;
    }
    struct grouping_save *lists[] = {grouping->saves, grouping->saved};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        while (lists[i] != NULL) {
            struct grouping_save *next = lists[i]->next;
            free(lists[i]);
            lists[i] = next;
        }
    }
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        group_free(grouping->slots[i].group);
        free(grouping->slots[i].topology);
    }
    sha256_done(&grouping->sha256);
    map_done(&grouping->members);
    pthread_cond_destroy(&grouping->work);
    pthread_mutex_destroy(&grouping->lock);
    free(grouping->known);
    free(grouping->actions);
    free(grouping->memory);
    free(grouping);
}

/* ---- files ---- */

/* Once, until something else is wrong: the file is looked at every second. */
static void tell(struct grouping *grouping, const char *sentence) {
    if (strcmp(grouping->told, sentence) != 0) {
        snprintf(grouping->told, sizeof grouping->told, "%s", sentence);
        grouping_note(grouping, "group: %s", sentence);
    }
}

static bool give_news(struct grouping *grouping, const struct group_wish *wish, bool is_gone) {
    struct grouping_news *news = calloc(1, sizeof *news);
    if (news == NULL) {
        return false;
    }
    news->wish = *wish;
    news->is_gone = is_gone;
    news->has_state =
        !is_gone && group_files_read_state(grouping->config.directory, wish->name, &news->state);
    pthread_mutex_lock(&grouping->lock);
    *grouping->news_end = news;
    grouping->news_end = &news->next;
    pthread_mutex_unlock(&grouping->lock);
    return true;
}

static struct group_wish *find_known(struct grouping *grouping, const char *name) {
    for (size_t i = 0; i < grouping->known_count; i++) {
        if (strcmp(grouping->known[i].name, name) == 0) {
            return &grouping->known[i];
        }
    }
    return NULL;
}

/* True: it is new, or another than before. */
static bool look_at(struct grouping *grouping, const char *name) {
    struct err_detail detail = {0};
    struct group_wish wish;
    struct group_wish *known = find_known(grouping, name);
    memset(&wish, 0, sizeof wish);
    enum err err = group_files_read_wish(grouping->config.directory, name, &wish, &detail);
    if (err != ERR_OK) {
        tell(grouping, err_detail_text(&detail, err)); /* what was known of it still holds */
        return false;
    }
    if (known != NULL && memcmp(known, &wish, sizeof wish) == 0) {
        return false;
    }
    if (known == NULL && grouping->known_count == GROUPING_GROUPS_MAX) {
        tell(grouping, "a node is in 16 groups at most");
        return false;
    }
    if (give_news(grouping, &wish, false)) {
        known = known != NULL ? known : &grouping->known[grouping->known_count++];
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

bool grouping_beat(struct grouping *grouping) {
    char names[2 * GROUPING_GROUPS_MAX][GROUP_FILES_NAME_SIZE_MAX];
    size_t count = group_files_list(grouping->config.directory, names, 2 * (size_t)GROUPING_GROUPS_MAX);
    bool has_news = false;
    for (size_t i = grouping->known_count; i-- > 0;) {
        struct group_wish *known = &grouping->known[i];
        if (!is_named(names, count, known->name) && give_news(grouping, known, true)) {
            grouping->known_count--;
            memmove(known, &grouping->known[grouping->known_count], sizeof *known);
            has_news = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        has_news = look_at(grouping, names[i]) || has_news;
    }
    if (has_news) {
        grouping_hurry(grouping);
    }
    return grouping->known_count > 0;
}
