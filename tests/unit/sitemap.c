#include "crawl/rules/sitemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "unit.h"

enum { KEPT_MAX = 16 };

/* The first entries, copied. */
struct kept {
    uint32_t count;
    struct sitemap_entry entries[KEPT_MAX];
    char urls[KEPT_MAX][SITEMAP_URL_SIZE_MAX + 1];
};

static void keep(void *context, const struct sitemap_entry *entry) {
    struct kept *kept = context;
    if (kept->count < KEPT_MAX) {
        kept->entries[kept->count] = *entry;
        memcpy(kept->urls[kept->count], entry->url.data, entry->url.size);
        kept->urls[kept->count][entry->url.size] = '\0';
    }
    kept->count++;
}

/* By pieces of one size; the struct is returned for its counters. */
static void read_pieces(struct bytes text, size_t piece_size, struct kept *kept, struct sitemap *sitemap) {
    kept->count = 0;
    sitemap_init(sitemap, keep, kept);
    while (text.size > 0) {
        size_t size = text.size < piece_size ? text.size : piece_size;
        sitemap_feed(sitemap, bytes_slice(text, 0, size));
        text = bytes_skip(text, size);
    }
    sitemap_finish(sitemap);
}

/* The same by one byte, by seven and at once. */
static void read_text(const char *text, struct kept *kept, struct sitemap *sitemap) {
    static struct kept others[2];
    size_t size = strlen(text);
    read_pieces(bytes_of(text, size), 1, &others[0], sitemap);
    read_pieces(bytes_of(text, size), 7, &others[1], sitemap);
    read_pieces(bytes_of(text, size), size, kept, sitemap);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(others[i].count, kept->count);
        for (size_t j = 0; j < kept->count && j < KEPT_MAX; j++) {
            assert_string_equal(others[i].urls[j], kept->urls[j]);
        }
    }
}

static void reads_a_urlset(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    read_text(
        "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a > b -- c -->\n"
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
        "<url><loc> https://a.example/?a=1&amp;b=2 </loc><lastmod>2024-05-06</lastmod>"
        "<changefreq>Weekly</changefreq><priority>0.8</priority></url>\n"
        "<url>\n<priority>1.0</priority>\n<loc><![CDATA[https://a.example/x?y&z]]]></loc></url>"
        "<url><loc>https://a.example/&#233;&#x4e2d;&lt;&unknown;&</loc><lastmod>nonsense</lastmod></url>"
        "</urlset>",
        &kept, &sitemap);
    assert_int_equal(kept.count, 3);
    assert_string_equal(kept.urls[0], "https://a.example/?a=1&b=2");
    assert_false(kept.entries[0].is_sitemap);
    assert_string_equal(kept.urls[1], "https://a.example/x?y&z]");
    assert_string_equal(kept.urls[2], "https://a.example/\xc3\xa9\xe4\xb8\xad<&unknown;&");
    assert_int_equal(sitemap.entries_count, 3);
    assert_int_equal(sitemap.bad_count, 0);
}

static void reads_an_index(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    read_text("<sitemapindex><sitemap><loc>https://a.example/s1.xml.gz</loc>"
              "<lastmod>2024-10-01T18:23:17+02:00</lastmod></sitemap>"
              "<sitemap><loc>https://a.example/s2.xml</loc></sitemap></sitemapindex>",
              &kept, &sitemap);
    assert_int_equal(kept.count, 2);
    assert_true(kept.entries[0].is_sitemap && kept.entries[1].is_sitemap);
    assert_string_equal(kept.urls[0], "https://a.example/s1.xml.gz");
}

static void extensions_are_not_the_page(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    read_text("<sm:urlset xmlns:sm='x' xmlns:image='y'><sm:url><image:loc>bad</image:loc>"
              "<image:image><image:loc>https://a.example/i.jpg</image:loc></image:image>"
              "<xhtml:link rel='alternate' href='https://a.example/de'/><sm:loc>https://a.example/p</sm:loc>"
              "</sm:url></sm:urlset>",
              &kept, &sitemap);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.urls[0], "https://a.example/p");
}

static void reads_feeds(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    read_text(
        "<rss version='2.0'><channel><title>t</title><link>https://a.example/</link>"
        "<item><title>x &amp; <b>y</b></title><link>https://a.example/1</link>"
        "<pubDate>Fri, 02 Jan 2026 03:04:05 +0200</pubDate></item>"
        "<item><link><![CDATA[ https://a.example/2 ]]></link><pubDate>Fri, 02 Jan 2026 03:04:05 GMT</pubDate>"
        "</item></channel></rss>",
        &kept, &sitemap);
    assert_int_equal(kept.count, 2);
    assert_string_equal(kept.urls[0], "https://a.example/1");
    assert_string_equal(kept.urls[1], "https://a.example/2");

    read_text(
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='https://a.example/'/>"
        "<entry><link rel='self' href='https://a.example/self'/><link href=\"https://a.example/1?a&amp;b\"/>"
        "<link rel='enclosure' href='https://a.example/e'/><updated>2026-01-02T03:04:05Z</updated></entry>"
        "<entry><link href=https://a.example/2 rel=alternate></link></entry></feed>",
        &kept, &sitemap);
    assert_int_equal(kept.count, 2);
    assert_string_equal(kept.urls[0], "https://a.example/1?a&b");
    assert_string_equal(kept.urls[1], "https://a.example/2");
}

static void reads_plain_text(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    read_text("\xef\xbb\xbf  https://a.example/1\r\n\n# a comment\nhttps://a.example/2?x=<y>&amp;\nnonsense\n"
              "https://a.example/3",
              &kept, &sitemap);
    assert_int_equal(kept.count, 3);
    assert_string_equal(kept.urls[0], "https://a.example/1");
    assert_string_equal(kept.urls[1], "https://a.example/2?x=<y>&amp;");
    assert_string_equal(kept.urls[2], "https://a.example/3");
    assert_int_equal(sitemap.bad_count, 1);
}

static void broken_documents_give_what_they_have(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    read_text("<!DOCTYPE urlset [ <!ENTITY x \"y\"> <!ELEMENT url ANY> ]><urlset>"
              "<url><loc>https://a.example/1</loc><url><loc>https://a.example/2</loc></priority></url>"
              "</b></b><url><loc>https://a.example/3</loc>< url><url/><loc>stray</loc><url></url>"
              "<url><loc>https://a.example/4</loc><lastmod>2024",
              &kept, &sitemap);
    assert_string_equal(kept.urls[0], "https://a.example/1");
    assert_string_equal(kept.urls[1], "https://a.example/2");
    assert_string_equal(kept.urls[2], "https://a.example/3");
    assert_string_equal(kept.urls[kept.count - 1], "https://a.example/4");
    read_text("<html><head><link href='x'></head><body><a href='https://a.example/'>x</a></body></html>",
              &kept, &sitemap);
    assert_int_equal(kept.count, 0);
    read_text("", &kept, &sitemap);
    read_text("<", &kept, &sitemap);
    read_text("<![CDATA[", &kept, &sitemap);
    assert_int_equal(kept.count, 0);
}

static void long_urls_are_left_out(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    static char text[3 * SITEMAP_URL_SIZE_MAX];
    int size = snprintf(text, sizeof text, "<urlset><url><loc>https://a.example/%0*d</loc></url>",
                        SITEMAP_URL_SIZE_MAX, 0);
    snprintf(text + size, sizeof text - (size_t)size, "<url><loc>https://a.example/ok</loc></url></urlset>");
    read_text(text, &kept, &sitemap);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.urls[0], "https://a.example/ok");
    assert_int_equal(sitemap.bad_count, 1);
}

static void entries_above_the_limit_are_left_out(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    kept.count = 0;
    sitemap_init(&sitemap, keep, &kept);
    for (int i = 0; i < SITEMAP_ENTRIES_MAX + 7; i++) {
        sitemap_feed(&sitemap, BYTES("https://a.example/\n"));
    }
    sitemap_finish(&sitemap);
    assert_int_equal(kept.count, SITEMAP_ENTRIES_MAX);
}

static void bytes_above_the_limit_are_ignored(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    static uint8_t spaces[1 << 20];
    memset(spaces, ' ', sizeof spaces);
    kept.count = 0;
    sitemap_init(&sitemap, keep, &kept);
    sitemap_feed(&sitemap, BYTES("<urlset><url><loc>https://a.example/</loc></url>"));
    for (int i = 0; i < 51; i++) {
        sitemap_feed(&sitemap, bytes_of(spaces, sizeof spaces));
    }
    sitemap_feed(&sitemap, BYTES("<url><loc>https://a.example/late</loc></url>"));
    sitemap_finish(&sitemap);
    assert_true(sitemap.is_cut);
    assert_int_equal(kept.count, 1);
}

static size_t compress_text(struct bytes text, uint8_t *out, size_t out_size) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = out;
    stream.avail_out = (uInt)out_size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = out_size - stream.avail_out;
    deflateEnd(&stream);
    return size;
}

static enum err read_source(struct bytes bytes, struct kept *kept, struct sitemap *sitemap) {
    struct source_memory memory;
    struct err_detail detail = {0};
    source_memory_init(&memory, bytes);
    kept->count = 0;
    sitemap_init(sitemap, keep, kept);
    return sitemap_read(sitemap, &memory.source, &detail);
}

static void reads_gzip_by_its_first_bytes(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    struct bytes text = BYTES("<urlset><url><loc>https://a.example/1</loc></url></urlset>");
    uint8_t packed[1000];
    size_t size = compress_text(text, packed, sizeof packed);
    assert_int_equal(read_source(bytes_of(packed, size), &kept, &sitemap), ERR_OK);
    assert_int_equal(kept.count, 1);
    assert_int_equal(read_source(text, &kept, &sitemap), ERR_OK);
    assert_int_equal(kept.count, 1);
    assert_int_equal(read_source(bytes_of(packed, size - 9), &kept, &sitemap), ERR_TRUNCATED);
    packed[size - 6] ^= 0xff; /* in the CRC */
    assert_int_not_equal(read_source(bytes_of(packed, size), &kept, &sitemap), ERR_OK);
    assert_int_equal(read_source(bytes_of(NULL, 0), &kept, &sitemap), ERR_OK);
    assert_int_equal(kept.count, 0);
}

static void gzip_bombs_end_at_the_limit(void **state) {
    (void)state;
    static struct kept kept;
    static struct sitemap sitemap;
    size_t size = 80 << 20;
    uint8_t *spaces = malloc(size);
    uint8_t *packed = malloc(1 << 20);
    assert_true(spaces != NULL && packed != NULL);
    memset(spaces, ' ', size);
    memcpy(spaces + size - 20, "https://a.example/xx", 20);
    size_t packed_size = compress_text(bytes_of(spaces, size), packed, 1 << 20);
    assert_int_equal(read_source(bytes_of(packed, packed_size), &kept, &sitemap), ERR_OK);
    assert_true(sitemap.is_cut);
    assert_int_equal(sitemap.size, SITEMAP_SIZE_MAX);
    assert_int_equal(kept.count, 0);
    free(spaces);
    free(packed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_urlset),
        cmocka_unit_test(reads_an_index),
        cmocka_unit_test(extensions_are_not_the_page),
        cmocka_unit_test(reads_feeds),
        cmocka_unit_test(reads_plain_text),
        cmocka_unit_test(broken_documents_give_what_they_have),
        cmocka_unit_test(long_urls_are_left_out),
        cmocka_unit_test(entries_above_the_limit_are_left_out),
        cmocka_unit_test(bytes_above_the_limit_are_ignored),
        cmocka_unit_test(reads_gzip_by_its_first_bytes),
        cmocka_unit_test(gzip_bombs_end_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
