#include "cli/act.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/utc.h"
#include "cli/commands.h"
#include "node/transport/ring_files.h"

enum { US_PER_S = 1000000, TEXT_LINES_MAX = 12, JSON_SIZE_MAX = 16 << 20 };

void act_desk_free(struct act_desk *desk) {
    acts_free(desk->acts);
    identity_done(&desk->identity);
    free(desk);
}

/* Anybody in the ring may look. */
static struct act_desk *act_desk_look(struct cli *cli, const struct data *data) {
    struct err_detail detail = {0};
    struct bytes encoded;
    struct act_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL) {
        cli_fail(cli, "%s", err_text(ERR_MEMORY));
        return NULL;
    }
    desk->cli = cli;
    desk->directory = data->directory;
    enum err err = identity_load(&desk->identity, data->directory, &detail);
    err = err == ERR_OK
              ? ring_files_read_charter(data->directory, &desk->charter, desk->encoded, &encoded, &detail)
              : err;
    err = err == ERR_OK ? acts_open(data->directory, cli->clock, &desk->charter, &desk->acts, &detail) : err;
    if (err != ERR_OK) {
        cli_fail(cli, "%s", err_detail_text(&detail, err));
        act_desk_free(desk);
        return NULL;
    }
    return desk;
}

struct act_desk *act_desk_open(struct cli *cli, const struct data *data) {
    struct act_desk *desk = act_desk_look(cli, data);
    if (desk != NULL && !charter_is_steward(&desk->charter, desk->identity.key)) {
        cli_fail(cli, "only the stewards of \"%s\" can do this; this node is none of them",
                 desk->charter.name);
        act_desk_free(desk);
        return NULL;
    }
    if (desk != NULL && charter_generation(&desk->charter) == 0) {
        cli_fail(cli, "\"%s\" has no stewards but its founder, and nothing waits to be signed",
                 desk->charter.name);
        act_desk_free(desk);
        return NULL;
    }
    return desk;
}

int act_propose(struct cli *cli, struct acts *acts, const struct identity *identity,
                const struct charter *charter, const struct act *act, char ret_id[ACTS_ID_TEXT_SIZE],
                bool *ret_is_done) {
    struct err_detail detail = {0};
    struct stewards stewards;
    struct acts_shown shown = {.needed = 0};
    *ret_is_done = false;
    enum err err = acts_sign(acts, act, identity, ret_id, ret_is_done, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    charter_stewards(charter, charter_generation(charter), &stewards);
    for (size_t i = 0; !*ret_is_done && i < acts_count(acts); i++) {
        acts_show(acts, i, &shown);
        if (strcmp(shown.id, ret_id) == 0) {
            fprintf(cli->out,
                    "signed by %u of the %u stewards that it needs, out of %u; when this node runs, the "
                    "others see it "
                    "with \"mnemon ring pending\" and sign it with \"mnemon ring sign %s\", for %d days\n",
                    shown.act->signatures.count, shown.needed, stewards.count, ret_id, ACT_LASTS_S / 86400);
        }
    }
    return CLI_DONE;
}

/* ---- what it says ---- */

static const char *act_time(uint64_t seconds, char out[UTC_RFC3339_SIZE]) {
    return seconds <= UTC_MAX_US / US_PER_S ? utc_format_rfc3339((int64_t)seconds * US_PER_S, out)
                                            : "a time that does not exist";
}

static void act_print_number(struct cli *cli, const char *name, uint64_t before, uint64_t after) {
    if (before != after) {
        fprintf(cli->out, "  %s %ju instead of %ju\n", name, (uintmax_t)after, (uintmax_t)before);
    }
}

static void act_print_scope(struct cli *cli, const struct charter *before, const struct charter *after) {
    bool is_same = before->scope_count == after->scope_count &&
                   memcmp(before->scope, after->scope, before->scope_count * sizeof *before->scope) == 0;
    for (size_t i = 0; !is_same && i < after->scope_count; i++) {
        fprintf(cli->out, "  scope %.*s\n", after->scope[i].size, after->scope[i].text);
    }
    if (!is_same && after->scope_count == 0) {
        fprintf(cli->out, "  scope any URL\n");
    }
}

static void act_print_rules(struct cli *cli, const struct charter *before, const struct charter *after) {
    char key[IDENTITY_TEXT_SIZE];
    act_print_number(cli, "replicas", before->replicas, after->replicas);
    act_print_number(cli, "witnesses", before->witnesses, after->witnesses);
    act_print_number(cli, "seconds of a period", before->period_s, after->period_s);
    if (before->is_open != after->is_open) {
        fprintf(cli->out, "  %s\n", after->is_open ? "any node may join" : "only invited nodes may join");
    }
    if (before->members_may_add_jobs != after->members_may_add_jobs) {
        fprintf(cli->out, "  %s\n",
                after->members_may_add_jobs ? "members may add jobs" : "only stewards add jobs");
    }
    act_print_scope(cli, before, after);
    for (size_t i = 0; i < after->removed_count; i++) {
        if (!charter_is_removed(before, after->removed[i])) {
            fprintf(cli->out, "  removes %s\n", identity_key_format(after->removed[i], key));
        }
    }
    for (size_t i = 0; i < before->removed_count; i++) {
        if (!charter_is_removed(after, before->removed[i])) {
            fprintf(cli->out, "  lets in again %s\n", identity_key_format(before->removed[i], key));
        }
    }
}

static void act_print_stewards(struct cli *cli, const struct charter *before, const struct charter *after) {
    char key[IDENTITY_TEXT_SIZE];
    struct stewards old;
    struct stewards new;
    charter_stewards(before, charter_generation(before), &old);
    charter_stewards(after, charter_generation(after), &new);
    for (size_t i = 0; i < new.count; i++) {
        fprintf(cli->out, "  steward %s%s\n", identity_key_format(new.keys[i], key),
                stewards_have(&old, new.keys[i]) ? "" : ", new");
    }
    for (size_t i = 0; i < old.count; i++) {
        if (!stewards_have(&new, old.keys[i])) {
            fprintf(cli->out, "  no longer %s\n", identity_key_format(old.keys[i], key));
        }
    }
    fprintf(cli->out, "  must sign:");
    for (size_t i = 0; i < STEWARD_POWERS_COUNT; i++) {
        fprintf(cli->out, "%s %s %u", i > 0 ? "," : "", steward_powers[i], new.needed[i]);
    }
    fprintf(cli->out, " of %u\n", new.count);
}

static void act_print_invitation(struct cli *cli, const struct invitation *invitation) {
    char key[IDENTITY_TEXT_SIZE];
    char until[UTC_RFC3339_SIZE];
    identity_key_format(invitation->key, key);
    fprintf(cli->out, invitation->is_bearer ? "  for any node that has the token of %s" : "  for the node %s",
            key);
    if (invitation->until_s > 0) {
        fprintf(cli->out, ", until %s", act_time(invitation->until_s, until));
    }
    fputc('\n', cli->out);
}

/* It may hold anything: only what can be printed. */
static void act_print_text(struct cli *cli, struct bytes text) {
    size_t lines = 0;
    bool is_begin = true;
    for (size_t i = 0; i < text.size && lines < TEXT_LINES_MAX; i++) {
        uint8_t byte = text.data[i];
        if (is_begin) {
            fputs("  | ", cli->out);
        }
        is_begin = byte == '\n';
        lines += is_begin;
        fputc(is_begin || (byte >= ' ' && byte != 0x7f) ? byte : '.', cli->out);
    }
    if (!is_begin) {
        fputc('\n', cli->out);
    }
}

static void act_print_decree(struct cli *cli, const struct decree *decree) {
    fprintf(cli->out, "  %s%s %.*s\n", decree->text.size == 0 ? "withdraws: " : "",
            decree_kind_name(decree->kind), BYTES_ARG(decree->name));
    act_print_text(cli, decree->text);
}

static void act_print(struct act_desk *desk, const struct acts_shown *shown) {
    struct cli *cli = desk->cli;
    char key[IDENTITY_TEXT_SIZE];
    char made[UTC_RFC3339_SIZE];
    fprintf(cli->out, "%s  %s, made %s, signed by %u of %u%s\n", shown->id, act_kind_name(shown->act->kind),
            act_time(shown->meaning->made_s, made), shown->act->signatures.count, shown->needed,
            shown->is_done ? ": done" : "");
    if (shown->meaning->next != NULL && shown->act->kind == ACT_RULES) {
        act_print_rules(cli, &desk->charter, shown->meaning->next);
    } else if (shown->meaning->next != NULL) {
        act_print_stewards(cli, &desk->charter, shown->meaning->next);
    } else if (shown->act->kind == ACT_INVITATION) {
        act_print_invitation(cli, &shown->meaning->invitation);
    } else if (shown->act->kind == ACT_DECREE) {
        act_print_decree(cli, &shown->meaning->decree);
    }
    for (size_t i = 0; i < shown->act->signatures.count; i++) {
        const uint8_t *signer = shown->act->signatures.items[i].key;
        bool is_own = memcmp(signer, desk->identity.key, PEER_KEY_SIZE) == 0;
        fprintf(cli->out, "  signed by %s%s\n", identity_key_format(signer, key),
                is_own ? ", this node" : "");
    }
}

static void act_put_json(const struct acts_shown *shown, struct json *json) {
    char key[IDENTITY_TEXT_SIZE];
    json_open(json, NULL);
    json_text(json, "id", shown->id);
    json_text(json, "kind", act_kind_name(shown->act->kind));
    json_time(json, "made", (int64_t)shown->meaning->made_s * US_PER_S);
    json_count(json, "needed", shown->needed);
    json_bool(json, "done", shown->is_done);
    json_open_list(json, "signed_by");
    for (size_t i = 0; i < shown->act->signatures.count; i++) {
        json_text(json, NULL, identity_key_format(shown->act->signatures.items[i].key, key));
    }
    json_close(json);
    json_close(json);
}

static void act_list_json(struct cli *cli, struct act_desk *desk) {
    struct buf out;
    struct json json;
    struct acts_shown shown;
    buf_init(&out, JSON_SIZE_MAX);
    json_begin(&json, &out);
    json_open_list(&json, "acts");
    for (size_t i = 0; i < acts_count(desk->acts); i++) {
        acts_show(desk->acts, i, &shown);
        act_put_json(&shown, &json);
    }
    json_close(&json);
    json_end(&json);
    buf_put_byte(&out, '\n');
    cli_write(cli, &out);
}

int act_list(struct cli *cli, const struct data *data, bool is_json) {
    struct acts_shown shown;
    struct act_desk *desk = act_desk_look(cli, data);
    if (desk == NULL) {
        return CLI_FAILED;
    }
    if (is_json) {
        act_list_json(cli, desk);
    }
    for (size_t i = 0; !is_json && i < acts_count(desk->acts); i++) {
        acts_show(desk->acts, i, &shown);
        act_print(desk, &shown);
    }
    if (!is_json && acts_count(desk->acts) == 0) {
        fprintf(cli->out, "nothing waits to be signed, as far as this node knows\n");
    }
    act_desk_free(desk);
    return CLI_DONE;
}

/* The first digits are enough if no other act begins with them. */
static int act_find(struct act_desk *desk, const char *id, struct acts_shown *ret_shown) {
    struct acts_shown shown;
    size_t found = 0;
    for (size_t i = 0; i < acts_count(desk->acts); i++) {
        acts_show(desk->acts, i, &shown);
        found += strncmp(shown.id, id, strlen(id)) == 0;
    }
    for (size_t i = 0; found == 1 && i < acts_count(desk->acts); i++) {
        acts_show(desk->acts, i, ret_shown);
        if (strncmp(ret_shown->id, id, strlen(id)) == 0) {
            return CLI_DONE;
        }
    }
    return cli_fail(desk->cli,
                    found == 0
                        ? "no act that begins with \"%s\" waits here; \"mnemon ring pending\" shows them"
                        : "more than one act begins with \"%s\"",
                    id);
}

static const char *act_done_text(enum act_kind kind) {
    return kind == ACT_RULES || kind == ACT_STEWARDS
               ? "enough stewards have signed: the new version of the charter spreads when this node runs"
           : kind == ACT_DECREE
               ? "enough stewards have signed: the decree is in force as soon as the nodes hear of it"
               : "enough stewards have signed: the one who invited prints the token, with \"mnemon ring "
                 "invite --act\"";
}

int act_sign_named(struct cli *cli, const struct data *data) {
    struct act_desk *desk = act_desk_open(cli, data);
    int status = desk == NULL ? CLI_FAILED : CLI_DONE;
    for (size_t i = 0; i < cli->arguments_count && status == CLI_DONE; i++) {
        struct acts_shown shown;
        char id[ACTS_ID_TEXT_SIZE];
        bool is_done;
        status = act_find(desk, cli->arguments[i], &shown);
        if (status == CLI_DONE) {
            act_print(desk, &shown);
            struct act act = *shown.act;
            status = act_propose(cli, desk->acts, &desk->identity, &desk->charter, &act, id, &is_done);
            if (status == CLI_DONE && is_done) {
                fprintf(cli->out, "%s\n", act_done_text(act.kind));
            }
        }
    }
    if (desk != NULL) {
        act_desk_free(desk);
    }
    return status;
}
