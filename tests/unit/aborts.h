/* aborts - for tests of ASSERT: run the mistake in a child process and look at how it ended. */
#ifndef MNEMON_TESTS_ABORTS_H
#define MNEMON_TESTS_ABORTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* True where action(argument) ends in SIGABRT after a message that contains `condition`. */
static inline bool aborts(void (*action)(void *argument), void *argument, const char *condition) {
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL); /* cmocka's handler would report instead of dying */
        action(argument);
        _exit(0);
    }
    close(ends[1]);
    char message[1024];
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size < sizeof message - 1; size += (size_t)(got > 0 ? got : 0)) {
        got = read(ends[0], message + size, sizeof message - 1 - size);
    }
    message[size] = '\0';
    close(ends[0]);
    int status = 0;
    bool was_aborted =
        waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    return was_aborted && strstr(message, "assertion failed") != NULL && strstr(message, condition) != NULL;
}

#endif
