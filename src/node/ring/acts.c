#include "node/ring/acts.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "base/wire.h"
#include "node/ring/decrees.h"
#include "node/transport/ring_files.h"

enum {
    PATH_SIZE_MAX = 4096 + 128,
    MODE = 0644,
    SEED_MODE = 0600,
    ID_DIGITS = 2 * ACT_ID_SIZE,
    KEY_DIGITS = 16, /* of the signer's, in the name of a file */
    MARK_SIZE = 8,
    HEAD_SIZE = 8, /* of a question: generation, version */
    LISTED_SIZE = ACT_ID_SIZE + MARK_SIZE,
    ENTRIES_MAX = 2 * ACTS_MAX, /* with invitations that are done */
    FILES_MAX = 4 * ENTRIES_MAX,
    INBOX_SIZE_MAX = 2 * PEER_RPC_PIECE_SIZE_MAX,
    ANSWER_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX,
    JUDGE_US = 5 * 1000000, /* acts end, or come as decrees */
    AGAIN_BEATS = 10,       /* if the disk did not take what was agreed on */
    US_PER_S = 1000000,
};
enum { ITEM_CHARTER = 1, ITEM_ACT = 2 }; /* in an answer */

struct acts_entry {
    uint8_t id[ACT_ID_SIZE];
    uint8_t *body; /* what the act borrows from */
    struct act act;
    struct act_meaning meaning; /* its next is not kept */
    bool is_done;
    bool is_on_disk;
    unsigned again_beats; /* until it is done again; 0: it was not yet */
};

/* What others are told: made by the beat when something has changed, and never changed itself. */
struct acts_said {
    uint32_t generation;
    uint32_t version;
    uint8_t *charter; /* of layout 2; NULL: there is none */
    size_t charter_size;
    size_t count;
    struct acts_said_act {
        uint8_t id[ACT_ID_SIZE];
        uint8_t mark[MARK_SIZE];
        uint8_t *encoded;
        size_t size;
        enum act_kind kind;
        bool is_done;
        unsigned needed;
        struct steward_signatures signatures;
    } acts[ENTRIES_MAX];
};

/* From the ring's loop. */
struct acts_charter {
    bool is_there;
    struct charter charter;
    uint8_t ring[CHARTER_ID_SIZE];
};

struct acts {
    struct acts_config config;

    pthread_mutex_t lock;        /* never held while the disk works */
    struct acts_charter arrived; /* lock */
    struct buf inbox;            /* lock; as in an answer */
    struct acts_said *said;      /* lock; NULL: nothing yet */

    /* The beat's, or the command's. */
    bool has_charter;
    struct charter charter;
    uint8_t ring[CHARTER_ID_SIZE];
    bool is_judged;  /* under this charter */
    bool is_to_tell; /* something has changed */
    struct acts_entry *entries[ENTRIES_MAX];
    size_t count;
    struct charter next;
    uint8_t memory[CHARTER_SIZE_MAX];
    struct timespec seen; /* of the directory */
    uint64_t judge_at_us;
    bool has_failed; /* the disk, the last time */
};

struct acts *acts_new(const struct acts_config *config) {
    struct acts *acts = calloc(1, sizeof *acts);
    if (acts != NULL) {
        acts->config = *config;
        acts->config.clock = config->clock != NULL ? config->clock : &clock_system;
        buf_init(&acts->inbox, INBOX_SIZE_MAX);
        pthread_mutex_init(&acts->lock, NULL);
    }
    return acts;
}

static void acts_free_entry(struct acts_entry *entry) {
    free(entry->body);
    free(entry);
}

static void acts_free_said(struct acts_said *said) {
    for (size_t i = 0; said != NULL && i < said->count; i++) {
        free(said->acts[i].encoded);
    }
    free(said != NULL ? said->charter : NULL);
    free(said);
}

void acts_free(struct acts *acts) {
    if (acts == NULL) {
        return;
    }
    for (size_t i = 0; i < acts->count; i++) {
        acts_free_entry(acts->entries[i]);
    }
    acts_free_said(acts->said);
    buf_done(&acts->inbox);
    pthread_mutex_destroy(&acts->lock);
    free(acts);
}

static uint64_t acts_now_s(const struct acts *acts) {
    int64_t now_us = clock_wall_us(acts->config.clock);
    return now_us > 0 ? (uint64_t)now_us / US_PER_S : 0;
}

static void acts_note(const struct acts *acts, const char *sentence) {
    if (acts->config.note != NULL) {
        acts->config.note(acts->config.context, sentence);
    }
}

/* ---- files ---- */

static void acts_path_of(const struct acts *acts, const char *name, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/ring/acts/%s", acts->config.directory, name);
}

static enum err acts_write_file(const struct acts *acts, const char *name, struct bytes bytes, mode_t mode,
                                struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring", acts->config.directory);
    enum err err = whole_file_make_directory(path, detail);
    acts_path_of(acts, "", path);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    acts_path_of(acts, name, path);
    return err == ERR_OK ? whole_file_replace(path, bytes, mode, detail) : err;
}

static enum err acts_write_act(const struct acts *acts, const struct act *act, const char *name,
                               struct err_detail *detail) {
    uint8_t *memory = malloc(ACT_SIZE_MAX);
    if (memory == NULL) {
        return ERR_MEMORY;
    }
    enum err err = acts_write_file(acts, name, act_write(act, memory), MODE, detail);
    free(memory);
    return err;
}

/* The act, and what was signed of it here. */
static void acts_remove_files(const struct acts *acts, const uint8_t id[ACT_ID_SIZE]) {
    char path[PATH_SIZE_MAX];
    char digits[ACTS_ID_TEXT_SIZE];
    hex_encode(bytes_of(id, ACT_ID_SIZE), digits);
    acts_path_of(acts, "", path);
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, digits, ID_DIGITS) == 0) {
            acts_path_of(acts, entry->d_name, path);
            unlink(path);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* ---- the table: the beat's ---- */

static struct acts_entry *acts_find(const struct acts *acts, const uint8_t id[ACT_ID_SIZE]) {
    for (size_t i = 0; i < acts->count; i++) {
        if (memcmp(acts->entries[i]->id, id, ACT_ID_SIZE) == 0) {
            return acts->entries[i];
        }
    }
    return NULL;
}

static void acts_drop(struct acts *acts, size_t index) {
    acts_remove_files(acts, acts->entries[index]->id);
    acts_free_entry(acts->entries[index]);
    acts->entries[index] = acts->entries[--acts->count];
    acts->is_to_tell = true;
}

static bool acts_is_room_for(const struct acts *acts, const struct act *act) {
    for (size_t i = 0; i < act->signatures.count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < acts->count; k++) {
            count += !acts->entries[k]->is_done &&
                     steward_signatures_have(&acts->entries[k]->act.signatures, act->signatures.items[i].key);
        }
        if (count < ACT_COUNT_MAX) {
            return true;
        }
    }
    return false;
}

/* The oldest invitation that is done goes for what is new. */
static bool acts_make_room(struct acts *acts) {
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < acts->count; i++) {
        const struct acts_entry *entry = acts->entries[i];
        bool is_older = oldest == SIZE_MAX || entry->meaning.made_s < acts->entries[oldest]->meaning.made_s;
        oldest = entry->is_done && entry->act.kind == ACT_INVITATION && is_older ? i : oldest;
    }
    if (acts->count == ENTRIES_MAX && oldest != SIZE_MAX) {
        acts_drop(acts, oldest);
    }
    return acts->count < ENTRIES_MAX;
}

/* A decree of this name and version, or a later one, is there: the act is done, or comes too late. */
static bool acts_is_decreed(const struct acts *acts, const struct act *act,
                            const struct act_meaning *meaning) {
    struct sha256 sha256;
    uint8_t id[DECREE_ID_SIZE];
    if (act->kind != ACT_DECREE || sha256_init(&sha256) != ERR_OK) {
        return false;
    }
    decree_id(&meaning->decree, &sha256, id);
    sha256_done(&sha256);
    return decrees_version_on_disk(acts->config.directory, id) >= meaning->decree.version;
}

static enum err acts_understand(struct acts *acts, const struct act *act, struct act_meaning *ret_meaning,
                                struct err_detail *detail) {
    enum err err =
        act_understand(act, &acts->charter, acts->ring, acts_now_s(acts), &acts->next, ret_meaning, detail);
    return err == ERR_OK && acts_is_decreed(acts, act, ret_meaning)
               ? err_set(detail, ERR_EXISTS, "it is decreed already")
               : err;
}

/* Signatures that are new and good. */
static void acts_merge(struct acts *acts, struct acts_entry *entry, const struct act *act) {
    struct act fresh = *act;
    act_clean(&fresh, &entry->meaning, &acts->charter, identity_verify);
    if (act_merge(&entry->act, &fresh.signatures) > 0) {
        entry->is_on_disk = false;
        acts->is_to_tell = true;
        entry->is_done = act_is_done(&entry->act, &entry->meaning, &acts->charter);
    }
}

static enum err acts_insert(struct acts *acts, const struct act *act, const struct act_meaning *meaning,
                            const uint8_t id[ACT_ID_SIZE]) {
    struct acts_entry *entry = calloc(1, sizeof *entry);
    uint8_t *body = malloc(act->body.size > 0 ? act->body.size : 1);
    if (entry == NULL || body == NULL) {
        free(entry);
        free(body);
        return ERR_MEMORY;
    }
    memcpy(body, act->body.data, act->body.size);
    entry->body = body;
    entry->act = *act;
    entry->act.body = bytes_of(body, act->body.size);
    entry->meaning = *meaning;
    memcpy(entry->id, id, ACT_ID_SIZE);
    if (act->kind == ACT_DECREE) { /* what it means borrows from the body */
        enum err err = decree_read_body(entry->act.body, &entry->meaning.decree, NULL);
        ASSERT(err == ERR_OK);
    }
    entry->meaning.next = NULL;
    entry->is_done = act_is_done(&entry->act, &entry->meaning, &acts->charter);
    acts->entries[acts->count++] = entry;
    acts->is_to_tell = true;
    return ERR_OK;
}

/* ERR_EXISTS: it is over; ERR_PERMISSION: no steward has signed it; ERR_LIMIT: there is no room. */
static enum err acts_add(struct acts *acts, const struct act *given, struct err_detail *detail) {
    struct act act = *given;
    struct act_meaning meaning;
    uint8_t id[ACT_ID_SIZE];
    act_id(&act, id);
    struct acts_entry *entry = acts_find(acts, id);
    if (entry != NULL) {
        acts_merge(acts, entry, &act);
        return ERR_OK;
    }
    enum err err = acts_understand(acts, &act, &meaning, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (act_clean(&act, &meaning, &acts->charter, identity_verify) == 0) {
        return err_set(detail, ERR_PERMISSION, "no steward has signed it");
    }
    if (!acts_is_room_for(acts, &act) || !acts_make_room(acts)) {
        return err_set(detail, ERR_LIMIT, "there are %d acts of this steward that others have not signed",
                       ACT_COUNT_MAX);
    }
    return acts_insert(acts, &act, &meaning, id);
}

/* ---- the charter ---- */

void acts_set_charter(struct acts *acts, const struct charter *charter, const uint8_t ring[CHARTER_ID_SIZE]) {
    pthread_mutex_lock(&acts->lock);
    acts->arrived.is_there = true;
    acts->arrived.charter = *charter;
    memcpy(acts->arrived.ring, ring, CHARTER_ID_SIZE);
    pthread_mutex_unlock(&acts->lock);
}

static void acts_take_arrived(struct acts *acts) {
    pthread_mutex_lock(&acts->lock);
    if (acts->arrived.is_there) {
        acts->arrived.is_there = false;
        acts->has_charter = true;
        acts->charter = acts->arrived.charter;
        memcpy(acts->ring, acts->arrived.ring, CHARTER_ID_SIZE);
        acts->is_judged = false;
        acts->is_to_tell = true;
    }
    pthread_mutex_unlock(&acts->lock);
}

/* What is over goes; what stewards have signed who are none any more does not count. */
static void acts_judge(struct acts *acts) {
    uint64_t now_us = clock_monotonic_us(acts->config.clock);
    if (acts->is_judged && now_us < acts->judge_at_us) {
        return;
    }
    for (size_t i = acts->count; i-- > 0;) {
        struct acts_entry *entry = acts->entries[i];
        struct act_meaning meaning;
        bool is_over = acts_understand(acts, &entry->act, &meaning, NULL) != ERR_OK ||
                       act_clean(&entry->act, &meaning, &acts->charter, identity_verify) == 0;
        if (is_over) {
            acts_drop(acts, i);
        } else {
            entry->is_done = act_is_done(&entry->act, &entry->meaning, &acts->charter);
        }
    }
    acts->is_judged = true;
    acts->judge_at_us = now_us + JUDGE_US;
}

/* ---- doing what is agreed on ---- */

/* Its next charter lies in acts->next from here on. */
static enum err acts_do(struct acts *acts, struct acts_entry *entry, struct err_detail *detail) {
    struct act_meaning meaning;
    struct sha256 sha256;
    uint8_t id[DECREE_ID_SIZE];
    enum err err = acts_understand(acts, &entry->act, &meaning, detail);
    if (err != ERR_OK || entry->act.kind == ACT_INVITATION) {
        return err;
    }
    struct bytes done = act_write_done(&entry->act, &meaning, acts->memory);
    if (entry->act.kind != ACT_DECREE) {
        return ring_files_write_charter(acts->config.directory, done, detail);
    }
    err = sha256_init(&sha256);
    if (err == ERR_OK) {
        decree_id(&meaning.decree, &sha256, id);
        sha256_done(&sha256);
        err = decrees_put_on_disk(acts->config.directory, id, done, detail);
    }
    return err;
}

/* True: something has changed on the disk. */
static bool acts_do_all(struct acts *acts, struct err_detail *detail) {
    bool has_changed = false;
    for (size_t i = acts->count; i-- > 0;) {
        struct acts_entry *entry = acts->entries[i];
        if (!entry->is_done || entry->act.kind == ACT_INVITATION ||
            (entry->again_beats > 0 && --entry->again_beats > 0)) {
            continue;
        }
        entry->again_beats = AGAIN_BEATS;
        enum err err = acts_do(acts, entry, detail);
        has_changed |= err == ERR_OK;
        if (err != ERR_OK && !acts->has_failed) {
            acts_note(acts, err_detail_text(detail, err));
        }
        acts->has_failed = err != ERR_OK;
        if (err == ERR_OK && entry->act.kind == ACT_DECREE) {
            acts_drop(acts, i);
        }
    }
    return has_changed;
}

/* ---- what comes ---- */

static void acts_take_charter(struct acts *acts, struct bytes encoded, bool *ret_has_changed) {
    struct err_detail detail = {.err = ERR_OK};
    enum err err = charter_read(encoded, identity_verify, &acts->next, &detail);
    err = err == ERR_OK ? charter_succeeds(&acts->charter, &acts->next, &detail) : err;
    if (err == ERR_OK) {
        err = ring_files_write_charter(acts->config.directory, encoded, &detail);
        *ret_has_changed |= err == ERR_OK;
    }
    if (err != ERR_OK && err != ERR_EXISTS && !acts->has_failed) {
        acts_note(acts, err_detail_text(&detail, err));
    }
}

/* What cannot be used is dropped: another node's charter may be older or newer. */
static void acts_read_inbox(struct acts *acts, bool *ret_has_changed) {
    struct buf inbox;
    struct wire_reader reader;
    pthread_mutex_lock(&acts->lock);
    inbox = acts->inbox;
    buf_init(&acts->inbox, INBOX_SIZE_MAX);
    pthread_mutex_unlock(&acts->lock);
    wire_reader_init(&reader, buf_bytes(&inbox));
    while (wire_reader_left(&reader) > 0) {
        struct act act;
        uint8_t item = wire_read_u8(&reader);
        struct bytes bytes = wire_read_string(&reader, INBOX_SIZE_MAX);
        if (reader.err == ERR_OK && item == ITEM_CHARTER) {
            acts_take_charter(acts, bytes, ret_has_changed);
        } else if (reader.err == ERR_OK && act_read(bytes, &act, NULL) == ERR_OK) {
            (void)!acts_add(acts, &act, NULL);
        }
    }
    buf_done(&inbox);
}

static void acts_read_file(struct acts *acts, const char *name) {
    char path[PATH_SIZE_MAX];
    char sentence[ERR_TEXT_SIZE_MAX + 64];
    struct err_detail detail = {.err = ERR_OK};
    struct buf text;
    struct act act;
    uint8_t id[ACT_ID_SIZE];
    acts_path_of(acts, name, path);
    buf_init(&text, ACT_SIZE_MAX);
    enum err err = whole_file_read(path, &text, &detail);
    err = err == ERR_OK ? act_read(buf_bytes(&text), &act, &detail) : err;
    bool is_read = err == ERR_OK;
    err = is_read ? acts_add(acts, &act, &detail) : err;
    if (is_read) {
        act_id(&act, id);
        struct acts_entry *entry = acts_find(acts, id);
        bool is_ours = name[ID_DIGITS] == '\0';
        bool is_same = entry != NULL && entry->act.signatures.count == act.signatures.count;
        if (entry != NULL && is_ours && is_same) {
            entry->is_on_disk = true;
        }
    }
    if (is_read && (err == ERR_EXISTS || err == ERR_TIMEOUT)) {
        unlink(path); /* over */
    } else if (err != ERR_OK) {
        snprintf(sentence, sizeof sentence, "act %.32s: %s", name, err_detail_text(&detail, err));
        acts_note(acts, sentence);
    }
    buf_done(&text);
}

static bool acts_is_name(const char *name) {
    size_t size = strlen(name);
    return size >= ID_DIGITS && strspn(name, "0123456789abcdef") == ID_DIGITS &&
           (size == ID_DIGITS || (size == ID_DIGITS + 1 + KEY_DIGITS && name[ID_DIGITS] == '.'));
}

static void acts_read_files(struct acts *acts) {
    char path[PATH_SIZE_MAX];
    struct stat stat_;
    acts_path_of(acts, "", path);
    if (stat(path, &stat_) != 0 ||
        (stat_.st_mtim.tv_sec == acts->seen.tv_sec && stat_.st_mtim.tv_nsec == acts->seen.tv_nsec)) {
        return;
    }
    acts->seen = stat_.st_mtim;
    DIR *directory = opendir(path);
    const struct dirent *entry;
    for (size_t count = 0; directory != NULL && count < FILES_MAX && (entry = readdir(directory)) != NULL;) {
        if (acts_is_name(entry->d_name)) {
            acts_read_file(acts, entry->d_name);
            count++;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

static void acts_write_files(struct acts *acts) {
    char digits[ACTS_ID_TEXT_SIZE];
    for (size_t i = 0; i < acts->count; i++) {
        struct acts_entry *entry = acts->entries[i];
        hex_encode(bytes_of(entry->id, ACT_ID_SIZE), digits);
        if (!entry->is_on_disk) {
            entry->is_on_disk = acts_write_act(acts, &entry->act, digits, NULL) == ERR_OK;
        }
    }
}

/* Which signatures there are, in a few bytes. */
static void acts_mark(const struct act *act, uint8_t out[MARK_SIZE]) {
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    sha256_start(&sha256);
    for (size_t i = 0; i < act->signatures.count; i++) {
        sha256_update(&sha256, bytes_of(act->signatures.items[i].key, PEER_KEY_SIZE));
    }
    sha256_finish(&sha256, digest);
    memcpy(out, digest, MARK_SIZE);
}

static uint8_t *acts_copy(struct bytes bytes) {
    uint8_t *copy = malloc(bytes.size);
    if (copy != NULL) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return copy;
}

static void acts_say_act(struct acts *acts, struct acts_said *said, const struct acts_entry *entry,
                         uint8_t *memory) {
    struct acts_said_act *item = &said->acts[said->count];
    struct bytes encoded = act_write(&entry->act, memory);
    memcpy(item->id, entry->id, ACT_ID_SIZE);
    acts_mark(&entry->act, item->mark);
    item->encoded = acts_copy(encoded);
    item->size = encoded.size;
    item->kind = entry->act.kind;
    item->is_done = entry->is_done;
    item->needed = act_needed(&entry->meaning, &acts->charter);
    item->signatures = entry->act.signatures;
    said->count += item->encoded != NULL;
}

/* If there is no memory for it, others are told with a later beat. */
static void acts_tell(struct acts *acts) {
    struct acts_said *said = calloc(1, sizeof *said);
    uint8_t *memory = malloc(ACT_SIZE_MAX);
    if (said == NULL || memory == NULL) {
        free(said);
        free(memory);
        return;
    }
    said->generation = acts->charter.links_count;
    said->version = acts->charter.version;
    if (acts->charter.links_count > 0) {
        struct bytes encoded = charter_write(&acts->charter, NULL, NULL, acts->memory);
        said->charter = acts_copy(encoded);
        said->charter_size = encoded.size;
    }
    for (size_t i = 0; i < acts->count; i++) {
        acts_say_act(acts, said, acts->entries[i], memory);
    }
    free(memory);
    pthread_mutex_lock(&acts->lock);
    struct acts_said *before = acts->said;
    acts->said = said;
    pthread_mutex_unlock(&acts->lock);
    acts_free_said(before);
    acts->is_to_tell = false;
}

void acts_beat(struct acts *acts) {
    struct err_detail detail = {.err = ERR_OK};
    bool has_changed = false;
    acts_take_arrived(acts);
    if (!acts->has_charter) {
        return;
    }
    acts_judge(acts);
    acts_read_files(acts);
    acts_read_inbox(acts, &has_changed);
    has_changed |= acts_do_all(acts, &detail);
    acts_write_files(acts);
    if (acts->is_to_tell) {
        acts_tell(acts);
    }
    if (has_changed && acts->config.changed != NULL) {
        acts->config.changed(acts->config.context);
    }
}

/* ---- passing on ---- */

void acts_put_question(struct acts *acts, struct buf *out) {
    uint8_t head[HEAD_SIZE];
    struct wire_writer writer;
    pthread_mutex_lock(&acts->lock);
    const struct acts_said *said = acts->said;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u32(&writer, said != NULL ? said->generation : 0);
    wire_write_u32(&writer, said != NULL ? said->version : 0);
    buf_put(out, wire_writer_bytes(&writer));
    for (size_t i = 0; said != NULL && i < said->count; i++) {
        buf_put(out, bytes_of(said->acts[i].id, ACT_ID_SIZE));
        buf_put(out, bytes_of(said->acts[i].mark, MARK_SIZE));
    }
    pthread_mutex_unlock(&acts->lock);
}

static void acts_put_item(struct buf *answer, uint8_t item, struct bytes bytes) {
    uint8_t head[1 + WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u8(&writer, item);
    wire_write_varint(&writer, bytes.size);
    if (answer->size + writer.size + bytes.size <= ANSWER_SIZE_MAX) {
        buf_put(answer, wire_writer_bytes(&writer));
        buf_put(answer, bytes);
    }
}

static bool acts_asker_has(struct bytes list, const struct acts_said_act *item) {
    for (size_t at = 0; at + LISTED_SIZE <= list.size; at += LISTED_SIZE) {
        if (memcmp(list.data + at, item->id, ACT_ID_SIZE) == 0) {
            return memcmp(list.data + at + ACT_ID_SIZE, item->mark, MARK_SIZE) == 0;
        }
    }
    return false;
}

enum err acts_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    struct acts *acts = context;
    struct wire_reader reader;
    (void)from;
    wire_reader_init(&reader, question);
    uint32_t generation = wire_read_u32(&reader);
    uint32_t version = wire_read_u32(&reader);
    struct bytes list = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err != ERR_OK || list.size % LISTED_SIZE != 0 ||
        list.size > (size_t)ENTRIES_MAX * LISTED_SIZE) {
        return err_set(detail, ERR_INVALID, "no list of acts");
    }
    pthread_mutex_lock(&acts->lock);
    const struct acts_said *said = acts->said;
    bool is_behind =
        said != NULL && said->charter != NULL &&
        (generation < said->generation || (generation == said->generation && version < said->version));
    if (is_behind) {
        acts_put_item(answer, ITEM_CHARTER, bytes_of(said->charter, said->charter_size));
    }
    for (size_t i = 0; said != NULL && i < said->count; i++) {
        if (!acts_asker_has(list, &said->acts[i])) {
            acts_put_item(answer, ITEM_ACT, bytes_of(said->acts[i].encoded, said->acts[i].size));
        }
    }
    pthread_mutex_unlock(&acts->lock);
    return answer->err;
}

enum err acts_take_answer(struct acts *acts, struct bytes answer, struct err_detail *detail) {
    struct wire_reader reader;
    size_t count = 0;
    wire_reader_init(&reader, answer);
    while (wire_reader_left(&reader) > 0) {
        uint8_t item = wire_read_u8(&reader);
        wire_read_check(&reader, item == ITEM_CHARTER || item == ITEM_ACT, "an item of no kind");
        struct bytes bytes = wire_read_string(&reader, INBOX_SIZE_MAX);
        bool is_sound = item == ITEM_CHARTER || bytes.size <= ACT_SIZE_MAX;
        wire_read_check(&reader, is_sound && ++count <= ENTRIES_MAX + 1, "more than there can be");
    }
    enum err err = wire_reader_finish(&reader, detail);
    pthread_mutex_lock(&acts->lock);
    if (err == ERR_OK && acts->inbox.size + answer.size <= INBOX_SIZE_MAX) {
        buf_put(&acts->inbox, answer); /* else it comes again */
    }
    pthread_mutex_unlock(&acts->lock);
    return err;
}

/* ---- for people ---- */

void acts_put_json(struct acts *acts, struct json *json) {
    char text[IDENTITY_TEXT_SIZE];
    char digits[ACTS_ID_TEXT_SIZE];
    pthread_mutex_lock(&acts->lock);
    const struct acts_said *said = acts->said;
    json_open_list(json, "acts");
    for (size_t i = 0; said != NULL && i < said->count; i++) {
        const struct acts_said_act *item = &said->acts[i];
        json_open(json, NULL);
        json_text(json, "id", hex_encode(bytes_of(item->id, ACT_ID_SIZE), digits));
        json_text(json, "kind", act_kind_name(item->kind));
        json_bool(json, "done", item->is_done);
        json_count(json, "needed", item->needed);
        json_open_list(json, "signed_by");
        for (size_t k = 0; k < item->signatures.count; k++) {
            json_text(json, NULL, identity_key_format(item->signatures.items[k].key, text));
        }
        json_close(json);
        json_close(json);
    }
    json_close(json);
    pthread_mutex_unlock(&acts->lock);
}

/* ---- for commands ---- */

enum err acts_open(const char *directory, const struct clock *clock, const struct charter *charter,
                   struct acts **ret_acts, struct err_detail *detail) {
    struct acts_config config = {.directory = directory, .clock = clock};
    struct acts *acts = acts_new(&config);
    struct sha256 sha256;
    uint8_t ring[CHARTER_ID_SIZE];
    enum err err = acts != NULL ? sha256_init(&sha256) : ERR_MEMORY;
    if (err != ERR_OK) {
        acts_free(acts);
        return err_set(detail, err, "%s", err_text(err));
    }
    charter_id(charter, &sha256, ring);
    sha256_done(&sha256);
    acts_set_charter(acts, charter, ring);
    acts_take_arrived(acts);
    acts_read_files(acts);
    *ret_acts = acts;
    return ERR_OK;
}

size_t acts_count(struct acts *acts) {
    return acts->count;
}

void acts_show(struct acts *acts, size_t index, struct acts_shown *ret_shown) {
    struct acts_entry *entry = acts->entries[index];
    hex_encode(bytes_of(entry->id, ACT_ID_SIZE), ret_shown->id);
    entry->meaning.next = NULL;
    if (entry->act.kind == ACT_RULES || entry->act.kind == ACT_STEWARDS) {
        struct act_meaning meaning;
        enum err err = acts_understand(acts, &entry->act, &meaning, NULL);
        entry->meaning.next = err == ERR_OK ? &acts->next : NULL;
    }
    ret_shown->act = &entry->act;
    ret_shown->meaning = &entry->meaning;
    ret_shown->is_done = entry->is_done;
    ret_shown->needed = act_needed(&entry->meaning, &acts->charter);
}

/* Has this key signed another change of the charter that is pending? Only one of them can come to count, and
 * two that count would tear the ring apart. */
static bool acts_has_signed_other(const struct acts *acts, const struct act *act,
                                  const uint8_t id[ACT_ID_SIZE], const uint8_t key[PEER_KEY_SIZE],
                                  char ret_other[ACTS_ID_TEXT_SIZE]) {
    for (size_t i = 0; i < acts->count; i++) {
        const struct acts_entry *entry = acts->entries[i];
        if (act_excludes(act, &entry->act) && memcmp(entry->id, id, ACT_ID_SIZE) != 0 &&
            steward_signatures_have(&entry->act.signatures, key)) {
            hex_encode(bytes_of(entry->id, ACT_ID_SIZE), ret_other);
            return true;
        }
    }
    return false;
}

enum err acts_sign(struct acts *acts, const struct act *act, const struct identity *identity,
                   char ret_id[ACTS_ID_TEXT_SIZE], bool *ret_is_done, struct err_detail *detail) {
    char name[ACTS_ID_TEXT_SIZE + KEY_DIGITS + 2];
    char other[ACTS_ID_TEXT_SIZE];
    char key[KEY_DIGITS + 1];
    struct act_meaning meaning;
    uint8_t id[ACT_ID_SIZE];
    struct act mine = *act;
    act_id(act, id);
    hex_encode(bytes_of(id, sizeof id), ret_id);
    enum err err = acts_understand(acts, act, &meaning, detail);
    if (err == ERR_OK && acts_has_signed_other(acts, act, id, identity->key, other)) {
        err = err_set(
            detail, ERR_EXISTS,
            "this node has signed another change of the charter, %s, and only one of them can count; it "
            "ends %d days after it was made",
            other, ACT_LASTS_S / 86400);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = act_sign(&mine, &meaning, &acts->charter, identity->key, identity_sign, identity);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s",
                       err == ERR_EXISTS ? "this node has signed it already"
                                         : "this node is no steward of the ring");
    }
    err = acts_add(acts, &mine, detail);
    struct acts_entry *entry = acts_find(acts, id);
    if (err == ERR_OK && entry != NULL) {
        snprintf(name, sizeof name, "%s.%s", ret_id,
                 hex_encode(bytes_of(identity->key, KEY_DIGITS / 2), key));
        err = acts_write_act(acts, &entry->act, name, detail);
    }
    if (err == ERR_OK && entry != NULL) {
        *ret_is_done = entry->is_done;
        err = entry->is_done ? acts_do(acts, entry, detail) : ERR_OK;
    }
    return err;
}

static enum err acts_check_id(const char *id, struct err_detail *detail) {
    return strlen(id) == ID_DIGITS && strspn(id, "0123456789abcdef") == ID_DIGITS
               ? ERR_OK
               : err_set(detail, ERR_INVALID, "\"%s\" is not the number of an act", id);
}

enum err acts_keep_seed(struct acts *acts, const char *id, const uint8_t seed[INVITATION_SEED_SIZE],
                        struct err_detail *detail) {
    char name[ACTS_ID_TEXT_SIZE + 8];
    snprintf(name, sizeof name, "%.*s.seed", (int)ID_DIGITS, id);
    return acts_write_file(acts, name, bytes_of(seed, INVITATION_SEED_SIZE), SEED_MODE, detail);
}

enum err acts_find_seed(struct acts *acts, const char *id, uint8_t ret_seed[INVITATION_SEED_SIZE],
                        struct err_detail *detail) {
    char name[ACTS_ID_TEXT_SIZE + 8];
    char path[PATH_SIZE_MAX];
    struct buf text;
    enum err err = acts_check_id(id, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(name, sizeof name, "%s.seed", id);
    acts_path_of(acts, name, path);
    buf_init(&text, INVITATION_SEED_SIZE);
    err = whole_file_read(path, &text, NULL);
    if (err == ERR_OK && text.size == INVITATION_SEED_SIZE) {
        memcpy(ret_seed, text.data, INVITATION_SEED_SIZE);
    } else {
        err = err_set(detail, ERR_NOT_FOUND, "its token was made on another machine, and is printed there");
    }
    buf_done(&text);
    return err;
}
