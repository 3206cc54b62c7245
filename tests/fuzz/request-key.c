/*
 * request-key - a line with a URL, then anything as the request that was sent to it. The key is printable, as
 * a field of a record must be, and bounded; and the URL with it can be taken apart again.
 */
#include "warc/request_key.h"

#include "fuzz.h"
#include "web/url/url.h"

static void check_key(struct bytes key) {
    ASSERT(key.size <= REQUEST_KEY_TEXT_SIZE_MAX);
    ASSERT(key.size == 0 || bytes_starts_with(key, BYTES("__wb_method=")));
    for (size_t i = 0; i < key.size; i++) {
        ASSERT(key.data[i] > ' ' && key.data[i] < 0x7f && key.data[i] != '#');
    }
}

/* The way back gives what went in, unless the URL itself has an argument of that name. */
static void check_split(struct bytes url, struct bytes key, struct bytes joined) {
    struct request_key split = request_key_split(joined);
    struct bytes plain = bytes_slice(url, 0, key.size > 0 ? bytes_find_byte(url, '#') : url.size);
    if (bytes_find(url, BYTES("__wb_method=")) < url.size) {
        return;
    }
    ASSERT(bytes_equal(split.url, plain));
    if (key.size == 0) {
        ASSERT(split.method.size == 0 && split.body.size == 0);
        return;
    }
    struct bytes rest = bytes_skip(key, BYTES("__wb_method=").size);
    size_t end = bytes_find_byte(rest, '&');
    ASSERT(bytes_equal(split.method, bytes_slice(rest, 0, end)));
    ASSERT(split.body.size == 0 || bytes_equal(split.body, bytes_skip(rest, end + 1)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes request = bytes_of(data, size);
    struct bytes url;
    struct buf key;
    struct buf joined;
    struct buf again;
    if (request.size == 0 || !bytes_split(&request, '\n', &url) || url.size > URL_SIZE_MAX) {
        return 0;
    }
    buf_init(&key, REQUEST_KEY_TEXT_SIZE_MAX);
    buf_init(&joined, 2 * URL_SIZE_MAX);
    buf_init(&again, 2 * URL_SIZE_MAX);
    ASSERT(request_key_put(&key, request) == ERR_OK);
    check_key(buf_bytes(&key));
    ASSERT(request_key_join(&joined, url, buf_bytes(&key)) == ERR_OK);
    check_split(url, buf_bytes(&key), buf_bytes(&joined));
    ASSERT(request_key_put_url(&again, url, request) == ERR_OK);
    ASSERT(bytes_equal(buf_bytes(&again), buf_bytes(&joined)));
    buf_done(&key);
    buf_done(&joined);
    buf_done(&again);
    return 0;
}
