"""Disks with a quota."""
import hashlib
import http.server
import json
import signal
import subprocess
import threading
import urllib.request
import uuid

import pytest
from ringnodes import await_agreement, found, many
from waiting import PATIENCE_S, wait_for


@pytest.fixture
def node(mnemon, tmp_path):
    with many(mnemon, tmp_path) as make:
        yield make


def start_ring(nodes, *options):
    found(nodes[0], "--open", *options)
    nodes[0].start()
    for each in nodes[1:]:
        each.start("--join", nodes[0].place)
    await_agreement(nodes)


# ---- quotas ----

QUOTA = 80_000_000


def make_node(node, number, *sections):
    made = node(number)
    made.directory.mkdir(exist_ok=True)
    (made.directory / "mnemon.conf").write_text("\n".join(sections) + "\n")
    return made


def write_warc(path, count, size, name):
    """Captures that do not compress."""
    with path.open("wb") as out:
        for i in range(count):
            body = hashlib.shake_128(f"{name} {i}".encode()).digest(size)
            http = b"HTTP/1.1 200 OK\r\nContent-Type: image/x-noise\r\nContent-Length: %d\r\n\r\n" % size + body
            out.write(
                b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:%s>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
                b"WARC-Target-URI: http://%s%d.example/\r\nContent-Type: application/http; msgtype=response\r\n"
                b"Content-Length: %d\r\n\r\n" % (str(uuid.uuid4()).encode(), name.encode(), i, len(http)) + http + b"\r\n\r\n")
    return path


def disk_of(each):
    return sum(path.stat().st_size for part in ("volumes", "index") for path in (each.directory / part).rglob("*") if path.is_file())


def captures_of(each):
    done = each.run("list", "--local", "*")
    assert done.returncode == 0, done.stderr
    return {tuple(line.split()[:2]) for line in done.stdout.splitlines()}  # key and time


def store_of(each):
    return json.loads(each.get("/api/v1/status"))["store"]


def test_a_quota_is_kept_and_room_that_is_made_is_used(node, tmp_path):
    each = make_node(node, 2, "[node]", f"disk = {QUOTA} B")
    warc = write_warc(tmp_path / "a.warc", 1000, 100_000, "a")
    done = each.run("import", warc)
    assert done.returncode != 0 and "the quota of disk for this archive is used" in done.stderr, done.stderr
    assert 0.98 * QUOTA < disk_of(each) <= 1.01 * QUOTA
    before = len(captures_of(each))
    assert 600 < before < 800

    # The node shows it, reads on, and takes nothing more.
    found(each, "--open")
    each.start()
    store = store_of(each)
    assert store["quota_bytes"] == QUOTA and abs(store["used_bytes"] - disk_of(each)) < QUOTA / 100
    assert f"mnemon_store_quota_bytes {QUOTA}" in each.get("/metrics")
    assert "of a quota of 80.0 MB used" in each.run("status").stdout
    assert "The quota of disk is nearly used" in each.get("/dashboard")
    with urllib.request.urlopen(f"{each.url}/web/2024id_/http://a1.example/") as answer:
        assert len(answer.read()) == 100_000
    more = each.run("import", write_warc(tmp_path / "b.warc", 20, 100_000, "b"))
    assert more.returncode != 0 and "quota" in more.stderr, more.stderr
    assert disk_of(each) <= 1.01 * QUOTA
    each.stop()

    # A larger quota, by the option: it goes on where it stopped.
    each.start("--disk", "200MB")
    assert store_of(each)["quota_bytes"] == 200_000_000
    assert each.run("import", warc).returncode == 0
    assert len(captures_of(each)) >= 1000


class Noise(http.server.BaseHTTPRequestHandler):
    """A page with links to a hundred files of two megabytes."""

    def do_GET(self):
        name = self.path.strip("/")
        links = "".join(f"<a href=/{i}>{i}</a>" for i in range(100)).encode()
        body = hashlib.shake_128(self.path.encode()).digest(2_000_000) if name.isdigit() else links
        self.send_response(200 if name.isdigit() or not name else 404)
        self.send_header("Content-Type", "image/x-noise" if name.isdigit() else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def test_a_crawl_waits_at_the_quota_and_goes_on_where_it_was(node, tmp_path):
    each = make_node(node, 2, "[node]", f"disk = {QUOTA} B")
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Noise)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    seed = f"http://127.0.0.1:{site.server_port}/"
    arguments = [each.program, "archive", "--data", each.directory, "--allow-private", "--delay", "0", seed]
    told = tmp_path / "told"
    crawl = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=told.open("w"))
    sentence = "the archive cannot store any more: the quota of disk for this archive is used; waiting until there is room"
    wait_for(lambda: sentence in told.read_text(), told.read_text)
    assert 0.95 * QUOTA < disk_of(each) <= 1.01 * QUOTA
    crawl.send_signal(signal.SIGINT)
    crawl.wait(timeout=PATIENCE_S)
    assert told.read_text().count(sentence) == 1 and "there is room again" not in told.read_text()
    before = len(captures_of(each))
    assert before > 30

    (each.directory / "mnemon.conf").write_text("[node]\ndisk = 1 GB\n")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert len(captures_of(each)) >= 101
    site.shutdown()


def test_a_full_node_gives_up_what_it_imported_when_others_have_it(node, tmp_path):
    ring = ("[ring]", "grace = 2 s", "compare = 1 s")
    full = make_node(node, 2, *ring, "[node]", f"disk = {QUOTA} B")
    others = [make_node(node, number, *ring) for number in (3, 4, 5)]
    imported = full.run("import", write_warc(tmp_path / "a.warc", 670, 100_000, "a"))
    assert imported.returncode == 0, imported.stderr
    everything = captures_of(full)
    found(full, "--open", "--replicas", "2")
    full.start("--keep", "own")
    for each in others:
        each.start("--join", full.place)

    def describe():
        return str([store_of(each)["used_bytes"] for each in (full, *others)]) + full.said

    # By its owner's word it holds on to them, whatever the others have …
    wait_for(lambda: set().union(*(captures_of(each) for each in others)) == everything, describe)
    assert captures_of(full) == everything
    full.stop()
    full.start()  # … and without it they go
    wait_for(lambda: store_of(full)["used_bytes"] < 0.8 * QUOTA, describe)
    assert "compaction of volume 0 gave back" in full.said
    assert disk_of(full) <= 1.01 * QUOTA

    def levels():
        held = [captures_of(each) for each in (full, *others)]
        return {line: sum(line in has for has in held) for line in everything}

    wait_for(lambda: min(levels().values()) >= 2, lambda: str(sorted(levels().values())[:5]))


def test_what_a_node_imported_stays_where_there_is_room(node, tmp_path):
    ring = ("[ring]", "grace = 2 s", "compare = 1 s")
    first = make_node(node, 2, *ring, "[node]", "disk = 1 GB")
    others = [make_node(node, number, *ring) for number in (3, 4, 5)]
    assert first.run("import", write_warc(tmp_path / "a.warc", 50, 1000, "a")).returncode == 0
    everything = captures_of(first)
    found(first, "--open", "--replicas", "2")
    first.start()
    for each in others:
        each.start("--join", first.place)
    wait_for(lambda: set().union(*(captures_of(each) for each in others)) == everything, "copies")
    wait_for(lambda: all(each.status()["services"]["copies"]["compared_by"] > 20 for each in others), "comparisons")
    assert captures_of(first) == everything
