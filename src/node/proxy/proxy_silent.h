/*
 * proxy_silent - servers that have just been silent: others are asked at once, not after the time-out.
 *
 * A page has many parts, and a browser asks for them a few at a time: without this, a server that answers
 * nothing would cost the time-out again and again. It is still asked, and an answer ends its entry.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_SILENT_H
#define MNEMON_NODE_PROXY_PROXY_SILENT_H

#include "web/url/url.h"

enum { PROXY_SILENT_COUNT = 64, PROXY_SILENT_NAME_SIZE_MAX = 256 };

/* All zeros: nobody. The oldest entries go first. */
struct proxy_silent {
    struct {
        uint8_t name[PROXY_SILENT_NAME_SIZE_MAX]; /* of the host */
        size_t name_size;
        int32_t port;
        uint64_t until_us; /* 0: none */
    } hosts[PROXY_SILENT_COUNT];
    size_t next_index;
};

void proxy_silent_add(struct proxy_silent *silent, const struct url *url, uint64_t now_us);
void proxy_silent_remove(struct proxy_silent *silent, const struct url *url);
bool proxy_silent_has(const struct proxy_silent *silent, const struct url *url, uint64_t now_us);

#endif
