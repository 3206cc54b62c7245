/*
 * failure - how it is kept that a URL could not be fetched: as a small resource under a URI of its own, so
 * that no reader takes it for a capture of the URL. docs/formats/warc.md.
 */
#ifndef MNEMON_STORE_DOCUMENT_FAILURE_H
#define MNEMON_STORE_DOCUMENT_FAILURE_H

/* The URL follows, as it was to be fetched. */
#define FAILURE_URI_PREFIX "urn:fetch-failure:"

#endif
