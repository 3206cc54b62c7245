#include "cli/data.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/progress.h"

int data_find(struct data *data, struct cli *cli, const char *option) {
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
static void tell_recovery(const struct data *data, const struct instance_volume *volume) {
    const struct volume_recovery *recovery = volume->recovery;
    FILE *err = data->cli->err;
    /* A single record is the warcinfo of a segment that nothing was put into yet. */
    if (recovery == NULL ||
        (recovery->records_count <= 1 && recovery->cut_size == 0 && recovery->damaged_count == 0)) {
        return;
    }
    bool is_alone = instance_volumes_count(data->instance) == 1;
    fprintf(err, "mnemon: mended the archive in %s: %ju records indexed again%s",
            is_alone ? data->directory : volume->place, (uintmax_t)recovery->records_count,
            recovery->is_rebuilt ? " (the whole index was lost)" : "");
    if (recovery->cut_size > 0) {
        fprintf(err, ", %ju bytes of an unfinished record cut off", (uintmax_t)recovery->cut_size);
    }
    if (recovery->damaged_count > 0) {
        fprintf(err, ", %ju damaged places found", (uintmax_t)recovery->damaged_count);
    }
    fputc('\n', err);
}

/* Each once: at the start, or at the end where it went down meanwhile. */
static void tell_down(struct data *data) {
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct instance_volume volume;
        instance_volume(data->instance, i, &volume);
        if (volume.err != ERR_OK && (data->told >> i & 1) == 0) {
            fprintf(data->cli->err, "mnemon: volume %u (%s) is %s: %s\n", volume.number, volume.place,
                    volume.err == ERR_NO_SPACE ? "full" : "down", volume.reason);
            data->told |= UINT32_C(1) << i;
        }
    }
}

/* A connector that forgets the volume that was there before it would make an archive seem empty. */
static void tell_unlisted(const struct data *data) {
    char path[DATA_PATH_SIZE_MAX + 16];
    struct stat first;
    snprintf(path, sizeof path, "%s/volumes/0", data->directory);
    if (stat(path, &first) != 0) {
        return;
    }
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct instance_volume volume;
        struct stat other;
        instance_volume(data->instance, i, &volume);
        bool is_there = !volume.is_remote && stat(volume.place, &other) == 0;
        if (is_there && other.st_dev == first.st_dev && other.st_ino == first.st_ino) {
            return;
        }
    }
    fprintf(data->cli->err, "mnemon: %s is not used: %s/connector does not list it\n", path, data->directory);
}

void data_tell_remote(const struct data *data) {
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct instance_volume volume;
        instance_volume(data->instance, i, &volume);
        if (volume.is_remote) {
            fprintf(data->cli->err, "mnemon: volume %u is maintained by its server (%s)\n", volume.number,
                    volume.place);
        }
    }
}

/* Volumes come one after the other; the percentage is of the one that is read, the counts are of all. */
struct rebuild {
    struct progress progress;
    uint64_t records_before; /* of the volumes that are done */
    uint64_t size_before;
    uint64_t records_count; /* of this one */
    uint64_t size;
};

static void show_progress(void *context, uint64_t records_count, uint64_t done_size, uint64_t all_size) {
    struct rebuild *rebuild = context;
    char note[32];
    if (done_size < rebuild->size) {
        rebuild->records_before += rebuild->records_count;
        rebuild->size_before += rebuild->size;
    }
    rebuild->records_count = records_count;
    rebuild->size = done_size;
    rebuild->progress.done_count = rebuild->records_before + records_count;
    rebuild->progress.bytes_count = rebuild->size_before + done_size;
    snprintf(note, sizeof note, "%.0f%%", 100.0 * (double)done_size / (double)all_size);
    progress_update(&rebuild->progress, note);
}

static int open_data(struct data *data, struct cli *cli, const char *option, enum data_access access,
                     struct rebuild *rebuild) {
    *data = (struct data){.cli = cli};
    int status = data_find(data, cli, option);
    if (status != CLI_DONE) {
        return status;
    }
    struct instance_config config = {
        .directory = data->directory,
        .must_exist = access != DATA_WRITE,
        .is_rebuilding = access == DATA_REBUILD,
        .progress = rebuild != NULL ? show_progress : NULL,
        .progress_context = rebuild,
    };
    struct err_detail detail = {0};
    enum err err = instance_open(&config, &data->instance, &detail);
    if (err != ERR_OK) {
        return explain(data, cli, config.must_exist, err, &detail);
    }
    for (size_t i = 0; i < instance_volumes_count(data->instance) && access != DATA_REBUILD; i++) {
        struct instance_volume volume;
        instance_volume(data->instance, i, &volume);
        tell_recovery(data, &volume);
    }
    tell_unlisted(data);
    tell_down(data);
    data->session = instance_session_new(data->instance);
    if (data->session == NULL) {
        instance_close(data->instance);
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    return CLI_DONE;
}

int data_open(struct data *data, struct cli *cli, const char *option, enum data_access access) {
    return open_data(data, cli, option, access, NULL);
}

int data_rebuild(struct data *data, struct cli *cli, const char *option, bool is_quiet) {
    struct rebuild rebuild = {0};
    progress_init(&rebuild.progress, "reading segments", fileno(cli->err), is_quiet, cli->clock);
    int status = open_data(data, cli, option, DATA_REBUILD, &rebuild);
    if (status == CLI_DONE) {
        progress_finish(&rebuild.progress);
    }
    return status;
}

void data_close(struct data *data) {
    tell_down(data);
    instance_session_free(data->session);
    instance_close(data->instance);
}

/* A volume may hold segments of both framings; only its directory knows which this one has. */
static enum pack_framing find_framing(const struct instance_volume *volume, uint32_t number) {
    char path[DATA_PATH_SIZE_MAX + DATA_NAME_SIZE_MAX];
    char name[SEGMENT_NAME_SIZE_MAX];
    segment_name(number, PACK_GZIP, name);
    snprintf(path, sizeof path, "%s/%s", volume->place, name);
    return !volume->is_remote && access(path, F_OK) == 0 ? PACK_GZIP : PACK_ZSTD;
}

const char *data_segment_name(struct data *data, uint16_t volume, uint32_t number) {
    if (data->named_segment == number && data->named_volume == volume) {
        return data->segment_name;
    }
    struct instance_volume info;
    char name[SEGMENT_NAME_SIZE_MAX];
    instance_volume(data->instance, instance_find_volume(data->instance, volume), &info);
    segment_name(number, find_framing(&info, number), name);
    if (instance_volumes_count(data->instance) == 1) {
        snprintf(data->segment_name, sizeof data->segment_name, "%s", name);
    } else {
        snprintf(data->segment_name, sizeof data->segment_name, "%u/%s", volume, name);
    }
    data->named_volume = volume;
    data->named_segment = number;
    return data->segment_name;
}
