#include "store/remote/backend_page.h"

/* Captures of one SURT and time stay on one page, up to here; more of them nobody has. */
enum { PAGE_SIZE_MAX = 768 << 10 };

/* What a page is made with. */
struct paging {
    struct buf surt; /* of the capture before */
    int64_t time_us; /* likewise */
    struct buf next; /* where the next page begins */
    uint32_t count;
};

static enum err set_next(struct paging *paging, struct bytes surt, int64_t time_us) {
    buf_clear(&paging->next);
    index_put_capture_prefix(&paging->next, surt, time_us);
    return paging->next.err;
}

static bool is_neighbour(const struct paging *paging, const struct capture *capture) {
    return paging->count > 0 && capture->time_us == paging->time_us &&
           bytes_equal(capture->surt, buf_bytes(&paging->surt));
}

/* Until the page is full, which sets where the next begins, or the source ends. */
static enum err fill_page(struct paging *paging, struct buf *page, const struct backend_code_walk *walk,
                          backend_page_next *next, void *source, struct err_detail *detail) {
    struct capture capture;
    size_t start = page->size;
    enum err err;
    while ((err = next(source, &capture, detail)) == ERR_OK) {
        bool is_full = paging->count >= walk->count_max || page->size - start >= BACKEND_CODE_PAGE_SIZE;
        if (is_full && !is_neighbour(paging, &capture)) {
            return set_next(paging, capture.surt, capture.time_us + walk->in_reverse);
        }
        buf_clear(&paging->surt);
        buf_put(&paging->surt, capture.surt);
        paging->time_us = capture.time_us;
        if (page->size - start < PAGE_SIZE_MAX) {
            backend_code_put_capture(page, &capture, walk->flags);
        }
        paging->count++;
    }
    if (err == ERR_UNREACHABLE && paging->count > 0) {
        return set_next(paging, buf_bytes(&paging->surt), paging->time_us + !walk->in_reverse);
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err backend_page_put(struct buf *page, const struct backend_code_walk *walk, backend_page_next *next,
                          void *source, struct err_detail *detail) {
    struct paging paging = {.count = 0};
    buf_init(&paging.surt, INDEX_SURT_SIZE_MAX);
    buf_init(&paging.next, BACKEND_CODE_KEY_SIZE_MAX);
    enum err err = fill_page(&paging, page, walk, next, source, detail);
    if (err == ERR_OK) {
        struct backend_code_page_end end = {.is_end = paging.next.size == 0, .next = buf_bytes(&paging.next)};
        backend_code_put_page_end(page, &end);
        err = page->err != ERR_OK ? page->err : paging.surt.err;
    }
    buf_done(&paging.surt);
    buf_done(&paging.next);
    return err;
}
