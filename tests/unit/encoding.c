/* encoding - which encoding a document is in, and conversions from and to it. */
#include "web/html/encoding.h"

#include "unit.h"
#include "web/html/transcode.h"

enum { TEXT_SIZE_MAX = 1 << 16 };

static const char *name_of(const struct encoding *encoding) {
    return encoding == NULL ? "none" : encoding->name;
}

static void labels_are_those_of_the_standard(void **state) {
    (void)state;
    static const struct {
        const char *label;
        const char *name;
    } labels[] = {
        {"utf-8", "UTF-8"},
        {" UTF8\n", "UTF-8"},
        {"Latin1", "windows-1252"},
        {"us-ascii", "windows-1252"},
        {"iso-8859-9", "windows-1254"},
        {"gb2312", "GBK"},
        {"x-sjis", "Shift_JIS"},
        {"ks_c_5601-1987", "EUC-KR"},
        {"utf-16", "UTF-16LE"},
        {"unicodefffe", "UTF-16BE"},
        {"iso-2022-kr", "replacement"},
        {"x-user-defined", "x-user-defined"},
        {"tis-620", "windows-874"},
        {"koi8-ru", "KOI8-U"},
        {"utf-7", "none"},
        {"", "none"},
        {"utf-8 utf8", "none"},
        {"l1 ", "windows-1252"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        const struct encoding *encoding = encoding_of_label(bytes_of_string(labels[i].label));
        assert_string_equal(name_of(encoding), labels[i].name);
    }
}

static void a_mark_a_header_and_a_meta_count_in_this_order(void **state) {
    (void)state;
    static const struct {
        const char *content_type;
        const char *head;
        const char *name;
    } cases[] = {
        {"text/html", "<html>", "windows-1252"},
        {"text/html; charset=koi8-r", "\xef\xbb\xbf<html>", "UTF-8"},
        {"text/html; charset=utf-8", "\xff\xfe<", "UTF-16LE"},
        {"text/html; charset=koi8-r", "<meta charset=utf-8>", "KOI8-R"},
        {"text/html; charset=\"koi8-r\"; x=y", "", "KOI8-R"},
        {"text/html; x=y; CHARSET=koi8-r ", "", "KOI8-R"},
        {"text/html; charset=nonsense", "<meta charset=utf-8>", "UTF-8"},
        {"text/html", "<meta charset=utf-8>", "UTF-8"},
        {"", "\xfe\xff", "UTF-16BE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct encoding *encoding =
            encoding_detect(encoding_of_type(bytes_of_string(cases[i].content_type)),
                            bytes_of_string(cases[i].head), ENCODING_HTML);
        assert_string_equal(name_of(encoding), cases[i].name);
    }
    const struct encoding *encoding = encoding_detect(NULL, BYTES("a{}"), ENCODING_TEXT);
    assert_string_equal(name_of(encoding), "UTF-8");
}

static void the_prescan_reads_what_browsers_read(void **state) {
    (void)state;
    static const struct {
        const char *head;
        const char *name;
    } cases[] = {
        {"<meta charset=koi8-r>", "KOI8-R"},
        {"<META\tCHARSET = 'koi8-r'>", "KOI8-R"},
        {"<meta/charset=koi8-r/>", "none"}, /* the value is "koi8-r/" */
        {"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>", "KOI8-R"},
        {"<meta content='text/html; charset=\"koi8-r\"; x' http-equiv=content-type>", "KOI8-R"},
        {"<meta content='text/html; charset=koi8-r'>", "none"},
        {"<meta http-equiv=content-type content='charset charset = koi8-r;x'>", "KOI8-R"},
        {"<meta http-equiv=content-type content='charset=\"koi8-r'>", "none"},
        {"<!-- <meta charset=utf-8> --><meta charset=koi8-r>", "KOI8-R"},
        {"<!-- > <meta charset=utf-8> --><meta charset=koi8-r>", "KOI8-R"},
        {"<!--><meta charset=koi8-r>", "KOI8-R"},
        {"<a title='<meta charset=utf-8>'><meta charset=koi8-r>", "KOI8-R"},
        {"</a title='<meta charset=utf-8>'><meta charset=koi8-r>", "KOI8-R"},
        {"<!DOCTYPE '<meta charset=koi8-r>", "none"},
        {"<?xml ?><meta charset=koi8-r>", "KOI8-R"},
        {"<script><meta charset=koi8-r>", "KOI8-R"},
        {"<metadata charset=koi8-r>", "none"},
        {"<meta name=x><meta charset=koi8-r>", "KOI8-R"},
        {"<meta charset=nonsense><meta charset=koi8-r>", "KOI8-R"},
        {"<meta charset=utf-8 charset=koi8-r>", "UTF-8"},
        {"<meta charset=utf-16>", "UTF-8"},
        {"<meta charset=x-user-defined>", "windows-1252"},
        {"< meta charset=koi8-r><meta", "none"},
        {"<meta charset=koi8-r", "none"},
        {"<", "none"},
        {"", "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct encoding *encoding =
            encoding_declared(NULL, bytes_of_string(cases[i].head), ENCODING_HTML);
        if (strcmp(name_of(encoding), cases[i].name) != 0) {
            fail_msg("%s: %s, not %s", cases[i].head, name_of(encoding), cases[i].name);
        }
    }
}

static void the_prescan_ends_after_1024_bytes(void **state) {
    (void)state;
    struct buf head;
    buf_init(&head, TEXT_SIZE_MAX);
    while (head.size < ENCODING_HEAD_SIZE) {
        buf_put_byte(&head, ' ');
    }
    buf_put_string(&head, "<meta charset=koi8-r>");
    assert_null(encoding_declared(NULL, buf_bytes(&head), ENCODING_HTML));
    assert_non_null(encoding_declared(NULL, bytes_skip(buf_bytes(&head), 100), ENCODING_HTML));
    buf_done(&head);
}

static void expect_utf8(const char *label, struct bytes text, struct bytes want) {
    struct transcode transcode;
    struct buf out;
    transcode_init(&transcode);
    buf_init(&out, TEXT_SIZE_MAX);
    transcode_start(&transcode, encoding_of_label(bytes_of_string(label)));
    assert_int_equal(transcode_put(&transcode, &out, text), ERR_OK);
    assert_bytes_equal(buf_bytes(&out), want);
    for (size_t piece = 1; piece < 6; piece++) {
        buf_clear(&out);
        transcode_start(&transcode, encoding_of_label(bytes_of_string(label)));
        for (size_t from = 0; from < text.size; from += piece) {
            size_t to = text.size - from < piece ? text.size : from + piece;
            assert_int_equal(transcode_put_piece(&transcode, &out, bytes_slice(text, from, to), false),
                             ERR_OK);
        }
        assert_int_equal(transcode_put_piece(&transcode, &out, (struct bytes){NULL, 0}, true), ERR_OK);
        assert_bytes_equal(buf_bytes(&out), want);
    }
    buf_done(&out);
    transcode_done(&transcode);
}

static void text_becomes_utf8_whole_and_in_pieces(void **state) {
    (void)state;
    expect_utf8("latin1", BYTES("a\x80\xe9"), BYTES("a\xe2\x82\xac\xc3\xa9"));
    expect_utf8("shift_jis", BYTES("\x83\x5c<"), BYTES("\xe3\x82\xbd<"));
    expect_utf8("euc-jp", BYTES("\xa5\xbd"), BYTES("\xe3\x82\xbd"));
    expect_utf8("gb18030", BYTES("\x81\x30\x81\x30"), BYTES("\xc2\x80"));
    expect_utf8("utf-16le", BYTES("\x3d\xd8\x00\xde<\0"), BYTES("\xf0\x9f\x98\x80<"));
    expect_utf8("iso-2022-jp", BYTES("\x1b$B%=\x1b(B<"), BYTES("\xe3\x82\xbd<"));
    expect_utf8("utf-16le", BYTES("a\0b"), BYTES("a\xef\xbf\xbd"));
    expect_utf8("x-user-defined", BYTES("a\xff"), BYTES("a\xef\xbf\xbd"));
    expect_utf8("replacement", BYTES("a"), BYTES("a"));
}

/* Every encoding of the table can be opened on this machine. */
static void every_encoding_decodes_ascii(void **state) {
    (void)state;
    static const char *const labels[] = {
        "utf-8",        "latin1",       "ibm866",       "iso-8859-2",   "iso-8859-3",     "iso-8859-4",
        "iso-8859-5",   "iso-8859-6",   "iso-8859-7",   "iso-8859-8",   "logical",        "iso-8859-10",
        "iso-8859-13",  "iso-8859-14",  "iso-8859-15",  "iso-8859-16",  "koi8-r",         "koi8-u",
        "macintosh",    "windows-874",  "windows-1250", "windows-1251", "windows-1253",   "windows-1254",
        "windows-1255", "windows-1256", "windows-1257", "windows-1258", "x-mac-cyrillic", "gbk",
        "gb18030",      "big5",         "euc-jp",       "iso-2022-jp",  "shift_jis",      "euc-kr",
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        expect_utf8(labels[i], BYTES("<a>"), BYTES("<a>"));
        const struct encoding *encoding = encoding_of_label(bytes_of_string(labels[i]));
        if (encoding->iconv_name != NULL) {
            iconv_t converter = iconv_open("UTF-8", encoding->iconv_name);
            assert_true(converter != (iconv_t)-1);
            iconv_close(converter);
        }
    }
}

static void only_queries_are_put_into_the_encoding_again(void **state) {
    (void)state;
    static const struct {
        const char *label;
        const char *reference;
        const char *want;
    } cases[] = {
        {"latin1", "\xc3\xa9?\xc3\xa9#\xc3\xa9", "\xc3\xa9?%E9#\xc3\xa9"},
        {"latin1", "x?\xe2\x98\x83y", "x?%26%239731%3By"},
        {"shift_jis", "?\xe3\x82\xbd", "?%83%5C"},
        {"utf-8", "?\xc3\xa9", "?\xc3\xa9"},
        {"utf-16", "?\xc3\xa9", "?\xc3\xa9"},
        {"koi8-r", "#?\xd0\xb0", "#?\xd0\xb0"},
        {"koi8-r", "?\xff", "?\xff"},
        {"replacement", "?\xc3\xa9", "?\xc3\xa9"},
    };
    struct transcode transcode;
    struct buf out;
    transcode_init(&transcode);
    buf_init(&out, TEXT_SIZE_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf_clear(&out);
        transcode_start(&transcode, encoding_of_label(bytes_of_string(cases[i].label)));
        assert_int_equal(transcode_put_reference(&transcode, &out, bytes_of_string(cases[i].reference)),
                         ERR_OK);
        assert_bytes_equal(buf_bytes(&out), bytes_of_string(cases[i].want));
    }
    buf_done(&out);
    transcode_done(&transcode);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_those_of_the_standard),
        cmocka_unit_test(a_mark_a_header_and_a_meta_count_in_this_order),
        cmocka_unit_test(the_prescan_reads_what_browsers_read),
        cmocka_unit_test(the_prescan_ends_after_1024_bytes),
        cmocka_unit_test(text_becomes_utf8_whole_and_in_pieces),
        cmocka_unit_test(every_encoding_decodes_ascii),
        cmocka_unit_test(only_queries_are_put_into_the_encoding_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
