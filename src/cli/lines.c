#include "cli/lines.h"

void lines_init(struct lines *lines, FILE *file, size_t size_max) {
    lines->file = file;
    buf_init(&lines->line, size_max);
}

void lines_done(struct lines *lines) {
    buf_done(&lines->line);
}

bool lines_next(struct lines *lines, struct bytes *ret_line) {
    int byte;
    do {
        buf_clear(&lines->line);
        while ((byte = getc_unlocked(lines->file)) != EOF && byte != '\n') {
            buf_put_byte(&lines->line, (uint8_t)byte); /* past size_max this does nothing */
        }
        if (lines->line.size > 0 && lines->line.data[lines->line.size - 1] == '\r') {
            buf_truncate(&lines->line, lines->line.size - 1);
        }
        if (lines->line.size > 0) {
            *ret_line = buf_bytes(&lines->line);
            return true;
        }
    } while (byte != EOF);
    return false;
}
