#include "crawl/rules/robots_lines.h"

/* The misspellings are those that crawlers have come to accept. */
static enum robots_line_kind line_kind_of(struct bytes name) {
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

static size_t find_space(struct bytes text) {
    size_t i = 0;
    while (i < text.size && text.data[i] != ' ' && text.data[i] != '\t') {
        i++;
    }
    return i;
}

/* "name: value", or "name value" where the colon was forgotten. */
static void read_line(struct robots_line *line) {
    size_t colon = bytes_find_byte(line->text, ':');
    line->kind = line_kind_of(bytes_trim(bytes_slice(line->text, 0, colon)));
    if (line->kind == ROBOTS_LINE_OTHER) {
        colon = find_space(line->text);
        line->kind = line_kind_of(bytes_slice(line->text, 0, colon));
    }
    line->value = bytes_trim(bytes_skip(line->text, colon < line->text.size ? colon + 1 : colon));
}

bool robots_lines_next(struct robots_lines *lines, struct robots_line *ret_line) {
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
    read_line(ret_line);
    return true;
}

struct bytes robots_product_token(struct bytes text) {
    size_t i = 0;
    while (i < text.size && (byte_is_alpha(text.data[i]) || text.data[i] == '-' || text.data[i] == '_')) {
        i++;
    }
    return bytes_slice(text, 0, i);
}
