/* decree - commands that speak to the whole ring: they sign a decree (protocol/ring/decree.h) and leave it to
 * the node. */
#ifndef MNEMON_CLI_DECREE_H
#define MNEMON_CLI_DECREE_H

#include "cli/data.h"
#include "crawl/engine/job.h"

/* `mnemon job add --ring`, `mnemon job remove --ring`. CLI_DONE, or the status after the error. */
int decree_add_job(struct cli *cli, const struct data *data, const struct job *job);
int decree_remove_job(struct cli *cli, const struct data *data, const char *name);

/* `mnemon ring takedown URL[*]`, `mnemon ring restore URL[*]`: captures of it are shown nowhere, or again. */
int decree_rule(struct cli *cli, const struct data *data, const char *url, bool is_taken_down);

/* Of which captures, by their time. */
struct decree_period {
    int64_t from_us; /* INT64_MIN: from the first on */
    int64_t to_us;   /* not later than now */
    bool is_until_now;
};

/* `mnemon ring delete URL[*]… --reason TEXT`: they go from all nodes, for good. The URLs are the arguments.
 */
int decree_delete(struct cli *cli, const struct data *data, const struct decree_period *period,
                  const char *reason);

/* `mnemon ring imports [WHO]`: who may import; who NULL: show it. */
int decree_imports(struct cli *cli, const struct data *data, const char *who);

/* `mnemon ring deletions`: who deleted what, when and why, and what has gone here. */
int decree_list_deletions(struct cli *cli, const struct data *data, bool is_json);

#endif
