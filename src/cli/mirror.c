#include "base/utc.h"
#include "base/value.h"
#include "base/whole_file.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "net/identity.h"
#include "node/mirror/collection_publish.h"
#include "node/transport/transport.h"

enum { LINE_SIZE_MAX = 64 << 10, REMARKS_SHOWN_MAX = 20 };

struct mirror_options {
    const char *data;
    struct option_list from;
    struct option_list readers;
    bool is_public;
    bool is_private;
    bool archive;
    bool json;
};

enum { PUBLISH, SUBSCRIBE, UNSUBSCRIBE, STATUS };

#define NAME_AND_DIRECTORY "name the collection and its directory: mnemon mirror publish COLLECTION DIR"
#define NAME_AND_KEY "name the collection: mnemon mirror subscribe COLLECTION@KEY"
#define NAME_ALONE "name the collection: mnemon mirror unsubscribe COLLECTION"

static const struct command_action mirror_actions[] = {
    [PUBLISH] =
        {
            .name = "publish",
            .synopsis = "COLLECTION [DIR]",
            .summary = "make a version of the directory's present contents, or with --archive of this node's "
                       "archive",
            .details =
                "Published files are read in place when others fetch them; publish again after "
                "changing them. Without DIR the directory of the version before is published again.\n\n"
                "  mnemon mirror publish papers /srv/papers --reader KEY\n"
                "  mnemon mirror publish our-archive --archive",
            .needs = NAME_AND_DIRECTORY,
        },
    [SUBSCRIBE] =
        {
            .name = "subscribe",
            .synopsis = "COLLECTION[@KEY]",
            .summary = "keep a copy up to date",
            .details = "Without a publisher's KEY, this node believes the first that offers a collection of "
                       "that name. The files are in DIR/collections/COLLECTION/current.\n\n"
                       "  mnemon mirror subscribe papers@KEY --from 192.0.2.1:7070",
            .needs = NAME_AND_KEY,
        },
    [UNSUBSCRIBE] =
        {
            .name = "unsubscribe",
            .synopsis = "COLLECTION",
            .summary = "stop updating it, or stop publishing it; the files stay",
            .details = "  mnemon mirror unsubscribe papers",
            .needs = NAME_ALONE,
        },
    [STATUS] =
        {
            .name = "status",
            .summary = "show which node has which version, and running transfers",
            .details = "  mnemon mirror status --json",
        },
    {0},
};

static int refuse_name(const struct cli *cli) {
    return cli_fail(cli,
                    "the name of a collection is 1 to %d of the characters a-z 0-9 . _ - and does not begin "
                    "with a dot",
                    VERSION_NAME_SIZE_MAX);
}

/* ---- who may read it ---- */

/* What the options say, beside what was said before. */
static int change_readers(struct cli *cli, const struct mirror_options *options,
                          struct collection_readers *readers) {
    uint8_t key[PEER_KEY_SIZE];
    if (options->is_private && (options->is_public || options->readers.count > 0)) {
        return cli_usage(cli, &mirror_command, "--private cannot be combined with --public or --reader");
    }
    if (options->is_private) {
        *readers = (struct collection_readers){0};
    }
    readers->is_public = readers->is_public || options->is_public;
    for (size_t i = 0; i < options->readers.count; i++) {
        if (!identity_key_parse(bytes_of_string(options->readers.items[i]), key)) {
            return cli_fail(cli, "--reader: \"%s\" is not the key of a node", options->readers.items[i]);
        }
        if (collection_readers_add(readers, key) != ERR_OK) {
            return cli_fail(cli, "a collection can have at most %d readers", COLLECTION_SETUP_READERS_MAX);
        }
    }
    return CLI_DONE;
}

/* ---- publish ---- */

struct remarks {
    struct cli *cli;
    size_t count;
};

static void on_remark(void *context, struct bytes path, const char *text) {
    struct remarks *remarks = context;
    if (remarks->count++ < REMARKS_SHOWN_MAX) {
        fprintf(remarks->cli->err, "mnemon: %.*s: %s\n", BYTES_ARG(path), text);
    }
}

static void print_published(struct cli *cli, const char *name,
                            const struct collection_publish_result *result) {
    struct buf line;
    char key[IDENTITY_TEXT_SIZE];
    const struct version *version = &result->version;
    buf_init(&line, LINE_SIZE_MAX);
    buf_put_format(&line, "%s is %s version %ju: ", name, result->is_new ? "now" : "as before,",
                   (uintmax_t)version->number);
    VALUE_PUT(&line, "{count} files, {size}; {count} of them read ({size})\n", version->totals.files_count,
              version->totals.content_size, result->stat.read_count, result->stat.read_size);
    buf_put_format(&line, "others get it with: mnemon mirror subscribe %s@%s\n", name,
                   identity_key_format(version->publisher, key));
    cli_write(cli, &line);
}

static int publish(struct cli *cli, const struct data *data, const struct mirror_options *options) {
    const char *name = cli->arguments[0];
    const char *source = cli->arguments_count > 1 ? cli->arguments[1] : NULL;
    struct identity identity;
    struct err_detail detail = {0};
    struct remarks remarks = {.cli = cli};
    struct collection_publish_result result;
    struct collection_setup before = {0};
    if (options->archive && source != NULL) {
        return cli_usage(cli, &mirror_command, "use either a directory or --archive");
    }
    enum err err = collection_setup_read(data->directory, name, &before, NULL);
    if (err == ERR_INVALID) {
        return refuse_name(cli);
    }
    int status = change_readers(cli, options, &before.readers);
    if (status != CLI_DONE) {
        return status;
    }
    err = whole_file_make_directory(data->directory, &detail);
    err = err == ERR_OK ? identity_load(&identity, data->directory, &detail) : err;
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    struct collection_publish_config config = {
        .directory = data->directory,
        .identity = &identity,
        .name = name,
        .source = options->archive ? data->directory : source,
        .is_archive = options->archive,
        .readers = &before.readers,
        .clock = cli->clock,
        .remark = on_remark,
        .context = &remarks,
    };
    err = collection_publish(&config, &result, &detail);
    identity_done(&identity);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    if (remarks.count > REMARKS_SHOWN_MAX) {
        fprintf(cli->err, "mnemon: and %zu more like these\n", remarks.count - REMARKS_SHOWN_MAX);
    }
    print_published(cli, name, &result);
    return CLI_DONE;
}

/* ---- subscribe ---- */

static int read_sources(struct cli *cli, const struct option_list *from, struct collection_setup *setup) {
    if (from->count > COLLECTION_SETUP_SOURCES_MAX) {
        return cli_fail(cli, "use --from at most %d times", COLLECTION_SETUP_SOURCES_MAX);
    }
    for (size_t i = 0; i < from->count; i++) {
        if (!address_parse(bytes_of_string(from->items[i]), TRANSPORT_PORT, &setup->sources[i])) {
            return cli_fail(cli, "--from: \"%s\" is not an address such as 192.0.2.1:7070", from->items[i]);
        }
    }
    setup->sources_count = from->count;
    return CLI_DONE;
}

/* NAME or NAME@KEY. */
static int read_wish(struct cli *cli, const char *text, struct collection_setup *setup) {
    struct bytes name = bytes_of_string(text);
    size_t at = bytes_find_byte(name, '@');
    if (at < name.size) {
        setup->has_publisher = true;
        if (!identity_key_parse(bytes_skip(name, at + 1), setup->publisher)) {
            return cli_fail(cli, "%s: the text after the @ is not the key of a publisher", text);
        }
        name = bytes_slice(name, 0, at);
    }
    if (!version_name_is_valid(name)) {
        return refuse_name(cli);
    }
    memcpy(setup->name, name.data, name.size);
    return CLI_DONE;
}

static int subscribe(struct cli *cli, const struct data *data, const struct mirror_options *options,
                     const char *text) {
    struct collection_setup setup = {0};
    struct collection_setup before = {0};
    struct err_detail detail = {0};
    int status = read_wish(cli, text, &setup);
    status = status == CLI_DONE ? read_sources(cli, &options->from, &setup) : status;
    if (status != CLI_DONE) {
        return status;
    }
    enum err err = collection_setup_read(data->directory, setup.name, &before, &detail);
    if (err == ERR_OK && collection_setup_publishes(&before)) {
        return cli_fail(cli, "this node publishes \"%s\" itself", setup.name);
    }
    if (err == ERR_OK && before.has_publisher && setup.has_publisher &&
        memcmp(before.publisher, setup.publisher, PEER_KEY_SIZE) != 0) {
        return cli_fail(cli,
                        "\"%s\" is already here, from another publisher; first: mnemon mirror unsubscribe %s",
                        setup.name, setup.name);
    }
    if (err == ERR_OK && !setup.has_publisher) {
        setup.has_publisher = before.has_publisher;
        memcpy(setup.publisher, before.publisher, PEER_KEY_SIZE);
    }
    setup.readers = before.readers;
    status = change_readers(cli, options, &setup.readers);
    if (status != CLI_DONE) {
        return status;
    }
    err = collection_setup_write(data->directory, &setup, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "subscribed; its files will be in %s/collections/%s/current\n", data->directory,
            setup.name);
    return CLI_DONE;
}

static int unsubscribe(struct cli *cli, const struct data *data, const char *name) {
    struct err_detail detail = {0};
    enum err err = collection_setup_remove(data->directory, name, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "no longer kept up to date; its files stay in %s/collections/%s\n", data->directory,
            name);
    return CLI_DONE;
}

/* ---- status ---- */

static void put_version(struct buf *line, const char *title, const json_t *version) {
    if (!json_is_object(version)) {
        return;
    }
    char time[UTC_RFC3339_SIZE];
    buf_put_format(line, "  %-9s version %.0f of %s", title, ask_number(version, "number"),
                   utc_format_rfc3339((int64_t)ask_number(version, "time_us"), time));
    ask_put(line, version, ", {files:0} files, {size:size}\n");
}

static void put_sources(struct buf *line, const json_t *sources, double newest) {
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const json_t *source = json_array_get(sources, i);
        double number = ask_number(source, "number");
        buf_put_format(line, "  %-9s %-24s version %.0f", i == 0 ? "sources" : "",
                       ask_text(source, "address"), number);
        if (number < newest) {
            buf_put_format(line, ", %.0f behind", newest - number);
        }
        if (ask_number(source, "bandwidth") > 0) {
            ask_put(line, source, ", {bandwidth:size}/s");
        }
        ask_put(line, source, ", gave {fetched_size:size}");
        buf_put_string(line, json_is_true(json_object_get(source, "fetching")) ? ", in use" : "");
        buf_put_string(line, json_is_true(json_object_get(source, "barred")) ? ", left out\n" : "\n");
    }
}

static bool is_closed(const json_t *direction) {
    const json_t *limit = json_object_get(direction, "limit");
    return json_is_integer(limit) && json_integer_value(limit) == 0;
}

/* Nothing is fetched at this hour. */
static void put_wait(struct buf *line, const json_t *download) {
    if (is_closed(download)) {
        const char *until = ask_text(download, "until");
        buf_put_format(line, "  %-9s %s%s\n", "waits",
                       until[0] != '\0' ? "until " : "for another mirror.limit", until);
    }
}

/* "at most 1.0 MB/s until 06:00"; nothing if there is no limit, now or later. */
static void put_limit(struct buf *line, const char *title, const json_t *direction) {
    const json_t *limit = json_object_get(direction, "limit");
    const char *until = ask_text(direction, "until");
    if (!json_is_integer(limit) && until[0] == '\0') {
        return;
    }
    buf_put_format(line, "%s ", title);
    if (is_closed(direction)) {
        buf_put_string(line, "nothing");
    } else if (json_is_integer(limit)) {
        VALUE_PUT(line, "at most {size}/s", (uint64_t)json_integer_value(limit));
    } else {
        buf_put_string(line, "without a limit");
    }
    buf_put_format(line, "%s%s\n", until[0] != '\0' ? " until " : "", until);
}

/* The nodes that people named and that give nothing. */
static void put_named(struct buf *line, const json_t *mirror, const char *key) {
    const json_t *all = json_object_get(mirror, "named");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *named = json_array_get(all, i);
        if (strcmp(ask_text(named, "state"), "refuses") == 0) {
            buf_put_format(line, "  %-9s by %s: its owner would have to name this node with --reader %s\n",
                           "refused", ask_text(named, "address"), key);
        } else if (strcmp(ask_text(named, "state"), "silent") == 0) {
            buf_put_format(line, "  %-9s from %s, or it does not listen to this node\n", "no answer",
                           ask_text(named, "address"));
        }
    }
}

/* An archive of another node, as this one serves it. */
static void put_archive(struct buf *line, const json_t *archive) {
    if (!json_is_object(archive)) {
        return;
    }
    const char *state = ask_text(archive, "state");
    const char *reason = ask_text(archive, "reason");
    buf_put_format(line, "  %-9s %s", "archive", state);
    if (ask_number(archive, "number") > 0) {
        ask_put(line, archive, ", version {number:0} is served, about {captures:0} captures");
    }
    if (strcmp(state, "indexing") == 0) {
        ask_put(line, archive, "; {done_size:size} of {all_size:size} read\n");
        return;
    }
    buf_put_format(line, "; %.0f new records in %.1f s", ask_number(archive, "records"),
                   ask_number(archive, "took_us") / 1e6);
    if (ask_number(archive, "damaged") > 0) {
        ask_put(line, archive, ", {damaged:0} left out");
    }
    buf_put_format(line, "%s%s\n", reason[0] != '\0' ? ": " : "", reason);
}

static void put_mirror(struct buf *line, const json_t *mirror, const json_t *answer) {
    const json_t *held = json_object_get(mirror, "held");
    const json_t *target = json_object_get(mirror, "target");
    double newest = ask_number(json_object_get(mirror, "newest"), "number");
    ask_put(line, mirror, "{name}, {role}, {state}\n");
    put_version(line, "here", held);
    put_version(line, "coming", target);
    if (json_is_object(target)) {
        ask_put(line, mirror, "  left      {left_size:size}, at {rate:size}/s\n");
        put_wait(line, json_object_get(answer, "download"));
    }
    if (newest > ask_number(held, "number")) {
        buf_put_format(line, "  %-9s %.0f versions\n", "behind", newest - ask_number(held, "number"));
    }
    put_named(line, mirror, ask_text(answer, "key"));
    put_archive(line, json_object_get(mirror, "archive"));
    put_sources(line, json_object_get(mirror, "sources"), newest);
}

static void mirror_print_status(struct buf *out, const struct node_file *node, const json_t *answer) {
    const json_t *mirrors = json_object_get(answer, "mirrors");
    (void)node;
    put_limit(out, "fetches", json_object_get(answer, "download"));
    put_limit(out, "gives", json_object_get(answer, "upload"));
    for (size_t i = 0; i < json_array_size(mirrors); i++) {
        put_mirror(out, json_array_get(mirrors, i), answer);
    }
    if (json_array_size(mirrors) == 0) {
        buf_put_string(out, "no collections; get one with \"mnemon mirror subscribe\"\n");
    }
}

/* ---- all of them ---- */

static int mirror_run(struct cli *cli, const void *values) {
    const struct mirror_options *options = values;
    struct data data;
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    switch (cli->action) {
    case PUBLISH:
        return publish(cli, &data, options);
    case SUBSCRIBE:
        return subscribe(cli, &data, options, cli->arguments[0]);
    case UNSUBSCRIBE:
        return unsubscribe(cli, &data, cli->arguments[0]);
    default:
        return ask_show(cli, &data, "/api/v1/mirrors", options->json, mirror_print_status);
    }
}

static const struct option mirror_options[] = {
    OPTION(TEXT, struct mirror_options, data, "data", "DIR", DATA_HELP),
    OPTION(LIST, struct mirror_options, from, "from", "ADDRESS[:PORT]",
           "the address of a node that has the collection or will have it; may be repeated. The "
           "neighbours in this node's groups are asked anyway",
           .of = "subscribe"),
    OPTION(LIST, struct mirror_options, readers, "reader", "KEY",
           "let the node with this key read the collection here, even if it shares no "
           "group and no ring with this node; may be repeated, and adds to the readers named before",
           .of = "publish subscribe"),
    OPTION(FLAG, struct mirror_options, is_public, "public", NULL,
           "let every node that reaches this one read it", .of = "publish subscribe"),
    OPTION(FLAG, struct mirror_options, is_private, "private", NULL,
           "let only members of this node's groups and ring read it (the default; "
           "revokes --reader and --public)",
           .of = "publish subscribe"),
    OPTION(FLAG, struct mirror_options, archive, "archive", NULL,
           "publish this node's archive, its segments and access rules", .of = "publish"),
    OPTION(FLAG, struct mirror_options, json, "json", NULL, "print JSON", .of = "status"),
    {0},
};

const struct command mirror_command = {
    .name = "mirror",
    .summary = "publish a collection, or keep a copy of another node's",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "A collection is a directory that one node publishes, version after version, and of which other "
        "nodes keep copies. Only changes are transferred, from any node that has them; only the publisher "
        "can make a version. A running node notices changes made here within a second. Nodes that share a "
        "group or a ring may read each other's collections. Other subscribers name a node with --from, and "
        "that node lets them in with --reader or --public.\n\n"
        "Published files are read in place when others fetch them; publish again after changing them. "
        "Without a publisher's key, a subscriber believes the first node that offers a collection of that "
        "name. The files of a subscriber are in DIR/collections/COLLECTION/current. A mirrored archive is "
        "indexed and served beside the node's own and marked with its source. \"mnemon list\" and \"mnemon "
        "export\" show only the node's own archive; add files of a mirrored one with \"mnemon import\".\n\n"
        "  mnemon mirror publish papers /srv/papers --reader KEY\n"
        "  mnemon mirror subscribe papers@KEY --from 192.0.2.1:7070",
    .options = mirror_options,
    .options_size = sizeof(struct mirror_options),
    .actions = mirror_actions,
    .run = mirror_run,
};
