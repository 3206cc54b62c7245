/* The groups on the ring's loop: their slots, their steps and their time. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/wire.h"
#include "net/datagram.h"
#include "net/identity.h"
#include "node/group/group_driver_code.h"
#include "node/group/group_driver_state.h"
#include "node/transport/transport.h"
#include "protocol/ring/membership.h"

/* ---- invitations: those of a ring (protocol/ring/invitation.h), with the id of the group ---- */

enum { US_PER_S = 1000000 };
_Static_assert((int)GROUP_ID_SIZE == (int)CHARTER_ID_SIZE, "one layout of invitations");
_Static_assert((int)MEMBERSHIP_PLAIN_SIZE_MAX <= (int)GROUP_PAPERS_SIZE_MAX, "papers hold a membership");

static uint64_t now_s(const struct group_driver *driver) {
    return (uint64_t)(clock_wall_us(driver->config.clock) / US_PER_S);
}

/* A token becomes the membership of this node. */
static bool use_token(struct group_driver *driver, const struct group_driver_slot *slot,
                      struct membership *membership, struct err_detail *detail) {
    struct invitation invitation;
    struct identity bearer;
    uint8_t seed[INVITATION_SEED_SIZE];
    if (invitation_parse(bytes_trim(bytes_of_string(slot->wish.token)), &driver->sha256, &invitation, seed,
                         detail) != ERR_OK) {
        return false;
    }
    bool is_ours = invitation.generation == 0 && memcmp(invitation.ring, slot->id, GROUP_ID_SIZE) == 0;
    if (!is_ours) {
        (void)err_set(detail, ERR_MISMATCH, "it is for another group");
    } else if (!invitation.is_bearer) {
        *membership = (struct membership){.is_there = true, .invitation = invitation};
    } else if (identity_from_seed(&bearer, seed) == ERR_OK) {
        membership_bind(membership, &invitation, driver->self.key, now_s(driver), identity_sign, &bearer);
        identity_done(&bearer);
    }
    sodium_memzero(seed, sizeof seed);
    return is_ours;
}

static struct bytes group_driver_write_papers(struct group_driver *driver,
                                              const struct group_driver_slot *slot,
                                              uint8_t out[GROUP_PAPERS_SIZE_MAX]) {
    struct membership membership = {0};
    struct err_detail detail = {0};
    if (slot->wish.token[0] != '\0' && !use_token(driver, slot, &membership, &detail)) {
        group_driver_note(driver, "group \"%s\": the token is not used: %s", slot->wish.name,
                          err_detail_text(&detail, ERR_INVALID));
    }
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    struct bytes papers = membership_write(&membership, memory);
    ASSERT(papers.size <= GROUP_PAPERS_SIZE_MAX); /* groups have no stewards */
    memcpy(out, memory, papers.size);
    return bytes_of(out, papers.size);
}

static bool group_driver_papers_are_good(struct group_driver *driver, const struct group_driver_slot *slot,
                                         const struct peer *peer, struct bytes papers) {
    struct membership membership = {0};
    bool is_read = papers.size > 0 && membership_read(papers, &membership, NULL) == ERR_OK;
    struct charter *charter = is_read ? calloc(1, sizeof *charter) : NULL;
    if (charter == NULL) {
        return false;
    }
    memcpy(charter->founder, slot->rules.founder, PEER_KEY_SIZE);
    for (size_t i = 0; i < slot->wish.refused.count; i++) {
        enum err err = charter_remove(charter, slot->wish.refused.keys[i]);
        ASSERT(err == ERR_OK); /* fewer than a charter has room for, and no two the same */
    }
    enum membership_verdict verdict =
        membership_judge(&membership, charter, slot->id, peer->key, now_s(driver), identity_verify);
    free(charter);
    return verdict == MEMBERSHIP_GOOD;
}

/* ---- what a group says ---- */

enum { SENTENCE_SIZE_MAX = 160 };

static void on_probe(struct group_driver *driver, struct wire_reader *reader, const struct peer *peer) {
    uint32_t size = wire_read_u32(reader);
    if (reader->err == ERR_OK) {
        group_driver_probe(driver, peer, size);
    }
}

/* True: the peer has not been seen before. The oldest makes room. */
static bool remember_asked(struct group_driver *driver, struct group_driver_slot *slot,
                           const struct peer *peer) {
    size_t oldest = 0;
    for (size_t i = 0; i < slot->asked_count; i++) {
        if (peer_equal(&slot->asked[i].peer, peer)) {
            return false;
        }
        oldest = slot->asked[i].at_us < slot->asked[oldest].at_us ? i : oldest;
    }
    size_t at = slot->asked_count < GROUP_DRIVER_ASKED_MAX ? slot->asked_count++ : oldest;
    slot->asked[at] = (struct group_driver_asked){.peer = *peer, .at_us = group_driver_now_us(driver)};
    return true;
}

static void on_asked(struct group_driver *driver, struct group_driver_slot *slot, const struct peer *peer,
                     struct bytes papers) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (group_driver_papers_are_good(driver, slot, peer, papers)) {
        ASSERT(slot->approvals_count < GROUP_DRIVER_ASKED_MAX); /* one in a step */
        slot->approvals[slot->approvals_count++] = *peer;
        return;
    }
    if (remember_asked(driver, slot, peer)) {
        group_driver_note(driver, "group \"%s\": %s wants to join%s", slot->wish.name,
                          address_format(&peer->address, address),
                          slot->rules.admission == GROUP_ADMISSION_INVITE
                              ? " and has no good invitation"
                              : "; \"mnemon group approve\" lets it in");
    }
}

static void on_committed(struct group_driver *driver, struct group_driver_slot *slot) {
    const struct topology *topology = group_topology(slot->group);
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (topology != NULL) {
        for (uint32_t i = 0; i < topology->members_count; i++) {
            for (size_t k = slot->asked_count; k-- > 0;) {
                if (memcmp(slot->asked[k].peer.key, topology->members[i].key, PEER_KEY_SIZE) == 0) {
                    slot->asked[k] = slot->asked[--slot->asked_count];
                }
            }
        }
        group_driver_note(driver, "group \"%s\": topology %u.%u of %u member%s, master %s", slot->wish.name,
                          group_term(slot->group), group_sequence(slot->group), topology->members_count,
                          topology->members_count == 1 ? "" : "s",
                          address_format(&topology->members[0].address, address));
    }
    group_driver_show(driver, slot, true);
}

static void on_out(struct group_driver *driver, struct group_driver_slot *slot) {
    if (slot->wish.is_leaving) {
        group_driver_remove(driver, slot);
    } else {
        group_driver_note(driver, "group \"%s\": this node was dropped, and asks to join again",
                          slot->wish.name);
    }
}

static void on_blamed(struct group_driver *driver, const struct peer *peer, struct bytes text) {
    char sentence[SENTENCE_SIZE_MAX];
    snprintf(sentence, sizeof sentence, "sends what makes no sense to a group: %.*s", BYTES_ARG(text));
    transport_blame(driver->transport, peer, sentence);
}

static void on_peer(struct group_driver *driver, struct group_driver_slot *slot,
                    const struct action *action) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, action->bytes);
    peer_read(&reader, PEER_MEMBER, &peer);
    if (action->code == GROUP_PROBE) {
        on_probe(driver, &reader, &peer);
        return;
    }
    struct bytes rest = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err == ERR_OK && action->code == GROUP_ASKED) {
        on_asked(driver, slot, &peer, rest);
    } else if (reader.err == ERR_OK) {
        on_blamed(driver, &peer, rest);
    }
}

static void group_driver_on_notice(struct group_driver *driver, struct group_driver_slot *slot,
                                   const struct action *action) {
    switch ((enum group_notice)action->code) {
    case GROUP_PROBE:
    case GROUP_ASKED:
    case GROUP_BLAMED:
        on_peer(driver, slot, action);
        break;
    case GROUP_COMMITTED:
        on_committed(driver, slot);
        break;
    case GROUP_REFUSED:
        slot->is_refused = true;
        group_driver_note(driver, "group \"%s\": its master refuses this node", slot->wish.name);
        break;
    case GROUP_OUT:
        on_out(driver, slot);
        break;
    case GROUP_MASTER:
        group_driver_note(driver, "group \"%s\": this node is its master now", slot->wish.name);
        break;
    case GROUP_YIELDED:
        group_driver_note(driver, "group \"%s\": another node is its master now", slot->wish.name);
        break;
    }
}

enum {
    ID_OFFSET = 2, /* in a message: behind version and kind (protocol/group/group_message.h) */
    US_PER_MS = 1000,
    PERIOD_MINUTES = 15, /* the paper's, as all that is reckoned from it */
    SILENCE_MINUTES = 60,
    GATHER_US_MIN = 100 * US_PER_MS,
};

#define SIGNATURE_CONTEXT "mnemon group 1"

/* ---- making ---- */

static void sign_message(void *context, struct bytes bytes, uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    const struct group_driver *driver = context;
    identity_sign(transport_identity(driver->transport), SIGNATURE_CONTEXT, bytes, signature);
}

static bool verify(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes bytes,
                   const uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    (void)context;
    return identity_verify(key, SIGNATURE_CONTEXT, bytes, signature);
}

static uint64_t or_minutes(uint64_t value_us, uint64_t minutes) {
    return value_us > 0 ? value_us : minutes * 60 * 1000 * US_PER_MS;
}

static uint64_t at_least(uint64_t value_us, uint64_t min_us) {
    return value_us > min_us ? value_us : min_us;
}

/* With the defaults of the settings, those of group.h come out. */
static void set_times(const struct group_driver_config *from, struct group_config *config) {
    uint64_t period_us = or_minutes(from->period_us, PERIOD_MINUTES);
    uint64_t silence_us = or_minutes(from->silence_us, SILENCE_MINUTES);
    config->echo_us = period_us;
    config->report_us = 2 * period_us;
    config->probe_us = 4 * period_us;
    config->compute_us = 4 * period_us;
    config->slowing_us = 6 * period_us;
    config->fast_us = at_least(period_us / 90, GATHER_US_MIN);
    config->gather_us = at_least(period_us / 180, GATHER_US_MIN);
    config->silence_us = silence_us;
    config->master_silence_us = silence_us / 4;
    config->pulse_us = silence_us / 12;
    config->order_us = at_least(silence_us / 120, GATHER_US_MIN);
}

static enum err make_group(struct group_driver *driver, struct group_driver_slot *slot) {
    struct group_config config = {
        .self = driver->self,
        .signer = {.context = driver, .sign = sign_message, .verify = verify},
        .is_open = slot->rules.admission == GROUP_ADMISSION_OPEN,
        .kind = (enum topology_kind)slot->rules.generator,
        .connectivity = slot->rules.k,
        .neighbours = slot->wish.neighbours,
        .neighbours_count = (uint16_t)slot->wish.neighbours_count,
    };
    set_times(&driver->config, &config);
    group_files_id(bytes_of_string(slot->wish.name), slot->rules.founder, &driver->sha256, slot->id);
    memcpy(config.id, slot->id, sizeof config.id);
    memcpy(config.founder, slot->rules.founder, PEER_KEY_SIZE);
    randombytes_buf(&config.seed, sizeof config.seed);
    return group_new(&config, &slot->group);
}

/* ---- steps ---- */

static void group_step_once(struct group_driver *driver, struct group_driver_slot *slot,
                            struct event *event) {
    struct outbox *out = &driver->out;
    event->now_us = group_driver_now_us(driver);
    outbox_clear(out);
    group_step(slot->group, event, out);
    slot->wake_at_us = out->wake_at_us;
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        struct peer to = {.address = action->to};
        switch (action->kind) {
        case ACTION_SEND:
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            transport_send(driver->transport, &to, DATAGRAM_GROUP, action->bytes);
            break;
        case ACTION_SAVE:
            group_driver_save(driver, slot, &action->number, action->bytes);
            break;
        case ACTION_NOTICE:
            group_driver_on_notice(driver, slot, action);
            break;
        }
    }
}

void group_driver_step(struct group_driver *driver, struct group_driver_slot *slot, struct event *event) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    enum group_mode mode = group_mode(slot->group);
    group_step_once(driver, slot, event);
    while (slot->approvals_count > 0) {
        struct peer peer = slot->approvals[--slot->approvals_count];
        struct event approval = {.kind = EVENT_COMMAND, .code = GROUP_APPROVE};
        approval.bytes = group_write_peer(&peer, bytes_of(NULL, 0), memory);
        group_step_once(driver, slot, &approval);
    }
    group_driver_show(driver, slot, group_mode(slot->group) != mode);
}

void group_driver_set_timer(struct group_driver *driver) {
    uint64_t at_us = STEP_NEVER_US;
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        const struct group_driver_slot *slot = &driver->slots[i];
        if (slot->is_used) {
            at_us = slot->wake_at_us < at_us ? slot->wake_at_us : at_us;
            at_us = slot->ask.due_us < at_us ? slot->ask.due_us : at_us;
        }
    }
    transport_wake_at(driver->transport, DATAGRAM_GROUP, at_us);
}

/* ---- slots ---- */

static bool is_founder(const struct group_driver *driver, const struct group_driver_slot *slot) {
    return memcmp(slot->rules.founder, driver->self.key, PEER_KEY_SIZE) == 0;
}

/* False: without memory. */
static bool start_group(struct group_driver *driver, struct group_driver_slot *slot, struct bytes document) {
    if (make_group(driver, slot) != ERR_OK) {
        group_driver_note(driver, "group \"%s\": %s", slot->wish.name, err_text(ERR_MEMORY));
        return false;
    }
    if (document.size > 0) {
        struct event restored = {.kind = EVENT_RESTORED, .code = GROUP_SLOT, .bytes = document};
        group_driver_step(driver, slot, &restored);
    }
    group_driver_step(driver, slot, &(struct event){.kind = EVENT_START});
    return true;
}

void group_driver_open_slot(struct group_driver *driver, struct group_driver_slot *slot,
                            const struct group_driver_news *news) {
    uint32_t life = slot->life + 1;
    bool is_restored = news->has_state && news->state.document_size > 0;
    struct topology *topology = slot->topology;
    pthread_mutex_lock(&driver->lock);
    *slot = (struct group_driver_slot){.is_used = true,
                                       .life = life,
                                       .wish = news->wish,
                                       .rules = news->wish.rules,
                                       .wake_at_us = STEP_NEVER_US,
                                       .ask.due_us = STEP_NEVER_US,
                                       .topology = topology};
    pthread_mutex_unlock(&driver->lock);
    if (!peer_key_is_known(slot->rules.founder) && news->has_state) {
        slot->rules = news->state.rules;
    }
    bool is_known = peer_key_is_known(slot->rules.founder) || slot->wish.neighbours_count > 0;
    if (is_known &&
        !start_group(driver, slot,
                     bytes_of(news->state.document, is_restored ? news->state.document_size : 0))) {
        return;
    }
    if (is_known && group_mode(slot->group) == GROUP_IDLE && is_founder(driver, slot) && !news->has_state) {
        group_driver_step(driver, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_CREATE});
    }
    if (slot->wish.contact.port != 0 && (!is_known || group_mode(slot->group) == GROUP_IDLE)) {
        slot->ask.due_us = 0;
    }
    group_driver_show(driver, slot, true);
}

void group_driver_close_slot(struct group_driver *driver, struct group_driver_slot *slot) {
    group_driver_hide(driver, slot);
    group_free(slot->group);
    slot->group = NULL;
    slot->is_used = false;
}

/* The contact has spoken: the rules are those of the slot. */
static void group_driver_found(struct group_driver *driver, struct group_driver_slot *slot,
                               const struct peer *contact) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t papers[GROUP_PAPERS_SIZE_MAX];
    if (slot->group == NULL) {
        group_driver_save(driver, slot, NULL, bytes_of(NULL, 0));
        if (!start_group(driver, slot, bytes_of(NULL, 0))) {
            return;
        }
    }
    struct event join = {.kind = EVENT_COMMAND, .code = GROUP_JOIN};
    join.bytes = group_write_peer(contact, group_driver_write_papers(driver, slot, papers), memory);
    group_driver_step(driver, slot, &join);
}

/* ---- whose group is it? ---- */

/*
 * A node that joins knows a name and an address. The contact tells it the founder's key, from which the
 * group's id follows, and the rules (group_driver_code.h). The contact is believed because people have chosen
 * it; a token names the group itself.
 */

enum { TRIES_DOUBLED = 5 };
static const uint64_t TRY_US = 1000000; /* doubles with each try that is not answered, to half a minute */

static void group_say(struct group_driver *driver, const struct peer *to,
                      const struct group_driver_message *message) {
    uint8_t memory[GROUP_DRIVER_CODE_SIZE_MAX];
    transport_send(driver->transport, to, DATAGRAM_GROUP, group_driver_code_write(message, memory));
}

static void group_driver_ask(struct group_driver *driver, struct group_driver_slot *slot) {
    struct peer contact = {.address = slot->wish.contact}; /* whoever is there */
    char address[ADDRESS_TEXT_SIZE_MAX];
    retry_sent_doubling(&slot->ask, TRY_US, TRY_US << TRIES_DOUBLED, group_driver_now_us(driver));
    if (slot->ask.tries_count == TRIES_DOUBLED) {
        group_driver_note(driver, "group \"%s\": no answer from %s yet", slot->wish.name,
                          address_format(&slot->wish.contact, address));
    }
    struct group_driver_message message = {.kind = GROUP_DRIVER_ASK,
                                           .name = bytes_of_string(slot->wish.name)};
    group_say(driver, &contact, &message);
}

struct group_driver_slot *group_driver_find(struct group_driver *driver, struct bytes name) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &driver->slots[i];
        if (slot->is_used && bytes_equal(name, bytes_of_string(slot->wish.name))) {
            return slot;
        }
    }
    return NULL;
}

static void on_ask(struct group_driver *driver, const struct peer *from, struct bytes name) {
    const struct group_driver_slot *slot = group_driver_find(driver, name);
    bool is_member = slot != NULL && slot->group != NULL && group_mode(slot->group) == GROUP_MEMBER;
    struct group_driver_message message = {.kind = is_member ? GROUP_DRIVER_TELL : GROUP_DRIVER_NONE,
                                           .name = name};
    if (is_member) {
        message.rules = slot->rules;
    }
    group_say(driver, from, &message);
}

static void on_tell(struct group_driver *driver, const struct peer *from, struct bytes name,
                    const struct group_rules *rules) {
    struct group_driver_slot *slot = group_driver_find(driver, name);
    if (slot == NULL || slot->ask.due_us == STEP_NEVER_US ||
        !address_equal(&slot->wish.contact, &from->address)) {
        return; /* nobody asked it */
    }
    slot->ask.due_us = STEP_NEVER_US;
    if (peer_key_is_known(slot->rules.founder) &&
        memcmp(slot->rules.founder, rules->founder, PEER_KEY_SIZE) != 0) {
        group_driver_note(driver, "group \"%s\": the contact is in another group of that name",
                          slot->wish.name);
        return;
    }
    slot->rules = *rules;
    group_driver_found(driver, slot, from);
    group_driver_set_timer(driver);
}

static void on_none(struct group_driver *driver, const struct peer *from, struct bytes name) {
    struct group_driver_slot *slot = group_driver_find(driver, name);
    char address[ADDRESS_TEXT_SIZE_MAX];
    bool is_asked = slot != NULL && slot->ask.due_us != STEP_NEVER_US &&
                    address_equal(&slot->wish.contact, &from->address);
    if (!is_asked) {
        return;
    }
    slot->ask = (struct retry){.due_us = group_driver_now_us(driver) + TRY_US}; /* it may come into it */
    if (!slot->is_told) {
        slot->is_told = true;
        group_driver_note(driver, "group \"%s\": %s is not in it (yet)", slot->wish.name,
                          address_format(&from->address, address));
    }
    group_driver_set_timer(driver);
}

/* True: it was one of these, or malformed. */
static bool group_driver_ask_receive(struct group_driver *driver, const struct datagram_message *message) {
    struct group_driver_message read;
    if (message->bytes.size == 0 || message->bytes.data[0] != 0) {
        return message->bytes.size == 0;
    }
    if (group_driver_code_read(message->bytes, &read) != ERR_OK) {
        return true;
    }
    switch (read.kind) {
    case GROUP_DRIVER_ASK:
        on_ask(driver, &message->from, read.name);
        break;
    case GROUP_DRIVER_TELL:
        on_tell(driver, &message->from, read.name, &read.rules);
        break;
    case GROUP_DRIVER_NONE:
        on_none(driver, &message->from, read.name);
        break;
    }
    return true;
}

/* ---- what comes ---- */

static struct group_driver_slot *find_by_id(struct group_driver *driver, struct bytes id) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &driver->slots[i];
        if (slot->is_used && slot->group != NULL && bytes_equal(id, bytes_of(slot->id, GROUP_ID_SIZE))) {
            return slot;
        }
    }
    return NULL;
}

void group_driver_receive(void *context, const struct datagram_message *message) {
    struct group_driver *driver = context;
    struct bytes bytes = message->bytes;
    if (!driver->is_begun || driver->is_stopped || group_driver_ask_receive(driver, message) ||
        bytes.size < ID_OFFSET + GROUP_ID_SIZE) {
        return;
    }
    struct group_driver_slot *slot =
        find_by_id(driver, bytes_slice(bytes, ID_OFFSET, ID_OFFSET + GROUP_ID_SIZE));
    if (slot == NULL || slot->is_removed) {
        return; /* of a group that we are not in: nobody's fault */
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    group_driver_step(driver, slot, &event);
    group_driver_set_timer(driver);
}

void group_driver_wake(void *context) {
    struct group_driver *driver = context;
    if (!driver->is_begun || driver->is_stopped) {
        return;
    }
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &driver->slots[i];
        uint64_t now_us = group_driver_now_us(driver);
        if (slot->is_used && slot->group != NULL && now_us >= slot->wake_at_us) {
            group_driver_step(driver, slot, &(struct event){.kind = EVENT_WAKE});
        }
        if (slot->is_used && retry_is_due(&slot->ask, now_us)) {
            group_driver_ask(driver, slot);
        }
    }
    group_driver_set_timer(driver);
}
