#include "store/access/access_rules.h"

#include <stdlib.h>

#include "base/arena.h"

enum { RULES_START = 64 };

static const size_t KEYS_SIZE_MAX = (size_t)1 << 30;
static const uint32_t NO_NODE = UINT32_MAX;

struct rule {
    struct bytes key;                   /* in keys */
    const struct access_period *period; /* in keys; NULL: of any time */
    uint32_t number;                    /* in the order of the lines */
    uint8_t verdict;
    bool is_exact;
};

/* All rules of one key. */
struct node {
    uint32_t from; /* of rules */
    uint32_t to;
    uint32_t parent; /* the longest other key that this one begins with; NO_NODE */
};

struct access_rules {
    struct arena keys;
    struct rule *rules;
    uint32_t rules_count;
    uint32_t rules_capacity;
    struct node *nodes; /* sorted by key */
    uint32_t nodes_count;
};

struct access_rules *access_rules_new(void) {
    struct access_rules *rules = calloc(1, sizeof *rules);
    if (rules != NULL) {
        arena_init(&rules->keys, KEYS_SIZE_MAX);
    }
    return rules;
}

void access_rules_free(struct access_rules *rules) {
    if (rules == NULL) {
        return;
    }
    arena_done(&rules->keys);
    free(rules->rules);
    free(rules->nodes);
    free(rules);
}

size_t access_rules_count(const struct access_rules *rules) {
    return rules->rules_count;
}

/* ---- filling ---- */

static enum err access_rules_grow(struct access_rules *rules) {
    if (rules->rules_count < rules->rules_capacity) {
        return ERR_OK;
    }
    uint32_t capacity = rules->rules_capacity == 0 ? RULES_START : 2 * rules->rules_capacity;
    struct rule *grown = reallocarray(rules->rules, capacity, sizeof *grown);
    if (grown == NULL) {
        return ERR_MEMORY;
    }
    rules->rules = grown;
    rules->rules_capacity = capacity;
    return ERR_OK;
}

static enum err access_rules_add_rule(struct access_rules *rules, const struct access_line *line,
                                      struct err_detail *detail) {
    if (rules->rules_count == ACCESS_RULES_MAX) {
        return err_set(detail, ERR_LIMIT, "there are more than %d rules", ACCESS_RULES_MAX);
    }
    struct rule rule = {
        .key = arena_copy(&rules->keys, line->key),
        .number = rules->rules_count,
        .verdict = (uint8_t)line->verdict,
        .is_exact = line->is_exact,
    };
    struct access_period *period = NULL;
    if (line->has_period) {
        period = arena_take(&rules->keys, sizeof *period);
    }
    if (rule.key.data == NULL || (line->has_period && period == NULL) || access_rules_grow(rules) != ERR_OK) {
        return err_set(detail, ERR_MEMORY, "no memory for so many rules");
    }
    if (period != NULL) {
        *period = line->period;
        rule.period = period;
    }
    rules->rules[rules->rules_count++] = rule;
    return ERR_OK;
}

enum err access_rules_add(struct access_rules *rules, struct bytes text, struct err_detail *detail) {
    struct bytes line_text;
    uint32_t number = 0;
    enum err err = ERR_OK;
    while (err == ERR_OK && bytes_split(&text, '\n', &line_text)) {
        struct access_line line;
        struct bytes trimmed = bytes_trim(line_text);
        number++;
        if (trimmed.size == 0 || trimmed.data[0] == '#') {
            continue;
        }
        err = trimmed.size > ACCESS_LINE_SIZE_MAX
                  ? err_set(detail, ERR_INVALID, "the line is longer than %d bytes", ACCESS_LINE_SIZE_MAX)
                  : access_line_parse(&line, trimmed, detail);
        if (err == ERR_OK && !line.is_of_user) {
            err = access_rules_add_rule(rules, &line, detail);
        }
    }
    if (err != ERR_OK && detail != NULL) {
        detail->line = number;
    }
    return err;
}

static int access_rules_compare_rules(const void *left, const void *right) {
    const struct rule *a = left;
    const struct rule *b = right;
    int order = bytes_compare(a->key, b->key);
    if (order == 0) {
        order = (int)b->is_exact - (int)a->is_exact;
    }
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static struct bytes access_rules_node_key(const struct access_rules *rules, uint32_t node) {
    return rules->rules[rules->nodes[node].from].key;
}

/* Keys that begin with each other stand in a row: the parent is the node before, or above that. */
static uint32_t access_rules_find_parent(const struct access_rules *rules, uint32_t node) {
    uint32_t parent = node == 0 ? NO_NODE : node - 1;
    while (parent != NO_NODE &&
           !bytes_starts_with(access_rules_node_key(rules, node), access_rules_node_key(rules, parent))) {
        parent = rules->nodes[parent].parent;
    }
    return parent;
}

enum err access_rules_seal(struct access_rules *rules) {
    if (rules->rules_count == 0) {
        return ERR_OK;
    }
    rules->nodes = calloc(rules->rules_count, sizeof *rules->nodes);
    if (rules->nodes == NULL) {
        return ERR_MEMORY;
    }
    qsort(rules->rules, rules->rules_count, sizeof *rules->rules, access_rules_compare_rules);
    for (uint32_t from = 0; from < rules->rules_count;) {
        uint32_t to = from + 1;
        while (to < rules->rules_count && bytes_equal(rules->rules[to].key, rules->rules[from].key)) {
            to++;
        }
        uint32_t node = rules->nodes_count++;
        rules->nodes[node] = (struct node){.from = from, .to = to};
        rules->nodes[node].parent = access_rules_find_parent(rules, node);
        from = to;
    }
    return ERR_OK;
}

/* ---- asking ---- */

/* The greatest key that is not behind the SURT; NO_NODE. */
static uint32_t access_rules_find_node(const struct access_rules *rules, struct bytes surt) {
    uint32_t from = 0;
    uint32_t to = rules->nodes_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (bytes_compare(access_rules_node_key(rules, middle), surt) <= 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from == 0 ? NO_NODE : from - 1;
}

enum access_verdict access_rules_check(const struct access_rules *rules, struct bytes surt, int64_t time_us,
                                       int64_t now_us) {
    for (uint32_t i = access_rules_find_node(rules, surt); i != NO_NODE; i = rules->nodes[i].parent) {
        const struct node *node = &rules->nodes[i];
        struct bytes key = access_rules_node_key(rules, i);
        if (!bytes_starts_with(surt, key)) {
            continue;
        }
        for (uint32_t j = node->from; j < node->to; j++) {
            const struct rule *rule = &rules->rules[j];
            bool fits = (!rule->is_exact || key.size == surt.size) &&
                        (rule->period == NULL || access_period_covers(rule->period, time_us, now_us));
            if (fits) {
                return (enum access_verdict)rule->verdict;
            }
        }
    }
    return ACCESS_ALLOW;
}
