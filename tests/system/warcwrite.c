/*
 * warcwrite plain|gzip|zstd - writes a WARC file to standard output that has every kind of record that mnemon
 * writes, with blocks from 0 bytes to more than 8 MiB. The same bytes on every run. test_warc_npm.py gives it
 * to others' readers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/prng.h"
#include "warc/warc_writer.h"

enum { BODY_SIZE_MAX = (8 << 20) + 12345 };

static const int64_t date_us = INT64_C(1767323045) * 1000000;

struct program {
    struct sink_file sink;
    struct prng prng;
    struct warc_writer writer;
    uint8_t *body;
};

static void fill(void *context, void *out, size_t size) {
    prng_fill(context, out, size);
}

static struct warc_written put(struct program *program, const struct warc_draft *draft) {
    struct warc_written written;
    struct err_detail detail;
    if (warc_writer_put(&program->writer, draft, &written, &detail) != ERR_OK) {
        fprintf(stderr, "warcwrite: %s\n", detail.text);
        exit(1);
    }
    return written;
}

static void put_warcinfo(struct program *program) {
    struct buf info;
    buf_init(&info, 4096);
    warc_put_info(&info, "software", BYTES("mnemon"));
    warc_put_info(&info, "format", BYTES("WARC File Format 1.1"));
    warc_put_info(&info, "conformsTo",
                  BYTES("https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"));
    struct warc_draft draft = {.type = WARC_TYPE_WARCINFO,
                               .date_us = date_us,
                               .filename = BYTES("test.warc"),
                               .body = buf_bytes(&info)};
    put(program, &draft);
    buf_done(&info);
}

/* Text with some noise in it. */
static struct bytes make_body(struct program *program, size_t size) {
    for (size_t i = 0; i < size; i++) {
        program->body[i] =
            i % 1000 < 700 ? (uint8_t) "<p>hello</p>\n"[i % 13] : (uint8_t)prng_u64(&program->prng);
    }
    return bytes_of(program->body, size);
}

/* A capture: response, request, and a later visit that found the same payload. */
static void put_capture(struct program *program, size_t size) {
    struct warc_draft draft = {
        .type = WARC_TYPE_RESPONSE,
        .date_us = date_us + (int64_t)size,
        .target_uri = BYTES("http://example.org/\xc3\xa4?a=<b>&c"),
        .ip_address = BYTES("2001:db8::1"),
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-\xc3\xbc: \xff\r\n\r\n"),
        .body = make_body(program, size),
    };
    struct warc_written response = put(program, &draft);
    struct warc_draft request = draft;
    request.type = WARC_TYPE_REQUEST;
    request.concurrent_to = &response.id;
    request.head = BYTES("GET /\xc3\xa4?a=<b>&c HTTP/1.1\r\nHost: example.org\r\n\r\n");
    request.body = bytes_of(NULL, 0);
    put(program, &request);
    struct warc_draft revisit = draft;
    revisit.type = WARC_TYPE_REVISIT;
    revisit.date_us += 1000000;
    revisit.body = bytes_of(NULL, 0);
    revisit.payload_sha256 = response.payload_sha256;
    revisit.refers_to_target_uri = draft.target_uri;
    revisit.refers_to_date_us = draft.date_us;
    put(program, &revisit);
}

static void put_others(struct program *program) {
    struct warc_draft draft = {.date_us = date_us, .target_uri = BYTES("http://example.org/x")};
    draft.type = WARC_TYPE_RESPONSE;
    draft.head = BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    draft.body = BYTES("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n");
    put(program, &draft);
    draft.head = bytes_of(NULL, 0);
    draft.type = WARC_TYPE_RESOURCE;
    draft.content_type = BYTES("image/png");
    draft.body = make_body(program, 70000);
    draft.is_incompressible = true;
    draft.truncated = BYTES("disconnect");
    put(program, &draft);
    draft.type = WARC_TYPE_CONVERSION;
    put(program, &draft);
    draft.type = WARC_TYPE_METADATA;
    draft.content_type = bytes_of(NULL, 0);
    draft.body = BYTES("via: http://example.com/\r\nhopsFromSeed: L\r\n");
    put(program, &draft);
    draft.type = WARC_TYPE_REVISIT;
    draft.revisit = WARC_REVISIT_NOT_MODIFIED;
    draft.head = BYTES("HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\n\r\n");
    draft.body = bytes_of(NULL, 0);
    draft.refers_to_target_uri = draft.target_uri;
    draft.refers_to_date_us = date_us;
    put(program, &draft);
}

int main(int argc, char **argv) {
    static const char *const names[] = {[PACK_PLAIN] = "plain", [PACK_GZIP] = "gzip", [PACK_ZSTD] = "zstd"};
    static const size_t sizes[] = {0, 1, 2, 1000, 65535, 262144, 300000, 1 << 20, BODY_SIZE_MAX};
    struct program program = {.body = malloc(BODY_SIZE_MAX)};
    size_t framing = 0;
    while (framing < 3 && (argc != 2 || strcmp(argv[1], names[framing]) != 0)) {
        framing++;
    }
    if (framing == 3 || program.body == NULL) {
        fprintf(stderr, "usage: warcwrite plain|gzip|zstd >FILE\n");
        return 2;
    }
    prng_init(&program.prng, 1);
    sink_file_init(&program.sink, STDOUT_FILENO);
    struct pack_options options = {.framing = (enum pack_framing)framing};
    struct warc_random random = {.fill = fill, .context = &program.prng};
    if (warc_writer_init(&program.writer, &program.sink.sink, 0, &options, random) != ERR_OK) {
        return 1;
    }
    put_warcinfo(&program);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_capture(&program, sizes[i]);
    }
    put_others(&program);
    warc_writer_done(&program.writer);
    free(program.body);
    return 0;
}
