/* cdx - arbitrary bytes as the query string of a CDX request, and its filters over a line. */
#include "base/assert.h"
#include "fuzz.h"
#include "replay/cdx/cdx_query.h"

static void run_filters(const struct cdx_query *query) {
    struct cdx_line line;
    cdx_line_init(&line, NULL, query->is_resolved);
    for (unsigned i = 0; i < CDX_FIELDS_COUNT; i += 2) {
        line.values[i] = BYTES("org,example)/aaaaaaaaaaaaaaaaaaaa 20260102030405");
    }
    for (size_t i = 0; i < query->filters_count; i++) {
        struct err_detail detail = {0};
        bool passes;
        enum err err = cdx_filter_run(&query->filters[i], &line, &passes, &detail);
        ASSERT(err == ERR_OK || (err == ERR_LIMIT && detail.text[0] != '\0'));
    }
    cdx_line_done(&line);
}

static void check(enum cdx_dialect dialect, struct bytes text) {
    struct cdx_query query;
    struct err_detail detail = {0};
    enum err err = cdx_query_parse(&query, dialect, text, &detail);
    if (err != ERR_OK) {
        ASSERT(err == ERR_LIMIT || (err == ERR_INVALID && detail.text[0] != '\0'));
        return;
    }
    ASSERT(query.url.size > 0 && query.limit <= CDX_LINES_MAX && query.shown_count > 0);
    ASSERT(query.page_size > 0 && (!query.has_page || query.page <= UINT64_MAX / query.page_size));
    for (size_t i = 0; i < query.collapses_count; i++) {
        ASSERT(query.collapses[i].field < CDX_FIELDS_COUNT && query.collapses[i].size > 0);
    }
    run_filters(&query);
    cdx_query_done(&query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(CDX_ARCHIVE_ORG, bytes_of(data, size));
    check(CDX_PYWB, bytes_of(data, size));
    return 0;
}
