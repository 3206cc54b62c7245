/* css_escape - escapes and names of CSS: "\75 rl" is "url". */
#ifndef MNEMON_WEB_HTML_CSS_ESCAPE_H
#define MNEMON_WEB_HTML_CSS_ESCAPE_H

#include "base/buf.h"

enum { CSS_ESCAPE_SIZE_MAX = 9 }; /* '\', six digits, CR LF */

/* Sizes of what starts a text. Incomplete: the text ends too early to say, and is not the last. */
#define CSS_INCOMPLETE SIZE_MAX

/* Of the escape at the start of the text, which starts with '\'; 0 where a line end follows. */
size_t css_escape_size(struct bytes text, bool is_last);

/* Of the longest run of name characters and escapes. */
size_t css_name_size(struct bytes text, bool is_last);

bool css_is_newline(uint8_t byte);
bool css_is_space(uint8_t byte);
bool css_is_name(uint8_t byte);

/* Whether the name, escapes resolved, in any case, is this word, given in lower case. */
bool css_name_equals(struct bytes name, struct bytes word);

#endif
