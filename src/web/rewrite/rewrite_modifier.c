#include "web/rewrite/rewrite_modifier.h"

static const char *const modifier_names[REWRITE_MODIFIERS_COUNT] = {
    [REWRITE_PAGE] = "mp_",   [REWRITE_RAW] = "id_",     [REWRITE_IFRAME] = "if_",  [REWRITE_FRAME] = "fr_",
    [REWRITE_IMAGE] = "im_",  [REWRITE_SCRIPT] = "js_",  [REWRITE_MODULE] = "esm_", [REWRITE_STYLE] = "cs_",
    [REWRITE_OBJECT] = "oe_", [REWRITE_WORKER] = "wkr_",
};

const char *rewrite_modifier_name(enum rewrite_modifier modifier) {
    return modifier_names[modifier];
}

enum rewrite_modifier rewrite_modifier_of(struct bytes name) {
    for (size_t i = 0; i < REWRITE_MODIFIERS_COUNT; i++) {
        if (bytes_equal(name, bytes_of_string(modifier_names[i]))) {
            return (enum rewrite_modifier)i;
        }
    }
    return REWRITE_PAGE;
}
