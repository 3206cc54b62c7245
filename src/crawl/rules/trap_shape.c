#include "crawl/rules/trap_shape.h"

#include "base/map.h"

/* ---- Segments and arguments ---- */

void trap_segments_split(struct trap_segments *segments, struct bytes path) {
    segments->count = 0;
    struct bytes part;
    while (bytes_split(&path, '/', &part)) {
        if (part.size == 0) {
            continue;
        }
        if (segments->count < TRAP_SEGMENTS_KEPT) {
            segments->items[segments->count] = part;
        }
        segments->count++;
    }
}

/* A name, not a number, a tile or a letter of a directory tree. */
static bool is_word(struct bytes segment) {
    if (segment.size <= 2) {
        return false;
    }
    for (size_t i = 0; i < segment.size; i++) {
        if (!byte_is_digit(segment.data[i])) {
            return true;
        }
    }
    return false;
}

static uint32_t kept_count(const struct trap_segments *segments) {
    return segments->count < TRAP_SEGMENTS_KEPT ? segments->count : TRAP_SEGMENTS_KEPT;
}

static bool has_word(const struct trap_segments *segments, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        if (is_word(segments->items[i])) {
            return true;
        }
    }
    return false;
}

/* Is there a run of segments, each equal to the one `period` before it, that makes more repetitions? */
static bool repeats_by(const struct trap_segments *segments, uint32_t period, uint32_t repetitions_max) {
    uint32_t run = 0;
    for (uint32_t i = period; i < kept_count(segments); i++) {
        run = bytes_equal(segments->items[i], segments->items[i - period]) ? run + 1 : 0;
        uint32_t repetitions = run / period + 1;
        uint32_t allowed = has_word(segments, i - period, i) ? repetitions_max : 3 * repetitions_max;
        if (repetitions > allowed) {
            return true;
        }
    }
    return false;
}

bool trap_segments_repeat(const struct trap_segments *segments, uint32_t repetitions_max) {
    for (uint32_t period = 1; period <= TRAP_PERIOD_MAX; period++) {
        if (repeats_by(segments, period, repetitions_max)) {
            return true;
        }
    }
    return false;
}

/* Does the last of the items occur more often than that among them? */
static bool last_recurs(const struct bytes *items, uint32_t count, uint32_t occurrences_max) {
    uint32_t occurrences = 0;
    for (uint32_t i = 0; i < count; i++) {
        occurrences += bytes_equal(items[i], items[count - 1]) ? 1 : 0;
    }
    return occurrences > occurrences_max;
}

bool trap_segments_recur(const struct trap_segments *segments, uint32_t occurrences_max) {
    for (uint32_t i = occurrences_max; i < kept_count(segments); i++) {
        if (is_word(segments->items[i]) && last_recurs(segments->items, i + 1, occurrences_max)) {
            return true;
        }
    }
    return false;
}

/* The next argument that is not empty. */
static bool next_argument(struct bytes *rest, struct bytes *ret_argument) {
    while (rest->size > 0) {
        size_t end = 0;
        while (end < rest->size && rest->data[end] != '&' && rest->data[end] != ';') {
            end++;
        }
        *ret_argument = bytes_slice(*rest, 0, end);
        *rest = bytes_skip(*rest, end < rest->size ? end + 1 : end);
        if (end > 0) {
            return true;
        }
    }
    return false;
}

bool trap_arguments_recur(struct bytes query, uint32_t occurrences_max) {
    struct bytes items[TRAP_ARGUMENTS_KEPT];
    uint32_t count = 0;
    while (count < TRAP_ARGUMENTS_KEPT && next_argument(&query, &items[count])) {
        if (++count > occurrences_max && last_recurs(items, count, occurrences_max)) {
            return true;
        }
    }
    return false;
}

unsigned trap_arguments_count(struct bytes query) {
    unsigned count = 0;
    struct bytes argument;
    while (count < TRAP_ARGUMENTS_KEPT && next_argument(&query, &argument)) {
        count++;
    }
    return count;
}

/* ---- Dates ---- */

static struct bytes name_of(struct bytes argument) {
    return bytes_slice(argument, 0, bytes_find_byte(argument, '='));
}

static struct bytes value_of(struct bytes argument) {
    size_t equals = bytes_find_byte(argument, '=');
    return bytes_skip(argument, equals < argument.size ? equals + 1 : equals);
}

static const char *const year_names[] = {"year", "yr", "jahr", "annee", "ano", "anno", "y", "cal_year", NULL};
static const char *const month_names[] = {"month", "mon",  "mo",  "monat", "mois",      "mes",
                                          "mese",  "week", "day", "m",     "cal_month", NULL};
static const char *const date_names[] = {
    "date", "day",  "ym",    "ymd",      "start_date", "startdate", "cal_date",       "calendar",
    "cal",  "from", "until", "viewdate", "month",      "week",      "tribe-bar-date", NULL};
static const char *const event_names[] = {"events", "event",   "termine", "veranstaltungen", "schedule",
                                          "eventi", "eventos", "diary",   "evenements",      NULL};

static enum trap_calendar calendar_of_path(struct bytes path) {
    enum trap_calendar calendar = TRAP_CALENDAR_NONE;
    struct bytes segment;
    while (bytes_split(&path, '/', &segment)) {
        if (bytes_contain_ignore_case(segment, BYTES("calend")) ||
            bytes_contain_ignore_case(segment, BYTES("kalend")) ||
            bytes_equal_ignore_case(segment, BYTES("agenda"))) {
            return TRAP_CALENDAR_STRONG;
        }
        calendar = bytes_is_one_of(segment, event_names) ? TRAP_CALENDAR_WEAK : calendar;
    }
    return calendar;
}

static enum trap_calendar calendar_of_query(struct bytes query) {
    bool has_year = false;
    bool has_month = false;
    bool has_date = false;
    struct bytes argument;
    while (next_argument(&query, &argument)) {
        has_year = has_year || bytes_is_one_of(name_of(argument), year_names);
        has_month = has_month || bytes_is_one_of(name_of(argument), month_names);
        has_date = has_date || bytes_is_one_of(name_of(argument), date_names);
    }
    return has_year && has_month ? TRAP_CALENDAR_STRONG : has_date ? TRAP_CALENDAR_WEAK : TRAP_CALENDAR_NONE;
}

static enum trap_calendar calendar_of(const struct url *url) {
    enum trap_calendar path = calendar_of_path(url_path(url));
    enum trap_calendar query = url_has_query(url) ? calendar_of_query(url_query(url)) : TRAP_CALENDAR_NONE;
    return path > query ? path : query;
}

static size_t digits_length(struct bytes text) {
    size_t i = 0;
    while (i < text.size && byte_is_digit(text.data[i])) {
        i++;
    }
    return i;
}

static uint32_t number_of(struct bytes digits) {
    uint64_t number = 0;
    return bytes_to_u64(digits, UINT32_MAX, &number) ? (uint32_t)number : UINT32_MAX;
}

static bool is_between(struct bytes digits, uint32_t min, uint32_t max) {
    uint32_t number = number_of(digits);
    return number >= min && number <= max;
}

static bool is_separator(uint8_t byte) {
    return byte == '-' || byte == '/' || byte == '_' || byte == '.';
}

/* Two digits or, in a calendar, one; cut off *text with the separator before them. */
static bool take_part(struct bytes *text, uint8_t separator, uint32_t max, bool is_calendar) {
    if (text->size < 2 || text->data[0] != separator) {
        return false;
    }
    size_t length = digits_length(bytes_skip(*text, 1));
    struct bytes digits = bytes_slice(*text, 1, 1 + length);
    if (length > 2 || length < (is_calendar ? 1 : 2) || !is_between(digits, 1, max)) {
        return false;
    }
    *text = bytes_skip(*text, 1 + length);
    return true;
}

/* "2031-05-07" and the shorter forms that a calendar may use, at the start of the text, which is a digit. */
static bool read_date(struct bytes text, bool is_calendar, int32_t *ret_year) {
    size_t length = digits_length(text);
    struct bytes digits = bytes_slice(text, 0, length);
    bool is_compact = is_calendar && (length == 6 || length == 8) &&
                      is_between(bytes_slice(digits, 4, 6), 1, 12) &&
                      (length == 6 || is_between(bytes_slice(digits, 6, 8), 1, 31));
    struct bytes rest = bytes_skip(text, length);
    uint8_t separator = rest.size > 0 && is_separator(rest.data[0]) ? rest.data[0] : 0;
    bool has_month = length == 4 && separator != 0 && take_part(&rest, separator, 12, is_calendar);
    bool has_day = has_month && take_part(&rest, separator, 31, is_calendar);
    if (!is_compact && !has_day && !(has_month && is_calendar)) {
        return false;
    }
    /* 0000-01-01 stands for no date. 4021-11-12 is the number of some article; a calendar that counts up to
     * the year 4021 passes years before it, which are cut. */
    *ret_year = (int32_t)number_of(bytes_slice(digits, 0, 4));
    return is_calendar ? *ret_year >= 1000 : *ret_year >= 1900 && *ret_year < 2200;
}

static void keep_latest(struct trap_date *date, int32_t year) {
    date->year = !date->is_date || year > date->year ? year : date->year;
    date->is_date = true;
}

static void find_dates(struct bytes text, struct trap_date *date) {
    for (size_t i = 0; i < text.size; i++) {
        if (!byte_is_digit(text.data[i])) {
            continue;
        }
        bool is_start = i == 0 || !byte_is_alpha(text.data[i - 1]);
        int32_t year;
        if (is_start && read_date(bytes_skip(text, i), date->calendar != TRAP_CALENDAR_NONE, &year)) {
            keep_latest(date, year);
        }
        i += digits_length(bytes_skip(text, i));
    }
}

/* year=2031, beside month=5 or below /calendar/. Years of two digits are somebody's short form. */
static void find_year_argument(struct bytes query, struct trap_date *date) {
    struct bytes argument;
    while (next_argument(&query, &argument)) {
        struct bytes value = value_of(argument);
        uint32_t year = number_of(value);
        if (bytes_is_one_of(name_of(argument), year_names) && value.size >= 3 && year < 1000000) {
            keep_latest(date, (int32_t)year);
        }
    }
}

void trap_find_date(const struct url *url, struct trap_date *ret_date) {
    struct trap_date date = {.calendar = calendar_of(url)};
    struct bytes path = url_path(url);
    find_dates(path, &date);
    if (url_has_query(url)) {
        find_dates(url_query(url), &date);
        if (date.calendar == TRAP_CALENDAR_STRONG) {
            find_year_argument(url_query(url), &date);
        }
    }
    *ret_date = date;
}

/* ---- Session ids ---- */

static const char *const session_names[] = {
    "sid",        "sessid",  "session", "sessionid", "session_id", "session-id", "phpsessid",
    "jsessionid", "cftoken", "cfid",    "zenid",     "oscsid",     "s",          "asp.net_sessionid",
    "ps_session", NULL,
};

enum { SESSION_ID_SIZE_MIN = 16 };

/* Letters and digits without a visible meaning. */
static bool looks_random(struct bytes value) {
    if (value.size < SESSION_ID_SIZE_MIN) {
        return false;
    }
    size_t digits_count = 0;
    for (size_t i = 0; i < value.size; i++) {
        uint8_t byte = value.data[i];
        if (!byte_is_alnum(byte) && byte != '-' && byte != '.' && byte != '_' && byte != '!') {
            return false;
        }
        digits_count += byte_is_digit(byte) ? 1 : 0;
    }
    return digits_count * 8 >= value.size; /* of random hex digits 5 in 8 are */
}

static bool is_session(struct bytes argument) {
    struct bytes name = name_of(argument);
    struct bytes value = value_of(argument);
    bool is_coldfusion =
        bytes_equal_ignore_case(name, BYTES("cfid")) || bytes_equal_ignore_case(name, BYTES("cftoken"));
    if (is_coldfusion) {
        return value.size > 0;
    }
    bool is_asp = name.size > 12 && bytes_starts_with_ignore_case(name, BYTES("aspsessionid"));
    return is_asp ? value.size >= SESSION_ID_SIZE_MIN
                  : bytes_is_one_of(name, session_names) && looks_random(value);
}

bool trap_find_session(const struct url *url, uint64_t *ret_rest_hash, uint64_t *ret_id_hash) {
    bool is_found = false;
    uint64_t rest_hash = 0;
    uint64_t id_hash = 0;
    struct bytes path = url_path(url);
    size_t parameter = bytes_find_byte(path, ';');
    struct bytes parts[] = {
        parameter < path.size ? bytes_skip(path, parameter + 1) : (struct bytes){NULL, 0},
        url_has_query(url) ? url_query(url) : (struct bytes){NULL, 0},
    };
    rest_hash = map_hash(bytes_slice(path, 0, parameter), rest_hash);
    for (size_t i = 0; i < 2; i++) {
        struct bytes argument;
        while (next_argument(&parts[i], &argument)) {
            bool is_id = is_session(argument);
            uint64_t *hash = is_id ? &id_hash : &rest_hash;
            *hash = map_hash(argument, *hash);
            is_found = is_found || is_id;
        }
    }
    if (is_found) {
        *ret_rest_hash = rest_hash;
        *ret_id_hash = id_hash;
    }
    return is_found;
}
