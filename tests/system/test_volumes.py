"""Volume servers: `mnemon serve` on several addresses of this machine, and archives whose volumes they are."""
import concurrent.futures
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

PROGRAM = os.environ.get("MNEMON", "build/mnemon")


class Server:
    """A node that can be killed and started again at the same address."""

    def __init__(self, directory, address="127.0.0.1", options=()):
        self.directory = directory
        self.address = address
        self.options = options
        self.port = 0
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.directory, "--address", self.address, "--http", str(self.port), *self.options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        line = self.process.stdout.readline()
        match = re.search(r"at http://([0-9.]+):(\d+)$", line.strip())
        assert match, line + self.process.stderr.read()
        self.port = int(match.group(2))
        self.token_line = self.process.stdout.readline()

    @property
    def url(self):
        return f"http://{self.address}:{self.port}"

    @property
    def token(self):
        return (self.directory / "token").read_text().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def ask(self, path, token=None, method="GET", body=None):
        request = urllib.request.Request(self.url + path, method=method, data=body)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


class Counter:
    """A proxy in front of a server that counts the bytes which clients send."""

    def __init__(self, target):
        self.target = target
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            for source, sink, counts in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.carry, args=(source, sink, counts), daemon=True).start()

    def carry(self, source, sink, counts):
        try:
            while data := source.recv(65536):
                self.sent += len(data) if counts else 0
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


@pytest.fixture
def serve(tmp_path):
    """serve("a", "127.0.0.2") starts a node with the data directory a."""
    servers = []

    def start(name, address="127.0.0.1", options=()):
        server = Server(tmp_path / name, address, options)
        servers.append(server)
        return server

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()
        server.process.stdout.close()
        server.process.stderr.close()


def connect(directory, *volumes):
    """A data directory whose volumes are these: None for a local one, a Server, or (url, token)."""
    directory.mkdir(exist_ok=True)
    text = ""
    for number, volume in enumerate(volumes):
        text += f"[volume-{number}]\n"
        if volume is None:
            text += f'path = "volumes/{number}"\n'
        else:
            url, token = (volume.url, volume.token) if isinstance(volume, Server) else volume
            text += f'url = "{url}"\ntoken = "{token}"\n'
    (directory / "connector").write_text(text)
    return str(directory)


def noise(size, seed):
    return random.Random(seed).randbytes(size)


def write_files(directory, count, size, prefix="f"):
    directory.mkdir(exist_ok=True)
    paths = []
    for i in range(count):
        path = directory / f"{prefix}{i}"
        path.write_bytes(noise(size, f"{prefix}{i}"))
        paths.append(str(path))
    return paths


def put(mnemon, data, paths):
    result = mnemon("store", "put", "--data", data, "--json", *paths)
    return [json.loads(line) for line in result.stdout.splitlines()], result


def get(data, key):
    return subprocess.run([PROGRAM, "store", "get", "--data", data, key], capture_output=True, timeout=60)


# ---- the command


def test_a_node_says_where_it_is_and_ends_when_told(serve, tmp_path):
    server = serve("a", "127.0.0.2")
    assert server.token_line.strip().endswith(str(tmp_path / "a" / "token"))
    assert (tmp_path / "a" / "token").stat().st_mode & 0o777 == 0o600
    assert server.ask("/health") == (200, b"ok\n")
    token = server.token
    assert server.stop() == 0
    server.start()
    assert server.token == token
    assert server.stop() == 0


def test_what_is_wrong_with_a_start_is_said(serve, mnemon, tmp_path):
    server = serve("a", "127.0.0.2")
    taken = mnemon("serve", "--data", str(tmp_path / "b"), "--address", "127.0.0.2", "--http", str(server.port))
    assert taken.returncode == 1
    assert taken.stderr == f"mnemon: cannot listen at 127.0.0.2:{server.port}: Address already in use\n"
    busy = mnemon("serve", "--data", str(tmp_path / "a"), "--http", "0")
    assert busy.returncode == 1 and "is using" in busy.stderr and "stop it" in busy.stderr
    odd = mnemon("serve", "--data", str(tmp_path / "b"), "--address", "localhost")
    assert odd.returncode == 1 and '"localhost" is not an IP address' in odd.stderr
    (tmp_path / "b" / "token").chmod(0o644)
    loose = mnemon("serve", "--data", str(tmp_path / "b"), "--http", "0")
    assert loose.returncode == 1 and "can be read by others" in loose.stderr
    missing = mnemon("serve", "--data", str(tmp_path / "c"), "--config", str(tmp_path / "none.conf"))
    assert missing.returncode == 1 and "none.conf: not found" in missing.stderr
    (tmp_path / "bad.conf").write_text("[http]\nport = many\n")
    wrong = mnemon("serve", "--data", str(tmp_path / "c"), "--config", str(tmp_path / "bad.conf"))
    assert wrong.returncode == 1 and "bad.conf: line 2" in wrong.stderr


def test_settings_come_from_the_data_directory_and_options_win(serve, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mnemon.conf").write_text('[http]\naddress = "127.0.0.9"\nport = 1\nconnections = 20\n')
    server = serve("a", "127.0.0.3")
    assert server.ask("/health")[0] == 200


def test_the_token_opens_and_nothing_else_does(serve):
    server = serve("a")
    status, body = server.ask("/api/v1/volumes", server.token)
    assert status == 200 and [volume["number"] for volume in json.loads(body)["volumes"]] == [0]
    for token in (None, "", "x" * 64, server.token[:-1], server.token + "0"):
        for path in ("/api/v1/volumes", "/api/v1/volumes/0/stat", "/api/v1/volumes/7/documents/x"):
            status, body = server.ask(path, token)
            assert status == 401 and json.loads(body)["error"] == "permission", (token, path)


# ---- an archive on several machines


def test_documents_live_on_three_volumes_each_once(serve, mnemon, tmp_path):
    first, second = serve("a", "127.0.0.2"), serve("b", "127.0.0.3")
    data = connect(tmp_path / "data", None, first, second)
    paths = write_files(tmp_path / "files", 24, 3000)
    stored, result = put(mnemon, data, paths)
    assert result.returncode == 0, result.stderr
    assert {entry["key"][0] for entry in stored} == {"0", "1", "2"}
    for entry, path in zip(stored, paths):
        assert get(data, entry["key"]).stdout == open(path, "rb").read()
    again, _ = put(mnemon, data, paths)
    assert [entry["key"] for entry in again] == [entry["key"] for entry in stored]
    assert all(entry["duplicate"] for entry in again)
    # Another archive that shares the servers sees the same documents, whatever numbers it gives them.
    other = connect(tmp_path / "other", second, first)
    shared, _ = put(mnemon, other, paths)
    for mine, theirs in zip(stored, shared):
        assert theirs["duplicate"] == (mine["key"][0] != "0")
    key = next(entry["key"] for entry in stored if entry["key"][0] == "1")
    for _ in range(3):
        assert mnemon("store", "rm", "--data", data, key).returncode == 0
    gone = mnemon("store", "rm", "--data", data, key)
    assert gone.returncode == 1 and f"there is no document {key}" in gone.stderr


def test_captures_of_all_volumes_are_one_list(serve, mnemon, tmp_path):
    data = connect(tmp_path / "data", None, serve("a"), serve("b"))
    for i in range(12):
        result = mnemon("store", "put", "-", "--data", data, "--url", f"http://a.org/{i:02}", "--type", "text/plain",
                        stdin=f"page {i}")
        assert result.returncode == 0, result.stderr
    listed = mnemon("list", "--data", data, "*", "--json")
    assert [json.loads(line)["url"] for line in listed.stdout.splitlines()] == [f"http://a.org/{i:02}" for i in range(12)]
    for i in range(12):
        assert mnemon("get", "--data", data, f"http://a.org/{i:02}").stdout == f"page {i}"


def test_the_body_of_a_duplicate_is_never_sent(serve, mnemon, tmp_path):
    server = serve("a")
    counter = Counter((server.address, server.port))
    # With a second volume, since a single one finds duplicates itself.
    data = connect(tmp_path / "data", (f"http://127.0.0.1:{counter.port}", server.token), serve("b", "127.0.0.2"))
    paths = write_files(tmp_path / "files", 10, 100000)
    stored, _ = put(mnemon, data, paths)
    remote_count = sum(entry["key"][0] == "0" for entry in stored)
    assert 0 < remote_count < 10
    first_sent = counter.sent
    assert first_sent > remote_count * 100000
    again, _ = put(mnemon, data, paths)
    assert all(entry["duplicate"] for entry in again)
    assert counter.sent - first_sent < 10 * 1000
    counter.close()


def test_text_travels_compressed_both_ways(serve, mnemon, tmp_path):
    server = serve("a")
    counter = Counter((server.address, server.port))
    data = connect(tmp_path / "data", (f"http://127.0.0.1:{counter.port}", server.token))
    text = "".join(f"<p>line {i} of a page</p>\n" for i in range(20000))
    (tmp_path / "page").write_text(text)
    stored, _ = put(mnemon, data, [str(tmp_path / "page")])
    assert counter.sent < len(text) / 3
    assert get(data, stored[0]["key"]).stdout.decode() == text
    path = f"/api/v1/volumes/0/documents/{hashlib.sha256(text.encode()).hexdigest()}"
    assert server.ask(path, server.token) == (200, text.encode())  # a client that does not know zstd
    counter.close()


def test_a_wrong_token_is_said_to_be_wrong(serve, mnemon, tmp_path):
    server = serve("a")
    data = connect(tmp_path / "data", (server.url, "f" * 64))
    (tmp_path / "file").write_text("x")
    result = mnemon("store", "put", "--data", data, str(tmp_path / "file"))
    assert result.returncode == 1 and "the token is wrong" in result.stderr


# ---- servers that go and come


def test_a_server_that_is_down_takes_only_its_own_documents_away(serve, mnemon, tmp_path):
    first, second = serve("a", "127.0.0.2"), serve("b", "127.0.0.3")
    data = connect(tmp_path / "data", None, first, second)
    paths = write_files(tmp_path / "files", 15, 2000)
    stored, _ = put(mnemon, data, paths)
    first.kill()
    for entry, path in zip(stored, paths):
        found = get(data, entry["key"])
        if entry["key"][0] == "1":
            assert found.returncode == 1 and first.url.encode() in found.stderr, found.stderr
        else:
            assert found.stdout == open(path, "rb").read()
    more = write_files(tmp_path / "more", 15, 2000, "m")
    added, result = put(mnemon, data, more)
    assert len(added) == 15, result.stderr
    assert all(entry["key"][0] != "1" for entry in added)
    first.start()
    for entry, path in zip(stored + added, paths + more):
        assert get(data, entry["key"]).stdout == open(path, "rb").read()
    last, _ = put(mnemon, data, write_files(tmp_path / "last", 15, 2000, "l"))
    assert any(entry["key"][0] == "1" for entry in last)


def test_a_dead_server_is_waited_for_once_not_for_each_document(serve, mnemon, tmp_path):
    # An address that swallows everything: connecting to it waits until its time is up.
    silent = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(silent.getsockname())
        fillers.append(filler)
    data = connect(tmp_path / "data", None, (f"http://127.0.0.1:{silent.getsockname()[1]}", "f" * 64))
    started = time.monotonic()
    added, result = put(mnemon, data, write_files(tmp_path / "files", 12, 1000))
    assert len(added) == 12, result.stderr
    assert time.monotonic() - started < 30  # 12 times 3 s and more, were it asked each time
    for filler in fillers:
        filler.close()
    silent.close()


def load(data, paths, acknowledged):
    """Put files one after the other by one command; note what it says is stored."""
    result = subprocess.run(
        [PROGRAM, "store", "put", "--data", data, "--json", *paths], capture_output=True, text=True, timeout=120
    )
    for line in result.stdout.splitlines():
        entry = json.loads(line)
        acknowledged.append((entry["key"], entry["file"]))


@pytest.mark.parametrize("round_number", range(3))
def test_what_was_acknowledged_survives_kill_9_under_load(serve, mnemon, tmp_path, round_number):
    server = serve("a")
    acknowledged = []
    clients = []
    for i in range(5):
        data = connect(tmp_path / f"client{i}", server)
        paths = write_files(tmp_path / f"files{i}", 150, 4000, f"c{round_number}-{i}-")
        clients.append(threading.Thread(target=load, args=(data, paths, acknowledged)))
    for client in clients:
        client.start()
    # Kill it in the middle: when some, but surely not all, are stored.
    wanted = 20 + 60 * round_number
    while json.loads(server.ask("/api/v1/volumes", server.token)[1])["volumes"][0]["documents"] < wanted:
        assert any(client.is_alive() for client in clients)
    server.kill()
    for client in clients:
        client.join()
    assert len(acknowledged) >= wanted / 2
    server.start()
    for key, path in acknowledged:
        digest = key.split(":")[1]
        status, body = server.ask(f"/api/v1/volumes/0/documents/{digest}", server.token)
        assert status == 200 and body == open(path, "rb").read()
    server.stop()
    assert mnemon("store", "verify", "--data", str(tmp_path / "a"), "--quiet").returncode == 0


def volume_size(server):
    return json.loads(server.ask("/api/v1/volumes", server.token)[1])["volumes"][0]["size"]


def test_many_clients_at_once(serve, tmp_path):
    server = serve("a")
    acknowledged = []
    files = [write_files(tmp_path / f"files{i}", 25, 6000, f"p{i}-") for i in range(6)]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for i in range(12):
            data = connect(tmp_path / f"client{i}", server)
            pool.submit(load, data, files[i % 6], acknowledged)  # each twice
    assert len(acknowledged) == 12 * 25
    assert len({key for key, _ in acknowledged}) == 6 * 25
    # Two clients that bring a document in the same moment may both leave a record; whoever comes later does not.
    size = volume_size(server)
    assert size < 2 * 6 * 25 * 6000 * 1.1
    for i in range(6):
        load(connect(tmp_path / f"later{i}", server), files[i], acknowledged)
    assert len({key for key, _ in acknowledged}) == 6 * 25
    assert volume_size(server) - size < 6 * 25 * 6000 * 0.2


# ---- clients that mean harm


def send_raw(server, data):
    """What the server says within a moment; it may well say nothing and wait for the rest of a body."""
    with socket.create_connection((server.address, server.port), timeout=5) as client:
        try:
            client.sendall(data)
            return client.recv(65536)
        except OSError:
            return b""


def trickle(client):
    """One byte more; False where the server has had enough."""
    try:
        client.send(b"x")
        return True
    except OSError:
        return False


def test_slow_and_hostile_clients_do_not_hurt_others(serve, mnemon, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mnemon.conf").write_text("[http]\ntimeout = 2 s\n")
    server = serve("a", "127.0.0.2")
    data = connect(tmp_path / "data", server)
    # Half a header each, and a byte of it now and then.
    slow = [socket.create_connection((server.address, server.port)) for _ in range(200)]
    for client in slow:
        client.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
    head = f"Host: a\r\nAuthorization: Bearer {server.token}\r\n".encode()
    base = b" /api/v1/volumes/0/"
    hostile = [
        b"\x00" * 5000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100000,
        b"POST" + base + b"documents HTTP/1.1\r\n" + head + b"Content-Length: 99999999999999999999\r\n\r\n",
        b"POST" + base + b"documents HTTP/1.1\r\n" + head + b"Content-Length: 1000000000000\r\n\r\nx",
        b"POST" + base + b"documents HTTP/1.1\r\n" + head + b"Content-Length: 4000000000\r\n\r\nx",
        b"POST" + base + b"documents HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
        b"POST" + base + b"ask HTTP/1.1\r\n" + head + b"Content-Length: 5\r\n\r\n\xff\xff\xff\xff\xff",
        b"POST" + base + b"captures HTTP/1.1\r\n" + head + b"Content-Length: 100000\r\n\r\n" + b"\xff" * 100000,
        b"GET" + base + b"documents/" + b"../" * 1000 + b" HTTP/1.1\r\n" + head + b"\r\n",
        b"GET" + base + b"records/4294967295-9223372036854775807-4294967295 HTTP/1.1\r\n" + head + b"\r\n",
        b"GET" + base + b"records/1-0-4294967295 HTTP/1.1\r\n" + head + b"\r\n",
        b"DELETE" + base + b"documents/" + b"f" * 64 + b" HTTP/1.1\r\n" + head + b"\r\n",
    ]
    generator = random.Random(1)
    for _ in range(60):
        path = generator.choice([b"ask", b"documents", b"captures", b"blocks"])
        body = generator.randbytes(generator.randrange(200))
        hostile.append(b"POST" + base + path + b" HTTP/1.1\r\n" + head + b"Connection: close\r\nContent-Length: %d\r\n\r\n"
                       % len(body) + body)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        attacks = [pool.submit(send_raw, server, data_sent) for data_sent in hostile]
        for i in range(5):
            stored, result = put(mnemon, data, write_files(tmp_path / "files", 4, 5000, f"h{i}-"))
            assert result.returncode == 0, result.stderr
            assert all(get(data, entry["key"]).returncode == 0 for entry in stored)
            for client in slow:
                trickle(client)
        for attack in attacks:
            answer = attack.result()
            assert not answer.startswith(b"HTTP/1.1 5") or b" 501 " in answer, answer
    for client in slow:
        while trickle(client):
            time.sleep(0.01)  # a turn, until the server has had enough of it
        client.close()
    assert server.process.poll() is None
    assert server.stop() == 0
