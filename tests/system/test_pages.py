"""The archive's own pages, as a browser and a program get them from a running node."""
import gzip
import html.parser
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.parse

import pytest

from conftest import ROOT
from waiting import wait_for
from webserver import Site

PROGRAM = os.environ.get("MNEMON", str(ROOT / "build" / "mnemon"))
DATA = pathlib.Path(os.environ.get("MNEMON_TEST_DATA", ROOT.parent / "shared" / "data"))
PAGES = ("/", "/holdings", "/list?url=*")


# ---- a node, and what it answers ----


class Node:
    def __init__(self, directory):
        self.directory = directory
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--http", "0", "--data", str(directory)], stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        self.address = re.search(r"http://([0-9.:]+)", line).group(1)

    def get(self, path, headers={}):
        connection = http.client.HTTPConnection(self.address, timeout=120)
        connection.request("GET", path, headers={"Accept": "text/html", **headers})
        response = connection.getresponse()
        response.content = response.read()
        connection.close()
        return response

    def page(self, path, status=200):
        response = self.get(path)
        assert response.status == status, (path, response.status, response.content[:300])
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        return Page(path, response)

    def json(self, path, status=200):
        response = self.get(path)
        assert response.status == status, (path, response.status, response.content[:300])
        assert response.headers["Content-Type"] == "application/json"
        return json.loads(response.content)

    def counted(self, captures):
        """Wait until the survey has seen so many captures."""

        def counted():
            response = self.get("/api/v1/holdings")
            holdings = json.loads(response.content) if response.status == 200 else {}
            return holdings if holdings.get("captures") == captures else None

        return wait_for(counted, "the survey does not come to its end")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=120) == 0


def plain(address):
    """Without the ids of captures, which test_exact.py looks at."""
    return address and re.sub("~[0-9a-f]{16}", "", address)


class Page(html.parser.HTMLParser):
    """What is in a page, and that it is one of ours: own scripts only, a language, a heading, labels."""

    def __init__(self, path, response):
        super().__init__()
        self.text = response.content.decode()
        self.words = ""
        self.tags = []
        self.links = []
        self.ids = set()
        self.feed(self.text)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"], path
        assert [a for t, a in self.tags if t == "html"] == [{"lang": "en"}], path
        assert sum(t == "h1" for t, _ in self.tags) == 1, path
        assert sum(t == "main" for t, _ in self.tags) == 1, path
        labelled = {a.get("for") for t, a in self.tags if t == "label"}
        for tag, attributes in self.tags:
            assert not any(name.startswith("on") or name == "style" for name in attributes), (path, tag, attributes)
            assert tag != "evil", path
            if tag == "script":
                assert attributes["src"].startswith("/static/"), path
            if tag == "img":
                assert "alt" in attributes, path
            if tag in ("input", "select") and attributes.get("type") != "hidden":
                assert attributes.get("id") in labelled, (path, attributes)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "a":
            self.links.append(plain(dict(attributes).get("href")))
        if "id" in dict(attributes):
            assert dict(attributes)["id"] not in self.ids
            self.ids.add(dict(attributes)["id"])

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A node over a directory that has been filled; all are stopped at the end."""
    started = []

    def start(directory):
        started.append(Node(directory))
        return started[-1]

    yield start
    for node in started:
        if node.process.poll() is None:
            node.stop()


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done


# ---- archives ----


@pytest.fixture(scope="module")
def empty(nodes, tmp_path_factory):
    return nodes(tmp_path_factory.mktemp("empty"))


class Small:
    """A site that was archived twice, with a change in between."""

    def __init__(self, nodes, directory):
        site = Site()
        self.url = site.url
        site.put("/", page("first", "a.png", "/gone.png"))
        site.put("/same", "<title>Same</title><p>always the same")
        site.put("/a.png", b"\x89PNG", kind="image/png")
        self.visit(directory)
        time.sleep(1.1)  # timestamps count seconds
        site.put("/", page("second", "a.png", "/gone.png"))
        site.put("/a.png", b"\x89PNG2", kind="image/png")
        self.visit(directory)
        site.close()
        self.node = nodes(directory)
        self.node.counted(10)

    def visit(self, directory):
        run("archive", "--data", directory, "--allow-private", "--delay", "0", "--quiet", self.url("/"))

    def times(self, path):
        answer = self.node.json("/api/v1/calendar?url=" + urllib.parse.quote(self.url(path), safe=""))
        return sorted(c["timestamp"] for day in answer["days"] for c in day["captures"])


def page(version, *parts):
    images = "".join(f"<img src='{part}' alt=''>" for part in parts)
    return f"<title>Home</title><h1>News</h1><p>the same line</p><p>version {version}</p><a href=/same>same</a>{images}"


@pytest.fixture(scope="module")
def small(nodes, tmp_path_factory):
    return Small(nodes, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def iana(nodes, tmp_path_factory):
    path = DATA / "warc" / "iana.warc.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    directory = tmp_path_factory.mktemp("iana")
    run("import", "--quiet", "--data", directory, path)
    node = nodes(directory)
    node.counted(171)
    return node


def warc(*captures):
    """A WARC file of responses: (url, date, status, head lines, body)."""
    out = b""
    for number, (url, date, status, head, body) in enumerate(captures):
        block = f"HTTP/1.1 {status} x\r\n{head}\r\n\r\n".encode() + body
        out += (
            f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
            f"WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http;msgtype=response\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        ).encode() + block + b"\r\n\r\n"
    return out


def filled(directory, *captures):
    path = directory / "given.warc"
    path.write_bytes(warc(*captures))
    run("import", "--quiet", "--data", directory / "data", path)
    return directory / "data"


# ---- empty ----


def test_an_empty_archive_says_how_to_begin(empty):
    start = empty.page("/")
    assert "mnemon archive https://example.org/" in start.words
    assert "/save" in start.links and "/jobs" in start.links
    empty.counted(0)
    assert "Nothing yet" in empty.page("/holdings").words
    assert "No address matches" in empty.page("/list?url=example.org/*").words
    assert empty.json("/api/v1/suggest?q=ex")["suggestions"] == []


def test_what_is_not_there_is_a_page_with_a_way_on(empty):
    for path in ("/details/2026/http://example.org/", "/compare/2025/2026/http://example.org/"):
        assert "no capture" in empty.page(path, 404).words
    missing = empty.page("/web/*/http://example.org/a", 404)
    assert "/save/http://example.org/a" in missing.links
    for path in ("calendar", "capture", "parts"):
        assert empty.json(f"/api/v1/{path}?url=http://example.org/", 404)["error"] == "not_found"


def test_bad_questions_are_refused_with_the_reason(empty):
    for path in (
        "/details/x/http://example.org/",
        "/details/20261399/http://example.org/",
        "/details/999999999999999/http://example.org/",
        "/details/2026/",
        "/details/2026",
        "/details/",
        "/compare/2026/http://example.org/",
        "/list",
        "/list?url=",
        "/list?url=example.org/*&after=nonsense",
        "/?q=" + "x" * 3000,
    ):
        assert empty.get(path).status == 400, path
    assert "not a time" in empty.page("/details/x/http://example.org/", 400).words
    for path in ("suggest", "calendar", "capture", "parts", "capture?url=", "capture?url=a.org&timestamp=x"):
        assert empty.json("/api/v1/" + path, 400)["error"] == "invalid"


# ---- start ----


def test_one_field_leads_to_calendar_list_or_search(empty):
    for question, place in (
        ("example.org", "/web/*/example.org"),
        (" https://example.org/a?b=c ", "/web/*/https://example.org/a?b=c"),
        ("localhost:8080/x", "/web/*/localhost:8080/x"),
        ("example.org/news*", "/web/*/example.org/news*"),
        ("*.example.org", "/web/*/*.example.org"),
        ("old news", "/search?q=old%20news"),
        ("news", "/search?q=news"),
        ("a\r\nSet-Cookie: x=y", "/search?q=a%0D%0ASet-Cookie%3A%20x%3Dy"),
        ("a.org/\r\nX:y", "/web/*/a.org/%0D%0AX:y"),
    ):
        response = empty.get("/?q=" + urllib.parse.quote(question, safe=""))
        assert response.status == 302
        assert response.headers["Location"] == place, question


def test_the_start_page_shows_what_is_new_and_how_much_there_is(small):
    start = small.node.page("/")
    last = small.times("/")[-1]
    assert f"/web/{last}/{small.url('/')}" in start.links
    assert f"/web/*/{small.url('/')}" in start.links
    assert not any("a.png" in link for link in start.links)  # a part of a page, not one
    assert re.search(r"10\s*captures|captures\s*10", start.words)


def test_suggestions_are_hosts_and_addresses_that_begin_so(iana):
    hosts = iana.json("/api/v1/suggest?q=ian")["suggestions"]
    assert hosts == [{"kind": "host", "text": "iana.org", "captures": 171}]
    assert iana.json("/api/v1/suggest?q=http://www.IANA")["suggestions"] == hosts
    urls = iana.json("/api/v1/suggest?q=iana.org/do")["suggestions"]
    assert 1 < len(urls) <= 10
    assert all(u["kind"] == "url" and u["text"].startswith("http://www.iana.org/do") for u in urls)
    assert len({u["text"] for u in urls}) == len(urls)
    assert iana.json("/api/v1/suggest?q=zzz")["suggestions"] == []


# ---- calendar ----


def test_the_calendar_shows_years_days_and_what_changed(small):
    calendar = small.node.page(f"/web/*/{small.url('/')}")
    times = small.times("/")
    assert len(times) == 2
    for stamp in times:
        assert f"/web/{stamp}/{small.url('/')}" in calendar.links
    year = times[0][:4]
    assert f"/web/{year}*/{small.url('/')}" in calendar.links
    assert "2 captures" in calendar.words
    assert "unchanged" not in calendar.words
    assert "unchanged" in small.node.page(f"/web/*/{small.url('/same')}").words
    assert sum(t == "table" for t, _ in calendar.tags) == 12


def test_another_year_can_be_chosen(nodes, tmp_path):
    at = [("http://a.org/x", date, 200, "Content-Type: text/html", date.encode())
          for date in ("2001-02-03T04:05:06Z", "2001-02-03T07:08:09Z", "2020-02-29T00:00:00Z", "2020-12-31T23:59:59Z")]
    at.append(("http://a.org/x", "2020-05-05T00:00:00Z", 404, "Content-Type: text/html", b"no"))
    at.append(("http://a.org/x", "2020-06-06T00:00:00Z", 302, "Location: /y\r\nContent-Type: text/html", b""))
    node = nodes(filled(tmp_path, *at))
    newest = node.json("/api/v1/calendar?url=a.org/x")
    assert [(y["year"], y["count"]) for y in newest["years"]] == [(2001, 2), (2020, 4)]
    assert [(d["date"], d["count"]) for d in newest["days"]] == [
        ("2020-02-29", 1), ("2020-05-05", 1), ("2020-06-06", 1), ("2020-12-31", 1)]
    older = node.json("/api/v1/calendar?url=a.org/x&year=2001")
    assert older["years"] == newest["years"] and older["first"] == "20010203040506"
    assert [(d["date"], d["count"]) for d in older["days"]] == [("2001-02-03", 2)]
    page = node.page("/web/2001*/a.org/x")
    assert "/web/20010203040506/http://a.org/x" in page.links
    labels = [a.get("aria-label", "") for _, a in node.page("/web/*/a.org/x").tags]
    assert "5 May: 1 capture, 00:00:00, status 404" in labels
    classes = [a.get("class", "") for _, a in node.page("/web/*/a.org/x").tags]
    assert "day level-1 failed" in classes and "day level-1 moved" in classes
    node.page("/web/1999*/a.org/x")


# ---- list ----


def rows(page):
    return [link for link in page.links if link.startswith("/web/*/")]


def test_a_prefix_is_listed_with_filters(iana):
    everything = iana.page("/web/*/iana.org/*")
    assert "/web/*/http://www.iana.org/" in rows(everything)
    count = len(rows(everything))
    assert 20 < count < 100 and "More addresses" not in everything.words
    images = iana.page("/list?url=iana.org/*&type=image")
    assert 0 < len(rows(images)) < count
    assert all(re.search(r"\.(svg|png)$", row) for row in rows(images))
    assert rows(iana.page("/list?url=iana.org/*&text=LOGO&type=image"))
    assert all("logo" in row for row in rows(iana.page("/list?url=iana.org/*&text=LOGO")))
    redirects = iana.page("/list?url=*&status=3")
    assert 0 < len(rows(redirects)) < count
    assert rows(iana.page("/list?url=iana.org/*&status=299")) == []


def test_a_long_list_goes_on_page_by_page(nodes, tmp_path):
    captures = [(f"http://a.org/{n:04}", "2020-01-01T00:00:00Z", 200, "Content-Type: text/html", b"%d" % n)
                for n in range(250)]
    node = nodes(filled(tmp_path, *captures))
    path = "/web/*/a.org/*"
    seen = []
    for _ in range(5):
        page = node.page(path)
        seen += rows(page)
        more = [a["href"] for t, a in page.tags if t == "a" and a.get("rel") == "next"]
        if not more:
            break
        path = more[0]
    assert seen == [f"/web/*/http://a.org/{n:04}" for n in range(250)]


# ---- details ----


def test_details_tell_all_of_a_capture(small):
    stamp = small.times("/same")[-1]
    url = small.url("/same")
    page = small.node.page(f"/details/{stamp}/{url}")
    answer = small.node.json(f"/api/v1/capture?url={url}&timestamp={stamp}")
    for text in (answer["digest"], answer["key"], answer["record_id"], "keeps none", "ETag", "127.0.2.1"):
        assert text in page.words
    before = small.node.page(f"/details/{answer['previous']}/{url}")
    assert "GET /same HTTP/1.1" in before.words and "keeps none" not in before.words, "the visit that brought the page has its request"
    assert answer["revisit"] and answer["repeats"]["url"] == url
    assert f"/details/{answer['repeats']['timestamp']}/{url}" in page.links
    assert answer["previous"] == small.times("/same")[0]
    for link in (f"/web/{stamp}/{url}", f"/web/{stamp}id_/{url}", f"/details/{stamp}/{url}?warc"):
        assert link in page.links
    first = small.node.json(f"/api/v1/capture?url={url}&timestamp={answer['previous']}")
    assert first["digest"] == answer["digest"] and not first["revisit"] and first["next"] == stamp


def test_a_time_that_is_not_exact_leads_to_the_closest(small):
    url = small.url("/same")
    response = small.node.get(f"/details/2001/{url}")
    assert response.status == 302
    assert plain(response.headers["Location"]) == f"/details/{small.times('/same')[0]}/{url}"


def test_a_capture_can_be_taken_away_as_a_file_that_stands_alone(small, tmp_path):
    for path, status, title in (("/", 200, "Home"), ("/same", 200, "Same"), ("/gone.png", 404, "not here")):
        for stamp in small.times(path):
            response = small.node.get(f"/details/{stamp}/{small.url(path)}?warc")
            assert response.status == 200
            assert response.headers["Content-Disposition"] == f'attachment; filename="capture-{stamp}.warc.gz"'
            text = gzip.decompress(response.content).decode()
            unchanged = path == "/same" and stamp != small.times(path)[0]  # such a visit keeps no request
            assert re.findall(r"WARC-Type: (\w+)", text) == ["warcinfo", "response", *([] if unchanged else ["request"])]
            assert title in text
            file = tmp_path / "one.warc.gz"
            file.write_bytes(response.content)
            data = tmp_path / f"{stamp}{path.replace('/', '_')}"
            run("import", "--quiet", "--data", data, file)
            line = run("list", "--data", data, "*").stdout
            assert f" {stamp} " in line and f'"status": "{status}"' in line


def test_an_argument_of_ours_is_told_from_one_of_the_url(nodes, tmp_path):
    node = nodes(filled(tmp_path, ("http://a.org/?warc", "2020-01-01T00:00:00Z", 200, "X: y", b"one"),
                        ("http://a.org/?a=1&b=2", "2020-01-01T00:00:00Z", 200, "X: y", b"two")))
    assert node.get("/details/20200101000000/http://a.org/?warc").status == 404
    page = node.page("/details/20200101000000/http://a.org/?warc&view=page")
    assert "/details/20200101000000/http://a.org/?warc&warc" in page.links
    assert b"one" in gzip.decompress(node.get("/details/20200101000000/http://a.org/?warc&warc").content)
    assert "http://a.org/?a=1&b=2" in node.page("/details/20200101000000/http://a.org/?a=1&b=2").words
    for path in ("/details/2019/http://a.org/?warc&view=page", "/details/2019/http://A.org/?warc&warc"):
        place = node.get(path).headers["Location"]
        assert plain(place).startswith("/details/20200101000000/http://a.org/?warc&") and node.get(place).status == 200


# ---- parts, comparison ----


def test_the_parts_of_a_page_and_their_times(small):
    first, second = small.times("/")
    answer = small.node.json(f"/api/v1/parts?url={small.url('/')}&timestamp={second}")
    by_url = {part["url"]: part for part in answer["parts"]}
    assert set(by_url) == {small.url("/a.png"), small.url("/gone.png")}
    assert by_url[small.url("/a.png")]["status"] == 200
    assert by_url[small.url("/gone.png")]["status"] == 404
    assert answer["oldest"] <= second <= answer["newest"] and answer["missing"] == 0
    older = small.node.json(f"/api/v1/parts?url={small.url('/')}&timestamp={first}")
    assert older["newest"] < answer["newest"]


def test_a_part_that_was_never_captured_is_missing(nodes, tmp_path):
    body = b"<img src=there.png><img src=missing.png><a href=page>not a part</a>"
    node = nodes(filled(tmp_path, ("http://a.org/", "2020-01-01T00:00:10Z", 200, "Content-Type: text/html", body),
                        ("http://a.org/there.png", "2020-01-01T00:00:00Z", 200, "Content-Type: image/png", b"p")))
    answer = node.json("/api/v1/parts?url=a.org")
    assert answer["missing"] == 1
    assert answer["parts"][0] == {"url": "http://a.org/there.png", "timestamp": "20200101000000", "status": 200,
                                  "seconds_apart": -10}
    assert answer["parts"][1]["timestamp"] is None
    assert (answer["oldest"], answer["newest"]) == ("20200101000000", "20200101000010")


def test_versions_are_compared_side_by_side_and_by_lines(small):
    first, second = small.times("/")
    path = f"/compare/{first}/{second}/{small.url('/')}"
    frames = [a for t, a in small.node.page(path).tags if t == "iframe"]
    assert [plain(f["src"]) for f in frames] == [f"/web/{t}mp_/{small.url('/')}" for t in (first, second)]
    assert all(f["sandbox"] == "allow-scripts" and f["title"] for f in frames)
    text = small.node.page(path + "?view=text").text
    assert re.findall(r"<del>(.*?)</del><ins>(.*?)</ins>", text) == [("version first", "version second")]
    assert "the same line" in text
    assert "&#60;p&#62;version second" in small.node.page(path + "?view=source").text
    same = small.node.page(f"/compare/{small.times('/same')[0]}/{second}/{small.url('/same')}?view=text")
    assert "the same, byte for byte" in same.words
    assert "not text" in small.node.page(f"/compare/{first}/{second}/{small.url('/a.png')}?view=text").words


def test_compressed_and_foreign_pages_are_compared_as_they_read(nodes, tmp_path):
    def page(text):
        return gzip.compress(f"<meta charset=iso-8859-1><p>ein</p><p>{text}</p>".encode("iso-8859-1"))

    head = "Content-Type: text/html\r\nContent-Encoding: gzip"
    node = nodes(filled(tmp_path, ("http://a.org/", "2020-01-01T00:00:00Z", 200, head, page("Bär")),
                        ("http://a.org/", "2021-01-01T00:00:00Z", 200, head, page("Löwe"))))
    text = node.page("/compare/20200101/20210101/http://a.org/?view=text").text
    assert "<del>Bär</del><ins>Löwe</ins>" in text


# ---- holdings ----


def test_holdings_count_hosts_types_statuses_and_months(iana):
    answer = iana.json("/api/v1/holdings")
    assert answer["complete"] and answer["hosts_count"] == 1
    assert answer["hosts"][0]["host"] == "iana.org" and answer["hosts"][0]["captures"] == 171
    assert sum(t["captures"] for t in answer["types"]) == 171
    assert sum(answer["statuses"].values()) == 171
    assert [(m["month"], m["captures"]) for m in answer["months"]] == [("2014-01", 171)]
    assert answer["revisits"] > 0 and answer["saved_size"] > 0
    assert answer["volumes"][0]["up"] and answer["volumes"][0]["size"] > 0
    page = iana.page("/holdings")
    assert "iana.org" in page.words and "text/html" in page.words and "Counted" in page.words
    for order in ("name", "size", "last", "captures", "nonsense"):
        iana.page(f"/holdings?sort={order}&from=0")
    iana.page("/holdings?from=99999999999999999999")


# ---- hostile, and ruled out ----

EVIL = "\"'><evil onload=x>&amp;"


def test_nothing_that_was_archived_becomes_markup(nodes, tmp_path):
    url = "http://a.org/" + EVIL
    head = f"Content-Type: text/html\r\nX-{EVIL}: {EVIL}"
    directory = filled(
        tmp_path,
        (url, "2020-01-01T00:00:00Z", 200, head, f"<title>{EVIL}</title><p>{EVIL}".encode()),
        (url, "2021-01-01T00:00:00Z", 200, head, f"<title>{EVIL}</title>\xff\xfe<p>&lt;evil&gt;".encode("latin1")),
        ("http://a.org/t", "2021-01-01T00:00:00Z", 200, "Content-Type: <evil>/<evil>", b"x"),
    )
    node = nodes(directory)
    node.counted(3)
    quoted = urllib.parse.quote(url, safe=":/")
    for path in (
        "/",
        "/holdings",
        "/list?url=*",
        "/list?url=a.org/*&text=" + urllib.parse.quote(EVIL),
        "/list?url=a.org/*&type=%3Cevil%3E&status=%3Cevil%3E",
        "/web/*/" + quoted,
        "/web/*/a.org/*",
        "/details/20200101000000/" + quoted,
        "/compare/2020/2021/" + quoted,
        "/compare/2020/2021/" + quoted + "?view=text",
        "/compare/2020/2021/" + quoted + "?view=source",
    ):
        page = node.page(path)  # Page itself looks for what must not be there
        for link in page.links:
            assert link.startswith(("/", "#")), (path, link)
    for path in ("/details/2020/http://<evil>/", "/web/*/http://b.org/" + urllib.parse.quote(EVIL)):
        response = node.get(path.replace("<", "%3C").replace(">", "%3E"))
        assert response.status in (400, 404)
        assert b"<evil" not in response.content
    json.loads(node.get("/api/v1/capture?url=" + urllib.parse.quote(url)).content)
    json.loads(node.get("/api/v1/suggest?q=a.org/").content)


def test_rules_of_access_hold_for_all_pages(nodes, tmp_path):
    captures = [(f"http://{host}/", f"{year}-01-01T00:00:00Z", 200, "Content-Type: text/html\r\nX-Secret: hush",
                 f"<p>{host} {year}".encode())
                for host in ("open.org", "blocked.org", "hidden.org") for year in (2020, 2021)]
    node = nodes(filled(tmp_path, *captures))
    node.counted(6)
    assert "hidden.org" in node.page("/").words
    (tmp_path / "data" / "access.aclj").write_text(
        'org,blocked)/ - {"access": "block"}\norg,hidden)/ - {"access": "exclude"}\n'
    )
    wait_for(lambda: "hidden.org" not in node.page("/").words, "the rules do not come into force")
    for path in ("/", "/holdings", "/list?url=*"):
        page = node.page(path)
        assert "hidden.org" not in page.words and "open.org" in page.words, path
    assert [s["text"] for s in node.json("/api/v1/suggest?q=hidd")["suggestions"]] == []
    assert [s["text"] for s in node.json("/api/v1/suggest?q=hidden.org/")["suggestions"]] == []
    assert [h["host"] for h in node.json("/api/v1/holdings")["hosts"]] == ["blocked.org", "open.org"]
    for path in ("/web/*/hidden.org", "/details/20200101000000/http://hidden.org/",
                 "/details/20200101000000/http://hidden.org/?warc", "/compare/2020/2021/http://hidden.org/"):
        assert node.get(path).status == 404, path
    assert node.get("/web/*/blocked.org").status == 200
    for path in ("/details/20200101000000/http://blocked.org/", "/details/20200101000000/http://blocked.org/?warc",
                 "/compare/2020/2021/http://blocked.org/?view=text", "/compare/2020/2021/http://blocked.org/"):
        response = node.get(path)
        assert response.status == 451 and b"hush" not in response.content, path
    for path in ("capture", "parts"):
        assert node.get(f"/api/v1/{path}?url=blocked.org").status == 451
        assert node.get(f"/api/v1/{path}?url=hidden.org").status == 404


def test_unknown_paths_have_a_page_for_people_and_a_line_for_programs(empty):
    assert "/holdings" in empty.page("/nonsense", 404).links
    response = empty.get("/nonsense", {"Accept": "*/*"})
    assert (response.status, response.content) == (404, b"there is no such page\n")
    assert empty.json("/api/v1/nonsense", 404)["error"] == "unsupported"
