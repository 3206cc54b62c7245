"""What status, metrics and page say of copies is held to what is on the disks: while captures come, while a node is down, while one
takes nothing because it is full, and after. And every end of "mnemon ring wait --whole"."""
import re
import subprocess

import pytest

import ringnodes
from ringnodes import await_agreement, found, wait_for
from test_copies_lines import write
from test_together_disk import TIGHT, disk  # noqa: F401 (a fixture by its name)
from test_together_refill import keeping

COUNT = 300
COPIES = 3


@pytest.fixture
def nodes(mnemon, tmp_path):
    made = [ringnodes.Node(mnemon, tmp_path / f"node{i}", f"127.0.8.{1 + i}") for i in range(3)]
    yield made
    ringnodes.end(made)


def held(each):
    done = each.run("list", "*", "--local", "--limit", "100000")
    assert done.returncode == 0, done.stderr
    return {line.split(" ")[0] for line in done.stdout.splitlines()}


def said(nodes):
    """[captures with at least 1, 2, 3 live copies], as the primaries of all arcs say; and how many of them say "whole"."""
    states = [keeping(each) for each in nodes]
    sums = [sum(state.get("at_least", [])[k:k + 1][0] for state in states if len(state.get("at_least", [])) > k)
            for k in range(COPIES)]
    return sums, sum(state.get("whole", False) for state in states)


def truth(nodes):
    disks = [held(each) for each in nodes]
    levels = [sum(url in disk for disk in disks) for url in set().union(*disks)]
    return [sum(level > k for level in levels) for k in range(COPIES)]


def check(nodes):
    """Nodes say no more than is true when they are asked, or a moment later: captures come and do not go."""
    sums, whole_count = said(nodes)
    true = truth(nodes)
    assert all(a <= b for a, b in zip(sums, true)), (sums, true)
    return sums, true, whole_count


def check_texts(each):
    """The same in metrics, in words and on the page."""
    metrics = {}
    wanted = [*keeping(each)["at_least"], *[0] * COPIES][:COPIES]
    for line in each.get("/metrics").splitlines():
        if line.startswith("mnemon_ring_"):
            name, value = line.rsplit(" ", 1)
            metrics[name] = int(value)
    assert [metrics[f'mnemon_ring_captures_copies_min{{copies="{k + 1}"}}'] for k in range(COPIES)] == wanted
    if keeping(each)["whole"]:
        assert metrics["mnemon_ring_copies_left_seconds"] == 0 and "left_s" not in keeping(each)
    for text in (each.run("ring", "status").stdout, each.get("/dashboard")):
        lacking = re.search(r"known to have all copies \(2 copies: ([\d,]+), 1 copy: ([\d,]+)\)", text)
        assert bool(lacking) == (wanted[-1] < wanted[0]), text
        if lacking:
            assert [int(number.replace(",", "")) for number in lacking.groups()] == [wanted[1], wanted[0]]


def waits(each, seconds):
    return each.run("ring", "wait", "--whole", "--timeout", f"{seconds}s")


def fill(each, path, name):
    write(path, COUNT)
    path.write_bytes(path.read_bytes().replace(b"http://example.org/p", f"http://{name}.example/p".encode()))
    assert each.run("import", path).returncode == 0


def test_what_is_said_of_copies_is_true(nodes, tmp_path):
    first, second, third = ring = nodes
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text("[ring]\ngrace = 1 h\ncompare = 3 s\n")
    found(first, "--open", "--replicas", str(COPIES))
    first.start()
    for each in (second, third):
        each.start("--join", first.place)
    await_agreement(list(ring))

    # While captures come.
    fill(first, tmp_path / "a.warc", "a")
    while (now := check(ring))[0][-1] < COUNT or now[2] < len(ring):
        assert now[2] < len(ring) or now[1] == [COUNT] * COPIES, now
    for each in ring:
        done = waits(each, 60)
        assert done.returncode == 0 and "whole" in done.stdout, done.stderr
        check_texts(each)
    assert check(ring)[0] == [COUNT] * COPIES

    # One is down: two live copies of what is new as of what was, and nobody says more.
    third.kill()
    live = [first, second]
    fill(first, tmp_path / "b.warc", "b")
    wait_for(lambda: check(live)[0][1] == 2 * COUNT, lambda: str(said(live)))
    sums, true, whole_count = check(live)
    assert sums == true == [2 * COUNT, 2 * COUNT, 0] and whole_count == 0
    late = waits(first, 1)
    assert late.returncode == 1 and "with a node away" in late.stderr and "not all captures" in late.stderr, late
    for each in live:
        check_texts(each)

    # It returns, and something waits for that. Then its node is gone while it waits.
    waiting = subprocess.Popen([first.program, "ring", "wait", "--whole", "--timeout", "100s", "--data", first.directory],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    third.start()
    out, err = waiting.communicate(timeout=110)
    assert waiting.returncode == 0 and "whole" in out, err
    sums, true, _ = check(ring)
    assert true == [2 * COUNT] * COPIES
    for each in ring:
        assert waits(each, 60).returncode == 0
    assert check(ring)[0] == [2 * COUNT] * COPIES


def test_a_full_node_is_no_copy_and_waiting_ends_with_its_node(nodes, tmp_path, disk):  # noqa: F811
    first, second, full = nodes[:3]
    space = disk(full.directory)
    found(first, "--open", "--replicas", str(COPIES))
    first.start()
    second.start("--join", first.place)
    space.leave(TIGHT // 2)
    full.start("--join", first.place)
    await_agreement([first, second, full])
    fill(first, tmp_path / "c.warc", "c")
    wait_for(lambda: keeping(full)["full"], lambda: str(keeping(full)))
    wait_for(lambda: check(nodes[:3])[1][1] == COUNT, lambda: str(truth(nodes[:3])))
    true = check(nodes[:3])[1]
    assert true == [COUNT, COUNT, 0]
    waiting = subprocess.Popen([first.program, "ring", "wait", "--whole", "--timeout", "100s", "--data", first.directory],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "not yet" in waiting.stderr.readline()
    check_texts(first)
    first.kill()
    assert waiting.wait(timeout=60) == 1
    gone = waits(first, 1)
    assert gone.returncode == 1 and "no node runs" in gone.stderr, gone
