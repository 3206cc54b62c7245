#include <stdio.h>
#include <stdlib.h>

#include "replay/archive/archive_state.h"
#include "store/instance/merge.h"
#include "store/instance/query.h"

/* Where a walk stopped: the capture that was given last. */
struct place {
    struct bytes surt;
    int64_t time_us;
    uint16_t volume;
    uint32_t segment;
    uint64_t offset;
};

struct archive_walk {
    struct archive_reader *reader;
    struct query query; /* its ranges */
    int64_t from_us;
    int64_t to_us;
    bool in_reverse;
    bool is_partial;
    size_t steps_max;
    size_t ranges_left;
    struct merge *merge; /* of the range that is walked; NULL: not yet */
    struct buf after;    /* the text that place borrows */
    struct place place;  /* go on behind it; surt.data NULL: from the start */
    bool has_last;
    struct capture last; /* borrows from the merge */
};

/* "SURT TIME VOLUME SEGMENT OFFSET": no SURT has a space. */
enum err archive_capture_key(const struct capture *capture, struct buf *out) {
    buf_put(out, capture->surt);
    return buf_put_format(out, " %jd %u %u %ju", (intmax_t)capture->time_us, capture->volume,
                          capture->location.segment, (uintmax_t)capture->location.offset);
}

enum err archive_walk_key(const struct archive_walk *walk, struct buf *out) {
    return walk->has_last ? archive_capture_key(&walk->last, out) : ERR_NOT_FOUND;
}

static bool walk_read_place(struct archive_walk *walk) {
    struct bytes text = buf_bytes(&walk->after);
    size_t spaces_count = 0;
    size_t at = text.size;
    while (at > 0 && spaces_count < 4) {
        spaces_count += text.data[--at] == ' ';
    }
    char numbers[128];
    struct bytes rest = bytes_skip(text, at);
    if (spaces_count < 4 || at == 0 || rest.size >= sizeof numbers) {
        return false;
    }
    snprintf(numbers, sizeof numbers, "%.*s", BYTES_ARG(rest));
    intmax_t time_us;
    uintmax_t offset;
    unsigned volume;
    int end = 0;
    struct place *place = &walk->place;
    if (sscanf(numbers, " %jd %u %u %ju%n", &time_us, &volume, &place->segment, &offset, &end) != 4 ||
        (size_t)end != rest.size || volume > UINT16_MAX) {
        return false;
    }
    place->surt = bytes_slice(text, 0, at);
    place->time_us = time_us;
    place->volume = (uint16_t)volume;
    place->offset = offset;
    return true;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

/* In the order of the index. */
static int walk_compare(const struct capture *capture, const struct place *place) {
    int order = bytes_compare(capture->surt, place->surt);
    if (order == 0) {
        order = (capture->time_us > place->time_us) - (capture->time_us < place->time_us);
    }
    if (order == 0) {
        order = compare_numbers(capture->volume, place->volume);
    }
    if (order == 0) {
        order = compare_numbers(capture->location.segment, place->segment);
    }
    return order != 0 ? order : compare_numbers(capture->location.offset, place->offset);
}

static bool is_behind(const struct archive_walk *walk, const struct capture *capture) {
    if (walk->place.surt.data == NULL) {
        return true;
    }
    int order = walk_compare(capture, &walk->place);
    return walk->in_reverse ? order < 0 : order > 0;
}

/* A range of one SURT can be cut by time; of others each capture is looked at. */
static bool is_of_one_surt(struct bytes from) {
    return bytes_find_byte(from, 0) < from.size;
}

static enum err open_range(struct archive_walk *walk, size_t index, struct err_detail *detail) {
    struct buf from;
    struct buf to;
    struct bytes range_from = buf_bytes(&walk->query.ranges[index].from);
    struct bytes range_to = buf_bytes(&walk->query.ranges[index].to);
    buf_init(&from, ARCHIVE_KEY_SIZE_MAX);
    buf_init(&to, ARCHIVE_KEY_SIZE_MAX);
    if (is_of_one_surt(range_from)) {
        struct bytes surt = bytes_slice(range_from, 0, bytes_find_byte(range_from, 0));
        index_put_capture_prefix(&from, surt, walk->from_us);
        index_put_capture_prefix(&to, surt, walk->to_us == INT64_MAX ? INT64_MAX : walk->to_us + 1);
    } else {
        buf_put(&from, range_from);
        buf_put(&to, range_to);
    }
    struct buf *bound = walk->in_reverse ? &to : &from;
    if (walk->place.surt.data != NULL) {
        struct buf place;
        int64_t time_us = walk->place.time_us;
        buf_init(&place, ARCHIVE_KEY_SIZE_MAX);
        index_put_capture_prefix(&place, walk->place.surt,
                                 walk->in_reverse && time_us < INT64_MAX ? time_us + 1 : time_us);
        int order = bytes_compare(buf_bytes(&place), buf_bytes(bound));
        if (walk->in_reverse ? order < 0 || bound->size == 0 : order > 0) {
            buf_clear(bound);
            buf_put(bound, buf_bytes(&place));
        }
        buf_done(&place);
    }
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK && to.size > 0 && bytes_compare(buf_bytes(&from), buf_bytes(&to)) >= 0) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_OK) {
        err = merge_open(walk->reader->session, buf_bytes(&from), buf_bytes(&to), walk->in_reverse,
                         &walk->merge, detail);
    }
    buf_done(&from);
    buf_done(&to);
    return err;
}

static void close_range(struct archive_walk *walk) {
    if (walk->merge != NULL) {
        walk->is_partial = walk->is_partial || merge_is_partial(walk->merge);
        merge_close(walk->merge);
        walk->merge = NULL;
    }
    walk->has_last = false;
}

enum err archive_walk_open(struct archive_reader *reader, const struct archive_range *range,
                           struct archive_walk **ret_walk, struct err_detail *detail) {
    struct archive_walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL) {
        return ERR_MEMORY;
    }
    walk->reader = reader;
    walk->from_us = range->from_us;
    walk->to_us = range->to_us;
    walk->in_reverse = range->in_reverse;
    walk->steps_max = range->steps_max;
    enum err err = query_init(&walk->query, range->url, range->match, detail);
    if (err != ERR_OK) {
        free(walk);
        return err;
    }
    walk->ranges_left = walk->query.ranges_count;
    buf_init(&walk->after, ARCHIVE_KEY_SIZE_MAX);
    err = buf_put(&walk->after, range->after);
    if (err == ERR_OK && range->after.size > 0 && !walk_read_place(walk)) {
        err = err_set(detail, ERR_INVALID, "a walk cannot go on from here: this key is malformed");
    }
    if (err != ERR_OK) {
        archive_walk_close(walk);
        return err;
    }
    *ret_walk = walk;
    return ERR_OK;
}

void archive_walk_close(struct archive_walk *walk) {
    close_range(walk);
    query_done(&walk->query);
    buf_done(&walk->after);
    free(walk);
}

bool archive_walk_is_partial(const struct archive_walk *walk) {
    return walk->is_partial || (walk->merge != NULL && merge_is_partial(walk->merge));
}

/* The next of any range, whether it is to be seen or not. */
static enum err walk_step(struct archive_walk *walk, struct capture *ret_capture, struct err_detail *detail) {
    while (walk->ranges_left > 0) {
        enum err err = ERR_OK;
        if (walk->merge == NULL) {
            size_t index =
                walk->in_reverse ? walk->ranges_left - 1 : walk->query.ranges_count - walk->ranges_left;
            err = open_range(walk, index, detail);
        }
        if (err == ERR_OK) {
            err = merge_next(walk->merge, ret_capture, detail);
        }
        if (err != ERR_NOT_FOUND) {
            return err;
        }
        close_range(walk);
        walk->ranges_left--;
    }
    return ERR_NOT_FOUND;
}

enum err archive_walk_next(struct archive_walk *walk, struct capture *ret_capture,
                           struct err_detail *detail) {
    struct capture capture;
    enum err err;
    size_t steps_count = 0;
    while ((err = walk_step(walk, &capture, detail)) == ERR_OK) {
        walk->last = capture;
        walk->has_last = true;
        steps_count++;
        bool is_enough = steps_count == walk->steps_max;
        if (capture.time_us < walk->from_us || capture.time_us > walk->to_us || !is_behind(walk, &capture)) {
            err = ERR_NOT_FOUND;
        } else {
            err = archive_see(walk->reader, &capture);
        }
        if (err == ERR_OK) {
            *ret_capture = capture;
        }
        if (err != ERR_NOT_FOUND || is_enough) {
            return err == ERR_NOT_FOUND ? ERR_BUSY : err;
        }
    }
    return err;
}
