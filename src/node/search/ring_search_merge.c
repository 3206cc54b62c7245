#include "node/search/ring_search_merge.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/utc.h"
#include "web/url/url.h"

enum { RESULTS_SIZE_MAX = 16 << 20 };

struct candidate {
    struct search_code_result result;
    double score;
    const struct peer *from; /* NULL: here */
    size_t same;             /* the one before it with this URL; SIZE_MAX: none */
};

static int compare_candidates(const void *a, const void *b) {
    const struct candidate *left = a;
    const struct candidate *right = b;
    if (left->score != right->score) {
        return left->score > right->score ? -1 : 1;
    }
    if (left->result.time_us != right->result.time_us) {
        return left->result.time_us > right->result.time_us ? -1 : 1;
    }
    int order = bytes_compare(left->result.url, right->result.url);
    return order != 0 ? order : (left->from != NULL) - (right->from != NULL); /* ours before theirs */
}

/* The candidates that are worth a look, as a list. */
struct merge_list {
    struct candidate *items;
    size_t count;
    size_t max;
    bool has_more;
};

static void list_add(struct merge_list *list, const struct search_code_result *result, double score,
                     const struct peer *from) {
    if (list->count < list->max) {
        list->items[list->count++] =
            (struct candidate){.result = *result, .score = score, .from = from, .same = SIZE_MAX};
    }
}

static void list_add_here(struct merge_list *list, const struct search_job *here) {
    for (size_t i = 0; i < here->results_count; i++) {
        const struct search_result *found = &here->results[i];
        struct search_code_result result = {.url = found->url,
                                            .title = found->title,
                                            .language = found->language,
                                            .snippet = found->snippet,
                                            .time_us = found->time_us};
        memcpy(result.digest, found->digest, sizeof result.digest);
        list_add(list, &result, found->score, NULL);
    }
    list->has_more = list->has_more || here->has_more;
}

static void list_add_answer(struct merge_list *list, const struct ring_search_answer *answer) {
    struct search_code_reader reader;
    struct search_code_head head;
    struct search_code_arc arc;
    struct search_code_result result;
    if (!search_code_read_head(&reader, answer->bytes, &head)) {
        return;
    }
    while (search_code_next_arc(&reader, &arc)) {
    }
    while (search_code_next_result(&reader, &result)) {
        list_add(list, &result, (double)result.score / 1e6, answer->from);
    }
    list->has_more = list->has_more || head.has_more;
}

/* Was it there before: of the same URL, at the same time or with the same contents? */
static bool is_known(struct map *known, struct merge_list *list, size_t index) {
    struct candidate *candidate = &list->items[index];
    const size_t *last = map_get(known, candidate->result.url);
    for (size_t i = last != NULL ? *last : SIZE_MAX; i != SIZE_MAX; i = list->items[i].same) {
        const struct search_code_result *other = &list->items[i].result;
        if (other->time_us == candidate->result.time_us ||
            memcmp(other->digest, candidate->result.digest, sizeof other->digest) == 0) {
            return true;
        }
    }
    size_t *place = map_put(known, candidate->result.url);
    if (place != NULL) {
        candidate->same = last != NULL ? *last : SIZE_MAX;
        *place = index;
    }
    return place == NULL;
}

/* Anything that is a URL as people write it would do for archive_key(). */
static bool is_url(struct bytes text) {
    struct url url;
    url_init(&url);
    bool is_good = url_parse(&url, text, NULL, NULL) == ERR_OK &&
                   (url.scheme_type == URL_SCHEME_HTTP || url.scheme_type == URL_SCHEME_HTTPS);
    url_done(&url);
    return is_good;
}

/* May it be shown here, whoever found it? */
static bool candidate_may_show(const struct ring_search_config *config,
                               const struct search_question *question, struct archive_reader *reader,
                               const struct candidate *candidate) {
    const struct search_code_result *result = &candidate->result;
    struct bytes surt;
    if (candidate->from == NULL) {
        return true; /* the search here has looked */
    }
    if (result->time_us < question->from_us || result->time_us > question->to_us ||
        result->time_us < UTC_MIN_US || result->time_us > UTC_MAX_US || !is_url(result->url) ||
        archive_key(reader, result->url, &surt, NULL) != ERR_OK) {
        return false;
    }
    struct capture capture = {
        .surt = surt, .url = result->url, .time_us = result->time_us, .volume = INSTANCE_GUEST_NUMBER};
    return (config->allows == NULL || config->allows(config->context, result->url)) &&
           archive_verdict(reader, &capture) == ACCESS_ALLOW &&
           !instance_is_deleted(archive_instance(config->archive), surt, result->url, result->time_us);
}

static enum err show_candidate(struct search_job *job, const struct candidate *candidate) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    const struct search_code_result *from = &candidate->result;
    struct arena *arena = &job->arena;
    struct search_result *result = &job->results[job->results_count];
    *result = (struct search_result){
        .url = arena_copy(arena, from->url),
        .title = arena_copy(arena, from->title),
        .language = arena_copy(arena, from->language),
        .snippet = arena_copy(arena, from->snippet),
        .time_us = from->time_us,
        .score = candidate->score,
    };
    memcpy(result->digest, from->digest, sizeof from->digest);
    bool is_whole = result->url.data != NULL && result->title.data != NULL && result->language.data != NULL &&
                    result->snippet.data != NULL;
    if (candidate->from != NULL) {
        address_format(&candidate->from->address, address);
        result->node = arena_copy(arena, bytes_of_string(address));
        is_whole = is_whole && result->node.data != NULL;
    }
    job->results_count += is_whole;
    return is_whole ? ERR_OK : ERR_LIMIT;
}

/* The best of all, each once. */
static enum err show_list(const struct ring_search_config *config, struct search_job *job,
                          struct merge_list *list, struct archive_reader *reader) {
    struct map known;
    size_t passed_count = 0;
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    map_init(&known, 0, sizeof(size_t), list->count + 1, seed);
    enum err err = map_reserve(&known, list->count + 1);
    for (size_t i = 0; err == ERR_OK && i < list->count; i++) {
        if (!candidate_may_show(config, &job->question, reader, &list->items[i]) ||
            is_known(&known, list, i)) {
            continue;
        }
        if (passed_count < job->question.offset) {
            passed_count++;
        } else if (job->results_count < job->question.limit) {
            err = show_candidate(job, &list->items[i]);
        } else {
            job->has_more = true;
            break;
        }
    }
    job->has_more = job->has_more || (list->has_more && job->results_count == job->question.limit);
    map_done(&known);
    return err;
}

/* How many results there are, at most. */
static size_t count_all(const struct search_job *here, const struct ring_search_answer *answers,
                        size_t count) {
    size_t sum = here->results_count;
    for (size_t i = 0; i < count; i++) {
        struct search_code_reader reader;
        struct search_code_head head;
        if (search_code_read_head(&reader, answers[i].bytes, &head)) {
            sum += head.results_count;
        }
    }
    return sum;
}

enum err ring_search_merge(const struct ring_search_config *config, const struct search_job *here,
                           const struct ring_search_answer *answers, size_t count, struct search_job *job) {
    struct merge_list list = {.max = count_all(here, answers, count)};
    arena_init(&job->arena, RESULTS_SIZE_MAX);
    job->results = arena_take_array(&job->arena, job->question.limit, sizeof *job->results);
    list.items = calloc(list.max + 1, sizeof *list.items);
    struct archive_reader *reader = archive_reader_begin_here(job->archive);
    enum err err = job->results == NULL || list.items == NULL || reader == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK) {
        list_add_here(&list, here);
        for (size_t i = 0; i < count; i++) {
            list_add_answer(&list, &answers[i]);
        }
        qsort(list.items, list.count, sizeof *list.items, compare_candidates);
        err = show_list(config, job, &list, reader);
    }
    archive_reader_end(reader);
    free(list.items);
    return err;
}
