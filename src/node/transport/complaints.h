/*
 * complaints - nodes that were refused, that refused this one, or that sent nonsense, for people to read.
 *
 * Equal sentences are one entry with a count; the oldest makes room. A sentence is told at once when it is
 * new, and again at most every COMPLAINTS_PAUSE_S, however often it comes: a flood does not fill the log.
 * Nothing follows from it for anybody; what does is in base/standing.h.
 */
#ifndef MNEMON_NODE_TRANSPORT_COMPLAINTS_H
#define MNEMON_NODE_TRANSPORT_COMPLAINTS_H

#include "base/arena.h"
#include "base/json.h"

enum { COMPLAINTS_MAX = 32, COMPLAINT_SIZE_MAX = 320, COMPLAINTS_PAUSE_S = 60 };

struct complaint {
    char sentence[COMPLAINT_SIZE_MAX];
    uint64_t count;
    int64_t first_us; /* wall */
    int64_t last_us;
    int64_t told_us;
};

struct complaints {
    struct complaint items[COMPLAINTS_MAX];
    size_t count;
};

/* True: it shall be told. */
bool complaints_add(struct complaints *complaints, const char *sentence, int64_t now_us);

/* Append an array of objects, the newest first. */
void complaints_put(const struct complaints *complaints, struct json *json, const char *name);

/* Write them as a list of the dashboard, likewise. */
struct sheet;
void complaints_show(const struct complaints *complaints, struct sheet *sheet);

#endif
