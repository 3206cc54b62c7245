#include "replay/pages/pages.h"

#include "replay/pages/pages_parts.h"

enum { STATUS_NOT_FOUND = 404 };

static void answer_missing(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    bool is_api = bytes_starts_with(http_request_path(request), BYTES("/api/"));
    if (is_api || !sheet_is_wanted(request)) {
        http_answer_status(request, STATUS_NOT_FOUND, ERR_UNSUPPORTED, "there is no such page");
        return;
    }
    sheet_answer_error(
        replay, request, STATUS_NOT_FOUND, "There is no such page",
        "The archive has no page of its own at this address. To see an archived page, type its "
        "address at the start.");
}

struct http_route pages_fallback(struct replay *replay) {
    return (struct http_route){.method = "GET", .path = "/*", .context = replay, .answer = answer_missing};
}

size_t pages_routes(struct replay *replay, struct http_route out[PAGES_ROUTES_MAX]) {
    static const struct {
        const char *path;
        void (*answer)(struct http_request *request);
    } routes[] = {
        {"/", pages_start},
        {"/list", pages_list_form},
        {"/details/*", pages_details},
        {"/compare/*", pages_compare},
        {"/holdings", pages_holdings},
        {"/api/v1/suggest", pages_suggest},
        {"/api/v1/calendar", pages_calendar_json},
        {"/api/v1/capture", pages_capture_json},
        {"/api/v1/parts", pages_embeds_json},
        {"/api/v1/holdings", pages_holdings_json},
    };
    size_t count = sizeof routes / sizeof *routes;
    _Static_assert(sizeof routes / sizeof *routes <= PAGES_ROUTES_MAX, "all routes have room");
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct http_route){
            .method = "GET", .path = routes[i].path, .context = replay, .answer = routes[i].answer};
    }
    return count;
}
