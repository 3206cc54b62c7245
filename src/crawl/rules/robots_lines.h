/*
 * robots_lines - a robots.txt line by line, each with what it is; part of robots.h.
 */
#ifndef MNEMON_CRAWL_RULES_ROBOTS_LINES_H
#define MNEMON_CRAWL_RULES_ROBOTS_LINES_H

#include "base/bytes.h"

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

/* The next line, empty ones too. False at the end. */
bool robots_lines_next(struct robots_lines *lines, struct robots_line *ret_line);

/* The leading characters that a product token may have: "Mnemon" of "Mnemon/1.0 (x)". */
struct bytes robots_product_token(struct bytes text);

#endif
