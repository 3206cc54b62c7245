/* access - arbitrary bytes as a file of access rules: taken or refused as a whole, and any URL may be asked.
 */
#include "base/assert.h"
#include "fuzz.h"
#include "store/access/access_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err_detail detail = {0};
    struct access_rules *rules = access_rules_new();
    if (rules == NULL) {
        return 0;
    }
    enum err err = access_rules_add(rules, bytes_of(data, size), &detail);
    if (err == ERR_OK) {
        err = access_rules_seal(rules);
        ASSERT(err == ERR_OK);
        struct bytes text = bytes_of(data, size);
        struct bytes line;
        while (bytes_split(&text, '\n', &line)) {
            /* The SURT of each rule, and what is below it, at some times. */
            struct bytes key = bytes_slice(line, 0, bytes_find_byte(line, ' '));
            access_rules_check(rules, key, 0, INT64_C(1767225600000000));
            access_rules_check(rules, line, INT64_C(1577836800000000), INT64_C(1767225600000000));
        }
    } else {
        ASSERT(detail.text[0] != '\0' && detail.line > 0);
    }
    access_rules_free(rules);
    return 0;
}
