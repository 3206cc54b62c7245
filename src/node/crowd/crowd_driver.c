#include "node/crowd/crowd_driver.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/whole_file.h"
#include "net/datagram.h"
#include "net/identity.h"
#include "node/crowd/crowd_driver_state.h"
#include "node/transport/ring_files.h"
#include "node/transport/transport.h"
#include "replay/admin/metrics.h"
#include "replay/site/sheet.h"

/* ---- nodes that did not give what they had offered ---- */

static const uint64_t DISTRUST_US = UINT64_C(600) * 1000000;

/* By key: an address may belong to another node later. */
bool crowd_driver_distrusts(const struct crowd_driver *driver, const struct peer *peer) {
    return standing_holds(&driver->standing, STANDING_DOUBTED, peer_key(peer), crowd_driver_now_us(driver));
}

static void crowd_driver_drop(struct crowd_driver *driver, const struct peer *peer) {
    if (driver->drops_count < CROWD_DRIVER_DROPS_MAX) {
        driver->drops[driver->drops_count++] = *peer;
    }
}

static void forget_contact(struct crowd_driver *driver, const struct peer *peer) {
    for (size_t i = 0; i < driver->contacts_count; i++) {
        if (peer_same_key(&driver->contacts[i].peer, peer)) {
            driver->contacts[i--] = driver->contacts[--driver->contacts_count];
            driver->contacts_changed = true;
        }
    }
}

static void forget_hits(struct crowd_driver *driver, const struct peer *peer) {
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        struct crowd_driver_search *search = &driver->searches[i];
        for (size_t j = 0; j < search->hits_count; j++) {
            if (peer_same_key(&search->hits[j].holder, peer)) {
                search->hits[j--] = search->hits[--search->hits_count];
                search->is_spoiled = true;
            }
        }
    }
}

void crowd_driver_distrust(struct crowd_driver *driver, const struct peer *peer) {
    pthread_mutex_lock(&driver->lock);
    if (!crowd_driver_distrusts(driver, peer)) {
        uint64_t now_us = crowd_driver_now_us(driver);
        standing_note(&driver->standing, STANDING_DOUBTED, peer_key(peer), now_us, now_us + DISTRUST_US);
        driver->totals.distrusted_count++;
        driver->distrusts_some = true;
    }
    forget_contact(driver, peer);
    forget_hits(driver, peer);
    crowd_driver_drop(driver, peer);
    pthread_mutex_unlock(&driver->lock);
    crowd_driver_call_loop(driver);
}

bool crowd_driver_is_distrusted(struct crowd_driver *driver, const struct peer *peer) {
    pthread_mutex_lock(&driver->lock);
    bool is_distrusted = crowd_driver_distrusts(driver, peer);
    pthread_mutex_unlock(&driver->lock);
    return is_distrusted;
}

/* ---- DIRECTORY/crowd-contacts: nodes by which this one finds the crowd again ---- */

enum { PATH_SIZE_MAX = 4096 + 64, MODE = 0600 };

static const char mark[] = "mncc";
_Static_assert((int)CROWD_DRIVER_CONTACTS_MAX <= (int)PEERS_FILE_COUNT_MAX, "a list has room for them");

static const char *crowd_path_of(const char *directory, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/crowd-contacts", directory);
    return out;
}

size_t crowd_driver_files_read(const char *directory, struct peer out[CROWD_DRIVER_CONTACTS_MAX]) {
    char path[PATH_SIZE_MAX];
    struct buf bytes;
    buf_init(&bytes, PEERS_FILE_SIZE_MAX);
    enum err err = whole_file_read(crowd_path_of(directory, path), &bytes, NULL);
    size_t count =
        err == ERR_OK ? peers_file_read(mark, buf_bytes(&bytes), out, CROWD_DRIVER_CONTACTS_MAX) : 0;
    buf_done(&bytes);
    return count;
}

enum err crowd_driver_files_write(const char *directory, const struct peer *peers, size_t count) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[PEERS_FILE_SIZE_MAX];
    return whole_file_replace(crowd_path_of(directory, path), peers_file_write(mark, peers, count, memory),
                              MODE, NULL);
}

/* ---- contacts, for a node that is alone: members of the ring, and nodes that were heard lately ---- */

enum { PICKS_MAX = 64, MEMBERS_SHARE = CROWD_CONTACTS_MAX / 2 };
static const uint64_t JOIN_WAIT_US = 2 * 1000000;
static const uint64_t JOIN_WAIT_US_MAX = 60 * 1000000;
static const uint64_t WRITE_US = 10 * 1000000; /* between two writes of the file */

/* ---- nodes that spoke to us ---- */

static struct crowd_driver_contact *find_contact(struct crowd_driver *driver, const struct address *address) {
    for (size_t i = 0; i < driver->contacts_count; i++) {
        if (address_equal(&driver->contacts[i].peer.address, address)) {
            return &driver->contacts[i];
        }
    }
    return NULL;
}

/* A free place, or that of the node that has been silent for longest. */
static struct crowd_driver_contact *place_for_contact(struct crowd_driver *driver) {
    if (driver->contacts_count < CROWD_DRIVER_CONTACTS_MAX) {
        return &driver->contacts[driver->contacts_count++];
    }
    struct crowd_driver_contact *oldest = &driver->contacts[0];
    for (size_t i = 1; i < driver->contacts_count; i++) {
        if (driver->contacts[i].heard_at_us < oldest->heard_at_us) {
            oldest = &driver->contacts[i];
        }
    }
    return oldest;
}

static void crowd_driver_hear(struct crowd_driver *driver, const struct peer *peer) {
    uint64_t now = crowd_driver_now_us(driver);
    pthread_mutex_lock(&driver->lock);
    struct crowd_driver_contact *contact = find_contact(driver, &peer->address);
    bool is_known = contact != NULL && peer_equal(&contact->peer, peer);
    if (is_known) {
        contact->heard_at_us = now;
    } else if (!crowd_driver_distrusts(driver, peer)) {
        contact = contact != NULL ? contact : place_for_contact(driver);
        *contact = (struct crowd_driver_contact){.peer = *peer, .heard_at_us = now};
        driver->contacts_changed = true;
    }
    pthread_mutex_unlock(&driver->lock);
}

void crowd_driver_beat(struct crowd_driver *driver) {
    struct peer peers[CROWD_DRIVER_CONTACTS_MAX];
    uint64_t now = crowd_driver_now_us(driver);
    pthread_mutex_lock(&driver->lock);
    bool is_due = driver->contacts_changed && (now >= driver->write_at_us || driver->is_stopped);
    size_t count = driver->contacts_count;
    for (size_t i = 0; i < count; i++) {
        peers[i] = driver->contacts[i].peer;
    }
    if (is_due) {
        driver->contacts_changed = false;
        driver->write_at_us = now + WRITE_US;
    }
    pthread_mutex_unlock(&driver->lock);
    if (is_due && crowd_driver_files_write(driver->config.directory, peers, count) != ERR_OK) {
        pthread_mutex_lock(&driver->lock);
        driver->contacts_changed = true; /* the disk is full or gone: tried again */
        pthread_mutex_unlock(&driver->lock);
    }
}

/* ---- members of the ring ---- */

static bool is_among(const struct peer *peers, size_t count, const struct address *address) {
    for (size_t i = 0; i < count; i++) {
        if (address_equal(&peers[i].address, address)) {
            return true;
        }
    }
    return false;
}

static void crowd_add_member(struct crowd_driver *driver, const struct peer *peer) {
    bool is_new = peer->address.port != 0 &&
                  !address_equal(&peer->address, &driver->crowd_config.self.address) &&
                  !is_among(driver->members, driver->members_count, &peer->address);
    if (is_new && driver->members_count < CROWD_CONTACTS_MAX) {
        driver->members[driver->members_count++] = *peer;
    }
}

/* At random, so that nodes that come at the same time do not all turn to the same one; then our neighbours.
 */
static void look_for_members(struct crowd_driver *driver, const struct ring *ring) {
    uint32_t known_count = ring_known_count(ring);
    driver->members_count = 0;
    for (size_t i = 0; i < PICKS_MAX && known_count > 0 && driver->members_count < MEMBERS_SHARE; i++) {
        struct ring_known known = ring_known_at(ring, (uint32_t)prng_below(&driver->prng, known_count));
        if (known.misses_count == 0) {
            crowd_add_member(driver, &known.vnode.peer);
        }
    }
    for (uint8_t i = 0; i < ring_list_size(ring) && ring_is_member(ring, 0); i++) {
        const struct vnode *successor = ring_successor(ring, 0, i);
        if (successor != NULL) {
            crowd_add_member(driver, &successor->peer);
        }
    }
}

/* ---- joining ---- */

static size_t neighbours_wanted(const struct crowd_driver *driver) {
    size_t quarter = driver->crowd_config.view_size / 4;
    return quarter > 0 ? quarter : 1;
}

struct chosen {
    struct peer peers[CROWD_CONTACTS_MAX];
    size_t count;
};

static void add_contact(struct crowd_driver *driver, const struct crowd_neighbour *view, size_t view_count,
                        const struct peer *peer, size_t count_max, struct chosen *contacts) {
    bool is_wanted =
        contacts->count < count_max && !is_among(contacts->peers, contacts->count, &peer->address);
    for (size_t i = 0; i < view_count && is_wanted; i++) {
        is_wanted = !address_equal(&view[i].peer.address, &peer->address);
    }
    pthread_mutex_lock(&driver->lock);
    is_wanted = is_wanted && !crowd_driver_distrusts(driver, peer);
    pthread_mutex_unlock(&driver->lock);
    if (is_wanted) {
        contacts->peers[contacts->count++] = *peer;
    }
}

/* Half of them from the ring, the others from nodes that spoke to us; those in the view need not be asked. */
static void choose_contacts(struct crowd_driver *driver, const struct crowd_neighbour *view,
                            size_t view_count, struct chosen *contacts) {
    struct peer heard[PICKS_MAX];
    size_t heard_count = 0;
    pthread_mutex_lock(&driver->lock);
    for (; heard_count < PICKS_MAX && driver->contacts_count > 0; heard_count++) {
        heard[heard_count] = driver->contacts[prng_below(&driver->prng, driver->contacts_count)].peer;
    }
    pthread_mutex_unlock(&driver->lock);
    for (size_t i = 0; i < driver->members_count; i++) {
        add_contact(driver, view, view_count, &driver->members[i], MEMBERS_SHARE, contacts);
    }
    for (size_t i = 0; i < heard_count; i++) {
        add_contact(driver, view, view_count, &heard[i], CROWD_CONTACTS_MAX, contacts);
    }
}

/* It helped: at once again. It did not: they are gone or there are no more, wait longer. */
static void back_off(struct crowd_driver *driver, size_t view_count, uint64_t now) {
    if (view_count > driver->joined_with_count) {
        driver->join.tries_count = 0;
    }
    retry_sent_doubling(&driver->join, JOIN_WAIT_US, JOIN_WAIT_US_MAX, now);
    driver->joined_with_count = view_count;
}

static void crowd_driver_join(struct crowd_driver *driver) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct chosen contacts = {.count = 0};
    uint64_t now = crowd_driver_now_us(driver);
    size_t view_count = crowd_neighbours(driver->crowd, view);
    if (view_count >= neighbours_wanted(driver)) {
        driver->join.tries_count = 0;
        return;
    }
    if (!retry_is_due(&driver->join, now)) {
        return;
    }
    choose_contacts(driver, view, view_count, &contacts);
    if (contacts.count == 0) {
        return;
    }
    back_off(driver, view_count, now);
    pthread_mutex_lock(&driver->lock);
    driver->totals.rejoins_count++;
    pthread_mutex_unlock(&driver->lock);
    struct event event = {.kind = EVENT_COMMAND, .code = CROWD_JOIN};
    event.bytes = crowd_write_contacts(contacts.peers, contacts.count, memory);
    crowd_driver_step(driver, &event);
}

void crowd_driver_news(struct crowd_driver *driver, const struct ring *ring) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    if (driver->crowd == NULL || driver->is_stopped) {
        return;
    }
    if (crowd_neighbours(driver->crowd, view) < neighbours_wanted(driver)) {
        look_for_members(driver, ring);
    }
    crowd_driver_join(driver);
    crowd_driver_repeat_spoiled(driver);
    crowd_driver_take_wants(driver);
}

enum {
    ANSWER_HEAD_SIZE = 8 + 2,
    ANSWERS_SIZE_MAX = 1 << 20, /* more than all queries that can wait for one (waiting_max) */
    SENTENCE_SIZE_MAX = 160,
};
static const uint64_t COPY_US = 250000;
static const uint64_t BLAME_US = 1000000;

/* ---- making ---- */

struct crowd_driver *crowd_driver_new(const struct crowd_driver_config *config) {
    struct peer known[CROWD_DRIVER_CONTACTS_MAX];
    uint64_t seed;
    struct crowd_driver *driver = calloc(1, sizeof *driver);
    if (driver == NULL) {
        return NULL;
    }
    driver->config = *config;
    driver->config.clock = config->clock != NULL ? config->clock : &clock_system;
    if (config->look != NULL) {
        driver->looked = calloc(CROWD_DRIVER_LOOKS_MAX, sizeof *driver->looked);
        if (driver->looked == NULL) {
            free(driver);
            return NULL;
        }
    }
    buf_init(&driver->answers, ANSWERS_SIZE_MAX);
    pthread_mutex_init(&driver->lock, NULL);
    randombytes_buf(&seed, sizeof seed);
    prng_init(&driver->prng, seed);
    standing_init(&driver->standing, driver->distrusted, CROWD_DRIVER_DISTRUSTED_MAX, seed);
    driver->contacts_count = crowd_driver_files_read(config->directory, known);
    for (size_t i = 0; i < driver->contacts_count; i++) {
        driver->contacts[i].peer = known[i];
    }
    return driver;
}

void crowd_driver_free(struct crowd_driver *driver) {
    driver->is_stopped = true;
    crowd_driver_beat(driver);
    if (driver->crowd != NULL) {
        crowd_free(driver->crowd);
    }
    crowd_driver_done_searches(driver);
    pthread_mutex_destroy(&driver->lock);
    buf_done(&driver->answers);
    free(driver->looked);
    free(driver->actions);
    free(driver->memory);
    free(driver);
}

static enum err make_crowd(struct crowd_driver *driver) {
    const struct crowd_config *config = &driver->crowd_config;
    size_t actions_max = crowd_actions_max(config);
    size_t memory_size = crowd_memory_size(config);
    driver->actions = calloc(actions_max, sizeof *driver->actions);
    driver->memory = malloc(memory_size);
    if (driver->actions == NULL || driver->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&driver->out, driver->actions, actions_max, driver->memory, memory_size);
    return crowd_new(config, &driver->crowd);
}

void crowd_driver_begin(struct crowd_driver *driver, const struct peer *self,
                        const uint8_t ring[CROWD_NETWORK_SIZE]) {
    struct crowd_config *config = &driver->crowd_config;
    if (driver->actions != NULL || driver->is_stopped) {
        return; /* it has begun, or could not */
    }
    *config = driver->config.crowd;
    config->self = *self;
    memcpy(config->network, ring, sizeof config->network);
    randombytes_buf(&config->seed, sizeof config->seed);
    config->view_size = config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE;
    config->fanout = config->fanout > 0 ? config->fanout : CROWD_DRIVER_FANOUT;
    config->searches_max = CROWD_DRIVER_SEARCHES_MAX;
    if (make_crowd(driver) != ERR_OK) {
        return;
    }
    crowd_driver_step(driver, &(struct event){.kind = EVENT_START});
    driver->is_begun = true;
    crowd_driver_join(driver);
}

/* ---- what the crowd says ---- */

static void blame(struct crowd_driver *driver, const struct peer *peer, struct bytes why) {
    char sentence[SENTENCE_SIZE_MAX];
    uint64_t now = crowd_driver_now_us(driver);
    if (now < driver->blame_at_us || driver->config.blame == NULL) {
        return; /* once a second is enough to be seen */
    }
    driver->blame_at_us = now + BLAME_US;
    snprintf(sentence, sizeof sentence, "sends what makes no sense to the crowd: %.*s", BYTES_ARG(why));
    driver->config.blame(driver->config.context, peer, sentence);
}

static void on_blamed(struct crowd_driver *driver, struct bytes bytes) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_TAGGED, &peer);
    struct bytes text = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err == ERR_OK) {
        blame(driver, &peer, text);
    }
}

static void put_answer(struct crowd_driver *driver, uint64_t number, struct bytes finding) {
    uint8_t head[ANSWER_HEAD_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u64(&writer, number);
    wire_write_u16(&writer, (uint16_t)finding.size);
    if (buf_reserve(&driver->answers, sizeof head + finding.size) == ERR_OK) {
        buf_put(&driver->answers, bytes_of(head, sizeof head));
        buf_put(&driver->answers, finding);
    } /* else the query is lost, as on the way */
}

static void on_asked(struct crowd_driver *driver, struct bytes bytes) {
    const struct crowd_driver_config *config = &driver->config;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct bytes wish = wire_read_bytes(&reader, wire_reader_left(&reader));
    size_t size = config->have != NULL ? config->have(config->context, wish, memory) : 0;
    ASSERT(size <= sizeof memory);
    bool is_later = size == 0 && config->look != NULL && config->look(config->context, number, wish);
    if (!is_later) {
        put_answer(driver, number, bytes_of(memory, size));
    }
}

static void crowd_on_notice(struct crowd_driver *driver, const struct action *action) {
    switch ((enum crowd_notice)action->code) {
    case CROWD_ASKED:
        on_asked(driver, action->bytes);
        break;
    case CROWD_FOUND:
        crowd_driver_on_found(driver, action->bytes);
        break;
    case CROWD_LOST:
        crowd_driver_on_lost(driver, action->bytes);
        break;
    case CROWD_ALONE: /* seen when the step is over */
        break;
    case CROWD_BLAMED:
        on_blamed(driver, action->bytes);
        break;
    }
}

/* ---- steps ---- */

static void crowd_step_once(struct crowd_driver *driver, struct event *event) {
    struct outbox *out = &driver->out;
    event->now_us = crowd_driver_now_us(driver);
    outbox_clear(out);
    crowd_step(driver->crowd, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        if (action->kind == ACTION_SEND) {
            struct peer to = {.address = action->to};
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            transport_send(driver->config.transport, &to, DATAGRAM_CROWD, action->bytes);
        } else if (action->kind == ACTION_NOTICE) {
            crowd_on_notice(driver, action);
        }
    }
}

/* Answers that this step's questions brought may bring further ones. */
static void give_answers(struct crowd_driver *driver) {
    uint8_t finding[CROWD_FINDING_SIZE_MAX];
    for (size_t said = 0; said < driver->answers.size;) {
        struct wire_reader reader;
        wire_reader_init(&reader, bytes_skip(buf_bytes(&driver->answers), said));
        struct event event = {.kind = EVENT_COMMAND, .number = wire_read_u64(&reader)};
        size_t size = wire_read_u16(&reader);
        wire_read_array(&reader, finding, size); /* the buffer may move */
        ASSERT(reader.err == ERR_OK);
        said += ANSWER_HEAD_SIZE + size;
        event.code = size > 0 ? CROWD_HAVE : CROWD_HAVE_NOT;
        event.bytes = bytes_of(finding, size);
        crowd_step_once(driver, &event);
    }
    buf_clear(&driver->answers);
}

/* For other threads. A distrusted node may be back in the view by the word of others: it leaves it again. */
static void crowd_copy(struct crowd_driver *driver) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    uint64_t now = crowd_driver_now_us(driver);
    if (now < driver->copy_at_us) {
        return;
    }
    driver->copy_at_us = now + COPY_US;
    size_t count = crowd_neighbours(driver->crowd, view);
    pthread_mutex_lock(&driver->lock);
    driver->counters = *crowd_counters(driver->crowd);
    driver->neighbours_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (driver->distrusts_some && crowd_driver_distrusts(driver, &view[i].peer)) {
            crowd_driver_drop(driver, &view[i].peer);
            driver->has_wants = true;
        } else {
            driver->neighbours[driver->neighbours_count++] = view[i];
        }
    }
    pthread_mutex_unlock(&driver->lock);
}

void crowd_driver_step(struct crowd_driver *driver, struct event *event) {
    crowd_step_once(driver, event);
    give_answers(driver);
    transport_wake_at(driver->config.transport, DATAGRAM_CROWD, driver->out.wake_at_us);
    crowd_copy(driver);
}

/* ---- the ring's loop ---- */

void crowd_driver_receive(struct crowd_driver *driver, const struct datagram_message *message) {
    bool is_heard = driver->crowd != NULL && !driver->is_stopped &&
                    !(driver->distrusts_some && crowd_driver_is_distrusted(driver, &message->from));
    if (!is_heard) {
        return;
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = message->bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    uint64_t blamed_count = crowd_counters(driver->crowd)->blamed_count;
    crowd_driver_step(driver, &event);
    if (driver->has_wants) {
        crowd_driver_take_wants(driver);
    }
    if (crowd_counters(driver->crowd)->blamed_count == blamed_count) {
        crowd_driver_hear(driver, &message->from);
    }
}

void crowd_driver_wake(struct crowd_driver *driver) {
    if (driver->crowd != NULL && !driver->is_stopped) {
        crowd_driver_step(driver, &(struct event){.kind = EVENT_WAKE});
        crowd_driver_repeat_spoiled(driver);
        crowd_driver_take_wants(driver);
        crowd_driver_join(driver);
    }
}

/* ---- what people are shown ---- */

static const char *const kinds[] = {[CROWD_CYCLON] = "cyclon", [CROWD_PROOFS] = "proofs"};
static const char *const parts[CROWD_PARTS_COUNT] = {
    [CROWD_FULL] = "full",
    [CROWD_QUERY_ONLY] = "query-only",
    [CROWD_TUNNEL] = "tunnel",
    [CROWD_MUTE] = "mute",
};

static void crowd_put_counters(const struct crowd_counters *counters,
                               const struct crowd_driver_totals *totals, uint64_t open_count,
                               uint64_t waiting_count, struct json *json) {
    json_open(json, "shuffles");
    JSON_COUNTS(json, {"begun", counters->shuffles_count}, {"answered", counters->shuffled_count},
                {"rejected", counters->rejected_count}, {"silent", counters->silent_count},
                {"served", counters->served_count}, {"joins", counters->joins_count},
                {"rejoins", totals->rejoins_count});
    json_close(json);
    json_open(json, "searches");
    JSON_COUNTS(json, {"begun", counters->searches_count}, {"found", counters->found_count},
                {"lost", counters->lost_count}, {"absent", counters->absent_count},
                {"tries", counters->tries_count}, {"open", open_count}, {"waiting", waiting_count},
                {"wanted", totals->finds_count}, {"shared", totals->shared_count},
                {"refused", totals->refused_count}, {"timeouts", totals->timeouts_count});
    json_close(json);
    json_open(json, "queries");
    JSON_COUNTS(json, {"received", counters->queries_count}, {"repeats", counters->repeats_count},
                {"limited", counters->limited_count}, {"crowded_out", counters->crowded_out_count},
                {"fruitless", counters->fruitless_count}, {"hits", counters->hits_count},
                {"forwarded", counters->forwarded_count}, {"reselected", counters->reselected_count},
                {"relayed", counters->relayed_count});
    json_close(json);
    json_open(json, "messages");
    JSON_COUNTS(json, {"received", counters->received_count}, {"malformed", counters->malformed_count},
                {"foreign", counters->foreign_count}, {"unasked", counters->unasked_count},
                {"blamed", counters->blamed_count});
    json_close(json);
}

static void put_neighbour(const struct crowd_neighbour *neighbour, struct json *json) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    json_open(json, NULL);
    json_text(json, "address", address_format(&neighbour->peer.address, address));
    json_text(json, "key", identity_key_format(neighbour->peer.key, key));
    json_count(json, "age", neighbour->age);
    json_close(json);
}

/* The lock is held, as below. */
static uint64_t open_count(const struct crowd_driver *driver) {
    uint64_t count = 0;
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        count += driver->searches[i].state != CROWD_DRIVER_FREE;
    }
    return count;
}

static void put_view(const struct crowd_driver *driver, struct json *json) {
    const struct crowd_config *config = &driver->config.crowd;
    unsigned view_size = config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE;
    size_t count = driver->neighbours_count;
    bool is_light = driver->config.search != NULL; /* and has no view */
    json_text(json, "state",
              is_light                 ? "light"
              : count == 0             ? "joining"
              : count < view_size / 4u ? "alone"
                                       : "part");
    json_text(json, "overlay", kinds[config->kind]);
    json_text(json, "part", parts[config->part]);
    JSON_COUNTS(json, {"view_size", view_size},
                {"fanout", config->fanout > 0 ? config->fanout : CROWD_DRIVER_FANOUT});
    json_open_list(json, "view");
    for (size_t i = 0; i < count; i++) {
        put_neighbour(&driver->neighbours[i], json);
    }
    json_close(json);
    JSON_COUNTS(json, {"contacts", driver->contacts_count}, {"distrusted", driver->totals.distrusted_count});
}

void crowd_driver_put(struct crowd_driver *driver, struct json *json) {
    pthread_mutex_lock(&driver->lock);
    put_view(driver, json);
    crowd_put_counters(&driver->counters, &driver->totals, open_count(driver), driver->waiting_count, json);
    pthread_mutex_unlock(&driver->lock);
}

void crowd_driver_put_metrics(struct crowd_driver *driver, struct buf *out) {
    pthread_mutex_lock(&driver->lock);
    const struct crowd_counters counters = driver->counters;
    const struct crowd_driver_totals totals = driver->totals;
    size_t neighbours_count = driver->neighbours_count;
    size_t waiting_count = driver->waiting_count;
    pthread_mutex_unlock(&driver->lock);
    METRICS_PUT(
        out, {"crowd_neighbours", "Neighbours of this node in the crowd.", neighbours_count},
        {"crowd_searches_waiting", "Readers that wait for a search.", waiting_count},
        {"crowd_shuffles_total", "Shuffles that this node began.", counters.shuffles_count},
        {"crowd_shuffles_answered_total", "Shuffles that were answered.", counters.shuffled_count},
        {"crowd_silent_total", "Neighbours that were dropped for their silence.", counters.silent_count},
        {"crowd_searches_total", "Searches of this node.", counters.searches_count},
        {"crowd_searches_found_total", "Searches that found something.", counters.found_count},
        {"crowd_searches_lost_total", "Searches that found nothing.", counters.lost_count},
        {"crowd_searches_refused_total", "Searches that were too many at once.", totals.refused_count},
        {"crowd_searches_timeouts_total", "Readers that waited for a search in vain.", totals.timeouts_count},
        {"crowd_rejoins_total", "How often this node joined the crowd again.", totals.rejoins_count});
    METRICS_PUT(
        out, {"crowd_queries_total", "Queries of other nodes.", counters.queries_count},
        {"crowd_queries_hits_total", "Queries that this node could answer.", counters.hits_count},
        {"crowd_queries_forwarded_total", "Copies of queries that were sent on.", counters.forwarded_count},
        {"crowd_queries_dropped_total", "Queries that were too many.",
         counters.limited_count + counters.crowded_out_count},
        {"crowd_malformed_total", "Messages of the crowd that make no sense.", counters.malformed_count},
        {"crowd_blamed_total", "Messages of the crowd against its rules.", counters.blamed_count});
}

/* This node in the middle, its neighbours in two columns beside it, so that no label hides another. */
static void show_figure(const struct crowd_driver *driver, struct sheet *sheet) {
    enum { WIDTH = 640, AWAY = 110, ROW_HEIGHT = 22, LABEL_GAP = 12 };
    size_t count = driver->neighbours_count;
    size_t left_count = count / 2;
    int height = (int)(count - left_count + 1) * ROW_HEIGHT;
    sheet_format(
        sheet,
        "<figure><svg class=ring viewBox=\"0 0 %d %d\" role=img aria-label=\"%zu neighbours of this node\">",
        WIDTH, height, count);
    for (size_t i = 0; i < count; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        bool is_left = i < left_count;
        size_t rows_count = is_left ? left_count : count - left_count;
        size_t row = is_left ? i : i - left_count;
        int x = is_left ? WIDTH / 2 - AWAY : WIDTH / 2 + AWAY;
        int y = height * (int)(2 * row + 1) / (int)(2 * rows_count);
        sheet_format(sheet, "<line class=finger x1=%d y1=%d x2=%d y2=%d />", WIDTH / 2, height / 2, x, y);
        sheet_format(sheet, "<circle class=other cx=%d cy=%d r=5 /><text x=%d y=%d text-anchor=%s>%s</text>",
                     x, y, x + (is_left ? -LABEL_GAP : LABEL_GAP), y + 4, is_left ? "end" : "start",
                     address_format(&driver->neighbours[i].peer.address, address));
    }
    sheet_format(sheet, "<circle class=own cx=%d cy=%d r=8 /></svg></figure>\n", WIDTH / 2, height / 2);
}

void crowd_driver_show(struct crowd_driver *driver, struct sheet *sheet,
                       struct crowd_counters *ret_counters) {
    const struct crowd_config *config = &driver->config.crowd;
    pthread_mutex_lock(&driver->lock);
    sheet_format(sheet,
                 "<p>A node that has read a capture hands it on to others. %zu of %u neighbours, chosen at "
                 "random and exchanged again and again (<code>%s</code>); this node takes part as "
                 "<code>%s</code>.\n",
                 driver->neighbours_count, config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE,
                 kinds[config->kind], parts[config->part]);
    show_figure(driver, sheet);
    *ret_counters = driver->counters;
    pthread_mutex_unlock(&driver->lock);
}
