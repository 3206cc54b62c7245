#include "node/mirror/collection_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

void collection_path_init(struct collection_path *at, int root) {
    at->root = root;
    at->parent = -1;
    at->size = 0;
}

void collection_path_done(struct collection_path *at) {
    if (at->parent >= 0) {
        close(at->parent);
        at->parent = -1;
    }
}

static void copy_name(struct bytes component, char out[PATH_RULE_COMPONENT_SIZE_MAX + 1]) {
    ASSERT(component.size > 0 && component.size <= PATH_RULE_COMPONENT_SIZE_MAX);
    memcpy(out, component.data, component.size);
    out[component.size] = '\0';
}

/* From the root down, one component after the other. */
static int path_open_directory(int root, struct bytes path) {
    char name[PATH_RULE_COMPONENT_SIZE_MAX + 1];
    struct bytes component;
    int directory = openat(root, ".", DIRECTORY_FLAGS);
    while (directory >= 0 && path.size > 0 && bytes_split(&path, '/', &component)) {
        copy_name(component, name);
        int next = openat(directory, name, DIRECTORY_FLAGS);
        int reason = errno;
        close(directory);
        errno = reason;
        directory = next;
    }
    return directory;
}

int collection_path_parent(struct collection_path *at, struct bytes path,
                           char ret_name[PATH_RULE_COMPONENT_SIZE_MAX + 1]) {
    size_t end = path.size;
    while (end > 0 && path.data[end - 1] != '/') {
        end--;
    }
    struct bytes parent = bytes_slice(path, 0, end > 0 ? end - 1 : 0);
    copy_name(bytes_skip(path, end), ret_name);
    if (at->parent >= 0 && bytes_equal(parent, bytes_of(at->path, at->size))) {
        return at->parent;
    }
    collection_path_done(at);
    at->parent = path_open_directory(at->root, parent);
    at->size = parent.size;
    if (parent.size > 0) {
        memcpy(at->path, parent.data, parent.size);
    }
    return at->parent;
}

int collection_path_open(struct collection_path *at, struct bytes path, int flags, mode_t mode) {
    char name[PATH_RULE_COMPONENT_SIZE_MAX + 1];
    int parent = collection_path_parent(at, path, name);
    return parent >= 0 ? openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC, mode) : -1;
}

/* ---- removing ---- */

static enum err remove_contents(int directory) {
    DIR *opened = fdopendir(directory);
    const struct dirent *item;
    enum err err = ERR_OK;
    if (opened == NULL) {
        close(directory);
        return err_from_errno(errno);
    }
    while (err == ERR_OK && (item = readdir(opened)) != NULL) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0) {
            err = collection_path_remove(dirfd(opened), item->d_name);
        }
    }
    closedir(opened);
    return err;
}

enum err collection_path_remove(int parent, const char *name) {
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return ERR_OK;
    }
    if (errno != EISDIR && errno != EPERM) {
        return err_from_errno(errno);
    }
    int directory = openat(parent, name, DIRECTORY_FLAGS);
    if (directory < 0 || fchmod(directory, S_IRWXU) != 0) { /* it may be one that its owner may not change */
        int reason = errno;
        if (directory >= 0) {
            close(directory);
        }
        return err_from_errno(reason);
    }
    enum err err = remove_contents(directory);
    if (err == ERR_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0) {
        err = err_from_errno(errno);
    }
    return err;
}
