#include "replay/wayback/wayback_safety.h"

#include <stdio.h>

#include "base/hex.h"
#include "replay/site/origin.h"
#include "warc/warc_id.h"
#include "web/type/mime_type.h"

enum { POLICY_SIZE_MAX = 2048 };

/* Redirects are those of this server, which lead to captures; wherever one led, the other policy holds. */
static const char CONNECTIONS[] = "(response-origin);redirects=allow;webrtc=block";

/* ---- types ---- */

enum wayback_danger wayback_danger_of(const struct mime_type *type) {
    static const char *const inert[] = {"image/",
                                        "audio/",
                                        "video/",
                                        "font/",
                                        "application/font",
                                        "application/x-font",
                                        "application/vnd.ms-fontobject"};
    if (bytes_find(mime_type_essence(type), BYTES("xml")) < strlen(type->essence)) { /* SVG runs scripts */
        return WAYBACK_ACTIVE;
    }
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) {
        if (mime_type_begins(type, inert[i])) {
            return WAYBACK_INERT;
        }
    }
    return mime_type_is(type, "application/pdf") ? WAYBACK_PDF : WAYBACK_ACTIVE;
}

/* ---- the secret ---- */

void wayback_make_key(struct replay *replay) {
    uint8_t bytes[(sizeof replay->frame_key - 1) / 2];
    warc_random_system.fill(warc_random_system.context, bytes, sizeof bytes);
    hex_encode(bytes_of(bytes, sizeof bytes), replay->frame_key);
}

bool wayback_is_key(const struct replay *replay, struct bytes key) {
    size_t size = sizeof replay->frame_key - 1;
    unsigned difference = key.size != size;
    for (size_t i = 0; i < size && i < key.size; i++) { /* how long it takes tells nothing */
        difference |= key.data[i] ^ (uint8_t)replay->frame_key[i];
    }
    return difference == 0;
}

/* ---- who asks ---- */

bool wayback_is_top_level(const struct http_request *request) {
    struct bytes destination = http_request_header(request, "Sec-Fetch-Dest");
    if (destination.size > 0) {
        return bytes_equal(destination, BYTES("document"));
    }
    struct bytes accept = http_request_header(request, "Accept");
    return http_request_header(request, "Upgrade-Insecure-Requests").size > 0 &&
           bytes_find(accept, BYTES("text/html")) < accept.size;
}

bool wayback_is_own_frame(const struct http_request *request) {
    struct bytes destination = http_request_header(request, "Sec-Fetch-Dest");
    return (bytes_equal(destination, BYTES("iframe")) || bytes_equal(destination, BYTES("frame"))) &&
           bytes_equal(http_request_header(request, "Sec-Fetch-Site"), BYTES("same-origin"));
}

/* ---- headers ---- */

/*
 * frame-ancestors is left out: the frames around a replayed frame have opaque origins, which no source
 * matches. A page that is alone could leave for the live web by a script, so none runs in it.
 */
static void add_active_policy(struct http_request *request, bool is_mute) {
    char policy[POLICY_SIZE_MAX];
    struct bytes host = origin_host(request);
    snprintf(policy, sizeof policy,
             "sandbox%s allow-forms allow-modals allow-downloads allow-pointer-lock allow-presentation; "
             "default-src "
             "'unsafe-inline' 'unsafe-eval' data: blob: %.*s/web/ %.*s/static/;%s frame-src %.*s/web/; "
             "form-action "
             "%.*s/web/; base-uri %.*s/web/",
             is_mute ? "" : " allow-scripts", BYTES_ARG(host), BYTES_ARG(host),
             is_mute ? " script-src 'none';" : "", BYTES_ARG(host), BYTES_ARG(host), BYTES_ARG(host));
    http_add_header(request, "Content-Security-Policy", policy);
}

/*
 * Types that browsers never take for a page; if one did, the sandbox would hold it. PDF goes without, because
 * Chromium's viewer does not run in one. Media documents load themselves, so they may load from here.
 */
static void add_inert_policy(struct http_request *request, bool has_sandbox) {
    char policy[POLICY_SIZE_MAX];
    snprintf(policy, sizeof policy,
             "%sdefault-src 'none'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'; "
             "object-src 'self'; form-action 'none'; base-uri 'none'",
             has_sandbox ? "sandbox; " : "");
    http_add_header(request, "Content-Security-Policy", policy);
}

void wayback_add_safety(struct http_request *request, enum wayback_danger danger, bool is_alone) {
    if (danger == WAYBACK_INERT || danger == WAYBACK_PDF) {
        add_inert_policy(request, danger == WAYBACK_INERT);
    } else {
        add_active_policy(request, is_alone || danger == WAYBACK_MUTE);
    }
    http_add_header(request, "X-Content-Type-Options", "nosniff"); /* wayback_type.h guesses in their place */
    http_add_header(request, "Connection-Allowlist", CONNECTIONS);
    http_add_header(request, "Referrer-Policy", "no-referrer");
    if (is_alone) {
        http_add_header(request, "Cross-Origin-Opener-Policy", "same-origin");
    }
}

/* Browsers that do not say where they come from are never given the secret: their pages must do without it.
 */
void wayback_add_sharing(struct http_request *request, bool is_ours) {
    bool is_telling = http_request_header(request, "Sec-Fetch-Site").size > 0;
    if (!is_ours && is_telling) {
        http_add_header(request, "Cross-Origin-Resource-Policy", "same-origin");
    } else if (is_ours && bytes_equal(http_request_header(request, "Origin"), BYTES("null"))) {
        http_add_header(request, "Access-Control-Allow-Origin", "null");
        http_add_header(request, "Access-Control-Expose-Headers", "*");
    }
}
