/*
 * rewritefile FORMAT URL [FILE…] - rewrites files as the replay server would, as documents of that URL
 * captured at 2026-01-02 03:04:05 under "/web/". Without a file standard input goes to standard output; each
 * FILE goes to FILE.out. FORMAT: html, xml, css, classic, module, hls, dash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/rewrite/rewrite.h"

enum { PIECE_SIZE = 1 << 16 };

static enum err put(void *context, struct bytes piece) {
    return fwrite(piece.data, 1, piece.size, context) == piece.size ? ERR_OK : ERR_IO;
}

static bool rewrite_stream(struct rewrite *rewrite, const struct rewrite_place *place, FILE *in, FILE *out) {
    static uint8_t piece[PIECE_SIZE];
    size_t size;
    rewrite_start(rewrite, place, put, out);
    while ((size = fread(piece, 1, sizeof piece, in)) > 0) {
        if (rewrite_feed(rewrite, bytes_of(piece, size)) != ERR_OK) {
            return false;
        }
    }
    return rewrite_finish(rewrite) == ERR_OK;
}

static bool rewrite_path(struct rewrite *rewrite, const struct rewrite_place *place, const char *path) {
    char out_path[4096];
    snprintf(out_path, sizeof out_path, "%s.out", path);
    FILE *in = fopen(path, "rb");
    FILE *out = fopen(out_path, "wb");
    bool is_good = in != NULL && out != NULL && rewrite_stream(rewrite, place, in, out);
    if (in != NULL) {
        fclose(in);
    }
    return (out == NULL || fclose(out) == 0) && is_good;
}

static bool find_format(const char *name, enum rewrite_format *ret_format) {
    static const struct {
        const char *name;
        enum rewrite_format format;
    } formats[] = {
        {"html", REWRITE_HTML}, {"xml", REWRITE_XML},
        {"css", REWRITE_CSS},   {"classic", REWRITE_CLASSIC_SCRIPT},
        {"hls", REWRITE_HLS},   {"module", REWRITE_MODULE_SCRIPT},
        {"dash", REWRITE_DASH},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *ret_format = formats[i].format;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv) {
    struct rewrite_place place = {.prefix = BYTES("/web/"), .timestamp = BYTES("20260102030405")};
    struct url url;
    url_init(&url);
    if (argc < 3 || !find_format(argv[1], &place.format) ||
        url_parse(&url, bytes_of_string(argv[2]), NULL, NULL) != ERR_OK) {
        fprintf(stderr, "usage: rewritefile FORMAT URL [FILE…]\n");
        return 2;
    }
    place.url = &url;
    struct rewrite *rewrite = rewrite_new();
    bool is_good = rewrite != NULL;
    if (is_good && argc == 3) {
        is_good = rewrite_stream(rewrite, &place, stdin, stdout);
    }
    for (int i = 3; i < argc && is_good; i++) {
        is_good = rewrite_path(rewrite, &place, argv[i]);
    }
    rewrite_free(rewrite);
    url_done(&url);
    return is_good ? 0 : 1;
}
