#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/utc.h"
#include "cli/act.h"
#include "cli/commands.h"
#include "cli/ring.h"
#include "crawl/rules/pattern.h"
#include "node/transport/ring_files.h"

enum { EXPIRES_S_DEFAULT = 7 * 86400, US_PER_S = 1000000, PORT_DEFAULT = 7070 };

/* A founder, or a steward, at work. Large: on the heap. */
struct founding {
    struct cli *cli;
    const char *directory;
    struct identity identity;
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
};

static uint64_t now_s(const struct cli *cli) {
    return (uint64_t)(clock_wall_us(cli->clock) / US_PER_S);
}

static void founding_free(struct founding *founding) {
    identity_done(&founding->identity);
    free(founding);
}

/* NULL after the error. */
static struct founding *founding_new(struct cli *cli, const struct data *data) {
    struct err_detail detail = {0};
    struct founding *founding = calloc(1, sizeof *founding);
    if (founding == NULL) {
        cli_fail(cli, "%s", err_text(ERR_MEMORY));
        return NULL;
    }
    founding->cli = cli;
    founding->directory = data->directory;
    enum err err = identity_load(&founding->identity, data->directory, &detail);
    if (err != ERR_OK) {
        cli_fail(cli, "%s", err_detail_text(&detail, err));
        founding_free(founding);
        return NULL;
    }
    return founding;
}

static enum err read_charter(struct founding *founding, struct err_detail *detail) {
    struct bytes encoded;
    return ring_files_read_charter(founding->directory, &founding->charter, founding->encoded, &encoded,
                                   detail);
}

/* The same if this node acts for a ring already: as its founder, alone, or as one of its stewards. */
static struct founding *founding_open(struct cli *cli, const struct data *data) {
    struct err_detail detail = {0};
    struct founding *founding = founding_new(cli, data);
    if (founding == NULL) {
        return NULL;
    }
    enum err err = read_charter(founding, &detail);
    if (err == ERR_OK && !charter_is_steward(&founding->charter, founding->identity.key)) {
        err = err_set(&detail, ERR_PERMISSION,
                      charter_generation(&founding->charter) > 0
                          ? "only the stewards of \"%s\" can do this, on their machines"
                          : "only the founder of \"%s\" can do this, on the machine where it was created",
                      founding->charter.name);
    }
    if (err != ERR_OK) {
        cli_fail(cli, "%s", err_detail_text(&detail, err));
        founding_free(founding);
        return NULL;
    }
    return founding;
}

/* ---- what the options say ---- */

static int set_scope(struct cli *cli, const struct option_list *given, struct charter *charter) {
    struct pattern_list patterns;
    struct err_detail detail = {0};
    enum err err = ERR_OK;
    if (given->count == 0) {
        return CLI_DONE;
    }
    bool is_any = given->count == 1 && strcmp(given->items[0], "any") == 0;
    size_t count = is_any ? 0 : given->count;
    if (count > CHARTER_SCOPE_COUNT_MAX) {
        return cli_usage(cli, &ring_command, "use at most %d patterns", CHARTER_SCOPE_COUNT_MAX);
    }
    pattern_list_init(&patterns);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        struct bytes text = bytes_of_string(given->items[i]);
        err = text.size > CHARTER_PATTERN_SIZE_MAX
                  ? err_set(&detail, ERR_LIMIT, "longer than %d bytes", CHARTER_PATTERN_SIZE_MAX)
                  : pattern_list_add(&patterns, text, &detail);
        if (err != ERR_OK) {
            cli_usage(cli, &ring_command, "--scope \"%s\": %s", given->items[i],
                      err_detail_text(&detail, err));
        } else {
            charter->scope[i].size = (uint8_t)text.size;
            memcpy(charter->scope[i].text, text.data, text.size);
        }
    }
    pattern_list_done(&patterns);
    charter->scope_count = (uint32_t)count;
    return err == ERR_OK ? CLI_DONE : CLI_USAGE;
}

static int set_rules(struct cli *cli, const struct ring_options *options, struct charter *charter) {
    struct err_detail detail = {0};
    if (options->open && options->invited) {
        return cli_usage(cli, &ring_command, "use either --open or --invite");
    }
    charter->replicas = options->replicas > 0 ? (uint8_t)options->replicas : charter->replicas;
    charter->witnesses = options->witnesses > 0 ? (uint8_t)options->witnesses : charter->witnesses;
    charter->list_size = options->list_size > 0 ? (uint8_t)options->list_size : charter->list_size;
    charter->mapping = options->mapping != RING_NOT_GIVEN ? (uint8_t)options->mapping : charter->mapping;
    charter->period_s =
        options->period_us > 0 ? (uint32_t)(options->period_us / US_PER_S) : charter->period_s;
    charter->is_open = options->open || (charter->is_open && !options->invited);
    charter->members_may_add_jobs =
        options->jobs != RING_NOT_GIVEN ? options->jobs == 0 : charter->members_may_add_jobs;
    int status = set_scope(cli, &options->scope, charter);
    if (status != CLI_DONE) {
        return status;
    }
    enum err err = charter_check(charter, &detail);
    return err == ERR_OK ? CLI_DONE : cli_usage(cli, &ring_command, "%s", detail.text);
}

/* ---- create, amend, remove ---- */

static int found_keep(struct founding *founding) {
    struct err_detail detail = {0};
    struct charter *charter = &founding->charter;
    charter->signed_s = now_s(founding->cli);
    struct bytes encoded = charter_write(charter, identity_sign, &founding->identity, founding->encoded);
    enum err err = ring_files_write_charter(founding->directory, encoded, &detail);
    return err == ERR_OK ? CLI_DONE : cli_fail(founding->cli, "%s", err_detail_text(&detail, err));
}

static void print_created(struct cli *cli, const struct founding *founding) {
    char key[IDENTITY_TEXT_SIZE];
    const struct charter *charter = &founding->charter;
    fprintf(cli->out, "ring \"%s\" created; its founder is this node, %s\n", charter->name,
            identity_key_format(founding->identity.key, key));
    fprintf(cli->out, "start it:         mnemon serve --address IP\n");
    if (charter->is_open) {
        fprintf(cli->out, "others join with: mnemon serve --address THEIR_IP --join IP:%d\n", PORT_DEFAULT);
    } else {
        fprintf(cli->out,
                "invite others:    mnemon ring invite\n"
                "they join with:   mnemon serve --address THEIR_IP --join IP:%d --token TOKEN\n",
                PORT_DEFAULT);
    }
}

int ring_create(struct cli *cli, const struct data *data, const struct ring_options *options,
                const char *name) {
    struct err_detail detail = {0};
    if (!charter_name_is_valid(bytes_of_string(name))) {
        return cli_usage(cli, &ring_command,
                         "\"%s\" is not a valid name: use 1 to %d letters, digits, '.', '_' or '-'", name,
                         CHARTER_NAME_SIZE_MAX);
    }
    if (data_make_directory(data) != CLI_DONE) {
        return CLI_FAILED;
    }
    struct founding *founding = founding_new(cli, data);
    if (founding == NULL) {
        return CLI_FAILED;
    }
    struct charter *charter = &founding->charter;
    int status = CLI_DONE;
    enum err err = read_charter(founding, &detail);
    if (err == ERR_OK) {
        status = cli_fail(cli, "%s is already in the ring \"%s\"; leave it first: mnemon ring leave",
                          data->directory, charter->name);
    } else if (err != ERR_NOT_FOUND) {
        status = cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    if (status == CLI_DONE) {
        charter_init(charter);
        snprintf(charter->name, sizeof charter->name, "%s", name);
        memcpy(charter->founder, founding->identity.key, PEER_KEY_SIZE);
        charter->created_s = now_s(cli);
        status = set_rules(cli, options, charter);
    }
    if (status == CLI_DONE) {
        status = found_keep(founding);
    }
    if (status == CLI_DONE) {
        print_created(cli, founding);
    }
    founding_free(founding);
    return status;
}

static void print_version(struct cli *cli, const struct founding *founding) {
    fprintf(cli->out, "version %u of \"%s\" signed; it spreads when this node runs\n",
            founding->charter.version, founding->charter.name);
}

/* ---- with stewards ---- */

static bool found_has_stewards(const struct founding *founding) {
    return charter_generation(&founding->charter) > 0;
}

/* What a change of the charter becomes if stewards must agree: signed here, and given to the others. */
static int found_propose(struct founding *founding, enum act_kind kind, struct bytes body,
                         char ret_id[ACTS_ID_TEXT_SIZE], bool *ret_is_done) {
    struct err_detail detail = {0};
    struct cli *cli = founding->cli;
    struct charter *charter = malloc(sizeof *charter);
    struct act act = {.kind = kind, .body = body};
    struct acts *acts = NULL;
    struct bytes encoded;
    enum err err = charter == NULL ? ERR_MEMORY : ERR_OK;
    err = err == ERR_OK
              ? ring_files_read_charter(founding->directory, charter, founding->encoded, &encoded, &detail)
              : err;
    err = err == ERR_OK ? acts_open(founding->directory, cli->clock, charter, &acts, &detail) : err;
    int status = err == ERR_OK
                     ? act_propose(cli, acts, &founding->identity, charter, &act, ret_id, ret_is_done)
                     : cli_fail(cli, "%s", err_detail_text(&detail, err));
    acts_free(acts);
    free(charter);
    return status;
}

static int found_propose_charter(struct founding *founding, const struct stewards *stewards) {
    char id[ACTS_ID_TEXT_SIZE];
    bool is_done = false;
    struct cli *cli = founding->cli;
    const struct charter *charter = &founding->charter;
    uint8_t *memory = malloc(CHARTER_RULES_SIZE_MAX);
    if (memory == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    struct bytes body = stewards != NULL ? charter_write_stewards_act(charter, stewards, now_s(cli), memory)
                                         : charter_write_rules_act(charter, now_s(cli), memory);
    int status = found_propose(founding, stewards != NULL ? ACT_STEWARDS : ACT_RULES, body, id, &is_done);
    if (status == CLI_DONE && is_done) {
        fprintf(cli->out, "version %u of \"%s\" signed; it spreads when this node runs\n",
                charter->version + 1, charter->name);
    }
    free(memory);
    return status;
}

/* "2", or "invite=1". */
static int found_set_needed(struct cli *cli, const char *text, struct stewards *stewards) {
    const char *equals = strchr(text, '=');
    const char *number = equals != NULL ? equals + 1 : text;
    size_t size = equals != NULL ? (size_t)(equals - text) : 0;
    bool is_named = false;
    bool is_number = strlen(number) == 1 && number[0] >= '1' && number[0] <= '9';
    for (size_t i = 0; i < STEWARD_POWERS_COUNT && is_number; i++) {
        bool is_it = equals == NULL ||
                     (strlen(steward_powers[i]) == size && strncmp(steward_powers[i], text, size) == 0);
        stewards->needed[i] = is_it ? (uint8_t)(number[0] - '0') : stewards->needed[i];
        is_named |= is_it;
    }
    return is_named ? CLI_DONE
                    : cli_usage(
                          cli, &ring_command,
                          "--needed \"%s\": a number of stewards, or amend=, invite=, rule=, delete= or job= "
                          "and a number",
                          text);
}

/* Those that are named, else those that act now. */
static int found_read_stewards(struct founding *founding, const struct ring_options *options,
                               struct stewards *stewards) {
    struct err_detail detail = {0};
    struct cli *cli = founding->cli;
    int status = CLI_DONE;
    charter_stewards(&founding->charter, charter_generation(&founding->charter), stewards);
    if (options->stewards.count > 0) {
        *stewards = (struct stewards){.count = 0};
    }
    for (size_t i = 0; i < options->stewards.count && status == CLI_DONE; i++) {
        uint8_t key[PEER_KEY_SIZE];
        const char *text = options->stewards.items[i];
        if (!identity_key_parse(bytes_of_string(text), key)) {
            return cli_usage(cli, &ring_command, "--steward: \"%s\" is not a key", text);
        }
        if (charter_is_removed(&founding->charter, key)) {
            return cli_fail(cli, "%s has been removed from the ring", text);
        }
        enum err err = stewards_add(stewards, key);
        if (err != ERR_OK) {
            status = cli_usage(cli, &ring_command,
                               err == ERR_EXISTS ? "--steward %s is named twice"
                                                 : "--steward %s: a ring has at most 7 stewards",
                               text);
        }
    }
    if (options->stewards.count > 0) {
        memset(stewards->needed, stewards->count / 2 + 1, sizeof stewards->needed);
    }
    for (size_t i = 0; i < options->needed.count && status == CLI_DONE; i++) {
        status = found_set_needed(cli, options->needed.items[i], stewards);
    }
    if (status == CLI_DONE && stewards_check(stewards, &detail) != ERR_OK) {
        status = cli_usage(cli, &ring_command, "%s", detail.text);
    }
    return status;
}

static void found_print_stewards(struct cli *cli, const struct founding *founding,
                                 const struct stewards *stewards) {
    char key[IDENTITY_TEXT_SIZE];
    for (size_t i = 0; i < stewards->count; i++) {
        fprintf(cli->out, "steward %s%s\n", identity_key_format(stewards->keys[i], key),
                memcmp(stewards->keys[i], founding->identity.key, PEER_KEY_SIZE) == 0 ? ", this node" : "");
    }
}

/* The founder's last act alone, or one of the stewards'. */
static int found_amend_stewards(struct founding *founding, const struct ring_options *options) {
    struct err_detail detail = {0};
    struct stewards stewards;
    struct cli *cli = founding->cli;
    struct charter *charter = &founding->charter;
    int status = found_read_stewards(founding, options, &stewards);
    if (status != CLI_DONE || found_has_stewards(founding)) {
        return status == CLI_DONE ? found_propose_charter(founding, &stewards) : status;
    }
    enum err err =
        charter_hand_over(charter, &stewards, now_s(cli), identity_sign, &founding->identity, &detail);
    if (err == ERR_OK) {
        struct bytes encoded = charter_write(charter, identity_sign, &founding->identity, founding->encoded);
        err = ring_files_write_charter(founding->directory, encoded, &detail);
    }
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    print_version(cli, founding);
    found_print_stewards(cli, founding, &stewards);
    return CLI_DONE;
}

static int found_sign_rules(struct founding *founding) {
    if (found_has_stewards(founding)) {
        return found_propose_charter(founding, NULL);
    }
    founding->charter.version++;
    int status = found_keep(founding);
    if (status == CLI_DONE) {
        print_version(founding->cli, founding);
    }
    return status;
}

static bool found_names_rules(const struct ring_options *options) {
    return options->replicas > 0 || options->witnesses > 0 || options->period_us > 0 || options->open ||
           options->invited || options->jobs != RING_NOT_GIVEN || options->scope.count > 0;
}

int ring_amend(struct cli *cli, const struct data *data, const struct ring_options *options) {
    bool has_stewards = options->stewards.count > 0 || options->needed.count > 0;
    if (options->list_size > 0 || options->mapping != RING_NOT_GIVEN) {
        return cli_usage(cli, &ring_command, "the size of the lists and the mapping cannot be changed");
    }
    if (has_stewards && found_names_rules(options)) {
        return cli_usage(cli, &ring_command, "change the rules and the stewards one after the other");
    }
    struct founding *founding = founding_open(cli, data);
    if (founding == NULL) {
        return CLI_FAILED;
    }
    int status =
        has_stewards ? found_amend_stewards(founding, options) : set_rules(cli, options, &founding->charter);
    if (status == CLI_DONE && !has_stewards) {
        status = found_sign_rules(founding);
    }
    founding_free(founding);
    return status;
}

static int remove_key(struct founding *founding, const char *text) {
    uint8_t key[PEER_KEY_SIZE];
    struct cli *cli = founding->cli;
    if (!identity_key_parse(bytes_of_string(text), key)) {
        return cli_usage(cli, &ring_command, "\"%s\" is not a key", text);
    }
    if (charter_is_steward(&founding->charter, key)) {
        return found_has_stewards(founding)
                   ? cli_fail(cli,
                              "%s is a steward's; first others must take over: mnemon ring amend --steward",
                              text)
                   : cli_fail(cli, "this is the founder's own key");
    }
    switch (charter_remove(&founding->charter, key)) {
    case ERR_OK:
        return CLI_DONE;
    case ERR_EXISTS:
        return cli_fail(cli, "%s was removed before", text);
    default:
        return cli_fail(cli, "a charter can name at most %d removed keys", CHARTER_REMOVED_COUNT_MAX);
    }
}

int ring_remove(struct cli *cli, const struct data *data) {
    struct founding *founding = founding_open(cli, data);
    int status = founding == NULL ? CLI_FAILED : CLI_DONE;
    for (size_t i = 0; i < cli->arguments_count && status == CLI_DONE; i++) {
        status = remove_key(founding, cli->arguments[i]);
    }
    if (status == CLI_DONE) {
        status = found_sign_rules(founding);
    }
    if (founding != NULL) {
        founding_free(founding);
    }
    return status;
}

/* ---- invite ---- */

/* The key that is invited: the one that was named, or one that is made for the bearer, with its seed. */
static int choose_key(struct cli *cli, const struct command *command, const char *key,
                      struct invitation *invitation, uint8_t seed[INVITATION_SEED_SIZE]) {
    struct identity bearer;
    if (key != NULL) {
        bool is_key = identity_key_parse(bytes_of_string(key), invitation->key);
        return is_key ? CLI_DONE : cli_usage(cli, command, "--for: \"%s\" is not a key", key);
    }
    invitation->is_bearer = true;
    enum err err = identity_random(&bearer);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_text(err));
    }
    memcpy(invitation->key, bearer.key, PEER_KEY_SIZE);
    memcpy(seed, bearer.secret, INVITATION_SEED_SIZE);
    identity_done(&bearer);
    return CLI_DONE;
}

/* From when, until when. */
static void invite_set_times(struct cli *cli, uint64_t expires_us, struct invitation *invitation) {
    bool is_given = expires_us != UINT64_MAX;
    uint64_t lasts_s = is_given ? expires_us / US_PER_S : EXPIRES_S_DEFAULT;
    invitation->from_s = now_s(cli);
    invitation->until_s = invitation->is_bearer || is_given ? invitation->from_s + lasts_s : 0;
}

int ring_print_token(struct cli *cli, const struct command *command, const char *key, uint64_t expires_us,
                     const struct identity *signer, struct sha256 *sha256, struct invitation *invitation) {
    uint8_t seed[INVITATION_SEED_SIZE] = {0};
    char token[INVITATION_TOKEN_SIZE];
    int status = choose_key(cli, command, key, invitation, seed);
    if (status == CLI_DONE) {
        invite_set_times(cli, expires_us, invitation);
        invitation_sign(invitation, identity_sign, signer);
        fprintf(cli->out, "%s\n",
                invitation_format(invitation, invitation->is_bearer ? seed : NULL, sha256, token));
    }
    sodium_memzero(seed, sizeof seed);
    return status;
}

static void print_invitation(struct cli *cli, const struct invitation *invitation) {
    char key[IDENTITY_TEXT_SIZE];
    char until[UTC_RFC3339_SIZE];
    identity_key_format(invitation->key, key);
    if (!invitation->is_bearer) {
        fprintf(cli->err, "for the node %s only", key);
    } else {
        fprintf(cli->err, "for any node that has it (to revoke it: mnemon ring remove %s)", key);
    }
    if (invitation->until_s > 0) {
        fprintf(cli->err, ", until %s", utc_format_rfc3339((int64_t)invitation->until_s * US_PER_S, until));
    }
    fputc('\n', cli->err);
}

/* Of stewards: enough have signed it. */
static int invite_print_done(struct act_desk *desk, const char *id) {
    struct err_detail detail = {0};
    struct sha256 sha256;
    struct acts_shown shown = {.is_done = false};
    char token[INVITATION_TOKEN_SIZE];
    uint8_t seed[INVITATION_SEED_SIZE] = {0};
    struct cli *cli = desk->cli;
    bool is_found = false;
    for (size_t i = 0; i < acts_count(desk->acts) && !is_found; i++) {
        acts_show(desk->acts, i, &shown);
        is_found = strcmp(shown.id, id) == 0 && shown.act->kind == ACT_INVITATION;
    }
    if (!is_found) {
        return cli_fail(cli, "no invitation %s waits here; \"mnemon ring pending\" shows them", id);
    }
    if (!shown.is_done) {
        return cli_fail(cli, "only %u of the %u stewards that it needs have signed the invitation yet",
                        shown.act->signatures.count, shown.needed);
    }
    struct invitation invitation = shown.meaning->invitation;
    invitation.signatures = shown.act->signatures;
    enum err err = invitation.is_bearer ? acts_find_seed(desk->acts, id, seed, &detail) : ERR_OK;
    err = err == ERR_OK ? sha256_init(&sha256) : err;
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "%s\n",
            invitation_format(&invitation, invitation.is_bearer ? seed : NULL, &sha256, token));
    print_invitation(cli, &invitation);
    sha256_done(&sha256);
    sodium_memzero(seed, sizeof seed);
    return CLI_DONE;
}

static int invite_with_stewards(struct cli *cli, const struct data *data,
                                const struct ring_options *options) {
    struct err_detail detail = {0};
    struct sha256 sha256;
    struct invitation invitation = {0};
    uint8_t seed[INVITATION_SEED_SIZE] = {0};
    uint8_t body[INVITATION_BODY_SIZE];
    char id[ACTS_ID_TEXT_SIZE];
    uint8_t number[ACT_ID_SIZE];
    bool is_done = false;
    struct act_desk *desk = act_desk_open(cli, data);
    if (desk == NULL) {
        return CLI_FAILED;
    }
    if (options->act != NULL) {
        int status = invite_print_done(desk, options->act);
        act_desk_free(desk);
        return status;
    }
    enum err err = sha256_init(&sha256);
    charter_id(&desk->charter, &sha256, invitation.ring);
    sha256_done(&sha256);
    invitation.generation = charter_generation(&desk->charter);
    int status = err == ERR_OK ? choose_key(cli, &ring_command, options->key, &invitation, seed)
                               : cli_fail(cli, "%s", err_text(err));
    invite_set_times(cli, options->expires_us, &invitation);
    struct act act = {.kind = ACT_INVITATION, .body = invitation_write_body(&invitation, body)};
    if (status == CLI_DONE && invitation.is_bearer) { /* before anybody signs: else its seed could be lost */
        act_id(&act, number);
        hex_encode(bytes_of(number, sizeof number), id);
        err = acts_keep_seed(desk->acts, id, seed, &detail);
        status = err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    if (status == CLI_DONE) {
        status = act_propose(cli, desk->acts, &desk->identity, &desk->charter, &act, id, &is_done);
    }
    if (status == CLI_DONE && is_done) {
        status = invite_print_done(desk, id);
    } else if (status == CLI_DONE) {
        fprintf(cli->out, "then print the token here: mnemon ring invite --act %s\n", id);
    }
    sodium_memzero(seed, sizeof seed);
    act_desk_free(desk);
    return status;
}

int ring_invite(struct cli *cli, const struct data *data, const struct ring_options *options) {
    struct invitation invitation = {0};
    struct sha256 sha256;
    struct founding *founding = founding_open(cli, data);
    if (founding == NULL) {
        return CLI_FAILED;
    }
    if (found_has_stewards(founding) || options->act != NULL) {
        founding_free(founding);
        return invite_with_stewards(cli, data, options);
    }
    int status = CLI_DONE;
    if (sha256_init(&sha256) != ERR_OK) {
        status = cli_fail(cli, "%s", err_text(ERR_MEMORY));
    } else {
        charter_id(&founding->charter, &sha256, invitation.ring);
        status = ring_print_token(cli, &ring_command, options->key, options->expires_us, &founding->identity,
                                  &sha256, &invitation);
        sha256_done(&sha256);
    }
    if (status == CLI_DONE) {
        print_invitation(cli, &invitation);
    }
    founding_free(founding);
    return status;
}
