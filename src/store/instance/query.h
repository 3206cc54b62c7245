/*
 * query - which captures a user means, and a walk over them in the order of the index.
 *
 *      http://example.org/a         exact: this URL
 *      http://example.org/a*        prefix: all URLs that begin so
 *      http://example.org/a/ and *  prefix: the page itself and all below it
 *      *.example.org                domain: the host and its subdomains
 *      *                            everything
 *
 * A walk goes over all volumes at once and holds one capture of each at a time, however many there are.
 * Captures whose document has been removed are left out.
 */
#ifndef MNEMON_STORE_INSTANCE_QUERY_H
#define MNEMON_STORE_INSTANCE_QUERY_H

#include "store/instance/merge.h"

enum query_match { QUERY_BY_URL, QUERY_EXACT, QUERY_PREFIX, QUERY_HOST, QUERY_DOMAIN };

/* Their names, ended by NULL; the first is "auto". */
extern const char *const query_matches[];

enum { QUERY_RANGES_MAX = 3 };

struct query {
    struct instance_session *session;
    int64_t from_us;
    int64_t to_us;
    struct {
        struct buf from;
        struct buf to;
    } ranges[QUERY_RANGES_MAX]; /* of the index, in order */
    size_t ranges_count;
    size_t range_index;
    struct merge *merge; /* of ranges[range_index]; NULL: not yet */
    struct buf text;     /* of what was closest */
};

/*
 * The text as in the table above; QUERY_BY_URL goes by its stars. ERR_INVALID if it has no key. After a
 * failure there is nothing to free.
 */
enum err query_init(struct query *query, struct bytes text, enum query_match match,
                    struct err_detail *detail) MUST_CHECK;
void query_done(struct query *query);

/* Start a walk, which ends before the session; from_us and to_us may have been set. */
void query_start(struct query *query, struct instance_session *session);

/* ERR_NOT_FOUND at the end. *ret_capture lasts until the next call. */
enum err query_next(struct query *query, struct capture *ret_capture) MUST_CHECK;

/* Would the walk come across this capture? */
bool query_covers(const struct query *query, const struct capture *capture);

/*
 * The capture that is closest to the time; of those whose SURT is the query's, the ones of exactly the URL
 * first (web/url/likeness.h). ERR_NOT_FOUND. Its slices live in *query.
 */
enum err query_closest(struct query *query, struct bytes url, int64_t time_us,
                       struct capture *ret_capture) MUST_CHECK;

#endif
