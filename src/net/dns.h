/*
 * dns - names to addresses, on the loop: one c-ares channel, a cache, and questions that wait together.
 *
 *      dns_ask("example.org")  ─ in the cache and not expired ──>  the answer at once
 *                              ─ being asked by another ───────>  joins, told with it
 *                              ─ otherwise ────────────────────>  A and AAAA are asked, /etc/hosts first
 *
 * Answers live as long as their TTL says, but at least DNS_TTL_MIN_S and at most DNS_TTL_MAX_S: a name whose
 * TTL is 0 must not be asked for every URL, and a wrong one must go some day. Failures are kept too, shortly,
 * so that a dead name or nameserver costs one wait and not one for each URL. A question that nobody answers
 * ends after timeout_us, however many nameservers there are.
 *
 * Which addresses may be contacted is not decided here: see reach.h. Names are absolute: the search list of
 * the system does not apply, since it would lend dead names of the web a meaning. All functions are the loop
 * thread's.
 */
#ifndef MNEMON_NET_DNS_H
#define MNEMON_NET_DNS_H

#include <uv.h>

#include "base/address.h"
#include "base/err.h"

struct dns;
struct dns_entry;

enum {
    DNS_ADDRESSES_MAX = 8, /* of one name; the rest is dropped */
    DNS_NAME_SIZE_MAX = 253,
    DNS_TTL_MIN_S = 10,
    DNS_TTL_MAX_S = 3600,
    DNS_NOT_FOUND_TTL_S = 60,
    DNS_FAILURE_TTL_S = 10,
};

/* 0 or NULL stands for the default in parentheses. */
struct dns_config {
    uv_loop_t *loop;
    const char *nameservers; /* "127.0.0.1:5353,192.0.2.1"; (those of the system) */
    uint64_t timeout_us;     /* (15 s) of a question in all */
    uint64_t ttl_min_us;     /* (DNS_TTL_MIN_S) */
    size_t entries_max;      /* (16,384) names in the cache; older ones go first */
};

struct dns_answer {
    enum err err; /* ERR_NOT_FOUND: there is no such name; ERR_TIMEOUT, ERR_UNREACHABLE: nobody says */
    size_t count; /* of a success: 1 or more */
    struct address addresses[DNS_ADDRESSES_MAX]; /* port 0; as getaddrinfo() would order them */
};

typedef void dns_done(void *context, const struct dns_answer *answer);

/* The caller's memory, until done() or dns_cancel(). */
struct dns_question {
    struct dns_entry *entry; /* NULL: not waiting */
    struct dns_question *next;
    struct dns_question *previous;
    dns_done *done;
    void *context;
};

enum err dns_new(const struct dns_config *config, struct dns **ret_dns, struct err_detail *detail) MUST_CHECK;

/* Nobody may be waiting. The memory goes when the loop has run once more. */
void dns_free(struct dns *dns); /* may be NULL */

/*
The answer, if it is known, valid until the loop goes on. Else NULL: done() is called later from the
 * loop, never from inside this call. The name is in lower case, as url_parse() leaves it.
 */
const struct dns_answer *dns_ask(struct dns *dns, struct bytes name, struct dns_question *question,
                                 dns_done *done, void *context) MUST_CHECK;

/* done() will not be called. Nothing happens if the question does not wait. */
void dns_cancel(struct dns_question *question);

#endif
