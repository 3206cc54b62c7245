/*
 * fill - a piece of a page with blanks in it, and what goes into them.
 *
 *      FILL(sheet, "<a href=\"{url}\">{text}</a>: {count} captures, {size}\n", {.text = url}, {.text =
 * title},
 *           {.number = captures_count}, {.number = size});
 *
 * There are as many values as blanks. A blank says how its value is written, as the function of that name in
 * sheet.h does: {text}, {url}, {argument} take .text and escape it; {count}, {size}, {status} take .number;
 * {time}, {date} take .time_us; {replay} takes .text, .time_us and, for a permanent address, .id. Besides:
 * {string} escapes .string, {html} takes it as it is, for words of our own, and {number} is .number in digits
 * alone.
 */
#ifndef MNEMON_REPLAY_SITE_FILL_H
#define MNEMON_REPLAY_SITE_FILL_H

#include "replay/site/sheet.h"

struct fill {
    struct bytes text;
    const char *string;
    uint64_t number;
    int64_t time_us;
    uint64_t id;
};

void fill_put(struct sheet *sheet, const char *html, const struct fill *values, size_t count);
#define FILL(sheet, html, ...)                                    \
    fill_put((sheet), (html), (const struct fill[]){__VA_ARGS__}, \
             sizeof((const struct fill[]){__VA_ARGS__}) / sizeof(struct fill))

#endif
