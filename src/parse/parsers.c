#include "parse/parsers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/retry.h"
#include "parse/parse_host.h"
#include "parse/parsers_state.h"

enum {
    LOOK_PERIOD_US = 500000,
    LATE_US = 5000000, /* a turn of a sound parser takes milliseconds: PARSE_IN_SIZE, or PARSE_OUT_SIZE */
    STEADY_US = 10000000,
    DELAY_FIRST_US = 100000, /* before the second start in a row; the first is at once */
    DELAY_MAX_US = 30000000,
    AWAIT_US = 1000000,
    READY_MS = 30000, /* until the host is there: some milliseconds, but a machine may be busy */
    TAKE_TIMEOUT_US = 20000000,
    FILL_COUNT = 8, /* jobs that wait for one parser before another gets some */
    DEATHS_MAX = 1, /* so many parsers may end before a job that has not begun is given up too */
};

static uint64_t parsers_now_us(void) {
    return clock_monotonic_us(&clock_system);
}

/* ---- the host ---- */

static void parsers_order(struct parsers *parsers, enum parse_host_kind kind, size_t index) {
    struct parse_host_message message = {.kind = kind, .index = (uint32_t)index};
    (void)!send(parsers->fd, &message, sizeof message, MSG_NOSIGNAL);
}

/* In the new process, which becomes the host. What it is given is at descriptors that cannot be in the way.
 */
static _Noreturn void host_execute(int socket, int memory, size_t count) {
    char all[24];
    char later[24];
    snprintf(all, sizeof all, "%zu", count * PARSE_GROUPS_COUNT);
    snprintf(later, sizeof later, "%zu", count * PARSE_LATER);
    char name[] = "mnemon";
    char word[] = PARSE_HOST_WORD;
    char *const arguments[] = {name, word, all, later, NULL};
    char *const environment[] = {NULL};
    int nothing = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    socket = fcntl(socket, F_DUPFD, PARSE_HOST_MEMORY + 1);
    memory = fcntl(memory, F_DUPFD, PARSE_HOST_MEMORY + 1);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
        dup2(socket, PARSE_HOST_SOCKET) < 0 || dup2(memory, PARSE_HOST_MEMORY) < 0 ||
        close_range(PARSE_HOST_MEMORY + 1, ~0U, 0) != 0) {
        _exit(1);
    }
    execve("/proc/self/exe", arguments, environment);
    _exit(1);
}

static enum err host_start(struct parsers *parsers, struct err_detail *detail) {
    int sockets[2];
    int memory = memfd_create("parsers", MFD_CLOEXEC);
    size_t size = parsers->all_count * PARSE_AREA_SIZE;
    if (memory < 0 || ftruncate(memory, (off_t)size) != 0 ||
        (parsers->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0)) == MAP_FAILED) {
        parsers->memory = NULL;
        int number = errno;
        if (memory >= 0) {
            close(memory);
        }
        return err_set(detail, err_from_errno(number), "no memory for parsers: %s", strerror(number));
    }
    madvise(parsers->memory, size, MADV_DONTDUMP);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        close(memory);
        return err_set(detail, err_from_errno(errno), "no socket for parsers");
    }
    parsers->fd = sockets[0];
    parsers->host = fork();
    if (parsers->host == 0) {
        host_execute(sockets[1], memory, parsers->count);
    }
    int number = errno;
    close(sockets[1]);
    close(memory);
    return parsers->host > 0
               ? ERR_OK
               : err_set(detail, err_from_errno(number), "parsers cannot be started: %s", strerror(number));
}

/* ---- one parser; with its lock ---- */

static bool parser_is_up(const struct parser *parser, uint64_t now_us) {
    return parser->is_running ? !parser->is_late : now_us >= parser->due_us;
}

static void parser_start(struct parser *parser, uint64_t now_us) {
    parser->is_running = true;
    parser->is_late = false;
    parser->started_us = now_us;
    atomic_store(&parser->progress_us, now_us);
    parsers_order(parser->parsers, PARSE_HOST_START, parser->index);
}

static void parser_queue(struct parser *parser, size_t slot) {
    struct parse_area *area = parser->area;
    atomic_store_explicit(&area->queue[parser->submitted % PARSE_SLOTS], (uint32_t)slot,
                          memory_order_relaxed);
    atomic_store(&area->submitted, ++parser->submitted);
}

void parser_wake(struct parser *parser) {
    if (atomic_load(&parser->area->is_asleep) != 0 && atomic_exchange(&parser->area->is_asleep, 0) != 0) {
        parse_area_wake(&parser->area->submitted);
    }
}

bool parser_is_turn(const struct parser *parser, size_t slot) {
    return atomic_load(&parser->area->slots[slot].turn) != PARSE_TURN_PARSER;
}

static void parser_release(struct parser *parser, size_t slot) {
    parser->abandoned_count -= parser->slots[slot].is_abandoned;
    parser->slots[slot] = (struct parser_slot){.is_used = false};
    atomic_store(&parser->area->slots[slot].turn, PARSE_TURN_NOBODY);
    parser->used_count--;
    bell_ring(&parser->parsers->freed);
}

/* Its parser will not do it. */
static void parser_lose(struct parser *parser, size_t slot) {
    struct parse_slot *shared = &parser->area->slots[slot];
    parser->slots[slot].is_lost = true;
    atomic_fetch_add(&parser->parsers->lost_count, 1); /* before anybody hears of it */
    atomic_store(&shared->turn, PARSE_TURN_NODE);
    parse_area_wake(&shared->turn);
}

/* What was abandoned and has ended. */
static void parser_sweep(struct parser *parser) {
    for (size_t i = 0; i < PARSE_SLOTS; i++) {
        if (parser->slots[i].is_abandoned && atomic_load(&parser->area->slots[i].turn) != PARSE_TURN_PARSER) {
            parser_release(parser, i);
        }
    }
}

/* ---- slots ---- */

static struct parser *parsers_least_used(struct parsers *parsers, enum parse_group group, uint64_t now_us) {
    struct parser *best = NULL;
    size_t best_used = PARSE_SLOTS;
    for (size_t i = 0; i < parsers->count && best_used > 0; i++) {
        struct parser *parser = &parsers->items[(size_t)group * parsers->count + i];
        pthread_mutex_lock(&parser->lock);
        size_t used = parser_is_up(parser, now_us) ? parser->used_count : PARSE_SLOTS;
        pthread_mutex_unlock(&parser->lock);
        if (used < best_used) {
            best = parser;
            best_used = used;
        }
    }
    return best;
}

/* False: others were faster, or it has so many already. */
static bool parser_take(struct parser *parser, size_t used_max, uint64_t now_us, size_t *ret_slot) {
    bool is_taken = false;
    pthread_mutex_lock(&parser->lock);
    if (parser->abandoned_count > 0) {
        parser_sweep(parser);
    }
    bool has_room = parser->used_count < used_max && parser_is_up(parser, now_us);
    for (size_t i = 0; i < PARSE_SLOTS && !is_taken && has_room; i++) {
        if (!parser->slots[i].is_used) {
            parser->slots[i].is_used = is_taken = true;
            if (parser->used_count++ == 0) {
                atomic_store(&parser->progress_us, now_us);
            }
            *ret_slot = i;
        }
    }
    if (is_taken && !parser->is_running) {
        parser_start(parser, now_us);
    }
    pthread_mutex_unlock(&parser->lock);
    return is_taken;
}

/* Is there one of which it makes sense to wait for a slot? */
static bool parsers_has_any(struct parsers *parsers, enum parse_group group, uint64_t now_us) {
    bool has_any = false;
    for (size_t i = 0; i < parsers->count && !has_any; i++) {
        struct parser *parser = &parsers->items[(size_t)group * parsers->count + i];
        pthread_mutex_lock(&parser->lock);
        has_any = parser->is_running || parser_is_up(parser, now_us);
        pthread_mutex_unlock(&parser->lock);
    }
    return has_any;
}

struct parser *parsers_take(struct parsers *parsers, enum parse_group group, size_t favourite,
                            size_t *ret_slot) {
    uint64_t now_us = parsers_now_us();
    struct parser *first = &parsers->items[(size_t)group * parsers->count + favourite % parsers->count];
    if (parser_take(first, PARSE_SLOTS, now_us, ret_slot)) {
        return first;
    }
    uint64_t until_us = now_us + TAKE_TIMEOUT_US;
    while (now_us < until_us && !atomic_load(&parsers->is_hostless)) {
        unsigned heard = bell_listen(&parsers->freed);
        struct parser *parser = parsers_least_used(parsers, group, now_us);
        if (parser != NULL && parser_take(parser, PARSE_SLOTS, now_us, ret_slot)) {
            return parser;
        }
        if (!parsers_has_any(parsers, group, now_us)) {
            return NULL;
        }
        (void)bell_wait_until(&parsers->freed, heard, now_us + AWAIT_US);
        now_us = parsers_now_us();
    }
    return NULL;
}

/* One after the other is given its fill, so that those that work need not sleep in between. */
struct parser *parsers_try_take(struct parsers *parsers, enum parse_group group, size_t *ret_slot,
                                enum err *ret_err) {
    uint64_t now_us = parsers_now_us();
    struct parser *parser = &parsers->items[(size_t)group * parsers->count];
    for (size_t i = 0; i < parsers->count; i++, parser++) {
        if (parser_take(parser, FILL_COUNT, now_us, ret_slot)) {
            return parser;
        }
    }
    parser = parsers_least_used(parsers, group, now_us);
    if (parser != NULL && parser_take(parser, PARSE_SLOTS, now_us, ret_slot)) {
        return parser;
    }
    bool is_up = !atomic_load(&parsers->is_hostless) && parsers_has_any(parsers, group, now_us);
    *ret_err = is_up ? ERR_BUSY : ERR_UNREACHABLE;
    return NULL;
}

/* One that comes free between the look and this is missed: hence the bound. */
void parsers_await_room(struct parsers *parsers, uint32_t timeout_us) {
    (void)bell_wait_until(&parsers->freed, bell_listen(&parsers->freed), parsers_now_us() + timeout_us);
}

void parser_submit(struct parser *parser, size_t slot) {
    struct parse_slot *shared = &parser->area->slots[slot];
    atomic_store_explicit(&shared->reply, PARSE_NOT_BEGUN, memory_order_relaxed);
    atomic_store_explicit(&shared->order, PARSE_GO_ON, memory_order_relaxed);
    atomic_fetch_add_explicit(&parser->parsers->jobs_count, 1, memory_order_relaxed);
    pthread_mutex_lock(&parser->lock);
    bool has_ended = !parser->is_running; /* while the slot was being filled */
    if (has_ended && !parser_is_up(parser, parsers_now_us())) {
        parser_lose(parser, slot);
    } else {
        atomic_store(&shared->turn, PARSE_TURN_PARSER);
        parser_queue(parser, slot);
        if (has_ended) {
            parser_start(parser, parsers_now_us());
        }
    }
    pthread_mutex_unlock(&parser->lock);
}

/* With the lock, so that it is not lost between a look at its parser and the turn. */
static bool parser_give_turn(struct parser *parser, size_t slot) {
    struct parse_slot *shared = &parser->area->slots[slot];
    if (parser->slots[slot].is_lost) {
        return false;
    }
    atomic_store(&shared->turn, PARSE_TURN_PARSER);
    if (atomic_exchange(&shared->is_waited, 0) != 0) {
        parse_area_wake(&shared->turn);
    }
    return true;
}

bool parser_pass(struct parser *parser, size_t slot) {
    pthread_mutex_lock(&parser->lock);
    bool is_passed = parser_give_turn(parser, slot);
    pthread_mutex_unlock(&parser->lock);
    return is_passed;
}

bool parser_take_turn(struct parser *parser, size_t slot) {
    atomic_store_explicit(&parser->progress_us, parsers_now_us(), memory_order_relaxed);
    return atomic_load(&parser->area->slots[slot].turn) == PARSE_TURN_NODE;
}

bool parser_await(struct parser *parser, size_t slot, uint32_t timeout_us) {
    struct parse_slot *shared = &parser->area->slots[slot];
    parser_wake(parser);
    atomic_store(&shared->is_waited, 1);
    parse_area_wait(&shared->turn, PARSE_TURN_PARSER, timeout_us);
    if (atomic_load(&shared->turn) != PARSE_TURN_PARSER) {
        return true;
    }
    pthread_mutex_lock(&parser->lock); /* it takes long: is there anybody? */
    bool is_lost = parser->slots[slot].is_lost;
    pthread_mutex_unlock(&parser->lock);
    return !is_lost;
}

void parser_free(struct parser *parser, size_t slot) {
    pthread_mutex_lock(&parser->lock);
    parser_release(parser, slot);
    pthread_mutex_unlock(&parser->lock);
}

void parser_abandon(struct parser *parser, size_t slot) {
    pthread_mutex_lock(&parser->lock);
    atomic_store(&parser->area->slots[slot].order, PARSE_GIVE_UP);
    if (parser_give_turn(parser, slot)) {
        parser->slots[slot].is_abandoned = true;
        parser->abandoned_count++;
    } else {
        parser_release(parser, slot);
    }
    pthread_mutex_unlock(&parser->lock);
}

static void parser_kill(struct parser *parser) {
    if (parser->is_running && !parser->is_late) {
        parser->is_late = true; /* once is enough */
        parsers_order(parser->parsers, PARSE_HOST_KILL, parser->index);
    }
}

enum err parser_refuse(struct parser *parser, size_t slot) {
    pthread_mutex_lock(&parser->lock);
    bool is_lost = parser->slots[slot].is_lost;
    if (!is_lost) {
        parser_kill(parser);
    }
    parser_release(parser, slot);
    pthread_mutex_unlock(&parser->lock);
    atomic_fetch_add(&parser->parsers->refused_count, is_lost ? 0 : 1);
    return is_lost ? ERR_CLOSED : ERR_CORRUPT;
}

/* ---- watching ---- */

static void parsers_say(struct parsers *parsers, const char *sentence) {
    if (parsers->note != NULL) {
        parsers->note(parsers->context, sentence);
    }
}

/* With the lock. A job that had begun is lost; others wait for the next parser, if that comes at once. */
static size_t parser_lose_jobs(struct parser *parser, bool is_next_now) {
    struct parse_area *area = parser->area;
    size_t lost_count = 0;
    atomic_store(&area->submitted, 0);
    atomic_store(&area->is_asleep, 0);
    parser->submitted = 0;
    for (size_t i = 0; i < PARSE_SLOTS; i++) {
        struct parser_slot *slot = &parser->slots[i];
        struct parse_slot *shared = &area->slots[i];
        if (!slot->is_used || atomic_load(&shared->turn) == PARSE_TURN_NOBODY) {
            continue; /* free, or being filled */
        }
        if (slot->is_abandoned) {
            parser_release(parser, i);
            continue;
        }
        bool is_ended =
            atomic_load(&shared->turn) == PARSE_TURN_NODE && atomic_load(&shared->reply) == PARSE_HAS_ENDED;
        bool is_begun = atomic_load(&shared->reply) != PARSE_NOT_BEGUN;
        if (is_ended) {
            continue; /* its result is there */
        }
        if (!is_begun && is_next_now && slot->deaths_count++ < DEATHS_MAX) {
            parser_queue(parser, i);
            continue;
        }
        parser_lose(parser, i);
        lost_count++;
    }
    return lost_count;
}

static void parser_say_end(struct parser *parser, int status, bool was_late, size_t lost_count) {
    char reason[96];
    char text[256];
    if (was_late) {
        snprintf(reason, sizeof reason, "took too long and was ended");
    } else if (WIFSIGNALED(status)) {
        snprintf(reason, sizeof reason, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(reason, sizeof reason, "ended with status %d", WEXITSTATUS(status));
    }
    snprintf(text, sizeof text, "a parser %s: %zu document%s not parsed; all else goes on", reason,
             lost_count, lost_count == 1 ? " was" : "s were");
    parsers_say(parser->parsers, text);
}

static void parser_on_end(struct parser *parser, int status) {
    struct parsers *parsers = parser->parsers;
    uint64_t now_us = parsers_now_us();
    pthread_mutex_lock(&parser->lock);
    bool was_late = parser->is_late;
    atomic_fetch_add(was_late ? &parsers->late_count : &parsers->ended_count, 1);
    bool was_steady = now_us - parser->started_us >= STEADY_US;
    parser->deaths_count = was_steady ? 1 : parser->deaths_count + 1;
    uint64_t delay_us = parser->deaths_count == 1
                            ? 0
                            : retry_doubled_us(DELAY_FIRST_US, parser->deaths_count - 2, DELAY_MAX_US);
    parser->is_running = false;
    parser->due_us = now_us + delay_us;
    size_t lost_count = parser_lose_jobs(parser, delay_us == 0);
    if (parser->submitted > 0) {
        parser_start(parser, now_us);
    }
    pthread_mutex_unlock(&parser->lock);
    bell_ring(&parsers->freed);
    parser_say_end(parser, status, was_late, lost_count);
}

static void parsers_lose_host(struct parsers *parsers) {
    if (atomic_load(&parsers->is_hostless)) {
        return;
    }
    uv_poll_stop(&parsers->poll);
    for (size_t i = 0; i < parsers->all_count; i++) {
        struct parser *parser = &parsers->items[i];
        pthread_mutex_lock(&parser->lock);
        parser->is_running = false;
        parser->due_us = UINT64_MAX;
        (void)parser_lose_jobs(parser, false);
        pthread_mutex_unlock(&parser->lock);
    }
    atomic_store(&parsers->is_hostless, true);
    bell_ring(&parsers->freed);
    parsers_say(
        parsers,
        "the host of the parsers has ended: documents are not parsed until the node is started again");
}

static void parsers_on_message(uv_poll_t *poll, int status, int events) {
    struct parsers *parsers = poll->data;
    struct parse_host_message message;
    (void)events;
    ssize_t size = status == 0 ? recv(parsers->fd, &message, sizeof message, MSG_DONTWAIT) : -1;
    if (size < 0 && (errno == EAGAIN || errno == EINTR) && status == 0) {
        return;
    }
    if (size != (ssize_t)sizeof message || message.kind != PARSE_HOST_ENDED ||
        message.index >= parsers->all_count) {
        parsers_lose_host(parsers);
        return;
    }
    parser_on_end(&parsers->items[message.index], message.status);
}

/* Who has not been heard of for too long, although there is work? */
static void parsers_look(void *context) {
    struct parsers *parsers = context;
    uint64_t now_us = parsers_now_us();
    for (size_t i = 0; i < parsers->all_count; i++) {
        struct parser *parser = &parsers->items[i];
        pthread_mutex_lock(&parser->lock);
        if (parser->abandoned_count > 0) {
            parser_sweep(parser);
        }
        bool is_at_work = false;
        for (size_t slot = 0; slot < PARSE_SLOTS && parser->used_count > 0; slot++) {
            is_at_work = is_at_work || atomic_load(&parser->area->slots[slot].turn) == PARSE_TURN_PARSER;
        }
        if (!is_at_work) {
            atomic_store(&parser->progress_us, now_us);
        } else if (now_us > atomic_load(&parser->progress_us) + parsers->late_us) {
            parser_kill(parser);
        }
        pthread_mutex_unlock(&parser->lock);
    }
}

/* ---- life ---- */

enum err parsers_start(size_t count, struct parsers **ret_parsers, struct err_detail *detail) {
    struct parsers *parsers = calloc(1, sizeof *parsers);
    if (parsers == NULL) {
        return ERR_MEMORY;
    }
    parsers->count = count < PARSERS_COUNT_MAX ? count : PARSERS_COUNT_MAX;
    parsers->all_count = parsers->count * PARSE_GROUPS_COUNT;
    parsers->late_us = LATE_US;
    parsers->fd = -1;
    parsers->items = calloc(parsers->all_count, sizeof *parsers->items);
    enum err err = parsers->items != NULL ? host_start(parsers, detail) : ERR_MEMORY;
    for (size_t i = 0; i < parsers->all_count && err == ERR_OK; i++) {
        struct parser *parser = &parsers->items[i];
        parser->parsers = parsers;
        parser->index = i;
        parser->area = (struct parse_area *)(void *)((uint8_t *)parsers->memory + i * PARSE_AREA_SIZE);
        pthread_mutex_init(&parser->lock, NULL);
    }
    if (err != ERR_OK) {
        parsers_stop(parsers);
        return err;
    }
    *ret_parsers = parsers;
    return ERR_OK;
}

/* A host that could not be executed, or not be confined, has ended without a word. */
static enum err host_await(struct parsers *parsers, struct err_detail *detail) {
    struct parse_host_message message = {0};
    struct pollfd wait = {.fd = parsers->fd, .events = POLLIN};
    bool is_ready = poll(&wait, 1, READY_MS) == 1 &&
                    recv(parsers->fd, &message, sizeof message, MSG_DONTWAIT) == (ssize_t)sizeof message &&
                    message.kind == PARSE_HOST_READY;
    return is_ready ? ERR_OK
                    : err_set(detail, ERR_SYSTEM,
                              "parsers cannot be started: their process has ended; node.parsers = 0 parses "
                              "in this one");
}

enum err parsers_watch(struct parsers *parsers, void (*note)(void *context, const char *sentence),
                       void *context, struct err_detail *detail) {
    parsers->note = note;
    parsers->context = context;
    enum err err = host_await(parsers, detail);
    if (err == ERR_OK) {
        err = loop_init(&parsers->loop, 0);
    }
    if (err != ERR_OK) {
        return err;
    }
    parsers->has_loop = true;
    loop_timer_init(&parsers->loop, &parsers->look, parsers_look, parsers);
    loop_timer_set(&parsers->look, LOOK_PERIOD_US, LOOK_PERIOD_US);
    parsers->poll.data = parsers;
    int failed = uv_poll_init(&parsers->loop.uv, &parsers->poll, parsers->fd);
    parsers->has_poll = failed == 0;
    failed = failed == 0 ? uv_poll_start(&parsers->poll, UV_READABLE, parsers_on_message) : failed;
    return failed == 0 ? loop_start(&parsers->loop, "parsers", PRIORITY_USUAL) : ERR_SYSTEM;
}

static void parsers_close_poll(void *context) {
    struct parsers *parsers = context;
    if (parsers->has_poll) {
        uv_close((uv_handle_t *)&parsers->poll, NULL);
    }
}

void parsers_stop(struct parsers *parsers) {
    if (parsers == NULL) {
        return;
    }
    if (parsers->has_loop) {
        loop_stop(&parsers->loop, parsers_close_poll, parsers);
    }
    if (parsers->fd >= 0) {
        close(parsers->fd); /* the host hears that */
    }
    if (parsers->host > 0) {
        while (waitpid(parsers->host, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    for (size_t i = 0; i < parsers->all_count && parsers->items != NULL && parsers->host > 0; i++) {
        pthread_mutex_destroy(&parsers->items[i].lock);
    }
    if (parsers->memory != NULL) {
        munmap(parsers->memory, parsers->all_count * PARSE_AREA_SIZE);
    }
    free(parsers->items);
    free(parsers);
}

void parsers_stat(struct parsers *parsers, struct parsers_stat *ret_stat) {
    struct parsers_stat stat = {
        .jobs_count = atomic_load(&parsers->jobs_count),
        .lost_count = atomic_load(&parsers->lost_count),
        .ended_count = atomic_load(&parsers->ended_count),
        .late_count = atomic_load(&parsers->late_count),
        .refused_count = atomic_load(&parsers->refused_count),
    };
    for (size_t i = 0; i < parsers->all_count; i++) {
        pthread_mutex_lock(&parsers->items[i].lock);
        stat.count += parsers->items[i].is_running;
        pthread_mutex_unlock(&parsers->items[i].lock);
    }
    *ret_stat = stat;
}
