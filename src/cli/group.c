#include "cli/group.h"

#include "cli/commands.h"
#include "node/group/group_files.h"

enum { CREATE, CHANGE, JOIN, LEAVE, INVITE, APPROVE, REFUSE, STATUS };

static const struct command_action group_actions[] = {
    [CREATE] =
        {
            .name = "create",
            .synopsis = "NAME",
            .summary = "create a group; the node of this data directory is its founder and first master",
            .details = "  mnemon group create libraries --open --k 3\n"
                       "  mnemon serve --address 192.0.2.1",
            .needs = "a group needs a name: mnemon group create NAME",
        },
    [CHANGE] =
        {
            .name = "change",
            .synopsis = "NAME",
            .summary = "change who may join (--open, --approve, --invite), the --generator or --k (founder)",
            .details = "What no option names stays as it is.\n\n"
                       "  mnemon group change libraries --approve",
            .needs = "name the group: mnemon group change NAME --open",
        },
    [JOIN] =
        {
            .name = "join",
            .synopsis = "NAME@HOST[:PORT]",
            .summary = "ask any member to be let in",
            .details =
                "If the group wants approval, this node waits until \"mnemon group approve\" was said at "
                "the master.\n\n"
                "  mnemon group join libraries@192.0.2.1 --token-file token",
            .needs = "name the group and the address of a member: mnemon group join NAME@HOST",
        },
    [LEAVE] =
        {
            .name = "leave",
            .synopsis = "NAME",
            .summary = "leave the group; the others compute a topology without this node",
            .details = "Collections that this node has a copy of stay here.\n\n"
                       "  mnemon group leave libraries",
            .needs = "name the group: mnemon group leave NAME",
        },
    [INVITE] =
        {
            .name = "invite",
            .synopsis = "NAME",
            .summary = "print a token that lets a node in (founder)",
            .details = "  mnemon group invite libraries --expires '1 d' > token",
            .needs = "name the group: mnemon group invite NAME",
        },
    [APPROVE] =
        {
            .name = "approve",
            .synopsis = "NAME KEY",
            .summary = "let in a node that asked (master)",
            .details = "\"mnemon group status\" shows which nodes ask.\n\n"
                       "  mnemon group approve libraries KEY",
            .needs = "name the group and the node's key: mnemon group approve NAME KEY; \"mnemon group "
                     "status\" shows which nodes ask",
        },
    [REFUSE] =
        {
            .name = "refuse",
            .synopsis = "NAME KEY",
            .summary = "keep a node out or remove it, even if it came with a token (master)",
            .details = "  mnemon group refuse libraries KEY",
            .needs = "name the group and the node's key: mnemon group refuse NAME KEY",
        },
    [STATUS] =
        {
            .name = "status",
            .synopsis = "[NAME]",
            .summary = "show the members, the topology and its cost, the master, and nodes that ask",
            .details = "  mnemon group status libraries --svg topology.svg",
        },
    {0},
};

static int group_run(struct cli *cli, const void *values) {
    const struct group_options *options = values;
    const char *name = cli->arguments_count > 0 ? cli->arguments[0] : NULL;
    struct data data;
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    switch (cli->action) {
    case CREATE:
        return group_create(cli, &data, options, name);
    case CHANGE:
        return group_change(cli, &data, options, name);
    case JOIN:
        return group_join(cli, &data, options, name);
    case LEAVE:
        return group_leave(cli, &data, name);
    case INVITE:
        return group_invite(cli, &data, options, name);
    case APPROVE:
    case REFUSE:
        return group_judge(cli, &data, name, cli->arguments[1], cli->action == APPROVE);
    default:
        return group_status(cli, &data, options, name);
    }
}

static const struct group_options group_defaults = {.expires_us = UINT64_MAX,
                                                    .generator = GROUP_GENERATOR_NOT_GIVEN};

static const struct option group_options[] = {
    OPTION(TEXT, struct group_options, data, "data", "DIR", DATA_HELP),
    OPTION(FLAG, struct group_options, open, "open", NULL, "any node may join", .of = "create change"),
    OPTION(FLAG, struct group_options, approve, "approve", NULL,
           "a node that wants to join waits for \"mnemon group approve\" at the master (the "
           "default)",
           .of = "create change"),
    OPTION(FLAG, struct group_options, invite, "invite", NULL, "only nodes with a token may join",
           .of = "create change"),
    OPTION(CHOICE, struct group_options, generator, "generator", "WHICH",
           "the kind of topology: sparse, which no single failed member or link splits (the "
           "default), or tree, as in flood-d",
           .choices = group_files_generators, .of = "create change"),
    OPTION(NUMBER, struct group_options, k, "k", "N",
           "the topology survives the failure of any K - 1 members (2)", .min = 1, .max = TOPOLOGY_K_MAX,
           .of = "create change"),
    OPTION(TEXT, struct group_options, token, "token", "TOKEN",
           "the token that \"mnemon group invite\" printed", .of = "join"),
    OPTION(TEXT, struct group_options, token_file, "token-file", "FILE",
           "read that token from the first line of a file, or of the input for -", .of = "join"),
    OPTION(TEXT, struct group_options, key, "for", "KEY",
           "make a token for the node with this key only; \"mnemon ring status\" on its machine "
           "shows the key",
           .of = "invite"),
    OPTION(DURATION, struct group_options, expires_us, "expires", "TIME", "how long the token is valid (7 d)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX, .of = "invite"),
    OPTION(TEXT, struct group_options, dot, "dot", "FILE",
           "write the topology for Graphviz to a file, or to standard output where it is \"-\"",
           .of = "status"),
    OPTION(TEXT, struct group_options, svg, "svg", "FILE", "write the topology as a drawing", .of = "status"),
    OPTION(FLAG, struct group_options, json, "json", NULL, "print JSON", .of = "status"),
    {0},
};

const struct command group_command = {
    .name = "group",
    .summary = "create, join and manage groups of nodes that share collections",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "The nodes of a group pass whole collections on to each other. They measure the network, compute a "
        "topology and repair it by themselves. A group needs no ring. A node may be in several groups and "
        "then passes collections on between them. A running node notices changes made here within a "
        "second.\n\n"
        "  mnemon group create libraries --open && mnemon serve --address 192.0.2.1\n"
        "  mnemon group join libraries@192.0.2.1 && mnemon serve --address 192.0.2.2",
    .options = group_options,
    .options_size = sizeof(struct group_options),
    .defaults = &group_defaults,
    .actions = group_actions,
    .run = group_run,
};
