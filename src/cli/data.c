#include "cli/data.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "cli/progress.h"
#include "node/ring/decrees.h"
#include "node/settings.h"
#include "store/remote/backend_remote.h"
#include "web/url/url.h"

/*
 * A crawl at full speed is bound by the processors, and waits for no document of its own. Level 2 packs a
 * page in a tenth to a fifth less time than level 3, for 3 % more bytes; in 5 ms some forty documents come
 * together that share a sync.
 */
enum {
    CRAWL_LEVEL = 2,
    CRAWL_LINGER_US = 5000,
    SERVE_LINGER_US = 20000, /* others on the machine have their nodes too: fewer and larger groups */
};

int data_find(struct data *data, struct cli *cli, const char *option) {
    const char *environment = getenv("MNEMON_DATA");
    const char *home = getenv("HOME");
    const char *given = option != NULL ? option : environment;
    int size;
    if (given != NULL && given[0] != '\0') {
        size = snprintf(data->directory, sizeof data->directory, "%s", given);
    } else if (option != NULL) {
        return cli_fail(cli, "--data must name a directory");
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
    struct node_file node;
    if (err == ERR_BUSY && node_file_read(data->directory, &node, NULL) == ERR_OK) {
        return cli_fail(cli, "the node at %s (process %jd) is using %s; stop it first", node.url,
                        (intmax_t)node.pid, data->directory);
    }
    if (err == ERR_BUSY) {
        return cli_fail(cli, "another process is using %s; wait for it or stop it", data->directory);
    }
    if (err == ERR_NOT_FOUND && must_exist) {
        return cli_fail(cli,
                        "there is no archive in %s; create one with \"mnemon import\" or \"mnemon archive\"",
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
    fprintf(err, "mnemon: repaired the archive in %s: %ju records indexed again%s",
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

/* Nor this: whoever reads an archive that lacks its newest captures must not take them for lost. */
static void tell_read_only(const struct data *data, const struct instance_volume *volume) {
    const struct volume_recovery *recovery = volume->recovery;
    FILE *err = data->cli->err;
    if (recovery == NULL || recovery->refuses == ERR_OK) {
        return;
    }
    bool is_alone = instance_volumes_count(data->instance) == 1;
    fprintf(err, "mnemon: the archive in %s is open for reading only: %s",
            is_alone ? data->directory : volume->place,
            recovery->refuses == ERR_PERMISSION ? "it may not be written to" : err_text(recovery->refuses));
    if (recovery->missed_size > 0) {
        fprintf(err, "; %ju bytes at the end of its segments are not indexed yet and not shown",
                (uintmax_t)recovery->missed_size);
    }
    fputs(recovery->refuses == ERR_NO_SPACE ? "; make room and open it again\n" : "\n", err);
}

/* Each once: at the start, or at the end where it went down meanwhile. */
static void tell_down(struct data *data) {
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct instance_volume volume;
        instance_volume(data->instance, i, &volume);
        if (volume.err != ERR_OK && (data->told >> i & 1) == 0) {
            fprintf(data->cli->err, "mnemon: volume %u (%s) is %s: %s\n", volume.number, volume.place,
                    err_is_full(volume.err) ? "full" : "down", volume.reason);
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

static void data_show_progress(void *context, uint64_t records_count, uint64_t done_size, uint64_t all_size) {
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

/* What the openings differ in. */
struct opening {
    enum data_access access;
    struct rebuild *rebuild; /* may be NULL, as the next ones */
    const char *user_agent;
    const char *robots;
    int level; /* 0: the usual ones, as the next */
    uint32_t linger_us;
    uint64_t quota_size; /* with DATA_SERVE; else it is read from the settings */
};

/* Is it a node that has it open? Then its local volumes are found there. */
static bool find_node(struct data *data, struct instance_config *config) {
    if (node_file_read(data->directory, &data->node, NULL) != ERR_OK ||
        token_load(&data->token, data->directory, NULL) != ERR_OK) {
        return false;
    }
    config->server = data->node.url;
    config->token = data->token.text;
    return true;
}

bool data_is_in_ring(const struct data *data) {
    char path[DATA_PATH_SIZE_MAX + 32];
    snprintf(path, sizeof path, "%s/ring/charter", data->directory);
    return access(path, F_OK) == 0;
}

/* The running node asks the others. Without one, nobody can: what is found is this node's part. */
static enum err join_ring(struct data *data, struct err_detail *detail) {
    if (!data_is_in_ring(data)) {
        return ERR_OK;
    }
    if (!data->is_through_node) {
        absent_add_string(&data->absent, "the ring (this node is not running)");
        return ERR_OK;
    }
    struct backend_remote_config config = {
        .url = data->node.url,
        .token = data->token.text,
        .volume = INSTANCE_GUEST_NUMBER,
        .number = INSTANCE_GUEST_NUMBER,
        .is_guest = true,
        .scratch_directory = data->directory,
    };
    struct backend *guest;
    enum err err = backend_remote_open(&config, &guest, detail);
    if (err == ERR_OK) {
        instance_set_guest(data->instance, guest);
        data->sees_ring = true;
    }
    return err;
}

struct instance_session *data_session_new(struct data *data) {
    struct instance_session *session = instance_session_new(data->instance);
    if (session != NULL) {
        instance_session_set_guest(session, data->sees_ring);
    }
    return session;
}

const struct absent *data_absent(struct data *data) {
    const struct absent *absent = instance_session_absent(data->session);
    absent_add(&data->absent, bytes_of(absent->text, absent->size));
    return &data->absent;
}

/* Settings that cannot be read are the node's trouble. */
static uint64_t find_quota(const struct data *data) {
    char path[DATA_PATH_SIZE_MAX + 16];
    struct settings settings;
    snprintf(path, sizeof path, "%s/mnemon.conf", data->directory);
    if (settings_read(&settings, path, false, NULL) != ERR_OK) {
        return 0;
    }
    uint64_t size = settings.node_disk;
    settings_done(&settings);
    return size;
}

/* A node takes what is deleted out itself; a ring whose files are damaged keeps nobody from reading. */
static void load_deletions(const struct data *data) {
    struct err_detail detail = {0};
    enum err err = decrees_load_deletions(data->directory, data->instance, &detail);
    if (err != ERR_OK) {
        fprintf(data->cli->err, "mnemon: what the ring has deleted is not known: %s\n",
                err_detail_text(&detail, err));
    }
}

static int open_data(struct data *data, struct cli *cli, const char *option, const struct opening *opening) {
    enum data_access access = opening->access;
    *data = (struct data){.cli = cli};
    int status = data_find(data, cli, option);
    if (status != CLI_DONE) {
        return status;
    }
    struct instance_config config = {
        .directory = data->directory,
        .must_exist = access != DATA_WRITE && access != DATA_SERVE,
        .quota_size = access == DATA_SERVE ? opening->quota_size : find_quota(data),
        .volume = {.is_rebuilding = access == DATA_REBUILD,
                   .progress = opening->rebuild != NULL ? data_show_progress : NULL,
                   .progress_context = opening->rebuild,
                   .user_agent = bytes_of_string(opening->user_agent != NULL ? opening->user_agent : ""),
                   .robots = bytes_of_string(opening->robots != NULL ? opening->robots : ""),
                   .level = opening->level,
                   .linger_us = opening->linger_us},
    };
    struct err_detail detail = {0};
    enum err err = instance_open(&config, &data->instance, &detail);
    bool may_share = access == DATA_READ || access == DATA_READ_RING || access == DATA_WRITE;
    if (err == ERR_BUSY && may_share && find_node(data, &config)) {
        err = instance_open(&config, &data->instance, &detail);
        data->is_through_node = err == ERR_OK;
    }
    if (err != ERR_OK) {
        return explain(data, cli, config.must_exist, err, &detail);
    }
    bool is_upkeep = access == DATA_MAINTAIN || access == DATA_REBUILD;
    if (!is_upkeep) {
        load_deletions(data);
    }
    err = access == DATA_READ_RING ? join_ring(data, &detail) : ERR_OK;
    for (size_t i = 0; i < instance_volumes_count(data->instance) && access != DATA_REBUILD; i++) {
        struct instance_volume volume;
        instance_volume(data->instance, i, &volume);
        tell_recovery(data, &volume);
        tell_read_only(data, &volume);
    }
    if (!data->is_through_node) {
        tell_unlisted(data);
    }
    tell_down(data);
    data->session = err == ERR_OK ? data_session_new(data) : NULL;
    if (data->session == NULL) {
        instance_close(data->instance);
        return cli_fail(cli, "%s", err_detail_text(&detail, err != ERR_OK ? err : ERR_MEMORY));
    }
    return CLI_DONE;
}

bool data_has_userinfo(const struct capture *capture) {
    return url_href_has_userinfo(capture->url);
}

int data_make_directory(const struct data *data) {
    struct err_detail detail = {0};
    enum err err = whole_file_make_directory(data->directory, &detail);
    return err == ERR_OK ? CLI_DONE : cli_fail(data->cli, "%s", err_detail_text(&detail, err));
}

int data_open(struct data *data, struct cli *cli, const char *option, enum data_access access) {
    ASSERT(access != DATA_SERVE);
    return open_data(data, cli, option, &(struct opening){.access = access});
}

int data_open_to_serve(struct data *data, struct cli *cli, const char *option, uint64_t quota_size) {
    struct opening opening = {.access = DATA_SERVE, .linger_us = SERVE_LINGER_US, .quota_size = quota_size};
    return open_data(data, cli, option, &opening);
}

int data_open_to_crawl(struct data *data, struct cli *cli, const char *option, const char *user_agent,
                       const char *robots) {
    struct opening opening = {.access = DATA_WRITE,
                              .user_agent = user_agent,
                              .robots = robots,
                              .level = CRAWL_LEVEL,
                              .linger_us = CRAWL_LINGER_US};
    return open_data(data, cli, option, &opening);
}

int data_rebuild(struct data *data, struct cli *cli, const char *option, bool is_quiet) {
    struct rebuild rebuild = {0};
    progress_init(&rebuild.progress, "reading segments", fileno(cli->err), is_quiet, cli->clock);
    int status = open_data(data, cli, option, &(struct opening){.access = DATA_REBUILD, .rebuild = &rebuild});
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
