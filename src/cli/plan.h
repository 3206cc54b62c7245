/*
 * plan - `mnemon plan`. One command in several files: plan_options.c reads its options, plan_measure.c
 * measures an archive, plan_text.c and plan_json.c print the result, plan.c joins them.
 *
 * The arithmetic is protocol/copies/capacity.h.
 */
#ifndef MNEMON_CLI_PLAN_H
#define MNEMON_CLI_PLAN_H

#include "cli/data.h"
#include "protocol/copies/capacity.h"

struct plan_options {
    uint32_t preset; /* enum capacity_preset */
    const char *data;
    bool measured;
    bool quiet;
    bool json;
    const char *given[CAPACITY_FIELDS_COUNT]; /* as text; NULL: not given */
};

/* What a walk over an archive's captures tells of one kind of object. */
struct plan_kind {
    uint64_t urls_count;
    uint64_t distances_count; /* between captures of one URL */
    uint64_t changes_count;   /* of them with other contents at their end */
    double distances_days;    /* sum */
    uint64_t sizes_count;     /* sampled */
    double sizes;             /* sum, of contents as received */
    double stored_sizes;      /* sum, of their records in the segments */
    uint64_t read_count;      /* of a smaller sample, for what is inside of the encodings they came in */
    double received_size;     /* of these, as received … */
    double decoded_size;      /* … and without gzip and the like */
};

struct plan_measure {
    uint64_t captures_count;
    uint64_t contents_count;   /* captures that are not the URL's contents of before */
    uint64_t duplicates_count; /* of them, those that the archive had from elsewhere */
    double urls_size;          /* sum over the URLs */
    uint64_t linking_count;    /* pages that were read for their links */
    uint64_t links_count;      /* in them */
    uint64_t visits_count;     /* captures of a URL with the contents of the one before */
    uint64_t revisits_count;   /* of them, stored as revisits */
    double visits_size;        /* sum of the records of these, and of their part of the index */
    uint64_t witnessed_count;  /* captures of witnesses, whatever they got */
    uint64_t rounds_count;     /* visits of a URL that these are of */
    double added_count;        /* URLs that were first captured after the first round of visits */
    double added_days;         /* in so many days; 0: it is too young to tell */
    struct plan_kind pages;
    struct plan_kind embeds;
};

enum plan_origin { PLAN_PRESET, PLAN_MEASURED, PLAN_GIVEN, PLAN_OPEN };

struct plan {
    enum capacity_preset preset;
    struct capacity_inputs inputs;
    enum plan_origin origins[CAPACITY_FIELDS_COUNT]; /* of each input; PLAN_OPEN: it is what is asked for */
    struct capacity capacity;
    bool is_measured;
    char directory[DATA_PATH_SIZE_MAX]; /* of what was measured */
    struct plan_measure measure;
    struct buf notes; /* one a line */
};

extern const char *const plan_presets[]; /* names, ended by NULL */
extern const struct option plan_options[];

/* "preset", "measured", "given", "open". */
const char *plan_origin_name(enum plan_origin origin);

/* "2.5", "1.54B", "5%", "12 KB", "60 d", "1 Mbit/s", as the field's unit wants it. ERR_INVALID with the
 * reason. */
enum err plan_read(enum capacity_field field, struct bytes text, double *ret_value,
                   struct err_detail *detail) MUST_CHECK;

/*
 * Walk over the captures of the archive. Sizes come from the index, and from a bounded sample of it where it
 * is large; only a few hundred pages are read, for their links. CLI_DONE, or the status after the error.
 */
int plan_measure(struct cli *cli, const struct plan_options *options, struct data *data,
                 struct plan_measure *ret_measure);

/* Replace what the measure can tell and nobody has given. */
void plan_apply(struct plan *plan);

/* What a reader should know beside the figures. */
void plan_put_notes(struct plan *plan);

void plan_put_text(const struct plan *plan, struct buf *out);
void plan_put_json(const struct plan *plan, struct buf *out);

#endif
