/*
 * cdxj - one line of a CDXJ index: where one capture lies, and what it is.
 *
 *      org,example)/b 20260102030405 {"url": "http://example.org/B", "mime": "text/html", "status": "200",
 *      "digest": "B2LT…", "length": "2258", "offset": "334", "filename": "a.warc.gz"}          (one line)
 *
 * The key is a SURT (web/url/surt.h); lines sorted by bytes are sorted by key and time. All values are
 * written as strings.
 */
#ifndef MNEMON_WARC_CDXJ_H
#define MNEMON_WARC_CDXJ_H

#include "base/json.h"

enum { CDXJ_LINE_SIZE_MAX = 512 << 10 };

/* Empty slices stand for what is absent. */
struct cdxj {
    struct bytes key;
    int64_t time_us;  /* whole seconds in the line */
    struct bytes url; /* with method and body of the request, if it was no GET: warc/request_key.h */
    struct bytes mime;
    uint16_t status; /* 0: absent */
    struct bytes digest;
    bool has_place;
    uint64_t length;
    uint64_t offset;
    struct bytes filename;
    struct bytes id; /* its permanent address in an archive; files that leave it have none */
};

/* Append the line with its line end. ERR_INVALID if the key is empty or has white space. */
enum err cdxj_put(struct buf *out, const struct cdxj *cdxj) MUST_CHECK;

/* The same with key and time inside the object, as CDX servers answer with output=json. */
enum err cdxj_put_json(struct buf *out, const struct cdxj *cdxj) MUST_CHECK;

#endif
