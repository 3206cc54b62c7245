"""A node that may answer few requests holds a site that suddenly everybody wants, through all the other nodes."""

import asyncio
import collections
import http.server
import json
import os
import random
import threading
import time
import urllib.parse

import pytest

from ringnodes import await_agreement, found, many, wait_for

SERVE = ("--allow-private", "--allow-private-ring")

# Larger, as 20 readers, 2,000 requests a second, 50 answers a second of the holder, 50 objects, for 20 s:
# MNEMON_CROWD_LOAD=20,2000,50,50,20
READERS, RATE, LIMIT, OBJECTS, SECONDS = (
    int(part) for part in os.environ.get("MNEMON_CROWD_LOAD", "8,200,5,7,5").split(","))
RAMP_S = 6  # the crowd comes within so many seconds, not at once
LATE_S = 1
GIVEN_UP_S = 10


class Site:
    """One page and its parts."""

    def __init__(self, objects):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.path == "/robots.txt":
                    body = b""
                elif self.path == "/":
                    body = "".join(f'<a href="/{n}.html">{n}</a>' for n in range(1, objects)).encode()
                else:
                    body = f"<title>{self.path}</title>{self.path} {random.Random(self.path).randbytes(4000).hex()}".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.1.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.1.1:{self.server.server_address[1]}/"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site():
    made = Site(OBJECTS)
    yield made
    made.close()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


# ---- asking at a rate, whatever becomes of the answers ----


class Connection(asyncio.Protocol):
    """One request at a time; what came is told to `answered`, as (status, source)."""

    def __init__(self):
        self.text = b""
        self.answered = None

    def connection_made(self, transport):
        self.transport = transport

    def ask(self, host, path):
        self.text = b""
        self.answered = asyncio.get_running_loop().create_future()
        self.transport.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return self.answered

    def data_received(self, data):
        self.text += data
        head, end, body = self.text.partition(b"\r\n\r\n")
        if not end or self.answered is None or self.answered.done():
            return
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        if len(body) >= int(fields.get(b"content-length", b"0")):
            source = fields.get(b"x-mnemon-source", b"none").split(b" ")[0].decode()
            self.answered.set_result((int(head[9:12]), source))

    def connection_lost(self, _):
        if self.answered is not None and not self.answered.done():
            self.answered.set_result((0, "lost"))


class Load:
    """Requests at all nodes together; `results` are (when it was due, seconds that it took, status, source)."""

    def __init__(self, urls):
        self.hosts = [urllib.parse.urlsplit(url).netloc for url in urls]
        self.idle = collections.defaultdict(list)
        self.results = []

    async def one(self, host, path, due):
        begin = time.monotonic()
        connection = self.idle[host].pop() if self.idle[host] else None
        try:
            if connection is None or connection.transport.is_closing():
                name, port = host.split(":")
                loop = asyncio.get_running_loop()
                _, connection = await asyncio.wait_for(loop.create_connection(Connection, name, int(port)), GIVEN_UP_S)
            status, source = await asyncio.wait_for(connection.ask(host, path), GIVEN_UP_S)
            self.idle[host].append(connection)
        except (OSError, asyncio.TimeoutError):
            status, source = 0, "none"
        self.results.append((due, time.monotonic() - begin, status, source))

    async def run(self, paths, rate, ramp_s, seconds):
        start = time.monotonic()
        tasks = set()
        due = 0.0
        while due < ramp_s + seconds:
            wait = start + due - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(self.one(random.choice(self.hosts), random.choice(paths), due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            due += 1 / (rate * max(0.1, min(1, due / ramp_s)))
        await asyncio.gather(*tasks)
        for connections in self.idle.values():
            for connection in connections:
                connection.transport.close()


class Outcome:
    def __init__(self, results):
        self.count = len(results)
        self.served = sum(1 for r in results if r[2] == 200)
        self.in_time = sum(1 for r in results if r[2] == 200 and r[1] <= LATE_S)
        took = sorted(r[1] for r in results if r[2] == 200) or [float("inf")]
        self.p50, self.p99 = took[len(took) // 2], took[len(took) * 99 // 100]
        self.sources = collections.Counter(r[3] for r in results if r[2] == 200)

    def __str__(self):
        return (f"{self.count} asked, {100 * self.served / self.count:.2f} % served, {100 * self.in_time / self.count:.2f} % "
                f"within {LATE_S} s, p50 {1000 * self.p50:.1f} ms, p99 {1000 * self.p99:.1f} ms, from {dict(self.sources)}")


# ---- the ring ----


def configure(each, limit, crowd):
    each.directory.mkdir(exist_ok=True)
    (each.directory / "mnemon.conf").write_text(f"[ring]\nrequests = {limit}\n[crowd]\nenabled = {crowd}\n")


def restart_with_crowd(nodes, holder):
    for each in nodes:
        each.stop()
        configure(each, LIMIT if each is holder else 0, crowd="yes")
    for each in nodes:
        each.launch(*SERVE, *(() if each is nodes[0] else ("--join", nodes[0].place)))
    for each in nodes:
        each.ready()
    await_agreement(nodes)


def reads(each):
    state = each.status()["together"]
    return state["reads"], state["busy"]


def paths_of(holder, site):
    lines = holder.run("list", site.url + "*").stdout.splitlines()
    found_at = {json.loads(line.split(" ", 2)[2])["url"]: line.split(" ", 2)[1] for line in lines}
    return [f"/web/{stamp}id_/{url}" for url, stamp in found_at.items() if not url.endswith("robots.txt")]


def load(nodes, holder, paths):
    readers = [each for each in nodes if each is not holder]
    before, begin = reads(holder), time.monotonic()
    asking = Load([each.url for each in readers])
    asyncio.run(asking.run(paths, RATE, RAMP_S, SECONDS))
    took, after = time.monotonic() - begin, reads(holder)
    rate = (after[0] - before[0]) / took
    ramp = Outcome([r for r in asking.results if r[0] < RAMP_S])
    full = Outcome([r for r in asking.results if r[0] >= RAMP_S])
    print(f"  while it grows: {ramp}\n  at {RATE}/s:      {full}\n"
          f"  the holder answered {rate:.1f} a second of {LIMIT}, told {after[1] - before[1]} that it is busy")
    assert after[0] - before[0] <= LIMIT * took + LIMIT / 10 + 2, "it keeps its limit"
    return full


def test_a_site_that_everybody_wants_is_served_by_the_crowd(node, site, capsys):
    nodes = [node(2 + i) for i in range(READERS + 1)]
    for each in nodes:
        configure(each, LIMIT, crowd="no")  # who will hold it is not known yet; the others are asked nothing
    found(nodes[0], "--open", "--replicas", "1", "--mapping", "host")
    nodes[0].start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", nodes[0].place, *SERVE)
    await_agreement(nodes)
    place = wait_for(lambda: nodes[0].owner(site.url), "an owner")[0]
    holder = next(each for each in nodes if each.place == place)
    added = holder.run("job", "add", "--ring", site.url, "--scope", "host")
    assert added.returncode == 0, added.stderr
    wait_for(lambda: len(paths_of(holder, site)) == OBJECTS, lambda: f"{len(paths_of(holder, site))} pages")
    paths = paths_of(holder, site)
    with capsys.disabled():
        print(f"\n{READERS} readers, {OBJECTS} objects, without the crowd:")
        alone = load(nodes, holder, paths)
        restart_with_crowd(nodes, holder)
        print("with the crowd:")
        together = load(nodes, holder, paths)
    assert alone.in_time < alone.count / 2, "else it shows nothing"
    assert together.in_time >= 0.99 * together.count and together.p99 <= LATE_S
    assert together.sources["crowd"] > 0
