/* ring-search: one node with a real index asks others over real streams; they answer what the test gives
 * them, true or not. */
#include "node/search/ring_search.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "await.h"
#include "base/utc.h"
#include "net/stream.h"
#include "node/rpc/peer_rpc_state.h"
#include "node/search/ring_search_service.h"
#include "node/search/search_put.h"
#include "node/versions/dialects.h"
#include "scratch.h"
#include "unit.h"

enum { NODES = 4, SELF = 0, DAY = 86400, SECOND_US = 1000000 };

struct node {
    struct identity identity;
    struct peer_rpc *peer_rpc;
    struct peer peer;
    struct buf answer; /* what it says */
    _Atomic(int) err;
    _Atomic unsigned asked_count;
};

struct fixture {
    void *root;
    struct instance *instance;
    struct instance_session *session;
    struct archive *archive;
    struct access *access;
    struct search *search;
    struct dialects *dialects;
    struct ring_search *ring_search;
    struct ring_search_service *service; /* of the node itself */
    struct node nodes[NODES];
    _Atomic unsigned blamed_count;
};

/* ---- the ring: arc i is held by node i and the next ---- */

static struct ring_id end_of(size_t index) {
    return (struct ring_id){(uint64_t)(index % NODES) << 62, 0};
}

static size_t each_arc(void *context, void (*visit)(void *visitor, const struct holders_arc *arc),
                       void *visitor) {
    const struct fixture *fixture = context;
    for (size_t i = 0; i < NODES; i++) {
        struct holders_arc arc = {.from = end_of(i + NODES - 1), .to = end_of(i), .count = 2};
        arc.peers[0] = fixture->nodes[i].peer;
        arc.peers[1] = fixture->nodes[(i + 1) % NODES].peer;
        visit(visitor, &arc);
    }
    return NODES;
}

static void claims(void *context, bool *ret_has_everything, struct search_code_arc out[SEARCH_CODE_ARCS_MAX],
                   uint32_t *ret_count) {
    (void)context;
    *ret_has_everything = false;
    *ret_count = 1;
    out[0] = (struct search_code_arc){end_of(SELF + NODES - 2), end_of(SELF)};
}

static size_t copies(void *context) {
    (void)context;
    return 2;
}

static bool allows(void *context, struct bytes url) {
    (void)context;
    return !bytes_starts_with(url, BYTES("http://outside.example/"));
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    struct fixture *fixture = context;
    (void)peer;
    (void)sentence;
    fixture->blamed_count++;
}

/* ---- nodes ---- */

static enum err say(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                    struct err_detail *detail) {
    struct node *node = context;
    struct search_code_question read;
    (void)from;
    node->asked_count++;
    enum err err = search_code_read_question(question, &read, detail);
    assert_int_equal(err, ERR_OK);
    return node->err != 0 ? (enum err)node->err : buf_put(answer, buf_bytes(&node->answer));
}

static void start_node(struct fixture *fixture, unsigned number) {
    struct node *node = &fixture->nodes[number];
    struct peer_rpc_config config = {.identity = &node->identity};
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%u", number + 2);
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    assert_true(address_parse(bytes_of_string(text), 0, &config.address));
    assert_int_equal(peer_rpc_new(&config, &node->peer_rpc, NULL), ERR_OK);
    node->peer.address = stream_server_address(node->peer_rpc->server);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    buf_init(&node->answer, 2 * SEARCH_CODE_ANSWER_SIZE_MAX);
    if (number != SELF) {
        peer_rpc_serve(node->peer_rpc, PEER_RPC_SEARCH, say, node);
    }
}

static void put_page(struct fixture *fixture, const char *url, int64_t days, const char *html) {
    struct stored stored;
    struct document document = {
        .url = bytes_of_string(url),
        .time_us = days * DAY * SECOND_US,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"),
        .body = bytes_of_string(html)};
    assert_int_equal(
        instance_put(fixture->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL), ERR_OK);
}

static void open_archive(struct fixture *fixture) {
    struct instance_config instance = {.directory = fixture->root};
    assert_int_equal(instance_open(&instance, &fixture->instance, NULL), ERR_OK);
    fixture->session = instance_session_new(fixture->instance);
    assert_int_equal(access_open(fixture->root, &clock_system, NULL, NULL, &fixture->access, NULL), ERR_OK);
    struct archive_config archive = {
        .instance = fixture->instance, .access = fixture->access, .scratch_directory = fixture->root};
    fixture->archive = archive_new(&archive);
    put_page(fixture, "http://here.example/", 100, "<title>Here</title><p>A heron in the reeds, far away.");
    struct search_config search = {
        .is_enabled = true, .directory = fixture->root, .instance = fixture->instance};
    assert_int_equal(search_start(&search, &fixture->search, NULL), ERR_OK);
    struct search_stat stat = {0};
    unsigned turns_count = 0;
    do {
        search_stat(fixture->search, &stat);
    } while ((!stat.is_open || stat.left_size > 0 || stat.documents_count == 0) && await_turn(&turns_count));
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || scratch_make(&fixture->root) != 0) {
        return -1;
    }
    open_archive(fixture);
    fixture->dialects = dialects_new(&dialect_of_program, NULL);
    for (unsigned i = 0; i < NODES; i++) {
        start_node(fixture, i);
        dialects_hear(fixture->dialects, &fixture->nodes[i].peer, &dialect_of_program);
    }
    struct ring_search_config config = {
        .peer_rpc = fixture->nodes[SELF].peer_rpc,
        .search = fixture->search,
        .archive = fixture->archive,
        .dialects = fixture->dialects,
        .self = fixture->nodes[SELF].peer,
        .claims = claims,
        .each_arc = each_arc,
        .copies = copies,
        .gone_us = UINT64_C(3600) * SECOND_US,
        .allows = allows,
        .blame = blame,
        .context = fixture,
    };
    assert_int_equal(ring_search_start(&config, &fixture->ring_search), ERR_OK);
    fixture->service = ring_search_service_new(&config);
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(peer_rpc_start(fixture->nodes[i].peer_rpc, NULL), ERR_OK);
    }
    *state = fixture;
    return 0;
}

static void stop_node(struct node *node) {
    peer_rpc_stop(node->peer_rpc);
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < NODES; i++) {
        stop_node(&fixture->nodes[i]);
    }
    ring_search_stop(fixture->ring_search);
    search_stop(fixture->search);
    ring_search_free(fixture->ring_search);
    ring_search_service_free(fixture->service);
    for (unsigned i = 0; i < NODES; i++) {
        peer_rpc_free(fixture->nodes[i].peer_rpc);
        buf_done(&fixture->nodes[i].answer);
    }
    dialects_free(fixture->dialects);
    archive_free(fixture->archive);
    access_close(fixture->access);
    instance_session_free(fixture->session);
    instance_close(fixture->instance);
    int result = scratch_remove(&fixture->root);
    free(fixture);
    return result;
}

/* ---- what they say, and what is asked ---- */

static struct search_code_result page(const char *url, int64_t days, uint8_t digest, uint64_t score) {
    return (struct search_code_result){.url = bytes_of_string(url),
                                       .title = BYTES("There"),
                                       .snippet = BYTES("a \2heron\3"),
                                       .time_us = days * DAY * SECOND_US,
                                       .digest = {digest},
                                       .score = score * 1000000};
}

static void let_say_as(struct node *node, bool is_sure, const struct search_code_result *results,
                       uint32_t count) {
    struct search_code_head head = {.has_everything = is_sure, .results_count = count};
    assert_int_equal(search_put_head(&node->answer, &head, NULL), ERR_OK);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(search_put_result(&node->answer, &results[i]), ERR_OK);
    }
}

/* It is sure of all that it holds. */
static void let_say(struct node *node, const struct search_code_result *results, uint32_t count) {
    let_say_as(node, true, results, count);
}

static void post(void *semaphore) {
    sem_post(semaphore);
}

static enum err ask(struct fixture *fixture, const char *words, struct search_job *job,
                    struct search_ring_report *report) {
    sem_t done;
    sem_init(&done, 0, 0);
    search_job_init(job);
    *report = (struct search_ring_report){.is_ring = false};
    job->question.words = bytes_of_string(words);
    job->question.from_us = job->question.from_us != 0 ? job->question.from_us : INT64_MIN;
    job->question.to_us = INT64_MAX;
    job->question.limit = 100;
    job->archive = fixture->archive;
    job->done = post;
    job->context = &done;
    assert_int_equal(ring_search_ask(fixture->ring_search, job, report), ERR_OK);
    sem_wait(&done);
    sem_destroy(&done);
    return job->err;
}

/* The URLs that are found, in their order, one per line; the part of the ring that is searched. */
static void expect(struct fixture *fixture, const char *urls, size_t parts_count) {
    struct search_job job;
    struct search_ring_report report;
    struct buf found;
    buf_init(&found, 1 << 16);
    assert_int_equal(ask(fixture, "heron", &job, &report), ERR_OK);
    for (size_t i = 0; i < job.results_count; i++) {
        buf_put(&found, job.results[i].url);
        buf_put_byte(&found, '\n');
        bool is_here = bytes_equal(job.results[i].url, BYTES("http://here.example/"));
        assert_int_equal(job.results[i].node.size == 0, is_here);
    }
    assert_bytes_equal(buf_bytes(&found), bytes_of_string(urls));
    assert_true(report.is_ring && report.nodes_count == NODES && report.parts_count == NODES);
    assert_int_equal(report.whole_count, parts_count);
    buf_done(&found);
    search_job_done(&job);
}

#define BEST 1000 /* than what is here */

static void answers_are_merged_and_each_capture_is_one(void **state) {
    struct fixture *fixture = *state;
    const struct search_code_result first[] = {page("http://a.example/", 1, 1, BEST + 3),
                                               page("http://b.example/", 2, 2, BEST + 1),
                                               page("http://c.example/", 3, 3, 0)};
    const struct search_code_result second[] = {page("http://a.example/", 1, 9, BEST + 2), /* the time */
                                                page("http://d.example/", 5, 5, BEST + 2),
                                                page("http://b.example/", 7, 2, BEST)}; /* the contents */
    for (unsigned i = 1; i < NODES; i++) {
        let_say_as(&fixture->nodes[i], false, i % 2 == 1 ? first : second, 3); /* so that all are asked */
    }
    expect(
        fixture,
        "http://a.example/\nhttp://d.example/\nhttp://b.example/\nhttp://here.example/\nhttp://c.example/\n",
        2);
    assert_int_equal(fixture->blamed_count, 0);
}

static void what_may_not_be_shown_here_is_not_shown(void **state) {
    struct fixture *fixture = *state;
    const struct search_code_result results[] = {
        page("http://outside.example/", 1, 1, BEST), page("no url", 1, 2, BEST),
        page("http://a.example/late", INT64_C(100000000), 3, BEST), page("http://a.example/", 1, 4, BEST)};
    for (unsigned i = 1; i < NODES; i++) {
        let_say(&fixture->nodes[i], results, 4);
    }
    expect(fixture, "http://a.example/\nhttp://here.example/\n", NODES);
}

static void a_false_answer_is_blamed_and_another_holder_asked(void **state) {
    struct fixture *fixture = *state;
    const struct search_code_result rising[] = {page("http://a.example/", 1, 1, 1),
                                                page("http://b.example/", 1, 1, 2)};
    const struct search_code_result good[] = {page("http://a.example/", 1, 1, BEST)};
    let_say(&fixture->nodes[1], good, 1);
    let_say(&fixture->nodes[2], rising, 2);
    let_say(&fixture->nodes[3], good, 1);
    expect(fixture, "http://a.example/\nhttp://here.example/\n", NODES);
    assert_int_equal(fixture->blamed_count, fixture->nodes[2].asked_count);
}

static void who_is_gone_busy_or_unable_is_named(void **state) {
    struct fixture *fixture = *state;
    static const enum err errors[] = {ERR_BUSY, ERR_UNSUPPORTED, ERR_SYSTEM};
    static const char *const reasons[] = {"is busy", "has no search over the ring", "cannot search now"};
    struct search_job job;
    struct search_ring_report report;
    const struct search_code_result good[] = {page("http://a.example/", 1, 1, BEST)};
    let_say(&fixture->nodes[1], good, 1);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        fixture->nodes[2].err = fixture->nodes[3].err = errors[i];
        assert_int_equal(ask(fixture, "heron", &job, &report), ERR_OK);
        assert_int_equal(job.results_count, 2);
        assert_int_equal(report.missing_count, 1); /* arc 2: of nodes 2 and 3 */
        assert_int_equal(report.named_count, 2);
        assert_string_equal(report.named[0].reason, reasons[i]);
        assert_string_equal(report.named[1].reason, reasons[i]);
        assert_true(report.missing > 0.24 && report.missing < 0.26);
        search_job_done(&job);
    }
    stop_node(&fixture->nodes[2]);
    stop_node(&fixture->nodes[3]);
    assert_int_equal(ask(fixture, "heron", &job, &report), ERR_OK);
    assert_int_equal(report.missing_count, 1);
    assert_string_equal(report.named[0].reason, "does not answer");
    search_job_done(&job);
}

static void nodes_that_went_are_named_if_they_are_as_many_as_copies(void **state) {
    struct fixture *fixture = *state;
    struct search_job job;
    struct search_ring_report report;
    struct peer gone[2] = {{.address = fixture->nodes[1].peer.address, .key = {1}},
                           {.address = fixture->nodes[2].peer.address, .key = {2}}};
    for (unsigned i = 1; i < NODES; i++) {
        let_say(&fixture->nodes[i], NULL, 0);
        ring_search_see(fixture->ring_search, &fixture->nodes[i].peer, 1);
    }
    for (size_t count = 1; count <= 2; count++) {
        ring_search_see(fixture->ring_search, gone, count);
        assert_int_equal(ask(fixture, "heron", &job, &report), ERR_OK);
        assert_int_equal(report.gone_count, count == 2 ? 2 : 0);
        search_job_done(&job);
    }
}

static void a_wrong_question_is_asked_of_nobody(void **state) {
    struct fixture *fixture = *state;
    struct search_job job;
    struct search_ring_report report;
    assert_int_equal(ask(fixture, "\"", &job, &report), ERR_INVALID);
    assert_true(job.detail.text[0] != '\0');
    search_job_done(&job);
    for (unsigned i = 1; i < NODES; i++) {
        assert_int_equal(fixture->nodes[i].asked_count, 0);
    }
}

/* The other side: it answers from its index, and refuses what is no question. */
static void the_service_answers_with_what_it_is_sure_of(void **state) {
    struct fixture *fixture = *state;
    struct search_code_question question = {
        .words = BYTES("heron"), .from_us = INT64_MIN, .to_us = INT64_MAX, .count = 10};
    struct search_code_reader reader;
    struct search_code_head head;
    struct search_code_arc arc;
    struct search_code_result result;
    struct buf text;
    struct buf answer;
    buf_init(&text, SEARCH_CODE_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(search_put_question(&text, &question), ERR_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(peer_rpc_ask(fixture->nodes[1].peer_rpc, &fixture->nodes[SELF].peer, PEER_RPC_SEARCH,
                                      buf_bytes(&text), 20000, &answer, NULL),
                         ERR_OK);
        assert_int_equal(search_code_check_answer(buf_bytes(&answer), NULL), ERR_OK);
        assert_true(search_code_read_head(&reader, buf_bytes(&answer), &head));
        assert_true(head.arcs_count == 1 && head.results_count == 1 && head.left_count == 0);
        assert_true(search_code_next_arc(&reader, &arc) && search_code_next_result(&reader, &result));
        assert_bytes_equal(result.url, BYTES("http://here.example/"));
        assert_true(result.time_us == INT64_C(100) * DAY * SECOND_US && result.score > 0);
    }
    buf_put_byte(&text, 0);
    assert_int_equal(peer_rpc_ask(fixture->nodes[1].peer_rpc, &fixture->nodes[SELF].peer, PEER_RPC_SEARCH,
                                  buf_bytes(&text), 20000, &answer, NULL),
                     ERR_INVALID);
    buf_done(&text);
    buf_done(&answer);
}

/* ---- so many at a time ---- */

enum { QUESTIONS = RING_SEARCH_SERVICE_PER_NODE + 1 };

static struct {
    struct buf question;
    sem_t gate; /* for the threads of the search */
    struct search_job jobs[SEARCH_ASKERS_COUNT];
    _Atomic unsigned held_count;
    _Atomic unsigned busy_count;
    _Atomic unsigned answers_count;
} crowded;

static void hold(void *context) {
    (void)context;
    crowded.held_count++;
    sem_wait(&crowded.gate);
    crowded.held_count--;
}

static void on_crowded(void *context, enum err err, struct bytes answer) {
    (void)context;
    (void)answer;
    crowded.busy_count += err == ERR_BUSY;
    crowded.answers_count += err == ERR_OK;
}

static void ask_many(void *context) {
    struct fixture *fixture = context;
    for (int i = 0; i < QUESTIONS; i++) {
        assert_int_equal(peer_rpc_call(fixture->nodes[1].peer_rpc, &fixture->nodes[SELF].peer,
                                       PEER_RPC_SEARCH, buf_bytes(&crowded.question), 60000, on_crowded,
                                       NULL),
                         ERR_OK);
    }
}

static void the_service_answers_so_many_at_a_time(void **state) {
    struct fixture *fixture = *state;
    struct search_code_question question = {
        .words = BYTES("heron"), .from_us = INT64_MIN, .to_us = INT64_MAX, .count = 10};
    buf_init(&crowded.question, SEARCH_CODE_QUESTION_SIZE_MAX);
    assert_int_equal(search_put_question(&crowded.question, &question), ERR_OK);
    sem_init(&crowded.gate, 0, 0);
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        struct search_job *job = &crowded.jobs[i];
        search_job_init(job);
        job->question = (struct search_question){.words = BYTES("heron"), .to_us = INT64_MAX, .limit = 1};
        job->archive = fixture->archive;
        job->done = hold;
        assert_int_equal(search_ask(fixture->search, job), ERR_OK);
    }
    await_that(crowded.held_count == SEARCH_ASKERS_COUNT);
    assert_int_equal(peer_rpc_post(fixture->nodes[1].peer_rpc, ask_many, fixture), ERR_OK);
    await_that(crowded.busy_count == 1); /* at once, while the others wait */
    assert_int_equal(crowded.answers_count, 0);
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        sem_post(&crowded.gate);
    }
    await_that(crowded.answers_count == RING_SEARCH_SERVICE_PER_NODE);
    assert_int_equal(crowded.busy_count, 1);
    await_that(crowded.held_count == 0);
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        search_job_done(&crowded.jobs[i]);
    }
    buf_done(&crowded.question);
    sem_destroy(&crowded.gate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_merged_and_each_capture_is_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_may_not_be_shown_here_is_not_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_false_answer_is_blamed_and_another_holder_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_gone_busy_or_unable_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nodes_that_went_are_named_if_they_are_as_many_as_copies, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_question_is_asked_of_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_service_answers_with_what_it_is_sure_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_service_answers_so_many_at_a_time, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
