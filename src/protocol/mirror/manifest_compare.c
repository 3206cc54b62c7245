#include "protocol/mirror/manifest_compare.h"

enum { BEFORE, AFTER };

void manifest_compare_init(struct manifest_compare *compare, struct manifest_reader *before,
                           struct manifest_reader *after) {
    *compare = (struct manifest_compare){.readers = {before, after}, .is_wanted = {before != NULL, true}};
}

static bool has_same_content(const struct manifest_entry *a, const struct manifest_entry *b) {
    return a->kind == b->kind && a->size == b->size && memcmp(a->digest, b->digest, SHA256_SIZE) == 0 &&
           bytes_equal(a->target, b->target);
}

static enum manifest_change_kind kind_of(const struct manifest_entry *before,
                                         const struct manifest_entry *after) {
    if (!has_same_content(before, after)) {
        return MANIFEST_CHANGED;
    }
    return before->mode == after->mode && before->time_us == after->time_us ? MANIFEST_SAME
                                                                            : MANIFEST_TOUCHED;
}

/* Which of the two comes first: <0 the old one, 0 both, >0 the new one. */
static int order_of(const struct manifest_entry *before, const struct manifest_entry *after) {
    if (before->kind == MANIFEST_END || after->kind == MANIFEST_END) {
        return before->kind == after->kind ? 0 : before->kind == MANIFEST_END ? 1 : -1;
    }
    return path_rule_compare(before->path, after->path);
}

enum err manifest_compare_next(struct manifest_compare *compare, struct manifest_change *ret_change,
                               struct manifest_reader **ret_reader) {
    const struct manifest_entry *before = &compare->entries[BEFORE];
    const struct manifest_entry *after = &compare->entries[AFTER];
    for (unsigned i = BEFORE; i <= AFTER; i++) {
        if (!compare->is_wanted[i]) {
            continue;
        }
        enum err err = manifest_reader_next(compare->readers[i], &compare->entries[i]);
        if (err != ERR_OK) {
            if (ret_reader != NULL) {
                *ret_reader = compare->readers[i];
            }
            return err;
        }
    }
    int order = order_of(before, after);
    compare->is_wanted[BEFORE] = order <= 0 && before->kind != MANIFEST_END;
    compare->is_wanted[AFTER] = order >= 0 && after->kind != MANIFEST_END;
    if (before->kind == MANIFEST_END && after->kind == MANIFEST_END) {
        *ret_change = (struct manifest_change){.kind = MANIFEST_FINISHED};
    } else if (order < 0) {
        *ret_change = (struct manifest_change){MANIFEST_REMOVED, before, NULL};
    } else if (order > 0) {
        *ret_change = (struct manifest_change){MANIFEST_ADDED, NULL, after};
    } else {
        *ret_change = (struct manifest_change){kind_of(before, after), before, after};
    }
    return ERR_OK;
}
