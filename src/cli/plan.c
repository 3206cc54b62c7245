#include "cli/plan.h"

#include <stdio.h>

#include "cli/commands.h"

enum { OUT_SIZE_MAX = 1 << 20, NOTES_SIZE_MAX = 1 << 16 };

const char *const plan_presets[] = {
    [CAPACITY_TODAY] = "today",
    [CAPACITY_THESIS] = "thesis",
    [CAPACITY_THESIS_LIGHT] = "thesis-light",
    NULL,
};

static const struct plan_options plan_defaults = {.preset = CAPACITY_TODAY};

const char *plan_origin_name(enum plan_origin origin) {
    static const char *const names[] = {"preset", "measured", "given", "open"};
    return names[origin];
}

/* ---- inputs ---- */

/* A user that gives the nodes asks for their disks, and one that gives the disks for the nodes, whatever the
 * preset has. */
static void leave_open(struct plan *plan, enum capacity_field given, enum capacity_field open) {
    if (plan->origins[given] == PLAN_GIVEN && plan->origins[open] != PLAN_GIVEN) {
        *capacity_at(&plan->inputs, open) = 0;
        plan->origins[open] = PLAN_OPEN;
    }
}

static int read_given(struct cli *cli, const struct plan_options *options, struct plan *plan) {
    for (size_t i = 0; i < CAPACITY_FIELDS_COUNT; i++) {
        enum capacity_field field = (enum capacity_field)i;
        if (options->given[i] == NULL) {
            continue;
        }
        struct err_detail detail = {0};
        enum err err =
            plan_read(field, bytes_of_string(options->given[i]), capacity_at(&plan->inputs, field), &detail);
        if (err != ERR_OK) {
            return cli_usage(cli, &plan_command, "--%s: %s", capacity_fields[i].name,
                             err_detail_text(&detail, err));
        }
        plan->origins[i] = PLAN_GIVEN;
    }
    leave_open(plan, CAPACITY_NODES, CAPACITY_DISK);
    leave_open(plan, CAPACITY_DISK, CAPACITY_NODES);
    if (plan->inputs.nodes_count == 0) {
        plan->origins[CAPACITY_NODES] = PLAN_OPEN;
    }
    return CLI_DONE;
}

static int read_archive(struct cli *cli, const struct plan_options *options, struct plan *plan) {
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_READ);
    if (status != CLI_DONE) {
        return status;
    }
    snprintf(plan->directory, sizeof plan->directory, "%s", data.directory);
    status = plan_measure(cli, options, &data, &plan->measure);
    data_close(&data);
    if (status == CLI_DONE) {
        plan->is_measured = true;
        plan_apply(plan);
    }
    return status;
}

static int make_plan(struct cli *cli, const struct plan_options *options, struct plan *plan) {
    plan->preset = (enum capacity_preset)options->preset;
    capacity_preset(plan->preset, &plan->inputs);
    int status = read_given(cli, options, plan);
    struct err_detail detail = {0};
    /* First without the archive, so that a slip of the pen does not cost a walk over it. */
    enum err err = status == CLI_DONE ? capacity_compute(&plan->inputs, &plan->capacity, &detail) : ERR_OK;
    if (err == ERR_OK && status == CLI_DONE && (options->measured || options->data != NULL)) {
        status = read_archive(cli, options, plan);
        err = status == CLI_DONE ? capacity_compute(&plan->inputs, &plan->capacity, &detail) : ERR_OK;
    }
    return err == ERR_OK ? status : cli_usage(cli, &plan_command, "%s", err_detail_text(&detail, err));
}

static int plan_run(struct cli *cli, const void *values) {
    const struct plan_options *options = values;
    struct plan plan = {.preset = CAPACITY_TODAY};
    buf_init(&plan.notes, NOTES_SIZE_MAX);
    int status = make_plan(cli, options, &plan);
    if (status == CLI_DONE) {
        struct buf out;
        buf_init(&out, OUT_SIZE_MAX);
        plan_put_notes(&plan);
        (options->json ? plan_put_json : plan_put_text)(&plan, &out);
        fwrite(out.data, 1, out.size, cli->out);
        status = out.err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_text(out.err));
        buf_done(&out);
    }
    buf_done(&plan.notes);
    return status;
}

const struct command plan_command = {
    .name = "plan",
    .summary = "estimate the nodes, disks and bandwidth an archive needs",
    .synopsis = "[OPTION…]",
    .details = "Prints what an archive on a ring needs: storage over time, nodes or disks, requests and "
               "bandwidth of each node, the safety of the copies, and the cost of links. It starts from the "
               "figures of a preset. Options replace single figures; --measured, or --data DIR, replaces "
               "those that your own archive shows (sizes, changes, duplicates, links). docs/plan.md explains "
               "the formulas and the sources of the figures.\n\n"
               "  mnemon plan --disk '4 TB'                 how many nodes\n"
               "  mnemon plan --nodes 12 --pages 5M         what each of 12 nodes needs\n"
               "  mnemon plan --measured --pages 20M        a larger archive like your own\n"
               "  mnemon plan --preset thesis --json        the figures of the Herodotus thesis\n\n"
               "Counts may be written as 2.5M or 3B, shares as 5%, sizes as 12 KB, times as 30 d, rates as "
               "100 Mbit/s. --nodes without --disk estimates the disks, --disk without --nodes the nodes.",
    .options = plan_options,
    .options_size = sizeof(struct plan_options),
    .defaults = &plan_defaults,
    .run = plan_run,
};
