"""Light members: nodes behind a router that lets nothing in read what a ring has, and are no part of it."""
import json
import os
import time
import urllib.error

import pytest

import homerouter
import ringnodes
from lightnodes import Light
from releases import previous_program
from ringnodes import Node, await_agreement, found, wait_for
from test_together_refill import RECORD

COUNT = 40
PORT = 7070
JOIN_S_MAX = 5


def write(path):
    with path.open("w", newline="") as out:
        for number in range(COUNT):
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\npage {number}"
            out.write(RECORD.format(number=number, size=len(http), http=http))


@pytest.fixture
def ring(mnemon, tmp_path):
    """ring(3) starts so many members that hold pages, ring.light() is a light one that is not started yet."""
    made = []

    class Ring:
        @staticmethod
        def light(number=0, namespace=None, kind=Light):
            made.append(kind(mnemon, tmp_path / f"light{number}", "127.0.0.1", namespace))
            return made[-1]

        @staticmethod
        def members(count, router=None, program=None):
            nodes = []
            for i in range(count):
                nodes.append(Node(mnemon, tmp_path / f"node{i}", router.members[i] if router else f"127.0.8.{1 + i}",
                                  router.names[1] if router else None))
                nodes[i].port = PORT if router else 0
                nodes[i].program = program or nodes[i].program
                made.append(nodes[i])
            found(nodes[0], "--open", "--replicas", "2")
            for each in nodes:
                each.start(*(() if each is nodes[0] else ("--join", nodes[0].place)))
            await_agreement(list(nodes))
            write(tmp_path / "all.warc")
            assert nodes[0].run("import", "--quiet", tmp_path / "all.warc").returncode == 0
            return nodes

    yield Ring
    ringnodes.end(made)


@pytest.fixture(params=["cone", "symmetric", "nft", "nft fully-random"])
def router(request, tmp_path):
    made = homerouter.make(tmp_path, request.param)
    yield made
    made.end()


def read(node, number):
    try:
        return node.get(f"/web/20260101000000id_/http://example.org/p{number}")
    except urllib.error.HTTPError as error:
        return f"{error.code}"


def read_all(node):
    for number in range(COUNT):
        wait_for(lambda: read(node, number) == f"page {number}", lambda: read(node, number) + node.said)


def check_apart(light, nodes):
    """No member knows it: as a neighbour, as a holder, or as anybody."""
    for each in nodes:
        state = each.status()
        known = {n["address"] for n in state["nodes"]} | {n["address"] for n in state["neighbours"]}
        assert known == {n.place for n in nodes}, state["nodes"]
        assert state["counters"]["blamed"] == 0 and not state["complaints"], state["complaints"]
        assert state["known"] == len(nodes) - 1
    state = light.status()
    assert state["light"] and state["address"] is None and state["listening"] is None
    assert not state["vnodes"] and not state["neighbours"] and not state["complaints"], state


def test_a_node_behind_a_router_reads_a_ring_and_is_no_part_of_it(ring, router):
    nodes = ring.members(3, router)
    light = ring.light(namespace=router.names[0])
    begun = time.monotonic()
    light.start("--join", nodes[0].place)
    wait_for(lambda: light.is_in, lambda: light.said)
    took = time.monotonic() - begun
    print(f"joined in {took:.1f} s")
    assert took < JOIN_S_MAX or os.getloadavg()[0] > os.cpu_count(), took
    read_all(light)
    check_apart(light, nodes)
    assert light.status()["known"] == 3
    said = light.run("ring", "status").stdout
    assert "holds nothing for it, crawls nothing for it" in said and "knows     3 virtual nodes of others" in said, said
    assert "a light member holds nothing for the ring" in said, said
    assert json.loads(light.run("status", "--json").stdout)["store"]["captures"] == 0
    # All of it was asked for by the light member: nobody ever spoke to it first.
    assert router.turned_away == 0
    router.forget()
    wait_for(lambda: read(light, 1) == "page 1", lambda: light.said)


def test_a_member_dies_and_a_light_member_reads_on(ring):
    nodes = ring.members(3)
    light = ring.light().start("--join", nodes[1].place)
    wait_for(lambda: light.is_in, lambda: light.said)
    wait_for(lambda: light.status()["known"] == 3, lambda: str(light.status()))
    copies = "mnemon_ring_captures_copies_min{copies=\"2\"} "
    wait_for(lambda: all(int(line.split()[-1]) > 0 for each in nodes for line in each.get("/metrics").splitlines() if line.startswith(copies)),
             lambda: nodes[0].get("/metrics"))
    wait_for(lambda: all(arc["level"] == "whole" for each in nodes for arc in each.status()["services"]["copies"]["arcs"]),
             lambda: str([each.status()["services"]["copies"]["arcs"] for each in nodes]))
    nodes[1].kill()  # the one that it joined through
    read_all(light)
    wait_for(lambda: light.status()["known"] == 2, lambda: str(light.status()))
    light.stop()
    nodes[0].kill()
    light.start()  # without --join: it remembers whom it knew
    wait_for(lambda: light.is_in, lambda: light.said)
    nodes[2].kill()
    wait_for(lambda: light.status()["state"] == "joining", lambda: str(light.status()))
    assert "nobody of \"films\" answers" in light.said


def test_a_token_lets_a_light_member_in_and_nobody_without_one(mnemon, tmp_path, ring):
    founder = Node(mnemon, tmp_path / "founder", "127.0.8.9")
    found(founder, "--replicas", "1")
    token = founder.run("ring", "invite").stdout.splitlines()[0]
    founder.start()
    try:
        write(tmp_path / "all.warc")
        assert founder.run("import", "--quiet", tmp_path / "all.warc").returncode == 0
        stranger = ring.light(0).start("--join", founder.place)
        light = ring.light(1).start("--join", founder.place, "--token", token)
        read_all(light)
        assert light.is_in and not stranger.is_in
        assert read(stranger, 1) != "page 1"
    finally:
        ringnodes.end([founder])


def test_a_ring_of_the_release_before_is_read(ring):
    nodes = ring.members(2, program=previous_program())
    light = ring.light().start("--join", nodes[0].place)
    read_all(light)
    for each in nodes:
        assert {n["address"] for n in each.status()["neighbours"]} == {n.place for n in nodes if n is not each}
        assert each.status()["counters"]["blamed"] == 0 and not each.status()["complaints"]
    relayed = json.loads(light.get("/api/v1/crowd"))["relayed"]
    assert (relayed["relay"], relayed["why_none"]) == (None, "no member that is known can be one")


def test_a_light_member_runs_no_jobs_of_the_ring(ring):
    nodes = ring.members(2)
    light = ring.light().start("--join", nodes[0].place)
    wait_for(lambda: light.is_in, lambda: light.said)
    added = nodes[0].run("job", "add", "http://127.0.8.99/", "--ring")
    assert added.returncode == 0, added.stderr

    def decree():
        return next((d for d in light.status()["services"]["decrees"] if d["kind"] == "job"), None)

    wait_for(decree, lambda: str(light.status()["services"]))
    wait_for(lambda: decree()["why_not"] == "a light member runs no jobs of the ring", lambda: str(decree()))
    assert not decree()["in_force"]
    assert not (light.directory / "jobs").exists() or not list((light.directory / "jobs").iterdir())


def test_options_that_contradict_each_other_are_refused(mnemon, tmp_path):
    done = mnemon("serve", "--data", tmp_path / "data", "--http", "0", "--light", "--capacity", "2")
    assert done.returncode == 1 and "--light is --capacity 0" in done.stderr
    done = mnemon("serve", "--data", tmp_path / "data", "--http", "0", "--light", "--map-port")
    assert done.returncode == 1 and "nobody reaches a light member" in done.stderr
