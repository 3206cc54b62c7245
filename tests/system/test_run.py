"""What `make run` and `make ring` do: an archive to look at from the first minute, and none that it was not told of."""
import os
import re
import signal
import socket
import subprocess
import urllib.request

import pytest

from ringnodes import wait_for
from webserver import Site


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def run(root, mnemon, tmp_path):
    """Start tools/run with a data directory of its own; gives the process once it serves."""
    program = mnemon("version").args[0]
    running = []

    def start(*arguments, program=program):
        port = free_port()
        environment = {**os.environ, "DATA": str(tmp_path / "data"), "HTTP": str(port), "HOME": str(tmp_path / "home")}
        process = subprocess.Popen(
            [root / "tools" / "run", program, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
        )
        running.append(process)
        process.said = ""
        while line := process.stdout.readline():
            process.said += line
            if "open to clients" in line:
                break
        process.url = f"http://127.0.0.1:{port}"
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def stop(process):
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return "".join(line for line in err.splitlines(True) if not line.startswith("running as root"))


def get(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


def captures(process, url):
    return [line.split()[1] for line in get(f"{process.url}/cdx?url={url}").splitlines()]


def test_a_newcomer_finds_two_versions_and_a_calendar(run, mnemon, tmp_path):
    process = run()
    assert "The archive is empty" in process.said
    link = re.search(r"Open in a browser: +(\S+)", process.said).group(1)
    assert link == f"{process.url}/web/*/http://library.example/"
    times = captures(process, "http://library.example/")
    assert len(times) == len(set(times)) == 2
    assert "it rains in" in get(f"{process.url}/web/{times[0]}id_/http://library.example/")
    assert "We are open again" in get(f"{process.url}/web/{times[1]}id_/http://library.example/")
    for path in ("css/style.css", "img/logo.svg", "img/quay-480.png", "img/quay-960.png", "js/open.mjs", "js/hours.mjs", "hours.json"):
        assert captures(process, f"http://library.example/{path}"), path
    assert len(captures(process, "http://library.example/books/letters.html")) == 1
    assert not list((tmp_path / "home").glob("**/*")), "the default data directory is left alone"
    assert stop(process) == ""
    assert mnemon("job", "list", "--data", str(tmp_path / "data")).stdout == ""
    assert mnemon("store", "verify", "--data", str(tmp_path / "data")).returncode == 0

    again = run()
    assert "archive is empty" not in again.said and captures(again, "http://library.example/") == times
    stop(again)


def test_a_site_is_archived_instead(run, mnemon, tmp_path):
    site = Site()
    site.put("/", "<title>mine</title>")
    wrapper = tmp_path / "mnemon"  # loopback is refused unless it is asked for
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" != archive ] || set -- "$@" --allow-private --delay 0\nexec {mnemon("version").args[0]} "$@"\n'
    )
    wrapper.chmod(0o755)
    process = run(site.url("/"), program=str(wrapper))
    site.close()
    assert "archive is empty" not in process.said and f"{process.url}/web/*/{site.url('/')}" in process.said
    assert len(captures(process, site.url("/"))) == 1
    assert captures(process, "http://library.example/") == []
    stop(process)


def test_a_second_one_points_to_the_first(run, tmp_path):
    (tmp_path / "data").mkdir()
    first = run()
    second = run()
    assert second.wait(timeout=120) == 0
    assert "runs on this data already" in second.said and first.url in second.said
    assert first.poll() is None
    stop(first)


# ---- make ring ----


@pytest.fixture
def ring(root, mnemon, tmp_path):
    """Start tools/ring; gives the process once it has said everything, with its nodes' numbers and processes."""
    port, http = free_port(), free_port()
    environment = {**os.environ, "HTTP": str(http), "PORT": str(port), "COPIES": "2", "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [root / "tools" / "ring", mnemon("version").args[0]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )
    process.said = ""
    while line := process.stdout.readline():
        process.said += line
        if "no node shows it any more" in line:
            break
    process.nodes = {int(number): int(pid) for number, pid in re.findall(r"127\.0\.0\.(\d)   http.* process (\d+)", process.said)}
    process.http = http
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_four_nodes_archive_the_site_together(ring, mnemon, tmp_path):
    assert sorted(ring.nodes) == [2, 3, 4, 5], ring.said + (ring.stderr.read() if ring.poll() is not None else "")
    calendar, site = re.search(r"any node: +(http://\S+/web/\*/(http://\S+))", ring.said).groups()
    data = re.search(r"ring status --data (\S+)/2", ring.said).group(1)

    def listed(number):
        lines = mnemon("list", "--local", "*", "--data", f"{data}/{number}").stdout.splitlines()
        return [line.split()[0] for line in lines if "robots.txt" not in line]  # a new home may read it again

    def levels():
        held = [surt for number in ring.nodes for surt in set(listed(number))]
        return {surt: held.count(surt) for surt in held}

    wait_for(lambda: len(levels()) > 14 and set(levels().values()) == {2}, lambda: str(levels()))
    assert site in get(calendar)
    said = mnemon("ring", "status", "--data", f"{data}/2").stdout
    assert re.search(r"^copies +\d+ captures? here, 2 copies of each wanted; looks after [\d.]+ % of the ring; arcs: ", said, re.M), said
    assert re.search(r"^decrees +1 job, 0 takedown rules$", said, re.M), said

    def read(number):
        return get(f"http://127.0.0.{number}:{ring.http}/web/2030id_/{site}")

    assert all("We are open again" in read(number) for number in ring.nodes)
    os.kill(ring.nodes.pop(4), signal.SIGKILL)
    assert all("We are open again" in read(number) for number in ring.nodes)

    assert stop(ring) == ""
    assert not list(tmp_path.glob("tmp.*")), "nothing is left"
