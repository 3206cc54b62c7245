/*
 * proxy_head - the heads that pass through the proxy: what a browser asks, read strictly; what is passed on.
 *
 * A request has one meaning or it is refused: CRLF ends lines, names are tokens without a space before the
 * colon, no line is folded, no control character is anywhere, there is one Host, and what says where the body
 * ends is said once (RFC 9112, 6.3: both Content-Length and Transfer-Encoding are refused). Heads that are
 * passed on are written anew, never copied: what is about one connection stays here (Connection and what it
 * names, Proxy-…, TE …), the Host is that of the URL. Answers of servers are read leniently
 * (http/message/http_head.h) and written strictly.
 *
 * No I/O, no state of its own.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_HEAD_H
#define MNEMON_NODE_PROXY_PROXY_HEAD_H

#include "base/buf.h"
#include "http/message/http_head.h"
#include "node/proxy/proxy_body.h"
#include "web/url/url.h"

enum { PROXY_HEAD_SIZE_MAX = HTTP_HEAD_SIZE_MAX, PROXY_METHOD_SIZE_MAX = 32 };

enum proxy_head_verdict {
    PROXY_HEAD_PART, /* more bytes are needed */
    PROXY_HEAD_WHOLE,
    PROXY_HEAD_BAD,
};

/* Slices of the input. */
struct proxy_head {
    struct bytes method;
    struct bytes target;
    unsigned minor_version; /* of HTTP/1 */
    struct fields fields;
    size_t size; /* with its empty line */
    enum proxy_body_kind body_kind;
    uint64_t body_size;    /* of PROXY_BODY_LENGTH */
    bool keeps_connection; /* the browser's, as far as it is for it to say */
    bool expects_continue;
    bool wants_upgrade; /* to WebSocket; other wishes are not passed on */
};

/* Empty lines before the request are passed over. *ret_reason: of what is bad. */
enum proxy_head_verdict proxy_head_read(struct proxy_head *head, struct bytes input, const char **ret_reason);

/*
 * The URL that is asked for. secure_host: "example.org:443" of a connection that is taken apart, where
 * targets are paths; empty where they are whole URLs. ERR_INVALID, ERR_UNSUPPORTED with a sentence.
 */
enum err proxy_head_url(const struct proxy_head *head, struct bytes secure_host, struct url *ret_url,
                        struct err_detail *detail) MUST_CHECK;

/* The server that a CONNECT names. */
enum err proxy_head_authority(const struct proxy_head *head, struct url *ret_url,
                              struct err_detail *detail) MUST_CHECK;

/* Append the request as the server gets it. It is asked to close the connection. */
enum err proxy_head_put_request(const struct proxy_head *head, const struct url *url, struct buf *out);

/* ---- answers ---- */

/* What of the head says where the body ends. is_head: of an answer to HEAD. ERR_INVALID: nobody can say. */
enum err proxy_head_answer_body(const struct http_head *answer, bool is_head, struct proxy_body *ret_body);

/* Append the answer as the browser gets it, but for what is about its connection and the empty line. */
enum err proxy_head_put_answer(const struct http_head *answer, struct buf *out);

/* The text behind the status of an answer, without what does not belong there. */
struct bytes proxy_head_reason(const struct http_head *answer);

/* Is it about one connection only? fields: those among which Connection may name it. */
bool proxy_head_is_hop(const struct fields *fields, struct bytes name);

/* Is the word in a list, as "no-store" in "max-age=0, no-store"? In any field of that name. */
bool proxy_head_lists(const struct fields *fields, struct bytes name, struct bytes word);

/* "Name: value", the value without control characters; nothing where the name is no token. */
void proxy_head_put_field(struct buf *out, struct bytes name, struct bytes value);

#endif
