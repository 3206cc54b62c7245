#include "cli/commands.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/value.h"
#include "cli/help.h"

enum { OPTIONS_SIZE_MAX = 8192, OPTIONS_COUNT_MAX = 64 };

const struct command *const commands[] = {
    &archive_command, &job_command,     &serve_command,  &proxy_command,      &status_command,
    &ring_command,    &crowd_command,   &group_command,  &mirror_command,     &search_command,
    &list_command,    &get_command,     &import_command, &export_command,     &rm_command,
    &store_command,   &url_command,     &links_command,  &robots_command,     &plan_command,
    &sim_command,     &version_command, &help_command,   &completion_command, NULL,
};

/* The words of one command line while they are taken apart. */
struct parse {
    const struct cli *cli;
    const struct command *command;
    uint8_t *values;
    char **words;
    size_t words_count;
    size_t next;
    bool wants_help;
    bool is_given[OPTIONS_COUNT_MAX]; /* by the order of the command's options */
};

/* "--name", or "-n". */
static const struct option *find_option(const struct command *command, struct bytes name, bool is_long) {
    const struct option *option = command->options;
    for (; option != NULL && option->name != NULL; option++) {
        bool is_letter = name.size == 1 && option->letter != 0 && name.data[0] == (uint8_t)option->letter;
        if (is_long ? bytes_equal(name, bytes_of_string(option->name)) : is_letter) {
            return option;
        }
    }
    return NULL;
}

static int unknown_option(const struct parse *parse, const char *word, struct bytes name) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    nearest_offer(&nearest, "help");
    for (const struct option *option = parse->command->options; option != NULL && option->name != NULL;
         option++) {
        nearest_offer(&nearest, option->name);
    }
    char hint[NEAREST_HINT_SIZE];
    return cli_usage(parse->cli, parse->command, "unknown option \"%s\"%s", word,
                     nearest_hint(&nearest, "--", hint));
}

static enum err set_option(uint8_t *values, const struct option *option, const char *value,
                           struct err_detail *detail) {
    void *field = values + option->offset;
    struct bytes text = bytes_of_string(value);
    switch (option->type) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return ERR_OK;
    case OPTION_TEXT:
        *(const char **)field = value;
        return ERR_OK;
    case OPTION_NUMBER:
        return value_read_number(text, option->min, option->max, field, detail);
    case OPTION_SIZE:
        return value_read_size(text, option->min, option->max, field, detail);
    case OPTION_DURATION:
        return value_read_duration(text, option->min, option->max, field, detail);
    case OPTION_CHOICE:
        return value_read_choice(text, option->choices, field, detail);
    case OPTION_LIST: {
        struct option_list *list = field;
        if (list->count == OPTION_LIST_COUNT_MAX) {
            return err_set(detail, ERR_LIMIT, "given more than %d times", OPTION_LIST_COUNT_MAX);
        }
        list->items[list->count++] = value;
        return ERR_OK;
    }
    }
    assert_failed("every option_type has a reader", __FILE__, __LINE__);
}

/* One word that begins with a dash, and its value. */
static int parse_option(struct parse *parse, const char *word) {
    bool is_long = word[1] == '-';
    struct bytes name = bytes_of_string(word + (is_long ? 2 : 1));
    const char *value = NULL;
    size_t equals = bytes_find_byte(name, '=');
    if (is_long && equals < name.size) {
        value = (const char *)name.data + equals + 1;
        name.size = equals;
    }
    if (bytes_equal(name, BYTES("help")) || bytes_equal(name, BYTES("h"))) {
        parse->wants_help = true;
        return CLI_DONE;
    }
    const struct option *option = find_option(parse->command, name, is_long);
    if (option == NULL) {
        return unknown_option(parse, word, name);
    }
    if (option->type == OPTION_FLAG && value != NULL) {
        return cli_usage(parse->cli, parse->command, "--%s takes no value", option->name);
    }
    if (option->type != OPTION_FLAG && value == NULL) {
        if (parse->next == parse->words_count) {
            return cli_usage(parse->cli, parse->command, "--%s needs a value: %s", option->name,
                             option->argument);
        }
        value = parse->words[parse->next++];
    }
    ASSERT(option - parse->command->options < OPTIONS_COUNT_MAX);
    parse->is_given[option - parse->command->options] = true;
    struct err_detail detail = {0};
    enum err err = set_option(parse->values, option, value == NULL ? "" : value, &detail);
    if (err != ERR_OK) {
        return cli_usage(parse->cli, parse->command, "--%s: %s", option->name, err_detail_text(&detail, err));
    }
    return CLI_DONE;
}

/* Take the words apart; the arguments move to the front of parse->words. */
static int parse_words(struct parse *parse, size_t *ret_arguments_count) {
    size_t arguments_count = 0;
    bool options_ended = false;
    while (parse->next < parse->words_count) {
        char *word = parse->words[parse->next++];
        if (!options_ended && strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (!options_ended && word[0] == '-' && word[1] != '\0') {
            int status = parse_option(parse, word);
            if (status != CLI_DONE || parse->wants_help) {
                *ret_arguments_count = arguments_count;
                return status;
            }
        } else {
            parse->words[arguments_count++] = word;
        }
    }
    *ret_arguments_count = arguments_count;
    return CLI_DONE;
}

/* What an option says and nobody reads would be believed. */
static int refuse_options_of_others(const struct parse *parse, const struct command_action *action) {
    const struct option *options = parse->command->options;
    for (size_t i = 0; options != NULL && options[i].name != NULL; i++) {
        if (parse->is_given[i] && !cli_option_is_of(&options[i], action)) {
            char names[HELP_OPTION_OF_SIZE];
            help_option_of(&options[i], names);
            return cli_usage(parse->cli, parse->command, "--%s is not for \"%s\", but for %s",
                             options[i].name, action->name, names);
        }
    }
    return CLI_DONE;
}

/* As the synopsis has it: "NAME KEY" are two, "[NAME]" is one or none, "KEY…" one or more, "--whole" none. */
static void parse_synopsis(const char *synopsis, size_t *ret_min, size_t *ret_max) {
    struct bytes rest = bytes_of_string(synopsis != NULL ? synopsis : "");
    struct bytes word;
    *ret_min = 0;
    *ret_max = 0;
    while (bytes_split(&rest, ' ', &word)) {
        bool is_argument = word.size > 0 && word.data[0] != '-';
        *ret_min += is_argument && word.data[0] != '[';
        *ret_max = bytes_find(word, BYTES("…")) < word.size ? SIZE_MAX : *ret_max + is_argument;
    }
}

static int choose_action(struct cli *cli, const struct parse *parse) {
    const struct command *command = parse->command;
    const char *name = cli->arguments[0];
    const struct command_action *action = cli_find_action(command, name);
    if (action == NULL) {
        return cli_unknown_action(cli, command, name);
    }
    cli->action = (size_t)(action - command->actions);
    cli->action_name = action->name;
    cli->arguments++;
    cli->arguments_count--;
    size_t min;
    size_t max;
    parse_synopsis(action->synopsis, &min, &max);
    if (cli->arguments_count < min) {
        return action->needs != NULL ? cli_usage(cli, command, "%s", action->needs)
                                     : cli_usage(cli, command, "an argument is missing: mnemon %s %s %s",
                                                 command->name, name, action->synopsis);
    }
    if (cli->arguments_count > max) {
        const char *excess = cli->arguments[max];
        return max == 0
                   ? cli_usage(cli, command, "unexpected argument \"%s\": \"%s\" takes none", excess, name)
                   : cli_usage(cli, command, "unexpected argument \"%s\": mnemon %s %s %s", excess,
                               command->name, name, action->synopsis);
    }
    return refuse_options_of_others(parse, action);
}

/* The page of the action that was named before the option, else of the command. */
static int parse_help(const struct parse *parse, size_t arguments_count) {
    const struct cli *cli = parse->cli;
    const struct command_action *action =
        arguments_count > 0 ? cli_find_action(parse->command, parse->words[0]) : NULL;
    if (action != NULL) {
        help_put_action(cli->out, parse->command, action);
    } else {
        help_put_command(cli->out, parse->command);
    }
    return CLI_DONE;
}

static int run_command(struct cli *cli, const struct command *command, char **words, size_t words_count) {
    _Alignas(max_align_t) uint8_t values[OPTIONS_SIZE_MAX] = {0};
    ASSERT(command->options_size <= sizeof values);
    if (command->defaults != NULL) {
        memcpy(values, command->defaults, command->options_size);
    }
    struct parse parse = {
        .cli = cli,
        .command = command,
        .values = values,
        .words = words,
        .words_count = words_count,
    };
    size_t arguments_count = 0;
    int status = parse_words(&parse, &arguments_count);
    if (status != CLI_DONE) {
        return status;
    }
    if (parse.wants_help) {
        return parse_help(&parse, arguments_count);
    }
    bool has_actions = command->actions != NULL;
    if (arguments_count < (has_actions ? 1 : command->arguments_min)) {
        return cli_usage(cli, command, "an argument is missing: mnemon %s %s", command->name,
                         command->synopsis);
    }
    if (arguments_count > command->arguments_max && !has_actions) {
        return cli_usage(cli, command, "unexpected argument \"%s\"", words[command->arguments_max]);
    }
    cli->arguments = words;
    cli->arguments_count = arguments_count;
    status = has_actions ? choose_action(cli, &parse) : CLI_DONE;
    return status == CLI_DONE ? command->run(cli, values) : status;
}

static int dispatch(struct cli *cli, int argc, char **argv) {
    if (argc < 2) {
        help_put_overview(cli->err, cli->commands);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    }
    const struct command *command = cli_find(cli, name);
    if (command == NULL) {
        return cli_unknown_command(cli, name);
    }
    return run_command(cli, command, argv + 2, (size_t)argc - 2);
}

int commands_main(struct cli *cli, int argc, char **argv) {
    int status = dispatch(cli, argc, argv);
    if (fflush(cli->out) != 0 || ferror(cli->out)) {
        /* A reader that has seen enough (head, less) is no failure worth a message. */
        return errno == EPIPE
                   ? CLI_FAILED
                   : cli_fail(cli, "cannot write the output: %s", strerror(errno != 0 ? errno : EIO));
    }
    return cli->unsaid == ERR_OK ? status
                                 : cli_fail(cli, "cannot print all of it: %s", err_text(cli->unsaid));
}
