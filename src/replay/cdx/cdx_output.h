/*
 * cdx_output - captures as lines of a CDX answer.
 *
 *                Internet Archive                         pywb
 *      text      fields with spaces between them          the same
 *      json      [["urlkey",…],                           {"urlkey": "…", …}
 *                ["org,example)/",…]]                     a line each
 *      cdxj      urlkey timestamp {"url": "…", …}         the same
 *      link      <http://HOST/web/…>; rel="memento"; …    the same
 */
#ifndef MNEMON_REPLAY_CDX_CDX_OUTPUT_H
#define MNEMON_REPLAY_CDX_CDX_OUTPUT_H

#include "base/json.h"
#include "replay/cdx/cdx_query.h"

const char *cdx_output_type(const struct cdx_query *query);

/* The fields that a line must be filled with. */
unsigned cdx_output_fields(const struct cdx_query *query);

/* All that follows is written into *out; *json keeps the state in between. */
void cdx_output_init(struct json *json, struct buf *out, const struct cdx_query *query);

/* Append one line; the first has index 0. */
void cdx_output_line(struct json *json, const struct cdx_query *query, struct cdx_line *line, uint64_t index);

/* Append what ends so many lines: the resume key, unless it is empty, and brackets. */
void cdx_output_end(struct json *json, const struct cdx_query *query, uint64_t lines_count, struct bytes key);

/* The last line of JSON in lines: this may not be all. Other forms, and a table, have no place for it. */
void cdx_output_partial(struct json *json, const struct cdx_query *query, const struct absent *absent);

/* The whole answer to showNumPages. */
void cdx_output_pages(struct json *json, const struct cdx_query *query, uint64_t pages_count);

#endif
