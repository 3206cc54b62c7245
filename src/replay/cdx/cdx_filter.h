/*
 * cdx_filter - one filter= of a CDX query.
 *
 *      Internet Archive   [!]field:regex         all of the field matches; without "field:", the whole line
 *      pywb               [!]field:text          the field has the text in it
 *                         [!]=field:text         is the text
 *                         [!]~field:regex        begins with what matches
 *
 * Regular expressions are Perl's (PCRE2). Each match has a bound on its work, so that one which would take
 * years ends at once, with ERR_LIMIT.
 */
#ifndef MNEMON_REPLAY_CDX_CDX_FILTER_H
#define MNEMON_REPLAY_CDX_CDX_FILTER_H

#include "replay/cdx/cdx_field.h"

enum { CDX_PATTERN_SIZE_MAX = 2048 };

struct regex;

struct cdx_filter {
    enum cdx_field field; /* or CDX_WHOLE_LINE */
    bool is_inverted;
    enum { CDX_FILTER_CONTAINS, CDX_FILTER_EQUALS, CDX_FILTER_REGEX } kind;
    struct bytes text;   /* borrowed */
    struct regex *regex; /* NULL for the other kinds */
};

/* The text lives as long as the filter. ERR_INVALID with the reason; there is then nothing to free. */
enum err cdx_filter_init(struct cdx_filter *filter, enum cdx_dialect dialect, struct bytes text,
                         struct err_detail *detail) MUST_CHECK;
void cdx_filter_done(struct cdx_filter *filter);

/* The fields that it needs. */
unsigned cdx_filter_fields(const struct cdx_filter *filter);

/* ERR_LIMIT if the regular expression is too much work. */
enum err cdx_filter_run(const struct cdx_filter *filter, struct cdx_line *line, bool *ret_passes,
                        struct err_detail *detail) MUST_CHECK;

#endif
