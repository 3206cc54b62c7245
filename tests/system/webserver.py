"""A web server for crawls: what it serves is a table, what it was asked is kept."""
import email.utils
import hashlib
import http.server
import socket
import threading
import time


class Answer:
    """One response; its validators answer conditional requests."""

    def __init__(self, body=b"", kind="text/html", status=200, headers=None, validates=True, wait=0):
        self.body = body.encode() if isinstance(body, str) else body
        self.kind = kind
        self.status = status
        self.headers = headers or {}
        self.validates = validates
        self.wait = wait
        self.etag = '"' + hashlib.sha256(self.body).hexdigest()[:16] + '"'
        self.modified = email.utils.formatdate(1700000000, usegmt=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "test"

    def do_GET(self):
        site = self.server.site
        with site.lock:
            site.requests.append((time.monotonic(), self.headers["Host"], self.path, dict(self.headers)))
        answer = site.find(self.headers["Host"], self.path)
        if answer.wait:
            time.sleep(answer.wait)
        is_same = answer.validates and self.headers.get("If-None-Match") == answer.etag
        body = b"" if is_same else answer.body
        self.send_response(304 if is_same else answer.status)
        if answer.validates and answer.status == 200:
            self.send_header("ETag", answer.etag)
            self.send_header("Last-Modified", answer.modified)
        if not is_same:
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class FastHandler(Handler):
    wbufsize = 1 << 16  # head and body in one packet: else the second waits 40 ms for the first one's receipt


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a crawler that is killed leaves its connections


class Site:
    """Hosts are loopback addresses that share a port: site.url("/a") is on the first, site.url("/a", 1) on the second."""

    def __init__(self, hosts=1, is_fast=False):
        self.pages = {}
        self.requests = []
        self.lock = threading.Lock()
        self.servers = []
        self.addresses = [f"127.0.2.{i + 1}" for i in range(hosts)]
        self.port = self.choose_port()
        for address in self.addresses:
            server = Server((address, self.port), FastHandler if is_fast else Handler)
            server.site = self
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            self.servers.append(server)

    def choose_port(self):
        with socket.socket() as listener:
            listener.bind((self.addresses[0], 0))
            return listener.getsockname()[1]

    def host(self, index=0):
        return f"{self.addresses[index]}:{self.port}"

    def url(self, path="/", host=0):
        return f"http://{self.host(host)}{path}"

    def put(self, path, *arguments, host=0, **options):
        self.pages[(self.host(host), path)] = Answer(*arguments, **options)

    def remove(self, path, host=0):
        del self.pages[(self.host(host), path)]

    def find(self, host, path):
        answer = self.pages.get((host, path))
        if callable(getattr(answer, "body", None)):
            return answer.body(path)
        return answer or Answer("not here", status=404, validates=False)

    def asked(self, path=None, host=0):
        """How often a path was asked for; all paths, as a list, without one."""
        with self.lock:
            paths = [asked for _, name, asked, _ in self.requests if name == self.host(host)]
        return paths.count(path) if path else paths

    def forget(self):
        with self.lock:
            self.requests.clear()

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
