/*
 * What a member measures: round trips by echoes, bandwidth by probes that the driver carries out, both with a
 * random member at random times; and its reports to the master.
 *
 * A period grows with the age of this life, in proportion, until it has its full length at slowing_us; echoes
 * begin at fast_us, the others as much slower as they are later. So a new member measures slowing / period *
 * ln(slowing / first age) times until then, 7 probes and 27 echoes with the paper's periods, instead of 1.5
 * and 6: about the paper's 6 MB in the first 90 minutes of 20 members.
 */
#include "protocol/group/group_state.h"

enum {
    ECHO_ANSWER_US = 10000000, /* later it says nothing about the path */
    REPORT_AGAIN_US = 5000000,
    REPORT_TRIES_MAX = 3,
};

/* ---- when ---- */

/*
 * At age a the mean wait is a share x = period / slowing of a. Drawn at its beginning, a wait must reach to
 * a * e^x for that; the series is short because x is small.
 */
static uint64_t next_at_us(struct group *group, uint64_t period_us) {
    const struct group_config *config = &group->config;
    double share = (double)period_us / (double)config->slowing_us;
    double age_first_us = (double)config->fast_us * (double)config->slowing_us / (double)config->echo_us;
    double age_us = (double)(group->now_us - group->measure.began_at_us);
    age_us = age_us < age_first_us ? age_first_us : age_us;
    double wait_us = age_us * share * (1 + share / 2 * (1 + share / 3));
    uint64_t spread_us = wait_us < (double)period_us ? (uint64_t)wait_us : period_us;
    return group->now_us + group_spread(group, spread_us);
}

static void plan_all(struct group *group) {
    group->measure.echo_at_us = next_at_us(group, group->config.echo_us);
    group->measure.probe_at_us = next_at_us(group, group->config.probe_us);
    group->measure.report_at_us = next_at_us(group, group->config.report_us);
}

void group_measure_begin(struct group *group) {
    group->measure.began_at_us = group->now_us;
    plan_all(group);
}

void group_measure_report_soon(struct group *group) {
    uint64_t at_us = group->now_us + group_spread(group, group->config.fast_us);
    if (at_us < group->measure.report_at_us) {
        group->measure.report_at_us = at_us;
    }
}

/* ---- echoes ---- */

void group_measure_ask(struct group *group, const struct peer *whom) {
    struct group_measure *measure = &group->measure;
    struct group_echo *echo = &measure->echoes[measure->echoes_next++ % GROUP_ECHOES_MAX];
    *echo =
        (struct group_echo){.number = prng_u64(&group->prng) | 1, .sent_at_us = group->now_us, .to = *whom};
    struct group_message message = {.kind = GROUP_MESSAGE_ECHO, .number = echo->number};
    group->counters.echoes_count++;
    group_send(group, whom, &message);
}

static struct group_echo *find_echo(struct group *group, const struct peer *who, uint64_t number) {
    for (unsigned i = 0; i < GROUP_ECHOES_MAX && number != 0; i++) {
        struct group_echo *echo = &group->measure.echoes[i];
        if (echo->number == number && peer_equal(&echo->to, who)) {
            return echo;
        }
    }
    return NULL;
}

void group_measure_on_echoed(struct group *group, const struct event *event,
                             const struct group_message *message) {
    struct peer from = event_sender(event);
    uint32_t position = group_find(group, &from);
    struct group_echo *echo = find_echo(group, &from, message->number);
    if (echo == NULL) { /* of a poll it is enough that it was heard */
        group->counters.unasked_count += message->number != group->succession.poll_number;
        return;
    }
    echo->number = 0;
    uint64_t took_us = group->now_us - echo->sent_at_us;
    if (position != GROUP_NOWHERE && took_us <= ECHO_ANSWER_US) {
        group->counters.echoed_count++;
        estimate_learn_round_trip(&group->members[position].estimate, took_us, group->now_us);
    }
}

bool group_measure_is_asked(struct group *group, const struct peer *who, uint64_t number) {
    struct group_measure *measure = &group->measure;
    struct group_echo *echo = find_echo(group, who, number);
    const struct peer *master = group_master(group);
    if (echo != NULL) {
        echo->number = 0;
        return true;
    }
    return number != 0 && number == measure->report_number && master != NULL && peer_equal(master, who);
}

/* ---- probes ---- */

static void measure_probe(struct group *group, const struct peer *whom) {
    uint8_t size[4];
    struct wire_writer writer;
    wire_writer_init(&writer, size, sizeof size);
    wire_write_u32(&writer, group->config.probe_size);
    group->counters.probes_count++;
    group_notice_peer(group, GROUP_PROBE, whom, bytes_of(size, sizeof size));
}

static struct estimate *find_estimate(struct group *group, const struct peer *peer) {
    if (group->mode == GROUP_FIXED) {
        for (uint32_t i = 0; i < group->config.neighbours_count; i++) {
            if (peer_equal(&group->fixed[i], peer)) {
                return &group->fixed_estimates[i];
            }
        }
        return NULL;
    }
    uint32_t position = group_find(group, peer);
    return position == GROUP_NOWHERE ? NULL : &group->members[position].estimate;
}

/* For a node that is no member any more it is too late. */
void group_measure_probed(struct group *group, struct bytes bytes) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_MEMBER, &peer);
    uint64_t size = wire_read_u64(&reader);
    uint64_t duration_us = wire_read_u64(&reader);
    enum err err = wire_reader_finish(&reader, NULL);
    ASSERT(err == ERR_OK);
    struct estimate *estimate = find_estimate(group, &peer);
    if (estimate != NULL) {
        estimate_learn_transfer(estimate, size, duration_us, group->now_us);
    }
}

/* ---- reports ---- */

static void note_heard(const struct group *group, uint8_t heard[GROUP_MEMBERS_MAX]) {
    for (uint32_t i = 0; i < group->topology->members_count; i++) {
        uint64_t at_us = i == group->position ? group->now_us : group->members[i].heard_at_us;
        heard[i] = at_us == 0 ? GROUP_AGE_NEVER : group_message_write_age(group->now_us - at_us);
    }
}

/* As many as fit, from where the last report ended. */
static struct bytes write_estimates(struct group *group, uint8_t *memory, size_t memory_size) {
    const struct topology *topology = group->topology;
    struct estimate_entry entries[GROUP_MEMBERS_MAX] = {0};
    uint32_t positions[GROUP_MEMBERS_MAX];
    size_t count = 0;
    struct bytes report = {0};
    for (uint32_t i = 0; i < topology->members_count; i++) {
        uint32_t at = (group->measure.report_first + i) % topology->members_count;
        if (estimate_is_known(&group->members[at].estimate)) {
            positions[count] = at;
            entries[count].about = topology->members[at].address;
            entries[count++].estimate = group->members[at].estimate;
        }
    }
    size_t written = estimate_write_report(entries, count, group->now_us, memory, memory_size, &report);
    group->measure.report_first = written < count ? positions[written] : 0;
    return report;
}

static void send_report(struct group *group) {
    uint8_t heard[GROUP_MEMBERS_MAX];
    uint8_t estimates[STEP_MESSAGE_SIZE_MAX];
    uint32_t count = group->topology->members_count;
    struct group_measure *measure = &group->measure;
    measure->report_number = prng_u64(&group->prng) | 1;
    retry_sent_doubling(&measure->report, REPORT_AGAIN_US, REPORT_AGAIN_US, group->now_us);
    note_heard(group, heard);
    struct group_message message = {
        .kind = GROUP_MESSAGE_REPORT,
        .number = measure->report_number,
        .heard = bytes_of(heard, count),
        .estimates = write_estimates(group, estimates, group_message_estimates_size_max(count)),
    };
    group->counters.reports_count++;
    group_send(group, group_master(group), &message);
}

void group_measure_on_reported(struct group *group, const struct event *event,
                               const struct group_message *message) {
    struct peer from = event_sender(event);
    if (!group_measure_is_asked(group, &from, message->number)) {
        group->counters.unasked_count++;
        return;
    }
    group->measure.report_number = 0;
    group->counters.reported_count++;
}

static void tick_report(struct group *group) {
    struct group_measure *measure = &group->measure;
    if (group_is_master(group)) {
        return;
    }
    if (group->now_us >= measure->report_at_us) {
        measure->report.tries_count = 0;
        measure->report_at_us = next_at_us(group, group->config.report_us);
        send_report(group);
    } else if (measure->report_number != 0 && retry_is_due(&measure->report, group->now_us)) {
        if (measure->report.tries_count >= REPORT_TRIES_MAX) {
            measure->report_number = 0;
        } else {
            send_report(group);
        }
    }
    outbox_wake_at(group->out, measure->report_at_us);
    if (measure->report_number != 0) {
        outbox_wake_at(group->out, measure->report.due_us);
    }
}

/* ---- time ---- */

void group_measure_tick(struct group *group) {
    struct group_measure *measure = &group->measure;
    if (group->mode != GROUP_MEMBER || group->topology->members_count < 2) {
        return;
    }
    if (group->now_us >= measure->echo_at_us) {
        group_measure_ask(group, group_pick_member(group));
        measure->echo_at_us = next_at_us(group, group->config.echo_us);
    }
    if (group->now_us >= measure->probe_at_us) {
        measure_probe(group, group_pick_member(group));
        measure->probe_at_us = next_at_us(group, group->config.probe_us);
    }
    outbox_wake_at(group->out, measure->echo_at_us);
    outbox_wake_at(group->out, measure->probe_at_us);
    tick_report(group);
}
