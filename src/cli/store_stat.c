#include "base/json.h"
#include "base/value.h"
#include "cli/data.h"
#include "cli/store.h"
#include "store/index/index_cursor.h"

/* What is counted one by one, in a moment; above it the index's own estimate has to do. */
enum { COUNT_MAX = 1 << 18 };

/* One line of the report: a volume, or all of them. */
struct tally {
    struct backend_stat stat;
    struct instance_volume volume; /* not set in the sum */
    bool is_estimate;              /* of documents and captures */
    enum err err;                  /* the volume cannot say */
    struct err_detail detail;
};

/* ---- counting ---- */

static uint64_t count_documents(const struct index *index, uint64_t estimate) {
    struct index_cursor *cursor;
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    struct block block;
    uint64_t seen = 0;
    uint64_t count = 0;
    if (index_blocks_open(index, &cursor) != ERR_OK) {
        return estimate;
    }
    while (seen < COUNT_MAX && index_blocks_next(cursor, digest, &number, &block) == ERR_OK) {
        seen++;
        count += block.references > 0 ? 1 : 0;
    }
    index_cursor_close(cursor);
    return seen < COUNT_MAX || estimate < count ? count : estimate;
}

static uint64_t count_captures(const struct index *index, uint64_t estimate) {
    struct index_cursor *cursor;
    struct capture capture;
    uint64_t count = 0;
    if (index_cursor_open(index, bytes_of(NULL, 0), bytes_of(NULL, 0), false, &cursor) != ERR_OK) {
        return estimate;
    }
    while (count < COUNT_MAX && index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count < COUNT_MAX || estimate < count ? count : estimate;
}

static void read_tally(struct data *data, size_t index, struct tally *tally) {
    *tally = (struct tally){0};
    tally->err = instance_stat(data->session, index, &tally->stat, &tally->detail);
    instance_volume(data->instance, index, &tally->volume);
    if (tally->volume.volume != NULL) {
        const struct index *volume_entries = volume_index(tally->volume.volume);
        tally->stat.blocks_count = count_documents(volume_entries, tally->stat.blocks_count);
        tally->stat.captures_count = count_captures(volume_entries, tally->stat.captures_count);
    }
    tally->is_estimate = tally->volume.is_remote || tally->stat.blocks_count >= COUNT_MAX ||
                         tally->stat.captures_count >= COUNT_MAX;
}

static void add_stat(struct backend_stat *sum, const struct backend_stat *stat) {
    sum->segments_count += stat->segments_count;
    sum->size += stat->size;
    sum->dead_size += stat->dead_size;
    sum->blocks_count += stat->blocks_count;
    sum->captures_count += stat->captures_count;
    sum->index_size += stat->index_size;
}

/* ---- printing ---- */

static void put_line(struct buf *out, const char *name, void (*put)(struct buf *buf, uint64_t value),
                     uint64_t value) {
    buf_put_format(out, "%-12s ", name);
    put(out, value);
    buf_put_byte(out, '\n');
}

static void put_about(struct buf *out, uint64_t count) {
    buf_put_string(out, "about ");
    value_put_count(out, count);
}

static void put_text(struct buf *out, const struct backend_stat *stat, bool is_estimate) {
    put_line(out, "documents", is_estimate ? put_about : value_put_count, stat->blocks_count);
    put_line(out, "captures", is_estimate ? put_about : value_put_count, stat->captures_count);
    put_line(out, "segments", value_put_count, stat->segments_count);
    put_line(out, "size", value_put_size, stat->size);
    put_line(out, "dead", value_put_size, stat->dead_size);
    put_line(out, "index", value_put_size, stat->index_size);
}

static void put_volume_text(struct buf *out, const struct tally *tally) {
    buf_put_format(out, "\nvolume %-5u %s%s%s\n", tally->volume.number, tally->volume.place,
                   tally->volume.is_remote ? " (maintained by its server)" : "",
                   tally->volume.is_writable ? "" : " (takes no new documents)");
    if (tally->err == ERR_OK) {
        put_text(out, &tally->stat, tally->is_estimate);
    } else {
        buf_put_format(out, "%-12s %s\n", "down", err_detail_text(&tally->detail, tally->err));
    }
}

static void put_json(struct json *json, const struct backend_stat *stat) {
    JSON_COUNTS(json, {"documents", stat->blocks_count}, {"captures", stat->captures_count},
                {"segments", stat->segments_count}, {"size", stat->size}, {"dead_size", stat->dead_size},
                {"index_size", stat->index_size});
}

static void put_volume_json(struct json *json, const struct tally *tally) {
    json_open(json, NULL);
    json_count(json, "volume", tally->volume.number);
    json_text(json, "place", tally->volume.place);
    json_bool(json, "remote", tally->volume.is_remote);
    json_bool(json, "writable", tally->volume.is_writable);
    if (tally->err == ERR_OK) {
        put_json(json, &tally->stat);
    } else {
        json_text(json, "down", err_detail_text(&tally->detail, tally->err));
    }
    json_close(json);
}

static void put_report(struct buf *out, struct data *data, bool is_json) {
    struct backend_stat sum = {0};
    bool is_estimate = false;
    struct buf volumes;
    struct json json;
    size_t count = instance_volumes_count(data->instance);
    buf_init(&volumes, out->size_max);
    json_init(&json, &volumes);
    if (is_json) {
        json_open_list(&json, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        struct tally tally;
        read_tally(data, i, &tally);
        add_stat(&sum, &tally.stat);
        is_estimate = is_estimate || (tally.err == ERR_OK && tally.is_estimate);
        if (is_json) {
            put_volume_json(&json, &tally);
        } else if (count > 1) {
            put_volume_text(&volumes, &tally);
        }
    }
    if (is_json) {
        json_close(&json);
        json_begin(&json, out);
        json_text(&json, "directory", data->directory);
        put_json(&json, &sum);
        json_raw(&json, "volumes", buf_bytes(&volumes));
        json_end(&json);
        buf_put_byte(out, '\n');
    } else {
        buf_put_format(out, "%-12s %s\n", "directory", data->directory);
        put_text(out, &sum, is_estimate);
        buf_put(out, buf_bytes(&volumes));
    }
    buf_done(&volumes);
}

int store_stat(struct cli *cli, const struct store_options *options, char **arguments,
               size_t arguments_count) {
    (void)arguments;
    (void)arguments_count;
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_READ);
    if (status != CLI_DONE) {
        return status;
    }
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    put_report(&out, &data, options->json);
    fwrite(out.data, 1, out.size, cli->out);
    buf_done(&out);
    data_close(&data);
    return CLI_DONE;
}
