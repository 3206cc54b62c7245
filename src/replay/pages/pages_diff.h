/*
 * pages_diff - which lines two texts share: the shortest script of removed and added lines, after Myers, "An
 * O(ND) Difference Algorithm and Its Variations" (1986).
 *
 *      a  one two three        same    one
 *      b  one TWO three   ->   removed two, added TWO
 *                              same    three
 *
 * Time and memory grow with the square of the number of differences, so that is bounded: texts that differ in
 * more than PAGES_DIFF_EDITS_MAX lines are told apart coarsely, all of the one against all of the other
 * between what they share at both ends. Lines are compared byte by byte. Private to pages*.c.
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_DIFF_H
#define MNEMON_REPLAY_PAGES_PAGES_DIFF_H

#include "base/bytes.h"
#include "base/err.h"

enum { PAGES_DIFF_LINES_MAX = 20000, PAGES_DIFF_EDITS_MAX = 2000 };

enum pages_diff_kind { PAGES_DIFF_SAME, PAGES_DIFF_REMOVED, PAGES_DIFF_ADDED };

struct pages_diff_line {
    enum pages_diff_kind kind;
    struct bytes text; /* without its line end; of the texts that were compared */
};

struct pages_diff {
    struct pages_diff_line *lines; /* in order; what was removed before what was added */
    size_t lines_count;
    size_t removed_count;
    size_t added_count;
    bool is_coarse; /* more differs than is worth finding out exactly */
    bool is_cut;    /* a text has more lines than are looked at */
};

/* The texts are borrowed as long as the diff lives. ERR_MEMORY. */
enum err pages_diff_init(struct pages_diff *diff, struct bytes a, struct bytes b) MUST_CHECK;
void pages_diff_done(struct pages_diff *diff);

#endif
