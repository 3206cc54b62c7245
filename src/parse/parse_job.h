/*
 * parse_job - a piece of parsing, as the function that does it sees it: bytes in, bytes out.
 *
 *      params      what the caller wants to know, in the layout of the kind (parse_page.h …)
 *      take()      the document, a piece at a time
 *      put()       what becomes of it, a piece at a time, in the layout of the kind
 *      note        a few facts about it, once, at the end
 *
 * Where it runs is not its concern: in a process of its own that can do nothing else (parse_process.h), or in
 * the caller's thread (parsers.h). So it opens nothing, starts nothing and asks nobody.
 */
#ifndef MNEMON_PARSE_PARSE_JOB_H
#define MNEMON_PARSE_PARSE_JOB_H

#include "base/bytes.h"
#include "base/err.h"

enum {
    PARSE_PARAMS_SIZE_MAX = 512 << 10, /* two URLs, one of them escaped for HTML, and a head */
    PARSE_NOTE_SIZE_MAX = 2 << 10,
};

/* The kinds of jobs. Only this program and its own processes use the numbers: they may change. */
enum parse_number {
    PARSE_PAGE,    /* a document that leads into the archive: parse_page.h */
    PARSE_DECODE,  /* a document without its encodings: parse_decode.h */
    PARSE_LINKS,   /* its links: parse_links.h */
    PARSE_TEXT,    /* its text: parse_text.h */
    PARSE_LINES,   /* its lines: parse_lines.h */
    PARSE_SITEMAP, /* what a site lists: crawl/engine/parse_sitemap.h */
    PARSE_NUMBERS_COUNT,
};

struct parse_io {
    struct bytes params;
    /* An empty piece: that was all. It lasts until the next call. */
    enum err (*take)(struct parse_io *io, struct bytes *ret_piece);
    enum err (*put)(struct parse_io *io, struct bytes piece);
    size_t note_size;
    uint8_t note[PARSE_NOTE_SIZE_MAX];
};

/* What one kind needs; its state serves one job after the other. */
struct parse_kind {
    enum parse_number number;
    void *(*make)(void); /* NULL: out of memory */
    void (*free)(void *state);
    /* An error of take() or put() ends the job with it. */
    enum err (*run)(void *state, struct parse_io *io);
};

#endif
