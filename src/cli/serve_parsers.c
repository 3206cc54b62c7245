#include "cli/serve_parsers.h"

#include <string.h>
#include <unistd.h>

#include "crawl/engine/parse_sitemap.h"
#include "parse/parse_decode.h"
#include "parse/parse_host.h"
#include "parse/parse_lines.h"
#include "parse/parse_links.h"
#include "parse/parse_page.h"
#include "parse/parse_text.h"

enum { COUNT_MIN = 2 };

static const struct parse_kinds serve_kinds = {
    .items = {[PARSE_PAGE] = &parse_page,
              [PARSE_DECODE] = &parse_decode,
              [PARSE_LINKS] = &parse_links,
              [PARSE_TEXT] = &parse_text,
              [PARSE_LINES] = &parse_lines,
              [PARSE_SITEMAP] = &parse_sitemap},
};

bool serve_parsers_is_host(int argc, char **argv) {
    return argc == 4 && strcmp(argv[1], PARSE_HOST_WORD) == 0;
}

int serve_parsers_host(int argc, char **argv) {
    return parse_host_main(argc, argv, &serve_kinds);
}

/* More than there are processors would only take turns. */
static size_t serve_parsers_count(uint64_t wanted) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t useful = processors < COUNT_MIN ? COUNT_MIN : (size_t)processors;
    return wanted < useful ? (size_t)wanted : useful;
}

int serve_parsers(struct cli *cli, const struct settings *settings, struct parsers **ret_parsers) {
    struct err_detail detail = {0};
    *ret_parsers = NULL;
    size_t count = serve_parsers_count(settings->node_parsers);
    if (count == 0 || !cli->can_execute_itself) {
        fprintf(cli->err, "foreign content is parsed in the process of the node itself (node.parsers = 0)\n");
        return CLI_DONE;
    }
    enum err err = parsers_start(count, ret_parsers, &detail);
    return err == ERR_OK ? CLI_DONE
                         : cli_fail(cli, "%s (node.parsers = 0 does without)", err_detail_text(&detail, err));
}
