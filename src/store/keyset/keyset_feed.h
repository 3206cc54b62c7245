/*
 * keyset_feed - keeps a keyset equal to what the local volumes of an instance hold.
 *
 * It reads what became durable with store/volume/follow.h, volume by volume, from the positions that the set
 * has, and moves them in the same commit. So every capture (response, revisit or resource with a URL) is in
 * the set soon after it is durable, also after a crash; one whose document was removed leaves it. If the
 * positions no longer belong to the archive (it was reindexed with less in it, or a volume was taken out),
 * the set is made again from the start.
 *
 * A caller that stores a capture may also keyset_put() it at once: the feed expects that.
 *
 * One thread, that of the keyset. It ends before keyset and instance.
 */
#ifndef MNEMON_STORE_KEYSET_KEYSET_FEED_H
#define MNEMON_STORE_KEYSET_KEYSET_FEED_H

#include "store/instance/instance.h"
#include "store/keyset/keyset.h"

struct keyset_feed;

/* NULL: out of memory. */
struct keyset_feed *keyset_feed_new(struct keyset *keyset, struct instance *instance);
void keyset_feed_free(struct keyset_feed *feed);

/* Be told of every key that is new in the set, in keyset_feed_run(). The key is borrowed for the call. */
typedef void keyset_feed_added(void *context, const struct ringkey *key);
void keyset_feed_listen(struct keyset_feed *feed, keyset_feed_added *added, void *context);

/*
 * Take in at most so many records. *ret_has_more: call again soon. After an error (no space, say) calling
 * again later goes on where the set is.
 */
enum err keyset_feed_run(struct keyset_feed *feed, size_t records_max, bool *ret_has_more,
                         struct err_detail *detail) MUST_CHECK;

#endif
