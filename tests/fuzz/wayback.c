/*
 * wayback - anything as a target under /web/. What is taken for a URL must be fit for a header and for a
 * page, and a path that is written out again must mean the same.
 */
#include "fuzz.h"
#include "replay/archive/wayback_path.h"

static void check_url(struct bytes url) {
    ASSERT(url.size > 0 && url.size <= URL_SIZE_MAX);
    for (size_t i = 0; i < url.size; i++) {
        ASSERT(url.data[i] > ' ' && url.data[i] < 0x7f && url.data[i] != '"' && url.data[i] != '<');
    }
}

/* As wayback_redirect() writes it. */
static void check_again(const struct wayback_path *path) {
    struct wayback_path again;
    struct buf target;
    buf_init(&target, 2 * URL_SIZE_MAX);
    wayback_path_init(&again);
    buf_put(&target, path->digits);
    buf_put(&target, path->modifier);
    buf_put_string(&target, path->digits.size + path->modifier.size > 0 ? "/" : "");
    buf_put(&target, buf_bytes(&path->url));
    if (path->kind == WAYBACK_CAPTURE && wayback_path_parse(&again, buf_bytes(&target), NULL) == ERR_OK) {
        ASSERT(bytes_equal(again.digits, path->digits) && bytes_equal(again.modifier, path->modifier));
        ASSERT(again.time_us == path->time_us && again.as == path->as);
    }
    wayback_path_done(&again);
    buf_done(&target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wayback_path path;
    struct err_detail detail = {0};
    wayback_path_init(&path);
    enum err err = wayback_path_parse(&path, bytes_of(data, size), &detail);
    if (err == ERR_OK) {
        check_url(buf_bytes(&path.url));
        ASSERT(path.digits.size <= WAYBACK_DIGITS_MAX && path.modifier.size <= WAYBACK_MODIFIER_SIZE_MAX);
        check_again(&path);
    } else {
        ASSERT(err == ERR_INVALID || err == ERR_LIMIT || err == ERR_NOT_FOUND);
        ASSERT(detail.err == err && detail.text[0] != '\0');
    }
    wayback_path_done(&path);
    return 0;
}
