#!/usr/bin/env python3
"""replay.py MNEMON FILL ENDLESS [--captures N] [--pages N] [--imported N] [--seconds S] - reading an archive over HTTP, under load.

FILL is the program of bench/fill.c, ENDLESS that of bench/endless.c. wrk asks for random pages and captures; nginx serves
the same pages as files, and mnemon's own empty handler (/health) shows what its server can do at all. Then ten times as
many connections as saturate it. Then the idle node, and the same while it crawls and takes an import.
"""
import argparse
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from crawl import start_nginx

CONNECTIONS = 16
ROUNDS = 5  # of idle and busy times; the middle one counts
STOLEN_MS_MAX = 20  # by the host of a virtual machine, in a round that counts
TRIES = 4
SCRIPT = """
local requests = {}
local thread = 0
function setup(thread_) thread_:set("seed", thread); thread = thread + 1 end
function init()  -- all of them beforehand: wrk shares the processors with what it measures
  math.randomseed(seed + 1)
  for line in io.lines("%s") do requests[#requests + 1] = wrk.format("GET", line) end
end
function request() return requests[math.random(#requests)] end
%s
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"requests":%%d,"us":%%d,"p50":%%d,"p99":%%d,"max":%%d,"failed":%%d,"bad":%%d,"bytes":%%d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    e.connect + e.read + e.write + e.timeout, e.status, summary.bytes))
end
"""


def free_port(address):
    with socket.socket() as listener:
        listener.bind((address, 0))
        return listener.getsockname()[1]


def stolen_ms():
    """What the host took away so far: a processor then stands still, for 100 ms at a time."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


class Load:
    """wrk with random paths of a list. A single reader is on another machine: it shall not wait for the processor itself."""

    def __init__(self, root, seconds):
        self.root = root
        self.seconds = seconds
        first = ["chrt", "--fifo", "1"]
        self.first = first if subprocess.run([*first, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0 else []
        if not self.first:
            print("wrk waits for the processor as others do: not allowed to be first (chrt)")

    def run(self, base, paths, connections=CONNECTIONS, seconds=None, pause_ms=0):
        names = os.path.join(self.root, "paths")
        script = os.path.join(self.root, "load.lua")
        with open(names, "w", encoding="utf-8") as file:
            file.write("\n".join(paths))
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT % (names, f"function delay() return {pause_ms} end" if pause_ms else ""))
        stolen = stolen_ms()
        output = subprocess.run(
            [*(self.first if connections == 1 else []), "wrk", "-t1", f"-c{connections}", f"-d{seconds or self.seconds}s", "--timeout", "20s", "-s", script, base],
            check=True, capture_output=True, text=True).stdout
        result = json.loads(re.search(r"^\{.*\}$", output, re.M).group(0))
        result["rate"] = result["requests"] / result["us"] * 1e6
        result["stolen_ms"] = stolen_ms() - stolen
        return result


def row(name, result, base=None, target=""):
    ratio = f"{result['rate'] / base['rate']:6.2f}" if base else " " * 6
    trouble = f"  FAILED {result['failed']}" if result["failed"] else ""
    trouble += f"  status {result['bad']}" if result["bad"] else ""
    print(f"{name:48} {result['rate']:9.0f}/s  p50 {result['p50'] / 1000:7.2f} ms  p99 {result['p99'] / 1000:7.2f} ms "
          f"{ratio} {target}{trouble}", flush=True)


class Node:
    def __init__(self, mnemon, data, *options):
        self.process = subprocess.Popen([mnemon, "serve", "--data", data, "--http", "0", "--allow-private", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                self.base = found.group(0).rstrip("/")
                return
        raise SystemExit("the node does not start")

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        return int(fields["VmHWM"].split()[0]) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


def read_list(path):
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file]


def measure_pages(options, root, load):
    data, files, listing = (os.path.join(root, name) for name in ("pages", "0", "pages.list"))
    os.makedirs(files)
    subprocess.run([options.fill, "pages", data, str(options.pages), listing, files], check=True)
    captures = read_list(listing)
    port = free_port("127.0.1.1")
    nginx = start_nginx(root, root, port)
    node = Node(options.mnemon, data)
    try:
        if options.only != "latency":
            compare(options, load, node, captures, port)
        busy(options, root, load, node, captures)
        print(f"memory {node.memory():.0f} MB")
    finally:
        node.stop()
        nginx.terminate()
        nginx.wait()


def rewritten(captures):
    return [f"/web/{at}mp_/{url}" for at, url in captures]


def compare(options, load, node, captures, port):
    static = load.run(f"http://127.0.1.1:{port}", [urllib.parse.urlsplit(url).path for _, url in captures])
    row(f"nginx, {options.pages} pages of 12 KB as files", static)
    empty = load.run(node.base, ["/health"])
    row("mnemon, empty handler", empty)
    row("raw replay, id_", load.run(node.base, [f"/web/{at}id_/{url}" for at, url in captures]), static,
        "of nginx (0.40)")
    one = load.run(node.base, rewritten(captures))
    row("rewritten pages (8,000/s)", one, static, "of nginx")
    for factor in (2, 5, 10):
        many = load.run(node.base, rewritten(captures), CONNECTIONS * factor)
        row(f"the same, {CONNECTIONS * factor} connections", many, one, "of 16 connections")


def give_way():
    """The site that is crawled would be on another machine: it takes no turn of readers."""
    os.nice(19)


MANNERS = (("1 connection, pauses of 2 ms", 1, 2), ("1 connection", 1, 0), (f"{CONNECTIONS} connections", CONNECTIONS, 0))


def one_round(load, node, paths, connections, pause_ms):
    """Once more where the host took part of it away."""
    for _ in range(TRIES):
        result = load.run(node.base, paths, connections, pause_ms=pause_ms)
        if result["stolen_ms"] <= STOLEN_MS_MAX:
            break
    return result


def rounds(load, node, paths, name):
    """Each manner of asking ROUNDS times: the middle rate, p50 and p99."""
    middle = {}
    for manner, connections, pause_ms in MANNERS:
        results = [one_round(load, node, paths, connections, pause_ms) for _ in range(ROUNDS)]
        middle[manner] = dict(results[0])
        for part in ("rate", "p50", "p99"):
            middle[manner][part] = sorted(result[part] for result in results)[ROUNDS // 2]
        row(f"{name}: {manner}", middle[manner])
    return middle


def stored_count(node):
    with urllib.request.urlopen(node.base + "/api/v1/status") as answer:
        return json.load(answer)["store"]["captures"]


def busy(options, root, load, node, captures):
    """The same pages while a job fetches and an import sends as fast as they can, on the same two cores."""
    paths = rewritten(captures)
    data, more, warc = (os.path.join(root, name) for name in ("pages", "more", "more.warc.zst"))
    subprocess.run([options.fill, "more", more, str(options.imported), os.path.join(root, "more.list")], check=True)
    subprocess.run([options.mnemon, "export", "--data", more, "--output", warc, "--quiet"], check=True)
    shutil.rmtree(more)
    wait_for_search(node)
    idle = rounds(load, node, paths, "idle")
    address = "127.0.4."
    port = free_port(address + "1")
    server = subprocess.Popen([options.endless, address, "20", str(port), "10000000"], stdout=subprocess.DEVNULL,
                              preexec_fn=give_way)
    sender = subprocess.Popen([options.mnemon, "import", "--data", data, "--quiet", warc])
    try:
        subprocess.run([options.mnemon, "job", "add", f"http://{address}1:{port}/p/0.html", "--data", data,
                        "--scope", "any", "--delay", "0"], check=True, stdout=subprocess.DEVNULL)
        time.sleep(4)
        stored, started = stored_count(node), time.monotonic()
        work = rounds(load, node, paths, "busy")
        rate = (stored_count(node) - stored) / (time.monotonic() - started)
        has_ended = sender.poll() is not None
        print(f"{'stored meanwhile':48} {rate:9.0f}/s{', the import ended before the measurement' if has_ended else ''}")
        for manner, result in work.items():
            print(f"{'busy, of idle (2): ' + manner:48} p50 {result['p50'] / idle[manner]['p50']:.2f}  "
                  f"p99 {result['p99'] / idle[manner]['p99']:.2f}")
    finally:
        for process in (sender, server):
            process.kill()
            process.wait()


def wait_for_search(node):
    """Until the texts of its pages are indexed, as they are long since in an archive that is read."""
    for _ in range(600):
        with urllib.request.urlopen(node.base + "/api/v1/status") as answer:
            if json.load(answer)["search"]["left"] == 0:
                return
        time.sleep(1)
    raise SystemExit("the texts are not indexed")


def rest(node):
    """Until it has counted what it holds, as it has after its first minutes."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(node.base + "/api/v1/holdings") as answer:
                if json.load(answer)["complete"]:
                    return
        except OSError:
            pass
        time.sleep(1)


def measure_lookups(options, root, load):
    data, listing = os.path.join(root, "captures"), os.path.join(root, "captures.list")
    started = time.monotonic()
    subprocess.run([options.fill, "captures", data, str(options.captures), listing], check=True)
    print(f"archive of {options.captures} captures made in {time.monotonic() - started:.0f} s", flush=True)
    captures = read_list(listing)
    random.Random(1).shuffle(captures)
    with open(os.path.join(data, "mnemon.conf"), "w", encoding="utf-8") as file:
        file.write("[search]\nenabled = no\n")  # an archive that grew over time has its texts indexed long since
    node = Node(options.mnemon, data)
    try:
        rest(node)
        empty = load.run(node.base, ["/health"])
        row("mnemon, empty handler", empty)
        quoted = [(at, urllib.parse.quote(url, safe="")) for at, url in captures]
        load.run(node.base, [f"/cdx?url={url}&limit=1" for _, url in quoted])  # the cache is warm as after an hour
        row("CDX, exact (30,000/s)",
            load.run(node.base, [f"/cdx?url={url}&limit=1" for _, url in quoted]), empty, "of empty (0.40)")
        row("CDX, the other dialect",
            load.run(node.base, [f"/cdx/search/cdx?url={url}&limit=1" for _, url in quoted]), empty, "of empty (0.40)")
        row("CDX, closest (20,000/s)",
            load.run(node.base, [f"/cdx?url={url}&sort=closest&closest={at}&limit=1" for at, url in quoted]), empty,
            "of empty (0.40)")
        row("availability",
            load.run(node.base, [f"/wayback/available?url={url}&timestamp={at}" for at, url in quoted]), empty, "of empty")
        row("TimeGate", load.run(node.base, [f"/web/{url}" for _, url in captures]), empty, "of empty")
        print(f"memory {node.memory():.0f} MB (1,000)")
    finally:
        node.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("fill")
    parser.add_argument("endless")
    parser.add_argument("--captures", type=int, default=1000000)
    parser.add_argument("--pages", type=int, default=20000)
    parser.add_argument("--imported", type=int, default=250000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", choices=["pages", "latency", "lookups"])
    options = parser.parse_args()
    options.mnemon = os.path.abspath(options.mnemon)
    for tool in ("wrk", "nginx"):
        if not shutil.which(tool):
            raise SystemExit(f"not installed: {tool}")
    root = tempfile.mkdtemp(prefix="mnemon-replay-")
    os.chmod(root, 0o755)
    load = Load(root, options.seconds)
    try:
        if options.only != "lookups":
            measure_pages(options, root, load)
        if options.only in (None, "lookups"):
            measure_lookups(options, root, load)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
