#include <stdio.h>

#include "base/sha256.h"
#include "base/utc.h"
#include "unit.h"
#include "warc/unpack.h"
#include "warc/wacz_reader.h"
#include "warc/wacz_writer.h"
#include "warc/zip_source.h"

enum { FILE_SIZE_MAX = 4 << 20, LINES_COUNT = 2 * WACZ_ZIPNUM_LINES + 100 };

static const int64_t some_time_us = INT64_C(1767323045000000); /* 2026-01-02T03:04:05Z */

/* ---- files ---- */

struct file {
    const char *name;
    const char *text;
};

/* A ZIP file of these, whatever they say. */
static void make_zip(struct buf *out, const struct file *files, size_t count) {
    struct sink_buf sink;
    struct zip_writer zip;
    buf_init(out, FILE_SIZE_MAX);
    sink_buf_init(&sink, out);
    zip_writer_init(&zip, &sink.sink, some_time_us);
    for (size_t i = 0; i < count; i++) {
        struct bytes text = bytes_of_string(files[i].text);
        assert_int_equal(zip_writer_start(&zip, bytes_of_string(files[i].name), text.size, NULL), ERR_OK);
        assert_int_equal(zip_writer_write(&zip, text, NULL), ERR_OK);
        assert_int_equal(zip_writer_end(&zip, NULL), ERR_OK);
    }
    assert_int_equal(zip_writer_finish(&zip, NULL), ERR_OK);
    zip_writer_done(&zip);
}

static enum err open_bytes(struct wacz_reader *wacz, struct source_memory *memory, struct bytes bytes,
                           struct err_detail *detail) {
    source_memory_init(memory, bytes);
    return wacz_reader_open(wacz, &memory->source, bytes.size, detail);
}

static void make_wacz(struct buf *out) {
    struct sink_buf sink;
    struct wacz_writer writer;
    buf_init(out, FILE_SIZE_MAX);
    sink_buf_init(&sink, out);
    assert_int_equal(wacz_writer_init(&writer, &sink.sink, some_time_us), ERR_OK);
    static const struct file files[] = {{WACZ_WARC_PATH, "WARC/1.1 and so on"},
                                        {WACZ_INDEX_PATH, "org,example)/ 2026 {}\n"},
                                        {WACZ_PAGES_PATH, "{}\n"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(wacz_writer_start(&writer, files[i].name, UINT64_MAX, NULL), ERR_OK);
        assert_int_equal(sink_append(&writer.sink, bytes_of_string(files[i].text), NULL), ERR_OK);
        assert_int_equal(wacz_writer_end(&writer, NULL), ERR_OK);
    }
    assert_int_equal(wacz_writer_finish(&writer, BYTES("mnemon \"test\""), BYTES(""), NULL), ERR_OK);
    wacz_writer_done(&writer);
}

static void reads_what_it_writes(void **state) {
    (void)state;
    struct buf file;
    struct wacz_reader wacz;
    struct source_memory memory;
    struct err_detail detail = {0};
    make_wacz(&file);
    assert_int_equal(open_bytes(&wacz, &memory, buf_bytes(&file), &detail), ERR_OK);
    assert_int_equal(wacz.resources_count, 5);
    assert_true(wacz.has_package);
    for (size_t i = 0; i < wacz.resources_count; i++) {
        const struct wacz_resource *resource = &wacz.resources[i];
        bool is_package = bytes_starts_with(resource->entry->name, BYTES("datapackage"));
        assert_int_equal(resource->is_warc, bytes_equal(resource->entry->name, BYTES(WACZ_WARC_PATH)));
        assert_int_equal(resource->has_digest, !is_package);
        assert_int_equal(wacz_reader_check(resource, &memory.source, &detail), ERR_OK);
    }
    wacz_reader_done(&wacz);
    buf_done(&file);
}

static void a_changed_byte_is_found_where_it_is(void **state) {
    (void)state;
    struct buf file;
    struct wacz_reader wacz;
    struct source_memory memory;
    struct err_detail detail = {0};
    make_wacz(&file);
    file.data[bytes_find(buf_bytes(&file), BYTES("and so on"))] ^= 1;
    assert_int_equal(open_bytes(&wacz, &memory, buf_bytes(&file), &detail), ERR_OK);
    size_t bad_count = 0;
    for (size_t i = 0; i < wacz.resources_count; i++) {
        if (wacz_reader_check(&wacz.resources[i], &memory.source, &detail) != ERR_OK) {
            bad_count++;
            assert_true(wacz.resources[i].is_warc);
            assert_non_null(strstr(detail.text, WACZ_WARC_PATH));
        }
    }
    assert_int_equal(bad_count, 1);
    wacz_reader_done(&wacz);
    buf_done(&file);
}

/* ---- packages ---- */

static void a_digest_that_is_another_is_a_mismatch(void **state) {
    (void)state;
    static const struct file files[] = {
        {"archive/a.warc.gz", "the CRC-32 of these bytes is right"},
        {"datapackage.json",
         "{\"resources\": [{\"path\": \"archive/a.warc.gz\", \"hash\": "
         "\"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}]}"}};
    struct buf file;
    struct wacz_reader wacz;
    struct source_memory memory;
    struct err_detail detail = {0};
    make_zip(&file, files, 2);
    assert_int_equal(open_bytes(&wacz, &memory, buf_bytes(&file), &detail), ERR_OK);
    assert_int_equal(wacz_reader_check(&wacz.resources[0], &memory.source, &detail), ERR_MISMATCH);
    assert_non_null(strstr(detail.text, "archive/a.warc.gz"));
    wacz_reader_done(&wacz);
    buf_done(&file);
}

static void refuses_packages_that_lie(void **state) {
    (void)state;
    static const struct {
        const char *package;
        const char *digest; /* NULL: no such file */
        enum err err;
        const char *reason;
    } cases[] = {
        {"{}", "{\"hash\": \"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}",
         ERR_OK, ""},
        {"{ }", "{\"hash\": \"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}",
         ERR_MISMATCH, "datapackage-digest.json"},
        {"{}", "{\"hash\": \"sha256:4413\"}", ERR_INVALID, ""},
        {"{}", "{", ERR_INVALID, "datapackage-digest.json"},
        {"[]", NULL, ERR_INVALID, "no JSON object"},
        {"", NULL, ERR_INVALID, "no JSON object"},
        {"{\"profile\": \"multi-wacz-package\"}", NULL, ERR_UNSUPPORTED, "collection"},
        {"{\"resources\": [{\"path\": \"archive/b\"}]}", NULL, ERR_MISMATCH, "archive/b"},
        {"{\"resources\": [{\"path\": \"../archive/a\"}]}", NULL, ERR_MISMATCH, "not there"},
        {"{\"resources\": [{\"path\": \"archive/a\", \"bytes\": 1}]}", NULL, ERR_OK, ""},
        {"{\"resources\": [{\"path\": \"archive/a\", \"bytes\": 2}]}", NULL, ERR_MISMATCH, "size"},
        {"{\"resources\": [{\"path\": \"archive/a\", \"bytes\": -1}]}", NULL, ERR_MISMATCH, "size"},
        {"{\"resources\": [{\"path\": \"archive/a\", \"hash\": \"sha256:xyz\"}]}", NULL, ERR_MISMATCH,
         "no digest"},
        {"{\"resources\": [{\"path\": \"archive/a\", \"hash\": \"blake3:00\"}]}", NULL, ERR_OK, ""},
        {"{\"resources\": [{\"path\": \"archive/a\", \"hash\": \"md5:0cc175b9c0f1b6a831c399e269772661\"}, "
         "{\"path\": \"archive/a\"}]}",
         NULL, ERR_INVALID, "twice"},
        {"{\"resources\": \"archive/a\"}", NULL, ERR_OK, ""},
        {"{\"resources\": [7]}", NULL, ERR_MISMATCH, "not there"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct file files[] = {{"archive/a", "a"},
                               {"datapackage.json", cases[i].package},
                               {"datapackage-digest.json", cases[i].digest}};
        struct buf file;
        struct wacz_reader wacz;
        struct source_memory memory;
        struct err_detail detail = {0};
        make_zip(&file, files, cases[i].digest == NULL ? 2 : 3);
        enum err err = open_bytes(&wacz, &memory, buf_bytes(&file), &detail);
        if (err != cases[i].err || strstr(detail.text, cases[i].reason) == NULL) {
            fail_msg("%s: %s: %s", cases[i].package, err_name(err), detail.text);
        }
        if (err == ERR_OK) {
            wacz_reader_done(&wacz);
        }
        buf_done(&file);
    }
}

static void reads_files_without_a_package(void **state) {
    (void)state;
    static const struct file files[] = {
        {"archive/a.warc", ""}, {"archive/b.warc.gz", ""}, {"archive/c.txt", ""}, {"d.warc", ""}};
    struct buf file;
    struct wacz_reader wacz;
    struct source_memory memory;
    make_zip(&file, files, 4);
    assert_int_equal(open_bytes(&wacz, &memory, buf_bytes(&file), NULL), ERR_OK);
    assert_false(wacz.has_package);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(wacz.resources[i].is_warc, i < 2);
        assert_int_equal(wacz_reader_check(&wacz.resources[i], &memory.source, NULL), ERR_OK);
    }
    wacz_reader_done(&wacz);
    buf_done(&file);
}

/* ---- index ---- */

static void make_line(struct buf *line, size_t i) {
    buf_clear(line);
    buf_put_format(line, "org,example)/%05zu 20260102030405 {\"offset\": \"%zu\"}\n", i, i);
}

static void unpack_member(struct bytes member, struct buf *out) {
    struct source_memory memory;
    struct unpack unpack;
    enum unpack_event event = UNPACK_BYTES;
    source_memory_init(&memory, member);
    assert_int_equal(unpack_init(&unpack, NULL), ERR_OK);
    unpack_open(&unpack, &memory.source);
    while (event == UNPACK_BYTES) {
        assert_int_equal(unpack_fill(&unpack, &event, NULL), ERR_OK);
        struct bytes ready = unpack_ready(&unpack);
        buf_put(out, ready);
        unpack_consume(&unpack, ready.size);
    }
    assert_int_equal(event, UNPACK_MEMBER_END);
    assert_int_equal(unpack_stored_end(&unpack), member.size);
    unpack_done(&unpack);
}

static void an_index_in_blocks_leads_to_every_line(void **state) {
    (void)state;
    struct buf blocks;
    struct buf idx;
    struct buf line;
    struct buf all;
    struct buf wanted;
    struct sink_buf blocks_sink;
    struct sink_buf idx_sink;
    struct wacz_zipnum zipnum;
    struct buf *bufs[] = {&blocks, &idx, &line, &all, &wanted};
    for (size_t i = 0; i < 5; i++) {
        buf_init(bufs[i], FILE_SIZE_MAX);
    }
    sink_buf_init(&blocks_sink, &blocks);
    sink_buf_init(&idx_sink, &idx);
    assert_int_equal(wacz_zipnum_init(&zipnum, &blocks_sink.sink, &idx_sink.sink, "index.cdx.gz"), ERR_OK);
    for (size_t i = 0; i < LINES_COUNT; i++) {
        make_line(&line, i);
        buf_put(&wanted, buf_bytes(&line));
        assert_int_equal(wacz_zipnum_put(&zipnum, buf_bytes(&line), NULL), ERR_OK);
    }
    assert_int_equal(wacz_zipnum_finish(&zipnum, NULL), ERR_OK);
    wacz_zipnum_done(&zipnum);

    struct bytes rest = buf_bytes(&idx);
    struct bytes text;
    size_t count = 0;
    while (bytes_split(&rest, '\n', &text) && text.size > 0) {
        char copy[256];
        uintmax_t offset;
        uintmax_t length;
        size_t number;
        snprintf(copy, sizeof copy, "%.*s", BYTES_ARG(text));
        if (count++ == 0) {
            assert_string_equal(copy,
                                "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}");
            continue;
        }
        int fields = sscanf(copy, "org,example)/%zu 20260102030405 {\"offset\": %ju, \"length\": %ju, ",
                            &number, &offset, &length);
        assert_int_equal(fields, 3);
        assert_int_equal(number, (count - 2) * WACZ_ZIPNUM_LINES);
        unpack_member(bytes_slice(buf_bytes(&blocks), (size_t)offset, (size_t)(offset + length)), &all);
    }
    assert_int_equal(count, 4);
    assert_bytes_equal(buf_bytes(&all), buf_bytes(&wanted));
    for (size_t i = 0; i < 5; i++) {
        buf_done(bufs[i]);
    }
}

/* ---- pages ---- */

static void writes_pages_as_json_lines(void **state) {
    (void)state;
    struct buf out;
    struct sha256 sha256;
    buf_init(&out, FILE_SIZE_MAX);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    assert_int_equal(wacz_put_page(&out, &sha256, BYTES("http://a/"), some_time_us, BYTES("\"A\"\xff")),
                     ERR_OK);
    assert_int_equal(wacz_put_page(&out, &sha256, BYTES("http://b/"), some_time_us, bytes_of(NULL, 0)),
                     ERR_OK);
    assert_bytes_equal(buf_bytes(&out),
                       BYTES("{\"id\": \"c8cda52ac5487b12\", \"url\": \"http://a/\", \"ts\": "
                             "\"2026-01-02T03:04:05Z\", \"title\": \"\\\"A\\\"\xef\xbf\xbd\"}\n"
                             "{\"id\": \"2ef0e91ce440f6ae\", \"url\": \"http://b/\", \"ts\": "
                             "\"2026-01-02T03:04:05Z\"}\n"));
    sha256_done(&sha256);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(a_changed_byte_is_found_where_it_is),
        cmocka_unit_test(a_digest_that_is_another_is_a_mismatch),
        cmocka_unit_test(refuses_packages_that_lie),
        cmocka_unit_test(reads_files_without_a_package),
        cmocka_unit_test(an_index_in_blocks_leads_to_every_line),
        cmocka_unit_test(writes_pages_as_json_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
