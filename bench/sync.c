/*
 * Two nodes compare their captures, against rsync over the same captures as one file each.
 *
 * N captures (first argument, 1,000,000) in two sets of keys (store/keyset/keyset.h), which talk as two nodes
 * do (protocol/copies/reconcile.h): bytes of the messages with 32 more for the arc in each question, round
 * trips, processor time of both sides. rsync gets M files (second argument, N) in 256 directories, with the
 * shortest names that do not collide, empty, since bodies are not what is compared, and with the second tree
 * made of hard links, so that nothing differs but what shall; its bytes are those of its own statistics. Then
 * 1 and 100 captures are missing on the other side, asked from either side.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "bench.h"
#include "protocol/copies/reconcile.h"
#include "store/keyset/keyset.h"

enum { PATH_SIZE = 4096, ARC_SIZE = 2 * RINGKEY_POSITION_SIZE, SURT_SIZE_MAX = 64 };

static const size_t DIFFERENT[] = {0, 1, 100};
enum { CASES_COUNT = sizeof DIFFERENT / sizeof *DIFFERENT };

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-sync: %s failed\n", what);
        exit(1);
    }
}

/* Processor time of this thread (RUSAGE_THREAD), of the process, or of the children it has waited for. */
static double cpu_s(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static const char *path_of(const char *root, const char *name, char out[PATH_SIZE]) {
    must(snprintf(out, PATH_SIZE, "%s/%s", root, name) < PATH_SIZE, "a path");
    return out;
}

/* ---- captures ---- */

static struct capture make_capture(size_t n, char surt[SURT_SIZE_MAX]) {
    struct prng prng;
    prng_init_stream(&prng, 1, n);
    snprintf(surt, SURT_SIZE_MAX, "org,host%u)/articles/%llu.html", (unsigned)prng_below(&prng, 5000),
             (unsigned long long)prng_below(&prng, UINT64_C(1) << 40));
    struct capture capture = {.surt = bytes_of_string(surt)};
    capture.time_us = INT64_C(1767225600) * 1000000 + (int64_t)n * 30000;
    prng_fill(&prng, capture.digest, sizeof capture.digest);
    return capture;
}

/* The i-th of the captures that differ: one in each hundredth of all of them. */
static size_t different_capture(size_t i, size_t count) {
    size_t stride = count / 100;
    return i * stride + (size_t)(prng_mix(i + 1) % stride);
}

static void put_capture(struct keyset *keyset, size_t n) {
    char surt[SURT_SIZE_MAX];
    struct capture capture = make_capture(n, surt);
    must(keyset_put(keyset, &capture, NULL) == ERR_OK, "keyset_put");
}

static void drop_captures(struct keyset *keyset, size_t different, size_t count) {
    for (size_t i = 0; i < different; i++) {
        char surt[SURT_SIZE_MAX];
        struct capture capture = make_capture(different_capture(i, count), surt);
        struct ringkey key = keyset_key(keyset, &capture);
        must(keyset_remove(keyset, &key, NULL) == ERR_OK, "keyset_remove");
    }
    must(keyset_commit(keyset, NULL) == ERR_OK, "keyset_commit");
}

/* ---- our side ---- */

static struct keyset *open_keyset(const char *path) {
    struct keyset *keyset = NULL;
    struct err_detail detail = {0};
    if (keyset_open(path, POSITION_BY_URL, &keyset, &detail) != ERR_OK) {
        fprintf(stderr, "bench-sync: %s\n", detail.text);
        exit(1);
    }
    return keyset;
}

static struct keyset *fill_keyset(const char *path, size_t count) {
    struct keyset *keyset = open_keyset(path);
    double start_s = cpu_s(RUSAGE_SELF);
    for (size_t n = 0; n < count; n++) {
        put_capture(keyset, n);
    }
    must(keyset_commit(keyset, NULL) == ERR_OK, "keyset_commit");
    double filled_s = cpu_s(RUSAGE_SELF);
    size_t grown_size = keyset_memory_size(keyset);
    keyset_close(keyset);
    double closed_s = cpu_s(RUSAGE_THREAD);
    keyset = open_keyset(path);
    double opened_s = cpu_s(RUSAGE_THREAD);
    must(keyset_count(keyset) == count, "the count of keys");
    printf("%-52s %12.1f us CPU\n", "a capture entered", (filled_s - start_s) * 1e6 / (double)count);
    printf("%-52s %12.2f s CPU\n", "the set opened", opened_s - closed_s);
    printf("%-52s %12.2f bytes\n", "sums in memory, a key, as they grew", (double)grown_size / (double)count);
    printf("%-52s %12.2f bytes\n", "sums in memory, a key, as they were read",
           (double)keyset_memory_size(keyset) / (double)count);
    return keyset;
}

struct cost {
    double size;
    size_t rounds_count;
    double cpu_ms;
};

static void count_key(void *context, const struct ringkey *key) {
    (void)key;
    ++*(size_t *)context;
}

static struct cost compare(struct keyset *asker, struct keyset *answerer, size_t different) {
    static const struct reconcile_arc whole_ring;
    static uint8_t question_memory[RECONCILE_MESSAGE_SIZE_MAX];
    static uint8_t answer_memory[RECONCILE_MESSAGE_SIZE_MAX];
    size_t found = 0;
    struct reconcile_report report = {count_key, count_key, &found};
    struct ringkey_set asker_set = keyset_set(asker);
    struct ringkey_set answerer_set = keyset_set(answerer);
    struct reconcile reconcile;
    struct cost cost = {0};
    struct bytes question;
    struct bytes answer;
    double start_s = cpu_s(RUSAGE_THREAD);
    reconcile_init(&reconcile, &whole_ring, &asker_set, &report);
    must(reconcile_ask(&reconcile, question_memory, sizeof question_memory, &question, NULL) == ERR_OK,
         "ask");
    while (question.size > 0) {
        must(reconcile_answer(&whole_ring, &answerer_set, question, answer_memory, sizeof answer_memory,
                              &answer, NULL) == ERR_OK,
             "answer");
        cost.size += (double)(question.size + ARC_SIZE + answer.size);
        cost.rounds_count++;
        must(reconcile_take(&reconcile, answer, question_memory, sizeof question_memory, &question, NULL) ==
                 ERR_OK,
             "take");
    }
    cost.cpu_ms = (cpu_s(RUSAGE_THREAD) - start_s) * 1e3;
    must(found == different, "finding the difference");
    return cost;
}

static void measure_keysets(const char *root, size_t count, struct cost costs[CASES_COUNT]) {
    char path[PATH_SIZE];
    struct keyset *full = fill_keyset(path_of(root, "keys-a", path), count);
    struct keyset *less = open_keyset(path_of(root, "keys-b", path));
    for (size_t n = count; n-- > 0;) {
        put_capture(less, n);
    }
    for (size_t i = 0; i < CASES_COUNT; i++) {
        drop_captures(less, DIFFERENT[i], count);
        costs[i] = compare(full, less, DIFFERENT[i]);
        struct cost other_way = compare(less, full, DIFFERENT[i]);
        printf("compared, %3zu missing: asked by who has all         %12.0f bytes %2zu round trips %8.2f ms "
               "CPU\n",
               DIFFERENT[i], costs[i].size, costs[i].rounds_count, costs[i].cpu_ms);
        printf("compared, %3zu missing: asked by who lacks them      %12.0f bytes %2zu round trips %8.2f ms "
               "CPU\n",
               DIFFERENT[i], other_way.size, other_way.rounds_count, other_way.cpu_ms);
        costs[i] = other_way.size > costs[i].size ? other_way : costs[i];
    }
    keyset_close(full);
    keyset_close(less);
}

/* ---- rsync ---- */

static const char *file_path(const char *tree, size_t n, char out[PATH_SIZE]) {
    uint64_t name = prng_mix(n);
    must(snprintf(out, PATH_SIZE, "%s/%02x/%014llx", tree, (unsigned)(name >> 56),
                  (unsigned long long)(name & ((UINT64_C(1) << 56) - 1))) < PATH_SIZE,
         "a path");
    return out;
}

static void make_directories(const char *tree) {
    must(mkdir(tree, 0755) == 0, "mkdir");
    for (unsigned i = 0; i < 256; i++) {
        char path[PATH_SIZE];
        must(snprintf(path, sizeof path, "%s/%02x", tree, i) < PATH_SIZE, "a path");
        must(mkdir(path, 0755) == 0, "mkdir");
    }
}

static void make_trees(const char *from, const char *to, size_t count) {
    make_directories(from);
    make_directories(to);
    for (size_t n = 0; n < count; n++) {
        char path[PATH_SIZE];
        char link_path[PATH_SIZE];
        int fd = open(file_path(from, n, path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        must(fd >= 0 && close(fd) == 0, "making a file");
        must(link(path, file_path(to, n, link_path)) == 0, "link");
    }
}

/* The number behind a label of rsync's statistics; it writes 1,234,567. */
static double number_behind(const char *line, const char *label) {
    size_t size = strlen(label);
    if (strncmp(line, label, size) != 0) {
        return 0;
    }
    double number = 0;
    for (const char *at = line + size; *at != '\0' && *at != '\n'; at++) {
        number = byte_is_digit((uint8_t)*at) ? number * 10 + (*at - '0') : number;
    }
    return number;
}

static struct cost run_rsync(const char *from, const char *to) {
    char command[3 * PATH_SIZE];
    char line[1024];
    struct cost cost = {0};
    snprintf(command, sizeof command, "LC_ALL=C rsync -a --stats '%s/' '%s/'", from, to);
    double start_s = cpu_s(RUSAGE_CHILDREN);
    FILE *output = popen(command, "r");
    must(output != NULL, "rsync");
    while (fgets(line, sizeof line, output) != NULL) {
        cost.size += number_behind(line, "Total bytes sent:");
        cost.size += number_behind(line, "Total bytes received:");
    }
    must(pclose(output) == 0 && cost.size > 0, "rsync");
    cost.cpu_ms = (cpu_s(RUSAGE_CHILDREN) - start_s) * 1e3;
    return cost;
}

static void measure_rsync(const char *root, size_t count, struct cost costs[CASES_COUNT]) {
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    make_trees(path_of(root, "files-a", from), path_of(root, "files-b", to), count);
    for (size_t i = 0; i < CASES_COUNT; i++) {
        for (size_t j = 0; j < DIFFERENT[i]; j++) {
            char path[PATH_SIZE];
            must(unlink(file_path(to, different_capture(j, count), path)) == 0, "unlink");
        }
        costs[i] = run_rsync(from, to);
        printf("rsync of %zu files, %3zu missing %*s %12.0f bytes %24.2f ms CPU\n", count, DIFFERENT[i], 16,
               "", costs[i].size, costs[i].cpu_ms);
    }
}

/* ---- all of it ---- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

int main(int argc, char **argv) {
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    size_t files_count = argc > 2 ? strtoul(argv[2], NULL, 10) : count;
    const char *parent = getenv("TMPDIR");
    char root[PATH_SIZE];
    struct cost ours[CASES_COUNT];
    struct cost theirs[CASES_COUNT];
    must(count >= 1000 && files_count >= 1000, "the arguments: at least 1000 each");
    snprintf(root, sizeof root, "%s/mnemon-bench-XXXXXX", parent != NULL ? parent : "/tmp");
    must(mkdtemp(root) != NULL, "mkdtemp");
    printf("%zu captures\n", count);
    measure_keysets(root, count, ours);
    if (system("rsync --version >/dev/null 2>&1") != 0) {
        printf("rsync is not installed: nothing to compare with\n");
    } else {
        measure_rsync(root, files_count, theirs);
        for (size_t i = 0; i < CASES_COUNT; i++) {
            printf("%3zu missing: bytes of rsync, as often as ours %28.0fx\n", DIFFERENT[i],
                   theirs[i].size / ours[i].size);
        }
    }
    must(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "removing the files");
    return 0;
}
