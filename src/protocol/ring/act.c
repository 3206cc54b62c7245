#include "protocol/ring/act.h"

enum { LAYOUT = 1, US_PER_S = 1000000 };
static const char magic[4] = {'m', 'n', 'a', 'c'};

_Static_assert((int)ACT_BODY_SIZE_MAX >= (int)CHARTER_RULES_SIZE_MAX, "an amendment has room");
_Static_assert((int)CHARTER_SIZE_MAX >= (int)DECREE_SIZE_MAX, "a decree has room where a charter has");

const char *act_kind_name(enum act_kind kind) {
    return kind == ACT_RULES        ? "amendment"
           : kind == ACT_STEWARDS   ? "stewards"
           : kind == ACT_INVITATION ? "invitation"
                                    : "decree";
}

/* ---- encoding ---- */

struct bytes act_write(const struct act *act, uint8_t *out) {
    struct wire_writer writer;
    ASSERT(act->body.size <= ACT_BODY_SIZE_MAX);
    wire_writer_init(&writer, out, ACT_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u8(&writer, LAYOUT);
    wire_write_u8(&writer, (uint8_t)act->kind);
    wire_write_string(&writer, act->body);
    steward_signatures_write(&writer, &act->signatures);
    return wire_writer_bytes(&writer);
}

enum err act_read(struct bytes input, struct act *ret_act, struct err_detail *detail) {
    struct act act = {.kind = ACT_RULES};
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    wire_read_magic(&reader, bytes_of(magic, sizeof magic), "no act");
    wire_read_version(&reader, LAYOUT, "an act of a later layout");
    uint8_t kind = wire_read_u8(&reader);
    if (reader.err == ERR_OK && kind > ACT_DECREE) {
        wire_read_fail(&reader, ERR_UNSUPPORTED, "an act of a later kind");
    }
    wire_read_check(&reader, kind >= ACT_RULES, "an act of no kind");
    act.kind = (enum act_kind)(reader.err == ERR_OK ? kind : ACT_RULES);
    act.body = wire_read_string(&reader, ACT_BODY_SIZE_MAX);
    steward_signatures_read(&reader, &act.signatures);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_act = act;
    }
    return err;
}

void act_id(const struct act *act, uint8_t out[ACT_ID_SIZE]) {
    uint8_t kind = (uint8_t)act->kind;
    uint8_t digest[SHA256_SIZE];
    struct sha256 sha256;
    sha256_start(&sha256);
    sha256_update(&sha256, bytes_of(&kind, 1));
    sha256_update(&sha256, act->body);
    sha256_finish(&sha256, digest);
    memcpy(out, digest, ACT_ID_SIZE);
}

/* ---- what it would be ---- */

static enum err act_understand_charter(const struct act *act, const struct charter *charter,
                                       struct act_meaning *meaning, struct err_detail *detail) {
    enum charter_act change = act->kind == ACT_RULES ? CHARTER_ACT_RULES : CHARTER_ACT_STEWARDS;
    meaning->power = STEWARD_AMEND;
    meaning->context = act->kind == ACT_RULES ? CHARTER_RULES_CONTEXT : CHARTER_LINK_CONTEXT;
    meaning->message_size = SHA256_SIZE;
    enum err err = charter_apply(charter, change, act->body, meaning->next, meaning->message, detail);
    meaning->made_s = meaning->next->signed_s;
    return err;
}

static enum err act_understand_invitation(const struct act *act, const struct charter *charter,
                                          const uint8_t ring[CHARTER_ID_SIZE], struct act_meaning *meaning,
                                          struct err_detail *detail) {
    struct invitation *invitation = &meaning->invitation;
    enum err err = invitation_read_body(act->body, invitation, detail);
    if (err != ERR_OK) {
        return err;
    }
    meaning->power = STEWARD_INVITE;
    meaning->made_s = invitation->from_s;
    meaning->context = INVITATION_STEWARDS_CONTEXT;
    meaning->message_size = invitation_write_body(invitation, meaning->message).size;
    if (memcmp(invitation->ring, ring, CHARTER_ID_SIZE) != 0) {
        return err_set(detail, ERR_MISMATCH, "it is of another ring");
    }
    return invitation->generation == charter_generation(charter)
               ? ERR_OK
               : err_set(detail, ERR_EXISTS, "the stewards have changed since");
}

static enum err act_understand_decree(const struct act *act, const struct charter *charter,
                                      const uint8_t ring[CHARTER_ID_SIZE], struct act_meaning *meaning,
                                      struct err_detail *detail) {
    struct decree *decree = &meaning->decree;
    enum err err = decree_read_body(act->body, decree, detail);
    if (err != ERR_OK) {
        return err;
    }
    meaning->power = decree_power(decree);
    meaning->made_s = decree->version / US_PER_S;
    meaning->context = DECREE_STEWARDS_CONTEXT;
    meaning->message_size = SHA256_SIZE;
    decree_digest(decree, meaning->message);
    if (memcmp(decree->ring, ring, CHARTER_ID_SIZE) != 0 || !decree_is_founders(decree, charter)) {
        return err_set(detail, ERR_MISMATCH, "it is of another ring");
    }
    return decree->generation == charter_generation(charter)
               ? ERR_OK
               : err_set(detail, ERR_EXISTS, "the stewards have changed since");
}

enum err act_understand(const struct act *act, const struct charter *charter,
                        const uint8_t ring[CHARTER_ID_SIZE], uint64_t now_s, struct charter *next,
                        struct act_meaning *ret_meaning, struct err_detail *detail) {
    *ret_meaning = (struct act_meaning){.next = next};
    enum err err = act->kind == ACT_INVITATION
                       ? act_understand_invitation(act, charter, ring, ret_meaning, detail)
                   : act->kind == ACT_DECREE ? act_understand_decree(act, charter, ring, ret_meaning, detail)
                                             : act_understand_charter(act, charter, ret_meaning, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (ret_meaning->made_s > now_s + ACT_EARLY_S) {
        return err_set(detail, ERR_TIMEOUT, "it was made later than now");
    }
    return now_s > ret_meaning->made_s + ACT_LASTS_S
               ? err_set(detail, ERR_TIMEOUT, "it was not signed by enough stewards in %d days",
                         ACT_LASTS_S / 86400)
               : ERR_OK;
}

/* ---- signatures ---- */

static struct bytes act_message(const struct act_meaning *meaning) {
    return bytes_of(meaning->message, meaning->message_size);
}

size_t act_clean(struct act *act, const struct act_meaning *meaning, const struct charter *charter,
                 charter_verify *verify) {
    struct steward_signatures good = {.count = 0};
    for (size_t i = 0; i < act->signatures.count; i++) {
        const struct steward_signature *item = &act->signatures.items[i];
        if (charter_is_steward(charter, item->key) &&
            verify(item->key, meaning->context, act_message(meaning), item->signature)) {
            good.items[good.count++] = *item;
        }
    }
    act->signatures = good;
    return good.count;
}

size_t act_merge(struct act *act, const struct steward_signatures *signatures) {
    size_t count = 0;
    for (size_t i = 0; i < signatures->count; i++) {
        count += steward_signatures_add(&act->signatures, &signatures->items[i]) == ERR_OK;
    }
    return count;
}

unsigned act_needed(const struct act_meaning *meaning, const struct charter *charter) {
    struct stewards stewards;
    charter_stewards(charter, charter_generation(charter), &stewards);
    return stewards.needed[meaning->power];
}

bool act_is_done(const struct act *act, const struct act_meaning *meaning, const struct charter *charter) {
    return act->signatures.count >= act_needed(meaning, charter);
}

enum err act_sign(struct act *act, const struct act_meaning *meaning, const struct charter *charter,
                  const uint8_t key[PEER_KEY_SIZE], charter_sign *sign, const void *signer) {
    struct steward_signature signature;
    if (!charter_is_steward(charter, key)) {
        return ERR_PERMISSION;
    }
    memcpy(signature.key, key, PEER_KEY_SIZE);
    sign(signer, meaning->context, act_message(meaning), signature.signature);
    return steward_signatures_add(&act->signatures, &signature);
}

bool act_excludes(const struct act *act, const struct act *other) {
    bool is_charter = act->kind == ACT_RULES || act->kind == ACT_STEWARDS;
    bool is_other_charter = other->kind == ACT_RULES || other->kind == ACT_STEWARDS;
    return is_charter && is_other_charter;
}

struct bytes act_write_done(const struct act *act, struct act_meaning *meaning, uint8_t *out) {
    struct wire_writer writer;
    switch (act->kind) {
    case ACT_INVITATION:
        meaning->invitation.signatures = act->signatures;
        wire_writer_init(&writer, out, INVITATION_SIZE_MAX);
        invitation_write(&writer, &meaning->invitation);
        return wire_writer_bytes(&writer);
    case ACT_DECREE:
        meaning->decree.signatures = act->signatures;
        return decree_write(&meaning->decree, NULL, NULL, out);
    default:
        charter_take_signatures(meaning->next,
                                act->kind == ACT_RULES ? CHARTER_ACT_RULES : CHARTER_ACT_STEWARDS,
                                &act->signatures);
        return charter_write(meaning->next, NULL, NULL, out);
    }
}
