/*
 * sitemap_state - what the two halves of a sitemap (sitemap.h) tell each other. Private to them.
 *
 * One machine in two files:
 *      sitemap.c         what the elements mean
 *      sitemap_scan.c    the bytes as elements, attributes and texts. Not an XML parser: it finds its way
 *                        through anything that has tags, and bounds all that it keeps.
 */
#ifndef MNEMON_CRAWL_RULES_SITEMAP_STATE_H
#define MNEMON_CRAWL_RULES_SITEMAP_STATE_H

#include "crawl/rules/sitemap.h"

void sitemap_scan(struct sitemap *sitemap, struct bytes piece);

/* In a plain text whose last line has no end. */
bool sitemap_scan_is_line(const struct sitemap *sitemap);

/* What the scanner tells the upper half (sitemap.c). */

/* <name …>, after its attributes; is_empty says whether it ends at once. */
void sitemap_open_element(struct sitemap *sitemap);

/* </name> */
void sitemap_close_element(struct sitemap *sitemap);

/* sitemap->attribute of the element has the value sitemap->text. */
void sitemap_take_attribute(struct sitemap *sitemap);

/* sitemap->text is a line. */
void sitemap_take_line(struct sitemap *sitemap);

static inline void sitemap_put_text(struct sitemap *sitemap, uint8_t byte) {
    if (sitemap->text_size < sizeof sitemap->text) {
        sitemap->text[sitemap->text_size++] = byte;
    } else {
        sitemap->is_text_too_long = true;
    }
}

static inline void sitemap_clear_text(struct sitemap *sitemap) {
    sitemap->text_size = 0;
    sitemap->is_text_too_long = false;
}

#endif
