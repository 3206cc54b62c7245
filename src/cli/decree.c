#include "cli/decree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "cli/act.h"
#include "cli/decree_await.h"
#include "crawl/rules/pattern.h"
#include "node/ring/deletion_text.h"
#include "node/ring/routing.h"
#include "node/transport/ring_files.h"
#include "web/url/surt.h"

enum { NAME_DIGITS = 16, JOB_NAME_PREFIX_SIZE = 5 };

/* May the ring archive all the seeds? */
static enum err check_seeds(const struct charter *charter, const struct job *job, struct err_detail *detail) {
    struct pattern_list patterns;
    enum err err = ERR_OK;
    routing_read_scope(charter, &patterns);
    for (size_t i = 0; charter->scope_count > 0 && err == ERR_OK && i < job->seeds.count; i++) {
        if (pattern_list_find(&patterns, job->seeds.items[i]) == PATTERN_NONE) {
            err = err_set(detail, ERR_INVALID,
                          "%.*s is outside the scope of the ring (see \"mnemon ring status\")",
                          BYTES_ARG(job->seeds.items[i]));
        }
    }
    pattern_list_done(&patterns);
    return err;
}

/* What a command reads before it speaks to the ring. */
struct decree_voice {
    struct charter *charter;
    uint8_t *memory; /* of the charter */
    struct identity identity;
    bool has_identity;
    const char *directory;
};

static enum err voice_open(struct decree_voice *voice, const char *directory, struct err_detail *detail) {
    struct bytes encoded;
    *voice = (struct decree_voice){.charter = malloc(sizeof *voice->charter),
                                   .memory = malloc(CHARTER_SIZE_MAX),
                                   .directory = directory};
    if (voice->charter == NULL || voice->memory == NULL) {
        return ERR_MEMORY;
    }
    enum err err = ring_files_read_charter(directory, voice->charter, voice->memory, &encoded, detail);
    err = err == ERR_OK ? identity_load(&voice->identity, directory, detail) : err;
    voice->has_identity = err == ERR_OK;
    return err;
}

static void voice_close(struct decree_voice *voice) {
    if (voice->has_identity) {
        identity_done(&voice->identity);
    }
    free(voice->memory);
    free(voice->charter);
}

/* Robots are the founder's to relax (docs/formats/decree.md); other nodes would not obey. */
static enum err check_robots(const struct decree_voice *voice, const struct job *job,
                             struct err_detail *detail) {
    return job->ignores_robots && !charter_is_steward(voice->charter, voice->identity.key)
               ? err_set(detail, ERR_PERMISSION, "only the %s may let jobs of the ring ignore robots.txt",
                         charter_generation(voice->charter) > 0 ? "stewards" : "founder")
               : ERR_OK;
}

/* Have stewards, or the founder alone, decreed something of this name? Then only they change it. */
static bool decree_is_stewards_there(const struct decree_voice *voice, enum decree_kind kind,
                                     struct bytes name) {
    struct sha256 sha256;
    uint8_t id[DECREE_ID_SIZE];
    struct decree decree = {.kind = kind, .name = name};
    memcpy(decree.author, voice->charter->founder, PEER_KEY_SIZE);
    if (sha256_init(&sha256) != ERR_OK) {
        return false;
    }
    decree_id(&decree, &sha256, id);
    sha256_done(&sha256);
    return decrees_version_on_disk(voice->directory, id) > 0;
}

/* Is it for the stewards to agree on? A steward's job that any member may add is not. */
static bool decree_needs_stewards(const struct decree_voice *voice, enum decree_kind kind,
                                  const struct job *job, struct bytes name) {
    const struct charter *charter = voice->charter;
    bool is_members =
        kind == DECREE_JOB && charter->members_may_add_jobs && (job == NULL || !job->ignores_robots);
    return charter_generation(charter) > 0 && charter_is_steward(charter, voice->identity.key) &&
           (!is_members || decree_is_stewards_there(voice, kind, name));
}

/* Sign it as a steward; what others must sign first is no error. */
static int decree_propose(struct cli *cli, const struct data *data, struct decree_voice *voice,
                          struct decree *decree, struct decree_sent *ret_sent, bool *ret_is_done) {
    struct err_detail detail = {0};
    struct sha256 sha256;
    struct acts *acts = NULL;
    char id[ACTS_ID_TEXT_SIZE];
    const struct charter *charter = voice->charter;
    uint8_t *memory = malloc(DECREE_SIZE_MAX);
    if (memory == NULL || sha256_init(&sha256) != ERR_OK) {
        free(memory);
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    charter_id(charter, &sha256, decree->ring);
    memcpy(decree->author, charter->founder, PEER_KEY_SIZE);
    decree->generation = charter_generation(charter);
    decree_id(decree, &sha256, ret_sent->receipt.id);
    decree->version = decree_next_version(decrees_version_on_disk(data->directory, ret_sent->receipt.id),
                                          clock_wall_us(cli->clock));
    ret_sent->receipt.version = decree->version;
    snprintf(ret_sent->author, sizeof ret_sent->author, "%s", DECREES_STEWARDS);
    enum err err = acts_open(data->directory, cli->clock, charter, &acts, &detail);
    struct act act = {.kind = ACT_DECREE, .body = decree_write_body(decree, memory)};
    int status = err == ERR_OK ? act_propose(cli, acts, &voice->identity, charter, &act, id, ret_is_done)
                               : cli_fail(cli, "%s", err_detail_text(&detail, err));
    acts_free(acts);
    sha256_done(&sha256);
    free(memory);
    return status;
}

/* job: NULL, or the one to be added. CLI_DONE with *ret_is_done false: other stewards must sign it first. */
static int publish(struct cli *cli, const struct data *data, enum decree_kind kind, struct bytes name,
                   struct bytes text, const struct job *job, struct decree_sent *ret_sent,
                   bool *ret_is_done) {
    struct err_detail detail = {0};
    *ret_is_done = true;
    struct decree_voice voice;
    struct decrees_receipt receipt;
    enum err err = voice_open(&voice, data->directory, &detail);
    err = err == ERR_OK && job != NULL ? check_seeds(voice.charter, job, &detail) : err;
    err = err == ERR_OK && job != NULL ? check_robots(&voice, job, &detail) : err;
    if (err == ERR_OK && decree_needs_stewards(&voice, kind, job, name)) {
        struct decree decree = {.kind = kind, .name = name, .text = text};
        *ret_sent = (struct decree_sent){.kind = kind, .name = name};
        int status = decree_propose(cli, data, &voice, &decree, ret_sent, ret_is_done);
        voice_close(&voice);
        return status;
    }
    err = err == ERR_OK ? decrees_publish(data->directory, &voice.identity, voice.charter, kind, name, text,
                                          &receipt, &detail)
                        : err;
    if (err == ERR_OK) {
        *ret_sent = (struct decree_sent){.receipt = receipt, .kind = kind, .name = name};
        identity_key_format(voice.identity.key, ret_sent->author);
    }
    voice_close(&voice);
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}

/* ---- jobs ---- */

int decree_add_job(struct cli *cli, const struct data *data, const struct job *job) {
    char name[JOB_NAME_SIZE_MAX];
    struct buf conf;
    struct buf seeds;
    struct buf text;
    struct decree_sent sent;
    bool is_done = false;
    struct job shared = *job;
    shared.is_shared = true;
    buf_init(&conf, DECREE_TEXT_SIZE_MAX);
    buf_init(&seeds, DECREE_TEXT_SIZE_MAX);
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    job_put(&shared, &conf);
    for (size_t i = 0; i < job->seeds.count; i++) {
        buf_put(&seeds, job->seeds.items[i]);
        buf_put_byte(&seeds, '\n');
    }
    decrees_put_job_text(&text, buf_bytes(&conf), buf_bytes(&seeds));
    job_name(job, name);
    int status =
        text.err == ERR_OK && conf.err == ERR_OK && seeds.err == ERR_OK
            ? publish(cli, data, DECREE_JOB, bytes_of_string(name), buf_bytes(&text), job, &sent, &is_done)
            : cli_fail(cli, "the job is too long for a decree: at most 64 KiB of seeds and patterns");
    if (status == CLI_DONE && is_done) {
        fprintf(cli->out, "ring-%s added for all nodes of the ring\n", name);
    }
    buf_done(&conf);
    buf_done(&seeds);
    buf_done(&text);
    return status;
}

int decree_remove_job(struct cli *cli, const struct data *data, const char *name) {
    struct bytes bare = bytes_of_string(name);
    if (bytes_starts_with(bare, BYTES("ring-"))) {
        bare = bytes_skip(bare, JOB_NAME_PREFIX_SIZE);
    }
    if (!decree_name_is_valid(bare)) {
        return cli_fail(cli, "no job of a ring can have the name \"%s\"", name);
    }
    struct decree_sent sent;
    bool is_done = false;
    int status = publish(cli, data, DECREE_JOB, bare, bytes_of(NULL, 0), NULL, &sent, &is_done);
    if (status == CLI_DONE && is_done) {
        fprintf(cli->out, "ring-%.*s removed from all nodes of the ring; what it archived stays\n",
                BYTES_ARG(bare));
    }
    return status;
}

/* The name of a decree that follows from what it says, so that saying it again is another version of it. */
static enum err decree_name_of(struct bytes said, char out[2 * SHA256_SIZE + 1]) {
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    enum err err = sha256_init(&sha256);
    if (err == ERR_OK) {
        sha256_digest(&sha256, said, digest);
        sha256_done(&sha256);
        hex_encode(bytes_of(digest, sizeof digest), out);
        out[NAME_DIGITS] = '\0';
    }
    return err;
}

/* ---- rules ---- */

/* The key of .aclj for "example.org/a", "example.org/a*", "*.example.org". False: it is no URL. */
static bool put_rule_key(const char *url, struct buf *out) {
    struct bytes text = bytes_of_string(url);
    bool is_prefix = bytes_ends_with(text, BYTES("*"));
    struct canon canon;
    canon_init(&canon);
    struct bytes bare = is_prefix ? bytes_slice(text, 0, text.size - 1) : text;
    bool is_good = canon_run(&canon, bare, NULL) == ERR_OK && surt_put(out, &canon) == ERR_OK;
    canon_done(&canon);
    if (is_good && !is_prefix) {
        buf_put_string(out, "###");
    }
    return is_good && out->err == ERR_OK;
}

int decree_rule(struct cli *cli, const struct data *data, const char *url, bool is_taken_down) {
    char name[2 * SHA256_SIZE + 1];
    struct buf key;
    struct buf text;
    buf_init(&key, DECREE_TEXT_SIZE_MAX / 2);
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    if (!put_rule_key(url, &key) || decree_name_of(buf_bytes(&key), name) != ERR_OK) {
        buf_done(&key);
        return cli_fail(cli, "\"%s\" is not a URL or URL*", url);
    }
    if (is_taken_down) {
        buf_put(&text, buf_bytes(&key));
        struct json json;
        json_init_spaced(&json, &text);
        buf_put_string(&text, " - ");
        json_open(&json, NULL);
        json_text(&json, "access", "exclude");
        json_close(&json);
        buf_put_byte(&text, '\n');
    }
    struct decree_sent sent;
    bool is_done = false;
    int status =
        publish(cli, data, DECREE_RULES, bytes_of_string(name), buf_bytes(&text), NULL, &sent, &is_done);
    if (status == CLI_DONE && is_done) {
        status = decree_await(cli, data, &sent, url, is_taken_down ? "is no longer shown" : "is shown again");
    }
    buf_done(&key);
    buf_done(&text);
    return status;
}

/* ---- deletions ---- */

/* Everything by one star is no deletion but the end of an archive. */
static enum err decree_put_deletion(const char *url, const struct decree_period *period, struct buf *said,
                                    struct buf *text, struct err_detail *detail) {
    struct deletion deletions[DELETION_PARTS_MAX];
    struct buf memory;
    size_t count = 0;
    buf_init(&memory, DECREE_TEXT_SIZE_MAX);
    enum err err = strcmp(url, "*") != 0
                       ? deletion_read_url(bytes_of_string(url), &memory, deletions, &count, detail)
                       : err_set(detail, ERR_INVALID, "it means everything");
    for (size_t i = 0; i < count; i++) {
        deletions[i].from_us = period->from_us;
        deletions[i].to_us = period->is_until_now ? INT64_MAX : period->to_us;
    }
    if (err == ERR_OK) {
        deletion_text_put_url(said, bytes_of_string(url), deletions, count);
        for (size_t i = 0; i < count; i++) {
            deletions[i].to_us = period->to_us;
        }
        deletion_text_put_url(text, bytes_of_string(url), deletions, count);
    }
    buf_done(&memory);
    return err;
}

static int decree_publish_deletion(struct cli *cli, const struct data *data, struct bytes said,
                                   struct bytes text) {
    char name[2 * SHA256_SIZE + 1];
    char what[ERR_TEXT_SIZE_MAX];
    struct decree_sent sent;
    bool is_done = false;
    if (decree_name_of(said, name) != ERR_OK) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    int status = publish(cli, data, DECREE_DELETION, bytes_of_string(name), text, NULL, &sent, &is_done);
    if (status != CLI_DONE || !is_done) {
        return status;
    }
    if (cli->arguments_count == 1) {
        snprintf(what, sizeof what, "is deleted");
    } else {
        snprintf(what, sizeof what, "and %zu more are deleted", cli->arguments_count - 1);
    }
    return decree_await(cli, data, &sent, cli->arguments[0], what);
}

int decree_delete(struct cli *cli, const struct data *data, const struct decree_period *period,
                  const char *reason) {
    struct err_detail detail = {0};
    struct buf said;
    struct buf text;
    int status = CLI_DONE;
    if (reason == NULL || !deletion_text_is_reason(bytes_of_string(reason))) {
        return cli_fail(cli, "say why it is deleted, in one line of at most %d bytes: --reason TEXT",
                        DELETION_TEXT_REASON_SIZE_MAX);
    }
    buf_init(&said, 2 * DECREE_TEXT_SIZE_MAX);
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    deletion_text_put_reason(&text, bytes_of_string(reason));
    for (size_t i = 0; i < cli->arguments_count && status == CLI_DONE; i++) {
        enum err err = decree_put_deletion(cli->arguments[i], period, &said, &text, &detail);
        if (err != ERR_OK) {
            status = cli_fail(cli, "\"%s\" is not a URL or URL* that can be deleted: %s", cli->arguments[i],
                              err_detail_text(&detail, err));
        }
    }
    if (status == CLI_DONE && (text.err != ERR_OK || said.err != ERR_OK)) {
        status = cli_fail(cli, "these URLs are too long for a decree: at most 64 KiB");
    }
    status =
        status == CLI_DONE ? decree_publish_deletion(cli, data, buf_bytes(&said), buf_bytes(&text)) : status;
    buf_done(&said);
    buf_done(&text);
    return status;
}

/* ---- imports ---- */

static int decree_show_imports(struct cli *cli, const struct data *data) {
    struct decrees *decrees;
    struct err_detail detail = {0};
    enum err err = decrees_open(data->directory, NULL, &decrees, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "imports are taken from %s\n", import_rule_name(decrees_import_rule(decrees)));
    decrees_free(decrees);
    return CLI_DONE;
}

int decree_imports(struct cli *cli, const struct data *data, const char *who) {
    enum import_rule rule;
    struct decree_sent sent;
    char what[ERR_TEXT_SIZE_MAX];
    if (who == NULL) {
        return decree_show_imports(cli, data);
    }
    if (!import_rule_parse(bytes_of_string(who), &rule)) {
        return cli_fail(cli, "say who may import: nobody, stewards or members");
    }
    bool is_done;
    int status = publish(cli, data, DECREE_IMPORTS, BYTES(IMPORT_RULE_NAME),
                         bytes_of_string(import_rule_text(rule)), NULL, &sent, &is_done);
    snprintf(what, sizeof what, "are taken from %s", who);
    return status == CLI_DONE && is_done ? decree_await(cli, data, &sent, "imports", what) : status;
}
