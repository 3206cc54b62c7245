#include "node/proxy/proxy_silent.h"

static const uint64_t remembered_us = 30000000;

/* PROXY_SILENT_COUNT: it is not there. */
static size_t find(const struct proxy_silent *silent, const struct url *url) {
    struct bytes host = url_host(url);
    int32_t port = url_port_or_default(url);
    size_t i = 0;
    while (i < PROXY_SILENT_COUNT &&
           (silent->hosts[i].until_us == 0 || silent->hosts[i].port != port ||
            !bytes_equal(bytes_of(silent->hosts[i].name, silent->hosts[i].name_size), host))) {
        i++;
    }
    return i;
}

void proxy_silent_add(struct proxy_silent *silent, const struct url *url, uint64_t now_us) {
    struct bytes host = url_host(url);
    size_t i = find(silent, url);
    if (host.size > PROXY_SILENT_NAME_SIZE_MAX) {
        return;
    }
    if (i == PROXY_SILENT_COUNT) {
        i = silent->next_index;
        silent->next_index = (i + 1) % PROXY_SILENT_COUNT;
        memcpy(silent->hosts[i].name, host.data, host.size);
        silent->hosts[i].name_size = host.size;
        silent->hosts[i].port = url_port_or_default(url);
    }
    silent->hosts[i].until_us = now_us + remembered_us;
}

void proxy_silent_remove(struct proxy_silent *silent, const struct url *url) {
    size_t i = find(silent, url);
    if (i < PROXY_SILENT_COUNT) {
        silent->hosts[i].until_us = 0;
    }
}

bool proxy_silent_has(const struct proxy_silent *silent, const struct url *url, uint64_t now_us) {
    size_t i = find(silent, url);
    return i < PROXY_SILENT_COUNT && now_us < silent->hosts[i].until_us;
}
