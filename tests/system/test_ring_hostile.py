"""What no good node sends, to the real sockets of real nodes: dropped, counted, blamed; bounded; the others are served on."""
import pathlib
import re
import subprocess

import pytest

from ringnodes import await_agreement, found, many, program, wait_for

GROWTH_KIB_MAX = 64 << 10


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


@pytest.fixture
def stranger(mnemon):
    path = pathlib.Path(program(mnemon)).parent / "tests" / "system" / "stranger"
    if not path.exists():
        pytest.skip(f"no {path}: built with -Dtests=enabled")

    def send(node, what, count):
        done = subprocess.run([path, node.place, what, str(count)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return send


def memory_kib(node):
    status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def pair(node, *options):
    a, b = node(2), node(3)
    found(a, "--open", *options)
    a.start()
    b.start("--join", a.place)
    await_agreement([a, b])
    return a, b


def complaints(node):
    return "\n".join(c["text"] for c in node.status()["complaints"])


def settle(node):
    """All that was sent has been read: the counter stands still, but for the talk of two nodes."""
    def count():
        return node.status()["datagrams"]["received"]

    last = [-100]

    def is_quiet():
        before, last[0] = last[0], count()
        return last[0] - before < 50

    wait_for(is_quiet, "the node reads on", patience_s=60)


CASES = [  # what is sent; what counts it; what the node says of who sent it
    ("noise", ("datagrams.malformed", "datagrams.short", "datagrams.forged"), "is blamed: it sends what"),
    ("truncated", ("datagrams.short", "datagrams.forged"), "is blamed: it sends what"),
    ("forged", ("datagrams.forged",), "was not sealed by whom it names"),
    ("replayed", ("datagrams.replayed",), None),  # the network does that, too
    ("versions", ("datagrams.other_version",), "it speaks version"),
    ("strangers", ("datagrams.strange",), "is blamed: it sends more than it may"),
    ("flood", ("counters.malformed",), "is blamed: it sends what is no message of the ring"),
    ("greetings", ("members.malformed",), "is blamed: it sends what is no greeting"),
    ("large", ("datagrams.malformed",), "is blamed: it sends what is no datagram"),
]


def counted(node, path):
    part, name = path.split(".")
    return node.status()[part][name]


def test_what_no_node_sends_is_dropped_counted_and_blamed(node, stranger):
    a, b = pair(node)
    for what, counters, blame in CASES:
        before = {path: counted(a, path) for path in counters}

        def is_seen():
            stranger(a, what, 2000)  # what is told to people is told once a second
            settle(a)
            is_blamed = blame is None or re.search("127.0.0.1.*" + blame, complaints(a))
            return is_blamed and all(counted(a, path) > before[path] for path in counters)

        wait_for(is_seen, lambda: f"{what}: {a.status()}")
        assert blame is None or re.search("127.0.0.1.*" + blame, a.run("ring", "status").stdout)
    assert re.search(r"^dropped .*\d", a.run("ring", "status").stdout, re.MULTILINE)
    await_agreement([a, b])
    assert a.owner("http://example.org/") == b.owner("http://example.org/")
    assert a.neighbours() == {b.place}


def test_floods_are_bounded_and_the_others_are_served_on(node, stranger):
    a, b = pair(node)
    stranger(a, "noise", 1000)
    settle(a)
    before_kib = memory_kib(a)
    path = pathlib.Path(program(a.mnemon)).parent / "tests" / "system" / "stranger"
    senders = [subprocess.Popen([path, a.place, what, count], stdout=subprocess.DEVNULL)
               for what, count in (("flood", "100000"), ("strangers", "2000"), ("large", "5000"), ("greetings", "30000"))]
    answered = 0
    while any(s.poll() is None for s in senders):
        answered += b.owner("http://example.org/") is not None and a.owner("http://example.net/") is not None
    assert all(s.returncode == 0 for s in senders)
    assert answered > 0
    settle(a)
    await_agreement([a, b])
    assert memory_kib(a) - before_kib < GROWTH_KIB_MAX
    assert len(a.status()["complaints"]) <= 32
    assert len(a.said) < 100_000, "a flood fills the log"


def test_by_invitation_garbage_of_strangers_does_not_reach_the_ring(node, stranger):
    a = node(2)
    found(a)
    a.start()
    wait_for(lambda: a.status()["state"] == "member", "founded")
    before = a.status()["counters"]
    stranger(a, "flood", 2000)
    wait_for(lambda: a.status()["members"]["turned_away"] > 0, "turned away")
    assert a.status()["counters"]["received"] == before["received"]
