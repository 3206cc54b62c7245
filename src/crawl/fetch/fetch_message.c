/*
 * fetch_message - the request: its lines as they are sent.
 *
 *      GET /path?query HTTP/1.1          the target, given to libcurl as it is
 *      Host: example.org:8080            written by libcurl, from the URL
 *      Accept: ...                       the block: one text, given to libcurl as if it were one header, so
 *      Accept-Encoding: ...              that it is sent as it stands. It begins with Accept, or libcurl
 *      User-Agent: ...                   would add its own
 *      own headers
 *      If-None-Match, If-Modified-Since
 *      Authorization, Proxy-Authorization    last, so that what is recorded is the block without its end
 *
 * So what is sent is known without asking libcurl to report it, which would cost more than the request
 * itself. The tests hold it against what a server receives.
 */
#include "crawl/fetch/fetch_state.h"

const char fetch_user_agent[] = "Mozilla/5.0 (compatible; mnemon; web archive)";

/* What replay and link extraction can decode. */
#define ACCEPT_ENCODING "gzip, deflate, br, zstd"
#define ACCEPT "*/*"

/* Those that decide how the message is read, or belong to the connection. */
static const char *const forbidden[] = {
    "Host",           "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding",
    "Content-Length", "Expect",     "TE",         "Trailer",          "Upgrade",
    "Range",          "If-Range",
};

static struct bytes name_of(struct bytes header) {
    return bytes_slice(header, 0, bytes_find_byte(header, ':'));
}

static enum err check_header(struct bytes header, struct err_detail *detail) {
    struct bytes name = name_of(header);
    bool is_sound = http_is_token(name) && name.size < header.size && !http_has_controls(header);
    if (!is_sound || bytes_trim(bytes_skip(header, name.size + 1)).size == 0) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is no header of the form \"Name: value\"",
                       BYTES_ARG(bytes_slice(header, 0, header.size < 80 ? header.size : 80)));
    }
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(forbidden[i]))) {
            return err_set(detail, ERR_INVALID, "the header %s cannot be set", forbidden[i]);
        }
    }
    return ERR_OK;
}

/* The own header of that name, or NULL. */
static const char *find_own(const struct fetch_config *config, const char *name) {
    for (const char *const *header = config->headers; header != NULL && *header != NULL; header++) {
        if (bytes_equal_ignore_case(name_of(bytes_of_string(*header)), bytes_of_string(name))) {
            return *header;
        }
    }
    return NULL;
}

static void message_put_line(struct buf *out, const char *name, struct bytes value) {
    buf_put(out, BYTES("\r\n"));
    buf_put_string(out, name);
    buf_put(out, BYTES(": "));
    buf_put(out, value);
}

/* A record is read by others than the server: what lets somebody in there is not for them. */
static bool message_is_secret(struct bytes name) {
    return bytes_equal_ignore_case(name, BYTES("Authorization")) ||
           bytes_equal_ignore_case(name, BYTES("Proxy-Authorization"));
}

static enum err message_put_own(struct fetch_message *message, const struct fetch_config *config,
                                struct err_detail *detail) {
    for (const char *const *header = config->headers; header != NULL && *header != NULL; header++) {
        struct bytes text = bytes_of_string(*header);
        enum err err = check_header(text, detail);
        if (err != ERR_OK) {
            return err;
        }
        if (!bytes_equal_ignore_case(name_of(text), BYTES("Accept"))) {
            struct buf *out = message_is_secret(name_of(text)) ? &message->secrets : &message->rest;
            buf_put(out, BYTES("\r\n"));
            buf_put(out, bytes_trim(text));
        }
    }
    return message->rest.err != ERR_OK ? message->rest.err : message->secrets.err;
}

static enum err put_rest(struct fetch_message *message, const struct fetch_config *config,
                         struct err_detail *detail) {
    struct buf *rest = &message->rest;
    const char *agent = config->user_agent != NULL ? config->user_agent : fetch_user_agent;
    if (http_has_controls(bytes_of_string(agent)) || bytes_trim(bytes_of_string(agent)).size == 0) {
        return err_set(detail, ERR_INVALID, "the user agent is empty or has control characters in it");
    }
    if (find_own(config, "Accept-Encoding") == NULL) {
        message_put_line(rest, "Accept-Encoding", BYTES(ACCEPT_ENCODING));
    }
    if (find_own(config, "User-Agent") == NULL) {
        message_put_line(rest, "User-Agent", bytes_of_string(agent));
    }
    enum err err = message_put_own(message, config, detail);
    return err == ERR_OK || err == ERR_INVALID
               ? err
               : err_set(detail, err, "%s", err == ERR_LIMIT ? "the headers are too long" : err_text(err));
}

enum err fetch_message_init(struct fetch_message *message, const struct fetch_config *config,
                            struct err_detail *detail) {
    struct bytes no_login = {NULL, 0};
    *message = (struct fetch_message){.accept = find_own(config, "Accept")};
    buf_init(&message->rest, FETCH_MESSAGE_BLOCK_SIZE_MAX / 2);
    buf_init(&message->secrets, FETCH_MESSAGE_BLOCK_SIZE_MAX / 4);
    buf_init(&message->block, FETCH_MESSAGE_BLOCK_SIZE_MAX);
    enum err err = put_rest(message, config, detail);
    if (err == ERR_OK) {
        err = fetch_message_put_block(message, &(struct fetch_request){0}, no_login, &message->block,
                                      &message->public_size);
    }
    if (err != ERR_OK) {
        fetch_message_done(message);
    }
    return err;
}

void fetch_message_done(struct fetch_message *message) {
    buf_done(&message->rest);
    buf_done(&message->secrets);
    buf_done(&message->block);
}

bool fetch_message_is_usual(const struct fetch_request *request, struct bytes login) {
    return request->accept.size == 0 && request->if_none_match.size == 0 &&
           request->if_modified_since.size == 0 && login.size == 0;
}

static void put_condition(struct buf *block, const char *name, struct bytes value) {
    value = bytes_trim(value);
    if (value.size > 0 && value.size <= FETCH_MESSAGE_VALUE_SIZE_MAX && !http_has_controls(value)) {
        message_put_line(block, name, value);
    }
}

enum err fetch_message_put_block(const struct fetch_message *message, const struct fetch_request *request,
                                 struct bytes login, struct buf *block, size_t *ret_public_size) {
    struct bytes accept = bytes_trim(request->accept);
    bool is_asked =
        accept.size > 0 && accept.size <= FETCH_MESSAGE_VALUE_SIZE_MAX && !http_has_controls(accept);
    if (message->accept != NULL) {
        buf_put(block, bytes_trim(bytes_of_string(message->accept)));
    } else {
        buf_put(block, BYTES("Accept: "));
        buf_put(block, is_asked ? accept : BYTES(ACCEPT));
    }
    buf_put(block, buf_bytes(&message->rest));
    put_condition(block, "If-None-Match", request->if_none_match);
    put_condition(block, "If-Modified-Since", request->if_modified_since);
    size_t public_size = block->size;
    if (login.size > 0) {
        message_put_line(block, "Authorization", login); /* in place of an own one: two would contradict */
    } else {
        buf_put(block, buf_bytes(&message->secrets));
    }
    if (buf_string(block) == NULL) {
        return block->err;
    }
    *ret_public_size = public_size;
    return ERR_OK;
}

static void put_host(struct buf *out, const struct url *url) {
    buf_put(out, url_host(url));
    if (url->port != URL_PORT_NONE) {
        buf_put_byte(out, ':');
        buf_put_u64(out, (uint64_t)url->port);
    }
}

enum err fetch_message_put_origin(const struct url *url, struct buf *origin) {
    buf_put(origin, url_scheme(url));
    buf_put(origin, BYTES("://"));
    put_host(origin, url);
    return buf_string(origin) != NULL ? ERR_OK : origin->err;
}

enum err fetch_message_put_target(const struct url *url, bool is_for_proxy, struct buf *target) {
    if (is_for_proxy) {
        enum err err = fetch_message_put_origin(url, target);
        if (err != ERR_OK) {
            return err;
        }
    }
    buf_put(target, url_path(url));
    if (url_has_query(url)) {
        buf_put_byte(target, '?');
        buf_put(target, url_query(url));
    }
    return buf_string(target) != NULL ? ERR_OK : target->err;
}

enum err fetch_message_put(struct bytes target, const struct url *url, struct bytes block,
                           struct buf *request) {
    buf_reserve(request, target.size + url_host(url).size + block.size + 40);
    buf_put(request, BYTES("GET "));
    buf_put(request, target);
    buf_put(request, BYTES(" HTTP/1.1\r\nHost: "));
    put_host(request, url);
    buf_put(request, BYTES("\r\n"));
    buf_put(request, block);
    return buf_put(request, BYTES("\r\n\r\n"));
}
