#include <stdio.h>

#include "base/hex.h"
#include "replay/site/assets.h"
#include "replay/wayback/memento.h"
#include "replay/wayback/wayback_state.h"
#include "store/volume/volume_record.h"
#include "warc/request_key.h"
#include "web/html/refresh.h"

enum {
    FIELDS_MAX = 64,              /* of the server's, that are passed on */
    FIELDS_TOTAL_SIZE_MAX = 4096, /* all of them together */
    NAME_SIZE_MAX = 64,
    VALUE_SIZE_MAX = 1024,
    REFERENCE_SIZE_MAX = 4096,
    ETAG_DIGEST_SIZE = 16,
    ETAG_VERSION =
        2, /* one more whenever types or policies change: copies with the old ones must not live on */
    SOURCE_SIZE_MAX = INSTANCE_ORIGIN_SIZE_MAX + 16,
};

static const char original_prefix[] = "X-Archive-Orig-";

char *wayback_clean(struct bytes value, char *out, size_t out_size) {
    size_t size = value.size < out_size ? value.size : out_size - 1;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = value.data[i];
        out[i] = byte < ' ' || byte == 0x7f ? ' ' : (char)byte;
    }
    while (size > 0 && out[size - 1] == ' ') {
        size--;
    }
    out[size] = '\0';
    return out;
}

static bool is_token(struct bytes name) {
    bool is_sound = name.size > 0 && name.size <= NAME_SIZE_MAX;
    for (size_t i = 0; i < name.size && is_sound; i++) {
        uint8_t byte = name.data[i];
        is_sound = byte_is_alnum(byte) || byte == '-' || byte == '_';
    }
    return is_sound;
}

/*
 * Content-Type, Content-Encoding, Content-Range and Location are set if it is known what they have become.
 * Link only goes by its other name: browsers would load and connect to what it names.
 */
static void add_original_fields(struct wayback *wayback) {
    static const char *const as_they_are[] = {"Content-Disposition", NULL};
    static const char *const never[] = {"Set-Cookie", "Set-Cookie2", NULL};
    const struct fields *fields = wayback->record.fields;
    size_t total_size = 0;
    size_t count = 0;
    char name[sizeof original_prefix + NAME_SIZE_MAX];
    char value[VALUE_SIZE_MAX];
    for (size_t i = 0; i < fields->count && count < FIELDS_MAX; i++) {
        const struct field *field = &fields->items[i];
        if (!is_token(field->name) || bytes_is_one_of(field->name, never)) {
            continue;
        }
        bool is_kept = bytes_is_one_of(field->name, as_they_are);
        snprintf(name, sizeof name, "%s%.*s", is_kept ? "" : original_prefix, BYTES_ARG(field->name));
        wayback_clean(field->value, value, sizeof value);
        total_size += strlen(name) + strlen(value);
        if (total_size > FIELDS_TOTAL_SIZE_MAX) {
            return;
        }
        http_add_header(wayback->request, name, value);
        count++;
    }
}

/* Append the replay URL of a reference in the capture. False if it leads nowhere that an archive has. */
static bool put_reference(struct wayback *wayback, struct bytes reference, struct buf *out) {
    struct wayback_kit *kit = wayback->kit;
    if (url_parse(&kit->url, request_key_split(wayback->capture.url).url, NULL, NULL) != ERR_OK ||
        url_parse(&kit->target, reference, &kit->url, NULL) != ERR_OK || !url_is_web(&kit->target)) {
        return false;
    }
    buf_put_format(out, "%s%s%.*s/", wayback->prefix, wayback->around, BYTES_ARG(wayback->path->modifier));
    wayback_put_url(out, url_href(&kit->target));
    return out->err == ERR_OK && out->size <= REFERENCE_SIZE_MAX;
}

/* Which capture this is, if another time was asked for; else what the server said, within the archive. */
static void add_content_location(struct wayback *wayback) {
    struct buf *text = &wayback->kit->text;
    struct bytes stated = fields_get(wayback->record.fields, BYTES("Content-Location"));
    buf_clear(text);
    if (!wayback->is_exact) {
        buf_put_format(text, "%s%s%.*s/", wayback->prefix, wayback->address,
                       BYTES_ARG(wayback->path->modifier));
        wayback_put_url(text, wayback->capture.url);
    } else if (stated.size == 0 || !put_reference(wayback, stated, text)) {
        return;
    }
    if (text->err == ERR_OK && text->size <= REFERENCE_SIZE_MAX) {
        http_add_header(wayback->request, "Content-Location", buf_string(text));
    }
}

/* "5; url=next": a redirect too. */
static void add_refresh(struct wayback *wayback) {
    struct buf *text = &wayback->kit->text;
    struct bytes stated = fields_get(wayback->record.fields, BYTES("Refresh"));
    struct bytes url;
    char before[32];
    if (stated.size == 0 || wayback->path->as == REWRITE_RAW || !refresh_url(stated, &url)) {
        return;
    }
    wayback_clean(bytes_slice(stated, 0, (size_t)(url.data - stated.data)), before, sizeof before);
    buf_clear(text);
    buf_put_string(text, before);
    if (put_reference(wayback, url, text)) {
        http_add_header(wayback->request, "Refresh", buf_string(text));
    }
}

/* Where it came from: this node's own volumes, a collection, or another node. What a volume's record says of
 * it is no word of ours. */
static void add_source(struct wayback *wayback) {
    char text[SOURCE_SIZE_MAX] = "store";
    uint16_t volume = wayback->capture.volume;
    if (instance_is_mirrored(volume)) {
        snprintf(text, sizeof text, "collection %s",
                 instance_mirrored_origin(archive_instance(wayback->replay->archive), volume));
    } else if (volume == INSTANCE_GUEST_NUMBER) {
        wayback_clean(fields_get(&wayback->record.header->fields, BYTES(VOLUME_SOURCE_FIELD)), text,
                      sizeof text);
    }
    http_add_header(wayback->request, "X-Mnemon-Source", text);
}

/* Who says so: the node that fetched it, if it was a member then, else the one that took it from a file. */
static void add_origin(struct wayback *wayback) {
    struct archive_origin origin;
    char text[SOURCE_SIZE_MAX];
    archive_origin_read(wayback->replay->archive, &wayback->record.header->fields, wayback->capture.time_us,
                        &origin);
    http_add_header(wayback->request, "X-Mnemon-Provenance", provenance_name(origin.provenance));
    if (origin.provenance == PROVENANCE_FETCHED) {
        http_add_header(wayback->request, "X-Mnemon-Fetched-By",
                        wayback_clean(origin.fetched_by, text, sizeof text));
    }
    if (origin.imported_by.size > 0 && !origin.is_later) {
        http_add_header(wayback->request, "X-Mnemon-Imported-By",
                        wayback_clean(origin.imported_by, text, sizeof text));
    }
}

void wayback_add_url(struct wayback *wayback) {
    struct buf *text = &wayback->kit->text;
    buf_clear(text);
    wayback_put_url(text, wayback->capture.url);
    if (wayback->is_other && text->err == ERR_OK && text->size <= REFERENCE_SIZE_MAX) {
        http_add_header(wayback->request, "X-Mnemon-Url", buf_string(text));
    }
}

enum err wayback_add_headers(struct wayback *wayback) {
    memento_add_datetime(wayback->request, wayback->capture.time_us);
    wayback_add_url(wayback);
    add_source(wayback);
    add_origin(wayback);
    partial_add_header(wayback->request, archive_reader_absent(wayback->reader));
    add_original_fields(wayback);
    add_content_location(wayback);
    add_refresh(wayback);
    enum err err = memento_add_links(wayback->request, wayback->reader, wayback->capture.url,
                                     &wayback->capture, &wayback->kit->text);
    /* Rules may change and rewriting improve, so a copy is asked about before it is used; that is cheap. */
    http_add_header(wayback->request, "Cache-Control", "private, no-cache");
    http_add_header(wayback->request, "Vary", "Accept-Encoding, Origin, Sec-Fetch-Dest, Sec-Fetch-Site");
    return err;
}

void wayback_etag(const struct wayback *wayback, bool is_rewritten, char out[WAYBACK_ETAG_SIZE_MAX]) {
    char digest[2 * ETAG_DIGEST_SIZE + 1];
    hex_encode(bytes_of(wayback->capture.digest, ETAG_DIGEST_SIZE), digest);
    if (!is_rewritten) {
        snprintf(out, WAYBACK_ETAG_SIZE_MAX, "\"%d-%s\"", ETAG_VERSION, digest);
        return;
    }
    /* The secret is in the references; so much of it gives none of it away. */
    const struct asset *script = assets_find(BYTES("replay.js"));
    snprintf(out, WAYBACK_ETAG_SIZE_MAX, "\"%d-%s-%s-%d-%.4s-%s\"", ETAG_VERSION, digest, wayback->around,
             (int)wayback->path->as, wayback->is_ours ? wayback->replay->frame_key : "",
             script != NULL ? script->mark : "");
}
