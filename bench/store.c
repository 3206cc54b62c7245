/*
 * store - a volume against one file per document in 256 x 256 directories, on the same disk in the same run.
 *
 *      bench-store [documents (20000)] [section …]
 *
 * Documents come from corpus.h and lie in memory before anything is timed. Everything happens in a directory
 * that is made below $TMPDIR, or else below the current one, and removed at the end; /tmp in memory would
 * measure nothing. "Durable" means the same on both sides: when the call returns, the document survives the
 * end of the machine. A file needs fdatasync() for its bytes and fsync() of its directory for its name; on
 * ext4 the first happens to write the name too, so files are also measured without the second. Runs against
 * the clock stop after SECONDS_MAX: rates are what counts.
 */
#include "store.h"

enum { DOCUMENTS_COUNT = 20000 };

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(const struct sets *sets);
    } sections[] = {
        {"put", bench_put}, {"large", bench_large}, {"modes", bench_modes},
        {"get", bench_get}, {"space", bench_space}, {"recovery", bench_recovery},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : DOCUMENTS_COUNT;
    if (count < 100) {
        fprintf(stderr, "usage: bench-store [documents] [put|large|modes|get|space|recovery …]\n");
        return 2;
    }
    static struct corpus corpus;
    place_make_root();
    corpus_init(&corpus, SEED);
    struct sets sets = sets_make(&corpus, count);
    printf("%zu documents: %zu new of %.0f MB, %zu of them pages\n", sets.all.count, sets.originals.count,
           (double)sets.originals.size / 1e6, sets.pages.count);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        bool is_wanted = argc <= 2;
        for (int j = 2; j < argc; j++) {
            is_wanted = is_wanted || strcmp(argv[j], sections[i].name) == 0;
        }
        if (is_wanted) {
            sections[i].run(&sets);
        }
    }
    corpus_done(&corpus);
    return 0;
}
