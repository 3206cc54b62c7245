/* mime-type - types as the standards of browsers read them: https://mimesniff.spec.whatwg.org, Fetch. */
#include "web/type/mime_type.h"

#include <stdio.h>

#include "unit.h"

/* "essence" or "essence;charset=…"; "" if it is no type. */
static const char *type_text(const struct mime_type *type, char out[256]) {
    snprintf(out, 256, "%s%s%s", type->essence, type->has_charset ? ";charset=" : "", type->charset);
    return out;
}

struct type_case {
    const char *input;
    const char *output;
};

static const struct type_case values[] = {
    {"text/html;charset=gbk", "text/html;charset=gbk"},
    {"TEXT/HTML;CHARSET=GBK", "text/html;charset=GBK"},
    /* only parameters that are written so count, and the first of each name */
    {"text/html;charset=gbk(", "text/html;charset=gbk("},
    {"text/html;x=(;charset=gbk", "text/html;charset=gbk"},
    {"text/html;charset=gbk;charset=windows-1255", "text/html;charset=gbk"},
    {"text/html;charset=();charset=GBK", "text/html;charset=()"},
    {"text/html;charset =gbk", "text/html"},
    {"text/html ;charset=gbk", "text/html;charset=gbk"},
    {"text/html; charset=gbk", "text/html;charset=gbk"},
    {"text/html;\n\t\r charset=gbk", "text/html;charset=gbk"},
    {"text/html;charset= gbk", "text/html;charset= gbk"},
    {"text/html;charset= \"gbk\"", "text/html;charset= \"gbk\""},
    {"text/html;charset=\v\"gbk\"", "text/html"},
    {"text/html;charset=\fgbk", "text/html"},
    {"text/html;charset=gbk \t", "text/html;charset=gbk"},
    {"text/html;charset='gbk'", "text/html;charset='gbk'"},
    {"text/html;charset='gbk", "text/html;charset='gbk"},
    {"text/html;test;charset=gbk", "text/html;charset=gbk"},
    {"text/html;test=;charset=gbk", "text/html;charset=gbk"},
    {"text/html;';charset=gbk", "text/html;charset=gbk"},
    {"text/html;\";charset=gbk", "text/html;charset=gbk"},
    {"text/html ; ; charset=gbk", "text/html;charset=gbk"},
    {"text/html;;;;charset=gbk", "text/html;charset=gbk"},
    {"text/html;charset= \";charset=GBK", "text/html;charset= \""},
    {"text/html;charset=\";charset=foo\";charset=GBK", "text/html;charset=;charset=foo"},
    {"text/html;charset=\"gbk\"", "text/html;charset=gbk"},
    {"text/html;charset=\"gbk", "text/html;charset=gbk"},
    {"text/html;charset=gbk\"", "text/html;charset=gbk\""},
    {"text/html;charset=\" gbk\"", "text/html;charset= gbk"},
    {"text/html;charset=\"gbk \"", "text/html;charset=gbk "},
    {"text/html;charset=\"\\ gbk\"", "text/html;charset= gbk"},
    {"text/html;charset=\"\\g\\b\\k\"", "text/html;charset=gbk"},
    {"text/html;charset=\"gbk\"x", "text/html;charset=gbk"},
    {"text/html;charset=\"\";charset=GBK", "text/html;charset="},
    {"text/html;charset=\"\\", "text/html;charset=\\"},
    {"text/html;charset=\"a\\\"b\"", "text/html;charset=a\"b"},
    {"text/html;charset=\"gbk\x7f\"", "text/html"},
    {"text/html;charset=\x80\xff", "text/html;charset=\x80\xff"},
    {"text/html;charset=", "text/html"},
    {"text/html;charset=;charset=GBK", "text/html;charset=GBK"},
    {"text/html;charset", "text/html"},
    {"text/html;=gbk;charset=x", "text/html;charset=x"},
    {"text/html;\xc3\xbc=gbk", "text/html"},
    {"text/html;", "text/html"},
    {"text/html;,image/png", "text/html"},
    {"x/x;x/x;charset=y", "x/x;charset=y"},
    {"!#$%&'*+-.^_`|~/!#$%&'*+-.^_`|~", "!#$%&'*+-.^_`|~/!#$%&'*+-.^_`|~"},
    {"*/*", "*/*"},
    {"\t \r\nimage/png\n", "image/png"},
    /* what is none */
    {"", ""},
    {" ", ""},
    {"/", ""},
    {"bogus", ""},
    {"bogus/", ""},
    {"bogus/ ", ""},
    {"/bogus", ""},
    {" /x", ""},
    {"bogus/bogus/;", ""},
    {"x/y/z", ""},
    {"text /html", ""},
    {"text/ html", ""},
    {"text/h tml", ""},
    {"te xt/html", ""},
    {"text;/html", ""},
    {";text/html", ""},
    {"</>", ""},
    {"(/)", ""},
    {"text/html(;doesnot=matter", ""},
    {"{/}", ""},
    {"\"/\"", ""},
    {"text/html,", ""},
    {"text/html,image/png", ""},
    {"\v text/html", ""},
    {"text/html\f", ""},
    {"text/html\xa0", ""},
    {"\xc3\xbf/x", ""},
    {"x/\xc5\x81", ""},
    {"image\\png", ""},
};

static void a_value_is_what_the_standard_makes_of_it(void **state) {
    (void)state;
    char text[256];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct mime_type type;
        bool is_type = mime_type_parse(&type, bytes_of_string(values[i].input));
        assert_string_equal(type_text(&type, text), values[i].output);
        assert_int_equal(is_type, values[i].output[0] != '\0');
    }
}

static const struct type_case headers[] = {
    {"text/html", "text/html"},
    {"image/png;,text/html", "text/html"}, /* the one that was taken for an image */
    {"image/png,text/html", "text/html"},
    {"text/html,image/png", "image/png"},
    {"text/html,", "text/html"},
    {",text/html", "text/html"},
    {" , ,text/html , ,", "text/html"},
    {"text/html,*/*", "text/html"},
    {"text/html,*/*;charset=gbk", "text/html"},
    {"*/*", ""},
    {"image/*,text/html", "text/html"},
    {"text/html,cannot-parse", "text/html"},
    {"text/html;charset=gbk,cannot-parse", "text/html;charset=gbk"},
    {"cannot-parse,text/html", "text/html"},
    {"text/html;charset=gbk,text/html", "text/html;charset=gbk"},
    {"text/html;charset=gbk,text/html;charset=windows-1254", "text/html;charset=windows-1254"},
    {"text/html;charset=gbk,text/html;charset=windows-1254,text/html", "text/html;charset=gbk"},
    {"text/html;charset=gbk,text/plain", "text/plain"},
    {"text/html;charset=gbk,text/plain,text/html", "text/html"},
    {"text/plain ; charset=gbk,text/html ; charset=windows-1254", "text/html;charset=windows-1254"},
    {"text/html;x=\",text/plain", "text/html"},
    {"text/html;\",text/plain", "text/html"},
    {"text/html;x=\",\",text/plain", "text/plain"},
    {"text/html;x=\"\\\",text/plain\"", "text/html"},
    {"text/html;x=\"\\\\\",text/plain", "text/plain"},
    {"text/html;charset=\"a,b\"", "text/html;charset=a,b"},
    {"text/html;\",\\\",text/plain", "text/html"},
    {"image/gif;a=\"\\\",text/html", "image/gif"},
    {"", ""},
    {",", ""},
    {",,,", ""},
    {"\"", ""},
    {"\\", ""},
};

static void the_last_type_of_a_header_counts(void **state) {
    (void)state;
    char text[256];
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct mime_type type;
        bool is_type = mime_type_extract(&type, bytes_of_string(headers[i].input));
        assert_string_equal(type_text(&type, text), headers[i].output);
        assert_int_equal(is_type, headers[i].output[0] != '\0');
    }
}

static void every_byte_of_a_name_is_a_token(void **state) {
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[] = {'x', '/', (uint8_t)byte, 'x'};
        struct mime_type type;
        bool is_token = byte_is_alnum((uint8_t)byte) || (byte != 0 && strchr("!#$%&'*+-.^_`|~", (int)byte));
        bool is_end = byte == ';';
        assert_int_equal(mime_type_parse(&type, bytes_of(text, sizeof text)), is_token && !is_end);
    }
}

static void names_have_a_limit(void **state) {
    (void)state;
    char text[512] = "image/";
    struct mime_type type;
    memset(text + 6, 'p', sizeof text - 7);
    assert_false(mime_type_extract(&type, bytes_of_string(text)));
    text[MIME_ESSENCE_SIZE_MAX] = '\0';
    assert_true(mime_type_extract(&type, bytes_of_string(text)));
    assert_string_equal(type.essence, text);
    text[MIME_ESSENCE_SIZE_MAX] = 'p';
    text[MIME_ESSENCE_SIZE_MAX + 1] = '\0';
    assert_false(mime_type_extract(&type, bytes_of_string(text)));
    assert_string_equal(type.essence, "");
    char charset[512] = "text/html;charset=";
    memset(charset + strlen(charset), 'u', 300);
    strcpy(charset + 300, ";charset=utf-8");
    assert_true(mime_type_extract(&type, bytes_of_string(charset)));
    assert_int_equal(mime_type_charset(&type).size, MIME_CHARSET_SIZE_MAX);
}

static void kinds_are_known(void **state) {
    (void)state;
    struct mime_type type;
    assert_true(mime_type_extract(&type, BYTES("Application/XHTML+xml")));
    assert_true(mime_type_is_html(&type) && mime_type_is_xml(&type) && !mime_type_is_script(&type));
    assert_true(mime_type_extract(&type, BYTES("image/svg+xml;x")));
    assert_true(mime_type_is_xml(&type) && mime_type_begins(&type, "image/") && !mime_type_is_html(&type));
    assert_true(mime_type_extract(&type, BYTES("text/javascript1.5")));
    assert_true(mime_type_is_script(&type));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_what_the_standard_makes_of_it),
        cmocka_unit_test(the_last_type_of_a_header_counts),
        cmocka_unit_test(every_byte_of_a_name_is_a_token),
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(kinds_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
