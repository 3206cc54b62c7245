/*
 * robots - anything as a robots.txt. The input is a path, a newline, and the file. The verdict must name a
 * line that is there, and wildcards must match as a slow matcher says that does nothing clever.
 */
#include "crawl/rules/robots.h"

#include "crawl/rules/robots_pattern.h"
#include "fuzz.h"

enum { SLOW_SIZE_MAX = 200 };

/* One row of the usual table: reached[i] says that the pattern so far can end before path[i]. */
static bool matches_slowly(struct bytes pattern, bool is_anchored, struct bytes path) {
    bool reached[SLOW_SIZE_MAX + 1] = {true};
    for (size_t p = 0; p < pattern.size; p++) {
        bool next[SLOW_SIZE_MAX + 1] = {false};
        for (size_t i = 0; i <= path.size; i++) {
            if (pattern.data[p] == '*') {
                next[i] = reached[i] || (i > 0 && next[i - 1]);
            } else {
                next[i] = i > 0 && reached[i - 1] && path.data[i - 1] == pattern.data[p];
            }
        }
        memcpy(reached, next, sizeof reached);
    }
    bool is_reached = false;
    for (size_t i = 0; i <= path.size; i++) {
        is_reached = is_reached || (reached[i] && (!is_anchored || i == path.size));
    }
    return is_reached;
}

static void check_matcher(struct bytes pattern, struct bytes path) {
    uint8_t pattern_memory[SLOW_SIZE_MAX];
    uint8_t path_memory[SLOW_SIZE_MAX];
    struct robots_text pattern_text = {.data = pattern_memory, .capacity = sizeof pattern_memory};
    struct robots_text path_text = {.data = path_memory, .capacity = sizeof path_memory};
    robots_normalise(&pattern_text, pattern, ROBOTS_FORM_CLOSED, true);
    robots_normalise(&path_text, path, ROBOTS_FORM_CLOSED, false);
    if (pattern_text.size > SLOW_SIZE_MAX || path_text.size > SLOW_SIZE_MAX) {
        return;
    }
    struct bytes normal_pattern = bytes_of(pattern_memory, pattern_text.size);
    struct bytes normal_path = bytes_of(path_memory, path_text.size);
    for (int anchored = 0; anchored < 2; anchored++) {
        ASSERT(robots_matches(normal_pattern, anchored, normal_path) ==
               matches_slowly(normal_pattern, anchored, normal_path));
    }
}

/* What is normal stays as it is. */
static void check_normalisation(struct bytes text) {
    uint8_t first[2048];
    uint8_t second[2048];
    for (int form = ROBOTS_FORM_CLOSED; form <= ROBOTS_FORM_OPEN; form++) {
        struct robots_text once = {.data = first, .capacity = sizeof first};
        struct robots_text twice = {.data = second, .capacity = sizeof second};
        robots_normalise(&once, text, (enum robots_form)form, true);
        if (once.size > sizeof first) {
            return;
        }
        robots_normalise(&twice, bytes_of(first, once.size), (enum robots_form)form, true);
        ASSERT(bytes_equal(bytes_of(first, once.size), bytes_of(second, twice.size)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size);
    size_t newline = bytes_find_byte(input, '\n');
    struct bytes path = bytes_slice(input, 0, newline);
    struct bytes text = bytes_skip(input, newline < size ? newline + 1 : size);
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    ASSERT(robots_parse(&robots, text, BYTES("mnemon")) == ERR_OK);
    struct robots_verdict verdict;
    bool is_allowed = robots_check(&robots, path, &verdict);
    ASSERT(is_allowed == verdict.is_allowed);
    ASSERT((verdict.line != 0) == (verdict.reason == ROBOTS_BY_RULE));
    ASSERT(verdict.text.size == 0 || bytes_find(text, verdict.text) < text.size);
    ASSERT(is_allowed || verdict.reason == ROBOTS_BY_RULE || verdict.reason == ROBOTS_TOO_COMPLEX);
    char sentence[ROBOTS_SENTENCE_SIZE_MAX];
    ASSERT(robots_explain(&verdict, sentence)[0] != '\0');
    for (uint32_t i = 0; i < robots.sitemaps_count; i++) {
        ASSERT(bytes_find(text, robots_sitemap(&robots, i)) < text.size);
    }
    ASSERT(robots.crawl_delay_us <= UINT64_C(86400000000));
    robots_done(&robots);
    check_matcher(text, path);
    check_normalisation(text);
    return 0;
}
