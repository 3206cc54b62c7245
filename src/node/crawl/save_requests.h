/*
 * save_requests - pages that shall be archived now: each is a job of scope "page" that the crawl runs once.
 *
 *      DIR/jobs/save-0123456789abcdef/     while it runs; gone when it is over
 *      DIR/saves/save-0123456789abcdef     how it went, as JSON, for a day
 *
 * A node that is stopped meanwhile goes on with them when it is started again.
 */
#ifndef MNEMON_NODE_CRAWL_SAVE_REQUESTS_H
#define MNEMON_NODE_CRAWL_SAVE_REQUESTS_H

#include "base/buf.h"
#include "base/clock.h"
#include "node/crawl/crawl_loop.h"
#include "replay/admin/admin_pages.h"
#include "replay/archive/archive.h"

struct save_requests;

enum { SAVE_REQUESTS_RUNNING_MAX = 64 };

/* All of it outlives the saves. */
struct save_requests_config {
    const char *directory; /* of the data */
    struct crawl_loop *crawl_loop;
    struct archive *archive;
    const struct clock *clock;
};

/* Finds those that were running. */
enum err save_requests_new(const struct save_requests_config *config, struct save_requests **ret_saves,
                           struct err_detail *detail) MUST_CHECK;
void save_requests_free(struct save_requests *saves);

/* ---- any thread ---- */

/* As admin_pages_table.save and .get_save. */
enum err save_requests_begin(struct save_requests *saves, struct bytes url,
                             char ret_id[ADMIN_PAGES_NAME_SIZE_MAX], struct err_detail *detail) MUST_CHECK;
enum err save_requests_get(struct save_requests *saves, struct bytes id, struct arena *arena,
                           struct save_view *ret_save, struct err_detail *detail) MUST_CHECK;

/* Finish those whose job is over; forget old results. One thread. */
void save_requests_step(struct save_requests *saves);

/* Is it the name of a save's job? */
bool save_requests_is_name(struct bytes name);

#endif
