/*
 * idna - international domain names to ASCII, as browsers do it.
 *
 * This is "domain to ASCII" of the URL standard with beStrict false: UTS #46 processing, nontransitional,
 * CheckBidi and CheckJoiners on; CheckHyphens, UseSTD3ASCIIRules and VerifyDnsLength off.
 *
 * Built on libunistring's character data, not on libidn2: idn2_lookup_u8() applies the rules of IDNA2008
 * after those of UTS #46 and cannot be told not to, so it refuses names that every browser opens (a heart
 * or an emoji, a leading hyphen, a label over 63 bytes). The mapping of UTS #46 needs no table of its
 * own: section 7 of the report derives it from Unicode properties, and so do we. Characters newer than the
 * installed libunistring are refused.
 */
#ifndef MNEMON_WEB_URL_IDNA_H
#define MNEMON_WEB_URL_IDNA_H

#include "base/buf.h"

/*
 * Longest domain, in bytes. The standard sets no limit, but punycode takes time by the square of a label's
 * length; DNS itself stops at 253.
 */
enum { IDNA_DOMAIN_SIZE_MAX = 4096 };

/*
 * Append the ASCII form of a domain that is well-formed UTF-8. ERR_INVALID, *ret_reason in English, if
 * there is none; what was appended by then stays. The result may still hold forbidden domain code points.
 */
MUST_CHECK enum err idna_put_ascii(struct buf *out, struct bytes domain, const char **ret_reason);

#endif
