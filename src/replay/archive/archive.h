/*
 * archive - what replay sees of the archive: find a capture, walk over captures, open one.
 *
 * Everything that is shown to anybody comes through here, so here the access rules (store/access/access.h)
 * are applied: what is excluded is not there; what is blocked is found and listed but cannot be opened. To
 * the captures of an archive that another node owns and this one mirrors, its owner's rules apply as well.
 *
 * A reader is what one request needs: sessions and buffers. It is taken from a pool, since which thread
 * serves which request is the server's choice, and belongs to one thread at a time.
 */
#ifndef MNEMON_REPLAY_ARCHIVE_ARCHIVE_H
#define MNEMON_REPLAY_ARCHIVE_ARCHIVE_H

#include "base/clock.h"
#include "http/message/http_head.h"
#include "replay/archive/stamp.h"
#include "store/access/access.h"
#include "store/instance/absent.h"
#include "store/instance/instance.h"
#include "store/instance/query.h"
#include "store/instance/record.h"

struct archive;
struct archive_reader;
struct archive_walk;
struct turnstile;
struct scratch_budget;
struct parsers;

/* Was the key a member of this node's ring at that time? */
enum archive_membership { ARCHIVE_MEMBERSHIP_UNKNOWN, ARCHIVE_MEMBER, ARCHIVE_STRANGER };

struct archive_config {
    struct instance *instance;     /* outlives the archive */
    struct access *access;         /* likewise; NULL: everything is allowed */
    const char *scratch_directory; /* likewise; for what is large */
    const struct clock *clock;     /* likewise; NULL: the system's */
    struct parsers *parsers;       /* likewise; NULL: documents are parsed in the thread that wants it */
    bool parses_short;             /* by them also what is short, while its loop goes on */
    bool trusts_fetched_only; /* readers see only what a member has fetched, if they do not say otherwise */
    /* The key begins with these 8 bytes (store/index/index_code.h); 0: none. Any thread; must not wait.
     * UNKNOWN: there is no ring. NULL: the same. */
    enum archive_membership (*judge)(void *context, uint64_t voucher, int64_t time_us);
    /* Does the ring take a capture that another node lists? Likewise. NULL: yes. */
    bool (*admits)(void *context, const struct capture *capture);
    void *context;
};

struct archive *archive_new(const struct archive_config *config); /* NULL: out of memory */

/* All readers must have ended. */
void archive_free(struct archive *archive);

struct instance *archive_instance(const struct archive *archive);
const char *archive_scratch_directory(const struct archive *archive); /* for what is large */
struct parsers *archive_parsers(const struct archive *archive);
struct parsers *archive_short_parsers(const struct archive *archive); /* for documents that are short */

/*
 * What outsiders may make this process do at once, all requests together: files for what is made of captures,
 * and long work.
 */
struct scratch_budget *archive_budget(struct archive *archive);
struct turnstile *archive_work(struct archive *archive);

struct archive_reader *archive_reader_begin(struct archive *archive); /* NULL: out of memory */
void archive_reader_end(struct archive_reader *reader);               /* may be NULL */

/* One that sees only what is on this machine, not what its ring has: for what is asked at every key press. */
struct archive_reader *archive_reader_begin_here(struct archive *archive);

/* One that sees only what this node has stored itself, not the archives of others that it keeps: for counts.
 */
struct archive_reader *archive_reader_begin_own(struct archive *archive);

/* For a reader that lasts: from now on it sees the archives of others as they are now. What was opened is not
 * valid any more. */
void archive_reader_renew(struct archive_reader *reader);

/*
 * The reader will last as long as a client takes to read what it holds. False if too many do so already:
 * readers have files and memory.
 */
bool archive_reader_hold(struct archive_reader *reader) MUST_CHECK;

/* For a thread that may not be kept for long: until the end of the reader, or false, archive_open() gives
 * ERR_LIMIT for what is large or on another machine. */
void archive_reader_set_brief(struct archive_reader *reader, bool is_brief);

/* What a reader wants to see. */
enum archive_trust {
    ARCHIVE_TRUST_DEFAULT, /* as archive_config says */
    ARCHIVE_TRUST_ANY,     /* "any" */
    ARCHIVE_TRUST_MEMBERS, /* "members": only what a member of the ring has fetched: archive_provenance() */
    ARCHIVE_TRUST_INVALID,
};

/* Empty: the default. */
enum archive_trust archive_trust_parse(struct bytes word);

/* Until the end of the reader; before its first look. */
void archive_reader_set_trust(struct archive_reader *reader, enum archive_trust trust);

struct instance_session *archive_reader_session(struct archive_reader *reader);
const struct archive *archive_reader_archive(const struct archive_reader *reader);
struct parsers *archive_reader_parsers(const struct archive_reader *reader); /* of its archive */

/* Who could hold what the reader looked for and did not answer (store/instance/absent.h), since it began. */
const struct absent *archive_reader_absent(const struct archive_reader *reader);

/* What wayback.c wants to use again with the next reader, NULL at first; freed with the reader. */
void *archive_reader_extra(const struct archive_reader *reader);
void archive_reader_set_extra(struct archive_reader *reader, void *take_extra, void (*free_extra)(void *));

/* ---- finding ---- */

/* The key of a URL as anybody writes it, until the next call; ERR_INVALID with the reason. */
enum err archive_key(struct archive_reader *reader, struct bytes url, struct bytes *ret_surt,
                     struct err_detail *detail) MUST_CHECK;

enum archive_choice {
    ARCHIVE_CLOSEST,
    ARCHIVE_NOT_NEWER, /* the newest that is not newer than the time, else the closest: for parts of a page */
    ARCHIVE_EXACT,     /* of this very second, else ERR_NOT_FOUND */
    ARCHIVE_SETTLED,   /* the closest that is neither a redirect nor "not modified" */
};

/*
 * ERR_NOT_FOUND; ERR_UNREACHABLE if nothing was found but a volume is down. Captures of exactly the URL go
 * before all others, and those that differ in scheme or "www." before the rest (web/url/likeness.h); among
 * equals the time decides. An empty URL stands for any of the SURT. If several captures are of the second
 * that was asked for, the last is found. The slices live in the reader until the next find. One reader sees
 * the captures of a SURT as they were at its first look. Of a SURT with very many captures, none of them of
 * the URL, ARCHIVE_VARIANTS_MAX to each side of the time are compared.
 */
enum { ARCHIVE_VARIANTS_MAX = 1 << 14 };
enum err archive_find(struct archive_reader *reader, struct bytes surt, struct bytes url, int64_t time_us,
                      enum archive_choice choice, struct capture *ret_capture,
                      struct err_detail *detail) MUST_CHECK;

/* The capture of this SURT, second and id (stamp.h); else as archive_find(). */
enum err archive_find_id(struct archive_reader *reader, struct bytes surt, struct stamp stamp,
                         struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/* Is this the URL that was asked for, or else another one with its SURT? */
bool archive_is_asked(struct archive_reader *reader, struct bytes asked, struct bytes url);

/* A capture beside another one, with its own URL: for Memento's links. INT64_MIN: there is none. */
struct archive_neighbour {
    int64_t time_us;
    uint64_t id;
    struct bytes url;
};

static inline struct stamp archive_neighbour_stamp(const struct archive_neighbour *neighbour) {
    return (struct stamp){.time_us = neighbour->time_us, .id = neighbour->id};
}

/* The captures of a SURT around a second. There is a first if there is a previous one, a last if a next one.
 */
struct archive_neighbours {
    struct archive_neighbour first;
    struct archive_neighbour previous;
    struct archive_neighbour next;
    struct archive_neighbour last;
};

/* The slices live in the reader until its next look at another SURT, or for neighbours. */
enum err archive_neighbours(struct archive_reader *reader, struct bytes surt, int64_t time_us,
                            struct archive_neighbours *ret_neighbours) MUST_CHECK;

/* Replace the text by what the slices of the capture borrow, and let them borrow that: it then lasts. */
enum err archive_keep(struct buf *text, struct capture *capture) MUST_CHECK;

enum access_verdict archive_verdict(const struct archive_reader *reader, const struct capture *capture);

/* ---- walking: in the order of the index or exactly the reverse; excluded captures are left out ---- */

struct archive_range {
    struct bytes url;       /* as store/instance/query.h reads it: "example.org/a*", "*.example.org" … */
    enum query_match match; /* QUERY_BY_URL goes by its stars */
    int64_t from_us;        /* INT64_MIN … INT64_MAX for all */
    int64_t to_us;
    bool in_reverse;
    struct bytes after; /* go on behind this archive_walk_key(); empty: from the start */
    size_t steps_max;   /* of one archive_walk_next(), which is then ERR_BUSY; 0: as many as it takes */
};

enum err archive_walk_open(struct archive_reader *reader, const struct archive_range *range,
                           struct archive_walk **ret_walk, struct err_detail *detail) MUST_CHECK;

/*
 * ERR_NOT_FOUND at the end. The capture's slices last until the next call. ERR_BUSY: so many were passed over
 * as range->steps_max says; call again.
 */
enum err archive_walk_next(struct archive_walk *walk, struct capture *ret_capture,
                           struct err_detail *detail) MUST_CHECK;

/*
 * Append the key of the capture that was looked at last, given or passed over: opaque bytes for
 * archive_range.after. ERR_NOT_FOUND if there is none yet.
 */
enum err archive_walk_key(const struct archive_walk *walk, struct buf *out) MUST_CHECK;

/* The same of any capture that a walk has given. */
enum err archive_capture_key(const struct capture *capture, struct buf *out) MUST_CHECK;

/* Were there volumes that could not be asked? */
bool archive_walk_is_partial(const struct archive_walk *walk);
void archive_walk_close(struct archive_walk *walk);

/* ---- opening ---- */

/* A capture as it is to be replayed. Slices last until the next open of the reader. */
struct archive_record {
    uint16_t status;             /* of HTTP; 200 if it is not HTTP. For a "not modified": the original's */
    struct bytes head;           /* the HTTP head of this capture; for a "not modified": the original's */
    const struct fields *fields; /* of the head; empty if it is not HTTP */
    struct bytes content_type;   /* of the head, all fields of it, or of the resource record; may be empty */
    struct bytes body;           /* without chunks; content encodings as received; empty for an empty body */
    bool is_http;
    bool is_revisit;
    bool is_not_modified;             /* the server said so */
    const struct warc_record *header; /* of the capture's own record */
    struct key key;                   /* of the document */
    struct block block;               /* its location and size */
};

/*
 * ERR_PERMISSION if the rules block it; ERR_NOT_FOUND if its document was removed; ERR_CORRUPT if it
 * is damaged; ERR_UNREACHABLE if its volume is down; ERR_LIMIT as archive_reader_set_brief() has it.
 */
enum err archive_open(struct archive_reader *reader, const struct capture *capture,
                      struct archive_record *ret_record, struct err_detail *detail) MUST_CHECK;

/* ---- who vouches for it ---- */

enum provenance {
    PROVENANCE_UNKNOWN,  /* nobody's word: from before nodes signed what they imported, or a stranger's alone
                          */
    PROVENANCE_FETCHED,  /* a node that was a member then has signed that it fetched it */
    PROVENANCE_IMPORTED, /* a node has signed that it took it from a file */
};

/* "unknown", "fetched", "imported". */
const char *provenance_name(enum provenance provenance);

/* By what the index or a listing says; if that is nothing, and the record is on this machine, by the record.
 */
enum provenance archive_provenance(struct archive_reader *reader, const struct capture *capture);

/* What the fields of a record say, each signature by a program that checks it when the capture comes in. */
struct archive_origin {
    enum provenance provenance;
    struct bytes fetched_by; /* keys as text; of a stranger too. Empty: nobody says so */
    struct bytes imported_by;
    bool is_stranger; /* fetched_by was no member then */
    bool is_unjudged; /* fetched_by: not known whether it was */
    bool is_later;    /* one of both is of a version that this program cannot check */
};

/* Is there anybody who says which keys are of members? */
bool archive_knows_members(const struct archive *archive);

void archive_origin_read(const struct archive *archive, const struct fields *fields, int64_t time_us,
                         struct archive_origin *ret_origin);

enum { ARCHIVE_WITNESSES_MAX = 16, ARCHIVE_KEY_TEXT_SIZE = 53 };

struct archive_witness {
    char key[ARCHIVE_KEY_TEXT_SIZE]; /* of the node, in base32; empty: its record could not be read */
    int64_t time_us;                 /* when it fetched the page */
    uint64_t id;                     /* of its capture, which has an address of its own: stamp.h */
    uint16_t status;
    bool agrees; /* it got the same as the capture that was asked for */
    uint8_t digest[KEY_DIGEST_SIZE];
};

/* The nodes that fetched a URL in one visit, as far as they are listed. */
struct archive_witnesses {
    size_t count; /* 0: it is not of several witnesses, or nobody says so */
    size_t agree_count;
    struct archive_witness list[ARCHIVE_WITNESSES_MAX]; /* in the order of their times */
};

/* What the reader's session gave before is lost. work: for the names; NULL: keys stay empty, and nothing is
 * read. */
void archive_witnesses_find(struct archive_reader *reader, struct record *work, const struct capture *capture,
                            struct archive_witnesses *ret_witnesses);

/* For a caller that reads a capture in another way: how that went. Returns err. */
enum err archive_note_read(struct archive_reader *reader, const struct capture *capture, enum err err);

/* ---- finding one that can be opened ---- */

/* What a reader does, with its context. */
struct archive_attempt {
    enum err (*find)(void *context, struct capture *ret_capture, struct err_detail *detail);
    enum err (*use)(void *context, const struct capture *capture, struct err_detail *detail);
    void *context;
};

/*
 * Find a capture and use it. Where it cannot be had: of a ring, somebody may have listed what nobody holds,
 * and it is not listed any more (node/reading/ring_reader.h). Then the next nearest is found and used, as if
 * the other had never been there: four tries within six seconds. So use() opens before it changes anything
 * that cannot be done again; when it succeeds, it may have given the reader away. The slices of a capture
 * last until the next find(), also one in vain. Returns what went wrong with the last that was used; the
 * errors of the first find().
 */
enum err archive_try(struct archive_reader *reader, const struct archive_attempt *attempt,
                     struct err_detail *detail) MUST_CHECK;

#endif
