/*
 * compare - two texts, with a zero byte between them, as two versions of a page: read line by line, compared,
 * and written into a page. The script must lead from the one to the other; what is written must have no
 * markup.
 */
#include "fuzz.h"
#include "parse/parse_lines.h"
#include "replay/pages/pages_diff.h"
#include "replay/site/sheet.h"

enum { OUT_SIZE_MAX = 16 << 20 };

/* All of a text is in the script, in order, and nothing else. */
static void check_side(const struct pages_diff *diff, struct bytes text, enum pages_diff_kind other) {
    struct bytes rest = text;
    for (size_t i = 0; i < diff->lines_count; i++) {
        struct bytes line;
        if (diff->lines[i].kind == other) {
            continue;
        }
        ASSERT(bytes_split(&rest, '\n', &line));
        line.size -= line.size > 0 && line.data[line.size - 1] == '\r' ? 1 : 0;
        ASSERT(bytes_equal(line, diff->lines[i].text));
    }
    ASSERT(diff->is_cut || rest.size == 0);
}

static void compare(struct bytes a, struct bytes b) {
    struct pages_diff diff;
    struct buf out;
    ASSERT(pages_diff_init(&diff, a, b) == ERR_OK);
    check_side(&diff, a, PAGES_DIFF_ADDED);
    check_side(&diff, b, PAGES_DIFF_REMOVED);
    buf_init(&out, OUT_SIZE_MAX);
    for (size_t i = 0; i < diff.lines_count; i++) {
        sheet_escape(&out, diff.lines[i].text);
    }
    ASSERT(bytes_find_byte(buf_bytes(&out), '<') == out.size &&
           bytes_find_byte(buf_bytes(&out), '"') == out.size);
    buf_done(&out);
    pages_diff_done(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size < PARSE_LINES_SIZE_MAX ? size : PARSE_LINES_SIZE_MAX);
    size_t middle = bytes_find_byte(input, 0);
    struct bytes a = bytes_slice(input, 0, middle);
    struct bytes b = bytes_skip(input, middle < input.size ? middle + 1 : middle);
    struct buf a_lines;
    struct buf b_lines;
    compare(a, b);
    buf_init(&a_lines, OUT_SIZE_MAX);
    buf_init(&b_lines, OUT_SIZE_MAX);
    ASSERT(parse_lines_put(&a_lines, a) == ERR_OK && parse_lines_put(&b_lines, b) == ERR_OK);
    compare(buf_bytes(&a_lines), buf_bytes(&b_lines));
    buf_done(&a_lines);
    buf_done(&b_lines);
    return 0;
}
