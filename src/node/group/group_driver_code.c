#include "node/group/group_driver_code.h"

#include "base/wire.h"

struct bytes group_driver_code_write(const struct group_driver_message *message,
                                     uint8_t out[GROUP_DRIVER_CODE_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, GROUP_DRIVER_CODE_SIZE_MAX);
    wire_write_u8(&writer, 0);
    wire_write_u8(&writer, (uint8_t)message->kind);
    wire_write_string(&writer, message->name);
    if (message->kind == GROUP_DRIVER_TELL) {
        wire_write_bytes(&writer, bytes_of(message->rules.founder, PEER_KEY_SIZE));
        wire_write_u8(&writer, message->rules.admission);
        wire_write_u8(&writer, message->rules.generator);
        wire_write_u8(&writer, message->rules.k);
    }
    return wire_writer_bytes(&writer);
}

static void read_rules(struct wire_reader *reader, struct group_rules *rules) {
    static const uint8_t nobody[PEER_KEY_SIZE];
    wire_read_array(reader, rules->founder, PEER_KEY_SIZE);
    rules->admission = wire_read_u8_max(reader, GROUP_ADMISSION_INVITE);
    rules->generator = wire_read_u8_max(reader, TOPOLOGY_TREE);
    rules->k = wire_read_u8_max(reader, TOPOLOGY_K_MAX);
    if (memcmp(rules->founder, nobody, PEER_KEY_SIZE) == 0) {
        wire_read_fail(reader, ERR_INVALID, "nobody's group");
    }
}

enum err group_driver_code_read(struct bytes input, struct group_driver_message *ret_message) {
    struct wire_reader reader;
    *ret_message = (struct group_driver_message){0};
    wire_reader_init(&reader, input);
    (void)wire_read_u8_max(&reader, 0);
    uint8_t kind = wire_read_u8_max(&reader, GROUP_DRIVER_NONE);
    ret_message->kind = (enum group_driver_code_kind)kind;
    ret_message->name = wire_read_string(&reader, GROUP_FILES_NAME_SIZE_MAX - 1);
    if (kind == GROUP_DRIVER_TELL) {
        read_rules(&reader, &ret_message->rules);
    }
    if (reader.err == ERR_OK && (kind < GROUP_DRIVER_ASK || !group_files_name_is_valid(ret_message->name))) {
        wire_read_fail(&reader, ERR_INVALID, "no question about a group");
    }
    return wire_reader_finish(&reader, NULL);
}
