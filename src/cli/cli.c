#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/nearest.h"

enum { NAMES_SIZE_MAX = 1024 };

void cli_note(struct cli *cli, enum err err) {
    cli->unsaid = cli->unsaid == ERR_OK ? err : cli->unsaid;
}

void cli_write(struct cli *cli, struct buf *out) {
    fwrite(out->data, 1, out->size, cli->out);
    cli_note(cli, out->err);
    buf_done(out);
}

FILE *cli_open_input(const struct cli *cli, const char *path) {
    FILE *file = strcmp(path, "-") == 0 ? cli->in : fopen(path, "rbe");
    if (file == NULL) {
        cli_fail(cli, "%s: %s", path, strerror(errno));
    }
    return file;
}

void cli_close_input(const struct cli *cli, FILE *file) {
    if (file != cli->in) {
        fclose(file);
    }
}

int cli_read_secret(const struct cli *cli, const char *path, char out[CLI_SECRET_SIZE_MAX]) {
    FILE *file = cli_open_input(cli, path);
    if (file == NULL) {
        return CLI_FAILED;
    }
    bool is_read = fgets(out, CLI_SECRET_SIZE_MAX, file) != NULL;
    cli_close_input(cli, file);
    out[is_read ? strcspn(out, "\r\n") : 0] = '\0';
    return out[0] != '\0' ? CLI_DONE : cli_fail(cli, "%s: its first line is empty", path);
}

int cli_fail(const struct cli *cli, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("mnemon: ", cli->err);
    vfprintf(cli->err, format, arguments);
    fputc('\n', cli->err);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_usage(const struct cli *cli, const struct command *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(cli->err, "mnemon%s%s: ", command == NULL ? "" : " ", command == NULL ? "" : command->name);
    vfprintf(cli->err, format, arguments);
    va_end(arguments);
    if (command == NULL) {
        fputs("\nTry: mnemon --help\n", cli->err);
    } else {
        fprintf(cli->err, "\nTry: mnemon %s %s%s--help\n", command->name,
                cli->action_name == NULL ? "" : cli->action_name, cli->action_name == NULL ? "" : " ");
    }
    return CLI_USAGE;
}

const struct command *cli_find(const struct cli *cli, const char *name) {
    for (const struct command *const *command = cli->commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0) {
            return *command;
        }
    }
    return NULL;
}

const struct command_action *cli_find_action(const struct command *command, const char *name) {
    const struct command_action *action = command->actions;
    for (; action != NULL && action->name != NULL; action++) {
        if (strcmp(action->name, name) == 0) {
            return action;
        }
    }
    return NULL;
}

bool cli_option_is_of(const struct option *option, const struct command_action *action) {
    struct bytes names = bytes_of_string(option->of != NULL ? option->of : "");
    struct bytes name;
    bool is_of = option->of == NULL;
    while (!is_of && bytes_split(&names, ' ', &name)) {
        is_of = bytes_equal(name, bytes_of_string(action->name));
    }
    return is_of;
}

int cli_unknown_command(const struct cli *cli, const char *name) {
    struct nearest nearest;
    nearest_init(&nearest, bytes_of_string(name));
    for (const struct command *const *command = cli->commands; *command != NULL; command++) {
        nearest_offer(&nearest, (*command)->name);
    }
    char hint[NEAREST_HINT_SIZE];
    return cli_usage(cli, NULL, "unknown %s \"%s\"%s", name[0] == '-' ? "option" : "command", name,
                     nearest_hint(&nearest, "", hint));
}

int cli_unknown_action(const struct cli *cli, const struct command *command, const char *name) {
    struct nearest nearest;
    struct buf names;
    nearest_init(&nearest, bytes_of_string(name));
    buf_init(&names, NAMES_SIZE_MAX);
    for (const struct command_action *action = command->actions; action->name != NULL; action++) {
        bool is_last = action[1].name == NULL;
        buf_put_format(&names, "%s%s", names.size == 0 ? "" : is_last ? " or " : ", ", action->name);
        nearest_offer(&nearest, action->name);
    }
    char hint[NEAREST_HINT_SIZE];
    nearest_hint(&nearest, "", hint);
    int status = cli_usage(cli, command, "unknown action \"%s\"%s%s %.*s", name, hint,
                           hint[0] != '\0' ? " There are" : ":", BYTES_ARG(buf_bytes(&names)));
    buf_done(&names);
    return status;
}
