#include "protocol/mirror/path_rule.h"

static bool is_dots(struct bytes component, size_t count) {
    return component.size == count && memcmp(component.data, "..", count) == 0;
}

static const char *component_fault(struct bytes component) {
    if (component.size == 0) {
        return "an empty component in a path";
    }
    if (component.size > PATH_RULE_COMPONENT_SIZE_MAX) {
        return "a component of a path above 255 bytes";
    }
    if (is_dots(component, 1) || is_dots(component, 2)) {
        return "\".\" or \"..\" in a path";
    }
    return NULL;
}

static const char *size_fault(struct bytes path) {
    if (path.size == 0) {
        return "an empty path";
    }
    if (path.size > PATH_RULE_SIZE_MAX) {
        return "a path above 4096 bytes";
    }
    return bytes_find_byte(path, 0) < path.size ? "a zero byte in a path" : NULL;
}

const char *path_rule_fault(struct bytes path) {
    struct bytes component;
    size_t depth = 0;
    const char *fault = size_fault(path);
    if (fault == NULL && path.data[0] == '/') {
        fault = "an absolute path";
    }
    while (fault == NULL && bytes_split(&path, '/', &component)) {
        fault = component_fault(component);
        if (++depth > PATH_RULE_DEPTH_MAX) {
            fault = "a path of more than 256 components";
        }
    }
    return fault;
}

static size_t count_directories(struct bytes path) {
    size_t count = 0;
    for (size_t i = 0; i < path.size; i++) {
        count += path.data[i] == '/';
    }
    return count;
}

const char *path_rule_link_fault(struct bytes path, struct bytes target) {
    size_t depth = count_directories(path);
    bool has_name = false;
    struct bytes component;
    const char *fault = size_fault(target);
    if (fault == NULL && target.data[0] == '/') {
        return "a link with an absolute target";
    }
    while (fault == NULL && bytes_split(&target, '/', &component)) {
        if (component.size == 0 || is_dots(component, 1)) {
            continue; /* the same directory */
        }
        if (!is_dots(component, 2)) {
            has_name = true;
            fault = component_fault(component);
        } else if (has_name) {
            fault = "a link with \"..\" behind a name in its target";
        } else if (depth-- == 0) {
            fault = "a link that leads out of the collection";
        }
    }
    return fault;
}

int path_rule_compare(struct bytes a, struct bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    for (size_t i = 0; i < size; i++) {
        if (a.data[i] != b.data[i]) {
            unsigned left = a.data[i] == '/' ? 0 : a.data[i];
            unsigned right = b.data[i] == '/' ? 0 : b.data[i];
            return left < right ? -1 : 1;
        }
    }
    return a.size == b.size ? 0 : a.size < b.size ? -1 : 1;
}

static struct bytes directory_of(struct bytes path) {
    size_t size = path.size;
    while (size > 0 && path.data[size - 1] != '/') {
        size--;
    }
    return bytes_slice(path, 0, size == 0 ? 0 : size - 1);
}

const char *path_rule_order_fault(struct bytes previous, bool previous_is_directory, struct bytes path) {
    struct bytes directory = directory_of(path);
    if (previous.size > 0) {
        int order = path_rule_compare(previous, path);
        if (order >= 0) {
            return order == 0 ? "a path that is there twice" : "a path out of its order";
        }
    }
    if (directory.size == 0) {
        return NULL;
    }
    if (!bytes_starts_with(previous, directory)) {
        return "a path in a directory that is not listed";
    }
    if (previous.size == directory.size) {
        return previous_is_directory ? NULL : "a path in something that is no directory";
    }
    return previous.data[directory.size] == '/' ? NULL : "a path in a directory that is not listed";
}
