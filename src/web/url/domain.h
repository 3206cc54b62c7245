/*
 * domain - the part of a host that one owner registered: "example.co.uk" of "www.example.co.uk".
 *
 * By the public suffix list that libpsl carries, private suffixes included: two users of github.io are two
 * owners. The list is constant data of the library.
 */
#ifndef MNEMON_WEB_URL_DOMAIN_H
#define MNEMON_WEB_URL_DOMAIN_H

#include "web/url/url.h"

/* A slice of the URL's host. Empty for addresses, for suffixes themselves and for URLs without a domain. */
struct bytes domain_registrable(const struct url *url);

#endif
