/* proxy_worker - what one thread of proxy_jobs.c works with. Private to proxy_look.c and proxy_keep.c. */
#ifndef MNEMON_NODE_PROXY_PROXY_WORKER_H
#define MNEMON_NODE_PROXY_PROXY_WORKER_H

#include "node/crowd/crowd_reader.h"
#include "node/proxy/proxy_jobs.h"
#include "store/document/document_hasher.h"
#include "warc/content.h"
#include "web/url/canon.h"

struct proxy_worker {
    const struct proxy_config *config;
    struct crowd_reader_session *crowd; /* NULL: not needed yet */
    struct instance_session *session;   /* likewise */
    struct document_hasher hasher;
    struct content content;
    struct http_head head; /* of what the crowd gave */
    struct canon canon;
    struct buf surt;
    struct buf text; /* what is signed; a head for decoding */
    struct scratch payload;
};

/* The SURT of the URL, in worker->surt. */
enum err proxy_worker_key(struct proxy_worker *worker, struct bytes url, struct bytes *ret_surt) MUST_CHECK;

#endif
