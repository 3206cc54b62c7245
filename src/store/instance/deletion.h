/*
 * deletion - which captures are deleted: a URL, or all that begin so, with the times of their captures.
 *
 *      http://example.org/a         this URL, whatever the method of the request was (warc/request_key.h)
 *      http://example.org/a*        all URLs that begin so
 *      http://example.org/a/ and *  the page itself and all below it
 *      *.example.org                the host and its subdomains
 *      *                            everything
 *
 * A set of them answers for one capture after the other, in a time that hardly depends on how many there are:
 * the keys that a SURT begins with form a chain, and each key knows the next shorter one of it. A set that is
 * sealed is only read, by any thread.
 */
#ifndef MNEMON_STORE_INSTANCE_DELETION_H
#define MNEMON_STORE_INSTANCE_DELETION_H

#include "base/buf.h"
#include "store/document/document.h"

enum { DELETION_PARTS_MAX = 3 /* of one URL as people write it */ };

struct deletion {
    struct bytes key; /* a SURT, or how SURTs begin; borrowed */
    bool is_exact;
    int64_t from_us; /* of captures: both inclusive */
    int64_t to_us;
};

/*
 * What a text of the table means, for all times. The keys are appended to memory, which must not be appended
 * to meanwhile. ERR_INVALID if it is no URL.
 */
enum err deletion_read_url(struct bytes text, struct buf *memory, struct deletion out[DELETION_PARTS_MAX],
                           size_t *ret_count, struct err_detail *detail) MUST_CHECK;

struct deletion_set;

struct deletion_set *deletion_set_new(void);      /* NULL: out of memory */
void deletion_set_free(struct deletion_set *set); /* may be NULL */

enum { DELETION_SET_MAX = 1 << 20 };

/* The key is copied. ERR_MEMORY, ERR_LIMIT. Then, once all are there, seal it. */
enum err deletion_set_add(struct deletion_set *set, const struct deletion *deletion) MUST_CHECK;
void deletion_set_seal(struct deletion_set *set);

size_t deletion_set_count(const struct deletion_set *set);

/* Before it is sealed, in the order of their coming. */
const struct deletion *deletion_set_at(const struct deletion_set *set, size_t index);

/* Behind this time nothing is deleted; INT64_MIN if the set is empty. */
int64_t deletion_set_end_us(const struct deletion_set *set);

/* url: of the capture, with method and body if it is no GET. */
bool deletion_set_covers(const struct deletion_set *set, struct bytes surt, struct bytes url,
                         int64_t time_us);

/* The same for one. */
bool deletion_covers(const struct deletion *deletion, struct bytes surt, struct bytes url, int64_t time_us);

#endif
