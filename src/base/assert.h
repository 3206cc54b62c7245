/*
 * assert - the check for programmer errors, compiled into every build.
 *
 * ASSERT states what must hold if the code is right. It never judges input from outside: a peer, a web
 * server or a file can be wrong, and that is a return value. A failed ASSERT prints where and what, and
 * aborts, because a process that broke its own rules must not go on writing to an archive.
 */
#ifndef MNEMON_BASE_ASSERT_H
#define MNEMON_BASE_ASSERT_H

/* A macro because only a macro knows the text and the place of its condition. */
#define ASSERT(condition) \
    (__builtin_expect(!(condition), 0) ? assert_failed(#condition, __FILE__, __LINE__) : (void)0)

__attribute__((noreturn, cold)) void assert_failed(const char *condition, const char *file, int line);

#endif
