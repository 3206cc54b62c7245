#!/usr/bin/env python3
"""light.py [--delay MS] [--reads N] - what a reader waits for at a light member, and at a full one on the same line.

Three members, a full member and a light member, each in a network namespace of its own, whose lines take MS milliseconds one way
(tests/system/wires.c; as with netem, but needs no module of the kernel). Each page is read once at each of the two, one after
the other in turns, so that none is in a cache. Needs root, iproute2 and /dev/net/tun; build first.
"""
import argparse
import http.client
import pathlib
import random
import statistics
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "system"))

from lightnodes import Light  # noqa: E402
from netlinks import PORT, Wires, inside, programs  # noqa: E402
from ringnodes import Node, end, found, wait_for  # noqa: E402

RECORD = (
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
    "WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://example.org/p{number}\r\n"
    "Content-Type: application/http;msgtype=response\r\nContent-Length: {size}\r\n\r\n{http}\r\n\r\n"
)
MEMBERS = 4  # the last one is the full reader


def write(path, count):
    with path.open("w", newline="") as out:
        for number in range(count):
            text = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\npage {number}\n" + f"{number} " * 2000
            out.write(RECORD.format(number=number, size=len(text), http=text))


def read(node, number):
    with inside(node.namespace):
        begun = time.perf_counter()
        link = http.client.HTTPConnection(urllib.parse.urlsplit(node.url).netloc, timeout=30)
        link.request("GET", f"/web/20260101000000id_/http://example.org/p{number}")
        answer = link.getresponse()
        body = answer.read()
        link.close()
        took = time.perf_counter() - begun
    assert answer.status == 200 and body.startswith(b"page "), (node.place, number, answer.status)
    return took


def settle(nodes):
    def is_whole():
        return all(arc["level"] == "whole" for each in nodes for arc in each.status()["services"]["copies"]["arcs"])

    wait_for(is_whole, "copies", 120)


def show(name, times):
    times = sorted(times)
    print(f"{name:13} {len(times)} reads: half within {1000 * statistics.median(times):.0f} ms, "
          f"99 of 100 within {1000 * times[len(times) * 99 // 100 - 1]:.0f} ms")
    return times[len(times) * 99 // 100 - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=20)
    parser.add_argument("--reads", type=int, default=400)
    options = parser.parse_args()
    mnemon, program = programs()
    wires = Wires(program, MEMBERS + 1)
    nodes = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        try:
            wires.begin()
            for i in range(MEMBERS + 1):
                wires.shape(i, options.delay, 100_000_000, 100_000_000)
            for i in range(MEMBERS):
                nodes.append(Node(mnemon, scratch / f"node{i}", wires.address(i), wires.names[i]))
                nodes[i].port = PORT
            found(nodes[0], "--open", "--replicas", "2")
            for each in nodes:
                each.start(*(() if each is nodes[0] else ("--join", nodes[0].place)))
            wait_for(lambda: all(each.status().get("known") == MEMBERS - 1 for each in nodes), "ring", 120)
            write(scratch / "all.warc", options.reads)
            assert nodes[0].run("import", "--quiet", scratch / "all.warc").returncode == 0
            settle(nodes)
            light = Light(mnemon, scratch / "light", wires.address(MEMBERS), wires.names[MEMBERS])
            nodes.append(light)
            begun = time.monotonic()
            light.start("--join", nodes[0].place)
            wait_for(lambda: light.is_in, lambda: light.said)
            print(f"the light member joined in {time.monotonic() - begun:.1f} s")
            wait_for(lambda: light.status()["known"] == MEMBERS, "members")
            full = nodes[MEMBERS - 1]
            times = {full: [], light: []}
            order = list(range(options.reads))
            random.Random(1).shuffle(order)
            for number in order:
                for each in (full, light) if number % 2 else (light, full):
                    times[each].append(read(each, number))
            print(f"lines of {options.delay:g} ms, {MEMBERS} members, 2 copies of each page")
            ratio = 1 / show("full member", times[full])
            ratio *= show("light member", times[light])
            print(f"light member: {ratio:.2f} times the full member's 99 of 100")
        finally:
            end(nodes)
            wires.end()


if __name__ == "__main__":
    main()
