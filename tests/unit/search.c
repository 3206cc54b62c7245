/* search: what is fed from a real archive, and what questions find in it. */
#include "replay/search/search.h"

#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <time.h>

#include "await.h"
#include "base/buf.h"
#include "base/prng.h"
#include "base/utf8.h"
#include "replay/search/search_database.h"
#include "replay/search/search_words.h"
#include "scratch.h"
#include "store/volume/compact.h"
#include "unit.h"

enum { SECOND_US = 1000000 };

struct fixture {
    void *root;
    struct instance *instance;
    struct instance_session *session;
    struct archive *archive;
    struct access *access;
    struct search *search;
    atomic_uint told_count;
};

static void open_archive(struct fixture *fixture) {
    struct instance_config config = {.directory = fixture->root, .volume = {.segment_size_max = 20000}};
    struct err_detail detail = {0};
    if (instance_open(&config, &fixture->instance, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    fixture->session = instance_session_new(fixture->instance);
    assert_int_equal(access_open(fixture->root, &clock_system, NULL, NULL, &fixture->access, NULL), ERR_OK);
    struct archive_config archive = {
        .instance = fixture->instance, .access = fixture->access, .scratch_directory = fixture->root};
    fixture->archive = archive_new(&archive);
    assert_non_null(fixture->archive);
}

static void tell(void *context, const char *name, const char *sentence) {
    struct fixture *fixture = context;
    assert_string_equal(name, "search");
    assert_true(strlen(sentence) > 0);
    atomic_fetch_add(&fixture->told_count, 1);
}

static void start(struct fixture *fixture) {
    struct search_config config = {.is_enabled = true,
                                   .directory = fixture->root,
                                   .instance = fixture->instance,
                                   .tell = tell,
                                   .context = fixture};
    assert_int_equal(search_start(&config, &fixture->search, NULL), ERR_OK);
    assert_non_null(fixture->search);
}

static void stop(struct fixture *fixture) {
    search_stop(fixture->search);
    fixture->search = NULL;
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || scratch_make(&fixture->root) != 0) {
        return -1;
    }
    open_archive(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    search_stop(fixture->search);
    archive_free(fixture->archive);
    access_close(fixture->access);
    instance_session_free(fixture->session);
    instance_close(fixture->instance);
    int result = scratch_remove(&fixture->root);
    free(fixture);
    return result;
}

static struct stored put(struct fixture *fixture, const char *url, int64_t seconds, const char *head,
                         struct bytes body) {
    struct document document = {.url = bytes_of_string(url),
                                .time_us = seconds * SECOND_US,
                                .head = bytes_of_string(head),
                                .body = body};
    struct stored stored;
    struct err_detail detail = {0};
    if (instance_put(fixture->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, &detail) !=
        ERR_OK) {
        fail_msg("%s", detail.text);
    }
    return stored;
}

#define HTML_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"

static struct stored put_page(struct fixture *fixture, const char *url, int64_t seconds, const char *html) {
    return put(fixture, url, seconds, HTML_HEAD, bytes_of_string(html));
}

/* Until all that is stored has been read. */
static void await_feeder(struct fixture *fixture) {
    struct search_stat stat = {0};
    unsigned turns_count = 0;
    do {
        search_stat(fixture->search, &stat);
        if (stat.is_open && stat.left_size == 0) {
            assert_int_equal(stat.left_count, 0);
            assert_string_equal(stat.error, "");
            return;
        }
    } while (await_turn(&turns_count));
    fail_msg("the feeder is not done: %s", stat.error);
}

static uint64_t documents_count(struct fixture *fixture) {
    struct search_stat stat;
    search_stat(fixture->search, &stat);
    return stat.documents_count;
}

static void await_documents(struct fixture *fixture, uint64_t count) {
    await_that(documents_count(fixture) == count);
}

static void post(void *semaphore) {
    sem_post(semaphore);
}

static enum err ask(struct fixture *fixture, const struct search_question *question, struct search_job *job) {
    sem_t done;
    sem_init(&done, 0, 0);
    search_job_init(job);
    job->question = *question;
    job->archive = fixture->archive;
    job->done = post;
    job->context = &done;
    assert_int_equal(search_ask(fixture->search, job), ERR_OK);
    sem_wait(&done);
    sem_destroy(&done);
    return job->err;
}

static struct search_question question_of(const char *words) {
    return (struct search_question){
        .words = bytes_of_string(words), .from_us = INT64_MIN, .to_us = INT64_MAX, .limit = 10};
}

/* The URLs that are found, in their order, one per line. */
static void expect_found(struct fixture *fixture, const struct search_question *question, const char *urls) {
    struct search_job job;
    struct buf found;
    buf_init(&found, 1 << 16);
    enum err err = ask(fixture, question, &job);
    if (err != ERR_OK) {
        fail_msg("%s: %s", err_name(err), err_detail_text(&job.detail, err));
    }
    for (size_t i = 0; i < job.results_count; i++) {
        buf_put(&found, job.results[i].url);
        buf_put_byte(&found, '\n');
    }
    assert_bytes_equal(buf_bytes(&found), bytes_of_string(urls));
    buf_done(&found);
    search_job_done(&job);
}

static void expect(struct fixture *fixture, const char *words, const char *urls) {
    struct search_question question = question_of(words);
    expect_found(fixture, &question, urls);
}

/* FTS5 compares its index with the texts; stops the search. */
static void expect_sound(struct fixture *fixture) {
    char path[SCRATCH_PATH_SIZE];
    sqlite3 *database;
    struct err_detail detail = {0};
    stop(fixture);
    scratch_path(fixture->root, "search/text.db", path);
    assert_int_equal(search_database_open(path, true, &database, NULL), ERR_OK);
    if (search_database_run(database, "INSERT INTO words(words, rank) VALUES('integrity-check', 1)",
                            &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    sqlite3_close(database);
}

/* ---- feeding ---- */

static void pages_are_found_by_their_words(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/", 1000, "<title>Birds</title><p>A heron stands in the water.");
    put_page(fixture, "http://a.example/cats", 1001, "<title>Cats</title><p>A cat sits in the Café.");
    start(fixture);
    await_feeder(fixture);
    assert_int_equal(documents_count(fixture), 2);
    expect(fixture, "heron", "http://a.example/\n");
    expect(fixture, "HERON water", "http://a.example/\n");
    expect(fixture, "heron cat", "");
    expect(fixture, "cafe", "http://a.example/cats\n");
    expect(fixture, "CAFÉ", "http://a.example/cats\n");
    put_page(fixture, "http://b.example/", 1002, "<p>Another heron");
    await_documents(fixture, 3);
    expect(fixture, "heron another", "http://b.example/\n");
}

static void only_html_of_status_200_is_read(void **state) {
    struct fixture *fixture = *state;
    put(fixture, "http://a.example/404", 1, "HTTP/1.1 404 No\r\nContent-Type: text/html\r\n\r\n",
        BYTES("<p>word one"));
    put(fixture, "http://a.example/text", 1, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
        BYTES("word two"));
    put(fixture, "http://a.example/x", 1, "HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml\r\n\r\n",
        BYTES("<html><p>word three</p></html>"));
    put(fixture, "http://a.example/c", 1,
        "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML\r\nTransfer-Encoding: chunked\r\n\r\n",
        BYTES("7\r\n<p>word\r\n5\r\n four\r\n0\r\n\r\n"));
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "word three", "http://a.example/x\n");
    expect(fixture, "word four", "http://a.example/c\n");
    assert_int_equal(documents_count(fixture), 2);
}

static void an_unchanged_page_is_one_row_and_shown_when_it_was_seen(void **state) {
    struct fixture *fixture = *state;
    const char *page = "<title>Same</title><p>unchanged";
    put_page(fixture, "http://a.example/", 1000, page);
    put_page(fixture, "http://a.example/", 2000, page);
    put_page(fixture, "http://a.example/", 3000, page);
    put_page(fixture, "http://b.example/", 4000, page);
    start(fixture);
    await_feeder(fixture);
    assert_int_equal(documents_count(fixture), 2);
    static const struct {
        int64_t from;
        int64_t to;
        int64_t shown; /* 0: not found */
    } cases[] = {{0, 9999, 1000}, {1000, 1000, 1000}, {2500, 3500, 3000}, {1500, 2500, 2000},
                 {2100, 2900, 0}, {0, 999, 0},        {3001, 3999, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct search_question question = question_of("unchanged");
        struct search_job job;
        question.host = BYTES("a.example");
        question.from_us = cases[i].from * SECOND_US;
        question.to_us = cases[i].to * SECOND_US;
        assert_int_equal(ask(fixture, &question, &job), ERR_OK);
        assert_int_equal(job.results_count, cases[i].shown != 0);
        if (cases[i].shown != 0) {
            assert_int_equal(job.results[0].time_us, cases[i].shown * SECOND_US);
        }
        search_job_done(&job);
    }
}

static void what_was_read_stays_after_a_restart_and_is_not_read_twice(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/1", 1, "<p>first");
    start(fixture);
    await_feeder(fixture);
    stop(fixture);
    put_page(fixture, "http://a.example/2", 2, "<p>second");
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "first", "http://a.example/1\n");
    expect(fixture, "second", "http://a.example/2\n");
    assert_int_equal(documents_count(fixture), 2);
    assert_int_equal(fixture->told_count, 0);
}

static void removed_documents_are_gone_at_once_and_from_the_database(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/1", 1, "<p>kept stone");
    struct stored stored = put_page(fixture, "http://a.example/2", 2, "<p>removed stone");
    start(fixture);
    await_feeder(fixture);
    assert_int_equal(instance_remove(fixture->session, &stored.key, NULL), ERR_OK);
    expect(fixture, "stone", "http://a.example/1\n");
    await_documents(fixture, 1);
    await_feeder(fixture);
    expect(fixture, "stone", "http://a.example/1\n");
    put_page(fixture, "http://a.example/2", 3, "<p>removed stone");
    await_documents(fixture, 2);
    expect(fixture, "removed", "http://a.example/2\n");
}

static struct volume *volume_of(struct fixture *fixture) {
    struct instance_volume volume;
    instance_volume(fixture->instance, 0, &volume);
    return volume.volume;
}

/* One in five is removed, and its record with it. */
static void remove_and_compact(struct fixture *fixture, struct key *keys, size_t keys_count) {
    struct compact_report report;
    for (size_t i = 0; i < keys_count; i++) {
        if (i % 5 == 4) {
            assert_int_equal(instance_remove(fixture->session, &keys[i], NULL), ERR_OK);
        }
    }
    assert_int_equal(compact_volume(volume_of(fixture), 0, &report, NULL), ERR_OK);
    assert_true(report.segments_count > 0 && report.dropped_count > 0);
}

/* A page of random words, which does not compress well. */
static struct stored put_random_page(struct fixture *fixture, size_t i) {
    char url[64];
    char page[4096];
    struct prng prng;
    prng_init(&prng, i);
    snprintf(url, sizeof url, "http://a.example/%zu", i);
    int size = snprintf(page, sizeof page, "<title>Page %zu</title><p>gravel number%zu ", i, i);
    for (size_t at = (size_t)size; at < sizeof page - 1; at++) {
        page[at] = at % 9 == 0 ? ' ' : (char)('a' + prng_below(&prng, 26));
    }
    page[sizeof page - 1] = '\0';
    return put_page(fixture, url, (int64_t)i, page);
}

static void compaction_neither_loses_nor_doubles(void **state) {
    enum { PAGES_COUNT = 90 };
    struct fixture *fixture = *state;
    struct key keys[PAGES_COUNT];
    for (size_t i = 0; i < PAGES_COUNT; i++) {
        keys[i] = put_random_page(fixture, i).key;
        if (i == PAGES_COUNT / 2) {
            start(fixture); /* somewhere in the middle */
            await_feeder(fixture);
            stop(fixture);
        }
    }
    remove_and_compact(fixture, keys, PAGES_COUNT);
    start(fixture);
    await_feeder(fixture);
    struct search_question question = question_of("gravel");
    struct search_job job;
    question.limit = 100;
    assert_int_equal(ask(fixture, &question, &job), ERR_OK);
    assert_int_equal(job.results_count, PAGES_COUNT * 4 / 5);
    search_job_done(&job);
    await_documents(fixture, PAGES_COUNT * 4 / 5); /* rows that were found removed are taken out */
    expect(fixture, "number42", "http://a.example/42\n");
    expect(fixture, "number44", "");
    expect_sound(fixture);
}

static void write_file(struct fixture *fixture, const char *name, const char *text) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(fixture->root, name, path), "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_database_is_made_again(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/1", 1, "<p>granite");
    start(fixture);
    await_feeder(fixture);
    stop(fixture);
    write_file(fixture, "search/text.db",
               "this is not a database, however long one looks at it, and never was");
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "granite", "http://a.example/1\n");
    assert_int_equal(fixture->told_count, 1);
}

static void a_database_of_another_format_is_made_again(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    sqlite3 *database;
    put_page(fixture, "http://a.example/1", 1, "<p>granite");
    start(fixture);
    await_feeder(fixture);
    stop(fixture);
    assert_int_equal(sqlite3_open(scratch_path(fixture->root, "search/text.db", path), &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "granite", "http://a.example/1\n");
    assert_int_equal(fixture->told_count, 1);
}

static void a_missing_database_is_made_again_while_it_runs(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    put_page(fixture, "http://a.example/1", 1, "<p>granite");
    start(fixture);
    await_feeder(fixture);
    assert_int_equal(remove(scratch_path(fixture->root, "search/text.db", path)), 0);
    await_that(fixture->told_count > 0);
    assert_int_equal(fixture->told_count, 1);
    await_documents(fixture, 1);
    await_feeder(fixture);
    expect(fixture, "granite", "http://a.example/1\n");
}

static void switched_off_there_is_nothing(void **state) {
    struct fixture *fixture = *state;
    struct search_config config = {.directory = fixture->root, .instance = fixture->instance};
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(search_start(&config, &fixture->search, NULL), ERR_OK);
    assert_null(fixture->search);
    assert_int_not_equal(access(scratch_path(fixture->root, "search", path), F_OK), 0);
}

/* ---- questions ---- */

static void a_word_in_the_title_counts_more(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/text", 1,
             "<title>Something</title><p>About lichen, and lichen again, and many other plants that grow.");
    put_page(fixture, "http://a.example/title", 2,
             "<title>Lichen</title><p>A page with many other plants that grow here and there on stones.");
    put_page(fixture, "http://a.example/none", 3, "<title>Moss</title><p>Only moss.");
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "lichen", "http://a.example/title\nhttp://a.example/text\n");
}

static void phrases_prefixes_and_words_that_must_not_be_there(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/1", 1, "<p>the quick brown fox");
    put_page(fixture, "http://a.example/2", 2,
             "<p>brown and quick is the dog there, not a fox anywhere near");
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "\"quick brown\"", "http://a.example/1\n");
    expect(fixture, "\"quick brown", "http://a.example/1\n");
    expect(fixture, "quick -dog", "http://a.example/1\n");
    expect(fixture, "quick -\"quick brown\"", "http://a.example/2\n");
    expect(fixture, "anyw*", "http://a.example/2\n");
    expect(fixture, "quick-brown", "http://a.example/1\n");
    expect(fixture, "anyw", "");
}

static void nothing_a_user_types_is_syntax(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/1", 1, "<p>NEAR the end: AND OR NOT title words");
    put_page(fixture, "http://a.example/2", 2, "<p>другие слова 日本語");
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "NEAR(the end)", "http://a.example/1\n");
    expect(fixture, "AND OR NOT", "http://a.example/1\n");
    expect(fixture, "title:words", "http://a.example/1\n");
    expect(fixture, "near OR слова", "");
    expect(fixture, "{near} ^near + near* ' ; --", "http://a.example/1\n");
    expect(fixture, "СЛОВА другие", "http://a.example/2\n");
    expect(fixture, "日本*", "http://a.example/2\n");
    expect(fixture, "near\x01\x02\x03the", "http://a.example/1\n");
    static const char *const wrong[] = {"",  " ",   "\"",    "\"\"", "*", "**",
                                        "-", "ab*", "-word", "()",   "—", "\xff\xfe"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct search_question question = question_of(wrong[i]);
        struct search_job job;
        if (ask(fixture, &question, &job) != ERR_INVALID) {
            fail_msg("\"%s\" is no question", wrong[i]);
        }
        assert_true(strlen(job.detail.text) > 0);
        search_job_done(&job);
    }
}

static void questions_are_bounded(void **state) {
    struct fixture *fixture = *state;
    struct buf words;
    struct search_job job;
    buf_init(&words, 11 << 20);
    start(fixture);
    await_feeder(fixture);
    while (words.size < 10 << 20) {
        buf_put_string(&words, "word ");
    }
    struct search_question question = question_of("");
    question.words = buf_bytes(&words);
    assert_int_equal(ask(fixture, &question, &job), ERR_LIMIT);
    search_job_done(&job);
    question.words = bytes_slice(buf_bytes(&words), 0, 5 * SEARCH_TERMS_MAX + 5);
    assert_int_equal(ask(fixture, &question, &job), ERR_LIMIT);
    search_job_done(&job);
    question = question_of("word");
    question.limit = SEARCH_RESULTS_MAX + 1;
    assert_int_equal(ask(fixture, &question, &job), ERR_LIMIT);
    search_job_done(&job);
    question.limit = 1;
    question.offset = SEARCH_OFFSET_MAX + 1;
    assert_int_equal(ask(fixture, &question, &job), ERR_LIMIT);
    search_job_done(&job);
    question = question_of("word");
    question.host = BYTES("///");
    assert_int_equal(ask(fixture, &question, &job), ERR_INVALID);
    search_job_done(&job);
    buf_done(&words);
}

static void hosts_and_their_subdomains(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://www.a.example/", 1, "<p>pebble one");
    put_page(fixture, "https://sub.a.example:8443/", 2, "<p>pebble two two");
    put_page(fixture, "http://nota.example/", 3, "<p>pebble three three three");
    put_page(fixture, "http://xn--mller-kva.example/", 4, "<p>pebble four four four four");
    start(fixture);
    await_feeder(fixture);
    static const struct {
        const char *host;
        const char *urls;
    } cases[] = {
        {"a.example", "http://www.a.example/\nhttps://sub.a.example:8443/\n"},
        {"WWW.A.example", "http://www.a.example/\nhttps://sub.a.example:8443/\n"},
        {"sub.a.example", "https://sub.a.example:8443/\n"},
        {"müller.example", "http://xn--mller-kva.example/\n"},
        {"b.example", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct search_question question = question_of("pebble");
        question.host = bytes_of_string(cases[i].host);
        expect_found(fixture, &question, cases[i].urls);
    }
}

static void results_come_in_pages(void **state) {
    struct fixture *fixture = *state;
    for (int i = 0; i < 25; i++) {
        char url[64];
        char page[64];
        snprintf(url, sizeof url, "http://a.example/%d", i);
        snprintf(page, sizeof page, "<p>sand number%d", i);
        put_page(fixture, url, i, page);
    }
    start(fixture);
    await_feeder(fixture);
    size_t all_count = 0;
    for (size_t offset = 0; offset < 30; offset += 10) {
        struct search_question question = question_of("sand");
        struct search_job job;
        question.offset = offset;
        assert_int_equal(ask(fixture, &question, &job), ERR_OK);
        assert_int_equal(job.has_more, offset < 20);
        all_count += job.results_count;
        search_job_done(&job);
    }
    assert_int_equal(all_count, 25);
}

static void snippets_mark_the_words_and_nothing_else(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/", 1,
             "<html lang=en><title>A &lt;b&gt;</title><p>Here \x02 is &#2; the &lt;i&gt; Basalt column\x03.");
    start(fixture);
    await_feeder(fixture);
    struct search_question question = question_of("basalt");
    struct search_job job;
    assert_int_equal(ask(fixture, &question, &job), ERR_OK);
    assert_int_equal(job.results_count, 1);
    assert_bytes_equal(job.results[0].snippet, BYTES("Here is the <i> \x02"
                                                     "Basalt\x03 column ."));
    assert_bytes_equal(job.results[0].title, BYTES("A <b>"));
    assert_bytes_equal(job.results[0].language, BYTES("en"));
    assert_true(job.results[0].score > 0);
    search_job_done(&job);
}

/* What FTS5's own snippet() takes many seconds for. */
static void a_page_that_repeats_a_word_is_no_trouble(void **state) {
    struct fixture *fixture = *state;
    struct buf page;
    struct search_job job;
    buf_init(&page, 1 << 20);
    buf_put_string(&page, "<p>begin ");
    for (int i = 0; i < 60000; i++) {
        buf_put_string(&page, "agate ");
    }
    buf_put_string(&page, "rare agate end");
    put(fixture, "http://a.example/1", 1, HTML_HEAD, buf_bytes(&page));
    buf_clear(&page);
    for (int i = 0; i < 200; i++) {
        buf_put_string(&page, "words before ");
    }
    buf_put_string(&page, "an agate lies apart from a rare opal and then more ");
    for (int i = 0; i < 200; i++) {
        buf_put_string(&page, "日本語日本語日本語");
    }
    put(fixture, "http://a.example/2", 1, HTML_HEAD, buf_bytes(&page));
    start(fixture);
    await_feeder(fixture);
    struct search_question question = question_of("agate rare \"rare opal\" apa*");
    assert_int_equal(ask(fixture, &question, &job), ERR_OK);
    assert_int_equal(job.results_count, 1);
    struct bytes snippet = job.results[0].snippet;
    assert_true(snippet.size < 1200 && utf8_is_valid(snippet));
    assert_true(bytes_find(snippet, BYTES("…before words before words before words before an \2agate\3 lies "
                                          "\2apart\3 from a \2rare opal\3 and then more 日本")) == 0);
    assert_true(bytes_ends_with(snippet, BYTES("…")));
    search_job_done(&job);
    question = question_of("agate -opal");
    assert_int_equal(ask(fixture, &question, &job), ERR_OK);
    assert_int_equal(job.results_count, 1);
    assert_true(bytes_starts_with(job.results[0].snippet, BYTES("begin \2agate\3 \2agate\3 ")));
    search_job_done(&job);
    buf_done(&page);
}

static void rules_of_access_count_at_once(void **state) {
    struct fixture *fixture = *state;
    put_page(fixture, "http://a.example/open", 1, "<p>obsidian one");
    put_page(fixture, "http://a.example/private/x", 2, "<p>obsidian two two");
    put_page(fixture, "http://b.example/", 3, "<p>obsidian three three three");
    start(fixture);
    await_feeder(fixture);
    expect(fixture, "obsidian two", "http://a.example/private/x\n");
    write_file(fixture, "access.aclj",
               "example,b)/ - {\"access\": \"exclude\"}\nexample,a)/private - {\"access\": \"block\"}\n");
    struct search_job job;
    struct search_question question = question_of("obsidian");
    size_t count = 0;
    unsigned turns_count = 0;
    do { /* files are looked at once a second */
        assert_int_equal(ask(fixture, &question, &job), ERR_OK);
        count = job.results_count;
        search_job_done(&job);
    } while (count != 1 && await_turn(&turns_count));
    expect(fixture, "obsidian", "http://a.example/open\n");
    assert_int_equal(documents_count(fixture), 3);
}

/* A clock that, once it is hasty, goes on by a second whenever somebody looks. */
struct hasty {
    struct clock clock; /* first */
    atomic_bool is_hasty;
    atomic_ullong ahead_us;
};

static uint64_t hasty_monotonic_us(const struct clock *clock) {
    struct hasty *hasty = (struct hasty *)(uintptr_t)clock;
    if (hasty->is_hasty) {
        hasty->ahead_us += SECOND_US;
    }
    return clock_monotonic_us(&clock_system) + hasty->ahead_us;
}

static int64_t hasty_wall_us(const struct clock *clock) {
    (void)clock;
    return clock_wall_us(&clock_system);
}

static void what_takes_too_long_is_given_up(void **state) {
    struct fixture *fixture = *state;
    static struct hasty hasty = {.clock = {hasty_monotonic_us, hasty_wall_us}};
    struct search_config config = {
        .is_enabled = true, .directory = fixture->root, .instance = fixture->instance, .clock = &hasty.clock};
    put_page(fixture, "http://a.example/1", 1, "<p>slate");
    put_page(fixture, "http://a.example/2", 2, "<p>slate again");
    put_page(fixture, "http://a.example/3", 3, "<p>slate once more");
    assert_int_equal(search_start(&config, &fixture->search, NULL), ERR_OK);
    await_feeder(fixture);
    hasty.is_hasty = true;
    struct search_question question = question_of("slate");
    struct search_job job;
    assert_int_equal(ask(fixture, &question, &job), ERR_TIMEOUT);
    assert_true(bytes_find(bytes_of_string(job.detail.text), BYTES("2 seconds")) < strlen(job.detail.text));
    search_job_done(&job);
    hasty.is_hasty = false;
    assert_int_equal(ask(fixture, &question, &job), ERR_OK);
    assert_int_equal(job.results_count, 3);
    search_job_done(&job);
}

static void many_may_ask_at_once(void **state) {
    enum { JOBS_COUNT = 200 };
    struct fixture *fixture = *state;
    struct search_job jobs[JOBS_COUNT];
    sem_t done;
    size_t asked_count = 0;
    put_page(fixture, "http://a.example/", 1, "<p>quartz");
    start(fixture);
    await_feeder(fixture);
    sem_init(&done, 0, 0);
    for (size_t i = 0; i < JOBS_COUNT; i++) {
        search_job_init(&jobs[asked_count]);
        jobs[asked_count].question = question_of("quartz");
        jobs[asked_count].archive = fixture->archive;
        jobs[asked_count].done = post;
        jobs[asked_count].context = &done;
        asked_count += search_ask(fixture->search, &jobs[asked_count]) == ERR_OK;
    }
    assert_true(asked_count >= SEARCH_JOBS_MAX);
    for (size_t i = 0; i < asked_count; i++) {
        sem_wait(&done);
    }
    for (size_t i = 0; i < asked_count; i++) {
        assert_int_equal(jobs[i].err, ERR_OK);
        assert_int_equal(jobs[i].results_count, 1);
        search_job_done(&jobs[i]);
    }
    sem_destroy(&done);
}

static void words_become_an_expression(void **state) {
    (void)state;
    static const struct {
        const char *words;
        const char *expression;
    } cases[] = {
        {"web", "(\"web\")"},
        {"web \"full text\" -spam arch*", "(\"web\" AND \"full text\" AND \"arch*\"*) NOT (\"spam\")"},
        {"a -b -c", "(\"a\") NOT (\"b\" OR \"c\")"},
        {"a\"b c\"d", "(\"a\" AND \"b c\" AND \"d\")"},
        {"- a", "(\"a\")"},
        {"* \" a", "(\" a\")"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        buf_init(&out, 4096);
        assert_int_equal(search_words_put(&out, bytes_of_string(cases[i].words), NULL), ERR_OK);
        assert_bytes_equal(buf_bytes(&out), bytes_of_string(cases[i].expression));
        buf_done(&out);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(pages_are_found_by_their_words),
        TEST(only_html_of_status_200_is_read),
        TEST(an_unchanged_page_is_one_row_and_shown_when_it_was_seen),
        TEST(what_was_read_stays_after_a_restart_and_is_not_read_twice),
        TEST(removed_documents_are_gone_at_once_and_from_the_database),
        TEST(compaction_neither_loses_nor_doubles),
        TEST(a_damaged_database_is_made_again),
        TEST(a_database_of_another_format_is_made_again),
        TEST(a_missing_database_is_made_again_while_it_runs),
        TEST(switched_off_there_is_nothing),
        TEST(a_word_in_the_title_counts_more),
        TEST(phrases_prefixes_and_words_that_must_not_be_there),
        TEST(nothing_a_user_types_is_syntax),
        TEST(questions_are_bounded),
        TEST(hosts_and_their_subdomains),
        TEST(results_come_in_pages),
        TEST(snippets_mark_the_words_and_nothing_else),
        TEST(a_page_that_repeats_a_word_is_no_trouble),
        TEST(rules_of_access_count_at_once),
        TEST(what_takes_too_long_is_given_up),
        TEST(many_may_ask_at_once),
        cmocka_unit_test(words_become_an_expression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
