/*
 * charter - charters, memberships, tokens, greetings, decrees and acts from strangers.
 *
 *      byte 0        which of them
 *      the rest      its bytes, or the text of a token
 *
 * Signatures count as good, so that what is behind them is reached. What is read must be within its bounds
 * and, written again, give the same bytes.
 */
#include "protocol/ring/charter.h"

#include <stdlib.h>

#include "fuzz.h"
#include "protocol/ring/act.h"
#include "protocol/ring/greeting.h"

enum { KINDS_COUNT = 6 };

static bool believe(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                    const uint8_t signature[CHARTER_SIGNATURE_SIZE]) {
    (void)key;
    (void)context;
    (void)message;
    (void)signature;
    return true;
}

/* The signature that was there before. */
static void repeat(const void *signer, const char *context, struct bytes message,
                   uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    (void)context;
    (void)message;
    memcpy(out, signer, CHARTER_SIGNATURE_SIZE);
}

/* The version that its founder could sign next: one member less. */
static void try_next_charter(struct charter *charter) {
    struct charter *next = malloc(sizeof *next);
    struct sha256 sha256;
    uint8_t id[CHARTER_ID_SIZE];
    uint8_t next_id[CHARTER_ID_SIZE];
    enum err err = sha256_init(&sha256);
    ASSERT(next != NULL && err == ERR_OK);
    *next = *charter;
    ASSERT(charter_succeeds(charter, next, NULL) == ERR_EXISTS);
    next->version += next->version < UINT32_MAX;
    err = charter_remove(next, charter->founder);
    ASSERT(err != ERR_OK || charter_is_removed(next, charter->founder));
    ASSERT(charter_succeeds(charter, next, NULL) == (next->version > charter->version ? ERR_OK : ERR_EXISTS));
    charter_id(charter, &sha256, id);
    charter_id(next, &sha256, next_id);
    ASSERT(memcmp(id, next_id, sizeof id) == 0);
    next->mapping ^= 1;
    ASSERT(charter_succeeds(charter, next, NULL) == ERR_MISMATCH);
    next->created_s ^= 1;
    ASSERT(charter_succeeds(charter, next, NULL) == ERR_MISMATCH);
    sha256_done(&sha256);
    free(next);
}

static bool doubt(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                  const uint8_t signature[CHARTER_SIGNATURE_SIZE]) {
    return !believe(key, context, message, signature);
}

static void try_charter(struct bytes input) {
    struct charter *charter = malloc(sizeof *charter);
    uint8_t *again = malloc(CHARTER_SIZE_MAX);
    ASSERT(charter != NULL && again != NULL);
    ASSERT(charter_read(input, doubt, charter, NULL) != ERR_OK);
    ASSERT(charter_read_later(input, doubt, charter, NULL) != ERR_OK);
    bool is_later = charter_read_later(input, believe, charter, NULL) == ERR_OK;
    ASSERT(!is_later || charter_name_is_valid(bytes_of_string(charter->name)));
    ASSERT(!is_later || charter_read(input, believe, charter, NULL) == ERR_UNSUPPORTED);
    if (charter_read(input, believe, charter, NULL) == ERR_OK) {
        enum err err = charter_check(charter, NULL);
        ASSERT(err == ERR_OK);
        const uint8_t *signature = input.data + input.size - CHARTER_SIGNATURE_SIZE;
        ASSERT(bytes_equal(charter_write(charter, repeat, signature, again), input));
        for (size_t i = 0; i < charter->removed_count; i++) {
            ASSERT(charter_is_removed(charter, charter->removed[i]));
        }
        try_next_charter(charter);
    }
    free(again);
    free(charter);
}

static void try_membership(struct bytes input) {
    struct membership membership;
    uint8_t again[MEMBERSHIP_SIZE_MAX];
    if (membership_read(input, &membership, NULL) == ERR_OK) {
        ASSERT(bytes_equal(membership_write(&membership, again), input));
    }
}

static void try_token(struct bytes input) {
    struct sha256 sha256;
    struct invitation invitation;
    uint8_t seed[INVITATION_SEED_SIZE];
    char again[INVITATION_TOKEN_SIZE];
    enum err err = sha256_init(&sha256);
    ASSERT(err == ERR_OK);
    if (invitation_parse(input, &sha256, &invitation, seed, NULL) == ERR_OK) {
        invitation_format(&invitation, invitation.is_bearer ? seed : NULL, &sha256, again);
        ASSERT(bytes_equal_ignore_case(bytes_of_string(again), input));
    }
    sha256_done(&sha256);
}

static void try_greeting(struct bytes input) {
    struct greeting greeting;
    uint8_t again[GREETING_SIZE_MAX];
    if (greeting_read(input, &greeting, NULL) == ERR_OK) {
        ASSERT(bytes_equal(greeting_write(&greeting, again), input));
        ASSERT(greeting_reason_text(greeting.reason) != NULL);
    }
}

/* Under other charters. */
static void try_counting(const struct decree *decree, struct charter *charter) {
    static const uint8_t other[CHARTER_ID_SIZE] = {1};
    struct sha256 sha256;
    uint8_t id[DECREE_ID_SIZE];
    enum err err = sha256_init(&sha256);
    ASSERT(err == ERR_OK);
    decree_id(decree, &sha256, id);
    sha256_done(&sha256);
    ASSERT(decree_next_version(decree->version, 1) == 0 ||
           decree_next_version(decree->version, 1) > decree->version);
    bool is_other = memcmp(decree->ring, other, sizeof other) != 0;
    ASSERT(!is_other || decree_counts(decree, charter, other, 1, NULL, NULL) == ERR_MISMATCH);
    charter->members_may_add_jobs = !charter->members_may_add_jobs;
    (void)!decree_counts(decree, charter, decree->ring, 1, NULL, NULL);
    memcpy(charter->founder, decree->author, sizeof charter->founder);
    enum err as_founder = decree_counts(decree, charter, decree->ring, 1, NULL, NULL);
    ASSERT(as_founder == (decree->generation > 0 ? ERR_PERMISSION : ERR_OK)); /* there are no stewards */
    err = charter_remove(charter, decree->author);
    ASSERT(err == ERR_OK);
    memset(charter->founder, 0, sizeof charter->founder);
    (void)!decree_counts(decree, charter, decree->ring, 1, NULL, NULL);
}

static void try_decree(struct bytes input) {
    struct decree decree;
    struct charter *charter = calloc(1, sizeof *charter);
    uint8_t *again = malloc(DECREE_SIZE_MAX);
    ASSERT(charter != NULL && again != NULL);
    charter_init(charter);
    if (decree_read(input, believe, &decree, NULL) == ERR_OK) {
        const uint8_t *signature = input.data + input.size - CHARTER_SIGNATURE_SIZE;
        ASSERT(bytes_equal(decree_write(&decree, repeat, signature, again), input));
        bool counts = decree_counts(&decree, charter, decree.ring, decree.version, believe, NULL) == ERR_OK;
        ASSERT(!counts || decree.membership.is_there || decree_is_founders(&decree, charter));
        try_counting(&decree, charter);
    }
    free(again);
    free(charter);
}

/* Two stewards, who hand over to a third and themselves; version 2. */
static void make_stewards(struct charter *charter, const uint8_t *seed, size_t seed_size) {
    static const uint8_t zeros[CHARTER_SIGNATURE_SIZE];
    struct stewards stewards = {.count = 2, .keys = {{1}, {2}}};
    charter_init(charter);
    memset(stewards.needed, 2, sizeof stewards.needed);
    memcpy(charter->founder, seed, seed_size < PEER_KEY_SIZE ? seed_size : PEER_KEY_SIZE);
    charter->name[0] = 'f';
    enum err err = charter_hand_over(charter, &stewards, 1, repeat, zeros, NULL);
    ASSERT(err == ERR_OK);
}

/* What it would be under a charter that knows its ring, if it says one. */
static void try_meaning(struct act *act, struct charter *charters, uint8_t *memory) {
    struct act_meaning meaning;
    struct decree decree = {.generation = 0};
    uint8_t ring[CHARTER_ID_SIZE] = {0};
    bool is_decree = act->kind == ACT_DECREE && decree_read_body(act->body, &decree, NULL) == ERR_OK;
    make_stewards(&charters[0], decree.author, is_decree ? PEER_KEY_SIZE : 0);
    memcpy(ring, decree.ring, sizeof ring);
    for (uint64_t now_s = 1; now_s < UINT64_C(1) << 40; now_s <<= 4) {
        if (act_understand(act, &charters[0], ring, now_s, &charters[1], &meaning, NULL) != ERR_OK) {
            continue;
        }
        size_t count = act->signatures.count;
        ASSERT(act_clean(act, &meaning, &charters[0], believe) <= count);
        ASSERT(act_clean(act, &meaning, &charters[0], doubt) == 0);
        for (uint8_t key = 1; key <= 2; key++) {
            uint8_t signer[PEER_KEY_SIZE] = {key};
            enum err err = act_sign(act, &meaning, &charters[0], signer, repeat, memory);
            ASSERT(err == ERR_OK);
        }
        ASSERT(act_is_done(act, &meaning, &charters[0]));
        struct bytes done = act_write_done(act, &meaning, memory);
        if (act->kind == ACT_RULES || act->kind == ACT_STEWARDS) {
            enum err err = charter_read(done, believe, &charters[2], NULL);
            ASSERT(err == ERR_OK && charter_succeeds(&charters[0], &charters[2], NULL) == ERR_OK);
        }
        return;
    }
}

static void try_act(struct bytes input) {
    struct act act;
    struct charter *charters = malloc(3 * sizeof *charters);
    uint8_t *again = malloc((size_t)ACT_SIZE_MAX + CHARTER_SIZE_MAX);
    uint8_t id[ACT_ID_SIZE];
    ASSERT(charters != NULL && again != NULL);
    if (act_read(input, &act, NULL) == ERR_OK) {
        ASSERT(bytes_equal(act_write(&act, again), input));
        act_id(&act, id);
        memset(again, 0, CHARTER_SIGNATURE_SIZE);
        try_meaning(&act, charters, again);
    }
    free(again);
    free(charters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct bytes input = bytes_of(data + 1, size - 1);
    switch (data[0] % KINDS_COUNT) {
    case 0:
        try_charter(input);
        break;
    case 1:
        try_membership(input);
        break;
    case 2:
        try_token(input);
        break;
    case 3:
        try_greeting(input);
        break;
    case 4:
        try_decree(input);
        break;
    default:
        try_act(input);
    }
    return 0;
}
