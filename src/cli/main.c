#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/serve_parsers.h"

enum { LARGE_ALLOCATION_SIZE = 1 << 20 };

/*
 * RocksDB takes its newest entries in pieces of 1 MiB and frees them all when they are in a file. glibc gives
 * such pieces back to the kernel at first, but learns from it not to: then they leave holes between smaller
 * things, and a crawl is a third larger. Told once, it learns nothing.
 */
static void give_back_large_allocations(void) {
    mallopt(M_MMAP_THRESHOLD, LARGE_ALLOCATION_SIZE);
    mallopt(M_TRIM_THRESHOLD, LARGE_ALLOCATION_SIZE);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error value, not a death */
    give_back_large_allocations();
    if (serve_parsers_is_host(argc, argv)) {
        return serve_parsers_host(argc, argv);
    }
    struct cli cli = {.in = stdin,
                      .out = stdout,
                      .err = stderr,
                      .clock = &clock_system,
                      .commands = commands,
                      .can_execute_itself = true};
    return commands_main(&cli, argc, argv);
}
