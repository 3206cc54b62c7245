/*
 * data - the data directory of a command: which one it is, and the archive in it.
 *
 * `--data DIR`, else $MNEMON_DATA, else ~/.local/share/mnemon. One process at a time has an archive open; the
 * others are told so. What opening had to mend after a crash is said on cli->err.
 */
#ifndef MNEMON_CLI_DATA_H
#define MNEMON_CLI_DATA_H

#include "cli/cli.h"
#include "store/instance.h"
#include "store/segment.h"

enum { DATA_PATH_SIZE_MAX = 4096 };

/* The help of every command's --data. */
#define DATA_HELP "the data directory ($MNEMON_DATA, else ~/.local/share/mnemon)"

enum data_access {
    DATA_READ,    /* there must be an archive */
    DATA_WRITE,   /* a missing one is made */
    DATA_REBUILD, /* there must be one; its index is made again from its segments */
};

struct data {
    char directory[DATA_PATH_SIZE_MAX];
    struct instance instance;
    uint32_t named_segment; /* whose name is in segment_name; 0: none */
    char segment_name[SEGMENT_NAME_SIZE_MAX];
};

/* option: the value of --data, or NULL. CLI_DONE, or the exit status after the error has been printed. */
int data_open(struct data *data, struct cli *cli, const char *option, enum data_access access);
void data_close(struct data *data);

/* As index_find_block(), but what has been removed and waits for compaction is ERR_NOT_FOUND. */
enum err data_find_block(const struct index *index, const uint8_t signature[KEY_SIGNATURE_SIZE],
                         uint16_t number, struct block *ret_block) MUST_CHECK;

/* The file that a segment is, without its directory; valid until the next call. */
const char *data_segment_name(struct data *data, uint32_t number);

#endif
