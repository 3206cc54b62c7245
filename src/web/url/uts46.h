/*
 * uts46 - what UTS #46 says about single code points and about the labels of a domain.
 *
 * The report publishes a mapping table; section 7 tells how it is derived from Unicode properties. We derive
 * it the same way at run time from libunistring's data; characters that libunistring 1.0 (Unicode 14) does
 * not know are in uts46_newer.h. Settings: nontransitional, UseSTD3ASCIIRules off, CheckHyphens off.
 * Specification: https://www.unicode.org/reports/tr46/ (revision 33 and later)
 */
#ifndef MNEMON_WEB_URL_UTS46_H
#define MNEMON_WEB_URL_UTS46_H

#include "base/bytes.h"

enum { UTS46_MAPPED_MAX = 24 }; /* U+FDFA maps to 18 code points, the longest of Unicode */

/* What a code point becomes: itself, others, nothing. False if it is disallowed. */
bool uts46_map(uint32_t code_point, uint32_t mapped[UTS46_MAPPED_MAX], size_t *ret_count);

/*
 * The validity criteria of section 4.1 for a label that is mapped and in NFC, without the one on
 * direction: NULL if it meets them, else what is wrong with it.
 */
const char *uts46_check_label(const uint32_t *label, size_t count);

/* Whether a domain has right-to-left characters, so that each of its labels must be uts46_bidi_is_allowed().
 */
bool uts46_is_bidi(const uint32_t *domain, size_t count);
bool uts46_bidi_is_allowed(const uint32_t *label, size_t count);

#endif
