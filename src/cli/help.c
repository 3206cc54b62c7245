#include "cli/help.h"

#include <string.h>

#include "base/utf8.h"
#include "version.h"

enum { PAGE_WIDTH = 80, HEADING_WIDTH = 24, OPTION_SENTENCE_SIZE = 640 };

static const char about[] = "mnemon - a peer-to-peer web archive";

/* A character of several bytes takes one column. */
static size_t columns_of(struct bytes text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        count += (text.data[i] & 0xc0) != 0x80;
    }
    return count;
}

/* Print words with line breaks; column says where the cursor is, indent where new lines begin. */
static void put_wrapped(FILE *out, struct bytes text, size_t column, size_t indent) {
    struct bytes word;
    bool is_first = true;
    while (bytes_split(&text, ' ', &word)) {
        if (!is_first && column + 1 + columns_of(word) > PAGE_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", BYTES_ARG(word));
        column += columns_of(word);
        is_first = false;
    }
    fputc('\n', out);
}

/* Where a line goes on below: of "  word  what it is" behind the word, of an example a little further in. */
static size_t hanging_indent(struct bytes line) {
    enum { EXAMPLE_INDENT = 4 };
    size_t start = 0;
    while (start < line.size && line.data[start] == ' ') {
        start++;
    }
    if (start == 0) {
        return 0;
    }
    for (size_t i = start; i + 2 < line.size; i++) {
        if (line.data[i] == ' ' && line.data[i + 1] == ' ' && line.data[i + 2] != ' ') {
            return i + 2;
        }
    }
    return start + EXAMPLE_INDENT;
}

/* Paragraphs are separated by an empty line; a line that begins with a space is one of a list, or an example.
 */
static void put_paragraphs(FILE *out, const char *details) {
    struct bytes rest = bytes_of_string(details);
    struct bytes line;
    while (bytes_split(&rest, '\n', &line)) {
        put_wrapped(out, line, 0, hanging_indent(line));
    }
}

void help_put_overview(FILE *out, const struct command *const *commands) {
    fprintf(out, "%s\n\nUsage: mnemon COMMAND [OPTION…] [ARGUMENT…]\n\nCommands:\n", about);
    for (; *commands != NULL; commands++) {
        fprintf(out, "  %-12s %s\n", (*commands)->name, (*commands)->summary);
    }
    fputs("\nRun \"mnemon COMMAND --help\" for the help of a command.\n"
          "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
          out);
}

static void option_heading(const struct option *option, char out[80]) {
    char letter[8] = "";
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    bool has_argument = option->argument != NULL;
    snprintf(out, 80, "%s--%s%s%s", letter, option->name, has_argument ? " " : "",
             has_argument ? option->argument : "");
}

void help_option_of(const struct option *option, char out[HELP_OPTION_OF_SIZE]) {
    struct bytes names = bytes_of_string(option->of != NULL ? option->of : "");
    struct bytes name;
    size_t size = 0;
    out[0] = '\0';
    while (bytes_split(&names, ' ', &name) && size < HELP_OPTION_OF_SIZE) {
        size += (size_t)snprintf(out + size, HELP_OPTION_OF_SIZE - size, "%s%.*s", size == 0 ? "" : ", ",
                                 BYTES_ARG(name));
    }
}

/* The help, for which actions it is, and the choices, if there are some. */
static void option_sentence(const struct option *option, bool has_actions, char out[OPTION_SENTENCE_SIZE]) {
    char names[HELP_OPTION_OF_SIZE] = "";
    if (has_actions) {
        help_option_of(option, names);
    }
    size_t size = (size_t)snprintf(out, OPTION_SENTENCE_SIZE, "%s%s%s", names, names[0] != '\0' ? ": " : "",
                                   option->help);
    for (size_t i = 0; option->choices != NULL && option->choices[i] != NULL && size < OPTION_SENTENCE_SIZE;
         i++) {
        size += (size_t)snprintf(out + size, OPTION_SENTENCE_SIZE - size, "%s%s", i == 0 ? ": " : ", ",
                                 option->choices[i]);
    }
}

static void put_option(FILE *out, const struct option *option, bool has_actions) {
    char heading[80];
    char sentence[OPTION_SENTENCE_SIZE];
    option_heading(option, heading);
    option_sentence(option, has_actions, sentence);
    fprintf(out, "  %-*s", HEADING_WIDTH - 2, heading);
    if (strlen(heading) > HEADING_WIDTH - 4) {
        fprintf(out, "\n%*s", HEADING_WIDTH, "");
    }
    put_wrapped(out, bytes_of_string(sentence), HEADING_WIDTH, HEADING_WIDTH);
}

static void put_help_option(FILE *out) {
    fprintf(out, "  %-*s%s\n", HEADING_WIDTH - 2, "-h, --help", "show this page");
}

static size_t action_heading(const struct command_action *action, char out[80]) {
    bool has_synopsis = action->synopsis != NULL;
    snprintf(out, 80, "%s%s%s", action->name, has_synopsis ? " " : "", has_synopsis ? action->synopsis : "");
    return columns_of(bytes_of_string(out));
}

static void put_actions(FILE *out, const struct command *command) {
    char heading[80];
    size_t width = 0;
    for (const struct command_action *action = command->actions; action->name != NULL; action++) {
        size_t needed = action_heading(action, heading);
        width = needed > width ? needed : width;
    }
    fputs("\nActions:\n", out);
    for (const struct command_action *action = command->actions; action->name != NULL; action++) {
        size_t taken = action_heading(action, heading);
        fprintf(out, "  %s%*s", heading, (int)(width - taken + 2), "");
        put_wrapped(out, bytes_of_string(action->summary), width + 4, width + 4);
    }
    fprintf(out, "\nRun \"mnemon %s ACTION --help\" for the help of an action.\n", command->name);
}

/* A table may serve several commands. */
static bool is_option_of(const struct option *option, const struct command *command) {
    const struct command_action *action = command->actions;
    while (action != NULL && action->name != NULL && !cli_option_is_of(option, action)) {
        action++;
    }
    return action == NULL || action->name != NULL;
}

void help_put_command(FILE *out, const struct command *command) {
    fprintf(out, "mnemon %s - %s\n\nUsage: mnemon %s %s\n", command->name, command->summary, command->name,
            command->synopsis);
    if (command->details != NULL) {
        fputc('\n', out);
        put_paragraphs(out, command->details);
    }
    if (command->actions != NULL) {
        put_actions(out, command);
    }
    fputs("\nOptions:\n", out);
    for (const struct option *option = command->options; option != NULL && option->name != NULL; option++) {
        if (is_option_of(option, command)) {
            put_option(out, option, command->actions != NULL);
        }
    }
    put_help_option(out);
}

void help_put_action(FILE *out, const struct command *command, const struct command_action *action) {
    char heading[80];
    char summary[OPTION_SENTENCE_SIZE];
    action_heading(action, heading);
    snprintf(summary, sizeof summary, "mnemon %s %s - %s", command->name, action->name, action->summary);
    put_wrapped(out, bytes_of_string(summary), 0, 0);
    fprintf(out, "\nUsage: mnemon %s %s [OPTION…]\n", command->name, heading);
    if (action->details != NULL) {
        fputc('\n', out);
        put_paragraphs(out, action->details);
    }
    fputs("\nOptions:\n", out);
    for (const struct option *option = command->options; option != NULL && option->name != NULL; option++) {
        if (cli_option_is_of(option, action)) {
            put_option(out, option, false);
        }
    }
    put_help_option(out);
}

/*
 * Text for roff: a backslash, a leading dot or quote would be a command; a hyphen would be a dash; what is
 * not ASCII is named by its code point, since groff reads Latin-1.
 */
static void put_roff(FILE *out, const char *string) {
    struct bytes text = bytes_of_string(string);
    if (text.size > 0 && (text.data[0] == '.' || text.data[0] == '\'')) {
        fputs("\\&", out);
    }
    while (text.size > 0) {
        size_t length;
        uint32_t code_point = utf8_decode(text, &length);
        if (code_point == '\\') {
            fputs("\\e", out);
        } else if (code_point == '-') {
            fputs("\\-", out);
        } else if (code_point >= 0x80) {
            fprintf(out, "\\[u%04X]", code_point);
        } else {
            fputc((int)code_point, out);
        }
        text = bytes_skip(text, length);
    }
}

static void put_roff_paragraphs(FILE *out, const char *details) {
    struct bytes rest = bytes_of_string(details);
    struct bytes line;
    while (bytes_split(&rest, '\n', &line)) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s", BYTES_ARG(line));
        bool is_example = text[0] == ' ';
        fputs(line.size == 0 ? ".sp" : is_example ? ".nf\n" : "", out);
        put_roff(out, text);
        fputs(is_example ? "\n.fi\n" : "\n", out);
    }
}

static void put_roff_action(FILE *out, const struct command_action *action) {
    char heading[80];
    action_heading(action, heading);
    fputs(".TP\n.B ", out);
    put_roff(out, heading);
    fputc('\n', out);
    put_roff(out, action->summary);
    fputs(".\n", out);
    if (action->details != NULL) {
        fputs(".IP\n", out);
        put_roff_paragraphs(out, action->details);
    }
}

static void put_roff_command(FILE *out, const struct command *command) {
    fputs(".SS \"mnemon ", out);
    put_roff(out, command->name);
    fputc(' ', out);
    put_roff(out, command->synopsis);
    fputs("\"\n", out);
    put_roff(out, command->summary);
    fputs(".\n", out);
    if (command->details != NULL) {
        fputs(".PP\n", out);
        put_roff_paragraphs(out, command->details);
    }
    for (const struct command_action *action = command->actions; action != NULL && action->name != NULL;
         action++) {
        put_roff_action(out, action);
    }
    for (const struct option *option = command->options; option != NULL && option->name != NULL; option++) {
        char heading[80];
        char sentence[OPTION_SENTENCE_SIZE];
        if (!is_option_of(option, command)) {
            continue;
        }
        option_heading(option, heading);
        option_sentence(option, command->actions != NULL, sentence);
        fputs(".TP\n.B ", out);
        put_roff(out, heading);
        fputc('\n', out);
        put_roff(out, sentence);
        fputs(".\n", out);
    }
}

static void put_man_page(FILE *out, const struct command *const *commands) {
    fprintf(out, ".TH MNEMON 1 \"\" \"mnemon %s\" \"User Commands\"\n", MNEMON_VERSION);
    fputs(".SH NAME\n", out);
    put_roff(out, about);
    fputs("\n"
          ".SH SYNOPSIS\n"
          ".B mnemon\n"
          ".I COMMAND\n"
          "[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
          ".SH DESCRIPTION\n"
          "mnemon archives web sites in plain WARC files and lets you browse their past. Several nodes can "
          "crawl, keep and serve the web together, without a central server.\n"
          "Options may stand before, between and after the arguments; \\fB\\-\\-\\fR ends them.\n"
          ".SH COMMANDS\n",
          out);
    for (; *commands != NULL; commands++) {
        put_roff_command(out, *commands);
    }
    fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n", out);
    fputs(".SH ENVIRONMENT\n"
          ".TP\n"
          ".B MNEMON_DATA\n"
          "The data directory, unless \\fB\\-\\-data\\fR is given. The default is "
          "\\fI~/.local/share/mnemon\\fR.\n",
          out);
    fputs(".SH SEE ALSO\n.BR wget (1),\n.BR curl (1)\n", out);
}

static void put_bash_option(FILE *out, const struct option *option, bool is_offered) {
    if (is_offered) {
        fprintf(out, " --%s", option->name);
    }
}

/* Behind an action only its own options are offered. */
static void put_bash_actions(FILE *out, const struct command *command) {
    const struct command_action *action = command->actions;
    for (; action != NULL && action->name != NULL; action++) {
        fprintf(out, "        \"%s \"*\" %s\") words=\"--help", command->name, action->name);
        for (const struct option *option = command->options; option != NULL && option->name != NULL;
             option++) {
            put_bash_option(out, option, cli_option_is_of(option, action));
        }
        fputs("\" ;;\n", out);
    }
}

/*
 * Completion words are generated whole: the shell function only looks up a list by the command's name, so
 * pressing Tab starts no program.
 */
static void put_bash_completion(FILE *out, const struct command *const *commands) {
    fputs("# bash completion for mnemon; made by: mnemon completion bash\n"
          "_mnemon() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} "
          "action=${COMP_WORDS[2]} words=\n"
          "    [ \"$COMP_CWORD\" -gt 2 ] || action=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        words=\"--help --version",
          out);
    for (const struct command *const *command = commands; *command != NULL; command++) {
        fprintf(out, " %s", (*command)->name);
    }
    fputs("\"\n    else\n        case \"${COMP_WORDS[1]} $previous $action\" in\n", out);
    for (const struct command *const *command = commands; *command != NULL; command++) {
        const struct option *option = (*command)->options;
        for (; option != NULL && option->name != NULL; option++) {
            if (option->choices == NULL) {
                continue;
            }
            fprintf(out, "        \"%s --%s \"*) words=\"", (*command)->name, option->name);
            for (size_t i = 0; option->choices[i] != NULL; i++) {
                fprintf(out, "%s%s", i == 0 ? "" : " ", option->choices[i]);
            }
            fputs("\" ;;\n", out);
        }
        put_bash_actions(out, *command);
        fprintf(out, "        \"%s \"*) words=\"--help", (*command)->name);
        for (option = (*command)->options; option != NULL && option->name != NULL; option++) {
            put_bash_option(out, option, is_option_of(option, *command));
        }
        const struct command_action *action = (*command)->actions;
        for (; action != NULL && action->name != NULL; action++) {
            fprintf(out, " %s", action->name);
        }
        for (size_t i = 0; (*command)->word != NULL && (*command)->word(i) != NULL; i++) {
            fprintf(out, " %s", (*command)->word(i));
        }
        fputs("\" ;;\n", out);
    }
    fputs("        esac\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "}\n"
          "complete -o default -F _mnemon mnemon\n",
          out);
}

struct help_options {
    bool man;
};

static int help_run(struct cli *cli, const void *values) {
    const struct help_options *options = values;
    if (options->man) {
        put_man_page(cli->out, cli->commands);
        return CLI_DONE;
    }
    if (cli->arguments_count == 0) {
        help_put_overview(cli->out, cli->commands);
        return CLI_DONE;
    }
    const struct command *command = cli_find(cli, cli->arguments[0]);
    if (command == NULL) {
        return cli_unknown_command(cli, cli->arguments[0]);
    }
    if (cli->arguments_count == 1) {
        help_put_command(cli->out, command);
        return CLI_DONE;
    }
    const struct command_action *action = cli_find_action(command, cli->arguments[1]);
    if (action != NULL) {
        help_put_action(cli->out, command, action);
        return CLI_DONE;
    }
    return command->actions != NULL
               ? cli_unknown_action(cli, command, cli->arguments[1])
               : cli_usage(cli, command, "it has no actions, so there is no \"%s\"", cli->arguments[1]);
}

static const struct option help_options[] = {
    OPTION(FLAG, struct help_options, man, "man", NULL, "print the man page, in roff"),
    {0},
};

const struct command help_command = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .synopsis = "[COMMAND [ACTION]]",
    .options = help_options,
    .options_size = sizeof(struct help_options),
    .arguments_max = 2,
    .run = help_run,
};

static int completion_run(struct cli *cli, const void *values) {
    (void)values;
    if (strcmp(cli->arguments[0], "bash") != 0) {
        return cli_usage(cli, &completion_command, "completion exists only for bash, not for \"%s\"",
                         cli->arguments[0]);
    }
    put_bash_completion(cli->out, cli->commands);
    return CLI_DONE;
}

static const char *completion_word(size_t index) {
    return index == 0 ? "bash" : NULL;
}

const struct command completion_command = {
    .name = "completion",
    .summary = "print the completion script for a shell",
    .synopsis = "bash",
    .details = "To enable completion in the running shell:\n\n  source <(mnemon completion bash)",
    .arguments_min = 1,
    .arguments_max = 1,
    .word = completion_word,
    .run = completion_run,
};
