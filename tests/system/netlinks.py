"""Sites with lines between them: network namespaces, with wires.c in the middle, which delays, slows down, cuts and counts. And
nodes there that are in groups and keep collections. Needs root, iproute2 and /dev/net/tun; skips where one is missing."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import urllib.request

import pytest

import ringnodes
from mirrornodes import Replica

PORT = 7070  # every site has all ports for itself
CLONE_NEWNET = 0x40000000
MB = 1_000_000


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)


@contextlib.contextmanager
def inside(namespace):
    """What this thread opens meanwhile is in that network."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path):
        with open(path) as file:
            assert libc.setns(file.fileno(), CLONE_NEWNET) == 0, (path, os.strerror(ctypes.get_errno()))

    with open("/proc/thread-self/ns/net") as home:
        enter(f"/var/run/netns/{namespace}")
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), CLONE_NEWNET) == 0


class Wires:
    """Delays are in milliseconds one way, rates in bytes a second."""

    def __init__(self, program, count):
        self.names = [f"mw{os.getpid()}-{i}" for i in range(count)]
        self.program = program
        self.process = None

    def begin(self):
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        self.process = subprocess.Popen([self.program, *self.names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ok\n"
        for i, name in enumerate(self.names):
            ip("-n", name, "address", "add", f"{self.address(i)}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(timeout=30)
        removals = [subprocess.Popen(["ip", "netns", "del", name], stderr=subprocess.DEVNULL) for name in self.names]
        for removal in removals:  # at once: the kernel takes a while for each
            removal.wait()

    @staticmethod
    def address(index):
        return f"10.78.0.{index + 1}"

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def do(self, *words):
        assert self.ask(*words) == "ok\n", words

    def shape(self, index, delay_ms, up, down):
        self.do("site", index, int(delay_ms * 1000), int(up), int(down))

    def slow_pair(self, a, b, delay_ms):
        self.do("pair", a, b, int(delay_ms * 1000))

    def cut(self, index):
        self.do("cut", index)

    def join(self, index):
        self.do("join", index)

    def counts(self):
        """[from][to]: bytes that arrived so far."""
        numbers = [int(n) for n in self.ask("count").split()]
        count = len(self.names)
        return [numbers[i * count:(i + 1) * count] for i in range(count)]


class Counts:
    """What went over the lines from when it was made until end()."""

    def __init__(self, wires):
        self.wires = wires
        self.before = wires.counts()
        self.end()

    def end(self):
        after = self.wires.counts()
        self.moved = [[a - b for a, b in zip(*rows)] for rows in zip(after, self.before)]
        return self

    def received(self, index):
        return sum(row[index] for row in self.moved)

    def sent(self, index):
        return sum(self.moved[index])


class Site(ringnodes.Node):
    """A node with a network of its own, in groups and in no ring."""

    def __init__(self, mnemon, directory, wires, index):
        super().__init__(mnemon, directory, wires.address(index), wires.names[index])
        self.index = index
        self.port = PORT

    def run(self, *arguments):
        return self.mnemon(*arguments, "--data", self.directory)  # by its files, so from anywhere

    def ready(self):
        lines = [self.process.stdout.readline() for _ in range(2)]
        self.url = lines[0].split()[-1]
        assert self.url.startswith("http"), "".join(lines) + self.said
        return self

    def get(self, path):
        with inside(self.namespace), urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def status(self):
        return json.loads(self.get("/api/v1/ring"))

    def group(self, *arguments):
        done = self.run("group", *arguments)
        assert done.returncode == 0, done.stderr

    def seen(self, name):
        """What it knows of the group; {}: nothing."""
        found = json.loads(self.get("/api/v1/groups"))["groups"]
        return next((g for g in found if g["name"] == name), {})


def edges(seen):
    """Pairs of addresses."""
    members = [m["address"] for m in seen.get("members", [])]
    return {frozenset((members[e["a"]], members[e["b"]])) for e in seen.get("edges", [])}


def programs():
    """mnemon as a function, as the fixture of that name; and wires."""
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    program = os.environ.get("MNEMON", str(root / "build" / "mnemon"))

    def mnemon(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=150)

    return mnemon, pathlib.Path(program).parent / "tests" / "system" / "wires"


@contextlib.contextmanager
def replicas(directory, count, settings):
    """Wires, and as many replicas at them that are not started yet; what runs is ended with the block."""
    mnemon, wires_program = programs()
    if os.geteuid() != 0 or shutil.which("ip") is None or not os.path.exists("/dev/net/tun"):
        pytest.skip("networks of their own need root, iproute2 and /dev/net/tun")
    if not wires_program.exists():
        pytest.skip(f"{wires_program} is not built")
    wires = Wires(wires_program, count)
    made = []
    try:
        try:
            wires.begin()
        except AssertionError as error:
            pytest.skip(f"no network namespaces here: {error}")
        for i in range(count):
            made.append(Replica(Site(mnemon, directory / f"node{i}", wires, i)))
            made[i].settings = settings
        yield wires, made
    finally:
        ringnodes.end([each.node for each in made])
        wires.end()
