#include "node/admin/bottlenecks.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/value.h"

enum {
    TEXT_SIZE_MAX = 1024,
    QUEUE_PERCENT_HIGH = 75,
    SYNC_MS_HIGH = 100,
    ANSWER_MS_HIGH = 1000,
    BUSY_PERCENT = 90,
    QUOTA_PERCENT_HIGH = 95,
    SEARCH_LEFT_HIGH = 100, /* fewer are read within seconds */
    OTHERS_MAX = 16,        /* sentences that are not about volumes */
};

static const uint64_t FREE_SIZE_LOW = UINT64_C(1) << 30;

/* The sentences so far. */
struct list {
    struct arena *arena;
    struct node_status_sentence *items;
    size_t count;
    size_t count_max;
};

static void bottlenecks_add(struct list *list, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void bottlenecks_add(struct list *list, const char *what, const char *format, ...) {
    char text[TEXT_SIZE_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    struct bytes copy = arena_copy(list->arena, bytes_of_string(text));
    if (list->count < list->count_max && copy.data != NULL) {
        list->items[list->count++] = (struct node_status_sentence){what, (const char *)copy.data};
    }
}

static const char *size_text(uint64_t size, struct buf *work) {
    buf_clear(work);
    value_put_size(work, size);
    const char *text = buf_string(work);
    return text == NULL ? "" : text;
}

static void look_at_quota(struct list *list, const struct sample *now, struct buf *work) {
    if (now->quota_size == 0 || now->used_size < now->quota_size / 100 * QUOTA_PERCENT_HIGH) {
        return;
    }
    buf_clear(work);
    VALUE_PUT(work, "{size} of {size}", now->used_size, now->quota_size);
    bottlenecks_add(
        list, "quota",
        "The quota of disk is nearly used: %s (node.disk). Reading goes on; new captures are refused when "
        "it is.",
        buf_string(work) != NULL ? buf_string(work) : "");
}

static void look_at_volumes(struct list *list, const struct bottlenecks_facts *facts, struct buf *work) {
    for (size_t i = 0; i < facts->volumes->count; i++) {
        const struct node_status_volume *item = &facts->volumes->items[i];
        const struct instance_volume *volume = &item->volume;
        if (volume->err != ERR_OK) {
            bottlenecks_add(list, "volume", "Volume %u (%.300s) is %s: %s. Its documents cannot be %s.",
                            volume->number, volume->place, err_is_full(volume->err) ? "full" : "down",
                            volume->reason, err_is_full(volume->err) ? "added to" : "shown");
        } else if (item->has_disk && item->free_size < FREE_SIZE_LOW && volume->is_writable) {
            bottlenecks_add(list, "space", "The disk of volume %u is nearly full: %s are free (%.300s).",
                            volume->number, size_text(item->free_size, work), volume->place);
        }
    }
}

static void look_at_disk(struct list *list, const struct bottlenecks_facts *facts) {
    const struct sample *now = facts->now;
    const struct sample *before = facts->before;
    uint64_t groups = now->load.groups_count - before->load.groups_count;
    uint64_t documents = now->load.documents_count - before->load.documents_count;
    double sync_ms =
        groups > 0 ? (double)(now->load.sync_us - before->load.sync_us) / 1000 / (double)groups : 0;
    double commit_ms =
        groups > 0 ? (double)(now->load.commit_us - before->load.commit_us) / 1000 / (double)groups : 0;
    if (now->load.err != ERR_OK) {
        bottlenecks_add(list, "disk", "The last commit failed: %s. What it held was not stored.",
                        err_text(now->load.err));
    }
    if (now->crawl.hold == CRAWLER_DISK_FULL) {
        bottlenecks_add(list, "disk", "The crawl waits: the archive does not take its documents now: %s.",
                        err_text(now->crawl.hold_err));
    } else if (now->queue_percent >= QUEUE_PERCENT_HIGH || now->crawl.hold == CRAWLER_DISK_SLOW) {
        bottlenecks_add(
            list, "disk",
            "The disk is the limit: the queue of the committer is %ju %% full; a commit takes %.1f ms, "
            "%.1f ms of it the sync, and makes %.0f documents durable.",
            (uintmax_t)now->queue_percent, commit_ms, sync_ms,
            groups > 0 ? (double)documents / (double)groups : 0);
    } else if (sync_ms >= SYNC_MS_HIGH) {
        bottlenecks_add(list, "disk",
                        "The disk is slow: it needs %.0f ms on average to say that it has a commit.",
                        sync_ms);
    }
    if (now->compactions_count > 0) {
        bottlenecks_add(list, "compaction",
                        "The index is being compacted (%ju at once): it takes disk and processor.",
                        (uintmax_t)now->compactions_count);
    }
}

static void look_at_crawl(struct list *list, const struct bottlenecks_facts *facts) {
    const struct crawler_stat *crawl = &facts->now->crawl;
    bool waits = facts->now->urls_waiting_count > 0 && crawl->hosts_waiting_count > 0 &&
                 crawl->hosts_waiting_count + crawl->running_count >= crawl->hosts_count;
    if (waits && crawl->hold == CRAWLER_FLOWING) {
        bottlenecks_add(
            list, "pace",
            "The crawl goes at the pace of its hosts: %ju of %ju are waited for, with %ju URLs to "
            "come%s%.*s.",
            (uintmax_t)crawl->hosts_waiting_count, (uintmax_t)crawl->hosts_count,
            (uintmax_t)facts->now->urls_waiting_count, facts->waiting.size > 0 ? " – " : "",
            (int)(facts->waiting.size < 500 ? facts->waiting.size : 500), (const char *)facts->waiting.data);
    }
}

static void look_at_search(struct list *list, const struct sample *now, struct buf *work) {
    if (!now->has_search) {
        return;
    }
    if (now->search.error[0] != '\0') {
        bottlenecks_add(list, "search", "Full-text search reads nothing: %s.", now->search.error);
    } else if (now->search.left_count >= SEARCH_LEFT_HIGH) {
        bottlenecks_add(list, "search",
                        "Full-text search lags behind: about %ju captures (%s of segments) are not yet read.",
                        (uintmax_t)now->search.left_count, size_text(now->search.left_size, work));
    }
}

static void look_at_http(struct list *list, const struct bottlenecks_facts *facts) {
    const struct sample *now = facts->now;
    const struct sample *before = facts->before;
    double p99_ms = sample_delay_ms(now, before, 990);
    uint64_t refused = now->refused_count - before->refused_count;
    uint64_t cut = now->http.cut_count - before->http.cut_count;
    if (p99_ms >= ANSWER_MS_HIGH) {
        bottlenecks_add(list, "http", "Answers are slow: one in a hundred takes longer than %.0f ms.",
                        p99_ms);
    }
    if (refused > 0) {
        bottlenecks_add(
            list, "http",
            "%ju requests were refused in the last seconds: an address asks faster than http.rate.",
            (uintmax_t)refused);
    }
    if (cut > 0) {
        bottlenecks_add(list, "http",
                        "%ju connections were cut in the last seconds: their clients were too slow.",
                        (uintmax_t)cut);
    }
}

static void look_at_processor(struct list *list, const struct bottlenecks_facts *facts) {
    double percent =
        sample_rate(facts->now, facts->before, facts->now->cpu_us, facts->before->cpu_us) / 10000;
    if (percent >= (double)BUSY_PERCENT * facts->processors_count) {
        bottlenecks_add(list, "processor", "The processors are busy: this node uses %.0f %% of %u.", percent,
                        facts->processors_count);
    }
}

size_t bottlenecks_find(const struct bottlenecks_facts *facts, struct arena *arena,
                        struct node_status_sentence **ret_sentences) {
    struct list list = {.arena = arena, .count_max = facts->volumes->count + OTHERS_MAX};
    struct buf work;
    buf_init(&work, TEXT_SIZE_MAX);
    list.items = arena_take_array(arena, list.count_max, sizeof *list.items);
    list.count_max = list.items != NULL ? list.count_max : 0;
    look_at_volumes(&list, facts, &work);
    look_at_quota(&list, facts->now, &work);
    look_at_disk(&list, facts);
    look_at_http(&list, facts);
    look_at_processor(&list, facts);
    look_at_crawl(&list, facts);
    look_at_search(&list, facts->now, &work);
    buf_done(&work);
    *ret_sentences = list.items;
    return list.count;
}
