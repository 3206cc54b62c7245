#include "crawl/rules/robots.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/uninitialized.h"
#include "crawl/rules/robots_pattern.h"

const char robots_agent[] = "mnemon";

/* A part of the text that lies behind rules and sitemaps in the block. */
struct piece {
    uint32_t offset;
    uint32_t size;
};

struct robots_rule {
    struct piece line;
    struct piece pattern;      /* normalised, without a final '$' */
    struct piece open_pattern; /* the same with the query open: see enum robots_form */
    uint32_t number;           /* of the line, from 1 */
    uint32_t length;           /* octets of the pattern, '$' included: the longest decides */
    bool is_allow;
    bool is_anchored; /* it ended with '$' */
    bool has_star;
    bool has_query; /* a literal '?': only then open_pattern is compared */
};

/* ---- line by line ---- */

enum robots_line_kind {
    ROBOTS_LINE_OTHER,
    ROBOTS_LINE_AGENT,
    ROBOTS_LINE_ALLOW,
    ROBOTS_LINE_DISALLOW,
    ROBOTS_LINE_DELAY,
    ROBOTS_LINE_SITEMAP
};

struct robots_line {
    enum robots_line_kind kind;
    uint32_t number;
    struct bytes text; /* without comment, trimmed */
    struct bytes value;
};

struct robots_lines {
    struct bytes rest; /* starts as the whole text */
    uint32_t number;
};

/* The misspellings are those that crawlers have come to accept. */
static enum robots_line_kind robots_line_kind_of(struct bytes name) {
    static const struct {
        const char *name;
        enum robots_line_kind kind;
    } names[] = {
        {"user-agent", ROBOTS_LINE_AGENT},  {"useragent", ROBOTS_LINE_AGENT},
        {"user agent", ROBOTS_LINE_AGENT},  {"allow", ROBOTS_LINE_ALLOW},
        {"disallow", ROBOTS_LINE_DISALLOW}, {"dissallow", ROBOTS_LINE_DISALLOW},
        {"dissalow", ROBOTS_LINE_DISALLOW}, {"disalow", ROBOTS_LINE_DISALLOW},
        {"diasllow", ROBOTS_LINE_DISALLOW}, {"disallaw", ROBOTS_LINE_DISALLOW},
        {"crawl-delay", ROBOTS_LINE_DELAY}, {"crawldelay", ROBOTS_LINE_DELAY},
        {"crawl delay", ROBOTS_LINE_DELAY}, {"sitemap", ROBOTS_LINE_SITEMAP},
        {"site-map", ROBOTS_LINE_SITEMAP},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(names[i].name))) {
            return names[i].kind;
        }
    }
    return ROBOTS_LINE_OTHER;
}

static size_t robots_find_space(struct bytes text) {
    size_t i = 0;
    while (i < text.size && text.data[i] != ' ' && text.data[i] != '\t') {
        i++;
    }
    return i;
}

/* "name: value", or "name value" if the colon was forgotten. */
static void robots_read_line(struct robots_line *line) {
    size_t colon = bytes_find_byte(line->text, ':');
    line->kind = robots_line_kind_of(bytes_trim(bytes_slice(line->text, 0, colon)));
    if (line->kind == ROBOTS_LINE_OTHER) {
        colon = robots_find_space(line->text);
        line->kind = robots_line_kind_of(bytes_slice(line->text, 0, colon));
    }
    line->value = bytes_trim(bytes_skip(line->text, colon < line->text.size ? colon + 1 : colon));
}

/* The next line, empty ones too. False at the end. */
static bool robots_lines_next(struct robots_lines *lines, struct robots_line *ret_line) {
    if (lines->rest.size == 0) {
        return false;
    }
    size_t end = 0;
    while (end < lines->rest.size && lines->rest.data[end] != '\n' && lines->rest.data[end] != '\r') {
        end++;
    }
    struct bytes text = bytes_slice(lines->rest, 0, end);
    bool is_crlf =
        end + 1 < lines->rest.size && lines->rest.data[end] == '\r' && lines->rest.data[end + 1] == '\n';
    lines->rest = bytes_skip(lines->rest, end < lines->rest.size ? end + 1 + (is_crlf ? 1 : 0) : end);
    ret_line->number = ++lines->number;
    ret_line->text = bytes_trim(bytes_slice(text, 0, bytes_find_byte(text, '#')));
    robots_read_line(ret_line);
    return true;
}

/*
 * The leading characters that a product token may have: "Mnemon" of "Mnemon/1.0 (x)". RFC 9309 has no digits,
 * but names have: without them "crawler3" would obey what is written for "crawler1".
 */
static struct bytes robots_product_token(struct bytes text) {
    size_t i = 0;
    while (i < text.size && (byte_is_alnum(text.data[i]) || text.data[i] == '-' || text.data[i] == '_')) {
        i++;
    }
    return bytes_slice(text, 0, i);
}

/* ---- Groups ---- */

static bool robots_is_named(struct bytes value, struct bytes agent) {
    struct bytes token = robots_product_token(value);
    return token.size > 0 && bytes_equal_ignore_case(token, agent);
}

/* "*", perhaps with something behind it. */
static bool robots_is_star(struct bytes value) {
    return value.size > 0 && value.data[0] == '*' &&
           (value.size == 1 || value.data[1] == ' ' || value.data[1] == '\t');
}

/* The crawlers that the lines at hand are for. */
struct group {
    bool is_open;  /* the last line of a group was a user-agent: the next one joins it */
    bool is_named; /* for us by name */
    bool is_star;
};

static void robots_group_follow(struct group *group, const struct robots_line *line, struct bytes agent) {
    if (line->kind == ROBOTS_LINE_AGENT) {
        if (!group->is_open) {
            *group = (struct group){.is_open = true};
        }
        group->is_named = group->is_named || robots_is_named(line->value, agent);
        group->is_star = group->is_star || robots_is_star(line->value);
    } else if (line->kind == ROBOTS_LINE_ALLOW || line->kind == ROBOTS_LINE_DISALLOW) {
        group->is_open = false;
    }
}

/* ---- Reading a file: once to measure, once to fill ---- */

struct reading {
    struct bytes text;
    struct bytes agent;
    bool names_agent;
    struct bytes named_as;
    bool is_filling; /* else everything is only counted */
    struct robots_rule *rules;
    uint32_t rules_count;
    struct piece *sitemaps;
    uint32_t sitemaps_count;
    struct robots_text out; /* the text of the block */
    uint64_t crawl_delay_us;
};

static struct piece robots_keep(struct reading *reading, struct bytes text) {
    struct piece piece = {(uint32_t)reading->out.size, (uint32_t)text.size};
    for (size_t i = 0; i < text.size; i++) {
        robots_text_put(&reading->out, text.data[i]);
    }
    return piece;
}

static struct piece robots_keep_normalised(struct reading *reading, struct bytes pattern,
                                           enum robots_form form) {
    size_t start = reading->out.size;
    robots_normalise(&reading->out, pattern, form, true);
    return (struct piece){(uint32_t)start, (uint32_t)(reading->out.size - start)};
}

/* A path begins with '/', so other patterns match nothing; neither does an empty one. */
static bool robots_can_match(struct bytes pattern) {
    return pattern.size > 0 && (pattern.data[0] == '/' || pattern.data[0] == '*');
}

static void robots_add_rule(struct reading *reading, const struct robots_line *line) {
    struct bytes pattern = line->value;
    if (!robots_can_match(pattern)) {
        return;
    }
    struct robots_rule rule = {.number = line->number, .is_allow = line->kind == ROBOTS_LINE_ALLOW};
    rule.is_anchored = pattern.data[pattern.size - 1] == '$';
    if (rule.is_anchored) {
        pattern = bytes_slice(pattern, 0, pattern.size - 1);
    }
    rule.has_query = bytes_find_byte(pattern, '?') < pattern.size;
    rule.has_star = bytes_find_byte(pattern, '*') < pattern.size;
    rule.line = robots_keep(reading, line->text);
    rule.pattern = robots_keep_normalised(reading, pattern, ROBOTS_FORM_CLOSED);
    rule.open_pattern =
        rule.has_query ? robots_keep_normalised(reading, pattern, ROBOTS_FORM_OPEN) : rule.pattern;
    rule.length = rule.pattern.size + (rule.is_anchored ? 1 : 0);
    if (reading->is_filling) {
        reading->rules[reading->rules_count] = rule;
    }
    reading->rules_count++;
}

static void robots_add_sitemap(struct reading *reading, struct bytes url) {
    if (url.size == 0) {
        return;
    }
    struct piece piece = robots_keep(reading, url);
    if (reading->is_filling) {
        reading->sitemaps[reading->sitemaps_count] = piece;
    }
    reading->sitemaps_count++;
}

/* "10", "0.5", "2,5": up to a day. The longest of several counts. */
static void robots_add_delay(struct reading *reading, struct bytes value) {
    uint64_t us = 0;
    uint64_t unit_us = 0; /* of the next digit behind the point; 0: still before it */
    for (size_t i = 0; i < value.size && us < UINT64_C(86400000000); i++) {
        uint8_t byte = value.data[i];
        if (byte_is_digit(byte) && unit_us == 0) {
            us = us * 10 + (uint64_t)(byte - '0') * 1000000;
        } else if (byte_is_digit(byte)) {
            us += (uint64_t)(byte - '0') * (unit_us / 10);
            unit_us = unit_us >= 10 ? unit_us / 10 : 1;
        } else if ((byte == '.' || byte == ',') && unit_us == 0) {
            unit_us = 1000000;
        } else {
            break; /* "10s" and "10 seconds" mean 10 */
        }
    }
    us = us < UINT64_C(86400000000) ? us : UINT64_C(86400000000);
    reading->crawl_delay_us = us > reading->crawl_delay_us ? us : reading->crawl_delay_us;
}

static void robots_find_agent(struct reading *reading) {
    struct robots_lines lines = {.rest = reading->text};
    struct robots_line line;
    while (!reading->names_agent && robots_lines_next(&lines, &line)) {
        if (line.kind == ROBOTS_LINE_AGENT && robots_is_named(line.value, reading->agent)) {
            reading->names_agent = true;
            reading->named_as = robots_product_token(line.value);
        }
    }
}

static void robots_read_lines(struct reading *reading) {
    struct robots_lines lines = {.rest = reading->text};
    struct group group = {.is_open = false};
    struct robots_line line;
    if (reading->names_agent) {
        robots_keep(reading, reading->named_as);
    }
    while (robots_lines_next(&lines, &line)) {
        robots_group_follow(&group, &line, reading->agent);
        bool is_ours = reading->names_agent ? group.is_named : group.is_star;
        if (line.kind == ROBOTS_LINE_SITEMAP) {
            robots_add_sitemap(reading, line.value); /* of no group */
        } else if (is_ours && (line.kind == ROBOTS_LINE_ALLOW || line.kind == ROBOTS_LINE_DISALLOW)) {
            robots_add_rule(reading, &line);
        } else if (is_ours && line.kind == ROBOTS_LINE_DELAY) {
            robots_add_delay(reading, line.value);
        }
    }
}

/*
 * Without BOM, and without what is above the limit: a line that it cuts would say something else. A text of
 * just that size was perhaps cut by whoever received it.
 */
static struct bytes robots_readable_part(struct bytes text, bool *ret_is_cut) {
    *ret_is_cut = text.size >= ROBOTS_TEXT_SIZE_MAX;
    if (bytes_starts_with(text, BYTES("\xef\xbb\xbf"))) {
        text = bytes_skip(text, 3);
    }
    if (!*ret_is_cut) {
        return text;
    }
    size_t end = text.size < ROBOTS_TEXT_SIZE_MAX ? text.size : ROBOTS_TEXT_SIZE_MAX;
    while (end > 0 && text.data[end - 1] != '\n' && text.data[end - 1] != '\r') {
        end--;
    }
    return bytes_slice(text, 0, end);
}

/* The rule that decides comes first: the longest, then Allow, then the order of the file. */
static int robots_compare_rules(const void *a, const void *b) {
    const struct robots_rule *left = a;
    const struct robots_rule *right = b;
    if (left->length != right->length) {
        return left->length > right->length ? -1 : 1;
    }
    if (left->is_allow != right->is_allow) {
        return left->is_allow ? -1 : 1;
    }
    return left->number < right->number ? -1 : left->number > right->number;
}

static struct piece *robots_sitemaps_of(const struct robots *robots) {
    return (struct piece *)(robots->rules + robots->rules_count);
}

static const uint8_t *robots_text_of(const struct robots *robots) {
    return (const uint8_t *)(robots_sitemaps_of(robots) + robots->sitemaps_count);
}

static struct bytes robots_bytes_of_piece(const struct robots *robots, struct piece piece) {
    return bytes_of(robots_text_of(robots) + piece.offset, piece.size);
}

void robots_init(struct robots *robots, enum robots_policy policy) {
    *robots = (struct robots){.policy = policy, .agent = BYTES("*")};
}

void robots_done(struct robots *robots) {
    free(robots->rules);
    robots_init(robots, ROBOTS_ALLOW_NOTHING);
}

enum err robots_parse(struct robots *robots, struct bytes text, struct bytes agent) {
    robots_done(robots);
    struct reading reading = {.agent = robots_product_token(agent)};
    bool is_cut;
    reading.text = robots_readable_part(text, &is_cut);
    robots_find_agent(&reading);
    robots_read_lines(&reading);

    size_t rules_size = reading.rules_count * sizeof(struct robots_rule);
    size_t sitemaps_size = reading.sitemaps_count * sizeof(struct piece);
    size_t size = rules_size + sitemaps_size + reading.out.size;
    struct robots_rule *block = malloc(size > 0 ? size : 1);
    if (block == NULL) {
        return ERR_MEMORY;
    }
    *robots = (struct robots){
        .policy = ROBOTS_OBEY,
        .names_agent = reading.names_agent,
        .is_cut = is_cut,
        .crawl_delay_us = reading.crawl_delay_us,
        .agent = BYTES("*"),
        .rules = block,
        .rules_count = reading.rules_count,
        .sitemaps_count = reading.sitemaps_count,
        .memory_size = size,
    };
    size_t text_size = reading.out.size;
    reading.is_filling = true;
    reading.rules = block;
    reading.rules_count = 0;
    reading.sitemaps = robots_sitemaps_of(robots);
    reading.sitemaps_count = 0;
    reading.out =
        (struct robots_text){.data = (uint8_t *)block + rules_size + sitemaps_size, .capacity = text_size};
    robots_read_lines(&reading);
    ASSERT(reading.out.size == text_size && reading.rules_count == robots->rules_count);
    if (reading.names_agent) {
        robots->agent = bytes_of(robots_text_of(robots), reading.named_as.size);
    }
    qsort(block, reading.rules_count, sizeof *block, robots_compare_rules);
    return ERR_OK;
}

/* ---- Checking ---- */

enum robots_policy robots_from_status(unsigned status) {
    if (status >= 200 && status < 300) {
        return ROBOTS_OBEY;
    }
    return status >= 300 && status < 500 ? ROBOTS_ALLOW_ALL : ROBOTS_ALLOW_NOTHING;
}

/* A path in both forms. */
struct subject {
    struct bytes closed;
    struct bytes open;
    bool is_cut; /* its end is not known */
};

static bool robots_rule_matches(const struct robots *robots, const struct robots_rule *rule,
                                const struct subject *subject) {
    if (rule->is_anchored && subject->is_cut) {
        return false;
    }
    if (robots_matches(robots_bytes_of_piece(robots, rule->pattern), rule->is_anchored, subject->closed)) {
        return true;
    }
    return rule->has_query && robots_matches(robots_bytes_of_piece(robots, rule->open_pattern),
                                             rule->is_anchored, subject->open);
}

static void robots_normalise_text(struct bytes path_and_query, enum robots_form form,
                                  struct robots_text *text) {
    robots_normalise(text, path_and_query, form, false);
    text->size = text->size < text->capacity ? text->size : text->capacity;
}

/* The deciding rule, or NULL; *ret_is_done is false if it took too long to find out. */
static const struct robots_rule *robots_find_rule(const struct robots *robots, struct bytes path_and_query,
                                                  bool *ret_is_done) {
    UNINITIALIZED uint8_t closed[ROBOTS_PATH_SIZE_MAX];
    UNINITIALIZED uint8_t open[ROBOTS_PATH_SIZE_MAX];
    struct robots_text closed_text = {.data = closed, .capacity = sizeof closed};
    struct robots_text open_text = {.data = open, .capacity = sizeof open};
    robots_normalise_text(path_and_query, ROBOTS_FORM_CLOSED, &closed_text);
    robots_normalise_text(path_and_query, ROBOTS_FORM_OPEN, &open_text);
    struct subject subject = {
        .closed = bytes_of(closed, closed_text.size),
        .open = bytes_of(open, open_text.size),
        .is_cut = closed_text.size == sizeof closed,
    };
    size_t steps = 0;
    *ret_is_done = true;
    for (uint32_t i = 0; i < robots->rules_count; i++) {
        const struct robots_rule *rule = &robots->rules[i];
        steps += rule->has_star ? subject.closed.size : 1;
        if (steps > ROBOTS_STEPS_MAX) {
            *ret_is_done = false;
            return NULL;
        }
        if (robots_rule_matches(robots, rule, &subject)) {
            return rule;
        }
    }
    return NULL;
}

static void robots_check_rules(const struct robots *robots, struct bytes path_and_query,
                               struct robots_verdict *verdict) {
    bool is_done;
    const struct robots_rule *rule = robots_find_rule(robots, path_and_query, &is_done);
    if (!is_done) {
        verdict->reason = ROBOTS_TOO_COMPLEX;
        verdict->is_allowed = false;
    } else if (rule != NULL) {
        verdict->reason = ROBOTS_BY_RULE;
        verdict->is_allowed = rule->is_allow;
        verdict->line = rule->number;
        verdict->text = robots_bytes_of_piece(robots, rule->line);
    }
}

static struct robots_verdict robots_check_path(const struct robots *robots, struct bytes path_and_query) {
    struct robots_verdict verdict = {.is_allowed = true, .reason = ROBOTS_NO_RULE, .agent = robots->agent};
    if (bytes_equal(path_and_query, BYTES("/robots.txt"))) {
        verdict.reason = ROBOTS_ITSELF;
    } else if (robots->policy == ROBOTS_ALLOW_ALL) {
        verdict.reason = ROBOTS_BY_ALLOW_ALL;
    } else if (robots->policy == ROBOTS_ALLOW_NOTHING) {
        verdict.reason = ROBOTS_BY_ALLOW_NOTHING;
        verdict.is_allowed = false;
    } else {
        robots_check_rules(robots, path_and_query, &verdict);
    }
    return verdict;
}

bool robots_check(const struct robots *robots, struct bytes path_and_query,
                  struct robots_verdict *ret_verdict) {
    struct robots_verdict verdict = robots_check_path(robots, path_and_query);
    if (ret_verdict != NULL) {
        *ret_verdict = verdict;
    }
    return verdict.is_allowed;
}

struct bytes robots_sitemap(const struct robots *robots, uint32_t index) {
    ASSERT(index < robots->sitemaps_count);
    return robots_bytes_of_piece(robots, robots_sitemaps_of(robots)[index]);
}

const char *robots_explain(const struct robots_verdict *verdict, char out[ROBOTS_SENTENCE_SIZE_MAX]) {
    static const char *const texts[] = {
        [ROBOTS_NO_RULE] = "no rule of robots.txt matches",
        [ROBOTS_ITSELF] = "robots.txt itself is always allowed",
        [ROBOTS_BY_ALLOW_ALL] = "the host has no robots.txt",
        [ROBOTS_BY_ALLOW_NOTHING] = "robots.txt cannot be had, so nothing is allowed",
        [ROBOTS_TOO_COMPLEX] = "robots.txt has too many rules to tell, so it is not allowed",
    };
    if (verdict->reason != ROBOTS_BY_RULE) {
        snprintf(out, ROBOTS_SENTENCE_SIZE_MAX, "%s", texts[verdict->reason]);
        return out;
    }
    int text_size = verdict->text.size > 100 ? 100 : (int)verdict->text.size;
    int agent_size = verdict->agent.size > 40 ? 40 : (int)verdict->agent.size;
    snprintf(out, ROBOTS_SENTENCE_SIZE_MAX, "line %u of robots.txt, \"%.*s\" for \"%.*s\", decides",
             verdict->line, text_size, (const char *)verdict->text.data, agent_size,
             (const char *)verdict->agent.data);
    return out;
}
