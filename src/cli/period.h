/* period - the options --from and --to of commands that walk over captures. */
#ifndef MNEMON_CLI_PERIOD_H
#define MNEMON_CLI_PERIOD_H

#include "cli/cli.h"

/* From 1 to 14 digits each, or NULL. CLI_DONE or the status after the error. */
int period_read(struct cli *cli, const struct command *command, const char *from, const char *to,
                int64_t *ret_from_us, int64_t *ret_to_us);

#endif
