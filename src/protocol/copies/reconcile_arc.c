#include "protocol/copies/reconcile_arc.h"

enum { PIECES_MAX = 2 };

/* Carry goes into the byte in front: behind the last place comes the zero of the ring. */
static void increment(uint8_t *bytes, size_t size) {
    size_t i = size;
    do {
        i--;
        bytes[i]++;
    } while (bytes[i] == 0 && i > 0);
}

static struct reconcile_position behind_place(uint8_t passes_count,
                                              const uint8_t place[RINGKEY_POSITION_SIZE]) {
    struct reconcile_position position = {.bytes = {passes_count}};
    memcpy(position.bytes + 1, place, RINGKEY_POSITION_SIZE);
    increment(position.bytes, 1 + RINGKEY_POSITION_SIZE);
    return position;
}

struct reconcile_position reconcile_arc_start(const struct reconcile_arc *arc) {
    return behind_place(0, arc->from);
}

struct reconcile_position reconcile_arc_end(const struct reconcile_arc *arc) {
    bool is_wrapped = memcmp(arc->to, arc->from, RINGKEY_POSITION_SIZE) <= 0;
    return behind_place(is_wrapped, arc->to);
}

struct reconcile_position reconcile_arc_position(const struct reconcile_arc *arc, const struct ringkey *key) {
    bool is_wrapped = memcmp(key->bytes, arc->from, RINGKEY_POSITION_SIZE) <= 0;
    struct reconcile_position position = {.bytes = {is_wrapped}};
    memcpy(position.bytes + 1, key->bytes, RINGKEY_SIZE);
    return position;
}

struct reconcile_position reconcile_arc_behind(struct reconcile_position position) {
    increment(position.bytes, RECONCILE_POSITION_SIZE);
    return position;
}

struct ringkey reconcile_position_key(const struct reconcile_position *position) {
    struct ringkey key;
    memcpy(key.bytes, position->bytes + 1, RINGKEY_SIZE);
    return key;
}

/* What lies between two positions as ranges of keys: two if the zero of the ring is inside. */
static size_t cut_in_pieces(const struct reconcile_position *lower, const struct reconcile_position *upper,
                            struct ringkey_range pieces[PIECES_MAX]) {
    ASSERT(reconcile_position_compare(lower, upper) < 0);
    pieces[0] = (struct ringkey_range){
        .lower = reconcile_position_key(lower), .upper = reconcile_position_key(upper), .has_upper = true};
    if (lower->bytes[0] == upper->bytes[0]) {
        return 1;
    }
    ASSERT(lower->bytes[0] + 1 == upper->bytes[0]);
    static const struct ringkey zero;
    pieces[1] = (struct ringkey_range){.upper = pieces[0].upper, .has_upper = true};
    pieces[0].has_upper = false;
    return ringkey_compare(&pieces[1].upper, &zero) == 0 ? 1 : 2;
}

enum err reconcile_arc_sum(const struct ringkey_set *set, const struct reconcile_position *lower,
                           const struct reconcile_position *upper, struct ringkey_sum *ret_sum) {
    struct ringkey_range pieces[PIECES_MAX];
    size_t count = cut_in_pieces(lower, upper, pieces);
    struct ringkey_sum all = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        struct ringkey_sum sum = {0};
        err = set->table->sum(set->context, &pieces[i], &sum);
        ringkey_sum_add(&all, &sum);
    }
    if (err == ERR_OK) {
        *ret_sum = all;
    }
    return err;
}

static enum err arc_cut_piece(const struct ringkey_set *set, const struct ringkey_range *piece,
                              uint8_t passes_count, uint64_t rank, uint64_t slack,
                              struct reconcile_position *ret_bound) {
    struct ringkey bound;
    enum err err = set->table->cut(set->context, piece, rank, slack, &bound);
    if (err == ERR_OK) {
        ret_bound->bytes[0] = passes_count;
        memcpy(ret_bound->bytes + 1, bound.bytes, RINGKEY_SIZE);
    }
    return err;
}

enum err reconcile_arc_cut(const struct ringkey_set *set, const struct reconcile_position *lower,
                           const struct reconcile_position *upper, uint64_t rank, uint64_t slack,
                           struct reconcile_position *ret_bound) {
    struct ringkey_range pieces[PIECES_MAX];
    size_t count = cut_in_pieces(lower, upper, pieces);
    if (count == 1) {
        return arc_cut_piece(set, &pieces[0], lower->bytes[0], rank, slack, ret_bound);
    }
    struct ringkey_sum first;
    enum err err = set->table->sum(set->context, &pieces[0], &first);
    if (err != ERR_OK) {
        return err;
    }
    if (rank == first.count) { /* just at the zero of the ring */
        *ret_bound = (struct reconcile_position){.bytes = {upper->bytes[0]}};
        return ERR_OK;
    }
    return rank < first.count
               ? arc_cut_piece(set, &pieces[0], lower->bytes[0], rank, slack, ret_bound)
               : arc_cut_piece(set, &pieces[1], upper->bytes[0], rank - first.count, slack, ret_bound);
}

enum err reconcile_arc_list(const struct ringkey_set *set, const struct reconcile_position *lower,
                            const struct reconcile_position *upper, struct ringkey *out, size_t count_max,
                            size_t *ret_count) {
    struct ringkey_range pieces[PIECES_MAX];
    size_t pieces_count = cut_in_pieces(lower, upper, pieces);
    size_t all = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < pieces_count && err == ERR_OK && all < count_max; i++) {
        size_t count = 0;
        err = set->table->list(set->context, &pieces[i], out + all, count_max - all, &count);
        all += count;
    }
    if (err == ERR_OK) {
        *ret_count = all;
    }
    return err;
}
