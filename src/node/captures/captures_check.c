/* Is what somebody says of a capture true? */
#include "crawl/engine/attest.h"
#include "node/captures/captures_state.h"
#include "store/remote/backend_code.h"
#include "web/url/surt.h"

static enum err refuse(struct err_detail *detail, const char *sentence) {
    return err_set(detail, ERR_MISMATCH, "%s", sentence);
}

/* URL, time and digest must give the key. */
static enum err check_key(struct captures_session *session, const struct ringkey *key,
                          const struct document *document, const struct document_sum *sum,
                          struct err_detail *detail) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    buf_clear(&session->surt);
    if (document->url.size == 0 || canon_run(&session->canon, document->url, NULL) != ERR_OK ||
        surt_put(&session->surt, &session->canon) != ERR_OK) {
        return refuse(detail, "a capture of no URL");
    }
    position_of_surt(&session->hasher.sha256, buf_bytes(&session->surt), session->captures->config.mapping,
                     place);
    struct ringkey given = ringkey_make(place, document->time_us, sum->digest);
    return ringkey_compare(&given, key) == 0 ? ERR_OK : refuse(detail, "another capture than was asked for");
}

/*
 * A request that the signature does not cover may be anybody's: it is left out. Where nobody signed anything,
 * it is believed where the head is (is_good() in captures_fetch.c).
 */
static enum err check_signature(struct captures_session *session, struct captured *captured,
                                struct err_detail *detail) {
    struct document *document = &captured->document;
    bool covers_request;
    captured->is_signed = document->signature.size > 0;
    if (!captured->is_signed) {
        return ERR_OK;
    }
    enum err err = attest_verify(&session->hasher.sha256, &session->message, document, captured->signer,
                                 &covers_request, detail);
    if (err == ERR_OK && !covers_request) {
        document->request = bytes_of(NULL, 0);
    }
    return err;
}

enum err captures_check(struct captures_session *session, const struct ringkey *key, struct bytes description,
                        struct captured *ret_captured, struct err_detail *detail) {
    struct backend_code_document received;
    buf_clear(&session->description);
    enum err err = buf_put(&session->description, description);
    if (err != ERR_OK) {
        return err;
    }
    if (backend_code_read_document(buf_bytes(&session->description), &received, NULL) != ERR_OK ||
        received.form != BACKEND_CODE_LEFT_OUT) {
        return refuse(detail, "a description of a capture that is none");
    }
    *ret_captured = (struct captured){.document = received.document, .sum = received.sum};
    struct document *document = &ret_captured->document;
    document->sum = &ret_captured->sum;
    bool is_whole_head =
        document->head.size == 0 || record_split(&session->head, document->head) == document->head.size;
    if (!is_whole_head || (document->is_not_modified && document->head.size == 0)) {
        return refuse(detail, "a capture with an HTTP head that is none");
    }
    err = check_key(session, key, document, &ret_captured->sum, detail);
    ret_captured->surt = buf_bytes(&session->surt);
    return err == ERR_OK ? check_signature(session, ret_captured, detail) : err;
}
