#include "protocol/copies/proofs.h"

#include "unit.h"

static const uint64_t MINUTE = UINT64_C(60000000);
static struct peer node(uint8_t number) {
    struct peer peer = {.key = {number}};
    return peer;
}

static void only_time_between_two_met_challenges_counts(void **state) {
    struct proofs proofs;
    struct peer a = node(1);
    (void)state;
    proofs_init(&proofs, 30 * MINUTE);
    proofs_note(&proofs, &a, ERR_OK, 10 * MINUTE);
    assert_true(proofs.items[0].proved_us == 0);
    proofs_note(&proofs, &a, ERR_OK, 20 * MINUTE);
    assert_true(proofs.items[0].proved_us == 10 * MINUTE);
    proofs_note(&proofs, &a, ERR_TIMEOUT, 25 * MINUTE); /* it may have been down */
    proofs_note(&proofs, &a, ERR_OK, 30 * MINUTE);
    assert_true(proofs.items[0].proved_us == 10 * MINUTE && proofs.items[0].failed_count == 0);
    proofs_note(&proofs, &a, ERR_OK, 35 * MINUTE);
    assert_true(proofs.items[0].proved_us == 15 * MINUTE);
    proofs_note(&proofs, &a, ERR_OK, 66 * MINUTE); /* too long ago */
    assert_true(proofs.items[0].proved_us == 15 * MINUTE);
    proofs_note(&proofs, &a, ERR_MISMATCH, 67 * MINUTE);
    proofs_note(&proofs, &a, ERR_OK, 68 * MINUTE);
    assert_true(proofs.items[0].proved_us == 15 * MINUTE && proofs.items[0].failed_count == 1);
    assert_true(proofs.items[0].met_count == 6 && proofs.count == 1);
    proofs_note(&proofs, &a, ERR_NOT_FOUND, 69 * MINUTE); /* it may be on its way there */
    proofs_note(&proofs, &a, ERR_OK, 70 * MINUTE);
    assert_true(proofs.items[0].proved_us == 15 * MINUTE && proofs.items[0].failed_count == 1);
}

static void the_one_that_was_challenged_longest_ago_makes_room(void **state) {
    struct proofs proofs;
    (void)state;
    proofs_init(&proofs, MINUTE);
    for (unsigned i = 0; i < PROOFS_MAX; i++) {
        struct peer peer = node((uint8_t)i);
        proofs_note(&proofs, &peer, ERR_OK, (i == 5 ? 1 : 1000 + i) * MINUTE);
    }
    struct peer late = node(200);
    proofs_note(&proofs, &late, ERR_OK, 5000 * MINUTE);
    assert_int_equal(proofs.count, PROOFS_MAX);
    assert_int_equal(proofs.items[5].key[0], 200);
    assert_true(proofs.items[5].met_count == 1 && proofs.items[5].proved_us == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_time_between_two_met_challenges_counts),
        cmocka_unit_test(the_one_that_was_challenged_longest_ago_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
