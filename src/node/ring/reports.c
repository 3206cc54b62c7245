#include "node/ring/reports.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/wire.h"

enum {
    LISTED_MAX = 256, /* in one question */
    LISTED_SIZE = PEER_KEY_SIZE + 8,
    ANSWER_SIZE_MAX = 256 << 10,
    HEAD_SIZE_MAX = 2 * WIRE_VARINT_SIZE_MAX, /* of a report in an answer */
    AGE_MS_MAX = 2 * 86400 * 1000,
    ASK_MS = 5000,
    NEW_ASKED_MAX =
        4, /* nodes without a report that are asked in one beat, beside the one whose turn it is */
};
static const uint64_t SECOND_US = 1000000;
static const uint64_t CLOCK_US_MAX = 900000; /* an answer that took longer says little of the other's clock */
static const uint64_t DAY_US = UINT64_C(86400) * 1000000;

struct entry {
    struct peer peer;
    bool is_here;
    uint64_t known_at_us; /* when the ring knew it last */
    uint64_t number;      /* 0: there is no report */
    uint64_t heard_at_us; /* when its node made the report, by our monotonic clock */
    uint8_t *encoded;
    size_t encoded_size;
    bool has_clock;
    int64_t clock_offset_us;
    bool is_asked; /* a question is under way, as of ask_until_us */
    uint64_t ask_until_us;
};

struct reports {
    struct reports_config config;
    pthread_mutex_t lock;
    struct entry *entries[REPORTS_NODES_MAX]; /* lock; the first one is this node */
    size_t count;                             /* lock */
    size_t turn;                              /* lock: whose turn it is to be asked */
    size_t list_turn;                         /* lock: where the list of the next question begins */
    uint64_t number;         /* lock: of this node's last report, here or as others have it */
    uint64_t made_at_us;     /* the beat's */
    struct node_report made; /* the beat's */
};

static uint64_t reports_now_us(const struct reports *reports) {
    return clock_monotonic_us(reports->config.clock);
}

static uint64_t reports_wall_us(const struct reports *reports) {
    int64_t wall_us = clock_wall_us(reports->config.clock);
    return wall_us > 0 ? (uint64_t)wall_us : 0;
}

/* ---- the table; the lock is held ---- */

static void entry_free(struct entry *entry) {
    if (entry != NULL) {
        free(entry->encoded);
        free(entry);
    }
}

static struct entry *reports_find(const struct reports *reports, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = 0; i < reports->count; i++) {
        if (memcmp(reports->entries[i]->peer.key, key, PEER_KEY_SIZE) == 0) {
            return reports->entries[i];
        }
    }
    return NULL;
}

/* The place of the node that has been gone longest. NULL: all are here. */
static struct entry **reports_oldest(struct reports *reports) {
    struct entry **oldest = NULL;
    for (size_t i = 1; i < reports->count; i++) {
        struct entry **place = &reports->entries[i];
        if (!(*place)->is_here && (oldest == NULL || (*place)->known_at_us < (*oldest)->known_at_us)) {
            oldest = place;
        }
    }
    return oldest;
}

/* NULL: no memory, or too many nodes. */
static struct entry *reports_add(struct reports *reports, const struct peer *peer) {
    struct entry *entry = calloc(1, sizeof *entry);
    struct entry **place =
        reports->count < REPORTS_NODES_MAX ? &reports->entries[reports->count] : reports_oldest(reports);
    if (entry == NULL || place == NULL) {
        free(entry);
        return NULL;
    }
    entry->peer = *peer;
    if (reports->count < REPORTS_NODES_MAX) {
        reports->count++;
    } else {
        entry_free(*place);
    }
    *place = entry;
    return entry;
}

static bool entry_keep(struct entry *entry, uint64_t number, uint64_t heard_at_us, struct bytes encoded) {
    uint8_t *copy = malloc(encoded.size);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, encoded.data, encoded.size);
    free(entry->encoded);
    entry->encoded = copy;
    entry->encoded_size = encoded.size;
    entry->number = number;
    entry->heard_at_us = heard_at_us;
    return true;
}

/* ---- begin and end ---- */

struct reports *reports_new(const struct reports_config *config) {
    struct reports *reports = calloc(1, sizeof *reports);
    struct peer self = {.address = {.port = 0}};
    if (reports == NULL) {
        return NULL;
    }
    if (config->peer_rpc != NULL) {
        self.address = peer_rpc_address(config->peer_rpc);
    }
    reports->config = *config;
    pthread_mutex_init(&reports->lock, NULL);
    memcpy(self.key, config->identity->key, PEER_KEY_SIZE);
    if (reports_add(reports, &self) == NULL) {
        reports_free(reports);
        return NULL;
    }
    if (config->peer_rpc != NULL) {
        peer_rpc_serve(config->peer_rpc, PEER_RPC_REPORTS, reports_answer, reports);
    }
    return reports;
}

void reports_free(struct reports *reports) {
    if (reports == NULL) {
        return;
    }
    for (size_t i = 0; i < reports->count; i++) {
        entry_free(reports->entries[i]);
    }
    pthread_mutex_destroy(&reports->lock);
    free(reports);
}

/* ---- questions and answers ---- */

void reports_put_question(struct reports *reports, struct buf *out) {
    uint8_t memory[1 + LISTED_MAX * LISTED_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    pthread_mutex_lock(&reports->lock);
    size_t count = reports->count < LISTED_MAX ? reports->count : LISTED_MAX;
    wire_write_bool(&writer, count == reports->count);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = reports->entries[(reports->list_turn + i) % reports->count];
        wire_write_bytes(&writer, bytes_of(entry->peer.key, PEER_KEY_SIZE));
        wire_write_u64(&writer, entry->number);
    }
    reports->list_turn = (reports->list_turn + count) % reports->count;
    pthread_mutex_unlock(&reports->lock);
    buf_put(out, wire_writer_bytes(&writer));
}

/* Which number the asker has; UINT64_MAX: it did not say, and may have it. */
static uint64_t listed_number(struct bytes list, bool is_all, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t at = 0; at < list.size; at += LISTED_SIZE) {
        if (memcmp(list.data + at, key, PEER_KEY_SIZE) == 0) {
            struct wire_reader reader;
            wire_reader_init(&reader, bytes_of(list.data + at + PEER_KEY_SIZE, LISTED_SIZE - PEER_KEY_SIZE));
            return wire_read_u64(&reader);
        }
    }
    return is_all ? 0 : UINT64_MAX;
}

static void put_entry(const struct entry *entry, bool is_self, uint64_t now_us, struct buf *answer) {
    uint8_t head[HEAD_SIZE_MAX];
    struct wire_writer writer;
    uint64_t age_ms = now_us > entry->heard_at_us && !is_self ? (now_us - entry->heard_at_us) / 1000 : 0;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_varint(&writer, age_ms < AGE_MS_MAX ? age_ms : AGE_MS_MAX);
    wire_write_varint(&writer, entry->encoded_size);
    buf_put(answer, wire_writer_bytes(&writer));
    buf_put(answer, bytes_of(entry->encoded, entry->encoded_size));
}

enum err reports_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail) {
    struct reports *reports = context;
    uint8_t clock[8];
    struct wire_writer writer;
    bool is_list = question.size > 0 && question.data[0] <= 1 && (question.size - 1) % LISTED_SIZE == 0;
    (void)from;
    if (!is_list || question.size > 1 + LISTED_MAX * LISTED_SIZE) {
        return err_set(detail, ERR_INVALID, "no list of reports");
    }
    struct bytes list = bytes_skip(question, 1);
    uint64_t now_us = reports_now_us(reports);
    wire_writer_init(&writer, clock, sizeof clock);
    wire_write_u64(&writer, reports_wall_us(reports));
    buf_put(answer, wire_writer_bytes(&writer));
    pthread_mutex_lock(&reports->lock);
    for (size_t i = 0; i < reports->count; i++) {
        const struct entry *entry = reports->entries[i];
        bool fits = answer->size + entry->encoded_size + HEAD_SIZE_MAX <= ANSWER_SIZE_MAX;
        if (entry->number > 0 && fits &&
            entry->number > listed_number(list, question.data[0] == 1, entry->peer.key)) {
            put_entry(entry, i == 0, now_us, answer);
        }
    }
    pthread_mutex_unlock(&reports->lock);
    return answer->err;
}

/* One of them. Of this node itself: others have a later number than we, which has forgotten it. */
static enum err take_report(struct reports *reports, uint64_t age_ms, struct bytes encoded,
                            struct node_report *report, struct err_detail *detail) {
    uint64_t now_us = reports_now_us(reports);
    enum err err = node_report_read(encoded, NULL, report, detail);
    if (err == ERR_UNSUPPORTED) {
        return ERR_OK; /* of a later program: nothing to show */
    }
    if (err != ERR_OK) {
        return err;
    }
    bool is_ours = memcmp(report->ring, reports->config.ring, NODE_REPORT_RING_SIZE) == 0;
    pthread_mutex_lock(&reports->lock);
    const struct entry *entry = reports_find(reports, report->key);
    bool is_new = is_ours && entry != NULL && report->number > entry->number;
    pthread_mutex_unlock(&reports->lock);
    if (!is_new) {
        return ERR_OK;
    }
    err = node_report_read(encoded, identity_verify, report, detail);
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&reports->lock);
    struct entry *found = reports_find(reports, report->key); /* it may have been forgotten meanwhile */
    if (found != NULL && found == reports->entries[0]) {
        reports->number = report->number > reports->number ? report->number : reports->number;
    } else if (found != NULL && report->number > found->number) {
        uint64_t age_us = age_ms * 1000;
        (void)entry_keep(found, report->number, now_us > age_us ? now_us - age_us : 1, encoded);
    }
    pthread_mutex_unlock(&reports->lock);
    return ERR_OK;
}

enum err reports_take_answer(struct reports *reports, const struct peer *from, uint64_t took_us,
                             struct bytes answer, struct err_detail *detail) {
    struct node_report *report = malloc(sizeof *report);
    struct wire_reader reader;
    enum err err = report != NULL ? ERR_OK : ERR_MEMORY;
    wire_reader_init(&reader, answer);
    uint64_t clock_us = wire_read_u64(&reader);
    while (err == ERR_OK && wire_reader_left(&reader) > 0) {
        uint64_t age_ms = wire_read_varint(&reader, AGE_MS_MAX);
        struct bytes encoded = wire_read_string(&reader, NODE_REPORT_SIZE_MAX);
        if (reader.err == ERR_OK) {
            err = take_report(reports, age_ms, encoded, report, detail);
        }
    }
    err = err == ERR_OK ? wire_reader_finish(&reader, detail) : err;
    pthread_mutex_lock(&reports->lock);
    struct entry *entry = reports_find(reports, from->key);
    if (err == ERR_OK && entry != NULL && clock_us <= INT64_MAX && took_us <= CLOCK_US_MAX) {
        int64_t then_us =
            clock_wall_us(reports->config.clock) - (int64_t)took_us / 2; /* it answered, about */
        entry->has_clock = true;
        entry->clock_offset_us = (int64_t)clock_us - then_us;
    }
    pthread_mutex_unlock(&reports->lock);
    free(report);
    return err;
}

/* ---- asking: the thread of peer_rpc ---- */

struct reports_talk {
    struct reports *reports;
    struct peer peer;
    uint64_t asked_at_us;
    struct buf question;
};

static void talk_end(void *context, enum err err, struct bytes answer) {
    struct reports_talk *talk = context;
    struct reports *reports = talk->reports;
    struct err_detail detail = {0};
    if (err == ERR_OK) {
        uint64_t took_us = reports_now_us(reports) - talk->asked_at_us;
        err = reports_take_answer(reports, &talk->peer, took_us, answer, &detail);
        if (err != ERR_OK && err != ERR_MEMORY && reports->config.blame != NULL) {
            reports->config.blame(reports->config.context, &talk->peer,
                                  "gives reports of nodes that are none");
        }
    }
    pthread_mutex_lock(&reports->lock);
    struct entry *entry = reports_find(reports, talk->peer.key);
    if (entry != NULL) {
        entry->is_asked = false;
    }
    pthread_mutex_unlock(&reports->lock);
    buf_done(&talk->question);
    free(talk);
}

static void talk_begin(void *context) {
    struct reports_talk *talk = context;
    reports_put_question(talk->reports, &talk->question);
    talk->asked_at_us = reports_now_us(talk->reports);
    enum err err = peer_rpc_call(talk->reports->config.peer_rpc, &talk->peer, PEER_RPC_REPORTS,
                                 buf_bytes(&talk->question), ASK_MS, talk_end, talk);
    if (err != ERR_OK) {
        talk_end(talk, err, bytes_of(NULL, 0));
    }
}

static void reports_ask(struct reports *reports, const struct peer *peer) {
    struct reports_talk *talk = calloc(1, sizeof *talk);
    if (talk == NULL) {
        return;
    }
    *talk = (struct reports_talk){.reports = reports, .peer = *peer};
    buf_init(&talk->question, PEER_RPC_QUESTION_SIZE_MAX);
    if (peer_rpc_post(reports->config.peer_rpc, talk_begin, talk) != ERR_OK) {
        talk_end(talk, ERR_CANCELLED, bytes_of(NULL, 0));
    }
}

/* ---- the beat ---- */

static void beat_note_nodes(struct reports *reports, const struct peer *nodes, size_t count) {
    uint64_t now_us = reports_now_us(reports);
    pthread_mutex_lock(&reports->lock);
    for (size_t i = 1; i < reports->count; i++) {
        reports->entries[i]->is_here = false;
    }
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = reports_find(reports, nodes[i].key);
        entry = entry != NULL ? entry : reports_add(reports, &nodes[i]);
        if (entry != NULL) {
            entry->peer = nodes[i];
            entry->is_here = true;
            entry->known_at_us = now_us;
        }
    }
    reports->entries[0]->is_here = true;
    for (size_t i = reports->count; i-- > 1;) {
        struct entry *entry = reports->entries[i];
        if (!entry->is_here && now_us > entry->known_at_us + DAY_US) {
            entry_free(entry);
            reports->entries[i] = reports->entries[--reports->count];
        }
    }
    pthread_mutex_unlock(&reports->lock);
}

/* A clock that was set back makes no number smaller. */
static void beat_make(struct reports *reports) {
    const struct reports_config *config = &reports->config;
    uint8_t memory[NODE_REPORT_SIZE_MAX];
    struct node_report *report = &reports->made;
    uint64_t wall_us = reports_wall_us(reports);
    *report = (struct node_report){.time_us = wall_us};
    memcpy(report->ring, config->ring, sizeof report->ring);
    memcpy(report->key, config->identity->key, sizeof report->key);
    snprintf(report->program, sizeof report->program, "%s", config->program != NULL ? config->program : "");
    config->collect(config->context, report);
    pthread_mutex_lock(&reports->lock);
    reports->number = wall_us > reports->number ? wall_us : reports->number + 1;
    report->number = reports->number;
    pthread_mutex_unlock(&reports->lock);
    struct bytes encoded = node_report_write(report, identity_sign, config->identity, memory);
    uint64_t now_us = reports_now_us(reports);
    pthread_mutex_lock(&reports->lock);
    (void)entry_keep(reports->entries[0], report->number, now_us, encoded);
    pthread_mutex_unlock(&reports->lock);
}

/* Is it one to be asked now? The lock is held. */
static bool beat_may_ask(struct reports *reports, struct entry *entry, uint64_t now_us) {
    bool is_open = entry->is_asked && now_us < entry->ask_until_us;
    return entry->is_here && !is_open && reports->config.peer_rpc != NULL &&
           reports->config.dialects != NULL &&
           dialects_has(reports->config.dialects, &entry->peer, DIALECT_REPORTS);
}

static void beat_choose(struct entry *entry, uint64_t now_us, struct peer *out, size_t *count) {
    entry->is_asked = true;
    entry->ask_until_us = now_us + 2 * ASK_MS * 1000;
    out[(*count)++] = entry->peer;
}

static void beat_ask(struct reports *reports) {
    struct peer chosen[1 + NEW_ASKED_MAX];
    size_t count = 0;
    uint64_t now_us = reports_now_us(reports);
    pthread_mutex_lock(&reports->lock);
    for (size_t i = 0; i < reports->count && count == 0; i++) {
        size_t index = (reports->turn + i) % reports->count;
        if (index > 0 && beat_may_ask(reports, reports->entries[index], now_us)) {
            beat_choose(reports->entries[index], now_us, chosen, &count);
            reports->turn = index + 1;
        }
    }
    for (size_t i = 1; i < reports->count && count < 1 + NEW_ASKED_MAX; i++) {
        struct entry *entry = reports->entries[i];
        if (entry->number == 0 && beat_may_ask(reports, entry, now_us)) {
            beat_choose(entry, now_us, chosen, &count);
        }
    }
    pthread_mutex_unlock(&reports->lock);
    for (size_t i = 0; i < count; i++) {
        reports_ask(reports, &chosen[i]);
    }
}

void reports_beat(struct reports *reports, const struct peer *nodes, size_t count) {
    uint64_t now_us = reports_now_us(reports);
    uint64_t period_us =
        reports->config.period_us > 0 ? reports->config.period_us : 5 * SECOND_US + count * (SECOND_US / 20);
    beat_note_nodes(reports, nodes, count);
    if (reports->made_at_us == 0 || now_us >= reports->made_at_us + period_us) {
        reports->made_at_us = now_us;
        beat_make(reports);
    }
    beat_ask(reports);
}

/* ---- for people ---- */

static int compare_entries(const void *a, const void *b) {
    const struct entry *const *first = a;
    const struct entry *const *second = b;
    int order =
        memcmp((*first)->peer.address.ip, (*second)->peer.address.ip, sizeof(*first)->peer.address.ip);
    return order != 0 ? order : (int)(*first)->peer.address.port - (int)(*second)->peer.address.port;
}

/* A node that has not said hello yet may turn out to be one that sends them. */
static bool reports_may_come(const struct reports *reports, const struct peer *peer) {
    if (reports->config.dialects == NULL) {
        return false;
    }
    struct dialects_known known = dialects_find(reports->config.dialects, peer);
    return !known.is_known || (known.version > 0 && dialect_has(&known.dialect, DIALECT_REPORTS));
}

size_t reports_each(struct reports *reports, void (*each)(void *context, const struct reports_node *node),
                    void *context) {
    struct reports_node *node = malloc(sizeof *node);
    uint64_t now_us = reports_now_us(reports);
    pthread_mutex_lock(&reports->lock);
    size_t count = node != NULL ? reports->count : 0;
    qsort(reports->entries + 1, reports->count - 1, sizeof *reports->entries, compare_entries);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = reports->entries[i];
        *node = (struct reports_node){
            .peer = entry->peer,
            .is_self = i == 0,
            .is_here = entry->is_here,
            .has_feature = i == 0 || reports_may_come(reports, &entry->peer),
            .number = entry->number,
            .heard_ago_us = now_us > entry->heard_at_us ? now_us - entry->heard_at_us : 0,
            .has_clock = entry->has_clock,
            .clock_offset_us = entry->clock_offset_us,
        };
        struct bytes encoded = bytes_of(entry->encoded, entry->encoded_size);
        node->has_report =
            entry->number > 0 && node_report_read(encoded, NULL, &node->report, NULL) == ERR_OK;
        each(context, node);
    }
    pthread_mutex_unlock(&reports->lock);
    free(node);
    return count;
}
