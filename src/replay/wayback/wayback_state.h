/*
 * wayback_state - one request under /web/. One machine in several files, which pass it on; private to them:
 *
 *      wayback.c           what is asked for, which capture that is, what is said if there is none
 *      wayback_serve.c     a capture that was found: as a redirect, in a frame, as it is, rewritten
 *      wayback_body.c      the bytes as they are stored: all, in ranges, streamed
 *      wayback_decode.c    the bytes without their encodings, and how much work that may be
 *      wayback_header.c    the headers that go with them
 *      wayback_frame.c     the page around a replayed page
 */
#ifndef MNEMON_REPLAY_WAYBACK_WAYBACK_STATE_H
#define MNEMON_REPLAY_WAYBACK_WAYBACK_STATE_H

#include "base/utc.h"
#include "parse/parse_page.h"
#include "parse/parse_seat.h"
#include "replay/archive/wayback_path.h"
#include "replay/site/partial.h"
#include "replay/site/replay.h"
#include "replay/wayback/rewritten.h"
#include "replay/wayback/wayback_safety.h"
#include "replay/wayback/wayback_type.h"
#include "run/turnstile.h"

enum {
    WAYBACK_TYPE_SIZE_MAX = 256,
    WAYBACK_PREFIX_SIZE_MAX = 64,
    WAYBACK_ETAG_SIZE_MAX = 128,
    WAYBACK_HEADER_SIZE_MAX = 28 << 10, /* of one value; the server has room for 48 KiB of them */
};

/* Above this, documents are not rewritten but sent as they are. */
static const uint64_t WAYBACK_REWRITE_SIZE_MAX = 64 << 20;
/* Most references become longer. What becomes larger than this is sent as it is too. */
static const uint64_t WAYBACK_REWRITTEN_SIZE_MAX = 256 << 20;
/* Above this, documents are not decoded but sent as they are stored. */
static const uint64_t WAYBACK_DECODE_SIZE_MAX = 512 << 20;

struct wayback_kit;

struct wayback {
    struct replay *replay;
    struct http_request *request;
    struct archive_reader *reader;
    struct wayback_kit *kit;
    const struct wayback_path *path;
    bool is_ours;             /* a page of ours asks: it knows the secret */
    bool is_top;              /* a browser's page of its own */
    enum archive_trust trust; /* as the path has it */
    char prefix[WAYBACK_PREFIX_SIZE_MAX];
    struct capture capture;
    char stamp[UTC_DIGITS_SIZE];  /* the capture's time */
    char around[UTC_DIGITS_SIZE]; /* the time of references in it */
    char address[STAMP_SIZE];     /* of the capture: its time, with the id if it was asked for by that */
    bool is_exact;                /* it is of the very time that was asked for */
    bool is_other;                /* it is of another URL than was asked for, with the same SURT */
    struct archive_record record;
    bool keeps_reader;           /* a stream ends it */
    uint64_t work_size;          /* decoded and rewritten so far */
    bool has_place;              /* in the archive's turnstile */
    bool is_put_off;             /* it takes a worker; see wayback_put_off() */
    bool is_awaited;             /* kit->job is away, and the loop goes on: see wayback_parse_aside() */
    enum err parsed;             /* what kit->job came to */
    struct err_detail undecoded; /* why the document is sent as it is stored */
    struct mime_type stated;     /* its type, as the server said it */
};

/* What requests use one after the other; it goes with a reader through the archive's pool. */
struct wayback_kit {
    struct wayback wayback; /* the request that has it now */
    struct archive_reader *reader;
    struct wayback_path path;
    struct archive *archive;
    struct parse_seat short_seat; /* for what is answered on the connection's loop */
    struct parse_seat long_seat;  /* on a worker */
    struct parse_job job;
    struct buf params;     /* of the job */
    struct url url;        /* of the capture */
    struct url target;     /* of a redirect */
    struct buf text;       /* the value of the header that is being made */
    struct buf insert;     /* put into HTML */
    struct scratch output; /* rewritten or decoded */
    struct sha256 sha256;
    uint8_t key[SHA256_SIZE]; /* of what is rewritten: rewritten.h */
    struct bytes streamed;    /* what is sent while the reader is kept for it */
};

/* ---- wayback.c ---- */

/* Lead to another capture, or to the same under another prefix or modifier. */
void wayback_redirect(struct wayback *wayback, const char *prefix, const char *stamp, struct bytes modifier,
                      struct bytes url);

/* "/web/", with the trust that was asked for, and with the secret: "/web/~KEY-members/". */
void wayback_put_prefix(const struct wayback *wayback, bool has_key, char out[WAYBACK_PREFIX_SIZE_MAX]);

/* This is the capture that is served. */
void wayback_choose(struct wayback *wayback, const struct capture *capture);

/* Is it a page, rather than a part of one? */
bool wayback_is_page(const struct wayback_path *path);

/* ---- wayback_serve.c ---- */

/* Answer with the capture. ERR_…: nothing was answered. */
enum err wayback_serve(struct wayback *wayback, struct err_detail *detail) MUST_CHECK;

/* What kit->job came to, after wayback_serve() has left with is_awaited. Likewise. */
enum err wayback_serve_parsed(struct wayback *wayback, struct err_detail *detail) MUST_CHECK;

/* Answer with what is in kit->output. */
void wayback_send_output(struct wayback *wayback, unsigned status, const char *type);

/* ---- wayback_body.c ---- */

/* The content encoding of the record, as it is labelled; empty for none. */
struct bytes wayback_coding(const struct archive_record *record);

/*
 * Send the body as it is stored, or decoded if the client does not accept its encoding. What exceeds the
 * limits of decoding goes as it is stored all the same, and a header says so: the client may decide.
 */
enum err wayback_send_stored(struct wayback *wayback, unsigned status, const char *type,
                             struct err_detail *detail) MUST_CHECK;

/* ---- wayback_decode.c ---- */

/*
 * Most documents take less time than handing the request to a worker would, so each is begun on the
 * connection's loop. ERR_BUSY: it turns out to be a larger one, and is begun again on a worker.
 */
enum err wayback_put_off(struct wayback *wayback) MUST_CHECK;

/*
 * So many bytes more are decoded or rewritten. ERR_BUSY: too many requests do a lot of work already;
 * ERR_CANCELLED: the client has left.
 */
enum err wayback_work(struct wayback *wayback, uint64_t size) MUST_CHECK;
void wayback_end_work(struct wayback *wayback);

/* The field Content-Encoding behind `after`; NULL for the first, and at the end. */
const struct field *wayback_next_coding(const struct archive_record *record, const struct field *after);

/* A head with nothing but the encodings: the chunks that the server's own speaks of are undone already. */
struct bytes wayback_coding_head(const struct archive_record *record, struct buf *out);

/*
 * Have kit->job done with the document, its output into kit->output. The errors of parse_end() and of
 * wayback_work(); what comes of parse_is_lost() is one.
 */
enum err wayback_parse(struct wayback *wayback, const struct parse_kind *kind,
                       uint64_t out_size_max) MUST_CHECK;

/*
 * The same on a loop that goes on meanwhile, if parsers have short documents, too. False: then
 * wayback_parse() has it done here.
 */
bool wayback_parse_aside(struct wayback *wayback, const struct parse_kind *kind, uint64_t out_size_max);

/* For the loop, with the wayback as context: http_request_await(). */
bool wayback_is_parsed(void *context);
void wayback_await_parsed(void *context, uint32_t timeout_us);

/* Answer with the document without its encodings, or nothing was answered: as above. */
enum err wayback_send_decoded(struct wayback *wayback, unsigned status, const char *type,
                              struct err_detail *detail) MUST_CHECK;

/* ---- wayback_header.c ---- */

/* A field's value as a header can have it: without control characters, cut at the size. Returns out. */
char *wayback_clean(struct bytes value, char *out, size_t out_size);

/* Whatever the server said, under names that do nothing; and Memento's links. */
enum err wayback_add_headers(struct wayback *wayback) MUST_CHECK;

/* X-Mnemon-Url, if it is a capture of another URL than was asked for. */
void wayback_add_url(struct wayback *wayback);

/* What names these bytes; it depends on the time too if references are rewritten. */
void wayback_etag(const struct wayback *wayback, bool is_rewritten, char out[WAYBACK_ETAG_SIZE_MAX]);

/* ---- wayback_frame.c ---- */

enum err wayback_answer_frame(struct wayback *wayback) MUST_CHECK;

#endif
