#include "replay/search/search_database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "web/html/text.h"

enum { FORMAT = 1, BUSY_TIMEOUT_MS = 2000, PATH_SIZE_MAX = 4096 };

/*
 * For FTS5: what is entered gathers in 16 MiB of memory before it is sorted into the index; a word in the
 * title counts as eight in the text, in the description as two.
 */
static const char schema[] =
    "CREATE TABLE document("
    "  id INTEGER PRIMARY KEY,"
    "  signature BLOB NOT NULL,"
    "  surt TEXT NOT NULL,"
    "  volume INTEGER NOT NULL,"
    "  number INTEGER NOT NULL,"
    "  first_us INTEGER NOT NULL,"
    "  last_us INTEGER NOT NULL,"
    "  status INTEGER NOT NULL,"
    "  url TEXT NOT NULL,"
    "  host TEXT NOT NULL,"
    "  language TEXT NOT NULL,"
    "  title TEXT NOT NULL,"
    "  description TEXT NOT NULL,"
    "  UNIQUE(signature, surt));"
    "CREATE TABLE body(id INTEGER PRIMARY KEY, packed BLOB NOT NULL);"
    "CREATE VIEW page AS SELECT document.id AS id, title, description, unpack(packed) AS body"
    "  FROM document JOIN body ON body.id = document.id;"
    "CREATE VIRTUAL TABLE words USING fts5(title, description, body, content='page', content_rowid='id',"
    "  tokenize='unicode61 remove_diacritics 2');"
    "INSERT INTO words(words, rank) VALUES('hashsize', 16777216);"
    "INSERT INTO words(words, rank) VALUES('rank', 'bm25(8.0, 2.0, 1.0)');"
    "CREATE TABLE position(volume INTEGER PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL);"
    "PRAGMA user_version = 1;";
_Static_assert(FORMAT == 1, "as the schema says");

enum err search_database_err(sqlite3 *database, int result, struct err_detail *detail) {
    static const struct {
        int result;
        enum err err;
    } table[] = {
        {SQLITE_CORRUPT, ERR_CORRUPT},     {SQLITE_NOTADB, ERR_CORRUPT},
        {SQLITE_FULL, ERR_NO_SPACE},       {SQLITE_NOMEM, ERR_MEMORY},
        {SQLITE_BUSY, ERR_BUSY},           {SQLITE_INTERRUPT, ERR_TIMEOUT},
        {SQLITE_READONLY, ERR_PERMISSION}, {SQLITE_PERM, ERR_PERMISSION},
        {SQLITE_CANTOPEN, ERR_IO},         {SQLITE_IOERR, ERR_IO},
    };
    if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) {
        return ERR_OK;
    }
    enum err err = ERR_SYSTEM;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].result == (result & 0xff)) {
            err = table[i].err;
        }
    }
    return err_set(detail, err, "%.200s",
                   database != NULL ? sqlite3_errmsg(database) : sqlite3_errstr(result));
}

enum err search_database_run(sqlite3 *database, const char *sql, struct err_detail *detail) {
    return search_database_err(database, sqlite3_exec(database, sql, NULL, NULL, NULL), detail);
}

enum err search_database_prepare(sqlite3 *database, const char *sql, sqlite3_stmt **ret_statement,
                                 struct err_detail *detail) {
    int result = sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
    return search_database_err(database, result, detail);
}

void search_database_bind_text(sqlite3_stmt *statement, int index, struct bytes text) {
    const char *start = text.size > 0 ? (const char *)text.data : "";
    int result = sqlite3_bind_text64(statement, index, start, text.size, SQLITE_STATIC, SQLITE_UTF8);
    ASSERT(result == SQLITE_OK);
}

void search_database_bind_blob(sqlite3_stmt *statement, int index, struct bytes blob) {
    int result = sqlite3_bind_blob64(statement, index, blob.data, blob.size, SQLITE_STATIC);
    ASSERT(result == SQLITE_OK);
}

struct bytes search_database_column(sqlite3_stmt *statement, int index) {
    const void *data = sqlite3_column_blob(statement, index);
    return bytes_of(data, (size_t)sqlite3_column_bytes(statement, index));
}

/* unpack(packed): the text of a body. Never more than a body can have, whatever the file says. */
static void unpack(sqlite3_context *context, int count, sqlite3_value **values) {
    ASSERT(count == 1);
    const void *packed = sqlite3_value_blob(values[0]);
    size_t packed_size = (size_t)sqlite3_value_bytes(values[0]);
    unsigned long long size = packed_size == 0 ? 0 : ZSTD_getFrameContentSize(packed, packed_size);
    if (size > TEXT_BODY_SIZE_MAX) { /* its errors are large numbers */
        sqlite3_result_error_code(context, SQLITE_CORRUPT);
        return;
    }
    char *text = malloc((size_t)size + 1);
    if (text == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (packed_size > 0 && ZSTD_decompress(text, (size_t)size, packed, packed_size) != size) {
        free(text);
        sqlite3_result_error_code(context, SQLITE_CORRUPT);
        return;
    }
    sqlite3_result_text64(context, text, size, free, SQLITE_UTF8);
}

static enum err read_format(sqlite3 *database, int *ret_format, struct err_detail *detail) {
    sqlite3_stmt *statement;
    enum err err = search_database_prepare(database, "PRAGMA user_version", &statement, detail);
    if (err == ERR_OK) {
        int result = sqlite3_step(statement);
        *ret_format = result == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
        err = search_database_err(database, result, detail);
        sqlite3_finalize(statement);
    }
    return err;
}

static enum err set_up_writer(sqlite3 *database, struct err_detail *detail) {
    int format = 0;
    enum err err = search_database_run(database,
                                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                                       "PRAGMA cache_size = -16384; PRAGMA secure_delete = FAST;",
                                       detail);
    if (err == ERR_OK) {
        err = read_format(database, &format, detail);
    }
    if (err == ERR_OK && format == 0) {
        err = search_database_run(database, "BEGIN IMMEDIATE", detail);
        err = err == ERR_OK ? search_database_run(database, schema, detail) : err;
        err = err == ERR_OK ? search_database_run(database, "COMMIT", detail) : err;
        return err == ERR_SYSTEM ? ERR_MISMATCH : err; /* it has tables, but not ours */
    }
    if (err == ERR_OK && format != FORMAT) {
        err = err_set(detail, ERR_MISMATCH, "the full-text index has format %d, not %d", format, FORMAT);
    }
    return err;
}

enum err search_database_open(const char *path, bool is_writer, sqlite3 **ret_database,
                              struct err_detail *detail) {
    sqlite3 *database = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (is_writer ? SQLITE_OPEN_CREATE : 0);
    int result = sqlite3_open_v2(path, &database, flags, NULL);
    enum err err = search_database_err(database, result, detail);
    if (err == ERR_OK) {
        sqlite3_busy_timeout(database, BUSY_TIMEOUT_MS);
        result = sqlite3_create_function_v2(database, "unpack", 1,
                                            SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                            unpack, NULL, NULL, NULL);
        err = search_database_err(database, result, detail);
    }
    if (err == ERR_OK) {
        err = is_writer ? set_up_writer(database, detail)
                        : search_database_run(database, "PRAGMA query_only = ON", detail);
    }
    if (err != ERR_OK) {
        sqlite3_close(database);
        return err;
    }
    *ret_database = database;
    return ERR_OK;
}

enum err search_database_remove(const char *path, struct err_detail *detail) {
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char file[PATH_SIZE_MAX];
        int size = snprintf(file, sizeof file, "%s%s", path, endings[i]);
        if (size >= (int)sizeof file) {
            return ERR_LIMIT;
        }
        if (unlink(file) != 0 && errno != ENOENT) {
            return err_set(detail, err_from_errno(errno), "%s cannot be removed", file);
        }
    }
    return ERR_OK;
}
