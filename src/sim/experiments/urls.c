#include "sim/experiments/urls.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

enum { PAGES_SHARED = 24, PAGES_OWN = 1 << 20, SHARED_PPM = 666667 };

static const char *const words[] = {
    "home",     "news",      "health",   "music",     "school",   "house",    "water",     "travel",
    "photo",    "world",     "life",     "city",      "food",     "game",     "business",  "family",
    "women",    "video",     "book",     "history",   "market",   "sport",    "garden",    "office",
    "party",    "power",     "money",    "people",    "summer",   "winter",   "review",    "story",
    "report",   "guide",     "center",   "design",    "digital",  "energy",   "event",     "forum",
    "service",  "system",    "member",   "culture",   "green",    "group",    "local",     "online",
    "public",   "science",   "student",  "training",  "village",  "weather",  "young",     "castle",
    "river",    "valley",    "camera",   "church",    "doctor",   "island",   "animal",    "network",
    "mobile",   "engine",    "master",   "museum",    "football", "kitchen",  "wedding",   "fashion",
    "beauty",   "fitness",   "finance",  "estate",    "police",   "election", "president", "climate",
    "security", "research",  "american", "british",   "able",     "academy",  "access",    "account",
    "advice",   "agency",    "airline",  "album",     "alert",    "amateur",  "anchor",    "angel",
    "annual",   "antique",   "arena",    "article",   "artist",   "assist",   "atlas",     "auction",
    "award",    "backup",    "baker",    "balance",   "banner",   "basic",    "battle",    "beach",
    "bear",     "benefit",   "bicycle",  "bird",      "blanket",  "border",   "brand",     "breeze",
    "bridge",   "budget",    "burger",   "button",    "cabin",    "cable",    "canal",     "candle",
    "canyon",   "capital",   "captain",  "carpet",    "cedar",    "champion", "channel",   "chapter",
    "chart",    "chief",     "circle",   "citizen",   "civil",    "clinic",   "clock",     "coach",
    "coast",    "coffee",    "colony",   "comet",     "comic",    "company",  "concept",   "contest",
    "copper",   "corner",    "cottage",  "county",    "craft",    "cricket",  "crisis",    "crown",
    "crystal",  "custom",    "cycle",    "daily",     "debate",   "decade",   "defence",   "delta",
    "dentist",  "desert",    "dialog",   "diamond",   "digest",   "dinner",   "direct",    "district",
    "domain",   "dragon",    "dream",    "driver",    "eagle",    "eastern",  "editor",    "effect",
    "elite",    "empire",    "expert",   "export",    "fabric",   "factory",  "falcon",    "famous",
    "feature",  "fiber",     "field",    "filter",    "final",    "flavor",   "fleet",     "flight",
    "focus",    "formula",   "fortune",  "forward",   "fossil",   "frame",    "freedom",   "frontier",
    "future",   "gallery",   "garage",   "gazette",   "general",  "genius",   "giant",     "glass",
    "global",   "golden",    "grand",    "granite",   "gravel",   "habit",    "hammer",    "handbook",
    "harbor",   "harvest",   "heritage", "hidden",    "highway",  "holiday",  "honest",    "horizon",
    "hunter",   "impact",    "import",   "index",     "indoor",   "insight",  "instant",   "ivory",
    "jacket",   "journal",   "journey",  "junior",    "justice",  "kernel",   "keyboard",  "kingdom",
    "knight",   "ladder",    "landing",  "laser",     "launch",   "leader",   "league",    "legend",
    "liberty",  "library",   "license",  "lifestyle", "lighting", "limit",    "logic",     "lunch",
    "machine",  "magazine",  "magnet",   "mansion",   "maple",    "marine",   "matrix",    "meadow",
    "meeting",  "memory",    "mental",   "metal",     "meter",    "midnight", "mineral",   "miracle",
    "mirror",   "mission",   "model",    "moment",    "monitor",  "motion",   "motor",     "mystery",
    "native",   "neighbor",  "nickel",   "noble",     "northern", "notice",   "nuclear",   "nurse",
    "oasis",    "ocean",     "olive",    "opera",     "optical",  "orange",   "orbit",     "orchard",
    "outdoor",  "oxygen",    "pacific",  "package",   "palace",   "panel",    "paper",     "parade",
    "parent",   "partner",   "passage",  "pattern",   "pearl",    "pension",  "pepper",    "phoenix",
    "picnic",   "pilot",     "pioneer",  "planet",    "plastic",  "platform", "pocket",    "poetry",
    "policy",   "portal",    "poster",   "premium",   "pretty",   "primary",  "printer",   "profile",
    "program",  "promise",   "protein",  "purple",    "quarter",  "quick",    "radio",     "railway",
    "rainbow",  "ranch",     "random",   "rapid",     "record",   "referee",  "region",    "remote",
    "rescue",   "retail",    "rhythm",   "ribbon",    "rocket",   "royal",    "rural",     "safety",
    "sample",   "satellite", "scholar",  "scout",     "season",   "senior",   "session",   "shadow",
    "shelter",  "signal",    "silver",   "simple",    "single",
};
enum { WORDS_COUNT = sizeof words / sizeof words[0] };

struct text {
    char *data;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->data + text->size, URLS_SIZE_MAX - text->size, format, arguments);
    va_end(arguments);
    ASSERT(size >= 0 && (size_t)size < URLS_SIZE_MAX - text->size);
    text->size += (size_t)size;
}

/* By Zipf's law: 2^x, x uniform, is about as often in 8 to 16 as in 128 to 256. */
static const char *word(struct prng *prng) {
    for (;;) {
        uint64_t octave = prng_below(prng, 9);
        uint64_t rank = (UINT64_C(1) << octave) + prng_below(prng, UINT64_C(1) << octave);
        if (rank <= WORDS_COUNT) {
            return words[rank - 1];
        }
    }
}

static unsigned number(struct prng *prng, unsigned from, unsigned to) {
    return (unsigned)prng_between(prng, from, to);
}

static const char *one_of(struct prng *prng, const char *const *names, uint32_t count) {
    return names[prng_below(prng, count)];
}

static void put_slug(struct text *text, struct prng *prng, unsigned count, char separator) {
    static const char *const glue[] = {"the", "of", "to",  "and",  "in",   "for",
                                       "a",   "on", "how", "with", "your", "is"};
    for (unsigned i = 0; i < count; i++) {
        bool is_glue = i > 0 && i + 1 < count && prng_chance_ppm(prng, 600000);
        put(text, "%s", is_glue ? one_of(prng, glue, sizeof glue / sizeof glue[0]) : word(prng));
        if (i + 1 < count) {
            put(text, "%c", separator);
        }
    }
}

/* ---- hosts ---- */

static void urls_put_host(struct text *text, struct prng *prng) {
    static const char *const ends[] = {"com", "com",   "com", "com", "org", "net",
                                       "de",  "co.uk", "edu", "fr",  "info"};
    static const char *const starts[] = {"www.", "www.", "www.", "www.", "", "", "blog.", "shop.", "news."};
    put(text, "%s", prng_chance_ppm(prng, 800000) ? "https://" : "http://");
    put(text, "%s", one_of(prng, starts, sizeof starts / sizeof starts[0]));
    put_slug(text, prng, number(prng, 1, 2), '-');
    put(text, ".%s/", one_of(prng, ends, sizeof ends / sizeof ends[0]));
}

/* ---- pages ---- */

static void put_shared_page(struct text *text, struct prng *prng) {
    static const char *const names[] = {"about-us/our-history",
                                        "contact",
                                        "news/press-releases",
                                        "products",
                                        "category/",
                                        "tag/",
                                        "author/",
                                        "services/",
                                        "help/",
                                        "en/",
                                        "archive/",
                                        "topics/"};
    const char *name = one_of(prng, names, sizeof names / sizeof names[0]);
    put(text, "%s", name);
    if (text->data[text->size - 1] == '/') {
        put_slug(text, prng, number(prng, 3, 6), '-');
        put(text, "/");
    }
}

static void put_own_page(struct text *text, unsigned shape, struct prng *prng) {
    static const char *const kinds[] = {"jpg", "jpg", "png", "gif", "pdf"};
    switch (shape) {
    case 0:
        put(text, "%u/%02u/", number(prng, 2004, 2025), number(prng, 1, 12));
        put_slug(text, prng, number(prng, 5, 8), '-');
        put(text, "/");
        break;
    case 1:
        put(text, "wp-content/uploads/%u/%02u/", number(prng, 2009, 2025), number(prng, 1, 12));
        put_slug(text, prng, 3, '-');
        put(text, ".%s", one_of(prng, kinds, sizeof kinds / sizeof kinds[0]));
        break;
    case 2:
        put(text, "products/");
        put_slug(text, prng, number(prng, 4, 6), '-');
        break;
    case 3:
        put(text, "viewtopic.php?f=%u&t=%u", number(prng, 1, 40), number(prng, 1000, 99999));
        break;
    case 4:
        put(text, "index.php?id=%u&page=%u", number(prng, 1, 9999), number(prng, 1, 20));
        break;
    case 5:
        put(text, "wiki/");
        put_slug(text, prng, number(prng, 3, 6), '_');
        break;
    case 6:
        put(text, "wp-content/themes/%s/assets/", word(prng));
        put(text, "%s.min.css?ver=%u.%u.%u", word(prng), number(prng, 1, 5), number(prng, 0, 9),
            number(prng, 0, 9));
        break;
    default:
        put(text, "%s/%s/", word(prng), word(prng));
        put_slug(text, prng, number(prng, 4, 7), '-');
        put(text, "%s", shape % 2 == 0 ? ".html" : ".htm");
    }
    if (shape < 3 && prng_chance_ppm(prng, 250000)) {
        put(text, "?utm_source=%s&utm_medium=email", word(prng));
    }
}

/* ---- all ---- */

bool urls_init(struct urls *urls, uint64_t seed, uint32_t hosts_count) {
    ASSERT(hosts_count > 0 && hosts_count <= URLS_HOSTS_MAX);
    *urls = (struct urls){.seed = seed, .hosts_count = hosts_count};
    prng_init(&urls->prng, seed);
    urls->sums = calloc(hosts_count, sizeof *urls->sums);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < hosts_count && urls->sums != NULL; i++) {
        sum += UINT64_C(1000000000) / (i + 1);
        urls->sums[i] = sum;
    }
    return urls->sums != NULL;
}

void urls_done(struct urls *urls) {
    free(urls->sums);
}

static uint32_t pick_host(struct urls *urls) {
    uint64_t at = prng_below(&urls->prng, urls->sums[urls->hosts_count - 1]);
    uint32_t low = 0;
    uint32_t high = urls->hosts_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (urls->sums[middle] <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t urls_next(struct urls *urls, uint8_t out[URLS_SIZE_MAX]) {
    struct text text = {.data = (char *)out};
    struct prng of_host;
    struct prng of_page;
    uint32_t host = pick_host(urls);
    bool is_shared = prng_chance_ppm(&urls->prng, SHARED_PPM);
    uint64_t page = prng_below(&urls->prng, is_shared ? PAGES_SHARED : PAGES_OWN);
    prng_init_stream(&of_host, urls->seed, host);
    prng_init_stream(&of_page, prng_mix(urls->seed ^ host), is_shared ? page : PAGES_SHARED + page);
    urls_put_host(&text, &of_host);
    if (is_shared) {
        put_shared_page(&text, &of_page);
    } else {
        put_own_page(&text, number(&of_host, 0, 9), &of_page);
    }
    return text.size;
}
