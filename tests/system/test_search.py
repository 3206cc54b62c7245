"""Full-text search of a running node: fed in the background, asked by page and by API."""
import hashlib
import html
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from waiting import wait_for

DATA = pathlib.Path(os.environ.get("MNEMON_TEST_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))


def write_warc(path, pages):
    """pages: (url, date as 2026-01-31, html) each; an optional fourth is the head's other lines."""
    with open(path, "wb") as out:
        for i, (url, date, body, *head) in enumerate(pages):
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body.encode()
            out.write(
                (
                    "WARC/1.1\r\nWARC-Type: response\r\n"
                    f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{i:012}>\r\n"
                    f"WARC-Target-URI: {url}\r\nWARC-Date: {date}T00:00:00Z\r\n"
                    f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
                ).encode()
                + block
                + b"\r\n\r\n"
            )


class Node:
    def __init__(self, program, data):
        command = [program, "serve", "--data", str(data), "--http", "0", "--allow-private"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("serving"), line + self.process.stderr.read()
        self.url = line.split(" at ")[1].strip()

    def get(self, path, **arguments):
        """Status and body."""
        url = self.url + path + ("?" + urllib.parse.urlencode(arguments) if arguments else "")
        try:
            with urllib.request.urlopen(url, timeout=120) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def search(self, q, **arguments):
        status, body = self.get("/api/v1/search", q=q, **arguments)
        assert status == 200, body
        return json.loads(body)

    def urls(self, q, **arguments):
        return [result["url"] for result in self.search(q, **arguments)["results"]]

    def index(self):
        status, body = self.get("/api/v1/search", q="any")
        return json.loads(body)["index"] if status == 200 else {"documents": 0, "captures": 0, "captures_left": 1}

    def await_index(self, documents):
        wait_for(lambda: self.index()["documents"] == documents and self.index()["captures_left"] == 0)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return out + err

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def archive(mnemon, tmp_path):
    """archive.put(pages) imports pages, archive.start() is a node that serves them."""

    class Archive:
        data = tmp_path / "data"
        nodes = []

        def put(self, pages):
            write_warc(tmp_path / "pages.warc", pages)
            done = mnemon("import", "--data", str(self.data), str(tmp_path / "pages.warc"))
            assert done.returncode == 0, done.stderr

        def start(self):
            self.nodes.append(Node(mnemon("version").args[0], self.data))
            return self.nodes[-1]

    archive = Archive()
    archive.nodes = []
    yield archive
    for node in archive.nodes:
        if node.process.poll() is None:
            node.kill()


PAGES = [
    ("http://a.example/", "2024-05-01", "<html lang=en><title>Herons</title><p>A grey heron stands in the river."),
    ("http://a.example/news", "2025-05-01", "<title>News</title><p>A heron was seen. <script>wombat</script>"),
    ("http://sub.a.example/x", "2025-06-01", "<title>Below</title><p>No bird but a <b>&lt;river&gt;</b> heron."),
    ("http://b.example/", "2026-01-31", "<title>Café &amp; <script></title><p>Ein Reiher, in English a heron."),
]


def test_words_filters_and_pages(archive):
    archive.put(PAGES)
    node = archive.start()
    node.await_index(4)
    assert sorted(node.urls("heron")) == sorted(url for url, *_ in PAGES)
    assert node.urls("herons") == ["http://a.example/"]
    assert node.urls("wombat") == []
    assert node.urls("cafe") == ["http://b.example/"]
    assert node.urls('"grey heron" -news') == ["http://a.example/"]
    assert node.urls("rei* heron") == ["http://b.example/"]
    assert sorted(node.urls("heron", host="a.example")) == [
        "http://a.example/", "http://a.example/news", "http://sub.a.example/x"]
    assert node.urls("heron", host="sub.a.example") == ["http://sub.a.example/x"]
    assert node.urls("heron", host="example.a") == []
    assert sorted(node.urls("heron", **{"from": "2025"})) == [
        "http://a.example/news", "http://b.example/", "http://sub.a.example/x"]
    assert sorted(node.urls("heron", **{"from": "2025-05-01", "to": "20250601"})) == [
        "http://a.example/news", "http://sub.a.example/x"]
    assert node.urls("heron", to="2024-05-01") == ["http://a.example/"]
    first = node.search("heron", limit=3)
    assert first["has_more"] and len(first["results"]) == 3
    rest = node.search("heron", limit=3, offset=3)
    assert not rest["has_more"] and len(rest["results"]) == 1
    (result,) = node.search("grey")["results"]
    assert result["timestamp"] == "20240501000000" and result["title"] == "Herons" and result["language"] == "en"
    assert result["snippet"] == "A grey heron stands in the river."
    assert result["snippet_parts"] == ["A ", "grey", " heron stands in the river."]
    assert result["score"] > 0


@pytest.mark.parametrize("arguments", [
    {}, {"q": ""}, {"q": '"'}, {"q": "*"}, {"q": "-heron"}, {"q": "x" * 2000}, {"q": "a " * 100},
    {"q": "heron", "from": "yesterday"}, {"q": "heron", "to": "2026-13"}, {"q": "heron", "limit": "101"},
    {"q": "heron", "limit": "0"}, {"q": "heron", "offset": "-1"}, {"q": "heron", "host": "///"},
], ids=str)
def test_wrong_questions_are_told_why(node_of_pages, arguments):
    status, body = node_of_pages.get("/api/v1/search", **arguments)
    assert status == 400 and len(json.loads(body)["text"]) > 10
    if arguments.get("q"):
        status, body = node_of_pages.get("/search", **arguments)
        assert status == (400 if "limit" not in arguments and "offset" not in arguments else status)


@pytest.fixture(scope="module")
def node_of_pages(tmp_path_factory):
    """One node for tests that only ask."""
    root = pathlib.Path(__file__).parents[2]
    program = os.environ.get("MNEMON", str(root / "build" / "mnemon"))
    path = tmp_path_factory.mktemp("search")
    write_warc(path / "pages.warc", PAGES)
    subprocess.run([program, "import", "--data", path / "data", path / "pages.warc"], check=True, capture_output=True)
    node = Node(program, path / "data")
    node.await_index(4)
    yield node
    node.kill()


@pytest.mark.parametrize("q", ["NEAR(heron river)", "heron OR", "heron AND NOT", "title:heron", "{heron}",
                               "heron') --", "he\0ron", "heron\u202e", "\ufeffheron", "heron" + "'" * 500])
def test_no_question_is_syntax(node_of_pages, q):
    assert node_of_pages.get("/api/v1/search", q=q)[0] == 200
    assert node_of_pages.get("/search", q=q)[0] == 200


def test_the_page_for_people(node_of_pages):
    node = node_of_pages
    status, body = node.get("/search")
    assert status == 200 and "4 pages in the index" in body and "<form" in body and "<ol" not in body
    status, body = node.get("/search", q="heron english")
    assert status == 200
    assert 'href="/web/20260131000000/http://b.example/"' in body
    assert "Café &#38; &#60;script&#62;" in body
    assert "<mark>heron</mark>" in body and "<mark>English</mark>" in body
    status, body = node.get("/search", q='river "<', host='"><script>alert(1)</script>')
    assert "<script>alert" not in body
    status, body = node.get("/search", q="<script>alert(1)</script>")
    assert status == 200 and "<script>alert" not in body and "No archived page" in body
    status, body = node.get("/search", q="river heron", host="sub.a.example")
    assert "&#60;<mark>river</mark>&#62; <mark>heron</mark>" in body


def test_pages_of_results_lead_to_each_other(archive):
    archive.put([(f"http://a.example/{i}", "2026-01-01", f"<title>{i}</title><p>pebble") for i in range(45)])
    node = archive.start()
    node.await_index(45)
    path = "/search?" + urllib.parse.urlencode({"q": "pebble -stone", "host": "a.example", "from": "2025"})
    seen = []
    while path is not None:
        status, body = node.get(path)
        assert status == 200
        seen += re.findall(r'<li><a href="/web/\d+/([^"]*)"', body)
        following = re.search(r'rel=next href="([^"]*)"', body)
        path = html.unescape(following.group(1)) if following else None
    assert len(seen) == len(set(seen)) == 45


def test_rules_of_access_count_at_once(archive):
    archive.put(PAGES)
    node = archive.start()
    node.await_index(4)
    (archive.data / "access.aclj").write_text(
        'example,a)/news - {"access": "block"}\nexample,b)/ - {"access": "exclude"}\n')
    wait_for(lambda: sorted(node.urls("heron")) == ["http://a.example/", "http://sub.a.example/x"])
    assert "Reiher" not in node.get("/search", q="reiher heron")[1].split("</form>")[1]
    (archive.data / "access.aclj").write_text("")
    wait_for(lambda: len(node.urls("heron")) == 4)


def test_removed_documents_are_gone(archive, mnemon):
    archive.put(PAGES)
    node = archive.start()
    node.await_index(4)
    node.stop()
    key = "0:" + hashlib.sha256(PAGES[3][2].encode()).hexdigest()
    removed = mnemon("store", "rm", "--data", str(archive.data), key)
    assert removed.returncode == 0, removed.stderr
    node = archive.start()
    wait_for(lambda: node.get("/api/v1/search", q="heron")[0] == 200)
    assert len(node.urls("heron")) == 3 and "http://b.example/" not in node.urls("heron")
    node.await_index(3)


def rows(data):
    database = sqlite3.connect(data / "search" / "text.db")
    count, distinct = database.execute(
        "SELECT count(*), count(DISTINCT hex(signature) || surt) FROM document").fetchone()
    bodies = database.execute("SELECT count(*) FROM body").fetchone()[0]
    words = database.execute("SELECT count(*) FROM words_docsize").fetchone()[0]
    state = database.execute("PRAGMA integrity_check").fetchone()[0]
    database.close()
    assert state == "ok" and count == distinct == bodies == words
    return count


def test_a_node_that_is_killed_while_it_feeds_loses_and_doubles_nothing(archive):
    count = 4000
    filler = " ".join(f"word{i * i % 977}" for i in range(400))
    archive.put([(f"http://a.example/{i}", "2026-01-01", f"<title>Page {i}</title><p>number{i} {filler}")
                 for i in range(count)])
    kills = 0
    reached = 0
    for _ in range(4):
        node = archive.start()
        wait_for(lambda: node.index()["documents"] > reached)
        reached = node.index()["documents"]
        node.kill()
        kills += reached < count
    assert kills > 0, "it was never killed while it fed"
    node = archive.start()
    node.await_index(count)
    assert node.urls("number0") == ["http://a.example/0"]
    assert node.urls(f"number{count - 1}") == [f"http://a.example/{count - 1}"]
    node.stop()
    assert rows(archive.data) == count


def test_the_page_says_how_far_the_index_is(archive):
    filler = " ".join(f"word{i}" for i in range(2000))
    archive.put([(f"http://a.example/{i}", "2026-01-01", f"<p>number{i} {filler}") for i in range(1000)])
    node = archive.start()
    seen = []

    def is_done():
        seen.append(re.sub("<[^>]*>", "", node.get("/search")[1].split("id=index-state")[1]).split("\n")[0])
        return "in the index" in seen[-1]

    wait_for(is_done)
    assert re.search(r"The full-text index is being built: [\d,]+ of about 1,000 captures read", "".join(seen)), seen[:3]
    assert "1,000 pages in the index" in seen[-1]


def overwrite(path, start):
    """Everything from there on becomes garbage; also what a log beside it could mend it from."""
    path.with_name(path.name + "-wal").unlink(missing_ok=True)
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(b"garbage!" * ((size - start) // 8))


@pytest.mark.parametrize("start", [0, 100, 4096, 12288])
def test_a_damaged_index_is_made_again(archive, start):
    archive.put(PAGES)
    node = archive.start()
    node.await_index(4)
    node.stop()
    overwrite(archive.data / "search" / "text.db", start)
    node = archive.start()
    wait_for(lambda: node.get("/api/v1/search", q="grey")[1].count("http://a.example/") == 1)
    node.await_index(4)
    assert len(node.urls("heron")) == 4
    assert node.stop().count("made again") == 1


def test_switched_off(archive):
    archive.put(PAGES)
    (archive.data / "mnemon.conf").write_text("[search]\nenabled = no\n")
    node = archive.start()
    status, body = node.get("/api/v1/search", q="heron")
    assert status == 404 and "switched off" in json.loads(body)["text"]
    status, body = node.get("/search", q="heron")
    assert status == 200 and "switched off" in body
    assert not (archive.data / "search").exists()


def test_a_real_archive(mnemon, archive):
    path = DATA / "warc" / "iana.warc.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    assert mnemon("import", "--data", str(archive.data), str(path)).returncode == 0
    node = archive.start()
    wait_for(lambda: node.index()["documents"] > 0 and node.index()["captures_left"] == 0)
    results = node.search('"root servers"', host="iana.org")["results"]
    assert results[0]["title"] == "IANA — Root Servers"
    assert node.get(f"/web/{results[0]['timestamp']}/{results[0]['url']}")[0] == 200
