#include "sim/experiments/copies_disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { BLOCK_COUNT = 256 };

/* ---- all captures ---- */

static int archive_compare(const void *a, const void *b) {
    return ringkey_compare(a, b);
}

enum err copies_archive_init(struct copies_archive *archive, uint32_t count, struct prng *prng) {
    struct sha256 sha256;
    *archive = (struct copies_archive){.count = count};
    archive->keys = calloc(count, sizeof *archive->keys);
    archive->sums = calloc(count, sizeof *archive->sums);
    if (archive->keys == NULL || archive->sums == NULL || sha256_init(&sha256) != ERR_OK) {
        return ERR_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        prng_fill(prng, archive->keys[i].bytes, RINGKEY_SIZE);
    }
    qsort(archive->keys, count, sizeof *archive->keys, archive_compare);
    for (uint32_t i = 0; i < count; i++) {
        archive->sums[i] = ringkey_sum_of(&sha256, &archive->keys[i]);
    }
    sha256_done(&sha256);
    return ERR_OK;
}

void copies_archive_done(struct copies_archive *archive) {
    free(archive->keys);
    free(archive->sums);
}

uint32_t copies_archive_find(const struct copies_archive *archive, const struct ringkey *key) {
    uint32_t low = 0;
    uint32_t high = archive->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ringkey_compare(&archive->keys[middle], key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool copies_archive_has(const struct copies_archive *archive, const struct ringkey *key,
                        uint32_t *ret_capture) {
    *ret_capture = copies_archive_find(archive, key);
    return *ret_capture < archive->count && ringkey_compare(&archive->keys[*ret_capture], key) == 0;
}

/* ---- what one node has ---- */

enum err copies_disk_init(struct copies_disk *disk, const struct copies_archive *archive) {
    *disk = (struct copies_disk){.archive = archive};
    disk->has = calloc(archive->count, 1);
    disk->blocks = calloc(archive->count / BLOCK_COUNT + 1, sizeof *disk->blocks);
    return disk->has != NULL && disk->blocks != NULL ? ERR_OK : ERR_MEMORY;
}

void copies_disk_done(struct copies_disk *disk) {
    free(disk->has);
    free(disk->blocks);
}

void copies_disk_add(struct copies_disk *disk, uint32_t capture) {
    ASSERT(capture < disk->archive->count && !disk->has[capture]);
    disk->has[capture] = 1;
    disk->count++;
    ringkey_sum_add(&disk->blocks[capture / BLOCK_COUNT], &disk->archive->sums[capture]);
}

void copies_disk_remove(struct copies_disk *disk, uint32_t capture) {
    ASSERT(capture < disk->archive->count && disk->has[capture]);
    disk->has[capture] = 0;
    disk->count--;
    ringkey_sum_subtract(&disk->blocks[capture / BLOCK_COUNT], &disk->archive->sums[capture]);
}

static void disk_range(const struct copies_disk *disk, const struct ringkey_range *range, uint32_t *ret_first,
                       uint32_t *ret_end) {
    *ret_first = copies_archive_find(disk->archive, &range->lower);
    *ret_end = range->has_upper ? copies_archive_find(disk->archive, &range->upper) : disk->archive->count;
}

static enum err disk_sum(void *context, const struct ringkey_range *range, struct ringkey_sum *ret_sum) {
    const struct copies_disk *disk = context;
    uint32_t at;
    uint32_t end;
    *ret_sum = (struct ringkey_sum){0};
    disk_range(disk, range, &at, &end);
    while (at < end) {
        if (at % BLOCK_COUNT == 0 && at + BLOCK_COUNT <= end) {
            ringkey_sum_add(ret_sum, &disk->blocks[at / BLOCK_COUNT]);
            at += BLOCK_COUNT;
        } else {
            if (disk->has[at]) {
                ringkey_sum_add(ret_sum, &disk->archive->sums[at]);
            }
            at++;
        }
    }
    return ERR_OK;
}

static enum err disk_cut(void *context, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                         struct ringkey *ret_bound) {
    const struct copies_disk *disk = context;
    uint32_t at;
    uint32_t end;
    (void)slack;
    disk_range(disk, range, &at, &end);
    for (; at < end; at++) {
        if (at % BLOCK_COUNT == 0 && at + BLOCK_COUNT <= end &&
            disk->blocks[at / BLOCK_COUNT].count <= rank) {
            rank -= disk->blocks[at / BLOCK_COUNT].count;
            at += BLOCK_COUNT - 1;
        } else if (disk->has[at] && rank-- == 0) {
            *ret_bound = disk->archive->keys[at];
            return ERR_OK;
        }
    }
    return ERR_INVALID;
}

static enum err disk_list(void *context, const struct ringkey_range *range, struct ringkey *out,
                          size_t count_max, size_t *ret_count) {
    const struct copies_disk *disk = context;
    uint32_t at;
    uint32_t end;
    *ret_count = 0;
    disk_range(disk, range, &at, &end);
    while (at < end && *ret_count < count_max) {
        const uint8_t *found = memchr(disk->has + at, 1, end - at);
        if (found == NULL) {
            break;
        }
        at = (uint32_t)(found - disk->has);
        out[(*ret_count)++] = disk->archive->keys[at++];
    }
    return ERR_OK;
}

static const struct ringkey_set_table disk_table = {disk_sum, disk_cut, disk_list};

struct ringkey_set copies_disk_set(struct copies_disk *disk) {
    return (struct ringkey_set){&disk_table, disk};
}
