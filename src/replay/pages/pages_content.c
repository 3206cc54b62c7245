#include "replay/pages/pages_content.h"

#include "parse/parse_seat.h"
#include "web/type/mime_type.h"

bool pages_content_is_html(const struct archive_record *record) {
    return http_is_html(record->content_type);
}

bool pages_content_is_text(const struct archive_record *record) {
    struct mime_type type;
    (void)mime_type_extract(&type, record->content_type);
    return mime_type_begins(&type, "text/") || mime_type_is_xml(&type) || mime_type_is_script(&type) ||
           bytes_ends_with(mime_type_essence(&type), BYTES("json"));
}

struct bytes pages_content_head(const struct archive_record *record) {
    return record->is_http ? record->head : bytes_of(NULL, 0);
}

static enum err content_put(void *context, struct bytes piece) {
    return buf_put(context, piece);
}

enum err pages_content_parse(struct archive_reader *reader, const struct archive_record *record,
                             const struct parse_kind *kind, struct bytes params, struct buf *out,
                             bool *ret_is_cut, struct err_detail *detail) {
    struct parse_seat seat;
    struct parse_job job = {.kind = kind,
                            .params = params,
                            .document = record->body,
                            .out_size_max = out->size_max - out->size,
                            .put = content_put,
                            .context = out};
    parse_seat_init(&seat, archive_reader_parsers(reader), PARSE_LONG);
    enum err err = parse_run(&seat, &job);
    parse_seat_done(&seat);
    *ret_is_cut = (job.note_size > 0 && job.note[0] != 0) || err == ERR_LIMIT;
    if (parse_is_lost(err)) {
        return err_set(detail, ERR_BUSY, "the parser of this document ended; asking again may help");
    }
    return err == ERR_LIMIT ? ERR_OK : err;
}
