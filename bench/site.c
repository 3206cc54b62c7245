/*
 * site DIR HOSTS PAGES ADDRESS PORT - write a site to crawl: DIR/0 … are the roots of its hosts.
 *
 * Pages of about 12 KB with 36 links each, 0.77 images of 32 KB a page. A quarter of the leaf pages and of
 * the images have the body of an earlier one. Host i is ADDRESS (such as 127.0.1.) followed by i + 1. Every
 * page is reached from page 0: each leads to 18 children and 18 others. The same on every machine.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "corpus.h"

enum { CHILDREN_COUNT = 18, OTHERS_COUNT = 18, IMAGES_PERCENT = 77, SEED = 4, PATH_SIZE_MAX = 4096 };

struct site {
    struct corpus corpus;
    const char *directory;
    uint64_t hosts_count;
    uint64_t pages_count;
    const char *address;
    const char *port;
};

static void fail(const char *what) {
    fprintf(stderr, "site: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_file(const struct site *site, uint64_t host, const char *name, struct bytes text) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%ju/%s", site->directory, (uintmax_t)host, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(text.data, 1, text.size, file) != text.size || fclose(file) != 0) {
        fail(path);
    }
}

static uint64_t random_of(uint64_t stream) {
    struct prng prng;
    prng_init_stream(&prng, SEED, stream);
    return prng_u64(&prng);
}

/* Page p has the body of this page. Only leaves repeat others: all pages can be reached. */
static uint64_t original(const struct site *site, uint64_t p) {
    uint64_t first_leaf = site->pages_count / CHILDREN_COUNT + 2;
    if (p <= first_leaf || random_of(p * 8 + 1) % 4 != 0) {
        return p;
    }
    return original(site, first_leaf + random_of(p * 8 + 2) % (p - first_leaf));
}

static bool has_image(uint64_t p) {
    return p * IMAGES_PERCENT / 100 != (p + 1) * IMAGES_PERCENT / 100;
}

static void put_page_url(const struct site *site, uint64_t p, struct buf *out) {
    buf_put_format(out, "http://%s%ju:%s/d%ju/p%ju.html", site->address,
                   (uintmax_t)(p % site->hosts_count + 1), site->port, (uintmax_t)(p / 1000), (uintmax_t)p);
}

static void put_link(const struct site *site, uint64_t p, struct buf *out) {
    buf_put_string(out, "<li><a href=\"");
    put_page_url(site, p, out);
    buf_put_format(out, "\">page %ju of the site</a></li>\n", (uintmax_t)p);
}

/* A page of the corpus whose own links lead nowhere, and ours behind it. */
static void put_page(const struct site *site, uint64_t p, struct buf *out) {
    size_t from = out->size;
    corpus_put_page(&site->corpus, p, out);
    for (size_t i = from; i + 6 < out->size; i++) {
        if (memcmp(out->data + i, "href=\"", 6) == 0 || memcmp(out->data + i, " src=\"", 6) == 0) {
            memcpy(out->data + i, out->data[i] == ' ' ? " alt=\"" : "lang=\"", 6);
        }
    }
    buf_put_string(out, "<ul class=\"pages\">\n");
    for (uint64_t i = 0; i < CHILDREN_COUNT; i++) {
        uint64_t child = p * CHILDREN_COUNT + 1 + i;
        put_link(site, child < site->pages_count ? child : random_of(p * 64 + i) % site->pages_count, out);
    }
    for (uint64_t i = 0; i < OTHERS_COUNT; i++) {
        put_link(site, random_of(p * 64 + 32 + i) % site->pages_count, out);
    }
    buf_put_string(out, "</ul>\n");
    if (has_image(p)) {
        buf_put_format(out, "<img src=\"/d%ju/i%ju.jpg\" alt=\"\">\n", (uintmax_t)(p / 1000), (uintmax_t)p);
    }
}

static void write_page(const struct site *site, uint64_t p, struct buf *text) {
    char name[64];
    uint64_t host = p % site->hosts_count;
    buf_clear(text);
    put_page(site, original(site, p), text);
    snprintf(name, sizeof name, "d%ju/p%ju.html", (uintmax_t)(p / 1000), (uintmax_t)p);
    write_file(site, host, name, buf_bytes(text));
}

/* The image that a page shows lies beside it; where the page repeats another, so does its image. */
static void write_image(const struct site *site, uint64_t p, struct buf *text) {
    char name[64];
    uint64_t source = original(site, p);
    if (!has_image(source)) {
        return;
    }
    uint64_t content = random_of(source * 8 + 3) % 4 == 0 ? source / 2 : source;
    buf_clear(text);
    corpus_put_image(&site->corpus, content, text);
    snprintf(name, sizeof name, "d%ju/i%ju.jpg", (uintmax_t)(source / 1000), (uintmax_t)source);
    write_file(site, p % site->hosts_count, name, buf_bytes(text));
}

static void make_directories(const struct site *site) {
    char path[PATH_SIZE_MAX];
    for (uint64_t host = 0; host < site->hosts_count; host++) {
        snprintf(path, sizeof path, "%s/%ju", site->directory, (uintmax_t)host);
        mkdir(path, 0777);
        for (uint64_t d = 0; d <= site->pages_count / 1000; d++) {
            snprintf(path, sizeof path, "%s/%ju/d%ju", site->directory, (uintmax_t)host, (uintmax_t)d);
            mkdir(path, 0777);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: site DIR HOSTS PAGES ADDRESS PORT\n");
        return 2;
    }
    struct site site = {
        .directory = argv[1],
        .hosts_count = strtoull(argv[2], NULL, 10),
        .pages_count = strtoull(argv[3], NULL, 10),
        .address = argv[4],
        .port = argv[5],
    };
    struct buf text;
    buf_init(&text, CORPUS_DOCUMENT_SIZE_MAX);
    corpus_init(&site.corpus, SEED);
    mkdir(site.directory, 0777);
    make_directories(&site);
    for (uint64_t p = 0; p < site.pages_count; p++) {
        write_page(&site, p, &text);
        write_image(&site, p, &text);
    }
    corpus_done(&site.corpus);
    buf_done(&text);
    return 0;
}
