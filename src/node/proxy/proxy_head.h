/*
 * proxy_head - the heads that pass through the proxy: what a browser asks, read strictly; what is passed on.
 *
 * A request has one meaning or it is refused (http/message/http_rules.h). Heads that are passed on are
 * written anew, never copied: what is about one connection stays here (Connection and what it names, Proxy-…,
 * TE …), the Host is that of the URL. Answers of servers are read leniently and written strictly.
 *
 * No I/O, no state of its own.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_HEAD_H
#define MNEMON_NODE_PROXY_PROXY_HEAD_H

#include "base/buf.h"
#include "http/message/http_head.h"
#include "web/url/url.h"

enum { PROXY_HEAD_SIZE_MAX = HTTP_HEAD_SIZE_MAX };

struct proxy_head {
    struct http_head http;
    size_t size; /* of the input, with its empty line */
    struct http_framing framing;
    bool keeps_connection; /* the browser's, as far as it is for it to say */
    bool expects_continue;
    bool wants_upgrade; /* to WebSocket; other wishes are not passed on */
};

enum err proxy_head_init(struct proxy_head *head) MUST_CHECK;
void proxy_head_done(struct proxy_head *head);

/* Read what has come so far, from its beginning. *ret_reason: why it is HTTP_HEAD_NONE. */
enum http_head_state proxy_head_read(struct proxy_head *head, struct bytes input, const char **ret_reason);

/*
 * The URL that is asked for. secure_host: "example.org:443" of a connection that is taken apart, whose
 * targets are paths; empty if targets are whole URLs. ERR_INVALID, ERR_UNSUPPORTED with a sentence.
 */
enum err proxy_head_url(const struct proxy_head *head, struct bytes secure_host, struct url *ret_url,
                        struct err_detail *detail) MUST_CHECK;

/* The server that a CONNECT names. */
enum err proxy_head_authority(const struct proxy_head *head, struct url *ret_url,
                              struct err_detail *detail) MUST_CHECK;

/* Append the request as the server gets it. It is asked to close the connection. */
enum err proxy_head_put_request(const struct proxy_head *head, const struct url *url, struct buf *out);

/* ---- answers ---- */

/* Append the answer as the browser gets it, but for what is about its connection and the empty line. */
enum err proxy_head_put_answer(const struct http_head *answer, struct buf *out);

/* Is the word in a list, as "no-store" in "max-age=0, no-store"? In any field of that name. */
bool proxy_head_lists(const struct fields *fields, struct bytes name, struct bytes word);

/* "Name: value", the value without control characters; nothing if the name is no token. */
void proxy_head_put_field(struct buf *out, struct bytes name, struct bytes value);

#endif
