#include "node/crowd/crowd_reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "node/crowd/offers_title.h"

enum {
    CANDIDATES_MAX = 16, /* captures of one search that are looked at */
    HITS_WANTED_FIRST = 4,
    SEARCHES_MAX = 2,
    SEARCHES_FALSE_MAX = 8, /* each found a node that lies and is passed over in the next */
    TRIES_MAX = 5,          /* of one capture whose holders send us to others */
    PAUSE_MS_FIRST = 20,
    VAIN_MAX = 64,
};
static const uint64_t SIZE_MAX_DEFAULT = UINT64_C(256) << 20;

struct crowd_reader {
    struct crowd_reader_config config;
    pthread_mutex_t lock;
    struct crowd_reader_stat stat; /* lock */
};

/* A capture that somebody offers. */
struct candidate {
    struct ringkey key;
    struct peer holders[CROWD_DRIVER_HITS_MAX];
    uint8_t hops[CROWD_DRIVER_HITS_MAX];
    size_t holders_count;
};

struct crowd_reader_session {
    struct crowd_reader *reader;
    struct captures_session *captures;
    struct offers_title title;
    struct sha256 sha256;
    struct buf words; /* of the wish */
    struct buf title_words;
    struct crowd_driver_hit hits[CROWD_DRIVER_HITS_MAX];
    struct candidate candidates[CANDIDATES_MAX];
    size_t candidates_count;
};

/* What was asked for and not taken: a second search may only add to it. */
struct vain {
    struct ringkey key;
    struct peer holder; /* a port of 0: whoever has it, it is not what was wished for */
};

/* One call. */
struct errand {
    struct crowd_reader_session *session;
    const struct wish *wish;
    uint64_t deadline_us;
    struct vain vain[VAIN_MAX];
    size_t vain_count;
};

static uint64_t reader_now_us(void) {
    return clock_monotonic_us(&clock_system);
}

static uint32_t left_ms(const struct errand *errand) {
    uint64_t now = reader_now_us();
    return errand->deadline_us > now ? (uint32_t)((errand->deadline_us - now) / 1000) : 0;
}

/* ---- life ---- */

struct crowd_reader *crowd_reader_new(const struct crowd_reader_config *config) {
    struct crowd_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return NULL;
    }
    reader->config = *config;
    struct crowd_reader_config *own = &reader->config;
    own->size_max = config->size_max > 0 ? config->size_max : SIZE_MAX_DEFAULT;
    own->find = config->find != NULL ? config->find : crowd_driver_find;
    own->distrust = config->distrust != NULL ? config->distrust : crowd_driver_distrust;
    own->is_distrusted = config->is_distrusted != NULL ? config->is_distrusted : crowd_driver_is_distrusted;
    pthread_mutex_init(&reader->lock, NULL);
    return reader;
}

void crowd_reader_free(struct crowd_reader *reader) {
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

struct crowd_reader_session *crowd_reader_session_new(struct crowd_reader *reader) {
    struct crowd_reader_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->reader = reader;
    buf_init(&session->words, WISH_WORDS_SIZE_MAX + 3);
    buf_init(&session->title_words, WISH_TITLE_SIZE_MAX + 3);
    session->captures = captures_session_new(reader->config.captures);
    bool is_ready = offers_title_init(&session->title) == ERR_OK && session->captures != NULL;
    is_ready = sha256_init(&session->sha256) == ERR_OK && is_ready;
    if (!is_ready) {
        crowd_reader_session_free(session);
        return NULL;
    }
    return session;
}

void crowd_reader_session_free(struct crowd_reader_session *session) {
    if (session == NULL) {
        return;
    }
    captures_session_free(session->captures);
    offers_title_done(&session->title);
    sha256_done(&session->sha256);
    buf_done(&session->words);
    buf_done(&session->title_words);
    free(session);
}

/* ---- is it what was wished for? ---- */

static bool reader_trusts(const struct crowd_reader_config *config, bool has_signed,
                          const uint8_t key[PEER_KEY_SIZE]) {
    return has_signed && config->trusts != NULL && config->trusts(config->context, key);
}

/* What captures.h asks of a description that is sound in itself, before the payload comes. */
static bool takes(void *context, const struct captured *captured) {
    const struct errand *errand = context;
    const struct crowd_reader_config *config = &errand->session->reader->config;
    const struct wish *wish = errand->wish;
    uint8_t hash[SHA256_SIZE];
    if (captured->sum.size > config->size_max) {
        return false;
    }
    if (wish->kind == WISH_DIGEST) {
        return memcmp(captured->sum.digest, wish->digest, WISH_DIGEST_SIZE) == 0;
    }
    if (wish->kind == WISH_URL) {
        sha256_digest(&errand->session->sha256, captured->surt, hash);
        if (memcmp(hash, wish->hash, WISH_HASH_SIZE) != 0) {
            return false;
        }
    }
    return reader_trusts(config, captured->is_signed, captured->signer) ||
           reader_trusts(config, captured->is_imported, captured->importer) || config->takes_any;
}

/* The words can be looked for only when the page is here. */
static bool has_words(const struct errand *errand, const struct captured *captured) {
    struct crowd_reader_session *session = errand->session;
    if (errand->wish->kind != WISH_WORDS) {
        return true;
    }
    buf_clear(&session->words);
    buf_clear(&session->title_words);
    offers_title_put_words(&session->words, errand->wish->words);
    offers_title_put_words(&session->title_words,
                           offers_title_find(&session->title, &captured->document, captured->payload));
    return session->words.err == ERR_OK && session->title_words.err == ERR_OK &&
           offers_title_has_words(buf_bytes(&session->title_words), buf_bytes(&session->words));
}

/* ---- which capture, from which node ---- */

static struct candidate *find_candidate(struct crowd_reader_session *session, const struct ringkey *key) {
    for (size_t i = 0; i < session->candidates_count; i++) {
        if (ringkey_compare(&session->candidates[i].key, key) == 0) {
            return &session->candidates[i];
        }
    }
    return NULL;
}

/* At its place: the best first. NULL: there are enough that are better. */
static struct candidate *add_candidate(struct errand *errand, const struct ringkey *key) {
    struct crowd_reader_session *session = errand->session;
    struct candidate *candidates = session->candidates;
    int64_t time_us = ringkey_time_us(key);
    size_t place = session->candidates_count;
    while (errand->wish->kind != WISH_DIGEST && place > 0 &&
           wish_prefers(errand->wish, time_us, ringkey_time_us(&candidates[place - 1].key))) {
        place--;
    }
    if (place == CANDIDATES_MAX) {
        return NULL;
    }
    session->candidates_count += session->candidates_count < CANDIDATES_MAX;
    memmove(&candidates[place + 1], &candidates[place],
            (session->candidates_count - place - 1) * sizeof candidates[0]);
    candidates[place] = (struct candidate){.key = *key};
    return &candidates[place];
}

static void note_vain(struct errand *errand, const struct ringkey *key, const struct peer *holder) {
    if (errand->vain_count < VAIN_MAX) {
        errand->vain[errand->vain_count++] = (struct vain){.key = *key, .holder = *holder};
    }
}

static bool is_vain(const struct errand *errand, const struct ringkey *key, const struct peer *holder) {
    for (size_t i = 0; i < errand->vain_count; i++) {
        const struct vain *vain = &errand->vain[i];
        if (ringkey_compare(&vain->key, key) == 0 &&
            (vain->holder.address.port == 0 || peer_equal(&vain->holder, holder))) {
            return true;
        }
    }
    return false;
}

static bool is_possible(const struct errand *errand, const struct wish_finding *finding,
                        const struct peer *holder) {
    const struct wish *wish = errand->wish;
    if (finding->size > errand->session->reader->config.size_max || is_vain(errand, &finding->key, holder)) {
        return false;
    }
    return wish->kind == WISH_DIGEST
               ? memcmp(ringkey_digest(&finding->key), wish->digest, RINGKEY_DIGEST_SIZE) == 0
               : wish_takes_time(wish, ringkey_time_us(&finding->key));
}

static void sort_hits(struct errand *errand, size_t hits_count) {
    struct crowd_reader_session *session = errand->session;
    session->candidates_count = 0;
    for (size_t i = 0; i < hits_count; i++) {
        const struct crowd_driver_hit *hit = &session->hits[i];
        for (size_t j = 0; j < hit->findings_count; j++) {
            const struct wish_finding *finding = &hit->findings[j];
            if (!is_possible(errand, finding, &hit->holder)) {
                continue;
            }
            struct candidate *candidate = find_candidate(session, &finding->key);
            candidate = candidate != NULL ? candidate : add_candidate(errand, &finding->key);
            if (candidate != NULL && candidate->holders_count < CROWD_DRIVER_HITS_MAX) {
                candidate->hops[candidate->holders_count] = hit->hops_count;
                candidate->holders[candidate->holders_count++] = hit->holder;
            }
        }
    }
}

/* ---- fetching ---- */

static void on_blame(void *context, const struct peer *peer, const char *sentence) {
    const struct errand *errand = context;
    struct crowd_reader *reader = errand->session->reader;
    const struct crowd_reader_config *config = &reader->config;
    pthread_mutex_lock(&reader->lock);
    reader->stat.false_count++;
    pthread_mutex_unlock(&reader->lock);
    config->distrust(config->crowd_driver, peer);
    if (config->blame != NULL) {
        config->blame(config->context, peer, sentence);
    }
}

static bool avoids(void *context, const struct peer *peer) {
    const struct crowd_reader_config *config = &((struct errand *)context)->session->reader->config;
    return config->is_distrusted(config->crowd_driver, peer);
}

static void pause_for(const struct errand *errand, uint32_t pause_ms) {
    uint32_t ms = pause_ms < left_ms(errand) ? pause_ms : left_ms(errand);
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
}

/* The holders send us to others, which have not got it yet; or so many come that we were turned away. */
static bool is_for_later(enum err err) {
    return err == ERR_BUSY || err == ERR_CLOSED;
}

/* What another search cannot change. */
static bool is_final(enum err err) {
    return err == ERR_NOT_FOUND || err == ERR_MISMATCH || err == ERR_PERMISSION || err == ERR_DELETED;
}

static enum err reader_fetch(struct errand *errand, const struct candidate *candidate,
                             struct captured *ret_captured, struct err_detail *detail) {
    struct captures_request request = {
        .peers = candidate->holders,
        .peers_count = candidate->holders_count,
        .key = &candidate->key,
        .service = PEER_RPC_HAND,
        .deadline_us = errand->deadline_us,
        .takes = takes,
        .avoids = avoids,
        .blame = on_blame,
        .context = errand,
    };
    enum err err = ERR_BUSY;
    uint32_t pause_ms = PAUSE_MS_FIRST;
    for (size_t i = 0; i < TRIES_MAX && is_for_later(err) && left_ms(errand) > 0; i++, pause_ms *= 2) {
        if (i > 0) {
            pause_for(errand, pause_ms);
        }
        err = captures_fetch_by(errand->session->captures, &request, ret_captured, detail);
        err = i > 0 && err == ERR_TIMEOUT ? ERR_BUSY : err; /* that is what the time went by with */
    }
    if (err == ERR_OK && !has_words(errand, ret_captured)) {
        note_vain(errand, &candidate->key, &(struct peer){0});
        return err_set(detail, ERR_NOT_FOUND, "what was found has other words in its title");
    }
    for (size_t i = 0; i < candidate->holders_count && is_final(err); i++) {
        note_vain(errand, &candidate->key, &candidate->holders[i]);
    }
    return err;
}

static bool is_ours(enum err err) {
    return err == ERR_MEMORY || err == ERR_IO || err_is_full(err) || err == ERR_FILES || err == ERR_CANCELLED;
}

/* One capture after the other, until one is sound. What gives most hope of another search is said. */
static enum err fetch_any(struct errand *errand, struct obtained *obtained, struct err_detail *detail) {
    struct crowd_reader_session *session = errand->session;
    enum err err = err_set(detail, ERR_NOT_FOUND, "nobody has it");
    bool is_busy = false;
    bool is_false = false;
    for (size_t i = 0; i < session->candidates_count && err != ERR_OK && !is_ours(err); i++) {
        const struct candidate *candidate = &session->candidates[i];
        err = reader_fetch(errand, candidate, &obtained->captured, detail);
        is_busy = is_busy || err == ERR_BUSY;
        is_false = is_false || err == ERR_MISMATCH;
        if (err == ERR_OK) {
            obtained->key = candidate->key;
            obtained->hops_count = candidate->hops[0];
            for (size_t j = 0; j < candidate->holders_count; j++) {
                bool is_from = peer_equal(&candidate->holders[j], &obtained->captured.from);
                obtained->hops_count = is_from ? candidate->hops[j] : obtained->hops_count;
            }
        }
    }
    if (err == ERR_OK || is_ours(err)) {
        return err;
    }
    return is_busy ? ERR_BUSY : is_false ? ERR_MISMATCH : err;
}

/* ---- the whole ---- */

static bool get_own(struct errand *errand, struct obtained *obtained) {
    struct crowd_reader_session *session = errand->session;
    struct ringkey keys[WISH_FINDINGS_MAX];
    size_t count = offers_have_own(session->reader->config.offers, errand->wish, keys);
    for (size_t i = 0; i < count; i++) {
        if (offers_get(session->reader->config.offers, session->captures, &keys[i], &obtained->captured,
                       NULL) == ERR_OK) {
            obtained->key = keys[i];
            obtained->is_own = true;
            return true;
        }
    }
    return false;
}

/* Where all that is missing is somebody's turn, the time is the only bound. */
static bool searches_again(enum err err, size_t searches_count) {
    if (err == ERR_OK || is_ours(err)) {
        return false;
    }
    return err == ERR_BUSY || searches_count < SEARCHES_MAX ||
           (err == ERR_MISMATCH && searches_count < SEARCHES_FALSE_MAX);
}

static enum err search(struct errand *errand, struct obtained *obtained, struct err_detail *detail) {
    struct crowd_reader_session *session = errand->session;
    const struct crowd_reader_config *config = &session->reader->config;
    enum err err = ERR_BUSY;
    for (size_t i = 0; searches_again(err, i); i++) {
        size_t wanted = i == 0 ? HITS_WANTED_FIRST : CROWD_DRIVER_HITS_MAX;
        size_t hits_count = 0;
        uint64_t from_us = reader_now_us();
        if (left_ms(errand) == 0) {
            return i > 0 ? err : err_set(detail, ERR_TIMEOUT, "no time is left");
        }
        enum err find_err = config->find(config->crowd_driver, errand->wish, left_ms(errand), wanted,
                                         session->hits, &hits_count);
        obtained->search_us += reader_now_us() - from_us;
        if (find_err != ERR_OK) { /* what hindered the holders found before says more */
            return i > 0 ? err : err_set(detail, find_err, "the crowd: %s", err_text(find_err));
        }
        from_us = reader_now_us();
        sort_hits(errand, hits_count);
        if (i > 0 && session->candidates_count == 0) {
            return err; /* nothing new */
        }
        err = fetch_any(errand, obtained, detail);
        obtained->transfer_us += reader_now_us() - from_us;
    }
    return err;
}

static void reader_note(struct crowd_reader *reader, enum err err, const struct obtained *obtained) {
    pthread_mutex_lock(&reader->lock);
    struct crowd_reader_stat *stat = &reader->stat;
    stat->wanted_count++;
    stat->lost_count += err != ERR_OK;
    stat->own_count += err == ERR_OK && obtained->is_own;
    if (err == ERR_OK && !obtained->is_own) {
        stat->obtained_count++;
        stat->obtained_size += obtained->captured.payload.size;
    }
    pthread_mutex_unlock(&reader->lock);
}

/* It is ours from now on, and offered. */
static void reader_keep(struct crowd_reader *reader, const struct wish *wish, struct bytes surt,
                        struct obtained *obtained, struct obtained *ret_obtained) {
    if (!obtained->is_own) {
        obtained->from = obtained->captured.from;
        obtained->holders_count = obtained->captured.holders_count;
        struct bytes own = surt.size > 0 && wish->kind == WISH_URL ? surt : obtained->captured.surt;
        offers_put(reader->config.offers, &obtained->key, &obtained->captured, own, bytes_of(NULL, 0));
    }
    const struct captured *captured = &obtained->captured;
    obtained->is_fetch_vouched_for =
        captured->is_signed &&
        (reader->config.takes_any || reader_trusts(&reader->config, captured->is_signed, captured->signer));
    *ret_obtained = *obtained;
    ret_obtained->captured.document.sum = &ret_obtained->captured.sum;
}

enum err crowd_reader_get(struct crowd_reader_session *session, const struct wish *wish, struct bytes surt,
                          uint32_t timeout_ms, struct obtained *ret_obtained, struct err_detail *detail) {
    struct crowd_reader *reader = session->reader;
    struct errand errand = {
        .session = session,
        .wish = wish,
        .deadline_us = reader_now_us() + (uint64_t)timeout_ms * 1000,
    };
    struct obtained obtained = {0};
    enum err err = get_own(&errand, &obtained) ? ERR_OK : search(&errand, &obtained, detail);
    reader_note(reader, err, &obtained);
    if (err == ERR_OK) {
        reader_keep(reader, wish, surt, &obtained, ret_obtained);
    }
    return err;
}

enum err crowd_reader_take(struct crowd_reader_session *session, const struct wish *wish,
                           const struct crowd_driver_hit *hits, size_t hits_count, uint32_t timeout_ms,
                           struct obtained *ret_obtained, struct err_detail *detail) {
    struct errand errand = {
        .session = session,
        .wish = wish,
        .deadline_us = reader_now_us() + (uint64_t)timeout_ms * 1000,
    };
    struct obtained obtained = {0};
    ASSERT(hits_count <= CROWD_DRIVER_HITS_MAX);
    memcpy(session->hits, hits, hits_count * sizeof *hits);
    sort_hits(&errand, hits_count);
    enum err err = get_own(&errand, &obtained) ? ERR_OK : fetch_any(&errand, &obtained, detail);
    reader_note(session->reader, err, &obtained);
    if (err == ERR_OK) {
        reader_keep(session->reader, wish, bytes_of(NULL, 0), &obtained, ret_obtained);
    }
    return err;
}

void crowd_reader_stat(struct crowd_reader *reader, struct crowd_reader_stat *ret_stat) {
    pthread_mutex_lock(&reader->lock);
    *ret_stat = reader->stat;
    pthread_mutex_unlock(&reader->lock);
}
