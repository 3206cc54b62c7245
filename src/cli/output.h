/*
 * output - where a command's bytes go: standard output, or a file that appears only when it is whole.
 *
 * A file is written under its name with ".part" behind, synced and renamed at the end, so that a full disk, a
 * Ctrl-C or a loss of power never leaves half of one under the name that somebody will trust.
 */
#ifndef MNEMON_CLI_OUTPUT_H
#define MNEMON_CLI_OUTPUT_H

#include "cli/cli.h"

enum { OUTPUT_PATH_SIZE_MAX = 4096 };

struct output {
    struct cli *cli;
    const char *path; /* NULL: standard output */
    bool is_special;  /* a device or a pipe: written to as it is */
    char part_path[OUTPUT_PATH_SIZE_MAX];
    FILE *file;
};

/* path: a file, or NULL or "-" for standard output; borrowed. CLI_DONE, or the status after the error. */
int output_open(struct output *output, struct cli *cli, const char *path);

/* Failures are remembered until output_close(). */
void output_write(struct output *output, struct bytes bytes);

/* If is_good, the file gets its name, else it goes. Returns CLI_DONE or the status after the error. */
int output_close(struct output *output, bool is_good);

#endif
