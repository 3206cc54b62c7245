/* The set of keys against a model; what a crash, damage and another mapping leave of it. */
#include "store/keyset/keyset.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/copies/reconcile.h"
#include "ringkey-fixture.h"
#include "scratch.h"
#include "store/keyset/keyset_row.h"
#include "store/keyset/keyset_sums.h"
#include "unit.h"

enum { CAPTURES_COUNT = 6000, COMPARED_COUNT = UNIT_IS_SANITIZED ? 3000 : 20000 };

static struct sha256 sha256;

static int start(void **state) {
    (void)state;
    return sha256_init(&sha256) == ERR_OK ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    sha256_done(&sha256);
    return 0;
}

static struct keyset *open_set(void *root, const char *name, enum position_mapping mapping) {
    char path[SCRATCH_PATH_SIZE];
    struct keyset *keyset = NULL;
    struct err_detail detail = {0};
    if (keyset_open(scratch_path(root, name, path), mapping, &keyset, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    return keyset;
}

/* Capture n; a few hosts, so that by host only few places are taken. */
static struct capture make_capture(size_t n, char surt[64]) {
    snprintf(surt, 64, "org,host%zu)/page/%zu", n % 3, n / 2);
    struct capture capture = {.surt = bytes_of_string(surt), .time_us = (int64_t)n * 1000, .volume = 7};
    sha256_digest(&sha256, bytes_of(&n, sizeof n), capture.digest);
    return capture;
}

static void put(struct keyset *keyset, size_t n) {
    char surt[64];
    struct capture capture = make_capture(n, surt);
    assert_int_equal(keyset_put(keyset, &capture, NULL), ERR_OK);
}

static void drop(struct keyset *keyset, size_t n) {
    char surt[64];
    struct capture capture = make_capture(n, surt);
    struct ringkey key = keyset_key(keyset, &capture);
    assert_int_equal(keyset_remove(keyset, &key, NULL), ERR_OK);
}

static void commit(struct keyset *keyset) {
    struct err_detail detail = {0};
    if (keyset_commit(keyset, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
}

/* ---- against the model ---- */

static void init_model(struct memory_set *model, struct keyset *keyset, const bool *is_there, size_t count) {
    struct ringkey *keys = calloc(count + 1, sizeof *keys);
    assert_non_null(keys);
    size_t keys_count = 0;
    for (size_t i = 0; i < count; i++) {
        char surt[64];
        struct capture capture = make_capture(i, surt);
        if (is_there[i]) {
            keys[keys_count++] = keyset_key(keyset, &capture);
        }
    }
    memory_set_init(model, &sha256, keys, keys_count);
    free(keys);
}

static struct ringkey random_bound(struct prng *prng, const struct memory_set *model) {
    struct ringkey key;
    prng_fill(prng, key.bytes, sizeof key.bytes);
    if (model->count > 0 && prng_below(prng, 2) == 0) {
        key = model->keys[prng_below(prng, model->count)];
        size_t kept = prng_below(prng, RINGKEY_SIZE + 1);
        memset(key.bytes + kept, 0, RINGKEY_SIZE - kept);
    }
    return key;
}

static void check_range(struct keyset *keyset, struct memory_set *model, struct prng *prng) {
    struct ringkey_range range = {.lower = random_bound(prng, model), .upper = random_bound(prng, model)};
    range.has_upper = prng_below(prng, 8) != 0;
    if (range.has_upper && ringkey_compare(&range.lower, &range.upper) >= 0) {
        struct ringkey swapped = range.lower;
        range.lower = range.upper;
        range.upper = swapped;
    }
    struct ringkey_sum sum;
    struct ringkey_sum expected;
    assert_int_equal(keyset_sum(keyset, &range, &sum), ERR_OK);
    assert_int_equal(memory_set_sum(model, &range, &expected), ERR_OK);
    assert_true(ringkey_sum_equal(&sum, &expected));

    struct ringkey listed[100];
    struct ringkey model_listed[100];
    size_t count = 0;
    size_t model_count = 0;
    assert_int_equal(keyset_list(keyset, &range, listed, 100, &count), ERR_OK);
    assert_int_equal(memory_set_list(model, &range, model_listed, 100, &model_count), ERR_OK);
    assert_int_equal(count, model_count);
    assert_int_equal(count == 0 ? 0 : memcmp(listed, model_listed, count * sizeof *listed), 0);

    if (sum.count >= 2) {
        uint64_t rank = prng_between(prng, 1, sum.count - 1);
        uint64_t space = rank < sum.count - rank ? rank : sum.count - rank;
        uint64_t slack = prng_below(prng, space);
        struct ringkey_range left = range;
        assert_int_equal(keyset_cut(keyset, &range, rank, slack, &left.upper), ERR_OK);
        left.has_upper = true;
        assert_true(ringkey_compare(&left.upper, &range.lower) > 0);
        assert_int_equal(memory_set_sum(model, &left, &expected), ERR_OK);
        assert_true(expected.count + slack >= rank && expected.count <= rank + slack);
    }
}

static void check_all(struct keyset *keyset, const bool *is_there, size_t count, uint64_t seed) {
    struct memory_set model;
    struct prng prng;
    prng_init(&prng, seed);
    init_model(&model, keyset, is_there, count);
    assert_int_equal(keyset_count(keyset), model.count);
    for (unsigned i = 0; i < 200; i++) {
        check_range(keyset, &model, &prng);
    }
    memory_set_done(&model);
}

static void run_model(void *root, const char *name, enum position_mapping mapping) {
    static bool is_there[CAPTURES_COUNT];
    memset(is_there, 0, sizeof is_there);
    struct prng prng;
    prng_init(&prng, 5);
    struct keyset *keyset = open_set(root, name, mapping);
    check_all(keyset, is_there, CAPTURES_COUNT, 1);
    for (unsigned round = 0; round < 6; round++) {
        bool is_removing = round % 3 == 2;
        for (unsigned i = 0; i < CAPTURES_COUNT / 2; i++) {
            size_t n = prng_below(&prng, CAPTURES_COUNT);
            bool is_put = prng_below(&prng, 8) < (is_removing ? 1 : 7);
            (is_put ? put : drop)(keyset, n);
            is_there[n] = is_put;
        }
        commit(keyset);
        check_all(keyset, is_there, CAPTURES_COUNT, round);
    }
    keyset_close(keyset);
    keyset = open_set(root, name, mapping); /* the sums that were stored are those that grew */
    check_all(keyset, is_there, CAPTURES_COUNT, 9);
    for (size_t n = 0; n < CAPTURES_COUNT; n++) {
        drop(keyset, n);
    }
    commit(keyset);
    memset(is_there, 0, sizeof is_there);
    check_all(keyset, is_there, CAPTURES_COUNT, 10);
    assert_true(keyset_memory_size(keyset) <= 2 * sizeof(struct keyset_chunk));
    keyset_close(keyset);
}

static void equals_its_model_by_url(void **state) {
    run_model(*state, "url", POSITION_BY_URL);
}

/* Three places for all keys: buckets must be divided inside of a place. */
static void equals_its_model_by_host(void **state) {
    run_model(*state, "host", POSITION_BY_HOST);
}

static void equals_its_model_by_section(void **state) {
    run_model(*state, "section", POSITION_BY_SECTION);
}

/* ---- the sums alone, with many chunks ---- */

enum { BUCKETS_MAX = 3000, KEYS_PER_BUCKET = 10 };

/* The n-th of the possible lower bounds. */
static struct ringkey bucket_lower(size_t n) {
    return (struct ringkey){.bytes = {0, (uint8_t)(n >> 8), (uint8_t)n}};
}

static void check_sums(const struct keyset_sums *sums, const uint64_t *counts, struct prng *prng) {
    size_t n = prng_below(prng, BUCKETS_MAX);
    struct ringkey key = bucket_lower(n);
    struct keyset_position place = keyset_sums_find(sums, &key);
    uint64_t before = 0;
    uint64_t all = 0;
    size_t lower = n;
    while (counts[lower] == 0 && lower > 0) {
        lower--; /* its bucket begins there */
    }
    for (size_t i = 0; i < BUCKETS_MAX; i++) {
        before += i < lower ? counts[i] : 0;
        all += counts[i];
    }
    struct ringkey expected = bucket_lower(lower);
    assert_memory_equal(&keyset_sums_bucket(sums, place)->lower, &expected, sizeof expected);
    assert_int_equal(keyset_sums_bucket(sums, place)->sum.count, counts[lower]);
    assert_int_equal(keyset_sums_before(sums, place).count, before);
    assert_int_equal(keyset_sums_before(sums, place).low, 3 * before);
    assert_int_equal(keyset_sums_all(sums).count, all);
    if (counts[lower] > 0) {
        struct keyset_position ranked = keyset_sums_find_rank(sums, before + prng_below(prng, counts[lower]));
        assert_int_equal(ranked.slot, place.slot);
        assert_int_equal(ranked.bucket, place.bucket);
    }
}

static void sums_of_many_buckets_are_right(void **state) {
    (void)state;
    static uint64_t counts[BUCKETS_MAX]; /* 0: there is no such bucket, but for the first */
    struct keyset_sums sums;
    struct prng prng;
    prng_init(&prng, 3);
    assert_int_equal(keyset_sums_init(&sums), ERR_OK);
    for (unsigned step = 0; step < 30000; step++) {
        size_t n = prng_below(&prng, BUCKETS_MAX);
        bool is_dropping = step > 20000 || prng_below(&prng, 10) == 0;
        struct ringkey key = bucket_lower(n);
        struct keyset_position place = keyset_sums_find(&sums, &key);
        struct ringkey_sum sum = {.count = KEYS_PER_BUCKET, .low = 3 * KEYS_PER_BUCKET};
        if (counts[n] == 0 && !is_dropping) {
            keyset_sums_add(&sums, place, &sum);
            assert_int_equal(n == 0 ? ERR_OK : keyset_sums_divide(&sums, place, &key, &sum), ERR_OK);
            counts[n] = KEYS_PER_BUCKET;
        } else if (counts[n] > 0 && is_dropping) {
            keyset_sums_subtract(&sums, place, &sum);
            keyset_sums_drop_empty(&sums, place);
            counts[n] = 0;
        }
        if (step % 20 == 0) {
            check_sums(&sums, counts, &prng);
        }
        assert_true(step != 20000 || sums.slots_count > 8);
    }
    for (size_t n = 0; n < BUCKETS_MAX; n++) {
        struct ringkey key = bucket_lower(n);
        struct keyset_position place = keyset_sums_find(&sums, &key);
        struct ringkey_sum sum = {.count = counts[n], .low = 3 * counts[n]};
        if (counts[n] > 0) {
            keyset_sums_subtract(&sums, place, &sum);
            keyset_sums_drop_empty(&sums, place);
        }
    }
    assert_int_equal(sums.slots_count, 1); /* what is empty is given back */
    assert_int_equal(sums.slots[0].chunk->count, 1);
    keyset_sums_done(&sums);
}

/* ---- single things ---- */

static void a_place_is_that_of_the_surt_or_of_its_host(void **state) {
    (void)state;
    uint8_t a[RINGKEY_POSITION_SIZE];
    uint8_t b[RINGKEY_POSITION_SIZE];
    uint8_t digest[SHA256_SIZE];
    position_of_surt(&sha256, BYTES("org,example)/a"), POSITION_BY_URL, a);
    sha256_digest(&sha256, BYTES("org,example)/a"), digest);
    assert_memory_equal(a, digest, sizeof a);
    position_of_surt(&sha256, BYTES("org,example)/a"), POSITION_BY_HOST, a);
    position_of_surt(&sha256, BYTES("org,example)/b)"), POSITION_BY_HOST, b);
    sha256_digest(&sha256, BYTES("org,example)"), digest);
    assert_memory_equal(a, digest, sizeof a);
    assert_memory_equal(b, digest, sizeof b);
    position_of_surt(&sha256, BYTES("urn:x"), POSITION_BY_HOST, a);
    sha256_digest(&sha256, BYTES("urn:x"), digest);
    assert_memory_equal(a, digest, sizeof a);
}

static bool are_together(struct bytes a, struct bytes b, enum position_mapping mapping) {
    uint8_t place_a[RINGKEY_POSITION_SIZE];
    uint8_t place_b[RINGKEY_POSITION_SIZE];
    position_of_surt(&sha256, a, mapping, place_a);
    position_of_surt(&sha256, b, mapping, place_b);
    return memcmp(place_a, place_b, sizeof place_a) == 0;
}

static void a_section_is_the_first_part_of_the_path(void **state) {
    (void)state;
    struct bytes news = BYTES("org,example)/news");
    assert_true(are_together(news, BYTES("org,example)/news/2021/a"), POSITION_BY_SECTION));
    assert_true(are_together(news, BYTES("org,example)/news?a=/b"), POSITION_BY_SECTION));
    assert_false(are_together(news, BYTES("org,example)/newspaper"), POSITION_BY_SECTION));
    assert_false(are_together(news, BYTES("org,example)/"), POSITION_BY_SECTION));
    assert_false(are_together(news, BYTES("com,example)/news"), POSITION_BY_SECTION));
    assert_true(are_together(BYTES("org,example)/?a"), BYTES("org,example)/"), POSITION_BY_SECTION));
    assert_true(are_together(BYTES("org,example)//b"), BYTES("org,example)/"), POSITION_BY_SECTION));
    assert_false(are_together(BYTES("urn:x/a"), BYTES("urn:x/b"), POSITION_BY_SECTION));
    assert_false(are_together(BYTES("org,example)"), BYTES(""), POSITION_BY_SECTION));
}

static void expect_prefix(struct bytes prefix, enum position_mapping mapping, bool is_one) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    uint8_t expected[RINGKEY_POSITION_SIZE];
    assert_int_equal(position_of_prefix(&sha256, prefix, mapping, place), is_one);
    if (is_one) {
        position_of_surt(&sha256, prefix, mapping, expected);
        assert_memory_equal(place, expected, sizeof place);
    }
}

static void what_begins_alike_is_at_one_place_where_nothing_can_change_it(void **state) {
    (void)state;
    expect_prefix(BYTES("org,example)/news/"), POSITION_BY_URL, false);
    expect_prefix(BYTES("org,example"), POSITION_BY_HOST, false);
    expect_prefix(BYTES("org,example)"), POSITION_BY_HOST, true);
    expect_prefix(BYTES("org,example)/ne"), POSITION_BY_HOST, true);
    expect_prefix(BYTES("org,example)/"), POSITION_BY_SECTION, false);
    expect_prefix(BYTES("org,example)/news"), POSITION_BY_SECTION, false); /* newspaper */
    expect_prefix(BYTES("org,example)/news/"), POSITION_BY_SECTION, true);
    expect_prefix(BYTES("org,example)/news?a"), POSITION_BY_SECTION, true);
    expect_prefix(BYTES("urn:x"), POSITION_BY_SECTION, false);
    expect_prefix(BYTES(""), POSITION_BY_SECTION, false);
    expect_prefix(BYTES(""), POSITION_BY_HOST, false);
}

static void finds_the_capture_of_a_key(void **state) {
    struct keyset *keyset = open_set(*state, "find", POSITION_BY_URL);
    char surt[64];
    struct capture capture = make_capture(12, surt);
    struct ringkey key = keyset_key(keyset, &capture);
    struct keyset_entry entry;
    bool is_there = true;
    put(keyset, 12);
    assert_int_equal(keyset_contains(keyset, &key, &is_there), ERR_OK);
    assert_false(is_there); /* not before the commit */
    put(keyset, 12);
    commit(keyset);
    put(keyset, 12);
    commit(keyset);
    assert_int_equal(keyset_count(keyset), 1);
    assert_int_equal(keyset_find(keyset, &key, &entry), ERR_OK);
    assert_bytes_equal(entry.surt, capture.surt);
    assert_int_equal(entry.volume, 7);
    assert_int_equal(ringkey_time_us(&key), capture.time_us);
    assert_memory_equal(ringkey_digest(&key), capture.digest, RINGKEY_DIGEST_SIZE);
    capture.time_us = -1;
    key = keyset_key(keyset, &capture);
    assert_int_equal(ringkey_time_us(&key), -1);
    assert_int_equal(keyset_find(keyset, &key, &entry), ERR_NOT_FOUND);
    keyset_close(keyset);
}

static void finds_all_keys_of_a_digest(void **state) {
    struct keyset *keyset = open_set(*state, "digest", POSITION_BY_URL);
    for (size_t n = 0; n < 100; n++) {
        char surt[64];
        struct capture capture = make_capture(n, surt);
        memset(capture.digest, n % 10 == 0 ? 0xff : 0xfe, sizeof capture.digest);
        assert_int_equal(keyset_put(keyset, &capture, NULL), ERR_OK);
    }
    commit(keyset);
    uint8_t digest[RINGKEY_DIGEST_SIZE];
    memset(digest, 0xff, sizeof digest);
    struct ringkey key;
    struct ringkey *behind = NULL;
    unsigned count = 0;
    while (keyset_find_digest(keyset, digest, behind, &key) == ERR_OK) {
        assert_memory_equal(ringkey_digest(&key), digest, sizeof digest);
        behind = &key;
        count++;
    }
    assert_int_equal(count, 10);
    keyset_close(keyset);
}

/* ---- crash and damage ---- */

static void set_position(struct keyset *keyset, uint64_t offset) {
    struct index_position position = {.segment = 1, .offset = offset};
    keyset_set_position(keyset, 3, &position);
}

static void what_was_committed_survives_the_process(void **state) {
    pid_t child = fork();
    if (child == 0) {
        struct keyset *keyset = open_set(*state, "crash", POSITION_BY_URL);
        for (size_t n = 0; n < 1000; n++) {
            put(keyset, n);
        }
        set_position(keyset, 77);
        commit(keyset);
        put(keyset, 1000);
        set_position(keyset, 78);
        _exit(0); /* without closing */
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct keyset *keyset = open_set(*state, "crash", POSITION_BY_URL);
    struct index_position position;
    uint16_t volume;
    assert_int_equal(keyset_count(keyset), 1000);
    assert_int_equal(keyset_position(keyset, 3, &position), ERR_OK);
    assert_int_equal(position.offset, 77);
    assert_int_equal(keyset_position(keyset, 4, &position), ERR_OK);
    assert_int_equal(position.segment, 0);
    assert_int_equal(keyset_find_volume(keyset, 0, &volume), ERR_OK);
    assert_int_equal(volume, 3);
    assert_int_equal(keyset_find_volume(keyset, 4, &volume), ERR_NOT_FOUND);
    keyset_close(keyset);
}

/* The name that RocksDB gives a database when it makes it: another one if the set was emptied. */
static const char *identity_of(void *root, const char *name, char out[64]) {
    char directory[SCRATCH_PATH_SIZE];
    char path[2 * SCRATCH_PATH_SIZE];
    snprintf(path, sizeof path, "%s/IDENTITY", scratch_path(root, name, directory));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    out[fread(out, 1, 63, file)] = '\0';
    fclose(file);
    assert_true(strlen(out) > 30);
    return out;
}

static void fill_and_close(void *root, const char *name) {
    struct keyset *keyset = open_set(root, name, POSITION_BY_URL);
    for (size_t n = 0; n < 1000; n++) {
        put(keyset, n);
    }
    set_position(keyset, 77);
    commit(keyset);
    keyset_close(keyset);
}

static void expect_empty(struct keyset *keyset) {
    struct index_position position;
    assert_int_equal(keyset_count(keyset), 0);
    assert_int_equal(keyset_position(keyset, 3, &position), ERR_OK);
    assert_int_equal(position.segment, 0);
    put(keyset, 1);
    commit(keyset);
    assert_int_equal(keyset_count(keyset), 1);
    keyset_close(keyset);
}

static void another_mapping_empties_it(void **state) {
    fill_and_close(*state, "mapping");
    char before[64];
    char after[64];
    identity_of(*state, "mapping", before);
    expect_empty(open_set(*state, "mapping", POSITION_BY_HOST));
    assert_string_not_equal(identity_of(*state, "mapping", after), before);
    keyset_close(open_set(*state, "mapping", POSITION_BY_HOST)); /* once is enough */
    assert_string_equal(identity_of(*state, "mapping", before), after);
}

static void damage_empties_it(void **state) {
    char path[SCRATCH_PATH_SIZE];
    fill_and_close(*state, "damage");
    scratch_path(*state, "damage", path);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, "MANIFEST", 8) == 0) {
            char file_path[2 * SCRATCH_PATH_SIZE];
            snprintf(file_path, sizeof file_path, "%s/%s", path, entry->d_name);
            assert_int_equal(truncate(file_path, 5), 0);
        }
    }
    closedir(directory);
    char before[64];
    char after[64];
    identity_of(*state, "damage", before);
    expect_empty(open_set(*state, "damage", POSITION_BY_URL));
    assert_string_not_equal(identity_of(*state, "damage", after), before);
}

/* ---- sums that are stored ---- */

/* The database of a set that is closed. */
static struct kv *open_rows(void *root, const char *name) {
    static const struct kv_family family = {.name = "default"};
    static const struct kv_options options = {.families = &family, .families_count = 1};
    char path[SCRATCH_PATH_SIZE];
    struct kv *kv = kv_new(scratch_path(root, name, path), &options);
    assert_non_null(kv);
    assert_int_equal(kv_open(kv, NULL), ERR_OK);
    return kv;
}

/* All rows of sums: remove them, or add one to their counts. Returns how many there were. */
static size_t change_sums(struct kv *kv, bool is_removal) {
    static const struct ringkey zero;
    struct keyset_row first = keyset_row_of_sum(&zero);
    struct keyset_bucket bucket;
    struct kv_iterator iterator;
    struct kv_batch batch;
    size_t count = 0;
    kv_batch_init(&batch);
    assert_int_equal(
        kv_iterator_init(&iterator, kv, 0, KV_WALK, keyset_row_bytes(&first), bytes_of(NULL, 0), false),
        ERR_OK);
    while (keyset_row_next_sum(&iterator, &bucket) == ERR_OK) {
        uint8_t value[KEYSET_ROW_SUM_SIZE_MAX];
        bucket.sum.low++;
        if (is_removal) {
            kv_batch_remove(&batch, 0, iterator.key);
        } else {
            kv_batch_put(&batch, 0, iterator.key, keyset_row_sum(&bucket.sum, value));
        }
        count++;
    }
    kv_iterator_done(&iterator);
    assert_int_equal(kv_write(kv, &batch, NULL), ERR_OK);
    kv_batch_done(&batch);
    return count;
}

/* Captures of which many share URL, digest or both, as visits do that find nothing new. */
enum { SHARED_COUNT = 600 };

static struct capture make_shared(size_t n, char surt[64]) {
    snprintf(surt, 64, "org,host%zu)/%zu", n % 2, n % 7);
    struct capture capture = {.surt = bytes_of_string(surt), .time_us = (int64_t)n * 1000};
    memset(capture.digest, (int)(n * n % 5), sizeof capture.digest);
    return capture;
}

/* All keys of each digest are found, in their order, and no others. */
static void check_digests(struct keyset *keyset, const bool *is_there) {
    for (unsigned digit = 0; digit < 5; digit++) {
        uint8_t digest[RINGKEY_DIGEST_SIZE];
        struct ringkey last = {0};
        struct ringkey key;
        size_t expected = 0;
        size_t count = 0;
        memset(digest, (int)digit, sizeof digest);
        for (size_t n = 0; n < SHARED_COUNT; n++) {
            expected += is_there[n] && n * n % 5 == digit;
        }
        while (keyset_find_digest(keyset, digest, count > 0 ? &last : NULL, &key) == ERR_OK) {
            bool is_known = false;
            assert_memory_equal(ringkey_digest(&key), digest, sizeof digest);
            assert_true(count == 0 || ringkey_compare(&key, &last) > 0);
            assert_int_equal(keyset_contains(keyset, &key, &is_known), ERR_OK);
            assert_true(is_known);
            last = key;
            count++;
        }
        assert_int_equal(count, expected);
    }
}

static void finds_digests_among_changes_of(struct keyset *keyset) {
    bool is_there[SHARED_COUNT] = {false};
    struct prng prng;
    prng_init(&prng, 7);
    for (unsigned round = 0; round < 60; round++) {
        unsigned removals = round % 4 == 3 ? 9 : 3; /* of ten changes */
        for (unsigned i = 0; i < 60; i++) {
            size_t n = prng_below(&prng, SHARED_COUNT);
            char surt[64];
            struct capture capture = make_shared(n, surt);
            struct ringkey key = keyset_key(keyset, &capture);
            is_there[n] = prng_below(&prng, 10) >= removals;
            assert_int_equal(
                is_there[n] ? keyset_put(keyset, &capture, NULL) : keyset_remove(keyset, &key, NULL), ERR_OK);
        }
        commit(keyset);
        check_digests(keyset, is_there);
    }
    for (size_t n = 0; n < SHARED_COUNT; n++) {
        char surt[64];
        struct capture capture = make_shared(n, surt);
        struct ringkey key = keyset_key(keyset, &capture);
        assert_int_equal(keyset_remove(keyset, &key, NULL), ERR_OK);
    }
    commit(keyset);
}

static size_t count_digest_rows(struct kv *kv, size_t key_size) {
    struct kv_iterator iterator;
    size_t count = 0;
    assert_int_equal(kv_iterator_init(&iterator, kv, 0, KV_WALK, BYTES("d"), BYTES("e"), false), ERR_OK);
    while (kv_iterator_next(&iterator, NULL) == ERR_OK) {
        count += key_size == 0 || iterator.key.size == key_size;
    }
    kv_iterator_done(&iterator);
    return count;
}

static void finds_digests_while_captures_come_and_go(void **state) {
    static const enum position_mapping mappings[] = {POSITION_BY_URL, POSITION_BY_HOST};
    static const char *const names[] = {"by-url", "by-host"};
    for (unsigned i = 0; i < 2; i++) {
        struct keyset *keyset = open_set(*state, names[i], mappings[i]);
        finds_digests_among_changes_of(keyset);
        keyset_close(keyset);
        struct kv *kv = open_rows(*state, names[i]);
        assert_int_equal(count_digest_rows(kv, 0), 0); /* nothing stays behind */
        kv_free(kv);
    }
}

/* As a program wrote them before digests were found by place. */
static void a_set_of_version_2_is_converted_once(void **state) {
    bool is_there[SHARED_COUNT] = {false};
    const uint8_t version_2[] = {2, POSITION_BY_URL};
    struct keyset_row format = keyset_row_of_format();
    struct keyset *keyset = open_set(*state, "two", POSITION_BY_URL);
    struct kv_batch batch;
    kv_batch_init(&batch);
    for (size_t n = 0; n < SHARED_COUNT; n++) {
        char surt[64];
        struct capture capture = make_shared(n, surt);
        struct ringkey key = keyset_key(keyset, &capture);
        struct keyset_row row = keyset_row_of_digest(&key);
        assert_int_equal(keyset_put(keyset, &capture, NULL), ERR_OK);
        kv_batch_put(&batch, 0, keyset_row_bytes(&row), bytes_of(NULL, 0));
        is_there[n] = true;
    }
    commit(keyset);
    keyset_close(keyset);
    struct kv *kv = open_rows(*state, "two");
    size_t places_count = count_digest_rows(kv, 0);
    size_t left = 3; /* a conversion that was cut off has left some */
    struct kv_iterator iterator;
    assert_int_equal(kv_iterator_init(&iterator, kv, 0, KV_WALK, BYTES("d"), BYTES("e"), false), ERR_OK);
    while (kv_iterator_next(&iterator, NULL) == ERR_OK) {
        if (left > 0) {
            left--;
        } else {
            kv_batch_remove(&batch, 0, iterator.key);
        }
    }
    kv_iterator_done(&iterator);
    kv_batch_put(&batch, 0, keyset_row_bytes(&format), bytes_of(version_2, sizeof version_2));
    assert_int_equal(kv_write(kv, &batch, NULL), ERR_OK);
    kv_batch_done(&batch);
    assert_int_equal(count_digest_rows(kv, KEYSET_ROW_SIZE_MAX), SHARED_COUNT);
    kv_free(kv);
    keyset = open_set(*state, "two", POSITION_BY_URL);
    assert_int_equal(keyset_count(keyset), SHARED_COUNT);
    check_digests(keyset, is_there);
    keyset_close(keyset);
    kv = open_rows(*state, "two");
    assert_int_equal(count_digest_rows(kv, KEYSET_ROW_SIZE_MAX), 0);
    assert_int_equal(count_digest_rows(kv, 0), places_count);
    kv_free(kv);
}

static void a_set_of_version_1_gets_its_sums_once(void **state) {
    static bool is_there[1000];
    const uint8_t version_1[] = {1, POSITION_BY_URL};
    struct keyset_row format = keyset_row_of_format();
    memset(is_there, true, sizeof is_there);
    fill_and_close(*state, "old");
    struct kv *kv = open_rows(*state, "old");
    size_t count = change_sums(kv, true);
    assert_true(count >= 1000 / 96 && count <= 1000 / 16);
    assert_int_equal(kv_put(kv, 0, keyset_row_bytes(&format), bytes_of(version_1, sizeof version_1), NULL),
                     ERR_OK);
    kv_free(kv);
    struct keyset *keyset = open_set(*state, "old", POSITION_BY_URL);
    check_all(keyset, is_there, 1000, 3);
    keyset_close(keyset);
    kv = open_rows(*state, "old");
    assert_true(change_sums(kv, false) >= 1000 / 96); /* they are stored now; and are wrong from here on */
    kv_free(kv);
    keyset = open_set(*state, "old", POSITION_BY_URL);
    assert_int_equal(keyset_count(keyset), 1000); /* read, not made: nobody has looked at the keys */
    struct ringkey_range range = {.has_upper = true, .upper = {.bytes = {0x80}}};
    struct ringkey_sum sum;
    assert_int_equal(keyset_sum(keyset, &range, &sum), ERR_CORRUPT);
    assert_int_equal(keyset_mend(keyset, NULL), ERR_OK);
    expect_empty(keyset);
}

static void a_second_process_is_told_so(void **state) {
    struct keyset *keyset = open_set(*state, "busy", POSITION_BY_URL);
    struct keyset *second;
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(keyset_open(scratch_path(*state, "busy", path), POSITION_BY_URL, &second, NULL),
                     ERR_BUSY);
    put(keyset, 1);
    commit(keyset);
    keyset_close(keyset);
}

/* ---- two sets compared ---- */

static void count_key(void *context, const struct ringkey *key) {
    (void)key;
    ++*(size_t *)context;
}

static void two_sets_are_compared(void **state) {
    struct keyset *a = open_set(*state, "left", POSITION_BY_URL);
    struct keyset *b = open_set(*state, "right", POSITION_BY_URL);
    static const struct reconcile_arc whole_ring;
    static uint8_t question_memory[RECONCILE_MESSAGE_SIZE_MAX];
    static uint8_t answer_memory[RECONCILE_MESSAGE_SIZE_MAX];
    for (size_t n = 0; n < COMPARED_COUNT; n++) {
        put(a, n);
        put(b, COMPARED_COUNT - 1 - n);
    }
    commit(a);
    commit(b);
    assert_true(keyset_memory_size(a) <= 2 * COMPARED_COUNT + 2 * sizeof(struct keyset_chunk));
    for (size_t different = 0; different <= 10; different += 5) {
        size_t found_count = 0;
        struct reconcile_report report = {count_key, count_key, &found_count};
        struct ringkey_set set_a = keyset_set(a);
        struct ringkey_set set_b = keyset_set(b);
        struct reconcile reconcile;
        struct bytes question;
        struct bytes answer;
        size_t size = 0;
        reconcile_init(&reconcile, &whole_ring, &set_a, &report);
        assert_int_equal(reconcile_ask(&reconcile, question_memory, sizeof question_memory, &question, NULL),
                         ERR_OK);
        while (question.size > 0) {
            assert_int_equal(reconcile_answer(&whole_ring, &set_b, question, answer_memory,
                                              sizeof answer_memory, &answer, NULL),
                             ERR_OK);
            size += question.size + answer.size;
            assert_int_equal(
                reconcile_take(&reconcile, answer, question_memory, sizeof question_memory, &question, NULL),
                ERR_OK);
        }
        assert_int_equal(found_count, different);
        assert_true(size <= 100 + different * 3000);
        for (size_t n = 0; n < 5; n++) {
            ((n & 1) == 0 ? put : drop)(a, (n & 1) == 0 ? COMPARED_COUNT + different + n : different + n);
        }
        commit(a);
    }
    keyset_close(a);
    keyset_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_that_of_the_surt_or_of_its_host),
        cmocka_unit_test(a_section_is_the_first_part_of_the_path),
        cmocka_unit_test(what_begins_alike_is_at_one_place_where_nothing_can_change_it),
        cmocka_unit_test(sums_of_many_buckets_are_right),
        cmocka_unit_test_setup_teardown(equals_its_model_by_url, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(equals_its_model_by_host, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(equals_its_model_by_section, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(finds_the_capture_of_a_key, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(finds_all_keys_of_a_digest, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(what_was_committed_survives_the_process, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(another_mapping_empties_it, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(damage_empties_it, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_set_of_version_1_gets_its_sums_once, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_set_of_version_2_is_converted_once, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(finds_digests_while_captures_come_and_go, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_second_process_is_told_so, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(two_sets_are_compared, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
