"""Nodes with a proxy, and servers that they reach."""
import contextlib
import http.server
import json
import os
import re
import socket
import subprocess
import threading

from ringnodes import Node, await_agreement, end, found, program, wait_for

IP = "127.0.3.1"  # of the origins


class Proxy(Node):
    """A node with a proxy, a full member; it outlives its process as every Node does."""

    options = ()
    environment = None

    def launch(self, *options, wrap=()):
        self.process = subprocess.Popen(
            [program(self.mnemon), "proxy", "--data", self.directory, "--listen", f"{self.ip}:0", "--address", self.ip,
             "--http", "0", "--port", str(self.port), "--capacity", "1", *self.options, *options],
            stdout=subprocess.PIPE, stderr=self.log.open("a"), text=True,
            env={**os.environ, **(self.environment or {})},
        )
        return self

    def ready(self):
        for line in self.process.stdout:
            if line.startswith("serving"):
                self.url = line.split()[-1]
            if match := re.search(r"in its ring at [0-9.]+:(\d+);", line):
                self.port = int(match.group(1))
            if line.startswith("a proxy"):
                self.proxy = line.split()[-1]
                return self
        raise AssertionError(self.said)

    def curl(self, url, *options, check=True):
        """Status, header fields in lower case, body."""
        done = subprocess.run(
            ["curl", "-sS", "-i", "--noproxy", "", "--suppress-connect-headers", "-x", self.proxy, "-m", "40", *options, url],
            capture_output=True,
        )
        if done.returncode != 0:
            assert not check, done.stderr
            return done.stderr.decode(), {}, b""
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        while head.split(b" ")[1] == b"100":
            head, _, body = body.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        return int(lines[0].split()[1]), fields, body

    def crowd(self):
        return json.loads(self.get("/api/v1/crowd"))

    def raw(self, data, patience_s=10):
        """What comes back to these bytes, until the proxy closes or says nothing more."""
        host, port = self.proxy.split(":")
        with socket.create_connection((host, int(port)), timeout=patience_s) as sock:
            sock.sendall(data)
            got = b""
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                while piece := sock.recv(1 << 16):
                    got += piece
            return got


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        site = self.server
        body = self.read_body()
        site.requests.append((self.command, self.path, dict(self.headers), body))
        page = site.pages.get(self.path, (404, {}, b"not here"))
        status, fields, content = page(self, body) if callable(page) else page
        if status is None:
            return
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if "Transfer-Encoding" not in fields and "Connection" not in fields:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        if "Connection" in fields:
            self.close_connection = True

    def read_body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    do_GET = do_POST = do_HEAD = do_PUT = answer

    def log_message(self, *_):
        pass


class Origin(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, tls=None, port=0):
        super().__init__((IP, port), Handler)
        self.pages = {}
        self.requests = []
        self.scheme = "https" if tls else "http"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def link(self, path="/"):
        return f"{self.scheme}://{IP}:{self.port}{path}"

    def put(self, path, content=b"", status=200, kind="text/html", **fields):
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.pages[path] = (status, {"Content-Type": kind, **named}, content)

    def handle_error(self, *_):
        pass

    def end(self):
        self.shutdown()
        self.server_close()


@contextlib.contextmanager
def crowd(mnemon, tmp_path, count):
    nodes = [Proxy(mnemon, tmp_path / f"crowd{number}", f"127.0.0.{40 + number}") for number in range(count)]
    try:
        found(nodes[0], "--open", "--replicas", "1")
        for each in nodes:
            each.options = ("--allow-private", "--timeout", "1s")
            each.start(*(() if each is nodes[0] else ("--join", nodes[0].place)))
        await_agreement(nodes)
        wait_for(lambda: all(len(each.crowd()["view"]) == count - 1 for each in nodes), lambda: str([each.crowd() for each in nodes]))
        yield nodes
    finally:
        end(nodes)
