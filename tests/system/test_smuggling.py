"""Requests with two meanings, straight to a node and through nginx: nobody's request is answered to somebody else."""
import os
import resource
import shutil
import socket
import subprocess

import pytest

from waiting import wait_for

HIDDEN = b"GET /api/v1/status?hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /health HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /health HTTP/1.1\r\n"
SHAPES = {
    "length and coding": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 5\r\n\r\n",
    "a signed length": POST + b"Content-Length: +0\r\n\r\n",
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "bare line feeds": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "one bare line feed": GET + b"Host: localhost\nX-A: b\r\n\r\n",
    "a bare carriage return": GET + b"Host: localhost\r\nX-A: b\rContent-Length: 5\r\n\r\n",
    "two Hosts": GET + b"Host: localhost\r\nHost: other\r\n\r\n",
    "no Host": GET + b"\r\n",
    "a chunk size with a sign": POST + b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk ended by a line feed": POST + b"Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
}


@pytest.fixture(scope="module")
def node(mnemon, tmp_path_factory):
    """One for all: after each shape it must answer the next."""
    data = tmp_path_factory.mktemp("node") / "data"
    command = [mnemon("version").args[0], "serve", "--data", str(data), "--http", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("serving"), process.stderr.read()
    yield int(line.rsplit(":", 1)[1])
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.fixture
def nginx(node, tmp_path):
    """nginx in front of the node, with connections to it that are used again: the way smuggled requests would take."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.path.exists(program):
        pytest.skip("nginx is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"""daemon off; worker_processes 1; pid {tmp_path}/nginx.pid; error_log {tmp_path}/nginx.log;
        events {{ worker_connections 64; }}
        http {{
            access_log off; client_body_timeout 5s; keepalive_timeout 5s;
            client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;
            fastcgi_temp_path {tmp_path}/fastcgi; uwsgi_temp_path {tmp_path}/uwsgi; scgi_temp_path {tmp_path}/scgi;
            upstream node {{ server 127.0.0.1:{node}; keepalive 1; }}
            server {{
                listen 127.0.0.1:{port};
                location / {{ proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection "";
                              proxy_set_header Host localhost; proxy_request_buffering off; }}
            }}
        }}"""
    )
    process = subprocess.Popen([program, "-p", str(tmp_path), "-c", str(config)], stderr=subprocess.DEVNULL)
    wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "nginx listens")
    yield port
    process.terminate()
    process.wait(timeout=60)


def exchange(port, request):
    """All that comes back until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize("name", SHAPES)
def test_a_node_answers_400_and_closes(node, name):
    answer = exchange(node, SHAPES[name] + HIDDEN)
    status = b"405" if name.startswith("a chunk") else b"400"  # the method is refused before the body is looked at
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    assert answer.count(b"HTTP/1.1 ") == 1 and b"Connection: close" in answer


def test_behind_nginx_every_request_gets_its_own_answer(nginx):
    """nginx forgives some of them; then it must be one request for both. The next client always gets what it asked for."""
    for name, shape in SHAPES.items():
        answers = exchange(nginx, shape + HIDDEN)
        own = exchange(nginx, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert own.startswith(b"HTTP/1.1 200 ") and own.count(b"HTTP/1.1 ") == 1, (name, own)
        assert b'"status"' not in own.split(b"\r\n\r\n", 1)[1] or b"hidden" not in own, name
        assert answers.count(b"HTTP/1.1 ") <= 2, (name, answers)


def test_more_connections_than_open_files_are_said_to_be_fewer(mnemon, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "mnemon.conf").write_text("[http]\nconnections = 60000\n")
    command = [mnemon("version").args[0], "serve", "--data", str(data), "--http", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)),
    )
    lines = [process.stdout.readline() for _ in range(2)]
    process.terminate()
    lines += process.communicate(timeout=120)[0].splitlines()
    assert any("http.connections is 60000" in line and "allows 768 connections" in line for line in lines), lines
