/*
 * past - what the archive itself knows of the earlier visits of a URL, whichever node made them.
 *
 * The frontier remembers what this node did (crawl/frontier/frontier_entry.h). A node that takes a URL over
 * from another has no such memory, but it has the copies: their heads say ETag and Last-Modified, their
 * payloads which links were known. So it asks conditionally and sends only new links, as the node before it
 * would have done (docs/decisions/0011).
 *
 * Only captures on the volumes of this archive count: no other node is asked. One thread; what is given
 * lasts until the next call.
 */
#ifndef MNEMON_CRAWL_ENGINE_PAST_H
#define MNEMON_CRAWL_ENGINE_PAST_H

#include "base/peer.h"
#include "crawl/frontier/frontier_entry.h"
#include "store/instance/instance.h"
#include "store/instance/record.h"
#include "web/url/canon.h"

struct merge;

struct past {
    struct instance_session *session; /* borrowed */
    struct canon canon;
    struct buf surt;
    struct buf key_from;
    struct buf key_to;
    struct record record;
    struct buf etag;
    struct buf last_modified;
};

/* ERR_MEMORY. Either way past_done() follows. */
enum err past_init(struct past *past, struct instance_session *session) MUST_CHECK;
void past_done(struct past *past);

/* The captures of the URL's SURT in [from_us, to_us), the newest first; ERR_NOT_FOUND if it has no SURT. */
enum err past_walk(struct past *past, struct bytes url, int64_t from_us, int64_t to_us,
                   struct merge **ret_merge) MUST_CHECK;

struct past_visits {
    struct frontier_history history; /* of the captures; its slices borrow from the past */
    int64_t content_since_us;        /* the first of the newest captures that all have one payload */
};

/*
 * The visits that ended in captures before a time, as far as the newest few dozen tell. ERR_NOT_FOUND if
 * there is none that says what the page was.
 */
enum err past_learn(struct past *past, struct bytes url, int64_t before_us,
                    struct past_visits *ret_visits) MUST_CHECK;

/* One version of a page. */
struct past_version {
    const struct fields *fields; /* of its HTTP head */
    struct bytes document;       /* the payload: chunks undone, content encoding not */
    uint16_t status;
    int64_t time_us;
};

/* The newest version before a time that had links: a page (200) or a redirect. Errors of the store. */
enum err past_read_version(struct past *past, struct bytes url, int64_t before_us,
                           struct past_version *ret_version) MUST_CHECK;

/* Did the node of that key fetch it? Its record is signed with it then. */
bool past_is_signed(struct past *past, const struct capture *capture, const uint8_t key[PEER_KEY_SIZE]);

bool past_is_redirect(uint16_t status);

#endif
