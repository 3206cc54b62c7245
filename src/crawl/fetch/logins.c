#include "crawl/fetch/logins.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "web/url/percent.h"

enum { VALUE_SIZE_MAX = LOGINS_TEXT_SIZE_MAX / 3 * 4 + 16, ORIGIN_SIZE_MAX = URL_SIZE_MAX };

void logins_init(struct logins *logins) {
    *logins = (struct logins){0};
}

static void login_wipe(struct buf *secret) {
    if (secret->data != NULL) {
        OPENSSL_cleanse(secret->data, secret->capacity);
    }
    buf_done(secret);
}

void logins_done(struct logins *logins) {
    for (size_t i = 0; i < logins->count; i++) {
        buf_done(&logins->items[i].origin);
        login_wipe(&logins->items[i].value);
    }
    free(logins->items);
    logins_init(logins);
}

static enum err login_put_value(const struct url *url, struct buf *value) {
    struct buf plain;
    uint8_t coded[LOGINS_TEXT_SIZE_MAX / 3 * 4 + 5];
    buf_init(&plain, LOGINS_TEXT_SIZE_MAX);
    buf_reserve(&plain, LOGINS_TEXT_SIZE_MAX); /* it never moves, so no copy of it stays behind */
    percent_put_decoded(&plain, url_username(url));
    buf_put_byte(&plain, ':');
    percent_put_decoded(&plain, url_password(url));
    enum err err = plain.err;
    if (err == ERR_OK) {
        int size = EVP_EncodeBlock(coded, plain.data, (int)plain.size);
        buf_reserve(value, VALUE_SIZE_MAX);
        buf_put_string(value, "Basic ");
        err = buf_put(value, bytes_of(coded, (size_t)size));
        OPENSSL_cleanse(coded, sizeof coded);
    }
    login_wipe(&plain);
    return err;
}

static const struct login *logins_find_origin(const struct logins *logins, struct bytes origin) {
    for (size_t i = 0; i < logins->count; i++) {
        if (bytes_equal(buf_bytes(&logins->items[i].origin), origin)) {
            return &logins->items[i];
        }
    }
    return NULL;
}

/* Take it, unless the same one is known. Then, and after a failure, it stays the caller's. */
static enum err logins_take(struct logins *logins, const struct login *login, bool *ret_is_taken,
                            struct err_detail *detail) {
    const struct login *known = logins_find_origin(logins, buf_bytes(&login->origin));
    if (known != NULL) {
        return bytes_equal(buf_bytes(&known->value), buf_bytes(&login->value))
                   ? ERR_OK
                   : err_set(detail, ERR_INVALID, "another user or password was given for the same origin");
    }
    if (logins->count == LOGINS_MAX) {
        return err_set(detail, ERR_LIMIT, "more than %d origins with a user and password", LOGINS_MAX);
    }
    struct login *items = realloc(logins->items, (logins->count + 1) * sizeof *items);
    if (items == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    logins->items = items;
    logins->items[logins->count++] = *login;
    *ret_is_taken = true;
    return ERR_OK;
}

enum err logins_add(struct logins *logins, const struct url *url, struct err_detail *detail) {
    if (!url_has_userinfo(url)) {
        return ERR_OK;
    }
    struct login login;
    bool is_taken = false;
    buf_init(&login.origin, ORIGIN_SIZE_MAX);
    buf_init(&login.value, VALUE_SIZE_MAX);
    enum err err = url_put_origin(url, &login.origin);
    err = err == ERR_OK ? login_put_value(url, &login.value) : err;
    if (err == ERR_OK) {
        err = logins_take(logins, &login, &is_taken, detail);
    } else {
        err_set(detail, err, "%s", err == ERR_LIMIT ? "user and password are too long" : err_text(err));
    }
    if (!is_taken) {
        buf_done(&login.origin);
        login_wipe(&login.value);
    }
    return err;
}

struct bytes logins_find(const struct logins *logins, const struct url *url) {
    struct buf origin;
    if (logins == NULL || logins->count == 0) {
        return bytes_of(NULL, 0);
    }
    buf_init(&origin, ORIGIN_SIZE_MAX);
    const struct login *login =
        url_put_origin(url, &origin) == ERR_OK ? logins_find_origin(logins, buf_bytes(&origin)) : NULL;
    buf_done(&origin);
    return login != NULL ? buf_bytes(&login->value) : bytes_of(NULL, 0);
}
