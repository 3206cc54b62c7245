"""The capture that was asked for: URLs with one SURT, captures of one second, methods, types of duplicates."""
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import pytest

from test_replay import TIME, Answer, Node, record, response
from test_warc_npm import build, warcio  # noqa: F401 (fixtures)

SITE = "http://exact.example"
LATER = "20260102040000"
YEARS_LATER = "20300101000000"


def variants():
    """In each pair the second has the SURT of the first; it is newer, or of the same second and stored later."""
    yield response(f"{SITE}/AbC", "large first")
    yield response(f"{SITE}/aBc", "small first")
    yield response(f"{SITE}/q?b=2&a=1", "b first")
    yield response(f"{SITE}/q?a=1&b=2", "a first")
    yield response("http://site.example/", "plain", time14=TIME)
    yield response("https://site.example/", "secure", time14=LATER)
    yield response("https://www.site.example/", "secure www", time14=YEARS_LATER)
    yield response("https://near.example/Page", "same form", time14="20250101000000")
    yield response("http://near.example/page/", "same scheme")
    yield response("http://old.example/", "", status=301, headers=[("Location", "https://old.example/")])
    yield response("https://old.example/", "the page behind it")


def types():
    yield response("http://type.example/first", "the same words")
    yield response("http://type.example/second", "the same words", time14=LATER)


def seconds():
    """Three captures of one URL in one second, two of them of the same bytes."""
    for body in ("first witness", "second witness"):
        yield response("http://second.example/", body)
    yield response("http://second.example/", "", status=301, headers=[("Location", "/elsewhere")])
    yield response("http://second.example/", "", status=404)


FORM = "application/x-www-form-urlencoded"
MULTIPART = (b'--xyz\r\nContent-Disposition: form-data; name="who"\r\n\r\nAda L\r\n'
             b'--xyz\r\nContent-Disposition: form-data; name="n"\r\n\r\n2\r\n--xyz--\r\n')
REQUESTS = [  # method, type, body, answer
    ("POST", FORM, b"q=First&n=1", "form first"),
    ("POST", FORM, b"q=Second&n=1", "the same answer"),
    ("POST", FORM, b"q=Third&n=1", "the same answer"),
    ("POST", "application/json", b'{"q": "x y", "list": [1, 2.5, true, null], "deep": {"q": "again"}}', "json"),
    ("POST", "application/json; charset=utf-8", b'{"q": ""}', "empty json"),
    ("POST", "multipart/form-data; boundary=xyz", MULTIPART, "parts"),
    ("POST", "text/plain", b'{"plain": "json"}', "plain json"),
    ("POST", "text/plain", b"just words", "plain words"),
    ("POST", "application/octet-stream", bytes(range(1, 40)), "binary"),
    ("PUT", FORM, b"a=1", "put"),
    ("OPTIONS", "", b"", "options"),
    ("HEAD", "", b"", ""),
    ("DELETE", "", b"", "deleted"),
]


def methods():
    """Each with its request behind it; of /form there is a GET as well, of /only none."""
    for path in ("/form?x=1", "/only"):
        for method, kind, body, answer in REQUESTS:
            url = "http://method.example" + path
            identity = f"<urn:uuid:00000000-0000-4000-8000-{abs(hash((path, method, kind, body))) % 10**12:012}>"
            yield response(url, answer or b"", WARC_Record_ID=identity)
            head = f"{method} {path} HTTP/1.1\r\nHost: method.example\r\n" + (f"Content-Type: {kind}\r\n" if kind else "")
            yield record("request", url, TIME, head.encode() + b"\r\n" + body, WARC_Concurrent_To=identity,
                         Content_Type="application/http;msgtype=request")
    yield response("http://method.example/form?x=1", "the form itself", time14="20200101000000")


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    program = os.environ.get("MNEMON", str(pathlib.Path(__file__).parents[2] / "build" / "mnemon"))

    def mnemon(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=150)

    node = Node(mnemon, tmp_path_factory.mktemp("exact"), *variants(), *types(), *seconds(), *methods())
    yield node
    node.stop()


def follow(node, target, **headers):
    answer = node.get(target, **headers)
    for _ in range(5):
        if answer.status not in (301, 302):
            break
        answer = node.get(answer["Location"], **headers)
    return answer


# ---- URLs with one SURT ----


@pytest.mark.parametrize("url, body", [
    (f"{SITE}/AbC", "large first"), (f"{SITE}/aBc", "small first"),
    (f"{SITE}/q?b=2&a=1", "b first"), (f"{SITE}/q?a=1&b=2", "a first"),
    ("http://site.example/", "plain"), ("https://site.example/", "secure"),
    ("https://www.site.example/", "secure www"),
])
def test_the_url_that_was_asked_for_is_shown(node, url, body):
    for time in (TIME, LATER, YEARS_LATER, "2026", "1999"):
        answer = follow(node, f"/web/{time}id_/{url}")
        assert (answer.status, answer.text) == (200, body), time
        assert answer["X-Mnemon-Url"] is None
    gate = node.get(f"/web/{url}", Accept_Datetime="Thu, 01 Jan 2026 00:00:00 GMT")
    assert f'<{url}>; rel="original"' in gate["Link"]
    assert gate["Location"].endswith(url)
    closest = node.get("/cdx?" + urllib.parse.urlencode({"url": url, "closest": TIME, "output": "json", "limit": 1}))
    assert json.loads(closest.text)["url"] == url
    available = node.get("/wayback/available?" + urllib.parse.urlencode({"url": url, "timestamp": TIME}))
    assert json.loads(available.text)["archived_snapshots"]["closest"]["url"].endswith("/" + url)
    details = node.get("/api/v1/capture?" + urllib.parse.urlencode({"url": url, "timestamp": TIME}))
    assert json.loads(details.text)["url"] == url


def test_mnemon_get_gives_the_url_that_was_asked_for(node):
    for url, body in ((f"{SITE}/AbC", "large first"), ("http://site.example/", "plain"), ("https://www.near.example/Page", "same form")):
        found = node.mnemon("get", "--data", str(node.data), url, "--at", YEARS_LATER)
        assert found.stdout == body, found.stderr


def test_another_url_is_named_where_it_is_shown(node):
    """Scheme and www are nearer than capitals and order, whatever the times."""
    answer = follow(node, f"/web/{TIME}id_/https://www.near.example/Page")
    assert (answer.text, answer["X-Mnemon-Url"]) == ("same form", "https://near.example/Page")
    page = follow(node, f"/web/20250101000000/http://near.example/PAGE", **{"Sec-Fetch-Dest": "document", "Accept": "text/html"})
    assert "near.example" in page.text
    banner = re.search(r"<strong id=other>(.*?)</strong>", page.text)
    assert banner and "http://near.example/PAGE" in banner[1]
    same = follow(node, f"/web/{LATER}/https://site.example/", **{"Sec-Fetch-Dest": "document", "Accept": "text/html"})
    assert "id=other" not in same.text


def test_without_a_scheme_any_will_do(node):
    assert follow(node, f"/web/{LATER}id_/site.example/").text == "secure"
    assert follow(node, f"/web/{TIME}id_/site.example/").text == "plain"


def test_a_redirect_to_another_scheme_leads_on(node):
    answer = follow(node, f"/web/{TIME}/http://old.example/")
    assert (answer.status, answer.text[-18:]) == (200, "the page behind it")
    assert follow(node, f"/web/{TIME}id_/https://old.example/").text == "the page behind it"


# ---- captures of one second ----

IDS = re.compile(r"20260102030405~[0-9a-f]{16}")


def test_each_capture_of_a_second_has_an_address(node):
    url = "http://second.example/"
    objects = [json.loads(line) for line in node.get(f"/cdx?url={url}&output=json&fl=id").text.splitlines()]
    ids = [value["id"] for value in objects]
    assert len(set(ids)) == 4 and all(IDS.fullmatch(value) for value in ids)
    answers = [node.get(f"/web/{value}id_/{url}") for value in ids]
    assert sorted((answer.status, answer.text) for answer in answers) == [
        (200, "first witness"), (200, "second witness"), (301, ""), (404, "")]
    assert sorted(node.get(f"/cdx/search/cdx?url={url}&fl=id").text.split()) == sorted(ids)
    for path in (f"/cdx?url={url}", f"/cdx?url={url}&output=json", f"/web/timemap/cdxj/{url}"):  # lines whose fields have names
        assert re.findall(r'"id": "([^"]*)"', node.get(path).text) == ids, path
    listed = node.mnemon("list", url, "--json", "--data", str(node.data)).stdout
    assert re.findall(r'"id": "([^"]*)"', listed) == ids, listed
    for path in (f"/cdx?url={url}&output=text", f"/cdx/search/cdx?url={url}", f"/cdx/search/cdx?url={url}&output=json"):
        assert not IDS.search(node.get(path).text), "others count the fields"
    calendar = node.get(f"/web/*/{url}").text
    assert set(IDS.findall(calendar)) == set(ids)
    days = json.loads(node.get(f"/api/v1/calendar?url={url}").text)["days"]
    assert {capture["id"] for capture in days[0]["captures"]} == set(ids)
    for value, answer in zip(ids, answers):
        details = json.loads(node.get(f"/api/v1/capture?url={url}&timestamp={value}").text)
        assert (details["id"], details["status"]) == (value, answer.status)
        assert value in node.get(f"/details/{value}/{url}").text
        found = node.mnemon("get", "--data", str(node.data), url, "--at", value)
        assert found.stdout == answer.text, found.stderr


def test_pages_keep_the_address_of_their_capture(node):
    url = "http://second.example/"
    objects = [json.loads(line) for line in node.get(f"/cdx?url={url}&output=json&fl=id&filter=status:200").text.splitlines()]
    bodies = set()
    for value in objects:
        page = node.page(f"/web/{value['id']}/{url}")
        inner = re.search(r'<iframe id=replay.* src="([^"]*)"', page.text)[1]
        assert value["id"] in inner
        bodies.add(node.get(inner).text.split(">")[-1])
    assert bodies == {"first witness", "second witness"}
    left, right = (value["id"] for value in objects)
    diff = node.get(f"/compare/{left}/{right}/{url}?view=text").text
    assert "first witness" in diff and "second witness" in diff
    other = node.get(f"/web/{left}id_/https://www.second.example/")
    assert (other.status, other["Location"]) == (302, f"/web/{left}id_/{url}")
    assert node.get(f"/web/{TIME}~0000000000000001id_/{url}").status == 404
    assert node.get(f"/web/20260102030406{left[14:]}id_/{url}").status == 404


# ---- types of duplicates ----


def test_the_only_capture_of_a_url_is_found_by_its_type(node):
    for path in ("/cdx/search/cdx", "/cdx"):
        for only in ("mimetype:text/html", "statuscode:200"):
            found = node.get(path + "?" + urllib.parse.urlencode({"url": "type.example/*", "filter": only}))
            assert [line.split(" ")[0] for line in found.text.splitlines()] == ["example,type)/first", "example,type)/second"]
        none = node.get(path + "?" + urllib.parse.urlencode({"url": "type.example/*", "filter": "!mimetype:text/html"}))
        assert none.text == ""
    marked, others = (set(re.findall(r"type\)/(\w+)", node.get(f"/cdx?url=type.example/*&filter={only}").text))
                      for only in ("mimetype:warc/revisit", "!mimetype:warc/revisit"))
    # Records that state no digest are imported side by side: either may come first, the other is its duplicate.
    assert (len(marked), marked | others) == (1, {"first", "second"}) and not marked & others


# ---- methods ----


def send(node, method, target, kind, body):
    connection = http.client.HTTPConnection(node.host, timeout=60)
    connection.request(method, target, body or None, {"Content-Type": kind} if kind else {})
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def test_a_get_never_finds_another_method(node):
    assert follow(node, f"/web/{TIME}id_/http://method.example/form?x=1").text == "the form itself"
    assert node.get(f"/web/{TIME}id_/http://method.example/only").status == 404
    assert node.mnemon("get", "--data", str(node.data), "http://method.example/only").returncode == 1
    assert node.get("/cdx/search/cdx?url=http://method.example/only").text == ""
    available = node.get("/wayback/available?url=http://method.example/only")
    assert json.loads(available.text)["archived_snapshots"] == {}


@pytest.mark.parametrize("method, kind, body, answer", [it for it in REQUESTS if it[0] not in ("HEAD", "OPTIONS")])
def test_other_methods_are_answered_from_the_archive(node, method, kind, body, answer):
    for path in ("/form?x=1", "/only"):
        found = send(node, method, f"/web/{TIME}id_/http://method.example{path}", kind, body)
        assert (found.status, found.text) == (200, answer)
    missing = send(node, method, f"/web/{TIME}id_/http://method.example/only", FORM, b"nobody=sent&this=1")
    assert missing.status == 404
    assert send(node, method, f"/web/{TIME}id_/http://site.example/", FORM, b"a=1").status == 404  # a GET has it


def test_keys_are_those_of_others(node, warcio, tmp_path):
    """warcio.js reads what we export: the same key, method and body for every capture."""
    path = tmp_path / "out.warc.gz"
    assert node.mnemon("export", "--data", str(node.data), "-o", str(path), "http://method.example/*").returncode == 0
    done = subprocess.run(["node", warcio / "node_modules/warcio/dist/cli.js", "cdx-index", "--format", "cdxj", path],
                          cwd=warcio, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

    def entries(lines):
        """They sort arguments as whole words, we by name as surt does; they leave out text that is no JSON."""
        for line in lines.splitlines():
            key, time, rest = line.split(" ", 2)
            value = json.loads(rest)
            body = value.get("requestBody", "")
            path, _, query = urllib.parse.unquote_plus(key).partition("?")
            key = path, sorted(query.split("&"))
            if body != "__wb_post_data=anVzdCB3b3Jkcw==" and "" not in query.split("&"):
                yield key, time, value["url"], value.get("method"), body

    theirs = sorted(entries(done.stdout), key=str)
    ours = sorted(entries(node.get("/cdx?url=method.example/*").text), key=str)
    listed = sorted(entries(node.mnemon("list", "--data", str(node.data), "http://method.example/*").stdout), key=str)
    assert len(ours) == 2 * (len(REQUESTS) - 2) + 1 and listed == ours
    assert ours == theirs


def test_methods_survive_a_rebuilt_index_and_an_import(node, tmp_path):
    path = tmp_path / "out.warc.gz"
    assert node.mnemon("export", "--data", str(node.data), "-o", str(path), "http://method.example/*").returncode == 0
    data = str(tmp_path / "data")
    assert node.mnemon("import", "--data", data, str(path)).returncode == 0
    ask = ("list", "--data", data, "http://method.example/*")
    fields = [re.sub(r'"(length|offset|filename|mime)": "[^"]*",? ?', "", text) for text in
              (node.mnemon("list", "--data", str(node.data), "http://method.example/*").stdout, node.mnemon(*ask).stdout)]
    assert fields[0] == fields[1] and fields[0].count("\n") == 2 * len(REQUESTS) + 1
    before = node.mnemon(*ask).stdout
    assert node.mnemon("store", "reindex", "--data", data).returncode == 0
    assert node.mnemon(*ask).stdout == before
    assert node.mnemon("import", "--data", data, str(path)).returncode == 0
    assert node.mnemon(*ask).stdout == before  # nothing twice


def test_an_archive_of_0_2_is_upgraded_by_one_reindex(node, tmp_path):
    """Its records do not say their methods; the segment was written by that program: two POSTs, a PUT, then a GET."""
    data = tmp_path / "data"
    (data / "volumes" / "0").mkdir(parents=True)
    shutil.copy(pathlib.Path(__file__).parent / "methods-0.2.warc.zst", data / "volumes" / "0" / "00000001.warc.zst")
    ask = ("list", "--data", str(data), "*")
    assert len(node.mnemon(*ask).stdout.splitlines()) == 4  # it opens as it is

    def reindex():
        done = node.mnemon("store", "reindex", "--json", "--data", str(data))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["methods"]

    def get(url):
        return node.mnemon("get", "--data", str(data), url).stdout

    assert reindex() == 3
    listed = node.mnemon(*ask).stdout
    assert re.findall(r'"method": "(\w+)", "requestBody": "([^"]*)"', listed) == [
        ("POST", "q=First"), ("POST", "q=Second"), ("PUT", "q=Third")]
    assert reindex() == 0 and node.mnemon("store", "compact", "--dead", "0", "--data", str(data)).returncode == 0
    form = "http://old.example/form"
    assert get(form) == "the form" and get(form + "?__wb_method=POST&q=First") == "first answer"
    assert get(form + "?__wb_method=POST&q=Second") == get(form + "?__wb_method=PUT&q=Third") == "second answer"
    assert "sound" in node.mnemon("store", "verify", "--data", str(data)).stdout
