/*
 * upnp - what a router says by UPnP: answers to a search, descriptions, values. No address but the router's
 * own may come of it, and nothing that could end a header or an XML text of ours.
 */
#include "net/upnp_text.h"

#include "fuzz.h"

static void check_url(const char *url) {
    ASSERT(bytes_starts_with(bytes_of_string(url), BYTES("http://10.7.0.1:")));
    ASSERT(strlen(url) < UPNP_URL_SIZE_MAX && strpbrk(url, " \t\r\n\"<>@#") == strchr(url, '@'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size);
    struct address gateway = address_ipv4(10, 7, 0, 1, 0);
    char url[UPNP_URL_SIZE_MAX];
    char value[UPNP_VALUE_SIZE_MAX];
    struct upnp upnp;
    if (upnp_read_answer(input, &gateway, url)) {
        check_url(url);
    }
    if (upnp_read_description(input, &gateway, "http://10.7.0.1:5000/desc.xml", &upnp)) {
        ASSERT(upnp.services_count > 0 && upnp.services_count <= UPNP_SERVICES_MAX);
        for (size_t i = 0; i < upnp.services_count; i++) {
            check_url(upnp.services[i].url);
            ASSERT(strpbrk(upnp.services[i].name, " \t\r\n\"<>&#") == NULL);
        }
    }
    if (upnp_read_value(input, "NewExternalIPAddress", value) || upnp_read_value(input, "errorCode", value)) {
        ASSERT(strlen(value) < UPNP_VALUE_SIZE_MAX);
    }
    return 0;
}
