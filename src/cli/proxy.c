#include "cli/commands.h"
#include "cli/data.h"
#include "cli/serve.h"
#include "node/proxy/proxy_authority.h"

enum { CERTIFICATE_SIZE_MAX = 64 << 10 };

struct proxy_options {
    struct serve_options serve;
    bool print_ca;
};

static int print_certificate(struct cli *cli, const struct proxy_options *options) {
    struct data data;
    struct buf text;
    struct err_detail detail = {0};
    int status = data_find(&data, cli, options->serve.data);
    if (status != CLI_DONE) {
        return status;
    }
    buf_init(&text, CERTIFICATE_SIZE_MAX);
    enum err err = proxy_authority_print(data.directory, cli->clock, &text, &detail);
    if (err == ERR_OK) {
        fwrite(text.data, 1, text.size, cli->out);
    } else {
        status = cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    buf_done(&text);
    return status;
}

static int proxy_run(struct cli *cli, const void *values) {
    const struct proxy_options *options = values;
    if (options->print_ca) {
        return print_certificate(cli, options);
    }
    struct serve_options serve = options->serve;
    serve.has_proxy = true;
    return serve_node(cli, &serve);
}

static const struct proxy_options proxy_defaults = {.serve = {.http = SERVE_PORT_NOT_GIVEN,
                                                              .port = SERVE_PORT_NOT_GIVEN,
                                                              .keep = SERVE_KEEP_NOT_GIVEN,
                                                              .capacity = SERVE_CAPACITY_NOT_GIVEN}};

static const struct option proxy_options[] = {
    OPTION(TEXT, struct proxy_options, serve.data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct proxy_options, serve.proxy_listen, "listen", "IP[:PORT]",
           "the address of the proxy (127.0.0.1:8118); unless it is a loopback address, others can use the "
           "proxy too"),
    OPTION(DURATION, struct proxy_options, serve.proxy_timeout_us, "timeout", "TIME",
           "how long to wait for a server's first byte (3 s) before the crowd and the archive are asked too",
           .min = 1000, .max = UINT64_C(60) * 1000000),
    OPTION(FLAG, struct proxy_options, serve.proxy_intercept, "intercept", NULL,
           "decrypt https: connections, with certificates of its own; see --print-ca"),
    OPTION(FLAG, struct proxy_options, print_ca, "print-ca", NULL,
           "only print the certificate that your browser must trust for --intercept"),
    OPTION(FLAG, struct proxy_options, serve.proxy_archive, "archive", NULL,
           "archive the public pages that pass through"),
    OPTION(TEXT, struct proxy_options, serve.join, "join", "HOST[:PORT]",
           "join the ring of the node at this address, and so its crowd; needed only once"),
    OPTION(TEXT, struct proxy_options, serve.token, "token", "TOKEN",
           "the token for that ring, from \"mnemon ring invite\"; needed only once"),
    OPTION(TEXT, struct proxy_options, serve.token_file, "token-file", "FILE",
           "read that token from the first line of a file, or of the input for -"),
    OPTION(NUMBER, struct proxy_options, serve.capacity, "capacity", "N",
           "take part in the ring as a full member that holds and crawls, with so many virtual nodes (0: a "
           "light member, unless this directory's node was more than that)",
           .max = 32),
    OPTION(TEXT, struct proxy_options, serve.user, "user", "NAME",
           "if started as root: become this user before anything is opened"),
    OPTION(TEXT, struct proxy_options, serve.address, "address", "IP",
           "the address at which the node listens for its pages and its ring (127.0.0.1)"),
    OPTION(NUMBER, struct proxy_options, serve.port, "port", "PORT",
           "the port of the ring, UDP and TCP (7070)", .max = UINT16_MAX),
    OPTION(NUMBER, struct proxy_options, serve.http, "http", "PORT", "the port of the node's pages (8080)",
           .max = UINT16_MAX),
    OPTION(TEXT, struct proxy_options, serve.config, "config", "FILE",
           "read settings from this file (mnemon.conf in the data directory); options override them"),
    OPTION(FLAG, struct proxy_options, serve.allow_private, "allow-private", NULL,
           "allow names that lead to private addresses, and offer pages from there like all others"),
    OPTION(FLAG, struct proxy_options, serve.allow_private_ring, "allow-private-ring", NULL,
           "let jobs of the ring archive from private addresses"),
    {0},
};

const struct command proxy_command = {
    .name = "proxy",
    .summary = "run a node with a proxy for your browser",
    .synopsis = "[OPTION…]",
    .details =
        "Runs a node as \"mnemon serve\" does, and beside it an HTTP proxy for your own browser (and \"curl "
        "-x\"). Every request goes to the server that it names. If that server cannot provide the page, "
        "because its name does not resolve, it does not answer in time or a gateway reports an error, the "
        "proxy asks other nodes that have just read the page (the crowd), then the archive. Such answers "
        "carry the headers X-Mnemon-Source and Memento-Datetime.\n\n"
        "The pages you read are offered to the crowd only if everybody would have received the same: "
        "requests without cookies and logins, answers that set no cookies and are not marked as private, "
        "from public addresses.\n\n"
        "In a ring it is a light member: it needs to be reached by nobody, and holds and crawls nothing for "
        "others; with --capacity 1 it is a full one. A node that was a full member stays that.\n\n"
        "https: connections pass through unread, as tunnels. With --intercept the proxy decrypts them: the "
        "browser must then trust the certificate that --print-ca prints, which is made for this data "
        "directory alone. Anybody who has its file proxy-ca.pem can read all connections of that browser.",
    .options = proxy_options,
    .options_size = sizeof(struct proxy_options),
    .defaults = &proxy_defaults,
    .run = proxy_run,
};
