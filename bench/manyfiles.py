#!/usr/bin/env python3
"""manyfiles.py MNEMON [--files N] [--source DIR] - a collection of very many small files: what does it cost where nothing changes?

One node publishes a directory, another in no ring and no group with it subscribes (--from). Printed are the time, wall and
processor, of the first publishing and of a second one that finds nothing changed; the time until the subscriber has it
all; the memory of both nodes; and what a check whether there is news costs on the wire.
--files 1000000 takes 9 GB of disk and some minutes.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import urllib.request

import mirroring

PATIENCE_S = 3600
CHECKS = 10
SETTINGS = "[mirror]\ngather = 100 ms\nperiod = 500 ms\n"
NAME = "many"


class Node(mirroring.Node):
    def __init__(self, mnemon, root, number):
        super().__init__(mnemon, root, number)
        self.process = None
        (self.directory / "mnemon.conf").write_text(SETTINGS)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def has(self):
        return super().has(NAME)

    def of_process(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.M).group(1)) / 1024

    def cpu_s(self):
        return mirroring.cpu_s(self.process.pid)


def fill(directory, count):
    for number in range((count + 999) // 1000):
        path = directory / f"d{number // 100:02}" / f"e{number % 100:02}"
        path.mkdir(parents=True)
        inside = os.open(path, os.O_RDONLY)
        for i in range(min(1000, count - number * 1000)):
            file = os.open(f"file-{i:03}.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=inside)
            os.write(file, b"%d %d\n" % (number, i))
            os.close(file)
        os.close(inside)


def publish(node, source):
    """What it said, the seconds it took, and those of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    said = node.run("mirror", "publish", NAME, source, "--public")
    took = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return said, took, worked


def await_copy(nodes):
    """Until the subscriber has it: the seconds, and the most memory of each on the way."""
    began = time.monotonic()
    most = [0.0, 0.0]
    while not nodes[1].has():
        if time.monotonic() > began + PATIENCE_S:
            raise SystemExit("it has not come")
        most = [max(m, n.of_process("RssAnon")) for m, n in zip(most, nodes)]
        time.sleep(0.05)
    return time.monotonic() - began, most


def check_cost(node):
    """Bytes of the streams for each question whether there is news, and the usual time of its answer in ms."""
    time.sleep(2)  # the last questions about chunks are over
    start = node.get("/api/v1/ring")["together"]
    now = start
    while now["asked"] + now["answered"] < start["asked"] + start["answered"] + CHECKS:
        time.sleep(0.2)
        now = node.get("/api/v1/ring")["together"]
    questions = now["asked"] + now["answered"] - start["asked"] - start["answered"]
    size = sum(now[k] - start[k] for k in ("sent_size", "received_size"))
    delay_us = node.get("/api/v1/mirrors")["mirrors"][0]["sources"][0]["delay_us"]
    return size / questions, delay_us / 1000


def measure(options, root):
    source = pathlib.Path(options.source) if options.source else root / "source"
    if not options.source:
        fill(source, options.files)
    nodes = [Node(options.mnemon, root, i) for i in range(2)]
    said, took, worked = publish(nodes[0], source)
    wish = said.split("subscribe ")[1].strip()
    print(f"first publishing   {took:7.1f} s, {worked:6.1f} s of processors: {said.splitlines()[0]}")
    time.sleep(2)  # a file as young as the version is read again
    publish(nodes[0], source)
    said, took, worked = publish(nodes[0], source)
    print(f"nothing changed    {took:7.1f} s, {worked:6.1f} s of processors: {said.splitlines()[0]}")
    try:
        nodes[0].start()
        nodes[1].run("mirror", "subscribe", wish, "--from", nodes[0].place)
        nodes[1].start()
        took, most = await_copy(nodes)
        given = nodes[0].get("/api/v1/mirrors")["mirrors"][0]
        print(f"to the subscriber  {took:7.1f} s, {nodes[1].cpu_s():6.1f} s of its processors, {nodes[0].cpu_s():.1f} s of the publisher's; "
              f"{given['given_size'] / 1e6:.1f} MB in {given['answers']} answers")
        print(f"memory (RssAnon)   publisher {most[0]:.0f} MB, subscriber {most[1]:.0f} MB at most; "
              f"{nodes[0].of_process('RssAnon'):.0f} and {nodes[1].of_process('RssAnon'):.0f} MB afterwards")
        size, delay_ms = check_cost(nodes[1])
        print(f"is there news?     {size:.0f} bytes, answered in {delay_ms:.1f} ms")
    finally:
        for node in nodes:
            if node.process is not None:
                node.process.terminate()
                node.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--source", help="a directory that is there already")
    parser.add_argument("--disk")
    options = parser.parse_args()
    options.mnemon = os.path.abspath(options.mnemon)
    root = pathlib.Path(tempfile.mkdtemp(prefix="mnemon-manyfiles-", dir=options.disk))
    try:
        measure(options, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
