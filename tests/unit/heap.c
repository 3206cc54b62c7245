#include "base/heap.h"

#include <string.h>

#include "aborts.h"
#include "base/prng.h"
#include "unit.h"

enum { COUNT_MAX = 200 };

/* The model: an array that is kept sorted. */
struct model {
    struct heap_item items[COUNT_MAX];
    size_t count;
};

static bool is_before(const struct heap_item *a, const struct heap_item *b) {
    return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

static void model_push(struct model *model, struct heap_item item) {
    size_t at = model->count++;
    for (; at > 0 && is_before(&item, &model->items[at - 1]); at--) {
        model->items[at] = model->items[at - 1];
    }
    model->items[at] = item;
}

static struct heap_item model_pop(struct model *model) {
    struct heap_item least = model->items[0];
    memmove(model->items, model->items + 1, --model->count * sizeof least);
    return least;
}

static void assert_items_equal(const struct heap_item *a, const struct heap_item *b) {
    assert_int_equal(a->key, b->key);
    assert_int_equal(a->tie, b->tie);
    assert_int_equal(a->value, b->value);
}

static void pops_like_a_sorted_array_over_random_operations(void **state) {
    (void)state;
    struct heap_item items[COUNT_MAX];
    struct heap heap;
    heap_init(&heap, items, COUNT_MAX);
    static struct model model;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint64_t round = 0; round < 100000; round++) {
        /* Phases that mostly fill and phases that mostly empty. */
        bool wants_push = prng_chance_ppm(&prng, round / 1000 % 2 == 0 ? 700000 : 300000);
        if (wants_push) {
            struct heap_item item = {.key = prng_below(&prng, 50), .tie = round, .value = prng_u64(&prng)};
            bool has_room = model.count < COUNT_MAX;
            assert_int_equal(heap_push(&heap, item), has_room);
            if (has_room) {
                model_push(&model, item);
            }
        } else {
            struct heap_item popped;
            bool has_item = model.count > 0;
            assert_int_equal(heap_pop(&heap, &popped), has_item);
            if (has_item) {
                struct heap_item expected = model_pop(&model);
                assert_items_equal(&popped, &expected);
            }
        }
        assert_int_equal(heap.count, model.count);
        const struct heap_item *least = heap_peek(&heap);
        assert_int_equal(least == NULL, model.count == 0);
        if (least != NULL) {
            assert_items_equal(least, &model.items[0]);
        }
    }
}

static void orders_by_key_then_by_tie_over_the_whole_range(void **state) {
    (void)state;
    static const struct heap_item ascending[] = {
        {0, 0, 9}, {0, UINT64_MAX, 8}, {1, 0, 7}, {UINT64_MAX, 0, 6}, {UINT64_MAX, UINT64_MAX, 5}};
    enum { COUNT = sizeof ascending / sizeof ascending[0] };
    for (size_t rotation = 0; rotation < COUNT; rotation++) {
        struct heap_item items[COUNT];
        struct heap heap;
        heap_init(&heap, items, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(heap_push(&heap, ascending[(COUNT - 1 - i + rotation) % COUNT]));
        }
        for (size_t i = 0; i < COUNT; i++) {
            struct heap_item popped;
            assert_true(heap_pop(&heap, &popped));
            assert_items_equal(&popped, &ascending[i]);
        }
    }
}

static void empty_heap_gives_nothing_and_leaves_the_item(void **state) {
    (void)state;
    struct heap heap;
    heap_init(&heap, NULL, 0);
    struct heap_item popped = {.value = 5};
    assert_null(heap_peek(&heap));
    assert_false(heap_pop(&heap, &popped));
    assert_int_equal(popped.value, 5);
    assert_false(heap_push(&heap, popped));
}

static void full_heap_refuses_and_stays_as_it_was(void **state) {
    (void)state;
    struct heap_item items[3] = {[2] = {.value = 77}};
    struct heap heap;
    heap_init(&heap, items, 2);
    assert_true(heap_push(&heap, (struct heap_item){.key = 5}));
    assert_true(heap_push(&heap, (struct heap_item){.key = 6}));
    assert_false(heap_push(&heap, (struct heap_item){.key = 1}));
    assert_int_equal(heap.count, 2);
    assert_int_equal(heap_peek(&heap)->key, 5);
    assert_int_equal(items[2].value, 77);
}

static void moves_to_larger_memory(void **state) {
    (void)state;
    struct heap_item small[2];
    struct heap_item large[3];
    struct heap heap;
    heap_init(&heap, small, 2);
    heap_push(&heap, (struct heap_item){.key = 2});
    heap_push(&heap, (struct heap_item){.key = 3});
    memcpy(large, small, sizeof small);
    heap_move(&heap, large, 3);
    memset(small, 0, sizeof small);
    assert_true(heap_push(&heap, (struct heap_item){.key = 1}));
    for (uint64_t key = 1; key <= 3; key++) {
        struct heap_item popped;
        assert_true(heap_pop(&heap, &popped));
        assert_int_equal(popped.key, key);
    }
}

static void move_to_less(void *heap) {
    struct heap_item none;
    heap_move(heap, &none, 0);
}

static void aborts_on_a_move_that_loses_items(void **state) {
    (void)state;
    struct heap_item items[1];
    struct heap heap;
    heap_init(&heap, items, 1);
    heap_push(&heap, (struct heap_item){.key = 1});
    assert_true(aborts(move_to_less, &heap, "count_max >= heap->count"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pops_like_a_sorted_array_over_random_operations),
        cmocka_unit_test(orders_by_key_then_by_tie_over_the_whole_range),
        cmocka_unit_test(empty_heap_gives_nothing_and_leaves_the_item),
        cmocka_unit_test(full_heap_refuses_and_stays_as_it_was),
        cmocka_unit_test(moves_to_larger_memory),
        cmocka_unit_test(aborts_on_a_move_that_loses_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
