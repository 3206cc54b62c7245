/* keeping: what the nodes of a ring do to have copies on all holders. */
#include "copies-world.h"

static void what_one_stores_the_others_get(void **state) {
    struct world *world = *state;
    start_all(world);
    for (unsigned n = 0; n < 60; n += 3) {
        put(&world->nodes[n % 2], n, n / 3);
    }
    wait_for(all_have(world, 20)); /* a body that is on its way is not yet known, and would travel again */
    for (unsigned n = 0; n < 60; n++) {
        if (n % 3 != 0) {
            put(&world->nodes[n % 2], n, n / 3);
        }
    }
    wait_for(all_have(world, 60));
    for (unsigned n = 0; n < 60; n += 7) {
        for (unsigned i = 0; i < world->nodes_count; i++) {
            expect_body(&world->nodes[i], n, n / 3);
        }
    }
    struct ring_view_stored stat = stat_of(&world->nodes[2]);
    assert_int_equal(stat.fetched_count, 60);
    assert_int_equal(stat.fetched_about_count, 40); /* a duplicate's body does not travel */
    assert_int_equal(stat.fetched_size, 20 * BODY_SIZE);
    assert_int_equal(stat.refused_count, 0);
    for (unsigned i = 0; i < world->nodes_count; i++) {
        wait_for(all_are_whole(&world->nodes[i]));
        for (unsigned j = 0; j < world->nodes_count; j++) {
            wait_for(copies_is_compared(world->nodes[i].copies, place_of(j)));
        }
        assert_int_equal(atomic_load(&world->nodes[i].blames_count), 0);
        uint64_t estimate = 0;
        assert_true(copies_estimate(world->nodes[i].copies, &estimate));
        assert_true(estimate >= 60);
    }
}

/* While captures are still on their way to a node, what it has says nothing of how much the ring has. */
static void what_was_not_compared_is_no_measure(void **state) {
    struct world *world = *state;
    struct node *late = &world->nodes[2];
    uint64_t estimate = 0;
    start_all(world);
    put(late, 0, 0);
    wait_for(all_have(world, 1));
    stop(late);
    for (unsigned n = 1; n < 60; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(stat_of(&world->nodes[1]).keys_count == 60);
    start(late);
    while (stat_of(late).keys_count < 60) { /* at every moment */
        assert_false(copies_estimate(late->copies, &estimate) && estimate < 60);
        pass_turn();
    }
    wait_for(copies_estimate(late->copies, &estimate));
    assert_true(estimate >= 60);
}

/* A giver that is busy is asked again until it has given everything; no comparison is needed for that. */
static void a_busy_giver_gives_later(void **state) {
    struct world *world = *state;
    world->nodes_count = world->copies = 2;
    world->compare_us = 3600 * (uint64_t)SECOND_US;
    start_all(world);
    wait_for(copies_is_compared(world->nodes[1].copies, place_of(0)));
    world->nodes[0].peer_rpc->reads.rate = 20; /* nobody has read anything yet */
    for (unsigned n = 0; n < 30; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 30));
    struct ring_view_rpc stat;
    peer_rpc_stat(world->nodes[0].peer_rpc, &stat);
    assert_true(stat.shed_count > 0);
    wait_for(stat_of(&world->nodes[1]).fetched_count == 30); /* counted a moment after it is there */
    assert_int_equal(atomic_load(&world->nodes[1].blames_count), 0);
}

/* Two want all copies of one. */
static void over_slow_lines_copies_are_given_in_turns(void **state) {
    struct world *world = *state;
    struct peer stranger = {.address = address_ipv4(192, 0, 2, 1, 7070), .key = {77}};
    world->has_slow_lines = true;
    start(&world->nodes[0]);
    for (unsigned n = 0; n < 50; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(stat_of(&world->nodes[0]).keys_count == 50);
    start(&world->nodes[1]);
    start(&world->nodes[2]);
    wait_for(all_have(world, 50));
    expect_body(&world->nodes[1], 49, 49);
    expect_body(&world->nodes[2], 7, 7);
    wait_for(copies_may_copy(world->nodes[0].copies, &stranger)); /* nobody else wants any more */
}

static void who_was_away_gets_only_the_difference(void **state) {
    struct world *world = *state;
    struct node *late = &world->nodes[2];
    struct ring_view_rpc traffic;
    start_all(world);
    for (unsigned n = 0; n < 80; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 80));
    stop(late);
    for (unsigned n = 80; n < 84; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(stat_of(&world->nodes[1]).keys_count == 84);
    start(late);
    wait_for(all_have(world, 84));
    assert_int_equal(stat_of(late).fetched_count, 4);
    peer_rpc_stat(late->peer_rpc, &traffic);
    assert_true(traffic.received_size < 10 * BODY_SIZE); /* of 84 */
}

static void set_nodes_count(struct world *world, size_t count) {
    pthread_mutex_lock(&world->lock);
    world->nodes_count = count;
    pthread_mutex_unlock(&world->lock);
}

/* Of one copy alone no primary comes to look for it at the others: it is handed on, long before it is
 * surplus. */
static void what_was_ours_goes_to_those_who_came(void **state) {
    struct world *world = *state;
    world->copies = 1;
    set_nodes_count(world, 1);
    start(&world->nodes[0]);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 40));
    wait_for(!stat_of(&world->nodes[0]).is_checking); /* else it offers them before it hands them on */
    set_nodes_count(world, 3);
    start(&world->nodes[1]);
    start(&world->nodes[2]);
    wait_for(are_kept(world, 40, NODES_MAX));
    assert_true(stat_of(&world->nodes[0]).handed_on_count > 0);
    assert_int_equal(stat_of(&world->nodes[0]).keys_count, 40); /* nothing is given up yet */
}

static void a_lost_disk_is_filled_again(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    start_all(world);
    for (unsigned n = 0; n < 50; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 50));
    stop(node);
    assert_int_equal(nftw(node->directory, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    mkdir(node->directory, 0777);
    start(node);
    wait_for(all_have(world, 50));
    expect_body(node, 49, 49);
}

static void what_is_false_is_refused_and_blamed(void **state) {
    struct world *world = *state;
    world->nodes[0].vice = GIVES_FALSE;
    start_all(world);
    put(&world->nodes[0], 1, 1);
    put(&world->nodes[1], 2, 2);
    wait_for(stat_of(&world->nodes[1]).refused_count > 0 || stat_of(&world->nodes[2]).refused_count > 0);
    wait_for(atomic_load(&world->nodes[1].blames_count) + atomic_load(&world->nodes[2].blames_count) > 0);
    struct ringkey sound = key_of(2, 2);
    struct ringkey false_one = key_of(1, 1);
    wait_for(has(&world->nodes[2], &sound));
    assert_false(has(&world->nodes[1], &false_one));
    assert_false(has(&world->nodes[2], &false_one));
}

static void a_forged_signature_is_refused_and_blamed(void **state) {
    struct world *world = *state;
    char url[64];
    uint8_t memory[BODY_SIZE];
    char text[ATTEST_TEXT_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE] = {1};
    struct stored stored;
    struct document document = document_of(1, 1, url, memory);
    start_all(world);
    document.request = BYTES("GET / HTTP/1.1\r\n\r\n"); /* without one, its giver would notice */
    document.signature = bytes_of_string(attest_format(world->nodes[1].identity.key, signature, text));
    assert_int_equal(
        instance_put(world->nodes[0].session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL),
        ERR_OK);
    wait_for(stat_of(&world->nodes[1]).refused_count + stat_of(&world->nodes[2]).refused_count > 0);
    wait_for(atomic_load(&world->nodes[1].blames_count) + atomic_load(&world->nodes[2].blames_count) > 0);
    struct ringkey key = key_of(1, 1);
    assert_false(has(&world->nodes[1], &key));
    assert_false(has(&world->nodes[2], &key));
}

static void who_claims_and_does_not_hold_is_found_out(void **state) {
    struct world *world = *state;
    world->nodes[2].vice = PROVES_FALSE;
    world->challenge_us = SECOND_US / 10;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 40));
    wait_for(stat_of(&world->nodes[0]).caught_count > 0 || stat_of(&world->nodes[1]).caught_count > 0);
    assert_true(atomic_load(&world->nodes[0].blames_count) + atomic_load(&world->nodes[1].blames_count) > 0);
    wait_for(stat_of(&world->nodes[2]).challenged_count > 0);
    assert_int_equal(stat_of(&world->nodes[2]).caught_count, 0); /* the others are honest */
}

/* Of the arc of this one, as many copies as there should be, not counting what it has or says that it has. */
static bool are_kept_without(struct world *world, unsigned count, const struct node *failing) {
    for (unsigned n = 0; n < count; n++) {
        struct ringkey key = key_of(n, n);
        struct holders_arc arc;
        size_t copies = 0;
        for (unsigned i = 0; i < world->nodes_count; i++) {
            copies += &world->nodes[i] != failing && has(&world->nodes[i], &key);
        }
        ask_known(&world->nodes[0], ring_id_read(key.bytes), &arc);
        if (peer_equal(&arc.peers[0], &failing->peer) && copies < world->copies) {
            return false;
        }
    }
    return true;
}

/* At the one behind it, which is a holder of all that it should see to. */
static void put_behind(struct world *world, unsigned count, unsigned failing) {
    for (unsigned n = 0; n < count; n++) {
        put(&world->nodes[failing + 1], n, n);
    }
}

/* Nobody but the primary sees to the copies of its arc: unless it fails. */
static void what_a_lying_primary_should_see_to_is_seen_to(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->challenge_us = SECOND_US / 10;
    world->nodes[2].vice = PROVES_FALSE;
    start_all(world);
    put_behind(world, 40, 2);
    wait_for(are_kept_without(world, 40, &world->nodes[2]));
}

static void what_a_full_primary_should_see_to_is_seen_to(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->challenge_us = SECOND_US / 10;
    world->nodes[2].is_full = true;
    start_all(world);
    put_behind(world, 40, 2);
    wait_for(are_kept_without(world, 40, &world->nodes[2]));
}

static void what_a_silent_primary_should_see_to_is_seen_to(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US;
    world->nodes[2].vice = NEVER_COMPARES;
    start_all(world);
    put_behind(world, 40, 2);
    wait_for(are_kept_without(world, 40, &world->nodes[2]));
}

static void the_next_takes_the_part_of_one_that_is_full(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->nodes[2].is_full = true;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[1], n, n);
    }
    /* The arc of the full node itself has a primary that takes nothing: the others' arcs have two copies. */
    for (unsigned n = 0; n < 40; n++) {
        struct ringkey key = key_of(n, n);
        struct holders_arc arc;
        ask_known(&world->nodes[0], ring_id_read(key.bytes), &arc);
        if (!peer_equal(&arc.peers[0], &world->nodes[2].peer)) {
            wait_for(is_kept(world, &key, 2));
        }
    }
    assert_int_equal(stat_of(&world->nodes[2]).fetched_count, 0);
    assert_true(stat_of(&world->nodes[2]).is_full);
}

/* A newcomer that does not know yet what its ring takes: nothing is refused meanwhile, and all of it comes
 * later. */
static void what_may_not_be_taken_yet_stays_wanted(void **state) {
    struct world *world = *state;
    world->nodes_count = 2;
    world->copies = 2;
    atomic_store(&world->nodes[1].knows_nothing, true);
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[0], n, n);
    }
    for (unsigned n = 0; n < 40; n++) {
        struct ringkey key = key_of(n, n);
        wait_for(copies_expects(world->nodes[1].copies, ring_id_read(key.bytes)));
        assert_false(is_kept(world, &key, 2));
    }
    assert_int_equal(stat_of(&world->nodes[1]).fetches_count, 0);
    atomic_store(&world->nodes[1].knows_nothing, false);
    copies_wake(world->nodes[1].copies);
    for (unsigned n = 0; n < 40; n++) {
        struct ringkey key = key_of(n, n);
        wait_for(is_kept(world, &key, 2));
        wait_for(!copies_expects(world->nodes[1].copies, ring_id_read(key.bytes)));
    }
}

static void surplus_is_given_up_when_all_holders_have_it(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[n % 4], n, n);
    }
    wait_for(are_kept(world, 40, NODES_MAX));
    wait_for(have_copies(world, 40, 2));
    assert_true(are_kept(world, 40, NODES_MAX)); /* and those are the holders */
    for (unsigned i = 0; i < 4; i++) {
        wait_for(stat_of(&world->nodes[i]).released_count > 0);
    }
}

static void surplus_stays_where_its_owner_wants_it(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US / 2;
    world->keeps_surplus = true;
    start_all(world);
    for (unsigned n = 0; n < 20; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(are_kept(world, 20, NODES_MAX));
    uint64_t compared_count = stat_of(&world->nodes[0]).compared_count;
    wait_for(stat_of(&world->nodes[0]).compared_count > compared_count + 6); /* more than a grace time */
    assert_int_equal(stat_of(&world->nodes[0]).keys_count, 20);
}

static void surplus_stays_until_it_is_confirmed(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US;
    for (unsigned i = 0; i < 4; i++) {
        world->nodes[i].vice = CONFIRMS_NOTHING;
    }
    start_all(world);
    for (unsigned n = 0; n < 20; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(are_kept(world, 20, NODES_MAX));
    wait_for(atomic_load(&world->nodes[1].confirms_count) > 1 &&
             atomic_load(&world->nodes[2].confirms_count) > 1);
    assert_int_equal(stat_of(&world->nodes[0]).released_count, 0);
    assert_int_equal(stat_of(&world->nodes[0]).keys_count, 20);
}

/* It says that it has it, and cannot prove it: all of this node's surplus has it for a holder. */
static void surplus_stays_while_a_holder_is_not_believed(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US;
    world->nodes[2].vice = PROVES_FALSE;
    start_all(world);
    for (unsigned n = 0; n < 20; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(are_kept(world, 20, NODES_MAX));
    wait_for(stat_of(&world->nodes[0]).caught_count > 1);
    assert_int_equal(stat_of(&world->nodes[0]).released_count, 0);
    assert_int_equal(stat_of(&world->nodes[0]).keys_count, 20);
}

/* Its part falls to others when the grace time is over. */
static void copies_of_a_dead_node_are_made_again(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->grace_us = SECOND_US;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[n % 4], n, n);
    }
    wait_for(are_kept(world, 40, NODES_MAX));
    stop(&world->nodes[1]);
    wait_for(are_kept(world, 40, NODES_MAX));
    stop(&world->nodes[2]);
    for (unsigned n = 0; n < 40; n++) {
        expect_body(&world->nodes[0], n, n);
        expect_body(&world->nodes[3], n, n);
    }
}

/* Bytes of the body of a record on the disk become others. */
static void damage(struct node *node, unsigned n, unsigned body) {
    struct ringkey key = key_of(n, body);
    struct copies_reader reader = {0};
    struct capture capture;
    char path[2 * SCRATCH_PATH_SIZE];
    uint8_t noise[64];
    assert_int_equal(copies_reader_init(&reader, node->instance), ERR_OK);
    assert_int_equal(copies_find_capture(node->copies, &reader, &key, &capture, NULL), ERR_OK);
    copies_reader_done(&reader);
    snprintf(path, sizeof path, "%s/volumes/0", node->directory);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    const struct dirent *entry;
    bool is_done = false;
    memset(noise, 0xa5, sizeof noise);
    while (!is_done && (entry = readdir(directory)) != NULL) {
        if (strstr(entry->d_name, ".warc") == NULL) {
            continue;
        }
        snprintf(path, sizeof path, "%s/volumes/0/%s", node->directory, entry->d_name);
        int file = open(path, O_WRONLY);
        assert_true(file >= 0);
        off_t offset = (off_t)(capture.location.offset + capture.location.length / 2);
        is_done = pwrite(file, noise, sizeof noise, offset) == (ssize_t)sizeof noise;
        close(file);
    }
    closedir(directory);
    assert_true(is_done);
}

static void a_damaged_document_is_repaired_from_another_copy(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    start_all(world);
    for (unsigned n = 0; n < 10; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 10));
    damage(node, 4, 4);
    struct ringkey key = key_of(4, 4);
    struct copies_reader reader = {0};
    struct bytes payload;
    assert_int_equal(copies_reader_init(&reader, node->instance), ERR_OK);
    assert_int_equal(copies_read_payload(node->copies, &reader, &key, &payload, NULL), ERR_CORRUPT);
    copies_reader_done(&reader);
    copies_report_damage(node->copies, &key);
    wait_for(stat_of(node).repaired_count == 1);
    expect_body(node, 4, 4);
}

static bool says_whole(struct node *node) {
    struct buf text;
    struct json json;
    buf_init(&text, 1 << 20);
    json_begin(&json, &text);
    copies_put_json(node->copies, &json, "copies");
    json_end(&json);
    assert_int_equal(text.err, ERR_OK);
    bool is_whole = strstr(buf_string(&text), "\"whole\":true") != NULL;
    buf_done(&text);
    return is_whole;
}

static void what_is_damaged_and_cannot_be_had_is_told(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    struct ringkey key = key_of(4, 4);
    start_all(world);
    for (unsigned n = 0; n < 10; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 10));
    wait_for(says_whole(node));
    assert_int_equal(stat_of(node).damaged_count, 0);
    for (unsigned i = 0; i < world->nodes_count; i++) {
        if (has(&world->nodes[i], &key)) {
            damage(&world->nodes[i], 4, 4);
        }
    }
    copies_report_damage(node->copies, &key);
    assert_int_equal(stat_of(node).damaged_count, 1);
    assert_false(says_whole(node));
}

/* Nobody has read it: it is found by reading everything again. */
static void damage_is_found_by_scrubbing(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    char path[2 * SCRATCH_PATH_SIZE];
    start_all(world);
    for (unsigned n = 0; n < 10; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 10));
    damage(node, 4, 4);
    stop(node);
    snprintf(path, sizeof path, "%s/scrub", node->directory);
    unlink(path); /* a new pass */
    start(node);
    wait_for(stat_of(node).repaired_count == 1);
    expect_body(node, 4, 4);
}

/* ---- questions that are none ---- */

static void nonsense_is_refused(void **state) {
    struct world *world = *state;
    struct buf answer;
    uint8_t whole_ring[COPIES_COMPARE_HEAD_SIZE + 1] = {0};
    start_all(world);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    static const enum peer_rpc_service services[] = {PEER_RPC_COMPARE, PEER_RPC_OFFER, PEER_RPC_CONFIRM,
                                                     PEER_RPC_PROVE};
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
        assert_int_not_equal(peer_rpc_ask(world->nodes[0].peer_rpc, &world->nodes[1].peer, services[i],
                                          BYTES("\xff\xff nonsense"), 5000, &answer, NULL),
                             ERR_OK);
    }
    assert_true(atomic_load(&world->nodes[1].blames_count) >= 4);
    assert_int_equal(peer_rpc_ask(world->nodes[0].peer_rpc, &world->nodes[1].peer, PEER_RPC_COMPARE,
                                  bytes_of(whole_ring, sizeof whole_ring), 5000, &answer, NULL),
                     ERR_INVALID);
    buf_done(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        copies_test(what_one_stores_the_others_get),
        copies_test(a_busy_giver_gives_later),
        copies_test(over_slow_lines_copies_are_given_in_turns),
        copies_test(who_was_away_gets_only_the_difference),
        copies_test(what_was_ours_goes_to_those_who_came),
        copies_test(a_lost_disk_is_filled_again),
        copies_test(what_is_false_is_refused_and_blamed),
        copies_test(a_forged_signature_is_refused_and_blamed),
        copies_test(who_claims_and_does_not_hold_is_found_out),
        copies_test(what_a_lying_primary_should_see_to_is_seen_to),
        copies_test(what_a_full_primary_should_see_to_is_seen_to),
        copies_test(what_a_silent_primary_should_see_to_is_seen_to),
        copies_test(the_next_takes_the_part_of_one_that_is_full),
        copies_test(what_may_not_be_taken_yet_stays_wanted),
        copies_test(surplus_is_given_up_when_all_holders_have_it),
        copies_test(surplus_stays_where_its_owner_wants_it),
        copies_test(what_was_not_compared_is_no_measure),
        copies_test(surplus_stays_until_it_is_confirmed),
        copies_test(surplus_stays_while_a_holder_is_not_believed),
        copies_test(copies_of_a_dead_node_are_made_again),
        copies_test(a_damaged_document_is_repaired_from_another_copy),
        copies_test(what_is_damaged_and_cannot_be_had_is_told),
        copies_test(damage_is_found_by_scrubbing),
        copies_test(nonsense_is_refused),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
