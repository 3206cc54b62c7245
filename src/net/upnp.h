/*
 * upnp - the router's port mapping by UPnP (Internet Gateway Device): found by SSDP, described and ordered
 * about by XML over HTTP, without any secret.
 *
 *      upnp_find()   M-SEARCH to the router and to 239.255.255.250 ──> LOCATION ──> description ──> control
 * URL upnp_ask_…()  POST an action to the control URL
 *
 * Whatever is on this network may answer a search. So only datagrams from the router itself are read, and
 * every address that is contacted, be it of the description, its base or the control URL, must be the
 * router's own. Sizes, numbers of answers and times are bounded here, with libcurl; libminiupnpc gets whole
 * texts of at most UPNP_TEXT_SIZE_MAX bytes and only parses them (upnp_text.h). It opens no connection.
 *
 * Blocking; one thread for a struct upnp.
 */
#ifndef MNEMON_NET_UPNP_H
#define MNEMON_NET_UPNP_H

#include "base/address.h"
#include "base/err.h"
#include "net/pcp.h"
#include "net/upnp_text.h"

enum {
    UPNP_TAKEN = 718,          /* the port outside is another machine's */
    UPNP_PERMANENT_ONLY = 725, /* it knows no leases */
};

/* Who asks whom, and until when. */
struct upnp_talk {
    struct address gateway;           /* port 0 */
    struct address own;               /* port 0 */
    uint64_t until_us;                /* monotonic, of the system */
    bool (*is_ending)(void *context); /* asked several times a second; may be NULL */
    void *context;
};

/* ERR_NOT_FOUND: the router does not answer; ERR_INVALID: what it says cannot be used. */
enum err upnp_find(const struct upnp_talk *talk, struct upnp *ret_upnp, struct err_detail *detail) MUST_CHECK;

/* ERR_REFUSED: it says no, and *ret_code is its number, 0 if it has none. */
enum err upnp_ask_address(const struct upnp_talk *talk, const struct upnp_service *service,
                          struct address *ret_outer, struct err_detail *detail) MUST_CHECK;
/* At most lifetime_s of the wish; 0: until it is taken back. */
enum err upnp_ask_port(const struct upnp_talk *talk, const struct upnp_service *service,
                       const struct pcp_wish *wish, unsigned *ret_code, struct err_detail *detail) MUST_CHECK;
enum err upnp_take_back(const struct upnp_talk *talk, const struct upnp_service *service,
                        const struct pcp_wish *wish, struct err_detail *detail) MUST_CHECK;

#endif
