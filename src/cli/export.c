#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/export_wacz.h"
#include "cli/output.h"
#include "cli/period.h"
#include "cli/progress.h"
#include "store/instance/absent.h"
#include "store/instance/query.h"
#include "version.h"
#include "warc/warc_writer.h"

/*
 * Captures into one WARC or WACZ file that stands on its own.
 *
 * In the archive a payload is stored once, wherever it was seen first. In the file the first capture of it
 * that is exported is written in full and later ones refer to that: no revisit points outside the file.
 */
enum {
    EXPORT_BLOCKS_MAX = 1 << 26, /* payloads that more than one capture has; about 100 bytes each */
};

/* Where a capture is. */
struct export_place {
    uint16_t volume;
    struct location location;
};

struct export {
    struct cli *cli;
    struct data data;
    struct export_wacz *wacz; /* NULL: a bare WARC file is written */
    struct warc_writer writer;
    struct map blocks; /* digest and number -> struct export_place of the capture in full */
    struct instance_session *record_session;  /* the capture's record */
    struct instance_session *payload_session; /* the payload of a revisit, what it refers to, a request */
    struct record record;
    struct record origin; /* what a revisit refers to */
    struct buf chunks;    /* a payload in chunks again */
    uint64_t captures_count;
    uint64_t revisits_count; /* of them */
    uint64_t requests_count;
    bool is_partial_wanted;
    uint64_t skipped_count; /* captures that were found and cannot be read now */
    struct absent absent;   /* who did not answer */
    bool is_told;           /* the warcinfo names all of them */
};

/* ---- one capture ---- */

/* As a key of export->blocks: every byte is set. */
struct block_key {
    uint8_t bytes[KEY_DIGEST_SIZE + 2];
};

static struct block_key block_key(const struct capture *capture) {
    struct block_key key;
    memcpy(key.bytes, capture->digest, KEY_DIGEST_SIZE);
    key.bytes[KEY_DIGEST_SIZE] = (uint8_t)(capture->block_number >> 8);
    key.bytes[KEY_DIGEST_SIZE + 1] = (uint8_t)capture->block_number;
    return key;
}

/* Only what has another capture can be referred to later. */
static enum err remember(struct export *export, const struct capture *capture) {
    struct key document;
    struct block block;
    enum err err = instance_locate(export->payload_session, capture, &document, &block, NULL);
    if (err != ERR_OK || block.references < 2) {
        return err;
    }
    err = map_reserve(&export->blocks, export->blocks.count + 1);
    if (err == ERR_OK) {
        struct block_key key = block_key(capture);
        *(struct export_place *)map_put(&export->blocks, bytes_of(key.bytes, sizeof key.bytes)) =
            (struct export_place){.volume = capture->volume, .location = capture->location};
    }
    return err;
}

/* What all records of the capture say. */
static void start_draft(const struct export *export, const struct capture *capture,
                        struct field fields[RECORD_KEPT_FIELDS_MAX], struct warc_draft *draft) {
    *draft = (struct warc_draft){
        .date_us = capture->time_us,
        .target_uri = export->record.header.target_uri, /* without method and body, which the index adds */
        .ip_address = fields_get(&export->record.header.fields, BYTES("WARC-IP-Address")),
        .fields = fields,
        .fields_count = record_kept_fields(&export->record.header, fields),
        .head = export->record.head,
    };
}

/* The payload is in the file already, with another capture. */
static enum err write_revisit(struct export *export, const struct capture *capture,
                              const struct export_place *original, struct warc_written *ret_written,
                              struct err_detail *detail) {
    const struct warc_record *origin = &export->origin.header;
    struct warc_draft draft;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    enum err err =
        record_read(&export->origin, export->payload_session, original->volume, &original->location, detail);
    if (err != ERR_OK) {
        return err;
    }
    start_draft(export, capture, fields, &draft);
    draft.type = WARC_TYPE_REVISIT;
    draft.revisit = record_is_not_modified(&export->record.header) ? WARC_REVISIT_NOT_MODIFIED
                                                                   : WARC_REVISIT_IDENTICAL_PAYLOAD;
    draft.refers_to_target_uri = origin->target_uri;
    draft.refers_to_date_us = origin->date_us;
    draft.payload_sha256 = capture->digest;
    export->revisits_count++;
    return warc_writer_put(&export->writer, &draft, ret_written, detail);
}

/* The payload of a revisit is with another record; it is put behind the revisit's own head. */
static enum err find_body(struct export *export, const struct capture *capture, struct bytes *ret_body,
                          struct err_detail *detail) {
    if ((capture->flags & CAPTURE_REVISIT) == 0) {
        *ret_body = export->record.body;
        return ERR_OK;
    }
    struct key key;
    struct block block;
    struct bytes payload;
    enum err err = instance_locate(export->payload_session, capture, &key, &block, detail);
    if (err == ERR_OK) {
        err = instance_get(export->payload_session, &key, &payload, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (export->record.head.size == 0) {
        *ret_body = payload;
        return ERR_OK;
    }
    return record_encode(&export->record.payload, payload, &export->chunks, ret_body);
}

/* "Not modified" without what was not modified says nothing: the earlier answer is written, at this date. */
static enum err find_earlier(struct export *export, struct capture *capture, struct warc_draft *draft,
                             struct err_detail *detail) {
    struct key key;
    struct block block;
    enum err err = instance_locate(export->payload_session, capture, &key, &block, detail);
    if (err == ERR_OK) {
        err = record_read(&export->origin, export->payload_session, key.volume, &block.location, detail);
    }
    if (err == ERR_OK) {
        draft->head = export->origin.head;
        draft->body = export->origin.body;
        capture->status = export->origin.payload.head.status;
    }
    return err;
}

/* Updates the capture to what the record says. */
static enum err write_full(struct export *export, struct capture *capture, struct warc_written *ret_written,
                           struct err_detail *detail) {
    const struct warc_record *header = &export->record.header;
    bool is_http = export->record.head.size > 0;
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    struct warc_draft draft;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    struct warc_id id;
    start_draft(export, capture, fields, &draft);
    draft.type = is_http ? WARC_TYPE_RESPONSE : WARC_TYPE_RESOURCE;
    draft.content_type = is_http ? bytes_of(NULL, 0) : is_revisit ? capture->mime : header->content_type;
    if (!is_revisit) {
        draft.truncated = fields_get(&header->fields, BYTES("WARC-Truncated"));
        bool has_id = warc_id_parse(fields_get(&header->fields, BYTES("WARC-Record-ID")), &id);
        draft.id = has_id ? &id : NULL;
    }
    enum err err = record_is_not_modified(header) ? find_earlier(export, capture, &draft, detail)
                                                  : find_body(export, capture, &draft.body, detail);
    if (err == ERR_OK) {
        err = warc_writer_put(&export->writer, &draft, ret_written, detail);
    }
    return err == ERR_OK && is_http ? remember(export, capture) : err;
}

static enum err write_request(struct export *export, const struct capture *capture,
                              const struct warc_written *written, struct err_detail *detail) {
    struct bytes request;
    enum err err =
        instance_get_request(export->payload_session, capture->volume, &capture->location, &request, detail);
    if (err != ERR_OK || request.size == 0) {
        return err;
    }
    struct warc_draft draft;
    struct field fields[RECORD_KEPT_FIELDS_MAX];
    struct warc_written second;
    start_draft(export, capture, fields, &draft);
    draft.type = WARC_TYPE_REQUEST;
    draft.fields_count = 0;
    draft.concurrent_to = &written->id;
    draft.head = bytes_of(NULL, 0);
    draft.body = request;
    export->requests_count++;
    return warc_writer_put(&export->writer, &draft, &second, detail);
}

/* Write the capture and its request. */
static enum err export_capture(struct export *export, const struct capture *capture,
                               struct err_detail *detail) {
    struct warc_written written;
    struct capture shown = *capture;
    struct block_key key = block_key(capture);
    enum err err =
        record_read(&export->record, export->record_session, capture->volume, &capture->location, detail);
    if (err != ERR_OK) {
        return err;
    }
    /* A revisit of a resource has nowhere to say its type, so resources are written in full. */
    const struct export_place *original =
        export->record.head.size == 0 ? NULL
                                      : map_get(&export->blocks, bytes_of(key.bytes, sizeof key.bytes));
    err = original != NULL ? write_revisit(export, capture, original, &written, detail)
                           : write_full(export, &shown, &written, detail);
    if (err == ERR_OK) {
        err = write_request(export, capture, &written, detail);
    }
    if (err == ERR_OK && export->wacz != NULL) {
        err = export_wacz_add(export->wacz, &shown, &export->record, export->payload_session, &written,
                              original != NULL, detail);
    }
    export->captures_count += err == ERR_OK ? 1 : 0;
    return err;
}

struct export_options {
    const char *data;
    const char *output;
    uint32_t format; /* enum export_format */
    const char *from;
    const char *to;
    bool quiet;
    bool json;
    bool partial;
    bool local;
};

enum export_format { FORMAT_BY_NAME, FORMAT_WARC, FORMAT_GZIP, FORMAT_ZSTD, FORMAT_WACZ };

static const char *const formats[] = {
    [FORMAT_BY_NAME] = "auto",  [FORMAT_WARC] = "warc", [FORMAT_GZIP] = "warc.gz",
    [FORMAT_ZSTD] = "warc.zst", [FORMAT_WACZ] = "wacz", NULL,
};

/* Several queries may overlap; a capture is exported by the first that means it. */
struct selection {
    struct query *queries;
    size_t count;
};

/* ---- what is exported ---- */

static void free_selection(struct selection *selection) {
    for (size_t i = 0; i < selection->count; i++) {
        query_done(&selection->queries[i]);
    }
    free(selection->queries);
}

static int select_captures(struct cli *cli, const struct export_options *options,
                           struct selection *ret_selection) {
    static const char everything[] = "*";
    size_t count = cli->arguments_count == 0 ? 1 : cli->arguments_count;
    int64_t from_us;
    int64_t to_us;
    int status = period_read(cli, &export_command, options->from, options->to, &from_us, &to_us);
    if (status != CLI_DONE) {
        return status;
    }
    struct selection selection = {.queries = calloc(count, sizeof *selection.queries)};
    if (selection.queries == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    for (; selection.count < count; selection.count++) {
        const char *text = cli->arguments_count == 0 ? everything : cli->arguments[selection.count];
        struct query *query = &selection.queries[selection.count];
        struct err_detail detail = {0};
        enum err err = query_init(query, bytes_of_string(text), QUERY_BY_URL, &detail);
        if (err != ERR_OK) {
            free_selection(&selection);
            return cli_usage(cli, &export_command, "\"%s\" is not a URL: %s", text,
                             err_detail_text(&detail, err));
        }
        query->from_us = from_us;
        query->to_us = to_us;
    }
    *ret_selection = selection;
    return CLI_DONE;
}

static bool is_covered(const struct selection *selection, size_t before, const struct capture *capture) {
    for (size_t i = 0; i < before; i++) {
        if (query_covers(&selection->queries[i], capture)) {
            return true;
        }
    }
    return false;
}

/* ---- where it goes ---- */

/* auto goes by the name. */
static enum export_format choose_format(const struct export_options *options) {
    struct bytes name = bytes_of_string(options->output);
    if (options->format != FORMAT_BY_NAME) {
        return (enum export_format)options->format;
    }
    return bytes_ends_with(name, BYTES(".wacz"))   ? FORMAT_WACZ
           : bytes_ends_with(name, BYTES(".zst"))  ? FORMAT_ZSTD
           : bytes_ends_with(name, BYTES(".warc")) ? FORMAT_WARC
                                                   : FORMAT_GZIP;
}

static enum pack_framing framing_of(enum export_format format) {
    return format == FORMAT_ZSTD ? PACK_ZSTD : format == FORMAT_WARC ? PACK_PLAIN : PACK_GZIP;
}

static enum err write_info(struct export *export, const char *path, struct err_detail *detail) {
    struct buf info;
    struct warc_written written;
    buf_init(&info, 1 << 14);
    warc_put_info(&info, "software", BYTES("mnemon/" MNEMON_VERSION));
    warc_put_info(&info, "format", BYTES("WARC File Format 1.1"));
    warc_put_info(&info, "conformsTo",
                  BYTES("https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"));
    if (export->absent.is_any) {
        warc_put_info(&info, "partial", BYTES("true"));
        warc_put_info(&info, "unanswered", bytes_of(export->absent.text, export->absent.size));
    }
    export->is_told = true;
    const char *slash = strrchr(path, '/');
    struct warc_draft draft = {
        .type = WARC_TYPE_WARCINFO,
        .date_us = clock_wall_us(export->cli->clock),
        .filename = bytes_of_string(slash == NULL ? path : slash + 1),
        .body = buf_bytes(&info),
    };
    enum err err = warc_writer_put(&export->writer, &draft, &written, detail);
    buf_done(&info);
    return err;
}

/* ---- who does not answer ---- */

static void add_absent(struct export *export, const struct absent *absent) {
    size_t size = export->absent.size;
    absent_add(&export->absent, bytes_of(absent->text, absent->size));
    export->is_told = export->is_told && size == export->absent.size;
}

/* Of all that was asked so far. ERR_UNREACHABLE if the user wants all or nothing. */
static enum err check_absent(struct export *export, struct err_detail *detail) {
    add_absent(export, data_absent(&export->data));
    add_absent(export, instance_session_absent(export->record_session));
    add_absent(export, instance_session_absent(export->payload_session));
    return !export->absent.is_any || export->is_partial_wanted
               ? ERR_OK
               : err_set(detail, ERR_UNREACHABLE,
                         "%.160s did not answer; --partial exports what the others have",
                         export->absent.text);
}

/* Whoever is down is known before the first byte is written: each walk begins with a question to all. */
static enum err ask_all(struct export *export, struct selection *selection, struct err_detail *detail) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < selection->count && err == ERR_OK; i++) {
        struct capture capture;
        query_start(&selection->queries[i], export->data.session);
        err = query_next(&selection->queries[i], &capture);
        err = err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    return err == ERR_OK ? check_absent(export, detail) : err;
}

/* It was found, but what it needs cannot be read now: a partial file does without it. */
static bool may_skip(const struct export *export, enum err err) {
    return export->is_partial_wanted && (err == ERR_UNREACHABLE || err == ERR_TIMEOUT || err == ERR_CLOSED);
}

/* ---- the run ---- */

static enum err write_selection(struct export *export, struct selection *selection, struct progress *progress,
                                struct err_detail *detail) {
    for (size_t i = 0; i < selection->count; i++) {
        struct capture capture;
        enum err err;
        query_start(&selection->queries[i], export->data.session);
        while ((err = query_next(&selection->queries[i], &capture)) == ERR_OK) {
            err = is_covered(selection, i, &capture) ? ERR_OK : export_capture(export, &capture, detail);
            bool is_skipped = may_skip(export, err);
            export->skipped_count += is_skipped ? 1 : 0;
            if (err != ERR_OK && !is_skipped) {
                return err;
            }
            progress->done_count = export->captures_count;
            progress->bytes_count = export->writer.offset;
            progress_update(progress, NULL);
        }
        if (err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return check_absent(export, detail);
}

static enum err init_export(struct export *export, struct sink *sink, enum pack_framing framing) {
    struct pack_options options = {.framing = framing};
    map_init(&export->blocks, KEY_DIGEST_SIZE + 2, sizeof(struct export_place), EXPORT_BLOCKS_MAX, 1);
    buf_init(&export->chunks, (size_t)VOLUME_DOCUMENT_SIZE_MAX + 64);
    export->record_session = data_session_new(&export->data);
    export->payload_session = data_session_new(&export->data);
    enum err err = export->record_session == NULL || export->payload_session == NULL ? ERR_MEMORY : ERR_OK;
    err = err == ERR_OK ? record_init(&export->record) : err;
    err = err == ERR_OK ? record_init(&export->origin) : err;
    return err == ERR_OK ? warc_writer_init(&export->writer, sink, 0, &options, warc_random_system) : err;
}

static void finish_export(struct export *export) {
    warc_writer_done(&export->writer);
    record_done(&export->origin);
    record_done(&export->record);
    instance_session_free(export->record_session);
    instance_session_free(export->payload_session);
    buf_done(&export->chunks);
    map_done(&export->blocks);
}

static int export_write_file(struct export *export, const struct export_options *options,
                             struct selection *selection, struct output *output) {
    struct err_detail detail = {0};
    struct sink_file file;
    struct sink *sink = &file.sink;
    struct progress progress;
    enum err err = ERR_OK;
    sink_file_init(&file, fileno(output->file));
    progress_init(&progress, "exporting", fileno(export->cli->err), options->quiet, export->cli->clock);
    if (export->wacz != NULL) {
        int64_t now_us = clock_wall_us(export->cli->clock);
        err = export_wacz_init(export->wacz, sink, options->output, now_us, &detail);
        sink = &export->wacz->writer.sink;
    }
    if (err == ERR_OK) {
        err = init_export(export, sink, framing_of(choose_format(options)));
    }
    if (err == ERR_OK) {
        err = ask_all(export, selection, &detail);
    }
    const char *name = export->wacz != NULL ? WACZ_WARC_NAME : options->output;
    if (err == ERR_OK) {
        err = write_info(export, name, &detail);
    }
    if (err == ERR_OK) {
        err = write_selection(export, selection, &progress, &detail);
    }
    if (err == ERR_OK && !export->is_told) { /* somebody fell silent on the way */
        err = write_info(export, name, &detail);
    }
    if (err == ERR_OK && export->wacz != NULL) {
        err = export_wacz_finish(export->wacz, &export->absent, &detail);
    }
    progress_finish(&progress);
    return err == ERR_OK ? CLI_DONE
                         : cli_fail(export->cli, "%s: %s", options->output, err_detail_text(&detail, err));
}

static void print_summary(const struct export *export) {
    const struct export_wacz *wacz = export->wacz;
    struct json json;
    json_begin_file(&json, export->cli->out);
    JSON_COUNTS(&json, {"captures", export->captures_count}, {"revisits", export->revisits_count},
                {"requests", export->requests_count});
    if (wacz != NULL) {
        json_count(&json, "pages", wacz->pages_count);
    }
    if (export->skipped_count > 0) {
        json_count(&json, "skipped", export->skipped_count);
    }
    absent_put_json(&export->absent, &json);
    json_count(&json, "size", wacz != NULL ? wacz->writer.zip.offset : export->writer.offset);
    cli_note(export->cli, json_end(&json));
}

static int write_output(struct export *export, const struct export_options *options,
                        struct selection *selection) {
    struct output output;
    int status = output_open(&output, export->cli, options->output);
    if (status != CLI_DONE) {
        return status;
    }
    struct export_wacz wacz = {0};
    export->wacz = choose_format(options) == FORMAT_WACZ ? &wacz : NULL;
    status = export_write_file(export, options, selection, &output);
    bool is_to_file = output.path != NULL;
    int closed = output_close(&output, status == CLI_DONE);
    status = status == CLI_DONE ? closed : status;
    if (status == CLI_DONE && options->json && is_to_file) {
        print_summary(export);
    }
    finish_export(export);
    if (export->wacz != NULL) {
        export_wacz_done(export->wacz);
    }
    return status;
}

static int export_run(struct cli *cli, const void *values) {
    const struct export_options *options = values;
    struct export export = {.cli = cli, .is_partial_wanted = options->partial};
    struct selection selection = {0};
    if (options->output == NULL) {
        return cli_usage(cli, &export_command, "--output is missing: name the file to write");
    }
    if (choose_format(options) == FORMAT_WACZ && strcmp(options->output, "-") == 0) {
        return cli_usage(cli, &export_command,
                         "a WACZ file cannot go to standard output, because its headers are written last");
    }
    int status = select_captures(cli, options, &selection);
    if (status != CLI_DONE) {
        return status;
    }
    status = data_open(&export.data, cli, options->data, options->local ? DATA_READ : DATA_READ_RING);
    if (status != CLI_DONE) {
        free_selection(&selection);
        return status;
    }
    status = write_output(&export, options, &selection);
    if (status == CLI_DONE && export.absent.is_any) {
        fprintf(cli->err, "mnemon: %s is partial: %s did not answer\n", options->output, export.absent.text);
    }
    free_selection(&selection);
    data_close(&export.data);
    return status;
}

static const struct option export_options[] = {
    OPTION(TEXT, struct export_options, data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct export_options, output, "output", "FILE", "the file to write; - is standard output",
           .letter = 'o'),
    OPTION(CHOICE, struct export_options, format, "format", "FORMAT",
           "the format of the file; auto decides by its name, otherwise warc.gz", .choices = formats),
    OPTION(TEXT, struct export_options, from, "from", "TIME",
           "only captures from this time on: 1 to 14 digits, such as 2026 or 20260102030405"),
    OPTION(TEXT, struct export_options, to, "to", "TIME",
           "only captures up to this time; 2026 means the end of that year"),
    OPTION(FLAG, struct export_options, partial, "partial", NULL,
           "write what can be read while somebody does not answer; the file says so"),
    OPTION(FLAG, struct export_options, local, "local", NULL, DATA_LOCAL_HELP),
    OPTION(FLAG, struct export_options, quiet, "quiet", NULL, "show no progress", .letter = 'q'),
    OPTION(FLAG, struct export_options, json, "json", NULL, "print a summary as one JSON object"),
    {0},
};

const struct command export_command = {
    .name = "export",
    .summary = "write captures to a WARC or WACZ file",
    .synopsis = "[URL[*]…] -o FILE",
    .details = "Writes all captures, or those of the URLs given (written as for \"mnemon list\"), together "
               "with their requests. The file is self-contained: a payload that several captures share is "
               "written in full with the first of them, and no revisit record points outside the file.\n\n"
               "A WACZ file (1.1.1) also contains an index, a list of its pages with their titles, and "
               "digests. ReplayWeb.page can open it directly.\n\n"
               "On the data directory of a node that is in a ring, the whole ring is exported, through the "
               "running node; with --local only what this node has stored.\n\n"
               "If a volume or a node that could hold more does not answer, nothing is written and the exit "
               "status is "
               "1. With --partial the file is written without what it holds, and says so: its warcinfo, and "
               "the datapackage.json of a WACZ file, have \"partial\" and the names of those that did not "
               "answer.",
    .options = export_options,
    .options_size = sizeof(struct export_options),
    .arguments_max = SIZE_MAX,
    .run = export_run,
};
