"""A node among members that say everything wrongly: it lives, stays small, and serves the others on.

One member is a whole node whose answers and datagrams are changed by lot (fuzzmember.c). Another speaks every message
between nodes itself, burst by burst, each from a seed of its own (peerfuzz.c). Both are invited: what they say gets past
the gate. For the night, `make fuzz-peers FUZZ_SECONDS=3600`; a burst that fails is named with its seed, and
`PEER_FUZZ_SEED=N` begins with that one.
"""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from ringnodes import found, many, program, wait_for

SECONDS = float(os.environ.get("PEER_FUZZ_SECONDS", "2"))
SEED = int(os.environ.get("PEER_FUZZ_SEED", "1"))
IS_LONG = SECONDS > 20
COUNT = 1500 if IS_LONG else 600  # datagrams of a burst
GROWTH_KIB_MAX = (512 if os.environ.get("MNEMON_SANITIZED") else 96) << 10
DESCRIPTORS_MAX = 400
NET = "127.0.17"  # of its own: the fuzzer takes the place of a node that was stopped, which nobody else must take
PAGES = 12
BODY = "<title>page {0}</title><p>this is page {0}, and nobody may change it</p>" + "words " * 400


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


@pytest.fixture
def fuzzers(mnemon):
    directory = pathlib.Path(program(mnemon)).parent / "tests" / "system"
    if not (directory / "peerfuzz").exists():
        pytest.skip(f"no {directory}/peerfuzz: built with -Dtests=enabled")
    return directory


def write_warc(path):
    with path.open("wb") as out:
        for number in range(PAGES):
            body = BODY.format(number).encode()
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            head = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
                    f"WARC-Date: 2024-03-05T10:00:{number:02}Z\r\nWARC-Target-URI: http://example.org/{number}\r\n"
                    f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n")
            out.write(head.encode() + http + b"\r\n\r\n")


def memory_kib(node):
    status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def descriptors(node):
    return len(os.listdir(f"/proc/{node.process.pid}/fd"))


def invite(founder):
    return founder.run("ring", "invite").stdout.splitlines()[0]


def page(node, number):
    return node.get(f"/web/20240305100000id_/http://example.org/{number}")


def configure(node):
    node.directory.mkdir(exist_ok=True)
    (node.directory / "mnemon.conf").write_text(
        "[ring]\ncompare = 1 s\n[crowd]\nshuffle = 1 s\n[group]\nperiod = 2 s\nsilence = 1 h\n[mirror]\ngather = 100 ms\nperiod = 1 s\n")


class Fight:
    """The node, an honest member, a member that lies by lot, and the one whose place the fuzzer takes."""

    def __init__(self, make, fuzzers, tmp_path):
        self.fuzzer = fuzzers / "peerfuzz"
        self.node, self.honest, self.liar, self.false = (make(number, f"{NET}.{number}") for number in (2, 3, 4, 5))
        self.tallies = {}
        self.bursts = 0
        members = (self.node, self.honest, self.liar, self.false)
        for each in members:
            configure(each)
        write_warc(tmp_path / "pages.warc")
        (tmp_path / "papers").mkdir()
        (tmp_path / "papers" / "paper.txt").write_text("a paper " * 5000)
        self.do(self.node, "import", "--quiet", str(tmp_path / "pages.warc"))
        found(self.node)
        self.node.start()
        self.liar.program = str(fuzzers / "mnemon-fuzz-member")
        os.environ["PEER_FUZZ_SEED"] = str(SEED)
        for each in members[1:]:
            each.launch("--join", self.node.place, "--token", invite(self.node))
        for each in members[1:]:
            each.ready()
        self.do(self.node, "group", "create", "lib", "--open")
        self.do(self.node, "mirror", "publish", "papers", str(tmp_path / "papers"))
        if IS_LONG:
            self.join_more(tmp_path)
        places = {each.place for each in members[1:]}
        wait_for(lambda: places <= self.node.neighbours(), lambda: str(self.node.status()))
        if IS_LONG:
            wait_for(lambda: len(self.group()["members"]) >= 3, lambda: str(self.group()))
        self.place = self.false.place
        self.false.stop()

    def join_more(self, tmp_path):
        """A group, and a collection that the node gets from the liar alone."""
        for each in (self.liar, self.false):
            self.do(each, "group", "join", f"lib@{self.node.place}")
        said = self.liar.run("mirror", "publish", "lies", str(tmp_path / "papers")).stdout
        self.do(self.node, "mirror", "subscribe", said.split("subscribe ")[1].strip(), "--from", self.liar.place)

    def do(self, node, *arguments):
        done = node.run(*arguments)
        assert done.returncode == 0, done.stderr

    def group(self):
        return json.loads(self.node.get("/api/v1/groups?group=lib"))["groups"][0]

    def burst(self, seed):
        done = subprocess.run([self.fuzzer, self.false.directory, self.place, self.node.place, "lib", "papers", str(seed),
                               str(COUNT)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["unanswered"] == 0, told
        assert told["captures"] == PAGES and told["collection"], told
        for name, counts in told.items():
            if isinstance(counts, list):
                self.tallies[name] = [a + b for a, b in zip(self.tallies.get(name, [0, 0, 0]), counts)]
        self.bursts += 1

    def check(self, before_kib):
        assert self.node.process.poll() is None
        assert self.honest.process.poll() is None, self.honest.said[-20000:]
        number = self.bursts % PAGES
        assert "ok" in self.node.get("/health")
        assert page(self.node, number) == BODY.format(number)
        for each in (self.node, self.honest):  # the liar answers falsely, and is one of many
            found = json.loads(each.get("/api/v1/search?limit=100&q=page"))
            assert all(result["url"].startswith("http") for result in found["results"]), found
        # The honest one has the page of nobody but the node, or a copy of it.
        wait_for(lambda: self.is_served(number), f"the honest member is not served page {number}")
        assert memory_kib(self.node) - before_kib < GROWTH_KIB_MAX, f"{before_kib} KiB grew to {memory_kib(self.node)}"
        assert descriptors(self.node) < DESCRIPTORS_MAX, f"{descriptors(self.node)} descriptors"

    def is_served(self, number):
        try:
            return page(self.honest, number) == BODY.format(number)
        except OSError:
            return False


def test_members_that_say_everything_wrongly(node, fuzzers, tmp_path):
    fight = Fight(node, fuzzers, tmp_path)
    before_kib = 1 << 40
    before = fight.node.status()
    end = time.monotonic() + SECONDS
    seed = SEED
    while time.monotonic() < end or fight.bursts < 2:
        try:
            fight.burst(seed)
            fight.check(before_kib)
        except AssertionError as error:
            again = f"PEER_FUZZ_SEED={seed} PEER_FUZZ_SECONDS={SECONDS}"
            raise AssertionError(f"{again} begins with this burst: {error}\n{fight.node.said[-20000:]}") from error
        seed += 1
        before_kib = min(before_kib, memory_kib(fight.node))  # behind the first: what is asked for once is there then
    report(fight, before)
    check_depth(fight.tallies)
    # The decoders of the node have seen what those of the fuzzer counted.
    after = fight.node.status()
    assert after["counters"]["malformed"] > before["counters"]["malformed"]
    assert after["counters"]["received"] - before["counters"]["received"] > 0
    for each in (fight.node, fight.honest):
        each.stop()
        assert each.run("store", "verify").returncode == 0


def check_depth(tallies):
    """What is said gets through to the decoders, and through them: every kind in a long run, each family in a short one."""
    sums = {}
    for name, counts in tallies.items():
        group = name if IS_LONG else name.split(".")[0]
        sums[group] = [a + b for a, b in zip(sums.get(group, (0, 0, 0)), counts)]
    for name, (sent, taken, refused) in sums.items():
        is_served = name not in ("rpc.ping", "rpc.none") and not name.startswith("datagram")
        assert sent > 0 and (taken > 0 or not is_served), f"{name}: {sent} sent, {taken} taken, {refused} refused"


def report(fight, before):
    after = fight.node.status()
    print(f"\n{fight.bursts} bursts, seeds {SEED} to {SEED + fight.bursts - 1};",
          f"memory {memory_kib(fight.node) >> 10} MiB, {descriptors(fight.node)} descriptors;",
          f"the ring received {after['counters']['received'] - before['counters']['received']}",
          f"and called {after['counters']['malformed'] - before['counters']['malformed']} malformed")
    for name, (sent, taken, refused) in fight.tallies.items():
        print(f"{name:24}{sent:10} sent{taken:10} taken{refused:10} refused")
