/*
 * absent - who could hold what was asked for and did not answer: "volume 1, node 192.0.2.7:4100".
 *
 * What is found without them may not be all there is, and what is not found may be there. Every interface
 * says so, by these names; they are for anybody to read, so they name no path. Bounded: of very many, only
 * the first are named. Plain memory, zeroed at first.
 */
#ifndef MNEMON_STORE_INSTANCE_ABSENT_H
#define MNEMON_STORE_INSTANCE_ABSENT_H

#include "base/bytes.h"
#include "base/json.h"

enum { ABSENT_TEXT_SIZE_MAX = 768 };

struct absent {
    bool is_any;                     /* else all have answered */
    size_t size;                     /* of the text, without its zero */
    char text[ABSENT_TEXT_SIZE_MAX]; /* their names, with ", " between them */
};

/* A name, or several with ", " between them; each is taken once. Control characters become spaces. */
void absent_add(struct absent *absent, struct bytes names);
void absent_add_string(struct absent *absent, const char *names);
void absent_add_volume(struct absent *absent, uint16_t number);

/* "partial": true and "unanswered": [names], in the object that is open; nothing if all have answered. */
void absent_put_json(const struct absent *absent, struct json *json);

#endif
