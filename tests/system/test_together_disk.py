"""A node of a ring whose disk fills up: it says so, serves on, others take its part; with room again it gets what is its own."""
import base64
import os
import random
import shutil
import subprocess
import urllib.parse

import pytest

from ringnodes import await_agreement, found, wait_for
from test_together import SERVE, Origin, copies, crawl, held, node, read  # noqa: F401 (a fixture by its name)

MIB = 1 << 20
TIGHT = 256 * MIB  # less than that free, and a node takes no copies
PATIENCE_S = 120
RULES = "[ring]\ngrace = 12 s\ncompare = 3 s\n"


class Disk:
    """A file system in memory, as large as one says."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.mount("mount", "-t", "tmpfs", "-o", f"size={4096 * MIB}", "none", path)

    def mount(self, *command):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def leave(self, free):
        """From now on so much is free."""
        space = os.statvfs(self.path)
        used = (space.f_blocks - space.f_bfree) * space.f_frsize
        self.mount("mount", "-o", f"remount,size={used + free}", self.path)

    def close(self):
        self.mount("umount", "-l", self.path)


@pytest.fixture
def disk():
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small file system needs root and mount")
    made = []

    def make(path):
        try:
            made.append(Disk(path))
        except AssertionError as error:
            pytest.skip(f"nothing can be mounted here: {error}")
        return made[-1]

    yield make
    for each in made:
        each.close()


class Heavy(Origin):
    """Pages of some size, which do not pack well."""

    def answer(self, host, path):
        status, kind, body = super().answer(host, path)
        if kind == "text/html":
            body += b"<!-- " + base64.b64encode(random.Random(host + path).randbytes(60_000)) + b" -->"
        return status, kind, body


@pytest.fixture
def web():
    made = [Heavy(1, 60), Heavy(1, 20)]
    yield made
    for origin in made:
        origin.close()


def keeping(each):
    return each.status()["together"]["keeping"]


def await_level(nodes, origin, level):
    def low():
        return {url: count for url, count in copies(nodes, origin).items() if count < level}

    wait_for(lambda: not low(), lambda: f"{len(low())} with too few copies: {list(low().items())[:3]}", PATIENCE_S)


def assert_readable(each, origin, step):
    for url in sorted(origin.urls())[::step]:
        parts = urllib.parse.urlsplit(url)
        assert read(each, url) == origin.answer(parts.netloc, parts.path)[2], (each.place, url)


def lacks(small, nodes):
    """What the small node should hold, as the ring says, and does not."""
    own = held(small)
    others = set().union(*(held(each) for each in nodes)) - own
    return {capture for capture in others if small.place in (small.owner(capture[0], 3) or ())}


def test_a_full_node_says_so_and_serves_on_and_gets_its_part_when_there_is_room(disk, node, web):
    first, second = web
    nodes = [node(number) for number in range(2, 7)]
    small = nodes[2]
    space = disk(small.directory)
    for each in nodes:
        each.directory.mkdir(exist_ok=True)
        (each.directory / "mnemon.conf").write_text(RULES)
    found(nodes[0], "--open", "--replicas", "3")
    nodes[0].start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", nodes[0].place, *SERVE)
    await_agreement(nodes)

    # It fills up in the middle of a crawl, as far as copies of others go.
    space.leave(TIGHT + MIB)
    crawl(nodes, first, "--delay", "0")
    wait_for(lambda: keeping(small)["full"], lambda: str(keeping(small)), PATIENCE_S)
    kept = held(small)
    assert "the disk here is full" in small.run("ring", "status").stdout
    assert "the disk here is full" in small.get("/dashboard")
    await_level(nodes, first, 3)
    assert lacks(small, nodes), "others have taken its part"
    assert kept <= held(small), "what it had is there"
    assert_readable(small, first, 13)

    # Now there is no room at all, not even for what it fetches itself. The others go on.
    space.leave(0)
    crawl(nodes, second, "--delay", "0")
    wait_for(lambda: "no space left" in small.said, lambda: small.said, PATIENCE_S)
    assert_readable(small, first, 29)
    kept = held(small)

    # Room again: it goes on by itself, and ends with all that is its own.
    space.leave(4096 * MIB)
    await_level(nodes, second, 3)
    wait_for(lambda: not keeping(small)["full"], lambda: str(keeping(small)), PATIENCE_S)
    wait_for(lambda: not lacks(small, nodes), lambda: f"it lacks {list(lacks(small, nodes))[:3]}", PATIENCE_S)
    assert kept <= held(small)
    for each in nodes:
        for url in sorted(first.urls())[::31] + sorted(second.urls())[::11]:
            wait_for(lambda each=each, url=url: isinstance(read(each, url), bytes), f"{url} through {each.place}", PATIENCE_S)
