/* upnp: which answers, descriptions and values of a router are read, and that no other host is ever named. */
#include "net/upnp_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/gateway.h"
#include "unit.h"

static const char url[] = "http://10.7.0.1:5000/rootDesc.xml";

static struct address router(void) {
    return address_ipv4(10, 7, 0, 1, 0);
}

static bool is_read(const char *datagram, char out[UPNP_URL_SIZE_MAX]) {
    struct address gateway = router();
    return upnp_read_answer(bytes_of_string(datagram), &gateway, out);
}

static void reads_where_the_description_is(void **state) {
    char out[UPNP_URL_SIZE_MAX];
    (void)state;
    assert_true(is_read(
        "HTTP/1.1 200 OK\r\nST: urn:x\r\nLocation:  http://10.7.0.1:5000/rootDesc.xml \r\n\r\n", out));
    assert_string_equal(out, url);
    assert_true(is_read("HTTP/1.1 200 OK\r\nLOCATION:http://10.7.0.1\r\n\r\n", out));
    assert_string_equal(out, "http://10.7.0.1:80/");
}

static void refuses_other_hosts(void **state) {
    static const char *const refused[] = {
        "http://10.7.0.9:5000/x",  "http://router.lan/x",        "https://10.7.0.1/x",
        "http://10.7.0.1:0/x",     "http://10.7.0.1@10.7.0.9/x", "http://10.7.0.1.evil.example/",
        "ftp://10.7.0.1/",         "http://10.7.0.1/a b",        "http://10.7.0.1/\"><x",
        "http://[::1]/x",          "http://2130706433/x",        "",
        "http://10.7.0.1:80:80/x", "file:///etc/passwd",         "http://010.7.0.1/x#http://10.7.0.1/",
    };
    char text[512];
    char out[UPNP_URL_SIZE_MAX] = "";
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nLOCATION: %s\r\n\r\n", refused[i]);
        assert_false(is_read(text, out));
    }
    assert_false(is_read("NOTIFY * HTTP/1.1\r\nLOCATION: http://10.7.0.1/x\r\n\r\n", out));
    assert_false(is_read("HTTP/1.1 200 OK\r\n\r\n", out));
    assert_string_equal(out, "");
}

static void refuses_a_path_that_is_too_long(void **state) {
    char text[1024];
    char out[UPNP_URL_SIZE_MAX];
    (void)state;
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nLOCATION: http://10.7.0.1/%0*d\r\n\r\n", 400, 7);
    assert_false(is_read(text, out));
}

static bool describe(const char *base, const char *service, const char *control, struct upnp *out) {
    char text[2048];
    struct address gateway = router();
    snprintf(text, sizeof text,
             "<?xml version=\"1.0\"?><root xmlns=\"urn:schemas-upnp-org:device-1-0\">%s<device><serviceList>"
             "<service><serviceType>%s</serviceType><controlURL>%s</controlURL></service>"
             "</serviceList></device></root>",
             base, service, control);
    return upnp_read_description(bytes_of_string(text), &gateway, url, out);
}

static void finds_the_service_that_maps_ports(void **state) {
    static const char name[] = "urn:schemas-upnp-org:service:WANIPConnection:1";
    struct upnp upnp;
    (void)state;
    assert_true(describe("", name, "/ctl/IPConn", &upnp));
    assert_int_equal(upnp.services_count, 1);
    assert_string_equal(upnp.services[0].url, "http://10.7.0.1:5000/ctl/IPConn");
    assert_string_equal(upnp.services[0].name, name);
    assert_true(describe("<URLBase>http://10.7.0.1:6000/</URLBase>", name, "ctl", &upnp));
    assert_string_equal(upnp.services[0].url, "http://10.7.0.1:6000/ctl");
    assert_true(describe("", name, "http://10.7.0.1:7000/ctl", &upnp));
    assert_string_equal(upnp.services[0].url, "http://10.7.0.1:7000/ctl");
}

static void is_sent_to_no_other_host(void **state) {
    static const char name[] = "urn:schemas-upnp-org:service:WANIPConnection:1";
    struct upnp upnp;
    (void)state;
    assert_false(describe("", name, "http://10.7.0.9/ctl", &upnp));
    assert_false(describe("<URLBase>http://10.7.0.9/</URLBase>", name, "/ctl", &upnp));
    assert_false(describe("", name, "", &upnp));
    assert_false(describe("", "urn:schemas-upnp-org:service:Dimming:1", "/ctl", &upnp));
    assert_false(describe("", "urn:schemas-upnp-org:service:WANIPConnection:1&quot;&#10;", "/ctl", &upnp));
}

static void reads_values(void **state) {
    static const char text[] = "<?xml version=\"1.0\"?><s:Envelope><s:Body><u:GetExternalIPAddressResponse>"
                               "<NewExternalIPAddress>93.184.215.1</NewExternalIPAddress></"
                               "u:GetExternalIPAddressResponse></s:Body></s:Envelope>";
    char value[UPNP_VALUE_SIZE_MAX] = "";
    (void)state;
    assert_true(upnp_read_value(bytes_of_string(text), "NewExternalIPAddress", value));
    assert_string_equal(value, "93.184.215.1");
    assert_false(upnp_read_value(bytes_of_string(text), "errorCode", value));
    assert_false(upnp_read_value(bytes_of_string("<a"), "a", value));
}

static void finds_the_default_route(void **state) {
    static const char table[] =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "wlan0\t00000000\t0100000A\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
        "eth0\t00000000\t0100070A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
        "eth1\t00000000\t0100080A\t0002\t0\t0\t1\t00000000\t0\t0\t0\n"
        "eth0\t0000070A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    struct address gateway;
    struct address wanted = router();
    (void)state;
    assert_true(gateway_parse(bytes_of_string(table), &gateway));
    assert_true(address_equal(&gateway, &wanted));
    assert_false(gateway_parse(bytes_of_string("Iface\n"), &gateway));
    assert_false(gateway_parse(bytes_of_string(""), &gateway));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_where_the_description_is),
        cmocka_unit_test(refuses_other_hosts),
        cmocka_unit_test(refuses_a_path_that_is_too_long),
        cmocka_unit_test(finds_the_service_that_maps_ports),
        cmocka_unit_test(is_sent_to_no_other_host),
        cmocka_unit_test(reads_values),
        cmocka_unit_test(finds_the_default_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
