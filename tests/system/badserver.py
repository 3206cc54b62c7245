#!/usr/bin/env python3
"""badserver [--address A] [--port P] - a web server on loopback that misbehaves, and a nameserver that changes its mind.

The path says how. Every request is kept as it came. Started by hand it prints its address and serves until it
is ended; tests use the classes.
"""
import argparse
import gzip
import select
import socket
import ssl
import struct
import sys
import threading
import time

HELLO = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
KEPT = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TRAILED = b"5;name=value\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: 1\r\nX-Other: 2\r\n\r\n"

# Answered as they stand; the connection is kept unless the path is in CLOSING.
ANSWERS = {
    "/ok": HELLO,
    "/empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "/lf-only": b"HTTP/1.1 200 OK\nContent-Length: 5\nX-A: b\n\nhello",
    "/folded": b"HTTP/1.1 200 OK\r\nX-A: b\r\n  c\r\nContent-Length: 5\r\n\r\nhello",
    "/odd-case": b"HTTP/1.1 200 fine, thanks\r\ncontent-LENGTH:5\r\nX-\xfc: \xff\xfe\r\n\r\nhello",
    "/chunked": CHUNKED + TRAILED,
    "/chunked-lf": b"HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n5\nhello\n0\n\n",
    "/chunked-gzip": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + b"3\r\n\x1f\x8b\x00\r\n0\r\n\r\n",
    "/chunked-and-length": CHUNKED.replace(b"OK\r\n", b"OK\r\nContent-Length: 3\r\n") + TRAILED,
    "/chunked-more": CHUNKED + TRAILED + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
    "/length-more": HELLO + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello",
    "/no-length": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
    "/http10": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
    "/http09": b"<html>no head at all</html>",
    "/garbage": bytes(range(256)) * 4,
    "/nothing": b"",
    "/half-head": b"HTTP/1.1 200 OK\r\nContent-Type: text/pl",
    "/204": b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n",
    "/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: \"x\"\r\n\r\n",
    "/100": b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + HELLO,
    "/103": b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nTransfer-Encoding: chunked\r\n\r\n" + HELLO,
    "/101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + b"\x00\x01\x02" * 10,
    "/429": b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
    "/503": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    "/loop": b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
    "/private": b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
    "/inject": b"HTTP/1.1 200 OK\r\nETag: \"a\rX-Injected: 1\"\r\nContent-Length: 5\r\n\r\nhello",
    "/nul": b"HTTP/1.1 200 OK\r\nX-A: \x00\r\nContent-Length: 5\r\n\r\nhello",
    "/no-colon": b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 5\r\n\r\nhello",
    "/status-1000": b"HTTP/1.1 1000 Odd\r\nContent-Length: 0\r\n\r\n",
    "/negative-length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "/two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 500\r\n\r\nhello",
    "/huge-length": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhello",
    "/claims-4-tb": b"HTTP/1.1 200 OK\r\nContent-Length: 4398046511104\r\n\r\nhello",
    "/bad-chunk": CHUNKED + b"5\r\nhelloXX\r\n0\r\n\r\n",
    "/bad-size": CHUNKED + b"5\r\nhello\r\nzz\r\nmore\r\n",
    "/overflow": CHUNKED + b"ffffffffffffffff1\r\nhello\r\n0\r\n\r\n",
    "/cut-chunk": CHUNKED + b"5\r\nhello\r\n64\r\nonly this",
    "/cut-trailer": CHUNKED + b"5\r\nhello\r\n0\r\nX-Trailer: 1\r\n",
    "/big-head": b"HTTP/1.1 200 OK\r\n" + b"X-Filler: %s\r\n" % (b"x" * 2000) * 100 + b"Content-Length: 5\r\n\r\nhello",
    "/huge-head": b"HTTP/1.1 200 OK\r\n" + b"X-Filler: %s\r\n" % (b"x" * 2000) * 150 + b"Content-Length: 5\r\n\r\nhello",
    "/huge-line": b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 200000 + b"\r\nContent-Length: 5\r\n\r\nhello",
    "/echo": b"",
}
CLOSING = {
    "/short", "/no-length", "/http10", "/http09", "/garbage", "/nothing", "/half-head", "/101", "/negative-length",
    "/two-lengths", "/huge-length", "/claims-4-tb", "/bad-chunk", "/bad-size", "/overflow", "/cut-chunk", "/cut-trailer",
}


class BadServer:
    """Serves in threads. requests: (path, bytes as they came, number of the connection)."""

    def __init__(self, address="127.0.0.1", port=0, context=None):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, port), family=family, backlog=512)
        self.address = address
        self.port = self.listener.getsockname()[1]
        self.context = context
        self.requests = []
        self.connections = 0
        self.seen_once = set()
        self.is_stopping = False
        self.release = threading.Event()  # ends what is silent
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def origin(self):
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self.context else 'http'}://{host}:{self.port}"

    def stop(self):
        self.is_stopping = True
        self.release.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which would hold the port otherwise
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection, self.connections), daemon=True).start()

    def serve(self, connection, number):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            while self.serve_one(connection, number):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def read_request(self, connection):
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            piece = connection.recv(65536)
            if not piece:
                return None
            request += piece
        return request

    def serve_one(self, connection, number):
        """True where the connection is kept."""
        request = self.read_request(connection)
        if request is None:
            return False
        target = request.split(b" ", 2)[1].decode("latin-1")
        path = target.split("?")[0]
        self.requests.append((target, request, number))
        if request.startswith(b"CONNECT "):
            return self.tunnel(connection, target)
        method = getattr(self, "do_" + path.strip("/").replace("-", "_"), None)
        if method:
            return method(connection, request)
        answer = ANSWERS.get(path)
        if path == "/echo":
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(request) + request
        if answer is None:
            answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"
        connection.sendall(answer)
        return path not in CLOSING

    def tunnel(self, connection, target):
        """As a proxy does it."""
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as other:
            connection.sendall(b"HTTP/1.1 200 Connected\r\nX-Proxy: 1\r\n\r\n")
            ends = {connection: other, other: connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    piece = end.recv(65536)
                    if not piece:
                        return False
                    ends[end].sendall(piece)

    def forever(self, connection, piece, pause=0.0):
        while not self.is_stopping:
            connection.sendall(piece)
            if pause:
                time.sleep(pause)
        return False

    def reset(self, connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def do_silent(self, connection, request):
        self.release.wait(60)
        return False

    def do_silent_body(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
        self.release.wait(60)
        return False

    def do_slow_head(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        return self.forever(connection, b"X-A: b\r\n", 0.02)

    def do_slow_body(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return self.forever(connection, b"x", 0.02)

    def do_endless(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return self.forever(connection, b"x" * 65536)

    def do_endless_chunks(self, connection, request):
        connection.sendall(CHUNKED)
        return self.forever(connection, b"1000\r\n" + b"x" * 4096 + b"\r\n")

    def do_endless_trailer(self, connection, request):
        connection.sendall(CHUNKED + b"5\r\nhello\r\n0\r\n")
        return self.forever(connection, b"X-Trailer: " + b"x" * 1000 + b"\r\n")

    def do_endless_head(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        return self.forever(connection, b"X-A: " + b"b" * 100 + b"\r\n")

    def do_endless_line(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
        return self.forever(connection, b"b" * 1000)

    def do_flood_1xx(self, connection, request):
        return self.forever(connection, b"HTTP/1.1 102 Processing\r\n\r\n")

    def do_drip_1xx(self, connection, request):
        return self.forever(connection, b"HTTP/1.1 102 Processing\r\n\r\n", 0.02)

    def do_reset(self, connection, request):
        return self.reset(connection)

    def do_reset_body(self, connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhello")
        time.sleep(0.1)  # so that what was sent is read before the reset
        return self.reset(connection)

    def do_bomb(self, connection, request):
        body = gzip.compress(bytes(10 << 20))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return True

    def do_large(self, connection, request):
        size = int(request.split(b" ")[1].split(b"?")[1])
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        pattern = bytes(range(256)) * 256
        while size > 0:
            connection.sendall(pattern[:size])
            size -= len(pattern)
        return True

    def do_dripped(self, connection, request):
        """A whole response, byte by byte."""
        for byte in CHUNKED + TRAILED:
            connection.sendall(bytes([byte]))
        return True

    def do_closes_idle(self, connection, request):
        """Promises to keep the connection, then closes it."""
        connection.sendall(KEPT)
        return False

    def do_closes_on_request(self, connection, request):
        """The first request is answered; the next on the same connection is read and not answered."""
        connection.sendall(KEPT)
        self.read_request(connection)
        return False

    def do_garbage_later(self, connection, request):
        """Answers, and later sends a response that nobody asked for."""
        connection.sendall(KEPT)
        time.sleep(0.05)  # later than the answer is the subject
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        return True

    def do_fails_once(self, connection, request):
        """No answer to the first try of each target, an answer to the second."""
        target = request.split(b" ")[1]
        if target not in self.seen_once:
            self.seen_once.add(target)
            return False
        connection.sendall(HELLO)
        return True

    def do_chain(self, connection, request):
        number = int(request.split(b" ")[1].split(b"?")[1])
        where = b"/chain?%d" % (number - 1) if number > 1 else b"/ok"
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % where)
        return True


class NameServer:
    """DNS over UDP. answers: name -> list of IPv4 addresses, a list of such lists (one each time it is asked, the last one
    for ever), "silent", "missing" or "failing". Names that are not there are missing."""

    def __init__(self, answers, ttl=0):
        self.answers = answers
        self.ttl = ttl
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def stop(self):
        self.socket.close()

    def serve(self):
        while True:
            try:
                question, sender = self.socket.recvfrom(4096)
                answer = self.answer(question)
                if answer:
                    self.socket.sendto(answer, sender)
            except OSError:
                return

    def take(self, name, kind):
        given = self.answers.get(name, "missing")
        if kind != 1 or isinstance(given, str):
            return given if isinstance(given, str) else []
        if given and isinstance(given[0], list):
            return given.pop(0) if len(given) > 1 else given[0]
        return given

    def answer(self, question):
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
            at += 1 + question[at]
        end = at + 5
        kind = struct.unpack(">H", question[at + 1 : at + 3])[0]
        name = ".".join(labels)
        self.asked.append((name, kind))
        given = self.take(name, kind)
        if given == "silent":
            return None
        code = {"missing": 3, "failing": 2}.get(given, 0) if isinstance(given, str) else 0
        addresses = [] if isinstance(given, str) else given
        answer = question[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(addresses), 0, 0) + question[12:end]
        for address in addresses:
            answer += struct.pack(">HHHLH", 0xC00C, 1, 1, self.ttl, 4) + socket.inet_aton(address)
        return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate", help="PEM with key, for https")
    options = parser.parse_args()
    context = None
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
    server = BadServer(options.address, options.port, context)
    print(server.origin, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
