#include "sim/report/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

void report_init(struct report *report, const char *title, const char *y_label) {
    *report = (struct report){.title = title, .y_label = y_label};
    digest_init(&report->digest);
}

void report_done(struct report *report) {
    free(report->cells);
    report->cells = NULL;
    report->cells_count = 0;
    report->cells_max = 0;
}

void report_column(struct report *report, const char *name, unsigned decimals, enum report_role role) {
    ASSERT(report->cells_count == 0 && report->columns_count < REPORT_COLUMNS_MAX);
    report->columns[report->columns_count++] = (struct report_column){name, decimals, role};
}

void report_columns(struct report *report, const struct report_column *columns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        report_column(report, columns[i].name, columns[i].decimals, columns[i].role);
    }
}

static enum err report_reserve(struct report *report) {
    if (report->cells_count < report->cells_max) {
        return ERR_OK;
    }
    if (report->cells_max == REPORT_CELLS_MAX) {
        return ERR_LIMIT;
    }
    uint32_t cells_max = report->cells_max == 0 ? 64 : 2 * report->cells_max;
    struct report_cell *cells = realloc(report->cells, cells_max * sizeof *cells);
    if (cells == NULL) {
        return ERR_MEMORY;
    }
    report->cells = cells;
    report->cells_max = cells_max;
    return ERR_OK;
}

static void add_cell(struct report *report, struct report_cell cell, bool is_text) {
    const struct report_column *column = &report->columns[report->cells_count % report->columns_count];
    ASSERT(cell.is_missing || (column->role == REPORT_TEXT) == is_text);
    if (report->err == ERR_OK) {
        report->err = report_reserve(report);
    }
    if (report->err == ERR_OK) {
        report->cells[report->cells_count++] = cell;
    }
}

void report_number(struct report *report, double number) {
    add_cell(report, (struct report_cell){.number = number, .is_missing = isnan(number)}, false);
}

void report_numbers(struct report *report, const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        report_number(report, numbers[i]);
    }
}

void report_text(struct report *report, const char *text) {
    struct report_cell cell = {0};
    snprintf(cell.text, sizeof cell.text, "%s", text);
    add_cell(report, cell, true);
}

const struct report_cell *report_at(const struct report *report, uint32_t row, uint32_t column) {
    ASSERT(row < report_rows_count(report) && column < report->columns_count);
    return &report->cells[row * report->columns_count + column];
}

static const char *format_cell(const struct report *report, uint32_t row, uint32_t column,
                               const char *missing, char out[REPORT_TEXT_SIZE_MAX]) {
    const struct report_cell *cell = report_at(report, row, column);
    if (cell->is_missing) {
        return missing;
    }
    if (report->columns[column].role == REPORT_TEXT) {
        return cell->text;
    }
    snprintf(out, REPORT_TEXT_SIZE_MAX, "%.*f", (int)report->columns[column].decimals, cell->number);
    return out;
}

static int column_width(const struct report *report, uint32_t column) {
    size_t width = strlen(report->columns[column].name);
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        char memory[REPORT_TEXT_SIZE_MAX];
        size_t size = strlen(format_cell(report, row, column, "-", memory));
        width = size > width ? size : width;
    }
    return (int)width;
}

/* Texts to the left, numbers to the right, two spaces between; no space at the end of a line. */
static void put_aligned(struct buf *out, const struct report *report, uint32_t column, int width,
                        const char *text) {
    bool is_last = column + 1 == report->columns_count;
    if (report->columns[column].role == REPORT_TEXT) {
        buf_put_format(out, "%-*s", is_last ? 0 : width, text);
    } else {
        buf_put_format(out, "%*s", width, text);
    }
    buf_put_string(out, is_last ? "\n" : "  ");
}

enum err report_write_text(const struct report *report, struct buf *out) {
    int widths[REPORT_COLUMNS_MAX];
    for (uint32_t column = 0; column < report->columns_count; column++) {
        widths[column] = column_width(report, column);
        put_aligned(out, report, column, widths[column], report->columns[column].name);
    }
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        for (uint32_t column = 0; column < report->columns_count; column++) {
            char memory[REPORT_TEXT_SIZE_MAX];
            put_aligned(out, report, column, widths[column], format_cell(report, row, column, "-", memory));
        }
    }
    char digest[DIGEST_TEXT_SIZE_MAX];
    buf_put_format(out, "digest: %s\n", digest_format(&report->digest, digest));
    return out->err;
}

static void put_csv(struct buf *out, const char *text, bool is_last) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        buf_put_string(out, text);
    } else {
        buf_put_byte(out, '"');
        for (; *text != '\0'; text++) {
            buf_put_string(out, *text == '"' ? "\"" : "");
            buf_put_byte(out, (uint8_t)*text);
        }
        buf_put_byte(out, '"');
    }
    buf_put_string(out, is_last ? "\r\n" : ",");
}

enum err report_write_csv(const struct report *report, struct buf *out) {
    uint32_t columns_count = report->columns_count;
    for (uint32_t column = 0; column < columns_count; column++) {
        put_csv(out, report->columns[column].name, column + 1 == columns_count);
    }
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        for (uint32_t column = 0; column < columns_count; column++) {
            char memory[REPORT_TEXT_SIZE_MAX];
            const char *text = format_cell(report, row, column, "", memory);
            put_csv(out, text, column + 1 == columns_count);
        }
    }
    return out->err;
}

enum err report_write_json(const struct report *report, struct buf *out) {
    char digest[DIGEST_TEXT_SIZE_MAX];
    struct json json;
    json_begin(&json, out);
    json_text(&json, "title", report->title);
    json_text(&json, "digest", digest_format(&report->digest, digest));
    json_open_list(&json, "rows");
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        json_open(&json, NULL);
        for (uint32_t column = 0; column < report->columns_count; column++) {
            char memory[REPORT_TEXT_SIZE_MAX];
            const char *text = format_cell(report, row, column, "null", memory);
            bool is_quoted =
                report->columns[column].role == REPORT_TEXT && !report_at(report, row, column)->is_missing;
            (is_quoted ? json_bytes : json_raw)(&json, report->columns[column].name, bytes_of_string(text));
        }
        json_close(&json);
    }
    json_end(&json);
    return buf_put_byte(out, '\n');
}
