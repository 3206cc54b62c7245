#include "cli/commands.h"

#include "cli/help.h"

const struct command *const commands[] = {
    &archive_command, &job_command,        &serve_command, &proxy_command,
    &status_command,  &ring_command,       &crowd_command, &group_command,
    &mirror_command,  &list_command,       &get_command,   &import_command,
    &export_command,  &store_command,      &url_command,   &links_command,
    &robots_command,  &plan_command,       &sim_command,   &version_command,
    &help_command,    &completion_command, NULL,
};
