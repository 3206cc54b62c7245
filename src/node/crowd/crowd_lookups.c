#include "node/crowd/crowd_lookups.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/sha256.h"
#include "net/identity.h"
#include "node/crowd/crowd_reader.h"
#include "store/access/access.h"
#include "web/url/surt.h"

enum { TIMEOUT_MS = 10000, SURT_SIZE_MAX = 64 << 10 };

/* What one thread needs. */
struct worker {
    struct crowd_lookups *lookups;
    struct crowd_reader_session *session; /* NULL: there was no crowd yet */
    struct sha256 sha256;
    struct canon canon;
    struct buf surt;
    struct buf words;
};

struct crowd_lookups {
    const struct crowd_parts *crowd;
    struct access *access;
    struct pool pool;
    struct worker workers[CROWD_LOOKUPS_THREADS_COUNT];
};

/* ---- what is wished for ---- */

static enum err read_url(struct worker *worker, struct admin_pages_find *find, struct wish *wish) {
    uint8_t digest[SHA256_SIZE];
    buf_clear(&worker->surt);
    enum err err = canon_run(&worker->canon, find->url, &find->detail);
    if (err == ERR_OK) {
        err = surt_put(&worker->surt, &worker->canon);
    }
    if (err == ERR_OK) {
        sha256_digest(&worker->sha256, buf_bytes(&worker->surt), digest);
        memcpy(wish->hash, digest, WISH_HASH_SIZE);
        wish->kind = WISH_URL;
    }
    return err;
}

/* In lower case, one space between two. */
static enum err read_words(struct worker *worker, struct admin_pages_find *find, struct wish *wish) {
    buf_clear(&worker->words);
    for (size_t i = 0; i < find->words.size; i++) {
        uint8_t c = find->words.data[i];
        bool is_space = c <= ' ';
        bool is_after_space = worker->words.size == 0 || worker->words.data[worker->words.size - 1] == ' ';
        if (!is_space || !is_after_space) {
            buf_put_byte(&worker->words, is_space ? ' ' : c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c);
        }
    }
    if (worker->words.size > 0 && worker->words.data[worker->words.size - 1] == ' ') {
        buf_truncate(&worker->words, worker->words.size - 1);
    }
    if (worker->words.err != ERR_OK || worker->words.size == 0) {
        return err_set(&find->detail, ERR_INVALID, "words: 1 to %d bytes", WISH_WORDS_SIZE_MAX);
    }
    wish->kind = WISH_WORDS;
    wish->words = buf_bytes(&worker->words);
    return ERR_OK;
}

static enum err lookup_read_wish(struct worker *worker, struct admin_pages_find *find, struct wish *wish) {
    static const enum wish_time times[] = {WISH_NEWEST, WISH_NEAREST, WISH_BETWEEN};
    *wish = (struct wish){.time = times[find->time], .from_us = find->from_us, .to_us = find->to_us};
    buf_clear(&worker->surt);
    if (find->words.size > 0) {
        return read_words(worker, find, wish);
    }
    if (find->digest.size > 0) {
        wish->kind = WISH_DIGEST;
        return hex_decode(find->digest, wish->digest, sizeof wish->digest)
                   ? ERR_OK
                   : err_set(&find->detail, ERR_INVALID, "the digest is not hexadecimal");
    }
    return read_url(worker, find, wish);
}

/* ---- what is answered ---- */

static void put_obtained(struct buf *out, const struct obtained *obtained) {
    const struct captured *captured = &obtained->captured;
    char digest[2 * KEY_DIGEST_SIZE + 1];
    char text[IDENTITY_TEXT_SIZE + ADDRESS_TEXT_SIZE_MAX];
    struct json json;
    json_begin(&json, out);
    json_count(&json, "version", 1);
    json_bytes(&json, "url", captured->document.url);
    json_timestamp(&json, "timestamp", captured->document.time_us);
    hex_encode(bytes_of(captured->sum.digest, sizeof captured->sum.digest), digest);
    json_text(&json, "digest", digest);
    json_count(&json, "size", captured->sum.size);
    if (captured->is_signed) {
        json_text(&json, "fetched_by", identity_key_format(captured->signer, text));
    }
    if (captured->is_imported) {
        json_text(&json, "imported_by", identity_key_format(captured->importer, text));
    }
    json_text(&json, "source", obtained->is_own ? "own" : "crowd");
    if (!obtained->is_own) {
        json_text(&json, "from", address_format(&obtained->from.address, text));
        json_text(&json, "from_key", identity_key_format(obtained->from.key, text));
        JSON_COUNTS(&json, {"hops", obtained->hops_count}, {"holders", obtained->holders_count});
    }
    json_decimal(&json, "search_milliseconds", (double)obtained->search_us / 1000, 1);
    json_decimal(&json, "transfer_milliseconds", (double)obtained->transfer_us / 1000, 1);
    json_end(&json);
}

/* ---- the threads ---- */

static enum err obtain(struct worker *worker, struct admin_pages_find *find) {
    struct crowd_reader *crowd_reader = worker->lookups->crowd->reader;
    struct wish wish;
    struct obtained obtained;
    if (crowd_reader == NULL) {
        return err_set(&find->detail, ERR_NOT_FOUND, "this node is in no ring yet, so there is no crowd");
    }
    if (worker->session == NULL) {
        worker->session = crowd_reader_session_new(crowd_reader);
    }
    enum err err = worker->session == NULL ? ERR_MEMORY : lookup_read_wish(worker, find, &wish);
    if (err == ERR_OK) {
        err = crowd_reader_get(worker->session, &wish, buf_bytes(&worker->surt), TIMEOUT_MS, &obtained,
                               &find->detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (access_check(worker->lookups->access, obtained.captured.surt, obtained.captured.document.time_us) !=
        ACCESS_ALLOW) {
        return err_set(&find->detail, ERR_PERMISSION, "it may not be shown here");
    }
    if (find->wants_payload) {
        return buf_put(&find->text, obtained.captured.payload);
    }
    put_obtained(&find->text, &obtained);
    return find->text.err;
}

static void crowd_lookups_run(void *context, size_t seat) {
    struct admin_pages_find *find = context;
    struct crowd_lookups *lookups = find->answerer;
    find->err = obtain(&lookups->workers[seat], find);
    find->done(find);
}

static void crowd_lookups_cancel(void *context) {
    struct admin_pages_find *find = context;
    find->err = ERR_CANCELLED;
    find->done(find);
}

static enum err worker_init(struct worker *worker, struct crowd_lookups *lookups) {
    *worker = (struct worker){.lookups = lookups};
    canon_init(&worker->canon);
    buf_init(&worker->surt, SURT_SIZE_MAX);
    buf_init(&worker->words, WISH_WORDS_SIZE_MAX);
    return sha256_init(&worker->sha256);
}

static void worker_done(struct worker *worker) {
    crowd_reader_session_free(worker->session);
    sha256_done(&worker->sha256);
    canon_done(&worker->canon);
    buf_done(&worker->surt);
    buf_done(&worker->words);
}

enum err crowd_lookups_start(const struct crowd_parts *crowd, struct access *access,
                             struct crowd_lookups **ret_crowd_lookups) {
    struct pool_config pool = {
        .name = "crowd-lookup",
        .threads_max = CROWD_LOOKUPS_THREADS_COUNT,
        .jobs_max = CROWD_LOOKUPS_WAITING_MAX,
        .cancelled = crowd_lookups_cancel,
    };
    struct crowd_lookups *lookups = calloc(1, sizeof *lookups);
    if (lookups == NULL) {
        return ERR_MEMORY;
    }
    lookups->crowd = crowd;
    lookups->access = access;
    enum err err = ERR_OK;
    for (size_t i = 0; i < CROWD_LOOKUPS_THREADS_COUNT; i++) {
        enum err failed = worker_init(&lookups->workers[i], lookups);
        err = err == ERR_OK ? failed : err;
    }
    err = err == ERR_OK ? pool_start(&lookups->pool, &pool) : err;
    if (err != ERR_OK) {
        crowd_lookups_stop(lookups);
        crowd_lookups_free(lookups);
        return err;
    }
    *ret_crowd_lookups = lookups;
    return ERR_OK;
}

void crowd_lookups_stop(struct crowd_lookups *lookups) {
    pool_stop(&lookups->pool);
    for (size_t i = 0; i < CROWD_LOOKUPS_THREADS_COUNT; i++) {
        worker_done(&lookups->workers[i]);
    }
}

void crowd_lookups_free(struct crowd_lookups *lookups) {
    free(lookups);
}

void crowd_lookups_ask(struct crowd_lookups *lookups, struct admin_pages_find *find) {
    find->answerer = lookups;
    find->job = (struct pool_job){.run = crowd_lookups_run, .context = find};
    if (!pool_try(&lookups->pool, &find->job)) {
        find->err = err_set(&find->detail, ERR_BUSY, "too many wait for the crowd");
        find->done(find);
    }
}
