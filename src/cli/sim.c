#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "cli/commands.h"
#include "sim/experiments/experiment.h"
#include "sim/report/plot.h"

enum { REPORT_SIZE_MAX = 64 << 20 };

struct sim_options {
    uint64_t seed;
    uint64_t nodes;
    uint64_t runs;
    const char *breakage;
    const char *csv;
    const char *svg;
    bool json;
};

static const struct sim_options sim_defaults = {.seed = 1};

typedef enum err report_writer(const struct report *report, struct buf *out);

static int list_experiments(struct cli *cli, bool is_json) {
    struct json json;
    json_init_file(&json, cli->out);
    for (size_t i = 0; i < experiments_count; i++) {
        if (is_json) {
            json_open(&json, NULL);
            json_text(&json, "name", experiments[i].name);
            json_text(&json, "summary", experiments[i].summary);
            json_close(&json);
        } else {
            fprintf(cli->out, "%-22s %s\n", experiments[i].name, experiments[i].summary);
        }
    }
    cli_note(cli, json_done(&json));
    return CLI_DONE;
}

static int unknown_experiment(struct cli *cli, const char *name) {
    struct nearest nearest;
    nearest_init(&nearest, bytes_of_string(name));
    for (size_t i = 0; i < experiments_count; i++) {
        nearest_offer(&nearest, experiments[i].name);
    }
    char hint[NEAREST_HINT_SIZE];
    return cli_usage(cli, &sim_command, "there is no experiment \"%s\"%s", name,
                     nearest_hint(&nearest, "", hint));
}

/* Is this something that the experiment can leave out? NULL always is. */
static bool has_breakage(const struct experiment *experiment, const char *breakage) {
    if (breakage == NULL) {
        return true;
    }
    for (size_t i = 0; experiment->breakages != NULL && experiment->breakages[i] != NULL; i++) {
        if (strcmp(experiment->breakages[i], breakage) == 0) {
            return true;
        }
    }
    return false;
}

static int unknown_breakage(struct cli *cli, const struct experiment *experiment, const char *breakage) {
    if (experiment->breakages == NULL) {
        return cli_usage(cli, &sim_command, "%s has no rule to leave out with --break", experiment->name);
    }
    struct nearest nearest;
    nearest_init(&nearest, bytes_of_string(breakage));
    for (size_t i = 0; experiment->breakages[i] != NULL; i++) {
        nearest_offer(&nearest, experiment->breakages[i]);
    }
    char hint[NEAREST_HINT_SIZE];
    return cli_usage(cli, &sim_command, "%s cannot break \"%s\"%s", experiment->name, breakage,
                     nearest_hint(&nearest, "", hint));
}

static int write_to(struct cli *cli, FILE *file, const char *name, const struct report *report,
                    report_writer *writer) {
    struct buf out;
    buf_init(&out, REPORT_SIZE_MAX);
    enum err err = writer(report, &out);
    int status = CLI_DONE;
    if (err == ERR_UNSUPPORTED) {
        status = cli_fail(cli, "%s: this experiment has no plot", name);
    } else if (err != ERR_OK) {
        status = cli_fail(cli, "%s: %s", name, err_text(err));
    } else if (fwrite(out.data, 1, out.size, file) != out.size) {
        status = cli_fail(cli, "%s: %s", name, strerror(errno));
    }
    buf_done(&out);
    return status;
}

/* Nothing to do for a NULL path. */
static int sim_write_file(struct cli *cli, const char *path, const struct report *report,
                          report_writer *writer) {
    if (path == NULL) {
        return CLI_DONE;
    }
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return cli_fail(cli, "%s: %s", path, strerror(errno));
    }
    int status = write_to(cli, file, path, report, writer);
    if (fclose(file) != 0 && status == CLI_DONE) {
        status = cli_fail(cli, "%s: %s", path, strerror(errno));
    }
    return status;
}

static int write_report(struct cli *cli, const struct sim_options *options, const struct report *report) {
    int status =
        write_to(cli, cli->out, "output", report, options->json ? report_write_json : report_write_text);
    if (status == CLI_DONE) {
        status = sim_write_file(cli, options->csv, report, report_write_csv);
    }
    if (status == CLI_DONE) {
        status = sim_write_file(cli, options->svg, report, plot_write_svg);
    }
    return status;
}

static int sim_run(struct cli *cli, const void *values) {
    const struct sim_options *options = values;
    const char *name = cli->arguments[0];
    if (strcmp(name, "list") == 0) {
        return list_experiments(cli, options->json);
    }
    const struct experiment *experiment = experiment_find(bytes_of_string(name));
    if (experiment == NULL) {
        return unknown_experiment(cli, name);
    }
    if (!has_breakage(experiment, options->breakage)) {
        return unknown_breakage(cli, experiment, options->breakage);
    }
    struct experiment_args args = {
        .seed = options->seed,
        .nodes = (uint32_t)options->nodes,
        .runs = (uint32_t)options->runs,
        .breakage = options->breakage,
    };
    struct report report;
    struct err_detail detail = {0};
    enum err err = experiment_start(experiment, args, &report, &detail);
    int status = err == ERR_OK ? write_report(cli, options, &report)
                               : cli_fail(cli, "%s: %s", name, err_detail_text(&detail, err));
    report_done(&report);
    return status;
}

static const char *sim_word(size_t index) {
    return index == 0 ? "list" : index - 1 < experiments_count ? experiments[index - 1].name : NULL;
}

static const struct option sim_options[] = {
    OPTION(NUMBER, struct sim_options, seed, "seed", "S",
           "the seed of all randomness (1); equal seeds give equal runs", .max = UINT64_MAX),
    OPTION(NUMBER, struct sim_options, nodes, "nodes", "N", "how many nodes; each experiment has a default",
           .min = 1, .max = 1 << 24),
    OPTION(NUMBER, struct sim_options, runs, "runs", "R", "how many runs; each experiment has a default",
           .min = 1, .max = 100000000),
    OPTION(TEXT, struct sim_options, breakage, "break", "RULE",
           "leave out a rule, to see the checks fail; ring-invariants: guard, padding or none"),
    OPTION(TEXT, struct sim_options, csv, "csv", "FILE", "also write the table as CSV"),
    OPTION(TEXT, struct sim_options, svg, "svg", "FILE", "also draw the table as a plot"),
    OPTION(FLAG, struct sim_options, json, "json", NULL, "print JSON instead of a table"),
    {0},
};

const struct command sim_command = {
    .name = "sim",
    .summary = "run an experiment in the deterministic simulator",
    .synopsis = "EXPERIMENT|list [OPTION…]",
    .details = "Runs the same protocol code as a real node, in a virtual world with thousands of nodes, a "
               "network that loses, delays and repeats, and disks that tear and fill up. Prints a table and "
               "a digest of all events: equal arguments give an equal digest.\n\n"
               "\"mnemon sim list\" lists the experiments.",
    .options = sim_options,
    .options_size = sizeof(struct sim_options),
    .defaults = &sim_defaults,
    .arguments_min = 1,
    .arguments_max = 1,
    .word = sim_word,
    .run = sim_run,
};
