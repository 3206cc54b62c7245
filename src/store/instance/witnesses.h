/*
 * witnesses - one capture for all the nodes that got the same bytes in one visit.
 *
 * Several nodes of a ring may fetch each URL. Readers are shown the first of these captures; the others stay
 * in the archive, where details, exports and copies find them. Which volume or node lists which of them does
 * not matter: captures are judged behind the merge of all (store/instance/merge.h), in either direction.
 *
 *      forward     the earlier ones came before: they are among the last that were kept
 *      in reverse  the earlier ones are to come: they are drawn until the visit began, and given later
 *
 * Of what lies between two witnesses, WITNESSES_KEPT_MAX captures are kept; with more of them in one visit,
 * one that should have been left out is given. The memory is allocated when the first witness is met. One
 * thread.
 */
#ifndef MNEMON_STORE_INSTANCE_WITNESSES_H
#define MNEMON_STORE_INSTANCE_WITNESSES_H

#include "store/index/index_code.h"

enum { WITNESSES_KEPT_MAX = 16 };

struct witnesses_kept;

struct witnesses_source {
    /* The next capture, until the next call. ERR_NOT_FOUND at the end; an error stays. */
    enum err (*draw)(void *context, struct capture *ret_capture, struct err_detail *detail);
    /* Is there an earlier witness in front of where the walk's range begins? */
    enum err (*look_before)(void *context, const struct capture *capture, bool *ret_has,
                            struct err_detail *detail);
    void *context;
    bool in_reverse;
};

struct witnesses {
    struct witnesses_kept *kept; /* NULL: none was met yet */
    size_t first;
    size_t count;
    bool has_given; /* in reverse: the first was given and goes at the next call */
};

void witnesses_init(struct witnesses *witnesses);
void witnesses_done(struct witnesses *witnesses);

/* The next capture that no earlier witness stands for. Borrows from the source or from here, until the next
 * call. */
enum err witnesses_next(struct witnesses *witnesses, const struct witnesses_source *source,
                        struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/* Were both fetched by different witnesses in one visit, and are they the same page? */
bool witnesses_are_one(const struct capture *a, const struct capture *b);

#endif
