#include "store/volume/damage.h"

#include <unistd.h>

#include "base/hex.h"
#include "base/utc.h"
#include "base/whole_file.h"
#include "store/index/index_cursor.h"
#include "store/volume/volume_state.h"
#include "web/url/canon.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { TOLD_MAX = 1 << 20 };

/* ---- of places ---- */

struct finding {
    const struct index *index;
    const struct damage_place *places;
    size_t places_count;
    uint16_t volume;
    struct map told; /* segment and offset of records whose capture was told */
    damage_visit *visit;
    void *context;
};

/* The key of a set of records: no padding, since keys are compared as bytes. */
_Static_assert(sizeof(struct location) == 16, "a location has no padding");

void damage_set_init(struct map *set, size_t count_max) {
    map_init(set, sizeof(struct location), 0, count_max, 1);
}

enum err damage_set_add(struct map *set, const struct location *location) {
    struct location key = {.segment = location->segment, .offset = location->offset};
    enum err err = map_reserve(set, set->count + 1);
    if (err == ERR_OK) {
        map_put(set, bytes_of(&key, sizeof key));
    }
    return err;
}

bool damage_set_has(const struct map *set, const struct location *location) {
    struct location key = {.segment = location->segment, .offset = location->offset};
    return map_get(set, bytes_of(&key, sizeof key)) != NULL;
}

static bool damage_is_damaged(const struct finding *finding, const struct location *location) {
    size_t low = 0;
    size_t high = finding->places_count;
    while (low < high) { /* the first place that ends behind the location */
        size_t middle = low + (high - low) / 2;
        const struct damage_place *place = &finding->places[middle];
        bool is_before = place->segment < location->segment ||
                         (place->segment == location->segment && place->end <= location->offset);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return low < finding->places_count && finding->places[low].segment == location->segment &&
           finding->places[low].from <= location->offset;
}

static enum err damage_tell_capture(struct finding *finding, struct capture *capture) {
    bool is_live = false;
    enum err err = index_is_live(finding->index, capture, &is_live);
    if (err == ERR_OK && is_live) {
        err = damage_set_add(&finding->told, &capture->location);
    }
    if (err != ERR_OK || !is_live) {
        return err;
    }
    capture->volume = finding->volume;
    finding->visit(finding->context, capture);
    return ERR_OK;
}

static enum err damage_find_captures(struct finding *finding) {
    struct index_cursor *cursor;
    struct capture capture;
    struct bytes all = {NULL, 0};
    enum err err = index_cursor_open(finding->index, all, all, false, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && (err = index_cursor_next(cursor, &capture)) == ERR_OK) {
        err = damage_is_damaged(finding, &capture.location) ? damage_tell_capture(finding, &capture) : ERR_OK;
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err damage_find_blocks(struct finding *finding) {
    struct index_cursor *cursor;
    struct capture capture = {.volume = finding->volume};
    struct block block;
    enum err err = index_blocks_open(finding->index, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = index_blocks_next(cursor, capture.digest, &capture.block_number, &block)) == ERR_OK) {
        if (block.references > 0 && damage_is_damaged(finding, &block.location) &&
            !damage_set_has(&finding->told, &block.location)) {
            capture.location = block.location;
            finding->visit(finding->context, &capture);
        }
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err damage_find(struct volume *volume, const struct damage_place *places, size_t places_count,
                     damage_visit *visit, void *context, struct err_detail *detail) {
    struct finding finding = {
        .index = volume->index,
        .places = places,
        .places_count = places_count,
        .volume = volume->config.number,
        .visit = visit,
        .context = context,
    };
    damage_set_init(&finding.told, TOLD_MAX);
    enum err err = damage_find_captures(&finding);
    if (err == ERR_OK) {
        err = damage_find_blocks(&finding);
    }
    map_done(&finding.told);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

/* ---- the list ---- */

void damage_put_line(struct buf *list, const struct capture *capture) {
    char digest[2 * KEY_DIGEST_SIZE + 1];
    char time[UTC_RFC3339_SIZE] = "-";
    bool has_url = capture->url.size > 0;
    enum { REST_SIZE_MAX = 160 };
    if (list->size + capture->url.size + REST_SIZE_MAX > DAMAGE_LIST_SIZE_MAX) {
        return;
    }
    hex_encode(bytes_of(capture->digest, KEY_DIGEST_SIZE), digest);
    digest[2 * KEY_DIGEST_SIZE] = '\0';
    if (has_url) {
        utc_format_rfc3339(capture->time_us, time);
    }
    buf_put_format(list, "%u %u %s %s ", capture->volume, capture->block_number, digest, time);
    buf_put(list, has_url ? capture->url : BYTES("-"));
    buf_put_byte(list, '\n');
}

static bool damage_read_number(struct bytes *rest, uint16_t *ret_number) {
    struct bytes text;
    uint64_t number;
    if (!bytes_split(rest, ' ', &text) || !bytes_to_u64(text, UINT16_MAX, &number)) {
        return false;
    }
    *ret_number = (uint16_t)number;
    return true;
}

/* What is in the line, but for the SURT. */
static bool damage_read_line(struct bytes line, struct capture *capture) {
    struct bytes digest;
    struct bytes time;
    *capture = (struct capture){0};
    if (!damage_read_number(&line, &capture->volume) || !damage_read_number(&line, &capture->block_number) ||
        !bytes_split(&line, ' ', &digest) || !bytes_split(&line, ' ', &time) ||
        !hex_decode(digest, capture->digest, sizeof capture->digest)) {
        return false;
    }
    if (bytes_equal(time, BYTES("-"))) {
        return true;
    }
    capture->url = line;
    return line.size > 0 && utc_parse_rfc3339(time, &capture->time_us);
}

/* Each capture of the list, with its SURT; lines that are none are passed over. */
static enum err damage_read(struct bytes list, damage_visit *visit, void *context) {
    struct canon canon;
    struct buf surt;
    struct bytes line;
    canon_init(&canon);
    buf_init(&surt, URL_SIZE_MAX + 16);
    while (bytes_split(&list, '\n', &line)) {
        struct capture capture;
        buf_clear(&surt);
        bool is_good = damage_read_line(line, &capture);
        if (is_good && capture.url.size > 0) {
            is_good = canon_run(&canon, capture.url, NULL) == ERR_OK && surt_put(&surt, &canon) == ERR_OK;
            capture.surt = buf_bytes(&surt);
        }
        if (is_good) {
            visit(context, &capture);
        }
    }
    enum err err = surt.err == ERR_MEMORY ? ERR_MEMORY : ERR_OK;
    canon_done(&canon);
    buf_done(&surt);
    return err;
}

enum err damage_take(const char *path, damage_visit *visit, void *context, struct err_detail *detail) {
    struct buf list;
    buf_init(&list, DAMAGE_LIST_SIZE_MAX);
    enum err err = whole_file_read(path, &list, detail);
    if (err == ERR_OK) {
        err = damage_read(buf_bytes(&list), visit, context);
    }
    if (err == ERR_OK && unlink(path) != 0) {
        err = err_set(detail, ERR_IO, "%s cannot be removed", path);
    }
    buf_done(&list);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}
