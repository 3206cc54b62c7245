/*
 * capacity - how many nodes, disks and how much bandwidth an archive on the ring needs.
 *
 * The analysis of chapters 3 and 6 of the Herodotus thesis as one function from assumptions to figures, with
 * what later knowledge corrects. Plain arithmetic on doubles, without libm: pure as its folder. Formulas and
 * the thesis's figures beside ours: docs/plan.md. `mnemon plan` prints it.
 *
 * Sizes are in bytes, times in days, rates in kbit/s (1000 bits), shares from 0 to 1. A month has 30 days. A
 * "page" is HTML; an "embed" is anything else that is archived with it, images in the thesis.
 */
#ifndef MNEMON_PROTOCOL_COPIES_CAPACITY_H
#define MNEMON_PROTOCOL_COPIES_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
    CAPACITY_MONTH_DAYS = 30,
    CAPACITY_COPIES_MAX = 64,
    CAPACITY_MONTHS_MAX = 12000,    /* months_until_full never says more */
    CAPACITY_ALL_COPIES = 0,        /* of inputs.witnesses: every copy is fetched from the origin */
    CAPACITY_LINK_SIZE = 25,        /* what a link may cost in this project: front-coded, compressed */
    CAPACITY_LINK_SEPARATOR = 1,    /* between URLs of one message, in the thesis */
    CAPACITY_SEEN_ENTRY_SIZE = 20,  /* a SHA-1 */
    CAPACITY_DIRECTORIES = 1 << 16, /* in which a node of the thesis keeps its files */
    CAPACITY_SYNC_ENTRY_SIZE = 28,  /* SHA-1 and time of a file, when it compares a directory */
};

/* Far more than there are machines; and a whole number that a double holds. */
#define CAPACITY_NODES_MAX 1e12

/* All of it can be chosen; capacity_preset() has three sets. */
struct capacity_inputs {
    /* the web */
    double pages_count;
    double page_size;
    double page_compressed; /* share of its size that is left */
    double embeds_per_page; /* with URLs of their own; 0: pages only */
    double embed_size;
    double embed_compressed;
    double pages_changed;  /* share a day */
    double embeds_changed; /* share a day */
    double added;          /* new objects a day, as share of those there are */
    double duplicates;     /* share of new contents that the archive has already */
    double links_per_page;
    double links_new; /* share of a changed page's links that were not there before */
    double url_size;
    /* the crawl */
    double period_days; /* between visits of a URL */
    double months;      /* how long the disks shall last */
    double request_up_size;
    double request_down_size; /* of an answer without content */
    double link_size;         /* on the wire, for each receiver */
    double visit_size; /* on disk, a copy, of a visit that found nothing new, or what another witness had
                          found: record, index and key; 0: such visits are not kept */
    /* the ring */
    double copies;        /* of each object, the first included */
    double witnesses;     /* copies that are fetched from the origin, the others from a node; or
                             CAPACITY_ALL_COPIES */
    double nodes_count;   /* 0: as many as the disks require */
    double disk_size;     /* of a node; 0: what nodes_count requires */
    double reserve;       /* share of the disk that stays free */
    double uptime;        /* share of its time in the ring that a node is up */
    double lifetime_days; /* until a node leaves for good */
    double repair_days;   /* in which the contents of a node are copied to another */
    double line_kbps;     /* of a node */
    /* forwarding of links as the thesis describes it */
    double lookup_hops; /* 0: 1/2 log2 of the nodes, and 0.86 */
    double lookup_message_size;
    double message_header_size;
    double links_per_message;
    /*
     * The thesis goes on with rounded figures. Each volume of the table and each rate is rounded to the
     * fewest digits that change it by at most this share; the totals of a snapshot and of a month, and sums
     * of rates, are sums of rounded figures. 0: nothing is rounded.
     */
    double rounding;
};

/* The inputs by number, for callers that read, print or check all of them. */
enum capacity_field {
    CAPACITY_PAGES,
    CAPACITY_PAGE_SIZE,
    CAPACITY_PAGE_COMPRESSED,
    CAPACITY_EMBEDS,
    CAPACITY_EMBED_SIZE,
    CAPACITY_EMBED_COMPRESSED,
    CAPACITY_PAGES_CHANGED,
    CAPACITY_EMBEDS_CHANGED,
    CAPACITY_ADDED,
    CAPACITY_DUPLICATES,
    CAPACITY_LINKS,
    CAPACITY_LINKS_NEW,
    CAPACITY_URL_SIZE,
    CAPACITY_PERIOD,
    CAPACITY_MONTHS,
    CAPACITY_REQUEST_UP,
    CAPACITY_REQUEST_DOWN,
    CAPACITY_LINK_BYTES,
    CAPACITY_REPLICAS,
    CAPACITY_WITNESSES,
    CAPACITY_NODES,
    CAPACITY_DISK,
    CAPACITY_RESERVE,
    CAPACITY_UPTIME,
    CAPACITY_LIFETIME,
    CAPACITY_REPAIR,
    CAPACITY_LINE,
    CAPACITY_HOPS,
    CAPACITY_LOOKUP_SIZE,
    CAPACITY_HEADER_SIZE,
    CAPACITY_BATCH,
    CAPACITY_ROUNDING,
    CAPACITY_VISIT_SIZE,
    CAPACITY_FIELDS_COUNT,
};

enum capacity_unit { CAPACITY_COUNT, CAPACITY_SIZE, CAPACITY_SHARE, CAPACITY_DAYS, CAPACITY_RATE };

/* An input between min and max, and what it is in the presets; the name is that of the option, "page-size".
 */
struct capacity_field_rule {
    const char *name;
    enum capacity_unit unit;
    bool is_whole;
    size_t offset;
    double min;
    double max;
    double thesis;
    double today;
};

extern const struct capacity_field_rule capacity_fields[CAPACITY_FIELDS_COUNT];

double *capacity_at(struct capacity_inputs *inputs, enum capacity_field field);
double capacity_value(const struct capacity_inputs *inputs, enum capacity_field field);

/* Sets of inputs to start from. */
enum capacity_preset { CAPACITY_TODAY, CAPACITY_THESIS, CAPACITY_THESIS_LIGHT };

void capacity_preset(enum capacity_preset preset, struct capacity_inputs *ret_inputs);

/* The rows of table 3.2. */
enum capacity_row {
    CAPACITY_SNAPSHOT_PAGES,
    CAPACITY_SNAPSHOT_EMBEDS,
    CAPACITY_SNAPSHOT,
    CAPACITY_DAY_PAGES_CHANGED,
    CAPACITY_DAY_PAGES_ADDED,
    CAPACITY_DAY_PAGES,
    CAPACITY_DAY_EMBEDS,
    CAPACITY_DAY,
    CAPACITY_MONTH_PAGES,
    CAPACITY_MONTH_EMBEDS,
    CAPACITY_MONTH,
    CAPACITY_ROWS_COUNT,
};

struct capacity_volume {
    double objects_count;
    double size;
    double stored_size; /* compressed, duplicates once */
};

struct capacity_rate {
    double down_kbps;
    double up_kbps;
};

struct capacity {
    struct capacity_volume rows[CAPACITY_ROWS_COUNT];

    /* storage */
    double copies;          /* as many as asked for, or as there are nodes */
    double visits_count;    /* a day, of all witnesses together, that found nothing new */
    double visits_size;     /* what they take a day, once */
    double stored_size;     /* at the end of the months, each object once */
    double replicated_size; /* all copies */
    double nodes_needed;    /* for disks of disk_size, at least */
    double nodes_count;     /* with which everything below is reckoned */
    double disk_size;       /* likewise */
    double disk_needed;     /* of each of nodes_count, its reserve included */
    double months_until_full;
    double held_size; /* by each node at the end of the months */
    /* What a repair has to copy: what a node holds; a full disk if both nodes and disks are given. */
    double filled_size;

    /* what a node does in a day */
    double urls_per_node;
    double requests_count;
    double downloads_size;
    double requests_up_size;
    double requests_down_size;
    double links_size;  /* sent, and as much received */
    double copies_size; /* contents from other nodes, and as much to them; 0 if all copies are witnesses */

    /* bandwidth of a node */
    struct capacity_rate downloads;
    struct capacity_rate links;
    struct capacity_rate copying;
    struct capacity_rate crawling;    /* the three above */
    struct capacity_rate repair;      /* while it is filled, or fills a neighbour: the thesis's budget */
    struct capacity_rate total;       /* crawling and repair */
    struct capacity_rate repair_mean; /* what joins, leaves and outages really amount to */
    double ring_down_kbps;            /* total of all nodes */

    /* keeping */
    double unavailable;          /* share of the time that no copy of an object is up */
    double lost_in_repair;       /* chance that all other copies go before one is repaired, thesis 6.1.3 */
    double time_to_loss_days;    /* mean, of an object */
    double lost_in_year;         /* share of the objects */
    double lost_with_third;      /* share of the objects, if a third of the nodes goes at once */
    double repair_interval_days; /* between joins and leaves that a node takes part in */
    double lifetime_needed_days; /* for one of them at a time */
    double fill_days;            /* filled_size over the line of a node */
    double repair_size;          /* a day and node, received: joins and leaves */
    double catch_up_size;        /* a day and node, received: what was missed in outages */
    double sync_thesis_size;     /* two neighbours that are equal, in the thesis's scheme */
    double sync_directory_size;  /* each directory that differs, likewise */

    /* links, in bytes for one link and one receiver */
    double lookup_hops;
    double link_direct_size; /* one lookup and one message each */
    double link_walk_size;   /* batched, walking the ring */
    double walk_links_count; /* that a node gathers before it walks */
    double walk_buffer_size;
    double seen_list_size; /* were the list of all URLs on every node */
};

/* ERR_INVALID if a figure is absurd, with the name of it. *ret_capacity is untouched then. */
enum err capacity_compute(const struct capacity_inputs *inputs, struct capacity *ret_capacity,
                          struct err_detail *detail) MUST_CHECK;

/* ---- the formulas that stand on their own ---- */

/* Share of the objects of which all copies are among a share of the nodes. */
double capacity_all_among(double copies, double share);

/*
 * Mean time until an object has no copy left. Nodes go for good at a rate of 1 / lifetime, each missing copy
 * comes back at a rate of 1 / repair, independently of the others.
 */
double capacity_time_to_loss_days(double copies, double lifetime_days, double repair_days);

/* 1 - e^-x, exact for small x: the chance of an event of rate 1 within x. */
double capacity_chance(double x);

/* Share of objects found changed at a visit, if a given share changes each day. */
double capacity_changed_after(double changed_per_day, double days);

/*
 * The reverse, from an archive: of so many distances between visits, so many saw a change. Cho and
 * Garcia-Molina's estimate, as crawl/rules/revisit.h; a share a day.
 */
double capacity_changed_per_day(double distances_count, double changes_count, double mean_days);

/* Hops of a Chord lookup with fingers alone, the last one counted. */
double capacity_lookup_hops(double nodes_count);

/*
 * Repair as the thesis budgets it and as it comes out, for one node and day: what it receives.
 *
 *      thesis      filled_size in every repair time, all the time
 *      expected    held twice in a lifetime: once where the node that leaves must be replaced on others, once
 *                  where the one that comes instead is filled; and what was stored while it was down
 */
struct capacity_repair {
    double thesis_size;
    double moves_size;
    double catch_up_size;
    double share; /* of the thesis's budget that is expected */
};

void capacity_repair(const struct capacity_inputs *inputs, double filled_size, double held_size,
                     double new_size_per_day, struct capacity_repair *ret_repair);

#endif
