#include "replay/site/assets.h"

#include <stdio.h>

enum { ETAG_SIZE_MAX = 32 };

const struct asset *assets_find(struct bytes name) {
    for (const struct asset *asset = assets; asset->name != NULL; asset++) {
        if (bytes_equal(bytes_of_string(asset->name), name)) {
            return asset;
        }
    }
    return NULL;
}

void assets_put_url(struct buf *out, const char *name) {
    const struct asset *asset = assets_find(bytes_of_string(name));
    ASSERT(asset != NULL);
    buf_put_format(out, "/static/%s?%s", asset->name, asset->mark);
}

static void assets_answer(struct http_request *request) {
    const struct asset *asset = assets_find(http_request_rest(request));
    if (asset == NULL) {
        http_answer_error(request, ERR_NOT_FOUND, "there is no such file");
        return;
    }
    char etag[ETAG_SIZE_MAX];
    snprintf(etag, sizeof etag, "\"%s\"", asset->mark);
    bool is_marked = bytes_equal(http_request_query(request), bytes_of_string(asset->mark));
    http_add_header(request, "ETag", etag);
    http_add_header(request, "Cache-Control", is_marked ? "public, max-age=31536000, immutable" : "no-cache");
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    if (bytes_equal(http_request_header(request, "If-None-Match"), bytes_of_string(etag))) {
        http_answer(request, STATUS_NOT_MODIFIED, asset->type, bytes_of(NULL, 0));
        return;
    }
    http_answer(request, STATUS_OK, asset->type, asset->data);
}

size_t assets_routes(struct replay *replay, struct http_route out[ASSETS_ROUTES_MAX]) {
    out[0] =
        (struct http_route){.method = "GET", .path = "/static/*", .context = replay, .answer = assets_answer};
    return 1;
}
