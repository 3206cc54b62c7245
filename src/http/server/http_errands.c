#include "http/server/http_errands.h"

#include "http/server/http_state.h"

enum {
    AWAY_MAX = 8,
    TOGETHER_COUNT = 4, /* the loop waits for so many at once, if they are away */
    SLICE_US = 1000,
    SLICES_MAX = 20, /* in vain: then whoever has the errands is taken to hang */
};

/* Off the list, those that are back. */
static struct http_request *errands_take(struct http_errands *errands) {
    struct http_request *taken = NULL;
    struct http_request **taken_last = &taken;
    struct http_request **link = &errands->first;
    while (*link != NULL) {
        struct http_request *request = *link;
        if (request->errand.is_back(request->errand.context)) {
            *link = request->next_away;
            request->next_away = NULL;
            *taken_last = request;
            taken_last = &request->next_away;
            errands->count--;
        } else {
            link = &request->next_away;
        }
    }
    errands->last = link;
    return taken;
}

/* False: none was back. */
static bool errands_collect(struct http_errands *errands) {
    struct http_request *request = errands_take(errands);
    bool is_any = request != NULL;
    errands->slices_count = is_any ? 0 : errands->slices_count;
    while (request != NULL) {
        struct http_request *next = request->next_away;
        request->next_away = NULL; /* it may go on another errand, or be gone */
        request->is_suspended = false;
        http_connection_go_on(request->connection);
        request = next;
    }
    return is_any;
}

static void errands_wait(struct http_errands *errands) {
    const struct http_request *request = errands->first;
    for (size_t i = 1; i < TOGETHER_COUNT && request->next_away != NULL; i++) {
        request = request->next_away;
    }
    errands->slices_count++;
    request->errand.await(request->errand.context, SLICE_US);
}

static void errands_look(uv_check_t *look) {
    struct http_errands *errands = look->data;
    if (errands->count > 0 && !errands_collect(errands)) {
        errands_wait(errands);
        (void)errands_collect(errands);
    }
    if (errands->count == 0) {
        uv_idle_stop(&errands->hurry);
    }
}

static void errands_hurry(uv_idle_t *hurry) {
    (void)hurry; /* that it is there is enough */
}

void http_errands_init(struct http_errands *errands, struct loop *loop) {
    *errands = (struct http_errands){.count = 0};
    errands->last = &errands->first;
    uv_check_init(&loop->uv, &errands->look);
    uv_idle_init(&loop->uv, &errands->hurry);
    errands->look.data = errands;
    uv_check_start(&errands->look, errands_look);
}

void http_errands_add(struct http_errands *errands, struct http_request *request) {
    *errands->last = request;
    errands->last = &request->next_away;
    errands->count++;
    uv_idle_start(&errands->hurry, errands_hurry);
}

bool http_errands_have_room(const struct http_errands *errands) {
    return errands->count < AWAY_MAX;
}

void http_errands_make_room(struct http_errands *errands) {
    while (!http_errands_have_room(errands) && errands->slices_count < SLICES_MAX) {
        if (!errands_collect(errands)) {
            errands_wait(errands);
        }
    }
}
