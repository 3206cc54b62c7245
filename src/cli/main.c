#include <signal.h>
#include <stdio.h>

#include "cli/commands.h"

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error value, not a death */
    struct cli cli = {
        .in = stdin, .out = stdout, .err = stderr, .clock = &clock_system, .commands = commands};
    return cli_main(&cli, argc, argv);
}
