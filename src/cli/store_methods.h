/*
 * store_methods - captures of mnemon 0.2 and earlier, whose requests were no GETs, get the key that they have
 * now (warc/request_key.h).
 *
 * Each is stored once more, as a revisit with its request, and the old one removed; its document stays where
 * it is. What was cut off by a crash goes on when it is done again. One pass reads the request of every
 * capture.
 */
#ifndef MNEMON_CLI_STORE_METHODS_H
#define MNEMON_CLI_STORE_METHODS_H

#include "cli/data.h"

/* How many there were; those of volume servers are left alone. Needs the archive open for writing. */
enum err store_give_methods(struct data *data, struct cli *cli, bool is_quiet, uint64_t *ret_count,
                            struct err_detail *detail) MUST_CHECK;

#endif
