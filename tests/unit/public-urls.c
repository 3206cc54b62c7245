/* entrances: a node is believed of itself what it has signed, and nothing else. */
#include "node/reading/public_urls.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "node/rpc/peer_rpc_state.h"
#include "unit.h"

enum { ASKER, HONEST, SILENT, FORGER, PATHFUL, NODES_COUNT };

struct node {
    unsigned index;
    struct identity identity;
    struct peer peer;
    struct peer_rpc *peer_rpc;
    struct public_urls *public_urls;
    atomic_uint blames_count;
};

static void on_blame(void *context, const struct peer *peer, const char *sentence) {
    struct node *node = context;
    (void)peer;
    (void)sentence;
    atomic_fetch_add(&node->blames_count, 1);
}

/* Something that is signed, but by another key or not an origin. */
static enum err answer_falsely(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    struct identity other;
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    bool is_forger = node->index == FORGER;
    struct bytes text = is_forger ? BYTES("https://bank.example") : BYTES("https://archive.example/a?b=");
    (void)from;
    (void)question;
    (void)detail;
    assert_int_equal(identity_random(&other), ERR_OK);
    identity_sign(is_forger ? &other : &node->identity, "entrance", text, signature);
    identity_done(&other);
    buf_put(answer, bytes_of(signature, sizeof signature));
    return buf_put(answer, text);
}

static int set_up(void **state) {
    struct node *nodes = calloc(NODES_COUNT, sizeof *nodes);
    for (unsigned i = 0; nodes != NULL && i < NODES_COUNT; i++) {
        struct node *node = &nodes[i];
        node->index = i;
        assert_int_equal(identity_random(&node->identity), ERR_OK);
        struct peer_rpc_config peer_rpc = {.identity = &node->identity, .blame = on_blame, .context = node};
        assert_true(address_parse(BYTES("127.0.0.1"), 0, &peer_rpc.address));
        assert_int_equal(peer_rpc_new(&peer_rpc, &node->peer_rpc, NULL), ERR_OK);
        node->peer.address = stream_server_address(node->peer_rpc->server);
        memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
        struct public_urls_config config = {
            .peer_rpc = node->peer_rpc,
            .identity = &node->identity,
            .own = i == HONEST ? "https://archive.example:8443" : NULL,
            .timeout_ms = 60000,
            .clock = &clock_system,
            .blame = on_blame,
            .context = node,
        };
        node->public_urls = public_urls_new(&config);
        assert_non_null(node->public_urls);
        if (i >= FORGER) {
            peer_rpc_serve(node->peer_rpc, PEER_RPC_ENTRANCE, answer_falsely, node);
        }
        assert_int_equal(peer_rpc_start(node->peer_rpc, NULL), ERR_OK);
    }
    *state = nodes;
    return nodes == NULL;
}

static int tear_down(void **state) {
    struct node *nodes = *state;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        peer_rpc_stop(nodes[i].peer_rpc);
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        public_urls_free(nodes[i].public_urls);
        peer_rpc_free(nodes[i].peer_rpc);
        identity_done(&nodes[i].identity);
    }
    free(nodes);
    return 0;
}

static void what_a_node_signed_of_itself_is_believed(void **state) {
    struct node *nodes = *state;
    char text[PUBLIC_URLS_TEXT_SIZE];
    struct ring_view_rpc stat;
    assert_true(public_urls_find(nodes[ASKER].public_urls, &nodes[HONEST].peer, text));
    assert_string_equal(text, "https://archive.example:8443");
    assert_true(public_urls_find(nodes[ASKER].public_urls, &nodes[HONEST].peer, text));
    assert_string_equal(text, "https://archive.example:8443");
    assert_false(public_urls_find(nodes[ASKER].public_urls, &nodes[SILENT].peer, text));
    assert_false(public_urls_find(nodes[ASKER].public_urls, &nodes[SILENT].peer, text));
    peer_rpc_stat(nodes[ASKER].peer_rpc, &stat);
    assert_int_equal(stat.questions_count, 2); /* each once */
    assert_int_equal(atomic_load(&nodes[ASKER].blames_count), 0);
}

static void what_another_signed_or_is_no_origin_is_not(void **state) {
    struct node *nodes = *state;
    char text[PUBLIC_URLS_TEXT_SIZE];
    assert_false(public_urls_find(nodes[ASKER].public_urls, &nodes[FORGER].peer, text));
    assert_int_equal(atomic_load(&nodes[ASKER].blames_count), 1);
    assert_false(public_urls_find(nodes[ASKER].public_urls, &nodes[PATHFUL].peer, text));
    assert_int_equal(atomic_load(&nodes[ASKER].blames_count), 2);
    struct peer nobody = {.address = nodes[HONEST].peer.address}; /* whoever is at that address */
    assert_false(public_urls_find(nodes[ASKER].public_urls, &nobody, text));
}

static void an_origin_is_written_in_one_way(void **state) {
    static const char *const good[] = {"http://example.org", "https://example.org", "http://127.0.0.1:8080",
                                       "http://[::1]:8080"};
    static const char *const bad[] = {"",
                                      "example.org",
                                      "//example.org",
                                      "https://example.org/",
                                      "https://example.org/a",
                                      "https://example.org?a",
                                      "https://a:b@example.org",
                                      "https://EXAMPLE.org",
                                      "https://example.org:443",
                                      "https://example.org\r\nSet-Cookie: a=b",
                                      "https://exa\tmple.org",
                                      "javascript:alert(1)",
                                      "ftp://example.org",
                                      "null"};
    char longest[2 * PUBLIC_URLS_TEXT_SIZE] = "https://";
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(public_urls_is_origin(bytes_of_string(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(public_urls_is_origin(bytes_of_string(bad[i])));
    }
    memset(longest + 8, 'a', PUBLIC_URLS_TEXT_SIZE);
    assert_false(public_urls_is_origin(bytes_of_string(longest)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_node_signed_of_itself_is_believed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_another_signed_or_is_no_origin_is_not, set_up, tear_down),
        cmocka_unit_test(an_origin_is_written_in_one_way),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
