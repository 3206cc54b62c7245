#include "cli/commands.h"

#include <openssl/crypto.h>

#include "base/json.h"
#include "version.h"

struct version_options {
    bool json;
};

static int version_run(struct cli *cli, const void *values) {
    const struct version_options *options = values;
    const char *openssl = OpenSSL_version(OPENSSL_VERSION);
    if (options->json) {
        struct json json;
        json_begin_file(&json, cli->out);
        json_text(&json, "version", MNEMON_VERSION);
        json_text(&json, "compiler", MNEMON_COMPILER);
        json_text(&json, "openssl", openssl);
        cli_note(cli, json_end(&json));
    } else {
        fprintf(cli->out, "mnemon %s\nbuilt with %s\n%s\n", MNEMON_VERSION, MNEMON_COMPILER, openssl);
    }
    return CLI_DONE;
}

static const struct option version_options[] = {
    OPTION(FLAG, struct version_options, json, "json", NULL, "print one JSON object"),
    {0},
};

const struct command version_command = {
    .name = "version",
    .summary = "show the versions of mnemon and its libraries",
    .synopsis = "[--json]",
    .options = version_options,
    .options_size = sizeof(struct version_options),
    .run = version_run,
};
