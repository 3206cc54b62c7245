#include "node/ring/decrees.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "base/wire.h"
#include "node/ring/decrees_state.h"

enum {
    FILE_MODE = 0644,
    ID_DIGITS = 2 * DECREE_ID_SIZE,
    VERSION_SIZE = 8,
    LISTED_SIZE = DECREE_ID_SIZE + VERSION_SIZE, /* of one decree in a question */
    ANSWER_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX,
    AGAIN_BEATS = 5, /* if the disk did not take what they say */
};

static void decrees_say(const struct decrees *decrees, const char *sentence) {
    if (decrees->config.note != NULL) {
        decrees->config.note(decrees->config.context, sentence);
    }
}

struct decrees *decrees_new(const struct decrees_config *config) {
    struct decrees *decrees = calloc(1, sizeof *decrees);
    if (decrees != NULL) {
        decrees->config = *config;
        pthread_mutex_init(&decrees->lock, NULL);
    }
    return decrees;
}

void decrees_free(struct decrees *decrees) {
    if (decrees == NULL) {
        return;
    }
    for (size_t i = 0; i < decrees->count; i++) {
        free(decrees->entries[i].encoded);
    }
    free(decrees->entries);
    pthread_mutex_destroy(&decrees->lock);
    free(decrees);
}

/* ---- the set; the lock is held ---- */

/* Where the id is, or would be. */
static size_t decrees_position_of(const struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE]) {
    size_t from = 0;
    size_t to = decrees->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (memcmp(decrees->entries[middle].id, id, DECREE_ID_SIZE) < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static bool is_at(const struct decrees *decrees, size_t position, const uint8_t id[DECREE_ID_SIZE]) {
    return position < decrees->count && memcmp(decrees->entries[position].id, id, DECREE_ID_SIZE) == 0;
}

static void decrees_judge(struct decrees *decrees, struct decrees_entry *entry) {
    struct err_detail detail = {.err = ERR_OK};
    if (!decrees->has_charter) {
        entry->counts = false;
        return;
    }
    enum err err = decree_counts(&entry->decree, &decrees->charter, decrees->ring, &detail);
    entry->counts = err == ERR_OK;
    snprintf(entry->why_not, sizeof entry->why_not, "%s", err == ERR_OK ? "" : err_detail_text(&detail, err));
}

static enum err check_room(const struct decrees *decrees, const struct decree *decree,
                           struct err_detail *detail) {
    size_t of_author = 0;
    for (size_t i = 0; i < decrees->count; i++) {
        of_author += memcmp(decrees->entries[i].decree.author, decree->author, PEER_KEY_SIZE) == 0;
    }
    bool is_full = decrees->count >= DECREES_MAX || of_author >= DECREES_PER_AUTHOR_MAX;
    return is_full ? err_set(detail, ERR_LIMIT, "there are too many decrees") : ERR_OK;
}

static enum err decrees_make_entry(struct decrees *decrees, size_t position,
                                   const uint8_t id[DECREE_ID_SIZE]) {
    if (decrees->count == decrees->capacity) {
        size_t capacity = decrees->capacity > 0 ? 2 * decrees->capacity : 16;
        struct decrees_entry *entries = realloc(decrees->entries, capacity * sizeof *entries);
        if (entries == NULL) {
            return ERR_MEMORY;
        }
        decrees->entries = entries;
        decrees->capacity = capacity;
    }
    struct decrees_entry *entry = &decrees->entries[position];
    memmove(entry + 1, entry, (decrees->count - position) * sizeof *entry);
    memset(entry, 0, sizeof *entry);
    memcpy(entry->id, id, DECREE_ID_SIZE);
    decrees->count++;
    return ERR_OK;
}

/* The bytes are taken if it succeeds. */
static enum err decrees_put(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE],
                            const struct decree *decree, uint8_t *take_encoded, size_t size, bool is_on_disk,
                            struct err_detail *detail) {
    size_t position = decrees_position_of(decrees, id);
    if (is_at(decrees, position, id)) {
        if (decrees->entries[position].decree.version >= decree->version) {
            return ERR_EXISTS;
        }
    } else {
        enum err err = check_room(decrees, decree, detail);
        err = err == ERR_OK ? decrees_make_entry(decrees, position, id) : err;
        if (err != ERR_OK) {
            return err;
        }
    }
    struct decrees_entry *entry = &decrees->entries[position];
    free(entry->encoded);
    entry->encoded = take_encoded;
    entry->size = size;
    entry->decree = *decree;
    entry->is_on_disk = is_on_disk;
    decrees_judge(decrees, entry);
    decrees->is_obeyed = false;
    return ERR_OK;
}

static enum err add(struct decrees *decrees, struct bytes encoded, bool is_on_disk,
                    struct err_detail *detail) {
    struct sha256 sha256;
    struct decree decree;
    uint8_t id[DECREE_ID_SIZE];
    uint8_t *copy = malloc(encoded.size > 0 ? encoded.size : 1);
    if (copy == NULL || sha256_init(&sha256) != ERR_OK) {
        free(copy);
        return ERR_MEMORY;
    }
    memcpy(copy, encoded.data, encoded.size);
    enum err err = decree_read(bytes_of(copy, encoded.size), identity_verify, &decree, detail);
    if (err == ERR_OK) {
        decree_id(&decree, &sha256, id);
        pthread_mutex_lock(&decrees->lock);
        if (!is_on_disk && decrees->has_charter) {
            err = decree_counts(&decree, &decrees->charter, decrees->ring, detail);
        }
        err = err == ERR_OK ? decrees_put(decrees, id, &decree, copy, encoded.size, is_on_disk, detail) : err;
        pthread_mutex_unlock(&decrees->lock);
    }
    sha256_done(&sha256);
    if (err != ERR_OK) {
        free(copy);
    }
    return err;
}

enum err decrees_add(struct decrees *decrees, struct bytes encoded, struct err_detail *detail) {
    return add(decrees, encoded, false, detail);
}

void decrees_set_charter(struct decrees *decrees, const struct charter *charter,
                         const uint8_t ring[CHARTER_ID_SIZE]) {
    pthread_mutex_lock(&decrees->lock);
    decrees->has_charter = true;
    decrees->charter = *charter;
    memcpy(decrees->ring, ring, CHARTER_ID_SIZE);
    for (size_t i = 0; i < decrees->count; i++) {
        decrees_judge(decrees, &decrees->entries[i]);
    }
    decrees->is_obeyed = false;
    pthread_mutex_unlock(&decrees->lock);
}

/* ---- the disk ---- */

static void decrees_path_of(const char *directory, const char *name, char out[DECREES_PATH_SIZE_MAX]) {
    snprintf(out, DECREES_PATH_SIZE_MAX, "%s/ring/decrees/%s", directory, name);
}

static void take_file(struct decrees *decrees, const char *name) {
    char path[DECREES_PATH_SIZE_MAX];
    char sentence[ERR_TEXT_SIZE_MAX + 64];
    struct err_detail detail = {.err = ERR_OK};
    struct buf text;
    decrees_path_of(decrees->config.directory, name, path);
    buf_init(&text, DECREE_SIZE_MAX);
    enum err err = whole_file_read(path, &text, &detail);
    err = err == ERR_OK ? add(decrees, buf_bytes(&text), true, &detail) : err;
    if (err != ERR_OK && err != ERR_EXISTS) {
        snprintf(sentence, sizeof sentence, "decree %.32s: %s", name, err_detail_text(&detail, err));
        decrees_say(decrees, sentence);
    }
    buf_done(&text);
}

static void read_directory(struct decrees *decrees) {
    char path[DECREES_PATH_SIZE_MAX];
    struct stat stat_;
    snprintf(path, sizeof path, "%s/ring/decrees", decrees->config.directory);
    if (stat(path, &stat_) != 0 ||
        (stat_.st_mtim.tv_sec == decrees->seen.tv_sec && stat_.st_mtim.tv_nsec == decrees->seen.tv_nsec)) {
        return;
    }
    decrees->seen = stat_.st_mtim;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    const struct dirent *entry;
    size_t count = 0;
    while ((entry = readdir(directory)) != NULL && count < 2 * DECREES_MAX) {
        if (strlen(entry->d_name) == ID_DIGITS) {
            take_file(decrees, entry->d_name);
            count++;
        }
    }
    closedir(directory);
}

static enum err write_one(const char *directory, const uint8_t id[DECREE_ID_SIZE], struct bytes encoded,
                          struct err_detail *detail) {
    char path[DECREES_PATH_SIZE_MAX];
    char digits[ID_DIGITS + 1];
    snprintf(path, sizeof path, "%s/ring", directory);
    enum err err = whole_file_make_directory(path, detail);
    snprintf(path, sizeof path, "%s/ring/decrees", directory);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    decrees_path_of(directory, hex_encode(bytes_of(id, DECREE_ID_SIZE), digits), path);
    return err == ERR_OK ? whole_file_replace(path, encoded, FILE_MODE, detail) : err;
}

/* One decree that is not on the disk yet; false: there is none. */
static bool write_next(struct decrees *decrees) {
    struct err_detail detail = {.err = ERR_OK};
    uint8_t id[DECREE_ID_SIZE];
    struct buf encoded;
    bool is_found = false;
    buf_init(&encoded, DECREE_SIZE_MAX);
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count && !is_found; i++) {
        struct decrees_entry *entry = &decrees->entries[i];
        if (!entry->is_on_disk) {
            memcpy(id, entry->id, sizeof id);
            is_found = buf_put(&encoded, bytes_of(entry->encoded, entry->size)) == ERR_OK;
            entry->is_on_disk = true;
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    if (is_found) {
        enum err err = write_one(decrees->config.directory, id, buf_bytes(&encoded), &detail);
        if (err != ERR_OK) {
            decrees_say(decrees, err_detail_text(&detail, err)); /* others have it, and give it again */
        }
    }
    buf_done(&encoded);
    return is_found;
}

void decrees_beat(struct decrees *decrees) {
    read_directory(decrees);
    while (write_next(decrees)) {
    }
    pthread_mutex_lock(&decrees->lock);
    bool is_obeyed = decrees->is_obeyed || !decrees->has_charter;
    decrees->is_obeyed = true;
    pthread_mutex_unlock(&decrees->lock);
    bool is_again = decrees->again_beats > 0 && --decrees->again_beats == 0;
    if (!is_obeyed || is_again) {
        decrees->again_beats = decrees_obey(decrees) ? 0 : AGAIN_BEATS;
    }
}

/* ---- passing on ---- */

void decrees_put_question(struct decrees *decrees, struct buf *out) {
    uint8_t number[VERSION_SIZE];
    struct wire_writer writer;
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count; i++) {
        wire_writer_init(&writer, number, sizeof number);
        wire_write_u64(&writer, decrees->entries[i].decree.version);
        buf_put(out, bytes_of(decrees->entries[i].id, DECREE_ID_SIZE));
        buf_put(out, bytes_of(number, sizeof number));
    }
    pthread_mutex_unlock(&decrees->lock);
}

/* Does the asker, whose list is in the order of ids, have this one? The lock is held. */
static bool asker_has(struct bytes list, const struct decrees_entry *entry) {
    size_t from = 0;
    size_t to = list.size / LISTED_SIZE;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const uint8_t *at = list.data + middle * LISTED_SIZE;
        int order = memcmp(at, entry->id, DECREE_ID_SIZE);
        if (order == 0) {
            struct wire_reader reader;
            wire_reader_init(&reader, bytes_of(at + DECREE_ID_SIZE, VERSION_SIZE));
            return wire_read_u64(&reader) >= entry->decree.version;
        }
        if (order < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return false;
}

enum err decrees_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail) {
    struct decrees *decrees = context;
    (void)from;
    if (question.size % LISTED_SIZE != 0) {
        return err_set(detail, ERR_INVALID, "no list of decrees");
    }
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        uint8_t head[WIRE_VARINT_SIZE_MAX];
        struct wire_writer writer;
        bool is_wanted = entry->counts && !asker_has(question, entry);
        if (!is_wanted || answer->size + sizeof head + entry->size > ANSWER_SIZE_MAX) {
            continue;
        }
        wire_writer_init(&writer, head, sizeof head);
        wire_write_varint(&writer, entry->size);
        buf_put(answer, bytes_of(head, writer.size));
        buf_put(answer, bytes_of(entry->encoded, entry->size));
    }
    pthread_mutex_unlock(&decrees->lock);
    return ERR_OK;
}

enum err decrees_take_answer(struct decrees *decrees, struct bytes answer, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, answer);
    while (wire_reader_left(&reader) > 0) {
        struct bytes encoded = wire_read_string(&reader, DECREE_SIZE_MAX);
        if (reader.err != ERR_OK) {
            break;
        }
        enum err err = decrees_add(decrees, encoded, detail);
        if (err != ERR_OK && err != ERR_EXISTS && err != ERR_UNSUPPORTED && err != ERR_PERMISSION) {
            return err; /* under another version of the charter one may count that does not under ours */
        }
    }
    return wire_reader_finish(&reader, detail);
}

/* ---- for people ---- */

void decrees_put_json(struct decrees *decrees, struct json *json) {
    char text[IDENTITY_TEXT_SIZE];
    pthread_mutex_lock(&decrees->lock);
    json_open_list(json, "decrees");
    for (size_t i = 0; i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        const struct decree *decree = &entry->decree;
        json_open(json, NULL);
        json_text(json, "author", identity_key_format(decree->author, text));
        json_text(json, "kind", decree->kind == DECREE_JOB ? "job" : "rules");
        json_bytes(json, "name", decree->name);
        json_count(json, "version", decree->version);
        json_bool(json, "withdrawn", decree->text.size == 0);
        json_bool(json, "counts", entry->counts);
        json_text(json, "why_not", entry->why_not);
        json_close(json);
    }
    json_close(json);
    pthread_mutex_unlock(&decrees->lock);
}

void decrees_view(struct decrees *decrees, struct arena *arena, struct ring_view *view) {
    char author[IDENTITY_TEXT_SIZE];
    pthread_mutex_lock(&decrees->lock);
    struct ring_view_decree *list = arena_take_array(arena, decrees->count, sizeof *list);
    for (size_t i = 0; list != NULL && i < decrees->count; i++) {
        const struct decrees_entry *entry = &decrees->entries[i];
        list[view->decrees_count++] = (struct ring_view_decree){
            .author = arena_text(arena, identity_key_format(entry->decree.author, author)),
            .name = arena_copy(arena, entry->decree.name),
            .is_job = entry->decree.kind == DECREE_JOB,
            .version = entry->decree.version,
            .is_withdrawn = entry->decree.text.size == 0,
            .counts = entry->counts,
            .why_not = arena_text(arena, entry->why_not),
        };
    }
    view->decrees = list;
    pthread_mutex_unlock(&decrees->lock);
}

/* ---- for commands ---- */

static void decrees_sign(const void *signer, const char *context, struct bytes message,
                         uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

enum err decrees_publish(const char *directory, const struct identity *identity,
                         const struct charter *charter, enum decree_kind kind, struct bytes name,
                         struct bytes text, struct err_detail *detail) {
    struct sha256 sha256;
    struct decree decree = {.kind = kind, .name = name, .text = text};
    uint8_t id[DECREE_ID_SIZE];
    uint8_t *memory = malloc(DECREE_SIZE_MAX);
    if (memory == NULL || sha256_init(&sha256) != ERR_OK) {
        free(memory);
        return ERR_MEMORY;
    }
    charter_id(charter, &sha256, decree.ring);
    memcpy(decree.author, identity->key, PEER_KEY_SIZE);
    decree.version = (uint64_t)clock_wall_us(&clock_system);
    enum err err = decree_counts(&decree, charter, decree.ring, detail);
    if (err == ERR_OK) {
        decree_id(&decree, &sha256, id);
        err = write_one(directory, id, decree_write(&decree, decrees_sign, identity, memory), detail);
    }
    sha256_done(&sha256);
    free(memory);
    return err;
}
