"""Rings of many real nodes: they join at once, a third of them is killed, all are started again; several places of one node; nodes that
move; networks that are cut and joined again. MNEMON_RING_NODES=40 for more of them."""
import os
import shutil
import signal
import subprocess

import pytest

from ringnodes import await_agreement, await_same_owners, found, many, places_of, wait_for

NODES_COUNT = int(os.environ.get("MNEMON_RING_NODES", "24"))
BUSY_S = 120  # many programs on a machine that does other things; alone it takes some 20
URLS = [f"http://site{i}.example/page/{i * 7}" for i in range(6)]


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def test_many_nodes_agree_whatever_dies(node):
    nodes = [node(i, f"127.0.1.{i + 1}") for i in range(NODES_COUNT)]
    first = nodes[0]
    found(first, "--open")
    first.start()
    for each in nodes[1:]:
        each.launch("--join", first.place)
    for each in nodes[1:]:
        each.ready()
    await_agreement(nodes, BUSY_S)
    await_same_owners(nodes, URLS)
    places = places_of(nodes)

    dead, alive = nodes[1::3], [n for i, n in enumerate(nodes) if i % 3 != 1]
    for each in dead:
        each.process.send_signal(signal.SIGKILL)
    for each in dead:
        each.kill()
    await_agreement(alive, BUSY_S)
    await_same_owners(alive, URLS)

    for each in alive:
        each.kill()
    for each in nodes:
        each.launch()  # without --join: they remember
    for each in nodes:
        each.ready()
    await_agreement(nodes, BUSY_S)
    assert places_of(nodes) == places
    await_same_owners(nodes, URLS)
    blamed = {n.place: n.status()["blamed"] for n in nodes if n.status()["blamed"]}
    assert not blamed


def test_nodes_with_many_places_agree(node):
    nodes = [node(i, f"127.0.1.{i + 1}") for i in range(9)]
    found(nodes[0], "--open", "--list-size", "4")
    nodes[0].start("--capacity", "6")
    for each in nodes[1:]:
        each.launch("--join", nodes[0].place, "--capacity", "3")
    for each in nodes[1:]:
        each.ready()
    await_agreement(nodes)
    assert [len(n.status()["places"]) for n in nodes] == [6] + 8 * [3]
    await_same_owners(nodes, URLS)


def test_a_node_that_moves_takes_another_place(node):
    a, b, c = node(2), node(3), node(4)
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    c.start("--join", a.place)
    await_agreement([a, b, c])
    old_place, old_key, old_ids = c.place, c.key, places_of([c])[c.place]
    c.stop()
    c.ip = "127.0.0.44"
    c.start()  # the same directory: it remembers whom to ask
    await_agreement([a, b, c])
    assert c.key == old_key and places_of([c])[c.place] != old_ids
    for each in (a, b):
        assert old_place not in each.neighbours()
        assert each.status()["blamed"] == [] and each.status()["complaints"] == []


def first_place(node):
    return node.status()["places"][0]["index"]


def test_nodes_behind_one_address_have_different_places(node):
    a, b, c, d = node(2), node(3), node(4), node(5)
    b.ip = d.ip = a.ip
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    c.start("--join", a.place)
    await_agreement([a, b, c])
    assert (first_place(a), first_place(b)) == (0, 1)
    assert f"place 0 of {a.ip} is taken by {a.place}; this node tries place 1" in b.said
    await_same_owners([a, b, c], URLS)

    d.directory.mkdir()
    (d.directory / "mnemon.conf").write_text("[ring]\nfirst_place = 1\n")  # by the user's word: no other
    d.start("--join", c.place)
    refused = f"place 1 of {a.ip} is taken by {b.place}; set ring.first_place"
    wait_for(lambda: refused in d.said, lambda: d.said)
    wait_for(lambda: any(refused in each["text"] for each in d.status()["complaints"]), lambda: str(d.status()))
    assert d.status()["state"] == "joining" and refused in d.run("ring", "status").stdout
    await_agreement([a, b, c])
    d.stop()
    (d.directory / "mnemon.conf").write_text("[ring]\nfirst_place = 4\n")
    d.start()
    await_agreement([a, b, c, d])
    assert first_place(d) == 4

    b.kill()
    b.start()  # back before it is missed
    await_agreement([a, b, c, d])
    assert (first_place(a), first_place(b)) == (0, 1)


# ---- networks of their own ----

BRIDGE = "mnb0"


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)


@pytest.fixture
def networks():
    """Three network namespaces at one bridge, which is in a fourth; networks.cut(i), networks.join(i)."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    mark = f"mn{os.getpid()}"
    made = []

    def add(name):
        ip("netns", "add", name)
        made.append(name)
        ip("-n", name, "link", "set", "lo", "up")

    class Networks:
        names = [f"{mark}-{i}" for i in range(3)]
        hub = f"{mark}-hub"

        def cut(self, index):
            ip("-n", self.hub, "link", "set", f"p{index}", "down")

        def join(self, index):
            ip("-n", self.hub, "link", "set", f"p{index}", "up")

    all_of_them = Networks()
    try:
        try:
            add(all_of_them.hub)
            ip("-n", all_of_them.hub, "link", "add", BRIDGE, "type", "bridge")
            ip("-n", all_of_them.hub, "link", "set", BRIDGE, "up")
            for i, name in enumerate(all_of_them.names):
                add(name)
                ip("-n", all_of_them.hub, "link", "add", f"p{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("-n", all_of_them.hub, "link", "set", f"p{i}", "master", BRIDGE)
                ip("-n", all_of_them.hub, "link", "set", f"p{i}", "up")
                ip("-n", name, "link", "set", "eth0", "up")
        except AssertionError as error:
            pytest.skip(f"no network namespaces here: {error}")
        yield all_of_them
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def in_networks(node, networks, count, address, prefix):
    """count nodes in each network: address(network, number)."""
    nodes = []
    for i, name in enumerate(networks.names):
        for j in range(count):
            where = address(i, j)
            ip("-n", name, "address", "add", f"{where}/{prefix}", "dev", "eth0", *(("nodad",) if ":" in where else ()))
            nodes.append(node(100 + 10 * i + j, where, name))
    return nodes


def start_all(nodes, *options):
    found(nodes[0], "--open", *options)
    nodes[0].start()
    for each in nodes[1:]:
        each.launch("--join", nodes[0].place)
    for each in nodes[1:]:
        each.ready()


def test_a_network_that_is_cut_heals(node, networks):
    nodes = in_networks(node, networks, 2, lambda i, j: f"10.77.{i}.{j + 1}", 16)
    start_all(nodes, "--list-size", "2")
    await_agreement(nodes)
    networks.cut(2)
    await_agreement(nodes[:4])
    await_agreement(nodes[4:])
    await_same_owners(nodes[4:], URLS[:2])
    networks.join(2)
    await_agreement(nodes, BUSY_S)
    await_same_owners(nodes, URLS[:2])


def test_ipv6(node, networks):
    nodes = in_networks(node, networks, 1, lambda i, j: f"fd00:77:0:{i + 1}::1", 48)
    start_all(nodes)
    await_agreement(nodes)
    await_same_owners(nodes, URLS[:2])
