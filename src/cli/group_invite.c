/* Tokens for a group: those of a ring, with the group's id in place of the ring's. */
#include <sodium.h>

#include "base/utc.h"
#include "cli/commands.h"
#include "cli/group.h"
#include "net/identity.h"
#include "node/group/group_files.h"

enum { EXPIRES_S_DEFAULT = 7 * 86400, US_PER_S = 1000000 };

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

/* Of the node, or of a pair that is made for the token. */
static int choose_key(struct cli *cli, const struct group_options *options, struct invitation *invitation,
                      uint8_t seed[INVITATION_SEED_SIZE]) {
    struct identity bearer;
    if (options->key != NULL) {
        return identity_key_parse(bytes_of_string(options->key), invitation->key)
                   ? CLI_DONE
                   : cli_usage(cli, &group_command, "--for: \"%s\" is not a key", options->key);
    }
    randombytes_buf(seed, INVITATION_SEED_SIZE);
    if (identity_from_seed(&bearer, seed) != ERR_OK) {
        return cli_fail(cli, "%s", err_text(ERR_SYSTEM));
    }
    invitation->is_bearer = true;
    memcpy(invitation->key, bearer.key, PEER_KEY_SIZE);
    identity_done(&bearer);
    return CLI_DONE;
}

static int print_token(struct cli *cli, const struct group_options *options, const struct group_wish *wish,
                       const struct identity *identity) {
    struct invitation invitation = {.from_s = (uint64_t)(clock_wall_us(cli->clock) / US_PER_S)};
    uint8_t seed[INVITATION_SEED_SIZE] = {0};
    char token[INVITATION_TOKEN_SIZE];
    char key[IDENTITY_TEXT_SIZE];
    struct sha256 sha256;
    int status = choose_key(cli, options, &invitation, seed);
    if (status == CLI_DONE && sha256_init(&sha256) != ERR_OK) {
        status = cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    if (status == CLI_DONE) {
        bool is_given = options->expires_us != UINT64_MAX;
        uint64_t lasts_s = is_given ? options->expires_us / US_PER_S : EXPIRES_S_DEFAULT;
        invitation.until_s = invitation.is_bearer || is_given ? invitation.from_s + lasts_s : 0;
        group_files_id(bytes_of_string(wish->name), wish->rules.founder, &sha256, invitation.ring);
        invitation_sign(&invitation, sign, identity);
        fprintf(cli->out, "%s\n",
                invitation_format(&invitation, invitation.is_bearer ? seed : NULL, &sha256, token));
        fprintf(cli->err, "to revoke it: mnemon group refuse %s %s\n", wish->name,
                identity_key_format(invitation.key, key));
        sha256_done(&sha256);
    }
    sodium_memzero(seed, sizeof seed);
    return status;
}

int group_invite(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name) {
    struct err_detail detail = {0};
    struct group_wish wish;
    struct identity identity;
    if (!group_files_name_is_valid(bytes_of_string(name))) {
        return cli_usage(cli, &group_command, "\"%s\" is not a valid name of a group", name);
    }
    enum err err = group_files_read_wish(data->directory, name, &wish, &detail);
    err = err == ERR_OK ? identity_load(&identity, data->directory, &detail) : err;
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    int status =
        memcmp(wish.rules.founder, identity.key, PEER_KEY_SIZE) == 0
            ? print_token(cli, options, &wish, &identity)
            : cli_fail(cli, "only the founder of \"%s\" can do this, on the machine where it was created",
                       name);
    identity_done(&identity);
    return status;
}
