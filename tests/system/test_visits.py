"""Later visits of a ring: what did not change is asked for conditionally, also by a node that takes the work of another over."""
import http.server
import itertools
import json
import re
import threading
import time
import urllib.request

import pytest

from ringnodes import await_agreement, found, wait_for
from test_together import SERVE, Origin, await_copies, node  # noqa: F401 (a fixture by its name)

RULES = "[ring]\ngrace = 4 s\ncompare = 2 s\n"
DATE = "Mon, 02 Mar 2026 04:05:06 GMT"


class Library(Origin):
    """Answers conditional requests: some pages have an ETag, some a date, some both; a 304 has only the ETag."""

    def __init__(self, hosts, pages):
        self.editions = {}  # path: text that was added to the page
        self.answers = []  # (host, path, status)
        self.unlike = None  # a page that is never the same
        self.numbers = itertools.count()
        super().__init__(hosts, pages)

    def validators(self, path):
        kind = sum(path.encode()) % 3
        etag = f'"{path}-{len(self.editions.get(path, ""))}"' if kind != 1 else None
        date = DATE if kind != 0 and path not in self.editions else None
        return etag, date

    def handler(origin):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_GET(self):
                begin = time.monotonic()
                host = self.headers["Host"]
                status, kind, body = origin.answer(host, self.path)
                etag, date = origin.validators(self.path) if kind == "text/html" else (None, None)
                is_same = (etag and self.headers["If-None-Match"] == etag) or (
                    date and not self.headers["If-None-Match"] and self.headers["If-Modified-Since"] == date)
                self.send_response(304 if is_same else status)
                if etag:
                    self.send_header("ETag", etag)
                if not is_same:
                    if date:
                        self.send_header("Last-Modified", date)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if not is_same:
                    self.wfile.write(body)
                with origin.lock:
                    origin.asked.append((host, self.path, begin, time.monotonic()))
                    origin.answers.append((host, self.path, 304 if is_same else status))

            def log_message(self, *_):
                pass

        return Handler

    def answer(self, host, path):
        if path == "/new.html":
            return 200, "text/html", b"a page without links"
        status, kind, body = super().answer(host, path)
        if path == self.unlike:
            body += b" number %d" % next(self.numbers)
        return status, kind, body + self.editions.get(path, "").encode()

    def count(self, since=0):
        """Pages that were sent whole and those that were not, from that answer on."""
        with self.lock:
            answers = [status for _, path, status in self.answers[since:] if path != "/robots.txt"]
        return answers.count(200), answers.count(304)


@pytest.fixture
def library():
    made = []

    def make(hosts, pages):
        made.append(Library(hosts, pages))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


def start_ring(node, count, *options):
    nodes = [node(2 + i) for i in range(count)]
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(RULES)
    found(nodes[0], "--open", *options)
    nodes[0].start(*SERVE)
    for each in nodes[1:]:
        each.start("--join", nodes[0].place, *SERVE)
    await_agreement(nodes)
    return nodes


def crawl(nodes, origin, period):
    seeds = [f"http://{name}/" for name in origin.names]
    added = nodes[0].run("job", "add", "--ring", *seeds, "--scope", "host", "--delay", "0", "--period", period)
    assert added.returncode == 0, added.stderr


def await_visits(origin, count, what):
    """So many more of each page, from now on."""
    before = {url: origin.fetched().count(url) for url in origin.urls()}
    wait_for(lambda: all(origin.fetched().count(url) >= before[url] + count for url in before), what)


def test_who_takes_over_asks_conditionally(node, library):
    origin = library(hosts=2, pages=100)
    nodes = start_ring(node, 3, "--replicas", "3")
    crawl(nodes, origin, "6 s")
    await_copies(nodes, origin, 3)
    await_visits(origin, 2, "two visits of all nodes")
    whole, _ = origin.count()
    assert whole == len(origin.urls()), "each page was sent once"

    nodes[1].kill()
    since = len(origin.answers)
    await_visits(origin, 2, "two visits without the node that died")
    whole, unchanged = origin.count(since)
    assert unchanged >= 2 * len(origin.urls()) and whole == 0, (whole, unchanged)


def links_sent(nodes):
    """Links that went from their frontiers to other nodes, or would have if they had not been sent a moment before."""
    links = [each.status()["together"]["links"] for each in nodes]
    return sum(one["done"] + one["known"] for one in links)


def test_a_changed_page_sends_only_links_that_are_new(node, library):
    origin = library(hosts=2, pages=60)
    nodes = start_ring(node, 3, "--replicas", "1")
    crawl(nodes, origin, "4 s")
    await_copies(nodes, origin, 1)
    await_visits(origin, 2, "two visits of all nodes")
    sent = links_sent(nodes)
    assert sent > 0

    # Nothing changed: nothing is sent.
    await_visits(origin, 2, "two visits of what did not change")
    assert links_sent(nodes) == sent

    # All pages changed, and their links did not.
    paths = [path for _, path in {(host, path) for host, path, _ in origin.answers} if path.startswith("/p")]
    origin.editions = {path: " a second edition" for path in paths}
    since = len(origin.answers)
    await_visits(origin, 2, "two visits of what changed")
    assert origin.count(since)[0] >= len(paths), "they were sent whole"
    assert links_sent(nodes) == sent

    # One of them, on both hosts, has one more link: that one is sent, unless its page is the fetcher's own.
    origin.editions = {**origin.editions, "/p7.html": ' a third edition <a href="/new.html">new</a>'}
    wait_for(lambda: origin.fetched().count(f"http://{origin.names[0]}/new.html") > 0
             and origin.fetched().count(f"http://{origin.names[1]}/new.html") > 0, "the new pages")
    await_visits(origin, 1, "a visit of all")
    assert sent <= links_sent(nodes) <= sent + 2


def ask(each, path):
    with urllib.request.urlopen(each.url + path, timeout=60) as answer:
        return answer.read().decode()


def shown(each, url):
    """The captures of the URL, as a reader sees them."""
    return ask(each, f"/cdx?url={url}&fl=timestamp,digest").splitlines()


def stored(each, url):
    """All of them, as they are exported."""
    done = each.run("export", url, "--output", str(each.directory / "one.warc"))
    assert done.returncode == 0, done.stderr
    text = (each.directory / "one.warc").read_bytes().decode(errors="replace")
    (each.directory / "one.warc").unlink()
    return [record for record in text.split("WARC/1.1\r\n")[1:] if re.search("^WARC-Type: (response|revisit)", record, re.M)]


def test_witnesses_who_got_the_same_are_one_capture(node, library):
    origin = library(hosts=1, pages=12)
    origin.unlike = "/p5.html"  # another one for each who asks
    nodes = start_ring(node, 3, "--replicas", "3", "--witnesses", "2")
    crawl(nodes, origin, "1 h")
    wait_for(lambda: len(origin.fetched()) == 2 * len(origin.urls()), lambda: str(len(origin.fetched())))
    keys = {each.key for each in nodes}
    for url in sorted(origin.urls()):
        is_alike = not url.endswith(origin.unlike)
        for each in nodes:
            wait_for(lambda: len(stored(each, url)) == 2, f"both captures of {url} at {each.place}")
            visits = {re.search("^Mnemon-Visit: (.*)\r$", record, re.M).group(1) for record in stored(each, url)}
            assert len(visits) == 1, "of one visit"
            wait_for(lambda: len(shown(each, url)) == (1 if is_alike else 2), lambda: f"{url} at {each.place}: {shown(each, url)}")
            stamp = re.search(r"\b\d{14}\b", shown(each, url)[0]).group()
            details = json.loads(ask(each, f"/api/v1/capture?url={url}&timestamp={stamp}"))
            signers = [witness["node"] for witness in details["witnesses"]]
            assert len(signers) == len(set(signers)) == (2 if is_alike else 1) and set(signers) <= keys, details
            page = ask(each, f"/details/{stamp}/{url}")
            assert all(signer in page for signer in signers)
            assert len(json.loads(ask(each, f"/web/timemap/json/{url}"))["mementos"]["list"]) == (1 if is_alike else 2)
            assert len(each.run("list", url).stdout.splitlines()) == (1 if is_alike else 2)

    # And a plan by the archive of a node, which runs or does not, takes them for what they are.
    count = len(origin.urls())
    for is_running in (True, False):
        for each in nodes:
            done = each.run("plan", "--json", "--nodes", "3")
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            assert told["inputs"]["witnesses"] == {"value": 2, "from": "measured"}
            measured = told["measured"]
            assert measured["witnessed_visits"] == count and measured["witnessed"] == 2 * count, measured
            assert measured["unchanged_visits"] == count - 1, "the second of two that got the same"
            assert re.search("captures of a visit, by witnesses +2\n", each.run("plan", "--measured").stdout)
            if is_running:
                each.stop()
