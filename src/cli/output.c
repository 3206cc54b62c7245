#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/whole_file.h"

int output_open(struct output *output, struct cli *cli, const char *path) {
    bool is_standard = path == NULL || strcmp(path, "-") == 0;
    *output = (struct output){.cli = cli, .path = is_standard ? NULL : path, .file = cli->out};
    if (is_standard) {
        return CLI_DONE;
    }
    output->is_special = whole_file_is_special(path);
    int size = snprintf(output->part_path, sizeof output->part_path, "%s%s", path,
                        output->is_special ? "" : ".part");
    if (size >= (int)sizeof output->part_path) {
        return cli_fail(cli, "the path of the output is too long");
    }
    output->file = fopen(output->part_path, "wb");
    return output->file != NULL ? CLI_DONE : cli_fail(cli, "%s: %s", output->part_path, strerror(errno));
}

void output_write(struct output *output, struct bytes bytes) {
    fwrite(bytes.data, 1, bytes.size, output->file);
}

/* A name is durable when its directory is. If that cannot be synced, the file is there all the same. */
static void sync_directory(const char *path) {
    char directory[OUTPUT_PATH_SIZE_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
}

/* Not all files can be synced: /dev/full cannot, and says so otherwise. */
static bool sync_file(FILE *file) {
    return fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

/* Standard output is flushed and checked by commands_main(). */
int output_close(struct output *output, bool is_good) {
    if (output->path == NULL) {
        return CLI_DONE;
    }
    bool is_written =
        !ferror(output->file) && fflush(output->file) == 0 && (!is_good || sync_file(output->file));
    int error = errno;
    if (fclose(output->file) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (is_written && is_good && !output->is_special) {
        is_written = rename(output->part_path, output->path) == 0;
        error = errno;
    }
    if (is_written && is_good) {
        sync_directory(output->path);
        return CLI_DONE;
    }
    if (!output->is_special) {
        unlink(output->part_path);
    }
    return is_good ? cli_fail(output->cli, "%s: %s", output->path, strerror(error)) : CLI_FAILED;
}
