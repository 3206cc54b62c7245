#include "protocol/copies/replicator.h"

#include "base/assert.h"
#include "protocol/copies/replicator_state.h"

enum {
    SHUN_S = 10,
    FOLLOW_S_MIN = 900, /* three rounds at the default interval */
    GRACE_S = 3600,
    COMPARE_S = 300,
    INTERVALS = 20, /* that a primary may miss: a busy one compares late */
    SLOT_BITS = 8,
};
static const uint64_t CHALLENGE_US = UINT64_C(600) * 1000000; /* as the others have it that plan by it */
enum { PROVED_INTERVALS_MAX = 3 };                            /* they are spread around one interval */

/* ---- begin ---- */

static uint32_t replicator_or(uint32_t value, uint32_t fallback) {
    return value > 0 ? value : fallback;
}

static struct replicator_config replicator_complete(const struct replicator_config *config) {
    struct replicator_config full = *config;
    full.arcs_max = replicator_or(config->arcs_max, HOLDERS_ARCS_MAX);
    full.comparisons_max = replicator_or(config->comparisons_max, 8);
    full.offers_max = replicator_or(config->offers_max, 16);
    full.found_max = replicator_or(config->found_max, 8192);
    full.message_size = replicator_or(config->message_size, RECONCILE_MESSAGE_SIZE_MAX);
    full.came_count = replicator_or(config->came_count, 1 << 14);
    full.deleted_count = replicator_or(config->deleted_count, 1 << 16);
    return full;
}

static struct copy_plan_config replicator_plan_config(const struct replicator_config *config,
                                                      uint32_t copies) {
    return (struct copy_plan_config){
        .copies = copies,
        .pieces_max = config->pieces_max,
        .claims_max = config->claims_max,
        .compare_interval_us = config->compare_interval_us,
        .challenge_interval_us = config->challenge_interval_us,
        .grace_us = config->grace_us,
        .bar_us = config->bar_us > 0 ? config->bar_us : config->grace_us / 2,
        .keeps_everything = config->keeps_everything,
        .seed = config->seed,
    };
}

static struct custody_config replicator_custody_config(const struct replicator_config *config) {
    return (struct custody_config){.items_max = config->custody_max, .peers_max = config->peers_max};
}

static struct transfer_config replicator_transfer_config(const struct replicator_config *config) {
    return (struct transfer_config){.wanted_max = config->wanted_max,
                                    .givers_max = config->peers_max,
                                    .has_slow_lines = config->has_slow_lines,
                                    .seed = config->seed};
}

/* Memory that is handed out from the front. */
struct replicator_memory {
    uint8_t *next; /* NULL: only counted */
    size_t size;
};

static void *replicator_take(struct replicator_memory *memory, size_t size) {
    void *taken = memory->next != NULL ? memory->next + memory->size : NULL;
    memory->size += (size + 63) / 64 * 64;
    return taken;
}

static void replicator_lay_out_errands(struct replicator *replicator, const struct replicator_config *config,
                                       struct replicator_memory *memory) {
    struct errand_comparison *comparisons =
        replicator_take(memory, config->comparisons_max * sizeof *comparisons);
    struct errand_offer *offers = replicator_take(memory, config->offers_max * sizeof *offers);
    for (uint32_t i = 0; i < config->comparisons_max; i++) {
        struct ringkey *haves = replicator_take(memory, config->found_max * sizeof *haves);
        uint8_t *message = replicator_take(memory, config->message_size);
        if (replicator != NULL) {
            comparisons[i].comparison = (struct comparison){.haves = haves,
                                                            .found_max = config->found_max,
                                                            .memory = message,
                                                            .message_size = config->message_size,
                                                            .want = replicator_compare_want,
                                                            .context = replicator};
        }
    }
    uint32_t items_max = config->custody_max > 0 && config->custody_max < COPIES_KEYS_MAX
                             ? config->custody_max
                             : COPIES_KEYS_MAX;
    for (uint32_t i = 0; i < config->offers_max; i++) {
        uint32_t *items = replicator_take(memory, items_max * sizeof *items);
        if (replicator != NULL) {
            offers[i].items = items;
        }
    }
    if (replicator != NULL) {
        replicator->comparisons = comparisons;
        replicator->offers = offers;
    }
}

/* What one message can be: an offer, or a turn of a comparison. */
static size_t replicator_keys_max(const struct replicator_config *config) {
    uint32_t custody_max = replicator_or(config->custody_max, COPIES_KEYS_MAX);
    uint32_t most = custody_max > config->found_max ? custody_max : config->found_max;
    most = most > REPLICATOR_LIST_COUNT ? most : REPLICATOR_LIST_COUNT;
    return most < COPIES_KEYS_MAX ? most : COPIES_KEYS_MAX;
}

static size_t replicator_message_size(const struct replicator_config *config) {
    size_t offer_size = WIRE_VARINT_SIZE_MAX + replicator_keys_max(config) * RINGKEY_SIZE;
    size_t turn_size = COPIES_COMPARE_HEAD_SIZE + config->message_size;
    return offer_size > turn_size ? offer_size : turn_size;
}

/* Twice: to count, and to hand out. */
static size_t replicator_lay_out(struct replicator *replicator, const struct replicator_config *config,
                                 uint32_t copies, uint64_t now_us) {
    struct replicator_memory memory = {.next = (uint8_t *)replicator};
    struct copy_plan_config plan = replicator_plan_config(config, copies);
    struct custody_config custody = replicator_custody_config(config);
    struct transfer_config transfer = replicator_transfer_config(config);
    size_t keys_max = replicator_keys_max(config);
    (void)replicator_take(&memory, sizeof *replicator);
    void *plan_memory = replicator_take(&memory, copy_plan_size(&plan));
    void *custody_memory = replicator_take(&memory, custody_size(&custody));
    void *transfer_memory = replicator_take(&memory, transfer_size(&transfer));
    replicator_lay_out_errands(replicator, config, &memory);
    void *came = replicator_take(&memory, config->came_count * sizeof(uint64_t));
    void *deleted = replicator_take(&memory, config->deleted_count * sizeof(uint64_t));
    void *own = replicator_take(&memory, config->arcs_max * sizeof(struct holders_arc));
    void *arcs = replicator_take(&memory, config->arcs_max * sizeof(struct copy_plan_arc));
    void *due = replicator_take(&memory, keys_max * sizeof(struct custody_item));
    void *offered = replicator_take(&memory, keys_max * sizeof(struct ringkey));
    void *wishes = replicator_take(&memory, keys_max);
    void *message = replicator_take(&memory, replicator_message_size(config));
    if (replicator != NULL) {
        replicator->copy_plan = copy_plan_init(plan_memory, &plan, now_us);
        replicator->custody = custody_init(custody_memory, &custody);
        replicator->transfer = transfer_init(transfer_memory, &transfer);
        replicator->came = came;
        replicator->deleted = deleted;
        replicator->own = own;
        replicator->arcs = arcs;
        replicator->due = due;
        replicator->offered = offered;
        replicator->wishes = wishes;
        replicator->message = message;
    }
    return memory.size;
}

size_t replicator_size(const struct replicator_config *config) {
    struct replicator_config full = replicator_complete(config);
    return replicator_lay_out(NULL, &full, 0, 0);
}

uint64_t replicator_grace_us(const struct replicator *replicator) {
    return replicator->config.grace_us > 0 ? replicator->config.grace_us : GRACE_S * REPLICATOR_SECOND_US;
}

static uint64_t replicator_silence_us(const struct replicator *replicator) {
    uint64_t compare_us = replicator->config.compare_interval_us;
    uint64_t many_us = INTERVALS * (compare_us > 0 ? compare_us : COMPARE_S * REPLICATOR_SECOND_US);
    uint64_t long_us = 2 * replicator_grace_us(replicator);
    return long_us > many_us ? long_us : many_us;
}

struct replicator *replicator_init(void *memory, const struct replicator_config *config,
                                   const struct replicator_world *world, uint64_t now_us) {
    struct replicator *replicator = memory;
    memset(memory, 0, replicator_size(config));
    replicator->config = replicator_complete(config);
    replicator->world = *world;
    replicator->may_offer = true;
    ASSERT(sha256_init(&replicator->sha256) == ERR_OK);
    (void)replicator_lay_out(replicator, &replicator->config, (uint32_t)world->copies(world->ring), now_us);
    struct full_sync_config full_sync = {.interval_us = config->compare_interval_us, .seed = config->seed};
    struct primary_watch_config watch = {
        .challenge_interval_us = config->challenge_interval_us,
        .silence_us = replicator_silence_us(replicator),
        .bar_us = replicator_grace_us(replicator) / 2,
        .seed = config->seed,
    };
    full_sync_init(&replicator->full_sync, &full_sync, now_us);
    primary_watch_init(&replicator->primary_watch, &watch);
    uint64_t interval_us = config->challenge_interval_us > 0 ? config->challenge_interval_us : CHALLENGE_US;
    proofs_init(&replicator->proofs, PROVED_INTERVALS_MAX * interval_us);
    standing_init(&replicator->standing, replicator->shunned, REPLICATOR_SHUNNED_MAX, config->seed);
    replicator_sweep_begin(replicator, now_us);
    return replicator;
}

/* ---- lots, lists ---- */

void replicator_draw(struct replicator *replicator, uint8_t out[SHA256_SIZE]) {
    uint64_t number = ++replicator->draws_count;
    sha256_start(&replicator->sha256);
    sha256_update(&replicator->sha256, bytes_of(replicator->config.secret, REPLICATOR_SECRET_SIZE));
    sha256_update(&replicator->sha256, bytes_of(&number, sizeof number));
    sha256_finish(&replicator->sha256, out);
}

uint64_t replicator_draw_below(struct replicator *replicator, uint64_t bound) {
    uint8_t drawn[SHA256_SIZE];
    replicator_draw(replicator, drawn);
    uint64_t number = ring_id_read(drawn).high;
    return bound > 0 ? number % bound : 0;
}

enum err replicator_list(const struct replicator *replicator, struct ring_id from, struct ring_id to,
                         const struct ringkey *behind, struct ringkey *out, size_t count_max,
                         size_t *ret_count) {
    struct reconcile_arc arc;
    ring_id_write(from, arc.from);
    ring_id_write(to, arc.to);
    struct reconcile_position lower = behind != NULL
                                          ? reconcile_arc_behind(reconcile_arc_position(&arc, behind))
                                          : reconcile_arc_start(&arc);
    struct reconcile_position upper = reconcile_arc_end(&arc);
    *ret_count = 0;
    return reconcile_position_compare(&lower, &upper) < 0
               ? reconcile_arc_list(&replicator->world.keys, &lower, &upper, out, count_max, ret_count)
               : ERR_OK;
}

/* ---- nodes that do not answer, or lie ---- */

void replicator_blame(struct replicator *replicator, const struct peer *peer, const char *sentence) {
    if (replicator->blames_count < REPLICATOR_BLAMES_MAX) {
        replicator->blames[replicator->blames_count++] = (struct replicator_blame){*peer, sentence};
    }
}

void replicator_shun(struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    standing_note(&replicator->standing, STANDING_SILENT, peer_key(peer), now_us,
                  now_us + SHUN_S * REPLICATOR_SECOND_US);
}

bool replicator_is_shunned(const struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    return standing_holds(&replicator->standing, STANDING_SILENT, peer_key(peer), now_us);
}

void replicator_note_false(struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    standing_note(&replicator->standing, STANDING_DOUBTED, peer_key(peer), now_us,
                  now_us + replicator_grace_us(replicator) / 2);
    primary_watch_accuse(&replicator->primary_watch, peer, now_us);
}

bool replicator_is_false(const struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    return standing_holds(&replicator->standing, STANDING_DOUBTED, peer_key(peer), now_us);
}

void replicator_distrust(struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    replicator_shun(replicator, peer, now_us);
    standing_note(&replicator->standing, STANDING_REFUSED, peer_key(peer), now_us, UINT64_MAX);
    replicator_note_false(replicator, peer, now_us);
}

bool replicator_take_falsehood(struct replicator *replicator, const struct peer *peer) {
    return standing_clear(&replicator->standing, STANDING_REFUSED, peer_key(peer));
}

enum err replicator_err_of_others(enum err err) {
    bool is_kept = err == ERR_OK || err == ERR_NO_SPACE || err == ERR_TIMEOUT || err == ERR_UNREACHABLE ||
                   err == ERR_CLOSED || err == ERR_CANCELLED || err == ERR_BUSY;
    return is_kept ? err : ERR_REFUSED;
}

/* ---- nodes that want to be told what is new ---- */

/* A follower asks again in each of its rounds; one that does not answer an offer is dropped anyhow. */
static uint64_t replicator_follow_until_us(const struct replicator *replicator, uint64_t now_us) {
    uint64_t least_us = FOLLOW_S_MIN * REPLICATOR_SECOND_US;
    uint64_t long_us = 3 * replicator->config.compare_interval_us;
    return now_us + (long_us > least_us ? long_us : least_us);
}

bool replicator_hear_follower(struct replicator *replicator, const struct peer *from, uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    struct replicator_follower *place = NULL;
    struct peer peer;
    if (!world->locate(world->ring, from->key, &peer)) {
        peer = *from; /* good for as long as its stream is open */
    }
    for (size_t i = 0; i < REPLICATOR_FOLLOWERS_MAX; i++) {
        struct replicator_follower *follower = &replicator->followers[i];
        if (peer_same_key(&follower->peer, &peer)) {
            place = follower;
            break;
        }
        place = place == NULL && follower->until_us <= now_us ? follower : place;
    }
    if (place != NULL) {
        place->peer = peer;
        place->until_us = replicator_follow_until_us(replicator, now_us);
    }
    return place != NULL;
}

static void replicator_unfollow(struct replicator *replicator, const struct peer *peer) {
    for (size_t i = 0; i < REPLICATOR_FOLLOWERS_MAX; i++) {
        if (peer_equal(&replicator->followers[i].peer, peer)) {
            replicator->followers[i] = (struct replicator_follower){.until_us = 0};
        }
    }
}

enum err replicator_take_wishes(struct replicator *replicator, const struct peer *peer, size_t count,
                                const struct replicator_event *event) {
    struct err_detail detail = {0};
    if (event->err != ERR_OK) {
        replicator_shun(replicator, peer, event->now_us);
        replicator_unfollow(replicator, peer);
        return event->err;
    }
    enum err err = copies_read_bits(event->bytes, count, 2, replicator->wishes, &detail);
    if (err != ERR_OK) {
        replicator_blame(replicator, peer, "answers an offer with something else");
        return err;
    }
    replicator->counts.offered_count += count;
    return ERR_OK;
}

bool replicator_may_copy(struct replicator *replicator, const struct peer *peer, uint64_t now_us) {
    return !replicator->config.has_slow_lines || transfer_order_may_take(&replicator->giving, peer, now_us);
}

/* ---- errands ---- */

static size_t replicator_slots_count(const struct replicator *replicator) {
    return replicator->config.comparisons_max + REPLICATOR_CHALLENGES_MAX + replicator->config.offers_max +
           3; /* release, repair, scrub */
}

static struct errand *replicator_errand(struct replicator *replicator, size_t slot) {
    const struct replicator_config *config = &replicator->config;
    if (slot < config->comparisons_max) {
        return &replicator->comparisons[slot].errand;
    }
    slot -= config->comparisons_max;
    if (slot < REPLICATOR_CHALLENGES_MAX) {
        return &replicator->challenges[slot].errand;
    }
    slot -= REPLICATOR_CHALLENGES_MAX;
    if (slot < config->offers_max) {
        return &replicator->offers[slot].errand;
    }
    return slot == config->offers_max       ? &replicator->release.errand
           : slot == config->offers_max + 1 ? &replicator->repair.errand
                                            : &replicator->scrub.errand;
}

void errand_begin(struct errand *errand, enum errand_state state) {
    ASSERT(errand->state == ERRAND_FREE);
    errand->state = state;
    errand->is_out = false;
}

void errand_end(struct errand *errand) {
    errand->state = ERRAND_FREE;
    errand->is_out = false;
}

static bool replicator_is_of_comparisons(const struct replicator *replicator, size_t slot) {
    return slot < replicator->config.comparisons_max;
}

static bool replicator_is_of_challenges(const struct replicator *replicator, size_t slot) {
    return slot < replicator->config.comparisons_max + REPLICATOR_CHALLENGES_MAX;
}

static bool replicator_is_of_offers(const struct replicator *replicator, size_t slot) {
    return slot + 3 < replicator_slots_count(replicator);
}

static void replicator_act(struct replicator *replicator, size_t slot, struct replicator_action *action) {
    struct errand *errand = replicator_errand(replicator, slot);
    errand->is_out = true;
    errand->id = ++replicator->ids_count;
    *action = (struct replicator_action){.id = errand->id << SLOT_BITS | slot, .peer = errand->peer};
    if (replicator_is_of_comparisons(replicator, slot)) {
        replicator_compare_action(replicator, (struct errand_comparison *)errand, action);
    } else if (replicator_is_of_challenges(replicator, slot)) {
        replicator_challenge_action(replicator, (struct errand_challenge *)errand, action);
    } else if (replicator_is_of_offers(replicator, slot)) {
        replicator_offer_action(replicator, (struct errand_offer *)errand, action);
    } else if (errand == &replicator->release.errand) {
        replicator_release_action(replicator, &replicator->release, action);
    } else if (errand == &replicator->repair.errand) {
        replicator_repair_action(&replicator->repair, action);
    } else {
        action->kind = REPLICATOR_SCRUB;
    }
    replicator->counts.questions_count += action->kind == REPLICATOR_ASK;
}

/* An answer to what was not asked, or by an earlier life of this node, is nothing. */
static void replicator_take_answer(struct replicator *replicator, const struct replicator_event *event) {
    size_t slot = event->id & ((1U << SLOT_BITS) - 1);
    struct errand *errand =
        slot < replicator_slots_count(replicator) ? replicator_errand(replicator, slot) : NULL;
    if (errand == NULL || errand->state == ERRAND_FREE || !errand->is_out ||
        errand->id != event->id >> SLOT_BITS) {
        return;
    }
    errand->is_out = false;
    bool is_silence = event->err == ERR_TIMEOUT || event->err == ERR_UNREACHABLE || event->err == ERR_CLOSED;
    replicator->counts.silent_count += event->kind == REPLICATOR_ANSWERED && is_silence;
    if (replicator_is_of_comparisons(replicator, slot)) {
        replicator_compare_take(replicator, (struct errand_comparison *)errand, event);
    } else if (replicator_is_of_challenges(replicator, slot)) {
        replicator_challenge_take(replicator, (struct errand_challenge *)errand, event);
    } else if (replicator_is_of_offers(replicator, slot)) {
        replicator_offer_take(replicator, (struct errand_offer *)errand, event);
    } else if (errand == &replicator->release.errand) {
        replicator_release_take(replicator, &replicator->release, event);
    } else if (errand == &replicator->repair.errand) {
        replicator_repair_take(replicator, &replicator->repair, event);
    } else {
        replicator_scrub_take(replicator, event);
    }
}

/* ---- events ---- */

void replicator_step(struct replicator *replicator, const struct replicator_event *event) {
    switch (event->kind) {
    case REPLICATOR_ANSWERED:
    case REPLICATOR_FOUND:
    case REPLICATOR_READ:
    case REPLICATOR_REMOVED:
    case REPLICATOR_REPAIRED:
    case REPLICATOR_SCRUBBED:
        replicator_take_answer(replicator, event);
        break;
    case REPLICATOR_CLOSED:
    case REPLICATOR_DURABLE:
    case REPLICATOR_SETTLED:
    case REPLICATOR_DELETED:
        replicator_fetch_take(replicator, event);
        break;
    case REPLICATOR_FALSE:
        replicator->counts.refused_count++;
        replicator_distrust(replicator, event->peer, event->now_us);
        break;
    case REPLICATOR_FRESH:
        replicator_take_fresh(replicator, event->keys, event->keys_count, event->now_us);
        if (event->is_cut) {
            replicator_lose_fresh(replicator, event->now_us);
        }
        break;
    case REPLICATOR_FED:
        replicator->is_fed = event->is_good;
        break;
    case REPLICATOR_DAMAGED:
        replicator_report_damage(replicator, event->keys);
        break;
    case REPLICATOR_PERMIT:
        replicator->may_offer = event->is_good;
        break;
    }
}

/* ---- actions ---- */

static void replicator_begin_errands(struct replicator *replicator, uint64_t now_us) {
    struct copy_plan_task task;
    replicator_look_at_ring(replicator, now_us);
    replicator_begin_offers(replicator, now_us);
    replicator_begin_repair(replicator, now_us);
    replicator_begin_scrub(replicator, now_us);
    replicator_begin_watch(replicator, now_us);
    while (replicator_may_begin_task(replicator) && copy_plan_next(replicator->copy_plan, now_us, &task)) {
        replicator_begin_task(replicator, &task, now_us);
    }
    replicator_begin_sync(replicator, now_us);
}

bool replicator_next(struct replicator *replicator, uint64_t now_us, struct replicator_action *ret_action) {
    if (replicator->blames_count > 0) {
        const struct replicator_blame *blame = &replicator->blames[--replicator->blames_count];
        *ret_action = (struct replicator_action){
            .kind = REPLICATOR_BLAME, .peer = blame->peer, .sentence = blame->sentence};
        return true;
    }
    replicator_begin_errands(replicator, now_us);
    size_t slots_count = replicator_slots_count(replicator);
    for (size_t i = 0; i < slots_count; i++) {
        const struct errand *errand = replicator_errand(replicator, i);
        if (errand->state != ERRAND_FREE && !errand->is_out) {
            replicator_act(replicator, i, ret_action);
            return true;
        }
    }
    return replicator_next_fetch(replicator, now_us, ret_action);
}

static void replicator_note_earlier(uint64_t *at_us, uint64_t other_us) {
    *at_us = other_us < *at_us ? other_us : *at_us;
}

uint64_t replicator_wake_at(struct replicator *replicator, uint64_t now_us) {
    uint64_t at_us =
        replicator_may_take(replicator) ? transfer_wake_at(replicator->transfer, now_us) : UINT64_MAX;
    replicator_note_earlier(&at_us, replicator_offers_at(replicator));
    replicator_note_earlier(&at_us, replicator_repair_at(replicator));
    if (replicator_may_begin_task(replicator)) {
        replicator_note_earlier(&at_us, copy_plan_wake_at(replicator->copy_plan, now_us));
    }
    if (replicator_may_begin_sync(replicator)) {
        replicator_note_earlier(&at_us, full_sync_wake_at(&replicator->full_sync));
    }
    for (size_t i = 0; i < replicator->primary_watch.count && replicator_may_begin_watch(replicator); i++) {
        replicator_note_earlier(&at_us, replicator->primary_watch.watched[i].challenge_us);
    }
    return at_us;
}

/* ---- status ---- */

void replicator_status(const struct replicator *replicator, struct replicator_status *ret_status) {
    *ret_status = (struct replicator_status){
        .counts = replicator->counts,
        .wanted_count = (uint32_t)replicator_wanted_count(replicator),
        .unconfirmed_count = custody_count(replicator->custody, CUSTODY_OTHERS),
        .unconfirmed_own_count = custody_count(replicator->custody, CUSTODY_OWN),
        .is_checking = replicator->sweep.is_on,
        .is_full = replicator->is_full,
        .is_fed = replicator->is_fed,
        .damaged_count =
            (uint32_t)replicator->damaged_count + (replicator->repair.errand.state != ERRAND_FREE),
    };
    for (size_t i = 0; i + 1 < replicator_slots_count(replicator); i++) { /* reading again is none */
        ret_status->errands_count +=
            replicator_errand((struct replicator *)replicator, i)->state != ERRAND_FREE;
    }
}

const struct copy_plan *replicator_plan(const struct replicator *replicator) {
    return replicator->copy_plan;
}

const struct custody *replicator_custody(const struct replicator *replicator) {
    return replicator->custody;
}

const struct transfer *replicator_transfer(const struct replicator *replicator) {
    return replicator->transfer;
}

const struct proofs *replicator_proofs(const struct replicator *replicator) {
    return &replicator->proofs;
}

const struct full_sync *replicator_full_sync(const struct replicator *replicator) {
    return &replicator->full_sync;
}
