/*
 * pulse - the thread that looks after the node: numbers every two seconds, what has to be done every second.
 *
 * It keeps the samples of some minutes, for rates and charts. Askers get what the last sample said: however
 * many ask, the archive is looked at once.
 */
#ifndef MNEMON_NODE_ADMIN_PULSE_H
#define MNEMON_NODE_ADMIN_PULSE_H

#include "node/admin/status.h"

struct pulse;

enum { PULSE_STEP_S = 2, PULSE_SAMPLES_MAX = 150 };

struct pulse_config {
    struct sample_sources sources; /* its session is made here */
    const char *title;
    const struct http_route *routes; /* of the server */
    void (*beat)(
        void *context); /* every second, and soon after pulse_hurry(); from the thread; may be NULL */
    void *context;
};

/* The first sample is there on return, without the HTTP server, which needs the pulse for its answers. */
struct pulse *pulse_new(const struct pulse_config *config); /* NULL: out of memory */

/* Begin to beat. The server outlives pulse_rest(). */
enum err pulse_run(struct pulse *pulse, struct http_server *http) MUST_CHECK;

/* No more beats; what the last sample said can still be asked for, until the server is stopped. */
void pulse_rest(struct pulse *pulse);
void pulse_free(struct pulse *pulse);

/* ---- any thread ---- */

/* Something has happened: beat now. */
void pulse_hurry(struct pulse *pulse);

void pulse_put_status(struct pulse *pulse, struct buf *out);

/* Series of numbers, one every PULSE_STEP_S seconds, the newest last. */
void pulse_put_history(struct pulse *pulse, struct buf *out);

/* Can anything be stored? False with the reason. */
bool pulse_is_healthy(struct pulse *pulse, struct err_detail *detail);

#endif
