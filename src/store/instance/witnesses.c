#include "store/instance/witnesses.h"

#include <stdlib.h>

struct witnesses_kept {
    struct capture capture; /* its slices are in the text */
    struct buf text;
};

enum { KEPT_TEXT_SIZE_MAX = INDEX_SURT_SIZE_MAX + INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX };

void witnesses_init(struct witnesses *witnesses) {
    *witnesses = (struct witnesses){.count = 0};
}

void witnesses_done(struct witnesses *witnesses) {
    for (size_t i = 0; i < WITNESSES_KEPT_MAX && witnesses->kept != NULL; i++) {
        buf_done(&witnesses->kept[i].text);
    }
    free(witnesses->kept);
}

/* One that answers 304 was told so because another had sent it all. */
static bool witnesses_answers_agree(uint16_t a, uint16_t b) {
    return a == b || (a == 304 && b == 200) || (a == 200 && b == 304);
}

bool witnesses_are_one(const struct capture *a, const struct capture *b) {
    return (a->flags & b->flags & CAPTURE_WITNESS) != 0 && a->visit_s == b->visit_s &&
           a->signer != b->signer && witnesses_answers_agree(a->status, b->status) &&
           memcmp(a->digest, b->digest, KEY_DIGEST_SIZE) == 0 && bytes_equal(a->url, b->url);
}

/* ---- what is kept: a queue, the oldest first ---- */

static struct witnesses_kept *witnesses_at(struct witnesses *witnesses, size_t index) {
    return &witnesses->kept[(witnesses->first + index) % WITNESSES_KEPT_MAX];
}

static void witnesses_drop_first(struct witnesses *witnesses) {
    witnesses->first = (witnesses->first + 1) % WITNESSES_KEPT_MAX;
    witnesses->count--;
}

static enum err witnesses_allocate(struct witnesses *witnesses) {
    if (witnesses->kept != NULL) {
        return ERR_OK;
    }
    witnesses->kept = calloc(WITNESSES_KEPT_MAX, sizeof *witnesses->kept);
    for (size_t i = 0; i < WITNESSES_KEPT_MAX && witnesses->kept != NULL; i++) {
        buf_init(&witnesses->kept[i].text, KEPT_TEXT_SIZE_MAX);
    }
    return witnesses->kept != NULL ? ERR_OK : ERR_MEMORY;
}

/* There must be room. */
static enum err witnesses_keep(struct witnesses *witnesses, const struct capture *capture) {
    struct witnesses_kept *kept = witnesses_at(witnesses, witnesses->count);
    struct bytes *slices[] = {&kept->capture.surt, &kept->capture.url, &kept->capture.mime};
    ASSERT(witnesses->count < WITNESSES_KEPT_MAX);
    buf_clear(&kept->text);
    buf_put(&kept->text, capture->surt);
    buf_put(&kept->text, capture->url);
    buf_put(&kept->text, capture->mime);
    if (kept->text.err != ERR_OK) {
        return kept->text.err;
    }
    kept->capture = *capture;
    for (size_t i = 0, at = 0; i < sizeof slices / sizeof *slices; i++) {
        size_t size = slices[i]->size;
        *slices[i] = bytes_slice(buf_bytes(&kept->text), at, at + size);
        at += size;
    }
    witnesses->count++;
    return ERR_OK;
}

/* Does one of those that are kept, from that index on, stand for it? */
static bool witnesses_has_other(struct witnesses *witnesses, const struct capture *capture, size_t from) {
    for (size_t i = from; i < witnesses->count; i++) {
        if (witnesses_are_one(&witnesses_at(witnesses, i)->capture, capture)) {
            return true;
        }
    }
    return false;
}

/* ---- */

/* Also what is hidden is kept: it may stand for one whose signer is the first's. */
static enum err witnesses_judge(struct witnesses *witnesses, const struct witnesses_source *source,
                                const struct capture *capture, bool *ret_is_hidden,
                                struct err_detail *detail) {
    enum err err = witnesses_allocate(witnesses);
    *ret_is_hidden = err == ERR_OK && witnesses_has_other(witnesses, capture, 0);
    if (err == ERR_OK && !*ret_is_hidden) {
        err = source->look_before(source->context, capture, ret_is_hidden, detail);
    }
    if (err == ERR_OK && witnesses->count == WITNESSES_KEPT_MAX) {
        witnesses_drop_first(witnesses);
    }
    return err == ERR_OK ? witnesses_keep(witnesses, capture) : err;
}

static enum err witnesses_next_forward(struct witnesses *witnesses, const struct witnesses_source *source,
                                       struct capture *ret_capture, struct err_detail *detail) {
    bool is_hidden;
    enum err err;
    do {
        is_hidden = false;
        err = source->draw(source->context, ret_capture, detail);
        if (err == ERR_OK && ret_capture->flags & CAPTURE_WITNESS) {
            err = witnesses_judge(witnesses, source, ret_capture, &is_hidden, detail);
        }
    } while (err == ERR_OK && is_hidden);
    return err;
}

/* May there be more of the visit of the first one behind the last? */
static bool witnesses_is_in_visit(struct witnesses *witnesses) {
    static const int64_t SECOND_US = 1000000;
    const struct capture *first = &witnesses_at(witnesses, 0)->capture;
    const struct capture *last = &witnesses_at(witnesses, witnesses->count - 1)->capture;
    return last->time_us >= first->visit_s * SECOND_US && bytes_equal(first->surt, last->surt);
}

/* Draw all that lies between the first, which is one, and the beginning of its visit. */
static enum err witnesses_draw_visit(struct witnesses *witnesses, const struct witnesses_source *source,
                                     bool *ret_is_hidden, struct err_detail *detail) {
    struct capture capture;
    enum err err = ERR_OK;
    while (err == ERR_OK && witnesses_is_in_visit(witnesses) && witnesses->count < WITNESSES_KEPT_MAX) {
        err = source->draw(source->context, &capture, detail);
        err = err == ERR_OK ? witnesses_keep(witnesses, &capture) : err;
    }
    const struct capture *first = &witnesses_at(witnesses, 0)->capture;
    *ret_is_hidden = witnesses_has_other(witnesses, first, 1);
    if (err == ERR_NOT_FOUND) {
        err = *ret_is_hidden ? ERR_OK : source->look_before(source->context, first, ret_is_hidden, detail);
    }
    return err;
}

static enum err witnesses_next_reverse(struct witnesses *witnesses, const struct witnesses_source *source,
                                       struct capture *ret_capture, struct err_detail *detail) {
    if (witnesses->has_given) {
        witnesses_drop_first(witnesses);
        witnesses->has_given = false;
    }
    for (;;) {
        enum err err = ERR_OK;
        if (witnesses->count == 0) {
            struct capture capture;
            err = source->draw(source->context, &capture, detail);
            if (err == ERR_OK && !(capture.flags & CAPTURE_WITNESS)) {
                *ret_capture = capture;
                return ERR_OK;
            }
            err = err == ERR_OK ? witnesses_allocate(witnesses) : err;
            err = err == ERR_OK ? witnesses_keep(witnesses, &capture) : err;
        }
        bool is_hidden = false;
        if (err == ERR_OK && witnesses_at(witnesses, 0)->capture.flags & CAPTURE_WITNESS) {
            err = witnesses_draw_visit(witnesses, source, &is_hidden, detail);
        }
        if (err == ERR_OK && !is_hidden) {
            *ret_capture = witnesses_at(witnesses, 0)->capture;
            witnesses->has_given = true;
        }
        if (err != ERR_OK || !is_hidden) {
            return err;
        }
        witnesses_drop_first(witnesses);
    }
}

enum err witnesses_next(struct witnesses *witnesses, const struct witnesses_source *source,
                        struct capture *ret_capture, struct err_detail *detail) {
    return source->in_reverse ? witnesses_next_reverse(witnesses, source, ret_capture, detail)
                              : witnesses_next_forward(witnesses, source, ret_capture, detail);
}
