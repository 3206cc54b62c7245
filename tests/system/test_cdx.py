"""The CDX server interface in both dialects, and availability, over HTTP."""
import datetime
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import urllib.parse

import pytest

from test_replay import DATA, Node, response

IA = "/cdx/search/cdx"
PYWB = "/cdx"
FIELDS = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]


def target(path, **parameters):
    """filter=["a", "b"] stands for two parameters; a trailing _ is dropped (from_)."""
    named = {name.rstrip("_"): value for name, value in parameters.items()}
    return path + "?" + urllib.parse.urlencode(named, doseq=True)


class Cdx:
    def __init__(self, node):
        self.node = node

    def get(self, path, **parameters):
        return self.node.get(target(path, **parameters))

    def lines(self, path, **parameters):
        answer = self.get(path, **parameters)
        assert answer.status == 200, answer.text
        return answer.text.splitlines()

    def rows(self, **parameters):
        """Of the Internet Archive's dialect, as lists of words."""
        return [line.split(" ") for line in self.lines(IA, **parameters)]

    def objects(self, **parameters):
        """Of pywb's."""
        return [json.loads(line) for line in self.lines(PYWB, output="json", **parameters)]

    def refused(self, path, **parameters):
        answer = self.get(path, **parameters)
        assert answer.status == 400, (answer.status, answer.text)
        return answer.text


def start(directory, *records, files=()):
    program = os.environ.get("MNEMON", str(pathlib.Path(__file__).parents[2] / "build" / "mnemon"))

    def mnemon(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=150)

    return Node(mnemon, directory, *records, files=files)


def captures():
    """Three hosts; /a twelve times a year in 2024 and 2025, some unchanged; other types and statuses."""
    for year in (2024, 2025):
        for month in range(1, 13):
            body = f"version {month // 3} of {year}"
            yield response("http://example.org/a", body, time14=f"{year}{month:02}15120000")
    for i in range(40):
        yield response(f"http://example.org/dir/{i:02}", f"page {i}", "text/plain" if i % 2 else "text/html", time14=f"202501010000{i:02}")
    yield response("http://example.org/dir", "the directory itself", time14="20250101000000")
    yield response("http://example.org/director", "another", time14="20250101000000")
    yield response("http://example.org/gone", "gone", status=404)
    yield response("http://example.org/moved", "", status=301, headers=[("Location", "/a")])
    yield response("http://example.org/moved", "", status=200, time14="20200101000000")
    yield response("http://sub.example.org/x?b=2&a=1", "sub", "image/png")
    yield response("http://example.com/other", "com")
    yield response("http://example.org/q?x=%E4%B8%96 y", "odd")


@pytest.fixture(scope="module")
def cdx(tmp_path_factory):
    node = start(tmp_path_factory.mktemp("cdx"), *captures())
    yield Cdx(node)
    node.stop()


@pytest.fixture(scope="module")
def iana(tmp_path_factory):
    path = DATA / "warc" / "iana.warc.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there (MNEMON_TEST_DATA)")
    node = start(tmp_path_factory.mktemp("iana"), files=[path])
    yield Cdx(node)
    node.stop()


def parse_cdxj(line):
    key, time14, rest = line.split(" ", 2)
    return key, time14, json.loads(rest)


# ---- against an index by others ----


def test_cdxj_equals_the_index_by_another_tool(iana):
    wanted = [parse_cdxj(line) for line in (DATA / "warc" / "iana.cdxj").read_text().splitlines()]
    found = [parse_cdxj(line) for line in iana.lines(PYWB, url="*")]
    assert sorted((key, time14, value["url"]) for key, time14, value in found) == sorted((key, time14, value["url"]) for key, time14, value in wanted)
    here = {(key, time14): value for key, time14, value in found}
    resolved = {(value["urlkey"], value["timestamp"]): value for value in iana.objects(url="*", resolveRevisits="true")}
    for key, time14, value in wanted:
        # The import finds duplicates that were stored twice there: revisits here, whose own type is the same.
        assert value["mime"] in (here[key, time14]["mime"], resolved[key, time14]["mime"])
        assert "status" not in value or here[key, time14]["status"] == value["status"]
    # Equal digests there are equal digests here.
    theirs = {(key, time14): value["digest"] for key, time14, value in wanted}
    ours = {(key, time14): value["digest"] for key, time14, value in found}
    groups = {}
    for place, digest in theirs.items():
        groups.setdefault(digest, set()).add(ours[place])
    assert all(len(group) == 1 for group in groups.values())
    assert [(key, time14) for key, time14, _ in found] == sorted((key, time14) for key, time14, _ in found)


def test_cdxj_equals_mnemon_list(iana, mnemon):
    found = iana.get(PYWB, url="*").text
    iana.node.stop()
    listed = mnemon("list", "*", "--data", str(iana.node.data)).stdout
    as_json = mnemon("list", "*", "--data", str(iana.node.data), "--json").stdout
    iana.node.start()
    assert re.sub(r', "(id|provenance|voucher)": "[^"]*"', "", found) == listed, "but for what OutbackCDX does not take"
    marked = iana.objects(url="*")
    assert {one.pop("provenance") for one in marked} == {"imported"} and len({one.pop("voucher") for one in marked}) == 1
    assert [json.loads(line) for line in as_json.splitlines()] == marked


# ---- URLs ----


@pytest.mark.parametrize("query, expected", [
    ({"url": "example.org/dir"}, 1),
    ({"url": "http://www.EXAMPLE.org:80/dir/#x"}, 1),
    ({"url": "example.org/dir/*"}, 41),
    ({"url": "example.org/dir*"}, 42),
    ({"url": "example.org/dir/", "matchType": "prefix"}, 41),
    ({"url": "example.org/dir", "matchType": "prefix"}, 42),
    ({"url": "example.org/dir/07", "matchType": "exact"}, 1),
    ({"url": "example.org/a", "matchType": "host"}, 24 + 40 + 6),
    ({"url": "example.org", "matchType": "domain"}, 24 + 40 + 7),
    ({"url": "*.example.org"}, 24 + 40 + 7),
    ({"url": "*.example.org", "matchType": "domain"}, 24 + 40 + 7),
    ({"url": "*.example.org/*"}, 24 + 40 + 7),
    ({"url": "sub.example.org/x?a=1&b=2"}, 1),
    ({"url": "*"}, 24 + 40 + 8),
    ({"url": "example.org/none"}, 0),
    ({"url": "none.example"}, 0),
])
@pytest.mark.parametrize("path", [IA, PYWB])
def test_match_types(cdx, path, query, expected):
    assert len(cdx.lines(path, **query)) == expected


def test_nothing_held_is_an_empty_answer(cdx):
    for path in (IA, PYWB):
        answer = cdx.get(path, url="none.example")
        assert (answer.status, answer.body) == (200, b"")
    assert cdx.get(IA, url="none.example", output="json").text == "[]\n"
    assert cdx.get(PYWB, url="none.example", output="json").text == ""


# ---- forms of the answer ----


def test_the_seven_fields(cdx):
    answer = cdx.get(IA, url="example.org/gone")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert re.fullmatch(r"org,example\)/gone 20260102030405 http://example.org/gone text/html 404 sha256:[0-9a-f]{64} \d+\n", answer.text)


def test_json_of_both(cdx):
    answer = cdx.get(IA, url="example.org/moved", output="json")
    assert answer["Content-Type"] == "application/json"
    table = json.loads(answer.text)
    assert table[0] == FIELDS and [row[4] for row in table[1:]] == ["200", "301"]
    answer = cdx.get(PYWB, url="example.org/moved", output="json")
    assert answer["Content-Type"] == "application/x-ndjson"
    objects = [json.loads(line) for line in answer.text.splitlines()]
    assert [list(value) for value in objects] == [["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename", "id", "provenance", "voucher"]] * 2
    assert cdx.get(PYWB, url="example.org/moved")["Content-Type"] == "text/x-cdxj; charset=utf-8"


def test_fields(cdx):
    assert cdx.lines(IA, url="example.org/gone", fl="statuscode,timestamp") == ["404 20260102030405"]
    assert cdx.lines(IA, url="example.org/gone", fl="status, url,mime") == ["404 http://example.org/gone text/html"]
    assert cdx.lines(PYWB, url="example.org/gone", fields="urlkey,status") == ['org,example)/gone 20260102030405 {"status": "404"}']
    assert cdx.lines(PYWB, url="example.org/gone", fl="original,access", output="text") == ["http://example.org/gone allow"]
    assert cdx.objects(url="example.org/gone", fields="status,url") == [{"status": "404", "url": "http://example.org/gone"}]
    assert cdx.lines(PYWB, url="example.org/gone", fields="mime", output="cdxj") == ['org,example)/gone 20260102030405 {"mime": "text/html"}']
    assert json.loads(cdx.get(IA, url="example.org/gone", fl="statuscode", output="json").text) == [["statuscode"], ["404"]]
    assert cdx.lines(IA, url="example.org/gone", output="cdxj") == cdx.lines(IA, url="example.org/gone", output="cdxj", fl=",".join(FIELDS))
    offset, filename = cdx.lines(IA, url="example.org/gone", fl="offset,filename")[0].split()
    assert int(offset) > 0 and filename.endswith(".warc.zst")


def test_closest_wins_over_reverse(cdx):
    """As in pywb: who names a time wants what is near it."""
    wanted = cdx.lines(PYWB, url="example.org/a", closest="20250301")
    assert wanted != cdx.lines(PYWB, url="example.org/a", reverse="true")
    assert cdx.lines(PYWB, url="example.org/a", closest="20250301", reverse="true") == wanted
    assert cdx.lines(PYWB, url="example.org/a", closest="20250301", sort="reverse") == wanted


def test_captures_as_links(cdx):
    answer = cdx.get(PYWB, url="example.org/moved", output="link")
    assert answer["Content-Type"] == "application/link-format"
    origin = f"http://{cdx.node.host}/web"
    assert answer.text == (f'<{origin}/20200101000000/http://example.org/moved>; rel="memento"; datetime="Wed, 01 Jan 2020 00:00:00 GMT",\n'
                           f'<{origin}/20260102030405/http://example.org/moved>; rel="memento"; datetime="Fri, 02 Jan 2026 03:04:05 GMT"\n')
    assert cdx.get(IA, url="none.example", output="link").text == ""
    assert "resume key" in cdx.refused(PYWB, url="example.org/a", output="link", showResumeKey="true")


def test_lines_stay_lines(cdx):
    """Whatever a URL has in it, a line has its seven words."""
    assert all(len(row) == 7 for row in cdx.rows(url="*"))


def test_head(cdx):
    answer = cdx.node.get(target(IA, url="example.org/gone"), method="HEAD")
    assert answer.status == 200 and answer.body == b""


# ---- time, limit, order ----


def times(rows):
    return [row[1] for row in rows]


def test_from_and_to(cdx):
    assert len(cdx.rows(url="example.org/a", from_="2025")) == 12
    assert len(cdx.rows(url="example.org/a", to="2024")) == 12
    assert times(cdx.rows(url="example.org/a", from_="202403", to="202404")) == ["20240315120000", "20240415120000"]
    assert times(cdx.rows(url="example.org/a", from_="20240315120000", to="20240315120000")) == ["20240315120000"]
    assert len(cdx.rows(url="example.org/a", from_="20240315120001", to="20240415115959")) == 0
    assert len(cdx.rows(url="example.org/a", from_="2025", to="2024")) == 0
    assert len(cdx.rows(url="example.org/*", from_="2020", to="2020")) == 1
    assert len(cdx.rows(url="example.org/a", from_="2", to="")) == 24


def test_limit_and_offset(cdx):
    everything = cdx.rows(url="example.org/a")
    assert cdx.rows(url="example.org/a", limit=5) == everything[:5]
    assert cdx.rows(url="example.org/a", limit=5, offset=7) == everything[7:12]
    assert cdx.rows(url="example.org/a", offset=20) == everything[20:]
    assert cdx.rows(url="example.org/a", offset=30) == []
    assert cdx.rows(url="example.org/a", limit=0) == []
    assert cdx.rows(url="example.org/a", limit=99999999999999) == everything
    for count in (1, 2, 23, 24, 25, 1000):
        assert cdx.rows(url="example.org/a", limit=-count) == everything[-count:], count
    assert cdx.rows(url="example.org/a", fastLatest="true") == everything[-1:]
    assert cdx.rows(url="example.org/a", fastLatest="true", limit=3) == everything[-3:]
    assert cdx.rows(url="example.org/none", limit=-3) == []
    assert cdx.rows(url="example.org/*", limit=-3, filter="statuscode:200") == [row for row in cdx.rows(url="example.org/*") if row[4] == "200"][-3:]


def test_reverse_is_forward_turned_round(cdx):
    for parameters in ({"url": "example.org/a"}, {"url": "*.example.org"}, {"url": "*"}, {"url": "*", "filter": "!mimetype:text/html"},
                       {"url": "*", "collapse": "urlkey"}, {"url": "example.org/a", "collapse": "timestamp:4"}, {"url": "example.org/a", "collapse": "digest"},
                       {"url": "*", "collapse": ["digest", "timestamp:6"]}, {"url": "*", "collapse": ["statuscode", "mimetype", "timestamp:4"]}):
        forward = cdx.rows(**parameters)
        assert cdx.rows(**parameters, sort="reverse") == forward[::-1], parameters
        assert cdx.rows(**parameters, sort="reverse", limit=3) == forward[::-1][:3], parameters
        for count in (1, 2, 5):
            assert cdx.rows(**parameters, limit=-count) == forward[-count:], parameters
            assert cdx.rows(**parameters, sort="reverse", limit=-count) == forward[::-1][-count:], parameters
    assert [value["timestamp"] for value in cdx.objects(url="example.org/a", reverse="true", limit=1)] == ["20251215120000"]


def seconds(time14):
    return datetime.datetime.strptime(time14, "%Y%m%d%H%M%S").timestamp()


@pytest.mark.parametrize("closest", ["2024", "20240715", "20250115120000", "19960101", "20991231235959", "20250630235959"])
def test_closest_goes_outwards(cdx, closest):
    full = (closest + "0101000000"[len(closest) - 4:] if len(closest) < 14 else closest)[:14]
    everything = times(cdx.rows(url="example.org/a"))
    expected = sorted(everything, key=lambda time14: (abs(seconds(time14) - seconds(full)), time14))
    assert times(cdx.rows(url="example.org/a", sort="closest", closest=closest)) == expected
    assert times(cdx.rows(url="example.org/a", sort="closest", closest=closest, limit=3)) == expected[:3]
    assert [value["timestamp"] for value in cdx.objects(url="example.org/a", closest=closest)] == expected
    inside = [time14 for time14 in expected if "202405" <= time14 < "202412"]
    assert times(cdx.rows(url="example.org/a", sort="closest", closest=closest, from_="202405", to="202411")) == inside
    passing = [row[1] for row in cdx.rows(url="example.org/a", filter="mimetype:warc/revisit")]
    assert times(cdx.rows(url="example.org/a", sort="closest", closest=closest, filter="mimetype:warc/revisit")) == [time14 for time14 in expected if time14 in passing]


# ---- filters and collapses ----


def test_filters_of_the_internet_archive(cdx):
    everything = cdx.rows(url="*")

    def expect(keep, **parameters):
        assert cdx.rows(url="*", **parameters) == [row for row in everything if keep(row)], parameters

    expect(lambda row: row[4] == "404", filter="statuscode:404")
    expect(lambda row: row[4] != "200", filter="!statuscode:200")
    expect(lambda row: row[4] in ("404", "301"), filter="statuscode:[34]..")
    expect(lambda row: False, filter="statuscode:4")  # all of it must match
    expect(lambda row: row[3].startswith("text/") and row[2].endswith("1"), filter=["mimetype:text/.*", "original:.*1"])
    expect(lambda row: row[3] not in ("text/html", "text/plain", "warc/revisit"), filter=["!mimetype:text/(html|plain)", "!mimetype:warc/revisit"])
    expect(lambda row: row[1].startswith("2025"), filter="1:2025.*")
    expect(lambda row: "/dir/" in row[2], filter=".* http://example.org/dir/.*")
    expect(lambda row: row[5] == everything[3][5], filter=f"digest:{everything[3][5]}")
    expect(lambda row: re.search(r"(.)\1$", row[2]), filter=r"original:.*(.)\1")


def test_filters_of_pywb(cdx):
    everything = cdx.objects(url="*")

    def expect(keep, *filters):
        assert cdx.objects(url="*", filter=filters) == [value for value in everything if keep(value)], filters

    expect(lambda value: "/dir" in value["url"], "url:/dir")
    expect(lambda value: "/dir" not in value["url"], "!url:/dir")
    expect(lambda value: value["status"] == "404", "=status:404")
    expect(lambda value: value["status"] != "404", "!=status:404")
    expect(lambda value: value["mime"].startswith("text/p"), "~mime:text/p")
    # revisits are text as well, whatever they are called
    expect(lambda value: not re.match("text/[hp]|warc/", value["mime"]), "!~mime:text/[hp]")
    expect(lambda value: "0" in value["status"] and value["mime"] == "text/plain", "statuscode:0", "=mimetype:text/plain")
    expect(lambda value: value["mime"] == "warc/revisit", "=mime:warc/revisit")


def test_collapse(cdx):
    everything = cdx.rows(url="*.example.org")

    def collapse(rows, index, size=None):
        out, before = [], None
        for row in rows:
            if row[index][:size] != before:
                out.append(row)
            before = row[index][:size]
        return out

    assert cdx.rows(url="*.example.org", collapse="urlkey") == collapse(everything, 0)
    assert cdx.rows(url="*.example.org", collapse="timestamp:6") == collapse(everything, 1, 6)
    assert cdx.rows(url="*.example.org", collapse="digest") == collapse(everything, 5)
    assert cdx.rows(url="*.example.org", collapse=["timestamp:4", "digest"]) == collapse(collapse(everything, 1, 4), 5)
    assert cdx.rows(url="*.example.org", collapse="urlkey:12", filter="statuscode:200") == collapse([row for row in everything if row[4] == "200"], 0, 12)
    assert len(cdx.rows(url="example.org/a", collapse="timestamp:4", limit=1)) == 1
    assert [value["timestamp"] for value in cdx.objects(url="example.org/a", collapseTime=4)] == ["20240115120000", "20250115120000"]


def test_revisits_can_be_resolved(cdx):
    plain = cdx.rows(url="example.org/a")
    resolved = cdx.rows(url="example.org/a", resolveRevisits="true", fl=",".join(FIELDS + ["orig.length", "orig.offset", "orig.filename"]))
    places = {}
    for row in cdx.rows(url="example.org/a", fl=",".join(FIELDS + ["offset", "filename"])):
        if row[3] != "warc/revisit":
            places[row[5]] = row[6:]
    revisits = 0
    for before, after in zip(plain, resolved):
        assert after[3] == "text/html"
        if before[3] == "warc/revisit":
            revisits += 1
            assert after[7:] == places[after[5]]
        else:
            assert after[7:] == ["-", "-", "-"]
    assert 0 < revisits < len(plain)


# ---- pages and resume keys ----


def resume(cdx, **parameters):
    """All rows, by resume keys as they are shown."""
    rows, key = [], None
    for _ in range(200):
        query = target(IA, **parameters, showResumeKey="true") + (f"&resumeKey={key}" if key else "")
        text = cdx.node.get(query).text
        part, _, rest = text.partition("\n\n")
        rows += [line.split(" ") for line in part.splitlines()]
        key = rest.strip()
        if not key:
            return rows
        assert re.fullmatch(r"[A-Za-z0-9%+._-]+", key)
    raise AssertionError("it does not end")


@pytest.mark.parametrize("limit", [1, 2, 7, 24, 1000])
def test_resume_keys_reproduce_the_list(cdx, limit):
    for parameters in ({"url": "*"}, {"url": "*.example.org", "sort": "reverse"}, {"url": "*", "filter": "!mimetype:text/html"},
                       {"url": "*", "collapse": "urlkey"}, {"url": "*", "collapse": ["digest", "timestamp:6"]}, {"url": "*", "collapse": ["digest", "timestamp:6"], "sort": "reverse"},
                       {"url": "example.org/a", "collapse": "timestamp:4", "from": "202406"}, {"url": "example.org/dir/*"}):
        assert resume(cdx, **parameters, limit=limit) == cdx.rows(**parameters), parameters


def test_resume_keys_in_other_forms(cdx):
    everything = cdx.rows(url="*")
    table = json.loads(cdx.get(IA, url="*", output="json", limit=4, showResumeKey="true").text)
    assert table[-2] == [] and len(table) == 1 + 4 + 2
    # Whoever encodes the key again gets the same.
    for key in (table[-1][0], urllib.parse.unquote_plus(table[-1][0])):
        assert cdx.rows(url="*", resumeKey=key) == everything[4:]
    assert cdx.node.get(target(IA, url="*") + "&resumeKey=" + table[-1][0]).text.split() == [word for row in everything[4:] for word in row]
    last = cdx.lines(PYWB, url="*", limit=4, output="json", showResumeKey="true")[-1]
    assert json.loads(last) == {"resumeKey": table[-1][0]}
    assert cdx.lines(PYWB, url="*", limit=4, showResumeKey="true")[-2:] == ["", table[-1][0]]
    assert json.loads(cdx.get(IA, url="*", output="json", showResumeKey="true").text.replace("96 y", "96%20y"))[1:] == everything


def test_pages(cdx):
    everything = cdx.rows(url="*")
    for size in (1, 5, 24, 1000):
        count = int(cdx.get(IA, url="*", showNumPages="true", pageSize=size).text)
        assert count == -(-len(everything) // size)
        pages = [cdx.rows(url="*", page=page, pageSize=size) for page in range(count + 1)] if count < 20 else []
        assert not pages or sum(pages, []) == everything and pages[-1] == []
    assert json.loads(cdx.get(IA, url="*", showNumPages="true", output="json").text) == [["numpages"], ["1"]]
    assert json.loads(cdx.get(PYWB, url="*", showNumPages="true", output="json").text) == {"pages": 1, "pageSize": 10000}
    assert cdx.get(PYWB, url="none.example", showNumPages="true").text == "0\n"
    assert cdx.rows(url="*", page=-1) == everything
    filtered = [cdx.rows(url="*", page=page, pageSize=10, filter="!statuscode:200") for page in range(9)]
    assert sum(filtered, []) == [row for row in everything if row[4] != "200"]


def test_combinations_keep_their_promises(cdx):
    """limit and offset always cut the list that is there without them."""
    chance = random.Random(5)
    for _ in range(150):
        query = {"url": chance.choice(["*", "*.example.org", "example.org/a", "example.org/dir/*"])}
        for name, values in (("filter", ["statuscode:200", "!mimetype:warc/revisit", "original:.*[0-5]"]), ("collapse", ["urlkey", "digest", "timestamp:7", "mimetype"]),
                             ("from_", ["2024", "202506"]), ("to", ["2025", "20250601"]), ("sort", ["reverse"])):
            if chance.random() < 0.5:
                query[name] = chance.choice(values)
        whole = cdx.rows(**query)
        limit, offset = chance.randrange(1, 30), chance.randrange(0, 10)
        assert cdx.rows(**query, limit=limit, offset=offset) == whole[offset:offset + limit], query
        assert cdx.rows(**query, limit=-limit) == whole[-limit:], query
        assert resume(cdx, **query, limit=limit) == whole, query


# ---- what is wrong ----


@pytest.mark.parametrize("parameters", [
    {}, {"url": ""}, {"url": "http://"}, {"url": "\0"},
    {"url": "a.example", "matchType": "regex"}, {"url": "a.example", "from": "yesterday"}, {"url": "a.example", "from": "123456789012345"},
    {"url": "a.example", "to": "20251399"}, {"url": "a.example", "limit": "many"}, {"url": "a.example", "limit": "9" * 30}, {"url": "a.example", "offset": "-1"},
    {"url": "a.example", "filter": "nofield:x"}, {"url": "a.example", "filter": ""}, {"url": "a.example", "filter": "x" * 5000},
    {"url": "a.example", "collapse": "nofield"}, {"url": "a.example", "collapse": "timestamp:x"}, {"url": "a.example", "collapse": "timestamp:0"},
    {"url": "a.example", "fl": "nofield"}, {"url": "a.example", "fl": "urlkey,"}, {"url": "a.example", "output": "xml"},
    {"url": "a.example", "sort": "random"}, {"url": "a.example", "sort": "closest"}, {"url": "a.example/*", "sort": "closest", "closest": "2020"},
    {"url": "a.example", "page": "x"}, {"url": "a.example", "page": 2**62, "pageSize": 1000}, {"url": "a.example", "pageSize": 0},
    {"url": "a.example", "resumeKey": "x"}, {"url": "a.example", "resumeKey": "a b c d e"}, {"url": "a.example", "collapse": "urlkey", "resumeKey": "org,a)/ 1 0 1 1"},
    {"url": "a.example", "limit": -1, "resumeKey": "org,a)/ 1 0 1 1"}, {"url": "a.example", "collapse": ["urlkey"] * 9},
])
def test_what_is_wrong_is_refused_in_words(cdx, parameters):
    text = cdx.refused(IA, **parameters)
    assert len(text) > 5 and text.endswith("\n") and "\0" not in text
    error = json.loads(cdx.refused(IA, output="json", **parameters)) if "output" not in parameters else {"text": "x"}
    assert error["text"]


@pytest.mark.parametrize("pattern", ["original:(", "original:[", "original:*", r"original:\p{Foo}", "original:(?<n", "original:" + "(" * 100 + "a" + ")" * 100,
                                     "original:((a{1,9999}){1,9999}){1,9999}", "original:(*UTF)a"])
def test_wrong_regular_expressions(cdx, pattern):
    assert cdx.get(IA, url="*", filter=pattern).status == 400


@pytest.mark.parametrize("pattern", ["original:(.*.*)*b", "original:(.+)+(.+)+(.+)+x", "!urlkey:(a|aa|.)*(b|.)*(c|.)*(d|.)*(e|.)*(f|.)*[!?]", "original:" + "(.*)" * 12 + "[!?]"])
def test_catastrophic_regular_expressions_end(cdx, pattern):
    answer = cdx.get(IA, url="*", filter=pattern)
    assert answer.status == 400 and "takes too long" in answer.text
    answer = cdx.get(IA, url="*", filter=pattern, output="json")
    assert answer.status == 400 and json.loads(answer.text)["text"]
    assert cdx.get(PYWB, url="*", filter=("!~" if pattern[0] == "!" else "~") + pattern.lstrip("!") + "$").status == 400


def test_hostile_queries(cdx):
    node = cdx.node
    assert node.get(target(IA, url="*") + "&filter=statuscode:2" * 33).status == 400
    for rest in ("&filter=statuscode:2" * 10000, "&x=" + "a" * (1 << 20)):
        try:
            assert node.get(target(IA, url="*") + rest).status in (400, 413, 414, 431)
        except OSError:
            pass  # the server may close before it has all
    for query in ("url=%00", "url=%ff%fe", "url=http://example.org/%00%ff", "url=%", "url=%zz", "url=a&url=b&url=%", "&&&=&=x&url", "url=example.org/a&&filter=%ff%00:x",
                  "url=example.org/a&fl=%00", "url=example.org/a&resumeKey=%ff%ff+1+1+1+1", "url=example.org/a&limit=%31", "url=" + "%25" * 5000, "url=*.", "url=**", "url=*.*"):
        for path in (IA, PYWB):
            assert node.get(f"{path}?{query}").status in (200, 400), query
    assert node.get(IA + "?url=example.org/a&filter=original:%ff.*").text == ""
    assert len(cdx.rows(url="example.org/a", unknown="x", gzip="false", showDupeCount="true", lastSkipTimestamp="true", allowFuzzy="false")) == 24
    assert cdx.node.get("/cdx/search/").status == 404
    assert node.get("/health").status == 200


# ---- long lists ----


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    records = [response(f"http://long.example/{i % 50}/{i}", "x", time14=f"2025010100{i // 60 % 60:02}{i % 60:02}") for i in range(4000)]
    node = start(tmp_path_factory.mktemp("long"), *records)
    yield Cdx(node)
    node.stop()


def test_long_lists_are_streamed(long):
    answer = long.get(IA, url="long.example/*")
    rows = [line.split(" ") for line in answer.text.splitlines()]
    assert answer["Transfer-Encoding"] == "chunked" and len(rows) == 4000
    assert rows == sorted(rows, key=lambda row: (row[0].encode(), row[1]))
    table = json.loads(long.get(IA, url="long.example/*", output="json").text)
    assert table[1:] == rows
    assert long.rows(url="long.example/*", limit=-3990) == rows[-3990:]
    assert long.rows(url="long.example/*", sort="reverse") == rows[::-1]
    assert resume(long, url="long.example/*", limit=999) == rows
    assert long.get(IA, url="long.example/*", showNumPages="true", pageSize=3).text == "1334\n"
    assert long.rows(url="long.example/*", filter="original:.*/49/3999") == [row for row in rows if row[2].endswith("/49/3999")]


def test_who_stops_reading_is_no_burden(long):
    host, port = long.node.host.split(":")
    sockets = []
    for _ in range(30):
        connection = socket.create_connection((host, int(port)))
        connection.sendall(f"GET {target(IA, url='long.example/*')} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        sockets.append(connection)
    for _ in range(20):
        assert len(long.rows(url="long.example/7/*", limit=3)) == 3
    for connection in sockets:
        connection.close()
    assert len(long.rows(url="long.example/*")) == 4000


# ---- availability ----


def available(node, **parameters):
    answer = node.get(target("/wayback/available", **parameters))
    assert answer.status == 200 and answer["Content-Type"] == "application/json"
    return json.loads(answer.text)


def test_available(cdx):
    node = cdx.node
    found = available(node, url="example.org/a", timestamp="20240305")
    assert found == {"url": "example.org/a", "archived_snapshots": {"closest": {
        "status": "200", "available": True, "timestamp": "20240315120000", "url": f"http://{node.host}/web/20240315120000/http://example.org/a"}}}
    assert node.get(found["archived_snapshots"]["closest"]["url"].split(node.host)[1]).status == 200
    assert available(node, url="example.org/a")["archived_snapshots"]["closest"]["timestamp"] == "20251215120000"
    assert available(node, url="http://example.org/a", timestamp="1")["archived_snapshots"]["closest"]["timestamp"] == "20240115120000"
    assert available(node, url="example.org/moved", timestamp="2026")["archived_snapshots"]["closest"]["timestamp"] == "20200101000000"
    assert available(node, url="example.org/gone") == {"url": "example.org/gone", "archived_snapshots": {}}
    assert available(node, url="none.example")["archived_snapshots"] == {}
    assert available(node, url='none.example/"</script>')["url"] == 'none.example/"</script>'


def test_available_as_script(cdx):
    answer = cdx.node.get(target("/wayback/available", url="example.org/gone", callback="a.b_$1"))
    assert answer["Content-Type"].startswith("application/javascript") and answer["X-Content-Type-Options"] == "nosniff"
    assert answer.text == '/**/a.b_$1({"url": "example.org/gone", "archived_snapshots": {}});\n'


@pytest.mark.parametrize("parameters", [{}, {"url": ""}, {"url": "http://"}, {"url": "a.example", "timestamp": "now"}, {"url": "a.example", "callback": "alert(1)//"},
                                        {"url": "a.example", "callback": "1a"}, {"url": "a.example", "callback": "a..b"}, {"url": "a.example", "callback": "a."}, {"url": "a.example", "callback": "a" * 200}])
def test_available_refuses(cdx, parameters):
    answer = cdx.node.get(target("/wayback/available", **parameters))
    assert answer.status == 400 and json.loads(answer.text)["text"]
