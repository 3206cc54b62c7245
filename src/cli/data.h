/*
 * data - the data directory of a command: which one it is, and the archive in it.
 *
 * `--data DIR`, else $MNEMON_DATA, else ~/.local/share/mnemon. One process at a time has an archive open.
 * If that is a node, other commands work through it, as they would with its volumes from another machine;
 * else they are told so. What opening had to mend after a crash is said on cli->err, and which volumes are
 * down.
 */
#ifndef MNEMON_CLI_DATA_H
#define MNEMON_CLI_DATA_H

#include "cli/cli.h"
#include "node/admin/token.h"
#include "node/node_file.h"
#include "store/instance/absent.h"
#include "store/instance/instance.h"

enum { DATA_PATH_SIZE_MAX = 4096 };

/* The help of --local, of commands that use DATA_READ_RING. */
#define DATA_LOCAL_HELP "only what this node has stored itself, not what its ring holds"

/* The help of --userinfo. */
#define DATA_USERINFO_HELP \
    "only captures whose URL has a user or a password in it, as older versions stored them"

/* The help of every command's --data. */
#define DATA_HELP "the data directory ($MNEMON_DATA, else ~/.local/share/mnemon)"

enum data_access {
    DATA_READ,      /* there must be an archive */
    DATA_READ_RING, /* the same, and what the other nodes of its ring hold, through the running node */
    DATA_WRITE,     /* a missing one is made */
    DATA_MAINTAIN,  /* as DATA_READ, but with the files themselves in hand: not through a running node */
    DATA_SERVE,     /* as DATA_WRITE, likewise */
    DATA_REBUILD,   /* there must be one; its index is made again from its segments */
};

struct data {
    struct cli *cli;
    char directory[DATA_PATH_SIZE_MAX];
    struct instance *instance;
    struct node_file node; /* through which it is used, where is_through_node */
    struct token token;    /* of that node */
    bool is_through_node;
    struct instance_session *session; /* of the thread that opened it; others make their own */
    bool sees_ring;                   /* data_session_new() makes sessions that do */
    struct absent absent;             /* data_absent() */
    uint32_t told;                    /* bit i: the user knows that volume i of the connector is down */
};

/* Only data->directory, from the value of --data or NULL. CLI_DONE, or the status after the error. */
int data_find(struct data *data, struct cli *cli, const char *option);

/* Is the node of this data directory a member of a ring? */
bool data_is_in_ring(const struct data *data);

/* Is it one for --userinfo? */
bool data_has_userinfo(const struct capture *capture);

/* The directory itself, for its owner alone, if it is not there. Likewise. */
int data_make_directory(const struct data *data);

/* option: the value of --data, or NULL. CLI_DONE, or the exit status after the error has been printed. */
int data_open(struct data *data, struct cli *cli, const char *option, enum data_access access);
void data_close(struct data *data);

/* One more session, that sees what data->session does. NULL: out of memory. */
struct instance_session *data_session_new(struct data *data);

/*
 * Who could hold what data->session looked for and did not answer: volumes, nodes of the ring, or the whole
 * ring if there is one and no node runs that could ask it. Whatever was found may not be all, then.
 */
const struct absent *data_absent(struct data *data);

/* The same with DATA_WRITE, for a crawl: what new segments say of it. The texts must outlive the data. */
int data_open_to_crawl(struct data *data, struct cli *cli, const char *option, const char *user_agent,
                       const char *robots);

/* The same with DATA_SERVE; quota_size: of disk, 0: none. Other commands read it from DIR/mnemon.conf. */
int data_open_to_serve(struct data *data, struct cli *cli, const char *option, uint64_t quota_size);

/* The same with DATA_REBUILD, and a line that shows how far it is unless is_quiet. */
int data_rebuild(struct data *data, struct cli *cli, const char *option, bool is_quiet);

/* "mnemon: volume 2 is maintained by its server (URL)" for each that a command for local volumes passes over.
 */
void data_tell_remote(const struct data *data);

#endif
