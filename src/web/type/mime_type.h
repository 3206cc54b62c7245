/*
 * mime_type - the media type of a document, as browsers read it from Content-Type. The only parser of types
 * in the tree: whatever is decided by a type is decided by this reading of it, because a second one that
 * differs is how a page is taken for an image (";,text/html").
 *
 * One value is read by "parse a MIME type" of https://mimesniff.spec.whatwg.org, a header, which may hold
 * several values in one field or in many, by "extract a MIME type" of https://fetch.spec.whatwg.org: the last
 * value that is a type counts, and a charset stays in force as long as the type does not change.
 *
 * Of the parameters only charset is kept: nobody here needs another. An essence above MIME_ESSENCE_SIZE_MAX
 * is no type (RFC 6838 allows no longer names, and the index has room for no more).
 *
 * Pure; no memory but the caller's.
 */
#ifndef MNEMON_WEB_TYPE_MIME_TYPE_H
#define MNEMON_WEB_TYPE_MIME_TYPE_H

#include "base/bytes.h"

enum { MIME_ESSENCE_SIZE_MAX = 127, MIME_CHARSET_SIZE_MAX = 63 };

struct mime_type {
    char essence[MIME_ESSENCE_SIZE_MAX + 1]; /* "text/html", in lower case; "": there is no type */
    bool has_charset;
    char charset[MIME_CHARSET_SIZE_MAX + 1]; /* as it is written, cut off: no encoding has so long a label */
};

/* One value: "text/html; charset=utf-8". False, and no type, if it is none. */
bool mime_type_parse(struct mime_type *type, struct bytes value);

/* A whole header, its fields joined by commas if there are several. False, and no type, if none is in it. */
bool mime_type_extract(struct mime_type *type, struct bytes header);

/* Until the type changes. */
struct bytes mime_type_essence(const struct mime_type *type);
struct bytes mime_type_charset(const struct mime_type *type); /* empty if there is none */

/* Is this its essence? In lower case. */
bool mime_type_is(const struct mime_type *type, const char *essence);

/* Does its essence begin so? "image/", in lower case. */
bool mime_type_begins(const struct mime_type *type, const char *start);

/* The groups of the standard that more than one place asks for. */
bool mime_type_is_html(const struct mime_type *type); /* text/html and application/xhtml+xml: a page */
bool mime_type_is_xml(const struct mime_type *type);
bool mime_type_is_script(const struct mime_type *type);

#endif
