#include "nfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nfsc/libnfs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE_MAX = 1024, START_TRIES_MAX = 600, START_WAIT_US = 20000, MODE = 0644, MAPPER_PORT = 111 };

static struct sockaddr_in loopback(uint16_t port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

/* Free just now; nobody else on this machine is likely to take it in the next second. */
static uint16_t find_port(void) {
    struct sockaddr_in name = loopback(0);
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_found = bind(fd, (struct sockaddr *)&name, size) == 0 &&
                    getsockname(fd, (struct sockaddr *)&name, &size) == 0;
    close(fd);
    return is_found ? ntohs(name.sin_port) : 0;
}

static bool write_configuration(const char *path, const struct nfs_server *server) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    fprintf(
        file,
        "NFS_CORE_PARAM { NFS_Port = %u; MNT_Port = %u; Bind_addr = 127.0.0.1; NFS_Protocols = 3;\n"
        "  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = false; }\n"
        "EXPORT { Export_Id = 1; Path = \"%s\"; Pseudo = /documents; Access_Type = RW;\n"
        "  Squash = No_Root_Squash; SecType = sys; Protocols = 3; Transports = TCP; FSAL { Name = VFS; } }\n"
        "LOG { Default_Log_Level = CRIT; }\n",
        server->port, server->mount_port, server->exported);
    return fclose(file) == 0;
}

static bool is_listening(uint16_t port) {
    struct sockaddr_in name = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_there = connect(fd, (struct sockaddr *)&name, sizeof name) == 0;
    close(fd);
    return is_there;
}

/* In a child. */
static void run(char *const *words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int quiet = open("/dev/null", O_WRONLY);
    dup2(quiet, 1);
    dup2(quiet, 2);
    execvp(words[0], words);
    _exit(127);
}

/* Until it listens; false where it ends instead. */
static bool await_port(pid_t process, uint16_t port) {
    for (int i = 0; i < START_TRIES_MAX; i++) {
        if (waitpid(process, NULL, WNOHANG) != 0) {
            return false;
        }
        if (is_listening(port)) {
            return true;
        }
        usleep(START_WAIT_US);
    }
    return false;
}

static bool start_mapper(struct nfs_server *server) {
    static char *const words[] = {"/sbin/rpcbind", "-f", "-w", NULL};
    server->mapper = 0;
    if (is_listening(MAPPER_PORT)) {
        return true;
    }
    server->mapper = fork();
    if (server->mapper == 0) {
        run(words);
    }
    return await_port(server->mapper, MAPPER_PORT);
}

bool nfs_server_start(struct nfs_server *server, const char *exported, const char *work) {
    char configuration[PATH_SIZE_MAX];
    char log[PATH_SIZE_MAX];
    char pid_file[PATH_SIZE_MAX];
    snprintf(configuration, sizeof configuration, "%s/ganesha.conf", work);
    snprintf(log, sizeof log, "%s/ganesha.log", work);
    snprintf(pid_file, sizeof pid_file, "%s/ganesha.pid", work);
    char *const words[] = {"ganesha.nfsd", "-F", "-f", configuration, "-L", log, "-p", pid_file, NULL};
    *server = (struct nfs_server){.exported = exported, .port = find_port(), .mount_port = find_port()};
    if (server->port == 0 || !write_configuration(configuration, server)) {
        fprintf(stderr, "bench-volumes: %s: %s\n", configuration, strerror(errno));
        return false;
    }
    bool is_mapped = start_mapper(server);
    server->process = is_mapped ? fork() : 0;
    if (is_mapped && server->process == 0) {
        run(words);
    }
    if (is_mapped && await_port(server->process, server->port)) {
        return true;
    }
    fprintf(stderr,
            "bench-volumes: %s does not start, so nothing is compared with NFS; it takes the packages "
            "nfs-ganesha, nfs-ganesha-vfs and rpcbind, and root\n",
            is_mapped ? "ganesha.nfsd" : "rpcbind");
    nfs_server_stop(server);
    return false;
}

/* Told to end, it takes its time. */
static void end(pid_t process) {
    if (process > 0) {
        kill(process, SIGKILL);
        waitpid(process, NULL, 0);
    }
}

void nfs_server_stop(struct nfs_server *server) {
    end(server->process);
    end(server->mapper);
}

/* ---- clients ---- */

struct nfs_client {
    struct nfs_context *context;
};

struct nfs_client *nfs_client_new(const struct nfs_server *server) {
    struct nfs_client *client = calloc(1, sizeof *client);
    char text[PATH_SIZE_MAX];
    snprintf(text, sizeof text, "nfs://127.0.0.1%s?version=3&nfsport=%u&mountport=%u", server->exported,
             server->port, server->mount_port);
    client->context = nfs_init_context();
    struct nfs_url *url = nfs_parse_url_dir(client->context, text);
    bool is_there = url != NULL && nfs_mount(client->context, url->server, url->path) == 0;
    if (url != NULL) {
        nfs_destroy_url(url);
    }
    if (!is_there) {
        fprintf(stderr, "bench-volumes: %s\n", nfs_get_error(client->context));
        nfs_client_free(client);
        return NULL;
    }
    return client;
}

void nfs_client_free(struct nfs_client *client) {
    nfs_destroy_context(client->context);
    free(client);
}

static bool fail(const struct nfs_client *client, const char *path) {
    fprintf(stderr, "bench-volumes: %s: %s\n", path, nfs_get_error(client->context));
    return false;
}

bool nfs_client_save(struct nfs_client *client, const char *path, struct bytes bytes) {
    struct nfsfh *file;
    if (nfs_open2(client->context, path, O_WRONLY | O_CREAT | O_EXCL | O_SYNC, MODE, &file) != 0) {
        return fail(client, path);
    }
    size_t size_max = (size_t)nfs_get_writemax(client->context);
    bool is_good = true;
    for (size_t done = 0; done < bytes.size && is_good;) {
        size_t size = bytes.size - done < size_max ? bytes.size - done : size_max;
        int written = nfs_pwrite(client->context, file, done, size, bytes.data + done);
        is_good = written > 0;
        done += is_good ? (size_t)written : 0;
    }
    bool is_closed = nfs_close(client->context, file) == 0;
    return (is_good && is_closed) || fail(client, path);
}

bool nfs_client_read(struct nfs_client *client, const char *path, void *out, size_t size, size_t *ret_size) {
    struct nfsfh *file;
    if (nfs_open(client->context, path, O_RDONLY, &file) != 0) {
        return fail(client, path);
    }
    size_t done = 0;
    int got;
    do {
        got = nfs_pread(client->context, file, done, size - done, (uint8_t *)out + done);
        done += got > 0 ? (size_t)got : 0;
    } while (got > 0 && done < size);
    *ret_size = done;
    bool is_closed = nfs_close(client->context, file) == 0;
    return (got == 0 && is_closed) || fail(client, path);
}

bool nfs_client_remove(struct nfs_client *client, const char *path) {
    return nfs_unlink(client->context, path) == 0 || fail(client, path);
}
