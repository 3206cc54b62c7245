#include "crawl/engine/host_lender.h"

#include <stdlib.h>

void host_lender_init(struct host_lender *host_lender, struct hosts *hosts, uint64_t first_number) {
    *host_lender = (struct host_lender){.hosts = hosts, .number = first_number};
}

/* ---- books ---- */

static struct host_lender_book *open_book(struct host_lender *host_lender, struct host *host) {
    if (host->book != NULL) {
        return host->book;
    }
    struct host_lender_book *book =
        host_lender->books_count < HOST_LENDER_BOOKS_MAX ? calloc(1, sizeof *book) : NULL;
    if (book == NULL) {
        return NULL;
    }
    book->host = host;
    book->next = host_lender->books;
    if (host_lender->books != NULL) {
        host_lender->books->previous = book;
    }
    host_lender->books = book;
    host_lender->books_count++;
    host->book = book;
    hosts_hold(host_lender->hosts, host);
    return book;
}

static void drop_first(struct host_lender *host_lender, struct host_lender_book *book) {
    struct host_lender_borrower *first = book->first;
    book->first = first->next;
    book->borrowers_count--;
    host_lender->borrowers_count--;
    free(first);
}

static void close_book(struct host_lender *host_lender, struct host_lender_book *book) {
    while (book->first != NULL) {
        drop_first(host_lender, book);
    }
    *(book->previous != NULL ? &book->previous->next : &host_lender->books) = book->next;
    if (book->next != NULL) {
        book->next->previous = book->previous;
    }
    host_lender->books_count--;
    struct host *host = book->host;
    host->book = NULL;
    free(book);
    hosts_rest(host_lender->hosts, host);
}

void host_lender_done(struct host_lender *host_lender) {
    while (host_lender->books != NULL) {
        close_book(host_lender, host_lender->books);
    }
}

/* ---- the line ---- */

enum err host_lender_ask(struct host_lender *host_lender, struct host *host,
                         const struct host_lender_borrower *borrower, uint64_t home_since_us,
                         uint64_t now_us) {
    struct host_lender_book *book = open_book(host_lender, host);
    if (book == NULL) {
        return ERR_LIMIT;
    }
    book->open_at_us = home_since_us + HOST_LENDER_NEW_US;
    struct host_lender_borrower **link = &book->first;
    while (*link != NULL && memcmp((*link)->peer.key, borrower->peer.key, PEER_KEY_SIZE) != 0) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        bool has_room = book->borrowers_count < HOST_LENDER_BORROWERS_MAX &&
                        host_lender->borrowers_count < HOST_LENDER_BORROWERS_ALL;
        struct host_lender_borrower *added = has_room ? calloc(1, sizeof *added) : NULL;
        if (added == NULL) {
            if (book->first == NULL && !book->is_lent) {
                close_book(host_lender, book);
            }
            return has_room ? ERR_MEMORY : ERR_LIMIT;
        }
        *link = added;
        book->borrowers_count++;
        host_lender->borrowers_count++;
    }
    struct host_lender_borrower *next = (*link)->next;
    **link = *borrower;
    (*link)->next = next;
    (*link)->seen_us = now_us;
    return ERR_OK;
}

/* ---- whose turn it is ---- */

static bool knows_robots(const struct host *host, bool is_https, int64_t wall_us) {
    const struct host_robots *known = &host->robots[is_https];
    bool is_text_here = known->robots.policy != ROBOTS_OBEY || known->has_text;
    return known->state == HOST_ROBOTS_KNOWN && wall_us < known->until_us && is_text_here;
}

static void fill_robots(const struct host *host, const struct host_lender_borrower *borrower, int64_t wall_us,
                        struct permit_robots *ret_robots) {
    const struct host_robots *known = &host->robots[borrower->is_https];
    if (!knows_robots(host, borrower->is_https, wall_us)) {
        *ret_robots = (struct permit_robots){/* it is dead: nothing will be asked for */
                                             .is_https = borrower->is_https,
                                             .policy = ROBOTS_ALLOW_NOTHING,
                                             .until_us = wall_us};
        return;
    }
    bool has_text = memcmp(known->digest, borrower->digest, PERMIT_DIGEST_SIZE) != 0;
    *ret_robots = (struct permit_robots){
        .is_https = borrower->is_https,
        .policy = known->robots.policy,
        .is_unreachable = known->is_unreachable,
        .has_text = has_text,
        .text = has_text ? known->text : bytes_of(NULL, 0),
        .until_us = known->until_us,
    };
    memcpy(ret_robots->digest, known->digest, PERMIT_DIGEST_SIZE);
}

static void grant(struct host_lender *host_lender, struct host_lender_book *book,
                  const struct pace_config *config, uint64_t now_us, int64_t wall_us,
                  struct host_lender_grant *ret_grant) {
    const struct host *host = book->host;
    const struct host_lender_borrower *first = book->first;
    bool is_waiting = !pace_is_dead(&host->pace) && host->pace.next_us > now_us;
    book->is_lent = true;
    book->holder = first->peer;
    book->number = ++host_lender->number;
    book->from_us = is_waiting ? host->pace.next_us : now_us;
    book->until_us = book->from_us + HOST_LENDER_TIME_US;
    book->requests_max =
        pace_delay_us(&host->pace, config) > HOST_LENDER_TIME_US ? 1 : HOST_LENDER_REQUESTS_MAX;
    *ret_grant = (struct host_lender_grant){
        .borrower = first->peer,
        .is_https = first->is_https,
        .lease =
            {
                .lender.number = book->number,
                .until_us = book->until_us,
                .requests_max = book->requests_max,
                .pace = host->pace,
            },
    };
    fill_robots(host, first, wall_us, &ret_grant->lease.robots);
    drop_first(host_lender, book);
}

static enum host_lender_verdict wait_until(uint64_t at_us, uint64_t now_us,
                                           struct host_lender_grant *ret_grant) {
    ret_grant->wait_us = at_us - now_us;
    return HOST_LENDER_LATER;
}

enum host_lender_verdict host_lender_next(struct host_lender *host_lender, struct host *host,
                                          const struct pace_config *config, uint64_t now_us, int64_t wall_us,
                                          struct host_lender_grant *ret_grant) {
    struct host_lender_book *book = host->book;
    *ret_grant = (struct host_lender_grant){0};
    if (book == NULL || book->is_lent) {
        return book == NULL ? HOST_LENDER_NOBODY : HOST_LENDER_LENT;
    }
    while (book->first != NULL && now_us > book->first->seen_us + HOST_LENDER_STALE_US) {
        drop_first(host_lender, book);
    }
    if (book->first == NULL) {
        close_book(host_lender, book);
        return HOST_LENDER_NOBODY;
    }
    if (host->is_busy) {
        return HOST_LENDER_BUSY;
    }
    if (now_us < book->open_at_us) {
        return wait_until(book->open_at_us, now_us, ret_grant);
    }
    if (!pace_is_dead(&host->pace)) {
        uint64_t next_us = host->pace.next_us;
        bool must_ask = !knows_robots(host, book->first->is_https, wall_us);
        if (next_us > now_us + (must_ask ? 0 : HOST_LENDER_AHEAD_US)) {
            return wait_until(next_us, now_us, ret_grant);
        }
        if (must_ask) {
            ret_grant->is_https = book->first->is_https;
            return HOST_LENDER_ROBOTS;
        }
    }
    grant(host_lender, book, config, now_us, wall_us, ret_grant);
    return HOST_LENDER_GRANTED;
}

/* ---- the end of a lease ---- */

void host_lender_take_back(struct host *host, const struct peer *borrower, uint64_t number,
                           const struct pace *pace, uint32_t requests_count, const struct pace_config *config,
                           uint64_t now_us) {
    struct host_lender_book *book = host->book;
    bool is_holder = book != NULL && book->is_lent && book->number == number &&
                     memcmp(book->holder.key, borrower->key, PEER_KEY_SIZE) == 0;
    if (!is_holder) {
        pace_take_back(&host->pace, config, pace, 0, 0, now_us);
        return;
    }
    uint32_t counted = requests_count < book->requests_max ? requests_count : book->requests_max;
    pace_take_back(&host->pace, config, pace, counted, book->from_us, now_us);
    book->is_lent = false;
}

void host_lender_expire(struct host *host, const struct pace_config *config, uint64_t now_us) {
    struct host_lender_book *book = host->book;
    if (book != NULL && book->is_lent && now_us > book->until_us + HOST_LENDER_GRACE_US) {
        book->is_lent = false;
        pace_guess_asked(&host->pace, config, now_us);
    }
}
