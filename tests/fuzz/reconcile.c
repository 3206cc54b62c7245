/*
 * Arbitrary messages of a comparison, to who answers and to who asked.
 *
 *      input   u8 arc (how from and to are made), u8 own keys, message
 *
 * Held to: what is refused has a reason; every answer and every next question can be read by the other side
 * and is within the bound; keys reported are in the arc, and needed only where they are not there.
 */
#include "fuzz.h"

#include "../unit/ringkey-fixture.h"
#include "protocol/copies/reconcile.h"

struct driver {
    struct memory_set set;
    struct reconcile_arc arc;
};

static bool is_held(const struct driver *driver, const struct ringkey *key) {
    size_t index = memory_set_index(&driver->set, key);
    return index < driver->set.count && ringkey_compare(&driver->set.keys[index], key) == 0;
}

static void check_key(const struct driver *driver, const struct ringkey *key) {
    struct reconcile_position position = reconcile_arc_position(&driver->arc, key);
    struct reconcile_position start = reconcile_arc_start(&driver->arc);
    struct reconcile_position end = reconcile_arc_end(&driver->arc);
    ASSERT(reconcile_position_compare(&position, &start) >= 0);
    ASSERT(reconcile_position_compare(&position, &end) < 0);
}

static void check_need(void *context, const struct ringkey *key) {
    check_key(context, key);
    ASSERT(!is_held(context, key));
}

static void check_have(void *context, const struct ringkey *key) {
    check_key(context, key);
    ASSERT(is_held(context, key));
}

static void check_readable(const struct driver *driver, struct bytes message) {
    struct reconcile_reader reader;
    struct reconcile_range range;
    ASSERT(message.size <= RECONCILE_MESSAGE_SIZE_MAX);
    reconcile_reader_init(&reader, &driver->arc, message);
    while (reconcile_read(&reader, &range)) {
    }
    enum err err = reconcile_reader_finish(&reader, NULL);
    ASSERT(err == ERR_OK);
}

static void feed(struct driver *driver, struct bytes message) {
    static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct ringkey_set set = memory_set(&driver->set);
    struct reconcile_report report = {check_need, check_have, driver};
    struct reconcile reconcile;
    struct err_detail detail = {0};
    struct bytes out;
    if (reconcile_answer(&driver->arc, &set, message, memory, sizeof memory, &out, &detail) == ERR_OK) {
        check_readable(driver, out);
    } else {
        ASSERT(detail.text[0] != '\0');
    }
    struct ringkey first = {{0}};
    memcpy(first.bytes, message.data, message.size < RINGKEY_SIZE ? message.size : RINGKEY_SIZE);
    reconcile_init(&reconcile, &driver->arc, &set, &report);
    reconcile_skip_to(&reconcile, &first);
    enum err err = reconcile_ask(&reconcile, memory, RECONCILE_MESSAGE_SIZE_MIN, &out, &detail);
    ASSERT(err == ERR_OK);
    check_readable(driver, out);
    if (reconcile_answer(&driver->arc, &set, message, memory, RECONCILE_MESSAGE_SIZE_MIN, &out, &detail) ==
        ERR_OK) {
        check_readable(driver, out);
    }
    reconcile_init(&reconcile, &driver->arc, &set, &report);
    if (reconcile_take(&reconcile, message, memory, RECONCILE_MESSAGE_SIZE_MIN, &out, &detail) == ERR_OK &&
        out.size > 0) {
        check_readable(driver, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    struct sha256 sha256;
    struct ringkey keys[256];
    struct driver driver;
    enum err err = sha256_init(&sha256);
    ASSERT(err == ERR_OK);
    memset(driver.arc.from, data[0] & 0xf0, sizeof driver.arc.from);
    memset(driver.arc.to, (data[0] & 0x0f) << 4, sizeof driver.arc.to);
    for (unsigned i = 0; i < data[1]; i++) {
        memset(keys[i].bytes, (int)i, sizeof keys[i].bytes);
    }
    memory_set_init(&driver.set, &sha256, keys, data[1]);
    feed(&driver, bytes_of(data + 2, size - 2));
    memory_set_done(&driver.set);
    sha256_done(&sha256);
    return 0;
}
