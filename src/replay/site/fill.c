#include "replay/site/fill.h"

static void fill_digits(struct sheet *sheet, uint64_t number) {
    buf_put_u64(&sheet->out, number);
}

static void fill_status(struct sheet *sheet, uint64_t status) {
    sheet_status(sheet, (uint16_t)status);
}

static const struct {
    const char *name;
    void (*put_text)(struct sheet *sheet, struct bytes text);
    void (*put_string)(struct sheet *sheet, const char *string);
    void (*put_number)(struct sheet *sheet, uint64_t number);
    void (*put_time)(struct sheet *sheet, int64_t time_us);
} blanks[] = {
    {.name = "text", .put_text = sheet_text},         {.name = "url", .put_text = sheet_url},
    {.name = "argument", .put_text = sheet_argument}, {.name = "string", .put_string = sheet_string},
    {.name = "html", .put_string = sheet_html},       {.name = "number", .put_number = fill_digits},
    {.name = "count", .put_number = sheet_count},     {.name = "size", .put_number = sheet_size},
    {.name = "status", .put_number = fill_status},    {.name = "time", .put_time = sheet_time},
    {.name = "date", .put_time = sheet_date},         {.name = "replay"},
};

static void fill_blank(struct sheet *sheet, struct bytes name, const struct fill *value) {
    size_t i = 0;
    while (!bytes_equal(name, bytes_of_string(blanks[i].name))) {
        i++;
        ASSERT(i < sizeof blanks / sizeof *blanks);
    }
    if (blanks[i].put_text != NULL) {
        blanks[i].put_text(sheet, value->text);
    } else if (blanks[i].put_string != NULL) {
        blanks[i].put_string(sheet, value->string);
    } else if (blanks[i].put_number != NULL) {
        blanks[i].put_number(sheet, value->number);
    } else if (blanks[i].put_time != NULL) {
        blanks[i].put_time(sheet, value->time_us);
    } else {
        sheet_replay_url(sheet, (struct stamp){value->time_us, value->id}, "", value->text);
    }
}

void fill_put(struct sheet *sheet, const char *html, const struct fill *values, size_t count) {
    struct bytes rest = bytes_of_string(html);
    for (size_t i = 0; i < count; i++) {
        size_t from = bytes_find_byte(rest, '{');
        size_t to = bytes_find_byte(rest, '}');
        ASSERT(from < to && to < rest.size);
        buf_put(&sheet->out, bytes_slice(rest, 0, from));
        fill_blank(sheet, bytes_slice(rest, from + 1, to), &values[i]);
        rest = bytes_skip(rest, to + 1);
    }
    ASSERT(bytes_find_byte(rest, '{') == rest.size);
    buf_put(&sheet->out, rest);
}
