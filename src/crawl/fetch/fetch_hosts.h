/*
 * fetch_hosts - which addresses libcurl was told (CURLOPT_RESOLVE) for which host and port.
 *
 * libcurl keeps what it was told for ever, so this remembers it, tells it anew only where the addresses have
 * changed, and has it forget the hosts that were new longest ago when there are too many. A host with running
 * transfers is not forgotten: libcurl would resolve it by itself when it must connect again.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_HOSTS_H
#define MNEMON_CRAWL_FETCH_FETCH_HOSTS_H

#include "base/address.h"
#include "base/buf.h"
#include "base/map.h"
#include "net/dns.h"

struct fetch_host {
    struct dns_answer answer; /* as libcurl has it */
    size_t users_count;
    size_t key_size;
    char key[]; /* "example.org:80" */
};

struct fetch_hosts {
    struct map map; /* key: struct fetch_host * */
};

void fetch_hosts_init(struct fetch_hosts *hosts, size_t count_max, uint64_t seed);
void fetch_hosts_done(struct fetch_hosts *hosts);

/*
 * One more transfer goes to the host. What libcurl must be told for that is appended: to tell
 * "example.org:80:192.0.2.1,[2001:db8::1]", to forget "-example.org:80", mostly nothing to either.
 */
enum err fetch_hosts_use(struct fetch_hosts *hosts, struct bytes key, const struct dns_answer *answer,
                         struct buf *tell, struct buf *forget, struct fetch_host **ret_host) MUST_CHECK;

/* The transfer has ended; host may be NULL. */
void fetch_hosts_leave(struct fetch_host *host);

/* libcurl may not have heard it: tell it again next time. */
void fetch_hosts_doubt(struct fetch_host *host);

#endif
