/* volume: torn and damaged files, and the end of the process: what was acknowledged stays, damage is named.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/prng.h"
#include "store/volume/verify.h"
#include "volume-fixture.h"

static void cuts_a_torn_tail_and_keeps_what_is_whole(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("first"), STORE_REGULAR);
    struct stored second = put(fixture, BYTES("second"), STORE_REGULAR);
    char path[128];
    newest_segment(fixture, path);
    struct stat whole;
    assert_int_equal(stat(path, &whole), 0);
    for (off_t torn = 1; torn < (off_t)second.location.length; torn += 7) {
        close_volume(fixture);
        /* As if the machine had stopped while the second record was on its way, the index not having seen it.
         */
        assert_int_equal(index_destroy(fixture->index, NULL), ERR_OK);
        char keep[256];
        snprintf(keep, sizeof keep, "cp %s %s/keep", path, fixture->root);
        assert_int_equal(system(keep), 0);
        assert_int_equal(truncate(path, whole.st_size - torn), 0);
        open_volume(fixture);
        assert_int_equal(fixture->recovery.cut_size, second.location.length - torn);
        expect(fixture, &first.key, BYTES("first"));
        expect_gone(fixture, &second.key);
        close_volume(fixture);
        snprintf(keep, sizeof keep, "cp %s/keep %s", fixture->root, path);
        assert_int_equal(system(keep), 0);
        assert_int_equal(index_destroy(fixture->index, NULL), ERR_OK);
        open_volume(fixture);
        assert_int_equal(fixture->recovery.cut_size, 0);
        expect(fixture, &second.key, BYTES("second"));
    }
}

static void damage_between_records_costs_only_what_it_hit(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("first"), STORE_REGULAR);
    struct stored second = put(fixture, BYTES("second"), STORE_REGULAR);
    struct stored third = put(fixture, BYTES("third"), STORE_REGULAR);
    char path[128];
    newest_segment(fixture, path);
    FILE *file = fopen(path, "r+");
    fseek(file, (long)(second.location.offset + second.location.length / 2), SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 0x10, file);
    fclose(file);
    struct bytes found;
    assert_int_equal(volume_get(fixture->reader, &second.key, &found, NULL), ERR_CORRUPT);
    rebuild(fixture);
    assert_int_equal(fixture->recovery.damaged_count, 1);
    assert_int_equal(fixture->recovery.cut_size, 0);
    expect(fixture, &first.key, BYTES("first"));
    expect_gone(fixture, &second.key);
    expect(fixture, &third.key, BYTES("third"));
}

/* ---- verify ---- */

struct found {
    unsigned count;
    uint64_t offset;
    char segment[64];
};

static void note_damage(void *context, const char *segment, uint64_t offset, const char *reason) {
    struct found *found = context;
    assert_true(strlen(reason) > 0);
    found->count++;
    found->offset = offset;
    snprintf(found->segment, sizeof found->segment, "%s", segment);
}

static void verify_names_every_flipped_bit(void **state) {
    struct fixture *fixture = *state;
    struct stored middle = {0};
    for (int i = 0; i < 20; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "document %d", i);
        struct stored stored = put(fixture, bytes_of(text, (size_t)size), STORE_REGULAR);
        middle = i == 10 ? stored : middle;
    }
    unsigned harmless_count = 0;
    struct found found = {0};
    struct verify_observer observer = {.context = &found, .damage = note_damage};
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
    assert_int_equal(report.records_count, 21); /* with the warcinfo */
    assert_int_equal(found.count, 0);
    char path[128];
    newest_segment(fixture, path);
    for (uint32_t at = 0; at < middle.location.length; at++) {
        FILE *file = fopen(path, "r+");
        long place = (long)(middle.location.offset + at);
        fseek(file, place, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, place, SEEK_SET);
        fputc(byte ^ (1 << at % 8), file);
        fflush(file);
        found = (struct found){0};
        assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
        assert_true(report.records_count >= 20);
        struct bytes document;
        enum err err = volume_get(fixture->reader, &middle.key, &document, NULL);
        if (report.damaged_count + report.lost_count == 0) {
            /* One bit of a zstd header means nothing; then nothing is wrong. */
            assert_int_equal(err, ERR_OK);
            assert_bytes_equal(document, BYTES("document 10"));
            harmless_count++;
        } else {
            assert_int_equal(found.offset, middle.location.offset);
            assert_int_equal(err, ERR_CORRUPT);
        }
        fseek(file, place, SEEK_SET);
        fputc(byte, file);
        fclose(file);
    }
    assert_true(harmless_count < middle.location.length / 4);
}

/* ---- the end of the process ---- */

/* Put documents until killed, telling each acknowledged number through the pipe. */
static void put_until_killed(struct fixture *fixture, int pipe_fd, uint32_t from) {
    open_volume(fixture);
    for (uint32_t i = from;; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "acknowledged %u", i);
        struct stored stored = put(fixture, bytes_of(text, (size_t)size), STORE_REGULAR);
        if (write(pipe_fd, &i, sizeof i) != sizeof i || write(pipe_fd, &stored.key, sizeof stored.key) < 0) {
            _exit(1);
        }
    }
}

static void nothing_acknowledged_is_lost_by_kill_9(void **state) {
    struct fixture *fixture = *state;
    enum { KEYS_MAX = 100000 };
    const char *wish = getenv("MNEMON_KILL_ROUNDS"); /* by hand: hundreds */
    int rounds_count = wish != NULL ? atoi(wish) : 12;
    struct key *keys = calloc(KEYS_MAX, sizeof *keys);
    uint32_t count = 0;
    struct prng prng;
    prng_init(&prng, 7);
    for (int round = 0; round < rounds_count; round++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        close_volume(fixture);
        pid_t child = fork();
        if (child == 0) {
            close(pipes[0]);
            put_until_killed(fixture, pipes[1], count);
        }
        close(pipes[1]);
        /* Killed after a random number of acknowledgements, in the middle of the next. */
        uint32_t wanted = (uint32_t)prng_between(&prng, 1, 60);
        uint32_t number;
        struct key key;
        for (uint32_t i = 0; read(pipes[0], &number, sizeof number) == sizeof number &&
                             read(pipes[0], &key, sizeof key) == sizeof key;
             i++) {
            assert_int_equal(number, count);
            keys[count++] = key;
            if (i == wanted) {
                kill(child, SIGKILL);
            }
        }
        close(pipes[0]);
        waitpid(child, NULL, 0);
        open_volume(fixture);
        for (uint32_t i = 0; i < count; i++) {
            char text[32];
            int size = snprintf(text, sizeof text, "acknowledged %u", i);
            expect(fixture, &keys[i], bytes_of(text, (size_t)size));
        }
    }
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &(struct verify_observer){0}, &report, NULL), ERR_OK);
    assert_int_equal(report.damaged_count, 0);
    free(keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(cuts_a_torn_tail_and_keeps_what_is_whole),
        TEST(damage_between_records_costs_only_what_it_hit),
        TEST(verify_names_every_flipped_bit),
        TEST(nothing_acknowledged_is_lost_by_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
