"""One archive on the ring, cut in two and joined again: both halves go on, and what each of them archived is kept."""
import contextlib
import ctypes
import os
import shutil
import subprocess

import pytest

from ringnodes import await_agreement, await_same_owners, found, wait_for
from test_together import SERVE, Origin, held, listed, node, read  # noqa: F401 (a fixture by its name)

PAGES = 8
CLONE_NEWNET = 0x40000000
LEFT, RIGHT = "127.0.5", "127.0.6"
# Places on the ring follow from addresses; these lie so that first all of one half come and then all of the other. What one half
# archives in the first arc of the other has all its holders there, none of which can know who has it.
LEFT_NODES, RIGHT_NODES = (14, 35, 50), (23, 35, 42)


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)


def enter(path):
    """The thread that calls it, and what that starts, are in this network namespace from now on."""
    with open(path) as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns: {path}")


class Network:
    """Loopback addresses for this test alone; what goes from one half to the other can be dropped."""

    def __init__(self, name):
        self.name = name

    def prepare(self):
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "rule", "add", "pref", "100", "lookup", "local")
        ip("-n", self.name, "rule", "del", "pref", "0")  # so that others come before it

    def rule(self, verb):
        for source, target in ((LEFT, RIGHT), (RIGHT, LEFT)):
            ip("-n", self.name, "rule", verb, "pref", "10", "from", f"{source}.0/24", "to", f"{target}.0/24", "blackhole")

    def cut(self):
        self.rule("add")

    def heal(self):
        self.rule("del")


@pytest.fixture
def network():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    name = f"mncut{os.getpid()}"
    with contextlib.ExitStack() as after:
        try:
            ip("netns", "add", name)
            after.callback(ip, "netns", "del", name)
            made = Network(name)
            made.prepare()
            enter(f"/run/netns/{name}")
            after.callback(enter, f"/proc/{os.getpid()}/ns/net")
        except (AssertionError, OSError) as error:
            pytest.skip(f"no network namespaces here: {error}")
        yield made


class Changing(Origin):
    """Three hosts: one for each half, and one that both ask, whose pages are never the same twice."""

    def answer(self, host, path):
        status, kind, body = super().answer(host, path)
        if host == self.names[2] and kind == "text/html":
            body += b" for the %dth time" % len(self.asked)
        return status, kind, body

    def of(self, host):
        return {url for url in self.urls() if f"//{self.names[host]}/" in url}


@pytest.fixture
def origin(network):
    made = Changing(3, PAGES)
    yield made
    made.close()


def holdings(nodes):
    return {each: held(each) for each in nodes}


def captures_of(nodes):
    return set().union(*holdings(nodes).values())


def few(nodes, captures, level):
    """Those of the captures that too few have."""
    having = holdings(nodes)
    return {c for c in captures if sum(c in kept for kept in having.values()) < level}


def misplaced(nodes, captures, owners):
    """Those that one of their own holders lacks."""
    having = {each.place: kept for each, kept in holdings(nodes).items()}
    return {c for c in captures if not all(c in having[place] for place in owners[c[0]])}


def archive(nodes, origin, hosts):
    for host in hosts:
        added = nodes[1].run("job", "add", "--ring", f"http://{origin.names[host]}/", "--scope", "host", "--delay", "0")
        assert added.returncode == 0, added.stderr
    wanted = set().union(*(origin.of(host) for host in hosts))

    def missing():
        seen = captures_of(nodes)
        return (wanted - {url for url, *_ in seen}) | few(nodes, seen, 3)

    return wanted, missing


def test_both_halves_go_on_and_become_one_archive_again(node, network, origin):
    left = [node(number, f"{LEFT}.{number}") for number in LEFT_NODES]
    right = [node(100 + number, f"{RIGHT}.{number}") for number in RIGHT_NODES]
    nodes = [*left, *right]
    found(left[0], "--open", "--replicas", "3")
    left[0].start(*SERVE)
    for each in nodes[1:]:
        each.launch("--join", left[0].place, *SERVE)
    for each in nodes[1:]:
        each.ready()
    await_agreement(nodes)

    network.cut()
    await_agreement(left)
    await_agreement(right)
    halves = [(half, *archive(half, origin, hosts)) for half, hosts in ((left, (0, 2)), (right, (1, 2)))]
    for half, wanted, missing in halves:
        wait_for(lambda: not missing(), lambda: f"{len(missing())} are missing: {list(missing())[:5]}", 120)
    of_left, of_right = captures_of(left), captures_of(right)
    assert not {c for c in of_left | of_right if origin.names[2] in c[0] and "/p" in c[0] and c in of_left and c in of_right}

    network.heal()
    await_agreement(nodes, 120)
    everything = of_left | of_right
    urls = sorted({url for url, *_ in everything})
    await_same_owners(nodes, urls)
    owners = {url: left[0].owner(url, 3) for url in urls}
    halves = [{each.place for each in half} for half in (left, right)]
    assert any(set(owners[url]) in halves for url, *_ in everything), "some belong to one half alone"

    def lacking():
        return misplaced(nodes, everything, owners)

    wait_for(lambda: not lacking(), lambda: f"not with their holders: {list(lacking())[:5]}", 120)

    # All of it is read through all of them, as soon as the holders have been compared; of what both archived, both versions.
    both = f"http://{origin.names[2]}/p3.html"
    assert len({digest for url, _, digest in everything if url == both}) == 2
    for each in nodes:
        for url in sorted(origin.of(0) | origin.of(1))[::5]:
            wait_for(lambda each=each, url=url: isinstance(read(each, url), bytes), f"{url} through {each.place}", 120)
        wait_for(lambda each=each: listed(each, both).count(both) == 2, lambda each=each: f"{each.place} lists {listed(each, both)}", 120)
