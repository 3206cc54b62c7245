/* A job as a program asks for it, in JSON: the keys of job.conf (docs/formats/job.md), and URLs. */
#include <jansson.h>

#include "crawl/rules/pattern.h"
#include "crawl/rules/scope.h"
#include "node/crawl/job_files.h"

enum { TEXT_SIZE_MAX = 1 << 20, LIST_COUNT_MAX = 1000 };

static bool is_url_key(const char *key) {
    return strcmp(key, "url") == 0 || strcmp(key, "urls") == 0;
}

/* As the value of a quoted setting. */
static void put_quoted(struct buf *out, struct bytes text) {
    buf_put_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\') {
            buf_put_byte(out, '\\');
        }
        buf_put_byte(out, text.data[i]);
    }
    buf_put_string(out, "\"\n");
}

/* One line of job.conf. */
static enum err put_setting(struct buf *out, const char *key, const json_t *value,
                            struct err_detail *detail) {
    buf_put_format(out, "%s = ", key);
    if (json_is_string(value)) {
        put_quoted(out, bytes_of(json_string_value(value), json_string_length(value)));
    } else if (json_is_boolean(value)) {
        buf_put_string(out, json_is_true(value) ? "yes\n" : "no\n");
    } else if (json_is_integer(value) && json_integer_value(value) >= 0) {
        buf_put_format(out, "%jd\n", (intmax_t)json_integer_value(value));
    } else {
        return err_set(detail, ERR_INVALID, "%s: a text, a number or a switch is wanted", key);
    }
    return out->err;
}

/* Is it a name that a setting can have? The rest would be read as something else. */
static bool is_name(const char *key) {
    size_t size = strlen(key);
    return size > 0 && size <= 32 && strspn(key, "abcdefghijklmnopqrstuvwxyz_") == size;
}

/* All of one key, checked alone, so that a mistake can be named. */
static enum err wish_put_key(struct buf *out, const char *key, const json_t *value, struct arena *arena,
                             struct err_detail *detail) {
    struct job scratch;
    struct err_detail reason = {0};
    size_t start = out->size;
    enum err err = ERR_OK;
    if (!is_name(key)) {
        return err_set(detail, ERR_INVALID, "there is no setting of a job that is called so: \"%.60s\"", key);
    }
    if (json_array_size(value) > LIST_COUNT_MAX) {
        return err_set(detail, ERR_INVALID, "%s: too many", key);
    }
    for (size_t i = 0; i < json_array_size(value) && err == ERR_OK; i++) {
        err = put_setting(out, key, json_array_get(value, i), detail);
    }
    if (!json_is_array(value)) {
        err = put_setting(out, key, value, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = job_parse(&scratch, bytes_skip(buf_bytes(out), start), arena, &reason);
    const char *text = err_detail_text(&reason, err);
    const char *colon = strstr(text, ": ");
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %.200s", key, colon != NULL ? colon + 2 : text);
}

static enum err read_settings(const json_t *wish, struct arena *arena, struct job *job,
                              struct err_detail *detail) {
    struct buf text;
    enum err err = ERR_OK;
    const char *key;
    json_t *value;
    buf_init(&text, TEXT_SIZE_MAX);
    json_object_foreach((json_t *)(uintptr_t)wish, key, value) {
        if (err == ERR_OK && !is_url_key(key)) {
            err = wish_put_key(&text, key, value, arena, detail);
        }
    }
    if (err == ERR_OK) {
        err = job_parse(job, buf_bytes(&text), arena, detail);
    }
    buf_done(&text);
    return err;
}

static enum err add_urls(const json_t *value, struct arena *arena, struct job *job,
                         struct err_detail *detail) {
    if (json_is_array(value)) {
        enum err err = ERR_OK;
        for (size_t i = 0; i < json_array_size(value) && err == ERR_OK; i++) {
            const json_t *item = json_array_get(value, i);
            err = json_is_string(item) ? add_urls(item, arena, job, detail)
                                       : err_set(detail, ERR_INVALID, "urls: texts are wanted");
        }
        return err;
    }
    if (!json_is_string(value)) {
        return err_set(detail, ERR_INVALID, "url: a text is wanted");
    }
    struct bytes text = bytes_of(json_string_value(value), json_string_length(value));
    return job_add_seeds_of_person(job, text, NULL, arena, detail);
}

/* The crawl would only find out when it opens the job. */
static enum err check_patterns(const struct config_list *list, const char *key, struct err_detail *detail) {
    struct pattern_list patterns;
    struct err_detail reason = {0};
    pattern_list_init(&patterns);
    enum err err = ERR_OK;
    for (size_t i = 0; i < list->count && err == ERR_OK; i++) {
        err = pattern_list_add(&patterns, list->items[i], &reason);
    }
    pattern_list_done(&patterns);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %.200s", key, err_detail_text(&reason, err));
}

static enum err wish_read_all(const json_t *wish, struct arena *arena, struct job *job,
                              struct err_detail *detail) {
    if (!json_is_object(wish)) {
        return err_set(detail, ERR_INVALID, "a JSON object is wanted: {\"url\":\"https://example.org/\"}");
    }
    enum err err = read_settings(wish, arena, job, detail);
    const json_t *url = json_object_get(wish, "url");
    const json_t *urls = json_object_get(wish, "urls");
    if (err == ERR_OK && url != NULL) {
        err = add_urls(url, arena, job, detail);
    }
    if (err == ERR_OK && urls != NULL) {
        err = add_urls(urls, arena, job, detail);
    }
    if (err == ERR_OK && job->seeds.count == 0) {
        err = err_set(detail, ERR_INVALID, "which site? no URL is given");
    }
    if (err == ERR_OK) {
        err = check_patterns(&job->include, "include", detail);
    }
    if (err == ERR_OK) {
        err = check_patterns(&job->exclude, "exclude", detail);
    }
    return err;
}

enum err job_wish_read(struct bytes text, struct arena *arena, struct job *ret_job,
                       struct err_detail *detail) {
    json_error_t problem;
    json_t *wish = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &problem);
    if (wish == NULL) {
        return err_set(detail, ERR_INVALID, "this is no JSON: %.150s", problem.text);
    }
    *ret_job = (struct job){0};
    enum err err = wish_read_all(wish, arena, ret_job, detail);
    json_decref(wish);
    if (err == ERR_OK && ret_job->scope == SCOPE_PAGE) {
        ret_job->skips_sitemaps = true; /* they lead to other pages only */
    }
    return err;
}
