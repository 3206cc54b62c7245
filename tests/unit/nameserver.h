/*
 * nameserver - a DNS server for tests: UDP on loopback, on the loop of the test, with answers that the test's
 * function makes up for each question.
 */
#ifndef MNEMON_TESTS_NAMESERVER_H
#define MNEMON_TESTS_NAMESERVER_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { NAMESERVER_TYPE_A = 1, NAMESERVER_TYPE_AAAA = 28, NAMESERVER_NXDOMAIN = 3, NAMESERVER_SERVFAIL = 2 };

struct nameserver_reply {
    bool is_silent;
    uint8_t code; /* 0, or NAMESERVER_NXDOMAIN … */
    uint32_t ttl_s;
    const char *addresses[8]; /* of the type that was asked for */
};

typedef void nameserver_answer(void *context, const char *name, uint16_t type,
                               struct nameserver_reply *reply);

struct nameserver {
    uv_udp_t udp;
    nameserver_answer *answer;
    void *context;
    unsigned questions_count;
    char address[32]; /* "127.0.0.1:12345", for dns_config */
    uint8_t in[4096];
    uint8_t out[4096];
};

static inline size_t nameserver_put_u16(uint8_t *out, unsigned value) {
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
    return 2;
}

/* The name as text; returns the size of the question section, or 0. */
static inline size_t nameserver_read_question(const uint8_t *question, size_t size, char name[256]) {
    size_t at = 0;
    size_t length = 0;
    while (at < size && question[at] != 0) {
        size_t label = question[at];
        if (label > 63 || at + 1 + label > size || length + label + 2 > 256) {
            return 0;
        }
        memcpy(name + length, question + at + 1, label);
        length += label;
        name[length++] = '.';
        at += 1 + label;
    }
    name[length > 0 ? length - 1 : 0] = '\0';
    return at + 5 <= size ? at + 5 : 0;
}

static inline size_t nameserver_put_record(uint8_t *out, uint16_t type, uint32_t ttl_s, const char *address) {
    size_t size = 0;
    size += nameserver_put_u16(out + size, 0xc00c); /* the name of the question */
    size += nameserver_put_u16(out + size, type);
    size += nameserver_put_u16(out + size, 1);
    size += nameserver_put_u16(out + size, ttl_s >> 16);
    size += nameserver_put_u16(out + size, ttl_s & 0xffff);
    bool is_ipv4 = type == NAMESERVER_TYPE_A;
    size += nameserver_put_u16(out + size, is_ipv4 ? 4 : 16);
    if (inet_pton(is_ipv4 ? AF_INET : AF_INET6, address, out + size) != 1) {
        abort();
    }
    return size + (is_ipv4 ? 4u : 16u);
}

static inline void nameserver_on_datagram(uv_udp_t *udp, ssize_t got, const uv_buf_t *buf,
                                          const struct sockaddr *from, unsigned flags) {
    struct nameserver *server = udp->data;
    char name[256];
    (void)buf;
    (void)flags;
    if (from == NULL || got < 17) {
        return;
    }
    size_t question_size = nameserver_read_question(server->in + 12, (size_t)got - 12, name);
    if (question_size == 0) {
        return;
    }
    server->questions_count++;
    const uint8_t *type_bytes = server->in + 12 + question_size - 4;
    uint16_t type = (uint16_t)(type_bytes[0] << 8 | type_bytes[1]);
    struct nameserver_reply reply = {.ttl_s = 300};
    server->answer(server->context, name, type, &reply);
    if (reply.is_silent) {
        return;
    }
    size_t count = 0;
    size_t size = 12 + question_size;
    memset(server->out, 0, 12);
    memcpy(server->out, server->in, 2);
    memcpy(server->out + 12, server->in + 12, question_size);
    for (; reply.code == 0 && count < 8 && reply.addresses[count] != NULL; count++) {
        size += nameserver_put_record(server->out + size, type, reply.ttl_s, reply.addresses[count]);
    }
    nameserver_put_u16(server->out + 2, 0x8180u | reply.code);
    nameserver_put_u16(server->out + 4, 1);
    nameserver_put_u16(server->out + 6, (unsigned)count);
    uv_buf_t out = uv_buf_init((char *)server->out, (unsigned)size);
    uv_udp_try_send(udp, &out, 1, from);
}

static inline void nameserver_give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
    struct nameserver *server = handle->data;
    (void)size;
    *buf = uv_buf_init((char *)server->in, sizeof server->in);
}

static inline void nameserver_open(struct nameserver *server, uv_loop_t *loop, nameserver_answer *answer,
                                   void *context) {
    *server = (struct nameserver){.answer = answer, .context = context};
    struct sockaddr_in address;
    int size = sizeof address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    if (uv_udp_init(loop, &server->udp) != 0 ||
        uv_udp_bind(&server->udp, (const struct sockaddr *)&address, 0) != 0 ||
        uv_udp_getsockname(&server->udp, (struct sockaddr *)&address, &size) != 0 ||
        uv_udp_recv_start(&server->udp, nameserver_give_buffer, nameserver_on_datagram) != 0) {
        abort();
    }
    server->udp.data = server;
    uv_unref((uv_handle_t *)&server->udp);
    snprintf(server->address, sizeof server->address, "127.0.0.1:%u", ntohs(address.sin_port));
}

static inline void nameserver_close(struct nameserver *server) {
    uv_close((uv_handle_t *)&server->udp, NULL);
}

#endif
