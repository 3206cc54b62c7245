/*
 * pages_failures - when a URL could not be fetched: the newest of the records that the crawler keeps of that
 * (store/document/failure.h), over http and https.
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_FAILURES_H
#define MNEMON_REPLAY_PAGES_PAGES_FAILURES_H

#include "base/json.h"
#include "replay/pages/pages_kit.h"

enum { PAGES_FAILURES_MAX = 100 };

struct pages_failure {
    int64_t time_us;
    bool is_https;
};

struct pages_failures {
    struct buf url;                                 /* behind its scheme: "example.org/" */
    struct pages_failure items[PAGES_FAILURES_MAX]; /* of each scheme the newest first */
    size_t count;
};

void pages_failures_init(struct pages_failures *failures);
void pages_failures_done(struct pages_failures *failures);

/* Those of the range's URL in its time. What cannot be read is left out: they are a part of a page. */
void pages_failures_read(struct pages_failures *failures, struct archive_reader *reader,
                         const struct archive_range *range);

/* The address of the record of one; a list of all; and as a member of an object. */
void pages_failures_put_link(struct sheet *sheet, const struct pages_failures *failures,
                             const struct pages_failure *failure);
void pages_failures_put(struct sheet *sheet, const struct pages_failures *failures);
void pages_failures_put_json(struct json *json, const struct pages_failures *failures);

#endif
