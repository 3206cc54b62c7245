/* Of mirroring: what people and programs see of it. */
#include <stdio.h>

#include "node/mirror/mirror_driver_state.h"

static void put_version(const char *title, const struct version *version, struct buf *out) {
    if (version == NULL) {
        buf_put_format(out, ",\"%s\":null", title);
        return;
    }
    buf_put_format(out,
                   ",\"%s\":{\"number\":%ju,\"time_us\":%jd,\"files\":%ju,\"directories\":%ju,\"links\":%ju,"
                   "\"size\":%ju,\"manifest_size\":%ju}",
                   title, (uintmax_t)version->number, (intmax_t)version->time_us,
                   (uintmax_t)version->totals.files_count, (uintmax_t)version->totals.directories_count,
                   (uintmax_t)version->totals.links_count, (uintmax_t)version->totals.content_size,
                   (uintmax_t)version->totals.manifest_size);
}

static void put_source(const struct mirror_source_status *status, struct buf *out) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    buf_put_format(out,
                   "{\"address\":\"%s\",\"key\":\"%s\",\"number\":%ju,\"fetching\":%s,\"barred\":%s,"
                   "\"bandwidth\":%ju,\"delay_us\":%ju,\"fetched_size\":%ju,\"failed\":%u}",
                   address_format(&status->source.peer.address, place),
                   identity_key_format(status->source.peer.key, key), (uintmax_t)status->number,
                   status->is_fetching ? "true" : "false", status->is_barred ? "true" : "false",
                   (uintmax_t)status->source.bandwidth, (uintmax_t)status->source.delay_us,
                   (uintmax_t)status->fetched_size, status->failed_count);
}

static void put_progress(const struct mirror_driver_mirror *mirror, struct buf *out) {
    const struct mirror_counters *counters = mirror_counters(mirror->mirror);
    uint64_t rate = 0;
    if (mirror_phase(mirror->mirror) == MIRROR_FETCHING) {
        uint64_t took_us = mirror_driver_now_us(mirror->mirror_driver) - mirror->begun_us;
        rate = (counters->fetched_size - mirror->begun_size) * 1000 / (took_us / 1000 + 1);
    }
    buf_put_format(out,
                   ",\"left_size\":%ju,\"rate\":%ju,\"fetched_size\":%ju,\"batches\":%ju,\"again\":%ju,"
                   "\"late\":%ju,\"needed\":%ju,\"begun\":%ju,\"applied\":%ju,\"barred\":%ju",
                   (uintmax_t)mirror->wanted.left_size, (uintmax_t)rate, (uintmax_t)counters->fetched_size,
                   (uintmax_t)counters->batches_count, (uintmax_t)counters->again_count,
                   (uintmax_t)counters->late_count, (uintmax_t)counters->needed_count,
                   (uintmax_t)counters->begun_count, (uintmax_t)counters->applied_count,
                   (uintmax_t)counters->barred_count);
}

/* What became of those that people named. */
static void put_named(const struct mirror_driver_mirror *mirror, struct buf *out) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    buf_put_string(out, ",\"named\":[");
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        const struct mirror_driver_named *named = &mirror->named[i];
        buf_put_format(out, "%s{\"address\":\"%s\",\"state\":\"%s\"}", i > 0 ? "," : "",
                       address_format(&mirror->setup.sources[i], place),
                       named->is_known                ? "known"
                       : named->err == ERR_PERMISSION ? "refuses"
                       : named->err != ERR_OK         ? "silent"
                                                      : "asked");
    }
    buf_put_byte(out, ']');
}

static void put_mirror(const struct mirror_driver_mirror *mirror, struct buf *out) {
    char key[IDENTITY_TEXT_SIZE] = "";
    if (mirror->setup.has_publisher) {
        identity_key_format(mirror->setup.publisher, key);
    }
    buf_put_format(out, "{\"name\":\"%s\",\"publisher\":\"%s\",\"role\":\"%s\",\"state\":\"%s\"",
                   mirror->setup.name, key,
                   collection_setup_publishes(&mirror->setup) ? "publisher" : "subscriber",
                   mirror->mirror != NULL        ? mirror_phases[mirror_phase(mirror->mirror)]
                   : mirror->setup.has_publisher ? "closed"
                                                 : "looking");
    if (mirror->mirror != NULL) {
        put_version("held", mirror_held(mirror->mirror), out);
        put_version("target", mirror_target(mirror->mirror), out);
        put_version("newest", mirror_newest(mirror->mirror), out);
        put_progress(mirror, out);
    }
    buf_put_format(out, ",\"given_size\":%ju,\"answers\":%ju,\"withheld\":%ju", (uintmax_t)mirror->given_size,
                   (uintmax_t)mirror->answers_count, (uintmax_t)mirror->withheld_count);
    put_named(mirror, out);
    if (mirror->mirror_driver->config.put_archive != NULL) {
        mirror->mirror_driver->config.put_archive(mirror->mirror_driver->config.context, mirror->setup.name,
                                                  out);
    }
    buf_put_string(out, ",\"sources\":[");
    size_t count = mirror->mirror != NULL ? mirror_sources_count(mirror->mirror) : 0;
    for (size_t i = 0; i < count; i++) {
        struct mirror_source_status status;
        mirror_source_at(mirror->mirror, i, mirror_driver_now_us(mirror->mirror_driver), &status);
        buf_put_string(out, i > 0 ? "," : "");
        put_source(&status, out);
    }
    buf_put_string(out, "]}");
}

void mirror_driver_describe(struct mirror_driver *mirror_driver) {
    char key[IDENTITY_TEXT_SIZE];
    pthread_mutex_lock(&mirror_driver->lock);
    buf_clear(&mirror_driver->status);
    buf_put_format(&mirror_driver->status, "{\"version\":1,\"key\":\"%s\",\"download\":",
                   identity_key_format(mirror_driver->config.self.key, key));
    mirror_driver_rates_put(&mirror_driver->limit, mirror_driver_now_us(mirror_driver),
                            &mirror_driver->status);
    buf_put_string(&mirror_driver->status, ",\"upload\":");
    mirror_driver_rates_put(&mirror_driver->upload_limit, mirror_driver_now_us(mirror_driver),
                            &mirror_driver->status);
    buf_put_string(&mirror_driver->status, ",\"mirrors\":[");
    for (size_t i = 0; i < mirror_driver->mirrors_count; i++) {
        buf_put_string(&mirror_driver->status, i > 0 ? "," : "");
        put_mirror(mirror_driver->mirrors[i], &mirror_driver->status);
    }
    buf_put_string(&mirror_driver->status, "]}");
    pthread_mutex_unlock(&mirror_driver->lock);
}

void mirror_driver_put(struct mirror_driver *mirror_driver, struct buf *out) {
    pthread_mutex_lock(&mirror_driver->lock);
    if (mirror_driver->status.size == 0 || mirror_driver->status.err != ERR_OK) {
        buf_put_string(out, "{\"version\":1,\"mirrors\":[]}");
    } else {
        buf_put(out, buf_bytes(&mirror_driver->status));
    }
    pthread_mutex_unlock(&mirror_driver->lock);
}
