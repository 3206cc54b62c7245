/*
 * record - one stored record taken apart: its WARC header, the HTTP head in its block, the body behind it.
 *
 * And the way back: a body that fits a head which announces chunks.
 */
#ifndef MNEMON_STORE_INSTANCE_RECORD_H
#define MNEMON_STORE_INSTANCE_RECORD_H

#include "store/instance/instance.h"
#include "warc/payload.h"
#include "warc/warc_record.h"

struct record {
    struct warc_record header; /* borrows text */
    struct bytes head;         /* HTTP, with its empty line; empty if the block is not HTTP */
    struct bytes body;         /* as received; both last until the next get on the session */
    struct buf text;           /* the header, which parsing changes */
    struct payload payload;
};

enum err record_init(struct record *record) MUST_CHECK;
void record_done(struct record *record);

/* ERR_CORRUPT if what lies there is no record. */
enum err record_read(struct record *record, struct instance_session *session, uint16_t volume,
                     const struct location *location, struct err_detail *detail) MUST_CHECK;

/* The size of the HTTP head that the block begins with; 0 if there is none. */
size_t record_split(struct payload *payload, struct bytes block);

/*
 * The payload in the transfer encoding that the head announces: itself, or one chunk, made in `out`.
 * payload->head is that of the last record_split().
 */
enum err record_encode(const struct payload *payload, struct bytes document, struct buf *out,
                       struct bytes *ret_body) MUST_CHECK;

/* Our own fields of the header that every copy of the capture keeps: TLS, signature. Returns how many. */
enum { RECORD_KEPT_FIELDS_MAX = 4 };
size_t record_kept_fields(const struct warc_record *header, struct field out[RECORD_KEPT_FIELDS_MAX]);

/* Is it the revisit of what the server said was not modified? Its HTTP head is then that of the answer, 304.
 */
bool record_is_not_modified(const struct warc_record *header);

#endif
