/*
 * monitor - the thread that looks after the node: numbers every two seconds, what has to be done every
 * second.
 *
 * It keeps the samples of some minutes, for rates and charts. Askers get what the last sample said: however
 * many ask, the archive is looked at once.
 */
#ifndef MNEMON_NODE_ADMIN_MONITOR_H
#define MNEMON_NODE_ADMIN_MONITOR_H

#include "node/admin/status.h"

struct monitor;

enum { MONITOR_STEP_S = 2, MONITOR_SAMPLES_MAX = 150 };

struct monitor_config {
    struct sample_sources sources; /* its session is made here */
    const char *title;
    const struct http_route *routes; /* of the server */
    void (*beat)(
        void *context); /* every second, and soon after monitor_hurry(); from the thread; may be NULL */
    void *context;
};

/* The first sample is there on return, without the HTTP server, which needs the monitor for its answers. */
struct monitor *monitor_new(const struct monitor_config *config); /* NULL: out of memory */

/* Begin to beat. The server outlives monitor_rest(). */
enum err monitor_run(struct monitor *monitor, struct http_server *http) MUST_CHECK;

/* No more beats; what the last sample said can still be asked for, until the server is stopped. */
void monitor_rest(struct monitor *monitor);
void monitor_free(struct monitor *monitor);

/* ---- any thread ---- */

/* Something has happened: beat now. */
void monitor_hurry(struct monitor *monitor);

const struct node_status *monitor_status(struct monitor *monitor, struct arena *arena); /* NULL: no memory */

/* Series of numbers, one every MONITOR_STEP_S seconds, the newest last. */
void monitor_put_history(struct monitor *monitor, struct buf *out);

/* Can anything be stored? False with the reason. */
bool monitor_is_healthy(struct monitor *monitor, struct err_detail *detail);

#endif
