/*
 * fetch_message - the request: its lines as they are sent.
 *
 *      GET /path?query HTTP/1.1          the target, given to libcurl as it is
 *      Host: example.org:8080            written by libcurl, from the URL
 *      Accept: ...                       the block: one text, given to libcurl as if it were one header, so
 *      Accept-Encoding: ...              that it is sent as it stands. It begins with Accept, or libcurl
 *      User-Agent: ...                   would add its own
 *      own headers
 *      Authorization, If-None-Match, If-Modified-Since
 *
 * So what is sent is known without asking libcurl to report it, which would cost more than the request
 * itself. The tests hold it against what a server receives.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_MESSAGE_H
#define MNEMON_CRAWL_FETCH_FETCH_MESSAGE_H

#include "crawl/fetch/fetch_exchange.h"
#include "web/url/url.h"

enum {
    FETCH_MESSAGE_VALUE_SIZE_MAX = 4096, /* of If-None-Match and its like; longer ones are left out */
    FETCH_MESSAGE_BLOCK_SIZE_MAX = 64 << 10,
};

/* What all requests of an engine share. */
struct fetch_message {
    struct buf block;   /* of a request without anything special, ended by a zero byte beyond its size */
    struct buf rest;    /* the block after the line of Accept */
    const char *accept; /* from the own headers, or NULL */
};

/* ERR_INVALID, with the reason, where an own header is none or is not for others to set. */
enum err fetch_message_init(struct fetch_message *message, const struct fetch_config *config,
                            struct err_detail *detail) MUST_CHECK;
void fetch_message_done(struct fetch_message *message);

/* Whether message->block does, or fetch_message_put_block() must make one. */
bool fetch_message_is_usual(const struct fetch_request *request, const struct url *url);
enum err fetch_message_put_block(const struct fetch_message *message, const struct fetch_request *request,
                                 const struct url *url, struct buf *block) MUST_CHECK;

/* The path and query of the URL; all of it, without user and fragment, for a proxy. */
enum err fetch_message_put_target(const struct url *url, bool is_for_proxy, struct buf *target) MUST_CHECK;

/* "http://example.org:8080" */
enum err fetch_message_put_origin(const struct url *url, struct buf *origin) MUST_CHECK;

/* The whole request. */
enum err fetch_message_put(struct bytes target, const struct url *url, struct bytes block,
                           struct buf *request) MUST_CHECK;

#endif
