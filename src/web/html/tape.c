#include "web/html/tape.h"

/* How much of a piece is put behind what is held at a time. Most tags are over within 100 bytes. */
enum { STEP_SIZE = 1024 };

void tape_init(struct tape *tape, size_t size_max) {
    *tape = (struct tape){0};
    buf_init(&tape->held, size_max + STEP_SIZE);
}

void tape_done(struct tape *tape) {
    buf_done(&tape->held);
}

void tape_start(struct tape *tape) {
    struct buf held = tape->held;
    buf_clear(&held);
    *tape = (struct tape){.held = held};
}

void tape_feed(struct tape *tape, struct bytes piece) {
    ASSERT(tape->piece.size == 0 && !tape->has_ended);
    tape->piece = piece;
    tape->copied = 0;
    if (tape->view.size == 0) {
        tape->is_held = false;
        tape->view = piece;
    }
}

/* The piece is the caller's again. */
static bool tape_give_back(struct tape *tape) {
    tape->piece = (struct bytes){NULL, 0};
    tape->copied = 0;
    tape->before = tape->view.size;
    return false;
}

static bool tape_extend(struct tape *tape) {
    struct buf *held = &tape->held;
    if (!tape->is_held) {
        buf_clear(held);
        tape->held_from = 0;
        buf_put(held, tape->view);
        tape->view = buf_bytes(held);
        tape->is_held = true;
        return tape_give_back(tape);
    }
    size_t left = tape->piece.size - tape->copied;
    if (left == 0) {
        return tape_give_back(tape);
    }
    buf_consume(held, tape->held_from);
    tape->held_from = 0;
    left = left < STEP_SIZE ? left : STEP_SIZE;
    if (buf_put(held, bytes_slice(tape->piece, tape->copied, tape->copied + left)) != ERR_OK) {
        return tape_give_back(tape);
    }
    tape->copied += left;
    tape->view = buf_bytes(held);
    return true;
}

bool tape_more(struct tape *tape) {
    if (tape_extend(tape)) {
        return true;
    }
    bool is_news = tape->has_ended && !tape->is_last && tape->held.err == ERR_OK;
    tape->is_last = tape->is_last || is_news;
    return is_news;
}

void tape_consume_held(struct tape *tape, size_t count) {
    tape->offset += count;
    if (count >= tape->before) {
        tape->view = bytes_skip(tape->piece, count - tape->before);
        tape->is_held = false;
    } else {
        tape->before -= count;
        tape->held_from += count;
        tape->view = bytes_skip(tape->view, count);
    }
}
