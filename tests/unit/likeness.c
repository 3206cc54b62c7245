/*
 * likeness - which of the URLs with one SURT is nearer to the one that was asked for.
 */
#include "web/url/likeness.h"
#include "unit.h"

static enum likeness_degree degree_of(const char *asked, const char *url) {
    struct likeness likeness;
    likeness_init(&likeness);
    assert_int_equal(likeness_ask(&likeness, bytes_of_string(asked)), ERR_OK);
    enum likeness_degree degree = likeness_of(&likeness, bytes_of_string(url));
    likeness_done(&likeness);
    return degree;
}

static void knows_the_same_url_in_another_spelling(void **state) {
    (void)state;
    assert_int_equal(degree_of("http://a.example/x", "http://a.example/x"), LIKENESS_SAME);
    assert_int_equal(degree_of("http://a.example/x", "http://A.example:80/x#top"), LIKENESS_SAME);
    assert_int_equal(degree_of(" HTTP://a.example", "http://a.example/"), LIKENESS_SAME);
    assert_int_equal(degree_of("http://me:secret@a.example/", "http://a.example/"), LIKENESS_SAME);
    assert_int_equal(degree_of("dns:a.example", "dns:a.example"), LIKENESS_SAME);
    assert_int_equal(degree_of("http://a b/", "http://a b/"), LIKENESS_SAME); /* no browser opens it */
}

static void takes_any_scheme_if_none_was_given(void **state) {
    (void)state;
    assert_int_equal(degree_of("a.example/x", "https://a.example/x"), LIKENESS_SAME);
    assert_int_equal(degree_of("a.example:8080/x", "http://a.example:8080/x"), LIKENESS_SAME);
    assert_int_equal(degree_of("a.example/x", "https://www.a.example/x"), LIKENESS_SITE);
    assert_int_equal(degree_of("", "https://www.a.example/x"), LIKENESS_SAME);
}

static void puts_scheme_and_www_before_capitals_and_order(void **state) {
    (void)state;
    assert_int_equal(degree_of("http://a.example/x", "https://a.example/x"), LIKENESS_SITE);
    assert_int_equal(degree_of("http://a.example/x", "http://www2.a.example/x"), LIKENESS_SITE);
    assert_int_equal(degree_of("https://www.a.example/", "http://a.example:80"), LIKENESS_SITE);
    assert_int_equal(degree_of("http://a.example/x", "http://a.example/X"), LIKENESS_FORM);
    assert_int_equal(degree_of("http://a.example/x", "http://a.example/x/"), LIKENESS_FORM);
    assert_int_equal(degree_of("http://a.example/?a=1&b=2", "http://a.example/?b=2&a=1"), LIKENESS_FORM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_same_url_in_another_spelling),
        cmocka_unit_test(takes_any_scheme_if_none_was_given),
        cmocka_unit_test(puts_scheme_and_www_before_capitals_and_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
