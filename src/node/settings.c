#include "node/settings.h"

#include <stddef.h>

#include "base/buf.h"
#include "base/whole_file.h"
#include "node/crowd/relay.h"
#include "node/reading/public_urls.h"
#include "store/volume/quota.h"

enum { FILE_SIZE_MAX = 1 << 20, ARENA_SIZE_MAX = 4 << 20 };

static const char *const settings_reads[] = {"open", "token", NULL};
static const char *const settings_parts[] = {"full", "query-only", "tunnel", "mute", NULL};
static const char *const settings_offers[] = {"read", "kept", NULL};
static const char *const settings_confines[] = {"no", "yes", "strict", NULL};
static const char *const settings_protocols[] = {"1-2", "1", "2", NULL};
static const char *const settings_trusts[] = {"any", "members", NULL};
const char *const settings_keeps[] = {"arc", "everything", "own", NULL};

/* Name, type, field, default, bounds or choices; docs/formats/config.md says what each means. */
#define SETTING(key, kind, field, ...)                                                  \
    {                                                                                   \
        .name = key, .type = CONFIG_##kind, .offset = offsetof(struct settings, field), \
        .fallback = __VA_ARGS__                                                         \
    }

/* What was a setting once is read and has no effect: only experiments ("mnemon sim") need it. */
#define RETIRED(key) \
    { .name = key, .type = CONFIG_TEXT, .offset = offsetof(struct settings, retired) }

static const struct config_key settings_keys[] = {
    SETTING("http.address", TEXT, http_address, "127.0.0.1"),
    SETTING("http.port", NUMBER, http_port, "8080", .max = UINT16_MAX),
    SETTING("http.connections", NUMBER, http_connections, "1024", .min = 16, .max = 65536),
    SETTING("http.timeout", DURATION, http_timeout_us, "15 s", .min = 1000, .max = UINT64_C(3600) * 1000000),
    SETTING("http.hosts", LIST, http_hosts, NULL),
    SETTING("http.rate", NUMBER, http_rate, "2000", .max = 100000),
    SETTING("http.reads", CHOICE, http_reads, "open", .choices = settings_reads),
    SETTING("http.cache", SIZE, http_cache, "64 MiB", .max = UINT64_C(1) << 40),
    SETTING("http.public", TEXT, http_public, NULL),
    SETTING("ring.address", TEXT, ring_address, NULL),
    SETTING("ring.port", NUMBER, ring_port, "7070", .max = UINT16_MAX),
    SETTING("ring.map_port", SWITCH, ring_map_port, "no"),
    SETTING("ring.capacity", NUMBER, ring_capacity, "1", .max = 32),
    SETTING("ring.first_place", NUMBER, ring_first_place, "32", .max = 32),
    SETTING("ring.upload", SIZE, ring_upload, "0", .max = UINT64_C(1) << 40),
    SETTING("ring.download", SIZE, ring_download, "0", .max = UINT64_C(1) << 40),
    SETTING("ring.requests", NUMBER, ring_requests, "0", .max = 1000000),
    SETTING("ring.keep", CHOICE, ring_keep, "arc", .choices = settings_keeps),
    SETTING("ring.grace", DURATION, ring_grace_us, "1 h", .min = 1000000,
            .max = UINT64_C(30) * 86400 * 1000000),
    SETTING("ring.compare", DURATION, ring_compare_us, "5 min", .min = 100000,
            .max = UINT64_C(86400) * 1000000),
    SETTING("ring.scrub", DURATION, ring_scrub_us, "30 d", .min = 1000000,
            .max = UINT64_C(3650) * 86400 * 1000000),
    SETTING("ring.protocol", CHOICE, ring_protocol, "1-2", .choices = settings_protocols),
    SETTING("ring.site", TEXT, ring_site, NULL),
    SETTING("ring.redirect", SWITCH, ring_redirect, "no"),
    SETTING("crowd.enabled", SWITCH, crowd_enabled, "yes"),
    SETTING("crowd.part", CHOICE, crowd_part, "full", .choices = settings_parts),
    SETTING("crowd.offers", CHOICE, crowd_offers, "read", .choices = settings_offers),
    SETTING("crowd.cache", SIZE, crowd_cache, "256 MiB", .min = UINT64_C(1) << 20, .max = UINT64_C(1) << 40),
    SETTING("crowd.relay", NUMBER, crowd_relay, "64", .max = RELAY_MEMBERS_MAX),
    SETTING("crowd.shuffle", DURATION, crowd_shuffle_us, "10 s", .min = 100000,
            .max = UINT64_C(3600) * 1000000),
    SETTING("group.period", DURATION, group_period_us, "15 min", .min = 100000,
            .max = UINT64_C(86400) * 1000000),
    SETTING("group.silence", DURATION, group_silence_us, "1 h", .min = 1000000,
            .max = UINT64_C(7) * 86400 * 1000000),
    SETTING("mirror.gather", DURATION, mirror_gather_us, "1 min", .min = 1000,
            .max = UINT64_C(86400) * 1000000),
    SETTING("mirror.period", DURATION, mirror_period_us, "10 min", .min = 100000,
            .max = UINT64_C(86400) * 1000000),
    SETTING("mirror.limit", TEXT, mirror_limit, "unlimited"),
    SETTING("mirror.window", LIST, mirror_windows, NULL),
    SETTING("mirror.upload_limit", TEXT, mirror_upload_limit, "unlimited"),
    SETTING("mirror.upload_window", LIST, mirror_upload_windows, NULL),
    SETTING("proxy.address", TEXT, proxy_address, "127.0.0.1"),
    SETTING("proxy.port", NUMBER, proxy_port, "0", .max = UINT16_MAX),
    SETTING("proxy.timeout", DURATION, proxy_timeout_us, "3 s", .min = 1000, .max = UINT64_C(60) * 1000000),
    SETTING("proxy.intercept", SWITCH, proxy_intercept, "no"),
    SETTING("proxy.light", SWITCH, proxy_light, "yes"),
    SETTING("proxy.archive", SWITCH, proxy_archive, "no"),
    SETTING("node.confine", CHOICE, node_confine, "yes", .choices = settings_confines),
    SETTING("node.disk", SIZE, node_disk, "0", .max = UINT64_C(1) << 60),
    SETTING("node.public", TEXT, node_public, NULL),
    SETTING("node.parsers", NUMBER, node_parsers, "32", .max = SETTINGS_PARSERS_MAX),
    SETTING("node.parse_short", SWITCH, node_parse_short, "yes"),
    SETTING("archive.title", TEXT, archive_title, "mnemon"),
    SETTING("archive.trust", CHOICE, archive_trust, "any", .choices = settings_trusts),
    SETTING("store.cache", SIZE, store_cache, "512 MiB", .min = UINT64_C(1) << 20, .max = UINT64_C(1) << 40),
    SETTING("search.enabled", SWITCH, search_enabled, "yes"),
    SETTING("crawl.user_agent", TEXT, crawl_user_agent, NULL),
    SETTING("crawl.connections", NUMBER, crawl_connections, "200", .min = 1, .max = 10000),
    SETTING("crawl.frontier_memory", SIZE, crawl_frontier_memory, "2 GiB", .min = 1 << 20,
            .max = UINT64_C(1) << 50),
    SETTING("crawl.allow_private", SWITCH, crawl_allow_private, "no"),
    SETTING("crawl.allow_private_ring", SWITCH, crawl_allow_private_ring, "no"),
    SETTING("crawl.nameservers", TEXT, crawl_nameservers, NULL),
    RETIRED("crowd.overlay"),
    RETIRED("crowd.view"),
    RETIRED("crowd.fanout"),
    RETIRED("group.probe"),
    {0},
};

/* What keys say together. */
static enum err settings_check(const struct settings *settings, struct err_detail *reason) {
    if (settings->ring_grace_us < 2 * settings->ring_compare_us) {
        return err_set(reason, ERR_INVALID, "ring.grace is less than twice ring.compare");
    }
    if (settings->node_disk > 0 && settings->node_disk < QUOTA_SIZE_MIN) {
        return err_set(reason, ERR_INVALID, "node.disk is less than 64 MiB");
    }
    if (settings->http_public.size > 0 && !public_urls_is_origin(settings->http_public)) {
        return err_set(reason, ERR_INVALID, "http.public is no origin as https://archive.example.org");
    }
    return ERR_OK;
}

bool settings_make_relay(const struct settings *settings) {
    bool takes_part = settings->crowd_enabled && settings->crowd_part == CROWD_FULL;
    return takes_part && settings->crowd_relay > 0 && settings->ring_capacity > 0;
}

enum err settings_read(struct settings *settings, const char *path, bool must_exist,
                       struct err_detail *detail) {
    struct buf text;
    struct err_detail reason = {0};
    buf_init(&text, FILE_SIZE_MAX);
    arena_init(&settings->arena, ARENA_SIZE_MAX);
    enum err err = whole_file_read(path, &text, NULL);
    if (err == ERR_NOT_FOUND && !must_exist) {
        err = ERR_OK;
    }
    if (err == ERR_OK) {
        struct arena arena =
            settings->arena; /* config_read() fills all of the struct's fields but this one */
        err = config_read(settings_keys, buf_bytes(&text), &arena, settings, &reason);
        settings->arena = arena;
        err = err == ERR_OK ? settings_check(settings, &reason) : err;
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
