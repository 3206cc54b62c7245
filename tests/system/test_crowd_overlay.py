"""The crowd's overlay on real nodes of one ring: views fill, the dead leave them, all come back from their files."""
import concurrent.futures
import json
import pathlib
import subprocess

import pytest

from ringnodes import await_agreement, found, many, program, wait_for

COUNT = 8
ENOUGH = 4  # of the seven others; a quarter of the view's 25 would be six, which so few nodes need not reach


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def crowd(node):
    return json.loads(node.get("/api/v1/crowd"))


def view(node):
    return {n["address"] for n in crowd(node).get("view", [])}


def settings(node, *lines):
    node.directory.mkdir(exist_ok=True)
    (node.directory / "mnemon.conf").write_text("\n".join(("[crowd]", "shuffle = 500 ms", *lines, "")))


def ring_of(node, count):
    nodes = [node(2 + i, ip=f"127.0.12.{2 + i}") for i in range(count)]
    for each in nodes:
        settings(each)
    found(nodes[0], "--open")
    nodes[0].start()
    for each in nodes[1:]:
        each.launch("--join", nodes[0].place)
    for each in nodes[1:]:
        each.ready()
    return nodes


def await_views(nodes, least=ENOUGH):
    def all_know_enough():
        return all(len(view(each)) >= least for each in nodes)

    wait_for(all_know_enough, lambda: "\n".join(f"{n.place}: {crowd(n)}" for n in nodes))


def is_one_graph(nodes):
    """From anybody to everybody, over edges in either direction."""
    views = {n.place: view(n) for n in nodes}
    reached, waiting = set(), [nodes[0].place]
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            waiting += [p for p in views if p in views[place] or place in views[p]]
    return len(reached) == len(nodes)


def test_views_fill_the_dead_leave_and_all_come_back_from_their_files(node):
    nodes = ring_of(node, COUNT)
    await_views(nodes)
    places = {n.place for n in nodes}
    for each in nodes:
        assert view(each) <= places - {each.place}
    assert is_one_graph(nodes)

    dead = nodes.pop()
    dead.kill()
    wait_for(lambda: not any(dead.place in view(n) for n in nodes), "the dead leaves all views")
    await_views(nodes, ENOUGH - 1)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda n: n.stop(), nodes))
    for each in nodes:
        assert (each.directory / "crowd-contacts").read_bytes()[:5] == b"mncc\x01"
        (each.directory / "ring" / "peers").unlink()  # the ring itself is not found again: only the crowd's file is left
    for each in nodes:
        each.launch()
    for each in nodes:
        each.ready()
    await_views(nodes, ENOUGH - 1)
    assert is_one_graph(nodes)


def test_what_makes_no_sense_is_counted_and_its_sender_blamed(node, mnemon):
    a, b = ring_of(node, 2)
    await_views([a, b], 1)
    path = pathlib.Path(program(mnemon)).parent / "tests" / "system" / "stranger"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    subprocess.run([path, a.place, "crowd", "200"], check=True, capture_output=True, timeout=60)
    wait_for(lambda: sum(crowd(a)["messages"][name] for name in ("malformed", "foreign")) >= 100, lambda: str(crowd(a)))
    wait_for(lambda: any("no sense to the crowd" in c["text"] for c in a.status()["complaints"]), lambda: str(a.status()["complaints"]))
    assert crowd(a)["messages"]["malformed"] > 0
    assert view(a) == {b.place} and view(b) == {a.place}


def test_a_node_may_stay_out_of_it(node):
    a = node(2, ip="127.0.12.2")
    settings(a, "enabled = no")
    found(a, "--open")
    a.start()
    await_agreement([a])
    assert crowd(a) == {"version": 1, "state": "none"}
    assert not (a.directory / "crowd-contacts").exists()


@pytest.mark.parametrize("part", ["query-only", "tunnel", "mute"])
def test_a_node_that_does_less_for_others_is_part_of_the_overlay(node, part):
    a, b = node(2, ip="127.0.12.2"), node(3, ip="127.0.12.3")
    settings(b, f"part = {part}", "overlay = proofs", "view = 10", "fanout = 2")  # only the first is a setting still
    found(a, "--open")
    a.start()
    b.start("--join", a.place)
    await_views([a, b], 1)
    said = crowd(b)
    assert (said["part"], said["overlay"], said["view_size"], said["fanout"]) == (part, "cyclon", 25, 5)
