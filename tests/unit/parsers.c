/*
 * parsers: what parsers can do, what they cannot, and what becomes of those that end, hang or lie. This
 * program is its own host: parse/parse_host.h executes it with a word of its own.
 */
#include "parse/parsers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "base/prng.h"
#include "parse/parse_decode.h"
#include "parse/parse_host.h"
#include "parse/parse_links.h"
#include "parse/parse_page.h"
#include "parse/parse_seat.h"
#include "parse/parse_text.h"
#include "parse/parsers_state.h"
#include "unit.h"

enum { PARSERS_COUNT = 16, OUT_MAX = 64 << 20 };

/* ---- what a parser in the hands of somebody else might do ---- */

static void *nothing_make(void) {
    static int state;
    return &state;
}

static void nothing_free(void *state) {
    (void)state;
}

static bool is_asked(const struct parse_io *io, const char *what) {
    return bytes_equal(io->params, bytes_of_string(what));
}

/* Each of these must end the process. */
static void misbehave(const struct parse_io *io) {
    if (is_asked(io, "open")) {
        (void)!open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    } else if (is_asked(io, "socket")) {
        (void)!socket(AF_INET, SOCK_STREAM, 0);
    } else if (is_asked(io, "connect")) {
        (void)!connect(3, NULL, 0);
    } else if (is_asked(io, "write")) {
        (void)!write(2, "x", 1);
    } else if (is_asked(io, "fork")) {
        (void)!fork();
    } else if (is_asked(io, "execute")) {
        execl("/bin/true", "true", (char *)NULL);
    } else if (is_asked(io, "trace")) {
        (void)!ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
    } else if (is_asked(io, "memory of others")) {
        (void)!syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
    } else if (is_asked(io, "kill")) {
        kill(1, SIGTERM);
    } else if (is_asked(io, "code")) {
        (void)!mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else if (is_asked(io, "crash")) {
        raise(UNIT_IS_SANITIZED ? SIGKILL : SIGSEGV); /* a sanitizer would report it */
    }
}

static enum err bad_run(void *state, struct parse_io *io) {
    (void)state;
    misbehave(io);
    while (is_asked(io, "hang")) {
    }
    return io->put(io, BYTES("still there"));
}

/* Memory that is shared can be written whatever one promised. */
static enum err liar_run(void *state, struct parse_io *io) {
    struct parse_slot *slot = (struct parse_slot *)(void *)((uint8_t *)(uintptr_t)io->params.data -
                                                            offsetof(struct parse_slot, params));
    (void)state;
    slot->out_size = is_asked(io, "much output") ? UINT32_MAX : 0;
    slot->note_size = is_asked(io, "much note") ? UINT32_MAX : 0;
    slot->err = is_asked(io, "strange error") ? 77 : is_asked(io, "word of the node") ? ERR_BUSY : ERR_OK;
    slot->reply = is_asked(io, "more input")  ? PARSE_WANTS_INPUT
                  : is_asked(io, "no output") ? PARSE_HAS_OUTPUT
                  : is_asked(io, "no reply")  ? PARSE_AT_WORK
                                              : PARSE_HAS_ENDED;
    atomic_store(&slot->turn, is_asked(io, "strange turn") ? 77 : PARSE_TURN_NODE);
    parse_area_wake(&slot->turn);
    while (is_asked(io, "") == false) {
    }
    return ERR_OK;
}

static const struct parse_kind bad_kind = {
    .number = PARSE_SITEMAP, .make = nothing_make, .free = nothing_free, .run = bad_run};
static const struct parse_kind liar_kind = {
    .number = PARSE_DECODE, .make = nothing_make, .free = nothing_free, .run = liar_run};
static const struct parse_kinds kinds = {.items = {[PARSE_PAGE] = &parse_page,
                                                   [PARSE_DECODE] = &liar_kind,
                                                   [PARSE_LINKS] = &parse_links,
                                                   [PARSE_TEXT] = &parse_text,
                                                   [PARSE_SITEMAP] = &bad_kind}};

/* ---- the node's side ---- */

struct world {
    struct parsers *parsers;
    struct parse_seat away;
    struct parse_seat here;
    struct parse_job job;
    struct buf out;
};

static int world_open(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    assert_int_equal(parsers_start(PARSERS_COUNT, &world->parsers, NULL), ERR_OK);
    assert_int_equal(parsers_watch(world->parsers, NULL, NULL, NULL), ERR_OK);
    parse_seat_init(&world->away, world->parsers, PARSE_SHORT);
    parse_seat_init(&world->here, NULL, PARSE_SHORT);
    buf_init(&world->out, OUT_MAX);
    *state = world;
    return 0;
}

static int world_close(void **state) {
    struct world *world = *state;
    parsers_stop(world->parsers);
    parse_seat_done(&world->away);
    parse_seat_done(&world->here);
    buf_done(&world->out);
    free(world);
    return 0;
}

static enum err put_out(void *context, struct bytes piece) {
    return buf_put(context, piece);
}

static enum err run(struct world *world, struct parse_seat *seat, const struct parse_kind *kind,
                    struct bytes params, struct bytes document) {
    buf_clear(&world->out);
    world->job.kind = kind;
    world->job.params = params;
    world->job.document = document;
    world->job.out_size_max = OUT_MAX;
    world->job.put = put_out;
    world->job.context = &world->out;
    return parse_run(seat, &world->job);
}

static enum err run_bad(struct world *world, const struct parse_kind *kind, const char *what) {
    world->away.favourite++; /* one that has done no harm yet: it is started at once */
    return run(world, &world->away, kind, bytes_of_string(what), BYTES("document"));
}

/* The same, by parsers and in the thread: errors, output and notes. */
static void check_same(struct world *world, const struct parse_kind *kind, struct bytes params,
                       struct bytes document) {
    struct buf expected;
    buf_init(&expected, OUT_MAX);
    enum err err = run(world, &world->here, kind, params, document);
    size_t note_size = world->job.note_size;
    uint8_t note[PARSE_NOTE_SIZE_MAX];
    memcpy(note, world->job.note, note_size);
    assert_int_equal(buf_put(&expected, buf_bytes(&world->out)), ERR_OK);
    assert_int_equal(run(world, &world->away, kind, params, document), err);
    assert_true(bytes_equal(buf_bytes(&world->out), buf_bytes(&expected)));
    assert_true(bytes_equal(bytes_of(world->job.note, world->job.note_size), bytes_of(note, note_size)));
    buf_done(&expected);
}

static void put_page(struct buf *out, size_t paragraphs_count) {
    buf_put_string(out, "<!doctype html><title>A page</title><script>location.href = top.x</script>");
    for (size_t i = 0; i < paragraphs_count; i++) {
        buf_put_format(out, "<p>Words &eacute; %zu <a href=\"/page/%zu?q=ü\">link</a> <img src=i%zu.png>\n",
                       i, i, i);
    }
}

static void put_gzip(struct buf *out, struct bytes text) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(buf_reserve(out, deflateBound(&stream, text.size)), ERR_OK);
    stream.next_in = (uint8_t *)(uintptr_t)text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = out->data;
    stream.avail_out = (uInt)out->capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out->size = stream.total_out;
    deflateEnd(&stream);
}

static void check_same_all(struct world *world, struct bytes head, struct bytes document) {
    struct buf params;
    buf_init(&params, PARSE_PARAMS_SIZE_MAX);
    struct parse_page_params page = {.head = head,
                                     .content_type = BYTES("text/html"),
                                     .as = REWRITE_PAGE,
                                     .size_max = OUT_MAX,
                                     .prefix = BYTES("/web/"),
                                     .timestamp = BYTES("20260102030405"),
                                     .url = BYTES("http://example.org/a/b"),
                                     .insert = BYTES("<script src=x></script>")};
    assert_int_equal(parse_page_params(&params, &page), ERR_OK);
    check_same(world, &parse_page, buf_bytes(&params), document);
    struct parse_links_params links = {
        .head = head, .content_type = page.content_type, .base = page.url, .size_max = OUT_MAX};
    assert_int_equal(parse_links_params(&params, &links), ERR_OK);
    check_same(world, &parse_links, buf_bytes(&params), document);
    struct parse_text_params text = {.head = head, .content_type = page.content_type, .size_max = OUT_MAX};
    assert_int_equal(parse_text_params(&params, &text), ERR_OK);
    check_same(world, &parse_text, buf_bytes(&params), document);
    buf_done(&params);
}

static void gives_what_the_thread_itself_would(void **state) {
    static const size_t counts[] = {0, 1, 20, 20000}; /* the last: 1.7 MB, many turns in both directions */
    struct bytes plain = BYTES("HTTP/1.1 200 OK\r\n\r\n");
    struct bytes packed = BYTES("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct buf text;
        struct buf gzip;
        buf_init(&text, OUT_MAX);
        buf_init(&gzip, OUT_MAX);
        put_page(&text, counts[i]);
        put_gzip(&gzip, buf_bytes(&text));
        check_same_all(*state, plain, buf_bytes(&text));
        check_same_all(*state, packed, buf_bytes(&gzip));
        check_same_all(*state, packed, bytes_slice(buf_bytes(&gzip), 0, gzip.size / 2)); /* damaged */
        buf_done(&text);
        buf_done(&gzip);
    }
    check_same_all(*state, BYTES("HTTP/1.1 200 OK\r\nContent-Encoding: nonsense\r\n\r\n"),
                   BYTES("<a href=x>"));
    check_same_all(*state, plain, bytes_of(NULL, 0));
    check_same_all(*state, BYTES("<a href=/head>no head at all"), BYTES("<a href=/body>"));
    check_same_all(*state, BYTES("\r\n\r\n"), BYTES("<a href=/body>"));
    check_same_all(*state, BYTES("HTTP/1.1 200 OK\r\n\r\n<a href=/early>"), BYTES("<a href=/body>"));
    check_same_all(*state, bytes_of(NULL, 0), BYTES("<a href=/body>"));
}

/* The C library has a file for each of them, which a parser cannot open any more. */
static void knows_all_encodings(void **state) {
    const struct encoding *encoding;
    struct buf params;
    buf_init(&params, PARSE_PARAMS_SIZE_MAX);
    for (size_t i = 0; (encoding = encoding_at(i)) != NULL; i++) {
        char type[96];
        snprintf(type, sizeof type, "text/html; charset=%s", encoding->name);
        struct parse_text_params text = {.head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                         .content_type = bytes_of_string(type),
                                         .size_max = OUT_MAX};
        assert_int_equal(parse_text_params(&params, &text), ERR_OK);
        check_same(*state, &parse_text, buf_bytes(&params),
                   BYTES("<p>\xe9\xa4\xa2 \x82\xa0 \xd0\xb8 \x1b$B$\"<a>"));
        struct parse_links_params links = {.head = text.head,
                                           .content_type = text.content_type,
                                           .base = BYTES("http://example.org/"),
                                           .size_max = OUT_MAX};
        assert_int_equal(parse_links_params(&params, &links), ERR_OK);
        check_same(*state, &parse_links, buf_bytes(&params), BYTES("<a href='?q=\xe9\xa4\xa2\xd0'>"));
    }
    buf_done(&params);
}

static void can_do_nothing_else(void **state) {
    static const char *const deeds[] = {"open",    "socket", "connect",          "write", "fork",
                                        "execute", "trace",  "memory of others", "kill",  "code"};
    struct world *world = *state;
    struct parsers_stat stat;
    if (UNIT_IS_SANITIZED) {
        skip(); /* reports need more */
    }
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        enum err err = run_bad(world, &bad_kind, deeds[i]);
        if (err != ERR_CLOSED) {
            fail_msg("%s: %s", deeds[i], err_name(err));
        }
    }
    assert_int_equal(run_bad(world, &bad_kind, "nothing"), ERR_OK);
    assert_bytes_equal(buf_bytes(&world->out), BYTES("still there"));
    parsers_stat(world->parsers, &stat);
    assert_int_equal(stat.ended_count, sizeof deeds / sizeof deeds[0]);
    assert_int_equal(stat.lost_count, stat.ended_count);
}

/* The parser of the seat ends in the midst of one job, while others wait for it: only that one is lost. */
static void loses_the_job_at_which_it_ended(void **state) {
    struct world *world = *state;
    struct parse_job jobs[4];
    struct buf outs[4];
    world->away.favourite++;
    for (size_t i = 0; i < 4; i++) {
        buf_init(&outs[i], OUT_MAX);
        jobs[i] = (struct parse_job){.kind = &bad_kind,
                                     .params = i == 1 ? BYTES("crash") : BYTES("nothing"),
                                     .out_size_max = OUT_MAX,
                                     .put = put_out,
                                     .context = &outs[i]};
        parse_begin(&world->away, &jobs[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(parse_end(&world->away, &jobs[i]), i == 1 ? ERR_CLOSED : ERR_OK);
        assert_bytes_equal(buf_bytes(&outs[i]), i == 1 ? BYTES("") : BYTES("still there"));
        buf_done(&outs[i]);
    }
}

/* A parser that ends while a slot of it is being filled: its successor does the job. */
static void does_the_job_that_its_predecessor_was_about_to_get(void **state) {
    struct world *world = *state;
    size_t slot;
    assert_int_equal(run_bad(world, &bad_kind, "nothing"), ERR_OK);
    struct parser *parser = parsers_take(world->parsers, PARSE_SHORT, world->away.favourite, &slot);
    assert_non_null(parser);
    world->away.favourite--; /* of run_bad() */
    assert_int_equal(run_bad(world, &bad_kind, "crash"), ERR_CLOSED);
    struct parse_slot *shared = &parser->area->slots[slot];
    shared->number = bad_kind.number;
    shared->params_size = shared->in_size = 0;
    shared->is_last = 1;
    parser_submit(parser, slot);
    for (int i = 0; i < 100 && !parser_is_turn(parser, slot); i++) {
        (void)parser_await(parser, slot, 100000);
    }
    assert_true(parser_take_turn(parser, slot));
    assert_int_equal(shared->reply, PARSE_HAS_ENDED);
    parser_free(parser, slot);
}

/* More jobs than parsers have room for, from a thread that does not wait: all of them come to their end. */
static void takes_more_jobs_than_there_is_room_for(void **state) {
    enum { JOBS_COUNT = PARSERS_COUNT * PARSE_SLOTS + 8, LOST = 5 };
    struct world *world = *state;
    struct parse_job *jobs = calloc(JOBS_COUNT, sizeof *jobs);
    struct buf *outs = calloc(JOBS_COUNT, sizeof *outs);
    bool *are_done = calloc(JOBS_COUNT, sizeof *are_done);
    size_t done_count = 0;
    assert_true(jobs != NULL && outs != NULL && are_done != NULL);
    for (size_t i = 0; i < JOBS_COUNT; i++) {
        buf_init(&outs[i], OUT_MAX);
        jobs[i] = (struct parse_job){.kind = &bad_kind,
                                     .params = i == LOST ? BYTES("crash") : BYTES("nothing"),
                                     .out_size_max = OUT_MAX,
                                     .put = put_out,
                                     .context = &outs[i]};
        parse_set_out(&world->away, &jobs[i]);
    }
    while (done_count < JOBS_COUNT) {
        for (size_t i = 0; i < JOBS_COUNT; i++) {
            enum err err;
            if (!are_done[i] && parse_go_on(&world->away, &jobs[i], &err)) {
                are_done[i] = true;
                done_count++;
                assert_int_equal(err, i == LOST ? ERR_CLOSED : ERR_OK);
                assert_bytes_equal(buf_bytes(&outs[i]), i == LOST ? BYTES("") : BYTES("still there"));
            }
        }
        for (size_t i = 0; i < JOBS_COUNT; i++) {
            if (!are_done[i]) {
                parse_await_for(&world->away, &jobs[i], 1000);
                break;
            }
        }
    }
    for (size_t i = 0; i < JOBS_COUNT; i++) {
        buf_done(&outs[i]);
    }
    free(jobs);
    free(outs);
    free(are_done);
}

/* Documents and results that take many turns, as parse_run() does them. */
static void goes_on_turn_by_turn(void **state) {
    struct world *world = *state;
    struct buf text;
    struct buf expected;
    struct buf params;
    struct parse_links_params links = {.head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                       .content_type = BYTES("text/html"),
                                       .base = BYTES("http://example.org/"),
                                       .size_max = OUT_MAX};
    enum err err;
    buf_init(&text, OUT_MAX);
    buf_init(&expected, OUT_MAX);
    buf_init(&params, PARSE_PARAMS_SIZE_MAX);
    put_page(&text, 20000);
    assert_int_equal(parse_links_params(&params, &links), ERR_OK);
    assert_int_equal(run(world, &world->here, &parse_links, buf_bytes(&params), buf_bytes(&text)), ERR_OK);
    assert_int_equal(buf_put(&expected, buf_bytes(&world->out)), ERR_OK);
    buf_clear(&world->out);
    parse_set_out(&world->away, &world->job);
    while (!parse_go_on(&world->away, &world->job, &err)) {
        parse_await_for(&world->away, &world->job, 1000);
    }
    assert_int_equal(err, ERR_OK);
    assert_true(bytes_equal(buf_bytes(&world->out), buf_bytes(&expected)));
    buf_done(&text);
    buf_done(&expected);
    buf_done(&params);
}

static void ends_what_takes_too_long(void **state) {
    struct world *world = *state;
    struct parsers_stat stat;
    uint64_t late_us = world->parsers->late_us;
    world->parsers->late_us = 100000;
    assert_int_equal(run_bad(world, &bad_kind, "hang"), ERR_CLOSED);
    world->parsers->late_us = late_us;
    parsers_stat(world->parsers, &stat);
    assert_int_equal(stat.late_count, 1);
    world->away.favourite--;
    assert_int_equal(run_bad(world, &bad_kind, "nothing"), ERR_OK); /* its successor */
}

static void believes_no_lies(void **state) {
    static const char *const lies[] = {"much output", "much note", "strange error", "word of the node",
                                       "more input",  "no output", "no reply",      "strange turn"};
    struct world *world = *state;
    struct parsers_stat stat;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        enum err err = run_bad(world, &liar_kind, lies[i]);
        if (err != ERR_CORRUPT) {
            fail_msg("%s: %s", lies[i], err_name(err));
        }
    }
    parsers_stat(world->parsers, &stat);
    assert_int_equal(stat.refused_count, sizeof lies / sizeof lies[0]);
}

static enum err refuse_work(void *context, uint64_t size) {
    (void)context;
    (void)size;
    return ERR_CANCELLED;
}

/* A reader who leaves; the parser goes on with the next document. */
static void stops_when_nobody_wants_it(void **state) {
    struct world *world = *state;
    struct buf text;
    buf_init(&text, OUT_MAX);
    put_page(&text, 20000);
    world->away.favourite++;
    for (size_t i = 0; i < 3; i++) {
        struct parse_links_params links = {.head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                           .content_type = BYTES("text/html"),
                                           .base = BYTES("http://example.org/"),
                                           .size_max = OUT_MAX};
        struct buf params;
        buf_init(&params, PARSE_PARAMS_SIZE_MAX);
        assert_int_equal(parse_links_params(&params, &links), ERR_OK);
        world->job.work = i == 1 ? NULL : refuse_work;
        assert_int_equal(run(world, &world->away, &parse_links, buf_bytes(&params), buf_bytes(&text)),
                         i == 1 ? ERR_OK : ERR_CANCELLED);
        world->job.work = NULL;
        buf_done(&params);
    }
    buf_done(&text);
}

/* Whatever bytes come back: they are read to their end, and no further. */
static void reads_any_result(void **state) {
    struct prng prng;
    uint8_t bytes[96];
    (void)state;
    prng_init(&prng, 19);
    for (size_t i = 0; i < 100000; i++) {
        size_t size = prng_below(&prng, sizeof bytes + 1);
        for (size_t k = 0; k < size; k++) {
            bytes[k] = (uint8_t)(prng_below(&prng, 2) == 0 ? prng_below(&prng, 8) : prng_below(&prng, 256));
        }
        uint8_t *copy = malloc(size + 1); /* so that a sanitizer sees what is behind it */
        assert_non_null(copy);
        memcpy(copy, bytes, size);
        struct bytes result = bytes_of(copy, size);
        struct parse_page_note note;
        struct bytes parts[TEXT_PARTS_COUNT];
        enum link_kind kind;
        struct bytes href;
        if (parse_page_read_note(result, &note)) {
            assert_true(note.head.size <= size && note.format <= REWRITE_DASH);
        }
        if (parse_text_read(result, parts)) {
            assert_true(parts[TEXT_BODY].size <= size);
        }
        while (parse_links_read(&result, &kind, &href)) {
            assert_true((int)kind < LINK_KINDS_COUNT && href.size <= size);
        }
        free(copy);
    }
}

/* Last: nothing is parsed any more, and that is said. */
static void does_without_its_host(void **state) {
    struct world *world = *state;
    assert_int_equal(kill(world->parsers->host, SIGKILL), 0);
    while (!atomic_load(&world->parsers->is_hostless)) {
        usleep(1000);
    }
    struct parsers_stat before;
    struct parsers_stat stat;
    enum err err = ERR_OK;
    parsers_stat(world->parsers, &before);
    assert_int_equal(run_bad(world, &bad_kind, "nothing"), ERR_UNREACHABLE);
    parse_set_out(&world->away, &world->job);
    assert_true(parse_go_on(&world->away, &world->job, &err));
    assert_int_equal(err, ERR_UNREACHABLE);
    parsers_stat(world->parsers, &stat);
    assert_int_equal(stat.lost_count, before.lost_count + 2);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], PARSE_HOST_WORD) == 0) {
        return parse_host_main(argc, argv, &kinds);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_the_thread_itself_would),
        cmocka_unit_test(knows_all_encodings),
        cmocka_unit_test(can_do_nothing_else),
        cmocka_unit_test(loses_the_job_at_which_it_ended),
        cmocka_unit_test(does_the_job_that_its_predecessor_was_about_to_get),
        cmocka_unit_test(takes_more_jobs_than_there_is_room_for),
        cmocka_unit_test(goes_on_turn_by_turn),
        cmocka_unit_test(ends_what_takes_too_long),
        cmocka_unit_test(believes_no_lies),
        cmocka_unit_test(stops_when_nobody_wants_it),
        cmocka_unit_test(reads_any_result),
        cmocka_unit_test(does_without_its_host),
    };
    return cmocka_run_group_tests(tests, world_open, world_close);
}
