#include <stdio.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/utc.h"
#include "replay/pages/pages_kit.h"
#include "replay/site/trust.h"
#include "store/document/attested.h"
#include "store/volume/segment.h"
#include "store/volume/volume_record.h"

enum {
    LOCATION_SIZE_MAX =
        6000, /* longer URLs, percent-encoded, have no room in a header: they are shown at once */
    HEAD_SHOWN_MAX = 64 << 10,
};

/* One capture with all that is said of it. */
struct details {
    struct capture capture;
    struct record record; /* of its own */
    struct key key;
    struct block block;
    struct archive_neighbours neighbours;
    struct buf text;               /* what the capture borrows: looking for the neighbours is another find */
    struct buf request;            /* as it was sent */
    const char *origin;            /* the collection that it comes from; NULL for this node's own */
    struct archive_origin vouched; /* whose word it is */
    struct archive_witnesses witnesses;
};

/* Record and request, as they are kept. */
static enum err details_read_record(struct details *details, struct archive_reader *reader,
                                    struct err_detail *detail) {
    struct instance_session *session = archive_reader_session(reader);
    const struct capture *capture = &details->capture;
    struct bytes request;
    enum err err = instance_locate(session, capture, &details->key, &details->block, detail);
    if (err == ERR_OK) {
        err = instance_get_request(session, capture->volume, &capture->location, &request, detail);
    }
    if (err == ERR_OK) {
        request.size = request.size < HEAD_SHOWN_MAX ? request.size : HEAD_SHOWN_MAX;
        err = buf_put(&details->request, request);
    }
    if (err == ERR_OK) {
        err = record_read(&details->record, session, capture->volume, &capture->location, detail);
    }
    return archive_note_read(reader, capture, err);
}

static enum err read_details(struct details *details, struct archive *archive, struct archive_reader *reader,
                             const struct capture *found, struct err_detail *detail) {
    struct capture *capture = &details->capture;
    if (archive_verdict(reader, found) != ACCESS_ALLOW) {
        return err_set(detail, ERR_PERMISSION, "A rule of this archive blocks this capture.");
    }
    *capture = *found;
    enum err err = archive_keep(&details->text, capture);
    if (instance_is_mirrored(capture->volume)) {
        details->origin = instance_mirrored_origin(archive_instance(archive), capture->volume);
    }
    if (err == ERR_OK) {
        archive_witnesses_find(reader, &details->record, capture, &details->witnesses);
    }
    err = err == ERR_OK ? details_read_record(details, reader, detail) : err;
    if (err == ERR_OK) {
        archive_origin_read(archive, &details->record.header.fields, capture->time_us, &details->vouched);
    }
    return err == ERR_OK ? archive_neighbours(reader, capture->surt, capture->time_us, &details->neighbours)
                         : err;
}

static enum err details_init(struct details *details) {
    *details = (struct details){0};
    buf_init(&details->text, INDEX_SURT_SIZE_MAX + INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX);
    buf_init(&details->request, HEAD_SHOWN_MAX);
    return record_init(&details->record);
}

static void details_done(struct details *details) {
    record_done(&details->record);
    buf_done(&details->request);
    buf_done(&details->text);
}

static struct bytes field_of(const struct details *details, const char *name) {
    return fields_get(&details->record.header.fields, bytes_of_string(name));
}

static bool is_revisit(const struct details *details) {
    return (details->capture.flags & CAPTURE_REVISIT) != 0;
}

/* The capture that a revisit says it repeats; false if it does not say. */
static bool find_origin(const struct details *details, struct bytes *ret_uri, int64_t *ret_time_us) {
    *ret_uri = warc_bare_uri(field_of(details, "WARC-Refers-To-Target-URI"));
    return is_revisit(details) && ret_uri->size > 0 &&
           utc_parse_rfc3339(field_of(details, "WARC-Refers-To-Date"), ret_time_us);
}

static const char *digest_text(const struct capture *capture, char out[2 * KEY_DIGEST_SIZE + 1]) {
    return hex_encode(bytes_of(capture->digest, KEY_DIGEST_SIZE), out);
}

/* As its file is named, but for what follows the dot: "00000001", "00000001-2" when it was compacted. */
static const char *segment_text(const struct capture *capture, char out[SEGMENT_NAME_SIZE_MAX]) {
    uint32_t generation = capture->location.segment % SEGMENT_GENERATIONS;
    int size = snprintf(out, SEGMENT_NAME_SIZE_MAX, "%08u", capture->location.segment / SEGMENT_GENERATIONS);
    if (generation > 0) {
        snprintf(out + size, (size_t)(SEGMENT_NAME_SIZE_MAX - size), "-%u", generation);
    }
    return out;
}

/* ---- the page ---- */

static void put_revisit(struct sheet *sheet, const struct details *details) {
    struct bytes uri;
    int64_t time_us;
    if (!is_revisit(details)) {
        return;
    }
    sheet_fact(sheet, "Repeats");
    if (find_origin(details, &uri, &time_us)) {
        sheet_html(sheet, "<a href=\"");
        pages_put_path(sheet, "/details", stamp_of_time(time_us), uri, PAGES_VIEW_PAGE);
        FILL(sheet, "\">{text}</a> of {time}: ", {.text = uri}, {.time_us = time_us});
    }
    sheet_html(sheet, record_is_not_modified(&details->record.header)
                          ? "the server said that nothing had changed."
                          : "the same bytes, which are stored once.");
    sheet_html(sheet, "</dd>\n");
}

/* The node that has signed the field; a signature that this program cannot check is shown as that. */
static void details_put_signer(struct sheet *sheet, const struct details *details, const char *title,
                               const char *name) {
    struct attested attested;
    if (!attested_read(field_of(details, name), &attested)) {
        return;
    }
    if (attested.later == 0) {
        sheet_fact_text(sheet, title, attested.key);
        return;
    }
    sheet_format(sheet, "<dt>%s</dt><dd>", title);
    sheet_text(sheet, attested.key);
    sheet_format(sheet, ", not checked: its signature is of version %u, this program knows up to %d</dd>\n",
                 attested.later, ATTESTED_VERSION_LAST);
}

static const char *details_witness_name(const struct archive_witness *witness) {
    return witness->key[0] != '\0' ? witness->key : "a node whose record cannot be read now";
}

/* One node, or all that got the same in this visit. */
static void put_fetchers(struct sheet *sheet, const struct details *details) {
    const struct archive_witnesses *witnesses = &details->witnesses;
    if (witnesses->agree_count < 2) {
        details_put_signer(sheet, details, "Fetched by", VOLUME_SIGNATURE_FIELD);
    }
    for (size_t i = 0; i < witnesses->count && witnesses->agree_count >= 2; i++) {
        const struct archive_witness *witness = &witnesses->list[i];
        if (witness->agrees) {
            FILL(sheet, "<dt>Fetched by</dt><dd><span class=key>{html}</span>, {time}</dd>\n",
                 {.string = details_witness_name(witness)}, {.time_us = witness->time_us});
        }
    }
    if (witnesses->count >= 2) {
        FILL(sheet, "<dt>Witnesses</dt><dd>{number} of {number} agree</dd>\n",
             {.number = witnesses->agree_count}, {.number = witnesses->count});
    }
}

static void details_put_provenance(struct sheet *sheet, const struct details *details) {
    const struct archive_origin *vouched = &details->vouched;
    static const char *const sentences[] = {
        [PROVENANCE_UNKNOWN] = "unknown: no member of the ring is known to vouch for it",
        [PROVENANCE_FETCHED] = "fetched by a member of the ring",
        [PROVENANCE_IMPORTED] = "imported from a file: nobody but that file says that the page was so",
    };
    sheet_format(sheet, "<dt>Origin</dt><dd>%s%s</dd>\n", sentences[vouched->provenance],
                 vouched->is_stranger ? "; the key that signed it is not known as a member of this ring then"
                                      : "");
}

static void put_facts(struct sheet *sheet, const struct details *details) {
    const struct capture *capture = &details->capture;
    char digest[2 * KEY_DIGEST_SIZE + 1];
    char key[KEY_TEXT_SIZE_MAX];
    char segment[SEGMENT_NAME_SIZE_MAX];
    struct bytes truncated = field_of(details, "WARC-Truncated");
    FILL(sheet, "<dl class=facts>\n<dt>Captured</dt><dd>{time}</dd>\n<dt>Status</dt><dd>{status}</dd>\n",
         {.time_us = capture->time_us}, {.number = capture->status});
    sheet_fact_text(sheet, "Type", capture->mime);
    FILL(sheet, "<dt>Size</dt><dd>{size}</dd>\n", {.number = details->block.size});
    put_revisit(sheet, details);
    if (truncated.size > 0 && !is_revisit(details)) {
        sheet_fact_text(sheet, "Cut short", truncated);
    }
    sheet_fact_text(sheet, "Server address", field_of(details, "WARC-IP-Address"));
    sheet_fact_text(sheet, "TLS", field_of(details, VOLUME_TLS_FIELD));
    put_fetchers(sheet, details);
    details_put_signer(sheet, details, "Imported by", VOLUME_IMPORTED_FIELD);
    details_put_provenance(sheet, details);
    if (capture->volume == INSTANCE_GUEST_NUMBER) {
        sheet_fact_text(sheet, "Read from", field_of(details, VOLUME_SOURCE_FIELD));
    }
    if (details->origin != NULL) {
        sheet_fact_text(sheet, "Collection", bytes_of_string(details->origin));
    }
    FILL(sheet,
         "<dt>Payload digest</dt><dd><span class=key>sha256:{html}</span></dd>\n"
         "<dt>Content key</dt><dd><span class=key>{html}</span></dd>\n"
         "<dt>Stored</dt><dd>volume {number}, segment {html}, offset {count}, {size}</dd>\n",
         {.string = digest_text(capture, digest)}, {.string = key_format(&details->key, key)},
         {.number = capture->volume}, {.string = segment_text(capture, segment)},
         {.number = capture->location.offset}, {.number = capture->location.length});
    sheet_fact_text(sheet, "Record", field_of(details, "WARC-Record-ID"));
    sheet_html(sheet, "</dl>\n");
}

static void put_actions(struct sheet *sheet, const struct capture *capture) {
    FILL(sheet,
         "<p class=actions><a class=\"button main\" href=\"{replay}\">Show the page</a><a class=button "
         "href=\"",
         {.text = capture->url, .time_us = capture->time_us, .id = capture_id(capture)});
    sheet_replay_url(sheet, stamp_of(capture), "id_", capture->url);
    sheet_html(sheet, "\">As it was received</a><a class=button href=\"");
    pages_put_path(sheet, "/details", stamp_of(capture), capture->url, PAGES_VIEW_WARC);
    FILL(sheet, "\" download>Download as WARC</a><a class=button href=\"/web/*/{url}\">Calendar</a></p>\n",
         {.text = capture->url});
}

static void details_put_version(struct sheet *sheet, const struct capture *capture, const char *name,
                                const struct archive_neighbour *near, bool is_before) {
    char text[STAMP_SIZE];
    struct stamp own = stamp_of(capture);
    struct stamp other = archive_neighbour_stamp(near);
    if (near->time_us == INT64_MIN) {
        return;
    }
    sheet_format(sheet, "<li>%s: <a href=\"", name);
    pages_put_path(sheet, "/details", other, near->url, PAGES_VIEW_PAGE);
    FILL(sheet, "\">{time}</a>, <a href=\"/compare/{html}", {.time_us = near->time_us},
         {.string = stamp_format(is_before ? other : own, text)});
    pages_put_path(sheet, "", is_before ? own : other, capture->url, PAGES_VIEW_TEXT);
    sheet_format(sheet, "\">what changed<span class=unseen> between this and the %s</span></a></li>\n",
                 is_before ? "one before" : "one after");
}

/* Nodes that fetched the page in the same visit and got something else: each version has its address. */
static void details_put_dissent(struct sheet *sheet, const struct details *details) {
    const struct archive_witnesses *witnesses = &details->witnesses;
    const struct capture *capture = &details->capture;
    char own[STAMP_SIZE];
    if (witnesses->agree_count == witnesses->count) {
        return;
    }
    FILL(sheet,
         "<h2 id=witnesses>Witnesses</h2>\n<p>{number} of {number} witnesses agree: the others got something "
         "else "
         "in the same visit. A page may differ for each who asks; or a server, a line or a node has changed "
         "it.</p>\n"
         "<ul>",
         {.number = witnesses->agree_count}, {.number = witnesses->count});
    stamp_format(stamp_of(capture), own);
    for (size_t i = 0; i < witnesses->count; i++) {
        const struct archive_witness *witness = &witnesses->list[i];
        const struct stamp other = {.time_us = witness->time_us, .id = witness->id};
        if (witness->agrees) {
            FILL(sheet, "<li><span class=key>{html}</span>, {time}: this version</li>\n",
                 {.string = details_witness_name(witness)}, {.time_us = witness->time_us});
            continue;
        }
        FILL(sheet, "<li><span class=key>{html}</span>, {time}: <a href=\"",
             {.string = details_witness_name(witness)}, {.time_us = witness->time_us});
        pages_put_path(sheet, "/details", other, capture->url, PAGES_VIEW_PAGE);
        FILL(sheet,
             "\">another version</a>, status {status} (<a href=\"{replay}\">show it</a>, <a "
             "href=\"/compare/{html}",
             {.number = witness->status},
             {.text = capture->url, .time_us = witness->time_us, .id = witness->id}, {.string = own});
        pages_put_path(sheet, "", other, capture->url, PAGES_VIEW_TEXT);
        sheet_html(sheet, "\">what differs</a>)</li>\n");
    }
    sheet_html(sheet, "</ul>\n");
}

static void put_message(struct sheet *sheet, const char *name, const char *id, struct bytes text,
                        const char *why_not) {
    FILL(sheet, "<h2 id={html}>{html}</h2>\n", {.string = id}, {.string = name});
    if (text.size == 0) {
        sheet_format(sheet, "<p class=quiet>Not stored%s.</p>\n", why_not);
    } else {
        FILL(sheet, "<pre class=pre tabindex=0 role=region aria-labelledby={html}>{text}</pre>\n",
             {.string = id}, {.text = bytes_trim(text)});
    }
}

static void details_put_page(struct sheet *sheet, const struct details *details) {
    const struct capture *capture = &details->capture;
    const struct archive_neighbours *neighbours = &details->neighbours;
    FILL(sheet,
         "<p class=trail><a href=\"/\">Archive</a> / <a href=\"/web/*/{url}\">Calendar</a> / Details</p>\n"
         "<h1 class=url>{text}</h1>\n",
         {.text = capture->url}, {.text = capture->url});
    put_actions(sheet, capture);
    put_facts(sheet, details);
    details_put_dissent(sheet, details);
    if (neighbours->previous.time_us != INT64_MIN || neighbours->next.time_us != INT64_MIN) {
        sheet_html(sheet, "<h2>Other versions</h2>\n<ul>");
        details_put_version(sheet, capture, "Before", &neighbours->previous, true);
        details_put_version(sheet, capture, "After", &neighbours->next, false);
        sheet_html(sheet, "</ul>\n");
    }
    put_message(sheet, "Response header", "response", details->record.head, "");
    put_message(sheet, "Request", "request", buf_bytes(&details->request),
                capture->status == 304 ? ": a visit that found the page unchanged keeps none" : "");
}

static bool is_exact(const struct pages_target *target, const struct capture *capture) {
    int64_t apart_us = capture->time_us - target->stamps[0].time_us;
    return apart_us >= 0 && apart_us < 1000000;
}

/* To the address that names it exactly. */
static void redirect(struct http_request *request, const struct pages_target *target,
                     const struct capture *capture) {
    struct buf location;
    buf_init(&location, 4 * LOCATION_SIZE_MAX);
    pages_put_location(&location, "/details", stamp_of(capture), capture->url, target->view);
    const char *text = buf_string(&location);
    if (text != NULL) {
        http_add_header(request, "Location", text);
        http_answer(request, STATUS_FOUND, "text/plain; charset=utf-8", bytes_of(NULL, 0));
    } else {
        http_answer_error(request, location.err, NULL);
    }
    buf_done(&location);
}

/* One request for a capture. */
struct asking {
    struct replay *replay;
    struct http_request *request;
    struct archive_reader *reader;
    struct pages_target target;
};

static enum err details_show(struct asking *asking, const struct capture *capture,
                             struct err_detail *detail) {
    struct details details;
    enum err err = details_init(&details);
    if (err == ERR_OK) {
        err = read_details(&details, asking->replay->archive, asking->reader, capture, detail);
    }
    if (err == ERR_OK) {
        struct sheet sheet;
        sheet_begin_bare(&sheet, asking->replay, asking->request, "Details", SHEET_NONE);
        details_put_page(&sheet, &details);
        sheet_answer(&sheet, STATUS_OK);
    }
    details_done(&details);
    return err;
}

static enum err details_find_target(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct asking *asking = context;
    const struct pages_target *target = &asking->target;
    return pages_find(asking->reader, buf_bytes(&target->path.url), target->stamps[0], ret_capture, detail);
}

static enum err answer_found(void *context, const struct capture *capture, struct err_detail *detail) {
    struct asking *asking = context;
    const struct pages_target *target = &asking->target;
    if (!is_exact(target, capture) && capture->url.size < LOCATION_SIZE_MAX / 3) {
        redirect(asking->request, target, capture);
        return ERR_OK;
    }
    return target->view == PAGES_VIEW_WARC
               ? pages_answer_warc(asking->replay, asking->request, asking->reader, capture, detail)
               : details_show(asking, capture, detail);
}

void pages_details(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct asking asking = {
        .replay = replay, .request = request, .reader = trust_reader_begin(replay, request)};
    struct archive_attempt attempt = {.find = details_find_target, .use = answer_found, .context = &asking};
    struct err_detail detail = {0};
    enum err err = pages_target_read(&asking.target, request, 1, &detail);
    if (err == ERR_OK) {
        err = asking.reader == NULL ? ERR_MEMORY : archive_try(asking.reader, &attempt, &detail);
    }
    if (err != ERR_OK) {
        pages_add_partial(request, asking.reader);
        pages_answer_error(replay, request, err, &detail);
    }
    pages_target_done(&asking.target);
    archive_reader_end(asking.reader);
}

/* ---- as JSON ---- */

static void put_headers_json(struct json *json, const struct details *details) {
    const struct fields *fields = &details->record.payload.head.fields;
    json_open_list(json, "headers");
    for (size_t i = 0; details->record.head.size > 0 && i < fields->count; i++) {
        json_open_list(json, NULL);
        json_bytes(json, NULL, fields->items[i].name);
        json_bytes(json, NULL, fields->items[i].value);
        json_close(json);
    }
    json_close(json);
}

static void details_put_witness_json(struct json *json, const struct archive_witness *witness) {
    char digest[2 * KEY_DIGEST_SIZE + 1];
    char id[STAMP_SIZE];
    json_open(json, NULL);
    json_text(json, "node", witness->key);
    json_timestamp(json, "timestamp", witness->time_us);
    json_text(json, "id", stamp_format((struct stamp){.time_us = witness->time_us, .id = witness->id}, id));
    json_count(json, "status", witness->status);
    json_format(json, "digest", "sha256:%s", hex_encode(bytes_of(witness->digest, KEY_DIGEST_SIZE), digest));
    json_close(json);
}

/* Those who got this version, and those who got another one. */
static void details_put_witnesses_json(struct json *json, const struct details *details) {
    const struct archive_witnesses *witnesses = &details->witnesses;
    for (int pass = 0; pass < 2; pass++) {
        json_open_list(json, pass == 0 ? "witnesses" : "witnesses_of_others");
        for (size_t i = 0; i < witnesses->count; i++) {
            if (witnesses->list[i].agrees == (pass == 0)) {
                details_put_witness_json(json, &witnesses->list[i]);
            }
        }
        json_close(json);
    }
    json_open(json, "agreement");
    json_count(json, "agree", witnesses->agree_count);
    json_count(json, "of", witnesses->count);
    json_close(json);
}

static void details_put_json(struct json *json, const struct details *details) {
    const struct capture *capture = &details->capture;
    char digest[2 * KEY_DIGEST_SIZE + 1];
    char key[KEY_TEXT_SIZE_MAX];
    char segment[SEGMENT_NAME_SIZE_MAX];
    char id[STAMP_SIZE];
    struct bytes uri;
    int64_t time_us;
    json_open(json, NULL);
    json_bytes(json, "url", capture->url);
    json_timestamp(json, "timestamp", capture->time_us);
    json_text(json, "id", stamp_format(stamp_of(capture), id));
    json_count(json, "status", capture->status);
    json_bytes(json, "type", capture->mime);
    json_count(json, "size", details->block.size);
    json_format(json, "digest", "sha256:%s", digest_text(capture, digest));
    json_text(json, "key", key_format(&details->key, key));
    json_bool(json, "revisit", is_revisit(details));
    if (find_origin(details, &uri, &time_us)) {
        json_open(json, "repeats");
        json_bytes(json, "url", uri);
        json_timestamp(json, "timestamp", time_us);
        json_close(json);
    }
    json_bytes(json, "truncated",
               is_revisit(details) ? bytes_of(NULL, 0) : field_of(details, "WARC-Truncated"));
    json_bytes(json, "ip_address", field_of(details, "WARC-IP-Address"));
    json_bytes(json, "tls", field_of(details, VOLUME_TLS_FIELD));
    json_bytes(json, "signature", field_of(details, VOLUME_SIGNATURE_FIELD));
    details_put_witnesses_json(json, details);
    json_bytes(json, "imported", field_of(details, VOLUME_IMPORTED_FIELD));
    json_text(json, "provenance", provenance_name(details->vouched.provenance));
    json_bytes(json, "fetched_by", details->vouched.fetched_by);
    json_bool(json, "fetched_by_member", details->vouched.provenance == PROVENANCE_FETCHED);
    json_bool(json, "fetched_by_stranger", details->vouched.is_stranger);
    json_bytes(json, "imported_by", details->vouched.imported_by);
    json_bool(json, "unchecked",
              attested_is_later(field_of(details, VOLUME_SIGNATURE_FIELD)) ||
                  attested_is_later(field_of(details, VOLUME_IMPORTED_FIELD)));
    json_bytes(json, "record_id", field_of(details, "WARC-Record-ID"));
    json_bytes(json, "collection",
               details->origin != NULL ? bytes_of_string(details->origin) : bytes_of(NULL, 0));
    json_count(json, "volume", capture->volume);
    json_text(json, "segment", segment_text(capture, segment));
    json_count(json, "offset", capture->location.offset);
    json_count(json, "length", capture->location.length);
    put_headers_json(json, details);
    json_bytes(json, "request", buf_bytes(&details->request));
    if (details->neighbours.previous.time_us != INT64_MIN) {
        json_timestamp(json, "previous", details->neighbours.previous.time_us);
        json_text(json, "previous_id",
                  stamp_format(archive_neighbour_stamp(&details->neighbours.previous), id));
    }
    if (details->neighbours.next.time_us != INT64_MIN) {
        json_timestamp(json, "next", details->neighbours.next.time_us);
        json_text(json, "next_id", stamp_format(archive_neighbour_stamp(&details->neighbours.next), id));
    }
    json_close(json);
}

static enum err answer_json(void *context, const struct capture *capture, struct err_detail *detail) {
    struct pages_asked *asked = context;
    struct details details;
    enum err err = details_init(&details);
    if (err == ERR_OK) {
        err = read_details(&details, asked->replay->archive, asked->reader, capture, detail);
    }
    if (err == ERR_OK) {
        struct buf text;
        struct json json;
        buf_init(&text, PAGES_JSON_SIZE_MAX);
        json_init(&json, &text);
        details_put_json(&json, &details);
        http_answer_json(asked->request, STATUS_OK, "no-cache", &text);
    }
    details_done(&details);
    return err;
}

void pages_capture_json(struct http_request *request) {
    pages_answer_asked(request, answer_json);
}
