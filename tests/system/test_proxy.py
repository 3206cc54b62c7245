"""`mnemon proxy` as a browser or curl uses it: the web as it is, others where it is not there."""
import contextlib
import gzip
import hashlib
import os
import re
import shutil
import socket
import ssl
import stat
import struct
import subprocess
import threading
import time

import pytest

from proxynodes import IP, Origin, Proxy, crowd
from ringnodes import program, wait_for
from test_replay import response

@pytest.fixture
def origin():
    made = Origin()
    yield made
    with contextlib.suppress(OSError):
        made.end()


@contextlib.contextmanager
def running(mnemon, tmp_path, *options, environment=None, name="node", ip="127.0.0.1", conf=""):
    if shutil.which("curl") is None:
        pytest.skip("skipped: curl is not installed")
    node = Proxy(mnemon, tmp_path / name, ip)
    node.environment = environment
    node.directory.mkdir(exist_ok=True)
    if conf:
        (node.directory / "mnemon.conf").write_text(conf)
    node.start("--timeout", "1s", *options)
    try:
        yield node
        node.stop()
    finally:
        if node.process is not None:
            node.kill()


# ---- the web as it is ----


def test_requests_and_answers_pass_as_they_are(mnemon, tmp_path, origin):
    big = os.urandom(1 << 20) * 24
    origin.put("/a", b"page", X_Own="1")
    origin.put("/big", big)
    origin.put("/missing", b"gone", status=410)
    origin.put("/odd", b"", status=204)
    origin.pages["/post"] = lambda handler, body: (200, {}, hashlib.sha256(body).hexdigest().encode())
    origin.pages["/range"] = lambda handler, _: (206, {"Content-Range": "bytes 2-3/9"}, handler.headers["Range"].encode())
    origin.pages["/chunks"] = (200, {"Transfer-Encoding": "chunked"}, b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: 1\r\n\r\n")
    origin.pages["/close"] = (200, {"Connection": "close"}, b"until the end" * 9999)
    with running(mnemon, tmp_path) as node:
        status, fields, body = node.curl(origin.link("/a?b=c%20d"), "-H", "X-Mine: 2", "-H", "Connection: X-Hop", "-H", "X-Hop: 3")
        assert status == 404 and body == b"not here"
        command, path, asked, _ = origin.requests[-1]
        assert (command, path, asked["X-Mine"], asked["Host"]) == ("GET", "/a?b=c%20d", "2", f"{IP}:{origin.port}")
        assert "X-Hop" not in asked and "Proxy-Connection" not in asked and "Via" not in asked and "X-Forwarded-For" not in asked
        assert node.curl(origin.link("/a"))[::2] == (200, b"page")
        assert node.curl(origin.link("/a"))[1]["x-own"] == "1"
        assert "x-mnemon-source" not in fields
        status, fields, body = node.curl(origin.link("/a"), "-I")
        assert (status, fields["content-length"], body) == (200, "4", b"")
        assert node.curl(origin.link("/missing"))[::2] == (410, b"gone")
        assert node.curl(origin.link("/odd"))[::2] == (204, b"")
        assert node.curl(origin.link("/big"))[2] == big
        assert node.curl(origin.link("/range"), "-r", "2-3")[::2] == (206, b"bytes=2-3")
        assert node.curl(origin.link("/chunks"))[2] == b"hello worldT: 1\r\n", "curl shows the trailer, too"
        assert node.curl(origin.link("/close"))[2] == b"until the end" * 9999
        upload = tmp_path / "upload"
        upload.write_bytes(big)
        digest = hashlib.sha256(big).hexdigest().encode()
        assert node.curl(origin.link("/post"), "--data-binary", f"@{upload}")[2] == digest  # with Expect: 100-continue
        assert node.curl(origin.link("/post"), "--data-binary", f"@{upload}", "-H", "Transfer-Encoding: chunked")[2] == digest
        assert node.curl(origin.link("/post"), "-0", "-d", "x")[2] == hashlib.sha256(b"x").hexdigest().encode()


def test_a_browser_keeps_its_connection(mnemon, tmp_path, origin):
    origin.put("/a", b"page")
    origin.put("/b", b"other")
    request = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n"
    with running(mnemon, tmp_path) as node:
        both = request.format(origin.link("/a")) + request.format(origin.link("/b")).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        got = node.raw(both.encode())
        assert got.count(b"HTTP/1.1 200") == 2 and got.index(b"page") < got.index(b"other")


def test_a_slow_client_is_given_its_time_and_a_large_answer_is_not_kept_in_memory(mnemon, tmp_path, origin):
    size = 64 << 20
    origin.put("/large", bytes(size))
    with running(mnemon, tmp_path) as node:
        host, port = node.proxy.split(":")

        def memory():
            return int(re.search(r"RssAnon:\s+(\d+)", open(f"/proc/{node.process.pid}/status").read()).group(1)) << 10

        before = memory()
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall(f"GET {origin.link('/large')} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
            wait_for(lambda: origin.requests, "asked")
            sock.recv(1)
            time.sleep(0.5)  # that no more of it is taken can only be waited for
            assert memory() - before < size // 4, "what is not read stays with the server"
            got = 1
            while piece := sock.recv(1 << 20):
                got += len(piece)
            assert got > size


def test_web_sockets_pass(mnemon, tmp_path):
    listener = socket.create_server((IP, 0))
    heads = []

    def serve():
        sock, _ = listener.accept()
        with sock:
            heads.append(sock.recv(1 << 16))
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Own: 1\r\n\r\nfirst")
            while piece := sock.recv(1 << 16):
                sock.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    link = f"http://{IP}:{listener.getsockname()[1]}/socket"
    with running(mnemon, tmp_path) as node:
        host, port = node.proxy.split(":")
        with socket.create_connection((host, int(port)), timeout=120) as sock:
            sock.sendall(f"GET {link} HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n".encode())
            got = b""
            while not got.endswith(b"first"):
                got += sock.recv(1 << 16)
            assert got.startswith(b"HTTP/1.1 101") and b"Connection: Upgrade" in got and b"X-Own: 1" in got
            assert b"Upgrade: websocket" in heads[0] and b"Sec-WebSocket-Key: x" in heads[0]
            sock.sendall(b"ping")
            assert sock.recv(100) == b"ping"
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(100) == b"", "the end passes, too"


# ---- the archive where the web fails ----


def archive(mnemon, directory, url):
    done = mnemon("archive", url, "--data", directory, "--allow-private", "--delay", "0", "--scope", "page", "--ignore-robots")
    assert done.returncode == 0, done.stderr


def unmarked(body, is_page=True):
    """The page without the mark that says that it is not the server's."""
    found = re.findall(rb'<div id="mnemon-substitute"[^>]*>The server did not answer[^<]*</div>', body)
    assert len(found) == is_page, body[:1000]
    return body.replace(found[0], b"") if is_page else body


def test_what_the_server_does_not_give_comes_from_the_archive(mnemon, tmp_path, origin):
    text = b"<title>Kept</title>" + b"kept " * 1000
    packed = gzip.compress(text)
    origin.put("/", packed, Content_Encoding="gzip", Set_Cookie="a=b", Cache_Control="max-age=100", X_Own="1")
    origin.put("/data", packed, kind="text/csv", Content_Encoding="gzip")
    archive(mnemon, tmp_path / "node", origin.link("/"))
    archive(mnemon, tmp_path / "node", origin.link("/data"))
    with running(mnemon, tmp_path) as node:
        origin.put("/", b"sick", status=503)
        origin.put("/new", b"sick, too", status=503)
        status, fields, body = node.curl(origin.link("/"))
        assert (status, fields["x-mnemon-source"], unmarked(body)) == (200, "archive", text), "who takes no gzip gets none"
        assert "memento-datetime" in fields and "warning" in fields and int(fields["age"]) < 600
        assert "set-cookie" not in fields and fields["cache-control"] == "no-store" and "x-own" not in fields
        status, fields, body = node.curl(origin.link("/"), "-H", "Accept-Encoding: gzip")
        assert ("content-encoding" in fields, unmarked(body)) == (False, text), "a page is decoded for its mark"
        origin.put("/data", b"sick", status=503)
        assert unmarked(node.curl(origin.link("/data"))[2], False) == text
        status, fields, body = node.curl(origin.link("/data"), "-H", "Accept-Encoding: gzip")
        assert (fields["content-encoding"], body) == ("gzip", packed)
        assert node.curl(origin.link("/new"))[::2] == (503, b"sick, too"), "nobody has it: the server's own word"
        origin.end()
        whole = node.curl(origin.link("/"))[2]
        assert unmarked(whole) == text
        status, fields, body = node.curl(origin.link("/"), "-I")
        assert (status, fields["content-length"], body) == (200, str(len(whole)), b"")
        status, fields, body = node.curl(origin.link("/never"))
        assert status == 504 and fields["x-mnemon-source"] == "proxy"
        for part in (b"connection refused", b"The crowd:", b"The archive: has no capture"):
            assert part in body
        status, _, body = node.curl(origin.link("/"), "-d", "x")
        assert status == 504 and b"The archive:" not in body, "only who asks gets an old answer, not who sends something"
        assert node.curl("http://no-such-host.invalid/")[0] == 504
        assert node.curl("http://no-such-host.invalid/", "-d", "x")[0] == 504


def test_a_slow_server_is_replaced_where_somebody_has_it_and_waited_for_where_nobody_has(mnemon, tmp_path, origin):
    gate = threading.Event()

    def slow(handler, _):
        gate.wait(20)
        return 200, {"Content-Type": "text/html"}, b"late"

    origin.put("/kept", b"kept")
    archive(mnemon, tmp_path / "node", origin.link("/kept"))
    origin.pages["/kept"] = origin.pages["/new"] = slow
    with running(mnemon, tmp_path) as node:
        def read():
            begin = time.monotonic()
            assert unmarked(node.curl(origin.link("/kept"))[2]) == b"kept"
            return time.monotonic() - begin

        first = read()
        assert sum(read() for _ in range(8)) < 6 * first, "its silence is waited for once"
        threading.Timer(2, gate.set).start()
        status, fields, body = node.curl(origin.link("/new"))
        assert (status, body) == (200, b"late") and "x-mnemon-source" not in fields


def test_what_may_be_public_is_stored_and_nothing_else(mnemon, tmp_path, origin):
    origin.put("/public", b"public")
    origin.put("/cookie", b"cookie", Set_Cookie="a=b")
    origin.put("/private", b"private", Cache_Control="max-age=3, private")
    origin.put("/unstored", b"unstored", Cache_Control="no-store")
    origin.put("/vary", b"vary", Vary="Accept, Cookie")
    origin.put("/asked", b"asked")
    origin.put("/login", b"login")
    origin.put("/redirect", b"", status=302, Location="/public")
    origin.pages["/chunks"] = (200, {"Transfer-Encoding": "chunked"}, b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
    origin.pages["/broken"] = (200, {"Content-Length": "100"}, b"broken")
    with running(mnemon, tmp_path, "--archive", "--allow-private") as node:
        for path in ("/public", "/cookie", "/private", "/unstored", "/vary", "/redirect", "/chunks"):
            assert node.curl(origin.link(path))[0] < 400
        node.curl(origin.link("/asked"), "-H", "Cookie: me=1")
        node.curl(origin.link("/login"), "-u", "me:secret")
        node.curl(origin.link("/broken"), "-m", "1", check=False)
        origin.end()
        wait_for(lambda: node.curl(origin.link("/chunks"))[2] == b"hello world", "stored")
        assert node.curl(origin.link("/public"))[1]["x-mnemon-source"] == "archive"
        for path in ("/cookie", "/private", "/unstored", "/vary", "/asked", "/login", "/redirect", "/broken"):
            assert node.curl(origin.link(path))[0] == 504, path


def test_what_is_at_a_private_address_is_not_kept_unless_the_user_says_so(mnemon, tmp_path, origin):
    origin.put("/public", b"public")
    with running(mnemon, tmp_path, "--archive") as node:
        assert node.curl(origin.link("/public"))[2] == b"public"
    assert mnemon("list", "--data", tmp_path / "node").stdout == ""


# ---- what a substitute may not do ----

DEAD = "127.0.3.77"  # nobody listens there
HARMLESS = {"content-type", "content-length", "date", "last-modified", "memento-datetime", "age", "x-mnemon-source", "warning",
            "content-security-policy", "x-content-type-options", "cache-control", "via", "connection"}


def keep(mnemon, tmp_path, *records):
    """An archive of these captures, whoever made them."""
    path = tmp_path / "planted.warc.gz"
    path.write_bytes(b"".join(records))
    done = mnemon("import", "--data", tmp_path / "node", path)
    assert done.returncode == 0, done.stderr


def test_a_substitute_has_the_rights_of_a_stranger(mnemon, tmp_path):
    planted = [("Set-Cookie", "a=b"), ("Service-Worker-Allowed", "/"), ("Strict-Transport-Security", "max-age=9999"),
               ("Content-Security-Policy", "default-src *"), ("Access-Control-Allow-Origin", "*"), ("Clear-Site-Data", '"*"'),
               ("Refresh", "0; url=http://evil.example/"), ("Link", "<http://evil.example/x.js>; rel=preload; as=script"),
               ("Alt-Svc", 'h3="evil.example:443"'), ("Location", "http://evil.example/"), ("X-Anything", "1"), ("ETag", "x"),
               ("Date", "Tue, 01 Jan 2019 00:00:00 GMT"), ("Last-Modified", "yesterday"), ("Content-Encoding", "identity"),
               ("Origin-Trial", "x"), ("SourceMap", "/x"), ("Report-To", "{}"), ("NEL", "{}"), ("Document-Policy", "x")]
    page = b"<!doctype html><html><head><meta charset=koi8-r><title>t</title></head><!-- <body> --><body class='a>b'>x</body></html>"
    keep(mnemon, tmp_path,
         response(f"http://{DEAD}/", page, 'Text/HTML; boundary="a, text/javascript"', headers=planted),
         response(f"http://{DEAD}/plain", b"<script>1</script>", "text/plain; charset=\"x\r\nA: b\""),
         response(f"http://{DEAD}/frames", b"<frameset><frame src=a></frameset>"),
         response(f"http://{DEAD}/in", b"", status=302, headers=[("Location", "/plain"), ("Set-Cookie", "a=b")]),
         response(f"http://{DEAD}/out", b"", status=302, headers=[("Location", "http://evil.example/?a=<b>")]))
    with running(mnemon, tmp_path) as node:
        status, fields, body = node.curl(f"http://{DEAD}/")
        assert status == 200 and set(fields) <= HARMLESS, set(fields) - HARMLESS
        policy = fields["content-security-policy"].split(";")[0].split()
        assert policy[0] == "sandbox" and not {"allow-same-origin", "allow-scripts", "allow-forms"} & set(policy)
        assert fields["x-content-type-options"] == "nosniff"
        assert fields["content-type"].lower() == "text/html; charset=koi8-r"
        assert fields["date"] == "Tue, 01 Jan 2019 00:00:00 GMT" and "last-modified" not in fields
        assert unmarked(body) == page and body.startswith(page[:page.index(b"x</body>")]), "behind <body>"
        status, fields, body = node.curl(f"http://{DEAD}/plain")
        assert (status, body) == (200, b"<script>1</script>") and set(fields) <= HARMLESS
        assert node.curl(f"http://{DEAD}/frames")[2] == b"<frameset><frame src=a></frameset>"
        status, fields, body = node.curl(f"http://{DEAD}/in")
        assert (status, fields["location"], body) == (302, f"http://{DEAD}/plain", b"") and set(fields) <= HARMLESS | {"location"}
        status, fields, body = node.curl(f"http://{DEAD}/out")
        assert status == 200 and set(fields) <= HARMLESS and b"<b>" not in body and b"evil.example" in body


def test_no_substitute_is_code(mnemon, tmp_path):
    kinds = ["text/javascript", "application/x-javascript; charset=utf-8", "Application/JavaScript", "text/jscript", "application/wasm"]
    keep(mnemon, tmp_path, response(f"http://{DEAD}/", b"page"),
         *(response(f"http://{DEAD}/{number}.js", b"1", kind) for number, kind in enumerate(kinds)))
    with running(mnemon, tmp_path) as node:
        for number in range(len(kinds)):
            status, fields, body = node.curl(f"http://{DEAD}/{number}.js")
            assert status == 504 and b"script" in body and b"/web/http://" in body, "where it can be read instead"
        for field in ("Service-Worker: script", *(f"Sec-Fetch-Dest: {name}" for name in (
                "serviceworker", "sharedworker", "worker", "audioworklet", "script", "empty", "object", "embed", "manifest", "xslt", "json"))):
            assert node.curl(f"http://{DEAD}/", "-H", field)[0] == 504, field
        for name in ("document", "iframe", "image", "style", "font"):
            assert node.curl(f"http://{DEAD}/", "-H", f"Sec-Fetch-Dest: {name}")[0] == 200, name


def test_a_substitute_is_of_the_same_origin(mnemon, tmp_path, tls):
    context, certificate = tls
    live = Origin(context)
    keep(mnemon, tmp_path, response(f"http://{DEAD}/plain", b"plain"), response(f"https://{DEAD}/secure", b"secure", Mnemon_TLS="verified"),
         response(f"https://{DEAD}/unproved", b"whose?"), response(f"https://{DEAD}/false", b"a liar's", Mnemon_TLS="self-signed certificate"),
         response(f"http://{DEAD}/both", b"plain", time14="20260102030405"),
         response(f"https://{DEAD}/both", b"secure", time14="20250102030405", Mnemon_TLS="verified"),
         response(f"http://{DEAD}:8080/port", b"port"), response("http://www.dead.invalid/", b"www"), response(live.link("/"), b"kept"))
    authority = tmp_path / "ca.pem"
    authority.write_text(mnemon("proxy", "--print-ca", "--data", tmp_path / "node").stdout)
    with running(mnemon, tmp_path, "--intercept") as node:
        def get(url):
            status, fields, body = node.curl(url, "--cacert", authority)
            return unmarked(body) if status == 200 else status

        assert get(f"http://{DEAD}/plain") == b"plain" and get(f"https://{DEAD}/plain") == 504
        assert get(f"https://{DEAD}/secure") == b"secure" and get(f"http://{DEAD}/secure") == 504
        assert get(f"https://{DEAD}/unproved") == get(f"https://{DEAD}/false") == 504, "no certificate was good then"
        assert get(f"http://{DEAD}/both") == b"plain" and get(f"https://{DEAD}/both") == b"secure", "each its own"
        assert get(f"http://{DEAD}:8080/port") == b"port"
        assert get(f"http://{DEAD}:8081/port") == get(f"http://{DEAD}/port") == 504
        assert get("http://www.dead.invalid/") == b"www" and get("http://dead.invalid/") == 504
        status, fields, body = node.curl(live.link("/"), "--cacert", authority)
        assert status == 502 and b"certificate" in body and b"kept" not in body, "who is there is not dead"
    live.end()


def test_what_another_node_imported_proves_no_certificate(mnemon, tmp_path):
    """Whoever imports a file that says `verified` decides for itself, and for no other node."""
    path = tmp_path / "planted.warc.gz"
    path.write_bytes(response(f"https://{DEAD}/secure", b"secure", Mnemon_TLS="verified") + response(f"http://{DEAD}/plain", b"plain"))
    with crowd(mnemon, tmp_path, 2) as nodes:
        importer, other = nodes
        assert importer.run("import", path).returncode == 0
        (importer.directory / "mnemon.conf").write_text("[crowd]\noffers = kept\n")
        authority = tmp_path / "ca.pem"
        for each in nodes:
            each.stop()
            each.options = (*each.options, "--intercept")
            each.start()
        authority.write_text("".join(each.run("proxy", "--print-ca").stdout for each in nodes))
        wait_for(lambda: other.curl(f"http://{DEAD}/plain")[0] == 200, lambda: str(other.curl(f"http://{DEAD}/plain")))
        status, fields, body = other.curl(f"https://{DEAD}/secure", "--cacert", authority)
        assert status == 504 and b"certificate" in body, (status, body)
        status, fields, body = importer.curl(f"https://{DEAD}/secure", "--cacert", authority)
        assert (status, unmarked(body)) == (200, b"secure")


def test_a_dead_server_behind_a_tunnel_is_pointed_to(mnemon, tmp_path):
    with running(mnemon, tmp_path) as node:
        got = node.raw(f"CONNECT {DEAD}:443 HTTP/1.1\r\n\r\n".encode())
        assert got.startswith(b"HTTP/1.1 504")
        way = f"{node.url.rstrip('/')}/web/*/https://{DEAD}/*"
        assert f'Link: <{way}>; rel="archives"\r\n'.encode() in got and f'<a href="{way}">'.encode() in got, got
        assert f"https://{DEAD}/ does not answer; what the archive has of it: {way}" in node.log.read_text()


def test_a_substitute_is_decoded_within_limits(mnemon, tmp_path):
    bomb = gzip.compress(gzip.compress(bytes(16 << 20)) * 224)
    keep(mnemon, tmp_path, *(response(f"http://{DEAD}/{kind[5:]}", bomb, kind, headers=[("Content-Encoding", "gzip, gzip")])
                             for kind in ("text/html", "text/plain")))
    with running(mnemon, tmp_path) as node:
        for path in ("html", "plain"):
            begun = time.monotonic()
            status, fields, body = node.curl(f"http://{DEAD}/{path}")
            assert (status, body, fields["content-encoding"]) == (200, bomb, "gzip, gzip") and fields["x-mnemon-undecoded"]
            assert "sandbox" in fields["content-security-policy"]
            assert time.monotonic() - begun < 20


# ---- the crowd ----


def test_what_another_has_read_comes_from_the_crowd(mnemon, tmp_path, origin):
    large = os.urandom(3 << 20)
    origin.put("/page", b"<title>Read by another</title>page", X_Own="1")
    origin.put("/large", large, kind="application/octet-stream")
    origin.put("/cookie", b"mine", Set_Cookie="a=b")
    with crowd(mnemon, tmp_path, 3) as (reader, other, third):
        def give_up():
            return other.said + str(other.curl(origin.link("/page")))

        for path in ("/page", "/large", "/cookie"):
            assert reader.curl(origin.link(path))[0] == 200
        origin.end()
        wait_for(lambda: other.curl(origin.link("/page"))[0] == 200, give_up)
        status, fields, body = third.curl(origin.link("/page"))
        assert (status, unmarked(body)) == (200, b"<title>Read by another</title>page")
        assert "sandbox" in fields["content-security-policy"] and "x-own" not in fields
        assert fields["x-mnemon-source"].startswith("crowd 127.0.0.4") and "memento-datetime" in fields
        wait_for(lambda: other.curl(origin.link("/large"))[2] == large, "the large one")
        assert third.curl(origin.link("/cookie"))[0] == 504, "what set a cookie was for one reader"
        blocked = reader.run("ring", "takedown", origin.link("/page"))
        assert blocked.returncode == 0, blocked.stderr
        # By its own rule, or because nobody offers it any more: whatever comes first.
        wait_for(lambda: third.curl(origin.link("/page"))[0] == 504, "it is taken down")


# ---- https ----


@pytest.fixture
def tls(tmp_path):
    """A server's certificate that is its own authority: the context, and its file."""
    key, certificate = tmp_path / "server.key", tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate,
         "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{IP}"], check=True, capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def test_https_is_a_tunnel(mnemon, tmp_path, tls):
    context, certificate = tls
    origin = Origin(context)
    body = os.urandom(1 << 20) * 8
    origin.put("/a", body)
    with running(mnemon, tmp_path) as node:
        assert node.curl(origin.link("/a"), "--cacert", certificate)[2] == body
        origin.end()
        assert "504" in node.curl(origin.link("/a"), "--cacert", certificate, check=False)[0]
        got = node.raw(f"CONNECT {IP}:{origin.port} HTTP/1.1\r\n\r\n".encode())
        assert got.startswith(b"HTTP/1.1 504") and b"connection refused" in got
        for wrong in (f"{IP}:1/path", "user@host:1", f"{IP}:1?x", ":1", "host:99999"):
            assert node.raw(f"CONNECT {wrong} HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 400"), wrong


def test_https_can_be_taken_apart(mnemon, tmp_path, tls):
    context, certificate = tls
    origin = Origin(context)
    big = os.urandom(1 << 20) * 8
    origin.put("/a", b"secret page")
    origin.put("/big", big)
    origin.pages["/post"] = lambda handler, body: (200, {}, str(len(body)).encode())
    printed = mnemon("proxy", "--print-ca", "--data", tmp_path / "node")
    assert printed.stdout.startswith("-----BEGIN CERTIFICATE-----") and "PRIVATE" not in printed.stdout, printed.stderr
    authority = tmp_path / "ca.pem"
    authority.write_text(printed.stdout)
    key_file = tmp_path / "node" / "proxy-ca.pem"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    upload = tmp_path / "upload"
    upload.write_bytes(big)
    options = ("--intercept", "--archive", "--allow-private")
    with running(mnemon, tmp_path, *options, environment={"SSL_CERT_FILE": str(certificate)}) as node:
        assert node.curl(origin.link("/a"), "--cacert", authority)[2] == b"secret page"
        assert node.curl(origin.link("/a"), "--cacert", certificate, check=False)[2] == b"", "it is not the server's certificate"
        assert node.curl(origin.link("/big"), "--cacert", authority)[2] == big
        assert node.curl(origin.link("/post"), "--cacert", authority, "--data-binary", f"@{upload}")[2] == str(len(big)).encode()
        plain = Origin()
        plain.put("/", b"no TLS in the tunnel")
        assert node.curl(plain.link("/"), "-p")[2] == b"no TLS in the tunnel"
        plain.end()
        origin.end()
        status, fields, body = wait_for(
            lambda: (got := node.curl(origin.link("/a"), "--cacert", authority))[0] == 200 and got, "from the archive")
        assert (unmarked(body), fields["x-mnemon-source"]) == (b"secret page", "archive")
        assert node.curl(origin.link("/never"), "--cacert", authority)[0] == 504
    stranger = Origin(context)
    with running(mnemon, tmp_path, "--intercept") as node:  # with the authorities of the system
        status, _, body = node.curl(stranger.link("/a"), "--cacert", authority)
        assert status == 502 and b"certificate" in body, "a false certificate is not believed"
    stranger.end()
    assert mnemon("proxy", "--print-ca", "--data", tmp_path / "node").stdout == printed.stdout, "made once"
    key_file.chmod(0o644)
    assert "chmod 600" in mnemon("proxy", "--print-ca", "--data", tmp_path / "node").stderr


# ---- whom it does not serve ----


class Names(threading.Thread):
    """A nameserver for which every name is at one loopback address."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((IP, 0))
        self.place = f"{IP}:{self.socket.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            query, sender = self.socket.recvfrom(1500)
            end = query.index(b"\0", 12) + 5
            is_ipv4 = query[end - 4:end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 60, 4) + socket.inet_aton(IP) if is_ipv4 else b""
            head = query[:2] + b"\x81\x80" + struct.pack(">4H", 1, 1 if is_ipv4 else 0, 0, 0)
            self.socket.sendto(head + query[12:end] + answer, sender)


def test_a_web_page_cannot_reach_what_it_could_not_without_the_proxy(mnemon, tmp_path, origin):
    origin.put("/", b"inside")
    conf = f"[crawl]\nnameservers = {Names().place}\n"
    rebound = f"http://rebound.example:{origin.port}/"
    with running(mnemon, tmp_path, conf=conf) as node:
        status, _, body = node.curl(rebound)
        assert status == 403 and b"--allow-private" in body and not origin.requests
        assert node.raw(f"CONNECT rebound.example:{origin.port} HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403")
        assert node.curl(origin.link("/"))[2] == b"inside", "whoever types the address knows where it leads"
        for place in (node.url, node.url.replace("127.0.0.1", "0.0.0.0"), node.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
                      node.url.replace("127.0.0.1", "2130706433"), f"http://{node.proxy}"):
            status, _, body = node.curl(place + "/", "-g")
            assert status == 403 and b"this node itself" in body, place
        got = node.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 400"), "it serves nothing itself"
    with running(mnemon, tmp_path, "--allow-private", conf=conf) as node:
        assert node.curl(rebound)[2] == b"inside"


def test_who_listens_to_everybody_is_warned_and_reaches_nothing_private(mnemon, tmp_path, origin):
    origin.put("/", b"inside")
    with running(mnemon, tmp_path, "--listen", "0.0.0.0:0") as node:
        assert "is not a loopback address" in node.said
        node.proxy = node.proxy.replace("0.0.0.0", "127.0.0.1")
        assert node.curl(origin.link("/"))[0] == 403


# ---- hostile ----

END = "\r\n\r\n"
SMUGGLED = f"0{END}GET /smuggled HTTP/1.1\r\nX: y\r\n\r\n"


def hostile(link):
    post = f"POST {link} HTTP/1.1\r\nHost: x\r\n"
    yield post + f"Content-Length: 4\r\nTransfer-Encoding: chunked{END}{SMUGGLED}"
    yield post + f"Transfer-Encoding: chunked\r\nContent-Length: 4{END}{SMUGGLED}"
    yield post + f"Content-Length: 4\r\nContent-Length: 5{END}12345"
    yield post + f"Content-Length: 4\r\nContent-Length: 4{END}1234"
    for length in ("+4", "-4", "0x4", "4,4", "4 4", "", "99999999999999999999", "4\x0b"):
        yield post + f"Content-Length: {length}{END}1234"
    for coding in ("chunked, chunked", "gzip, chunked", "xchunked", "chunked\x0b", "identity", "chunked;q=1"):
        yield post + f"Transfer-Encoding: {coding}{END}{SMUGGLED}"
    yield post + f"Transfer-Encoding : chunked{END}{SMUGGLED}"
    yield post + f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity{END}{SMUGGLED}"
    yield post.replace("1.1", "1.0") + f"Transfer-Encoding: chunked{END}{SMUGGLED}"
    yield post + f"X: y\r\n Transfer-Encoding: chunked{END}{SMUGGLED}"
    yield post + f"X: y\nTransfer-Encoding: chunked{END}{SMUGGLED}"
    yield post + f"X: y\rTransfer-Encoding: chunked{END}{SMUGGLED}"
    yield post + f"X: y\0{END}"
    yield post + f"Host: other{END}"
    yield post + f"no colon{END}"
    yield post + f": no name{END}"
    yield f"GET {link} HTTP/1.1\n\n"
    yield f"GET {link}{END}"
    yield f"GET {link} HTTP/2.0{END}"
    yield f"GET  {link} HTTP/1.1{END}"
    yield f"GET {link} x HTTP/1.1{END}"
    yield f"G(T {link} HTTP/1.1{END}"
    yield f"{'G' * 40} {link} HTTP/1.1{END}"
    yield f"GET ftp://{IP}/ HTTP/1.1{END}"
    yield f"GET javascript:1 HTTP/1.1{END}"
    yield f"GET http://[::1/ HTTP/1.1{END}"
    yield f"OPTIONS * HTTP/1.1\r\nHost: x{END}"


def test_requests_with_two_meanings_are_refused(mnemon, tmp_path, origin):
    origin.put("/a", b"page")
    with running(mnemon, tmp_path) as node:
        for request in hostile(origin.link("/a")):
            got = node.raw(request.encode("latin-1"))
            assert got.startswith(b"HTTP/1.1 400") and got.count(b"HTTP/1.1 ") == 1, (request, got)
        assert not origin.requests
        assert node.raw(f"TRACE {origin.link('/a')} HTTP/1.1{END}".encode()).startswith(b"HTTP/1.1 405")
        large = node.raw(f"GET {origin.link('/a')} HTTP/1.1\r\nX: {'x' * (70 << 10)}{END}".encode())
        assert large.startswith(b"HTTP/1.1 431")
        many = node.raw(f"GET {origin.link('/a')} HTTP/1.1\r\n{'X: y' + chr(13) + chr(10)}".encode() + b"X: y\r\n" * 600 + b"\r\n")
        assert many.startswith(b"HTTP/1.1 400")
        assert not origin.requests
        assert node.curl(origin.link("/a"))[2] == b"page", "others are served all the same"


FALSE_CHUNKS = ("zz\r\n", "4\r\n12345\r\n0\r\n\r\n", "4\n1234\r\n0\r\n\r\n", "-4\r\n", "0x4\r\n1234\r\n", " 4\r\n1234\r\n", "4;\x01\r\n1234\r\n",
                "fffffffffffffffff\r\n", "0\r\nX: y\nZ: a\r\n\r\n", "0\r\n folded\r\n\r\n", "4;" + "x" * 9000 + "\r\n")


def test_false_chunks_end_the_request(mnemon, tmp_path, origin):
    origin.put("/a", b"page")
    with running(mnemon, tmp_path) as node:
        for body in FALSE_CHUNKS:
            request = f"POST {origin.link('/a')} HTTP/1.1\r\nTransfer-Encoding: chunked{END}{body}GET /smuggled HTTP/1.1{END}"
            got = node.raw(request.encode("latin-1"))
            assert got.count(b"HTTP/1.1 ") <= 1 and b"HTTP/1.1 200" not in got, body
        assert all(path != "/smuggled" for _, path, _, _ in origin.requests)


class Raw(threading.Thread):
    """A server that answers every connection with the same bytes, whatever they are, and closes."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer = answer
        self.listener = socket.create_server((IP, 0))
        self.link = f"http://{IP}:{self.listener.getsockname()[1]}/"
        self.start()

    def run(self):
        while True:
            sock, _ = self.listener.accept()
            with contextlib.suppress(OSError), sock:
                sock.recv(1 << 16)
                sock.sendall(self.answer)


HEAD = b"HTTP/1.1 200 OK\r\n"


STRANGE = [
    (b"", 504),
    (b"what is this\r\n\r\n", 504),
    (b"HTTP/1.1 abc OK\r\n\r\n", 504),
    (HEAD + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n12345", 502),
    (HEAD + b"Content-Length: x\r\n\r\n12345", 502),
    (HEAD + b"Transfer-Encoding: gzip\r\n\r\n12345", 502),
    (HEAD + b"X: " + b"x" * (70 << 10) + b"\r\n\r\n", 504),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nab", 502),
    (HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nabGET", 200),
    (b"HTTP/1.0 200 OK\nX: y\rZ: injected\nno colon\nbad name: x\n\nab", 200),
]


def test_strange_answers_are_refused_or_made_plain(mnemon, tmp_path):
    with running(mnemon, tmp_path) as node:
        for answer, status in STRANGE:
            got, fields, body = node.curl(Raw(answer).link)
            assert got == status, answer
            if got == 200:
                assert body == b"ab" and "z" not in fields and "bad name" not in fields and "no colon" not in fields
                assert "content-length" not in fields or "transfer-encoding" not in fields


def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(mnemon, tmp_path):
    with running(mnemon, tmp_path) as node:
        for answer in (HEAD + b"Content-Length: 9\r\n\r\nab", HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nab",
                       HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab"):
            assert "curl" in str(node.curl(Raw(answer).link, check=False)[0])


def test_connections_are_bounded_and_idle_ones_do_no_harm(mnemon, tmp_path, origin):
    origin.put("/a", b"page")
    with running(mnemon, tmp_path) as node:
        host, port = node.proxy.split(":")
        socks = [socket.create_connection((host, int(port))) for _ in range(300)]
        try:
            for sock in socks:
                with contextlib.suppress(OSError):
                    sock.sendall(b"GET http")

            def closed():
                count = 0
                for sock in socks:
                    sock.settimeout(0.001)
                    with contextlib.suppress(TimeoutError):
                        try:
                            count += sock.recv(1) == b""
                        except ConnectionResetError:
                            count += 1
                return count

            wait_for(lambda: closed() == 300 - 256, lambda: f"{closed()} are closed")
        finally:
            for sock in socks:
                sock.close()
        wait_for(lambda: node.curl(origin.link("/a"), check=False)[2] == b"page", "there is room again")


def test_a_node_that_serves_can_have_a_proxy_too(mnemon, tmp_path, origin):
    origin.put("/a", b"page")
    directory = tmp_path / "node"
    directory.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (directory / "mnemon.conf").write_text(f"[proxy]\nport = {port}\n")
    node = Proxy(mnemon, directory, "127.0.0.1")
    node.process = subprocess.Popen([program(mnemon), "serve", "--data", directory, "--http", "0", "--port", "0"],
                                    stdout=subprocess.PIPE, stderr=node.log.open("a"), text=True)
    try:
        node.ready()
        assert node.proxy == f"127.0.0.1:{port}" and node.curl(origin.link("/a"))[2] == b"page"
        node.stop()
    finally:
        if node.process is not None:
            node.kill()
