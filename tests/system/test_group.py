"""Groups of real nodes: who is in, who is master, and one topology everywhere, whatever dies. Groups need no ring."""
import json
import re
import socket
import time
import urllib.error

import pytest

from ringnodes import Node, end, wait_for

PATIENCE_S = 120
NODES = 6
NET = "127.0.14"


class Member(Node):
    """A node in groups; it may be in none when it is started, and then has no socket yet."""

    def configure(self, period="2 s", silence="8 s"):
        self.directory.mkdir(exist_ok=True)
        (self.directory / "mnemon.conf").write_text(f"[group]\nperiod = {period}\nsilence = {silence}\n")
        return self

    def ready(self):
        lines = [self.process.stdout.readline() for _ in range(2)]
        self.url = lines[0].split()[-1]
        assert self.url.startswith("http"), "".join(lines) + self.said
        return self

    def group(self, *arguments):
        done = self.run("group", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def seen(self, name="lib"):
        """What this node knows of the group; {} where it is in no such group."""
        try:
            return json.loads(self.get(f"/api/v1/groups?group={name}"))["groups"][0]
        except urllib.error.HTTPError:
            return {}

    def members(self, name="lib"):
        return {m["address"] for m in self.seen(name).get("members", [])}

    @property
    def key(self):
        return re.search(r"^key (\S+)$", (self.directory / "identity").read_text(), re.M).group(1).lower()


def free_port(ip):
    """One that is free for both, UDP and TCP."""
    for _ in range(100):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind((ip, 0))
            try:
                tcp.bind((ip, udp.getsockname()[1]))
            except OSError:
                continue
            return udp.getsockname()[1]
    raise AssertionError(f"no free port at {ip}")


def free_ports(count):
    return [free_port(f"{NET}.{i + 1}") for i in range(count)]


@pytest.fixture
def make(mnemon, tmp_path):
    made = []

    def members(count, **settings):
        ports = free_ports(count)
        for i in range(count):
            node = Member(mnemon, tmp_path / f"node{i}", f"{NET}.{i + 1}")
            node.port = ports[i]
            made.append(node.configure(**settings))
        return made

    yield members
    end(made)


def topology(node, name="lib"):
    """All that must be the same everywhere."""
    seen = node.seen(name)
    return json.dumps([seen.get(k) for k in ("term", "sequence", "master", "edges")] +
                      [[m["address"] for m in seen.get("members", [])]])


def agree(nodes, name="lib", members=None):
    places = {n.place for n in (members or nodes)}
    return all(n.members(name) == places and n.seen(name)["state"] == "member" for n in nodes) and \
        len({topology(n, name) for n in nodes}) == 1


def await_agreement(nodes, name="lib", members=None):
    wait_for(lambda: agree(nodes, name, members),
             lambda: "\n\n".join(f"{n.place} {topology(n, name)} {n.seen(name).get('state')}\n{n.said}" for n in nodes),
             PATIENCE_S)


def found(nodes, *options, name="lib"):
    """The first creates the group, each other joins by the one before: through any member."""
    nodes[0].group("create", name, *options)
    for i, node in enumerate(nodes[1:]):
        node.group("join", f"{name}@{nodes[i].place}")
    for node in nodes:
        node.launch()
    for node in nodes:
        node.ready()
    await_agreement(nodes, name)
    return nodes


def test_six_nodes_agree_on_a_topology_that_stands_failures(make):
    nodes = found(make(NODES), "--open")
    seen = nodes[3].seen()
    assert seen["master"] == nodes[0].place and not seen["is_master"] and nodes[0].seen()["is_master"]
    assert seen["bridges"] == 0 and seen["articulations"] == 0
    near = wait_for(lambda: [n for n in nodes[3].seen()["neighbours"] if n["bandwidth"] > 0 and n["round_trip_us"] > 0],
                    "nothing was measured", PATIENCE_S)
    assert near[0]["bandwidth"] > 32 << 10
    wait_for(lambda: nodes[0].seen()["counters"]["reports"] + nodes[3].seen()["counters"]["reported"] > 0, "no report",
             PATIENCE_S)
    wait_for(lambda: all(edge["cost_us"] is not None for edge in nodes[2].seen()["edges"]), "the costs are not told",
             PATIENCE_S)

    def is_drawn():  # once more where another topology comes in between
        dot = nodes[2].group("status", "lib", "--dot", "-")
        return dot.startswith("graph") and dot.count(" -- ") == len(nodes[2].seen()["edges"])

    wait_for(is_drawn, "as DOT", PATIENCE_S)
    svg = nodes[2].directory / "lib.svg"
    nodes[2].group("status", "lib", "--svg", svg)
    assert svg.read_text().count("<circle") == NODES
    told = nodes[2].group("status")
    assert all(n.place in told for n in nodes) and "master" in told
    page = nodes[2].get("/dashboard")
    assert "groups-live" in page and page.count("<circle cx=") >= NODES


def test_a_dead_master_is_followed_and_comes_back_as_a_member(make):
    nodes = found(make(NODES), "--open")
    nodes[0].kill()
    left = nodes[1:]
    wait_for(lambda: len({n.seen().get("master") for n in left}) == 1 and left[0].seen()["master"] != nodes[0].place,
             lambda: "\n".join(n.said for n in left), PATIENCE_S)
    master = left[0].seen()["master"]
    assert sum(n.seen()["is_master"] for n in left) == 1 and master in {n.place for n in left}
    nodes[0].start()
    await_agreement(nodes)
    assert nodes[0].seen()["master"] != nodes[0].place
    nodes[0].group("change", "lib", "--approve")  # a founder who has something to say takes over
    wait_for(lambda: all(n.seen().get("master") == nodes[0].place for n in nodes), lambda: nodes[0].said, PATIENCE_S)


def test_a_dead_member_is_dropped_after_the_silence(make):
    nodes = found(make(4, silence="6 s"), "--open")
    left = [nodes[0], nodes[1], nodes[3]]
    killing_at = time.monotonic()  # it is silent from some time after this on, which may be before kill() returns
    nodes[2].kill()
    await_agreement(left)
    assert time.monotonic() - killing_at > 2, "it was dropped without any silence"
    wait_for(lambda: nodes[0].seen()["counters"]["dropped"] == 1, lambda: nodes[0].said, PATIENCE_S)


def test_all_stop_and_come_back(make):
    nodes = found(make(4), "--open")
    before = nodes[0].seen()
    for node in nodes:
        node.stop()
    for node in reversed(nodes):
        node.start()
    await_agreement(nodes)
    after = nodes[0].seen()
    assert (after["term"], after["sequence"]) >= (before["term"], before["sequence"])


def test_who_leaves_is_gone_and_his_files_too(make):
    nodes = found(make(3), "--open")
    nodes[1].group("leave", "lib")
    await_agreement([nodes[0], nodes[2]])
    wait_for(lambda: not list((nodes[1].directory / "groups").iterdir()) and nodes[1].seen() == {}, "its files are left",
             PATIENCE_S)
    again = nodes[1].group("join", f"lib@{nodes[2].place}")
    assert "the running node begins at once" in again
    await_agreement(nodes)


def test_approval_and_refusal(make):
    nodes = make(3)
    nodes[0].group("create", "lib")
    nodes[0].start()
    for node in nodes[1:]:
        node.start()
        node.group("join", f"lib@{nodes[0].place}")
    wait_for(lambda: len(nodes[0].seen().get("asked", [])) == 2, lambda: nodes[0].said, PATIENCE_S)
    assert nodes[0].members() == {nodes[0].place}
    nodes[0].group("approve", "lib", nodes[1].key)
    await_agreement(nodes[:2])
    nodes[0].group("refuse", "lib", nodes[2].key)
    wait_for(lambda: nodes[2].seen()["state"] == "refused", lambda: nodes[2].said, PATIENCE_S)
    assert nodes[0].members() == {nodes[0].place, nodes[1].place}
    nodes[0].group("refuse", "lib", nodes[1].key)  # also who is in
    wait_for(lambda: nodes[0].members() == {nodes[0].place}, lambda: nodes[0].said, PATIENCE_S)


def test_rules_change_while_it_runs(make):
    nodes = make(4)
    nodes[0].group("create", "lib")
    nodes[0].start()
    for node in nodes[1:]:
        node.group("join", f"lib@{nodes[0].place}")
        node.start()
    wait_for(lambda: len(nodes[0].seen().get("asked", [])) == 3, lambda: nodes[0].said, PATIENCE_S)
    assert nodes[0].group("change", "lib", "--open") == "open, sparse, k = 2\n"
    await_agreement(nodes)
    assert len(nodes[0].seen()["edges"]) >= len(nodes)  # nobody's failure cuts it
    nodes[0].group("change", "lib", "--generator", "tree", "--k", "1")
    wait_for(lambda: all(len(n.seen()["edges"]) == len(nodes) - 1 for n in nodes), lambda: nodes[0].said, PATIENCE_S)
    assert nodes[0].seen()["generator"] == "tree" and nodes[0].seen()["admission"] == "open"
    assert "only the founder" in nodes[1].run("group", "change", "lib", "--open").stderr


def test_invitation(make):
    nodes = make(3)
    nodes[0].group("create", "lib", "--invite")
    nodes[0].start()
    token = nodes[0].group("invite", "lib").strip()
    foreign = nodes[0].run("group", "invite", "other")
    assert foreign.returncode == 1 and "in no group" in foreign.stderr
    nodes[1].group("join", f"lib@{nodes[0].place}", "--token", token)
    nodes[1].start()
    await_agreement(nodes[:2])
    assert "only the founder" in nodes[1].run("group", "invite", "lib").stderr
    nodes[2].group("join", f"lib@{nodes[1].place}")
    nodes[2].start()
    wait_for(lambda: "has no good invitation" in nodes[0].said, lambda: nodes[0].said, PATIENCE_S)
    assert nodes[0].members() == {n.place for n in nodes[:2]}


def test_two_groups_with_a_corner(make):
    nodes = make(5)
    left, right, corner = nodes[:3], nodes[2:], nodes[2]
    left[0].group("create", "left", "--open", "--generator", "tree", "--k", "1")
    right[-1].group("create", "right", "--open")
    for node in left[1:]:
        node.group("join", f"left@{left[0].place}")
    for node in right[:-1]:
        node.group("join", f"right@{right[-1].place}")
    for node in nodes:
        node.launch()
    for node in nodes:
        node.ready()
    await_agreement(left, "left")
    await_agreement(right, "right")
    assert {g["name"] for g in json.loads(corner.get("/api/v1/groups"))["groups"]} == {"left", "right"}
    assert corner.seen("left")["generator"] == "tree" and left[1].seen("left")["k"] == 1
    assert left[0].seen("right") == {} and right[-1].seen("left") == {}


def test_a_ring_and_a_group_side_by_side(make):
    """Two are in a ring that one must be invited to; the third is in their group only, and in no ring."""
    nodes = make(3)
    assert nodes[0].run("ring", "create", "films").returncode == 0
    token = nodes[0].run("ring", "invite").stdout.splitlines()[0]
    nodes[0].group("create", "lib", "--open")
    for node in nodes[1:]:
        node.group("join", f"lib@{nodes[0].place}")
    nodes[0].start()
    nodes[1].start("--join", nodes[0].place, "--token", token)
    nodes[2].start()
    await_agreement(nodes)
    wait_for(lambda: nodes[1].status()["state"] == "member" and len(nodes[0].neighbours()) == 1, lambda: nodes[1].said,
             PATIENCE_S)
    wait_for(lambda: all(any(n["bandwidth"] > 0 for n in node.seen()["neighbours"]) for node in nodes), "nothing was measured",
             PATIENCE_S)
    assert nodes[2].status()["state"] == "none"
    assert not any(nodes[2].place in c["text"] for n in nodes[:2] for c in n.status().get("complaints", []))
    assert "<h2 id=ring>" not in nodes[2].get("/dashboard") and "groups-live" in nodes[0].get("/dashboard")


def test_mistakes_are_told(make):
    node = make(1)[0]
    for arguments, sentence in [
        (("create", "a/b"), "is not a valid name"),
        (("create", "lib", "--open", "--invite"), "one of --open"),
        (("join", "lib"), "NAME@HOST"),
        (("join", "lib@127.0.0.1:99999"), "not HOST"),
        (("join", "lib@127.0.0.1", "--token", "a#b"), "--token: this is not a valid token"),
        (("leave", "lib"), "in no group"),
        (("change", "lib", "--open"), "in no group"),
        (("approve", "lib"), "name the group"),
        (("status", "--dot", "x"), "name the group"),
        (("dance",), "unknown action"),
    ]:
        done = node.run("group", *arguments)
        assert done.returncode != 0 and sentence in done.stderr, (arguments, done.stderr)
    node.group("create", "lib")
    assert "already" in node.run("group", "create", "lib").stderr
    (node.directory / "groups" / "bad.group").write_text("founder = nobody\n")
    node.start()
    wait_for(lambda: "bad.group" in node.said, lambda: node.said, PATIENCE_S)
    wait_for(lambda: node.seen().get("is_master"), lambda: node.said, PATIENCE_S)
