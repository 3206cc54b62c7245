#include "crawl/engine/job.h"

#include <stdio.h>

#include "base/sha256.h"
#include "base/value.h"
#include "base/whole_file.h"
#include "crawl/fetch/logins.h"

enum { PATH_SIZE_MAX = 4096, DELAY_MAX_S = 24 * 3600, FILE_MODE = 0666 };

const char *const job_scopes[] = {"page", "prefix", "host", "domain", "any", NULL};
const char *const job_revisits[] = {"all", "adaptive", NULL};

/* ---- the name ---- */

static void hash_text(struct sha256 *sha256, struct bytes text) {
    uint8_t size[8];
    for (size_t i = 0; i < sizeof size; i++) {
        size[i] = (uint8_t)((uint64_t)text.size >> 8 * i);
    }
    sha256_update(sha256, bytes_of(size, sizeof size)); /* so that "ab" "c" is not "a" "bc" */
    sha256_update(sha256, text);
}

static void hash_list(struct sha256 *sha256, const struct config_list *list) {
    hash_text(sha256, bytes_of(&list->count, sizeof list->count));
    for (size_t i = 0; i < list->count; i++) {
        hash_text(sha256, list->items[i]);
    }
}

static bool is_name_byte(uint8_t byte) {
    return (byte >= 'a' && byte <= 'z') || byte_is_digit(byte) || byte == '.' || byte == '-' || byte == '_';
}

bool job_name_is_valid(struct bytes name) {
    if (name.size == 0 || name.size >= JOB_NAME_SIZE_MAX || name.data[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!is_name_byte(name.data[i])) {
            return false;
        }
    }
    return true;
}

void job_name(const struct job *job, char out[JOB_NAME_SIZE_MAX]) {
    uint8_t digest[SHA256_SIZE] = {0};
    struct sha256 sha256;
    if (sha256_init(&sha256) == ERR_OK) {
        sha256_start(&sha256);
        hash_list(&sha256, &job->seeds);
        hash_text(&sha256, bytes_of(&job->scope, sizeof job->scope));
        hash_text(&sha256, bytes_of(&job->depth, sizeof job->depth));
        hash_list(&sha256, &job->include);
        hash_list(&sha256, &job->exclude);
        sha256_finish(&sha256, digest);
        sha256_done(&sha256);
    }
    struct url url;
    url_init(&url);
    struct bytes host = BYTES("job");
    if (job->seeds.count > 0 && url_parse(&url, job->seeds.items[0], NULL, NULL) == ERR_OK &&
        url_host(&url).size > 0) {
        host = url_host(&url);
    }
    size_t size = 0;
    for (size_t i = 0; i < host.size && size < JOB_NAME_SIZE_MAX - 16; i++) {
        bool is_good = is_name_byte(host.data[i]) && (size > 0 || host.data[i] != '.');
        out[size++] = is_good ? (char)host.data[i] : '_';
    }
    snprintf(out + size, JOB_NAME_SIZE_MAX - size, "-%02x%02x%02x%02x", digest[0], digest[1], digest[2],
             digest[3]);
    url_done(&url);
}

/* ---- job.conf ---- */

/* The file's own view: where a word is allowed beside a duration. */
struct job_file {
    struct job job;
    struct bytes delay;
};

#define FIELD(name) offsetof(struct job_file, job.name)

static const struct config_key keys[] = {
    {"scope", CONFIG_CHOICE, FIELD(scope), "host", 0, 0, job_scopes, "which URLs belong to it"},
    {"depth", CONFIG_NUMBER, FIELD(depth), "65535", 0, JOB_DEPTH_ANY, NULL, "page links from the seeds"},
    {"include", CONFIG_LIST, FIELD(include), NULL, 0, 0, NULL, "patterns of further URLs"},
    {"exclude", CONFIG_LIST, FIELD(exclude), NULL, 0, 0, NULL, "patterns of URLs to leave out"},
    {"ignore_robots", CONFIG_SWITCH, FIELD(ignores_robots), "no", 0, 0, NULL, "do not obey robots.txt"},
    {"skip_sitemaps", CONFIG_SWITCH, FIELD(skips_sitemaps), "no", 0, 0, NULL, "do not read sitemaps"},
    {"forms", CONFIG_SWITCH, FIELD(follows_forms), "no", 0, 0, NULL, "follow GET forms"},
    {"guesses", CONFIG_SWITCH, FIELD(follows_guesses), "no", 0, 0, NULL, "follow URLs in scripts"},
    {"delay", CONFIG_TEXT, offsetof(struct job_file, delay), "auto", 0, 0, NULL,
     "between two requests to a host; auto: by how fast it answers"},
    {"limit", CONFIG_NUMBER, FIELD(urls_max), "0", 0, UINT64_MAX, NULL, "URLs per run; 0: no limit"},
    {"limit_bytes", CONFIG_SIZE, FIELD(bytes_max), "0", 0, UINT64_MAX, NULL, "received per run"},
    {"limit_time", CONFIG_DURATION, FIELD(time_max_us), "0", 0, UINT64_MAX, NULL, "of a run"},
    {"limit_body", CONFIG_SIZE, FIELD(body_size_max), "0", 0, UINT64_MAX, NULL, "of one document"},
    {"limit_host", CONFIG_NUMBER, FIELD(host_urls_max), "0", 0, UINT32_MAX, NULL, "URLs per host"},
    {"limit_domain", CONFIG_NUMBER, FIELD(domain_urls_max), "0", 0, UINT32_MAX, NULL,
     "URLs per registrable domain"},
    {"period", CONFIG_DURATION, FIELD(period_us), "1 d", 1000000, UINT64_MAX, NULL, "from visit to visit"},
    {"revisit", CONFIG_CHOICE, FIELD(revisit), "all", 0, 0, job_revisits,
     "all: every known URL each period; adaptive: those that change often"},
    {"paused", CONFIG_SWITCH, FIELD(is_paused), "no", 0, 0, NULL, "a node leaves it alone"},
    {"shared", CONFIG_SWITCH, FIELD(is_shared), "no", 0, 0, NULL, "all nodes of the ring do it together"},
    {0},
};

enum err job_parse(struct job *job, struct bytes text, struct arena *arena, struct err_detail *detail) {
    struct job_file file = {0};
    enum err err = config_read(keys, text, arena, &file, detail);
    if (err != ERR_OK) {
        return err;
    }
    file.job.has_delay = !bytes_equal(file.delay, BYTES("auto"));
    if (file.job.has_delay) {
        err = value_read_duration(file.delay, 0, (uint64_t)DELAY_MAX_S * 1000000, &file.job.delay_us, detail);
    }
    if (err == ERR_OK) {
        *job = file.job;
    }
    return err;
}

static void job_put_text(struct buf *buf, const char *name, struct bytes text) {
    buf_put_format(buf, "%s = \"", name);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\\') {
            buf_put_byte(buf, '\\');
        }
        buf_put_byte(buf, byte);
    }
    buf_put_string(buf, "\"\n");
}

static void put_switch(struct buf *buf, const char *name, bool is_on) {
    if (is_on) {
        buf_put_format(buf, "%s = yes\n", name);
    }
}

static void put_number(struct buf *buf, const char *name, uint64_t value, const char *unit) {
    if (value > 0) {
        buf_put_format(buf, "%s = %ju%s\n", name, (uintmax_t)value, unit);
    }
}

void job_put(const struct job *job, struct buf *buf) {
    buf_put_format(buf, "scope = %s\n", job_scopes[job->scope]);
    buf_put_format(buf, "depth = %ju\n", (uintmax_t)job->depth);
    for (size_t i = 0; i < job->include.count; i++) {
        job_put_text(buf, "include", job->include.items[i]);
    }
    for (size_t i = 0; i < job->exclude.count; i++) {
        job_put_text(buf, "exclude", job->exclude.items[i]);
    }
    put_switch(buf, "ignore_robots", job->ignores_robots);
    put_switch(buf, "skip_sitemaps", job->skips_sitemaps);
    put_switch(buf, "forms", job->follows_forms);
    put_switch(buf, "guesses", job->follows_guesses);
    if (job->has_delay) {
        buf_put_format(buf, "delay = \"%ju us\"\n", (uintmax_t)job->delay_us);
    }
    put_number(buf, "limit", job->urls_max, "");
    put_number(buf, "limit_bytes", job->bytes_max, " bytes");
    put_number(buf, "limit_time", job->time_max_us, " us");
    put_number(buf, "limit_body", job->body_size_max, " bytes");
    put_number(buf, "limit_host", job->host_urls_max, "");
    put_number(buf, "limit_domain", job->domain_urls_max, "");
    put_number(buf, "period", job->period_us, " us");
    buf_put_format(buf, "revisit = %s\n", job_revisits[job->revisit]);
    put_switch(buf, "paused", job->is_paused);
    put_switch(buf, "shared", job->is_shared);
}

/* ---- seeds ---- */

/* "example.org/x" and "//example.org" are what people type. */
static enum err parse_seed(struct url *url, struct bytes line, struct err_detail *detail) {
    char with_scheme[URL_SIZE_MAX];
    struct bytes slashes = BYTES("//");
    bool has_scheme = bytes_find(line, BYTES("://")) < line.size;
    struct bytes rest = bytes_starts_with(line, slashes) ? bytes_skip(line, slashes.size) : line;
    if (!has_scheme) {
        int size = snprintf(with_scheme, sizeof with_scheme, "https://%.*s", BYTES_ARG(rest));
        if (size >= (int)sizeof with_scheme) {
            return err_set(detail, ERR_LIMIT, "it is too long");
        }
        line = bytes_of(with_scheme, (size_t)size);
    }
    enum err err = url_parse(url, line, NULL, detail);
    if (err == ERR_OK && !url_is_web(url)) {
        err = err_set(detail, ERR_INVALID, "only http and https can be archived");
    }
    return err;
}

static enum err add_seed(struct job *job, struct bytes href, struct arena *arena) {
    struct config_list *seeds = &job->seeds;
    if (seeds->count == seeds->capacity) {
        size_t capacity = seeds->capacity == 0 ? 8 : 2 * seeds->capacity;
        struct bytes *items = arena_take_array(arena, capacity, sizeof *items);
        if (items == NULL) {
            return ERR_MEMORY;
        }
        if (seeds->count > 0) {
            memcpy(items, seeds->items, seeds->count * sizeof *items);
        }
        seeds->items = items;
        seeds->capacity = capacity;
    }
    struct bytes copy = arena_copy(arena, href);
    if (copy.data == NULL) {
        return ERR_MEMORY;
    }
    seeds->items[seeds->count++] = copy;
    return ERR_OK;
}

/* What becomes of a user and a password in a seed. */
enum seed_userinfo { SEED_USERINFO_DROPPED, SEED_USERINFO_REFUSED, SEED_USERINFO_TAKEN };

static enum err job_settle_userinfo(struct url *url, enum seed_userinfo userinfo, struct logins *logins,
                                    struct err_detail *detail) {
    if (url_has_userinfo(url) && userinfo == SEED_USERINFO_REFUSED) {
        return err_set(detail, ERR_INVALID,
                       "a job that runs later keeps no user and no password; leave them out, or fetch it now "
                       "with \"mnemon archive\"");
    }
    enum err err = userinfo == SEED_USERINFO_TAKEN ? logins_add(logins, url, detail) : ERR_OK;
    url_remove_userinfo(url);
    return err;
}

/* A text that could not be read may have a password anywhere before its last '@'. */
static void job_blame_seed(struct bytes line, uint32_t line_number, enum err err, const char *why,
                           struct err_detail *detail) {
    struct bytes shown = url_text_without_userinfo(line);
    err_set(detail, err, "%s%.*s: %s", shown.size < line.size ? "…@" : "", BYTES_ARG(shown), why);
    if (detail != NULL) {
        detail->line = line_number;
    }
}

static enum err job_take_seeds(struct job *job, struct bytes text, enum seed_userinfo userinfo,
                               struct logins *logins, struct arena *arena, struct err_detail *detail) {
    struct url url;
    struct bytes line;
    uint32_t line_number = 0;
    enum err err = ERR_OK;
    url_init(&url);
    while (err == ERR_OK && bytes_split(&text, '\n', &line)) {
        line = bytes_trim(line);
        line_number++;
        if (line.size == 0 || line.data[0] == '#') {
            continue;
        }
        struct err_detail why;
        err = job->seeds.count < JOB_SEEDS_MAX
                  ? parse_seed(&url, line, &why)
                  : err_set(&why, ERR_LIMIT, "more than %d seeds", JOB_SEEDS_MAX);
        if (err == ERR_OK) {
            err = job_settle_userinfo(&url, userinfo, logins, &why);
        }
        if (err != ERR_OK) {
            job_blame_seed(line, line_number, err, why.text, detail);
            break;
        }
        err = add_seed(job, url_href_without_fragment(&url), arena);
    }
    url_done(&url);
    return err;
}

enum err job_add_seeds(struct job *job, struct bytes text, struct arena *arena, struct err_detail *detail) {
    return job_take_seeds(job, text, SEED_USERINFO_DROPPED, NULL, arena, detail);
}

enum err job_add_seeds_of_person(struct job *job, struct bytes text, struct logins *logins,
                                 struct arena *arena, struct err_detail *detail) {
    enum seed_userinfo userinfo = logins != NULL ? SEED_USERINFO_TAKEN : SEED_USERINFO_REFUSED;
    return job_take_seeds(job, text, userinfo, logins, arena, detail);
}

/* ---- files ---- */

/* The text is in the arena. */
static enum err read_file(const char *path, struct arena *arena, struct bytes *ret_text,
                          struct err_detail *detail) {
    struct buf text;
    buf_init(&text, JOB_FILE_SIZE_MAX);
    enum err err = whole_file_read(path, &text, detail);
    if (err == ERR_LIMIT) {
        err_set(detail, err, "%s is larger than %d bytes", path, JOB_FILE_SIZE_MAX);
    }
    *ret_text = err == ERR_OK ? arena_copy(arena, buf_bytes(&text)) : bytes_of(NULL, 0);
    buf_done(&text);
    return err == ERR_OK && ret_text->data == NULL ? ERR_MEMORY : err;
}

enum err job_read(struct job *job, const char *directory, struct arena *arena, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct bytes text;
    snprintf(path, sizeof path, "%s/job.conf", directory);
    enum err err = read_file(path, arena, &text, detail);
    if (err == ERR_OK) {
        err = job_parse(job, text, arena, detail);
    }
    snprintf(path, sizeof path, "%s/seeds", directory);
    if (err == ERR_OK) {
        err = read_file(path, arena, &text, detail);
    }
    return err == ERR_OK ? job_add_seeds(job, text, arena, detail) : err;
}

/* Under another name first, so that nobody ever reads half of it. */
static enum err job_write_file(const char *directory, const char *name, struct bytes text,
                               struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return whole_file_replace(path, text, FILE_MODE, detail);
}

enum err job_write(const struct job *job, const char *directory, struct err_detail *detail) {
    struct buf text;
    enum err err = whole_file_make_directory(directory, detail);
    if (err != ERR_OK) {
        return err;
    }
    buf_init(&text, JOB_FILE_SIZE_MAX);
    for (size_t i = 0; i < job->seeds.count; i++) {
        buf_put(&text, job->seeds.items[i]);
        buf_put_byte(&text, '\n');
    }
    err = text.err == ERR_OK ? job_write_file(directory, "seeds", buf_bytes(&text), detail) : text.err;
    buf_clear(&text);
    job_put(job, &text);
    if (err == ERR_OK) {
        err = text.err == ERR_OK ? job_write_file(directory, "job.conf", buf_bytes(&text), detail) : text.err;
    }
    buf_done(&text);
    return err;
}
