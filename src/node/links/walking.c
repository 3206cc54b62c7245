#include "node/links/walking.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "run/thread.h"

enum {
    POSTS_MAX = 256,
    LOAD_MAX = 4096, /* links in memory */
    WORK_SIZE_MAX = 4 << 20,
    DROPS_MAX = 256,
    MANY_COUNT = 64, /* found at one look */
    SENT_COUNT = 1 << 16,
    US_PER_S = 1000000,
};
static const uint64_t LOOK_US = 200000; /* between two looks into the frontiers, while links come */
static const uint64_t LOOK_MANY_US =
    1000000; /* while many come: nobody is idle, and more of them go together */
static const uint64_t IDLE_US = 30 * 1000000; /* and when nobody says anything */

/* ---- state ---- */

enum post_kind { POST_MESSAGE, POST_FOUND, POST_TOOK };

struct post {
    enum post_kind kind;
    uint64_t number;
    struct peer from;
    size_t size;
    uint8_t bytes[STEP_MESSAGE_SIZE_MAX];
};

struct job {
    char name[WALKING_JOB_NAME_SIZE_MAX];
    uint8_t id[LINKS_CODE_JOB_SIZE];
    struct buf work;                 /* the URLs of the links that are in memory */
    uint8_t after[ROUTE_PLACE_SIZE]; /* where reading begins */
    uint8_t last[ROUTE_PLACE_SIZE];  /* where it ended, with more behind it */
};

enum item_state { ITEM_WAITING, ITEM_IN_HAND, ITEM_DONE };

struct item {
    struct ring_id place;
    struct frontier_outgoing link;
    uint32_t job;
    enum item_state state;
};

struct walking {
    struct walking_config config;
    pthread_t thread;
    struct links_code *code;
    struct walk *walk;
    struct outbox out;

    /* The thread's. */
    struct item items[LOAD_MAX]; /* by place */
    size_t items_count;
    size_t waiting_count;
    bool is_full; /* there were more */
    uint64_t look_at_us;
    uint64_t wake_at_us;
    struct frontier_outgoing read[LOAD_MAX];
    struct frontier_outgoing drops[DROPS_MAX];
    struct links_code_link links[LINKS_CODE_LINKS_MAX];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;                  /* lock */
    bool has_news;                     /* lock */
    struct job jobs[WALKING_JOBS_MAX]; /* fixed once they are counted; work and after are the thread's */
    size_t jobs_count;                 /* lock */
    struct post *posts;                /* lock: a ring of POSTS_MAX */
    size_t posts_first;                /* lock */
    size_t posts_count;                /* lock */
    struct walk_counters counters;     /* lock: a copy */
};

enum err walking_job_id(const char *job, uint8_t ret_id[LINKS_CODE_JOB_SIZE]) {
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    enum err err = sha256_init(&sha256);
    if (err == ERR_OK) {
        sha256_digest(&sha256, bytes_of_string(job), digest);
        memcpy(ret_id, digest, LINKS_CODE_JOB_SIZE);
        sha256_done(&sha256);
    }
    return err;
}

static uint64_t now_us(const struct walking *walking) {
    return clock_monotonic_us(walking->config.clock);
}

static struct ring_id id_of(const uint8_t place[ROUTE_PLACE_SIZE]) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(place, ROUTE_PLACE_SIZE));
    return message_read_id(&reader);
}

/* ---- the links in memory ---- */

static int compare_items(const void *a, const void *b) {
    return ring_id_compare(((const struct item *)a)->place, ((const struct item *)b)->place);
}

static void load_job(struct walking *walking, uint32_t index, size_t count_max) {
    struct job *job = &walking->jobs[index];
    size_t count = 0;
    enum err err =
        walking->config.table->read(walking->config.context, job->name, job->after, (struct bytes){NULL, 0},
                                    &job->work, walking->read, count_max, &count);
    if (err == ERR_BUSY) { /* the owner was told before they were on the disk */
        pthread_mutex_lock(&walking->lock);
        walking->has_news = true;
        pthread_mutex_unlock(&walking->lock);
    }
    if (err != ERR_OK) {
        return; /* it is looked at again */
    }
    for (size_t i = 0; i < count; i++) {
        walking->items[walking->items_count++] =
            (struct item){.place = id_of(walking->read[i].place), .link = walking->read[i], .job = index};
    }
    walking->is_full |= count == count_max;
    if (count == count_max) {
        memcpy(job->last, walking->read[count - 1].place, ROUTE_PLACE_SIZE);
    }
}

/* All anew, while nothing is in hand. */
static void load(struct walking *walking) {
    pthread_mutex_lock(&walking->lock);
    size_t jobs_count = walking->jobs_count;
    walking->has_news = false;
    pthread_mutex_unlock(&walking->lock);
    walking->items_count = 0;
    walking->is_full = false;
    for (uint32_t i = 0; i < jobs_count; i++) {
        load_job(walking, i, LOAD_MAX / jobs_count);
    }
    qsort(walking->items, walking->items_count, sizeof walking->items[0], compare_items);
    walking->waiting_count = walking->items_count;
}

/* Those that are done with leave their frontiers, and reading goes on behind them. */
static void drop_done(struct walking *walking) {
    for (uint32_t i = 0; i < WALKING_JOBS_MAX && walking->items_count > walking->waiting_count; i++) {
        struct job *job = &walking->jobs[i];
        size_t count = 0;
        memcpy(job->after, job->last, ROUTE_PLACE_SIZE);
        for (size_t j = 0; j < walking->items_count; j++) {
            const struct item *item = &walking->items[j];
            if (item->state == ITEM_DONE && item->job == i) {
                walking->drops[count++] = item->link;
            }
            if (count == DROPS_MAX || (j + 1 == walking->items_count && count > 0)) {
                walking->config.table->drop(walking->config.context, job->name, walking->drops, count);
                count = 0;
            }
        }
    }
}

static size_t first_behind(const struct walking *walking, struct ring_id id) {
    size_t low = 0;
    size_t high = walking->items_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ring_id_compare(walking->items[middle].place, id) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The next that waits in (from, to], from an index on, once round. */
static struct item *next_waiting(struct walking *walking, struct ring_id from, struct ring_id to,
                                 size_t *steps) {
    size_t first = first_behind(walking, from);
    for (; *steps < walking->items_count; (*steps)++) {
        struct item *item = &walking->items[(first + *steps) % walking->items_count];
        if (!ring_id_is_owned(from, item->place, to)) {
            return NULL;
        }
        if (item->state == ITEM_WAITING) {
            return item;
        }
    }
    return NULL;
}

static bool owner_next(void *context, struct ring_id from, struct ring_id to, struct ring_id *ret_place) {
    size_t steps = 0;
    const struct item *item = next_waiting(context, from, to, &steps);
    if (item != NULL) {
        *ret_place = item->place;
    }
    return item != NULL;
}

static size_t owner_take(void *context, struct ring_id from, struct ring_id to,
                         uint8_t ret_job[LINKS_CODE_JOB_SIZE], struct links_code_link *links,
                         size_t links_max) {
    struct walking *walking = context;
    size_t count = 0;
    uint32_t job = 0;
    struct item *item;
    for (size_t steps = 0; count < links_max && (item = next_waiting(walking, from, to, &steps)) != NULL;
         steps++) {
        if (count > 0 && item->job != job) {
            continue;
        }
        job = item->job;
        item->state = ITEM_IN_HAND;
        walking->waiting_count--;
        links[count++] = (struct links_code_link){
            .url = item->link.url,
            .depth = item->link.depth,
            .priority = (uint8_t)item->link.priority,
            .owner = (uint64_t)(item - walking->items),
        };
    }
    memcpy(ret_job, walking->jobs[job].id, LINKS_CODE_JOB_SIZE);
    return count;
}

static void owner_give_back(void *context, uint64_t link, bool is_done) {
    struct walking *walking = context;
    walking->items[link].state = is_done ? ITEM_DONE : ITEM_WAITING;
    walking->waiting_count += !is_done;
}

/* Of those on the disk we see a part; how many there are in all follows from how much of the circle it
 * covers. */
static uint64_t owner_waiting(void *context) {
    const struct walking *walking = context;
    if (!walking->is_full || walking->items_count < 2) {
        return walking->waiting_count;
    }
    struct ring_id span =
        ring_id_distance(walking->items[0].place, walking->items[walking->items_count - 1].place);
    uint64_t parts = UINT64_MAX / (span.high > 0 ? span.high : 1);
    return parts > UINT64_MAX / LOAD_MAX ? UINT64_MAX : walking->waiting_count * parts;
}

static size_t owner_after(void *context, struct ring_id id, struct ring_place *out, size_t places_max) {
    const struct walking *walking = context;
    return walking->config.table->after(walking->config.context, id, out, places_max);
}

static uint64_t owner_arcs(void *context) {
    const struct walking *walking = context;
    return walking->config.table->arcs(walking->config.context);
}

static const struct walk_owner walking_owner = {
    .next = owner_next,
    .take = owner_take,
    .give_back = owner_give_back,
    .waiting = owner_waiting,
    .after = owner_after,
    .arcs = owner_arcs,
};

/* ---- what the walk says ---- */

static void on_find(struct walking *walking, struct bytes bytes) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct ring_id key = message_read_id(&reader);
    uint8_t wanted = wire_read_u8(&reader);
    ASSERT(reader.err == ERR_OK);
    walking->config.table->find(walking->config.context, number, key, wanted);
}

static void on_take(struct walking *walking, struct bytes bytes) {
    struct walk_take take;
    walk_take_read(bytes, &take);
    for (size_t i = 0; i < take.links_count; i++) {
        walk_take_next(&take, &walking->links[i]);
    }
    struct walking_delivery delivery = {
        .number = take.number,
        .from.address = take.from,
        .is_primary = take.is_primary,
        .job = take.job,
        .links = walking->links,
        .count = take.links_count,
    };
    memcpy(delivery.from.key, take.from_key, PEER_KEY_SIZE);
    walking->config.table->deliver(walking->config.context, &delivery);
}

static void on_notice(struct walking *walking, const struct action *action) {
    switch ((enum walk_notice)action->code) {
    case WALK_FIND:
        on_find(walking, action->bytes);
        break;
    case WALK_TAKE:
        on_take(walking, action->bytes);
        break;
    case WALK_BLAMED:
        walking->config.table->blame(walking->config.context, action->bytes.data,
                                     bytes_skip(action->bytes, PEER_KEY_SIZE));
        break;
    }
}

static void step(struct walking *walking, struct event *event) {
    struct outbox *out = &walking->out;
    event->now_us = now_us(walking);
    outbox_clear(out);
    walk_step(walking->walk, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        if (action->kind == ACTION_SEND) {
            struct peer to = {.address = action->to};
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            walking->config.table->send(walking->config.context, &to, action->bytes);
        } else if (action->kind == ACTION_NOTICE) {
            on_notice(walking, action);
        }
    }
    walking->wake_at_us = out->wake_at_us;
}

/* ---- the thread ---- */

static void take_post(struct walking *walking, const struct post *post) {
    struct event event = {.kind = EVENT_COMMAND, .number = post->number, .from = post->from.address};
    event.bytes = bytes_of(post->bytes, post->size);
    memcpy(event.from_key, post->from.key, PEER_KEY_SIZE);
    if (post->kind == POST_MESSAGE) {
        event.kind = EVENT_MESSAGE;
    } else {
        event.code = post->kind == POST_FOUND ? WALK_FOUND : WALK_TOOK;
    }
    step(walking, &event);
}

static bool next_post(struct walking *walking, struct post *ret_post) {
    pthread_mutex_lock(&walking->lock);
    bool is_there = walking->posts_count > 0 && !walking->is_stopping;
    if (is_there) {
        *ret_post = walking->posts[walking->posts_first];
        walking->posts_first = (walking->posts_first + 1) % POSTS_MAX;
        walking->posts_count--;
    }
    walking->counters = *walk_counters(walking->walk);
    pthread_mutex_unlock(&walking->lock);
    return is_there;
}

/* Between rounds: what was taken leaves the disk, what is new comes from there. */
static void look(struct walking *walking) {
    uint64_t now = now_us(walking);
    pthread_mutex_lock(&walking->lock);
    bool has_news = walking->has_news;
    pthread_mutex_unlock(&walking->lock);
    bool has_done = walking->items_count > walking->waiting_count;
    bool is_due = now >= walking->look_at_us && (has_news || has_done);
    if (!walk_is_idle(walking->walk) || (!is_due && now < walking->look_at_us + IDLE_US)) {
        return;
    }
    drop_done(walking);
    load(walking);
    bool is_plenty = walking->items_count >= MANY_COUNT && !walking->is_full;
    walking->look_at_us = now + (is_plenty ? LOOK_MANY_US : LOOK_US);
    step(walking, &(struct event){.kind = EVENT_COMMAND, .code = WALK_WAITING});
}

/* Until somebody has something, or it is time. */
static bool await(struct walking *walking) {
    uint64_t now = now_us(walking);
    pthread_mutex_lock(&walking->lock);
    uint64_t at_us = now + IDLE_US;
    bool is_looking = walk_is_idle(walking->walk) && (walking->has_news || walking->is_full ||
                                                      walking->items_count > walking->waiting_count);
    at_us = is_looking && walking->look_at_us < at_us ? walking->look_at_us : at_us;
    at_us = walking->wake_at_us < at_us ? walking->wake_at_us : at_us;
    if (walking->posts_count == 0 && !walking->is_stopping && at_us > now) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t wait_us = at_us - now;
        until.tv_sec += (time_t)(wait_us / US_PER_S);
        until.tv_nsec += (long)(wait_us % US_PER_S) * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&walking->changed, &walking->lock, &until);
    }
    bool is_stopping = walking->is_stopping;
    pthread_mutex_unlock(&walking->lock);
    return !is_stopping;
}

static void *run(void *context) {
    struct walking *walking = context;
    struct post post;
    step(walking, &(struct event){.kind = EVENT_START});
    while (await(walking)) {
        while (next_post(walking, &post)) {
            take_post(walking, &post);
        }
        if (now_us(walking) >= walking->wake_at_us) {
            step(walking, &(struct event){.kind = EVENT_WAKE});
        }
        look(walking);
    }
    drop_done(walking);
    return NULL;
}

/* ---- any thread ---- */

static struct post *new_post(struct walking *walking, enum post_kind kind, uint64_t number) {
    if (walking->posts_count == POSTS_MAX) {
        return NULL; /* lost, as on the way */
    }
    struct post *post = &walking->posts[(walking->posts_first + walking->posts_count++) % POSTS_MAX];
    post->kind = kind;
    post->number = number;
    post->from = (struct peer){0};
    post->size = 0;
    pthread_cond_signal(&walking->changed);
    return post;
}

void walking_receive(struct walking *walking, const struct peer *from, struct bytes message) {
    ASSERT(message.size <= STEP_MESSAGE_SIZE_MAX);
    pthread_mutex_lock(&walking->lock);
    struct post *post = new_post(walking, POST_MESSAGE, 0);
    if (post != NULL) {
        post->from = *from;
        post->size = message.size;
        memcpy(post->bytes, message.data, message.size);
    }
    pthread_mutex_unlock(&walking->lock);
}

void walking_took(struct walking *walking, uint64_t number, enum walk_status status, size_t accepted_count) {
    pthread_mutex_lock(&walking->lock);
    struct post *post = new_post(walking, POST_TOOK, number);
    if (post != NULL) {
        post->size = walk_write_took(status, (uint16_t)accepted_count, post->bytes).size;
    }
    pthread_mutex_unlock(&walking->lock);
}

void walking_found(struct walking *walking, uint64_t number, const struct ring_place *places, size_t count) {
    pthread_mutex_lock(&walking->lock);
    struct post *post = new_post(walking, POST_FOUND, number);
    if (post != NULL) {
        post->size = walk_write_found(places, count, post->bytes).size;
    }
    pthread_mutex_unlock(&walking->lock);
}

/* NULL: too many, or a name that is too long. */
static struct job *job_of(struct walking *walking, const char *name) {
    for (size_t i = 0; i < walking->jobs_count; i++) {
        if (strcmp(walking->jobs[i].name, name) == 0) {
            return &walking->jobs[i];
        }
    }
    struct job *job = &walking->jobs[walking->jobs_count];
    if (walking->jobs_count == WALKING_JOBS_MAX || strlen(name) >= sizeof job->name ||
        walking_job_id(name, job->id) != ERR_OK) {
        return NULL;
    }
    memcpy(job->name, name, strlen(name) + 1);
    buf_init(&job->work, WORK_SIZE_MAX);
    walking->jobs_count++;
    return job;
}

void walking_outgoing(struct walking *walking, const char *name) {
    pthread_mutex_lock(&walking->lock);
    if (job_of(walking, name) != NULL && !walking->has_news) {
        walking->has_news = true;
        pthread_cond_signal(&walking->changed);
    }
    pthread_mutex_unlock(&walking->lock);
}

struct walk_counters walking_counters(struct walking *walking) {
    pthread_mutex_lock(&walking->lock);
    struct walk_counters counters = walking->counters;
    pthread_mutex_unlock(&walking->lock);
    return counters;
}

/* ---- life ---- */

static void dispose(struct walking *walking) {
    for (size_t i = 0; i < walking->jobs_count; i++) {
        buf_done(&walking->jobs[i].work);
    }
    if (walking->walk != NULL) {
        walk_free(walking->walk);
    }
    links_code_free(walking->code);
    pthread_cond_destroy(&walking->changed);
    pthread_mutex_destroy(&walking->lock);
    free(walking->out.actions);
    free(walking->out.memory);
    free(walking->posts);
    free(walking);
}

static enum err prepare(struct walking *walking) {
    struct walk_config config = {
        .self = walking->config.self,
        .holders_count = walking->config.holders_count,
        .flush_us = walking->config.flush_us,
        .sent_count = SENT_COUNT,
        .seed = walking->config.seed,
        .code = walking->code = links_code_new(),
        .owner = &walking_owner,
        .context = walking,
    };
    size_t actions_max = walk_actions_max(&config);
    size_t memory_size = walk_memory_size(&config);
    struct action *actions = calloc(actions_max, sizeof *actions);
    uint8_t *memory = malloc(memory_size);
    outbox_init(&walking->out, actions, actions_max, memory, memory_size);
    walking->posts = calloc(POSTS_MAX, sizeof *walking->posts);
    if (config.code == NULL || actions == NULL || memory == NULL || walking->posts == NULL) {
        return ERR_MEMORY;
    }
    return walk_new(&config, &walking->walk);
}

enum err walking_start(const struct walking_config *config, struct walking **ret_walking) {
    struct walking *walking = calloc(1, sizeof *walking);
    pthread_condattr_t attributes;
    if (walking == NULL) {
        return ERR_MEMORY;
    }
    walking->config = *config;
    walking->config.clock = config->clock != NULL ? config->clock : &clock_system;
    pthread_mutex_init(&walking->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&walking->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    enum err err = prepare(walking);
    if (err == ERR_OK && thread_start(&walking->thread, "walking", run, walking) != 0) {
        err = ERR_SYSTEM;
    }
    if (err != ERR_OK) {
        dispose(walking);
        return err;
    }
    *ret_walking = walking;
    return ERR_OK;
}

void walking_stop(struct walking *walking) {
    if (walking == NULL) {
        return;
    }
    pthread_mutex_lock(&walking->lock);
    walking->is_stopping = true;
    pthread_cond_signal(&walking->changed);
    pthread_mutex_unlock(&walking->lock);
    pthread_join(walking->thread, NULL);
    dispose(walking);
}
