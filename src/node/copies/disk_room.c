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
    NOTE_SIZE_MAX = 256,
};

struct disk_room {
    struct disk_room_config config;
    struct task task;
};

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

static uint64_t room_run(void *context) {
    struct disk_room *room = context;
    const struct quota *quota = instance_quota(room->config.instance);
    if (!quota_is_set(quota)) {
        return TASK_FOR_EVER_US;
    }
    if (quota_permille(quota) >= COMPACT_PERMILLE) {
        room_compact(room, quota);
    }
    return LOOK_US;
}

enum err disk_room_start(const struct disk_room_config *config, struct disk_room **ret_room) {
    struct disk_room *room = calloc(1, sizeof *room);
    if (room == NULL) {
        return ERR_MEMORY;
    }
    room->config = *config;
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
