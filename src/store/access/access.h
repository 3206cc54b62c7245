/*
 * access - who may see what: rules of pywb's .aclj files, applied at once and without touching the index.
 *
 *      org,example)/private - {"access": "block"}
 *      org,example)/page### - {"access": "exclude", "before": "2026"}      ### only this URL
 *      org,example, - {"access": "allow"}                                  subdomains too
 *
 * The longest rule that fits decides; without one everything is allowed. Block: it is known that it is held,
 * but not shown (451); exclude: as if it were not there. before, after, newer and older limit a rule to
 * captures of that time. Rules for users that have a name count for nobody here. docs/formats/access.md.
 *
 * Files: DIR/access.aclj, and DIR/access/ with any number of *.aclj. They are looked at at most once a
 * second, by whoever asks then; a change counts from then on. If a line is wrong, it is told with file and
 * line, and all rules stay as they were: what is hidden stays hidden. Any thread may ask; nobody waits for
 * the one that reads the files.
 */
#ifndef MNEMON_STORE_ACCESS_ACCESS_H
#define MNEMON_STORE_ACCESS_ACCESS_H

#include "base/clock.h"
#include "store/access/access_line.h"

struct access;

/* Tells, from any thread, of rules that could not be read: file, line and why. */
typedef void access_tell(void *context, const char *sentence);

/* directory: the data directory, borrowed. Files that are wrong at the start are an error here. */
enum err access_open(const char *directory, const struct clock *clock, access_tell *tell, void *context,
                     struct access **ret_access, struct err_detail *detail) MUST_CHECK;
void access_close(struct access *access);

/* The capture of this SURT at this time. */
enum access_verdict access_check(struct access *access, struct bytes surt, int64_t time_us);

/* Look at the files now, and wait for it: ERR_OK says that all rules are as the files have them. */
enum err access_reload(struct access *access, struct err_detail *detail) MUST_CHECK;

/* Whether there are rules at all: without any, nobody need ask for each capture. */
bool access_has_rules(struct access *access);

#endif
