/* pages_parts - the functions of the routes, and what the pages use of each other. Private to pages*.c. */
#ifndef MNEMON_REPLAY_PAGES_PAGES_PARTS_H
#define MNEMON_REPLAY_PAGES_PAGES_PARTS_H

#include "replay/pages/pages_kit.h"

struct survey_snapshot;
struct survey_host;

void pages_start(struct http_request *request);
void pages_suggest(struct http_request *request);
void pages_calendar_json(struct http_request *request);
void pages_list_form(struct http_request *request); /* /list?url=…&text=… */
void pages_details(struct http_request *request);
void pages_capture_json(struct http_request *request);
void pages_embeds_json(struct http_request *request);
void pages_compare(struct http_request *request);
void pages_holdings(struct http_request *request);
void pages_holdings_json(struct http_request *request);

/* The big numbers. */
void pages_put_figures(struct sheet *sheet, const struct survey_snapshot *snapshot);

/* Do the rules let the host as a whole be named? */
bool pages_host_is_seen(struct archive_reader *reader, const struct survey_host *host);

/* Answer with the capture as a WARC file of its own. ERR_…: nothing was answered. */
enum err pages_answer_warc(struct replay *replay, struct http_request *request, struct archive_reader *reader,
                           const struct capture *capture, struct err_detail *detail) MUST_CHECK;

#endif
