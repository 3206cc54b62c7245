/*
 * wayback_safety - what keeps archived pages in: they may run, but not reach the archive's own pages, each
 * other's storage, cookies, or the live web.
 *
 * Whatever could run scripts is sent with a Content-Security-Policy that gives it an origin of its own
 * (sandbox without allow-same-origin) and lets it load from /web/ and /static/ of this host only. Top-level
 * pages and popups are out of its reach too. Leaving the frame for the live web is forbidden by the policy of
 * the page around it (wayback_frame.c), which is why a browser never gets a replayed page without that frame.
 *
 * That policy is asked when a request is about to be sent. Chromium has opened a connection by then, to where
 * a frame is told to go; and it never asks it about preconnect, dns-prefetch and WebRTC. So all answers also
 * carry a Connection-Allowlist (https://wicg.github.io/connection-allowlists), which is asked before
 * anything is connected, by Chromium since 152. For browsers that do not know it, web/replay.js takes away
 * preconnect, dns-prefetch and WebRTC, so scripts run only in documents that begin with it: not in SVG, not
 * in raw documents, not in data: and blob: frames.
 *
 * Other sites must not read the archive. But fonts, modules and fetch() of a replayed page need CORS, and
 * come with "Origin: null" and no Referer, like those of anybody's sandboxed frame (Chromium does so, and so
 * say the standards). So pages in our frame are given a secret as part of their URL and of all URLs in them,
 * "/web/~KEY/2026…/http://…": a request that shows it comes from a page of ours. It is handed out only to
 * frames of our own pages (Sec-Fetch-Site: same-origin), whose content has no way to tell it to the outside,
 * and changes when the program starts.
 */
#ifndef MNEMON_REPLAY_WAYBACK_WAYBACK_SAFETY_H
#define MNEMON_REPLAY_WAYBACK_WAYBACK_SAFETY_H

#include "replay/site/replay.h"
#include "web/type/mime_type.h"

enum wayback_danger {
    WAYBACK_INERT,  /* images, media, fonts: nothing in them runs as a script of the page */
    WAYBACK_PDF,    /* likewise, and Chromium shows it only without a sandbox */
    WAYBACK_ACTIVE, /* anything else: it may run scripts, or be made to */
    WAYBACK_MUTE,   /* likewise, but web/replay.js is not in it: no script of it runs if it is shown as a page
                     */
};

/* The danger of a type; none at all is active. */
enum wayback_danger wayback_danger_of(const struct mime_type *type);

/* Make the secret of this process. */
void wayback_make_key(struct replay *replay);

/* Is this the secret? */
bool wayback_is_key(const struct replay *replay, struct bytes key);

/* Is the response to be a page of its own in a browser: a navigation that is not in a frame? */
bool wayback_is_top_level(const struct http_request *request);

/* Does a page of our own have it loaded into a frame? */
bool wayback_is_own_frame(const struct http_request *request);

/* Who may read the answer, whatever it is. is_ours: the secret was shown. */
void wayback_add_sharing(struct http_request *request, bool is_ours);

/* What archived content may do. is_alone: it is not in our frame, so no script may run. */
void wayback_add_safety(struct http_request *request, enum wayback_danger danger, bool is_alone);

#endif
