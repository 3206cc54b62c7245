#include "node/group/group_driver.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/wire.h"
#include "node/group/group_driver_state.h"
#include "node/rpc/peer_rpc.h"
#include "node/transport/transport.h"

static void group_driver_take_posts(void *context);

/* The loop shall take what others have put down for it. */
static void group_driver_hurry(struct group_driver *driver) {
    if (driver->is_begun && !driver->is_stopped) {
        (void)transport_post(driver->transport, group_driver_take_posts, driver); /* else with the next one */
    }
}

/* ---- the task that writes: a topology is passed on when it is durable, and no loop waits for that ---- */

enum { RETRY_US = 1000000 };

static void group_put(struct group_driver *driver, struct group_driver_save *save) {
    pthread_mutex_lock(&driver->lock);
    *driver->saves_end = save;
    driver->saves_end = &save->next;
    pthread_mutex_unlock(&driver->lock);
    task_poke(&driver->disk);
}

static struct group_driver_save *group_make(const struct group_driver_slot *slot) {
    struct group_driver_save *save = calloc(1, sizeof *save);
    if (save != NULL) {
        memcpy(save->name, slot->wish.name, sizeof save->name);
        save->life = slot->life;
    }
    return save;
}

/* Without memory it is not saved, and so not passed on: as a disk that does not answer. */
void group_driver_save(struct group_driver *driver, const struct group_driver_slot *slot,
                       const uint64_t *number, struct bytes document) {
    struct group_driver_save *save = group_make(slot);
    ASSERT(document.size <= GROUP_FILES_DOCUMENT_SIZE_MAX);
    if (save == NULL) {
        return;
    }
    save->has_number = number != NULL;
    save->number = number != NULL ? *number : 0;
    save->state.rules = slot->rules;
    save->state.document_size = document.size;
    if (document.size > 0) {
        memcpy(save->state.document, document.data, document.size);
    }
    group_put(driver, save);
}

static void group_driver_save_removal(struct group_driver *driver, const struct group_driver_slot *slot) {
    struct group_driver_save *save = group_make(slot);
    if (save != NULL) {
        save->is_removal = true;
        group_put(driver, save);
    }
}

static enum err write_one(struct group_driver *driver, const struct group_driver_save *save) {
    struct err_detail detail = {0};
    const char *directory = driver->config.directory;
    enum err err = save->is_removal ? group_files_remove(directory, save->name, &detail)
                                    : group_files_write_state(directory, save->name, &save->state, &detail);
    if (err != ERR_OK) {
        group_driver_note(driver, "group \"%s\": %s", save->name, err_detail_text(&detail, err));
    }
    return err;
}

static struct group_driver_save *first_save(struct group_driver *driver) {
    pthread_mutex_lock(&driver->lock);
    struct group_driver_save *save = driver->saves;
    pthread_mutex_unlock(&driver->lock);
    return save;
}

static void group_finish(struct group_driver *driver, struct group_driver_save *save) {
    pthread_mutex_lock(&driver->lock);
    driver->saves = save->next;
    if (driver->saves == NULL) {
        driver->saves_end = &driver->saves;
    }
    save->next = driver->saved;
    driver->saved = save;
    pthread_mutex_unlock(&driver->lock);
    group_driver_hurry(driver);
}

/* In order. What cannot be written is tried again: nothing later may overtake it. */
static uint64_t group_driver_run_disk(void *context) {
    struct group_driver *driver = context;
    struct group_driver_save *save;
    while ((save = first_save(driver)) != NULL) {
        if (write_one(driver, save) != ERR_OK) {
            return RETRY_US;
        }
        group_finish(driver, save);
    }
    return TASK_FOR_EVER_US;
}

/* ---- probes ---- */

/*
 * Bandwidth, by random bytes that no link compresses.
 *
 * The answer of PEER_RPC_PROBE comes whole, so the receiver does not see its first byte. Instead two empty
 * probes go first: one opens the stream, the second measures the round trip on it; then the full one. Its
 * time less the round trip is that from the first to the last byte. On a fast path the difference is mostly
 * noise: at least a quarter of the whole time counts. Slow start is part of it, as in the paper's Table 1:
 * the larger the probe, the nearer it comes to what a long transfer gets. */

enum {
    QUESTION_SIZE = 4,
    TIMEOUT_MS = 60000,
    SHARE_MIN = 4,
    UNIT_SIZE = 4 << 10, /* a token of the bucket */
};
static const struct bucket_rate answers_rate = {.per_second = 1024, .burst = 4096}; /* 4 MiB/s, 16 MiB */

/* ---- asking ---- */

static void group_on_answer(void *context, enum err err, struct bytes answer);

static void group_ask(struct group_driver_probe *probe) {
    struct group_driver *driver = probe->driver;
    uint8_t question[QUESTION_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, question, sizeof question);
    wire_write_u32(&writer, probe->state == GROUP_DRIVER_PROBE_PROBING ? probe->size : 0);
    probe->asked_at_us = group_driver_now_us(driver);
    if (peer_rpc_call(driver->peer_rpc, &probe->peer, PEER_RPC_PROBE, bytes_of(question, sizeof question),
                      TIMEOUT_MS, group_on_answer, probe) != ERR_OK) {
        probe->state = GROUP_DRIVER_PROBE_FREE;
    }
}

static void group_on_answer(void *context, enum err err, struct bytes answer) {
    struct group_driver_probe *probe = context;
    uint64_t took_us = group_driver_now_us(probe->driver) - probe->asked_at_us;
    uint32_t wanted_size = probe->state == GROUP_DRIVER_PROBE_PROBING ? probe->size : 0;
    if (err != ERR_OK || answer.size != wanted_size || probe->driver->is_stopped) {
        probe->state = GROUP_DRIVER_PROBE_FREE;
        return;
    }
    enum group_driver_probe_state state = probe->state;
    switch (state) {
    case GROUP_DRIVER_PROBE_OPENING:
        probe->state = GROUP_DRIVER_PROBE_TIMING;
        group_ask(probe);
        break;
    case GROUP_DRIVER_PROBE_TIMING:
        probe->round_trip_us = took_us;
        probe->state = GROUP_DRIVER_PROBE_PROBING;
        group_ask(probe);
        break;
    default: {
        uint64_t net_us = took_us > probe->round_trip_us ? took_us - probe->round_trip_us : 0;
        uint64_t least_us = took_us / SHARE_MIN + 1;
        group_driver_learned(probe->driver, &probe->peer, probe->size, net_us > least_us ? net_us : least_us);
        probe->state = GROUP_DRIVER_PROBE_FREE;
    }
    }
}

static void group_begin(void *context) {
    group_ask(context);
}

void group_driver_probe(struct group_driver *driver, const struct peer *peer, uint32_t size) {
    for (size_t i = 0; i < GROUP_DRIVER_PROBES_MAX; i++) {
        struct group_driver_probe *probe = &driver->probes[i];
        if (probe->state == GROUP_DRIVER_PROBE_FREE) {
            probe->peer = *peer;
            probe->size = size < PEER_RPC_PIECE_SIZE_MAX ? size : PEER_RPC_PIECE_SIZE_MAX;
            probe->state = GROUP_DRIVER_PROBE_OPENING;
            if (peer_rpc_post(driver->peer_rpc, group_begin, probe) != ERR_OK) {
                probe->state = GROUP_DRIVER_PROBE_FREE;
            }
            return;
        }
    }
    /* Too many are under way: the peer is measured another time. */
}

/* ---- answering ---- */

static enum err group_driver_answer_probe(void *context, const struct peer *from, struct bytes question,
                                          struct buf *answer, struct err_detail *detail) {
    struct group_driver *driver = context;
    struct wire_reader reader;
    (void)from;
    wire_reader_init(&reader, question);
    uint32_t size = wire_read_u32(&reader);
    if (wire_reader_finish(&reader, NULL) != ERR_OK || size > PEER_RPC_PIECE_SIZE_MAX) {
        return err_set(detail, ERR_INVALID, "no size that a probe can have");
    }
    uint64_t now_us = group_driver_now_us(driver);
    for (uint32_t units = (size + UNIT_SIZE - 1) / UNIT_SIZE; units > 0; units--) {
        if (!bucket_take(&driver->probes_bucket, answers_rate, now_us)) {
            return err_set(detail, ERR_BUSY, "too many probes");
        }
    }
    enum err err = buf_reserve(answer, size);
    if (err == ERR_OK && size > 0) {
        randombytes_buf(answer->data + answer->size, size);
        answer->size += size;
    }
    return err;
}

/* ---- what people want ---- */

static struct group_driver_slot *find_free(struct group_driver *driver) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        if (!driver->slots[i].is_used) {
            return &driver->slots[i];
        }
    }
    return NULL;
}

/* A node that asked is named with the address it asked from; for others the key is enough. */
static struct peer peer_of(const struct group_driver *driver, const struct group_driver_slot *slot,
                           const uint8_t key[PEER_KEY_SIZE]) {
    struct peer peer = {.address = driver->self.address};
    for (size_t i = 0; i < slot->asked_count; i++) {
        if (memcmp(slot->asked[i].peer.key, key, PEER_KEY_SIZE) == 0) {
            peer.address = slot->asked[i].peer.address;
        }
    }
    memcpy(peer.key, key, PEER_KEY_SIZE);
    return peer;
}

static void forget_asked(struct group_driver_slot *slot, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = slot->asked_count; i-- > 0;) {
        if (memcmp(slot->asked[i].peer.key, key, PEER_KEY_SIZE) == 0) {
            slot->asked[i] = slot->asked[--slot->asked_count];
        }
    }
}

static void command(struct group_driver *driver, struct group_driver_slot *slot, enum group_command code,
                    const struct group_keys_list *keys, const struct group_keys_list *before) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (size_t i = 0; i < keys->count; i++) {
        if (before != NULL && group_keys_list_has(before, keys->keys[i])) {
            continue;
        }
        struct peer peer = peer_of(driver, slot, keys->keys[i]);
        struct event event = {.kind = EVENT_COMMAND, .code = code};
        event.bytes = group_write_peer(&peer, bytes_of(NULL, 0), memory);
        forget_asked(slot, keys->keys[i]);
        group_driver_step(driver, slot, &event);
    }
}

void group_driver_remove(struct group_driver *driver, struct group_driver_slot *slot) {
    if (!slot->is_removed) {
        slot->is_removed = true;
        group_driver_save_removal(driver, slot);
        group_driver_note(driver, "group \"%s\": left", slot->wish.name);
    }
}

static void group_leave(struct group_driver *driver, struct group_driver_slot *slot) {
    slot->ask.due_us = STEP_NEVER_US;
    if (slot->group == NULL || group_mode(slot->group) == GROUP_FIXED) {
        group_driver_remove(driver, slot);
        return;
    }
    group_driver_step(driver, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_LEAVE});
}

/* The founder's owner has changed them. Where another is master meanwhile, the founder takes over: others
 * know the rules that they were told when they joined, and a founder is believed. */
static void take_rules(struct group_driver *driver, struct group_driver_slot *slot) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    const struct group_rules *rules = &slot->wish.rules;
    bool is_founder = memcmp(rules->founder, driver->self.key, PEER_KEY_SIZE) == 0;
    bool is_same = rules->admission == slot->rules.admission && rules->generator == slot->rules.generator &&
                   rules->k == slot->rules.k;
    if (!is_founder || is_same || slot->group == NULL || group_mode(slot->group) == GROUP_FIXED) {
        return;
    }
    slot->rules = *rules;
    struct event event = {.kind = EVENT_COMMAND, .code = GROUP_RULES};
    event.bytes = group_write_rules(rules->admission == GROUP_ADMISSION_OPEN,
                                    (enum topology_kind)rules->generator, rules->k, memory);
    if (!group_is_master(slot->group)) {
        group_driver_step(driver, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_CLAIM});
    }
    group_driver_step(driver, slot, &event);
    group_driver_note(driver, "group \"%s\": %s, %s, k = %u from now on", slot->wish.name,
                      group_files_admissions[rules->admission], group_files_generators[rules->generator],
                      rules->k);
}

static void take_one(struct group_driver *driver, const struct group_driver_news *news) {
    struct group_driver_slot *slot = group_driver_find(driver, bytes_of_string(news->wish.name));
    if (news->is_gone) {
        if (slot != NULL) {
            group_driver_close_slot(driver, slot);
        }
        return;
    }
    struct group_wish before = {0};
    if (slot == NULL) {
        slot = find_free(driver);
        ASSERT(slot != NULL); /* the beat counts them */
        group_driver_open_slot(driver, slot, news);
    } else {
        before = slot->wish;
        slot->wish = news->wish;
        take_rules(driver, slot);
    }
    if (slot->group != NULL && group_mode(slot->group) != GROUP_FIXED) {
        command(driver, slot, GROUP_APPROVE, &slot->wish.approved, &before.approved);
        command(driver, slot, GROUP_REFUSE, &slot->wish.refused, &before.refused);
    }
    if (slot->wish.is_leaving && !before.is_leaving) {
        group_leave(driver, slot);
    }
    group_driver_show(driver, slot, true);
}

/* ---- what was transferred ---- */

/* The address is perhaps that of a stream; the topology knows the real one. */
static const struct peer *find_member(const struct group *group, const struct peer *peer) {
    const struct topology *topology = group_topology(group);
    for (uint32_t i = 0; topology != NULL && i < topology->members_count; i++) {
        if (memcmp(topology->members[i].key, peer->key, PEER_KEY_SIZE) == 0) {
            return &topology->members[i];
        }
    }
    return group_mode(group) == GROUP_FIXED ? peer : NULL;
}

static void take_learned(struct group_driver *driver, const struct group_driver_learned *learned) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &driver->slots[i];
        bool has_group = slot->is_used && slot->group != NULL;
        const struct peer *member = has_group ? find_member(slot->group, &learned->peer) : NULL;
        if (member != NULL) {
            struct event event = {.kind = EVENT_COMMAND, .code = GROUP_PROBED};
            event.bytes = group_write_transfer(member, learned->size, learned->duration_us, memory);
            group_driver_step(driver, slot, &event);
        }
    }
}

void group_driver_learned(struct group_driver *driver, const struct peer *peer, uint64_t size,
                          uint64_t duration_us) {
    if (size < ESTIMATE_TRANSFER_SIZE_MIN || !driver->is_begun || driver->is_stopped) {
        return;
    }
    pthread_mutex_lock(&driver->lock);
    if (driver->learned_count < GROUP_DRIVER_LEARNED_MAX) {
        driver->learned[driver->learned_count++] =
            (struct group_driver_learned){.peer = *peer, .size = size, .duration_us = duration_us};
    }
    pthread_mutex_unlock(&driver->lock);
    group_driver_hurry(driver);
}

/* ---- what is durable ---- */

static void take_saved(struct group_driver *driver, const struct group_driver_save *save) {
    struct group_driver_slot *slot = group_driver_find(driver, bytes_of_string(save->name));
    if (slot != NULL && slot->life == save->life && slot->group != NULL && save->has_number) {
        struct event event = {.kind = EVENT_SAVED, .code = GROUP_SLOT, .number = save->number};
        group_driver_step(driver, slot, &event);
    }
}

static void group_driver_take_posts(void *context) {
    struct group_driver *driver = context;
    struct group_driver_learned learned[GROUP_DRIVER_LEARNED_MAX];
    if (driver->is_stopped) {
        return;
    }
    pthread_mutex_lock(&driver->lock);
    struct group_driver_news *news = driver->news;
    struct group_driver_save *saved = driver->saved;
    size_t learned_count = driver->learned_count;
    memcpy(learned, driver->learned, learned_count * sizeof *learned);
    driver->news = NULL;
    driver->news_end = &driver->news;
    driver->saved = NULL;
    driver->learned_count = 0;
    pthread_mutex_unlock(&driver->lock);
    while (saved != NULL) { /* the order does not matter: only the newest number counts */
        struct group_driver_save *next = saved->next;
        take_saved(driver, saved);
        free(saved);
        saved = next;
    }
    while (news != NULL) {
        struct group_driver_news *next = news->next;
        take_one(driver, news);
        free(news);
        news = next;
    }
    for (size_t i = 0; i < learned_count; i++) {
        take_learned(driver, &learned[i]);
    }
    group_driver_set_timer(driver);
}

enum { NOTE_SIZE_MAX = 512 };

void group_driver_note(const struct group_driver *driver, const char *format, ...) {
    char sentence[NOTE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (driver->config.note != NULL) {
        driver->config.note(driver->config.context, sentence);
    }
}

/* ---- making ---- */

struct group_driver *group_driver_new(const struct group_driver_config *config) {
    uint64_t seed;
    struct group_driver *driver = calloc(1, sizeof *driver);
    struct group_wish *known = calloc(GROUP_DRIVER_GROUPS_MAX, sizeof *known);
    if (driver == NULL || known == NULL || sha256_init(&driver->sha256) != ERR_OK) {
        free(driver);
        free(known);
        return NULL;
    }
    driver->config = *config;
    driver->config.clock = config->clock != NULL ? config->clock : &clock_system;
    driver->known = known;
    driver->news_end = &driver->news;
    driver->saves_end = &driver->saves;
    randombytes_buf(&seed, sizeof seed);
    map_init(&driver->members, PEER_KEY_SIZE, 1, GROUP_DRIVER_MEMBERS_MAX, seed);
    pthread_mutex_init(&driver->lock, NULL);
    for (size_t i = 0; i < GROUP_DRIVER_PROBES_MAX; i++) {
        driver->probes[i].driver = driver;
    }
    return driver;
}

enum err group_driver_begin(struct group_driver *driver, struct transport *transport,
                            struct peer_rpc *peer_rpc, const struct peer *self) {
    struct group_config config = {0};
    size_t actions_max = group_actions_max(&config);
    size_t memory_size = group_memory_size(&config);
    ASSERT(!driver->is_begun);
    driver->transport = transport;
    driver->peer_rpc = peer_rpc;
    driver->self = *self;
    driver->actions = calloc(actions_max, sizeof *driver->actions);
    driver->memory = malloc(memory_size);
    if (driver->actions == NULL || driver->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&driver->out, driver->actions, actions_max, driver->memory, memory_size);
    peer_rpc_serve(peer_rpc, PEER_RPC_PROBE, group_driver_answer_probe, driver);
    enum err err = task_start(&driver->disk, "group-disk", PRIORITY_USUAL, group_driver_run_disk, driver);
    if (err != ERR_OK) {
        return err;
    }
    driver->is_begun = true;
    group_driver_hurry(driver);
    return ERR_OK;
}

void group_driver_stop(struct group_driver *driver) {
    bool is_first = driver->is_begun && !driver->is_stopped;
    driver->is_stopped = true;
    task_stop(&driver->disk);
    if (is_first) {
        (void)group_driver_run_disk(driver); /* what came meanwhile */
    }
}

void group_driver_free(struct group_driver *driver) {
    group_driver_stop(driver);
    while (driver->news != NULL) {
        struct group_driver_news *next = driver->news->next;
        free(driver->news);
        driver->news = next;
    }
    struct group_driver_save *lists[] = {driver->saves, driver->saved};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        while (lists[i] != NULL) {
            struct group_driver_save *next = lists[i]->next;
            free(lists[i]);
            lists[i] = next;
        }
    }
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        group_free(driver->slots[i].group);
        free(driver->slots[i].topology);
    }
    sha256_done(&driver->sha256);
    map_done(&driver->members);
    pthread_mutex_destroy(&driver->lock);
    free(driver->known);
    free(driver->actions);
    free(driver->memory);
    free(driver);
}

/* ---- files ---- */

/* Once, until something else is wrong: the file is looked at every second. */
static void group_tell(struct group_driver *driver, const char *sentence) {
    if (strcmp(driver->told, sentence) != 0) {
        snprintf(driver->told, sizeof driver->told, "%s", sentence);
        group_driver_note(driver, "group: %s", sentence);
    }
}

static bool give_news(struct group_driver *driver, const struct group_wish *wish, bool is_gone) {
    struct group_driver_news *news = calloc(1, sizeof *news);
    if (news == NULL) {
        return false;
    }
    news->wish = *wish;
    news->is_gone = is_gone;
    news->has_state = !is_gone && group_files_read_state(driver->config.directory, wish->name, &news->state);
    pthread_mutex_lock(&driver->lock);
    *driver->news_end = news;
    driver->news_end = &news->next;
    pthread_mutex_unlock(&driver->lock);
    return true;
}

static struct group_wish *find_known(struct group_driver *driver, const char *name) {
    for (size_t i = 0; i < driver->known_count; i++) {
        if (strcmp(driver->known[i].name, name) == 0) {
            return &driver->known[i];
        }
    }
    return NULL;
}

/* True: it is new, or another than before. */
static bool look_at(struct group_driver *driver, const char *name) {
    struct err_detail detail = {0};
    struct group_wish wish;
    struct group_wish *known = find_known(driver, name);
    memset(&wish, 0, sizeof wish);
    enum err err = group_files_read_wish(driver->config.directory, name, &wish, &detail);
    if (err != ERR_OK) {
        group_tell(driver, err_detail_text(&detail, err)); /* what was known of it still holds */
        return false;
    }
    if (known != NULL && memcmp(known, &wish, sizeof wish) == 0) {
        return false;
    }
    if (known == NULL && driver->known_count == GROUP_DRIVER_GROUPS_MAX) {
        group_tell(driver, "a node is in 16 groups at most");
        return false;
    }
    if (give_news(driver, &wish, false)) {
        known = known != NULL ? known : &driver->known[driver->known_count++];
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

bool group_driver_beat(struct group_driver *driver) {
    char names[2 * GROUP_DRIVER_GROUPS_MAX][GROUP_FILES_NAME_SIZE_MAX];
    size_t count = group_files_list(driver->config.directory, names, 2 * (size_t)GROUP_DRIVER_GROUPS_MAX);
    bool has_news = false;
    for (size_t i = driver->known_count; i-- > 0;) {
        struct group_wish *known = &driver->known[i];
        if (!is_named(names, count, known->name) && give_news(driver, known, true)) {
            driver->known_count--;
            memmove(known, &driver->known[driver->known_count], sizeof *known);
            has_news = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        has_news = look_at(driver, names[i]) || has_news;
    }
    if (has_news) {
        group_driver_hurry(driver);
    }
    return driver->known_count > 0;
}
