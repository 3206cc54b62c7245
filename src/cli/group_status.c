#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/group.h"
#include "node/group/group_driver.h"

enum { PATH_SIZE_MAX = 1 << 10, US_PER_MS = 1000 };

static void put_cost(struct buf *line, const json_t *cost) {
    if (json_is_number(cost)) {
        buf_put_format(line, "%.1f ms", json_number_value(cost) / US_PER_MS);
    } else {
        buf_put_string(line, "not measured");
    }
}

static void put_members(struct buf *line, const json_t *group) {
    const json_t *members = json_object_get(group, "members");
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        buf_put_format(line, "%-10s%-24s %s%s%s\n", i == 0 ? "members" : "", ask_text(member, "address"),
                       ask_text(member, "key"), i == 0 ? ", master" : "",
                       json_is_true(json_object_get(member, "self")) ? ", this node" : "");
    }
}

static void put_edges(struct buf *line, const json_t *group) {
    const json_t *members = json_object_get(group, "members");
    const json_t *edges = json_object_get(group, "edges");
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *edge = json_array_get(edges, i);
        const json_t *a = json_array_get(members, (size_t)ask_number(edge, "a"));
        const json_t *b = json_array_get(members, (size_t)ask_number(edge, "b"));
        buf_put_format(line, "%-10s%s - %s, ", i == 0 ? "edges" : "", ask_text(a, "address"),
                       ask_text(b, "address"));
        put_cost(line, json_object_get(edge, "cost_us"));
        buf_put_byte(line, '\n');
    }
}

static void put_neighbours(struct buf *line, const json_t *group) {
    const json_t *neighbours = json_object_get(group, "neighbours");
    for (size_t i = 0; i < json_array_size(neighbours); i++) {
        const json_t *neighbour = json_array_get(neighbours, i);
        buf_put_format(line, "%-10s%-24s ", i == 0 ? "near" : "", ask_text(neighbour, "address"));
        if (ask_number(neighbour, "round_trip_us") > 0) {
            buf_put_format(line, "round trip %.1f ms, ", ask_number(neighbour, "round_trip_us") / US_PER_MS);
        }
        if (ask_number(neighbour, "bandwidth") > 0) {
            ask_put(line, neighbour, "{bandwidth:size} a second, ");
        }
        bool is_heard = json_object_get(neighbour, "heard_seconds_ago") != NULL;
        ask_put(line, neighbour, is_heard ? "last heard {heard_seconds_ago:0} s ago\n" : "not heard yet\n");
    }
    const json_t *asked = json_object_get(group, "asked");
    for (size_t i = 0; i < json_array_size(asked); i++) {
        const json_t *peer = json_array_get(asked, i);
        buf_put_format(line, "%-10s%-24s %s\n", i == 0 ? "asks" : "", ask_text(peer, "address"),
                       ask_text(peer, "key"));
    }
}

static void put_group(struct buf *line, const json_t *group) {
    size_t members_count = json_array_size(json_object_get(group, "members"));
    ask_put(line, group, "group     {name}, {state}, {admission}, {generator} with k = {k:0}\n");
    if (members_count > 0) {
        ask_put(line, group, "topology  {term:0}.{sequence:0}, ");
        buf_put_format(line, "%zu members", members_count);
        ask_put(line, group, ", at most {hops:0} hops apart, {bridges:0} bridges\n");
    }
    put_members(line, group);
    put_edges(line, group);
    put_neighbours(line, group);
}

static void print_groups(struct buf *out, const struct node_file *node, const json_t *answer) {
    const json_t *groups = json_object_get(answer, "groups");
    (void)node;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        buf_put_string(out, i > 0 ? "\n" : "");
        put_group(out, json_array_get(groups, i));
    }
    if (out->size == 0) {
        buf_put_string(out, "in no group\n");
    }
}

/* Without a node: what is wanted. */
static int print_files(struct cli *cli, const struct data *data) {
    char names[GROUP_DRIVER_GROUPS_MAX][GROUP_FILES_NAME_SIZE_MAX];
    size_t count = group_files_list(data->directory, names, GROUP_DRIVER_GROUPS_MAX);
    for (size_t i = 0; i < count; i++) {
        fprintf(cli->out, "group     %s; no node runs on %s\n", names[i], data->directory);
    }
    if (count == 0) {
        fputs("in no group\n", cli->out);
    }
    return CLI_DONE;
}

static int save_picture(struct cli *cli, const struct data *data, const char *name, const char *format,
                        const char *file) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "/api/v1/groups/picture?format=%s&group=%s", format, name);
    return ask_save(cli, data, path, file);
}

int group_status(struct cli *cli, const struct data *data, const struct group_options *options,
                 const char *name) {
    struct node_file node;
    char path[PATH_SIZE_MAX];
    bool wants_picture = options->dot != NULL || options->svg != NULL;
    if (wants_picture && name == NULL) {
        return cli_usage(cli, &group_command, "name the group: mnemon group status NAME --dot FILE");
    }
    if (name != NULL && !group_files_name_is_valid(bytes_of_string(name))) {
        return cli_usage(cli, &group_command, "\"%s\" is not a valid name of a group", name);
    }
    if (!wants_picture && !options->json && node_file_read(data->directory, &node, NULL) != ERR_OK) {
        return print_files(cli, data);
    }
    if (!wants_picture) {
        snprintf(path, sizeof path, "/api/v1/groups%s%s", name != NULL ? "?group=" : "",
                 name != NULL ? name : "");
        return ask_show(cli, data, path, options->json, print_groups);
    }
    int status = options->dot != NULL ? save_picture(cli, data, name, "dot", options->dot) : CLI_DONE;
    return status == CLI_DONE && options->svg != NULL ? save_picture(cli, data, name, "svg", options->svg)
                                                      : status;
}
