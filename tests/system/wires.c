/*
 * wires - the lines between sites of a test: each has a delay and a rate in both directions, and can be cut.
 *
 *      wires NAMESPACE...
 *
 * Each network namespace is a site and gets the device "wire" (TUN); site i is the IPv4 address whose last
 * byte is i + 1. What the sites send each other passes through this program, which has to be root: netem is
 * missing in many kernels, and so bytes are counted by pairs of sites.
 *
 *      site i ── up: rate, queue ──▶ delays of i, of j, of the pair ──▶ down: rate, queue ──▶ site j
 *
 * A queue that would take longer than QUEUE_US drops, as routers do. Commands come by stdin, one a line, each
 * answered by a line:
 *
 *      site I DELAY_US UP DOWN     rates in bytes a second
 *      pair I J DELAY_US           besides the delays of both sites, in both directions
 *      cut I | join I              nothing passes | it does again
 *      count                       bytes that arrived so far: from 0 to 0, 0 to 1 …
 *
 * Segments travel together, as they left the sender's TCP (virtio_net_hdr); each is reckoned with a header.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    SITES_MAX = 64,
    PACKETS_MAX = 1 << 16, /* under way */
    PACKET_SIZE_MAX = sizeof(struct virtio_net_hdr) + 65536,
    ADDRESS_OFFSET = 16, /* of the receiver, in an IPv4 header */
    IPV4_SIZE_MIN = 20,
    LINE_SIZE_MAX = 256,
    READS_MAX = 64, /* of one site before the others have their turn */
    PRIORITY = -10, /* a line is not slower because the machine is busy */
};
static const uint64_t QUEUE_US = 300000;

struct packet {
    uint64_t at_us;
    uint64_t number; /* of equal times the first one first */
    uint32_t from;
    uint32_t to;
    bool is_down;  /* it waits for its turn at the receiver's line; else it is between the two */
    uint32_t cost; /* bytes on the line */
    size_t size;
    uint8_t bytes[];
};

struct site {
    int device;
    bool is_cut;
    uint64_t delay_us;
    uint64_t up; /* bytes a second */
    uint64_t down;
    uint64_t up_free_us; /* when what is queued has left */
    uint64_t down_free_us;
    uint64_t pair_delay_us[SITES_MAX];
    uint64_t arrived_size[SITES_MAX]; /* by sender */
};

struct wires {
    struct site sites[SITES_MAX];
    uint32_t sites_count;
    struct packet *packets[PACKETS_MAX]; /* a heap, the next one first */
    size_t packets_count;
    uint64_t packet_number;
    uint8_t read_memory[PACKET_SIZE_MAX];
    char line[LINE_SIZE_MAX];
    size_t line_size;
};

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void fail(const char *what) {
    fprintf(stderr, "wires: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the heap ---- */

static bool is_before(const struct packet *a, const struct packet *b) {
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

static void push(struct wires *wires, struct packet *packet) {
    size_t at = wires->packets_count++;
    while (at > 0 && is_before(packet, wires->packets[(at - 1) / 2])) {
        wires->packets[at] = wires->packets[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    wires->packets[at] = packet;
}

static struct packet *pop(struct wires *wires) {
    struct packet *first = wires->packets[0];
    struct packet *last = wires->packets[--wires->packets_count];
    size_t at = 0;
    while (2 * at + 1 < wires->packets_count) {
        size_t child = 2 * at + 1;
        child +=
            child + 1 < wires->packets_count && is_before(wires->packets[child + 1], wires->packets[child]);
        if (!is_before(wires->packets[child], last)) {
            break;
        }
        wires->packets[at] = wires->packets[child];
        at = child;
    }
    wires->packets[at] = last;
    return first;
}

/* ---- lines ---- */

/* False: the queue is full. Else *free_us is when the packet has left it. */
static bool pass_line(uint64_t *free_us, uint64_t rate, uint32_t cost, uint64_t at_us) {
    uint64_t start_us = *free_us > at_us ? *free_us : at_us;
    if (start_us > at_us + QUEUE_US) {
        return false;
    }
    *free_us = start_us + cost * UINT64_C(1000000) / rate;
    return true;
}

/* Every segment has a header of its own on the line. */
static uint32_t cost_of(const struct virtio_net_hdr *header, size_t packet_size) {
    size_t head_size = header->hdr_len;
    if (header->gso_type == VIRTIO_NET_HDR_GSO_NONE || header->gso_size == 0 || packet_size <= head_size) {
        return (uint32_t)packet_size;
    }
    size_t segments = (packet_size - head_size + header->gso_size - 1) / header->gso_size;
    return (uint32_t)(packet_size + (segments - 1) * head_size);
}

static void send_from(struct wires *wires, uint32_t from, size_t size) {
    struct virtio_net_hdr header;
    const uint8_t *ip = wires->read_memory + sizeof header;
    struct site *site = &wires->sites[from];
    if (size < sizeof header + IPV4_SIZE_MIN || ip[0] >> 4 != 4) {
        return;
    }
    memcpy(&header, wires->read_memory, sizeof header);
    uint32_t to = (uint32_t)ip[ADDRESS_OFFSET + 3] - 1;
    uint32_t cost = cost_of(&header, size - sizeof header);
    uint64_t at_us = now_us();
    if (to >= wires->sites_count || site->is_cut || wires->packets_count >= PACKETS_MAX ||
        !pass_line(&site->up_free_us, site->up, cost, at_us)) {
        return;
    }
    struct packet *packet = malloc(sizeof *packet + size);
    if (packet == NULL) {
        return;
    }
    *packet = (struct packet){
        .at_us = site->up_free_us + site->delay_us + wires->sites[to].delay_us + site->pair_delay_us[to],
        .number = wires->packet_number++,
        .from = from,
        .to = to,
        .cost = cost,
        .size = size,
    };
    memcpy(packet->bytes, wires->read_memory, size);
    push(wires, packet);
}

static void arrive(struct wires *wires, struct packet *packet) {
    struct site *site = &wires->sites[packet->to];
    if (!site->is_cut && !packet->is_down &&
        pass_line(&site->down_free_us, site->down, packet->cost, packet->at_us)) {
        packet->is_down = true;
        packet->at_us = site->down_free_us;
        push(wires, packet);
        return;
    }
    if (!site->is_cut && packet->is_down &&
        write(site->device, packet->bytes, packet->size) == (ssize_t)packet->size) {
        site->arrived_size[packet->from] += packet->cost;
    }
    free(packet);
}

static void deliver(struct wires *wires) {
    while (wires->packets_count > 0 && wires->packets[0]->at_us <= now_us()) {
        arrive(wires, pop(wires));
    }
}

static void read_site(struct wires *wires, uint32_t index) {
    for (unsigned i = 0; i < READS_MAX; i++) {
        ssize_t size = read(wires->sites[index].device, wires->read_memory, sizeof wires->read_memory);
        if (size <= 0) {
            return;
        }
        send_from(wires, index, (size_t)size);
    }
}

/* ---- commands ---- */

static void print_counts(const struct wires *wires) {
    for (uint32_t from = 0; from < wires->sites_count; from++) {
        for (uint32_t to = 0; to < wires->sites_count; to++) {
            printf("%ju ", (uintmax_t)wires->sites[to].arrived_size[from]);
        }
    }
    printf("\n");
}

static void run_command(struct wires *wires, const char *line) {
    unsigned i;
    unsigned j;
    unsigned long delay_us;
    unsigned long up;
    unsigned long down;
    if (strcmp(line, "count") == 0) {
        print_counts(wires);
        return;
    }
    if (sscanf(line, "site %u %lu %lu %lu", &i, &delay_us, &up, &down) == 4 && i < wires->sites_count &&
        up > 0 && down > 0) {
        wires->sites[i].delay_us = delay_us;
        wires->sites[i].up = up;
        wires->sites[i].down = down;
    } else if (sscanf(line, "pair %u %u %lu", &i, &j, &delay_us) == 3 && i < wires->sites_count &&
               j < wires->sites_count) {
        wires->sites[i].pair_delay_us[j] = wires->sites[j].pair_delay_us[i] = delay_us;
    } else if (sscanf(line, "cut %u", &i) == 1 && i < wires->sites_count) {
        wires->sites[i].is_cut = true;
    } else if (sscanf(line, "join %u", &i) == 1 && i < wires->sites_count) {
        wires->sites[i].is_cut = false;
    } else {
        printf("unknown\n");
        return;
    }
    printf("ok\n");
}

/* False: whoever gave commands is gone. */
static bool read_commands(struct wires *wires) {
    ssize_t size = read(STDIN_FILENO, wires->line + wires->line_size, LINE_SIZE_MAX - wires->line_size);
    if (size <= 0) {
        return size < 0 && errno == EINTR;
    }
    wires->line_size += (size_t)size;
    char *end;
    while ((end = memchr(wires->line, '\n', wires->line_size)) != NULL) {
        *end = '\0';
        run_command(wires, wires->line);
        size_t used = (size_t)(end + 1 - wires->line);
        wires->line_size -= used;
        memmove(wires->line, end + 1, wires->line_size);
    }
    fflush(stdout);
    return wires->line_size < LINE_SIZE_MAX;
}

/* ---- life ---- */

/* The device is in the namespace, its other end here. */
static int open_device(const char *namespace, int home) {
    char path[256];
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(path, sizeof path, "/var/run/netns/%s", namespace);
    snprintf(request.ifr_name, sizeof request.ifr_name, "wire");
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET) != 0) {
        fail(path);
    }
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0 ||
        ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) {
        fail("/dev/net/tun");
    }
    if (setns(home, CLONE_NEWNET) != 0) {
        fail("the namespace of this program");
    }
    close(there);
    return device;
}

static void run(struct wires *wires) {
    struct pollfd polled[SITES_MAX + 1];
    for (uint32_t i = 0; i < wires->sites_count; i++) {
        polled[i] = (struct pollfd){.fd = wires->sites[i].device, .events = POLLIN};
    }
    polled[wires->sites_count] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        uint64_t at_us = now_us();
        uint64_t next_us = wires->packets_count > 0 ? wires->packets[0]->at_us : at_us + 1000000;
        uint64_t wait_us = next_us > at_us ? next_us - at_us : 0;
        struct timespec wait = {.tv_sec = (time_t)(wait_us / 1000000),
                                .tv_nsec = (long)(wait_us % 1000000 * 1000)};
        if (ppoll(polled, wires->sites_count + 1, &wait, NULL) < 0 && errno != EINTR) {
            fail("poll");
        }
        for (uint32_t i = 0; i < wires->sites_count; i++) {
            if ((polled[i].revents & POLLIN) != 0) {
                read_site(wires, i);
            }
        }
        deliver(wires);
        if (polled[wires->sites_count].revents != 0 && !read_commands(wires)) {
            return;
        }
    }
}

int main(int argc, char **argv) {
    struct wires *wires = calloc(1, sizeof *wires);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (wires == NULL || home < 0 || argc < 2 || argc > SITES_MAX + 1) {
        fprintf(stderr, "usage: wires NAMESPACE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        wires->sites[wires->sites_count++] =
            (struct site){.device = open_device(argv[i], home), .up = UINT32_MAX, .down = UINT32_MAX};
    }
    if (setpriority(PRIO_PROCESS, 0, PRIORITY) != 0) {
        fprintf(stderr, "wires: at the usual priority\n");
    }
    printf("ok\n");
    fflush(stdout);
    run(wires);
    return 0;
}
