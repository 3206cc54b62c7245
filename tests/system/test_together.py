"""One archive on the ring: what several real nodes do together."""

import http.server
import json
import os
import re
import shutil
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from ringnodes import await_agreement, found, many, wait_for

SERVE = ("--allow-private", "--allow-private-ring")

# The first test at another size, as "12 nodes, 5,000 pages, 8 places each": MNEMON_TOGETHER=12,5000,8
NODES, PAGES, PLACES = (int(part) for part in os.environ.get("MNEMON_TOGETHER", "6,400,8").split(","))
HOSTS = 3


class Origin:
    """A small web of several hosts on loopback addresses, all pages linked; what is asked for is written down."""

    def __init__(self, hosts, pages, sections=0):
        self.pages = pages
        self.sections = sections
        self.asked = []  # (host, path, begin, end)
        self.lock = threading.Lock()
        self.servers = []
        for number in range(hosts):
            server = http.server.ThreadingHTTPServer((f"127.0.1.{number + 1}", 0), self.handler())
            server.daemon_threads = True
            self.servers.append(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.names = [f"127.0.1.{i + 1}:{s.server_address[1]}" for i, s in enumerate(self.servers)]

    def handler(origin):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body in one packet: else the second waits 40 ms for the first one's receipt

            def do_GET(self):
                begin = time.monotonic()
                host = self.headers["Host"]
                status, kind, body = origin.answer(host, self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                with origin.lock:
                    origin.asked.append((host, self.path, begin, time.monotonic()))

            def log_message(self, *_):
                pass

        return Handler

    def answer(self, host, path):
        if path == "/robots.txt":
            return 200, "text/plain", b"User-agent: *\nDisallow: /secret\n"
        number = re.fullmatch(r"/(?:s\d+/)?(?:p(\d+)\.html)?", path)
        at = int(number.group(1) or 0) if number else 0
        if path not in ("/", self.path(at)):
            return 404, "text/html", b"not here"
        links = [self.path((at * 3 + k) % self.pages) for k in range(1, 5)] + ["/secret.html"]
        links += [f"http://{name}/" for name in self.names]
        text = "".join(f'<a href="{link}">more</a> ' for link in links)
        return 200, "text/html", f"<title>{host} {at}</title>{text} page {at} of {host} {'words ' * 50}".encode()

    def path(self, number):
        return (f"/s{number % self.sections}" if self.sections else "") + f"/p{number}.html"

    def urls(self):
        """What a crawl must find."""
        return {f"http://{name}{path}" for name in self.names
                for path in ["/"] + [self.path(n) for n in range(self.pages)]}

    def fetched(self):
        with self.lock:
            return [f"http://{host}{path}" for host, path, *_ in self.asked if path != "/robots.txt"]

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def web():
    made = []

    def make(hosts, pages, **options):
        made.append(Origin(hosts, pages, **options))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def start_ring(node, count, *options, serve=()):
    """Nodes at 127.0.0.2 and so on, all in one ring."""
    first = node(2)
    found(first, "--open", *options)
    first.start(*serve)
    others = [node(3 + i).start("--join", first.place, *serve) for i in range(count - 1)]
    nodes = [first, *others]
    await_agreement(nodes)
    return nodes


def crawl(nodes, origin, *options):
    seeds = [f"http://{name}/" for name in origin.names]
    added = nodes[0].run("job", "add", "--ring", *seeds, "--scope", "host", *options)
    assert added.returncode == 0, added.stderr


def held(each):
    """The captures that this node has on its own disk, as (URL, timestamp, digest)."""
    listed = each.run("list", "--local", "*")
    entries = [line.split(" ", 2) for line in listed.stdout.splitlines()]
    return {(json.loads(e[2])["url"], e[1], json.loads(e[2])["digest"]) for e in entries}


def copies(nodes, origin):
    """How many nodes have a capture of each page."""
    count = {url: 0 for url in origin.urls()}
    for each in nodes:
        for url in {capture[0] for capture in held(each)}:
            if url in count:
                count[url] += 1
    return count


def await_copies(nodes, origin, level, patience_s=120):
    def missing():
        return {url: n for url, n in copies(nodes, origin).items() if n < level}

    wait_for(lambda: not missing(), lambda: f"{len(missing())} with too few copies: {list(missing().items())[:5]}", patience_s)


def read(each, url, stamp="2030"):
    try:
        with urllib.request.urlopen(f"{each.url}/web/{stamp}id_/{url}", timeout=120) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.reason}"


def listed(each, query):
    """The URLs that /cdx names."""
    with urllib.request.urlopen(f"{each.url}/cdx?url={query}&fl=url", timeout=60) as answer:
        return sorted(json.loads(line.split(" ", 2)[-1])["url"] if line.endswith("}") else line
                      for line in answer.read().decode().splitlines())


def files(each, folder):
    path = each.directory / folder
    return sorted(p.name for p in path.iterdir()) if path.is_dir() else []


def test_rules_and_jobs_reach_all_nodes_also_those_that_were_away(node):
    nodes = start_ring(node, 3)
    away = nodes[2]
    away.stop()
    assert nodes[0].run("ring", "takedown", "http://example.org/private*").returncode == 0
    assert nodes[1].run("job", "add", "--ring", "http://127.0.0.1:9/").returncode == 0
    wait_for(lambda: files(nodes[1], "access") == files(nodes[0], "access") != [], "the rule at a neighbour")
    wait_for(lambda: len(files(nodes[0], "jobs")) == 1, "the job at the founder")
    away.start()
    wait_for(lambda: files(away, "access") == files(nodes[0], "access"), "the rule where it was missed")
    wait_for(lambda: files(away, "jobs") == files(nodes[0], "jobs"), "the job where it was missed")

    # Only the founder makes rules; what is withdrawn goes everywhere.
    refused = nodes[1].run("ring", "takedown", "http://example.org/")
    assert refused.returncode == 1 and "founder" in refused.stderr
    name = files(nodes[1], "jobs")[0]
    assert nodes[1].run("job", "remove", "--ring", name).returncode == 0
    assert nodes[0].run("ring", "restore", "http://example.org/private*").returncode == 0
    for each in nodes:
        wait_for(lambda each=each: files(each, "access") == [], "the end of the rule")
        wait_for(lambda each=each: files(each, "jobs") == [], "the end of the job")


def test_a_node_without_a_ring_says_so(node):
    alone = node(2)
    done = alone.run("job", "add", "--ring", "http://127.0.0.1:9/")
    assert done.returncode == 1 and "in no ring" in done.stderr


def test_each_page_is_fetched_once_kept_by_several_and_read_through_all(node, web):
    origin = web(hosts=HOSTS, pages=PAGES // HOSTS)
    nodes = start_ring(node, NODES, "--replicas", "3", serve=(*SERVE, "--capacity", str(PLACES)))
    crawl(nodes, origin, "--delay", "0")
    await_copies(nodes, origin, 3, patience_s=120 + PAGES // 10)
    fetched = origin.fetched()
    assert sorted(fetched) == sorted(origin.urls()), "each page once, nothing else"
    robots = [host for host, path, *_ in origin.asked if path == "/robots.txt"]
    assert sorted(robots) == sorted(origin.names), "robots.txt once for each host, by its home"
    level = copies(nodes, origin)
    assert set(level.values()) == {3}, "no more copies than the charter says"
    loads = [len(held(each)) for each in nodes]
    mean = sum(loads) / len(loads)
    spread = (sum((load - mean) ** 2 for load in loads) / len(loads)) ** 0.5 / mean
    assert PLACES < 8 or spread < 0.35, loads
    for url in sorted(origin.urls())[:: max(9, PAGES // 20)]:
        _, _, expected = origin.answer(urllib.parse.urlsplit(url).netloc, urllib.parse.urlsplit(url).path)
        for each in nodes:
            assert read(each, url) == expected, (each.place, url)

    # Lists of a host or a prefix are those of the whole ring, whichever node is asked.
    host = origin.names[1]
    for each in nodes:
        assert listed(each, f"{host}/*") == sorted([url for url in origin.urls() if host in url] + [f"http://{host}/robots.txt"])

    # What is taken down is shown nowhere, and nothing else is hidden.
    gone, stays = f"http://{host}/p7.html", f"http://{host}/p8.html"
    assert nodes[0].run("ring", "takedown", gone).returncode == 0
    for each in nodes:
        wait_for(lambda each=each: str(read(each, gone)).startswith("404"), f"{gone} hidden at {each.place}")
        assert gone not in listed(each, f"{host}/*") and stays in listed(each, f"{host}/*")
        assert isinstance(read(each, stays), bytes)


def test_by_host_one_node_has_all_of_a_host(node, web):
    origin = web(hosts=5, pages=10)
    nodes = start_ring(node, 4, "--replicas", "2", "--mapping", "host", serve=SERVE)
    crawl(nodes, origin, "--delay", "0")
    await_copies(nodes, origin, 2)
    assert sorted(origin.fetched()) == sorted(origin.urls())
    for name in origin.names:
        having = [each for each in nodes if any(f"//{name}/" in capture[0] for capture in held(each))]
        assert len(having) == 2, name
        for each in nodes:
            assert len(listed(each, f"{name}/p*")) == 10


def test_by_section_a_directory_is_together_and_a_host_is_not(node, web):
    # Of 16 sections all lay between the same two nodes in one of 240 rings: there are 48, one of 5,000.
    origin = web(hosts=2, pages=48, sections=24)
    nodes = start_ring(node, 4, "--replicas", "2", "--mapping", "section", serve=SERVE)
    crawl(nodes, origin, "--delay", "0")
    await_copies(nodes, origin, 2)
    assert sorted(origin.fetched()) == sorted(origin.urls())
    urls = [(each.place, capture[0]) for each in nodes for capture in held(each)]
    having = [{place for place, url in urls if f"//{name}/s{number}/" in url} for name in origin.names for number in range(24)]
    assert all(len(places) == 2 for places in having), having
    assert len(set.union(*having)) > 2, having
    for name in origin.names:
        for each in nodes:
            assert len(listed(each, f"{name}/s3/*")) == 2
            assert len(listed(each, f"{name}/*")) == 50, "48 pages, the start, robots.txt"


def test_the_pace_of_a_host_is_kept_by_all_nodes_together(node, web):
    origin = web(hosts=2, pages=12)
    nodes = start_ring(node, 4, "--replicas", "2", serve=SERVE)
    crawl(nodes, origin, "--delay", "300 ms")
    await_copies(nodes, origin, 2)
    for name in origin.names:
        times = sorted((begin, end) for host, _, begin, end in origin.asked if host == name)
        gaps = [later[0] - earlier[1] for earlier, later in zip(times, times[1:])]
        assert len(times) == 14, "12 pages, the start, robots.txt"
        assert min(gaps) > 0.25, sorted(gaps)[:3]


def test_two_witnesses_fetch_and_the_others_copy(node, web):
    origin = web(hosts=2, pages=20)
    nodes = start_ring(node, 4, "--replicas", "3", "--witnesses", "2", serve=SERVE)
    crawl(nodes, origin, "--delay", "0")
    await_copies(nodes, origin, 3)
    wait_for(lambda: len(origin.fetched()) == 2 * len(origin.urls()), lambda: str(len(origin.fetched())))
    counts = {url: origin.fetched().count(url) for url in origin.urls()}
    assert set(counts.values()) == {2}


def test_nodes_die_and_lose_their_disks_and_nothing_is_lost(node, web):
    origin = web(hosts=3, pages=80)
    nodes = start_ring(node, 6, "--replicas", "3", serve=SERVE)
    crawl(nodes, origin, "--delay", "0")
    wait_for(lambda: len(origin.fetched()) > 60, "a part of the crawl")
    dead = [nodes[2], nodes[4]]
    for each in dead:
        each.kill()
    living = [each for each in nodes if each not in dead]
    wait_for(lambda: set(origin.fetched()) >= origin.urls(), lambda: f"{len(set(origin.fetched()))} of {len(origin.urls())}", 120)
    seen = set().union(*(held(each) for each in living))

    # One comes back as it was, one without its disk, one is new.
    shutil.rmtree(dead[1].directory / "volumes")
    shutil.rmtree(dead[1].directory / "index")
    for each in dead:
        each.start(*SERVE)
    new = node(20).start("--join", nodes[0].place, *SERVE)
    everybody = [*nodes, new]
    await_agreement(everybody)
    await_copies(everybody, origin, 3)
    after = set().union(*(held(each) for each in everybody))
    assert seen <= after, "what was kept is still there"
    for url in sorted(origin.urls())[::17]:
        _, _, expected = origin.answer(urllib.parse.urlsplit(url).netloc, urllib.parse.urlsplit(url).path)
        for each in everybody:
            assert read(each, url) == expected, (each.place, url)


def test_the_charter_bounds_what_is_archived(node, web):
    origin = web(hosts=2, pages=15)
    inside, outside = origin.names
    nodes = start_ring(node, 3, "--replicas", "2", "--scope", f"http://{inside}/*", serve=SERVE)
    refused = nodes[1].run("job", "add", "--ring", f"http://{outside}/")
    assert refused.returncode == 1 and "outside the scope of the ring" in refused.stderr
    assert nodes[1].run("job", "add", "--ring", f"http://{inside}/", "--scope", "any", "--delay", "0").returncode == 0
    wanted = {url for url in origin.urls() if url.startswith(f"http://{inside}/")}
    wait_for(lambda: set(origin.fetched()) >= wanted, lambda: f"{len(set(origin.fetched()))} of {len(wanted)}")
    wait_for(lambda: all(json.loads(n.get("/api/v1/status"))["crawl"]["running"] == 0 for n in nodes), "the end of the crawl")
    assert {url for url in origin.fetched() if url.startswith(f"http://{outside}/")} == set()

    # An amended charter counts at once, on all nodes.
    assert nodes[0].run("ring", "amend", "--scope", "any").returncode == 0
    wait_for(lambda: all(n.status()["charter"]["version"] == 2 for n in nodes), "the new charter")
    add = ("job", "add", "--ring", f"http://{outside}/", "--scope", "host", "--delay", "0")
    wait_for(lambda: nodes[1].run(*add).returncode == 0, "the new charter on a member's disk")
    wait_for(lambda: set(origin.fetched()) >= origin.urls(), lambda: f"{len(set(origin.fetched()))} of {len(origin.urls())}")
