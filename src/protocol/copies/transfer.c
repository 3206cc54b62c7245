#include "protocol/copies/transfer.h"

#include <string.h>

#include "base/assert.h"
#include "base/prng.h"
#include "base/retry.h"

enum {
    NONE = UINT32_MAX,
    TRIES_MAX = 3,        /* again, after the first time */
    KEYS_MIN = 4,         /* of a question, however large captures seem to be */
    SIZE_FIRST = 8 << 10, /* of a capture, before one has come */
    WINDOW_FIRST = 256 << 10,
};
static const uint64_t LATE_US = 500000;      /* until what was not given is asked for again */
static const uint64_t OVERDUE_US = 1000000;  /* beside four times the shortest: then others are asked, too */
static const uint64_t SLACK_US = 200000;     /* that answers may queue */
static const uint64_t MEASURE_US = 30000000; /* a line may become longer for good */
static const uint64_t SILENT_US = 1000000;   /* that a silent giver is left alone, the first time */
static const uint64_t SILENT_US_MAX = 30000000; /* and at most */

enum item_state { ITEM_FREE, ITEM_WAITING, ITEM_PARKED, ITEM_ASKED };

struct transfer_item {
    struct ringkey key;
    uint32_t giver;
    uint32_t next;        /* in the list that it is in */
    uint32_t next_known;  /* of those with the same hash of key */
    uint32_t next_leader; /* of those with the same hash of digest */
    uint32_t parked;      /* the first of those that wait for it, while it is asked for */
    uint32_t question;    /* that asks for it */
    uint8_t state;
    uint8_t lane;
    uint8_t tries_count;
    bool is_alone;
    bool is_leader;     /* others with this digest wait for it */
    bool is_overdue;    /* nobody waits for it any more */
    bool wants_payload; /* it is not here, whatever the set says */
};

struct transfer_list {
    uint32_t first;
    uint32_t last;
};

struct transfer_giver_state {
    struct peer peer;
    bool is_used;
    bool is_old; /* it knows no questions for many keys */
    struct transfer_list lanes[TRANSFER_ORDER_LANES_COUNT];
    struct transfer_list alone;
    struct transfer_list late;
    uint64_t late_us; /* then these wait like the others */
    struct transfer_order_queue order;
    uint32_t items_count; /* in any state */
    uint32_t questions_count;
    uint32_t alone_count; /* questions */
    uint32_t window;
    uint32_t open_size;   /* that questions under way ask for */
    uint32_t item_size;   /* of a capture in an answer, smoothed */
    uint64_t shortest_us; /* that an answer took; 0: none yet */
    uint64_t measure_us;  /* then it is measured again, with nothing else under way */
    uint64_t held_until_us;
    uint32_t silent_count; /* in a row */
    uint64_t used_at;      /* counts turns */
};

struct transfer_open {
    bool is_used;
    bool is_alone;
    bool is_full;    /* the window was what kept it from being larger */
    bool is_overdue; /* nobody else waits for it any more */
    uint32_t giver;
    uint32_t count;
    uint32_t size_max;
    uint64_t asked_us;
};

struct transfer {
    struct transfer_config config;
    struct transfer_item *items; /* wanted_max */
    uint32_t *known;             /* hash of key -> item */
    uint32_t *leaders;           /* hash of digest -> item */
    uint32_t *place_counts;      /* hash of place -> items */
    uint32_t mask;               /* of these tables */
    uint32_t free;               /* list */
    uint32_t lane_counts[TRANSFER_ORDER_LANES_COUNT];
    uint32_t asked_count;
    struct transfer_giver_state *givers; /* givers_max */
    struct transfer_open *open;          /* questions_max + alone_max */
    uint32_t questions_count;            /* for many */
    uint32_t alone_count;
    uint32_t cursor; /* the giver whose turn is next */
    uint64_t turns_count;
};

/* ---- memory ---- */

static uint32_t transfer_or_default(uint32_t value, uint32_t fallback) {
    return value > 0 ? value : fallback;
}

static struct transfer_config transfer_complete(const struct transfer_config *config) {
    struct transfer_config full = *config;
    full.wanted_max = transfer_or_default(config->wanted_max, 32768);
    full.givers_max = transfer_or_default(config->givers_max, 64);
    full.questions_max = transfer_or_default(config->questions_max, 64);
    full.alone_max = transfer_or_default(config->alone_max, 3);
    return full;
}

static uint32_t table_count(const struct transfer_config *config) {
    uint32_t count = 16;
    while (count < config->wanted_max) {
        count *= 2;
    }
    return count;
}

static size_t part_size(size_t count, size_t size) {
    return (count * size + 15) / 16 * 16;
}

size_t transfer_size(const struct transfer_config *config) {
    struct transfer_config full = transfer_complete(config);
    return part_size(1, sizeof(struct transfer)) + part_size(full.wanted_max, sizeof(struct transfer_item)) +
           3 * part_size(table_count(&full), sizeof(uint32_t)) +
           part_size(full.givers_max, sizeof(struct transfer_giver_state)) +
           part_size(full.questions_max + full.alone_max, sizeof(struct transfer_open));
}

static void *part_take(uint8_t **at, size_t count, size_t size) {
    void *part = *at;
    *at += part_size(count, size);
    return part;
}

struct transfer *transfer_init(void *memory, const struct transfer_config *config) {
    uint8_t *at = memory;
    memset(memory, 0, transfer_size(config));
    struct transfer *transfer = part_take(&at, 1, sizeof *transfer);
    transfer->config = transfer_complete(config);
    uint32_t count = table_count(&transfer->config);
    transfer->items = part_take(&at, transfer->config.wanted_max, sizeof transfer->items[0]);
    transfer->known = part_take(&at, count, sizeof transfer->known[0]);
    transfer->leaders = part_take(&at, count, sizeof transfer->leaders[0]);
    transfer->place_counts = part_take(&at, count, sizeof transfer->place_counts[0]);
    transfer->givers = part_take(&at, transfer->config.givers_max, sizeof transfer->givers[0]);
    transfer->open =
        part_take(&at, transfer->config.questions_max + transfer->config.alone_max, sizeof transfer->open[0]);
    transfer->mask = count - 1;
    memset(transfer->known, 0xff, count * sizeof transfer->known[0]);
    memset(transfer->leaders, 0xff, count * sizeof transfer->leaders[0]);
    transfer->free = NONE;
    for (uint32_t i = transfer->config.wanted_max; i-- > 0;) {
        transfer->items[i].next = transfer->free;
        transfer->free = i;
    }
    return transfer;
}

/* ---- lists and tables of items ---- */

static const struct transfer_list EMPTY = {NONE, NONE};

static void list_append(struct transfer *transfer, struct transfer_list *list, uint32_t item) {
    transfer->items[item].next = NONE;
    if (list->first == NONE) {
        list->first = item;
    } else {
        transfer->items[list->last].next = item;
    }
    list->last = item;
}

static void list_prepend(struct transfer *transfer, struct transfer_list *list, uint32_t item) {
    transfer->items[item].next = list->first;
    list->last = list->first == NONE ? item : list->last;
    list->first = item;
}

static uint32_t list_take(struct transfer *transfer, struct transfer_list *list) {
    uint32_t item = list->first;
    list->first = transfer->items[item].next;
    list->last = list->first == NONE ? NONE : list->last;
    return item;
}

static uint64_t load_u64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint32_t *known_slot(struct transfer *transfer, const struct ringkey *key) {
    uint64_t hash = prng_mix(transfer->config.seed ^ load_u64(key->bytes));
    hash = prng_mix(hash ^ load_u64(key->bytes + RINGKEY_POSITION_SIZE)); /* many have one position */
    hash = prng_mix(hash ^ load_u64(ringkey_digest(key)));
    return &transfer->known[hash & transfer->mask];
}

static uint32_t *leader_slot(struct transfer *transfer, const struct ringkey *key) {
    uint64_t hash = prng_mix(transfer->config.seed ^ load_u64(ringkey_digest(key)));
    return &transfer->leaders[hash & transfer->mask];
}

static uint32_t *place_slot(const struct transfer *transfer, const uint8_t *place) {
    uint64_t hash = prng_mix(transfer->config.seed ^ load_u64(place));
    return &transfer->place_counts[hash & transfer->mask];
}

static uint32_t find_known(struct transfer *transfer, const struct ringkey *key, uint32_t giver) {
    uint32_t item = *known_slot(transfer, key);
    while (item != NONE && (transfer->items[item].giver != giver ||
                            memcmp(&transfer->items[item].key, key, sizeof *key) != 0)) {
        item = transfer->items[item].next_known;
    }
    return item;
}

/* Somebody is asked for this very capture. */
static uint32_t find_asked(struct transfer *transfer, const struct ringkey *key) {
    uint32_t item = *known_slot(transfer, key);
    while (item != NONE && (transfer->items[item].state != ITEM_ASKED || transfer->items[item].is_overdue ||
                            memcmp(&transfer->items[item].key, key, sizeof *key) != 0)) {
        item = transfer->items[item].next_known;
    }
    return item;
}

static uint32_t find_leader(struct transfer *transfer, const struct ringkey *key) {
    uint32_t item = *leader_slot(transfer, key);
    while (item != NONE && memcmp(ringkey_digest(&transfer->items[item].key), ringkey_digest(key),
                                  RINGKEY_DIGEST_SIZE) != 0) {
        item = transfer->items[item].next_leader;
    }
    return item;
}

static void forget_known(struct transfer *transfer, uint32_t item) {
    uint32_t *at = known_slot(transfer, &transfer->items[item].key);
    while (*at != item) {
        at = &transfer->items[*at].next_known;
    }
    *at = transfer->items[item].next_known;
}

static void lead(struct transfer *transfer, uint32_t item) {
    uint32_t *slot = leader_slot(transfer, &transfer->items[item].key);
    transfer->items[item].is_leader = true;
    transfer->items[item].next_leader = *slot;
    *slot = item;
}

/* ---- givers ---- */

static struct transfer_list *queue_of(struct transfer *transfer, uint32_t item) {
    struct transfer_giver_state *giver = &transfer->givers[transfer->items[item].giver];
    return transfer->items[item].is_alone ? &giver->alone : &giver->lanes[transfer->items[item].lane];
}

static void stop_leading(struct transfer *transfer, uint32_t item) {
    uint32_t *at = leader_slot(transfer, &transfer->items[item].key);
    while (*at != item) {
        at = &transfer->items[*at].next_leader;
    }
    *at = transfer->items[item].next_leader;
    transfer->items[item].is_leader = false;
}

/* Those that waited for it go back to the front: it is here now, or must come from another giver. */
static void let_go(struct transfer *transfer, uint32_t item) {
    struct transfer_item *leader = &transfer->items[item];
    if (leader->is_leader) {
        stop_leading(transfer, item);
    }
    for (uint32_t parked = leader->parked; parked != NONE;) {
        uint32_t next = transfer->items[parked].next;
        transfer->items[parked].state = ITEM_WAITING;
        list_prepend(transfer, queue_of(transfer, parked), parked);
        parked = next;
    }
    leader->parked = NONE;
}

static uint32_t find_giver(const struct transfer *transfer, const struct peer *peer) {
    for (uint32_t i = 0; i < transfer->config.givers_max; i++) {
        if (transfer->givers[i].is_used && peer_equal(&transfer->givers[i].peer, peer)) {
            return i;
        }
    }
    return NONE;
}

/* A place of its own, if need be that of one that nothing is wanted of; NONE: there is none. */
static uint32_t add_giver(struct transfer *transfer, const struct peer *peer) {
    uint32_t place = NONE;
    for (uint32_t i = 0; i < transfer->config.givers_max; i++) {
        const struct transfer_giver_state *giver = &transfer->givers[i];
        if (!giver->is_used) {
            place = i;
            break;
        }
        if (giver->items_count == 0 && giver->questions_count == 0 && giver->alone_count == 0 &&
            (place == NONE || giver->used_at < transfer->givers[place].used_at)) {
            place = i;
        }
    }
    if (place != NONE) {
        transfer->givers[place] = (struct transfer_giver_state){
            .peer = *peer,
            .is_used = true,
            .lanes = {EMPTY, EMPTY},
            .alone = EMPTY,
            .late = EMPTY,
            .window = WINDOW_FIRST,
            .item_size = SIZE_FIRST,
        };
    }
    return place;
}

/* ---- what is wanted ---- */

bool transfer_want(struct transfer *transfer, enum transfer_order_lane lane, const struct ringkey *key,
                   const struct peer *peer) {
    uint32_t giver = find_giver(transfer, peer);
    if (giver != NONE && find_known(transfer, key, giver) != NONE) {
        return true;
    }
    bool has_room =
        transfer->free != NONE && transfer->lane_counts[lane] < (transfer->config.wanted_max + 1) / 2;
    giver = has_room && giver == NONE ? add_giver(transfer, peer) : giver;
    if (!has_room || giver == NONE) {
        return false;
    }
    uint32_t item = transfer->free;
    transfer->free = transfer->items[item].next;
    uint32_t *slot = known_slot(transfer, key);
    transfer->items[item] = (struct transfer_item){.key = *key,
                                                   .giver = giver,
                                                   .next_known = *slot,
                                                   .parked = NONE,
                                                   .state = ITEM_WAITING,
                                                   .lane = (uint8_t)lane};
    *slot = item;
    ++*place_slot(transfer, key->bytes);
    transfer->lane_counts[lane]++;
    transfer->givers[giver].items_count++;
    list_append(transfer, queue_of(transfer, item), item);
    return true;
}

static void transfer_drop(struct transfer *transfer, uint32_t item) {
    let_go(transfer, item);
    forget_known(transfer, item);
    --*place_slot(transfer, transfer->items[item].key.bytes);
    transfer->lane_counts[transfer->items[item].lane]--;
    transfer->givers[transfer->items[item].giver].items_count--;
    transfer->items[item].state = ITEM_FREE;
    transfer->items[item].next = transfer->free;
    transfer->free = item;
}

/* ---- the next question ---- */

static bool has_waiting(const struct transfer_giver_state *giver) {
    return giver->lanes[TRANSFER_ORDER_OWN].first != NONE ||
           giver->lanes[TRANSFER_ORDER_OFFERED].first != NONE;
}

static void wake_late(struct transfer *transfer, struct transfer_giver_state *giver, uint64_t now_us) {
    while (giver->late.first != NONE && now_us >= giver->late_us) {
        uint32_t item = list_take(transfer, &giver->late);
        list_append(transfer, queue_of(transfer, item), item);
    }
}

static uint32_t answer_size(const struct transfer_giver_state *giver) {
    uint32_t size = giver->window / 4;
    return size < TRANSFER_ANSWER_MIN   ? TRANSFER_ANSWER_MIN
           : size > TRANSFER_ANSWER_MAX ? TRANSFER_ANSWER_MAX
                                        : size;
}

static bool has_window(const struct transfer_giver_state *giver, uint64_t now_us) {
    return giver->open_size == 0 ||
           (now_us < giver->measure_us && giver->open_size + answer_size(giver) <= giver->window);
}

static bool may_ask_many(const struct transfer *transfer, const struct transfer_giver_state *giver,
                         uint64_t now_us) {
    return !giver->is_old && has_waiting(giver) &&
           transfer->questions_count < transfer->config.questions_max && has_window(giver, now_us);
}

/* Not all that there are of one giver: threads wait for each. */
static bool may_ask_alone(const struct transfer *transfer, const struct transfer_giver_state *giver) {
    uint32_t count_max = transfer->config.alone_max > 1 ? transfer->config.alone_max - 1 : 1;
    return (giver->alone.first != NONE || (giver->is_old && has_waiting(giver))) &&
           transfer->alone_count < transfer->config.alone_max && giver->alone_count < count_max;
}

/* The item is part of the question, is here already, or waits for another one's payload. */
static void take_item(struct transfer *transfer, const struct transfer_set *set, uint32_t item,
                      struct transfer_question *question) {
    struct transfer_item *wanted = &transfer->items[item];
    if (set->has_key(set->context, &wanted->key)) {
        transfer_drop(transfer, item);
        return;
    }
    bool is_about = !wanted->wants_payload && set->has_payload(set->context, &wanted->key);
    uint32_t leader = find_asked(transfer, &wanted->key);
    leader = leader == NONE && !is_about ? find_leader(transfer, &wanted->key) : leader;
    if (leader != NONE) {
        wanted->state = ITEM_PARKED;
        wanted->next = transfer->items[leader].parked;
        transfer->items[leader].parked = item;
        return;
    }
    if (!is_about) {
        lead(transfer, item);
    }
    wanted->state = ITEM_ASKED;
    transfer->asked_count++;
    question->items[question->count] = item;
    question->keys[question->count] = wanted->key;
    question->is_about[question->count] = is_about;
    question->count++;
}

static void take_lane(struct transfer *transfer, struct transfer_giver_state *giver,
                      enum transfer_order_lane lane, const struct transfer_set *set, uint32_t count_max,
                      struct transfer_question *question) {
    while (giver->lanes[lane].first != NONE && question->count < count_max) {
        take_item(transfer, set, list_take(transfer, &giver->lanes[lane]), question);
    }
}

/* From the lane whose turn it is; over fast lines, from the other one too. */
static void take_lanes(struct transfer *transfer, struct transfer_giver_state *giver,
                       const struct transfer_set *set, uint32_t count_max,
                       struct transfer_question *question) {
    bool has_own = giver->lanes[TRANSFER_ORDER_OWN].first != NONE;
    bool has_offered = giver->lanes[TRANSFER_ORDER_OFFERED].first != NONE;
    enum transfer_order_lane lane = transfer_order_next(&giver->order, has_own, has_offered);
    take_lane(transfer, giver, lane, set, count_max, question);
    transfer_order_took(&giver->order, lane);
    if (!transfer->config.has_slow_lines || question->count == 0) {
        lane = lane == TRANSFER_ORDER_OWN ? TRANSFER_ORDER_OFFERED : TRANSFER_ORDER_OWN;
        take_lane(transfer, giver, lane, set, count_max, question);
    }
}

static void open_question(struct transfer *transfer, uint32_t index, uint64_t now_us,
                          struct transfer_question *question) {
    struct transfer_giver_state *giver = &transfer->givers[index];
    uint32_t id = 0;
    while (transfer->open[id].is_used) {
        id++; /* there is one free: the counts are below their bounds */
    }
    transfer->open[id] = (struct transfer_open){
        .is_used = true,
        .is_alone = question->is_alone,
        .is_full = giver->open_size + 2 * answer_size(giver) > giver->window,
        .giver = index,
        .count = question->count,
        .size_max = question->size_max,
        .asked_us = now_us,
    };
    question->id = id;
    question->giver = giver->peer;
    for (uint32_t i = 0; i < question->count; i++) {
        transfer->items[question->items[i]].question = id;
    }
    giver->used_at = ++transfer->turns_count;
    if (question->is_alone) {
        transfer->alone_count++;
        giver->alone_count++;
    } else {
        transfer->questions_count++;
        giver->questions_count++;
        giver->open_size += question->size_max;
    }
}

static bool ask_many(struct transfer *transfer, uint32_t index, const struct transfer_set *set,
                     uint64_t now_us, struct transfer_question *question) {
    struct transfer_giver_state *giver = &transfer->givers[index];
    if (!may_ask_many(transfer, giver, now_us)) {
        return false;
    }
    if (now_us >= giver->measure_us) {
        giver->shortest_us = 0;
        giver->measure_us = now_us + MEASURE_US;
    }
    question->size_max = answer_size(giver);
    uint32_t count_max = question->size_max / giver->item_size;
    count_max = count_max < KEYS_MIN            ? KEYS_MIN
                : count_max > TRANSFER_KEYS_MAX ? TRANSFER_KEYS_MAX
                                                : count_max;
    take_lanes(transfer, giver, set, count_max, question);
    if (question->count == 0) {
        return false;
    }
    open_question(transfer, index, now_us, question);
    return true;
}

static bool ask_alone(struct transfer *transfer, uint32_t index, const struct transfer_set *set,
                      uint64_t now_us, struct transfer_question *question) {
    struct transfer_giver_state *giver = &transfer->givers[index];
    if (!may_ask_alone(transfer, giver)) {
        return false;
    }
    while (giver->alone.first != NONE && question->count == 0) {
        take_item(transfer, set, list_take(transfer, &giver->alone), question);
    }
    if (giver->is_old && question->count == 0) {
        take_lanes(transfer, giver, set, 1, question);
    }
    if (question->count == 0) {
        return false;
    }
    question->is_alone = true;
    open_question(transfer, index, now_us, question);
    return true;
}

/* Over slow lines another giver has its turn as long as anything is under way with it. */
static bool is_turn_of(const struct transfer *transfer, uint32_t index) {
    for (uint32_t i = 0; transfer->config.has_slow_lines && i < transfer->config.givers_max; i++) {
        const struct transfer_giver_state *giver = &transfer->givers[i];
        if (i != index && giver->is_used && giver->questions_count + giver->alone_count > 0) {
            return false;
        }
    }
    return true;
}

static uint64_t overdue_at(const struct transfer *transfer, const struct transfer_open *open) {
    bool counts = open->is_used && !open->is_overdue && !open->is_alone;
    return counts ? open->asked_us + OVERDUE_US + 4 * transfer->givers[open->giver].shortest_us : UINT64_MAX;
}

/* What waits for the payloads of a giver that takes too long is asked of its own givers. */
static void release_overdue(struct transfer *transfer, uint64_t now_us) {
    for (uint32_t id = 0; id < transfer->config.questions_max + transfer->config.alone_max; id++) {
        if (now_us < overdue_at(transfer, &transfer->open[id])) {
            continue;
        }
        transfer->open[id].is_overdue = true;
        for (uint32_t i = 0; i < transfer->config.wanted_max; i++) {
            if (transfer->items[i].state == ITEM_ASKED && transfer->items[i].question == id) {
                transfer->items[i].is_overdue = true;
                let_go(transfer, i);
            }
        }
    }
}

bool transfer_next(struct transfer *transfer, const struct transfer_set *set, uint64_t now_us,
                   struct transfer_question *ret_question) {
    uint32_t givers_max = transfer->config.givers_max;
    release_overdue(transfer, now_us);
    ret_question->count = 0;
    ret_question->is_alone = false;
    ret_question->size_max = 0;
    for (uint32_t i = 0; i < givers_max; i++) {
        uint32_t index = (transfer->cursor + i) % givers_max;
        struct transfer_giver_state *giver = &transfer->givers[index];
        if (!giver->is_used || giver->items_count == 0 || now_us < giver->held_until_us ||
            !is_turn_of(transfer, index)) {
            continue;
        }
        wake_late(transfer, giver, now_us);
        if (ask_alone(transfer, index, set, now_us, ret_question) ||
            ask_many(transfer, index, set, now_us, ret_question)) {
            /* Over slow lines the same one goes on until it has given all: its line is filled. */
            transfer->cursor = transfer->config.has_slow_lines ? index : (index + 1) % givers_max;
            return true;
        }
    }
    return false;
}

uint64_t transfer_wake_at(const struct transfer *transfer, uint64_t now_us) {
    uint64_t wake_us = UINT64_MAX;
    for (uint32_t i = 0; i < transfer->config.questions_max + transfer->config.alone_max; i++) {
        uint64_t at_us = overdue_at(transfer, &transfer->open[i]);
        wake_us = at_us < wake_us ? at_us : wake_us;
    }
    for (uint32_t i = 0; i < transfer->config.givers_max; i++) {
        const struct transfer_giver_state *giver = &transfer->givers[i];
        if (!giver->is_used || giver->items_count == 0 || !is_turn_of(transfer, i)) {
            continue; /* what is under way wakes us */
        }
        bool may_ask = may_ask_many(transfer, giver, now_us) || may_ask_alone(transfer, giver);
        uint64_t at_us = may_ask ? now_us : giver->late.first != NONE ? giver->late_us : UINT64_MAX;
        at_us = at_us < giver->held_until_us ? giver->held_until_us : at_us;
        wake_us = at_us < wake_us ? at_us : wake_us;
    }
    return wake_us;
}

/* ---- how it went ---- */

/* As long as answers do not queue, more may be under way. */
static void fit_window(struct transfer_giver_state *giver, const struct transfer_open *open, uint64_t size,
                       uint64_t took_us) {
    took_us = took_us > 0 ? took_us : 1;
    bool is_shortest = giver->shortest_us == 0 || took_us < giver->shortest_us;
    giver->shortest_us = is_shortest ? took_us : giver->shortest_us;
    if (took_us > giver->shortest_us + giver->shortest_us / 4 + SLACK_US) {
        uint32_t less = giver->window - giver->window / 8;
        giver->window = less > TRANSFER_WINDOW_MIN ? less : TRANSFER_WINDOW_MIN;
    } else if (open->is_full) {
        uint64_t more = giver->window + size;
        giver->window = more < TRANSFER_WINDOW_MAX ? (uint32_t)more : TRANSFER_WINDOW_MAX;
    }
    uint64_t item_size = size / open->count + 1;
    item_size = (3 * (uint64_t)giver->item_size + item_size) / 4;
    giver->item_size = item_size < TRANSFER_ANSWER_MAX ? (uint32_t)item_size : TRANSFER_ANSWER_MAX;
}

static void leave_alone(struct transfer_giver_state *giver, uint64_t now_us) {
    uint64_t wait_us = retry_doubled_us(SILENT_US, giver->silent_count, SILENT_US_MAX);
    giver->held_until_us = now_us + wait_us;
    giver->silent_count += giver->silent_count < UINT32_MAX;
    giver->window = WINDOW_FIRST;
}

void transfer_answered(struct transfer *transfer, uint32_t id, enum transfer_line line, uint64_t size,
                       uint64_t now_us) {
    struct transfer_open *open = &transfer->open[id];
    struct transfer_giver_state *giver = &transfer->givers[open->giver];
    ASSERT(open->is_used);
    open->is_used = false;
    if (open->is_alone) {
        transfer->alone_count--;
        giver->alone_count--;
    } else {
        transfer->questions_count--;
        giver->questions_count--;
        giver->open_size -= open->size_max;
    }
    switch (line) {
    case TRANSFER_CAME:
        giver->silent_count = 0;
        giver->held_until_us = 0;
        if (!open->is_alone) {
            fit_window(giver, open, size, now_us - open->asked_us);
        }
        break;
    case TRANSFER_SILENT:
        if (now_us >= giver->held_until_us) { /* of many questions that end together, the first counts */
            leave_alone(giver, now_us);
        }
        break;
    case TRANSFER_BUSY:
        giver->held_until_us = now_us + LATE_US;
        break;
    case TRANSFER_UNSUPPORTED:
        giver->is_old = true;
        break;
    }
}

static void try_later(struct transfer *transfer, uint32_t item, uint64_t now_us) {
    struct transfer_giver_state *giver = &transfer->givers[transfer->items[item].giver];
    if (giver->late.first == NONE) {
        giver->late_us = now_us + LATE_US;
    }
    list_append(transfer, &giver->late, item);
}

bool transfer_settle(struct transfer *transfer, uint32_t item, enum transfer_outcome outcome,
                     uint64_t now_us) {
    struct transfer_item *wanted = &transfer->items[item];
    ASSERT(item < transfer->config.wanted_max && wanted->state == ITEM_ASKED);
    transfer->asked_count--;
    wanted->is_overdue = false;
    let_go(transfer, item);
    bool is_try =
        outcome == TRANSFER_ABSENT || outcome == TRANSFER_NOT_GIVEN || outcome == TRANSFER_NO_ORIGINAL;
    if (outcome == TRANSFER_STORED || outcome == TRANSFER_FAILED ||
        (is_try && wanted->tries_count++ >= TRIES_MAX)) {
        transfer_drop(transfer, item);
        return outcome == TRANSFER_STORED;
    }
    wanted->state = ITEM_WAITING;
    wanted->is_alone = wanted->is_alone || outcome == TRANSFER_TOO_LARGE;
    wanted->wants_payload = outcome == TRANSFER_NO_ORIGINAL;
    if (outcome == TRANSFER_LATER) {
        list_prepend(transfer, queue_of(transfer, item), item);
    } else if (outcome == TRANSFER_TOO_LARGE) {
        list_append(transfer, queue_of(transfer, item), item);
    } else {
        try_later(transfer, item, now_us);
    }
    return true;
}

/* ---- status ---- */

const struct ringkey *transfer_key(const struct transfer *transfer, uint32_t item) {
    return &transfer->items[item].key;
}

const struct peer *transfer_giver(const struct transfer *transfer, uint32_t item) {
    return &transfer->givers[transfer->items[item].giver].peer;
}

struct transfer_status transfer_status(const struct transfer *transfer) {
    uint32_t wanted =
        transfer->lane_counts[TRANSFER_ORDER_OWN] + transfer->lane_counts[TRANSFER_ORDER_OFFERED];
    return (struct transfer_status){
        .wanted_count = wanted,
        .waiting_count = wanted - transfer->asked_count,
        .questions_count = transfer->questions_count + transfer->alone_count,
    };
}

void transfer_each(const struct transfer *transfer, transfer_visit *visit, void *context) {
    uint32_t left = transfer_status(transfer).wanted_count;
    for (uint32_t i = 0; left > 0; i++) {
        if (transfer->items[i].state != ITEM_FREE) {
            visit(context, &transfer->items[i].key);
            left--;
        }
    }
}

bool transfer_may_want(const struct transfer *transfer, const uint8_t place[RINGKEY_POSITION_SIZE]) {
    return *place_slot(transfer, place) > 0;
}

uint32_t transfer_window(const struct transfer *transfer, const struct peer *peer) {
    uint32_t giver = find_giver(transfer, peer);
    return giver != NONE ? transfer->givers[giver].window : 0;
}

static uint32_t list_count(const struct transfer *transfer, uint32_t item) {
    uint32_t count = 0;
    for (; item != NONE; item = transfer->items[item].next) {
        count++;
    }
    return count;
}

bool transfer_check(const struct transfer *transfer) {
    uint32_t counted = list_count(transfer, transfer->free);
    uint32_t asked = 0;
    uint32_t placed = 0;
    for (uint32_t i = 0; i <= transfer->mask; i++) {
        placed += transfer->place_counts[i];
    }
    for (uint32_t i = 0; i < transfer->config.wanted_max; i++) {
        const struct transfer_item *item = &transfer->items[i];
        asked += item->state == ITEM_ASKED;
        counted += item->state == ITEM_ASKED;
        counted += item->state == ITEM_ASKED ? list_count(transfer, item->parked) : 0;
        if ((item->is_leader || item->is_overdue) && item->state != ITEM_ASKED) {
            return false;
        }
    }
    for (uint32_t i = 0; i < transfer->config.givers_max; i++) {
        const struct transfer_giver_state *giver = &transfer->givers[i];
        if (giver->is_used) {
            counted += list_count(transfer, giver->alone.first) + list_count(transfer, giver->late.first);
            counted += list_count(transfer, giver->lanes[TRANSFER_ORDER_OWN].first) +
                       list_count(transfer, giver->lanes[TRANSFER_ORDER_OFFERED].first);
        }
    }
    return counted == transfer->config.wanted_max && asked == transfer->asked_count &&
           placed == transfer_status(transfer).wanted_count;
}
