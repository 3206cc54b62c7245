/* rewrite_modifier - what a replay URL asks for, by the letters behind its digits. */
#ifndef MNEMON_WEB_REWRITE_REWRITE_MODIFIER_H
#define MNEMON_WEB_REWRITE_REWRITE_MODIFIER_H

#include "base/bytes.h"

/* What the part of a replay URL behind its digits asks for: conventions of the Wayback Machine and pywb. */
enum rewrite_modifier {
    REWRITE_PAGE,   /* "" and "mp_": a page in the replay frame */
    REWRITE_RAW,    /* "id_" */
    REWRITE_IFRAME, /* "if_" */
    REWRITE_FRAME,  /* "fr_" */
    REWRITE_IMAGE,  /* "im_" */
    REWRITE_SCRIPT, /* "js_" */
    REWRITE_MODULE, /* "esm_": a script that is a module; only our own rewriting writes it */
    REWRITE_STYLE,  /* "cs_" */
    REWRITE_OBJECT, /* "oe_" */
    REWRITE_WORKER, /* "wkr_" */
};
enum { REWRITE_MODIFIERS_COUNT = REWRITE_WORKER + 1 };

/* "mp_", "id_" … */
const char *rewrite_modifier_name(enum rewrite_modifier modifier);

/* The modifier that the text behind the digits names, "" included; unknown ones are REWRITE_PAGE. */
enum rewrite_modifier rewrite_modifier_of(struct bytes name);

#endif
