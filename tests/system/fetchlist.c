/*
 * fetchlist [option…] - fetches the URLs on standard input, one a line, and prints one JSON line for each
 * when it is done. After a tab, a line may have the value of If-None-Match, after another that of
 * If-Modified-Since.
 *
 *      --lanes N                 so many at once (1); line k belongs to lane k mod N, a lane goes in order
 *      --pause-ms N              between two of a lane (0)
 *      --hold-ms N               stay with idle connections at the end (0), then print the statistics
 *      --quiet                   only the statistics at the end
 *      --nameserver ADDRESS  --allow-private  --refuse-bad-certificates  --header LINE  --proxy URL
 *      --login URL               with user and password, for its origin
 *      --user-agent TEXT  --directory DIR  --body-max N  --dns-ms N  --connect-ms N  --first-byte-ms N
 * --stall-ms N
 *      --slow-ms N  --total-ms N  --ttl-ms N
 *
 * Bytes are printed as \u00XX, one a byte.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "crawl/fetch/fetch.h"
#include "crawl/fetch/logins.h"
#include "net/dns.h"

enum { LINES_MAX = 1 << 20, HEADERS_MAX = 16, LANES_MAX = 1 << 14 };

struct lane {
    struct program *program;
    uv_timer_t timer;
    size_t next; /* line */
    size_t current;
    uint64_t start_ms;
};

struct program {
    uv_loop_t loop;
    struct dns *dns;
    struct fetch *fetch;
    struct fetch_config config;
    struct dns_config dns_config;
    const char *headers[HEADERS_MAX + 1];
    size_t headers_count;
    struct logins logins;
    char **lines;
    size_t lines_count;
    struct lane *lanes;
    size_t lanes_count;
    uint64_t pause_ms;
    uint64_t hold_ms;
    bool is_quiet;
    size_t done_count;
    size_t failed_count;
    uint64_t body_size;
    uv_timer_t hold;
};

static void put_bytes(const char *name, struct bytes bytes) {
    printf(",\"%s\":\"", name);
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t byte = bytes.data[i];
        bool is_plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
        printf(is_plain ? "%c" : "\\u%04x", byte);
    }
    printf("\"");
}

static void put_result(size_t line, struct fetch_result *result) {
    static const char *const ends[] = {"whole", "too_long", "too_slow", "disconnected"};
    static const char *const trusts[] = {"none", "good", "bad"};
    struct bytes body = {NULL, 0};
    printf("{\"line\":%zu,\"err\":\"%s\",\"worth_retry\":%s,\"status\":%u", line, err_name(result->err),
           result->is_worth_retry ? "true" : "false", result->status);
    put_bytes("detail", bytes_of_string(result->detail.text));
    printf(",\"end\":\"%s\",\"tls\":\"%s\"", ends[result->end], trusts[result->tls]);
    put_bytes("tls_reason", bytes_of_string(result->tls_reason));
    put_bytes("ip", bytes_of_string(result->ip));
    put_bytes("request", buf_bytes(&result->request));
    put_bytes("head", buf_bytes(&result->head));
    if (scratch_bytes(&result->body, &body) == ERR_OK) {
        put_bytes("body", bytes_slice(body, 0, body.size < 65536 ? body.size : 65536));
    }
    printf(",\"body_size\":%llu,\"is_in_memory\":%s,\"new\":%s,\"connect_us\":%llu,\"first_byte_us\":%llu,"
           "\"total_us\":%llu,\"time_us\":%lld}\n",
           (unsigned long long)result->body.size, scratch_is_in_memory(&result->body) ? "true" : "false",
           result->is_connection_new ? "true" : "false", (unsigned long long)result->connect_us,
           (unsigned long long)result->first_byte_us, (unsigned long long)result->total_us,
           (long long)result->time_us);
    fflush(stdout);
}

static void on_pause(uv_timer_t *timer);

static void start_next(struct lane *lane);

static void on_done(void *context, struct fetch_result *result) {
    struct lane *lane = context;
    struct program *program = lane->program;
    program->done_count++;
    program->failed_count += result->err != ERR_OK;
    program->body_size += result->body.size;
    if (!program->is_quiet) {
        put_result(lane->current, result);
    }
    fetch_result_free(result);
    if (program->pause_ms > 0 && lane->next < program->lines_count) {
        uv_timer_start(&lane->timer, on_pause, program->pause_ms, 0);
    } else {
        start_next(lane);
    }
}

static void on_pause(uv_timer_t *timer) {
    start_next(timer->data);
}

static struct bytes part_of(struct bytes *rest) {
    struct bytes part = {NULL, 0};
    (void)bytes_split(rest, '\t', &part);
    return part;
}

static void start_next(struct lane *lane) {
    struct program *program = lane->program;
    if (lane->next >= program->lines_count) {
        return;
    }
    struct bytes rest = bytes_of_string(program->lines[lane->next]);
    struct fetch_request request = {0};
    request.url = part_of(&rest);
    request.if_none_match = part_of(&rest);
    request.if_modified_since = part_of(&rest);
    lane->current = lane->next;
    lane->next += program->lanes_count;
    enum err err = fetch_start(program->fetch, &request, on_done, lane);
    if (err != ERR_OK) {
        fprintf(stderr, "fetchlist: %s\n", err_text(err));
        exit(1);
    }
}

static void read_lines(struct program *program) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    program->lines = calloc(LINES_MAX, sizeof *program->lines);
    while (program->lines_count < LINES_MAX && (size = getline(&line, &capacity, stdin)) > 0) {
        line[size - 1] = line[size - 1] == '\n' ? '\0' : line[size - 1];
        program->lines[program->lines_count++] = strdup(line);
    }
    free(line);
}

static bool take_option(struct program *program, const char *name, const char *value) {
    const struct {
        const char *name;
        uint64_t *place;
        uint64_t factor;
    } numbers[] = {
        {"pause-ms", &program->pause_ms, 1},
        {"hold-ms", &program->hold_ms, 1},
        {"body-max", &program->config.body_size_max, 1},
        {"dns-ms", &program->dns_config.timeout_us, 1000},
        {"ttl-ms", &program->dns_config.ttl_min_us, 1000},
        {"connect-ms", &program->config.connect_timeout_us, 1000},
        {"first-byte-ms", &program->config.first_byte_timeout_us, 1000},
        {"stall-ms", &program->config.stall_timeout_us, 1000},
        {"slow-ms", &program->config.slow_timeout_us, 1000},
        {"total-ms", &program->config.total_timeout_us, 1000},
    };
    const struct {
        const char *name;
        const char **place;
    } texts[] = {
        {"nameserver", &program->dns_config.nameservers},
        {"proxy", &program->config.proxy},
        {"user-agent", &program->config.user_agent},
        {"directory", &program->config.scratch_directory},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].place = strtoull(value, NULL, 10) * numbers[i].factor;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].place = value;
            return true;
        }
    }
    return false;
}

static void add_login(struct program *program, const char *text) {
    struct url url;
    struct err_detail detail = {0};
    url_init(&url);
    if (url_parse(&url, bytes_of_string(text), NULL, &detail) != ERR_OK ||
        logins_add(&program->logins, &url, &detail) != ERR_OK) {
        fprintf(stderr, "fetchlist: %s\n", detail.text);
        exit(2);
    }
    url_done(&url);
}

static void read_options(struct program *program, int count, char **words) {
    program->lanes_count = 1;
    program->config.scratch_directory = "/tmp";
    for (int i = 1; i < count; i++) {
        const char *name = words[i] + (strncmp(words[i], "--", 2) == 0 ? 2 : 0);
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(name, "quiet") == 0) {
            program->is_quiet = true;
        } else if (strcmp(name, "allow-private") == 0) {
            program->config.allows_private = true;
        } else if (strcmp(name, "refuse-bad-certificates") == 0) {
            program->config.refuses_bad_certificates = true;
        } else if (strcmp(name, "lanes") == 0) {
            program->lanes_count = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(name, "header") == 0 && program->headers_count < HEADERS_MAX) {
            program->headers[program->headers_count++] = value;
            i++;
        } else if (strcmp(name, "login") == 0) {
            add_login(program, value);
            i++;
        } else if (take_option(program, name, value)) {
            i++;
        } else {
            fprintf(stderr, "fetchlist: unknown option %s\n", words[i]);
            exit(2);
        }
    }
    program->config.headers = program->headers;
    program->config.logins = &program->logins;
    program->config.transfers_max = program->lanes_count;
}

static void open_engine(struct program *program) {
    struct err_detail detail;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    uv_loop_init(&program->loop);
    program->config.loop = program->dns_config.loop = &program->loop;
    enum err err = dns_new(&program->dns_config, &program->dns, &detail);
    program->config.dns = program->dns;
    err = err == ERR_OK ? fetch_new(&program->config, &program->fetch, &detail) : err;
    if (err != ERR_OK) {
        fprintf(stderr, "fetchlist: %s\n", detail.text);
        exit(1);
    }
}

static void on_hold(uv_timer_t *timer) {
    (void)timer;
}

static long resident_kb(void) {
    char text[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(text, sizeof text, file) != NULL) {
        if (strncmp(text, "VmRSS:", 6) == 0) {
            kb = strtol(text + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb;
}

static void put_statistics(struct program *program, uint64_t start_ns) {
    struct fetch_stat stat;
    fetch_stat(program->fetch, &stat);
    printf("{\"done\":%zu,\"failed\":%zu,\"body_size\":%llu,\"connections\":%llu,\"received\":%llu,\"sent\":%"
           "llu,"
           "\"seconds\":%.3f,\"resident_kb\":%ld,\"heap_kb\":%zu}\n",
           program->done_count, program->failed_count, (unsigned long long)program->body_size,
           (unsigned long long)stat.connections_count, (unsigned long long)stat.received_size,
           (unsigned long long)stat.sent_size, (double)(uv_hrtime() - start_ns) / 1e9, resident_kb(),
           mallinfo2().uordblks / 1024);
}

int main(int argc, char **argv) {
    static struct program program;
    read_options(&program, argc, argv);
    if (program.lanes_count == 0 || program.lanes_count > LANES_MAX) {
        fprintf(stderr, "fetchlist: 1 to %d lanes\n", LANES_MAX);
        return 2;
    }
    read_lines(&program);
    open_engine(&program);
    program.lanes = calloc(program.lanes_count, sizeof *program.lanes);
    uint64_t start_ns = uv_hrtime();
    for (size_t i = 0; i < program.lanes_count; i++) {
        program.lanes[i] = (struct lane){.program = &program, .next = i};
        uv_timer_init(&program.loop, &program.lanes[i].timer);
        program.lanes[i].timer.data = &program.lanes[i];
        start_next(&program.lanes[i]);
    }
    uv_run(&program.loop, UV_RUN_DEFAULT);
    uv_timer_init(&program.loop, &program.hold);
    if (program.hold_ms > 0) {
        uv_timer_start(&program.hold, on_hold, program.hold_ms, 0);
        uv_run(&program.loop, UV_RUN_DEFAULT);
    }
    put_statistics(&program, start_ns);
    for (size_t i = 0; i < program.lanes_count; i++) {
        uv_close((uv_handle_t *)&program.lanes[i].timer, NULL);
    }
    uv_close((uv_handle_t *)&program.hold, NULL);
    fetch_free(program.fetch);
    dns_free(program.dns);
    uv_run(&program.loop, UV_RUN_DEFAULT);
    bool is_clean = uv_loop_close(&program.loop) == 0;
    for (size_t i = 0; i < program.lines_count; i++) {
        free(program.lines[i]);
    }
    free(program.lines);
    logins_done(&program.logins);
    free(program.lanes);
    return is_clean ? 0 : 1;
}
