/*
 * mnemon.h - the content store of mnemon as a library: every document once, known by its content key.
 *
 *      struct mnemon           an archive: a data directory, or the volumes that a connector file lists
 *      struct mnemon_session   one thread's way into it
 *      struct mnemon_walk      one look through many things, in a session
 *
 * A content key is text, "0:ba7816…15ad": the number of a volume and the SHA-256 of the document. Storing a
 * document twice gives the same key twice and takes one more reference; deleting drops one, and at none the
 * document is gone. What has been stored survives the end of the process and of the machine.
 *
 * Threads: an archive may be used by any number at once, each through a session of its own; a session and its
 * walks by one at a time. A walk ends before its session, a session before its archive.
 *
 * Processes: one at a time has the local volumes of an archive open; a second one gets MNEMON_BUSY.
 *
 * Errors: functions that can fail return MNEMON_OK or a negative value of enum mnemon_status. They take a
 * struct mnemon_error, which may be NULL, and fill it on failure; what they give back is untouched then.
 * Programming errors (NULL where it is not allowed, a session used after its end) end the process.
 *
 * Stability: names, values and the order of fields stay. Fields may be added at the end of the structs that
 * begin with their size, so initialise those with their macro. How to build with it: docs/library.md.
 */
#ifndef MNEMON_H
#define MNEMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MNEMON_API __attribute__((visibility("default")))
#define MNEMON_CHECKED __attribute__((visibility("default"), warn_unused_result))
#else
#define MNEMON_API
#define MNEMON_CHECKED
#endif

enum {
    MNEMON_KEY_SIZE = 80, /* of the text of a content key, with its zero byte */
    MNEMON_VOLUME_ANY = -1,
};

enum mnemon_status {
    MNEMON_OK = 0,
    MNEMON_MEMORY = -1,       /* out of memory */
    MNEMON_LIMIT = -2,        /* a stated maximum was reached: the document is too large */
    MNEMON_INVALID = -3,      /* no content key, no URL, a mistake in the connector file */
    MNEMON_NOT_FOUND = -6,    /* no such archive, document or volume */
    MNEMON_PERMISSION = -8,   /* the system, the volume or its server does not allow it */
    MNEMON_BUSY = -9,         /* another process has the archive open */
    MNEMON_TIMEOUT = -10,     /* a volume server did not answer in time */
    MNEMON_UNREACHABLE = -12, /* the volume is down */
    MNEMON_IO = -15,          /* reading or writing failed */
    MNEMON_NO_SPACE = -16,    /* all volumes that might take it are full */
    MNEMON_CORRUPT = -17,     /* the stored bytes are damaged; they are never given back as good */
};                            /* other negative values are possible; the text explains them */

struct mnemon_error {
    int status;
    char text[256]; /* a sentence for people, without its stop */
};

struct mnemon;
struct mnemon_session;
struct mnemon_walk;

/* "0.3.0" */
MNEMON_API const char *mnemon_version(void);

/* ---- archives ---- */

enum mnemon_flag {
    MNEMON_MUST_EXIST = 1, /* do not make a data directory that is missing */
};

/*
 * place: a data directory, whose file "connector" is used if there is one; or a connector file itself.
 * Volumes that are down make their own documents unavailable and nothing else: see mnemon_stat.
 */
MNEMON_CHECKED int mnemon_open(const char *place, unsigned flags, struct mnemon **ret_archive,
                               struct mnemon_error *error);
MNEMON_API void mnemon_close(struct mnemon *archive);

MNEMON_CHECKED int mnemon_session_open(struct mnemon *archive, struct mnemon_session **ret_session,
                                       struct mnemon_error *error);
MNEMON_API void mnemon_session_close(struct mnemon_session *session);

/* ---- documents ---- */

enum mnemon_mode {
    MNEMON_REGULAR = 0,   /* a duplicate has the same digest and size */
    MNEMON_COMPARE = 1,   /* and the same bytes */
    MNEMON_FORCE_NEW = 2, /* duplicates are not looked for */
};

/* All of it is borrowed for the call. */
struct mnemon_document {
    size_t struct_size;
    const void *data;
    size_t size;
    int mode;                 /* enum mnemon_mode */
    int volume;               /* where a new document goes; MNEMON_VOLUME_ANY: by its digest */
    const char *url;          /* store it as a capture of this absolute URL; NULL: by content key only */
    int64_t time_us;          /* of the capture, in microseconds since 1970; 0: now */
    const char *content_type; /* NULL: application/octet-stream */
};

/* struct mnemon_document document = MNEMON_DOCUMENT(data, size); */
#define MNEMON_DOCUMENT(data, size) \
    { sizeof(struct mnemon_document), (data), (size), MNEMON_REGULAR, MNEMON_VOLUME_ANY, NULL, 0, NULL }

struct mnemon_stored {
    char key[MNEMON_KEY_SIZE];
    int is_duplicate;
};

/*
 * Durable on return. A duplicate goes to the volume that has it; if the chosen volume is down or full, the
 * next one takes the document: the key says which.
 */
MNEMON_CHECKED int mnemon_store(struct mnemon_session *session, const struct mnemon_document *document,
                                struct mnemon_stored *ret_stored, struct mnemon_error *error);

/* The bytes are the session's and last until its next retrieve. */
MNEMON_CHECKED int mnemon_retrieve(struct mnemon_session *session, const char *key, const void **ret_data,
                                   size_t *ret_size, struct mnemon_error *error);

/* Drop one reference; durable on return. MNEMON_NOT_FOUND if there is no such document. */
MNEMON_CHECKED int mnemon_delete(struct mnemon_session *session, const char *key, struct mnemon_error *error);

/* ---- walks ---- */

/* A walk sees the archive about as it was when it began. Volumes that are down are left out:
 * mnemon_walk_unanswered() says which. */

/* All documents, in no particular order. */
MNEMON_CHECKED int mnemon_walk_keys(struct mnemon_session *session, struct mnemon_walk **ret_walk,
                                    struct mnemon_error *error);

/* The captures of a URL, the oldest first. URLs that differ only by accident (case of the host, session ids)
 * are one. */
MNEMON_CHECKED int mnemon_walk_captures(struct mnemon_session *session, const char *url,
                                        struct mnemon_walk **ret_walk, struct mnemon_error *error);
MNEMON_API void mnemon_walk_close(struct mnemon_walk *walk);

struct mnemon_item {
    char key[MNEMON_KEY_SIZE]; /* of the document */
    uint64_t size;             /* of it */
    uint64_t references;       /* to it */
    const char *url;           /* of a capture, as it was fetched; else NULL. Lasts until the next call */
    const char *content_type;  /* likewise; "" if it is not known */
    int64_t time_us;           /* of a capture */
    int http_status;           /* of a capture; 0 if it is not of HTTP */
};

/* 1: *ret_item is filled; 0: the walk is at its end; else a negative status. */
MNEMON_CHECKED int mnemon_walk_next(struct mnemon_walk *walk, struct mnemon_item *ret_item,
                                    struct mnemon_error *error);

/*
 * Which volumes did not answer the walk so far: "volume 2, volume 5", or "" if all have. At the end of a
 * walk, anything but "" means that it may lack something, and that what was not found may be there. Lasts
 * until the next call for the walk.
 */
MNEMON_API const char *mnemon_walk_unanswered(const struct mnemon_walk *walk);

/* ---- what there is ---- */

struct mnemon_stat {
    uint64_t volumes_count;
    uint64_t volumes_down_count; /* of them; the rest of the numbers is without these */
    uint64_t documents_count;    /* estimate */
    uint64_t captures_count;     /* estimate */
    uint64_t segments_count;
    uint64_t size;      /* of the segments on disk, in bytes */
    uint64_t dead_size; /* of it, what `mnemon store compact` would give back */
    uint64_t index_size;
};

MNEMON_CHECKED int mnemon_read_stat(struct mnemon_session *session, struct mnemon_stat *ret_stat,
                                    struct mnemon_error *error);

#ifdef __cplusplus
}
#endif

#endif
