#include "replay/site/partial.h"

#include "http/message/status.h"
#include "replay/site/fill.h"

void partial_add_header(struct http_request *request, const struct absent *absent) {
    if (absent->is_any) {
        http_add_header(request, "X-Mnemon-Partial", absent->text);
    }
}

enum err partial_missing(const struct absent *absent, const char *sentence, struct err_detail *detail) {
    return absent->is_any
               ? err_set(detail, ERR_UNREACHABLE, "nothing was found, but %s did not answer", absent->text)
               : err_set(detail, ERR_NOT_FOUND, "%s", sentence);
}

unsigned partial_status(enum err err) {
    bool is_away = err == ERR_UNREACHABLE || err == ERR_CLOSED || err == ERR_TIMEOUT;
    return is_away ? STATUS_UNAVAILABLE : http_status(err);
}

void partial_put_notice(struct sheet *sheet, const struct absent *absent) {
    if (absent->is_any) {
        FILL(sheet,
             "<p class=\"notice warning\" id=partial>This may not be all: {string} did not answer, and what "
             "they hold is left out.</p>\n",
             {.string = absent->text});
    }
}
