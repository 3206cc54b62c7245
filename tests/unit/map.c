#include "base/map.h"

#include <stdlib.h>

#include "aborts.h"
#include "allocations.h"
#include "base/prng.h"
#include "unit.h"

enum { SEED = 1 };

static struct bytes key_of(const uint64_t *number) {
    return bytes_of(number, sizeof *number);
}

static uint64_t *put(struct map *map, uint64_t number) {
    return map_put(map, key_of(&number));
}

static uint64_t *get(const struct map *map, uint64_t number) {
    return map_get(map, key_of(&number));
}

static bool take_out(struct map *map, uint64_t number) {
    return map_remove(map, key_of(&number));
}

static uint64_t number_of(struct bytes key) {
    uint64_t number;
    assert_int_equal(key.size, sizeof number);
    memcpy(&number, key.data, sizeof number);
    return number;
}

static void init(struct map *map, size_t count_max) {
    map_init(map, sizeof(uint64_t), sizeof(uint64_t), count_max, SEED);
}

/* The model: pairs in the order of insertion. */
enum { MODEL_COUNT_MAX = 60, MODEL_KEYS = 100 };

struct model {
    uint64_t keys[MODEL_COUNT_MAX];
    uint64_t values[MODEL_COUNT_MAX];
    size_t count;
};

static size_t model_find(const struct model *model, uint64_t key) {
    size_t i = 0;
    while (i < model->count && model->keys[i] != key) {
        i++;
    }
    return i;
}

static void model_remove(struct model *model, size_t at) {
    size_t after = model->count-- - at - 1;
    memmove(model->keys + at, model->keys + at + 1, after * sizeof model->keys[0]);
    memmove(model->values + at, model->values + at + 1, after * sizeof model->values[0]);
}

static void assert_walks_like(const struct map *map, const struct model *model) {
    size_t cursor = 0;
    struct bytes key;
    void *value;
    for (size_t i = 0; i < model->count; i++) {
        assert_true(map_next(map, &cursor, &key, &value));
        assert_int_equal(number_of(key), model->keys[i]);
        assert_int_equal(*(uint64_t *)value, model->values[i]);
    }
    assert_false(map_next(map, &cursor, &key, &value));
    assert_int_equal(map->count, model->count);
}

static void remove_odd_values_during_a_walk(struct map *map, struct model *model) {
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(map, &cursor, &key, &value)) {
        if (*(uint64_t *)value % 2 == 1) {
            model_remove(model, model_find(model, number_of(key)));
            assert_true(take_out(map, number_of(key)));
        }
    }
}

static void put_in_both(struct map *map, struct model *model, uint64_t key, uint64_t value) {
    size_t at = model_find(model, key);
    bool has_room = at < model->count || model->count < MODEL_COUNT_MAX;
    if (has_room) {
        assert_int_equal(map_reserve(map, map->count < MODEL_COUNT_MAX ? map->count + 1 : map->count),
                         ERR_OK);
    }
    uint64_t *place = put(map, key);
    assert_int_equal(place != NULL, has_room);
    if (!has_room) {
        return;
    }
    assert_int_equal((uintptr_t)place % sizeof *place, 0);
    assert_int_equal(*place, at < model->count ? model->values[at] : 0);
    *place = value;
    model->keys[at] = key;
    model->values[at] = value;
    model->count += at == model->count;
}

static void step_both(struct map *map, struct model *model, struct prng *prng, unsigned round) {
    uint64_t key = prng_below(prng, MODEL_KEYS);
    size_t at = model_find(model, key);
    unsigned dice = (unsigned)prng_below(prng, 10000);
    unsigned puts = round / 2000 % 2 == 0 ? 6000 : 3000; /* phases that fill and phases that empty */
    if (dice < puts) {
        put_in_both(map, model, key, prng_u64(prng));
    } else if (dice < 9000) {
        assert_int_equal(take_out(map, key), at < model->count);
        if (at < model->count) {
            model_remove(model, at);
        }
    } else if (dice < 9990) {
        uint64_t *place = get(map, key);
        assert_int_equal(place != NULL, at < model->count);
        assert_true(place == NULL || *place == model->values[at]);
    } else if (dice < 9999) {
        remove_odd_values_during_a_walk(map, model);
    } else {
        map_clear(map);
        model->count = 0;
    }
}

static void behaves_like_a_list_of_pairs_over_random_operations(void **state) {
    (void)state;
    struct map map;
    init(&map, MODEL_COUNT_MAX);
    struct model model = {.count = 0};
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned round = 0; round < 100000; round++) {
        step_both(&map, &model, &prng, round);
        if (round % 8 == 0) {
            assert_walks_like(&map, &model);
        }
    }
    map_done(&map);
}

/* Keys whose search begins at the given slot of a table of slots_count. */
static void find_colliding_keys(size_t slots_count, size_t slot, uint64_t *keys, size_t count) {
    for (uint64_t key = 0; count > 0; key++) {
        if ((map_hash(key_of(&key), SEED) & (slots_count - 1)) == slot) {
            *keys++ = key;
            count--;
        }
    }
}

static void keys_of_one_slot_are_kept_apart_in_every_order_of_removal(void **state) {
    (void)state;
    enum { COUNT = 12 };
    struct map map;
    init(&map, COUNT);
    assert_int_equal(map_reserve(&map, COUNT), ERR_OK);
    /* Half at the last slot, so that they run over the end, and half where those land. */
    uint64_t keys[COUNT];
    find_colliding_keys(map.slots_count, map.slots_count - 1, keys, COUNT / 2);
    find_colliding_keys(map.slots_count, 1, keys + COUNT / 2, COUNT / 2);
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned round = 0; round < 2000; round++) {
        for (size_t i = COUNT - 1; i > 0; i--) { /* shuffle */
            size_t j = prng_below(&prng, i + 1);
            uint64_t key = keys[i];
            keys[i] = keys[j];
            keys[j] = key;
        }
        for (size_t i = 0; i < COUNT; i++) {
            *put(&map, keys[i]) = keys[i] + 1;
        }
        for (size_t i = 0; i < COUNT; i++) {
            size_t removed = (i * 5 + round) % COUNT; /* 5 and 12 have no common divisor */
            assert_true(take_out(&map, keys[removed]));
            assert_null(get(&map, keys[removed]));
            for (size_t j = i + 1; j < COUNT; j++) {
                uint64_t left = keys[(j * 5 + round) % COUNT];
                assert_non_null(get(&map, left));
                assert_int_equal(*get(&map, left), left + 1);
            }
        }
        assert_int_equal(map.count, 0);
    }
    map_done(&map);
}

struct hashed {
    uint32_t hash; /* as much as the map stores */
    uint64_t key;
};

static int compare_hashes(const void *a, const void *b) {
    uint32_t left = ((const struct hashed *)a)->hash;
    uint32_t right = ((const struct hashed *)b)->hash;
    return (left > right) - (left < right);
}

static void keys_of_equal_hash_are_kept_apart(void **state) {
    (void)state;
    enum { KEYS_COUNT = 300000 }; /* about ten pairs share 32 bits */
    struct hashed *all = calloc(KEYS_COUNT, sizeof *all);
    assert_non_null(all);
    for (uint64_t key = 0; key < KEYS_COUNT; key++) {
        all[key] = (struct hashed){(uint32_t)map_hash(key_of(&key), SEED), key};
    }
    qsort(all, KEYS_COUNT, sizeof *all, compare_hashes);
    struct map map;
    init(&map, 10);
    assert_int_equal(map_reserve(&map, 10), ERR_OK);
    size_t pairs_count = 0;
    for (size_t i = 1; i < KEYS_COUNT; i++) {
        if (all[i - 1].hash != all[i].hash) {
            continue;
        }
        pairs_count++;
        *put(&map, all[i - 1].key) = 1;
        *put(&map, all[i].key) = 2;
        assert_int_equal(*get(&map, all[i - 1].key), 1);
        assert_int_equal(*get(&map, all[i].key), 2);
        assert_true(take_out(&map, all[i - 1].key));
        assert_null(get(&map, all[i - 1].key));
        assert_int_equal(*get(&map, all[i].key), 2);
        map_clear(&map);
    }
    assert_true(pairs_count > 0);
    map_done(&map);
    free(all);
}

static void put_never_allocates_and_gaps_are_packed(void **state) {
    (void)state;
    enum { COUNT = 100 };
    struct map map;
    init(&map, COUNT);
    assert_int_equal(map_reserve(&map, COUNT), ERR_OK);
    size_t before = allocations_count;
    for (uint64_t key = 0; key < 100 * COUNT; key++) { /* a window of COUNT keys moves on */
        if (key >= COUNT) {
            assert_true(take_out(&map, key - COUNT));
        }
        assert_non_null(put(&map, key));
    }
    assert_int_equal(allocations_count, before);
    assert_true(map.entries_count <= map.entries_max);
    size_t cursor = 0;
    struct bytes key;
    void *value;
    for (uint64_t expected = 99 * COUNT; expected < 100 * COUNT; expected++) {
        assert_true(map_next(&map, &cursor, &key, &value));
        assert_int_equal(number_of(key), expected);
    }
    map_done(&map);
}

static void is_empty_and_usable_again_after_done(void **state) {
    (void)state;
    struct map map;
    init(&map, 2);
    for (unsigned life = 0; life < 2; life++) {
        assert_walks_like(&map, &(struct model){.count = 0});
        assert_null(put(&map, 1)); /* no room yet */
        assert_int_equal(map_reserve(&map, 2), ERR_OK);
        assert_int_equal(*put(&map, 1), 0);
        assert_int_equal(*put(&map, 2), 0);
        assert_null(put(&map, 3));
        map_done(&map);
    }
}

static void refuses_more_than_its_maximum(void **state) {
    (void)state;
    struct map map;
    init(&map, 5);
    assert_int_equal(map_reserve(&map, 6), ERR_LIMIT);
    assert_int_equal(map_reserve(&map, SIZE_MAX), ERR_LIMIT);
    assert_int_equal(map_reserve(&map, 5), ERR_OK);
    for (uint64_t key = 0; key < 5; key++) {
        *put(&map, key) = key;
    }
    assert_null(put(&map, 5));
    assert_int_equal(*put(&map, 4), 4); /* one that is there needs no room */
    assert_true(take_out(&map, 0));
    assert_non_null(put(&map, 5));
    map_done(&map);
}

static void gives_no_place_before_the_first_reserve(void **state) {
    (void)state;
    struct map map;
    init(&map, 5);
    assert_null(put(&map, 1));
    assert_null(get(&map, 1));
    assert_false(take_out(&map, 1));
    map_clear(&map);
    size_t cursor = 0;
    struct bytes key;
    void *value;
    assert_false(map_next(&map, &cursor, &key, &value));
    assert_int_equal(map_reserve(&map, 0), ERR_OK);
    map_done(&map);
}

static void new_value_is_zero_where_an_old_one_lay(void **state) {
    (void)state;
    struct map map;
    init(&map, 4);
    assert_int_equal(map_reserve(&map, 4), ERR_OK);
    for (uint64_t key = 0; key < 100; key++) {
        uint64_t *value = put(&map, key);
        assert_int_equal(*value, 0);
        *value = UINT64_MAX;
        assert_true(take_out(&map, key));
    }
    map_done(&map);
}

static void put_of_a_key_again_keeps_value_and_place_in_the_order(void **state) {
    (void)state;
    struct map map;
    init(&map, 4);
    assert_int_equal(map_reserve(&map, 4), ERR_OK);
    *put(&map, 20) = 1;
    *put(&map, 10) = 2;
    assert_int_equal(*put(&map, 20), 1);
    assert_walks_like(&map, &(struct model){.keys = {20, 10}, .values = {1, 2}, .count = 2});
    assert_true(take_out(&map, 20));
    *put(&map, 20) = 3;
    assert_walks_like(&map, &(struct model){.keys = {10, 20}, .values = {2, 3}, .count = 2});
    map_done(&map);
}

static void order_does_not_depend_on_the_seed(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct map map;
        map_init(&map, sizeof(uint64_t), sizeof(uint64_t), 20, seed);
        assert_int_equal(map_reserve(&map, 20), ERR_OK);
        struct model model = {.count = 0};
        for (uint64_t key = 0; key < 20; key++) {
            put_in_both(&map, &model, prng_mix(key), key);
        }
        assert_walks_like(&map, &model);
        map_done(&map);
    }
}

static void borrows_keys_of_any_size(void **state) {
    (void)state;
    const struct bytes keys[] = {BYTES("a"),  BYTES("ab"),       BYTES("host.example"),
                                 BYTES("\0"), bytes_of(NULL, 0), BYTES("\0\0")};
    enum { COUNT = sizeof keys / sizeof keys[0] };
    struct map map;
    map_init(&map, 0, sizeof(size_t), COUNT, SEED);
    assert_int_equal(map_reserve(&map, COUNT), ERR_OK);
    for (size_t i = 0; i < COUNT; i++) {
        *(size_t *)map_put(&map, keys[i]) = i;
    }
    assert_int_equal(*(size_t *)map_get(&map, BYTES("")), 4); /* by the bytes, not by the address */
    size_t cursor = 0;
    struct bytes key;
    void *value;
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(map_next(&map, &cursor, &key, &value));
        assert_ptr_equal(key.data, keys[i].data);
        assert_int_equal(key.size, keys[i].size);
        assert_int_equal(*(size_t *)value, i);
    }
    assert_true(map_remove(&map, BYTES("ab")));
    assert_null(map_get(&map, BYTES("ab")));
    assert_non_null(map_get(&map, BYTES("a")));
    map_done(&map);
}

static void copies_keys_of_a_fixed_size(void **state) {
    (void)state;
    struct map map;
    map_init(&map, 5, 3, 4, SEED); /* sizes that need padding */
    assert_int_equal(map_reserve(&map, 4), ERR_OK);
    char key[] = "first";
    memcpy(map_put(&map, bytes_of(key, 5)), "one", 3);
    memcpy(key, "other", 5);
    memcpy(map_put(&map, bytes_of(key, 5)), "two", 3);
    assert_memory_equal(map_get(&map, BYTES("first")), "one", 3);
    assert_memory_equal(map_get(&map, BYTES("other")), "two", 3);
    map_done(&map);
}

static void serves_as_a_set_without_values(void **state) {
    (void)state;
    struct map map;
    map_init(&map, sizeof(uint64_t), 0, 8, SEED);
    assert_int_equal(map_reserve(&map, 8), ERR_OK);
    for (uint64_t key = 0; key < 8; key++) {
        assert_non_null(put(&map, key));
    }
    assert_non_null(get(&map, 7));
    assert_null(get(&map, 8));
    map_done(&map);
}

static void failed_reserve_leaves_the_map_as_it_was(void **state) {
    (void)state;
    struct map map;
    init(&map, 1000);
    assert_int_equal(map_reserve(&map, 2), ERR_OK);
    *put(&map, 1) = 10;
    *put(&map, 2) = 20;
    for (size_t successes = 0; successes < 2; successes++) {
        allocations_left = successes;
        assert_int_equal(map_reserve(&map, 1000), ERR_MEMORY);
        allocations_left = SIZE_MAX;
        assert_walks_like(&map, &(struct model){.keys = {1, 2}, .values = {10, 20}, .count = 2});
        assert_int_equal(*get(&map, 2), 20);
    }
    assert_int_equal(map_reserve(&map, 1000), ERR_OK);
    assert_int_equal(*get(&map, 1), 10);
    map_done(&map);
}

static void reserving_one_by_one_allocates_rarely(void **state) {
    (void)state;
    struct map map;
    init(&map, 10000);
    size_t before = allocations_count;
    for (uint64_t key = 0; key < 10000; key++) {
        assert_int_equal(map_reserve(&map, map.count + 1), ERR_OK);
        assert_non_null(put(&map, key));
    }
    assert_true(allocations_count - before < 50);
    map_done(&map);
}

static void get_key_of_wrong_size(void *map) {
    map_get(map, BYTES("wrong"));
}

static void aborts_on_a_key_of_another_size(void **state) {
    (void)state;
    struct map map;
    init(&map, 1);
    assert_true(aborts(get_key_of_wrong_size, &map, "key.size == map->key_size"));
}

/*
 * Golden values from an independent SipHash in Python, checked there against the SipHash-2-4 vector of its
 * paper and run with 1 and 3 rounds; its key is splitmix64's finalizer of seed + 1 and seed + 2.
 */
static void hashes_as_siphash_1_3(void **state) {
    (void)state;
    uint8_t counting[64];
    for (uint8_t i = 0; i < sizeof counting; i++) {
        counting[i] = i;
    }
    const struct {
        struct bytes text;
        uint64_t hash_of_seed_0;
        uint64_t hash_of_seed_max;
    } rows[] = {
        {bytes_of(NULL, 0), 0xf64bbee42cddf036, 0xe5c0b4d6aef080b6},
        {BYTES("a"), 0x47089334e4b569e0, 0x1645b02cb7438e02},
        {BYTES("abcdefg"), 0xd37b4013fa6152c4, 0x491f7cee6930fcfb},
        {BYTES("abcdefgh"), 0x4aab02e57792a244, 0x4d3f6e3a432fd910},
        {BYTES("https://example.org/"), 0x78b9a21a24e98937, 0x9762e64ef918e38b},
        {bytes_of(counting, sizeof counting), 0x0eb220fddc7198d8, 0xebd72aeb143c9e36},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(map_hash(rows[i].text, 0), rows[i].hash_of_seed_0);
        assert_int_equal(map_hash(rows[i].text, UINT64_MAX), rows[i].hash_of_seed_max);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_a_list_of_pairs_over_random_operations),
        cmocka_unit_test(keys_of_one_slot_are_kept_apart_in_every_order_of_removal),
        cmocka_unit_test(keys_of_equal_hash_are_kept_apart),
        cmocka_unit_test(put_never_allocates_and_gaps_are_packed),
        cmocka_unit_test(is_empty_and_usable_again_after_done),
        cmocka_unit_test(refuses_more_than_its_maximum),
        cmocka_unit_test(gives_no_place_before_the_first_reserve),
        cmocka_unit_test(new_value_is_zero_where_an_old_one_lay),
        cmocka_unit_test(put_of_a_key_again_keeps_value_and_place_in_the_order),
        cmocka_unit_test(order_does_not_depend_on_the_seed),
        cmocka_unit_test(borrows_keys_of_any_size),
        cmocka_unit_test(copies_keys_of_a_fixed_size),
        cmocka_unit_test(serves_as_a_set_without_values),
        cmocka_unit_test(failed_reserve_leaves_the_map_as_it_was),
        cmocka_unit_test(reserving_one_by_one_allocates_rarely),
        cmocka_unit_test(aborts_on_a_key_of_another_size),
        cmocka_unit_test(hashes_as_siphash_1_3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
