/* One capture for the nodes that got the same bytes in one visit, in both directions and from any place on.
 */
#include "store/instance/witnesses.h"

#include <stdio.h>

#include "unit.h"

enum { SECOND_US = 1000000, VISIT_S = 100, COUNT_MAX = 64 };

/* Captures in the order of their times; the walk begins at `from` and shows the rest. */
struct list {
    struct capture captures[COUNT_MAX];
    size_t count;
    size_t from;
    size_t next;
    bool in_reverse;
    char surt[8]; /* what was given is not valid any more at the next call */
};

static enum err draw(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct list *list = context;
    (void)detail;
    if (list->next == list->count - list->from) {
        return ERR_NOT_FOUND;
    }
    size_t index = list->in_reverse ? list->count - 1 - list->next : list->from + list->next;
    list->next++;
    *ret_capture = list->captures[index];
    snprintf(list->surt, sizeof list->surt, "%.*s", BYTES_ARG(list->captures[index].surt));
    ret_capture->surt = bytes_of_string(list->surt);
    return ERR_OK;
}

static enum err look_before(void *context, const struct capture *capture, bool *ret_has,
                            struct err_detail *detail) {
    const struct list *list = context;
    (void)detail;
    *ret_has = false;
    for (size_t i = 0; i < list->from; i++) {
        *ret_has = *ret_has || witnesses_are_one(&list->captures[i], capture);
    }
    return ERR_OK;
}

static struct capture *add(struct list *list, int64_t second, uint8_t digest, uint16_t signer) {
    struct capture *capture = &list->captures[list->count++];
    *capture = (struct capture){.surt = BYTES("a"),
                                .url = BYTES("http://a/"),
                                .time_us = second * SECOND_US,
                                .status = 200,
                                .flags = CAPTURE_WITNESS,
                                .visit_s = VISIT_S,
                                .signer = signer};
    memset(capture->digest, digest, sizeof capture->digest);
    return capture;
}

/* The seconds of what is given from that one on. */
static const char *told(struct list *list, size_t from, bool in_reverse) {
    static char out[512];
    struct witnesses witnesses;
    const struct witnesses_source source = {
        .draw = draw, .look_before = look_before, .context = list, .in_reverse = in_reverse};
    struct capture capture;
    enum err err;
    int size = 0;
    list->from = from;
    list->next = 0;
    list->in_reverse = in_reverse;
    witnesses_init(&witnesses);
    while ((err = witnesses_next(&witnesses, &source, &capture, NULL)) == ERR_OK) {
        size += snprintf(out + size, sizeof out - (size_t)size, "%s%jd", size > 0 ? " " : "",
                         (intmax_t)(capture.time_us / SECOND_US));
        assert_true(capture.surt.size == 1 && bytes_equal(capture.url, BYTES("http://a/")));
    }
    assert_int_equal(err, ERR_NOT_FOUND);
    assert_int_equal(witnesses_next(&witnesses, &source, &capture, NULL), ERR_NOT_FOUND);
    witnesses_done(&witnesses);
    return size > 0 ? out : "";
}

static void fill(struct list *list) {
    *list = (struct list){.count = 0};
    add(list, 101, 7, 1);
    add(list, 102, 8, 2); /* got something else */
    add(list, 103, 7, 3);
    add(list, 104, 7, 4);               /* the same as the first */
    add(list, 105, 7, 1);               /* the first once more */
    add(list, 106, 7, 5)->status = 404; /* another answer */
    add(list, 107, 7, 6)->flags = 0;    /* not in a visit of several */
    add(list, 205, 7, 1)->visit_s = 200;
    add(list, 206, 7, 2)->visit_s = 200;
}

static void the_first_stands_for_those_that_got_the_same(void **state) {
    (void)state;
    struct list list;
    fill(&list);
    assert_string_equal(told(&list, 0, false), "101 102 106 107 205");
    assert_string_equal(told(&list, 0, true), "205 107 106 102 101");
}

static void also_if_it_lies_before_the_range(void **state) {
    (void)state;
    struct list list;
    fill(&list);
    for (size_t i = 0; i < 2; i++) {
        bool in_reverse = i == 1;
        assert_string_equal(told(&list, 1, in_reverse), in_reverse ? "205 107 106 102" : "102 106 107 205");
        assert_string_equal(told(&list, 3, in_reverse), in_reverse ? "205 107 106" : "106 107 205");
        assert_string_equal(told(&list, 8, in_reverse), "");
    }
}

static void another_surt_ends_the_visit(void **state) {
    (void)state;
    struct list list = {.count = 0};
    add(&list, 101, 7, 1);
    add(&list, 101, 7, 1)->surt = BYTES("b");
    add(&list, 102, 7, 2)->surt = BYTES("b");
    assert_string_equal(told(&list, 0, false), "101 101");
    assert_string_equal(told(&list, 0, true), "101 101");
}

static void a_304_of_one_goes_with_the_200_of_another(void **state) {
    (void)state;
    struct list list = {.count = 0};
    add(&list, 101, 7, 1);
    add(&list, 102, 7, 2)->status = 304;
    assert_string_equal(told(&list, 0, true), "101");
    list.captures[0].status = 301;
    assert_string_equal(told(&list, 0, true), "102 101");
}

static void no_more_is_kept_than_there_is_room_for(void **state) {
    (void)state;
    struct list list = {.count = 0};
    add(&list, 101, 7, 1);
    for (uint8_t i = 0; i < 2 * WITNESSES_KEPT_MAX; i++) {
        add(&list, 110 + i, 50 + i, 1);
    }
    add(&list, 190, 7, 2); /* too far from the first: given, but nothing is lost or out of order */
    add(&list, 191, 7, 3);
    told(&list, 0, false);
    assert_non_null(strstr(told(&list, 0, false), "141 190"));
    assert_null(strstr(told(&list, 0, false), "191"));
    assert_non_null(strstr(told(&list, 0, true), "190 141"));
    assert_non_null(strstr(told(&list, 0, true), "110 101"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_stands_for_those_that_got_the_same),
        cmocka_unit_test(also_if_it_lies_before_the_range),
        cmocka_unit_test(another_surt_ends_the_visit),
        cmocka_unit_test(a_304_of_one_goes_with_the_200_of_another),
        cmocka_unit_test(no_more_is_kept_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
