"""mnemon archive says why something could not be fetched, ends with 1 if nothing was, and remembers that a host was down."""
import json
import socket
import threading
import time
import urllib.request

import pytest

from test_archive import data, page, site  # noqa: F401
from test_replay import Node, response
from waiting import wait_for

# One run for all of them: each host is tried two or three times, with pauses, at the same time.
KINDS = ("refused", "timeout", "tls", "closed", "name_not_found")


EARLIER = "http://127.0.5.9:9/"  # has a capture of better days


def earlier(directory, url):
    path = directory / "earlier.warc.gz"
    path.write_bytes(response(url, "it was there", time14="20200102030405"))
    return path


class Silent:
    """Listens; with an answer, sends it to whoever connects and ends the connection."""

    def __init__(self, address):
        self.socket = socket.create_server((address, 0), backlog=64)
        self.port = self.socket.getsockname()[1]


@pytest.fixture(scope="module")
def down(tmp_path_factory):
    """A run in which every seed fails in a way of its own, and one that is there."""
    import os
    import pathlib
    import subprocess
    program = os.environ.get("MNEMON", str(pathlib.Path(__file__).parents[2] / "build" / "mnemon"))
    top = tmp_path_factory.mktemp("reasons")
    directory = top / "data"

    def mnemon(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)

    silent, closing, plain = Silent("127.0.5.1"), Silent("127.0.5.2"), Silent("127.0.5.3")

    def serve(server, answer):
        while True:
            try:
                peer, _ = server.socket.accept()
            except OSError:
                return
            peer.recv(65536)
            if answer:
                peer.sendall(answer)
            peer.close()

    threading.Thread(target=serve, args=(closing, b""), daemon=True).start()
    threading.Thread(target=serve, args=(plain, b"this is no TLS\r\n"), daemon=True).start()
    urls = {
        "refused": EARLIER,
        "timeout": f"http://127.0.5.1:{silent.port}/",
        "closed": f"http://127.0.5.2:{closing.port}/",
        "tls": f"https://127.0.5.3:{plain.port}/",
        "name_not_found": "http://no-such-host.invalid/",
    }
    done = mnemon("archive", "--data", directory, *urls.values(), "--allow-private", "--ignore-robots", "--delay", "0", "--timeout", "300 ms", "--json", "-q")
    yield mnemon, directory, urls, done
    for one in (silent, closing, plain):
        one.socket.close()


def test_every_reason_is_named_with_its_url(down):
    _, _, urls, done = down
    assert done.returncode == 1, done.stderr
    assert "nothing could be archived" in done.stderr and "http" in done.stderr
    summary = json.loads(done.stdout)
    reasons = {row["reason"]: row for row in summary["reasons"]}
    assert set(reasons) == set(KINDS), reasons
    for kind, url in urls.items():
        assert reasons[kind]["urls"] == [url] and reasons[kind]["count"] == 1 and reasons[kind]["text"]
    assert (summary["seeds_stored"], summary["seeds_failed"], summary["failed"]) == (0, 5, 5)


def test_a_host_where_nobody_listens_is_given_up_in_a_moment(mnemon, tmp_path):
    """Waits of 2, 4 and 8 s for its robots.txt lay before the news: 14 s, in which nothing was said."""
    with socket.create_server(("127.0.5.8", 0)) as server:
        port = server.getsockname()[1]
    for url in (f"http://127.0.5.8:{port}/", f"https://127.0.5.8:{port}/"):
        began = time.monotonic()
        done = mnemon("archive", url, "--allow-private", "--data", str(tmp_path / "data"))
        assert time.monotonic() - began < 9, done.stderr
        assert done.returncode == 1 and f"{url}: the host refused the connection" in done.stderr


def test_a_dead_host_of_others_holds_up_no_crawl(mnemon, tmp_path, site):  # noqa: F811
    with socket.create_server(("127.0.5.9", 0)) as server:
        dead = f"http://127.0.5.9:{server.getsockname()[1]}/picture.png"
    web = site()
    web.put("/", f'<img src="{dead}">')
    began = time.monotonic()
    done = mnemon("archive", web.url("/"), "--scope", "page", "--allow-private", "--data", str(tmp_path / "data"))
    assert time.monotonic() - began < 9, done.stderr
    assert done.returncode == 0 and f"the host refused the connection (Connection refused): {dead}" in done.stdout, done.stdout


def test_a_server_that_restarts_in_the_middle_is_waited_for(mnemon, tmp_path):
    """It has answered before: that nobody listens now does not mean that nobody is there."""
    server = socket.create_server(("127.0.5.10", 0))
    address = server.getsockname()
    pages = {b"/": page("/later").encode(), b"/later": b"it is back"}

    def serve(listener):
        path = b""
        while path != b"/later":
            peer, _ = listener.accept()
            path = peer.recv(65536).split(b" ")[1]
            status, body = (b"200 OK", pages[path]) if path in pages else (b"404 Not Found", b"")
            if path == b"/":
                listener.close()
            peer.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            peer.close()
            if path == b"/":
                time.sleep(2.5)  # longer than until the second try of a host that never answered: the time is the subject
                listener = socket.create_server(address)
        listener.close()

    threading.Thread(target=serve, args=(server,), daemon=True).start()
    done = mnemon("archive", f"http://{address[0]}:{address[1]}/", "--allow-private", "--delay", "0", "--data", str(tmp_path / "data"), "--json", "-q")
    summary = json.loads(done.stdout)
    assert done.returncode == 0 and summary["failed"] == 0 and summary["retried"] >= 1, summary


def test_a_host_that_was_down_is_part_of_the_archive(down):
    mnemon, directory, urls, _ = down
    kept = [json.loads(line) for line in mnemon("list", "--data", directory, "--json", "urn:fetch-failure:*").stdout.splitlines()]
    assert {row["url"] for row in kept} == {"urn:fetch-failure:" + url for url in urls.values()}
    fields = mnemon("get", "--data", directory, "urn:fetch-failure:" + urls["refused"]).stdout
    assert fields.split()[:4] == ["fetch-status:", "-2", "fetch-failure:", "refused"], fields
    assert mnemon("get", "--data", directory, urls["refused"]).returncode != 0
    assert urls["refused"] == EARLIER
    node = Node(mnemon, directory.parent, files=[earlier(directory.parent, urls["refused"])])
    try:
        for url in set(urls.values()) - {EARLIER}:
            page = node.get(f"/web/*/{url}", Accept="text/html")
            assert page.status == 404 and "Could not be fetched" in page.text, page.text
            assert node.get(f"/web/{url}").status == 404
            assert node.get(f"/cdx?url={url}").text == ""
        time14 = kept[0]["timestamp"]
        why = node.get(f"/web/{time14}id_/{kept[0]['url']}")
        assert why.status == 200 and "fetch-failure: " in why.text, (why.status, why.text)
        calendar = node.get(f"/web/*/{EARLIER}").text
        assert 'class="day down"' in node.get(f"/web/{time14[:4]}*/{EARLIER}").text and "Could not be fetched" in calendar
        shown = json.loads(node.get(f"/api/v1/calendar?url={EARLIER}").text)
        assert shown["count"] == 1 and [row["scheme"] for row in shown["failures"]] == ["http"]
    finally:
        node.stop()


def test_a_node_keeps_failures_too(mnemon, tmp_path):
    """Its captures are signed, these are not: there is no response to vouch for."""
    made = mnemon("ring", "create", "one", "--open", "--data", str(tmp_path / "data"))
    assert made.returncode == 0, made.stderr
    node = Node(mnemon, tmp_path, options=["--address", "127.0.5.7", "--allow-private"])
    try:
        token = (node.data / "token").read_text().strip()
        asked = urllib.request.Request(f"http://{node.host}/save", b"url=http://no-such-host.invalid/", {"Authorization": f"Bearer {token}"})
        job = json.loads(urllib.request.urlopen(asked, timeout=30).read())["job_id"]
        wait_for(lambda: json.loads(node.get(f"/save/status/{job}").text)["status"] == "error", lambda: node.get(f"/save/status/{job}").text)
        assert json.loads(node.get(f"/save/status/{job}").text)["message"] == "there is no host of that name"
        wait_for(lambda: "urn:fetch-failure:http://no-such-host.invalid/" in node.get("/cdx?url=urn:fetch-failure:*").text, lambda: node.get("/cdx?url=urn:*").text)
    finally:
        node.stop()


def test_robots_and_strict(mnemon, data, site):  # noqa: F811
    """robots.txt is a reason too; one seed of two is enough, but not for --strict; a day may have both marks."""
    web = site()
    web.put("/robots.txt", "User-agent: *\nDisallow: /no\n", "text/plain")
    web.put("/", page("/no"))
    done = mnemon("archive", web.url("/"), "--allow-private", "--delay", "0", "-q", "--json")
    assert done.returncode == 0, done.stderr
    assert [(row["reason"], row["urls"]) for row in json.loads(done.stdout)["reasons"]] == [("robots", [web.url("/no")])]
    denied = mnemon("archive", web.url("/no"), "--allow-private", "--delay", "0", "-q")
    assert denied.returncode == 1 and "robots.txt does not allow it" in denied.stderr
    half = mnemon("archive", web.url("/"), "http://no-such-host.invalid/", "--allow-private", "--delay", "0", "-q")
    assert half.returncode == 0 and "there is no host of that name: http://no-such-host.invalid/" in half.stdout
    assert mnemon("archive", web.url("/"), "http://no-such-host.invalid/", "--allow-private", "--delay", "0", "-q", "--strict").returncode == 1


def test_an_explanation_ends_if_no_nameserver_can_be_asked(mnemon, data, site):  # noqa: F811
    """A question that cannot even be sent fails at once; the command waited for ever."""
    done = mnemon("archive", site().url("/"), "--allow-private", "--nameserver", "255.255.255.255", "--explain", "http://no-such-host.invalid/")
    assert "its name could not be resolved" in done.stdout, done.stdout + done.stderr


def test_a_private_address_is_refused_at_once(mnemon, data):  # noqa: F811
    done = mnemon("archive", "http://127.0.0.1:9/", "--json", "-q")
    assert done.returncode == 1 and "--allow-private" in done.stderr
    summary = json.loads(done.stdout)
    assert [row["reason"] for row in summary["reasons"]] == ["private_address"] and summary["seconds"] < 1.5
    assert mnemon("list", "urn:*").stdout == "", "nothing was asked: that says nothing about the host"
    explained = mnemon("archive", "http://127.0.0.1:9/", "--explain", "http://127.0.0.1:9/").stdout
    assert "address   no" in explained and explained.endswith("fetched   no\n")
    allowed = mnemon("archive", "http://127.0.0.1:9/", "--explain", "http://127.0.0.1:9/", "--allow-private").stdout
    assert "fetched   yes, if the host answers\n" in allowed
    unknown = mnemon("archive", "http://127.0.0.1:9/", "--explain", "http://no-such-host.invalid/").stdout
    assert "there is no host of that name" in unknown
