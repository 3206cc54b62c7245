#include "corpus.h"

#include <math.h>

enum {
    STAMP_OFFSET = 32,
    STAMP_DIGITS = 16,
    TEXT_SIZE_MAX = 4 << 20,
    PAGE_TEXT_SIZE = 5000,
    PHRASES_COUNT = 24
};

/* Streams of the seed: one for the words, one for each site, two for each document. */
enum { STREAM_WORDS = 1, STREAM_SITES = 1000, STREAM_KINDS = 1 << 20 };

static const char *const common_words[] = {
    "the",   "of",    "and",   "to",    "in",     "a",     "is",      "that",  "for",   "it",
    "was",   "on",    "with",  "as",    "be",     "at",    "by",      "this",  "are",   "from",
    "or",    "an",    "have",  "not",   "they",   "which", "one",     "you",   "were",  "her",
    "all",   "she",   "there", "would", "their",  "we",    "him",     "been",  "has",   "when",
    "who",   "will",  "more",  "no",    "if",     "out",   "so",      "said",  "what",  "up",
    "its",   "about", "into",  "than",  "them",   "can",   "only",    "other", "new",   "some",
    "could", "time",  "these", "two",   "may",    "then",  "do",      "first", "any",   "my",
    "now",   "such",  "like",  "our",   "over",   "man",   "me",      "even",  "most",  "made",
    "after", "also",  "did",   "many",  "before", "must",  "through", "years", "where", "much",
};
enum { COMMON_WORDS_COUNT = sizeof common_words / sizeof *common_words };

static const char *const syllables[] = {
    "an",  "be",  "con", "der", "en",  "fi",  "ga",  "her", "in",   "jo",   "ka", "le",  "men", "na", "or",
    "pre", "qui", "re",  "si",  "ti",  "un",  "ver", "wa",  "ex",   "tion", "ly", "ing", "er",  "al", "ist",
    "mo",  "lu",  "da",  "ro",  "per", "str", "ou",  "ble", "ment", "ch",   "sh", "th",  "com", "ad",
};
enum { SYLLABLES_COUNT = sizeof syllables / sizeof *syllables };

static struct prng stream_of(const struct corpus *corpus, uint64_t stream) {
    struct prng prng;
    prng_init_stream(&prng, corpus->seed, stream);
    return prng;
}

static void put_word(const struct corpus *corpus, struct prng *prng, struct buf *out) {
    uint16_t rank = corpus->ranks[prng_u64(prng) & 0xffff];
    buf_put(out, bytes_slice(buf_bytes(&corpus->text), corpus->words[rank], corpus->words[rank + 1]));
}

static void put_words(const struct corpus *corpus, struct prng *prng, struct buf *out, uint64_t count,
                      char separator) {
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_put_byte(out, (uint8_t)separator);
        }
        put_word(corpus, prng, out);
    }
}

static void make_words(struct corpus *corpus) {
    struct prng prng = stream_of(corpus, STREAM_WORDS);
    for (uint32_t i = 0; i < CORPUS_WORDS_COUNT; i++) {
        corpus->words[i] = (uint32_t)corpus->text.size;
        if (i < COMMON_WORDS_COUNT) {
            buf_put_string(&corpus->text, common_words[i]);
            continue;
        }
        for (uint64_t left = 2 + prng_below(&prng, 3); left > 0; left--) {
            buf_put_string(&corpus->text, syllables[prng_below(&prng, SYLLABLES_COUNT)]);
        }
    }
    corpus->words[CORPUS_WORDS_COUNT] = (uint32_t)corpus->text.size;
    /* Rank r has a share of 1/r: its logarithm is uniform. */
    for (size_t i = 0; i < 1 << 16; i++) {
        double rank = exp((double)i / 65536.0 * log(CORPUS_WORDS_COUNT));
        corpus->ranks[i] = (uint16_t)(rank - 1.0);
    }
}

/* ---- sites ---- */

static void put_site_head(struct corpus *corpus, struct prng *prng, unsigned site, struct buf *out) {
    buf_put_format(out, "<link rel=\"stylesheet\" href=\"/static/css/site-%u.%08x.css\">\n", site,
                   (unsigned)prng_u64(prng));
    buf_put_string(out,
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"robots\" content=\"index, follow\">\n<meta name=\"description\" content=\"");
    put_words(corpus, prng, out, 20, ' ');
    buf_put_string(out, "\">\n<script>window.dataLayer=window.dataLayer||[];function track(){dataLayer.push("
                        "arguments);}track('js',new Date());");
    for (int i = 0; i < 6; i++) {
        buf_put_format(out, "track('config','UA-%u-%d',{'%x':true});", (unsigned)prng_below(prng, 10000000),
                       i, (unsigned)prng_u64(prng));
    }
    buf_put_string(out, "</script>\n");
}

/* Inline rules, as pages carry them for their first screen: much the same from page to page, not within one.
 */
static void put_site_style(struct corpus *corpus, struct prng *prng, struct buf *out) {
    static const char *const properties[] = {"margin", "padding", "width", "height", "font-size", "left"};
    buf_put_string(out, "<style>\n");
    for (int i = 0; i < 45; i++) {
        buf_put_byte(out, '.');
        put_words(corpus, prng, out, 2, '-');
        buf_put_format(out, "{%s:%upx;color:#%06x}\n", properties[prng_below(prng, 6)],
                       (unsigned)prng_below(prng, 100), (unsigned)prng_below(prng, 8) * 0x2481c5);
    }
    buf_put_string(out, "</style>\n");
}

static void put_site_list(struct corpus *corpus, struct prng *prng, unsigned site, struct buf *out,
                          const char *name, unsigned items) {
    buf_put_format(out, "<div class=\"%s %s--%u\"><ul class=\"%s__list\">\n", name, name, site, name);
    for (unsigned i = 0; i < items; i++) {
        buf_put_format(out, "<li class=\"%s__item\"><a class=\"%s__link\" href=\"/", name, name);
        put_words(corpus, prng, out, 2, '-');
        buf_put_string(out, "/\">");
        put_words(corpus, prng, out, 2, ' ');
        buf_put_string(out, "</a></li>\n");
    }
    buf_put_string(out, "</ul></div>\n");
}

static void make_site(struct corpus *corpus, unsigned site) {
    struct prng prng = stream_of(corpus, STREAM_SITES + site);
    struct buf piece;
    buf_init(&piece, TEXT_SIZE_MAX);
    for (unsigned i = 0; i < 3; i++) {
        buf_clear(&piece);
        if (i == 0) {
            put_site_head(corpus, &prng, site, &piece);
            put_site_style(corpus, &prng, &piece);
        } else if (i == 1) {
            put_site_list(corpus, &prng, site, &piece, "main-navigation", 24);
        } else {
            put_site_list(corpus, &prng, site, &piece, "footer-links", 18);
            put_words(corpus, &prng, &piece, 60, ' ');
        }
        corpus->pieces[site][i] = (uint32_t)corpus->text.size;
        buf_put(&corpus->text, buf_bytes(&piece));
    }
    corpus->pieces[site][3] = (uint32_t)corpus->text.size;
    buf_done(&piece);
}

void corpus_init(struct corpus *corpus, uint64_t seed) {
    *corpus = (struct corpus){.seed = seed};
    buf_init(&corpus->text, TEXT_SIZE_MAX);
    make_words(corpus);
    for (unsigned site = 0; site < CORPUS_SITES_COUNT; site++) {
        make_site(corpus, site);
    }
    ASSERT(corpus->text.err == ERR_OK);
}

void corpus_done(struct corpus *corpus) {
    buf_done(&corpus->text);
}

/* ---- documents ---- */

static void put_piece(const struct corpus *corpus, unsigned site, unsigned piece, struct buf *out) {
    const uint32_t *pieces = corpus->pieces[site];
    buf_put(out, bytes_slice(buf_bytes(&corpus->text), pieces[piece], pieces[piece + 1]));
}

/* A page is about something: half of its text are phrases that return. */
static void put_paragraphs(const struct corpus *corpus, struct prng *prng, struct buf *out, size_t size) {
    uint64_t phrases[PHRASES_COUNT];
    prng_fill(prng, phrases, sizeof phrases);
    for (size_t end = out->size + size; out->size < end;) {
        buf_put_string(out, "<p class=\"article__text\">");
        for (uint64_t left = 8 + prng_below(prng, 20); left > 0; left--) {
            struct prng phrase = stream_of(corpus, phrases[prng_below(prng, PHRASES_COUNT)]);
            bool returns = prng_chance_ppm(prng, 500000);
            put_words(corpus, returns ? &phrase : prng, out, 3 + left % 3, ' ');
            buf_put_string(out, left % 5 == 0 ? ". " : " ");
        }
        buf_put_string(out, "</p>\n");
    }
}

static void put_related(const struct corpus *corpus, struct prng *prng, struct buf *out, uint64_t count) {
    buf_put_string(out, "<aside class=\"related\">\n");
    for (uint64_t i = 0; i < count; i++) {
        unsigned number = (unsigned)prng_below(prng, 10000000);
        buf_put_format(out, "<a class=\"related__item\" href=\"/article/%u/", number);
        put_words(corpus, prng, out, 4, '-');
        buf_put_format(out, "\"><img class=\"related__image\" src=\"/media/%u_300x200.jpg\" alt=\"\">",
                       number);
        put_words(corpus, prng, out, 5, ' ');
        buf_put_string(out, "</a>\n");
    }
    buf_put_string(out, "</aside>\n");
}

void corpus_put_page(const struct corpus *corpus, uint64_t i, struct buf *out) {
    struct prng prng = stream_of(corpus, STREAM_KINDS + 2 * i);
    unsigned site = (unsigned)prng_below(&prng, CORPUS_SITES_COUNT);
    buf_put_string(out, "<!DOCTYPE html><html lang=\"en\"><!--");
    ASSERT(sizeof "<!DOCTYPE html><html lang=\"en\"><!--" - 1 >= STAMP_OFFSET);
    buf_put_format(out, "%016jx--><head>\n<meta charset=\"utf-8\">\n<title>", (uintmax_t)i);
    put_words(corpus, &prng, out, 7, ' ');
    buf_put_string(out, "</title>\n");
    put_piece(corpus, site, 0, out);
    buf_put_string(out, "</head>\n<body>\n");
    put_piece(corpus, site, 1, out);
    buf_put_string(out, "<main class=\"article\"><h1 class=\"article__title\">");
    put_words(corpus, &prng, out, 7, ' ');
    buf_put_format(out, "</h1><time datetime=\"2024-%02u-%02uT%02u:%02u:%02uZ\"></time>\n",
                   (unsigned)prng_below(&prng, 12) + 1, (unsigned)prng_below(&prng, 28) + 1,
                   (unsigned)prng_below(&prng, 24), (unsigned)prng_below(&prng, 60),
                   (unsigned)prng_below(&prng, 60));
    put_paragraphs(corpus, &prng, out, PAGE_TEXT_SIZE / 4 + prng_below(&prng, PAGE_TEXT_SIZE * 3 / 4));
    put_related(corpus, &prng, out, 4 + prng_below(&prng, 8));
    buf_put_string(out, "</main>\n");
    put_piece(corpus, site, 2, out);
    buf_put_string(out, "</body></html>\n");
}

void corpus_put_image(const struct corpus *corpus, uint64_t i, struct buf *out) {
    static const uint8_t header[20] = {0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1};
    struct prng prng = stream_of(corpus, STREAM_KINDS + 2 * i);
    size_t size = (16 << 10) + prng_below(&prng, 32 << 10);
    buf_put(out, bytes_of(header, sizeof header));
    if (buf_reserve(out, size) == ERR_OK) {
        prng_fill(&prng, out->data + out->size, size);
        out->size += size;
    }
}

uint64_t corpus_original(const struct corpus *corpus, uint64_t i) {
    for (;;) {
        struct prng prng = stream_of(corpus, STREAM_KINDS + 2 * i + 1);
        if (i == 0 || !prng_chance_ppm(&prng, CORPUS_DUPLICATES_PPM)) {
            return i;
        }
        i = prng_below(&prng, i);
    }
}

bool corpus_is_page(const struct corpus *corpus, uint64_t i) {
    struct prng prng = stream_of(corpus, STREAM_KINDS + 2 * corpus_original(corpus, i) + 1);
    prng_u64(&prng);
    prng_u64(&prng);
    return prng_chance_ppm(&prng, CORPUS_PAGES_PPM);
}

void corpus_put_document(const struct corpus *corpus, uint64_t i, struct buf *out) {
    uint64_t original = corpus_original(corpus, i);
    if (corpus_is_page(corpus, original)) {
        corpus_put_page(corpus, original, out);
    } else {
        corpus_put_image(corpus, original, out);
    }
}

void corpus_stamp(uint8_t *document, size_t size, uint64_t stamp) {
    ASSERT(size >= STAMP_OFFSET + STAMP_DIGITS);
    for (unsigned i = 0; i < STAMP_DIGITS; i++) {
        document[STAMP_OFFSET + i] ^= (uint8_t)(stamp >> (4 * i) & 15);
    }
}
