/*
 * nfs - a file server of the usual kind to compare with: nfs-ganesha, and libnfs as its client. Both run in
 * user space, so nothing is mounted. NFS 4.0, since version 3 of the protocol needs a port mapper beside it.
 *
 * Without libnfs (nfs_none.c) the server says that it cannot be started, and why.
 */
#ifndef MNEMON_BENCH_NFS_H
#define MNEMON_BENCH_NFS_H

#include <sys/types.h>

#include "base/bytes.h"

struct nfs_server {
    const char *exported;
    pid_t process;
    pid_t mapper; /* 0: somebody else's */
    uint16_t port;
    uint16_t mount_port;
};

/* Export a directory, whose name must outlive the server; its own files go into work. False, with the reason
 * printed, where it cannot run here.
 */
bool nfs_server_start(struct nfs_server *server, const char *exported, const char *work);
void nfs_server_stop(struct nfs_server *server);

struct nfs_client;

struct nfs_client *nfs_client_new(const struct nfs_server *server); /* NULL: it cannot be reached */
void nfs_client_free(struct nfs_client *client);

/* A new file, on the disk when the call returns; its directory must be there. */
bool nfs_client_save(struct nfs_client *client, const char *path, struct bytes bytes);

/* All of it, into out, which must be larger. */
bool nfs_client_read(struct nfs_client *client, const char *path, void *out, size_t size, size_t *ret_size);
bool nfs_client_remove(struct nfs_client *client, const char *path);

#endif
