/*
 * surt - the sort-friendly form of a canonical URL, the key of CDX indexes: hosts read from right to left, so
 * that all pages of a domain and of its subdomains stand together.
 *
 *     http://www.Example.org:80/B/?b=2&a=1#x   ->   org,example)/b?a=1&b=2
 *     https://example.org:8080/                ->   org,example:8080)/
 *     dns:example.org                          ->   dns:example.org
 *
 * The scheme is not part of it, except if there is no host.
 */
#ifndef MNEMON_WEB_URL_SURT_H
#define MNEMON_WEB_URL_SURT_H

#include "web/url/canon.h"

/* Append the SURT of what canon_run() computed. */
enum err surt_put(struct buf *out, const struct canon *canon);

#endif
