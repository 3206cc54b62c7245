#include "protocol/ring/import_rule.h"

static const char *const import_rule_names[IMPORT_RULES_COUNT] = {
    [IMPORT_RULE_NONE] = "members, and what nobody has signed",
    [IMPORT_RULE_NOBODY] = "nobody",
    [IMPORT_RULE_STEWARDS] = "stewards",
    [IMPORT_RULE_MEMBERS] = "members",
};

const char *import_rule_name(enum import_rule rule) {
    ASSERT(rule < IMPORT_RULES_COUNT);
    return import_rule_names[rule];
}

bool import_rule_parse(struct bytes name, enum import_rule *ret_rule) {
    for (unsigned i = IMPORT_RULE_NOBODY; i < IMPORT_RULES_COUNT; i++) {
        if (bytes_equal(name, bytes_of_string(import_rule_names[i]))) {
            *ret_rule = (enum import_rule)i;
            return true;
        }
    }
    return false;
}

const char *import_rule_text(enum import_rule rule) {
    static const char *const texts[IMPORT_RULES_COUNT] = {
        [IMPORT_RULE_NOBODY] = "import nobody\n",
        [IMPORT_RULE_STEWARDS] = "import stewards\n",
        [IMPORT_RULE_MEMBERS] = "import members\n",
    };
    ASSERT(rule < IMPORT_RULES_COUNT && texts[rule] != NULL);
    return texts[rule];
}

enum err import_rule_read(struct bytes text, enum import_rule *ret_rule, struct err_detail *detail) {
    for (unsigned i = IMPORT_RULE_NOBODY; i < IMPORT_RULES_COUNT; i++) {
        if (bytes_equal(text, bytes_of_string(import_rule_text((enum import_rule)i)))) {
            *ret_rule = (enum import_rule)i;
            return ERR_OK;
        }
    }
    return err_set(detail, ERR_UNSUPPORTED, "this version does not know who may import by it");
}
