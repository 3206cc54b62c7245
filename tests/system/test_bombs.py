"""Archived documents that are small as stored and huge when decoded: a node that is asked for them goes on
answering everybody else, and neither its disk nor its memory fills up."""
import ctypes
import gzip
import http.client
import os
import pathlib
import re
import subprocess
import threading
import time
import zlib

import pytest

from test_replay import TIME, Node, encode_brotli, response, web

ORIGIN = "http://bomb.example"
MIB = 1 << 20
REQUESTS_COUNT = 16
IS_SANITIZED = "MNEMON_SANITIZED" in os.environ  # then it is slower, and what was freed is kept for a while
HEALTH_S_MAX = 5 if IS_SANITIZED else 1  # on a busy machine; alone it is a few milliseconds
MEMORY_SIZE_MAX = (800 if IS_SANITIZED else 300) * MIB
DISK_SIZE_MAX = 1024 * MIB  # REPLAY_SCRATCH_SIZE_MAX of src/node/node.c


def deflate_bomb(size):
    """Raw deflate of so many zeros: whole blocks that end at a byte can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(16 * MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return block * (size // (16 * MIB)) + packer.flush()


def gzip_bomb(size):
    return gzip.compress(bytes(16 * MIB)) * (size // (16 * MIB))


def zstd(data):
    return subprocess.run(["zstd", "-qc", "-19"], input=data, capture_output=True, check=True).stdout


def bombs():
    """(name, Content-Encoding, body), each of them a few KiB."""
    inner = gzip_bomb(3584 * MIB)
    yield "gzip-gzip", "gzip, gzip", gzip.compress(inner, 9)
    yield "deflate-deflate", "deflate, deflate", zlib.compress(deflate_bomb(2048 * MIB), 9)
    yield "gzip-zstd", "gzip, zstd", zstd(inner)
    yield "zstd-zstd", "zstd, zstd", zstd(zstd(bytes(64 * MIB)) * 64)
    nothing = gzip.compress(b"", 9, mtime=0)
    yield "nothing", "gzip, gzip, gzip", gzip.compress(gzip.compress(nothing * (MIB // len(nothing)), 9) * 2000, 9)
    nest = b"<p>deep"
    for _ in range(10):
        nest = gzip.compress(nest)
    yield "deep", ", ".join(["gzip"] * 10), nest
    brotli = encode_brotli(bytes(64 * MIB))
    if brotli:
        yield "br", "br", encode_brotli(bytes(1024 * MIB))
        yield "gzip-br", "gzip, br", encode_brotli(inner)


BOMBS = list(bombs())


def bomb_records():
    for name, coding, body in BOMBS:
        assert len(body) < 16 << 10, (name, len(body))
        for kind, end in (("text/html", "html"), ("text/plain", "txt")):
            yield response(f"{ORIGIN}/{name}.{end}", body, kind, headers=[("Content-Encoding", coding)])
    yield response(f"{ORIGIN}/page", "<p>an ordinary page")


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    program = os.environ.get("MNEMON", str(pathlib.Path(__file__).parents[2] / "build" / "mnemon"))

    def mnemon(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300)

    started = Node(mnemon, tmp_path_factory.mktemp("bombs"), *bomb_records())
    yield started
    started.stop()


class Watch(threading.Thread):
    """The most of the disk that files without a name take, and of memory; how long /health takes."""

    def __init__(self, node):
        super().__init__()
        self.node = node
        self.disk_size = self.health_s = self.page_s = 0
        self.health_count = 0
        self.is_over = threading.Event()
        self.failure = None

    def look_at_disk(self):
        folder = pathlib.Path(f"/proc/{self.node.process.pid}/fd")
        size = 0
        for entry in folder.iterdir():
            try:
                if "(deleted)" in os.readlink(entry):
                    size += entry.stat().st_blocks * 512
            except OSError:
                pass  # closed meanwhile
        self.disk_size = max(self.disk_size, size)

    def time_of(self, target):
        begun = time.monotonic()
        answer = self.node.get(target)
        assert answer.status == 200, (target, answer.status)
        return time.monotonic() - begun

    def run(self):
        try:
            while not self.is_over.is_set():
                self.look_at_disk()
                self.health_s = max(self.health_s, self.time_of("/health"))
                self.page_s = max(self.page_s, self.time_of(web(TIME, f"{ORIGIN}/page", "mp_")))
                self.health_count += 1
                time.sleep(0.02)  # looks often, but leaves the processor to the bombs
        except Exception as failure:
            self.failure = failure

    def memory_size(self):
        status = pathlib.Path(f"/proc/{self.node.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) << 10


def ask_all(node, targets, **headers):
    answers = {}

    def ask(number, target):
        connection = http.client.HTTPConnection(node.host, timeout=120)
        connection.request("GET", target, headers=headers)
        reply = connection.getresponse()
        answers[number] = (target, reply.status)
        reply.read(64 * MIB)  # enough to see that it comes
        connection.close()

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(targets)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[number] for number in range(len(targets))]


@pytest.mark.parametrize("what", ["page", "raw", "details", "compare"])
def test_hostile_records_stop_nobody(node, what):
    names = [name for name, _, _ in BOMBS]
    urls = [f"{ORIGIN}/{name}.{end}" for end in ("html", "txt") for name in names]
    urls = (urls * REQUESTS_COUNT)[:REQUESTS_COUNT]
    targets = {
        "page": [web(TIME, url, "mp_") for url in urls],
        "raw": [web(TIME, url, "id_") for url in urls],
        "details": [f"/details/{TIME}/{url}" for url in urls],
        "compare": [f"/compare/{TIME}/{TIME}/{url}" for url in urls],
    }[what]
    watch = Watch(node)
    watch.start()
    begun = time.monotonic()
    answers = ask_all(node, targets, **{"Accept-Encoding": "identity"})
    lasted_s = time.monotonic() - begun
    watch.is_over.set()
    watch.join()
    print(f"{what}: {lasted_s:.1f} s, /health {watch.health_s * 1000:.0f} ms at most of {watch.health_count},",
          f"a page {watch.page_s * 1000:.0f} ms, disk {watch.disk_size / MIB:.0f} MiB, memory {watch.memory_size() / MIB:.0f} MiB")
    assert watch.failure is None, watch.failure
    assert watch.health_s < HEALTH_S_MAX
    assert watch.page_s < 4 * HEALTH_S_MAX
    assert watch.disk_size < DISK_SIZE_MAX
    assert watch.memory_size() < MEMORY_SIZE_MAX
    assert all(status in (200, 503) for _, status in answers), answers


@pytest.mark.parametrize("name,coding,body", BOMBS, ids=[bomb[0] for bomb in BOMBS])
@pytest.mark.parametrize("kind", ["html", "txt"])
@pytest.mark.parametrize("modifier", ["mp_", "id_"])
def test_what_exceeds_the_limits_goes_as_it_is_stored(node, name, coding, body, kind, modifier):
    answer = node.get(web(TIME, f"{ORIGIN}/{name}.{kind}", modifier), Accept_Encoding="identity")
    assert answer.status == 200
    assert answer.body == body
    assert answer["Content-Encoding"] == coding
    assert answer["X-Mnemon-Undecoded"]
    if modifier == "mp_" and kind == "html":
        assert "script-src 'none'" in answer["Content-Security-Policy"]


def test_a_stored_frame_that_unpacks_to_much_stops_nobody(mnemon, tmp_path):
    """Nothing is encoded: the volume's own compression made 512 MiB so small."""
    node = Node(mnemon, tmp_path, response(f"{ORIGIN}/zeros", bytes(512 * MIB), "text/plain"), response(f"{ORIGIN}/page", "<p>an ordinary page"))
    watch = Watch(node)
    try:
        watch.start()
        answers = ask_all(node, [web(TIME, f"{ORIGIN}/zeros", "id_")] * 6)
        watch.is_over.set()
        watch.join()
        print(f"/health {watch.health_s * 1000:.0f} ms at most of {watch.health_count}, a page {watch.page_s * 1000:.0f} ms")
        assert watch.failure is None, watch.failure
        assert all(status in (200, 503) for _, status in answers), answers
        assert watch.health_s < HEALTH_S_MAX
        assert watch.page_s < 5 * HEALTH_S_MAX
    finally:
        watch.is_over.set()
        node.stop()


def test_large_honest_text_is_decoded(mnemon, tmp_path):
    """200 MB at a ratio of 20: what a parser decodes lies in a file without a name while it is sent."""
    noise = os.urandom(500_000).hex().encode()
    text = b"".join(noise[at:at + 5000] + b" " * 60_000 for at in range(0, len(noise), 5000))
    text = (text * (200_000_000 // len(text) + 1))[:200_000_000]
    packed = gzip.compress(text, 1)
    assert 15 < len(text) / len(packed) < 60, len(text) / len(packed)
    node = Node(mnemon, tmp_path, response(f"{ORIGIN}/large.txt", packed, "text/plain", headers=[("Content-Encoding", "gzip")]))
    watch = Watch(node)
    try:
        answer = node.get(web(TIME, f"{ORIGIN}/large.txt", "id_"), Accept_Encoding="identity")
        watch.look_at_disk()
        assert answer.status == 200
        assert answer["Content-Encoding"] is None
        assert answer["X-Mnemon-Undecoded"] is None
        assert answer["Content-Length"] == str(len(text))
        assert answer.body == text
        assert watch.memory_size() < MEMORY_SIZE_MAX
    finally:
        node.stop()


def test_a_client_that_leaves_ends_the_work(node):
    """Connections that close at once leave nothing behind: no file, and no work that others wait for."""
    for _ in range(64):
        connection = http.client.HTTPConnection(node.host, timeout=60)
        connection.request("GET", web(TIME, f"{ORIGIN}/gzip-gzip.txt", "id_"), headers={"Accept-Encoding": "identity"})
        connection.close()
    watch = Watch(node)
    assert watch.time_of("/health") < HEALTH_S_MAX
    watch.look_at_disk()
    assert watch.disk_size < DISK_SIZE_MAX
