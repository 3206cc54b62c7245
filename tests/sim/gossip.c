/*
 * gossip - runs the counter under swarm faults by hand.
 *
 *      gossip --seed S [--runs R] [--nodes N] [--bug NAME] [--verbose]
 *
 * Runs the seeds S … S+R-1 until one fails. Exit status: 0 all passed, 1 one failed, 2 wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "story.h"

struct options {
    uint64_t seed;
    uint64_t runs_count;
    uint64_t nodes_count;
    enum counter_bug bug;
    bool is_verbose;
};

static int usage(void) {
    fprintf(stderr, "usage: gossip --seed S [--runs R] [--nodes 2…%d] [--bug NAME] [--verbose]\nbugs:",
            COUNTER_NODES_MAX);
    for (unsigned bug = 0; bug < COUNTER_BUGS_COUNT; bug++) {
        fprintf(stderr, " %s", story_bug_name(bug));
    }
    fprintf(stderr, "\n");
    return 2;
}

static bool parse_bug(const char *name, enum counter_bug *ret_bug) {
    for (unsigned bug = 0; bug < COUNTER_BUGS_COUNT; bug++) {
        if (strcmp(name, story_bug_name(bug)) == 0) {
            *ret_bug = bug;
            return true;
        }
    }
    return false;
}

static bool parse_options(int count, char **words, struct options *options) {
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--verbose") == 0) {
            options->is_verbose = true;
            continue;
        }
        if (i + 1 == count) {
            return false;
        }
        const char *name = words[i++];
        struct bytes value = bytes_of_string(words[i]);
        bool is_valid = false;
        if (strcmp(name, "--seed") == 0) {
            is_valid = bytes_to_u64(value, UINT64_MAX, &options->seed);
        } else if (strcmp(name, "--runs") == 0) {
            is_valid = bytes_to_u64(value, 1u << 30, &options->runs_count) && options->runs_count > 0;
        } else if (strcmp(name, "--nodes") == 0) {
            is_valid =
                bytes_to_u64(value, COUNTER_NODES_MAX, &options->nodes_count) && options->nodes_count >= 2;
        } else if (strcmp(name, "--bug") == 0) {
            is_valid = parse_bug(words[i], &options->bug);
        }
        if (!is_valid) {
            return false;
        }
    }
    return true;
}

static void print_failure(const struct options *options, const struct sim_failure *failure) {
    char text[SIM_FAILURE_TEXT_SIZE_MAX];
    printf("%s\n", sim_failure_format(failure, text));
    printf("reproduce: gossip --seed %llu --nodes %llu --bug %s --verbose\n",
           (unsigned long long)failure->seed, (unsigned long long)options->nodes_count,
           story_bug_name(options->bug));
}

/* False where it failed; *digest gets what the run did. */
static bool run_seed(const struct options *options, uint64_t seed, struct digest *digest) {
    struct story story = {seed, (uint32_t)options->nodes_count, options->bug};
    struct story_result result;
    struct buf faults;
    buf_init(&faults, 4096);
    enum err err = story_run(&story, &result, &faults);
    if (err != ERR_OK) {
        fprintf(stderr, "gossip: seed %llu: %s\n", (unsigned long long)seed, err_text(err));
        exit(1);
    }
    if (options->is_verbose) {
        char text[DIGEST_TEXT_SIZE_MAX];
        printf("seed %llu: %s; %llu events, %llu issued, %llu acknowledged, agreed after %llu ms; %s\n",
               (unsigned long long)seed, result.has_failed ? "failed" : "passed",
               (unsigned long long)result.events_count, (unsigned long long)result.issued_count,
               (unsigned long long)result.acknowledged_count, (unsigned long long)(result.healed_us / 1000),
               digest_format(&result.digest, text));
        printf("  %s\n", buf_string(&faults));
    }
    buf_done(&faults);
    digest_u64(digest, result.digest.lanes[0]);
    digest_u64(digest, result.digest.lanes[1]);
    if (result.has_failed) {
        print_failure(options, &result.failure);
    }
    return !result.has_failed;
}

int main(int count, char **words) {
    struct options options = {.seed = 1, .runs_count = 1, .nodes_count = 8};
    if (!parse_options(count, words, &options)) {
        return usage();
    }
    struct digest digest;
    digest_init(&digest);
    bool has_passed = true;
    uint64_t run = 0;
    while (run < options.runs_count && has_passed) {
        has_passed = run_seed(&options, options.seed + run, &digest);
        run++;
    }
    char text[DIGEST_TEXT_SIZE_MAX];
    printf("%llu run%s, %s\n", (unsigned long long)run, run == 1 ? "" : "s",
           has_passed ? "all passed" : "the last one failed");
    printf("digest: %s\n", digest_format(&digest, text));
    return has_passed ? 0 : 1;
}
