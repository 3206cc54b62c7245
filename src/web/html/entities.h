/*
 * entities - the named character references of HTML: all 2,231 names, 106 of them with and without ';'.
 *
 * The table is generated (tools/make-entities) from the list of the standard,
 * https://html.spec.whatwg.org/multipage/named-characters.html.
 */
#ifndef MNEMON_WEB_HTML_ENTITIES_H
#define MNEMON_WEB_HTML_ENTITIES_H

#include "base/bytes.h"

enum { ENTITIES_COUNT = 2125 };

/* The name, without '&' and ';', is text[at, at + name_size); the value, in UTF-8, stands behind it. */
struct entity {
    uint16_t at;
    uint8_t name_size;
    uint8_t value_size;
    bool is_bare; /* known without ';' too */
};

extern const char entities_text[];
extern const struct entity entities_table[ENTITIES_COUNT]; /* by name, in the order of bytes */

/*
 * The longest name that the text (what follows a '&') starts with. Returns how many bytes of the text it is,
 * with its ';' if there is one, and the characters that it means; 0 if there is none.
 */
size_t entities_find(struct bytes text, struct bytes *ret_value);

#endif
