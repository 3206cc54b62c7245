#include "store/instance.h"

#include <stdio.h>
#include <unistd.h>

enum { PATH_SIZE_MAX = 4096 };

static enum err open_volume(struct instance *instance, const struct instance_config *config,
                            struct err_detail *detail) {
    char index_directory[PATH_SIZE_MAX];
    int size = snprintf(index_directory, sizeof index_directory, "%s/index/0", config->directory);
    if (size >= (int)sizeof index_directory) {
        return err_set(detail, ERR_LIMIT, "the path of the data directory is too long");
    }
    enum err err = vfs_make_directory(&instance->vfs.vfs, "index");
    if (err != ERR_OK) {
        return err_set(detail, err, "%s/index: %s", config->directory, err_text(err));
    }
    struct volume_config volume_config = {
        .vfs = &instance->vfs.vfs,
        .directory = "volumes/0",
        .index_directory = index_directory,
        .framing = config->uses_gzip ? PACK_GZIP : PACK_ZSTD,
        .level = config->level,
        .segment_size_max = config->segment_size_max,
        .random = warc_random_system,
    };
    return config->is_rebuilding
               ? volume_rebuild(&volume_config, &instance->volume, &instance->recovery, detail)
               : volume_open(&volume_config, &instance->volume, &instance->recovery, detail);
}

enum err instance_open(struct instance *instance, const struct instance_config *config,
                       struct err_detail *detail) {
    char volumes[PATH_SIZE_MAX];
    snprintf(volumes, sizeof volumes, "%s/volumes/0", config->directory);
    if (config->must_exist && access(volumes, F_OK) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "there is no archive in %s", config->directory);
    }
    struct instance opened = {0};
    enum err err = vfs_posix_init(&opened.vfs, config->directory, detail);
    if (err != ERR_OK) {
        return err;
    }
    *instance = opened;
    err = open_volume(instance, config, detail);
    if (err != ERR_OK) {
        vfs_posix_done(&instance->vfs);
    }
    return err;
}

void instance_close(struct instance *instance) {
    volume_close(instance->volume);
    vfs_posix_done(&instance->vfs);
}
