"""A node that is told to stop ends within a second, whatever it is in the middle of."""
import os
import signal
import socket
import time

import pytest

from badserver import BadServer
from proxynodes import Proxy
from ringnodes import PATIENCE_S, await_agreement, found, wait_for
from test_together_refill import RECORD

COUNT = 40  # captures of SIZE bytes: at RATE a second, all of them take a minute
SIZE = 60_000
RATE = 40_000
LIMIT_S = 1.0


@pytest.fixture
def pair(mnemon, tmp_path):
    """Two nodes with proxies; the second one takes its time to get what the first one has."""
    nodes = [Proxy(mnemon, tmp_path / f"node{number}", f"127.0.0.{60 + number}") for number in range(2)]
    for each in nodes:
        each.directory.mkdir()
        (each.directory / "mnemon.conf").write_text(f"[ring]\nupload = {RATE} bytes\n")
        each.options = ("--allow-private", "--allow-private-ring")
    yield nodes
    for each in nodes:
        if each.process is not None:
            each.kill()


@pytest.fixture
def bad():
    server = BadServer("127.0.3.9")
    yield server
    server.stop()


def write(path):
    """Of random bytes: nothing of it can be left out, nor made smaller."""
    with path.open("wb") as out:
        for number in range(COUNT):
            body = os.urandom(SIZE).hex()[:SIZE]
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{body}"
            out.write(RECORD.format(number=number, size=len(http), http=http).encode())


def keeping(each):
    return each.status().get("together", {}).get("keeping", {})


def open_through(node, url):
    """A request through the proxy whose answer has begun and does not end."""
    host, _, port = node.proxy.removeprefix("http://").rpartition(":")
    client = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    client.sendall(f"GET {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\n\r\n".encode())
    assert client.recv(100).startswith(b"HTTP/1.1 200")
    return client


def time_to_stop(node):
    begin = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    node.process.wait(timeout=PATIENCE_S)
    assert node.process.returncode == 0, node.said
    node.process = None
    return time.monotonic() - begin


def test_a_node_stops_in_mid_transfer(pair, bad, mnemon, tmp_path):
    first, second = pair
    write(tmp_path / "all.warc")
    assert first.run("import", tmp_path / "all.warc").returncode == 0
    found(first, "--open", "--replicas", "2")
    idle_s = time_to_stop(first.start())  # with nothing to do: what this machine takes now
    first.start()
    second.start("--join", first.place)
    await_agreement(pair)
    clients = []
    for each in pair:
        added = mnemon("job", "add", f"{bad.origin}/slow_body?{each.ip}", "--delay", "0", "--data", each.directory)
        assert added.returncode == 0, added.stderr
        wait_for(lambda: any(target.endswith("?" + each.ip) for target, _, _ in bad.requests))
        clients.append(open_through(each, f"{bad.origin}/slow_body?proxy"))
        clients.append(socket.create_connection(each.url.removeprefix("http://").split(":")))
        clients[-1].sendall(b"GET /health HTTP/1.1\r\n")  # and no more
    wait_for(lambda: 0 < keeping(second).get("fetched", 0), lambda: str(keeping(second)))
    assert keeping(second)["fetched"] < COUNT, "the copy was over already"
    times = [time_to_stop(each) for each in (second, first)]
    assert max(times) < idle_s + LIMIT_S, (times, idle_s)
