/* job_wish - a job as a program asks for it, in JSON: the keys of job.conf (docs/formats/job.md), and URLs.
 */
#ifndef MNEMON_NODE_CRAWL_JOB_WISH_H
#define MNEMON_NODE_CRAWL_JOB_WISH_H

#include "crawl/engine/job.h"

/* Texts in the arena. ERR_INVALID says which key is wrong, and why. */
enum err job_wish_read(struct bytes wish, struct arena *arena, struct job *ret_job,
                       struct err_detail *detail) MUST_CHECK;

#endif
