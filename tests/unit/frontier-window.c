/* frontier-window - the window against a plain sorted set, with reads that are late and out of date. */
#include "crawl/frontier/frontier_window.h"

#include "base/prng.h"
#include "unit.h"

enum { POSITIONS_COUNT = 400, STEPS_COUNT = 20000 };

enum place { NOWHERE, WAITING, TAKEN };

/* What is on disk, in the window and in the owner's hands, one byte each. An item is the address of its
 * place. */
struct model {
    struct frontier_window window;
    uint8_t places[POSITIONS_COUNT];
    bool is_kept[POSITIONS_COUNT]; /* the window has the item */
    bool read[POSITIONS_COUNT];    /* the disk as the reader saw it */
    bool has_read;
    uint64_t read_from;
    uint64_t low[FRONTIER_PRIORITIES_COUNT];
    size_t count_max;
    struct prng prng;
};

/* A position of each priority in turn, so that low[] is tested too. */
static uint64_t position_of(size_t index) {
    size_t each = POSITIONS_COUNT / FRONTIER_PRIORITIES_COUNT;
    return frontier_code_position((enum frontier_priority)(index / each), (uint16_t)(index % each / 10),
                                  index % each);
}

static size_t index_of(const struct model *model, void *item) {
    return (size_t)((uint8_t *)item - model->places);
}

static void let_go(struct model *model, void *item) {
    assert_true(model->is_kept[index_of(model, item)]);
    model->is_kept[index_of(model, item)] = false;
}

static void trim(struct model *model) {
    for (void *item; (item = frontier_window_trim(&model->window)) != NULL;) {
        let_go(model, item);
    }
    assert_true(model->window.count <= model->count_max);
}

static void offer(struct model *model, size_t index) {
    uint64_t position = position_of(index);
    if (frontier_window_admits(&model->window, position, model->count_max)) {
        assert_true(frontier_window_put(&model->window, position, &model->places[index], model->count_max));
        assert_false(model->is_kept[index]);
        model->is_kept[index] = true;
    }
    trim(model);
}

static size_t random_index(struct model *model, enum place place) {
    for (int i = 0; i < 50; i++) {
        size_t index = prng_below(&model->prng, POSITIONS_COUNT);
        if (model->places[index] == place) {
            return index;
        }
    }
    return SIZE_MAX;
}

static void step_add(struct model *model) {
    size_t index = random_index(model, NOWHERE);
    if (index != SIZE_MAX) {
        model->places[index] = WAITING;
        offer(model, index);
    }
}

/* What is taken is the first of all that wait. */
static void step_take(struct model *model) {
    void *item = frontier_window_take(&model->window);
    if (item == NULL) {
        return;
    }
    let_go(model, item);
    size_t index = index_of(model, item);
    for (size_t i = 0; i < index; i++) {
        assert_int_not_equal(model->places[i], WAITING);
    }
    assert_int_equal(model->places[index], WAITING);
    model->places[index] = TAKEN;
}

static void step_finish(struct model *model) {
    size_t index = random_index(model, TAKEN);
    if (index != SIZE_MAX) {
        model->places[index] = NOWHERE;
        frontier_window_finish(&model->window, position_of(index));
    }
}

static void step_put_back(struct model *model) {
    size_t index = random_index(model, TAKEN);
    if (index != SIZE_MAX) {
        model->places[index] = WAITING;
        offer(model, index);
    }
}

/* The reader looks at the disk at some time after it was asked. */
static void step_read(struct model *model) {
    if (!model->window.is_reading) {
        if (frontier_window_needs_more(&model->window, model->count_max)) {
            frontier_window_begin_reading(&model->window);
            model->read_from = model->window.reading_from;
            memcpy(model->low, model->window.low, sizeof model->low);
            model->has_read = false;
        }
        return;
    }
    model->has_read = true;
    for (size_t i = 0; i < POSITIONS_COUNT; i++) {
        model->read[i] = model->places[i] != NOWHERE;
    }
}

static void step_answer(struct model *model) {
    struct frontier_slot slots[POSITIONS_COUNT];
    size_t count = 0;
    uint64_t end = FRONTIER_CODE_POSITION_END;
    if (!model->window.is_reading || !model->has_read) {
        return;
    }
    size_t wanted = 1 + prng_below(&model->prng, model->count_max);
    for (size_t i = 0; i < POSITIONS_COUNT && count < wanted; i++) {
        uint64_t position = position_of(i);
        if (model->read[i] && position >= model->read_from &&
            position >= model->low[frontier_code_priority(position)]) {
            slots[count++] = (struct frontier_slot){position, &model->places[i]};
            end = count == wanted ? position + 1 : end;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (*(uint8_t *)slots[i].item != TAKEN) {
            slots[kept++] = slots[i];
        }
    }
    struct frontier_slot asked[POSITIONS_COUNT];
    memcpy(asked, slots, sizeof asked);
    frontier_window_merge(&model->window, slots, kept, end, model->count_max);
    for (size_t i = 0; i < kept; i++) {
        if (slots[i].item != asked[i].item) { /* it is in; what it pushed out is back */
            model->is_kept[index_of(model, asked[i].item)] = true;
        }
    }
    for (size_t i = 0; i < kept; i++) {
        if (slots[i].item != NULL && slots[i].item != asked[i].item) {
            model->is_kept[index_of(model, slots[i].item)] = false;
        }
    }
    trim(model);
}

/* All that wait below the bound are in the window. */
static void check(const struct model *model) {
    for (size_t i = 0; i < POSITIONS_COUNT; i++) {
        if (position_of(i) < model->window.bound) {
            assert_int_equal(model->is_kept[i], model->places[i] == WAITING);
        }
    }
}

static void run(uint64_t seed) {
    static struct model model;
    static void (*const steps[])(struct model * model) = {step_add,    step_add,  step_take,   step_take,
                                                          step_finish, step_read, step_answer, step_put_back};
    model = (struct model){.count_max = 1 + seed % 9};
    prng_init(&model.prng, seed);
    frontier_window_init(&model.window, seed % 2 == 0);
    for (int i = 0; i < STEPS_COUNT; i++) {
        steps[prng_below(&model.prng, sizeof steps / sizeof *steps)](&model);
        check(&model);
    }
    /* Nothing is left behind: with patience all of them come out. */
    for (int i = 0; i < 10 * STEPS_COUNT && !frontier_window_is_over(&model.window); i++) {
        step_read(&model);
        step_answer(&model);
        step_take(&model);
    }
    for (size_t i = 0; i < POSITIONS_COUNT; i++) {
        assert_int_not_equal(model.places[i], WAITING);
    }
    while (frontier_window_drop_last(&model.window) != NULL) {
    }
    frontier_window_done(&model.window);
}

static void gives_out_the_first_of_all_that_wait(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run(seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_out_the_first_of_all_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
