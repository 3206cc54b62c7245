#include "node/ring/members.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lru.h"
#include "base/whole_file.h"

enum {
    PATH_SIZE_MAX = 4096 + 32,
    MODE = 0644,
    STRANGERS_MAX = 1024, /* keys that are asked for */
    FILE_VERSION = 1,
    FILE_MARK_SIZE = 4,
    FILE_COUNT_MAX = 2 * ROLL_COUNT_MAX, /* members, and removed keys */
    FILE_SIZE_MAX = 16 + FILE_COUNT_MAX * (8 + ROLL_ENTRY_SIZE_MAX),
    TRIES_FAST = 4,
};
static const char file_mark[] = "mnrl";
static const uint64_t ASK_FIRST_US = UINT64_C(1000000);
static const uint64_t ASK_LATER_US = UINT64_C(600000000);
static const int64_t AHEAD_US = (int64_t)MEMBERSHIP_CLOCK_SLACK_S * 1000000;

struct member {
    struct roll_entry entry;
    struct roll_period period;
};

/* A key that nobody has shown a membership of. */
struct members_stranger {
    uint32_t tries_count;
    uint64_t ask_at_us; /* monotonic */
};

struct members {
    char path[PATH_SIZE_MAX];
    const struct clock *clock;
    pthread_mutex_t lock; /* of all below */
    bool has_charter;
    struct charter charter; /* without removals: these end a membership, they do not make it false */
    uint8_t ring[CHARTER_ID_SIZE];
    struct map known;     /* start of the key: struct member */
    struct map removed;   /* start of a key, of nodes and of tokens: u64, seconds, when it was removed */
    struct lru strangers; /* start of the key: struct members_stranger */
    enum import_rule rule;
    bool is_rule_awaited;
    uint64_t generation;
    bool is_changed; /* since it was written */
    struct buf file; /* as it was at the start; it is checked when there is a charter */
};

/* ---- making ---- */

struct members *members_new(const char *directory, const struct clock *clock) {
    struct members *members = calloc(1, sizeof *members);
    if (members == NULL) {
        return NULL;
    }
    snprintf(members->path, sizeof members->path, "%s/ring/members", directory);
    members->clock = clock != NULL ? clock : &clock_system;
    pthread_mutex_init(&members->lock, NULL);
    buf_init(&members->file, FILE_SIZE_MAX);
    if (whole_file_read(members->path, &members->file, NULL) != ERR_OK) {
        buf_clear(&members->file); /* there is none, or it is learned again */
    }
    map_init(&members->known, sizeof(uint64_t), sizeof(struct member), ROLL_COUNT_MAX, 0);
    map_init(&members->removed, sizeof(uint64_t), sizeof(uint64_t), ROLL_COUNT_MAX, 0);
    if (lru_init(&members->strangers, sizeof(uint64_t), sizeof(struct members_stranger), STRANGERS_MAX) !=
        ERR_OK) {
        members_free(members);
        return NULL;
    }
    return members;
}

void members_free(struct members *members) {
    if (members == NULL) {
        return;
    }
    buf_done(&members->file);
    map_done(&members->known);
    map_done(&members->removed);
    lru_done(&members->strangers);
    pthread_mutex_destroy(&members->lock);
    free(members);
}

static struct bytes members_key(const uint64_t *start) {
    return bytes_of(start, sizeof *start);
}

/* ---- with the lock ---- */

static void members_add_locked(struct members *members, const struct roll_entry *entry) {
    struct roll_period period;
    uint64_t start = roll_start(entry->key);
    if (!members->has_charter || map_get(&members->known, members_key(&start)) != NULL ||
        roll_check(entry, &members->charter, members->ring, identity_verify, &period) != ERR_OK ||
        map_reserve(&members->known, members->known.count + 1) != ERR_OK) {
        return;
    }
    struct member *member = map_put(&members->known, members_key(&start));
    *member = (struct member){.entry = *entry, .period = period};
    lru_remove(&members->strangers, &start);
    members->is_changed = true;
    members->generation++;
}

/* The first charter that names it says when. */
static void members_remove_locked(struct members *members, uint64_t start, uint64_t removed_s) {
    if (map_get(&members->removed, members_key(&start)) != NULL ||
        map_reserve(&members->removed, members->removed.count + 1) != ERR_OK) {
        return;
    }
    uint64_t *at_s = map_put(&members->removed, members_key(&start));
    *at_s = removed_s;
    members->is_changed = true;
    members->generation++;
}

/* A removal, of the key itself or of its token, ends the period. */
static void members_cut(const struct members *members, uint64_t start, struct roll_period *period) {
    const uint64_t *removed_s = map_get(&members->removed, members_key(&start));
    if (removed_s != NULL && (period->until_s == 0 || *removed_s < period->until_s)) {
        period->until_s = *removed_s;
    }
}

static bool members_find_locked(struct members *members, uint64_t start, struct roll_period *ret_period) {
    const struct member *member = map_get(&members->known, members_key(&start));
    bool is_founder = start == roll_start(members->charter.founder);
    if (is_founder || members->charter.is_open) {
        *ret_period = (struct roll_period){.from_s = members->charter.created_s};
    } else if (member != NULL) {
        *ret_period = member->period;
        members_cut(members, roll_start(member->entry.membership.invitation.key), ret_period);
    } else {
        return false;
    }
    members_cut(members, start, ret_period);
    return true;
}

/* It is asked for. */
static void members_miss_locked(struct members *members, uint64_t start) {
    if (start != 0 && lru_find(&members->strangers, &start) == NULL) {
        struct members_stranger *stranger = lru_add(&members->strangers, &start);
        stranger->ask_at_us = clock_monotonic_us(members->clock);
    }
}

/* ---- the file ---- */

static void members_read_locked(struct members *members, struct bytes bytes) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    struct bytes mark = wire_read_bytes(&reader, FILE_MARK_SIZE);
    uint8_t version = wire_read_u8(&reader);
    size_t count = (size_t)wire_read_varint(&reader, FILE_COUNT_MAX);
    if (reader.err != ERR_OK || version != FILE_VERSION || !bytes_equal(mark, bytes_of_string(file_mark))) {
        return; /* what it said is learned again */
    }
    for (size_t i = 0; i < count && reader.err == ERR_OK; i++) {
        struct roll_entry entry;
        uint64_t removed_s = wire_read_u64(&reader);
        roll_read_entry(&reader, &entry);
        if (reader.err == ERR_OK && removed_s > 0) {
            members_remove_locked(members, roll_start(entry.key), removed_s);
        }
        if (reader.err == ERR_OK && entry.membership.is_there) {
            members_add_locked(members, &entry);
        }
    }
}

/* Of a removed key of which no membership is known, and of tokens, an entry without one. */
static enum err members_write_locked(struct members *members, struct buf *out) {
    struct wire_writer writer;
    struct bytes key;
    void *value;
    size_t size_max = 16 + (members->known.count + members->removed.count) * (8 + ROLL_ENTRY_SIZE_MAX);
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) { /* counted, then written */
        if (pass == 1) {
            if (buf_reserve(out, size_max) != ERR_OK) {
                return out->err;
            }
            wire_writer_init(&writer, out->data, size_max);
            wire_write_bytes(&writer, bytes_of_string(file_mark));
            wire_write_u8(&writer, FILE_VERSION);
            wire_write_varint(&writer, count);
        }
        for (size_t cursor = 0; map_next(&members->known, &cursor, &key, &value); count += pass == 0) {
            const uint64_t *removed_s = map_get(&members->removed, key);
            if (pass == 1) {
                wire_write_u64(&writer, removed_s != NULL ? *removed_s : 0);
                roll_write_entry(&writer, &((struct member *)value)->entry);
            }
        }
        for (size_t cursor = 0; map_next(&members->removed, &cursor, &key, &value);) {
            struct roll_entry entry = {.key = {0}};
            if (map_get(&members->known, key) != NULL) {
                continue;
            }
            count += pass == 0;
            uint64_t start;
            memcpy(&start, key.data, sizeof start);
            for (size_t i = 0; i < sizeof start; i++) {
                entry.key[i] = (uint8_t)(start >> (8 * (sizeof start - 1 - i)));
            }
            if (pass == 1) {
                wire_write_u64(&writer, *(uint64_t *)value);
                roll_write_entry(&writer, &entry);
            }
        }
    }
    out->size = wire_writer_bytes(&writer).size;
    return out->err;
}

void members_beat(struct members *members) {
    struct buf bytes;
    buf_init(&bytes, FILE_SIZE_MAX);
    pthread_mutex_lock(&members->lock);
    bool is_due = members->is_changed && members->has_charter;
    enum err err = is_due ? members_write_locked(members, &bytes) : ERR_OK;
    members->is_changed = members->is_changed && !is_due;
    pthread_mutex_unlock(&members->lock);
    if (is_due &&
        (err != ERR_OK || whole_file_replace(members->path, buf_bytes(&bytes), MODE, NULL) != ERR_OK)) {
        pthread_mutex_lock(&members->lock);
        members->is_changed = true; /* with the next beat */
        pthread_mutex_unlock(&members->lock);
    }
    buf_done(&bytes);
}

/* ---- what is told ---- */

void members_set_charter(struct members *members, const struct charter *charter,
                         const uint8_t ring[CHARTER_ID_SIZE]) {
    pthread_mutex_lock(&members->lock);
    bool is_first = !members->has_charter;
    members->has_charter = true;
    members->charter = *charter;
    members->charter.removed_count = 0;
    memcpy(members->ring, ring, CHARTER_ID_SIZE);
    if (is_first) {
        members_read_locked(members, buf_bytes(&members->file));
        buf_done(&members->file);
        members->is_changed = false;
    }
    for (size_t i = 0; i < charter->removed_count; i++) {
        members_remove_locked(members, roll_start(charter->removed[i]), charter->signed_s);
    }
    members->generation++;
    pthread_mutex_unlock(&members->lock);
}

void members_note(struct members *members, const uint8_t key[PEER_KEY_SIZE],
                  const struct membership *membership) {
    struct roll_entry entry = {.membership = *membership};
    memcpy(entry.key, key, PEER_KEY_SIZE);
    pthread_mutex_lock(&members->lock);
    members_add_locked(members, &entry);
    pthread_mutex_unlock(&members->lock);
}

void members_set_rule(struct members *members, enum import_rule rule) {
    pthread_mutex_lock(&members->lock);
    members->generation += members->rule != rule;
    members->rule = rule;
    pthread_mutex_unlock(&members->lock);
}

void members_await_rule(struct members *members, bool is_awaited) {
    pthread_mutex_lock(&members->lock);
    members->is_rule_awaited = is_awaited;
    pthread_mutex_unlock(&members->lock);
}

bool members_knows_rule(struct members *members) {
    pthread_mutex_lock(&members->lock);
    bool is_known = !members->is_rule_awaited;
    pthread_mutex_unlock(&members->lock);
    return is_known;
}

enum import_rule members_rule(struct members *members) {
    pthread_mutex_lock(&members->lock);
    enum import_rule rule = members->rule;
    pthread_mutex_unlock(&members->lock);
    return rule;
}

/* ---- judging ---- */

static enum members_verdict members_judge_locked(struct members *members, uint64_t start, bool is_ever,
                                                 int64_t time_us) {
    struct roll_period period;
    if (!members->has_charter) {
        return MEMBERS_NO_RING;
    }
    if (!members_find_locked(members, start, &period)) {
        members_miss_locked(members, start);
        return MEMBERS_STRANGER;
    }
    return is_ever || roll_covers(&period, time_us) ? MEMBERS_MEMBER : MEMBERS_STRANGER;
}

enum members_verdict members_judge(struct members *members, uint64_t start, int64_t time_us) {
    pthread_mutex_lock(&members->lock);
    enum members_verdict verdict = members_judge_locked(members, start, false, time_us);
    pthread_mutex_unlock(&members->lock);
    return verdict;
}

enum members_verdict members_judge_ever(struct members *members, uint64_t start) {
    pthread_mutex_lock(&members->lock);
    enum members_verdict verdict = members_judge_locked(members, start, true, 0);
    pthread_mutex_unlock(&members->lock);
    return verdict;
}

/* Does the key of one of those who act now start so? Until there are several, it is the founder's. */
static bool members_is_steward_locked(const struct members *members, uint64_t start) {
    struct stewards stewards;
    charter_stewards(&members->charter, charter_generation(&members->charter), &stewards);
    for (size_t i = 0; i < stewards.count; i++) {
        if (roll_start(stewards.keys[i]) == start) {
            return true;
        }
    }
    return false;
}

/* Of a capture that no member has fetched. */
static const char *members_refuse_import_locked(struct members *members, const struct members_claim *claim) {
    bool is_stewards = claim->is_imported && members_is_steward_locked(members, claim->importer);
    bool is_members = claim->is_imported && !claim->is_importer_hidden &&
                      members_judge_locked(members, claim->importer, true, 0) == MEMBERS_MEMBER;
    bool is_hidden = claim->is_imported && claim->is_importer_hidden;
    if (!claim->is_in_scope) {
        return "it is out of the ring's scope, and no member has fetched it";
    }
    switch (members->rule) {
    case IMPORT_RULE_NONE:
    case IMPORT_RULES_COUNT:
        break;
    case IMPORT_RULE_NOBODY:
        return "nobody may import into this ring";
    case IMPORT_RULE_STEWARDS:
        return is_stewards || is_hidden ? NULL : "only stewards may import into this ring";
    case IMPORT_RULE_MEMBERS:
        return is_members || is_hidden ? NULL : "only members may import into this ring";
    }
    return NULL;
}

const char *members_refuse(struct members *members, const struct members_claim *claim) {
    if (claim->time_us > clock_wall_us(members->clock) + AHEAD_US) {
        return "its time has not come yet";
    }
    pthread_mutex_lock(&members->lock);
    const char *sentence = NULL;
    bool is_fetched = claim->is_signed &&
                      members_judge_locked(members, claim->signer, false, claim->time_us) == MEMBERS_MEMBER;
    if (members->has_charter && !is_fetched) {
        sentence = members_refuse_import_locked(members, claim);
    }
    pthread_mutex_unlock(&members->lock);
    return sentence;
}

uint64_t members_generation(struct members *members) {
    pthread_mutex_lock(&members->lock);
    uint64_t generation = members->generation;
    pthread_mutex_unlock(&members->lock);
    return generation;
}

size_t members_count(struct members *members) {
    pthread_mutex_lock(&members->lock);
    size_t count = members->known.count;
    pthread_mutex_unlock(&members->lock);
    return count;
}

/* ---- asking and answering ---- */

enum err members_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail) {
    struct members *members = context;
    uint64_t starts[ROLL_ASKED_MAX];
    struct roll_entry entries[ROLL_ASKED_MAX];
    size_t count;
    size_t found_count = 0;
    (void)from;
    enum err err = roll_read_question(question, starts, &count, detail);
    err = err == ERR_OK ? buf_reserve(answer, ROLL_ANSWER_SIZE_MAX) : err;
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&members->lock);
    for (size_t i = 0; i < count; i++) {
        const struct member *member = map_get(&members->known, members_key(&starts[i]));
        if (member != NULL) {
            entries[found_count++] = member->entry;
        }
    }
    pthread_mutex_unlock(&members->lock);
    struct wire_writer writer;
    wire_writer_init(&writer, answer->data + answer->size, ROLL_ANSWER_SIZE_MAX);
    wire_write_varint(&writer, found_count);
    for (size_t i = 0; i < found_count; i++) {
        roll_write_entry(&writer, &entries[i]);
    }
    answer->size += wire_writer_bytes(&writer).size;
    return writer.err;
}

bool members_next_question(struct members *members, struct buf *question) {
    uint64_t starts[ROLL_ASKED_MAX];
    size_t count = 0;
    uint64_t now_us = clock_monotonic_us(members->clock);
    struct bytes key;
    void *value;
    pthread_mutex_lock(&members->lock);
    for (size_t cursor = 0;
         count < ROLL_ASKED_MAX && map_next(&members->strangers.places, &cursor, &key, &value);) {
        uint64_t start;
        memcpy(&start, key.data, sizeof start);
        struct members_stranger *stranger = lru_find(&members->strangers, &start);
        if (stranger->ask_at_us <= now_us) {
            stranger->tries_count++;
            stranger->ask_at_us = now_us + (stranger->tries_count < TRIES_FAST ? ASK_FIRST_US : ASK_LATER_US);
            starts[count++] = start;
        }
    }
    pthread_mutex_unlock(&members->lock);
    buf_clear(question);
    if (count == 0 || buf_reserve(question, ROLL_QUESTION_SIZE_MAX) != ERR_OK) {
        return false;
    }
    struct wire_writer writer;
    wire_writer_init(&writer, question->data, ROLL_QUESTION_SIZE_MAX);
    roll_write_question(&writer, starts, count);
    question->size = wire_writer_bytes(&writer).size;
    return true;
}

enum err members_take_answer(struct members *members, struct bytes answer, struct err_detail *detail) {
    struct roll_entry entries[ROLL_ASKED_MAX];
    size_t count;
    enum err err = roll_read_answer(answer, entries, &count, detail);
    pthread_mutex_lock(&members->lock);
    for (size_t i = 0; i < count; i++) {
        members_add_locked(members, &entries[i]); /* what proves nothing is passed over */
    }
    pthread_mutex_unlock(&members->lock);
    return err;
}
