#include "store/volume/dictionary_visits.h"

#include <stdio.h>

#include "base/prng.h"
#include "store/volume/volume_record.h"
#include "warc/warc_writer.h"

enum { KEY_DIGITS = 52, DIGEST_DIGITS = 64, SIGNATURE_DIGITS = 128 };

/* What servers say with a 304, the rarer first: what stands last in a dictionary is the cheapest to name. */
static const char *const heads[] = {
    "Server: Microsoft-IIS/10.0\r\nX-Powered-By: ASP.NET\r\n",
    "Server: AmazonS3\r\nx-cache: Hit from cloudfront\r\nvia: 1.1 varnish\r\nx-served-by: cache-\r\nage: "
    "0\r\n",
    "Server: cloudflare\r\nCF-RAY: \r\nCF-Cache-Status: HIT\r\nConnection: keep-alive\r\n",
    "Server: Apache/2.4 (Debian)\r\nConnection: Keep-Alive\r\nKeep-Alive: timeout=5, max=100\r\nExpires: ",
    "Server: nginx\r\nConnection: keep-alive\r\nCache-Control: max-age=0, must-revalidate, public, "
    "no-cache\r\n"
    "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\nVary: Accept-Encoding\r\n"
    "X-Content-Type-Options: nosniff\r\nAccess-Control-Allow-Origin: *\r\nLast-Modified: ",
};

static void visits_put_digits(struct buf *out, struct prng *prng, size_t count) {
    for (size_t i = 0; i < count; i++) {
        buf_put_byte(out, (uint8_t) "0123456789abcdef"[prng_below(prng, 16)]);
    }
}

static void visits_put_one(struct buf *out, struct prng *prng, struct bytes fetcher, const char *head) {
    unsigned second = (unsigned)prng_below(prng, 60);
    unsigned minute = (unsigned)prng_below(prng, 60);
    unsigned hour = (unsigned)prng_below(prng, 24);
    unsigned micro = (unsigned)prng_below(prng, 1000000);
    unsigned page = (unsigned)prng_below(prng, 10000);
    char date[40];
    char url[48];
    snprintf(date, sizeof date, "2026-11-18T%02u:%02u:%02u.%06uZ", hour, minute, second, micro);
    snprintf(url, sizeof url, "https://www.example.org/%u.html", page);
    buf_put_format(
        out,
        "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: <" WARC_PLAIN_ID_PREFIX
        "%s:%s>\r\nWARC-Date: %s\r\nWARC-Target-URI: %s\r\nWARC-IP-Address: %u.%u\r\n"
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n"
        "WARC-Refers-To-Target-URI: %s\r\nWARC-Refers-To-Date: 2026-11-%02uT%02u:%02u:%02u.%06uZ\r\n",
        date, url, date, url, minute, second, url, hour + 1, minute, hour, second, micro / 7);
    if (fetcher.size > 0) {
        buf_put_format(out, VOLUME_TLS_FIELD ": verified\r\n" VOLUME_SIGNATURE_FIELD ": %.*s ",
                       BYTES_ARG(fetcher));
        visits_put_digits(out, prng, SIGNATURE_DIGITS);
        buf_put_string(out, "\r\n");
    }
    buf_put_string(out, "WARC-Payload-Digest: sha256:");
    visits_put_digits(out, prng, DIGEST_DIGITS);
    buf_put_format(out,
                   "\r\nContent-Type: application/http;msgtype=response\r\nContent-Length: %u\r\n\r\n"
                   "HTTP/1.1 304 Not Modified\r\n%sDate: Wed, 18 Nov 2026 %02u:%02u:%02u GMT\r\nETag: \"",
                   100 + second, head, hour, minute, second);
    visits_put_digits(out, prng, 13);
    buf_put_string(out, "\"\r\n\r\n\r\n\r\n");
}

enum err dictionary_visits_put(struct buf *out, size_t count, struct bytes fetcher, size_t *sizes) {
    enum { HEADS_COUNT = sizeof heads / sizeof *heads };
    struct prng prng;
    prng_init(&prng, 304); /* any number: the same archive has the same dictionary */
    for (size_t i = 0; i < count; i++) {
        size_t before = out->size;
        visits_put_one(out, &prng, fetcher, heads[i % HEADS_COUNT]);
        if (sizes != NULL) {
            sizes[i] = out->size - before;
        }
    }
    return out->err;
}

struct bytes dictionary_visits_fetcher(struct bytes samples) {
    static const char name[] = "\r\n" VOLUME_SIGNATURE_FIELD ": ";
    struct bytes fetcher = {NULL, 0};
    for (struct bytes rest = samples; rest.size > 0;) {
        size_t at = bytes_find(rest, bytes_of_string(name));
        rest = bytes_skip(rest, at < rest.size ? at + sizeof name - 1 : rest.size);
        fetcher = rest.size >= KEY_DIGITS ? bytes_slice(rest, 0, KEY_DIGITS) : fetcher;
    }
    return fetcher;
}
