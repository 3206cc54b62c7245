#!/usr/bin/env python3
"""together.py MNEMON SITE [--pages N] [--nodes N] [--rounds N] - what crawling together costs.

SITE is the program of bench/site.c; the site is that of crawl.py. One node crawls it as a job of its own, then a ring of
several nodes on this machine crawls it together, every document kept once (replicas 1): the same work, plus agreeing on
it. Both are measured until the full text of what they stored can be searched too: a node does that later, when it has time,
and the slower of two crawls would be charged for more of it. Printed are the CPU time for a URL of all processes together, the ratio, and what links between nodes cost on the wire.

In turns, several rounds, and the middle ones count: processor time varies by a tenth between runs of the same program. On a virtual machine a page
of memory that the host has yet to provide takes some 6 us when it is touched first, which several nodes meet more often than one; so as much as
they need is touched before each crawl.
"""
import argparse
import json
import os
import mmap
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from crawl import ADDRESS, HOSTS, free_port, start_nginx

PATIENCE_S = 600
SEALED = 60 + 28  # bytes around a datagram: the seal, UDP and IP
TOUCHED_SIZE = 2 << 30


def processor_s(pid):
    """Of a process, and of those children of it that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Node:
    def __init__(self, mnemon, root, number):
        self.mnemon = mnemon
        self.address = f"127.0.0.{number}"
        self.directory = os.path.join(root, f"node{number}")
        self.process = None

    def run(self, *arguments):
        return subprocess.run([self.mnemon, *arguments, "--data", self.directory], check=True, capture_output=True,
                              text=True).stdout

    def start(self, port, *options):
        self.process = subprocess.Popen(
            [self.mnemon, "serve", "--data", self.directory, "--address", self.address, "--http", "0", "--port", str(port),
             "--allow-private", "--allow-private-ring", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        return self

    def cpu_s(self):
        return sum(processor_s(pid) for pid in self.processes())

    def processes(self):
        """The node, and the parsers that it has started."""
        found = [str(self.process.pid)]
        for pid in found:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    found += file.read().split()
        return found

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def done_count(nodes):
    return sum(json.loads(line)["stored"] for node in nodes
               for line in node.run("job", "list", "--json").splitlines() if '"stored"' in line)


def wait_until_done(nodes, urls):
    """Until the counts have reached the URLs of the site, or stand still for a while."""
    last, since, end = -1, time.monotonic(), time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        count = done_count(nodes)
        if count >= urls:
            return count
        if count != last:
            last, since = count, time.monotonic()
        elif time.monotonic() - since > 20:
            return count
        time.sleep(0.5)
    return last


def wait_until_searchable(nodes):
    """What was stored is followed at a lower priority. Nodes that crawl slower have more of it done at the end."""
    end = time.monotonic() + PATIENCE_S
    while any(node.get("/api/v1/search?q=page")["index"]["captures_left"] > 0 for node in nodes):
        if time.monotonic() > end:
            raise SystemExit("the full text does not get ready")
        time.sleep(0.5)


def touch_memory():
    """In a process of its own, which gives it back."""
    code = f"import mmap\nwith mmap.mmap(-1, {TOUCHED_SIZE}) as memory:\n for i in range(0, {TOUCHED_SIZE}, {mmap.PAGESIZE}): memory[i] = 1"
    subprocess.run([sys.executable, "-c", code], check=True)


def crawl(nodes, seeds, urls, *options):
    touch_memory()
    before = sum(node.cpu_s() for node in nodes)
    started = time.monotonic()
    nodes[0].run("job", "add", *seeds, "--scope", "any", "--delay", "0", "--no-sitemaps", *options)
    done = wait_until_done(nodes, urls)
    seconds = time.monotonic() - started
    wait_until_searchable(nodes)
    return done, sum(node.cpu_s() for node in nodes) - before, seconds


def print_row(name, done, cpu_s, seconds):
    print(f"{name:<12} {done:>8} URLs  {1e6 * cpu_s / max(done, 1):>7.0f} us CPU a URL  {done / seconds:>7.0f} URLs/s", flush=True)


def crawl_alone(options, root, seeds, urls):
    alone = Node(options.mnemon, root, 2).start(free_port())
    try:
        done, cpu_s, seconds = crawl([alone], seeds, urls)
    finally:
        alone.stop()
    print_row("one node", done, cpu_s, seconds)
    return cpu_s / max(done, 1)


def print_links(nodes):
    links = [node.get("/api/v1/ring")["together"]["links"] for node in nodes]
    sent = sum(link["sent"] for link in links)
    size = sum(link["sent_size"] + SEALED * link["datagrams"] for link in links)
    print(f"{'links':<12} {sent} sent, {size / max(sent, 1):.1f} bytes a link on the wire, "
          f"{sent / max(sum(link['datagrams'] for link in links), 1):.1f} in a datagram")


def crawl_together(options, root, seeds, urls):
    port = free_port()
    nodes = [Node(options.mnemon, root, 10 + i) for i in range(options.nodes)]
    nodes[0].run("ring", "create", "bench", "--open", "--replicas", "1")
    try:
        for index, node in enumerate(nodes):
            node.start(port, *(["--join", f"{nodes[0].address}:{port}"] if index else []))
        while any(node.get("/api/v1/ring").get("estimated_size") != options.nodes for node in nodes):
            time.sleep(0.2)
        done, cpu_s, seconds = crawl(nodes, seeds, urls, "--ring")
        print_row(f"{options.nodes} nodes", done, cpu_s, seconds)
        print_links(nodes)
    finally:
        for node in nodes:
            if node.process is not None:
                node.stop()
    return cpu_s / max(done, 1)


def measure(options, root, seeds, urls):
    alone, together = [], []
    for number in range(options.rounds):
        directory = os.path.join(root, f"round{number}")
        alone.append(crawl_alone(options, directory, seeds, urls))
        together.append(crawl_together(options, directory, seeds, urls))
        print(f"{'ratio':<12} {together[-1] / alone[-1]:.2f}", flush=True)
        shutil.rmtree(directory)
    print(f"{'middle':<12} {statistics.median(together) / statistics.median(alone):.2f} (target: at most 1.40)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnemon")
    parser.add_argument("site")
    parser.add_argument("--pages", type=int, default=10000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    options.mnemon = os.path.abspath(options.mnemon)
    if not shutil.which("nginx"):
        raise SystemExit("not installed: nginx")
    root = tempfile.mkdtemp(prefix="mnemon-together-")
    os.chmod(root, 0o755)
    nginx = None
    try:
        port = free_port()
        site = os.path.join(root, "site")
        subprocess.run([options.site, site, str(HOSTS), str(options.pages), ADDRESS, str(port)], check=True)
        urls = sum(len(names) for _, _, names in os.walk(site))
        nginx = start_nginx(root, site, port)
        measure(options, root, [f"http://{ADDRESS}1:{port}/d0/p0.html"], urls)
    finally:
        if nginx is not None:
            nginx.terminate()
            nginx.wait()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
