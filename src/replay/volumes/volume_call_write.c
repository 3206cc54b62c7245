#include "replay/volumes/volume_call.h"
#include "store/remote/backend_code.h"

enum { TRIES_MAX = 16 }; /* as volume_put() */

/* In the committer's thread. The request is no longer ours when it is resumed. */
static void on_committed(void *context, enum err err, const struct stored *stored) {
    struct volume_call *call = context;
    call->err = err;
    if (err == ERR_OK) {
        call->stored = *stored;
    }
    http_request_resume(call->request);
}

/* The document of the request, its body in the kit's memory where it came compressed. */
static enum err unpack(const struct volume_call *call, struct volume_kit *kit,
                       struct backend_code_document *received, struct err_detail *detail) {
    enum err err = backend_code_read_document(call->body, received, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (received->form == BACKEND_CODE_PLAIN) {
        received->document.body = received->body;
    } else if (received->form == BACKEND_CODE_LEFT_OUT) {
        received->document.sum = &received->sum;
    } else {
        err = pack_payload_unpack(&kit->pack_payload, received->body, received->sum.size, &kit->body, detail);
        if (err == ERR_OK && kit->body.size != received->sum.size) {
            err = err_set(detail, ERR_INVALID, "the body has another size than stated");
        }
        if (err == ERR_OK) {
            err = scratch_bytes(&kit->body, &received->document.body);
        }
    }
    return err;
}

static enum err submit(struct volume_call *call, struct volume_kit *kit) {
    struct backend_code_document received;
    enum err err = unpack(call, kit, &received, &call->detail);
    if (err != ERR_OK) {
        call->is_refused = true;
        return err;
    }
    call->mode = call->tries_count == 0 ? received.mode : call->mode;
    call->is_left_out = received.form == BACKEND_CODE_LEFT_OUT;
    call->tries_count++;
    return volume_submit(kit->writer, &received.document, call->mode, on_committed, call, &call->detail);
}

/* The document of a suspended request goes to the committer, which resumes it. */
static void volume_call_take_in(void *context, size_t seat) {
    struct volume_call *call = context;
    (void)seat;
    struct volume_kits *kits = call->kits;
    struct volume_kit *kit = volume_kits_take(kits);
    enum err err = kit != NULL ? submit(call, kit) : ERR_MEMORY;
    if (kit != NULL) {
        volume_kits_give_back(kits, kit);
    }
    if (err != ERR_OK) {
        on_committed(call, err, NULL);
    }
}

/* The last answer of the volume is in call->err: shall it be asked once more, and how? */
static bool is_to_be_tried_again(struct volume_call *call) {
    bool may_try = call->tries_count < TRIES_MAX && !call->is_left_out && !call->is_refused;
    if (call->err == ERR_CORRUPT && call->mode != STORE_FORCE_NEW && may_try) {
        call->mode = STORE_FORCE_NEW; /* what it would be a duplicate of is damaged: keep this one */
        return true;
    }
    return call->err == ERR_BUSY && may_try;
}

static enum err answer_stored(struct volume_call *call) {
    struct buf out;
    buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
    backend_code_put_stored(&out, &call->stored);
    enum err err = volume_call_answer(call, &out);
    buf_done(&out);
    return err;
}

/* Called with the request whole, and again each time that the committer is done with it. */
enum err volume_call_put(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit; /* the work is a writer's */
    if (call->is_submitted && call->err == ERR_OK) {
        return answer_stored(call);
    }
    if (call->is_submitted && !is_to_be_tried_again(call)) {
        bool is_gone = call->err == ERR_BUSY || call->err == ERR_CORRUPT;
        *detail = call->detail;
        return is_gone && call->is_left_out ? ERR_NOT_FOUND : call->err;
    }
    enum err err = http_request_body(call->request, &call->body);
    if (err != ERR_OK) {
        return err;
    }
    call->is_submitted = true;
    http_request_suspend(call->request); /* before the committer can resume it */
    call->job = (struct pool_job){.run = volume_call_take_in, .context = call};
    bool is_taken = pool_try(call->writers, &call->job);
    ASSERT(is_taken); /* they end after the last request */
    return ERR_OK;
}

enum err volume_call_remove(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    if (call->is_submitted && call->err == ERR_OK) {
        struct buf nothing;
        buf_init(&nothing, 1);
        return volume_call_answer(call, &nothing);
    }
    if (call->is_submitted) {
        *detail = call->detail;
        return call->err == ERR_BUSY ? ERR_NOT_FOUND : call->err;
    }
    struct key key;
    enum err err = volume_call_key(call, &key, detail);
    if (err != ERR_OK) {
        return err;
    }
    call->is_submitted = true;
    http_request_suspend(call->request);
    err = volume_submit_remove(kit->writer, &key, on_committed, call, detail);
    if (err != ERR_OK) {
        call->detail = *detail;
        on_committed(call, err, NULL);
    }
    return ERR_OK;
}
