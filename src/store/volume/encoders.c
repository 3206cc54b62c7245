#include "store/volume/encoders.h"

#include <stdlib.h>

void encoders_init(struct encoders *encoders, int level, struct warc_random random) {
    *encoders = (struct encoders){.level = level, .random = random};
    pthread_mutex_init(&encoders->lock, NULL);
}

static void let_go(struct encoder *encoder) {
    if (encoder->segment != 0) {
        warc_writer_done(&encoder->warc);
        encoder->segment = 0;
    }
}

void encoders_done(struct encoders *encoders) {
    while (encoders->free != NULL) {
        struct encoder *encoder = encoders->free;
        encoders->free = encoder->next;
        let_go(encoder);
        free(encoder);
    }
    pthread_mutex_destroy(&encoders->lock);
}

/* The one that was used last, or a new one; NULL: out of memory. */
static struct encoder *find_one(struct encoders *encoders) {
    pthread_mutex_lock(&encoders->lock);
    struct encoder *encoder = encoders->free;
    if (encoder != NULL) {
        encoders->free = encoder->next;
    }
    pthread_mutex_unlock(&encoders->lock);
    return encoder != NULL ? encoder : calloc(1, sizeof *encoder);
}

void encoders_return(struct encoders *encoders, struct encoder *encoder) {
    pthread_mutex_lock(&encoders->lock);
    encoder->next = encoders->free;
    encoders->free = encoder;
    pthread_mutex_unlock(&encoders->lock);
}

enum err encoders_take(struct encoders *encoders, const struct segment *segment, struct scratch *out,
                       struct encoder **ret_encoder) {
    struct encoder *encoder = find_one(encoders);
    if (encoder == NULL) {
        return ERR_MEMORY;
    }
    scratch_sink_init(&encoder->sink, out);
    if (encoder->segment == segment->number) {
        warc_writer_resume(&encoder->warc, 0);
        *ret_encoder = encoder;
        return ERR_OK;
    }
    let_go(encoder);
    struct pack_options options = {
        .framing = segment->framing,
        .level = encoders->level,
        .dictionary = segment->has_dictionary ? &segment->dictionary : NULL,
    };
    enum err err = warc_writer_init(&encoder->warc, &encoder->sink.sink, 0, &options, encoders->random);
    if (err != ERR_OK) {
        encoders_return(encoders, encoder);
        return err;
    }
    encoder->segment = segment->number;
    *ret_encoder = encoder;
    return ERR_OK;
}
