#include "cli/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int output_open(struct output *output, struct cli *cli, const char *path) {
    bool is_standard = path == NULL || strcmp(path, "-") == 0;
    *output = (struct output){.cli = cli, .path = is_standard ? NULL : path, .file = cli->out};
    if (is_standard) {
        return CLI_DONE;
    }
    int size = snprintf(output->part_path, sizeof output->part_path, "%s.part", path);
    if (size >= (int)sizeof output->part_path) {
        return cli_fail(cli, "the path of the output is too long");
    }
    output->file = fopen(output->part_path, "wb");
    return output->file != NULL ? CLI_DONE : cli_fail(cli, "%s: %s", output->part_path, strerror(errno));
}

void output_write(struct output *output, struct bytes bytes) {
    fwrite(bytes.data, 1, bytes.size, output->file);
}

/* Standard output is flushed and checked by cli_main(). */
int output_close(struct output *output, bool is_good) {
    if (output->path == NULL) {
        return CLI_DONE;
    }
    bool is_written = !ferror(output->file) && fflush(output->file) == 0;
    int error = errno;
    if (fclose(output->file) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (is_written && is_good) {
        is_written = rename(output->part_path, output->path) == 0;
        error = errno;
    }
    if (is_written && is_good) {
        return CLI_DONE;
    }
    unlink(output->part_path);
    return is_good ? cli_fail(output->cli, "%s: %s", output->path, strerror(error)) : CLI_FAILED;
}
