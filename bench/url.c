/*
 * url - url_parse() against libcurl's URL API, on the same list of URLs as a crawl meets them.
 *
 * Both sides parse a text and give back the normalised URL. libcurl is measured with a handle per URL, as its
 * documentation shows, and with one handle for all.
 */
#include <curl/curl.h>
#include <stdlib.h>

#include "bench.h"
#include "web/url/canon.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { URLS_COUNT = 4000, ROUNDS = 7, REPEATS = 25, LIST_SIZE_MAX = 1 << 20 };

struct list {
    struct buf text;
    size_t starts[URLS_COUNT + 1]; /* each URL ends in a zero byte for libcurl */
};

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void put_words(struct buf *text, uint32_t *state, uint32_t count, const char *separator) {
    static const char *const words[] = {"news",   "2024",      "archive", "images",   "Article",
                                        "css",    "the-quick", "index",   "static",   "user",
                                        "photo",  "category",  "p",       "blog",     "w_300",
                                        "a1b2c3", "Search",    "wiki",    "products", "story"};
    for (uint32_t i = 0; i < count; i++) {
        buf_put_string(text, i > 0 ? separator : "");
        buf_put_string(text, words[next_random(state) % (sizeof words / sizeof *words)]);
    }
}

/* Hosts, depth and queries roughly as in a crawl's frontier; one in ten has escapes, one in thirty UTF-8. */
static void make_list(struct list *list) {
    static const char *const hosts[] = {"www.example.com",    "en.wikipedia.org", "cdn.images.example.net",
                                        "blog.example.co.uk", "WWW.Example.ORG",  "static1.example.de:8080"};
    static const char *const ends[] = {"", "/", ".html", ".php", ".jpg", "%20x.pdf", ".js", "/index.html"};
    uint32_t state = 1;
    buf_init(&list->text, LIST_SIZE_MAX);
    for (size_t i = 0; i < URLS_COUNT; i++) {
        list->starts[i] = list->text.size;
        buf_put_string(&list->text, next_random(&state) % 3 == 0 ? "http://" : "https://");
        buf_put_string(&list->text, hosts[next_random(&state) % (sizeof hosts / sizeof *hosts)]);
        buf_put_byte(&list->text, '/');
        put_words(&list->text, &state, next_random(&state) % 6, "/");
        buf_put_string(&list->text, ends[next_random(&state) % (sizeof ends / sizeof *ends)]);
        if (next_random(&state) % 30 == 0) {
            buf_put_string(&list->text, "/caf\xc3\xa9");
        }
        if (next_random(&state) % 3 == 0) {
            buf_put_string(&list->text, "?id=");
            put_words(&list->text, &state, 1 + next_random(&state) % 5, "&x=");
        }
        if (next_random(&state) % 10 == 0) {
            buf_put_string(&list->text, "#section-2");
        }
        buf_put_byte(&list->text, '\0');
    }
    list->starts[URLS_COUNT] = list->text.size;
    ASSERT(list->text.err == ERR_OK);
}

static struct bytes url_at(const struct list *list, size_t index) {
    return bytes_slice(buf_bytes(&list->text), list->starts[index], list->starts[index + 1] - 1);
}

static size_t parse_all(const struct list *list) {
    struct url url;
    url_init(&url);
    size_t sum = 0;
    for (size_t i = 0; i < URLS_COUNT; i++) {
        ASSERT(url_parse(&url, url_at(list, i), NULL, NULL) == ERR_OK);
        sum += url_href(&url).size;
    }
    url_done(&url);
    return sum;
}

static size_t curl_all(const struct list *list, bool one_handle) {
    CURLU *handle = one_handle ? curl_url() : NULL;
    size_t sum = 0;
    for (size_t i = 0; i < URLS_COUNT; i++) {
        CURLU *current = one_handle ? handle : curl_url();
        char *href = NULL;
        CURLUcode code =
            curl_url_set(current, CURLUPART_URL, (const char *)url_at(list, i).data, CURLU_URLENCODE);
        ASSERT(code == CURLUE_OK && curl_url_get(current, CURLUPART_URL, &href, 0) == CURLUE_OK);
        sum += strlen(href);
        curl_free(href);
        if (!one_handle) {
            curl_url_cleanup(current);
        }
    }
    curl_url_cleanup(handle);
    return sum;
}

static size_t curl_all_new_handles(const struct list *list) {
    return curl_all(list, false);
}

static size_t curl_all_one_handle(const struct list *list) {
    return curl_all(list, true);
}

static size_t surt_all(const struct list *list) {
    struct url url;
    struct canon canon;
    struct buf surt;
    url_init(&url);
    canon_init(&canon);
    buf_init(&surt, LIST_SIZE_MAX);
    size_t sum = 0;
    for (size_t i = 0; i < URLS_COUNT; i++) {
        buf_clear(&surt);
        ASSERT(url_parse(&url, url_at(list, i), NULL, NULL) == ERR_OK);
        ASSERT(canon_run(&canon, url_href(&url), NULL) == ERR_OK && surt_put(&surt, &canon) == ERR_OK);
        sum += surt.size;
    }
    buf_done(&surt);
    canon_done(&canon);
    url_done(&url);
    return sum;
}

static const char base_text[] = "https://www.example.com/news/2024/index.html?x=1";

/* The path of each URL of the list, as a link on a page. */
static struct bytes link_at(const struct list *list, size_t index) {
    struct bytes text = url_at(list, index);
    return bytes_skip(text, bytes_find(text, BYTES("//")) + (index % 2 == 0 ? 0 : 2));
}

static size_t resolve_all(const struct list *list) {
    struct url base;
    struct url url;
    url_init(&base);
    url_init(&url);
    ASSERT(url_parse(&base, bytes_of_string(base_text), NULL, NULL) == ERR_OK);
    size_t sum = 0;
    for (size_t i = 0; i < URLS_COUNT; i++) {
        if (url_parse(&url, link_at(list, i), &base, NULL) == ERR_OK) {
            sum += url_href(&url).size;
        }
    }
    url_done(&url);
    url_done(&base);
    return sum;
}

/* libcurl resolves against what the handle holds, so the base must be set again each time. */
static size_t curl_resolve_all(const struct list *list) {
    CURLU *base = curl_url();
    ASSERT(curl_url_set(base, CURLUPART_URL, base_text, 0) == CURLUE_OK);
    size_t sum = 0;
    for (size_t i = 0; i < URLS_COUNT; i++) {
        CURLU *current = curl_url_dup(base);
        char *href = NULL;
        if (curl_url_set(current, CURLUPART_URL, (const char *)link_at(list, i).data, CURLU_URLENCODE) ==
                CURLUE_OK &&
            curl_url_get(current, CURLUPART_URL, &href, 0) == CURLUE_OK) {
            sum += strlen(href);
        }
        curl_free(href);
        curl_url_cleanup(current);
    }
    curl_url_cleanup(base);
    return sum;
}

int main(void) {
    static const struct {
        const char *name;
        size_t (*run)(const struct list *list); /* a sum of sizes, lest the work be optimised away */
        int baseline;                           /* index of the row that it is compared with, or -1 */
    } rows[] = {
        {"libcurl, a handle per URL", curl_all_new_handles, -1},
        {"libcurl, one handle", curl_all_one_handle, -1},
        {"url_parse (against one handle)", parse_all, 1},
        {"url_parse + canon_run + surt_put", surt_all, 1},
        {"libcurl, relative to a base", curl_resolve_all, -1},
        {"url_parse, relative to a base", resolve_all, 4},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    static struct list list;
    make_list(&list);
    double best_s[ROWS];
    size_t sums[ROWS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int row = 0; row < ROWS; row++) {
            double start_s = bench_now_s();
            for (int repeat = 0; repeat < REPEATS; repeat++) {
                sums[row] = rows[row].run(&list);
            }
            double taken_s = (bench_now_s() - start_s) / REPEATS;
            best_s[row] = round == 0 || taken_s < best_s[row] ? taken_s : best_s[row];
        }
    }
    printf("%d URLs, %zu bytes on average, best of %d rounds\n", URLS_COUNT, list.text.size / URLS_COUNT,
           ROUNDS);
    for (int row = 0; row < ROWS; row++) {
        int baseline = rows[row].baseline;
        bench_row(rows[row].name, URLS_COUNT / best_s[row], "URLs/s",
                  baseline < 0 ? 0 : best_s[baseline] / best_s[row]);
    }
    buf_done(&list.text);
    return sums[0] > 0 ? 0 : 1;
}
