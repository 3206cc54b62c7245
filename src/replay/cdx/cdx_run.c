#include "replay/cdx/cdx_run.h"

#include "base/hex.h"

enum { SECOND_US = 1000000, HASH_DIGITS = 16, KEPT_SIZE_MAX = 256 << 10 };

/* ---- captures that are kept ---- */

void cdx_kept_init(struct cdx_kept *kept) {
    buf_init(&kept->bytes, KEPT_SIZE_MAX);
}

void cdx_kept_done(struct cdx_kept *kept) {
    buf_done(&kept->bytes);
}

enum err cdx_kept_set(struct cdx_kept *kept, const struct capture *capture) {
    kept->capture = *capture;
    return archive_keep(&kept->bytes, &kept->capture);
}

/* ---- the source ---- */

/* FNV-1a of so much of the field as counts; never 0. */
static uint64_t hash_field(struct cdx_run *run, const struct cdx_collapse *collapse,
                           const struct capture *capture) {
    cdx_line_fill(&run->line, run->reader, capture, cdx_field_bit(collapse->field));
    struct bytes value = cdx_line_value(&run->line, collapse->field);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < value.size && i < collapse->size; i++) {
        hash = (hash ^ value.data[i]) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

/* The key of a forward run begins with what its collapses have seen: 16 digits and a dot each. */
static enum err run_read_key(struct cdx_run *run, struct bytes *after, struct err_detail *detail) {
    *after = run->query->resume_key;
    for (size_t i = 0; i < run->query->collapses_count && !run->in_reverse && after->size > 0; i++) {
        uint64_t hash = 0;
        bool is_sound = after->size > HASH_DIGITS && after->data[HASH_DIGITS] == '.';
        for (size_t j = 0; j < HASH_DIGITS && is_sound; j++) {
            int digit = hex_digit(after->data[j]);
            is_sound = digit >= 0;
            hash = hash << 4 | (uint64_t)(digit & 15);
        }
        if (!is_sound) {
            return err_set(detail, ERR_INVALID, "the resume key belongs to another query");
        }
        run->stages[i].hash = hash;
        *after = bytes_skip(*after, HASH_DIGITS + 1);
    }
    return ERR_OK;
}

static enum err open_side(struct cdx_run *run, struct cdx_side *side, const struct archive_range *range,
                          struct err_detail *detail) {
    *side = (struct cdx_side){.is_over = range->from_us > range->to_us};
    return archive_walk_open(run->reader, range, &side->walk, detail);
}

static struct archive_range range_of(const struct cdx_run *run, struct bytes after) {
    const struct cdx_query *query = run->query;
    return (struct archive_range){
        .url = query->url,
        .match = query->match,
        .from_us = query->from_us,
        .to_us = query->to_us,
        .in_reverse = run->in_reverse,
        .after = after,
        .steps_max = CDX_STEPS,
    };
}

/* The captures before the date. */
static enum err open_past(struct cdx_run *run, struct bytes after, struct err_detail *detail) {
    struct archive_range range = range_of(run, after);
    int64_t closest_us = run->query->closest_us;
    range.in_reverse = true;
    range.to_us = closest_us > range.to_us ? range.to_us : closest_us - 1;
    return open_side(run, &run->sides[0], &range, detail);
}

static enum err open_sides(struct cdx_run *run, struct bytes after, struct err_detail *detail) {
    struct archive_range range = range_of(run, after);
    if (run->query->sort != CDX_CLOSEST) {
        run->sides_count = 1;
        return open_side(run, &run->sides[0], &range, detail);
    }
    run->sides_count = 2;
    range.in_reverse = false;
    range.from_us = run->query->closest_us > range.from_us ? run->query->closest_us : range.from_us;
    enum err err = open_side(run, &run->sides[1], &range, detail);
    /* The past is mostly opened when it is needed: whoever asks for the time of a capture has it already. */
    return err == ERR_OK && after.size > 0 ? open_past(run, after, detail) : err;
}

static bool is_of_one_url(const struct cdx_query *query) {
    return query->match == QUERY_EXACT ||
           (query->match == QUERY_BY_URL && !bytes_starts_with(query->url, BYTES("*.")) &&
            !bytes_ends_with(query->url, BYTES("*")));
}

static void run_init(struct cdx_run *run, struct archive *archive, struct archive_reader *reader,
                     const struct cdx_query *query, bool in_reverse) {
    *run = (struct cdx_run){
        .reader = reader,
        .query = query,
        .in_reverse = in_reverse,
        .skip_count = query->has_page ? query->page * query->page_size : 0,
        .take_count = query->has_page ? query->page_size : UINT64_MAX,
    };
    for (size_t i = 0; i < query->collapses_count; i++) {
        cdx_kept_init(&run->stages[i].kept[0]);
        cdx_kept_init(&run->stages[i].kept[1]);
    }
    likeness_init(&run->likeness);
    cdx_line_init(&run->line, archive_instance(archive), query->is_resolved);
}

enum err cdx_run_open(struct cdx_run *run, struct archive *archive, struct archive_reader *reader,
                      const struct cdx_query *query, bool in_reverse, struct err_detail *detail) {
    struct bytes after;
    if (query->sort == CDX_CLOSEST && !is_of_one_url(query)) {
        return err_set(detail, ERR_INVALID, "sort=closest needs a single URL, not a prefix, host or domain");
    }
    run_init(run, archive, reader, query, in_reverse);
    enum err err = run_read_key(run, &after, detail);
    if (err == ERR_OK && query->sort == CDX_CLOSEST) {
        err = likeness_ask(&run->likeness, query->url);
    }
    if (err == ERR_OK) {
        err = open_sides(run, after, detail);
    }
    if (err != ERR_OK) {
        cdx_run_close(run);
    }
    return err;
}

enum err cdx_run_open_behind(struct cdx_run *run, struct archive *archive, struct archive_reader *reader,
                             const struct cdx_query *query, bool in_reverse, const struct capture *capture,
                             struct err_detail *detail) {
    struct buf key;
    buf_init(&key, KEPT_SIZE_MAX);
    run_init(run, archive, reader, query, in_reverse);
    for (size_t i = 0; i < query->collapses_count && !in_reverse; i++) {
        run->stages[i].hash = hash_field(run, &query->collapses[i], capture);
    }
    enum err err = archive_capture_key(capture, &key);
    if (err == ERR_OK) {
        err = open_sides(run, buf_bytes(&key), detail);
    }
    buf_done(&key);
    if (err != ERR_OK) {
        cdx_run_close(run);
    }
    return err;
}

static void run_close_sides(struct cdx_run *run) {
    for (size_t i = 0; i < run->sides_count; i++) {
        if (run->sides[i].walk != NULL) {
            archive_walk_close(run->sides[i].walk);
        }
        run->sides[i] = (struct cdx_side){0};
    }
}

void cdx_run_close(struct cdx_run *run) {
    run_close_sides(run);
    likeness_done(&run->likeness);
    for (size_t i = 0; i < run->query->collapses_count; i++) {
        cdx_kept_done(&run->stages[i].kept[0]);
        cdx_kept_done(&run->stages[i].kept[1]);
    }
    cdx_line_done(&run->line);
}

/* Its next capture is there, or it is over. */
static enum err run_look(struct cdx_run *run, struct cdx_side *side, struct err_detail *detail) {
    enum err err = side->walk == NULL ? open_past(run, bytes_of(NULL, 0), detail) : ERR_OK;
    if (err != ERR_OK || side->has_capture || side->is_over) {
        return err;
    }
    err = archive_walk_next(side->walk, &side->capture, detail);
    side->has_capture = err == ERR_OK;
    side->is_over = err == ERR_NOT_FOUND;
    return side->is_over ? ERR_OK : err;
}

/* In whole seconds, as timestamps have them. */
static uint64_t run_distance(const struct capture *capture, int64_t closest_us) {
    int64_t second = capture->time_us / SECOND_US - (capture->time_us % SECOND_US < 0);
    int64_t closest = closest_us / SECOND_US;
    return second > closest ? (uint64_t)second - (uint64_t)closest : (uint64_t)closest - (uint64_t)second;
}

/* If two are equally far, the older one. */
static struct cdx_side *choose_side(struct cdx_run *run) {
    struct cdx_side *first = &run->sides[0];
    struct cdx_side *second = &run->sides[1];
    if (run->sides_count == 1 || !second->has_capture) {
        return first;
    }
    int64_t closest_us = run->query->closest_us;
    bool is_second = !first->has_capture ||
                     run_distance(&second->capture, closest_us) < run_distance(&first->capture, closest_us);
    return is_second ? second : first;
}

/* Is it of this very second? Then whatever the other side has is further away. */
static bool is_hit(const struct cdx_run *run, const struct cdx_side *side) {
    return run->query->sort == CDX_CLOSEST && side->has_capture &&
           run_distance(&side->capture, run->query->closest_us) == 0;
}

static enum err run_next_capture(struct cdx_run *run, struct capture *ret_capture,
                                 struct err_detail *detail) {
    struct cdx_side *side = NULL;
    if (run->take_count == 0) {
        return ERR_NOT_FOUND;
    }
    for (size_t i = run->sides_count; i-- > 0 && side == NULL;) {
        enum err err = run_look(run, &run->sides[i], detail);
        if (err != ERR_OK) {
            return err;
        }
        side = is_hit(run, &run->sides[i]) ? &run->sides[i] : NULL;
    }
    side = side == NULL ? choose_side(run) : side;
    if (!side->has_capture) {
        return ERR_NOT_FOUND;
    }
    *ret_capture = side->capture;
    side->has_capture = false; /* its slices last until the side is looked at again */
    return ERR_OK;
}

/* Not for this round, but for a later one? */
static bool run_is_later(struct cdx_run *run, const struct capture *capture) {
    if (run->query->sort != CDX_CLOSEST) {
        return false;
    }
    enum likeness_degree degree = likeness_of(&run->likeness, capture->url);
    run->has_degree[degree] = true;
    return degree != run->degree;
}

/* The next round, if there is anything for it. ERR_NOT_FOUND: that was the last. */
static enum err run_begin_round(struct cdx_run *run, struct err_detail *detail) {
    while (++run->degree < LIKENESS_DEGREES_COUNT) {
        if (run->has_degree[run->degree]) {
            run_close_sides(run);
            return open_sides(run, bytes_of(NULL, 0), detail);
        }
    }
    return ERR_NOT_FOUND;
}

/* ---- filters ---- */

static enum err filter(struct cdx_run *run, const struct capture *capture, bool *ret_passes,
                       struct err_detail *detail) {
    const struct cdx_query *query = run->query;
    *ret_passes = true;
    for (size_t i = 0; i < query->filters_count && *ret_passes; i++) {
        cdx_line_fill(&run->line, run->reader, capture, cdx_filter_fields(&query->filters[i]));
        enum err err = cdx_filter_run(&query->filters[i], &run->line, ret_passes, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

/* ---- collapses ---- */

/*
 * Let a capture through the stages from one on. *ret_out: it, or in reverse one that was kept, has come out
 * at the end.
 */
static enum err run_push(struct cdx_run *run, size_t from, const struct capture *capture,
                         struct capture *ret_capture, bool *ret_out) {
    struct capture moving = *capture;
    *ret_out = false;
    for (size_t i = from; i < run->query->collapses_count; i++) {
        struct cdx_stage *stage = &run->stages[i];
        uint64_t hash = hash_field(run, &run->query->collapses[i], &moving);
        bool is_same = stage->hash == hash;
        bool had_one = stage->hash != 0;
        stage->hash = hash;
        if (run->in_reverse) {
            stage->flip = is_same ? stage->flip : 1 - stage->flip;
            enum err err = cdx_kept_set(&stage->kept[stage->flip], &moving);
            if (err != ERR_OK || is_same || !had_one) {
                return err;
            }
            moving = stage->kept[1 - stage->flip].capture;
        } else if (is_same) {
            return ERR_OK;
        }
    }
    *ret_capture = moving;
    *ret_out = true;
    return ERR_OK;
}

/* At the end of a reverse run, what the stages still keep. */
static enum err run_drain(struct cdx_run *run, struct capture *ret_capture) {
    bool is_out = false;
    enum err err = ERR_OK;
    while (err == ERR_OK && !is_out && run->drained_count < run->query->collapses_count && run->in_reverse) {
        struct cdx_stage *stage = &run->stages[run->drained_count++];
        if (stage->hash != 0) {
            err = run_push(run, run->drained_count, &stage->kept[stage->flip].capture, ret_capture, &is_out);
        }
    }
    return err == ERR_OK && !is_out ? ERR_NOT_FOUND : err;
}

/* ---- all of it ---- */

/* One capture of the source. *ret_out: one has come out at the end. */
static enum err run_step(struct cdx_run *run, struct capture *ret_capture, bool *ret_out,
                         struct err_detail *detail) {
    struct capture capture;
    bool passes = false;
    *ret_out = false;
    enum err err = run_next_capture(run, &capture, detail);
    if (err == ERR_NOT_FOUND && run->query->sort == CDX_CLOSEST && run->degree < LIKENESS_DEGREES_COUNT) {
        return run_begin_round(run, detail);
    }
    if (err != ERR_OK || run_is_later(run, &capture)) {
        return err;
    }
    if (run->skip_count > 0) {
        run->skip_count--;
        return ERR_OK;
    }
    run->take_count--;
    err = filter(run, &capture, &passes, detail);
    return err == ERR_OK && passes ? run_push(run, 0, &capture, ret_capture, ret_out) : err;
}

enum err cdx_run_next(struct cdx_run *run, struct capture *ret_capture, struct err_detail *detail) {
    while (!run->is_over) {
        bool is_out;
        if (run->steps_left == 0) {
            return ERR_BUSY;
        }
        run->steps_left--;
        enum err err = run_step(run, ret_capture, &is_out, detail);
        if (err == ERR_NOT_FOUND) {
            run->is_over = true;
        } else if (err != ERR_OK || is_out) {
            return err;
        }
    }
    return run_drain(run, ret_capture);
}

enum err cdx_run_key(const struct cdx_run *run, const struct capture *given, struct buf *out) {
    bool keeps = run->in_reverse && run->query->collapses_count > 0;
    if (run->sides_count != 1 || (keeps && given == NULL)) {
        return ERR_NOT_FOUND;
    }
    for (size_t i = 0; i < run->query->collapses_count && !run->in_reverse; i++) {
        buf_put_format(out, "%016jx.", (uintmax_t)run->stages[i].hash);
    }
    return given != NULL ? archive_capture_key(given, out) : archive_walk_key(run->sides[0].walk, out);
}
