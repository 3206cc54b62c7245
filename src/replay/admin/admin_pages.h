/*
 * admin_pages - shows what the node does, and takes what it is told to do. One machine in several files:
 *
 *      admin_pages.c             /api/v1/… of one answer, /login /logout /metrics /health /robots.txt
 *      admin_pages_jobs.c        /save… /jobs /api/v1/jobs…   archive a page, or a site again and again
 *      admin_pages_dashboard.c   /dashboard                   what the node does, what is slow and why
 *      admin_pages_ring.c        its section on the ring: copies, decrees
 *      admin_pages_groups.c      /api/v1/groups…
 *      admin_pages_find.c        /api/v1/ring/lookup /api/v1/crowd/locate   questions that other nodes answer
 *
 * The sections of the dashboard on crowd, groups, collections and neighbours are written by the node.
 *
 * Programs get everything that people see, as JSON. The node does the work, through the table below; replay
 * knows nothing of crawls. docs/api.md is the reference.
 */
#ifndef MNEMON_REPLAY_ADMIN_ADMIN_PAGES_H
#define MNEMON_REPLAY_ADMIN_ADMIN_PAGES_H

#include "base/buf.h"
#include "replay/admin/admin.h"
#include "replay/admin/job_view.h"
#include "replay/admin/node_status.h"
#include "replay/admin/ring_view.h"
#include "replay/site/replay.h"
#include "run/pool.h"

enum {
    ADMIN_PAGES_ROUTES_MAX = 32,
    ADMIN_PAGES_NAME_SIZE_MAX = 128, /* of a job, of a save */
    ADMIN_PAGES_VNODES_MAX = 21,     /* of an admin_pages_find */
    ADMIN_PAGES_TEXT_SIZE_MAX = 64 << 20,
};

struct sheet;

enum admin_pages_find_kind {
    ADMIN_PAGES_FIND_VNODES,  /* which nodes of the ring are responsible for a URL? */
    ADMIN_PAGES_FIND_CAPTURE, /* get a capture from the crowd */
};

enum admin_pages_find_time { ADMIN_PAGES_FIND_NEWEST, ADMIN_PAGES_FIND_NEAREST, ADMIN_PAGES_FIND_BETWEEN };

/* A question to other nodes, which takes its time. The asker's memory until it is done. */
struct admin_pages_find {
    enum admin_pages_find_kind kind;
    struct bytes url;
    uint8_t vnodes_wanted; /* for ADMIN_PAGES_FIND_VNODES */

    /* For ADMIN_PAGES_FIND_CAPTURE: a URL, or the SHA-256 of a payload in hexadecimal digits, or words of a
     * title. */
    struct bytes digest;
    struct bytes words;
    enum admin_pages_find_time time;
    int64_t from_us; /* NEAREST: that time */
    int64_t to_us;
    bool wants_payload; /* the text is the payload, not what is said about it */

    void (*done)(struct admin_pages_find *find); /* once, from any thread, perhaps at once */
    void *context;
    struct buf text; /* the answer is appended */
    enum err err;
    struct err_detail detail;
    struct pool_job job; /* of whoever answers */
    void *answerer;
};

/*
 * Any thread. Errors come with a sentence. What is got lies in the arena; texts are appended, as JSON. Names
 * are checked: ERR_NOT_FOUND if there is no such thing.
 */
struct admin_pages_table {
    /* Begin to archive a page now; a running save of the same URL is used. ERR_BUSY: too many are running. */
    enum err (*save)(void *context, struct bytes url, char ret_id[ADMIN_PAGES_NAME_SIZE_MAX],
                     struct err_detail *detail);
    enum err (*get_save)(void *context, struct bytes id, struct arena *arena, struct save_view *ret_save,
                         struct err_detail *detail);

    /* Sorted by name: how many. */
    size_t (*list_jobs)(void *context, struct arena *arena, struct job_view **ret_jobs);
    enum err (*get_job)(void *context, struct bytes name, struct arena *arena, struct job_view *ret_job,
                        struct err_detail *detail);

    /* wish: the object that POST /api/v1/jobs takes. */
    enum err (*add_job)(void *context, struct bytes wish, char ret_name[ADMIN_PAGES_NAME_SIZE_MAX],
                        struct err_detail *detail);
    enum err (*pause_job)(void *context, struct bytes name, bool is_paused, struct err_detail *detail);
    enum err (*remove_job)(void *context, struct bytes name, struct err_detail *detail);

    /* In the arena. NULL: no memory. */
    const struct node_status *(*status)(void *context, struct arena *arena);

    void (*put_history)(void *context, struct buf *out);
    void (*put_metrics)(void *context, struct buf *out); /* of jobs, crowd, groups and collections */
    void (*put_ring)(void *context, struct buf *out);
    void (*get_ring)(void *context, struct arena *arena, struct ring_view *ret_ring);
    void (*show_neighbours)(void *context,
                            struct sheet *sheet); /* the end of that section of the dashboard */
    void (*put_crowd)(void *context, struct buf *out);
    void (*show_crowd)(void *context, struct arena *arena,
                       struct sheet *sheet); /* a section of the dashboard */
    void (*put_mirrors)(void *context, struct buf *out);
    void (*show_mirrors)(void *context, struct sheet *sheet); /* likewise */

    /* All groups if the name is empty. The picture of a topology is SVG or DOT. */
    void (*show_groups)(void *context, struct sheet *sheet); /* likewise */
    enum err (*put_groups)(void *context, struct bytes name, struct buf *out, struct err_detail *detail);
    enum err (*put_group_picture)(void *context, struct bytes name, bool is_dot, struct buf *out,
                                  struct err_detail *detail);

    /* done() follows. */
    void (*find)(void *context, struct admin_pages_find *find);

    /* Can it store? False with the reason. */
    bool (*is_healthy)(void *context, struct err_detail *detail);
};

struct admin_pages {
    const struct admin_pages_table *table;
    void *context;
    struct admin *admin;
};

/* How many there are; none if the replay has no admin_pages. */
size_t admin_pages_routes(struct replay *replay, struct http_route out[ADMIN_PAGES_ROUTES_MAX]);

#endif
