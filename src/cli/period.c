#include "cli/period.h"

#include "base/utc.h"

static int read_time(struct cli *cli, const struct command *command, const char *name, const char *text,
                     bool wants_latest, int64_t *ret_time_us) {
    if (text == NULL) {
        return CLI_DONE;
    }
    if (!utc_parse_digits(bytes_of_string(text), wants_latest, ret_time_us)) {
        return cli_usage(cli, command,
                         "--%s: \"%s\" is not a time; write 1 to 14 digits, such as 2026 or 20260102030405",
                         name, text);
    }
    return CLI_DONE;
}

int period_read(struct cli *cli, const struct command *command, const char *from, const char *to,
                int64_t *ret_from_us, int64_t *ret_to_us) {
    int64_t from_us = INT64_MIN;
    int64_t to_us = INT64_MAX;
    int status = read_time(cli, command, "from", from, false, &from_us);
    if (status == CLI_DONE) {
        status = read_time(cli, command, "to", to, true, &to_us);
    }
    if (status != CLI_DONE) {
        return status;
    }
    *ret_from_us = from_us;
    *ret_to_us = to == NULL ? to_us : to_us / 1000000 * 1000000 + 999999; /* all of the last second */
    return CLI_DONE;
}
