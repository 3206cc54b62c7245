/* commands - the subcommands of mnemon, one file each; the order is that of the help page. */
#ifndef MNEMON_CLI_COMMANDS_H
#define MNEMON_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct command serve_command;
extern const struct command proxy_command;
extern const struct command status_command;
extern const struct command ring_command;
extern const struct command crowd_command;
extern const struct command group_command;
extern const struct command mirror_command;
extern const struct command archive_command;
extern const struct command job_command;
extern const struct command list_command;
extern const struct command get_command;
extern const struct command import_command;
extern const struct command export_command;
extern const struct command store_command;
extern const struct command url_command;
extern const struct command links_command;
extern const struct command robots_command;
extern const struct command plan_command;
extern const struct command sim_command;
extern const struct command version_command;

/* All of them, ended by NULL. */
extern const struct command *const commands[];

#endif
