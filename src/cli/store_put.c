#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/scratch.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/store.h"

enum { READ_SIZE = 256 << 10, LINE_SIZE_MAX = 4096 };

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
    json_end(&line);
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
    bool is_standard = strcmp(name, "-") == 0;
    FILE *file = is_standard ? putter->cli->in : fopen(name, "rb");
    if (file == NULL) {
        return cli_fail(putter->cli, "%s: %s", name, strerror(errno));
    }
    int status = read_all(putter, file, name);
    if (!is_standard) {
        fclose(file);
    }
    return status == CLI_DONE ? put_document(putter, name) : status;
}

/* A file that cannot be stored is named; those behind it are stored all the same. */
static int put_files(struct putter *putter, char **names, size_t names_count) {
    int status = CLI_DONE;
    putter->piece = malloc(READ_SIZE);
    if (putter->piece == NULL) {
        return cli_fail(putter->cli, "%s", err_text(ERR_MEMORY));
    }
    scratch_init(&putter->document, putter->data.directory, SCRATCH_MEMORY_MAX, VOLUME_DOCUMENT_SIZE_MAX);
    for (size_t i = 0; i < names_count; i++) {
        int one = put_file(putter, names[i]);
        status = one == CLI_DONE ? status : one;
    }
    scratch_done(&putter->document);
    free(putter->piece);
    return status;
}

int store_put(struct cli *cli, const struct store_options *options, char **arguments,
              size_t arguments_count) {
    struct putter putter = {.cli = cli, .options = options};
    int status = data_open(&putter.data, cli, options->data, DATA_WRITE);
    if (status != CLI_DONE) {
        return status;
    }
    status = put_files(&putter, arguments, arguments_count);
    data_close(&putter.data);
    return status;
}
