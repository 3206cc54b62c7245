#include "store/instance/connector.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/whole_file.h"
#include "store/document/key.h"

#define SECTION_PREFIX "[volume-"

enum { ARENA_SIZE_MAX = 1 << 20, KEY_NAME_SIZE_MAX = 32 };

/* One section as it is written. */
struct section {
    uint16_t number;
    struct bytes path;
    struct bytes index;
    struct bytes url;
    struct bytes token;
    struct bytes token_file;
    uint64_t volume;
    bool is_writable;
    uint64_t timeout_us;
};

static const struct config_key section_keys[] = {
    {.name = "path", .type = CONFIG_TEXT, .offset = offsetof(struct section, path)},
    {.name = "index", .type = CONFIG_TEXT, .offset = offsetof(struct section, index)},
    {.name = "url", .type = CONFIG_TEXT, .offset = offsetof(struct section, url)},
    {.name = "token", .type = CONFIG_TEXT, .offset = offsetof(struct section, token)},
    {.name = "token_file", .type = CONFIG_TEXT, .offset = offsetof(struct section, token_file)},
    {.name = "volume",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct section, volume),
     .fallback = "0",
     .max = KEY_VOLUMES_MAX - 1},
    {.name = "writable",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct section, is_writable),
     .fallback = "yes"},
    {.name = "timeout",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct section, timeout_us),
     .fallback = "30 s",
     .min = 100000,
     .max = UINT64_C(3600) * 1000000},
};

enum { SECTION_KEYS_COUNT = sizeof section_keys / sizeof *section_keys };

/* ---- which sections there are ---- */

/* The number of "[volume-7]". What else a line is, config_read() says. */
static bool read_section_number(struct bytes line, uint16_t *ret_number) {
    uint64_t number;
    line = bytes_trim(line);
    if (!bytes_starts_with(line, BYTES(SECTION_PREFIX))) {
        return false;
    }
    line = bytes_skip(line, sizeof SECTION_PREFIX - 1);
    size_t close = bytes_find_byte(line, ']');
    struct bytes digits = bytes_slice(line, 0, close);
    bool has_zeros = digits.size > 1 && digits.data[0] == '0'; /* "01" would be another name for 1 */
    if (close == line.size || has_zeros || !bytes_to_u64(digits, KEY_VOLUMES_MAX - 1, &number)) {
        return false;
    }
    *ret_number = (uint16_t)number;
    return true;
}

/* Keep the sections in the order of their numbers. A section may be opened twice; its keys may not. */
static enum err add_section(struct section *sections, size_t *count, uint16_t number,
                            struct err_detail *detail) {
    size_t at = 0;
    while (at < *count && sections[at].number < number) {
        at++;
    }
    if (at < *count && sections[at].number == number) {
        return ERR_OK;
    }
    if (*count == CONNECTOR_VOLUMES_MAX) {
        return err_set(detail, ERR_LIMIT, "an instance has at most %d volumes", CONNECTOR_VOLUMES_MAX);
    }
    memmove(&sections[at + 1], &sections[at], (*count - at) * sizeof *sections);
    sections[at] = (struct section){.number = number};
    ++*count;
    return ERR_OK;
}

static enum err find_sections(struct bytes text, struct section *sections, size_t *ret_count,
                              struct err_detail *detail) {
    struct bytes line;
    uint16_t number;
    size_t count = 0;
    enum err err = ERR_OK;
    while (err == ERR_OK && bytes_split(&text, '\n', &line)) {
        if (read_section_number(line, &number)) {
            err = add_section(sections, &count, number, detail);
        }
    }
    if (err == ERR_OK && count == 0) {
        err = err_set(detail, ERR_INVALID, "there is no volume in it, such as [volume-0]");
    }
    *ret_count = count;
    return err;
}

/* ---- what they say ---- */

/* The table that config_read() wants: every key of every section. */
static const struct config_key *make_keys(struct arena *arena, const struct section *sections, size_t count) {
    struct config_key *keys = arena_take_array(arena, count * SECTION_KEYS_COUNT + 1, sizeof *keys);
    char *names = arena_take_array(arena, count * SECTION_KEYS_COUNT, KEY_NAME_SIZE_MAX);
    if (keys == NULL || names == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count * SECTION_KEYS_COUNT; i++) {
        const struct config_key *key = &section_keys[i % SECTION_KEYS_COUNT];
        char *name = names + i * KEY_NAME_SIZE_MAX;
        snprintf(name, KEY_NAME_SIZE_MAX, "volume-%u.%s", sections[i / SECTION_KEYS_COUNT].number, key->name);
        keys[i] = *key;
        keys[i].name = name;
        keys[i].offset += i / SECTION_KEYS_COUNT * sizeof *sections;
    }
    return keys;
}

/* "directory/path", or the path where it is absolute; NULL: out of memory. */
static const char *join(struct arena *arena, const char *directory, struct bytes path) {
    if (path.size > 0 && path.data[0] == '/') {
        return (const char *)path.data;
    }
    size_t size = strlen(directory) + 1 + path.size + 1;
    char *joined = arena_take(arena, size);
    if (joined != NULL) {
        snprintf(joined, size, "%s/%s", directory, (const char *)path.data);
    }
    return joined;
}

static enum err read_whole(const char *path, struct buf *out, struct err_detail *detail) {
    enum err err = whole_file_read(path, out, NULL);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %s", path, err_text(err));
}

/* A token goes into an HTTP header: one line of visible characters. */
static bool is_token(struct bytes token) {
    for (size_t i = 0; i < token.size; i++) {
        if (token.data[i] <= ' ' || token.data[i] >= 0x7f) {
            return false;
        }
    }
    return token.size > 0 && token.size <= CONNECTOR_TOKEN_SIZE_MAX;
}

static enum err read_token(struct arena *arena, const struct section *section, const char *directory,
                           const char **ret_token, struct err_detail *detail) {
    struct buf file;
    buf_init(&file, CONNECTOR_TOKEN_SIZE_MAX);
    struct bytes token = section->token;
    enum err err = ERR_OK;
    if (section->token_file.size > 0) {
        const char *path = join(arena, directory, section->token_file);
        err = path == NULL ? ERR_MEMORY : read_whole(path, &file, detail);
        token = err == ERR_OK ? bytes_trim(buf_bytes(&file)) : token;
    }
    if (err == ERR_OK && !is_token(token)) {
        err = err_set(detail, ERR_INVALID, "[volume-%u]: the token is not one word of visible characters",
                      section->number);
    }
    if (err == ERR_OK) {
        *ret_token = (const char *)arena_copy(arena, token).data;
        err = *ret_token == NULL ? ERR_MEMORY : ERR_OK;
    }
    buf_done(&file);
    return err;
}

static enum err connector_fail(const struct section *section, const char *text, struct err_detail *detail) {
    return err_set(detail, ERR_INVALID, "[volume-%u]: %s", section->number, text);
}

static enum err make_local(struct arena *arena, const struct section *section, const char *directory,
                           struct connector_volume *volume, struct err_detail *detail) {
    if (section->token.size + section->token_file.size > 0) {
        return connector_fail(section, "a directory needs no token", detail);
    }
    volume->path = join(arena, directory, section->path);
    if (volume->path == NULL) {
        return ERR_MEMORY;
    }
    volume->index = section->index.size > 0 ? join(arena, directory, section->index)
                                            : join(arena, volume->path, BYTES("index"));
    volume->is_made = section->path.data[0] != '/';
    return volume->index == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err make_remote(struct arena *arena, const struct section *section, const char *directory,
                            struct connector_volume *volume, struct err_detail *detail) {
    if (section->index.size > 0) {
        return connector_fail(section, "a volume server has its own index", detail);
    }
    if (section->token.size > 0 && section->token_file.size > 0) {
        return connector_fail(section, "token and token_file exclude each other", detail);
    }
    bool is_http = bytes_starts_with(section->url, BYTES("http://")) ||
                   bytes_starts_with(section->url, BYTES("https://"));
    if (!is_http) {
        return connector_fail(section, "its url begins with neither http:// nor https://", detail);
    }
    volume->url = (const char *)section->url.data;
    volume->remote_number = (uint16_t)section->volume;
    volume->timeout_ms = (uint32_t)(section->timeout_us / 1000);
    if (section->token.size + section->token_file.size == 0) {
        return connector_fail(section, "a volume server wants a token or a token_file", detail);
    }
    return read_token(arena, section, directory, &volume->token, detail);
}

static enum err make_volume(struct arena *arena, const struct section *section, const char *directory,
                            struct connector_volume *volume, struct err_detail *detail) {
    *volume = (struct connector_volume){.number = section->number, .is_writable = section->is_writable};
    if ((section->path.size > 0) == (section->url.size > 0)) {
        return connector_fail(section, "it wants either path or url", detail);
    }
    return section->path.size > 0 ? make_local(arena, section, directory, volume, detail)
                                  : make_remote(arena, section, directory, volume, detail);
}

/* Two numbers for one place would make every document there a duplicate of itself. */
static enum err check_places(const struct connector *connector, struct err_detail *detail) {
    for (size_t i = 1; i < connector->volumes_count; i++) {
        const struct connector_volume *volume = &connector->volumes[i];
        for (size_t j = 0; j < i; j++) {
            const struct connector_volume *other = &connector->volumes[j];
            bool has_same_path =
                volume->path != NULL && other->path != NULL && strcmp(volume->path, other->path) == 0;
            bool has_same_url = volume->url != NULL && other->url != NULL &&
                                strcmp(volume->url, other->url) == 0 &&
                                volume->remote_number == other->remote_number;
            if (has_same_path || has_same_url) {
                return err_set(detail, ERR_INVALID, "[volume-%u] and [volume-%u] are the same place",
                               other->number, volume->number);
            }
        }
    }
    return ERR_OK;
}

static enum err parse(struct connector *connector, struct bytes text, const char *directory,
                      struct err_detail *detail) {
    struct section *sections =
        arena_take_array(&connector->arena, CONNECTOR_VOLUMES_MAX + 1, sizeof *sections);
    if (sections == NULL) {
        return ERR_MEMORY;
    }
    size_t count = 0;
    enum err err = find_sections(text, sections, &count, detail);
    if (err != ERR_OK && count == 0) {
        /* A file without volumes mostly has a mistake that can be named better than that. */
        static const struct config_key none = {0};
        enum err other = config_read(&none, text, &connector->arena, sections, detail);
        return other == ERR_OK ? find_sections(text, sections, &count, detail) : other;
    }
    const struct config_key *keys = err == ERR_OK ? make_keys(&connector->arena, sections, count) : NULL;
    connector->volumes = arena_take_array(&connector->arena, count, sizeof *connector->volumes);
    if (err == ERR_OK && (keys == NULL || connector->volumes == NULL)) {
        err = ERR_MEMORY;
    }
    err = err == ERR_OK ? config_read(keys, text, &connector->arena, sections, detail) : err;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        err = make_volume(&connector->arena, &sections[i], directory, &connector->volumes[i], detail);
        connector->volumes_count++;
    }
    return err == ERR_OK ? check_places(connector, detail) : err;
}

enum err connector_parse(struct connector *connector, struct bytes text, const char *directory,
                         struct err_detail *detail) {
    *connector = (struct connector){0};
    arena_init(&connector->arena, ARENA_SIZE_MAX);
    enum err err = parse(connector, text, directory, detail);
    if (err != ERR_OK) {
        connector_done(connector);
    }
    return err;
}

enum err connector_read(struct connector *connector, const char *path, struct err_detail *detail) {
    struct buf text;
    struct buf directory;
    struct err_detail inner = {0};
    struct bytes name = bytes_of_string(path);
    while (name.size > 0 && name.data[name.size - 1] != '/') {
        name.size--;
    }
    buf_init(&text, CONNECTOR_SIZE_MAX);
    buf_init(&directory, CONNECTOR_SIZE_MAX);
    buf_put(&directory, name.size == 0  ? BYTES(".")
                        : name.size > 1 ? bytes_slice(name, 0, name.size - 1)
                                        : name);
    enum err err = buf_string(&directory) == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK) {
        err = read_whole(path, &text, detail);
    }
    if (err == ERR_OK) {
        err = connector_parse(connector, buf_bytes(&text), (const char *)directory.data, &inner);
        if (err != ERR_OK) {
            const char *reason = err_detail_text(&inner, err);
            err = err == ERR_NOT_FOUND ? ERR_INVALID : err; /* a missing token file is no missing connector */
            err_set(detail, err, "%s: %s", path, reason);
        }
    }
    buf_done(&directory);
    buf_done(&text);
    return err;
}

enum err connector_default(struct connector *connector, const char *directory) {
    return connector_parse(connector, BYTES("[volume-0]\npath = volumes/0\nindex = index/0\n"), directory,
                           NULL);
}

void connector_done(struct connector *connector) {
    arena_done(&connector->arena);
}
