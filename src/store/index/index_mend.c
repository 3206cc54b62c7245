#include "base/clock.h"
#include "base/scratch.h"
#include "store/index/index_database.h"

enum {
    PROBE_SIZE = 8 << 20, /* must fit on the disk before it is worth trying */
    PROBE_PIECE_SIZE = 64 << 10,
    PAUSE_US = 1000 * 1000, /* between two attempts */
};

/* Is there room again? Asked by writing: quotas and limits do not show in numbers. */
static enum err probe(const struct index *index) {
    static const uint8_t zeros[PROBE_PIECE_SIZE];
    struct scratch scratch;
    enum err err = ERR_OK;
    scratch_init(&scratch, index->directory, PROBE_PIECE_SIZE, PROBE_SIZE);
    for (size_t size = 0; size < PROBE_SIZE && err == ERR_OK; size += sizeof zeros) {
        err = scratch_put(&scratch, bytes_of(zeros, sizeof zeros));
    }
    scratch_done(&scratch);
    return err;
}

/* A commit that was reported as failed must not be there after all: its records were taken back. */
static enum err check_serial(const struct index *index, struct err_detail *detail) {
    uint64_t serial;
    enum err err = index_read_serial(index, &serial);
    if (err == ERR_OK && serial != index->serial) {
        err = err_set(detail, ERR_MISMATCH, "the index holds a commit that failed; it must be rebuilt");
    }
    return err;
}

/* With the gate closed behind us. Where it cannot be opened to write, reading goes on. */
static enum err open_again(struct index *index, struct err_detail *detail) {
    index_database_close(index);
    enum err err = index_database_open(index, false, detail);
    if (err == ERR_OK) {
        return ERR_OK;
    }
    enum err read_only = index_database_open(index, true, NULL);
    (void)read_only; /* then index_database_enter() says so */
    return err;
}

enum err index_mend(struct index *index, struct err_detail *detail) {
    enum err err = index_database_can_write(index, detail);
    uint64_t now_us = clock_monotonic_us(&clock_system);
    if (err == ERR_OK || now_us < index->mend_after_us) {
        return err;
    }
    if (atomic_load(&index->gate->cursors_count) > 0 || probe(index) != ERR_OK) {
        return err;
    }
    pthread_rwlock_wrlock(&index->gate->lock);
    bool has_cursors = atomic_load(&index->gate->cursors_count) > 0;
    enum err opened = has_cursors ? err : open_again(index, detail);
    pthread_rwlock_unlock(&index->gate->lock);
    if (has_cursors) {
        return err;
    }
    index->mend_after_us = now_us + PAUSE_US;
    if (opened == ERR_OK) {
        opened = check_serial(index, detail);
    }
    if (opened == ERR_OK) {
        atomic_store(&index->write_err, ERR_OK);
    }
    return opened;
}
