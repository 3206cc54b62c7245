#include "urls.h"

static const char *const words[] = {
    "news",   "archive",  "images", "Article", "the",     "quick",  "index",  "static", "user",   "photo",
    "blog",   "category", "search", "wiki",    "product", "story",  "London", "review", "music",  "history",
    "school", "report",   "video",  "people",  "Project", "online", "market", "health", "garden", "travel",
};
enum { WORDS_COUNT = sizeof words / sizeof *words };

static void put_words(struct buf *out, struct prng *prng, uint64_t count, char separator) {
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_put_byte(out, (uint8_t)separator);
        }
        buf_put_string(out, words[prng_below(prng, WORDS_COUNT)]);
    }
}

/* Few hosts have most of the pages. The scheme and "www." are a habit of the host. */
static void put_host(struct buf *out, struct prng *prng, size_t count) {
    static const char *const tops[] = {".com", ".org", ".de", ".co.uk", ".net", ".fr"};
    uint64_t hosts_count = count / 50 + 1;
    uint64_t host = prng_below(prng, prng_below(prng, hosts_count) + 1);
    struct prng habit;
    prng_init_stream(&habit, 7, host);
    buf_put_string(out, prng_chance_ppm(&habit, 750000) ? "https://" : "http://");
    buf_put_string(out, prng_chance_ppm(&habit, 450000) ? "www." : "");
    put_words(out, &habit, 1 + prng_below(&habit, 2), '-');
    buf_put_u64(out, host);
    buf_put_string(out, tops[prng_below(&habit, 6)]);
}

void urls_put(struct buf *out, struct prng *prng, size_t count, uint64_t number) {
    static const char *const ends[] = {"", "/", ".html", ".php", ".jpg", ".png", ".js", "-300x200.jpg"};
    put_host(out, prng, count);
    buf_put_byte(out, '/');
    put_words(out, prng, 1 + prng_below(prng, 3), '/');
    buf_put_byte(out, '/');
    put_words(out, prng, prng_below(prng, 5), '-');
    buf_put_byte(out, '-');
    buf_put_u64(out, number);
    buf_put_string(out, ends[prng_below(prng, sizeof ends / sizeof *ends)]);
    if (prng_chance_ppm(prng, 200000)) {
        buf_put_string(out, "?id=");
        buf_put_u64(out, prng_below(prng, 1000000));
        buf_put_string(out, "&ref=");
        put_words(out, prng, 1, ' ');
    }
}
