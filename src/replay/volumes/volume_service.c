#include "replay/volumes/volume_service.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "base/json.h"
#include "replay/volumes/volume_call.h"
#include "replay/volumes/volume_guest.h"
#include "store/remote/backend_code.h"

#define ROOT "/api/v1/volumes"

enum { LIST_SIZE_MAX = 1 << 20, WRITERS_MAX = 4 };

struct offered {
    uint16_t number;
    struct volume_kits kits; /* of it */
};

struct volume_service {
    char token[VOLUME_SERVICE_TOKEN_SIZE_MAX];
    struct pool writers;
    struct instance *instance; /* for its guest; NULL: none is offered */
    struct offered guest_as;   /* of the guest: the number, and a place for files */
    size_t volumes_count;
    struct offered volumes[];
};

/* ---- the paths ---- */

/* The time that this takes does not depend on how much of the token is right. */
static bool volumes_is_allowed(struct http_request *request) {
    const struct volume_service *service = http_request_context(request);
    struct bytes token = bytes_of_string(service->token);
    struct bytes given = http_request_header(request, "Authorization");
    struct bytes scheme = BYTES("Bearer ");
    const char *text = "this needs a token: send Authorization: Bearer TOKEN";
    if (given.size > scheme.size && bytes_starts_with_ignore_case(given, scheme)) {
        given = bytes_trim(bytes_skip(given, scheme.size));
        if (given.size == token.size && CRYPTO_memcmp(given.data, token.data, token.size) == 0) {
            return true;
        }
        text = "the token is wrong";
    }
    http_add_header(request, "WWW-Authenticate", "Bearer realm=\"volumes\"");
    http_answer_status(request, STATUS_UNAUTHORIZED, ERR_PERMISSION, text);
    return false;
}

static struct offered *find_volume(struct volume_service *service, struct bytes text) {
    uint64_t number;
    if (!bytes_to_u64(text, INSTANCE_GUEST_NUMBER, &number)) {
        return NULL;
    }
    for (size_t i = 0; i < service->volumes_count; i++) {
        if (service->volumes[i].number == number) {
            return &service->volumes[i];
        }
    }
    bool is_guest = number == INSTANCE_GUEST_NUMBER && service->instance != NULL &&
                    instance_guest(service->instance) != NULL;
    return is_guest ? &service->guest_as : NULL;
}

/* "0/documents/ba78…": which volume, what with it, what of it. */
static void begin_call(struct http_request *request) {
    if (!volumes_is_allowed(request)) {
        return;
    }
    struct volume_service *service = http_request_context(request);
    struct bytes rest = http_request_rest(request);
    struct bytes number = {NULL, 0};
    struct bytes name = {NULL, 0};
    bytes_split(&rest, '/', &number);
    bytes_split(&rest, '/', &name);
    struct offered *offered = find_volume(service, number);
    const struct volume_page *page = volume_page_find(http_request_method(request), name, rest.data != NULL);
    if (offered == NULL) {
        /* Not ERR_NOT_FOUND: that is said of documents. */
        http_answer_status(request, STATUS_NOT_FOUND, ERR_MISMATCH,
                           "there is no volume with that number here");
        return;
    }
    bool is_guest = offered == &service->guest_as;
    if (page == NULL || (is_guest && !volume_guest_has(page))) {
        http_answer_status(request, STATUS_NOT_FOUND, ERR_UNSUPPORTED, "a volume has no such page");
        return;
    }
    struct volume_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    *call = (struct volume_call){
        .request = request,
        .writers = &service->writers,
        .number = offered->number,
        .kits = &offered->kits,
        .page = page,
        .argument = rest,
        .is_guest = is_guest,
    };
    http_request_set_state(request, call);
    http_request_limit_body(request, page->body_size_max);
}

static void answer_guest(struct http_request *request, struct volume_call *call) {
    const struct volume_service *service = http_request_context(request);
    struct err_detail detail = {0};
    if (!http_request_is_on_worker(request)) {
        http_request_put_off(request); /* other nodes may have to be asked */
        return;
    }
    enum err err = volume_guest_answer(call, instance_guest(service->instance), &detail);
    if (err != ERR_OK) {
        http_answer_error(request, err, err_detail_text(&detail, err));
    }
}

static void answer_call(struct http_request *request) {
    struct volume_call *call = http_request_state(request);
    if (call->is_guest) {
        answer_guest(request, call);
        return;
    }
    struct volume_kit *kit = volume_kits_take(call->kits);
    if (kit == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    struct err_detail detail = {0};
    enum err err = call->page->answer(call, kit, &detail);
    if (err != ERR_OK) {
        http_answer_error(request, err, err_detail_text(&detail, err));
    }
    volume_kits_give_back(call->kits, kit);
}

static void end_call(struct http_request *request) {
    free(http_request_state(request));
}

/* ---- the list ---- */

static void begin_list(struct http_request *request) {
    (void)volumes_is_allowed(request);
}

static void answer_list(struct http_request *request) {
    struct volume_service *service = http_request_context(request);
    struct buf out;
    struct json json;
    buf_init(&out, LIST_SIZE_MAX);
    json_begin(&json, &out);
    json_open_list(&json, "volumes");
    for (size_t i = 0; i < service->volumes_count; i++) {
        struct volume_stat stat;
        volume_stat(service->volumes[i].kits.volume, &stat);
        json_open(&json, NULL);
        JSON_COUNTS(&json, {"number", service->volumes[i].number}, {"documents", stat.blocks_count},
                    {"captures", stat.captures_count}, {"segments", stat.segments_count}, {"size", stat.size},
                    {"dead_size", stat.dead_size}, {"index_size", stat.index_size});
        json_close(&json);
    }
    json_end(&json);
    http_answer_json(request, STATUS_OK, "no-store", &out);
}

/* ---- the service ---- */

struct volume_service *volume_service_new(const struct volume_service_config *config) {
    ASSERT(config->token[0] != '\0' && strlen(config->token) < VOLUME_SERVICE_TOKEN_SIZE_MAX);
    struct volume_service *service =
        calloc(1, sizeof *service + config->volumes_count * sizeof *service->volumes);
    if (service == NULL) {
        return NULL;
    }
    /* As many as there are processors of a usual node: they compute, and wait for the disk if that is full.
     * Their queue needs no bound: a request waits in it, and the server bounds those. */
    struct pool_config writers = {
        .name = "volume-writer", .threads_max = WRITERS_MAX, .priority = PRIORITY_BEHIND};
    if (pool_start(&service->writers, &writers) != ERR_OK) {
        free(service);
        return NULL;
    }
    strcpy(service->token, config->token);
    service->volumes_count = config->volumes_count;
    service->instance = config->instance;
    service->guest_as = (struct offered){.number = INSTANCE_GUEST_NUMBER,
                                         .kits = {.scratch_directory = config->scratch_directory}};
    for (size_t i = 0; i < config->volumes_count; i++) {
        struct offered *offered = &service->volumes[i];
        offered->number = config->volumes[i].number;
        volume_kits_init(&offered->kits, config->volumes[i].volume, config->scratch_directory);
    }
    return service;
}

void volume_service_free(struct volume_service *service) {
    pool_stop(&service->writers);
    for (size_t i = 0; i < service->volumes_count; i++) {
        volume_kits_done(&service->volumes[i].kits);
    }
    free(service);
}

void volume_service_routes(struct volume_service *service,
                           struct http_route out[VOLUME_SERVICE_ROUTES_COUNT]) {
    static const char *const methods[] = {"GET", "POST", "DELETE"};
    out[0] = (struct http_route){
        .method = "GET", .path = ROOT, .context = service, .begin = begin_list, .answer = answer_list};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        out[1 + i] = (struct http_route){
            .method = methods[i],
            .path = ROOT "/*",
            .body_size_max =
                strcmp(methods[i], "POST") == 0 ? VOLUME_DOCUMENT_SIZE_MAX + BACKEND_CODE_META_SIZE_MAX : 0,
            .context = service,
            .begin = begin_call,
            .answer = answer_call,
            .end = end_call,
        };
    }
}
