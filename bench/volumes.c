/*
 * volumes - the experiments of the Webstore paper (figures 4 to 7): client processes against a volume server,
 * against the same work on NFS, and against one file per document on the local disk.
 *
 *      bench-volumes [documents (1000)] [directory for CSV and SVG]
 *
 * Documents are the pages of corpus.h, made before anything is timed. All servers and clients run on this
 * machine and share its processors; all data lies below $TMPDIR, or else below the current directory, and is
 * removed at the end. A run is timed from the moment when all clients are connected to the moment when the
 * last one is done. Sides take turns; of several rounds the best counts.
 *
 * Durable means the same everywhere: a document that was stored survives the end of the machine. A file is
 * synced, and the local one's directory too. Deletions are synced by the volume server and for local files;
 * ganesha does not sync them, so NFS does less there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "bench.h"
#include "corpus.h"
#include "nfs.h"
#include "node/node.h"
#include "sim/report/plot.h"
#include "sim/report/report.h"
#include "store/instance/instance.h"

enum {
    DOCUMENTS_COUNT = 1000,
    ROUNDS_COUNT = 5,
    CLIENTS_MAX = 25,
    CLIENTS_STEP = 5,
    MODES_CLIENTS_COUNT = 10,
    DIRECTORIES_COUNT = 256,
    PATH_SIZE_MAX = 768,
    DOCUMENT_SIZE_MAX = 1 << 20,
};
static const int64_t TIME_US = 1700000000000000;

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-volumes: %s failed: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* ---- documents ---- */

struct page {
    struct bytes body;
    uint8_t digest[SHA256_SIZE];
    char name[80]; /* of its file: "ba/ba78…" */
};

struct pages {
    struct page *all;
    size_t count;
};

/* Pages first, first + 1 … of the corpus. */
static struct pages pages_new(const struct corpus *corpus, uint64_t first, size_t count) {
    struct pages pages = {.all = calloc(count, sizeof *pages.all), .count = count};
    struct sha256 sha256;
    must(pages.all != NULL && sha256_init(&sha256) == ERR_OK, "calloc");
    for (size_t i = 0; i < count; i++) {
        struct page *page = &pages.all[i];
        struct buf buf;
        char hex[2 * SHA256_SIZE + 1];
        buf_init(&buf, DOCUMENT_SIZE_MAX);
        corpus_put_page(corpus, first + i, &buf);
        must(buf.err == ERR_OK, "making documents");
        page->body = buf_bytes(&buf);
        sha256_digest(&sha256, page->body, page->digest);
        hex_encode(bytes_of(page->digest, sizeof page->digest), hex);
        snprintf(page->name, sizeof page->name, "%.2s/%s", hex, hex);
    }
    sha256_done(&sha256);
    return pages;
}

static uint64_t pages_size(const struct pages *pages) {
    uint64_t size = 0;
    for (size_t i = 0; i < pages->count; i++) {
        size += pages->all[i].body.size;
    }
    return size;
}

/* ---- directories ---- */

static void make_path(char out[PATH_SIZE_MAX], const char *directory, const char *name) {
    must(snprintf(out, PATH_SIZE_MAX, "%s/%s", directory, name) < PATH_SIZE_MAX, "a path");
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_tree(const char *path) {
    must(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, path);
}

/* The 256 directories that files are spread over. */
static void make_directories(const char *root) {
    for (int i = 0; i < DIRECTORIES_COUNT; i++) {
        char name[8];
        char path[PATH_SIZE_MAX];
        snprintf(name, sizeof name, "%02x", i);
        make_path(path, root, name);
        must(mkdir(path, 0755) == 0, "mkdir");
    }
}

/* ---- the sides ---- */

enum operation { STORE, RETRIEVE, DELETE };

/* What a server of this side has to tell its clients. */
struct site {
    char directory[PATH_SIZE_MAX]; /* fresh and its own */
    char files[PATH_SIZE_MAX];     /* below it: the files, or the clients' connector */
    struct nfs_server nfs;
    pid_t process;
};

struct side {
    const char *name;
    bool (*start)(struct site *site);
    void (*stop)(struct site *site);
    void *(*connect)(const struct site *site);
    bool (*work)(void *client, enum operation operation, enum store_mode mode, const struct page *page);
};

/* A volume server, in a process of its own. */
static void serve(const struct site *site, int tell_fd) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct instance_config config = {.directory = site->directory};
    struct instance *instance;
    struct node *node;
    struct address address;
    struct err_detail detail = {0};
    node_take_signals();
    enum err err = instance_open(&config, &instance, &detail);
    if (err == ERR_OK) {
        static const struct settings settings;
        struct node_config node_config = {.directory = site->directory,
                                          .instance = instance,
                                          .settings = &settings,
                                          .http = address_ipv4(127, 0, 0, 1, 0)};
        err = node_start(&node_config, &node, &detail);
    }
    if (err != ERR_OK) {
        fprintf(stderr, "bench-volumes: %s\n", err_detail_text(&detail, err));
        _exit(1);
    }
    node_http_address(node, &address);
    must(write(tell_fd, &address.port, sizeof address.port) == sizeof address.port, "write");
    while (node_await_signal(UINT64_MAX / 2) == 0) {
    }
    node_stop(node);
    instance_close(instance);
    _exit(0);
}

static bool volume_start(struct site *site) {
    int tell[2];
    uint16_t port;
    char path[PATH_SIZE_MAX];
    must(pipe(tell) == 0, "pipe");
    site->process = fork();
    if (site->process == 0) {
        close(tell[0]);
        serve(site, tell[1]);
    }
    close(tell[1]);
    must(read(tell[0], &port, sizeof port) == sizeof port, "the volume server");
    close(tell[0]);
    make_path(site->files, site->directory, "client");
    must(mkdir(site->files, 0755) == 0, "mkdir");
    make_path(path, site->files, "connector");
    FILE *file = fopen(path, "w");
    must(file != NULL, path);
    fprintf(file, "[volume-0]\nurl = \"http://127.0.0.1:%u\"\ntoken_file = \"../token\"\n", port);
    must(fclose(file) == 0, path);
    return true;
}

static void volume_stop(struct site *site) {
    int status;
    kill(site->process, SIGTERM);
    must(waitpid(site->process, &status, 0) > 0 && status == 0, "the volume server's end");
}

static void *volume_connect(const struct site *site) {
    struct instance_config config = {.directory = site->files};
    struct instance *instance;
    struct err_detail detail = {0};
    must(instance_open(&config, &instance, &detail) == ERR_OK, detail.text);
    struct instance_session *session = instance_session_new(instance);
    must(session != NULL, "a session");
    struct volume_stat stat; /* so that the connection is there */
    must(instance_stat(session, 0, &stat, &detail) == ERR_OK, detail.text);
    return session;
}

static bool volume_work(void *client, enum operation operation, enum store_mode mode,
                        const struct page *page) {
    struct err_detail detail = {0};
    struct document document = {.body = page->body, .time_us = TIME_US, .content_type = BYTES("text/html")};
    struct key key = {0};
    struct stored stored;
    struct bytes found;
    enum err err;
    memcpy(key.digest, page->digest, sizeof key.digest);
    if (operation == STORE) {
        err = instance_put(client, &document, mode, INSTANCE_VOLUME_ANY, &stored, &detail);
    } else if (operation == RETRIEVE) {
        err = instance_get(client, &key, &found, &detail);
    } else {
        err = instance_remove(client, &key, &detail);
    }
    if (err != ERR_OK) {
        fprintf(stderr, "bench-volumes: %s\n", err_detail_text(&detail, err));
    }
    return err == ERR_OK && (operation != RETRIEVE || found.size == page->body.size);
}

/* NFS: a name per document; what is stored twice needs two names, as its clients cannot know better. */
static bool nfs_start(struct site *site) {
    make_path(site->files, site->directory, "files");
    must(mkdir(site->files, 0755) == 0, "mkdir");
    make_directories(site->files);
    return nfs_server_start(&site->nfs, site->files, site->directory);
}

static void nfs_stop(struct site *site) {
    nfs_server_stop(&site->nfs);
}

static void *nfs_connect(const struct site *site) {
    struct nfs_client *client = nfs_client_new(&site->nfs);
    must(client != NULL, "connecting to ganesha");
    return client;
}

static bool nfs_work(void *client, enum operation operation, enum store_mode mode, const struct page *page) {
    static uint8_t found[DOCUMENT_SIZE_MAX]; /* of this process */
    char path[PATH_SIZE_MAX];
    size_t size;
    (void)mode;
    make_path(path, "", page->name);
    if (operation == STORE) {
        return nfs_client_save(client, path, page->body);
    }
    if (operation == RETRIEVE) {
        return nfs_client_read(client, path, found, sizeof found, &size) && size == page->body.size;
    }
    return nfs_client_remove(client, path);
}

static bool files_start(struct site *site) {
    make_path(site->files, site->directory, "files");
    must(mkdir(site->files, 0755) == 0, "mkdir");
    make_directories(site->files);
    return true;
}

static void files_stop(struct site *site) {
    (void)site;
}

static void *files_connect(const struct site *site) {
    return (void *)(uintptr_t)site->files;
}

static bool sync_directory(const char *root, const char *name) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%.2s", root, name);
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    bool is_good = fd >= 0 && fsync(fd) == 0;
    close(fd);
    return is_good;
}

static bool files_work(void *client, enum operation operation, enum store_mode mode,
                       const struct page *page) {
    static uint8_t found[DOCUMENT_SIZE_MAX]; /* of this process */
    char path[PATH_SIZE_MAX];
    (void)mode;
    make_path(path, client, page->name);
    if (operation == DELETE) {
        return unlink(path) == 0 && sync_directory(client, page->name);
    }
    bool stores = operation == STORE;
    int fd = open(path, stores ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY, 0644);
    ssize_t done = fd < 0   ? -1
                   : stores ? write(fd, page->body.data, page->body.size)
                            : read(fd, found, sizeof found);
    bool is_good = done == (ssize_t)page->body.size && (!stores || fdatasync(fd) == 0);
    close(fd);
    return is_good && (!stores || sync_directory(client, page->name));
}

enum { VOLUME_SIDE, NFS_SIDE, FILES_SIDE, SIDES_COUNT };

static const struct side sides[SIDES_COUNT] = {
    {"volume server", volume_start, volume_stop, volume_connect, volume_work},
    {"NFS", nfs_start, nfs_stop, nfs_connect, nfs_work},
    {"local files", files_start, files_stop, files_connect, files_work},
};

/* ---- one measurement ---- */

/* The share of one client: every clients_count-th document. */
static void run_client(const struct side *side, const struct site *site, enum operation operation,
                       enum store_mode mode, const struct pages *pages, size_t first, size_t clients_count,
                       const int ready[2], const int go[2]) {
    char byte = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void *client = side->connect(site);
    must(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1, "starting together");
    for (size_t i = first; i < pages->count; i += clients_count) {
        must(side->work(client, operation, mode, &pages->all[i]), side->name);
    }
    must(write(ready[1], &byte, 1) == 1, "write");
    _exit(0);
}

static void read_bytes(int fd, size_t count) {
    char byte;
    for (size_t i = 0; i < count; i++) {
        must(read(fd, &byte, 1) == 1, "a client");
    }
}

/* Seconds from the start of all to the end of the last. */
static double measure(const struct side *side, const struct site *site, enum operation operation,
                      enum store_mode mode, const struct pages *pages, size_t clients_count) {
    int ready[2];
    int go[2];
    pid_t clients[CLIENTS_MAX];
    char bytes[CLIENTS_MAX] = {0};
    must(pipe(ready) == 0 && pipe(go) == 0, "pipe");
    for (size_t i = 0; i < clients_count; i++) {
        clients[i] = fork();
        must(clients[i] >= 0, "fork");
        if (clients[i] == 0) {
            close(ready[0]); /* so that a client which dies is noticed */
            run_client(side, site, operation, mode, pages, i, clients_count, ready, go);
        }
    }
    close(ready[1]);
    read_bytes(ready[0], clients_count);
    double started_s = bench_now_s();
    must(write(go[1], bytes, clients_count) == (ssize_t)clients_count, "write");
    read_bytes(ready[0], clients_count);
    double elapsed_s = bench_now_s() - started_s;
    for (size_t i = 0; i < clients_count; i++) {
        int status;
        must(waitpid(clients[i], &status, 0) > 0 && status == 0, "a client");
    }
    close(ready[0]);
    close(go[0]);
    close(go[1]);
    return elapsed_s;
}

static bool open_site(const struct side *side, struct site *site, const char *root) {
    make_path(site->directory, root, "site");
    must(mkdir(site->directory, 0700) == 0, "mkdir");
    bool is_open = side->start(site);
    if (!is_open) {
        remove_tree(site->directory);
    }
    return is_open;
}

static void close_site(const struct side *side, struct site *site) {
    side->stop(site);
    remove_tree(site->directory);
}

static void keep_best(double *best_s, double elapsed_s) {
    *best_s = *best_s == 0 || elapsed_s < *best_s ? elapsed_s : *best_s;
}

/* ---- figures 4, 5 and 6 ---- */

/* Seconds; 0 where a side has no such thing. */
struct times {
    double store_new;
    double store_duplicate;
    double retrieve;
    double delete_duplicate;
    double delete_block;
};

/* Everything on one fresh site, in the only order that works. */
static bool run_all(const struct side *side, const char *root, const struct pages *pages,
                    size_t clients_count, struct times *best) {
    struct site site = {0};
    if (!open_site(side, &site, root)) {
        return false;
    }
    bool has_duplicates = side->work == volume_work;
    keep_best(&best->store_new, measure(side, &site, STORE, STORE_REGULAR, pages, clients_count));
    if (has_duplicates) {
        keep_best(&best->store_duplicate, measure(side, &site, STORE, STORE_REGULAR, pages, clients_count));
    }
    keep_best(&best->retrieve, measure(side, &site, RETRIEVE, STORE_REGULAR, pages, clients_count));
    if (has_duplicates) {
        keep_best(&best->delete_duplicate, measure(side, &site, DELETE, STORE_REGULAR, pages, clients_count));
    }
    keep_best(&best->delete_block, measure(side, &site, DELETE, STORE_REGULAR, pages, clients_count));
    close_site(side, &site);
    return true;
}

static void put_number(struct report *report, double seconds) {
    report_number(report, seconds > 0 ? seconds : NAN);
}

static void write_file(const char *directory, const char *name, const char *ending,
                       const struct report *report,
                       enum err (*write)(const struct report *report, struct buf *out)) {
    char file_name[64];
    char path[PATH_SIZE_MAX];
    struct buf out;
    buf_init(&out, 1 << 20);
    snprintf(file_name, sizeof file_name, "%s.%s", name, ending);
    make_path(path, directory, file_name);
    must(write(report, &out) == ERR_OK, "writing the report");
    FILE *file = fopen(path, "w");
    must(file != NULL && fwrite(out.data, 1, out.size, file) == out.size && fclose(file) == 0, path);
    buf_done(&out);
}

/* As text, without the digest: nothing here is deterministic. */
static void finish(struct report *report, const char *name, const char *directory) {
    struct buf text;
    buf_init(&text, 1 << 20);
    must(report_write_text(report, &text) == ERR_OK, "writing the report");
    struct bytes shown = buf_bytes(&text);
    shown.size = bytes_find(shown, BYTES("digest: "));
    printf("%s\n%.*s\n", report->title, BYTES_ARG(shown));
    fflush(stdout);
    if (directory != NULL) {
        write_file(directory, name, "csv", report, report_write_csv);
        write_file(directory, name, "svg", report, plot_write_svg);
    }
    buf_done(&text);
    report_done(report);
}

enum { CLIENTS_ROWS = CLIENTS_MAX / CLIENTS_STEP };

/* How much less time than the other, in percent, over all rows. */
static void print_saved(const char *what, const double *ours, const double *theirs, size_t count,
                        double stated) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (theirs[i] <= 0) {
            return;
        }
        sum += 1 - ours[i] / theirs[i];
    }
    printf("%-44s %5.0f %% less time than NFS (the paper: %.0f %%)\n", what, 100 * sum / (double)count,
           stated);
}

static void print_all_saved(struct times times[SIDES_COUNT][CLIENTS_ROWS]) {
    double ours[5][CLIENTS_ROWS];
    double theirs[3][CLIENTS_ROWS];
    for (size_t i = 0; i < CLIENTS_ROWS; i++) {
        const struct times *volume = &times[VOLUME_SIDE][i];
        const struct times *nfs = &times[NFS_SIDE][i];
        const double mine[] = {volume->retrieve, volume->delete_duplicate, volume->delete_block,
                               volume->store_duplicate, volume->store_new};
        const double its[] = {nfs->retrieve, nfs->delete_block, nfs->store_new};
        for (size_t j = 0; j < 5; j++) {
            ours[j][i] = mine[j];
        }
        for (size_t j = 0; j < 3; j++) {
            theirs[j][i] = its[j];
        }
    }
    print_saved("retrieve", ours[0], theirs[0], CLIENTS_ROWS, 68);
    print_saved("delete a duplicate", ours[1], theirs[1], CLIENTS_ROWS, 67);
    print_saved("delete a block", ours[2], theirs[1], CLIENTS_ROWS, 60);
    print_saved("store a duplicate", ours[3], theirs[2], CLIENTS_ROWS, 82);
    print_saved("store a new document", ours[4], theirs[2], CLIENTS_ROWS, 50);
    printf("\n");
}

static void report_clients(struct times times[SIDES_COUNT][CLIENTS_ROWS], const char *directory) {
    struct report retrieve;
    struct report delete;
    struct report store;
    report_init(&retrieve, "Retrieve all documents (figure 4)", "seconds");
    report_init(&delete, "Delete all documents (figure 5)", "seconds");
    report_init(&store, "Store all documents (figure 6)", "seconds");
    struct report *const reports[] = {&retrieve, &delete, &store};
    static const char *const first_names[] = {"volume server", "volume, block", "volume, new"};
    for (size_t i = 0; i < 3; i++) {
        report_column(reports[i], "clients", 0, REPORT_X);
        report_column(reports[i], first_names[i], 4, REPORT_Y);
        if (i > 0) {
            report_column(reports[i], "volume, duplicate", 4, REPORT_Y);
        }
        report_column(reports[i], "NFS", 4, REPORT_Y);
        report_column(reports[i], "local files", 4, REPORT_Y);
    }
    for (size_t i = 0; i < CLIENTS_ROWS; i++) {
        for (size_t j = 0; j < 3; j++) {
            report_number(reports[j], (double)(i + 1) * CLIENTS_STEP);
        }
        for (size_t side = 0; side < SIDES_COUNT; side++) {
            put_number(&retrieve, times[side][i].retrieve);
            put_number(&delete, times[side][i].delete_block);
            put_number(&store, times[side][i].store_new);
            if (side == VOLUME_SIDE) {
                put_number(&delete, times[side][i].delete_duplicate);
                put_number(&store, times[side][i].store_duplicate);
            }
        }
    }
    finish(&retrieve, "volumes-retrieve", directory);
    finish(&delete, "volumes-delete", directory);
    finish(&store, "volumes-store", directory);
}

static void run_clients(const char *root, const struct pages *pages, const char *directory, bool *has_nfs) {
    static struct times times[SIDES_COUNT][CLIENTS_ROWS];
    for (int round = 0; round < ROUNDS_COUNT; round++) {
        for (size_t i = 0; i < CLIENTS_ROWS; i++) {
            for (size_t side = 0; side < SIDES_COUNT; side++) {
                size_t clients_count = (i + 1) * CLIENTS_STEP;
                if (side == NFS_SIDE && !*has_nfs) {
                    continue;
                }
                bool has_run = run_all(&sides[side], root, pages, clients_count, &times[side][i]);
                *has_nfs = *has_nfs && (side != NFS_SIDE || has_run);
            }
        }
    }
    report_clients(times, directory);
    print_all_saved(times);
}

/* ---- figure 7 ---- */

enum { LEVELS_COUNT = 6, LEVEL_STEP = 20, MODES_COUNT = 3, MODE_COLUMNS = MODES_COUNT + 2 };

/* Of each hundred documents, so many are among those that are stored already. */
static struct pages mix(const struct pages *fresh, const struct pages *stored, unsigned percent) {
    struct pages mixed = {.all = calloc(fresh->count, sizeof *mixed.all), .count = fresh->count};
    must(mixed.all != NULL, "calloc");
    for (size_t i = 0; i < fresh->count; i++) {
        mixed.all[i] = i * 37 % 100 < percent ? stored->all[i] : fresh->all[i];
    }
    return mixed;
}

/* A file system has no duplicates: each store is a new name. */
static void rename_all(struct pages *pages) {
    for (size_t i = 0; i < pages->count; i++) {
        strcat(pages->all[i].name, "-2");
    }
}

static bool run_level(const struct side *side, const char *root, const struct pages *stored,
                      const struct pages *mixed, enum store_mode mode, double *best_s) {
    struct site site = {0};
    if (!open_site(side, &site, root)) {
        return false;
    }
    measure(side, &site, STORE, STORE_REGULAR, stored, MODES_CLIENTS_COUNT);
    keep_best(best_s, measure(side, &site, STORE, mode, mixed, MODES_CLIENTS_COUNT));
    close_site(side, &site);
    return true;
}

static void run_modes(const char *root, const struct pages *fresh, const struct pages *stored,
                      const char *directory, bool has_nfs) {
    static const enum store_mode modes[MODES_COUNT] = {STORE_REGULAR, STORE_COMPARE, STORE_FORCE_NEW};
    double times[LEVELS_COUNT][MODE_COLUMNS] = {0};
    for (int round = 0; round < ROUNDS_COUNT; round++) {
        for (unsigned level = 0; level < LEVELS_COUNT; level++) {
            struct pages mixed = mix(fresh, stored, level * LEVEL_STEP);
            for (size_t i = 0; i < MODES_COUNT; i++) {
                run_level(&sides[VOLUME_SIDE], root, stored, &mixed, modes[i], &times[level][i]);
            }
            rename_all(&mixed);
            if (has_nfs) {
                run_level(&sides[NFS_SIDE], root, stored, &mixed, STORE_FORCE_NEW,
                          &times[level][MODES_COUNT]);
            }
            run_level(&sides[FILES_SIDE], root, stored, &mixed, STORE_FORCE_NEW,
                      &times[level][MODES_COUNT + 1]);
            free(mixed.all);
        }
    }
    struct report report;
    report_init(&report, "Store with duplicates, 10 clients (figure 7)", "seconds");
    report_column(&report, "duplicates, percent", 0, REPORT_X);
    report_column(&report, "regular", 4, REPORT_Y);
    report_column(&report, "compare", 4, REPORT_Y);
    report_column(&report, "force-new", 4, REPORT_Y);
    report_column(&report, "NFS", 4, REPORT_Y);
    report_column(&report, "local files", 4, REPORT_Y);
    for (unsigned level = 0; level < LEVELS_COUNT; level++) {
        report_number(&report, level * LEVEL_STEP);
        for (size_t i = 0; i < MODE_COLUMNS; i++) {
            put_number(&report, times[level][i]);
        }
    }
    finish(&report, "volumes-modes", directory);
}

int main(int argc, char **argv) {
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : DOCUMENTS_COUNT;
    const char *directory = argc > 2 ? argv[2] : NULL;
    const char *parent = getenv("TMPDIR");
    char root[PATH_SIZE_MAX];
    struct corpus corpus;
    bool has_nfs = true;
    must(count >= 100 && argc <= 3, "usage: bench-volumes [documents (1000)] [directory for CSV and SVG]:");
    char *place = realpath(parent != NULL ? parent : ".", NULL);
    must(place != NULL, "realpath");
    make_path(root, place, "bench-volumes-XXXXXX");
    free(place);
    must(mkdtemp(root) != NULL, root);
    corpus_init(&corpus, 1);
    struct pages fresh = pages_new(&corpus, 0, count);
    struct pages stored = pages_new(&corpus, count, count);
    printf("%zu pages, %.1f MB; the best of %d rounds\n\n", count, (double)pages_size(&fresh) / 1e6,
           ROUNDS_COUNT);
    fflush(stdout); /* before it is inherited */
    run_clients(root, &fresh, directory, &has_nfs);
    run_modes(root, &fresh, &stored, directory, has_nfs);
    remove_tree(root);
    corpus_done(&corpus);
    return 0;
}
