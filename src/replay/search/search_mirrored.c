/* Of the feeder: the archives of others that are kept here (store/backend/backend_mirrored.h). */
#include <stdlib.h>

#include "replay/search/search_state.h"
#include "store/backend/backend_mirrored.h"
#include "store/volume/follow.h"

struct one {
    struct mirrored_holding *holding; /* NULL: there is none */
    struct follow *follow;            /* of it */
    bool is_settled;                  /* the database has rows of it and of no other */
    bool was_there;                   /* it has gone: its rows go too */
};

struct search_mirrored {
    struct instance *instance;
    struct one items[INSTANCE_MIRRORED_MAX];
};

static uint16_t number_of(size_t index) {
    return (uint16_t)(INSTANCE_MIRRORED_NUMBER + index);
}

struct search_mirrored *search_mirrored_new(struct instance *instance) {
    struct search_mirrored *mirrored = calloc(1, sizeof *mirrored);
    if (mirrored != NULL) {
        mirrored->instance = instance;
    }
    return mirrored;
}

static void let_go(struct one *one) {
    if (one->follow != NULL) {
        follow_free(one->follow);
    }
    mirrored_release(one->holding);
    *one = (struct one){.was_there = one->was_there || one->holding != NULL};
}

void search_mirrored_free(struct search_mirrored *mirrored) {
    for (size_t i = 0; mirrored != NULL && i < INSTANCE_MIRRORED_MAX; i++) {
        let_go(&mirrored->items[i]);
    }
    free(mirrored);
}

void search_mirrored_forget(struct search_mirrored *mirrored) {
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        mirrored->items[i].is_settled = false;
    }
}

static void look_at(struct search_mirrored *mirrored, size_t index) {
    struct one *one = &mirrored->items[index];
    struct backend *backend = instance_mirrored(mirrored->instance, number_of(index));
    struct mirrored_holding *holding = backend != NULL ? backend_mirrored_hold(backend) : NULL;
    if (holding == one->holding) {
        mirrored_release(holding); /* one share of it is enough */
        return;
    }
    let_go(one);
    struct follow *follow = holding != NULL ? follow_new(mirrored_volume(holding)) : NULL;
    if (follow == NULL) { /* out of memory: the next look may have better luck */
        mirrored_release(holding);
        return;
    }
    one->holding = holding;
    one->follow = follow;
}

static bool has_work(const struct one *one) {
    return one->holding != NULL ? !one->is_settled || follow_is_behind(one->follow) : one->was_there;
}

bool search_mirrored_look(struct search_mirrored *mirrored) {
    bool is_any = false;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        look_at(mirrored, i);
        is_any = is_any || has_work(&mirrored->items[i]);
    }
    return is_any;
}

size_t search_mirrored_left(const struct search_mirrored *mirrored) {
    size_t count = 0;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        const struct one *one = &mirrored->items[i];
        count += one->holding != NULL && has_work(one);
    }
    return count;
}

/* The rows of the number are of this holding, and reading goes on behind them. */
static enum err go_on(struct one *one, uint16_t number, struct search_writer *writer,
                      struct err_detail *detail) {
    struct index_position position;
    enum err err = search_writer_position(writer, number, &position, detail);
    if (err == ERR_OK) {
        follow_seek(one->follow, &position);
        one->is_settled = true;
    }
    return err;
}

/* What there are rows of is another one, or none any more: out with some of them. */
static enum err start_over(struct one *one, uint16_t number, struct search_writer *writer,
                           uint64_t *dropped_count, bool *ret_has_more, struct err_detail *detail) {
    static const struct index_position start = {0};
    uint64_t count;
    enum err err = search_writer_drop_volume(writer, number, &count, detail);
    if (err != ERR_OK) {
        return err;
    }
    *dropped_count += count;
    if (count > 0) {
        *ret_has_more = true;
        return ERR_OK;
    }
    err = search_writer_move(writer, number, &start, detail);
    err = err == ERR_OK ? search_writer_set_mark(
                              writer, number, one->holding != NULL ? mirrored_mark(one->holding) : 0, detail)
                        : err;
    if (err == ERR_OK) {
        one->was_there = false;
    }
    return err == ERR_OK && one->holding != NULL ? go_on(one, number, writer, detail) : err;
}

enum err search_mirrored_settle(struct search_mirrored *mirrored, struct search_writer *writer,
                                uint64_t *ret_dropped_count, bool *ret_has_more, struct err_detail *detail) {
    uint64_t dropped_count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX && err == ERR_OK; i++) {
        struct one *one = &mirrored->items[i];
        uint64_t mark = 0;
        if (one->holding != NULL ? one->is_settled : !one->was_there) {
            continue;
        }
        if (one->holding != NULL) {
            err = search_writer_mark(writer, number_of(i), &mark, detail);
        }
        bool is_known = one->holding != NULL && mark == mirrored_mark(one->holding);
        if (err == ERR_OK) {
            err = is_known ? go_on(one, number_of(i), writer, detail)
                           : start_over(one, number_of(i), writer, &dropped_count, ret_has_more, detail);
        }
    }
    *ret_dropped_count = dropped_count;
    return err;
}

struct follow *search_mirrored_follow(struct search_mirrored *mirrored, size_t index, uint16_t *ret_number) {
    size_t seen_count = 0;
    for (size_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        const struct one *one = &mirrored->items[i];
        if (one->holding != NULL && one->is_settled && seen_count++ == index) {
            *ret_number = number_of(i);
            return one->follow;
        }
    }
    return NULL;
}
