/* The crowd as a part of what the nodes of a ring do together: decision 0012. */
#include <stdio.h>
#include <stdlib.h>

#include "node/together_state.h"
#include "store/access/access.h"

enum { HOT_MAX = 20 };

/* ---- making ---- */

/*
 * Who vouches for a capture by his signature: ourselves, or a member that we know. To be admitted is not
 * enough where the ring is open: then whoever makes himself a key is.
 */
static bool trusts(void *context, const uint8_t signer[PEER_KEY_SIZE]) {
    struct together *together = context;
    struct peer peer = {0};
    memcpy(peer.key, signer, PEER_KEY_SIZE);
    pthread_mutex_lock(&together->lock);
    bool is_open = together->charter.is_open;
    bool is_removed = charter_is_removed(&together->charter, signer);
    pthread_mutex_unlock(&together->lock);
    if (memcmp(signer, together->self.key, PEER_KEY_SIZE) == 0) {
        return true;
    }
    bool has_shown = !is_open && transport_admits(together->transport, &peer);
    return !is_removed && (has_shown || holders_have_key(together->holders, signer));
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    const struct together *together = context;
    transport_blame(together->transport, peer, sentence);
}

static size_t have(void *context, struct bytes wish, uint8_t *memory) {
    const struct together *together = context;
    return offers_have(together->offers, wish, memory);
}

/* Without rules, which is most often, there is nothing to look up. */
static bool is_hidden(void *context, struct bytes surt, int64_t time_us) {
    const struct together *together = context;
    struct access *access = together->access;
    return access != NULL && access_has_rules(access) && access_check(access, surt, time_us) != ACCESS_ALLOW;
}

static enum err make_offers(struct together *together, struct err_detail *detail) {
    const struct together_crowd *crowd = &together->config.crowd;
    struct offers_config offers = {
        .directory = together->config.directory,
        .peer_rpc = together->peer_rpc,
        .size_max = crowd->cache_size,
        .is_closed = crowd->part == CROWD_QUERY_ONLY || crowd->part == CROWD_MUTE,
        .is_hidden = is_hidden,
        .context = together,
        .clock = together->config.clock,
    };
    enum err err = offers_new(&offers, &together->offers, detail);
    if (err == ERR_OK) {
        offers_load(together->offers);
    }
    return err;
}

static bool look(void *context, uint64_t number, struct bytes wish) {
    const struct together *together = context;
    return together->kept != NULL && kept_look(together->kept, number, wish);
}

static enum err make_crowd_driver(struct together *together) {
    const struct together_crowd *crowd = &together->config.crowd;
    struct crowd_driver_config crowd_driver = {
        .directory = together->config.directory,
        .transport = together->transport,
        .crowd =
            {
                .kind = (enum crowd_kind)crowd->overlay,
                .part = (enum crowd_part)crowd->part,
                .view_size = crowd->view_size,
                .shuffle_us = crowd->shuffle_us,
                .fanout = crowd->fanout,
            },
        .clock = together->config.clock,
        .have = have,
        .look = crowd->offers_kept ? look : NULL,
        .blame = blame,
        .context = together,
    };
    together->crowd_driver = crowd_driver_new(&crowd_driver);
    return together->crowd_driver == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err make_crowd_reader(struct together *together) {
    struct crowd_reader_config crowd_reader = {
        .crowd_driver = together->crowd_driver,
        .offers = together->offers,
        .captures = together->captures,
        .peer_rpc = together->peer_rpc,
        .trusts = trusts,
        .blame = blame,
        .context = together,
    };
    together->crowd_reader = crowd_reader_new(&crowd_reader);
    return together->crowd_reader == NULL ? ERR_MEMORY : ERR_OK;
}

static void on_looked(void *context, uint64_t number, struct bytes finding) {
    const struct together *together = context;
    crowd_driver_looked(together->crowd_driver, number, finding);
}

static enum err find_surt(void *context, const struct ringkey *key, struct buf *out) {
    const struct together *together = context;
    return copies_find_surt(together->copies, key, out);
}

static enum err make_kept(struct together *together, uint8_t mapping) {
    struct kept_config kept = {
        .copies = together->copies,
        .offers = together->offers,
        .captures =
            {
                .instance = together->config.instance,
                .scratch_directory = together->config.directory,
                .mapping = mapping,
                .find_surt = find_surt,
                .context = together,
            },
        .looked = on_looked,
        .context = together,
    };
    return together->config.crowd.offers_kept ? kept_start(&kept, &together->kept) : ERR_OK;
}

void together_make_crowd(struct together *together, uint8_t mapping) {
    struct err_detail detail = {0};
    if (together->config.crowd.is_off) {
        return;
    }
    enum err err = make_offers(together, &detail);
    err = err == ERR_OK ? make_crowd_driver(together) : err;
    err = err == ERR_OK ? make_kept(together, mapping) : err;
    err = err == ERR_OK ? make_crowd_reader(together) : err;
    if (err != ERR_OK && together->config.note != NULL) {
        char sentence[ERR_TEXT_SIZE_MAX + 32];
        snprintf(sentence, sizeof sentence, "without the crowd: %s", err_detail_text(&detail, err));
        together->config.note(together->config.context, sentence);
    }
}

void together_beat_crowd(struct together *together) {
    crowd_driver_beat(together->crowd_driver);
    if (together->access != NULL && access_has_rules(together->access)) {
        offers_review(together->offers);
    }
}

void together_stop_crowd(struct together *together) {
    if (together->crowd_driver != NULL) {
        crowd_driver_stop(together->crowd_driver);
    }
    if (together->kept != NULL) {
        kept_stop(together->kept);
    }
}

void together_free_crowd(struct together *together) {
    if (together->kept != NULL) {
        kept_free(together->kept);
    }
    if (together->crowd_reader != NULL) {
        crowd_reader_free(together->crowd_reader);
    }
    if (together->crowd_driver != NULL) {
        crowd_driver_free(together->crowd_driver);
    }
    if (together->offers != NULL) {
        offers_free(together->offers);
    }
}

/* ---- the ring's loop ---- */

void together_begin_crowd(void *context) {
    struct together *together = context;
    uint8_t ring[CROWD_NETWORK_SIZE];
    if (together_crowd_driver(together) != NULL) {
        pthread_mutex_lock(&together->lock);
        memcpy(ring, together->ring_id, sizeof ring);
        pthread_mutex_unlock(&together->lock);
        crowd_driver_begin(together->crowd_driver, &together->self, ring);
    }
}

/* ---- any thread ---- */

static bool has_crowd(const struct together *together) {
    return together->is_begun && together->crowd_reader != NULL; /* the last one that is made */
}

struct crowd_driver *together_crowd_driver(struct together *together) {
    return has_crowd(together) ? together->crowd_driver : NULL;
}

struct offers *together_offers(struct together *together) {
    return has_crowd(together) ? together->offers : NULL;
}

struct crowd_reader *together_crowd_reader(struct together *together) {
    return has_crowd(together) ? together->crowd_reader : NULL;
}

static void put_offers(struct together *together, struct buf *out) {
    struct offers_stat offers;
    struct crowd_reader_stat obtained;
    offers_stat(together->offers, &offers);
    crowd_reader_stat(together->crowd_reader, &obtained);
    buf_put_format(
        out, ",\"offers\":{\"count\":%u,\"size\":%ju,\"given\":%ju,\"given_size\":%ju,\"referred\":%ju}",
        offers.count, (uintmax_t)offers.size, (uintmax_t)offers.given_count, (uintmax_t)offers.given_size,
        (uintmax_t)offers.referred_count);
    buf_put_format(out,
                   ",\"obtained\":{\"wanted\":%ju,\"own\":%ju,\"count\":%ju,\"size\":%ju,\"lost\":%ju,"
                   "\"false\":%ju},\"hot\":",
                   (uintmax_t)obtained.wanted_count, (uintmax_t)obtained.own_count,
                   (uintmax_t)obtained.obtained_count, (uintmax_t)obtained.obtained_size,
                   (uintmax_t)obtained.lost_count, (uintmax_t)obtained.false_count);
    offers_put_json(together->offers, HOT_MAX, out);
}

void together_put_crowd(struct together *together, struct buf *out) {
    if (!has_crowd(together)) {
        buf_put_string(out, "{\"version\":1,\"state\":\"none\"}");
        return;
    }
    buf_put_string(out, "{\"version\":1,");
    crowd_driver_put(together->crowd_driver, out);
    put_offers(together, out);
    buf_put_byte(out, '}');
}
