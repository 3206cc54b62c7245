/* crawler-ring - several crawlers that share a job: who fetches what, when one dies, when one comes; and that
 * what is stored is signed. */
#include <stdatomic.h>
#include <sys/stat.h>

#include "crawl/engine/attest.h"
#include "crawl/engine/jobs.h"
#include "origin.h"
#include "scratch.h"
#include "store/instance/merge.h"
#include "unit.h"

enum { NODES_COUNT = 3, PAGES_COUNT = 90, ROUNDS_MAX = 200000, LINKS_MAX = 64, ANSWER_SIZE = 4096 };

struct node {
    struct ring *ring;
    unsigned number;
    char directory[SCRATCH_PATH_SIZE];
    char agent[16];
    struct instance *instance;
    struct identity identity;
    struct route route;
    struct crawler *crawler;
    struct campaign campaign;
    bool is_open;
    bool is_mute; /* its links do not get to others */
};

struct ring {
    void *scratch;
    struct loop loop;
    struct origin origin;
    char answer[ANSWER_SIZE];
    _Atomic bool is_alive[NODES_COUNT];
    unsigned fetches[PAGES_COUNT][NODES_COUNT];
    unsigned fetches_count;
    _Atomic unsigned asked_home_count[NODES_COUNT]; /* whose the page is that all pages link to */
    bool has_etags;
    unsigned not_modified_count;
    unsigned rounds_count;
    struct node nodes[NODES_COUNT];
};

/* ---- the site ---- */

static size_t put_body(unsigned page, char *out, size_t size) {
    int count = snprintf(out, size, "<title>%u</title><a href=/%u>1</a><a href=/%u>2</a><a href=/0>up</a>",
                         page, 2 * page + 1, 2 * page + 2);
    assert_true(count > 0 && (size_t)count < size);
    return (size_t)count;
}

static void put_head(unsigned page, char *out, size_t size) {
    char body[256];
    snprintf(out, size,
             "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"%u\"\r\nContent-Length: %zu\r\n\r\n",
             page, put_body(page, body, sizeof body));
}

static const char *respond(void *context, const char *request) {
    struct ring *ring = context;
    unsigned page = PAGES_COUNT;
    const char *agent = strstr(request, "node-");
    bool is_page = sscanf(request, "GET /%u HTTP", &page) == 1;
    assert_true(agent != NULL && is_page == (strncmp(request, "GET /robots.txt ", 16) != 0));
    if (page >= PAGES_COUNT) {
        return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    }
    ring->fetches[page][agent[5] - '0']++;
    ring->fetches_count++;
    if (ring->has_etags && strstr(request, "If-None-Match: ") != NULL) {
        ring->not_modified_count++;
        return "HTTP/1.1 304 Not Modified\r\n\r\n";
    }
    put_head(page, ring->answer, sizeof ring->answer);
    put_body(page, ring->answer + strlen(ring->answer), sizeof ring->answer - strlen(ring->answer));
    return ring->answer;
}

/* ---- whose a URL is: two holders, the first fetches ---- */

static unsigned page_of(struct bytes url) {
    uint64_t page = 0;
    size_t from = url.size;
    while (url.data[from - 1] != '/') {
        from--;
    }
    assert_true(bytes_to_u64(bytes_skip(url, from), UINT32_MAX, &page));
    return (unsigned)page;
}

/* The holder of that rank. */
static unsigned holder_of(struct ring *ring, unsigned page, unsigned rank) {
    for (unsigned i = 0;; i++) {
        unsigned number = (page + i) % NODES_COUNT;
        if (atomic_load(&ring->is_alive[number]) && rank-- == 0) {
            return number;
        }
    }
}

static enum route_verdict ask(void *context, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]) {
    struct node *node = context;
    unsigned page = page_of(url);
    memset(ret_place, 0, ROUTE_POSITION_SIZE);
    ret_place[0] = (uint8_t)page;
    if (page == 0) {
        atomic_fetch_add(&node->ring->asked_home_count[node->number], 1);
    }
    return holder_of(node->ring, page, 0) == node->number   ? ROUTE_FETCH
           : holder_of(node->ring, page, 1) == node->number ? ROUTE_ELSEWHERE
                                                            : ROUTE_AWAY;
}

static void on_outgoing(void *context, const char *job) {
    struct node *node = context;
    assert_string_equal(job, node->campaign.name);
}

/* ---- nodes ---- */

static void on_ended(void *context, struct campaign *campaign) {
    (void)context;
    (void)campaign;
}

static void open_node(struct ring *ring, unsigned number, bool is_shared) {
    struct node *node = &ring->nodes[number];
    struct err_detail detail = {0};
    char name[16];
    char job_directory[SCRATCH_PATH_SIZE];
    char seed[64];
    snprintf(name, sizeof name, "node-%u", number);
    scratch_path(ring->scratch, name, node->directory);
    scratch_path(node->directory, "job", job_directory);
    snprintf(node->agent, sizeof node->agent, "%s", name);
    node->ring = ring;
    node->number = number;
    node->route = (struct route){.ask = ask, .outgoing = on_outgoing, .context = node};
    struct instance_config instance = {.directory = node->directory};
    assert_int_equal(instance_open(&instance, &node->instance, &detail), ERR_OK);
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    snprintf(seed, sizeof seed, "http://127.0.0.1:%u/0", ring->origin.port);
    struct bytes seeds[] = {bytes_of_string(seed)};
    struct job job = {
        .seeds = {.items = seeds, .count = 1, .capacity = 1},
        .scope = SCOPE_HOST,
        .depth = JOB_DEPTH_ANY,
        .ignores_robots = is_shared,
        .has_delay = true,
        .period_us = UINT64_C(3600) * 1000000,
        .is_shared = is_shared,
    };
    assert_int_equal(job_write(&job, job_directory, &detail), ERR_OK);
    assert_int_equal(campaign_open(&node->campaign, job_directory, "job", &detail), ERR_OK);
    struct crawler_config config = {
        .loop = &ring->loop,
        .instance = node->instance,
        .workers_count = 1,
        .route = &node->route,
        .identity = &node->identity,
        .ended = on_ended,
        .allows_private_shared = true,
        .fetch = {.scratch_directory = "/tmp", .user_agent = node->agent, .allows_private = true},
    };
    assert_int_equal(crawler_new(&config, &node->crawler, &detail), ERR_OK);
    if (crawler_add(node->crawler, &node->campaign, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    node->is_open = true;
}

/* Between its campaign's end and the end of the instance. */
static void stop_crawl(struct node *node) {
    crawler_pause(node->crawler, &node->campaign);
    while (!crawler_is_idle(node->crawler, &node->campaign)) {
        crawler_cancel(node->crawler);
        uv_run(&node->ring->loop.uv, UV_RUN_ONCE);
    }
    crawler_remove(node->crawler, &node->campaign);
    crawler_free(node->crawler);
    campaign_close(&node->campaign);
    node->is_open = false;
}

static struct frontier_stat stat_of(struct node *node) {
    struct frontier_stat stat;
    frontier_stat(node->campaign.frontier, &stat);
    return stat;
}

/* What a walk around the ring does: all outgoing links of the node to their holders. */
static void deliver(struct node *node) {
    struct ring *ring = node->ring;
    struct frontier_outgoing links[LINKS_MAX];
    uint8_t place[ROUTE_POSITION_SIZE] = {0};
    struct buf work;
    size_t count = 0;
    buf_init(&work, 1 << 16);
    enum err outcome = frontier_read_outgoing(node->campaign.frontier, place, bytes_of(NULL, 0), &work, links,
                                              LINKS_MAX, &count);
    assert_true(outcome == ERR_OK || outcome == ERR_BUSY); /* busy: not on the disk yet, none is given */
    for (size_t i = 0; i < count; i++) {
        for (unsigned rank = 0; rank < 2; rank++) {
            struct node *holder = &ring->nodes[holder_of(ring, page_of(links[i].url), rank)];
            struct crawler_links taken = {0};
            if (holder != node && holder->is_open) {
                enum err err = crawler_take_links(holder->crawler, &holder->campaign, &links[i], 1, &taken);
                assert_int_equal(err, ERR_OK);
                assert_int_equal(taken.taken_count + taken.known_count, 1);
            }
        }
    }
    frontier_drop_outgoing(node->campaign.frontier, links, count);
    buf_done(&work);
}

static bool is_over(struct ring *ring) {
    for (size_t i = 0; i < NODES_COUNT; i++) {
        struct node *node = &ring->nodes[i];
        if (node->is_open && (node->campaign.state != CAMPAIGN_ENDED || stat_of(node).outgoing_count > 0)) {
            return false;
        }
    }
    return true;
}

static void go_on(struct ring *ring) {
    assert_true(ring->rounds_count++ < ROUNDS_MAX);
    uv_run(&ring->loop.uv, UV_RUN_ONCE);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        struct node *node = &ring->nodes[i];
        if (node->is_open && !node->is_mute && stat_of(node).outgoing_count > 0) {
            deliver(node);
        }
    }
}

static void run_until(struct ring *ring, unsigned fetches_count) {
    while (!is_over(ring) && ring->fetches_count < fetches_count) {
        go_on(ring);
    }
}

/* Captures of pages come to another node. */
static void replicate(struct ring *ring, unsigned page, struct node *to) {
    struct instance_session *session = instance_session_new(to->instance);
    char url[64];
    char head[256];
    char body[256];
    struct stored stored;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/%u", ring->origin.port, page);
    put_head(page, head, sizeof head);
    struct document document = {
        .url = bytes_of_string(url),
        .time_us = clock_wall_us(&clock_system),
        .head = bytes_of_string(head),
        .body = bytes_of(body, put_body(page, body, sizeof body)),
    };
    assert_non_null(session);
    assert_int_equal(instance_put(session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL),
                     ERR_OK);
    instance_session_free(session);
}

static unsigned fetches_of(const struct ring *ring, unsigned page) {
    return ring->fetches[page][0] + ring->fetches[page][1] + ring->fetches[page][2];
}

static void check_all_fetched_once(const struct ring *ring) {
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        if (fetches_of(ring, i) != 1) {
            fail_msg("page %u was fetched %u, %u, %u times", i, ring->fetches[i][0], ring->fetches[i][1],
                     ring->fetches[i][2]);
        }
    }
}

static int set_up(void **state) {
    struct ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL || scratch_make(&ring->scratch) != 0 || loop_init(&ring->loop, 0) != ERR_OK) {
        return -1;
    }
    origin_open(&ring->origin, &ring->loop.uv, NULL);
    ring->origin.respond = respond;
    ring->origin.context = ring;
    *state = ring;
    return 0;
}

static int tear_down(void **state) {
    struct ring *ring = *state;
    for (size_t i = 0; i < NODES_COUNT; i++) {
        if (ring->nodes[i].is_open) {
            stop_crawl(&ring->nodes[i]);
        }
    }
    origin_close(&ring->origin);
    loop_stop(&ring->loop, NULL, NULL);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        if (ring->nodes[i].instance != NULL) {
            instance_close(ring->nodes[i].instance);
        }
    }
    void *scratch = ring->scratch;
    free(ring);
    return scratch_remove(&scratch);
}

static void start(struct ring *ring, unsigned nodes_mask) {
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        atomic_store(&ring->is_alive[i], (nodes_mask >> i & 1) != 0);
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        if ((nodes_mask >> i & 1) != 0) {
            open_node(ring, i, true);
        }
    }
}

/* A link that another node sends. */
static enum err offer(struct node *node, const char *url, uint16_t depth, enum frontier_priority priority,
                      struct crawler_links *ret_outcome) {
    struct frontier_outgoing link = {.url = bytes_of_string(url), .depth = depth, .priority = priority};
    return crawler_take_links(node->crawler, &node->campaign, &link, 1, ret_outcome);
}

/* ---- who fetches what ---- */

static void each_url_is_fetched_once_by_whose_it_is(void **state) {
    struct ring *ring = *state;
    start(ring, 7);
    run_until(ring, UINT32_MAX);
    check_all_fetched_once(ring);
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        assert_int_equal(ring->fetches[i][i % NODES_COUNT], 1);
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        struct frontier_stat stat = stat_of(&ring->nodes[i]);
        assert_true(stat.done_count >= PAGES_COUNT / NODES_COUNT);
        assert_true(stat.known_count >= 2 * PAGES_COUNT / NODES_COUNT); /* its own, and the elsewhere ones */
        assert_true(stat.known_count < PAGES_COUNT * 2 + 1 - PAGES_COUNT / NODES_COUNT);
        assert_int_equal(stat.visit_start_us % (INT64_C(3600) * 1000000), 0);
    }
}

/* Also of the node that does not hold it: 30 of its pages link there. */
static void whose_a_link_is_is_asked_once(void **state) {
    struct ring *ring = *state;
    start(ring, 7);
    run_until(ring, UINT32_MAX);
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        assert_in_range(atomic_load(&ring->asked_home_count[i]), 1,
                        3); /* as a seed, when found, when taken */
    }
}

/* Node 1 dies, all that it had fetched has come to the others; they do the rest. */
static void bury_and_check(struct ring *ring) {
    bool was_copied[PAGES_COUNT] = {0};
    stop_crawl(&ring->nodes[1]);
    atomic_store(&ring->is_alive[1], false);
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        was_copied[i] = ring->fetches[i][1] > 0;
        if (was_copied[i]) {
            replicate(ring, i, &ring->nodes[holder_of(ring, i, 0)]);
        }
    }
    assert_true(ring->fetches_count < PAGES_COUNT);
    crawler_recall(ring->nodes[0].crawler);
    crawler_recall(ring->nodes[2].crawler);
    run_until(ring, UINT32_MAX);
    assert_true(ring->nodes[2].campaign.tally.found_before_count > 0);
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        if (ring->fetches[i][1] > 0 && !was_copied[i]) {
            ring->fetches[i][1] = 0; /* its request was on the way when the node died */
        }
    }
    check_all_fetched_once(ring);
}

static void the_work_of_a_dead_node_is_taken_over(void **state) {
    struct ring *ring = *state;
    start(ring, 7);
    run_until(ring, PAGES_COUNT / 3);
    bury_and_check(ring);
}

/* It followed its own links, 1, 4, 10, 22, and nobody else has ever heard of 4. */
static void what_a_dead_node_told_nobody_is_read_from_its_captures(void **state) {
    struct ring *ring = *state;
    start(ring, 7);
    ring->nodes[1].is_mute = true;
    while (ring->fetches[22][1] == 0) {
        go_on(ring);
    }
    bury_and_check(ring);
}

static void a_node_that_comes_gets_its_part(void **state) {
    struct ring *ring = *state;
    start(ring, 5);
    run_until(ring, PAGES_COUNT / 3);
    for (unsigned i = 0; i < NODES_COUNT; i += 2) {
        struct node *node = &ring->nodes[i];
        crawler_pause(node->crawler, &node->campaign);
        while (!crawler_is_idle(node->crawler, &node->campaign)) {
            uv_run(&ring->loop.uv, UV_RUN_ONCE);
        }
    }
    char url[64];
    struct crawler_links outcome = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%u/901", ring->origin.port); /* no page leads there */
    assert_int_equal(offer(&ring->nodes[2], url, 1 << 7, FRONTIER_PAGE, &outcome), ERR_OK);
    assert_int_equal(outcome.taken_count, 1);
    atomic_store(&ring->is_alive[1], true);
    open_node(ring, 1, true);
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        if (fetches_of(ring, i) > 0) {
            replicate(ring, i, &ring->nodes[1]);
        }
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        crawler_recall(ring->nodes[i].crawler);
        crawler_resume(ring->nodes[i].crawler, &ring->nodes[i].campaign);
    }
    run_until(ring, UINT32_MAX);
    check_all_fetched_once(ring);
    unsigned count = 0;
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        count += ring->fetches[i][1];
    }
    assert_true(count > 0);
    struct frontier_entry entry;
    struct buf work;
    buf_init(&work, 1 << 16);
    assert_int_equal(frontier_find(ring->nodes[1].campaign.frontier, bytes_of_string(url), &work, &entry),
                     ERR_OK);
    assert_true(entry.state == FRONTIER_DONE && entry.url.history.last_status == 404);
    buf_done(&work);
}

/* ---- links of others ---- */

static void links_of_others_are_checked(void **state) {
    enum { ONE_PAGE = 1 << 7, ONE_EMBED = 1 << 4, EMBEDS_TOO_MANY = 7 << 4 };
    struct ring *ring = *state;
    struct node *node = &ring->nodes[0];
    struct crawler_links outcome;
    char url[64];
    start(ring, 7);
    run_until(ring, UINT32_MAX);
    assert_int_equal(node->campaign.state, CAMPAIGN_ENDED);
    const struct {
        const char *url;
        uint16_t depth;
        enum frontier_priority priority;
    } bad[] = {
        {"", ONE_PAGE, FRONTIER_PAGE},
        {"no url at all", ONE_PAGE, FRONTIER_PAGE},
        {"ftp://127.0.0.1/900", ONE_PAGE, FRONTIER_PAGE},
        {"http://elsewhere.example/900", ONE_PAGE, FRONTIER_PAGE},
        {"http://elsewhere.example/900", 0, FRONTIER_PAGE},
        {"http://elsewhere.example/900", ONE_PAGE, FRONTIER_GUESS},
        {"http://elsewhere.example/900", EMBEDS_TOO_MANY, FRONTIER_EMBED},
        {"http://elsewhere.example/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/900", ONE_EMBED, FRONTIER_EMBED},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(offer(node, bad[i].url, bad[i].depth, bad[i].priority, &outcome), ERR_OK);
        if (outcome.refused_count != 1) {
            fail_msg("%s, %u was taken", bad[i].url, bad[i].depth);
        }
    }
    assert_int_equal(offer(node, "http://elsewhere.example/901", ONE_EMBED, FRONTIER_EMBED, &outcome),
                     ERR_OK);
    assert_int_equal(outcome.away_count, 1); /* pictures are anywhere; 901 is of nodes 1 and 2 */
    snprintf(url, sizeof url, "http://127.0.0.1:%u/3", ring->origin.port);
    assert_int_equal(offer(node, url, ONE_PAGE, FRONTIER_PAGE, &outcome), ERR_OK);
    assert_int_equal(outcome.known_count, 1);
    assert_int_equal(node->campaign.state, CAMPAIGN_ENDED);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/900", ring->origin.port);
    assert_int_equal(offer(node, url, ONE_PAGE, FRONTIER_PAGE, &outcome), ERR_OK);
    assert_true(outcome.taken_count == 1 && node->campaign.state == CAMPAIGN_RUNNING);
    uint64_t done_count = stat_of(node).done_count;
    run_until(ring, UINT32_MAX);
    assert_int_equal(stat_of(node).done_count, done_count + 1);
}

/* ---- the jobs of a node ---- */

/* What the thread that talks to others does, while the loop runs. */
struct talker {
    struct jobs *jobs;
    _Atomic bool is_ending;
    unsigned seen_count;
};

static void *talk(void *context) {
    struct talker *talker = context;
    struct frontier_outgoing links[LINKS_MAX];
    uint8_t place[ROUTE_POSITION_SIZE] = {0};
    struct buf work;
    buf_init(&work, 1 << 16);
    while (!atomic_load(&talker->is_ending)) {
        size_t count = 0;
        if (jobs_read_outgoing(talker->jobs, "job", place, bytes_of(NULL, 0), &work, links, LINKS_MAX,
                               &count) == ERR_OK &&
            jobs_drop_outgoing(talker->jobs, "job", links, count) == ERR_OK) {
            talker->seen_count += (unsigned)count;
        }
        uv_sleep(1);
    }
    buf_done(&work);
    return NULL;
}

static void on_stopped(void *context) {
    *(bool *)context = true;
}

static void ignore_outgoing(void *context, const char *job) {
    (void)context;
    assert_string_equal(job, "job");
}

static void jobs_give_and_take_links(void **state) {
    struct ring *ring = *state;
    struct node *node = &ring->nodes[0];
    struct err_detail detail = {0};
    struct crawler_links outcome = {0};
    struct talker talker = {0};
    pthread_t thread;
    bool is_stopped = false;
    start(ring, 1);
    stop_crawl(node); /* its directory is what is needed */
    node->route.outgoing = ignore_outgoing;
    struct jobs_config config = {
        .directory = node->directory,
        .crawler =
            {
                .loop = &ring->loop,
                .instance = node->instance,
                .workers_count = 1,
                .route = &node->route,
                .allows_private_shared = true,
                .fetch = {.scratch_directory = "/tmp", .user_agent = node->agent, .allows_private = true},
            },
        .stopped = on_stopped,
        .context = &is_stopped,
    };
    assert_int_equal(jobs_new(&config, &talker.jobs, &detail), ERR_OK);
    struct frontier_outgoing link = {.url = BYTES("http://elsewhere.example/0"), .depth = 1 << 7};
    assert_int_equal(jobs_take_links(talker.jobs, "nobody", &link, 1, &outcome), ERR_NOT_FOUND);
    assert_int_equal(pthread_create(&thread, NULL, talk, &talker), 0);
    while (ring->fetches_count < 3) {
        uv_run(&ring->loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(jobs_take_links(talker.jobs, "job", &link, 1, &outcome), ERR_OK);
    assert_int_equal(outcome.refused_count, 1);
    jobs_recall(talker.jobs);
    jobs_stop(talker.jobs);
    while (!is_stopped) {
        uv_run(&ring->loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(jobs_take_links(talker.jobs, "job", &link, 1, &outcome), ERR_NOT_FOUND);
    atomic_store(&talker.is_ending, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(talker.seen_count > 0);
    jobs_free(talker.jobs);
}

/* ---- signatures ---- */

static struct bytes field_of(struct bytes header, const char *name) {
    struct bytes line;
    while (bytes_split(&header, '\n', &line)) {
        struct bytes key;
        if (bytes_split(&line, ':', &key) && bytes_equal(key, bytes_of_string(name))) {
            return bytes_trim(line);
        }
    }
    return bytes_of(NULL, 0);
}

/* Is the record that of a capture for which the node vouches, request and all? */
static bool is_attested(const struct node *node, struct sha256 *sha256, const struct capture *capture,
                        uint64_t size, struct bytes record, struct bytes request) {
    struct bytes header = bytes_slice(record, 0, bytes_find(record, BYTES("\r\n\r\n")));
    struct bytes block = bytes_skip(record, header.size + 4);
    struct document_sum sum = {.size = size};
    uint8_t key[PEER_KEY_SIZE];
    bool covers_request = false;
    struct document document = {
        .url = capture->url,
        .time_us = capture->time_us,
        .head = bytes_slice(block, 0, bytes_find(block, BYTES("\r\n\r\n")) + 4),
        .request = request,
        .ip_address = field_of(header, "WARC-IP-Address"),
        .tls = field_of(header, "Mnemon-TLS"),
        .signature = field_of(header, "Mnemon-Signature"),
        .sum = &sum,
        .is_not_modified = bytes_find(header, BYTES("server-not-modified")) < header.size,
    };
    memcpy(sum.digest, capture->digest, sizeof sum.digest);
    struct buf message;
    buf_init(&message, ATTEST_MESSAGE_SIZE_MAX);
    enum err err = attest_verify(sha256, &message, &document, key, &covers_request, NULL);
    buf_done(&message);
    if (err != ERR_OK) {
        assert_int_equal(err, ERR_MISMATCH);
        return false;
    }
    assert_memory_equal(key, node->identity.key, sizeof key);
    return covers_request;
}

/* All captures; each is attested, and with one byte changed it is not. */
static unsigned check_captures(struct node *node) {
    struct instance_session *session = instance_session_new(node->instance);
    struct instance_session *second = instance_session_new(node->instance); /* for requests */
    struct merge *merge;
    struct capture capture;
    struct bytes record;
    struct bytes request;
    struct key key;
    struct block block;
    struct sha256 sha256;
    unsigned count = 0;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    assert_int_equal(merge_open(session, BYTES("!"), BYTES("~"), false, &merge, NULL), ERR_OK);
    while (merge_next(merge, &capture, NULL) == ERR_OK) {
        assert_int_equal(instance_locate(session, &capture, &key, &block, NULL), ERR_OK);
        assert_int_equal(instance_get_record(session, capture.volume, &capture.location, &record, NULL),
                         ERR_OK);
        assert_int_equal(instance_get_request(second, capture.volume, &capture.location, &request, NULL),
                         ERR_OK);
        bool is_unchanged = bytes_find(record, BYTES("server-not-modified")) < record.size;
        assert_int_equal(request.size > 0, !is_unchanged); /* nothing but validators would be in it */
        assert_true(is_attested(node, &sha256, &capture, block.size, record, request));
        uint8_t *changed = malloc(record.size);
        assert_non_null(changed);
        memcpy(changed, record.data, record.size);
        changed[bytes_find(record, BYTES("HTTP/1.1")) + 10] ^= 1;
        struct bytes false_record = bytes_of(changed, record.size);
        assert_false(is_attested(node, &sha256, &capture, block.size, false_record, request));
        free(changed);
        struct bytes false_request = is_unchanged ? BYTES("GET") : bytes_slice(request, 0, request.size - 1);
        assert_false(is_attested(node, &sha256, &capture, block.size, record, false_request));
        capture.time_us++;
        assert_false(is_attested(node, &sha256, &capture, block.size, record, request));
        count++;
    }
    merge_close(merge);
    sha256_done(&sha256);
    instance_session_free(second);
    instance_session_free(session);
    return count;
}

static void what_is_stored_is_signed(void **state) {
    struct ring *ring = *state;
    struct node *node = &ring->nodes[0];
    ring->has_etags = true;
    open_node(ring, 0, false);
    run_until(ring, UINT32_MAX);
    assert_int_equal(ring->fetches_count, PAGES_COUNT);
    unsigned count = check_captures(node);
    assert_true(count > PAGES_COUNT); /* and robots.txt, and pages that are not there */
    crawler_start_visit(node->crawler, &node->campaign);
    run_until(ring, UINT32_MAX);
    assert_int_equal(ring->not_modified_count, PAGES_COUNT);
    assert_true(check_captures(node) >= count + PAGES_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_url_is_fetched_once_by_whose_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whose_a_link_is_is_asked_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_work_of_a_dead_node_is_taken_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_dead_node_told_nobody_is_read_from_its_captures, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_node_that_comes_gets_its_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_of_others_are_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_give_and_take_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_stored_is_signed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
