/*
 * cli - what a subcommand is, how its options are described, and how it ends.
 *
 * Each subcommand is one file of this folder that exports one `const struct command`; a family of actions
 * (ring, group, store, import, plan, archive) is several files that share the header of its name. The table
 * of options is their only description: parsing (commands.h), --help, the man page and the shell completion
 * all come from it.
 *
 * Exit status: 0 done, 1 failed, 2 wrong usage.
 */
#ifndef MNEMON_CLI_CLI_H
#define MNEMON_CLI_CLI_H

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* The world of a run, passed in so that tests can put their own. */
struct cli {
    FILE *in;
    FILE *out;
    FILE *err;
    const struct clock *clock;
    const struct command *const *commands; /* ended by NULL */
    bool can_execute_itself;               /* this is the program, and no test */

    /* What the command line says beside the options. */
    size_t action; /* index into the command's actions, whose name is not among the arguments any more */
    const char *action_name; /* NULL: the command has none, or none is chosen yet */
    char **arguments;
    size_t arguments_count;

    enum err unsaid; /* why a part of the output was left out: whatever was done, the command then fails */
};

/* The type of the field in the command's options struct follows each. */
enum option_type {
    OPTION_FLAG,     /* bool */
    OPTION_NUMBER,   /* uint64_t, between min and max */
    OPTION_SIZE,     /* uint64_t, bytes */
    OPTION_DURATION, /* uint64_t, microseconds */
    OPTION_TEXT,     /* const char * */
    OPTION_CHOICE,   /* uint32_t, index into choices */
    OPTION_LIST,     /* struct option_list: the option may be given several times */
};

enum { OPTION_LIST_COUNT_MAX = 100 };

struct option_list {
    const char *items[OPTION_LIST_COUNT_MAX];
    size_t count;
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* of the short form, or 0 */
    enum option_type type;
    size_t offset;
    const char *argument; /* how help names it: "URL"; NULL for flags */
    uint64_t min;
    uint64_t max;
    const char *const *choices; /* ended by NULL */
    const char *help;           /* one sentence without its stop; wrapped by the help page */
    const char *of;             /* the actions that it is for, such as "create amend"; NULL: all of them */
};

/*
 * One row of a table of options: `kind` is an option_type without its prefix. The help comes last, and after
 * it `.letter`, `.choices`, `.min`, `.max` and `.of` if the option has them.
 */
#define OPTION(kind, options, field, name_, argument_, ...)                                                  \
    {                                                                                                        \
        .name = (name_), .type = OPTION_##kind, .offset = offsetof(options, field), .argument = (argument_), \
        .help = __VA_ARGS__                                                                                  \
    }

/* One of several things that a command can do; its first argument names it. */
struct command_action {
    const char *name;
    const char *synopsis; /* what follows the name, and how many: "KEY…", "NAME [DIR]"; NULL: nothing */
    const char *summary;  /* for the list of actions: what it does, without a stop */
    const char *details;  /* paragraphs and examples for its own page; may be NULL */
    const char *needs;    /* is said if there are fewer; NULL: a sentence that fits all */
};

struct command {
    const char *name;
    const char *summary;          /* one line for the list of commands */
    const char *synopsis;         /* what follows the name: "[OPTION…] URL…" */
    const char *details;          /* paragraphs, separated by an empty line; may be NULL */
    const struct option *options; /* ended by a NULL name; may be NULL */
    size_t options_size;          /* of the struct the options point into */
    const void *defaults;         /* of that size, or NULL for zeros */
    size_t arguments_min;         /* of a command without actions */
    size_t arguments_max;
    const struct command_action *actions; /* ended by a NULL name; may be NULL */
    const char *(*word)(size_t index); /* what else completion offers as argument, then NULL; may be NULL */
    int (*run)(struct cli *cli, const void *options);
};

/* The command of that name, or NULL; and an action of one that has some. */
const struct command *cli_find(const struct cli *cli, const char *name);
const struct command_action *cli_find_action(const struct command *command, const char *name);

/* Is the option for that action? */
bool cli_option_is_of(const struct option *option, const struct command_action *action);

/* To cli->out, and the buffer is done. */
void cli_write(struct cli *cli, struct buf *out);

/* Something that belongs to the output could not be put together: unless it is ERR_OK, the command fails. */
void cli_note(struct cli *cli, enum err err);

/* A file that is read, or standard input for "-": NULL after the error. To be closed by cli_close_input(). */
FILE *cli_open_input(const struct cli *cli, const char *path);
void cli_close_input(const struct cli *cli, FILE *file);

enum { CLI_SECRET_SIZE_MAX = 1024 };

/*
 * The first line of a file, or of the input for "-": a secret that other users of the machine must not see
 * among the arguments. CLI_DONE, or the status after the error.
 */
int cli_read_secret(const struct cli *cli, const char *path, char out[CLI_SECRET_SIZE_MAX]);

/* "mnemon: <text>" on cli->err. Returns the status, so that `return cli_fail(…)` reads well. */
int cli_fail(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for wrong usage, and where to read more. */
int cli_usage(const struct cli *cli, const struct command *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Wrong usage: no such command or action, and which one was perhaps meant. */
int cli_unknown_command(const struct cli *cli, const char *name);
int cli_unknown_action(const struct cli *cli, const struct command *command, const char *name);

#endif
