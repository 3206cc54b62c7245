/*
 * uts46_newer - the characters of Unicode 15.0 to 17.0, which Debian 12's libunistring does not know yet.
 *
 * Made from the properties General_Category, NFKC_Casefold and Default_Ignorable_Code_Point of Unicode 17, by
 * the rules of uts46.h; what is disallowed is left out. A libunistring that knows them agrees, so the table
 * only fills the gap.
 */
#ifndef MNEMON_WEB_URL_UTS46_NEWER_H
#define MNEMON_WEB_URL_UTS46_NEWER_H

#include <stdbool.h>
#include <stdint.h>

/* Is it valid as it is? And is it a combining mark then? */
bool uts46_newer_is_valid(uint32_t code_point, bool *ret_is_mark);

/* What it becomes; false if it is not among those that become another. */
bool uts46_newer_map(uint32_t code_point, uint32_t *ret_mapped);

#endif
