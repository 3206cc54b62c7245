#include "node/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

enum { FILE_SIZE_MAX = 1 << 20, ARENA_SIZE_MAX = 4 << 20, PIECE_SIZE = 64 << 10 };

static const char *const settings_reads[] = {"open", "token", NULL};

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
