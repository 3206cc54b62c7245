/*
 * index_url - a URL, written as its difference from the one that its SURT implies.
 *
 *      SURT                       form            implies
 *      org,example:8080)/b?a=1    web             http://example.org:8080/b?a=1
 *      org,example)/b             web https www   https://www.example.org/b
 *      dns:example.org            -               dns:example.org
 *
 *      form:u8                                          the URL is what is implied
 *      form:u8 front:varint back:varint middle:string   it is the first `front` bytes of that, the middle,
 *                                                       and the last `back` bytes of that
 *
 * Most URLs of a crawl take one byte, those with capitals or a slash at the end a few more. Any URL can be
 * written with any SURT: at worst all of it is the middle.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_URL_H
#define MNEMON_STORE_INDEX_INDEX_URL_H

#include "base/buf.h"
#include "base/wire.h"
#include "store/index/index_code.h"

/* The size of the buffers below: the implied URL, "https://www." longer than its SURT, and a middle beside
 * it. */
enum { INDEX_URL_WORK_SIZE_MAX = INDEX_SURT_SIZE_MAX + 16 + INDEX_URL_SIZE_MAX };

/* work is a buffer of INDEX_URL_WORK_SIZE_MAX; if it fails, so does the call. */
enum err index_url_write(struct wire_writer *writer, struct bytes surt, struct bytes url,
                         struct buf *work) MUST_CHECK;

/*
 * Into url, a buffer of INDEX_URL_WORK_SIZE_MAX, for a SURT of at most INDEX_SURT_SIZE_MAX. Damage becomes
 * the reader's error; returned is only the buffer's, ERR_MEMORY.
 */
enum err index_url_read(struct wire_reader *reader, struct bytes surt, struct buf *url) MUST_CHECK;

#endif
