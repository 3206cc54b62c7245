"""The download engine against a server that misbehaves, a nameserver that lies, and certificates of all kinds."""
import json
import os
import pathlib
import socket
import ssl
import subprocess
import time

import pytest

from badserver import ANSWERS, HELLO, TRAILED, BadServer, NameServer


@pytest.fixture
def server():
    server = BadServer()
    yield server
    server.stop()


@pytest.fixture
def fetch(root, tmp_path):
    """fetch(lines, option…) gives one result a line; bytes as latin-1 text made bytes again."""
    program = pathlib.Path(os.environ.get("MNEMON", root / "build" / "mnemon")).parent / "tests" / "system" / "fetchlist"

    def run(lines, *options, private=True, environment=None, status=0):
        lines = [lines] if isinstance(lines, str) else lines
        words = [program, "--directory", tmp_path, *options] + (["--allow-private"] if private else [])
        result = subprocess.run(
            [str(word) for word in words], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60,
            env=dict(os.environ, **(environment or {})),
        )
        assert result.returncode == status, result.stderr
        if status != 0:
            return result.stderr
        *results, statistics = [json.loads(line) for line in result.stdout.splitlines()]
        for one in results:
            for name in ("request", "head", "body"):
                one[name] = one[name].encode("latin-1")
        results.sort(key=lambda one: one["line"])
        run.statistics = statistics
        return results

    return run


def split(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body


# Bytes as sent and as received.


def test_request_is_recorded_as_the_server_got_it(server, fetch):
    targets = ["/echo", "/echo?", "/echo?a=1&b=%20c", "/echo/../x//y/", "/echo?" + "q" * 3000, "/echo;p=1?x=[]{}|'"]
    results = fetch([server.origin + target for target in targets])
    assert [one["err"] for one in results] == ["ok"] * len(targets)
    for one, (_, request, _) in zip(results, server.requests):
        assert one["request"] == request
    assert server.requests[0][1] == (
        f"GET /echo HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAccept: */*\r\n"
        "Accept-Encoding: gzip, deflate, br, zstd\r\n"
        "User-Agent: Mozilla/5.0 (compatible; mnemon; web archive)\r\n\r\n"
    ).encode()
    assert results[0]["body"] == server.requests[0][1]
    assert {number for _, _, number in server.requests} == {1}  # one connection for all
    assert [one["new"] for one in results] == [True] + [False] * (len(targets) - 1)


def test_special_requests_are_recorded_as_the_server_got_them(server, fetch):
    nameserver = NameServer({"dot.example.": ["127.0.0.1"], "dot.example": ["127.0.0.1"], "xn--mller-kva.example": ["127.0.0.1"]})
    lines = [
        f"{server.origin}/echo\t\"tag\"\tMon, 02 Jan 2006 15:04:05 GMT",
        f"{server.origin}/echo\tW/\"other\"",
        f"{server.origin}/echo",
        f"http://linked:secret@127.0.0.1:{server.port}/echo",
        f"http://dot.example.:{server.port}/echo#fragment",
        f"http://m\u00fcller.example:{server.port}/\u00e4?\u00f6",
    ]
    results = fetch(
        lines, "--nameserver", nameserver.address, "--header", "X-Own: a:b", "--header", "Accept-Language: de",
        "--user-agent", "me/1", "--login", f"http://us%20er:p%40ss@127.0.0.1:{server.port}/",
    )
    nameserver.stop()
    assert [one["err"] for one in results] == ["ok"] * 6
    login = b"\r\nAuthorization: Basic dXMgZXI6cEBzcw=="
    for one, (_, request, _) in zip(results, server.requests):
        assert one["request"] == request.replace(login, b"")
    requests = [request for _, request, _ in server.requests]
    assert b'\r\nIf-None-Match: "tag"\r\nIf-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT\r\n' in requests[0]
    assert b'If-None-Match: W/"other"' in requests[1] and b"If-Modified-Since" not in requests[1]
    assert b"If-" not in requests[2]
    assert all(request.count(login + b"\r\n") == request.count(b"Authorization") == 1 for request in requests[:4])
    assert b"Authorization" not in requests[4] + requests[5] and b"fragment" not in requests[4]
    assert requests[5].startswith(b"GET /%C3%A4?%C3%B6 HTTP/1.1\r\nHost: xn--mller-kva.example:")
    for request in requests:
        assert b"\r\nUser-Agent: me/1\r\nX-Own: a:b\r\nAccept-Language: de\r\n" in request
        assert request.count(b"Accept: ") == request.count(b"Host: ") == request.count(b"User-Agent: ") == 1


def test_no_header_can_be_smuggled_in(server, fetch):
    fetch(f"{server.origin}/echo\t\"a\rX-Injected: 1\"")
    assert b"Injected" not in server.requests[0][1] and b"If-None-Match" not in server.requests[0][1]
    for header in ("X: a\r\nY: b", "X: a\nY: b", "X : a", "no colon", ": x", "X:", "Host: other", "transfer-encoding: chunked"):
        assert "header" in fetch(server.origin, "--header", header, status=1)
    assert "user agent" in fetch(server.origin, "--user-agent", "a\r\nX: b", status=1)


def test_responses_are_recorded_as_they_came(server, fetch):
    paths = [
        "/ok", "/empty", "/folded", "/odd-case", "/chunked", "/chunked-gzip", "/chunked-and-length", "/204", "/304", "/429", "/503",
        "/loop", "/private", "/inject", "/big-head", "/http10", "/no-length",
    ]
    results = fetch([server.origin + path for path in paths])
    for path, one in zip(paths, results):
        assert (one["err"], one["end"]) == ("ok", "whole"), (path, one)
        assert (one["head"], one["body"]) == split(ANSWERS[path]), path
        assert one["ip"] == "127.0.0.1"
        assert one["status"] == int(ANSWERS[path].split(b" ")[1])
    results = fetch([server.origin + path for path in ("/lf-only", "/chunked-lf", "/dripped")])
    assert [one["body"] for one in results] == [b"hello", b"5\nhello\n0\n\n", TRAILED]
    assert results[0]["head"] == b"HTTP/1.1 200 OK\nContent-Length: 5\nX-A: b\n\n"


def test_informational_responses_are_not_part_of_the_head(server, fetch):
    for one in fetch([server.origin + "/100", server.origin + "/103"]):
        assert (one["head"], one["body"]) == split(HELLO)
        assert one["end"] == "whole"


def test_chunked_and_kept_connections_go_together(server, fetch):
    results = fetch([server.origin + "/chunked"] * 5 + [server.origin + "/ok"] * 2)
    assert [one["body"] for one in results] == [TRAILED] * 5 + [b"hello"] * 2
    assert {number for _, _, number in server.requests} == {1}


def test_bytes_behind_a_response_are_nobodys(server, fetch):
    paths = ["/chunked-more", "/ok", "/length-more", "/ok", "/empty", "/ok"]
    results = fetch([server.origin + path for path in paths])
    assert [one["body"] for one in results] == [TRAILED, b"hello", b"hello", b"hello", b"", b"hello"]
    assert [one["new"] for one in results] == [True, True, False, True, False, False]


def test_bytes_that_come_while_idle_spoil_the_connection(server, fetch):
    results = fetch([server.origin + "/garbage-later", server.origin + "/ok"], "--pause-ms", "300")
    assert [one["body"] for one in results] == [b"kept", b"hello"]
    assert results[1]["new"]


def test_a_connection_that_was_closed_is_replaced(server, fetch):
    lines = [server.origin + "/closes-idle", server.origin + "/ok"] * 3
    results = fetch(lines, "--pause-ms", "50")
    assert [one["body"] for one in results] == [b"kept", b"hello"] * 3
    results = fetch([server.origin + "/closes-on-request", server.origin + "/ok"])
    assert [one["body"] for one in results] == [b"kept", b"hello"]
    assert [target for target, _, _ in server.requests[-2:]] == ["/closes-on-request", "/ok"]
    # On a fresh connection the same is a failure: the request is not sent again and again.
    count = len(server.requests)
    assert [one["err"] for one in fetch([server.origin + "/nothing"])] == ["closed"]
    assert len(server.requests) == count + 1


# What is broken.


def test_broken_responses_end_as_documented(server, fetch):
    expected = {
        "/short": ("ok", "disconnected", b"hello"),
        "/claims-4-tb": ("ok", "disconnected", b"hello"),
        "/reset-body": ("ok", "disconnected", b"hello"),
        "/bad-chunk": ("ok", "disconnected", b"5\r\nhelloXX\r\n0\r\n\r\n"),
        "/bad-size": ("ok", "disconnected", b"5\r\nhello\r\nzz\r\nmore\r\n"),
        "/overflow": ("ok", "disconnected", b"ffffffffffffffff1\r\nhello\r\n0\r\n\r\n"),
        "/cut-chunk": ("ok", "disconnected", b"5\r\nhello\r\n64\r\nonly this"),
        "/cut-trailer": ("ok", "disconnected", b"5\r\nhello\r\n0\r\nX-Trailer: 1\r\n"),
        "/nothing": ("closed", "whole", b""),
        "/reset": ("closed", "whole", b""),
        "/half-head": ("closed", "whole", b""),
        "/http09": ("invalid", "whole", b""),
        "/garbage": ("invalid", "whole", b""),
        "/101": ("invalid", "whole", b""),
        "/nul": ("invalid", "whole", b""),
        "/no-colon": ("invalid", "whole", b""),
        "/status-1000": ("invalid", "whole", b""),
        "/negative-length": ("invalid", "whole", b""),
        "/huge-head": ("limit", "whole", b""),
        "/huge-line": ("limit", "whole", b""),
        "/endless-head": ("limit", "whole", b""),
        "/endless-line": ("limit", "whole", b""),
        "/flood-1xx": ("limit", "whole", b""),
    }
    results = fetch([server.origin + path for path in expected], "--lanes", "4")
    for (path, (err, end, body)), one in zip(expected.items(), results):
        assert (one["err"], one["end"], one["body"]) == (err, end, body), (path, one)
        assert (one["detail"] == "") == (err == "ok"), path
        assert one["worth_retry"] == (err == "closed"), path


def test_bodies_are_cut_at_the_limit(server, fetch):
    paths = ["/endless", "/endless-chunks", "/endless-trailer", "/large?100000", "/large?100001", "/ok"]
    results = fetch([server.origin + path for path in paths], "--body-max", "100000", "--lanes", "3")
    assert [one["err"] for one in results] == ["ok"] * 6
    assert [one["end"] for one in results] == ["too_long"] * 2 + [results[2]["end"], "whole", "too_long", "whole"]
    assert results[2]["end"] in ("too_long", "disconnected")  # libcurl has limits for trailers, too
    assert [one["body_size"] for one in results[:2] + results[3:]] == [100000] * 4 + [5]


def test_large_bodies_are_in_a_file_and_whole(server, fetch, tmp_path):
    sizes = [1000, 100000, 3 << 20]
    results = fetch([f"{server.origin}/large?{size}" for size in sizes])
    assert [one["body_size"] for one in results] == sizes
    assert [one["is_in_memory"] for one in results] == [True, True, False]
    assert results[2]["body"] == bytes(range(256)) * 256
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_is_just_bytes(server, fetch):
    one = fetch(server.origin + "/bomb")[0]
    assert one["end"] == "whole" and one["body_size"] < 20000 and b"Content-Encoding: gzip" in one["head"]


# Time.


def test_what_takes_too_long_is_cut(server, fetch):
    paths = ["/silent", "/slow-head", "/drip-1xx", "/silent-body"]
    limits = ["--first-byte-ms", "200", "--stall-ms", "200", "--lanes", "4"]
    results = dict(zip(paths, fetch([server.origin + path for path in paths], *limits)))
    for path in ("/silent", "/slow-head", "/drip-1xx"):
        assert (results[path]["err"], results[path]["worth_retry"]) == ("timeout", True), path
        assert results[path]["detail"]
    assert results["/silent"]["total_us"] >= 200000
    assert results["/slow-head"]["total_us"] >= 400000
    assert (results["/silent-body"]["err"], results["/silent-body"]["end"]) == ("ok", "too_slow")
    assert results["/silent-body"]["body"] == b"hello"


def test_what_comes_slowly_is_cut_after_the_total_time(server, fetch):
    slow, ok = fetch([server.origin + "/slow-body", server.origin + "/ok"], "--total-ms", "700", "--lanes", "2")
    assert (slow["err"], slow["end"]) == ("ok", "too_slow")
    assert slow["total_us"] >= 700000 and slow["body_size"] > 5
    assert (ok["err"], ok["end"]) == ("ok", "whole")


def test_what_drips_is_cut_though_it_never_stalls(server, fetch):
    slow, large = fetch([server.origin + "/slow-body", server.origin + "/large?3000000"], "--slow-ms", "500")
    assert (slow["err"], slow["end"]) == ("ok", "too_slow")
    assert slow["total_us"] >= 500000 and slow["body_size"] > 5
    assert (large["err"], large["end"]) == ("ok", "whole")


def test_a_connection_that_is_not_made_in_time_fails(fetch):
    # A listener whose queue is full answers nothing.
    with BlockedListener() as port:
        one = fetch(f"http://127.0.0.1:{port}/", "--connect-ms", "200")[0]
    assert (one["err"], one["worth_retry"]) == ("timeout", True)
    assert one["total_us"] >= 200000


class BlockedListener:
    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.clients = []
        for _ in range(16):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(self.listener.getsockname())
            self.clients.append(client)
        return self.listener.getsockname()[1]

    def __exit__(self, *arguments):
        for one in [*self.clients, self.listener]:
            one.close()


def test_nobody_listens(server, fetch):
    server.stop()
    one = fetch(server.origin + "/ok")[0]
    assert (one["err"], one["worth_retry"], one["status"]) == ("refused", True, 0)


# Names and addresses.


def test_private_addresses_are_refused(server, fetch):
    urls = [
        server.origin + "/ok", "http://localhost/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://169.254.169.254/", "http://0/",
    ]
    for one in fetch(urls, private=False):
        assert (one["err"], one["worth_retry"]) == ("permission", False), one
        assert "not fetched" in one["detail"]
    assert server.connections == 0


def test_an_answer_that_changes_to_a_private_address_leads_nowhere(server, fetch):
    nameserver = NameServer({
        "rebinding.example": [["192.0.2.1"], ["127.0.0.1"]],  # first "public" (see below), then private
        "private.example": ["10.1.2.3"],
        "mixed.example": ["127.0.0.1", "127.0.0.1"],
    })
    urls = [f"http://{name}:{server.port}/ok" for name in ("rebinding.example", "private.example", "mixed.example")] * 2
    results = fetch(urls, "--nameserver", nameserver.address, "--ttl-ms", "1", "--pause-ms", "30", private=False)
    nameserver.stop()
    assert [one["err"] for one in results] == ["permission"] * 6
    assert "documentation" in results[0]["detail"] and "loopback" in results[3]["detail"]
    assert nameserver.asked.count(("rebinding.example", 1)) == 2
    assert server.connections == 0


def test_a_name_that_moves_is_followed(fetch):
    first, second = BadServer("127.0.0.2"), BadServer("127.0.0.3", 0)
    second.stop()
    second = BadServer("127.0.0.3", first.port)
    nameserver = NameServer({"moving.example": [["127.0.0.2"], ["127.0.0.3"]]})
    lines = [f"http://moving.example:{first.port}/closes-idle"] * 2
    results = fetch(lines, "--nameserver", nameserver.address, "--ttl-ms", "1", "--pause-ms", "50")
    for one in (first, second, nameserver):
        one.stop()
    assert [one["ip"] for one in results] == ["127.0.0.2", "127.0.0.3"]


def test_names_that_do_not_resolve_fail_without_holding_up_others(server, fetch):
    nameserver = NameServer({"silent.example": "silent", "failing.example": "failing", "good.example": ["127.0.0.1"]}, ttl=300)
    urls = [f"http://{name}.example:{server.port}/ok" for name in ("silent", "missing", "failing", "good")]
    results = fetch(urls + urls, "--nameserver", nameserver.address, "--lanes", "8", "--dns-ms", "1500")
    nameserver.stop()
    assert [one["err"] for one in results] == ["timeout", "not_found", "unreachable", "ok"] * 2
    assert [one["worth_retry"] for one in results] == [True, False, True, False] * 2
    assert results[3]["total_us"] < 1400000 <= results[0]["total_us"]
    assert nameserver.asked.count(("good.example", 1)) == 1  # joined


def test_a_nameserver_that_is_down_is_told_in_bounded_time(server, fetch):
    nameserver = NameServer({})
    nameserver.stop()
    started = time.monotonic()
    urls = ["http://a.example/", f"{server.origin}/ok", "http://b.example/"]
    results = fetch(urls, "--nameserver", nameserver.address, "--lanes", "3", "--connect-ms", "500")
    assert time.monotonic() - started < 10
    assert [one["err"] for one in results][1] == "ok"
    assert results[0]["err"] in ("timeout", "unreachable") and results[0]["worth_retry"]


def test_other_urls_are_refused(fetch):
    for one in fetch(["ftp://127.0.0.1/", "file:///etc/passwd", "http://", "no url", "data:,x", "http://a b/"]):
        assert (one["err"], one["worth_retry"]) == ("invalid", False)


def test_ipv6_is_fetched_from(fetch):
    try:
        server = BadServer("::1")
    except OSError:
        pytest.skip("no IPv6 on this machine")
    results = fetch([server.origin + "/echo"] * 3)
    server.stop()
    assert [one["err"] for one in results] == ["ok"] * 3
    assert results[0]["ip"] == "::1"
    for one, (_, request, _) in zip(results, server.requests):
        assert one["request"] == request
    assert server.connections == 1


# Certificates.


def openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority that tests trust, and certificates by it."""
    directory = tmp_path_factory.mktemp("certificates")
    openssl(directory, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority")

    def issue(name, extension, *options):
        openssl(directory, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (directory / f"{name}.ext").write_text(extension)
        openssl(
            directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.crt", "-extfile", f"{name}.ext", *options,
        )

    issue("good", "subjectAltName=DNS:good.example,DNS:*.wild.example,IP:127.0.0.1", "-days", "2")
    (directory / "chain.pem").write_bytes((directory / "good.crt").read_bytes() + (directory / "ca.pem").read_bytes())
    issue("expired", "subjectAltName=DNS:good.example,IP:127.0.0.1", "-days", "-1")
    openssl(directory, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "self.key", "-out", "self.crt", "-days", "2", "-subj", "/CN=127.0.0.1")
    return directory


@pytest.fixture
def secure(certificates):
    """secure(name) is a server with that certificate."""
    servers = []

    def start(name, **limits):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / f"{name}.crt", certificates / f"{name}.key")
        for key, value in limits.items():
            setattr(context, key, value)
        servers.append(BadServer(context=context))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_good_certificates_are_told_from_bad_ones_and_all_are_fetched(fetch, secure, certificates):
    good, expired, own = secure("good"), secure("expired"), secure("self")
    nameserver = NameServer({name: ["127.0.0.1"] for name in ("good.example", "a.wild.example", "other.example")})
    expected = [
        (good.origin, "good", ""),
        (good.origin, "good", ""),  # the verdict stays with the kept connection
        (f"https://good.example:{good.port}", "good", ""),
        (f"https://a.wild.example:{good.port}", "good", ""),
        (f"https://other.example:{good.port}", "bad", "hostname mismatch"),
        (f"https://other.example:{good.port}", "bad", "hostname mismatch"),
        (expired.origin, "bad", "certificate has expired"),
        (own.origin, "bad", "self-signed certificate"),
    ]
    lines = [origin + "/echo" for origin, _, _ in expected]
    trust = {"SSL_CERT_FILE": str(certificates / "ca.pem"), "SSL_CERT_DIR": "/nonexistent"}
    options = ["--nameserver", nameserver.address]
    for (_, tls, reason), one in zip(expected, fetch(lines, *options, environment=trust)):
        assert (one["err"], one["end"], one["tls"], one["tls_reason"]) == ("ok", "whole", tls, reason)
        assert one["body"] == one["request"]
    requests = len(good.requests) + len(expired.requests) + len(own.requests)
    results = fetch(lines, *options, "--refuse-bad-certificates", environment=trust)
    nameserver.stop()
    for (_, tls, reason), one in zip(expected, results):
        assert one["tls"] == tls and one["tls_reason"] == reason
        assert one["err"] == ("ok" if tls == "good" else "refused")
        assert not one["worth_retry"]
        assert tls == "good" or reason in one["detail"]
    assert len(good.requests) + len(expired.requests) + len(own.requests) == requests + 4  # none to bad ones


def test_an_idle_tls_connection_keeps_neither_buffers_nor_certificates(fetch, certificates):
    """Beyond what a plain one needs, 27 KB; with the server's certificate 33, with a buffer or the whole chain more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "chain.pem", certificates / "good.key")
    trust = {"SSL_CERT_FILE": str(certificates / "ca.pem"), "SSL_CERT_DIR": "/nonexistent"}

    def kb_per_connection(context):
        server = BadServer("0.0.0.0", context=context)
        scheme = "http" if context is None else "https"
        heaps = []
        for count in (20, 80):
            lines = [f"{scheme}://127.0.9.{i + 1}:{server.port}/ok" for i in range(count)]
            fetch(lines, "--lanes", count, "--hold-ms", "100", environment=trust)
            assert (fetch.statistics["connections"], fetch.statistics["failed"]) == (count, 0)
            heaps.append(fetch.statistics["heap_kb"])
        server.stop()
        return (heaps[1] - heaps[0]) / 60

    assert kb_per_connection(context) - kb_per_connection(None) < 29


def test_tls_that_ends_badly(fetch, secure, server):
    good = secure("good")
    lines = [
        good.origin + "/short", good.origin + "/no-length", good.origin + "/chunked", good.origin + "/garbage-later",
        good.origin + "/ok", good.origin + "/closes-idle", good.origin + "/ok", good.origin + "/large?3000000",
    ]
    results = fetch(lines, "--pause-ms", "150")
    assert [one["err"] for one in results] == ["ok"] * 8
    assert [one["end"] for one in results] == ["disconnected"] + ["whole"] * 7
    assert results[2]["body"] == TRAILED and results[4]["body"] == results[6]["body"] == b"hello"
    assert results[7]["body_size"] == 3000000
    one = fetch(f"https://127.0.0.1:{server.port}/ok", "--connect-ms", "2000")[0]  # no TLS there
    assert one["err"] in ("refused", "closed", "timeout") and one["detail"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_servers_are_spoken_to(fetch, secure):
    old = secure("good", maximum_version=ssl.TLSVersion.TLSv1, minimum_version=ssl.TLSVersion.TLSv1)
    old.context.set_ciphers("ALL:@SECLEVEL=0")
    one = fetch(old.origin + "/ok")[0]
    assert (one["err"], one["body"]) == ("ok", b"hello")
    assert fetch(old.origin + "/ok", "--refuse-bad-certificates")[0]["err"] == "refused"


# Others.


def test_a_proxy_gets_the_whole_url_and_the_request_is_recorded(server, fetch):
    nameserver = NameServer({})
    urls = ["http://nowhere.example/echo?a#b", "http://10.0.0.1/"]
    results = fetch(urls, "--proxy", f"http://127.0.0.1:{server.port}", "--nameserver", nameserver.address, private=False)
    nameserver.stop()
    assert server.requests[0][0] == "http://nowhere.example/echo?a"
    assert results[0]["err"] == "ok" and results[0]["request"] == server.requests[0][1]
    assert results[1]["err"] == "permission"
    assert nameserver.asked == []
    assert "must begin with" in fetch(urls, "--proxy", "socks5://127.0.0.1", status=1)
    one = fetch(server.origin + "/ok", environment={"http_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"})[0]
    assert one["err"] == "ok"  # the environment is not asked


def test_a_proxy_leads_to_secure_servers(server, fetch, secure, certificates):
    good = secure("good")
    trust = {"SSL_CERT_FILE": str(certificates / "ca.pem")}
    results = fetch([good.origin + "/echo"] * 2, "--proxy", f"http://127.0.0.1:{server.port}", environment=trust)
    assert [target for target, _, _ in server.requests] == [f"127.0.0.1:{good.port}"]
    for one, (_, request, _) in zip(results, good.requests):
        assert (one["err"], one["tls"], one["request"], one["body"]) == ("ok", "good", request, request)
        assert b"X-Proxy" not in one["head"]


def test_odd_names_are_names(server, fetch):
    names = ["-a.example", "a.example", "+a.example", "*", "_x.example", "a_b-.example"]
    nameserver = NameServer({name: ["127.0.0.1"] for name in names})
    results = fetch([f"http://{name}:{server.port}/ok" for name in names] * 2, "--nameserver", nameserver.address)
    nameserver.stop()
    assert [one["err"] for one in results] == ["ok", "ok", "invalid", "invalid", "ok", "ok"] * 2


def test_many_at_once(server, fetch):
    results = fetch([f"{server.origin}/echo?{i}" for i in range(600)], "--lanes", "200")
    assert [one["err"] for one in results] == ["ok"] * 600
    for i, one in enumerate(results):
        assert one["body"] == one["request"] and one["body"].startswith(b"GET /echo?%d HTTP/1.1\r\n" % i)
    assert fetch.statistics["connections"] <= 200
