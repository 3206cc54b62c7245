/* cdxj - arbitrary bytes as a line of an index: what parses can be written and gives the same again. */
#include "warc/cdxj.h"
#include "base/assert.h"
#include "fuzz.h"

enum { LINE_SIZE_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cdxj first = {0};
    struct cdxj second = {0};
    struct err_detail detail = {0};
    struct buf line;
    buf_init(&line, LINE_SIZE_MAX);
    if (cdxj_parse(&first, bytes_of(data, size), &detail) != ERR_OK) {
        ASSERT(detail.offset <= size + 1 && detail.text[0] != '\0' && first.json == NULL);
        return 0;
    }
    enum err err = cdxj_put(&line, &first);
    ASSERT(err == ERR_OK);
    err = cdxj_parse(&second, buf_bytes(&line), &detail);
    ASSERT(err == ERR_OK);
    ASSERT(bytes_equal(first.key, second.key) && first.time_us == second.time_us);
    ASSERT(bytes_equal(first.url, second.url) && bytes_equal(first.digest, second.digest));
    ASSERT(bytes_equal(first.mime, second.mime) && bytes_equal(first.filename, second.filename));
    ASSERT(first.status == second.status && first.has_place == second.has_place);
    ASSERT(!first.has_place || (first.length == second.length && first.offset == second.offset));
    cdxj_done(&first);
    cdxj_done(&second);
    buf_done(&line);
    return 0;
}
