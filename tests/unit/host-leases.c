/*
 * host_leases - three nodes with real streams and real crawlers want the same host: together they are as
 * polite as one. The loop of the test is the crawl's loop of all of them; each has its own bulk thread.
 */
#include "node/leases/host_leases.h"
#include "node/leases/host_leases_code.h"

#include <stdatomic.h>

#include "crawl/engine/crawler_state.h"
#include "net/stream.h"
#include "node/rpc/peer_rpc_state.h"
#include "scratch.h"
#include "store/instance/instance.h"
#include "unit.h"

enum {
    NODES_COUNT = 3,
    PAGES_COUNT = HOST_LENDER_REQUESTS_MAX + 4, /* more than one lease for each */
    ROUNDS_MAX = 400000,
    CLIENTS_MAX = 32,
    REQUEST_SIZE_MAX = 4096,
    LOG_MAX = 4096,
    ANSWER_MS = 2,
    DELAY_US = 8000,
};

/* ---- a clock that can be turned on ---- */

static _Atomic uint64_t turned_us;

static uint64_t turned_monotonic_us(const struct clock *clock) {
    (void)clock;
    return clock_monotonic_us(&clock_system) + atomic_load(&turned_us);
}

static int64_t turned_wall_us(const struct clock *clock) {
    (void)clock;
    return clock_wall_us(&clock_system) + (int64_t)atomic_load(&turned_us);
}

static const struct clock turned_clock = {.monotonic_us = turned_monotonic_us, .wall_us = turned_wall_us};

static uint64_t now_us(void) {
    return clock_monotonic_us(&turned_clock);
}

/* ---- the site: it answers after a while, and writes down who asked when ---- */

struct ring;

struct client {
    uv_tcp_t tcp; /* first: libuv gives us this */
    uv_timer_t timer;
    struct ring *ring;
    unsigned open_count; /* of the two handles */
    size_t size;
    char request[REQUEST_SIZE_MAX];
    char answer[REQUEST_SIZE_MAX];
};

struct visit {
    uint64_t from_us; /* by the system's clock */
    uint64_t to_us;
    unsigned node;
    char path[32];
};

struct node {
    struct ring *ring;
    unsigned number;
    char agent[16];
    char directory[SCRATCH_PATH_SIZE];
    struct identity identity;
    struct peer peer;
    struct peer_rpc *peer_rpc;
    struct host_leases *host_leases;
    struct instance *instance;
    struct crawler *crawler;
    struct campaign campaign;
    bool is_open;
};

struct ring {
    void *scratch;
    struct loop loop;
    uv_tcp_t listener;
    uint16_t port;
    struct client clients[CLIENTS_MAX];
    const char *robots;
    unsigned status; /* of pages; 0: 200 */
    struct visit log[LOG_MAX];
    size_t log_count;
    unsigned running_count;
    unsigned running_max;
    _Atomic unsigned home; /* NODES_COUNT: nobody knows */
    _Atomic unsigned lookups_count;
    struct node nodes[NODES_COUNT];
    unsigned nodes_count;
};

static void on_client_closed(uv_handle_t *handle) {
    struct client *client = handle->data;
    client->open_count--;
}

static void end_visits(struct ring *ring) {
    for (size_t i = 0; i < ring->log_count; i++) {
        if (ring->log[i].to_us == 0) {
            ring->log[i].to_us = clock_monotonic_us(&clock_system);
        }
    }
    ring->running_count--;
}

static void drop_client(struct client *client) {
    if (!uv_is_closing((uv_handle_t *)&client->tcp)) {
        if (uv_is_active((uv_handle_t *)&client->timer)) {
            end_visits(client->ring); /* who asked does not wait for the answer */
        }
        uv_close((uv_handle_t *)&client->tcp, on_client_closed);
        uv_close((uv_handle_t *)&client->timer, on_client_closed);
    }
}

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
    struct client *client = handle->data;
    (void)size;
    *buf = uv_buf_init(client->request + client->size, (unsigned)(sizeof client->request - client->size - 1));
}

static void put_answer(struct ring *ring, const char *path, char out[REQUEST_SIZE_MAX]) {
    char body[1024] = "";
    if (strcmp(path, "/robots.txt") == 0) {
        snprintf(body, sizeof body, "%s", ring->robots);
    } else {
        for (unsigned i = 0; i < PAGES_COUNT; i++) {
            size_t size = strlen(body);
            snprintf(body + size, sizeof body - size, "<a href=/%u>x</a>", i);
        }
        strcat(body, "<a href=/private>x</a>");
    }
    unsigned status = ring->status == 0 || strcmp(path, "/robots.txt") == 0 ? 200 : ring->status;
    snprintf(out, REQUEST_SIZE_MAX,
             "HTTP/1.1 %u Status\r\nContent-Type: text/html\r\nContent-Length: %zu\r\n\r\n%s", status,
             strlen(body), body);
}

static void on_answer_time(uv_timer_t *timer) {
    struct client *client = timer->data;
    uv_buf_t out = uv_buf_init(client->answer, (unsigned)strlen(client->answer));
    end_visits(client->ring);
    uv_try_write((uv_stream_t *)&client->tcp, &out, 1);
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct client *client = stream->data;
    struct ring *ring = client->ring;
    (void)buf;
    if (got < 0) {
        drop_client(client);
        return;
    }
    client->size += (size_t)got;
    client->request[client->size] = '\0';
    if (strstr(client->request, "\r\n\r\n") == NULL) {
        return;
    }
    assert_true(ring->log_count < LOG_MAX);
    struct visit *visit = &ring->log[ring->log_count++];
    const char *agent = strstr(client->request, "node-");
    assert_true(agent != NULL && sscanf(client->request, "GET %31s HTTP", visit->path) == 1);
    visit->from_us = clock_monotonic_us(&clock_system);
    visit->node = (unsigned)(agent[5] - '0');
    put_answer(ring, visit->path, client->answer);
    client->size = 0;
    ring->running_count++;
    ring->running_max = ring->running_count > ring->running_max ? ring->running_count : ring->running_max;
    uv_timer_start(&client->timer, on_answer_time, ANSWER_MS, 0);
}

static void on_client(uv_stream_t *listener, int status) {
    struct ring *ring = listener->data;
    size_t i = 0;
    while (i < CLIENTS_MAX && ring->clients[i].open_count > 0) {
        i++;
    }
    assert_true(status == 0 && i < CLIENTS_MAX);
    struct client *client = &ring->clients[i];
    client->ring = ring;
    client->size = 0;
    client->open_count = 2;
    uv_tcp_init(&ring->loop.uv, &client->tcp);
    uv_timer_init(&ring->loop.uv, &client->timer);
    client->tcp.data = client->timer.data = client;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&client->tcp), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&client->tcp, give_buffer, on_bytes), 0);
}

static void open_site(struct ring *ring) {
    struct sockaddr_in address;
    int size = sizeof address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    assert_int_equal(uv_tcp_init(&ring->loop.uv, &ring->listener), 0);
    ring->listener.data = ring;
    assert_int_equal(uv_tcp_bind(&ring->listener, (const struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&ring->listener, 64, on_client), 0);
    assert_int_equal(uv_tcp_getsockname(&ring->listener, (struct sockaddr *)&address, &size), 0);
    ring->port = ntohs(address.sin_port);
}

/* ---- whose home: one node has the whole ring ---- */

static bool know(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    struct node *node = context;
    unsigned home = atomic_load(&node->ring->home);
    (void)place;
    if (home == NODES_COUNT) {
        return false;
    }
    *ret_arc = (struct holders_arc){.count = 1, .self_rank = home == node->number ? 0 : -1};
    ret_arc->peers[0] = node->ring->nodes[home].peer;
    return true;
}

static enum err find(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    struct node *node = context;
    atomic_fetch_add(&node->ring->lookups_count, 1);
    return know(context, place, ret_arc) ? ERR_OK : ERR_UNREACHABLE;
}

static size_t own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    struct ring_id place = {0};
    return know(context, place, &out[0]) && out[0].self_rank == 0 ? 1 : 0;
}

/* ---- nodes ---- */

static void on_ended(void *context, struct campaign *campaign) {
    (void)context;
    (void)campaign;
}

static void open_network(struct node *node) {
    struct peer_rpc_config peer_rpc = {.identity = &node->identity};
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%u", node->number + 2);
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    assert_true(address_parse(bytes_of_string(text), 0, &peer_rpc.address));
    assert_int_equal(peer_rpc_new(&peer_rpc, &node->peer_rpc, NULL), ERR_OK);
    node->peer.address = stream_server_address(node->peer_rpc->server);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    struct host_leases_config host_leases = {
        .peer_rpc = node->peer_rpc,
        .self = node->peer,
        .homes = {.know = know, .find = find, .own = own, .context = node},
        .clock = &turned_clock,
    };
    assert_int_equal(host_leases_new(&host_leases, &node->host_leases, NULL), ERR_OK);
}

static void open_campaign(struct node *node, uint64_t delay_us) {
    struct err_detail detail = {0};
    char directory[SCRATCH_PATH_SIZE];
    char seed[64];
    snprintf(seed, sizeof seed, "http://127.0.0.1:%u/0", node->ring->port);
    struct bytes seeds[] = {bytes_of_string(seed)};
    struct job job = {
        .seeds = {.items = seeds, .count = 1, .capacity = 1},
        .scope = SCOPE_HOST,
        .depth = JOB_DEPTH_ANY,
        .has_delay = true,
        .delay_us = delay_us,
        .is_shared = true,
    };
    scratch_path(node->directory, "job", directory);
    assert_int_equal(job_write(&job, directory, &detail), ERR_OK);
    assert_int_equal(campaign_open(&node->campaign, directory, "job", &detail), ERR_OK);
}

static void open_node(struct ring *ring, unsigned number, uint64_t delay_us) {
    struct node *node = &ring->nodes[number];
    struct err_detail detail = {0};
    node->ring = ring;
    node->number = number;
    char name[16];
    snprintf(name, sizeof name, "node-%u", number);
    memcpy(node->agent, name, sizeof name);
    scratch_path(ring->scratch, name, node->directory);
    struct instance_config instance = {.directory = node->directory};
    assert_int_equal(instance_open(&instance, &node->instance, &detail), ERR_OK);
    open_network(node);
    open_campaign(node, delay_us);
    struct crawler_config config = {
        .loop = &ring->loop,
        .instance = node->instance,
        .clock = &turned_clock,
        .workers_count = 1,
        .permits = host_leases_permits(node->host_leases),
        .ended = on_ended,
        .allows_private_shared = true,
        .fetch = {.scratch_directory = "/tmp", .user_agent = node->agent, .allows_private = true},
    };
    assert_int_equal(crawler_new(&config, &node->crawler, &detail), ERR_OK);
    node->crawler->pace.address_delay_us = 0; /* all of them have one address here */
    host_leases_attach(node->host_leases, &ring->loop, node->crawler);
    assert_int_equal(peer_rpc_start(node->peer_rpc, &detail), ERR_OK);
    assert_int_equal(crawler_add(node->crawler, &node->campaign, &detail), ERR_OK);
    node->is_open = true;
}

static void open_nodes(struct ring *ring, unsigned count, uint64_t delay_us) {
    for (unsigned i = 0; i < count; i++) {
        open_node(ring, i, delay_us);
    }
    ring->nodes_count = count;
}

static void close_node(struct node *node) {
    crawler_pause(node->crawler, &node->campaign);
    while (!crawler_is_idle(node->crawler, &node->campaign)) {
        crawler_cancel(node->crawler);
        uv_run(&node->ring->loop.uv, UV_RUN_ONCE);
    }
    crawler_remove(node->crawler, &node->campaign);
    host_leases_detach(node->host_leases);
    crawler_free(node->crawler);
    campaign_close(&node->campaign);
    peer_rpc_stop(node->peer_rpc);
    node->is_open = false;
}

/* Once the loop has let go of their handles. */
static void free_node(struct node *node) {
    if (node->host_leases != NULL) {
        host_leases_free(node->host_leases);
        peer_rpc_free(node->peer_rpc);
        instance_close(node->instance);
    }
}

static int set_up(void **state) {
    struct ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL || scratch_make(&ring->scratch) != 0 || loop_init(&ring->loop, 0) != ERR_OK) {
        return -1;
    }
    ring->robots = "User-agent: *\nDisallow: /private\n";
    open_site(ring);
    *state = ring;
    return 0;
}

static int tear_down(void **state) {
    struct ring *ring = *state;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        if (ring->nodes[i].is_open) {
            close_node(&ring->nodes[i]);
        }
    }
    uv_close((uv_handle_t *)&ring->listener, NULL);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (ring->clients[i].open_count == 2) {
            drop_client(&ring->clients[i]);
        }
    }
    loop_stop(&ring->loop, NULL, NULL);
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        free_node(&ring->nodes[i]);
    }
    void *scratch = ring->scratch;
    free(ring);
    return scratch_remove(&scratch);
}

/* ---- running ---- */

static bool is_over(struct ring *ring) {
    for (unsigned i = 0; i < ring->nodes_count; i++) {
        if (ring->nodes[i].is_open && ring->nodes[i].campaign.state != CAMPAIGN_ENDED) {
            return false;
        }
    }
    return true;
}

static void run_until(struct ring *ring, size_t visits_count) {
    unsigned rounds = 0;
    while (!is_over(ring) && ring->log_count < visits_count) {
        assert_true(rounds++ < ROUNDS_MAX);
        uv_run(&ring->loop.uv, UV_RUN_ONCE);
    }
}

/* As if the home had been one for long. */
static void pass_new_time(void) {
    atomic_fetch_add(&turned_us, HOST_LENDER_NEW_US);
}

static unsigned count_visits(const struct ring *ring, const char *path, unsigned node) {
    unsigned count = 0;
    for (size_t i = 0; i < ring->log_count; i++) {
        bool is_his = node == NODES_COUNT || ring->log[i].node == node;
        count += is_his && strcmp(ring->log[i].path, path) == 0;
    }
    return count;
}

/* From the visit of that index on. */
static void check_pace(const struct ring *ring, size_t from, uint64_t delay_us) {
    assert_int_equal(ring->running_max, 1);
    for (size_t i = from + 1; i < ring->log_count; i++) {
        uint64_t gap_us = ring->log[i].from_us - ring->log[i - 1].to_us;
        if (ring->log[i].from_us < ring->log[i - 1].to_us || gap_us < delay_us) {
            fail_msg("%s of node %u came %ju us after %s of node %u", ring->log[i].path, ring->log[i].node,
                     (uintmax_t)gap_us, ring->log[i - 1].path, ring->log[i - 1].node);
        }
    }
}

static void check_all_fetched(const struct ring *ring) {
    for (unsigned node = 0; node < ring->nodes_count; node++) {
        for (unsigned i = 0; i < PAGES_COUNT; i++) {
            char path[16];
            snprintf(path, sizeof path, "/%u", i);
            if (ring->nodes[node].is_open && count_visits(ring, path, node) != 1) {
                fail_msg("node %u fetched %s %u times", node, path, count_visits(ring, path, node));
            }
        }
    }
    assert_int_equal(count_visits(ring, "/private", NODES_COUNT), 0);
}

/* ---- tests ---- */

static void three_nodes_are_as_polite_as_one(void **state) {
    struct ring *ring = *state;
    struct ring_view_leases stat;
    open_nodes(ring, NODES_COUNT, DELAY_US);
    pass_new_time();
    run_until(ring, LOG_MAX);
    check_pace(ring, 0, DELAY_US);
    check_all_fetched(ring);
    assert_string_equal(ring->log[0].path, "/robots.txt");
    assert_int_equal(ring->log[0].node, 0);
    assert_int_equal(count_visits(ring, "/robots.txt", NODES_COUNT), 1);
    host_leases_stat(ring->nodes[0].host_leases, &stat);
    assert_true(stat.lent_count > 0);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        host_leases_stat(ring->nodes[i].host_leases, &stat);
        assert_true(stat.borrowed_count > 0);
        assert_int_equal(stat.lost_count, 0);
    }
}

static void a_crawl_delay_holds_for_all(void **state) {
    struct ring *ring = *state;
    ring->robots = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.1\n";
    open_nodes(ring, 2, DELAY_US);
    pass_new_time();
    run_until(ring, 8);
    check_pace(ring, 1, 100000); /* robots.txt itself was asked for before it was known */
}

static void what_one_was_told_counts_for_the_next(void **state) {
    struct ring *ring = *state;
    ring->status = 503;
    open_nodes(ring, NODES_COUNT, DELAY_US);
    pass_new_time();
    run_until(ring, 3);
    /* robots.txt, then one page, which made it back off for 2 s: whoever asked next did wait. */
    assert_true(ring->log[2].from_us - ring->log[1].to_us >= pace_defaults.backoff_min_us);
    assert_int_equal(ring->running_max, 1);
}

static void a_new_home_lends_nothing_at_first(void **state) {
    struct ring *ring = *state;
    struct node *heir = &ring->nodes[1];
    unsigned rounds = 0;
    open_nodes(ring, NODES_COUNT, DELAY_US);
    pass_new_time();
    run_until(ring, 6);
    /* The home dies. Its leases run out, and who asked it loses patience. */
    close_node(&ring->nodes[0]);
    atomic_fetch_add(&turned_us, HOST_LENDER_STALE_US);
    uint64_t start_us = now_us();
    atomic_store(&ring->home, 1);
    while (heir->crawler->host_lender.borrowers_count < 2) {
        assert_true(rounds++ < ROUNDS_MAX);
        uv_run(&ring->loop.uv, UV_RUN_ONCE);
    }
    /* They ask the new one now, in vain at first. */
    size_t before = ring->log_count;
    uint64_t open_us = heir->crawler->host_lender.books->open_at_us;
    assert_true(open_us >= start_us + HOST_LENDER_NEW_US);
    atomic_fetch_add(&turned_us, open_us - now_us() - 1000000);
    while (now_us() < open_us) {
        assert_int_equal(ring->log_count, before);
        uv_run(&ring->loop.uv, UV_RUN_ONCE);
    }
    /* It fetches robots.txt itself, then all goes on. */
    run_until(ring, LOG_MAX);
    check_pace(ring, 0, DELAY_US);
    check_all_fetched(ring);
    assert_int_equal(count_visits(ring, "/robots.txt", 1), 1);
    assert_int_equal(count_visits(ring, "/robots.txt", 2), 0);
}

static void a_home_that_is_not_known_is_looked_up(void **state) {
    struct ring *ring = *state;
    atomic_store(&ring->home, NODES_COUNT);
    open_nodes(ring, 1, DELAY_US);
    unsigned rounds = 0;
    while (atomic_load(&ring->lookups_count) == 0) {
        assert_true(rounds++ < ROUNDS_MAX);
        uv_run(&ring->loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(ring->log_count, 0);
}

/* Only the home lends; a message of somebody else changes nothing, and garbage is refused. */
static void others_cannot_lend(void **state) {
    struct ring *ring = *state;
    struct buf text;
    struct buf answer;
    char host[32];
    /* The home, node 0, is away. */
    assert_true(address_parse(BYTES("127.0.0.2:1"), 0, &ring->nodes[0].peer.address));
    memset(ring->nodes[0].peer.key, 1, PEER_KEY_SIZE);
    open_node(ring, 1, DELAY_US);
    open_node(ring, 2, DELAY_US);
    snprintf(host, sizeof host, "127.0.0.1:%u", ring->port);
    struct host_leases_message message = {
        .kind = HOST_LEASES_LEND,
        .host = bytes_of_string(host),
        .lease = {.until_us = now_us() + 60 * 1000000,
                  .requests_max = PERMIT_REQUESTS_MAX,
                  .robots = {.policy = ROBOTS_ALLOW_ALL}},
    };
    buf_init(&text, HOST_LEASES_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    for (unsigned i = 0; i < 200; i++) {
        uv_run(&ring->loop.uv, UV_RUN_NOWAIT);
    }
    assert_int_equal(host_leases_write(&message, now_us(), turned_wall_us(NULL), &text), ERR_OK);
    struct peer_rpc *from = ring->nodes[2].peer_rpc;
    const struct peer *to = &ring->nodes[1].peer;
    assert_int_equal(peer_rpc_ask(from, to, PEER_RPC_LEND, buf_bytes(&text), 10000, &answer, NULL), ERR_OK);
    assert_int_equal(peer_rpc_ask(from, to, PEER_RPC_LEND, BYTES("garbage"), 10000, &answer, NULL),
                     ERR_INVALID);
    for (unsigned i = 0; i < 200; i++) {
        uv_run(&ring->loop.uv, UV_RUN_NOWAIT); /* it has come already */
    }
    struct ring_view_leases stat;
    host_leases_stat(ring->nodes[1].host_leases, &stat);
    assert_int_equal(stat.borrowed_count, 0);
    assert_int_equal(ring->log_count, 0);
    buf_done(&text);
    buf_done(&answer);
}

static void a_whole_robots_txt_fits(void **state) {
    (void)state;
    static uint8_t text[ROBOTS_TEXT_SIZE_MAX];
    static char host[PERMIT_HOST_SIZE_MAX];
    struct host_leases_message read;
    struct buf out;
    memset(host, 'a', sizeof host);
    struct host_leases_message message = {
        .kind = HOST_LEASES_LEND,
        .host = bytes_of(host, sizeof host),
        .lease = {.requests_max = 1, .robots = {.has_text = true, .text = bytes_of(text, sizeof text)}},
    };
    buf_init(&out, HOST_LEASES_SIZE_MAX);
    assert_int_equal(host_leases_write(&message, 0, 0, &out), ERR_OK);
    assert_true(out.size <= PEER_RPC_QUESTION_SIZE_MAX);
    assert_int_equal(host_leases_read(buf_bytes(&out), 0, 0, &read, NULL), ERR_OK);
    assert_int_equal(read.lease.robots.text.size, ROBOTS_TEXT_SIZE_MAX);
    for (size_t i = 0; i < 400; i++) {
        assert_int_not_equal(host_leases_read(bytes_of(out.data, i), 0, 0, &read, NULL), ERR_OK);
    }
    buf_done(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(three_nodes_are_as_polite_as_one),      TEST(a_crawl_delay_holds_for_all),
        TEST(what_one_was_told_counts_for_the_next), TEST(a_new_home_lends_nothing_at_first),
        TEST(a_home_that_is_not_known_is_looked_up), TEST(others_cannot_lend),
        cmocka_unit_test(a_whole_robots_txt_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
