#include "node/group/group_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/config.h"
#include "base/whole_file.h"
#include "net/identity.h"

enum {
    PATH_SIZE_MAX = 4096 + 128,
    MODE = 0600,
    WISH_SIZE_MAX = 64 << 10,
    LAYOUT = 1,
};

static const char magic[4] = {'m', 'n', 'g', 's'};
static const char wish_end[] = ".group";

const char *const group_files_admissions[] = {"open", "approve", "invite", NULL};
const char *const group_files_generators[] = {"sparse", "tree", NULL};

static const char *group_path_of(const char *directory, const char *name, const char *end,
                                 char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/groups/%s.%s", directory, name, end);
    return out;
}

static enum err make_directories(const char *directory, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/groups", directory);
    enum err err = whole_file_make_directory(directory, detail);
    return err == ERR_OK ? whole_file_make_directory(path, detail) : err;
}

void group_files_id(struct bytes name, const uint8_t founder[PEER_KEY_SIZE], struct sha256 *sha256,
                    uint8_t out[GROUP_ID_SIZE]) {
    uint8_t digest[SHA256_SIZE];
    sha256_start(sha256);
    sha256_update(sha256, BYTES("mnemon group 1"));
    sha256_update(sha256, bytes_of(founder, PEER_KEY_SIZE));
    sha256_update(sha256, name);
    sha256_finish(sha256, digest);
    memcpy(out, digest, GROUP_ID_SIZE);
}

/* ---- lists of keys ---- */

static size_t find_key(const struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]) {
    size_t at = 0;
    while (at < list->count && memcmp(list->keys[at], key, PEER_KEY_SIZE) != 0) {
        at++;
    }
    return at;
}

bool group_keys_list_has(const struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]) {
    return find_key(list, key) < list->count;
}

enum err group_keys_list_add(struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]) {
    if (group_keys_list_has(list, key)) {
        return ERR_EXISTS;
    }
    if (list->count == GROUP_FILES_KEYS_MAX) {
        return ERR_LIMIT;
    }
    memcpy(list->keys[list->count++], key, PEER_KEY_SIZE);
    return ERR_OK;
}

void group_keys_list_remove(struct group_keys_list *list, const uint8_t key[PEER_KEY_SIZE]) {
    size_t at = find_key(list, key);
    if (at < list->count) {
        list->count--;
        memmove(list->keys[at], list->keys[at + 1], (list->count - at) * PEER_KEY_SIZE);
        memset(list->keys[list->count], 0, PEER_KEY_SIZE);
    }
}

/* ---- all of them ---- */

static int group_compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

size_t group_files_list(const char *directory, char (*out)[GROUP_FILES_NAME_SIZE_MAX], size_t names_max) {
    char path[PATH_SIZE_MAX];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/groups", directory);
    DIR *entries = opendir(path);
    if (entries == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL && count < names_max;
         entry = readdir(entries)) {
        struct bytes file = bytes_of_string(entry->d_name);
        struct bytes end = bytes_of_string(wish_end);
        if (file.size <= end.size || !bytes_ends_with(file, end)) {
            continue;
        }
        struct bytes name = bytes_slice(file, 0, file.size - end.size);
        if (group_files_name_is_valid(name)) {
            memcpy(out[count], name.data, name.size);
            out[count++][name.size] = '\0';
        }
    }
    closedir(entries);
    qsort(out, count, sizeof *out, group_compare_names);
    return count;
}

/* ---- NAME.group ---- */

struct text {
    struct bytes founder;
    struct bytes contact;
    struct bytes token;
    uint32_t admission;
    uint32_t generator;
    uint64_t k;
    struct config_list approved;
    struct config_list refused;
    struct config_list neighbours;
    bool leaving;
};

static const struct config_key text_keys[] = {
    {.name = "founder", .type = CONFIG_TEXT, .offset = offsetof(struct text, founder)},
    {.name = "contact", .type = CONFIG_TEXT, .offset = offsetof(struct text, contact)},
    {.name = "token", .type = CONFIG_TEXT, .offset = offsetof(struct text, token)},
    {.name = "admission",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct text, admission),
     .fallback = "approve",
     .choices = group_files_admissions},
    {.name = "generator",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct text, generator),
     .fallback = "sparse",
     .choices = group_files_generators},
    {.name = "k",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct text, k),
     .fallback = "2",
     .min = 1,
     .max = TOPOLOGY_K_MAX},
    {.name = "approved", .type = CONFIG_LIST, .offset = offsetof(struct text, approved)},
    {.name = "refused", .type = CONFIG_LIST, .offset = offsetof(struct text, refused)},
    {.name = "neighbour", .type = CONFIG_LIST, .offset = offsetof(struct text, neighbours)},
    {.name = "leaving", .type = CONFIG_SWITCH, .offset = offsetof(struct text, leaving), .fallback = "no"},
    {0},
};

static enum err take_keys(const struct config_list *texts, struct group_keys_list *list,
                          struct err_detail *detail) {
    for (size_t i = 0; i < texts->count; i++) {
        uint8_t key[PEER_KEY_SIZE];
        if (!identity_key_parse(texts->items[i], key)) {
            return err_set(detail, ERR_INVALID, "\"%.*s\" is no key", BYTES_ARG(texts->items[i]));
        }
        if (group_keys_list_add(list, key) == ERR_LIMIT) {
            return err_set(detail, ERR_LIMIT, "more than %d keys", GROUP_FILES_KEYS_MAX);
        }
    }
    return ERR_OK;
}

/* "ADDRESS KEY" */
static enum err take_neighbours(const struct config_list *texts, struct group_wish *wish,
                                struct err_detail *detail) {
    if (texts->count > GROUP_NEIGHBOURS_MAX) {
        return err_set(detail, ERR_LIMIT, "more than %d neighbours", GROUP_NEIGHBOURS_MAX);
    }
    for (size_t i = 0; i < texts->count; i++) {
        struct bytes text = texts->items[i];
        size_t space = bytes_find_byte(text, ' ');
        struct peer *peer = &wish->neighbours[i];
        if (space >= text.size || !address_parse(bytes_slice(text, 0, space), 0, &peer->address) ||
            peer->address.port == 0 || !identity_key_parse(bytes_trim(bytes_skip(text, space)), peer->key)) {
            return err_set(detail, ERR_INVALID, "neighbour \"%.*s\": ADDRESS:PORT KEY", BYTES_ARG(text));
        }
    }
    wish->neighbours_count = texts->count;
    return ERR_OK;
}

/* What it really is, is judged when it is used; here, that it can be written as it was read. */
bool group_files_token_is_possible(struct bytes token) {
    for (size_t i = 0; i < token.size; i++) {
        uint8_t byte = token.data[i];
        if (!byte_is_alnum(byte) && byte != '-' && byte != '_') {
            return false;
        }
    }
    return token.size < INVITATION_TOKEN_SIZE;
}

static enum err take_text(const struct text *text, struct group_wish *wish, struct err_detail *detail) {
    wish->rules.admission = (uint8_t)text->admission;
    wish->rules.generator = (uint8_t)text->generator;
    wish->rules.k = (uint8_t)text->k;
    wish->is_leaving = text->leaving;
    if (text->founder.size > 0 && (!identity_key_parse(text->founder, wish->rules.founder) ||
                                   !peer_key_is_known(wish->rules.founder))) {
        return err_set(detail, ERR_INVALID, "founder: \"%.*s\" is no key", BYTES_ARG(text->founder));
    }
    if (text->contact.size > 0 &&
        (!address_parse(text->contact, 0, &wish->contact) || wish->contact.port == 0)) {
        return err_set(detail, ERR_INVALID, "contact: \"%.*s\" is no IP address with a port",
                       BYTES_ARG(text->contact));
    }
    if (!group_files_token_is_possible(text->token)) {
        return err_set(detail, ERR_INVALID, "token: this is none");
    }
    if (text->token.size > 0) {
        memcpy(wish->token, text->token.data, text->token.size);
    }
    if (text->founder.size == 0 && text->contact.size == 0 && text->neighbours.count == 0) {
        return err_set(detail, ERR_INVALID, "neither founder nor contact nor neighbour");
    }
    enum err err = take_keys(&text->approved, &wish->approved, detail);
    err = err == ERR_OK ? take_keys(&text->refused, &wish->refused, detail) : err;
    return err == ERR_OK ? take_neighbours(&text->neighbours, wish, detail) : err;
}

enum err group_files_parse_wish(struct bytes contents, const char *name, struct group_wish *ret_wish,
                                struct err_detail *detail) {
    struct arena arena;
    struct text text;
    arena_init(&arena, 4 * WISH_SIZE_MAX);
    struct group_wish *wish = calloc(1, sizeof *wish);
    enum err err = wish == NULL ? ERR_MEMORY : config_read(text_keys, contents, &arena, &text, detail);
    err = err == ERR_OK ? take_text(&text, wish, detail) : err;
    if (err == ERR_OK) {
        snprintf(wish->name, sizeof wish->name, "%s", name);
        memcpy(ret_wish, wish, sizeof *wish); /* all of it, so that two can be compared */
    }
    free(wish);
    arena_done(&arena);
    return err;
}

enum err group_files_read_wish(const char *directory, const char *name, struct group_wish *ret_wish,
                               struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct err_detail reason = {0};
    struct buf bytes;
    buf_init(&bytes, WISH_SIZE_MAX);
    enum err err = whole_file_read(group_path_of(directory, name, "group", path), &bytes, detail);
    if (err == ERR_NOT_FOUND) {
        err = err_set(detail, err, "%.150s is in no group \"%.64s\"", directory, name);
    } else if (err == ERR_OK) {
        err = group_files_parse_wish(buf_bytes(&bytes), name, ret_wish, &reason);
        if (err != ERR_OK) {
            err = err_set(detail, err, "%.120s: %.120s", path, err_detail_text(&reason, err));
        }
    }
    buf_done(&bytes);
    return err;
}

static void group_put_key(struct buf *out, const char *name, const uint8_t key[PEER_KEY_SIZE]) {
    char text[IDENTITY_TEXT_SIZE];
    buf_put_format(out, "%s = %s\n", name, identity_key_format(key, text));
}

void group_files_put_wish(const struct group_wish *wish, struct buf *out) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    buf_put_string(out, "# What this node wants of the group; \"mnemon group\" writes it.\n");
    if (peer_key_is_known(wish->rules.founder)) {
        group_put_key(out, "founder", wish->rules.founder);
    }
    if (wish->contact.port != 0) {
        buf_put_format(out, "contact = \"%s\"\n", address_format(&wish->contact, address));
    }
    if (wish->token[0] != '\0') {
        buf_put_format(out, "token = %s\n", wish->token);
    }
    buf_put_format(out, "admission = %s\ngenerator = %s\nk = %u\n",
                   group_files_admissions[wish->rules.admission],
                   group_files_generators[wish->rules.generator], wish->rules.k);
    for (size_t i = 0; i < wish->approved.count; i++) {
        group_put_key(out, "approved", wish->approved.keys[i]);
    }
    for (size_t i = 0; i < wish->refused.count; i++) {
        group_put_key(out, "refused", wish->refused.keys[i]);
    }
    for (size_t i = 0; i < wish->neighbours_count; i++) {
        buf_put_format(out, "neighbour = \"%s %s\"\n", address_format(&wish->neighbours[i].address, address),
                       identity_key_format(wish->neighbours[i].key, key));
    }
    if (wish->is_leaving) {
        buf_put_string(out, "leaving = yes\n");
    }
}

enum err group_files_write_wish(const char *directory, const struct group_wish *wish,
                                struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct buf text;
    buf_init(&text, WISH_SIZE_MAX);
    group_files_put_wish(wish, &text);
    enum err err = text.err == ERR_OK ? make_directories(directory, detail) : text.err;
    if (err == ERR_OK) {
        err = whole_file_replace(group_path_of(directory, wish->name, "group", path), buf_bytes(&text), MODE,
                                 detail);
    }
    buf_done(&text);
    return err;
}

/* ---- NAME.state ---- */

bool group_files_parse_state(struct bytes bytes, struct group_state_file *ret_state) {
    struct wire_reader reader;
    struct group_rules rules = {0};
    wire_reader_init(&reader, bytes);
    struct bytes mark = wire_read_bytes(&reader, sizeof magic);
    bool is_known = bytes_equal(mark, bytes_of(magic, sizeof magic)) && wire_read_u8(&reader) == LAYOUT;
    wire_read_array(&reader, rules.founder, PEER_KEY_SIZE);
    rules.admission = wire_read_u8_max(&reader, GROUP_ADMISSION_INVITE);
    rules.generator = wire_read_u8_max(&reader, TOPOLOGY_TREE);
    rules.k = wire_read_u8_max(&reader, TOPOLOGY_K_MAX);
    struct bytes document = wire_read_string(&reader, GROUP_FILES_DOCUMENT_SIZE_MAX);
    bool is_whole = is_known && wire_reader_finish(&reader, NULL) == ERR_OK;
    if (is_whole) {
        ret_state->rules = rules;
        ret_state->document_size = document.size;
        memcpy(ret_state->document, document.data, document.size);
    }
    return is_whole;
}

bool group_files_read_state(const char *directory, const char *name, struct group_state_file *ret_state) {
    char path[PATH_SIZE_MAX];
    struct buf bytes;
    buf_init(&bytes, GROUP_FILES_STATE_SIZE_MAX);
    bool is_whole = whole_file_read(group_path_of(directory, name, "state", path), &bytes, NULL) == ERR_OK &&
                    group_files_parse_state(buf_bytes(&bytes), ret_state);
    buf_done(&bytes);
    return is_whole;
}

struct bytes group_files_put_state(const struct group_state_file *state,
                                   uint8_t memory[GROUP_FILES_STATE_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, GROUP_FILES_STATE_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u8(&writer, LAYOUT);
    wire_write_bytes(&writer, bytes_of(state->rules.founder, PEER_KEY_SIZE));
    wire_write_u8(&writer, state->rules.admission);
    wire_write_u8(&writer, state->rules.generator);
    wire_write_u8(&writer, state->rules.k);
    wire_write_string(&writer, bytes_of(state->document, state->document_size));
    return wire_writer_bytes(&writer);
}

enum err group_files_write_state(const char *directory, const char *name,
                                 const struct group_state_file *state, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[GROUP_FILES_STATE_SIZE_MAX];
    struct bytes bytes = group_files_put_state(state, memory);
    enum err err = make_directories(directory, detail);
    return err == ERR_OK
               ? whole_file_replace(group_path_of(directory, name, "state", path), bytes, MODE, detail)
               : err;
}

enum err group_files_remove(const char *directory, const char *name, struct err_detail *detail) {
    static const char *const ends[] = {"state", "group"}; /* the second one counts */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[PATH_SIZE_MAX];
        enum err err = whole_file_remove(group_path_of(directory, name, ends[i], path), detail);
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return ERR_OK;
}
