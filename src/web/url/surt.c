#include "web/url/surt.h"

static void put_reversed(struct buf *out, struct bytes host) {
    for (size_t end = host.size;;) {
        size_t start = end;
        while (start > 0 && host.data[start - 1] != '.') {
            start--;
        }
        buf_put(out, bytes_slice(host, start, end));
        if (start == 0) {
            return;
        }
        buf_put_byte(out, ',');
        end = start - 1;
    }
}

enum err surt_put(struct buf *out, const struct canon *canon) {
    struct bytes url = canon_url(canon);
    struct bytes host = bytes_slice(url, canon->host_start, canon->host_end);
    if (host.size == 0) {
        return buf_put(out, url);
    }
    if (host.data[0] == '[') {
        buf_put(out, host); /* IPv6 */
    } else {
        put_reversed(out, host);
    }
    buf_put(out, bytes_slice(url, canon->host_end, canon->path_start)); /* ":port" or nothing */
    buf_put_byte(out, ')');
    return buf_put(out, bytes_skip(url, canon->path_start));
}
