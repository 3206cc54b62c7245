#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/serve.h"
#include "cli/serve_confine.h"
#include "cli/serve_parsers.h"
#include "cli/serve_port.h"
#include "node/group/group_files.h"
#include "node/mirror/mirror_driver_rates.h"
#include "node/node.h"
#include "node/settings.h"
#include "version.h"

enum {
    NOT_GIVEN = SERVE_PORT_NOT_GIVEN,
    ANY_PORT = 1, /* of an address that shall have none */
    PROXY_PORT = 8118,
    AWAIT_US = 1000000, /* between two looks at the address */
    LIGHT_MODE = 0644,
};

static void replace_if(uint64_t *setting, uint64_t option, bool is_given) {
    *setting = is_given ? option : *setting;
}

/* In DIR/ring: the node of this directory joined its ring as a light member. */
static const char *light_path(const struct data *data, const char *name, char out[DATA_PATH_SIZE_MAX + 32]) {
    snprintf(out, DATA_PATH_SIZE_MAX + 32, "%s/ring%s", data->directory, name);
    return out;
}

/* Whoever joins now, or did so as a light member. Whoever founded a ring or was more than a light member
 * stays that: others count on its copies. */
static bool serve_may_be_light(const struct data *data, bool is_joining) {
    char path[DATA_PATH_SIZE_MAX + 32];
    return access(light_path(data, "/light", path), F_OK) == 0 ||
           (is_joining && access(light_path(data, "/charter", path), F_OK) != 0);
}

/* A full disk leaves it as it was, which is said. */
static void keep_light(const struct cli *cli, const struct data *data, bool is_joining) {
    char path[DATA_PATH_SIZE_MAX + 32];
    struct err_detail detail = {0};
    enum err err = ERR_OK;
    if (is_joining && access(light_path(data, "/light", path), F_OK) != 0) {
        err = whole_file_make_directory(light_path(data, "", path), &detail);
        err = err == ERR_OK
                  ? whole_file_replace(light_path(data, "/light", path), BYTES(""), LIGHT_MODE, &detail)
                  : err;
    }
    if (err != ERR_OK) {
        fprintf(cli->err, "%s\n", err_detail_text(&detail, err));
    }
}

/* What the file says, and what the options say instead. */
static int read_settings(struct cli *cli, const struct serve_options *options, const struct data *data,
                         struct settings *settings) {
    char path[DATA_PATH_SIZE_MAX + 16];
    struct err_detail detail = {0};
    snprintf(path, sizeof path, "%s/mnemon.conf", data->directory);
    enum err err = settings_read(settings, options->config != NULL ? options->config : path,
                                 options->config != NULL, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    if (settings->retired.size > 0) {
        fprintf(cli->err,
                "crowd.overlay, crowd.view, crowd.fanout and group.probe are not settings any more: "
                "they have no effect\n");
    }
    if (options->address != NULL) {
        settings->http_address = bytes_of_string(options->address);
    }
    if (options->public != NULL) {
        settings->node_public = bytes_of_string(options->public);
    }
    replace_if(&settings->http_port, options->http, options->http != NOT_GIVEN);
    replace_if(&settings->ring_port, options->port, options->port != NOT_GIVEN);
    if (options->light && options->capacity != SERVE_CAPACITY_NOT_GIVEN && options->capacity > 0) {
        return cli_fail(cli, "--light is --capacity 0");
    }
    replace_if(&settings->ring_capacity, options->capacity, options->capacity != SERVE_CAPACITY_NOT_GIVEN);
    replace_if(&settings->ring_capacity, 0, options->light);
    bool is_free = options->capacity == SERVE_CAPACITY_NOT_GIVEN && settings->proxy_light;
    replace_if(&settings->ring_capacity, 0,
               options->has_proxy && is_free && serve_may_be_light(data, options->join != NULL));
    replace_if(&settings->node_disk, options->disk, options->disk > 0);
    replace_if(&settings->ring_upload, options->upload_limit, options->upload_limit > 0);
    replace_if(&settings->ring_download, options->download_limit, options->download_limit > 0);
    replace_if(&settings->proxy_timeout_us, options->proxy_timeout_us, options->proxy_timeout_us > 0);
    if (options->site != NULL) {
        settings->ring_site = bytes_of_string(options->site);
    }
    if (options->keep != SERVE_KEEP_NOT_GIVEN) {
        settings->ring_keep = options->keep;
    }
    settings->ring_map_port = settings->ring_map_port || options->map_port;
    if (settings->ring_capacity == 0 && options->map_port) {
        return cli_fail(cli, "--map-port is for nodes that others reach, and nobody reaches a light member");
    }
    settings->ring_map_port = settings->ring_map_port && settings->ring_capacity > 0;
    settings->crawl_allow_private = settings->crawl_allow_private || options->allow_private;
    settings->crawl_allow_private_ring = settings->crawl_allow_private_ring || options->allow_private_ring;
    settings->proxy_intercept = settings->proxy_intercept || options->proxy_intercept;
    settings->proxy_archive = settings->proxy_archive || options->proxy_archive;
    return CLI_DONE;
}

static void print_proxy(const struct cli *cli, const struct node *node) {
    struct address address;
    char text[ADDRESS_TEXT_SIZE_MAX];
    if (!node_proxy_address(node, &address)) {
        return;
    }
    fprintf(cli->out, "a proxy for browsers at %s\n", address_format(&address, text));
    if (!address_is_loopback(&address)) {
        fprintf(cli->err,
                "%s is not a loopback address: anybody who can reach it can use the web through this node\n",
                text);
    }
}

/* Scripts wait for these lines: they come when it is really there. */
static void print_start(const struct cli *cli, const struct node *node, const struct data *data) {
    struct address address;
    struct address ring;
    char text[ADDRESS_TEXT_SIZE_MAX];
    node_http_address(node, &address);
    fprintf(cli->out, "serving %s at http://%s\n", data->directory, address_format(&address, text));
    size_t volumes = node_volumes_count(node);
    fprintf(cli->out, "%zu volume%s, open to clients that hold the token in %s\n", volumes,
            volumes == 1 ? "" : "s", node_token_path(node));
    if (node_is_light(node)) {
        fprintf(cli->out, "in its ring as a light member; see \"mnemon ring status\"\n");
    } else if (node_ring_address(node, &ring)) {
        char names[1][GROUP_FILES_NAME_SIZE_MAX];
        bool is_in_group = group_files_list(data->directory, names, 1) > 0;
        const char *what = node_has_ring(node) ? "ring" : is_in_group ? "group" : "mirror";
        fprintf(cli->out, "%s at %s; see \"mnemon %s status\"\n",
                node_has_ring(node) ? "in its ring"
                : is_in_group       ? "in its group"
                                    : "exchanges collections",
                address_format(&ring, text), what);
    }
    print_proxy(cli, node);
    if (isatty(fileno(cli->out))) { /* no secret into logs */
        fprintf(cli->out, "log in to make changes from its pages: http://%s/login?token=%s\n",
                address_format(&address, text), node_token(node));
    }
    fflush(cli->out);
}

static void serve_tell(void *context, const char *name, const char *sentence) {
    const struct cli *cli = context;
    fprintf(cli->err, "job %s: %s\n", name, sentence);
}

static void note(void *context, const char *sentence) {
    const struct cli *cli = context;
    fprintf(cli->err, "%s\n", sentence);
}

/* An address without a port, and the port. */
static int read_address(const struct cli *cli, struct bytes text, uint64_t port,
                        struct address *ret_address) {
    if (!address_parse(text, ANY_PORT, ret_address) || ret_address->port != ANY_PORT) {
        return cli_fail(cli, "\"%.*s\" is not an IP address", BYTES_ARG(text));
    }
    ret_address->port = (uint16_t)port;
    return CLI_DONE;
}

/* Port 0, which is no address of anybody, stands for any that is free. */
static bool parse_listen(struct bytes text, struct address *ret_address) {
    bool is_any = bytes_ends_with(text, BYTES(":0"));
    struct bytes rest = is_any ? bytes_slice(text, 0, text.size - 2) : text;
    if (!address_parse(rest, PROXY_PORT, ret_address)) {
        return false;
    }
    ret_address->port = is_any ? 0 : ret_address->port;
    return true;
}

/* Where other nodes reach this one. Without a port it is the one that the node listens at, if that is known.
 */
static int read_public(const struct cli *cli, struct bytes text, uint64_t port, struct address *ret_address) {
    if (!address_parse(text, (uint16_t)port, ret_address) || !address_is_possible(ret_address)) {
        return cli_fail(cli, "\"%.*s\" is not an IP address%s at which other nodes could reach this one",
                        BYTES_ARG(text), port == 0 ? " with a port" : "");
    }
    return CLI_DONE;
}

/* One address, or one of each family. */
static int read_publics(const struct cli *cli, struct bytes text, uint64_t port, struct node_config *config) {
    size_t comma = bytes_find_byte(text, ',');
    int status = read_public(cli, bytes_slice(text, 0, comma), port, &config->ring_public);
    if (status != CLI_DONE || comma == text.size) {
        return status;
    }
    status = read_public(cli, bytes_trim(bytes_skip(text, comma + 1)), port, &config->ring_second);
    bool is_pair = address_is_ipv4(&config->ring_public) != address_is_ipv4(&config->ring_second);
    struct address everywhere = {.port = config->ring.port};
    if (status == CLI_DONE && !(is_pair && address_equal(&config->ring, &everywhere))) {
        return cli_fail(cli,
                        "two public addresses are one of IPv4 and one of IPv6, of a node with --address ::");
    }
    return status;
}

/* Where it listens, if at all. */
static int read_proxy(const struct cli *cli, const struct serve_options *options,
                      const struct settings *settings, struct node_config *config) {
    uint64_t port = settings->proxy_port > 0 ? settings->proxy_port : PROXY_PORT;
    config->has_proxy = options->has_proxy || settings->proxy_port > 0;
    if (options->proxy_listen == NULL) {
        return config->has_proxy ? read_address(cli, settings->proxy_address, port, &config->proxy)
                                 : CLI_DONE;
    }
    return parse_listen(bytes_of_string(options->proxy_listen), &config->proxy)
               ? CLI_DONE
               : cli_fail(cli, "\"%s\" is not an IP address with a port", options->proxy_listen);
}

/* How fast collections travel, and when. */
static int read_limits(const struct cli *cli, const struct settings *settings, struct mirror_limit *ret_down,
                       struct mirror_limit *ret_up) {
    struct err_detail detail = {0};
    enum err err =
        mirror_driver_rates_read(settings->mirror_limit, &settings->mirror_windows, ret_down, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "mirror.limit and mirror.window: %s", err_detail_text(&detail, err));
    }
    err = mirror_driver_rates_read(settings->mirror_upload_limit, &settings->mirror_upload_windows, ret_up,
                                   &detail);
    return err == ERR_OK ? CLI_DONE
                         : cli_fail(cli, "mirror.upload_limit and mirror.upload_window: %s",
                                    err_detail_text(&detail, err));
}

/* What the operator should know about who can do what on this machine. */
static void tell_privileges(const struct cli *cli, const struct data *data, const struct settings *settings) {
    struct stat status;
    if (geteuid() == 0) {
        fprintf(cli->err, "running as root, which nothing here needs: --user NAME gives that up\n");
    }
    bool is_secret = settings->http_reads == SETTINGS_READS_TOKEN;
    if (is_secret && stat(data->directory, &status) == 0 && (status.st_mode & S_IRWXO) != 0) {
        fprintf(
            cli->err,
            "%s can be entered by all users of this machine, although reading needs a token: chmod 700 it\n",
            data->directory);
    }
}

/* Outlives a run of the node, which begins again if its address has changed. */
struct serve_process {
    struct confine_state confined;
    struct parsers *parsers;
    bool are_parsers_watched;
    struct serve_port port;
    uint16_t http_port; /* of the run before; 0: there was none */
    uint16_t proxy_port;
    bool is_again; /* what the run ended for */
};

static int read_ring_address(const struct cli *cli, const struct settings *settings,
                             struct address *ret_address) {
    struct bytes ring = settings->ring_address.size > 0 ? settings->ring_address : settings->http_address;
    return read_address(cli, ring, settings->ring_port, ret_address);
}

/* Until a signal comes, or the node has another address. */
static void await_end(struct cli *cli, struct serve_process *process) {
    while (node_await_signal(AWAIT_US) == 0) {
        if (serve_port_has_moved(&process->port)) {
            process->is_again = true;
            fprintf(cli->err, "the address outside is another one: the node begins again\n");
            return;
        }
    }
    fprintf(cli->out, "stopping\n");
    fflush(cli->out);
}

/* Whoever knows the ports that were chosen finds the next run there. */
static void keep_ports(struct serve_process *process, const struct node *node) {
    struct address address;
    node_http_address(node, &address);
    process->http_port = address.port;
    process->proxy_port = node_proxy_address(node, &address) ? address.port : 0;
}

/* Is it a light member? Nobody reaches it then: any way out, any port. */
static bool set_light(const struct data *data, const struct serve_options *options,
                      const struct settings *settings, struct node_config *config) {
    char path[DATA_PATH_SIZE_MAX + 32];
    bool has_ring = options->join != NULL || access(light_path(data, "/charter", path), F_OK) == 0;
    bool has_address = settings->ring_address.size > 0 || options->address != NULL;
    if (settings->ring_capacity > 0) {
        (void)unlink(light_path(data, "/light", path)); /* mostly it is not there */
    }
    if (settings->ring_capacity > 0 || !has_ring) {
        return false;
    }
    config->ring = has_address ? config->ring : address_ipv4(0, 0, 0, 0, 0);
    config->ring.port = options->port != NOT_GIVEN ? (uint16_t)options->port : 0;
    config->ring_public = (struct address){0};
    return true;
}

static int run_node(struct cli *cli, const struct data *data, const struct serve_options *options,
                    const struct settings *settings, struct serve_process *process) {
    struct mirror_limit down;
    struct mirror_limit up;
    struct node_config config = {
        .directory = data->directory,
        .instance = data->instance,
        .settings = settings,
        .ring_join = options->join,
        .ring_token = options->token,
        .program = MNEMON_VERSION,
        .mirror_limit = &down,
        .mirror_upload_limit = &up,
        .confined = process->confined,
        .parsers = process->parsers,
        .port_mapper = process->port.mapper,
        .tell = serve_tell,
        .note = note,
        .context = cli,
        .clock = cli->clock,
    };
    struct bytes public = settings->node_public;
    uint64_t http_port = process->http_port > 0 ? process->http_port : settings->http_port;
    int status = read_address(cli, settings->http_address, http_port, &config.http);
    if (status == CLI_DONE) {
        status = read_ring_address(cli, settings, &config.ring);
    }
    config.ring_public = serve_port_tell(&process->port);
    if (status == CLI_DONE && public.size > 0) {
        status = read_publics(cli, public, settings->ring_port, &config);
    }
    if (status == CLI_DONE) {
        status = read_proxy(cli, options, settings, &config);
        config.proxy.port = process->proxy_port > 0 ? process->proxy_port : config.proxy.port;
    }
    if (status == CLI_DONE) {
        status = read_limits(cli, settings, &down, &up);
    }
    if (status != CLI_DONE) {
        return status;
    }
    if (set_light(data, options, settings, &config)) {
        keep_light(cli, data, options->join != NULL);
    }
    instance_set_cache_size(data->instance, (size_t)settings->store_cache);
    struct node *node;
    struct err_detail detail = {0};
    enum err err = node_start(&config, &node, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    print_start(cli, node, data);
    tell_privileges(cli, data, settings);
    keep_ports(process, node);
    await_end(cli, process);
    node_stop(node);
    return CLI_DONE;
}

/* The data directory is the user's, if it is made now. */
static int become_user(struct cli *cli, const struct serve_options *options) {
    struct data data = {.cli = cli};
    const struct passwd *user = getpwnam(options->user);
    if (user == NULL) {
        return cli_fail(cli, "--user: there is no user \"%s\"", options->user);
    }
    if (geteuid() == user->pw_uid) {
        return CLI_DONE;
    }
    int status = data_find(&data, cli, options->data);
    bool is_new = status == CLI_DONE && access(data.directory, F_OK) != 0;
    if (is_new) {
        status = data_make_directory(&data);
    }
    if (status != CLI_DONE) {
        return status;
    }
    bool is_done = (!is_new || chown(data.directory, user->pw_uid, user->pw_gid) == 0) &&
                   initgroups(user->pw_name, user->pw_gid) == 0 && setgid(user->pw_gid) == 0 &&
                   setuid(user->pw_uid) == 0;
    if (!is_done) {
        return cli_fail(cli, "--user: cannot become \"%s\": %s", options->user, strerror(errno));
    }
    ASSERT(user->pw_uid == 0 || setuid(0) != 0); /* there is no way back */
    return CLI_DONE;
}

/* With the archive open for as long as it runs. */
static int serve_once(struct cli *cli, const struct serve_options *options, const struct settings *settings,
                      struct serve_process *process) {
    struct data data = {.cli = cli};
    struct err_detail detail = {0};
    process->is_again = false;
    int status = data_open_to_serve(&data, cli, options->data, settings->node_disk);
    if (status != CLI_DONE) {
        return status;
    }
    enum err err = process->parsers == NULL || process->are_parsers_watched
                       ? ERR_OK
                       : parsers_watch(process->parsers, note, cli, &detail);
    process->are_parsers_watched = err == ERR_OK;
    status = err == ERR_OK ? run_node(cli, &data, options, settings, process)
                           : cli_fail(cli, "%s", err_detail_text(&detail, err));
    data_close(&data);
    return status;
}

/*
 * The host of the parsers first: it must not have what follows. Then confined: all threads that are started
 * then are.
 */
static int serve_archive(struct cli *cli, const struct serve_options *options,
                         const struct settings *settings) {
    struct data data = {.cli = cli};
    struct serve_process process = {0};
    struct address ring;
    int status = data_find(&data, cli, options->data);
    if (status == CLI_DONE) {
        status = serve_parsers(cli, settings, &process.parsers);
    }
    if (status == CLI_DONE) {
        status = serve_confine(cli, data.directory, settings, &process.confined);
    }
    if (status == CLI_DONE) {
        status = read_ring_address(cli, settings, &ring);
    }
    if (status == CLI_DONE) {
        status = serve_port_begin(&process.port, cli, data.directory, settings, &ring);
    }
    do {
        status = status == CLI_DONE ? serve_once(cli, options, settings, &process) : status;
    } while (status == CLI_DONE && process.is_again);
    serve_port_end(&process.port);
    parsers_stop(process.parsers);
    return status;
}

int serve_node(struct cli *cli, const struct serve_options *given) {
    struct data data;
    struct settings settings;
    char token[CLI_SECRET_SIZE_MAX];
    struct serve_options with_token = *given;
    const struct serve_options *options = &with_token;
    int status = CLI_DONE;
    if (given->token_file != NULL) {
        status = cli_read_secret(cli, given->token_file, token);
        with_token.token = token;
    }
    if (status == CLI_DONE && options->user != NULL) {
        status = become_user(cli, options);
    }
    if (status != CLI_DONE) {
        return status;
    }
    node_take_signals(); /* before the archive starts its threads */
    status = data_find(&data, cli, options->data);
    if (status == CLI_DONE) {
        status = read_settings(cli, options, &data, &settings);
    }
    if (status == CLI_DONE) {
        status = serve_archive(cli, options, &settings);
        settings_done(&settings);
    }
    return status;
}

static int serve_run(struct cli *cli, const void *values) {
    return serve_node(cli, values);
}

static const struct serve_options serve_defaults = {
    .http = NOT_GIVEN, .port = NOT_GIVEN, .keep = SERVE_KEEP_NOT_GIVEN, .capacity = SERVE_CAPACITY_NOT_GIVEN};

static const struct option serve_options[] = {
    OPTION(TEXT, struct serve_options, data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct serve_options, address, "address", "IP",
           "the address to listen at (127.0.0.1); 0.0.0.0 or :: for all"),
    OPTION(TEXT, struct serve_options, public, "public", "IP[:PORT][,IP[:PORT]]",
           "the address at which other nodes reach this one, if a router or a cloud passes it on to "
           "--address; or "
           "two, one of IPv4 and one of IPv6, with --address ::"),
    OPTION(NUMBER, struct serve_options, http, "http", "PORT",
           "the HTTP port (8080); 0 chooses a free one and prints it", .max = UINT16_MAX),
    OPTION(TEXT, struct serve_options, join, "join", "HOST[:PORT]",
           "join the ring of the node at this address; needed only once"),
    OPTION(TEXT, struct serve_options, token, "token", "TOKEN",
           "the token for that ring, from \"mnemon ring invite\"; needed only once"),
    OPTION(TEXT, struct serve_options, token_file, "token-file", "FILE",
           "read that token from the first line of a file, or of the input for -: arguments are seen by all "
           "users of the machine"),
    OPTION(TEXT, struct serve_options, user, "user", "NAME",
           "if started as root: become this user before anything is opened"),
    OPTION(NUMBER, struct serve_options, port, "port", "PORT", "the port of the ring, UDP and TCP (7070)",
           .max = UINT16_MAX),
    OPTION(
        FLAG, struct serve_options, map_port, "map-port", NULL,
        "ask the router to pass that port on to this node, by PCP, NAT-PMP or UPnP, and tell other nodes the "
        "address outside"),
    OPTION(NUMBER, struct serve_options, capacity, "capacity", "N",
           "how many virtual nodes this node runs (1); twice as many are twice the work; 0: as --light",
           .max = 32),
    OPTION(
        FLAG, struct serve_options, light, "light", NULL,
        "in a ring: only read from it, over connections that this node opens; hold and crawl nothing for it"),
    OPTION(SIZE, struct serve_options, disk, "disk", "SIZE",
           "the quota of disk for the archive, such as 500GB: its volumes on this machine take no more (no "
           "limit)",
           .min = UINT64_C(64) << 20, .max = UINT64_C(1) << 60),
    OPTION(SIZE, struct serve_options, upload_limit, "upload-limit", "SIZE",
           "send other nodes of the ring at most this many bytes per second, such as 2MB (no limit)",
           .min = 1024, .max = UINT64_C(1) << 40),
    OPTION(SIZE, struct serve_options, download_limit, "download-limit", "SIZE",
           "receive at most this many bytes per second from them (no limit)", .min = 1024,
           .max = UINT64_C(1) << 40),
    OPTION(TEXT, struct serve_options, site, "site", "NAME",
           "in a ring: where this node stands; copies are spread over sites (its network, /16 or /48)"),
    OPTION(CHOICE, struct serve_options, keep, "keep", "WHAT",
           "in a ring: keep this node's share, a copy of everything, or the share and all that it fetched or "
           "imported "
           "itself, also when its disk gets full (arc)",
           .choices = settings_keeps),
    OPTION(TEXT, struct serve_options, config, "config", "FILE",
           "read settings from this file (mnemon.conf in the data directory); options override them"),
    OPTION(FLAG, struct serve_options, allow_private, "allow-private", NULL,
           "let this node's own jobs archive from loopback, private and other special addresses too"),
    OPTION(FLAG, struct serve_options, allow_private_ring, "allow-private-ring", NULL,
           "the same for jobs of the ring: members then choose what this node asks for in its network"),
    {0},
};

const struct command serve_command = {
    .name = "serve",
    .summary = "run a node: serve the archive, crawl its jobs, share with others",
    .synopsis = "[OPTION…]",
    .details =
        "Runs the jobs of the data directory (\"mnemon job\") and serves the archive until it is "
        "stopped (Ctrl-C, SIGTERM). Requests that have begun are still answered.\n\n"
        "Open the address that it prints in a browser to see the archive, the jobs and a dashboard. "
        "Everybody who can reach it may read; making changes requires the token in the data "
        "directory. \"mnemon status\" shows what the node is doing.\n\n"
        "The volumes of the archive are open to clients that hold the same token: another machine can "
        "name this node in its connector file and then store and read documents here. While a node "
        "runs, \"archive\", \"import\", \"list\", \"get\" and \"export\" work through it; maintenance "
        "such as \"mnemon store verify\" needs the node to be stopped.\n\n"
        "A node takes part in a ring if its data directory has a charter (\"mnemon ring create\", "
        "--join), in groups that it has joined (\"mnemon group\"), and in the exchange of collections "
        "(\"mnemon mirror\"). Other nodes reach it at --address. With --light it only reads from its ring: "
        "nobody needs to reach it, and it holds and crawls nothing for others.",
    .options = serve_options,
    .options_size = sizeof(struct serve_options),
    .defaults = &serve_defaults,
    .run = serve_run,
};
