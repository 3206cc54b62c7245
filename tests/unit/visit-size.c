/* visit-size - how much disk a visit takes that found nothing new: its record, its row of the index and its
 * key. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/prng.h"
#include "base/sha256.h"
#include "scratch.h"
#include "store/instance/instance.h"
#include "store/keyset/keyset_feed.h"
#include "store/volume/volume_record.h"
#include "unit.h"

enum {
    PAGES_COUNT = 2500, /* of 2 KB: enough for a dictionary */
    VISITS_COUNT = 8,
    PAGE_SIZE_MAX = 4096,
    VISIT_SIZE_MAX = 262, /* 251 when this was written */
};

static const int64_t START_US = INT64_C(1794000000) * 1000000;
static const int64_t DAY_US = INT64_C(86400) * 1000000;
static const char NODE_KEY[] = "o7vy2scdbuisn4y6gj2clxzgxlkovdl4kgewpcowopchgfg3ttta";

struct site {
    struct instance_session *session;
    struct sha256 sha256;
    struct prng prng;
};

static size_t put_page(unsigned number, char *out) {
    struct prng prng;
    size_t size = (size_t)snprintf(out, PAGE_SIZE_MAX, "<!doctype html><title>Page %u</title><p>", number);
    prng_init(&prng, number);
    while (size < 2000) {
        static const char *const words[] = {"archive ", "of ",     "the ",  "web ",  "keeps ",
                                            "what ",    "others ", "have ", "left ", "behind",
                                            ", and",    " time ",  "goes ", "on. "};
        size += (size_t)snprintf(out + size, PAGE_SIZE_MAX - size, "%s%s", words[prng_below(&prng, 14)],
                                 prng_below(&prng, 9) == 0 ? "<a href=/x>more</a> " : "");
    }
    return size;
}

static void put_digits(struct prng *prng, char *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = "0123456789abcdef"[prng_below(prng, 16)];
    }
    out[count] = '\0';
}

static void visit(struct site *site, unsigned number, unsigned day) {
    char page[PAGE_SIZE_MAX], url[80], head[512], signature[200], etag[20];
    struct document_sum sum = {.size = put_page(number, page)};
    struct prng tags;
    struct stored stored;
    unsigned second = (unsigned)prng_below(&site->prng, 60);
    bool is_first = day == 0;
    sha256_digest(&site->sha256, bytes_of(page, sum.size), sum.digest);
    snprintf(url, sizeof url, "https://www.example.org/%s/page-%u.html",
             number % 3 == 0 ? "news" : "articles", number);
    prng_init(&tags, number);
    put_digits(&tags, etag, 13);
    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\nServer: nginx\r\nDate: Mon, %02u Nov 2026 10:%02u:%02u GMT\r\n%s"
             "Last-Modified: Mon, 02 Mar 2026 04:05:06 GMT\r\nConnection: keep-alive\r\nETag: \"%s\"\r\n\r\n",
             is_first ? "200 OK" : "304 Not Modified", day + 1, number % 60, second,
             is_first ? "Content-Type: text/html\r\n" : "", etag);
    snprintf(signature, sizeof signature, "%s ", NODE_KEY);
    put_digits(&site->prng, signature + strlen(signature), 128);
    struct document document = {
        .url = bytes_of_string(url),
        .time_us = START_US + (int64_t)day * DAY_US + (int64_t)prng_below(&site->prng, 3600u * 1000000u),
        .head = bytes_of_string(head),
        .body = is_first ? bytes_of(page, sum.size) : bytes_of(NULL, 0),
        .ip_address = BYTES("192.0.2.17"),
        .tls = BYTES("verified"),
        .signature = bytes_of_string(signature),
        .sum = &sum,
        .is_not_modified = !is_first,
        .is_body_left_out = !is_first,
    };
    assert_int_equal(
        instance_put(site->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL), ERR_OK);
}

static struct volume_stat look(struct site *site) {
    struct volume_stat stat;
    assert_int_equal(instance_stat(site->session, 0, &stat, NULL), ERR_OK);
    return stat;
}

/* Of the tables and the log; what a database says of itself does not grow with it. */
static uint64_t tables_size(const char *directory) {
    DIR *files = opendir(directory);
    uint64_t size = 0;
    assert_non_null(files);
    for (struct dirent *file; (file = readdir(files)) != NULL;) {
        char path[SCRATCH_PATH_SIZE];
        struct stat status;
        const char *dot = strrchr(file->d_name, '.');
        scratch_path(directory, file->d_name, path);
        if (dot != NULL && (strcmp(dot, ".sst") == 0 || strcmp(dot, ".log") == 0) &&
            stat(path, &status) == 0) {
            size += (uint64_t)status.st_size;
        }
    }
    closedir(files);
    return size;
}

/* The keys of all captures, as a node of a ring has them; how large they are when they are written out. */
static uint64_t keys_size(struct instance *instance, const char *directory) {
    struct keyset *keyset;
    bool has_more = true;
    assert_int_equal(keyset_open(directory, POSITION_BY_URL, &keyset, NULL), ERR_OK);
    struct keyset_feed *feed = keyset_feed_new(keyset, instance);
    assert_non_null(feed);
    while (has_more) {
        assert_int_equal(keyset_feed_run(feed, 10000, &has_more, NULL), ERR_OK);
    }
    assert_int_equal(keyset_commit(keyset, NULL), ERR_OK);
    keyset_feed_free(feed);
    keyset_close(keyset);
    assert_int_equal(keyset_open(directory, POSITION_BY_URL, &keyset, NULL), ERR_OK);
    keyset_close(keyset);
    return tables_size(directory);
}

static void an_unchanged_visit_takes_little(void **state) {
    char directory[SCRATCH_PATH_SIZE];
    struct instance *instance;
    struct site site;
    if (UNIT_IS_SANITIZED) {
        skip(); /* sizes are the same, and it takes half a minute */
    }
    struct instance_config config = {.directory = scratch_path(*state, "data", directory)};
    assert_int_equal(instance_open(&config, &instance, NULL), ERR_OK);
    site.session = instance_session_new(instance);
    assert_int_equal(sha256_init(&site.sha256), ERR_OK);
    prng_init(&site.prng, 1);
    for (unsigned i = 0; i < PAGES_COUNT; i++) {
        visit(&site, i, 0);
    }
    struct volume_stat before = look(&site);
    char keys[SCRATCH_PATH_SIZE];
    scratch_path(*state, "keys", keys);
    uint64_t keys_before = keys_size(instance, keys);
    for (unsigned day = 1; day <= VISITS_COUNT; day++) {
        for (unsigned i = 0; i < PAGES_COUNT; i++) {
            visit(&site, i, day);
        }
    }
    struct volume_stat after = look(&site);
    double count = (double)PAGES_COUNT * VISITS_COUNT;
    double record_size = (double)(after.size - before.size) / count;
    double index_size = (double)(after.index_size - before.index_size) / count;
    double key_size = (double)(keys_size(instance, keys) - keys_before) / count;
    print_message("an unchanged visit: record %.1f bytes, index %.1f, key %.1f: %.1f\n", record_size,
                  index_size, key_size, record_size + index_size + key_size);
    assert_true(record_size + index_size + key_size <= VISIT_SIZE_MAX);
    sha256_done(&site.sha256);
    instance_session_free(site.session);
    instance_close(instance);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_unchanged_visit_takes_little, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
