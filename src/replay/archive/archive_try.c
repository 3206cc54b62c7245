#include "replay/archive/archive_state.h"

enum { TRIES_MAX = 4 };

static const uint64_t TRIES_US = 6000000;

/* It cannot be had, and never will be: what is only busy or silent now is not looked past. */
static bool is_lost(enum err err) {
    return err == ERR_NOT_FOUND || err == ERR_CORRUPT || err == ERR_TRUNCATED || err == ERR_MISMATCH;
}

enum err archive_note_read(struct archive_reader *reader, const struct capture *capture, enum err err) {
    reader->lost.is_lost = is_lost(err);
    reader->lost.time_us = capture->time_us;
    memcpy(reader->lost.digest, capture->digest, sizeof reader->lost.digest);
    return err;
}

/* The same one is worth another try only where its document is that of another. False: there is nothing else.
 */
static bool find_another(struct archive_reader *reader, const struct archive_attempt *attempt,
                         struct capture *ret_capture) {
    const struct archive_lost *lost = &reader->lost;
    struct err_detail detail = {0};
    archive_reader_renew(reader);
    if (attempt->find(attempt->context, ret_capture, &detail) != ERR_OK) {
        return false;
    }
    bool is_same = ret_capture->time_us == lost->time_us &&
                   memcmp(ret_capture->digest, lost->digest, sizeof lost->digest) == 0;
    return !is_same || ret_capture->flags & CAPTURE_REVISIT;
}

enum err archive_try(struct archive_reader *reader, const struct archive_attempt *attempt,
                     struct err_detail *detail) {
    const struct clock *clock = reader->archive->clock;
    struct capture capture;
    enum err err = attempt->find(attempt->context, &capture, detail);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t until_us = clock_monotonic_us(clock) + TRIES_US;
    reader->lost.is_lost = false;
    err = attempt->use(attempt->context, &capture, detail);
    /* Where it went well, the visit may be another's already: that of who reads what is sent. */
    for (int tries = 1; err != ERR_OK && reader->lost.is_lost && tries < TRIES_MAX; tries++) {
        if (clock_monotonic_us(clock) >= until_us || !find_another(reader, attempt, &capture)) {
            break;
        }
        reader->lost.is_lost = false;
        err = attempt->use(attempt->context, &capture, detail);
    }
    return err;
}
