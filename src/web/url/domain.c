#include "web/url/domain.h"

#include <libpsl.h>

enum { DOMAIN_SIZE_MAX = 254 }; /* 253 by DNS, and a dot at the end */

struct bytes domain_registrable(const struct url *url) {
    struct bytes host = url_host(url);
    struct bytes none = {NULL, 0};
    if (url->host_type != URL_HOST_DOMAIN || host.size > DOMAIN_SIZE_MAX) {
        return none;
    }
    bool has_dot = host.data[host.size - 1] == '.';
    char name[DOMAIN_SIZE_MAX + 1]; /* libpsl wants a string, and no dot at its end */
    size_t size = host.size - (has_dot ? 1 : 0);
    memcpy(name, host.data, size);
    name[size] = '\0';
    const char *registrable = psl_registrable_domain(psl_builtin(), name);
    if (registrable == NULL) {
        return none;
    }
    return bytes_skip(host, (size_t)(registrable - name));
}
