/*
 * host - the host parser of the URL standard: domains, IPv4, IPv6 and the opaque hosts of other schemes.
 *
 * https://url.spec.whatwg.org/#host-parsing
 */
#ifndef MNEMON_WEB_URL_HOST_H
#define MNEMON_WEB_URL_HOST_H

#include "base/buf.h"

enum url_host_type {
    URL_HOST_NONE,  /* mailto:x, data:, blob:, foo:/path */
    URL_HOST_EMPTY, /* file:///x, foo:///x */
    URL_HOST_DOMAIN,
    URL_HOST_IPV4,
    URL_HOST_IPV6,   /* in brackets */
    URL_HOST_OPAQUE, /* of a scheme that is not special */
};

/*
 * Append the host in its serialised form, IPv6 in brackets. The text must not be empty. ERR_INVALID fills the
 * detail, its offset from the start of the text; ERR_LIMIT and ERR_MEMORY leave it to the caller. What was
 * appended before a failure stays.
 */
MUST_CHECK enum err host_put(struct buf *out, struct bytes text, bool is_special,
                             enum url_host_type *ret_type, struct err_detail *detail);

#endif
