#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/ring.h"

enum { LOOK_EVERY_US = 250000, TOLD_SIZE_MAX = 1024 };

/* A node looks at its volumes a few times a second: what has just been stored may not be counted yet. */
enum { SURE_LOOKS = 6 };

/* The sentence about copies, again if it has changed: why it takes so long. */
static void wait_tell(struct cli *cli, const json_t *services, char told[TOLD_SIZE_MAX]) {
    const char *sentence = ask_text(json_object_get(services, "sentences"), "copies");
    if (sentence[0] != '\0' && strncmp(sentence, told, TOLD_SIZE_MAX - 1) != 0) {
        fprintf(cli->err, "not yet: %s\n", sentence);
        snprintf(told, TOLD_SIZE_MAX, "%s", sentence);
    }
}

int ring_wait(struct cli *cli, const struct data *data, const struct ring_options *options) {
    uint64_t begin_us = clock_monotonic_us(&clock_system);
    char told[TOLD_SIZE_MAX] = "";
    unsigned whole_count = 0;
    if (!options->whole) {
        return cli_usage(cli, &ring_command, "wait for what? mnemon ring wait --whole");
    }
    for (;;) {
        json_t *ring = ask_object(cli, data, "/api/v1/ring");
        if (ring == NULL) {
            return CLI_FAILED;
        }
        const json_t *services = json_object_get(ring, "services");
        const json_t *copies = json_object_get(services, "copies");
        const json_t *whole = json_object_get(copies, "whole");
        bool is_old = copies != NULL && whole == NULL;
        whole_count = json_is_true(whole) ? whole_count + 1 : 0;
        bool is_sure = whole_count >= SURE_LOOKS;
        bool is_late = clock_monotonic_us(&clock_system) - begin_us >= options->timeout_us;
        if (is_sure) {
            fprintf(cli->out, "%s\n", ask_text(json_object_get(services, "sentences"), "copies"));
        } else if (whole_count == 0 && !options->quiet) {
            wait_tell(cli, services, told);
        }
        json_decref(ring);
        if (is_sure) {
            return CLI_DONE;
        }
        if (is_old) {
            return cli_fail(
                cli, "the node that runs is of an earlier version, which does not know whether all is whole");
        }
        if (is_late) {
            return cli_fail(cli, "not all captures of this node have their copies yet");
        }
        usleep(LOOK_EVERY_US);
    }
}
