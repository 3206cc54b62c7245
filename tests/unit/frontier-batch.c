#include "crawl/frontier/frontier_batch.h"

#include "unit.h"

/* What RocksDB is given, as text: "+key=value", and the count of removals, which its walk passes over. */
static void put_text(void *context, const char *key, size_t key_size, const char *value, size_t value_size) {
    buf_put_format(context, "+%.*s=%.*s ", (int)key_size, key, (int)value_size, value);
}

static void put_removed(void *context, const char *key, size_t key_size) {
    buf_put_format(context, "-%.*s ", (int)key_size, key); /* erased: single removals are not told */
}

static const char *given(struct frontier_batch *batch, struct buf *text, int *ret_count) {
    rocksdb_writebatch_t *writes = rocksdb_writebatch_create();
    buf_clear(text);
    frontier_batch_give(batch, writes);
    rocksdb_writebatch_iterate(writes, text, put_text, put_removed);
    *ret_count = rocksdb_writebatch_count(writes);
    rocksdb_writebatch_destroy(writes);
    return buf_string(text);
}

static void gives_in_the_order_of_the_keys(void **state) {
    (void)state;
    struct frontier_batch batch;
    struct buf text;
    int count = 0;
    frontier_batch_init(&batch);
    buf_init(&text, 1 << 16);
    frontier_batch_put(&batch, BYTES("b"), BYTES("1"));
    frontier_batch_put(&batch, BYTES("longer-than-eight-2"), BYTES("2"));
    frontier_batch_put(&batch, BYTES("longer-than-eight-1"), BYTES("3"));
    frontier_batch_put(&batch, BYTES("a"), BYTES(""));
    frontier_batch_put(&batch, BYTES("ab"), BYTES("5"));
    assert_string_equal(given(&batch, &text, &count),
                        "+a= +ab=5 +b=1 +longer-than-eight-1=3 +longer-than-eight-2=2 ");
    assert_string_equal(given(&batch, &text, &count),
                        "+a= +ab=5 +b=1 +longer-than-eight-1=3 +longer-than-eight-2=2 "); /* still there */
    frontier_batch_clear(&batch);
    assert_int_equal(frontier_batch_size(&batch), 0);
    assert_string_equal(given(&batch, &text, &count), "");
    buf_done(&text);
    frontier_batch_done(&batch);
}

static void gives_only_what_remains_of_a_key(void **state) {
    (void)state;
    struct frontier_batch batch;
    struct buf text;
    int count = 0;
    frontier_batch_init(&batch);
    buf_init(&text, 1 << 16);
    frontier_batch_put(&batch, BYTES("twice"), BYTES("1"));
    frontier_batch_put(&batch, BYTES("came-and-went"), BYTES("2"));
    frontier_batch_put(&batch, BYTES("twice"), BYTES("3"));
    frontier_batch_remove(&batch, BYTES("went"));
    frontier_batch_remove(&batch, BYTES("came-and-went"));
    frontier_batch_remove(&batch, BYTES("again"));
    frontier_batch_put(&batch, BYTES("again"), BYTES("4"));
    frontier_batch_remove(&batch, BYTES("went-for-good"));
    frontier_batch_put(&batch, BYTES("went-for-good"), BYTES("5"));
    frontier_batch_remove(&batch, BYTES("went-for-good"));
    assert_string_equal(given(&batch, &text, &count), "+again=4 +twice=3 ");
    assert_int_equal(count, 2 + 3); /* again, went, went-for-good */
    buf_done(&text);
    frontier_batch_done(&batch);
}

static void what_is_erased_goes_whatever_came_before(void **state) {
    (void)state;
    struct frontier_batch batch;
    struct buf text;
    int count = 0;
    frontier_batch_init(&batch);
    buf_init(&text, 1 << 16);
    frontier_batch_erase(&batch, BYTES("a"));
    frontier_batch_put(&batch, BYTES("b"), BYTES("1"));
    frontier_batch_erase(&batch, BYTES("b")); /* there may be an older one */
    frontier_batch_erase(&batch, BYTES("c"));
    frontier_batch_put(&batch, BYTES("c"), BYTES("2"));
    assert_string_equal(given(&batch, &text, &count), "-a -b +c=2 ");
    assert_int_equal(count, 3);
    buf_done(&text);
    frontier_batch_done(&batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_erased_goes_whatever_came_before),
        cmocka_unit_test(gives_in_the_order_of_the_keys),
        cmocka_unit_test(gives_only_what_remains_of_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
