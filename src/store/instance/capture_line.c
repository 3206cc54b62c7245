#include "store/instance/capture_line.h"

#include <stdio.h>

#include "base/hex.h"
#include "store/backend/backend_mirrored.h"

enum { CAPTURE_ID_DIGEST_SIZE = 16 }; /* so much of it the ring knows too */

void capture_line_init(struct capture_line *line, struct instance *instance) {
    line->instance = instance;
    line->named_volume = 0;
    line->named_segment = 0;
}

struct bytes capture_line_mime(const struct capture *capture) {
    if ((capture->flags & CAPTURE_REVISIT) != 0) {
        return BYTES("warc/revisit");
    }
    return capture->mime.size > 0 ? capture->mime : BYTES("unk");
}

/* FNV-1a */
static uint64_t line_hash(uint64_t hash, struct bytes bytes) {
    for (size_t i = 0; i < bytes.size; i++) {
        hash = (hash ^ bytes.data[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t line_hash_number(uint64_t hash, uint64_t number) {
    for (size_t i = 0; i < 8; i++) {
        hash = (hash ^ (number >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint64_t capture_id(const struct capture *capture) {
    uint64_t hash = line_hash(UINT64_C(0xcbf29ce484222325), capture->url);
    hash = line_hash_number(hash, capture->url.size);
    hash = line_hash(hash, capture->surt);
    hash = line_hash_number(hash, (uint64_t)capture->time_us);
    hash = line_hash_number(hash, capture->status);
    hash = line_hash(hash, bytes_of(capture->digest, CAPTURE_ID_DIGEST_SIZE));
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* as splitmix64 ends: every bit counts */
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    hash ^= hash >> 31;
    return hash != 0 ? hash : 1;
}

struct bytes capture_line_digest(struct capture_line *line, const uint8_t digest[KEY_DIGEST_SIZE]) {
    static const struct bytes name = {(const uint8_t *)"sha256:", sizeof "sha256:" - 1};
    memcpy(line->digest, name.data, name.size);
    hex_encode(bytes_of(digest, KEY_DIGEST_SIZE), line->digest + name.size);
    return bytes_of(line->digest, sizeof line->digest - 1);
}

/* Volume servers do not say; most write zstd. */
static enum pack_framing find_framing(const struct instance_volume *volume, uint32_t number) {
    return volume->volume != NULL ? volume_framing(volume->volume, number) : PACK_ZSTD;
}

static enum pack_framing find_mirrored_framing(const struct instance *instance, uint16_t volume,
                                               uint32_t segment) {
    struct mirrored_holding *holding = backend_mirrored_hold(instance_mirrored(instance, volume));
    enum pack_framing framing =
        holding != NULL ? volume_framing(mirrored_volume(holding), segment) : PACK_ZSTD;
    mirrored_release(holding);
    return framing;
}

static void name_file_of_mirrored(struct capture_line *line, uint16_t volume, uint32_t segment) {
    char name[SEGMENT_NAME_SIZE_MAX];
    snprintf(line->file, sizeof line->file, "%s/%s", instance_mirrored_origin(line->instance, volume),
             segment_name(segment, find_mirrored_framing(line->instance, volume, segment), name));
    line->named_volume = volume;
    line->named_segment = segment;
}

struct bytes capture_line_file(struct capture_line *line, uint16_t volume, uint32_t segment) {
    if (volume == INSTANCE_GUEST_NUMBER) {
        return BYTES("ring"); /* on another node: there is no file here to look into */
    }
    bool is_named = line->named_segment == segment && line->named_volume == volume;
    if (!is_named && instance_is_mirrored(volume)) {
        name_file_of_mirrored(line, volume, segment);
    }
    if (line->named_segment != segment || line->named_volume != volume) {
        struct instance_volume info;
        char name[SEGMENT_NAME_SIZE_MAX];
        instance_volume(line->instance, instance_find_volume(line->instance, volume), &info);
        segment_name(segment, find_framing(&info, segment), name);
        if (instance_volumes_count(line->instance) == 1) {
            snprintf(line->file, sizeof line->file, "%s", name);
        } else {
            snprintf(line->file, sizeof line->file, "%u/%s", volume, name);
        }
        line->named_volume = volume;
        line->named_segment = segment;
    }
    return bytes_of_string(line->file);
}

struct cdxj capture_line_cdxj(struct capture_line *line, const struct capture *capture) {
    return (struct cdxj){
        .key = capture->surt,
        .time_us = capture->time_us,
        .url = capture->url,
        .mime = capture_line_mime(capture),
        .status = capture->status,
        .digest = capture_line_digest(line, capture->digest),
        .has_place = true,
        .length = capture->location.length,
        .offset = capture->location.offset,
        .filename = capture_line_file(line, capture->volume, capture->location.segment),
    };
}
