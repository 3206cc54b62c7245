"""Foreign content in processes of its own: what they are, and what becomes of a page if one ends."""
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest

from test_replay import TIME, Node, response
from waiting import wait_for

ORIGIN = "http://example.org"
LARGE = "<!doctype html><meta charset=utf-8>" + "".join(
    f"<p>Words é {i} <a href=/{i}>link</a><img src=i{i}.png>" for i in range(40_000))  # 2.4 MB: a worker's
PAGES = {
    "/small.html": response(f"{ORIGIN}/small.html", "<title>x</title><a href=/a>a</a><script>top.x = location</script>"),
    "/latin.html": response(f"{ORIGIN}/latin.html", "<p>\xe9<a href=?q=\xe9>".encode("latin-1"), "text/html; charset=iso-8859-1"),
    "/style.css": response(f"{ORIGIN}/style.css", "a { background: url(/b.png) }", "text/css"),
    "/packed.html": response(f"{ORIGIN}/packed.html", gzip.compress(b"<a href=/packed>"), headers=[("Content-Encoding", "gzip")]),
    "/large.html": response(f"{ORIGIN}/large.html", gzip.compress(LARGE.encode(), 1), headers=[("Content-Encoding", "gzip")]),
}


def start(mnemon, directory, conf):
    directory.mkdir()
    (directory / "conf").write_text(f"[node]\n{conf}\n")
    return Node(mnemon, directory, *PAGES.values(), options=("--config", str(directory / "conf")))


def children(pid):
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in path.read_text().split()]
    return found


def parsers_of(node):
    return [parser for host in children(node.process.pid) for parser in children(host)]


def counts(node):
    return json.loads(node.get("/api/v1/status").body)["parsers"]


def answers(node):
    found = {}
    for path in PAGES:
        for modifier in ("mp_", "id_"):
            answer = node.get(f"/web/{TIME}{modifier}/{ORIGIN}{path}", Accept_Encoding="identity")
            kept = [answer[name] for name in ("Content-Type", "ETag", "Content-Encoding")]
            policy = (answer["Content-Security-Policy"] or "").replace(node.host.rsplit(":", 1)[1], "PORT")
            found[path, modifier] = (answer.status, [*kept, policy], answer.body)
    return found


def look_at(pid, secret):
    """A process with no descriptor and no way back, that has never seen what its node keeps."""
    if os.environ.get("MNEMON_SANITIZED"):
        return  # a sanitizer needs more
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.M) and re.search(r"^Seccomp:\s+2$", status, re.M)
    try:
        assert os.listdir(f"/proc/{pid}/fd") == []
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
    except PermissionError:
        return  # only root may look
    with memory:
        for line in maps:
            start_, end, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if mode.startswith("r") and "[v" not in line:
                memory.seek(int(start_, 16))
                assert secret not in memory.read(int(end, 16) - int(start_, 16)), line


@pytest.mark.parametrize("conf", ["", "parse_short = no"])
def test_pages_are_the_same_wherever_they_are_parsed(mnemon, tmp_path, conf):
    here = start(mnemon, tmp_path / "here", "parsers = 0")
    try:
        expected = answers(here)
        assert counts(here)["enabled"] == 0 and not parsers_of(here)
    finally:
        here.stop()
    assert b"/web/" + TIME.encode() in expected["/large.html", "mp_"][2]
    node = start(mnemon, tmp_path / "away", conf)
    try:
        found = answers(node)
        key = re.compile(rb'replay\.js[^"]*')
        assert {name: value[:2] for name, value in found.items()} == {name: value[:2] for name, value in expected.items()}
        for name in found:
            assert key.sub(b"", found[name][2]) == key.sub(b"", expected[name][2]), name
        parsers = parsers_of(node)
        token = (tmp_path / "away" / "data" / "token").read_bytes().strip()
        assert len(parsers) >= (1 if conf else 2) and len(token) > 16  # of the long group, and of the short one
        for pid in parsers:
            look_at(pid, token)
        for pid in parsers:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: counts(node)["ended"] == len(parsers))
        assert {name: value[0] for name, value in answers(node).items()} == {name: 200 for name in expected}
        kill_while_reading(node, expected["/large.html", "mp_"][2], key)
    finally:
        node.stop()


def test_a_parser_that_stands_still_holds_up_nobody_else(mnemon, tmp_path):
    """More pages than loops wait for it, short ones: what needs no parser is answered, and they are when it has ended."""
    node = start(mnemon, tmp_path / "node", "[http]\ncache = 0")  # else it is in memory, and needs no parser
    try:
        page = f"/web/{TIME}mp_/{ORIGIN}/small.html"
        raw = f"/web/{TIME}id_/{ORIGIN}/style.css"
        assert node.get(page).status == 200
        short = parsers_of(node)
        for pid in short:
            os.kill(pid, signal.SIGSTOP)
        found = []
        readers = [threading.Thread(target=lambda: found.append(node.get(page))) for _ in range(24)]
        for reader in readers:
            reader.start()
        for _ in range(50):
            assert node.get(raw).status == 200
        assert len(found) < len(readers)  # it still stands still
        for pid in short:
            os.kill(pid, signal.SIGKILL)
        for reader in readers:
            reader.join()
        assert [answer.status for answer in found] == [200] * len(readers)
        assert None in {answer["X-Mnemon-Unparsed"] for answer in found}  # only what had begun is lost
    finally:
        node.stop()


def kill_while_reading(node, expected, key):
    """Whatever happens to parsers, an answer is the whole page, or what is stored, and says which."""
    is_over = threading.Event()

    def kill():
        while not is_over.wait(0.05):
            for pid in parsers_of(node):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        seen = set()
        for _ in range(12):
            answer = node.get(f"/web/{TIME}mp_/{ORIGIN}/large.html", Accept_Encoding="gzip")
            assert answer.status == 200
            seen.add(answer["X-Mnemon-Unparsed"])
            if answer["X-Mnemon-Unparsed"] is None:
                assert key.sub(b"", answer.body) == key.sub(b"", expected)
            else:
                assert answer["Content-Encoding"] == "gzip" and gzip.decompress(answer.body).decode() == LARGE
                assert "sandbox" in answer["Content-Security-Policy"] and answer["Cache-Control"] == "no-store"
    finally:
        is_over.set()
        killer.join()
    assert seen != {None}
    wait_for(lambda: counts(node)["lost"] > 0)  # it is counted every two seconds


@pytest.mark.parametrize("arguments", [["parser-host"], ["parser-host", "2", "1"]])
def test_the_word_of_the_host_is_no_command(mnemon, arguments):
    assert mnemon(*arguments).returncode != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide /proc from a program")
def test_a_node_that_cannot_have_parsers_says_so_and_does_not_start(mnemon, tmp_path):
    program = mnemon("--help").args[0]
    script = 'mount -t tmpfs none /proc && exec "$0" serve --data "$1" --http 0'
    got = subprocess.run(["unshare", "-m", "sh", "-c", script, program, tmp_path / "node"], capture_output=True, text=True, timeout=60)
    assert got.returncode == 1 and "parsers cannot be started" in got.stderr, got
