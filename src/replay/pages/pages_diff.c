#include "replay/pages/pages_diff.h"

#include <stdlib.h>

#include "base/map.h"

enum { SEED = 1 /* how fast it is may be known: the number of lines is bounded */ };

/* One of the texts: its lines, and a number for each, equal if the lines are. */
struct side {
    struct bytes *lines;
    uint32_t *numbers;
    size_t count;
};

/*
 * reached[d][k + d]: how far in a one gets on diagonal k (index in a - index in b) with d differences.
 * Index 0 is behind the lines that both texts begin with.
 */
struct search {
    const uint32_t *a;
    const uint32_t *b;
    int32_t a_count;
    int32_t b_count;
    int32_t *reached[PAGES_DIFF_EDITS_MAX + 1];
    int32_t differences_count;
};

static bool split(struct side *side, struct bytes text) {
    struct bytes line;
    if (text.size > 0 && text.data[text.size - 1] == '\n') {
        text.size--;
    } else if (text.size == 0) {
        return false;
    }
    while (bytes_split(&text, '\n', &line)) {
        if (side->count == PAGES_DIFF_LINES_MAX) {
            return true;
        }
        line.size -= line.size > 0 && line.data[line.size - 1] == '\r' ? 1 : 0;
        side->lines[side->count++] = line;
    }
    return false;
}

static enum err number_lines(struct map *map, struct side *side) {
    for (size_t i = 0; i < side->count; i++) {
        enum err err = map_reserve(map, map->count + 1);
        if (err != ERR_OK) {
            return err;
        }
        uint32_t *number = map_put(map, side->lines[i]);
        if (*number == 0) {
            *number = (uint32_t)map->count;
        }
        side->numbers[i] = *number;
    }
    return ERR_OK;
}

/* ---- the shortest script ---- */

/* How far one gets on diagonal k with one difference more than the row before. */
static int32_t diff_step(const struct search *search, int32_t d, int32_t k) {
    if (d == 0) {
        return 0;
    }
    const int32_t *before = search->reached[d - 1] + (d - 1);
    bool is_down = k == -d || (k != d && before[k - 1] < before[k + 1]);
    return is_down ? before[k + 1] : before[k - 1] + 1;
}

/* ERR_LIMIT if there are too many differences. */
static enum err run_search(struct search *search) {
    for (int32_t d = 0; d <= PAGES_DIFF_EDITS_MAX; d++) {
        search->reached[d] = calloc((size_t)d * 2 + 1, sizeof **search->reached);
        if (search->reached[d] == NULL) {
            return ERR_MEMORY;
        }
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = diff_step(search, d, k);
            int32_t y = x - k;
            while (x < search->a_count && y < search->b_count && y >= 0 && search->a[x] == search->b[y]) {
                x++;
                y++;
            }
            search->reached[d][k + d] = x;
            if (k == search->a_count - search->b_count && x >= search->a_count) {
                search->differences_count = d;
                return ERR_OK;
            }
        }
    }
    return ERR_LIMIT;
}

/* Mark the lines that the script removes and adds, from its end back to its start. */
static void trace(const struct search *search, bool *is_removed, bool *is_added) {
    int32_t x = search->a_count;
    int32_t y = search->b_count;
    for (int32_t d = search->differences_count; d > 0; d--) {
        int32_t k = x - y;
        const int32_t *before = search->reached[d - 1] + (d - 1);
        bool is_down = k == -d || (k != d && before[k - 1] < before[k + 1]);
        x = before[is_down ? k + 1 : k - 1];
        y = x - (is_down ? k + 1 : k - 1);
        if (is_down) {
            is_added[y] = true;
        } else {
            is_removed[x] = true;
        }
    }
}

static void search_done(struct search *search) {
    for (size_t d = 0; d <= PAGES_DIFF_EDITS_MAX; d++) {
        free(search->reached[d]);
    }
    free(search);
}

/* ---- the whole ---- */

struct marks {
    bool is_removed[PAGES_DIFF_LINES_MAX];
    bool is_added[PAGES_DIFF_LINES_MAX];
};

static enum err mark(struct pages_diff *diff, const struct side *a, const struct side *b,
                     struct marks *marks) {
    size_t start = 0;
    size_t a_end = a->count;
    size_t b_end = b->count;
    while (start < a_end && start < b_end && a->numbers[start] == b->numbers[start]) {
        start++;
    }
    while (a_end > start && b_end > start && a->numbers[a_end - 1] == b->numbers[b_end - 1]) {
        a_end--;
        b_end--;
    }
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return ERR_MEMORY;
    }
    search->a = a->numbers + start;
    search->b = b->numbers + start;
    search->a_count = (int32_t)(a_end - start);
    search->b_count = (int32_t)(b_end - start);
    enum err err = run_search(search);
    if (err == ERR_OK) {
        trace(search, marks->is_removed + start, marks->is_added + start);
    } else if (err == ERR_LIMIT) {
        diff->is_coarse = true;
        memset(marks->is_removed + start, true, a_end - start);
        memset(marks->is_added + start, true, b_end - start);
        err = ERR_OK;
    }
    search_done(search);
    return err;
}

static void diff_put_line(struct pages_diff *diff, enum pages_diff_kind kind, struct bytes text) {
    diff->lines[diff->lines_count++] = (struct pages_diff_line){.kind = kind, .text = text};
}

static void put_lines(struct pages_diff *diff, const struct side *a, const struct side *b,
                      const struct marks *marks) {
    size_t x = 0;
    size_t y = 0;
    while (x < a->count || y < b->count) {
        for (; x < a->count && marks->is_removed[x]; x++) {
            diff_put_line(diff, PAGES_DIFF_REMOVED, a->lines[x]);
            diff->removed_count++;
        }
        for (; y < b->count && marks->is_added[y]; y++) {
            diff_put_line(diff, PAGES_DIFF_ADDED, b->lines[y]);
            diff->added_count++;
        }
        if (x < a->count && y < b->count) {
            diff_put_line(diff, PAGES_DIFF_SAME, a->lines[x]);
            x++;
            y++;
        }
    }
}

static enum err diff_compare(struct pages_diff *diff, struct side *a, struct side *b) {
    struct map map;
    struct marks *marks = calloc(1, sizeof *marks);
    map_init(&map, 0, sizeof(uint32_t), 2 * PAGES_DIFF_LINES_MAX, SEED);
    enum err err = marks == NULL ? ERR_MEMORY : number_lines(&map, a);
    err = err == ERR_OK ? number_lines(&map, b) : err;
    err = err == ERR_OK ? mark(diff, a, b, marks) : err;
    if (err == ERR_OK) {
        put_lines(diff, a, b, marks);
    }
    map_done(&map);
    free(marks);
    return err;
}

static bool side_init(struct side *side) {
    side->lines = calloc(PAGES_DIFF_LINES_MAX, sizeof *side->lines);
    side->numbers = calloc(PAGES_DIFF_LINES_MAX, sizeof *side->numbers);
    return side->lines != NULL && side->numbers != NULL;
}

static void side_done(struct side *side) {
    free(side->lines);
    free(side->numbers);
}

enum err pages_diff_init(struct pages_diff *diff, struct bytes a_text, struct bytes b_text) {
    struct side a = {0};
    struct side b = {0};
    *diff = (struct pages_diff){.lines = calloc(2 * PAGES_DIFF_LINES_MAX, sizeof *diff->lines)};
    enum err err = ERR_MEMORY;
    if (side_init(&a) && side_init(&b) && diff->lines != NULL) {
        bool is_a_cut = split(&a, a_text);
        bool is_b_cut = split(&b, b_text);
        diff->is_cut = is_a_cut || is_b_cut;
        err = diff_compare(diff, &a, &b);
    }
    side_done(&a);
    side_done(&b);
    if (err != ERR_OK) {
        pages_diff_done(diff);
    }
    return err;
}

void pages_diff_done(struct pages_diff *diff) {
    free(diff->lines);
    diff->lines = NULL;
}
