"""Captures as pages again: /web/ over HTTP, for programs and as browsers ask."""
import concurrent.futures
import ctypes
import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import uuid
import zlib

import pytest

from waiting import wait_for
from webserver import Site

DATA = pathlib.Path(os.environ.get("MNEMON_TEST_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))
TIME = "20260102030405"
BROWSER = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none", "Accept": "text/html,*/*"}


def record(kind, url, time14, block, **fields):
    date = f"{time14[:4]}-{time14[4:6]}-{time14[6:8]}T{time14[8:10]}:{time14[10:12]}:{time14[12:]}Z"
    identity = fields.pop("WARC_Record_ID", f"<urn:uuid:{uuid.uuid4()}>")
    lines = [f"WARC-Type: {kind}", f"WARC-Record-ID: {identity}", f"WARC-Date: {date}",
             f"WARC-Target-URI: {url}", f"Content-Length: {len(block)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return gzip.compress(("WARC/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode() + block + b"\r\n\r\n")


def response(url, body=b"", kind="text/html", status=200, time14=TIME, headers=(), **fields):
    body = body.encode() if isinstance(body, str) else body
    head = f"HTTP/1.1 {status} Status\r\n" + (f"Content-Type: {kind}\r\n" if kind else "")
    head += "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
    return record("response", url, time14, head.encode("latin-1") + body, Content_Type="application/http;msgtype=response", **fields)


class Answer:
    def __init__(self, reply):
        self.status = reply.status
        self.headers = reply.headers
        self.body = reply.read()

    def __getitem__(self, name):
        return self.headers[name]

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")


class Node:
    """An archive of the given records (or files), served."""

    def __init__(self, mnemon, directory, *records, files=(), options=()):
        self.mnemon = mnemon
        self.data = directory / "data"
        self.options = options
        self.process = None
        if records:
            path = directory / "records.warc.gz"
            path.write_bytes(b"".join(records))
            files = [*files, path]
        for path in files:
            done = mnemon("import", "--data", str(self.data), str(path))
            assert done.returncode == 0, done.stderr
        self.start()

    def start(self):
        program = self.mnemon("version").args[0]
        command = [program, "serve", "--data", str(self.data), "--http", "0", *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("serving"), self.process.stderr.read()
        self.host = line.split(" at http://")[1].strip()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        self.process = None
        return err

    def get(self, target, method="GET", **headers):
        connection = http.client.HTTPConnection(self.host, timeout=120)
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def page(self, target, **headers):
        return self.get(target, **{**BROWSER, **headers})


@pytest.fixture
def serve(mnemon, tmp_path):
    nodes = []

    def start(*records, **options):
        nodes.append(Node(mnemon, tmp_path, *records, **options))
        return nodes[-1]

    yield start
    for node in nodes:
        if node.process is not None:
            node.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One archive for all tests that only read."""
    program = os.environ.get("MNEMON", str(pathlib.Path(__file__).parents[2] / "build" / "mnemon"))

    def mnemon(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=150)

    node = Node(mnemon, tmp_path_factory.mktemp("world"), *world_records())
    yield node
    node.stop()


PAGE = '<!doctype html><title>t</title><img src="/a.png"><a href="b?x=1#y">b</a><link rel=stylesheet href=/s.css>'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
LARGE = b"0123456789abcdef" * (3 << 16)  # 3 MiB


def encode_brotli(data):
    try:
        library = ctypes.CDLL("libbrotlienc.so.1")
    except OSError:
        return b""
    out = ctypes.create_string_buffer(len(data) + 1024)
    size = ctypes.c_size_t(len(out))
    assert library.BrotliEncoderCompress(5, 22, 0, ctypes.c_size_t(len(data)), data, ctypes.byref(size), out)
    return out.raw[:size.value]


def world_records():
    o = "http://a.example"
    text = "<p>grüße</p>" * 50
    zstd = subprocess.run(["zstd", "-qc"], input=text.encode(), capture_output=True, check=False).stdout
    brotli = encode_brotli(text.encode())
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"<p>one", b" two</p>")) + b"0\r\n\r\n"
    yield response(f"{o}/", PAGE, time14="20260102030405", headers=[("Set-Cookie", "a=b"), ("X-Powered-By", "x\ty"), ("Content-Security-Policy", "default-src 'none'")])
    yield response(f"{o}/", PAGE.replace(">b<", ">changed<"), time14="20260202030405")
    yield response(f"{o}/", PAGE.replace(">b<", ">last<"), time14="20260302030405")
    yield response(f"{o}/a.png", PNG, "image/png", time14="20260102030410")
    yield response(f"{o}/a.png", PNG + b"2", "image/png", time14="20260302030410")
    yield response(f"{o}/s.css", "body{background:url(a.png)}", "text/css")
    yield response(f"{o}/gone", "<p>no such page", status=404)
    yield response(f"{o}/moved", "", status=301, headers=[("Location", "/there?x=1")])
    yield response(f"{o}/there?x=1", "<p>there")
    yield response(f"{o}/away", "", status=302, headers=[("Location", "javascript:alert(1)")])
    yield response(f"{o}/mail", "mail", kind="text/plain", status=302, headers=[("Location", "mailto:a@a.example")])
    yield response("http://self.example/", "", status=301, headers=[("Location", "https://self.example/")])
    yield response("https://self.example/", "<p>secure", time14="20260102030407")
    yield response("http://loop.example/", "", status=301, headers=[("Location", "http://www.loop.example/")])
    yield response(f"{o}/gzip", gzip.compress(text.encode()), "text/html; charset=utf-8", headers=[("Content-Encoding", "gzip")])
    yield response(f"{o}/gzip.txt", gzip.compress(b"plain text"), "text/plain", headers=[("Content-Encoding", "gzip")])
    yield response(f"{o}/deflate", zlib.compress(text.encode()), "text/html; charset=utf-8", headers=[("Content-Encoding", "deflate")])
    yield response(f"{o}/zstd", zstd, "text/html; charset=utf-8", headers=[("Content-Encoding", "zstd")])
    yield response(f"{o}/br", brotli, "text/html; charset=utf-8", headers=[("Content-Encoding", "br")])
    yield response(f"{o}/not-gzip.txt", b"never encoded", "text/plain", headers=[("Content-Encoding", "gzip")])
    yield response(f"{o}/cut-gzip", gzip.compress(os.urandom(64).hex().encode() * 2000)[:2000], "text/html", headers=[("Content-Encoding", "gzip")])
    yield response(f"{o}/chunked", chunked, headers=[("Transfer-Encoding", "chunked")])
    yield response(f"{o}/cyrillic", "<meta charset=windows-1251><p>привет".encode("windows-1251"))
    yield response(f"{o}/sjis", "<title>日本</title><a href='/日本'>日本</a>".encode("shift_jis"), "text/html; charset=shift_jis")
    yield response(f"{o}/utf16", b"\xff\xfe" + "<p>wide</p><a href='/x'>x</a>".encode("utf-16-le"))
    yield response(f"{o}/large.bin", LARGE, "video/mp4")
    yield response(f"{o}/notype", b"\x00\x01binary", kind="")
    yield response(f"{o}/svg", '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>', "image/svg+xml")
    yield response(f"{o}/pdf", b"%PDF-1.4", "application/pdf")
    yield response(f"{o}/evil", "x", "text/plain", headers=[("Location", "x"), ("X-Long", "y" * 5000), *((f"X-{i}", "z" * 100) for i in range(200))])
    yield response(f"{o}/partial", b"0123456789", "video/mp4", status=206, headers=[("Content-Range", "bytes 0-9/10")])
    yield response(f"{o}/middle", b"56789", "video/mp4", status=206, headers=[("Content-Range", "bytes 5-9/20")])
    yield response(f"{o}/early", "", status=304)
    yield response(f"{o}/odd", "odd", "text/plain", status=999)
    yield response(f"{o}/cut", "<p>as far as it", WARC_Truncated="length")
    yield response(f"{o}/q?b=2&a=1", "<p>query")
    yield response(f"{o}/refresh", "<p>soon", headers=[("Refresh", "5; url='next?x'"), ("Content-Location", "/real")])
    yield response(f"{o}/long/" + "x" * 25000, "<p>long")
    yield record("resource", f"{o}/resource", TIME, b"<p>a resource", Content_Type="text/html")


def web(time14, url, modifier=""):
    return f"/web/{time14}{modifier}/{url}"


# ---- which capture ----


@pytest.mark.parametrize("modifier", ["", "mp_", "if_", "fr_", "xx_"])
def test_pages_lead_to_the_exact_time(world, modifier):
    for asked, expected in (("2026", "20260302030405"), ("202601", "20260102030405"), ("20260110000000", "20260102030405"),
                            ("20260130000000", "20260202030405"), ("1999", "20260102030405"), ("", "20260302030405")):
        slash = "/" if asked or modifier else ""
        answer = world.get(f"/web/{asked}{modifier}{slash}http://a.example/")
        assert (answer.status, answer["Location"]) == (302, web(expected, "http://a.example/", modifier)), asked
        assert answer["Vary"] == "accept-datetime" and 'rel="original"' in answer["Link"]
    exact = world.get(web("20260102030405", "http://a.example/", modifier))
    assert exact.status == 200 and ">b<" in exact.text


@pytest.mark.parametrize("modifier", ["im_", "oe_", "js_", "cs_", "wkr_", "esm_", "id_"])
def test_parts_are_the_newest_that_is_not_newer(world, modifier):
    for asked, expected in (("20260201000000", "20260102030410"), ("20260302030410", "20260302030410"),
                            ("20270101000000", "20260302030410"), ("20200101000000", "20260102030410")):
        answer = world.get(web(asked, "http://a.example/a.png", modifier))
        assert answer.status == 200 and answer.body == PNG + (b"2" if expected.startswith("202603") else b"")
        location = None if asked == expected else web(expected, "http://a.example/a.png", modifier)
        assert answer["Content-Location"] == location
        assert answer["Memento-Datetime"].endswith(":10 GMT")
    partial = world.get(web("2026", "http://a.example/a.png", modifier))
    assert (partial.status, partial["Location"]) == (302, web("20260302030410", "http://a.example/a.png", modifier))


def test_styles_keep_the_time_of_the_page(world):
    answer = world.get(web("20260115000000", "http://a.example/s.css", "cs_"))
    assert answer["Content-Type"] == "text/css"
    assert "/web/20260115000000" in answer.text and "http://a.example/a.png" in answer.text


@pytest.mark.parametrize("spelling", ["http://a.example/", "http:/a.example/", "http:///a.example/", "/http://a.example/", "//http://a.example/",
                                      "a.example", "a.example/", "http%3A%2F%2Fa.example%2F", "HTTP://A.EXAMPLE:80/", "https://www.a.example/"])
def test_urls_are_read_in_all_spellings(world, spelling):
    assert world.get(f"/web/20260102030405/{spelling}").status == 200


def test_the_query_belongs_to_the_url(world):
    assert "query" in world.get(web(TIME, "http://a.example/q?a=1&b=2")).text
    assert world.get(web(TIME, "http://a.example/q")).status == 404
    assert world.get(web(TIME, "http%3A%2F%2Fa.example%2Fq%3Fa%3D1%26b%3D2")).status == 200


@pytest.mark.parametrize("target, words", [
    ("/web/202601020304056/http://a.example/", "up to 14 digits"),
    ("/web/20261399/http://a.example/", "no such time"),
    ("/web/2026/", "no URL"),
    ("/web/2026", "no URL"),
    ("/web/2026/http://", ""),
    ("/web/2026/http://a.example:port/", ""),
])
def test_bad_requests_are_told_why(world, target, words):
    answer = world.get(target)
    assert answer.status == 400 and words in answer.text and answer.text.count("\n") == 1
    page = world.page(target)
    assert page.status == 400 and "<html" in page.text


def test_nothing_asked_for_is_the_start_page(world):
    assert (world.get("/web/").status, world.get("/web/")["Location"]) == (302, "/")


def test_calendar_and_list_are_pages(world):
    assert world.page("/web/*/http://a.example/").status == 200
    assert world.page("/web/2026*/http://a.example/").status == 200
    assert world.page("/web/*/http://a.example/*").status == 200


def test_what_is_not_held_can_be_saved(world):
    program = world.get(web(TIME, "http://a.example/none"))
    assert program.status == 404 and program["Content-Type"].startswith("text/plain") and "http://a.example/none" in program.text
    person = world.page(web(TIME, "http://a.example/none?<x>"))
    assert person.status == 404 and 'href="/save/http://a.example/none' in person.text
    assert "/web/*/a.example/*" in person.text and "<x>" not in person.text
    framed = world.get(web(TIME, "http://a.example/none"), Sec_Fetch_Dest="iframe", Accept="text/html")
    assert framed.status == 404 and framed["Content-Type"].startswith("text/plain")


# ---- what servers answered ----


def test_redirects_are_redirects(world):
    for modifier in ("", "if_", "oe_"):
        answer = world.get(web(TIME, "http://a.example/moved", modifier))
        assert (answer.status, answer["Location"]) == (301, web(TIME, "http://a.example/there?x=1", modifier))
        assert answer["Memento-Datetime"] and answer["X-Archive-Orig-Location"] == "/there?x=1"
    assert world.get(web("20260109000000", "http://a.example/moved", "oe_"))["Location"].startswith("/web/20260109000000oe_/")
    for url in ("http://a.example/away", "http://a.example/mail"):
        assert world.get(web(TIME, url))["Location"] is None


def test_redirects_to_itself_do_not_loop(world):
    answer = world.get(web(TIME, "http://self.example/"))
    assert (answer.status, answer["Location"]) == (302, web("20260102030407", "https://self.example/"))
    assert "secure" in world.get(answer["Location"]).text
    assert "secure" in world.get(web(TIME, "http://self.example/", "im_")).text
    assert world.get(web(TIME, "http://loop.example/")).status == 404


def test_other_ways_to_lead_on(world):
    answer = world.get(web(TIME, "http://a.example/refresh"))
    assert answer["Refresh"].lower().replace("'", "") == f"5; url=/web/{TIME}/http://a.example/next?x"
    assert answer["Content-Location"] == web(TIME, "http://a.example/real")
    raw = world.get(web(TIME, "http://a.example/refresh", "id_"))
    assert raw["Refresh"] is None and raw["X-Archive-Orig-Refresh"] == "5; url='next?x'"


def test_long_urls(world):
    url = "http://a.example/long/" + "x" * 25000
    assert world.get(web("2026", url))["Location"] == web(TIME, url)
    answer = world.get(web(TIME, url))
    assert answer.status == 200 and "long" in answer.text and answer["Memento-Datetime"] and answer["Link"] is None


def test_failures_are_failures(world):
    answer = world.get(web(TIME, "http://a.example/gone"))
    assert answer.status == 404 and "no such page" in answer.text and answer["Memento-Datetime"]
    assert world.get(web(TIME, "http://a.example/odd")).status == 999
    assert world.get(web(TIME, "http://a.example/early")).status == 404


def test_partial_content_as_it_was(world):
    whole = world.get(web(TIME, "http://a.example/partial", "oe_"))
    assert (whole.status, whole.body) == (200, b"0123456789")
    middle = world.get(web(TIME, "http://a.example/middle", "oe_"))
    assert (middle.status, middle["Content-Range"], middle.body) == (206, "bytes 5-9/20", b"56789")


def test_resources_and_cut_captures(world):
    assert "a resource" in world.get(web(TIME, "http://a.example/resource")).text
    assert "as far as it" in world.get(web(TIME, "http://a.example/cut")).text


def test_all_other_headers_have_another_name(world):
    answer = world.get(web(TIME, "http://a.example/"))
    assert answer["X-Archive-Orig-X-Powered-By"] == "x y"
    assert answer["X-Archive-Orig-Content-Security-Policy"] == "default-src 'none'"
    assert not [name for name in answer.headers if "cookie" in name.lower()]
    evil = world.get(web(TIME, "http://a.example/evil", "id_"))
    assert evil.status == 200 and evil["Location"] is None and len(str(evil.headers)) < 12000


# ---- encodings ----


@pytest.mark.parametrize("path", ["gzip", "deflate", "zstd", "br"])
def test_content_encodings(world, path):
    url = f"http://a.example/{path}"
    coded = world.get(web(TIME, url, "id_"))
    if not coded.body:
        pytest.skip(f"there is no encoder for {path}")
    assert coded["Content-Encoding"] == path
    assert world.get(web(TIME, url, "id_"), Accept_Encoding=f"x, {path};q=0.5")["Content-Encoding"] == path
    for accepted in ("identity", f"{path};q=0, *", f"{path};q=0.0"):
        decoded = world.get(web(TIME, url, "id_"), Accept_Encoding=accepted)
        assert decoded["Content-Encoding"] is None and decoded.body == "<p>grüße</p>".encode() * 50
    page = world.get(web(TIME, url), Accept_Encoding="gzip, br, zstd, deflate")
    assert page["Content-Encoding"] is None and "<p>grüße</p>" * 50 in page.text


def test_wrong_and_broken_encodings(world):
    plain = world.get(web(TIME, "http://a.example/not-gzip.txt", "id_"), Accept_Encoding="gzip")
    assert plain["Content-Encoding"] is None and plain.body == b"never encoded"
    cut = world.get(web(TIME, "http://a.example/cut-gzip"))
    assert cut.status == 200 and len(cut.body) > 100


def test_chunks_are_undone(world):
    answer = world.get(web(TIME, "http://a.example/chunked", "id_"))
    assert answer.body == b"<p>one two</p>" and answer["Transfer-Encoding"] is None


def test_the_charset_is_told(world):
    cyrillic = world.get(web(TIME, "http://a.example/cyrillic"))
    assert cyrillic["Content-Type"].lower() == "text/html; charset=windows-1251"
    assert "привет" in cyrillic.body.decode("windows-1251")
    sjis = world.get(web(TIME, "http://a.example/sjis"))
    assert sjis["Content-Type"] == "text/html; charset=shift_jis" and "日本" in sjis.body.decode("shift_jis")
    wide = world.get(web(TIME, "http://a.example/utf16"))
    charset = wide["Content-Type"].split("charset=")[1]
    assert "wide" in wide.body.decode(charset)


def test_raw_is_raw(world):
    raw = world.get(web(TIME, "http://a.example/", "id_"))
    assert raw.body == PAGE.encode() and raw["Content-Type"] == "text/html"
    rewritten = world.get(web(TIME, "http://a.example/"))
    assert web(TIME, "http://a.example/a.png", "im_") in rewritten.text
    assert web(TIME, "http://a.example/b?x=1#y", "mp_") in rewritten.text
    assert 'data-url="http://a.example/" data-time="20260102030405" data-prefix="/web/"' in rewritten.text


# ---- ranges, caches, methods ----


def test_ranges(world):
    url = web("20260102030410", "http://a.example/a.png", "oe_")
    size = len(PNG)
    for asked, status, first, last in (("bytes=0-0", 206, 0, 0), ("bytes=10-19", 206, 10, 19), ("bytes=100-", 206, 100, size - 1),
                                       ("bytes=-5", 206, size - 5, size - 1), (f"bytes=5-{size * 9}", 206, 5, size - 1), ("bytes=-99999", 206, 0, size - 1)):
        answer = world.get(url, Range=asked)
        assert (answer.status, answer.body) == (status, PNG[first:last + 1]), asked
        assert answer["Content-Range"] == f"bytes {first}-{last}/{size}"
    for asked in (f"bytes={size}-", "bytes=-0"):
        answer = world.get(url, Range=asked)
        assert (answer.status, answer["Content-Range"]) == (416, f"bytes */{size}"), asked
    for asked in ("bytes=5-2", "bytes=0-1,4-5", "lines=0-1", "bytes=x-y", "bytes=-", "bytes=", "bytes=99999999999999999999999-"):
        assert world.get(url, Range=asked).body == PNG, asked
    etag = world.get(url)["ETag"]
    assert world.get(url, Range="bytes=0-1", If_Range=etag).status == 206
    assert world.get(url, Range="bytes=0-1", If_Range='"other"').status == 200
    assert world.get(url)["Accept-Ranges"] == "bytes"
    assert world.get(web(TIME, "http://a.example/gzip.txt", "id_"), Range="bytes=0-1").status == 200


def test_large_documents_stream(world):
    url = web(TIME, "http://a.example/large.bin", "oe_")
    answer = world.get(url)
    assert answer.body == LARGE and answer["Content-Length"] == str(len(LARGE))
    part = world.get(url, Range="bytes=1000000-2999999")
    assert part.body == LARGE[1000000:3000000]
    with socket.create_connection(world.host.split(":")) as client:  # and who goes away in the middle is no matter
        client.sendall(f"GET {url} HTTP/1.1\r\nHost: {world.host}\r\n\r\n".encode())
        client.recv(1000)
    assert world.get(url).status == 200


def test_what_a_client_has_is_not_sent_again(world):
    for url in (web(TIME, "http://a.example/", "id_"), web(TIME, "http://a.example/"), web("20260102030410", "http://a.example/a.png", "im_")):
        etag = world.get(url)["ETag"]
        again = world.get(url, If_None_Match=etag)
        assert (again.status, again.body, again["ETag"]) == (304, b"", etag)
        assert world.get(url, If_None_Match='"other"').status == 200
    raw = world.get(web(TIME, "http://a.example/", "id_"))["ETag"]
    assert raw != world.get(web(TIME, "http://a.example/"))["ETag"]
    assert "no-cache" in world.get(web(TIME, "http://a.example/"))["Cache-Control"]


def test_head(world):
    for url in (web(TIME, "http://a.example/"), web(TIME, "http://a.example/large.bin", "oe_"), web(TIME, "http://a.example/none")):
        full, head = world.get(url), world.get(url, method="HEAD")
        assert head.body == b"" and head.status == full.status and head["Content-Length"] == full["Content-Length"]


def test_other_methods_never_get_the_answer_to_a_get(world):
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert world.get(web(TIME, "http://a.example/"), method=method).status == 404
    assert world.get(web(TIME, "http://a.example/"), method="PROPFIND").status in (405, 501)


# ---- safety ----


def test_what_can_run_is_in_a_sandbox(world):
    for url in ("http://a.example/", "http://a.example/notype", "http://a.example/svg", "http://a.example/gone"):
        for modifier in ("", "id_", "oe_"):
            answer = world.get(web(TIME, url, modifier))
            policy = answer["Content-Security-Policy"]
            assert policy.startswith("sandbox ") and "allow-same-origin" not in policy
            assert ("allow-scripts" in policy) == ("/static/replay.js" in answer.text)
            assert "allow-top-navigation" not in policy and "allow-popups" not in policy
            assert f"{world.host}/web/" in policy and "http:" not in policy and "*" not in policy
    for url in ("http://a.example/a.png", "http://a.example/pdf"):
        answer = world.get(web("20260102030410", url, "oe_"))
        is_pdf = url.endswith("pdf")  # Chromium's viewer does not run in a sandbox
        assert answer["Content-Security-Policy"].startswith("default-src 'none'" if is_pdf else "sandbox; default-src 'none'")
        assert "form-action 'none'; base-uri 'none'" in answer["Content-Security-Policy"]
        assert "script" not in answer["Content-Security-Policy"] and answer["X-Content-Type-Options"] == "nosniff"


def test_a_wrong_host_does_not_get_into_the_policy(world):
    connection = http.client.HTTPConnection(world.host, timeout=120)
    connection.putrequest("GET", web(TIME, "http://a.example/"), skip_host=True)
    connection.putheader("Host", "evil.example; script-src *")
    connection.endheaders()
    reply = connection.getresponse()
    assert reply.status in (400, 403, 421) or "evil.example" not in reply.headers["Content-Security-Policy"]
    connection.close()


def frame_of(world, url="http://a.example/", time14=TIME):
    page = world.page(web(time14, url))
    return page, re.search(r'<iframe id=replay [^>]* src="([^"]+)"', page.text)[1]


def test_browsers_get_pages_in_a_frame(world):
    page, source = frame_of(world)
    assert page.status == 200 and page["Content-Type"] == "text/html; charset=utf-8" and page["Memento-Datetime"]
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy and f"frame-src {world.host}/web/;" in policy and "frame-ancestors 'none'" in policy
    assert re.fullmatch(r"/web/~[0-9a-f]{32}/20260102030405mp_/http://a\.example/", source)
    for part in ('data-url="http://a.example/" data-time="20260102030405"', "2 January 2026, 03:04:05 UTC", 'href="/web/*/http://a.example/"',
                 'href="/details/20260102030405~', 'id=next href="/web/20260202030405/', 'id=last href="/web/20260302030405/',
                 "<div id=parts>", "<p id=notice role=status>"):
        assert part in page.text, part
    assert re.search(r'href="/compare/20260202030405~\w{16}/20260302030405~\w{16}/http://a.example/"', frame_of(world, time14="20260302030405")[0].text)
    inner = world.get(source, Sec_Fetch_Dest="iframe", Sec_Fetch_Site="same-origin")
    prefix = source[:source.index("2026")]
    assert inner.status == 200 and f'data-prefix="{prefix}"' in inner.text and f"{prefix}20260102030405im_/http://a.example/a.png" in inner.text
    old = world.get(web(TIME, "http://a.example/"), Upgrade_Insecure_Requests="1", Accept="text/html")
    assert "<iframe id=replay" in old.text
    gone = frame_of(world, "http://a.example/gone")[0]
    assert gone.status == 404 and "status 404" in gone.text


def test_pages_are_never_without_the_frame(world):
    _, source = frame_of(world)
    for target in (source, web(TIME, "http://a.example/", "mp_"), web(TIME, "http://a.example/", "if_")):
        answer = world.page(target)
        assert (answer.status, answer["Location"]) == (302, web(TIME, "http://a.example/"))
    image = source.replace("mp_", "im_") + "a.png"
    assert world.page(image)["Location"] == web(TIME, "http://a.example/a.png", "im_")
    alone = world.page(web(TIME, "http://a.example/svg"))
    assert "allow-scripts" not in alone["Content-Security-Policy"] and "script-src 'none'" in alone["Content-Security-Policy"]
    assert world.page(web("20260102030410", "http://a.example/a.png")).body == PNG


def test_only_our_frames_learn_the_secret(world):
    _, source = frame_of(world)
    prefix = source[:source.index("2026")]
    own = world.get(web(TIME, "http://a.example/", "if_"), Sec_Fetch_Dest="iframe", Sec_Fetch_Site="same-origin")
    assert (own.status, own["Location"]) == (302, f"{prefix}{TIME}if_/http://a.example/")
    for site in ("cross-site", "same-site", "none"):
        other = world.get(web(TIME, "http://a.example/", "if_"), Sec_Fetch_Dest="iframe", Sec_Fetch_Site=site)
        assert other.status == 200 and prefix not in other.text
    redirect = world.get(f"{prefix}{TIME}js_/http://a.example/moved", Sec_Fetch_Site="cross-site")
    assert redirect["Location"] == f"{prefix}{TIME}js_/http://a.example/there?x=1"


def test_other_sites_cannot_read_the_archive(world):
    _, source = frame_of(world)
    ours = source.replace("mp_", "id_")
    for target, origin, allowed in ((ours, "null", "null"), (ours, "http://evil.example", None), (web(TIME, "http://a.example/", "id_"), "null", None),
                                    (ours.replace("~", "~0"), "null", None)):
        answer = world.get(target, Origin=origin, Sec_Fetch_Site="cross-site")
        assert answer.status == 200 and answer["Access-Control-Allow-Origin"] == allowed
        is_ours = target == ours
        assert answer["Cross-Origin-Resource-Policy"] == (None if is_ours else "same-origin")
        assert "Origin" in answer["Vary"]
    for target in (ours + "none", ours.replace(TIME, "2026"), source.replace("mp_", "js_") + "moved"):
        answer = world.get(target, Origin="null", Sec_Fetch_Site="cross-site")
        assert answer.status in (301, 302, 404) and answer["Access-Control-Allow-Origin"] == "null"


# ---- real archives ----


def read_warc(path):
    """(type, url, time, HTTP block) of each record."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    at = 0
    while at < len(data):
        end = data.index(b"\r\n\r\n", at)
        fields = dict(line.split(": ", 1) for line in data[at:end].decode("latin-1").split("\r\n")[1:])
        size = int(fields["Content-Length"])
        yield fields, data[end + 4:end + 4 + size]
        at = end + 4 + size + 4


def unchunk(body):
    """Some writers have done so already, whatever the header says."""
    out, at = b"", 0
    while re.match(rb"[0-9a-fA-F]+ *\r\n", body[at:at + 20]):
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        out += body[end + 2:end + 2 + size]
        at = end + 2 + size + 2
    return out or body


def test_a_site_replays_byte_for_byte(serve):
    path = DATA / "warc" / "iana.warc.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    node = serve(files=[path])
    bodies, revisits = {}, 0
    for fields, block in read_warc(path):
        if fields["WARC-Type"] not in ("response", "revisit"):
            continue
        url = fields["WARC-Target-URI"]
        time14 = re.sub(r"\D", "", fields["WARC-Date"])[:14]
        head, _, body = block.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in head.lower() and body:
            body = unchunk(body)
        digest = fields["WARC-Payload-Digest"]
        body = bodies.setdefault(digest, body) if fields["WARC-Type"] == "response" else bodies[digest]
        revisits += fields["WARC-Type"] == "revisit"
        status = int(head.split()[1])
        answer = node.get(web(time14, url, "id_"))
        if status < 300 or status >= 400:
            assert (answer.status, answer.body) == (status, body), url
        assert node.get(web(time14, url)).status in (200, 301, 302, 404), url
    assert len(bodies) > 30 and revisits > 100


def test_old_files_replay(serve):
    paths = [DATA / "warc" / name for name in ("example.arc.gz", "example-resource.warc.gz", "example-iana.org-chunked.warc",
                                               "20130729-heritrix-original.warc.gz", "20130729-heritrix-revisit-with-http-headers.warc.gz")]
    if not all(path.exists() for path in paths):
        pytest.skip("test data is not there")
    node = serve(files=paths)
    assert "Example Domain" in node.get(node.get("/web/http://example.com/")["Location"]).text
    assert node.get(node.get("/web/2026id_/http://example.com/")["Location"]).status == 200


# ---- trouble ----


def flip(path, marker_size=64):
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + marker_size):
        data[at] ^= 0xFF
    path.write_bytes(data)


def test_a_damaged_record_is_told_and_harms_nothing_else(mnemon, tmp_path):
    first = response("http://a.example/first", "<p>first " + "x" * 200)
    bad = response("http://a.example/bad", os.urandom(20000), "image/png")
    node = Node(mnemon, tmp_path, first, bad)
    assert node.get(web(TIME, "http://a.example/bad", "im_")).status == 200
    node.stop()
    segment, = (node.data / "volumes" / "0").glob("*.warc.*")
    flip(segment)
    node.start()
    for headers in ({}, BROWSER):
        answer = node.get(web(TIME, "http://a.example/bad"), **headers)
        assert answer.status == 502 and "damaged" in answer.text.lower()
    assert node.get(web(TIME, "http://a.example/first")).status == 200
    log = node.stop()
    told = [line for line in log.splitlines() if "http://a.example/bad" in line]
    assert len(told) == 2 and all(TIME in line and "segment" in line for line in told)


def test_a_volume_that_is_down_is_told(mnemon, tmp_path):
    connector = tmp_path / "data" / "connector"
    connector.parent.mkdir()
    disks = [tmp_path / "one", tmp_path / "two"]
    for disk in disks:
        disk.mkdir()
    connector.write_text("".join(f'[volume-{number}]\npath = "{disk}"\n' for number, disk in enumerate(disks)))
    pages = [response(f"http://a.example/{number}", f"<p>page {number}") for number in range(12)]
    node = Node(mnemon, tmp_path, *pages)
    assert all(node.get(web(TIME, f"http://a.example/{number}")).status == 200 for number in range(12))
    node.stop()
    disks[1].rename(tmp_path / "away")
    node.start()
    answers = [node.get(web("20260102030404", f"http://a.example/{number}", "im_")) for number in range(12)]
    assert {answer.status for answer in answers} == {200, 503}
    down = next(answer for answer in answers if answer.status == 503)
    assert down["Retry-After"] and "volume 1 did not answer" in down.text and down["X-Mnemon-Partial"] == "volume 1"
    node.stop()


def test_rules_are_kept(serve):
    node = serve(response("http://a.example/open", "<p>open"), response("http://a.example/blocked", "<p>blocked"),
                 response("http://a.example/excluded", "<p>excluded"))
    assert node.get(web(TIME, "http://a.example/blocked")).status == 200
    etag = node.get(web(TIME, "http://a.example/blocked"))["ETag"]
    (node.data / "access.aclj").write_text('example,a)/excluded - {"access": "exclude"}\nexample,a)/blocked - {"access": "block"}\n')
    wait_for(lambda: node.get(web(TIME, "http://a.example/blocked")).status != 200, "the rule does not count")
    for modifier in ("", "id_"):
        assert node.get(web(TIME, "http://a.example/blocked", modifier)).status == 451
        assert node.get(web(TIME, "http://a.example/excluded", modifier)).status == 404
        assert node.get(web(TIME, "http://a.example/open", modifier)).status == 200
    assert node.get(web(TIME, "http://a.example/blocked"), If_None_Match=etag).status == 451
    assert node.get("/web/timemap/link/http://a.example/excluded").status == 404
    assert node.get("/web/http://a.example/excluded").status == 404


def rewritten(node):
    return json.loads(node.get("/api/v1/status").text)["rewritten"]


def test_what_was_rewritten_once_is_given_again_as_long_as_it_may(serve):
    """A page from memory is the page that the parser made, and is under the same rules."""
    url = "http://a.example/page"
    node = serve(response(url, '<a href="/x">x</a>'), response(url, '<a href="/x">other</a>', time14="20260303030303"))
    targets = [web(TIME, url, "mp_"), web("20260303030303", url, "mp_"), web(TIME, url, "if_"), web(TIME, url)]
    first = [node.page(target).body if target == targets[-1] else node.get(target).body for target in targets]
    assert len(set(first)) == 3, "another time is another document, and so is the frame"
    wait_for(lambda: rewritten(node)["documents"] == 4, lambda: str(rewritten(node)))  # it is looked at once a second
    asked = rewritten(node)["asked"]
    again = [node.page(target).body if target == targets[-1] else node.get(target).body for target in targets]
    assert again == first
    wait_for(lambda: rewritten(node)["asked"] == asked + 4, lambda: str(rewritten(node)))
    now = rewritten(node)
    assert now["found"] == 4 and now["documents"] == 4 and 0 < now["size"] < 1 << 20
    (node.data / "access.aclj").write_text('example,a)/page - {"access": "block"}\n')
    wait_for(lambda: node.get(targets[0]).status == 451, "the rule does not count")
    (node.data / "access.aclj").write_text("")
    wait_for(lambda: node.get(targets[0]).status == 200, "the rule still counts")
    done = node.mnemon("rm", url, "--to", "20260201", "--data", str(node.data))
    assert done.returncode == 0, done.stderr
    assert node.get(targets[0])["Location"].endswith(targets[1]), "the other one is left"


def test_nothing_is_kept_if_the_operator_does_not_want_it(serve, tmp_path):
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "mnemon.conf").write_text("[http]\ncache = 0\n")
    node = serve(response("http://a.example/page", "<p>text"))
    assert node.get(web(TIME, "http://a.example/page", "mp_")).body == node.get(web(TIME, "http://a.example/page", "mp_")).body
    assert rewritten(node) == {"enabled": 0, "documents": 0, "size": 0, "asked": 0, "found": 0}


def test_long_and_strange_targets(world):
    for target in ("/web/" + "9" * 5000, "/web/2026/http://a.example/" + "x" * 20000, "/web/2026/http://a.example/%00%ff%zz",
                   "/web/2026/" + "%25" * 3000, "/web/~/2026/http://a.example/", "/web/~" + "0" * 1000 + "/", "/web/2026im_/*", "/web///////",
                   "/web/2026/javascript:alert(1)", "/web/2026/data:text/html,x", "/web/2026/http://[::1/", "/web/*/", "/web/*/**"):
        answer = world.get(target)
        assert answer.status in (200, 302, 400, 404, 414, 431), target
        assert "\r" not in (answer["Location"] or "")
    split = world.get("/web/2026/http%3A%2F%2Fa.example%2F%0d%0aSet-Cookie:%20a=b")
    assert split["Set-Cookie"] is None


def test_many_clients_at_once(world):
    targets = [web(TIME, "http://a.example/"), web(TIME, "http://a.example/", "id_"), web(TIME, "http://a.example/gzip"),
               web(TIME, "http://a.example/large.bin", "oe_"), web("2026", "http://a.example/"), web(TIME, "http://a.example/none"),
               "/web/timemap/link/http://a.example/"]
    expected = {target: (answer.status, answer.body) for target in targets for answer in [world.get(target)]}

    def ask(number):
        target = targets[number % len(targets)]
        answer = world.get(target)
        return (answer.status, answer.body) == expected[target]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(400)))


def test_new_captures_appear_at_once(serve, mnemon, tmp_path):
    site = Site()
    try:
        site.put("/", "<p>first version")
        node = serve(response("http://a.example/", "x"), options=["--allow-private"])
        assert node.get("/web/" + site.url("/")).status == 404
        added = mnemon("job", "add", site.url("/"), "--period", "1 s", "--delay", "0", "--data", str(node.data))
        assert added.returncode == 0, added.stderr

        def newest():
            answer = node.get("/web/id_/" + site.url("/"))
            return node.get(answer["Location"]).text if answer.status == 302 else ""

        for words in ("first version", "second version"):
            site.put("/", f"<p>{words}")
            wait_for(lambda: words in newest(), words)
    finally:
        site.close()
