#include "replay/site/origin.h"

#include <string.h>

enum { HOST_SIZE_MAX = 255 };

struct bytes origin_host(const struct http_request *request) {
    struct bytes host = http_request_header(request, "Host");
    bool is_sound = host.size > 0 && host.size <= HOST_SIZE_MAX;
    for (size_t i = 0; i < host.size && is_sound; i++) {
        uint8_t byte = host.data[i];
        is_sound = byte_is_alnum(byte) || (byte != '\0' && strchr(".:-_[]", byte) != NULL);
    }
    return is_sound ? host : BYTES("localhost");
}

void origin_put(struct buf *out, const struct http_request *request) {
    bool is_secure = bytes_equal(http_request_header(request, "X-Forwarded-Proto"), BYTES("https"));
    buf_put_string(out, is_secure ? "https://" : "http://");
    buf_put(out, origin_host(request));
}
