#include "cli/decree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
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
};

static enum err voice_open(struct decree_voice *voice, const char *directory, struct err_detail *detail) {
    struct bytes encoded;
    *voice =
        (struct decree_voice){.charter = malloc(sizeof *voice->charter), .memory = malloc(CHARTER_SIZE_MAX)};
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
    bool is_founder = memcmp(voice->identity.key, voice->charter->founder, PEER_KEY_SIZE) == 0;
    return job->ignores_robots && !is_founder
               ? err_set(detail, ERR_PERMISSION,
                         "only the founder may let jobs of the ring ignore robots.txt")
               : ERR_OK;
}

/* job: NULL, or the one to be added. */
static int publish(struct cli *cli, const struct data *data, enum decree_kind kind, struct bytes name,
                   struct bytes text, const struct job *job, struct decree_sent *ret_sent) {
    struct err_detail detail = {0};
    struct decree_voice voice;
    struct decrees_receipt receipt;
    enum err err = voice_open(&voice, data->directory, &detail);
    err = err == ERR_OK && job != NULL ? check_seeds(voice.charter, job, &detail) : err;
    err = err == ERR_OK && job != NULL ? check_robots(&voice, job, &detail) : err;
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
            ? publish(cli, data, DECREE_JOB, bytes_of_string(name), buf_bytes(&text), job, &sent)
            : cli_fail(cli, "the job is too long for a decree: at most 64 KiB of seeds and patterns");
    if (status == CLI_DONE) {
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
    int status = publish(cli, data, DECREE_JOB, bare, bytes_of(NULL, 0), NULL, &sent);
    if (status == CLI_DONE) {
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
    int status = publish(cli, data, DECREE_RULES, bytes_of_string(name), buf_bytes(&text), NULL, &sent);
    if (status == CLI_DONE) {
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
    if (decree_name_of(said, name) != ERR_OK) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    int status = publish(cli, data, DECREE_DELETION, bytes_of_string(name), text, NULL, &sent);
    if (status != CLI_DONE) {
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
