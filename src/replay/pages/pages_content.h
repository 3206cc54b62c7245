/*
 * pages_content - what parsers say of a capture's document, for pages*.c, which it is private to.
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_CONTENT_H
#define MNEMON_REPLAY_PAGES_PAGES_CONTENT_H

#include "base/buf.h"
#include "parse/parse_job.h"
#include "replay/archive/archive.h"

bool pages_content_is_html(const struct archive_record *record);

/* Can it be compared by lines? By its type. */
bool pages_content_is_text(const struct archive_record *record);

/* As jobs want it. */
struct bytes pages_content_head(const struct archive_record *record);

/*
 * Have the document parsed; what comes out is appended. *ret_is_cut: there is more, by a note of one byte or
 * because *out is full. ERR_BUSY: its parser ended.
 */
enum err pages_content_parse(struct archive_reader *reader, const struct archive_record *record,
                             const struct parse_kind *kind, struct bytes params, struct buf *out,
                             bool *ret_is_cut, struct err_detail *detail) MUST_CHECK;

#endif
