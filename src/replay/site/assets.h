/*
 * assets - style sheets, scripts and images of the archive's own pages: web/, embedded by tools/embed.
 *
 *      /static/style.css?3f1c…     with the fingerprint: may be kept for a year
 *      /static/style.css           without: is asked for again each time (ETag)
 */
#ifndef MNEMON_REPLAY_SITE_ASSETS_H
#define MNEMON_REPLAY_SITE_ASSETS_H

#include "replay/site/replay.h"

struct asset {
    const char *name;
    const char *type;
    const char *mark; /* its fingerprint */
    struct bytes data;
};

/* Ended by one without a name. */
extern const struct asset assets[];

const struct asset *assets_find(struct bytes name); /* or NULL */

/* Append "/static/NAME?MARK"; the name must be that of a file. */
void assets_put_url(struct buf *out, const char *name);

enum { ASSETS_ROUTES_MAX = 2 };

/* How many there are. */
size_t assets_routes(struct replay *replay, struct http_route out[ASSETS_ROUTES_MAX]);

#endif
