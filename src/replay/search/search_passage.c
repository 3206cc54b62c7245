#include "replay/search/search_passage.h"

#include <stdlib.h>

#include "base/buf.h"
#include "replay/search/search_words.h"

enum {
    CONTEXT_TOKENS = 8, /* before the first word that is shown */
    PHRASES_MAX = 2 * SEARCH_TERMS_MAX,
};

/* Where a phrase stands, in tokens. */
struct place {
    int from;
    int to;
    int phrase;
};

struct passage {
    struct place places[SEARCH_PASSAGE_PLACES_MAX]; /* of the column, ascending */
    int places_count;
    int first; /* token */
    int token; /* the next to come */
    int place; /* the next that may begin */
    int marked_to;
    bool is_marking;
    bool is_cut;
    int written_to; /* byte of the text */
    struct bytes text;
    struct buf out;
};

/* ---- where ---- */

static int read_places(const Fts5ExtensionApi *api, Fts5Context *fts, int column, struct passage *passage) {
    int count = 0;
    int result = api->xInstCount(fts, &count);
    for (int i = 0; i < count && result == SQLITE_OK && passage->places_count < SEARCH_PASSAGE_PLACES_MAX;
         i++) {
        int phrase;
        int at_column;
        int from;
        result = api->xInst(fts, i, &phrase, &at_column, &from);
        if (result == SQLITE_OK && at_column == column && phrase < PHRASES_MAX) {
            passage->places[passage->places_count++] =
                (struct place){from, from + api->xPhraseSize(fts, phrase), phrase};
        }
    }
    return result;
}

/* The first token of the passage with most different phrases, then with most of them. */
static void passage_choose(struct passage *passage) {
    int counts[PHRASES_MAX] = {0};
    int different = 0;
    int best = -1;
    int right = 0;
    for (int left = 0; left < passage->places_count; left++) {
        int end = passage->places[left].from + SEARCH_PASSAGE_TOKENS - CONTEXT_TOKENS;
        while (right < passage->places_count && passage->places[right].to <= end) {
            different += counts[passage->places[right++].phrase]++ == 0;
        }
        int worth = different * SEARCH_PASSAGE_PLACES_MAX + right - left;
        if (worth > best) {
            best = worth;
            passage->first = passage->places[left].from;
        }
        if (right > left) {
            different -= --counts[passage->places[left].phrase] == 0;
        } else {
            right = left + 1; /* a phrase that is longer than a passage */
        }
    }
    passage->first = passage->first > CONTEXT_TOKENS ? passage->first - CONTEXT_TOKENS : 0;
}

/* ---- what ---- */

/* The text up to this byte; cut between characters if it becomes too long. */
static void write_to(struct passage *passage, int end) {
    struct bytes part = bytes_slice(passage->text, (size_t)passage->written_to, (size_t)end);
    size_t room =
        passage->out.size < SEARCH_PASSAGE_SIZE_MAX ? SEARCH_PASSAGE_SIZE_MAX - passage->out.size : 0;
    if (part.size > room) {
        while (room > 0 && (part.data[room] & 0xc0) == 0x80) {
            room--;
        }
        part = bytes_slice(part, 0, room);
        passage->is_cut = true;
    }
    buf_put(&passage->out, part);
    passage->written_to = end;
}

static void end_mark(struct passage *passage) {
    if (passage->is_marking) {
        buf_put_byte(&passage->out, SEARCH_MARK_END);
        passage->is_marking = false;
    }
}

static void write_token(struct passage *passage, int start, int end) {
    while (passage->place < passage->places_count && passage->places[passage->place].from <= passage->token) {
        const struct place *place = &passage->places[passage->place++];
        passage->marked_to = place->to > passage->marked_to ? place->to : passage->marked_to;
    }
    if (!passage->is_marking && passage->token < passage->marked_to) {
        write_to(passage, start);
        if (!passage->is_cut) {
            buf_put_byte(&passage->out, SEARCH_MARK_START);
            passage->is_marking = true;
        }
    }
    write_to(passage, end);
    if (passage->token + 1 >= passage->marked_to) {
        end_mark(passage);
    }
}

static int on_token(void *context, int flags, const char *token, int size, int start, int end) {
    struct passage *passage = context;
    (void)token;
    (void)size;
    if ((flags & FTS5_TOKEN_COLOCATED) != 0) {
        return SQLITE_OK;
    }
    if (passage->token == passage->first && passage->first > 0) {
        buf_put_string(&passage->out, "…");
        passage->written_to = start;
    }
    if (passage->token == passage->first + SEARCH_PASSAGE_TOKENS) {
        passage->is_cut = true;
    }
    if (passage->is_cut) {
        return SQLITE_DONE; /* the rest is not needed */
    }
    if (passage->token >= passage->first) {
        write_token(passage, start, end);
    }
    passage->token++;
    return SQLITE_OK;
}

static int write_passage(const Fts5ExtensionApi *api, Fts5Context *fts, int column, struct passage *passage) {
    const char *text = NULL;
    int size = 0;
    int result = api->xColumnText(fts, column, &text, &size);
    if (result != SQLITE_OK || size == 0) {
        return result;
    }
    passage->text = bytes_of(text, (size_t)size);
    result = api->xTokenize(fts, text, size, passage, on_token);
    if (result == SQLITE_OK && !passage->is_cut) {
        write_to(passage, size);
    }
    end_mark(passage);
    if (passage->is_cut) {
        buf_put_string(&passage->out, "…");
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static void make_passage(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context, int count,
                         sqlite3_value **values) {
    struct passage *passage = count == 1 ? calloc(1, sizeof *passage) : NULL;
    if (passage == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    int column = sqlite3_value_int(values[0]);
    buf_init(&passage->out, 4 * SEARCH_PASSAGE_SIZE_MAX);
    int result = read_places(api, fts, column, passage);
    if (result == SQLITE_OK) {
        passage_choose(passage);
        result = write_passage(api, fts, column, passage);
    }
    if (result == SQLITE_OK && passage->out.err == ERR_OK) {
        sqlite3_result_text64(context, passage->out.size > 0 ? (const char *)passage->out.data : "",
                              passage->out.size, SQLITE_TRANSIENT, SQLITE_UTF8);
    } else {
        sqlite3_result_error_code(context, result != SQLITE_OK ? result : SQLITE_NOMEM);
    }
    buf_done(&passage->out);
    free(passage);
}

int search_passage_register(sqlite3 *database) {
    fts5_api *api = NULL;
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database, "SELECT fts5(?1)", -1, &statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_pointer(statement, 1, (void *)&api, "fts5_api_ptr", NULL);
        sqlite3_step(statement);
        result = sqlite3_finalize(statement);
    }
    if (result == SQLITE_OK && api == NULL) {
        result = SQLITE_ERROR;
    }
    return result == SQLITE_OK ? api->xCreateFunction(api, "passage", NULL, make_passage, NULL) : result;
}
