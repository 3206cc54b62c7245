/*
 * input - what every reader of a URL does first: trim it, drop its line breaks, find its scheme.
 */
#ifndef MNEMON_WEB_URL_INPUT_H
#define MNEMON_WEB_URL_INPUT_H

#include "base/buf.h"

/* Without spaces and control characters at both ends. */
struct bytes input_trim(struct bytes text);

/* Index of the first tab, LF or CR, which URLs lose wherever they are; text.size if there is none. */
size_t input_find_newline(struct bytes text);

/* Append the text without tabs, LF and CR. */
enum err input_put_without_newlines(struct buf *out, struct bytes text);

/* The place in the text of what is at `offset` once tabs, LF and CR are gone. */
size_t input_original_offset(struct bytes text, size_t offset);

/* Length of the scheme before ':', or 0 if the text does not start with one. */
size_t input_scheme_length(struct bytes text);

#endif
