#include "replay/archive/archive_state.h"
#include "store/instance/merge.h"

enum { SECOND_US = 1000000 };

/* Timestamps have no fractions, captures have: one within the second that was asked for is meant. */
static int64_t second_end(int64_t time_us) {
    return time_us > INT64_MAX - SECOND_US ? INT64_MAX : time_us + SECOND_US;
}

static int64_t find_second(int64_t time_us) {
    return time_us - (time_us % SECOND_US + SECOND_US) % SECOND_US;
}

static uint64_t find_distance(int64_t a_us, int64_t b_us) {
    return a_us > b_us ? (uint64_t)a_us - (uint64_t)b_us : (uint64_t)b_us - (uint64_t)a_us;
}

/* Replaying it shows a document, not the way to another. */
static bool is_settled(const struct capture *capture) {
    return capture->status < 300 || capture->status > 399 ||
           (capture->flags & CAPTURE_REVISIT && capture->status == 304);
}

/* ---- one by one ---- */

static void put_slices(struct buf *out, const struct capture *capture) {
    buf_put(out, capture->surt);
    buf_put(out, capture->url);
    buf_put(out, capture->mime);
}

/* The slices are where put_slices() put them. Returns where they end. */
static size_t set_slices(const struct buf *text, size_t at, struct capture *capture) {
    struct bytes *slices[] = {&capture->surt, &capture->url, &capture->mime};
    for (size_t i = 0; i < 3; i++) {
        *slices[i] = bytes_slice(buf_bytes(text), at, at + slices[i]->size);
        at += slices[i]->size;
    }
    return at;
}

enum err archive_keep(struct buf *text, struct capture *capture) {
    buf_clear(text);
    put_slices(text, capture);
    if (text->err == ERR_OK) {
        set_slices(text, 0, capture);
    }
    return text->err;
}

static enum err open_range(struct archive_reader *reader, struct bytes surt, int64_t from_us, int64_t to_us,
                           bool in_reverse, struct merge **ret_merge, struct err_detail *detail) {
    struct buf from;
    struct buf to;
    buf_init(&from, ARCHIVE_KEY_SIZE_MAX);
    buf_init(&to, ARCHIVE_KEY_SIZE_MAX);
    index_put_capture_prefix(&from, surt, from_us);
    index_put_capture_prefix(&to, surt, to_us);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK) {
        err = merge_open(reader->session, buf_bytes(&from), buf_bytes(&to), in_reverse, ret_merge, detail);
    }
    buf_done(&from);
    buf_done(&to);
    return err;
}

/* One that was found, and how near its URL is to the one that was asked for. */
struct found {
    enum err err;
    enum likeness_degree degree;
    struct capture capture; /* its slices are in the text that find_first() was given */
};

/*
 * Of those between two times that are to be seen the nearest in its URL, and among these the first, from the
 * early or from the late end. The SURT must not be in the text. It is mostly the very first; if none is of
 * this URL, ARCHIVE_VARIANTS_MAX are looked at.
 */
static void find_first(struct archive_reader *reader, struct bytes surt, int64_t from_us, int64_t to_us,
                       bool in_reverse, bool is_any, struct buf *text, struct found *out,
                       struct err_detail *detail) {
    struct merge *merge;
    *out = (struct found){.degree = LIKENESS_DEGREES_COUNT};
    enum err err = open_range(reader, surt, from_us, to_us, in_reverse, &merge, detail);
    if (err != ERR_OK) {
        out->err = err;
        return;
    }
    struct capture capture;
    size_t others_count = 0;
    while (err == ERR_OK && out->degree != LIKENESS_SAME && others_count < ARCHIVE_VARIANTS_MAX) {
        err = merge_next(merge, &capture, detail);
        others_count += out->degree != LIKENESS_DEGREES_COUNT;
        if (err != ERR_OK || (!is_any && !is_settled(&capture))) {
            continue;
        }
        enum likeness_degree degree = likeness_of(&reader->likeness, capture.url);
        enum err seen = degree < out->degree ? archive_see(reader, &capture) : ERR_NOT_FOUND;
        if (seen == ERR_OK) {
            out->degree = degree;
            out->capture = capture;
            err = archive_keep(text, &out->capture);
        } else if (seen != ERR_NOT_FOUND) {
            err = seen;
        }
    }
    bool is_found = out->degree != LIKENESS_DEGREES_COUNT;
    out->err = err == ERR_OK || err == ERR_NOT_FOUND ? (is_found ? ERR_OK : ERR_NOT_FOUND) : err;
    reader->timeline.is_partial = reader->timeline.is_partial || merge_is_partial(merge);
    merge_close(merge);
}

/* How far it is from what was asked for; UINT64_MAX: it is none of those. The second that was asked for is 0.
 */
static uint64_t rate(const struct capture *capture, int64_t time_us, enum archive_choice choice) {
    bool is_now = capture->time_us >= time_us && capture->time_us < second_end(time_us);
    if ((choice == ARCHIVE_EXACT && !is_now) || (choice == ARCHIVE_SETTLED && !is_settled(capture))) {
        return UINT64_MAX;
    }
    if (is_now) {
        return 0;
    }
    uint64_t far = find_distance(capture->time_us, time_us);
    bool is_late = choice == ARCHIVE_NOT_NEWER && capture->time_us > time_us;
    return is_late ? far / 2 + UINT64_MAX / 2 : far < UINT64_MAX / 2 ? far : UINT64_MAX / 2 - 1;
}

/* Is what was found later to be preferred? */
static bool is_after_better(const struct found *before, const struct found *after, int64_t time_us,
                            enum archive_choice choice) {
    if (before->err != ERR_OK || after->err != ERR_OK) {
        return after->err == ERR_OK;
    }
    if (before->degree != after->degree) {
        return after->degree < before->degree;
    }
    return rate(&after->capture, time_us, choice) < rate(&before->capture, time_us, choice);
}

static enum err seek_around(struct archive_reader *reader, struct bytes surt, int64_t time_us,
                            enum archive_choice choice, struct capture *ret_capture,
                            struct err_detail *detail) {
    struct found before;
    struct found after;
    bool is_any = choice != ARCHIVE_SETTLED;
    find_first(reader, surt, INT64_MIN, second_end(time_us), true, is_any, &reader->found, &before, detail);
    bool is_enough = before.err == ERR_OK && before.degree == LIKENESS_SAME &&
                     (choice == ARCHIVE_NOT_NEWER || before.capture.time_us >= time_us);
    if ((before.err != ERR_OK && before.err != ERR_NOT_FOUND) || is_enough) {
        *ret_capture = before.capture;
        return before.err;
    }
    int64_t before_us = before.err == ERR_OK ? before.capture.time_us : 0;
    find_first(reader, surt, second_end(time_us), INT64_MAX, false, is_any, &reader->found, &after, detail);
    bool is_after = is_after_better(&before, &after, time_us, choice);
    if (before.err == ERR_OK && !is_after && (after.err == ERR_OK || after.err == ERR_NOT_FOUND)) {
        find_first(reader, surt, before_us, before_us + 1, true, is_any, &reader->found, &after, detail);
    }
    if (after.err == ERR_OK) {
        *ret_capture = after.capture;
    }
    return after.err;
}

static enum err seek(struct archive_reader *reader, struct bytes surt, int64_t time_us,
                     enum archive_choice choice, struct capture *ret_capture, struct err_detail *detail) {
    if (choice != ARCHIVE_EXACT) {
        return seek_around(reader, surt, time_us, choice, ret_capture, detail);
    }
    struct found found;
    find_first(reader, surt, time_us, second_end(time_us), true, true, &reader->found, &found, detail);
    *ret_capture = found.capture;
    return found.err;
}

/* ---- at once ---- */

void archive_timeline_init(struct archive_timeline *timeline) {
    buf_init(&timeline->surt, URL_SIZE_MAX + 16);
    buf_init(&timeline->text, ARCHIVE_TIMELINE_MAX * (ARCHIVE_KEY_SIZE_MAX + INDEX_MIME_SIZE_MAX));
}

void archive_timeline_done(struct archive_timeline *timeline) {
    buf_done(&timeline->surt);
    buf_done(&timeline->text);
}

static enum err read_timeline(struct archive_reader *reader, struct err_detail *detail) {
    struct archive_timeline *timeline = &reader->timeline;
    struct merge *merge;
    enum err err =
        open_range(reader, buf_bytes(&timeline->surt), INT64_MIN, INT64_MAX, false, &merge, detail);
    if (err != ERR_OK) {
        return err;
    }
    timeline->count = 0;
    timeline->is_whole = true;
    buf_clear(&timeline->text);
    struct capture capture;
    while (timeline->is_whole && (err = merge_next(merge, &capture, detail)) == ERR_OK) {
        enum err seen = archive_see(reader, &capture);
        if (seen == ERR_OK && timeline->count < ARCHIVE_TIMELINE_MAX) {
            timeline->captures[timeline->count++] = capture;
            put_slices(&timeline->text, &capture);
        } else if (seen != ERR_NOT_FOUND) { /* too many, or one by one it may go better */
            timeline->is_whole = false;
        }
    }
    timeline->is_partial = merge_is_partial(merge);
    timeline->is_whole = timeline->is_whole && !timeline->is_partial && timeline->text.err == ERR_OK;
    merge_close(merge);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    size_t at = 0;
    for (size_t i = 0; i < timeline->count && timeline->is_whole; i++) {
        at = set_slices(&timeline->text, at, &timeline->captures[i]);
    }
    timeline->is_known = true;
    return ERR_OK;
}

static enum err know_timeline(struct archive_reader *reader, struct bytes surt, struct err_detail *detail) {
    struct archive_timeline *timeline = &reader->timeline;
    if (timeline->is_known && bytes_equal(buf_bytes(&timeline->surt), surt)) {
        return ERR_OK;
    }
    timeline->is_known = false;
    buf_clear(&timeline->surt);
    enum err err = buf_put(&timeline->surt, surt);
    return err == ERR_OK ? read_timeline(reader, detail) : err;
}

/* Of two that are as close: a member has fetched the one, and the other only came from a file or from nobody.
 */
static bool is_vouched_better(struct archive_reader *reader, const struct capture *one,
                              const struct capture *other) {
    bool is_marked = capture_has_voucher(one) || capture_has_voucher(other);
    return is_marked && archive_provenance(reader, one) == PROVENANCE_FETCHED &&
           archive_provenance(reader, other) != PROVENANCE_FETCHED;
}

/* Of two as close, the one that a member has fetched; else the earlier; of one second, the last. */
static const struct capture *find_choose(struct archive_reader *reader, int64_t time_us,
                                         enum archive_choice choice) {
    const struct archive_timeline *timeline = &reader->timeline;
    const struct capture *best = NULL;
    uint64_t best_far = UINT64_MAX;
    enum likeness_degree best_degree = LIKENESS_DEGREES_COUNT;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct capture *capture = &timeline->captures[i];
        uint64_t far = rate(capture, time_us, choice);
        enum likeness_degree degree = likeness_of(&reader->likeness, capture->url);
        bool is_closer = far < best_far || (far == 0 && best_far == 0);
        if (best != NULL && far == best_far && degree == best_degree) {
            is_closer = is_vouched_better(reader, capture, best) ||
                        (is_closer && !is_vouched_better(reader, best, capture));
        }
        if (far != UINT64_MAX && (degree < best_degree || (degree == best_degree && is_closer))) {
            best = capture;
            best_far = far;
            best_degree = degree;
        }
    }
    return best;
}

/* ---- */

enum err archive_find(struct archive_reader *reader, struct bytes surt, struct bytes url, int64_t time_us,
                      enum archive_choice choice, struct capture *ret_capture, struct err_detail *detail) {
    struct archive_timeline *timeline = &reader->timeline;
    enum err err = likeness_ask(&reader->likeness, url);
    if (err == ERR_OK) {
        err = know_timeline(reader, surt, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (!timeline->is_whole) {
        err = seek(reader, buf_bytes(&timeline->surt), time_us, choice, ret_capture, detail);
        return err == ERR_NOT_FOUND && timeline->is_partial
                   ? err_set(detail, ERR_UNREACHABLE, "nothing was found, but %s did not answer",
                             archive_reader_absent(reader)->text)
                   : err;
    }
    const struct capture *found = find_choose(reader, time_us, choice);
    if (found == NULL) {
        return ERR_NOT_FOUND;
    }
    *ret_capture = *found;
    return ERR_OK;
}

/* In this second, whether it is to be seen or not; into `found`. */
static enum err seek_id(struct archive_reader *reader, struct stamp stamp, struct capture *ret_capture,
                        struct err_detail *detail) {
    struct merge *merge;
    int64_t second_us = find_second(stamp.time_us);
    instance_session_hide_witnesses(reader->session, false); /* each has its address */
    enum err err = open_range(reader, buf_bytes(&reader->timeline.surt), second_us, second_end(second_us),
                              false, &merge, detail);
    instance_session_hide_witnesses(reader->session, true);
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    do {
        err = merge_next(merge, &capture, detail);
    } while (err == ERR_OK && capture_id(&capture) != stamp.id);
    reader->timeline.is_partial = reader->timeline.is_partial || merge_is_partial(merge);
    if (err == ERR_OK) {
        *ret_capture = capture;
        err = archive_keep(&reader->found, ret_capture);
    }
    merge_close(merge);
    return err;
}

enum err archive_find_id(struct archive_reader *reader, struct bytes surt, struct stamp stamp,
                         struct capture *ret_capture, struct err_detail *detail) {
    enum err err = know_timeline(reader, surt, detail);
    if (err == ERR_OK) {
        err = seek_id(reader, stamp, ret_capture, detail);
    }
    if (err == ERR_OK) {
        err = archive_see(reader, ret_capture);
    }
    return err == ERR_NOT_FOUND ? err_set(detail, err, "this archive has no such capture of this URL") : err;
}

enum err archive_find_again(struct archive_reader *reader, const struct capture *capture,
                            struct capture *ret_capture) {
    struct merge *merge;
    instance_session_hide_witnesses(reader->session, false);
    enum err err =
        open_range(reader, capture->surt, capture->time_us, capture->time_us + 1, false, &merge, NULL);
    instance_session_hide_witnesses(reader->session, true);
    if (err != ERR_OK) {
        return err;
    }
    struct capture found;
    do {
        err = merge_next(merge, &found, NULL);
    } while (err == ERR_OK && memcmp(found.digest, capture->digest, sizeof found.digest) != 0);
    if (err == ERR_OK) {
        *ret_capture = found;
        ret_capture->surt = ret_capture->url = ret_capture->mime = bytes_of(NULL, 0);
    }
    merge_close(merge);
    return err;
}

static enum err seek_neighbour(struct archive_reader *reader, int64_t from_us, int64_t to_us, bool in_reverse,
                               struct archive_neighbour *out) {
    struct found found;
    find_first(reader, buf_bytes(&reader->timeline.surt), from_us, to_us, in_reverse, true, &reader->beside,
               &found, NULL);
    if (found.err == ERR_OK) {
        out->time_us = found.capture.time_us;
        out->id = capture_id(&found.capture);
        out->url = found.capture.url; /* its size; the text is in `near` */
        return buf_put(&reader->near, found.capture.url);
    }
    return found.err == ERR_NOT_FOUND ? ERR_OK : found.err;
}

static enum err seek_neighbours(struct archive_reader *reader, int64_t second_us,
                                struct archive_neighbours *out) {
    buf_clear(&reader->near);
    enum err err = seek_neighbour(reader, INT64_MIN, second_us, true, &out->previous);
    if (err == ERR_OK) {
        err = seek_neighbour(reader, second_end(second_us), INT64_MAX, false, &out->next);
    }
    if (err == ERR_OK && out->previous.time_us != INT64_MIN) {
        err = seek_neighbour(reader, INT64_MIN, INT64_MAX, false, &out->first);
    }
    if (err == ERR_OK && out->next.time_us != INT64_MIN) {
        err = seek_neighbour(reader, INT64_MIN, INT64_MAX, true, &out->last);
    }
    struct archive_neighbour *all[] = {&out->previous, &out->next, &out->first, &out->last};
    for (size_t i = 0, at = 0; i < sizeof all / sizeof *all && err == ERR_OK; i++) {
        if (all[i]->time_us != INT64_MIN) {
            all[i]->url = bytes_slice(buf_bytes(&reader->near), at, at + all[i]->url.size);
            at += all[i]->url.size;
        }
    }
    return err;
}

static void choose_neighbours(const struct archive_timeline *timeline, int64_t second_us,
                              struct archive_neighbours *out) {
    for (size_t i = 0; i < timeline->count; i++) {
        const struct capture *capture = &timeline->captures[i];
        struct archive_neighbour it = {
            .time_us = capture->time_us, .id = capture_id(capture), .url = capture->url};
        out->first = i == 0 && it.time_us < second_us ? it : out->first;
        out->previous = it.time_us < second_us ? it : out->previous;
        bool is_later = it.time_us >= second_end(second_us);
        out->next = is_later && out->next.time_us == INT64_MIN ? it : out->next;
        out->last = is_later ? it : out->last;
    }
}

enum err archive_neighbours(struct archive_reader *reader, struct bytes surt, int64_t time_us,
                            struct archive_neighbours *ret_neighbours) {
    int64_t second_us = find_second(time_us);
    const struct archive_neighbour none = {.time_us = INT64_MIN};
    *ret_neighbours =
        (struct archive_neighbours){.first = none, .previous = none, .next = none, .last = none};
    enum err err = likeness_ask(&reader->likeness, bytes_of(NULL, 0)); /* of any URL */
    if (err == ERR_OK) {
        err = know_timeline(reader, surt, NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (!reader->timeline.is_whole) {
        return seek_neighbours(reader, second_us, ret_neighbours);
    }
    choose_neighbours(&reader->timeline, second_us, ret_neighbours);
    return ERR_OK;
}
