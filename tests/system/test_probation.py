"""A member that has not been up for long holds copies that do not count: others hold as many as are wanted, status, page and
JSON say so, and a restart of those that judge changes nothing."""
import os
import pathlib
import shutil
import subprocess

import pytest

import ringnodes
from ringnodes import await_agreement, wait_for
from test_copies_whole import fill, held, waits
from test_together_refill import keeping

COUNT = 300


@pytest.fixture
def nodes(mnemon, tmp_path):
    made = [ringnodes.Node(mnemon, tmp_path / f"node{i}", f"127.0.9.{1 + i}") for i in range(3)]
    yield made
    ringnodes.end(made)


def found_long_ago(node):
    """A ring of ten days: in a young one, everybody counts."""
    shift = pathlib.Path(node.program).parent / "tests" / "system" / "libshiftclock.so"
    done = subprocess.run([node.program, "ring", "create", "films", "--open", "--replicas", "2", "--data", node.directory],
                          env={**os.environ, "LD_PRELOAD": str(shift), "MNEMON_CLOCK_SHIFT": str(-10 * 86400)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def settings(each, probation):
    each.directory.mkdir(exist_ok=True)
    (each.directory / "mnemon.conf").write_text(f"[ring]\ngrace = 5 s\ncompare = 1 s\nprobation = {probation}\n")


def on_probation(each):
    """address: seconds that it must still be up, as JSON, words and page have it."""
    members = [member for arc in keeping(each)["arcs"] for member in arc["members"]]
    return {member["address"]: member["probation_left_s"] for member in members if member["probation"]}


def restart(nodes, probation, ring):
    for each in nodes:
        each.stop()
        settings(each, probation)
    for each in nodes:
        each.start()
    await_agreement(list(ring))


@pytest.mark.skipif("MNEMON_SANITIZED" in os.environ, reason="a library in front of the sanitizers'")
def test_copies_of_a_newcomer_do_not_count_until_it_was_up(nodes, tmp_path):
    first, second, late = nodes
    old = [first, second]
    for each in nodes:
        settings(each, "1 s")
    found_long_ago(first)
    fill(first, tmp_path / "a.warc", "a")
    first.start()
    second.start("--join", first.place)
    await_agreement(list(old))
    wait_for(lambda: keeping(first)["whole"] and not any(on_probation(each) for each in old),
             lambda: str(keeping(first)))
    assert waits(first, 60).returncode == 0

    # Those that have served are remembered; whoever comes now has not.
    restart(old, "200 s", old)
    settings(late, "200 s")
    late.start("--join", first.place)
    await_agreement(list(nodes))
    wait_for(lambda: all(on_probation(each) for each in old), lambda: str([keeping(each) for each in old]))
    fill(second, tmp_path / "b.warc", "b")
    wait_for(lambda: all(len(held(each)) == 2 * COUNT for each in old) and held(late),
             lambda: str([len(held(each)) for each in nodes]))
    for each in old:
        assert waits(each, 60).returncode == 0
        states = on_probation(each)
        assert list(states) == [late.place] and 0 < states[late.place] <= 200, states
        for text in (each.run("ring", "status").stdout, each.get("/dashboard")):
            assert f"on probation, so that their copies do not count: {late.place} (up for about " in text, text
        assert all(arc["copies"] == 2 for arc in keeping(each)["arcs"])
    assert sum(arc["probation"] for each in old for arc in keeping(each)["arcs"]) == 1  # it follows one of the two

    # If it goes with its disk, nothing is lost.
    late.kill()
    shutil.move(late.directory, tmp_path / "gone")
    wait_for(lambda: all(each.status().get("neighbours", []) and keeping(each)["whole"] for each in old),
             lambda: str(keeping(first)))
    assert all(len(held(each)) == 2 * COUNT for each in old)
    shutil.move(tmp_path / "gone", late.directory)

    # If five seconds are enough, it counts soon, and they go on from what it was up before.
    late.start()
    restart(old, "5 s", nodes)
    wait_for(lambda: not any(on_probation(each) for each in old), lambda: str([keeping(each) for each in old]))
    for each in old:
        assert waits(each, 60).returncode == 0
        assert "probation" not in each.run("ring", "status").stdout
        assert all(arc["copies"] == 2 and arc["probation"] == 0 for arc in keeping(each)["arcs"])


def test_in_a_young_ring_all_count(nodes, tmp_path):
    first, second, late = nodes
    for each in nodes:
        settings(each, "1 h")
    ringnodes.found(first, "--open", "--replicas", "3")
    first.start()
    second.start("--join", first.place)
    await_agreement([first, second])
    fill(first, tmp_path / "a.warc", "a")
    late.start("--join", first.place)
    await_agreement(list(nodes))
    for each in nodes:
        assert waits(each, 60).returncode == 0
        assert on_probation(each) == {} and "probation" not in each.run("ring", "status").stdout
        assert all(arc["copies"] == 3 for arc in keeping(each)["arcs"])
