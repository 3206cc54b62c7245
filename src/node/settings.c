#include "node/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "node/reading/public_urls.h"

enum { FILE_SIZE_MAX = 1 << 20, ARENA_SIZE_MAX = 4 << 20, PIECE_SIZE = 64 << 10 };

static const char *const settings_reads[] = {"open", "token", NULL};
static const char *const settings_parts[] = {"full", "query-only", "tunnel", "mute", NULL};
static const char *const settings_overlays[] = {"cyclon", "proofs", NULL};
static const char *const settings_offers[] = {"read", "kept", NULL};
const char *const settings_keeps[] = {"arc", "everything", NULL};

const struct config_key settings_keys[] = {
    {.name = "http.address",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, http_address),
     .fallback = "127.0.0.1",
     .help = "the IP address that HTTP is served at"},
    {.name = "http.port",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, http_port),
     .fallback = "8080",
     .max = UINT16_MAX,
     .help = "and its port; 0: any that is free"},
    {.name = "http.connections",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, http_connections),
     .fallback = "1024",
     .min = 16,
     .max = 65536,
     .help = "how many at once; half of them from one address"},
    {.name = "http.timeout",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, http_timeout_us),
     .fallback = "15 s",
     .min = 1000,
     .max = UINT64_C(3600) * 1000000,
     .help = "for a request to arrive; large bodies get a second more for each 16 KiB"},
    {.name = "http.hosts",
     .type = CONFIG_LIST,
     .offset = offsetof(struct settings, http_hosts),
     .help = "names, beside localhost, that a node on a loopback address answers to; \"*\": any"},
    {.name = "http.rate",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, http_rate),
     .fallback = "2000",
     .max = 100000,
     .help = "requests a second from one address, twice as many at once; 0: any; loopback is not counted"},
    {.name = "http.reads",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, http_reads),
     .fallback = "open",
     .choices = settings_reads,
     .help = "who may read: everybody, or who is logged in or has the token"},
    {.name = "http.public",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, http_public),
     .help = "where browsers find this node, as https://archive.example.org: told to the nodes of its ring, "
             "which may lead readers here"},
    {.name = "ring.address",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, ring_address),
     .help = "the IP address at which other nodes reach this one; empty: http.address"},
    {.name = "ring.port",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, ring_port),
     .fallback = "7070",
     .max = UINT16_MAX,
     .help = "and its port, UDP and TCP; 0: any that is free"},
    {.name = "ring.capacity",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, ring_capacity),
     .fallback = "1",
     .min = 1,
     .max = 32,
     .help = "how many places of the ring this node takes: its share of the work"},
    {.name = "ring.first_place",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, ring_first_place),
     .fallback = "32",
     .max = 32,
     .help = "the number of the first one, 0 to 31; 32: one that no other node behind this address has"},
    {.name = "ring.upload",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, ring_upload),
     .fallback = "0",
     .max = UINT64_C(1) << 40,
     .help = "bytes a second that this node sends to others at most; 0: any"},
    {.name = "ring.download",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, ring_download),
     .fallback = "0",
     .max = UINT64_C(1) << 40,
     .help = "and takes from them"},
    {.name = "ring.requests",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, ring_requests),
     .fallback = "0",
     .max = 1000000,
     .help = "listings and captures that others read here a second; above it they are told to come later; 0: "
             "any"},
    {.name = "ring.keep",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, ring_keep),
     .fallback = "arc",
     .choices = settings_keeps,
     .help = "what this node keeps: its part; everything that the ring holds, which takes that much disk"},
    {.name = "ring.grace",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, ring_grace_us),
     .fallback = "1 h",
     .min = 1000000,
     .max = UINT64_C(30) * 86400 * 1000000,
     .help = "for how long a silent node counts as a copy before another gets its part; at least twice "
             "ring.compare"},
    {.name = "ring.compare",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, ring_compare_us),
     .fallback = "5 min",
     .min = 100000,
     .max = UINT64_C(86400) * 1000000,
     .help = "how often an arc is compared with its other holders where nothing has changed"},
    {.name = "ring.scrub",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, ring_scrub_us),
     .fallback = "30 d",
     .min = 1000000,
     .max = UINT64_C(3650) * 86400 * 1000000,
     .help = "in which everything on this node's disks is read once, to find what is damaged"},
    {.name = "ring.redirect",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, ring_redirect),
     .fallback = "no",
     .help = "lead readers of pages that this node does not hold to a node that does, if that says where it "
             "is (http.public), instead of fetching them"},
    {.name = "crowd.enabled",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, crowd_enabled),
     .fallback = "yes",
     .help =
         "hand on what was read here to others of the ring, and look among them for what is not to be had"},
    {.name = "crowd.part",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, crowd_part),
     .fallback = "full",
     .choices = settings_parts,
     .help = "in searches of others: all; only pass them on; pass them on to one node only; drop them"},
    {.name = "crowd.offers",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, crowd_offers),
     .fallback = "read",
     .choices = settings_offers,
     .help = "what is handed on: what was read here; also what this node keeps for the ring"},
    {.name = "crowd.cache",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, crowd_cache),
     .fallback = "256 MiB",
     .min = UINT64_C(1) << 20,
     .max = UINT64_C(1) << 40,
     .help = "disk for what was read here, at most"},
    {.name = "crowd.overlay",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, crowd_overlay),
     .fallback = "cyclon",
     .choices = settings_overlays,
     .help = "how neighbours are exchanged: the oldest first; at random, as PROOFS has it"},
    {.name = "crowd.shuffle",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, crowd_shuffle_us),
     .fallback = "10 s",
     .min = 100000,
     .max = UINT64_C(3600) * 1000000,
     .help = "and how often: the mean time between two exchanges; who has died is found out by them"},
    {.name = "crowd.view",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, crowd_view),
     .fallback = "25",
     .min = 4,
     .max = 64,
     .help = "neighbours at most"},
    {.name = "crowd.fanout",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, crowd_fanout),
     .fallback = "5",
     .min = 1,
     .max = 16,
     .help = "neighbours that a query goes to"},
    {.name = "group.period",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, group_period_us),
     .fallback = "15 min",
     .min = 100000,
     .max = UINT64_C(86400) * 1000000,
     .help = "how often a member of a group measures the delay to another; reports go half as often, "
             "bandwidth and topology a quarter; all members should have the same"},
    {.name = "group.silence",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, group_silence_us),
     .fallback = "1 h",
     .min = 1000000,
     .max = UINT64_C(7) * 86400 * 1000000,
     .help =
         "after which a member that nobody heard is dropped; a silent master is replaced after a quarter"},
    {.name = "group.probe",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, group_probe),
     .fallback = "32 KiB",
     .min = 32 << 10,
     .max = 1 << 20,
     .help = "random bytes by which bandwidth is measured, each time"},
    {.name = "mirror.gather",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, mirror_gather_us),
     .fallback = "1 min",
     .min = 1000,
     .max = UINT64_C(86400) * 1000000,
     .help = "how long news of a collection is gathered before the best source is chosen"},
    {.name = "mirror.period",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, mirror_period_us),
     .fallback = "10 min",
     .min = 100000,
     .max = UINT64_C(86400) * 1000000,
     .help = "how often neighbours are asked for their version of a collection"},
    {.name = "mirror.limit",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, mirror_limit),
     .fallback = "unlimited",
     .help = "bytes a second of collections that are fetched, as 1 MB; 0 or no: nothing is"},
    {.name = "mirror.window",
     .type = CONFIG_LIST,
     .offset = offsetof(struct settings, mirror_windows),
     .help = "hours of the day with another limit, as \"22:00-06:00 10 MB\" or \"12:00-13:00 no\"; the first "
             "that fits counts"},
    {.name = "mirror.upload_limit",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, mirror_upload_limit),
     .fallback = "unlimited",
     .help = "likewise, of collections that are given to others"},
    {.name = "mirror.upload_window",
     .type = CONFIG_LIST,
     .offset = offsetof(struct settings, mirror_upload_windows),
     .help = "and hours of the day with another"},
    {.name = "proxy.address",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, proxy_address),
     .fallback = "127.0.0.1",
     .help = "the IP address that browsers reach the proxy at; with any other than a loopback address, "
             "others can use it, too"},
    {.name = "proxy.port",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, proxy_port),
     .fallback = "0",
     .max = UINT16_MAX,
     .help = "and its port; 0: there is no proxy, but for \"mnemon proxy\", which takes 8118"},
    {.name = "proxy.timeout",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, proxy_timeout_us),
     .fallback = "3 s",
     .min = 1000,
     .max = UINT64_C(60) * 1000000,
     .help = "for the first byte of a server; then the crowd and the archive are asked, too"},
    {.name = "proxy.intercept",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, proxy_intercept),
     .fallback = "no",
     .help = "take https: apart, with certificates of its own (\"mnemon proxy --print-ca\")"},
    {.name = "proxy.archive",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, proxy_archive),
     .fallback = "no",
     .help = "store what may be public of what passes through"},
    {.name = "archive.title",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, archive_title),
     .fallback = "mnemon",
     .help = "how the pages call this archive"},
    {.name = "store.cache",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, store_cache),
     .fallback = "512 MiB",
     .min = UINT64_C(1) << 20,
     .max = UINT64_C(1) << 40,
     .help = "memory for pages of the index, at most; small archives need little of it"},
    {.name = "search.enabled",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, search_enabled),
     .fallback = "yes",
     .help = "full-text search over the pages of this node"},
    {.name = "crawl.user_agent",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, crawl_user_agent),
     .help = "what servers are told who asks; empty: mnemon and its version"},
    {.name = "crawl.connections",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, crawl_connections),
     .fallback = "200",
     .min = 1,
     .max = 10000,
     .help = "requests under way at once; each host gets one"},
    {.name = "crawl.allow_private",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, crawl_allow_private),
     .fallback = "no",
     .help = "archive loopback, private and other special addresses too"},
    {.name = "crawl.nameservers",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, crawl_nameservers),
     .help = "as 192.0.2.1:53; empty: those of the system"},
    {0},
};

static enum err read_file(const char *path, struct buf *text) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    ssize_t got = 1;
    while (text->err == ERR_OK && got > 0 && buf_reserve(text, PIECE_SIZE) == ERR_OK) {
        got = read(fd, text->data + text->size, PIECE_SIZE);
        text->size += got > 0 ? (size_t)got : 0;
    }
    enum err err = got < 0 ? err_from_errno(errno) : text->err;
    close(fd);
    return err;
}

/* What keys say together. */
static enum err check(const struct settings *settings, struct err_detail *reason) {
    if (settings->ring_grace_us < 2 * settings->ring_compare_us) {
        return err_set(reason, ERR_INVALID, "ring.grace is less than twice ring.compare");
    }
    if (settings->http_public.size > 0 && !public_urls_is_origin(settings->http_public)) {
        return err_set(reason, ERR_INVALID, "http.public is no origin as https://archive.example.org");
    }
    return ERR_OK;
}

enum err settings_read(struct settings *settings, const char *path, bool must_exist,
                       struct err_detail *detail) {
    struct buf text;
    struct err_detail reason = {0};
    buf_init(&text, FILE_SIZE_MAX);
    arena_init(&settings->arena, ARENA_SIZE_MAX);
    enum err err = read_file(path, &text);
    if (err == ERR_NOT_FOUND && !must_exist) {
        err = ERR_OK;
    }
    if (err == ERR_OK) {
        struct arena arena =
            settings->arena; /* config_read() fills all of the struct's fields but this one */
        err = config_read(settings_keys, buf_bytes(&text), &arena, settings, &reason);
        settings->arena = arena;
        err = err == ERR_OK ? check(settings, &reason) : err;
    }
    buf_done(&text);
    if (err != ERR_OK) {
        settings_done(settings);
        return err_set(detail, err, "%s: %.200s", path, err_detail_text(&reason, err));
    }
    return ERR_OK;
}

void settings_done(struct settings *settings) {
    arena_done(&settings->arena);
}
