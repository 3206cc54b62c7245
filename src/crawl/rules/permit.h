/*
 * permit - permission to ask a host: in a ring the host's home gives it, so that all nodes together are no
 * faster than one would be.
 *
 * The home lends a host to one node at a time: a *lease*. It lasts for some requests or seconds; meanwhile
 * the borrower keeps the pace (pace.h) that came with the lease, and no other node asks the host. With the
 * end of the lease the pace goes back to the home, as it has become.
 *
 *      borrower's crawler          its node         home's node          home's crawler (host_lender.h)
 *        a host has URLs   ask() ────────────────────────> crawler_home_ask()
 *        crawler_lend()        <──────────────────────────────── host_lender()      maybe much later
 *        or crawler_refuse_lease() <──────────────────────────── refuse()
 *        … requests …
 *                    give_back() ────────────────────────> crawler_home_take_back()
 *
 * The home also has the host's robots.txt: it fetches it itself, and it comes with the lease. The home may be
 * a borrower too. Without permits (NULL) a node decides for itself, as a single one does.
 *
 * All of it on the crawl's loop. Times in struct pace are monotonic times of the node that has it; on the way
 * they are relative. docs/decisions/0011.
 */
#ifndef MNEMON_CRAWL_RULES_PERMIT_H
#define MNEMON_CRAWL_RULES_PERMIT_H

#include "base/peer.h"
#include "crawl/rules/pace.h"
#include "crawl/rules/robots.h"

enum { PERMIT_DIGEST_SIZE = 16, PERMIT_HOST_SIZE_MAX = 272, PERMIT_REQUESTS_MAX = 1000 };

struct permit_robots {
    bool is_https;             /* of the host's two */
    enum robots_policy policy; /* what the status of the answer means; ROBOTS_OBEY: the text counts */
    bool is_unreachable;
    uint8_t digest[PERMIT_DIGEST_SIZE]; /* start of the SHA-256 of the text; zeros: there is none */
    bool has_text;                      /* false: the borrower has it already */
    struct bytes text;
    int64_t until_us; /* wall clock: then it is to be asked for again */
};

/* Names one lease of one node. */
struct permit_lender {
    struct peer peer;
    uint64_t number;
};

struct permit_lease {
    struct permit_lender lender;
    uint64_t until_us;     /* monotonic: no request starts later */
    uint32_t requests_max; /* at least 1 */
    struct pace pace;      /* to go on with */
    struct permit_robots robots;
};

/* Why a host is not lent. The values are on the wire. */
enum permit_reason {
    PERMIT_PACE,     /* it has to rest for long */
    PERMIT_CROWD,    /* too many wait */
    PERMIT_NOT_HOME, /* ask somebody else */
};
enum { PERMIT_REASONS_COUNT = PERMIT_NOT_HOME + 1 };

struct permits {
    /* A host that has URLs. digest: of the robots.txt that is known, or zeros. Answered by crawler_lend() or
     * crawler_refuse_lease(), also from inside of the call; not at all counts as refused after a while. */
    void (*ask)(void *context, struct bytes host, bool is_https, const uint8_t digest[PERMIT_DIGEST_SIZE]);
    /* The lease is over: used up, run out, or nothing is left to fetch. */
    void (*give_back)(void *context, struct bytes host, const struct permit_lender *lender,
                      const struct pace *pace, uint32_t requests_count);

    /* The home's answers; the lease's lender is filled by the node but for its number. */
    void (*host_lender)(void *context, struct bytes host, const struct peer *borrower,
                        const struct permit_lease *lease);
    void (*refuse)(void *context, struct bytes host, const struct peer *borrower, uint64_t wait_us,
                   enum permit_reason reason);
    void *context;
};

#endif
