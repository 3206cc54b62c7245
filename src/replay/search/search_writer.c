#include "replay/search/search_writer.h"

enum {
    SEARCH_SEE,
    SEARCH_SEE_MIRRORED,
    SEARCH_ADD,
    SEARCH_ADD_BODY,
    SEARCH_ADD_WORDS,
    SEARCH_FIND,
    SEARCH_DROP_WORDS,
    SEARCH_DROP_BODY,
    SEARCH_DROP,
    SEARCH_MOVE,
    SEARCH_POSITION,
    SEARCH_COUNT,
    SEARCH_MARK,
    SEARCH_SET_MARK,
    SEARCH_OF_VOLUME,
    SEARCH_STATEMENTS_COUNT,
};
_Static_assert((int)SEARCH_STATEMENTS_COUNT == (int)SEARCH_STATEMENTS_MAX, "they have room");

static const char *const texts[SEARCH_STATEMENTS_COUNT] = {
    [SEARCH_SEE] = "UPDATE document SET first_us = min(first_us, ?3), last_us = max(last_us, ?3),"
                   " volume = ?4, number = ?5 WHERE signature = ?1 AND surt = ?2",
    /* What this node has stored itself stays so, whoever else has it. */
    [SEARCH_SEE_MIRRORED] = "UPDATE document SET"
                            " first_us = iif(volume < ?6, first_us, min(first_us, ?3)),"
                            " last_us = iif(volume < ?6, last_us, max(last_us, ?3)),"
                            " number = iif(volume < ?6, number, ?5), volume = iif(volume < ?6, volume, ?4)"
                            " WHERE signature = ?1 AND surt = ?2",
    [SEARCH_ADD] =
        "INSERT INTO document(signature, surt, volume, number, first_us, last_us, status, url, host,"
        " language, title, description)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [SEARCH_ADD_BODY] = "INSERT INTO body(id, packed) VALUES(?1, ?2)",
    [SEARCH_ADD_WORDS] = "INSERT INTO words(rowid, title, description, body) VALUES(?1, ?2, ?3, ?4)",
    [SEARCH_FIND] = "SELECT id FROM document WHERE signature = ?1 AND volume = ?2 AND number = ?3 LIMIT 1",
    [SEARCH_DROP_WORDS] = "INSERT INTO words(words, rowid, title, description, body)"
                          " SELECT 'delete', id, title, description, body FROM page WHERE id = ?1",
    [SEARCH_DROP_BODY] = "DELETE FROM body WHERE id = ?1",
    [SEARCH_DROP] = "DELETE FROM document WHERE id = ?1",
    [SEARCH_MOVE] = "INSERT OR REPLACE INTO position(volume, segment, offset) VALUES(?1, ?2, ?3)",
    [SEARCH_POSITION] = "SELECT segment, offset FROM position WHERE volume = ?1",
    [SEARCH_COUNT] = "SELECT count(*) FROM document",
    [SEARCH_MARK] = "SELECT mark FROM deposit WHERE volume = ?1",
    [SEARCH_SET_MARK] = "INSERT OR REPLACE INTO deposit(volume, mark) VALUES(?1, ?2)",
    [SEARCH_OF_VOLUME] = "SELECT id FROM document WHERE volume = ?1 LIMIT ?2",
};

/* Younger than the format, which need not change for it. */
static const char mirrored_schema[] =
    "CREATE TABLE IF NOT EXISTS deposit(volume INTEGER PRIMARY KEY, mark INTEGER NOT NULL)";

enum err search_writer_open(struct search_writer *writer, const char *path, struct err_detail *detail) {
    *writer = (struct search_writer){0};
    enum err err = search_database_open(path, true, &writer->database, detail);
    err = err == ERR_OK ? search_database_run(writer->database, mirrored_schema, detail) : err;
    for (size_t i = 0; i < SEARCH_STATEMENTS_COUNT && err == ERR_OK; i++) {
        err = search_database_prepare(writer->database, texts[i], &writer->statements[i], detail);
    }
    if (err != ERR_OK) {
        search_writer_close(writer);
        err = err == ERR_SYSTEM ? ERR_CORRUPT : err; /* a table is not as it should be */
    }
    return err;
}

void search_writer_close(struct search_writer *writer) {
    for (size_t i = 0; i < SEARCH_STATEMENTS_COUNT; i++) {
        sqlite3_finalize(writer->statements[i]);
    }
    sqlite3_close(writer->database);
    *writer = (struct search_writer){0};
}

/* Run a statement that gives no rows. */
static enum err writer_run(struct search_writer *writer, sqlite3_stmt *statement, struct err_detail *detail) {
    enum err err = search_database_err(writer->database, sqlite3_step(statement), detail);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

/* The number in the first row; 0 if there is none. */
static enum err writer_read_number(struct search_writer *writer, sqlite3_stmt *statement,
                                   uint64_t *ret_number, struct err_detail *detail) {
    int result = sqlite3_step(statement);
    uint64_t number = result == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    enum err err = search_database_err(writer->database, result, detail);
    sqlite3_reset(statement);
    if (err == ERR_OK) {
        *ret_number = number;
    }
    return err;
}

enum err search_writer_see(struct search_writer *writer, const struct capture *capture, bool *ret_is_known,
                           struct err_detail *detail) {
    bool is_mirrored = instance_is_mirrored(capture->volume);
    sqlite3_stmt *statement = writer->statements[is_mirrored ? SEARCH_SEE_MIRRORED : SEARCH_SEE];
    search_database_bind_blob(statement, 1, bytes_of(capture->digest, KEY_DIGEST_SIZE));
    search_database_bind_text(statement, 2, capture->surt);
    sqlite3_bind_int64(statement, 3, capture->time_us);
    sqlite3_bind_int(statement, 4, capture->volume);
    sqlite3_bind_int(statement, 5, capture->block_number);
    if (is_mirrored) {
        sqlite3_bind_int(statement, 6, INSTANCE_GUEST_NUMBER);
    }
    enum err err = writer_run(writer, statement, detail);
    if (err == ERR_OK) {
        *ret_is_known = sqlite3_changes(writer->database) > 0;
    }
    return err;
}

static enum err add_words(struct search_writer *writer, sqlite3_int64 id, const struct search_page *page,
                          struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_ADD_WORDS];
    sqlite3_bind_int64(statement, 1, id);
    search_database_bind_text(statement, 2, page->title);
    search_database_bind_text(statement, 3, page->description);
    search_database_bind_text(statement, 4, page->body);
    return writer_run(writer, statement, detail);
}

enum err search_writer_add(struct search_writer *writer, const struct search_page *page,
                           struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_ADD];
    const struct capture *capture = page->capture;
    search_database_bind_blob(statement, 1, bytes_of(capture->digest, KEY_DIGEST_SIZE));
    search_database_bind_text(statement, 2, capture->surt);
    sqlite3_bind_int(statement, 3, capture->volume);
    sqlite3_bind_int(statement, 4, capture->block_number);
    sqlite3_bind_int64(statement, 5, capture->time_us);
    sqlite3_bind_int(statement, 6, capture->status);
    search_database_bind_text(statement, 7, capture->url);
    search_database_bind_text(statement, 8, page->host);
    search_database_bind_text(statement, 9, page->language);
    search_database_bind_text(statement, 10, page->title);
    search_database_bind_text(statement, 11, page->description);
    enum err err = writer_run(writer, statement, detail);
    if (err != ERR_OK) {
        return err;
    }
    sqlite3_int64 id = sqlite3_last_insert_rowid(writer->database);
    statement = writer->statements[SEARCH_ADD_BODY];
    sqlite3_bind_int64(statement, 1, id);
    search_database_bind_blob(statement, 2, page->packed);
    err = writer_run(writer, statement, detail);
    return err == ERR_OK ? add_words(writer, id, page, detail) : err;
}

static enum err drop_row(struct search_writer *writer, sqlite3_int64 id, struct err_detail *detail) {
    sqlite3_stmt *const steps[] = {writer->statements[SEARCH_DROP_WORDS],
                                   writer->statements[SEARCH_DROP_BODY], writer->statements[SEARCH_DROP]};
    enum err err = ERR_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && err == ERR_OK; i++) {
        sqlite3_bind_int64(steps[i], 1, id);
        err = writer_run(writer, steps[i], detail);
    }
    return err;
}

enum err search_writer_drop(struct search_writer *writer, const struct key *key, uint64_t *ret_count,
                            struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_FIND];
    enum err err = ERR_OK;
    uint64_t id = 1; /* of a row of the document; 0: there is none any more */
    uint64_t count = 0;
    while (err == ERR_OK && id != 0) {
        search_database_bind_blob(statement, 1, bytes_of(key->digest, KEY_DIGEST_SIZE));
        sqlite3_bind_int(statement, 2, key->volume);
        sqlite3_bind_int(statement, 3, key->number);
        err = writer_read_number(writer, statement, &id, detail);
        if (err == ERR_OK && id != 0) {
            err = drop_row(writer, (sqlite3_int64)id, detail);
            count++;
        }
    }
    if (err == ERR_OK) {
        *ret_count = count;
    }
    return err;
}

enum err search_writer_position(struct search_writer *writer, uint16_t volume,
                                struct index_position *ret_position, struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_POSITION];
    struct index_position position = {0};
    sqlite3_bind_int(statement, 1, volume);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        position.segment = (uint32_t)sqlite3_column_int64(statement, 0);
        position.offset = (uint64_t)sqlite3_column_int64(statement, 1);
    }
    enum err err = search_database_err(writer->database, result, detail);
    sqlite3_reset(statement);
    if (err == ERR_OK) {
        *ret_position = position;
    }
    return err;
}

enum err search_writer_move(struct search_writer *writer, uint16_t volume,
                            const struct index_position *position, struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_MOVE];
    sqlite3_bind_int(statement, 1, volume);
    sqlite3_bind_int64(statement, 2, position->segment);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)position->offset);
    return writer_run(writer, statement, detail);
}

enum err search_writer_count(struct search_writer *writer, uint64_t *ret_count, struct err_detail *detail) {
    return writer_read_number(writer, writer->statements[SEARCH_COUNT], ret_count, detail);
}

/* ---- archives of others ---- */

enum err search_writer_drop_volume(struct search_writer *writer, uint16_t volume, uint64_t *ret_count,
                                   struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_OF_VOLUME];
    sqlite3_int64 ids[SEARCH_DROP_MAX];
    size_t count = 0;
    int result;
    sqlite3_bind_int(statement, 1, volume);
    sqlite3_bind_int(statement, 2, SEARCH_DROP_MAX);
    while ((result = sqlite3_step(statement)) == SQLITE_ROW && count < SEARCH_DROP_MAX) {
        ids[count++] = sqlite3_column_int64(statement, 0);
    }
    enum err err = search_database_err(writer->database, result, detail);
    sqlite3_reset(statement);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        err = drop_row(writer, ids[i], detail);
    }
    if (err == ERR_OK) {
        *ret_count = count;
    }
    return err;
}

enum err search_writer_mark(struct search_writer *writer, uint16_t volume, uint64_t *ret_mark,
                            struct err_detail *detail) {
    sqlite3_bind_int(writer->statements[SEARCH_MARK], 1, volume);
    return writer_read_number(writer, writer->statements[SEARCH_MARK], ret_mark, detail);
}

enum err search_writer_set_mark(struct search_writer *writer, uint16_t volume, uint64_t mark,
                                struct err_detail *detail) {
    sqlite3_stmt *statement = writer->statements[SEARCH_SET_MARK];
    sqlite3_bind_int(statement, 1, volume);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)mark);
    return writer_run(writer, statement, detail);
}
