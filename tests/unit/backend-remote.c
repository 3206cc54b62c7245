/* shelf-remote: a volume over HTTP is the volume; a server that is gone, slow or lying is an error in time.
 */
#include "store/remote/backend_remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <zstd.h>

#include "await.h"
#include "base/prng.h"
#include "base/sha256.h"
#include "base/utc.h"
#include "http-client.h"
#include "replay/volumes/volume_service.h"
#include "scratch.h"
#include "store/index/index_cursor.h"
#include "store/remote/backend_code.h"
#include "unit.h"

enum { NUMBER = 5, REMOTE_NUMBER = 3, LARGE_SIZE = 3 << 20, CAPTURES_COUNT = 2300, SUBMITS_COUNT = 300 };

#define TOKEN "0123456789abcdef0123456789abcdef"

struct fixture {
    char *directory;
    char index[SCRATCH_PATH_SIZE];
    struct vfs_posix vfs;
    struct volume *volume;
    struct volume_service *service;
    struct http_route routes[VOLUME_SERVICE_ROUTES_COUNT];
    struct http_server *server;
    uint16_t port;
    struct backend *backend;
    struct backend_session *session;
    struct err_detail detail;
};

static void start_server(struct fixture *fixture) {
    struct volume_service_volume offered = {REMOTE_NUMBER, fixture->volume};
    struct volume_service_config service = {
        .volumes = &offered, .volumes_count = 1, .token = TOKEN, .scratch_directory = fixture->directory};
    fixture->service = volume_service_new(&service);
    volume_service_routes(fixture->service, fixture->routes);
    struct http_server_config config = {
        .address = address_ipv4(127, 0, 0, 1, fixture->port),
        .routes = fixture->routes,
        .routes_count = VOLUME_SERVICE_ROUTES_COUNT,
        .scratch_directory = fixture->directory,
    };
    struct address address;
    struct err_detail detail = {0};
    enum err err = http_server_start(&config, &fixture->server, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    http_server_address(fixture->server, &address);
    fixture->port = address.port;
}

static void stop_server(struct fixture *fixture) {
    http_server_stop(fixture->server, 1000);
    volume_service_free(fixture->service);
    fixture->server = NULL;
}

static void open_backend(struct fixture *fixture, uint16_t port, const char *token, uint16_t volume) {
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    struct backend_remote_config config = {
        .url = url,
        .token = token,
        .volume = volume,
        .number = NUMBER,
        .answer_timeout_ms = 20000,
        .retry_after_ms = 300,
        .scratch_directory = fixture->directory,
    };
    assert_int_equal(backend_remote_open(&config, &fixture->backend, &fixture->detail), ERR_OK);
    assert_int_equal(fixture->backend->table->session_open(fixture->backend, &fixture->session), ERR_OK);
}

static void close_backend(struct fixture *fixture) {
    fixture->backend->table->session_close(fixture->session);
    fixture->backend->table->close(fixture->backend);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (scratch_make((void **)&fixture->directory) != 0 ||
        vfs_posix_init(&fixture->vfs, fixture->directory, NULL) != ERR_OK) {
        return -1;
    }
    struct volume_config config = {
        .number = REMOTE_NUMBER,
        .vfs = &fixture->vfs.vfs,
        .directory = "volume",
        .index_directory = scratch_path(fixture->directory, "index", fixture->index),
        .random = warc_random_system,
    };
    struct volume_recovery recovery;
    if (volume_open(&config, &fixture->volume, &recovery, NULL) != ERR_OK) {
        return -1;
    }
    start_server(fixture);
    open_backend(fixture, fixture->port, TOKEN, REMOTE_NUMBER);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    close_backend(fixture);
    if (fixture->server != NULL) {
        stop_server(fixture);
    }
    volume_close(fixture->volume);
    vfs_posix_done(&fixture->vfs);
    int result = scratch_remove((void **)&fixture->directory);
    free(fixture);
    return result;
}

/* ---- helpers ---- */

static void expect_ok(struct fixture *fixture, enum err err) {
    if (err != ERR_OK) {
        fail_msg("%s: %s", err_name(err), err_detail_text(&fixture->detail, err));
    }
}

static struct stored put(struct fixture *fixture, struct bytes body) {
    struct document document = {.body = body, .time_us = 1000000};
    struct stored stored = {0};
    expect_ok(fixture, fixture->backend->table->put(fixture->session, &document, STORE_REGULAR, &stored,
                                                    &fixture->detail));
    return stored;
}

static enum err get(struct fixture *fixture, const struct key *key, struct bytes *ret_document) {
    return fixture->backend->table->get(fixture->session, key, ret_document, &fixture->detail);
}

static void expect_document(struct fixture *fixture, const struct key *key, struct bytes body) {
    struct bytes found;
    expect_ok(fixture, get(fixture, key, &found));
    assert_true(bytes_equal(found, body));
}

static struct document_sum sum_of(struct bytes body) {
    struct document_sum sum = {.size = body.size};
    struct sha256 sha256;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, body, sum.digest);
    sha256_done(&sha256);
    return sum;
}

static uint64_t received_size(struct fixture *fixture) {
    struct http_server_stat stat;
    http_server_stat(fixture->server, &stat);
    return stat.received_size;
}

static bool holds(struct fixture *fixture, const struct document_sum *sum) {
    bool is_held = false;
    expect_ok(fixture, fixture->backend->table->ask(fixture->session, sum));
    expect_ok(fixture, fixture->backend->table->answer(fixture->session, &is_held, &fixture->detail));
    return is_held;
}

/* ---- a server that works ---- */

static void what_is_put_can_be_got_and_removed(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("a document"));
    struct stored second = put(fixture, BYTES("a document"));
    assert_int_equal(first.key.volume, NUMBER);
    assert_false(first.is_duplicate);
    assert_true(second.is_duplicate);
    assert_int_equal(second.document_size, 10);
    expect_document(fixture, &first.key, BYTES("a document"));
    const struct backend_table *table = fixture->backend->table;
    expect_ok(fixture, table->remove(fixture->session, &first.key, &fixture->detail));
    expect_document(fixture, &first.key, BYTES("a document"));
    expect_ok(fixture, table->remove(fixture->session, &first.key, &fixture->detail));
    struct bytes found;
    assert_int_equal(get(fixture, &first.key, &found), ERR_NOT_FOUND);
    assert_int_equal(table->remove(fixture->session, &first.key, &fixture->detail), ERR_NOT_FOUND);
    struct stored empty = put(fixture, BYTES(""));
    expect_document(fixture, &empty.key, BYTES(""));
}

static void documents_of_any_size_travel(void **state) {
    struct fixture *fixture = *state;
    uint8_t *memory = malloc(LARGE_SIZE);
    struct prng prng;
    prng_init(&prng, 7);
    for (int kind = 0; kind < 2; kind++) {
        static const size_t sizes[] = {1, 5000, 59900, 61000, 700000, LARGE_SIZE};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (kind == 0) {
                prng_fill(&prng, memory, sizes[i]);
            } else {
                memset(memory, 'a', sizes[i]);
                memcpy(memory, &i, sizes[i] < 8 ? sizes[i] : 8);
            }
            uint64_t before = received_size(fixture);
            struct stored stored = put(fixture, bytes_of(memory, sizes[i]));
            uint64_t sent = received_size(fixture) - before;
            assert_true(kind == 0 ? sent < sizes[i] + 200 : sizes[i] < 300 || sent < sizes[i] / 10 + 200);
            expect_document(fixture, &stored.key, bytes_of(memory, sizes[i]));
        }
    }
    free(memory);
}

static void modes_reach_the_volume(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    struct document document = {.body = BYTES("twice"), .time_us = 1};
    struct stored stored;
    expect_ok(fixture, table->put(fixture->session, &document, STORE_FORCE_NEW, &stored, &fixture->detail));
    expect_ok(fixture, table->put(fixture->session, &document, STORE_FORCE_NEW, &stored, &fixture->detail));
    assert_int_equal(stored.key.number, 1);
    expect_document(fixture, &stored.key, document.body);
    expect_ok(fixture, table->put(fixture->session, &document, STORE_COMPARE, &stored, &fixture->detail));
    assert_true(stored.is_duplicate);
}

static void a_duplicate_needs_no_body(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    uint8_t noise[50000];
    struct prng prng;
    prng_init(&prng, 1);
    prng_fill(&prng, noise, sizeof noise);
    struct document_sum sum = sum_of(bytes_of(noise, sizeof noise));
    struct document document = {
        .body = bytes_of(noise, sizeof noise), .time_us = 1, .sum = &sum, .is_body_left_out = true};
    struct stored stored;
    assert_false(holds(fixture, &sum));
    assert_int_equal(table->put(fixture->session, &document, STORE_REGULAR, &stored, &fixture->detail),
                     ERR_NOT_FOUND);
    put(fixture, document.body);
    uint64_t before = received_size(fixture);
    assert_true(holds(fixture, &sum));
    expect_ok(fixture, table->put(fixture->session, &document, STORE_REGULAR, &stored, &fixture->detail));
    assert_true(stored.is_duplicate);
    assert_true(received_size(fixture) - before < 200);
    sum.size--;
    assert_false(holds(fixture, &sum));
}

/* What a client says of a body that it sends counts for nothing. */
static void the_server_computes_digests_itself(void **state) {
    struct fixture *fixture = *state;
    struct document_sum lie = sum_of(BYTES("something else"));
    struct document document = {.body = BYTES("the body"), .time_us = 1, .sum = &lie};
    struct stored stored;
    assert_int_equal(
        fixture->backend->table->put(fixture->session, &document, STORE_REGULAR, &stored, &fixture->detail),
        ERR_MISMATCH); /* the client notices, too */
    struct document_sum truth = sum_of(document.body);
    assert_false(holds(fixture, &lie));
    assert_true(holds(fixture, &truth));
}

struct submits {
    pthread_mutex_t lock;
    size_t good_count;
    size_t bad_count;
    struct key keys[SUBMITS_COUNT];
};

static void count_submit(void *context, enum err err, const struct stored *stored) {
    struct submits *submits = context;
    pthread_mutex_lock(&submits->lock);
    if (err == ERR_OK) {
        submits->keys[submits->good_count++ % SUBMITS_COUNT] = stored->key;
    } else {
        submits->bad_count++;
    }
    pthread_mutex_unlock(&submits->lock);
}

static void what_is_submitted_is_there_after_drain(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    struct submits *submits = calloc(1, sizeof *submits);
    pthread_mutex_init(&submits->lock, NULL);
    char text[2000];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < SUBMITS_COUNT; i++) {
        snprintf(text, sizeof text, "document %zu", i);
        struct document document = {.body = bytes_of(text, sizeof text), .time_us = 1};
        expect_ok(fixture, table->submit(fixture->session, &document, STORE_REGULAR, count_submit, submits,
                                         &fixture->detail));
    }
    table->drain(fixture->backend);
    assert_int_equal(submits->good_count, SUBMITS_COUNT);
    for (size_t i = 0; i < SUBMITS_COUNT; i++) {
        struct bytes found;
        assert_int_equal(submits->keys[i].volume, NUMBER);
        expect_ok(fixture, get(fixture, &submits->keys[i], &found));
        assert_int_equal(found.size, sizeof text);
    }
    struct document_sum sum = sum_of(BYTES("unheard of"));
    struct document document = {.time_us = 1, .sum = &sum, .is_body_left_out = true};
    enum err err = table->submit(fixture->session, &document, STORE_REGULAR, count_submit, submits, NULL);
    table->drain(fixture->backend);
    assert_true(err == ERR_OK && submits->bad_count == 1);
    pthread_mutex_destroy(&submits->lock);
    free(submits);
}

/* ---- walks ---- */

static void fill_captures(struct fixture *fixture) {
    struct volume_writer *writer = volume_writer_new(fixture->volume);
    struct submits submits = {.lock = PTHREAD_MUTEX_INITIALIZER};
    for (unsigned i = 0; i < CAPTURES_COUNT; i++) {
        char url[64];
        char body[64];
        snprintf(url, sizeof url, "http://a.org/%u", i / 3);
        snprintf(body, sizeof body, "body %u", i);
        struct document document = {.url = bytes_of_string(url),
                                    .time_us = (int64_t)i * 1000000,
                                    .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
                                    .body = bytes_of_string(body),
                                    .request = BYTES("GET / HTTP/1.1\r\n\r\n")};
        assert_int_equal(volume_submit(writer, &document, STORE_REGULAR, count_submit, &submits, NULL),
                         ERR_OK);
    }
    volume_drain(fixture->volume);
    assert_int_equal(submits.good_count, CAPTURES_COUNT);
    volume_writer_free(writer);
}

static void expect_same_walk(struct fixture *fixture, struct bytes from, struct bytes to, bool in_reverse,
                             size_t wanted) {
    const struct backend_table *table = fixture->backend->table;
    struct index_cursor *local;
    struct backend_cursor *remote;
    struct capture a;
    struct capture b;
    size_t count = 0;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), from, to, in_reverse, &local), ERR_OK);
    expect_ok(fixture,
              table->captures_open(fixture->session, from, to, in_reverse, &remote, &fixture->detail));
    for (;; count++) {
        enum err err = index_cursor_next(local, &a);
        assert_int_equal(table->captures_next(remote, &b, &fixture->detail), err);
        if (err != ERR_OK) {
            assert_int_equal(err, ERR_NOT_FOUND);
            break;
        }
        assert_bytes_equal(a.surt, b.surt);
        assert_bytes_equal(a.url, b.url);
        assert_bytes_equal(a.mime, b.mime);
        assert_true(a.time_us == b.time_us && a.status == b.status && a.flags == b.flags);
        assert_memory_equal(&a.location, &b.location, sizeof a.location);
        assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    }
    assert_int_equal(count, wanted);
    index_cursor_close(local);
    table->cursor_close(remote);
}

static void walks_are_the_same_as_on_the_disk(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    struct bytes none = {NULL, 0};
    fill_captures(fixture);
    expect_same_walk(fixture, none, none, false, CAPTURES_COUNT);
    expect_same_walk(fixture, none, none, true, CAPTURES_COUNT);
    expect_same_walk(fixture, BYTES("org,a)/1"), BYTES("org,a)/1\xff"), false, 3 * 111);
    expect_same_walk(fixture, BYTES("org,a)/9"), BYTES("org,a)/1"), false, 0);
    expect_same_walk(fixture, BYTES("org,z"), none, false, 0);
    struct buf from;
    struct buf to;
    buf_init(&from, 1000);
    buf_init(&to, 1000);
    index_put_capture_prefix(&from, BYTES("org,a)/77"), INT64_MIN);
    index_put_capture_prefix(&to, BYTES("org,a)/77"), INT64_MAX);
    expect_same_walk(fixture, buf_bytes(&from), buf_bytes(&to), false, 3);
    expect_same_walk(fixture, buf_bytes(&from), buf_bytes(&to), true, 3);
    buf_done(&from);
    buf_done(&to);

    struct backend_cursor *cursor;
    struct key key;
    struct key last = {0};
    struct block block;
    size_t count = 0;
    expect_ok(fixture, table->blocks_open(fixture->session, bytes_of(NULL, 0), &cursor, &fixture->detail));
    while (table->blocks_next(cursor, &key, &block, &fixture->detail) == ERR_OK) {
        struct block again;
        assert_int_equal(key.volume, NUMBER);
        assert_true(count == 0 || memcmp(last.digest, key.digest, KEY_DIGEST_SIZE) < 0);
        expect_ok(fixture,
                  table->find_block(fixture->session, key.digest, key.number, &again, &fixture->detail));
        assert_memory_equal(&again.location, &block.location, sizeof block.location);
        last = key;
        count++;
    }
    assert_int_equal(count, CAPTURES_COUNT);
    table->cursor_close(cursor);
}

static void records_requests_and_sums_can_be_asked_for(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    struct document document = {.url = BYTES("http://a.org/"),
                                .time_us = 1000000,
                                .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                .body = BYTES("page"),
                                .request = BYTES("GET / HTTP/1.1\r\n\r\n")};
    struct stored stored;
    struct bytes bytes;
    struct volume_stat stat;
    expect_ok(fixture, table->put(fixture->session, &document, STORE_REGULAR, &stored, &fixture->detail));
    expect_ok(fixture, table->get_record(fixture->session, &stored.location, &bytes, &fixture->detail));
    assert_true(bytes_starts_with(bytes, BYTES("WARC/1.1\r\n")));
    assert_true(bytes_find(bytes, BYTES("page")) < bytes.size);
    expect_ok(fixture, table->get_request(fixture->session, &stored.location, &bytes, &fixture->detail));
    assert_bytes_equal(bytes, document.request);
    expect_ok(fixture, table->stat(fixture->session, &stat, &fixture->detail));
    assert_int_equal(stat.segments_count, 1);
    assert_true(stat.size > 0 && stat.captures_count == 1);
    struct location nowhere = {.segment = 99, .offset = 1, .length = 10};
    assert_int_equal(table->get_record(fixture->session, &nowhere, &bytes, &fixture->detail), ERR_NOT_FOUND);
    struct location astray = {.segment = 1, .offset = 3, .length = UINT32_MAX};
    assert_int_not_equal(table->get_record(fixture->session, &astray, &bytes, &fixture->detail), ERR_OK);
    struct block block;
    uint8_t unknown[KEY_DIGEST_SIZE] = {1};
    assert_int_equal(table->find_block(fixture->session, unknown, 0, &block, &fixture->detail),
                     ERR_NOT_FOUND);
}

struct client {
    struct fixture *fixture;
    unsigned number;
    size_t failures_count;
};

static void *work(void *context) {
    struct client *client = context;
    const struct backend_table *table = client->fixture->backend->table;
    struct backend_session *session;
    client->failures_count = table->session_open(client->fixture->backend, &session) != ERR_OK;
    for (unsigned i = 0; i < 40 && client->failures_count == 0; i++) {
        char text[3000];
        memset(text, 'a' + (int)i % 26, sizeof text);
        snprintf(text, sizeof text, "%u of %u", i, client->number % 4); /* some are duplicates of others' */
        struct document document = {.body = bytes_of(text, sizeof text), .time_us = 1};
        struct stored stored;
        struct bytes found;
        bool is_good = table->put(session, &document, STORE_REGULAR, &stored, NULL) == ERR_OK &&
                       table->get(session, &stored.key, &found, NULL) == ERR_OK &&
                       bytes_equal(found, document.body);
        client->failures_count += !is_good;
    }
    table->session_close(session);
    return NULL;
}

static void many_clients_work_at_once(void **state) {
    struct client clients[12];
    pthread_t threads[12];
    for (unsigned i = 0; i < 12; i++) {
        clients[i] = (struct client){.fixture = *state, .number = i};
        pthread_create(&threads[i], NULL, work, &clients[i]);
    }
    for (unsigned i = 0; i < 12; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(clients[i].failures_count, 0);
    }
}

/* ---- servers that do not ---- */

static void a_wrong_token_is_said_to_be_wrong(void **state) {
    struct fixture *fixture = *state;
    struct volume_stat stat;
    close_backend(fixture);
    open_backend(fixture, fixture->port, "another-token", REMOTE_NUMBER);
    assert_int_equal(fixture->backend->table->stat(fixture->session, &stat, &fixture->detail),
                     ERR_PERMISSION);
    assert_non_null(strstr(fixture->detail.text, "the token is wrong"));
    struct document document = {.body = BYTES("no"), .time_us = 1};
    struct stored stored;
    assert_int_equal(fixture->backend->table->put(fixture->session, &document, STORE_REGULAR, &stored, NULL),
                     ERR_PERMISSION);
}

static void a_volume_that_is_not_there_is_no_missing_document(void **state) {
    struct fixture *fixture = *state;
    struct key key = {0};
    struct bytes found;
    close_backend(fixture);
    open_backend(fixture, fixture->port, TOKEN, REMOTE_NUMBER + 1);
    assert_int_equal(get(fixture, &key, &found), ERR_MISMATCH);
    assert_non_null(strstr(fixture->detail.text, "there is no volume"));
}

static void urls_and_tokens_are_checked_when_opened(void **state) {
    static const char *const urls[] = {
        "", "192.0.2.7:8080", "ftp://a/", "http://", "http://user@a/", "http://a/?b", "file:///etc/passwd"};
    static const char *const tokens[] = {"", "a b", "a\r\nX: y"};
    struct fixture *fixture = *state;
    struct backend *backend;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct backend_remote_config config = {.url = urls[i], .token = TOKEN};
        assert_int_equal(backend_remote_open(&config, &backend, &fixture->detail), ERR_INVALID);
    }
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct backend_remote_config config = {.url = "http://127.0.0.1:1", .token = tokens[i]};
        assert_int_equal(backend_remote_open(&config, &backend, &fixture->detail), ERR_INVALID);
    }
}

static void a_server_that_is_gone_is_tried_again_later(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    struct volume_stat stat;
    struct stored stored = put(fixture, BYTES("kept"));
    stop_server(fixture);
    struct bytes found;
    enum err err = get(fixture, &stored.key, &found);
    assert_true(err == ERR_UNREACHABLE || err == ERR_CLOSED);
    while (strstr(fixture->detail.text, "it is tried again") == NULL) {
        assert_int_equal(table->stat(fixture->session, &stat, &fixture->detail), ERR_UNREACHABLE);
    }
    struct document_sum sum = sum_of(BYTES("kept"));
    assert_int_equal(table->ask(fixture->session, &sum), ERR_UNREACHABLE);
    struct document document = {.body = BYTES("no"), .time_us = 1};
    assert_int_equal(table->submit(fixture->session, &document, STORE_REGULAR, count_submit, NULL, NULL),
                     ERR_UNREACHABLE);
    start_server(fixture);
    await_that((err = get(fixture, &stored.key, &found)) != ERR_UNREACHABLE);
    expect_ok(fixture, err);
    assert_bytes_equal(found, BYTES("kept"));
}

/* A server that gives the same answer to everybody, byte for byte, or none. */
struct parrot {
    int listener;
    uint16_t port;
    const char *answer;
    size_t answer_size;
    bool repeats; /* the last byte for ever */
    pthread_t thread;
    atomic_bool is_stopping;
};

static void parrot_serve(struct parrot *parrot, int fd) {
    char request[HTTP_ANSWER_SIZE];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, 5000) == 1) {
        (void)!recv(fd, request, sizeof request, 0);
    }
    http_send(fd, parrot->answer, parrot->answer_size);
    for (int i = 0; parrot->repeats && i < 100000 && !atomic_load(&parrot->is_stopping); i++) {
        char piece[1024];
        memset(piece, 'x', sizeof piece);
        http_send(fd, piece, sizeof piece);
    }
    while (parrot->answer_size == 0 && !atomic_load(&parrot->is_stopping)) {
        usleep(1000); /* silent as long as the test wants it */
    }
    close(fd);
}

static void *parrot_run(void *context) {
    struct parrot *parrot = context;
    while (!atomic_load(&parrot->is_stopping)) {
        int fd = accept(parrot->listener, NULL, NULL);
        if (fd >= 0) {
            parrot_serve(parrot, fd);
        }
    }
    return NULL;
}

static void parrot_start(struct parrot *parrot, const char *answer, size_t answer_size) {
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t size = sizeof name;
    *parrot = (struct parrot){.answer = answer, .answer_size = answer_size};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    parrot->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(parrot->listener, (struct sockaddr *)&name, size), 0);
    assert_int_equal(listen(parrot->listener, 16), 0);
    assert_int_equal(getsockname(parrot->listener, (struct sockaddr *)&name, &size), 0);
    parrot->port = ntohs(name.sin_port);
    pthread_create(&parrot->thread, NULL, parrot_run, parrot);
}

static void parrot_stop(struct parrot *parrot) {
    atomic_store(&parrot->is_stopping, true);
    shutdown(parrot->listener, SHUT_RDWR);
    pthread_join(parrot->thread, NULL);
    close(parrot->listener);
}

/* Every call of the table; each must fail, with a text, and with one of these. */
static void expect_all_fail(struct fixture *fixture, enum err a, enum err b, enum err c) {
    const struct backend_table *table = fixture->backend->table;
    struct document_sum sum = sum_of(BYTES("x"));
    struct document document = {.body = BYTES("x"), .time_us = 1, .sum = &sum};
    struct key key = {.number = 1};
    struct location location = {1, 2, 3};
    struct bytes none = {NULL, 0};
    struct bytes bytes;
    struct block block;
    struct stored stored;
    struct volume_stat stat;
    struct capture capture;
    struct backend_cursor *cursor;
    bool is_held;
    enum err errs[10];
    memset(&fixture->detail, 0, sizeof fixture->detail);
    errs[0] = table->ask(fixture->session, &sum);
    errs[0] = errs[0] == ERR_OK ? table->answer(fixture->session, &is_held, &fixture->detail) : errs[0];
    errs[1] = table->put(fixture->session, &document, STORE_REGULAR, &stored, &fixture->detail);
    errs[2] = table->get(fixture->session, &key, &bytes, &fixture->detail);
    errs[3] = table->get_request(fixture->session, &location, &bytes, &fixture->detail);
    errs[4] = table->find_block(fixture->session, key.digest, 0, &block, &fixture->detail);
    errs[5] = table->stat(fixture->session, &stat, &fixture->detail);
    assert_int_equal(table->captures_open(fixture->session, none, none, false, &cursor, NULL), ERR_OK);
    do {
        errs[6] = table->captures_next(cursor, &capture, &fixture->detail);
    } while (errs[6] == ERR_OK);
    table->cursor_close(cursor);
    assert_int_equal(table->blocks_open(fixture->session, none, &cursor, NULL), ERR_OK);
    do {
        errs[7] = table->blocks_next(cursor, &key, &block, &fixture->detail);
    } while (errs[7] == ERR_OK);
    table->cursor_close(cursor);
    errs[8] = table->submit(fixture->session, &document, STORE_REGULAR, count_submit,
                            &(struct submits){.lock = PTHREAD_MUTEX_INITIALIZER}, NULL);
    table->drain(fixture->backend);
    for (size_t i = 0; i < 8; i++) {
        /* What comes as it was stored needs no form: any bytes are a request. */
        if (errs[i] != a && errs[i] != b && errs[i] != c && !(i == 3 && errs[i] == ERR_OK)) {
            fail_msg("call %zu: %s: %s", i, err_name(errs[i]), err_detail_text(&fixture->detail, errs[i]));
        }
    }
    assert_non_null(strstr(fixture->detail.text, "http://127.0.0.1:"));
}

static void meet(struct fixture *fixture, struct parrot *parrot, enum err a, enum err b, enum err c) {
    close_backend(fixture);
    open_backend(fixture, parrot->port, TOKEN, REMOTE_NUMBER);
    expect_all_fail(fixture, a, b, c);
    parrot_stop(parrot);
}

static void rubbish_is_refused_whatever_was_asked(void **state) {
    static const char *const answers[] = {
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nrubbish",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 7\r\n\r\nrubbish",
        "HTTP/1.1 200 OK\r\n\r\n<html>a page</html>",
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found",
        "HTTP/1.1 500 Oops\r\nContent-Length: 41\r\n\r\n{\"error\":\"ok\",\"text\":\"all is well, really\"}",
        "HTTP/1.1 500 Oops\r\nContent-Length: 30\r\n\r\n{\"error\":\"invented\",\"text\":\"?\"}",
        "\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct parrot parrot;
        parrot_start(&parrot, answers[i], strlen(answers[i]));
        meet(*state, &parrot, ERR_MISMATCH, ERR_CLOSED, ERR_MISMATCH);
    }
}

static void an_answer_without_end_is_cut(void **state) {
    static const char answer[] = "HTTP/1.1 200 OK\r\n\r\n";
    struct parrot parrot;
    parrot_start(&parrot, answer, sizeof answer - 1);
    parrot.repeats = true;
    meet(*state, &parrot, ERR_MISMATCH, ERR_CLOSED, ERR_MISMATCH);
}

static void a_server_that_says_nothing_is_not_waited_for(void **state) {
    struct fixture *fixture = *state;
    struct parrot parrot;
    char url[64];
    parrot_start(&parrot, NULL, 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", parrot.port);
    close_backend(fixture);
    struct backend_remote_config config = {
        .url = url, .token = TOKEN, .number = NUMBER, .answer_timeout_ms = 200, .retry_after_ms = 60000};
    assert_int_equal(backend_remote_open(&config, &fixture->backend, NULL), ERR_OK);
    assert_int_equal(fixture->backend->table->session_open(fixture->backend, &fixture->session), ERR_OK);
    struct volume_stat stat;
    uint64_t before_us = clock_monotonic_us(&clock_system);
    assert_int_equal(fixture->backend->table->stat(fixture->session, &stat, &fixture->detail), ERR_TIMEOUT);
    expect_all_fail(fixture, ERR_UNREACHABLE, ERR_UNREACHABLE, ERR_UNREACHABLE); /* none of them waits */
    assert_true(clock_monotonic_us(&clock_system) - before_us < 30000000);
    parrot_stop(&parrot);
}

/* A page that leads to itself. */
static void a_walk_that_does_not_come_further_ends(void **state) {
    struct fixture *fixture = *state;
    struct parrot parrot;
    struct buf answer;
    struct buf page;
    buf_init(&answer, 1000);
    buf_init(&page, 1000);
    backend_code_put_page_end(&page, &(struct backend_code_page_end){.next = BYTES("org,a)/")});
    buf_put_format(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", page.size);
    buf_put(&answer, buf_bytes(&page));
    parrot_start(&parrot, (const char *)answer.data, answer.size);
    close_backend(fixture);
    open_backend(fixture, parrot.port, TOKEN, REMOTE_NUMBER);
    struct backend_cursor *cursor;
    struct capture capture;
    struct bytes none = {NULL, 0};
    const struct backend_table *table = fixture->backend->table;
    assert_int_equal(table->captures_open(fixture->session, none, none, false, &cursor, NULL), ERR_OK);
    assert_int_equal(table->captures_next(cursor, &capture, &fixture->detail), ERR_MISMATCH);
    assert_int_equal(table->captures_next(cursor, &capture, &fixture->detail), ERR_MISMATCH);
    table->cursor_close(cursor);
    parrot_stop(&parrot);
    buf_done(&answer);
    buf_done(&page);
}

/* 100 MB of zeros in a few bytes are not the document; they need not even be unpacked to know. */
static void a_bomb_is_no_document(void **state) {
    struct fixture *fixture = *state;
    size_t size = 100 << 20;
    uint8_t *zeros = calloc(1, size);
    uint8_t *frame = malloc(ZSTD_compressBound(size));
    size_t frame_size = ZSTD_compress(frame, ZSTD_compressBound(size), zeros, size, 19);
    struct buf answer;
    struct parrot parrot;
    struct key key = {.number = 0};
    struct bytes found;
    free(zeros);
    buf_init(&answer, 1 << 20);
    buf_put_format(&answer, "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: %zu\r\n\r\n",
                   frame_size);
    buf_put(&answer, bytes_of(frame, frame_size));
    parrot_start(&parrot, (const char *)answer.data, answer.size);
    close_backend(fixture);
    open_backend(fixture, parrot.port, TOKEN, REMOTE_NUMBER);
    assert_int_equal(get(fixture, &key, &found), ERR_MISMATCH);
    assert_non_null(strstr(fixture->detail.text, "another than was asked for"));
    parrot_stop(&parrot);
    buf_done(&answer);
    free(frame);
}

/* ---- clients that lie ---- */

static void hostile_requests_hurt_nobody(void **state) {
    static const struct {
        const char *path;
        size_t body_size;
        const char *body;
        const char *status;
    } asked[] = {
        {"ask", 3, "\xff\xff\x7f", "413"},
        {"ask", 2, "\x01\x00", "400"},
        {"documents", 0, "", "400"},
        {"documents", 4, "\xff\xff\xff\xff", "413"},
        {"documents", 5, "\x01\x00\x00\x00\x09", "400"},
        {"captures", 3, "\x00\x00\x02", "400"},
        {"captures", 4, "\x00\x00\x00\x00", "400"},
        {"blocks", 5, "\x00\x01y\x00\x01", "501"},
        {"nothing", 0, "", "404"},
        {"", 0, "", "404"},
    };
    struct fixture *fixture = *state;
    char answer[HTTP_ANSWER_SIZE];
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char request[512];
        int head_size =
            snprintf(request, sizeof request,
                     "POST /api/v1/volumes/%d/%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " TOKEN
                     "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                     REMOTE_NUMBER, asked[i].path, asked[i].body_size);
        memcpy(request + head_size, asked[i].body, asked[i].body_size);
        int fd = http_connect(fixture->port);
        http_send(fd, request, (size_t)head_size + asked[i].body_size);
        http_receive(fd, answer, SIZE_MAX);
        close(fd);
        if (strncmp(answer + 9, asked[i].status, 3) != 0) {
            fail_msg("case %zu: %s", i, answer);
        }
    }
    struct stored stored = put(fixture, BYTES("still alive"));
    expect_document(fixture, &stored.key, BYTES("still alive"));
}

/* Documents that are well-formed on the wire but not for an archive. */
static void impossible_documents_are_refused(void **state) {
    struct fixture *fixture = *state;
    const struct backend_table *table = fixture->backend->table;
    struct document documents[] = {
        {.time_us = 1, .url = BYTES("http://a/\r\nWARC-Type: x"), .body = BYTES("x")},
        {.time_us = 1, .content_type = BYTES("a\r\nWARC-Type: response"), .body = BYTES("x")},
        {.time_us = 1, .ip_address = BYTES("1\r\n2"), .body = BYTES("x")},
        {.time_us = UTC_MAX_US + 1, .body = BYTES("x")},
        {.time_us = INT64_MIN, .url = BYTES("http://a/"), .body = BYTES("x")},
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct stored stored;
        assert_int_equal(
            table->put(fixture->session, &documents[i], STORE_REGULAR, &stored, &fixture->detail),
            ERR_INVALID); /* of none of them anything is stored */
        assert_true(fixture->detail.text[0] != '\0');
    }
    struct stored stored = put(fixture, BYTES("still alive"));
    expect_document(fixture, &stored.key, BYTES("still alive"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_put_can_be_got_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(documents_of_any_size_travel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(modes_reach_the_volume, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_duplicate_needs_no_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_server_computes_digests_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_submitted_is_there_after_drain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(walks_are_the_same_as_on_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_requests_and_sums_can_be_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_clients_work_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_token_is_said_to_be_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_volume_that_is_not_there_is_no_missing_document, set_up, tear_down),
        cmocka_unit_test_setup_teardown(urls_and_tokens_are_checked_when_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_gone_is_tried_again_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rubbish_is_refused_whatever_was_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_without_end_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_says_nothing_is_not_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_walk_that_does_not_come_further_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bomb_is_no_document, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hostile_requests_hurt_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(impossible_documents_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
