"""Copies over a line of 100 ms: as many a second as the line bears, and "whole" is said when it is true."""
import base64
import os
import random
import shutil
import time

import pytest

import netlinks
import ringnodes
from ringnodes import await_agreement, found, wait_for
from test_together_refill import RECORD, keeping

COUNT = 3_000
SLOWEST_S = 15  # 83 s if captures are asked for one by one; 1 to 3 s on a machine that does nothing else
DELAY_MS = 50  # one way


def write(path):
    """Captures of 3 KB that no compression makes much smaller."""
    source = random.Random(1)
    with path.open("w", newline="") as out:
        for number in range(COUNT):
            body = base64.b64encode(source.randbytes(2250)).decode()
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{body}"
            out.write(RECORD.format(number=number, size=len(http), http=http))


@pytest.fixture
def pair(tmp_path):
    mnemon, wires_program = netlinks.programs()
    if os.geteuid() != 0 or shutil.which("ip") is None or not os.path.exists("/dev/net/tun"):
        pytest.skip("networks of their own need root, iproute2 and /dev/net/tun")
    wires = netlinks.Wires(wires_program, 2)
    nodes = [ringnodes.Node(mnemon, tmp_path / f"node{i}", wires.address(i), wires.names[i]) for i in range(2)]
    try:
        try:
            wires.begin()
        except AssertionError as error:
            pytest.skip(f"no network namespaces here: {error}")
        for i in range(2):
            wires.shape(i, DELAY_MS / 2, 100e6, 100e6)  # at both ends
        yield nodes
    finally:
        ringnodes.end(nodes)
        wires.end()


def is_all_there(each):
    """The node's word that every capture it has, or keeps for others, has all its copies."""
    return keeping(each).get("whole", False)


def test_many_small_captures_fill_a_long_line_and_whole_means_whole(pair, tmp_path):
    first, second = pair
    write(tmp_path / "all.warc")
    found(first, "--open", "--replicas", "2")
    first.start()
    second.start("--join", first.place)
    await_agreement([first, second])
    for each in pair:
        assert each.run("ring", "wait", "--whole", "--quiet", "--timeout", "60s").returncode == 0
    importing = time.monotonic()
    imported = first.run("import", tmp_path / "all.warc")
    assert imported.returncode == 0, imported.stderr
    began = time.monotonic()
    wait_for(lambda: not is_all_there(first), lambda: str(keeping(first)))
    while (there := keeping(second)["keys"]) < COUNT:
        state = keeping(first)
        # They were asked one after the other: what came between them proves nothing.
        assert not state["whole"] or keeping(second)["keys"] == COUNT, (there, state)
        confirmed = sum(arc["at_least"][1] for arc in state["arcs"] if len(arc["at_least"]) > 1)
        lacking = sum(arc["keys"] for arc in state["arcs"]) - confirmed + state["unconfirmed"]
        assert COUNT - keeping(second)["keys"] <= lacking + (0 if state["keys"] == COUNT else COUNT), state
        assert time.monotonic() - began < 120
    took = time.monotonic() - began
    print(f"{COUNT / (took + began - importing):.0f} captures a second at {2 * DELAY_MS} ms, imported and copied")
    for each in pair:
        waited = each.run("ring", "wait", "--whole", "--timeout", "60s")
        assert waited.returncode == 0 and "whole" in waited.stdout, waited.stderr
        assert [arc["at_least"] for arc in keeping(each)["arcs"]] == [[arc["keys"]] * 2 for arc in keeping(each)["arcs"]]
    assert took < SLOWEST_S


def test_a_node_that_is_stopped_in_the_middle_does_not_call_the_rest_whole(pair, tmp_path):
    """The only copies are on a node that was killed before the other one had them: its word after it came back."""
    first, second = pair
    write(tmp_path / "all.warc")
    found(first, "--open", "--replicas", "2")
    first.start()
    second.start("--join", first.place)
    await_agreement([first, second])
    second.stop()
    assert first.run("import", tmp_path / "all.warc").returncode == 0
    wait_for(lambda: keeping(first)["keys"] == COUNT, lambda: str(keeping(first)))
    late = first.run("ring", "wait", "--whole", "--timeout", "1s")
    assert late.returncode == 1 and "not all captures of this node have their copies yet" in late.stderr, late
    first.kill()
    first.start()
    assert not is_all_there(first)
    began = time.monotonic()
    second.start()
    wait_for(lambda: keeping(second).get("keys") == COUNT, lambda: str(keeping(second)))
    print(f"{COUNT} captures {time.monotonic() - began:.1f} s after the start of a node without them")
    waited = first.run("ring", "wait", "--whole", "--quiet", "--timeout", "120s")
    assert waited.returncode == 0, waited.stderr
    assert keeping(second)["keys"] == COUNT
