#include "cli/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/scratch.h"
#include "base/value.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/output.h"
#include "store/index/index_cursor.h"
#include "store/instance/twins.h"

/* ---- stat ---- */

/* What is counted one by one, in a moment; above it the index's own estimate has to do. */
enum { COUNT_MAX = 1 << 18 };

/* One line of the report: a volume, or all of them. */
struct tally {
    struct volume_stat stat;
    struct instance_volume volume; /* not set in the sum */
    bool is_estimate;              /* of documents and captures */
    enum err err;                  /* the volume cannot say */
    struct err_detail detail;
};

/* ---- counting ---- */

static uint64_t count_documents(const struct index *index, uint64_t estimate) {
    struct index_cursor *cursor;
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    struct block block;
    uint64_t seen = 0;
    uint64_t count = 0;
    if (index_blocks_open(index, &cursor) != ERR_OK) {
        return estimate;
    }
    while (seen < COUNT_MAX && index_blocks_next(cursor, digest, &number, &block) == ERR_OK) {
        seen++;
        count += block.references > 0 ? 1 : 0;
    }
    index_cursor_close(cursor);
    return seen < COUNT_MAX || estimate < count ? count : estimate;
}

static uint64_t count_captures(const struct index *index, uint64_t estimate) {
    struct index_cursor *cursor;
    struct capture capture;
    uint64_t count = 0;
    if (index_cursor_open(index, bytes_of(NULL, 0), bytes_of(NULL, 0), false, &cursor) != ERR_OK) {
        return estimate;
    }
    while (count < COUNT_MAX && index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count < COUNT_MAX || estimate < count ? count : estimate;
}

static void read_tally(struct data *data, size_t index, struct tally *tally) {
    *tally = (struct tally){0};
    tally->err = instance_stat(data->session, index, &tally->stat, &tally->detail);
    instance_volume(data->instance, index, &tally->volume);
    if (tally->volume.volume != NULL) {
        const struct index *volume_entries = volume_index(tally->volume.volume);
        tally->stat.blocks_count = count_documents(volume_entries, tally->stat.blocks_count);
        tally->stat.captures_count = count_captures(volume_entries, tally->stat.captures_count);
    }
    tally->is_estimate = tally->volume.is_remote || tally->stat.blocks_count >= COUNT_MAX ||
                         tally->stat.captures_count >= COUNT_MAX;
}

static void add_stat(struct volume_stat *sum, const struct volume_stat *stat) {
    sum->segments_count += stat->segments_count;
    sum->size += stat->size;
    sum->dead_size += stat->dead_size;
    sum->blocks_count += stat->blocks_count;
    sum->captures_count += stat->captures_count;
    sum->index_size += stat->index_size;
}

/* ---- printing ---- */

static void store_put_line(struct buf *out, const char *name, void (*put)(struct buf *buf, uint64_t value),
                           uint64_t value) {
    buf_put_format(out, "%-12s ", name);
    put(out, value);
    buf_put_byte(out, '\n');
}

static void put_about(struct buf *out, uint64_t count) {
    VALUE_PUT(out, "about {count}", count);
}

static void store_put_text(struct buf *out, const struct volume_stat *stat, bool is_estimate) {
    store_put_line(out, "documents", is_estimate ? put_about : value_put_count, stat->blocks_count);
    store_put_line(out, "captures", is_estimate ? put_about : value_put_count, stat->captures_count);
    store_put_line(out, "segments", value_put_count, stat->segments_count);
    store_put_line(out, "size", value_put_size, stat->size);
    store_put_line(out, "dead", value_put_size, stat->dead_size);
    store_put_line(out, "index", value_put_size, stat->index_size);
}

static void put_volume_text(struct buf *out, const struct tally *tally) {
    buf_put_format(out, "\nvolume %-5u %s%s%s\n", tally->volume.number, tally->volume.place,
                   tally->volume.is_remote ? " (maintained by its server)" : "",
                   tally->volume.is_writable ? "" : " (takes no new documents)");
    if (tally->err == ERR_OK) {
        store_put_text(out, &tally->stat, tally->is_estimate);
    } else {
        buf_put_format(out, "%-12s %s\n", "down", err_detail_text(&tally->detail, tally->err));
    }
}

static void store_put_json(struct json *json, const struct volume_stat *stat) {
    JSON_COUNTS(json, {"documents", stat->blocks_count}, {"captures", stat->captures_count},
                {"segments", stat->segments_count}, {"size", stat->size}, {"dead_size", stat->dead_size},
                {"index_size", stat->index_size});
}

static void put_volume_json(struct json *json, const struct tally *tally) {
    json_open(json, NULL);
    json_count(json, "volume", tally->volume.number);
    json_text(json, "place", tally->volume.place);
    json_bool(json, "remote", tally->volume.is_remote);
    json_bool(json, "writable", tally->volume.is_writable);
    if (tally->err == ERR_OK) {
        store_put_json(json, &tally->stat);
    } else {
        json_text(json, "down", err_detail_text(&tally->detail, tally->err));
    }
    json_close(json);
}

/* Documents that were stored once more while a volume was down, until "compact" merges them. */
static void put_twins_text(struct buf *out, const struct twins_stat *twins) {
    buf_put_format(out, "%-12s %s", "duplicates", twins->is_cut ? "at least " : "");
    VALUE_PUT(out, "{count} on more than one volume, {size}", twins->documents_count, twins->size);
    buf_put_string(out, twins->documents_count > 0 ? "; mnemon store compact merges them\n" : "\n");
}

static void put_report(struct buf *out, struct data *data, bool is_json) {
    struct twins_stat twins;
    bool has_twins = twins_count(data->session, COUNT_MAX, &twins, NULL) == ERR_OK;
    struct volume_stat sum = {0};
    bool is_estimate = false;
    struct buf volumes;
    struct json json;
    size_t count = instance_volumes_count(data->instance);
    buf_init(&volumes, out->size_max);
    json_init(&json, &volumes);
    if (is_json) {
        json_open_list(&json, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        struct tally tally;
        read_tally(data, i, &tally);
        add_stat(&sum, &tally.stat);
        is_estimate = is_estimate || (tally.err == ERR_OK && tally.is_estimate);
        if (is_json) {
            put_volume_json(&json, &tally);
        } else if (count > 1) {
            put_volume_text(&volumes, &tally);
        }
    }
    if (is_json) {
        json_close(&json);
        json_begin(&json, out);
        json_text(&json, "directory", data->directory);
        store_put_json(&json, &sum);
        if (has_twins) {
            JSON_COUNTS(&json, {"duplicates", twins.documents_count}, {"duplicate_size", twins.size});
        }
        json_raw(&json, "volumes", buf_bytes(&volumes));
        json_end(&json);
        buf_put_byte(out, '\n');
    } else {
        buf_put_format(out, "%-12s %s\n", "directory", data->directory);
        store_put_text(out, &sum, is_estimate);
        if (has_twins && count > 1) {
            put_twins_text(out, &twins);
        }
        buf_put(out, buf_bytes(&volumes));
    }
    buf_done(&volumes);
}

static int stat_action(struct cli *cli, const struct store_options *options) {
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_READ);
    if (status != CLI_DONE) {
        return status;
    }
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    put_report(&out, &data, options->json);
    cli_write(cli, &out);
    data_close(&data);
    return CLI_DONE;
}

/* ---- put ---- */

enum { READ_SIZE = 256 << 10 };

/* One run of `store put`. */
struct putter {
    struct cli *cli;
    const struct store_options *options;
    struct data data;
    struct scratch document; /* a copy: the file may change or shrink while it is being stored */
    uint8_t *piece;
};

static int read_all(struct putter *putter, FILE *file, const char *name) {
    enum err err = ERR_OK;
    scratch_clear(&putter->document);
    for (size_t got = READ_SIZE; got > 0 && err == ERR_OK;) {
        got = fread(putter->piece, 1, READ_SIZE, file);
        err = scratch_put(&putter->document, bytes_of(putter->piece, got));
    }
    if (err == ERR_LIMIT) {
        return cli_fail(putter->cli, "%s: documents above %ju bytes are not stored", name,
                        (uintmax_t)VOLUME_DOCUMENT_SIZE_MAX);
    }
    if (err != ERR_OK) {
        return cli_fail(putter->cli, "%s: %s", name, err_text(err));
    }
    return ferror(file) ? cli_fail(putter->cli, "%s: %s", name, strerror(errno)) : CLI_DONE;
}

static void print_stored(const struct putter *putter, const char *name, const struct stored *stored) {
    char key[KEY_TEXT_SIZE_MAX];
    key_format(&stored->key, key);
    if (!putter->options->json) {
        fprintf(putter->cli->out, "%s\n", key);
        return;
    }
    struct json line;
    json_begin_file(&line, putter->cli->out);
    json_text(&line, "key", key);
    json_bool(&line, "duplicate", stored->is_duplicate);
    json_count(&line, "size", stored->document_size);
    json_text(&line, "file", name);
    cli_note(putter->cli, json_end(&line));
}

static int put_document(struct putter *putter, const char *name) {
    const struct store_options *options = putter->options;
    struct bytes body;
    enum err err = scratch_bytes(&putter->document, &body);
    if (err != ERR_OK) {
        return cli_fail(putter->cli, "%s: %s", name, err_text(err));
    }
    struct document document = {
        .url = bytes_of_string(options->url == NULL ? "" : options->url),
        .time_us = clock_wall_us(putter->cli->clock),
        .body = body,
        .content_type = bytes_of_string(options->type == NULL ? "" : options->type),
    };
    struct stored stored;
    struct err_detail detail = {0};
    err = instance_put(putter->data.session, &document, (enum store_mode)options->mode,
                       (uint16_t)options->volume, &stored, &detail);
    if (err != ERR_OK) {
        return cli_fail(putter->cli, "%s is not stored: %s", name, err_detail_text(&detail, err));
    }
    print_stored(putter, name, &stored);
    return CLI_DONE;
}

static int put_file(struct putter *putter, const char *name) {
    FILE *file = cli_open_input(putter->cli, name);
    if (file == NULL) {
        return CLI_FAILED;
    }
    int status = read_all(putter, file, name);
    cli_close_input(putter->cli, file);
    return status == CLI_DONE ? put_document(putter, name) : status;
}

/* A file that cannot be stored is named; those behind it are stored all the same. */
static int put_files(struct putter *putter) {
    int status = CLI_DONE;
    putter->piece = malloc(READ_SIZE);
    if (putter->piece == NULL) {
        return cli_fail(putter->cli, "%s", err_text(ERR_MEMORY));
    }
    scratch_init(&putter->document, putter->data.directory, SCRATCH_MEMORY_MAX, VOLUME_DOCUMENT_SIZE_MAX);
    for (size_t i = 0; i < putter->cli->arguments_count; i++) {
        int one = put_file(putter, putter->cli->arguments[i]);
        status = one == CLI_DONE ? status : one;
    }
    scratch_done(&putter->document);
    free(putter->piece);
    return status;
}

static int put_action(struct cli *cli, const struct store_options *options) {
    struct putter putter = {.cli = cli, .options = options};
    int status = data_open(&putter.data, cli, options->data, DATA_WRITE);
    if (status != CLI_DONE) {
        return status;
    }
    status = put_files(&putter);
    data_close(&putter.data);
    return status;
}

static int parse_key(struct cli *cli, const char *text, struct key *ret_key) {
    if (key_parse(bytes_of_string(text), ret_key)) {
        return CLI_DONE;
    }
    return cli_usage(cli, &store_command, "\"%s\" is not a content key as \"mnemon store put\" prints them",
                     text);
}

/* ---- get ---- */

static int write_document(struct cli *cli, struct data *data, const struct key *key, const char *path) {
    struct bytes document;
    struct err_detail detail = {0};
    char text[KEY_TEXT_SIZE_MAX];
    enum err err = instance_get(data->session, key, &document, &detail);
    int status;
    struct output output;
    if (err == ERR_NOT_FOUND) {
        status = cli_fail(cli, "there is no document %s", key_format(key, text));
    } else if (err != ERR_OK) {
        status = cli_fail(cli, "%s cannot be read: %s", key_format(key, text), err_detail_text(&detail, err));
    } else if ((status = output_open(&output, cli, path)) == CLI_DONE) {
        output_write(&output, document);
        status = output_close(&output, true);
    }
    return status;
}

static int get_action(struct cli *cli, const struct store_options *options) {
    struct key key;
    struct data data;
    int status = parse_key(cli, cli->arguments[0], &key);
    if (status == CLI_DONE) {
        status = data_open(&data, cli, options->data, DATA_READ);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = write_document(cli, &data, &key, options->output);
    data_close(&data);
    return status;
}

/* ---- rm ---- */

static int remove_keys(struct cli *cli, struct data *data) {
    int status = CLI_DONE;
    if (data_is_in_ring(data)) {
        fprintf(
            cli->err,
            "mnemon: this node is a member of a ring: other nodes bring captures of these documents back; "
            "\"mnemon ring delete URL\" deletes captures on all nodes\n");
    }
    for (size_t i = 0; i < cli->arguments_count; i++) {
        const char *text = cli->arguments[i];
        struct key key;
        struct err_detail detail = {0};
        bool is_key = key_parse(bytes_of_string(text), &key);
        ASSERT(is_key); /* rm_action() has looked */
        enum err err = instance_remove(data->session, &key, &detail);
        if (err == ERR_NOT_FOUND) {
            status = cli_fail(cli, "there is no document %s", text);
        } else if (err != ERR_OK) {
            status = cli_fail(cli, "%s is not removed: %s", text, err_detail_text(&detail, err));
        }
    }
    return status;
}

static int rm_action(struct cli *cli, const struct store_options *options) {
    struct key key;
    struct data data;
    int status = CLI_DONE;
    for (size_t i = 0; i < cli->arguments_count && status == CLI_DONE; i++) {
        status = parse_key(cli, cli->arguments[i], &key);
    }
    if (status == CLI_DONE) {
        status = data_open(&data, cli, options->data, DATA_READ);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = remove_keys(cli, &data);
    data_close(&data);
    return status;
}

/* ---- the command ---- */

enum { PUT, GET, RM, STAT, VERIFY, COMPACT, REINDEX };

static const struct command_action store_actions[] = {
    [PUT] =
        {
            .name = "put",
            .synopsis = "FILE…|-",
            .summary = "store files, or standard input, and print a content key for each",
            .details = "  mnemon store put report.pdf --url https://example.org/report.pdf --type "
                       "application/pdf",
        },
    [GET] =
        {
            .name = "get",
            .synopsis = "KEY",
            .summary = "write a document to standard output",
            .details = "  mnemon store get KEY --output report.pdf",
        },
    [RM] =
        {
            .name = "rm",
            .synopsis = "KEY…",
            .summary = "drop one reference each; a document without references is gone (captures are removed "
                       "by URL: \"mnemon rm\")",
            .details = "  mnemon store rm KEY",
        },
    [STAT] =
        {
            .name = "stat",
            .summary = "show how many documents there are, how much disk they take, and how many lie on two "
                       "volumes since one of them was down",
            .details = "  mnemon store stat --json",
        },
    [VERIFY] =
        {
            .name = "verify",
            .summary = "read everything again and report damage",
            .details = "Exit status 1 means that something is damaged. A node of a ring then fetches it from "
                       "the others.\n\n"
                       "  mnemon store verify --quiet",
        },
    [COMPACT] =
        {
            .name = "compact",
            .summary = "merge documents that lie on two volumes, and free the disk space of removed ones; "
                       "nothing is left of captures that \"mnemon rm\" or \"mnemon ring delete\" removed",
            .details = "  mnemon store compact --dead 0",
        },
    [REINDEX] =
        {
            .name = "reindex",
            .summary = "rebuild the index from the segments alone; captures of POSTs and other methods that "
                       "mnemon 0.2 or earlier stored get the keys of today",
            .details = "  mnemon store reindex",
        },
    {0},
};

static int store_run(struct cli *cli, const void *values) {
    static store_action *const runs[] = {
        [PUT] = put_action,      [GET] = get_action,        [RM] = rm_action,          [STAT] = stat_action,
        [VERIFY] = store_verify, [COMPACT] = store_compact, [REINDEX] = store_reindex,
    };
    return runs[cli->action](cli, values);
}

static const char *const modes[] = {
    [STORE_REGULAR] = "regular",
    [STORE_COMPARE] = "compare",
    [STORE_FORCE_NEW] = "force-new",
    NULL,
};

static const struct store_options store_defaults = {.dead = 20, .volume = STORE_VOLUME_ANY};

static const struct option store_options[] = {
    OPTION(TEXT, struct store_options, data, "data", "DIR", DATA_HELP),
    OPTION(CHOICE, struct store_options, mode, "mode", "MODE",
           "what counts as a duplicate: equal digest and size, equal bytes, or nothing", .choices = modes,
           .of = "put"),
    OPTION(TEXT, struct store_options, url, "url", "URL", "store it as a capture of this URL, made now",
           .of = "put"),
    OPTION(TEXT, struct store_options, type, "type", "MIME", "the media type (application/octet-stream)",
           .of = "put"),
    OPTION(NUMBER, struct store_options, volume, "volume", "N",
           "the volume for a new document (chosen by its digest); a duplicate stays in its volume",
           .max = KEY_VOLUMES_MAX - 1, .of = "put"),
    OPTION(TEXT, struct store_options, output, "output", "FILE",
           "write to this file instead of standard output", .letter = 'o', .of = "get"),
    OPTION(NUMBER, struct store_options, dead, "dead", "PERCENT",
           "rewrite segments of which at least this percentage is dead (20); 0: all with anything "
           "dead; "
           "those with deleted captures always",
           .max = 100, .of = "compact"),
    OPTION(FLAG, struct store_options, quiet, "quiet", NULL, "show no progress", .letter = 'q',
           .of = "verify reindex"),
    OPTION(FLAG, struct store_options, json, "json", NULL, "print JSON",
           .of = "put stat verify compact reindex"),
    {0},
};

const struct command store_command = {
    .name = "store",
    .summary = "store, read, remove and check documents by content key",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details = "The content store below the archive: every document is stored once and identified by the "
               "SHA-256 of its bytes.",
    .options = store_options,
    .options_size = sizeof(struct store_options),
    .defaults = &store_defaults,
    .actions = store_actions,
    .run = store_run,
};
