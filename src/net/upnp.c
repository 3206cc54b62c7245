#include "net/upnp.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/socket_address.h"

enum {
    SSDP_PORT = 1900,
    SSDP_DATAGRAM_SIZE_MAX = 1500,
    SSDP_DATAGRAMS_MAX = 64, /* that are read in one search, of whomever */
    SSDP_HOPS = 2,
    HEADS_SIZE_MAX = 16 << 10,
    SLICE_MS = 100, /* between two looks whether it shall end */
    US_PER_MS = 1000,
    HTTP_OK = 200,
};
static const uint64_t SSDP_US = 1200000; /* routers wait up to the second of MX */
static const uint64_t HTTP_US = 3000000; /* for one answer */

static bool upnp_is_over(const struct upnp_talk *talk, uint64_t until_us) {
    uint64_t now_us = clock_monotonic_us(&clock_system);
    bool is_ending = talk->is_ending != NULL && talk->is_ending(talk->context);
    return is_ending || now_us >= until_us || now_us >= talk->until_us;
}

/* ---- HTTP ---- */

struct upnp_answer {
    const struct upnp_talk *talk;
    struct buf text;
    size_t heads_size;
};

static size_t upnp_take(char *data, size_t one, size_t count, void *context) {
    struct upnp_answer *answer = context;
    (void)one;
    return buf_put(&answer->text, bytes_of(data, count)) == ERR_OK ? count : 0;
}

static size_t upnp_take_head(char *data, size_t one, size_t count, void *context) {
    struct upnp_answer *answer = context;
    (void)data;
    (void)one;
    answer->heads_size += count;
    return answer->heads_size <= HEADS_SIZE_MAX ? count : 0;
}

static int upnp_is_still_wanted(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    const struct upnp_answer *answer = context;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return upnp_is_over(answer->talk, UINT64_MAX);
}

static void upnp_set_bounds(CURL *easy, const struct upnp_talk *talk, struct upnp_answer *answer) {
    char from[ADDRESS_TEXT_SIZE_MAX];
    char interface[ADDRESS_TEXT_SIZE_MAX + 8];
    uint64_t now_us = clock_monotonic_us(&clock_system);
    uint64_t left_us = talk->until_us > now_us ? talk->until_us - now_us : 1;
    left_us = left_us < HTTP_US ? left_us : HTTP_US;
    address_format(&talk->own, from);
    *strrchr(from, ':') = '\0';
    snprintf(interface, sizeof interface, "host!%s", from);
    curl_easy_setopt(easy, CURLOPT_INTERFACE, interface);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXFILESIZE, (long)UPNP_TEXT_SIZE_MAX);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(left_us / US_PER_MS + 1));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, upnp_take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, upnp_take_head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, answer);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, upnp_is_still_wanted);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, answer);
}

/* body: NULL to fetch. What it says is in answer->text. */
static enum err upnp_http(const struct upnp_talk *talk, const char *url, struct curl_slist *heads,
                          const char *body, struct upnp_answer *answer, long *ret_code,
                          struct err_detail *detail) {
    CURL *easy = curl_easy_init();
    *answer = (struct upnp_answer){.talk = talk};
    buf_init(&answer->text, UPNP_TEXT_SIZE_MAX);
    if (easy == NULL) {
        return ERR_MEMORY;
    }
    upnp_set_bounds(easy, talk, answer);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    if (body != NULL) {
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, heads);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    }
    CURLcode result = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, ret_code);
    curl_easy_cleanup(easy);
    if (result == CURLE_WRITE_ERROR || result == CURLE_FILESIZE_EXCEEDED) {
        return err_set(detail, ERR_LIMIT, "by UPnP it says more than anybody needs at %.150s", url);
    }
    return result == CURLE_OK ? ERR_OK
                              : err_set(detail, ERR_UNREACHABLE, "by UPnP: no answer at %.150s: %s", url,
                                        curl_easy_strerror(result));
}

/* ---- actions ---- */

enum { BODY_SIZE_MAX = 2048, HEAD_SIZE_MAX = 256 };

/* arguments: XML of our own making. */
static enum err upnp_act(const struct upnp_talk *talk, const struct upnp_service *service, const char *action,
                         const char *arguments, struct upnp_answer *answer, unsigned *ret_code,
                         struct err_detail *detail) {
    char body[BODY_SIZE_MAX];
    char head[HEAD_SIZE_MAX];
    char number[UPNP_VALUE_SIZE_MAX];
    long status = 0;
    snprintf(body, sizeof body,
             "<?xml version=\"1.0\"?>\r\n"
             "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" "
             "s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\">"
             "<s:Body><u:%s xmlns:u=\"%s\">%s</u:%s></s:Body></s:Envelope>\r\n",
             action, service->name, arguments, action);
    snprintf(head, sizeof head, "SOAPAction: \"%s#%s\"", service->name, action);
    struct curl_slist *heads = curl_slist_append(NULL, head);
    heads = heads == NULL ? NULL : curl_slist_append(heads, "Content-Type: text/xml; charset=\"utf-8\"");
    enum err err = upnp_http(talk, service->url, heads, body, answer, &status, detail);
    curl_slist_free_all(heads);
    if (err == ERR_OK && status != HTTP_OK) {
        bool has_number = upnp_read_value(buf_bytes(&answer->text), "errorCode", number);
        *ret_code = has_number ? (unsigned)strtoul(number, NULL, 10) : 0;
        err = err_set(detail, ERR_REFUSED, "by UPnP it refuses %s: error %u, HTTP status %ld", action,
                      *ret_code, status);
    }
    return err;
}

enum err upnp_ask_address(const struct upnp_talk *talk, const struct upnp_service *service,
                          struct address *ret_outer, struct err_detail *detail) {
    struct upnp_answer answer;
    char value[UPNP_VALUE_SIZE_MAX];
    unsigned code = 0;
    struct address outer;
    enum err err = upnp_act(talk, service, "GetExternalIPAddress", "", &answer, &code, detail);
    if (err == ERR_OK && (!upnp_read_value(buf_bytes(&answer.text), "NewExternalIPAddress", value) ||
                          !address_parse(bytes_of_string(value), 1, &outer) || !address_is_ipv4(&outer))) {
        err = err_set(detail, ERR_INVALID, "by UPnP it does not say its outer address");
    }
    if (err == ERR_OK) {
        outer.port = 0;
        *ret_outer = outer;
    }
    buf_done(&answer.text);
    return err;
}

static const char *upnp_protocol(const struct pcp_wish *wish) {
    return wish->protocol == PCP_UDP ? "UDP" : "TCP";
}

enum err upnp_ask_port(const struct upnp_talk *talk, const struct upnp_service *service,
                       const struct pcp_wish *wish, unsigned *ret_code, struct err_detail *detail) {
    struct upnp_answer answer;
    char arguments[BODY_SIZE_MAX / 2];
    char own[ADDRESS_TEXT_SIZE_MAX];
    address_format(&wish->own, own);
    *strrchr(own, ':') = '\0';
    snprintf(arguments, sizeof arguments,
             "<NewRemoteHost></NewRemoteHost><NewExternalPort>%u</NewExternalPort>"
             "<NewProtocol>%s</NewProtocol><NewInternalPort>%u</NewInternalPort>"
             "<NewInternalClient>%s</NewInternalClient><NewEnabled>1</NewEnabled>"
             "<NewPortMappingDescription>mnemon</NewPortMappingDescription>"
             "<NewLeaseDuration>%u</NewLeaseDuration>",
             wish->outer_port, upnp_protocol(wish), wish->own.port, own, wish->lifetime_s);
    *ret_code = 0;
    enum err err = upnp_act(talk, service, "AddPortMapping", arguments, &answer, ret_code, detail);
    buf_done(&answer.text);
    return err;
}

enum err upnp_take_back(const struct upnp_talk *talk, const struct upnp_service *service,
                        const struct pcp_wish *wish, struct err_detail *detail) {
    struct upnp_answer answer;
    char arguments[BODY_SIZE_MAX / 2];
    unsigned code = 0;
    snprintf(
        arguments, sizeof arguments,
        "<NewRemoteHost></NewRemoteHost><NewExternalPort>%u</NewExternalPort><NewProtocol>%s</NewProtocol>",
        wish->outer_port, upnp_protocol(wish));
    enum err err = upnp_act(talk, service, "DeletePortMapping", arguments, &answer, &code, detail);
    buf_done(&answer.text);
    return err;
}

/* ---- search ---- */

static void upnp_search(int fd, const struct address *to) {
    static const char *const kinds[] = {"device:InternetGatewayDevice:1", "device:InternetGatewayDevice:2"};
    struct sockaddr_storage name;
    const struct sockaddr *target = socket_address_put(to, &name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char text[HEAD_SIZE_MAX];
        int size = snprintf(text, sizeof text,
                            "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\n"
                            "MX: 1\r\nST: urn:schemas-upnp-org:%s\r\n\r\n",
                            kinds[i]);
        (void)sendto(fd, text, (size_t)size, 0, target,
                     sizeof(struct sockaddr_in)); /* as any, it may be lost */
    }
}

static int upnp_open(const struct upnp_talk *talk) {
    struct sockaddr_storage name;
    struct in_addr interface;
    unsigned char hops = SSDP_HOPS;
    memcpy(&interface, talk->own.ip + 12, sizeof interface);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_open =
        fd >= 0 && bind(fd, socket_address_put(&talk->own, &name), sizeof(struct sockaddr_in)) == 0;
    if (!is_open && fd >= 0) {
        close(fd);
    }
    if (is_open) {
        (void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface);
        (void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
    }
    return is_open ? fd : -1;
}

/* From the router itself, or nobody. */
static bool upnp_hear(const struct upnp_talk *talk, int fd, char ret_url[UPNP_URL_SIZE_MAX]) {
    uint8_t memory[SSDP_DATAGRAM_SIZE_MAX];
    struct sockaddr_storage name;
    socklen_t name_size = sizeof name;
    struct address from;
    ssize_t size = recvfrom(fd, memory, sizeof memory, 0, (struct sockaddr *)&name, &name_size);
    return size > 0 && socket_address_get((const struct sockaddr *)&name, &from) &&
           upnp_same_host(&from, &talk->gateway) &&
           upnp_read_answer(bytes_of(memory, (size_t)size), &talk->gateway, ret_url);
}

static bool upnp_discover(const struct upnp_talk *talk, char ret_url[UPNP_URL_SIZE_MAX]) {
    struct address everybody = address_ipv4(239, 255, 255, 250, SSDP_PORT);
    struct address gateway = talk->gateway;
    uint64_t until_us = clock_monotonic_us(&clock_system) + SSDP_US;
    int fd = upnp_open(talk);
    if (fd < 0) {
        return false;
    }
    gateway.port = SSDP_PORT;
    upnp_search(fd, &gateway);
    upnp_search(fd, &everybody);
    bool is_found = false;
    for (int heard = 0; !is_found && heard < SSDP_DATAGRAMS_MAX && !upnp_is_over(talk, until_us);) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, SLICE_MS) > 0) {
            heard++;
            is_found = upnp_hear(talk, fd, ret_url);
        }
    }
    close(fd);
    return is_found;
}

enum err upnp_find(const struct upnp_talk *talk, struct upnp *ret_upnp, struct err_detail *detail) {
    struct upnp_answer answer;
    char url[UPNP_URL_SIZE_MAX];
    long status = 0;
    if (!upnp_discover(talk, url)) {
        return err_set(detail, ERR_NOT_FOUND, "no answer by UPnP");
    }
    enum err err = upnp_http(talk, url, NULL, NULL, &answer, &status, detail);
    bool is_there = err == ERR_OK && status == HTTP_OK &&
                    upnp_read_description(buf_bytes(&answer.text), &talk->gateway, url, ret_upnp);
    if (err == ERR_OK && !is_there) {
        err = err_set(detail, ERR_INVALID, "by UPnP it describes nothing that maps ports");
    }
    buf_done(&answer.text);
    return err;
}
