/* harvest_state - what the files of harvest*.c share. Private to them. */
#ifndef MNEMON_CRAWL_ENGINE_HARVEST_STATE_H
#define MNEMON_CRAWL_ENGINE_HARVEST_STATE_H

#include "base/sha256.h"
#include "crawl/engine/harvest.h"
#include "crawl/rules/sitemap.h"
#include "store/instance/merge.h"
#include "warc/content.h"
#include "warc/warc_record.h"
#include "web/html/links.h"
#include "web/url/surt.h"

/* Where decoded bytes go: to the link finder or to the sitemap reader. */
struct harvest_sink {
    struct sink sink; /* first */
    struct harvest *harvest;
};

struct harvest {
    struct instance_session *session;
    const struct identity *identity; /* NULL: nothing is signed */
    struct buf attested;             /* what is signed */
    struct links *links;
    struct sitemap sitemap;
    struct buf decoded; /* of a sitemap; empty otherwise */
    struct content content;
    struct payload payload;
    struct sha256 sha256;
    struct canon canon;
    struct url base;
    struct url target;
    struct harvest_sink sink;
    struct buf key_from;
    struct buf key_to;
    struct trip *trip; /* that is being read */
    bool is_sitemap;
};

/* ---- harvest.c: of harvest->trip ---- */

/* Hash the payload; the head stays parsed in harvest->payload. */
void harvest_sum_up(struct harvest *harvest, struct bytes head, struct bytes body,
                    struct document_sum *ret_sum);

/* What the frontier is to know of an answer whose head is parsed. */
void harvest_describe(struct harvest *harvest, int64_t time_us, uint16_t status,
                      const struct document_sum *sum);

bool harvest_is_redirect(uint16_t status);

/* Where a 3xx leads. A seed may lead out of the scope, which then grows: the loop does that. */
void harvest_follow_redirect(struct harvest *harvest, const struct fields *fields);

/* The links of trip->body, which is encoded as head says. */
void harvest_find_links(struct harvest *harvest, struct bytes head, const struct fields *fields);

/* Nothing is stored: the trip is the loop's again. */
void harvest_finish(struct trip *take_trip, enum err err);

/* ---- harvest_look.c ---- */

/* The newest capture of exactly the trip's URL since that time; it borrows from *ret_merge, which is to be
 * closed. */
bool harvest_find_capture(struct harvest *harvest, struct trip *trip, int64_t since_us,
                          struct capture *ret_capture, struct merge **ret_merge);

/* Of TRIP_LOOK. */
void harvest_run_look(struct harvest *harvest, struct trip *take_trip);

#endif
