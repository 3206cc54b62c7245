/* Questions that other nodes answer: the request waits suspended. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/utc.h"
#include "replay/admin/admin_pages_state.h"

enum { DIGEST_DIGITS = 64, WORDS_SIZE_MAX = 256, TEXT_SIZE_MAX = 32 };
static const uint64_t SINCE_S_MAX = UINT64_C(100) * 366 * 86400;

/* One request. */
struct asking {
    struct admin_pages_find find;
    struct buf url;
    struct buf digest;
    struct buf words;
    struct http_request *request;
};

static void find_on_done(struct admin_pages_find *find) {
    const struct asking *asking = find->context;
    http_request_resume(asking->request);
}

/* ---- what is asked ---- */

static enum err read_lookup(struct asking *asking, struct bytes query) {
    struct admin_pages_find *find = &asking->find;
    struct buf count;
    uint64_t wanted = 1;
    buf_init(&count, 8);
    bool is_given = form_get(query, "vnodes", &count) || form_get(query, "places", &count); /* in 0.1 */
    bool is_sound =
        !is_given || (bytes_to_u64(buf_bytes(&count), ADMIN_PAGES_VNODES_MAX, &wanted) && wanted > 0);
    buf_done(&count);
    if (!is_sound) {
        return err_set(&find->detail, ERR_INVALID, "\"vnodes\" is a number from 1 to %d",
                       ADMIN_PAGES_VNODES_MAX);
    }
    if (!form_get(query, "url", &asking->url) || asking->url.err != ERR_OK) {
        return err_set(&find->detail, ERR_INVALID, "which URL? /api/v1/ring/lookup?url=URL");
    }
    find->kind = ADMIN_PAGES_FIND_VNODES;
    find->vnodes_wanted = (uint8_t)wanted;
    return ERR_OK;
}

/* "at=2024", the nearest to that; "since=300", of the last so many seconds. */
static enum err find_read_time(struct admin_pages_find *find, struct bytes query) {
    struct buf text;
    uint64_t since_s;
    enum err err = ERR_OK;
    buf_init(&text, TEXT_SIZE_MAX);
    if (form_get(query, "at", &text)) {
        find->time = ADMIN_PAGES_FIND_NEAREST;
        if (text.err != ERR_OK || !utc_parse_digits(buf_bytes(&text), false, &find->from_us)) {
            err = err_set(&find->detail, ERR_INVALID,
                          "\"at\" is a time of 1 to 14 digits, as in 20260102030405");
        }
    } else if (form_get(query, "since", &text)) {
        find->time = ADMIN_PAGES_FIND_BETWEEN;
        if (text.err != ERR_OK || !bytes_to_u64(buf_bytes(&text), SINCE_S_MAX, &since_s)) {
            err = err_set(&find->detail, ERR_INVALID, "\"since\" is a number of seconds");
        } else {
            find->to_us = clock_wall_us(&clock_system);
            find->from_us = find->to_us - (int64_t)since_s * 1000000;
        }
    }
    buf_done(&text);
    return err;
}

static enum err read_locate(struct asking *asking, struct bytes query) {
    struct admin_pages_find *find = &asking->find;
    struct buf content;
    bool has_url = form_get(query, "url", &asking->url);
    bool has_digest = form_get(query, "digest", &asking->digest);
    bool has_words = form_get(query, "words", &asking->words);
    if (has_url + has_digest + has_words != 1 || asking->url.err != ERR_OK || asking->words.err != ERR_OK) {
        return err_set(
            &find->detail, ERR_INVALID,
            "what do you want? Send one of url=URL, digest=SHA-256, words=WORDS (%d bytes at most)",
            WORDS_SIZE_MAX);
    }
    if (has_digest && asking->digest.size != DIGEST_DIGITS) {
        return err_set(&find->detail, ERR_INVALID, "\"digest\" is a SHA-256 in %d hexadecimal digits",
                       DIGEST_DIGITS);
    }
    buf_init(&content, TEXT_SIZE_MAX);
    find->wants_payload =
        form_get(query, "content", &content) && bytes_equal(buf_bytes(&content), BYTES("payload"));
    buf_done(&content);
    find->kind = ADMIN_PAGES_FIND_CAPTURE;
    return find_read_time(find, query);
}

/* ---- asking and answering ---- */

static struct asking *asking_new(struct http_request *request) {
    struct asking *asking = calloc(1, sizeof *asking);
    if (asking != NULL) {
        asking->request = request;
        asking->find.done = find_on_done;
        asking->find.context = asking;
        buf_init(&asking->url, ADMIN_PAGES_URL_SIZE_MAX);
        buf_init(&asking->digest, DIGEST_DIGITS);
        buf_init(&asking->words, WORDS_SIZE_MAX);
        buf_init(&asking->find.text, ADMIN_PAGES_TEXT_SIZE_MAX);
    }
    return asking;
}

/* What was archived is shown nowhere as a page of this site: it is a file to be saved. */
static void answer_payload(struct http_request *request, const struct admin_pages_find *find) {
    http_add_header(request, "Content-Disposition", "attachment");
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    http_answer(request, STATUS_OK, "application/octet-stream", buf_bytes(&find->text));
}

/* Called again when the others have answered. */
static void answer_asking(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct asking *asking = http_request_state(request);
    if (asking == NULL) {
        asking = asking_new(request);
        if (asking == NULL) {
            http_answer_error(request, ERR_MEMORY, NULL);
            return;
        }
        http_request_set_state(request, asking);
        asking->find.err = http_request_variant(request) == ADMIN_PAGES_FIND_VNODES
                               ? read_lookup(asking, http_request_query(request))
                               : read_locate(asking, http_request_query(request));
        asking->find.url = buf_bytes(&asking->url);
        asking->find.digest = buf_bytes(&asking->digest);
        asking->find.words = buf_bytes(&asking->words);
        if (asking->find.err == ERR_OK) {
            http_request_suspend(request); /* before it can be resumed */
            admin_pages->table->find(admin_pages->context, &asking->find);
            return;
        }
    }
    if (asking->find.err != ERR_OK) {
        admin_pages_answer_error(request, asking->find.err, &asking->find.detail);
    } else if (asking->find.wants_payload) {
        answer_payload(request, &asking->find);
    } else {
        http_answer_json(request, STATUS_OK, "no-store", &asking->find.text);
    }
}

static void end_asking(struct http_request *request) {
    struct asking *asking = http_request_state(request);
    if (asking != NULL) {
        buf_done(&asking->url);
        buf_done(&asking->digest);
        buf_done(&asking->words);
        buf_done(&asking->find.text);
        free(asking);
    }
}

size_t admin_pages_find_routes(struct replay *replay, struct http_route *out) {
    static const struct http_route routes[] = {
        {.method = "GET",
         .path = "/api/v1/ring/lookup",
         .variant = ADMIN_PAGES_FIND_VNODES,
         .answer = answer_asking,
         .end = end_asking},
        {.method = "GET",
         .path = "/api/v1/crowd/locate",
         .variant = ADMIN_PAGES_FIND_CAPTURE,
         .answer = answer_asking,
         .end = end_asking},
    };
    return replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
}
