/*
 * links_model - how likely the next bit of a list of URLs is, for the few links of a small message.
 *
 * Ten links in a datagram are too few to learn from, so the model comes with what it has learnt from the text
 * in links_text.c. The same text, the same arithmetic (integers only), the same bits on every machine: the
 * model is part of the protocol (docs/protocol/links.md).
 *
 *      symbol (7 bits) ── bit by bit ──> six contexts: probability, how often seen
 *                                        mixed in the logistic domain, weights that learn ──> coder
 *
 * Contexts lie in tables by hash, with a check of 8 bits: what another one has taken counts as never seen.
 * After a message the model forgets it: what was touched is written down and put back.
 *
 * About 7 MiB, allocated once. One thread at a time.
 */
#include "protocol/links/links_state.h"

enum {
    SLOT_BITS = 17,
    SLOTS_COUNT = LINKS_MODEL_CONTEXTS << SLOT_BITS,
    COUNT_MAX = 250,                      /* above it old bits fade */
    TOUCHED_MAX = 1 << 17,                /* 3,120 symbols: more than 64 links have */
    SEEN_SETS = LINKS_MODEL_CONTEXTS + 1, /* by how many contexts were seen before … */
    COUNT_SETS = 8,                       /* … and by how often the own context was */
    WEIGHTS_COUNT = (SEEN_SETS + COUNT_SETS) * LINKS_MODEL_INPUTS,
    WEIGHT_ONE = 1 << 16,
    WEIGHT_SEEN_FIRST = WEIGHT_ONE * 2 / 10,
    RATE = 2,
    STRETCH_MAX = 2047,
    PROBABILITIES = 4096,
};

struct slot {
    uint16_t probability; /* of a one */
    uint8_t check;        /* of the hash: another context is as good as none */
    uint8_t count;        /* how often seen */
};

struct state {
    struct slot slots[SLOTS_COUNT];
    int32_t weights[WEIGHTS_COUNT];
};

/* A slot as it was before it learnt. */
struct touched {
    uint32_t index;
    struct slot before;
};

struct links_model {
    struct arena arena; /* itself */
    struct state now;
    struct state kept;                   /* its slots are read only if more were touched than noted */
    struct touched touched[TOUCHED_MAX]; /* in order, a slot as often as it learnt */
    size_t touched_count;
    int16_t stretch[PROBABILITIES];
    uint32_t reciprocal[COUNT_MAX + 1]; /* 2^16 / (count + 1.5) */
    uint8_t count_set[COUNT_MAX + 1];   /* of the weights, by count */
};

/* What one bit was coded from. */
struct bit {
    uint32_t slots[LINKS_MODEL_CONTEXTS];
    uint8_t checks[LINKS_MODEL_CONTEXTS];
    int32_t inputs[LINKS_MODEL_INPUTS];
    int32_t *seen_weights;
    int32_t *own_weights[LINKS_MODEL_INPUTS];
    uint32_t probability; /* of a one, 1 to 4095 */
};

/* ---- the logistic function, by 33 points ---- */

static uint32_t squash(int32_t x) {
    static const uint16_t points[33] = {1,    2,    3,    6,    10,   16,   27,   45,   73,   120,  194,
                                        310,  488,  747,  1101, 1546, 2047, 2549, 2994, 3348, 3607, 3785,
                                        3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094};
    if (x > STRETCH_MAX) {
        return 4095;
    }
    if (x < -STRETCH_MAX) {
        return 1;
    }
    uint32_t place = (uint32_t)(x + 2048);
    uint32_t part = place & 127;
    return (points[place >> 7] * (128 - part) + points[(place >> 7) + 1] * part + 64) >> 7;
}

static void fill_stretch(int16_t stretch[PROBABILITIES]) {
    uint32_t filled = 0;
    for (int32_t x = -STRETCH_MAX; x <= STRETCH_MAX; x++) {
        for (uint32_t probability = squash(x); filled <= probability; filled++) {
            stretch[filled] = (int16_t)x;
        }
    }
    while (filled < PROBABILITIES) {
        stretch[filled++] = STRETCH_MAX;
    }
}

/* ---- one bit ---- */

static uint32_t model_hash_of(uint32_t context, uint32_t path) {
    return (context + path * UINT32_C(0x9e3779b1)) * UINT32_C(0x85ebca6b);
}

static uint32_t model_index_of(uint32_t hash, uint32_t i) {
    return i << SLOT_BITS | hash >> (32 - SLOT_BITS);
}

/* The slots of a path lie anywhere in 3 MiB: if they were asked for one bit before, nothing waits for them.
 */
static void fetch_ahead(const struct links_model *model, const uint32_t contexts[LINKS_MODEL_CONTEXTS],
                        uint32_t path) {
    for (uint32_t i = 0; i < LINKS_MODEL_CONTEXTS; i++) {
        __builtin_prefetch(&model->now.slots[model_index_of(model_hash_of(contexts[i], path), i)], 1);
    }
}

static void predict(struct links_model *model, const uint32_t contexts[LINKS_MODEL_CONTEXTS], uint32_t path,
                    struct bit *bit) {
    uint32_t seen_count = 0;
    for (uint32_t i = 0; i < LINKS_MODEL_CONTEXTS; i++) {
        uint32_t hash = model_hash_of(contexts[i], path);
        uint32_t index = model_index_of(hash, i);
        const struct slot *slot = &model->now.slots[index];
        bit->checks[i] = (uint8_t)(hash >> (24 - SLOT_BITS));
        bool is_seen = slot->count > 0 && slot->check == bit->checks[i];
        bit->slots[i] = index;
        bit->inputs[i] = is_seen ? model->stretch[slot->probability >> 4] : 0;
        seen_count += is_seen;
        uint32_t set = model->count_set[is_seen ? slot->count : 0];
        bit->own_weights[i] = model->now.weights + (SEEN_SETS + set) * LINKS_MODEL_INPUTS + i;
    }
    bit->own_weights[LINKS_MODEL_CONTEXTS] =
        model->now.weights + SEEN_SETS * LINKS_MODEL_INPUTS + LINKS_MODEL_CONTEXTS;
    bit->inputs[LINKS_MODEL_CONTEXTS] = 256;
    bit->seen_weights = model->now.weights + seen_count * LINKS_MODEL_INPUTS;
    int64_t sum = 0;
    for (uint32_t i = 0; i < LINKS_MODEL_INPUTS; i++) {
        sum += (int64_t)(bit->seen_weights[i] + *bit->own_weights[i]) * bit->inputs[i];
    }
    sum /= WEIGHT_ONE;
    bit->probability = squash(sum > STRETCH_MAX    ? STRETCH_MAX
                              : sum < -STRETCH_MAX ? -STRETCH_MAX
                                                   : (int32_t)sum);
}

static void touch(struct links_model *model, uint32_t index) {
    if (model->touched_count < TOUCHED_MAX) {
        model->touched[model->touched_count] = (struct touched){index, model->now.slots[index]};
    }
    model->touched_count++;
}

static void update_slot(struct links_model *model, uint32_t index, uint8_t check, uint32_t value) {
    struct slot *slot = &model->now.slots[index];
    touch(model, index);
    if (slot->check != check || slot->count == 0) {
        *slot = (struct slot){.probability = 1 << 15, .check = check};
    }
    int32_t target = value ? 65535 : 0;
    int32_t change =
        (int32_t)((int64_t)(target - slot->probability) * model->reciprocal[slot->count] / 65536);
    slot->probability = (uint16_t)(slot->probability + change);
    slot->count = (uint8_t)(slot->count + (slot->count < COUNT_MAX));
}

static void model_learn(struct links_model *model, const struct bit *bit, uint32_t value) {
    int32_t error = (int32_t)(value << 12) - (int32_t)bit->probability;
    for (uint32_t i = 0; i < LINKS_MODEL_INPUTS; i++) {
        int32_t change = bit->inputs[i] * error * RATE / 4096;
        bit->seen_weights[i] += change / 2;
        *bit->own_weights[i] += change / 2;
    }
    for (uint32_t i = 0; i < LINKS_MODEL_CONTEXTS; i++) {
        update_slot(model, bit->slots[i], bit->checks[i], value);
    }
}

/* ---- symbols ---- */

uint8_t links_model_code(struct links_model *model, struct links_coder *coder,
                         const uint32_t contexts[LINKS_MODEL_CONTEXTS], uint8_t symbol) {
    uint32_t path = 1;
    for (int shift = LINKS_MODEL_SYMBOL_BITS - 1; shift >= 0; shift--) {
        struct bit bit;
        uint32_t known = symbol >> shift & 1;
        fetch_ahead(model, contexts, path << 1 | known);
        if (coder->in != NULL) { /* it is not known: the other as well */
            fetch_ahead(model, contexts, path << 1 | !known);
        }
        predict(model, contexts, path, &bit);
        uint32_t value = links_coder_bit(coder, bit.probability, known);
        model_learn(model, &bit, value);
        path = path << 1 | value;
    }
    return (uint8_t)(path & (LINKS_MODEL_SYMBOLS - 1));
}

void links_model_learn(struct links_model *model, const uint32_t contexts[LINKS_MODEL_CONTEXTS],
                       uint8_t symbol) {
    uint32_t path = 1;
    for (int shift = LINKS_MODEL_SYMBOL_BITS - 1; shift >= 0; shift--) {
        struct bit bit;
        uint32_t value = symbol >> shift & 1;
        predict(model, contexts, path, &bit);
        model_learn(model, &bit, value);
        path = path << 1 | value;
    }
}

void links_model_keep(struct links_model *model) {
    model->kept = model->now;
    model->touched_count = 0;
}

void links_model_forget(struct links_model *model) {
    if (model->touched_count > TOUCHED_MAX) {
        memcpy(model->now.slots, model->kept.slots, sizeof model->now.slots);
    } else {
        for (size_t i = model->touched_count; i > 0; i--) {
            model->now.slots[model->touched[i - 1].index] = model->touched[i - 1].before;
        }
    }
    memcpy(model->now.weights, model->kept.weights, sizeof model->now.weights);
    model->touched_count = 0;
}

struct links_model *links_model_new(void) {
    struct links_model *model = arena_new(sizeof *model, sizeof *model + 64);
    if (model == NULL) {
        return NULL;
    }
    fill_stretch(model->stretch);
    for (uint32_t i = 0; i <= COUNT_MAX; i++) {
        model->reciprocal[i] = 2 * 65536 / (2 * i + 3);
        model->count_set[i] = (uint8_t)(i < 4 ? i : i < 6 ? 4 : i < 12 ? 5 : i < 40 ? 6 : 7);
    }
    for (uint32_t i = 0; i < SEEN_SETS * LINKS_MODEL_INPUTS; i++) {
        model->now.weights[i] = WEIGHT_SEEN_FIRST;
    }
    links_model_keep(model);
    return model;
}

void links_model_free(struct links_model *model) {
    arena_free(model);
}
