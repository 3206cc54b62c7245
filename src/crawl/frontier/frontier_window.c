#include "crawl/frontier/frontier_window.h"

#include <stdlib.h>

enum { SLOTS_MIN = 8 };

void frontier_window_init(struct frontier_window *window, bool is_whole) {
    uint64_t bound = is_whole ? FRONTIER_CODE_POSITION_END : 0;
    *window = (struct frontier_window){.bound = bound, .ceiling = bound};
}

void frontier_window_done(struct frontier_window *window) {
    ASSERT(window->count == 0);
    free(window->slots);
    free(window->finished);
}

static struct frontier_slot *window_slot_at(const struct frontier_window *window, size_t index) {
    return &window->slots[window->first + index];
}

static uint64_t window_last_position(const struct frontier_window *window) {
    return window_slot_at(window, window->count - 1)->position;
}

/* The index of the first slot that is not below the position. */
static size_t window_find_index(const struct frontier_window *window, uint64_t position) {
    size_t from = 0;
    size_t to = window->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (window_slot_at(window, middle)->position < position) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

void frontier_window_leave_out(struct frontier_window *window, uint64_t position) {
    window->ceiling = window->ceiling < position ? window->ceiling : position;
    window->bound = window->bound < position ? window->bound : position;
}

bool frontier_window_admits(struct frontier_window *window, uint64_t position, size_t count_max) {
    uint64_t *low = &window->low[frontier_code_priority(position)];
    *low = *low < position ? *low : position;
    if (position >= window->ceiling) {
        return false;
    }
    if (window->count >= count_max && position > window_last_position(window)) {
        frontier_window_leave_out(window, position);
        return false;
    }
    return true;
}

/* Room for one more behind the others; those in front of `first` are given back before more is asked for. */
static bool window_make_room(struct frontier_window *window) {
    if (window->first + window->count < window->slots_max) {
        return true;
    }
    if (window->first > window->slots_max / 2) {
        memmove(window->slots, window->slots + window->first, window->count * sizeof *window->slots);
        window->first = 0;
        return true;
    }
    size_t slots_max = window->slots_max == 0 ? SLOTS_MIN : window->slots_max * 2;
    struct frontier_slot *slots = reallocarray(window->slots, slots_max, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    window->slots = slots;
    window->slots_max = slots_max;
    return true;
}

bool frontier_window_put(struct frontier_window *window, uint64_t position, void *item, size_t count_max) {
    ASSERT(position < window->ceiling);
    size_t index = window_find_index(window, position);
    if (index < window->count && window_slot_at(window, index)->position == position) {
        return false;
    }
    if (!window_make_room(window)) {
        frontier_window_leave_out(window, position); /* the disk has it */
        return false;
    }
    struct frontier_slot *slot = window_slot_at(window, index);
    memmove(slot + 1, slot, (window->count - index) * sizeof *slot);
    *slot = (struct frontier_slot){position, item};
    window->count++;
    if (window->count > count_max) {
        frontier_window_leave_out(window, window_last_position(window));
    }
    return true;
}

void *frontier_window_trim(struct frontier_window *window) {
    bool has_surplus = window->count > 0 && window_last_position(window) >= window->ceiling;
    return has_surplus ? frontier_window_drop_last(window) : NULL;
}

bool frontier_window_has_any(const struct frontier_window *window) {
    return window->count > 0 && window_slot_at(window, 0)->position < window->bound;
}

void *frontier_window_take(struct frontier_window *window) {
    if (!frontier_window_has_any(window)) {
        return NULL;
    }
    struct frontier_slot slot = *window_slot_at(window, 0);
    window->first++;
    window->count--;
    window->low[frontier_code_priority(slot.position)] = slot.position;
    return slot.item;
}

bool frontier_window_is_over(const struct frontier_window *window) {
    return window->count == 0 && !window->is_reading && window->bound == FRONTIER_CODE_POSITION_END;
}

void frontier_window_finish(struct frontier_window *window, uint64_t position) {
    if (!window->is_reading || position < window->reading_from) {
        return;
    }
    if (window->finished_count == window->finished_max) {
        size_t finished_max = window->finished_max == 0 ? SLOTS_MIN : window->finished_max * 2;
        uint64_t *finished = reallocarray(window->finished, finished_max, sizeof *finished);
        if (finished == NULL) {
            window->is_spoiled = true;
            return;
        }
        window->finished = finished;
        window->finished_max = finished_max;
    }
    window->finished[window->finished_count++] = position;
}

bool frontier_window_needs_more(const struct frontier_window *window, size_t count_max) {
    return !window->is_reading && window->bound != FRONTIER_CODE_POSITION_END &&
           window->count <= count_max / 2;
}

void frontier_window_begin_reading(struct frontier_window *window) {
    ASSERT(!window->is_reading);
    window->is_reading = true;
    window->is_spoiled = false;
    window->reading_from = window->bound;
    window->ceiling = FRONTIER_CODE_POSITION_END;
    window->finished_count = 0;
}

static bool window_was_finished(const struct frontier_window *window, uint64_t position) {
    for (size_t i = 0; i < window->finished_count; i++) {
        if (window->finished[i] == position) {
            return true;
        }
    }
    return false;
}

void frontier_window_merge(struct frontier_window *window, struct frontier_slot *slots, size_t count,
                           uint64_t end, size_t count_max) {
    ASSERT(window->is_reading);
    window->is_reading = false;
    if (window->is_spoiled || window->bound < window->reading_from) {
        window->ceiling = window->bound;
        return;
    }
    window->bound = end < window->ceiling ? end : window->ceiling;
    window->ceiling = window->bound;
    for (size_t i = 0; i < count; i++) {
        uint64_t position = slots[i].position;
        if (!window_was_finished(window, position) && frontier_window_admits(window, position, count_max) &&
            frontier_window_put(window, position, slots[i].item, count_max)) {
            slots[i].item = frontier_window_trim(window);
        }
    }
}

void *frontier_window_drop_last(struct frontier_window *window) {
    return window->count == 0 ? NULL : window_slot_at(window, --window->count)->item;
}
