#include "replay/pages/pages.h"

#include "replay/pages/pages_kit.h"

static void pages_answer_missing(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (is_api || !sheet_is_wanted(request)) {
        http_answer_status(request, STATUS_NOT_FOUND, ERR_UNSUPPORTED, "there is no such page");
        return;
    }
    sheet_answer_error(
        replay, request, STATUS_NOT_FOUND, "There is no such page",
        "The archive has no page of its own at this address. To see an archived page, type its "
        "address on the start page.");
}

struct http_route pages_fallback(struct replay *replay) {
    return (struct http_route){
        .method = "GET", .path = "/*", .context = replay, .answer = pages_answer_missing};
}

size_t pages_routes(struct replay *replay, struct http_route out[PAGES_ROUTES_MAX]) {
    static const struct http_route routes[] = {
        {.method = "GET", .path = "/", .answer = pages_start},
        {.method = "GET", .path = "/list", .answer = pages_list_form},
        {.method = "GET", .path = "/details/*", .answer = pages_details, .is_long = true},
        {.method = "GET", .path = "/compare/*", .answer = pages_compare, .is_long = true},
        {.method = "GET", .path = "/holdings", .answer = pages_holdings},
        {.method = "GET", .path = "/api/v1/suggest", .answer = pages_suggest},
        {.method = "GET", .path = "/api/v1/calendar", .answer = pages_calendar_json},
        {.method = "GET", .path = "/api/v1/capture", .answer = pages_capture_json, .is_long = true},
        {.method = "GET", .path = "/api/v1/parts", .answer = pages_embeds_json, .is_long = true},
        {.method = "GET", .path = "/api/v1/holdings", .answer = pages_holdings_json},
    };
    _Static_assert(sizeof routes / sizeof *routes <= PAGES_ROUTES_MAX, "all routes have room");
    return replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
}
