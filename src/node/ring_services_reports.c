/* What this node says of itself to the others, and what all say: for pages and programs. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node/ring_services_state.h"
#include "replay/admin/job_view.h"
#include "replay/admin/ring_text.h"

enum { REPORT_ARENA_SIZE_MAX = 64 << 20, TEXT_SIZE_MAX = 4096 };

/* ---- this node ---- */

static void report_disk(const struct ring_services *ring_services, uint64_t *values) {
    struct instance *instance = ring_services->config.instance;
    const struct quota *quota = instance_quota(instance);
    uint64_t free_size = UINT64_MAX;
    for (size_t i = 0; i < instance_volumes_count(instance); i++) {
        struct instance_volume volume;
        struct volume_stat stat = {0};
        struct statvfs disk;
        instance_volume(instance, i, &volume);
        if (volume.volume == NULL) {
            continue;
        }
        volume_stat(volume.volume, &stat);
        values[NODE_REPORT_USED_SIZE] += stat.size + stat.index_size;
        if (statvfs(volume.place, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < free_size) {
            free_size = (uint64_t)disk.f_bavail * disk.f_frsize;
        }
    }
    values[NODE_REPORT_FREE_SIZE] = free_size != UINT64_MAX ? free_size : 0;
    if (quota_is_set(quota)) {
        values[NODE_REPORT_QUOTA_SIZE] = quota->size_max;
        values[NODE_REPORT_USED_SIZE] = quota_used(quota);
    }
}

static uint64_t report_load(void) {
    double load;
    long processors_count = sysconf(_SC_NPROCESSORS_ONLN);
    bool is_known = getloadavg(&load, 1) == 1 && processors_count > 0 && load >= 0;
    return is_known ? (uint64_t)(1000 * load / (double)processors_count) : 0;
}

static void report_copies(struct ring_services *ring_services, struct arena *arena, uint64_t *values) {
    static const enum node_report_value levels[RING_VIEW_LEVELS_COUNT] = {
        [RING_VIEW_WHOLE] = NODE_REPORT_ARCS_WHOLE,
        [RING_VIEW_FRESH] = NODE_REPORT_ARCS_FRESH,
        [RING_VIEW_AWAY] = NODE_REPORT_ARCS_AWAY,
        [RING_VIEW_LOW] = NODE_REPORT_ARCS_LOW};
    struct ring_view_copies copies = {.arcs_count = 0};
    copies_view(ring_services->copies, arena, &copies);
    values[NODE_REPORT_CAPTURES] = copies.stored.keys_count;
    values[NODE_REPORT_WANTED] = copies.stored.wanted_count;
    values[NODE_REPORT_UNCONFIRMED] = copies.stored.unconfirmed_count;
    values[NODE_REPORT_DAMAGED] = copies.stored.damaged_count;
    for (size_t i = 0; i < copies.arcs_count; i++) {
        values[NODE_REPORT_ARC_CAPTURES] += copies.arcs[i].keys_count;
        values[levels[copies.arcs[i].level]]++;
    }
}

/* The jobs that the ring shares and this node has, as far as there is room. */
static void report_jobs(struct ring_services *ring_services, struct arena *arena,
                        struct node_report *report) {
    struct job_progress *jobs;
    size_t count = crawl_loop_jobs(ring_services->crawl_loop, arena, &jobs);
    for (size_t i = 0; i < count && report->jobs_count < NODE_REPORT_JOBS_MAX; i++) {
        struct node_report_job *job = &report->jobs[report->jobs_count];
        if (!ring_services_find_job(ring_services, jobs[i].name, job->id)) {
            continue;
        }
        job->state = (uint8_t)jobs[i].state;
        job->values[NODE_REPORT_JOB_KNOWN] = jobs[i].known_count;
        job->values[NODE_REPORT_JOB_WAITING] = jobs[i].waiting_count;
        job->values[NODE_REPORT_JOB_STORED] = jobs[i].stored_count;
        job->values[NODE_REPORT_JOB_FAILED] = jobs[i].failed_count;
        job->values[NODE_REPORT_JOB_RECEIVED_SIZE] = jobs[i].received_size;
        report->jobs_count++;
    }
}

static void report_proofs(struct ring_services *ring_services, struct node_report *report) {
    struct proof proofs[NODE_REPORT_PROOFS_MAX];
    report->proofs_count = copies_proofs(ring_services->copies, proofs, NODE_REPORT_PROOFS_MAX);
    for (size_t i = 0; i < report->proofs_count; i++) {
        struct node_report_proof *proof = &report->proofs[i];
        memcpy(proof->key, proofs[i].key, sizeof proof->key);
        proof->values[NODE_REPORT_PROVED_S] = proofs[i].proved_us / 1000000;
        proof->values[NODE_REPORT_PROOFS_PASSED] = proofs[i].met_count;
        proof->values[NODE_REPORT_PROOFS_FAILED] = proofs[i].failed_count;
    }
}

static void report_collect(void *context, struct node_report *report) {
    struct ring_services *ring_services = context;
    struct ring_view_rpc rpc;
    struct arena arena;
    arena_init(&arena, REPORT_ARENA_SIZE_MAX);
    peer_rpc_stat(ring_services->peer_rpc, &rpc);
    uint64_t now_us = clock_monotonic_us(ring_services->config.clock);
    report->values[NODE_REPORT_UPTIME_S] = (now_us - ring_services->begun_at_us) / 1000000;
    report->values[NODE_REPORT_LOAD_PERMILLE] = report_load();
    report->values[NODE_REPORT_SENT_SIZE] = rpc.sent_size;
    report_disk(ring_services, report->values);
    report_copies(ring_services, &arena, report->values);
    report_jobs(ring_services, &arena, report);
    report_proofs(ring_services, report);
    arena_done(&arena);
}

/* ---- begin, beat ---- */

enum err ring_services_make_reports(struct ring_services *ring_services) {
    struct reports_config config = {
        .peer_rpc = ring_services->peer_rpc,
        .identity = transport_identity(ring_services->transport),
        .dialects = ring_services->config.dialects,
        .clock = ring_services->config.clock,
        .collect = report_collect,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    _Static_assert((int)NODE_REPORT_RING_SIZE == (int)RING_CHARTER_SIZE, "the id of a ring");
    _Static_assert((int)NODE_REPORT_JOB_SIZE == (int)LINKS_CODE_JOB_SIZE, "the id of a job");
    if (config.dialects != NULL) {
        config.program = dialects_own(config.dialects)->program;
    }
    pthread_mutex_lock(&ring_services->lock);
    memcpy(config.ring, ring_services->ring_id, sizeof config.ring);
    pthread_mutex_unlock(&ring_services->lock);
    ring_services->begun_at_us = clock_monotonic_us(ring_services->config.clock);
    ring_services->reports = reports_new(&config);
    return ring_services->reports != NULL ? ERR_OK : ERR_MEMORY;
}

void ring_services_beat_reports(struct ring_services *ring_services) {
    struct peer *peers = malloc(REPORTS_NODES_MAX * sizeof *peers);
    size_t count = peers != NULL ? holders_all(ring_services->holders, peers, REPORTS_NODES_MAX) : 0;
    if (peers != NULL) {
        reports_beat(ring_services->reports, peers, count < REPORTS_NODES_MAX ? count : REPORTS_NODES_MAX);
    }
    free(peers);
}

/* ---- all nodes ---- */

struct report_gathering {
    struct ring_services *ring_services;
    struct arena *arena;
    struct ring_view *view;
    struct ring_view_node *nodes;
    struct ring_view_job *jobs;
    uint8_t (*ids)[LINKS_CODE_JOB_SIZE]; /* of the jobs */
    uint8_t (*keys)[PEER_KEY_SIZE];      /* of the nodes */
};

static void gather_values(const uint64_t *values, struct ring_view_node *node) {
    node->uptime_s = values[NODE_REPORT_UPTIME_S];
    node->load_permille = values[NODE_REPORT_LOAD_PERMILLE];
    node->used_size = values[NODE_REPORT_USED_SIZE];
    node->free_size = values[NODE_REPORT_FREE_SIZE];
    node->quota_size = values[NODE_REPORT_QUOTA_SIZE];
    node->captures_count = values[NODE_REPORT_CAPTURES];
    node->arc_captures_count = values[NODE_REPORT_ARC_CAPTURES];
    node->arcs_counts[RING_VIEW_WHOLE] = values[NODE_REPORT_ARCS_WHOLE];
    node->arcs_counts[RING_VIEW_FRESH] = values[NODE_REPORT_ARCS_FRESH];
    node->arcs_counts[RING_VIEW_AWAY] = values[NODE_REPORT_ARCS_AWAY];
    node->arcs_counts[RING_VIEW_LOW] = values[NODE_REPORT_ARCS_LOW];
    node->wanted_count = values[NODE_REPORT_WANTED];
    node->unconfirmed_count = values[NODE_REPORT_UNCONFIRMED];
    node->damaged_count = values[NODE_REPORT_DAMAGED];
    node->sent_size = values[NODE_REPORT_SENT_SIZE];
}

/* Only jobs that this node knows have a name here. */
static void gather_jobs(struct report_gathering *gathering, const struct node_report *report) {
    for (size_t i = 0; i < report->jobs_count; i++) {
        const struct node_report_job *said = &report->jobs[i];
        for (size_t j = 0; j < gathering->view->jobs_count; j++) {
            struct ring_view_job *job = &gathering->jobs[j];
            if (memcmp(gathering->ids[j], said->id, LINKS_CODE_JOB_SIZE) == 0) {
                job->nodes_count++;
                job->running_count += said->state == CAMPAIGN_RUNNING;
                job->known_count += said->values[NODE_REPORT_JOB_KNOWN];
                job->waiting_count += said->values[NODE_REPORT_JOB_WAITING];
                job->stored_count += said->values[NODE_REPORT_JOB_STORED];
                job->failed_count += said->values[NODE_REPORT_JOB_FAILED];
                job->received_size += said->values[NODE_REPORT_JOB_RECEIVED_SIZE];
            }
        }
    }
}

static void gather_node(void *context, const struct reports_node *said) {
    struct report_gathering *gathering = context;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    struct ring_view *view = gathering->view;
    if (view->reports_count == REPORTS_NODES_MAX) {
        return;
    }
    memcpy(gathering->keys[view->reports_count], said->peer.key, PEER_KEY_SIZE);
    struct ring_view_node *node = &gathering->nodes[view->reports_count++];
    *node = (struct ring_view_node){
        .address = arena_text(gathering->arena, address_format(&said->peer.address, address)),
        .key = arena_text(gathering->arena, identity_key_format(said->peer.key, key)),
        .is_self = said->is_self,
        .is_here = said->is_here,
        .has_feature = said->has_feature,
        .has_report = said->has_report,
        .heard_s = said->heard_ago_us / 1000000,
        .has_clock = said->has_clock,
        .clock_offset_ms = said->clock_offset_us / 1000,
    };
    if (said->has_report) {
        node->program = arena_text(gathering->arena, said->report.program);
        node->time_us = said->report.time_us;
        gather_values(said->report.values, node);
        gather_jobs(gathering, &said->report);
    } else {
        view->unreported_count += node->is_here;
    }
}

/* What other nodes have proved to this one; the longest time that it proved to any one of them. Nobody is
 * believed of itself. */
static void gather_proofs(void *context, const struct reports_node *said) {
    struct report_gathering *gathering = context;
    const struct node_report *report = &said->report;
    for (size_t i = 0; said->has_report && i < report->proofs_count; i++) {
        const struct node_report_proof *proof = &report->proofs[i];
        for (size_t j = 0; j < gathering->view->reports_count; j++) {
            struct ring_view_node *node = &gathering->nodes[j];
            if (memcmp(gathering->keys[j], proof->key, PEER_KEY_SIZE) == 0 &&
                memcmp(proof->key, report->key, PEER_KEY_SIZE) != 0) {
                uint64_t proved_s = proof->values[NODE_REPORT_PROVED_S];
                node->proved_s = proved_s > node->proved_s ? proved_s : node->proved_s;
                node->met_count += proof->values[NODE_REPORT_PROOFS_PASSED];
                node->failed_count += proof->values[NODE_REPORT_PROOFS_FAILED];
                node->provers_count++;
                break;
            }
        }
    }
}

static void gather_names(struct report_gathering *gathering) {
    struct ring_services *ring_services = gathering->ring_services;
    pthread_mutex_lock(&ring_services->lock);
    for (size_t i = 0; i < ring_services->jobs_count; i++) {
        gathering->jobs[i] =
            (struct ring_view_job){.name = arena_text(gathering->arena, ring_services->jobs[i].name)};
        memcpy(gathering->ids[i], ring_services->jobs[i].id, LINKS_CODE_JOB_SIZE);
    }
    gathering->view->jobs_count = ring_services->jobs_count;
    pthread_mutex_unlock(&ring_services->lock);
}

void ring_services_view_reports(struct ring_services *ring_services, struct arena *arena,
                                struct ring_view *view) {
    struct report_gathering gathering = {
        .ring_services = ring_services,
        .arena = arena,
        .view = view,
        .nodes = arena_take_array(arena, REPORTS_NODES_MAX, sizeof *gathering.nodes),
        .jobs = arena_take_array(arena, LINK_SENDER_JOBS_MAX, sizeof *gathering.jobs),
        .ids = arena_take_array(arena, LINK_SENDER_JOBS_MAX, LINKS_CODE_JOB_SIZE),
        .keys = arena_take_array(arena, REPORTS_NODES_MAX, PEER_KEY_SIZE),
    };
    if (gathering.nodes != NULL && gathering.jobs != NULL && gathering.ids != NULL &&
        gathering.keys != NULL) {
        gather_names(&gathering);
        (void)reports_each(ring_services->reports, gather_node, &gathering);
        (void)reports_each(ring_services->reports, gather_proofs, &gathering);
        view->reports = gathering.nodes;
        view->jobs = gathering.jobs;
    }
}

void ring_services_view_jobs(struct ring_services *ring_services, struct arena *arena, struct job_view *jobs,
                             size_t count) {
    bool has_reports = ring_services->is_begun && ring_services->reports != NULL;
    struct ring_view *view = has_reports ? arena_take_array(arena, 1, sizeof *view) : NULL;
    if (view == NULL) {
        return;
    }
    *view = (struct ring_view){.jobs_count = 0};
    ring_services_view_reports(ring_services, arena, view);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < view->jobs_count && view->jobs != NULL; j++) {
            if (strcmp(jobs[i].name, view->jobs[j].name) == 0) {
                jobs[i].ring = &view->jobs[j];
                jobs[i].ring_unreported_count = view->unreported_count;
            }
        }
    }
}

/* ---- for programs ---- */

static void report_put_text(struct json *json, const struct buf *text) {
    if (text->err == ERR_OK) {
        json_bytes(json, "text", buf_bytes(text));
    }
}

static void report_put_node(const struct ring_view_node *node, struct json *json) {
    struct buf text;
    json_open(json, NULL);
    json_text(json, "address", node->address);
    json_text(json, "key", node->key);
    json_bool(json, "self", node->is_self);
    json_text(json, "state", ring_text_node(node));
    buf_init(&text, TEXT_SIZE_MAX);
    ring_text_put_node(node, &text);
    report_put_text(json, &text);
    buf_done(&text);
    if (node->has_clock) {
        json_signed(json, "clock_offset_milliseconds", node->clock_offset_ms);
    }
    if (node->has_report) {
        json_text(json, "program", node->program);
        JSON_COUNTS(json, {"heard_seconds_ago", node->heard_s}, {"time_us", node->time_us},
                    {"uptime_seconds", node->uptime_s}, {"load_permille", node->load_permille},
                    {"used_size", node->used_size}, {"free_size", node->free_size},
                    {"quota_size", node->quota_size}, {"captures", node->captures_count},
                    {"arcs_captures", node->arc_captures_count}, {"wanted", node->wanted_count},
                    {"unconfirmed", node->unconfirmed_count}, {"damaged", node->damaged_count},
                    {"sent_size", node->sent_size});
        json_open(json, "arcs");
        JSON_COUNTS(json, {"whole", node->arcs_counts[RING_VIEW_WHOLE]},
                    {"fresh", node->arcs_counts[RING_VIEW_FRESH]},
                    {"away", node->arcs_counts[RING_VIEW_AWAY]}, {"low", node->arcs_counts[RING_VIEW_LOW]});
        json_close(json);
    }
    json_close(json);
}

void ring_services_put_reports(const struct ring_view *view, struct json *json) {
    json_open(json, "reports");
    json_count(json, "missing", view->unreported_count);
    json_open_list(json, "nodes");
    for (size_t i = 0; i < view->reports_count; i++) {
        report_put_node(&view->reports[i], json);
    }
    json_close(json);
    json_open_list(json, "contributions");
    for (size_t i = 0; i < view->reports_count; i++) {
        const struct ring_view_node *node = &view->reports[i];
        json_open(json, NULL);
        json_text(json, "address", node->address);
        json_text(json, "key", node->key);
        if (node->has_report) {
            JSON_COUNTS(json, {"kept_size", node->used_size}, {"sent_size", node->sent_size});
        }
        JSON_COUNTS(json, {"proved_seconds", node->proved_s}, {"challenges_met", node->met_count},
                    {"challenges_failed", node->failed_count}, {"challengers", node->provers_count});
        json_close(json);
    }
    json_close(json);
    json_open_list(json, "jobs");
    for (size_t i = 0; i < view->jobs_count; i++) {
        const struct ring_view_job *job = &view->jobs[i];
        json_open(json, NULL);
        json_text(json, "job", job->name);
        job_view_put_ring(job, view->unreported_count, json);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}
