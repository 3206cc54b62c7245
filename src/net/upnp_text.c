#include "net/upnp_text.h"

#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpreplyparse.h>
#include <stdio.h>
#include <stdlib.h>

enum { HTTP_PORT = 80 };

/* ---- URLs: numbers, and a path ---- */

static bool upnp_is_url_byte(uint8_t byte) {
    return byte > ' ' && byte < 0x7f && byte != '"' && byte != '<' && byte != '>' && byte != '\\' &&
           byte != '#';
}

static bool upnp_is_plain(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (!upnp_is_url_byte(text.data[i])) {
            return false;
        }
    }
    return text.size > 0;
}

bool upnp_same_host(const struct address *a, const struct address *b) {
    return memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* "http://192.0.2.1:5000/desc.xml" of the router. No name, since whoever answers for names is another. */
static bool upnp_split_url(struct bytes url, const struct address *gateway, struct address *ret_host,
                           struct bytes *ret_path) {
    struct bytes scheme = BYTES("http://");
    if (!bytes_starts_with(url, scheme) || !upnp_is_plain(url)) {
        return false;
    }
    struct bytes rest = bytes_skip(url, scheme.size);
    size_t end = bytes_find_byte(rest, '/');
    if (!address_parse(bytes_slice(rest, 0, end), HTTP_PORT, ret_host) || ret_host->port == 0 ||
        !upnp_same_host(ret_host, gateway)) {
        return false;
    }
    *ret_path = bytes_skip(rest, end);
    return true;
}

static bool upnp_join_url(const struct address *host, struct bytes path, char out[UPNP_URL_SIZE_MAX]) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    bool has_slash = path.size > 0 && path.data[0] == '/';
    int size = snprintf(out, UPNP_URL_SIZE_MAX, "http://%s%s%.*s", address_format(host, text),
                        has_slash ? "" : "/", BYTES_ARG(path));
    return size > 0 && size < UPNP_URL_SIZE_MAX;
}

/* As the description names it: whole, or a path on the host of its base. */
static bool upnp_resolve(const char *named, struct bytes base, const struct address *gateway,
                         char out[UPNP_URL_SIZE_MAX]) {
    struct address host;
    struct bytes path;
    struct bytes text = bytes_of_string(named);
    if (bytes_starts_with(text, BYTES("http"))) {
        return upnp_split_url(text, gateway, &host, &path) && upnp_join_url(&host, path, out);
    }
    return upnp_is_plain(text) && upnp_split_url(base, gateway, &host, &path) &&
           upnp_join_url(&host, text, out);
}

/* ---- what it says ---- */

bool upnp_read_answer(struct bytes datagram, const struct address *gateway, char ret_url[UPNP_URL_SIZE_MAX]) {
    struct bytes name = BYTES("location:");
    struct bytes line;
    struct bytes path;
    struct address host;
    if (!bytes_starts_with(datagram, BYTES("HTTP/1.1 200"))) {
        return false;
    }
    do {
        if (!bytes_split(&datagram, '\n', &line)) {
            return false;
        }
    } while (!bytes_starts_with_ignore_case(line, name));
    return upnp_split_url(bytes_trim(bytes_skip(line, name.size)), gateway, &host, &path) &&
           upnp_join_url(&host, path, ret_url);
}

/* It goes back to the router in a header and in XML. */
static bool upnp_is_service(const char *name) {
    static const char *const starts[] = {"urn:schemas-upnp-org:service:WANIPConnection:",
                                         "urn:schemas-upnp-org:service:WANPPPConnection:"};
    struct bytes text = bytes_of_string(name);
    bool is_known = bytes_starts_with(text, bytes_of_string(starts[0])) ||
                    bytes_starts_with(text, bytes_of_string(starts[1]));
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        is_known =
            is_known && (byte_is_alnum(byte) || byte == ':' || byte == '-' || byte == '.' || byte == '_');
    }
    return is_known;
}

bool upnp_read_description(struct bytes text, const struct address *gateway, const char *url,
                           struct upnp *ret_upnp) {
    struct upnp upnp = {0};
    struct IGDdatas *data = calloc(1, sizeof *data);
    if (data == NULL || text.size > UPNP_TEXT_SIZE_MAX) {
        free(data);
        return false;
    }
    parserootdesc((const char *)text.data, (int)text.size, data);
    data->urlbase[sizeof data->urlbase - 1] = '\0';
    struct bytes base = bytes_of_string(data->urlbase[0] != '\0' ? data->urlbase : url);
    struct IGDdatas_service *services[UPNP_SERVICES_MAX] = {&data->first, &data->second};
    for (size_t i = 0; i < UPNP_SERVICES_MAX; i++) {
        struct upnp_service *service = &upnp.services[upnp.services_count];
        services[i]->servicetype[sizeof services[i]->servicetype - 1] = '\0';
        services[i]->controlurl[sizeof services[i]->controlurl - 1] = '\0';
        if (upnp_is_service(services[i]->servicetype) &&
            upnp_resolve(services[i]->controlurl, base, gateway, service->url)) {
            snprintf(service->name, sizeof service->name, "%s", services[i]->servicetype);
            upnp.services_count++;
        }
    }
    free(data);
    if (upnp.services_count > 0) {
        *ret_upnp = upnp;
    }
    return upnp.services_count > 0;
}

bool upnp_read_value(struct bytes text, const char *name, char ret_value[UPNP_VALUE_SIZE_MAX]) {
    struct NameValueParserData data = {0};
    if (text.size > UPNP_TEXT_SIZE_MAX) {
        return false;
    }
    ParseNameValue((const char *)text.data, (int)text.size, &data);
    const char *value = GetValueFromNameValueList(&data, name);
    bool is_found = value != NULL && strlen(value) < UPNP_VALUE_SIZE_MAX;
    if (is_found) {
        snprintf(ret_value, UPNP_VALUE_SIZE_MAX, "%s", value);
    }
    ClearNameValueList(&data);
    return is_found;
}
