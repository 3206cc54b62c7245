/*
 * commands - the subcommands of mnemon, and how one is run from the words of a command line. Options may
 * stand before, between and after the arguments; "--" ends them.
 */
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
extern const struct command search_command;
extern const struct command list_command;
extern const struct command rm_command;
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

/* All of them in the order of the help page, ended by NULL. */
extern const struct command *const commands[];

/* Run the command that argv names. Returns the exit status. */
int commands_main(struct cli *cli, int argc, char **argv);

#endif
