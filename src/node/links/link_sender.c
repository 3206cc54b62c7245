#include "node/links/link_sender.h"

#include <pthread.h>
#include <stdlib.h>

#include "run/task.h"

enum {
    POSTS_MAX = 256,
    LOAD_MAX = 4096, /* links in memory */
    WORK_SIZE_MAX = 4 << 20,
    DROPS_MAX = 256,
    MANY_COUNT = 64, /* found at one look */
    SENT_COUNT = 1 << 16,
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
    char name[LINK_SENDER_JOB_NAME_SIZE_MAX];
    uint8_t id[LINKS_CODE_JOB_SIZE];
    struct buf work;                    /* the URLs of the links that are in memory */
    uint8_t after[ROUTE_POSITION_SIZE]; /* where reading begins */
    uint8_t last[ROUTE_POSITION_SIZE];  /* where it ended, with more behind it */
};

enum item_state { ITEM_WAITING, ITEM_IN_HAND, ITEM_DONE };

struct item {
    struct ring_id place;
    struct frontier_outgoing link;
    uint32_t job;
    enum item_state state;
};

struct link_sender {
    struct link_sender_config config;
    struct task task;
    bool has_begun;
    struct links_code *code;
    struct link_relay *link_relay;
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
    bool has_news;                         /* lock */
    struct job jobs[LINK_SENDER_JOBS_MAX]; /* fixed once they are counted; work and after are the thread's */
    size_t jobs_count;                     /* lock */
    struct post *posts;                    /* lock: a ring of POSTS_MAX */
    size_t posts_first;                    /* lock */
    size_t posts_count;                    /* lock */
    struct link_relay_counters counters;   /* lock: a copy */
};

enum err link_sender_job_id(const char *job, uint8_t ret_id[LINKS_CODE_JOB_SIZE]) {
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

static uint64_t sender_now_us(const struct link_sender *link_sender) {
    return clock_monotonic_us(link_sender->config.clock);
}

static struct ring_id id_of(const uint8_t place[ROUTE_POSITION_SIZE]) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(place, ROUTE_POSITION_SIZE));
    return message_read_id(&reader);
}

/* ---- the links in memory ---- */

static int compare_items(const void *a, const void *b) {
    return ring_id_compare(((const struct item *)a)->place, ((const struct item *)b)->place);
}

static void load_job(struct link_sender *link_sender, uint32_t index, size_t count_max) {
    struct job *job = &link_sender->jobs[index];
    size_t count = 0;
    enum err err = link_sender->config.table->read(link_sender->config.context, job->name, job->after,
                                                   (struct bytes){NULL, 0}, &job->work, link_sender->read,
                                                   count_max, &count);
    if (err == ERR_BUSY) { /* the owner was told before they were on the disk */
        pthread_mutex_lock(&link_sender->lock);
        link_sender->has_news = true;
        pthread_mutex_unlock(&link_sender->lock);
    }
    if (err != ERR_OK) {
        return; /* it is looked at again */
    }
    for (size_t i = 0; i < count; i++) {
        link_sender->items[link_sender->items_count++] = (struct item){
            .place = id_of(link_sender->read[i].place), .link = link_sender->read[i], .job = index};
    }
    link_sender->is_full |= count == count_max;
    if (count == count_max) {
        memcpy(job->last, link_sender->read[count - 1].place, ROUTE_POSITION_SIZE);
    }
}

/* All anew, while nothing is in hand. */
static void sender_load(struct link_sender *link_sender) {
    pthread_mutex_lock(&link_sender->lock);
    size_t jobs_count = link_sender->jobs_count;
    link_sender->has_news = false;
    pthread_mutex_unlock(&link_sender->lock);
    link_sender->items_count = 0;
    link_sender->is_full = false;
    for (uint32_t i = 0; i < jobs_count; i++) {
        load_job(link_sender, i, LOAD_MAX / jobs_count);
    }
    qsort(link_sender->items, link_sender->items_count, sizeof link_sender->items[0], compare_items);
    link_sender->waiting_count = link_sender->items_count;
}

/* Those that are done with leave their frontiers, and reading goes on behind them. */
static void drop_done(struct link_sender *link_sender) {
    for (uint32_t i = 0; i < LINK_SENDER_JOBS_MAX && link_sender->items_count > link_sender->waiting_count;
         i++) {
        struct job *job = &link_sender->jobs[i];
        size_t count = 0;
        memcpy(job->after, job->last, ROUTE_POSITION_SIZE);
        for (size_t j = 0; j < link_sender->items_count; j++) {
            const struct item *item = &link_sender->items[j];
            if (item->state == ITEM_DONE && item->job == i) {
                link_sender->drops[count++] = item->link;
            }
            if (count == DROPS_MAX || (j + 1 == link_sender->items_count && count > 0)) {
                link_sender->config.table->drop(link_sender->config.context, job->name, link_sender->drops,
                                                count);
                count = 0;
            }
        }
    }
}

static size_t first_behind(const struct link_sender *link_sender, struct ring_id id) {
    size_t low = 0;
    size_t high = link_sender->items_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ring_id_compare(link_sender->items[middle].place, id) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The next that waits in (from, to], from an index on, once round. */
static struct item *next_waiting(struct link_sender *link_sender, struct ring_id from, struct ring_id to,
                                 size_t *steps) {
    size_t first = first_behind(link_sender, from);
    for (; *steps < link_sender->items_count; (*steps)++) {
        struct item *item = &link_sender->items[(first + *steps) % link_sender->items_count];
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
    struct link_sender *link_sender = context;
    size_t count = 0;
    uint32_t job = 0;
    struct item *item;
    for (size_t steps = 0; count < links_max && (item = next_waiting(link_sender, from, to, &steps)) != NULL;
         steps++) {
        if (count > 0 && item->job != job) {
            continue;
        }
        job = item->job;
        item->state = ITEM_IN_HAND;
        link_sender->waiting_count--;
        links[count++] = (struct links_code_link){
            .url = item->link.url,
            .depth = item->link.depth,
            .priority = (uint8_t)item->link.priority,
            .owner = (uint64_t)(item - link_sender->items),
        };
    }
    memcpy(ret_job, link_sender->jobs[job].id, LINKS_CODE_JOB_SIZE);
    return count;
}

static void owner_give_back(void *context, uint64_t link, bool is_done) {
    struct link_sender *link_sender = context;
    link_sender->items[link].state = is_done ? ITEM_DONE : ITEM_WAITING;
    link_sender->waiting_count += !is_done;
}

/* We see a part of those on the disk; how many there are in all follows from how much of the circle it
 * covers. */
static uint64_t owner_waiting(void *context) {
    const struct link_sender *link_sender = context;
    if (!link_sender->is_full || link_sender->items_count < 2) {
        return link_sender->waiting_count;
    }
    struct ring_id span =
        ring_id_distance(link_sender->items[0].place, link_sender->items[link_sender->items_count - 1].place);
    uint64_t parts = UINT64_MAX / (span.high > 0 ? span.high : 1);
    return parts > UINT64_MAX / LOAD_MAX ? UINT64_MAX : link_sender->waiting_count * parts;
}

static size_t owner_after(void *context, struct ring_id id, struct vnode *out, size_t places_max) {
    const struct link_sender *link_sender = context;
    return link_sender->config.table->after(link_sender->config.context, id, out, places_max);
}

static uint64_t owner_arcs(void *context) {
    const struct link_sender *link_sender = context;
    return link_sender->config.table->arcs(link_sender->config.context);
}

static const struct link_relay_owner link_sender_owner = {
    .next = owner_next,
    .take = owner_take,
    .give_back = owner_give_back,
    .waiting = owner_waiting,
    .after = owner_after,
    .arcs = owner_arcs,
};

/* ---- what the walk says ---- */

static void sender_on_find(struct link_sender *link_sender, struct bytes bytes) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct ring_id key = message_read_id(&reader);
    uint8_t wanted = wire_read_u8(&reader);
    ASSERT(reader.err == ERR_OK);
    link_sender->config.table->find(link_sender->config.context, number, key, wanted);
}

static void on_take(struct link_sender *link_sender, struct bytes bytes) {
    struct link_relay_take take;
    link_relay_take_read(bytes, &take);
    for (size_t i = 0; i < take.links_count; i++) {
        link_relay_take_next(&take, &link_sender->links[i]);
    }
    struct link_sender_delivery delivery = {
        .number = take.number,
        .from = take.from,
        .is_primary = take.is_primary,
        .job = take.job,
        .links = link_sender->links,
        .count = take.links_count,
    };
    link_sender->config.table->deliver(link_sender->config.context, &delivery);
}

static void sender_on_notice(struct link_sender *link_sender, const struct action *action) {
    switch ((enum link_relay_notice)action->code) {
    case LINK_RELAY_FIND:
        sender_on_find(link_sender, action->bytes);
        break;
    case LINK_RELAY_TAKE:
        on_take(link_sender, action->bytes);
        break;
    case LINK_RELAY_BLAMED:
        link_sender->config.table->blame(link_sender->config.context, action->bytes.data,
                                         bytes_skip(action->bytes, PEER_KEY_SIZE));
        break;
    }
}

static void sender_step(struct link_sender *link_sender, struct event *event) {
    struct outbox *out = &link_sender->out;
    event->now_us = sender_now_us(link_sender);
    outbox_clear(out);
    link_relay_step(link_sender->link_relay, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        if (action->kind == ACTION_SEND) {
            struct peer to = {.address = action->to};
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            link_sender->config.table->send(link_sender->config.context, &to, action->bytes);
        } else if (action->kind == ACTION_NOTICE) {
            sender_on_notice(link_sender, action);
        }
    }
    link_sender->wake_at_us = out->wake_at_us;
}

/* ---- the thread ---- */

static void take_post(struct link_sender *link_sender, const struct post *post) {
    struct event event = {.kind = EVENT_COMMAND, .number = post->number, .from = post->from.address};
    event.bytes = bytes_of(post->bytes, post->size);
    memcpy(event.from_key, post->from.key, PEER_KEY_SIZE);
    if (post->kind == POST_MESSAGE) {
        event.kind = EVENT_MESSAGE;
    } else {
        event.code = post->kind == POST_FOUND ? LINK_RELAY_FOUND : LINK_RELAY_TOOK;
    }
    sender_step(link_sender, &event);
}

static bool next_post(struct link_sender *link_sender, struct post *ret_post) {
    pthread_mutex_lock(&link_sender->lock);
    bool is_there = link_sender->posts_count > 0 && !task_is_stopping(&link_sender->task);
    if (is_there) {
        *ret_post = link_sender->posts[link_sender->posts_first];
        link_sender->posts_first = (link_sender->posts_first + 1) % POSTS_MAX;
        link_sender->posts_count--;
    }
    link_sender->counters = *link_relay_counters(link_sender->link_relay);
    pthread_mutex_unlock(&link_sender->lock);
    return is_there;
}

/* Between rounds: what was taken leaves the disk, what is new comes from there. */
static void sender_look(struct link_sender *link_sender) {
    uint64_t now = sender_now_us(link_sender);
    pthread_mutex_lock(&link_sender->lock);
    bool has_news = link_sender->has_news;
    pthread_mutex_unlock(&link_sender->lock);
    bool has_done = link_sender->items_count > link_sender->waiting_count;
    bool is_due = now >= link_sender->look_at_us && (has_news || has_done);
    if (!link_relay_is_idle(link_sender->link_relay) ||
        (!is_due && now < link_sender->look_at_us + IDLE_US)) {
        return;
    }
    drop_done(link_sender);
    sender_load(link_sender);
    bool is_plenty = link_sender->items_count >= MANY_COUNT && !link_sender->is_full;
    link_sender->look_at_us = now + (is_plenty ? LOOK_MANY_US : LOOK_US);
    sender_step(link_sender, &(struct event){.kind = EVENT_COMMAND, .code = LINK_RELAY_WAITING});
}

/* How long until it is time for something. */
static uint64_t wait_us(struct link_sender *link_sender) {
    uint64_t now = sender_now_us(link_sender);
    pthread_mutex_lock(&link_sender->lock);
    uint64_t at_us = now + IDLE_US;
    bool is_looking = link_relay_is_idle(link_sender->link_relay) &&
                      (link_sender->has_news || link_sender->is_full ||
                       link_sender->items_count > link_sender->waiting_count);
    at_us = is_looking && link_sender->look_at_us < at_us ? link_sender->look_at_us : at_us;
    at_us = link_sender->wake_at_us < at_us ? link_sender->wake_at_us : at_us;
    pthread_mutex_unlock(&link_sender->lock);
    return at_us > now ? at_us - now : 0;
}

static uint64_t link_sender_run(void *context) {
    struct link_sender *link_sender = context;
    struct post post;
    if (!link_sender->has_begun) {
        link_sender->has_begun = true;
        sender_step(link_sender, &(struct event){.kind = EVENT_START});
    }
    while (next_post(link_sender, &post)) {
        take_post(link_sender, &post);
    }
    if (sender_now_us(link_sender) >= link_sender->wake_at_us) {
        sender_step(link_sender, &(struct event){.kind = EVENT_WAKE});
    }
    sender_look(link_sender);
    return wait_us(link_sender);
}

/* ---- any thread ---- */

static struct post *new_post(struct link_sender *link_sender, enum post_kind kind, uint64_t number) {
    if (link_sender->posts_count == POSTS_MAX) {
        return NULL; /* lost, as on the way */
    }
    struct post *post =
        &link_sender->posts[(link_sender->posts_first + link_sender->posts_count++) % POSTS_MAX];
    post->kind = kind;
    post->number = number;
    post->from = (struct peer){0};
    post->size = 0;
    task_poke(&link_sender->task);
    return post;
}

void link_sender_receive(struct link_sender *link_sender, const struct peer *from, struct bytes message) {
    ASSERT(message.size <= STEP_MESSAGE_SIZE_MAX);
    pthread_mutex_lock(&link_sender->lock);
    struct post *post = new_post(link_sender, POST_MESSAGE, 0);
    if (post != NULL) {
        post->from = *from;
        post->size = message.size;
        memcpy(post->bytes, message.data, message.size);
    }
    pthread_mutex_unlock(&link_sender->lock);
}

void link_sender_took(struct link_sender *link_sender, uint64_t number, enum link_relay_status status,
                      size_t accepted_count, size_t new_count) {
    pthread_mutex_lock(&link_sender->lock);
    struct post *post = new_post(link_sender, POST_TOOK, number);
    if (post != NULL) {
        post->size =
            link_relay_write_took(status, (uint16_t)accepted_count, (uint16_t)new_count, post->bytes).size;
    }
    pthread_mutex_unlock(&link_sender->lock);
}

void link_sender_found(struct link_sender *link_sender, uint64_t number, const struct vnode *places,
                       size_t count) {
    pthread_mutex_lock(&link_sender->lock);
    struct post *post = new_post(link_sender, POST_FOUND, number);
    if (post != NULL) {
        post->size = link_relay_write_found(places, count, post->bytes).size;
    }
    pthread_mutex_unlock(&link_sender->lock);
}

/* NULL: too many, or a name that is too long. */
static struct job *job_of(struct link_sender *link_sender, const char *name) {
    for (size_t i = 0; i < link_sender->jobs_count; i++) {
        if (strcmp(link_sender->jobs[i].name, name) == 0) {
            return &link_sender->jobs[i];
        }
    }
    struct job *job = &link_sender->jobs[link_sender->jobs_count];
    if (link_sender->jobs_count == LINK_SENDER_JOBS_MAX || strlen(name) >= sizeof job->name ||
        link_sender_job_id(name, job->id) != ERR_OK) {
        return NULL;
    }
    memcpy(job->name, name, strlen(name) + 1);
    buf_init(&job->work, WORK_SIZE_MAX);
    link_sender->jobs_count++;
    return job;
}

void link_sender_outgoing(struct link_sender *link_sender, const char *name) {
    pthread_mutex_lock(&link_sender->lock);
    if (job_of(link_sender, name) != NULL && !link_sender->has_news) {
        link_sender->has_news = true;
        task_poke(&link_sender->task);
    }
    pthread_mutex_unlock(&link_sender->lock);
}

struct link_relay_counters link_sender_counters(struct link_sender *link_sender) {
    pthread_mutex_lock(&link_sender->lock);
    struct link_relay_counters counters = link_sender->counters;
    pthread_mutex_unlock(&link_sender->lock);
    return counters;
}

/* ---- life ---- */

static enum err sender_prepare(struct link_sender *link_sender) {
    struct link_relay_config config = {
        .self = link_sender->config.self,
        .holders_count = link_sender->config.holders_count,
        .flush_us = link_sender->config.flush_us,
        .sent_count = SENT_COUNT,
        .seed = link_sender->config.seed,
        .code = link_sender->code = links_code_new(),
        .owner = &link_sender_owner,
        .context = link_sender,
    };
    size_t actions_max = link_relay_actions_max(&config);
    size_t memory_size = link_relay_memory_size(&config);
    struct action *actions = calloc(actions_max, sizeof *actions);
    uint8_t *memory = malloc(memory_size);
    outbox_init(&link_sender->out, actions, actions_max, memory, memory_size);
    link_sender->posts = calloc(POSTS_MAX, sizeof *link_sender->posts);
    if (config.code == NULL || actions == NULL || memory == NULL || link_sender->posts == NULL) {
        return ERR_MEMORY;
    }
    return link_relay_new(&config, &link_sender->link_relay);
}

enum err link_sender_start(const struct link_sender_config *config, struct link_sender **ret_link_sender) {
    struct link_sender *link_sender = calloc(1, sizeof *link_sender);
    if (link_sender == NULL) {
        return ERR_MEMORY;
    }
    link_sender->config = *config;
    link_sender->config.clock = config->clock != NULL ? config->clock : &clock_system;
    pthread_mutex_init(&link_sender->lock, NULL);
    enum err err = sender_prepare(link_sender);
    if (err == ERR_OK) {
        err = task_start(&link_sender->task, "link-sender", PRIORITY_USUAL, link_sender_run, link_sender);
    }
    if (err != ERR_OK) {
        link_sender_free(link_sender);
        return err;
    }
    *ret_link_sender = link_sender;
    return ERR_OK;
}

void link_sender_stop(struct link_sender *link_sender) {
    if (link_sender != NULL) {
        task_stop(&link_sender->task);
        drop_done(link_sender);
    }
}

void link_sender_free(struct link_sender *link_sender) {
    if (link_sender == NULL) {
        return;
    }
    for (size_t i = 0; i < link_sender->jobs_count; i++) {
        buf_done(&link_sender->jobs[i].work);
    }
    if (link_sender->link_relay != NULL) {
        link_relay_free(link_sender->link_relay);
    }
    links_code_free(link_sender->code);
    pthread_mutex_destroy(&link_sender->lock);
    free(link_sender->out.actions);
    free(link_sender->out.memory);
    free(link_sender->posts);
    free(link_sender);
}
