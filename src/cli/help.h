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

#endif
