/* serve_confine - which files a node may still write once it is confined (run/confine.h), found before it
 * is. */
#ifndef MNEMON_CLI_SERVE_CONFINE_H
#define MNEMON_CLI_SERVE_CONFINE_H

#include "cli/cli.h"
#include "node/settings.h"
#include "run/confine.h"

/*
 * Before any thread is started. The data directory is made if it is not there. CLI_DONE, or the status after
 * the error.
 */
int serve_confine(struct cli *cli, const char *directory, const struct settings *settings,
                  struct confine_state *ret_state);

#endif
