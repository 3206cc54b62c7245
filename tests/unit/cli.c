/* cli: how words become options, and what wrong ones are answered. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

struct seen {
    bool flag;
    uint64_t number;
    uint64_t size;
    uint64_t duration_us;
    const char *text;
    uint32_t choice;
};

static const char *const colours[] = {"red", "green", "blue", NULL};

static const struct option options[] = {
    {.name = "flag", .letter = 'f', .type = OPTION_FLAG, .offset = offsetof(struct seen, flag), .help = "a"},
    {.name = "number",
     .letter = 'n',
     .type = OPTION_NUMBER,
     .offset = offsetof(struct seen, number),
     .argument = "N",
     .min = 1,
     .max = 10,
     .help = "b"},
    {.name = "size",
     .type = OPTION_SIZE,
     .offset = offsetof(struct seen, size),
     .argument = "SIZE",
     .max = UINT64_MAX,
     .help = "c"},
    {.name = "wait",
     .type = OPTION_DURATION,
     .offset = offsetof(struct seen, duration_us),
     .argument = "TIME",
     .max = UINT64_MAX,
     .help = "d"},
    {.name = "text",
     .type = OPTION_TEXT,
     .offset = offsetof(struct seen, text),
     .argument = "TEXT",
     .help = "e"},
    {.name = "colour",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct seen, choice),
     .argument = "COLOUR",
     .choices = colours,
     .help = "f"},
    {0},
};

static const struct seen defaults = {.number = 7, .text = "none"};

/* Writes what it got, so that the tests can compare text. */
static int probe_run(struct cli *cli, const void *values) {
    const struct seen *seen = values;
    fprintf(cli->out, "%d %ju %ju %ju %s %s |", seen->flag, (uintmax_t)seen->number, (uintmax_t)seen->size,
            (uintmax_t)seen->duration_us, seen->text, colours[seen->choice]);
    for (size_t i = 0; i < cli->arguments_count; i++) {
        fprintf(cli->out, " %s", cli->arguments[i]);
    }
    return CLI_DONE;
}

static const struct command probe = {
    .name = "probe",
    .summary = "shows what it got",
    .synopsis = "[OPTION…] [WORD…]",
    .options = options,
    .options_size = sizeof(struct seen),
    .defaults = &defaults,
    .arguments_max = 2,
    .run = probe_run,
};

static const struct command *const test_commands[] = {&probe, NULL};

/* One run of `mnemon LINE`; the line is split at spaces. */
struct outcome {
    int status;
    char *out;
    char *err;
};

static struct outcome run_line(const char *line) {
    char *copy = strdup(line);
    char *words[16] = {"mnemon"};
    int words_count = 1;
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        words[words_count++] = word;
    }
    struct outcome outcome = {0};
    size_t out_size;
    size_t err_size;
    struct cli cli = {
        .out = open_memstream(&outcome.out, &out_size),
        .err = open_memstream(&outcome.err, &err_size),
        .clock = &clock_system,
        .commands = test_commands,
    };
    outcome.status = commands_main(&cli, words_count, words);
    fclose(cli.out);
    fclose(cli.err);
    free(copy);
    return outcome;
}

static void outcome_done(struct outcome *outcome) {
    free(outcome->out);
    free(outcome->err);
}

static void expect_out(const char *line, const char *expected) {
    struct outcome outcome = run_line(line);
    assert_int_equal(outcome.status, CLI_DONE);
    assert_string_equal(outcome.out, expected);
    outcome_done(&outcome);
}

static void expect_usage(const char *line, const char *complaint) {
    struct outcome outcome = run_line(line);
    assert_int_equal(outcome.status, CLI_USAGE);
    assert_string_equal(outcome.out, "");
    if (strstr(outcome.err, complaint) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", complaint, outcome.err);
    }
    outcome_done(&outcome);
}

static void fills_defaults(void **state) {
    (void)state;
    expect_out("probe", "0 7 0 0 none red |");
}

static void reads_every_type_in_every_form(void **state) {
    (void)state;
    expect_out("probe --flag --number 3 --size 2KiB --wait 5s --text x --colour blue",
               "1 3 2048 5000000 x blue |");
    expect_out("probe --number=4 --size=1B --text= --colour=green", "0 4 1 0  green |");
    expect_out("probe -f -n 5", "1 5 0 0 none red |");
}

static void keeps_arguments_in_order_wherever_options_stand(void **state) {
    (void)state;
    expect_out("probe a --flag b", "1 7 0 0 none red | a b");
    expect_out("probe --flag -- --flag -n", "1 7 0 0 none red | --flag -n");
    expect_out("probe - x", "0 7 0 0 none red | - x");
}

static void refuses_wrong_usage_with_the_reason(void **state) {
    (void)state;
    expect_usage("prob", "unknown command \"prob\"; did you mean probe?");
    expect_usage("zebra", "unknown command \"zebra\"\n");
    expect_usage("probe --flog", "unknown option \"--flog\"; did you mean --flag?");
    expect_usage("probe -x", "unknown option \"-x\"");
    expect_usage("probe --f", "unknown option \"--f\"");
    expect_usage("probe -flag", "unknown option \"-flag\"");
    expect_usage("probe --number", "--number needs a value: N");
    expect_usage("probe --number 11", "--number: 11 is not between 1 and 10");
    expect_usage("probe --size 3", "--size: \"3\" is not a number with a unit");
    expect_usage("probe --colour rde", "--colour: \"rde\" is none of red, green, blue; did you mean red?");
    expect_usage("probe --flag=1", "--flag takes no value");
    expect_usage("probe a b c", "unexpected argument \"c\"");
}

static void shows_help_even_beside_other_words(void **state) {
    (void)state;
    struct outcome outcome = run_line("probe a b c --help");
    assert_int_equal(outcome.status, CLI_DONE);
    assert_non_null(strstr(outcome.out, "Usage: mnemon probe [OPTION…] [WORD…]"));
    assert_non_null(strstr(outcome.out, "-n, --number N"));
    assert_non_null(strstr(outcome.out, "f: red, green, blue"));
    outcome_done(&outcome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_defaults),
        cmocka_unit_test(reads_every_type_in_every_form),
        cmocka_unit_test(keeps_arguments_in_order_wherever_options_stand),
        cmocka_unit_test(refuses_wrong_usage_with_the_reason),
        cmocka_unit_test(shows_help_even_beside_other_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
