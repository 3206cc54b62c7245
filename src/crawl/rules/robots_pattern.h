/*
 * robots_pattern - the two halves of robots.txt matching: one spelling for equal paths, and wildcards.
 *
 * Part of robots.h, which says what the rules are.
 */
#ifndef MNEMON_CRAWL_RULES_ROBOTS_PATTERN_H
#define MNEMON_CRAWL_RULES_ROBOTS_PATTERN_H

#include "base/bytes.h"

/*
 * CLOSED leaves escapes of reserved characters alone: "/a%2Fb" is not "/a/b". OPEN decodes those of ":/?@"
 * behind the first '?', if they mean the same with and without escape, so that "?u=https://x" and
 * "?u=https%3A%2F%2Fx" are equal, as the RFC's examples want it.
 */
enum robots_form { ROBOTS_FORM_CLOSED, ROBOTS_FORM_OPEN };

struct robots_text {
    uint8_t *data; /* NULL: only the size is wanted */
    size_t capacity;
    size_t size; /* wanted, perhaps more than the capacity */
};

void robots_text_put(struct robots_text *out, uint8_t byte);

/* Append the normalised text. In a pattern '*' stays what it is; elsewhere it is escaped, and '$' always. */
void robots_normalise(struct robots_text *out, struct bytes text, enum robots_form form, bool is_pattern);

/* Both normalised; of a pattern that ends with '$', without that and anchored. Linear in the path. */
bool robots_matches(struct bytes pattern, bool is_anchored, struct bytes path);

#endif
