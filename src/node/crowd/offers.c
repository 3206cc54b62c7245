#include "node/crowd/offers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "node/crowd/offers_state.h"
#include "store/keyset/position.h"
#include "store/remote/backend_code.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { PATH_SIZE_MAX = 4096, COUNT_MAX = 4096, GIVES_MAX = 4, HOT_MAX = 64, REVIEW_COUNT = 512 };
static const uint64_t SIZE_MAX_DEFAULT = UINT64_C(256) << 20;
static const uint64_t OBJECT_SIZE_MAX = UINT64_C(64) << 20;
static const uint64_t GIVES_US = 4000000;

uint64_t offers_now_us(const struct offers *offers) {
    return clock_monotonic_us(offers->config.clock);
}

/* ---- life ---- */

static void set_defaults(struct offers_config *config) {
    config->size_max = config->size_max > 0 ? config->size_max : SIZE_MAX_DEFAULT;
    config->count_max = config->count_max > 0 ? config->count_max : COUNT_MAX;
    config->object_size_max = config->object_size_max > 0 ? config->object_size_max : OBJECT_SIZE_MAX;
    config->gives_max = config->gives_max > 0 ? config->gives_max : GIVES_MAX;
    config->gives_max = config->gives_max < OFFERS_GIVES_MAX ? config->gives_max : OFFERS_GIVES_MAX;
    config->gives_us = config->gives_us > 0 ? config->gives_us : GIVES_US;
    config->clock = config->clock != NULL ? config->clock : &clock_system;
}

static enum err offers_open_directory(struct offers *offers, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/crowd", offers->config.directory) >= sizeof path) {
        return err_set(detail, ERR_SYSTEM, "the path is too long");
    }
    enum err err = whole_file_make_directory(path, detail);
    if (err != ERR_OK) {
        return err_set(detail, ERR_SYSTEM, "%.180s cannot be made", path);
    }
    offers->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return offers->directory >= 0 ? ERR_OK
                                  : err_set(detail, ERR_SYSTEM, "%.180s cannot be opened: %s", path,
                                            err_text(err_from_errno(errno)));
}

static enum err offers_prepare(struct offers *offers) {
    enum err err = offers_index_init(offers);
    enum err errs[] = {
        offers_title_init(&offers->title),
        sha256_init(&offers->sha256),
        sha256_init(&offers->give_sha256),
        pack_payload_init(&offers->give_pack_payload),
    };
    for (size_t i = 0; i < sizeof errs / sizeof *errs; i++) {
        err = err == ERR_OK ? errs[i] : err;
    }
    return err;
}

enum err offers_new(const struct offers_config *config, struct offers **ret_offers,
                    struct err_detail *detail) {
    struct offers *offers = calloc(1, sizeof *offers);
    if (offers == NULL) {
        return ERR_MEMORY;
    }
    offers->config = *config;
    set_defaults(&offers->config);
    pthread_mutex_init(&offers->lock, NULL);
    pthread_mutex_init(&offers->put_lock, NULL);
    canon_init(&offers->canon);
    buf_init(&offers->words, WISH_WORDS_SIZE_MAX + 3);
    buf_init(&offers->surt, URL_SIZE_MAX + 16);
    buf_init(&offers->description, BACKEND_CODE_META_SIZE_MAX + BACKEND_CODE_META_PREFIX_SIZE);
    buf_init(&offers->text, OFFERS_FILE_PREFIX_SIZE + OFFERS_FILE_HEAD_SIZE_MAX);
    buf_init(&offers->give_text, OFFERS_FILE_PREFIX_SIZE + OFFERS_FILE_HEAD_SIZE_MAX);
    buf_init(&offers->give_piece, PEER_RPC_PIECE_SIZE_MAX);
    scratch_init(&offers->give_packed, config->directory, 2 * PEER_RPC_PIECE_SIZE_MAX,
                 2 * PEER_RPC_PIECE_SIZE_MAX);
    offers->directory = -1;
    enum err err = offers_prepare(offers);
    err = err == ERR_OK ? offers_open_directory(offers, detail) : err;
    if (err != ERR_OK) {
        offers_free(offers);
        return err;
    }
    if (config->peer_rpc != NULL) {
        peer_rpc_serve(config->peer_rpc, PEER_RPC_HAND, offers_give, offers);
    }
    *ret_offers = offers;
    return ERR_OK;
}

void offers_free(struct offers *offers) {
    offers_index_done(offers);
    offers_title_done(&offers->title);
    sha256_done(&offers->sha256);
    sha256_done(&offers->give_sha256);
    pack_payload_done(&offers->give_pack_payload);
    scratch_done(&offers->give_packed);
    canon_done(&offers->canon);
    struct buf *bufs[] = {&offers->words, &offers->surt,      &offers->description,
                          &offers->text,  &offers->give_text, &offers->give_piece};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) {
        buf_done(bufs[i]);
    }
    if (offers->directory >= 0) {
        close(offers->directory);
    }
    pthread_mutex_destroy(&offers->put_lock);
    pthread_mutex_destroy(&offers->lock);
    free(offers);
}

/* ---- entering; put_lock is held ---- */

/* Into offers->surt. False: it has none. */
static bool offers_find_surt(struct offers *offers, struct bytes url) {
    buf_clear(&offers->surt);
    return canon_run(&offers->canon, url, NULL) == ERR_OK &&
           surt_put(&offers->surt, &offers->canon) == ERR_OK;
}

/* By the mapping of any ring. */
static bool is_place_of(struct offers *offers, const struct ringkey *key, struct bytes surt) {
    bool is_it = false;
    for (enum position_mapping mapping = POSITION_BY_URL; mapping <= POSITION_BY_SECTION && !is_it;
         mapping++) {
        uint8_t place[RINGKEY_POSITION_SIZE];
        position_of_surt(&offers->sha256, surt, mapping, place);
        is_it = memcmp(key->bytes, place, sizeof place) == 0;
    }
    return is_it;
}

static void offers_make_room(struct offers *offers, uint64_t size) {
    struct ringkey key;
    bool is_removed = true;
    while (is_removed) {
        pthread_mutex_lock(&offers->lock);
        is_removed = offers_index_evict(offers, size, &key);
        pthread_mutex_unlock(&offers->lock);
        if (is_removed) {
            offers_file_remove(offers->directory, &key);
        }
    }
}

/* The file is there, or will be at once: *head is what it says. */
static bool offers_enter(struct offers *offers, const struct offers_file_head *head,
                         const struct offers_file_about *about, struct bytes surt, uint64_t file_size) {
    uint8_t hash[SHA256_SIZE];
    struct buf words;
    buf_init(&words, OFFERS_WORDS_SIZE_MAX);
    offers_title_put_words(&words, head->title);
    sha256_digest(&offers->sha256, surt, hash);
    struct offers_entry entry = {
        .key = head->key,
        .hash = hash,
        .sum = about->sum,
        .url = about->url,
        .title = head->title,
        .words = buf_bytes(&words),
        .file_size = file_size,
    };
    offers_make_room(offers, file_size);
    pthread_mutex_lock(&offers->lock);
    bool is_entered = words.err == ERR_OK && offers_index_add(offers, &entry);
    pthread_mutex_unlock(&offers->lock);
    buf_done(&words);
    return is_entered;
}

/* Use it, if it is there. */
static bool is_there(struct offers *offers, const struct ringkey *key) {
    pthread_mutex_lock(&offers->lock);
    struct offer *offer = offers_index_find(offers, key);
    if (offer != NULL) {
        offers_index_use(offers, offer, false);
    }
    pthread_mutex_unlock(&offers->lock);
    return offer != NULL;
}

/* Description and head of the file, into offers->text. False: it cannot be offered. */
static bool write_head(struct offers *offers, const struct captured *captured, struct offers_file_head *head,
                       struct offers_file_about *ret_about) {
    struct document document = captured->document;
    document.sum = &captured->sum;
    document.body = bytes_of(NULL, 0);
    document.is_body_left_out = true;
    buf_clear(&offers->description);
    buf_clear(&offers->text);
    if (backend_code_put_meta(&offers->description, &document, STORE_REGULAR, BACKEND_CODE_LEFT_OUT) !=
        ERR_OK) {
        return false;
    }
    head->description = buf_bytes(&offers->description);
    head->payload_size = captured->payload.size;
    return offers_file_read_about(head, ret_about) &&
           offers_file_put_head(&offers->text, &offers->sha256, head) == ERR_OK;
}

static void put(struct offers *offers, const struct ringkey *key, const struct captured *captured,
                struct bytes surt, struct bytes title) {
    struct offers_file_head head = {.key = *key};
    struct offers_file_about about;
    if (title.size == 0) {
        title = offers_title_find(&offers->title, &captured->document, captured->payload);
    }
    head.title = offers_title_cut(title, WISH_TITLE_SIZE_MAX);
    if (surt.size == 0 &&
        offers_find_surt(offers, captured->key_url.size > 0 ? captured->key_url : captured->document.url)) {
        surt = buf_bytes(&offers->surt);
    }
    if (!is_place_of(offers, key, surt) || !write_head(offers, captured, &head, &about)) {
        return;
    }
    uint64_t size = offers->text.size + captured->payload.size;
    if (size > offers->config.size_max ||
        offers_file_write(offers->directory, key, buf_bytes(&offers->text), captured->payload) != ERR_OK) {
        return;
    }
    if (!offers_enter(offers, &head, &about, surt, size)) {
        offers_file_remove(offers->directory, key);
    }
}

static bool offers_is_hidden(const struct offers *offers, struct bytes surt, int64_t time_us) {
    const struct offers_config *config = &offers->config;
    return config->is_hidden != NULL && config->is_hidden(config->context, surt, time_us);
}

void offers_put(struct offers *offers, const struct ringkey *key, const struct captured *captured,
                struct bytes surt, struct bytes title) {
    if (captured->payload.size > offers->config.object_size_max ||
        captured->payload.size != captured->sum.size || is_there(offers, key)) {
        return;
    }
    if (offers_is_hidden(offers, surt, ringkey_time_us(key))) {
        return;
    }
    pthread_mutex_lock(&offers->put_lock);
    if (!is_there(offers, key)) { /* nobody was faster */
        put(offers, key, captured, surt, title);
    }
    pthread_mutex_unlock(&offers->put_lock);
}

/* The next one that is there: its key, and its SURT in offers->surt. */
static bool review_next(struct offers *offers, struct ringkey *ret_key) {
    struct buf url;
    buf_init(&url, URL_SIZE_MAX);
    pthread_mutex_lock(&offers->lock);
    const struct offer *offer = &offers->slots[offers->review_slot];
    offers->review_slot = (offers->review_slot + 1) % offers->config.count_max;
    bool is_used = offer->is_used && buf_put(&url, bytes_of(offer->url, offer->url_size)) == ERR_OK;
    *ret_key = offer->key;
    pthread_mutex_unlock(&offers->lock);
    bool is_found = is_used && offers_find_surt(offers, buf_bytes(&url));
    buf_done(&url);
    return is_found;
}

void offers_review(struct offers *offers) {
    struct ringkey key;
    for (size_t i = 0; i < REVIEW_COUNT; i++) {
        pthread_mutex_lock(&offers->put_lock);
        bool is_gone = review_next(offers, &key) &&
                       offers_is_hidden(offers, buf_bytes(&offers->surt), ringkey_time_us(&key));
        pthread_mutex_unlock(&offers->put_lock);
        if (is_gone) {
            offers_forget(offers, &key);
        }
    }
}

/* ---- what was kept ---- */

static bool load(struct offers *offers, const struct ringkey *key) {
    struct offers_file file;
    struct offers_file_about about;
    if (offers_file_open(&file, offers->directory, key, &offers->sha256, &offers->text,
                         offers->config.object_size_max) != ERR_OK) {
        return false;
    }
    uint64_t size = file.payload_start + file.head.payload_size;
    bool is_sound = size <= offers->config.size_max && offers_file_read_about(&file.head, &about) &&
                    offers_find_surt(offers, about.url) && is_place_of(offers, key, buf_bytes(&offers->surt));
    offers_file_close(&file);
    return is_sound && (is_there(offers, key) ||
                        offers_enter(offers, &file.head, &about, buf_bytes(&offers->surt), size));
}

/* What one name in the directory stands for; what is no offer is removed. */
static void load_name(struct offers *offers, const char *name) {
    struct ringkey key;
    bool is_key = hex_decode(bytes_of_string(name), key.bytes, RINGKEY_SIZE);
    char own[OFFERS_FILE_NAME_SIZE];
    pthread_mutex_lock(&offers->put_lock);
    is_key = is_key && strcmp(hex_encode(bytes_of(key.bytes, RINGKEY_SIZE), own), name) == 0;
    if (!is_key || !load(offers, &key)) {
        unlinkat(offers->directory, name, 0);
    }
    pthread_mutex_unlock(&offers->put_lock);
}

void offers_load(struct offers *offers) {
    int fd = openat(offers->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            load_name(offers, entry->d_name);
        }
    }
    closedir(directory);
}

/* ---- reading ---- */

/* The whole file, checked, into the session. ERR_CORRUPT, ERR_MISMATCH: it is damaged. */
static enum err offers_read_capture(struct offers *offers, struct captures_session *session,
                                    const struct ringkey *key, struct captured *ret_captured,
                                    struct err_detail *detail) {
    struct offers_file file;
    struct buf text;
    struct sha256 sha256;
    uint8_t *payload = NULL;
    buf_init(&text, OFFERS_FILE_PREFIX_SIZE + OFFERS_FILE_HEAD_SIZE_MAX);
    enum err err = sha256_init(&sha256);
    if (err != ERR_OK) {
        return err;
    }
    err = offers_file_open(&file, offers->directory, key, &sha256, &text, offers->config.object_size_max);
    if (err == ERR_OK) {
        size_t size = (size_t)file.head.payload_size;
        payload = malloc(size + 1);
        err = payload == NULL ? ERR_MEMORY : offers_file_read(&file, 0, payload, size);
        if (err == ERR_OK) {
            err = captures_open(session, key, file.head.description, bytes_of(payload, size), ret_captured,
                                detail);
        }
        offers_file_close(&file);
    }
    free(payload);
    buf_done(&text);
    sha256_done(&sha256);
    return err;
}

enum err offers_get(struct offers *offers, struct captures_session *session, const struct ringkey *key,
                    struct captured *ret_captured, struct err_detail *detail) {
    if (!is_there(offers, key)) {
        return ERR_NOT_FOUND;
    }
    enum err err = offers_read_capture(offers, session, key, ret_captured, detail);
    if (err == ERR_CORRUPT || err == ERR_MISMATCH) {
        offers_forget(offers, key);
        return ERR_NOT_FOUND;
    }
    return err;
}

/* ---- for people ---- */

void offers_stat(struct offers *offers, struct offers_stat *ret_stat) {
    pthread_mutex_lock(&offers->lock);
    *ret_stat = offers->stat;
    pthread_mutex_unlock(&offers->lock);
}

size_t offers_hot(struct offers *offers, size_t count_max, struct arena *arena,
                  struct offers_wanted **ret_hot) {
    struct offer *hottest[HOT_MAX];
    size_t count = 0;
    count_max = count_max < HOT_MAX ? count_max : HOT_MAX;
    pthread_mutex_lock(&offers->lock);
    for (size_t i = 0; i < offers->config.count_max; i++) {
        struct offer *offer = &offers->slots[i];
        size_t place = count;
        if (!offer->is_used || offers_heat(offers, offer) == 0) {
            continue;
        }
        while (place > 0 && offer->heat > hottest[place - 1]->heat) {
            place--;
        }
        if (place < count_max) {
            count += count < count_max;
            memmove(&hottest[place + 1], &hottest[place], (count - place - 1) * sizeof hottest[0]);
            hottest[place] = offer;
        }
    }
    struct offers_wanted *hot = arena_take_array(arena, count, sizeof *hot);
    count = hot != NULL ? count : 0;
    for (size_t i = 0; i < count; i++) {
        struct offer *offer = hottest[i];
        hot[i] = (struct offers_wanted){
            .url = arena_copy(arena, bytes_of(offer->url, offer->url_size)),
            .title = arena_copy(arena, bytes_of(offer->url + offer->url_size, offer->title_size)),
            .time_us = ringkey_time_us(&offer->key),
            .size = offer->sum.size,
            .asked_count = offers_heat(offers, offer),
            .given_count = offer->given_count,
        };
    }
    pthread_mutex_unlock(&offers->lock);
    *ret_hot = hot;
    return count;
}
