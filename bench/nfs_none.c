#include "nfs.h"

#include <stdio.h>

bool nfs_server_start(struct nfs_server *server, const char *exported, const char *work) {
    (void)server;
    (void)exported;
    (void)work;
    fprintf(stderr, "bench-volumes: built without libnfs (libnfs-dev), so nothing is compared with NFS\n");
    return false;
}

void nfs_server_stop(struct nfs_server *server) {
    (void)server;
}

struct nfs_client *nfs_client_new(const struct nfs_server *server) {
    (void)server;
    return NULL;
}

void nfs_client_free(struct nfs_client *client) {
    (void)client;
}

bool nfs_client_save(struct nfs_client *client, const char *path, struct bytes bytes) {
    (void)client;
    (void)path;
    (void)bytes;
    return false;
}

bool nfs_client_read(struct nfs_client *client, const char *path, void *out, size_t size, size_t *ret_size) {
    (void)client;
    (void)path;
    (void)out;
    (void)size;
    (void)ret_size;
    return false;
}

bool nfs_client_remove(struct nfs_client *client, const char *path) {
    (void)client;
    (void)path;
    return false;
}
