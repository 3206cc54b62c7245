"""A ring of the release before, upgraded node by node while it crawls and is read from."""

import os
import random
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from releases import previous_program
from ringnodes import Node, await_agreement, await_same_owners, end, found, program, wait_for
from test_together import Origin, await_copies, copies, crawl

# At another size, as "8 nodes, 300 pages a host": MNEMON_UPGRADE=8,300 (make test-upgrade)
NODES, PAGES = (int(part) for part in os.environ.get("MNEMON_UPGRADE", "4,60").split(","))
REPLICAS = 3
READERS = 3
PACE_S = 0.01  # between two pages of a reader
SETTINGS = "[ring]\ncompare = 1 s\n"


class Installed(Node):
    """A node that runs, and is asked by, the program that is installed at its place."""

    def install(self, path):
        self.program = path
        return self

    def run(self, *arguments):
        is_now = self.program == program(self.mnemon)
        known = [word for word in arguments if is_now or word != "--local"]  # once the only way
        return subprocess.run([self.program, *known, "--data", self.directory], capture_output=True, text=True, timeout=150)

    def start(self, *options, wrap=()):
        is_now = self.program == program(self.mnemon)
        return super().start("--allow-private", *(("--allow-private-ring",) if is_now else ()), *options, wrap=wrap)


@pytest.fixture
def node(mnemon, tmp_path):
    made = []

    def make(number):
        made.append(Installed(mnemon, tmp_path / f"node{number}", f"127.0.0.{number}"))
        return made[-1]

    yield make
    end(made)


@pytest.fixture
def web():
    made = [Origin(1, PAGES), Origin(1, PAGES)]
    yield made
    for origin in made:
        origin.close()


class Readers:
    """Readers who open pages that are in the archive, through any node that runs, one after the other."""

    def __init__(self, nodes, urls):
        self.nodes = list(nodes)
        self.urls = sorted(urls)
        self.random = random.Random(1)
        self.lock = threading.Lock()
        self.reading = {each: 0 for each in nodes}
        self.read_count = 0
        self.failed = []
        self.is_over = False
        self.threads = [threading.Thread(target=self.run) for _ in range(READERS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.is_over:
            with self.lock:
                each = self.random.choice(self.nodes)
                url = self.random.choice(self.urls)
                self.reading[each] += 1
            try:
                page = each.get(f"/web/2id_/{url}")
                wrong = None if "words" in page else page[:200]
            except (urllib.error.URLError, OSError) as error:
                wrong = str(error)
            time.sleep(PACE_S)
            with self.lock:
                self.reading[each] -= 1
                self.read_count += 1
                if wrong:
                    self.failed.append((each.place, url, wrong))

    def leave(self, each):
        """Nobody reads through it any more."""
        with self.lock:
            self.nodes.remove(each)
        wait_for(lambda: self.reading[each] == 0)

    def come_back(self, each):
        with self.lock:
            self.nodes.append(each)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def blames(nodes):
    """What any of them holds against another, on its screen or in its log, of any time."""
    words = ("blamed", "false", "refuse")
    return [line for each in nodes for line in each.said.splitlines() if any(word in line for word in words)]


def levels(nodes, origin):
    return {url: count for url, count in copies(nodes, origin).items() if count < REPLICAS}


def test_a_ring_is_upgraded_node_by_node_while_it_crawls_and_is_read_from(node, web, mnemon):
    previous, now = previous_program(), program(mnemon)
    nodes = [node(2 + number).install(previous) for number in range(NODES)]
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(SETTINGS)
    found(nodes[0], "--open", "--replicas", str(REPLICAS))
    nodes[0].start()
    for each in nodes[1:]:
        each.start("--join", nodes[0].place)
    await_agreement(nodes)
    stored, growing = web
    crawl(nodes, stored, "--delay", "0")
    await_copies(nodes, stored, REPLICAS)
    readers = Readers(nodes, stored.urls())
    try:
        crawl(nodes, growing, "--delay", "100 ms")
        for each in nodes:
            readers.leave(each)
            each.stop()
            each.install(now).start()
            await_agreement(nodes)
            readers.come_back(each)
            await_copies(nodes, stored, REPLICAS)
        await_copies(nodes, growing, REPLICAS)
    finally:
        readers.end()
    assert readers.failed == [] and readers.read_count > 10 * NODES, (readers.read_count, readers.failed[:5])
    assert levels(nodes, stored) == {} and levels(nodes, growing) == {}
    assert blames(nodes) == []
    for each in nodes:
        assert not each.status()["complaints"]
        wait_for(lambda: all(n.get("protocol_spoken") == 2 for n in each.status()["nodes"]),
                 lambda: str(each.status()["nodes"]))
    print(f"{NODES} nodes, {readers.read_count} reads")


def test_nodes_of_both_releases_crawl_together_and_agree_who_has_what(node, web, mnemon):
    previous, now = previous_program(), program(mnemon)
    nodes = [node(2 + number).install(previous if number in (1, 2) else now) for number in range(5)]
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(SETTINGS)
    found(nodes[0], "--open", "--replicas", str(REPLICAS))
    nodes[0].start()
    for each in nodes[1:]:
        each.start("--join", nodes[0].place)

    await_agreement(nodes)
    stored, _ = web
    await_same_owners(nodes, sorted(stored.urls())[:20])
    crawl(nodes, stored, "--delay", "0")
    await_copies(nodes, stored, REPLICAS)
    assert blames(nodes) == []
