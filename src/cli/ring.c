#include "cli/ring.h"

#include "cli/commands.h"
#include "cli/decree.h"
#include "cli/period.h"
#include "node/node_file.h"
#include "node/ring/deletion_text.h"
#include "node/transport/ring_files.h"
#include "node/transport/transport.h"

enum {
    CREATE,
    INVITE,
    STATUS,
    AMEND,
    REMOVE,
    LEAVE,
    LOOKUP,
    TAKEDOWN,
    RESTORE,
    DELETE,
    DELETIONS,
    WAIT,
};

#define NAME_URL "name a URL: mnemon ring lookup|takedown|restore URL"

static const struct command_action ring_actions[] = {
    [CREATE] = {"create", 1, 1, "name the ring: mnemon ring create NAME", NULL},
    [INVITE] = {"invite", 0, 0, NULL, NULL},
    [STATUS] = {"status", 0, 0, NULL, NULL},
    [AMEND] = {"amend", 0, 0, NULL, NULL},
    [REMOVE] = {"remove", 1, SIZE_MAX, "name a key; \"mnemon ring status\" shows them", NULL},
    [LEAVE] = {"leave", 0, 0, NULL, NULL},
    [LOOKUP] = {"lookup", 1, 1, NAME_URL, NULL},
    [TAKEDOWN] = {"takedown", 1, 1, NAME_URL, NULL},
    [RESTORE] = {"restore", 1, 1, NAME_URL, NULL},
    [DELETE] = {"delete", 1, DELETION_TEXT_URLS_MAX, "name a URL: mnemon ring delete URL… --reason TEXT",
                NULL},
    [DELETIONS] = {"deletions", 0, 0, NULL, NULL},
    [WAIT] = {"wait", 0, 0, NULL, NULL},
    {0},
};
static const char *const jobs_words[] = {"members", "founder", NULL};

/* Leaving and crashing are the same thing to a ring: it is enough that the node no longer comes back. */
static int leave(struct cli *cli, const struct data *data) {
    struct node_file node;
    struct err_detail detail = {0};
    if (node_file_read(data->directory, &node, NULL) == ERR_OK) {
        return cli_fail(cli, "a node runs on %s (process %jd); stop it first", data->directory,
                        (intmax_t)node.pid);
    }
    enum err err = ring_files_leave(data->directory, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "left the ring; its files are kept as %s/ring/*.left\n", data->directory);
    return CLI_DONE;
}

static int ring_delete(struct cli *cli, const struct data *data, const struct ring_options *options) {
    int64_t now_us = clock_wall_us(cli->clock);
    struct decree_period period;
    int status = period_read(cli, &ring_command, options->from, options->to, &period.from_us, &period.to_us);
    period.is_until_now = status == CLI_DONE && period.to_us >= now_us;
    period.to_us = period.is_until_now ? now_us : period.to_us; /* what comes later is not affected */
    return status == CLI_DONE ? decree_delete(cli, data, &period, options->reason) : status;
}

static int ring_run(struct cli *cli, const void *values) {
    const struct ring_options *options = values;
    struct data data;
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    switch (cli->action) {
    case CREATE:
        return ring_create(cli, &data, options, cli->arguments[0]);
    case INVITE:
        return ring_invite(cli, &data, options);
    case STATUS:
        return ring_status(cli, &data, options);
    case AMEND:
        return ring_amend(cli, &data, options);
    case REMOVE:
        return ring_remove(cli, &data);
    case LEAVE:
        return leave(cli, &data);
    case WAIT:
        return ring_wait(cli, &data, options);
    case LOOKUP:
        return ring_lookup(cli, &data, options, cli->arguments[0]);
    case DELETE:
        return ring_delete(cli, &data, options);
    case DELETIONS:
        return decree_list_deletions(cli, &data, options->json);
    default:
        return decree_rule(cli, &data, cli->arguments[0], cli->action == TAKEDOWN);
    }
}

static const struct ring_options ring_defaults = {
    .mapping = RING_NOT_GIVEN,
    .jobs = RING_NOT_GIVEN,
    .expires_us = UINT64_MAX,
    .timeout_us = UINT64_MAX,
};

static const struct option ring_options[] = {
    OPTION(TEXT, struct ring_options, data, "data", "DIR", DATA_HELP),
    OPTION(NUMBER, struct ring_options, replicas, "replicas", "N",
           "create, amend: how many nodes keep each document (6)", .min = 1, .max = CHARTER_REPLICAS_MAX),
    OPTION(NUMBER, struct ring_options, witnesses, "witnesses", "N",
           "create, amend: how many of them fetch it from its origin (1); the others copy it", .min = 1,
           .max = CHARTER_REPLICAS_MAX),
    OPTION(NUMBER, struct ring_options, list_size, "list-size", "N",
           "create: how many positions after its own a node watches (8); cannot be changed later", .min = 2,
           .max = CHARTER_LIST_SIZE_MAX),
    OPTION(CHOICE, struct ring_options, mapping, "mapping", "WHAT",
           "create: what decides which nodes keep a document: its url (the default), its host, or its "
           "section, which is the host and the first part of the path; cannot be changed later",
           .choices = charter_mappings),
    OPTION(DURATION, struct ring_options, period_us, "period", "TIME",
           "create, amend: how often everything is crawled (1 d)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(LIST, struct ring_options, scope, "scope", "PATTERN",
           "create, amend: archive only URLs that match, as with \"mnemon archive --include\"; may be "
           "repeated; \"any\" means all URLs (the default)"),
    OPTION(FLAG, struct ring_options, open, "open", NULL, "create, amend: any node may join"),
    OPTION(FLAG, struct ring_options, invited, "invite", NULL,
           "create, amend: only invited nodes may join (the default)"),
    OPTION(CHOICE, struct ring_options, jobs, "jobs", "WHOSE",
           "create, amend: who may add jobs for the ring: all members (the default) or only its founder",
           .choices = jobs_words),
    OPTION(TEXT, struct ring_options, key, "for", "KEY",
           "invite: make a token for the node with this key only; \"mnemon ring status\" on its machine "
           "shows the key"),
    OPTION(DURATION, struct ring_options, expires_us, "expires", "TIME",
           "invite: how long the token is valid (7 d); with --for: how long the membership lasts (for ever)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(NUMBER, struct ring_options, vnodes, "vnodes", "N",
           "lookup: how many virtual nodes to show: the owner of the URL and those after it (1)", .min = 1,
           .max = TRANSPORT_VNODES_MAX),
    OPTION(NUMBER, struct ring_options, vnodes, "places", "N", "the name of --vnodes in version 0.1",
           .min = 1, .max = TRANSPORT_VNODES_MAX),
    OPTION(FLAG, struct ring_options, whole, "whole", NULL,
           "wait: until every capture that this node keeps, or has for others, has all its copies"),
    OPTION(DURATION, struct ring_options, timeout_us, "timeout", "TIME",
           "wait: give up after this time, with exit status 1 (for ever)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(FLAG, struct ring_options, quiet, "quiet", NULL, "wait: do not say what is missing meanwhile"),
    OPTION(TEXT, struct ring_options, reason, "reason", "TEXT",
           "delete: why, in one line; all nodes keep it with the deletion"),
    OPTION(TEXT, struct ring_options, from, "from", "TIME",
           "delete: only captures from this time on: 1 to 14 digits, such as 2026 or 20260102030405"),
    OPTION(TEXT, struct ring_options, to, "to", "TIME",
           "delete: only captures up to this time (now); 2026 means the end of that year, but never what is "
           "captured after now"),
    OPTION(FLAG, struct ring_options, json, "json", NULL, "status, lookup, deletions: print JSON"),
    {0},
};

const struct command ring_command = {
    .name = "ring",
    .summary = "create and manage a ring of nodes that share one archive",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "The nodes of a ring find each other and divide the web among themselves, even if nodes fail. "
        "Together they crawl, keep and serve one archive. The rules of a ring are its charter, which its "
        "founder signs.\n\n"
        "  create NAME   create a ring; the node of this data directory is its founder\n"
        "  invite        print a token that lets a node in (founder)\n"
        "  status        show the neighbours, this node's share of the web, and how well it is kept\n"
        "  wait --whole  wait until all captures of this node have their copies, before the next is stopped\n"
        "  lookup URL    find the node that is responsible for a URL\n"
        "  amend         sign a new version of the charter, which then spreads to all nodes (founder)\n"
        "  takedown URL  hide its captures on all nodes and say which have not confirmed it (founder)\n"
        "  takedown URL* hide everything below it (founder)\n"
        "  restore URL   show them again (founder)\n"
        "  delete URL…   remove its captures from all nodes, for good, with --reason; also of URL* "
        "(founder)\n"
        "  deletions     show what was deleted, by whom, when and why, and how many captures went here\n"
        "  remove KEY…   refuse members or tokens from now on (founder)\n"
        "  leave         leave the ring\n\n"
        "  mnemon ring create films --open && mnemon serve --address 192.0.2.1\n"
        "  mnemon serve --address 192.0.2.2 --join 192.0.2.1",
    .options = ring_options,
    .options_size = sizeof(struct ring_options),
    .defaults = &ring_defaults,
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .actions = ring_actions,
    .run = ring_run,
};
