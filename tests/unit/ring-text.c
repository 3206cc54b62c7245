#include "replay/admin/ring_text.h"

#include "unit.h"

static void assert_says(enum ring_text which, const struct ring_view *ring, const char *expected) {
    struct buf out;
    buf_init(&out, 4096);
    ring_text_put(which, ring, &out);
    buf_put_byte(&out, '\0');
    assert_int_equal(out.err, ERR_OK);
    assert_string_equal((const char *)out.data, expected);
    buf_done(&out);
}

static void says_that_it_waits(void **state) {
    (void)state;
    struct ring_view ring = {0};
    assert_says(RING_TEXT_COPIES, &ring, "not yet: this node waits for the ring");
    assert_says(RING_TEXT_REPAIR, &ring, "");
    assert_says(RING_TEXT_CHECKS, &ring, "");
    assert_says(RING_TEXT_LINKS, &ring, "");
    assert_says(RING_TEXT_HOSTS, &ring, "");
    assert_says(RING_TEXT_BYTES, &ring, "0 bytes sent, 0 bytes received over 0 open streams");
}

static const struct ring_view_member members[2];
static const struct ring_view_arc whole = {.level = RING_VIEW_WHOLE, .members = members, .members_count = 2};
static const struct ring_view_arc away = {.level = RING_VIEW_AWAY, .members = members, .members_count = 2};
static const struct ring_view_arc low = {.level = RING_VIEW_LOW,
                                         .missing_count = 12,
                                         .is_repairing = true,
                                         .repairing_s = 5,
                                         .left_s = 20,
                                         .members = members,
                                         .members_count = 2};
static const struct ring_view_arc lonely = {.level = RING_VIEW_LOW, .members = members, .members_count = 1};

static struct ring_view ring_of(const struct ring_view_arc *arcs, size_t count) {
    return (struct ring_view){
        .is_begun = true,
        .replicas = 3,
        .share = 0.375,
        .copies = {.stored = {.keys_count = 1234, .is_fed = true}, .arcs = arcs, .arcs_count = count}};
}

static void counts_arcs_by_level(void **state) {
    (void)state;
    struct ring_view good = ring_of((struct ring_view_arc[]){whole, whole}, 2);
    assert_says(
        RING_TEXT_COPIES, &good,
        "1,234 captures here, 3 copies of each wanted; looks after 37.5 % of the ring; arcs: 2 whole");
    struct ring_view mixed = ring_of((struct ring_view_arc[]){low, whole, away}, 3);
    assert_says(
        RING_TEXT_COPIES, &mixed,
        "1,234 captures here, 3 copies of each wanted; looks after 37.5 % of the ring; arcs: 1 whole, 1 "
        "with a node away, 1 with too few copies");
}

static void says_what_is_not_known_to_have_all_copies(void **state) {
    (void)state;
    struct ring_view_arc arcs[] = {whole, whole};
    struct ring_view ring = ring_of(arcs, 2);
    arcs[0].keys_count = arcs[0].enough_count = 200;
    arcs[1] = (struct ring_view_arc){.level = RING_VIEW_FRESH, .keys_count = 100, .members_count = 2};
    arcs[1].enough_count = 60;
    arcs[0].at_least = (const uint64_t[]){200, 200, 200};
    arcs[1].at_least = (const uint64_t[]){100, 90, 60};
    arcs[0].at_least_count = arcs[1].at_least_count = 3;
    ring.copies.stored.unconfirmed_count = 1;
    assert_says(
        RING_TEXT_COPIES, &ring,
        "1,234 captures here, 3 copies of each wanted; looks after 37.5 % of the ring; arcs: 1 whole, 1 "
        "whole "
        "but for new captures, 260 or more of 300 captures in them known to have all copies (2 copies: 290, "
        "1 "
        "copy: 300); 1 capture here that other nodes shall keep and have not confirmed yet");
    ring.copies.stored.unconfirmed_count = 0;
    ring.copies.stored.is_checking = true;
    arcs[0].enough_count = arcs[1].enough_count = 0;
    arcs[0].at_least_count = 0;
    arcs[1].at_least_count = 1;
    assert_says(
        RING_TEXT_COPIES, &ring,
        "1,234 captures here, 3 copies of each wanted; looks after 37.5 % of the ring; arcs: 1 whole, 1 "
        "whole "
        "but for new captures, 0 of 300 captures in them known to have all copies (2 copies: 0, 1 copy: "
        "100); whether "
        "other nodes have what they shall keep of the captures here is being checked");
}

static void says_that_nodes_are_too_few(void **state) {
    (void)state;
    struct ring_view ring = ring_of(&lonely, 1);
    assert_says(
        RING_TEXT_COPIES, &ring,
        "1,234 captures here, 3 copies of each wanted, more than there are nodes; looks after 37.5 % of "
        "the ring; arcs: 1 with too few copies");
}

static void says_how_the_round_of_a_node_that_keeps_everything_went(void **state) {
    (void)state;
    struct ring_view ring = ring_of(NULL, 0);
    ring.copies.keeps_everything = true;
    assert_says(
        RING_TEXT_COPIES, &ring,
        "1,234 captures here, 3 copies of each wanted; looks after 37.5 % of the ring; keeps everything: "
        "the first round over the ring is not over yet");
    ring.copies.rounds_count = 1;
    ring.copies.stops_count = 4;
    ring.copies.missing_count = 1;
    ring.copies.silent_count = 2;
    assert_says(
        RING_TEXT_COPIES, &ring,
        "1,234 captures here, 3 copies of each wanted; looks after 37.5 % of the ring; keeps everything: "
        "4 arcs of other nodes compared, 1 capture missing here, no node answered for 2");
}

static void says_what_is_repaired_and_for_how_long(void **state) {
    (void)state;
    struct ring_view good = ring_of((struct ring_view_arc[]){whole, away}, 2);
    assert_says(RING_TEXT_REPAIR, &good, "");
    good.copies.stored.wanted_count = 1;
    assert_says(RING_TEXT_REPAIR, &good, "1 capture on the way here");
    struct ring_view bad = ring_of((struct ring_view_arc[]){low, low, whole}, 3);
    assert_says(RING_TEXT_REPAIR, &bad, "24 copies missing in 2 arcs when last compared, about 20 s left");
    bad.copies.stored.wanted_count = 3;
    bad.copies.stored.unconfirmed_own_count = 7;
    assert_says(RING_TEXT_REPAIR, &bad,
                "24 copies missing in 2 arcs when last compared; 3 captures on the way here; 7 copies at "
                "other nodes not "
                "confirmed yet");
    bad.copies.left_s = 90; /* the slower of the two */
    assert_says(RING_TEXT_REPAIR, &bad,
                "24 copies missing in 2 arcs when last compared; 3 captures on the way here; 7 copies at "
                "other nodes not "
                "confirmed yet, about 1:30 left");
}

/* An arc can lack something that nobody repairs now, and the other way round. */
static void says_of_no_arc_that_it_misses_what_it_may_have(void **state) {
    (void)state;
    struct ring_view_arc arcs[] = {whole, whole};
    struct ring_view ring = ring_of(arcs, 2);
    uint64_t left_s;
    arcs[0].is_doubted = true;
    assert_says(RING_TEXT_REPAIR, &ring,
                "1 arc of which a capture may be missing here, until compared again");
    assert_true(ring_text_is_missing(&ring, &left_s));
    arcs[0].missing_count = 1;
    assert_says(RING_TEXT_REPAIR, &ring, "1 copy missing in 1 arc when last compared");
    arcs[1].is_repairing = true;
    assert_says(
        RING_TEXT_REPAIR, &ring,
        "1 copy missing in 1 arc when last compared; 1 arc not yet compared with all that keep copies");
}

static void says_what_a_link_costs(void **state) {
    (void)state;
    struct ring_view ring = {.is_begun = true};
    assert_says(RING_TEXT_LINKS, &ring, "none sent; none accepted");
    ring.links_sent_count = 1000;
    ring.links_sent_size = 23400;
    ring.links_accepted_count = 7;
    assert_says(RING_TEXT_LINKS, &ring, "1,000 sent, 23.4 bytes each; 7 known before or not wanted");
    ring.links_new_count = 3;
    assert_says(RING_TEXT_LINKS, &ring,
                "1,000 sent, 23.4 bytes each; 3 new ones accepted, 4 known before or not wanted");
    ring.links_new_count = 7;
    assert_says(RING_TEXT_LINKS, &ring, "1,000 sent, 23.4 bytes each; 7 new ones accepted");
}

static void assert_node(const struct ring_view_node *node, const char *expected) {
    struct buf out;
    buf_init(&out, 4096);
    ring_text_put_node(node, &out);
    assert_string_equal(buf_string(&out), expected);
    buf_done(&out);
}

static void says_of_a_node_what_it_says_itself_and_nothing_else(void **state) {
    (void)state;
    struct ring_view_node node = {.is_here = true};
    assert_node(&node, "says nothing");
    node.has_feature = true;
    assert_node(&node, "not heard yet");
    node.has_report = true;
    node.heard_s = 3;
    node.captures_count = 40;
    node.arc_captures_count = 18;
    node.arcs_counts[RING_VIEW_WHOLE] = 1;
    node.arcs_counts[RING_VIEW_LOW] = 2;
    node.used_size = 42400;
    node.free_size = 69200000000;
    node.load_permille = 435;
    node.uptime_s = 24;
    assert_node(&node,
                "here, 3 s ago: 40 captures, 18 of them looked after (arcs: 1 whole, 2 with too few copies), "
                "42.4 KB of disk used, 69.2 GB free, load 43 %, up 24 s");
    node.is_here = false;
    node.quota_size = 500000;
    node.has_clock = true;
    node.clock_offset_ms = -1500;
    node.captures_count = 1;
    node.arc_captures_count = node.arcs_counts[RING_VIEW_WHOLE] = node.arcs_counts[RING_VIEW_LOW] = 0;
    assert_node(&node,
                "away, last word 3 s ago: 1 capture, 0 of them looked after, 42.4 KB of disk used of 500 KB, "
                "69.2 GB free, load 43 %, up 24 s, clock 1.5 s behind");
}

static void says_how_far_a_job_is_and_what_is_not_known(void **state) {
    static const struct ring_view_job job = {
        .nodes_count = 3, .running_count = 2, .stored_count = 222, .waiting_count = 3, .failed_count = 1};
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    ring_text_put_job(&job, 0, &out);
    assert_string_equal(buf_string(&out),
                        "222 stored, 3 waiting, 1 failed, 0 bytes received on 3 nodes, running on 2");
    buf_clear(&out);
    ring_text_put_job(&job, 1, &out);
    assert_string_equal(buf_string(&out),
                        "222 stored, 3 waiting, 1 failed, 0 bytes received on 3 nodes, running on "
                        "2; counts of 1 node are missing");
    buf_done(&out);
}

static void leaves_out_decrees_that_were_withdrawn(void **state) {
    (void)state;
    const struct ring_view_decree withdrawn = {.is_job = true, .is_withdrawn = true};
    const struct ring_view_decree valid[] = {{.is_job = true, .counts = true}, {.is_job = false}};
    struct ring_view ring = {.decrees = &withdrawn, .decrees_count = 1};
    assert_says(RING_TEXT_DECREES, &ring, "none");
    ring = (struct ring_view){.decrees = valid, .decrees_count = 2};
    assert_says(RING_TEXT_DECREES, &ring, "1 job, 1 takedown rule; of them 1 without effect");
    const struct ring_view_decree later = {.is_unknown = true, .counts = true};
    ring = (struct ring_view){.decrees = &later, .decrees_count = 1};
    assert_says(RING_TEXT_DECREES, &ring,
                "0 jobs, 0 takedown rules, 1 of kinds that this version does not know");
}

static void says_what_has_copies_at_which_site(void **state) {
    (void)state;
    const struct ring_view_site sites[] = {{.name = "hall", .nodes_count = 2, .captures_count = 40},
                                           {.name = "10.7.0.0/16", .nodes_count = 1, .captures_count = 38}};
    struct ring_view ring = {.sites = sites, .sites_why_not = ""};
    assert_says(RING_TEXT_SITES, &ring, "");
    ring.sites_count = 1;
    ring.sites_captures_count = ring.sites_alone_count = 40;
    assert_says(RING_TEXT_SITES, &ring,
                "1 site: hall (2 nodes) has copies of 40 of the 40 captures that this node looks after");
    ring.sites_count = 2;
    ring.sites_are_used = true;
    ring.sites_alone_count = 2;
    assert_says(
        RING_TEXT_SITES, &ring,
        "2 sites: hall (2 nodes) has copies of 40, 10.7.0.0/16 (1 node) of 38 of the 40 captures that "
        "this node looks after; 2 not known to have copies at two sites");
    ring.sites_are_used = false;
    ring.sites_alone_count = 0;
    ring.sites_why_not = "10.7.0.1:7070 does not know them";
    assert_says(
        RING_TEXT_SITES, &ring,
        "2 sites: hall (2 nodes) has copies of 40, 10.7.0.0/16 (1 node) of 38 of the 40 captures that "
        "this node looks after; holders are not chosen by sites: 10.7.0.1:7070 does not know them");
}

static void names_the_worst_of_a_member(void **state) {
    (void)state;
    static const struct {
        struct ring_view_member member;
        const char *expected;
    } rows[] = {{{.is_away = true, .is_complete = true, .is_compared = true}, "away"},
                {{.is_away = true, .is_false = true}, "false"},
                {{.is_complete = true, .is_compared = true}, "complete"},
                {{.is_compared = true}, "behind"},
                {{0}, "not yet compared"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(ring_text_member(&rows[i].member), rows[i].expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_that_it_waits),
        cmocka_unit_test(counts_arcs_by_level),
        cmocka_unit_test(says_what_is_not_known_to_have_all_copies),
        cmocka_unit_test(says_that_nodes_are_too_few),
        cmocka_unit_test(says_how_the_round_of_a_node_that_keeps_everything_went),
        cmocka_unit_test(says_what_is_repaired_and_for_how_long),
        cmocka_unit_test(says_of_no_arc_that_it_misses_what_it_may_have),
        cmocka_unit_test(says_what_a_link_costs),
        cmocka_unit_test(says_of_a_node_what_it_says_itself_and_nothing_else),
        cmocka_unit_test(says_how_far_a_job_is_and_what_is_not_known),
        cmocka_unit_test(leaves_out_decrees_that_were_withdrawn),
        cmocka_unit_test(says_what_has_copies_at_which_site),
        cmocka_unit_test(names_the_worst_of_a_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
