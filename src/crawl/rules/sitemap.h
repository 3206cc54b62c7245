/*
 * sitemap - the URLs that a site lists for crawlers (https://www.sitemaps.org/protocol.html).
 *
 *      <urlset>         XML: url with loc; when and how often it changes is seen when it is visited
 *      <sitemapindex>   XML: sitemap with loc; these are further sitemaps
 *      RSS, Atom        the link of each item or entry
 *      text             one URL a line
 *
 * Which of them shows in the first bytes. The parser is fed with pieces of any size and reports each entry
 * when it is complete. It is lenient, because sitemaps in the wild are: unknown elements and namespaces are
 * skipped, unclosed entries end where the next begins, unknown entities stay as they are. Documents are never
 * validated and no outside entity is ever read.
 *
 * Bounds are those of the protocol: 50,000 entries and 50 MB a file; entries and
 * bytes above are ignored. The struct is the only memory.
 */
#ifndef MNEMON_CRAWL_RULES_SITEMAP_H
#define MNEMON_CRAWL_RULES_SITEMAP_H

#include "base/source.h"
#include "web/url/url.h"

enum {
    SITEMAP_ENTRIES_MAX = 50000,
    SITEMAP_SIZE_MAX = 50 << 20, /* uncompressed */
    SITEMAP_URL_SIZE_MAX = 4096, /* the protocol says 2,048 */
    SITEMAP_NAME_SIZE_MAX = 64,
};

struct sitemap_entry {
    struct bytes
        url;         /* as written, entities decoded, trimmed; not yet parsed, perhaps relative or nonsense */
    bool is_sitemap; /* a further sitemap, not a page */
};

/* The entry lives for the call. */
typedef void sitemap_found(void *context, const struct sitemap_entry *entry);

struct sitemap {
    sitemap_found *found;
    void *context;
    uint64_t size;          /* of what was fed, up to SITEMAP_SIZE_MAX */
    uint32_t entries_count; /* reported */
    uint32_t bad_count;     /* without a URL, or with one that is too long */
    bool is_cut;            /* more bytes than SITEMAP_SIZE_MAX */

    /* The scanner: where in the text it is. Its states and fields are named in sitemap.c. */
    uint8_t state;
    uint8_t return_state; /* behind an entity */
    uint8_t quote;        /* that ends the value of an attribute */
    uint8_t match;        /* how much of "-->", "]]>" … has been seen, or how many '[' are open */
    uint8_t entity_size;
    uint8_t name_size;
    uint8_t attribute_size;
    bool is_closing; /* </name> */
    bool is_empty;   /* <name/> */
    char entity[12];
    char name[SITEMAP_NAME_SIZE_MAX]; /* of the element, with its prefix */
    char attribute[16];

    /* The document: what has been understood. */
    uint32_t level;       /* of elements that are open */
    uint32_t entry_level; /* of the entry that is open; 0: none */
    bool is_in_url;       /* the text is the URL of that entry */
    uint8_t entry_name_size;
    char entry_name[SITEMAP_NAME_SIZE_MAX];
    bool is_other_link;  /* Atom's <link> at hand has a rel that is not "alternate" */
    bool is_url_of_link; /* the entry's URL is from it */
    bool is_text_too_long;
    size_t text_size;
    uint8_t text[SITEMAP_URL_SIZE_MAX]; /* of the field, of the attribute or of the line */
    struct sitemap_entry entry;
    uint8_t url[SITEMAP_URL_SIZE_MAX]; /* of the entry */
};

void sitemap_init(struct sitemap *sitemap, sitemap_found *found, void *context);

/* The next bytes, uncompressed. */
void sitemap_feed(struct sitemap *sitemap, struct bytes piece);

/* The document is over: a last line or entry is reported. */
void sitemap_finish(struct sitemap *sitemap);

/*
 * All of a source, which may be gzip'd (its first bytes say so), fed and finished. Damaged compression
 * ends it: what was found before stays found. ERR_INVALID, ERR_CORRUPT, ERR_TRUNCATED, ERR_MEMORY or what
 * the source says.
 */
enum err sitemap_read(struct sitemap *sitemap, struct source *source, struct err_detail *detail) MUST_CHECK;

#endif
