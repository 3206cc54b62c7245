#include "store/instance/merge.h"

#include <stdlib.h>

#include "store/instance/instance_state.h"
#include "store/instance/witnesses.h"

/* The walk over one volume. */
struct lane {
    size_t index; /* of its slot */
    uint16_t volume;
    struct backend_cursor *cursor;
    struct capture capture; /* the next that it has; borrows from the cursor */
};

struct merge {
    struct instance_session *session;
    bool in_reverse;
    bool is_partial;
    bool has_given;  /* lanes[0] was handed out and must go on before the next is chosen */
    enum err err;    /* that ended the walk */
    bool has_others; /* than volumes: a guest, mirrored volumes */
    bool has_last;   /* with those: what was given last */
    int64_t last_time_us;
    uint8_t last_digest[KEY_DIGEST_SIZE];
    struct buf last_surt;
    bool hides_witnesses;
    struct witnesses witnesses;
    struct buf from; /* where its range begins */
    size_t lanes_count;
    struct lane lanes[]; /* a heap: the first is the next to be handed out */
};

/* <0, 0, >0. Two captures of one volume never meet here: its cursor has their order. */
static int compare(const struct lane *a, const struct lane *b) {
    int order = bytes_compare(a->capture.surt, b->capture.surt);
    if (order != 0) {
        return order;
    }
    if (a->capture.time_us != b->capture.time_us) {
        return a->capture.time_us < b->capture.time_us ? -1 : 1;
    }
    return (int)a->volume - (int)b->volume;
}

static bool is_same(const struct capture *a, const struct capture *b) {
    return a->time_us == b->time_us && memcmp(a->digest, b->digest, KEY_DIGEST_SIZE) == 0 &&
           bytes_equal(a->surt, b->surt);
}

static bool comes_first(const struct merge *merge, size_t a, size_t b) {
    int order = compare(&merge->lanes[a], &merge->lanes[b]);
    return merge->in_reverse ? order > 0 : order < 0;
}

/* Let the lane at the place sink below those that come first. The children of i are at 2i+1 and 2i+2. */
static void sift(struct merge *merge, size_t place) {
    for (;;) {
        size_t best = place;
        for (size_t child = 2 * place + 1; child <= 2 * place + 2 && child < merge->lanes_count; child++) {
            best = comes_first(merge, child, best) ? child : best;
        }
        if (best == place) {
            return;
        }
        struct lane moved = merge->lanes[place];
        merge->lanes[place] = merge->lanes[best];
        merge->lanes[best] = moved;
        place = best;
    }
}

static void close_lane(struct lane *lane) {
    lane->cursor->session->backend->table->cursor_close(lane->cursor);
}

/* The volume's failure, for the user and for whoever asks the instance. ERR_NOT_FOUND: go on without it. */
static enum err merge_fail(struct merge *merge, size_t index, enum err err, struct err_detail *inner,
                           struct err_detail *detail) {
    merge->is_partial = true;
    instance_miss(merge->session, index, inner);
    instance_note(merge->session->instance, index, err, inner);
    if (instance_is_trouble(err)) {
        return ERR_NOT_FOUND;
    }
    return err_set(detail, err, "%s", err_detail_text(inner, err));
}

/* Take the next capture of the lane. ERR_NOT_FOUND: it has no more; a volume in trouble has none either. */
static enum err advance(struct merge *merge, struct lane *lane, struct err_detail *detail) {
    const struct backend_table *table = lane->cursor->session->backend->table;
    struct err_detail inner;
    inner.err = ERR_OK; /* the text is read only behind an error, and this runs for every capture */
    enum err err = table->captures_next(lane->cursor, &lane->capture, &inner);
    lane->capture.volume = lane->volume;
    return err == ERR_OK || err == ERR_NOT_FOUND ? err : merge_fail(merge, lane->index, err, &inner, detail);
}

/* Whoever lists captures wants to say at the start that this may not be all, not at the end. */
static void note_unheard(struct merge *merge, const struct backend_table *table,
                         const struct backend_cursor *cursor) {
    const char *names = table->captures_unheard != NULL ? table->captures_unheard(cursor) : "";
    if (names[0] != '\0') {
        merge->is_partial = true;
        absent_add_string(&merge->session->absent, names);
    }
}

/* A lane with its first capture, where the volume has any in the range. */
static enum err add_lane(struct merge *merge, struct instance_session *session, size_t index,
                         struct bytes from, struct bytes to, struct err_detail *detail) {
    struct lane *lane = &merge->lanes[merge->lanes_count];
    struct backend_session *backend;
    struct err_detail inner = {0};
    *lane = (struct lane){.index = index, .volume = session->instance->slots[index].config->number};
    enum err err = instance_reach(session, index, &backend, &inner);
    if (err == ERR_UNREACHABLE) { /* it did not open; that has its own words already */
        merge->is_partial = true;
        return ERR_OK;
    }
    if (err == ERR_NOT_FOUND) {
        return ERR_OK;
    }
    if (err == ERR_OK) {
        err = backend->backend->table->captures_open(backend, from, to, merge->in_reverse, &lane->cursor,
                                                     &inner);
    }
    if (err != ERR_OK) {
        err = merge_fail(merge, index, err, &inner, detail);
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    if (session->instance->slots[index].recovery.missed_size > 0) {
        merge->is_partial = true; /* it is open without its newest records: there was no room to enter them */
        instance_miss(session, index, NULL);
    }
    err = advance(merge, lane, detail);
    note_unheard(merge, backend->backend->table, lane->cursor);
    if (err == ERR_OK) {
        instance_note(session->instance, index, ERR_OK, NULL);
        merge->lanes_count++;
        return ERR_OK;
    }
    close_lane(lane);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err merge_open(struct instance_session *session, struct bytes from, struct bytes to, bool in_reverse,
                    struct merge **ret_merge, struct err_detail *detail) {
    struct instance *instance = session->instance;
    struct merge *merge = calloc(1, sizeof *merge + session->slots_count * sizeof merge->lanes[0]);
    if (merge == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    merge->session = session;
    merge->in_reverse = in_reverse;
    merge->has_others = session->slots_count > instance->slots_count;
    merge->hides_witnesses = session->hides_witnesses;
    witnesses_init(&merge->witnesses);
    buf_init(&merge->last_surt, INDEX_SURT_SIZE_MAX);
    buf_init(&merge->from, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    enum err err = merge->hides_witnesses ? buf_put(&merge->from, from) : ERR_OK;
    /* The volumes last: a guest may leave to them what they have got by now (node/reading/ring_reader.h). */
    for (size_t i = session->slots_count; i-- > 0 && err == ERR_OK;) {
        err = instance_reads(session, i) ? add_lane(merge, session, i, from, to, detail) : ERR_OK;
    }
    if (err != ERR_OK) {
        merge_close(merge);
        return err;
    }
    for (size_t i = merge->lanes_count / 2; i-- > 0;) {
        sift(merge, i);
    }
    *ret_merge = merge;
    return ERR_OK;
}

/* The lane whose capture was handed out goes on to its next, or ends. */
static enum err go_on(struct merge *merge, struct err_detail *detail) {
    enum err err = advance(merge, &merge->lanes[0], detail);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    if (err == ERR_NOT_FOUND) {
        close_lane(&merge->lanes[0]);
        merge->lanes[0] = merge->lanes[--merge->lanes_count];
    }
    merge->has_given = false;
    sift(merge, 0);
    return ERR_OK;
}

/*
 * The guest, or a mirrored volume, has a copy of what one with a lower number has: is what comes next in a
 * lane of such a one too, or was it just given? In reverse the higher number comes first, else the lower.
 */
static bool is_copy(const struct merge *merge, const struct capture *capture) {
    if (capture->volume < INSTANCE_GUEST_NUMBER) {
        return false;
    }
    for (size_t i = 1; i < merge->lanes_count; i++) {
        if (merge->lanes[i].volume < capture->volume && is_same(&merge->lanes[i].capture, capture)) {
            return true;
        }
    }
    return merge->has_last && merge->last_time_us == capture->time_us &&
           memcmp(merge->last_digest, capture->digest, KEY_DIGEST_SIZE) == 0 &&
           bytes_equal(buf_bytes(&merge->last_surt), capture->surt);
}

/* Also what others list that have not heard of it. */
static bool is_deleted(const struct merge *merge, const struct capture *capture) {
    return instance_is_deleted(merge->session->instance, capture->surt, capture->url, capture->time_us);
}

static void remember(struct merge *merge, const struct capture *capture) {
    if (!merge->has_others) {
        return;
    }
    buf_clear(&merge->last_surt);
    merge->has_last = buf_put(&merge->last_surt, capture->surt) == ERR_OK;
    merge->last_time_us = capture->time_us;
    memcpy(merge->last_digest, capture->digest, KEY_DIGEST_SIZE);
}

/* The next of all lanes. */
static enum err merge_draw(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct merge *merge = context;
    if (merge->err == ERR_OK && merge->has_given) {
        merge->err = go_on(merge, detail);
    }
    while (merge->err == ERR_OK && merge->lanes_count > 0 &&
           (is_copy(merge, &merge->lanes[0].capture) || is_deleted(merge, &merge->lanes[0].capture))) {
        merge->err = go_on(merge, detail);
    }
    if (merge->err == ERR_OK && merge->lanes_count == 0) {
        merge->err = ERR_NOT_FOUND;
    }
    if (merge->err != ERR_OK) {
        return merge->err;
    }
    merge->has_given = true;
    *ret_capture = merge->lanes[0].capture;
    remember(merge, ret_capture);
    return ERR_OK;
}

/* If its visit began before the range does, an earlier witness may be in front of it. */
static enum err merge_look_before(void *context, const struct capture *capture, bool *ret_has,
                                  struct err_detail *detail) {
    static const int64_t SECOND_US = 1000000;
    struct merge *merge = context;
    struct merge *before;
    struct capture other;
    struct buf visit;
    *ret_has = false;
    buf_init(&visit, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    index_put_capture_prefix(&visit, capture->surt, capture->visit_s * SECOND_US);
    enum err err = visit.err;
    if (err == ERR_OK && bytes_compare(buf_bytes(&visit), buf_bytes(&merge->from)) < 0) {
        merge->session->hides_witnesses = false;
        err = merge_open(merge->session, buf_bytes(&visit), buf_bytes(&merge->from), false, &before, detail);
        merge->session->hides_witnesses = true;
        if (err == ERR_OK) {
            while (!*ret_has && (err = merge_next(before, &other, detail)) == ERR_OK) {
                *ret_has = witnesses_are_one(&other, capture);
            }
            merge_close(before);
        }
    }
    buf_done(&visit);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err merge_next(struct merge *merge, struct capture *ret_capture, struct err_detail *detail) {
    if (!merge->hides_witnesses) {
        return merge_draw(merge, ret_capture, detail);
    }
    const struct witnesses_source source = {.draw = merge_draw,
                                            .look_before = merge_look_before,
                                            .context = merge,
                                            .in_reverse = merge->in_reverse};
    return witnesses_next(&merge->witnesses, &source, ret_capture, detail);
}

void merge_close(struct merge *merge) {
    for (size_t i = 0; i < merge->lanes_count; i++) {
        close_lane(&merge->lanes[i]);
    }
    witnesses_done(&merge->witnesses);
    buf_done(&merge->last_surt);
    buf_done(&merge->from);
    free(merge);
}

bool merge_is_partial(const struct merge *merge) {
    return merge->is_partial;
}
