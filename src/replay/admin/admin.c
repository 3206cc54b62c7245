#include "replay/admin/admin.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/address.h"
#include "base/hex.h"
#include "http/message/status.h"
#include "http/server/form.h"
#include "http/server/http_limit.h"

enum {
    ID_SIZE = 32,
    ID_TEXT_SIZE = 2 * ID_SIZE,
    SESSION_S = 12 * 3600,
    FAILURES_PER_MINUTE = 10,
    COOKIE_NAME_SIZE_MAX = 32,
};

struct session {
    char id[ID_TEXT_SIZE + 1];
    uint64_t until_us; /* 0: free */
    struct address client;
};

struct admin {
    struct admin_config config;
    uint8_t form_secret[ID_SIZE];
    struct http_limit requests; /* if there is a rate */
    struct http_limit failures;
    pthread_mutex_t lock;
    struct session sessions[ADMIN_SESSIONS_MAX]; /* lock */
};

struct admin *admin_new(const struct admin_config *config) {
    struct admin *admin = calloc(1, sizeof *admin);
    uint64_t seeds[2];
    if (admin == NULL || getrandom(seeds, sizeof seeds, 0) != sizeof seeds ||
        getrandom(admin->form_secret, sizeof admin->form_secret, 0) != sizeof admin->form_secret) {
        free(admin);
        return NULL;
    }
    ASSERT(config->token[0] != '\0' && config->clock != NULL);
    admin->config = *config;
    pthread_mutex_init(&admin->lock, NULL);
    uint64_t rate = config->rate > 0 ? config->rate : 1;
    http_limit_init(&admin->requests, rate, 1000000, 2 * rate, seeds[0]);
    http_limit_init(&admin->failures, FAILURES_PER_MINUTE, 60 * 1000000, FAILURES_PER_MINUTE, seeds[1]);
    return admin;
}

void admin_free(struct admin *admin) {
    http_limit_done(&admin->requests);
    http_limit_done(&admin->failures);
    pthread_mutex_destroy(&admin->lock);
    free(admin);
}

uint64_t admin_refused_count(struct admin *admin) {
    return http_limit_refused_count(&admin->requests);
}

static uint64_t admin_now_us(const struct admin *admin) {
    return clock_monotonic_us(admin->config.clock);
}

static void add_retry_after(struct http_request *request, uint64_t wait_us) {
    char text[24];
    snprintf(text, sizeof text, "%ju", (uintmax_t)(wait_us / 1000000 + 1));
    http_add_header(request, "Retry-After", text);
}

/* ---- tokens and cookies ---- */

/* The time that this takes does not depend on how much of it is right. */
static bool is_equal(struct bytes given, const char *secret) {
    size_t size = strlen(secret);
    return given.size == size && CRYPTO_memcmp(given.data, secret, size) == 0;
}

static struct bytes bearer_of(const struct http_request *request) {
    struct bytes value = bytes_trim(http_request_header(request, "Authorization"));
    struct bytes scheme = BYTES("Bearer ");
    bool fits = value.size > scheme.size && bytes_starts_with_ignore_case(value, scheme);
    return fits ? bytes_trim(bytes_skip(value, scheme.size)) : bytes_of(NULL, 0);
}

/* Cookies go to all ports of a host: each node has a name of its own. */
static void cookie_name(const struct http_request *request, char out[COOKIE_NAME_SIZE_MAX]) {
    snprintf(out, COOKIE_NAME_SIZE_MAX, "mnemon_%u", http_request_port(request));
}

static struct bytes cookie_of(const struct http_request *request) {
    struct bytes rest = http_request_header(request, "Cookie");
    char name[COOKIE_NAME_SIZE_MAX];
    struct bytes part;
    cookie_name(request, name);
    while (rest.size > 0 && bytes_split(&rest, ';', &part)) {
        part = bytes_trim(part);
        size_t equals = bytes_find_byte(part, '=');
        if (equals < part.size && bytes_equal(bytes_slice(part, 0, equals), bytes_of_string(name))) {
            return bytes_skip(part, equals + 1);
        }
    }
    return bytes_of(NULL, 0);
}

/* With the lock. NULL if there is none, or if it has ended. */
static struct session *find_session(struct admin *admin, struct bytes id) {
    uint64_t now = admin_now_us(admin);
    struct session *found = NULL;
    for (size_t i = 0; i < ADMIN_SESSIONS_MAX && id.size == ID_TEXT_SIZE; i++) {
        struct session *session = &admin->sessions[i];
        if (session->until_us > now && is_equal(id, session->id)) {
            found = session;
        }
    }
    return found;
}

static bool has_session(struct admin *admin, const struct http_request *request) {
    pthread_mutex_lock(&admin->lock);
    bool is_there = find_session(admin, cookie_of(request)) != NULL;
    pthread_mutex_unlock(&admin->lock);
    return is_there;
}

static bool has_session_from(struct admin *admin, const struct address *client) {
    uint64_t now = admin_now_us(admin);
    bool is_there = false;
    pthread_mutex_lock(&admin->lock);
    for (size_t i = 0; i < ADMIN_SESSIONS_MAX && !is_there; i++) {
        const struct session *session = &admin->sessions[i];
        is_there = session->until_us > now && memcmp(session->client.ip, client->ip, sizeof client->ip) == 0;
    }
    pthread_mutex_unlock(&admin->lock);
    return is_there;
}

/* ---- may it? ---- */

bool admin_is_own_page(const struct http_request *request, bool is_lenient) {
    struct bytes site = http_request_header(request, "Sec-Fetch-Site");
    struct bytes origin = http_request_header(request, "Origin");
    struct bytes host = http_request_header(request, "Host");
    if (site.size > 0 && !bytes_equal(site, BYTES("same-origin"))) {
        return false;
    }
    if (origin.size == 0) {
        return site.size > 0 || is_lenient;
    }
    size_t at = bytes_find(origin, BYTES("://")); /* behind a proxy it may be https */
    return at < origin.size && host.size > 0 && bytes_equal_ignore_case(bytes_skip(origin, at + 3), host);
}

bool admin_form_token(struct admin *admin, const struct http_request *request,
                      char out[ADMIN_FORM_TOKEN_SIZE + 1]) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    struct bytes id = cookie_of(request);
    out[0] = '\0';
    if (!has_session(admin, request) || HMAC(EVP_sha256(), admin->form_secret, sizeof admin->form_secret,
                                             id.data, id.size, digest, &size) == NULL) {
        return false;
    }
    ASSERT(2 * size == ADMIN_FORM_TOKEN_SIZE);
    hex_encode(bytes_of(digest, size), out);
    return true;
}

/* In the header, or in the form; without a body yet, it may still come. */
static bool shows_form_token(struct admin *admin, const struct http_request *request,
                             const struct bytes *body) {
    char token[ADMIN_FORM_TOKEN_SIZE + 1];
    struct bytes given = http_request_header(request, ADMIN_FORM_HEADER);
    struct buf field;
    if (!admin_form_token(admin, request, token)) {
        return false;
    }
    if (given.size > 0 || body == NULL) {
        return given.size == 0 || is_equal(given, token);
    }
    buf_init(&field, ADMIN_FORM_TOKEN_SIZE);
    bool is_shown = form_get(*body, ADMIN_FORM_FIELD, &field) && field.err == ERR_OK &&
                    is_equal(buf_bytes(&field), token);
    buf_done(&field);
    return is_shown;
}

/* A token, wherever it came from: a client that tries too many does not learn whether one is right. */
static enum admin_verdict try_token(struct admin *admin, struct http_request *request, struct bytes token) {
    struct address client;
    uint64_t wait_us;
    http_request_client(request, &client);
    bool is_open = http_limit_is_open(&admin->failures, &client, admin_now_us(admin), &wait_us);
    bool is_right = is_equal(token, admin->config.token);
    if (is_open && !is_right) {
        http_limit_take(&admin->failures, &client, admin_now_us(admin), &wait_us);
    }
    if (!is_open) {
        add_retry_after(request, wait_us);
        return ADMIN_LIMITED;
    }
    return is_right ? ADMIN_ALLOWED : ADMIN_WRONG;
}

enum admin_verdict admin_verdict(struct admin *admin, struct http_request *request,
                                 const struct bytes *body) {
    struct bytes token = bearer_of(request);
    if (token.size > 0) {
        return try_token(admin, request, token);
    }
    if (cookie_of(request).size == 0) {
        return ADMIN_UNKNOWN;
    }
    if (!has_session(admin, request)) {
        return ADMIN_WRONG;
    }
    if (!admin_is_own_page(request, false)) {
        return ADMIN_FOREIGN;
    }
    return shows_form_token(admin, request, body) ? ADMIN_ALLOWED : ADMIN_FORGED;
}

const char *admin_verdict_text(enum admin_verdict verdict) {
    switch (verdict) {
    case ADMIN_ALLOWED:
        break;
    case ADMIN_UNKNOWN:
        return "this request changes something: log in at /login, or send the token (Authorization: Bearer "
               "TOKEN)";
    case ADMIN_WRONG:
        return "the token is wrong, or the login has expired; the token is in the data directory of the node";
    case ADMIN_FOREIGN:
        return "this request came from a page of another site, or does not say where it came from: use this "
               "node's own pages";
    case ADMIN_FORGED:
        return "this request does not show the token of a form of this login (" ADMIN_FORM_FIELD
               " or " ADMIN_FORM_HEADER "): load the page again, and send its form";
    case ADMIN_LIMITED:
        return "too many wrong tokens came from this address: wait a minute";
    }
    return "allowed";
}

unsigned admin_verdict_status(enum admin_verdict verdict) {
    switch (verdict) {
    case ADMIN_ALLOWED:
        return STATUS_OK;
    case ADMIN_FOREIGN:
    case ADMIN_FORGED:
        return STATUS_FORBIDDEN;
    case ADMIN_LIMITED:
        return STATUS_TOO_MANY;
    case ADMIN_UNKNOWN:
    case ADMIN_WRONG:
        break;
    }
    return STATUS_UNAUTHORIZED;
}

bool admin_is_known(struct admin *admin, const struct http_request *request) {
    struct bytes token = bearer_of(request);
    return token.size > 0 ? is_equal(token, admin->config.token) : has_session(admin, request);
}

/* ---- logging in and out ---- */

static void add_cookie(struct http_request *request, const char *id, unsigned seconds) {
    char name[COOKIE_NAME_SIZE_MAX];
    char text[ADMIN_COOKIE_SIZE_MAX];
    cookie_name(request, name);
    snprintf(text, sizeof text, "%s=%s; Path=/; Max-Age=%u; HttpOnly; SameSite=Strict", name, id, seconds);
    http_add_header(request, "Set-Cookie", text);
}

/* The one that ends first makes room. */
static void add_session(struct admin *admin, const char *id, const struct address *client) {
    pthread_mutex_lock(&admin->lock);
    struct session *place = &admin->sessions[0];
    for (size_t i = 1; i < ADMIN_SESSIONS_MAX; i++) {
        place = admin->sessions[i].until_us < place->until_us ? &admin->sessions[i] : place;
    }
    memcpy(place->id, id, sizeof place->id);
    place->until_us = admin_now_us(admin) + SESSION_S * UINT64_C(1000000);
    place->client = *client;
    pthread_mutex_unlock(&admin->lock);
}

enum admin_verdict admin_login(struct admin *admin, struct http_request *request, struct bytes token) {
    uint8_t random[ID_SIZE];
    char id[ID_TEXT_SIZE + 1];
    struct address client;
    enum admin_verdict verdict = try_token(admin, request, bytes_trim(token));
    if (verdict != ADMIN_ALLOWED) {
        return verdict;
    }
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        return ADMIN_LIMITED;
    }
    hex_encode(bytes_of(random, sizeof random), id);
    http_request_client(request, &client);
    add_session(admin, id, &client);
    add_cookie(request, id, SESSION_S);
    return ADMIN_ALLOWED;
}

void admin_logout(struct admin *admin, struct http_request *request) {
    pthread_mutex_lock(&admin->lock);
    struct session *session = find_session(admin, cookie_of(request));
    if (session != NULL) {
        *session = (struct session){0};
    }
    pthread_mutex_unlock(&admin->lock);
    add_cookie(request, "", 0);
}

/* ---- names of this node ---- */

static bool is_loopback_number(struct bytes name) {
    struct address address;
    bool is_bracketed = bytes_starts_with(name, BYTES("[")) && bytes_ends_with(name, BYTES("]"));
    bool has_colon = bytes_find_byte(name, ':') < name.size;
    return is_bracketed == has_colon && address_parse(name, 1 /* any port */, &address) &&
           address_is_loopback(&address);
}

/* Without ":8080"; "[::1]" keeps its brackets. False if there is no port but a colon. */
static bool cut_port(struct bytes host, struct bytes *ret_name) {
    size_t end = host.size;
    while (end > 0 && byte_is_digit(host.data[end - 1])) {
        end--;
    }
    bool has_port = end > 0 && host.data[end - 1] == ':';
    uint64_t port;
    *ret_name = has_port ? bytes_slice(host, 0, end - 1) : host;
    return !has_port || bytes_to_u64(bytes_skip(host, end), UINT16_MAX, &port);
}

bool admin_host_is_own(struct bytes host, const struct config_list *others) {
    struct bytes name;
    if (host.size == 0) {
        return true;
    }
    bool has_name = cut_port(host, &name);
    for (size_t i = 0; i < others->count; i++) {
        struct bytes other = others->items[i];
        if (bytes_equal(other, BYTES("*")) || bytes_equal_ignore_case(other, host) ||
            (has_name && bytes_equal_ignore_case(other, name))) {
            return true;
        }
    }
    if (!has_name) {
        return false;
    }
    struct bytes suffix = BYTES(".localhost");
    bool is_below =
        name.size > suffix.size && bytes_equal_ignore_case(bytes_skip(name, name.size - suffix.size), suffix);
    return bytes_equal_ignore_case(name, BYTES("localhost")) || is_below || is_loopback_number(name);
}

/* ---- in front of every request ---- */

/* What must be there for a login, or has checks of its own. */
static bool is_open_to_all(struct bytes path) {
    return bytes_equal(path, BYTES("/login")) || bytes_equal(path, BYTES("/health")) ||
           bytes_equal(path, BYTES("/robots.txt")) || bytes_equal(path, BYTES("/favicon.ico")) ||
           bytes_starts_with(path, BYTES("/static/")) || bytes_starts_with(path, BYTES("/api/v1/volumes"));
}

static bool may_read(struct admin *admin, const struct http_request *request, const struct address *client) {
    struct bytes path = http_request_path(request);
    return !admin->config.reads_need_login || is_open_to_all(path) || admin_is_known(admin, request) ||
           (bytes_starts_with(path, BYTES("/web/")) && has_session_from(admin, client));
}

static void ask_to_login(struct http_request *request) {
    struct bytes accept = http_request_header(request, "Accept");
    if (bytes_find(accept, BYTES("text/html")) < accept.size) {
        http_add_header(request, "Location", "/login");
        http_answer_status(request, STATUS_SEE_OTHER, ERR_PERMISSION, "log in first");
        return;
    }
    http_add_header(request, "WWW-Authenticate", "Bearer realm=\"mnemon\"");
    http_answer_status(
        request, STATUS_UNAUTHORIZED, ERR_PERMISSION,
        "this archive is not public: log in at /login, or send the token (Authorization: Bearer "
        "TOKEN)");
}

bool admin_check(void *context, struct http_request *request) {
    struct admin *admin = context;
    struct address client;
    uint64_t wait_us;
    http_request_client(request, &client);
    if (admin->config.is_loopback &&
        !admin_host_is_own(http_request_header(request, "Host"), &admin->config.hosts)) {
        http_answer_status(
            request, STATUS_MISDIRECTED, ERR_PERMISSION,
            "this node does not answer to that name: use localhost, its IP address, or a name that the "
            "setting http.hosts lists");
        return false;
    }
    bool is_counted =
        admin->config.rate > 0 && !address_is_loopback(&client) && !admin_is_known(admin, request);
    if (is_counted && !http_limit_take(&admin->requests, &client, admin_now_us(admin), &wait_us)) {
        add_retry_after(request, wait_us);
        http_answer_status(request, STATUS_TOO_MANY, ERR_LIMIT, "too many requests from this address");
        return false;
    }
    if (!may_read(admin, request, &client)) {
        ask_to_login(request);
        return false;
    }
    return true;
}
