/*
 * group_files - what a data directory keeps of its groups (docs/formats/group.md):
 *
 *      DIR/groups/NAME.group    what people want: text of "mnemon group", read by the node every second
 *      DIR/groups/NAME.state    what the node knows: the founder, the rules, the last topology that held
 *
 * Two files, because each has one writer. Each is written beside its place, synced and renamed: whole or not
 * at all. A damaged NAME.group is named and never replaced; a damaged NAME.state counts as none: the node
 * then asks to be let in again.
 */
#ifndef MNEMON_NODE_GROUP_GROUP_FILES_H
#define MNEMON_NODE_GROUP_GROUP_FILES_H

#include "base/buf.h"
#include "base/peer.h"
#include "protocol/group/group.h"
#include "protocol/ring/invitation.h"

enum {
    GROUP_FILES_NAME_SIZE_MAX = CHARTER_NAME_SIZE_MAX + 1, /* with its zero byte */
    GROUP_FILES_KEYS_MAX = 64,
    GROUP_FILES_DOCUMENT_SIZE_MAX = TOPOLOGY_SIZE_MAX + 256,
    GROUP_FILES_STATE_SIZE_MAX = 64 + GROUP_FILES_DOCUMENT_SIZE_MAX,
};

enum group_admission { GROUP_ADMISSION_OPEN, GROUP_ADMISSION_APPROVE, GROUP_ADMISSION_INVITE };

extern const char *const group_files_admissions[]; /* "open", "approve", "invite", NULL */
extern const char *const group_files_generators[]; /* "sparse", "tree", NULL: enum topology_kind */

/* What every member must know of a group to be its master one day. */
struct group_rules {
    uint8_t founder[PEER_KEY_SIZE]; /* zeros: not known yet */
    uint8_t admission;              /* enum group_admission */
    uint8_t generator;              /* enum topology_kind */
    uint8_t k;
};

struct group_keys_list {
    size_t count;
    uint8_t keys[GROUP_FILES_KEYS_MAX][PEER_KEY_SIZE];
};

/* NAME.group. Zeros behind what is used, so that two of them compare byte by byte. */
struct group_wish {
    char name[GROUP_FILES_NAME_SIZE_MAX];
    struct group_rules rules; /* unknown to a node that joins */
    struct address contact;   /* port 0: nobody; this node is the founder */
    char token[INVITATION_TOKEN_SIZE];
    struct group_keys_list approved;
    struct group_keys_list refused; /* nodes, and tokens */
    size_t neighbours_count;        /* instead of a topology that is computed */
    struct peer neighbours[GROUP_NEIGHBOURS_MAX];
    bool is_leaving;
};

/* NAME.state. */
struct group_state_file {
    struct group_rules rules;
    size_t document_size; /* 0: none */
    uint8_t document[GROUP_FILES_DOCUMENT_SIZE_MAX];
};

/* Letters, digits, '.', '_' and '-', as the name of a ring. */
static inline bool group_files_name_is_valid(struct bytes name) {
    return charter_name_is_valid(name);
}

/* May it be an invitation: has it the letters and the size? */
bool group_files_token_is_possible(struct bytes token);

/* The first bytes of the SHA-256 of the founder's key and the name. */
void group_files_id(struct bytes name, const uint8_t founder[PEER_KEY_SIZE], struct sha256 *sha256,
                    uint8_t out[GROUP_ID_SIZE]);

/* The names of all groups, in order, at most names_max; how many. */
size_t group_files_list(const char *directory, char (*out)[GROUP_FILES_NAME_SIZE_MAX], size_t names_max);

/* The contents of NAME.group. ERR_INVALID, ERR_LIMIT: the line and what would have been right. */
enum err group_files_parse_wish(struct bytes text, const char *name, struct group_wish *ret_wish,
                                struct err_detail *detail) MUST_CHECK;
void group_files_put_wish(const struct group_wish *wish, struct buf *out);

/* The contents of NAME.state. False: it is damaged. */
bool group_files_parse_state(struct bytes bytes, struct group_state_file *ret_state);
struct bytes group_files_put_state(const struct group_state_file *state,
                                   uint8_t memory[GROUP_FILES_STATE_SIZE_MAX]);

/* ERR_NOT_FOUND: no such group; ERR_INVALID: the line and what would have been right. */
enum err group_files_read_wish(const char *directory, const char *name, struct group_wish *ret_wish,
                               struct err_detail *detail) MUST_CHECK;
/* The directories are made. */
enum err group_files_write_wish(const char *directory, const struct group_wish *wish,
                                struct err_detail *detail) MUST_CHECK;

/* False: there is none that is whole. */
bool group_files_read_state(const char *directory, const char *name, struct group_state_file *ret_state);
enum err group_files_write_state(const char *directory, const char *name,
                                 const struct group_state_file *state, struct err_detail *detail) MUST_CHECK;

/* Both. */
enum err group_files_remove(const char *directory, const char *name, struct err_detail *detail) MUST_CHECK;

/* ERR_LIMIT: there are too many; ERR_EXISTS. */
enum err group_keys_list_add(struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]) MUST_CHECK;
void group_keys_list_remove(struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]);
bool group_keys_list_has(const struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]);

#endif
