#!/usr/bin/env python3
"""mirroring.py MNEMON [--replicas N] [--size MB] [--files N] [--disk DIR] - an update to many replicas, against rsync.

One node publishes a directory, the others are in a group with it and subscribe. Two updates: one large file, and many
files of 500 bytes. The same directories are fetched by as many rsyncs from a daemon here, in turn and all at once. Printed
are the time until the last one has it, the processor time of all, what left the origin (of mnemon: contents and manifest),
and how many answers that took. Everything shares the processors and disk of this machine; mnemon's copies are synced to
it and travel encrypted, those of rsync do neither. --disk says where: without it in /dev/shm, where there is one, since
some disks take a millisecond to remove a file.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

PATIENCE_S = 60
SETTINGS = "[mirror]\ngather = 200 ms\nperiod = 5 s\n[group]\nperiod = 2 s\nsilence = 10 min\n[crowd]\nenabled = no\n"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid, of_children=False):
    """Processor seconds of a process so far, or of its children that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    first = 13 if of_children else 11
    return sum(int(f) for f in fields[first:first + 2]) / TICKS


class Node:
    def __init__(self, mnemon, root, number):
        self.mnemon = mnemon
        self.ip = f"127.0.0.{number + 2}"
        self.directory = root / f"node{number}"
        self.directory.mkdir()
        (self.directory / "mnemon.conf").write_text(SETTINGS)

    def run(self, *arguments):
        return subprocess.run([self.mnemon, *arguments, "--data", self.directory], check=True, capture_output=True,
                              text=True).stdout

    def start(self):
        self.process = subprocess.Popen(
            [self.mnemon, "serve", "--data", self.directory, "--address", self.ip, "--http", "0", "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = [self.process.stdout.readline() for _ in range(3)]
        self.url = lines[0].split()[-1]
        self.place = re.search(r" at ([0-9.]+:\d+);", lines[2]).group(1)
        return self

    def state(self, name):
        with urllib.request.urlopen(self.url + "/api/v1/mirrors", timeout=30) as answer:
            return next((m for m in json.load(answer)["mirrors"] if m["name"] == name), {})

    def has(self, name):
        """Readers see it: a look at the link costs the node nothing."""
        return (self.directory / "collections" / name / "current").is_symlink()

    def members(self):
        with urllib.request.urlopen(self.url + "/api/v1/groups", timeout=30) as answer:
            return max((len(g.get("members", [])) for g in json.load(answer)["groups"]), default=0)


def await_all(nodes, condition):
    end = time.monotonic() + PATIENCE_S
    waiting = list(nodes)
    while waiting:
        if time.monotonic() > end:
            raise SystemExit(f"{len(waiting)} of {len(nodes)}, {waiting[0].ip} first: not within {PATIENCE_S} s")
        waiting = [n for n in waiting if not condition(n)]
        time.sleep(0.02)


def update(nodes, source):
    """Publish; the seconds until all have it, their processor time, what left the origin, in how many answers."""
    wish = nodes[0].run("mirror", "publish", source.name, source).split("subscribe ")[1].strip()
    worked = sum(cpu_s(n.process.pid) for n in nodes)
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(lambda n: n.run("mirror", "subscribe", wish), nodes[1:]))
    await_all(nodes[1:], lambda n: n.has(source.name))
    took = time.monotonic() - began
    worked = sum(cpu_s(n.process.pid) for n in nodes) - worked
    time.sleep(1)  # what it says of itself is a second old at most
    given = nodes[0].state(source.name)
    asked = sum(n.state(source.name).get("answers", 0) for n in nodes)
    return took, worked, given["given_size"], asked


def with_rsync(root, source, replicas):
    """Seconds and processor seconds in turn and at once, from a daemon on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = root / "rsyncd.conf"
    config.write_text(f"use chroot = no\n[source]\npath = {source}\n")
    daemon = subprocess.Popen(["rsync", "--daemon", "--no-detach", "--config", config, "--address", "127.0.0.1",
                               "--port", str(port)])
    time.sleep(0.5)

    def work():
        return sum(os.times()[2:4]) + cpu_s(daemon.pid) + cpu_s(daemon.pid, of_children=True)

    def pull(target):
        subprocess.run(["rsync", "-a", f"rsync://127.0.0.1:{port}/source/", target], check=True)

    try:
        found = []
        for way, threads in (("turn", 1), ("once", replicas)):
            targets = [root / f"rsync-{way}-{i}" for i in range(replicas)]
            began, worked = time.monotonic(), work()
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                list(pool.map(pull, targets))
            found.append((time.monotonic() - began, work() - worked))
            for target in targets:
                shutil.rmtree(target)
        return found
    finally:
        daemon.terminate()
        daemon.wait()


def fill(options, root):
    rng = random.Random(1)
    large, small = root / "large", root / "small"
    large.mkdir()
    (large / "file").write_bytes(rng.randbytes(options.size * 1000000))
    for i in range(options.files):
        path = small / f"{i % 128}" / f"{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(500))
    return large, small


def report(options, source, mnemon, rsync):
    files = [p for p in source.rglob("*") if p.is_file()]
    size = sum(p.stat().st_size for p in files)
    took, worked, given, asked = mnemon
    (turn, turn_worked), (once, once_worked) = rsync
    print(f"{source.name}: {len(files)} files, {size / 1e6:.0f} MB, to {options.replicas} replicas")
    print(f"  mnemon        {took:6.1f} s, {worked:5.1f} s of processors; the origin gave {given / size:.2f} copies")
    print(f"  rsync in turn {turn:6.1f} s, {turn_worked:5.1f} s of processors: {turn / took:.2f} times mnemon's time")
    print(f"  rsync at once {once:6.1f} s, {once_worked:5.1f} s of processors: {once / took:.2f} times mnemon's time")
    print(f"  round trips   {asked / options.replicas:.0f} for each replica, {asked / options.replicas / len(files):.4f} for each file")


def measure(options, root):
    sources = fill(options, root)
    nodes = [Node(options.mnemon, root, i) for i in range(options.replicas + 1)]
    started = []
    try:
        for node in nodes:
            node.run(*(("group", "join", f"bench@{started[0].place}") if started else ("group", "create", "bench", "--open")))
            started.append(node.start())
        await_all(nodes, lambda n: n.members() == len(nodes))
        for source in sources:
            mnemon = update(nodes, source)
            report(options, source, mnemon, with_rsync(root, source, options.replicas))
    finally:
        for node in started:
            node.process.terminate()
        for node in started:
            node.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("--replicas", type=int, default=12)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--files", type=int, default=16000)
    parser.add_argument("--disk", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    options = parser.parse_args()
    options.mnemon = os.path.abspath(options.mnemon)
    if not shutil.which("rsync"):
        raise SystemExit("not installed: rsync")
    root = pathlib.Path(tempfile.mkdtemp(prefix="mnemon-mirroring-", dir=options.disk))
    try:
        measure(options, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
