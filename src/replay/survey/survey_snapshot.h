/* survey_snapshot - what a survey has counted. It never changes; survey_tally.c makes it and counts
 * references. */
#ifndef MNEMON_REPLAY_SURVEY_SURVEY_SNAPSHOT_H
#define MNEMON_REPLAY_SURVEY_SURVEY_SNAPSHOT_H

#include "store/instance/instance.h"

enum {
    SURVEY_HOSTS_MAX = 100000, /* more are counted together */
    SURVEY_TYPES_MAX = 1000,
    SURVEY_MONTHS_MAX = 1200,
    SURVEY_STATUSES_MAX = 1000,
    SURVEY_NEWEST_MAX = 30,
    SURVEY_URL_SIZE_MAX = 2000, /* of the newest; longer ones are left out */
};

struct survey_total {
    uint64_t captures_count;
    uint64_t revisits_count; /* of them: their document was there already */
    uint64_t size;           /* of the documents of all captures */
    uint64_t saved_size;     /* of those of the revisits, which are stored once */
    uint64_t stored_size;    /* of the records on disk */
};

struct survey_host {
    struct bytes surt; /* "org,example:8080" */
    struct bytes name; /* "example.org:8080" */
    struct survey_total total;
    int64_t first_us;
    int64_t last_us;
};

struct survey_type {
    struct bytes name; /* "text/html"; empty: not known */
    struct survey_total total;
};

struct survey_month {
    int32_t month; /* months since the year 0 */
    uint64_t captures_count;
    uint64_t size;
};

/* One version of a page, HTML with status 200, the newest of its URL. */
struct survey_page {
    struct bytes surt;
    struct bytes url;
    int64_t time_us;
};

struct survey_volume {
    uint16_t number;
    bool is_remote;
    bool is_up;
    struct volume_stat stat;
};

enum survey_order { SURVEY_BY_CAPTURES, SURVEY_BY_SIZE, SURVEY_BY_NAME, SURVEY_BY_LAST };
enum { SURVEY_ORDERS_COUNT = SURVEY_BY_LAST + 1 };

struct survey_snapshot {
    int64_t made_us;  /* wall clock, at its end */
    bool is_complete; /* else: of what has been seen so far */
    bool is_partial;  /* volumes were down */
    struct survey_total total;
    int64_t first_us; /* of all captures; meaningless without any */
    int64_t last_us;
    const struct survey_host *const *hosts[SURVEY_ORDERS_COUNT];
    size_t hosts_count;
    struct survey_total others;      /* of hosts above SURVEY_HOSTS_MAX */
    const struct survey_type *types; /* the most captures first */
    size_t types_count;
    const struct survey_month *months; /* in order */
    size_t months_count;
    uint64_t statuses[SURVEY_STATUSES_MAX]; /* captures of each; [0]: without */
    const struct survey_page *newest;       /* the newest first */
    size_t newest_count;
    const struct survey_volume *volumes;
    size_t volumes_count;
};

/* One more reference, and one less; the snapshot may be NULL for the latter. */
void survey_keep(const struct survey_snapshot *snapshot);
void survey_release(const struct survey_snapshot *snapshot);

#endif
