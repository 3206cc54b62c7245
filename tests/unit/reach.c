#include "net/reach.h"

#include "base/prng.h"
#include "unit.h"

static const char *refusal_of(const char *text) {
    struct address address;
    if (!address_parse(bytes_of_string(text), 80, &address)) {
        fail_msg("\"%s\" is no address", text);
    }
    return reach_refusal(&address);
}

static void refuses_special_addresses_and_says_what_they_are(void **state) {
    (void)state;
    static const struct {
        const char *address;
        const char *what;
    } rows[] = {
        {"0.0.0.0", "an address of \"this network\""},
        {"0.255.255.255", "an address of \"this network\""},
        {"10.0.0.0", "a private address"},
        {"10.255.255.255", "a private address"},
        {"100.64.0.0", "an address behind a carrier's NAT"},
        {"100.127.255.255", "an address behind a carrier's NAT"},
        {"127.0.0.1", "a loopback address"},
        {"127.255.255.254", "a loopback address"},
        {"169.254.169.254", "a link-local address"},
        {"172.16.0.1", "a private address"},
        {"172.31.255.255", "a private address"},
        {"192.0.0.170", "an address of IETF protocols"},
        {"192.0.2.1", "an address for documentation"},
        {"192.88.99.1", "a 6to4 relay address"},
        {"192.168.255.255", "a private address"},
        {"198.18.0.0", "an address for benchmarks"},
        {"198.19.255.255", "an address for benchmarks"},
        {"198.51.100.1", "an address for documentation"},
        {"203.0.113.255", "an address for documentation"},
        {"224.0.0.1", "a multicast address"},
        {"239.255.255.255", "a multicast address"},
        {"240.0.0.1", "a reserved address"},
        {"255.255.255.255", "a reserved address"},
        {"::", "the unspecified address"},
        {"::1", "a loopback address"},
        {"::2", "an address outside the public range of IPv6"},
        {"::127.0.0.1", "an address outside the public range of IPv6"},
        {"::8.8.8.8", "an address outside the public range of IPv6"},
        {"::ffff:127.0.0.1", "a loopback address"},
        {"::ffff:a00:1", "a private address"},
        {"::ffff:0:127.0.0.1", "an address outside the public range of IPv6"},
        {"64:ff9b::10.1.2.3", "a private address"},
        {"64:ff9b::7f00:1", "a loopback address"},
        {"64:ff9b:1::1", "an address outside the public range of IPv6"},
        {"100::1", "an address outside the public range of IPv6"},
        {"2001::1", "a Teredo address"},
        {"2001:2::1", "an address of IETF protocols"},
        {"2001:1ff:ffff::", "an address of IETF protocols"},
        {"2001:db8:ffff::1", "an address for documentation"},
        {"2002:7f00:1::1", "a loopback address"},
        {"2002:c0a8:101::", "a private address"},
        {"3fff::1", "an address for documentation"},
        {"3fff:fff:ffff::", "an address for documentation"},
        {"5f00::1", "an address outside the public range of IPv6"},
        {"fc00::1", "a private address"},
        {"fdff:ffff::1", "a private address"},
        {"fe80::1", "a link-local address"},
        {"febf::1", "a link-local address"},
        {"fec0::1", "a site-local address"},
        {"ff02::1", "a multicast address"},
        {"4000::1", "an address outside the public range of IPv6"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *what = refusal_of(rows[i].address);
        if (what == NULL || strcmp(what, rows[i].what) != 0) {
            fail_msg("%s: %s instead of %s", rows[i].address, what == NULL ? "public" : what, rows[i].what);
        }
    }
}

/* The neighbours of every range above, and who looks special but is not. */
static void lets_public_addresses_pass(void **state) {
    (void)state;
    static const char *const rows[] = {
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.31.196.1", /* AS112, globally reachable */
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2001:200::1",
        "2001:db7::1",
        "2001:db9::1",
        "2001:4860:4860::8888",
        "2002:808:808::1",
        "2003::1",
        "2606:4700:4700::1111",
        "2620:4f:8000::1",
        "3ffe::1",
        "3fff:1000::1",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *what = refusal_of(rows[i]);
        if (what != NULL) {
            fail_msg("%s: %s", rows[i], what);
        }
    }
}

static void wraps_of_an_ipv4_address_are_judged_like_it(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);
    for (unsigned round = 0; round < 50000; round++) {
        uint8_t ip[4];
        prng_fill(&prng, ip, sizeof ip);
        struct address plain = address_ipv4(ip[0], ip[1], ip[2], ip[3], 80);
        struct address nat64 = {.ip = {0, 0x64, 0xff, 0x9b}, .port = 80};
        struct address six = {.ip = {0x20, 0x02}, .port = 80};
        memcpy(nat64.ip + 12, ip, sizeof ip);
        memcpy(six.ip + 2, ip, sizeof ip);
        assert_ptr_equal(reach_refusal(&nat64), reach_refusal(&plain));
        assert_ptr_equal(reach_refusal(&six), reach_refusal(&plain));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_special_addresses_and_says_what_they_are),
        cmocka_unit_test(lets_public_addresses_pass),
        cmocka_unit_test(wraps_of_an_ipv4_address_are_judged_like_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
