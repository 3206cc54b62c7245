#include "crawl/fetch/fetch.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "crawl/fetch/fetch_state.h"

enum {
    TRANSFERS_MAX_DEFAULT = 1000,
    TRANSFERS_MAX_MAX = 1 << 16,
    FREE_COUNT_MAX = 256, /* transfers with their handles, kept for the next ones */
    HOSTS_COUNT_MIN = 4096,
    HANDLES_COUNT = FETCH_SOCKETS_HANDLES + 1,
    SWEEP_MS_MAX = 250,
    SWEEP_MS_MIN = 5,
};

static uint64_t or_default(uint64_t value, uint64_t otherwise) {
    return value != 0 ? value : otherwise;
}

static void fill_config(struct fetch_config *config) {
    const uint64_t second_us = 1000000;
    config->connect_timeout_us = or_default(config->connect_timeout_us, 20 * second_us);
    config->first_byte_timeout_us = or_default(config->first_byte_timeout_us, 30 * second_us);
    config->stall_timeout_us = or_default(config->stall_timeout_us, 30 * second_us);
    config->slow_timeout_us = or_default(config->slow_timeout_us, 60 * second_us);
    config->slow_size_min = or_default(config->slow_size_min, 6000);
    config->total_timeout_us = or_default(config->total_timeout_us, 3600 * second_us);
    config->body_size_max = or_default(config->body_size_max, UINT64_C(4) << 30);
    config->transfers_max = (size_t)or_default(config->transfers_max, TRANSFERS_MAX_DEFAULT);
    if (config->transfers_max > TRANSFERS_MAX_MAX) {
        config->transfers_max = TRANSFERS_MAX_MAX;
    }
}

/* Often enough for the shortest of the time-outs. */
static uint64_t sweep_ms_of(const struct fetch_config *config) {
    const uint64_t timeouts_us[] = {config->connect_timeout_us, config->first_byte_timeout_us,
                                    config->stall_timeout_us, config->slow_timeout_us,
                                    config->total_timeout_us};
    uint64_t sweep_ms = SWEEP_MS_MAX;
    for (size_t i = 0; i < sizeof timeouts_us / sizeof timeouts_us[0]; i++) {
        uint64_t part_ms = timeouts_us[i] / 10 / 1000;
        sweep_ms = part_ms < sweep_ms ? part_ms : sweep_ms;
    }
    return sweep_ms < SWEEP_MS_MIN ? SWEEP_MS_MIN : sweep_ms;
}

static enum err check_proxy(struct fetch *fetch, struct err_detail *detail) {
    static const struct {
        const char *scheme;
        bool is_http;
    } known[] = {{"http://", true}, {"socks4a://", false}, {"socks5h://", false}};
    if (fetch->config.proxy == NULL) {
        return ERR_OK;
    }
    struct bytes proxy = bytes_of_string(fetch->config.proxy);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (bytes_starts_with(proxy, bytes_of_string(known[i].scheme))) {
            fetch->is_proxy_http = known[i].is_http;
            return ERR_OK;
        }
    }
    return err_set(detail, ERR_INVALID,
                   "the proxy \"%.*s\" must begin with http://, socks4a:// or socks5h://", BYTES_ARG(proxy));
}

/* ---- lists ---- */

static void push(struct fetch_transfer **list, struct fetch_transfer *transfer) {
    transfer->previous = NULL;
    transfer->next = *list;
    if (*list != NULL) {
        (*list)->previous = transfer;
    }
    *list = transfer;
}

static void unlist(struct fetch_transfer **list, struct fetch_transfer *transfer) {
    *(transfer->previous == NULL ? list : &transfer->previous->next) = transfer->next;
    if (transfer->next != NULL) {
        transfer->next->previous = transfer->previous;
    }
}

/* ---- the end of a transfer ---- */

static void release(struct fetch *fetch, struct fetch_transfer *transfer) {
    if (transfer->is_told) {
        curl_easy_setopt(transfer->easy, CURLOPT_RESOLVE, NULL);
    }
    if (fetch->free_count < FREE_COUNT_MAX) {
        push(&fetch->free_ones, transfer);
        fetch->free_count++;
    } else {
        fetch_transfer_free(transfer);
    }
}

static void fill_times(struct fetch_transfer *transfer) {
    struct fetch_result *result = transfer->result;
    result->total_us = clock_monotonic_us(&clock_system) - transfer->start_us;
    if (transfer->sent_us == 0) {
        return;
    }
    if (result->is_connection_new) {
        result->connect_us = transfer->sent_us - transfer->start_us;
    }
    if (transfer->first_byte_us > transfer->sent_us) {
        result->first_byte_us = transfer->first_byte_us - transfer->sent_us;
    }
    transfer->fetch->sent_size += result->request.size;
}

/* The result is filled in: hand it over. The transfer is in no list any more. */
static void finish(struct fetch *fetch, struct fetch_transfer *transfer) {
    struct fetch_result *result = transfer->result;
    fetch_done *done = transfer->done;
    void *context = transfer->context;
    fill_times(transfer);
    if (transfer->is_added) {
        curl_multi_remove_handle(fetch->multi, transfer->easy);
        transfer->is_added = false;
    }
    if (transfer->is_told && transfer->sent_us == 0) {
        fetch_hosts_doubt(transfer->host);
    }
    fetch_hosts_leave(transfer->host);
    transfer->host = NULL;
    transfer->result = NULL;
    curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 0L);
    release(fetch, transfer);
    fetch->running_count--;
    if (fetch->running_count == 0) {
        uv_timer_stop(&fetch->sweep);
    }
    bool was_in_done = fetch->is_in_done;
    fetch->is_in_done = true;
    done(context, result);
    fetch->is_in_done = was_in_done;
}

static void finish_failed(struct fetch *fetch) {
    while (fetch->failed != NULL) {
        struct fetch_transfer *transfer = fetch->failed;
        unlist(&fetch->failed, transfer);
        finish(fetch, transfer);
    }
}

static void on_ready(void *context) {
    struct fetch *fetch = context;
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(fetch->multi, &left)) != NULL;) {
        char *private = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct fetch_transfer *transfer = (struct fetch_transfer *)(void *)private;
        fetch_transfer_judge(transfer, code);
        unlist(&fetch->running, transfer);
        finish(fetch, transfer);
    }
}

static void on_sweep(uv_timer_t *timer) {
    struct fetch *fetch = timer->data;
    struct fetch_transfer *late = NULL;
    struct fetch_transfer *next;
    finish_failed(fetch);
    uint64_t now_us = clock_monotonic_us(&clock_system); /* after all that done() has started */
    uint64_t now_ms = uv_now(fetch->config.loop);
    /* done() may start others: first collect, then tell. */
    for (struct fetch_transfer *transfer = fetch->running; transfer != NULL; transfer = next) {
        next = transfer->next;
        if (fetch_transfer_is_late(transfer, now_us, now_ms)) {
            dns_cancel(&transfer->question);
            unlist(&fetch->running, transfer);
            push(&late, transfer);
        }
    }
    while (late != NULL) {
        struct fetch_transfer *transfer = late;
        unlist(&late, transfer);
        finish(fetch, transfer);
    }
    if (fetch->running_count > 0) {
        uv_timer_start(&fetch->sweep, on_sweep, fetch->failed != NULL ? 0 : fetch->sweep_ms, 0);
    }
}

void fetch_abandon(struct fetch_transfer *transfer) {
    struct fetch *fetch = transfer->fetch;
    unlist(&fetch->running, transfer);
    push(&fetch->failed, transfer);
    uv_timer_start(&fetch->sweep, on_sweep, 0, 0);
}

/* ---- the engine ---- */

/* Idle connections are kept for later, but not at the expense of transfers that need a file now. */
static long connections_max(const struct fetch_config *config) {
    size_t count = config->transfers_max * 2;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < count) {
        count = limit.rlim_cur / 2;
    }
    return count > 1 ? (long)count : 1;
}

static enum err open_multi(struct fetch *fetch, struct err_detail *detail) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    fetch->multi = curl_multi_init();
    if (fetch->multi == NULL) {
        curl_global_cleanup();
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    curl_multi_setopt(fetch->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(fetch->multi, CURLMOPT_MAXCONNECTS, connections_max(&fetch->config));
    enum err err =
        fetch_sockets_init(&fetch->sockets, fetch->config.loop, fetch->multi, on_ready, fetch, detail);
    if (err != ERR_OK) {
        curl_multi_cleanup(fetch->multi);
        curl_global_cleanup();
    }
    return err;
}

enum err fetch_new(const struct fetch_config *config, struct fetch **ret_fetch, struct err_detail *detail) {
    ASSERT(config->loop != NULL && config->dns != NULL && config->scratch_directory != NULL);
    uint64_t seed;
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (fetch == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    fetch->config = *config;
    fill_config(&fetch->config);
    fetch->sweep_ms = sweep_ms_of(&fetch->config);
    enum err err = check_proxy(fetch, detail);
    if (err == ERR_OK && uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL) != 0) {
        err = err_set(detail, ERR_SYSTEM, "the system gives no random numbers");
    }
    err = err == ERR_OK ? fetch_message_init(&fetch->message, &fetch->config, detail) : err;
    if (err != ERR_OK) {
        free(fetch);
        return err;
    }
    err = http_head_init(&fetch->head);
    err = err == ERR_OK ? open_multi(fetch, detail) : err_set(detail, err, "%s", err_text(err));
    if (err != ERR_OK) {
        http_head_done(&fetch->head);
        fetch_message_done(&fetch->message);
        free(fetch);
        return err;
    }
    size_t hosts_max = fetch->config.transfers_max * 2;
    fetch_hosts_init(&fetch->hosts, hosts_max > HOSTS_COUNT_MIN ? hosts_max : HOSTS_COUNT_MIN, seed);
    fetch_trust_init(&fetch->trust, config->refuses_bad_certificates);
    uv_timer_init(config->loop, &fetch->sweep);
    fetch->sweep.data = fetch;
    fetch->sockets.poll.data = fetch->sockets.timer.data = &fetch->sockets;
    fetch->open_handles_count = HANDLES_COUNT;
    *ret_fetch = fetch;
    return ERR_OK;
}

static void on_handle_closed(struct fetch *fetch) {
    if (--fetch->open_handles_count == 0) {
        fetch_sockets_done(&fetch->sockets);
        free(fetch);
    }
}

static void on_sweep_closed(uv_handle_t *handle) {
    on_handle_closed(handle->data);
}

static void on_sockets_closed(uv_handle_t *handle) {
    struct fetch_sockets *sockets = handle->data;
    on_handle_closed(sockets->context);
}

static void cancel_all(struct fetch *fetch) {
    finish_failed(fetch);
    while (fetch->running != NULL) {
        struct fetch_transfer *transfer = fetch->running;
        dns_cancel(&transfer->question);
        fetch_transfer_fail(transfer, ERR_CANCELLED, true, "%s", err_text(ERR_CANCELLED));
        unlist(&fetch->running, transfer);
        finish(fetch, transfer);
    }
}

void fetch_cancel(struct fetch *fetch) {
    ASSERT(!fetch->is_in_done && !fetch->sockets.is_running);
    cancel_all(fetch);
}

void fetch_free(struct fetch *fetch) {
    if (fetch == NULL) {
        return;
    }
    ASSERT(!fetch->is_in_done && !fetch->sockets.is_running);
    cancel_all(fetch);
    while (fetch->free_ones != NULL) {
        struct fetch_transfer *transfer = fetch->free_ones;
        unlist(&fetch->free_ones, transfer);
        fetch_transfer_free(transfer);
    }
    curl_multi_cleanup(fetch->multi);
    curl_global_cleanup();
    http_head_done(&fetch->head);
    fetch_message_done(&fetch->message);
    fetch_hosts_done(&fetch->hosts);
    fetch_trust_done(&fetch->trust);
    uv_close((uv_handle_t *)&fetch->sweep, on_sweep_closed);
    fetch_sockets_close(&fetch->sockets, on_sockets_closed);
}

static struct fetch_transfer *take_transfer(struct fetch *fetch) {
    struct fetch_transfer *transfer = fetch->free_ones;
    if (transfer == NULL) {
        return fetch_transfer_new(fetch);
    }
    unlist(&fetch->free_ones, transfer);
    fetch->free_count--;
    return transfer;
}

enum err fetch_start(struct fetch *fetch, const struct fetch_request *request, fetch_done *done,
                     void *context) {
    if (fetch->running_count >= fetch->config.transfers_max) {
        return ERR_LIMIT;
    }
    struct fetch_result *result = calloc(1, sizeof *result);
    struct fetch_transfer *transfer = result == NULL ? NULL : take_transfer(fetch);
    if (transfer == NULL) {
        free(result);
        return ERR_MEMORY;
    }
    transfer->done = done;
    transfer->context = context;
    transfer->result = result;
    push(&fetch->running, transfer);
    if (fetch->running_count++ == 0) {
        uv_timer_start(&fetch->sweep, on_sweep, fetch->sweep_ms, 0);
    }
    if (fetch_transfer_begin(transfer, request) != ERR_OK) {
        fetch_abandon(transfer);
    }
    return ERR_OK;
}

void fetch_raise_descriptors_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit); /* if it is refused, it stays as it is */
    }
}

void fetch_stat(const struct fetch *fetch, struct fetch_stat *ret_stat) {
    *ret_stat = (struct fetch_stat){
        .running_count = fetch->running_count,
        .connections_count = fetch->sockets.open_count,
        .received_size = fetch->received_size,
        .sent_size = fetch->sent_size,
    };
}

void fetch_result_free(struct fetch_result *result) {
    if (result != NULL) {
        buf_done(&result->request);
        buf_done(&result->head);
        scratch_done(&result->body);
        free(result);
    }
}
