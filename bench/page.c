/*
 * page - links of HTML pages: the tokenizer alone, and with links resolved, against libxml2's HTML parser
 * (SAX, no tree) and gumbo. The others only look at the attributes href and src and resolve nothing. Then the
 * pages rewritten for replay, against the tokenizer alone.
 *
 * The pages are those of corpus.h, of 12 KB, with 36 links: what is above that becomes another attribute.
 */
#include <gumbo.h>
#include <libxml/HTMLparser.h>
#include <stdlib.h>

#include "bench.h"
#include "corpus.h"
#include "web/html/html.h"
#include "web/html/links.h"
#include "web/rewrite/rewrite.h"

enum {
    PAGES_COUNT = 200,
    LINKS_COUNT = 36,
    ROUNDS = 7,
    REPEATS = 5,
    PIECE_SIZE = 4096,
    TEXT_SIZE_MAX = 1 << 26
};

struct pages {
    struct buf text;
    size_t ends[PAGES_COUNT];
    struct url base;
    struct links *links;
    struct rewrite *rewrite;
};

static struct bytes page_at(const struct pages *pages, size_t index) {
    return bytes_slice(buf_bytes(&pages->text), index == 0 ? 0 : pages->ends[index - 1], pages->ends[index]);
}

/* Of all links but the first 36 the attribute gets another name, of the same length. */
static void limit_links(uint8_t *data, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i + 6 <= size; i++) {
        if (memcmp(data + i, " href=", 6) == 0 && ++count > LINKS_COUNT) {
            memcpy(data + i, " name=", 6);
        } else if (memcmp(data + i, " src=", 5) == 0 && ++count > LINKS_COUNT) {
            memcpy(data + i, " alt=", 5);
        }
    }
}

static void make_pages(struct pages *pages) {
    static struct corpus corpus;
    corpus_init(&corpus, 1);
    buf_init(&pages->text, TEXT_SIZE_MAX);
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        size_t from = pages->text.size;
        corpus_put_page(&corpus, i, &pages->text);
        limit_links(pages->text.data + from, pages->text.size - from);
        pages->ends[i] = pages->text.size;
    }
    corpus_done(&corpus);
    url_init(&pages->base);
    ASSERT(url_parse(&pages->base, BYTES("http://www.example.org/a/b/c.html"), NULL, NULL) == ERR_OK);
    pages->links = links_new();
    ASSERT(pages->links != NULL);
    pages->rewrite = rewrite_new();
    ASSERT(pages->rewrite != NULL);
}

/* Each returns how many links it saw. */

static void count_link(void *context, const struct link *link) {
    *(size_t *)context += link->href.size > 0 ? 1 : 0;
}

static size_t links_in_pieces(struct pages *pages, size_t piece_size) {
    size_t count = 0;
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        struct bytes page = page_at(pages, i);
        links_start(pages->links, BYTES("text/html"), &pages->base, NULL, count_link, &count);
        while (page.size > 0) {
            size_t size = page.size < piece_size ? page.size : piece_size;
            ASSERT(links_feed(pages->links, bytes_slice(page, 0, size)) == ERR_OK);
            page = bytes_skip(page, size);
        }
        ASSERT(links_finish(pages->links) == ERR_OK);
    }
    return count;
}

static size_t run_links(struct pages *pages) {
    return links_in_pieces(pages, SIZE_MAX);
}

static size_t run_links_pieces(struct pages *pages) {
    return links_in_pieces(pages, PIECE_SIZE);
}

static size_t run_html(struct pages *pages) {
    static struct html html;
    struct html_token token;
    size_t count = 0;
    html_init(&html);
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        html_start(&html);
        html_feed(&html, page_at(pages, i));
        html_end(&html);
        while (html_next(&html, &token)) {
            count += token.kind == HTML_START_TAG ? token.attributes_count : 0;
        }
    }
    html_done(&html);
    return count;
}

static enum err count_put(void *context, struct bytes piece) {
    *(size_t *)context += piece.size;
    return ERR_OK;
}

/* How many bytes come out. */
static size_t rewrite_in_pieces(struct pages *pages, size_t piece_size) {
    size_t size = 0;
    struct rewrite_place place = {.prefix = BYTES("/web/"),
                                  .timestamp = BYTES("20260102030405"),
                                  .url = &pages->base,
                                  .content_type = BYTES("text/html;charset=utf-8"),
                                  .format = REWRITE_HTML,
                                  .insert = BYTES("<script src=/static/replay.js></script>")};
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        struct bytes page = page_at(pages, i);
        rewrite_start(pages->rewrite, &place, count_put, &size);
        while (page.size > 0) {
            size_t piece = page.size < piece_size ? page.size : piece_size;
            ASSERT(rewrite_feed(pages->rewrite, bytes_slice(page, 0, piece)) == ERR_OK);
            page = bytes_skip(page, piece);
        }
        ASSERT(rewrite_finish(pages->rewrite) == ERR_OK);
    }
    return size;
}

static size_t run_rewrite(struct pages *pages) {
    return rewrite_in_pieces(pages, SIZE_MAX);
}

static size_t run_rewrite_pieces(struct pages *pages) {
    return rewrite_in_pieces(pages, PIECE_SIZE);
}

static void on_xml_element(void *context, const xmlChar *name, const xmlChar **attributes) {
    (void)name;
    for (size_t i = 0; attributes != NULL && attributes[i] != NULL; i += 2) {
        const char *attribute = (const char *)attributes[i];
        *(size_t *)context += strcmp(attribute, "href") == 0 || strcmp(attribute, "src") == 0 ? 1 : 0;
    }
}

static size_t run_libxml2(struct pages *pages) {
    size_t count = 0;
    htmlSAXHandler handler = {.startElement = on_xml_element};
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        struct bytes page = page_at(pages, i);
        htmlParserCtxtPtr parser =
            htmlCreatePushParserCtxt(&handler, &count, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);
        htmlParseChunk(parser, (const char *)page.data, (int)page.size, 0);
        htmlParseChunk(parser, NULL, 0, 1);
        htmlFreeParserCtxt(parser);
    }
    return count;
}

/* The tree in the order of the document, without recursion. */
static size_t count_gumbo(const GumboNode *root) {
    size_t count = 0;
    const GumboNode *node = root;
    while (node != NULL) {
        const GumboVector *children = NULL;
        if (node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE) {
            count += gumbo_get_attribute(&node->v.element.attributes, "href") != NULL ? 1 : 0;
            count += gumbo_get_attribute(&node->v.element.attributes, "src") != NULL ? 1 : 0;
            children = &node->v.element.children;
        }
        if (children != NULL && children->length > 0) {
            node = children->data[0];
            continue;
        }
        for (; node != root; node = node->parent) {
            const GumboVector *siblings = &node->parent->v.element.children;
            if (node->index_within_parent + 1 < siblings->length) {
                node = siblings->data[node->index_within_parent + 1];
                break;
            }
        }
        node = node == root ? NULL : node;
    }
    return count;
}

static size_t run_gumbo(struct pages *pages) {
    size_t count = 0;
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        struct bytes page = page_at(pages, i);
        GumboOutput *output =
            gumbo_parse_with_options(&kGumboDefaultOptions, (const char *)page.data, page.size);
        count += count_gumbo(output->root);
        gumbo_destroy_output(&kGumboDefaultOptions, output);
    }
    return count;
}

int main(void) {
    static const struct {
        const char *name;
        size_t (*run)(struct pages *pages);
        int baseline; /* index of the row that it is compared with, or -1 */
    } rows[] = {
        {"gumbo: tree, attributes href and src", run_gumbo, -1},
        {"libxml2, SAX: attributes href and src", run_libxml2, -1},
        {"html_next: tokens alone (against libxml2)", run_html, 1},
        {"links: found, resolved, once each", run_links, 1},
        {"links, in pieces of 4 KiB", run_links_pieces, 1},
        {"rewrite: pages for replay (against tokens alone)", run_rewrite, 2},
        {"rewrite, in pieces of 4 KiB", run_rewrite_pieces, 2},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    static struct pages pages;
    make_pages(&pages);
    double best_s[ROWS] = {0};
    size_t counts[ROWS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int row = 0; row < ROWS; row++) {
            double start_s = bench_now_s();
            for (int repeat = 0; repeat < REPEATS; repeat++) {
                counts[row] = rows[row].run(&pages);
            }
            double taken_s = (bench_now_s() - start_s) / REPEATS;
            best_s[row] = round == 0 || taken_s < best_s[row] ? taken_s : best_s[row];
        }
    }
    printf("%d pages of %zu bytes, %.1f links each, best of %d rounds\n", PAGES_COUNT,
           pages.text.size / PAGES_COUNT, (double)counts[3] / PAGES_COUNT, ROUNDS);
    for (int row = 0; row < ROWS; row++) {
        int baseline = rows[row].baseline;
        bench_row(rows[row].name, (double)pages.text.size / best_s[row] / 1e6, "MB/s",
                  baseline < 0 ? 0 : best_s[baseline] / best_s[row]);
    }
    links_free(pages.links);
    rewrite_free(pages.rewrite);
    url_done(&pages.base);
    buf_done(&pages.text);
    return counts[0] > 0 && counts[3] == counts[4] && counts[5] == counts[6] ? 0 : 1;
}
