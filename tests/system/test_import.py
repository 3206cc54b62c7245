"""mnemon import, list, get and export: WARC files in and out, nothing lost and nothing twice."""
import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from waiting import wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = pathlib.Path(os.environ.get("MNEMON_TEST_DATA", ROOT.parent / "shared" / "data")) / "warc"

needs_files = pytest.mark.skipif(not FILES.is_dir(), reason="skipped: no test data")


@pytest.fixture
def data(tmp_path, monkeypatch):
    directory = tmp_path / "data"
    monkeypatch.setenv("MNEMON_DATA", str(directory))
    return directory


@pytest.fixture
def raw(mnemon):
    program = mnemon("version").args[0]

    def run(*arguments, stdin=b""):
        return subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, timeout=60)

    return run


@pytest.fixture
def summary(raw):
    """Import and give the counts; status is what the exit status shall be."""

    def run(*arguments, status=0, stdin=b""):
        result = raw("import", "--json", "--quiet", *arguments, stdin=stdin)
        assert result.returncode == status, result
        counts = json.loads(result.stdout)
        counts["stderr"] = result.stderr.decode()
        return counts

    return run


def lines(raw, *arguments):
    result = raw("list", "--json", *arguments)
    assert result.returncode == 0, result
    return [json.loads(line) for line in result.stdout.splitlines()]


def places(captures):
    """What of captures does not depend on where and how they are stored."""
    return [(c["urlkey"], c["timestamp"], c["url"], c.get("status"), c["digest"]) for c in captures]


# ---- files made here ----


def record(kind, url, body, date="2026-01-02T03:04:05Z", content_type="application/http;msgtype=response", **fields):
    """One WARC record; fields as WARC_Payload_Digest="…"."""
    identity = fields.pop("identity", f"<urn:uuid:00000000-0000-4000-8000-{abs(hash((kind, url, date))) % 10**12:012}>")
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": identity,
        "WARC-Target-URI": url,
        "WARC-Date": date,
        "Content-Type": content_type,
        "Content-Length": len(body),
    }
    head.update({name.replace("_", "-"): value for name, value in fields.items()})
    text = "WARC/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items() if value is not None)
    return text.encode() + b"\r\n" + body + b"\r\n\r\n"


def response(url, payload, status="200 OK", head="Content-Type: text/plain\r\n", **fields):
    return record("response", url, f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + payload, **fields)


def many(count, size=2000):
    """So many captures with payloads that do not compress to nothing, each a gzip member."""
    for i in range(count):
        payload = (f"page {i} " * (size // 8)).encode() + os.urandom(size // 4)
        yield gzip.compress(response(f"http://many.example/{i}", payload), 1)


def parse(path):
    """The records of a WARC file as (fields, block), by hand."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    while content.strip():
        head, rest = content.lstrip().split(b"\r\n\r\n", 1)
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:])
        size = int(fields["Content-Length"])
        yield fields, rest[:size]
        content = rest[size:]


def payload_of(block):
    head, body = block.split(b"\r\n\r\n", 1)
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    if not re.match(rb"[0-9a-fA-F]+\r\n", body):
        return body  # some writer had decoded it already
    payload = b""
    while body:
        size, body = body.split(b"\r\n", 1)
        size = int(size, 16)
        if size == 0:
            break
        payload, body = payload + body[:size], body[size + 2 :]
    return payload


# ---- files of others ----


@needs_files
def test_iana_is_listed_as_its_own_index_says(data, raw, summary):
    counts = summary(FILES / "iana.warc.gz")
    assert (counts["captures"], counts["requests"], counts["skipped"]) == (171, 171, {"warcinfo": 1})
    expected = [line.split(" ", 2) for line in (FILES / "iana.cdxj").read_text().splitlines()]
    found = lines(raw, "*")
    assert [(c["urlkey"], c["timestamp"]) for c in found] == [(key, stamp) for key, stamp, _ in expected]
    ours_of_theirs = {}
    for capture, (_, _, text) in zip(found, expected):
        theirs = json.loads(text)
        assert capture["url"] == theirs["url"]
        if theirs["mime"] != "warc/revisit":
            assert capture["status"] == theirs["status"]
            assert capture["mime"] in (theirs["mime"], "warc/revisit")
        else:
            assert capture["mime"] == "warc/revisit"
        assert ours_of_theirs.setdefault(theirs["digest"], capture["digest"]) == capture["digest"]
    assert len(set(ours_of_theirs.values())) == len(ours_of_theirs)


@needs_files
def test_a_second_import_adds_nothing(data, raw, summary):
    names = ["iana.warc.gz", "example.warc", "example-resource.warc.gz", "post-test.warc.gz"]
    first = summary(*(FILES / name for name in names))
    size = sum(path.stat().st_size for path in (data / "volumes" / "0").glob("*.warc.*"))
    listed = lines(raw, "*")
    second = summary(*(FILES / name for name in reversed(names)), "--jobs", 4)
    assert (second["captures"], second["present"]) == (0, first["captures"])
    assert lines(raw, "*") == listed
    assert sum(path.stat().st_size for path in (data / "volumes" / "0").glob("*.warc.*")) == size


@needs_files
def test_get_gives_the_payload_of_the_record(data, raw, summary):
    summary(FILES / "iana.warc.gz", FILES / "example-iana.org-chunked.warc")
    records = [*parse(FILES / "iana.warc.gz"), *parse(FILES / "example-iana.org-chunked.warc")]
    responses = [(fields, block) for fields, block in records if fields["WARC-Type"] == "response"]
    for fields, block in responses[::6] + responses[-1:]:
        stamp = "".join(filter(str.isdigit, fields["WARC-Date"]))
        result = raw("get", fields["WARC-Target-URI"], "--at", stamp)
        assert result.returncode == 0
        assert result.stdout == payload_of(block)
        whole = raw("get", fields["WARC-Target-URI"], "--at", stamp, "--headers").stdout
        assert whole == block.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n" + payload_of(block)


@needs_files
@pytest.mark.parametrize("name", ["out.warc.gz", "out.warc", "out.warc.zst"])
def test_what_is_exported_and_imported_again_is_the_same(data, raw, summary, tmp_path, name):
    counts = summary(FILES / "iana.warc.gz", FILES / "example-resource.warc.gz", FILES / "example.arc.gz")
    result = raw("export", "-q", "--json", "-o", tmp_path / name)
    assert result.returncode == 0, result
    exported = json.loads(result.stdout)
    assert (exported["captures"], exported["requests"]) == (counts["captures"], counts["requests"])
    assert exported["size"] == (tmp_path / name).stat().st_size
    other = tmp_path / "other"
    again = summary("--data", other, tmp_path / name)
    assert (again["captures"], again["requests"]) == (counts["captures"], counts["requests"])
    assert places(lines(raw, "*", "--data", other)) == places(lines(raw, "*"))
    fonts = "http://www.iana.org/_css/2013.1/fonts/OpenSans-Bold.ttf"
    assert raw("get", fonts, "--data", other).stdout == raw("get", fonts).stdout != b""


@needs_files
def test_an_export_has_no_revisit_that_points_outside(data, raw, summary, tmp_path):
    summary(FILES / "iana.warc.gz")
    out = tmp_path / "part.warc"
    arguments = ["http://www.iana.org/_css/*", "http://www.iana.org/_css/2013.1/print.css", "--from", "201401262008"]
    assert raw("export", "-q", "-o", out, *arguments).returncode == 0
    seen = set()
    types = []
    for fields, block in parse(out):
        types.append(fields["WARC-Type"])
        if fields["WARC-Type"] == "revisit":
            assert (fields["WARC-Refers-To-Target-URI"], fields["WARC-Refers-To-Date"], fields["WARC-Payload-Digest"]) in seen
        elif fields["WARC-Type"] == "response":
            seen.add((fields["WARC-Target-URI"], fields["WARC-Date"], fields["WARC-Payload-Digest"]))
            assert len(payload_of(block)) > 0
        elif fields["WARC-Type"] == "request":
            assert fields["WARC-Concurrent-To"] == previous
        previous = fields["WARC-Record-ID"]
    wanted = lines(raw, "http://www.iana.org/_css/*", "--from", "201401262008")
    assert all(c["mime"] == "warc/revisit" or c["timestamp"] > "201401262008" for c in wanted)
    assert types.count("response") + types.count("revisit") == types.count("request") == len(wanted)
    assert 0 < types.count("response") < types.count("revisit")


@needs_files
def test_revisits_find_their_original_in_an_earlier_import(data, raw, summary):
    alone = summary(FILES / "20130729-heritrix-revisit-with-http-headers.warc.gz", status=1)
    assert (alone["captures"], alone["unresolved"]) == (0, 1)
    assert "http://www.bl.uk/ is a revisit of a capture that the archive does not hold" in alone["stderr"]
    # In one run the order of the files does not matter.
    names = [
        "20130729-heritrix-revisit-with-http-headers.warc.gz",
        "20141124-heritrix-server-not-modified.warc.gz",
        "20141129-heritrix-revisit-with-http-headers-and-new-warc-headers.warc.gz",
        "20130729-heritrix-original.warc.gz",
        "20141129-heritrix-original.warc.gz",
    ]
    both = summary(*(FILES / name for name in names), "--jobs", 1)
    assert (both["captures"], both["duplicates"], both["unresolved"]) == (5, 3, 0)
    captures = lines(raw, "http://www.bl.uk/")
    assert [c["mime"] for c in captures].count("warc/revisit") == 2
    pages = {raw("get", "http://www.bl.uk/", "--at", c["timestamp"]).stdout for c in captures}
    assert len(pages) == 1 and len(pages.pop()) > 1000


@needs_files
def test_damage_is_named_and_the_rest_imported(data, raw, summary, tmp_path):
    content = bytearray((FILES / "iana.warc.gz").read_bytes())
    index = [json.loads(line.split(" ", 2)[2]) for line in (FILES / "iana.cdxj").read_text().splitlines()]
    victim = next(c for c in index if c["url"].endswith("/numbers"))
    offset, length = int(victim["offset"]), int(victim["length"])
    content[offset + length // 2 : offset + length // 2 + 8] = b"\xff" * 8
    damaged = tmp_path / "damaged.warc.gz"
    damaged.write_bytes(content)
    counts = summary(damaged, status=1)
    assert counts["damaged"] == 1
    assert f"{damaged}, byte {offset}: " in counts["stderr"]
    assert counts["captures"] == 170
    assert raw("list", "http://www.iana.org/numbers").stdout == b""


@needs_files
def test_bad_files_of_others(data, summary):
    assert summary(FILES / "bad.arc", status=1)["damaged"] == 3
    counts = summary(FILES / "example-trunc.warc", status=1)
    assert (counts["captures"], counts["damaged"], counts["mismatched"]) == (1, 1, 1)


# ---- files made here ----


def test_requests_go_with_their_responses(data, raw, summary, tmp_path):
    ids = [f"<urn:uuid:00000000-0000-4000-8000-00000000000{i}>" for i in range(6)]
    get = "application/http;msgtype=request"
    content = b"".join([
        response("http://a/1", b"one", identity=ids[0]),
        record("request", "http://a/1", b"GET /1\r\n\r\n", content_type=get, identity=ids[1], WARC_Concurrent_To=ids[0]),
        record("metadata", "http://a/1", b"x: y\r\n", content_type="application/warc-fields"),
        record("request", "http://a/2", b"GET /2\r\n\r\n", content_type=get, identity=ids[2]),
        response("http://a/2", b"two", identity=ids[3], WARC_Concurrent_To=ids[2]),
        record("request", "http://a/9", b"GET /9\r\n\r\n", content_type=get, identity=ids[4], WARC_Concurrent_To=ids[5]),
        response("http://a/3", b"three"),
    ])
    counts = summary("-", stdin=content)
    assert (counts["captures"], counts["requests"], counts["skipped"]) == (3, 2, {"request": 1, "metadata": 1})
    raw("export", "-q", "-o", tmp_path / "out.warc")
    exported = [(f["WARC-Type"], f["WARC-Target-URI"], b) for f, b in parse(tmp_path / "out.warc") if f["WARC-Type"] == "request"]
    assert exported == [("request", f"http://a/{i}", f"GET /{i}\r\n\r\n".encode()) for i in (1, 2)]


def test_a_revisit_before_its_original_keeps_its_request(data, raw, summary, tmp_path):
    """And what the second pass comes by again is not counted again."""
    digest = "sha1:" + base64.b32encode(hashlib.sha1(b"payload").digest()).decode()
    get = "application/http;msgtype=request"
    first = b"".join([
        response("http://a/", b"", date="2027-01-01T00:00:00Z", identity="<urn:uuid:1>", head="X: y\r\n",
                 WARC_Payload_Digest=digest, WARC_Profile="http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"),
        record("request", "http://a/", b"GET /\r\n\r\n", date="2027-01-01T00:00:00Z", content_type=get, WARC_Concurrent_To="<urn:uuid:1>"),
        response("http://b/", b"other"),
        record("request", "http://c/", b"GET /\r\n\r\n", content_type=get),
        record("metadata", "http://c/", b""),
    ]).replace(b"WARC-Type: response", b"WARC-Type: revisit", 1)
    (tmp_path / "1.warc").write_bytes(first)
    (tmp_path / "2.warc").write_bytes(response("http://z/", b"payload", WARC_Payload_Digest=digest))
    counts = summary(tmp_path / "1.warc", tmp_path / "2.warc", "--jobs", 1)
    assert (counts["captures"], counts["requests"], counts["unresolved"], counts["present"]) == (3, 1, 0, 0)
    assert counts["skipped"] == {"request": 1, "metadata": 1}
    assert raw("get", "http://a/", "--headers").stdout == b"HTTP/1.1 200 OK\r\nX: y\r\n\r\npayload"


def test_what_was_removed_can_be_imported_again(data, raw, summary):
    content = response("http://a/", b"back again")
    summary("-", stdin=content)
    key = "0:" + hashlib.sha256(b"back again").hexdigest()
    assert raw("store", "rm", key).returncode == 0
    assert lines(raw, "*") == []
    assert summary("-", stdin=content)["captures"] == 1
    assert raw("get", "http://a/").stdout == b"back again"
    assert len(lines(raw, "*")) == 1


def test_one_run_stores_equal_payloads_once(data, raw, summary, tmp_path):
    paths = []
    for i in range(6):
        paths.append(tmp_path / f"{i}.warc")
        paths[-1].write_bytes(b"".join(response(f"http://{i}.example/{j}", b"the same") for j in range(20)))
    counts = summary(*paths, *paths, "--jobs", 6)
    assert (counts["captures"], counts["duplicates"], counts["present"]) == (120, 119, 120)
    stat = json.loads(raw("store", "stat", "--json").stdout)
    assert (stat["documents"], stat["captures"]) == (1, 120)


def test_threads_keep_the_order_of_captures_that_depend_on_each_other(data, raw, summary, tmp_path):
    """From standard input there is no second pass: every revisit must find its original at once, in one reading."""

    def stated(payload):
        return {"WARC_Payload_Digest": "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()}

    file = b""
    for i in range(150):
        payload, url = f"{i} ".encode() * 500, f"http://a/{i}"
        file += response(url, payload, date="2020-01-01T00:00:00Z", **stated(payload))
        for second in range(1, 4):
            date = f"2020-01-01T00:00:{second:02}Z"
            if second == 1:
                file += response(url, payload, date=date, **stated(payload))
            else:
                file += record("revisit", url, b"HTTP/1.1 200 OK\r\n\r\n", date=date, **stated(payload))
        file += record("revisit", url, b"HTTP/1.1 304 Not Modified\r\n\r\n", date="2020-01-01T00:00:09Z",
                       WARC_Profile="http://netpreserve.org/warc/1.1/revisit/server-not-modified",
                       WARC_Refers_To_Target_URI=url, WARC_Refers_To_Date="2020-01-01T00:00:00Z") if i % 50 == 49 else b""
    counts = summary("--jobs", "8", "-", stdin=file)
    assert (counts["captures"], counts["duplicates"], counts["unresolved"]) == (603, 453, 0)
    originals = [c for c in lines(raw, "*") if c["mime"] != "warc/revisit"]
    assert [c["timestamp"] for c in originals] == ["20200101000000"] * 150


def test_captures_that_differ_in_url_or_status_alone_are_all_kept(data, raw, summary):
    content = b"".join([
        response("http://a.org/", b"", status="301 Moved"),
        response("http://www.a.org/", b"", status="301 Moved"),
        response("http://www.a.org/", b"", status="200 OK"),
    ])
    assert summary("-", stdin=content)["captures"] == 3
    assert summary("-", stdin=content)["present"] == 3
    assert len(lines(raw, "http://a.org/")) == 3


def test_get_takes_the_closest_capture(data, raw, summary):
    content = b"".join(
        response("http://a/", f"of {year}".encode(), date=f"{year}-06-01T00:00:00Z") for year in (2010, 2015, 2020)
    )
    summary("-", stdin=content)
    for at, expected in (("2009", 2010), ("2012", 2010), ("20140101", 2015), ("2019", 2020), ("20200601", 2020), ("9", 2020)):
        assert raw("get", "http://a/", "--at", at).stdout == f"of {expected}".encode()
    assert raw("get", "http://a/").stdout == b"of 2020"
    assert raw("get", "http://a/", "--at", "yesterday").returncode == 2
    missing = raw("get", "http://b/")
    assert missing.returncode == 1 and b"holds no capture of http://b/" in missing.stderr


def test_chunks_of_revisits_survive_an_export_without_the_original(data, raw, summary, tmp_path):
    chunked = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"
    payload = b"a\r\nlooks like a chunk itself"
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(payload), payload)
    content = response("http://a/1", payload) + response("http://b/2", body, head=chunked, date="2027-01-01T00:00:00Z")
    assert summary("-", stdin=content)["duplicates"] == 1
    assert raw("get", "http://b/2").stdout == payload
    raw("export", "-q", "-o", tmp_path / "b.warc", "http://b/*")
    summary("--data", tmp_path / "other", tmp_path / "b.warc")
    assert raw("get", "--data", tmp_path / "other", "http://b/2").stdout == payload
    assert places(lines(raw, "http://b/2")) == places(lines(raw, "http://b/2", "--data", tmp_path / "other"))


def test_records_that_cannot_be_stored_are_named(data, summary):
    content = b"".join([
        response("http://a/", b"good"),
        response("http://a b:c/", b"no such host"),
        record("response", None, b"no url"),
        record("response", "http://a/", b"no date", date=None),
        record("response", "http://a/x", b"half")[:-20],
    ])
    counts = summary("-", stdin=content, status=1)
    assert (counts["captures"], counts["refused"], counts["damaged"]) == (1, 3, 1)
    for reason in ("http://a b:c/ is not imported", "WARC-Target-URI", "WARC-Date", "the file ends"):
        assert reason in counts["stderr"]


def test_sloppy_files_of_others_are_read(data, raw, summary, tmp_path):
    """Dates, line ends, types and ARC lines as other tools write them; each fails strict readers."""
    dates = {"no-z": "2013-12-26T10:11:12", "digits": "20131226101112", "long": "20131226101112345", "one": "2013-12-26T10:11:2Z", "slash": "2013/12/26 10:11:12",
             "gmt": "2013-12-26 10:11:12 GMT", "comma": "2013-12-26T10:11:12,5", "offset": "2013-12-26T12:11:12+02:00"}
    content = b"".join(response(f"http://date.example/{name}", name.encode(), date=date) for name, date in dates.items())
    plain = response("http://form.example/plain", b"crcrlf", date="2013-12-26T10:11:12Z")
    head, block = plain.split(b"\r\n\r\n", 1)
    content += head.replace(b"\r\n", b"\r\r\n") + b"\r\r\n\r\r\n" + block
    content += response("http://form.example/small", b"small letters").replace(b"WARC/1.1", b"warc/1.0", 1)
    content += response("http://form.example/type", b"not said to be HTTP", content_type="text/html")
    content += response("http://form.example/none", b"no type at all", content_type=None)
    counts = summary("-", stdin=content)
    assert (counts["captures"], counts["refused"], counts["damaged"]) == (len(dates) + 4, 0, 0), counts
    found = {line["url"]: line for line in lines(raw, "date.example/*")}
    for name in dates:
        assert found[f"http://date.example/{name}"]["timestamp"] == ("20131226101102" if name == "one" else "20131226101112"), name
    for line in lines(raw, "form.example/*"):
        assert (line["status"], line["mime"]) == ("200", "text/plain"), line
    assert raw("get", "http://form.example/type").stdout == b"not said to be HTTP"

    def arc(line, body):
        return f"{line} {len(body)}\n".encode() + body + b"\n"

    page = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"
    one = arc("filedesc://one.arc 0.0.0.0 20010101000000 text/plain", b"1 0 x\nURL IP-address Archive-date Content-type Archive-length\n")
    one += arc("http://arc.example/spaces 1.2.3.4 20010203040506 text/html; charset=utf-8", page + b"spaces")
    one += arc("http://arc.example/empty 1.2.3.4 20010203040506 ", page + b"empty")
    two = arc("filedesc://two.arc 0.0.0.0 20010101000000 text/plain 200 - - 0 two.arc",
              b"2 0 x\nURL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length\n")
    two += arc("http://arc.example/two 1.2.3.4 20010203040506 text/html 200 abcdef - 12345678 two.arc", page + b"version 2")
    two += arc("http://arc.example/a b 1.2.3.4 20010203040506 text/html; a=b 200 - http://else.example/ 20010101000000 two.arc", page + b"both")
    (tmp_path / "one.arc").write_bytes(one)
    (tmp_path / "two.arc").write_bytes(two)
    counts = summary(tmp_path / "one.arc", tmp_path / "two.arc")
    assert (counts["captures"], counts["refused"], counts["damaged"]) == (4, 0, 0), counts
    assert {line["url"] for line in lines(raw, "arc.example/*")} == {f"http://arc.example/{name}" for name in ("spaces", "empty", "two", "a b")}
    assert raw("get", "http://arc.example/two").stdout == b"version 2"


def test_a_refused_record_says_why(data, summary):
    counts = summary("-", stdin=response("http://a/", b"x", date="yesterday") + response("http://a/", b"x", date="2013-02-30T00:00:00Z"), status=1)
    assert counts["refused"] == 2
    assert "its WARC-Date is no date: yesterday" in counts["stderr"] and "its WARC-Date is no date: 2013-02-30T00:00:00Z" in counts["stderr"]


def test_a_revisit_never_takes_a_payload_that_failed_its_digest(data, raw, summary, tmp_path):
    """Two captures state one digest, and only one has it; a revisit by digest alone means that one."""
    good = "sha1:" + base64.b32encode(hashlib.sha1(b"right").digest()).decode()
    wrong = response("http://wrong.example/", b"wrong", WARC_Payload_Digest=good)
    right = response("http://right.example/", b"right", WARC_Payload_Digest=good)

    def revisit(name):
        return response(f"http://revisit.example/{name}", b"", WARC_Payload_Digest=good, WARC_Type="revisit",
                        WARC_Profile="http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")

    orders = {"before": [wrong, right, revisit("before")], "after": [right, wrong, revisit("after")], "between": [wrong, revisit("between"), right]}
    for name, records in orders.items():
        path = tmp_path / f"{name}.warc"
        path.write_bytes(b"".join(records))
        assert summary(path, "--data", tmp_path / name, status=1)["mismatched"] == 1
        assert raw("get", f"http://revisit.example/{name}", "--data", tmp_path / name).stdout == b"right", name


def test_control_characters_of_a_file_never_reach_the_terminal(data, summary):
    content = response("http://a\x1b[2J:x/", b"") + b"WARC/1.1\r\nContent-Length: \x1b[31m\r\n\r\n"
    counts = summary("-", stdin=content, status=1)
    assert (counts["refused"], counts["damaged"]) == (1, 1)
    assert "http://a?[2J:x/" in counts["stderr"]
    assert "\x1b" not in counts["stderr"]


def test_files_that_are_not_there_or_no_archive(data, summary, tmp_path):
    (tmp_path / "text").write_text("This is no archive file.\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "good.warc").write_bytes(response("http://a/", b"good"))
    counts = summary(tmp_path / "none", tmp_path / "text", tmp_path / "empty", tmp_path / "good.warc", status=1)
    assert (counts["captures"], counts["files_failed"], counts["damaged"]) == (1, 1, 1)
    assert "none: No such file" in counts["stderr"]


@pytest.mark.parametrize(
    "arguments, hint",
    [
        (["import"], "an argument is missing"),
        (["import", "a", "--jobs", "0"], "--jobs"),
        (["export"], "--output is missing"),
        (["export", "-o", "-", "--format", "wacz"], "a WACZ file cannot go to standard output"),
        (["export", "-o", "a.warc", "http://a:b/"], "is not a URL"),
        (["list"], "an argument is missing"),
        (["get"], "an argument is missing"),
    ],
)
def test_wrong_usage(data, mnemon, arguments, hint):
    result = mnemon(*arguments)
    assert result.returncode == 2, result
    assert hint in result.stderr
    assert not data.exists()


def test_an_export_that_fails_leaves_no_file(data, raw, summary, tmp_path):
    summary("-", stdin=response("http://a/", b"x" * 100))
    segment = next((data / "volumes" / "0").glob("*.warc.zst"))
    content = bytearray(segment.read_bytes())
    content[-30] ^= 0xFF
    segment.write_bytes(content)
    result = raw("export", "-q", "-o", tmp_path / "out.warc.gz")
    assert result.returncode == 1 and result.stderr
    assert list(tmp_path.glob("out*")) == []


def test_export_to_a_pipe_and_import_from_it(data, raw, summary, tmp_path):
    summary("-", stdin=b"".join(response(f"http://a/{i}", b"%d" % i) for i in range(10)))
    piped = raw("export", "-q", "-o", "-").stdout
    assert piped[:2] == b"\x1f\x8b"
    assert summary("--data", tmp_path / "other", "-", stdin=piped)["captures"] == 10


def test_progress_in_a_log_is_plain_lines(data, raw, tmp_path):
    (tmp_path / "a.warc").write_bytes(response("http://a/", b"x"))
    result = raw("import", tmp_path / "a.warc")
    assert result.stdout == b"captures             1\n"
    assert result.stderr.startswith(b"importing: 1, ") and b"\x1b" not in result.stderr


def wait_while_it_runs(condition, process):
    """Until the condition holds; the process must not end before."""

    def holds():
        value = condition()
        assert value or process.poll() is None, process.communicate()
        return value

    wait_for(holds, turn_s=0.005)


def archive_size(data):
    return sum(path.stat().st_size for path in (data / "volumes" / "0").glob("*.warc.*"))


def test_a_killed_import_goes_on_where_it_was(data, mnemon, raw, summary, tmp_path):
    count = 20000
    paths = [tmp_path / "a.warc.gz", tmp_path / "b.warc.gz"]
    records = list(many(count))
    paths[0].write_bytes(b"".join(records[: count // 2]))
    paths[1].write_bytes(b"".join(records[count // 2 :]))
    command = [mnemon("version").args[0], "import", "--quiet", *map(str, paths)]
    for share in (10, 4, 2):
        before = archive_size(data) if data.exists() else 0
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        total = sum(path.stat().st_size for path in paths)
        wait_while_it_runs(lambda: data.exists() and archive_size(data) > max(before, total // share), process)
        busy = raw("list", "*")
        assert busy.returncode == 1 and b"another process is using" in busy.stderr
        process.send_signal(signal.SIGKILL)
        process.communicate()
    counts = summary(*paths)
    assert counts["captures"] > 0 and counts["present"] > 0
    assert counts["captures"] + counts["present"] == count
    urls = [capture["url"] for capture in lines(raw, "*")]
    assert len(urls) == len(set(urls)) == count
    assert json.loads(raw("store", "stat", "--json").stdout)["documents"] == count
