#include "replay/survey_tally.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/utc.h"

enum { NAMES_SIZE_MAX = 64 << 20, SNAPSHOT_SIZE_MAX = 128 << 20, STATUS_OK = 200 };

/* What a snapshot lies in. */
struct holder {
    struct survey_snapshot snapshot; /* first: the functions find the rest from here */
    atomic_uint references;
    struct arena arena;
};

void survey_tally_init(struct survey_tally *tally, uint64_t seed) {
    *tally = (struct survey_tally){.first_us = INT64_MAX, .last_us = INT64_MIN, .page_index = SIZE_MAX};
    arena_init(&tally->arena, NAMES_SIZE_MAX);
    map_init(&tally->hosts, 0, sizeof(struct survey_host), SURVEY_HOSTS_MAX, seed);
    map_init(&tally->types, 0, sizeof(struct survey_type), SURVEY_TYPES_MAX, seed);
    map_init(&tally->months, sizeof(int32_t), sizeof(struct survey_month), SURVEY_MONTHS_MAX, seed);
}

void survey_tally_done(struct survey_tally *tally) {
    map_done(&tally->hosts);
    map_done(&tally->types);
    map_done(&tally->months);
    arena_done(&tally->arena);
}

/* ---- counting ---- */

static void add_to(struct survey_total *total, const struct capture *capture, uint64_t size) {
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    total->captures_count++;
    total->revisits_count += is_revisit;
    total->size += size;
    total->saved_size += is_revisit ? size : 0;
    total->stored_size += capture->location.length;
}

/* "org,example:8080" of "org,example:8080)/path"; "dns:" of "dns:example.org". */
static struct bytes host_of(struct bytes surt) {
    size_t end = bytes_find_byte(surt, ')');
    if (end < surt.size) {
        return bytes_slice(surt, 0, end);
    }
    end = bytes_find_byte(surt, ':');
    return bytes_slice(surt, 0, end < surt.size ? end + 1 : end);
}

/* "example.org:8080" of "org,example:8080"; addresses stand as they are. */
static struct bytes host_name(struct arena *arena, struct bytes surt) {
    struct bytes copy = arena_copy(arena, surt);
    if (copy.data == NULL || surt.size == 0 || surt.data[0] == '[' || surt.data[surt.size - 1] == ':') {
        return copy;
    }
    size_t end = bytes_find_byte(surt, ':'); /* of the port */
    uint8_t *out = (uint8_t *)(uintptr_t)copy.data;
    struct bytes rest = bytes_slice(surt, 0, end);
    struct bytes part;
    size_t at = end;
    while (bytes_split(&rest, ',', &part)) {
        at -= part.size;
        memcpy(out + at, part.data, part.size);
        if (at > 0) {
            out[--at] = '.';
        }
    }
    return copy;
}

/* NULL: there are too many, or no memory is left for another. */
static struct survey_host *find_host(struct survey_tally *tally, struct bytes surt) {
    if (tally->host != NULL && bytes_equal(tally->host->surt, surt)) {
        return tally->host;
    }
    tally->host = map_get(&tally->hosts, surt);
    if (tally->host != NULL || map_reserve(&tally->hosts, tally->hosts.count + 1) != ERR_OK) {
        return tally->host;
    }
    struct bytes key = arena_copy(&tally->arena, surt);
    struct bytes name = host_name(&tally->arena, surt);
    if (key.data == NULL || name.data == NULL) {
        return NULL;
    }
    tally->host = map_put(&tally->hosts, key);
    *tally->host =
        (struct survey_host){.surt = key, .name = name, .first_us = INT64_MAX, .last_us = INT64_MIN};
    return tally->host;
}

static void widen(int64_t *first_us, int64_t *last_us, int64_t time_us) {
    *first_us = time_us < *first_us ? time_us : *first_us;
    *last_us = time_us > *last_us ? time_us : *last_us;
}

static void add_host(struct survey_tally *tally, const struct capture *capture, uint64_t size) {
    struct survey_host *host = find_host(tally, host_of(capture->surt));
    add_to(host != NULL ? &host->total : &tally->others, capture, size);
    if (host != NULL) {
        widen(&host->first_us, &host->last_us, capture->time_us);
    }
}

/* Types above the maximum are left out: they are the noise of broken servers. */
static void add_type(struct survey_tally *tally, const struct capture *capture, uint64_t size) {
    struct survey_type *type = map_get(&tally->types, capture->mime);
    if (type == NULL && map_reserve(&tally->types, tally->types.count + 1) == ERR_OK) {
        struct bytes name = arena_copy(&tally->arena, capture->mime);
        if (name.data != NULL) {
            type = map_put(&tally->types, name);
            type->name = name;
        }
    }
    if (type != NULL) {
        add_to(&type->total, capture, size);
    }
}

static void add_month(struct survey_tally *tally, const struct capture *capture, uint64_t size) {
    struct utc utc;
    utc_split(capture->time_us, &utc);
    int32_t number = utc.year * 12 + utc.month - 1;
    struct bytes key = bytes_of(&number, sizeof number);
    struct survey_month *month = map_get(&tally->months, key);
    if (month == NULL && map_reserve(&tally->months, tally->months.count + 1) == ERR_OK) {
        month = map_put(&tally->months, key);
        month->month = number;
    }
    if (month != NULL) {
        month->captures_count++;
        month->size += size;
    }
}

/* ---- the newest pages ---- */

static bool is_page(const struct capture *capture) {
    return capture->status == STATUS_OK && capture->surt.size <= SURVEY_URL_SIZE_MAX &&
           capture->url.size <= SURVEY_URL_SIZE_MAX &&
           (bytes_equal(capture->mime, BYTES("text/html")) ||
            bytes_equal(capture->mime, BYTES("application/xhtml+xml")));
}

static void put_page(struct survey_tally *tally, size_t index, const struct capture *capture) {
    uint8_t *surt = tally->newest_texts[index][0];
    uint8_t *url = tally->newest_texts[index][1];
    memcpy(surt, capture->surt.data, capture->surt.size);
    memcpy(url, capture->url.data, capture->url.size);
    tally->newest[index] = (struct survey_page){
        .surt = bytes_of(surt, capture->surt.size),
        .url = bytes_of(url, capture->url.size),
        .time_us = capture->time_us,
    };
    tally->page_index = index;
}

static void add_page(struct survey_tally *tally, const struct capture *capture) {
    if (!is_page(capture)) {
        return;
    }
    if (tally->page_index != SIZE_MAX && bytes_equal(tally->newest[tally->page_index].surt, capture->surt)) {
        put_page(tally, tally->page_index, capture);
        return;
    }
    if (tally->newest_count < SURVEY_NEWEST_MAX) {
        put_page(tally, tally->newest_count++, capture);
        return;
    }
    size_t oldest = 0;
    for (size_t i = 1; i < tally->newest_count; i++) {
        oldest = tally->newest[i].time_us < tally->newest[oldest].time_us ? i : oldest;
    }
    if (capture->time_us > tally->newest[oldest].time_us) {
        put_page(tally, oldest, capture);
    }
}

void survey_tally_add(struct survey_tally *tally, const struct capture *capture, uint64_t size) {
    add_to(&tally->total, capture, size);
    widen(&tally->first_us, &tally->last_us, capture->time_us);
    add_host(tally, capture, size);
    add_type(tally, capture, size);
    add_month(tally, capture, size);
    add_page(tally, capture);
    tally->statuses[capture->status < SURVEY_STATUSES_MAX ? capture->status : 0]++;
}

/* ---- the snapshot ---- */

/* Equal ones by name, so that pages of a list do not overlap. */
static int compare_names(const struct survey_host *a, const struct survey_host *b) {
    return bytes_compare(a->surt, b->surt);
}

static int by_name(const void *a, const void *b) {
    return compare_names(*(const struct survey_host *const *)a, *(const struct survey_host *const *)b);
}

static int by_captures(const void *left, const void *right) {
    const struct survey_host *a = *(const struct survey_host *const *)left;
    const struct survey_host *b = *(const struct survey_host *const *)right;
    int order = (a->total.captures_count < b->total.captures_count) -
                (a->total.captures_count > b->total.captures_count);
    return order != 0 ? order : compare_names(a, b);
}

static int by_size(const void *left, const void *right) {
    const struct survey_host *a = *(const struct survey_host *const *)left;
    const struct survey_host *b = *(const struct survey_host *const *)right;
    int order = (a->total.size < b->total.size) - (a->total.size > b->total.size);
    return order != 0 ? order : compare_names(a, b);
}

static int by_last(const void *left, const void *right) {
    const struct survey_host *a = *(const struct survey_host *const *)left;
    const struct survey_host *b = *(const struct survey_host *const *)right;
    int order = (a->last_us < b->last_us) - (a->last_us > b->last_us);
    return order != 0 ? order : compare_names(a, b);
}

static int by_type(const void *left, const void *right) {
    const struct survey_type *a = left;
    const struct survey_type *b = right;
    int order = (a->total.captures_count < b->total.captures_count) -
                (a->total.captures_count > b->total.captures_count);
    return order != 0 ? order : bytes_compare(a->name, b->name);
}

static int by_month(const void *left, const void *right) {
    const struct survey_month *a = left;
    const struct survey_month *b = right;
    return (a->month > b->month) - (a->month < b->month);
}

static int newest_first(const void *left, const void *right) {
    const struct survey_page *a = left;
    const struct survey_page *b = right;
    int order = (a->time_us < b->time_us) - (a->time_us > b->time_us);
    return order != 0 ? order : bytes_compare(a->surt, b->surt);
}

static bool copy_hosts(struct holder *holder, const struct survey_tally *tally) {
    static int (*const orders[])(const void *, const void *) = {[SURVEY_BY_CAPTURES] = by_captures,
                                                                [SURVEY_BY_SIZE] = by_size,
                                                                [SURVEY_BY_NAME] = by_name,
                                                                [SURVEY_BY_LAST] = by_last};
    size_t count = tally->hosts.count;
    struct survey_host *hosts = arena_take_array(&holder->arena, count + 1, sizeof *hosts);
    size_t cursor = 0;
    struct bytes key;
    void *value;
    for (size_t i = 0; hosts != NULL && map_next(&tally->hosts, &cursor, &key, &value); i++) {
        hosts[i] = *(const struct survey_host *)value;
        hosts[i].surt = arena_copy(&holder->arena, hosts[i].surt);
        hosts[i].name = arena_copy(&holder->arena, hosts[i].name);
        if (hosts[i].surt.data == NULL || hosts[i].name.data == NULL) {
            return false;
        }
    }
    for (size_t order = 0; order < SURVEY_ORDERS_COUNT; order++) {
        const struct survey_host **sorted = arena_take_array(&holder->arena, count + 1, sizeof *sorted);
        if (hosts == NULL || sorted == NULL) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            sorted[i] = &hosts[i];
        }
        qsort(sorted, count, sizeof *sorted, orders[order]);
        holder->snapshot.hosts[order] = sorted;
    }
    holder->snapshot.hosts_count = count;
    return true;
}

static bool copy_types(struct holder *holder, const struct survey_tally *tally) {
    struct survey_type *types = arena_take_array(&holder->arena, tally->types.count + 1, sizeof *types);
    size_t cursor = 0;
    size_t count = 0;
    struct bytes key;
    void *value;
    while (types != NULL && map_next(&tally->types, &cursor, &key, &value)) {
        types[count] = *(const struct survey_type *)value;
        types[count].name = arena_copy(&holder->arena, key);
        count++;
    }
    if (types != NULL) {
        qsort(types, count, sizeof *types, by_type);
    }
    holder->snapshot.types = types;
    holder->snapshot.types_count = count;
    return types != NULL;
}

static bool copy_months(struct holder *holder, const struct survey_tally *tally) {
    struct survey_month *months = arena_take_array(&holder->arena, tally->months.count + 1, sizeof *months);
    size_t cursor = 0;
    size_t count = 0;
    struct bytes key;
    void *value;
    while (months != NULL && map_next(&tally->months, &cursor, &key, &value)) {
        months[count++] = *(const struct survey_month *)value;
    }
    if (months != NULL) {
        qsort(months, count, sizeof *months, by_month);
    }
    holder->snapshot.months = months;
    holder->snapshot.months_count = count;
    return months != NULL;
}

static bool copy_pages(struct holder *holder, const struct survey_tally *tally) {
    struct survey_page *pages = arena_take_array(&holder->arena, tally->newest_count + 1, sizeof *pages);
    for (size_t i = 0; pages != NULL && i < tally->newest_count; i++) {
        pages[i] = tally->newest[i];
        pages[i].surt = arena_copy(&holder->arena, pages[i].surt);
        pages[i].url = arena_copy(&holder->arena, pages[i].url);
        if (pages[i].surt.data == NULL || pages[i].url.data == NULL) {
            return false;
        }
    }
    if (pages != NULL) {
        qsort(pages, tally->newest_count, sizeof *pages, newest_first);
    }
    holder->snapshot.newest = pages;
    holder->snapshot.newest_count = tally->newest_count;
    return pages != NULL;
}

static bool copy_volumes(struct holder *holder, const struct survey_volume *volumes, size_t count) {
    struct survey_volume *copy = arena_take_array(&holder->arena, count + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = volumes[i];
    }
    holder->snapshot.volumes = copy;
    holder->snapshot.volumes_count = count;
    return copy != NULL;
}

struct survey_snapshot *survey_tally_snapshot(const struct survey_tally *tally,
                                              const struct survey_volume *volumes, size_t volumes_count) {
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL) {
        return NULL;
    }
    atomic_init(&holder->references, 1);
    arena_init(&holder->arena, SNAPSHOT_SIZE_MAX);
    holder->snapshot.total = tally->total;
    holder->snapshot.others = tally->others;
    holder->snapshot.first_us = tally->first_us;
    holder->snapshot.last_us = tally->last_us;
    memcpy(holder->snapshot.statuses, tally->statuses, sizeof tally->statuses);
    if (!copy_hosts(holder, tally) || !copy_types(holder, tally) || !copy_months(holder, tally) ||
        !copy_pages(holder, tally) || !copy_volumes(holder, volumes, volumes_count)) {
        survey_release(&holder->snapshot);
        return NULL;
    }
    return &holder->snapshot;
}

void survey_keep(const struct survey_snapshot *snapshot) {
    struct holder *holder = (struct holder *)(uintptr_t)snapshot;
    atomic_fetch_add(&holder->references, 1);
}

void survey_release(const struct survey_snapshot *snapshot) {
    struct holder *holder = (struct holder *)(uintptr_t)snapshot;
    if (holder != NULL && atomic_fetch_sub(&holder->references, 1) == 1) {
        arena_done(&holder->arena);
        free(holder);
    }
}
