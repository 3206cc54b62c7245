"""Groups and their collections over real lines: twelve replicas in two groups with a corner that is in both, at sites whose lines
differ in delay and rate. What is checked are links, bytes and trees; times are printed beside those of rsync over the same lines.

MNEMON_LINKS=full for an update of 100 MB, 16,000 small files, and rsync in turn, too; MNEMON_LINKS_MB for another size."""
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import netlinks
from mirrornodes import tree
from netlinks import MB, Counts, edges
from ringnodes import wait_for

IS_FULL = os.environ.get("MNEMON_LINKS") == "full"
UPDATE_SIZE = int(float(os.environ.get("MNEMON_LINKS_MB", "100" if IS_FULL else "4")) * MB)
FILES_COUNT = 16_000 if IS_FULL else 2_000
PATIENCE_S = 900 if IS_FULL else 120

SETTINGS = "[group]\nperiod = 500 ms\nsilence = 10 s\n"
MEASURED = 60_000  # bytes a second that a site at most receives of probes, echoes and questions for versions

# Delay one way in ms, rates up and down in bytes a second. The origin's uplink is what an update to everybody waits for.
FAST, SLOW = (5, 10 * MB, 10 * MB), (150, 1.5 * MB, 1.5 * MB)
LINES = [(5, 4 * MB, 10 * MB), FAST, FAST, FAST, SLOW, SLOW, FAST, FAST, FAST, SLOW, SLOW, FAST]
ORIGIN, CORNER = 0, 6
SLOW_SITES = {i for i, line in enumerate(LINES) if line == SLOW}
GROUPS = {"left": range(0, 7), "right": range(6, 12)}
FOUNDERS = {"left": 1, "right": 11}
MARKS_COUNT = 20
ANSWER_SIZE = 2**20
COPIES_MAX = 4  # that leave the origin; rsync to everybody would be 11


class Town:
    """The replicas, the directory that the origin publishes, and the version that it has."""

    def __init__(self, wires, replicas, source):
        self.wires = wires
        self.replicas = replicas
        self.source = source
        self.version = 0

    def nodes(self, group):
        return [self.replicas[i].node for i in GROUPS[group]]

    def begin(self):
        for i, line in enumerate(LINES):
            self.wires.shape(i, *line)
            self.replicas[i].configure()
        for group, members in GROUPS.items():
            founder = self.replicas[FOUNDERS[group]].node
            founder.group("create", group, "--open")
            for i in members:
                if i != founder.index:
                    self.replicas[i].node.group("join", f"{group}@{founder.place}")
        self.source.mkdir()
        wish = self.publish()
        for each in self.replicas[1:]:
            each.do("subscribe", wish)
        for each in self.replicas:
            each.node.launch()
        for each in self.replicas:
            each.node.ready()

    def publish(self):
        """A new version, which is marked in some files."""
        self.version += 1
        for i in range(MARKS_COUNT):
            (self.source / f"mark{i}").write_text(f"{self.version}")
        return self.replicas[ORIGIN].publish(self.source)

    def await_version(self, but=()):
        for i, each in enumerate(self.replicas):
            if i != ORIGIN and i not in but:
                wait_for(lambda: each.number() >= self.version, lambda: f"{i}: {each.state()}\n{each.node.said}", PATIENCE_S)

    def check_trees(self, but=()):
        wanted = tree(self.source)
        for i, each in enumerate(self.replicas):
            if i != ORIGIN and i not in but:
                assert tree(each.current) == wanted, i

    def links(self, group):
        """Pairs of sites, where all members agree on them; else an empty set."""
        found = [n.seen(group) for n in self.nodes(group)]
        places = {n.place: n.index for n in self.nodes(group)}
        is_same = len({(s.get("term"), s.get("sequence"), s.get("state")) for s in found}) == 1
        is_whole = is_same and {m["address"] for m in found[0].get("members", [])} == set(places)
        return {frozenset(places[p] for p in edge) for edge in edges(found[0])} if is_whole else set()

    def frugal_links(self, group):
        """All links are measured; slow sites have the two that nobody can do without, none of them to another slow one."""
        links = self.links(group)
        is_measured = all(e["cost_us"] is not None for e in self.nodes(group)[0].seen(group).get("edges", []))
        degrees = {i: sum(i in link for link in links) for i in SLOW_SITES.intersection(GROUPS[group])}
        is_frugal = not any(link <= SLOW_SITES for link in links) and all(d == 2 for d in degrees.values())
        return links if is_measured and is_frugal else set()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    directory = tmp_path_factory.mktemp("town")
    with netlinks.replicas(directory, len(LINES), SETTINGS) as (wires, replicas):
        made = Town(wires, replicas, directory / "source")
        made.begin()
        yield made
    if IS_FULL:
        shutil.rmtree(directory)  # some gigabytes


def true_cost(pair):
    """Seconds for a megabyte over this link, as the lines are."""
    a, b = (LINES[i] for i in pair)
    return 2 * (a[0] + b[0]) / 1000 + MB / min(a[1], a[2], b[1], b[2])


def propagation(links, members):
    """Seconds until a megabyte that begins at the corner is everywhere."""
    known = {CORNER: 0.0}
    for _ in members:
        for link in links:
            for a, b in (sorted(link), sorted(link, reverse=True)):
                if a in known:
                    known[b] = min(known.get(b, 1e9), known[a] + true_cost(link))
    return max(known[m] for m in members)


def random_ring(members, rng):
    order = rng.sample(list(members), len(members))
    return {frozenset(pair) for pair in zip(order, order[1:] + order[:1])}


def test_topologies_avoid_slow_lines(town):
    rng = random.Random(4)
    for group, members in GROUPS.items():
        def describe():
            shown = [(n.index, [(m["address"], m["round_trip_us"], m["bandwidth"]) for m in n.seen(group)["neighbours"]])
                     for n in town.nodes(group)]
            return f"{town.links(group)} {shown}"

        links = wait_for(lambda: town.frugal_links(group), describe, PATIENCE_S)
        seen = town.nodes(group)[0].seen(group)
        assert seen["bridges"] == 0 and seen["articulations"] == 0
        rings = [propagation(random_ring(members, rng), members) for _ in range(200)]
        print(f"\n{group}: {sorted(sorted(link) for link in links)}: a megabyte is everywhere after "
              f"{propagation(links, members):.2f} s, with random rings after {sum(rings) / len(rings):.2f} s")


# ---- updates ----


def rsync(town, directory, at_once):
    """Seconds until all replicas have fetched the source from the origin."""
    config = directory / "rsyncd.conf"
    config.write_text(f"use chroot = no\nuid = 0\ngid = 0\n[source]\npath = {town.source}\n")
    address = town.wires.address(ORIGIN)
    enter = ["ip", "netns", "exec"]
    daemon = subprocess.Popen([*enter, town.wires.names[ORIGIN], "rsync", "--daemon", "--no-detach", "--config", config,
                               "--address", address])
    targets = [directory / f"target{i}" for i in range(1, len(LINES))]

    def pull(index):
        done = subprocess.run([*enter, town.wires.names[index + 1], "rsync", "-a", f"rsync://{address}/source/", targets[index]],
                              capture_output=True, text=True)
        return done.returncode == 0, done.stderr

    try:
        probe = [*enter, town.wires.names[ORIGIN], "rsync", f"rsync://{address}/"]
        wait_for(lambda: subprocess.run(probe, capture_output=True).returncode == 0, "rsync does not start")
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(targets) if at_once else 1) as pool:
            done = list(pool.map(pull, range(len(targets))))
        took = time.monotonic() - began
        assert all(good for good, _ in done), done
        return took
    finally:
        daemon.terminate()
        daemon.wait()
        for target in targets:
            shutil.rmtree(target, ignore_errors=True)


def update(town, size, what):
    """Publish, wait, compare; hold the lines to what they may carry. Returns the seconds, and the copies that left the origin."""
    town.await_version()
    counts = Counts(town.wires)
    began = time.monotonic()
    town.publish()
    town.await_version()
    took = time.monotonic() - began
    counts.end()
    town.check_trees()
    received = [counts.received(i) / size for i in range(len(LINES))]
    used = {(a, b): counts.moved[a][b] / size for a in range(len(LINES)) for b in range(len(LINES))
            if counts.moved[a][b] > size / 20}
    print(f"\n{what}: {took:.1f} s; the origin sent {counts.sent(ORIGIN) / size:.2f} x the size; received: "
          + ", ".join(f"{r:.2f}" for r in received[1:]) + "; links: "
          + ", ".join(f"{a}>{b} {share:.2f}" for (a, b), share in sorted(used.items())))
    for i in SLOW_SITES:
        assert counts.received(i) <= 1.15 * size + MEASURED * took, f"site {i} was sent {received[i]:.2f} times the update"
    return took, counts.sent(ORIGIN) / size


def test_a_large_update_reaches_all_without_all_coming_from_the_origin(town, tmp_path):
    (town.source / "large").write_bytes(random.Random(1).randbytes(UPDATE_SIZE))
    took, copies = update(town, UPDATE_SIZE, f"{UPDATE_SIZE / MB:.0f} MB")
    assert copies < COPIES_MAX
    if IS_FULL and shutil.which("rsync") is not None:
        at_once, in_turn = rsync(town, tmp_path, True), rsync(town, tmp_path, False)
        print(f"{UPDATE_SIZE / MB:.0f} MB, {took:.1f} s here: rsync at once {at_once:.1f} s, in turn {in_turn:.1f} s")
        assert took < at_once


def test_many_small_files_reach_all(town, tmp_path):
    rng = random.Random(2)
    for i in range(FILES_COUNT):
        path = town.source / "small" / f"{i % 64}" / f"{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(500))
    # A file is its bytes, and some 60 in the manifest.
    took, _ = update(town, FILES_COUNT * 560, f"{FILES_COUNT} files of 500 bytes")
    if IS_FULL and shutil.which("rsync") is not None:
        shutil.move(town.source / "large", tmp_path / "large")
        print(f"rsync of {FILES_COUNT} files, {took:.1f} s here: at once {rsync(town, tmp_path, True):.1f} s, "
              f"in turn {rsync(town, tmp_path, False):.1f} s")
        shutil.move(tmp_path / "large", town.source / "large")


# ---- what changes ----


def master_of(town, group, but=()):
    """The one all of them agree on; None where they do not."""
    masters = {n.seen(group).get("master") for n in town.nodes(group) if n.index not in but}
    return masters.pop() if len(masters) == 1 else None


def members_of(node, group):
    return {m["address"] for m in node.seen(group).get("members", [])}


class Third:
    """A group of fast sites alone: where slow lines are most of the cost, what one fast link costs is no gain of a tenth."""

    def __init__(self, town, but):
        self.nodes = [town.replicas[i].node for i in (1, 2, 3, 7, 8, 11) if i != but]
        self.nodes[0].group("create", "third", "--open")
        for each in self.nodes[1:]:
            each.group("join", f"third@{self.nodes[0].place}")

    def links(self):
        """As pairs of addresses, where all agree and all are measured; else None."""
        found = [n.seen("third") for n in self.nodes]
        is_same = len({(s.get("term"), s.get("sequence")) for s in found}) == 1
        is_measured = is_same and all(e["cost_us"] is not None for e in found[0].get("edges", []))
        return edges(found[0]) if is_measured and len(found[0].get("members", [])) == len(self.nodes) else None

    def describe(self):
        return str([n.seen("third") for n in self.nodes])

    def site(self, place):
        return next(n.index for n in self.nodes if n.place == place)


def test_a_dead_master_is_followed_and_a_link_that_became_slow_is_left(town):
    town.await_version()
    left = town.nodes("left")

    def describe():
        return "\n".join(n.said for n in left)

    first = wait_for(lambda: master_of(town, "left"), describe, PATIENCE_S)
    dead = next(n for n in left if n.place == first)
    others = [n for n in left if n is not dead]
    third = Third(town, dead.index)
    slow = min(wait_for(third.links, third.describe, PATIENCE_S), key=sorted)
    town.wires.slow_pair(*(third.site(place) for place in slow), 1500)
    dead.kill()
    wait_for(lambda: slow not in (third.links() or {slow}), lambda: f"{slow} {third.describe()}", PATIENCE_S)
    wait_for(lambda: master_of(town, "left", {dead.index}) not in (None, first), describe, PATIENCE_S)
    rest = {n.place for n in others}
    wait_for(lambda: all(members_of(n, "left") == rest for n in others), describe, PATIENCE_S)  # it is silent for too long
    town.wires.slow_pair(*(third.site(place) for place in slow), 0)

    if dead.index == ORIGIN:  # it was master because another was slow for a while; nobody else can publish
        dead.start()
    (town.source / "later").write_text("without the master")
    town.publish()
    town.await_version(but={dead.index})
    town.check_trees(but={dead.index})
    if dead.process is None:
        dead.start()
    wait_for(lambda: town.links("left"), describe, PATIENCE_S)
    assert master_of(town, "left") != first
    town.await_version()
    town.check_trees()


# ---- what fails ----

READER = """
import os, signal, sys
path, count = sys.argv[1], int(sys.argv[2])
seen, is_over = set(), []
signal.signal(signal.SIGTERM, lambda *_: is_over.append(True))
print("ready", flush=True)
while not is_over:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        marks = set()
        for i in range(count):
            with open(os.open(f"mark{i}", os.O_RDONLY, dir_fd=directory)) as file:
                marks.add(file.read())
        seen.add(tuple(sorted(marks)))
    except FileNotFoundError:
        pass  # stopped for so long that the version but one before the present is gone
    finally:
        os.close(directory)
print(sorted(seen), flush=True)
"""


class Readers:
    """They read what is current all the time; end() gives what each of them saw, a set of marks for each look."""

    def __init__(self, replicas):
        self.processes = [subprocess.Popen([sys.executable, "-c", READER, each.current, str(MARKS_COUNT)],
                                           stdout=subprocess.PIPE, text=True) for each in replicas]
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"

    def end(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        return [process.communicate(timeout=30)[0] for process in self.processes]


def staged_size(replica):
    """What it has of a version that is not whole yet, and keeps when it is killed now."""
    try:
        return (replica.root / "staging" / "pack").stat().st_size
    except FileNotFoundError:
        return 0


def await_part(town, index, size):
    replica = town.replicas[index]
    wait_for(lambda: staged_size(replica) > size or replica.number() >= town.version, lambda: replica.node.said, PATIENCE_S)
    assert replica.number() < town.version, "it was over before anything could fail"


def restart(replicas):
    """They are killed without a word, and come back. Returns what each had by then."""
    for each in replicas:
        each.node.kill()
    sizes = {each.node.index: staged_size(each) for each in replicas}
    for each in replicas:
        each.node.launch()
    for each in replicas:
        each.node.ready()
    return sizes


def test_whatever_dies_in_the_middle_all_end_alike_and_no_reader_sees_a_mixture(town):
    town.await_version()
    size = UPDATE_SIZE * 3 // 4
    replicas = town.replicas
    cut = (2, 7)
    town.wires.shape(ORIGIN, 5, size / 5, 10 * MB)  # a copy takes five seconds or more: there is a middle
    (town.source / "large").write_bytes(random.Random(3).randbytes(size))
    readers = Readers([replicas[2], replicas[8]])
    fetched = [each.fetched() for each in replicas]
    counts = Counts(town.wires)
    began = time.monotonic()
    town.publish()
    await_part(town, CORNER, size / 2)
    had = restart([replicas[CORNER], replicas[3]])  # a source of the other group, and a receiver
    await_part(town, CORNER, size * 5 / 8)
    for i in cut:
        town.wires.cut(i)
    had |= restart([replicas[ORIGIN], replicas[FOUNDERS["left"]]])  # who publishes, and the group's master
    for i in cut:
        town.wires.join(i)
    town.wires.shape(ORIGIN, *LINES[ORIGIN])
    town.await_version()
    took = time.monotonic() - began
    counts.end()
    saw = readers.end()
    town.check_trees()
    for text in saw:
        assert text.strip() == f"[('{town.version - 1}',), ('{town.version}',)]", text

    # An answer that is on its way when somebody is lost comes again; what has come does not, nor what the killed had on disk.
    again = (len(had) + len(cut)) * ANSWER_SIZE
    taken = {i: each.fetched() + had.get(i, -fetched[i]) for i, each in enumerate(replicas) if i != ORIGIN}
    received = [counts.received(i) for i in range(len(LINES))]
    print(f"\n{size / MB:.0f} MB with {len(had)} killed and {len(cut)} cut off: {took:.1f} s; taken: "
          + ", ".join(f"{t / size:.2f}" for t in taken.values()) + "; on the lines: "
          + ", ".join(f"{r / size:.2f}" for r in received[1:]))
    for i, size_taken in taken.items():
        assert size_taken <= 1.01 * size + ANSWER_SIZE, f"site {i} took {size_taken} bytes of {size}"
        assert received[i] <= 1.15 * size + again + MEASURED * took, f"site {i} was sent {received[i]} bytes of {size}"
