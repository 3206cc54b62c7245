#include "cli/commands.h"

#include "cli/help.h"

const struct command *const commands[] = {
    &url_command, &sim_command, &version_command, &help_command, &completion_command, NULL,
};
