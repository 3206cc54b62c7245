/*
 * saves - pages that shall be archived now: each is a job of scope "page" that the crawl runs once.
 *
 *      DIR/jobs/save-0123456789abcdef/     while it runs; gone when it is over
 *      DIR/saves/save-0123456789abcdef     how it went, as JSON, for a day
 *
 * A node that is stopped meanwhile goes on with them when it is started again.
 */
#ifndef MNEMON_NODE_CRAWL_SAVES_H
#define MNEMON_NODE_CRAWL_SAVES_H

#include "base/buf.h"
#include "base/clock.h"
#include "node/crawl/crawl_loop.h"
#include "replay/admin/admin_pages.h"
#include "replay/archive/archive.h"

struct saves;

enum { SAVES_RUNNING_MAX = 64 };

/* All of it outlives the saves. */
struct saves_config {
    const char *directory; /* of the data */
    struct crawl_loop *crawl_loop;
    struct archive *archive;
    const struct clock *clock;
};

/* Finds those that were running. */
enum err saves_new(const struct saves_config *config, struct saves **ret_saves,
                   struct err_detail *detail) MUST_CHECK;
void saves_free(struct saves *saves);

/* ---- any thread ---- */

/* As admin_pages_table.save and .put_save. */
enum err saves_begin(struct saves *saves, struct bytes url, char ret_id[ADMIN_PAGES_NAME_SIZE_MAX],
                     struct err_detail *detail) MUST_CHECK;
enum err saves_put(struct saves *saves, struct bytes id, struct buf *out,
                   struct err_detail *detail) MUST_CHECK;

/* Finish those whose job is over; forget old results. One thread. */
void saves_step(struct saves *saves);

/* Is it the name of a save's job? */
bool saves_is_name(struct bytes name);

#endif
