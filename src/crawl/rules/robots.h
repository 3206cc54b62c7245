/*
 * robots - what a host's robots.txt allows a crawler of a given name, by RFC 9309.
 *
 *      status                          then
 *      2xx                             its rules are obeyed: robots_parse()
 *      3xx after 5 redirects, 4xx      everything is allowed (after the retries that pace.h asks for on 429)
 *      5xx, no answer                  nothing is allowed until it answers
 *
 * The longest matching rule decides, in octets of its normalised pattern; Allow wins a tie. '*' stands for
 * any octets, '$' at the end for the end; "%2A" and "%24" are those characters themselves. Rule and path are
 * compared after the same normalisation: escapes of unreserved characters are decoded, octets that are not
 * ASCII escaped, hex digits capital; in a query ":/?@" equal their escapes, as in the RFC's examples.
 * "/robots.txt" itself is always allowed.
 *
 * All groups that name the crawler's product token count as one; those of "*" only if no group names it.
 * Files are read leniently: BOM, any line ends, missing colons, known misspellings, garbage.
 *
 * Memory: one block of a size that the file's own bounds (about 5 times the text at worst). A check allocates
 * nothing; it takes time linear in the path for each rule with a wildcard, however many there are in it, and
 * if all rules together take too long (tens of thousands of them with wildcards), the answer is no. Parsed
 * rules are constant: any thread may check.
 */
#ifndef MNEMON_CRAWL_RULES_ROBOTS_H
#define MNEMON_CRAWL_RULES_ROBOTS_H

#include "base/bytes.h"
#include "base/err.h"

enum {
    ROBOTS_TEXT_SIZE_MAX = 512 << 10, /* the rest is ignored; the RFC asks for at least 500 KiB */
    ROBOTS_PATH_SIZE_MAX = 16 << 10,  /* of a normalised path; what follows is not looked at */
    ROBOTS_STEPS_MAX = 4 << 20,       /* octets that one check compares; some milliseconds */
    ROBOTS_REDIRECTS_MAX = 5,
};

static const int64_t ROBOTS_AGE_MAX_US = INT64_C(24) * 3600 * 1000000; /* then it is fetched again */

/* The product token of this project. */
extern const char robots_agent[];

enum robots_policy {
    ROBOTS_OBEY,
    ROBOTS_ALLOW_ALL,     /* there is none */
    ROBOTS_ALLOW_NOTHING, /* it cannot be had */
};

struct robots_rule; /* robots.c */

struct robots {
    enum robots_policy policy;
    bool names_agent;        /* a group is for this crawler by name, not for "*" */
    bool is_cut;             /* the text had ROBOTS_TEXT_SIZE_MAX bytes or more */
    uint64_t crawl_delay_us; /* 0: none was given */
    struct bytes agent;      /* whose rules these are: "*" or the token as the file writes it */
    struct robots_rule *rules;
    uint32_t rules_count;
    uint32_t sitemaps_count;
    size_t memory_size; /* of the one block behind rules */
};

enum robots_reason {
    ROBOTS_BY_RULE,      /* line and text say which */
    ROBOTS_NO_RULE,      /* no rule matches */
    ROBOTS_ITSELF,       /* /robots.txt */
    ROBOTS_BY_ALLOW_ALL, /* of the policies */
    ROBOTS_BY_ALLOW_NOTHING,
    ROBOTS_TOO_COMPLEX, /* more than ROBOTS_STEPS_MAX */
};

struct robots_verdict {
    bool is_allowed;
    enum robots_reason reason;
    uint32_t line;      /* from 1; 0 if no rule decided */
    struct bytes text;  /* of that line, trimmed, without comment; lives as long as *robots */
    struct bytes agent; /* as the group of the rule names it ("*" or the token); the same */
};

/* What a final status of /robots.txt means; 0 for no answer at all. */
enum robots_policy robots_from_status(unsigned status);

/* Nothing but a policy: ROBOTS_ALLOW_ALL or ROBOTS_ALLOW_NOTHING. Also what a fresh struct may start with. */
void robots_init(struct robots *robots, enum robots_policy policy);
void robots_done(struct robots *robots);

/*
 * Read a file for the agent: a product token ("mnemon") or a whole User-Agent header that begins with it
 * ("Mnemon/1.0 (+https://…)"). Replaces what *robots held, which must have been initialised. ERR_MEMORY is
 * the only failure; *robots then allows nothing.
 */
enum err robots_parse(struct robots *robots, struct bytes text, struct bytes agent) MUST_CHECK;

/* May the URL be fetched? Its path with its query: "/a?b". verdict may be NULL. */
bool robots_check(const struct robots *robots, struct bytes path_and_query,
                  struct robots_verdict *ret_verdict);

/* The value of a Sitemap line, as written: mostly an absolute URL. index < sitemaps_count. */
struct bytes robots_sitemap(const struct robots *robots, uint32_t index);

/* A sentence for people without its stop: `line 3 "Disallow: /private/" for "*" matches`. Returns out. */
enum { ROBOTS_SENTENCE_SIZE_MAX = 200 };
const char *robots_explain(const struct robots_verdict *verdict, char out[ROBOTS_SENTENCE_SIZE_MAX]);

#endif
