#include "replay/survey/survey_tally.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/utc.h"
#include "http/message/http_head.h"
#include "web/type/mime_type.h"

enum { NAMES_SIZE_MAX = 64 << 20, SNAPSHOT_SIZE_MAX = 128 << 20, STATUS_OK = 200 };

/* What a snapshot lies in. */
struct holder {
    struct survey_snapshot snapshot; /* first: the functions find the rest from here */
    atomic_uint references;
    struct arena arena;
};

enum err survey_tally_init(struct survey_tally *tally, uint64_t seed) {
    *tally = (struct survey_tally){
        .first_us = INT64_MAX,
        .last_us = INT64_MIN,
        .page_index = SIZE_MAX,
        .host_index = SURVEY_HOSTS_MAX,
        .hosts =
            calloc(SURVEY_HOSTS_MAX, sizeof *tally->hosts), /* pages of memory that are not used are none */
        .unsized = calloc(SURVEY_UNSIZED_MAX, sizeof *tally->unsized),
    };
    if (tally->hosts == NULL || tally->unsized == NULL) {
        free(tally->hosts);
        free(tally->unsized);
        return ERR_MEMORY;
    }
    arena_init(&tally->arena, NAMES_SIZE_MAX);
    map_init(&tally->host_places, 0, sizeof(uint32_t), SURVEY_HOSTS_MAX, seed);
    map_init(&tally->type_places, 0, sizeof(uint32_t), SURVEY_TYPES_MAX, seed);
    map_init(&tally->month_places, sizeof(int32_t), sizeof(uint32_t), SURVEY_MONTHS_MAX, seed);
    return ERR_OK;
}

void survey_tally_done(struct survey_tally *tally) {
    map_done(&tally->host_places);
    map_done(&tally->type_places);
    map_done(&tally->month_places);
    arena_done(&tally->arena);
    free(tally->hosts);
    free(tally->unsized);
}

/* ---- counting ---- */

static void add_to(struct survey_total *total, const struct capture *capture) {
    total->captures_count++;
    total->revisits_count += (capture->flags & CAPTURE_REVISIT) != 0;
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

/* The index of the host; SURVEY_HOSTS_MAX: there are too many, or no memory is left for another. */
static uint32_t find_host(struct survey_tally *tally, struct bytes surt) {
    uint32_t last = tally->host_index;
    if (last < SURVEY_HOSTS_MAX && bytes_equal(tally->hosts[last].surt, surt)) {
        return last;
    }
    const uint32_t *place = map_get(&tally->host_places, surt);
    if (place != NULL) {
        return *place;
    }
    uint32_t index = (uint32_t)tally->host_places.count;
    struct bytes key = arena_copy(&tally->arena, surt);
    struct bytes name = host_name(&tally->arena, surt);
    if (map_reserve(&tally->host_places, index + 1) != ERR_OK || key.data == NULL || name.data == NULL) {
        return SURVEY_HOSTS_MAX;
    }
    *(uint32_t *)map_put(&tally->host_places, key) = index;
    tally->hosts[index] =
        (struct survey_host){.surt = key, .name = name, .first_us = INT64_MAX, .last_us = INT64_MIN};
    return index;
}

static void widen(int64_t *first_us, int64_t *last_us, int64_t time_us) {
    *first_us = time_us < *first_us ? time_us : *first_us;
    *last_us = time_us > *last_us ? time_us : *last_us;
}

static uint32_t add_host(struct survey_tally *tally, const struct capture *capture) {
    uint32_t index = tally->host_index = find_host(tally, host_of(capture->surt));
    struct survey_host *host = &tally->hosts[index];
    if (index == SURVEY_HOSTS_MAX) {
        add_to(&tally->others, capture);
        return index;
    }
    add_to(&host->total, capture);
    widen(&host->first_us, &host->last_us, capture->time_us);
    return index;
}

/* Types above the maximum are left out: they are the noise of broken servers. */
static uint16_t add_type(struct survey_tally *tally, const struct capture *capture) {
    struct mime_type type;
    bool is_type = mime_type_parse(&type, capture->mime);
    struct bytes mime = is_type ? mime_type_essence(&type) : capture->mime;
    uint32_t *place = map_get(&tally->type_places, mime);
    if (place == NULL && map_reserve(&tally->type_places, tally->type_places.count + 1) == ERR_OK) {
        uint32_t index = (uint32_t)tally->type_places.count;
        struct bytes name = arena_copy(&tally->arena, mime);
        if (name.data != NULL) {
            place = map_put(&tally->type_places, name);
            *place = index;
            tally->types[index] = (struct survey_type){.name = name};
        }
    }
    if (place == NULL) {
        return SURVEY_TYPES_MAX;
    }
    add_to(&tally->types[*place].total, capture);
    return (uint16_t)*place;
}

static uint16_t add_month(struct survey_tally *tally, const struct capture *capture) {
    struct utc utc;
    utc_split(capture->time_us, &utc);
    int32_t number = utc.year * 12 + utc.month - 1;
    struct bytes key = bytes_of(&number, sizeof number);
    uint32_t *place = map_get(&tally->month_places, key);
    if (place == NULL && map_reserve(&tally->month_places, tally->month_places.count + 1) == ERR_OK) {
        uint32_t index = (uint32_t)tally->month_places.count;
        place = map_put(&tally->month_places, key);
        *place = index;
        tally->months[index] = (struct survey_month){.month = number};
    }
    if (place == NULL) {
        return SURVEY_MONTHS_MAX;
    }
    tally->months[*place].captures_count++;
    return (uint16_t)*place;
}

/* ---- sizes ---- */

static uint64_t tally_start_of(const uint8_t digest[KEY_DIGEST_SIZE]) {
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof start; i++) {
        start = start << 8 | digest[i];
    }
    return start;
}

static int compare_keys(const struct survey_unsized *a, const struct survey_unsized *b) {
    int order = (a->digest > b->digest) - (a->digest < b->digest);
    return order != 0 ? order : (int)a->block_number - (int)b->block_number;
}

static int by_key(const void *left, const void *right) {
    return compare_keys(left, right);
}

void survey_tally_sort(struct survey_tally *tally) {
    qsort(tally->unsized, tally->unsized_count, sizeof *tally->unsized, by_key);
    tally->unsized_next = 0;
}

static void add_size_to(struct survey_total *total, const struct survey_unsized *unsized, uint64_t size) {
    total->size += size;
    total->saved_size += unsized->is_revisit ? size : 0;
}

static void settle_one(struct survey_tally *tally, struct survey_unsized *unsized, uint64_t size) {
    if (unsized->is_sized) { /* several volumes have it */
        return;
    }
    unsized->is_sized = true;
    add_size_to(&tally->total, unsized, size);
    bool has_host = unsized->host < SURVEY_HOSTS_MAX;
    add_size_to(has_host ? &tally->hosts[unsized->host].total : &tally->others, unsized, size);
    if (unsized->type < SURVEY_TYPES_MAX) {
        add_size_to(&tally->types[unsized->type].total, unsized, size);
    }
    if (unsized->month < SURVEY_MONTHS_MAX) {
        tally->months[unsized->month].size += size;
    }
}

void survey_tally_add_size(struct survey_tally *tally, const struct key *key, uint64_t size) {
    struct survey_unsized wanted = {.digest = tally_start_of(key->digest), .block_number = key->number};
    struct survey_unsized *all = tally->unsized;
    size_t i = key->volume == tally->volume ? tally->unsized_next : 0;
    while (i < tally->unsized_count && compare_keys(&all[i], &wanted) < 0) {
        i++;
    }
    tally->unsized_next = i;
    tally->volume = key->volume;
    for (; i < tally->unsized_count && compare_keys(&all[i], &wanted) == 0; i++) {
        settle_one(tally, &all[i], size);
    }
}

void survey_tally_settle(struct survey_tally *tally) {
    tally->unsized_count = 0;
    tally->unsized_next = 0;
}

/* ---- the newest pages ---- */

static bool tally_is_page(const struct capture *capture) {
    return capture->status == STATUS_OK && capture->surt.size <= SURVEY_URL_SIZE_MAX &&
           capture->url.size <= SURVEY_URL_SIZE_MAX && http_is_html(capture->mime);
}

static void tally_put_page(struct survey_tally *tally, size_t index, const struct capture *capture) {
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

static void tally_add_page(struct survey_tally *tally, const struct capture *capture) {
    if (!tally_is_page(capture)) {
        return;
    }
    if (tally->page_index != SIZE_MAX && bytes_equal(tally->newest[tally->page_index].surt, capture->surt)) {
        tally_put_page(tally, tally->page_index, capture);
        return;
    }
    if (tally->newest_count < SURVEY_NEWEST_MAX) {
        tally_put_page(tally, tally->newest_count++, capture);
        return;
    }
    size_t oldest = 0;
    for (size_t i = 1; i < tally->newest_count; i++) {
        oldest = tally->newest[i].time_us < tally->newest[oldest].time_us ? i : oldest;
    }
    if (capture->time_us > tally->newest[oldest].time_us) {
        tally_put_page(tally, oldest, capture);
    }
}

void survey_tally_add(struct survey_tally *tally, const struct capture *capture) {
    ASSERT(tally->unsized_count < SURVEY_UNSIZED_MAX);
    add_to(&tally->total, capture);
    widen(&tally->first_us, &tally->last_us, capture->time_us);
    tally->unsized[tally->unsized_count++] = (struct survey_unsized){
        .digest = tally_start_of(capture->digest),
        .host = add_host(tally, capture),
        .type = add_type(tally, capture),
        .month = add_month(tally, capture),
        .block_number = capture->block_number,
        .is_revisit = (capture->flags & CAPTURE_REVISIT) != 0,
    };
    tally_add_page(tally, capture);
    tally->statuses[capture->status < SURVEY_STATUSES_MAX ? capture->status : 0]++;
}

/* ---- the snapshot ---- */

/* The larger first, and equal ones by name, so that pages of a list do not overlap. */
static int compare_hosts(const void *left, const void *right, void *order_of) {
    enum survey_order order = *(const enum survey_order *)order_of;
    const struct survey_host *a = *(const struct survey_host *const *)left;
    const struct survey_host *b = *(const struct survey_host *const *)right;
    const int64_t keys[][2] = {
        [SURVEY_BY_CAPTURES] = {(int64_t)a->total.captures_count, (int64_t)b->total.captures_count},
        [SURVEY_BY_SIZE] = {(int64_t)a->total.size, (int64_t)b->total.size},
        [SURVEY_BY_NAME] = {0, 0},
        [SURVEY_BY_LAST] = {a->last_us, b->last_us},
    };
    int difference = (keys[order][0] < keys[order][1]) - (keys[order][0] > keys[order][1]);
    return difference != 0 ? difference : bytes_compare(a->surt, b->surt);
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

/* A copy of the items in the arena, which has room for one at least; NULL: out of memory. */
static void *tally_copy(struct holder *holder, const void *items, size_t count, size_t size) {
    void *copy = arena_take_array(&holder->arena, count + 1, size);
    if (copy != NULL && count > 0) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

/* The slice borrows from the arena now. False: out of memory. */
static bool copy_text(struct holder *holder, struct bytes *text) {
    *text = arena_copy(&holder->arena, *text);
    return text->data != NULL;
}

static bool copy_hosts(struct holder *holder, const struct survey_tally *tally) {
    size_t count = tally->host_places.count;
    struct survey_host *hosts = tally_copy(holder, tally->hosts, count, sizeof *hosts);
    bool is_whole = hosts != NULL;
    for (size_t i = 0; is_whole && i < count; i++) {
        is_whole = copy_text(holder, &hosts[i].surt) && copy_text(holder, &hosts[i].name);
    }
    for (enum survey_order order = 0; is_whole && order <= SURVEY_BY_LAST; order++) {
        const struct survey_host **sorted = arena_take_array(&holder->arena, count + 1, sizeof *sorted);
        for (size_t i = 0; sorted != NULL && i < count; i++) {
            sorted[i] = &hosts[i];
        }
        is_whole = sorted != NULL;
        if (is_whole) {
            qsort_r(sorted, count, sizeof *sorted, compare_hosts, &order);
        }
        holder->snapshot.hosts[order] = sorted;
    }
    holder->snapshot.hosts_count = count;
    return is_whole;
}

static bool copy_types(struct holder *holder, const struct survey_tally *tally) {
    size_t count = tally->type_places.count;
    struct survey_type *types = tally_copy(holder, tally->types, count, sizeof *types);
    bool is_whole = types != NULL;
    for (size_t i = 0; is_whole && i < count; i++) {
        is_whole = copy_text(holder, &types[i].name);
    }
    if (is_whole) {
        qsort(types, count, sizeof *types, by_type);
    }
    holder->snapshot.types = types;
    holder->snapshot.types_count = count;
    return is_whole;
}

static bool copy_months(struct holder *holder, const struct survey_tally *tally) {
    size_t count = tally->month_places.count;
    struct survey_month *months = tally_copy(holder, tally->months, count, sizeof *months);
    if (months != NULL) {
        qsort(months, count, sizeof *months, by_month);
    }
    holder->snapshot.months = months;
    holder->snapshot.months_count = count;
    return months != NULL;
}

static bool copy_pages(struct holder *holder, const struct survey_tally *tally) {
    size_t count = tally->newest_count;
    struct survey_page *pages = tally_copy(holder, tally->newest, count, sizeof *pages);
    bool is_whole = pages != NULL;
    for (size_t i = 0; is_whole && i < count; i++) {
        is_whole = copy_text(holder, &pages[i].surt) && copy_text(holder, &pages[i].url);
    }
    if (is_whole) {
        qsort(pages, count, sizeof *pages, newest_first);
    }
    holder->snapshot.newest = pages;
    holder->snapshot.newest_count = count;
    return is_whole;
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
    holder->snapshot.volumes = tally_copy(holder, volumes, volumes_count, sizeof *volumes);
    holder->snapshot.volumes_count = volumes_count;
    if (!copy_hosts(holder, tally) || !copy_types(holder, tally) || !copy_months(holder, tally) ||
        !copy_pages(holder, tally) || holder->snapshot.volumes == NULL) {
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
