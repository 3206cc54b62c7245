/*
 * pattern_posix - a POSIX extended regular expression, as glibc reads it, in the syntax of base/regex.h.
 * Pure.
 *
 *      [\d]    in brackets '\' is itself       [\\d]
 *      \d      no sign of glibc's: itself      d
 *      \<  \>  begin and end of a word         \b(?=\w)  \b(?<=\w)
 *      \`  \'  begin and end of the text       \A  \z
 *      \w \W \s \S \b \B                       the same
 *
 * Refused, since they would mean something else or could take for ever: back references, repetitions of more
 * than PATTERN_POSIX_REPETITIONS_MAX together, one repetition right behind another, "(?" and "(*".
 * docs/formats/job.md.
 */
#ifndef MNEMON_CRAWL_RULES_PATTERN_POSIX_H
#define MNEMON_CRAWL_RULES_PATTERN_POSIX_H

#include "base/buf.h"
#include "base/err.h"

enum { PATTERN_POSIX_REPETITIONS_MAX = 1000 };

/* Append it. ERR_INVALID with the reason, and the errors of the buffer. */
enum err pattern_posix_put(struct bytes text, struct buf *out, struct err_detail *detail) MUST_CHECK;

#endif
