#include "node/reading/public_urls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "web/url/url.h"

enum {
    KNOWN_MAX = 256,
    WAITERS_MAX = 8, /* threads of the HTTP server */
    TIMEOUT_MS = 1000,
    SAID_S = 600,
    SILENT_S = 30,
};
static const uint64_t SECOND_US = 1000000;
static const char SIGNATURE_CONTEXT[] = "entrance";

struct known {
    uint8_t key[PEER_KEY_SIZE];
    uint64_t until_us;
    char text[PUBLIC_URLS_TEXT_SIZE]; /* empty: none */
};

struct public_urls {
    struct public_urls_config config;
    char own[PUBLIC_URLS_TEXT_SIZE];
    pthread_mutex_t lock;
    struct known known[KNOWN_MAX]; /* lock */
    size_t known_next;             /* lock */
    unsigned waiters_count;        /* lock */
};

bool public_urls_is_origin(struct bytes text) {
    struct url url;
    struct buf origin;
    url_init(&url);
    buf_init(&origin, PUBLIC_URLS_TEXT_SIZE);
    bool is_origin = text.size < PUBLIC_URLS_TEXT_SIZE && url_parse(&url, text, NULL, NULL) == ERR_OK &&
                     (url.scheme_type == URL_SCHEME_HTTP || url.scheme_type == URL_SCHEME_HTTPS) &&
                     url_put_origin(&url, &origin) == ERR_OK && bytes_equal(buf_bytes(&origin), text);
    buf_done(&origin);
    url_done(&url);
    return is_origin;
}

/* ---- our own ---- */

/* The signature, then the text; nothing if there is none. */
static enum err answer_entrance(void *context, const struct peer *from, struct bytes question,
                                struct buf *answer, struct err_detail *detail) {
    const struct public_urls *public_urls = context;
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    struct bytes own = bytes_of_string(public_urls->own);
    (void)from;
    if (question.size > 0) {
        return err_set(detail, ERR_INVALID, "bytes left over");
    }
    if (own.size == 0) {
        return ERR_OK;
    }
    identity_sign(public_urls->config.identity, SIGNATURE_CONTEXT, own, signature);
    buf_put(answer, bytes_of(signature, sizeof signature));
    return buf_put(answer, own);
}

struct public_urls *public_urls_new(const struct public_urls_config *config) {
    struct public_urls *public_urls = calloc(1, sizeof *public_urls);
    if (public_urls == NULL) {
        return NULL;
    }
    public_urls->config = *config;
    public_urls->config.timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    snprintf(public_urls->own, sizeof public_urls->own, "%s", config->own != NULL ? config->own : "");
    pthread_mutex_init(&public_urls->lock, NULL);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_ENTRANCE, answer_entrance, public_urls);
    return public_urls;
}

void public_urls_free(struct public_urls *public_urls) {
    if (public_urls != NULL) {
        pthread_mutex_destroy(&public_urls->lock);
        free(public_urls);
    }
}

/* ---- those of others ---- */

/* The lock is held. */
static struct known *find_known(struct public_urls *public_urls, const struct peer *peer) {
    for (size_t i = 0; i < KNOWN_MAX; i++) {
        struct known *known = &public_urls->known[i];
        if (known->until_us > 0 && memcmp(known->key, peer->key, PEER_KEY_SIZE) == 0) {
            return known;
        }
    }
    return NULL;
}

static void urls_keep(struct public_urls *public_urls, const struct peer *peer, const char *text,
                      uint64_t seconds) {
    pthread_mutex_lock(&public_urls->lock);
    struct known *known = find_known(public_urls, peer);
    if (known == NULL) {
        known = &public_urls->known[public_urls->known_next];
        public_urls->known_next = (public_urls->known_next + 1) % KNOWN_MAX;
    }
    memcpy(known->key, peer->key, PEER_KEY_SIZE);
    snprintf(known->text, sizeof known->text, "%s", text);
    known->until_us = clock_monotonic_us(public_urls->config.clock) + seconds * SECOND_US;
    pthread_mutex_unlock(&public_urls->lock);
}

/* True: *ret_text is what the node said, empty for nothing. */
static bool urls_read_answer(const struct peer *peer, struct bytes answer,
                             char ret_text[PUBLIC_URLS_TEXT_SIZE]) {
    ret_text[0] = '\0';
    if (answer.size == 0) {
        return true;
    }
    if (answer.size < IDENTITY_SIGNATURE_SIZE) {
        return false;
    }
    struct bytes text = bytes_slice(answer, IDENTITY_SIGNATURE_SIZE, answer.size);
    if (!public_urls_is_origin(text) || !identity_verify(peer->key, SIGNATURE_CONTEXT, text, answer.data)) {
        return false;
    }
    snprintf(ret_text, PUBLIC_URLS_TEXT_SIZE, "%.*s", BYTES_ARG(text));
    return true;
}

static void urls_ask(struct public_urls *public_urls, const struct peer *peer,
                     char out[PUBLIC_URLS_TEXT_SIZE]) {
    const struct public_urls_config *config = &public_urls->config;
    struct buf answer;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err = peer_rpc_ask(config->peer_rpc, peer, PEER_RPC_ENTRANCE, bytes_of(NULL, 0),
                                config->timeout_ms, &answer, NULL);
    bool is_said = err == ERR_OK && urls_read_answer(peer, buf_bytes(&answer), out);
    if (err == ERR_OK && !is_said) {
        config->blame(config->context, peer, "says of its pages what is not signed by it, or no origin");
    }
    urls_keep(public_urls, peer, is_said ? out : "", is_said ? SAID_S : SILENT_S);
    buf_done(&answer);
}

bool public_urls_find(struct public_urls *public_urls, const struct peer *peer,
                      char out[PUBLIC_URLS_TEXT_SIZE]) {
    out[0] = '\0';
    pthread_mutex_lock(&public_urls->lock);
    const struct known *known = find_known(public_urls, peer);
    bool is_known = known != NULL && clock_monotonic_us(public_urls->config.clock) < known->until_us;
    if (is_known) {
        memcpy(out, known->text, PUBLIC_URLS_TEXT_SIZE);
    }
    bool may_ask = !is_known && peer_has_key(peer) && public_urls->waiters_count < WAITERS_MAX;
    public_urls->waiters_count += may_ask;
    pthread_mutex_unlock(&public_urls->lock);
    if (may_ask) {
        urls_ask(public_urls, peer, out);
        pthread_mutex_lock(&public_urls->lock);
        public_urls->waiters_count--;
        pthread_mutex_unlock(&public_urls->lock);
    }
    return out[0] != '\0';
}
