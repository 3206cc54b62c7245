/* What people want of a group goes into its file; the node sees it. */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/whole_file.h"
#include "cli/commands.h"
#include "cli/group.h"
#include "cli/ring.h"
#include "net/socket_address.h"
#include "node/group/group_driver.h"
#include "node/group/group_files.h"
#include "node/transport/transport.h"

static int read(struct cli *cli, const struct data *data, const char *name, struct group_wish *wish) {
    struct err_detail detail = {0};
    if (!group_files_name_is_valid(bytes_of_string(name))) {
        return cli_usage(cli, &group_command, "\"%s\" is not a valid name of a group", name);
    }
    enum err err = group_files_read_wish(data->directory, name, wish, &detail);
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}

/* ---- invite ---- */

static int print_token(struct cli *cli, const struct group_options *options, const struct group_wish *wish,
                       const struct identity *identity) {
    struct invitation invitation = {0};
    char key[IDENTITY_TEXT_SIZE];
    struct sha256 sha256;
    if (sha256_init(&sha256) != ERR_OK) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    group_files_id(bytes_of_string(wish->name), wish->rules.founder, &sha256, invitation.ring);
    int status = ring_print_token(cli, &group_command, options->key, options->expires_us, identity, &sha256,
                                  &invitation);
    if (status == CLI_DONE) {
        fprintf(cli->err, "to revoke it: mnemon group refuse %s %s\n", wish->name,
                identity_key_format(invitation.key, key));
    }
    sha256_done(&sha256);
    return status;
}

int group_invite(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name) {
    struct err_detail detail = {0};
    struct group_wish wish;
    struct identity identity;
    int status = read(cli, data, name, &wish);
    if (status != CLI_DONE) {
        return status;
    }
    enum err err = identity_load(&identity, data->directory, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    status =
        memcmp(wish.rules.founder, identity.key, PEER_KEY_SIZE) == 0
            ? print_token(cli, options, &wish, &identity)
            : cli_fail(cli, "only the founder of \"%s\" can do this, on the machine where it was created",
                       name);
    identity_done(&identity);
    return status;
}

enum { HOST_SIZE_MAX = 256 };

static int change_keep(struct cli *cli, const struct data *data, const struct group_wish *wish) {
    struct err_detail detail = {0};
    enum err err = group_files_write_wish(data->directory, wish, &detail);
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}

/* A new one, whose name is free. */
static int change_begin(struct cli *cli, const struct data *data, struct bytes name,
                        struct group_wish *wish) {
    char names[GROUP_DRIVER_GROUPS_MAX][GROUP_FILES_NAME_SIZE_MAX];
    if (!group_files_name_is_valid(name)) {
        return cli_usage(cli, &group_command,
                         "\"%.*s\" is not a valid name: use 1 to %d letters, digits, '.', '_' or '-'",
                         BYTES_ARG(name), GROUP_FILES_NAME_SIZE_MAX - 1);
    }
    memset(wish, 0, sizeof *wish);
    memcpy(wish->name, name.data, name.size);
    size_t count = group_files_list(data->directory, names, GROUP_DRIVER_GROUPS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], wish->name) == 0) {
            return cli_fail(cli, "%s is already in a group \"%s\"; leave it first: mnemon group leave %s",
                            data->directory, wish->name, wish->name);
        }
    }
    return count < GROUP_DRIVER_GROUPS_MAX
               ? CLI_DONE
               : cli_fail(cli, "a node can be in at most %d groups", GROUP_DRIVER_GROUPS_MAX);
}

/* The next step, for users that have no node yet. */
static void print_next(struct cli *cli, const struct data *data) {
    struct node_file node;
    if (node_file_read(data->directory, &node, NULL) == ERR_OK) {
        fprintf(cli->out, "the running node begins at once; see \"mnemon group status\"\n");
    } else {
        fprintf(cli->out, "start it:         mnemon serve --address IP\n");
    }
}

/* ---- create ---- */

static int make_key(struct cli *cli, const struct data *data, uint8_t ret_key[PEER_KEY_SIZE]) {
    struct err_detail detail = {0};
    struct identity identity;
    enum err err = whole_file_make_directory(data->directory, &detail);
    err = err == ERR_OK ? identity_load(&identity, data->directory, &detail) : err;
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    memcpy(ret_key, identity.key, PEER_KEY_SIZE);
    identity_done(&identity);
    return CLI_DONE;
}

/* What the options say of the rules; the rest stays. */
static int set_rules(struct cli *cli, const struct group_options *options, struct group_rules *rules) {
    if (options->open + options->approve + options->invite > 1) {
        return cli_usage(cli, &group_command, "use only one of --open, --approve and --invite");
    }
    rules->admission = options->open      ? GROUP_ADMISSION_OPEN
                       : options->invite  ? GROUP_ADMISSION_INVITE
                       : options->approve ? GROUP_ADMISSION_APPROVE
                                          : rules->admission;
    if (options->generator != GROUP_GENERATOR_NOT_GIVEN) {
        rules->generator = (uint8_t)options->generator;
    }
    if (options->k > 0) {
        rules->k = (uint8_t)options->k;
    }
    return CLI_DONE;
}

int group_create(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name) {
    struct group_wish wish;
    int status = change_begin(cli, data, bytes_of_string(name), &wish);
    status = status == CLI_DONE ? make_key(cli, data, wish.rules.founder) : status;
    wish.rules.admission = GROUP_ADMISSION_APPROVE;
    wish.rules.k = TOPOLOGY_K_DEFAULT;
    status = status == CLI_DONE ? set_rules(cli, options, &wish.rules) : status;
    status = status == CLI_DONE ? change_keep(cli, data, &wish) : status;
    if (status == CLI_DONE) {
        fprintf(cli->out, "group \"%s\" created; its founder is this node\n", name);
        print_next(cli, data);
        fprintf(cli->out, "others join with: mnemon group join %s@IP%s\n", name,
                options->invite ? " --token TOKEN (\"mnemon group invite\" prints one)" : "");
    }
    return status;
}

int group_change(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name) {
    static const uint8_t nobody[PEER_KEY_SIZE];
    struct group_wish wish;
    int status = read(cli, data, name, &wish);
    if (status != CLI_DONE) {
        return status;
    }
    if (memcmp(wish.rules.founder, nobody, PEER_KEY_SIZE) == 0 || wish.contact.port != 0) {
        return cli_fail(cli, "only the founder of \"%s\" can change its rules", name);
    }
    status = set_rules(cli, options, &wish.rules);
    status = status == CLI_DONE ? change_keep(cli, data, &wish) : status;
    if (status == CLI_DONE) {
        fprintf(cli->out, "%s, %s, k = %u\n", group_files_admissions[wish.rules.admission],
                group_files_generators[wish.rules.generator], wish.rules.k);
    }
    return status;
}

/* ---- join ---- */

/* A name is looked up once, here: later the topology says where the others are. */
static int look_up(struct cli *cli, struct bytes text, struct address *ret_address) {
    char host[HOST_SIZE_MAX];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    uint64_t port = TRANSPORT_PORT;
    if (address_parse(text, TRANSPORT_PORT, ret_address)) {
        return CLI_DONE;
    }
    size_t colon = bytes_find_byte(text, ':');
    bool is_sound = colon > 0 && colon < sizeof host;
    if (colon < text.size) {
        is_sound = is_sound && bytes_to_u64(bytes_skip(text, colon + 1), UINT16_MAX, &port) && port > 0;
    }
    if (!is_sound) {
        return cli_usage(cli, &group_command, "\"%.*s\" is not HOST or HOST:PORT", BYTES_ARG(text));
    }
    snprintf(host, sizeof host, "%.*s", (int)colon, (const char *)text.data);
    int result = getaddrinfo(host, NULL, &hints, &found);
    if (result != 0) {
        return cli_fail(cli, "%s: %s", host, gai_strerror(result));
    }
    bool is_read = socket_address_get(found->ai_addr, ret_address);
    freeaddrinfo(found);
    ret_address->port = (uint16_t)port;
    return is_read ? CLI_DONE : cli_fail(cli, "%s has no address that a node can reach", host);
}

int group_join(struct cli *cli, const struct data *data, const struct group_options *options,
               const char *where) {
    struct group_wish wish;
    struct bytes text = bytes_of_string(where);
    size_t at = bytes_find_byte(text, '@');
    if (at >= text.size) {
        return cli_usage(cli, &group_command, "\"%s\" is not NAME@HOST", where);
    }
    int status = change_begin(cli, data, bytes_slice(text, 0, at), &wish);
    status = status == CLI_DONE ? look_up(cli, bytes_skip(text, at + 1), &wish.contact) : status;
    char line[CLI_SECRET_SIZE_MAX];
    const char *given = options->token;
    if (status == CLI_DONE && options->token_file != NULL) {
        status = cli_read_secret(cli, options->token_file, line);
        given = line;
    }
    if (status == CLI_DONE && given != NULL) {
        struct bytes token = bytes_trim(bytes_of_string(given));
        if (!group_files_token_is_possible(token)) {
            return cli_usage(cli, &group_command, "--token: this is not a valid token");
        }
        memcpy(wish.token, token.data, token.size);
    }
    wish.rules.k = TOPOLOGY_K_DEFAULT; /* until the contact has told */
    status = status == CLI_DONE ? change_keep(cli, data, &wish) : status;
    if (status == CLI_DONE) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        fprintf(cli->out, "%s will be asked to let this node into \"%s\"\n",
                address_format(&wish.contact, address), wish.name);
        print_next(cli, data);
    }
    return status;
}

/* ---- leave, approve, refuse ---- */

int group_leave(struct cli *cli, const struct data *data, const char *name) {
    struct group_wish wish;
    struct node_file node;
    int status = read(cli, data, name, &wish);
    if (status != CLI_DONE) {
        return status;
    }
    wish.is_leaving = true;
    status = change_keep(cli, data, &wish);
    if (status == CLI_DONE) {
        bool is_running = node_file_read(data->directory, &node, NULL) == ERR_OK;
        fprintf(cli->out, is_running ? "leaving \"%s\"\n" : "the node leaves \"%s\" when it runs again\n",
                name);
    }
    return status;
}

int group_judge(struct cli *cli, const struct data *data, const char *name, const char *text, bool is_good) {
    struct group_wish wish;
    uint8_t key[PEER_KEY_SIZE];
    int status = read(cli, data, name, &wish);
    if (status != CLI_DONE) {
        return status;
    }
    if (!identity_key_parse(bytes_of_string(text), key)) {
        return cli_usage(cli, &group_command, "\"%s\" is not a key", text);
    }
    group_keys_list_remove(is_good ? &wish.refused : &wish.approved, key);
    struct group_keys_list *list = is_good ? &wish.approved : &wish.refused;
    enum err err = group_keys_list_add(list, key);
    if (err == ERR_LIMIT) {
        return cli_fail(
            cli, "at most %d keys can be approved, and as many refused; remove some from %s/groups/%s.group",
            GROUP_FILES_KEYS_MAX, data->directory, name);
    }
    if (err == ERR_EXISTS) {
        return cli_fail(cli, "%s was %s before", text, is_good ? "approved" : "refused");
    }
    status = change_keep(cli, data, &wish);
    if (status == CLI_DONE) {
        fprintf(cli->out, "%s\n", is_good ? "approved" : "refused");
    }
    return status;
}
