#include "net/dns.h"

#include <ares.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/map.h"

enum {
    TIMEOUT_S_DEFAULT = 15,
    ENTRIES_MAX_DEFAULT = 1 << 14,
    TRIES = 3,
    TRIES_WEIGHT = 7, /* c-ares waits 1, 2 and 4 times its time-out */
    TRY_MS_MIN = 50,
};

struct dns_entry {
    struct dns *dns;
    struct dns_question *questions; /* those that wait; empty if the answer is known */
    struct dns_entry *next;         /* in the list of those being asked or of those to be told */
    struct dns_entry *previous;
    uint64_t until_ms; /* when we give up asking, or when the answer expires */
    bool is_asked;     /* listed in dns->asked */
    bool is_at_ares;   /* c-ares will call back, which may be long after we gave up */
    bool is_to_tell;   /* listed in dns->to_tell */
    struct dns_answer answer;
    size_t name_size;
    char name[]; /* ended by a zero byte */
};

struct dns_list {
    struct dns_entry *first;
    struct dns_entry *last;
};

/* One socket of c-ares. */
struct dns_poll {
    uv_poll_t poll; /* first: libuv gives us this */
    struct dns *dns;
    ares_socket_t socket;
    struct dns_poll *next;
};

struct dns {
    uv_loop_t *loop;
    ares_channel channel;
    uv_timer_t timer;
    struct map entries;      /* name: struct dns_entry * */
    struct dns_list asked;   /* the oldest first: all have the same time-out */
    struct dns_list to_tell; /* the answer is there, those that wait must be told */
    struct dns_poll *polls;
    struct dns_answer failure; /* for dns_ask(), if there is not even an entry */
    uint64_t timeout_ms;
    uint64_t ttl_min_ms;
    size_t waiting_count; /* questions; while there are any, the loop goes on */
    size_t open_count;    /* libuv handles */
    bool is_deaf;         /* there is a socket that could not be watched */
    bool is_telling;
    bool is_freed;
};

static void dns_list_add(struct dns_list *list, struct dns_entry *entry) {
    entry->next = NULL;
    entry->previous = list->last;
    *(list->last == NULL ? &list->first : &list->last->next) = entry;
    list->last = entry;
}

static void list_remove(struct dns_list *list, struct dns_entry *entry) {
    *(entry->previous == NULL ? &list->first : &entry->previous->next) = entry->next;
    *(entry->next == NULL ? &list->last : &entry->next->previous) = entry->previous;
    entry->next = entry->previous = NULL;
}

static void dns_on_closed(struct dns *dns) {
    dns->open_count--;
    if (dns->is_freed && dns->open_count == 0) {
        free(dns);
    }
}

static void on_poll_closed(uv_handle_t *handle) {
    struct dns *dns = ((struct dns_poll *)handle)->dns;
    free(handle);
    dns_on_closed(dns);
}

static void on_timer_closed(uv_handle_t *handle) {
    dns_on_closed(handle->data);
}

static enum err err_from_ares(int status) {
    switch (status) {
    case ARES_SUCCESS:
        return ERR_OK;
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
        return ERR_NOT_FOUND;
    case ARES_ETIMEOUT:
        return ERR_TIMEOUT;
    case ARES_ENOMEM:
    case ARES_ECANCELLED: /* see schedule() */
        return ERR_MEMORY;
    case ARES_EDESTRUCTION:
        return ERR_CANCELLED;
    default:
        return ERR_UNREACHABLE; /* refused, broken answers, servers that failed */
    }
}

/* The answer stands for ttl_ms; those that wait are told when the stack is flat again. */
static void dns_settle(struct dns_entry *entry, uint64_t ttl_ms) {
    struct dns *dns = entry->dns;
    entry->until_ms = uv_now(dns->loop) + ttl_ms;
    if (entry->is_asked) {
        list_remove(&dns->asked, entry);
        entry->is_asked = false;
        entry->is_to_tell = true;
        dns_list_add(&dns->to_tell, entry);
    }
}

static void settle_failure(struct dns_entry *entry, enum err err) {
    uint64_t ttl_s = err == ERR_NOT_FOUND ? DNS_NOT_FOUND_TTL_S : DNS_FAILURE_TTL_S;
    entry->answer.err = err;
    entry->answer.count = 0;
    dns_settle(entry, err == ERR_MEMORY ? 0 : ttl_s * 1000);
}

static void put_address(struct dns_answer *answer, const struct sockaddr *from) {
    struct address *address = &answer->addresses[answer->count];
    if (answer->count == DNS_ADDRESSES_MAX) {
        return;
    }
    if (from->sa_family == AF_INET) {
        uint8_t ip[4];
        memcpy(ip, &((const struct sockaddr_in *)(const void *)from)->sin_addr, sizeof ip);
        *address = address_ipv4(ip[0], ip[1], ip[2], ip[3], 0);
        answer->count++;
    } else if (from->sa_family == AF_INET6) {
        memcpy(address->ip, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
               sizeof address->ip);
        address->port = 0;
        answer->count++;
    }
}

static void dns_on_answer(void *context, int status, int timeouts, struct ares_addrinfo *info) {
    struct dns_entry *entry = context;
    (void)timeouts;
    entry->is_at_ares = false;
    if (status != ARES_SUCCESS || info == NULL) {
        ares_freeaddrinfo(info);
        settle_failure(entry, status == ARES_SUCCESS ? ERR_NOT_FOUND : err_from_ares(status));
        return;
    }
    uint64_t ttl_ms = DNS_TTL_MAX_S * UINT64_C(1000);
    entry->answer.err = ERR_OK;
    entry->answer.count = 0;
    for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next) {
        uint64_t node_ms = node->ai_ttl > 0 ? (uint64_t)node->ai_ttl * 1000 : 0;
        ttl_ms = node_ms < ttl_ms ? node_ms : ttl_ms;
        put_address(&entry->answer, node->ai_addr);
    }
    ares_freeaddrinfo(info);
    if (entry->answer.count == 0) {
        settle_failure(entry, ERR_NOT_FOUND);
        return;
    }
    dns_settle(entry, ttl_ms < entry->dns->ttl_min_ms ? entry->dns->ttl_min_ms : ttl_ms);
}

static void count_waiting(struct dns *dns, bool is_more) {
    dns->waiting_count = is_more ? dns->waiting_count + 1 : dns->waiting_count - 1;
    (dns->waiting_count > 0 ? uv_ref : uv_unref)((uv_handle_t *)&dns->timer);
}

static void unlink_question(struct dns_question *question) {
    struct dns_entry *entry = question->entry;
    count_waiting(entry->dns, false);
    *(question->previous == NULL ? &entry->questions : &question->previous->next) = question->next;
    if (question->next != NULL) {
        question->next->previous = question->previous;
    }
    *question = (struct dns_question){.done = question->done, .context = question->context};
}

/* done() may ask again, cancel others' questions, and so push any entry out of the cache. */
static void dns_tell(struct dns *dns) {
    if (dns->is_telling) {
        return;
    }
    dns->is_telling = true;
    while (dns->to_tell.first != NULL) {
        struct dns_entry *entry = dns->to_tell.first;
        if (entry->questions == NULL) {
            list_remove(&dns->to_tell, entry);
            entry->is_to_tell = false;
            continue;
        }
        struct dns_question *question = entry->questions;
        unlink_question(question);
        question->done(question->context, &entry->answer);
    }
    dns->is_telling = false;
}

static void give_up_late_ones(struct dns *dns) {
    while (dns->asked.first != NULL && dns->asked.first->until_ms <= uv_now(dns->loop)) {
        settle_failure(dns->asked.first, ERR_TIMEOUT);
    }
}

static void dns_on_timer(uv_timer_t *timer);

/* Wake up for c-ares, for the oldest question, or at once for answers that nobody has been told. */
static void schedule(struct dns *dns) {
    struct timeval buffer;
    if (dns->is_deaf) {
        dns->is_deaf = false;
        ares_cancel(dns->channel); /* nobody would hear the answers */
    }
    const struct timeval *left = ares_timeout(dns->channel, NULL, &buffer);
    uint64_t wait_ms = UINT64_MAX;
    if (left != NULL) {
        wait_ms = (uint64_t)left->tv_sec * 1000 + ((uint64_t)left->tv_usec + 999) / 1000;
    }
    if (dns->asked.first != NULL) {
        uint64_t now_ms = uv_now(dns->loop);
        uint64_t until_ms = dns->asked.first->until_ms;
        uint64_t own_ms = until_ms > now_ms ? until_ms - now_ms : 0;
        wait_ms = own_ms < wait_ms ? own_ms : wait_ms;
    }
    wait_ms = dns->to_tell.first != NULL ? 0 : wait_ms;
    if (wait_ms == UINT64_MAX) {
        uv_timer_stop(&dns->timer);
    } else {
        uv_timer_start(&dns->timer, dns_on_timer, wait_ms, 0);
    }
}

static void dns_on_timer(uv_timer_t *timer) {
    struct dns *dns = timer->data;
    ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    give_up_late_ones(dns);
    dns_tell(dns);
    schedule(dns);
}

static void on_poll(uv_poll_t *handle, int status, int events) {
    struct dns_poll *poll = (struct dns_poll *)handle;
    struct dns *dns = poll->dns;
    ares_socket_t socket = poll->socket; /* the poll may go meanwhile */
    bool is_readable = status < 0 || (events & UV_READABLE) != 0;
    bool is_writable = status < 0 || (events & UV_WRITABLE) != 0;
    ares_process_fd(dns->channel, is_readable ? socket : ARES_SOCKET_BAD,
                    is_writable ? socket : ARES_SOCKET_BAD);
    dns_tell(dns);
    schedule(dns);
}

static struct dns_poll *open_poll(struct dns *dns, ares_socket_t socket) {
    struct dns_poll *poll = calloc(1, sizeof *poll);
    if (poll == NULL || uv_poll_init(dns->loop, &poll->poll, socket) != 0) {
        free(poll);
        dns->is_deaf = true;
        return NULL;
    }
    poll->dns = dns;
    poll->socket = socket;
    poll->next = dns->polls;
    dns->polls = poll;
    dns->open_count++;
    uv_unref((uv_handle_t *)&poll->poll);
    return poll;
}

static void on_socket(void *context, ares_socket_t socket, int is_readable, int is_writable) {
    struct dns *dns = context;
    struct dns_poll **place = &dns->polls;
    while (*place != NULL && (*place)->socket != socket) {
        place = &(*place)->next;
    }
    struct dns_poll *poll = *place;
    int events = (is_readable ? UV_READABLE : 0) | (is_writable ? UV_WRITABLE : 0);
    if (events != 0) {
        poll = poll == NULL ? open_poll(dns, socket) : poll;
        if (poll != NULL) {
            uv_poll_start(&poll->poll, events, on_poll);
        }
    } else if (poll != NULL) {
        *place = poll->next;
        uv_poll_stop(&poll->poll);
        uv_close((uv_handle_t *)&poll->poll, on_poll_closed);
    }
}

static enum err open_channel(struct dns *dns, const struct dns_config *config, struct err_detail *detail) {
    uint64_t try_ms = dns->timeout_ms / TRIES_WEIGHT;
    struct ares_options options = {
        .timeout = (int)(try_ms < TRY_MS_MIN ? TRY_MS_MIN : try_ms),
        .tries = TRIES,
        .ndomains = 0,
        .sock_state_cb = on_socket,
        .sock_state_cb_data = dns,
    };
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_DOMAINS | ARES_OPT_SOCK_STATE_CB;
    int status = ares_init_options(&dns->channel, &options, mask);
    if (status != ARES_SUCCESS) {
        return err_set(detail, ERR_SYSTEM, "c-ares: %s", ares_strerror(status));
    }
    if (config->nameservers != NULL) {
        status = ares_set_servers_ports_csv(dns->channel, config->nameservers);
        if (status != ARES_SUCCESS) {
            ares_destroy(dns->channel);
            return err_set(detail, ERR_INVALID, "nameservers \"%s\": %s", config->nameservers,
                           ares_strerror(status));
        }
    }
    return ERR_OK;
}

enum err dns_new(const struct dns_config *config, struct dns **ret_dns, struct err_detail *detail) {
    uint64_t timeout_us =
        config->timeout_us != 0 ? config->timeout_us : TIMEOUT_S_DEFAULT * UINT64_C(1000000);
    uint64_t ttl_min_us = config->ttl_min_us != 0 ? config->ttl_min_us : DNS_TTL_MIN_S * UINT64_C(1000000);
    struct dns *dns = calloc(1, sizeof *dns);
    if (dns == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    uint64_t seed;
    if (uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL) != 0) {
        free(dns);
        return err_set(detail, ERR_SYSTEM, "the system gives no random numbers");
    }
    dns->loop = config->loop;
    dns->timeout_ms = timeout_us / 1000;
    dns->ttl_min_ms = ttl_min_us / 1000;
    enum err err = open_channel(dns, config, detail);
    if (err != ERR_OK) {
        free(dns);
        return err;
    }
    map_init(&dns->entries, 0, sizeof(struct dns_entry *),
             config->entries_max != 0 ? config->entries_max : ENTRIES_MAX_DEFAULT, seed);
    uv_timer_init(dns->loop, &dns->timer);
    uv_unref((uv_handle_t *)&dns->timer);
    dns->timer.data = dns;
    dns->open_count = 1;
    *ret_dns = dns;
    return ERR_OK;
}

void dns_free(struct dns *dns) {
    if (dns == NULL) {
        return;
    }
    if (dns == NULL) {
        return;
    }
    ares_destroy(dns->channel); /* calls back for all that is asked, and closes the polls */
    size_t cursor = 0;
    struct bytes name;
    void *value;
    while (map_next(&dns->entries, &cursor, &name, &value)) {
        struct dns_entry *entry = *(struct dns_entry **)value;
        ASSERT(entry->questions == NULL && !entry->is_at_ares);
        free(entry);
    }
    map_done(&dns->entries);
    dns->is_freed = true;
    uv_close((uv_handle_t *)&dns->timer, on_timer_closed);
}

static bool is_evictable(const struct dns_entry *entry) {
    return !entry->is_asked && !entry->is_at_ares && !entry->is_to_tell;
}

/* Make room for one more name; the oldest goes first. */
static enum err dns_make_room(struct dns *dns) {
    struct map *map = &dns->entries;
    if (map->count < map->count_max) {
        return map_reserve(map, map->count + 1);
    }
    size_t cursor = 0;
    struct bytes name;
    void *value;
    while (map_next(map, &cursor, &name, &value)) {
        struct dns_entry *entry = *(struct dns_entry **)value;
        if (is_evictable(entry)) {
            map_remove(map, name);
            free(entry);
            return map_reserve(map, map->count + 1);
        }
    }
    return ERR_LIMIT;
}

static enum err add_entry(struct dns *dns, struct bytes name, struct dns_entry **ret_entry) {
    enum err err = dns_make_room(dns);
    if (err != ERR_OK) {
        return err;
    }
    struct dns_entry *entry = calloc(1, sizeof *entry + name.size + 1);
    if (entry == NULL) {
        return ERR_MEMORY;
    }
    entry->dns = dns;
    entry->name_size = name.size;
    memcpy(entry->name, name.data, name.size);
    void *value = map_put(&dns->entries, bytes_of(entry->name, name.size));
    ASSERT(value != NULL);
    memcpy(value, &entry, sizeof entry);
    *ret_entry = entry;
    return ERR_OK;
}

static void ask(struct dns_entry *entry) {
    static const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct dns *dns = entry->dns;
    entry->is_asked = true;
    entry->until_ms = uv_now(dns->loop) + dns->timeout_ms;
    dns_list_add(&dns->asked, entry);
    if (!entry->is_at_ares) {
        entry->is_at_ares = true;
        ares_getaddrinfo(dns->channel, entry->name, NULL, &hints, dns_on_answer, entry);
    }
}

static const struct dns_answer *dns_fail(struct dns *dns, enum err err) {
    dns->failure.err = err;
    dns->failure.count = 0;
    return &dns->failure;
}

const struct dns_answer *dns_ask(struct dns *dns, struct bytes name, struct dns_question *question,
                                 dns_done *done, void *context) {
    *question = (struct dns_question){.done = done, .context = context};
    if (name.size == 0 || name.size > DNS_NAME_SIZE_MAX + 1 || bytes_find_byte(name, '\0') < name.size) {
        return dns_fail(dns, ERR_INVALID);
    }
    struct dns_entry **found = map_get(&dns->entries, name);
    struct dns_entry *entry = found == NULL ? NULL : *found;
    bool is_known = entry != NULL && !entry->is_asked;
    if (is_known && uv_now(dns->loop) < entry->until_ms) {
        return &entry->answer;
    }
    if (entry == NULL) {
        enum err err = add_entry(dns, name, &entry);
        if (err != ERR_OK) {
            return dns_fail(dns, err);
        }
    }
    question->entry = entry;
    question->next = entry->questions;
    if (question->next != NULL) {
        question->next->previous = question;
    }
    entry->questions = question;
    count_waiting(dns, true);
    if (!entry->is_asked && !entry->is_to_tell) {
        ask(entry);
        schedule(dns);
    }
    return NULL;
}

void dns_cancel(struct dns_question *question) {
    if (question->entry != NULL) {
        unlink_question(question);
    }
}
