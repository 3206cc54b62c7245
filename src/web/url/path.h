/*
 * path - the path of a URL that is being written: segments are appended to the href one by one, and ".." cuts
 * the last one off again. https://url.spec.whatwg.org/#path-state
 *
 * The path is what stands in the href from url->path.from on.
 */
#ifndef MNEMON_WEB_URL_PATH_H
#define MNEMON_WEB_URL_PATH_H

#include "web/url/url.h"

/*
 * Append the segments of the text up to '?', '#' or its end, a '/' before each, and return how much of the
 * text that was. The text starts behind the first slash; even an empty text is one segment, an empty one.
 */
size_t path_put_segments(struct url *url, struct bytes text);

/* Drop the last segment; a drive letter at the root of a file URL stays. */
void path_shorten(struct url *url);

/* The path is whole: guard it against being read as a host, and note its end. */
void path_end(struct url *url);

/* Whether a path of a file URL has a Windows drive letter as its first segment: "C:", "c|". */
bool path_starts_with_drive_letter(struct bytes text);

#endif
