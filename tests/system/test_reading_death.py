"""Pages are read on through a node while the holder that it would have asked first has just died."""
import itertools
import re
import signal
import time
import urllib.error
import urllib.request

import pytest

import ringnodes
from ringnodes import await_agreement, found, wait_for
from test_together_refill import RECORD, keeping

COUNT = 200
NODES = 5
SLOW_S = 0.3  # a lookup that asks a dead node took 0.6 s and more


def write(path):
    with path.open("w", newline="") as out:
        for number in range(COUNT):
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\npage {number}"
            out.write(RECORD.format(number=number, size=len(http), http=http))


@pytest.fixture
def nodes(mnemon, tmp_path):
    all_nodes = [ringnodes.Node(mnemon, tmp_path / f"node{i}", f"127.0.7.{1 + i}") for i in range(NODES)]
    yield all_nodes
    ringnodes.end(all_nodes)


def read(node, number):
    begin = time.monotonic()
    assert node.get(f"/web/20260101000000id_/http://example.org/p{number}") == f"page {number}"
    return time.monotonic() - begin


def check_metrics(node):
    """Of a node whose arcs are whole: all captures in them have three copies."""
    lines = [line for line in node.get("/metrics").splitlines() if line.startswith("mnemon_ring")]
    numbers = {name: int(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    arcs = keeping(node)["arcs"]
    keys = sum(arc["keys"] for arc in arcs)
    assert [numbers[f'mnemon_ring_captures_copies_min{{copies="{n}"}}'] for n in (1, 2, 3)] == [keys] * 3, numbers
    assert numbers["mnemon_ring_captures"] == keeping(node)["keys"]
    assert numbers["mnemon_ring_captures_unconfirmed"] == numbers["mnemon_ring_checking"] == 0
    assert numbers['mnemon_ring_arcs{level="whole"}'] == len(arcs)


def test_a_dead_holder_delays_no_reader_for_long(nodes, tmp_path):
    write(tmp_path / "all.warc")
    found(nodes[0], "--open", "--replicas", "3")
    nodes[0].start()
    for each in nodes[1:]:
        each.start("--join", nodes[0].place)
    await_agreement(nodes)
    assert nodes[0].run("import", tmp_path / "all.warc").returncode == 0
    for each in nodes:
        waited = each.run("ring", "wait", "--whole", "--quiet", "--timeout", "60s")
        assert waited.returncode == 0, waited.stderr
        check_metrics(each)
    owners = {number: nodes[0].owner(f"http://example.org/p{number}", 3) for number in range(COUNT)}

    def of_others(reader, dead):
        """Pages that the reader does not hold and would ask the other one for first."""
        return [number for number, holders in owners.items() if holders[0] == dead.place and reader.place not in holders]

    reader, dead = max(itertools.permutations(nodes, 2), key=lambda pair: len(of_others(*pair)))
    asked = of_others(reader, dead)
    before = sorted(read(reader, number) for number in set(range(COUNT)) - set(asked))  # it knows how long the others take
    busy_s = before[len(before) * 95 // 100]
    dead.process.send_signal(signal.SIGSTOP)
    try:
        took = sorted(read(reader, number) for number in asked)
    finally:
        dead.process.send_signal(signal.SIGCONT)
    print(f"{len(asked)} reads of which the first holder was dead:", ", ".join(f"{1000 * each:.0f} ms" for each in took[-3:]),
          f"({1000 * busy_s:.0f} ms before)")
    assert len(asked) > 10
    assert took[-1 - len(took) // 100] < SLOW_S + busy_s, took[-3:]  # a busy machine is not the node's fault


def answer(node, number):
    """Status, and what is said to be missing."""
    request = urllib.request.Request(f"{node.url}/web/20260101000000id_/http://example.org/p{number}")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers["X-Mnemon-Partial"]
    except urllib.error.HTTPError as error:
        return error.code, error.headers["X-Mnemon-Partial"]


def test_who_has_not_found_its_ring_again_does_not_say_that_there_is_nothing(nodes, tmp_path):
    alone, other = nodes[:2]
    write(tmp_path / "all.warc")
    found(other, "--open", "--replicas", "1")
    other.start()
    alone.start("--join", other.place)
    await_agreement([alone, other])
    assert other.run("import", tmp_path / "all.warc").returncode == 0
    for each in (alone, other):
        waited = each.run("ring", "wait", "--whole", "--quiet", "--timeout", "60s")
        assert waited.returncode == 0, waited.stderr
    here = {int(n) for n in re.findall(r"example\.org/p(\d+)\"", alone.run("list", "*", "--local", "--json").stdout)}
    elsewhere = [*sorted(set(range(COUNT)) - here)[:5], COUNT]  # the last is nowhere, but who knows
    alone.stop()
    other.process.send_signal(signal.SIGSTOP)
    try:
        alone.start()
        for number in elsewhere:
            assert answer(alone, number)[0] == 503, "no capture is known here, and nobody else was asked"
        for number in sorted(here)[:5]:
            status, missing = answer(alone, number)
            assert status == 200 and missing, "there may be others"
        listed = alone.run("list", "*")
        assert listed.returncode == 1 and "the other nodes of the ring" in listed.stderr, listed.stderr
    finally:
        other.process.send_signal(signal.SIGCONT)
    await_agreement([alone, other])
    expected = [*[(200, None)] * (len(elsewhere) - 1), (404, None)]
    wait_for(lambda: [answer(alone, number) for number in elsewhere] == expected,
             lambda: str([answer(alone, number) for number in elsewhere]))
