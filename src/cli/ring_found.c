#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/utc.h"
#include "cli/commands.h"
#include "cli/ring.h"
#include "crawl/rules/pattern.h"
#include "node/transport/ring_files.h"

enum { EXPIRES_S_DEFAULT = 7 * 86400, US_PER_S = 1000000, PORT_DEFAULT = 7070 };

/* A founder at work. Large: on the heap. */
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

/* The same if this node is already the founder of a ring. */
static struct founding *founding_open(struct cli *cli, const struct data *data) {
    struct err_detail detail = {0};
    struct founding *founding = founding_new(cli, data);
    if (founding == NULL) {
        return NULL;
    }
    enum err err = read_charter(founding, &detail);
    if (err == ERR_OK && memcmp(founding->charter.founder, founding->identity.key, PEER_KEY_SIZE) != 0) {
        err = err_set(&detail, ERR_PERMISSION,
                      "only the founder of \"%s\" can do this, on the machine where it was created",
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

int ring_amend(struct cli *cli, const struct data *data, const struct ring_options *options) {
    if (options->list_size > 0 || options->mapping != RING_NOT_GIVEN) {
        return cli_usage(cli, &ring_command, "the size of the lists and the mapping cannot be changed");
    }
    struct founding *founding = founding_open(cli, data);
    if (founding == NULL) {
        return CLI_FAILED;
    }
    founding->charter.version++;
    int status = set_rules(cli, options, &founding->charter);
    if (status == CLI_DONE) {
        status = found_keep(founding);
    }
    if (status == CLI_DONE) {
        print_version(cli, founding);
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
    if (memcmp(key, founding->identity.key, PEER_KEY_SIZE) == 0) {
        return cli_fail(cli, "this is the founder's own key");
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
        founding->charter.version++;
        status = found_keep(founding);
    }
    if (status == CLI_DONE) {
        print_version(cli, founding);
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

int ring_print_token(struct cli *cli, const struct command *command, const char *key, uint64_t expires_us,
                     const struct identity *signer, struct sha256 *sha256, struct invitation *invitation) {
    uint8_t seed[INVITATION_SEED_SIZE] = {0};
    char token[INVITATION_TOKEN_SIZE];
    int status = choose_key(cli, command, key, invitation, seed);
    if (status == CLI_DONE) {
        bool is_given = expires_us != UINT64_MAX;
        uint64_t lasts_s = is_given ? expires_us / US_PER_S : EXPIRES_S_DEFAULT;
        invitation->from_s = now_s(cli);
        invitation->until_s = invitation->is_bearer || is_given ? invitation->from_s + lasts_s : 0;
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

int ring_invite(struct cli *cli, const struct data *data, const struct ring_options *options) {
    struct invitation invitation = {0};
    struct sha256 sha256;
    struct founding *founding = founding_open(cli, data);
    if (founding == NULL) {
        return CLI_FAILED;
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
