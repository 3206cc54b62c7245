/* Links between the crawl of this node and those of others: what node/links/link_sender.h asks for. */
#include <stdio.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "node/crawl/job_files.h"
#include "node/ring_services_state.h"

enum { LINKS_MAX = LINK_RELAY_LINKS_MAX };

/* ---- outgoing ---- */

static enum err links_read_links(void *context, const char *job,
                                 const uint8_t after_position[ROUTE_POSITION_SIZE], struct bytes after_url,
                                 struct buf *work, struct frontier_outgoing *ret_links, size_t count_max,
                                 size_t *ret_count) {
    const struct ring_services *ring_services = context;
    return crawl_loop_read_outgoing(ring_services->crawl_loop, job, after_position, after_url, work,
                                    ret_links, count_max, ret_count);
}

static void drop_links(void *context, const char *job, const struct frontier_outgoing *links, size_t count) {
    const struct ring_services *ring_services = context;
    crawl_loop_drop_outgoing(ring_services->crawl_loop, job, links, count);
}

void ring_services_on_outgoing(void *context, const char *job) {
    const struct ring_services *ring_services = context;
    if (ring_services->is_begun) {
        link_sender_outgoing(ring_services->link_sender, job);
    }
}

/* ---- incoming: from the thread of the link sender to the loop of the crawl, and back ---- */

struct parcel {
    struct frontier_wait wait; /* first: its address is the parcel's */
    struct ring_services *ring_services;
    uint64_t number;
    enum link_relay_status status;
    size_t done_count;
    size_t new_count;
    bool is_misled; /* the sender takes us for their primary, and of some we are not */
    char job[LINK_SENDER_JOB_NAME_SIZE_MAX];
    size_t count;
    struct frontier_outgoing links[LINKS_MAX];
    struct buf urls;
};

static bool links_find_job(struct ring_services *ring_services, const uint8_t id[LINKS_CODE_JOB_SIZE],
                           char *ret_name) {
    bool is_found = false;
    pthread_mutex_lock(&ring_services->lock);
    for (size_t i = 0; i < ring_services->jobs_count && !is_found; i++) {
        is_found = memcmp(ring_services->jobs[i].id, id, LINKS_CODE_JOB_SIZE) == 0;
        if (is_found) {
            snprintf(ret_name, LINK_SENDER_JOB_NAME_SIZE_MAX, "%s", ring_services->jobs[i].name);
        }
    }
    pthread_mutex_unlock(&ring_services->lock);
    return is_found;
}

bool ring_services_find_job(struct ring_services *ring_services, const char *name,
                            uint8_t ret_id[LINKS_CODE_JOB_SIZE]) {
    bool is_found = false;
    pthread_mutex_lock(&ring_services->lock);
    for (size_t i = 0; i < ring_services->jobs_count && !is_found; i++) {
        is_found = strcmp(ring_services->jobs[i].name, name) == 0;
        if (is_found) {
            memcpy(ret_id, ring_services->jobs[i].id, LINKS_CODE_JOB_SIZE);
        }
    }
    pthread_mutex_unlock(&ring_services->lock);
    return is_found;
}

/* The sender forgets what we have taken: so it must be durable before. */
static void on_parcel_kept(struct frontier_wait *wait, bool is_durable) {
    struct parcel *parcel = (struct parcel *)wait;
    link_sender_took(parcel->ring_services->link_sender, parcel->number,
                     is_durable ? parcel->status : LINK_RELAY_BUSY, is_durable ? parcel->done_count : 0,
                     is_durable ? parcel->new_count : 0);
    buf_done(&parcel->urls);
    free(parcel);
}

static void take_parcel(void *context, struct jobs *jobs) {
    struct parcel *parcel = context;
    struct crawler_links outcome = {0};
    enum err err =
        jobs == NULL ? ERR_BUSY : jobs_take_links(jobs, parcel->job, parcel->links, parcel->count, &outcome);
    parcel->wait.done = on_parcel_kept;
    parcel->done_count = outcome.taken_count + outcome.known_count + outcome.refused_count;
    parcel->new_count = outcome.taken_count;
    parcel->status = LINK_RELAY_TAKEN;
    if (err != ERR_OK) {
        on_parcel_kept(&parcel->wait,
                       false); /* the job has not come to this node yet, or the disk is behind */
        return;
    }
    if (parcel->is_misled || (parcel->done_count == 0 && outcome.away_count > 0)) {
        parcel->status = LINK_RELAY_MOVED;
    }
    jobs_when_durable(jobs, parcel->job, &parcel->wait);
}

/* A node that has not yet learned of a member in between mistakes the next one for the primary; the real
 * primary would never hear of the links. What we keep for it is good all the same. */
static bool is_misled(struct ring_services *ring_services, const struct link_sender_delivery *delivery) {
    bool is_misled = false;
    for (size_t i = 0; i < delivery->count && delivery->is_primary && !is_misled; i++) {
        is_misled = !routing_is_primary(ring_services->routing, delivery->links[i].url);
    }
    return is_misled;
}

static struct parcel *make_parcel(struct ring_services *ring_services,
                                  const struct link_sender_delivery *delivery) {
    struct parcel *parcel = calloc(1, sizeof *parcel);
    size_t size = 0;
    for (size_t i = 0; i < delivery->count; i++) {
        size += delivery->links[i].url.size;
    }
    if (parcel == NULL) {
        return NULL;
    }
    buf_init(&parcel->urls, size + 1);
    if (buf_reserve(&parcel->urls, size + 1) != ERR_OK) {
        free(parcel);
        return NULL;
    }
    parcel->ring_services = ring_services;
    parcel->number = delivery->number;
    parcel->is_misled = is_misled(ring_services, delivery);
    parcel->count = delivery->count < LINKS_MAX ? delivery->count : LINKS_MAX;
    for (size_t i = 0; i < parcel->count; i++) {
        const struct links_code_link *link = &delivery->links[i];
        size_t start = parcel->urls.size;
        buf_put(&parcel->urls, link->url);
        parcel->links[i] = (struct frontier_outgoing){
            .url = bytes_of(parcel->urls.data + start, link->url.size),
            .depth = link->depth,
            .priority =
                (enum frontier_priority)(link->priority <= FRONTIER_GUESS ? link->priority : FRONTIER_GUESS),
        };
    }
    return parcel;
}

static void links_deliver(void *context, const struct link_sender_delivery *delivery) {
    struct ring_services *ring_services = context;
    char name[LINK_SENDER_JOB_NAME_SIZE_MAX];
    struct parcel *parcel =
        links_find_job(ring_services, delivery->job, name) ? make_parcel(ring_services, delivery) : NULL;
    if (parcel == NULL) {
        link_sender_took(ring_services->link_sender, delivery->number, LINK_RELAY_BUSY, 0, 0);
        return;
    }
    snprintf(parcel->job, sizeof parcel->job, "%s", name);
    crawl_loop_post(ring_services->crawl_loop, take_parcel, parcel);
}

/* ---- the ring ---- */

struct question {
    struct transport_question transport;
    struct ring_services *ring_services;
    uint64_t number;
};

static void on_answered(struct transport_question *transport, const struct transport_answer *answer) {
    struct question *question = transport->context;
    link_sender_found(question->ring_services->link_sender, question->number, answer->vnodes,
                      answer->err == ERR_OK ? answer->vnodes_count : 0);
    free(question);
}

static void links_find(void *context, uint64_t number, struct ring_id key, size_t vnodes_wanted) {
    struct ring_services *ring_services = context;
    struct question *question = calloc(1, sizeof *question);
    if (question == NULL) {
        link_sender_found(ring_services->link_sender, number, NULL, 0);
        return;
    }
    question->ring_services = ring_services;
    question->number = number;
    question->transport = (struct transport_question){
        .key = key,
        .vnodes_wanted =
            (uint8_t)(vnodes_wanted < TRANSPORT_VNODES_MAX ? vnodes_wanted : TRANSPORT_VNODES_MAX),
        .answered = on_answered,
        .context = question,
    };
    transport_ask(ring_services->transport, &question->transport);
}

static size_t after(void *context, struct ring_id id, struct vnode *out, size_t vnodes_max) {
    const struct ring_services *ring_services = context;
    return holders_after(ring_services->holders, id, out, vnodes_max);
}

static uint64_t arcs(void *context) {
    const struct ring_services *ring_services = context;
    return holders_vnodes_count(ring_services->holders);
}

struct letter {
    struct transport *transport;
    struct peer to;
    size_t size;
    uint8_t bytes[];
};

static void post_letter(void *context) {
    struct letter *letter = context;
    transport_send(letter->transport, &letter->to, DATAGRAM_LINKS, bytes_of(letter->bytes, letter->size));
    free(letter);
}

static void send_links(void *context, const struct peer *to, struct bytes message) {
    const struct ring_services *ring_services = context;
    struct letter *letter = malloc(sizeof *letter + message.size);
    if (letter == NULL) {
        return; /* lost, as any datagram may be */
    }
    letter->transport = ring_services->transport;
    letter->to = *to;
    letter->size = message.size;
    memcpy(letter->bytes, message.data, message.size);
    if (!transport_post(ring_services->transport, post_letter, letter)) {
        free(letter);
    }
}

static void links_blame(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes why) {
    struct ring_services *ring_services = context;
    char sentence[ERR_TEXT_SIZE_MAX];
    struct peer peer;
    snprintf(sentence, sizeof sentence, "sends links that make no sense: %.*s", BYTES_ARG(why));
    if (holders_locate(ring_services->holders, key, &peer)) {
        transport_blame(ring_services->transport, &peer, sentence);
    }
}

const struct link_sender_table ring_services_links = {
    .read = links_read_links,
    .drop = drop_links,
    .deliver = links_deliver,
    .find = links_find,
    .after = after,
    .arcs = arcs,
    .send = send_links,
    .blame = links_blame,
};

/* ---- which jobs there are ---- */

static bool links_add_job(struct ring_services *ring_services, const char *name) {
    struct ring_services_job job = {0};
    snprintf(job.name, sizeof job.name, "%s", name);
    if (link_sender_job_id(name, job.id) != ERR_OK) {
        return false;
    }
    pthread_mutex_lock(&ring_services->lock);
    bool is_new = ring_services->jobs_count < LINK_SENDER_JOBS_MAX;
    for (size_t i = 0; i < ring_services->jobs_count && is_new; i++) {
        is_new = memcmp(ring_services->jobs[i].id, job.id, sizeof job.id) != 0;
    }
    if (is_new) {
        ring_services->jobs[ring_services->jobs_count++] = job;
    }
    pthread_mutex_unlock(&ring_services->lock);
    return is_new;
}

void ring_services_look_at_jobs(struct ring_services *ring_services) {
    char **names = calloc(JOB_FILES_MAX, sizeof *names);
    size_t count = names != NULL ? job_files_names(ring_services->config.directory, names) : 0;
    for (size_t i = 0; i < count; i++) {
        bool is_shared = strncmp(names[i], "ring-", 5) == 0;
        if (is_shared && links_add_job(ring_services, names[i])) {
            link_sender_outgoing(ring_services->link_sender, names[i]);
        }
        free(names[i]);
    }
    free(names);
}

/* ---- the transport ---- */

static void links_receive(void *context, const struct datagram_message *message) {
    struct ring_services *ring_services = context;
    if (ring_services->is_begun && !ring_services->is_light) {
        link_sender_receive(ring_services->link_sender, &message->from, message->bytes);
    }
}

void ring_services_add_links(struct ring_services *ring_services) {
    struct transport_tenant tenant = {
        .kind = DATAGRAM_LINKS, .is_for_members = true, .receive = links_receive, .context = ring_services};
    transport_add(ring_services->transport, &tenant);
}
