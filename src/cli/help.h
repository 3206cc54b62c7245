/*
 * help - the commands and their options as text for people: pages for the terminal, the man page and the
 * bash completion. All three are made from the tables of cli.h, so they cannot disagree with the program.
 */
#ifndef MNEMON_CLI_HELP_H
#define MNEMON_CLI_HELP_H

#include "cli/cli.h"

extern const struct command help_command;
extern const struct command completion_command;

void help_put_overview(FILE *out, const struct command *const *commands);
void help_put_command(FILE *out, const struct command *command);
void help_put_action(FILE *out, const struct command *command, const struct command_action *action);

enum { HELP_OPTION_OF_SIZE = 128 };

/* The actions that an option is for, as people list them: "create, amend". */
void help_option_of(const struct option *option, char out[HELP_OPTION_OF_SIZE]);

#endif
