#include "replay/routes.h"

#include "replay/admin/admin_pages.h"
#include "replay/cdx/cdx.h"
#include "replay/pages/find.h"
#include "replay/pages/pages.h"
#include "replay/site/assets.h"
#include "replay/wayback/memento.h"
#include "replay/wayback/wayback.h"

size_t routes_fill(struct replay *replay, struct http_route out[ROUTES_MAX]) {
    _Static_assert(WAYBACK_ROUTES_MAX + MEMENTO_ROUTES_MAX + CDX_ROUTES_MAX + PAGES_ROUTES_MAX +
                           FIND_ROUTES_MAX + ASSETS_ROUTES_MAX + ADMIN_PAGES_ROUTES_MAX + 1 <=
                       ROUTES_MAX,
                   "all routes have room");
    size_t count = memento_routes(replay, out); /* before /web/, which would take it all */
    count += wayback_routes(replay, out + count);
    count += cdx_routes(replay, out + count);
    count += pages_routes(replay, out + count);
    count += find_routes(replay, out + count);
    count += assets_routes(replay, out + count);
    count += admin_pages_routes(replay, out + count);
    out[count++] = pages_fallback(replay);
    return count;
}
