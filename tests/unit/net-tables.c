/* lru, arrivals, bucket: each against a slow and obvious model. */
#include "base/bucket.h"
#include "base/lru.h"
#include "base/prng.h"
#include "net/arrivals.h"
#include "unit.h"

enum { CAPACITY = 7, KEYS_COUNT = 20, STEPS_COUNT = 20000 };

/* The keys in the table, the most recently used first. */
struct model {
    uint8_t keys[CAPACITY];
    size_t count;
};

static bool model_take(struct model *model, uint8_t key) {
    for (size_t i = 0; i < model->count; i++) {
        if (model->keys[i] == key) {
            memmove(model->keys + i, model->keys + i + 1, model->count - i - 1);
            model->count--;
            return true;
        }
    }
    return false;
}

static void model_put(struct model *model, uint8_t key) {
    model->count -= model->count == CAPACITY;
    memmove(model->keys + 1, model->keys, model->count);
    model->keys[0] = key;
    model->count++;
}

static void lru_use(struct lru *lru, struct model *model, uint8_t key) {
    uint64_t *value = lru_find(lru, &key);
    bool is_there = model_take(model, key);
    assert_int_equal(value != NULL, is_there);
    if (value == NULL) {
        const uint64_t *out = lru_next_out(lru);
        assert_int_equal(out != NULL, model->count == CAPACITY);
        assert_true(out == NULL || *out == model->keys[CAPACITY - 1]);
        value = lru_add(lru, &key);
        assert_int_equal(*value, 0);
        *value = key;
    }
    assert_int_equal(*value, key);
    model_put(model, key);
}

static void the_least_recently_used_goes_first(void **state) {
    struct lru lru;
    struct model model = {.count = 0};
    struct prng prng;
    (void)state;
    prng_init(&prng, 1);
    assert_int_equal(lru_init(&lru, 1, sizeof(uint64_t), CAPACITY), ERR_OK);
    for (size_t i = 0; i < STEPS_COUNT; i++) {
        uint8_t key = (uint8_t)(1 + prng_below(&prng, KEYS_COUNT));
        if (prng_below(&prng, 4) == 0) {
            lru_remove(&lru, &key);
            (void)model_take(&model, key);
        } else {
            lru_use(&lru, &model, key);
        }
        assert_int_equal(lru_count(&lru), model.count);
    }
    lru_done(&lru);
}

/* Counters near a slowly rising time, so that most are new, some come again and some are far too old. */
static void a_counter_is_taken_once_and_only_while_it_is_recent(void **state) {
    static struct arrivals arrivals;
    static bool is_taken[STEPS_COUNT * 2 + 1];
    struct prng prng;
    (void)state;
    prng_init(&prng, 2);
    arrivals_begin(&arrivals, 100);
    assert_int_equal(arrivals_highest(&arrivals), 100);
    uint64_t highest = 100;
    for (size_t i = 0; i < STEPS_COUNT; i++) {
        uint64_t reach = prng_below(&prng, 50) == 0 ? 6000 : 300;
        uint64_t middle = 101 + i;
        uint64_t counter = middle + 20 - (middle < reach ? 0 : prng_below(&prng, reach));
        bool is_old = counter <= arrivals.lowest;
        bool is_new = arrivals_take(&arrivals, counter);
        assert_int_equal(is_new, !is_old && !is_taken[counter]);
        is_taken[counter] |= is_new;
        highest = counter > highest ? counter : highest;
        assert_int_equal(arrivals_highest(&arrivals), highest);
        for (uint32_t j = 1; j < arrivals.count; j += 97) {
            assert_true(arrivals.recent[(arrivals.first + j - 1) % ARRIVALS_COUNT] <
                        arrivals.recent[(arrivals.first + j) % ARRIVALS_COUNT]);
        }
    }
    assert_int_equal(arrivals.count, ARRIVALS_COUNT);
}

static void a_bucket_gives_its_burst_and_then_its_rate(void **state) {
    struct bucket bucket = {0};
    struct bucket_rate rate = {.per_second = 10, .burst = 5};
    size_t taken_count = 0;
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        taken_count += bucket_take(&bucket, rate, 1000000);
    }
    assert_int_equal(taken_count, 5);
    for (uint64_t now_us = 1000000; now_us < 11000000; now_us += 1000) {
        taken_count += bucket_take(&bucket, rate, now_us);
    }
    assert_in_range(taken_count, 5 + 99, 5 + 100);
    assert_true(bucket_take(&bucket, rate, 3600000000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(a_counter_is_taken_once_and_only_while_it_is_recent),
        cmocka_unit_test(a_bucket_gives_its_burst_and_then_its_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
