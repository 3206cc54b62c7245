#include "cli/group.h"

#include "cli/commands.h"
#include "node/group/group_files.h"

enum { CREATE, CHANGE, JOIN, LEAVE, INVITE, APPROVE, REFUSE, STATUS };

static const struct command_action group_actions[] = {
    [CREATE] = {"create", 1, 1, "a group needs a name: mnemon group create NAME", NULL},
    [CHANGE] = {"change", 1, 1, "name the group: mnemon group change NAME --open", NULL},
    [JOIN] = {"join", 1, 1, "name the group and the address of a member: mnemon group join NAME@HOST", NULL},
    [LEAVE] = {"leave", 1, 1, "name the group: mnemon group leave NAME", NULL},
    [INVITE] = {"invite", 1, 1, "name the group: mnemon group invite NAME", NULL},
    [APPROVE] = {"approve", 2, 2,
                 "name the group and the node's key: mnemon group approve NAME KEY; \"mnemon group status\" "
                 "shows which nodes ask",
                 NULL},
    [REFUSE] = {"refuse", 2, 2, "name the group and the node's key: mnemon group refuse NAME KEY", NULL},
    [STATUS] = {"status", 0, 1, NULL, NULL},
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
    OPTION(FLAG, struct group_options, open, "open", NULL, "create, change: any node may join"),
    OPTION(FLAG, struct group_options, approve, "approve", NULL,
           "create, change: a node that wants to join waits for \"mnemon group approve\" at the master (the "
           "default)"),
    OPTION(FLAG, struct group_options, invite, "invite", NULL,
           "create, change: only nodes with a token may join"),
    OPTION(CHOICE, struct group_options, generator, "generator", "WHICH",
           "create, change: the kind of topology: sparse, which no single failed member or link splits (the "
           "default), or tree, as in flood-d",
           .choices = group_files_generators),
    OPTION(NUMBER, struct group_options, k, "k", "N",
           "create, change: the topology survives the failure of any K - 1 members (2)", .min = 1,
           .max = TOPOLOGY_K_MAX),
    OPTION(TEXT, struct group_options, token, "token", "TOKEN",
           "join: the token that \"mnemon group invite\" printed"),
    OPTION(TEXT, struct group_options, token_file, "token-file", "FILE",
           "join: read that token from the first line of a file, or of the input for -"),
    OPTION(TEXT, struct group_options, key, "for", "KEY",
           "invite: make a token for the node with this key only; \"mnemon ring status\" on its machine "
           "shows the key"),
    OPTION(DURATION, struct group_options, expires_us, "expires", "TIME",
           "invite: how long the token is valid (7 d)", .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(TEXT, struct group_options, dot, "dot", "FILE",
           "status: write the topology for Graphviz to a file, or to standard output where it is \"-\""),
    OPTION(TEXT, struct group_options, svg, "svg", "FILE", "status: write the topology as a drawing"),
    OPTION(FLAG, struct group_options, json, "json", NULL, "status: print JSON"),
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
        "  create NAME            create a group; the node of this data directory is its founder and first "
        "master\n"
        "  change NAME            change who may join (--open, --approve, --invite), the --generator or --k "
        "(founder)\n"
        "  join NAME@HOST[:PORT]  ask any member to be let in\n"
        "  leave NAME             leave the group; the others compute a topology without this node\n"
        "  invite NAME            print a token that lets a node in (founder)\n"
        "  approve NAME KEY       let in a node that asked (master)\n"
        "  refuse NAME KEY        keep a node out or remove it, even if it came with a token (master)\n"
        "  status [NAME]          show the members, the topology and its cost, the master, and nodes that "
        "ask\n\n"
        "  mnemon group create libraries --open && mnemon serve --address 192.0.2.1\n"
        "  mnemon group join libraries@192.0.2.1 && mnemon serve --address 192.0.2.2",
    .options = group_options,
    .options_size = sizeof(struct group_options),
    .defaults = &group_defaults,
    .arguments_min = 1,
    .arguments_max = 3,
    .actions = group_actions,
    .run = group_run,
};
