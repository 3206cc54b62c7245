/* admin_host - which names a node may be called by. */
#ifndef MNEMON_REPLAY_ADMIN_ADMIN_HOST_H
#define MNEMON_REPLAY_ADMIN_ADMIN_HOST_H

#include "base/config.h"

/*
 * May a node that only this machine can reach be called so, by the value of a Host header? localhost and what
 * ends in .localhost, 127.0.0.0/8, [::1], with any port, and what is listed. None at all is allowed: browsers
 * always send one.
 */
bool admin_host_is_own(struct bytes host, const struct config_list *others);

#endif
