#include "parse/parse_host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/confine.h"
#include "web/html/transcode.h"

enum { HOST_PARSERS_MAX = 256, HOST_DONE = 0, HOST_FAILED = 1 };

struct parse_host {
    const struct parse_kinds *kinds;
    size_t count;
    size_t later_from; /* these give way */
    uint8_t *memory;   /* count areas */
    pid_t parsers[HOST_PARSERS_MAX];
    int deaths; /* signalfd */
};

/* ---- in a new parser ---- */

/* Of all areas it keeps its own. */
static _Noreturn void host_become_parser(struct parse_host *host, size_t index) {
    size_t before = index * PARSE_AREA_SIZE;
    size_t after = (host->count - index - 1) * PARSE_AREA_SIZE;
    struct parse_area *area = (struct parse_area *)(void *)(host->memory + before);
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((before > 0 && munmap(host->memory, before) != 0) ||
        (after > 0 && munmap(host->memory + before + PARSE_AREA_SIZE, after) != 0)) {
        _exit(HOST_FAILED);
    }
    parse_process_run(area, host->kinds, index >= host->later_from);
}

/* ---- orders ---- */

static void host_tell(enum parse_host_kind kind, size_t index, int status) {
    struct parse_host_message message = {.kind = kind, .index = (uint32_t)index, .status = (int32_t)status};
    (void)!send(PARSE_HOST_SOCKET, &message, sizeof message, MSG_NOSIGNAL);
}

static void host_start(struct parse_host *host, size_t index) {
    pid_t pid = fork();
    if (pid == 0) {
        host_become_parser(host, index);
    }
    if (pid < 0) {
        host_tell(PARSE_HOST_ENDED, index, 0);
        return;
    }
    host->parsers[index] = pid;
}

/* False: the node has gone. */
static bool host_take_order(struct parse_host *host) {
    struct parse_host_message message;
    ssize_t size = recv(PARSE_HOST_SOCKET, &message, sizeof message, 0);
    if (size < 0 && errno == EINTR) {
        return true;
    }
    if (size != (ssize_t)sizeof message || message.index >= host->count) {
        return false;
    }
    pid_t pid = host->parsers[message.index];
    if (message.kind == PARSE_HOST_START && pid == 0) {
        host_start(host, message.index);
    } else if (message.kind == PARSE_HOST_KILL && pid > 0) {
        kill(pid, SIGKILL);
    }
    return true;
}

static void host_bury(struct parse_host *host) {
    struct signalfd_siginfo info;
    int status;
    pid_t pid;
    (void)!read(host->deaths, &info, sizeof info);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t i = 0; i < host->count; i++) {
            if (host->parsers[i] == pid) {
                host->parsers[i] = 0;
                host_tell(PARSE_HOST_ENDED, i, status);
            }
        }
    }
}

static void host_serve(struct parse_host *host) {
    struct pollfd waits[2] = {{.fd = PARSE_HOST_SOCKET, .events = POLLIN},
                              {.fd = host->deaths, .events = POLLIN}};
    for (;;) {
        if (poll(waits, 2, -1) < 0 && errno != EINTR) {
            return;
        }
        if (waits[1].revents != 0) {
            host_bury(host);
        }
        if (waits[0].revents != 0 && !host_take_order(host)) {
            return;
        }
    }
}

/* ---- */

static bool host_prepare(struct parse_host *host) {
    sigset_t deaths;
    sigemptyset(&deaths);
    sigaddset(&deaths, SIGCHLD);
    prctl(PR_SET_NAME, PARSE_HOST_WORD, 0, 0, 0);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the node stops it: those of a terminal or of systemd go to all processes */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    size_t size = host->count * PARSE_AREA_SIZE;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, PARSE_HOST_MEMORY, 0);
    if (memory == MAP_FAILED || sigprocmask(SIG_SETMASK, &deaths, NULL) != 0) {
        return false;
    }
    host->memory = memory;
    close(PARSE_HOST_MEMORY);
    close_range(PARSE_HOST_MEMORY, ~0U, 0);
    transcode_load_all(); /* once for all parsers: none of them can open a file */
    host->deaths = signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
    return host->deaths >= 0 && confine_parser_host(NULL) == ERR_OK;
}

int parse_host_main(int argc, char **argv, const struct parse_kinds *kinds) {
    struct parse_host host = {.kinds = kinds};
    host.count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    host.later_from = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    int type = 0;
    socklen_t size = sizeof type;
    if (host.count == 0 || host.count > HOST_PARSERS_MAX ||
        getsockopt(PARSE_HOST_SOCKET, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || !host_prepare(&host)) {
        return HOST_FAILED;
    }
    host_tell(PARSE_HOST_READY, 0, 0);
    host_serve(&host);
    for (size_t i = 0; i < host.count; i++) {
        if (host.parsers[i] > 0) {
            kill(host.parsers[i], SIGKILL);
        }
    }
    _exit(HOST_DONE); /* what stays loaded for the parsers is no leak */
}
