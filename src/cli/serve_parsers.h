/*
 * serve_parsers - the processes in which a node parses foreign content: this program itself, executed anew
 * with a word that no user types.
 */
#ifndef MNEMON_CLI_SERVE_PARSERS_H
#define MNEMON_CLI_SERVE_PARSERS_H

#include "cli/cli.h"
#include "node/settings.h"
#include "parse/parsers.h"

/* Is this program to be the host of parsers? Then that is all it does, and returns its exit status. */
bool serve_parsers_is_host(int argc, char **argv);
int serve_parsers_host(int argc, char **argv);

/* Before any thread and any key. *ret_parsers is NULL if the settings, or the program that this is, want
 * none. */
int serve_parsers(struct cli *cli, const struct settings *settings, struct parsers **ret_parsers);

#endif
