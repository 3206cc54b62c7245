#include "base/utc.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/output.h"
#include "replay/archive/stamp.h"
#include "store/instance/absent.h"
#include "store/instance/query.h"
#include "store/instance/record.h"
#include "web/url/likeness.h"

enum { SECOND_US = 1000000 };

struct get_options {
    const char *data;
    const char *at;
    const char *output;
    bool headers;
    bool local;
};

/* One run: the capture that was asked for. */
struct getter {
    struct cli *cli;
    const struct get_options *options;
    const char *url;
    struct capture capture;
    struct instance_session *head_session; /* the capture's own record */
    struct instance_session *body_session; /* and the one that holds its payload */
    struct record record;
};

static int say_unreadable(const struct getter *getter, enum err err, const struct err_detail *detail) {
    char timestamp[UTC_DIGITS_SIZE];
    return cli_fail(getter->cli, "the capture of %s at %s cannot be read: %s", getter->url,
                    utc_format_digits(getter->capture.time_us, timestamp), err_detail_text(detail, err));
}

static int write_capture(struct getter *getter) {
    struct err_detail detail = {0};
    const struct capture *capture = &getter->capture;
    struct key key;
    struct block block;
    struct bytes document;
    enum err err = instance_locate(getter->body_session, capture, &key, &block, &detail);
    if (err == ERR_OK) {
        err = instance_get(getter->body_session, &key, &document, &detail);
    }
    if (err == ERR_OK && getter->options->headers) {
        err =
            record_read(&getter->record, getter->head_session, capture->volume, &capture->location, &detail);
    }
    if (err != ERR_OK) {
        return say_unreadable(getter, err, &detail);
    }
    struct output output;
    int status = output_open(&output, getter->cli, getter->options->output);
    if (status != CLI_DONE) {
        return status;
    }
    if (getter->options->headers) {
        output_write(&output, getter->record.head);
    }
    output_write(&output, document);
    return output_close(&output, true);
}

static int read_capture(struct getter *getter, struct data *data) {
    getter->head_session = data_session_new(data);
    getter->body_session = data->session;
    enum err err = record_init(&getter->record);
    int status = CLI_FAILED;
    if (getter->head_session == NULL || err != ERR_OK) {
        cli_fail(getter->cli, "%s", err_text(ERR_MEMORY));
    } else {
        status = write_capture(getter);
    }
    record_done(&getter->record);
    instance_session_free(getter->head_session);
    return status;
}

/* The capture of that second and id. */
static enum err find_id(struct query *query, struct stamp stamp, struct capture *ret_capture) {
    query->from_us = stamp.time_us;
    query->to_us = stamp.time_us + SECOND_US - 1;
    enum err err;
    do {
        err = query_next(query, ret_capture);
    } while (err == ERR_OK && capture_id(ret_capture) != stamp.id);
    return err;
}

/* A capture of another URL with the same SURT stands in for what the archive does not have: say so. */
static void say_if_other(const struct getter *getter) {
    struct likeness likeness;
    likeness_init(&likeness);
    if (likeness_ask(&likeness, bytes_of_string(getter->url)) == ERR_OK &&
        likeness_of(&likeness, getter->capture.url) != LIKENESS_SAME) {
        fprintf(getter->cli->err, "mnemon: in place of %s, which the archive does not have: %.*s\n",
                getter->url, BYTES_ARG(getter->capture.url));
    }
    likeness_done(&likeness);
}

static int find_and_read(struct getter *getter, struct query *query, struct data *data, struct stamp stamp) {
    instance_session_hide_witnesses(data->session, true);
    query_start(query, data->session);
    enum err err = stamp.id != 0
                       ? find_id(query, stamp, &getter->capture)
                       : query_closest(query, bytes_of_string(getter->url), stamp.time_us, &getter->capture);
    const struct absent *absent = data_absent(data);
    if (err == ERR_NOT_FOUND && absent->is_any) {
        return cli_fail(getter->cli, "no capture of %s was found, but %s did not answer and may hold one",
                        getter->url, absent->text);
    }
    if (err == ERR_NOT_FOUND) {
        return cli_fail(getter->cli, "the archive in %s holds no capture of %s", data->directory,
                        getter->url);
    }
    if (err != ERR_OK) {
        return cli_fail(getter->cli, "the index cannot be read: %s", err_text(err));
    }
    if (stamp.id == 0) {
        say_if_other(getter);
    }
    return read_capture(getter, data);
}

static int get_run(struct cli *cli, const void *values) {
    const struct get_options *options = values;
    struct getter getter = {.cli = cli, .options = options, .url = cli->arguments[0]};
    struct stamp stamp = {.time_us = INT64_MAX}; /* the newest is the closest to the end of time */
    struct bytes at = bytes_of_string(options->at != NULL ? options->at : "");
    stamp.id = stamp_take_id(&at);
    if (options->at != NULL && !utc_parse_digits(at, false, &stamp.time_us)) {
        return cli_usage(cli, &get_command,
                         "--at: \"%s\" is not a time; write 1 to 14 digits, such as 20260102030405",
                         options->at);
    }
    struct query query;
    struct err_detail detail = {0};
    enum err err = query_init(&query, bytes_of_string(getter.url), QUERY_EXACT, &detail);
    if (err != ERR_OK) {
        return cli_usage(cli, &get_command, "\"%s\" is not a URL: %s", getter.url,
                         err_detail_text(&detail, err));
    }
    struct data data;
    int status = data_open(&data, cli, options->data, options->local ? DATA_READ : DATA_READ_RING);
    if (status != CLI_DONE) {
        query_done(&query);
        return status;
    }
    status = find_and_read(&getter, &query, &data, stamp);
    query_done(&query);
    data_close(&data);
    return status;
}

static const struct option get_options[] = {
    OPTION(TEXT, struct get_options, data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct get_options, at, "at", "TIME",
           "the capture closest to this time, 1 to 14 digits (the newest); or the one with this id, "
           "as 20260102030405~0123456789abcdef"),
    OPTION(FLAG, struct get_options, headers, "headers", NULL,
           "print the HTTP head as received before the payload"),
    OPTION(FLAG, struct get_options, local, "local", NULL, DATA_LOCAL_HELP),
    OPTION(TEXT, struct get_options, output, "output", "FILE",
           "write to this file instead of standard output", .letter = 'o'),
    {0},
};

const struct command get_command = {
    .name = "get",
    .summary = "write the payload of a capture to standard output",
    .synopsis = "URL [--at TIME] [-o FILE]",
    .details = "Writes the bytes of the page, image or file as the server sent them. Transfer encodings "
               "(chunks) are removed, content encodings (gzip, br) are kept.\n\n"
               "The exit status is 1 if the archive holds no capture of the URL, or if none was found and a "
               "volume or a node that could hold one did not answer; standard error says which. On the data "
               "directory of a node that is in a ring, what the other nodes hold counts, too, unless --local "
               "is given.",
    .options = get_options,
    .options_size = sizeof(struct get_options),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = get_run,
};
