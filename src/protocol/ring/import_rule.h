/*
 * import_rule - who may import captures into a ring: the text of a decree of kind 10. Pure.
 *
 *      import nobody | stewards | members
 *
 * The whole text is this one line. Without such a decree every member may, and what nobody has signed, as
 * mnemon 0.2 imported it, is taken, too. docs/formats/decree.md.
 */
#ifndef MNEMON_PROTOCOL_RING_IMPORT_RULE_H
#define MNEMON_PROTOCOL_RING_IMPORT_RULE_H

#include "base/bytes.h"
#include "base/err.h"

enum import_rule {
    IMPORT_RULE_NONE, /* none was made */
    IMPORT_RULE_NOBODY,
    IMPORT_RULE_STEWARDS, /* until a charter names stewards: the founder */
    IMPORT_RULE_MEMBERS,
    IMPORT_RULES_COUNT,
};

#define IMPORT_RULE_NAME "imports" /* of the decree: there is one */

/* "nobody", "stewards", "members"; IMPORT_RULE_NONE: "members, and what nobody has signed". */
const char *import_rule_name(enum import_rule rule);

/* By its name, as an operator writes it. False: there is none. */
bool import_rule_parse(struct bytes name, enum import_rule *ret_rule);

/* The text of the decree; not of IMPORT_RULE_NONE. */
const char *import_rule_text(enum import_rule rule);

/* ERR_UNSUPPORTED: of a later program, or none; it has no effect. */
enum err import_rule_read(struct bytes text, enum import_rule *ret_rule,
                          struct err_detail *detail) MUST_CHECK;

#endif
