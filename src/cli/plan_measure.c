#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/plan.h"
#include "cli/progress.h"
#include "store/instance/query.h"
#include "store/instance/record.h"
#include "warc/content.h"
#include "web/html/links.h"
#include "web/url/url.h"

enum {
    SIZES_MAX = 1 << 16,            /* looked up in the index, at most about */
    CONTENTS_READ_MAX = 256,        /* of each kind, for sizes without encoding and for links of pages */
    CONTENT_SIZE_MAX = 4 << 20,     /* decoded, of one of them */
    PROGRESS_FIRST_COUNT = 1 << 17, /* below it no line is worth its while */
    DAYS_MAX = 366 * 60,            /* since 1990 */
};

static const double DAY_US = 86400e6;

/* Captures that are closer are of one visit (a page that many others embed) and tell nothing of changes. */
static const int64_t DISTANCE_MIN_US = INT64_C(3600000000);

struct measuring {
    struct plan_measure *measure;
    struct instance_session *session; /* of its own: the walk has another */
    uint64_t sizes_every;             /* of so many digests one is in the sample */
    uint64_t reads_every;
    /* the URL that the walk is at */
    struct buf surt;
    bool has_captures;
    struct plan_kind *kind; /* NULL: nobody has said yet what it is */
    int64_t time_us;        /* of its last capture */
    uint8_t digest[KEY_DIGEST_SIZE];
    uint32_t visit_s;              /* of its last witness; 0: there was none */
    uint32_t first_days[DAYS_MAX]; /* of URLs that were captured for the first time on that day */
    size_t last_day;               /* of any capture */
    uint64_t index_size;           /* of a capture, on average */
    /* for what is read */
    uint64_t decoded_size;
    struct links *links;
    struct record record;
    struct content content;
    struct url base;
    struct sink sink;
};

/* ---- what is read ---- */

static void count_link(void *context, const struct link *link) {
    (void)link;
    ((struct plan_measure *)context)->links_count++;
}

static enum err feed_content(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    (void)detail;
    struct measuring *measuring = (struct measuring *)((char *)sink - offsetof(struct measuring, sink));
    bool is_page = measuring->kind == &measuring->measure->pages;
    measuring->decoded_size += bytes.size;
    return is_page ? links_feed(measuring->links, bytes) : ERR_OK;
}

/* Links of what is damaged count as far as it can be read, its size does not count. */
static void read_content(struct measuring *measuring, const struct capture *capture) {
    struct plan_measure *measure = measuring->measure;
    struct plan_kind *kind = measuring->kind;
    struct record *record = &measuring->record;
    if (kind->read_count >= CONTENTS_READ_MAX ||
        url_parse(&measuring->base, capture->url, NULL, NULL) != ERR_OK ||
        record_read(record, measuring->session, capture->volume, &capture->location, NULL) != ERR_OK) {
        return;
    }
    measuring->decoded_size = 0;
    if (kind == &measure->pages) {
        links_start(measuring->links, BYTES("text/html"), &measuring->base, NULL, count_link, measure);
    }
    bool is_whole = content_start(&measuring->content, record->head, CONTENT_SIZE_MAX, &measuring->sink,
                                  NULL) == ERR_OK &&
                    content_put(&measuring->content, record->body, NULL) == ERR_OK &&
                    content_finish(&measuring->content, NULL) == ERR_OK;
    if (kind == &measure->pages) {
        measure->linking_count += links_finish(measuring->links) == ERR_OK;
    }
    if (is_whole) {
        kind->read_count++;
        kind->received_size += (double)record->body.size;
        kind->decoded_size += (double)measuring->decoded_size;
    }
}

/* ---- captures ---- */

/* Contents of the URL: neither a redirect nor an error. A resource has no status. */
static bool has_contents(const struct capture *capture) {
    return capture->status == 200 || capture->status == 304 || capture->status == 0;
}

/* A digest is as good as a random number, and the same in every run. */
static bool is_sampled(const struct capture *capture, uint64_t every) {
    uint64_t number = 0;
    for (size_t i = 0; i < 8; i++) {
        number = number << 8 | capture->digest[i];
    }
    return number % every == 0;
}

static void measure_size(struct measuring *measuring, const struct capture *capture) {
    struct key key;
    struct block block;
    if (!is_sampled(capture, measuring->sizes_every) ||
        instance_locate(measuring->session, capture, &key, &block, NULL) != ERR_OK) {
        return;
    }
    measuring->kind->sizes_count++;
    measuring->kind->sizes += (double)block.size;
    measuring->kind->stored_sizes += (double)capture->location.length;
}

/* The first capture of a URL, or one that differs from the one before. */
static void see_contents(struct measuring *measuring, const struct capture *capture) {
    bool is_duplicate = (capture->flags & CAPTURE_REVISIT) != 0;
    measuring->measure->contents_count++;
    measuring->measure->duplicates_count += is_duplicate;
    if (is_duplicate || measuring->kind == NULL) {
        return;
    }
    measure_size(measuring, capture);
    if (is_sampled(capture, measuring->reads_every)) {
        read_content(measuring, capture);
    }
}

static void see_distance(struct measuring *measuring, const struct capture *capture, bool is_changed) {
    struct plan_kind *kind = measuring->kind;
    if (kind != NULL && capture->time_us - measuring->time_us >= DISTANCE_MIN_US) {
        kind->distances_count++;
        kind->changes_count += is_changed;
        kind->distances_days += (double)(capture->time_us - measuring->time_us) / DAY_US;
    }
}

/* Captures of one visit follow each other, except where a slow one falls into the next visit. */
static void see_witness(struct measuring *measuring, const struct capture *capture, bool is_same_url) {
    if (capture->visit_s != 0) {
        bool is_same_visit = is_same_url && measuring->visit_s == capture->visit_s;
        measuring->measure->witnessed_count++;
        measuring->measure->rounds_count += !is_same_visit;
    }
    measuring->visit_s = capture->visit_s != 0 || !is_same_url ? capture->visit_s : measuring->visit_s;
}

static void count_day(struct measuring *measuring, const struct capture *capture, bool is_first) {
    static const int64_t START_US = INT64_C(631152000) * 1000000; /* 1990 */
    int64_t day = capture->time_us >= START_US ? (capture->time_us - START_US) / (int64_t)DAY_US : -1;
    if (day < 0 || day >= DAYS_MAX) {
        return;
    }
    measuring->first_days[day] += is_first ? 1 : 0;
    measuring->last_day = (size_t)day > measuring->last_day ? (size_t)day : measuring->last_day;
}

/*
 * What was added: URLs that were captured for the first time after the first round of visits. Some of them
 * were there before and not found.
 */
static void count_added(const struct measuring *measuring, struct plan_measure *measure) {
    double distances_count = (double)(measure->pages.distances_count + measure->embeds.distances_count);
    double distances_days = measure->pages.distances_days + measure->embeds.distances_days;
    size_t first = 0;
    while (first < measuring->last_day && measuring->first_days[first] == 0) {
        first++;
    }
    size_t round = distances_count > 0 ? (size_t)(distances_days / distances_count) + 1 : DAYS_MAX;
    if (measuring->last_day < first + round) {
        return; /* nothing was visited again, or only just */
    }
    for (size_t day = first + round; day <= measuring->last_day; day++) {
        measure->added_count += measuring->first_days[day];
    }
    measure->added_days = (double)(measuring->last_day - first - round + 1);
}

static enum err see_capture(struct measuring *measuring, const struct capture *capture) {
    struct plan_measure *measure = measuring->measure;
    bool is_same_url = measuring->has_captures && bytes_equal(buf_bytes(&measuring->surt), capture->surt);
    if (!is_same_url) {
        buf_clear(&measuring->surt);
        measuring->has_captures = true;
        measuring->kind = NULL;
        enum err err = buf_put(&measuring->surt, capture->surt);
        if (err != ERR_OK) {
            return err;
        }
    }
    if (measuring->kind == NULL && capture->mime.size > 0) {
        measuring->kind = http_is_html(capture->mime) ? &measure->pages : &measure->embeds;
        measuring->kind->urls_count++;
        measure->urls_size += (double)capture->url.size;
    }
    measure->captures_count++;
    count_day(measuring, capture, !is_same_url);
    see_witness(measuring, capture, is_same_url);
    bool is_changed = !is_same_url || memcmp(measuring->digest, capture->digest, KEY_DIGEST_SIZE) != 0;
    if (is_same_url) {
        see_distance(measuring, capture, is_changed);
    }
    if (is_changed) {
        see_contents(measuring, capture);
    } else {
        measure->visits_count++;
    }
    if (!is_changed && (capture->flags & CAPTURE_REVISIT)) { /* one that was imported first has the payload */
        measure->revisits_count++;
        measure->visits_size += (double)capture->location.length + (double)measuring->index_size;
    }
    measuring->time_us = capture->time_us;
    memcpy(measuring->digest, capture->digest, KEY_DIGEST_SIZE);
    return ERR_OK;
}

/* ---- the walk ---- */

/* An estimate, for the samples and the line that shows how far it is. */
static uint64_t count_captures(struct data *data) {
    uint64_t count = 0;
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct volume_stat stat;
        if (instance_stat(data->session, i, &stat, NULL) == ERR_OK) {
            count += stat.captures_count;
        }
    }
    return count;
}

/* Likewise: a visit that found nothing new has no block. */
static uint64_t count_contents(struct data *data) {
    uint64_t count = 0;
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct volume_stat stat;
        if (instance_stat(data->session, i, &stat, NULL) == ERR_OK) {
            count += stat.blocks_count;
        }
    }
    return count;
}

/* The part of the index that one capture has. */
static uint64_t measure_index(struct data *data) {
    uint64_t size = 0;
    uint64_t count = 0;
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct volume_stat stat;
        if (instance_stat(data->session, i, &stat, NULL) == ERR_OK) {
            size += stat.index_size;
            count += stat.captures_count;
        }
    }
    return count > 0 ? size / count : 0;
}

static enum err walk(struct measuring *measuring, struct data *data, struct progress *progress) {
    struct query query;
    struct capture capture;
    enum err err = query_init(&query, BYTES("*"), QUERY_BY_URL, NULL);
    if (err != ERR_OK) {
        return err;
    }
    query_start(&query, data->session);
    while (err == ERR_OK && (err = query_next(&query, &capture)) == ERR_OK) {
        err = has_contents(&capture) ? see_capture(measuring, &capture) : ERR_OK;
        progress->done_count++;
        if (progress->done_count >= PROGRESS_FIRST_COUNT) {
            progress_update(progress, NULL);
        }
    }
    query_done(&query);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err measuring_init(struct measuring *measuring, struct data *data, struct plan_measure *measure) {
    uint64_t contents_count = count_contents(data);
    *measuring = (struct measuring){
        .measure = measure,
        .session = instance_session_new(data->instance),
        .sizes_every = contents_count / SIZES_MAX + 1,
        .reads_every = contents_count / CONTENTS_READ_MAX + 1,
        .index_size = measure_index(data),
        .links = links_new(),
        .sink.append = feed_content,
    };
    buf_init(&measuring->surt, INDEX_SURT_SIZE_MAX);
    url_init(&measuring->base);
    enum err record_err = record_init(&measuring->record);
    enum err content_err = content_init(&measuring->content);
    bool is_good = measuring->session != NULL && measuring->links != NULL;
    return !is_good ? ERR_MEMORY : record_err != ERR_OK ? record_err : content_err;
}

static void measuring_done(struct measuring *measuring) {
    instance_session_free(measuring->session);
    links_free(measuring->links);
    record_done(&measuring->record);
    content_done(&measuring->content);
    url_done(&measuring->base);
    buf_done(&measuring->surt);
}

int plan_measure(struct cli *cli, const struct plan_options *options, struct data *data,
                 struct plan_measure *ret_measure) {
    uint64_t captures_count = count_captures(data);
    struct measuring *measuring = malloc(sizeof *measuring);
    struct progress progress;
    *ret_measure = (struct plan_measure){0};
    progress_init(&progress, "measuring", STDERR_FILENO, options->quiet, cli->clock);
    progress.total_count = captures_count;
    if (measuring == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    enum err err = measuring_init(measuring, data, ret_measure);
    err = err == ERR_OK ? walk(measuring, data, &progress) : err;
    if (err == ERR_OK) {
        count_added(measuring, ret_measure);
    }
    measuring_done(measuring);
    free(measuring);
    if (progress.done_count >= PROGRESS_FIRST_COUNT) {
        progress.total_count = progress.done_count;
        progress_finish(&progress);
    }
    if (err != ERR_OK) {
        return cli_fail(cli, "%s cannot be measured: %s", data->directory, err_text(err));
    }
    if (ret_measure->pages.urls_count == 0) {
        return cli_fail(cli, "%s holds no pages to measure", data->directory);
    }
    return CLI_DONE;
}

/* ---- from the measure to the inputs ---- */

static void set(struct plan *plan, enum capacity_field field, double value) {
    const struct capacity_field_rule *rule = &capacity_fields[field];
    if (plan->origins[field] == PLAN_GIVEN) {
        return;
    }
    *capacity_at(&plan->inputs, field) = value < rule->min   ? rule->min
                                         : value > rule->max ? rule->max
                                                             : value;
    plan->origins[field] = PLAN_MEASURED;
}

static void set_kind(struct plan *plan, const struct plan_kind *kind, enum capacity_field size,
                     enum capacity_field compressed, enum capacity_field changed) {
    if (kind->sizes > 0) {
        double decoded = kind->received_size > 0 ? kind->decoded_size / kind->received_size : 1;
        set(plan, size, decoded * kind->sizes / (double)kind->sizes_count);
        set(plan, compressed, kind->stored_sizes / (decoded * kind->sizes));
    }
    if (kind->distances_count > 0) {
        double count = (double)kind->distances_count;
        set(plan, changed,
            capacity_changed_per_day(count, (double)kind->changes_count, kind->distances_days / count));
    }
}

void plan_apply(struct plan *plan) {
    const struct plan_measure *measure = &plan->measure;
    double pages_count = (double)measure->pages.urls_count;
    double urls_count = pages_count + (double)measure->embeds.urls_count;
    set(plan, CAPACITY_PAGES, pages_count);
    set(plan, CAPACITY_EMBEDS, (double)measure->embeds.urls_count / pages_count);
    set_kind(plan, &measure->pages, CAPACITY_PAGE_SIZE, CAPACITY_PAGE_COMPRESSED, CAPACITY_PAGES_CHANGED);
    set_kind(plan, &measure->embeds, CAPACITY_EMBED_SIZE, CAPACITY_EMBED_COMPRESSED, CAPACITY_EMBEDS_CHANGED);
    set(plan, CAPACITY_DUPLICATES, (double)measure->duplicates_count / (double)measure->contents_count);
    set(plan, CAPACITY_URL_SIZE, measure->urls_size / urls_count);
    if (measure->revisits_count > 0) {
        set(plan, CAPACITY_VISIT_SIZE, measure->visits_size / (double)measure->revisits_count);
    }
    if (measure->rounds_count > 0) {
        double witnesses = (double)measure->witnessed_count / (double)measure->rounds_count;
        set(plan, CAPACITY_WITNESSES, (double)(uint64_t)(witnesses + 0.5));
    }
    if (measure->added_days > 0) {
        set(plan, CAPACITY_ADDED, measure->added_count / urls_count / measure->added_days);
    }
    if (measure->linking_count > 0) {
        set(plan, CAPACITY_LINKS, (double)measure->links_count / (double)measure->linking_count);
    }
}
