/*
 * search_database - the SQLite database of search.h. Private to search_*.c.
 *
 *      document    one per payload and URL: what is shown of it
 *      body        its text, compressed with zstd, for snippets and for taking it out again
 *      page        both as one, with the text unpacked: a view, the content of
 *      words       FTS5: title, description, body
 *      position    volume, segment, offset: everything before it has been read
 *
 * A connection belongs to one thread.
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_DATABASE_H
#define MNEMON_REPLAY_SEARCH_SEARCH_DATABASE_H

#include <sqlite3.h>

#include "base/bytes.h"
#include "base/err.h"

/*
 * The writer's connection makes the database if there is none. ERR_CORRUPT, ERR_MISMATCH: remove it and
 * open it again.
 */
enum err search_database_open(const char *path, bool is_writer, sqlite3 **ret_database,
                              struct err_detail *detail) MUST_CHECK;

/* The database and the files beside it. */
enum err search_database_remove(const char *path, struct err_detail *detail) MUST_CHECK;

/* What SQLite said, as ours; *detail gets its words. ERR_OK for rows and ends too. */
enum err search_database_err(sqlite3 *database, int result, struct err_detail *detail);

enum err search_database_run(sqlite3 *database, const char *sql, struct err_detail *detail) MUST_CHECK;
enum err search_database_prepare(sqlite3 *database, const char *sql, sqlite3_stmt **ret_statement,
                                 struct err_detail *detail) MUST_CHECK;

/* Bound until the statement is reset. */
void search_database_bind_text(sqlite3_stmt *statement, int index, struct bytes text);
void search_database_bind_blob(sqlite3_stmt *statement, int index, struct bytes blob);

/* Until the next step. */
struct bytes search_database_column(sqlite3_stmt *statement, int index);

#endif
