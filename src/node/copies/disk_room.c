#include "node/copies/disk_room.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/value.h"
#include "run/task.h"
#include "store/volume/compact.h"

enum {
    LOOK_US = 5000000,
    COMPACT_PERMILLE = 800,
    DEAD_PERMILLE = 10, /* of the quota: less is not worth it */
    DEAD_PERCENT = 25,  /* of a segment */
    SHRINK_PERMILLE = 900,
    HALVE_PERMILLE = 970,
    GROW_PERMILLE = 600,
    AGAIN_PERMILLE = 850,
    NOTE_SIZE_MAX = 256,
};

static const uint64_t GRACE_US = UINT64_C(3600) * 1000000;

struct disk_room {
    struct disk_room_config config;
    struct task task;
    uint64_t resize_at_us; /* not before */
    uint64_t full_size;    /* what it used when it last took fewer virtual nodes; 0: it never did */
    uint8_t full_vnodes;   /* and how many it had */
};

static uint64_t room_now_us(const struct disk_room *room) {
    return clock_monotonic_us(room->config.clock);
}

static void room_note(const struct disk_room *room, const char *sentence) {
    if (room->config.note != NULL) {
        room->config.note(room->config.context, sentence);
    }
}

/* ---- compaction ---- */

static void room_note_compaction(const struct disk_room *room, uint16_t number, uint64_t freed_size) {
    struct buf text;
    buf_init(&text, NOTE_SIZE_MAX);
    buf_put_format(&text, "the quota is nearly used: compaction of volume %u gave back ", number);
    value_put_size(&text, freed_size);
    if (buf_string(&text) != NULL) {
        room_note(room, buf_string(&text));
    }
    buf_done(&text);
}

static void room_compact(struct disk_room *room, const struct quota *quota) {
    for (size_t i = 0; i < instance_volumes_count(room->config.instance); i++) {
        struct instance_volume volume;
        struct volume_stat stat = {0};
        struct compact_report report = {0};
        struct err_detail detail = {0};
        instance_volume(room->config.instance, i, &volume);
        if (volume.volume == NULL || task_is_stopping(&room->task)) {
            continue;
        }
        volume_stat(volume.volume, &stat);
        if (stat.dead_size < quota->size_max / 1000 * DEAD_PERMILLE) {
            continue;
        }
        enum err err = compact_some(volume.volume, DEAD_PERCENT, &room->task.is_stopping, &report, &detail);
        if (err == ERR_OK && report.segments_count > 0) {
            room_note_compaction(room, volume.number, report.freed_size);
        } else if (err != ERR_OK && err != ERR_BUSY) {
            char text[NOTE_SIZE_MAX];
            snprintf(text, sizeof text, "volume %u cannot be compacted: %.200s", volume.number,
                     err_detail_text(&detail, err));
            room_note(room, text);
        }
    }
}

/* ---- the part of the ring ---- */

uint8_t disk_room_vnodes(uint64_t used_permille, uint8_t vnodes_count, uint8_t vnodes_max) {
    if (used_permille >= HALVE_PERMILLE) {
        return (uint8_t)((vnodes_count + 1) / 2);
    }
    if (used_permille >= SHRINK_PERMILLE) {
        return vnodes_count > 1 ? (uint8_t)(vnodes_count - 1) : 1;
    }
    if (used_permille < GROW_PERMILLE && vnodes_count < vnodes_max) {
        return (uint8_t)(vnodes_count + 1);
    }
    return vnodes_count;
}

uint8_t disk_room_vnodes_max(uint64_t quota_size, uint64_t full_size, uint8_t full_vnodes,
                             uint8_t vnodes_max) {
    if (full_size == 0) {
        return vnodes_max;
    }
    uint64_t each_size = full_size / full_vnodes + 1;
    uint64_t count = quota_size / 1000 * AGAIN_PERMILLE / each_size;
    return count < 1 ? 1 : count < vnodes_max ? (uint8_t)count : vnodes_max;
}

static void room_resize(struct disk_room *room, const struct quota *quota) {
    uint64_t used_permille = quota_permille(quota);
    uint8_t wanted;
    uint8_t vnodes_max;
    if (room->config.transport == NULL || room->config.keeps_everything ||
        room_now_us(room) < room->resize_at_us ||
        !transport_vnodes(room->config.transport, &wanted, &vnodes_max)) {
        return;
    }
    uint8_t most = disk_room_vnodes_max(quota->size_max, room->full_size, room->full_vnodes, vnodes_max);
    uint8_t next = disk_room_vnodes(used_permille, wanted, most);
    if (next == wanted) {
        return;
    }
    if (next < wanted) {
        room->full_size = quota->size_max / 1000 * used_permille;
        room->full_vnodes = wanted;
    }
    char text[NOTE_SIZE_MAX];
    snprintf(
        text, sizeof text,
        "%ju %% of the quota are used: this node takes %u/%u of an even part of the ring, instead of %u/%u",
        (uintmax_t)(used_permille / 10), next, vnodes_max, wanted, vnodes_max);
    room_note(room, text);
    transport_resize(room->config.transport, next);
    room->resize_at_us = room_now_us(room) + 2 * room->config.grace_us;
}

static uint64_t room_run(void *context) {
    struct disk_room *room = context;
    const struct quota *quota = instance_quota(room->config.instance);
    if (!quota_is_set(quota)) {
        return TASK_FOR_EVER_US;
    }
    if (quota_permille(quota) >= COMPACT_PERMILLE) {
        room_compact(room, quota);
    }
    room_resize(room, quota);
    return LOOK_US;
}

enum err disk_room_start(const struct disk_room_config *config, struct disk_room **ret_room) {
    struct disk_room *room = calloc(1, sizeof *room);
    if (room == NULL) {
        return ERR_MEMORY;
    }
    room->config = *config;
    room->config.clock = config->clock != NULL ? config->clock : &clock_system;
    room->config.grace_us = config->grace_us > 0 ? config->grace_us : GRACE_US;
    enum err err = task_start(&room->task, "disk-room", PRIORITY_BEHIND, room_run, room);
    if (err != ERR_OK) {
        free(room);
        return err;
    }
    *ret_room = room;
    return ERR_OK;
}

void disk_room_stop(struct disk_room *room) {
    if (room != NULL) {
        task_stop(&room->task);
        free(room);
    }
}
