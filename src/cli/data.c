#include "cli/data.h"

#include <stdlib.h>
#include <unistd.h>

static int find_directory(struct data *data, struct cli *cli, const char *option) {
    const char *environment = getenv("MNEMON_DATA");
    const char *home = getenv("HOME");
    const char *given = option != NULL ? option : environment;
    int size;
    if (given != NULL && given[0] != '\0') {
        size = snprintf(data->directory, sizeof data->directory, "%s", given);
    } else if (option != NULL) {
        return cli_fail(cli, "--data names no directory");
    } else if (home != NULL && home[0] != '\0') {
        size = snprintf(data->directory, sizeof data->directory, "%s/.local/share/mnemon", home);
    } else {
        return cli_fail(cli, "no data directory is known: use --data DIR or set MNEMON_DATA");
    }
    bool fits = size > 0 && size < (int)sizeof data->directory;
    return fits ? CLI_DONE : cli_fail(cli, "the path of the data directory is too long");
}

static int explain(const struct data *data, const struct cli *cli, bool must_exist, enum err err,
                   const struct err_detail *detail) {
    if (err == ERR_BUSY) {
        return cli_fail(cli, "another process is using %s; use the running node or stop it", data->directory);
    }
    if (err == ERR_NOT_FOUND && must_exist) {
        return cli_fail(cli, "there is no archive in %s; \"mnemon import\" or \"mnemon archive\" makes one",
                        data->directory);
    }
    return cli_fail(cli, "cannot open the archive in %s: %s", data->directory, err_detail_text(detail, err));
}

/* Not silently: whoever lost power yesterday wants to know what it cost. */
static void tell_recovery(const struct data *data, const struct cli *cli) {
    const struct volume_recovery *recovery = &data->instance.recovery;
    /* A single record is the warcinfo of a segment that nothing was put into yet. */
    if (recovery->records_count <= 1 && recovery->cut_size == 0 && recovery->damaged_count == 0) {
        return;
    }
    fprintf(cli->err, "mnemon: mended the archive in %s: %ju records indexed again%s", data->directory,
            (uintmax_t)recovery->records_count, recovery->is_rebuilt ? " (the whole index was lost)" : "");
    if (recovery->cut_size > 0) {
        fprintf(cli->err, ", %ju bytes of an unfinished record cut off", (uintmax_t)recovery->cut_size);
    }
    if (recovery->damaged_count > 0) {
        fprintf(cli->err, ", %ju damaged places found", (uintmax_t)recovery->damaged_count);
    }
    fputc('\n', cli->err);
}

int data_open(struct data *data, struct cli *cli, const char *option, enum data_access access) {
    data->named_segment = 0;
    int status = find_directory(data, cli, option);
    if (status != CLI_DONE) {
        return status;
    }
    struct instance_config config = {
        .directory = data->directory,
        .must_exist = access != DATA_WRITE,
        .is_rebuilding = access == DATA_REBUILD,
    };
    struct err_detail detail = {0};
    enum err err = instance_open(&data->instance, &config, &detail);
    if (err != ERR_OK) {
        return explain(data, cli, config.must_exist, err, &detail);
    }
    if (access != DATA_REBUILD) {
        tell_recovery(data, cli);
    }
    return CLI_DONE;
}

void data_close(struct data *data) {
    instance_close(&data->instance);
}

enum err data_find_block(const struct index *index, const uint8_t signature[KEY_SIGNATURE_SIZE],
                         uint16_t number, struct block *ret_block) {
    struct block block;
    enum err err = index_find_block(index, signature, number, &block);
    if (err != ERR_OK) {
        return err;
    }
    if (block.references <= 0 || block.location.segment == 0) {
        return ERR_NOT_FOUND;
    }
    *ret_block = block;
    return ERR_OK;
}

const char *data_segment_name(struct data *data, uint32_t number) {
    if (data->named_segment == number) {
        return data->segment_name;
    }
    /* An archive may hold segments of both framings; only the directory knows which this one has. */
    char path[DATA_PATH_SIZE_MAX + 64];
    data->named_segment = number;
    segment_name(number, PACK_GZIP, data->segment_name);
    snprintf(path, sizeof path, "%s/volumes/0/%s", data->directory, data->segment_name);
    if (access(path, F_OK) != 0) {
        segment_name(number, PACK_ZSTD, data->segment_name);
    }
    return data->segment_name;
}
