/*
 * Arbitrary messages to a node that walks and is asked.
 *
 *      input   u16 size, message, u16 size, message …; size 0xffff: time passes
 *
 * Held to: the walk never breaks its own assertions, whatever comes.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "protocol/links/link_relay.h"

static struct links_code *code;

static bool owner_next(void *context, struct ring_id from, struct ring_id to, struct ring_id *ret_place) {
    const unsigned *left = context;
    struct ring_id place = {UINT64_C(1) << 63, 5};
    *ret_place = place;
    return *left > 0 && ring_id_is_owned(from, place, to);
}

static size_t owner_take(void *context, struct ring_id from, struct ring_id to,
                         uint8_t ret_job[LINKS_CODE_JOB_SIZE], struct links_code_link *links,
                         size_t links_max) {
    unsigned *left = context;
    struct ring_id place;
    memset(ret_job, 1, LINKS_CODE_JOB_SIZE);
    if (links_max == 0 || !owner_next(context, from, to, &place)) {
        return 0;
    }
    links[0] = (struct links_code_link){.url = BYTES("http://www.example.org/")};
    (*left)--;
    return 1;
}

static void owner_give_back(void *context, uint64_t link, bool is_done) {
    unsigned *left = context;
    (void)link;
    *left += !is_done;
}

static uint64_t owner_waiting(void *context) {
    return *(unsigned *)context;
}

static size_t owner_after(void *context, struct ring_id id, struct vnode *out, size_t places_max) {
    (void)context;
    (void)id;
    for (size_t i = 0; i < places_max; i++) {
        out[i] = (struct vnode){.peer.address = address_ipv4(10, 0, 0, (uint8_t)i, 7070)};
    }
    return places_max;
}

static uint64_t owner_arcs(void *context) {
    (void)context;
    return 3;
}

static const struct link_relay_owner owner = {owner_next,    owner_take,  owner_give_back,
                                              owner_waiting, owner_after, owner_arcs};

struct driver {
    struct link_relay *link_relay;
    struct outbox out;
    uint64_t now_us;
};

/* Lookups are answered, links are taken. */
static void step(struct driver *driver, struct event event, unsigned depth) {
    static uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    event.now_us = driver->now_us;
    outbox_clear(&driver->out);
    link_relay_step(driver->link_relay, &event, &driver->out);
    for (size_t i = 0; i < driver->out.actions_count && depth < 4; i++) {
        struct action action = driver->out.actions[i];
        struct event next = {.kind = EVENT_COMMAND};
        if (action.kind != ACTION_NOTICE || action.code == LINK_RELAY_BLAMED) {
            continue;
        }
        memcpy(&next.number, action.bytes.data, sizeof next.number);
        struct vnode places[3];
        bool is_find = action.code == LINK_RELAY_FIND;
        next.code = is_find ? LINK_RELAY_FOUND : LINK_RELAY_TOOK;
        next.bytes = is_find
                         ? link_relay_write_found(places, owner_after(NULL, places[0].id, places, 3), memory)
                         : link_relay_write_took(LINK_RELAY_TAKEN, 1, 1, memory);
        step(driver, next, depth + 1);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned left = 3;
    struct driver driver = {.now_us = 1000000};
    if (code == NULL) {
        code = links_code_new();
    }
    struct link_relay_config config = {
        .self.address = address_ipv4(10, 0, 0, 1, 7070),
        .holders_count = 2,
        .walkers_count = 2,
        .takes_max = 2,
        .flush_us = 1,
        .sent_count = 16,
        .code = code,
        .owner = &owner,
        .context = &left,
    };
    struct action *actions = calloc(link_relay_actions_max(&config), sizeof *actions);
    void *memory = malloc(link_relay_memory_size(&config));
    ASSERT(code != NULL && actions != NULL && memory != NULL);
    outbox_init(&driver.out, actions, link_relay_actions_max(&config), memory,
                link_relay_memory_size(&config));
    enum err err = link_relay_new(&config, &driver.link_relay);
    ASSERT(err == ERR_OK);
    step(&driver, (struct event){.kind = EVENT_START}, 0);
    for (size_t at = 0; at + 2 <= size;) {
        size_t length = data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        driver.now_us += length == 0xffff ? 700000 : 1000;
        if (length == 0xffff) {
            step(&driver, (struct event){.kind = EVENT_WAKE}, 0);
            continue;
        }
        length = length < size - at ? length : size - at;
        length = length < STEP_MESSAGE_SIZE_MAX ? length : STEP_MESSAGE_SIZE_MAX;
        step(&driver,
             (struct event){.kind = EVENT_MESSAGE,
                            .from = address_ipv4(10, 0, 0, (uint8_t)(length % 4), 7070),
                            .bytes = bytes_of(data + at, length)},
             0);
        at += length;
    }
    link_relay_free(driver.link_relay);
    free(actions);
    free(memory);
    return 0;
}
