/*
 * library - what the files of libmnemon share. What applications see is include/mnemon.h.
 *
 * Thin on purpose: everything is done by store/instance/instance.h; here plain types become ours and back.
 */
#ifndef MNEMON_LIB_LIBRARY_H
#define MNEMON_LIB_LIBRARY_H

#include "store/instance/instance.h"
#include <mnemon.h>

struct mnemon {
    struct instance *instance;
};

struct mnemon_session {
    struct instance *instance;
    struct instance_session *session;
};

/* Fill *error, unless it is NULL, and return err as a status. */
int library_fail(struct mnemon_error *error, enum err err, const struct err_detail *detail);

#endif
