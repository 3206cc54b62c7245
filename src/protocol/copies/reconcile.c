#include "protocol/copies/reconcile.h"

enum { CHUNK_COUNT = 64 };

/* One message on its way in, and the one that answers it. */
struct pass {
    const struct reconcile_arc *arc;
    const struct ringkey_set *set;
    const struct reconcile_report *report; /* of an asker; NULL: of the side that answers */
    struct reconcile_writer out;
    bool is_open;                   /* something was said, so that the other side will answer */
    struct reconcile_position open; /* where that begins */
    bool is_full;                   /* the rest of the arc is left for the next round */
    size_t found_count;
};

static void note_open(struct pass *pass, const struct reconcile_position *lower) {
    if (!pass->is_open) {
        pass->is_open = true;
        pass->open = *lower;
    }
}

/* ---- the own keys of a range one after the other ---- */

struct walk {
    const struct ringkey_set *set;
    struct reconcile_position lower; /* of what has not been read */
    struct reconcile_position upper;
    const struct reconcile_arc *arc;
    struct ringkey chunk[CHUNK_COUNT];
    size_t count;
    size_t index;
    bool is_last; /* nothing behind the chunk */
};

static void walk_init(struct walk *walk, const struct pass *pass, const struct reconcile_range *range) {
    walk->set = pass->set;
    walk->arc = pass->arc;
    walk->lower = range->lower;
    walk->upper = range->upper;
    walk->count = 0;
    walk->index = 0;
    walk->is_last = false;
}

/* The key that the walk is at; NULL at the end. */
static enum err walk_peek(struct walk *walk, const struct ringkey **ret_key) {
    if (walk->index == walk->count && !walk->is_last) {
        enum err err =
            reconcile_arc_list(walk->set, &walk->lower, &walk->upper, walk->chunk, CHUNK_COUNT, &walk->count);
        if (err != ERR_OK) {
            return err;
        }
        walk->index = 0;
        walk->is_last = walk->count < CHUNK_COUNT;
        if (!walk->is_last) {
            struct reconcile_position last = reconcile_arc_position(walk->arc, &walk->chunk[CHUNK_COUNT - 1]);
            walk->lower = reconcile_arc_behind(last);
            walk->is_last = reconcile_position_compare(&walk->lower, &walk->upper) >= 0;
        }
    }
    *ret_key = walk->index < walk->count ? &walk->chunk[walk->index] : NULL;
    return ERR_OK;
}

/* ---- own keys against listed ones ---- */

/* False: stop before this key. */
typedef bool visit_key(struct pass *pass, bool is_ours, const struct ringkey *key);

static int compare_in_arc(const struct reconcile_arc *arc, const struct ringkey *a, const struct ringkey *b) {
    struct reconcile_position position_a = reconcile_arc_position(arc, a);
    struct reconcile_position position_b = reconcile_arc_position(arc, b);
    return reconcile_position_compare(&position_a, &position_b);
}

/* What only one of the two has. *ret_upper: where it stopped, or the end of the range. */
static enum err compare_list(struct pass *pass, const struct reconcile_range *range, visit_key *visit,
                             struct reconcile_position *ret_upper) {
    struct walk walk;
    walk_init(&walk, pass, range);
    *ret_upper = range->upper;
    size_t listed_index = 0;
    for (;;) {
        const struct ringkey *own;
        enum err err = walk_peek(&walk, &own);
        bool has_listed = listed_index < range->keys_count;
        if (err != ERR_OK || (own == NULL && !has_listed)) {
            return err;
        }
        struct ringkey listed = has_listed ? reconcile_range_key(range, listed_index) : (struct ringkey){0};
        int order = own == NULL ? 1 : !has_listed ? -1 : compare_in_arc(pass->arc, own, &listed);
        const struct ringkey *key = order < 0 ? own : &listed;
        if (order != 0 && !visit(pass, order < 0, key)) {
            *ret_upper = reconcile_arc_position(pass->arc, key);
            return ERR_OK;
        }
        walk.index += order <= 0;
        listed_index += order >= 0;
    }
}

/* ---- saying something ---- */

/* One sum for all from here on: the next round goes into it. */
static enum err leave_rest(struct pass *pass, const struct reconcile_position *lower) {
    struct ringkey_sum sum;
    pass->is_full = true;
    if (reconcile_position_compare(lower, &pass->out.end) == 0) {
        return ERR_OK;
    }
    enum err err = reconcile_arc_sum(pass->set, lower, &pass->out.end, &sum);
    if (err == ERR_OK) {
        note_open(pass, lower);
        reconcile_write_sum(&pass->out, lower, &pass->out.end, &sum);
    }
    return err;
}

static enum err say_parts(struct pass *pass, const struct reconcile_range *range, uint64_t count) {
    if (reconcile_writer_room(&pass->out) < RECONCILE_PARTS_COUNT * RECONCILE_RANGE_SIZE_MAX) {
        return leave_rest(pass, &range->lower);
    }
    struct reconcile_position lower = range->lower;
    uint64_t slack = count / RECONCILE_PARTS_COUNT / 4;
    enum err err = ERR_OK;
    note_open(pass, &range->lower);
    for (uint64_t i = 1; i <= RECONCILE_PARTS_COUNT && err == ERR_OK; i++) {
        struct reconcile_position upper = range->upper;
        struct ringkey_sum sum = {0};
        if (i < RECONCILE_PARTS_COUNT) {
            uint64_t rank = count * i / RECONCILE_PARTS_COUNT;
            err = reconcile_arc_cut(pass->set, &range->lower, &range->upper, rank, slack, &upper);
        }
        if (err == ERR_OK) {
            err = reconcile_arc_sum(pass->set, &lower, &upper, &sum);
        }
        if (err == ERR_OK) {
            reconcile_write_sum(&pass->out, &lower, &upper, &sum);
        }
        lower = upper;
    }
    return err;
}

static enum err say_keys(struct pass *pass, const struct reconcile_range *range, uint64_t count) {
    struct reconcile_range part = *range;
    size_t said_count = reconcile_writer_room(&pass->out) / RINGKEY_SIZE;
    enum err err = ERR_OK;
    if (said_count == 0) { /* also if there is no key: the range itself takes room */
        return leave_rest(pass, &range->lower);
    }
    if (said_count >= count) {
        said_count = (size_t)count;
    } else {
        err = reconcile_arc_cut(pass->set, &range->lower, &range->upper, said_count, 0, &part.upper);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct walk walk;
    walk_init(&walk, pass, &part);
    note_open(pass, &part.lower);
    reconcile_write_keys(&pass->out, RECONCILE_LIST, &part.lower, &part.upper, said_count);
    for (size_t i = 0; i < said_count; i++) {
        const struct ringkey *key;
        err = walk_peek(&walk, &key);
        if (err != ERR_OK || key == NULL) {
            return err != ERR_OK ? err : ERR_CORRUPT; /* sum and list of the set disagree */
        }
        reconcile_write_key(&pass->out, key);
        walk.index++;
    }
    return said_count < count ? leave_rest(pass, &part.upper) : ERR_OK;
}

/* ---- the side that answers a list ---- */

static bool count_entry(struct pass *pass, bool is_ours, const struct ringkey *key) {
    (void)is_ours;
    (void)key;
    if (pass->found_count == reconcile_writer_room(&pass->out) / RECONCILE_ENTRY_SIZE) {
        return false;
    }
    pass->found_count++;
    return true;
}

static bool write_entry(struct pass *pass, bool is_ours, const struct ringkey *key) {
    if (pass->found_count == 0) {
        return false;
    }
    reconcile_write_entry(&pass->out, is_ours ? RECONCILE_RECEIVER_LACKS : RECONCILE_SENDER_LACKS, key);
    pass->found_count--;
    return true;
}

/* Twice: the count comes before the keys. */
static enum err say_difference(struct pass *pass, const struct reconcile_range *range) {
    struct reconcile_position upper;
    struct reconcile_position written_upper;
    if (reconcile_writer_room(&pass->out) < RECONCILE_ENTRY_SIZE) {
        return leave_rest(pass, &range->lower);
    }
    pass->found_count = 0;
    enum err err = compare_list(pass, range, count_entry, &upper);
    if (err != ERR_OK || pass->found_count == 0) {
        return err; /* they are equal */
    }
    note_open(pass, &range->lower);
    reconcile_write_keys(&pass->out, RECONCILE_DIFFERENCE, &range->lower, &upper, pass->found_count);
    err = compare_list(pass, range, write_entry, &written_upper);
    if (err == ERR_OK && pass->found_count > 0) {
        return ERR_CORRUPT; /* the set changed under us */
    }
    bool is_cut = reconcile_position_compare(&upper, &range->upper) < 0;
    return err == ERR_OK && is_cut ? leave_rest(pass, &upper) : err;
}

/* ---- the side that asked ---- */

static bool report_key(struct pass *pass, bool is_ours, const struct ringkey *key) {
    if (pass->found_count == RECONCILE_FOUND_MAX) {
        return false;
    }
    pass->found_count++;
    (is_ours ? pass->report->have : pass->report->need)(pass->report->context, key);
    return true;
}

static enum err take_list(struct pass *pass, const struct reconcile_range *range) {
    struct reconcile_position upper;
    enum err err = compare_list(pass, range, report_key, &upper);
    bool is_cut = reconcile_position_compare(&upper, &range->upper) < 0;
    return err == ERR_OK && is_cut ? leave_rest(pass, &upper) : err;
}

static enum err holds(const struct pass *pass, const struct ringkey *key, bool *ret_holds) {
    struct reconcile_position lower = reconcile_arc_position(pass->arc, key);
    struct reconcile_position upper = reconcile_arc_behind(lower);
    struct ringkey found;
    size_t count = 0;
    enum err err = reconcile_arc_list(pass->set, &lower, &upper, &found, 1, &count);
    *ret_holds = count == 1;
    return err;
}

/* Only what is true of our own set is believed. */
static enum err take_difference(struct pass *pass, const struct reconcile_range *range) {
    for (size_t i = 0; i < range->keys_count; i++) {
        struct ringkey key = reconcile_range_key(range, i);
        bool is_ours = reconcile_range_side(range, i) == RECONCILE_SENDER_LACKS;
        bool is_held;
        enum err err = holds(pass, &key, &is_held);
        if (err != ERR_OK) {
            return err;
        }
        if (is_held == is_ours && !report_key(pass, is_ours, &key)) {
            struct reconcile_position position = reconcile_arc_position(pass->arc, &key);
            return leave_rest(pass, &position);
        }
    }
    return ERR_OK;
}

/* ---- a message ---- */

static enum err take_sum(struct pass *pass, const struct reconcile_range *range) {
    struct ringkey_sum own;
    enum err err = reconcile_arc_sum(pass->set, &range->lower, &range->upper, &own);
    if (err != ERR_OK || ringkey_sum_equal(&own, &range->sum)) {
        return err;
    }
    if (range->sum.count == 0 && pass->report != NULL) {
        return take_list(pass, range); /* of no keys */
    }
    return own.count < RECONCILE_LIST_BELOW || range->sum.count == 0 ? say_keys(pass, range, own.count)
                                                                     : say_parts(pass, range, own.count);
}

static enum err take_range(struct pass *pass, const struct reconcile_range *range) {
    switch (range->mode) {
    case RECONCILE_SKIP:
        return ERR_OK;
    case RECONCILE_SUM:
        return take_sum(pass, range);
    case RECONCILE_LIST:
        return pass->report != NULL ? take_list(pass, range) : say_difference(pass, range);
    case RECONCILE_DIFFERENCE:
        break;
    }
    return take_difference(pass, range);
}

static enum err reconcile_run(struct pass *pass, struct bytes message, struct err_detail *detail) {
    struct reconcile_reader reader;
    struct reconcile_range range;
    enum err err = ERR_OK;
    reconcile_reader_init(&reader, pass->arc, message);
    while (err == ERR_OK && reconcile_read(&reader, &range)) {
        if (range.mode == RECONCILE_DIFFERENCE && pass->report == NULL) {
            return err_set(detail, ERR_INVALID, "an answer in place of a question");
        }
        err = pass->is_full ? ERR_OK : take_range(pass, &range);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "the own set: %s", err_text(err));
    }
    return reconcile_reader_finish(&reader, detail);
}

static void pass_init(struct pass *pass, const struct reconcile_arc *arc, const struct ringkey_set *set,
                      const struct reconcile_report *report, void *memory, size_t size_max) {
    ASSERT(size_max >= RECONCILE_MESSAGE_SIZE_MIN && size_max <= RECONCILE_MESSAGE_SIZE_MAX);
    *pass = (struct pass){.arc = arc, .set = set, .report = report};
    reconcile_writer_init(&pass->out, arc, memory, size_max);
}

void reconcile_init(struct reconcile *reconcile, const struct reconcile_arc *arc,
                    const struct ringkey_set *set, const struct reconcile_report *report) {
    *reconcile = (struct reconcile){.arc = *arc, .set = *set, .report = *report};
    reconcile->settled = reconcile_arc_start(arc);
}

void reconcile_skip_to(struct reconcile *reconcile, const struct ringkey *key) {
    struct reconcile_position position = reconcile_arc_position(&reconcile->arc, key);
    struct reconcile_position end = reconcile_arc_end(&reconcile->arc);
    if (reconcile_position_compare(&position, &reconcile->settled) > 0 &&
        reconcile_position_compare(&position, &end) < 0) {
        reconcile->settled = position;
    }
}

enum err reconcile_ask(struct reconcile *reconcile, void *memory, size_t size_max, struct bytes *ret_question,
                       struct err_detail *detail) {
    struct pass pass;
    pass_init(&pass, &reconcile->arc, &reconcile->set, &reconcile->report, memory, size_max);
    enum err err = leave_rest(&pass, &reconcile->settled);
    if (err != ERR_OK) {
        return err_set(detail, err, "the own set: %s", err_text(err));
    }
    *ret_question = reconcile_writer_finish(&pass.out);
    return ERR_OK;
}

static enum err check_progress(struct reconcile *reconcile, const struct pass *pass,
                               struct err_detail *detail) {
    if (reconcile_position_compare(&pass->open, &reconcile->settled) > 0) {
        reconcile->settled = pass->open;
        reconcile->idle_rounds_count = 0;
        return ERR_OK;
    }
    reconcile->idle_rounds_count++;
    return reconcile->idle_rounds_count > RECONCILE_IDLE_ROUNDS_MAX
               ? err_set(detail, ERR_LIMIT, "the comparison does not come forward")
               : ERR_OK;
}

enum err reconcile_take(struct reconcile *reconcile, struct bytes answer, void *memory, size_t size_max,
                        struct bytes *ret_question, struct err_detail *detail) {
    struct pass pass;
    pass_init(&pass, &reconcile->arc, &reconcile->set, &reconcile->report, memory, size_max);
    enum err err = reconcile_run(&pass, answer, detail);
    if (err == ERR_OK && pass.is_open) {
        err = check_progress(reconcile, &pass, detail);
    }
    if (err == ERR_OK) {
        *ret_question = pass.is_open ? reconcile_writer_finish(&pass.out) : bytes_of(NULL, 0);
    }
    return err;
}

enum err reconcile_answer(const struct reconcile_arc *arc, const struct ringkey_set *set,
                          struct bytes question, void *memory, size_t size_max, struct bytes *ret_answer,
                          struct err_detail *detail) {
    struct pass pass;
    pass_init(&pass, arc, set, NULL, memory, size_max);
    enum err err = reconcile_run(&pass, question, detail);
    if (err == ERR_OK) {
        *ret_answer = reconcile_writer_finish(&pass.out);
    }
    return err;
}
