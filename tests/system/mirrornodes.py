"""Real nodes with collections, and directories to publish. Neighbours are named by people: no groups are needed."""
import contextlib
import hashlib
import json
import os
import random
import re
import stat

import ringnodes
from ringnodes import wait_for

NAME = "papers"


def fill(directory, seed=1, large=10_000_000, small=200):
    """A tree with what trees have: a large file, small ones, an empty one, links, modes, times."""
    rng = random.Random(seed)
    directory.mkdir(parents=True)
    (directory / "large.bin").write_bytes(rng.randbytes(large))
    for i in range(small):
        path = directory / f"d{i % 7}" / f"e{i % 3}" / f"file {i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.randrange(1, 3000)))
    (directory / "empty").touch()
    (directory / "d1" / "link").symlink_to("../large.bin")
    (directory / "d2" / "run").write_text("#!/bin/sh\n")
    (directory / "d2" / "run").chmod(0o755)
    (directory / "d3" / "old").write_text("old")
    os.utime(directory / "d3" / "old", ns=(0, 86_400_123_456_000))  # a day after 1970, in UTC
    (directory / "d4").chmod(0o750)


def tree(directory):
    """All that a reader can see of it: kind, mode, time in microseconds, content of each path."""
    found = {}
    for path in sorted(directory.rglob("*")):
        at = path.lstat()
        if stat.S_ISLNK(at.st_mode):
            what = ("link", os.readlink(path))
        elif stat.S_ISDIR(at.st_mode):
            what = ("directory", stat.S_IMODE(at.st_mode))
        else:
            what = ("file", stat.S_IMODE(at.st_mode), hashlib.sha256(path.read_bytes()).hexdigest())
        found[str(path.relative_to(directory))] = (*what, at.st_mtime_ns // 1000)
    return found


class Replica:
    """A node, and its collections."""

    def __init__(self, node):
        self.node = node
        self.settings = ""

    def configure(self, upload=None):
        self.node.directory.mkdir(parents=True, exist_ok=True)
        ring = f"[ring]\nupload = {upload}\n" if upload else ""
        (self.node.directory / "mnemon.conf").write_text(
            f"{ring}[mirror]\ngather = 100 ms\nperiod = 1 s\n[crowd]\nenabled = no\n{self.settings}")
        return self

    def start(self, *options, upload=None):
        self.configure(upload)
        self.node.start(*options)
        return self

    def do(self, *arguments):
        done = self.node.run("mirror", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def publish(self, directory, *options):
        said = self.do("publish", NAME, str(directory), *options)
        return said.split("subscribe ")[1].strip()

    @property
    def root(self):
        return self.node.directory / "collections" / NAME

    @property
    def current(self):
        return self.root / "current"

    def state(self):
        found = json.loads(self.node.get("/api/v1/mirrors"))["mirrors"]
        return next((m for m in found if m["name"] == NAME), {})

    def number(self):
        return (self.state().get("held") or {}).get("number", 0)

    def fetched(self):
        return self.state().get("fetched_size", 0)

    def await_version(self, number):
        wait_for(lambda: self.number() >= number, lambda: f"{self.state()}\n{self.node.said}")

    def complaints(self):
        return json.dumps(self.node.status().get("complaints", []))


@contextlib.contextmanager
def many(mnemon, tmp_path):
    """new(3) starts nodes in one open ring; where each gets its collections from, it is told."""
    with ringnodes.many(mnemon, tmp_path) as make:
        made = []

        def new(count, uploads=(), programs=()):
            for i in range(count):
                replica = Replica(make(len(made) + 2))
                replica.node.program = programs[i] if i < len(programs) and programs[i] else replica.node.program
                upload = uploads[i] if i < len(uploads) else None
                if not made:
                    ringnodes.found(replica.node, "--open")
                    replica.start(upload=upload)
                else:
                    replica.start("--join", made[0].node.place, upload=upload)
                made.append(replica)
            return made

        yield new


class Neighbour(ringnodes.Node):
    """A node in no ring and no group, with a collection that is for others or comes from them."""

    def ready(self):
        lines = [self.process.stdout.readline() for _ in range(3)]
        match = re.search(r"exchanges collections at [0-9.]+:(\d+);", lines[2])
        assert match, "".join(lines) + self.said
        self.port = int(match.group(1))
        self.url = lines[0].split()[-1]
        return self

    @property
    def key(self):
        return re.search(r"^key (\S+)$", (self.directory / "identity").read_text(), re.M).group(1).lower()


@contextlib.contextmanager
def neighbours(mnemon, tmp_path):
    """new(3) makes nodes that are in nothing together; none is started."""
    made = []

    def new(count):
        for _ in range(count):
            number = len(made) + 2
            made.append(Replica(Neighbour(mnemon, tmp_path / f"node{number}", f"127.0.19.{number}")))
        return made

    try:
        yield new
    finally:
        ringnodes.end([each.node for each in made])
