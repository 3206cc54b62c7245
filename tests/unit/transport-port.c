/*
 * ringing: a node that takes any port has it for datagrams and for streams, also where half of the ports are
 * taken for one of them.
 */
#include "node/transport/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket_address.h"
#include "node/rpc/peer_rpc.h"
#include "scratch.h"
#include "unit.h"

/* Each opening meets a taken port with the chance of one half: that none does is one run of 4,096. */
enum { OPENINGS = 12, PORTS_COUNT = 1 << 16, SPARE_FILES = 128 };

static struct address own_address(uint16_t port) {
    return address_ipv4(127, 0, 91, 1, port);
}

static int bind_at(int kind, uint16_t port) {
    struct address address = own_address(port);
    struct sockaddr_storage name;
    int one = 1;
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, kind == SOCK_STREAM ? SO_REUSEADDR : SO_BROADCAST, &one, sizeof one);
    if (bind(fd, socket_address_put(&address, &name), sizeof(struct sockaddr_in)) != 0) {
        assert_int_equal(errno, EADDRINUSE);
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- the ports that others have ---- */

struct taken {
    int files[PORTS_COUNT];
    size_t count;
};

/* Linux gives to those who bind any port odd ones first: of them every second is taken for datagrams, and
 * every second of the even ones for streams. As many as this process may have files. */
static void take_ports(struct taken *taken) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    unsigned first = 0;
    unsigned last = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u %u", &first, &last), 2);
    fclose(file);
    assert_true(last < PORTS_COUNT);
    size_t files_max = limit.rlim_cur > SPARE_FILES ? (size_t)limit.rlim_cur - SPARE_FILES : 0;
    for (unsigned port = first; port <= last && taken->count < files_max; port++) {
        if (port % 4 < 2) {
            int fd = bind_at(port % 2 == 1 ? SOCK_DGRAM : SOCK_STREAM, (uint16_t)port);
            taken->files[taken->count] = fd;
            taken->count += fd >= 0;
        }
    }
}

/* ---- a node ---- */

static void check_port(struct transport *transport) {
    struct err_detail detail = {0};
    struct peer_rpc *peer_rpc;
    struct address address;
    int reuse = 0;
    socklen_t reuse_size = sizeof reuse;
    assert_true(transport_address(transport, &address));
    assert_true(address.port > 0);
    assert_non_null(transport_held(transport));
    assert_int_equal(bind_at(SOCK_DGRAM, address.port), -1);
    assert_int_equal(bind_at(SOCK_STREAM, address.port), -1); /* although nobody listens yet */
    struct peer_rpc_config config = {
        .identity = transport_identity(transport), .address = address, .held = transport_held(transport)};
    assert_int_equal(peer_rpc_new(&config, &peer_rpc, &detail), ERR_OK);
    struct address streams = peer_rpc_address(peer_rpc);
    assert_true(address_equal(&streams, &address));
    /* Connections inherit it: without, those that linger would keep the next start from a port that it names.
     */
    assert_int_equal(getsockopt(*transport_held(transport), SOL_SOCKET, SO_REUSEADDR, &reuse, &reuse_size),
                     0);
    assert_int_equal(reuse, 1);
    peer_rpc_free(peer_rpc);
}

static void any_port_is_one_for_datagrams_and_streams(void **state) {
    struct taken *taken = calloc(1, sizeof *taken);
    struct err_detail detail = {0};
    char directory[SCRATCH_PATH_SIZE];
    assert_non_null(taken);
    scratch_path(*state, ".", directory);
    take_ports(taken);
    assert_true(taken->count > 0);
    for (int i = 0; i < OPENINGS; i++) {
        struct transport *transport;
        struct transport_config config = {
            .directory = directory, .address = own_address(0), .vnodes_count = 1, .clock = &clock_system};
        assert_int_equal(transport_new(&config, &transport, &detail), ERR_OK);
        assert_int_equal(transport_open(transport, &detail), ERR_OK);
        check_port(transport);
        transport_stop(transport);
        assert_null(transport_held(transport));
        transport_free(transport);
    }
    for (size_t i = 0; i < taken->count; i++) {
        close(taken->files[i]);
    }
    free(taken);
}

static void a_named_port_is_not_held(void **state) {
    struct err_detail detail = {0};
    char directory[SCRATCH_PATH_SIZE];
    struct transport *transport;
    struct address address;
    scratch_path(*state, ".", directory);
    struct transport_config config = {
        .directory = directory, .address = own_address(0), .vnodes_count = 1, .clock = &clock_system};
    assert_int_equal(transport_new(&config, &transport, &detail), ERR_OK);
    assert_int_equal(transport_open(transport, &detail), ERR_OK);
    assert_true(transport_address(transport, &address));
    transport_stop(transport);
    transport_free(transport);
    config.address = address;
    assert_int_equal(transport_new(&config, &transport, &detail), ERR_OK);
    assert_int_equal(transport_open(transport, &detail), ERR_OK);
    assert_null(transport_held(transport));
    assert_int_equal(bind_at(SOCK_DGRAM, address.port), -1);
    transport_stop(transport);
    transport_free(transport);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_port_is_one_for_datagrams_and_streams, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_named_port_is_not_held, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
