#include "crawl/engine/crawler_state.h"

#include <stdio.h>

#include "store/document/failure.h"

/*
 * What Heritrix writes into its crawl.log for the same, so that those who read such logs know the numbers.
 * Zero: it says nothing about the host, and no record is made.
 */
static int fetch_status_of(uint8_t reason) {
    switch (reason) {
    case TALLY_FAILED - ERR_NOT_FOUND:
        return -1;
    case TALLY_FAILED - ERR_REFUSED:
    case TALLY_FAILED - ERR_UNREACHABLE:
    case TALLY_TLS:
        return -2;
    case TALLY_FAILED - ERR_CLOSED:
        return -3;
    case TALLY_FAILED - ERR_TIMEOUT:
        return -4;
    case TALLY_NO_ROBOTS:
        return -61;
    case TALLY_HOST_DEAD:
        return -8;
    default:
        return 0;
    }
}

/* Stored like a response, by a worker; nobody waits for it but the end of the job. */
static void keep_record(struct crawler *crawler, struct host *host, struct campaign *campaign,
                        struct bytes url, uint8_t reason, const char *why) {
    int status = fetch_status_of(reason);
    struct trip *trip = status != 0 ? crawler_take_trip(crawler, TRIP_FAILURE, host, campaign) : NULL;
    if (trip == NULL) {
        return;
    }
    trip->failed_us = crawler_wall_us(crawler);
    buf_put_string(&trip->address, FAILURE_URI_PREFIX);
    buf_put(&trip->address, url);
    buf_put_format(&trip->failure, "fetch-status: %d\r\nfetch-failure: %s\r\nfetch-failure-text: %s%s%s\r\n",
                   status, tally_reason_name(reason), tally_reason_text(reason),
                   why != NULL && why[0] != '\0' ? ": " : "", why != NULL ? why : "");
    if (trip->address.err != ERR_OK || trip->failure.err != ERR_OK) {
        crawler_return_trip(crawler, trip); /* the URL is too long */
        return;
    }
    crawler_store(crawler, trip);
}

void crawler_fail_url(struct crawler *crawler, struct host *host, struct campaign *campaign,
                      struct frontier_url *url, uint8_t reason, const char *why) {
    struct tally *tally = &campaign->tally;
    bool is_failure = reason != TALLY_ROBOTS;
    tally_count_failure(tally, reason, url->url, why);
    tally->seeds_failed_count += campaign_is_seed(campaign, url);
    keep_record(crawler, host, campaign, url->url, reason, why);
    crawler_give_up(crawler, campaign, url, is_failure ? FRONTIER_FAILED : FRONTIER_CUT, reason);
}

void crawler_note_failure(struct host *host, const struct fetch_result *result) {
    host->failure_reason = result->err == ERR_OK    ? TALLY_NONE
                           : result->is_tls_failure ? TALLY_TLS
                                                    : (uint8_t)(TALLY_FAILED - (int)result->err);
    snprintf(host->failure_why, sizeof host->failure_why, "%s",
             result->err == ERR_OK ? "" : err_detail_text(&result->detail, result->err));
}

bool crawler_is_absent(const struct trip *trip) {
    return trip->result->err == ERR_REFUSED && !trip->host->has_answered[trip->is_https];
}

void crawler_put_why(const struct host *host, uint64_t now_us, int64_t local_us, struct buf *out) {
    bool has_failed = host->failure_reason != TALLY_NONE;
    buf_put_string(out, has_failed ? tally_reason_text(host->failure_reason) : "");
    buf_put_string(out, has_failed ? " (" : "");
    pace_put_why(&host->pace, now_us, local_us, out);
    buf_put_string(out, has_failed ? ")" : "");
}
