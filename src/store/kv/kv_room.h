/*
 * kv_room - is there room on the disk for a database? RocksDB may end the process if it finds out by itself.
 */
#ifndef MNEMON_STORE_KV_KV_ROOM_H
#define MNEMON_STORE_KV_KV_ROOM_H

#include "base/err.h"

/*
 * ERR_NO_SPACE if less room is left than opening a database in this directory may take: its log becomes
 * tables then. Asks the file system and writes nothing; the directory may be missing.
 */
enum err kv_room_look(const char *directory, struct err_detail *detail) MUST_CHECK;

/* ERR_NO_SPACE if that much more would leave less than an opening may take. */
enum err kv_room_for(const char *directory, uint64_t size, struct err_detail *detail) MUST_CHECK;

/* ERR_NO_SPACE and other errors if some megabytes cannot be written there: tries it. */
enum err kv_room_ask(const char *directory, struct err_detail *detail) MUST_CHECK;

/*
 * Debian's RocksDB has its assertions on, and one of them ends the process when its own log (DIR/LOG) is
 * written to again after the disk refused a line. So after each opening its log gets room of its own, if the
 * file system can reserve it.
 */
void kv_room_reserve_log(const char *directory);

#endif
