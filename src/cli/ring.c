#include "cli/ring.h"

#include "cli/act.h"
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
    WAIT,
    LOOKUP,
    AMEND,
    PENDING,
    SIGN,
    TAKEDOWN,
    RESTORE,
    DELETE,
    DELETIONS,
    IMPORTS,
    REMOVE,
    LEAVE
};

#define NAME_URL "name a URL: mnemon ring lookup|takedown|restore URL"

static const struct command_action ring_actions[] = {
    [CREATE] =
        {
            .name = "create",
            .synopsis = "NAME",
            .summary = "create a ring; the node of this data directory is its founder",
            .details = "What is said here becomes the charter of the ring, which its founder signs. Without "
                       "--open only nodes with a token of \"mnemon ring invite\" may join.\n\n"
                       "  mnemon ring create films --replicas 3 --open\n"
                       "  mnemon serve --address 192.0.2.1",
            .needs = "name the ring: mnemon ring create NAME",
        },
    [INVITE] =
        {
            .name = "invite",
            .summary = "print a token that lets a node in (founder, stewards)",
            .details = "Whoever has the token may join with it until it expires; with --for only the node "
                       "with that key can use it. \"mnemon ring remove\" withdraws it. If several stewards "
                       "must sign, it is printed with --act when they have.\n\n"
                       "  mnemon ring invite --expires '1 d' > token\n"
                       "  mnemon serve --address 192.0.2.2 --join 192.0.2.1 --token-file token",
        },
    [STATUS] =
        {
            .name = "status",
            .summary = "show the neighbours, this node's share of the web, and how well it is kept",
            .details =
                "The numbers are what this node knows. Of copies, they are lower bounds: a copy counts "
                "once its holder has confirmed it.\n\n"
                "  mnemon ring status --json",
        },
    [WAIT] =
        {
            .name = "wait",
            .synopsis = "--whole",
            .summary = "wait until all captures of this node have their copies, before the next is stopped",
            .details = "For scripts that restart or upgrade one node after the other.\n\n"
                       "  mnemon ring wait --whole --timeout '30 min' && systemctl restart mnemon",
        },
    [LOOKUP] =
        {
            .name = "lookup",
            .synopsis = "URL",
            .summary = "find the node that is responsible for a URL",
            .details = "It asks the ring as a crawler or reader would, and says in how many hops the answer "
                       "came.\n\n"
                       "  mnemon ring lookup https://example.org/ --vnodes 3",
            .needs = NAME_URL,
        },
    [AMEND] =
        {
            .name = "amend",
            .summary = "sign a new version of the charter, which then spreads to all nodes (founder, "
                       "stewards)",
            .details =
                "What no option names stays as it is. With --steward the founder hands the ring over to "
                "several "
                "keys, and they to others later: name all that shall act from then on. \"mnemon ring "
                "status\" on "
                "a machine shows its key. A ring whose stewards have lost their keys cannot be changed any "
                "more: more than half of them must agree, so name enough, on machines of different "
                "people.\n\n"
                "  mnemon ring amend --replicas 4 --invite\n"
                "  mnemon ring amend --steward KEY1 --steward KEY2 --steward KEY3 --needed 2 --needed "
                "invite=1",
        },
    [PENDING] =
        {
            .name = "pending",
            .summary = "show what stewards have proposed and not enough have signed yet",
            .details = "  mnemon ring pending --json",
        },
    [SIGN] =
        {
            .name = "sign",
            .synopsis = "ID…",
            .summary = "agree to something that another steward has proposed (stewards)",
            .details = "It says what that is. As soon as enough stewards have signed, it counts.\n\n"
                       "  mnemon ring pending\n"
                       "  mnemon ring sign 3f2a",
            .needs = "name an act; \"mnemon ring pending\" shows them",
        },
    [TAKEDOWN] =
        {
            .name = "takedown",
            .synopsis = "URL|URL*",
            .summary = "hide its captures, or everything below it, on all nodes, and say which have not "
                       "confirmed it (founder, stewards)",
            .details = "Hidden captures are kept and can be shown again: \"mnemon ring restore\". To remove "
                       "them for good: \"mnemon ring delete\".\n\n"
                       "  mnemon ring takedown 'https://example.org/private/*'",
            .needs = NAME_URL,
        },
    [RESTORE] =
        {
            .name = "restore",
            .synopsis = "URL|URL*",
            .summary = "show captures that were taken down again (founder, stewards)",
            .details = "  mnemon ring restore 'https://example.org/private/*'",
            .needs = NAME_URL,
        },
    [DELETE] =
        {
            .name = "delete",
            .synopsis = "URL…|URL*…",
            .summary = "remove its captures from all nodes, for good, with --reason (founder, stewards)",
            .details = "They are gone from every list at once; their bytes go with the next \"mnemon store "
                       "compact\" of each node. Nodes that are away delete them when they return.\n\n"
                       "  mnemon ring delete 'https://example.org/person/*' --reason 'asked by the person'",
            .needs = "name a URL: mnemon ring delete URL… --reason TEXT",
        },
    [DELETIONS] =
        {
            .name = "deletions",
            .summary = "show what was deleted, by whom, when and why, and how many captures went here",
            .details = "  mnemon ring deletions --json",
        },
    [IMPORTS] =
        {
            .name = "imports",
            .synopsis = "[nobody|stewards|members]",
            .summary =
                "say from whom the ring takes captures that were imported from files (founder), or show it",
            .details =
                "What it excludes is neither copied to other nodes nor shown by them; it stays where it was "
                "imported. Until the charter names stewards, that is the founder. At first all members may "
                "import.\n\n"
                "  mnemon ring imports stewards",
        },
    [REMOVE] =
        {
            .name = "remove",
            .synopsis = "KEY…",
            .summary = "refuse members or tokens from now on (founder, stewards)",
            .details = "What they archived stays; their jobs and decrees end.\n\n"
                       "  mnemon ring remove KEY",
            .needs = "name a key; \"mnemon ring status\" shows them",
        },
    [LEAVE] =
        {
            .name = "leave",
            .summary = "leave the ring",
            .details = "The archive of this node stays. Run \"mnemon ring wait --whole\" before, so that the "
                       "others have copies of what is here.",
        },
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
    if (cli->arguments_count > DELETION_TEXT_URLS_MAX) {
        return cli_usage(cli, &ring_command, "one deletion has at most %d URLs", DELETION_TEXT_URLS_MAX);
    }
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
    case PENDING:
        return act_list(cli, &data, options->json);
    case SIGN:
        return act_sign_named(cli, &data);
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
    case IMPORTS:
        return decree_imports(cli, &data, cli->arguments_count > 0 ? cli->arguments[0] : NULL);
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
    OPTION(NUMBER, struct ring_options, replicas, "replicas", "N", "how many nodes keep each document (6)",
           .min = 1, .max = CHARTER_REPLICAS_MAX, .of = "create amend"),
    OPTION(NUMBER, struct ring_options, witnesses, "witnesses", "N",
           "how many of them fetch it from its origin (1); the others copy it", .min = 1,
           .max = CHARTER_REPLICAS_MAX, .of = "create amend"),
    OPTION(NUMBER, struct ring_options, list_size, "list-size", "N",
           "how many positions after its own a node watches (8); cannot be changed later", .min = 2,
           .max = CHARTER_LIST_SIZE_MAX, .of = "create"),
    OPTION(CHOICE, struct ring_options, mapping, "mapping", "WHAT",
           "what decides which nodes keep a document: its url (the default), its host, or its "
           "section, which is the host and the first part of the path; cannot be changed later",
           .choices = charter_mappings, .of = "create"),
    OPTION(DURATION, struct ring_options, period_us, "period", "TIME",
           "how often everything is crawled (1 d)", .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX,
           .of = "create amend"),
    OPTION(LIST, struct ring_options, scope, "scope", "PATTERN",
           "archive only URLs that match, as with \"mnemon archive --include\"; may be "
           "repeated; \"any\" means all URLs (the default)",
           .of = "create amend"),
    OPTION(FLAG, struct ring_options, open, "open", NULL, "any node may join", .of = "create amend"),
    OPTION(FLAG, struct ring_options, invited, "invite", NULL, "only invited nodes may join (the default)",
           .of = "create amend"),
    OPTION(CHOICE, struct ring_options, jobs, "jobs", "WHOSE",
           "who may add jobs for the ring: all members (the default) or only its founder, or stewards",
           .choices = jobs_words, .of = "create amend"),
    OPTION(LIST, struct ring_options, stewards, "steward", "KEY",
           "a key that acts for the ring from then on; repeat it for all of them, up to 7", .of = "amend"),
    OPTION(LIST, struct ring_options, needed, "needed", "[KIND=]N",
           "how many stewards must sign, for all kinds of acts or for one: amend, invite, rule (takedown and "
           "restore), delete, job (more than half of them); may be repeated",
           .of = "amend"),
    OPTION(TEXT, struct ring_options, act, "act", "ID",
           "print the token of an invitation that enough stewards have signed by now", .of = "invite"),
    OPTION(TEXT, struct ring_options, key, "for", "KEY",
           "make a token for the node with this key only; \"mnemon ring status\" on its machine "
           "shows the key",
           .of = "invite"),
    OPTION(DURATION, struct ring_options, expires_us, "expires", "TIME",
           "how long the token is valid (7 d); with --for: how long the membership lasts (for ever)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX, .of = "invite"),
    OPTION(NUMBER, struct ring_options, vnodes, "vnodes", "N",
           "how many virtual nodes to show: the owner of the URL and those after it (1)", .min = 1,
           .max = TRANSPORT_VNODES_MAX, .of = "lookup"),
    OPTION(NUMBER, struct ring_options, vnodes, "places", "N", "the name of --vnodes in version 0.1",
           .min = 1, .max = TRANSPORT_VNODES_MAX, .of = "lookup"),
    OPTION(FLAG, struct ring_options, whole, "whole", NULL,
           "until every capture that this node keeps, or has for others, has all its copies", .of = "wait"),
    OPTION(DURATION, struct ring_options, timeout_us, "timeout", "TIME",
           "give up after this time, with exit status 1 (for ever)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX, .of = "wait"),
    OPTION(FLAG, struct ring_options, quiet, "quiet", NULL, "do not say what is missing meanwhile",
           .of = "wait"),
    OPTION(TEXT, struct ring_options, reason, "reason", "TEXT",
           "why, in one line; all nodes keep it with the deletion", .of = "delete"),
    OPTION(TEXT, struct ring_options, from, "from", "TIME",
           "only captures from this time on: 1 to 14 digits, such as 2026 or 20260102030405", .of = "delete"),
    OPTION(TEXT, struct ring_options, to, "to", "TIME",
           "only captures up to this time (now); 2026 means the end of that year, but never what is "
           "captured after now",
           .of = "delete"),
    OPTION(FLAG, struct ring_options, json, "json", NULL, "print JSON",
           .of = "status lookup deletions pending"),
    {0},
};

const struct command ring_command = {
    .name = "ring",
    .summary = "create and manage a ring of nodes that share one archive",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "The nodes of a ring find each other and divide the web among themselves, even if nodes fail. "
        "Together they crawl, keep and serve one archive. The rules of a ring are its charter, which its "
        "founder signs, or, if it names stewards, enough of them.\n\n"
        "  mnemon ring create films --open && mnemon serve --address 192.0.2.1\n"
        "  mnemon serve --address 192.0.2.2 --join 192.0.2.1",
    .options = ring_options,
    .options_size = sizeof(struct ring_options),
    .defaults = &ring_defaults,
    .actions = ring_actions,
    .run = ring_run,
};
