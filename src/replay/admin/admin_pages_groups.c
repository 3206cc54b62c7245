/* Groups and their topologies, for programs. */
#include "replay/admin/admin_pages_state.h"

enum { NAME_SIZE_MAX = 128, FORMAT_SIZE_MAX = 16 };

void admin_pages_groups(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    (void)form_get(http_request_query(request), "group", &name);
    enum err err = name.err == ERR_OK ? admin_pages->table->put_groups(admin_pages->context, buf_bytes(&name),
                                                                       &text, &detail)
                                      : err_set(&detail, ERR_NOT_FOUND, "no group has so long a name");
    buf_done(&name);
    if (err == ERR_OK) {
        http_answer_json(request, STATUS_OK, "no-store", &text);
    } else {
        buf_done(&text);
        admin_pages_answer_error(request, err, &detail);
    }
}

void admin_pages_group_picture(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct bytes query = http_request_query(request);
    struct err_detail detail = {0};
    struct buf name;
    struct buf format;
    struct buf text;
    buf_init(&name, NAME_SIZE_MAX);
    buf_init(&format, FORMAT_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    bool is_svg = !form_get(query, "format", &format) || bytes_equal(buf_bytes(&format), BYTES("svg"));
    bool is_dot = bytes_equal(buf_bytes(&format), BYTES("dot"));
    enum err err = ERR_OK;
    if (!is_svg && !is_dot) {
        err = err_set(&detail, ERR_INVALID, "\"format\" is svg or dot");
    } else if (!form_get(query, "group", &name) || name.err != ERR_OK) {
        err = err_set(&detail, ERR_INVALID, "which group? /api/v1/groups/picture?group=NAME");
    }
    err = err == ERR_OK ? admin_pages->table->put_group_picture(admin_pages->context, buf_bytes(&name),
                                                                is_dot, &text, &detail)
                        : err;
    if (err == ERR_OK) {
        http_answer(request, STATUS_OK, is_dot ? "text/vnd.graphviz" : "image/svg+xml", buf_bytes(&text));
    } else {
        admin_pages_answer_error(request, err, &detail);
    }
    buf_done(&name);
    buf_done(&format);
    buf_done(&text);
}
