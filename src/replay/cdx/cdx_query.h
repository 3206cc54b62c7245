/*
 * cdx_query - the parameters of a CDX request, read from its query string. Pure: no archive is needed.
 *
 * Names that are not known are ignored, as the original servers do; values that are not understood are not.
 * docs/api.md has all parameters.
 */
#ifndef MNEMON_REPLAY_CDX_CDX_QUERY_H
#define MNEMON_REPLAY_CDX_CDX_QUERY_H

#include "replay/cdx/cdx_filter.h"

enum {
    CDX_FILTERS_MAX = 32,
    CDX_COLLAPSES_MAX = 8,
    CDX_SHOWN_MAX = 32,
    CDX_LINES_MAX = 100000, /* of one answer */
    CDX_PAGE_SIZE = 10000,  /* unless pageSize= says otherwise; in captures */
};

enum cdx_output { CDX_TEXT, CDX_JSON, CDX_CDXJ, CDX_LINK };
enum cdx_sort { CDX_FORWARD, CDX_REVERSE, CDX_CLOSEST };

struct cdx_collapse {
    enum cdx_field field;
    size_t size; /* so many bytes of it are compared; SIZE_MAX: all */
};

struct cdx_query {
    enum cdx_dialect dialect;
    struct buf text; /* what the slices borrow */
    struct bytes url;
    enum query_match match;
    int64_t from_us;
    int64_t to_us;
    uint64_t limit;  /* at most CDX_LINES_MAX */
    bool is_of_last; /* the last so many, not the first */
    uint64_t offset;
    enum cdx_sort sort;
    int64_t closest_us;
    struct cdx_filter filters[CDX_FILTERS_MAX];
    size_t filters_count;
    struct cdx_collapse collapses[CDX_COLLAPSES_MAX];
    size_t collapses_count;
    enum cdx_field shown[CDX_SHOWN_MAX];
    size_t shown_count;
    bool is_shown_chosen; /* by fl= or fields= */
    enum cdx_output output;
    struct bytes origin; /* what CDX_LINK begins its links with; the caller's */
    bool has_page;
    uint64_t page;
    uint64_t page_size;
    bool wants_pages_count;
    bool wants_resume_key;
    struct bytes resume_key; /* empty: from the start */
    bool is_resolved;        /* resolveRevisits */
    enum archive_trust trust;
};

/* As if nothing had been asked; for a caller that fills it in itself. */
void cdx_query_init(struct cdx_query *query, enum cdx_dialect dialect);

/* Give the dialect's fields to a query that chooses none; those of the original come with resolved revisits.
 */
void cdx_query_choose_shown(struct cdx_query *query);

/* ERR_INVALID with a sentence for the client. query->output is right even then, as far as it was read. */
enum err cdx_query_parse(struct cdx_query *query, enum cdx_dialect dialect, struct bytes text,
                         struct err_detail *detail) MUST_CHECK;
void cdx_query_done(struct cdx_query *query);

#endif
