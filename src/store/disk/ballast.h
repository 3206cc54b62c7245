/*
 * ballast - a file of some megabytes that is there to be given up: an index that must be opened and repaired
 * on a full disk gets its room.
 *
 * It is DIR/ballast, really allocated. It is made while there is plenty of room, so also the first opening
 * with plenty of room makes it again. Nothing depends on it: whoever needs the room may remove it by hand.
 * Whoever has the volume's lock calls these.
 */
#ifndef MNEMON_STORE_DISK_BALLAST_H
#define MNEMON_STORE_DISK_BALLAST_H

#include <stdbool.h>

/* Make it, unless it is there or room is scarce. That it could not be made is no error. */
void ballast_make(const char *directory);

/* Remove it. True if there was one: there is more room now. */
bool ballast_give_up(const char *directory);

#endif
